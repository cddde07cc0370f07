"""The mode of the spike-and-slab posterior: stationarity, derivatives, an independent optimiser."""

import numpy as np
import pymc as pm
import pytensor
import pytest

from pytensor.gradient import verify_grad
from scipy import optimize
from tools.modes import assert_is_mode

import bayesstruct as bs

from bayesstruct import ops
from bayesstruct.precision.kernels import spike_slab_mode as kernel

P, N = 4, 40
SCALES = {"spike_scale": 0.1, "slab_scale": 1.0, "diagonal_rate": 0.5}
ODDS = np.log(0.3 / 0.7) * np.ones((P, P))


def rows(n=N, p=P, seed=0):
    z = np.random.default_rng(seed).normal(size=(n, p))
    z[:, 1] += 0.8 * z[:, 0]
    z[:, 3] -= 0.6 * z[:, 2]
    return z


def mode_of(x, odds=ODDS, **kwargs):
    out = ops.graphical_spike_slab_mode(x.T @ x, len(x), odds, **SCALES, **kwargs)
    return pytensor.function([], out)()


@pytest.mark.chain
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_mode_of_the_model(seed):
    x = rows(seed=seed)
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", P, 0.3, **SCALES)
        bs.distributions.Edges("edge", K)
        pm.MvNormal("x", np.zeros(P), tau=K, observed=x)
    point = {"K": mode_of(x), "edge": np.zeros(6, int)}
    # The mode with the indicators summed out: their own density is left aside.
    report = assert_is_mode(model, point, ["K"], terms=["K", "x"], gradient_tol=1e-3)
    assert report["gain"] <= 1e-8


@pytest.mark.chain
def test_the_lasso_mode_is_the_mode_of_its_model():
    x = rows()
    with pm.Model() as model:
        K = bs.GraphicalLasso("K", P, 6.0)
        pm.MvNormal("x", np.zeros(P), tau=K, observed=x)
    value = pytensor.function([], ops.graphical_lasso_mode(x.T @ x, N, 6.0))()
    assert (value == 0).any()  # a kink is among the entries
    value = 0.5 * (value + value.T)
    assert_is_mode(model, {"K": value}, ["K"], gradient_tol=1e-3)
    with pytest.raises(AssertionError):
        assert_is_mode(model, {"K": value + 0.02 * np.eye(P)}, ["K"])


def test_residual_is_the_gradient_of_the_objective():
    x, K = rows(), np.linalg.inv(np.cov(rows().T))
    S, odds = x.T @ x, ODDS
    args = (S, float(N), odds, 0.1, 1.0, 0.5)
    gradient = []
    for i in range(P):
        for j in range(i + 1):
            ends = []
            for h in (1e-6, -1e-6):
                moved = K.copy()
                moved[i, j] += h
                if i != j:
                    moved[j, i] += h
                ends.append(kernel.mode_objective(moved, *args))
            gradient.append((ends[0] - ends[1]) / 2e-6)
    residual = kernel.mode_residual(K, np.linalg.inv(K), *args)
    np.testing.assert_allclose(residual, np.abs(gradient).max() / N, rtol=1e-5)
    mode, reported, _ = kernel.spike_slab_mode(*args, np.eye(P), 1e-9, 20_000)
    assert reported <= 1e-9
    assert kernel.mode_residual(mode, np.linalg.inv(mode), *args) <= 2e-9


def test_each_sweep_raises_the_objective():
    x = rows()
    args = (x.T @ x, float(N), ODDS, 0.1, 1.0, 0.5)
    K, W, work = np.eye(P), np.eye(P), np.empty((2, P))
    values = [kernel.mode_objective(K, *args)]
    for _ in range(20):
        kernel.mode_sweep(K, W, *args, work)
        values.append(kernel.mode_objective(K, *args))
    assert (np.diff(values) > -1e-9).all()
    np.testing.assert_allclose(W @ K, np.eye(P), atol=1e-10)


def test_an_optimiser_from_the_same_basin_agrees():
    x = rows()
    args = (x.T @ x, float(N), ODDS, 0.1, 1.0, 0.5)
    mode = mode_of(x)
    lower = np.tril_indices(P)

    def negative(theta):
        factor = np.zeros((P, P))
        factor[lower] = theta
        K = factor @ factor.T
        if np.abs(np.diag(factor)).min() < 1e-6:
            return 1e10
        return -kernel.mode_objective(K, *args)

    start = np.linalg.cholesky(mode + 0.01 * np.eye(P))[lower]
    best = optimize.minimize(negative, start, method="BFGS", options={"gtol": 1e-5})
    factor = np.zeros((P, P))
    factor[lower] = best.x
    # BFGS with numerical gradients is good to about the root of the rounding error.
    np.testing.assert_allclose(factor @ factor.T, mode, atol=1e-4)
    assert -best.fun <= kernel.mode_objective(mode, *args) + 1e-7


def test_gradient_in_each_input():
    x = rows()
    S, n = x.T @ x, np.array(float(N))
    inputs = [S, n, ODDS, np.array(0.1), np.array(1.0), np.array(0.5)]

    def mode(*args):
        scatter, rows_, odds, spike, slab, rate = args
        return ops.graphical_spike_slab_mode(
            scatter, rows_, odds, spike_scale=spike, slab_scale=slab, diagonal_rate=rate, tol=1e-12
        )

    # One projection of the output, differentiated in all inputs at once and compared input by input.
    verify_grad(mode, inputs, rng=np.random.default_rng(0), eps=1e-6)


def test_batches_and_fixed_edges():
    x = np.stack([rows(seed=s) for s in range(3)])
    S = np.einsum("bni,bnj->bij", x, x)
    out = ops.graphical_spike_slab_mode(S, float(N), ODDS, **SCALES).eval()
    np.testing.assert_allclose(out[1], mode_of(x[1]), rtol=1e-6, atol=1e-8)
    odds = ops.log_odds(
        np.array([[0.5, 0, 1, 0.5], [0, 0.5, 0.5, 0.5], [1, 0.5, 0.5, 1], [0.5, 0.5, 1, 0.5]])
    )
    K = mode_of(x[0], odds=odds)
    assert np.isfinite(K).all()
    assert np.linalg.eigvalsh(K)[0] > 0
    assert abs(K[0, 1]) < abs(mode_of(x[0])[0, 1])  # a forbidden edge is held in the spike


def test_bootstrap_scatter_has_the_expected_scatter():
    x = rows(n=12)
    scatter = ops.bootstrap_scatter(x)
    draws = pm.draw(scatter, 3_000, random_seed=1)
    # E[sum w (z - zbar)(z - zbar)'] = cov * n / (n + 1) for weights Dirichlet(1_n), cov over n.
    expected = 12 * np.cov(x.T, bias=True) * 12 / 13
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) < 4.5 * error).all()
    assert np.linalg.eigvalsh(draws).min() > -1e-9


def test_bootstrap_start_takes_gaps_and_differs():
    x = rows()
    x[0, 0] = np.nan
    start = ops.BootstrapStart(x, lambda s, n: s / n)()
    a, b = pm.draw(start, 2, random_seed=1)
    assert np.isfinite(a).all()
    assert np.abs(a - b).max() > 1e-3
