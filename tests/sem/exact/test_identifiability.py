"""Conditions and bounds of sink removal, against sink removal itself."""

import itertools
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from bayesstruct.data.errors import TableError
from bayesstruct.sem.exact.identifiability import (
    SinkIdentifiability,
    sink_identifiability,
    tolerated_variance_ratio,
)
from bayesstruct.sem.solvers.sink_removal import sink_removal


def model(p, rng, low=0.5, high=1.0, share=0.5):
    """Coefficients of a random graph; row the child."""
    B = rng.uniform(low, high, (p, p)) * rng.choice([-1, 1], (p, p))
    B *= np.tril(rng.random((p, p)) < share, -1)
    order = rng.permutation(p)
    return B[np.ix_(order, order)]


def precision_of(B, variances):
    """Precision matrix of a linear model."""
    mixing = np.eye(len(B)) - B
    return mixing.T @ np.diag(1 / np.broadcast_to(variances, len(B))) @ mixing


def by_orders(B, variances, told):
    """Whether every prefix of every topological order has its sinks first, as the assumption is written."""
    graph = nx.DiGraph(list(zip(*np.nonzero(B.T), strict=True)))
    graph.add_nodes_from(range(len(B)))
    for order in nx.all_topological_sorts(graph):
        for m in range(1, len(B) + 1):
            left = list(order[:m])
            omega = np.linalg.inv(np.linalg.inv(precision_of(B, variances))[np.ix_(left, left)])
            sinks = [not graph.subgraph(left).out_degree(i) for i in left]
            value = np.diag(omega) * np.array(told)[left]
            pairs = itertools.product(range(m), repeat=2)
            if any(sinks[i] and not sinks[j] and not value[i] < value[j] for i, j in pairs):
                return False
    return True


def test_the_answer_is_that_of_all_topological_orders_and_sink_removal_keeps_to_it():
    rng, answers = np.random.default_rng(0), []
    for _ in range(60):
        p = int(rng.integers(2, 6))
        B, variances, told = model(p, rng), rng.uniform(0.4, 2, p), rng.uniform(0.7, 1.5, p)
        answer = sink_identifiability(B, variances, told=told).identifiable
        assert answer == by_orders(B, variances, told)
        if answer:
            found = sink_removal(precision=precision_of(B, variances), variances=told)
            np.testing.assert_allclose(found.weights, B, atol=1e-9)
        answers.append(answer)
    assert 10 < sum(answers) < 50


def test_equal_variances_known_ones_and_large_coefficients_are_sufficient():
    rng = np.random.default_rng(1)
    for _ in range(10):
        B, variances = model(7, rng), rng.uniform(0.05, 20, 7)
        assert sink_identifiability(B, np.full(7, 0.8)).identifiable
        assert sink_identifiability(B, 3 * variances, told=variances).identifiable
        large = model(7, rng, 3.0, 5.0)
        assert sink_identifiability(large, rng.uniform(1, 3, 7) ** 2).identifiable


def test_the_chain_and_the_fork_with_one_precision_matrix_are_not_both_identifiable():
    first, second = np.zeros((3, 3)), np.zeros((3, 3))
    first[0, 1], first[1, 2] = 0.7, np.sqrt(0.5)
    second[0, 1], second[2, 1] = 0.7, np.sqrt(0.5)
    answers = [
        sink_identifiability(first, [1, 1, 2]).margin > 1e-12,
        sink_identifiability(second, [1, 2, 1]).margin > 1e-12,
    ]
    assert answers == [False, False]


def test_the_margin_is_the_error_that_no_sink_survives():
    rng = np.random.default_rng(2)
    B, told = model(4, rng), rng.uniform(0.7, 1.5, 4)
    margin = sink_identifiability(B, told, told=told).margin
    for factor, right in ((0.999, True), (1.001, False)):
        kept = True
        for size in range(1, 5):
            for members in itertools.combinations(range(4), size):
                left = list(members)
                outside = [i for i in range(4) if i not in left]
                if B[np.ix_(left, outside)].any():
                    continue
                omega = precision_of(B[np.ix_(left, left)], told[left])
                sinks = ~B[np.ix_(left, left)].any(axis=0)
                low = np.diag(omega) - margin * factor
                high = np.diag(omega) + margin * factor
                if not sinks.all():
                    kept &= (high * told[left])[sinks].max() < (low * told[left])[~sinks].min()
        assert kept == right


