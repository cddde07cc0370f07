"""What all columns share, at whose values scores are made: scale and shape of a mixture, or the share of columns with normal noise.

Scores given them are near the evidence of the posterior as far as its scale is near: the reference is a mode given a good graph. Graph and
scale are found in turn, first with normal noise, whose scores have a closed form. So are graph and share, whose reference is its
posterior mean given the graph.
"""

import math

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.sem.kernels.candidates import sem_tables
from bayesstruct.sem.kernels.errors import (
    BASE,
    LOCATIONS,
    WIDTHS,
    log_shape_prior,
    mixture_weights,
    shape_size,
    start_shape,
)
from bayesstruct.sem.kernels.fits import log_joint
from bayesstruct.sem.kernels.settings import FREE, GAUSSIAN, MIXTURE, SPIKE_SLAB, SemSettings
from bayesstruct.sem.kernels.shares import mean_share

if TYPE_CHECKING:
    from bayesstruct.networks.exact.problem import NetworkProblem
    from bayesstruct.sem.kernels.scores import SemScores

__all__ = ["at_reference", "log_shared_prior", "reference", "shared_precision"]

_SEED = 20170  # the reference is part of the scores: all chains have to have the same
_ROUNDS, _UPDATES, _CLIMBS = 4, 12, 2
_CLOSE = 0.02  # difference of log scales that does not matter
_STEP = 1e-3


def at_reference(problem: "NetworkProblem") -> "NetworkProblem":
    """Return a problem whose scores are those given a good common scale, or a good share of columns with normal noise.

    Parameters
    ----------
    problem : NetworkProblem
        Its score is a :class:`bayesstruct.sem.kernels.scores.SemScores`. If columns share neither it is returned as it is.

    Returns
    -------
    NetworkProblem
    """
    scores = problem.score
    if scores.settings.share_is_random:
        return _at_good_share(problem)
    if scores.settings.variances == FREE:
        return problem
    normal = scores.settings._replace(noise=GAUSSIAN, prior=SPIKE_SLAB)
    first = type(scores)(
        scores.table,
        normal,
        interventions=scores.interventions,
        relative=scores.relative,
        log_scale=_least_log_scale(scores),
    )
    graph = np.zeros((problem.d, problem.d), np.int8)
    for _ in range(_ROUNDS):
        graph = _good_graph(replace(problem, score=first))
        log_scale, _ = reference(first, graph)
        close = abs(log_scale - first.log_scale) < _CLOSE
        first = first.at(log_scale)
        if close:
            break
    own = scores.at(*reference(scores.at(first.log_scale), graph))
    return replace(problem, score=own)


def _at_good_share(problem):
    """Return a problem whose scores are those given the mean share of a good graph."""
    for _ in range(_ROUNDS):
        scores, graph = problem.score, _good_graph(problem)
        families = [scores.family(i, np.flatnonzero(column)) for i, column in enumerate(graph.T)]
        share = mean_share(families, scores.settings)
        close = abs(share - scores.settings.normal_probability) < _CLOSE
        problem = replace(problem, score=scores.at_share(share))
        if close:
            break
    return problem


def reference(scores: "SemScores", graph: np.ndarray) -> tuple[float, np.ndarray]:
    """Find the scale, and the shape of a mixture, of greatest posterior density given a graph.

    Parameters
    ----------
    scores : SemScores
        With equal or known variances; its reference is the start.
    graph : (d, d) array
        1 at (parent, child).

    Returns
    -------
    log_scale : float
    shape : ndarray
    """
    for _ in range(_UPDATES):
        families = [scores.family(i, np.flatnonzero(graph[:, i])) for i in range(scores.d)]
        shape = scores.shape
        if scores.settings.noise == MIXTURE:
            shape = _updated_shape(scores, families)
        log_scale = _updated_scale(scores, families, shape)
        moved = abs(log_scale - scores.log_scale) + np.abs(shape - scores.shape).max(initial=0.0)
        scores = scores.at(log_scale, shape)
        if moved < 0.1 * _CLOSE:
            break
    return scores.log_scale, scores.shape


def _good_graph(problem):
    from bayesstruct.networks.kernels.order_search import best_graph

    rng = np.random.default_rng(_SEED)
    return best_graph(sem_tables(problem), rng, climbs=_CLIMBS * problem.d)[0]


