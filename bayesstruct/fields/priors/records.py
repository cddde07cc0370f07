"""Constants that models of Markov random fields record for their readers."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bayesstruct.core.recorded import Recorded, constant
from bayesstruct.fields.kernels.potentials import KINDS, Potentials

__all__ = ["FieldPotentials", "FieldSlab"]


@dataclass(frozen=True)
class FieldSlab(Recorded):
    """Normal slab of the weights of a Markov random field with one weight for each pair.

    Attributes
    ----------
    scale : (pairs,) ndarray of float
        Standard deviation of the weight of each pair with an edge.
    """

    scale: np.ndarray = constant("slab_scales", "pair")


@dataclass(frozen=True)
class FieldPotentials(Recorded):
    """Potentials of a Markov random field, but for the edges.

    Attributes
    ----------
    states : (p,) ndarray of int
        Number of states of each column.
    kind : int
        Position of the family of potentials in `KINDS`.
    reference : int
        State from which Blume-Capel biases measure distance.
    """

    states: np.ndarray = constant("states", "node")
    kind: int = constant("potentials")
    reference: int = constant("reference_state")

    @classmethod
    def of(cls, potentials: Potentials) -> Self:
        """Constants of some potentials."""
        return cls(np.asarray(potentials.states), potentials.code, potentials.reference)

    def with_edges(self, source: np.ndarray, target: np.ndarray) -> Potentials:
        """Return the potentials of these edges.

        Parameters
        ----------
        source, target : (edges,) array_like of int
            Positions of the ends, all source < target, row by row if all pairs are edges.
        """
        p, ends = len(self.states), (np.asarray(source).tolist(), np.asarray(target).tolist())
        every = len(ends[0]) == p * (p - 1) // 2
        edges = None if every else tuple(zip(*ends, strict=True))
        states = tuple(map(int, self.states))
        return Potentials(KINDS[int(self.kind)], states, int(self.reference), edges)