def test_the_error_of_samples_is_below_the_bound():
    rng, ratios, printed = np.random.default_rng(3), [], []
    for _ in range(12):
        B, n = model(3, rng, share=0.9), 10**8
        found = sink_identifiability(B, np.full(3, 0.01))
        # Covariances of n rows, by the central limit theorem.
        noise = rng.normal(size=(3, 3)) / np.sqrt(2 * n)
        mixing = np.linalg.inv(np.eye(3) - B) * 0.1
        S, true = mixing @ (np.eye(3) + noise + noise.T) @ mixing.T, mixing @ mixing.T
        penalty = found.norm * abs(S - true).max()
        if penalty < found.largest_penalty and B.any():
            removed = sink_removal(S, penalty=penalty)
            error = abs(removed.weights - B).max()
            assert removed.weights[B != 0].all()
            places = [removed.names.index(name) for name in removed.order]
            assert not np.triu(B[np.ix_(places, places)]).any()
            ratios.append(error / found.error_bound(penalty))
            # The printed constant has the variance 0.01 as one more factor.
            printed.append(ratios[-1] / 0.01)
    assert len(ratios) >= 5 and max(ratios) <= 1 < max(printed)


def test_the_numbers_of_rows_and_the_penalty_belong_together():
    B = np.zeros((3, 3))
    B[1, 0], B[2, 1] = 0.8, -0.6
    found = sink_identifiability(B, [1.0, 1.0, 1.0])
    n = found.rows(0.1, confidence=0.9)
    assert found.error_bound(found.penalty(math.ceil(n), 0.9)) == pytest.approx(0.1, rel=1e-6)
    assert found.rows(0.05) > found.rows(0.1) > found.rows(0.1, confidence=0.5)
    assert found.error_bound(found.largest_penalty) == math.inf
    assert found.largest_total_variance == pytest.approx(1 + 0.64)
    assert (found.largest_weight, found.smallest_weight) == (0.8, 0.6)


def test_the_published_constants_are_of_no_use_as_a_default():
    values = dict.fromkeys(("margin", "smallest_element", "largest_weight"), 1.0)
    values |= dict.fromkeys(("smallest_weight", "largest_variance"), 1.0)
    found = SinkIdentifiability(True, norm=8.0, largest_total_variance=3.0, variables=50, **values)
    assert found.penalty(10_000, 0.99) == pytest.approx(50.46, abs=0.05)
    assert found.penalty(26_000_000, 0.99) < 1 < found.penalty(25_000_000, 0.99)


def test_wrong_variances_are_tolerated_up_to_the_ratio():
    rng, beyond = np.random.default_rng(4), 0
    for _ in range(60):
        B, variances = model(6, rng, 0.5, 3.0), rng.uniform(0.3, 3, 6)
        ratio = tolerated_variance_ratio(B, variances)
        factors = rng.uniform(0, 1, 6)
        factors = (factors - factors.min()) / np.ptp(factors)
        for reach, right in ((0.99, True), (6.0, False)):
            told = variances * (1 + (ratio - 1) * reach * factors)
            found = sink_removal(precision=precision_of(B, variances), variances=told)
            same = bool(abs(found.weights - B).max() < 1e-8)
            assert same or not right
            beyond += not right and not same
    assert beyond > 10


def test_the_printed_condition_on_wrong_variances_is_not_sufficient():
    B = np.array([[0.0, 0.0], [1.5, 0.0]])
    told = [0.1, 20.0]
    assert 1.5**2 > 2 / 1 - 1  # as printed
    assert tolerated_variance_ratio(B, [0.1, 10.0]) == pytest.approx(1.0225)
    found = sink_removal(precision=precision_of(B, np.array([0.1, 10.0])), variances=told)
    assert found.weights[0, 1] == pytest.approx(0.0147, abs=1e-4)  # reversed


def test_names_and_input_that_cannot_be_used():
    frame = pd.DataFrame([[0, 0], [0.5, 0]], index=list("ab"), columns=list("ab"))
    assert sink_identifiability(frame, {"b": 1.0, "a": 1.0}).identifiable
    assert tolerated_variance_ratio(np.zeros((2, 2)), [1, 1]) == math.inf
    with pytest.raises(TableError, match="cycle"):
        sink_identifiability([[0, 1], [1, 0]], [1, 1])
    with pytest.raises(TableError, match="square"):
        sink_identifiability([[0, 1]], [1, 1])
    with pytest.raises(TableError, match="another order"):
        sink_identifiability(frame.loc[["b", "a"]], [1, 1])
    with pytest.raises(TableError, match="too many sets"):
        sink_identifiability(np.zeros((20, 20)), np.ones(20))
    with pytest.raises(TableError, match="leaves out column 'b'"):
        sink_identifiability(frame, {"a": 1.0})
    with pytest.raises(ValueError, match="between 0 and 1"):
        sink_identifiability(frame, [1, 1]).penalty(10, 1.0)
