"""Predictive checks of tables of states: pair tables, item-rest correlations, sum scores."""

import warnings

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.tables.codings import StateLevels
from bayesstruct.graphs.replicates import constants_of, ends_of, replicated_tables

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = [
    "predictive_item_rest",
    "predictive_pair_tables",
    "predictive_sum_scores",
    "state_labels",
]

_GROUP = "posterior_predictive"
#: What sums of states are that are no numbers.
FROM_ZERO = "states that are no whole numbers count from 0, in the order of their column"


def predictive_pair_tables(
    idata: "xr.DataTree", *, prob: float = 0.95, draws: int = 500, group: str = _GROUP
) -> "pd.DataFrame":
    """Compare the frequency of each pair of states of each pair of columns with replicated tables.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.ising` or :func:`bayesstruct.models.pairwise_mrf` with
        ``posterior_predictive`` from ``pm.sample_posterior_predictive``.
    prob : float
        Probability of the central interval.
    draws : int
        Number of replicated tables used, spread evenly over the draws.
    group : str
        Group of the replicated tables; ``"prior_predictive"`` checks the prior.

    Returns
    -------
    pandas.DataFrame
        One row for each pair of states of each pair of columns: ``source, target, source_state, target_state`` (counted from 0),
        ``observed`` (relative frequency), ``mean, low, high`` of the replicated ones, ``p_value``
        (two-sided), ``inside``.

    Raises
    ------
    ValueError
        If there are no replicated tables, or columns are numbers and not states.

    Notes
    -----
    Rows in which one of the two values is missing are left out, also of replicated tables. Columns that
    are never observed together have no frequencies (NaN).

    References
    ----------
    Gelman, A., Meng, X.-L. and Stern, H. (1996). Posterior predictive assessment of model fitness.
    *Statistica Sinica* 6, 733-760.
    """
    table, replicated, names = _tables_of_states(idata, group, draws)
    states = np.maximum(np.nanmax(table, axis=0), replicated.max(axis=(0, 1))).astype(int) + 1
    labels = _labels(states)
    start = np.concatenate([[0], np.cumsum(states)])
    one, other = start[labels[:, 0]] + labels[:, 2], start[labels[:, 1]] + labels[:, 3]

    def frequencies(values):
        seen = ~np.isnan(values)
        rows, columns = np.nonzero(seen)
        hot = np.zeros((len(values), start[-1]), "float32")  # counts are exact up to 2^24
        hot[rows, start[columns] + values[seen].astype(int)] = 1.0
        both = seen.astype("float32").T @ seen.astype("float32")
        counts = (hot.T @ hot)[one, other].astype("float64")
        with np.errstate(invalid="ignore"):  # 0 / 0
            return counts / both[labels[:, 0], labels[:, 1]]

    summary = _compare(frequencies, table, replicated, prob)
    summary.insert(0, "source", names[labels[:, 0]])
    summary.insert(1, "target", names[labels[:, 1]])
    summary.insert(2, "source_state", labels[:, 2])
    summary.insert(3, "target_state", labels[:, 3])
    return summary


def predictive_item_rest(
    idata: "xr.DataTree", *, prob: float = 0.95, draws: int = 500, group: str = _GROUP
) -> "pd.DataFrame":
    """Compare item-rest correlations with those of replicated tables.

    An item-rest correlation is that of a column with the sum of all others: how closely an item is related to
    the rest of a questionnaire.

    Parameters
    ----------
    idata, prob, draws, group
        As in `predictive_pair_tables`.

    Returns
    -------
    pandas.DataFrame
        One row for each column: ``node``, and the summaries of `predictive_pair_tables`.

    Raises
    ------
    ValueError
        If there are no replicated tables or no complete row, or columns are numbers and not states.

    Notes
    -----
    Only complete rows count. States are the numbers that they have in the table, as in `predictive_sum_scores`. A
    column that is constant in a replicated table has no correlation
    there, and that table is left out for it; if it is constant in all of them, the numbers are NaN.
    """
    table, replicated, names = _complete_rows(idata, group, draws)
    numbers, _ = _numbers(idata, table, replicated, names)
    table, replicated = (_as_numbers(codes, numbers) for codes in (table, replicated))
    summary = _compare(_item_rest, table, replicated, prob)
    summary.insert(0, "node", names)
    return summary


