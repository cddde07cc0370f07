"""Features of a linear Gaussian model: their distribution, their step, where chains start."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from bayesstruct.data import TableError
from bayesstruct.distributions.indian_buffet import FeatureLoadings, IndianBuffet
from bayesstruct.kernels.indian_buffet import draw_by_dishes, log_buffet
from bayesstruct.kernels.latent_features import log_likelihood
from bayesstruct.models.latent_features import latent_features
from bayesstruct.solvers.latent_features import latent_features as search
from bayesstruct.steps.latent_features import LatentFeatureGibbs

X = np.array([[2.5], [-2.5]])


def simple_model(x=X, alpha=2.0, noise=0.5, scale=1.0, room=20):
    with pm.Model() as model:
        z = IndianBuffet("feature", alpha, observations=len(x), truncation=room)
        loading = FeatureLoadings("loading", z, scale, variables=x.shape[1])
        pm.Normal("x", z @ loading, noise, observed=x)
    return model


def table(n=60, seed=0):
    """Two features with loadings far apart."""
    rng = np.random.default_rng(seed)
    z = rng.random((n, 2)) < 0.5
    loading = np.array([[3.0, 0, 3, 0, 3], [0, 4, 4, 0, 0]])
    return z @ loading + 0.3 * rng.standard_normal((n, 5)), z


# --- distributions ---------------------------------------------------------------------------


@pytest.mark.parametrize("law", [(1.3, 1.0, 0.0), (0.8, 0.7, 0.4)])
def test_logp_is_that_of_the_class_and_orders_the_columns(law):
    alpha, c, discount = law
    rv = IndianBuffet.dist(alpha, observations=4, concentration=c, discount=discount, truncation=15)
    value = rv.type()
    logp = pm.compile(inputs=[value], outputs=pm.logp(rv, value))
    rng = np.random.default_rng(1)
    for _ in range(10):
        drawn = draw_by_dishes(rng, 4, *law)
        matrix = np.zeros((4, 15), np.int8)
        matrix[:, : drawn.shape[1]] = drawn
        assert np.isclose(logp(matrix), log_buffet(drawn, *law))
        if drawn.shape[1]:
            assert logp(np.ascontiguousarray(matrix[:, ::-1])) == -np.inf
    assert logp(np.full((4, 15), 2, np.int8)) == -np.inf


def test_draws_have_the_means_of_the_law():
    draws = pm.draw(IndianBuffet.dist(1.3, observations=4), 3000, random_seed=2)
    # Both are Poisson.
    rows, columns = draws.sum(axis=2), draws.any(axis=1).sum(axis=1)
    assert (abs(rows.mean(axis=0) - 1.3) < 4.5 * np.sqrt(1.3 / 3000)).all()
    mean = 1.3 * (1 + 1 / 2 + 1 / 3 + 1 / 4)
    assert abs(columns.mean() - mean) < 4.5 * np.sqrt(mean / 3000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"discount": 1.0}, "discount"),
        ({"concentration": -0.5}, "concentration"),
        ({"observations": 0}, "observations"),
        ({"truncation": 2.5}, "truncation"),
    ],
)
def test_parameters_out_of_range_are_refused(options, message):
    given = {"alpha": 1.0, "observations": 5, **options}
    with pytest.raises(ValueError, match=message):
        IndianBuffet.dist(given.pop("alpha"), **given)


def test_a_value_of_another_shape_has_no_density():
    with pytest.raises((ValueError, AssertionError), match="shape"):
        pm.logp(IndianBuffet.dist(1.0, observations=3, truncation=4), np.zeros((2, 4), int)).eval()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0}, "`alpha`"),
        ({"noise": "1"}, "`noise`"),
        ({"loading_scale": -1.0}, "`loading_scale`"),
        ({"discount": 1.0}, "`discount`"),
        ({"concentration": -0.1}, "`concentration`"),
        ({"max_features": 2.5}, "`max_features`"),
        ({"baseline": [1.0, 2.0]}, "each of the 5 columns"),
    ],
)
def test_options_of_the_model_out_of_range_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        latent_features(table()[0], **options)


def test_missing_cells_are_refused_by_column():
    frame = pd.DataFrame(table()[0], columns=list("abcde"))
    frame.iloc[3, 1] = np.nan
    with pytest.raises(TableError, match="'b': cells are missing"):
        latent_features(frame)
    with pytest.raises(ValueError, match="missing cells"):
        search(frame)


def test_a_draw_that_does_not_fit_is_an_error():
    with pytest.raises(ValueError, match="truncation"):
        pm.draw(IndianBuffet.dist(8.0, observations=20, truncation=3), random_seed=3)


def test_loadings_of_features_that_no_row_has_are_zero():
    feature = np.array([[1, 1, 0], [0, 1, 0]], np.int8)
    rv = FeatureLoadings.dist(feature, 2.0, variables=2)
    draw = pm.draw(rv, random_seed=4)
    assert (draw[:2] != 0).all() and (draw[2] == 0).all()
    expected = (-0.5 * (draw[:2] / 2) ** 2 - np.log(2) - 0.5 * np.log(2 * np.pi)).sum()
    assert np.isclose(pm.logp(rv, draw).eval(), expected)
    draw[2, 0] = 1.0
    assert pm.logp(rv, draw).eval() == -np.inf


# --- step ------------------------------------------------------------------------------------


def test_the_step_draws_the_number_of_features_from_its_posterior():
    model = simple_model()
    with model:
        step = LatentFeatureGibbs(model.value_vars, rng=np.random.default_rng(5))
    step.setup_chain(np.random.default_rng(5), 0, 1)
    point, number, logs = model.initial_point(), [], []
    for _ in range(4000):
        point, [stats] = step.step(point)
        number.append(stats["n_features"])
        logs.append(log_likelihood(point["feature"], X, 0.5, 1.0))
    # 4.783 by enumeration (tests/kernels/test_indian_buffet.py has all classes).
    blocks = np.reshape(number, (40, 100)).mean(axis=1)
    assert abs(blocks.mean() - 4.783) < 4 * blocks.std() / np.sqrt(40)
    assert np.isfinite(logs).all()
    used = point["feature"].any(axis=0)
    assert (point["loading"][used] != 0).all() and (point["loading"][~used] == 0).all()
    assert np.isfinite(model.compile_logp()(point))


def test_the_step_refuses_what_it_cannot_draw_exactly():
    with pm.Model() as model:
        z = IndianBuffet("feature", 1.0, observations=2, truncation=5)
        loading = FeatureLoadings("loading", z, 1.0, variables=1)
        pm.Laplace("x", z @ loading, 1.0, observed=X)
    with model, pytest.raises(ValueError, match="not an observed Normal"):
        LatentFeatureGibbs(model.value_vars)
    with simple_model() as model:
        pm.Potential("more", -model["feature"].sum().astype("float64"))
        with pytest.raises(ValueError, match="'more'"):
            LatentFeatureGibbs(model.value_vars)


def test_a_chain_without_room_stops_with_the_remedy():
    x, _ = table()
    model = simple_model(x, noise=0.01, room=2)
    with model:
        step = LatentFeatureGibbs(model.value_vars, rng=np.random.default_rng(6))
    step.setup_chain(np.random.default_rng(6), 0, 1)
    point = model.initial_point()
    with pytest.raises(ValueError, match="truncation"):
        for _ in range(20):
            point, _ = step.step(point)


def test_the_search_finds_features_that_are_far_apart():
    x, z = table()
    found = search(x, random_seed=7)
    assert found.feature.shape[1] == 2
    for column in z.T:
        assert any(np.array_equal(column, other == 1) for other in found.feature.T)
    assert found.objective >= log_likelihood(z, x, found.noise, found.scale) + log_buffet(z, 1.0)


@pytest.mark.compiled
def test_the_model_samples_predicts_and_has_pointwise_densities():
    x, _ = table()
    with latent_features(x, max_features=8) as model:
        idata = pm.sample(
            150, tune=100, chains=2, cores=1, random_seed=8, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, random_seed=9, progressbar=False
        )
    posterior = idata["posterior"]
    assert posterior["feature"].dims == ("chain", "draw", "observation", "latent")
    number = posterior["n_features"].values
    assert np.bincount(number.ravel()).argmax() == 2
    assert abs(posterior["noise"].values.mean() - 0.3) < 0.05
    assert idata["log_likelihood"]["x"].shape == (2, 150, 60, 5)
    replicated = idata["posterior_predictive"]["x"].values.mean(axis=(0, 1))
    assert np.sqrt(((replicated - x) ** 2).mean()) < 0.4
    assert model.named_vars.keys() >= {"alpha", "noise", "loading_scale", "loading"}
