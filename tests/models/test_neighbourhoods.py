"""The contract of the neighbourhood models: names, groups, priors, predictive checks, refusals."""

import re
import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from pymc.sampling.mcmc import assign_step_methods
from scipy import special, stats

import bayesstruct as bs

from bayesstruct.models import gaussian_neighbourhoods, ising_neighbourhoods

NAMES = ["mood", "sleep", "worry", "energy"]
ARCS = [f"{a} -> {b}" for b in NAMES for a in NAMES if a != b]
MODELS = {"gaussian": gaussian_neighbourhoods, "ising": ising_neighbourhoods}
PRIORS = ["spike_slab", "laplace", "horseshoe"]
QUIET = {"progressbar": False, "chains": 2, "cores": 1, "quiet": True, "random_seed": 1}


def frame(family="gaussian", n=40):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 4))
    z[:, 1] += z[:, 0]
    if family == "ising":
        return pd.DataFrame((z > 0) * 1, columns=NAMES)
    return pd.DataFrame([100.0, -5.0, 0.0, 1e3] + z * [10.0, 0.1, 1.0, 50.0], columns=NAMES)


@pytest.fixture(scope="module", params=[("gaussian", "spike_slab"), ("ising", "laplace")], ids=str)
def fitted(request):
    family, prior = request.param
    model = MODELS[family](frame(family), prior=prior)
    with model:
        idata = pm.sample(60, tune=60, nuts_sampler="pymc", **QUIET)
    return family, prior, model, idata


@pytest.mark.chain
def test_names_dims_and_coordinates(fitted):
    family, _, _, idata = fitted
    posterior = idata["posterior"]
    noise = {"noise_variance"} if family == "gaussian" else set()
    assert set(posterior.data_vars) == {"coefficients", "intercept", "arc", "weight"} | noise
    assert posterior["coefficients"].dims == ("chain", "draw", "node", "node_")
    assert posterior["arc"].dims == posterior["weight"].dims == ("chain", "draw", "ordered_pair")
    assert posterior["ordered_pair"].values.tolist() == ARCS
    assert posterior["node"].values.tolist() == posterior["node_"].values.tolist() == NAMES
    assert set(np.unique(posterior["arc"])) <= {0, 1}
    assert (np.diagonal(posterior["coefficients"].values, axis1=2, axis2=3) == 0).all()
    assert idata["observed_data"]["x"].dims == ("observation", "node")


@pytest.mark.chain
def test_arcs_go_from_predictor_to_response(fitted):
    _, _, _, idata = fitted
    posterior, constant = idata["posterior"], idata["constant_data"]
    for k, label in enumerate(ARCS):
        source, target = label.split(" -> ")
        np.testing.assert_array_equal(
            posterior["weight"].sel(ordered_pair=label),
            posterior["coefficients"].sel(node=target, node_=source),
        )
        ends = [NAMES[int(constant[name][k])] for name in ("arc_source", "arc_target")]
        assert ends == [source, target]


@pytest.mark.chain
def test_an_arc_is_a_coefficient_that_is_not_negligible(fitted):
    _, prior, _, idata = fitted
    cut = 0.0 if prior == "spike_slab" else float(idata["constant_data"]["negligible"])
    posterior = idata["posterior"]
    np.testing.assert_array_equal(posterior["arc"], np.abs(posterior["weight"]) > cut)


