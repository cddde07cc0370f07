"""Base class of penalties: the interface that solvers, Ops and priors use."""

import copy
import math

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.data.arguments import numbers, whole_number
from bayesstruct.sparse.penalties.layout import check_rate

__all__ = ["Penalty"]

# Entries this near to the largest of their group, relatively, share a maximum norm.
TIED = 1e-12


class Penalty(ABC):
    r"""A penalty :math:`\Omega(w)`, convex and positively homogeneous, and so a log prior.

    The rate multiplies the *summed* loss, the negative log-likelihood: then
    :math:`p(w) \propto e^{-\Omega(w)}` is the prior whose mode the penalised estimate is. The
    coefficients are one float64 vector; matrices are flattened in C order. Objects are immutable.

    Attributes
    ----------
    rate : float
        Not negative; 0 is no penalty.
    size : int or None
        Number of coefficients, None if any number is allowed.
    """

    rate: float
    size: int | None

    def __repr__(self):
        parts = [f"{self.rate:g}"]
        for name in ("group_rate", "norm", "size"):
            if getattr(self, name, None) is not None:
                parts.append(f"{name}={getattr(self, name)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def value(self, w: ArrayLike) -> float:
        r"""Return :math:`\Omega(w)`."""
        return float(self._value(self._vector("w", w)))

    def prox(self, v: ArrayLike, step: float = 1.0) -> np.ndarray:
        r"""Return :math:`\arg\min_w \tfrac12 \|w - v\|^2 + \text{step} \cdot \Omega(w)`.

        Parameters
        ----------
        v : (..., size) array_like
            Any number of leading dimensions, each vector mapped on its own.
        step : float
            Not negative.

        Returns
        -------
        (..., size) numpy.ndarray
            Coordinates that the penalty removes are exactly zero.
        """
        step = check_rate("step", step)
        v = numbers("v", v)
        if v.ndim == 0 or (self.size is not None and v.shape[-1] != self.size):
            raise ValueError(f"v has shape {v.shape}; its last dimension must be {self.size}.")
        rows = np.ascontiguousarray(v.reshape(math.prod(v.shape[:-1]), v.shape[-1]))
        out = np.empty_like(rows)
        self._prox(rows, step, out)
        return out.reshape(v.shape)

    def dual_norm(self, g: ArrayLike, *, ignore_unpenalised: bool = False) -> float:
        r"""Return the smallest :math:`t \ge 0` with :math:`g \in t\, \partial \Omega(0)`.

        Parameters
        ----------
        g : (size,) array_like
            For example a gradient.
        ignore_unpenalised : bool
            Leave coordinates without penalty aside; otherwise the result is infinite if one of
            them is not zero.
        """
        gradient = self._vector("g", g)
        free = ~self.penalised(len(gradient))
        if not ignore_unpenalised and (gradient[free] != 0).any():
            return np.inf
        return 0.0 if free.all() else float(self._dual(np.where(free, 0.0, gradient)))

    def rate_max(self, g: ArrayLike) -> float:
        """Return the smallest rate at which zero is optimal.

        Parameters
        ----------
        g : (size,) array_like
            Gradient of the loss where the penalised coefficients are zero and the others optimal;
            entries of coordinates without penalty are ignored.
        """
        if self.rate == 0:
            return self.with_rate(1.0).rate_max(g)
        return self.rate * self.dual_norm(-self._vector("g", g), ignore_unpenalised=True)

    def pseudo_gradient(self, w: ArrayLike, g: ArrayLike) -> np.ndarray:
        r"""Return the element of :math:`g + \partial \Omega(w)` of the least Euclidean norm.

        Its negative is the direction of steepest descent of the penalised objective, and it is zero
        where that is minimal. Entries of a maximum norm are counted as equal when they agree to
        1e-12.

        Parameters
        ----------
        w, g : (size,) array_like
            Coefficients and gradient of the loss.
        """
        return -self._nearest(self._vector("w", w), -self._vector("g", g))

    def residual(self, w: ArrayLike, g: ArrayLike) -> float:
        r"""Return how far :math:`-g` is from :math:`\partial \Omega(w)`; 0 at the optimum.

        The largest dual norm, over the groups, of `pseudo_gradient`: in units of the gradient, and
        to be compared with the rate.
        """
        x, gradient = self._vector("w", w), self._vector("g", g)
        if not np.isfinite(self._value(x)):
            return np.inf
        return float(self._size_of_gradient(-self._nearest(x, -gradient)))

    def directional_derivative(self, w: ArrayLike, d: ArrayLike) -> float:
        r"""Return :math:`\lim_{t \downarrow 0} (\Omega(w + t d) - \Omega(w)) / t`."""
        return float(self._slope(self._vector("w", w), self._vector("d", d)))

    def with_rate(self, rate: float) -> Self:
        """Return the same penalty at another rate."""
        clone = copy.copy(self)
        object.__setattr__(clone, "rate", check_rate("rate", rate))
        return clone

    def scaled(self, factor: float) -> Self:
        """Return the penalty times a factor."""
        return self.with_rate(self.rate * check_rate("factor", factor))

    def log_normalizer(self, size: int | None = None) -> float:
        r"""Return :math:`\log \int e^{-\Omega(w)} dw`, so that ``logp = -value - log_normalizer``.

        Parameters
        ----------
        size : int, optional
            Number of coefficients, where the penalty does not fix it.

        Raises
        ------
        ValueError
            If a coordinate has no penalty: the prior is improper.
        """
        size = self.size if size is None else whole_number("size", size, 0)
        if size is None:
            raise ValueError("size is needed: this penalty takes any number of coefficients.")
        if self.size not in {None, size}:
            raise ValueError(f"size is {size}, but the penalty has {self.size} coefficients.")
        free = np.flatnonzero(~self.penalised(size))
        if len(free):
            raise ValueError(
                f"Improper prior: {len(free)} of {size} coefficients have no penalty (the first is "
                f"{free[0]}). Give them a prior of their own."
            )
        return float(self._log_normalizer(size))

    @abstractmethod
    def penalised(self, size: int | None = None) -> np.ndarray:
        """Return a mask of the coordinates that the penalty touches: none at a rate of 0."""

    @abstractmethod
    def blocks(self, size: int | None = None) -> np.ndarray:
        """Return a label for each coordinate: those that share one should be left out together."""

    @abstractmethod
    def restricted(self, index: np.ndarray) -> "Penalty":
        """Return the penalty of some coordinates, in rising order, where all others are zero.

        Parameters
        ----------
        index : (m,) numpy.ndarray of int
            Whole `blocks`.
        """

    @abstractmethod
    def support(self, w: ArrayLike) -> np.ndarray:
        """Return a mask of the coordinates that may move when the data move a little.

        False for exact zeros that the penalty makes, true for coordinates without penalty.
        """

    @abstractmethod
    def _value(self, w): ...

    @abstractmethod
    def _prox(self, v, step, out): ...

    @abstractmethod
    def _dual(self, g): ...

    @abstractmethod
    def _nearest(self, w, y):
        """Return y minus its projection on the subdifferential at w."""

    @abstractmethod
    def _size_of_gradient(self, e): ...

    @abstractmethod
    def _slope(self, w, d): ...

    @abstractmethod
    def _log_normalizer(self, size): ...

    def _vector(self, name, x):
        x = numbers(name, x)
        if x.ndim != 1 or (self.size is not None and len(x) != self.size):
            expected = "a vector" if self.size is None else f"a vector of {self.size}"
            raise ValueError(f"{name} must be {expected}, got shape {x.shape}.")
        return x
