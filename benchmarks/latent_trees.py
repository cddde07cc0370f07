"""Trees with hidden nodes: exact distances, estimated ones, and the words of newsgroups.

Run as ``python benchmarks/latent_trees.py [exact | star | shapes | seconds | news]``, for all without a word. After Choi, Tan, Anandkumar and Willsky
(2011), section 7; normal columns, correlations of neighbours uniform on [.2, .8].

- exact: 200 random trees whose distances are known: how many each method finds, lengths included.
- star: double stars of 80 columns, n = 1,000, 200 tables. A classifier that knows the hidden values and all correlations, and only
  has to say to which of the two hidden nodes each column belongs, is the bound: no method can be expected to do better.
- shapes: share of wrong trees and mean number of hidden nodes of a double star (2 hidden), a hidden Markov model (78), a tree of 25 hidden nodes with 81
  columns; seconds without the fit of parameters.
- seconds: 100 columns of 1,000 rows, numbers and two states, random trees: CPU seconds of each method with the fit of parameters; ``"bic"`` is
  ``penalty="bic"``.
- news: 100 words in 16,242 documents (tables 4 and 5 of the article): log likelihood, BIC, hidden nodes, seconds.
"""

import sys
import time
import warnings

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

from scipy.stats import norm

import bayesstruct as bs

DATA = Path(__file__).parents[2] / "shared" / "data" / "news_w100.mat"
METHODS = ("rg", "nj", "clrg", "clnj")


def splits(graph):
    """How each edge divides the columns."""
    seen = frozenset(node for node, hidden in graph.nodes(data="hidden") if not hidden)
    out = []
    for a, b in list(graph.edges):
        own = dict(graph.edges[a, b])
        graph.remove_edge(a, b)
        side = seen & nx.node_connected_component(graph, a)
        graph.add_edge(a, b, **own)
        out.append(frozenset({side, seen - side}))
    return out


def same(one, other):
    """Whether two trees are the same but for names of hidden nodes."""
    return len(one) == len(other) and set(splits(one)) == set(splits(other))


def find(data, method):
    """The tree of a table of numbers from its distances, without a fit of parameters."""
    distances = bs.solvers.information_distances(data, columns="numbers")
    return bs.solvers.latent_tree(distances=distances, n=len(data), method=method)


def exact():
    """Print how many of 200 trees are found from exact distances."""
    found = dict.fromkeys(METHODS, 0)
    for seed in range(200):
        p = int(np.random.default_rng(seed).integers(5, 16))
        graph = bs.simulate.latent_tree(2, p=p, correlations=(0.2, 0.8), random_seed=seed).graph
        names = [node for node, hidden in graph.nodes(data="hidden") if not hidden]
        d = dict(nx.all_pairs_dijkstra_path_length(graph, weight="distance"))
        d = pd.DataFrame([[d[a][b] for b in names] for a in names], names, names)
        for method in METHODS:
            tree = bs.solvers.latent_tree(distances=d, method=method).graph
            length = dict(nx.all_pairs_dijkstra_path_length(tree, weight="distance"))
            error = max(abs(length[a][b] - d.loc[a, b]) for a in names for b in names)
            found[method] += int(same(tree, graph) and error < 1e-6)
    print("exact distances, trees found of 200:", found, flush=True)


def star(tables=200, n=1_000):
    """Print how many double stars are found, and how many errors the bound has."""
    right, bound = dict.fromkeys(("rg", "clrg", "clnj"), 0), 0.0
    for seed in range(tables):
        table = bs.simulate.latent_tree(
            n, p=80, shape="double_star", correlations=(0.2, 0.8), random_seed=seed
        )
        h = table.graph.edges["h1", "h2"]["weight"]
        leaves = [node for node, hidden in table.graph.nodes(data="hidden") if not hidden]
        r = np.array([next(iter(table.graph[v].values()))["weight"] for v in leaves])
        gain = n / 2 * np.log((1 - (r * h) ** 2) / (1 - r**2))
        bound += np.prod(norm.cdf(np.sqrt(gain / 2)))
        for method in right:
            right[method] += same(find(table.data, method).graph, table.graph)
    print(
        f"double star, n = {n}, right of {tables}: {right}; expected with known hidden nodes {bound:.1f}",
        flush=True,
    )


