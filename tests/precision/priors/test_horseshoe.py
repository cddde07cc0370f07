"""The graphical horseshoe: density, draws, global scale, edges, and what is refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor.gradient import verify_grad
from scipy import integrate, stats
from tools.priors import horseshoe_prior

import bayesstruct as bs

from bayesstruct.distributions import GlobalScale, implied_horseshoe_probability
from bayesstruct.precision.ops.horseshoe import LogScaledExpIntegral

K = np.array([[1.0, 0.3, -0.5], [0.3, 1.5, 1e-3], [-0.5, 1e-3, 2.0]])
PAIRS = np.triu_indices(3, 1)


def value_of(rv):
    value = pt.dmatrix()
    return lambda x: float(pm.logp(rv, value).eval({value: x}))


def horseshoe_density(u, scale):
    """By quadrature over the logarithm of the local scale."""

    def integrand(x):
        local = np.exp(x)
        return stats.norm.pdf(u, 0, local * scale) * stats.halfcauchy.pdf(local) * local

    return integrate.quad(integrand, -40, 40, limit=500, points=[-10, -3, 0, 3])[0]


@pytest.mark.parametrize("scale", [0.1, 1.0, "matrix"])
def test_logp_against_quadrature(scale):
    if scale == "matrix":
        scale = np.array([[1.0, 0.2, 2.0], [0.2, 1.0, 0.01], [2.0, 0.01, 1.0]])
    scales = np.broadcast_to(scale, (3, 3))[PAIRS]
    off = sum(np.log(horseshoe_density(u, s)) for u, s in zip(K[PAIRS], scales, strict=True))
    expected = off + stats.expon.logpdf(np.diag(K), scale=1 / 0.8).sum()
    found = value_of(bs.GraphicalHorseshoe.dist(3, scale, diagonal_rate=0.8))(K)
    assert found == pytest.approx(expected, rel=1e-7)


def test_logp_at_the_edges_of_its_support():
    logp = value_of(bs.GraphicalHorseshoe.dist(3, 0.3))
    assert logp(np.ones((3, 3)) + 0.5) == -np.inf  # not positive definite
    assert np.isfinite(logp(np.eye(3)))  # a pole, which is cut off far out
    assert logp(np.eye(3)) > logp(np.eye(3) + 1e-6)


def test_derivatives_of_the_scaled_exponential_integral():
    z = np.array([[1e-3, 0.4, 0.99], [1.3, 7.0, 60.0]])
    verify_grad(LogScaledExpIntegral(), [z], rng=np.random.default_rng(0))


def test_a_batch_of_matrices():
    batch, value = bs.GraphicalHorseshoe.dist(3, 0.2, size=2), pt.dtensor3()
    found = pm.logp(batch, value).eval({value: np.stack([K, 2 * K])})
    one = value_of(bs.GraphicalHorseshoe.dist(3, 0.2))
    np.testing.assert_allclose(found, [one(K), one(2 * K)])


def test_the_global_scale_is_a_variable_unless_it_is_a_number():
    with pm.Model() as model:
        bs.GraphicalHorseshoe("one", 3)
        bs.GraphicalHorseshoe("two", 3, pm.HalfCauchy.dist(0.2))
        bs.GraphicalHorseshoe("three", 3, 0.5)
    assert [v.name for v in model.free_RVs] == [
        "global_scale",
        "one",
        "two_global_scale",
        "two",
        "three",
    ]
    density = pm.logp(model["two_global_scale"], 0.3).eval()
    assert density == pytest.approx(stats.halfcauchy.logpdf(0.3, scale=0.2))
    assert pm.logp(model["two_global_scale"], -0.3).eval() == -np.inf


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (lambda: pm.HalfNormal.dist(1), "half-Cauchy distribution"),
        (lambda: pm.HalfCauchy("tau", 1), "unregistered half-Cauchy"),
        (lambda: pm.HalfCauchy.dist(pm.Gamma("a", 1, 1)), "half-Cauchy distribution"),
        (lambda: -1.0, "must be positive"),
        (lambda: np.triu(np.ones((3, 3))) + 1, "not symmetric"),
    ],
)
def test_other_global_scales_are_refused(scale, message):
    with pm.Model(), pytest.raises(ValueError, match=message):
        bs.GraphicalHorseshoe("K", 3, scale())


def test_a_random_diagonal_rate_is_refused():
    with pm.Model(), pytest.raises(ValueError, match="`diagonal_rate` must be a constant"):
        bs.GraphicalHorseshoe("K", 3, 0.5, diagonal_rate=pm.Gamma("d", 1, 1))


@pytest.mark.statistical
def test_prior_draws_of_matrix_and_scale_against_rejection():
    with pm.Model():
        bs.GraphicalHorseshoe("K", 3, pm.HalfCauchy.dist(0.7))
        drawn = pm.sample_prior_predictive(3_000, random_seed=1)["prior"]
    matrices, scales = horseshoe_prior(np.random.default_rng(0), 3_000, 3, width=0.7)
    found = drawn["K"].values[0]
    pairs = [(drawn["global_scale"].values[0], scales)]
    pairs += [(found[:, i, j], matrices[:, i, j]) for i, j in [(0, 0), (0, 1), (1, 2)]]
    pairs += [(np.linalg.slogdet(found)[1], np.linalg.slogdet(matrices)[1])]
    assert min(stats.ks_2samp(a, b).pvalue for a, b in pairs) > 2e-5


@pytest.mark.statistical
def test_draws_with_many_columns_against_rejection():
    # Sweeps without data, as beyond eight columns, against independent elements that are accepted.
    from bayesstruct.precision.kernels.horseshoe import prior as kernel

    rng, scales = np.random.default_rng(0), np.full((9, 9), 0.02)
    found = np.array([kernel.draw_horseshoe(rng, scales, 0.5) for _ in range(2_000)])
    expected, _ = horseshoe_prior(rng, 2_000, 9, scale=0.02)
    for i, j in [(0, 0), (0, 1), (7, 8)]:
        assert stats.ks_2samp(found[:, i, j], expected[:, i, j]).pvalue > 3e-5


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [None, 0.2])
def test_edges_have_their_prior_probability(scale):
    with pm.Model():
        bs.edges(bs.GraphicalHorseshoe("K", 4, scale), negligible=0.2)
        drawn = pm.sample_prior_predictive(4_000, random_seed=1)
    expected = drawn["prior"]["edge"].values[0].mean(axis=1)
    recorded = drawn["constant_data"]["edge_prior"].values
    assert np.ptp(recorded) == 0
    # 4,000 sweeps that are nearly independent on the other side
    assert abs(recorded[0] - expected.mean()) < 6 * expected.std() / np.sqrt(4_000)


def test_edges_of_pairs_with_scales_of_their_own():
    scales = np.where(np.eye(3)[[1, 0, 2]] > 0, 5.0, 0.01)
    with pm.Model() as model:
        bs.edges(bs.GraphicalHorseshoe("K", 3, scales), negligible=0.2)
    recorded = model["edge_prior"].data
    assert recorded[0] > 0.5 > recorded[1:].max()


def test_the_implied_probability_is_remembered_and_falls_with_the_scale():
    one, two = (implied_horseshoe_probability(6, 0.1, global_scale=s)[0] for s in (0.01, 0.1))
    assert 0 < one < two < 1
    assert implied_horseshoe_probability(6, 0.1, global_scale=0.01)[0] == one
    assert GlobalScale.dist(6).eval() > 0


def test_there_is_no_mode():
    with pm.Model():
        matrix = bs.GraphicalHorseshoe("K", 3)
        pm.MvNormal("x", np.zeros(3), tau=matrix, observed=np.ones((4, 3)))
        with pytest.raises(ValueError, match=r"no mode: sample and take the posterior mean"):
            bs.find_MAP()
