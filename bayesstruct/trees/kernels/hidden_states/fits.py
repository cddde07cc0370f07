r"""Tables of probabilities along new edges of a tree: their most probable values and proposals around these.

A piece of a tree is one table, between two nodes of which messages say what else is known, or three tables around a new hidden node u
between a, b and v,

.. math:: \sum_{a, u, b, v} A(a) \, M(a, u) \, N(u, b) \, B(b) \, t(u, v) \, C(v) .

Its mode is found by expectation-maximisation. The proposal is a multivariate t distribution of the logits about it, with the sum of
squares of the scores of the rows as precision, made the same for all names of the states of u, and in one case of ten the prior.
All densities are those of logits with the first state as reference, in which the Dirichlet prior is in proportion to the product of
:math:`\theta^\alpha` and its mode has no zeros.
"""

from math import lgamma, log, pi
from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import numpy_inner

__all__ = [
    "Piece",
    "draw_tables",
    "edge_piece",
    "fit_piece",
    "piece_log_posterior",
    "proposal_log_density",
    "star_piece",
    "tables_log_prior",
]

_FREEDOM = 5.0  # of the t distribution
_PRIOR = 0.1  # share of proposals from the prior
_RIDGE = 0.1  # least precision of a logit
_TINY = 1e-150  # probabilities below are refused: products of them are no numbers


class Piece(NamedTuple):
    """Tables along one edge, or along the three of a new hidden node, and what is known of their ends.

    Attributes
    ----------
    size : (blocks, 2) ndarray of int
        Lines and columns of each table.
    weight : float
        Rows that the prior is worth.
    a, b, c : (rows, K) ndarray
        Messages of the ends; `b` belongs to three tables only.
    counts : (rows,) ndarray
    """

    size: np.ndarray
    weight: float
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    counts: np.ndarray


@numpy_inner
def edge_piece(first, second, weight, a, c, counts):
    """Piece of one edge between nodes with so many states."""
    size = np.empty((1, 2), np.int64)
    size[0, 0], size[0, 1] = first, second
    return Piece(size, weight, a, a, c, counts)


@numpy_inner
def star_piece(first, second, third, hidden, weight, a, b, c, counts):
    """Piece of a new hidden node between nodes with so many states."""
    size = np.empty((3, 2), np.int64)
    size[0, 0], size[0, 1] = first, hidden
    size[1, 0], size[1, 1] = hidden, second
    size[2, 0], size[2, 1] = hidden, third
    return Piece(size, weight, a, b, c, counts)


@numpy_inner
def _expected(theta, piece, r, out):
    """Write how probable each cell is in one row; return the probability of the row."""
    size = piece.size
    total = _of_edge(theta, piece, r, out) if len(size) == 1 else _of_star(theta, piece, r, out)
    for k in range(len(size)):
        for s in range(size[k, 0]):
            for t in range(size[k, 1]):
                out[k, s, t] /= total
    return total


@numpy_inner
def _of_edge(theta, piece, r, out):
    """Write the probability of one row together with each cell of one table; return their sum."""
    total = 0.0
    for s in range(piece.size[0, 0]):
        for t in range(piece.size[0, 1]):
            out[0, s, t] = piece.a[r, s] * theta[0, s, t] * piece.c[r, t]
            total += out[0, s, t]
    return total


@numpy_inner
def _of_star(theta, piece, r, out):
    """Write the probability of one row together with each cell of three tables; return the sum over one table."""
    total, size = 0.0, piece.size
    for u in range(size[0, 1]):
        f = g = h = 0.0
        for t in range(size[1, 1]):
            out[1, u, t] = theta[1, u, t] * piece.b[r, t]
            f += out[1, u, t]
        for t in range(size[2, 1]):
            out[2, u, t] = theta[2, u, t] * piece.c[r, t]
            g += out[2, u, t]
        for s in range(size[0, 0]):
            out[0, s, u] = piece.a[r, s] * theta[0, s, u]
            h += out[0, s, u]
            out[0, s, u] *= f * g
        for t in range(size[1, 1]):
            out[1, u, t] *= h * g
        for t in range(size[2, 1]):
            out[2, u, t] *= h * f
        total += f * g * h
    return total


@numpy_inner
def tables_log_prior(theta, piece):
    """Log prior density of the logits of tables; minus infinity where a probability is too small."""
    total = 0.0
    for k in range(len(piece.size)):
        lines, columns = piece.size[k, 0], piece.size[k, 1]
        alpha = piece.weight / (lines * columns)
        total += lines * (lgamma(alpha * columns) - columns * lgamma(alpha))
        for s in range(lines):
            for t in range(columns):
                if not theta[k, s, t] > _TINY:
                    return -np.inf
                total += alpha * np.log(theta[k, s, t])
    return total


