"""Averages over all trees against enumeration, and the draws of the PyMC model against both."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.classifiers.exact import averaged_tan
from bayesstruct.networks.kernels.scores.discrete import BDeu

SIZE = 2.0


def frame(seed=0, n=40):
    """Four features that depend on each other and on the class, which is the third column."""
    rng = np.random.default_rng(seed)
    a, y = rng.integers(0, 3, n), rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.3, (a + y) % 3, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.3, y, rng.integers(0, 2, n))
    d = np.where(rng.random(n) < 0.25, (b + c) % 3, rng.integers(0, 3, n))
    return pd.DataFrame({"a": a, "b": b, "class": y, "c": c, "d": d})


def all_trees():
    """Structures with each of the 16 trees over four features, each from its first one."""
    features = [0, 1, 3, 4]
    for lines in itertools.combinations(itertools.combinations(range(4), 2), 3):
        graph = nx.Graph(lines)
        if len(graph) == 4 and nx.is_connected(graph):
            dag = np.zeros((5, 5), np.int8)
            dag[2, features] = 1
            for parent, child in nx.bfs_edges(graph, 0):
                dag[features[parent], features[child]] = 1
            yield frozenset(lines), dag


def log_evidence(codes, dag):
    score = BDeu(codes, states=[3, 3, 2, 2, 3], equivalent_sample_size=SIZE)
    return sum(score.local(i, np.flatnonzero(dag[:, i])) for i in range(5))


def posterior(table):
    """Trees and their posterior probabilities from whole marginal likelihoods."""
    trees = list(all_trees())
    logs = np.array([log_evidence(table.to_numpy(), dag) for _, dag in trees])
    p = np.exp(logs - logs.max())
    return trees, p / p.sum()


def test_probabilities_of_edges_are_those_of_all_trees():
    table = frame()
    trees, p = posterior(table)
    assert len(trees) == 16
    expected = np.zeros((4, 4))
    for (lines, _), own in zip(trees, p, strict=True):
        for i, j in lines:
            expected[i, j] += own
            expected[j, i] += own
    found = averaged_tan(table, "class", equivalent_sample_size=SIZE).edge_probabilities
    assert list(found.columns) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_probabilities_of_classes_are_ratios_of_marginal_likelihoods():
    """Of the table with and without the row, summed over all trees."""
    table, rows = frame(), frame(1, 6)
    trees = list(all_trees())
    expected = []
    for row in np.array(rows):
        logs = []
        for c in range(2):
            row[2] = c
            more = np.vstack([table.to_numpy(), row])
            logs.append(np.logaddexp.reduce([log_evidence(more, dag) for _, dag in trees]))
        expected.append(np.exp(logs - np.logaddexp(*logs)))
    found = averaged_tan(table, "class", equivalent_sample_size=SIZE).probabilities(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_missing_features_are_refused():
    rows = frame(1, 3).astype(object)
    rows.iloc[1, 0] = None
    with pytest.raises(bs.TableError, match="row 1 lacks the feature 'a': fill it in, or sample"):
        averaged_tan(frame(), "class").probabilities(rows)


def test_the_class_of_new_rows_is_not_read():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.choice(["u", "v"], size=(40, 3)), columns=["a", "b", "y"])
    model = bs.exact.averaged_tan(table, "y")
    new = table[:3].assign(y="never seen")
    pd.testing.assert_frame_equal(model.probabilities(new), model.probabilities(table[:3]))
    assert repr(model) == "AveragedTAN('y' from 2 features, 40 rows)"
