"""Names and codes of the likelihoods of pairs of objects and of the kinds of weights between features."""

import numpy as np

__all__ = ["DIAGONAL", "FULL", "KINDS", "LIKELIHOODS", "LINKS", "SYMMETRIC", "probabilities"]

#: Likelihoods in the order of their codes; see :mod:`bayesstruct.features.kernels.link_likelihoods`.
LIKELIHOODS = ("logistic", "probit", "noisy_or", "normal")
#: Likelihoods of zeros and ones.
LINKS = LIKELIHOODS[:3]
#: Kinds of weight matrices in the order of their codes.
KINDS = ("full", "symmetric", "diagonal")
FULL, SYMMETRIC, DIAGONAL = 0, 1, 2


def probabilities(link: str, eta: np.ndarray) -> np.ndarray:
    """Probability of a one for each linear predictor.

    Parameters
    ----------
    link : {"logistic", "probit", "noisy_or"}
    eta : array_like
    """
    from scipy.special import expit, ndtr

    if link == "logistic":
        return expit(eta)
    return ndtr(eta) if link == "probit" else -np.expm1(-np.asarray(eta))
