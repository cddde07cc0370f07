"""Searches for a Bayesian network: losses by pruning, numbers of scores, and peers.

    uv run --with pgmpy-no-torch python benchmarks/dag_search.py           # some minutes
    uv run --with pgmpy-no-torch python benchmarks/dag_search.py --all     # much longer: all sizes, more tables

The structures are read from the data files of `pgmpy`; without it only rain is run, whose data are in
`../shared/data`. Tables are those of Schmidt (2010, section 4.6.1): values -1 and 1, weights sign(N(0, 1)) + N(0, 1) / 4,
no bias; with interventions each row sets one variable or none, each with probability 1 / (d + 1), by a fair coin.

*Pruning*: share of the arcs that candidates leave, in per cent, and true arcs that they lose. L1MB: Markov
blankets by sparse logistic regressions. SC(5): the five variables of greatest mutual information. MMPC: G2 at
.05. Earlier figures, from one other table each, are of the inventory of the thesis.

*Interventions*: alarm, BIC, at most 10,000 scores; entries of the adjacency matrix that differ from the truth, and
scores computed up to the first local optimum. Scores are remembered across restarts, while the thesis
forgets them.

*Peers*: plain hill climbing (all moves looked at, cycles found by networkx, scores remembered), and that of
`pgmpy`, on the alarm table without interventions under the multinomial BIC. The first of equally good moves
differs between them, and with it the local optimum.
"""

import argparse
import logging
import os
import sys
import time

from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import networkx as nx
import numpy as np

from scipy.io import loadmat
from scipy.special import xlogy

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from tools.repository_networks import NETWORKS, folder, network

from bayesstruct.networks.kernels.scores.named import network_score
from bayesstruct.simulate import bayesian_network
from bayesstruct.solvers import blanket_candidates, dag_search, k2, known_order, mmpc_candidates

RAIN = Path(__file__).parents[2] / "shared" / "data" / "rain.mat"
#: Inventory of the thesis: per cent left and arcs lost by L1MB, arcs lost by SC(5).
EARLIER = {
    (1_000, "insurance"): "20.2/1 9", (1_000, "water"): "20.3/0 13", (1_000, "mildew"): "12.4/0 2",
    (1_000, "alarm"): "9.8/1 2", (1_000, "barley"): "10.8/2 12", (1_000, "hailfinder"): "6.8/0 4",
    (5_000, "insurance"): "21.1/0 7", (5_000, "water"): "23.7/0 12", (5_000, "mildew"): "13.1/0 1",
    (5_000, "alarm"): "9.4/0 1", (5_000, "barley"): "11.7/0 9", (5_000, "hailfinder"): "6.6/0 2",
    (20_000, "insurance"): "20.2/0 7", (20_000, "water"): "24.8/0 13", (20_000, "mildew"): "13.0/0 1",
    (20_000, "alarm"): "9.8/0 1", (20_000, "barley"): "12.0/0 8", (20_000, "hailfinder"): "6.5/0 3",
}  # fmt: skip


def timed(function, *arguments, **options):
    start = time.process_time()
    result = function(*arguments, **options)
    return result, time.process_time() - start


def table(name, n, seed, interventions=False):
    graph = network(name)
    share = len(graph) / (len(graph) + 1) if interventions else 0.0
    simulation = bayesian_network(
        n, kind="logistic", graph=graph, interventions=share, random_seed=seed
    )
    truth = nx.to_numpy_array(graph, weight=None) != 0
    return simulation.data, simulation.interventions.to_numpy(), truth


def most_informative(x, size):
    """Variables of greatest mutual information with each, as rows."""
    x = x.to_numpy(float)
    both = x.T @ x
    one = np.diag(both)
    cells = [both, one[:, None] - both, one - both, len(x) - one[:, None] - one + both]
    margin = xlogy(one, one) + xlogy(len(x) - one, len(x) - one)
    information = sum(xlogy(c, c) for c in cells) - margin - margin[:, None]
    np.fill_diagonal(information, -np.inf)
    return np.argsort(-information, axis=1)[:, :size]


