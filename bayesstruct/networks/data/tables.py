"""Tables of Bayesian networks: checked for their local scores, and which of their values were set."""

import warnings

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import is_missing
from bayesstruct.data.checks import dependent_columns
from bayesstruct.data.errors import TableError, column_list, count, listing, warn
from bayesstruct.data.labels import as_frame, row_index, without_mask
from bayesstruct.data.names import label_text
from bayesstruct.data.states import MAX_LEVELS, StateTable
from bayesstruct.data.table import Table
from bayesstruct.networks.data.mixed_tables import MixedTable

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = [
    "CONTINUOUS_SCORES",
    "DISCRETE_OR_MIXED",
    "NetworkTable",
    "check_row_labels",
    "known_interventions",
    "network_table",
]

#: Scores of columns that are numbers; the others are of columns with states.
CONTINUOUS_SCORES = ("bge", "gaussian")


_IMPUTES = "bayesstruct.models.bayesian_network with the score 'bge', 'bdeu' or 'mixed'"
_DISCRETE = 'score="bdeu", for which all columns are discrete'
#: What to use for columns that hold no numbers, where there is a score for columns of both kinds.
DISCRETE_OR_MIXED = f'{_DISCRETE}, or score="mixed", which has numbers and states in one graph'


@dataclass(frozen=True, eq=False)
class NetworkTable:
    """A checked table, the kind of its local scores, and which of its values were set.

    Attributes
    ----------
    score : str
        Kind of the local scores; ``"gaussian"`` or ``"multinomial"`` where ``"bic"`` was asked for.
    table : Table, StateTable or MixedTable
    was_set : (n, d) bool array
        True where a value was set from outside.
    """

    score: str
    table: Any
    was_set: np.ndarray

    @property
    def continuous(self) -> bool:
        """Whether the columns are numbers, not states."""
        return self.score in CONTINUOUS_SCORES


def network_table(
    data: "pd.DataFrame | ArrayLike",
    score: str,
    interventions: "pd.DataFrame | ArrayLike | None" = None,
    *,
    incomplete: bool = False,
    imputes: str = _IMPUTES,
    discrete: str = _DISCRETE,
    max_parents: float | None = None,
    states: "dict | list | None" = None,
    counted: bool = False,
    kinds: "dict | None" = None,
) -> NetworkTable:
    """Check a table, and which of its values were set from outside.

    Parameters
    ----------
    data : DataFrame or array_like
    score : str
        Kind of the local scores, which decides on the type of the columns; or ``"bic"``, which is
        ``"multinomial"`` for text, booleans and categories and ``"gaussian"`` for numbers.
    interventions : (n, d) array_like or DataFrame of bool, optional
    incomplete : bool
        Whether values may be missing.
    imputes : str
        The model that imputes missing values, for the message of the error.
    discrete : str
        What to use for columns that hold no numbers, for messages.
    max_parents : float, optional
        Maximum number of parents of a column; under ``"gaussian"`` columns that so many determine
        exactly are then refused.
    states : list or dict of lists, optional
        Declared states, see :meth:`bayesstruct.data.StateTable.read`.
    counted : bool
        Whether rows stand there as often as they were counted.
    kinds : dict, optional
        Families of columns under ``"mixed"``, see :meth:`bayesstruct.networks.data.mixed_tables.MixedTable.read`.

    Returns
    -------
    NetworkTable

    Raises
    ------
    TableError
        If the table cannot be used.
    ValueError
        If `interventions` does not fit the table; for ``"bic"`` if columns of few whole numbers may be
        numbers or states.

    Warns
    -----
    TableWarning
        What tables of this kind warn about, and if a column seems to say which columns were set.
    """
    unsure = score == "bic"
    if unsure:
        score = "gaussian" if _holds_numbers(data) else "multinomial"
    if kinds is not None and score != "mixed":
        raise ValueError(f"`kinds` belongs to the score 'mixed', not to {score!r}; leave it out")
    if states is not None and score == "mixed":
        raise ValueError(
            "`states` declares states for the score 'bdeu'; under 'mixed' declare those of a column by categories, in pandas "
            "with pandas.Categorical(data[column], [...])"
        )
    if states is not None and score in CONTINUOUS_SCORES:
        raise ValueError(
            f"`states` declares states, and the score {score!r} is for columns of numbers; use 'bdeu'"
        )
    quiet = score == "gaussian" and max_parents is not None
    table: Any
    if score == "mixed":
        table = MixedTable.read(data, kinds=kinds, counted=counted)
        _warn_about_targets(table)
    else:
        table = _read(data, score, states, quiet=quiet, counted=counted, discrete=discrete)
    if score in ("multinomial", "logistic"):
        table.refuse_unseen(
            f"under the score {score!r} states that never occur have probability 0; use the score 'bdeu', under "
            "which they have a prior, or leave these states out"
        )
    if unsure:
        _refuse_ambiguous(table)
    if table.missing.any() and not incomplete:
        columns = [table.names[j] for j in np.flatnonzero(table.missing.any(axis=0))]
        raise TableError(
            f"{column_list(columns)}: values are missing, and the score {score!r} needs complete rows "
            f"here; drop these rows (data.dropna()) or columns, or use {imputes}, which imputes them"
        )
    if score == "logistic":
        table.check_binary(
            "logistic regressions explain two: merge states, or use the score 'bdeu'"
        )
    was_set = known_interventions(interventions, table)
    check_row_labels(data, interventions)
    if score == "gaussian" and max_parents is not None:
        _check_regressions(table, was_set, max_parents)
    return NetworkTable(score, table, was_set)


