"""Trees whose inner nodes form a tree, against all trees of a few nodes."""

import itertools

import networkx as nx
import numpy as np
import pytest

from tools.enumeration import assert_matches_enumeration

from bayesstruct.graphs.spanning_trees.indicators import indicators
from bayesstruct.graphs.spanning_trees.sums import DisconnectedError, SpanningTrees
from bayesstruct.graphs.spanning_trees.two_kinds import TreesOfTwoKinds, all_trees, maximum_tree_of


def weights(n, seed=0):
    rng = np.random.default_rng(seed)
    logs = rng.normal(0.0, 2.0, (n, n))
    logs += logs.T
    logs[0, n - 1] = logs[n - 1, 0] = -np.inf
    return logs


def enumerated(logs, outer):
    """Trees whose inner nodes are connected without the others, and their log weights."""
    n, found = len(logs), []
    inner = np.flatnonzero(~np.array(outer)).tolist()
    for lines in itertools.combinations(itertools.combinations(range(n), 2), n - 1):
        graph = nx.Graph(lines)
        graph.add_nodes_from(range(n))
        if nx.is_connected(graph) and nx.is_connected(graph.subgraph(inner)):
            found.append((lines, sum(logs[i, j] for i, j in lines)))
    return [f[0] for f in found], np.array([f[1] for f in found])


CASES = ["001011", "111110", "000001", "010101", "10", "01"]


@pytest.mark.parametrize("kinds", CASES)
def test_sums_probabilities_and_the_best_tree_are_those_of_all_trees(kinds):
    outer = [kind == "1" for kind in kinds]
    logs = weights(len(outer)) if len(outer) > 2 else np.full((2, 2), 0.7)
    trees, total = enumerated(logs, outer)
    mine = TreesOfTwoKinds(logs, outer)
    np.testing.assert_allclose(mine.log_total, np.logaddexp.reduce(total), rtol=1e-12)
    expected = np.zeros_like(logs)
    for lines, p in zip(trees, np.exp(total - np.logaddexp.reduce(total)), strict=True):
        for i, j in lines:
            expected[i, j] += p
            expected[j, i] += p
    np.testing.assert_allclose(mine.probabilities, expected, atol=1e-12)
    best = trees[int(np.argmax(total))]
    assert {tuple(line) for line in maximum_tree_of(logs, outer).tolist()} == set(best)
    np.testing.assert_allclose(
        mine.log_probability(best), total.max() - np.logaddexp.reduce(total), atol=1e-12
    )


@pytest.mark.statistical
def test_draws_have_the_probabilities_of_all_trees():
    outer = [False, True, False, True, False]
    logs = weights(5, seed=2) / 2
    trees, total = enumerated(logs, outer)
    keep = np.isfinite(total)
    states = indicators(np.array(trees)[keep], 5)
    p = np.exp(total - np.logaddexp.reduce(total))[keep]
    drawn = indicators(TreesOfTwoKinds(logs, outer).draw(20_000, 1), 5)
    assert_matches_enumeration(drawn, p, states=states)
    wrong = SpanningTrees(logs).draw(20_000, 1)  # all trees
    with pytest.raises(AssertionError):
        assert_matches_enumeration(indicators(wrong, 5), p, states=states)


def test_one_kind_of_nodes_is_all_trees():
    logs = weights(4)
    for outer in (None, [True] * 4, [False] * 4):
        assert isinstance(all_trees(logs, outer), SpanningTrees)
    with pytest.raises(ValueError, match="no tree joins all nodes"):
        TreesOfTwoKinds(np.where(np.eye(4), 0.0, -np.inf), [True, False, False, True])


@pytest.mark.parametrize(
    ("outer", "lone", "other"),
    [([1, 0, 0, 1, 0], 4, 1), ([0, 1, 0, 0, 1], 4, 0)],
)
def test_an_error_numbers_nodes_as_they_were_given(outer, lone, other):
    logs = weights(5)
    cut = np.arange(5) if outer[lone] else np.flatnonzero(np.array(outer) == 0)
    logs[lone, cut] = logs[cut, lone] = -np.inf
    with pytest.raises(DisconnectedError, match=f"do not connect nodes {lone} and {other};"):
        TreesOfTwoKinds(logs, outer)
