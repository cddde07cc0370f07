import networkx as nx
import numpy as np
import pandas as pd
import pytest

from sklearn import metrics
from tools.dags import dag_posterior, random_dags
from tools.posteriors import bernoulli_posterior, sparse_posterior

import bayesstruct as bs

from bayesstruct.graphs.scores import auc, average_precision, matthews
from bayesstruct.structure import calibration_table, compare, expected_shd, inclusion_probabilities


@pytest.fixture
def scored():
    """Posterior that is wrong about some edges and has many ties."""
    rng = np.random.default_rng(7)
    tree = bernoulli_posterior(rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], 45), draws=5, chains=2)
    label = rng.random(45) < inclusion_probabilities(tree).values * 0.6 + 0.1
    i, j = np.triu_indices(10, 1)
    truth = [(f"v{a}", f"v{b}") for a, b in zip(i[label], j[label], strict=True)]
    return tree, truth, label


def test_agrees_with_scikit_learn(scored):
    tree, truth, label = scored
    p = inclusion_probabilities(tree).values
    found = compare(tree, truth)
    chosen = p >= 0.5
    expected = {
        "auc": metrics.roc_auc_score(label, p),
        "average_precision": metrics.average_precision_score(label, p),
        "brier": metrics.brier_score_loss(label, p),
        "precision": metrics.precision_score(label, chosen),
        "recall": metrics.recall_score(label, chosen),
        "f1": metrics.f1_score(label, chosen),
        "mcc": metrics.matthews_corrcoef(label, chosen),
        "shd": (label != chosen).sum(),
    }
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-12), name
    assert found.mean_probability_edges == pytest.approx(p[label].mean())
    assert found.expected_shd == pytest.approx(expected_shd(tree, truth))
    assert found.to_series()["auc"] == found.auc
    assert "auc" in repr(found)


@pytest.mark.parametrize("seed", range(5))
def test_scores_with_ties_agree_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    label, score = rng.random(200) < 0.3, rng.integers(0, 6, 200) / 5
    assert auc(label, score) == pytest.approx(metrics.roc_auc_score(label, score))
    expected = metrics.average_precision_score(label, score)
    assert average_precision(label, score) == pytest.approx(expected)


def test_undefined_scores(scored):
    tree, _, _ = scored
    empty = compare(tree, nx.empty_graph(0))
    assert np.isnan(empty.auc) and np.isnan(empty.average_precision)
    assert empty.recall == empty.f1 == empty.mcc == 0
    assert np.isnan(compare(tree, ~np.eye(10, dtype=bool)).auc)
    assert matthews(0, 0, 3, 4) == 0


def test_all_forms_of_truth_are_the_same(scored):
    tree, truth, _ = scored
    names = [f"v{i}" for i in range(10)]
    graph = nx.Graph(truth)
    graph.add_nodes_from(names)
    shuffled = np.random.default_rng(0).permutation(names)
    forms = [
        graph,
        nx.to_pandas_adjacency(graph, nodelist=shuffled) * -0.3,
        nx.to_numpy_array(graph, nodelist=names),
        [(b, a) for a, b in truth],
        {tuple(pair) for pair in truth},
    ]
    scores = [compare(tree, form).to_series() for form in forms]
    for score in scores[1:]:
        pd.testing.assert_series_equal(score, scores[0])


@pytest.mark.parametrize(
    ("truth", "error", "message"),
    [
        ([("v0", "x"), ("y", "v1")], ValueError, "'x', 'y'. The model has v0, v1, v2, v3, v4, "),
        (nx.path_graph(3), ValueError, "Unknown variables in the known graph: '0', '1', '2'"),
        (nx.DiGraph([("v0", "v1")]), ValueError, "directed"),
        (np.eye(3), ValueError, r"shape \(10, 10\), got \(3, 3\)"),
        (np.triu(np.ones((10, 10))), ValueError, "not symmetric: it differs between 'v0' and 'v1'"),
        (np.full((10, 10), np.nan), ValueError, "missing values"),
        (pd.DataFrame(np.eye(1), ["v0"], ["v0"]), ValueError, "Not in the known graph: v1"),
        ([("v0", "v1", "v2")], ValueError, "pair of names"),
        ([("v0", "v0")], ValueError, "'v0' twice"),
        (3, TypeError, "list of pairs"),
        ("sachs", TypeError, r"text 'sachs'; pass the graph.*load_network.*to_undirected"),
        (["v0", "v1"], ValueError, "pair of names, got .'v0'"),
    ],
)
def test_bad_truths(scored, truth, error, message):
    with pytest.raises(error, match=message):
        compare(scored[0], truth)


def test_threshold_and_bins(scored):
    tree, truth, _ = scored
    assert compare(tree, truth, threshold=0.9).recall <= compare(tree, truth).recall
    with pytest.raises(ValueError, match="threshold"):
        compare(tree, truth, threshold=1)
    with pytest.raises(ValueError, match="bins"):
        compare(tree, truth, bins=0)


def test_calibration_by_hand():
    tree = bernoulli_posterior([1.0, 1.0, 0.0], draws=10)
    table = calibration_table(tree, [("v0", "v1")], bins=4)
    assert table["count"].tolist() == [1, 0, 0, 2]
    assert table.loc[3, ["predicted", "observed"]].tolist() == [1.0, 0.5]
    assert np.isnan(table.loc[1, "observed"])
    assert table.high.iloc[-1] == 1


def test_calibration_of_many():
    pairs = [sparse_posterior(6, seed=s, draws=50) for s in range(4)]
    table = calibration_table([tree for tree, _ in pairs], [truth for _, truth in pairs])
    assert table["count"].sum() == 60
    with pytest.raises(ValueError, match="4 results, but 1"):
        calibration_table([tree for tree, _ in pairs], [[("v0", "v1")]])


def test_expected_distance_by_simulation():
    a = bernoulli_posterior([0.2, 0.9, 0.5], draws=4000, seed=1)
    b = bernoulli_posterior([0.7, 0.9, 0.1], draws=4000, seed=2)
    draws = [t["posterior"]["edge"].values.reshape(-1, 3) for t in (a, b)]
    simulated = (draws[0] != draws[1]).sum(axis=1).mean()
    # standard deviation of a distance is below 0.9: standard error below 0.01
    assert expected_shd(a, b) == pytest.approx(simulated, abs=0.04)
    assert expected_shd(a, b) == pytest.approx(expected_shd(b, a))


def test_expected_distance_aligns_names():
    a = bernoulli_posterior([1.0, 0.0, 0.0], draws=5)
    b = bernoulli_posterior([0.0, 0.0, 1.0], draws=5, names=["v2", "v1", "v0"])
    assert expected_shd(a, b) == 0
    assert expected_shd(a, [("v0", "v1")]) == expected_shd([("v0", "v1")], a) == 0
    with pytest.raises(ValueError, match="different variables: v0, w"):
        expected_shd(a, bernoulli_posterior([0.5] * 3, draws=5, names=["w", "v1", "v2"]))


def test_another_result_is_no_known_graph():
    tree = bernoulli_posterior([0.2, 0.9, 0.5])
    dags = dag_posterior(random_dags(np.random.default_rng(0), 20, 3).reshape(1, 20, 3, 3))
    for result in (tree, dags):
        with pytest.raises(
            TypeError, match=r"this is a result.*bs.compare.*bs.median_graph\(other\)"
        ):
            bs.structure.calibration_table(result, result)
    # What the message recommends works.
    assert bs.compare(tree, tree).shd == 0
    assert bs.compare(tree, bs.median_graph(tree)).shd == 0
