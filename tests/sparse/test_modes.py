"""Modes of group and tree priors in hand-written regressions: optimality conditions, and independent solutions."""

import numpy as np
import pymc as pm
import pytest

from scipy.optimize import minimize
from scipy.special import expit
from tools.modes import assert_is_mode

import bayesstruct as bs

GROUPS = np.array([0, 0, 1, 1, 1, 2])


def table(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) + 0.5 * rng.normal(size=(n, 1))
    return X, X @ [1.0, -0.6, 0, 0, 0, 0.1] + 0.8 * rng.normal(size=n)


def assert_group_optimal(w, gradient, rates, tol=1e-6):
    """Optimality of groups under Euclidean norms; the gradient is that of the log-likelihood."""
    for g, rate in enumerate(rates):
        own, pull = w[g == GROUPS], gradient[g == GROUPS]
        if own.any():
            np.testing.assert_allclose(pull, rate * own / np.linalg.norm(own), atol=tol)
        else:
            assert np.linalg.norm(pull) <= rate + tol


@pytest.mark.parametrize("noise", [0.8, "rows"])
def test_a_normal_regression_with_known_rates(noise):
    X, y = table()
    noise = np.linspace(0.5, 1.5, len(y)) if noise == "rows" else noise
    rates = np.array([3.0, 30.0, 12.0])
    with pm.Model() as model:
        w = bs.GroupLaplace("w", GROUPS, rates)
        pm.Normal("y", 0.3 + X @ w, noise, observed=y)
    found = bs.find_MAP(model)["w"]
    assert (found[2:5] == 0).all()
    assert found[:2].all()
    assert_group_optimal(found, X.T @ ((y - 0.3 - X @ found) / np.square(noise)), rates)


def test_a_logistic_regression_with_other_terms():
    X, y = table(1, 120)
    y = (y > 0).astype(int)
    offset = np.linspace(-1, 1, len(y))
    with pm.Model() as model:
        w = bs.GroupLaplace("w", GROUPS, [1.0, 9.0, 6.0])
        pm.Bernoulli("y", logit_p=offset + X @ w, observed=y)
    found = bs.find_MAP(model)["w"]
    assert (found[2:] == 0).all()
    assert_group_optimal(found, X.T @ (y - expit(offset + X @ found)), [1.0, 9.0, 6.0])


@pytest.mark.chain
def test_a_random_rate_intercept_and_noise():
    X, y = table()
    with pm.Model() as model:
        rate = pm.Gamma("rate", 3.0, 0.5)
        w = bs.GroupLaplace("w", GROUPS, rate)
        level = pm.Normal("level", 0, 2)
        noise = pm.HalfNormal("noise", 1.0)
        pm.Normal("y", level + X @ w, noise, observed=y)
    mode = bs.find_MAP(model, tol=1e-7)
    w, level, noise, rate = (mode[name] for name in ("w", "level", "noise", "rate"))
    norms = sum(np.linalg.norm(w[g == GROUPS]) for g in range(3))
    np.testing.assert_allclose(rate, (6 + 3.0 - 1.0) / (0.5 + norms), rtol=1e-5)
    rest = y - level - X @ w
    n = len(y)
    np.testing.assert_allclose(rest.sum() / noise**2, level / 4, atol=1e-4)
    np.testing.assert_allclose(n / noise, rest @ rest / noise**3 - noise, rtol=1e-5)
    assert_group_optimal(w, X.T @ rest / noise**2, [rate] * 3, tol=1e-4)
    assert_is_mode(model, mode, ["w", "level", "noise", "rate"], perturbations=300)


PRIORS = {
    "maximum": (
        lambda rate: bs.GroupLaplace("w", GROUPS, rate, norm=np.inf),
        lambda w: sum(abs(w[g == GROUPS]).max() for g in range(3)),
    ),
    "sparse group": (
        lambda rate: bs.SparseGroupLaplace("w", GROUPS, rate, group_rate=5.0),
        lambda w: abs(w).sum() + sum(np.linalg.norm(w[g == GROUPS]) for g in range(3)),
    ),
    "tree": (
        lambda rate: bs.TreeLaplace("w", parents=[-1, 0, 1, 1, -1, 4], rate=rate),
        lambda w: sum(
            np.linalg.norm(w[at]) for at in ([0, 1, 2, 3], [1, 2, 3], [2], [3], [4, 5], [5])
        ),
    ),
}


@pytest.mark.parametrize("prior", PRIORS)
def test_other_norms_against_a_general_optimiser(prior):
    X, y = table(2)
    build, norm = PRIORS[prior]
    with pm.Model() as model:
        w = build(5.0)
        pm.Normal("y", X @ w, 1.0, observed=y)

    def objective(w):
        return 0.5 * np.sum((y - X @ w) ** 2) + 5.0 * norm(w)

    found = bs.find_MAP(model)["w"]
    start = np.linalg.lstsq(X, y, rcond=None)[0]
    options = {"maxiter": 40_000, "maxfev": 40_000, "xatol": 1e-9, "fatol": 1e-11}
    for _ in range(3):
        start = minimize(objective, start, method="Nelder-Mead", options=options).x
    assert objective(found) <= objective(start) + 1e-9
    np.testing.assert_allclose(found, start, atol=5e-3)


@pytest.mark.chain
@pytest.mark.parametrize("prior", PRIORS)
def test_random_rates_of_other_norms(prior):
    X, y = table(2)
    with pm.Model() as model:
        rate = pm.Gamma("rate", 20.0, 4.0)
        w = PRIORS[prior][0](rate)
        pm.Normal("y", X @ w, 1.0, observed=y)
    mode = bs.find_MAP(model, tol=1e-7)
    if prior != "sparse group":  # whose constant is no power of the rate
        np.testing.assert_allclose(
            mode["rate"], (6 + 20.0 - 1.0) / (4.0 + PRIORS[prior][1](mode["w"])), rtol=1e-5
        )
    # Equal absolute values under a maximum norm are a kink that the difference quotients do not know.
    loose = 1e-2 if prior == "maximum" else 1e-4
    assert_is_mode(model, mode, ["w", "rate"], perturbations=300, gradient_tol=loose)


def test_counts_go_to_the_general_optimiser(caplog, monkeypatch):
    X, y = table()
    from bayesstruct.modes import find_map

    monkeypatch.setattr(find_map, "_pymc_mode", lambda model: {})
    with pm.Model() as model:
        w = bs.GroupLaplace("w", GROUPS, 1.0)
        pm.Poisson("y", pm.math.exp(X @ w), observed=np.abs(np.round(y)).astype(int))
    bs.find_MAP(model)
    assert "'y' has the distribution 'poisson'" in caplog.text
