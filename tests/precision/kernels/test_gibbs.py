"""The sweeps leave the posterior invariant: long runs against importance sampling."""

import numba
import numpy as np
import pytest

from scipy import stats
from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration
from tools.integration import laplace_posterior, moments, spike_slab_posterior

from bayesstruct.precision.kernels import gibbs as kernel
from bayesstruct.precision.kernels.odds import log_odds_matrix

SPIKE, SLAB, RATE = 0.25, 1.0, 0.5


def table(n, p, seed=0):
    """Rows with one strong dependence, so that configurations differ."""
    z = np.random.default_rng(seed).normal(size=(n, p))
    z[:, 1] += 0.8 * z[:, 0]
    return z


@numba.njit
def spike_slab_chain(rng, scatter, n, log_odds, spike, slab, rate, sweeps, burn):
    p = scatter.shape[0]
    K, W = np.eye(p), np.eye(p)
    edges, inclusion, work = np.zeros((p, p), np.int8), np.zeros((p, p)), np.empty((2, p))
    codes, matrices = np.empty(sweeps, np.int64), np.empty((sweeps, p, p))
    for t in range(-burn, sweeps):
        kernel.spike_slab_sweep(
            rng, K, W, edges, inclusion, scatter, n, log_odds, spike, slab, rate, work
        )
        if t >= 0:
            code = 0
            for i in range(p):
                for j in range(i + 1, p):
                    code = 2 * code + edges[i, j]
            codes[t] = code
            matrices[t] = K
    return codes, matrices, W, inclusion


@numba.njit
def laplace_chain(rng, scatter, n, rates, rate, sweeps, burn):
    p = scatter.shape[0]
    K, W, work = np.eye(p), np.eye(p), np.empty((2, p))
    matrices = np.empty((sweeps, p, p))
    for t in range(-burn, sweeps):
        kernel.laplace_sweep(rng, K, W, scatter, n, rates, rate, work)
        if t >= 0:
            matrices[t] = K
    return matrices, W


@numba.njit
def laplace_normals(rng, b, h, rate, size):
    out = np.empty(size)
    for i in range(size):
        out[i] = kernel.laplace_normal(rng, b, h, rate)
    return out


def assert_moments_agree(matrices, weighted, bound=4.5):
    """All first and second moments within 4.5 standard errors of both sides (at most 31 of them)."""
    exact, exact_error = weighted.mean(moments(weighted.precision))
    mean, error, _ = mean_and_error(moments(matrices), 100)
    z = (mean - exact) / np.hypot(error, exact_error)
    assert np.abs(z).max() < bound, z
    return np.abs(z).max()


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "p"), [(0, 3), (1, 3), (6, 3), (8, 4)])
def test_spike_slab_sweep_visits_configurations_as_often_as_it_should(n, p):
    rows = table(n, p)
    probability = np.where(np.eye(p), 0.5, 0.4)
    states, exact, errors, weighted = spike_slab_posterior(
        rows,
        probability=probability,
        spike=SPIKE,
        slab=SLAB,
        diagonal_rate=RATE,
        draws=60_000,
        seed=1,
    )
    codes, matrices, _, inclusion = spike_slab_chain(
        np.random.default_rng(2),
        rows.T @ rows,
        float(n),
        log_odds_matrix(probability),
        SPIKE,
        SLAB,
        RATE,
        100_000,
        500,
    )
    # The edges left by a sweep are those drawn with the last visit of each element, hence a draw
    # from their joint distribution with the matrix.
    assert_matches_enumeration(codes, exact, errors=errors)
    assert_moments_agree(matrices, weighted)
    # Rao-Blackwell estimates of the same inclusion probabilities (both visits to each pair).
    marginal = exact @ states
    upper = np.triu_indices(p, 1)
    estimate = ((inclusion + inclusion.T) / (2 * 100_500))[upper]
    np.testing.assert_allclose(estimate, marginal, atol=0.01)  # about five standard errors


@pytest.mark.statistical
def test_probabilities_of_zero_and_one_are_kept():
    rows = table(5, 3)
    probability = np.array([[0.5, 1.0, 0.0], [1.0, 0.5, 0.3], [0.0, 0.3, 0.5]])
    _, exact, errors, _ = spike_slab_posterior(
        rows,
        probability=probability,
        spike=SPIKE,
        slab=SLAB,
        diagonal_rate=RATE,
        draws=60_000,
        seed=1,
    )
    codes, *_ = spike_slab_chain(
        np.random.default_rng(2),
        rows.T @ rows,
        5.0,
        log_odds_matrix(probability),
        SPIKE,
        SLAB,
        RATE,
        50_000,
        500,
    )
    assert set(np.unique(codes)) == {0b100, 0b101}
    assert_matches_enumeration(codes, exact, errors=errors)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "p"), [(0, 3), (6, 3), (8, 4)])
def test_laplace_sweep_has_the_right_moments(n, p):
    rows = table(n, p)
    rates = np.full((p, p), 1.5)
    rates[0, 1] = rates[1, 0] = 0.5
    weighted = laplace_posterior(
        rows, rate=rates[np.triu_indices(p, 1)], diagonal_rate=0.75, draws=60_000, seed=1
    )
    matrices, _ = laplace_chain(
        np.random.default_rng(2), rows.T @ rows, float(n), rates, 0.75, 100_000, 500
    )
    assert_moments_agree(matrices, weighted)


