"""Centrality of nodes, against networkx, sums over matrices, and closed forms."""

import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from tools.calibration import model_runner
from tools.dags import dag_posterior, random_dags
from tools.posteriors import bernoulli_posterior, posterior

import bayesstruct as bs

from bayesstruct.distributions import IndependentEdges
from bayesstruct.graphs.records import NODEWISE


def symmetric(p, edges):
    """Matrix of weights with some edges (i, j, weight)."""
    matrix = np.zeros((p, p))
    for i, j, weight in edges:
        matrix[i, j] = matrix[j, i] = weight
    return matrix


def result(matrices, **kwargs):
    """Result of one chain whose draws are these symmetric matrices of weights."""
    matrices = np.asarray(matrices)[None]
    upper = np.triu_indices(matrices.shape[-1], 1)
    weight = matrices[..., upper[0], upper[1]]
    return posterior((weight != 0).astype(int), weight=weight, **kwargs)


def random_weights(p, share, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(0.0, 0.3, (p, p)) * (rng.random((p, p)) < share), 1)
    return upper + upper.T


def graph_of(matrix, kind=nx.Graph):
    """Networkx graph with the lengths 1 / |w| of a matrix."""
    graph = nx.from_numpy_array(matrix, create_using=kind)
    for _, _, about in graph.edges(data=True):
        about["length"] = 1 / abs(about["weight"])
    return graph


def in_order(values, p):
    return [values[k] for k in range(p)]


def of_one(tree, measure, **kwargs):
    """Values of a measure in the first draw."""
    found = bs.centrality_draws(tree, measure, **kwargs)
    return found[measure].isel(chain=0, draw=0).values


