"""Visits of a chain to the states of a small discrete space, against their exact probabilities."""

import numpy as np

from scipy import stats
from tools.batches import batch_means

_RARE = 10.0  # expected effective visits below which a state is judged in a group only


def assert_matches_enumeration(
    draws, probabilities, *, states=None, errors=None, z=4.0, batches=60
):
    """Fail unless a chain visits the states of a discrete space as often as it should.

    Two things are looked at. Each state by itself: the difference of its frequency and its
    probability over the standard error, which is the exact ``sqrt(p (1 - p) / N)`` times the root
    of the autocorrelation time of the indicator of the state (batch means). And all together, so
    that many small differences are seen: Pearson's statistic, divided by its expectation under that
    autocorrelation and referred to a chi-square law whose degrees of freedom match its variance
    (Rao and Scott 1981). States with fewer than ten expected effective visits are put together,
    and one of probability zero must not be visited at all.

    Parameters
    ----------
    draws : array of int
        (draw,) or (chain, draw) numbers of states; with ``states`` also (draw, d) or
        (chain, draw, d) vectors.
    probabilities : (S,) array_like
        Exact probabilities of the states.
    states : (S, d) array_like, optional
        The states that ``probabilities`` belong to; states are their numbers if not given.
    errors : (S,) array_like, optional
        Standard errors of the probabilities, if they come from Monte Carlo integration.
    z : float
        Bound on the standardised difference of each state, widened by Bonferroni's correction to
        the number of states; the joint test has the level of one normal deviate of this size.
    batches : int
        Batches for the autocorrelation times.

    Returns
    -------
    dict
        ``z`` (worst standardised difference), ``p_value`` (joint), ``ess`` (of the states, median).
    """
    probabilities = np.asarray(probabilities, float)
    errors = np.zeros_like(probabilities) if errors is None else np.asarray(errors, float)
    if not np.isclose(probabilities.sum(), 1.0, atol=1e-6):
        raise ValueError("the probabilities do not sum to one")
    numbers = _numbers(draws, states, len(probabilities))
    numbers = numbers[None] if numbers.ndim == 1 else numbers
    total = numbers.size

    indicators = (numbers[..., None] == np.arange(len(probabilities))).astype(float)
    frequencies = indicators.mean(axis=(0, 1))
    times = _autocorrelation_times(indicators, batches)
    impossible = (probabilities == 0) & (errors == 0)
    if frequencies[impossible].any():
        raise AssertionError(f"states of probability zero were visited: {frequencies[impossible]}")
    groups = _groups(probabilities * total / times, impossible)

    p = np.array([probabilities[g].sum() for g in groups])
    error = np.array([np.sqrt((errors[g] ** 2).sum()) for g in groups])
    grouped = np.stack([indicators[..., g].sum(-1) for g in groups], axis=-1)
    f = grouped.mean(axis=(0, 1))
    time = _autocorrelation_times(grouped, batches)
    variance = np.maximum(p * (1 - p), 1e-300) * time / total + error**2
    scores = (f - p) / np.sqrt(variance)

    value = ((f - p) ** 2 / p).sum()
    expected = (variance / p).sum()
    df = _degrees_of_freedom(grouped, p, batches)
    p_value = stats.chi2.sf(value / expected * df, df)
    worst = np.abs(scores).max()
    bound = stats.norm.isf(stats.norm.sf(z) / len(groups))
    alpha = 2 * stats.norm.sf(z)
    out = {"z": float(worst), "p_value": float(p_value), "ess": float(np.median(total / time))}
    if worst > bound or p_value < alpha:
        labels = _labels(groups, states)
        order = np.argsort(-np.abs(scores))[:12]
        rows = "\n".join(
            f"{labels[i]:>24} {p[i]:12.5f} {f[i]:10.5f} {np.sqrt(variance[i]):10.5f} {scores[i]:8.2f}"
            for i in order
        )
        raise AssertionError(
            f"worst z {worst:.2f} (bound {bound:.2f}), joint p-value {p_value:.2g} "
            f"(bound {alpha:.2g})\n{'state':>24} probability  frequency         se        z\n{rows}\n"
            f"({total} draws, {len(groups)} groups of states, total variation "
            f"{0.5 * np.abs(frequencies - probabilities).sum():.4f})"
        )
    return out


def binary_states(d):
    """All 0/1 vectors of length ``d`` in counting order, (2**d, d)."""
    return (np.arange(2**d)[:, None] >> np.arange(d)[::-1]) & 1


def _groups(visits, impossible):
    """States one by one, those with few expected effective visits together."""
    order = np.argsort(-visits)
    order = order[~impossible[order]].tolist()
    groups = [[s] for s in order if visits[s] >= _RARE]
    rest = [s for s in order if visits[s] < _RARE]
    if rest and (visits[rest].sum() >= _RARE or not groups):
        groups.append(rest)
    elif rest:
        groups[-1] += rest
    return groups


def _numbers(draws, states, size):
    draws = np.asarray(draws)
    if states is None:
        if draws.min() < 0 or draws.max() >= size:
            raise AssertionError(f"a state outside 0..{size - 1} was visited")
        return draws
    states = np.asarray(states)
    table = {tuple(s): k for k, s in enumerate(states.reshape(size, -1).tolist())}
    rows = draws.reshape(-1, states.reshape(size, -1).shape[1]).tolist()
    try:
        out = np.array([table[tuple(r)] for r in rows])
    except KeyError as unknown:
        raise AssertionError(f"state {unknown} was visited but is not in the list") from None
    return out.reshape(draws.shape[:-1])


def _autocorrelation_times(indicators, batches):
    """Variance of the mean relative to independent draws, at least one; (S,)."""
    means = batch_means(indicators, batches)
    n = indicators.shape[0] * indicators.shape[1]
    f = indicators.mean(axis=(0, 1))
    spread = means.var(axis=0, ddof=1) / len(means) * n
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(f * (1 - f) > 0, spread / (f * (1 - f)), np.nan)
    typical = np.nanmedian(times) if np.isfinite(times).any() else 1.0
    return np.maximum(np.where(np.isfinite(times), times, typical), 1.0)


def _degrees_of_freedom(grouped, p, batches):
    """Satterthwaite's degrees of freedom of Pearson's statistic of autocorrelated draws."""
    means = batch_means(grouped, batches) / np.sqrt(p)
    covariance = np.atleast_2d(np.cov(means, rowvar=False))
    trace = np.trace(covariance)
    if trace <= 0:
        return 1.0
    return float(trace**2 / (covariance**2).sum())


def _labels(groups, states):
    if states is None:
        return [str(g[0]) if len(g) == 1 else f"{len(g)} together" for g in groups]
    states = np.asarray(states)
    return [
        "".join(map(str, np.ravel(states[g[0]]))) if len(g) == 1 else f"{len(g)} together"
        for g in groups
    ]
