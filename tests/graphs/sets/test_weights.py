"""Distinct graphs and equivalence classes with weights."""

from collections import Counter

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from tools.dags import all_dags, dag_posterior, random_dags, to_graph

import bayesstruct as bs


@pytest.fixture(scope="module")
def graphs():
    return random_dags(np.random.default_rng(1), 400, 3, 0.5).reshape(4, 100, 3, 3)


@pytest.fixture(scope="module")
def exact():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.normal(size=(30, 3)), columns=["v2", "v0", "v1"])
    table["v1"] += 0.5 * table["v0"]
    return bs.exact.dag_posterior(table)


def test_weights_are_shares_of_draws(graphs):
    weights = bs.graph_weights(dag_posterior(graphs))
    counted = Counter(frozenset(to_graph(one).edges) for one in graphs.reshape(-1, 3, 3))
    assert len(weights) == len(counted)
    assert weights.table["weight"].sum() == pytest.approx(1)
    assert weights.table["weight"].is_monotonic_decreasing
    for k, graph in enumerate(weights.graphs()):
        assert weights.table["count"][k] == counted[frozenset(graph.edges)]
        assert graph.graph["weight"] == pytest.approx(weights.table["count"][k] / 400)
        assert weights.table["arcs"][k] == graph.number_of_edges()
        for i, j, about in graph.edges(data=True):
            assert about["probability"] == pytest.approx(graphs[..., int(i[1]), int(j[1])].mean())
    assert weights.unseen == pytest.approx(sum(n == 1 for n in counted.values()) / 400)


def test_keys_are_those_of_the_other_readers(graphs):
    tree = dag_posterior(graphs)
    weights, classes = bs.graph_weights(tree), bs.graph_weights(tree, classes=True)
    pd.testing.assert_series_equal(weights.table["key"], bs.graph_probabilities(tree)["key"])
    listed = bs.essential_graph_probabilities(tree)
    assert [*classes.table["key"]] == [*listed["key"]]
    for name in ("arcs", "edges", "graphs"):
        np.testing.assert_array_equal(classes.table[name], listed[name])
    np.testing.assert_allclose(classes.table["weight"], listed["probability"])


def test_classes_are_essential_graphs(graphs):
    weights = bs.graph_weights(dag_posterior(graphs), classes=True)
    counted = Counter(frozenset(bs.cpdag(to_graph(one)).edges) for one in graphs.reshape(-1, 3, 3))
    assert len(weights) == len(counted) == 11  # all classes of three columns
    for k, graph in enumerate(weights.graphs()):
        assert weights.table["count"][k] == counted[frozenset(graph.edges)]


def test_errors_of_independent_draws(graphs):
    table = bs.graph_weights(dag_posterior(graphs)).table
    binomial = np.sqrt(table["weight"] * (1 - table["weight"]) / 400)
    np.testing.assert_allclose(table["mcse"], binomial, rtol=0.35)
    one = bs.graph_weights(dag_posterior(np.zeros((2, 50, 3, 3)))).table
    assert 0 < one["mcse"][0] < 0.02


def test_errors_of_draws_that_hardly_move():
    drawn = np.zeros((2, 100, 2, 2))
    drawn[:, 50:, 0, 1] = 1
    table = bs.graph_weights(dag_posterior(drawn)).table
    assert table["mcse"][0] > 0.15  # about two independent draws a chain


def test_graphs_needed_for_a_share():
    drawn = np.zeros((1, 10, 2, 2))
    drawn[:, :6, 0, 1] = drawn[:, 6:9, 1, 0] = 1
    weights = bs.graph_weights(dag_posterior(drawn))
    np.testing.assert_allclose(weights.table["cumulative"], [0.6, 0.9, 1])
    assert [weights.needed(share) for share in (0.6, 0.61, 0.9, 1)] == [1, 2, 2, 3]
    with pytest.raises(ValueError, match="`share`"):
        weights.needed(0)
    with pytest.raises(IndexError, match="3 graphs"):
        weights.graph(3)
    assert "3 distinct graphs" in repr(weights)
    assert "<table" in weights._repr_html_()