def _least_log_scale(scores):
    """Log scale of the residuals of regressions on all other columns."""
    z = scores.table - scores.table.mean(0)
    n, d = z.shape
    precision = np.linalg.inv(
        z.T @ z / max(n, 1) + np.eye(d) / (max(n, 1) * scores.settings.scale**2)
    )
    return 0.5 * float(np.log(np.mean(1.0 / (np.diag(precision) * scores.relative))))


def _log_density(scores, families, shape, log_scale):
    """Log joint density of all columns and of the scale, their other parameters being those of the fits."""
    own = scores.settings
    total = -2.0 * own.shape * log_scale - own.rate * np.exp(-2.0 * log_scale)
    for i, family in enumerate(families):
        p, theta = len(family.design), np.array(family.fit.mode)
        theta[p] = log_scale + scores.log_relative[i]
        theta[p + 1 : p + 1 + len(shape)] = shape if own.noise == MIXTURE else theta[p + 1 :]
        theta = np.append(theta, family.fit.scale_mean)
        total += log_joint(family.y, family.design, own, theta)
    return total


def _updated_scale(scores, families, shape):
    """Return the scale after a Newton step of its logarithm, of limited length."""
    at = scores.log_scale
    low, mid, high = (
        _log_density(scores, families, shape, at + step) for step in (-_STEP, 0.0, _STEP)
    )
    slope, bend = (high - low) / (2.0 * _STEP), (high - 2.0 * mid + low) / _STEP**2
    step = slope / max(-bend, 0.1 * scores.n_rows.sum() + 1.0)
    return at + float(np.clip(step, -0.5, 0.5))


def _updated_shape(scores, families):
    """Return the shape whose weights are the mode given the shares that components have of the residuals."""
    own = scores.settings
    counts = own.concentration * BASE - 1.0 / 3.0
    weights = mixture_weights(scores.shape)
    for family in families:
        p, mode = len(family.design), family.fit.mode
        e = (family.y - mode[:p] @ family.design) * np.exp(-mode[p])
        shares = weights * np.exp(-0.5 * ((e[:, None] - LOCATIONS) / WIDTHS) ** 2) / WIDTHS
        counts = counts + (shares / (shares.sum(1, keepdims=True) + 1e-300)).sum(0)
    counts = np.maximum(counts, 1e-3)
    return np.cbrt(own.concentration * counts / counts.sum())


def shared_precision(scores: "SemScores", families: list) -> np.ndarray:
    """Precision of the common log scale, and shape of a mixture, near the reference; in even coordinates.

    Parameters
    ----------
    scores : SemScores
    families : list of Family
        One for each column.

    Returns
    -------
    (1 + K, 1 + K) ndarray
        Positive definite. K is the number of components of a mixture, or 0.
    """
    own = scores.settings
    mixture = own.noise == MIXTURE
    size = 1 + (shape_size(MIXTURE) if mixture else 0)
    out = sum(family.fit.schur[:size, :size] for family in families)
    out = out + np.diag(np.r_[2.0 * own.shape, np.zeros(size - 1)])
    if mixture:
        out[1:, 1:] += np.diag(9.0 * own.concentration * BASE / start_shape(own) ** 2)
    return nearest_positive(out)


def nearest_positive(matrix: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix with its eigenvalues made positive."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    values = np.maximum(np.abs(values), 1e-8 * max(np.abs(values).max(initial=0.0), 1e-8))
    return (vectors * values) @ vectors.T


def log_shared_prior(settings: SemSettings, log_scale: float, shape: np.ndarray) -> float:
    """Log prior density of the common log scale, and of the shape of a mixture.

    Parameters
    ----------
    settings : SemSettings
    log_scale : float
    shape : (S,) array
        Not used with other noise.

    Returns
    -------
    float
    """
    a, b = settings.shape, settings.rate
    out = math.log(2.0) + a * math.log(b) - math.lgamma(a)
    out -= 2.0 * a * log_scale + b * math.exp(-2.0 * log_scale)
    return out + (log_shape_prior(settings, shape) if settings.noise == MIXTURE else 0.0)