def predictive_sum_scores(
    idata: "xr.DataTree", *, prob: float = 0.95, draws: int = 500, group: str = _GROUP
) -> "pd.DataFrame":
    """Compare the distribution of the sum of all states of a row with replicated tables.

    Parameters
    ----------
    idata, prob, draws, group
        As in `predictive_pair_tables`.

    Returns
    -------
    pandas.DataFrame
        One row for each possible sum: ``score``, and the summaries of `predictive_pair_tables` of
        its relative frequency. Scores are sums of the values in the table, if the states of all columns are whole numbers
        (twelve items from 1 to 5: 12 to 60); otherwise states count from 0 in the order of each column, as
        ``attrs["notes"]`` says.

    Raises
    ------
    ValueError
        If there are no replicated tables or no complete row, or columns are numbers and not states.

    Notes
    -----
    Only complete rows count.
    """
    table, replicated, names = _complete_rows(idata, group, draws)
    numbers, own = _numbers(idata, table, replicated, names)
    low, high = (sum(int(end(column)) for column in numbers) for end in (min, max))
    step = max(int(np.gcd.reduce(np.concatenate([np.diff(column) for column in numbers]))), 1)

    def scores(values):
        totals = (values.sum(axis=1).astype(int) - low) // step
        return np.bincount(totals, minlength=(high - low) // step + 1) / len(totals)

    table, replicated = (_as_numbers(codes, numbers) for codes in (table, replicated))
    summary = _compare(scores, table, replicated, prob)
    summary.insert(0, "score", np.arange(low, high + 1, step))
    summary.attrs["notes"] = [] if own else [FROM_ZERO]
    return summary


def state_labels(idata: "xr.DataTree") -> dict[str, list[str]]:
    """Labels of the states of each column, in the order of their codes; none if they are not recorded."""
    constants = constants_of(idata)
    if not StateLevels.is_in(constants):
        return {}
    # Constants without a dimension over columns do not have the coordinate.
    groups = ("constant_data", "observed_data", "posterior")
    group = next(g for g in groups if g in idata.children and "node" in idata[g].coords)
    names = [str(name) for name in idata[group].coords["node"].values]
    levels = StateLevels.coding(constants, names).levels
    return {name: [str(state) for state in own] for name, own in zip(names, levels, strict=True)}


def _numbers(idata, table, replicated, names) -> tuple[list[np.ndarray], bool]:
    """Return the number of each state of each column, and whether it is that of the table of the user."""
    labels = state_labels(idata)
    own = [labels.get(str(name), [""]) for name in names]
    if all(_is_whole(label) for column in own for label in column):
        return [np.array([int(float(label)) for label in column]) for column in own], True
    states = np.maximum(table.max(axis=0), replicated.max(axis=(0, 1))).astype(int) + 1
    return [np.arange(number) for number in states], False


def _is_whole(label: str) -> bool:
    try:
        return float(label).is_integer()
    except ValueError:
        return False


def _as_numbers(codes: np.ndarray, numbers: list[np.ndarray]) -> np.ndarray:
    """Numbers of states in the place of their codes, (..., columns)."""
    columns = np.moveaxis(codes.astype(int), -1, 0)
    return np.stack([own[column] for own, column in zip(numbers, columns, strict=True)], axis=-1)


def _tables_of_states(idata, group, draws):
    """Tables of `replicated_tables`; raises if they hold numbers that are no states."""
    table, replicated, names = replicated_tables(idata, group, draws)
    seen = table[~np.isnan(table)]
    if ((seen < 0) | (seen % 1 != 0)).any():
        raise ValueError(
            "the columns of this result are numbers and not states: bs.predictive_correlations compares their correlations"
        )
    return table, replicated, names


def _complete_rows(idata, group, draws):
    """Tables without incomplete rows."""
    table, replicated, names = _tables_of_states(idata, group, draws)
    complete = ~np.isnan(table).any(axis=1)
    if not complete.any():
        raise ValueError(
            "no row of the table is complete: look at pairs of columns with predictive_pair_tables"
        )
    return table[complete], replicated[:, complete], names


def _compare(statistic, table, replicated, prob):
    import pandas as pd

    missing = np.isnan(table)
    actual = statistic(table)
    simulated = np.array([statistic(np.where(missing, np.nan, t)) for t in replicated])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice|Mean of empty slice")  # NaN stays NaN
        low, high = np.nanquantile(simulated, ends_of(prob), axis=0)
        mean = np.nanmean(simulated, axis=0)
    known = ~np.isnan(simulated)
    count = np.maximum(known.sum(axis=0), 1)
    above = (simulated >= actual).sum(axis=0) / count
    below = (simulated <= actual).sum(axis=0) / count
    least = np.minimum(above, below)
    return pd.DataFrame(
        {
            "observed": actual,
            "mean": mean,
            "low": low,
            "high": high,
            # Frequencies are discrete: a replication may equal what was observed.
            "p_value": np.where(known.any(axis=0), np.minimum(1.0, 2.0 * least), np.nan),
            "inside": (low <= actual) & (actual <= high),
        }
    )


def _labels(states):
    """Both columns, and a state of each, for every pair of states of all pairs of columns."""
    parts = []
    for a, b in zip(*np.triu_indices(len(states), 1), strict=True):
        cells = np.indices((states[a], states[b])).reshape(2, -1).T
        parts.append(np.column_stack([np.full_like(cells, (a, b)), cells]))
    return np.concatenate(parts)


def _item_rest(values):
    centred = values - values.mean(axis=0)
    rest = centred.sum(axis=1, keepdims=True) - centred
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.sqrt((centred**2).sum(axis=0) * (rest**2).sum(axis=0))
        return (centred * rest).sum(axis=0) / scale
