"""Remarks on columns of numbers that may mean something else than they seem: sentences for a `TableWarning`."""

import numpy as np

from bayesstruct.data.errors import column_list, listing

__all__ = [
    "column_remarks",
    "copied_rows",
    "frequency_remarks",
    "group_remarks",
    "missing_code_remarks",
    "odd_codes",
    "time_remarks",
]

#: Whole numbers that stand for a missing value more often than for a measurement.
_NINES = [7, 8, 9, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 7777, 8888, 9997, 9998, 9999]
_NINES += [99999, 999999]
_INTEGERS = [-32768, 32767, -2147483648, 2147483647]  # ends of types
_CODES = [-1, *_NINES, *(-code for code in _NINES), *_INTEGERS]
_COUNT_NAMES = {"count", "counts", "freq", "freqs", "frequency", "frequencies", "n", "weight"}
#: Shares of the range of the other values by which a single code, and one that is repeated, is apart from them.
_APART, _APART_REPEATED = 0.5, 0.1
#: Most different whole numbers of a column of answers or small counts; rows for each of them.
_FEW, _ROWS_EACH = 11, 5
#: Absolute skewness beyond which a column is far from normal (an exponential column has 2).
_SKEW = 2.0
#: Share of rows that are copies from which on it is remarked upon.
_COPIES = 0.01
_ID_NAMES = {"id", "index", "row", "rownames", "row_id", "...1"}


def column_remarks(
    names: list[str], values: np.ndarray, discrete: str, *, normal: bool
) -> list[str]:
    """List columns that a model for continuous columns takes for something that they may not be.

    Parameters
    ----------
    names : list of str
    values : (n, p) array of float
        NaN where missing.
    discrete : str
        What can be used for columns that are not continuous.
    normal : bool
        Whether the model has normal columns.
    """
    codes = [odd_codes(column) for column in values.T]
    found = [
        missing_code_remarks(names, codes),
        _two_values(names, values, discrete),
        _few_values(names, values, codes, discrete),
        _counters(names, values),
        _dates(names, values),
        _skewed(names, values, codes) if normal else [],
    ]
    return [remark for remarks in found for remark in remarks]


def missing_code_remarks(
    names: list[str], codes: list[list[float]], remedy: str = "name them: missing_codes=[{codes}]"
) -> list[str]:
    """List columns with values that often stand for missing ones; `codes` as by :func:`odd_codes`."""
    odd = [(name, own) for name, own in zip(names, codes, strict=True) if own]
    if not odd:
        return []
    shown = ", ".join(f"{name!r} ({', '.join(f'{v:.15g}' for v in own)})" for name, own in odd[:10])
    more = f" and {len(odd) - 10} more columns" if len(odd) > 10 else ""
    every = sorted({v for _, own in odd for v in own})
    return [
        f"values that often stand for missing ones are read as measurements in {shown}{more}; if they mean "
        f"missing, {remedy.format(codes=', '.join(f'{v:.15g}' for v in every))}"
    ]


def copied_rows(values: np.ndarray) -> list[str]:
    """List what shows that rows of measurements are copies of others; NaN where missing.

    Nothing is said if most columns have few whole numbers: rows of answers that depend on each other are often equal.
    """
    import pandas as pd

    if 2 * sum(map(_is_scale, values.T)) > values.shape[1]:
        return []
    complete = values[~np.isnan(values).any(axis=1)]
    repeated = pd.DataFrame(complete).duplicated().to_numpy()
    copies, unique = int(repeated.sum()), complete[~repeated]
    if copies < max(2, _COPIES * len(values)) or len(unique) < 3:
        return []
    # Share of pairs of rows that are equal if columns are independent: rounded columns have ties.
    ties = [sum(k * (k - 1) / 2 for k in np.unique(v, return_counts=True)[1]) for v in unique.T]
    pairs = len(unique) * (len(unique) - 1) / 2
    chance = np.log((np.array(ties) + 1) / pairs).sum() + np.log(len(complete) ** 2 / 2)
    if chance > np.log(1e-3 * copies):
        return []
    return [
        f"{copies:,} of {len(values):,} rows are copies of others, and each counts as an observation; if the table was "
        "joined or read twice, drop them (data.drop_duplicates())"
    ]


