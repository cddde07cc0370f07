"""Checked covariance or correlation matrices of a table, or of groups of rows, that are not at hand."""

import warnings

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesstruct.data.arguments import whole_number
from bayesstruct.data.checks import max_columns, shape_problems
from bayesstruct.data.errors import (
    TableError,
    TableWarning,
    column_list,
    count,
    listing,
    raise_problems,
    warn,
)
from bayesstruct.data.intake import read_columns
from bayesstruct.data.labels import is_labelled_array, without_mask
from bayesstruct.data.matrices import completed, row_labels, without_labels
from bayesstruct.data.names import group_label
from bayesstruct.data.row_groups import check_same_columns, pooled_deviations, warn_of_variances
from bayesstruct.data.table import NamedColumns

__all__ = [
    "CovarianceTable",
    "GroupedCovariances",
    "given_rows_or_covariance",
    "grouped_covariances",
    "refuse_options_of_rows",
]

_WIDE_SCALE = (
    2.0  # of a pair of columns, in which a covariance below 1 is a correlation below 1 / 2
)
_ROUNDING = 1e-6  # negative eigenvalues of a correlation matrix that rounding may have made


def given_rows_or_covariance(data: Any, cov: Any, n: Any) -> bool:
    """Return whether rows were given, not a covariance matrix.

    Raises
    ------
    TypeError
        If both or neither were given, or `n` without `cov`.
    """
    if (data is None) == (cov is None):
        both = "" if data is None else ", not both"
        raise TypeError(f"give a table of rows, or `cov` and `n` where there are no rows{both}")
    if cov is None and n is not None:
        raise TypeError("`n`, the number of rows, goes with `cov`; a table of rows has its own")
    return cov is None


def refuse_options_of_rows(**options: Any) -> None:
    """Raise for an option, not None, that needs rows and not only their covariance matrix.

    Raises
    ------
    TypeError
    """
    for name, value in options.items():
        if value is not None:
            raise TypeError(f"`{name}` needs the rows of the table, and only `cov` was given")


@dataclass(frozen=True, eq=False)
class CovarianceTable(NamedColumns):
    """Covariance matrix of n rows of p named variables, instead of the rows.

    Make one with :meth:`CovarianceTable.read`.

    Attributes
    ----------
    covariance : ndarray, shape (p, p)
        With divisor n - 1.
    names : tuple of str
    rows : int
        n.
    units : float or ndarray, shape (p,)
        Standard deviations of the columns on the scale of :attr:`scatter`.
    """

    covariance: np.ndarray
    names: tuple[str, ...]
    rows: int
    units: Any = 1.0

    @classmethod
    def read(cls, cov: Any, n: int | None) -> "CovarianceTable":
        """Check a covariance or correlation matrix.

        Parameters
        ----------
        cov : DataFrame or (p, p) array_like
            Sample covariances with divisor n - 1, as of ``DataFrame.cov``, or correlations. One of
            the triangles may be missing.
        n : int
            Number of rows from which it was computed.

        Raises
        ------
        TableError
            If it is no covariance matrix, or a value is missing.
        TypeError, ValueError
            If `n` is not given, or no whole number of at least 2.

        Warns
        -----
        TableWarning
            If so few rows cannot have a matrix of this rank, or the diagonal seems to hold standard deviations beside
            correlations.

        Examples
        --------
        >>> table = CovarianceTable.read([[1.0, 0.5], [0.5, 4.0]], 20)
        >>> table.scatter.tolist()
        [[19.0, 4.75], [4.75, 19.0]]
        """
        if n is None:
            raise TypeError("`cov` needs `n`, the number of rows from which it was computed")
        n = whole_number("n", n, 2)
        labels = row_labels(cov)
        intake = read_columns(without_labels(cov), max_columns())
        raise_problems(shape_problems(intake))
        names, values = tuple(intake.names), completed(intake.values)
        _check(names, values, intake.refused, labels)
        values = 0.5 * (values + values.T)
        table = cls(values, names, n)
        _warn_about_deviations(values)
        _check_correlations(table)
        values.flags.writeable = False
        return table

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows

    @property
    def coords(self) -> dict[str, Any]:
        """Coordinates for ``pm.Model(coords=...)``: node, node_ and pair."""
        return {"node": list(self.names), "node_": list(self.names), "pair": self.edge_names}

    @property
    def location(self) -> np.ndarray:
        """Zeros, (p,): the means are not known, so that values count from them."""
        return np.zeros(self.p)

    @cached_property
    def scale(self) -> np.ndarray:
        """Standard deviations over :attr:`units`, (p,)."""
        return np.sqrt(np.diag(self.covariance)) / self.units

    @cached_property
    def scatter(self) -> np.ndarray:
        """Sums over the standardised rows of their products, (p, p): n - 1 times the correlations where :attr:`units` are 1."""
        return (self.rows - 1) * self.covariance / np.outer(self.scale, self.scale)


