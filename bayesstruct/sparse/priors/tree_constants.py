r"""Constants :math:`C = \int e^{-\sum_g a_g \|w_g\|} dw` of the priors of nested groups.

Both norms are mixtures that make the parts of a group independent given one number, handed down from
the groups around it. The integral over a group and everything inside it is then a function of one
variable, which is tabulated on a logarithmic grid from the leaves to the root.
"""

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bayesstruct.sparse.penalties.structure import Structure

__all__ = ["log_constant"]

_LOG_2, _LOG_2_PI = np.log(2.0), np.log(2.0 * np.pi)
_LOW = -28.0  # in log u: the rest is relatively less than 1e-12


@lru_cache(maxsize=256)
def log_constant(structure: "Structure") -> float:
    """Log of the integral of exp(-penalty) at rate 1, to about 1e-8 times the number of coefficients.

    Parameters
    ----------
    structure : Structure
        Of a tree.
    """
    weights, _, start, parent = structure.arrays
    own = np.diff(start)
    table = _Maximum if structure.maximum else _Euclidean
    rules = table(weights, int(own.sum()))
    children: list[list[int]] = [[] for _ in weights]
    functions: list[Any] = []
    number: dict[tuple, int] = {}
    total = 0.0
    for g, (a, up) in enumerate(zip(weights.tolist(), parent.tolist(), strict=True)):
        key = (a, int(own[g]), tuple(sorted(children[g])))
        if key not in number:  # equal subtrees are frequent
            number[key] = len(functions)
            inside = [(functions[c], times) for c, times in Counter(key[2]).items()]
            functions.append(rules.group(a, int(own[g]), inside))
        if up >= 0:
            children[up].append(number[key])
        else:
            total += rules.whole(functions[number[key]])
    return float(total)


class _Euclidean:
    r"""Squares: :math:`F_g(\tau) = \int e^{-\tau \|w_g\|^2 / 2 - \ldots} dw_g`.

    With :math:`e^{-r} = \int \tfrac{2}{\sqrt\pi} e^{-u^2 - r^2 / 4 u^2} du` it is the integral over
    u of :math:`(2 \pi / \kappa)^{d / 2} \prod_c F_c(\kappa)` at :math:`\kappa = \tau + a^2 / 2 u^2`.
    """

    def __init__(self, weights, size):
        scale = 2.0 * np.log(weights)
        low = scale.min() - np.log(size + 1.0) - 40.0
        self.x = np.arange(low, scale.max() + 60.0, 0.1)

    def group(self, a, own, inside):
        """Log F on the grid, its spline, and the number of coefficients."""
        from scipy.interpolate import CubicSpline
        from scipy.special import logsumexp

        d = own + sum(times * size for (_, size), times in inside)
        high = 0.5 * np.log(0.5 * (d + 1.0) + 12.0 * np.sqrt(d + 9.0))
        step = min(1.0 / 7.0, 0.8 / np.sqrt(2.0 * d + 2.0))
        y = np.arange(_LOW, high + step, step)
        log_kappa = np.logaddexp(self.x[:, None], 2.0 * (np.log(a) - y) - _LOG_2)
        total = y - np.exp(2.0 * y) + 0.5 * own * (_LOG_2_PI - log_kappa)
        for (spline, size), times in inside:
            total += times * self._at(spline, size, log_kappa)
        value = logsumexp(total, axis=1) + np.log(2.0 * step / np.sqrt(np.pi))
        return CubicSpline(self.x, value), d

    def _at(self, spline, size, x):
        """Beyond the grid F is a power."""
        return spline(np.minimum(x, self.x[-1])) - 0.5 * size * np.maximum(x - self.x[-1], 0.0)

    def whole(self, part):
        """Log of F without anything from outside."""
        return part[0](self.x[0])


class _Maximum:
    r"""Bounds: :math:`F_g(T) = \int_{|w_g| \le T} e^{-\ldots} dw_g`.

    With :math:`e^{-a m} = \int_m^\infty a e^{-a t} dt` it is :math:`\int_0^T a e^{-a t} G(t) dt +
    e^{-a T} G(T)` for :math:`G(t) = (2 t)^d \prod_c F_c(t)`.
    """

    def __init__(self, weights, size):
        step = min(0.05, 0.3 / np.sqrt(size))
        low = -np.log(weights.sum()) - 40.0
        high = np.log((size + 12.0 * np.sqrt(size) + 60.0) / weights.min())
        self.y = np.arange(low, high + step, step)
        self.nodes, self.gauss = np.polynomial.legendre.leggauss(5)

    def group(self, a, own, inside):
        """Log F on the grid."""
        from scipy.interpolate import CubicSpline

        y, half = self.y, 0.5 * (self.y[1] - self.y[0])
        log_g = own * (_LOG_2 + y) + sum(times * log_f for log_f, times in inside)
        between = 0.5 * (y[1:] + y[:-1])[:, None] + half * self.nodes
        density = np.log(a) + between - a * np.exp(between) + CubicSpline(y, log_g)(between)
        pieces = half * (np.exp(density - log_g[1:, None]) @ self.gauss)
        ratio, ratios = 0.0, np.zeros(len(y))  # of the integral up to T to G(T)
        for k, (piece, fall) in enumerate(zip(pieces, np.exp(-np.diff(log_g)), strict=True)):
            ratio = ratio * fall + piece
            ratios[k + 1] = ratio
        return log_g + np.log(np.exp(-a * np.exp(y)) + ratios)

    def whole(self, part):
        """Log of F with a bound that does not bind."""
        return part[-1]
