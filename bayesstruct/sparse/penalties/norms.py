"""Norms of disjoint groups: the l2, maximum and nuclear norm behind one set of questions.

Coordinates are gathered group by group (``w[order]``), group g at ``start[g]:start[g + 1]``.
"""

import math

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np

__all__ = ["Euclidean", "Maximum", "Nuclear"]


class Euclidean:
    """The l2 norm, its own dual."""

    name = 2

    def norms(self, x, start):
        """Norm of each group."""
        return np.sqrt(np.add.reduceat(x * x, start[:-1]))

    dual_norms = norms

    def prox(self, v, groups, threshold, out):
        """Proximal map of the rows of ``v``."""
        from bayesstruct.sparse.kernels.proximal import group_l2

        group_l2(v, groups.order, groups.start, threshold, out)

    def sparse_prox(self, v, entry_threshold, groups, threshold, out):
        """Proximal map with an l1 norm added."""
        from bayesstruct.sparse.kernels.proximal import sparse_group_l2

        sparse_group_l2(v, entry_threshold, groups.order, groups.start, threshold, out)

    def slopes(self, x, d, start):
        """Directional derivative of each norm."""
        norm = self.norms(x, start)
        inner = np.add.reduceat(x * d, start[:-1])
        return np.where(norm > 0, inner / np.where(norm > 0, norm, 1.0), self.norms(d, start))

    def nearest(self, x, y, start, threshold):
        """Y minus its projection on the subdifferential at x."""
        sizes = np.diff(start)
        norm, length = self.norms(x, start), self.norms(y, start)
        slope = np.repeat(threshold / np.where(norm > 0, norm, 1.0), sizes)
        shrink = np.maximum(length - threshold, 0.0) / np.where(length > 0, length, 1.0)
        return np.where(np.repeat(norm > 0, sizes), y - slope * x, np.repeat(shrink, sizes) * y)

    def critical(self, g, start, entry, group):
        """Smallest t at which soft-thresholding by t ``entry`` and the group's t kill group g.

        The root of a quadratic on each interval between two sorted entries.
        """
        worst = 0.0
        for block, rate in zip(np.split(np.abs(g), start[1:-1]), group, strict=True):
            sizes = np.sort(block)[::-1]
            total, square = np.cumsum(sizes), np.cumsum(sizes**2)
            for k in range(1, len(sizes) + 1):
                linear, constant = entry * total[k - 1], square[k - 1]
                inside = max(linear * linear + (rate**2 - k * entry**2) * constant, 0.0)
                denominator = linear + math.sqrt(inside)
                t = constant / denominator if denominator > 0 else 0.0
                if k == len(sizes) or t * entry >= sizes[k]:
                    break
            worst = max(worst, t)
        return worst

    def log_integrals(self, sizes):
        """Log of the integral of exp(-norm) over each group."""
        return np.array([_log_euclidean(int(d)) for d in sizes])

    def log_sparse_integral(self, d, ratio):
        r"""Log of the integral of :math:`\exp(-\text{ratio} \|w\|_1 - \|w\|_2)` over d dimensions.

        The norm is a scale mixture of squares, :math:`e^{-r} = \int \tfrac{2}{\sqrt\pi} e^{-u^2}
        e^{-r^2 / 4u^2} du`, under which the coordinates are independent.
        """
        return _log_sparse_euclidean(int(d), float(ratio))


