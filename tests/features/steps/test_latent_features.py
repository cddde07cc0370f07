"""Features of a linear Gaussian model: their distribution, their step, where chains start."""

import warnings

import numpy as np
import pymc as pm
import pytest

from pymc.sampling.mcmc import assign_step_methods
from tools.buffets import (
    coarse_distance,
    counts,
    distance,
    histories,
    log_density_of_cells,
    posterior,
    posterior_of,
    two_features,
)

import bayesstruct as bs

from bayesstruct.features.kernels.indian_buffet import draw_by_dishes, log_buffet
from bayesstruct.features.kernels.latent_features import log_likelihood
from bayesstruct.features.priors.indian_buffet import FeatureLoadings, IndianBuffet
from bayesstruct.features.solvers.latent_features import latent_features as search
from bayesstruct.features.steps.latent_features import LatentFeatureGibbs, LatentFeatureSlice
from bayesstruct.features.steps.table import FeatureTable

X = np.array([[2.5], [-2.5]])


def simple_model(x=X, alpha=2.0, noise=0.5, scale=1.0, max_features=20, sampler="gibbs"):
    with pm.Model() as model:
        z = IndianBuffet(
            "feature", alpha, observations=len(x), max_features=max_features, sampler=sampler
        )
        loading = FeatureLoadings("loading", z, scale, variables=x.shape[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
            pm.Normal("x", z @ loading, noise, observed=x)
    return model


# --- distributions ---------------------------------------------------------------------------


@pytest.mark.parametrize("process", [(1.3, 1.0, 0.0), (0.8, 0.7, 0.4)])
def test_logp_is_that_of_the_class_and_orders_the_columns(process):
    alpha, c, discount = process
    rv = IndianBuffet.dist(
        alpha, observations=4, concentration=c, discount=discount, max_features=15
    )
    value = rv.type()
    logp = pm.compile(inputs=[value], outputs=pm.logp(rv, value))
    rng = np.random.default_rng(1)
    for _ in range(10):
        drawn = draw_by_dishes(rng, 4, *process)
        matrix = np.zeros((4, 15), np.int8)
        matrix[:, : drawn.shape[1]] = drawn
        assert np.isclose(logp(matrix), log_buffet(drawn, *process))
        if drawn.shape[1]:
            assert logp(np.ascontiguousarray(matrix[:, ::-1])) == -np.inf
    assert logp(np.full((4, 15), 2, np.int8)) == -np.inf


def test_draws_have_the_means_of_the_distribution():
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
        ({"max_features": 2.5}, "max_features"),
    ],
)
def test_parameters_out_of_range_are_refused(options, message):
    given = {"alpha": 1.0, "observations": 5, **options}
    with pytest.raises(ValueError, match=message):
        IndianBuffet.dist(given.pop("alpha"), **given)


def test_a_value_of_another_shape_has_no_density():
    with pytest.raises((ValueError, AssertionError), match="shape"):
        pm.logp(
            IndianBuffet.dist(1.0, observations=3, max_features=4), np.zeros((2, 4), int)
        ).eval()


def test_a_draw_that_does_not_fit_is_an_error():
    with pytest.raises(ValueError, match="max_features"):
        pm.draw(IndianBuffet.dist(8.0, observations=20, max_features=3), random_seed=3)


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


@pytest.mark.statistical
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
        z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
        loading = FeatureLoadings("loading", z, 1.0, variables=1)
        pm.Laplace("x", z @ loading, 1.0, observed=X)
    with model, pytest.raises(ValueError, match="not an observed Normal"):
        LatentFeatureGibbs(model.value_vars)
    with simple_model() as model:
        pm.Potential("more", -model["feature"].sum().astype("float64"))
        with pytest.raises(ValueError, match="'more'"):
            LatentFeatureGibbs(model.value_vars)


def test_the_step_refuses_hyperparameters_that_depend_on_the_features():
    with pm.Model() as model:
        z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
        loading = FeatureLoadings("loading", z, 1.0 + z.sum(), variables=1)
        pm.Normal("x", z @ loading, 1.0, observed=X)
        with pytest.raises(ValueError, match="hyperparameters depend on 'feature'"):
            LatentFeatureGibbs(model.value_vars)


def test_slice_draws_have_no_exchanges_and_take_small_discounts_only():
    with simple_model(sampler="slice") as model, pytest.raises(TypeError, match="exchanges"):
        LatentFeatureSlice(model.value_vars, exchanges=7)
    for random in (False, True):
        with pm.Model() as model:
            share = pm.Uniform("share", 0.5, 0.9) if random else 0.5
            z = IndianBuffet(
                "feature", 1.0, observations=2, discount=share, max_features=20, sampler="slice"
            )
            loading = FeatureLoadings("loading", z, 1.0, variables=1)
            pm.Normal("x", z @ loading, 1.0, observed=X)
            with pytest.raises(ValueError, match='sampler="gibbs"'):
                step = LatentFeatureSlice([z, loading])
                point, _ = step.step(model.initial_point())
                step.step(point)


