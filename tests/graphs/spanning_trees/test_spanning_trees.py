"""Spanning trees against enumeration, networkx and another way to draw them."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

from bayesstruct.graphs.spanning_trees.maximum import maximum_branching, maximum_spanning_forest
from bayesstruct.graphs.spanning_trees.sums import SpanningTrees, rooted


def weights(n, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    w = spread * rng.standard_normal((n, n))
    return w + w.T


def all_trees(n):
    """All spanning trees of n nodes, as lists of lines."""
    pairs = list(itertools.combinations(range(n), 2))
    for lines in itertools.combinations(pairs, n - 1):
        if nx.is_connected(nx.Graph([*((i, i) for i in range(n)), *lines])):
            yield lines


def enumerated(logs):
    trees = list(all_trees(len(logs)))
    scores = np.array([sum(logs[i, j] for i, j in lines) for lines in trees])
    total = np.logaddexp.reduce(scores)
    probability = np.zeros(logs.shape)
    for lines, p in zip(trees, np.exp(scores - total), strict=True):
        for i, j in lines:
            probability[i, j] += p
            probability[j, i] += p
    return trees, scores - total, total, probability


@pytest.mark.parametrize("spread", [0.0, 1.0, 40.0, 400.0])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_sums_and_probabilities_are_those_of_all_trees(n, spread):
    logs = weights(n, n, spread)
    trees, log_p, total, probability = enumerated(logs)
    ours = SpanningTrees(logs)
    assert len(trees) == n ** (n - 2)
    # Sums of at most 125 numbers of size `spread`.
    np.testing.assert_allclose(ours.log_total, total, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(ours.probabilities, probability, atol=1e-11)
    mine = [ours.log_probability(lines) for lines in trees]
    np.testing.assert_allclose(mine, log_p, rtol=1e-12, atol=1e-11)


def test_the_sum_is_the_determinant_of_the_laplacian_matrix():
    logs = weights(30, 4)
    w = np.exp(logs)
    np.fill_diagonal(w, 0.0)
    laplacian = np.diag(w.sum(axis=1)) - w
    trees = SpanningTrees(logs)
    np.testing.assert_allclose(trees.log_total, np.linalg.slogdet(laplacian[1:, 1:])[1], rtol=1e-12)
    # Probability of a line: its weight times the effective resistance between its ends.
    inverse = np.linalg.pinv(laplacian)
    own = np.diag(inverse)
    resistance = own[:, None] + own[None] - 2 * inverse
    np.testing.assert_allclose(trees.probabilities, w * resistance, atol=1e-10)


def test_probabilities_of_weights_that_differ_by_hundreds_of_orders_of_magnitude():
    logs = weights(25, 5, 500.0)
    trees = SpanningTrees(logs)
    p = trees.probabilities
    assert p.min() >= 0
    assert p.max() <= 1 + 1e-12
    np.testing.assert_allclose(p.sum() / 2, 24, rtol=1e-12)
    for i, j in maximum_spanning_forest(logs):
        without = logs.copy()
        without[i, j] = without[j, i] = -np.inf
        absent = np.exp(SpanningTrees(without).log_total - trees.log_total)
        # Differences of logarithms near 10,000.
        np.testing.assert_allclose(1.0 - p[i, j], absent, atol=1e-11)


def in_whole_numbers(powers):
    """Log sum over all trees with weights 2 ** powers, and probabilities of the lines, without rounding before the end."""
    low = 5 * int(powers.min())
    total, own = 0, dict.fromkeys(itertools.combinations(range(len(powers)), 2), 0)
    for lines in all_trees(len(powers)):
        weight = 1 << (sum(int(powers[e]) for e in lines) - low)
        total += weight
        for e in lines:
            own[e] += weight
    extra = max(total.bit_length() - 100, 0)
    log_total = math.log(total >> extra) + (extra + low) * math.log(2)
    return log_total, {pair: value / total for pair, value in own.items()}


@pytest.mark.parametrize("range_", [3, 60, 1000, 6000])
@pytest.mark.parametrize("seed", range(6))
def test_probabilities_are_those_of_whole_numbers_of_any_size(range_, seed):
    """Weights are powers of 2 up to 2 ** 6000, and near ties of far weights have probabilities between."""
    rng = np.random.default_rng(seed)
    n = 5
    # Nodes in two levels of groups: many lines over the same cut have weights of the same order.
    group = rng.integers(0, 3, n)
    level = rng.integers(-range_, range_ + 1, (3, 3))
    powers = level[group[:, None], group] + rng.integers(0, 3, (n, n))
    powers = np.minimum(powers, powers.T)
    log_total, own = in_whole_numbers(powers)
    trees = SpanningTrees(powers * math.log(2))
    # Logarithms of up to 4 * 6000 * log(2) have the rounding error 2e-12 each.
    np.testing.assert_allclose(trees.log_total, log_total, rtol=1e-14, atol=1e-11)
    found = [trees.probabilities[pair] for pair in own]
    # Relative errors: those of the weights, which come from logarithms. Below, powers of 2 are no floats.
    np.testing.assert_allclose(found, [*own.values()], rtol=1e-10, atol=1e-280)


def resistance_by_inverse(powers):
    """Probabilities from the inverse of the Laplacian matrix, which has no digits left if weights differ much."""
    w = 2.0 ** powers.astype(float)
    np.fill_diagonal(w, 0.0)
    inverse = np.linalg.pinv(np.diag(w.sum(axis=1)) - w)
    own = np.diag(inverse)
    return w * (own[:, None] + own - 2 * inverse)


def test_the_inverse_of_the_laplacian_matrix_is_wrong_where_sums_of_positive_numbers_are_right():
    powers = np.zeros((5, 5), int)
    powers[:3, 3:] = powers[3:, :3] = -60
    _, own = in_whole_numbers(powers)
    assert abs(own[0, 3] - 1 / 6) < 1e-15  # one of six lines joins the two groups
    np.testing.assert_allclose(
        SpanningTrees(powers * math.log(2)).probabilities[0, 3], 1 / 6, rtol=1e-13
    )
    assert abs(resistance_by_inverse(powers)[0, 3] - 1 / 6) > 0.01


@pytest.mark.statistical
@pytest.mark.parametrize("bottleneck", [0.0, -3000.0])
def test_draws_of_five_nodes_have_the_law_of_all_trees(bottleneck):
    logs = weights(5, 11, 0.7)
    logs[:2, 2:] += bottleneck
    logs[2:, :2] += bottleneck
    trees, log_p, *_ = enumerated(logs)
    n = 200_000
    drawn = SpanningTrees(logs).draw(n, 4)
    code = np.sort(5 * drawn[..., 0] + drawn[..., 1], axis=1) @ 25 ** np.arange(4)
    known = [sorted(5 * i + j for i, j in lines) @ 25 ** np.arange(4) for lines in trees]
    counts = np.array([(code == k).sum() for k in known])
    assert counts.sum() == n
    # At this number of draws it is .006 on average if all 125 trees are equally probable, and less if not.
    assert np.abs(counts / n - np.exp(log_p)).sum() / 2 < 0.01


def test_a_way_that_is_left_out_is_noticed(monkeypatch):
    """Draws that keep all lines as old ones are those of another distribution."""
    logs = weights(4, 7)
    trees, log_p, *_ = enumerated(logs)
    ours, n = SpanningTrees(logs), 8000
    scaled = ours._scaled
    steps = type(scaled)._steps

    def without_ways(self, *arguments):
        steps(self, *arguments)
        arguments[-1][...] = 0.0

    monkeypatch.setattr(type(scaled), "_steps", without_ways)
    counts = tree_counts(ours.draw(n, 3))
    found = np.array([counts.get(tuple(sorted(lines)), 0) for lines in trees])
    assert ((found - n * np.exp(log_p)) ** 2 / (n * np.exp(log_p))).sum() > 44


def test_lines_that_are_not_there_are_in_no_tree():
    logs = np.full((4, 4), -np.inf)
    for i, j in [(0, 1), (1, 2), (2, 3), (3, 0)]:
        logs[i, j] = logs[j, i] = 0.0
    trees = SpanningTrees(logs)
    np.testing.assert_allclose(np.exp(trees.log_total), 4.0)
    np.testing.assert_allclose(trees.probabilities[0], [0, 0.75, 0, 0.75], atol=1e-14)
    logs[0], logs[:, 0] = -np.inf, -np.inf
    with pytest.raises(ValueError, match="no tree joins all nodes"):
        SpanningTrees(logs)


def tree_counts(drawn):
    keys = [tuple(sorted(map(tuple, lines))) for lines in drawn.tolist()]
    return {key: keys.count(key) for key in set(keys)}


@pytest.mark.statistical
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_draws_have_the_probabilities_of_all_trees(spread):
    logs, n = weights(4, 7, spread), 8000
    trees, log_p, *_ = enumerated(logs)
    counts = tree_counts(SpanningTrees(logs).draw(n, 3))
    found = np.array([counts.get(tuple(sorted(lines)), 0) for lines in trees])
    assert found.sum() == n
    expected = n * np.exp(log_p)
    # Chi-squared with 15 degrees of freedom: above 44 with probability 1e-4.
    assert ((found - expected) ** 2 / expected).sum() < 44


def wilson(rng, w):
    """A tree by loop-erased random walks."""
    n, parent = len(w), np.full(len(w), -1)
    inside = np.arange(n) == 0
    for start in range(n):
        node = start
        while not inside[node]:
            parent[node] = rng.choice(n, p=w[node] / w[node].sum())
            node = parent[node]
        node = start
        while not inside[node]:
            inside[node] = True
            node = parent[node]
    return parent


@pytest.mark.statistical
def test_draws_agree_with_loop_erased_random_walks():
    logs, rng = weights(7, 8), np.random.default_rng(1)
    w = np.exp(logs)
    np.fill_diagonal(w, 0.0)
    trees = SpanningTrees(logs)
    theirs, ours = np.zeros((7, 7)), np.zeros((7, 7))
    for _ in range(1500):
        parent = wilson(rng, w)
        theirs[np.arange(1, 7), parent[1:]] += 1
    for lines in trees.draw(1500, 2):
        ours[tuple(lines.T)] += 1
    # Four standard errors of a share of 1500 draws.
    error = 4 * 0.5 / np.sqrt(1500)
    np.testing.assert_allclose((theirs + theirs.T) / 1500, trees.probabilities, atol=error)
    np.testing.assert_allclose((ours + ours.T) / 1500, trees.probabilities, atol=error)


@pytest.mark.parametrize("n", [2, 5, 12])
def test_the_maximum_tree_is_that_of_networkx(n):
    w = weights(n, n + 20)
    lines = maximum_spanning_forest(w)
    other = nx.maximum_spanning_tree(nx.from_numpy_array(w - w.min() + 1.0), algorithm="prim")
    assert {*map(tuple, lines.tolist())} == {tuple(sorted(e)) for e in other.edges}


def test_forests_above_a_weight_are_the_best_among_all_forests():
    pairs = list(itertools.combinations(range(4), 2))
    for seed in range(20):
        w = weights(4, seed)
        best = max(
            sum(w[e] - 0.3 for e in lines)
            for k in range(4)
            for lines in itertools.combinations(pairs, k)
            if nx.is_forest(nx.Graph([*lines, ("a", "b")]))
        )
        lines = maximum_spanning_forest(w, least=0.3)
        np.testing.assert_allclose(sum(w[i, j] - 0.3 for i, j in lines), best, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_branchings_are_those_of_networkx(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    w = rng.standard_normal((n, n))
    parent = maximum_branching(w)
    graph = nx.from_numpy_array(w, create_using=nx.DiGraph)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    other = nx.maximum_spanning_arborescence(graph)
    kept = parent >= 0
    assert kept.sum() == n - 1
    value = w[parent[kept], np.flatnonzero(kept)].sum()
    np.testing.assert_allclose(value, other.size(weight="weight"), rtol=1e-12)


def test_a_branching_may_have_a_given_root_and_arcs_that_are_not_there():
    w = np.array([[0, 5.0, 1], [9, 0, 4], [2, 3, 0]])
    roots = np.array([-np.inf, -np.inf, 0.0])
    assert maximum_branching(w, roots).tolist() == [1, 2, -1]
    w[2, 1] = -np.inf
    assert maximum_branching(w, roots).tolist() == [2, 0, -1]
    w[2] = -np.inf
    with pytest.raises(ValueError, match="no root reaches all nodes"):
        maximum_branching(w, roots)


def test_a_tree_is_rooted_anywhere():
    lines = [(0, 1), (1, 2), (1, 3)]
    assert rooted(lines, 3).tolist() == [1, 3, 1, -1]
    with pytest.raises(ValueError, match="do not form a tree"):
        rooted([(0, 1), (0, 1), (2, 3)], 0)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.zeros((2, 3)), "square matrix"),
        ([[0, 1], [2, 0]], "not symmetric"),
        ([[0, np.nan], [np.nan, 0]], "NaN"),
        ([[0, np.inf], [np.inf, 0]], "infinite"),
    ],
)
def test_bad_weights_are_refused(bad, words):
    with pytest.raises(ValueError, match=words):
        SpanningTrees(bad)
