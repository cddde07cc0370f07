r"""Local scores of Bayesian networks from expected sufficient statistics.

With missing values that have the distribution q, and parameters that have the conjugate distribution which is best
given q, the log marginal likelihood of a graph has the lower bound

.. math::

    \log p(x_{\mathrm{obs}} \mid G) \ge \sum_i s_i(\mathrm{pa}_i) + H(q),

the terms being the scores of a complete table with the expected statistics under q in the place of its own: scatter
matrices or counts (Beal and Ghahramani 2006, section 3).

References
----------
Beal, M. J. and Ghahramani, Z. (2006). Variational Bayesian learning of directed graphical models with hidden
variables. *Bayesian Analysis* 1, 793-832.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels.scores.base import Score, fill_zeros
from bayesstruct.networks.kernels.scores.gaussian import BGe

__all__ = ["ExpectedBDeu", "ExpectedBGe"]


class ExpectedBGe(BGe):
    """BGe scores of a table whose missing values are normal given the others.

    Parameters
    ----------
    table : (n, d) array_like of float
        Missing values filled in by their means.
    covariance : (m, d, d) array
        Of the values of some rows, zero for values that are known.
    rows : (m,) int array
        These rows.
    **options
        As of :class:`bayesstruct.networks.kernels.scores.gaussian.BGe`.
    """

    def __init__(self, table, covariance, rows, **options):
        super().__init__(table, **options)
        for group, kept in enumerate(self._kept):
            if kept.any():
                matrix, *rest = self._prepare(self._table[kept])
                matrix = matrix + covariance[kept[rows]].sum(axis=0)
                self._statistics[group] = (matrix, *rest)


class ExpectedBDeu(Score):
    r"""BDeu scores of weighted rows.

    Parameters
    ----------
    table : (n, d) int array
        States 0, 1, ....
    weights : (n,) float array
    states : (d,) sequence of int
    interventions : (n, d) bool array
        True where a variable was set from outside.
    equivalent_sample_size : float
    cells : int
        Parent sets whose tables have more cells score :math:`-\infty`.
    """

    def __init__(self, table, weights, *, states, interventions, equivalent_sample_size, cells):
        super().__init__(table.shape, interventions)
        self._x = np.ascontiguousarray(table.T, np.int64)
        self._weights = np.array([np.where(kept, weights, 0.0) for kept in self._kept])
        self._states = np.asarray(states, np.int64)
        self._sample_size = float(equivalent_sample_size)
        self._work = np.empty(int(cells))

    def _fill(self, child, candidates, fixed, most, out):
        if not self.n_rows[child]:
            fill_zeros(len(fixed), most, out)
            return
        weights = self._weights[self._group[child]]
        codes = np.empty(len(weights), np.int64)
        weighted_subsets(
            self._x,
            weights,
            self._states,
            child,
            candidates,
            fixed,
            most,
            self._sample_size,
            codes,
            self._work,
            out,
        )


@kernel
def weighted_subsets(
    x, weights, states, child, candidates, fixed, most, sample_size, codes, work, out
):
    """Score a child with each subset of some candidates as parents, from weighted rows.

    Parameters
    ----------
    x : (d, n) int64 array
    weights : (n,) float64 array
    states : (d,) int64 array
    child : int
    candidates, fixed : int64 arrays
    most : int
        Larger sets score -inf.
    sample_size : float
        Equivalent sample size.
    codes : (n,) int64 array
        Overwritten.
    work : (cells,) float64 array
        Overwritten by tables; sets with more cells score -inf.
    out : (2**k,) float64, written
    """
    k, r = len(candidates), states[child]
    parents = np.empty(k + len(fixed), np.int64)
    for mask in range(len(out)):
        size, q = len(fixed), 1
        parents[:size] = fixed
        for b in range(k):
            if mask >> b & 1:
                parents[size] = candidates[b]
                size += 1
        out[mask] = -np.inf
        if size > most:
            continue
        codes[:] = x[child]
        for p in parents[:size]:
            if q * r > len(work):
                break
            for i in range(len(codes)):
                codes[i] += q * r * x[p, i]
            q *= states[p]
        if q * r > len(work):
            continue
        cells = work[: q * r]
        cells[:] = 0.0
        for i in range(len(codes)):
            cells[codes[i]] += weights[i]
        out[mask] = _dirichlet(cells, r, sample_size / (q * r))


@inner
def _dirichlet(cells, r, alpha):
    """Log marginal likelihood of a table of fractional counts."""
    out, base, row_base = 0.0, math.lgamma(alpha), math.lgamma(r * alpha)
    for start in range(0, len(cells), r):
        total = 0.0
        for at in range(start, start + r):
            if cells[at] > 0.0:
                total += cells[at]
                out += math.lgamma(alpha + cells[at]) - base
        if total > 0.0:
            out -= math.lgamma(r * alpha + total) - row_base
    return out
