"""Covariance matrices of several groups of rows that are not at hand."""

import warnings

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesstruct.data.covariance import CovarianceTable
from bayesstruct.data.errors import TableError, TableWarning, count, listing, warn
from bayesstruct.data.groups.rows import check_same_columns, pooled_deviations, warn_of_variances
from bayesstruct.data.labels import is_labelled_array, without_mask
from bayesstruct.data.names import label_text
from bayesstruct.data.table import NamedColumns

__all__ = ["GroupedCovariances", "grouped_covariances"]


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
    texts = [label_text(label) for label in labels]
    if twice := sorted({text for text in texts if texts.count(text) > 1}):
        raise TableError(f"the group {twice[0]!r} of `cov` occurs more than once: rename one")
    return dict(zip(texts, matrices, strict=True))


def _sizes(n: Any, labels: Sequence[str]) -> list:
    """Numbers of rows of the groups, in the order of the labels."""
    if isinstance(n, Mapping):
        own = {label_text(label): value for label, value in n.items()}
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
