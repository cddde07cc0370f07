"""Arrays of the sampler of Markov random fields of several groups of rows, see :mod:`bayesstruct.fields.kernels.groups`.

Groups have different numbers of rows. Their arrays are flat, one group after another; `groups_sweep` makes the structures of
:mod:`bayesstruct.fields.kernels.arrays` of the parts, one for each group, which the functions of a single field take. So
machine code does not depend on the number of groups.
"""

from typing import NamedTuple

import numpy as np

from numba.core import types
from numba.experimental import structref

from bayesstruct.fields.kernels.arrays import Chain, Layout, Table, Work, referring

__all__ = [
    "GroupChains",
    "GroupPrior",
    "GroupTables",
    "Pool",
    "join_chains",
    "join_tables",
    "join_works",
    "pool_of",
]


class GroupTables(NamedTuple):
    """The tables of all groups."""

    rows: np.ndarray  # (G,) int64, number of different rows
    sets: np.ndarray  # (G,) int64, number of sets of rows with equal multiplicity
    states: np.ndarray  # flat int16, (p + 1, rows) of each group
    starts: np.ndarray  # flat int64, (sets + 1,) of each group
    multiplicity: np.ndarray  # flat, (sets,) of each group
    unary: np.ndarray  # (G, unary cells)
    pair: np.ndarray  # (G, pair cells)
    n: np.ndarray  # (G,)


class GroupChains(NamedTuple):
    """Parameters of all groups, and tables of the model at their values; changed by the sampler."""

    weight: np.ndarray  # (G, weights)
    bias: np.ndarray  # (G, biases)
    logs: np.ndarray  # flat, (states, rows) of each group; empty with the exact likelihood
    probability: np.ndarray  # likewise
    lowest: np.ndarray  # (G, p)
    energy: np.ndarray  # (G, joint states)
    digits: np.ndarray  # (p, joint states) int16


class GroupPrior(NamedTuple):
    """Prior of weights and biases of all groups."""

    log_odds: np.ndarray  # (blocks, 3), logarithms of the probabilities of absent, equal, different
    scale: np.ndarray  # (2, weights), standard deviations of shared part and contrasts
    tied: bool  # whether biases are drawn, and move with the weights
    mean: np.ndarray  # (G, biases)
    precision: np.ndarray  # (G, biases), zero if flat


class Pool(NamedTuple):
    """The current block in all groups, in coordinates in which its prior is standard normal."""

    basis: np.ndarray  # (G, G), a column of ones and orthonormal contrasts
    weight: np.ndarray  # (G, d), weights at some coordinates
    scale: np.ndarray  # (2, d)
    log_odds: np.ndarray  # (3,)
    share: np.ndarray  # (3,), approximate probabilities of the relations
    chance: np.ndarray  # (3,), those of the proposals
    evidence: np.ndarray  # (3,), log integrals of the likelihood over the prior of each relation
    centre: np.ndarray  # (2, D), modes if equal and if different
    factor: np.ndarray  # (2, D, D), lower Cholesky factors of the precision matrices there
    gradient: np.ndarray  # (D,)
    hessian: np.ndarray  # (D, D)
    point: np.ndarray  # (D,)
    before: np.ndarray  # (D,)
    now: np.ndarray  # (D,), the present coordinates
    value: np.ndarray  # (D,), a proposal
    vector: np.ndarray  # (D,)
    edge: np.ndarray  # (blocks,), estimated probability of an edge
    difference: np.ndarray  # (blocks,), and of a difference

    @classmethod
    def of(cls, layout: Layout, groups: int):
        """Allocate arrays for any block of a number of groups."""
        d = int(np.diff(layout.block_start).max())
        size, blocks = groups * d, len(layout.block_edge)
        vectors = ("gradient", "point", "before", "now", "value", "vector")
        return cls(
            basis=contrast_basis(groups),
            weight=np.zeros((groups, d)),
            scale=np.zeros((2, d)),
            **{name: np.zeros(3) for name in ("log_odds", "share", "chance", "evidence")},
            centre=np.zeros((2, size)),
            factor=np.zeros((2, size, size)),
            hessian=np.zeros((size, size)),
            **{name: np.zeros(size) for name in vectors},
            edge=np.zeros(blocks),
            difference=np.zeros(blocks),
        )


def contrast_basis(groups: int) -> np.ndarray:
    """Return a (G, G) matrix: a column of ones, and columns that are orthonormal and orthogonal to it.

    Parameters
    ----------
    groups : int
        G.
    """
    basis = np.ones((groups, groups))
    for c in range(1, groups):  # group c against those before it
        basis[:, c] = 0.0
        basis[:c, c], basis[c, c] = 1.0, -c
        basis[:, c] /= np.sqrt(c * (c + 1.0))
    return basis


def _flat(arrays, dtype):
    return np.concatenate([np.ravel(a) for a in arrays]).astype(dtype)


def join_tables(tables: list[Table]) -> GroupTables:
    """Join the tables of all groups."""
    return GroupTables(
        rows=np.array([t.states.shape[1] for t in tables]),
        sets=np.array([len(t.multiplicity) for t in tables]),
        states=_flat([t.states for t in tables], np.int16),
        starts=_flat([t.starts for t in tables], np.int64),
        multiplicity=_flat([t.multiplicity for t in tables], float),
        unary=np.stack([t.unary for t in tables]),
        pair=np.stack([t.pair for t in tables]),
        n=np.array([t.n for t in tables]),
    )


def join_chains(chains: list[Chain]) -> GroupChains:
    """Join the chains of all groups."""
    return GroupChains(
        weight=np.stack([c.weight for c in chains]),
        bias=np.stack([c.bias for c in chains]),
        logs=_flat([c.logs for c in chains], float),
        probability=_flat([c.probability for c in chains], float),
        lowest=np.stack([c.lowest for c in chains]),
        energy=np.stack([c.energy for c in chains]),
        digits=chains[0].digits,
    )


def join_works(layout: Layout, cells: int, groups: int) -> Work:
    """Allocate work arrays, each with a first dimension over the groups."""
    works = [Work.of(layout, cells) for _ in range(groups)]
    return Work(*(np.stack(arrays) for arrays in zip(*works, strict=True)))


@structref.register
class _PoolReference(types.StructRef):
    """Reference to a `Pool`."""


pool_of = referring(Pool, _PoolReference)
