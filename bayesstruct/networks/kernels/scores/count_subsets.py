r"""Scores of discrete variables: counts of all parent sets among some candidates.

The local score of a child with r states is a function of its counts :math:`N_{jk}` (rows in which
the parents are in their configuration j, the child in state k, of q r in all). With Dirichlet priors
(Heckerman, Geiger and Chickering 1995),

.. math::

    \sum_j \Bigl\{ \log \frac{\Gamma(\alpha_j)}{\Gamma(\alpha_j + N_j)}
        + \sum_k \log \frac{\Gamma(\alpha_{jk} + N_{jk})}{\Gamma(\alpha_{jk})} \Bigr\}, \qquad
    \alpha_j = r \alpha_{jk},

and with the BIC :math:`\sum_{jk} N_{jk} \log (N_{jk} / N_j) - q (r - 1) \log(n) / 2`.

Candidates are decided upon one after the other, the highest first. While there may be more cells than
rows, the rows carry the number of their configuration, and configurations are numbered anew
when more numbers are possible than there are rows: memory is linear in them. As soon as the table over
decided and undecided variables has few cells, rows are counted once, and leaving out a candidate sums the table over it.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["BIC", "DIRICHLET", "DIRICHLET_CONSTANT", "count_subsets", "row_classes"]

#: Kinds of scores of `count_subsets`: alpha_jk = value / (q r); alpha_jk = value; BIC with `value` a parameter.
DIRICHLET, DIRICHLET_CONSTANT, BIC = 0, 1, 2

#: Rows of the state of a level (b: the candidates b and above are decided): which row of the numbers of
#: configurations is its own, a bound of them, where its table starts, whether it has one.
_AT, _CLASSES, _START, _DENSE = range(4)

_CELLS = 4  # a table may have so many cells for each row
_SMALL = 32  # counts below come from a table of products, those above from Stirling's series
_LOGS = 1024  # counts whose N log N is looked up


@inner
def _log_gamma(x):
    """Log gamma function; for x >= 32 by Stirling's series, whose error is below 1e-14 there."""
    if x < _SMALL:
        return math.lgamma(x)
    y = 1.0 / (x * x)
    series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x
    return (x - 0.5) * math.log(x) - x + 0.9189385332046727 + series


@inner
def _rising(alpha, table):
    """Fill log Gamma(alpha + N) - log Gamma(alpha) for small N."""
    table[0] = 0.0
    for count in range(1, len(table)):
        table[count] = table[count - 1] + math.log(alpha + (count - 1))


