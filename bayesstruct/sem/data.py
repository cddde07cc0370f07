"""Tables of linear structural equations: checked, in the units of the model, with what is known of their noise."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import positive_by_column
from bayesstruct.data.errors import warn
from bayesstruct.data.table import Table
from bayesstruct.networks.data.tables import check_row_labels, known_interventions

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = ["SemTable", "sem_table"]

_LARGEST_RATIO = 1e12  # of known variances, beyond which rounding errors decide
_DISCRETE = (
    'bayesian_network(score="mixed"), which has columns of numbers and of states in one graph'
)


@dataclass(frozen=True, eq=False)
class SemTable:
    """A table of linear structural equations.

    Attributes
    ----------
    table : Table
        Its units are those of the model: of each column, or one for all.
    was_set : (n, d) bool array
        True where a value was set from outside.
    relative : (d,) array
        Noise variances divided by their mean, ones unless they are known.
    """

    table: Table
    was_set: np.ndarray
    relative: np.ndarray


def sem_table(
    data: "pd.DataFrame | ArrayLike",
    *,
    variances: str = "free",
    known_variances: Any = None,
    interventions: "pd.DataFrame | ArrayLike | None" = None,
    normal: bool = True,
    counted: bool = False,
) -> SemTable:
    """Check a table of numbers, and what is known of the noise of its columns.

    Parameters
    ----------
    data : DataFrame or (n, d) array_like
    variances : {"free", "equal", "known"}
        With ``"free"`` variances columns are standardised; otherwise they are centred and divided by one number, the square
        root of their mean variance.
    known_variances : dict, Series or (d,) array_like, optional
        Of the noise of each column, up to one factor; with ``"known"``.
    interventions : (n, d) array_like or DataFrame of bool, optional
    normal : bool
        Whether the noise is normal, so that skewness is remarked upon.
    counted : bool
        Whether rows stand there as often as they were counted.

    Raises
    ------
    TableError
        If the table cannot be used.
    ValueError
        If variances or interventions do not fit the table.

    Warns
    -----
    TableWarning
        If the noise is to have equal variances, and columns are standardised.
    """
    if (known_variances is None) == (variances == "known"):
        raise ValueError(
            "variances='known' needs `known_variances`, a positive number for each column"
            if known_variances is None
            else f"`known_variances` goes with variances='known', not with {variances!r}"
        )
    table = Table.continuous(data, discrete=_DISCRETE, normal=normal, counted=counted)
    was_set = known_interventions(interventions, table)
    check_row_labels(data, interventions)
    relative = np.ones(table.p)
    if variances == "equal" and np.ptp(table.scale) <= 1e-6 * table.scale.max():
        warn(
            "all columns have the same standard deviation, as standardised ones have: the noise of a standardised column with parents "
            "has a smaller variance, so that variances='equal' tells wrong directions; pass the columns in their units, "
            "or take variances='free'"
        )
    if variances != "free":
        unit = np.sqrt(np.mean(table.scale**2))
        table = replace(table, scale=np.full(table.p, unit))
    if variances == "known":
        relative = _relative(known_variances, table.names)
    return SemTable(table, was_set, relative)


def _relative(given, names):
    """Known variances in the order of the columns, divided by their mean."""
    values = positive_by_column("known_variances", given, names)
    if values.max() > _LARGEST_RATIO * values.min():
        raise ValueError(
            f"the largest of `known_variances` is more than {_LARGEST_RATIO:g} times the smallest one: are all of them "
            "variances of the noise in the units of the table?"
        )
    return values / values.mean()
