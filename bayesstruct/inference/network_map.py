"""Best graph of a Bayesian network, and its parameters."""

import numpy as np

from bayesstruct.distributions.dag import DAGRV
from bayesstruct.distributions.discrete_network import strides
from bayesstruct.distributions.gaussian_network import (
    ArcWeightsRV,
    InterceptsRV,
    NoiseVariancesRV,
)
from bayesstruct.solvers.parent_search import search_tables
from bayesstruct.steps.networks import network_of, network_problem_of
from bayesstruct.steps.recognition import NotRecognized, is_op

__all__ = ["network_in", "network_mode"]

_SEED = 20170
_CLIMBS = 2  # local searches for each variable


def network_in(model):
    """Return the recognised network of a model, or None."""
    graphs = [rv for rv in model.free_RVs if is_op(rv, DAGRV)]
    if len(graphs) != 1:
        return None
    try:
        return network_of(model, graphs[0])
    except NotRecognized:
        return None


def network_mode(model, part) -> dict:
    """Graph of the greatest posterior probability that was found, and what is expected given it.

    Returns
    -------
    dict
        Point of the model.
    """
    from bayesstruct.kernels.order_search import best_graph

    problem, family = network_problem_of(model, part)
    rng = np.random.default_rng(_SEED)
    graph, _, _ = best_graph(search_tables(problem), rng, climbs=_CLIMBS * problem.d)
    point = dict(model.initial_point())
    point[part.dag.name] = graph
    expect = _expect_regressions if part.gaussian else _expect_tables
    point.update(expect(family, graph))
    return point


def _expect_regressions(family, graph):
    """Means of intercepts, coefficients and noise variances given the graph."""
    moments, group = family.moments
    prior, d = family.prior, len(graph)
    intercept, variance, weight = np.zeros(d), np.zeros(d), np.zeros((d, d))
    for child in range(d):
        products, parents = moments[group[child]], np.flatnonzero(graph[:, child])
        at = np.append(0, 1 + parents)
        shrinkage = np.append(prior.alpha_mu, np.full(len(parents), prior.scale))
        right = products[at, child + 1]
        mean = np.linalg.solve(products[np.ix_(at, at)] + np.diag(shrinkage), right)
        left = prior.scale + products[child + 1, child + 1] - right @ mean
        freedom = prior.alpha_w - d + len(at) + products[0, 0]
        intercept[child], weight[child, parents] = mean[0], mean[1:]
        variance[child] = left / max(freedom - 2.0, 1.0)
    source, target = family.arcs
    names = family.names
    return {
        names[ArcWeightsRV]: weight[target, source],
        names[InterceptsRV]: intercept,
        names[NoiseVariancesRV]: variance,
    }


def _expect_tables(family, graph):
    """Means of the tables given the graph."""
    rows, kept = family.rows
    step, out = strides(graph, family.states), np.zeros((len(graph), family.cells))
    for child, k in enumerate(family.states):
        count = int(np.prod(np.where(graph[:, child] != 0, family.states, 1)))
        cell = (step[:, child] @ rows) * k + rows[child]
        size = count * k
        counts = np.bincount(cell[kept[child]], minlength=size) + family.sample_size / size
        counts = counts.reshape(count, k)
        out[child, :size] = (counts / counts.sum(axis=1, keepdims=True)).ravel()
    return {family.name: out}
