"""Parameters of a recognised network given its graph: draws, and means."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.priors.discrete_network import expected_tables, table_counts
from bayesstruct.networks.priors.gaussian_network import (
    ArcWeightsRV,
    InterceptsRV,
    NoiseVariancesRV,
    arc_index,
)

if TYPE_CHECKING:
    from bayesstruct.networks.kernels.scores.base import Score
    from bayesstruct.networks.recognition.network import Network

__all__ = ["Regressions", "parameters_of", "problem_of"]


class Regressions:
    """Parameters of a Gaussian network.

    Parameters
    ----------
    network : Network
    """

    def __init__(self, network):
        d, self.prior = network.table.x.shape[1], network.table.prior
        self.names = {kind: rv.name for kind, rv in network.parameters.items()}
        self.arcs = arc_index(d)
        self.intercept, self.weight, self.variance = np.empty(d), np.empty((d, d)), np.empty(d)

    def draw(self, rng, graph, moments, point):
        """Draw the parameters given the graph and the sums over the rows, into the point."""
        from bayesstruct.networks.kernels.parameters import draw_regressions

        out = self.intercept, self.weight, self.variance
        draw_regressions(rng, graph, *moments, self.prior, *out)
        point.update(self._named(*out))

    def expected(self, graph, moments):
        """Return the means of the parameters given the graph and the sums over the rows, by name."""
        from bayesstruct.networks.kernels.parameters import expected_regressions

        return self._named(*expected_regressions(graph, *moments, self.prior))

    def _named(self, intercept, weight, variance):
        source, target = self.arcs
        return {
            self.names[ArcWeightsRV]: weight[target, source],
            self.names[InterceptsRV]: intercept.copy(),
            self.names[NoiseVariancesRV]: variance.copy(),
        }


class _Gaussian:
    """Score and parameters of a Gaussian network."""

    def __init__(self, network):
        self.score, self.moments = network.table.score_and_moments()
        self.regressions = Regressions(network)

    def draw(self, rng, graph, point):
        """Draw the parameters given the graph, into the point."""
        self.regressions.draw(rng, graph, self.moments, point)

    def expected(self, graph):
        """Return the means of the parameters given the graph, by name."""
        return self.regressions.expected(graph, self.moments)


class _Discrete:
    """Score and parameters of a discrete network."""

    def __init__(self, network):
        self.table = network.table
        self.score = self.table.score(self.table.x)
        self.columns = self.table.columns(self.table.x)

    def draw(self, rng, graph, point):
        """Draw the probability tables given the graph, into the point."""
        self.table.draw_tables(rng, graph, self.columns, point)

    def expected(self, graph):
        """Return the means of the probability tables given the graph, by name."""
        table = self.table
        counts = table_counts(graph, *self.columns, table.states, table.weight, constant=table.even)
        return {table.name: expected_tables((c for _, c in counts), table.cells)}


class _Fitted:
    """Score of a network whose parameters follow from its graph."""

    def __init__(self, network):
        self.score = network.fit.score

    def draw(self, rng, graph, point):
        """Leave the point as it is."""

    def expected(self, graph):
        """Return no values."""
        return {}


def parameters_of(network: "Network"):
    """Parameters of a recognised network whose table is complete.

    Parameters
    ----------
    network : Network

    Returns
    -------
    object
        With the local ``score``, ``draw(rng, graph, point)`` and ``expected(graph)``.
    """
    if network.fit is not None:
        return _Fitted(network)
    return (_Gaussian if network.gaussian else _Discrete)(network)


def problem_of(network: "Network", score: "Score") -> NetworkProblem:
    """Names, local scores and prior of a recognised network."""
    op = network.dag.owner.op
    return NetworkProblem(tuple(map(str, op.names)), score, op.prior, op.order)
