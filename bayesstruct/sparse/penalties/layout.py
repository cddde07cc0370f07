"""Which coordinates belong together: groups and trees as the arrays that the kernels take."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.data.arguments import is_number, numbers, whole_number
from bayesstruct.data.names import nearest

__all__ = ["Groups", "TreeGroups", "check_rate", "check_weights", "listed", "norm_name"]


@dataclass(frozen=True, eq=False)
class Groups:
    """Disjoint groups of the coordinates ``0 .. size - 1``.

    Attributes
    ----------
    order : (m,) numpy.ndarray of int32
        Coordinates, those of a group next to each other.
    start : (groups + 1,) numpy.ndarray of int32
        Group g is ``order[start[g]:start[g + 1]]``.
    size : int
        Number of coordinates, those in no group included.
    """

    order: np.ndarray
    start: np.ndarray
    size: int

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.start) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of coordinates of each group."""
        return np.diff(self.start)

    def spread(self, values: np.ndarray, fill: float = 0.0) -> np.ndarray:
        """Give each coordinate the value of its group, and ``fill`` to those in none."""
        out = np.full(self.size, fill, dtype=np.result_type(values))
        out[self.order] = np.repeat(values, self.sizes)
        return out

    def arrays(self) -> list[np.ndarray]:
        """Coordinates of each group."""
        return np.split(self.order, self.start[1:-1])

    def labels(self) -> np.ndarray:
        """Return the number of each coordinate's group; those in none have later ones of their own."""
        alone = self.count + np.arange(self.size)
        alone[self.order] = np.repeat(np.arange(self.count), self.sizes)
        return alone

    def restricted(self, index: np.ndarray) -> tuple["Groups", np.ndarray]:
        """Return the groups of some coordinates, renumbered, and which of the groups are left.

        Parameters
        ----------
        index : (m,) numpy.ndarray of int
            Rising, and holding all or nothing of each group.
        """
        place = np.full(self.size, -1)
        place[index] = np.arange(len(index))
        left = place[self.order[self.start[:-1]]] >= 0
        kept = self.keep(left)
        return Groups(place[kept.order].astype(np.int32), kept.start, len(index)), left

    def keep(self, mask: np.ndarray) -> "Groups":
        """Only the groups of a mask; the coordinates of the others are in no group then."""
        if mask.all():
            return self
        order = self.order[np.repeat(mask, self.sizes)]
        return Groups(order, _starts(self.sizes[mask]), self.size)

    @classmethod
    def of(cls, groups: ArrayLike | Sequence[ArrayLike], size: int | None = None) -> "Groups":
        """Read labels, one for each coordinate, or a list of index arrays.

        Raises
        ------
        ValueError
            If the groups are empty, overlap, or point outside of the coordinates.
        """
        if isinstance(groups, Groups):
            return groups
        given = listed("groups", groups)
        if len(given) == 0:
            raise ValueError("groups is empty; give one label for each coordinate.")
        if np.ndim(given[0]) == 0:
            return cls._of_labels(np.asarray(given), size)
        arrays = [_indices(k, group) for k, group in enumerate(given)]
        size = _total(arrays, size)
        order = np.concatenate(arrays)
        seen = np.bincount(order, minlength=size)
        if seen.max() > 1:
            i = int(seen.argmax())
            owners = [k for k, group in enumerate(arrays) if i in group]
            raise ValueError(
                f"Groups {owners[0]} and {owners[1]} overlap: both hold coordinate {i}. Groups must "
                "be disjoint here; nested ones make a Tree."
            )
        return cls(order.astype(np.int32), _starts([len(group) for group in arrays]), size)

    @classmethod
    def _of_labels(cls, labels, size):
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise ValueError(
                "groups must be one integer label for each coordinate (-1: not penalised) or a "
                f"list of index arrays, got {labels.dtype} of shape {labels.shape}."
            )
        if labels.min() < -1:
            raise ValueError(f"Group label {labels.min()} is below -1, the label of no group.")
        if size is not None and size != len(labels):
            raise ValueError(f"There are {len(labels)} labels for size={size} coordinates.")
        order = np.argsort(labels, kind="stable")
        order = order[labels[order] >= 0]
        counts = np.unique(labels[order], return_counts=True)[1]
        return cls(order.astype(np.int32), _starts(counts), len(labels))