@inner
def _dirichlet(cells, r, alpha, small):
    """Log marginal likelihood of a table; `small` is an array for two tables of small counts."""
    # Tables of logarithms pay when there are more cells than entries.
    most = min(_SMALL, len(cells) // 4 + 1)
    cell_table, row_table = small[0, :most], small[1, :most]
    _rising(alpha, cell_table)
    _rising(r * alpha, row_table)
    base, row_base = math.lgamma(alpha), math.lgamma(r * alpha)
    out = 0.0
    for start in range(0, len(cells), r):
        total = 0
        for at in range(start, start + r):
            count = cells[at]
            total += count
            if count < most:
                out += cell_table[count]
            else:
                out += _log_gamma(alpha + count) - base
        if total < most:
            out -= row_table[total]
        else:
            out -= _log_gamma(r * alpha + total) - row_base
    return out


@inner
def _count_logs(kind):
    """Return N log N for small N, if the score needs it."""
    out = np.zeros(_LOGS if kind == BIC else 0)
    for count in range(2, len(out)):
        out[count] = count * math.log(count)
    return out


@inner
def _likelihood(cells, r, logs):
    """Greatest log likelihood of a table; `logs` holds N log N for small N."""
    most = len(logs)
    out = 0.0
    for start in range(0, len(cells), r):
        total = 0
        for at in range(start, start + r):
            count = cells[at]
            total += count
            out += logs[count] if count < most else count * math.log(count)
        out -= logs[total] if total < most else total * math.log(total)
    return out


@inner
def _score(cells, r, q, kind, value, small, logs):
    """Local score of a table of q configurations; those that do not occur may be missing."""
    if kind == BIC:
        return _likelihood(cells, r, logs) - value * q * (r - 1)
    alpha = value / (q * r) if kind == DIRICHLET else value
    return _dirichlet(cells, r, alpha, small)


@inner
def _extend(codes, r, column, out):
    """Write numbers of configurations with one more variable."""
    for i in range(len(column)):
        out[i] = codes[i] * r + column[i]


@inner
def _renumber(codes, classes):
    """Assign the numbers 0, 1, ... to the configurations that occur; return how many they are."""
    name = np.full(classes, -1, np.int32)
    used = 0
    for i in range(len(codes)):
        if name[codes[i]] < 0:
            name[codes[i]] = used
            used += 1
        codes[i] = name[codes[i]]
    return used


@kernel
def row_classes(x, columns, states, codes, most):
    """Assign numbers to the rows, the same to equal rows.

    Parameters
    ----------
    x : (variables, rows) uint8
    columns : (c,) int64
        Variables that must agree.
    states : (variables,) int64
    codes : (rows,) int32
        Filled with the numbers 0, 1, ... in the order of their first rows.
    most : int
        Give up when there are more.

    Returns
    -------
    int
        How many different rows there are; `most` + 1 when there are more than `most`.
    """
    codes[:] = 0
    classes = 1
    for c in columns:
        _extend(codes, states[c], x[c], codes)
        classes = _renumber(codes, classes * states[c])
        if classes > most:
            return most + 1
    return classes


@inner
def _count(codes, suffix, inner, weights, cells):
    """Count rows by their configuration and by the undecided variables."""
    cells[:] = 0
    for i in range(len(suffix)):
        cells[codes[i] * inner + suffix[i]] += weights[i]


@inner
def _sum_out(source, r, inner, target):
    """Sum an (outer, r, inner) table over its middle axis."""
    for outer in range(len(target) // inner):
        first, to = outer * r * inner, outer * inner
        for i in range(inner):
            target[to + i] = source[first + i]
        for state in range(1, r):
            start = first + state * inner
            for i in range(inner):
                target[to + i] += source[start + i]


@inner
def _suffixes(x, states, child, candidates, limit):
    """Find configurations of the child and its lowest candidates, for as many as have few cells.

    Returns their numbers in each row, for 0, 1, ... candidates, and how many are possible.
    """
    k, m = len(candidates), x.shape[1]
    inner = np.empty(k + 1, np.int64)
    inner[0] = states[child]
    levels = 1
    while levels <= k and inner[levels - 1] * states[candidates[levels - 1]] <= limit:
        inner[levels] = inner[levels - 1] * states[candidates[levels - 1]]
        levels += 1
    suffix = np.empty((levels, m), np.int32)
    suffix[0] = x[child]
    for b in range(1, levels):
        column = x[candidates[b - 1]]
        for i in range(m):
            suffix[b, i] = suffix[b - 1, i] + column[i] * inner[b - 1]
    return suffix, inner


@inner
def _root(x, states, fixed, codes):
    """Assign numbers to the configurations of the fixed parents; return bounds of these numbers."""
    codes[:] = 0
    classes, configurations = 1, 1.0
    for c in fixed:
        _extend(codes, states[c], x[c], codes)
        classes *= states[c]
        configurations *= states[c]
        if classes > len(codes):
            classes = _renumber(codes, classes)
    return classes, configurations


@inner
def _tabulate(b, weights, suffix, inner, limit, level, codes, cells):
    """Count the rows once and for all if level b has few cells."""
    length = level[_CLASSES, b] * inner[b]
    if b == 0 or (b < len(suffix) and length <= limit):
        level[_DENSE, b], level[_START, b] = 1, 0
        _count(codes[level[_AT, b]], suffix[b], inner[b], weights, cells[:length])


@inner
def _decide(b, column, r, inside, inner, level, codes, cells):
    """Derive level b from the one above: its candidate becomes a parent or is left out."""
    level[:, b] = level[:, b + 1]
    if inside:
        level[_CLASSES, b] *= r
    if level[_DENSE, b]:
        if not inside and r > 1:
            length = level[_CLASSES, b] * inner[b]
            source = level[_START, b]
            start = source + length * r
            level[_START, b] = start
            _sum_out(cells[source:start], r, inner[b], cells[start : start + length])
    elif inside:
        _extend(codes[level[_AT, b]], r, column, codes[b])
        level[_AT, b] = b
        if level[_CLASSES, b] > len(column):
            level[_CLASSES, b] = _renumber(codes[b], level[_CLASSES, b])


@inner
def _length(mask):
    """Return 1 + the index of the highest bit that is set; 0 without any."""
    length = 0
    while mask:
        mask >>= 1
        length += 1
    return length


@inner
def _size(mask):
    """Count the bits that are set."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@kernel
def count_subsets(x, weights, states, child, candidates, fixed, most, kind, value, codes, out):
    """Score a child with each subset of some candidates as parents.

    Parameters
    ----------
    x : (variables, rows) uint8
        States 0, 1, ...
    weights : (rows,) int32
        Multiplicities of the rows.
    states : (variables,) int64
        Numbers of states.
    child : int
    candidates, fixed : (k,), (f,) int64
        Variables that may be, and that are, parents.
    most : int
        Greatest size of a set; larger ones score -inf.
    kind : int
        `DIRICHLET`, `DIRICHLET_CONSTANT` or `BIC`.
    value : float
        Equivalent sample size; pseudo-count of each cell; price of a parameter.
    codes : (k + 1, rows) int32
        Overwritten.
    out : (2**k,) float64
        Filled; entry m belongs to `fixed` and the candidates of the bits of m.
    """
    k, m, r = len(candidates), x.shape[1], states[child]
    limit = _CELLS * max(m, 64)
    suffix, inner = _suffixes(x, states, child, candidates, limit)
    # A table and all that are summed out of it, each at most half of the last.
    cells = np.empty(2 * max(limit, r * max(m, 1)), np.int32)
    small, logs = np.empty((2, _SMALL)), _count_logs(kind)
    level, configurations = np.zeros((4, k + 1), np.int64), np.empty(k + 1)
    level[_AT, k] = k
    level[_CLASSES, k], configurations[k] = _root(x, states, fixed, codes[k])
    _tabulate(k, weights, suffix, inner, limit, level, codes, cells)
    out[:] = -np.inf
    previous = -1
    for mask in range((1 << k) - 1, -1, -1):
        if len(fixed) + _size(mask) > most:
            continue
        # Levels above the highest bit that has changed are those of the last set.
        top = k if previous < 0 else _length(mask ^ previous)
        previous = mask
        for b in range(top - 1, -1, -1):
            c, inside = candidates[b], mask >> b & 1
            configurations[b] = configurations[b + 1] * (states[c] if inside else 1)
            _decide(b, x[c], states[c], inside, inner, level, codes, cells)
            if not level[_DENSE, b]:
                _tabulate(b, weights, suffix, inner, limit, level, codes, cells)
        start = level[_START, 0]
        table = cells[start : start + level[_CLASSES, 0] * r]
        out[mask] = _score(table, r, configurations[0], kind, value, small, logs)
