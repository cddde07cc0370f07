"""Arrays of the sampler of pairwise Markov random fields with edges that may be absent.

See :mod:`bayesstruct.fields.kernels.spike_slab`.
"""

from typing import NamedTuple

import numpy as np

from numba.core import types
from numba.experimental import structref

__all__ = [
    "Chain",
    "Layout",
    "Prior",
    "Table",
    "Work",
    "chain_of",
    "layout_of",
    "prior_of",
    "referring",
    "table_of",
    "work_of",
]


class Layout(NamedTuple):
    """Constants of a model; integer arrays are int64. See `Potentials` for names that are there too."""

    exact: bool  # exact likelihood, otherwise pseudo-likelihood
    states: np.ndarray  # (p,)
    unary_start: np.ndarray  # (p + 1,)
    bias_start: np.ndarray  # (p + 1,)
    effect: np.ndarray  # (biases, most states), table of each bias
    recover: np.ndarray  # (biases, most states), bias of a unary table: the inverse map
    pair_start: np.ndarray  # (edges + 1,)
    pair_weight: np.ndarray  # (cells,), weight of each cell of the pair tables
    pair_coefficient: np.ndarray  # (cells,)
    source: np.ndarray  # (edges,)
    target: np.ndarray  # (edges,)
    block_edge: np.ndarray  # (blocks,)
    block_start: np.ndarray  # (blocks + 1,)
    block_weight: np.ndarray  # (weights,), weights of each block


class Table(NamedTuple):
    """A table of states and its counts."""

    states: np.ndarray  # (p + 1, rows) int16, different rows; the last variable is constant
    starts: np.ndarray  # (groups + 1,) int64, rows come in groups of equal multiplicity
    multiplicity: np.ndarray  # (groups,)
    unary: np.ndarray  # flat, number of rows with each state
    pair: np.ndarray  # flat, number of rows with each pair of states
    n: float


class Prior(NamedTuple):
    """Prior of weights and biases."""

    slab: int
    log_odds: np.ndarray  # (blocks,)
    scale: np.ndarray  # (weights,)
    tied: bool  # whether biases are drawn, and move with the weights
    mean: np.ndarray  # (biases,)
    precision: np.ndarray  # (biases,), zero if flat


class Chain(NamedTuple):
    """Parameters, and tables of the model at their values; changed by the sampler."""

    weight: np.ndarray
    bias: np.ndarray
    logs: np.ndarray  # (states, rows), of the pseudo-likelihood: log-potentials given the row,
    probability: np.ndarray  # (states, rows), conditional probabilities,
    lowest: np.ndarray  # (p,), and the smallest log probability of each variable
    energy: np.ndarray  # (cells,), of the exact likelihood: log-potentials of joint states
    digits: np.ndarray  # (p, cells) int16, state of each variable in each cell


class Work(NamedTuple):
    """The current block, and work arrays for its approximation."""

    dims: np.ndarray  # (11,) int64: weights, biases, parts; contexts, states, ends of each part
    feature: np.ndarray  # (2, d, cells), change of each part with each weight
    size: np.ndarray  # (2, cells), numbers of rows
    change: np.ndarray  # (2, cells), of log-potentials
    factor: np.ndarray  # (2, cells), its exponential
    first: np.ndarray  # (2, cells), see `tally_rows`
    second: np.ndarray  # (2, cells, states)
    base: np.ndarray  # (cells,), log probabilities of the cells under the exact likelihood
    cell: np.ndarray  # (joint states,) int64
    tilted: np.ndarray  # (states,)
    moved: np.ndarray  # (biases of two variables,) int64, which biases move
    shift: np.ndarray  # (biases of two variables, d), and how
    current: np.ndarray  # (d,)
    scale: np.ndarray  # (d,)
    gradient: np.ndarray  # (d,)
    hessian: np.ndarray  # (d, d), negative second derivative
    factor_a: np.ndarray  # (d, d), lower Cholesky factor of A
    centre: np.ndarray  # (d,), m
    point: np.ndarray  # (d,)
    before: np.ndarray  # (d,)
    spread: np.ndarray  # (d,), diagonal of inv(A)
    ridge: np.ndarray  # (d,), precision of the slab
    value: np.ndarray  # (d,), a proposal
    vector: np.ndarray  # (d,)
    inclusion: np.ndarray  # (blocks,), estimated probability that a block is full

    @classmethod
    def of(cls, layout, cells):
        """Allocate arrays for any block; `cells` is the number of joint states of the exact likelihood."""
        k = int(layout.states.max())
        top = np.sort(layout.states)
        most = int(max(top[-1] * top[-2], k))
        d = int(max(np.diff(layout.block_start).max(), np.diff(layout.bias_start).max()))
        biases = 2 * int(np.diff(layout.bias_start).max())
        rank = 1 if layout.exact else k  # the exact likelihood does not use it
        return cls(
            np.zeros(11, np.int64),
            np.zeros((2, d, most)),
            np.zeros((2, most)),
            np.zeros((2, most)),
            np.zeros((2, most)),
            np.zeros((2, most)),
            np.zeros((2, most, rank)),
            np.zeros(most),
            np.zeros(cells, np.int64),
            np.zeros(k),
            np.zeros(biases, np.int64),
            np.zeros((biases, d)),
            np.zeros(d),
            np.zeros(d),
            np.zeros(d),
            np.zeros((d, d)),
            np.zeros((d, d)),
            *(np.zeros(d) for _ in range(7)),
            np.zeros(len(layout.block_edge)),
        )


# --- by reference ----------------------------------------------------------------------------
#
# Compiled functions pass tuples of arrays element by element. For tuples of this size passing takes longer
# than the work, and compilation very much longer. So `sweep` makes structures of them, and passes
# references.


@structref.register
class _LayoutReference(types.StructRef):
    """Reference to a `Layout`."""


@structref.register
class _TableReference(types.StructRef):
    """Reference to a `Table`."""


@structref.register
class _PriorReference(types.StructRef):
    """Reference to a `Prior`."""


@structref.register
class _ChainReference(types.StructRef):
    """Reference to a `Chain`."""


@structref.register
class _WorkReference(types.StructRef):
    """Reference to a `Work`."""


def referring(kind, reference):
    """Return the constructor of a reference, for compiled code, from the elements of a tuple."""

    def construct(*elements):
        """Make a structure of the elements."""

    structref.define_constructor(construct, reference, kind._fields)
    return construct


layout_of = referring(Layout, _LayoutReference)
table_of = referring(Table, _TableReference)
prior_of = referring(Prior, _PriorReference)
chain_of = referring(Chain, _ChainReference)
work_of = referring(Work, _WorkReference)
