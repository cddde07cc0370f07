"""Remarks on columns of numbers that may mean something else than they seem: sentences for a `TableWarning`."""

from collections.abc import Sequence

import numpy as np

from bayesstruct.data.arguments import is_number
from bayesstruct.data.errors import column_list, listing

__all__ = [
    "binary_remarks",
    "codes_option",
    "column_remarks",
    "copied_rows",
    "counter_remarks",
    "far_remarks",
    "frequency_remarks",
    "group_remarks",
    "looks_like_code",
    "missing_code_remarks",
    "number_remarks",
    "odd_codes",
    "one_or_list",
    "time_remarks",
]

#: Numbers that stand for a missing value more often than for a measurement.
_NINES = [7, 8, 9, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 7777, 8888, 9997, 9998, 9999]
_NINES += [99999, 999999]
_INTEGERS = [-32768, 32767, -2147483648, 2147483647]  # ends of types
_CODES = [-1, *_NINES, *(-code for code in _NINES), *_INTEGERS]
_HUGE = 1e15  # such as 1e20 and 9.96921e36, by which files of climate data are filled
_COUNT_NAMES = {"count", "counts", "freq", "freqs", "frequency", "frequencies", "n", "weight"}
#: Share of the range of the other values by which a code that occurs once is apart from them, and one below 10.
_APART, _APART_SMALL = 0.5, 1.0
#: Standard deviations of the others by which a repeated code is apart: from their mean, if they have negative values
#: too, and from the next one. Any repeated value is a code that is further away than the last one.
_AWAY, _AWAY_SMALL, _GAP, _ABSURD = 3.0, 5.0, 1.5, 100.0
#: Most different whole numbers of a column of answers or small counts; of a column of groups; rows for each of up to
#: five and of more, of which some may not have been seen.
_FEW, _FEW_GROUPS, _ROWS_EACH, _ROWS_OF_MORE = 7, 11, 5, 10
#: Absolute skewness beyond which a column is far from normal (an exponential column has 2), and skewness of its
#: quantiles, which outliers do not change (0.46).
_SKEW, _QUANTILE_SKEW = 2.0, 0.2
#: Distance of an outlier from the median, in standard deviations by the quartiles; one of 10,000 values of Student's t
#: with 4 degrees of freedom is 12 away.
_OUTLIER = 25.0
#: Share of rows that are copies from which on it is remarked upon.
_COPIES = 0.01
#: Standard deviations of the first table by which new rows are far outside of it: what looks like a code, any other
#: value, and the median of a column.
_FAR_CODE, _FAR, _FAR_ALL = 6.0, 30.0, 10.0
_SHOWN = 10  # columns in a remark
_ID_NAMES = {"id", "index", "row", "rownames", "row_id", "...1"}