def time_remarks(names: list[str], parts: list[np.ndarray]) -> list[str]:
    """List columns that are the time in every series: they grow by the same step."""
    found = []
    for j, name in enumerate(names if len(names) > 1 else ()):
        steps = [np.diff(part[:, j]) for part in parts if len(part) > 4]
        if steps and all((own > 0).all() and np.allclose(own, own[0]) for own in steps):
            found.append(name)
    if not found:
        return []
    return [
        f"{column_list(found)}: grows by the same step in every series and is read as one more variable; if it is the "
        "time, leave it out, or make it the index (data.set_index)"
    ]


def odd_codes(column: np.ndarray) -> list[float]:
    """Values of a column that are apart from all others and often stand for a missing value.

    Parameters
    ----------
    column : (n,) array of float
        NaN where missing.

    Returns
    -------
    list of float
        In ascending order: -999, -9, 99, ... and repeated zeros in a column of positive numbers.

    Examples
    --------
    >>> odd_codes(np.array([1.2, 0.3, -999.0, 0.7]))
    [-999.0]
    """
    seen, times = np.unique(column[np.isfinite(column)], return_counts=True)
    suspect = np.isin(seen, _CODES)
    # From the ends inwards: a code in the midst of the others is one of them.
    low, high = 0, len(seen)
    while low < high and suspect[low]:
        low += 1
    while high > low and suspect[high - 1]:
        high -= 1
    if high - low < 2:
        return []
    usual = seen[low:high]
    ends = [*range(low), *range(high, len(seen))]
    found = [float(seen[k]) for k in ends if _is_apart(seen[k], times[k], usual)]
    zeros = usual[0] == 0 and times[low] > 1 and len(usual) > 2
    return sorted([0.0, *found]) if zeros and _is_apart(0.0, times[low], usual[1:]) else found


def frequency_remarks(names: list[str], columns: list) -> list[str]:
    """List what shows that a table of states is one of frequencies: each row once, beside a column of counts.

    Parameters
    ----------
    names : list of str
    columns : list of narwhals series
    """
    at = [j for j, name in enumerate(names) if name.strip().lower() in _COUNT_NAMES]
    if len(at) != 1 or not columns[at[0]].dtype.is_numeric() or columns[at[0]].null_count():
        return []
    rest = list(zip(*(c.to_list() for j, c in enumerate(columns) if j != at[0]), strict=True))
    if len(set(rest)) < len(rest):
        return []
    name = names[at[0]]
    return [
        f"column {name!r} is read as one more variable, and every combination of the others is there once, as in a "
        f"table of frequencies; if {name!r} says how often a row was observed, give row_counts={name!r}"
    ]


def _is_apart(value, times, usual) -> bool:
    """Whether a value is too far from the others to be one of them."""
    low, high = usual[0], usual[-1]
    gap = low - value if value < low else value - high
    if value < 0 <= low and gap > 2:  # the only negative number
        return True
    if abs(value) < 10 and low < 0:  # columns around zero have such values
        return False
    share = _APART_REPEATED if times > 1 else _APART
    steps = np.diff(usual)
    return gap > share * (high - low) and gap > 2 * steps.max()


def _two_values(names, values, discrete) -> list[str]:
    pairs = {}
    for name, column in zip(names, values.T, strict=True):
        levels = np.unique(column[~np.isnan(column)])
        if len(levels) == 2 and (~np.isnan(column)).sum() > 2:
            pairs[name] = levels
    if not pairs:
        return []
    first = next(iter(pairs))
    shown = " and ".join(f"{level:g}" for level in pairs[first])
    other = "" if all(np.array_equal(v, pairs[first]) for v in pairs.values()) else f" in {first!r}"
    return [
        f"{column_list([*pairs])}: binary ({shown} only{other}), treated as continuous here; consider {discrete}"
    ]


def _few_values(names, values, codes, discrete) -> list[str]:
    if not (few := _of_few_values(names, values, codes)):
        return []
    return [
        f"{_with_levels(few)}, as of answers on a scale or small counts, treated as continuous here; consider {discrete}"
    ]


def group_remarks(names: list[str], values: np.ndarray, codes: list[list[float]]) -> list[str]:
    """List covariates that may number groups; `codes` as by :func:`odd_codes`."""
    if not (few := _of_few_values(names, values, codes)):
        return []
    return [
        f"{_with_levels(few)}, each step of which has the same effect; if they number groups, give one column for each "
        "group but one: pandas.get_dummies(data[column], drop_first=True)"
    ]