def complete():
    """A tree of 25 hidden nodes below a column: the root has three neighbours, the others four, leaves are columns."""
    graph, last, count = nx.Graph(), ["x0"], {"x": 1, "h": 0}
    graph.add_node("x0", hidden=False)
    for level in range(4):
        new, kind = [], "x" if level == 3 else "h"
        for up in last:
            for _ in range(1 if level == 0 else 3):
                name = f"{kind}{count[kind]}"
                count[kind] += 1
                graph.add_node(name, hidden=kind == "h")
                graph.add_edge(up, name)
                new.append(name)
        last = new
    return graph


def shapes(tables=5, rows=(1_000, 10_000, 100_000)):
    """Print errors and times by shape and number of rows."""
    cases = {
        "double star": {"p": 80, "shape": "double_star"},
        "hidden Markov": {"p": 80, "shape": "chain"},
        "complete": {"graph": complete()},
    }
    for name, options in cases.items():
        for n in rows:
            for method in METHODS:
                wrong, hidden, seconds = 0, 0, 0.0
                for seed in range(tables):
                    table = bs.simulate.latent_tree(
                        n, correlations=(0.2, 0.8), random_seed=seed, **options
                    )
                    start = time.process_time()
                    found = find(table.data, method)
                    seconds += time.process_time() - start
                    wrong += not same(found.graph, table.graph)
                    hidden += len(found.hidden)
                true = table.hidden.shape[1]
                print(
                    f"{name}, n = {n:7,d}, {method:4s}: {wrong} of {tables} wrong, hidden {hidden / tables:.1f} ({true}), "
                    f"{seconds / tables:.2f} s",
                    flush=True,
                )


def seconds(p=100, n=1_000):
    """Print CPU seconds of each method, fit of parameters included."""
    options = {method: {"method": method} for method in (*METHODS, "clblind")}
    for kind in ("gaussian", "discrete"):
        table = bs.simulate.latent_tree(n, p=p, kind=kind, random_seed=1).data
        bs.solvers.latent_tree(table.iloc[:, :6])  # compiled
        for name, own in (options | {"bic": {"penalty": "bic"}}).items():
            start = time.process_time()
            found = bs.solvers.latent_tree(table, **own)
            used = time.process_time() - start
            print(f"{kind}, {name}: {used:.2f} s, {len(found.hidden)} hidden, BIC {found.bic:.0f}")


def news():
    """Print scores of trees of words."""
    import scipy.io

    if not DATA.exists():
        print(f"{DATA} is not there")
        return
    file = scipy.io.loadmat(DATA, spmatrix=False)
    x = np.asarray(file["documents"].todense()).T.astype(int)
    words = [str(np.ravel(word)[0]) for word in file["wordlist"].ravel()]
    table = pd.DataFrame(x, columns=words)
    start = time.process_time()
    tree = bs.solvers.chow_liu(table, columns="states")
    print(
        f"Chow-Liu: log likelihood {tree.log_likelihood:,.0f}, BIC {tree.bic:,.0f}, {time.process_time() - start:.1f} s",
        flush=True,
    )
    for method in ("clnj", "clrg", "nj", "rg"):
        start = time.process_time()
        found = bs.solvers.latent_tree(table, columns="states", method=method)
        print(
            f"{method}: log likelihood {found.log_likelihood:,.0f}, BIC {found.bic:,.0f}, {len(found.hidden)} hidden, "
            f"{found.parameters} parameters, {time.process_time() - start:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts = {"exact": exact, "star": star, "shapes": shapes, "seconds": seconds, "news": news}
    for name in sys.argv[1:] or parts:
        parts[name]()
