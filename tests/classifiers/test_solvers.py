"""Structures of classifiers against enumeration, and their probabilities against sums over all states."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.classifiers.kernels.predictions import class_logs
from bayesstruct.classifiers.kernels.scores import SCORES, ClassifierScore
from bayesstruct.classifiers.solvers.classifier import network_classifier
from bayesstruct.classifiers.solvers.structures import search, tree_dag


def frame(seed=0, n=120, classes=("no", "yes")):
    """Four features that depend on each other and on the class, which is the third column."""
    rng = np.random.default_rng(seed)
    a, y = rng.integers(0, 3, n), rng.integers(0, len(classes), n)
    b = np.where(rng.random(n) < 0.7, (a + y) % 3, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.6, y % 2, rng.integers(0, 2, n))
    d = np.where(rng.random(n) < 0.6, (b + c) % 3, rng.integers(0, 3, n))
    labels = np.array(classes)[y]
    return pd.DataFrame({"a": a, "b": b, "class": labels, "c": c, "d": d})


def own_score(kind, seed=0):
    codes = frame(seed).assign(**{"class": lambda t: (t["class"] == "yes") * 1}).to_numpy()
    return ClassifierScore(codes, [3, 3, 2, 2, 3], 2, kind)


def rooted_trees():
    """All structures with a tree over four features, as (5, 5) arrays."""
    features = [0, 1, 3, 4]
    for parents in itertools.product(range(-1, 4), repeat=4):
        dag = np.zeros((5, 5), np.int8)
        dag[2, features] = 1
        for child, parent in enumerate(parents):
            if parent >= 0:
                dag[features[parent], features[child]] = 1
        graph = nx.from_numpy_array(dag, create_using=nx.DiGraph)
        if parents.count(-1) == 1 and nx.is_directed_acyclic_graph(graph):
            yield dag


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("seed", range(3))
def test_the_best_tree_is_that_of_enumeration(kind, seed):
    score = own_score(kind, seed)
    trees = list(rooted_trees())
    assert len(trees) == 64  # 4 ** 3 rooted trees
    best = max(score.total(dag) for dag in trees)
    np.testing.assert_allclose(score.total(search(score, "tan")), best, rtol=1e-12)


@pytest.mark.parametrize("kind", ["fcll", "mdl", "acll"])
def test_hill_climbing_ends_where_no_change_of_one_arc_improves(kind):
    score = own_score(kind)
    dag = search(score, "ghc2")
    top = score.total(dag)
    assert top >= score.total(search(score, "naive"))
    features = [0, 1, 3, 4]
    assert (dag[2, features] == 1).all()
    for i, j in itertools.permutations(features, 2):
        for change in ({(i, j): 1}, {(i, j): 0}, {(i, j): 0, (j, i): 1}):
            other = dag.copy()
            for place, value in change.items():
                other[place] = value
            graph = nx.from_numpy_array(other, create_using=nx.DiGraph)
            if nx.is_directed_acyclic_graph(graph) and (other[features].sum(axis=0) <= 2).all():
                assert score.total(other) <= top + 1e-9


def exhaustive(classifier, row):
    """Class probabilities by the sum over all states of missing features, from the tables themselves."""
    names = list(classifier.names)
    at = names.index(classifier.target)
    options = [
        range(len(levels)) if j == at or value is None else [levels.index(value)]
        for j, (levels, value) in enumerate(zip(classifier.levels, row, strict=True))
    ]
    total = np.zeros(len(classifier.levels[at]))
    for states in itertools.product(*options):
        p = 1.0
        for i, own in enumerate(classifier.tables):
            place, step = 0, 1
            for j in np.flatnonzero(classifier.dag[:, i]):
                place += step * states[j]
                step *= len(classifier.levels[j])
            p *= own[place * len(classifier.levels[i]) + states[i]]
        total[states[at]] += p
    return total / total.sum()


@pytest.mark.parametrize("structure", ["naive", "tan", "ghc2"])
@pytest.mark.parametrize("classes", [("no", "yes"), ("l", "m", "n")])
@pytest.mark.parametrize("order", [["a", "b", "class", "c", "d"], ["class", "d", "c", "b", "a"]])
def test_probabilities_are_sums_over_all_states(structure, classes, order):
    table = frame(classes=classes)[order]  # feature parents stand before or after the target
    classifier = network_classifier(table, "class", structure=structure)
    arcs = sum(map(len, classifier.parents.values()))
    assert arcs in {"naive": (0,), "tan": (3,), "ghc2": (4, 5)}[structure]
    rows = table[:12].astype(object)
    for row, names in ((3, ["a"]), (4, [*"ab"]), (5, [*"bcd"]), (6, [*"abcd"])):
        rows.loc[row, names] = None
    found = classifier.probabilities(rows)
    expected = [exhaustive(classifier, list(row)) for row in rows.itertuples(index=False)]
    assert list(found.columns) == list(classes)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    # A row without features has the probabilities of the classes themselves.
    shares = table["class"].value_counts().reindex(list(classes)) + 0.5
    np.testing.assert_allclose(found.iloc[6], shares / shares.sum(), rtol=1e-12)


def test_naive_bayes_is_that_of_scikit_learn():
    naive_bayes = pytest.importorskip("sklearn.naive_bayes")
    table = frame(n=200)
    x, y = table.drop(columns="class").to_numpy(), table["class"].to_numpy()
    share = (table["class"].value_counts().sort_index() + 0.5) / (len(table) + 1)
    other = naive_bayes.CategoricalNB(alpha=0.5, class_prior=share.to_numpy()).fit(x, y)
    ours = network_classifier(table, "class", structure="naive").probabilities(table)
    np.testing.assert_allclose(ours, other.predict_proba(x), rtol=1e-10)


def test_probabilities_of_many_features_do_not_underflow():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 9, (3, 701))
    dag = tree_dag(np.append(-1, np.arange(699)), 700)
    tables = rng.dirichlet(np.ones(9), size=(701, 18)).reshape(701, 162)
    tables[700, :2] = 0.5
    states = np.append(np.full(700, 9), 2)
    # Each feature sends its message along a chain of 700.
    rows = codes.copy()
    rows[0, :350] = -1
    found = class_logs(rows, dag, tables, states, 700)
    assert np.isfinite(found).all()
    direct = [
        [
            np.log(0.5)
            + sum(
                np.log(tables[j, ((row[j - 1] + 9 * c) if j else c) * 9 + row[j]])
                for j in range(700)
            )
            for c in range(2)
        ]
        for row in rows[1:]
    ]
    np.testing.assert_allclose(found[1:], direct, rtol=1e-11)


def test_an_array_has_its_target_by_number_and_rows_without_it():
    table = frame()
    codes = table.assign(**{"class": (table["class"] == "yes") * 1}).to_numpy()
    classifier = network_classifier(codes, 2)
    assert classifier.target == "x2"
    with_it = classifier.probabilities(codes[:5])
    np.testing.assert_array_equal(
        with_it, classifier.probabilities(np.delete(codes[:5], 2, axis=1))
    )
    named = network_classifier(table, "class").probabilities(table[:5])
    np.testing.assert_allclose(with_it, named, rtol=1e-12)


def test_rows_keep_their_labels_and_columns_may_come_in_any_order():
    table = frame()
    classifier = network_classifier(table, "class")
    rows = table[["d", "c", "b", "a"]].iloc[[7, 3]]
    found = classifier.probabilities(rows)
    assert list(found.index) == [7, 3]
    np.testing.assert_array_equal(found, classifier.probabilities(table).loc[[7, 3]])
    assert classifier.graph.has_edge("class", "a")
    assert "4 features, 3 arcs between them, fcll" in repr(classifier)


def spoilt(**columns):
    return frame().assign(**columns)


BAD = [
    (lambda: network_classifier(frame(), "klass"), "unknown target 'klass'; did you mean 'class'"),
    (
        lambda: network_classifier(spoilt(**{"class": "yes"}), "class"),
        r"the target 'class' has one class \('yes'\)",
    ),
    (
        lambda: network_classifier(spoilt(**{"class": np.nan}), "class"),
        "the target 'class' has no class in any row: fill in",
    ),
    (
        lambda: network_classifier(spoilt(**{"class": np.linspace(0, 1, 120)}), "class"),
        "the target 'class' holds numbers that are not whole.*a classifier predicts one of a few",
    ),
    (
        lambda: network_classifier(spoilt(b=np.linspace(0, 1, 120)), "class"),
        "[Cc]olumn 'b' holds numbers",
    ),
    (lambda: network_classifier(spoilt(b=1), "class"), "[Cc]olumn 'b' is constant"),
    (
        lambda: network_classifier(
            frame().mask(np.eye(120, 5, -3) > 0), "class", incomplete_rows="error"
        ),
        "columns 'a', 'b', 'class', 'c' and 'd': values are missing in 5 rows",
    ),
    (
        lambda: network_classifier(
            frame().replace({"class": {"no": None}}), "class", states={"class": ["no", "yes"]}
        ),
        "one class",
    ),
    (
        lambda: network_classifier(
            pd.concat([frame(), frame()[:2].assign(**{"class": None})], ignore_index=True),
            "class",
            incomplete_rows="error",
        ),
        r"the target 'class' is missing in 2 rows: drop these rows \(data.dropna",
    ),
    (
        lambda: network_classifier(frame()[["a", "class"]], "class"),
        "1 feature beside the target 'class'",
    ),
    (
        lambda: network_classifier(frame(), "class").probabilities(spoilt(b=7)),
        "[Cc]olumn 'b' has the state 7, which the model does not know",
    ),
    (
        lambda: network_classifier(frame(), "class").probabilities(frame().drop(columns="b")),
        "Column 'b' of the model is absent",
    ),
    (
        lambda: network_classifier(
            frame().assign(**{"class": frame()["class"].where(frame()["class"] == "yes")}), "class"
        ),
        "one class",
    ),
    (
        lambda: network_classifier(
            frame().assign(b=frame()["b"].where(frame()["class"] == "yes")), "class"
        ),
        r"column 'b': values are missing \(most often 'b', in \d+ rows\), and the \d+ complete rows have fewer than two classes of 'class'",
    ),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_tables_are_refused_by_column_and_remedy(call, words):
    with pytest.raises(bs.TableError, match=words):
        call()


@pytest.mark.parametrize("structure", ["naive", "tan", "ghc2"])
def test_rows_with_missing_values_are_left_out_and_said(structure):
    rng = np.random.default_rng(4)
    table = frame().astype(object)
    table["b"] = table["b"].where(rng.random(120) > 0.2)
    table.loc[:4, "class"] = None
    words = rf"Rows with missing values are left out, {table.isna().any(axis=1).sum()} of 120 \(most often 'b'"
    with pytest.warns(bs.TableWarning, match=words):
        found = network_classifier(table, "class", structure=structure)
    wanted = network_classifier(table.dropna(), "class", structure=structure)
    np.testing.assert_array_equal(found.dag, wanted.dag)
    np.testing.assert_array_equal(found.tables, wanted.tables)
    assert np.isfinite(found.probabilities(table).to_numpy()).all()


def test_a_class_that_is_lost_with_its_rows_is_named():
    table = frame().astype(object)
    table.loc[:9, "class"], table.loc[:9, "b"] = "rare", None
    with pytest.warns(bs.TableWarning, match="Among them are all rows of the class 'rare'"):
        found = network_classifier(table, "class")
    assert "rare" in found.probabilities(frame()).columns


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"incomplete_rows": "keep"}, "incomplete_rows"),
        ({"structure": "tree"}, "structure"),
        ({"score": "cll"}, "score"),
        ({"smoothing": 0}, "smoothing"),
        ({"equivalent_sample_size": -1}, "equivalent_sample_size"),
    ],
)
def test_unknown_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        network_classifier(frame(), "class", **options)


def test_too_many_missing_features_are_refused_where_the_structure_is_no_tree():
    rng = np.random.default_rng(3)
    x = pd.DataFrame(rng.integers(0, 2, (80, 14)), columns=[f"f{j}" for j in range(14)])
    table = x.assign(y=rng.integers(0, 2, 80))
    empty = pd.DataFrame([[None] * 13 + [1]], columns=x.columns, dtype=object)
    classifier = network_classifier(table, "y", structure="ghc2", score="log_likelihood")
    with pytest.raises(bs.TableError, match=r"row 0 can be completed in 8\.19e"):
        classifier.probabilities(empty)
    assert network_classifier(table, "y").probabilities(empty).shape == (1, 2)