class Maximum:
    """The maximum norm, dual to the l1 norm."""

    name = np.inf

    def norms(self, x, start):
        """Norm of each group."""
        return np.maximum.reduceat(np.abs(x), start[:-1])

    def dual_norms(self, x, start):
        """Sum of the absolute values of each group."""
        return np.add.reduceat(np.abs(x), start[:-1])

    def prox(self, v, groups, threshold, out):
        """Proximal map of the rows of ``v``."""
        from bayesstruct.sparse.kernels.proximal import group_linf

        work = np.empty(v.shape[1])
        group_linf(v, groups.order, groups.start, threshold, out, work)

    def sparse_prox(self, v, entry_threshold, groups, threshold, out):
        """Proximal map with an l1 norm added."""
        from bayesstruct.sparse.kernels.proximal import sparse_group_linf

        work = np.empty(v.shape[1])
        sparse_group_linf(v, entry_threshold, groups.order, groups.start, threshold, out, work)

    def slopes(self, x, d, start):
        """Directional derivative of each norm."""
        from bayesstruct.sparse.penalties.base import TIED

        norm = np.repeat(self.norms(x, start), np.diff(start))
        along = np.where(np.abs(x) >= (1.0 - TIED) * norm, np.sign(x) * d, -np.inf)
        return np.maximum.reduceat(np.where(norm > 0, along, np.abs(d)), start[:-1])

    def nearest(self, x, y, start, threshold):
        """Y minus its projection on the subdifferential at x."""
        from bayesstruct.sparse.kernels.proximal import group_linf_nearest
        from bayesstruct.sparse.penalties.base import TIED

        out = np.empty_like(y)
        group_linf_nearest(x, y, start, threshold, TIED, out)
        return out

    def critical(self, g, start, entry, group):
        """Smallest t at which soft-thresholding by t ``entry`` and the group's t kill group g."""
        worst = 0.0
        for block, rate in zip(np.split(np.abs(g), start[1:-1]), group, strict=True):
            sizes = np.sort(block)[::-1]
            total = np.cumsum(sizes)
            for k in range(1, len(sizes) + 1):
                t = total[k - 1] / (k * entry + rate) if k * entry + rate > 0 else 0.0
                if k == len(sizes) or t * entry >= sizes[k]:
                    break
            worst = max(worst, t)
        return worst

    def log_integrals(self, sizes):
        """Log of the integral of exp(-norm) over each group."""
        return np.array([d * math.log(2) + math.lgamma(d + 1) for d in sizes.tolist()])

    def log_sparse_integral(self, d, ratio):
        r"""Log of the integral of :math:`\exp(-\text{ratio} \|w\|_1 - \|w\|_\infty)`.

        With :math:`e^{-m} = \int_m^\infty e^{-t} dt` it is :math:`(2 / \rho)^d B(1/\rho, d + 1) /
        \rho`.
        """
        from scipy.special import betaln

        return d * math.log(2 / ratio) - math.log(ratio) + betaln(1 / ratio, d + 1)


@dataclass(frozen=True, eq=False)
class Nuclear:
    """The sum of the singular values of matrices of ``shapes``; dual to the largest one."""

    shapes: np.ndarray
    name = "nuclear"

    def _blocks(self, x, start):
        blocks = np.split(x, start[1:-1]) if len(self.shapes) else []
        return [b.reshape(shape) for b, shape in zip(blocks, self.shapes.tolist(), strict=True)]

    def norms(self, x, start):
        """Norm of each group."""
        return np.array([np.linalg.norm(block, "nuc") for block in self._blocks(x, start)])

    def dual_norms(self, x, start):
        """Largest singular value of each group."""
        return np.array([np.linalg.norm(block, 2) for block in self._blocks(x, start)])

    def prox(self, v, groups, threshold, out):
        """Proximal map of the rows of ``v``."""
        from bayesstruct.sparse.kernels.proximal import group_nuclear

        group_nuclear(v, groups.order, groups.start, self.shapes, threshold, out)

    def slopes(self, x, d, start):
        """Directional derivative of each norm."""
        return np.array(
            [
                np.vdot(U @ V.T, D) + np.linalg.norm(U_.T @ D @ V_, "nuc")
                if U_.shape[1] and V_.shape[1]
                else np.vdot(U @ V.T, D)
                for (U, V, U_, V_), D in zip(
                    map(_bases, self._blocks(x, start)), self._blocks(d, start), strict=True
                )
            ]
        )

    def nearest(self, x, y, start, threshold):
        """Y minus its projection on the subdifferential at x."""
        parts = []
        blocks = zip(self._blocks(x, start), self._blocks(y, start), threshold, strict=True)
        for X, Y, t in blocks:
            U, V, U_, V_ = _bases(X)
            rest = Y - t * (U @ V.T)
            if U_.shape[1] and V_.shape[1]:
                left, values, right = np.linalg.svd(U_.T @ rest @ V_, full_matrices=False)
                rest = rest - U_ @ (left * np.minimum(values, t)) @ right @ V_.T
            parts.append(rest.ravel())
        return np.concatenate(parts)

    def log_integrals(self, sizes):
        """Log of the integral of exp(-norm) over each group."""
        return np.array([_log_nuclear(*sorted(shape)) for shape in self.shapes.tolist()])


