"""Proposals of a change of one arc of a directed acyclic graph, or of one parent for another."""

import numpy as np

__all__ = ["added", "parents_of", "propose_arc", "put", "reaches", "removed"]


def reaches(dag: np.ndarray, start: int, goal: int) -> bool:
    """Whether there is a path from one column to another."""
    stack, seen = [start], {start}
    while stack:
        i = stack.pop()
        if i == goal:
            return True
        for j in np.flatnonzero(dag[i]).tolist():
            if j not in seen:
                seen.add(j)
                stack.append(j)
    return False


def added(parents: tuple[int, ...], j: int) -> tuple[int, ...]:
    """Parents with one more, ascending."""
    return tuple(sorted((*parents, j)))


def removed(parents: tuple[int, ...], j: int) -> tuple[int, ...]:
    """Parents without one of them."""
    return tuple(k for k in parents if k != j)


def parents_of(dag: np.ndarray, i: int) -> tuple[int, ...]:
    """Parents of a column, ascending."""
    return tuple(np.flatnonzero(dag[:, i]).tolist())


def put(dag: np.ndarray, changed: dict[int, tuple[int, ...]]) -> None:
    """Give columns of a graph other parents, in place."""
    for i, parents in changed.items():
        dag[:, i] = 0
        dag[list(parents), i] = 1


def propose_arc(rng: np.random.Generator, dag: np.ndarray) -> dict[int, tuple[int, ...]] | None:
    """Draw a change: an arc that comes, goes or turns, or a parent that another one replaces.

    Each proposal has the probability of the one that undoes it.

    Parameters
    ----------
    rng : numpy.random.Generator
    dag : (d, d) int8 array
        Acyclic, two columns or more; rows are parents.

    Returns
    -------
    dict or None
        New parents by column; None where nothing changes.
    """
    d = len(dag)
    i, j = int(rng.integers(d)), int(rng.integers(d - 1))
    j += j >= i
    kind = rng.random()
    parents = parents_of(dag, i)
    if kind < 0.25:
        return _exchange(rng, dag, i, parents)
    if dag[j, i]:
        if kind < 0.625:
            return {i: removed(parents, j)}
        dag[j, i] = 0
        fine = not reaches(dag, j, i)
        dag[j, i] = 1
        return {i: removed(parents, j), j: added(parents_of(dag, j), i)} if fine else None
    if dag[i, j] or kind >= 0.625 or reaches(dag, i, j):
        return None
    return {i: added(parents, j)}


def _exchange(rng, dag, i, parents):
    others = [k for k in range(len(dag)) if k != i and k not in parents]
    if not parents or not others:
        return None
    out, new = parents[rng.integers(len(parents))], others[rng.integers(len(others))]
    return None if reaches(dag, i, new) else {i: added(removed(parents, out), new)}
