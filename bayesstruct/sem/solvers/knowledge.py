"""What is known of an order beforehand: paths, arcs and tiers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.errors import TableError
from bayesstruct.data.labels import aligned
from bayesstruct.networks.data.arcs import parent_prior
from bayesstruct.networks.kernels.dag_priors import ParentPrior

if TYPE_CHECKING:
    import pandas as pd

    from numpy.typing import ArrayLike

__all__ = ["Knowledge", "knowledge_of", "read_knowledge"]

_KNOWN = (-1, 0, 1)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Known paths and arcs, with all that follows from them; rows are causes, columns effects.

    Attributes
    ----------
    path, no_path : (d, d) bool arrays
        Whether it is known that there is a directed path, or none.
    before : (d, d) bool array
        Which variables come earlier in the order: those with a path, and those of earlier tiers.
    allowed, required : (d, d) bool arrays
        Arcs.
    """

    path: np.ndarray
    no_path: np.ndarray
    before: np.ndarray
    allowed: np.ndarray
    required: np.ndarray


def read_knowledge(
    names: "tuple[str, ...]",
    prior_knowledge: "pd.DataFrame | ArrayLike | None" = None,
    required: Iterable[tuple] = (),
    forbidden: Iterable[tuple] = (),
    tiers: dict | Iterable[Iterable] | None = None,
) -> Knowledge:
    """Read what is known of an order, and what follows from it.

    Parameters
    ----------
    names : tuple of str
        The d columns.
    prior_knowledge : (d, d) array_like or DataFrame, optional
        Row the effect, column the cause: 1 if there is a directed path, 0 if there is none, -1 if
        this is not known. A DataFrame is aligned by its labels; the diagonal is not read.
    required, forbidden, tiers
        As in :func:`bayesstruct.models.bayesian_network`.

    Raises
    ------
    TableError
        If a column is unknown, paths form a cycle, or a path is known to be there and not to be
        there.
    ValueError
        If the matrix has another shape or other entries.
    """
    arcs = parent_prior(names, required=required, forbidden=forbidden, tiers=tiers)
    along = parent_prior(names, tiers=tiers).allowed
    return knowledge_of(names, arcs, along & ~along.T, prior_knowledge)


def knowledge_of(
    names: Sequence[str],
    arcs: ParentPrior,
    earlier: np.ndarray | None = None,
    prior_knowledge: "pd.DataFrame | ArrayLike | None" = None,
) -> Knowledge:
    """Return what follows from known arcs, paths and an order.

    Parameters
    ----------
    names : sequence of str
        The d columns.
    arcs : ParentPrior
        Which arcs are allowed, and which are required.
    earlier : (d, d) bool numpy.ndarray, optional
        Which columns (rows) come before which, by their tiers.
    prior_knowledge
        As for :func:`read_knowledge`.

    Raises
    ------
    TableError, ValueError
        As from :func:`read_knowledge`.
    """
    path, no_path = arcs.required.copy(), ~_closure(arcs.allowed)
    if prior_knowledge is not None:
        known = _matrix(prior_knowledge, names).T
        path |= known == 1
        no_path |= known == 0
    np.fill_diagonal(path, False)
    np.fill_diagonal(no_path, False)
    if cycle := _cycle(path):
        raise TableError(
            f"the known paths form a cycle, {' -> '.join(names[i] for i in cycle)}: drop one of them"
        )
    path, no_path = _consequences(path, no_path)
    if len(clash := np.argwhere(path & no_path)):
        cause, effect = (names[i] for i in clash[0])
        raise TableError(
            f"it follows from what is known that there is a path {cause} -> ... -> {effect}, and that there is "
            "none: look at `prior_knowledge`, `required`, `forbidden` and `tiers` for these columns"
        )
    before = path if earlier is None else path | earlier
    return Knowledge(path, no_path, before, arcs.allowed & ~no_path, arcs.required)


def _matrix(values, names):
    matrix = np.asarray(aligned("prior_knowledge", values, names))
    d = len(names)
    if matrix.shape != (d, d):
        raise ValueError(
            f"`prior_knowledge` has shape {matrix.shape}; give a {d} x {d} matrix, row the effect, column the "
            "cause"
        )
    off = ~np.eye(d, dtype=bool)
    if matrix.dtype.kind not in "iuf" or not np.isin(matrix[off], _KNOWN).all():
        wrong = [value for value in matrix[off].tolist() if value not in _KNOWN]
        raise ValueError(
            "`prior_knowledge` has 1 for a path, 0 for none and -1 where nothing is known; it also has "
            f"{', '.join(dict.fromkeys(map(str, wrong)))}"
        )
    return np.where(off, matrix, -1)


def _closure(arcs):
    """Which variables can be reached from which, by at least one arc."""
    reached = arcs.copy()
    while True:
        longer = reached | (reached.astype(np.int64) @ reached > 0)
        if (longer == reached).all():
            return reached
        reached = longer


def _cycle(path):
    """Return a cycle, its first member again at the end; empty if there is none."""
    import networkx as nx

    graph = nx.from_numpy_array(path, create_using=nx.DiGraph)
    try:
        cycle = nx.find_cycle(graph)
    except nx.NetworkXNoCycle:
        return []
    return [a for a, _ in cycle] + [cycle[0][0]]


def _consequences(path, no_path):
    """Return what follows from known paths and known absences of paths."""
    path = _closure(path)
    forward = path.astype(np.int64)
    while True:
        # a -> b and no a -> c: no b -> c.  b -> c and no a -> c: no a -> b.
        more = no_path | path.T | (forward.T @ no_path > 0) | (no_path @ forward.T > 0)
        np.fill_diagonal(more, False)
        if (more == no_path).all():
            return path, no_path
        no_path = more