def pruned(candidates, truth):
    kept = np.zeros_like(truth)
    for child, row in enumerate(candidates):
        kept[row[row >= 0], child] = True
    d = len(truth)
    return f"{100 * kept.sum() / (d * (d - 1)):5.1f}/{(truth & ~kept).sum()}"


def pruning(sizes, seeds):
    print("pruning: per cent left / arcs lost (earlier: L1MB, and arcs lost by SC(5))")
    for n in sizes:
        for name in NETWORKS:
            for seed in seeds:
                x, _, truth = table(name, n, seed)
                blankets, seconds = timed(blanket_candidates, x)
                tests, test_seconds = timed(mmpc_candidates, x, test="g2")
                print(
                    f"n = {n:6,d} {name:10s} L1MB {pruned(blankets, truth)} ({seconds:.1f} s)  "
                    f"SC(5) {pruned(most_informative(x, 5), truth)}  "
                    f"MMPC {pruned(tests, truth)} ({test_seconds:.1f} s)  earlier {EARLIER[n, name]}",
                    flush=True,
                )


def interventions(sizes, seeds):
    print(
        "alarm with interventions (earlier, n = 20,000: L1MB 0 wrong, 282 scores; all 1 wrong, 3,062)"
    )
    for n in sizes:
        for seed in seeds:
            x, set_, truth = table("alarm", n, seed, interventions=True)
            score = network_score(x, "logistic", interventions=set_)
            best = sum(score.local(i, np.flatnonzero(truth[:, i])) for i in range(len(truth)))
            blankets, seconds = timed(blanket_candidates, x, interventions=set_)
            for label, lists in (("L1MB", blankets), ("all", None)):
                found, own = timed(
                    dag_search,
                    score,
                    candidates=lists,
                    evaluations=10_000,
                    restarts=40,
                    restart_from="random",
                    random_seed=0,
                )
                first, _ = found.optima[0]
                print(
                    f"n = {n:6,d} table {seed} {label:4s}: {(found.adjacency != truth).sum():2d} wrong, "
                    f"BIC {-found.objective:.1f} (truth {-best:.1f}), first optimum after {first:5,d} "
                    f"scores, {len(found.optima)} optima after {found.evaluations:,d}; "
                    f"{own:.1f} s" + (f", blankets {seconds:.1f} s" if lists is not None else ""),
                    flush=True,
                )


def plain_climb(score):
    """Climb without any book-keeping but the remembered scores."""
    known, graph = {}, nx.empty_graph(score.d, create_using=nx.DiGraph)

    def local(i, parents):
        key = i, frozenset(parents)
        if key not in known:
            known[key] = score.local(i, key[1])
        return known[key]

    def gain(i, j):
        parents = set(graph.predecessors(i))
        return local(i, parents ^ {j}) - local(i, parents)

    def moves():
        for j in graph:
            for i in graph:
                if graph.has_edge(j, i):
                    yield gain(i, j), "delete", j, i
                    graph.remove_edge(j, i)
                    turned = not nx.has_path(graph, j, i)
                    graph.add_edge(j, i)
                    if turned:
                        yield gain(i, j) + gain(j, i), "reverse", j, i
                elif i != j and not nx.has_path(graph, i, j):
                    yield gain(i, j), "add", j, i

    while True:
        best, move, j, i = max(moves())
        if best <= 1e-7:
            return sum(local(i, set(graph.predecessors(i))) for i in graph), len(known)
        if move == "add":
            graph.add_edge(j, i)
        else:
            graph.remove_edge(j, i)
        if move == "reverse":
            graph.add_edge(i, j)


