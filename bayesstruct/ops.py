"""PyTensor operations around the solvers, with exact derivatives."""

from bayesstruct.core.starts import BootstrapStart, bootstrap_scatter
from bayesstruct.features.ops.bp_means import bp_means
from bayesstruct.fields.ops.log_partition import log_partition
from bayesstruct.fields.ops.mode import pairwise_mrf_mode
from bayesstruct.precision.ops.graphical_lasso import graphical_lasso
from bayesstruct.precision.ops.graphical_lasso_mode import graphical_lasso_mode
from bayesstruct.precision.ops.graphical_spike_slab import graphical_spike_slab_mode, log_odds
from bayesstruct.precision.ops.multi_task import multi_task_graphical_lasso
from bayesstruct.precision.ops.structured import (
    blockwise_graphical_lasso,
    locally_constant_graphical_lasso,
    node_selection_graphical_lasso,
)
from bayesstruct.sparse.ops.multinomial import sparse_multinomial
from bayesstruct.sparse.ops.sparse import lasso, sparse_logistic
from bayesstruct.sparse.ops.sparse_groups import group_lasso, tree_lasso
from bayesstruct.trees.ops.spanning_trees import log_tree_normaliser, tree_probabilities

__all__ = [
    "BootstrapStart",
    "blockwise_graphical_lasso",
    "bootstrap_scatter",
    "bp_means",
    "graphical_lasso",
    "graphical_lasso_mode",
    "graphical_spike_slab_mode",
    "group_lasso",
    "lasso",
    "locally_constant_graphical_lasso",
    "log_odds",
    "log_partition",
    "log_tree_normaliser",
    "multi_task_graphical_lasso",
    "node_selection_graphical_lasso",
    "pairwise_mrf_mode",
    "sparse_logistic",
    "sparse_multinomial",
    "tree_lasso",
    "tree_probabilities",
]
