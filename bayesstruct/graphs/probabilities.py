"""How probable each edge is, and how much the data changed that."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.edges import EdgePosterior, read_posterior
from bayesstruct.graphs.mixing import indicator_ess, series_ess, typical_ess

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["bayes_factors", "inclusion_probabilities"]

# exp(700) = 1e304: the largest Bayes factor that is written down; beyond it, a bound.
MAX_LOG = 700.0
_NEEDED = ("precision",)
_NEEDED_CONSTANTS = ("spike_scale", "slab_scale")
# Steps report numbers in single precision, which is 6e-8 near one.
_LEAST = 1e-6


def inclusion_probabilities(idata, *, group: str = "posterior") -> "xr.DataArray":
    r"""Posterior probability that each edge is in the graph.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    xarray.DataArray over the edges
        Probabilities. `attrs["estimator"]` is "rao-blackwell", "control variate", "frequency" or
        "product".

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a graph model.

    Notes
    -----
    With a spike-and-slab prior the indicator is independent of everything else given the precision
    matrix, so instead of counting ones we average what they were drawn from [1]_, a smaller
    Monte Carlo error at no cost:

    .. math:: \frac1S \sum_s
        \frac{\pi N(k^{(s)}; 0, v_1^2)}
             {\pi N(k^{(s)}; 0, v_1^2) + (1 - \pi) N(k^{(s)}; 0, v_0^2)},

    with :math:`k` the off-diagonal precision, :math:`v_0, v_1` the standard deviations of spike and
    slab and :math:`\pi` the nominal probability of the edge (its own draw in each iteration when
    it has a Beta prior). A graph from `symmetrize`: the products of the probabilities of its arcs.

    Markov random fields with a spike-and-slab prior: an edge is drawn by proposing an indicator
    :math:`g'`, one with a probability :math:`q` that depends on everything else, and accepting it with a
    probability near one. The mean of :math:`g - g' + q`, with :math:`g` the indicator that results, is that of
    :math:`g`, and its Monte Carlo error nearly that of the mean of :math:`q`
    (:class:`bayesstruct.steps.PairwiseSpikeSlab`; the difference :math:`g' - q` is a control variate). It is taken
    where the group `sample_stats` of the same draws has it, and set to 0 or 1 where it is beyond.

    Other models, or without `sample_stats`: the mean of the indicator.

    References
    ----------
    .. [1] Gelfand and Smith (1990). Sampling-based approaches to calculating marginal densities.
       JASA 85, 398-409.

    Examples
    --------
    >>> inclusion_probabilities(idata).to_series()["praf -- pmek"]  # doctest: +SKIP
    """
    posterior = read_posterior(idata, group)
    present, _ = mean_probabilities(posterior)
    out = posterior.over_edges(present, "probability")
    out.attrs["estimator"] = estimator(posterior)
    return out


def bayes_factors(idata, *, group: str = "posterior") -> "xr.DataArray":
    r"""Bayes factor of each edge: how much the data raised or lowered its odds.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    xarray.DataArray over the edges
        Above 1 the data speak for the edge, below 1 against it, around 1 they do not know. Never
        infinite. NaN for an edge that was required or forbidden (prior probability 1 or 0): nothing
        was tested. The coordinate `bound` is True where the value is only a bound (see Notes).

    Notes
    -----
    .. math:: B = \frac{P(edge \mid x)}{1 - P(edge \mid x)} \Big/
                  \frac{P(edge)}{1 - P(edge)}

    with :math:`P(edge)` the prior probability that the *model implies* (`edge_prior`), not the
    nominal one: positive definiteness thins out a graph a priori. Kass and Raftery [1]_ read 3 to
    20 as positive, 20 to 150 as strong evidence.

    Where probabilities are counted, :math:`S` effective draws cannot tell a probability from 0 or 1
    when it is nearer than :math:`1/(S+1)`; such a Bayes factor is reported at that limit and
    flagged as a bound, so a longer run can make it more extreme. :math:`S` is the median ESS of the
    edges that moved. Rao-Blackwellised probabilities need no such limit, but beyond about
    :math:`S` they rest on the shape of spike and slab more than on the number of draws. Those with a
    control variate have as their limit their own Monte Carlo standard error, at least 1e-6; beyond about
    :math:`S` they rest on the proposals of the step, which are made by Laplace's approximation.

    References
    ----------
    .. [1] Kass and Raftery (1995). Bayes factors. JASA 90, 773-795.
    """
    posterior = read_posterior(idata, group)
    factor, bound = factors(posterior, *mean_probabilities(posterior))
    out = posterior.over_edges(factor, "bayes_factor")
    return out.assign_coords(bound=(posterior.dim, bound))


def factors(
    posterior: EdgePosterior,
    present: np.ndarray,
    absent: np.ndarray,
    ess: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Bayes factors from probabilities of presence and absence, and which of them are bounds."""
    return bayes_factors_of(present, absent, posterior.prior, _floor(posterior, ess))