@dataclass(frozen=True, eq=False)
class TreeGroups:
    """Nested or disjoint groups, each after the groups inside it and contiguous in ``order``.

    Attributes
    ----------
    order, start, size
        As in `Groups`, for the coordinates in a group but in no group inside it.
    parent : (groups,) numpy.ndarray of int32
        The smallest group around each, or -1.
    first : (groups,) numpy.ndarray of int32
        Group g with everything inside it is ``order[first[g]:start[g + 1]]``.
    given : (groups,) numpy.ndarray of int
        Position of each group in the list that the user gave.
    deep : bool
        Whether a coordinate is in more than 32 groups on average.
    """

    order: np.ndarray
    start: np.ndarray
    size: int
    parent: np.ndarray
    first: np.ndarray
    given: np.ndarray
    deep: bool

    def sizes(self) -> np.ndarray:
        """Count the coordinates of each group, with those of the groups inside it."""
        return self.start[1:] - self.first

    def labels(self, max_size: int) -> np.ndarray:
        """Return the largest group of at most `max_size` coordinates; a label of its own without one."""
        small = self.sizes() <= max_size
        top = np.where(small, np.arange(len(self.parent)), -1)
        for g in range(len(self.parent) - 1, -1, -1):  # from the roots
            up = self.parent[g]
            if up >= 0 and top[up] >= 0:
                top[g] = top[up]
        alone = len(self.parent) + np.arange(self.size)
        of_own = np.repeat(top, np.diff(self.start))
        alone[self.order] = np.where(of_own >= 0, of_own, alone[self.order])
        return alone

    def restricted(self, index: np.ndarray, weights: np.ndarray) -> "TreeGroups":
        """Return the groups of some coordinates, renumbered; its ``given`` are places in this one.

        Parameters
        ----------
        index : (m,) numpy.ndarray of int
            Rising; any coordinates.
        weights : (groups,) numpy.ndarray
            Of the groups in the order of this tree.
        """
        owner = np.full(self.size, -1)
        owner[self.order] = np.repeat(np.arange(len(self.parent)), np.diff(self.start))
        owner = owner[index]
        held = np.zeros(len(self.parent), dtype=bool)
        held[owner[owner >= 0]] = True
        for g, up in enumerate(self.parent.tolist()):  # each after the groups inside it
            if up >= 0 and held[g]:
                held[up] = True
        parent = self.parent.astype(np.int64)
        return self._build(parent, owner, np.where(held, weights, 0.0))

    @classmethod
    def of(cls, groups: Sequence[ArrayLike], size: int | None, weights: np.ndarray) -> "TreeGroups":
        """Read index arrays in any order; groups of zero weight are left out.

        Raises
        ------
        ValueError
            If two groups are neither nested nor disjoint, or point outside of the coordinates.
        """
        arrays = [_indices(k, group) for k, group in enumerate(groups)]
        size = _total(arrays, size)
        owner = np.full(size, -1)
        parent = np.full(len(arrays), -1)
        # From the largest: coordinates inside a group have one owner so far, its parent.
        for g in sorted(range(len(arrays)), key=lambda k: -len(arrays[k])):
            around = owner[arrays[g]]
            if (around != around[0]).any():
                other = around.max()
                raise ValueError(
                    f"Groups {other} and {g} are neither nested nor disjoint: they share some "
                    "coordinates, and each has others. A tree needs one or the other."
                )
            parent[g] = around[0]
            owner[arrays[g]] = g
        return cls._build(parent, owner, weights)

    @classmethod
    def of_parents(cls, parents: ArrayLike, weights: np.ndarray) -> "TreeGroups":
        """Read the parent of each coordinate: the groups are coordinates with descendants.

        Raises
        ------
        ValueError
            If a parent is out of range or there is a cycle.
        """
        parents = np.asarray(parents)
        if parents.ndim != 1 or parents.size == 0 or parents.dtype.kind not in "iu":
            raise ValueError("parents must be one integer for each coordinate, -1 for roots.")
        parents = parents.astype(np.int64)
        if parents.min() < -1 or parents.max() >= len(parents):
            bad = int(np.flatnonzero((parents < -1) | (parents >= len(parents)))[0])
            raise ValueError(f"The parent of {bad}, {parents[bad]}, is not a coordinate or -1.")
        return cls._build(parents, np.arange(len(parents)), weights)

    @classmethod
    def _build(cls, parent, owner, weights):
        from bayesstruct.sparse.kernels.tree_proximal import postorder

        nodes = postorder(parent)
        if len(nodes) < len(parent):
            inside = np.flatnonzero(~np.isin(np.arange(len(parent)), nodes))
            raise ValueError(f"The parents of {inside[:5].tolist()} run in a cycle.")
        if (weights == 0).any():
            # The nearest group around that counts takes over, seen from the root.
            stand_in = np.append(np.where(weights > 0, np.arange(len(parent)), -1), -1)
            for g in nodes[::-1]:
                if weights[g] == 0:
                    stand_in[g] = stand_in[parent[g]]
            parent, owner = stand_in[parent], stand_in[owner]
            nodes = nodes[weights[nodes] > 0]
        place = np.full(len(parent) + 1, -1)
        place[nodes] = np.arange(len(nodes))
        node = place[owner]
        order = np.argsort(node, kind="stable")
        order = order[node[order] >= 0]
        start = _starts(np.bincount(node[order], minlength=len(nodes)))
        above = place[parent[nodes]].astype(np.int32)
        first = start[:-1].copy()
        for g, up in enumerate(above.tolist()):
            if up >= 0 and first[g] < first[up]:
                first[up] = first[g]
        deep = int((start[1:].astype(np.int64) - first).sum()) > 32 * len(order)
        return cls(order.astype(np.int32), start, len(owner), above, first, nodes, deep)


