"""The posterior over trees against all 125 trees of five columns, and what it refuses."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.networks.kernels.scores.gaussian import BGe

PAIRS = list(itertools.combinations(range(5), 2))


def numbers(seed=0, n=30, p=5):
    """Columns a, b, ... each of which depends on one before it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    for j in range(1, p):
        x[:, j] += 0.7 * x[:, rng.integers(j)]
    return pd.DataFrame(10.0 + 3.0 * x, columns=list("abcdefgh"[:p]))


def states(seed=0, n=40):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.5, a, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.6, b > 0, rng.random(n) < 0.5).astype(int)
    d = np.where(rng.random(n) < 0.4, a, rng.integers(0, 4, n))
    e = rng.integers(0, 2, n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": e})


def all_trees(p=5):
    """All trees, as lists of edges and as directed graphs from the last column on."""
    for lines in itertools.combinations(itertools.combinations(range(p), 2), p - 1):
        graph = nx.Graph([*((i, i) for i in range(p)), *lines])
        if nx.is_connected(graph):
            graph.remove_edges_from([(i, i) for i in range(p)])
            yield lines, list(nx.bfs_edges(graph, p - 1))


def dag_score(local, arcs):
    """Log marginal likelihood of a directed graph from its families."""
    return sum(local.local(child, [i for i, j in arcs if j == child]) for child in range(local.d))


CASES = {
    "bge": (
        numbers(),
        lambda t, size: BGe(((t - t.mean()) / t.std()).to_numpy(), alpha_mu=size),
    ),
    "bdeu": (
        states(),
        lambda t, size: BDeu(t.to_numpy(), states=[3, 3, 2, 4, 2], equivalent_sample_size=size),
    ),
}


def enumerated(score, size=1.0, odds=None):
    """Trees, their log posterior probabilities, edge probabilities and the log evidence by their scores."""
    table, make = CASES[score]
    odds = np.ones((5, 5)) if odds is None else odds
    local, trees = make(table, size), list(all_trees())
    prior = np.array([np.prod([odds[e] for e in lines]) for lines, _ in trees])
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior / prior.sum())
    logs = log_prior + [dag_score(local, arcs) for _, arcs in trees]
    evidence = np.logaddexp.reduce(logs)
    probability = np.zeros((5, 5))
    for (lines, _), p in zip(trees, np.exp(logs - evidence), strict=True):
        for i, j in lines:
            probability[i, j] += p
            probability[j, i] += p
    return [lines for lines, _ in trees], logs - evidence, probability, evidence


@pytest.mark.parametrize("size", [1.0, 7.0])
@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_the_posterior_is_that_of_all_trees(score, size):
    trees, log_p, probability, evidence = enumerated(score, size)
    assert len(trees) == 125
    posterior = bs.exact.tree_posterior(CASES[score][0], score=score, equivalent_sample_size=size)
    assert list(posterior.edge_probabilities.columns) == list("abcde")
    np.testing.assert_allclose(posterior.edge_probabilities, probability, atol=1e-12)
    # Sums of some hundred logarithms.
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-12)
    mine = [posterior.log_probability(lines) for lines in trees]
    np.testing.assert_allclose(mine, log_p, atol=1e-10)
    best = {tuple(sorted(e)) for e in posterior.best.edges}
    assert best == {("abcde"[i], "abcde"[j]) for i, j in trees[int(np.argmax(log_p))]}


@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_prior_probabilities_and_forbidden_edges_weigh_trees(score):
    rng = np.random.default_rng(3)
    q = np.zeros((5, 5))
    for i, j in PAIRS:
        q[i, j] = q[j, i] = rng.uniform(0.1, 0.9)
    odds = q / (1 - q)
    odds[0, 1] = odds[1, 0] = odds[2, 4] = odds[4, 2] = 0.0
    trees, log_p, probability, evidence = enumerated(score, odds=odds)
    posterior = bs.exact.tree_posterior(
        CASES[score][0],
        score=score,
        edge_probability=pd.DataFrame(q, list("abcde"), list("abcde")),
        forbidden=[("a", "b"), ("e", "c")],
    )
    np.testing.assert_allclose(posterior.edge_probabilities, probability, atol=1e-12)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-12)
    assert posterior.edge_probabilities.loc["a", "b"] == 0
    best = {tuple(sorted(e)) for e in posterior.best.edges}
    assert best == {("abcde"[i], "abcde"[j]) for i, j in trees[int(np.argmax(log_p))]}


@pytest.mark.statistical
@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_draws_have_the_probabilities_of_all_trees(score):
    trees, log_p, *_ = enumerated(score)
    n = 20_000
    drawn = bs.exact.tree_posterior(CASES[score][0], score=score).draw(n, random_seed=1)
    found = {}
    for lines in drawn.tolist():
        key = tuple(sorted(map(tuple, lines)))
        found[key] = found.get(key, 0) + 1
    counts = np.array([found.get(tuple(lines), 0) for lines in trees])
    assert counts.sum() == n
    expected = n * np.exp(log_p)
    # The total variation of n draws is sum sqrt(p (1 - p) / n) / sqrt(2 pi) on average, and varies little.
    average = np.sqrt(np.exp(log_p) / n / (2 * np.pi)).sum()
    assert np.abs(counts - expected).sum() / (2 * n) < 1.5 * average
    # Without the data, draws are not those.
    uniform = bs.exact.tree_posterior(numbers(1), score="bge").draw(n, random_seed=1)
    wrong = sum(
        sorted(map(tuple, t)) == list(trees[int(np.argmax(log_p))]) for t in uniform.tolist()
    )
    right = counts[int(np.argmax(log_p))]
    assert abs(wrong - right) > 5 * np.sqrt(max(wrong, right))