def _bases(X):
    """Singular vectors of the range of X and of its complement."""
    U, values, V = np.linalg.svd(X)
    tiny = 8 * max(X.shape) * np.finfo(float).eps
    rank = int((values > tiny * values[0]).sum()) if values[0] > 0 else 0
    return U[:, :rank], V[:rank].T, U[:, rank:], V[rank:].T


def _log_euclidean(d):
    """Schmidt's group-Laplace: the surface of the sphere times Gamma(d)."""
    return math.log(2) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d) + math.lgamma(d)


@cache
def _log_sparse_euclidean(d, ratio):
    from scipy.integrate import quad
    from scipy.optimize import minimize_scalar
    from scipy.special import erfcx

    def height(y):  # in y = log u
        u = math.exp(y)
        return y - u * u + d * math.log(2 * math.sqrt(math.pi) * u * erfcx(ratio * u))

    bounds = (-math.log(1 + ratio) - 5.0, 0.5 * math.log(d + 10.0))
    peak = minimize_scalar(lambda y: -height(y), bounds=bounds, method="bounded").x
    top = height(peak)
    # u^2 is at most about a gamma variable of shape (d + 1) / 2: twelve deviations and a tail.
    last = max(math.exp(2 * peak) + 60.0, (d + 1) / 2 + 12.0 * math.sqrt(d + 9.0))
    low, high = peak - 50.0, 0.5 * math.log(last)
    # Pieces of the range where the integrand is smooth; it falls at least like u on the left.
    cuts = [low, peak - 10.0, peak - 2.0, peak, 0.5 * (peak + high), high]
    parts = [
        quad(lambda y: math.exp(height(y) - top), a, b, epsabs=0, epsrel=1e-12, limit=200)[0]
        for a, b in pairwise(cuts)
    ]
    return top + math.log(2 / math.sqrt(math.pi)) + math.log(sum(parts))


@cache
def _log_nuclear(k, n):
    r"""Log integral of exp(-nuclear norm) over k x n matrices, k <= n.

    The singular values have density proportional to :math:`\prod \sigma_i^{n-k} \prod_{i<j}
    |\sigma_i^2 - \sigma_j^2| e^{-\sum \sigma_i}` (the Jacobian of Muirhead 1982, theorem 3.2.17), of
    which de Bruijn's formula makes a Pfaffian with rational entries.
    """
    powers = [2 * j + n - k for j in range(k)]
    size = k + k % 2
    A = [[Fraction(0)] * size for _ in range(size)]
    for i in range(k):
        for j in range(i + 1, k):
            A[i][j] = 2 * _first_wins(powers[i] + 1, powers[j] + 1) - 1
            A[j][i] = -A[i][j]
        if k % 2:
            A[i][k], A[k][i] = Fraction(1), Fraction(-1)
    determinant = _determinant(A)
    pfaffian = 0.5 * (math.log(determinant.numerator) - math.log(determinant.denominator))
    jacobian = (
        k * math.log(2)
        + 0.5 * (k * n + k * k) * math.log(math.pi)
        - _log_multigamma(0.5 * k, k)
        - _log_multigamma(0.5 * n, k)
    )
    return jacobian + pfaffian + sum(math.lgamma(a + 1) for a in powers)


def _first_wins(m, n):
    """Probability that m heads come before n tails: that Gamma(m) is less than Gamma(n)."""
    throws = m + n - 1
    return Fraction(sum(math.comb(throws, j) for j in range(m, throws + 1)), 2**throws)


def _determinant(A):
    A, result = [list(row) for row in A], Fraction(1)
    for i in range(len(A)):
        pivot = next(r for r in range(i, len(A)) if A[r][i] != 0)
        if pivot != i:
            A[i], A[pivot], result = A[pivot], A[i], -result
        result *= A[i][i]
        for r in range(i + 1, len(A)):
            factor = A[r][i] / A[i][i]
            A[r] = [a - factor * b for a, b in zip(A[r], A[i], strict=True)]
    return result


def _log_multigamma(a, k):
    return 0.25 * k * (k - 1) * math.log(math.pi) + sum(math.lgamma(a - 0.5 * j) for j in range(k))