GRAPHS = {
    "dense": random_weights(7, 0.7, 1),
    "sparse, in several components": random_weights(12, 0.12, 2),
    "no edge": np.zeros((4, 4)),
    "one edge": symmetric(4, [(1, 3, -0.4)]),
    "two nodes": symmetric(2, [(0, 1, 0.5)]),
    "two nodes without an edge": np.zeros((2, 2)),
    "a ring of equal lengths": symmetric(6, [(k, (k + 1) % 6, 0.1 * (-1) ** k) for k in range(6)]),
    # 10 + 10 / 3 + 5 and 10 / 3 + 5 + 10 differ in the last digit
    "equal up to rounding": symmetric(
        8, [(0, 1, 0.1), (1, 2, 0.3), (2, 3, 0.2), (0, 4, 0.3), (4, 5, 0.2), (5, 3, 0.1)]
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_paths_of_an_undirected_graph_are_those_of_networkx(name):
    matrix, tree = GRAPHS[name], result([GRAPHS[name]])
    p, graph = len(matrix), graph_of(matrix)
    if name == "equal up to rounding":
        for _, _, about in graph.edges(data=True):
            about["length"] = round(30 * about["length"])  # whole numbers, which have no rounding
    between = nx.betweenness_centrality(graph, weight="length")
    np.testing.assert_allclose(of_one(tree, "betweenness"), in_order(between, p), atol=1e-12)
    close = nx.closeness_centrality(graph, distance="length")
    scale = 30 if name == "equal up to rounding" else 1
    np.testing.assert_allclose(of_one(tree, "closeness"), scale * np.array(in_order(close, p)))


@pytest.mark.parametrize("name", GRAPHS)
def test_sums_of_an_undirected_graph(name):
    matrix, tree = GRAPHS[name], result([GRAPHS[name]])
    p = len(matrix)
    np.testing.assert_allclose(of_one(tree, "strength"), np.abs(matrix).sum(0), atol=1e-12)
    one = matrix.sum(0)
    np.testing.assert_allclose(of_one(tree, "expected_influence"), one, atol=1e-12)
    two = of_one(tree, "expected_influence_two_step")
    np.testing.assert_allclose(two, one + matrix @ one, atol=1e-12)
    assert of_one(tree, "degree").tolist() == in_order(dict(graph_of(matrix).degree), p)


def test_bridges_are_edges_between_groups():
    matrix, tree = GRAPHS["dense"], result([GRAPHS["dense"]])
    groups = {f"v{k}": "abc"[k % 3] for k in range(7)}
    other = np.arange(7)[:, None] % 3 != np.arange(7) % 3
    strength = of_one(tree, "bridge_strength", communities=groups)
    np.testing.assert_allclose(strength, np.abs(matrix * other).sum(0))
    influence = of_one(tree, "bridge_expected_influence", communities=pd.Series(groups))
    np.testing.assert_allclose(influence, (matrix * other).sum(0))
    found = bs.centrality(tree, communities=groups)["measure"].unique().tolist()
    assert found[-2:] == ["bridge_strength", "bridge_expected_influence"]


@pytest.fixture(scope="module")
def dags():
    return random_dags(np.random.default_rng(4), 6, 7, density=0.5)


@pytest.mark.parametrize("weighted", [True, False])
def test_a_directed_graph_has_paths_along_its_arcs(dags, weighted):
    tree = dag_posterior(dags[None], weighted=weighted)
    found = bs.centrality_draws(
        tree,
        ["betweenness", "in_closeness", "out_closeness", "in_degree", "out_degree"],
    )
    weight = np.zeros((6, 7, 7))
    target, source = np.nonzero(~np.eye(7, dtype=bool))
    weight[:, source, target] = tree["posterior"]["weight" if weighted else "arc"].values[0]
    for k, matrix in enumerate(weight):
        graph, own = graph_of(matrix, nx.DiGraph), found.isel(chain=0, draw=k)
        back = graph.reverse()
        expected = {
            "betweenness": nx.betweenness_centrality(graph, weight="length"),
            "in_closeness": nx.closeness_centrality(graph, distance="length"),
            "out_closeness": nx.closeness_centrality(back, distance="length"),
            "in_degree": dict(graph.in_degree),
            "out_degree": dict(graph.out_degree),
        }
        for name, values in expected.items():
            np.testing.assert_allclose(own[name], in_order(values, 7), atol=1e-12)


def test_sums_of_a_directed_graph(dags):
    tree = dag_posterior(dags[None])
    target, source = np.nonzero(~np.eye(7, dtype=bool))
    weight = np.zeros((7, 7))
    weight[source, target] = -tree["posterior"]["weight"].values[0, 0]
    tree["posterior"]["weight"] = -tree["posterior"]["weight"]
    np.testing.assert_allclose(of_one(tree, "in_strength"), np.abs(weight).sum(0))
    np.testing.assert_allclose(of_one(tree, "out_strength"), np.abs(weight).sum(1))
    one = weight.sum(1)
    np.testing.assert_allclose(of_one(tree, "expected_influence"), one)
    two = of_one(tree, "expected_influence_two_step")
    np.testing.assert_allclose(two, one + weight @ one)
    groups = {f"v{k}": k < 3 for k in range(7)}
    other = (np.arange(7)[:, None] < 3) != (np.arange(7) < 3)
    bridge = of_one(tree, "bridge_strength", communities=groups)
    np.testing.assert_allclose(
        bridge, np.abs(weight * other).sum(0) + np.abs(weight * other).sum(1)
    )
    influence = of_one(tree, "bridge_expected_influence", communities=groups)
    np.testing.assert_allclose(influence, (weight * other).sum(1))


def test_a_star_has_its_closed_form():
    # Precision matrix 1 on the diagonal and k between the first column and the others: partial correlation -k
    p, k = 6, 0.3
    precision = np.eye(p)
    precision[0, 1:] = precision[1:, 0] = k
    deviation = 1 / np.sqrt(np.diag(precision))
    partial = -precision * np.outer(deviation, deviation) * (1 - np.eye(p))
    table = bs.centrality(result([partial, partial]), ["strength", "betweenness", "closeness"])
    table = table.set_index(["measure", "node"])
    leaf_distance = (1 / k + (p - 2) * 2 / k) / (p - 1)
    for node in ("v0", "v4"):
        centre = node == "v0"
        row = {name: table.loc[name, node] for name in ("strength", "betweenness", "closeness")}
        assert row["strength"]["mean"] == pytest.approx((p - 1) * k if centre else k)
        assert row["betweenness"]["mean"] == pytest.approx(1.0 if centre else 0.0)
        assert row["closeness"]["mean"] == pytest.approx(k if centre else 1 / leaf_distance)
        for found in row.values():
            assert found["largest"] == centre
            assert found["rank"] == (1 if centre else 4)  # the mean of 2, ..., 6
            assert found["hdi_low"] == found["hdi_high"] == found["mean"]


def test_ranks_and_intervals_of_draws():
    tree = bernoulli_posterior([0.9, 0.4, 0.6, 0.2, 0.8, 0.5], chains=2, draws=150)
    table = bs.centrality(tree, "strength", ci_prob=0.8).set_index("node")
    values = bs.centrality_draws(tree, "strength")["strength"].values.reshape(-1, 4)
    assert table["largest"].sum() == pytest.approx(1)
    assert table["rank"].sum() == pytest.approx(10)
    assert table["mean"].is_monotonic_decreasing
    for k in range(4):
        row, own = table.loc[f"v{k}"], values[:, k]
        rank = 1 + (values > own[:, None]).sum(1) + ((values == own[:, None]).sum(1) - 1) / 2
        assert row["mean"] == pytest.approx(own.mean())
        assert row["rank"] == pytest.approx(rank.mean())
        assert (row["rank_low"], row["rank_high"]) == tuple(
            np.sort(rank)[[int(0.1 * 300) - 1, int(0.9 * 300) - 1]]
        )
        # The shortest interval of 80 % of the draws, by trying all
        own = np.sort(own)
        widths = own[240:] - own[:-240]
        assert row["hdi_high"] - row["hdi_low"] == pytest.approx(widths.min(), rel=0.02)
    assert table.attrs["ci_prob"] == 0.8
    assert (table["ess"] > 100).all()
    assert (table["r_hat"] < 1.05).all()


def test_draws_without_an_edge_count_as_zero_unless_all_weights_are_asked_for():
    tree = bernoulli_posterior([0.5, 0.5, 0.5], chains=1, draws=50)
    draws = tree["posterior"]
    kept = np.abs(draws["weight"].values * draws["edge"].values)[0]
    every = np.abs(draws["weight"].values)[0]
    for flag, weight in ((False, kept), (True, every)):
        found = bs.centrality_draws(tree, "strength", all_weights=flag)
        np.testing.assert_allclose(found["strength"].sel(node="v0")[0], weight[:, 0] + weight[:, 1])
    assert "zero in that draw" in bs.centrality(tree).attrs["notes"][0]
    assert "are kept" in bs.centrality(tree, all_weights=True).attrs["notes"][0]


def test_some_draws_are_evenly_spaced_and_counted():
    tree = bernoulli_posterior([0.5, 0.5, 0.5], chains=3, draws=40)
    every = bs.centrality_draws(tree, "strength", draws=None)["strength"]
    some = bs.centrality_draws(tree, "strength", draws=30)["strength"]
    assert some.shape == (3, 10, 3)
    xr.testing.assert_allclose(some, every.isel(draw=slice(0, None, 4)))
    table = bs.centrality(tree, "strength", draws=30)
    assert table.attrs["draws"] == 30
    assert table.attrs["notes"][0].startswith("from 30 of 120 draws")


def test_graphs_without_weights_are_followed_edge_by_edge():
    tree = bernoulli_posterior([0.9, 0.4, 0.6], chains=1, draws=20)
    tree["posterior"] = tree["posterior"].to_dataset().drop_vars("weight")
    tree["constant_data"]["composite_likelihood"] = NODEWISE
    found = bs.centrality_draws(tree)
    assert list(found.data_vars) == ["betweenness", "closeness", "degree"]
    for k in range(20):
        matrix = symmetric(3, [])
        matrix[np.triu_indices(3, 1)] = tree["posterior"]["edge"].values[0, k]
        close = nx.closeness_centrality(nx.from_numpy_array(matrix + matrix.T))
        np.testing.assert_allclose(found["closeness"][0, k], in_order(close, 3))
    with pytest.raises(ValueError, match=r"'strength' needs weights, .* there are 'betweenness'"):
        bs.centrality(tree, "strength")


def test_a_saved_result_is_read(tmp_path):
    tree = bernoulli_posterior([0.9, 0.4, 0.6], draws=20)
    tree.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "result.nc", engine="h5netcdf") as again:
        pd.testing.assert_frame_equal(bs.centrality(again), bs.centrality(tree))


GROUPS = {"v0": 1, "v1": 1, "v2": 2}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"measures": "eigenvector"}, ValueError, "no measure 'eigenvector'.*'strength'"),
        ({"measures": []}, ValueError, "names none"),
        ({"measures": [3]}, ValueError, "named by a text, not 3"),
        ({"measures": "bridge_strength"}, ValueError, "needs groups of nodes: communities="),
        ({"communities": ["a", "b", "a"]}, TypeError, "must map the name of each node"),
        ({"communities": {"v0": 1, "v1": 2}}, ValueError, "no group for 'v2'"),
        ({"communities": GROUPS | {"v1": np.nan}}, ValueError, "no group for 'v1'"),
        ({"communities": GROUPS | {"w": 1}}, ValueError, "'w', which is no column"),
        ({"communities": dict.fromkeys(GROUPS, 1)}, ValueError, "all nodes in one group, 1"),
        ({"draws": 0}, ValueError, "`draws` must be a whole number from 1 up"),
        ({"ci_prob": 90}, ValueError, "`ci_prob` must be between 0 and 1"),
        ({"group": "prior"}, ValueError, "no group `prior`"),
    ],
)
def test_wrong_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        bs.centrality(bernoulli_posterior([0.9, 0.4, 0.6], draws=10), **options)