@numpy_inner
def piece_log_posterior(theta, piece):
    """Log density of the rows and of the logits of the tables."""
    total = tables_log_prior(theta, piece)
    if total == -np.inf:
        return total
    work = np.empty_like(theta)
    for r in range(len(piece.counts)):
        total += piece.counts[r] * np.log(_expected(theta, piece, r, work))
    return total


@numpy_inner
def _improve(theta, piece, rounds, gain):
    """Expectation-maximisation in place; return the log density before the last round."""
    work, sums = np.empty_like(theta), np.empty_like(theta)
    before = -np.inf
    for _ in range(rounds):
        sums[:] = 0.0
        value = tables_log_prior(theta, piece)
        for r in range(len(piece.counts)):
            n = piece.counts[r]
            value += n * np.log(_expected(theta, piece, r, work))
            for k in range(len(piece.size)):
                for s in range(piece.size[k, 0]):
                    for t in range(piece.size[k, 1]):
                        sums[k, s, t] += n * work[k, s, t]
        for k in range(len(piece.size)):
            lines, columns = piece.size[k, 0], piece.size[k, 1]
            alpha = piece.weight / (lines * columns)
            for s in range(lines):
                total = 0.0
                for t in range(columns):
                    total += sums[k, s, t] + alpha
                for t in range(columns):
                    theta[k, s, t] = (sums[k, s, t] + alpha) / total
        if value - before < gain:
            return value
        before = value
    return before


