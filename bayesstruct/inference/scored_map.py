"""Best graph of a Bayesian network by its BIC or BDe scores."""

import numpy as np

from bayesstruct.distributions.dag import DAGRV
from bayesstruct.solvers.parent_search import search_tables
from bayesstruct.steps.recognition import NotRecognized, is_op
from bayesstruct.steps.scored_networks import problem_of, scored_network_of

__all__ = ["scored_network_in", "scored_network_mode"]

_SEED = 20170
_CLIMBS = 5  # local searches for each variable


def scored_network_in(model):
    """Return the recognised network of a model, or None."""
    graphs = [rv for rv in model.free_RVs if is_op(rv, DAGRV)]
    if len(graphs) != 1:
        return None
    try:
        return scored_network_of(model, graphs[0])
    except NotRecognized:
        return None


def scored_network_mode(model, part) -> dict:
    """Graph of the best score that was found, and the expected tables given it if they are random.

    Returns
    -------
    dict
        Point of the model.
    """
    from bayesstruct.kernels.order_search import best_graph

    problem = problem_of(part)
    rng = np.random.default_rng(_SEED)
    graph, _, _ = best_graph(search_tables(problem), rng, climbs=_CLIMBS * problem.d)
    return dict(model.initial_point()) | {part.dag.name: graph} | part.expected(graph)
