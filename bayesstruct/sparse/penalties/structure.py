"""Groups that can be part of a PyTensor Op: compared, hashed and cached by their content."""

import hashlib

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesstruct.sparse.penalties.group import Group
from bayesstruct.sparse.penalties.sparse_group import SparseGroup
from bayesstruct.sparse.penalties.tree import Tree

__all__ = ["Structure"]


@dataclass(frozen=True, eq=False)
class Structure:
    """A penalty at rate 1, equal to another one if its groups, norm and weights are.

    Attributes
    ----------
    penalty : Group, SparseGroup or Tree
        Of rate 1.
    members : tuple of numpy.ndarray
        Coordinates of each group.
    arrays : tuple of numpy.ndarray
        Order and starts of disjoint groups; for trees the weights, order, starts and parents.
    """

    penalty: Any
    members: tuple
    arrays: tuple

    def __post_init__(self):
        digest = hashlib.sha256(f"{type(self.penalty).__name__} {self.penalty.norm}".encode())
        digest.update(str(self.penalty.size).encode())
        for array in (self.penalty.weights, *self.members, *self.arrays):
            digest.update(f"{array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        object.__setattr__(self, "key", digest.hexdigest())

    @classmethod
    def of(cls, penalty: Group | SparseGroup | Tree) -> "Structure":
        """Make the structure of a penalty."""
        groups = penalty.groups
        if not isinstance(penalty, Tree):
            return cls(penalty, tuple(groups.arrays()), (groups.order, groups.start))
        ends = zip(groups.first.tolist(), groups.start[1:].tolist(), strict=True)
        members = tuple(groups.order[first:stop] for first, stop in ends)
        weights = penalty.weights[groups.given]
        return cls(penalty, members, (weights, groups.order, groups.start, groups.parent))

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.penalty.size

    @property
    def maximum(self) -> bool:
        """Whether the norm is the maximum norm, not the Euclidean one."""
        return self.penalty.norm == np.inf

    def __eq__(self, other):
        return isinstance(other, Structure) and self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def __repr__(self):  # part of the key under which compiled functions are cached
        return self.key