@pytest.mark.parametrize("warm_up", [0, 1, 3, 30])
def test_features_stay_in_the_warm_up_only(warm_up):
    with simple_model() as model:
        step = LatentFeatureGibbs(model.value_vars)
    step.setup_chain(np.random.default_rng(1), warm_up, 10)
    step.step(model.initial_point())
    assert step.waits == max(min(10, warm_up - 1), 0)


def test_a_chain_without_maximum_stops_with_the_remedy():
    x, _ = two_features()
    model = simple_model(x, noise=0.01, max_features=2)
    with model:
        step = LatentFeatureGibbs(model.value_vars, rng=np.random.default_rng(6))
    step.setup_chain(np.random.default_rng(6), 0, 1)
    point = model.initial_point()
    with pytest.raises(ValueError, match="max_features"):
        for _ in range(20):
            point, _ = step.step(point)


def test_the_search_finds_features_that_are_far_apart():
    x, z = two_features()
    found = search(x, random_seed=7)
    assert found.feature.shape[1] == 2
    for column in z.T:
        assert any(np.array_equal(column, other == 1) for other in found.feature.T)
    assert found.objective >= log_likelihood(z, x, found.noise, found.scale) + log_buffet(z, 1.0)


# --- missing values ---------------------------------------------------------------------------

GAPS = np.array([[2.0, np.nan], [1.8, 1.6], [np.nan, 1.9]])
GIVEN = {"alpha": 0.7, "noise": 0.4, "scale": 1.2}


class Averaged(FeatureTable):
    """Wrong: missing values are set to their mean, not drawn around it."""

    def draw_missing(self, rng, point, mean, noise):
        super().draw_missing(rng, point, mean, 0.0)


def chain_with_gaps(draws, *, step=LatentFeatureGibbs, kind=FeatureTable):
    model = simple_model(np.ma.masked_invalid(GAPS), **GIVEN)
    with model:
        step = step(model.value_vars, rng=np.random.default_rng(11))
    step.table.__class__ = kind
    step.setup_chain(np.random.default_rng(11), 0, 1)
    point, seen, values = model.initial_point(), [], []
    for _ in range(draws):
        point, _ = step.step(point)
        seen.append(counts(point["feature"][:, point["feature"].any(axis=0)]))
        values.append(point["x_unobserved"])
    return seen, np.array(values)


def exact_with_gaps(most=5):
    """Posterior of the classes (all but .001 of it), and means of the missing values."""
    alpha, noise, scale = GIVEN.values()
    exact = posterior_of(lambda m: log_density_of_cells(m, GAPS, noise, scale), 3, alpha, most)
    means = np.zeros(2)
    for key, probability in exact.items():
        z = np.repeat(np.array(histories(3)), key, axis=0).T
        covariance = noise**2 * np.eye(3) + scale**2 * z @ z.T
        for at, (i, j) in enumerate(zip(*np.nonzero(np.isnan(GAPS)), strict=True)):
            seen = ~np.isnan(GAPS[:, j])
            weights = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen, i])
            means[at] += probability * weights @ GAPS[seen, j]
    return exact, means


@pytest.mark.calibration
def test_features_and_missing_values_have_their_exact_posterior(full):
    exact, means = exact_with_gaps()
    # The thirty most probable classes have .91 of the posterior, the others count as one.
    seen, values = chain_with_gaps(300_000 if full else 3_000)
    assert coarse_distance(seen, exact, 30) < (0.012 if full else 0.12)
    # Standard deviations of about .9, and some ten draws are worth one.
    assert abs(values.mean(axis=0) - means).max() < (0.03 if full else 0.25)
    broken, _ = chain_with_gaps(3_000, kind=Averaged)
    assert coarse_distance(broken, exact, 30) > 0.14


def test_missing_values_of_another_distribution_are_refused():
    observed = np.ma.masked_invalid(GAPS)
    with simple_model(observed, **GIVEN) as model:
        pm.Normal("more", model["x_unobserved"].sum(), 1.0)
        with pytest.raises(ValueError, match="x_unobserved"):
            LatentFeatureGibbs([model[v] for v in ("feature", "loading", "x_unobserved")])
    with simple_model(observed, **GIVEN) as model, pytest.raises(ValueError, match="x_unobserved"):
        LatentFeatureGibbs([model["feature"], model["loading"]])