def test_exact_posteriors(exact):
    weights = bs.graph_weights(exact)
    assert len(weights) == 25
    assert weights.table["weight"].sum() == pytest.approx(1)
    logs = exact.log_probabilities(weights.matrices)
    np.testing.assert_allclose(weights.table["weight"], np.exp(logs))
    classes = bs.graph_weights(exact, classes=True)
    assert len(classes) == 11
    # BGe gives all graphs of a class the same probability
    top = weights.table["weight"][weights.matrices.sum(axis=(1, 2)) == 3]
    assert classes.table.query("edges == 3")["weight"].item() == pytest.approx(top.sum())
    probability = exact.arc_probabilities.loc["v0", "v1"]
    graph = next(one for one in weights.graphs() if one.has_edge("v0", "v1"))
    assert graph.edges["v0", "v1"]["probability"] == pytest.approx(probability)


@pytest.mark.parametrize("classes", [False, True])
def test_exact_weights_beside_those_of_draws(exact, classes):
    drawn = exact.sample(4000, random_seed=1).reshape(4, 1000, 3, 3)
    tree = dag_posterior(drawn, names=list(exact.names))
    table = bs.graph_weights(tree, classes=classes, exact=exact).table
    assert table["exact"].sum() == pytest.approx(1, abs=0.01)
    assert (np.abs(table["weight"] - table["exact"]) < 5 * table["mcse"]).all()
    # the columns of the two results may be in another order
    order = [1, 2, 0]
    names = [exact.names[i] for i in order]
    other = dag_posterior(drawn[:, :, order][..., order], names=names)
    again = bs.graph_weights(other, classes=classes, exact=exact).table
    np.testing.assert_allclose(np.sort(again["exact"]), np.sort(table["exact"]))


@pytest.mark.parametrize("prior", ["uniform", "order"])
def test_probabilities_of_single_graphs(prior):
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(size=(20, 4)) @ rng.normal(size=(4, 4)))
    posterior = bs.exact.dag_posterior(table.rename(columns=str), prior=prior)
    graphs, probabilities = posterior.all_graphs()
    assert len(graphs) == len(all_dags(4))
    np.testing.assert_allclose(
        np.exp(posterior.log_probabilities(graphs)), probabilities, rtol=1e-8
    )
    cycle = np.zeros((1, 4, 4))
    cycle[0, 0, 1] = cycle[0, 1, 0] = 1
    assert posterior.log_probabilities(cycle)[0] == -np.inf
    with pytest.raises(ValueError, match="shape"):
        posterior.log_probabilities(np.zeros((3, 3)))


def test_graphs_as_dot_files(graphs, tmp_path):
    weights = bs.graph_weights(dag_posterior(graphs), classes=True)
    written = weights.write_dot(tmp_path / "graphs", 3)
    assert [path.name for path in written] == ["graph_001.dot", "graph_002.dot", "graph_003.dot"]
    text = written[0].read_text()
    assert text.startswith("digraph")
    lines = {frozenset(edge) for edge in weights.graph(0).edges}
    assert text.count("->") == len(lines)
    assert isinstance(weights.graph(0), nx.DiGraph)


def test_other_tables_are_refused(graphs, exact):
    with pytest.raises(ValueError, match="same table"):
        bs.graph_weights(dag_posterior(graphs, names=["a", "b", "c"]), exact=exact)
    with pytest.raises(ValueError, match="exact already"):
        bs.graph_weights(exact, exact=exact)
    large = bs.exact.dag_posterior(pd.DataFrame(np.random.default_rng(1).normal(size=(20, 6))))
    with pytest.raises(ValueError, match="up to 5 variables"):
        bs.graph_weights(large)