@pytest.mark.statistical
def test_broken_sweeps_are_noticed():
    # n - 2 in place of n makes the shape of the gamma n/2 instead of n/2 + 1.
    rows = table(6, 3)
    scatter, odds = rows.T @ rows, np.zeros((3, 3))
    _, exact, errors, weighted = spike_slab_posterior(
        rows, spike=SPIKE, slab=SLAB, diagonal_rate=RATE, draws=60_000, seed=1
    )
    _, matrices, *_ = spike_slab_chain(
        np.random.default_rng(2), scatter, 4.0, odds, SPIKE, SLAB, RATE, 50_000, 500
    )
    with pytest.raises(AssertionError):
        assert_moments_agree(matrices, weighted)
    # Odds off by the log ratio of the scales.
    codes, *_ = spike_slab_chain(
        np.random.default_rng(2),
        scatter,
        6.0,
        odds + np.log(SLAB / SPIKE),
        SPIKE,
        SLAB,
        RATE,
        50_000,
        500,
    )
    with pytest.raises(AssertionError, match="worst z"):
        assert_matches_enumeration(codes, exact, errors=errors)


@pytest.mark.parametrize("slab", [1.0, 10.0])
def test_matrix_stays_positive_definite_with_fewer_rows_than_columns(slab):
    p, n = 30, 5
    rows = np.random.default_rng(0).normal(size=(n, p))
    K, W, scatter, nothing = np.eye(p), np.eye(p), rows.T @ rows, np.zeros((p, p))
    edges, inclusion, work = np.zeros((p, p), np.int8), nothing.copy(), np.empty((2, p))
    rng = np.random.default_rng(1)
    for _ in range(600):
        kernel.spike_slab_sweep(
            rng, K, W, edges, inclusion, scatter, float(n), nothing, 0.02, slab, 0.5, work
        )
        assert np.linalg.eigvalsh(K)[0] > 0
        np.testing.assert_array_equal(K, K.T)
    # The inverse was updated 18,000 times and never computed anew.
    np.testing.assert_allclose(W @ K, np.eye(p), atol=1e-5)


def test_marginal_log_odds_against_integration():
    b, h, spike, slab = 1.7, 2.3, 0.2, 1.4
    u = np.linspace(-30, 30, 600_001)
    like = np.exp(b * u - 0.5 * h * u**2)
    ratio = (like * stats.norm.pdf(u, 0, slab)).sum() / (like * stats.norm.pdf(u, 0, spike)).sum()
    # Reference is a Riemann sum of smooth functions, exact to rounding.
    odds = kernel.marginal_log_odds(b, h, spike**-2, slab**-2)
    np.testing.assert_allclose(odds, np.log(ratio), rtol=1e-9)
    assert kernel.marginal_log_odds(0.0, 0.0, spike**-2, slab**-2) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("b", "h", "rate"),
    [(0.0, 1.0, 1.0), (3.0, 2.0, 0.5), (-40.0, 1.5, 3.0), (0.3, 1e-4, 2.0), (200.0, 50.0, 90.0)],
)
def test_laplace_normal_against_its_density(b, h, rate):
    draws = laplace_normals(np.random.default_rng(3), b, h, rate, 20_000)
    u = np.linspace(draws.min() - 1, draws.max() + 1, 400_001)
    log_density = b * u - 0.5 * h * u**2 - rate * np.abs(u)
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    cdf /= cdf[-1]
    p_value = stats.kstest(draws, lambda x: np.interp(x, u, cdf)).pvalue
    assert p_value > 1e-4


def test_log_normal_cdf_in_both_tails():
    x = np.array([-1e3, -100.0, -38.0, -20.001, -19.999, -8.0, -1.0, 0.0, 1.0, 7.0])
    value = np.array([kernel.log_normal_cdf(v) for v in x])
    np.testing.assert_allclose(value, stats.norm.logcdf(x), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("prior", ["spike_slab", "laplace"])
def test_a_sweep_allocates_nothing(prior):
    from numba.core.runtime import _nrt_python, rtsys

    from bayesstruct.precision.kernels.gibbs import laplace_sweep, spike_slab_sweep

    def allocations(p):
        """Of one call: the arguments are counted too, so a column that allocates shows in p."""
        generator, zeros = np.random.default_rng(0), np.zeros((p, p))
        K, W, work = np.eye(p), np.eye(p), np.empty((2, p))
        common = (generator, K, W)
        if prior == "laplace":
            arguments = (*common, zeros, 5.0, zeros + 1.0, 0.5, work)
            sweep = laplace_sweep
        else:
            edges = np.zeros((p, p), np.int8)
            arguments = (*common, edges, zeros.copy(), zeros, 5.0, zeros, 0.1, 1.0, 0.5, work)
            sweep = spike_slab_sweep
        sweep(*arguments)
        before = rtsys.get_allocation_stats().mi_alloc
        sweep(*arguments)
        return rtsys.get_allocation_stats().mi_alloc - before

    _nrt_python.memsys_enable_stats()
    try:
        small, large = allocations(3), allocations(30)
    finally:
        _nrt_python.memsys_disable_stats()
    assert 0 < small == large
