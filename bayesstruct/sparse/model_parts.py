"""Parts of models with sparse priors that several families use."""

import numpy as np

__all__ = ["horseshoe_prior"]


def horseshoe_prior(
    size: int,
    n: int,
    expected: float,
    scale: float,
    deviation: float,
    negligible: float,
    draws: int = 400_000,
) -> tuple[float, float]:
    """Prior probabilities that one coefficient, and that two, exceed a threshold in size.

    Estimated from draws of the regularised horseshoe with a fixed seed.

    Parameters
    ----------
    size : int
        Number of coefficients.
    n : int
        Number of observations.
    expected : float
        Expected number of coefficients that are not shrunk away.
    scale : float
        Scale of the slab.
    deviation : float
        Standard deviation of the noise.
    negligible : float
        Threshold of the absolute value.
    draws : int

    Returns
    -------
    one, both : float
        For a single coefficient, and for two that share the global scale.
    """
    rng = np.random.default_rng(0)
    tau = expected / (size - expected) * deviation / np.sqrt(n)
    tau = tau * np.abs(rng.standard_cauchy((draws, 1)))
    c2 = 2.0 * scale**2 / rng.standard_gamma(2.0, (draws, 1))
    local = np.abs(rng.standard_cauchy((draws, 2)))
    w = rng.standard_normal((draws, 2)) * tau * local / np.sqrt(1.0 + (tau * local) ** 2 / c2)
    beyond = np.abs(w) > negligible
    return float(beyond.mean()), float(beyond.all(axis=1).mean())
