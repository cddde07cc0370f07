"""Priors of mixtures of regressions, on the scale of a table."""

import numpy as np

from bayesstruct.data.arguments import number
from bayesstruct.mixtures.data import RegressionTable
from bayesstruct.mixtures.reading.records import MixturePrior

__all__ = ["mixture_prior"]

_SHAPE = 2.0  # of the inverse-gamma priors of variances


def mixture_prior(
    table: RegressionTable,
    family: str,
    *,
    alpha: float | None,
    within: float,
    mean_strength: float,
    coefficient_scale: float | None,
) -> MixturePrior:
    """Choose the parameters of the priors.

    Parameters
    ----------
    table : RegressionTable
    family : {"gaussian", "logistic", "poisson"}
    alpha, within, mean_strength, coefficient_scale
        Options of :func:`bayesstruct.models.dp_glm`.

    Raises
    ------
    TypeError, ValueError
        If an option is out of range.
    """
    x, y, normal = table.x, table.y, family == "gaussian"
    within = number("within", within, above=0)
    if coefficient_scale is None:
        coefficient_scale = 0.5 if family == "poisson" else 2.0
    scale = number("coefficient_scale", coefficient_scale, above=0)
    strength = number("mean_strength", mean_strength, above=0)
    deviation, share = x.std(axis=0), within if normal else 1.0
    return MixturePrior(
        location=x.mean(axis=0),
        strength=np.full(x.shape[1], strength),
        shape=_SHAPE,
        # The mean of an inverse-gamma variable is its rate over its shape less one.
        rate=within * deviation**2,
        start=np.append(_level(y, family), np.zeros(x.shape[1])),
        # In standard deviations of the response, noise has variance `within` and coefficients `scale` squared.
        weight=share / scale**2 * np.append(1.0, deviation**2),
        noise_shape=_SHAPE if normal else None,
        noise_rate=within * float(y.var()) if normal else None,
        alpha=None if alpha is None else number("alpha", alpha, above=0),
    )


def _level(y, family):
    """Prior mean of the intercept: the linear predictor of the mean response."""
    mean = float(y.mean())
    if family == "logistic":
        return float(np.log(mean) - np.log1p(-mean))
    return float(np.log(mean)) if family == "poisson" else mean
