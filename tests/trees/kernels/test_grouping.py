"""Trees with hidden nodes from exact distances: every minimal tree is found, lengths included."""

import itertools

import networkx as nx
import numpy as np
import pytest

from tools.latent_trees import random_tree, same_tree

from bayesstruct.trees.kernels.chow_liu_grouping import (
    blind_tree,
    fitted_lengths,
    grouped_tree,
    minimum_tree,
)
from bayesstruct.trees.kernels.grouping import (
    contracted,
    neighbour_joining,
    path_lengths,
    recursive_grouping,
)

SHORT = 1e-8


def inside(build):
    return lambda d: contracted(build(d), len(d), SHORT)


METHODS = {
    "rg": recursive_grouping,
    "nj": neighbour_joining,
    "clrg": lambda d: grouped_tree(d, None, inside(recursive_grouping)).lines,
    "clnj": lambda d: grouped_tree(d, None, inside(neighbour_joining)).lines,
}


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("method", METHODS)
def test_exact_distances_give_the_tree(method, block):
    """Two hundred random trees for each method, some of whose columns are inner nodes."""
    rng = np.random.default_rng(block)
    for _ in range(50):
        lines, m = random_tree(rng)
        d = path_lengths(lines, len(lines) + 1)[:m, :m]
        assert same_tree(contracted(METHODS[method](d), m, SHORT), lines, m)


@pytest.mark.parametrize("method", METHODS)
def test_distances_that_are_not_additive_give_another_tree(method):
    """The comparison of trees notices lengths and splits."""
    rng = np.random.default_rng(7)
    lines, m = random_tree(rng)
    d = path_lengths(lines, len(lines) + 1)[:m, :m]
    d = d**1.2
    assert not same_tree(contracted(METHODS[method](d), m, SHORT), lines, m)


def test_path_lengths_are_those_of_networkx_and_satisfy_the_four_point_condition():
    lines, _ = random_tree(np.random.default_rng(3))
    nodes = len(lines) + 1
    d = path_lengths(lines, nodes)
    graph = nx.Graph()
    graph.add_weighted_edges_from(lines)
    expected = dict(nx.all_pairs_dijkstra_path_length(graph))
    np.testing.assert_allclose(d, [[expected[i][j] for j in range(nodes)] for i in range(nodes)])
    for i, j, k, q in itertools.combinations(range(nodes), 4):
        sums = sorted([d[i, j] + d[k, q], d[i, k] + d[j, q], d[i, q] + d[j, k]])
        np.testing.assert_allclose(sums[1], sums[2], atol=1e-12)


def test_nearest_columns_of_neighbours_are_neighbours_in_the_spanning_tree():
    rng = np.random.default_rng(5)
    for _ in range(50):
        lines, m = random_tree(rng)
        d = path_lengths(lines, len(lines) + 1)
        nearest = d[:, :m].argmin(axis=1)
        spanning = {frozenset(line[:2]) for line in minimum_tree(d[:m, :m])}
        for i, j, _ in lines:
            pair = frozenset((int(nearest[i]), int(nearest[j])))
            assert len(pair) == 1 or pair in spanning


def test_blind_grouping_is_right_where_each_hidden_node_is_nearest_to_a_leaf_of_its_own():
    # Two hidden nodes with three leaves each; the first of them is near.
    lines = [
        (6, 0, 0.2),
        (6, 1, 0.5),
        (6, 2, 0.6),
        (7, 3, 0.2),
        (7, 4, 0.5),
        (7, 5, 0.7),
        (6, 7, 0.4),
    ]
    d = path_lengths(lines, 8)[:6, :6]
    assert same_tree(blind_tree(d), lines, 6)
    # A column as an inner node is not of this kind.
    lines = [(0, 1, 0.3), (0, 2, 0.4), (0, 3, 0.5)]
    d = path_lengths(lines, 4)
    assert not same_tree(contracted(blind_tree(d), 4, -1.0), lines, 4)
    assert same_tree(contracted(recursive_grouping(d), 4, SHORT), lines, 4)


def test_fitted_lengths_are_those_of_least_squares():
    rng = np.random.default_rng(2)
    lines, m = random_tree(rng)
    d = path_lengths(lines, len(lines) + 1)[:m, :m]
    pairs = [line[:2] for line in lines]
    assert same_tree(fitted_lengths(pairs, d), lines, m)
    noisy = d + 0.02 * np.abs(np.triu(rng.normal(size=d.shape), 1))
    noisy = np.triu(noisy, 1) + np.triu(noisy, 1).T
    found = fitted_lengths(pairs, noisy)
    error = path_lengths(found, len(lines) + 1)[:m, :m] - noisy
    for i, j, length in found:
        if length > 0:
            moved = [(a, b, own + 1e-4 * ((a, b) == (i, j))) for a, b, own in found]
            other = path_lengths(moved, len(lines) + 1)[:m, :m] - noisy
            # Lengths that were cut at 0 leave the others a little off.
            assert (other**2).sum() > (error**2).sum() - 1e-4 * any(own == 0 for *_, own in found)


def test_fitted_lengths_solve_the_least_squares_problem_with_a_row_for_each_pair():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        lines, m = random_tree(rng)
        pairs = [line[:2] for line in lines]
        first, second = np.triu_indices(m, 1)
        design = np.empty((len(first), len(pairs)))
        for k, (i, j) in enumerate(pairs):
            only = [(a, b, float((a, b) == (i, j))) for a, b in pairs]
            design[:, k] = path_lengths(only, len(pairs) + 1)[first, second]
        d = design @ [line[2] for line in lines] + 0.1 * rng.random(len(first))
        full = np.zeros((m, m))
        full[first, second] = full[second, first] = d
        expected = np.maximum(np.linalg.lstsq(design, d)[0], 0.0)
        found = [own for *_, own in fitted_lengths(pairs, full)]
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_short_edges_of_hidden_nodes_are_contracted():
    lines = [
        (3, 0, 0.10),
        (3, 1, 0.5),
        (3, 2, 0.6),
        (2, 4, 0.3),
        (4, 5, 0.01),
        (4, 6, 0.2),
        (5, 7, 0.4),
    ]
    found = contracted(lines, 3, -np.log(0.9))
    # Node 3 becomes column 0; hidden nodes 4 and 5 become one.
    assert sorted(tuple(sorted(line[:2])) for line in found) == [
        (0, 1),
        (0, 2),
        (2, 3),
        (3, 4),
        (3, 5),
    ]
    lines = [(0, 1, 0.01), (1, 2, 0.5)]
    assert contracted(lines, 3, 0.1) == lines


def test_three_nodes_are_a_star_and_two_an_edge():
    d = np.array([[0, 0.9, 0.8], [0.9, 0, 0.7], [0.8, 0.7, 0]])
    for build in (recursive_grouping, neighbour_joining):
        assert sorted((j, round(own, 12)) for _, j, own in build(d)) == [
            (0, 0.5),
            (1, 0.4),
            (2, 0.3),
        ]
        assert build(d[:2, :2]) == [(0, 1, 0.9)]