def test_what_cannot_be_read_is_refused(dags):
    with pytest.raises(
        ValueError, match="in a directed graph it is 'in_strength' or 'out_strength'"
    ):
        bs.centrality(dag_posterior(dags[None]), "strength")
    with pytest.raises(TypeError, match="got pandas"):
        bs.centrality(pd.DataFrame())
    tree = bernoulli_posterior([0.9, 0.4, 0.6], chains=1, draws=10)
    both = xr.concat([tree["posterior"]["weight"]] * 2, "group").assign_coords(group=["f", "m"])
    draws = tree["posterior"].to_dataset().drop_vars("weight")
    grouped = xr.DataTree.from_dict(
        {
            "posterior": draws.assign(weight=both),
            "constant_data": tree["constant_data"].to_dataset(),
        }
    )
    for reader in (bs.centrality, bs.degree_table, bs.communities):
        with pytest.raises(
            ValueError, match=r"groups of rows 'f', 'm': .* bs.one_group\(idata, 'f'\)"
        ):
            reader(grouped)
    tree["posterior"]["weight"][0, 3, 1] = np.nan
    tree["posterior"]["edge"][0, 3, 1] = 1
    with pytest.raises(ValueError, match="weight of 'v0 -- v2' is not a finite number"):
        bs.centrality(tree)


