"""Covariates of edges, a number for each pair of columns; and tables of numbers and states."""

import warnings

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayesstruct.data.arguments import choice, numbers
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.labels import aligned
from bayesstruct.networks.data.mixed_tables import MixedTable
from bayesstruct.networks.data.tables import network_table

__all__ = [
    "FOREST_OR_TREE",
    "MIXED",
    "check_forest_score",
    "edge_covariates",
    "first_state",
    "mixed_tree_table",
    "score_of_columns",
]

#: Score of tables with columns of numbers and of states.
MIXED = "mixed"
#: What to use for columns that hold no numbers, where there is no score for columns of both kinds.
FOREST_OR_TREE = (
    'score="bdeu", for which all columns are discrete, or the model tree with score="mixed", which joins '
    "numbers and states"
)
_KINDS = ("normal", "multinomial")


def first_state(states: Sequence[int]) -> int:
    """Return the position of the first column of states, from which trees are directed; of numbers of states, 0 for numbers."""
    return int(np.flatnonzero(states)[0])


def check_forest_score(score: Any) -> None:
    """Raise a ValueError for a score that forests do not have; it says why there is none of numbers and states."""
    if score == MIXED:
        raise ValueError(
            "`score` must be one of 'bge', 'bdeu', not 'mixed': a group of numbers would have another prior with states in it than without. "
            "Trees of numbers and states are in bayesstruct.exact.tree_posterior(data, score='mixed') and bayesstruct.models.tree; the best forest is "
            "bayesstruct.solvers.chow_liu(data, penalty='bic')"
        )
    choice("score", score, ("bge", "bdeu"))


def score_of_columns(data: Any, score: str, kinds: Any, states: Any) -> str:
    """Return the score that a table is read with: for ``"mixed"`` that of the only kind of columns, if there is one.

    Raises
    ------
    ValueError
        If `kinds` or `states` do not go with the score, or name an unknown kind.
    """
    if score != MIXED:
        if kinds is not None:
            raise ValueError(
                f"`kinds` belongs to the score 'mixed', not to {score!r}; leave it out"
            )
        return score
    if isinstance(kinds, Mapping) and (odd := [k for k, own in kinds.items() if own not in _KINDS]):
        raise ValueError(
            f"`kinds` of {odd[0]!r} is {kinds[odd[0]]!r}: columns of a tree are 'normal' or 'multinomial'"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table is read a second time
        read = network_table(data, MIXED, incomplete=True, kinds=kinds, states=states).table
    if not any(read.states):
        return "bge"
    if not all(read.states):
        return MIXED
    if kinds:
        raise ValueError(
            f"`kinds`: all columns hold states ({column_list(read.names)}); use score='bdeu' without it"
        )
    return "bdeu"


def mixed_tree_table(
    data: Any, *, kinds: Any = None, incomplete: bool = False, counted: bool = False
) -> MixedTable:
    """Check a table of normal numbers and of states, all of which are taken as states without an order.

    Parameters
    ----------
    data : DataFrame or array_like
    kinds : dict, optional
        ``"normal"`` or ``"multinomial"`` for some columns.
    incomplete : bool
        Whether values may be missing.
    counted : bool
        Whether rows stand there as often as they were counted.
    """
    options = {"incomplete": incomplete, "kinds": kinds, "counted": counted}
    table = network_table(data, MIXED, imputes="bayesstruct.models.tree", **options).table
    families = tuple("multinomial" if own else "normal" for own in table.levels)
    return replace(table, families=families)


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
