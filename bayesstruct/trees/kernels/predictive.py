r"""Distributions of the columns of a new row given a table, one column and two columns at a time.

Under priors for which the marginal likelihood of a tree is a product over edges, so is the density of a new row x,

.. math:: p(x \mid D, T) = \prod_i p(x_i \mid D) \prod_{ij \in T} r_{ij}(x), \qquad
    r_{ij}(x) = \frac{p(x_i, x_j \mid D)}{p(x_i \mid D) \, p(x_j \mid D)} .
"""

from typing import TYPE_CHECKING

import numpy as np

from scipy.special import gammaln

from bayesstruct.networks.kernels.scores.pair_counts import pair_counts, single_counts
from bayesstruct.trees.kernels.gaussian import posterior_scale

if TYPE_CHECKING:
    from bayesstruct.trees.kernels.mixed import MixedTotals

__all__ = ["MixedPairs", "NumberPairs", "StatePairs"]

_HUGE = 1e140  # its square over the least `left` is still a float
_MOST_CELLS = 1 << 26  # pairs of states of which all counts are held: 512 MiB


class NumberPairs:
    r"""Student's t distributions of one and two columns of a new row of numbers.

    After n rows with the normal-Wishart prior of :class:`bayesstruct.networks.kernels.scores.gaussian.BGe` a new row is around
    :math:`m = n \bar z / (n + \alpha)`, and with :math:`u_i = (z_i - m_i) / \sqrt{R_{ii} (n + \alpha + 1) / (n + \alpha)}`

    .. math::

        p(z_i) \propto (1 + u_i^2)^{-(\nu + 1) / 2}, \qquad
        p(z_i, z_j) \propto \Bigl(1 + u_i^2 + \frac{(u_j - \rho u_i)^2}{1 - \rho^2}\Bigr)^{-(\nu + 2) / 2},

    with :math:`\rho = R_{ij} / \sqrt{R_{ii} R_{jj}}` and :math:`\nu = \alpha + n + 2` for the default degrees of freedom.

    Parameters
    ----------
    z : (n, p) ndarray of float
        The table, standardised.
    size : float
        Rows that the prior is worth, :math:`\alpha`.

    Attributes
    ----------
    center, spread : (p,) ndarray of float
        m, and the denominator of u.
    freedom : float
        :math:`\nu`.
    correlation : (p, p) ndarray of float
    states : (p,) ndarray of int
        0: there are none.
    """

    def __init__(self, z: np.ndarray, size: float):
        self.states = np.zeros(z.shape[1], np.int64)
        n, scale = len(z), size**2 / (size + 1.0)
        total = z.sum(axis=0)
        matrix = posterior_scale(scale, size, n, total, z.T @ z)
        own = np.diag(matrix)
        self.freedom = size + n + 2.0
        self.center = total / (n + size)
        self.spread = np.sqrt(own * (n + size + 1.0) / (n + size))
        self.correlation = matrix / np.sqrt(np.outer(own, own))
        # R - scale I is positive semi-definite; rounding may say less.
        least = scale / np.minimum.outer(own, own)
        self._left = np.maximum(1.0 - self.correlation**2, least)
        half = 0.5 * self.freedom
        gamma = gammaln(half + 0.5) - gammaln(half)
        self._constant = gamma - 0.5 * np.log(np.pi)
        self._pair = np.log(half) - 2.0 * gamma - 0.5 * np.log(self._left)

    def single(self, z: np.ndarray) -> np.ndarray:
        """Log density of each column of rows, (..., p)."""
        return self.log_t(z, self.center, self.spread)

    def single_of(self, k: int, values: np.ndarray) -> np.ndarray:
        """Log density of several values of column k, (values,)."""
        return self.log_t(values, self.center[k], self.spread[k])

    def log_t(self, z: np.ndarray, center: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Log density of numbers with the degrees of freedom of one column, around a center."""
        u = (z - center) / spread
        tail = 0.5 * (self.freedom + 1.0) * _log1p_squares(u)
        return self._constant - np.log(spread) - tail

    def ratios(self, z: np.ndarray) -> np.ndarray:
        """Logarithms of r of a row, (p, p); the diagonal means nothing."""
        u = (z - self.center) / self.spread
        return self._ratios(u[:, None], u, self.correlation, self._left, self._pair)

    def ratios_of(self, k: int, values: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Logarithms of r of column k and each other one, (values, p), for several values of this column."""
        u = (z - self.center) / self.spread
        v = (values[:, None] - self.center[k]) / self.spread[k]
        return self._ratios(u, v, self.correlation[k], self._left[k], self._pair[k])

    def given(self, k: int, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centers and scales of the t distributions of column k given each other one, and alone at place k, (p,) each."""
        u = (z - self.center) / self.spread
        center = self.center[k] + self.spread[k] * self.correlation[k] * u
        wide = self.spread[k] * np.sqrt(self._left[k] / (self.freedom + 1.0)) * np.hypot(1.0, u)
        center[k], wide[k] = self.center[k], self.spread[k] / np.sqrt(self.freedom)
        return center, wide

    def _ratios(self, u, v, correlation, left, constant):
        both = _log1p_squares(u, v - correlation * u, left)
        half = 0.5 * (self.freedom + 1.0)
        return constant + half * (_log1p_squares(u) + _log1p_squares(v)) - (half + 0.5) * both


def _log1p_squares(u, rest=0.0, left=1.0) -> np.ndarray:
    """Return log(1 + u^2 + rest^2 / left), also where squares are too large for a float."""
    if max(np.max(np.abs(u), initial=0.0), np.max(np.abs(rest), initial=0.0)) < _HUGE:
        return np.log1p(u**2 + rest**2 / left)
    return 2.0 * np.log(np.hypot(np.hypot(1.0, u), rest / np.sqrt(left)))


class StatePairs:
    r"""Probabilities of the states of one and two columns of a new row.

    After n rows with the Dirichlet priors of :class:`bayesstruct.networks.kernels.scores.discrete.BDeu`

    .. math::

        p(x_i = a) = \frac{N_a + \alpha / r_i}{n + \alpha}, \qquad
        p(x_i = a, x_j = b) = \frac{N_{ab} + \alpha / (r_i r_j)}{n + \alpha} .

    Parameters
    ----------
    codes : (n, p) ndarray of int
        States 0, 1, ...
    states : (p,) sequence of int
        How many each column has.
    size : float
        Rows that the prior is worth, :math:`\alpha`.
    """

    def __init__(self, codes: np.ndarray, states, size: float):
        self.states, self.size = np.asarray(states, np.int64), size
        self._codes = np.ascontiguousarray(codes)
        self._starts = np.cumsum(self.states) - self.states
        single = single_counts(self._codes.T, np.ones(len(codes)), self.states)
        prior = np.repeat(size / self.states, self.states)
        self._log_rows = np.log(len(codes) + size)
        self._single = np.log(single + prior) - self._log_rows
        self._pair = None
        if len(single) ** 2 <= _MOST_CELLS:
            self._pair = self._all_counts(single)

    def single(self, codes: np.ndarray) -> np.ndarray:
        """Log probability of each column of rows, (..., p)."""
        return self._single[self._starts + codes.astype(np.int64)]

    def ratios(self, codes: np.ndarray) -> np.ndarray:
        """Logarithms of r of a row, (p, p); the diagonal means nothing."""
        own = self.single(codes)
        at = self._starts + codes.astype(np.int64)
        # Too many to hold: in how many rows does each pair of columns have the states of this row?
        counts = self._agreeing(codes) if self._pair is None else self._pair[np.ix_(at, at)]
        cell = self.size / np.outer(self.states, self.states)
        return np.log(counts + cell) - self._log_rows - own[:, None] - own

    def _agreeing(self, codes) -> np.ndarray:
        same = (self._codes == codes).astype(np.float32)
        # Sums of fewer than 2 ** 24 ones are exact.
        return (same.T @ same).astype(np.float64)

    def _all_counts(self, single) -> np.ndarray:
        x, ones = np.ascontiguousarray(self._codes.T), np.ones(len(self._codes), np.int64)
        every = np.arange(len(self.states))
        parts = pair_counts(x, ones, self.states, every, single)
        return np.concatenate([counts for _, counts in parts])


class MixedPairs:
    r"""Distributions of one and two columns of a new row of numbers and states.

    Pairs of one kind are those of `NumberPairs` and `StatePairs`. Numbers next to the state k, of which there were :math:`n_k` rows with the sum
    :math:`S_k`, are t distributed around :math:`m_k = S_k / (n_k + \alpha)`: with W for the sum of squares within all states and
    :math:`u = (z - m_k) / \sqrt{W (n_k + \alpha + 1) / (n_k + \alpha)}`

    .. math:: p(z \mid k) \propto (1 + u^2)^{-(\nu + 1) / 2},

    with the degrees of freedom :math:`\nu` of a number alone.

    Parameters
    ----------
    totals : MixedTotals
        The table with its prior.

    Attributes
    ----------
    states : (p,) ndarray of int
        How many each column has, 0 for numbers.
    """

    def __init__(self, totals: "MixedTotals"):
        self.states = totals.states
        self._x, self._s = np.flatnonzero(totals.numbers), np.flatnonzero(~totals.numbers)
        counts = self.states[self._s]
        self._numbers = NumberPairs(totals.table[:, self._x], totals.size)
        self._codes = StatePairs(totals.codes[:, self._s], counts, totals.size)
        self._starts = np.cumsum(counts) - counts
        parts = [self._within_states(totals, column) for column in self._s]
        # One line for each state of each column of states.
        self._center, self._spread = (np.concatenate(own) for own in zip(*parts, strict=True))

    def _within_states(self, totals, column):
        """Centers and spreads of numbers in each state of a column, (states, numbers) each."""
        rows, sums = totals.sums(column, self._x)
        known = (rows + totals.size)[:, None]
        left = totals.within(self._x, rows, sums)
        return sums / known, np.sqrt(left * (known + 1.0) / known)

    def single(self, row: np.ndarray) -> np.ndarray:
        """Log density of each column of a row, (p,)."""
        out = np.empty(len(self.states))
        out[self._x] = self._numbers.single(row[self._x])
        out[self._s] = self._codes.single(row[self._s])
        return out

    def single_of(self, k: int, values: np.ndarray) -> np.ndarray:
        """Log density of several values of column k of numbers, (values,)."""
        return self._numbers.single_of(self._place(k), values)

    def ratios(self, row: np.ndarray) -> np.ndarray:
        """Logarithms of r of a row, (p, p); the diagonal means nothing."""
        out = np.empty((len(self.states),) * 2)
        out[np.ix_(self._x, self._x)] = self._numbers.ratios(row[self._x])
        out[np.ix_(self._s, self._s)] = self._codes.ratios(row[self._s])
        z, at = row[self._x], self._lines(row)
        cross = self._numbers.log_t(z, self._center[at], self._spread[at]) - self._numbers.single(z)
        out[np.ix_(self._s, self._x)], out[np.ix_(self._x, self._s)] = cross, cross.T
        return out

    def ratios_of(self, k: int, values: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Logarithms of r of column k of numbers and each other one, (values, p), for several values of this column."""
        at, place = self._lines(row), self._place(k)
        out = np.empty((len(values), len(self.states)))
        out[:, self._x] = self._numbers.ratios_of(place, values, row[self._x])
        given = self._numbers.log_t(
            values[:, None], self._center[at, place], self._spread[at, place]
        )
        out[:, self._s] = given - self.single_of(k, values)[:, None]
        return out

    def given(self, k: int, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centers and scales of column k of numbers given each other one, and alone at place k, (p,) each."""
        at, place = self._lines(row), self._place(k)
        center, wide = np.empty((2, len(self.states)))
        center[self._x], wide[self._x] = self._numbers.given(place, row[self._x])
        center[self._s] = self._center[at, place]
        wide[self._s] = self._spread[at, place] / np.sqrt(self._numbers.freedom)
        return center, wide

    def _lines(self, row):
        """Lines of the states of a row."""
        return self._starts + row[self._s].astype(np.int64)

    def _place(self, k):
        """Place of a column among those of numbers."""
        return int(np.searchsorted(self._x, k))
