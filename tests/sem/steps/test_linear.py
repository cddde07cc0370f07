"""The step of linear structural equations: recognised models, exact posteriors, missing values, chains."""

import numpy as np
import pymc as pm
import pytest

import bayesstruct as bs

from bayesstruct.models import bayesian_network, linear_sem
from bayesstruct.sem.exact.posterior import linear_sem as exact
from bayesstruct.sem.kernels.errors import BASE, LOCATIONS
from bayesstruct.sem.recognition import equations_of
from bayesstruct.sem.steps.linear import LinearSemMCMC


def table(n=40, seed=2, d=3):
    rng = np.random.default_rng(seed)
    x = rng.laplace(size=(n, d))
    for i in range(1, d):
        x[:, i] += 0.6 * x[:, i - 1]
    return x


def draws(model, number, seed=0, burn=20):
    """Points of a chain of the step."""
    step = LinearSemMCMC(model.value_vars, model=model, rng=seed)
    point, out = model.initial_point(), []
    for k in range(number + burn):
        point, _ = step.step(point)
        if k >= burn:
            out.append(point)
    return out


OPTIONS = [
    {"noise": "laplace"},
    pytest.param({"noise": "mixture", "prior": "laplace"}, marks=pytest.mark.slow),
    {"noise": "student", "variances": "equal"},
    pytest.param(
        {"variances": "known", "known_variances": [1.0, 1.3, 1.3], "prior": "horseshoe"},
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.statistical
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values()))[:24])
def test_arcs_and_weights_are_those_of_all_graphs(options):
    x = table()
    found = draws(linear_sem(x, **options), 150)
    right = exact(x, **options, draws=3000)
    share = np.mean([point["dag"] for point in found], axis=0)
    np.testing.assert_allclose(
        share, right.arc_probabilities, atol=0.15
    )  # some three standard errors of 150 correlated draws
    mean = np.mean([point["weight"] for point in found], axis=0)
    target, source = np.nonzero(~np.eye(3, dtype=bool))
    np.testing.assert_allclose(mean, right.weight_means.to_numpy()[source, target], atol=0.15)


@pytest.mark.statistical
def test_columns_with_normal_noise_are_those_of_all_graphs():
    x = table(60)
    x[:, 2] = np.random.default_rng(0).exponential(size=60) - x[:, 1]
    model = linear_sem(x, noise="mixture")
    found = draws(model, 200)
    right = exact(x, noise="mixture", draws=3000)
    for name, expected in (
        ("dag", right.arc_probabilities),
        ("normal_noise", right.normal_probabilities),
        ("normal_share", right.normal_share),
    ):
        share = np.mean([point[name] for point in found], axis=0)
        np.testing.assert_allclose(share, expected, atol=0.14)  # of 200 correlated draws
    normal = np.array([point["normal_noise"] for point in found]) == 1
    weights = np.array([point["mixture_weight"] for point in found])[normal]
    assert len(weights) > 60
    error = np.sqrt(BASE * (1 - BASE) / 25 / len(weights))  # independent draws of the prior
    assert (np.abs(weights.mean(axis=0) - BASE) < 5 * error).all()


@pytest.mark.statistical
def test_the_step_says_how_probable_another_kind_of_noise_is():
    """Averages over draws of kinds of noise, and of their probabilities given the graph, are the same."""
    x = table(60)
    x[:, 2] = np.random.default_rng(0).exponential(size=60) - x[:, 1]
    model = linear_sem(x, noise="mixture")
    step = LinearSemMCMC(model.value_vars, model=model, rng=1)
    point, found, told = model.initial_point(), [], []
    for _ in range(300):
        point, [stats] = step.step(point)
        found.append(np.array(point["normal_noise"]))
        families = [
            step.chain.chain.scores.family(i, np.flatnonzero(column)).at(
                float(point["normal_share"])
            )
            for i, column in enumerate(point["dag"].T)
        ]
        shares = [own.other_kind(normal=False) for own in families]
        told.append(shares)
        other = np.where(found[-1] == 1, 1.0 - np.array(shares), shares)
        np.testing.assert_allclose(stats["normal_change"], other.sum())
    # Three standard errors of 300 draws, of which about a half are independent.
    share = np.mean(found, axis=0)
    assert share[2] < 0.2 and share[:2].max() > 0.3
    np.testing.assert_allclose(share, np.mean(told, axis=0), atol=0.12)


