"""Best graph of a Bayesian network, and its parameters."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.modes import Mode, ModeSolver, register_mode
from bayesstruct.core.recognition import NotRecognized, is_op
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.priors.dag import DAGRV, OrderDAGRV
from bayesstruct.networks.recognition.mixed import mixed_network_of
from bayesstruct.networks.recognition.network import Network, network_of
from bayesstruct.networks.recognition.parameters import parameters_of, problem_of
from bayesstruct.networks.solvers.parent_search import best_network
from bayesstruct.sparse.modes import SpikeAndSlabRefusal

if TYPE_CHECKING:
    from pymc import Model

__all__ = [
    "MixedNetworkMode",
    "NetworkMode",
    "OrderPriorRefusal",
    "network_mode",
    "recognized_network",
]

_SEED = 20170
# Local searches for each variable; scores other than BGe and BDeu have more local optima.
_CLIMBS, _SCORED_CLIMBS = 2, 5


@register_mode(after=SpikeAndSlabRefusal)
class NetworkMode(ModeSolver):
    """Best graph of a Bayesian network.

    The graph of the greatest posterior probability that a search over orders with restarts finds
    (:func:`bayesstruct.solvers.optimal_dag` proves it for up to 25 variables), with the means of the
    parameters given that graph; under a BIC, the parameters of greatest likelihood.
    """

    def recognise(self, model):
        """Return the network, or None."""
        network = recognized_network(model)
        return network if network is not None and network.missing is None else None

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Search."""
        return Mode(network_mode(model, part))


@register_mode(after=(SpikeAndSlabRefusal, NetworkMode))
class OrderPriorRefusal(ModeSolver):
    """Refuses graphs whose prior counts topological orders: no search finds their mode."""

    def recognise(self, model):
        """Raise for the prior ``"order"``."""
        if graphs := [rv.name for rv in model.free_RVs if is_op(rv, OrderDAGRV)]:
            raise ValueError(
                f"the prior 'order' of {graphs[0]!r} counts the topological orders of a graph, which is no sum over "
                "parent sets, so that no search finds its mode: use the prior 'uniform', 'edge' or 'fair', or read "
                "the draws of pm.sample with bs.map_graph"
            )


def recognized_network(model: "Model") -> Network | None:
    """Return the network of a model with one graph, or None."""
    graphs = [rv for rv in model.free_RVs if is_op(rv, DAGRV)]
    if len(graphs) != 1:
        return None
    try:
        return network_of(model, graphs[0])
    except NotRecognized:
        return None


def network_mode(model: "Model", network: Network) -> dict[str, np.ndarray]:
    """Graph of the greatest posterior probability that was found, and the means of the parameters given it.

    Parameters
    ----------
    model : pymc.Model
    network : Network
        With a complete table.

    Returns
    -------
    dict
        Point of the model.
    """
    family, rng = parameters_of(network), np.random.default_rng(_SEED)
    problem = problem_of(network, family.score)
    climbs = _CLIMBS if network.conjugate else _SCORED_CLIMBS
    graph = best_network(problem, rng, climbs=climbs)
    return dict(model.initial_point()) | {network.dag.name: graph} | family.expected(graph)


@register_mode(after=(SpikeAndSlabRefusal, NetworkMode, OrderPriorRefusal))
class MixedNetworkMode(ModeSolver):
    """Best graph of a Bayesian network of columns of several kinds.

    The graph of the greatest approximate posterior probability that a search over orders finds, with the modes of the parameters of each
    column (their means for normal noise) given that graph.
    """

    def recognise(self, model):
        """Return the network, or None; raises where values are missing."""
        graphs = [rv for rv in model.free_RVs if is_op(rv, DAGRV)]
        if len(graphs) != 1:
            return None
        try:
            network = mixed_network_of(model, graphs[0])
        except NotRecognized:
            return None
        if network.missing is not None:
            raise ValueError(
                f"find_MAP needs a complete table of numbers and states, and values of {network.rows.name!r} are missing: sample "
                "them with pm.sample() and read the most probable graph with bs.map_graph, or drop these rows"
            )
        return network

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Search."""
        score, op = part.score(), part.dag.owner.op
        problem = NetworkProblem(tuple(map(str, op.names)), score, op.prior, op.order)
        rng = np.random.default_rng(_SEED)
        graph = best_network(problem, rng, climbs=_SCORED_CLIMBS)
        vector = np.zeros(score.layout.size)
        for child, parents in enumerate(graph.T):
            score.fit(child, np.flatnonzero(parents)).write_best(vector)
        point = {part.dag.name: graph, part.parameters.name: vector}
        return Mode(dict(model.initial_point()) | point)