@pytest.mark.chain
def test_log_likelihood_is_that_of_each_value_given_its_row(fitted):
    family, _, model, idata = fitted
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
    got = idata["log_likelihood"]["x"]
    assert got.dims == ("chain", "draw", "observation", "node")
    draw = idata["posterior"].isel(chain=1, draw=7)
    table = frame(family)
    W, b = draw["coefficients"].values, draw["intercept"].values
    if family == "gaussian":
        z = ((table - table.mean()) / table.std()).values
        expected = stats.norm.logpdf(z, b + z @ W.T, np.sqrt(draw["noise_variance"].values))
    else:
        x = table.values
        eta = b + (x - x.mean(0)) @ W.T
        expected = x * eta - np.logaddexp(0, eta)
    np.testing.assert_allclose(got.isel(chain=1, draw=7), expected, rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws have high Pareto shapes
        assert np.isfinite(az.loo(idata).elpd)


@pytest.mark.chain
def test_predictive_draws(fitted):
    family, _, model, idata = fitted
    with model:
        drawn = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
        prior = pm.sample_prior_predictive(20, random_seed=1)
    x = drawn["posterior_predictive"]["x"]
    assert x.dims == ("chain", "draw", "observation", "node")
    if family == "ising":
        np.testing.assert_allclose(
            x.mean(("chain", "draw", "observation")), frame(family).mean(), atol=0.08
        )
    else:
        np.testing.assert_allclose(x.mean(("chain", "draw", "observation")), 0.0, atol=0.08)
        np.testing.assert_allclose(x.std(("chain", "draw", "observation")), 1.0, atol=0.2)
    assert prior["prior_predictive"]["x"].shape == (1, 20, 40, 4)


@pytest.mark.statistical
@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("prior", PRIORS)
def test_the_prior_of_the_arcs_is_recorded(family, prior):
    options = {"expected_neighbours": 1.0} if prior != "laplace" else {}
    model = MODELS[family](frame(family), prior=prior, **options)
    with model:
        drawn = pm.draw(model["arc"], draws=3_000, random_seed=1)
    recorded = model["arc_prior"].data
    # 36,000 indicators; those of a horseshoe share its scale, 3,000 draws of which are independent
    error = 0.5 / np.sqrt(36_000 if prior != "horseshoe" else 3_000)
    assert abs(drawn.mean() - recorded.mean()) < 4.5 * error
    if prior == "horseshoe":
        i, j = ARCS.index("mood -> sleep"), ARCS.index("sleep -> mood")
        both = (drawn[:, i] & drawn[:, j]).mean()
        assert abs(both - float(model["arc_prior_both"].data)) < 4.5 * error
    else:
        assert int(model["arc_independent"].data) == 1


@pytest.mark.parametrize("family", MODELS)
def test_the_default_prior_expects_three_neighbours_or_half(family):
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(30, 13))
    wide = wide if family == "gaussian" else wide > 0
    np.testing.assert_allclose(MODELS[family](wide)["arc_prior"].data, 3 / 12)
    np.testing.assert_allclose(MODELS[family](wide[:, :3])["arc_prior"].data, 0.5)


@pytest.mark.chain
def test_inclusion_probabilities_one_by_one():
    matrix = pd.DataFrame(0.3, NAMES[::-1], NAMES[::-1])
    matrix.loc["mood", "sleep"] = 1.0  # sleep predicts mood
    matrix.loc["mood", "worry"] = 0.0
    model = gaussian_neighbourhoods(frame(), inclusion=matrix)
    prior = dict(zip(ARCS, model["arc_prior"].data, strict=True))
    assert (prior["sleep -> mood"], prior["worry -> mood"], prior["mood -> sleep"]) == (1, 0, 0.3)
    idata = bs.sample_neighbourhoods(model, draws=50, tune=10, progressbar=False, random_seed=1)
    arc = idata["posterior"]["arc"]
    assert (arc.sel(ordered_pair="sleep -> mood") == 1).all()
    assert (arc.sel(ordered_pair="worry -> mood") == 0).all()
    table = bs.arc_table(idata).set_index(["source", "target"])
    assert np.isnan(table.loc[("sleep", "mood"), "bayes_factor"])
    assert np.isnan(table.loc[("worry", "mood"), "bayes_factor"])


def test_a_beta_prior_is_drawn_by_each_regression():
    model = ising_neighbourhoods(frame("ising"), inclusion=pm.Beta.dist(1, 3))
    assert model["inclusion"].eval().shape == (4,)
    np.testing.assert_allclose(model["arc_prior"].data, 0.25)


@pytest.mark.parametrize("family", MODELS)
def test_steps(family):
    with MODELS[family](frame(family)) as model:
        _, selected = assign_step_methods(model)
    names = {
        step.__name__: {model.values_to_rvs[v].name for v in vs}
        for step, vs in selected.items()
        if vs
    }
    rest = {"intercept", "noise_variance"} if family == "gaussian" else {"intercept"}
    assert names == {"SpikeSlabRegression": {"coefficients"}, "NUTS": rest}
    with MODELS[family](frame(family), prior="horseshoe") as model:
        _, selected = assign_step_methods(model)
    assert [step.__name__ for step, vs in selected.items() if vs] == ["NUTS"]


