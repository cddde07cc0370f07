"""Posterior mode of a neighbourhood model with the Laplace prior, one regression at a time."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.modes import Mode, ModeSolver, register_mode, relative_change
from bayesstruct.sparse.solvers.losses import ShiftedLogistic

if TYPE_CHECKING:
    from pymc import Model

    from bayesstruct.neighbourhoods.recognition import Neighbourhoods

__all__ = ["LassoMode", "lasso_of", "neighbourhood_mode"]


@register_mode
class LassoMode(ModeSolver):
    """Modes of the regressions of a neighbourhood model with the Laplace prior.

    Each is the lasso, its intercept and its noise variance maximised in alternation with the
    coefficients. A Gaussian regression with Laplace coefficients and random noise variance can have
    two modes (Park and Casella 2008, section 4); this is the one reached from the variance of the
    response.
    """

    def recognise(self, model):
        """Return the regressions, or None."""
        return lasso_of(model)

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Solve the regressions one after the other."""
        point, change = neighbourhood_mode(model, part, tol, max_rounds)
        return Mode(point, change <= tol, max_rounds, change)


def lasso_of(model: "Model") -> "Neighbourhoods | None":
    """Return the regressions of a neighbourhood model with the Laplace prior, otherwise None."""
    from bayesstruct.core.recognition import NotRecognized
    from bayesstruct.neighbourhoods.recognition import recognize_neighbourhoods

    try:
        spec = recognize_neighbourhoods(model)
    except NotRecognized:
        return None
    return spec if spec.laplace and np.isin(spec.inclusion, (0.0, 1.0)).all() else None


def neighbourhood_mode(
    model: "Model", spec: "Neighbourhoods", tol: float, max_rounds: int
) -> tuple[dict, float]:
    r"""Mode of every regression, on the natural scale, as a point of the model.

    Coefficients (by the solver), intercept and noise variance are maximised in turn,

    .. math:: \hat v = \frac{c + r'r / 2}{a + 1 + n / 2}

    for an inverse gamma prior with shape a and scale c.

    Parameters
    ----------
    model : pymc.Model
    spec : Neighbourhoods
    tol : float
        Relative change of the mode at which a regression is done.
    max_rounds : int

    Returns
    -------
    dict
        Point in value space.
    float
        Largest relative change in the last round.
    """
    point = model.initial_point()
    q, p = spec.shape
    coefficients, intercept, noise = np.zeros((q, p)), np.zeros(q), np.ones(q)
    change = 0.0
    for i in range(q):
        solve = _logistic if spec.logistic else _gaussian
        at = np.flatnonzero(spec.inclusion[i])
        w, intercept[i], noise[i], last = solve(spec, i, at, tol, max_rounds)
        coefficients[i, at] = w
        change = max(change, last)
    parts = {"coefficients": coefficients, "intercept": intercept, "noise": noise}
    for part, name in spec.names.items():
        rv = model[name]
        transform = model.rvs_to_transforms.get(rv)
        value = parts[part]
        if transform is not None:
            value = transform.forward(value, *rv.owner.inputs).eval(mode="FAST_COMPILE")
        point[model.rvs_to_values[rv].name] = value
    return point, change


def _alternate(update, state, tol, max_rounds):
    """Repeat an update of (coefficients, intercept, noise variance) until it changes little."""
    change = np.inf
    for _ in range(max_rounds):
        new = update(*state)
        change = max(relative_change(old, now) for old, now in zip(state, new, strict=True))
        state = new
        if change <= tol:
            break
    return (*state, change)


def _solve(X, y, rates, family, tol):
    from bayesstruct.sparse.penalties.l1 import L1
    from bayesstruct.sparse.solvers.sparse import sparse_mode

    # The gap is of second order in the error of the coefficients.
    gap = max(tol**2, 1e-13)
    penalty = L1(1.0, weights=rates)
    return sparse_mode(X, y, family=family, penalty=penalty, intercept=False, tol=gap)


def _gaussian(spec, i, at, tol, max_rounds):
    X, y, scale = spec.design[:, at], spec.response[:, i], spec.scale[i, at]
    mean, sd = spec.intercept[0][i], spec.intercept[1][i]
    shape, rate = spec.noise[0][i], spec.noise[1][i]
    n = len(y)

    def update(w, b, v):
        w = _solve(X, y - b, v / scale, "gaussian", tol).coefficients
        rest = y - X @ w
        b = (rest.sum() / v + mean / sd**2) / (n / v + 1 / sd**2)
        v = (rate + 0.5 * np.sum((rest - b) ** 2)) / (shape + 1.0 + 0.5 * n)
        return w, b, v

    return _alternate(update, (np.zeros(len(at)), mean, float(np.var(y))), tol, max_rounds)


def _logistic(spec, i, at, tol, max_rounds):
    X, y, scale = spec.design[:, at], spec.response[:, i], spec.scale[i, at]
    mean, sd = spec.intercept[0][i], spec.intercept[1][i]

    def update(w, b, v):
        loss = ShiftedLogistic(y, shift=b)
        w = _solve(X, y, 1.0 / scale, loss, tol).coefficients
        return w, _best_intercept(X @ w, y, mean, sd), v

    return _alternate(update, (np.zeros(len(at)), mean, 1.0), tol, max_rounds)


def _best_intercept(rest, y, mean, sd):
    """Intercept of a logistic regression given the rest; the prior keeps it finite."""
    from scipy.optimize import brentq
    from scipy.special import expit

    def slope(b):
        return (y - expit(rest + b)).sum() - (b - mean) / sd**2

    width = sd**2 * len(y)  # the slope of the likelihood is at most n
    return brentq(slope, mean - width, mean + width, xtol=1e-14, rtol=1e-14)
