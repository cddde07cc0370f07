"""Regressions with exact zeros and Student-t responses, against sums and integrals over all coefficients."""

import itertools

import numpy as np
import pymc as pm
import pytest

from scipy.stats import norm, t

import bayesstruct as bs


def exact(X, y, pi, slab, noise, nu):
    """Inclusion probabilities and means of two coefficients, by sums over a fine grid."""
    grid = np.linspace(-6 * slab, 6 * slab, 1201)
    step = grid[1] - grid[0]
    density = norm.pdf(grid, 0, slab) * step
    weights, means = {}, {}
    for on in itertools.product([0, 1], repeat=2):
        axes = [(grid, density) if one else (np.zeros(1), np.ones(1)) for one in on]
        (a, pa), (b, pb) = axes
        logp = np.zeros((len(a), len(b)))
        for row, response in zip(X, y, strict=True):
            logp += t.logpdf(response, nu, row[0] * a[:, None] + row[1] * b, noise)
        mass = np.exp(logp) * pa[:, None] * pb
        weights[on] = mass.sum() * pi ** sum(on) * (1 - pi) ** (2 - sum(on))
        means[on] = np.array([(mass.sum(1) @ a), (mass.sum(0) @ b)]) / mass.sum()
    total = sum(weights.values())
    inclusion = [sum(w for on, w in weights.items() if on[j]) / total for j in range(2)]
    return np.array(inclusion), sum(weights[on] * means[on] for on in weights) / total


@pytest.mark.chain
@pytest.mark.parametrize("nu", [1.5, 4.0])
def test_draws_are_those_of_the_exact_posterior(nu):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(14, 2))
    y = X @ [0.9, 0.0] + 0.7 * rng.standard_t(nu, 14)
    with pm.Model():
        w = bs.SpikeAndSlab("w", 0.4, 1.0, shape=2)
        pm.StudentT("y", nu=nu, mu=X @ w, sigma=0.7, observed=y)
        idata = pm.sample(4000, tune=100, chains=2, cores=1, random_seed=3, progressbar=False)
    draws = idata["posterior"]["w"].values.reshape(-1, 2)
    inclusion, mean = exact(X, y, 0.4, 1.0, 0.7, nu)
    # four standard errors of 8000 draws of which a third count as independent
    np.testing.assert_allclose((draws != 0).mean(0), inclusion, atol=0.04)
    np.testing.assert_allclose(draws.mean(0), mean, atol=0.04)
