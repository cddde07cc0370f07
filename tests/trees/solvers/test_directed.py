"""The best directed tree against all of them."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.networks.kernels.scores.discrete import BDe


def states(seed, n=25):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.6, b > 0, rng.random(n) < 0.5).astype(int)
    d = rng.integers(0, 2, n)
    table = pd.DataFrame({"a": a, "b": b, "c": c, "d": d})
    table.loc[0:2, "b"] = 0, 1, 2
    return table


def all_directed_trees(p=4):
    for parent in itertools.product(range(-1, p), repeat=p):
        arcs = [(above, child) for child, above in enumerate(parent) if above >= 0]
        graph = nx.DiGraph(arcs)
        graph.add_nodes_from(range(p))
        if nx.is_arborescence(graph):
            yield parent


@pytest.mark.parametrize(
    "options", [{}, {"tiers": [["b", "d"], ["a", "c"]]}, {"required": [("c", "b")]}]
)
@pytest.mark.parametrize("seed", range(4))
def test_the_tree_is_the_best_of_all_64(seed, options):
    table = states(seed)
    local = BDe(table.to_numpy(), states=[2, 3, 2, 2], pseudo_count=0.5)
    best, trees = (-np.inf, None), list(all_directed_trees())
    assert len(trees) == 64
    for parent in trees:
        arcs = {(above, child) for child, above in enumerate(parent) if above >= 0}
        if "tiers" in options and arcs & {(a, b) for a in (0, 2) for b in (1, 3)}:
            continue
        if "required" in options and (2, 1) not in arcs:
            continue
        total = sum(local.local(i, [above] * (above >= 0)) for i, above in enumerate(parent))
        best = max(best, (total, parent))
    found = bs.solvers.directed_tree(table, score="bde", pseudo_count=0.5, **options)
    assert found.parent.tolist() == list(best[1])
    assert found.log_score == pytest.approx(best[0], rel=1e-12)
    assert nx.is_arborescence(found.graph)
    assert found.root == "abcd"[list(best[1]).index(-1)]


def test_equivalent_scores_give_the_undirected_tree():
    table = states(1)
    found = bs.solvers.directed_tree(table, score="bdeu")
    posterior = bs.exact.tree_posterior(table, score="bdeu")
    assert {frozenset(e) for e in found.graph.edges} == {frozenset(e) for e in posterior.best.edges}


def test_what_leaves_no_tree_is_refused():
    arcs = [(other, "d") for other in "abc"]
    with pytest.raises(TableError, match=r"no directed tree is left.*`required`"):
        bs.solvers.directed_tree(states(0), forbidden=[*arcs, *((other, "a") for other in "bcd")])
    with pytest.raises((TableError, ValueError), match="column"):
        bs.solvers.directed_tree(states(0)[["a"]])
