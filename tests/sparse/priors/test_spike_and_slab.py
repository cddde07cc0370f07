"""The prior with exact zeros: its density, its draws, and what it refuses."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor.gradient import NullTypeGradError, verify_grad
from scipy import stats

import bayesstruct as bs

from bayesstruct.distributions import LaplaceSpikeAndSlab, NormalSpikeAndSlab, SpikeAndSlab

SLABS = {"normal": stats.norm, "laplace": stats.laplace}


@pytest.mark.parametrize("slab", SLABS)
def test_density(slab):
    value = np.array([0.0, -0.0, 0.3, -2.0, 1e-300])
    inclusion, scale = np.array([0.2, 0.5, 0.7, 0.9, 0.4]), np.array([1.0, 2.0, 0.5, 1.5, 1.0])
    got = pm.logp(SpikeAndSlab.dist(inclusion, scale, slab=slab), value).eval()
    dense = np.log(inclusion) + SLABS[slab].logpdf(value, scale=scale)
    np.testing.assert_allclose(got, np.where(value == 0, np.log1p(-inclusion), dense), rtol=1e-12)


@pytest.mark.statistical
@pytest.mark.compiled
@pytest.mark.parametrize("slab", SLABS)
def test_draws_follow_the_density(slab):
    N, together = 40_000, 200
    inclusion, scale = np.array([0.2, 0.7]), np.array([0.5, 3.0])
    one = SpikeAndSlab.dist(inclusion, scale, slab=slab)
    assert pm.draw(one, 3, random_seed=1).shape == (3, 2)
    many = SpikeAndSlab.dist(inclusion, scale, slab=slab, shape=(together, 2))
    w = pm.draw(many, N // together, random_seed=1).reshape(N, 2)
    z = ((w != 0).mean(0) - inclusion) / np.sqrt(inclusion * (1 - inclusion) / N)
    assert np.abs(z).max() < 4.5
    for j in range(2):
        assert stats.kstest(w[w[:, j] != 0, j], SLABS[slab](scale=scale[j]).cdf).pvalue > 1e-3


@pytest.mark.parametrize("slab", SLABS)
def test_the_density_integrates_to_the_mass_of_the_slab(slab):
    grid = np.linspace(-40, 40, 80_000)  # without zero
    logp = pm.logp(SpikeAndSlab.dist(0.3, 1.7, slab=slab), grid).eval()
    # The kink at zero lies between two grid points: an error of the order of the step squared.
    assert np.trapezoid(np.exp(logp), grid) == pytest.approx(0.3, abs=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("slab", SLABS)
def test_draws_with_random_scale_and_probability(slab):
    N = 20_000
    w = SpikeAndSlab.dist(pm.Beta.dist(2, 3), pm.Gamma.dist(3, 2), slab=slab, shape=4)
    draws = pm.draw(w, N, random_seed=2)
    # Given the probability the four are independent; together their number is beta-binomial.
    counts = np.bincount((draws != 0).sum(1), minlength=5)
    expected = N * stats.betabinom(4, 2, 3).pmf(np.arange(5))
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    scale = stats.gamma(3, scale=1 / 2).rvs(N, random_state=3)
    oracle = SLABS[slab].rvs(scale=scale, random_state=4)
    assert stats.ks_2samp(draws[draws[:, 0] != 0, 0], oracle).pvalue > 1e-3


@pytest.mark.compiled
def test_shapes_and_dims():
    assert SpikeAndSlab.dist([0.1, 0.2, 0.3], [[1.0], [2.0]]).eval().shape == (2, 3)
    assert SpikeAndSlab.dist(0.5, shape=(4, 2)).eval().shape == (4, 2)
    with pm.Model(coords={"predictor": list("abc")}) as model:
        w = bs.SpikeAndSlab("w", 0.2, dims="predictor")
        bs.distributions.included("in_model", w, dims="predictor")
        prior = pm.sample_prior_predictive(50, random_seed=1)["prior"]
    assert model.named_vars_to_dims["w"] == ("predictor",)
    assert prior["w"].sizes["predictor"] == 3
    np.testing.assert_array_equal(prior["in_model"], prior["w"] != 0)
    assert prior["in_model"].dtype == int


def test_resized_data_resize_the_coefficients():
    with pm.Model() as model:
        X = pm.Data("X", np.ones((4, 3)))
        w = bs.SpikeAndSlab("w", 0.5, shape=X.shape[1])
    assert model.initial_point()["w"].shape == (3,)
    with model:
        pm.set_data({"X": np.ones((4, 5))})
    assert pm.draw(w, random_seed=1).shape == (5,)


def test_classes_and_printing():
    with pm.Model() as model:
        normal = bs.SpikeAndSlab("a", 0.5, 1.0, shape=2)
        laplace = bs.SpikeAndSlab("b", 0.5, 1.0, slab="laplace", shape=2)
    assert isinstance(normal.owner.op, NormalSpikeAndSlab.rv_type)
    assert isinstance(laplace.owner.op, LaplaceSpikeAndSlab.rv_type)
    text = model.str_repr()
    assert "NormalSpikeAndSlab(0.5, 1)" in text
    assert "LaplaceSpikeAndSlab(0.5, 1)" in text


def test_the_start_is_zero_where_zero_is_possible():
    with pm.Model() as model:
        bs.SpikeAndSlab("w", [0.0, 0.5, 1.0], 2.0)
    point = model.initial_point()
    np.testing.assert_allclose(point["w"], [0.0, 0.0, 2e-3])
    assert np.isfinite(model.compile_logp()(point))


def test_a_beta_distribution_becomes_a_variable():
    with pm.Model() as model:
        bs.SpikeAndSlab("w", pm.Beta.dist(2, 3), shape=3)
    assert [v.name for v in model.free_RVs] == ["w_inclusion", "w"]
    with pm.Model() as model:
        bs.SpikeAndSlab("w", pm.Beta("share", 2, 3), shape=3)
    assert [v.name for v in model.free_RVs] == ["share", "w"]
    # Density of the share given the coefficients: beta with the counts added.
    point = {"share_logodds__": np.array(0.4), "w": np.array([0.0, 1.0, -2.0])}
    q = 1 / (1 + np.exp(-0.4))
    expected = stats.beta(2, 3).logpdf(q) + np.log(q * (1 - q)) + np.log(1 - q) + 2 * np.log(q)
    expected += stats.norm.logpdf([1.0, -2.0]).sum()
    assert model.compile_logp()(point) == pytest.approx(expected)


@pytest.mark.parametrize("slab", SLABS)
def test_gradients_in_the_parameters_but_not_in_the_coefficients(slab):
    value = np.array([0.0, 0.4, -1.2])

    def logp(inclusion, scale):
        return pm.logp(SpikeAndSlab.dist(inclusion, scale, slab=slab), value).sum()

    verify_grad(logp, [np.array(0.3), np.array(1.4)], rng=np.random.default_rng(0))
    with pm.Model() as model:
        bs.SpikeAndSlab("w", 0.3, 1.4, slab=slab, shape=3)
    with pytest.raises(NullTypeGradError, match="atom at zero"):
        model.compile_dlogp()
    with pytest.raises(NullTypeGradError, match="atom at zero"):
        pytensor.grad(model.logp(), model.value_vars[0])


def test_nuts_named_by_hand_is_refused():
    with pm.Model():
        w = bs.SpikeAndSlab("w", 0.3, shape=3)
        with pytest.raises(NullTypeGradError, match="atom at zero"):
            pm.NUTS([w])


def test_messages():
    with pytest.raises(ValueError, match="`inclusion` must be between 0 and 1"):
        SpikeAndSlab.dist(1.2)
    with pytest.raises(ValueError, match="`slab_scale` must be positive"):
        SpikeAndSlab.dist(0.5, [1.0, 0.0])
    with pytest.raises(ValueError, match="`slab` must be one of"):
        SpikeAndSlab.dist(0.5, slab="student")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inclusion": [0.5, 0.5], "shape": 3}, r"`inclusion` \(2,\) and `shape` \(3,\)"),
        ({"slab_scale": [1.0, 1.0], "shape": (2, 3)}, r"`slab_scale` \(2,\) and `shape` \(2, 3\)"),
        ({"inclusion": [[0.5] * 3] * 2, "shape": 3}, r"`inclusion` \(2, 3\) and `shape` \(3,\)"),
        ({"inclusion": [0.5, 0.5], "shape": 1}, r"`inclusion` \(2,\) and `shape` \(1,\)"),
        ({"inclusion": [0.5, 0.5], "slab_scale": [1.0] * 3}, r"\(2,\) and `slab_scale` \(3,\)"),
        ({"inclusion": [0.5, 0.5], "dims": "term"}, r"`inclusion` \(2,\) and `shape` \(3,\)"),
    ],
)
def test_shapes_that_do_not_fit(arguments, message):
    with pm.Model(coords={"term": range(3)}), pytest.raises(ValueError, match=message):
        bs.SpikeAndSlab("w", **arguments)


def test_included_is_for_coefficients_with_an_atom():
    with pm.Model():
        w = bs.SpikeAndSlab("w", [0.5, 0.5, 0.5], shape=(2, 3))
        bs.distributions.included("some", w[0])
        for other in (pm.Normal("a"), pm.Normal("b", w), pt.zeros(3), np.zeros(3)):
            with pytest.raises(TypeError, match="'in_model' must have a SpikeAndSlab prior"):
                bs.distributions.included("in_model", other)
