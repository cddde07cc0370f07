"""Best graph of a Bayesian network, and its parameters."""

import numpy as np

from bayesstruct.core.modes import Mode, ModeSolver, register_mode
from bayesstruct.core.recognition import NotRecognized, is_op
from bayesstruct.networks.priors.dag import DAGRV, OrderDAGRV
from bayesstruct.networks.solvers.parent_search import best_network
from bayesstruct.networks.steps.complete import network_of, network_problem_of
from bayesstruct.networks.steps.scored import problem_of, scored_network_of
from bayesstruct.sparse.modes import SpikeAndSlabRefusal

__all__ = [
    "NetworkMode",
    "OrderPriorRefusal",
    "ScoredNetworkMode",
    "network_mode",
    "recognized_network",
    "scored_network_mode",
]

_SEED = 20170
# Local searches for each variable; scores other than BGe have more local optima.
_CLIMBS, _SCORED_CLIMBS = 2, 5


@register_mode(after=SpikeAndSlabRefusal)
class NetworkMode(ModeSolver):
    """Best graph of a Bayesian network, its parameters integrated out.

    The graph of the greatest posterior probability that a search over orders with restarts finds
    (:func:`bayesstruct.solvers.optimal_dag` proves it for up to 25 variables), with the means of the
    parameters given that graph.
    """

    def recognise(self, model):
        """Return the network, or None."""
        return recognized_network(model, network_of)

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Search."""
        return Mode(network_mode(model, part))


@register_mode(after=SpikeAndSlabRefusal)
class ScoredNetworkMode(ModeSolver):
    """Best graph of a Bayesian network by another score, likewise."""

    def recognise(self, model):
        """Return the network, or None."""
        return recognized_network(model, scored_network_of)

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Search."""
        return Mode(scored_network_mode(model, part))


@register_mode(after=SpikeAndSlabRefusal)
class OrderPriorRefusal(ModeSolver):
    """Refuses graphs whose prior counts topological orders, which no search here knows."""

    def recognise(self, model):
        """Raise for the prior ``"order"``."""
        if graphs := [rv.name for rv in model.free_RVs if is_op(rv, OrderDAGRV)]:
            raise ValueError(
                f"the prior 'order' of {graphs[0]!r} counts the topological orders of a graph, which is no sum over "
                "parent sets, so that no search finds its mode: use the prior 'uniform', 'edge' or 'fair', or read "
                "the draws of pm.sample with bs.map_graph"
            )


def recognized_network(model, recognize):
    """Return the network of a model as a function recognises it, or None."""
    graphs = [rv for rv in model.free_RVs if is_op(rv, DAGRV)]
    if len(graphs) != 1:
        return None
    try:
        return recognize(model, graphs[0])
    except NotRecognized:
        return None


def network_mode(model, part) -> dict:
    """Graph of the greatest posterior probability that was found, and what is expected given it.

    Returns
    -------
    dict
        Point of the model.
    """
    problem, family = network_problem_of(model, part)
    return _best_point(model, part.dag, problem, family, _CLIMBS)


def scored_network_mode(model, part) -> dict:
    """Graph of the best score that was found, and the expected tables given it if they are random.

    Returns
    -------
    dict
        Point of the model.
    """
    return _best_point(model, part.dag, problem_of(part), part, _SCORED_CLIMBS)


def _best_point(model, dag, problem, family, climbs):
    graph = best_network(problem, np.random.default_rng(_SEED), climbs=climbs)
    return dict(model.initial_point()) | {dag.name: graph} | family.expected(graph)