def _check(names, values, refused, labels):
    p = len(names)
    if refused:
        columns = [names[j] for found in refused.values() for j, _ in found]
        raise TableError(f"`cov`: {column_list(columns)} does not hold numbers")
    if values.shape != (p, p):
        raise TableError(
            f"`cov` has shape {values.shape}: a covariance matrix has as many rows as columns (data.cov())"
        )
    if labels is not None and labels != list(names):
        raise TableError(
            "`cov` has other names of rows than of columns: give both the same order (cov.loc[cov.columns])"
        )
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise TableError(
            f"`cov` has no finite value for {names[row]!r} and {names[column]!r}: complete it, or leave out a column"
        )
    if not np.allclose(values, values.T, rtol=1e-6, atol=1e-12):
        row, column = np.argwhere(~np.isclose(values, values.T, rtol=1e-6, atol=1e-12))[0]
        raise TableError(
            f"`cov` is not symmetric: {values[row, column]:g} and {values[column, row]:g} for {names[row]!r} and "
            f"{names[column]!r}"
        )
    if wrong := [name for name, v in zip(names, np.diag(values), strict=True) if v <= 0]:
        raise TableError(f"`cov`: the variance of {column_list(wrong)} is not positive")


def _warn_about_deviations(values):
    """Say that the diagonal may hold standard deviations, as published tables of correlations do."""
    size = len(values)
    off, diagonal = values[~np.eye(size, dtype=bool)], np.diag(values)
    # Correlations are written with two or three digits; covariances of such variances would go beyond 1.
    rounded = np.allclose(off, np.round(off, 3), rtol=0, atol=1e-9) and (abs(off) < 1).all()
    scales = np.sqrt(np.outer(diagonal, diagonal))[~np.eye(size, dtype=bool)]
    if size > 2 and rounded and abs(off).max() > 0.1 and np.median(scales) > _WIDE_SCALE:
        warn(
            "`cov` has values between -1 and 1, rounded as correlations are, beside a diagonal that is not 1 and is read as "
            "variances; if it holds standard deviations s, put 1 there, or pass correlations * numpy.outer(s, s)"
        )


def _check_correlations(table):
    correlations = table.scatter / (table.n - 1)
    pairs = np.argwhere(np.triu(abs(correlations) > 1 - 1e-12, 1))
    if len(pairs):
        i, j = pairs[0]
        raise TableError(
            f"`cov`: {column_list([table.names[i], table.names[j]])} have a correlation of "
            f"{correlations[i, j]:.3g}: leave out one of them"
        )
    eigenvalues = np.linalg.eigvalsh(correlations)
    if eigenvalues[0] < -_ROUNDING:
        raise TableError(
            f"`cov` is no covariance matrix, its correlations have the eigenvalue {eigenvalues[0]:.2g}: correlations "
            "that were rounded or computed from different rows (pairwise deletion) can be so; give more digits, or "
            "those of the complete rows"
        )
    rank = int((eigenvalues > 1e-8).sum())
    if rank > table.n - 1:
        warn(
            f"`cov` has rank {rank}, which {table.n} rows cannot have: `n` is the number of rows, not of columns"
        )


