"""Priors of precision matrices as scale mixtures: variances of normal off-diagonal elements, drawn given the matrix."""

from collections.abc import Callable

import numpy as np

from bayesstruct.precision.recognition.values import (
    HorseshoeValues,
    LaplaceValues,
    SpikeSlabValues,
)

__all__ = ["ELEMENT_VARIANCES"]


def _spike_slab(rng, precision: np.ndarray, values: SpikeSlabValues) -> np.ndarray:
    """Draw the component of each element."""
    from bayesstruct.precision.kernels.prior import draw_edges

    edges = draw_edges(rng, precision, values.probability, values.spike, values.slab)
    return _symmetric(np.where(edges > 0, values.slab, values.spike) ** 2, len(precision))


def _laplace(rng, precision: np.ndarray, values: LaplaceValues) -> np.ndarray:
    """Draw the reciprocal of each variance, inverse Gaussian with mean rate / |u| and shape rate^2."""
    upper = np.triu_indices(len(precision), 1)
    rate = values.rates[upper]
    mean = rate / np.maximum(np.abs(precision[upper]), 1e-100)
    half = 0.5 * mean * (rng.standard_normal(len(rate)) / rate) ** 2
    smaller = mean / (1.0 + half + np.sqrt(half) * np.sqrt(half + 2.0))  # no cancellation
    first = rng.random(len(rate)) * (mean + smaller) < mean
    return _symmetric(1.0 / np.where(first, smaller, mean * (mean / smaller)), len(precision))


def _horseshoe(rng, precision: np.ndarray, values: HorseshoeValues) -> np.ndarray:
    """Draw the local scale of each element."""
    from bayesstruct.precision.kernels.horseshoe.sweep import element_variances

    return element_variances(rng, precision, values.scales)


def _symmetric(values: np.ndarray, p: int) -> np.ndarray:
    out = np.ones((p, p))
    upper = np.triu_indices(p, 1)
    out[upper] = values
    out.T[upper] = values
    return out


# By the type of the hyperparameters; other priors have moves of the units of latent columns of their own, or none.
ELEMENT_VARIANCES: dict[type, Callable[..., np.ndarray]] = {
    SpikeSlabValues: _spike_slab,
    LaplaceValues: _laplace,
    HorseshoeValues: _horseshoe,
}
