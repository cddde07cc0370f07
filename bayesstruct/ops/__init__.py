"""PyTensor operations around the solvers, with exact derivatives."""

from bayesstruct.ops.bootstrap import BootstrapStart, bootstrap_scatter
from bayesstruct.ops.graphical_lasso import graphical_lasso
from bayesstruct.ops.graphical_lasso_mode import graphical_lasso_mode
from bayesstruct.ops.graphical_spike_slab import graphical_spike_slab_mode, log_odds

__all__ = [
    "BootstrapStart",
    "bootstrap_scatter",
    "graphical_lasso",
    "graphical_lasso_mode",
    "graphical_spike_slab_mode",
    "log_odds",
]
