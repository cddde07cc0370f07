"""The regularised horseshoe: its hierarchy, its scale and its draws."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats

import bayesstruct as bs


@pytest.mark.statistical
def test_hierarchy():
    with pm.Model(coords={"term": list("abcdefgh")}) as model:
        sigma = pm.HalfNormal("sigma", 1)
        w = bs.RegularizedHorseshoe("w", 2, n=100, sigma=sigma, dims="term")
    assert [v.name for v in model.free_RVs] == ["sigma", "w_tau", "w_lambda", "w_c2", "w_z"]
    assert model["w"] is w
    assert model.named_vars_to_dims["w"] == ("term",)
    assert model.named_vars_to_dims["w_lambda"] == ("term",)
    # The scale of tau: 2 / 6 * sigma / 10.
    names = ["w_tau", "w_lambda", "w_c2", "w_z", "w", "sigma"]
    draws = dict(zip(names, pm.draw([model[n] for n in names], 10_000, random_seed=1), strict=True))
    tau = draws["w_tau"] / (draws["sigma"] / 30)
    assert stats.kstest(tau, stats.halfcauchy.cdf).pvalue > 1e-3
    assert stats.kstest(draws["w_lambda"][:, 0], stats.halfcauchy.cdf).pvalue > 1e-3
    assert stats.kstest(draws["w_c2"], stats.invgamma(2, scale=8).cdf).pvalue > 1e-3
    # Equation 2.8 of Piironen and Vehtari.
    tau, c2 = draws["w_tau"][:, None], draws["w_c2"][:, None]
    squared = c2 * draws["w_lambda"] ** 2 / (c2 + tau**2 * draws["w_lambda"] ** 2)
    np.testing.assert_allclose(draws["w"], draws["w_z"] * tau * np.sqrt(squared), rtol=1e-10)


def test_expected_number():
    # Equations 3.6 and 3.11: given tau0, the mean effective number of coefficients is p0.
    p, n, p0, sigma = 50, 200, 4, 1.7
    with pm.Model() as model:
        bs.RegularizedHorseshoe("w", p0, n=n, sigma=sigma, shape=p)
    local = pm.draw(model["w_lambda"], 4000, random_seed=2)
    tau0 = p0 / (p - p0) * sigma / np.sqrt(n)
    inside = 1 - 1 / (1 + n * tau0**2 * local**2 / sigma**2)
    effective = inside.sum(1)
    assert abs(effective.mean() - p0) < 4 * effective.std() / np.sqrt(4000)


@pytest.mark.statistical
def test_far_coefficients_are_those_of_the_slab():
    with pm.Model():
        w = bs.RegularizedHorseshoe("w", 9.99, n=1, shape=10, slab_scale=1.5, slab_df=4)
    draws = pm.draw(w, 10_000, random_seed=3)
    # tau0 is about a thousand: nearly everything is the slab.
    observed = np.quantile(np.abs(draws[:, 0]), [0.5, 0.9])
    expected = 1.5 * stats.t(4).ppf([0.75, 0.95])
    np.testing.assert_allclose(observed, expected, rtol=0.05)  # over four standard errors


def test_options_and_resized_data():
    with pm.Model() as model:
        X = pm.Data("X", np.ones((20, 3)))
        bs.RegularizedHorseshoe(
            "w", 1, n=X.shape[0], shape=X.shape[1], tau_df=3, local_df=3, slab_df=2.0
        )
    point = model.initial_point()
    assert np.isfinite(model.compile_logp()(point))
    assert np.isfinite(model.compile_dlogp()(point)).all()
    with model:
        pm.set_data({"X": np.ones((20, 5))})
    assert pm.draw(model["w"], random_seed=1).shape == (5,)


@pytest.mark.chain
@pytest.mark.compiled
def test_sparse_regression():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 12))
    y = 2.0 * X[:, 0] - 1.5 * X[:, 3] + rng.normal(size=60)
    with pm.Model(coords={"term": range(12)}):
        w = bs.RegularizedHorseshoe("w", 2, n=60, dims="term")
        pm.Normal("y", X @ w, 1.0, observed=y)
        idata = pm.sample(
            300,
            tune=500,
            chains=1,
            random_seed=1,
            progressbar=False,
            nuts_sampler="pymc",
            target_accept=0.95,
            compute_convergence_checks=False,
        )
    size = np.abs(idata["posterior"]["w"].median(("chain", "draw")).values)
    assert set(np.argsort(size)[-2:]) == {0, 3}
    assert np.sort(size)[-3] < 0.2


def test_messages():
    with pm.Model(coords={"term": range(3)}):
        with pytest.raises(ValueError, match="`expected_nonzero` must be above 0 and below"):
            bs.RegularizedHorseshoe("w", 3, n=10, dims="term")
        with pytest.raises(ValueError, match="give `dims` or `shape`"):
            bs.RegularizedHorseshoe("w", 1, n=10)
        with pytest.raises(ValueError, match="dimension 'row' of 'w' is not"):
            bs.RegularizedHorseshoe("w", 1, n=10, dims="row")
        with pytest.raises(ValueError, match="`n` must be above 0"):
            bs.RegularizedHorseshoe("w", 1, n=0, dims="term")
        with pytest.raises(ValueError, match="`slab_scale` must be positive"):
            bs.RegularizedHorseshoe("w", 1, n=9, slab_scale=0.0, dims="term")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sigma": -1.0}, ValueError, "`sigma` must be positive and finite, it is -1"),
        ({"sigma": pt.constant(-1.0)}, ValueError, "`sigma` must be positive and finite"),
        ({"slab_scale": "a"}, ValueError, "`slab_scale` must be numbers, not text"),
        ({"slab_df": np.nan}, ValueError, "`slab_df` must be positive and finite"),
        ({"local_df": -3}, ValueError, "`local_df` must be positive and finite, it is -3"),
        ({"tau_df": 0}, ValueError, "`tau_df` must be positive and finite"),
        ({"n": np.inf}, ValueError, "`n` must be a finite number"),
        ({"expected_nonzero": "a"}, TypeError, "`expected_nonzero` must be one number, not 'a'"),
    ],
)
def test_constants_are_checked(arguments, error, message):
    with pm.Model() as model, pytest.raises(error, match=message):
        bs.RegularizedHorseshoe("w", **{"expected_nonzero": 1, "n": 9, "shape": 3} | arguments)
    assert not model.basic_RVs


def test_one_scale_of_the_slab_for_each_coefficient():
    with pm.Model() as model:
        bs.RegularizedHorseshoe("w", 1, n=9, sigma=np.float32(2.0), slab_scale=[1, 2, 3], shape=3)
    assert model.initial_point()["w_c2_log__"].shape == (3,)