def _holds_numbers(data):
    """Whether all values of a table have a numeric type; booleans have not."""
    if not isinstance(data, list | tuple):
        return np.asarray(data).dtype.kind in "iuf"
    rows = [row for row in data if np.iterable(row) and not isinstance(row, str)]
    kinds = {type(value) for row in rows for value in row}
    return len(rows) == len(data) and all(
        issubclass(kind, Real | np.number) and kind is not bool for kind in kinds
    )


def _refuse_ambiguous(table):
    """Refuse to guess whether whole numbers are numbers or states."""
    if isinstance(table, StateTable):
        whole = sum(all(type(level) is int for level in own) for own in table.levels)
    else:
        columns = (np.unique(column[~np.isnan(column)]) for column in table.values.T)
        few = [len(seen) <= MAX_LEVELS and (seen == np.floor(seen)).all() for seen in columns]
        whole = table.p if all(few) else 0
    if whole:
        raise ValueError(
            f"{count(whole, 'column')} of few whole numbers may hold states or numbers: say "
            "score='multinomial' or score='gaussian' instead of 'bic'"
        )


def known_interventions(
    interventions: "pd.DataFrame | ArrayLike | None", table: Table | StateTable | MixedTable
) -> np.ndarray:
    """Check which values of a table were set from outside.

    Parameters
    ----------
    interventions : (n, d) array_like or DataFrame of bool, or None
    table : Table, StateTable or MixedTable

    Returns
    -------
    (n, d) bool array

    Raises
    ------
    TableError
        If a value that was set is missing, or a column unknown.
    ValueError
        If the mask does not fit the table.
    """
    was_set = _intervention_mask(interventions, table)
    _refuse_missing(table, was_set)
    if was_set.all():
        warn(
            "`interventions` says that all values of all columns were set from outside, so that the table tells nothing of any arc: is "
            "true where it should be false? (~interventions)"
        )
    return was_set


def _refuse_missing(table, was_set):
    """Refuse values that were set and are missing."""
    if not (lost := was_set & table.missing).any():
        return
    row, column = np.argwhere(lost)[0]
    columns = [table.names[j] for j in np.flatnonzero(lost.any(axis=0))]
    raise TableError(
        f"{column_list(columns)}: values that were set are missing (the first in row {row}, counting "
        f"from 0, of {table.names[column]!r}); the value that a column was set to must be known: fill "
        "it in, or drop the row"
    )


def _read(data, score, states, *, quiet, counted, discrete):
    """Read a table; if `quiet`, without the remark on linear relations, which is about priors."""
    if score not in CONTINUOUS_SCORES:
        table = StateTable.read(data, states=states)
        _warn_about_targets(table)
        return table
    with warnings.catch_warnings():
        if quiet:
            warnings.filterwarnings("ignore", ".*is a linear combination")
        return Table.continuous(data, discrete=discrete, counted=counted)


def _warn_about_targets(table):
    """Say which columns have names of other columns as states (one more may be "none")."""
    for name, levels in zip(table.names, table.levels, strict=True):
        targets = [s for s in levels if isinstance(s, str) and s != name and s in table.names]
        if targets and len(targets) >= len(levels) - 1:
            warn(
                f"column {name!r} has names of other columns as states ({listing(targets)}): if it says "
                "which column was set in each row, drop it from the table and give `interventions`"
            )


