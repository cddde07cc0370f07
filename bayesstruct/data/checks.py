"""Checks of tables, one per function.

A ``problem`` is a sentence for a `TableError`, a ``remark`` is one for a `TableWarning`; each names
the columns and the remedy. All columns are checked, so that one message reports all problems.
"""

import hashlib
import itertools
import math

from collections import Counter

import numpy as np

from bayesstruct.data.errors import column_list, count, listing
from bayesstruct.data.intake import Intake
from bayesstruct.data.remarks import codes_option, column_remarks, number_remarks, odd_codes

__all__ = [
    "ARROW",
    "MAX_EDGES",
    "MAX_MISSING_COLUMN",
    "MAX_MISSING_VALUES",
    "SEPARATOR",
    "dependent_columns",
    "duplicates",
    "equal_states",
    "levels_problems",
    "max_columns",
    "mixed_remarks",
    "new_value_kinds",
    "remarks",
    "shape_problems",
    "value_kinds",
    "value_problems",
]

#: Between the names of two columns in the label of their pair.
SEPARATOR = " -- "
#: Between source and target in the label of an arc.
ARROW = " -> "
#: Largest number of possible edges; 1,000 draws of so many take 2 GB.
MAX_EDGES = 2_000_000
#: Share of missing values above which a table is used with a warning.
MAX_MISSING_VALUES = 0.2
#: Share of missing values in one column above which a table is used with a warning.
MAX_MISSING_COLUMN = 0.5
#: Residual variance, as a share of its variance, below which a column adds nothing to others.
COLLINEAR = 1e-10
#: Range, relative to the largest magnitude, below which a column varies by rounding only.
ROUNDING = 1e-12
#: Expected number of equal pairs of unrelated columns below which equal columns are copies.
BY_CHANCE = 1e-6

#: Way out for a table that is not continuous, unless the model knows a better one.
DISCRETE = "a model for discrete variables"
_REFUSALS = {
    "text": "text (for example {example!r}): leave missing values empty, convert text that is "
    "numeric with pandas.to_numeric, otherwise leave the column out or use {discrete}",
    "category": "categories (for example {example!r}): leave them out, or use {discrete}",
    "date": "dates or times (for example {example}): convert them to numbers, such as days since "
    "the first date, or leave them out",
    "complex": "complex numbers (for example {example}): use the real and imaginary parts, or the "
    "modulus, as columns",
    "object": "Python objects that are not numbers (for example {example!r:.60}): leave them out "
    "or convert them",
}
_NEW_REFUSALS = {
    "text": "text (for example {example!r}), and the model has numbers there: convert text that is numeric with "
    "pandas.to_numeric, and leave other values empty (missing)",
    "category": "categories (for example {example!r}), and the model has numbers there: give numbers, or leave the values empty "
    "(missing)",
    "date": "dates or times (for example {example}), and the model has numbers there: convert them as in its table, such as to "
    "days since the first date",
    "object": "Python objects that are not numbers (for example {example!r:.60}), and the model has numbers there: convert them, or "
    "leave the values empty (missing)",
}


