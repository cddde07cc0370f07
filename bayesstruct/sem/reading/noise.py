"""Noise of a row of linear structural equations, for the predicted rows of ``bayesstruct.do``."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.reading.effects import flat_draws, register_noise
from bayesstruct.sem.priors.noise import NoiseLaw, with_normal
from bayesstruct.sem.priors.records import SemNoise

if TYPE_CHECKING:
    from bayesstruct.graphs.posteriors.arcs import DagPosterior

__all__ = ["NORMAL", "has_other_noise", "shape_draws", "shape_names"]

#: Of the variable that says which columns have exactly normal noise.
NORMAL = "normal_noise"
_SHAPE = {"student": ("degrees",), "mixture": ("mixture_weight",)}


def has_other_noise(constants) -> bool:
    """Whether the rows of a result, or of its group ``constant_data``, have noise that is not normal."""
    return SemNoise.is_in(constants) and SemNoise.read(constants).law.name != "gaussian"


def shape_names(law: NoiseLaw) -> tuple[str, ...]:
    """Names of the variables that are the shape of the noise."""
    return _SHAPE.get(law.name, ()) + (NORMAL,) * law.may_be_normal


def shape_draws(posterior: "DagPosterior") -> np.ndarray:
    """Shape parameters of the noise in each draw, (draws, d, k)."""
    d = len(posterior.variables)
    law = SemNoise.read(posterior.constants).law
    if law.name == "student":
        return flat_draws(posterior, "degrees")[:, :, None]
    if law.name != "mixture":
        return np.zeros(
            (posterior.draws["dag"].sizes["chain"] * posterior.draws.sizes["draw"], d, 1)
        )
    values = flat_draws(posterior, "mixture_weight")
    if law.may_be_normal:
        return with_normal(values, flat_draws(posterior, NORMAL))
    shared = values.ndim == 2  # by all columns
    return np.repeat(values[:, None], d, axis=1) if shared else values


def _draw(posterior, rng):
    """Noise of a standardised row with mean zero for each draw, (draws, d)."""
    law = SemNoise.read(posterior.constants).law
    shape = shape_draws(posterior)
    mean, variance = law.moments(shape)
    draws, d, k = shape.shape
    e = law.draw(rng, shape.reshape(draws * d, k), 1).reshape(draws, d)
    return (e - mean) * np.sqrt(flat_draws(posterior, "noise_variance") / variance)


register_noise(has_other_noise, _draw)
