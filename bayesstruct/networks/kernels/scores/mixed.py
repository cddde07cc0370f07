r"""Local score of networks with columns of several kinds: evidence by the Laplace approximation.

.. math::

    s_i(\pi) = \log p(x_i \mid \hat\theta, x_\pi) + \log p(\hat\theta) + \frac k2 \log 2 \pi - \frac12 \log |H|

at the mode :math:`\hat\theta` of the k parameters of the family, with minus the second derivatives H there; for columns with
normal noise the evidence is exact (Tierney and Kadane 1986).

References
----------
Schmidt, M. (2010). *Graphical Model Structure Learning with L1-Regularization*. PhD thesis, University of British Columbia;
section 4.8.1. -- Tierney, L. and Kadane, J. B. (1986). Accurate approximations for posterior moments and marginal densities.
*JASA* 81, 82-86.
"""

import math

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.kernels.mixed_layout import NUMBERS, MixedLayout
from bayesstruct.networks.kernels.scores.base import Score, fill_zeros, finite_numbers, positive

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike

__all__ = ["COEFFICIENT_SCALE", "FamilyFit", "MixedScore"]

#: Default standard deviation of the prior of coefficients: that of the BGe score.
COEFFICIENT_SCALE = math.sqrt(2.0)
_DEGREES = 10.0  # of the t distribution of proposals


class FamilyFit:
    """Parameters of one column given its parents: their mode, proposals and densities.

    Parameters are free numbers, see :mod:`bayesstruct.networks.kernels.scores.mixed_families`; with normal noise, coefficients over
    the noise scale and the logarithm of this scale.

    Parameters
    ----------
    score : MixedScore
    child : int
    parents : iterable of int
    near : FamilyFit, optional
        Of the same column with similar parents: the climb begins at its mode.

    Attributes
    ----------
    score : float
        Approximate log evidence; exact for normal noise.
    mode : (k,) ndarray of float
    """

    def __init__(
        self,
        score: "MixedScore",
        child: int,
        parents: Iterable[int],
        near: "FamilyFit | None" = None,
    ):
        from bayesstruct.networks.kernels.scores.mixed_subsets import family_mode

        self.layout, self.child = score.layout, child
        self.columns = np.flatnonzero(np.isin(score.layout.owner, list(parents)))
        self._rows = score.rows_of(child)
        self._used = self.layout.coefficients[child][:, np.append(0, 1 + self.columns)]
        begin = np.empty(0) if near is None else self._start(near)
        constants = score.owner, score.kinds, self.columns, score.scale
        fit = family_mode(*self._rows, *constants, begin)
        self.score, self.mode, self._factor, self._precision, self._log_det = fit[:5]
        self._shape, self._rate = fit[5:]
        if not len(self._rows[2]):  # set in every row
            self.score = 0.0
        self.exact = score.layout.families[child] == "normal"
        k = len(self.mode)
        half = 0.5 * (_DEGREES + k)
        self._constant = math.lgamma(half) - math.lgamma(0.5 * _DEGREES)
        self._constant -= 0.5 * k * math.log(_DEGREES * math.pi)
        self._constant += float(np.log(np.diag(self._factor)).sum())
        self._spread = np.linalg.inv(self._factor).T

    def _start(self, near):
        """Mode of a similar family, with zeros for the coefficients that it does not have."""
        used = near._used[near._used >= 0]
        known = np.zeros(self.layout.size)
        known[used] = near.mode[: len(used)]
        return np.append(known[self._used[self._used >= 0]], near.mode[len(used) :])

    def draw(self, rng: "Generator") -> np.ndarray:
        """Draw parameters: exactly for normal noise, else from a t distribution about the mode."""
        z = self._spread @ rng.standard_normal(len(self.mode))
        if self.exact:
            log_s = -0.5 * math.log(rng.gamma(self._shape) / self._rate)
            return np.append(self.mode * math.exp(-log_s) + z, log_s)
        return self.mode + z * math.sqrt(_DEGREES / rng.chisquare(_DEGREES))

    def move(self, rng: "Generator", theta: np.ndarray) -> np.ndarray:
        """Propose parameters near others, symmetrically."""
        z = self._spread @ rng.standard_normal(len(theta))
        return theta + z * (2.4 / math.sqrt(len(theta)))

    def log_target(self, theta: np.ndarray) -> float:
        """Log likelihood plus log prior of parameters; not of normal noise."""
        from bayesstruct.networks.kernels.scores.mixed_subsets import family_density

        code, states, y, x = self._rows
        return family_density(
            code, states, y, x, self.columns, self._precision, self._log_det, theta
        )

    def log_weight(self, theta: np.ndarray) -> float:
        """Log of the target density over the density of `draw` times the exponential of the score; 0 for normal noise."""
        if self.exact:
            return 0.0
        z = self._factor.T @ (theta - self.mode)
        k = len(theta)
        log_q = self._constant - 0.5 * (_DEGREES + k) * math.log1p(float(z @ z) / _DEGREES)
        return self.log_target(theta) - log_q - self.score

    def natural(self, theta: np.ndarray, out: np.ndarray) -> None:
        """Write free parameters into the vector of all parameters of the network, see `MixedLayout`."""
        layout, i = self.layout, self.child
        places, extras = layout.coefficients[i], layout.extras[i]
        used = self._used[self._used >= 0]
        family, rest = layout.families[i], theta[len(used) :]
        out[places[places >= 0]] = 0.0
        out[used] = theta[: len(used)]
        if family in NUMBERS:
            scale = math.exp(rest[0])
            out[used] *= scale
            out[extras[0]] = scale
            if family == "student":
                out[extras[1]] = 2.0 + math.exp(rest[1])
        elif family == "ordinal":
            out[extras] = np.cumsum(np.append(rest[0], np.exp(rest[1:])))

    def write_best(self, out: np.ndarray) -> None:
        """Write the mode, or with normal noise the means of coefficients and variance, into the vector of all parameters."""
        theta = self.mode
        if self.exact:
            log_s = 0.5 * math.log(self._rate / (self._shape - 1.0))
            theta = np.append(theta * math.exp(-log_s), log_s)
        self.natural(theta, out)

    def free(self, vector: np.ndarray) -> np.ndarray:
        """Free parameters from the vector of all parameters of the network: the inverse of `natural`."""
        layout, i = self.layout, self.child
        theta, rest = vector[self._used[self._used >= 0]], vector[layout.extras[i]]
        family = layout.families[i]
        if family in NUMBERS:
            theta = theta / rest[0]
            rest = np.log(rest - np.array([0.0, 2.0])[: len(rest)])
        elif family == "ordinal":
            rest = np.append(rest[0], np.log(np.diff(rest)))
        return np.append(theta, rest)


