"""The contract of the Markov random fields: names, groups, priors, modes, predictive checks, refusals."""

import itertools
import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from tools.random_fields import summed_density

import bayesstruct as bs

from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.models import ising, pairwise_mrf

QUIET = {"progressbar": False, "chains": 2, "cores": 1, "quiet": True, "random_seed": 1}


def answers(n=60, seed=0):
    """Two items that go together, one that does not; text, ordered categories, numbers."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, 3, n))
    levels = ["never", "rarely", "often"]
    return pd.DataFrame(
        {
            "sleep": pd.Categorical.from_codes(a, levels, ordered=True),
            "mood": pd.Categorical.from_codes(b, levels, ordered=True),
            "coffee": rng.choice(["no", "yes"], n),
        }
    )


def binary(n=60):
    table = answers(n)
    out = table.assign(sleep=table["sleep"] == "often", mood=table["mood"] == "often")
    return out


@pytest.fixture(scope="module")
def fitted():
    """Ising model with a gap, drawn by the step."""
    table = binary().astype(object)
    table.loc[3, "mood"] = None
    with ising(table) as model:
        idata = pm.sample(150, tune=50, compute_convergence_checks=False, **QUIET)
        with pytest.warns(UserWarning, match="composite one.*az.loo.bs.pointwise.idata"):
            pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, progressbar=False, random_seed=1
        )
    return model, idata


@pytest.mark.chain
def test_a_check_says_that_the_likelihood_is_composite(fitted):
    _, idata = fitted
    result = bs.check(idata)
    assert "composite one (a pseudo-likelihood)" in repr(result)
    assert "composite one (a pseudo-likelihood)" in result._repr_html_()


def test_only_log_likelihoods_of_rows_under_a_composite_likelihood_are_warned_of():
    composite, exact = (ising(binary(), likelihood=kind) for kind in ("pseudo", "exact"))
    exact.compile_fn(
        exact.logp(vars=[exact["x"]], sum=False), inputs=exact.value_vars, on_unused_input="ignore"
    )
    composite.compile_logp()  # what samplers evaluate is meant so
    logp = composite.logp(vars=[composite["x"]], sum=False)
    with pytest.warns(UserWarning, match="composite one") as caught:
        composite.compile_fn(logp, inputs=composite.value_vars, on_unused_input="ignore")
    assert caught[0].filename == __file__
    assert "composite_likelihood" in composite.named_vars
    assert "composite_likelihood" not in exact.named_vars


@pytest.mark.chain
def test_names_dims_and_coordinates(fitted):
    _, idata = fitted
    posterior = idata["posterior"]
    assert set(posterior.data_vars) == {"bias", "weight", "edge", "x_missing"}
    assert posterior["weight"].dims == posterior["edge"].dims == ("chain", "draw", "pair")
    assert posterior["pair"].values.tolist() == [
        "sleep -- mood",
        "sleep -- coffee",
        "mood -- coffee",
    ]
    assert posterior["missing"].values.tolist() == ["mood[3]"]
    assert set(np.unique(posterior["x_missing"])) <= {0, 1}
    np.testing.assert_array_equal(posterior["edge"], posterior["weight"] != 0)
    assert idata["observed_data"]["x"].dims == ("observation", "node")
    assert {"edge_source", "edge_target", "edge_prior", "states"} <= set(idata["constant_data"])


@pytest.mark.chain
def test_the_functions_that_read_graphs_work(fitted):
    _, idata = fitted
    table = bs.edge_table(idata)
    assert table.iloc[0][["source", "target"]].tolist() == ["sleep", "mood"]
    assert table.iloc[0]["probability"] > 0.9
    assert sorted(bs.median_graph(idata).nodes) == ["coffee", "mood", "sleep"]
    assert bs.check(idata).rows
    assert bs.plot_graph(idata) is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 60 rows: some of them matter a lot
        assert np.isfinite(az.loo(idata).elpd)
    assert len(az.summary(idata, var_names=["weight"])) == 3


@pytest.mark.chain
@pytest.mark.parametrize("nodes", [[2, 1, 0], [0, 1], [1, 2]])
def test_results_whose_columns_were_sorted_or_left_out_are_refused(fitted, nodes):
    _, idata = fitted
    for read in (bs.edge_table, bs.median_graph, bs.edge_information, bs.check):
        with pytest.raises(ValueError, match="were sorted or left out"):
            read(idata.isel(node=nodes))


@pytest.mark.chain
@pytest.mark.parametrize("pairs", [[2, 1, 0], [0, 1], [1, 2]])
def test_edges_that_were_sorted_or_left_out_are_read_and_their_information_is_refused(
    fitted, pairs
):
    _, idata = fitted
    whole = bs.edge_table(idata).set_index(["source", "target"])["mean"]
    part = bs.edge_table(idata.isel(pair=pairs)).set_index(["source", "target"])["mean"]
    np.testing.assert_allclose(part, whole[part.index], rtol=1e-12)
    with pytest.raises(ValueError, match=r"depends on all 3 .*whole result"):
        bs.edge_information(idata.isel(pair=pairs))


@pytest.mark.chain
@pytest.mark.parametrize("dim", ["pair", "node"])
def test_draws_that_alone_were_sorted_are_put_back(fitted, dim):
    _, idata = fitted
    sorted_ = idata.copy()
    sorted_["posterior"] = xr.DataTree(idata["posterior"].to_dataset().isel({dim: [2, 0, 1]}))
    pd.testing.assert_frame_equal(bs.edge_information(sorted_), bs.edge_information(idata))
    pd.testing.assert_frame_equal(bs.edge_table(sorted_), bs.edge_table(idata))
    assert set(bs.map_graph(sorted_).edges) == set(bs.map_graph(idata).edges)


@pytest.mark.chain
def test_transposed_draws_have_the_same_information(fitted):
    _, idata = fitted
    turned = idata.copy()
    turned["posterior"] = turned["posterior"].to_dataset().transpose(..., "chain")
    pd.testing.assert_frame_equal(bs.edge_information(turned), bs.edge_information(idata))


@pytest.mark.chain
def test_predictive_checks_read_the_result(fitted):
    _, idata = fitted
    pairs = bs.predictive_pair_tables(idata)
    assert len(pairs) == 12
    assert pairs["inside"].mean() > 0.8
    assert len(bs.predictive_item_rest(idata)) == 3
    assert bs.predictive_sum_scores(idata)["observed"].sum() == pytest.approx(1.0)


@pytest.mark.chain
@pytest.mark.parametrize("likelihood", ["pseudo", "exact"])
@pytest.mark.parametrize(
    ("build", "options"),
    [
        (ising, {"coding": "pm", "rate": 10.0}),
        (pairwise_mrf, {"rate": 4.0}),
        (pairwise_mrf, {"rate": 4.0, "norm": np.inf}),
        (pairwise_mrf, {"rate": 4.0, "norm": "nuclear"}),
        (pairwise_mrf, {"rate": 2.0, "norm": 1, "potentials": "ordinal"}),
    ],
    ids=["ising", "l2", "linf", "nuclear", "ordinal"],
)
def test_no_point_near_the_mode_is_better(build, options, likelihood):
    if build is ising:
        model = ising(binary(), prior="laplace", likelihood=likelihood, **options)
    else:
        model = pairwise_mrf(answers(), prior="group_laplace", likelihood=likelihood, **options)
    mode = bs.find_MAP(model)
    logp = model.compile_logp(mode="FAST_COMPILE")
    point = {v.name: mode[v.name] for v in model.value_vars}
    best, rng = logp(point), np.random.default_rng(0)
    for _ in range(50):
        size = 10.0 ** -rng.integers(1, 5)
        moved = {k: v + size * rng.normal(size=v.shape) for k, v in point.items()}
        assert logp(moved) <= best + 1e-9


def test_mode_of_a_model_equals_the_solver():
    with pairwise_mrf(answers(), prior="group_laplace", rate=5.0, bias_scale=np.inf) as model:
        mode = bs.find_MAP(model)
    solution = bs.solvers.pairwise_mrf(answers(), rate=5.0, tol=1e-9)
    np.testing.assert_allclose(mode["potential"], solution.weight, atol=1e-5)
    on = [name for name, w in zip(model.coords["pair"], mode["weight"], strict=True) if w > 0]
    assert on == [f"{a} -- {b}" for a, b in solution.edges]


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (ising, {}),
        (ising, {"edge_probability": bs.StochasticBlock(2), "slab": "cauchy"}),
        (ising, {"prior": "horseshoe"}),
        (pairwise_mrf, {"prior": "group_laplace"}),
        (pairwise_mrf, {"prior": "spike_slab", "edge_probability": pm.Beta.dist(1, 2)}),
        (pairwise_mrf, {"prior": "spike_slab", "potentials": "blume_capel", "reference": 1}),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_prior_draws_of_tables(build, options):
    data = binary() if build is ising else answers()
    with build(data, **options) as model:
        prior = pm.draw([model["x"], model["edge"]], random_seed=1, mode="FAST_COMPILE")
    assert prior[0].shape == (60, 3)
    assert set(np.unique(prior[1])) <= {0, 1}
    if "slab" not in options:
        assert model.str_repr()


def test_groups_of_weights_have_labels():
    model = pairwise_mrf(answers(), prior="spike_slab")
    assert model.coords["cell"][:2] == (
        "sleep=never -- mood=never",
        "sleep=never -- mood=rarely",
    )
    assert model.coords["bias_label"][0] == "sleep=rarely"
    assert len(model.coords["cell"]) == 9 + 6 + 6


@pytest.mark.parametrize(
    ("build", "options", "words"),
    [
        (ising, {"prior": "spike"}, "spike_slab"),
        (ising, {"likelihood": "exakt"}, "exact"),
        (ising, {"coding": "pm1"}, "coding"),
        (ising, {"rate": 1.0}, '`rate` goes with prior="laplace"'),
        (ising, {"prior": "laplace", "rate": -1.0}, "positive"),
        (ising, {"prior": "horseshoe", "expected_edges": 3.0}, "below 3"),
        (ising, {"edge_probability": pm.Normal.dist()}, "StochasticBlock"),
        (ising, {"edge_probability": 1.5}, "between 0 and 1"),
        (ising, {"required": [("sleep", "tea")]}, "not a pair of columns"),
        (ising, {"bias_scale": "wide"}, "`bias_scale` must be a positive number"),
        (ising, {"slab_scale": 1e-300}, "`slab_scale`"),
        (pairwise_mrf, {"potentials": "potts"}, "potentials"),
        (pairwise_mrf, {"prior": "group_laplace", "norm": 3}, "norm"),
        (pairwise_mrf, {"potentials": "ising"}, "same number"),
        (pairwise_mrf, {"prior": "spike_slab", "norm": 2}, "`norm` goes with"),
    ],
)
def test_refusals(build, options, words):
    with pytest.raises(ValueError, match=words):
        build(binary() if build is ising else answers(), **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"blocks": 2.5}, "`blocks` must be a whole number"),
        ({"concentration": 0.0}, "`concentration` must be above 0"),
        ({"within": 3.0}, "`within` must be two positive numbers"),
        ({"between": (1.0, -1.0)}, "`between` must be above 0"),
    ],
)
def test_blocks_that_there_are_not(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        bs.StochasticBlock(**options)


def test_names_that_are_numbers_are_found_as_such():
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (40, 3)))
    for edge in ((0, 2), ("0", "2")):
        with ising(table, required=[edge]) as model:
            assert model["edge_prior"].data.tolist() == [0.5, 1.0, 0.5]


def test_tables_that_do_not_fit():
    with pytest.raises(
        bs.TableError, match="'sleep' and 'mood': more than two values; use pairwise_mrf"
    ):
        ising(answers())
    with pytest.raises(bs.TableError, match="'sleep' is constant"):
        ising(binary().assign(sleep=True))
    wide = np.random.default_rng(0).integers(0, 2, (30, 40))
    with pytest.raises(ValueError, match=r"1\.1e\+12 joint states.*pseudo"):
        ising(wide, likelihood="exact")


def days(p=30, n=80, seed=0):
    """A process in time of two states, one column for each day."""
    rng = np.random.default_rng(seed)
    x = np.empty((n, p), int)
    x[:, 0] = rng.integers(0, 2, n)
    for i in range(1, p):
        x[:, i] = np.where(rng.random(n) < 0.8, x[:, i - 1], rng.integers(0, 2, n))
    table = pd.DataFrame(x, columns=[f"d{i}" for i in range(p)])
    return table, list(itertools.pairwise(table.columns))


@pytest.fixture(scope="module")
def chained():
    """Thirty columns with the exact likelihood, drawn by NUTS."""
    table, chain = days()
    with ising(table, prior="laplace", likelihood="exact", graph=chain) as model:
        idata = pm.sample(
            60, tune=60, nuts_sampler="pymc", compute_convergence_checks=False, **QUIET
        )
        idata.update(pm.sample_prior_predictive(5, random_seed=1))
    return model, idata


@pytest.mark.chain
def test_an_exact_chain_is_sampled(chained):
    model, idata = chained
    posterior = idata["posterior"]
    assert posterior["weight"].sizes["pair"] == 29
    assert posterior["pair"].values[:2].tolist() == ["d0 -- d1", "d1 -- d2"]
    assert idata["prior_predictive"]["x"].shape == (1, 5, 80, 30)
    # A weight of a chain is the log odds ratio of its two columns, whose standard error is that of a
    # table of four counts; 120 draws know a spread to about ten per cent.
    codes = days()[0].to_numpy()
    counts = [np.bincount(2 * a + b, minlength=4) for a, b in itertools.pairwise(codes.T)]
    error = np.sqrt((1.0 / (np.array(counts) + 0.5)).sum(axis=1))
    spread = posterior["weight"].std(("chain", "draw")).values
    assert 0.6 < (spread / error).min() < (spread / error).max() < 1.5
    away = posterior["weight"].mean(("chain", "draw")).values - bs.find_MAP(model)["weight"]
    assert np.abs(away / spread).max() < 1.5


@pytest.mark.chain
def test_graphs_are_read_from_a_chain(chained):
    _, idata = chained
    table = bs.edge_table(idata)
    assert len(table) == 29
    assert set(zip(table["source"], table["target"], strict=True)) == set(days()[1])
    graph = bs.median_graph(idata)
    assert len(graph) == 30
    assert set(map(frozenset, graph.edges)) <= set(map(frozenset, days()[1]))
    assert graph.number_of_edges() > 20
    assert bs.plot_graph(idata) is not None


@pytest.mark.chain
def test_mode_on_a_graph_equals_the_solver():
    table, chain = days(p=100)
    with ising(table, prior="laplace", likelihood="exact", graph=chain, bias_scale=np.inf) as model:
        mode = bs.find_MAP(model)
    solution = bs.solvers.pairwise_mrf(
        table, potentials="ordinal", graph=chain, likelihood="exact", rate=1.0, tol=1e-9
    )
    np.testing.assert_allclose(mode["weight"], solution.weight, atol=1e-5)


@pytest.mark.chain
@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
def test_spike_and_slab_on_a_graph(likelihood):
    """The step draws what it draws where all other edges are forbidden, gaps included."""
    table, chain = days(p=4)
    table = table.astype(object)
    table.loc[2, "d1"] = None
    others = [pair for pair in itertools.combinations(table, 2) if pair not in chain]
    drawn = []
    for options in ({"graph": chain}, {"forbidden": others}):
        with ising(table, likelihood=likelihood, required=chain[:1], **options):
            idata = pm.sample(40, tune=10, compute_convergence_checks=False, **QUIET)
        drawn.append(idata["posterior"])
    few, all_pairs = drawn
    assert few["pair"].values.tolist() == ["d0 -- d1", "d1 -- d2", "d2 -- d3"]
    np.testing.assert_array_equal(few["x_missing"], all_pairs["x_missing"])
    # The same random numbers; sums in another order.
    np.testing.assert_allclose(few["weight"], all_pairs["weight"].sel(pair=few["pair"]), rtol=1e-8)
    assert (few["edge"].sel(pair="d0 -- d1") == 1).all()


@pytest.mark.chain
@pytest.mark.parametrize(
    ("build", "options"),
    [
        (ising, {"prior": "horseshoe"}),
        (ising, {"edge_probability": bs.StochasticBlock(2)}),
        (pairwise_mrf, {"prior": "group_laplace"}),
        (pairwise_mrf, {"prior": "group_laplace", "norm": "nuclear"}),
        (pairwise_mrf, {"potentials": "ordinal", "prior": "spike_slab"}),
        (pairwise_mrf, {"prior": "spike_slab", "edge_probability": pm.Beta.dist(1, 2)}),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_priors_on_a_graph(build, options):
    data = binary() if build is ising else answers()
    chain = [("mood", "sleep"), ("coffee", "mood")]
    with build(data, graph=chain, **options) as model:
        prior = pm.draw([model["x"], model["edge"]], random_seed=1, mode="FAST_COMPILE")
        point = model.initial_point()
    assert model.coords["pair"] == ("sleep -- mood", "mood -- coffee")
    assert prior[0].shape == (60, 3)
    assert prior[1].shape == (2,)
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(point))


def test_graphs_that_do_not_fit():
    table, chain = days(p=25)
    with pytest.raises(bs.TableError, match="'d99'; did you mean"):
        ising(table, graph=[("d0", "d99")])
    with pytest.raises(bs.TableError, match="d0 -- d2 is required and not in `graph`"):
        ising(table, graph=chain, required=[("d0", "d2")])
    with pytest.raises(ValueError, match=r"3\.36e\+07 joint states.*shrinks together with `graph`"):
        ising(table, graph=chain, likelihood="exact")
    every = [(a, b) for i, a in enumerate(table) for b in table.columns[i + 1 :]]
    with pytest.raises(ValueError, match=r"25 variables at once.*fewer cycles"):
        ising(table, graph=every, likelihood="exact", prior="laplace")


@pytest.mark.chain
def test_fewer_rows_than_columns():
    table = np.random.default_rng(0).integers(0, 2, (8, 12))
    with ising(table):
        idata = pm.sample(20, tune=10, compute_convergence_checks=False, **QUIET)
    assert np.isfinite(idata["posterior"]["weight"]).all()


def test_the_order_of_text_is_questioned():
    table = answers().assign(sleep=lambda t: t["sleep"].astype(str))
    with (
        pytest.warns(bs.TableWarning, match="order of the states"),
        pytest.warns(bs.TableWarning, match="the same states in different orders"),
    ):
        pairwise_mrf(table, potentials="ordinal")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pairwise_mrf(table)


@pytest.mark.parametrize("kind", ["ordinal", "blume_capel"])
def test_an_ordinal_edge_has_the_same_prior_of_the_correlation_for_any_states(kind):
    """Correlation of two columns of equally frequent states at one prior deviation of the weight."""
    found = {}
    for k in (2, 4, 7):
        table = np.stack(np.meshgrid(np.arange(k), np.arange(k))).reshape(2, -1).T[: k * k - 1]
        model = pairwise_mrf(table, potentials=kind, prior="spike_slab", slab_scale=0.5)
        scale = float(model["weight"].owner.op.dist_params(model["weight"].owner)[1].eval().item())
        scores = np.arange(k) - (k - 1) / 2
        joint = np.exp(scale * np.outer(scores, scores))
        joint /= joint.sum()
        margin = joint.sum(axis=1)
        found[k] = scores @ joint @ scores / (margin @ scores**2)
    assert found[4] == pytest.approx(found[2], rel=0.05)  # equal for weights near zero
    assert found[7] == pytest.approx(found[2], rel=0.05)


@pytest.mark.chain
@pytest.mark.parametrize("likelihood", ["pseudo", "exact"])
def test_mode_with_missing_cells_sums_them_out(likelihood):
    """No point near is better, all completions being gone through one by one."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.integers(0, 3, (30, 3)), columns=list("abc")).astype(float)
    table["b"] = np.where(rng.random(30) < 0.7, table["a"], table["b"])
    table.iloc[0, 1] = table.iloc[1, [0, 2]] = np.nan
    model = pairwise_mrf(
        table,
        potentials="ordinal",
        prior="group_laplace",
        rate=2.0,
        norm=1,
        likelihood=likelihood,
        bias_scale=2.0,
    )
    mode = bs.find_MAP(model)
    potentials = Potentials("ordinal", (3,) * 3)
    values, shares, density = summed_density(model, potentials, table.isna(), likelihood, mode)
    point = {name: mode[name] for name in ("bias", "weight")}
    assert np.count_nonzero(mode["weight"]) > 0
    best = density(point)
    for size in 10.0 ** -rng.integers(1, 5, 30):
        moved = {name: v + size * rng.normal(size=v.shape) for name, v in point.items()}
        assert density(moved) <= best + 1e-9
    assert mode["x_missing"].tolist() == values[np.argmax(shares)].tolist()


