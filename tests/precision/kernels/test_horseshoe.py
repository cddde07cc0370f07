"""The kernels of the graphical horseshoe against densities, quadrature and importance sampling."""

import numba
import numpy as np
import pytest

from scipy import special, stats
from tools.batches import mean_and_error
from tools.integration import horseshoe_posterior, moments
from tools.priors import horseshoe_prior

from bayesstruct.core.special import log_scaled_exp_integral
from bayesstruct.precision.kernels.horseshoe import prior
from bayesstruct.precision.kernels.horseshoe import sweep as kernel

RATE = 0.5


def table(n, p, seed=0):
    z = np.random.default_rng(seed).normal(size=(n, p))
    z[:, 1] += 0.8 * z[:, 0]
    return z


@numba.njit
def normals(rng, b, h, scale, size):
    out = np.empty(size)
    for i in range(size):
        out[i] = kernel.horseshoe_normal(rng, b, h, scale)
    return out


@numba.njit
def chain(rng, scatter, n, scale, width, rate, sweeps, burn):
    """Sweeps, with a global scale that is drawn in both ways if `width` is positive."""
    p = scatter.shape[0]
    K, W, work, space = np.eye(p), np.eye(p), np.empty((2, p)), np.empty((2, p, p))
    matrices, scales = np.empty((sweeps, p, p)), np.empty(sweeps)
    for t in range(-burn, sweeps):
        kernel.horseshoe_sweep(rng, K, W, scatter, n, np.full((p, p), scale), rate, work)
        if width > 0.0:
            scale = kernel.draw_global_scale(rng, K, scale, width)
            if t % 3 == 0:
                scale = kernel.rescale(rng, K, scatter, n, scale, width, space)
                W = np.linalg.inv(K)
        if t >= 0:
            matrices[t], scales[t] = K, scale
    return matrices, scales, K, W


def log_horseshoe(u, scale):
    """Up to a constant; the exponential integral by its asymptotic series where its logarithm underflows."""
    z = 0.5 * np.square(u / scale)
    safe = np.clip(z, 1e-300, 600.0)
    return np.where(z < 600.0, safe + np.log(special.exp1(safe)), -np.log(z + 1.0))


def test_log_scaled_exp_integral():
    z = np.r_[1e-300, 1e-30, np.logspace(-8, 2.7, 500), 1.0 - 1e-12, 1.0, 1.0 + 1e-12]
    value = np.array([log_scaled_exp_integral(x) for x in z])
    np.testing.assert_allclose(value, z + np.log(special.exp1(z)), atol=2e-13)
    # exp(z) E1(z) = 1 / z - 1 / z^2 + ... far out
    assert log_scaled_exp_integral(1e9) == pytest.approx(-np.log(1e9), abs=2e-9)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("b", "h", "scale"),
    [
        (0.0, 1.0, 1.0),
        (0.0, 1.0, 0.1),
        (3.0, 2.0, 0.5),
        (-30.0, 2.0, 0.5),
        (3.0, 2.0, 1e-3),
        (5.0, 1.0, 1e-4),
        (8.0, 1.0, 1e-6),
        (0.0, 100.0, 0.0999999),
        (2.0, 100.0, 0.1000001),
        (10.0, 20.0, 5.0),
        (300.0, 20.0, 5.0),
        (0.0, 1e8, 1.0),
        (1.0, 1e-4, 30.0),
    ],
)
def test_horseshoe_normal_against_its_density(b, h, scale):
    # The density is infinite at zero: the grid is geometric there.
    draws = normals(np.random.default_rng(3), b, h, scale, 20_000)
    mean, sd = b / h, 1 / np.sqrt(h)
    side = np.geomspace(1e-16 * sd, abs(mean) + 12 * sd, 20_001)
    u = np.unique(np.r_[-side, side, np.linspace(mean - 12 * sd, mean + 12 * sd, 20_001)])
    log_density = b * u - 0.5 * h * u**2 + log_horseshoe(u, scale)
    f = np.exp(log_density - log_density.max())
    cdf = np.r_[0.0, np.cumsum(0.5 * (f[1:] + f[:-1]) * np.diff(u))]
    p_value = stats.kstest(draws, lambda x: np.interp(x, u, cdf / cdf[-1])).pvalue
    assert p_value > 1e-4


def assert_moments_agree(matrices, weighted):
    """First and second moments within 4.5 standard errors of both sides."""
    exact, exact_error = weighted.mean(moments(weighted.precision))
    mean, error, _ = mean_and_error(moments(matrices), 100)
    z = (mean - exact) / np.hypot(error, exact_error)
    assert np.abs(z).max() < 4.5, z


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "p", "scale"), [(6, 3, 0.3), (8, 4, 0.1), (4, 3, 2.0)])
def test_sweep_with_a_known_scale_has_the_right_moments(n, p, scale):
    rows = table(n, p)
    weighted, _ = horseshoe_posterior(
        rows,
        scales=np.array([scale]),
        log_prior=np.zeros(1),
        diagonal_rate=RATE,
        draws=60_000,
        seed=1,
    )
    rng = np.random.default_rng(2)
    matrices, *_ = chain(rng, rows.T @ rows, float(n), scale, 0.0, RATE, 50_000, 500)
    assert_moments_agree(matrices, weighted)


def scale_grid(width):
    """Global scales and the logarithm of their half-Cauchy probabilities."""
    x = np.linspace(-14.0, 7.0, 169)  # of the logarithm; a Riemann sum of a smooth function
    return np.exp(x), x - np.log1p((np.exp(x) / width) ** 2)


