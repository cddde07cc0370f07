"""The model of Bayesian networks from table to effects."""

import arviz as az
import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import bayesstruct as bs

from bayesstruct.data.errors import TableError, TableWarning
from bayesstruct.models import bayesian_network

QUIET = {"progressbar": False, "random_seed": 1}
# Nothing here is evaluated often enough for machine code to pay.
QUICK = {"compile_kwargs": {"mode": "FAST_COMPILE"}}


def normal_table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(3.0, 2.0, size=n)
    b = 0.8 * a + rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": -b + rng.normal(size=n)})


@pytest.fixture(scope="module")
def fitted():
    model = bayesian_network(normal_table(), tiers=[["a"], ["b"], ["c"]])
    with model:
        idata = pm.sample(
            400, tune=10, chains=2, cores=1, compute_convergence_checks=False, **QUIET, **QUICK
        )
    return model, idata


@pytest.mark.chain
def test_the_functions_of_pymc_work(fitted):
    model, idata = fitted
    with model:
        prior = pm.sample_prior_predictive(5, random_seed=1, **QUICK)
        replicated = pm.sample_posterior_predictive(idata.isel(draw=slice(0, 40)), **QUIET, **QUICK)
        pm.compute_log_likelihood(idata, progressbar=False)
    assert prior["prior_predictive"]["x"].shape == (1, 5, 200, 3)
    x = replicated["posterior_predictive"]["x"]
    assert x.mean(("chain", "draw", "observation")).values == pytest.approx(
        normal_table().mean().to_numpy(), abs=0.3
    )
    assert idata["log_likelihood"]["x"].dims == ("chain", "draw", "observation")
    assert np.isfinite(az.loo(idata).elpd)


@pytest.mark.chain
def test_the_result_is_read_as_graphs(fitted):
    _, idata = fitted
    table = bs.arc_table(idata)
    assert {"a -> b", "b -> c"} == set((table["source"] + " -> " + table["target"])[:2])
    graph = bs.median_graph(idata)
    assert isinstance(graph, nx.DiGraph)
    assert {("a", "b"), ("b", "c")} <= set(graph.edges)
    assert "arc" in str(bs.check(idata))