def peers(n):
    x, _, _ = table("alarm", n, 1)
    score = network_score(x, "multinomial")
    dag_search(x.iloc[:100, :4], score="multinomial")
    print(f"one climb on alarm, n = {n:,}, multinomial BIC, no candidates")
    found, seconds = timed(dag_search, score, restarts=0)
    print(
        f"  dag_search: BIC {-found.objective:.2f}, {found.evaluations:,} scores, {seconds:.2f} s"
    )
    (value, evaluations), seconds = timed(plain_climb, network_score(x, "multinomial"))
    print(f"  plain: BIC {-value:.2f}, {evaluations:,} scores, {seconds:.2f} s", flush=True)
    best, seconds = timed(dag_search, score, restarts=50, random_seed=0)
    print(
        f"  dag_search, 50 restarts: BIC {-best.objective:.2f}, {best.evaluations:,} scores, {seconds:.2f} s",
        flush=True,
    )
    try:
        logging.getLogger("pgmpy").setLevel(logging.WARNING)
        from pgmpy.estimators import BIC, HillClimbSearch
    except ImportError:
        print("  pgmpy is not installed with what it needs")
        return
    search = HillClimbSearch(x.astype("category"))
    dag, seconds = timed(
        search.estimate, scoring_method="bic-d", tabu_length=0, epsilon=1e-7, show_progress=False
    )
    names = list(x.columns)
    value = sum(
        score.local(i, [names.index(p) for p in dag.get_parents(name)])
        for i, name in enumerate(names)
    )
    theirs = BIC(x.astype("category")).score(dag)
    print(f"  pgmpy: BIC {-value:.2f} (by its own account {-theirs:.2f}), {seconds:.2f} s")


def rain():
    x = loadmat(RAIN)["X"].astype(int)
    n, days = x.shape
    score = network_score(x, "multinomial")
    empty = sum(score.local(j, ()) for j in range(days))
    tree, seconds = timed(known_order, x, range(days), score="multinomial", max_parents=1)
    chain = bool((tree.adjacency == np.eye(days, k=1)).all())
    information = (tree.objective - empty + (days - 1) / 2 * np.log(n)) / n
    print("rain, 28 days in their order (earlier figures in brackets)")
    print(
        f"  tree: the chain of days {chain} [True], information {information:.6f} nats [2.175305], {seconds:.2f} s"
    )
    sparse, seconds = timed(known_order, x, range(days), method="sparse", score="logistic")
    near = int(sparse.adjacency[np.eye(days, k=1) == 1].sum())
    print(
        f"  L1MB: {sparse.adjacency.sum()} arcs [73], {near} between neighbours [27], BIC "
        f"{-sparse.objective:.2f} [17830.0], {seconds:.2f} s"
    )
    greedy, seconds = timed(k2, x, range(days), score="logistic")
    print(
        f"  K2: {greedy.adjacency.sum()} arcs [70], BIC {-greedy.objective:.2f} [17819.78], {seconds:.2f} s"
    )
    exact, seconds = timed(known_order, x, range(days), score="logistic", candidates=14)
    print(
        f"  best parents among 14: {exact.adjacency.sum()} arcs, BIC {-exact.objective:.2f}, "
        f"{seconds:.1f} s"
    )
    found, seconds = timed(
        dag_search,
        x,
        score="logistic",
        candidates=blanket_candidates(x),
        restarts=50,
        random_seed=0,
    )
    print(
        f"  order not known: {found.adjacency.sum()} arcs, BIC {-found.objective:.2f}, "
        f"{found.evaluations:,} scores, {seconds:.1f} s"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="three sizes, more tables")
    everything = parser.parse_args().all
    if RAIN.exists():
        rain()
    else:
        print(f"{RAIN.name} is not there; its part is left out")
    if folder() is None:
        print("pgmpy is not there; its structures are needed for the rest")
        return
    peers(5_000)
    interventions([5_000, 20_000] if everything else [20_000], range(10 if everything else 4))
    pruning(
        [1_000, 5_000, 20_000] if everything else [5_000, 20_000], [1, 2, 3] if everything else [1]
    )


if __name__ == "__main__":
    main()
