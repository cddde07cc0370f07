r"""Tables of the scores of the parent sets of each variable, and of their sums over subsets.

Each child has ``k`` *candidates*; its parent sets are the subsets of them, and these subsets with one
more variable, an *extra* ("plus one", Kuipers, Suter and Moffa 2022). With all other variables as candidates
the graphs are all graphs. Sums over the sets that an order or a partition allows are made from
these tables by :mod:`bayesstruct.networks.kernels.parent_sums`.

The sums over the subsets of each subset of the candidates (a zeta transform, Koivisto and Sood 2004) are
made once for each row (no extra, or one of them). Sums are kept as logarithms, and relative to the
greatest of their child and mask, so that they can be added up without exponentials.

References
----------
Koivisto, M. and Sood, K. (2004). Exact Bayesian
structure discovery in Bayesian networks. *JMLR* 5, 549-573. -- Kuipers, J., Suter, P. and Moffa, G. (2022).
Efficient sampling and structure learning of Bayesian networks. *Journal of Computational and Graphical
Statistics* 31, 639-650.
"""

import math

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = [
    "LIST",
    "RATIO",
    "ROWS",
    "SCORE",
    "SIZE",
    "TINY",
    "TOP",
    "ZETA",
    "ParentTables",
    "family_score",
    "family_scores",
    "log_add",
    "may_be_parent",
    "parent_tables",
    "required_parents",
    "table_entries",
]

TINY = 1e-280  # sums of ratios below which digits may be lost to underflow
_MOST = 24  # candidates: 2**24 sets of one row take 384 MiB
#: Columns of the layout: numbers of candidates and of rows, starts of the four parts, list of parents.
SIZE, ROWS, SCORE, ZETA, RATIO, TOP, LIST = range(7)


class ParentTables(NamedTuple):
    """All parent sets, in two arrays: compiled functions take few arrays much faster than many.

    Bit ``b`` of a mask is candidate ``b`` of the child; row 0 has no extra, row ``e`` extra ``e - 1``. The
    block of a child in ``values`` has four parts: scores [row, mask], sums over the subsets of a mask
    [mask, row], these relative to their greatest [mask, row], and that greatest [mask].
    """

    layout: np.ndarray
    """(d, 2 d + 5) int64: of each child the number of candidates and of rows, the starts of the four
    parts, its candidates followed by its extras (d - 1, padded with -1), and the role of each variable
    (d): b + 1 of candidate b, -e of the extra of row e, 0 if it cannot be a parent."""
    values: np.ndarray
    """Flat float64: log score and log prior; logarithms of sums; ratios; logarithms."""

    @property
    def d(self) -> int:
        """Number of variables."""
        return len(self.layout)

    def candidates(self, child) -> np.ndarray:
        """Candidates of a child, (k,)."""
        return self.layout[child, LIST : LIST + self.layout[child, SIZE]]

    def extras(self, child) -> np.ndarray:
        """Return the further variables of which a set of the child may have one."""
        first = LIST + self.layout[child, SIZE]
        return self.layout[child, first : first + self.layout[child, ROWS] - 1]

    def scores(self, child) -> np.ndarray:
        """Log scores of all sets of a child, (rows, 2**k), a view."""
        first, last = self.layout[child, SCORE], self.layout[child, ZETA]
        return self.values[first:last].reshape(self.layout[child, ROWS], -1)


def table_entries(d: int, size: int, *, plus_one: bool = True) -> int:
    """Return the number of parent sets that tables of ``d`` variables with ``size`` candidates hold.

    Each takes 24 bytes: 34 MiB for 80 variables with 8 candidates, 132 MiB with 10, and 130 MiB
    (500 MiB) for 150 variables with 8 (10).
    """
    size = min(size, d - 1)
    return d * 2**size * (d - size if plus_one else 1)