def listed(name: str, groups: ArrayLike | Sequence[ArrayLike]) -> Any:
    """Return groups as something with a length and places; columns of a table as arrays.

    Raises
    ------
    TypeError
        If they are neither a list nor an array.
    """
    if hasattr(groups, "to_numpy"):
        return groups.to_numpy()
    if groups is None or isinstance(groups, str) or not hasattr(groups, "__getitem__"):
        raise TypeError(
            f"{name} must be one integer label for each coordinate or a list of index arrays, "
            f"not {groups!r:.40}."
        )
    return groups


def norm_name(norm: Any, known: Sequence) -> object:
    """Return the norm as one of ``known`` (2, infinity or a name).

    Raises
    ------
    ValueError
        With the nearest name.
    """
    aliases = {"2": 2, "l2": 2, "inf": np.inf, "linf": np.inf, "infinity": np.inf}
    norm = aliases.get(norm, norm) if isinstance(norm, str) else norm
    for name in known:
        if norm == name:
            return name
    raise ValueError(nearest("norm", norm, [str(name) for name in known]))


def check_rate(name: str, rate: Any) -> float:
    """Return a rate as a float.

    Raises
    ------
    TypeError
        If it is not one real number.
    ValueError
        If it is negative, NaN or infinite.
    """
    if np.ndim(rate) and not isinstance(rate, str):
        raise ValueError(
            f"{name} must be one number, got shape {np.shape(rate)}; use weights for rates that differ."
        )
    if not is_number(rate):
        raise TypeError(f"{name} must be one number, not {rate!r:.40}.")
    value = float(rate)
    if np.isnan(value):
        raise ValueError(f"{name} is NaN.")
    if value < 0:
        raise ValueError(f"{name} must not be negative, got {value}; 0 is no penalty.")
    if np.isinf(value):
        raise ValueError(
            f"{name} is infinite. Fix the coefficients at zero by leaving them out of the model."
        )
    return value


def check_weights(weights: ArrayLike | None, count: int, what: str) -> np.ndarray:
    """Return weights as an array of ``count``, 1 by default.

    Raises
    ------
    ValueError
        If the number is wrong or one is negative or not finite.
    """
    if weights is None:
        return np.ones(count)
    weights = numbers("weights", weights).copy()
    if weights.shape != (count,):
        raise ValueError(f"weights has shape {weights.shape}; there are {count} {what}.")
    if not np.isfinite(weights).all():
        raise ValueError(
            f"The weight of {what[:-1]} {np.isfinite(weights).argmin()} is not finite."
        )
    if weights.min(initial=0.0) < 0:
        raise ValueError(
            f"The weight of {what[:-1]} {weights.argmin()} is negative; 0 leaves it unpenalised."
        )
    return weights


def _starts(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _indices(k, group):
    group = np.atleast_1d(np.asarray(group))
    if group.ndim != 1 or group.size == 0 or group.dtype.kind not in "iu":
        raise ValueError(f"Group {k} must be a list of coordinates (integers) and not empty.")
    if group.min() < 0:
        raise ValueError(f"Group {k} holds coordinate {group.min()}; coordinates start at 0.")
    if len(np.unique(group)) < len(group):
        raise ValueError(f"Group {k} holds a coordinate twice.")
    return group.astype(np.int64)


def _total(arrays, size):
    if not arrays:
        raise ValueError("groups is empty; give at least one group.")
    needed = 1 + max(int(group.max()) for group in arrays)
    if size is None:
        return needed
    size = whole_number("size", size, 1)
    if needed > size:
        k = next(k for k, group in enumerate(arrays) if group.max() >= size)
        raise ValueError(
            f"Group {k} holds coordinate {arrays[k].max()}, but there are size={size} of them."
        )
    return size