def column_remarks(
    names: list[str], values: np.ndarray, discrete: str, *, normal: bool, tails: bool = True
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
        Whether the model has normal columns, or columns with t distributions.
    tails : bool
        Whether outliers determine the result.
    """
    codes = [odd_codes(column) for column in values.T]
    found = [
        missing_code_remarks(names, codes),
        binary_remarks(names, values, discrete),
        _few_values(names, values, codes, discrete),
        counter_remarks(names, values),
        _dates(names, values),
        _skewed(names, values, codes, tails) if normal else [],
    ]
    return [remark for remarks in found for remark in remarks]


def number_remarks(names: list[str], values: np.ndarray, normal: np.ndarray) -> list[str]:
    """List columns of numbers, of which some are normal and others count by their order, that may not be what they seem.

    Parameters
    ----------
    names : list of str
    values : (n, p) array of float
        NaN where missing.
    normal : (p,) array of bool
    """
    codes = [odd_codes(column) for column in values.T]
    chosen = np.flatnonzero(normal)
    own = [names[j] for j in chosen], values[:, chosen], [codes[j] for j in chosen]
    return [
        *missing_code_remarks(names, codes),
        *counter_remarks(names, values),
        *_dates(names, values),
        *_skewed(*own, True),
    ]


def missing_code_remarks(
    names: list[str],
    codes: list[list[float]],
    remedy: str = "leave them empty or name them: {codes}",
) -> list[str]:
    """List columns with values that often stand for missing ones; `codes` as by :func:`odd_codes`."""
    odd = {name: own for name, own in zip(names, codes, strict=True) if own}
    if not odd:
        return []
    first = list(odd.items())[:_SHOWN]
    shown = ", ".join(f"{name!r} ({', '.join(map(_short, own))})" for name, own in first)
    more = f" and {len(odd) - _SHOWN} more columns" if len(odd) > _SHOWN else ""
    return [
        f"values that often stand for missing ones are read as measurements in {shown}{more}; if they mean "
        f"missing, {remedy.format(codes=codes_option(odd))}"
    ]


def codes_option(codes: dict[str, list]) -> str:
    """Return the option `missing_codes` that names these values of columns.

    Examples
    --------
    >>> codes_option({"age": [99.0], "b": [-9.0, -8.0]})
    "missing_codes={'age': 99, 'b': [-9, -8]}"
    """
    each = [f"{name!r}: {one_or_list(own)}" for name, own in list(codes.items())[:_SHOWN]]
    return f"missing_codes={{{', '.join(each)}{', ...' if len(codes) > _SHOWN else ''}}}"


def one_or_list(codes: list) -> str:
    """Return one code as it is written, or several as a list."""
    shown = ", ".join(map(_short, codes))
    return shown if len(codes) == 1 else f"[{shown}]"


def _short(code) -> str:
    return f"{code:.15g}" if is_number(code) else repr(code)


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
    low, high = _usual_range(seen, times)
    if high - low < 2:
        return []
    usual, counts = seen[low:high], times[low:high]
    found = []
    for ends in (range(low), range(high, len(seen))):
        apart = [_is_apart(seen[k], times[k], usual, counts) for k in ends]
        found += [float(seen[k]) for k in ends] if any(apart) else []
    zeros = usual[0] == 0 and times[low] > 1 and len(usual) > 2
    zeros = zeros and _is_apart(0.0, times[low], usual[1:], counts[1:])
    return sorted([0.0, *found]) if zeros else found


def looks_like_code(values: np.ndarray) -> np.ndarray:
    """Which values often stand for a missing one, wherever they are: -999, 9, 99.99, 1e20."""
    nines = [len(digits := _digits(v)) > 2 and set(digits) == {"9"} for v in values]
    return np.isin(values, _CODES) | (abs(values) >= _HUGE) | np.array(nines, bool)


def _digits(value) -> str:
    """Digits of a number, up to those that 32 bits hold."""
    return f"{abs(value):.7g}".replace(".", "")


def _usual_range(seen, times) -> tuple[int, int]:
    """First and last position, exclusive, of the values between the codes at both ends."""
    suspect = looks_like_code(seen)
    low, high = 0, len(seen)
    # From the ends inwards: a code in the midst of the others is one of them.
    while low < high and suspect[low]:
        low += 1
    while high > low and suspect[high - 1]:
        high -= 1
    if high - low > 3:
        low += _is_absurd(seen[low], times[low], seen[low + 1 : high], times[low + 1 : high])
        end = high - 1
        high -= _is_absurd(seen[end], times[end], seen[low:end], times[low:end])
    # And from the others outwards: one that follows them, as 8 follows 7, is one of them too.
    while low > 0 and high - low > 1 and _follows(seen[low - 1], seen[low:high]):
        low -= 1
    while high < len(seen) and high - low > 1 and _follows(seen[high], seen[low:high]):
        high += 1
    return low, high


def _gap(value, usual):
    return usual[0] - value if value < usual[0] else value - usual[-1]


def _follows(value, usual) -> bool:
    steps = 2 if value < 0 <= usual[0] else 2 * np.diff(usual).max()  # 2: the only negative number
    return _gap(value, usual) <= steps


def _is_absurd(value, times, usual, counts) -> bool:
    """Whether a value that occurs more than once is many standard deviations from the others."""
    if times < 2 or len(usual) < 3:
        return False
    mean, deviation = _moments(usual, counts)
    return min(abs(value - mean), _gap(value, usual)) > _ABSURD * deviation


def _moments(values, counts):
    mean = np.average(values, weights=counts)
    return mean, np.sqrt(np.average((values - mean) ** 2, weights=counts))


def far_remarks(
    names: Sequence[str],
    values: np.ndarray,
    location: np.ndarray,
    scale: np.ndarray,
    first: str = "the first table",
) -> list[str]:
    """List columns of new rows that are far outside of the first table, as codes and values in other units are.

    Parameters
    ----------
    names : sequence of str
    values : (m, p) array of float
        New rows, NaN where missing.
    location, scale : (p,) array of float
        Means and standard deviations of the first table.
    first : str
        Its name in messages.
    """
    codes, units = {}, {}
    for j, name in enumerate(names):
        own = values[np.isfinite(values[:, j]), j]
        away = abs(own - location[j]) / scale[j]
        coded = looks_like_code(own) & (away > _FAR_CODE)
        if coded.any():
            codes[name] = np.unique(own[coded]).tolist()
        if (rest := own[~coded]).size:
            away = away[~coded]
            if away.max() > _FAR or np.median(away) > _FAR_ALL:
                units[name] = rest[away.argmax()], location[j], scale[j]
    found = []
    if codes:
        shown = ", ".join(f"{n!r} ({', '.join(map(_short, own))})" for n, own in codes.items())
        found.append(
            f"new rows: values that often stand for missing ones are read as measurements, far outside of {first}, in {shown}; "
            f"if they mean missing, leave them empty, or name them in the model: {codes_option(codes)}"
        )
    if units:
        shown = ", ".join(
            f"{n!r} ({v:.6g}; there the mean is {m:.4g} and the standard deviation {d:.4g})"
            for n, (v, m, d) in list(units.items())[:_SHOWN]
        )
        found.append(
            f"new rows: values are far outside of {first} in {shown}; give new rows in the units of the first table, and "
            "correct errors"
        )
    return found


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


def _is_apart(value, times, usual, counts) -> bool:
    """Whether a value is too far from the others to be one of them."""
    low, high = usual[0], usual[-1]
    gap = _gap(value, usual)
    if _follows(value, usual):
        return False
    if value < 0 <= low:
        return True
    around_zero = abs(value) < 10 and low < 0
    if times == 1:
        share = _APART_SMALL if abs(value) < 10 else _APART
        return not around_zero and gap >= share * (high - low)
    mean, deviation = _moments(usual, counts)
    often = times > 2 * counts.max()  # a value that no measurement repeats as often
    away = _AWAY_SMALL if around_zero and not often else _AWAY
    return abs(value - mean) > away * deviation and gap > _GAP * deviation


def binary_remarks(names: Sequence[str], values: np.ndarray, discrete: str) -> list[str]:
    """List columns of two values, for which `discrete` is recommended."""
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
    few = _of_few_values(names, values, codes, _FEW)
    few = {name: levels for name, levels in few.items() if np.ptp(levels) < _FEW}
    if not few:
        return []
    return [
        f"{_with_levels(few)}, as of answers on a scale or small counts, treated as continuous here; consider {discrete}"
    ]


def group_remarks(names: list[str], values: np.ndarray, codes: list[list[float]]) -> list[str]:
    """List covariates that may number groups; `codes` as by :func:`odd_codes`."""
    if not (few := _of_few_values(names, values, codes, _FEW_GROUPS)):
        return []
    return [
        f"{_with_levels(few)}, each step of which has the same effect; if they number groups, give one column for each "
        "group but one: pandas.get_dummies(data[column], drop_first=True)"
    ]


def _of_few_values(names, values, codes, most) -> dict:
    """Columns of three or more whole numbers that repeat, and these."""
    few = {}
    for name, column, odd in zip(names, values.T, codes, strict=True):
        kept = column[np.isfinite(column) & ~np.isin(column, odd)]
        levels = np.unique(kept)
        whole = (levels == np.floor(levels)).all()
        each = _ROWS_EACH if len(levels) <= 5 else _ROWS_OF_MORE
        if whole and 2 < len(levels) <= most and len(kept) >= each * len(levels):
            few[name] = levels
    return few


def _is_scale(column) -> bool:
    """Whether a column has few whole numbers."""
    levels = np.unique(column[np.isfinite(column)])
    return len(levels) <= _FEW and bool((levels == np.floor(levels)).all())


def _with_levels(few) -> str:
    first = next(iter(few))
    shown = listing([int(level) for level in few[first]], _FEW_GROUPS)
    return f"{column_list([*few])}: few whole numbers ({first!r}: {shown})"


def counter_remarks(names: Sequence[str], values: np.ndarray) -> list[str]:
    """List columns that count or identify the rows."""
    with np.errstate(over="ignore"):  # differences of numbers near the largest one
        steps = np.diff(values, axis=0)
    counts = (steps == 1).all(axis=0) & np.isin(values[0], (0, 1)) & (len(values) > 2)
    counts |= _identifies(names, values)
    if not counts.any():
        return []
    columns = [names[j] for j in np.flatnonzero(counts).tolist()]
    return [
        f"{column_list(columns)}: counts the rows, in this or another order; leave it out if it identifies or only "
        "numbers them (pandas.read_csv(..., index_col=0) does so with the first column of a file); if it is a variable, "
        f"such as the year of a row, keep it (data[{columns[0]!r}] / 10 is the same variable without this warning)"
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
    near = (v.min(axis=0, initial=np.inf) >= 19000101) & (v.max(axis=0, initial=0) < 21000000)
    if not near.any():  # without divisions, which take longest
        return []
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


def _skewed(names, values, codes, with_tails) -> list[str]:
    skewed, tails = {}, []
    for name, column, odd in zip(names, values.T, codes, strict=True):
        kept = column[np.isfinite(column) & ~np.isin(column, odd)]
        if len(kept) == 0:
            continue
        skewness = _skewness(kept)
        by_chance = 5.0 * np.sqrt(6.0 / len(kept))  # five standard deviations under normality
        if abs(skewness) > max(_SKEW, by_chance) and _is_lopsided(kept, np.sign(skewness)):
            skewed[name] = skewness, kept.min() > 0
        elif with_tails and _has_outliers(kept):
            tails.append(name)
    found = []
    if skewed:
        first, (skewness, _) = next(iter(skewed.items()))
        logs = all(positive and value > 0 for value, positive in skewed.values())
        remedy = "take logarithms, as in np.log(data)" if logs else "take logarithms or ranks"
        found = [
            f"{column_list([*skewed])}: far from normal, very skewed (skewness of {first!r}: {skewness:.1f}), and few large "
            f"values determine the result; {remedy}, or correct outliers"
        ]
    if tails:
        found.append(
            f"{column_list(tails)}: outliers or heavy tails, and few extreme values determine the result; correct the outliers, "
            "or take ranks"
        )
    return found


def _is_lopsided(column, side) -> bool:
    """Whether the tenth and the ninetieth percentile are clearly not symmetric about the median."""
    low, middle, high = np.quantile(column, [0.1, 0.5, 0.9])
    if low == high:
        return True
    by_chance = 4.0 / np.sqrt(len(column))  # three standard errors under normality
    return side * (low + high - 2 * middle) > max(_QUANTILE_SKEW, by_chance) * (high - low)


def _has_outliers(column) -> bool:
    """Whether there is a value very far from the median, measured by the quartiles."""
    low, middle, high = np.quantile(column, [0.25, 0.5, 0.75])
    deviation = (high - low) / 1.349  # the standard deviation of a normal column
    return len(column) >= 20 and deviation > 0 and abs(column - middle).max() > _OUTLIER * deviation


def _skewness(column) -> float:
    """Third standardised moment; zero without more than two values."""
    scaled = column / abs(column).max()
    centred = scaled - scaled.mean()
    deviation = np.sqrt(np.mean(centred**2))
    if len(np.unique(column)) <= 2 or deviation < 1e-12:
        return 0.0
    return float(np.mean((centred / deviation) ** 3))
