"""Prior probabilities of arcs, given that there is no cycle."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.records import with_fixed

if TYPE_CHECKING:
    from bayesstruct.networks.kernels.dag_priors import ParentPrior

__all__ = ["implied_arc_probability"]

_SEED = 20150201  # fixed: equal settings give equal Bayes factors
_GRAPHS = 400  # draws of graphs, where the sum over all of them takes too long
_SUMMED = 12  # variables up to which it does not


def implied_arc_probability(prior: "ParentPrior", *, order: bool = False) -> np.ndarray:
    """Prior probability of each arc of a directed acyclic graph.

    The exact sum over all graphs for up to 12 variables, and where all arcs have the same probability. Otherwise the
    share of 400 draws, whose standard error is up to 0.025.

    Parameters
    ----------
    prior : bayesstruct.networks.kernels.dag_priors.ParentPrior
    order : bool
        Whether graphs count once for each of their topological orders.

    Returns
    -------
    numpy.ndarray
        (d, d), rows are parents; 1 and 0 exactly where an arc is in all graphs or in none.
    """
    least = 0.0 if prior.exchangeable or prior.d <= _SUMMED else 0.5 / _GRAPHS
    return with_fixed(_implied(prior, order), prior.required, prior.impossible, least)


def _implied(prior, order):
    """Sum over all graphs, or average over draws."""
    from bayesstruct.networks.exact.posterior import prior_arc_probabilities
    from bayesstruct.networks.kernels.prior_draws import draw_dag, mean_number_of_arcs

    if prior.exchangeable and prior.d > 1:  # without machine code
        return mean_number_of_arcs(prior, order=order) / (prior.d * (prior.d - 1))
    if prior.d <= _SUMMED:
        return prior_arc_probabilities(prior, order=order)
    rng = np.random.default_rng(_SEED)
    return np.mean([draw_dag(rng, prior, order=order) for _ in range(_GRAPHS)], axis=0)
