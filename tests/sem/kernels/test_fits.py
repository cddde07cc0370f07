"""Fits of families: evidences against closed forms and sums over grids, modes, and tables without much information."""

import numpy as np
import pytest

from scipy import stats
from scipy.special import logsumexp

from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.sem.kernels.errors import start_shape
from bayesstruct.sem.kernels.fits import (
    family_design,
    fit_family,
    log_joint,
    move_coordinates,
    parameter_count,
)
from bayesstruct.sem.kernels.proposals import draw_family, even_numbers, log_proposal
from bayesstruct.sem.kernels.scores import SemScores
from bayesstruct.sem.kernels.settings import NOISES, PRIORS, sem_settings


def _table(n, d, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.laplace(size=(n, d))
    x[:, -1] += x[:, :2].sum(axis=1)
    return (x - x.mean(0)) / x.std(0)


@pytest.mark.parametrize(("n", "d"), [(2, 3), (5, 8), (40, 4)])
def test_normal_noise_with_free_variances_is_the_score_bge(n, d):
    x = _table(n, d)
    own, bge = SemScores(x, sem_settings(d, noise="gaussian")), BGe(x)
    for child, parents in [(0, ()), (d - 1, (0, 1)), (1, tuple(j for j in range(d) if j != 1))]:
        assert own.local(child, parents) == pytest.approx(bge.local(child, parents), abs=1e-8)
    subsets = own.subsets(0, [1, 2], max_parents=1)
    np.testing.assert_allclose(subsets, bge.subsets(0, [1, 2], max_parents=1), atol=1e-8)


def _log_joint(y, x, noise, prior, theta):
    """Log joint density of one parent, with free variances of three columns, from SciPy."""
    c, b, tau = theta[:3]
    s, t = np.exp(tau), 0.5
    e = (y - c - b * x) / s
    rest = theta[3:]
    if noise == "laplace":
        out = stats.laplace.logpdf(e, scale=np.sqrt(0.5)).sum()
    elif noise == "student":
        nu = 2.0 + np.exp(rest[0])
        out = stats.t.logpdf(e, nu, scale=np.sqrt((nu - 2.0) / nu)).sum()
        out += stats.gamma.logpdf(nu - 2.0, 2.0, scale=10.0) + rest[0]
    else:
        out = stats.norm.logpdf(e).sum()
    out += stats.norm.logpdf(c, 0.0, s) - len(y) * tau
    # alpha_w = d + 2, one parent; the density of log s from that of s^2.
    out += stats.invgamma.logpdf(s**2, 0.5 * (2 + 1 + 1), scale=0.5 * t) + np.log(2.0 * s**2)
    width = s / np.sqrt(t)
    if prior == "laplace":
        return out + stats.laplace.logpdf(b, scale=width)
    if prior == "horseshoe":
        local = np.exp(rest[-1])
        out += stats.halfcauchy.logpdf(local) + np.log(local)
        width = width * local
    return out + stats.norm.logpdf(b, 0.0, width)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "student"])
@pytest.mark.parametrize("prior", PRIORS)
def test_joint_density_is_the_product_of_its_parts(noise, prior):
    settings = sem_settings(3, noise=noise, prior=prior)
    y, design = family_design(_table(7, 3), 2, [0])
    theta = np.random.default_rng(1).normal(size=parameter_count(settings, 1))
    expected = _log_joint(y, design[1], noise, prior, theta)
    assert log_joint(y, design, settings, theta) == pytest.approx(expected)


def test_evidence_is_the_integral_over_a_grid():
    settings = sem_settings(3, noise="laplace")
    y, design = family_design(_table(6, 3), 2, [0])
    axes = np.linspace(-4, 4, 81), np.linspace(-5, 5, 81), np.linspace(-4, 3, 71)
    c, b, tau = np.meshgrid(*axes, indexing="ij")
    e = np.abs(y - c[..., None] - b[..., None] * design[1]).sum(-1) * np.exp(-tau)
    logs = -np.sqrt(2.0) * e - len(y) * (0.5 * np.log(2.0) + tau)
    s2 = np.exp(2.0 * tau)
    logs += stats.norm.logpdf(c, 0.0, np.sqrt(s2)) + stats.norm.logpdf(b, 0.0, np.sqrt(2.0 * s2))
    logs += stats.invgamma.logpdf(s2, 2.0, scale=0.25) + np.log(2.0 * s2)
    expected = logsumexp(logs) + np.log(np.prod([a[1] - a[0] for a in axes]))
    # Sharpened by 64 even draws; the grid is right to about 0.01.
    assert SemScores(_table(6, 3), settings).local(2, (0,)) == pytest.approx(expected, abs=0.1)
    fit = fit_family(y, design, settings)
    _, logs = draw_family(np.random.default_rng(0), y, design, fit, settings, m=20_000)
    assert logsumexp(logs) - np.log(len(logs)) == pytest.approx(expected, abs=0.03)
    # Without the Jacobian of log s the evidence would be another one.
    assert abs(logsumexp(logs - 0.5) - np.log(len(logs)) - expected) > 0.3


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("variances", ["free", "equal"])
def test_no_parameter_near_the_mode_is_better(noise, variances):
    settings = sem_settings(4, noise=noise, variances=variances)
    y, design = family_design(_table(60, 4), 3, [0, 1])
    fit = fit_family(y, design, settings, tau=-0.3, shape=start_shape(settings))
    best = log_joint(y, design, settings, fit.mode)
    rng = np.random.default_rng(0)
    free = np.arange(len(fit.mode))
    if variances == "equal":
        assert fit.mode[3] == -0.3
        free = free[:3] if noise != "student" else np.r_[0:3, 4]
    # Smoothed absolute values have their mode near by: the loss is less than one there.
    slack = 1.0 if noise == "laplace" else 1e-4
    for _ in range(50):
        other = fit.mode.copy()
        other[free] += 0.05 * rng.standard_normal(len(free))
        assert log_joint(y, design, settings, other) < best + slack


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("prior", PRIORS)
def test_tables_with_little_information_have_finite_fits(noise, prior):
    x = _table(4, 6)
    x[:, 1] = x[:, 0]  # a copy, and a column without residuals
    settings = sem_settings(6, noise=noise, prior=prior)
    for child, parents in [(0, (1,)), (5, (0, 1, 2, 3, 4))]:
        y, design = family_design(x, child, parents)
        fit = fit_family(y, design, settings)
        assert np.isfinite(fit.mode).all()
        assert abs(fit.log_evidence) < 1e3
        rng = np.random.default_rng(0)
        theta, logs = draw_family(rng, y, design, fit, settings, m=200)
        assert np.isfinite(theta).all()
        assert np.isfinite(logs).mean() > 0.3  # others have negative cubic roots
    assert SemScores(x[:0], settings).local(0, (1,)) == 0.0