def max_columns() -> int:
    """Return the largest number of columns that have at most `MAX_EDGES` pairs."""
    return int((1 + np.sqrt(1 + 8 * MAX_EDGES)) // 2)


def shape_problems(intake: Intake) -> list[str]:
    """List what is wrong with the size and the names of a table, before its values are read."""
    names, n, p = intake.names, len(intake.values), len(intake.names)
    if p == 0:
        return ["the table is empty, it has no column: pass at least 2 columns and 2 rows"]
    if p > max_columns():
        return [
            f"the table has {p:,} columns, which means {p * (p - 1) // 2:,} possible edges; at "
            f"most {MAX_EDGES:,} edges ({max_columns():,} columns) are supported: select columns "
            "(for example those that vary most) or learn one block of variables at a time"
        ]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        return [f"the name of {column_list(repeated)} occurs more than once: rename all but one"]
    problems = _ambiguous_pairs(names)
    if p == 1:
        problems.append(f"the table has 1 column ({names[0]!r}); at least 2 are needed")
    if n == 0:
        problems.append("the table is empty, it has 0 rows; at least 2 are needed: add rows")
    if n == 1:
        problems.append("the table has 1 row; at least 2 are needed: add rows")
    return problems


def _ambiguous_pairs(names: list[str]) -> list[str]:
    """Two pairs, or arcs, have the same label only if the name of a column contains what stands between names."""
    problems = []
    for between in (SEPARATOR, ARROW):
        suspects = [name for name in names if between.strip() in name]
        if not suspects:
            continue
        pairs = list(itertools.permutations(names, 2))
        if between == SEPARATOR:
            pairs = list(itertools.combinations(names, 2))
        label, most = Counter(map(between.join, pairs)).most_common(1)[0]
        if most == 1:
            continue
        one, other, *_ = (pair for pair in pairs if between.join(pair) == label)
        problems.append(
            f"the pairs of {column_list(one)} and of {column_list(other)} have the same label {label!r}: "
            f"rename {column_list(suspects)} so that no name contains {between.strip()!r}"
        )
    return problems


def value_problems(intake: Intake, discrete: str = DISCRETE) -> list[str]:
    """List what is wrong with the values of a table; `discrete` can be used for columns that are not numbers."""
    names, values = _numeric(intake)
    problems = value_kinds(intake, discrete) + _uninformative(names, values)
    if not intake.refused:
        problems += _empty_rows(values)
    return problems


def value_kinds(intake: Intake, discrete: str = DISCRETE) -> list[str]:
    """List the columns with values that are not finite numbers."""
    return _not_numbers(intake, _REFUSALS, discrete=discrete)


def new_value_kinds(intake: Intake) -> list[str]:
    """List the columns of other rows with values that are not finite numbers; the columns of a model cannot be left out."""
    return _not_numbers(intake, _REFUSALS | _NEW_REFUSALS)


def _not_numbers(intake, refusals, **words):
    problems = []
    for kind, columns in intake.refused.items():
        verb = "holds" if len(columns) == 1 else "hold"
        what = refusals[kind].format(example=columns[0][1], **words)
        problems.append(f"{column_list([intake.names[j] for j, _ in columns])} {verb} {what}")
    return problems + _infinite(*_numeric(intake))


def _numeric(intake):
    """Names and values of the columns that hold numbers."""
    refused = {j for columns in intake.refused.values() for j, _ in columns}
    kept = [j for j in range(len(intake.names)) if j not in refused]
    return [intake.names[j] for j in kept], intake.values[:, kept]


def levels_problems(intake: Intake) -> list[str]:
    """List the columns that have more than two values."""
    columns = list(zip(intake.names, intake.values.T, strict=True))
    found = {name: np.unique(column[np.isfinite(column)]) for name, column in columns}
    wide = {name: levels for name, levels in found.items() if len(levels) > 2}
    if not wide:
        return []
    first, levels = next(iter(wide.items()))
    shown = ", ".join(f"{level:g}" for level in levels[:3]) + (", ..." if len(levels) > 3 else "")
    values = f"{len(levels):,} different values ({shown})"
    if len(wide) == 1:
        what, them = f"column {first!r} holds {values}, a binary column has two", "it"
    else:
        what = f"{column_list([*wide])} hold more than two values ({first!r}: {values})"
        them = "them"
    odd = {name: odd_codes(column) for name, column in columns}
    codes = {name: own for name, own in odd.items() if own}
    missing = f"name {codes_option(codes)} if they mean missing, " if codes else ""
    return [
        f"{what}: {missing}split {them} at a threshold, leave {them} out, or use a model for other kinds of "
        "columns"
    ]


def remarks(
    names: list[str],
    values: np.ndarray,
    discrete: str = DISCRETE,
    *,
    normal: bool = True,
    tails: bool = True,
    prior: bool = True,
) -> list[str]:
    """List properties of a valid table that may not be intended; see `column_remarks`, `prior` as for `Table.continuous`."""
    found = column_remarks(names, values, discrete, normal=normal, tails=tails)
    return [*_missing(names, values), *found, *_collinear(names, values)] if prior else found


def mixed_remarks(
    names: list[str],
    values: np.ndarray,
    categorical: np.ndarray,
    by_order: np.ndarray,
    *,
    prior: bool = True,
) -> list[str]:
    """List properties that may not be intended of a valid table in which some columns count by their order.

    Parameters
    ----------
    names : list of str
    values : (n, p) array of float
    categorical, by_order : (p,) arrays of bool
        Columns of text or categories, and those that are not normal.
    prior : bool
        As for `Table.continuous`.
    """
    numbers, normal = np.flatnonzero(~categorical), np.flatnonzero(~by_order)
    own = [names[j] for j in numbers]
    found = number_remarks(own, values[:, numbers], ~by_order[numbers])
    if not prior:
        return found
    return [
        *_missing(names, values),
        *found,
        *(_collinear([names[j] for j in normal], values[:, normal]) if len(normal) > 1 else []),
    ]


def _infinite(names: list[str], values: np.ndarray) -> list[str]:
    infinite = np.isinf(values)
    return [
        f"column {names[j]!r} holds an infinite value, first in row {infinite[:, j].argmax()} "
        "(counting from 0): correct it, or set it to NaN to treat it as missing"
        for j in np.flatnonzero(infinite.any(axis=0))
    ]


def _uninformative(names: list[str], values: np.ndarray) -> list[str]:
    finite = np.isfinite(values)
    count = finite.sum(axis=0)
    low = np.where(finite, values, np.inf).min(axis=0)
    high = np.where(finite, values, -np.inf).max(axis=0)
    complete = ~np.isinf(values).any(axis=0)
    # Halves: the range of values near the largest float would overflow.
    with np.errstate(invalid="ignore"):
        spread, size = high / 2 - low / 2, np.maximum(abs(high), abs(low)) / 2
        flat = complete & (count > 1) & (spread <= ROUNDING * size)
    problems = []
    if (empty := np.flatnonzero(np.isnan(values).all(axis=0))).size:
        columns = column_list([names[j] for j in empty])
        it = "it" if len(empty) == 1 else "them"
        problems.append(f"{columns}: all values are missing; remove {it}")
    if (single := np.flatnonzero(complete & (count == 1))).size:
        columns = column_list([names[j] for j in single])
        problems.append(f"{columns}: a single observed value, 2 are needed; remove or complete it")
    if (constant := np.flatnonzero(flat)).size:
        columns = column_list([names[j] for j in constant])
        verb, it = ("is", "it") if len(constant) == 1 else ("are", "them")
        rounding = " up to rounding" if spread[constant].any() else ""
        problems.append(
            f"{columns} {verb} constant{rounding} ({names[constant[0]]!r} is always "
            f"{low[constant[0]]:g}): remove {it}, a constant column carries no information about dependence"
        )
    return problems


def duplicates(names: list[str], values: np.ndarray) -> list[str]:
    """List the columns that are equal, one sentence for each set of them."""
    return [
        f"columns {listing([names[j] for j in group])} are exact duplicates: keep one of them"
        for group in _equal_columns(values)
    ]


def equal_states(names: list[str], values: np.ndarray) -> tuple[list[str], list[str]]:
    """List the columns of states that are equal: copies, and those that may be equal by chance.

    In short tables, and among columns with a rare state, some columns are equal by chance. Equality
    counts as chance if the observed states, put into the rows at random, would be equal in one table
    in a million or more often.

    Parameters
    ----------
    names : list of str
    values : (n, p) array of float
        NaN where missing.

    Returns
    -------
    problems, remarks : list of str
    """
    pairs = len(names) * (len(names) - 1) / 2
    problems, remarks = [], []
    for group in _equal_columns(values):
        columns = f"columns {listing([names[j] for j in group])}"
        if np.log(pairs) - _log_arrangements(values[:, group[0]]) < np.log(BY_CHANCE):
            problems.append(f"{columns} are exact duplicates: keep one of them")
        else:
            remarks.append(
                f"{columns} are the same in every row, which can be chance in a table of "
                f"{count(len(values), 'row')}: the strength of their connection then depends on "
                "the prior; if they are copies of one another, keep one"
            )
    return [*problems, *_recoded(names, values, pairs)], remarks


def _recoded(names, values, pairs) -> list[str]:
    """List the columns that are equal up to the names of their states, and not by chance."""
    out = []
    # Equal columns are equal in some rows: few columns are left to be renamed in all.
    few = np.column_stack([_by_appearance(column) for column in _some_rows(values).T])
    left = np.array([j for group in _alike(few) for j in group], int)
    if not len(left):
        return []
    left.sort()
    renamed = np.column_stack([_by_appearance(column) for column in values[:, left].T])
    for places in _equal_columns(renamed):
        group = left[places].tolist()
        codes = {values[:, j].tobytes() for j in group}
        if len(codes) < 2:
            continue
        if np.log(pairs) - _log_partitions(renamed[:, places[0]]) < np.log(BY_CHANCE):
            out.append(
                f"columns {listing([names[j] for j in group])} are the same up to the names of their "
                "states: keep one of them"
            )
    return out


def _by_appearance(column: np.ndarray) -> np.ndarray:
    """Replace values by numbers in the order in which they appear; NaN stays."""
    observed = ~np.isnan(column)
    _, first, inverse = np.unique(column[observed], return_index=True, return_inverse=True)
    out = np.full(len(column), np.nan)
    out[observed] = np.argsort(np.argsort(first))[inverse.ravel()]
    return out


def _log_arrangements(column: np.ndarray) -> float:
    """Log of the number of ways to put the values of a column into its rows."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, len(column) + 1)))])
    _, times = np.unique(column, return_counts=True)
    return log_factorial[len(column)] - log_factorial[times].sum()


def _log_partitions(column: np.ndarray) -> float:
    """Log of the number of ways to put the values of a column into its rows, but for their names: none are told apart if all differ."""
    _, times = np.unique(column[~np.isnan(column)], return_counts=True)
    _, alike = np.unique(times, return_counts=True)
    return _log_arrangements(column) - sum(math.lgamma(k + 1.0) for k in alike.tolist())


def _equal_columns(values: np.ndarray) -> list[list[int]]:
    """Positions of columns that vary and are the same, one list for each set of them."""
    near = sorted(j for group in _alike(_some_rows(values)) for j in group)
    found = _alike(values[:, near])
    varies = (np.isfinite(values[:, near]).sum(axis=0) > 1) & _differs(values[:, near].T)
    return [[near[k] for k in group] for group in found if varies[group[0]]]


def _some_rows(values: np.ndarray, most: int = 256) -> np.ndarray:
    """At most so many rows, spread evenly."""
    return values[:: -(-len(values) // most) or 1]


def _alike(values: np.ndarray) -> list[list[int]]:
    """Positions of columns that are the same, one list for each set of them."""
    # One hash per column, not one comparison per pair; + 0.0 makes -0.0 equal to 0.0.
    canonical = np.ascontiguousarray(np.where(np.isnan(values), np.nan, values).T + 0.0)
    groups: dict[bytes, list[int]] = {}
    for j, column in enumerate(canonical):
        key = hashlib.blake2b(column.tobytes(), digest_size=16).digest()
        groups.setdefault(key, []).append(j)
    return [group for group in groups.values() if len(group) > 1]


def _differs(columns: np.ndarray) -> np.ndarray:
    """Return which rows of `columns` have two different observed values."""
    observed = ~np.isnan(columns)
    low = np.where(observed, columns, np.inf).min(axis=1)
    return low < np.where(observed, columns, -np.inf).max(axis=1)


def _empty_rows(values: np.ndarray) -> list[str]:
    empty = np.flatnonzero(np.isnan(values).all(axis=1)).tolist()
    if not empty or len(empty) == len(values):
        return []
    which = f"row{'s' if len(empty) > 1 else ''} {listing(empty)}"
    return [
        f"{which} (counting from 0): all values are missing; remove such rows, for "
        "example with data.dropna(how='all')"
    ]


def _missing(names: list[str], values: np.ndarray) -> list[str]:
    missing = np.isnan(values)
    total, share = missing.mean(), missing.mean(axis=0)
    columns = [names[j] for j in np.flatnonzero(share > MAX_MISSING_COLUMN)]
    found = []
    if total > MAX_MISSING_VALUES:
        found.append(f"{total:.0%} of the values are missing")
    if columns:
        found.append(f"more than {MAX_MISSING_COLUMN:.0%} is missing in {column_list(columns)}")
    if not found:
        return []
    return [
        f"{' and '.join(found)}: the edges there depend on the prior and on the assumption that "
        "values are missing at random; consider leaving out columns and rows with few observed values"
    ]


def dependent_columns(names: list[str], values: np.ndarray) -> list[str]:
    """Return the columns that take part in a linear dependence, up to rounding, of the complete rows."""
    complete = values[~np.isnan(values).any(axis=1)]
    if len(complete) <= values.shape[1]:
        return []
    correlation, kept = _correlation(complete)
    return [] if _is_definite(correlation) else [names[j] for j in kept[_dependent(correlation)]]


def _collinear(names: list[str], values: np.ndarray) -> list[str]:
    involved = dependent_columns(names, values)
    if not involved:
        return []
    return [
        f"{column_list(involved)}: at least one is a linear combination of the others, up to rounding, so "
        "their edges with one another depend on the prior, which keeps the posterior proper; "
        "consider removing totals, differences or a share that completes 100 %"
    ]


def _correlation(complete: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the correlations and the positions of the columns that vary in `complete`."""
    size = abs(complete).max(axis=0)
    scaled = complete / np.where(size > 0, size, 1.0)
    scaled -= scaled.mean(axis=0)
    norm = np.linalg.norm(scaled, axis=0)
    kept = np.flatnonzero(norm > ROUNDING)
    scaled = scaled[:, kept] / norm[kept]
    return scaled.T @ scaled, kept


def _is_definite(correlation: np.ndarray) -> bool:
    try:
        # A squared pivot is what a column adds to those before it.
        return np.diag(np.linalg.cholesky(correlation)).min() ** 2 > COLLINEAR
    except np.linalg.LinAlgError:
        return False


def _dependent(correlation: np.ndarray) -> np.ndarray:
    """Return the columns that take part in a linear dependence, by QR of a square root."""
    eigenvalues, vectors = np.linalg.eigh(correlation)
    root = np.linalg.qr(np.sqrt(np.maximum(eigenvalues, 0))[:, None] * vectors.T, mode="r")
    spare = np.diag(root) ** 2 <= COLLINEAR
    basis, *_ = np.linalg.lstsq(root[:, ~spare], root[:, spare])
    involved = spare.copy()
    involved[np.flatnonzero(~spare)] = (abs(basis) > 1e-4).any(axis=1)
    return np.flatnonzero(involved)
