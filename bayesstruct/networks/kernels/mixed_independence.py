"""Tests of conditional independence between columns of numbers and of states: score tests of regressions."""

import numpy as np

from bayesstruct.networks.kernels.independence import Tested

__all__ = ["independent_mixed"]

_STEPS = 50  # of Newton's method
_RIDGE = 1e-6  # of coefficients: keeps them finite where states are separated
_DONE = 1e-8
_SINGULAR = 1e-9
_SPARE = 5  # rows that must be left for each parameter


def independent_mixed(
    x: np.ndarray,
    states: np.ndarray,
    use: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    given: np.ndarray,
) -> Tested:
    """Test whether the regression of the first column on the given ones needs the second one.

    Parameters
    ----------
    x : ndarray of float, shape (n, p)
        Numbers, and states from 0; values that are not used may be any of them.
    states : ndarray of int, shape (p,)
        Numbers of states, 0 for numbers.
    use, first, second, given
        As in :func:`bayesstruct.networks.kernels.independence.independent_numbers`.

    Returns
    -------
    Tested

    Notes
    -----
    Numbers have a linear regression and the F test, which is exact where noise is normal; states a multinomial logistic regression and
    Rao's score test, with a chi-square distribution in large tables. Regressions are additive, with an indicator of each
    state but the first one.
    """
    m = len(first)
    p_value, strength, testable = np.ones(m), np.zeros(m), np.zeros(m, bool)
    features = [_features(column, k) for column, k in zip(x.T, states, strict=True)]
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        rows = use[k if len(use) > 1 else 0]
        n = int(rows.sum())
        others = [features[c][rows] for c in np.flatnonzero(given[k])]
        design = _independent(np.column_stack([np.ones(n), *others]))
        response, added = features[i][rows], features[j][rows]
        if n < design.shape[1] * response.shape[1] + _SPARE * (1 + added.shape[1]):
            continue
        test = _score_test if states[i] else _f_test
        p_value[k], strength[k], testable[k] = test(response, design, added)
    return Tested(p_value, strength, testable)


def _features(column: np.ndarray, states: int) -> np.ndarray:
    """Return a standardised number, or an indicator of each state but the first one; (n, features)."""
    if states:
        return (column[:, None] == np.arange(1, states)).astype(float)
    spread = column.std()
    return ((column - column.mean()) / (spread if spread > 0 else 1.0))[:, None]


def _independent(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns with the same span."""
    if not len(columns):
        return columns
    u, size, _ = np.linalg.svd(columns, full_matrices=False)
    return u[:, size > _SINGULAR * size[0]]


def _f_test(response, design, added) -> tuple[float, float, bool]:
    """F test of further columns in a linear regression; p-value, strength, and whether anything is tested."""
    from scipy.stats import f

    left = response[:, 0] - design @ (design.T @ response[:, 0])
    rest = added - design @ (design.T @ added)
    u, size, _ = np.linalg.svd(rest, full_matrices=False)
    u = u[:, size > _SINGULAR * np.sqrt(len(added))]
    total, g = float(left @ left), u.shape[1]
    free = len(left) - design.shape[1] - g
    if not g or free < 1 or total <= _SINGULAR * len(left):
        return 1.0, 0.0, False
    explained = min(float(((u.T @ left) ** 2).sum() / total), 1.0)
    ratio = explained / g / max((1 - explained) / free, np.finfo(float).tiny)
    return float(f.sf(ratio, g, free)), float(np.sqrt(explained)), True


def _score_test(response, design, added) -> tuple[float, float, bool]:
    """Score test of further columns in a multinomial logistic regression; as `_f_test`."""
    from scipy.stats import chi2

    response = response[:, response.any(axis=0)]
    if not response.shape[1]:
        return 1.0, 0.0, False
    probability = _fitted(response, design)
    whole = np.column_stack([design, added])
    q, f, total = response.shape[1], design.shape[1], whole.shape[1]
    score = (whole.T @ (response - probability))[f:].T.ravel()
    information = _information(whole, probability).reshape(q, total, q, total)
    nuisance = information[:, :f, :, :f].reshape(q * f, q * f)
    across = information[:, f:, :, :f].reshape(-1, q * f)
    own = information[:, f:, :, f:].reshape(len(score), len(score))
    inner = own - across @ np.linalg.pinv(nuisance, hermitian=True) @ across.T
    values, vectors = np.linalg.eigh(inner)
    kept = values > _SINGULAR * max(float(np.trace(own)), np.finfo(float).tiny)
    if not kept.any():
        return 1.0, 0.0, False
    statistic = float(((vectors[:, kept].T @ score) ** 2 / values[kept]).sum())
    strength = np.sqrt(min(statistic / len(response), 1.0))
    return float(chi2.sf(statistic, kept.sum())), float(strength), True


def _fitted(response: np.ndarray, design: np.ndarray) -> np.ndarray:
    """Fitted probabilities of all states but the first one, (n, q)."""
    q, f = response.shape[1], design.shape[1]
    beta = np.zeros((q, f))
    value = -np.inf
    step = np.zeros_like(beta)
    for _ in range(_STEPS):
        size = 1.0
        while True:  # halve steps that lose
            candidate = beta + size * step
            probability, fit = _probabilities(design @ candidate.T, response)
            own = fit - 0.5 * _RIDGE * float((candidate**2).sum())
            if own >= value or size < _DONE:
                break
            size /= 2
        gained, beta, value = own - value, candidate, own
        if gained < _DONE:
            break
        slope = (response - probability).T @ design - _RIDGE * beta
        curvature = _information(design, probability) + _RIDGE * np.eye(q * f)
        step = np.linalg.solve(curvature, slope.ravel()).reshape(q, f)
    return probability


def _probabilities(eta: np.ndarray, response: np.ndarray) -> tuple[np.ndarray, float]:
    """Probabilities of states from linear predictors, and the log likelihood."""
    from scipy.special import logsumexp

    log_total = logsumexp(np.column_stack([np.zeros(len(eta)), eta]), axis=1)
    return np.exp(eta - log_total[:, None]), float((response * eta).sum() - log_total.sum())


def _information(design: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """Information of the coefficients of all states, (q f, q f)."""
    q, f = probability.shape[1], design.shape[1]
    out = np.empty((q, f, q, f))
    for a in range(q):
        for b in range(q):
            weight = probability[:, a] * ((a == b) - probability[:, b])
            out[a, :, b] = design.T @ (design * weight[:, None])
    return out.reshape(q * f, q * f)