def bayes_factors_of(
    present: np.ndarray, absent: np.ndarray, prior: np.ndarray, floor: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bayes factors of probabilities that draws can tell from 0 and 1 down to `floor`, one or each its own."""
    log_odds, bound = _clipped_log_odds(present, absent, floor)
    tested = (prior > 0) & (prior < 1)
    log_factor = np.full(len(prior), np.nan)
    log_factor[tested] = log_odds[tested] - np.log(prior[tested]) + np.log1p(-prior[tested])
    bound = tested & (bound | (np.abs(log_factor) > MAX_LOG))
    return np.exp(np.clip(log_factor, -MAX_LOG, MAX_LOG)), bound


def has_rao_blackwell(posterior: EdgePosterior) -> bool:
    """Whether the draws hold all that the conditional probability of an edge needs."""
    nominal = "edge_nominal" in posterior.constants or "edge_probability" in posterior.draws
    return (
        nominal
        and all(name in posterior.draws for name in _NEEDED)
        and all(name in posterior.constants for name in _NEEDED_CONSTANTS)
    )


def has_product(posterior: EdgePosterior) -> bool:
    """Whether the probabilities were put together from independent parts (`symmetrize`)."""
    return {"edge_present", "edge_absent"} <= set(posterior.constants.data_vars)


def estimator(posterior: EdgePosterior) -> str:
    """Name of the way in which probabilities are estimated."""
    if has_product(posterior):
        return "product"
    if has_rao_blackwell(posterior):
        return "rao-blackwell"
    return "frequency" if posterior.inclusion is None else "control variate"


def mean_probabilities(posterior: EdgePosterior) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of presence and of absence, each accurate near zero, shape (n_edges,)."""
    if has_product(posterior):
        return tuple(posterior.constants[f"edge_{k}"].values for k in ("present", "absent"))
    indicators = posterior.indicators  # refuses what is no indicator
    if has_rao_blackwell(posterior):
        return _rao_blackwell(posterior)
    drawn = indicators if posterior.inclusion is None else posterior.inclusion
    present = np.clip(drawn.mean(axis=(0, 1), dtype=float), 0, 1)
    return present, 1 - present


def mean_ess(posterior: EdgePosterior) -> np.ndarray:
    """Effective sample size of each edge: of what the step reported, otherwise of the indicator."""
    if posterior.inclusion is None:
        return indicator_ess(posterior.indicators)
    return series_ess(posterior.inclusion)


def conditional_log_odds(k, nominal, spike_scale, slab_scale) -> np.ndarray:
    """Log odds of slab against spike for off-diagonal elements `k`.

    Parameters
    ----------
    k : ndarray
        Off-diagonal elements of the precision matrix.
    nominal : ndarray, broadcast against `k`
        Nominal probability of the edge; 0 and 1 give minus and plus infinity.
    spike_scale, slab_scale : float
        Standard deviations.
    """
    from scipy.special import logit

    fit = 0.5 * np.square(k) * (spike_scale**-2 - slab_scale**-2)
    return logit(nominal) + fit + np.log(spike_scale / slab_scale)


def _rao_blackwell(posterior: EdgePosterior) -> tuple[np.ndarray, np.ndarray]:
    from scipy.special import expit

    spike, slab = (float(posterior.constants[name].item()) for name in _NEEDED_CONSTANTS)
    precision = posterior.draws["precision"].transpose("chain", "draw", "node", "node_")
    present, absent = [], []
    for chain in range(posterior.n_chains):  # one chain at a time: p = 200 would not fit otherwise
        k = precision.isel(chain=chain).values[:, posterior.source, posterior.target]
        log_odds = conditional_log_odds(k, _nominal(posterior, chain), spike, slab)
        present.append(expit(log_odds).mean(axis=0))
        absent.append(expit(-log_odds).mean(axis=0))
    return np.mean(present, axis=0), np.mean(absent, axis=0)


def _nominal(posterior: EdgePosterior, chain: int) -> np.ndarray:
    """Nominal edge probabilities, broadcastable against (draw, edge)."""
    n_edges = len(posterior.source)
    constant = posterior.constants.get("edge_nominal")
    drawn = posterior.draws.get("edge_probability")
    fixed = np.full(n_edges, 0.5) if constant is None else constant.values.astype(float)
    fixed = np.broadcast_to(fixed, n_edges)
    if drawn is None:
        return fixed
    shared = drawn.isel(chain=chain).values[:, None]
    return np.where((fixed > 0) & (fixed < 1), shared, fixed)


def _floor(posterior: EdgePosterior, ess: np.ndarray | None) -> float | np.ndarray:
    """Smallest probability that these draws can tell from zero, if need be of each edge."""
    if has_rao_blackwell(posterior):
        return float(np.finfo(float).tiny)
    if "edge_resolution" in posterior.constants:
        return float(posterior.constants["edge_resolution"].item())
    ess = mean_ess(posterior) if ess is None else ess
    if posterior.inclusion is not None:
        deviation = posterior.inclusion.std(axis=(0, 1), dtype=float)
        return np.maximum(deviation / np.sqrt(np.where(np.isnan(ess), 1, ess)), _LEAST)
    return 1 / (typical_ess(ess, posterior.n_draws) + 1)


def _clipped_log_odds(present, absent, floor) -> tuple[np.ndarray, np.ndarray]:
    bound = (present < floor) | (absent < floor)
    ceiling = 1 - floor  # rounds to 1 for the tiny floor, as it should
    return np.log(np.clip(present, floor, ceiling)) - np.log(np.clip(absent, floor, ceiling)), bound
