"""Markov random fields of several groups of rows: names, readers, options, messages, calibration."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy.special import logsumexp
from tools.calibration import assert_calibrated
from tools.random_fields import all_states, feature_matrix

import bayesstruct as bs

from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.models import ising, pairwise_mrf
from bayesstruct.steps import GroupedPairwiseGibbs

NAMES = ["mood", "sleep", "worry", "pain"]
QUIET = {"progressbar": False, "chains": 2, "cores": 1}


def frame(n=300, gaps=False, seed=0):
    """Two columns depend on each other in both groups, two others in the first only."""
    rng = np.random.default_rng(seed)
    x, second = rng.integers(0, 2, (n, 4)), np.arange(n) % 3 == 0
    x[:, 1] = np.where(rng.random(n) < 0.2, 1 - x[:, 0], x[:, 0])
    x[:, 3] = np.where(second | (rng.random(n) < 0.1), x[:, 3], x[:, 2])
    table = pd.DataFrame(x, columns=NAMES).astype("Int64")
    if gaps:
        table.iloc[3, 1] = table.iloc[7, 0] = table.iloc[8, 3] = pd.NA
    return table.assign(site=np.where(second, "b", "a"))


@pytest.fixture(scope="module", params=["pseudo", "exact"])
def fitted(request):
    gaps = request.param == "pseudo"
    model = ising(frame(gaps=gaps), group="site", likelihood=request.param)
    with model:
        return model, pm.sample(200, tune=20, random_seed=1, **QUIET)


@pytest.mark.chain
def test_names_dims_and_constants(fitted):
    _, idata = fitted
    posterior, constant = idata["posterior"], idata["constant_data"]
    names = {"bias", "weight", "relation", "edge", "difference"}
    assert set(posterior.data_vars) - {"x_missing"} == names
    assert posterior["weight"].dims[2:] == ("group", "pair")
    assert posterior["bias"].dims[2:] == ("group", "node")
    assert posterior["group"].values.tolist() == ["a", "b"]
    weight, relation = posterior["weight"].values, posterior["relation"].values
    np.testing.assert_array_equal(relation == 0, (weight == 0).all(axis=2))
    np.testing.assert_array_equal(relation == 2, weight[:, :, 0] != weight[:, :, 1])
    np.testing.assert_array_equal(posterior["edge"], relation > 0)
    np.testing.assert_array_equal(posterior["difference"], relation == 2)
    np.testing.assert_allclose(constant["edge_prior"], 0.5)
    np.testing.assert_allclose(constant["difference_prior"], 0.25)


@pytest.mark.chain
def test_differences_are_found(fitted):
    import matplotlib.pyplot as plt

    _, idata = fitted
    table = bs.difference_table(idata)
    first = table.iloc[0]
    assert (first["source"], first["target"], first["verdict"]) == ("worry", "pain", "differs")
    assert first["mean_a"] > 2 and first["mean_b"] < 1 and first["hdi_low"] > 1
    other = table.query("source == 'mood' and target == 'sleep'").iloc[0]
    assert other["edge"] > 0.99 and other["verdict"] != "differs"
    assert table.attrs["estimator"] == "control variate"
    shares = idata["posterior"]["difference"].mean(("chain", "draw")).values
    labels = [f"{a} -- {b}" for a, b in zip(table["source"], table["target"], strict=True)]
    in_order = dict(zip(labels, table["probability"], strict=True))
    found = [in_order[pair] for pair in idata["posterior"]["pair"].values]
    np.testing.assert_allclose(found, shares, atol=0.12)  # over four standard errors of the shares
    assert bs.summary(idata).reader == "difference_table"
    assert bs.check(idata).rows
    texts = [text.get_text() for text in bs.plot_difference(idata).get_legend().get_texts()]
    assert "larger in a" in texts
    plt.close("all")


@pytest.mark.chain
def test_one_group_is_read_as_a_result_of_its_own(fitted):
    _, idata = fitted
    for label in "ab":
        own = bs.one_group(idata, label)
        assert own["observed_data"].sizes["observation"] == (frame()["site"] == label).sum()
        weight = idata["posterior"]["weight"].sel(group=label, pair="worry -- pain").mean().item()
        table = bs.edge_table(own)
        row = table.query("source == 'worry' and target == 'pain'").iloc[0]
        assert row["mean"] == pytest.approx(weight)
        assert any("not always in this one" in note for note in table.attrs["notes"])
        assert bs.summary(own).reader == "edge_table"
        assert bs.edge_information(own)["information"].iloc[0] > 0.01
    rows = pd.DataFrame([{"mood": 1, "sleep": None, "worry": 0, "pain": 1}])
    assert bs.predict(own, rows)["probability"].sum() == pytest.approx(1.0)
    assert bs.pointwise(own, draws=2)["log_likelihood"]["x"].sizes["chain"] == 2
    for read in (
        bs.edge_information,
        lambda tree: bs.predict(tree, rows),
        lambda tree: bs.predict(tree, rows.assign(site="b"), group="site"),
    ):
        with pytest.raises(ValueError, match=r"each group of rows.*one_group"):
            read(idata)


@pytest.mark.chain
def test_rows_are_predicted_by_group(fitted):
    model, idata = fitted
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        new = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
        prior = pm.sample_prior_predictive(3, random_seed=1)
    assert idata["log_likelihood"]["x"].dims == ("chain", "draw", "observation")
    assert np.isfinite(idata["log_likelihood"]["x"]).all()
    x, second = new["posterior_predictive"]["x"].values, (frame()["site"] == "b").to_numpy()
    agree = (x[..., 2] == x[..., 3]).mean((0, 1))
    assert agree[~second].mean() > 0.8 and agree[second].mean() < 0.65
    assert set(np.unique(prior["prior_predictive"]["x"])) <= {0, 1}


@pytest.mark.chain
def test_probabilities_are_learned_and_pairs_required():
    learned = {"edge_probability": pm.Beta.dist(1, 1), "difference_probability": pm.Beta.dist(1, 2)}
    pairs = {"required": [("mood", "pain")], "forbidden": [("mood", "worry")]}
    with ising(frame(), group="site", **learned, **pairs) as model:
        assert {"edge_probability", "difference_probability"} <= {v.name for v in model.free_RVs}
        idata = pm.sample(20, tune=10, random_seed=1, **QUIET)
    relation = idata["posterior"]["relation"]
    assert (relation.sel(pair="mood -- pain") > 0).all()
    assert (relation.sel(pair="mood -- worry") == 0).all()
    np.testing.assert_allclose(
        idata["constant_data"]["difference_prior"].values[:3], [1 / 6, 0, 1 / 3]
    )


def ordinal_frame(n=400, seed=0):
    """Answers 1 to 3, of which the first two agree in one group only."""
    rng = np.random.default_rng(seed)
    x, second = rng.integers(1, 4, (n, 3)), np.arange(n) % 2 == 0
    x[:, 1] = np.where(second | (rng.random(n) < 0.3), x[:, 1], x[:, 0])
    table = pd.DataFrame(x, columns=NAMES[:3]).astype("Int64")
    table.iloc[5, 0] = pd.NA
    return table.assign(site=np.where(second, "b", "a"))


@pytest.mark.chain
@pytest.mark.parametrize("potentials", ["ordinal", "blume_capel"])
def test_answers_of_several_states(potentials):
    with pairwise_mrf(ordinal_frame(), potentials=potentials, group="site") as model:
        idata = pm.sample(60, tune=20, random_seed=1, **QUIET)
        pm.sample_prior_predictive(2, random_seed=1)
    table = bs.difference_table(idata)
    assert table.iloc[0][["source", "target", "verdict"]].tolist() == ["mood", "sleep", "differs"]
    assert (table["verdict"].iloc[1:] != "differs").all()
    assert idata["posterior"]["bias"].dims[2:] == ("group", "bias_label")
    # 3 / (9 - 1) of the scales of binary columns
    _, _, slab, large = model["weight"].owner.op.dist_params(model["weight"].owner)
    np.testing.assert_allclose([slab.data, large.data], 0.375)
    own = bs.one_group(idata, "a")
    assert bs.edge_information(own)["information"].iloc[0] > 0.1


def test_corrections_and_new_rows_are_refused_with_a_remedy():
    model = ising(frame(n=60, gaps=True), group="site")
    with pytest.raises(ValueError, match="several groups of rows are not corrected"):
        bs.sandwich(None, model)
    with pytest.raises(ValueError, match="rows belong to groups"):
        bs.new_rows(model, frame(n=60))


def test_potentials_of_several_weights_are_refused():
    with pytest.raises(ValueError, match=r"'full': choose one of these"):
        pairwise_mrf(ordinal_frame(), group="site")
    with pytest.raises(ValueError, match="`difference_scale` goes with rows of several groups"):
        pairwise_mrf(ordinal_frame(), difference_scale=1.0)


def test_forms_of_tables():
    table = frame()
    tables = {label: own.drop(columns="site") for label, own in table.groupby("site")}
    counted = table.value_counts().rename("count").reset_index()
    for model, n in [
        (ising(tables), 300),
        (ising(table[NAMES], group=table["site"]), 300),
        (ising(table[NAMES].to_numpy(int), group=table["site"].to_numpy()), 300),
        (ising(counted, group="site", row_counts="count"), 300),
        (ising(table, group="site", graph=[("mood", "sleep"), ("worry", "pain")]), 300),
    ]:
        assert model["weight"].eval().shape == (2, len(model.coords["pair"]))
        assert model["x"].eval().shape == (n, 4)
    arrays = {label: own.to_numpy(int) for label, own in tables.items()}
    assert ising(arrays).coords["node"] == ("x0", "x1", "x2", "x3")
    three = ising(table[NAMES], group=np.arange(300) % 3)
    assert three.coords["group"] == ("0", "1", "2")


def test_messages():
    table = frame()
    refused = [
        ({"prior": "laplace"}, 'prior="spike_slab" only'),
        ({"slab": "cauchy"}, 'slab="normal" only'),
        ({"difference_scale": -1.0}, "difference_scale"),
        ({"difference_probability": 2.0}, "difference_probability has values"),
        ({"group": "town"}, "unknown column 'town'"),
        ({"group": np.repeat("a", 300)}, "single value 'a'.*use ising"),
        ({"group": ["a"] + ["b"] * 299}, "group 'a' has 1 row"),
        ({"group": None, "difference_scale": 1.0}, "rows of several groups"),
    ]
    for options, message in refused:
        given = table if isinstance(options.get("group", "site"), str) else table[NAMES]
        with pytest.raises((ValueError, bs.TableError), match=message):
            ising(given, **{"group": "site"} | options)
    with pytest.raises(bs.TableError, match="'a' and 'b' have different columns, column 'pain'"):
        ising({"a": table[NAMES], "b": table[NAMES[:3]]})
    for wrong in (None, "answers", [0, 1]):
        with pytest.raises(bs.TableError, match="one table for each group, and 'b':"):
            ising({"a": table[NAMES], "b": wrong})
    alike = table.copy()
    alike.loc[alike["site"] == "b", "pain"] = 1
    with pytest.warns(bs.TableWarning, match="'pain' of group 'b': always the same state"):
        ising(alike, group="site")
    with (
        pytest.warns(bs.TableWarning, match="always the same state"),
        pytest.raises(bs.TableError, match="'pain': the state 0 never occurs in group 'b'"),
    ):
        ising(alike, group="site", bias_scale=np.inf)
    empty = table.copy()
    empty.loc[empty["site"] == "b", "pain"] = pd.NA
    with pytest.raises(bs.TableError, match="'pain' of group 'b': all values are missing"):
        ising(empty, group="site")


def test_a_chain_is_its_point_and_its_generator():
    model = ising(frame(n=60, gaps=True), group="site")

    def run(rng, sweeps, point):
        with model:
            step = GroupedPairwiseGibbs(model.free_RVs)
        step.setup_chain(rng, 0, sweeps)
        for _ in range(sweeps):
            point, _ = step.step(point)
        return point, step.rng

    start = model.initial_point(0)
    middle, rng = run(np.random.default_rng(1), 3, start)
    middle, _ = run(rng, 2, middle)
    whole, _ = run(np.random.default_rng(1), 5, start)
    for name, value in whole.items():
        np.testing.assert_array_equal(value, middle[name])


def test_weights_that_something_else_depends_on_are_refused():
    with ising(frame(n=60), group="site") as model:
        pm.Normal("y", model["weight"].sum(), 1.0, observed=0.0)
        with pytest.raises(ValueError, match=r"cannot be drawn exactly.*'y' depends on 'weight'"):
            GroupedPairwiseGibbs([model["weight"]])


# Calibration: five columns, two groups of unequal sizes, the exact likelihood.
P, GROUP = 5, np.repeat([0, 1], (25, 40))
FIELD = Potentials("ordinal", (2,) * P)
STATES, FEATURES = all_states(FIELD.states), feature_matrix(FIELD)
OPTIONS = {"edge_probability": 0.4, "difference_probability": 0.5, "difference_scale": 0.8}


def simulate(rng):
    """Parameters from the prior of the model, and a table that it accepts."""
    while True:
        edge, differs = rng.random(10) < 0.4, rng.random(10) < 0.5
        gap = 0.8 * np.outer([1, -1], rng.normal(size=10)) / np.sqrt(2) * differs
        weight = (rng.normal(size=10) + gap) * edge
        bias, rows = rng.normal(size=(2, P)), np.empty((65, P), int)
        for g in range(2):
            logs = FEATURES @ np.r_[FIELD.unary(bias[g]), FIELD.pair(weight[g])]
            p, own = np.exp(logs - logsumexp(logs)), GROUP == g
            rows[own] = STATES[rng.choice(len(p), own.sum(), p=p)]
        # Tables that the model refuses are drawn again: the rule looks at the data only.
        spread = [rows[GROUP == g].min(0) < rows[GROUP == g].max(0) for g in range(2)]
        if np.all(spread) and len({tuple(c) for c in rows.T}) == P:
            return quantities(weight, bias), rows


def quantities(weight, bias):
    relation = (weight != 0).any(-2).astype(int) + (weight[..., 0, :] != weight[..., 1, :])
    return {
        "weight": weight[..., 0, :4],
        "gap": (weight[..., 0, :] - weight[..., 1, :])[..., :4],
        "edges": (relation > 0).sum(-1),
        "differences": (relation > 1).sum(-1),
        "relation": relation[..., :3],
        "bias": bias[..., :2],
    }


def fit(rows, rng, tune=20, draws=150):
    with ising(rows, group=GROUP, likelihood="exact", bias_scale=1.0, **OPTIONS) as model:
        step = GroupedPairwiseGibbs([model["weight"], model["bias"]])
    step.setup_chain(rng, tune, draws)
    point, kept = model.initial_point(), []
    for t in range(tune + draws):
        point, _ = step.step(point)
        if t >= tune:
            kept.append((point["weight"], point["bias"]))
    return quantities(*(np.array(values) for values in zip(*kept, strict=True)))


@pytest.mark.calibration
def test_the_model_is_calibrated(full):
    assert_calibrated(simulate, fit, simulations=500 if full else 10, seed=1)
