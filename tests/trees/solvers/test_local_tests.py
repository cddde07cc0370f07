"""Pairwise tests against SciPy's, and neighbourhoods against all sets of neighbours."""

import itertools
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from scipy.stats import chi2_contingency, f_oneway, pearsonr

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.networks.kernels.scores.gaussian import BGe


def chain(n=300, p=5, weights=(0.7,), seed=0):
    """Numbers each of which depends on the one before, with variance 1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    for j in range(1, p):
        r = weights[(j - 1) % len(weights)]
        x[:, j] = r * x[:, j - 1] + np.sqrt(1 - r * r) * x[:, j]
    return pd.DataFrame(x, columns=list("abcdefghijklmnopqrstuvwxyz"[:p]))


def test_p_values_are_those_of_scipy():
    frame = chain(60, 4)
    frame["c"] = pd.Categorical(np.digitize(frame["c"], [-0.5, 0.7])).rename_categories(str)
    frame["d"] = np.where(frame["d"] > 0, "yes", "no")
    found = bs.solvers.pairwise_tests(frame).set_index(["first", "second"])
    np.testing.assert_allclose(
        found.loc[("a", "b"), "p_value"], pearsonr(frame["a"], frame["b"]).pvalue, rtol=1e-9
    )
    groups = [own["b"] for _, own in frame.groupby("c", observed=True)]
    np.testing.assert_allclose(
        found.loc[("b", "c"), "p_value"], f_oneway(*groups).pvalue, rtol=1e-9
    )
    counts = pd.crosstab(frame["c"], frame["d"])
    g = chi2_contingency(counts, correction=False, lambda_="log-likelihood")
    np.testing.assert_allclose(found.loc[("c", "d"), "p_value"], g.pvalue, rtol=1e-9)
    p = found["p_value"].to_numpy()
    assert (np.diff(p) >= 0).all() and (found["adjusted"] >= p).all()
    np.testing.assert_allclose(found["adjusted"].iloc[0], 6 * p[0])


def test_ends_of_a_strong_chain_depend_more_than_neighbours_with_a_weak_one():
    """What pairwise tests cannot do, and neighbourhoods can."""
    frame = chain(2_000, 4, weights=(0.9, 0.9, 0.3))
    ranked = bs.solvers.pairwise_tests(frame)
    first = [frozenset(pair) for pair in ranked[["first", "second"]].to_numpy().tolist()]
    assert first.index(frozenset("ac")) < first.index(frozenset("cd"))
    assert ranked.set_index(["first", "second"]).loc[("a", "c"), "adjusted"] < 1e-10
    graph = bs.solvers.local_neighbourhoods(frame).graph()
    assert set(map(frozenset, graph.edges)) == {frozenset("ab"), frozenset("bc"), frozenset("cd")}


@pytest.mark.parametrize("score", ["bge", "bdeu"])
@pytest.mark.parametrize("most", [0, 1, 2, 4])
def test_neighbourhoods_are_the_best_of_all_sets(score, most):
    frame = chain(40, weights=(0.6, 0.3))
    if score == "bge":
        local = BGe(((frame - frame.mean()) / frame.std()).to_numpy(), alpha_mu=2.0)
    else:
        frame = (frame > 0.2).astype(int)
        local = BDeu(frame.to_numpy(), states=[2] * 5, equivalent_sample_size=2.0)
    found = bs.solvers.local_neighbourhoods(
        frame, score=score, max_degree=most, equivalent_sample_size=2.0
    )
    for i, name in enumerate(frame.columns):
        sets = [
            own
            for k in range(most + 1)
            for own in itertools.combinations([j for j in range(5) if j != i], k)
        ]
        assert len(sets) == sum(math.comb(4, k) for k in range(most + 1))
        scores = np.array([local.local(i, own) for own in sets])
        best = sets[int(scores.argmax())]
        assert set(found.neighbours[name]) == {frame.columns[j] for j in best}
        weight = np.exp(scores - scores.max())
        for j, other in enumerate(frame.columns):
            share = sum(w for w, own in zip(weight, sets, strict=True) if j in own) / weight.sum()
            np.testing.assert_allclose(found.inclusion.loc[name, other], share, atol=1e-10)


def test_graphs_join_neighbourhoods_of_both_or_of_one():
    found = bs.solvers.local_neighbourhoods(chain(60, weights=(0.5, 0.2)), max_degree=2)
    both, one = found.graph("and"), found.graph("or")
    for a, b in itertools.combinations(found.names, 2):
        members = b in found.neighbours[a], a in found.neighbours[b]
        assert both.has_edge(a, b) == all(members) and one.has_edge(a, b) == any(members)
        if any(members):
            p = found.inclusion.loc[a, b], found.inclusion.loc[b, a]
            assert one.edges[a, b]["probability"] == max(p)
    assert nx.is_empty(bs.solvers.local_neighbourhoods(chain(60), max_degree=0).graph("or"))
    with pytest.raises(ValueError, match="'and', 'or'"):
        found.graph("xor")


def test_pruning_keeps_the_most_dependent_columns():
    frame = chain(400, 26)
    found = bs.solvers.local_neighbourhoods(frame, level=0.01, max_degree=2)
    expected = {frozenset(pair) for pair in itertools.pairwise(frame.columns)}
    assert set(map(frozenset, found.graph().edges)) == expected
    assert max(map(len, found.candidates.values())) < 20
    # Two columns that determine a third one together and depend on it alone by chance only are lost.
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 400))
    exclusive = pd.DataFrame({"a": a, "b": b, "c": (a ^ b) ^ (rng.random(400) < 0.1)})
    whole = bs.solvers.local_neighbourhoods(exclusive, score="bdeu")
    pruned = bs.solvers.local_neighbourhoods(exclusive, score="bdeu", level=0.001)
    assert set(whole.neighbours["c"]) == {"a", "b"} and pruned.neighbours["c"] == []


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (chain(40, 22), {}, "22 columns.*level=0.05"),
        (chain().mask(chain() > 2), {}, "missing.*dropna"),
        (chain()[["a"]], {}, "column"),
        (chain(), {"max_degree": -1}, "max_degree"),
        (chain(), {"level": 2}, "level"),
        (chain(), {"score": "bic"}, "'bge', 'bdeu'"),
        (chain(), {"equivalent_sample_size": 0}, "equivalent_sample_size"),
    ],
)
def test_bad_input_is_refused(table, options, words):
    with pytest.raises((TableError, ValueError), match=f"(?s){words}"):
        bs.solvers.local_neighbourhoods(table, **options)
