"""Communities of nodes, against all partitions, networkx and counts by hand."""

import networkx as nx
import numpy as np
import pytest
import xarray as xr

from tools.dags import dag_posterior, random_dags
from tools.partitions import partitions
from tools.posteriors import bernoulli_posterior, posterior

import bayesstruct as bs

from bayesstruct.graphs.nodes.communities import Communities, modularity_matrix
from bayesstruct.graphs.nodes.modularity import best_partitions


def weights(p, seed, share=0.6):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(0.0, 0.3, (p, p)) * (rng.random((p, p)) < share), 1)
    return upper + upper.T


def result(matrices):
    """Result of one chain whose draws are these symmetric matrices of weights."""
    matrices = np.asarray(matrices)[None]
    upper = np.triu_indices(matrices.shape[-1], 1)
    weight = matrices[..., upper[0], upper[1]]
    return posterior((weight != 0).astype(int), weight=weight)


def blocks(sizes, negative=False):
    """Complete graphs side by side."""
    p, out, start = sum(sizes), np.zeros((sum(sizes),) * 2), 0
    for size in sizes:
        out[start : start + size, start : start + size] = 0.3
        start += size
    if negative:
        out[:, 1] *= -1
        out[1] *= -1
    return out * (1 - np.eye(p))


def modularity(matrix, labels, resolution=1.0):
    """Definition of Newman's modularity, term by term."""
    total, out = matrix.sum(), 0.0
    for i, row in enumerate(matrix):
        for j, weight in enumerate(row):
            if labels[i] == labels[j]:
                out += weight / total - resolution * row.sum() * matrix[j].sum() / total**2
    return out


def signed_modularity(matrix, labels):
    more, less = np.maximum(matrix, 0), np.maximum(-matrix, 0)
    parts = [w.sum() * modularity(w, labels) for w in (more, less)]
    return (parts[0] - parts[1]) / (more.sum() + less.sum())


def orders(p, n=5, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(p) for _ in range(n)])


@pytest.mark.parametrize("seed", range(6))
def test_small_graphs_have_the_best_of_all_partitions(seed):
    matrix = weights(6, seed)
    for negative, value_of in (
        ("absolute", lambda labels: modularity(np.abs(matrix), labels)),
        ("zero", lambda labels: modularity(np.maximum(matrix, 0), labels)),
        ("signed", lambda labels: signed_modularity(matrix, labels)),
    ):
        labels, value = best_partitions(modularity_matrix(matrix, negative), orders(6))
        assert value == pytest.approx(value_of(labels))
        assert value == pytest.approx(max(value_of(other) for other in partitions(6)))


def test_no_node_does_better_in_another_community_or_alone():
    rng = np.random.default_rng(0)
    for _ in range(300):
        upper = np.triu(rng.normal(size=(7, 7)) * (rng.random((7, 7)) < 0.7), 1)
        pairs = modularity_matrix(upper + upper.T, "signed")
        labels, _ = best_partitions(pairs, rng.permutation(7)[None])
        gain = (pairs * (1 - np.eye(7))) @ (
            labels[:, None] == np.arange(8)
        )  # the last label is free
        assert (gain <= gain[np.arange(7), labels][:, None] + 1e-9).all()


@pytest.mark.parametrize("resolution", [0.5, 1.0, 2.0])
def test_larger_graphs_have_no_less_modularity_than_by_networkx(resolution):
    matrix = np.abs(weights(40, 1, share=0.1))
    graph = nx.from_numpy_array(matrix)
    labels, value = best_partitions(modularity_matrix(matrix, "absolute", resolution), orders(40))
    parts = [set(np.flatnonzero(labels == k)) for k in np.unique(labels)]
    own = nx.community.modularity(graph, parts, resolution=resolution)
    assert value == pytest.approx(own)
    theirs = nx.community.louvain_communities(graph, resolution=resolution, seed=1)
    # Neither search is exact: a thousandth is what starts differ by
    assert own > nx.community.modularity(graph, theirs, resolution=resolution) - 1e-3


def test_known_communities_are_found():
    tree = result([blocks([3, 5, 4], negative=True)] * 3)
    found = bs.communities(tree)
    assert found.partition.tolist() == [3, 3, 3, 1, 1, 1, 1, 1, 2, 2, 2, 2]
    assert found.number.to_dict() == {3: 1.0}
    assert (found.table["together"] == 1).all()
    assert (found.table["alone"] == 0).all()
    third = 3 * 2, 5 * 4, 4 * 3
    expected = 1 - sum(np.square(third)) / sum(third) ** 2
    assert found.modularity["mean"] == pytest.approx(expected)
    assert "negative weights count by their absolute values" in found.notes[0]
    # With signs the second node is against the others of its community
    assert bs.communities(tree, negative="signed").partition.tolist()[:3] != [3, 3, 3]