@pytest.mark.statistical
def test_gaps_do_not_hide_which_columns_have_normal_noise():
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.normal(size=150), rng.exponential(size=150)])
    x[:, 1] += x[:, 0]
    x[:3, 0] = np.nan
    found = draws(linear_sem(x, noise="mixture"), 60)
    share = np.mean([point["normal_noise"] for point in found], axis=0)
    assert share[0] > 0.5 and share[1] < 0.1
    assert np.std([point["x_missing"] for point in found], axis=0).min() > 0.1


@pytest.mark.statistical
def test_normal_noise_is_a_bayesian_network():
    x = table(60)
    found = draws(linear_sem(x), 250)
    share = np.mean([point["dag"] for point in found], axis=0)
    right = bs.exact.dag_posterior(x, score="bge").arc_probabilities
    np.testing.assert_allclose(share, right, atol=0.12)  # 250 correlated draws


@pytest.mark.statistical
def test_missing_values_are_drawn_about_what_explains_them():
    x = table(200)
    complete = x.copy()
    gone = np.zeros(x.shape, bool)
    gone[:40, 1] = True
    x[gone] = np.nan
    model = linear_sem(x, noise="laplace")
    found = draws(model, 60)
    mean = np.mean([point["x_missing"] for point in found], axis=0)
    assert np.corrcoef(mean, complete[gone])[0, 1] > 0.5
    assert np.std([point["x_missing"] for point in found], axis=0).min() > 0.1
    np.testing.assert_array_equal(np.isnan(model["x"].tag.observations.data), gone)


def test_settings_are_read_from_a_model():
    model = linear_sem(
        table(),
        noise="student",
        variances="known",
        known_variances=[1, 2, 3],
        prior="horseshoe",
        scale=0.7,
    )
    found = equations_of(model, model["dag"])
    assert found.settings[:3] == (2, 2, 2)
    np.testing.assert_allclose(found.settings[3:7], [1.0, 0.7, 1.5, 0.25])
    np.testing.assert_allclose(found.relative, [0.5, 1.0, 1.5])


def test_the_prior_probability_of_normal_noise_is_read_from_a_model():
    for given, wanted in ((None, 0.5), (0.2, 0.2), (0.0, 0.0)):
        model = linear_sem(table(), noise="mixture", normal_probability=given)
        settings = equations_of(model, model["dag"]).settings
        assert settings.normal_probability == pytest.approx(wanted)
        assert ("normal_noise" in model.named_vars) == (wanted > 0)
        assert ("normal_share" in model.named_vars) == settings.share_is_random == (given is None)


def own_model(normal_prior, meaning, alpha=24.0):
    """Equations with normal noise that are written by hand."""
    with pm.Model() as model:
        dag = bs.DAG("dag", list("abc"))
        scale = bs.distributions.NoiseScales("scale", dag, 5.0, 0.5)
        weight = bs.distributions.ArcSlabs("weight", dag, np.sqrt(2.0) * scale[[0, 0, 1, 1, 2, 2]])
        intercept = bs.distributions.Intercepts("intercept", scale**2, 1.0)
        normal = normal_prior()
        concentration = alpha(model) if callable(alpha) else alpha
        shape = pm.Dirichlet(
            "weights", concentration * np.tile(BASE, (3, 1)), shape=(3, 6), default_transform=None
        )
        alone = meaning(normal)[:, None]
        shape = pm.math.concatenate([shape * (1 - alone), alone], axis=1)
        matrix = bs.distributions.coefficient_matrix(weight, 3)
        law = bs.distributions.noise_law("mixture", normal=True)
        bs.distributions.LinearSem(
            "x", intercept, matrix, scale, shape, noise=law, observed=table()
        )
    return model


def share(alpha=1.0, beta=1.0, **options):
    return pm.Beta("share", alpha, beta, **{"default_transform": None} | options)


