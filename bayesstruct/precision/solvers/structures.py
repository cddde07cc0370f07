"""What is penalised together in a precision matrix: rows of nodes, blocks of columns, neighbours; and modes, exact to rounding.

Each structure has rates of its own, of the objective divided by n / 2 (see :mod:`bayesstruct.precision.solvers.splitting`). They
are hashable, so that PyTensor can tell operations apart by them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bayesstruct.precision.solvers.faces import Face, LowRankFace, NeighbourFace, NormFace, polish
from bayesstruct.precision.solvers.local_constancy import Differences, local_constancy
from bayesstruct.precision.solvers.splitting import (
    GroupedEntries,
    Problem,
    average_of_entries,
    minimise,
)
from bayesstruct.sparse.penalties.layout import Groups
from bayesstruct.sparse.penalties.norms import Euclidean, Maximum, Nuclear

__all__ = [
    "Blocks",
    "Neighbours",
    "Nodes",
    "Structure",
    "exact_mode",
    "groups_problem",
    "neighbours_of",
]

_CLOSE, _CERTIFIED = (
    1e-14,
    1e-12,
)  # gaps for each column: where zeros and ties are read, and at the end


class Structure(Protocol):
    """Parts of a symmetric matrix whose norms are penalised."""

    def problem(self, S: np.ndarray, rates: np.ndarray, own: np.ndarray) -> Problem:
        """Return the problem with these rates of the elements, and of the parts."""

    def face(self, K: np.ndarray, rates: np.ndarray, own: np.ndarray) -> Face:
        """Return the face of a solution."""

    def collect(self, along: np.ndarray) -> np.ndarray:
        """Return the sums of derivatives of norms that share a rate."""


def groups_problem(S, rates, groups, group_rates, norm) -> Problem:
    """Problem of absolute values of elements and norms of groups of them."""
    penalty = GroupedEntries(rates, groups, group_rates, norm)
    return Problem(S, [penalty], average_of_entries, penalty.candidate)


@dataclass(frozen=True)
class Nodes:
    """Norms of the rows without the diagonal, each with a rate.

    Attributes
    ----------
    norm : {"l2", "linf"}
    """

    norm: str

    def groups(self, p: int) -> Groups:
        """Rows without the diagonal."""
        off = np.flatnonzero(~np.eye(p, dtype=bool).ravel()).astype(np.int32)
        return Groups(off, np.arange(0, p * (p - 1) + 1, max(p - 1, 1), dtype=np.int32), p * p)

    def problem(self, S, rates, own):
        """Return the problem with these rates."""
        norm = Maximum() if self.norm == "linf" else Euclidean()
        return groups_problem(S, rates, self.groups(len(S)), own, norm)

    def face(self, K, rates, own):
        """Return the face of a solution."""
        return NormFace(K, rates, self.groups(len(K)), own, self.norm)

    def collect(self, along):
        """Return the derivatives as they are."""
        return along


@dataclass(frozen=True)
class Blocks:
    """Norms of the elements between two blocks of columns, each pair of blocks with a rate.

    Attributes
    ----------
    labels : tuple of int
        Block of each column.
    norm : {"l2", "linf", "nuclear"}
    """

    labels: tuple[int, ...]
    norm: str

    @property
    def count(self) -> int:
        """Number of blocks."""
        return max(self.labels, default=-1) + 1

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """First and second block of each pair."""
        return np.triu_indices(self.count, 1)

    def members(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Columns of the two blocks of each pair."""
        columns = [np.flatnonzero(np.array(self.labels) == b) for b in range(self.count)]
        return [(columns[a], columns[b]) for a, b in zip(*self.pairs, strict=True)]

    def growth(self) -> np.ndarray:
        """How the norm of each pair grows with the number of elements."""
        sizes = np.array([(len(a), len(b)) for a, b in self.members()], float).reshape(-1, 2)
        if self.norm == "nuclear":
            return np.sqrt(sizes.max(axis=1, initial=0.0))
        elements = sizes.prod(axis=1)
        return elements if self.norm == "linf" else np.sqrt(elements)

    def groups(self) -> tuple[Groups, np.ndarray]:
        """Elements of all pairs in the one order and then in the other, and the shape of each group."""
        p, pairs = len(self.labels), self.members()
        pairs = pairs + [(b, a) for a, b in pairs]
        shapes = np.array([(len(a), len(b)) for a, b in pairs], int).reshape(-1, 2)
        order = [(a[:, None] * p + b).ravel() for a, b in pairs]
        start = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))]).astype(np.int32)
        flat = np.concatenate([*order, np.empty(0, int)]).astype(np.int32)
        return Groups(flat, start, p * p), shapes

    def problem(self, S, rates, own):
        """Return the problem with these rates, half of them for each order."""
        groups, shapes = self.groups()
        norms = {"l2": Euclidean(), "linf": Maximum(), "nuclear": Nuclear(shapes)}
        return groups_problem(S, rates, groups, np.tile(0.5 * own, 2), norms[self.norm])

    def face(self, K, rates, own):
        """Return the face of a solution."""
        if self.norm == "nuclear":
            return LowRankFace(K, rates, self.members(), 0.5 * own)
        return NormFace(K, rates, self.groups()[0], np.tile(0.5 * own, 2), self.norm)

    def collect(self, along):
        """Return the mean of the two orders; a nuclear norm is measured in one of them."""
        return along if self.norm == "nuclear" else along.reshape(2, -1).mean(axis=0)