def test_draws_are_averaged_and_nodes_without_edges_are_alone():
    one, two = blocks([3, 2, 1]), blocks([2, 3, 1])
    found = bs.communities(result([one, one, one, two]))
    expected = 0.75 * (one + np.eye(6) > 0) + 0.25 * (two + np.eye(6) > 0)
    np.testing.assert_allclose(found.co_membership, expected)
    assert found.partition.to_dict() == {"v0": 1, "v1": 1, "v2": 1, "v3": 2, "v4": 2, "v5": 3}
    row = found.table.set_index("node").loc
    assert row["v2"]["together"] == pytest.approx(0.75)
    assert row["v0"]["together"] == pytest.approx((1 + 0.75) / 2)
    assert np.isnan(row["v5"]["together"])
    assert row["v5"]["alone"] == 1
    assert found.number.to_dict() == {2: 1.0}  # that of one node is not counted
    assert found.labels.dims == ("chain", "draw", "node")
    assert "1: v0, v1, v2" in repr(found)


def test_the_representative_partition_has_the_smallest_bound_of_all():
    tree = bernoulli_posterior(np.tile([0.8, 0.2, 0.5], 5), chains=1, draws=200)
    found = bs.communities(tree)
    together = found.co_membership.to_numpy()

    def bound(labels):
        return sum(
            np.log(np.sum(labels == own)) - 2 * np.log(together[i][labels == own].sum())
            for i, own in enumerate(labels)
        )

    best = min(bound(np.asarray(labels)) for labels in partitions(6))
    assert bound(found.partition.to_numpy()) == pytest.approx(best)


def test_graphs_without_edges_have_no_communities():
    found = bs.communities(result(np.zeros((2, 3, 3))))
    assert found.number.to_dict() == {0: 1.0}
    assert found.modularity["mean"] == 0
    np.testing.assert_array_equal(found.co_membership, np.eye(3))
    pair = bs.communities(result([[[0, 0.3], [0.3, 0]]] * 2))
    assert pair.partition.tolist() == [1, 1]


def test_the_same_result_has_the_same_communities():
    tree = bernoulli_posterior(np.full(45, 0.3), chains=2, draws=20)
    first, again = bs.communities(tree), bs.communities(tree)
    np.testing.assert_array_equal(first.labels, again.labels)


def test_directions_are_left_out():
    graphs = random_dags(np.random.default_rng(1), 20, 5).reshape(2, 10, 5, 5)
    found = bs.communities(dag_posterior(graphs, weighted=False))
    assert "directions of arcs were left out" in found.notes[0]
    for labels, graph in zip(
        found.labels.values.reshape(-1, 5), graphs.reshape(-1, 5, 5), strict=True
    ):
        matrix = (graph | graph.T).astype(float)
        if matrix.any():
            best = max(modularity(matrix, other) for other in partitions(5))
            assert modularity(matrix, labels) == pytest.approx(best)


def test_blocks_of_a_model_are_communities():
    tree = result([weights(4, 1)] * 3)
    with pytest.raises(ValueError, match=r"no hidden blocks .*StochasticBlock\(\)"):
        bs.communities(tree, method="blocks")
    blocks = [[[5, 5, 0, 0], [1, 1, 1, 0], [2, 2, 2, 2]]]
    tree["posterior"]["block"] = xr.DataArray(blocks, dims=("chain", "draw", "node"))
    found = bs.communities(tree, method="blocks")
    assert found.co_membership.loc["v0"].tolist() == pytest.approx([1, 1, 2 / 3, 1 / 3])
    assert found.number.to_dict() == pytest.approx({1: 2 / 3, 2: 1 / 3})
    assert found.table.set_index("node")["alone"]["v3"] == pytest.approx(1 / 3)
    matrix = np.abs(weights(4, 1))
    value = np.mean([modularity(matrix, labels) for labels in blocks[0]])
    assert found.modularity["mean"] == pytest.approx(value)


def test_communities_are_groups_for_bridges():
    tree = result([weights(8, 3)] * 4)
    found = bs.communities(tree)
    assert isinstance(found, Communities)
    by_name = bs.centrality(tree, "bridge_strength", communities=found.partition.to_dict())
    direct = bs.centrality(tree, "bridge_strength", communities=found)
    np.testing.assert_array_equal(by_name["mean"], direct["mean"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "walktrap"}, ValueError, "`method` must be one of 'modularity', 'blocks'"),
        (
            {"negative": "keep"},
            ValueError,
            "`negative` must be one of 'absolute', 'signed', 'zero'",
        ),
        ({"resolution": 0}, ValueError, "`resolution` must be above 0"),
        ({"starts": 0}, ValueError, "`starts` must be a whole number from 1 up"),
        ({"random_seed": "x"}, TypeError, "`random_seed` must be"),
        ({"draws": 2.5}, ValueError, "`draws` must be a whole number"),
    ],
)
def test_wrong_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        bs.communities(bernoulli_posterior([0.9, 0.4, 0.6], draws=5), **options)