def parent_tables(score, prior, candidates, *, plus_one=True, known=None) -> ParentTables:
    """Make the tables of all parent sets from candidates, with one further parent if wanted.

    Takes 24 bytes for each set, see :func:`table_entries`.

    Parameters
    ----------
    score : object
        With ``d`` and ``subsets(child, candidates, fixed=...)``, log scores of all subsets of
        ``candidates`` joined with ``fixed``, (2**k,): bit ``b`` of the index is candidate ``b``. Or, without a
        `prior`, an object that holds both as ``score`` and ``prior``.
    prior : object or None
        With a method ``subsets`` like that of ``score``: the log prior; ``-inf`` for sets that it excludes.
        ``None`` for 0.
    candidates : (d, k) int array or sequence of d sequences
        Possible parents of each child; -1 is skipped. Those that are in no possible set are left out.
    plus_one : bool
        Whether sets may have one parent from the other variables.
    known : ParentTables, optional
        Tables made from the same score and prior: a child whose candidates are the same there is copied.

    Returns
    -------
    ParentTables

    Raises
    ------
    ValueError
        If candidates are not variables, are repeated, or are the child itself; if there are more
        than 24 for a child; if a score is NaN or ``inf``; if a child has no possible parent set.
    """
    d = score.d
    if prior is None and hasattr(score, "prior"):
        score, prior = score.score, score.prior
    lists = _checked(candidates, d)
    old = [known is not None and known.candidates(i).tolist() == lists[i] for i in range(d)]
    blocks = [
        (known.candidates(i), known.extras(i), None)
        if old[i]
        else _block(score, prior, i, lists[i], plus_one)
        for i in range(d)
    ]
    layout = np.array([_layout(d, kept, extras) for kept, extras, _ in blocks])
    first = 0
    for own in layout:
        sets = own[ROWS] << own[SIZE]
        own[SCORE : TOP + 1] = first + sets * np.arange(4)
        first = own[TOP] + (np.int64(1) << own[SIZE])
    tables = ParentTables(layout, np.empty(first))
    for child, (_, _, values) in enumerate(blocks):
        if old[child]:
            _whole(tables, child)[:] = _whole(known, child)
        else:
            tables.scores(child)[:] = values
            _transform(tables, child)
    return tables


def _whole(tables, child):
    """Return all that is tabulated of a child, a view."""
    own = tables.layout[child]
    return tables.values[own[SCORE] : own[TOP] + (1 << own[SIZE])]


def _layout(d, kept, extras):
    """Row of the layout of a child, without the starts."""
    out = np.full(2 * d + 5, -1, np.int64)
    role = out[LIST + d - 1 :]
    role[:] = 0
    out[SIZE], out[ROWS] = len(kept), 1 + len(extras)
    out[LIST : LIST + len(kept) + len(extras)] = [*kept, *extras]
    role[kept] = 1 + np.arange(len(kept))
    role[extras] = -1 - np.arange(len(extras))
    return out


def _checked(candidates, d):
    """Check the candidates and return a list for each child."""
    lists = [[int(j) for j in row if j != -1] for row in candidates]
    if len(lists) != d:
        raise ValueError(f"candidates has {len(lists)} rows, but there are {d} variables")
    for child, own in enumerate(lists):
        if len(set(own)) < len(own) or child in own or not all(0 <= j < d for j in own):
            raise ValueError(
                f"candidates of variable {child} must be different other variables, not {own}"
            )
        if len(own) > _MOST:
            raise ValueError(
                f"variable {child} has {len(own)} candidates: at most {_MOST} can be tabulated"
            )
    return lists


def _block(score, prior, child, own, plus_one):
    """Candidates, extras and log scores (row, mask) of one child, without impossible sets."""
    others = [j for j in range(score.d) if j != child and j not in own] if plus_one else []
    table = _log_priors(prior, child, own, others)
    limit = getattr(prior, "max_parents", None)  # larger sets need no counting
    options = {} if limit is None else {"max_parents": limit}
    for row, fixed in enumerate([(), *((j,) for j in others)]):
        if table[row].max() > -np.inf:
            table[row] += score.subsets(child, own, fixed=fixed, **options)
    if not table.max() < np.inf:  # also if it is NaN
        raise ValueError(f"scores of variable {child} contain NaN or infinity")
    possible = table.max(axis=1) > -np.inf
    if not possible.any():
        raise ValueError(
            f"no parent set of variable {child} is possible: add its required parents to its "
            "candidates, or relax the constraints"
        )
    extras = [j for j, some in zip(others, possible[1:], strict=True) if some]
    possible[0] = True
    kept, table = _without_impossible(own, table[possible])
    return kept, extras, table


def _without_impossible(own, table):
    """Candidates and columns of the sets, without candidates that are in no possible set."""
    high, mask = table.max(axis=0), np.arange(table.shape[1])
    kept, used = [], np.ones(len(mask), bool)
    for b, j in enumerate(own):
        inside = (mask >> b & 1).astype(bool)
        if (high[inside] > -np.inf).any():
            kept.append(j)
        else:
            used &= ~inside
    return kept, table if used.all() else table[:, used]


def _log_priors(prior, child, own, others):
    """Log prior of the subsets of the candidates (row 0), and of these with each of the others."""
    if prior is None:
        return np.zeros((1 + len(others), 1 << len(own)))
    if not hasattr(prior, "log_arc_weights"):
        fixed = [(), *((j,) for j in others)]
        return np.array([prior.subsets(child, own, fixed=f) for f in fixed], np.float64)
    absent, present = (terms[:, child] for terms in prior.log_arc_weights)
    inside = np.zeros(1)
    for j in own:
        inside = np.concatenate([inside + absent[j], inside + present[j]])
    rest = np.delete(np.arange(len(absent)), [child, *own])
    needed = absent[rest] == -np.inf  # a required variable: differences would be undefined
    some = np.where(needed, 0.0, absent[rest]).sum()
    without = np.where(needed.sum() > 0, -np.inf, some)
    outside = [without]
    for j in others:
        lost = needed.sum() - (absent[j] == -np.inf)
        term = 0.0 if absent[j] == -np.inf else absent[j]
        outside.append(-np.inf if lost else some - term + present[j])
    size = np.bitwise_count(np.arange(len(inside))).astype(np.int64)
    out = np.array(outside)[:, None] + inside
    out[0] += prior.log_size_weights[size]
    if others:
        out[1:] += prior.log_size_weights[size + 1]
    return out


