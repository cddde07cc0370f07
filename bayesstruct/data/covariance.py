"""A checked covariance or correlation matrix of a table whose rows are not at hand."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayesstruct.data.arguments import whole_number
from bayesstruct.data.checks import max_columns, shape_problems
from bayesstruct.data.errors import TableError, column_list, raise_problems, warn
from bayesstruct.data.intake import read_columns
from bayesstruct.data.matrices import completed, row_labels, without_labels
from bayesstruct.data.table import NamedColumns

__all__ = ["CovarianceTable", "given_rows_or_covariance", "refuse_options_of_rows"]

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
        raise TypeError("give a table of rows, or `cov` and `n` where there are no rows, not both")
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