def test_the_search_fills_missing_values_with_what_the_features_say():
    x, _ = two_features()
    gaps = np.array(x)
    gaps[3, 1], gaps[10, 2] = np.nan, np.nan
    found = search(gaps, random_seed=12)
    assert found.feature.shape[1] == 2
    assert np.array_equal(found.completed[~np.isnan(gaps)], x[~np.isnan(gaps)])
    assert abs(found.completed - x).max() < 1.0
    gaps[:, 4] = np.nan
    with pytest.raises(ValueError, match=r"\[4\] have no observed value"):
        search(gaps)


# --- choice of the step ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampler", "kind"),
    [
        ("gibbs", LatentFeatureGibbs),
        ("accelerated", LatentFeatureGibbs),
        ("slice", LatentFeatureSlice),
    ],
)
def test_the_sampler_of_the_features_chooses_the_step(sampler, kind):
    with simple_model(np.ma.masked_invalid(GAPS), sampler=sampler) as model:
        _, assigned = assign_step_methods(model)
    assert {v.name for v in assigned[kind]} == {"feature", "loading", "x_unobserved"}
    assert len(assigned) == 1


def test_another_sampler_is_refused():
    with pytest.raises(
        ValueError, match="`sampler` must be one of 'gibbs', 'accelerated', 'slice'"
    ):
        IndianBuffet.dist(1.0, observations=3, sampler="nuts")


@pytest.mark.statistical
def test_the_slice_step_draws_features_and_missing_values_from_their_posterior():
    exact, means = exact_with_gaps()
    seen, values = chain_with_gaps(3_000, step=LatentFeatureSlice)
    assert coarse_distance(seen, exact, 30) < 0.12
    assert abs(values.mean(axis=0) - means).max() < 0.25


# --- tempering -------------------------------------------------------------------------------


class NeverCold(LatentFeatureGibbs):
    """Wrong: the likelihood keeps the power of the first call."""

    def _heat(self):
        return self.tempering


def tempered_chain(kind, draws, tempering=6.0):
    with simple_model(alpha=1.0) as model:
        step = kind(model.value_vars, tempering=tempering, rng=np.random.default_rng(13))
    step.setup_chain(np.random.default_rng(13), 40, draws)
    point, seen = model.initial_point(), []
    for t in range(40 + draws):
        point, _ = step.step(point)
        if t >= 40:
            seen.append(counts(point["feature"]))
    return seen


@pytest.mark.statistical
def test_a_chain_that_was_tempered_has_the_posterior_afterwards():
    exact = posterior(X, 1.0, 0.5, 1.0, most=12)
    assert distance(tempered_chain(LatentFeatureGibbs, 3_000), exact) < 0.1
    # Of the power 1 / 6, which is a noise that is larger by the root of 6.
    hot = posterior(X, 1.0, 0.5 * np.sqrt(6.0), 1.0, most=12)
    broken = tempered_chain(NeverCold, 3_000)
    assert distance(broken, exact) > 0.3 and distance(broken, hot) < 0.1


def test_the_power_of_the_likelihood_grows_to_one_in_half_of_the_warm_up():
    with simple_model() as model:
        step = LatentFeatureGibbs(model.value_vars, tempering=16.0)
    step.setup_chain(np.random.default_rng(1), 8, 10)
    point, heat = model.initial_point(), []
    for _ in range(10):
        heat.append(step._heat())
        point, _ = step.step(point)
    assert np.allclose(heat, [16, 8, 4, 2, 1, 1, 1, 1, 1, 1])


@pytest.mark.parametrize(
    "options",
    [
        {"tempering": 0.5},
        {"exchanges": -1},
    ],
)
def test_options_of_the_step_out_of_range_are_refused(options):
    with (
        simple_model() as model,
        pytest.raises((TypeError, ValueError), match=f"`{next(iter(options))}`"),
    ):
        LatentFeatureGibbs(model.value_vars, **options)


@pytest.mark.chain
@pytest.mark.parametrize("sampler", ["gibbs", "slice"])
def test_missing_values_are_drawn_with_the_features_outside_of_a_context(sampler):
    x = np.random.default_rng(0).normal(size=(12, 4))
    x[0, 0] = np.nan
    model = bs.models.latent_features(x, sampler=sampler)
    _, methods = pm.sampling.mcmc.assign_step_methods(model)
    [drawn] = [values for step, values in methods.items() if "LatentFeature" in step.__name__]
    assert {v.name for v in drawn} == {"feature", "loading", "x_unobserved"}
    pm.sampling.mcmc.instantiate_steppers(model, [], methods)
