"""Probabilities and Bayes factors of edges."""

from typing import TYPE_CHECKING

from bayesstruct.graphs.posteriors.reading import read_edges

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["bayes_factors", "inclusion_probabilities"]


def inclusion_probabilities(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "xr.DataArray":
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
    matrix, so that the probabilities that they are drawn with are averaged instead of
    the ones counted [1]_, with a smaller Monte Carlo error at no cost:

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
    posterior = read_edges(idata, group)
    out = posterior.over_edges(posterior.probability, "probability")
    out.attrs["estimator"] = posterior.estimator.name
    return out


def bayes_factors(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "xr.DataArray":
    r"""Bayes factor of each edge: the factor by which the data change its odds.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    xarray.DataArray over the edges
        Above 1 the data speak for the edge, below 1 against it; around 1 they do not decide. From
        1e-6 to 1e6, beyond which they depend on the shape of the prior. NaN for an edge that was required or forbidden (prior probability 1 or 0). The coordinate `bound` is True where the value is only a bound (see Notes).

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
    posterior = read_edges(idata, group)
    factor, bound = posterior.bayes_factors()
    out = posterior.over_edges(factor, "bayes_factor")
    return out.assign_coords(bound=(posterior.dim, bound))