@pytest.mark.chain
@pytest.mark.compiled
def test_the_horseshoe_finds_the_strong_arcs():
    with gaussian_neighbourhoods(frame(), prior="horseshoe"):
        idata = pm.sample(150, tune=300, nuts_sampler="pymc", target_accept=0.9, **QUIET)
    table = bs.arc_table(idata)
    assert {*table["source"][:2], *table["target"][:2]} == {"mood", "sleep"}
    edges = bs.symmetrize(idata, "and")
    assert "edge_present" not in edges["constant_data"]  # a scale in common: not independent
    assert bs.edge_table(edges).attrs["estimator"] == "frequency"
    joint = edges["posterior"]["edge"].mean(("chain", "draw"))
    np.testing.assert_allclose(bs.inclusion_probabilities(edges), joint)


def test_units_do_not_matter_and_lead_back():
    a, b = gaussian_neighbourhoods(frame()), gaussian_neighbourhoods(frame() * 3 + 7)
    z = [m.rvs_to_values[m["x"]].data for m in (a, b)]
    np.testing.assert_allclose(z[0], z[1], atol=1e-10)
    back = z[1] * b["scale"].data + b["location"].data
    np.testing.assert_allclose(back, frame() * 3 + 7)


def test_any_two_values_are_binary():
    coded = frame("ising") * 2 - 1
    coded["mood"] = coded["mood"] == 1
    model = ising_neighbourhoods(coded)
    np.testing.assert_array_equal(model.rvs_to_values[model["x"]].data, frame("ising"))


def test_text_and_categories_are_binary():
    words = frame("ising")
    words["mood"] = np.where(words["mood"] == 1, "yes", "no")
    levels = pd.CategoricalDtype(["low", "high"], ordered=True)
    words["sleep"] = words["sleep"].map({0: "low", 1: "high"}).astype(levels)
    words["worry"] = 5 + 2 * words["worry"]
    model = ising_neighbourhoods(words)
    np.testing.assert_array_equal(model.rvs_to_values[model["x"]].data, frame("ising"))
    np.testing.assert_array_equal(model["location"].data, 5 * (words.columns == "worry"))
    assert list(model.coords["node"]) == list(words.columns)


# --- what is refused -------------------------------------------------------------------------


def changed(family="gaussian", **columns):
    return frame(family).assign(**columns)


