"""A checked table of continuous or binary variables, with the names and coordinates of its columns."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesstruct.data.checks import (
    ARROW,
    DISCRETE,
    SEPARATOR,
    duplicates,
    equal_states,
    levels_problems,
    max_columns,
    remarks,
    shape_problems,
    value_problems,
)
from bayesstruct.data.errors import TableError, TableWarning, raise_problems, warn
from bayesstruct.data.intake import read_columns
from bayesstruct.data.matrices import crosstab_remarks, matrix_problems, transposed_remarks
from bayesstruct.data.remarks import copied_rows

__all__ = ["NamedColumns", "Table", "TableError", "TableWarning", "near_one"]


class NamedColumns:
    """Base of tables with named columns: pairs, arcs and coordinates from `names` and the number of rows `n`."""

    names: tuple[str, ...]

    @property
    def n(self) -> int:
        """Number of observations (rows)."""
        raise NotImplementedError

    @property
    def p(self) -> int:
        """Number of variables (columns)."""
        return len(self.names)

    @property
    def edge_index(self) -> tuple[np.ndarray, np.ndarray]:
        """The two ends of every possible edge, i < j, row by row; two int arrays (p (p-1) / 2,)."""
        return np.triu_indices(self.p, k=1)

    @property
    def edges(self) -> list[tuple[int, int]]:
        """The pairs of :attr:`edge_index`, as a list."""
        i, j = self.edge_index
        return list(zip(i.tolist(), j.tolist(), strict=True))

    @cached_property
    def edge_names(self) -> list[str]:
        """The label ``"A -- B"`` of every possible edge, in the order of :attr:`edge_index`."""
        names = self.names
        return [f"{a}{SEPARATOR}{b}" for i, a in enumerate(names) for b in names[i + 1 :]]

    @property
    def arc_index(self) -> tuple[np.ndarray, np.ndarray]:
        """Source and target of every possible arc, target by target; two int arrays (p (p-1),)."""
        target, source = np.nonzero(~np.eye(self.p, dtype=bool))
        return source, target

    @cached_property
    def arc_names(self) -> list[str]:
        """The label ``"A -> B"`` of every possible arc, in the order of :attr:`arc_index`."""
        names = self.names
        return [f"{a}{ARROW}{b}" for b in names for a in names if a != b]

    @property
    def coords(self) -> dict[str, Any]:
        """Coordinates for ``pm.Model(coords=...)``: observation, node, node_ and pair."""
        return {
            "observation": np.arange(self.n),
            "node": list(self.names),
            "node_": list(self.names),
            "pair": self.edge_names,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Table(NamedColumns):
    """A checked table: n observations of p named variables.

    Make one with :meth:`Table.continuous` or :meth:`Table.binary`. The arrays are read-only.

    Attributes
    ----------
    values : ndarray, shape (n, p)
        Float64, in the original units, NaN where missing.
    names : tuple of str
        The p column names.
    location : ndarray, shape (p,)
        Means of the observed values if standardised (or medians), else zeros. The lower value if binary.
    scale : ndarray, shape (p,)
        Standard deviations (``ddof=1``) of the observed values if standardised (or median absolute deviations), else ones.
        The difference of the two values if binary.
    """

    values: np.ndarray
    names: tuple[str, ...]
    location: np.ndarray
    scale: np.ndarray

    @classmethod
    def continuous(
        cls,
        data: Any,
        *,
        standardize: bool = True,
        robust: bool = False,
        discrete: str = DISCRETE,
        normal: bool = True,
        counted: bool = False,
        prior: bool = True,
    ) -> "Table":
        """Check a table of continuous variables.

        Parameters
        ----------
        data : DataFrame, ndarray, DataArray or list of lists
            n rows (observations) and p columns (variables). pandas and polars frames, and all
            others that narwhals knows, keep their column names; so does an xarray array with a
            coordinate along its second dimension. Otherwise the columns are ``x0``, ``x1``, ...
            Missing values are NaN, None or the null of the library. There may be fewer rows than
            columns.
        standardize : bool, default True
            Store the mean and standard deviation of the observed values of each column, so
            that :attr:`standardized` has mean 0 and standard deviation 1. The columns may then be
            in any units.
        robust : bool, default False
            Standardise by medians and median absolute deviations, which a few outliers do not change, in place of means
            and standard deviations, for t distributions; outliers are then not remarked upon.
        discrete : str, optional
            What messages recommend for columns that are not continuous.
        normal : bool, default True
            Whether the model has normal columns, so that marked skewness is remarked upon.
        counted : bool, default False
            Whether rows stand there as often as they were counted, so that copies are not remarked upon.
        prior : bool, default True
            Whether there is a prior, which decides where values are missing or columns are linear combinations of others: both are
            remarked upon. An estimate without one has to say itself what becomes of them.

        Returns
        -------
        Table

        Raises
        ------
        TableError
            With everything that is wrong in one message: fewer than 2 rows or columns, a matrix of
            correlations or of other pairs of its columns, a table of their means and standard deviations, more columns than 2,000,000 edges allow (2,000), repeated names, names that give two pairs
            the same label, text, categories, dates,
            complex or infinite values, columns that are constant, duplicates of one another,
            never observed or observed once, rows never observed.

        Warns
        -----
        TableWarning
            If more than 20 % of the values or more than half of a column is missing; if values that
            often stand for missing ones (-999, 99) are apart from the others; if a column has two
            values or few whole numbers, counts the rows, or is very skewed; if rows are copies of others; if the table
            seems to be transposed, or one of counts of two columns; or if some columns are exact linear combinations of others. Linear combinations are searched for in the complete rows, if there are more of them than columns.

        Examples
        --------
        >>> table = Table.continuous([[1.5, 10.0], [2.1, 30.0], [3.7, 20.0]])
        >>> table.edge_names
        ['x0 -- x1']
        >>> table.standardized[:, 1].round(3).tolist()
        [-1.0, 1.0, 0.0]
        """
        intake = read_columns(data, max_columns())
        raise_problems(shape_problems(intake))
        raise_problems(matrix_problems(data, intake.names, intake.values))
        problems = value_problems(intake, discrete)
        raise_problems([*problems, *duplicates(intake.names, intake.values)])
        kind = {"normal": normal, "tails": not robust, "prior": prior}
        found = remarks(intake.names, intake.values, discrete, **kind)
        copies = [] if counted else copied_rows(intake.values)
        for remark in [*transposed_remarks(data), *crosstab_remarks(data), *found, *copies]:
            warn(remark)
        moments = robust_moments if robust else column_moments
        location, scale = (moments if standardize else _identity)(intake.values)
        for array in (intake.values, location, scale):
            array.flags.writeable = False
        return cls(intake.values, tuple(intake.names), location, scale)

    @classmethod
    def binary(cls, data: Any) -> "Table":
        """Check a table whose columns have two values each.

        Parameters
        ----------
        data : DataFrame, ndarray, DataArray or list of lists
            As for :meth:`continuous`. Any two numbers, or booleans, are accepted; the larger is 1
            in :attr:`standardized`.

        Returns
        -------
        Table

        Raises
        ------
        TableError
            As from :meth:`continuous`, and for columns with more than two values.

        Warns
        -----
        TableWarning
            If columns are equal and may be so by chance: unrelated columns would be equal in one
            table of this size in a million, or more often.

        Examples
        --------
        >>> table = Table.binary([[0, 5], [1, 5], [1, 7]])
        >>> table.standardized[:, 1].tolist()
        [0.0, 0.0, 1.0]
        """
        intake = read_columns(data, max_columns())
        raise_problems(shape_problems(intake))
        raise_problems(matrix_problems(data, intake.names, intake.values))
        raise_problems([*value_problems(intake), *levels_problems(intake)])
        low, high = np.nanmin(intake.values, axis=0), np.nanmax(intake.values, axis=0)
        coded = cls(intake.values, tuple(intake.names), low, high - low)
        copies, chance = equal_states(intake.names, coded.standardized)
        raise_problems(copies)
        for remark in [*crosstab_remarks(data), *chance]:
            warn(remark)
        for array in (intake.values, low, coded.scale):
            array.flags.writeable = False
        return coded

    def __repr__(self) -> str:
        share = f", {self.missing_share:.1%} missing" if self.missing_share else ""
        return f"Table({self.n:,} observations, {self.p:,} variables{share})"

    @property
    def n(self) -> int:
        """Number of observations (rows)."""
        return self.values.shape[0]

    @cached_property
    def missing(self) -> np.ndarray:
        """Which values are missing; bool, shape (n, p)."""
        return np.isnan(self.values)

    @cached_property
    def missing_share(self) -> float:
        """Share of the n p values that are missing, between 0 and 1."""
        return float(self.missing.mean())

    @cached_property
    def standardized(self) -> np.ndarray:
        """``(values - location) / scale``, shape (n, p), NaN where missing."""
        return (self.values - self.location) / self.scale


def near_one(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide columns by powers of two, which rounds nothing.

    Parameters
    ----------
    values : (n, p) ndarray of float
        Finite numbers.

    Returns
    -------
    scaled : (n, p) ndarray
        Columns whose largest magnitudes are from 1/2 to 1; columns of zeros stay as they are.
    powers : (p,) ndarray of int
        ``values`` is ``scaled * 2.0**powers``.

    Examples
    --------
    >>> near_one(np.array([[6e200], [3e200]]))[0].T.round(3).tolist()
    [[0.98, 0.49]]
    """
    _, powers = np.frexp(np.abs(values).max(axis=0))
    return np.ldexp(values, -powers), powers


def column_moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of the observed values, without overflow."""
    size = np.nanmax(abs(values), axis=0)
    scaled = values / size
    return np.nanmean(scaled, axis=0) * size, np.nanstd(scaled, axis=0, ddof=1) * size


def robust_moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return medians of the observed values and 1.4826 times their median absolute deviations.

    The factor makes the latter the standard deviation of a normal column. A column of which half of the values or more
    equal the median has its standard deviation.
    """
    size = np.nanmax(abs(values), axis=0)
    scaled = values / size
    median = np.nanmedian(scaled, axis=0)
    spread = 1.4826 * np.nanmedian(abs(scaled - median), axis=0)
    _, usual = column_moments(values)
    return median * size, np.where(spread > 0, spread * size, usual)


def _identity(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p = values.shape[1]
    return np.zeros(p), np.ones(p)
