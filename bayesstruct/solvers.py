"""Posterior modes: NumPy in, NumPy out, stopped on a certified gap."""

from bayesstruct.classifiers.solvers.classifier import NetworkClassifier, network_classifier
from bayesstruct.classifiers.solvers.discretize import Discretization, mdl_discretization
from bayesstruct.core.solution import ConvergenceWarning, PrecisionSolution, Solution
from bayesstruct.features.solvers.bp_means import BPMeans, bp_means
from bayesstruct.features.solvers.latent_features import LatentFeatures, latent_features
from bayesstruct.fields.solvers.modes import (
    PairwiseMRFSolution,
    pairwise_mrf,
    pairwise_mrf_path,
    pairwise_mrf_rate_max,
)
from bayesstruct.neighbourhoods.solvers import NeighbourhoodSolution, neighbourhood_modes
from bayesstruct.networks.solvers.candidate_parents import blanket_candidates, candidate_parents
from bayesstruct.networks.solvers.dag_search import DAGSearchSolution, dag_search
from bayesstruct.networks.solvers.known_order import k2, known_order
from bayesstruct.networks.solvers.mmpc import mmpc_candidates
from bayesstruct.networks.solvers.optimal_dag import DAGSolution, optimal_dag
from bayesstruct.networks.solvers.parent_search import search_tables
from bayesstruct.precision.solvers.clime import CLIMESolution, clime, clime_path
from bayesstruct.precision.solvers.covariance_selection import covariance_selection
from bayesstruct.precision.solvers.graphical_lasso import (
    graphical_lasso,
    graphical_lasso_gap,
    graphical_lasso_path,
)
from bayesstruct.precision.solvers.graphical_spike_slab import (
    SpikeSlabSolution,
    graphical_spike_slab,
)
from bayesstruct.precision.solvers.multi_task import MultiTaskSolution, multi_task_graphical_lasso
from bayesstruct.precision.solvers.structured import (
    blockwise_graphical_lasso,
    locally_constant_graphical_lasso,
    node_selection_graphical_lasso,
)
from bayesstruct.sem.solvers.direct_lingam import DirectLiNGAM, direct_lingam
from bayesstruct.sem.solvers.given_order import LinearSEMSolution, linear_sem
from bayesstruct.sem.solvers.sink_removal import SinkRemovalSolution, sink_removal
from bayesstruct.sparse.solvers import optimizers
from bayesstruct.sparse.solvers.selection import (
    bayesian_information_criterion,
    cross_validate,
    stability_selection,
)
from bayesstruct.sparse.solvers.sparse import SparseSolution, sparse_mode, sparse_path
from bayesstruct.trees.solvers.directed import DirectedTreeSolution, directed_tree
from bayesstruct.trees.solvers.forests import ForestSolution, chow_liu
from bayesstruct.trees.solvers.latent_trees import (
    LatentTreeSolution,
    information_distances,
    latent_tree,
)
from bayesstruct.trees.solvers.local_tests import (
    LocalNeighbourhoods,
    local_neighbourhoods,
    pairwise_tests,
)

__all__ = [
    "BPMeans",
    "CLIMESolution",
    "ConvergenceWarning",
    "DAGSearchSolution",
    "DAGSolution",
    "DirectLiNGAM",
    "DirectedTreeSolution",
    "Discretization",
    "ForestSolution",
    "LatentFeatures",
    "LatentTreeSolution",
    "LinearSEMSolution",
    "LocalNeighbourhoods",
    "MultiTaskSolution",
    "NeighbourhoodSolution",
    "NetworkClassifier",
    "PairwiseMRFSolution",
    "PrecisionSolution",
    "SinkRemovalSolution",
    "Solution",
    "SparseSolution",
    "SpikeSlabSolution",
    "bayesian_information_criterion",
    "blanket_candidates",
    "blockwise_graphical_lasso",
    "bp_means",
    "candidate_parents",
    "chow_liu",
    "clime",
    "clime_path",
    "covariance_selection",
    "cross_validate",
    "dag_search",
    "direct_lingam",
    "directed_tree",
    "graphical_lasso",
    "graphical_lasso_gap",
    "graphical_lasso_path",
    "graphical_spike_slab",
    "information_distances",
    "k2",
    "known_order",
    "latent_features",
    "latent_tree",
    "linear_sem",
    "local_neighbourhoods",
    "locally_constant_graphical_lasso",
    "mdl_discretization",
    "mmpc_candidates",
    "multi_task_graphical_lasso",
    "neighbourhood_modes",
    "network_classifier",
    "node_selection_graphical_lasso",
    "optimal_dag",
    "optimizers",
    "pairwise_mrf",
    "pairwise_mrf_path",
    "pairwise_mrf_rate_max",
    "pairwise_tests",
    "search_tables",
    "sink_removal",
    "sparse_mode",
    "sparse_path",
    "stability_selection",
]
