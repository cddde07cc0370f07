"""Simulated tables have the correlations of their tree."""

import itertools

import networkx as nx
import numpy as np
import pytest

import bayesstruct as bs


@pytest.mark.parametrize("shape", ["random", "star", "double_star", "chain", "leaves"])
def test_trees_are_minimal(shape):
    for seed in range(5):
        table = bs.simulate.latent_tree(3, p=12, shape=shape, random_seed=seed)
        assert nx.is_tree(table.graph)
        seen = [v for v, hidden in table.graph.nodes(data="hidden") if not hidden]
        assert seen == list(table.data.columns) == [f"x{j}" for j in range(12)]
        assert all(table.graph.degree(v) > 2 for v in table.hidden)
        if shape in ("leaves", "chain"):
            assert all(table.graph.degree(v) == 1 for v in seen)
    hidden = {"star": 1, "double_star": 2, "chain": 10}
    assert table.hidden.shape == (3, hidden.get(shape, table.hidden.shape[1]))


@pytest.mark.parametrize(("kind", "k"), [("gaussian", None), ("discrete", 2), ("discrete", 4)])
def test_correlations_are_products_along_paths(kind, k):
    n = 40_000
    table = bs.simulate.latent_tree(n, p=6, kind=kind, states=k, random_seed=1)
    every = table.data.join(table.hidden)
    r = every.corr()
    for a, b in itertools.combinations(every.columns, 2):
        path = nx.shortest_path(table.graph, a, b)
        steps = [table.graph.edges[e] for e in itertools.pairwise(path)]
        product = np.prod([own["weight"] for own in steps])
        # Five standard errors; states 0, 1, ... of this model have the same correlation.
        assert abs(r.loc[a, b] - product) < 5 / np.sqrt(n)
        length = sum(own["distance"] for own in steps)
        scale = k - 1 if kind == "discrete" else 1
        np.testing.assert_allclose(length, -scale * np.log(abs(product)))


def test_a_given_tree_and_seeds():
    graph = nx.star_graph(["top", "a", "b", "c"])
    graph.nodes["top"]["hidden"] = True
    one, two = (bs.simulate.latent_tree(5, graph=graph, random_seed=1) for _ in range(2))
    assert list(one.data.columns) == ["a", "b", "c"] and list(one.hidden.columns) == ["top"]
    assert one.data.equals(two.data)
    assert not any("weight" in own for *_, own in graph.edges(data=True))
    assert repr(one) == "LatentTreeSimulation(5 x 3 table, 1 hidden node)"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"p": 2}, "`p`"),
        ({"shape": "ring"}, "'random', 'star'"),
        ({"kind": "text"}, "'gaussian', 'discrete'"),
        ({"kind": "discrete", "states": 1}, "`states` must be"),
        ({"states": 3}, "`states` belongs to kind='discrete'; leave it out"),
        (
            {"graph": nx.path_graph(3), "shape": "star"},
            "`shape` belongs to .*`graph`; leave it out",
        ),
        ({"correlations": (0.8, 0.2)}, "exchange"),
        ({"correlations": (0.0, 0.2)}, "correlations"),
        ({"correlations": 0.5}, "smallest and the largest.*give it twice"),
        ({"correlations": (0.1, 0.2, 0.3)}, "smallest and the largest"),
        ({"graph": nx.path_graph([1, "1", 2])}, "two nodes whose name is '1'"),
        ({"graph": nx.cycle_graph(3)}, "tree"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        bs.simulate.latent_tree(10, **options)
    with pytest.raises(TypeError, match="networkx"):
        bs.simulate.latent_tree(10, graph=nx.DiGraph([(0, 1)]))
