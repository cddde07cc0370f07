"""Effects of interventions in each distinct graph, on made-up results."""

import networkx as nx
import numpy as np
import pytest
import xarray as xr

from scipy import stats
from tools.dags import dag_posterior, random_dags, to_graph

import bayesstruct as bs

from bayesstruct.networks.reading.effects_by_graph import variance_share


def assign(tree, group, **variables):
    """Return a result with more variables in one group."""
    groups = {name: tree[name].to_dataset() for name in tree.children}
    groups[group] = groups[group].assign(variables)
    return xr.DataTree.from_dict(groups)


def with_parameters(graphs, *, seed=0):
    """Make up a Gaussian network with means and units."""
    rng = np.random.default_rng(seed)
    tree = dag_posterior(graphs, seed=seed)
    *draws, p, _ = graphs.shape
    weight, dims = tree["posterior"]["weight"], ("chain", "draw", "node")
    tree = assign(
        tree,
        "posterior",
        weight=weight * rng.choice([-1, 1], weight.shape),
        intercept=(dims, rng.normal(size=(*draws, p))),
        noise_variance=(dims, np.ones((*draws, p))),
    )
    units = {"location": ("node", np.arange(p) * 1.0), "scale": ("node", np.arange(p) + 1.0)}
    return assign(tree, "constant_data", **units)


@pytest.fixture(scope="module")
def graphs():
    return random_dags(np.random.default_rng(1), 400, 3, 0.5).reshape(4, 100, 3, 3)


@pytest.fixture(scope="module")
def idata(graphs):
    return with_parameters(graphs)


def path_sums(graphs, tree, value):
    """Effects of setting v0 on all columns, by all paths in each draw."""
    p = graphs.shape[-1]
    drawn = tree["posterior"]
    index = {str(label): k for k, label in enumerate(drawn["ordered_pair"].values)}
    weight = drawn["weight"].values.reshape(-1, p * (p - 1))
    intercept = drawn["intercept"].values.reshape(-1, p)
    out = np.zeros((len(weight), p))
    for r, matrix in enumerate(graphs.reshape(-1, p, p)):
        graph = to_graph(matrix)

        def total(a, b, graph=graph, own=weight[r]):
            if a == b:
                return 1.0
            paths = nx.all_simple_edge_paths(graph, a, b)
            return sum(np.prod([own[index[f"{i} -> {j}"]] for i, j in path]) for path in paths)

        mean = sum(total(f"v{k}", "v0") * intercept[r, k] for k in range(p))
        # v0 has location 0 and scale 1; column j has scale j + 1
        out[r] = [(j + 1) * total("v0", f"v{j}") * (value - mean) for j in range(p)]
    return out


