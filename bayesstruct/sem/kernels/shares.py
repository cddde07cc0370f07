r"""A random share of columns with exactly normal noise: what a graph, or the kinds of noise of the columns, say about it.

Given the share s, columns have normal noise independently, and the evidence of all columns given a graph is

.. math:: \prod_i \bigl((1 - s)\, E_i + s\, N_i\bigr) = \sum_k c_k\, s^k (1 - s)^{d - k}

with the evidences :math:`E_i` given a mixture and :math:`N_i` given normal noise. So the posterior of s under a prior Beta(a, b) is a mixture of
Beta(a + k, b + d - k), k being the number of columns with normal noise.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scipy.special import betaln, logsumexp, roots_sh_jacobi

if TYPE_CHECKING:
    from bayesstruct.sem.kernels.families import Family
    from bayesstruct.sem.kernels.settings import SemSettings

__all__ = ["count_weights", "draw_share", "mean_share", "share_given_kinds", "share_points"]


def count_weights(families: "Sequence[Family]", settings: "SemSettings") -> np.ndarray:
    """Return the posterior probabilities of the number of columns with normal noise, by the evidences of the families.

    Parameters
    ----------
    families : sequence of Family
        One for each of the d columns.
    settings : SemSettings
        With a random share.

    Returns
    -------
    (d + 1,) ndarray
    """
    logs = np.zeros(1)
    for family in families:
        mixture, normal = family.evidence, family.normal_evidence
        logs = np.logaddexp(
            np.append(logs + mixture, -np.inf), np.insert(logs + normal, 0, -np.inf)
        )
    logs = logs + betaln(*_beta(settings, np.arange(len(logs)), len(families)))
    return np.exp(logs - logsumexp(logs))


def mean_share(families: "Sequence[Family]", settings: "SemSettings") -> float:
    """Return the posterior mean of the share given the graph of the families, by their evidences."""
    weights = count_weights(families, settings)
    a, b = _beta(settings, np.arange(len(weights)), len(families))
    return float(weights @ (a / (a + b)))


def draw_share(
    rng: np.random.Generator, families: "Sequence[Family]", settings: "SemSettings"
) -> float:
    """Draw the share from its posterior given the graph of the families, by their evidences."""
    k = rng.choice(len(families) + 1, p=count_weights(families, settings))
    return float(rng.beta(*_beta(settings, k, len(families))))


def share_given_kinds(
    rng: np.random.Generator, normal: np.ndarray, settings: "SemSettings"
) -> float:
    """Draw the share given which of the columns have normal noise, (d,) bool."""
    return float(rng.beta(*_beta(settings, np.sum(normal), len(normal))))


def share_points(settings: "SemSettings", d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return shares and logarithms of their weights, sums over which are integrals over the prior of the share.

    Parameters
    ----------
    settings : SemSettings
    d : int
        Number of columns.

    Returns
    -------
    points, log_weights : (m,) arrays
        Of Gauss-Jacobi quadrature, exact for polynomials of degree d + 1 and less, such as the evidence times the share; the only share where it is fixed.
    """
    if not settings.share_is_random:
        return np.array([settings.normal_probability]), np.zeros(1)
    a, b = settings.share_alpha, settings.share_beta
    points, weights = roots_sh_jacobi((d + 3) // 2, a + b - 1.0, a)
    return points, np.log(weights / weights.sum())


def _beta(settings, k, d):
    """Parameters of the posterior of the share, given that k of d columns have normal noise."""
    return settings.share_alpha + k, settings.share_beta + d - k