@kernel
def _transform(t, i):
    """Fill in the sums over subsets of a child, from the scores.

    The sums are kept relative to the greatest score in them, one for all rows, so that no sum takes a
    logarithm and all rows of a mask are added at once.
    """
    own, v = t.layout[i], t.values
    n, sets = own[ROWS], np.int64(1) << own[SIZE]
    score, zeta, ratio, top = own[SCORE], own[ZETA], own[RATIO], own[TOP]
    for m in range(sets):
        high = -np.inf
        for r in range(n):
            high = max(high, v[score + r * sets + m])
        v[top + m] = high
        for r in range(n):
            x = v[score + r * sets + m]
            v[ratio + m * n + r] = math.exp(x - high) if x > -np.inf else 0.0
    half = np.int64(1)
    while half < sets:
        for m in range(sets):
            if m & half:
                _add_scaled(v[ratio : ratio + sets * n], v[top : top + sets], m, m - half, n)
        half *= 2
    for k in range(sets * n):
        x = v[ratio + k]
        v[zeta + k] = v[top + k // n] + math.log(x) if x > 0.0 else -np.inf
    for r in range(n):
        for m in range(sets):
            if v[ratio + m * n + r] < TINY:
                _log_row(v, own, r)
                break


@inner
def _add_scaled(ratio, top, m, lower, n):
    """Add the sums of a mask below to those of a mask, relative to the greatest score of both."""
    high = max(top[m], top[lower])
    if high == -np.inf:
        return
    own = math.exp(top[m] - high) if top[m] > -np.inf else 0.0
    other = math.exp(top[lower] - high) if top[lower] > -np.inf else 0.0
    target, source = ratio[m * n : m * n + n], ratio[lower * n : lower * n + n]
    for r in range(n):
        target[r] = target[r] * own + source[r] * other
    top[m] = high


@inner
def _log_row(v, own, r):
    """Fill in the logarithms of the sums of a row where ratios have lost digits."""
    n, sets = own[ROWS], np.int64(1) << own[SIZE]
    score, zeta = own[SCORE] + r * sets, own[ZETA] + r
    for m in range(sets):
        v[zeta + m * n] = v[score + m]
    half = np.int64(1)
    while half < sets:
        for m in range(sets):
            if m & half:
                v[zeta + m * n] = log_add(v[zeta + m * n], v[zeta + (m - half) * n])
        half *= 2


@inner
def log_add(x, y):
    """Logarithm of ``exp(x) + exp(y)``."""
    high, low = (x, y) if x > y else (y, x)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@kernel
def may_be_parent(t, child, parent):
    """Whether some set of a child has the parent."""
    return t.layout[child, LIST + len(t.layout) - 1 + parent] != 0


@inner
def family_score(t, child, adjacency):
    """Log score and prior of a child with its parents in a graph; ``-inf`` for those not tabulated.

    Parameters
    ----------
    t : ParentTables
    child : int
    adjacency : (d, d) int8 array
        1 at (parent, child).

    Returns
    -------
    float
    """
    own, d = t.layout[child], len(t.layout)
    mask = row = np.int64(0)
    for j in range(d):
        if adjacency[j, child]:
            role = own[LIST + d - 1 + j]
            if role > 0:
                mask |= np.int64(1) << (role - 1)
            elif role < 0 and row == 0:
                row = -role
            else:
                return -np.inf
    return t.values[own[SCORE] + (row << own[SIZE]) + mask]


@kernel
def family_scores(t, adjacency):
    """Log score and prior of each variable with its parents in a graph, (d,)."""
    out = np.empty(len(t.layout))
    for i in range(len(out)):
        out[i] = family_score(t, i, adjacency)
    return out


def required_parents(tables: ParentTables) -> np.ndarray:
    """Return which arcs all graphs have that the tables allow.

    Parameters
    ----------
    tables : ParentTables

    Returns
    -------
    (d, d) bool array
        True at (parent, child) if each possible set of the child holds the parent.
    """
    out = np.zeros((tables.d, tables.d), bool)
    for i in range(tables.d):
        possible = np.isfinite(tables.scores(i))
        common = np.bitwise_and.reduce(np.flatnonzero(possible.any(axis=0)))
        out[tables.candidates(i), i] = common >> np.arange(len(tables.candidates(i))) & 1
        row = np.flatnonzero(possible.any(axis=1))
        if len(row) == 1 and row[0] > 0:
            out[tables.extras(i)[row[0] - 1], i] = True
    return out