def test_effects_are_sums_over_paths(graphs, idata):
    found = bs.do(idata, {"v0": 2.0}, by_graph=True, ci_prob=0.8)
    right = path_sums(graphs, idata, 2.0)
    summary = found.summary
    np.testing.assert_allclose(summary["effect"], right.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(summary["positive"], (right > 1e-12).mean(axis=0))
    np.testing.assert_allclose(summary["negative"], (right < -1e-12).mean(axis=0))
    np.testing.assert_allclose(summary["effect_low"], np.quantile(right, 0.1, axis=0), atol=1e-10)
    np.testing.assert_allclose(summary[["positive", "zero", "negative"]].sum(axis=1), 1)
    average = bs.do(idata, {"v0": 2.0}, ci_prob=0.8)
    np.testing.assert_allclose(summary["effect"], average["effect"], atol=1e-10)


@pytest.mark.parametrize("by_graph", [True, "classes"])
def test_each_graph_has_the_effects_of_its_draws(graphs, idata, by_graph):
    found = bs.do(idata, {"v0": 2.0}, by_graph=by_graph)
    right = path_sums(graphs, idata, 2.0)
    drawn = [to_graph(matrix) for matrix in graphs.reshape(-1, 3, 3)]
    if by_graph == "classes":
        drawn = [bs.cpdag(graph) for graph in drawn]
    for k, graph in enumerate(found.weights.graphs()):
        own = np.array([set(one.edges) == set(graph.edges) for one in drawn])
        table = found.table.loc[k]
        assert table["weight"].to_numpy() == pytest.approx(own.mean())
        np.testing.assert_allclose(table["effect"], right[own].mean(axis=0), atol=1e-10)
        if by_graph is True and not nx.has_path(graph, "v0", "v2"):
            assert table.loc["v2", "zero"] == 1


def test_weighted_effects_of_the_graphs_are_the_average(idata):
    found = bs.do(idata, {"v0": 2.0}, by_graph=True)
    table = found.table
    for name in ("effect", "positive", "zero", "negative"):
        mean = (table["weight"] * table[name]).groupby("node").sum()
        np.testing.assert_allclose(mean, found.summary[name], atol=1e-12)


def test_a_sign_that_depends_on_the_graph_flips():
    """v0 acts on v2 by 1 directly, or by -1 through v1; the parameters are known."""
    drawn = np.zeros((2, 50, 3, 3))
    drawn[:, ::2, 0, 2] = 1
    drawn[:, 1::2, 0, 1] = drawn[:, 1::2, 1, 2] = 1
    tree = with_parameters(drawn)
    weight = xr.zeros_like(tree["posterior"]["weight"])
    weight.loc[{"ordered_pair": "v0 -> v2"}] = 1.0
    weight.loc[{"ordered_pair": "v0 -> v1"}] = 1.0
    weight.loc[{"ordered_pair": "v1 -> v2"}] = -1.0
    drawn = tree["posterior"]
    tree = assign(tree, "posterior", weight=weight * drawn["arc"], intercept=0 * drawn["intercept"])
    summary = bs.do(tree, {"v0": 1.0}, by_graph=True).summary
    assert summary.loc["v2", "flips"] and not summary.loc["v1", "flips"]
    assert summary.loc["v2", ["positive", "negative", "zero"]].tolist() == [0.5, 0.5, 0]
    assert summary.loc["v1", ["positive", "negative", "zero"]].tolist() == [0.5, 0, 0.5]
    assert summary.loc["v2", "graph_share"] == pytest.approx(1)
    assert np.isnan(summary.loc["v0", "graph_share"])  # it is set: nothing is uncertain


def test_shares_of_variance_are_those_of_the_analysis_of_variance(rng):
    group = rng.integers(5, size=200)
    values = np.stack([rng.normal(size=200) + group, rng.normal(size=200)], axis=1)
    found = variance_share(values, group)
    for share, column in zip(found, values.T, strict=True):
        ratio = stats.f_oneway(*[column[group == k] for k in range(5)]).statistic
        assert share == pytest.approx(max(4 * (ratio - 1) / (4 * ratio + 195), 0))


def test_graphs_with_a_draw_each_explain_nothing_by_themselves(rng):
    group = np.concatenate([np.arange(150), np.arange(50), np.arange(50)])
    plain = rng.normal(size=(250, 200))
    assert variance_share(plain, group).mean() < 0.15  # a plain share of squares is 0.6
    assert np.isnan(variance_share(plain[:, :1], np.arange(250)))


def test_discrete_networks():
    """One column acts on the other in some draws, and the other way round in the rest."""
    dag = np.zeros((1, 40, 2, 2), np.int8)
    dag[:, ::4, 1, 0] = 1
    dag[:, 1::4, 0, 1] = dag[:, 2::4, 0, 1] = 1
    tree = dag_posterior(dag, names=["a", "b"], weighted=False)
    table = np.full((1, 40, 2, 4), 0.5)
    table[:, 1::4, 1] = [0.9, 0.1, 0.4, 0.6]
    table[:, 2::4, 1] = [0.4, 0.6, 0.9, 0.1]
    tree = assign(tree, "posterior", table=(("chain", "draw", "node", "cell"), table))
    constants = tree["constant_data"].to_dataset()
    constants = constants.assign(states=("node", [2, 2]), state_node=("state", [0, 0, 1, 1]))
    constants = constants.assign_coords(state=["a=0", "a=1", "b=no", "b=yes"])
    groups = {"posterior": tree["posterior"].to_dataset(), "constant_data": constants}
    tree = xr.DataTree.from_dict(groups)
    found = bs.do(tree, {"a": 1}, by_graph=True)
    row = found.summary.loc[("b", "yes")]
    # half a step from the mean of the two states up or down: .25 in a quarter of the draws each
    assert (row["positive"], row["negative"], row["zero"]) == (0.25, 0.25, 0.5)
    assert row["effect"] == pytest.approx(0)
    assert row["graph_share"] == 0
    graph = found.weights.graph(0)
    assert set(graph.edges) == {("a", "b")}
    assert found.table.loc[(0, "b", "yes"), "positive"] == pytest.approx(0.5)
    again = bs.do(tree, {"a": 1}).loc[("b", "yes"), "effect"]
    assert again == pytest.approx(row["effect"])


def test_other_words_are_refused(idata):
    with pytest.raises(ValueError, match='True, False or "classes"'):
        bs.do(idata, {"v0": 1.0}, by_graph="class")
    assert "equivalence classes" in repr(bs.do(idata, {"v0": 1.0}, by_graph="classes"))
    assert "<table" in bs.do(idata, {"v0": 1.0}, by_graph=True)._repr_html_()
