"""Log density of rows of states in a Markov random field, with the likelihood or the pseudo-likelihood."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.ops.log_partition import log_partition, tables

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["block_index", "log_density"]


def log_density(
    value: "TensorVariable",
    bias: "TensorVariable",
    weight: "TensorVariable",
    potentials: Potentials,
    likelihood: str,
) -> "TensorVariable":
    """Log density of rows of states, or the logarithm of their pseudo-likelihood.

    Parameters
    ----------
    value : TensorVariable of int, shape (..., p)
    bias, weight : TensorVariable, shapes (biases,) and (weights,)
    potentials : Potentials
    likelihood : {"exact", "pseudo"}

    Returns
    -------
    TensorVariable
        (...); minus infinity for rows that hold something that is not a state.
    """
    unary, pair = tables(bias, weight, potentials)
    inside = pt.all((value >= 0) & (value < np.array(potentials.states)), axis=-1)
    hot = _one_hot(value, potentials)
    if likelihood == "exact":
        energy = hot @ unary + _interaction(value, hot, weight, pair, potentials)
        logp = energy - log_partition(bias, weight, potentials)
    else:
        fields = _fields(value, hot, weight, pair, potentials)
        logits = unary + fields
        logp = (hot * logits).sum(axis=-1) - _log_totals(logits, potentials).sum(axis=-1)
    return pt.switch(inside, logp, -np.inf)


def _one_hot(value, potentials):
    """Which state each variable is in, (..., unary cells)."""
    owner = np.repeat(np.arange(potentials.p), potentials.states)
    state = np.concatenate([np.arange(k) for k in potentials.states])
    return pt.eq(value[..., pt.as_tensor_variable(owner)], state).astype("float64")


def _interaction(value, hot, weight, pair, potentials):
    """Sum of the pair potentials of each row."""
    if potentials.edges is None:
        return 0.5 * (hot * _fields(value, hot, weight, pair, potentials)).sum(axis=-1)
    # Few edges: the factor of their weights is a table that is computed once if rows are observed.
    i, j = (pt.as_tensor_variable(end) for end in potentials.ends)
    if potentials.scored:
        scores = _scores(value, potentials)
        return (scores[..., i] * scores[..., j]) @ weight
    rows, columns = (pt.as_tensor_variable(cell) for cell in potentials.cells)
    return (hot[..., rows] * hot[..., columns]) @ pair


def _scores(value, potentials):
    return 2.0 * value - 1.0 if potentials.kind == "spin" else value.astype("float64")


def _fields(value, hot, weight, pair, potentials):
    """Log-potential of each state of each variable with the others of the row, but for its unary one."""
    if potentials.scored:
        scores, p = _scores(value, potentials), potentials.p
        index = np.full((p, p), potentials.weight_size)
        index[potentials.ends] = np.arange(potentials.weight_size)
        couplings = _assembled(weight, np.minimum(index, index.T))
        owner = np.repeat(np.arange(p), potentials.states)
        return potentials.scores * (scores @ couplings)[..., pt.as_tensor_variable(owner)]
    return hot @ _assembled(pair, block_index(potentials))


def block_index(potentials: Potentials) -> np.ndarray:
    """Cell of the pair tables for each pair of unary cells, (cells, cells); their number if none."""
    cells, none = int(potentials.unary_start[-1]), int(potentials.pair_start[-1])
    index = np.full((cells, cells), none)
    start, k = potentials.unary_start, potentials.states
    for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
        block = potentials.pair_start[e] + np.arange(k[i] * k[j]).reshape(k[i], k[j])
        index[start[i] : start[i + 1], start[j] : start[j + 1]] = block
        index[start[j] : start[j + 1], start[i] : start[i + 1]] = block.T
    return index


def _assembled(values, index):
    padded = pt.concatenate([values, pt.zeros(1)])
    return padded[pt.as_tensor_variable(index.ravel())].reshape(index.shape)


def _log_totals(logits, potentials):
    """Log of the sum over the states of each variable, (..., p)."""
    widest = max(potentials.states)
    shape = tuple(logits.shape[d] for d in range(logits.type.ndim - 1))
    if set(potentials.states) != {widest}:
        index = np.full((potentials.p, widest), int(potentials.unary_start[-1]))
        for i, k in enumerate(potentials.states):
            index[i, :k] = potentials.unary_start[i] + np.arange(k)
        padded = pt.concatenate([logits, pt.full((*shape, 1), -np.inf)], axis=-1)
        logits = padded[..., pt.as_tensor_variable(index.ravel())]
    return pt.logsumexp(logits.reshape((*shape, potentials.p, widest)), axis=-1)