def _check_regressions(table, mask, most):
    """Refuse columns whose likelihood has no bound, since parents leave no residual."""
    most, known = min(most, table.p - 1), {}
    for name, own, free in zip(table.names, table.values.T, ~mask.T, strict=True):
        if not free.any():
            continue
        _check_column(name, own[free], most, "" if free.all() else " in which it was not set")
        rows = free.tobytes()
        if rows not in known:
            known[rows] = _relation(table.names, table.values[free])
        involved, fewest = known[rows]
        if name in involved and fewest <= most:
            raise TableError(
                f"{column_list(involved)} are in an exact linear relation, under which the likelihood has "
                "no bound: drop one of them, or use score='bge'"
            )


def _check_column(name, column, most, where):
    n = len(column)
    if np.ptp(column) <= 1e-12 * np.abs(column).max():
        raise TableError(
            f"column {name!r} is constant in the {count(n, 'row')}{where}: its likelihood has no bound; "
            "drop the column, or use score='bge'"
        )
    if n <= most + 1:
        raise TableError(
            f"column {name!r} has {count(n, 'row')}{where}, too few for up to {most} parents, which then "
            f"leave no residual; set max_parents={n - 2} or less, or use score='bge'"
        )


def _relation(names, values):
    """Columns in exact linear relations, and the fewest parents that may leave no residual."""
    involved = dependent_columns(list(names), values)
    if not involved:
        return [], 0
    columns = values[:, [names.index(name) for name in involved]]
    z = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    rank = np.linalg.matrix_rank(z, tol=1e-5 * np.sqrt(len(z)))
    return involved, len(involved) - 1 if rank == len(involved) - 1 else 1


def _intervention_mask(interventions, table):
    """(n, d) bool from a mask or a DataFrame of one."""
    if interventions is None:
        return np.zeros((table.n, table.p), bool)
    interventions = as_frame(interventions)
    _refuse_names_of_columns(interventions)
    if hasattr(interventions, "columns"):
        given = interventions
        if repeated := _repeated(map(label_text, given.columns)):
            raise TableError(f"`interventions` has {column_list(repeated)} more than once")
        labels = {label_text(label): label for label in given.columns}
        if unknown := [name for name in labels if name not in table.names]:
            raise TableError(
                f"`interventions` has the unknown {column_list(unknown)}; the columns are {listing(table.names)}"
            )
        interventions = np.zeros((len(given), table.p), bool)
        for name, label in labels.items():
            interventions[:, table.names.index(name)] = _true_or_false(given[label], name)
    mask = _true_or_false(interventions)
    if mask.shape != (table.n, table.p):
        raise ValueError(
            f"`interventions` has shape {mask.shape}; give a true or false for each value of the table, "
            f"{(table.n, table.p)}"
        )
    return mask


def _refuse_names_of_columns(interventions):
    """Refuse names in place of a mask, one for all rows or one for each, and a dict of columns."""
    if isinstance(interventions, Mapping):
        raise TypeError("`interventions` is a dict: pass pandas.DataFrame(interventions)")
    if isinstance(interventions, str):
        raise TypeError(
            "`interventions` is true or false for each value of the table, not the name of a column: for a column that was set in "
            f"all rows pass pandas.DataFrame({{{interventions!r}: True}}, index=data.index)"
        )
    values = None if hasattr(interventions, "columns") else np.asarray(interventions, object)
    if values is not None and values.ndim == 1 and any(isinstance(v, str) for v in values):
        raise TypeError(
            "`interventions` is true or false for each value of the table, not the name of the column that was set in each row: pass "
            "pandas.DataFrame({name: target == name for name in data.columns}), target being these names"
        )


def _repeated(names):
    return sorted(name for name, times in Counter(names).items() if times > 1)


def _true_or_false(values, column=None):
    """Array of bool from one of bool, or of 0 and 1."""
    array = np.asarray(without_mask(values))
    if array.dtype != bool and not all(_is_truth(value) for value in array.ravel().tolist()):
        where = "" if column is None else f" of {column!r}"
        raise ValueError(
            f"`interventions`{where} must be true or false in each row; missing values and text are neither"
        )
    return array.astype(bool)


def _is_truth(value):
    """Whether a value is true, false, 0 or 1; pandas' missing value cannot be compared."""
    return not is_missing(value) and not isinstance(value, str) and value in (0, 1)


def check_row_labels(data: object, interventions: object) -> None:
    """Refuse a mask whose rows are labelled otherwise than those of the table.

    Raises
    ------
    ValueError
        If both have labels, and these differ.
    """
    labels = row_index(data), row_index(interventions)
    if all(own is not None for own in labels) and not labels[0].equals(labels[1]):
        raise ValueError(
            "the rows of `interventions` have other labels, or another order, than those of the table: "
            "align them (interventions.loc[data.index]), or give an array"
        )
