"""Effective sample size and R-hat of 0/1 draws, constants included."""

import numpy as np

MIN_DRAWS = 4  # below this ArviZ has nothing to split
#: Number of edges or arcs beyond which the slow diagnostics are left out for those that are hardly visited.
MANY = 20_000
VISITED = 0.01
_TOGETHER = 4_000_000  # numbers of which ArviZ makes copies at once: all would not fit


def looked_at(frequency: np.ndarray) -> np.ndarray:
    """Positions of the lines to diagnose: all, or of very many those that are neither hardly visited nor hardly left.

    Parameters
    ----------
    frequency : ndarray, shape (line,)
        Share of the draws with each line.
    """
    if len(frequency) <= MANY:
        return np.arange(len(frequency))
    return np.flatnonzero(np.minimum(frequency, 1 - frequency) >= VISITED)


def indicator_ess(indicators: np.ndarray) -> np.ndarray:
    """Effective sample size of the mean of each indicator.

    Parameters
    ----------
    indicators : ndarray of bool, shape (chain, draw, edge)

    Returns
    -------
    ndarray, shape (edge,)
        NaN for an indicator that never changed: mixing cannot be judged from a
        constant.

    Notes
    -----
    Rank normalisation is an affine map of a 0/1 variable, so the bulk ESS *is* the ESS of the mean,
    at a third of the cost.
    """
    return series_ess(indicators)


def series_ess(series: np.ndarray) -> np.ndarray:
    """Effective sample size of the mean of each series, NaN for a constant one or fewer than four draws.

    Parameters
    ----------
    series : ndarray of float, shape (chain, draw, edge)

    Returns
    -------
    ndarray, shape (edge,)
    """
    import arviz as az

    ess = np.full(series.shape[-1], np.nan)
    moved = series.min(axis=(0, 1)) < series.max(axis=(0, 1))
    if moved.any() and series.shape[1] >= MIN_DRAWS:
        for at in _pieces(series, np.flatnonzero(moved)):
            ess[at] = az.ess(series[..., at].astype(float), method="mean")
    return ess


def _pieces(series: np.ndarray, lines: np.ndarray) -> list[np.ndarray]:
    """Cut positions of lines into pieces whose draws fit."""
    size = max(1, _TOGETHER // (series.shape[0] * series.shape[1]))
    return [lines[k : k + size] for k in range(0, len(lines), size)]


def indicator_rhat(indicators: np.ndarray) -> np.ndarray:
    """Split R-hat of each indicator.

    Parameters
    ----------
    indicators : ndarray of bool, shape (chain, draw, edge)

    Returns
    -------
    ndarray, shape (edge,)
        1.0 for an indicator that is constant and equal in all chains (they agree), infinity for one
        that is constant in each chain but not the same in all (no within-chain variance), NaN
        everywhere for a single chain or fewer than four draws.

    Notes
    -----
    Equal to the rank-normalised, folded R-hat: for a 0/1 variable ranking and folding are affine
    maps, which R-hat does not see.
    """
    return series_rhat(indicators)


def series_rhat(series: np.ndarray) -> np.ndarray:
    """Split R-hat of each series, with the exceptions of `indicator_rhat`.

    Parameters
    ----------
    series : ndarray of float or bool, shape (chain, draw, edge)

    Returns
    -------
    ndarray, shape (edge,)
    """
    import arviz as az

    n_chains, n_draws, n_edges = series.shape
    if n_chains < 2 or n_draws < MIN_DRAWS:
        return np.full(n_edges, np.nan)
    rhat = np.ones(n_edges)
    stuck = _constant_in_each_half(series)
    rhat[stuck & ~_constant(series)] = np.inf
    for at in _pieces(series, np.flatnonzero(~stuck)):
        rhat[at] = az.rhat(series[..., at].astype(float), method="split")
    return rhat


def typical_ess(ess: np.ndarray, n_draws: int) -> float:
    """Typical number of independent graphs that the draws are worth.

    Median ESS over the edges that moved, at least 1 and at most the number of draws; the number of
    draws when no edge moved.
    """
    if np.isnan(ess).all():
        return float(n_draws)
    return float(np.clip(np.nanmedian(ess), 1, n_draws))


def _constant(series: np.ndarray) -> np.ndarray:
    return series.min(axis=(0, 1)) == series.max(axis=(0, 1))


def _constant_in_each_half(series: np.ndarray) -> np.ndarray:
    """R-hat splits chains in two: without variance in any half it would divide by zero."""
    half = series.shape[1] // 2
    parts = np.concatenate([series[:, :half], series[:, -half:]])
    return (parts.min(axis=1) == parts.max(axis=1)).all(axis=0)


def share_mcse(share: np.ndarray, ess: np.ndarray, n_draws: int) -> np.ndarray:
    """Monte Carlo standard error of shares of draws.

    Parameters
    ----------
    share : ndarray, shape (k,)
    ess : ndarray, shape (k,)
        Effective sample sizes of the indicators; where they are NaN, the typical one of the others counts.
    n_draws : int
        Number of draws.

    Returns
    -------
    ndarray, shape (k,)
        Never zero: something that is in m of n effective draws has the error of the share (m + 1) / (n + 2).
    """
    size = np.where(np.isnan(ess), typical_ess(ess, n_draws), np.maximum(ess, 1.0))
    near = (share * size + 1) / (size + 2)
    return np.sqrt(near * (1 - near) / size)
