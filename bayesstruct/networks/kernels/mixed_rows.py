"""Rows of a network of columns of several kinds: their densities and draws, and the prior of its parameters.

Parameters are the vector of :class:`bayesstruct.networks.kernels.mixed_layout.MixedLayout`, numbers are standardised.
"""

import numpy as np

from bayesstruct.networks.kernels.mixed_layout import MixedLayout

__all__ = [
    "column_terms",
    "draw_prior",
    "draw_rows",
    "log_prior",
    "predictors",
    "state_probabilities",
    "value_terms",
]


def predictors(layout: MixedLayout, i: int, features: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Linear predictors of a column, (outputs, n).

    Parameters
    ----------
    layout : MixedLayout
    i : int
        The column.
    features : (features, n) array
    vector : (size,) array
        All parameters.
    """
    places = layout.coefficients[i]
    weight = np.where(places >= 0, vector[places], 0.0)
    used = np.flatnonzero((weight[:, 1:] != 0.0).any(axis=0))
    return weight[:, :1] + weight[:, 1 + used] @ features[used]


def state_probabilities(
    layout: MixedLayout, i: int, eta: np.ndarray, vector: np.ndarray
) -> np.ndarray:
    """Logarithms of the probabilities of the states of a column, (states, n), from its linear predictors."""
    from scipy.special import log_expit, log_ndtr, log_softmax

    family = layout.families[i]
    if family == "multinomial":
        return log_softmax(np.concatenate([np.zeros((1, eta.shape[1])), eta]), axis=0)
    [eta] = eta
    if family == "logistic":
        return np.array([log_expit(-eta), log_expit(eta)])
    if family == "probit":
        return np.array([log_ndtr(-eta), log_ndtr(eta)])
    if family == "cloglog":
        rate = np.exp(np.minimum(eta, 60.0))
        with np.errstate(divide="ignore"):
            return np.array([-rate, np.log(-np.expm1(-rate))])
    cut = vector[layout.extras[i]]
    high = np.concatenate([cut, [np.inf]])[:, None] - eta
    low = np.concatenate([[-np.inf], cut])[:, None] - eta
    with np.errstate(divide="ignore"):
        gap = np.log(-np.expm1(-np.diff(cut)))[:, None]
    out = log_expit(high) + log_expit(-low)
    out[1:-1] += gap
    return out


def _log_noise(family, e, degrees):
    """Log density of noise with variance 1."""
    from scipy.special import gammaln

    if family == "normal":
        return -0.5 * (e * e + np.log(2.0 * np.pi))
    if family == "laplace":
        return -np.sqrt(2.0) * abs(e) - 0.5 * np.log(2.0)
    g = degrees - 2.0
    constant = gammaln((degrees + 1.0) / 2) - gammaln(degrees / 2) - 0.5 * np.log(np.pi * g)
    return constant - 0.5 * (degrees + 1.0) * np.log1p(e * e / g)


def column_terms(layout: MixedLayout, x: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Log densities of the values of each column given the others, (n, d); -inf for impossible states.

    Parameters
    ----------
    layout : MixedLayout
    x : (n, d) array
        Standardised numbers, and states 0, 1, ...
    vector : (size,) array
        All parameters.
    """
    features, out = layout.all_features(x), np.empty(x.shape)
    for i in range(layout.d):
        eta = predictors(layout, i, features, vector)
        out[:, i] = value_terms(layout, i, x[:, i], eta, vector)
    return out


def value_terms(
    layout: MixedLayout, i: int, x: np.ndarray, eta: np.ndarray, vector: np.ndarray
) -> np.ndarray:
    """Log densities of values (n,) of a column, from its linear predictors (outputs, n); -inf for impossible states."""
    if layout.is_number(i):
        scale, *degrees = vector[layout.extras[i]]
        if not scale > 0.0:
            return np.full(len(x), -np.inf)
        e = (x - eta[0]) / scale
        return _log_noise(layout.families[i], e, *degrees or [0.0]) - np.log(scale)
    logs = state_probabilities(layout, i, eta, vector)
    known = (x >= 0) & (x < len(logs)) & (x == np.floor(x))
    state = np.where(known, x, 0).astype(int)
    return np.where(known, logs[state, np.arange(len(x))], -np.inf)


def draw_rows(
    layout: MixedLayout, u: np.ndarray, vector: np.ndarray, dag: np.ndarray, setting: np.ndarray
) -> np.ndarray:
    """Draw rows, each column after its parents.

    Parameters
    ----------
    layout : MixedLayout
    u : (n, d) array
        Uniform random numbers between 0 and 1.
    vector : (size,) array
        All parameters.
    dag : (d, d) array
        1 at (parent, child).
    setting : (d,) or (n, d) array
        Values that columns were set to, NaN for the others.

    Returns
    -------
    (n, d) array
        Standardised numbers, and states 0, 1, ...
    """
    from bayesstruct.networks.kernels.dags import topological_order

    features = np.zeros((len(layout.owner), len(u)))
    out, fixed = np.empty(u.shape), ~np.isnan(setting)
    for i in topological_order(np.asarray(dag, np.int8)):
        if fixed[..., i].all():
            out[:, i] = setting[..., i]
        else:
            eta = predictors(layout, i, features, vector)
            drawn = _drawn(layout, i, eta, u[:, i], vector)
            out[:, i] = np.where(fixed[..., i], setting[..., i], drawn)
        features[layout.owner == i] = layout.features(out[:, i], i)
    return out


def _drawn(layout, i, eta, u, vector):
    if not layout.is_number(i):
        below = np.cumsum(np.exp(state_probabilities(layout, i, eta, vector)), axis=0)
        return np.minimum((u * below[-1] >= below).sum(axis=0), len(below) - 1)
    scale, *degrees = vector[layout.extras[i]]
    return eta[0] + scale * _noise(layout.families[i], u, *degrees or [0.0])


def _noise(family, u, degrees):
    """Quantiles of noise with variance 1."""
    from scipy.special import ndtri, stdtrit

    u = np.clip(u, 1e-15, 1.0 - 1e-15)
    if family == "normal":
        return ndtri(u)
    if family == "laplace":
        return np.sign(u - 0.5) * -np.log1p(-2.0 * abs(u - 0.5)) / np.sqrt(2.0)
    return stdtrit(degrees, u) * np.sqrt((degrees - 2.0) / degrees)


def log_prior(layout: MixedLayout, dag: np.ndarray, vector: np.ndarray, scale: float) -> float:
    """Log prior density of the parameters that a graph has; -inf where others are not zero.

    Parameters
    ----------
    layout : MixedLayout
    dag : (d, d) array
        1 at (parent, child).
    vector : (size,) array
    scale : float
        Standard deviation of coefficients.
    """
    vector, dag = np.asarray(vector, float), np.asarray(dag) != 0
    if (vector[~layout.present(dag)] != 0.0).any() or not np.isfinite(vector).all():
        return -np.inf
    parts = [_log_prior_of(layout, i, dag[:, i], vector, scale) for i in range(layout.d)]
    return float(sum(parts))


def _log_prior_of(layout, i, parents, vector, scale):
    from scipy.special import gammaln

    from bayesstruct.networks.kernels.scores.mixed_noise import NOISE_RATE

    extras, noise, out = vector[layout.extras[i]], 1.0, 0.0
    factor = prior_factor(layout, i, parents, scale)
    q = int(parents[layout.owner].sum())
    if layout.is_number(i):
        noise, shape = extras[0], 0.5 * (3.0 + q)
        if not noise > 0.0:
            return -np.inf
        out += shape * np.log(NOISE_RATE) - gammaln(shape) + np.log(2.0)
        out += -(2.0 * shape + 1.0) * np.log(noise) - NOISE_RATE / noise**2
        if len(extras) > 1:
            g = extras[1] - 2.0
            out += 2.0 * np.log(0.1) + np.log(g) - 0.1 * g if g > 0.0 else -np.inf
    elif layout.families[i] == "ordinal":
        if not (np.diff(extras) > 0.0).all():
            return -np.inf
        out += (
            gammaln(len(extras) + 1.0) - (np.logaddexp(0, extras) + np.logaddexp(0, -extras)).sum()
        )
    places = layout.coefficients[i][:, np.append(True, parents[layout.owner])]
    b = (
        np.linalg.solve(factor, vector[places[places >= 0]]) / noise
        if places.max(initial=-1) >= 0
        else np.empty(0)
    )
    out -= 0.5 * (b @ b + len(b) * np.log(2.0 * np.pi)) + len(b) * np.log(noise)
    return out - np.log(np.diag(factor)).sum()


def draw_prior(
    layout: MixedLayout, rng: np.random.Generator, dag: np.ndarray, scale: float, out: np.ndarray
) -> None:
    """Draw the parameters given a graph from their prior, into a vector of zeros."""
    from bayesstruct.networks.kernels.scores.mixed_noise import NOISE_RATE

    dag = np.asarray(dag) != 0
    for i in range(layout.d):
        factor, noise = prior_factor(layout, i, dag[:, i], scale), 1.0
        if layout.is_number(i):
            shape = 0.5 * (3.0 + dag[layout.owner, i].sum())
            noise = np.sqrt(NOISE_RATE / rng.gamma(shape))
            out[layout.extras[i][0]] = noise
            if layout.families[i] == "student":
                out[layout.extras[i][1]] = 2.0 + rng.gamma(2.0) / 0.1
        elif layout.families[i] == "ordinal":
            share = np.cumsum(rng.dirichlet(np.ones(layout.states[i])))[:-1]
            out[layout.extras[i]] = np.log(share) - np.log1p(-share)
        places = layout.coefficients[i][:, np.append(True, dag[layout.owner, i])]
        places = places[places >= 0]
        out[places] = noise * (factor @ rng.standard_normal(len(places)))


def prior_factor(layout: MixedLayout, i: int, parents: np.ndarray, scale: float) -> np.ndarray:
    """Cholesky factor of the prior covariance of the coefficients of a column (over the noise scale of numbers).

    Parameters
    ----------
    layout : MixedLayout
    i : int
        The column.
    parents : (d,) bool array
    scale : float
    """
    from bayesstruct.networks.kernels.scores.mixed_families import INTERCEPT_DEVIATION

    owner = layout.owner[parents[layout.owner]]

    score = np.array([layout.is_number(j) or layout.families[j] == "ordinal" for j in owner], bool)
    same = owner[:, None] == owner
    cov = np.where(same, np.where(np.eye(len(owner), dtype=bool) | score, 1.0, 0.5), 0.0) * scale**2
    if layout.families[i] != "ordinal":
        wide = 1.0 if layout.is_number(i) else INTERCEPT_DEVIATION
        cov = np.block(
            [[np.full((1, 1), wide**2), np.zeros((1, len(cov)))], [np.zeros((len(cov), 1)), cov]]
        )
    outputs = layout.outputs(i)
    return np.linalg.cholesky(np.kron(0.5 * (np.eye(outputs) + 1.0), cov))
