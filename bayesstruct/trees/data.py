"""Covariates of edges: a number for each pair of columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesstruct.data.arguments import numbers
from bayesstruct.data.errors import TableError
from bayesstruct.data.labels import aligned

__all__ = ["edge_covariates"]


def edge_covariates(
    given: Any, names: tuple[str, ...], allowed: np.ndarray
) -> dict[str, np.ndarray]:
    """Check covariates of the edges of a graph; return them standardised over the edges that may be there.

    Parameters
    ----------
    given : dict
        Of names and symmetric (p, p) matrices; a DataFrame is aligned by its row and column names.
    names : tuple of str
        The p columns.
    allowed : (p, p) ndarray of bool
        Which pairs may have an edge; the covariates of others do not count.

    Returns
    -------
    dict of (p, p) ndarray
        With mean 0 and standard deviation 1 over the pairs that may have an edge, 0 elsewhere.

    Raises
    ------
    TableError
        If a matrix has another shape, is not symmetric, has values that are missing or infinite, or is constant.
    TypeError
        If it is no dict.
    """
    if not isinstance(given, Mapping):
        raise TypeError(
            f'`edge_covariates` is a dict such as {{"distance": matrix}}, not {type(given).__name__}'
        )
    free = np.triu(np.asarray(allowed, bool), 1)
    return {str(name): _standardised(str(name), own, names, free) for name, own in given.items()}


def _standardised(label, matrix, names, free):
    p, option = len(names), f"edge_covariates[{label!r}]"
    values = numbers(option, aligned(option, matrix, names))
    if values.shape != (p, p):
        raise TableError(
            f"{option} has shape {values.shape}: give a number for each pair of the {p} columns, a {p} x {p} matrix"
        )
    for wrong, what in (
        (~np.isfinite(values), "is no number"),
        (~np.isclose(values, values.T, rtol=1e-9, atol=0.0), "is not symmetric"),
    ):
        found = np.argwhere((wrong | wrong.T) & free)
        if len(found):
            i, j = found[0]
            raise TableError(
                f"{option} {what} for {names[i]} -- {names[j]}: correct it, or forbid this edge"
            )
    spread = values[free].std()
    if not spread > 1e-12 * np.abs(values[free]).max(initial=0.0):
        raise TableError(
            f"{option} is the same for all edges, which says nothing about which are there: leave it out"
        )
    upper = np.where(free, (values - values[free].mean()) / spread, 0.0)
    return upper + upper.T
