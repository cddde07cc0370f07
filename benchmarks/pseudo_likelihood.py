"""Posterior of graphs of many columns by regressions on neighbours: areas under curves against time.

    uv run python benchmarks/pseudo_likelihood.py                 # p = 200, about two minutes
    uv run python benchmarks/pseudo_likelihood.py --columns 1000  # four tables, about fifteen minutes
    uv run python benchmarks/pseudo_likelihood.py --peer          # R's bdgraph.mpl on the same tables too

Recipe of arXiv:2603.22573: a random graph with a given number of edges, K ~ G-Wishart(3, I) given it, n rows of
N(0, K^-1), prior edge probability .005 (p = 200: 199 edges, .01), chains that start from the graph without edges.
The first part runs a chain in this process, draw by draw, and counts CPU seconds; the second is `pm.sample` as a user calls it,
with everything that takes: two chains in two processes, seconds of the clock. `--peer` runs `bdgraph.mpl` with its defaults but for the
prior, 20,000 iterations, or as many as `--iterations` says.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import resource
import shutil
import time

import networkx as nx
import numpy as np
import pymc as pm

from spike_slab_gibbs import bdgraph

import bayesstruct as bs

from bayesstruct.steps import GraphJumps

TABLES = {200: [(199, 400)], 1000: [(1000, 1000), (1000, 400), (5000, 1000), (5000, 400)]}
PRIOR = {200: 0.01, 1000: 0.005}


def simulated(p, edges, seed, most=1000):
    """Rows, and the true indicators of the upper triangle."""
    truth = nx.gnm_random_graph(p, edges, seed=seed)
    out = bs.simulate.gaussian_graphical(most, graph=truth, random_seed=seed)
    return out.data, nx.to_numpy_array(truth)[np.triu_indices(p, 1)] > 0


def areas(truth, probability):
    """Areas under the precision-recall and the ROC curve, mean probabilities of edges and of others, F1."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    chosen = probability > 0.5
    f1 = 2 * (chosen & truth).sum() / (chosen.sum() + truth.sum())
    curves = average_precision_score(truth, probability), roc_auc_score(truth, probability)
    return np.array([*curves, probability[truth].mean(), probability[~truth].mean(), f1])


def one_chain(model, truth, seconds, seed=1, edges=None):
    """Areas after a growing number of draws: seconds, draws, edges, areas of the mean over the later draws."""
    step = GraphJumps(model.free_RVs, model=model, rounds=1)
    point = model.initial_point(random_seed=0)
    point["edge"] = np.zeros_like(point["edge"])
    step.setup_chain(np.random.default_rng(0), 0, 1)
    step.step(point)  # compiled
    step.setup_chain(np.random.default_rng(seed), 0, 1)
    if edges is not None:
        point["edge"] = edges
    spent, shown, draws, rows = 0.0, 0.0, 0, []
    total = np.zeros(len(truth))
    marks = [(0, total.copy())] * 2  # sums at the last two powers of two
    while spent < seconds:
        start = time.process_time()
        point, [stats] = step.step(point)
        spent, draws = spent + time.process_time() - start, draws + 1
        total += stats["edge_inclusion"]
        mean = (total - marks[0][1]) / (draws - marks[0][0])
        if spent > shown or spent >= seconds:
            rows.append([spent, draws, stats["n_edges"], *areas(truth, mean)])
            shown = max(1.3 * spent, spent + 0.02)
        if draws & (draws - 1) == 0:
            marks = [marks[1], (draws, total.copy())]
    return np.array(rows), mean


def within(rows, distance=0.01):
    """Seconds from which on the area under the precision-recall curve stays within a distance of the last."""
    away = np.flatnonzero(np.abs(rows[:, 3] - rows[-1, 3]) > distance)
    return rows[min(away[-1] + 1 if len(away) else 0, len(rows) - 1), 0]


def as_a_user(model, truth, draws):
    """Areas, seconds and GiB of `pm.sample` and of the table of edges."""
    start = time.perf_counter()
    with model:
        options = {"chains": 2, "cores": 2, "progressbar": False, "random_seed": 1}
        idata = pm.sample(draws, compute_convergence_checks=False, **options)
    sampled = time.perf_counter() - start
    found = areas(truth, bs.inclusion_probabilities(idata).values)
    read = time.perf_counter() - start - sampled
    usage = (
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return found, sampled, read, sum(usage) / 2**20


def peer(rows, truth, density, iterations):
    """Print the areas of BDgraph's bdgraph.mpl and its CPU seconds."""
    probability, spent = bdgraph(
        (rows - rows.mean()) / rows.std(), density, iterations, function="bdgraph.mpl"
    )
    print(
        f"  bdgraph.mpl, {iterations:,} iterations: {spent:.1f} CPU s: {_text(areas(truth, probability))}",
        flush=True,
    )


def report(p, edges, n, seconds, draws):
    """Print both parts for one table; without draws the first only."""
    rows, truth = simulated(p, edges, seed=1)
    model = bs.models.gaussian_graphical(
        rows.iloc[:n], prior="pseudo_likelihood", edge_probability=PRIOR[p]
    )
    print(f"p = {p}, n = {n}, {edges} edges", flush=True)
    found, mean = one_chain(model, truth, seconds)
    for row in found[:: max(1, len(found) // 8)]:
        print(f"  {row[0]:7.2f} s  {row[2]:5.0f} edges  " + _text(row[3:]))
    print(
        f"  long run: {_text(found[-1, 3:])}; AUC-PR within .01 of it from {within(found):.2f} s on"
    )
    start = time.process_time()
    best = bs.find_MAP(model)["edge"]
    spent = time.process_time() - start
    print(
        f"  best graph found in {spent:.1f} s: {best.sum()} edges, {(best & truth).sum()} true ones"
    )
    _, other = one_chain(model, truth, seconds / 2, seed=2, edges=best)
    apart = np.abs(mean - other)
    print(
        f"  chains from the empty and the best graph: probabilities differ by {apart.max():.3f} at most, {(apart > 0.1).sum()} by more than .1"
    )
    if not draws:
        return
    found, sampled, read, memory = as_a_user(model, truth, draws)
    print(
        f"  pm.sample({draws}): {sampled:.1f} s, read in {read:.1f} s, {memory:.2f} GiB: {_text(found)}",
        flush=True,
    )


def _text(found):
    names = ("AUC-PR", "AUC", "P+", "P-", "F1")
    return ", ".join(f"{name} {value:.4f}" for name, value in zip(names, found, strict=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, choices=TABLES, default=200)
    parser.add_argument("--table", type=int, help="one of the tables, from 0 on")
    parser.add_argument("--seconds", type=float, help="of a chain")
    parser.add_argument("--peer", action="store_true", help="run R's bdgraph.mpl too, where it is")
    parser.add_argument("--iterations", type=int, default=20_000, help="of bdgraph.mpl")
    parser.add_argument("--draws", type=int, default=100, help="of pm.sample, 0 to leave it out")
    arguments = parser.parse_args()
    tables = TABLES[arguments.columns]
    for edges, n in tables if arguments.table is None else [tables[arguments.table]]:
        seconds = arguments.seconds or (60 if arguments.columns == 1000 else 10)
        report(arguments.columns, edges, n, seconds, arguments.draws)
        if arguments.peer and shutil.which("Rscript"):
            rows, truth = simulated(arguments.columns, edges, seed=1)
            peer(rows.iloc[:n], truth, PRIOR[arguments.columns], arguments.iterations)