class MixedScore(Score):
    """Approximate log evidence of columns of several kinds.

    Parameters
    ----------
    table : (n, d) array_like of float
        Standardised numbers, and states 0, 1, ...
    families : sequence of str
        Of :data:`bayesstruct.networks.kernels.mixed_layout.FAMILIES`.
    states : sequence of int
        Numbers of states, 0 for numbers.
    scale : float
        Standard deviation of the prior of coefficients.
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside.

    Raises
    ------
    ValueError
        If a value is not finite.

    Notes
    -----
    Equivalent graphs do not have the same score in general: a regression of a column of numbers on one of states and one of
    the latter on the former are different models. With columns of normal noise alone, and the default scale, the score is the BGe score.
    """

    def __init__(
        self,
        table: "ArrayLike",
        families: Sequence[str],
        states: Sequence[int],
        *,
        scale: float = COEFFICIENT_SCALE,
        interventions: "ArrayLike | None" = None,
    ):
        #: Candidate parents of a variable at most, in tables of parent sets: each set is a climb to a mode.
        self.most_candidates = 8
        table = finite_numbers(table)
        super().__init__(table.shape, interventions)
        self.layout, self.scale = MixedLayout(families, states), positive("scale", scale)
        self.owner = self.layout.owner
        numbers = [
            0 if own in NUMBERS or own == "ordinal" else k
            for own, k in zip(self.layout.families, self.layout.states, strict=True)
        ]
        self.kinds = np.array(numbers, np.int64)
        self.first = np.searchsorted(self.owner, np.arange(self.d + 1))
        features = self.layout.all_features(table)
        self._y = [np.ascontiguousarray(table[rows].T) for rows in self._kept]
        self._x = [np.ascontiguousarray(features[:, rows]) for rows in self._kept]
        self._fits: dict[tuple, FamilyFit] = {}

    def rows_of(self, child: int) -> tuple[int, int, np.ndarray, np.ndarray]:
        """Code of the family, number of states, values (n,) and features (features, n) of a child where it was not set."""
        group = self._group[child]
        code, states = int(self.layout.codes[child]), self.layout.states[child]
        return code, states, self._y[group][child], self._x[group]

    def fit(self, child: int, parents: Iterable[int]) -> FamilyFit:
        """Parameters of a family, which are kept for the next call and do not depend on earlier ones."""
        key = child, *sorted(map(int, parents))
        if key not in self._fits:
            if len(self._fits) > _MOST_FITS:
                self._fits.clear()
            # Student noise may have several modes: its climbs begin at the same point always.
            alike = len(key) > 1 and self.layout.families[child] not in ("normal", "student")
            near = self.fit(child, key[1:-1]) if alike else None
            self._fits[key] = FamilyFit(self, child, key[1:], near)
        return self._fits[key]

    def _fill(self, child, candidates, fixed, most, out):
        from bayesstruct.networks.kernels.scores.mixed_subsets import mixed_subsets

        if not self.n_rows[child]:
            fill_zeros(len(fixed), most, out)
            return
        args = self.owner, self.kinds, self.first, candidates, fixed, most, self.scale
        mixed_subsets(*self.rows_of(child), *args, out)


_MOST_FITS = 20_000  # families whose modes are kept
