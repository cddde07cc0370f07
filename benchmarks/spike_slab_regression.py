"""Spike-and-slab regressions: effective draws of the indicators per CPU second, time of a sweep.

    uv run python benchmarks/spike_slab_regression.py            # about 3 minutes

Tables have a sparse truth of ten predictors, and columns that follow an autoregression of order one,
so that neighbours of a true predictor compete with it. The kernels are run alone; seconds are CPU
seconds of one core with one BLAS thread. Effective draws are those of the predictors whose
inclusion probability is between 0.05 and 0.95, from batch means over 40 batches; "pinned" counts the
others, whose indicators (almost) never change. "regression" is the time of 200 + 500 sweeps, which a
model of neighbourhoods needs for each variable.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time

import numpy as np

from bayesstruct.sparse.kernels.linear_predictor import POISSON, predictor_sweep
from bayesstruct.sparse.kernels.polya_gamma import draw_polya_gammas, logistic_sweep
from bayesstruct.sparse.kernels.spike_slab_regression import draw_slab_variances, gaussian_sweep

TRUE = 10
BATCHES = 40


def table(n, p, rho, size, seed=1):
    """Predictors and their linear predictor."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    w = np.zeros(p)
    at = rng.choice(p, TRUE, replace=False)
    w[at] = rng.choice([-1, 1], TRUE) * rng.uniform(0.5 * size, 1.5 * size, TRUE)
    return X, X @ w, rng


def gaussian(n, p, rho, swaps, *, laplace=False):
    """One sweep of a Gaussian regression, as a function without arguments, and its coefficients."""
    X, mean, rng = table(n, p, rho, 0.25)
    y = mean + rng.normal(size=n)
    gram, score = X.T @ X, X.T @ y
    diagonal, w, chance = gram.diagonal().copy(), np.zeros(p), np.zeros(p)
    odds = np.full(p, np.log(TRUE / (p - TRUE)))
    slab, scale = np.full(p, 0.25), np.full(p, 0.35)

    def sweep():
        if laplace:
            draw_slab_variances(rng, w, scale, slab)
        gaussian_sweep(rng, w, chance, gram, diagonal, score, 1.0, slab, odds, swaps)

    return sweep, w


def logistic(n, p, rho, swaps):
    """One sweep of a logistic regression."""
    X, mean, rng = table(n, p, rho, 0.8)
    y = (rng.random(n) < 1 / (1 + np.exp(-mean))) * 1.0
    columns, w, chance = np.ascontiguousarray(X.T), np.zeros(p), np.zeros(p)
    squares, offset, slab = columns**2, np.zeros(n), np.ones(p)
    odds = np.full(p, np.log(TRUE / (p - TRUE)))

    def sweep():
        logistic_sweep(rng, w, chance, columns, squares, y, offset, slab, odds, swaps)

    return sweep, w


def poisson(n, p, rho, swaps):
    """One sweep of a Poisson regression, by proposals instead of integrals."""
    X, mean, rng = table(n, p, rho, 0.25)
    values = np.ones((3, n))
    values[0] = rng.poisson(np.exp(mean))
    columns, w, chance = np.ascontiguousarray(X.T), np.zeros(p), np.zeros(p)
    slab, odds = np.full(p, 0.25), np.full(p, np.log(TRUE / (p - TRUE)))
    order, starts = np.arange(p), np.arange(p + 1)

    def sweep():
        eta = w @ columns
        prior = (slab, odds, order, starts, swaps)
        predictor_sweep(rng, w, chance, POISSON, columns, eta, values, *prior)

    return sweep, w


def measure(sweep, w, draws):
    """Time and effective draws of a chain."""
    for _ in range(200):
        sweep()
    kept = np.empty((draws, len(w)), bool)
    start = time.process_time()
    for t in range(draws):
        sweep()
        kept[t] = w != 0
    seconds = time.process_time() - start
    f = kept.mean(axis=0)
    unsure = (f > 0.05) & (f < 0.95)
    means = kept[:, unsure].reshape(BATCHES, -1, unsure.sum()).mean(axis=1)
    variance = np.maximum(means.var(axis=0, ddof=1) / BATCHES, 1e-12)
    ess = np.minimum(f[unsure] * (1 - f[unsure]) / variance, draws)
    active = kept.sum(axis=1).mean()
    print(
        f"   {1e3 * seconds / draws:6.3f} ms/sweep   regression {700 * seconds / draws:5.2f} s   "
        f"{active:5.1f} active   {unsure.sum():3d} unsure, {(~unsure).sum()} pinned   ESS per draw "
        f"median {np.median(ess) / draws:.3f} min {ess.min() / draws:.3f}   "
        f"ESS/s median {np.median(ess) / seconds:6.0f} min {ess.min() / seconds:6.0f}",
        flush=True,
    )


def main():
    """Print everything."""
    for z in (0.0, 1.0, 4.0):
        tilts, out = np.full(200_000, z), np.empty(200_000)
        draw_polya_gammas(np.random.default_rng(0), tilts[:10], out)
        start = time.process_time()
        draw_polya_gammas(np.random.default_rng(0), tilts, out)
        print(f"PG(1, {z:.0f}): {1e9 * (time.process_time() - start) / len(tilts):.0f} ns a draw")
    for p in (200, 1000):
        for rho in (0.5, 0.9):
            for swaps in (0, 10):
                print(f"gaussian  p = {p:4d} n = 500 rho = {rho} swaps = {swaps}")
                measure(*gaussian(500, p, rho, swaps), 4_000)
        print(f"laplace   p = {p:4d} n = 500 rho = 0.9 swaps = 10")
        measure(*gaussian(500, p, 0.9, 10, laplace=True), 4_000)
    for n, p in ((500, 200), (500, 1000), (1000, 1000)):
        for swaps in (0, 10):
            print(f"logistic  p = {p:4d} n = {n} rho = 0.5 swaps = {swaps}")
            measure(*logistic(n, p, 0.5, swaps), 2_000)
    for p, rho in ((200, 0.5), (200, 0.9)):
        for swaps in (0, 10):
            print(f"poisson   p = {p:4d} n = 500 rho = {rho} swaps = {swaps}")
            measure(*poisson(500, p, rho, swaps), 2_000)


if __name__ == "__main__":
    main()
