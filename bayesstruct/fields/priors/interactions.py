"""Strength of the interaction of each pair, one number for each edge under any potentials."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from bayesstruct.fields.kernels.potentials import Potentials

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["interaction_strengths", "negligible_probability"]


def interaction_strengths(weight: "TensorVariable", potentials: Potentials) -> "TensorVariable":
    """Norm of the interaction of each pair of a Markov random field.

    See :meth:`bayesstruct.fields.kernels.potentials.Potentials.interaction_norms`; here for a tensor.

    Parameters
    ----------
    weight : TensorVariable
        (weights,) of the potentials.
    potentials : Potentials

    Returns
    -------
    TensorVariable
        (edges,), not negative; zero if there is no interaction.
    """
    index, coefficient = potentials.pair_map
    cells = coefficient * weight[pt.as_tensor_variable(index)]
    i, j = potentials.ends
    k = np.asarray(potentials.states)
    strengths = pt.zeros(len(i), dtype="float64")
    for rows, columns in sorted({*zip(k[i].tolist(), k[j].tolist(), strict=True)}):
        edges = np.flatnonzero((k[i] == rows) & (k[j] == columns))
        at = potentials.pair_start[edges][:, None] + np.arange(rows * columns)
        tables = cells[pt.as_tensor_variable(at)].reshape((len(edges), rows, columns))
        centred = tables - tables.mean(axis=1, keepdims=True) - tables.mean(axis=2, keepdims=True)
        centred = centred + tables.mean(axis=(1, 2), keepdims=True)
        norm = pt.sqrt(pt.square(centred).sum(axis=(1, 2)))
        strengths = strengths[pt.as_tensor_variable(edges)].set(norm)
    return strengths


def negligible_probability(
    potentials: Potentials, rate: float, norm: float | str, cut: float, draws: int = 20_000
) -> np.ndarray:
    """Prior probability that the strength of an interaction exceeds `cut`, by simulation.

    Parameters
    ----------
    potentials : Potentials
        With several weights for each pair.
    rate : float
        Rate of the group-Laplace prior.
    norm : {1, 2, numpy.inf, "nuclear"}
    cut : float
    draws : int

    Returns
    -------
    numpy.ndarray
        (edges,).
    """
    i, j = potentials.ends
    k = np.asarray(potentials.states)
    out = np.empty(len(i))
    for rows, columns in sorted({*zip(k[i].tolist(), k[j].tolist(), strict=True)}):
        pair = Potentials(potentials.kind, (rows, columns))
        strength = pair.interaction_norms(_unit_draws(pair, norm, draws) / rate)
        out[(k[i] == rows) & (k[j] == columns)] = (strength > cut).mean()
    return out


def _unit_draws(pair, norm, draws):
    """Weights of one pair under the prior of rate 1, (draws, weights)."""
    rng, size = np.random.default_rng(0), pair.weight_size
    if norm == 1:
        return rng.laplace(size=(draws, size))
    from bayesstruct.sparse.kernels import norm_priors

    order = np.arange(draws * size)
    start, rates = np.arange(draws + 1) * size, np.ones(draws)
    if norm == "nuclear":
        flat = norm_priors.draw_group_nuclear(
            rng, rates, order, start, draws * size, np.repeat(pair.shapes, draws, axis=0)
        )
    else:
        draw = norm_priors.draw_group_l2 if norm == 2 else norm_priors.draw_group_linf
        flat = draw(rng, rates, order, start, draws * size)
    return flat.reshape(draws, size)
