"""Updates of a G-Wishart matrix and its random graph, for the step of precision matrices."""

import numpy as np

from bayesstruct.precision.recognition.values import GWishartValues
from bayesstruct.precision.steps.gibbs import UPDATES, PartGibbs

__all__ = ["GraphGibbs"]

#: Rows of Cholesky factors that an exact auxiliary draw may take; a draw for a sparse graph takes some fifty.
_TRIES = 20_000
#: Sweeps over matrix and graph in one call: edges that exclude each other take turns slowly.
_SWEEPS = 3
_SINGULAR = "the precision matrix is not positive definite any more, by rounding: are some columns nearly linear functions of others?"


class GraphGibbs(PartGibbs):
    """Updates of means, missing values, a random graph and its G-Wishart matrix.

    Three times in a call the matrix is drawn given the graph, node by node, and the graph then moved by
    :func:`bayesstruct.precision.kernels.g_wishart_graph.graph_sweep`. Both leave the posterior invariant as long as the auxiliary draws are exact: where one takes more than 20,000
    rows (random graphs of fifty nodes with four neighbours each or more), :func:`bayesstruct.precision.kernels.rough_draws.rough_pair`
    stands in for it.
    """

    def prepare(self) -> None:
        """Make the work space."""
        p = self.values.p
        if {"edge", "precision"} & self.drawn == {"edge"}:
            raise ValueError(
                "the graph of a G-Wishart matrix is drawn with the matrix, by one step"
            )
        self.common, self.whole = np.zeros((p, p), np.int64), np.zeros((8, p), np.int64)
        self.codes, self.filled = np.zeros((p, p), np.int8), np.zeros((p, p), np.int8)
        self.work, self.rough = np.zeros((p + 3, p)), np.zeros((4, p + 3, p))

    def update(self, rng, point: dict) -> int:
        """Draw every variable of the part once, in place in the point; return the number of edges."""
        part, names = self.values, self.values.names
        part.load(point)
        precision = np.array(point[names["precision"]], float)
        for table, name in zip(part.tables, part.missing, strict=True):
            if name is not None:
                table.fill(point[name])
        if "mean" in self.drawn:
            point[names["mean"]] = self._draw_mean(rng, precision, point)
        means = part.means(point)
        self._draw_missing(rng, precision, means, point)
        values = part.prior(point)
        if "precision" in self.drawn:
            self._draw_matrix(rng, precision, *part.scatter(means), values)
            point[names["precision"]] = precision
        edges = values.adjacency[np.triu_indices(part.p, 1)].astype("int64")
        if "edge" in self.drawn:
            point[names["edge"]] = edges
        if "share" in self.drawn and values.shapes is not None:
            point[names["share"]] = self._draw_share(rng, values, values.shapes)
        return int(edges.sum())

    def _draw_matrix(self, rng, precision, scatter, n, values: GWishartValues) -> None:
        """Move the graph if it is random, and draw the matrix; both in place."""
        from bayesstruct.precision.kernels.g_wishart_graph import count_common, graph_sweep
        from bayesstruct.precision.kernels.g_wishart_matrix import matrix_sweep

        b, posterior = values.degrees_of_freedom, values.scale + scatter
        covariance = np.linalg.inv(precision)
        covariance = 0.5 * (covariance + covariance.T)
        given = (values.adjacency, posterior, b + n)
        state = (precision, covariance, values.adjacency, self.common)
        space = (self.whole, self.codes, self.filled, self.work, self.rough)
        graph = "edge" in self.drawn
        if graph:
            odds = _prior_odds(values)
            count_common(values.adjacency, self.common)
        for _ in range(_SWEEPS if graph else 1):
            # The matrix first: a chain may start far from where its table is.
            if not matrix_sweep(rng, precision, covariance, *given, self.whole[0], self.work):
                raise ValueError(_SINGULAR)
            if graph:
                graph_sweep(rng, *state, posterior, odds, b, _TRIES, *space)

    def _draw_share(self, rng, values: GWishartValues, shapes: tuple[float, float]) -> np.ndarray:
        """Draw the log odds of the common edge probability given the graph."""
        from bayesstruct.precision.kernels.prior import draw_share

        drawn = draw_share(rng, np.tril(values.adjacency), values.nominal, *shapes)
        return np.asarray(np.log(drawn) - np.log1p(-drawn))


def _prior_odds(values: GWishartValues) -> np.ndarray:
    """Prior log odds of each edge, plus what a diagonal scale adds to the constant of the graph without it."""
    from bayesstruct.precision.kernels.odds import log_odds_matrix

    half = 0.5 * np.log(np.diag(values.scale))
    return log_odds_matrix(values.probability) + half + half[:, None]


UPDATES[GWishartValues] = GraphGibbs