def test_the_beta_prior_of_the_share_of_normal_noise_is_read_from_a_model():
    model = own_model(lambda: pm.Bernoulli("normal", share(2.0, 6.0), shape=3), lambda own: own)
    settings = equations_of(model, model["dag"]).settings
    assert (settings.share_alpha, settings.share_beta) == (2.0, 6.0)
    assert settings.normal_probability == 0.25
    step = LinearSemMCMC(model.value_vars, model=model, rng=0)
    assert {var.name for var in step.vars} == {var.name for var in model.value_vars}


@pytest.mark.parametrize(
    ("prior", "alpha", "message"),
    [
        (
            lambda: pm.Bernoulli("normal", 1 - share(), shape=3),
            24.0,
            "'share' is not the prior prob",
        ),
        (
            lambda: pm.Bernoulli("normal", share() ** 2, shape=3),
            24.0,
            "'share' is not the prior prob",
        ),
        (lambda: pm.Bernoulli("normal", share(shape=3)), 24.0, "'share' is not one number for all"),
        (
            lambda: pm.Bernoulli(
                "normal", share(default_transform=pm.distributions.transforms.logodds), shape=3
            ),
            24.0,
            "'share' has a transform",
        ),
        (
            lambda: pm.Bernoulli("normal", share(), shape=3),
            lambda model: 48.0 * model["share"],
            "the prior weights of 'weights' are not a number times",
        ),
        (
            lambda: pm.Bernoulli("normal", share(pm.Beta("above", 1, 1)), shape=3),
            24.0,
            "depends on 'above'",
        ),
    ],
)
def test_a_share_of_normal_noise_with_another_meaning_is_refused(prior, alpha, message):
    model = own_model(prior, lambda own: own, alpha)
    with pytest.raises(ValueError, match=message):
        LinearSemMCMC(model.value_vars, model=model)


def test_a_share_of_normal_noise_on_which_something_else_depends_is_refused():
    with linear_sem(table(), noise="mixture") as model:
        pm.Normal("other", model["normal_share"], observed=0.3)
    with pytest.raises(ValueError, match=r"'other' depends on 'normal_share'"):
        LinearSemMCMC(model.value_vars, model=model)


@pytest.mark.parametrize(
    ("normal", "meaning", "message"),
    [
        (
            {"p": np.array([0.5, 0.4, 0.5]), "shape": 3},
            lambda own: own,
            "does not have the same constants everywhere",
        ),
        ({"p": 0.5, "shape": 3}, lambda own: 1 - own, "not linked as in linear structural"),
        ({"p": 0.5, "shape": 3}, lambda own: own[::-1], "not linked as in linear structural"),
        ({"p": 0.5, "shape": 1}, lambda own: pm.math.stack([own[0]] * 3), "one value for each"),
    ],
)
def test_other_priors_and_meanings_of_normal_noise_are_refused(normal, meaning, message):
    model = own_model(lambda: pm.Bernoulli("normal", **normal), meaning)
    with pytest.raises(ValueError, match=message):
        LinearSemMCMC(model.value_vars, model=model)


def test_normal_noise_on_which_something_else_depends_is_refused():
    with linear_sem(table(), noise="mixture") as model:
        pm.Potential("many", model["normal_noise"].sum())
    with pytest.raises(ValueError, match=r"depends on 'normal_noise'"):
        LinearSemMCMC(model.value_vars, model=model)


def test_the_step_is_chosen_unasked():
    from pymc.sampling.mcmc import assign_step_methods

    for data in (table(), np.where(np.arange(120).reshape(40, 3) == 4, np.nan, table())):
        model = linear_sem(data, noise="laplace")
        _, chosen = assign_step_methods(model)  # outside of the context of the model
        assert list(chosen) == [LinearSemMCMC]
        assert len(chosen[LinearSemMCMC]) == len(model.free_RVs)
    with bayesian_network(table()) as model:
        _, chosen = assign_step_methods(model)
    assert LinearSemMCMC not in chosen


def _with(model, change):
    with model:
        change(model)
    return model


def _slope(model):
    pm.Normal("other", model["weight"][0], observed=1.0)


def _count(model):
    pm.Potential("few", -model["dag"].sum())


