"""Distribution of each value given the rest of its row in linear structural equations with any noise, by quadrature."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scipy.special import logsumexp

from bayesstruct.networks.reading.effects import flat_draws, weight_matrices
from bayesstruct.sem.kernels.settings import NOISES
from bayesstruct.sem.priors.records import SemNoise
from bayesstruct.sem.reading.noise import shape_draws

if TYPE_CHECKING:
    from numpy.random import Generator

    from bayesstruct.graphs.posteriors.arcs import DagPosterior

__all__ = ["Equations", "sem_conditionals"]

# Knots around the centre of each factor, in units of its scale; between knots are Gauss-Legendre points.
_STEPS = np.array([0.15, 0.4, 0.8, 1.3, 2.0, 3.0, 4.5, 7.0, 12.0, 25.0, 60.0])
_KNOTS = np.concatenate([-_STEPS[::-1], [0.0], _STEPS])
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(6)


@dataclass(frozen=True, eq=False)
class Equations:
    """Parameters of one draw.

    Attributes
    ----------
    noise : int
        Code of the noise.
    intercept, scales : (d,) ndarray of float
    coefficients : (d, d) ndarray of float
        Rows are children.
    shape : (d, k) ndarray of float
    """

    noise: int
    intercept: np.ndarray
    coefficients: np.ndarray
    scales: np.ndarray
    shape: np.ndarray

    def given_others(
        self, z: np.ndarray, free: np.ndarray, rng: "Generator"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Log density of each value of standardised rows given the rest of its row, and draws.

        Parameters
        ----------
        z : (n, d) ndarray of float
        free : (n, d) ndarray of bool
            Which values were not set: a child that was set says nothing of its parents.
        rng : numpy.random.Generator

        Returns
        -------
        log_density, drawn : (n, d) ndarray of float
        """
        residuals = z - self.intercept - z @ self.coefficients.T
        found = [self._column(j, z[:, j], residuals, free, rng) for j in range(z.shape[1])]
        log_density, drawn = (np.stack(own, axis=1) for own in zip(*found, strict=True))
        return log_density, drawn

    def _column(self, j, own, residuals, free, rng):
        """Normalise the density of one column as a function of its value."""
        children = np.flatnonzero(self.coefficients[:, j])
        factors = np.array([j, *children])
        slope = np.array([1.0, *-self.coefficients[children, j]])  # of residuals in the value
        counts = free[:, factors]
        counts[:, 0] = True  # of a value that was set, left out later, as if it had not been
        move, logs = self._grid(factors, slope, residuals, counts)
        log_total = logsumexp(logs, axis=1)
        log_density = self._log_factors(factors, slope, residuals, counts, np.zeros((len(own), 1)))
        mass = np.cumsum(np.exp(logs - log_total[:, None]), axis=1)
        return log_density[:, 0] - log_total, own + _inverse(move, mass, rng.random(len(own)))

    def _grid(self, factors, slope, residuals, counts):
        """Edges of cells of changes of the value, (n, m + 1), and log masses between them, (n, m)."""
        centre = -residuals[:, factors] / slope  # where the residual of a factor is zero
        # A factor that does not count has its knots where the first one has.
        centre = np.where(counts, centre, centre[:, :1])
        width = self.scales[factors] / np.abs(slope)
        knots = np.sort((centre[..., None] + width[:, None] * _KNOTS).reshape(len(centre), -1))
        half = 0.5 * np.diff(knots)[..., None]
        points = (knots[:, :-1, None] + half * (1.0 + _POINTS)).reshape(len(centre), -1)
        lengths = (half * _WEIGHTS).reshape(len(centre), -1)
        with np.errstate(divide="ignore"):  # knots may coincide
            logs = self._log_factors(factors, slope, residuals, counts, points) + np.log(lengths)
        edges = knots[:, :1] + np.cumsum(lengths, axis=1)
        return np.concatenate([knots[:, :1], edges], axis=1), logs

    def _log_factors(self, factors, slope, residuals, counts, move):
        """Log density of a row, but for terms without the value, after changes of the value; (n, m)."""
        from bayesstruct.sem.kernels.missing_cells import log_noise

        total = np.zeros(move.shape)
        for k, i in enumerate(factors):
            e = (residuals[:, i, None] + slope[k] * move) / self.scales[i]
            terms = log_noise(self.noise, e, self.shape[i]) - np.log(self.scales[i])
            total += np.where(counts[:, k, None], terms, 0.0)
        return total


def _inverse(edges, mass, u):
    """Points of cells with these cumulated masses at which the mass is u, (n,)."""
    n, rows = len(u), np.arange(len(u))
    u = u * mass[:, -1]
    cell = np.minimum((mass < u[:, None]).sum(axis=1), mass.shape[1] - 1)
    before = np.where(cell > 0, mass[rows, np.maximum(cell - 1, 0)], np.zeros(n))
    inside = mass[rows, cell] - before
    share = np.divide(u - before, inside, out=np.full(n, 0.5), where=inside > 0)
    return edges[rows, cell] + share * (edges[rows, cell + 1] - edges[rows, cell])


def sem_conditionals(posterior: "DagPosterior") -> Callable[[int, int], Equations]:
    """Return the equations of a draw, by the positions of its chain and of the draw."""
    recorded = SemNoise.read(posterior.constants)
    noise, shape = NOISES.index(recorded.law.name), shape_draws(posterior)
    mean, variance = recorded.law.moments(shape)
    scales = np.sqrt(flat_draws(posterior, "noise_variance") / variance)
    intercept = flat_draws(posterior, "intercept") - scales * mean
    matrix, each = weight_matrices(posterior), posterior.draws.sizes["draw"]

    def of_draw(chain, draw):
        k = chain * each + draw
        return Equations(noise, intercept[k], matrix[k], scales[k], shape[k])

    return of_draw
