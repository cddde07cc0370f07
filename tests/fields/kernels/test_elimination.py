"""Elimination against enumeration and transfer matrices; orders of known width; no overflow."""

import networkx as nx
import numpy as np
import pytest

from scipy.stats import chi2
from tools.random_fields import exact_distribution, feature_matrix

from bayesstruct.fields.kernels import elimination, exact_sums
from bayesstruct.fields.kernels.elimination_order import elimination_order
from bayesstruct.fields.kernels.exact_sums import ExactSums
from bayesstruct.fields.kernels.potentials import Potentials


def random_field(seed, scale=3.0):
    """Two to seven variables of two to four states, on a graph with cycles and isolated nodes."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 8))
    states = tuple(rng.integers(2, 5, p).tolist())
    graph = nx.gnp_random_graph(p, rng.choice([0.2, 0.5, 0.8]), seed=seed)
    potentials = Potentials("full", states, edges=tuple(sorted(graph.edges)))
    unary, pair = (
        scale * rng.normal(size=int(start[-1]))
        for start in (potentials.unary_start, potentials.pair_start)
    )
    return potentials, unary, pair


def eliminating(potentials):
    """Sums by elimination, even where enumeration is cheaper."""
    sums = ExactSums(potentials.states, potentials.edges)
    sums.order = elimination_order(potentials.states, potentials.edges)
    return sums


def brute_force(potentials, unary, pair):
    features = feature_matrix(potentials)
    energy = features @ np.concatenate([unary, pair])
    log_z = np.logaddexp.reduce(energy)
    return log_z, np.exp(energy - log_z), features


@pytest.mark.parametrize("seed", range(12))
def test_sums_are_those_of_enumeration(seed):
    """Tolerances: sums of at most 4^7 terms, log-potentials up to some ten."""
    potentials, unary, pair = random_field(seed)
    log_z, p, features = brute_force(potentials, unary, pair)
    direction = np.random.default_rng(seed).normal(size=features.shape[1])
    centred = features - p @ features
    covariance = centred.T @ (p * (centred @ direction))
    parts = direction[: len(unary)], direction[len(unary) :]
    enumerating = ExactSums(potentials.states, potentials.edges)
    enumerating.order = None
    for sums in (eliminating(potentials), enumerating):
        assert sums.log_partition(unary, pair) == pytest.approx(log_z, abs=1e-11)
        value, *marginals = sums.marginals(unary, pair)
        assert value == pytest.approx(log_z, abs=1e-11)
        np.testing.assert_allclose(np.concatenate(marginals), p @ features, atol=1e-12)
        product = sums.covariance_product(unary, pair, *parts)
        np.testing.assert_allclose(np.concatenate(product), covariance, atol=1e-11)


def chain(p, kind="ordinal", k=2):
    return Potentials(kind, (k,) * p, edges=tuple((i, i + 1) for i in range(p - 1)))


def test_equals_transfer_matrices_on_a_long_chain():
    """Products of matrices from both ends, with their scale taken out, for 200 variables."""
    p, k = 200, 3
    potentials = chain(p, "full", k)
    rng = np.random.default_rng(0)
    unary, pair = rng.normal(size=(p, k)), rng.normal(size=(p - 1, k, k))
    forward, scale = [np.exp(unary[0])], 0.0
    for i in range(p - 1):
        row = forward[-1] @ np.exp(pair[i]) * np.exp(unary[i + 1])
        scale += np.log(row.sum())
        forward.append(row / row.sum())
    backward = [np.ones(k)]
    for i in range(p - 2, -1, -1):
        column = np.exp(pair[i]) @ (np.exp(unary[i + 1]) * backward[-1])
        backward.append(column / column.sum())
    backward = backward[::-1]
    sums = ExactSums.of(potentials)
    assert sums.eliminates
    log_z, of_unary, of_pair = sums.marginals(unary.ravel(), pair.ravel())
    assert log_z == pytest.approx(scale + np.log(forward[-1].sum()), rel=1e-13)
    distributions = np.array(forward) * np.array(backward)
    distributions /= distributions.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(of_unary.reshape(p, k), distributions, atol=1e-13)
    for i in (0, 57, 198):
        own = forward[i][:, None] * np.exp(pair[i]) * (np.exp(unary[i + 1]) * backward[i + 1])
        np.testing.assert_allclose(of_pair.reshape(p - 1, k, k)[i], own / own.sum(), atol=1e-13)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_no_overflow_with_weights_of_fifty(sign):
    """A cycle of 10, whose log partition function is beyond the logarithm of the largest number."""
    edges = tuple(sorted(tuple(sorted((i, (i + 1) % 10))) for i in range(10)))
    potentials = Potentials("ordinal", (2,) * 10, edges=edges)
    weight, bias = np.full(10, 50.0 * sign), np.full(10, 50.0)
    log_z, p = exact_distribution(potentials, bias, weight)
    unary, pair = potentials.unary(bias), potentials.pair(weight)
    value, *marginals = eliminating(potentials).marginals(unary, pair)
    assert value == pytest.approx(log_z, rel=1e-14)
    np.testing.assert_allclose(
        np.concatenate(marginals), p @ feature_matrix(potentials), atol=1e-12
    )
    long = chain(200)
    value, *marginals = ExactSums.of(long).marginals(
        long.unary(np.full(200, 50.0)), long.pair(np.full(199, 50.0))
    )
    assert value == pytest.approx(200 * 50.0 + 199 * 50.0, rel=1e-14)
    assert np.isfinite(np.concatenate(marginals)).all()


def test_draws_have_the_joint_distribution():
    """A chi-square test over all joint states, which a draw that ignores an edge does not pass."""
    potentials = Potentials("full", (2, 3, 2, 2), edges=((0, 1), (0, 2), (1, 2), (2, 3)))
    rng = np.random.default_rng(3)
    bias, weight = (
        0.7 * rng.normal(size=s) for s in (potentials.bias_size, potentials.weight_size)
    )
    _, p = exact_distribution(potentials, bias, weight)
    rows = np.empty((20_000, 4), np.int64)

    def p_value(weight):
        unary, pair = potentials.unary(bias), potentials.pair(weight)
        eliminating(potentials).draw(rng, unary, pair, rows)
        counts = np.bincount(np.ravel_multi_index(rows.T, potentials.states), minlength=len(p))
        expected = len(rows) * p
        assert expected.min() > 5  # chi-square distribution
        return chi2.sf(((counts - expected) ** 2 / expected).sum(), len(p) - 1)

    assert p_value(weight) > 1e-3
    assert p_value(np.where(potentials.edge_of_weight == 3, 0.0, weight)) < 1e-6


def test_draws_along_a_chain_have_the_marginals_of_pairs():
    potentials = chain(60)
    rng = np.random.default_rng(1)
    unary, pair = potentials.unary(rng.normal(size=60)), potentials.pair(rng.normal(size=59))
    sums = ExactSums.of(potentials)
    _, _, of_pair = sums.marginals(unary, pair)
    rows = np.empty((10_000, 60), np.int64)
    sums.draw(rng, unary, pair, rows)
    seen = np.array([np.bincount(2 * rows[:, i] + rows[:, i + 1], minlength=4) for i in range(59)])
    # Five standard errors of a proportion, for 236 of them.
    error = np.sqrt(of_pair * (1 - of_pair) / len(rows))
    assert (np.abs(seen.ravel() / len(rows) - of_pair) < 5 * error + 1e-4).all()


GRAPHS = [
    (nx.path_graph(30), 1),
    (nx.random_labeled_tree(40, seed=1), 1),
    (nx.cycle_graph(25), 2),
    (nx.grid_2d_graph(20, 4), 4),
    (nx.complete_graph(6), 5),
    (nx.empty_graph(3), 0),
]


@pytest.mark.parametrize(("graph", "width"), GRAPHS, ids=lambda v: str(v)[:30])
def test_orders_have_the_known_treewidth(graph, width):
    graph = nx.convert_node_labels_to_integers(graph)
    order = elimination_order((3,) * len(graph), graph.edges)
    assert order.complete
    assert order.width == width
    assert sorted(clique[0] for clique in order.cliques) == sorted(graph)
    assert order.largest == 3 ** (width + 1)


def test_variables_of_many_states_are_not_joined():
    """A star whose hub has few states: the leaves go first, whatever their numbers of states."""
    order = elimination_order((2, 20, 20, 20), [(0, 1), (0, 2), (0, 3)])
    assert order.largest == 40


def test_orders_are_given_up():
    dense = nx.gnp_random_graph(200, 0.5, seed=1)
    order = elimination_order((2,) * 200, dense.edges, most=2**20)
    assert not order.complete
    assert order.cells > 2**20


def test_the_shorter_way_is_taken():
    assert ExactSums.of(chain(30)).eliminates
    assert not ExactSums.of(Potentials("ordinal", (2,) * 12)).eliminates
    dense = tuple((i, j) for i in range(8) for j in range(i + 1, 8))
    assert not ExactSums.of(Potentials("ordinal", (2,) * 8, edges=dense)).eliminates


def test_the_layout_of_a_plan_is_that_of_the_potentials():
    potentials = chain(4, "full", 3)
    order = elimination_order(potentials.states, potentials.edges)
    plan = elimination.make_plan(potentials.states, potentials.ends, order)
    assert plan.message_start[0] == potentials.unary_start[-1] + potentials.pair_start[-1]
    assert plan.table_start[-1] == order.cells


def test_what_is_too_large_is_refused_with_its_size():
    edges = tuple(sorted(tuple(sorted(e)) for e in nx.random_regular_graph(6, 100, seed=1).edges))
    words = r"1\.27e\+30 joint states.*cells or more \(at most 4,194,304\), \d\d variables.*pseudo"
    with pytest.raises(ValueError, match=words):
        ExactSums((2,) * 100, edges)
    with pytest.raises(ValueError, match=r"1\.27e\+30 joint states.*pseudo.*graph"):
        ExactSums((2,) * 100)
    assert exact_sums.MAX_CELLS == 4_194_304