def test_even_coordinates_have_a_jacobian_of_one_and_go_back():
    settings = sem_settings(3, noise="mixture")
    theta = np.r_[0.3, 0.5, -0.2, start_shape(settings) * 1.1]

    def even(theta):
        out = theta.copy()
        move_coordinates(settings, out, 2, 1)
        return out

    jacobian = np.array([(even(theta + step) - even(theta)) / 1e-7 for step in 1e-7 * np.eye(9)])
    assert np.linalg.det(jacobian) == pytest.approx(1.0, abs=1e-5)
    back = even(theta)
    move_coordinates(settings, back, 2, -1)
    np.testing.assert_allclose(back, theta)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("prior", ["spike_slab", "horseshoe"])
def test_densities_of_draws_integrate_to_one(noise, prior):
    settings = sem_settings(3, noise=noise, prior=prior)
    y, design = family_design(_table(30, 3), 2, [0])
    fit = fit_family(y, design, settings)
    rng = np.random.default_rng(2)
    theta, logs = draw_family(rng, y, design, fit, settings, m=4000)
    fine = np.isfinite(logs)  # mixtures: others have negative cubic roots
    theta = theta[fine]
    centre, factor = theta.mean(0), np.linalg.cholesky(1.5 * np.cov(theta.T))
    other = stats.multivariate_t(centre, factor @ factor.T, df=6)
    points = other.rvs(8000, random_state=rng)
    positive = np.ones(len(points), bool)
    if noise == "mixture":
        positive = (points[:, 3:9] > 0.0).all(axis=1)
    logs = [
        log_proposal(fit, settings, p, len(y)) - other.logpdf(p) if some else -np.inf
        for p, some in zip(points, positive, strict=True)
    ]
    ratio = np.exp(logs)
    assert ratio.mean() == pytest.approx(fine.mean(), abs=5 * ratio.std() / np.sqrt(len(ratio)))
    assert ratio.std() / np.sqrt(len(ratio)) < 0.1


def test_even_numbers_have_the_moments_of_random_ones():
    numbers = even_numbers(sem_settings(3, noise="student", prior="horseshoe"), 2, 20, 64)
    normal = numbers.shape[1] - 4
    np.testing.assert_allclose(numbers[:, :normal].mean(0), 0.0, atol=0.05)
    np.testing.assert_allclose(numbers[:, :normal].std(0), 1.0, atol=0.1)
    np.testing.assert_allclose(numbers[:, normal:].mean(0), 1.0, atol=0.15)


def _start_of(weights, y, settings):
    """Make a start with other weights of a mixture, as one that has fitted with another parent might have."""
    theta = np.zeros(8)
    theta[1], theta[2:] = np.log(y.std()), np.cbrt(settings.concentration * np.array(weights))
    return theta


@pytest.mark.parametrize("noise", ["uniform", "exponential"])
def test_modes_of_mixtures_do_not_depend_on_where_they_begin(noise):
    rng = np.random.default_rng(0)
    y = rng.uniform(-1.7, 1.7, 500) if noise == "uniform" else rng.exponential(size=500) - 1.0
    settings = sem_settings(2, noise="mixture")
    design = np.ones((1, 500))
    starts = [(0.02, 0.3, 0.36, 0.28, 0.02, 0.02), (0.3, 0.25, 0.2, 0.15, 0.05, 0.05)]
    found = [fit_family(y, design, settings).log_evidence]
    for weights in starts:
        found.append(
            fit_family(y, design, settings, start=_start_of(weights, y, settings)).log_evidence
        )
    assert np.ptp(found) < 0.01
    # With n = 1,000 and Newton's method alone other modes lay up to 48 below the best one.