@pytest.mark.parametrize("change", [_slope, _count])
def test_models_in_which_something_else_depends_on_the_equations_are_refused(change):
    model = _with(linear_sem(table()), change)
    with pytest.raises(ValueError, match=r"cannot be drawn exactly.*depends on"):
        LinearSemMCMC([model.rvs_to_values[rv] for rv in model.free_RVs], model=model)


def test_another_scale_of_the_weights_is_refused():
    d = 3
    with pm.Model() as model:
        dag = bs.DAG("dag", list("abc"))
        scale = bs.distributions.NoiseScales("scale", dag, d + 2.0, 0.5)
        weight = bs.distributions.ArcSlabs("weight", dag, np.ones(6))
        intercept = bs.distributions.Intercepts("intercept", scale**2, 1.0)
        matrix = bs.distributions.coefficient_matrix(weight, d)
        bs.distributions.LinearSem("x", intercept, matrix, scale, observed=table())
    with pytest.raises(ValueError, match="not a constant times the noise scale"):
        LinearSemMCMC(model.value_vars, model=model)


@pytest.mark.chain
def test_chains_start_apart_run_and_are_read_after_netcdf(tmp_path):
    import xarray as xr

    x = table(150)
    with linear_sem(x, noise="mixture") as model:
        idata = pm.sample(
            40,
            tune=20,
            chains=2,
            cores=1,
            progressbar=False,
            random_seed=1,
            compute_convergence_checks=False,
        )
        pm.compute_log_likelihood(idata, progressbar=False)
    assert idata["log_likelihood"]["x"].shape == (2, 40, 150)
    idata.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "result.nc", engine="h5netcdf") as stored:
        same = stored.load()
    arcs = bs.arc_table(same)
    assert "form of its distributions" in arcs.attrs["notes"][0]
    effect = bs.do(same, {"x0": 1.0}, random_seed=1)
    posterior = same["posterior"].to_dataset()
    d, scale, location = 3, x.std(axis=0, ddof=1), x.mean(axis=0)
    # Expected values given the intervention in the units of the table, written out for each draw.
    expected = []
    for c in range(2):
        for k in range(40):
            one = posterior.isel(chain=c, draw=k)
            matrix = np.zeros((d, d))
            target, source = np.nonzero(~np.eye(d, dtype=bool))
            matrix[target, source] = one["weight"].values
            matrix[0], constant = 0.0, one["intercept"].values.copy()
            constant[0] = (1.0 - location[0]) / scale[0]
            expected.append(location + scale * np.linalg.solve(np.eye(d) - matrix, constant))
    np.testing.assert_allclose(effect["mean"], np.mean(expected, axis=0), atol=1e-10)
    mean = (one["mixture_weight"] * LOCATIONS).sum("component") * (1 - one["normal_noise"])
    intercept = one["offset"] + one["noise_scale"] * mean
    np.testing.assert_allclose(intercept, one["intercept"])
    coefficients = bs.coefficients(same)["coefficient"].values[-1, -1]
    np.testing.assert_allclose(coefficients, one["weight"] * scale[target] / scale[source])
    rows = bs.new_rows(model, x[:5])
    with rows:
        again = pm.compute_log_likelihood(idata, progressbar=False, extend_inferencedata=False)
    np.testing.assert_allclose(again["x"], idata["log_likelihood"]["x"].values[..., :5])
    with pytest.raises(bs.TableError, match="values are missing"):
        bs.new_rows(model, [[np.nan, 1.0, 2.0]])


@pytest.mark.parametrize("gap", [False, True], ids=["complete", "gap"])
def test_chains_start_at_a_search_with_required_arcs_too(gap):
    x = table(60, d=4)
    x[0, 0] = np.nan if gap else x[0, 0]
    model = linear_sem(x, required=[("x0", "x3"), ("x1", "x3")])
    step, point = LinearSemMCMC(model.value_vars, model=model, rng=0), model.initial_point()
    step.chain.start(step.rng, point)
    assert point["dag"][[0, 1], 3].all() and point["dag"].sum() > 2
    assert (point["weight"] != 0).sum() == point["dag"].sum()