@pytest.fixture(scope="module")
def learned():
    rows, width = table(6, 3), 0.7
    scales, log_prior = scale_grid(width)
    weighted, probabilities = horseshoe_posterior(
        rows, scales=scales, log_prior=log_prior, diagonal_rate=RATE, draws=40_000, seed=1
    )
    x = np.log(scales)
    exact, error = weighted.mean(probabilities @ np.stack([x, x**2], axis=1))
    return rows, width, weighted, exact, error


@pytest.mark.statistical
def test_sweep_with_a_learned_scale_has_the_right_moments(learned):
    rows, width, weighted, exact, exact_error = learned
    rng = np.random.default_rng(2)
    matrices, scales, *_ = chain(rng, rows.T @ rows, 6.0, 0.1, width, RATE, 100_000, 500)
    assert_moments_agree(matrices, weighted)
    x = np.log(scales)
    mean, error, _ = mean_and_error(np.stack([x, x**2], axis=1), 100)
    assert (np.abs(mean - exact) < 4.5 * np.hypot(error, exact_error)).all()


@pytest.mark.statistical
def test_rescaling_alone_leaves_the_posterior_invariant(learned):
    rows, width, weighted, exact, exact_error = learned
    rng, scatter, space = np.random.default_rng(5), rows.T @ rows, np.empty((2, 3, 3))
    K, W, work, scale = np.eye(3), np.eye(3), np.empty((2, 3)), 0.1
    kept, matrices = np.empty(10_000), np.empty((10_000, 3, 3))
    for t in range(-200, len(kept)):
        kernel.horseshoe_sweep(rng, K, W, scatter, 6.0, np.full((3, 3), scale), RATE, work)
        for _ in range(3):
            scale = kernel.rescale(rng, K, scatter, 6.0, scale, width, space)
        W = np.linalg.inv(K)
        if t >= 0:
            kept[t], matrices[t] = np.log(scale), K
    assert_moments_agree(matrices, weighted)
    mean, error, _ = mean_and_error(np.stack([kept, kept**2], axis=1), 100)
    assert (np.abs(mean - exact) < 4.5 * np.hypot(error, exact_error)).all()


@pytest.mark.statistical
def test_another_prior_of_the_scale_is_noticed(learned):
    rows, width, _, exact, exact_error = learned
    rng = np.random.default_rng(2)
    _, scales, *_ = chain(rng, rows.T @ rows, 6.0, 0.1, 10 * width, RATE, 20_000, 500)
    mean, error, _ = mean_and_error(np.log(scales)[:, None], 50)
    assert abs(mean[0] - exact[0]) > 4.5 * np.hypot(error[0], exact_error[0])


def test_matrix_stays_positive_definite_with_fewer_rows_than_columns():
    p, n = 30, 5
    rows = np.random.default_rng(0).normal(size=(n, p))
    rng = np.random.default_rng(1)
    _, scales, K, W = chain(rng, rows.T @ rows, float(n), 0.1, 1.0, RATE, 600, 0)
    assert np.linalg.eigvalsh(K)[0] > 0
    np.testing.assert_array_equal(K, K.T)
    assert np.isfinite(scales).all()
    np.testing.assert_allclose(W @ K, np.eye(p), atol=1e-5)


def test_a_sweep_allocates_nothing():
    from numba.core.runtime import _nrt_python, rtsys

    def allocations(p):
        """Of one call: the arguments are counted too, so a column that allocates shows in p."""
        rng, zeros, K, W = np.random.default_rng(0), np.zeros((p, p)), np.eye(p), np.eye(p)
        arguments = (rng, K, W, zeros, 5.0, zeros + 0.1, RATE, np.empty((2, p)))
        kernel.horseshoe_sweep(*arguments)
        space = np.empty((2, p, p))
        before = rtsys.get_allocation_stats().mi_alloc
        kernel.horseshoe_sweep(*arguments)
        kernel.draw_global_scale(rng, K, 0.1, 1.0)
        kernel.rescale(rng, K, zeros, 5.0, 0.1, 1.0, space)
        return rtsys.get_allocation_stats().mi_alloc - before

    _nrt_python.memsys_enable_stats()
    try:
        small, large = allocations(3), allocations(30)
    finally:
        _nrt_python.memsys_disable_stats()
    assert 0 < small == large


# The prior. ---------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("tries", [prior.REJECTION_TRIES, 0])
@pytest.mark.parametrize("p", [3, 4])
def test_implied_scale_against_rejection(p, tries):
    rng = np.random.default_rng(0)
    _, expected = horseshoe_prior(rng, 4_000, p, width=0.7)
    if tries:
        found = [prior.draw_implied_scale(rng, p, 0.7, RATE) for _ in range(4_000)]
    else:  # what is done with many columns
        found = [
            prior._joint_start(rng, np.empty((p, p)), np.empty((p, p)), 0.7, RATE)
            for _ in range(4_000)
        ]
    assert stats.ks_2samp(found, expected).pvalue > 1e-4


@pytest.mark.statistical
@pytest.mark.parametrize("learned", [True, False])
def test_exceedance_against_rejection(learned):
    rng, p, scale = np.random.default_rng(0), 4, 0.3
    given = {"width": scale} if learned else {"scale": scale}
    matrices, _ = horseshoe_prior(rng, 20_000, p, **given)
    i, j = np.triu_indices(p, 1)
    rho = matrices[:, i, j] / np.sqrt(matrices[:, i, i] * matrices[:, j, j])
    expected = (np.abs(rho) > 0.2).mean(axis=1)
    found = prior.horseshoe_exceedance(rng, p, 0.2, scale, learned, RATE, 20_000)
    # The Gibbs draws are nearly independent: each side has the error of 20,000 draws.
    assert abs(found - expected.mean()) < 6 * expected.std() / np.sqrt(20_000)