def test_the_prior_of_equal_probabilities_is_uniform_and_draws_are_repeatable():
    posterior = bs.exact.tree_posterior(numbers())
    np.testing.assert_allclose(posterior.log_prior_total, 3 * np.log(5), rtol=1e-14)
    other = bs.exact.tree_posterior(numbers(), edge_probability=0.1)
    np.testing.assert_allclose(other.edge_probabilities, posterior.edge_probabilities, atol=1e-13)
    np.testing.assert_allclose(other.log_evidence, posterior.log_evidence, rtol=1e-13)
    draws = posterior.draw(5, random_seed=2)
    assert (draws == posterior.draw(5, random_seed=2)).all()
    assert nx.is_tree(posterior.graph(draws[0]))
    assert set(posterior.graph(draws[0]).nodes) == set("abcde")


def test_order_units_and_names_of_states_do_not_matter():
    table = numbers()
    p = bs.exact.tree_posterior(table).edge_probabilities
    other = bs.exact.tree_posterior(-5.0 * table[list("dbeca")] + 2).edge_probabilities
    np.testing.assert_allclose(other.loc[list("abcde"), list("abcde")], p, atol=1e-11)
    table = states()
    p = bs.exact.tree_posterior(table, score="bdeu").edge_probabilities
    renamed = table.replace({"a": {0: 2, 2: 0}})
    other = bs.exact.tree_posterior(renamed, score="bdeu").edge_probabilities
    np.testing.assert_allclose(other, p, atol=1e-12)


def test_two_columns_have_one_tree():
    posterior = bs.exact.tree_posterior(numbers(p=2))
    assert posterior.edge_probabilities.to_numpy().tolist() == [[0, 1], [1, 0]]
    assert list(posterior.best.edges) == [("a", "b")]
    assert posterior.draw(3, 1).tolist() == [[[0, 1]]] * 3
    score = CASES["bge"][1](numbers(p=2), 1.0)
    np.testing.assert_allclose(posterior.log_evidence, dag_score(score, [(0, 1)]), rtol=1e-12)


def test_columns_that_determine_each_other_are_joined():
    """The posterior is proper: it follows from a prior, not from a correlation of one."""
    table = numbers(n=200, p=4)
    table["twin"] = 5.0 - 2.0 * table["a"] + 1e-9 * table["b"]
    with pytest.warns(UserWarning, match="'a' and 'twin'.*linear combination"):
        posterior = bs.exact.tree_posterior(table)
    p = posterior.edge_probabilities
    assert p.loc["a", "twin"] > 1 - 1e-12
    np.testing.assert_allclose(p.to_numpy().sum() / 2, 4, rtol=1e-12)
    assert np.isfinite(posterior.log_evidence)
    # All else is as likely to be joined to one as to the other of the two, which are the same column.
    np.testing.assert_allclose(p.loc["a", ["c", "d"]], p.loc["twin", ["c", "d"]], rtol=1e-5)


def test_declared_states_count_as_states():
    table = states()
    declared = {"c": [0, 1, 2]}
    local = BDeu(table.to_numpy(), states=[3, 3, 3, 4, 2])
    logs = [dag_score(local, arcs) for _, arcs in all_trees()]
    with pytest.warns(UserWarning, match="never occur"):
        posterior = bs.exact.tree_posterior(
            table.assign(c=pd.Categorical(table["c"], [0, 1, 2])), score="bdeu"
        )
    expected = np.logaddexp.reduce(logs) - np.log(125)
    np.testing.assert_allclose(posterior.log_evidence, expected, rtol=1e-12)
    same = bs.exact.tree_posterior(table, score="bdeu", states=declared)
    np.testing.assert_allclose(same.log_evidence, expected, rtol=1e-12)


def gap(table, column="b"):
    table = table.astype(float)
    table.loc[3, column] = np.nan
    return table


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (numbers()[["a"]], {}, "column"),
        (numbers().assign(b=1.0), {}, "'b'.*constant"),
        (numbers().assign(b=lambda t: t["c"]), {}, "'b'"),
        (gap(numbers()), {}, r"'b': values are missing.*dropna.*models.tree"),
        (gap(states()), {"score": "bdeu"}, r"'b': values are missing.*dropna.*models.tree"),
        (numbers(), {"score": "bdeu"}, "'a'"),
        (numbers(), {"forbidden": [("c", x) for x in "abde"]}, "column 'c'.*allow one of them"),
        (numbers(), {"forbidden": [("a", "zz")]}, "zz"),
        (numbers(), {"edge_probability": 1.0}, "a -- b.*below 1"),
        (numbers(), {"edge_probability": 0.0}, "no tree is left"),
        (numbers(), {"edge_probability": np.full((3, 3), 0.5)}, "5 x 5"),
        (numbers(), {"score": "bde"}, "'bge', 'bdeu'"),
        (numbers(), {"equivalent_sample_size": 0}, "equivalent_sample_size"),
        (numbers(), {"states": {"a": [1, 2]}}, "states"),
    ],
)
def test_bad_input_is_refused_with_the_column_and_the_remedy(table, options, words):
    with pytest.raises((TableError, ValueError), match=f"(?s){words}"):
        bs.exact.tree_posterior(table, **options)
