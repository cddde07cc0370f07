r"""Gibbs sweeps over groups of coefficients of a regression that are zero together.

With independent rows of precision :math:`\omega_i`, :math:`G = X' \Omega X`, :math:`b = X' \Omega y`, and
:math:`A = G_{\gamma\gamma} + V_\gamma^{-1}` for the coefficients of the groups :math:`\gamma`, whose slab variances are V, the
density of y given the groups, coefficients integrated out, is proportional to

.. math:: |V_\gamma|^{-1/2} |A|^{-1/2} \exp\bigl(\tfrac12 b_\gamma' A^{-1} b_\gamma\bigr) .

Each indicator is drawn given the others, then all coefficients at once from :math:`N(A^{-1} b_\gamma, A^{-1})`.
"""

import numpy as np

__all__ = ["group_sweep"]


def group_sweep(
    rng: np.random.Generator,
    w: np.ndarray,
    labels: np.ndarray,
    gram: np.ndarray,
    score: np.ndarray,
    slab: np.ndarray,
    log_odds: np.ndarray,
) -> np.ndarray:
    """Draw the groups and the coefficients once, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    w : (p,) ndarray
        Coefficients; changed.
    labels : (p,) ndarray of int
        Group of each.
    gram : (p, p) ndarray
    score : (p,) ndarray
    slab : (p,) ndarray
        Variances of the slab.
    log_odds : (groups,) ndarray
        Prior log odds of each group; may be infinite.

    Returns
    -------
    (groups,) ndarray
        Probability with which each group was drawn to be in.
    """
    from scipy.special import expit

    groups = len(log_odds)
    on = np.bincount(labels, w != 0, groups) > 0
    inclusion = np.empty(groups)
    for g in range(groups):
        evidence = []
        for present in (False, True):
            on[g] = present
            evidence.append(_log_evidence(on[labels], gram, score, slab))
        inclusion[g] = expit(log_odds[g] + evidence[1] - evidence[0])
        on[g] = rng.random() < inclusion[g]
    _draw(rng, w, on[labels], gram, score, slab)
    return inclusion


def _factor(active, gram, slab):
    at = np.flatnonzero(active)
    return at, np.linalg.cholesky(gram[np.ix_(at, at)] + np.diag(1.0 / slab[at]))


def _log_evidence(active, gram, score, slab) -> float:
    from scipy.linalg import solve_triangular

    at, factor = _factor(active, gram, slab)
    if not len(at):
        return 0.0
    half = solve_triangular(factor, score[at], lower=True)
    return 0.5 * half @ half - np.log(factor.diagonal()).sum() - 0.5 * np.log(slab[at]).sum()


def _draw(rng, w, active, gram, score, slab):
    from scipy.linalg import solve_triangular

    at, factor = _factor(active, gram, slab)
    w[:] = 0.0
    if len(at):
        half = solve_triangular(factor, score[at], lower=True) + rng.standard_normal(len(at))
        w[at] = solve_triangular(factor, half, lower=True, trans="T")
