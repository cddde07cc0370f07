"""Convergence of the chains, for each edge."""

import warnings

from typing import TYPE_CHECKING

from bayesstruct.graphs.posteriors.reading import read_edges

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["edge_ess", "edge_rhat"]


def edge_ess(idata: "xr.DataTree | GraphPosterior") -> "xr.DataArray":
    r"""Effective sample size of each edge indicator.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.

    Returns
    -------
    xarray.DataArray over the edges
        In draws. NaN for an indicator that never changed (or with fewer than four draws a chain):
        mixing cannot be judged from a constant.

    Notes
    -----
    The bulk ESS of [1]_; for a 0/1 variable it equals the ESS of its mean, so the Monte Carlo
    standard error of a counted probability :math:`p` is :math:`\sqrt{p(1-p)/ESS}`.

    References
    ----------
    .. [1] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021). Rank-normalization, folding, and
       localization: an improved R-hat for assessing convergence of MCMC. Bayesian Analysis 16,
       667-718.

    Examples
    --------
    >>> edge_ess(idata).min()  # doctest: +SKIP
    """
    posterior = read_edges(idata)
    return posterior.over_edges(posterior.indicator_ess(), "ess")


def edge_rhat(idata: "xr.DataTree | GraphPosterior") -> "xr.DataArray":
    """R-hat of each edge indicator.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.

    Returns
    -------
    xarray.DataArray over the edges
        1 for an indicator that is constant and the same in all chains; infinity for one that is
        constant in every chain but not the same in all; NaN, with a warning, for a single chain.

    Notes
    -----
    Rank-normalised split R-hat [1]_, the square root of pooled over within-chain variance; for a
    0/1 variable it equals plain split R-hat. Values above 1.01 say that the chains have not agreed.

    References
    ----------
    .. [1] Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021). Rank-normalization, folding, and
       localization: an improved R-hat for assessing convergence of MCMC. Bayesian Analysis 16,
       667-718.
    """
    posterior = read_edges(idata)
    if posterior.n_chains == 1:
        warnings.warn(
            "R-hat compares chains, and this result has one: all values are NaN.",
            UserWarning,
            stacklevel=2,
        )
    return posterior.over_edges(posterior.indicator_rhat(), "r_hat")