def test_modes_that_there_are_not():
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (40, 20))).astype(float)
    table.iloc[3, 1:15] = np.nan
    with pytest.raises(
        ValueError, match=r"row 3 .*14 missing values.*16,384 completions.*thresh=8"
    ):
        bs.find_MAP(ising(table, prior="laplace"))
    with ising(table, prior="laplace") as larger:
        pm.Normal("y", larger["weight"].sum(), 1.0, observed=0.0)
    with pytest.raises(ValueError, match="missing values"):
        bs.find_MAP(larger)


def test_options_that_do_not_belong_and_lists_that_are_no_tables():
    table = np.random.default_rng(0).integers(0, 2, (40, 3))
    with pytest.raises(ValueError, match="blume_capel"):
        pairwise_mrf(table, reference=1)
    with pytest.raises(bs.TableError, match=r"DataFrame|columns"):
        ising([0, 1, 0])


@pytest.mark.parametrize("potentials", ["ising", "generalized_ising", "full", "ordinal"])
def test_states_that_are_compared_have_the_same_labels_or_there_is_a_warning(potentials):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 3, (60, 3)), columns=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pairwise_mrf(table, potentials=potentials)
        if "ising" not in potentials:
            pairwise_mrf(table.assign(b=table["b"] + 1), potentials=potentials)
            return
    said = r"Column 'b': other states than 'a' has \('b': 1, 2 and 3; 'a': 0, 1 and 2\)"
    with pytest.warns(bs.data.TableWarning, match=said):
        pairwise_mrf(table.assign(b=table["b"] + 1), potentials=potentials)