@dataclass(frozen=True)
class Neighbours:
    """Absolute differences between the elements of neighbouring columns, each pair of neighbours with a rate.

    Attributes
    ----------
    pairs : tuple of pairs of int
    """

    pairs: tuple[tuple[int, int], ...]

    def problem(self, S, rates, own):
        """Return the problem with these rates."""
        penalties, average, candidate = local_constancy(rates, np.array(self.pairs), own)
        return Problem(S, penalties, average, candidate)

    def face(self, K, rates, own):
        """Return the face of a solution."""
        return NeighbourFace(K, rates, Differences(len(K), np.array(self.pairs), own))

    def collect(self, along):
        """Return the sums over the other columns."""
        return along.reshape(len(self.pairs), -1).sum(axis=1)


def neighbours_of(neighbours: Iterable[tuple[int, int]], p: int) -> Neighbours:
    """Read pairs of neighbouring columns; raise if they are none."""
    pairs = np.array(neighbours if isinstance(neighbours, str) else list(neighbours))
    if pairs.size == 0:
        raise ValueError("neighbours is empty: without neighbours use graphical_lasso.")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"neighbours must be pairs of columns, given by their numbers from 0 to {p - 1}."
        )
    pairs = np.sort(pairs, axis=1)
    if pairs.min() < 0 or pairs.max() >= p or (pairs[:, 0] == pairs[:, 1]).any():
        raise ValueError(f"neighbours must be pairs of two different columns from 0 to {p - 1}.")
    return Neighbours(tuple(map(tuple, np.unique(pairs, axis=0).tolist())))


def exact_mode(
    structure: Structure, S: np.ndarray, rates: np.ndarray, own: np.ndarray, max_iter: int
) -> np.ndarray | None:
    """Matrix that minimises the objective, to rounding; None if none was certified.

    The splitting finds the zeros and ties of the solution, and Newton's method the rest. A wrong face shows by a value
    that is above the lower bound.

    Parameters
    ----------
    structure : Structure
    S, rates : (p, p) numpy.ndarray
        The diagonal of the rates is not used.
    own : numpy.ndarray
        Rates of the structure.
    max_iter : int
    """
    p, unit = len(S), float(S.diagonal().mean())
    S, rates, own = S / unit, rates / unit, own / unit  # variances near one
    problem = structure.problem(S, rates, own)
    K, gap, _ = minimise(problem, None, _CLOSE * p, max_iter)
    if not np.isfinite(gap):
        return None
    found = polish(S, lambda M: structure.face(M, rates, own), K)
    # The values share a lower bound, below which the gap is.
    if found is None or problem.value(found) - problem.value(K) + gap > _CERTIFIED * p:
        return None
    return found / unit