def _of_few_values(names, values, codes) -> dict:
    """Columns of three or more whole numbers that repeat, and these."""
    few = {}
    for name, column, odd in zip(names, values.T, codes, strict=True):
        kept = column[np.isfinite(column) & ~np.isin(column, odd)]
        levels = np.unique(kept)
        whole = (levels == np.floor(levels)).all()
        if whole and 2 < len(levels) <= _FEW and len(kept) >= _ROWS_EACH * len(levels):
            few[name] = levels
    return few


def _is_scale(column) -> bool:
    """Whether a column has few whole numbers."""
    levels = np.unique(column[np.isfinite(column)])
    return len(levels) <= _FEW and bool((levels == np.floor(levels)).all())


def _with_levels(few) -> str:
    first = next(iter(few))
    shown = listing([int(level) for level in few[first]], _FEW)
    return f"{column_list([*few])}: few whole numbers ({first!r}: {shown})"


def _counters(names, values) -> list[str]:
    steps = np.diff(values, axis=0)
    counts = (steps == 1).all(axis=0) & np.isin(values[0], (0, 1)) & (len(values) > 2)
    counts |= _identifies(names, values)
    if not counts.any():
        return []
    columns = [names[j] for j in np.flatnonzero(counts)]
    return [
        f"{column_list(columns)}: counts the rows, in this or another order; leave it out if it identifies or only "
        "numbers them (pandas.read_csv(..., index_col=0) does so with the first column of a file); if it is a variable, "
        f"such as the year of a row, keep it, as in data[{columns[0]!r}] / 10, of which this is not said"
    ]


def _identifies(names, values) -> np.ndarray:
    """Which columns hold other whole numbers in all rows: without gaps, or under the name of an identifier."""
    if len(values) <= 10:
        return np.zeros(len(names), bool)
    steps = np.diff(np.sort(values, axis=0), axis=0)  # NaN, at the end, makes a step of NaN
    whole = (values == np.floor(values)).all(axis=0)
    different, dense = whole & (steps > 0).all(axis=0), whole & (steps == 1).all(axis=0)
    if dense.all():  # ranks
        return np.zeros(len(names), bool)
    plain = [name.strip().lower() for name in names]
    named = [name in _ID_NAMES or name.startswith("unnamed:") for name in plain]
    return dense | (different & np.array(named))


def _dates(names, values) -> list[str]:
    """List columns of whole numbers such as 20240131."""
    seen = ~np.isnan(values)
    v = np.where(seen, values, 20240131)
    day, month, year = v % 100, v // 100 % 100, v // 10_000
    valid = (day >= 1) & (day <= 31) & (month >= 1) & (month <= 12) & (year >= 1900) & (year < 2100)
    found = (valid & (v == np.floor(v))).all(axis=0) & (seen.sum(axis=0) > 2)
    if not found.any():
        return []
    columns = [names[j] for j in np.flatnonzero(found)]
    return [
        f"{column_list(columns)}: dates as numbers such as {v[0, found][0]:.0f}, whose differences are no durations; "
        "make them days since the first one (pandas.to_datetime(..., format='%Y%m%d')), or leave them out"
    ]


def _skewed(names, values, codes) -> list[str]:
    skewed = {}
    for name, column, odd in zip(names, values.T, codes, strict=True):
        kept = column[np.isfinite(column) & ~np.isin(column, odd)]
        if len(kept) == 0:
            continue
        by_chance = 5.0 * np.sqrt(6.0 / len(kept))  # five standard deviations under normality
        if abs(skewness := _skewness(kept)) > max(_SKEW, by_chance):
            skewed[name] = skewness, kept.min() > 0
    if not skewed:
        return []
    first, (skewness, _) = next(iter(skewed.items()))
    logs = all(positive and value > 0 for value, positive in skewed.values())
    remedy = "take logarithms, as in np.log(data)" if logs else "take logarithms or ranks"
    return [
        f"{column_list([*skewed])}: far from normal, very skewed or with outliers (skewness of {first!r}: "
        f"{skewness:.1f}), and few large values determine the result; {remedy}, or correct the outliers"
    ]


def _skewness(column) -> float:
    """Third standardised moment; zero without more than two values."""
    scaled = column / abs(column).max()
    centred = scaled - scaled.mean()
    deviation = np.sqrt(np.mean(centred**2))
    if len(np.unique(column)) <= 2 or deviation < 1e-12:
        return 0.0
    return float(np.mean((centred / deviation) ** 3))
