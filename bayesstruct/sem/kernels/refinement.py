"""Proposals that follow the mean and the covariance of the posterior of a family, where its mode says little.

The posterior of the weights of a mixture of normals is often skewed: a component that the noise may or may not have gives a mode at one end of what
is probable. Draws around such a mode have few effective ones among them, and chains that rest on them stick. A few rounds of
adaptive importance sampling (Cappé, Guillin, Marin and Robert 2004) move centre and covariance to those of the posterior; weights are tempered
as long as few draws carry most of them, and draws of all rounds count. The first round draws widely: around a mode that is not typical all weights look alike. The numbers are fixed, so that all chains have the same proposals.

References
----------
Cappé, O., Guillin, A., Marin, J. M. and Robert, C. P. (2004). Population Monte Carlo. *Journal of Computational and
Graphical Statistics* 13, 907-929.
"""

import numpy as np

from bayesstruct.sem.kernels.fits import FamilyFit, move_coordinates, parameter_count
from bayesstruct.sem.kernels.proposals import random_numbers, weigh
from bayesstruct.sem.kernels.settings import FREE, MIXTURE, SemSettings

__all__ = ["is_large", "refined"]

_ROWS, _CELLS = 500, 10_000  # of tables in which draws do not take too long
_DRAWS, _ROUNDS = 256, 8
_SHARE = 0.1  # effective share of the draws that weights keep
_WIDER = 5.0  # times the variance of shapes in the first round
_KEPT = 0.1  # part of the covariance before that stays
_LEAST = 3  # draws that can be, for each parameter, for a covariance
_INSIDE = 0.5  # share of the draws that can be
_SEED = 20171


def is_large(n: int, d: int) -> bool:
    """Whether draws of parameters of a table take long: more than 500 rows, and more than 10,000 values."""
    return n > _ROWS and n * d > _CELLS


def refined(y, design, fit: FamilyFit, settings: SemSettings) -> FamilyFit:
    """Move the centre and the covariance of a proposal to those of the posterior.

    Parameters
    ----------
    y, design : arrays
        See :func:`bayesstruct.sem.kernels.fits.family_design`.
    fit : FamilyFit
    settings : SemSettings

    Returns
    -------
    FamilyFit
        The same one where the noise is no mixture or columns share it, without rows, and where draws do not show a covariance. Mode and evidence
        stay.
    """
    if settings.noise != MIXTURE or settings.variances != FREE or not len(y):
        return fit
    try:
        return _searched(y, design, fit, settings)
    except np.linalg.LinAlgError:  # copied columns, or fewer rows than parameters
        return fit


def _searched(y, design, fit, settings):
    rng, p = np.random.default_rng(_SEED), len(design)
    found = _with_covariance(fit, fit.centre, _wider(np.linalg.inv(fit.precision), p), p)
    points, weights = np.empty((0, len(fit.centre))), np.empty(0)
    for _ in range(_ROUNDS):
        draws, logs = _draws(rng, y, design, found, settings, _DRAWS)
        points, weights = np.vstack([points, draws]), np.append(weights, logs)
        if np.isfinite(weights).sum() < _LEAST * len(fit.centre):
            return fit
        found = _moved(found, points, _tempered(weights), p)
    logs = _draws(rng, y, design, found, settings, _DRAWS)[1]
    if np.isfinite(logs).mean() < _INSIDE:
        return fit
    np.linalg.cholesky(found.precision)
    return found


def _wider(covariance, p):
    """Covariance with a multiple of that of the shape, the regressions of the others on it as they are."""
    shape = slice(p + 1, None)
    slopes = np.linalg.solve(covariance[shape, shape], covariance[shape]).T
    return covariance + (_WIDER - 1.0) * slopes @ covariance[shape, shape] @ slopes.T


def _with_covariance(fit, centre, covariance, p):
    covariance = 0.5 * (covariance + covariance.T)
    schur = np.linalg.inv(covariance[p:, p:])
    return fit._replace(centre=centre, precision=np.linalg.inv(covariance), schur=schur)


def _draws(rng, y, design, fit, settings, m):
    """Draws of a proposal in even coordinates, and their log weights."""
    p = len(design)
    theta = np.zeros((m, parameter_count(settings, p - 1)))
    logs = weigh(y, design, fit, settings, random_numbers(rng, settings, p - 1, len(y), m), theta)
    for own in theta:
        move_coordinates(settings, own, p, 1)
    return theta[:, : len(fit.centre)], np.where(np.isnan(logs), -np.inf, logs)


def _effective(logs):
    """Effective share of the draws, by their weights."""
    weights = np.exp(logs - logs.max())
    return weights.sum() ** 2 / (weights**2).sum() / len(weights)


def _tempered(logs):
    """Weights of draws that add up to one, flattened until enough draws count."""
    finite = np.where(logs > -np.inf, logs, logs[logs > -np.inf].min() - 50.0)
    power = 1.0
    while _effective(power * finite) < _SHARE:
        power *= 0.8
    weights = np.exp(power * (finite - finite.max()))
    return weights / weights.sum()


def _moved(fit, draws, weights, p):
    """Return a fit with the mean and the covariance of weighted draws, and a part of the covariance that it had."""
    centre = weights @ draws
    away = draws - centre
    covariance = (weights[:, None] * away).T @ away
    kept = _KEPT * np.linalg.inv(fit.precision)
    return _with_covariance(fit, centre, (1.0 - _KEPT) * covariance + kept, p)
