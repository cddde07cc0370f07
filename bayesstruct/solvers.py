"""Posterior modes: NumPy in, NumPy out, stopped on a certified gap."""

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
from bayesstruct.precision.solvers.graphical_lasso import (
    graphical_lasso,
    graphical_lasso_gap,
    graphical_lasso_path,
)
from bayesstruct.precision.solvers.graphical_spike_slab import (
    SpikeSlabSolution,
    graphical_spike_slab,
)
from bayesstruct.sparse.solvers.dual_augmented import dal
from bayesstruct.sparse.solvers.projected import cone_mode, pqn, spg
from bayesstruct.sparse.solvers.scaled_subgradient import owl_qn, pss_as, pss_gb, pss_sp
from bayesstruct.sparse.solvers.selection import (
    bayesian_information_criterion,
    cross_validate,
    stability_selection,
)
from bayesstruct.sparse.solvers.soft_threshold import bbst, qnst
from bayesstruct.sparse.solvers.sparse import SparseSolution, sparse_mode, sparse_path
from bayesstruct.sparse.solvers.stochastic import (
    adagrad_dual_averaging,
    adagrad_mirror_descent,
    minibatches,
    smidas,
    stochastic_coordinate_descent,
)

__all__ = [
    "BPMeans",
    "ConvergenceWarning",
    "DAGSearchSolution",
    "DAGSolution",
    "LatentFeatures",
    "NeighbourhoodSolution",
    "PairwiseMRFSolution",
    "PrecisionSolution",
    "Solution",
    "SparseSolution",
    "SpikeSlabSolution",
    "adagrad_dual_averaging",
    "adagrad_mirror_descent",
    "bayesian_information_criterion",
    "bbst",
    "blanket_candidates",
    "bp_means",
    "candidate_parents",
    "cone_mode",
    "cross_validate",
    "dag_search",
    "dal",
    "graphical_lasso",
    "graphical_lasso_gap",
    "graphical_lasso_path",
    "graphical_spike_slab",
    "k2",
    "known_order",
    "latent_features",
    "minibatches",
    "mmpc_candidates",
    "neighbourhood_modes",
    "optimal_dag",
    "owl_qn",
    "pairwise_mrf",
    "pairwise_mrf_path",
    "pairwise_mrf_rate_max",
    "pqn",
    "pss_as",
    "pss_gb",
    "pss_sp",
    "qnst",
    "search_tables",
    "smidas",
    "sparse_mode",
    "sparse_path",
    "spg",
    "stability_selection",
    "stochastic_coordinate_descent",
]