@pytest.mark.chain
def test_an_effect_is_that_of_the_formula(fitted):
    _, idata = fitted
    effects = bs.do(idata, {"a": 5.0})
    # 5 instead of 3 moves b by .8 times two, and c by as much the other way
    assert effects.loc["a", ["mean", "low", "high"]].to_numpy() == pytest.approx([5.0] * 3)
    assert effects.loc["b", "effect"] == pytest.approx(
        0.8 * (5 - normal_table()["a"].mean()), abs=0.25
    )
    assert effects.loc["c", "effect"] == pytest.approx(-effects.loc["b", "effect"], abs=0.25)
    upstream = bs.do(idata, {"c": 0.0})
    assert upstream.loc["a", "effect"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.chain
def test_an_effect_of_known_parameters_is_exact(fitted):
    _, idata = fitted
    posterior, constants = idata["posterior"], idata["constant_data"]
    weight = dict(
        zip(posterior["ordered_pair"].values, posterior["weight"].values[0, 0], strict=True)
    )
    one = idata.isel(chain=[0], draw=[0])
    scale = dict(zip("abc", constants["scale"].values, strict=True))
    slope = weight["a -> b"] * scale["b"] / scale["a"]
    low, high = (bs.do(one, {"a": value}).loc["b", "mean"] for value in (1.0, 2.0))
    assert high - low == pytest.approx(slope, rel=1e-10)


@pytest.mark.chain
def test_intervals_of_effects_have_the_probability_of_arviz(fitted):
    _, idata = fitted
    with az.rc_context({"stats.ci_prob": 0.5}):
        narrow = bs.do(idata, {"a": 1.0}, random_seed=1)
    given = bs.do(idata, {"a": 1.0}, ci_prob=0.5, random_seed=1)
    wide = bs.do(idata, {"a": 1.0}, ci_prob=0.9, random_seed=1)
    pd.testing.assert_frame_equal(narrow, given)
    assert (wide.loc["b", "high"] - wide.loc["b", "low"]) > (
        given.loc["b", "high"] - given.loc["b", "low"]
    )
    with pytest.raises(ValueError, match="`ci_prob` must be between 0 and 1"):
        bs.do(idata, {"a": 1.0}, ci_prob=94)


@pytest.mark.chain
def test_effects_of_equivalent_graphs_are_mixed():
    # two columns without interventions: either arc, and the effect is there for one of them only
    with bayesian_network(normal_table()[["a", "b"]]):
        idata = pm.sample(
            1500, tune=10, chains=2, cores=1, compute_convergence_checks=False, **QUIET, **QUICK
        )
    forward = float(idata["posterior"]["arc"].sel(ordered_pair="a -> b").mean())
    assert forward == pytest.approx(0.5, abs=0.06)
    effect = bs.do(idata, {"a": 5.0}).loc["b", "effect"]
    full = 0.8 * (5.0 - normal_table()["a"].mean())
    assert effect == pytest.approx(forward * full, abs=0.15)


def test_interventions_tell_directions_apart():
    rng = np.random.default_rng(7)
    data, mask = normal_table(120, 2)[["a", "b"]], np.zeros((120, 2), bool)
    data.loc[:59, "b"], mask[:60, 1] = rng.normal(2.4, 2.0, 60), True
    exact = bs.exact.dag_posterior(data, interventions=mask).arc_probabilities
    assert exact.loc["a", "b"] > 0.99
    with bayesian_network(data, interventions=pd.DataFrame({"b": mask[:, 1]})) as model:
        assert bs.find_MAP()["dag"].tolist() == [[0, 1], [0, 0]]
        x = pm.draw(model["x"], random_seed=1)
    assert (x[:60, 1] == data["b"].to_numpy()[:60]).all()


def test_the_mode_is_the_best_graph():
    data = normal_table()
    with bayesian_network(data) as model:
        mode = bs.find_MAP()
        logp = model.compile_logp(vars=[model["dag"]])
    assert mode["dag"].tolist() == bs.solvers.optimal_dag(data).adjacency.tolist()
    assert np.isfinite(logp(model.initial_point() | {"dag": mode["dag"]}))


@pytest.mark.chain
def test_states_from_table_to_effects():
    rng = np.random.default_rng(3)
    a = rng.choice(["no", "yes"], 300)
    b = np.where(rng.random(300) < 0.8, a, rng.choice(["no", "yes"], 300))
    data = pd.DataFrame({"a": a, "b": b, "c": rng.choice(list("xyz"), 300)})
    with bayesian_network(data, score="bdeu", required=[("a", "b")]) as model:
        idata = pm.sample(
            300, tune=10, chains=2, cores=1, compute_convergence_checks=False, **QUIET, **QUICK
        )
        mode = bs.find_MAP()
        pm.sample_posterior_predictive(idata.isel(draw=slice(0, 5)), **QUIET, **QUICK)
    assert mode["dag"][0, 1] == 1
    assert mode["table"][0, :2].sum() == pytest.approx(1.0)
    effect = bs.do(idata, {"a": "yes"}, random_seed=1).loc[("b", "yes")]
    assert effect["mean"] == pytest.approx(0.9, abs=0.06)
    assert bs.arc_table(idata)["probability"].iloc[0] == 1.0
    coded = data.replace({"no": 1, "yes": 2})
    with bayesian_network(coded, score="bdeu"):
        other = pm.sample(
            20, tune=5, chains=1, cores=1, compute_convergence_checks=False, **QUIET, **QUICK
        )
    assert bs.do(other, {"a": 1}, random_seed=1).loc[("a", "1"), "mean"] == 1.0
    with pytest.raises(ValueError, match="states no, yes, not 1"):
        bs.do(idata, {"a": 1})
    assert model.coords["cell"][-1] == 11


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"score": "bdue"}, "bdeu"),
        ({"required": [("a", "b"), ("b", "a")]}, "'a' and 'b' form a cycle"),
        ({"max_parents": 1.5}, "whole number"),
        ({"required": [("a", "b")], "forbidden": [("a", "b")]}, "required, and forbidden"),
        ({"forbidden": [("a", "q")]}, "pair of columns"),
        ({"tiers": [["a"], ["b"]]}, "leaves out"),
        ({"interventions": pd.DataFrame({"q": np.zeros(200, bool)})}, "unknown"),
        ({"interventions": np.zeros((3, 3), bool)}, "shape"),
        ({"interventions": np.full((200, 3), np.nan)}, "true or false"),
        ({"interventions": pd.DataFrame({"b": ["False"] * 200})}, "of 'b' must be true or false"),
        ({"interventions": pd.DataFrame({"b": np.zeros(200, bool)}, range(1, 201))}, "labels"),
        ({"tiers": {"a": "early", "b": "middle", "c": "late"}}, "finite number"),
        ({"tiers": {"a": 0, "b": np.nan, "c": 1}}, "finite number"),
        ({"required": [("a", "c"), ("b", "c")], "max_parents": 1}, "into 'c' are required"),
        ({"equivalent_sample_size": 0}, "positive"),
        ({"edge_probability": 0.2}, "edge"),
        ({"prior": "edge", "edge_probability": 2}, "`edge_probability` must lie between 0 and 1"),
        ({"prior": "edge", "edge_probability": 1}, "`edge_probability` is 1 .* requires a cycle"),
        ({"prior": "ordr"}, "did you mean 'order'"),
        ({"weights": "fair"}, "belongs to the prior 'order'"),
        ({"prior": "order", "weights": "fare"}, "did you mean 'fair'"),
        ({"score": "bdeu"}, "a|b|c"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises((ValueError, TableError), match=words):
        bayesian_network(normal_table(), **options)


def test_bad_tables():
    data, was_set = normal_table(), pd.DataFrame({"b": np.arange(200) < 5})
    data.loc[3, "b"] = np.nan
    with pytest.raises(TableError, match=r"'b': values that were set are missing .* row 3"):
        bayesian_network(data, interventions=was_set)
    with pytest.raises(TableError, match=r"'b': values are missing.*score 'bge'.*which imputes"):
        bs.exact.dag_posterior(data)
    with pytest.raises(TableError, match="k"):
        bayesian_network(normal_table().assign(k=1.0))
    collinear = normal_table().assign(d=lambda t: t["a"] + t["b"])
    with pytest.warns(TableWarning, match="linear combination"):
        model = bayesian_network(collinear)
    with model:
        assert np.isfinite(model.compile_logp()(model.initial_point()))


@pytest.mark.parametrize("score", ["bge", "gaussian"])
def test_a_discrete_table_is_told_which_score_it_needs(score):
    states = pd.DataFrame({"a": list("xyxyxx"), "b": list("yyxyxy")})
    with pytest.raises(TableError, match='or use score="bdeu", for which all columns are discrete'):
        bayesian_network(states, score=score)
    numbers = np.random.default_rng(0).normal(size=(20, 2))
    numbers[:, 0] = numbers[:, 0] > 0
    with pytest.warns(TableWarning, match='consider score="bdeu"'):
        bayesian_network(numbers, score=score)


@pytest.mark.chain
def test_missing_values_are_imputed():
    data, rng = normal_table(120), np.random.default_rng(5)
    whole, gaps = data.copy(), rng.random((120, 3)) < 0.15
    gaps[gaps.all(axis=1)] = False
    data = data.mask(gaps)
    with bayesian_network(data, tiers=[["a"], ["b"], ["c"]]) as model:
        idata = pm.sample(
            200, tune=10, chains=2, cores=1, compute_convergence_checks=False, **QUIET, **QUICK
        )
        idata.update(pm.sample_posterior_predictive(idata.isel(draw=slice(0, 9)), **QUIET, **QUICK))
    cells = idata["posterior"]["x_missing"]
    i, j = np.argwhere(gaps)[0]
    assert cells["missing"].values[0] == f"{'abc'[j]}[{i}]"
    mean, spread = cells.mean(("chain", "draw")).values, cells.std(("chain", "draw")).values
    z = (whole.to_numpy()[gaps] - mean) / spread
    # About fifty values: a mean square of 1, give or take four times sqrt(2 / 50)
    assert (z**2).mean() == pytest.approx(1.0, abs=0.8)
    assert (np.abs(mean - data.mean().to_numpy()[np.nonzero(gaps)[1]]) > 1.0).mean() > 0.3
    assert idata["posterior_predictive"]["x"].shape[-2:] == (120, 3)
    assert (idata["constant_data"]["cell_missing"].values == gaps).all()
    assert bs.do(idata, {"a": 5.0}).loc["b", "effect"] == pytest.approx(1.6, abs=0.5)
    assert bs.predictive_correlations(idata)["inside"].all()
    assert model.free_RVs[-1].name == "x_missing"


@pytest.mark.chain
def test_results_that_were_cut_or_sorted_are_refused(fitted):
    _, idata = fitted
    for read in (bs.arc_table, bs.median_graph, bs.check, lambda tree: bs.do(tree, {"a": 1.0})):
        for nodes in ([2, 0, 1], [0, 1]):
            with pytest.raises(ValueError, match="were sorted or left out"):
                read(idata.isel(node=nodes))
        with pytest.raises(ValueError, match="4 of the 6 arcs between 3 columns"):
            read(idata.isel(ordered_pair=slice(0, 4)))
    turned = bs.arc_table(idata.isel(ordered_pair=slice(None, None, -1)))
    whole = bs.arc_table(idata)
    ends = ["source", "target"]
    np.testing.assert_allclose(
        turned.set_index(ends)["probability"],
        whole.set_index(ends)["probability"][turned.set_index(ends).index],
    )


@pytest.mark.chain
@pytest.mark.parametrize(
    ("dim", "order"), [("ordered_pair", [5, 3, 1, 0, 2, 4]), ("node", [2, 0, 1])]
)
def test_draws_that_alone_were_sorted_are_put_back(fitted, dim, order):
    _, idata = fitted
    turned = idata.copy()
    turned["posterior"] = xr.DataTree(idata["posterior"].to_dataset().isel({dim: order}))
    pd.testing.assert_frame_equal(bs.arc_table(turned), bs.arc_table(idata))
    effects = (bs.do(tree, {"a": 1.0}, random_seed=1) for tree in (turned, idata))
    pd.testing.assert_frame_equal(*effects)


@pytest.mark.chain
def test_effects_of_other_results_are_refused(fitted):
    _, idata = fitted
    with pytest.raises(ValueError, match="column"):
        bs.do(idata, {"aa": 1.0})
    with pytest.raises(ValueError, match="empty"):
        bs.do(idata, {})
    with pytest.raises(ValueError, match="'a' is to be set to a finite"):
        bs.do(idata, {"a": None})
    with pytest.raises(TypeError, match="dict"):
        bs.do(idata, ["a"])
    with pytest.raises(TypeError, match="DataTree"):
        bs.do(idata["posterior"].to_dataset(), {"a": 1.0})


@pytest.mark.statistical
def test_many_columns_keep_to_candidates():
    from bayesstruct.networks.kernels.dags import is_acyclic
    from bayesstruct.steps import NetworkMCMC

    sim = bs.simulate.bayesian_network(150, 14, random_seed=1)
    with bayesian_network(sim.data, prior="edge") as model:
        step = NetworkMCMC(model.value_vars, candidates=3)
    step.setup_chain(np.random.default_rng(1), 0, 50)
    point, share = model.initial_point(), 0.0
    for _ in range(50):
        point, _ = step.step(point)
        assert is_acyclic(point["dag"])
        share = share + point["dag"] / 50
    truth = nx.to_numpy_array(sim.graph, nodelist=list(sim.data.columns)) > 0
    both = (share + share.T)[np.triu_indices(14, 1)]
    wanted = (truth | truth.T)[np.triu_indices(14, 1)]
    assert both[wanted].mean() > 0.6
    assert both[~wanted].mean() < 0.1


@pytest.mark.filterwarnings("error::bayesstruct.data.errors.TableWarning")
@pytest.mark.parametrize("learn", [bayesian_network, bs.exact.dag_posterior])
def test_regressions_without_residual_are_refused(learn):
    data = normal_table(30)
    related = data.assign(e=data["a"] + data["b"])
    with pytest.raises(TableError, match=r"'a', 'b' and 'e' are in an exact .*drop one .*'bge'"):
        learn(related, score="gaussian")
    learn(related, score="gaussian", max_parents=1)
    with pytest.raises(TableError, match=r"'a' has 4 rows, too few .* max_parents=2"):
        learn(related[["a", "b", "c"]].assign(d=np.arange(30.0) ** 2)[:4], score="gaussian")
    learn(data[:4], score="gaussian", max_parents=2)
    mask = np.zeros((30, 3), bool)
    mask[:10, 0] = True
    data.loc[10:, "a"] = 1.0
    with pytest.raises(TableError, match="'a' is constant in the 20 rows in which it was not set"):
        learn(data, score="gaussian", interventions=mask)


def test_a_column_of_targets_is_noticed():
    rng = np.random.default_rng(8)
    data = pd.DataFrame(rng.integers(0, 2, (40, 3)), columns=list("abc"))
    data["target"] = rng.choice(["none", "a", "b"], 40)
    with pytest.warns(TableWarning, match="'target' has names of other columns .* drop it"):
        bayesian_network(data, score="bdeu")