GAPS = frame().mask(np.eye(40, 4, dtype=bool)[:, [1, 0, 3, 2]] & np.array([1, 0, 1, 0], bool))
BAD_TABLES = {
    "missing": ("gaussian", GAPS, ["'mood' and 'worry'", "values are missing", "dropna"]),
    "missing, binary": (
        "ising",
        frame("ising").where(np.arange(160).reshape(40, 4) > 3),
        ["missing"],
    ),
    "text": ("gaussian", changed(mood="low"), ["'mood'", "text"]),
    "constant text": ("ising", changed("ising", mood="low"), ["'mood'", "constant", "'low'"]),
    "three words": (
        "ising",
        changed("ising", mood=np.array(["low", "high", "mid", "low"] * 10)),
        ["'mood'", "more than two values", "pairwise_mrf"],
    ),
    "missing text": (
        "ising",
        changed("ising", mood=np.array(["no", "yes", None, "no"] * 10, dtype=object)),
        ["'mood'", "values are missing"],
    ),
    "three values": (
        "ising",
        changed("ising", sleep=np.arange(40) % 3),
        ["'sleep'", "3 different values (0, 1, 2)", "two"],
    ),
    "numbers": ("ising", frame(), ["'mood'", "'energy'", "40 different values", "..."]),
    "constant": ("ising", changed("ising", worry=1), ["'worry'", "constant"]),
    "duplicate": ("gaussian", changed(more=frame()["mood"]), ["'mood' and 'more'", "duplicates"]),
    "recoded duplicate": (
        "ising",
        changed("ising", more=frame("ising")["mood"] * 5 + 1),
        ["'mood' and 'more'", "duplicates"],
    ),
    "one column": ("gaussian", frame()[["mood"]], ["1 column", "at least 2"]),
    "one binary column": ("ising", frame("ising")[["mood"]], ["1 column", "at least 2"]),
    "one row": ("ising", frame("ising")[:1], ["1 row"]),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables(case):
    family, table, parts = BAD_TABLES[case]
    with pytest.raises(bs.TableError) as error:
        MODELS[family](table)
    for part in parts:
        assert part in str(error.value)


BAD_OPTIONS = {
    "did you mean 'laplace'": {"prior": "laplase"},
    "unknown prior 'x'": {"prior": "x"},
    '`rate` goes with prior="laplace"': {"rate": 1.0},
    '`inclusion` goes with prior="spike_slab"': {"prior": "laplace", "inclusion": 0.5},
    '`slab` goes with prior="spike_slab"': {"prior": "horseshoe", "slab": "normal"},
    "`slab_scale` must be positive": {"slab_scale": -1.0},
    "`negligible` must be positive": {"prior": "laplace", "negligible": 0.0},
    "`rate` must be a number": {"prior": "laplace", "rate": "big"},
    "`slab` must be one of": {"slab": "cauchy"},
    "not both": {"inclusion": 0.5, "expected_neighbours": 2.0},
    "must be below 3": {"expected_neighbours": 3.0},
    "not between 0 and 1": {"inclusion": 1.5},
    "has shape (3, 3)": {"inclusion": np.full((3, 3), 0.5)},
    "`inclusion` is not a number": {"inclusion": "many"},
}


@pytest.mark.parametrize("message", BAD_OPTIONS)
@pytest.mark.parametrize("family", MODELS)
def test_bad_options(family, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MODELS[family](frame(family), **BAD_OPTIONS[message])


def test_options_of_one_family():
    with pytest.raises(ValueError, match="two positive numbers"):
        gaussian_neighbourhoods(frame(), noise_prior=(1.0, -1.0))
    with pytest.raises(ValueError, match="two positive numbers"):
        gaussian_neighbourhoods(frame(), noise_prior=3.0)
    with pytest.raises(ValueError, match="two positive numbers"):
        gaussian_neighbourhoods(frame(), noise_prior=(np.inf, 1.0))
    with pytest.raises(ValueError, match="intercept_scale"):
        ising_neighbourhoods(frame("ising"), intercept_scale=0.0)


def test_options_of_the_wrong_type():
    rate = "1"
    with pytest.raises(ValueError, match="`rate` must be a number, it is"):
        gaussian_neighbourhoods(frame(), prior="laplace", rate=rate)
    with pytest.raises(ValueError, match="unknown prior"):
        gaussian_neighbourhoods(frame(), prior=["laplace"])
    with pytest.raises(TypeError, match="`intercept_scale` must be one number"):
        ising_neighbourhoods(frame("ising"), intercept_scale=rate)


# --- with a known truth ----------------------------------------------------------------------


@pytest.mark.chain
def test_couplings_of_an_ising_model_are_recovered():
    simulation = bs.simulate.ising(4_000, 8, graph="band", random_seed=3)
    model = ising_neighbourhoods(simulation.data)
    idata = bs.sample_neighbourhoods(model, draws=200, tune=100, progressbar=False, random_seed=1)
    mean = idata["posterior"]["coefficients"].mean(("chain", "draw")).values
    theta = simulation.couplings.values
    off = ~np.eye(8, dtype=bool)
    # Standard errors are about 2 / sqrt(4,000 / 4) = 0.09 with several neighbours.
    assert np.abs(mean - theta)[off].max() < 0.4
    x = simulation.data.values.mean(axis=0)
    intercept = idata["posterior"]["intercept"].mean(("chain", "draw")).values
    np.testing.assert_allclose(intercept - mean @ x, np.diag(theta), atol=0.4)
    for rule in ("and", "or"):
        assert bs.compare(bs.symmetrize(idata, rule), simulation.graph).f1 > 0.95
    assert special.expit(np.abs(intercept)).max() < 0.6  # thresholds balance the couplings


@pytest.mark.chain
def test_neighbourhoods_of_a_gaussian_graph_are_recovered():
    simulation = bs.simulate.gaussian_graphical(3_000, 10, graph="band", random_seed=2)
    idata = bs.sample_neighbourhoods(
        gaussian_neighbourhoods(simulation.data),
        draws=200,
        tune=100,
        progressbar=False,
        random_seed=1,
    )
    scale = simulation.data.std().values
    J = simulation.precision.values
    W = -J / np.diag(J)[:, None] * scale[None, :] / scale[:, None]
    mean = idata["posterior"]["coefficients"].mean(("chain", "draw")).values
    off = ~np.eye(10, dtype=bool)
    assert np.abs(mean - W)[off].max() < 0.12
    noise = idata["posterior"]["noise_variance"].mean(("chain", "draw")).values
    np.testing.assert_allclose(noise, 1 / np.diag(J) / scale**2, rtol=0.15)
    edges = bs.symmetrize(idata, "and")
    weight = edges["posterior"]["weight"].mean(("chain", "draw")).values
    partial = simulation.partial_correlations.values[np.triu_indices(10, 1)]
    np.testing.assert_allclose(weight, partial, atol=0.1)
