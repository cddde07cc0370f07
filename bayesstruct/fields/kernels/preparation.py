"""Arrays of the sampler of edges that may be absent: from potentials, a table and parameters.

See :mod:`bayesstruct.fields.kernels.arrays` for their contents.
"""

import numpy as np

from bayesstruct.fields.kernels.arrays import Chain, Layout, Table
from bayesstruct.fields.kernels.potentials import Potentials

__all__ = ["make_chain", "make_layout", "make_table"]


def make_layout(
    potentials: Potentials, blocks: tuple[np.ndarray, np.ndarray, np.ndarray], exact: bool
) -> Layout:
    """Constants of a model.

    Parameters
    ----------
    potentials : Potentials
    blocks : tuple of three int arrays
        Edge of each block of weights, where its weights start, and the weights block by block.
    exact : bool
        Whether the likelihood is exact, not the pseudo-likelihood.
    """
    k = max(potentials.states)
    effect, recover = np.zeros((2, potentials.bias_size, k))
    index, coefficient = potentials.unary_map
    for i in range(potentials.p):
        cells = slice(potentials.unary_start[i], potentials.unary_start[i + 1])
        first, last = potentials.bias_start[i], potentials.bias_start[i + 1]
        states = potentials.states[i]
        for column, c in zip(index[cells].T, coefficient[cells].T, strict=True):
            effect[np.where(c != 0, column, first), np.arange(states)] += c
        # A change of the table is one of the biases, up to a constant.
        design = np.vstack([effect[first:last, :states], np.ones(states)])
        recover[first:last, :states] = np.linalg.pinv(design.T)[:-1]
    weight, pair_coefficient = potentials.pair_map
    source, target = potentials.ends
    edge, start, order = blocks
    return Layout(
        exact=exact,
        states=np.array(potentials.states),
        unary_start=potentials.unary_start,
        bias_start=np.asarray(potentials.bias_start, np.int64),
        effect=effect,
        recover=recover,
        pair_start=potentials.pair_start,
        pair_weight=weight,
        pair_coefficient=pair_coefficient,
        source=source,
        target=target,
        block_edge=edge,
        block_start=start.astype(np.int64),
        block_weight=order,
    )


def make_table(potentials: Potentials, codes: np.ndarray) -> Table:
    """Distinct rows in groups of equal multiplicity, and counts.

    Parameters
    ----------
    potentials : Potentials
    codes : (n, p) array of int
    """
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    order = np.argsort(counts, kind="stable")
    rows, counts = rows[order], counts[order]
    sizes, starts = np.unique(counts, return_index=True)
    states = np.zeros((potentials.p + 1, len(rows)), np.int16)
    states[:-1] = rows.T
    unary = np.zeros(int(potentials.unary_start[-1]))
    pair = np.zeros(int(potentials.pair_start[-1]))
    _count(potentials, rows, counts, unary, pair)
    return Table(
        states=states,
        starts=np.concatenate([starts, [len(rows)]]).astype(np.int64),
        multiplicity=sizes.astype(float),
        unary=unary,
        pair=pair,
        n=float(len(codes)),
    )


def _count(potentials, rows, counts, unary, pair):
    from bayesstruct.fields.kernels.conditionals import count_pairs

    if potentials.edges is None:
        count_pairs(
            np.ascontiguousarray(rows.T.astype(np.int16)),
            counts.astype(float),
            np.array(potentials.states),
            potentials.unary_start,
            potentials.pair_start,
            unary,
            pair,
        )
        return
    for i in range(potentials.p):
        np.add.at(unary, potentials.unary_start[i] + rows[:, i], counts)
    for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
        cell = potentials.pair_start[e] + rows[:, i] * potentials.states[j] + rows[:, j]
        np.add.at(pair, cell, counts)


def make_chain(
    potentials: Potentials, table: Table, exact: bool, weight: np.ndarray, bias: np.ndarray
) -> tuple[Chain, int]:
    """Tables of the model at these parameters, and the number of joint states.

    Parameters
    ----------
    potentials : Potentials
    table : Table
    exact : bool
        Whether the likelihood is exact.
    weight, bias : float64 arrays
        Not copied: the sampler changes them.
    """
    made = (
        _joint(potentials, weight, bias)
        if exact
        else _conditionals(potentials, table, weight, bias)
    )
    logs, probability, lowest, energy, digits = made
    chain = Chain(weight, bias, logs, probability, lowest, energy, digits)
    return chain, len(energy)


def _joint(potentials, weight, bias):
    states = np.array(potentials.states)
    size = int(states.prod())
    digits = np.array(np.unravel_index(np.arange(size), tuple(states)), np.int16)
    unary, pair = potentials.unary(bias), potentials.pair(weight)
    energy = np.zeros(size)
    for i in range(potentials.p):
        energy += unary[potentials.unary_start[i] + digits[i].astype(int)]
    for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
        cell = digits[i].astype(int) * states[j] + digits[j]
        energy += pair[potentials.pair_start[e] + cell]
    none = np.zeros((0, 0))
    return none, none, np.zeros(0), energy, digits


def _conditionals(potentials, table, weight, bias):
    from bayesstruct.fields.kernels.conditionals import condition

    start = potentials.unary_start
    logs = np.empty((int(start[-1]), table.states.shape[1]))
    probability, lowest = np.empty_like(logs), np.empty(potentials.p)
    condition(
        table.states,
        start,
        potentials.unary(bias),
        potentials.pair(weight),
        potentials.pair_start,
        *potentials.ends,
        logs,
        probability,
        lowest,
    )
    return logs, probability, lowest, np.zeros(0), np.zeros((potentials.p, 0), np.int16)
