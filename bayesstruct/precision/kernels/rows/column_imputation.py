r"""Missing values of a table of normal columns, given which columns each of them is regressed on.

With parents pa of each column in a network without directed circles, the table has the density

.. math:: \prod_i f(x_i \mid x_{\mathrm{pa}(i)}),

f being the marginal densities of :mod:`bayesstruct.precision.kernels.nodewise`: regressions whose parameters are integrated out. Every factor
that the missing values of column i enter is a product of powers of

.. math:: s_A = M_{ii} - M_{iA} M_{AA}^{-1} M_{Ai}

for sets A of other columns, and s_A is a quadratic function of one value. The sweep draws one value at a time by slice sampling, which leaves
their conditional distribution given the observed values invariant.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import inner, kernel, vector_inner
from bayesstruct.precision.kernels.nodewise import node_gains

__all__ = ["Gaps", "choose_parents", "draw_cells", "list_gaps", "scatter"]

_WIDTH = 1.0  # of the first interval of a slice, in standard deviations


class Gaps(NamedTuple):
    """Places of the missing values of a table, column by column.

    Attributes
    ----------
    rows : (m,) ndarray of int
    starts : (p + 1,) ndarray of int
        Where those of each column begin.
    """

    rows: np.ndarray
    starts: np.ndarray


class _Sets(NamedTuple):
    """Sets of columns whose s enters the density of the cells of one column, and memory.

    Attributes
    ----------
    exponent : (sets,) ndarray
        Of s.
    size, place : (sets,) ndarray of int
        Number of members, and where they begin in `members`.
    members : ndarray of int
    value, slope, curve : (sets,) ndarray
        s as a function of a change d of the cell, ``value + 2 slope d + curve d^2``.
    vectors : ndarray
        Of each set, ``L^-1 M_Ai`` and for each cell ``L^-1 w_A``, where L is the Cholesky factor of M_AA and w the row of the
        cell less the means of the columns.
    """

    exponent: np.ndarray
    size: np.ndarray
    place: np.ndarray
    members: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    curve: np.ndarray
    vectors: np.ndarray


def list_gaps(missing: np.ndarray) -> Gaps:
    """List the places of missing values, (n, p) bool, column by column."""
    rows = np.nonzero(missing.T)[1]
    starts = np.concatenate([[0], np.cumsum(missing.sum(axis=0))])
    return Gaps(rows.astype(np.int64), starts.astype(np.int64))


def scatter(rows: np.ndarray) -> np.ndarray:
    """Return the sums of squares and products of the columns around their means, (p, p)."""
    centred = rows - rows.mean(axis=0)
    return centred.T @ centred


@inner
def _list_set(j, graph, without, beside, out):
    """Write the columns that have a one in row j, without one and with another; return their number."""
    q = 0
    for k in range(graph.shape[0]):
        if (graph[j, k] and k != without) or k == beside:
            out[q] = k
            q += 1
    return q


@inner
def _add_set(q, exponent, count, sets):
    """Note the set of q members that begins where the last one ends."""
    sets.exponent[count], sets.size[count] = exponent, q
    sets.place[count + 1] = sets.place[count] + q
    return count + 1


@inner
def _list_sets(i, parents, powers, sets):
    """List the sets whose s enters the density of the values of column i; return their number."""
    members, place = sets.members, sets.place
    q = _list_set(i, parents, -1, -1, members)
    count = _add_set(q, -powers[q], 0, sets)
    for j in range(parents.shape[0]):
        if parents[j, i]:
            q = _list_set(j, parents, i, j, members[place[count] :])
            count = _add_set(q, -powers[q], count, sets)
            left = _list_set(j, parents, i, -1, members[place[count] :])
            count = _add_set(left, powers[q] - 0.5, count, sets)
    return count


@inner
def _make_sets(parents, gaps):
    """Make memory for the sets of any column."""
    p = parents.shape[0]
    sets, members, numbers = 1, 1, 1
    for i in range(p):
        cells = gaps.starts[i + 1] - gaps.starts[i]
        if cells:
            some, total = 1, parents[i].sum()
            for j in range(p):
                if parents[j, i]:
                    some, total = some + 2, total + 2 * parents[j].sum()
            sets, members = max(sets, some), max(members, total)
            numbers = max(numbers, total * (cells + 1))
    ends, figures = np.zeros((2, sets + 1), np.int64), np.empty((4, sets))
    return _Sets(
        figures[0],
        ends[0],
        ends[1],
        np.empty(members, np.int64),
        figures[1],
        figures[2],
        figures[3],
        np.empty(numbers),
    )


@inner
def _solve(q, factor, vector):
    """Solve with a lower triangular factor in place."""
    for a in range(q):
        total = vector[a]
        for b in range(a):
            total -= factor[a, b] * vector[b]
        vector[a] = total / factor[a, a]


@inner
def _prepare_set(i, at, rows, cells, means, matrix, sets, factor):
    """Compute s of a set for the present column i, and what it takes to follow its cells."""
    q, place = sets.size[at], sets.place[at]
    members = sets.members[place : place + q]
    own = sets.vectors[place * (len(cells) + 1) : (place + q) * (len(cells) + 1)]
    for a in range(q):
        for b in range(a + 1):
            total = matrix[members[a], members[b]]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            factor[a, b] = math.sqrt(total) if a == b else total / factor[b, b]
        own[a] = matrix[i, members[a]]
    _solve(q, factor, own)
    value = matrix[i, i]
    for a in range(q):
        value -= own[a] * own[a]
    sets.value[at] = value
    for c in range(len(cells)):
        vector = own[(c + 1) * q : (c + 2) * q]
        for a in range(q):
            vector[a] = rows[cells[c], members[a]] - means[members[a]]
        _solve(q, factor, vector)


@inner
def _face_cell(c, cells, deviation, rest, count, sets):
    """Make s of all sets functions of a change of one cell."""
    for at in range(count):
        q, place = sets.size[at], sets.place[at] * (cells + 1)
        slope, curve = deviation, rest
        for a in range(q):
            y = sets.vectors[place + (c + 1) * q + a]
            slope -= sets.vectors[place + a] * y
            curve -= y * y
        sets.slope[at], sets.curve[at] = slope, curve


@inner
def _log_density(d, count, sets):
    """Log density of a change of the cell, up to a constant."""
    total = 0.0
    for at in range(count):
        s = sets.value[at] + d * (2.0 * sets.slope[at] + d * sets.curve[at])
        total += sets.exponent[at] * math.log(s)
    return total


@inner
def _draw_change(rng, count, sets):
    """Draw a change by slice sampling."""
    level = _log_density(0.0, count, sets) - rng.standard_exponential()
    left = -_WIDTH * rng.random()
    right = left + _WIDTH
    while _log_density(left, count, sets) > level:
        left -= _WIDTH
    while _log_density(right, count, sets) > level:
        right += _WIDTH
    while True:
        d = left + (right - left) * rng.random()
        if _log_density(d, count, sets) >= level:
            return d
        if d < 0.0:
            left = d
        else:
            right = d


@inner
def _follow(c, cells, d, count, sets):
    """Take a change of a cell into s and the vectors of all sets."""
    for at in range(count):
        q, place = sets.size[at], sets.place[at] * (cells + 1)
        sets.value[at] += d * (2.0 * sets.slope[at] + d * sets.curve[at])
        for a in range(q):
            sets.vectors[place + a] += d * sets.vectors[place + (c + 1) * q + a]


@vector_inner
def _move_row(line, d, row, means):
    for k in range(line.shape[0]):
        line[k] += d * (row[k] - means[k])


@inner
def _draw_column(rng, i, cells, rows, means, matrix, count, sets):
    """Draw the missing values of a column in turn, with all else up to date."""
    n, p = rows.shape
    for c in range(len(cells)):
        row = rows[cells[c]]
        deviation, rest = row[i] - means[i], 1.0 - 1.0 / n
        _face_cell(c, len(cells), deviation, rest, count, sets)
        d = _draw_change(rng, count, sets)
        _follow(c, len(cells), d, count, sets)
        own = matrix[i, i] + d * (2.0 * deviation + d * rest)
        _move_row(matrix[i], d, row, means)
        matrix[i, i] = own
        row[i] += d
        means[i] += d / n
    for k in range(p):
        matrix[k, i] = matrix[i, k]


@kernel
def draw_cells(rng, rows, matrix, parents, powers, gaps):
    """Draw each missing value once, given all others.

    Parameters
    ----------
    rng : numpy.random.Generator
    rows : (n, p) float64, changed in place
        Standardised.
    matrix : (p, p) float64, changed in place
        The identity and the `scatter` of the rows.
    parents : (p, p) int8
        Row i has ones at the parents of i; without directed circles.
    powers : (p,) float64
        As in `bayesstruct.precision.kernels.nodewise.Target`.
    gaps : Gaps
    """
    n, p = rows.shape
    means, most = np.zeros(p), 1
    for r in range(n):
        for k in range(p):
            means[k] += rows[r, k] / n
    for j in range(p):
        most = max(most, parents[j].sum())
    sets, factor = _make_sets(parents, gaps), np.empty((most, most))
    for i in range(p):
        cells = gaps.rows[gaps.starts[i] : gaps.starts[i + 1]]
        if len(cells) == 0:
            continue
        count = _list_sets(i, parents, powers, sets)
        for at in range(count):
            _prepare_set(i, at, rows, cells, means, matrix, sets, factor)
        _draw_column(rng, i, cells, rows, means, matrix, count, sets)


@kernel
def choose_parents(order, odds, target, work):
    """Choose the parents of each node among the nodes before it, one by one while the score rises.

    Parameters
    ----------
    order : (p,) int64
        The nodes, parents first.
    odds : (p, p) float64
        Log odds of a parent, added to the change of the score.
    target, work
        As in `bayesstruct.precision.kernels.nodewise.node_gains`.

    Returns
    -------
    (p, p) ndarray of int8
        Row i has ones at the parents of i.
    """
    p = len(order)
    parents, gain = np.zeros((p, p), np.int8), np.empty(p)
    for at in range(1, p):
        i = order[at]
        while True:
            node_gains(i, parents, target, gain, work)
            best, chosen = 0.0, -1
            for before in range(at):
                k = order[before]
                if not parents[i, k] and gain[k] + odds[i, k] > best:
                    best, chosen = gain[k] + odds[i, k], k
            if chosen < 0:
                break
            parents[i, chosen] = 1
    return parents