@dataclass(frozen=True, eq=False, repr=False)
class GroupedCovariances(NamedColumns):
    """Checked covariance matrices of the rows of several groups.

    Attributes
    ----------
    tables : tuple of CovarianceTable
        One for each of the G groups, with the same columns in the same order.
    names : tuple of str
        The p columns.
    labels : tuple of str
        The groups.
    scale : (G, p) ndarray
        Units in which the columns of each group are standardised.
    """

    tables: tuple[CovarianceTable, ...]
    names: tuple[str, ...]
    labels: tuple[str, ...]
    scale: np.ndarray

    @property
    def n(self) -> int:
        """Number of rows of all groups."""
        return int(self.sizes.sum())

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows of each group."""
        return np.array([own.n for own in self.tables])

    @property
    def covariance(self) -> np.ndarray:
        """Covariance matrices in the units of the table, (G, p, p)."""
        return np.array([own.covariance for own in self.tables])

    @property
    def location(self) -> np.ndarray:
        """Zeros, (G, p): the means are not known, so that values count from them."""
        return np.zeros_like(self.scale)

    @property
    def coords(self) -> dict[str, Any]:
        """Coordinates of a model: node, node_, pair and group."""
        return self.tables[0].coords | {"group": list(self.labels)}

    def scatter(self, group: int) -> np.ndarray:
        """Return the sums over the standardised rows of one group of their products, (p, p)."""
        own, scale = self.tables[group], self.scale[group]
        return (own.n - 1) * own.covariance / np.outer(scale, scale)


def grouped_covariances(
    cov: Any, n: Any, group: Any = None, *, standardize: bool | str = True
) -> GroupedCovariances:
    """Read and check one covariance or correlation matrix for each group.

    Parameters
    ----------
    cov : mapping of labels to matrices, (G, p, p) array_like or sequence of DataFrame
        As of `CovarianceTable.read`; a DataArray has the groups along its first dimension.
    n : int, sequence of int or mapping of labels to int
        Number of rows of each group; one number stands for all.
    group : sequence of G labels, optional
        The groups, if `cov` has no names of them.
    standardize : True or "group"
        As of `grouped_table`.

    Returns
    -------
    GroupedCovariances

    Raises
    ------
    TableError
        As `CovarianceTable.read`; the message names the group. If columns differ between groups.
    TypeError, ValueError
        If groups have no names or are fewer than two, or numbers of rows do not match them.

    Warns
    -----
    TableWarning
        As `CovarianceTable.read`, and as `grouped_table` of variances that differ.

    Examples
    --------
    >>> both = grouped_covariances({"a": [[1, 0.5], [0.5, 1]], "b": [[4, 0], [0, 1]]}, 20)
    >>> both.labels, both.sizes.tolist()
    (('a', 'b'), [20, 20])
    """
    if standardize is not True and standardize != "group":
        raise ValueError(
            f'`standardize` of covariance matrices must be True or "group", it is {standardize!r}'
        )
    matrices = _by_label(cov, group)
    labels = tuple(matrices)
    if len(labels) < 2:
        raise TableError(
            f"`cov` has the single group {labels[0]!r}: there is nothing to compare; use gaussian_graphical for one group"
        )
    tables = []
    for (label, own), size in zip(matrices.items(), _sizes(n, labels), strict=True):
        with _naming(label):
            tables.append(CovarianceTable.read(own, size))
    check_same_columns({label: own.names for label, own in zip(labels, tables, strict=True)})
    tables = [_in_order(own, tables[0].names) for own in tables]
    spread = np.array([own.scale for own in tables])
    free = np.repeat([[own.n - 1.0] for own in tables], spread.shape[1], axis=1)
    if standardize is True:
        warn_of_variances(tables[0].names, labels, free, spread)
        spread = np.broadcast_to(pooled_deviations(free, spread), spread.shape).copy()
    return GroupedCovariances(tuple(tables), tables[0].names, labels, spread)


def _by_label(cov, group) -> dict[str, Any]:
    """Matrix of each group, by its label."""
    named = isinstance(cov, Mapping) and not hasattr(cov, "columns")
    if named and not cov:
        raise TableError("`cov` is an empty dict: give one matrix for each group")
    if named or (is_labelled_array(cov) and cov.ndim == 3 and cov.dims[0] in cov.coords):
        if group is not None:
            raise TypeError("`group` is given twice: `cov` has the groups as its labels")
        if named:
            return _labelled(list(cov), list(cov.values()))
        return _labelled(cov[cov.dims[0]].values.tolist(), list(cov))
    if group is None or isinstance(group, str):
        raise TypeError(
            "`cov` of groups is a dict of one matrix for each group, or G matrices with `group`, their G labels"
        )
    matrices = list(without_mask(cov)) if np.iterable(cov) and not hasattr(cov, "columns") else []
    labels = list(group)
    if len(matrices) != len(labels) or any(np.ndim(own) != 2 for own in matrices):
        raise TableError(
            f"`cov` must hold a matrix for each of the {count(len(labels), 'group')} {listing(labels)}, it has shape "
            f"{np.shape(cov)}"
        )
    return _labelled(labels, matrices)


def _labelled(labels, matrices) -> dict[str, Any]:
    texts = [group_label(label) for label in labels]
    if twice := sorted({text for text in texts if texts.count(text) > 1}):
        raise TableError(f"the group {twice[0]!r} of `cov` occurs more than once: rename one")
    return dict(zip(texts, matrices, strict=True))


def _sizes(n: Any, labels: Sequence[str]) -> list:
    """Numbers of rows of the groups, in the order of the labels."""
    if isinstance(n, Mapping):
        own = {group_label(label): value for label, value in n.items()}
        if wrong := sorted({*own} ^ {*labels}):
            raise ValueError(
                f"`n` and `cov` have different groups: {listing(wrong)} {'are' if len(wrong) > 1 else 'is'} in one of them only"
            )
        return [own[label] for label in labels]
    if np.ndim(n) == 0:
        return [n] * len(labels)
    values = np.asarray(n).tolist()
    if np.ndim(n) != 1 or len(values) != len(labels):
        raise ValueError(
            f"`n` must be one number of rows, or one for each of the {len(labels)} groups, it has shape {np.shape(n)}"
        )
    return values


@contextmanager
def _naming(label: str) -> Iterator[None]:
    """Name the group in errors and warnings about its matrix."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            yield
        except TableError as error:
            raise TableError(f"group {label!r}: {error}") from None
    for each in found:
        if issubclass(each.category, TableWarning):
            warn(f"group {label!r}: {each.message}")
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def _in_order(table: CovarianceTable, names: tuple[str, ...]) -> CovarianceTable:
    if table.names == names:
        return table
    place = [table.names.index(name) for name in names]
    return CovarianceTable(table.covariance[np.ix_(place, place)], names, table.rows)