@numpy_inner
def _begin(theta, piece, choice):
    """Write tables to begin with: an even one, or nearly copies along two of three edges."""
    for k in range(len(piece.size)):
        lines, columns = piece.size[k, 0], piece.size[k, 1]
        strong = 0.1 if len(piece.size) == 1 else (0.3 if k == choice else 0.8)
        for s in range(lines):
            for t in range(columns):
                same = s % columns == t if lines >= columns else t % lines == s
                copies = 1.0 if lines >= columns else float((columns - s - 1) // lines + 1)
                theta[k, s, t] = (1.0 - strong) / columns + strong * same / copies


@numpy_inner
def fit_piece(piece, mode, factor):
    """Write the most probable tables and the Cholesky factor of the precision of their logits; return the log evidence, nearly."""
    if len(piece.size) == 1:
        _begin(mode, piece, 0)
        value = _improve(mode, piece, 30, 1e-2)
    else:
        value, trial = -np.inf, np.empty_like(mode)
        for choice in range(3):
            _begin(trial, piece, choice)
            own = _improve(trial, piece, 6, 0.1)
            if own > value:
                value = own
                mode[:] = trial
        value = _improve(mode, piece, 30, 1e-2)
    return value + _curvature(piece, mode, factor)


@numpy_inner
def _curvature(piece, mode, factor):
    """Write the Cholesky factor of the precision of the logits; return the log volume of its ellipsoid."""
    d = _add_rows(piece, mode, factor)
    _add_prior(piece, mode, factor)
    half = 0.0
    for i in range(d):
        for j in range(i + 1):
            total = factor[i, j]
            for q in range(j):
                total -= factor[i, q] * factor[j, q]
            factor[i, j] = np.sqrt(total) if i == j else total / factor[j, j]
        half += np.log(factor[i, i])
    return 0.5 * d * log(2.0 * pi) - half


@numpy_inner
def _add_rows(piece, mode, factor):
    """Write the sum of the products of the scores of the rows; return the number of logits."""
    work, d = np.empty_like(mode), 0
    factor[:] = 0.0
    score = np.empty(len(factor))
    for r in range(len(piece.counts)):
        _expected(mode, piece, r, work)
        d = 0
        for k in range(len(piece.size)):
            for s in range(piece.size[k, 0]):
                line = 0.0
                for t in range(piece.size[k, 1]):
                    line += work[k, s, t]
                for t in range(1, piece.size[k, 1]):
                    score[d] = work[k, s, t] - line * mode[k, s, t]
                    d += 1
        for i in range(d):
            for j in range(i + 1):
                factor[i, j] += piece.counts[r] * score[i] * score[j]
    return d


@numpy_inner
def _add_prior(piece, mode, factor):
    """Add the precision of the logits in the prior at the mode."""
    start = 0
    for k in range(len(piece.size)):
        lines, columns = piece.size[k, 0], piece.size[k, 1]
        for s in range(lines):
            for t in range(1, columns):
                i = start + t - 1
                own = mode[k, s, t]
                factor[i, i] += piece.weight / lines * own + _RIDGE
                for q in range(1, t + 1):
                    factor[i, start + q - 1] -= piece.weight / lines * own * mode[k, s, q]
            start += columns - 1


@numpy_inner
def _t_log_density(theta, piece, mode, factor):
    """Log density of the t distribution of the logits."""
    d = 0
    z = np.empty(len(factor))
    for k in range(len(piece.size)):
        for s in range(piece.size[k, 0]):
            for t in range(1, piece.size[k, 1]):
                now = np.log(theta[k, s, t] / theta[k, s, 0])
                z[d] = now - np.log(mode[k, s, t] / mode[k, s, 0])
                d += 1
    half, squares = 0.0, 0.0
    for j in range(d):
        total = 0.0
        for i in range(j, d):
            total += factor[i, j] * z[i]
        squares += total * total
        half += np.log(factor[j, j])
    own = lgamma(0.5 * (_FREEDOM + d)) - lgamma(0.5 * _FREEDOM) - 0.5 * d * log(_FREEDOM * pi)
    return own + half - 0.5 * (_FREEDOM + d) * np.log1p(squares / _FREEDOM)


@numpy_inner
def _rename(theta, size, code, out):
    """Write tables with the states of the new hidden node renamed by permutation number `code`."""
    hidden = size[0, 1]
    left = np.arange(hidden)
    for k in range(hidden):
        pick = code % (hidden - k)
        code //= hidden - k
        u = left[pick]
        for q in range(pick, hidden - k - 1):
            left[q] = left[q + 1]
        for s in range(size[0, 0]):
            out[0, s, k] = theta[0, s, u]
        for t in range(size[1, 1]):
            out[1, k, t] = theta[1, u, t]
        for t in range(size[2, 1]):
            out[2, k, t] = theta[2, u, t]


@numpy_inner
def _names(piece):
    """Return the number of ways to name the states of the new hidden node; 1 if there is none."""
    if len(piece.size) == 1:
        return 1
    out = 1
    for k in range(2, piece.size[0, 1] + 1):
        out *= k
    return out


@numpy_inner
def proposal_log_density(theta, piece, mode, factor):
    """Log density of `draw_tables`."""
    prior = tables_log_prior(theta, piece)
    if prior == -np.inf:
        return prior
    ways = _names(piece)
    if ways == 1:
        near = _t_log_density(theta, piece, mode, factor)
    else:
        other, near = np.empty_like(theta), -np.inf
        for code in range(ways):
            _rename(theta, piece.size, code, other)
            near = np.logaddexp(near, _t_log_density(other, piece, mode, factor))
        near -= np.log(ways)
    return np.logaddexp(np.log(1.0 - _PRIOR) + near, np.log(_PRIOR) + prior)


@numpy_inner
def draw_tables(rng, piece, mode, factor, out):
    """Draw tables near the mode, or in some cases from the prior."""
    if rng.random() < _PRIOR:
        _draw_prior(rng, piece, out)
        return
    z, drawn = _draw_logits(rng, piece, factor), np.empty_like(mode)
    i = 0
    for k in range(len(piece.size)):
        for s in range(piece.size[k, 0]):
            for t in range(piece.size[k, 1]):
                drawn[k, s, t] = np.log(mode[k, s, t] / mode[k, s, 0])
                if t:
                    drawn[k, s, t] += z[i]
                    i += 1
            _exponentials(drawn[k, s], piece.size[k, 1])
    if len(piece.size) == 1:
        out[:] = drawn
    else:
        _rename(drawn, piece.size, int(rng.random() * _names(piece)), out)


@numpy_inner
def _exponentials(line, count):
    """Turn logits into probabilities."""
    top, total = line[:count].max(), 0.0
    for t in range(count):
        line[t] = np.exp(line[t] - top)
        total += line[t]
    for t in range(count):
        line[t] /= total


@numpy_inner
def _draw_prior(rng, piece, out):
    """Draw tables from the prior."""
    for k in range(len(piece.size)):
        lines, columns = piece.size[k, 0], piece.size[k, 1]
        for s in range(lines):
            total = 0.0
            for t in range(columns):
                out[k, s, t] = rng.standard_gamma(piece.weight / (lines * columns))
                total += out[k, s, t]
            for t in range(columns):
                out[k, s, t] /= total


@numpy_inner
def _draw_logits(rng, piece, factor):
    """Draw the differences of logits from the mode."""
    d = 0
    for k in range(len(piece.size)):
        d += piece.size[k, 0] * (piece.size[k, 1] - 1)
    z, stretch = np.empty(d), np.sqrt(_FREEDOM / (2.0 * rng.standard_gamma(0.5 * _FREEDOM)))
    for i in range(d):
        z[i] = stretch * rng.standard_normal()
    for i in range(d - 1, -1, -1):
        for q in range(i + 1, d):
            z[i] -= factor[q, i] * z[q]
        z[i] /= factor[i, i]
    return z
