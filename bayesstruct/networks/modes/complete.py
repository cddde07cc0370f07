"""Best graph of a Bayesian network, and its parameters."""

import numpy as np

from bayesstruct.core.recognition import NotRecognized, is_op
from bayesstruct.networks.priors.dag import DAGRV
from bayesstruct.networks.solvers.parent_search import best_network
from bayesstruct.networks.steps.complete import network_problem_of
from bayesstruct.networks.steps.scored import problem_of

__all__ = ["network_mode", "recognized_network", "scored_network_mode"]

_SEED = 20170
# Local searches for each variable; scores other than BGe have more local optima.
_CLIMBS, _SCORED_CLIMBS = 2, 5


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
