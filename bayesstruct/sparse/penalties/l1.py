"""The l1 norm."""

import math

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.data.arguments import truth
from bayesstruct.sparse.penalties.base import Penalty
from bayesstruct.sparse.penalties.layout import check_rate, check_weights

__all__ = ["L1"]


@dataclass(frozen=True, eq=False, repr=False)
class L1(Penalty):
    r"""The weighted l1 norm, :math:`\Omega(w) = \lambda \sum_i a_i |w_i|`.

    Parameters
    ----------
    rate : float
        :math:`\lambda`, the rate of the Laplace prior (its scale is 1 over it).
    weights : (p,) array_like, optional
        :math:`a_i`, 1 by default; 0 leaves a coordinate without penalty.
    nonnegative : bool
        Restrict the coefficients to be at least zero: an exponential prior. Then the value is
        infinite elsewhere.

    Examples
    --------
    >>> from bayesstruct.penalties import L1
    >>> L1(0.5).prox([2.0, -0.3, 1.0])
    array([1.5, 0. , 0.5])
    >>> L1(0.5, weights=[1, 0]).rate_max([-3.0, 7.0])
    3.0
    """

    rate: float
    _: KW_ONLY
    weights: Any = None
    nonnegative: bool = False
    size: Any = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "rate", check_rate("rate", self.rate))
        object.__setattr__(self, "nonnegative", truth("nonnegative", self.nonnegative))
        if self.weights is not None:
            weights = check_weights(self.weights, np.size(self.weights), "coordinates")
            object.__setattr__(self, "weights", weights)
        size = None if self.weights is None else len(self.weights)
        object.__setattr__(self, "size", size)

    def penalised(self, size: int | None = None) -> np.ndarray:
        """Return a mask of the coordinates of positive weight."""
        size = self.size if size is None else size
        return self._rates(size) > 0

    def blocks(self, size: int | None = None) -> np.ndarray:
        """Return a label of its own for each coordinate."""
        return np.arange(self.size if size is None else size)

    def restricted(self, index: np.ndarray) -> "L1":
        """Return the penalty of some coordinates."""
        return self if self.weights is None else replace(self, weights=self.weights[index])

    def support(self, w: ArrayLike) -> np.ndarray:
        """Return a mask of non-zero coordinates and of those without penalty."""
        x = self._vector("w", w)
        if self.rate == 0 and not self.nonnegative:
            return np.ones(len(x), dtype=bool)
        if self.nonnegative:
            return x != 0
        return (x != 0) | ~self.penalised(len(x))

    def rates(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rates of positive and of negative values; infinite ones forbid them."""
        up = self._rates(size)
        return up, np.full(size, np.inf) if self.nonnegative else up

    def _rates(self, size):
        return self.rate * (np.ones(size) if self.weights is None else self.weights)

    def _outside(self, w):
        return self.nonnegative and (w < 0).any()

    def _value(self, w):
        return np.inf if self._outside(w) else self._rates(len(w)) @ np.abs(w)

    def _prox(self, v, step, out):
        from bayesstruct.sparse.kernels import proximal

        shrink = (
            proximal.soft_threshold_nonnegative if self.nonnegative else proximal.soft_threshold
        )
        shrink(v, step * self._rates(v.shape[1]), out)

    def _dual(self, g):
        rates = self._rates(len(g))
        size = np.maximum(g, 0.0) if self.nonnegative else np.abs(g)
        return np.max(size[rates > 0] / rates[rates > 0], initial=0.0)

    def _nearest(self, w, y):
        rates = self._rates(len(w))
        low = np.full(len(w), -np.inf) if self.nonnegative else -rates
        zero = y - np.clip(y, low, rates)
        return np.where(w != 0, y - np.sign(w) * rates, zero)

    def _size_of_gradient(self, e):
        return np.abs(e).max(initial=0.0)

    def _slope(self, w, d):
        if self.nonnegative and (d[w == 0] < 0).any():
            return np.inf
        return self._rates(len(w)) @ np.where(w != 0, np.sign(w) * d, np.abs(d))

    def _log_normalizer(self, size):
        sides = 0.0 if self.nonnegative else math.log(2)
        return (sides - np.log(self._rates(size))).sum()
