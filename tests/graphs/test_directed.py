"""Posteriors over directed acyclic graphs, on made-up results."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tools.dags import dag_posterior, random_dags, to_graph

import bayesstruct as bs

from bayesstruct import structure
from bayesstruct.graphs import ancestry as _ancestry
from bayesstruct.graphs.posteriors.base import distinct_rows


@pytest.fixture(scope="module")
def graphs():
    return random_dags(np.random.default_rng(1), 120, 6).reshape(2, 60, 6, 6)


@pytest.fixture(scope="module")
def idata(graphs):
    return dag_posterior(graphs)


def flat(graphs):
    return [to_graph(matrix) for matrix in graphs.reshape(-1, *graphs.shape[-2:])]


# --- probabilities ---------------------------------------------------------------------------


def test_arc_probabilities(idata, graphs):
    table = structure.arc_probabilities(idata)
    np.testing.assert_allclose(table.to_numpy(), graphs.mean((0, 1)))
    assert list(table.index) == list(table.columns) == [f"v{i}" for i in range(6)]


def test_path_probabilities_are_those_of_networkx(idata, graphs):
    expected = np.zeros((6, 6))
    for graph in flat(graphs):
        for a, b in nx.transitive_closure_dag(graph).edges:
            expected[int(a[1:]), int(b[1:])] += 1 / 120
    np.testing.assert_allclose(structure.path_probabilities(idata), expected, atol=1e-12)


def test_blanket_probabilities_are_the_moral_graph(idata, graphs):
    expected = sum(nx.to_numpy_array(nx.moral_graph(graph)) for graph in flat(graphs)) / 120
    table = structure.blanket_probabilities(idata)
    np.testing.assert_allclose(table, expected, atol=1e-12)
    np.testing.assert_array_equal(table, table.T)


def test_relations_with_more_nodes_than_bits_in_a_word():
    matrices = random_dags(np.random.default_rng(2), 3, 70, density=0.05)
    below, blanket = _ancestry.descendants(matrices), _ancestry.blankets(matrices)
    for k, matrix in enumerate(matrices):
        graph = to_graph(matrix, list(range(70)))
        closure = nx.transitive_closure_dag(graph)
        np.testing.assert_array_equal(below[k], nx.to_numpy_array(closure) > 0)
        np.testing.assert_array_equal(blanket[k], nx.to_numpy_array(nx.moral_graph(graph)) > 0)


def test_probabilities_of_the_prior_group(idata, graphs):
    both = xr.DataTree.from_dict(
        {
            "posterior": dag_posterior(np.zeros((1, 4, 6, 6)))["posterior"].to_dataset(),
            "prior": idata["posterior"].to_dataset(),
            "constant_data": idata["constant_data"].to_dataset(),
        }
    )
    np.testing.assert_allclose(
        structure.arc_probabilities(both, group="prior"), graphs.mean((0, 1))
    )
    assert not structure.path_probabilities(both).to_numpy().any()


# --- table -----------------------------------------------------------------------------------


def test_arc_table(idata, graphs):
    table = bs.arc_table(idata)
    assert list(table.columns) == [
        "source",
        "target",
        "probability",
        "prior",
        "bayes_factor",
        "mean",
        "hdi_low",
        "hdi_high",
        "ess",
        "r_hat",
    ]
    row = table.set_index(["source", "target"]).loc[("v0", "v3")]
    share = graphs[..., 0, 3].mean()
    assert row["probability"] == pytest.approx(share)
    assert row["prior"] == 0.25
    assert row["bayes_factor"] == pytest.approx(share / (1 - share) / (0.25 / 0.75))
    weight = idata["posterior"]["weight"].sel(ordered_pair="v0 -> v3")
    assert row["mean"] == pytest.approx(float(weight.mean()))
    assert row["hdi_low"] <= 0 < row["hdi_high"]
    assert table["probability"].is_monotonic_decreasing
    assert "interventions" in table.attrs["notes"][0]


def test_arc_table_of_discrete_networks_has_no_weights(graphs):
    table = bs.arc_table(dag_posterior(graphs, weighted=False))
    assert not {"mean", "hdi_low", "hdi_high"} & set(table.columns)
    assert len(table) == 30


def test_other_readers_say_what_to_use(idata):
    with pytest.raises(ValueError, match=r"bs\.arc_table.*bs\.path_probabilities"):
        bs.edge_table(idata)
    with pytest.raises(ValueError, match=r"Bayesian network.*bs\.median_graph"):
        bs.symmetrize(idata)
    groups = {name: idata[name].to_dataset() for name in ("posterior", "constant_data")}
    groups["constant_data"] = groups["constant_data"].drop_vars("arc_acyclic")
    with pytest.raises(ValueError, match="dependency network"):
        structure.arc_probabilities(xr.DataTree.from_dict(groups))
    with pytest.raises(TypeError, match="DataTree"):
        structure.path_probabilities(idata["posterior"].to_dataset())


# --- graphs ----------------------------------------------------------------------------------


def test_median_graph_has_the_probable_arcs():
    drawn = np.zeros((2, 10, 3, 3))
    drawn[..., 0, 1] = 1
    drawn[:, :4, 1, 2] = 1
    graph = bs.median_graph(dag_posterior(drawn))
    assert isinstance(graph, nx.DiGraph)
    assert list(graph.nodes) == ["v0", "v1", "v2"]
    assert list(graph.edges) == [("v0", "v1")]
    assert graph.edges["v0", "v1"]["probability"] == 1
    assert graph.edges["v0", "v1"]["weight"] == pytest.approx(0.5, abs=0.1)
    assert graph.graph == {"threshold": 0.5, "left_out": 0}
    assert len(bs.median_graph(dag_posterior(drawn), 0.3).edges) == 2


def test_median_graph_leaves_out_the_least_probable_arc_of_a_cycle():
    """Three graphs, each two arcs of a triangle: every arc has probability 2/3 or more."""
    drawn = np.zeros((1, 10, 3, 3))
    for draws, arcs in [(range(4), "ab"), (range(4, 7), "bc"), (range(7, 10), "ca")]:
        for arc in arcs:
            i = "abc".index(arc)
            drawn[:, list(draws), i, (i + 1) % 3] = 1
    graph = bs.median_graph(dag_posterior(drawn, names=["x", "y", "z"]))
    # a: x -> y has 0.7, b: y -> z 0.7, c: z -> x 0.6
    assert sorted(graph.edges) == [("x", "y"), ("y", "z")]
    assert graph.graph["left_out"] == 1


@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.5])
def test_median_graph_is_acyclic_at_any_threshold(idata, threshold):
    assert nx.is_directed_acyclic_graph(bs.median_graph(idata, threshold))


def test_graph_probabilities_and_keys(graphs):
    tree = dag_posterior(graphs[:, [0, 1, 0, 2, 0]], weighted=False)
    table = bs.graph_probabilities(tree)
    assert table.attrs["n_graphs"] == 6
    np.testing.assert_allclose(table["probability"], [0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
    best = bs.map_graph(tree)
    assert best.graph == {"probability": 0.3, "visits": 3}
    assert set(best.edges) == set(to_graph(graphs[0, 0]).edges)
    assert table["arcs"][0] == best.number_of_edges()
    again = structure.graph_from_key(tree, table["key"][2])
    assert set(again.edges) == set(to_graph(graphs[0, 1]).edges)
    with pytest.raises(ValueError, match="not one of a directed graph"):
        structure.graph_from_key(tree, "00")
    assert len(bs.graph_probabilities(tree, top=2)) == 2


def test_all_arcs_as_one_graph(idata):
    graph = bs.to_networkx(idata)
    assert isinstance(graph, nx.DiGraph)
    assert graph.number_of_edges() == 30
    table = bs.arc_table(idata).set_index(["source", "target"])
    for a, b, about in graph.edges(data=True):
        assert about["probability"] == pytest.approx(table.loc[(a, b), "probability"])
        assert about["bayes_factor"] == pytest.approx(table.loc[(a, b), "bayes_factor"])
        assert about["weight"] == pytest.approx(table.loc[(a, b), "mean"])


# --- comparisons -----------------------------------------------------------------------------


def test_compare_with_a_known_graph(idata, graphs):
    truth = to_graph(graphs[0, 0])
    result = bs.compare(idata, truth)
    median = bs.median_graph(idata)
    assert result.shd == structure.structural_hamming_distance(median, truth)
    assert result.sid == structure.structural_intervention_distance(truth, median)
    one, other = structure.cpdag(median), structure.cpdag(truth)
    assert result.essential_shd == structure.structural_hamming_distance(one, other)
    every = [structure.structural_hamming_distance(graph, truth) for graph in flat(graphs)]
    assert result.expected_shd == pytest.approx(np.mean(every))
    assert bs.expected_shd(truth, idata) == pytest.approx(np.mean(every))
    assert result.n_pairs == 30
    assert result.n_arcs == truth.number_of_edges()
    assert "sid" in repr(result)


def test_compare_takes_matrices_tables_and_pairs(idata, graphs):
    truth = to_graph(graphs[0, 0])
    forms = [graphs[0, 0], nx.to_pandas_adjacency(truth), list(truth.edges)]
    wanted = bs.compare(idata, truth).to_series()
    for form in forms:
        np.testing.assert_array_equal(bs.compare(idata, form).to_series(), wanted)


def test_a_posterior_at_the_truth_is_perfect(graphs):
    truth = to_graph(graphs[0, 0])
    tree = dag_posterior(np.broadcast_to(graphs[0, 0], (2, 5, 6, 6)))
    result = bs.compare(tree, truth)
    assert result.auc == result.skeleton_auc == result.f1 == result.mcc == 1
    assert result.shd == result.sid == result.essential_shd == result.expected_shd == 0
    assert bs.compare(tree, truth.reverse()).shd == truth.number_of_edges()


def test_cyclic_and_undirected_truths(idata):
    cyclic = [("v0", "v1"), ("v1", "v2"), ("v2", "v0")]
    result = bs.compare(idata, cyclic)
    assert np.isnan(result.sid) and np.isnan(result.essential_shd)
    assert result.n_arcs == 3
    with pytest.raises(ValueError, match="undirected"):
        bs.compare(idata, nx.path_graph(["v0", "v1"]))
    coefficients = pd.DataFrame(np.eye(6, k=-1) * 0.7, *2 * [[f"v{i}" for i in range(6)]])
    for matrix in (coefficients, coefficients.to_numpy()):
        with pytest.raises(ValueError, match=r"0\.7.*rows parents.*\.T"):
            bs.compare(idata, matrix)
    with pytest.raises(ValueError, match="Unknown variables"):
        bs.compare(idata, [("v0", "w")])


def test_distance_of_two_posteriors(idata, graphs):
    names = ["v3", "v0", "v5", "v1", "v2", "v4"]
    order = [int(name[1:]) for name in names]
    turned = dag_posterior(graphs[..., order, :][..., order], names=names)
    every = flat(graphs)
    pairs = [structure.structural_hamming_distance(a, b) for a in every for b in every]
    assert bs.expected_shd(idata, turned) == pytest.approx(np.mean(pairs))
    assert bs.expected_shd(idata, idata) == pytest.approx(np.mean(pairs))


def test_calibration_counts_every_ordered_pair(idata, graphs):
    table = structure.calibration_table([idata, idata], [graphs[0, 0], graphs[1, 1]])
    assert table["count"].sum() == 60


def test_distinct_rows_without_columns_and_in_order():
    assert distinct_rows(np.zeros((4, 0), bool)).count.tolist() == [4]
    rows = np.array([[1, 0], [0, 1], [0, 1], [1, 1]], bool)
    found = distinct_rows(rows)
    np.testing.assert_array_equal(found.rows, [[0, 1], [1, 0], [1, 1]])
    np.testing.assert_array_equal(found.rows[found.index], rows)


# --- directions ------------------------------------------------------------------------------


def one_way(arcs, p=3):
    matrix = np.zeros((p, p), int)
    for a, b in arcs:
        matrix[a, b] = 1
    return matrix


def test_every_reader_tells_an_arc_from_its_reverse(tmp_path):
    there, back = one_way([(0, 1)]), one_way([(1, 0), (1, 2)])
    idata = dag_posterior(np.array([[there, there], [there, back]]))
    assert structure.n_edges(idata).values.tolist() == [[1, 1], [1, 2]]
    table = bs.arc_table(idata).set_index(["source", "target"])["probability"]
    assert len(table) == 6
    assert (table["v0", "v1"], table["v1", "v0"]) == (0.75, 0.25)
    graphs = bs.graph_probabilities(idata)
    assert graphs["arcs"].tolist() == [1, 2]
    for key, expected in zip(graphs["key"], (there, back), strict=True):
        assert nx.utils.graphs_equal(
            nx.DiGraph(structure.graph_from_key(idata, key).edges),
            nx.DiGraph(to_graph(expected).edges),
        )
    for graph in (bs.median_graph(idata), bs.map_graph(idata)):
        assert list(graph.edges) == [("v0", "v1")]
    weighted = bs.to_networkx(idata)
    assert isinstance(weighted, nx.DiGraph)
    assert weighted.edges["v1", "v0"]["probability"] == 0.25
    right, wrong = (bs.compare(idata, [arc]) for arc in (("v0", "v1"), ("v1", "v0")))
    assert (right.shd, right.recall, wrong.shd, wrong.recall) == (0, 1, 1, 0)
    distance = structure.graph_distance(idata, [("v1", "v0")])
    assert distance.values.tolist() == [[1, 1], [1, 1]]
    # A reversed arc is one difference: three draws differ by it, the fourth by the other arc
    assert structure.expected_shd(idata, [("v1", "v0")]) == pytest.approx(1.0)
    bins = structure.calibration_table(idata, [("v0", "v1")])
    assert bins["count"].sum() == 6
    assert bins.set_index("predicted").loc[0.75, "observed"] == 1
    structure.write_edge_list(idata, tmp_path / "arcs.csv")
    written = pd.read_csv(tmp_path / "arcs.csv").set_index(["source", "target"])["probability"]
    assert (written["v0", "v1"], written["v1", "v0"]) == (0.75, 0.25)
    for undirected in (bs.edge_table, bs.inclusion_probabilities, bs.credible_edges):
        with pytest.raises(ValueError, match=r"bs\.arc_table"):
            undirected(idata)
