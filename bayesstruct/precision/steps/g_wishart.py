"""Updates of a G-Wishart matrix and its random graph, for the step of precision matrices."""

import numpy as np

from bayesstruct.precision.priors.g_wishart import upper_indices
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
    :func:`bayesstruct.precision.kernels.g_wishart.graph_sweep.graph_sweep`. Both leave the posterior invariant as long as the auxiliary draws are exact: where one takes more than 20,000
    rows (random graphs of fifty nodes with four neighbours each or more), :func:`bayesstruct.precision.kernels.g_wishart.rough_draws.rough_pair`
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

    def read_matrix(self, point: dict) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix at the point, and its inverse."""
        precision = np.array(point[self.values.names["precision"]], float)
        covariance = np.linalg.inv(precision)
        return precision, 0.5 * (covariance + covariance.T)

    def update_matrix(self, rng, precision, covariance, means: list, values, point: dict) -> int:
        """Draw the matrix, its graph and the common edge probability; return the number of edges."""
        names = self.values.names
        if "precision" in self.drawn:
            self.draw_units(rng, precision, covariance, means, values, point)
            scatter, n = self.values.scatter(means)
            self._draw_matrix(rng, precision, covariance, scatter, n, values)
            point[names["precision"]] = precision
        edges = values.adjacency[upper_indices(self.values.p)].astype("int64")
        if "edge" in self.drawn:
            point[names["edge"]] = edges
        if "share" in self.drawn and values.shapes is not None:
            point[names["share"]] = self._draw_share(rng, values, values.shapes)
        return int(edges.sum())

    def unit_prior(self, rng, precision: np.ndarray, values: GWishartValues) -> tuple | None:
        """Shapes, variances and rates for `rescale_columns` if the scale is diagonal."""
        diagonal = np.diag(values.scale)
        if (values.scale != np.diag(diagonal)).any():
            return None
        shapes = 0.5 * (values.degrees_of_freedom + values.adjacency.sum(axis=1))
        return shapes, np.full(precision.shape, np.inf), 0.5 * diagonal

    def _draw_matrix(self, rng, precision, covariance, scatter, n, values: GWishartValues) -> None:
        """Move the graph if it is random, and draw the matrix; both in place."""
        from bayesstruct.precision.kernels.g_wishart.joint_sweeps import joint_sweeps
        from bayesstruct.precision.kernels.g_wishart.matrix_sweep import matrix_sweep

        b, posterior = values.degrees_of_freedom, values.scale + scatter
        if "edge" in self.drawn:
            state = (precision, covariance, values.adjacency, self.common)
            space = (self.whole, self.codes, self.filled, self.work, self.rough)
            given = (posterior, _prior_odds(values), b, n, _TRIES)
            done = joint_sweeps(rng, _SWEEPS, *state, *given, *space)
        else:
            known = (values.adjacency, posterior, b + n, self.whole[0], self.work)
            done = matrix_sweep(rng, precision, covariance, *known)
        if not done:
            raise ValueError(_SINGULAR)

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