# --- intervals of models -----------------------------------------------------------------------


@pytest.mark.calibration
@pytest.mark.compiled
def test_intervals_of_strength_cover_as_often_as_they_say(full):
    """Tables from the model itself, on graphs and matrices from the prior: the coverage is exact, not asymptotic."""
    p, n, tables = 4, 40, 100 if full else 20
    with pm.Model() as model:
        graph = IndependentEdges("graph", p, 0.4)
        K = bs.GWishart("K", graph)
        pm.MvNormal("x", np.zeros(p), tau=K, observed=pm.Data("rows", np.zeros((n, p))))
    fit, rng = model_runner(model, "rows", draws=400), np.random.default_rng(6)
    truths = pm.draw(K, tables, random_seed=rng)
    covered = []
    for truth in truths:
        rows = rng.multivariate_normal(np.zeros(p), np.linalg.inv(truth), n)
        drawn = fit(rows, rng)["K"]
        table = bs.centrality(result(_partial(drawn)), "strength", ci_prob=0.8).set_index("node")
        right = np.abs(_partial(truth)).sum(0)
        low, high = (
            table.loc[[f"v{k}" for k in range(p)], side] for side in ("hdi_low", "hdi_high")
        )
        covered.append((low.to_numpy() <= right + 1e-9) & (right - 1e-9 <= high.to_numpy()))
    # Nodes of one table depend on each other: the error is that of means over tables. Isolated nodes, whose interval
    # often begins at their strength, 0, are covered more often.
    share = np.mean(covered, axis=1)
    error = max(share.std(ddof=1), 0.1) / np.sqrt(tables)
    assert -3.5 * error < share.mean() - 0.8 < 3.5 * error + 0.1


def _partial(precision):
    scale = np.sqrt(np.diagonal(precision, axis1=-2, axis2=-1))
    p = precision.shape[-1]
    partial = -precision / (scale[..., None] * scale[..., None, :])
    return np.where(np.eye(p) > 0, 0.0, np.where(np.abs(precision) > 1e-12, partial, 0.0))
