"""Prior probabilities of edges that positive definiteness implies."""

from functools import lru_cache
from typing import Any

import numpy as np

from bayesstruct.graphs.records import with_fixed

__all__ = [
    "implied_edge_probability",
    "implied_group_edge_probability",
    "implied_horseshoe_probability",
    "implied_joint_probability",
    "implied_nonnegligible_probability",
    "implied_relation_probabilities",
    "prior_sweeps",
]

_SEED = 20150201  # fixed: equal settings give equal Bayes factors
_DRAWS = 400_000  # indicator draws that an exchangeable prior is averaged over
_JOINT_MATRICES = 1_000_000  # that rejection tries
_LEAST = 1e-6  # the last digit
_SWEEPS = 4_000  # sweeps when every edge has its own probability
_OF_FEW = (
    200_000  # elements that few columns are swept for, which have few elements to average over
)


def prior_sweeps(p: int, numbers: int, least: int, most: int) -> int:
    """Return the number of Gibbs sweeps over a prior from which a share of matrices is estimated.

    Parameters
    ----------
    p : int
        Number of variables.
    numbers : int
        Elements that are drawn in all.
    least, most : int
        Bounds of the number of sweeps; fewer than ten columns have more than `most`.
    """
    return max(int(np.clip(numbers // p**2, least, most)), _OF_FEW // p**2)


def implied_edge_probability(
    p: int,
    edge_probability: Any = 0.5,
    *,
    beta: tuple[float, float] | None = None,
    spike_scale: float = 0.02,
    slab_scale: float = 1.0,
    diagonal_rate: float = 0.5,
) -> np.ndarray:
    r"""Prior probability of each edge under :class:`bayesstruct.GraphicalSpikeSlab`.

    The nominal probability :math:`\pi_{ij}` is that of independent elements. Conditioning them on a
    positive definite matrix makes slab values rarer, so that the prior of an edge is smaller;
    posterior odds have to be divided by the odds of this one. It is the average of the conditional
    edge probabilities over Gibbs draws from the prior, and remembered for the session.

    Parameters
    ----------
    p : int
        Number of variables.
    edge_probability : float or (p, p) array_like
        Nominal probabilities; with ``beta`` only its zeros (forbidden) and ones (required) count.
    beta : tuple of float, optional
        Shapes of the beta distribution of a common edge probability.
    spike_scale, slab_scale, diagonal_rate : float
        Those of the prior.

    Returns
    -------
    numpy.ndarray
        Vector of length p(p-1)/2, upper triangle row by row; its Monte Carlo error is below 0.005
        for the default number of draws.
    """
    nominal = np.broadcast_to(np.asarray(edge_probability, dtype="float64"), (p, p))
    scales = (float(spike_scale), float(slab_scale), float(diagonal_rate))
    shapes = None if beta is None else (float(beta[0]), float(beta[1]))
    return np.array(_implied(p, np.ascontiguousarray(nominal).tobytes(), shapes, scales))


@lru_cache(maxsize=64)
def _implied(p, nominal, shapes, scales):
    from bayesstruct.precision.kernels import prior as kernel

    matrix = np.frombuffer(nominal).reshape(p, p).copy()
    rng = np.random.default_rng(_SEED)
    values = matrix[np.triu_indices(p, 1)]
    free = (values > 0) & (values < 1)
    exchangeable = values.size > 0 and (
        np.ptp(values) == 0 or (shapes is not None and bool(free.all()))
    )
    sweeps = int(np.clip(_DRAWS // max(values.size, 1), 10, _SWEEPS)) if exchangeable else _SWEEPS
    if shapes is None:
        out = kernel.implied_inclusion(rng, matrix, *scales, sweeps)
    else:
        out = kernel.implied_shared_inclusion(rng, matrix, *shapes, *scales, _SWEEPS)
    # Rounded far below the Monte Carlo error, so that machines agree on the value.
    out = np.round(out[np.triu_indices(p, 1)], 6)
    out = np.full_like(out, np.round(out.mean(), 6)) if exchangeable else out
    return tuple(with_fixed(out, values == 1, values == 0, _LEAST))


def implied_joint_probability(
    probabilities: np.ndarray, *, spike_scale: float, slab_scale: float, diagonal_rate: float
) -> np.ndarray:
    """Prior probability of each edge where parameters and matrix are conditioned on positive definiteness together.

    By rejection, which is exact but ends with few variables.

    Parameters
    ----------
    probabilities : (draws, p, p) ndarray
        Nominal probabilities of the edges, at draws of the density that is written for their parameters.
    spike_scale, slab_scale, diagonal_rate : float

    Returns
    -------
    numpy.ndarray
        Vector of length p(p-1)/2, upper triangle row by row; NaN if matrices are positive definite too rarely for a standard
        error near 0.005.
    """
    from bayesstruct.precision.kernels.prior import count_joint_edges

    p = probabilities.shape[1]
    upper = np.triu_indices(p, 1)
    tries = max(1, _JOINT_MATRICES // len(probabilities))
    scales = (float(spike_scale), float(slab_scale), float(diagonal_rate))
    rng, nominal = np.random.default_rng(_SEED), np.ascontiguousarray(probabilities)
    counts = count_joint_edges(rng, nominal, *scales, 1)
    if counts[0, 0] * tries < _DRAWS / 10:
        return np.full(len(upper[0]), np.nan)
    counts += count_joint_edges(rng, nominal, *scales, tries)
    present, absent = ((nominal == k).all(axis=0)[upper] for k in (1, 0))
    return with_fixed(counts[upper] / counts[0, 0], present, absent, _LEAST)


def implied_nonnegligible_probability(
    p: int, negligible: float, rate: float = 1.0, *, diagonal_rate: float | None = None
) -> np.ndarray:
    """Prior probability that a partial correlation exceeds ``negligible`` in absolute value.

    Under :class:`bayesstruct.GraphicalLasso`, from Gibbs draws of the prior, averaged over edges.
    Partial correlations do not change with a common scale, so that a random ``rate`` gives the same
    value as any fixed one.

    Parameters
    ----------
    p : int
        Number of variables.
    negligible : float
        Bound on the absolute partial correlation.
    rate : float
        Laplace rate of the off-diagonal elements.
    diagonal_rate : float, optional
        Exponential rate of the diagonal; ``rate / 2`` unless given.

    Returns
    -------
    numpy.ndarray
        Vector of length p(p-1)/2 with equal entries.
    """
    ratio = 0.5 if diagonal_rate is None else float(diagonal_rate) / float(rate)
    return np.full(p * (p - 1) // 2, _nonnegligible(p, float(negligible), ratio))


@lru_cache(maxsize=64)
def _nonnegligible(p, negligible, ratio):
    from bayesstruct.precision.kernels.prior import laplace_exceedance

    sweeps = int(np.clip(_DRAWS // (p * (p - 1) // 2), 10, _SWEEPS))
    rng = np.random.default_rng(_SEED)
    return round(laplace_exceedance(rng, p, negligible, ratio, sweeps), 6)


def implied_horseshoe_probability(
    p: int,
    negligible: float,
    *,
    global_scale: float | None = None,
    width: float = 1.0,
    diagonal_rate: float = 0.5,
) -> np.ndarray:
    """Prior probability that a partial correlation exceeds ``negligible`` in absolute value.

    Under :class:`bayesstruct.GraphicalHorseshoe`, from Gibbs draws of the prior, averaged over edges.

    Parameters
    ----------
    p : int
        Number of variables.
    negligible : float
        Bound on the absolute partial correlation.
    global_scale : float, optional
        The global scale, if it is a constant.
    width : float
        Else the scale of its half-Cauchy distribution.
    diagonal_rate : float
        Exponential rate of the diagonal.

    Returns
    -------
    numpy.ndarray
        Vector of length p(p-1)/2 with equal entries, whose Monte Carlo error is about a tenth of the value for 100 variables
        and less for fewer.
    """
    learned = global_scale is None
    scale = float(width if global_scale is None else global_scale)
    value = _horseshoe(p, float(negligible), scale, learned, float(diagonal_rate))
    return np.full(p * (p - 1) // 2, value)


@lru_cache(maxsize=64)
def _horseshoe(p, negligible, scale, learned, diagonal_rate):
    from bayesstruct.precision.kernels.horseshoe.prior import horseshoe_exceedance

    sweeps = prior_sweeps(p, 10 * _DRAWS, 40, _SWEEPS)
    rng = np.random.default_rng(_SEED)
    share = horseshoe_exceedance(rng, p, negligible, scale, learned, diagonal_rate, sweeps)
    return max(round(share, 6), _LEAST)


def implied_relation_probabilities(
    groups: int,
    p: int,
    edge_probability: Any = 0.5,
    difference_probability: Any = 0.5,
    *,
    spike_scale: float = 0.02,
    slab_scale: float = 1.0,
    equal_scale: float | None = 0.02,
    difference_scale: float | None = 1.0,
    diagonal_rate: float = 0.5,
    edge_beta: tuple[float, float] | None = None,
    difference_beta: tuple[float, float] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Prior probability of each edge, and of each difference, under :class:`bayesstruct.distributions.GroupedSpikeSlab`.

    With no scales of equal and different elements it is that under :class:`bayesstruct.distributions.GroupIndicatorSpikeSlab`.

    As in :func:`implied_edge_probability`: averages of conditional probabilities over draws from the prior.

    Parameters
    ----------
    groups, p : int
        Numbers of groups and of variables.
    edge_probability, difference_probability : float or (p, p) array_like
        Nominal probabilities.
    spike_scale, slab_scale, diagonal_rate : float
    equal_scale, difference_scale : float, optional
        Those of the prior.
    edge_beta, difference_beta : tuple of float, optional
        Shapes of the beta distributions of common probabilities; of the nominal ones only zeros and ones count then.

    Returns
    -------
    edge, difference : (p (p - 1) / 2,) ndarray
        Upper triangle row by row.
    """
    nominal = _nominal(p, edge_probability, difference_probability)
    scales = _scales(spike_scale, slab_scale, equal_scale, difference_scale)
    shapes = _beta_shapes(edge_beta, difference_beta)
    edge, difference, _ = _relations(groups, p, nominal, scales, float(diagonal_rate), shapes)
    return np.array(edge), np.array(difference)


def implied_group_edge_probability(
    groups: int,
    p: int,
    edge_probability: Any = 0.5,
    difference_probability: Any = 0.5,
    *,
    spike_scale: float = 0.02,
    slab_scale: float = 1.0,
    equal_scale: float | None = None,
    difference_scale: float | None = None,
    diagonal_rate: float = 0.5,
    edge_beta: tuple[float, float] | None = None,
    difference_beta: tuple[float, float] | None = None,
) -> np.ndarray:
    """Prior probability of each edge in one group, under :class:`bayesstruct.distributions.GroupIndicatorSpikeSlab`.

    With scales of equal and different elements it is that under :class:`bayesstruct.distributions.GroupedSpikeSlab`, where a
    group has an edge if the pair is equal, or different and its partial correlation in the group beyond 0.1.

    Parameters
    ----------
    groups, p, edge_probability, difference_probability, diagonal_rate, edge_beta, difference_beta
        As in :func:`implied_relation_probabilities`.
    spike_scale, slab_scale, equal_scale, difference_scale
        As there; none of the last two with indicators.

    Returns
    -------
    (p (p - 1) / 2,) ndarray
        Upper triangle row by row.
    """
    nominal = _nominal(p, edge_probability, difference_probability)
    scales = _scales(spike_scale, slab_scale, equal_scale, difference_scale)
    shapes = _beta_shapes(edge_beta, difference_beta)
    return np.array(_relations(groups, p, nominal, scales, float(diagonal_rate), shapes)[2])


def _scales(spike, slab, equal, difference) -> tuple[float, ...]:
    """Two standard deviations with indicators, four with contrasts."""
    contrasts = () if equal is None or difference is None else (equal, difference)
    return tuple(float(v) for v in (spike, slab, *contrasts))


def _beta_shapes(*betas) -> tuple[float, ...]:
    """Shapes as kernels take them, zeros of a probability that is not learned."""
    return tuple(float(v) for beta in betas for v in ((0.0, 0.0) if beta is None else beta))


def _nominal(p, *probabilities) -> tuple[bytes, ...]:
    """Matrices of probabilities as bytes, by which results are remembered."""
    squares = (np.broadcast_to(np.asarray(v, dtype="float64"), (p, p)) for v in probabilities)
    return tuple(np.ascontiguousarray(square).tobytes() for square in squares)


@lru_cache(maxsize=64)
def _relations(groups, p, nominal, scales, rate, shapes):
    from bayesstruct.precision.kernels.row_groups import prior as kernel
    from bayesstruct.precision.kernels.row_groups.shares import sweep_group_shares
    from bayesstruct.precision.kernels.row_groups.sweep import CONTRASTS, INDICATORS

    matrices = [np.frombuffer(own).reshape(p, p).copy() for own in nominal]
    upper = np.triu_indices(p, 1)
    edge, difference = (matrix[upper] for matrix in matrices)
    exchangeable = np.ptp(edge) == 0 and np.ptp(difference) == 0
    learned = max(shapes) > 0
    few = exchangeable and not learned
    sweeps = int(np.clip(_DRAWS // len(edge), 10, _SWEEPS)) if few else _SWEEPS
    rng, rates = np.random.default_rng(_SEED), np.full(groups, rate)
    design = CONTRASTS if len(scales) == 4 else INDICATORS
    prior = (*scales, 0.0, 0.0)[:4], rates, design, kernel.SWEEPS + sweeps
    if learned:
        _, chances = sweep_group_shares(rng, shapes, *matrices, *prior)
    else:
        log_prior = kernel.log_relations(*matrices)
        _, chances = kernel.sweep_groups_prior(rng, log_prior, *prior)
    absent, _, different, share = ((c + c.T)[upper] / (2.0 * sweeps) for c in chances)
    out = []
    for value, present, never in (
        (1.0 - absent, edge == 1, edge == 0),
        (different, edge * difference == 1, edge * difference == 0),
        (share, edge * (1 - difference) == 1, edge == 0),
    ):
        shown = np.full_like(value, value.mean()) if exchangeable else value
        out.append(tuple(with_fixed(np.round(shown, 6), present, never, _LEAST)))
    return tuple(out)
