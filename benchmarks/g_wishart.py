"""Graphs with a G-Wishart matrix: accuracy against CPU time, convergence, and the error of rough auxiliary draws.

    uv run python benchmarks/g_wishart.py                  # about 5 minutes
    uv run python benchmarks/g_wishart.py --peer           # R's BDgraph on the same tables too, 20
    uv run python benchmarks/g_wishart.py --peer --columns 100 --tables 1

Recipe of `spike_slab_gibbs.py` (Vogels et al. 2024), on standardised columns. Seconds are CPU seconds of one core with one
BLAS thread.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import shutil
import time

import networkx as nx
import numpy as np

from spike_slab_gibbs import DENSITY, auc, bdgraph, table

import bayesstruct as bs

from bayesstruct.precision.kernels.g_wishart.constant_ratios import draw_pair
from bayesstruct.precision.kernels.g_wishart.elimination import plan_elimination
from bayesstruct.precision.kernels.g_wishart.rough_draws import rough_pair
from bayesstruct.steps import PrecisionGibbs


def chain(data, density, seconds, seed):
    """Edge probabilities after some CPU seconds of the step that pm.sample assigns, and its draws of edges."""
    with bs.models.gaussian_graphical(data, prior="g_wishart", edge_probability=density) as model:
        step = PrecisionGibbs(model.free_RVs)
    point = model.initial_point(random_seed=seed)
    step.setup_chain(np.random.default_rng(seed), 0, 0)
    start, kept = time.process_time(), []
    while (elapsed := time.process_time() - start) < seconds:
        point, _ = step.step(point)
        if elapsed > 0.1 * seconds:
            kept.append(point["edge"])
    return np.mean(kept, axis=0), np.array(kept)


def accuracy(p, n, tables, seconds, peer):
    """Mean AUC and probabilities over tables, after some seconds and after four times as many."""
    rows, peers = [], []
    chain(table(p, n, 0)[0], DENSITY[p], 0.2, 0)  # compiles
    for seed in range(tables):
        data, truth = table(p, n, seed)
        short, kept = chain(data, DENSITY[p], seconds, 0)
        long, _ = chain(data, DENSITY[p], 4 * seconds, 1)
        worst = np.abs(short - long).max()
        rows.append(
            [
                auc(short, truth),
                auc(long, truth),
                short[truth].mean(),
                short[~truth].mean(),
                len(kept),
                worst,
            ]
        )
        if peer:
            probability, cpu = bdgraph(
                (data - data.mean()) / data.std(), DENSITY[p], 10_000 if p >= 50 else 5_000
            )
            peers.append(
                [
                    auc(probability, truth),
                    probability[truth].mean(),
                    probability[~truth].mean(),
                    cpu,
                ]
            )
    m = np.mean(rows, axis=0)
    print(
        f"p = {p:3d}, n = {n}, {tables} tables: AUC {m[0]:.3f} after {seconds} CPU s, {m[1]:.3f} after {4 * seconds}; "
        f"P+ {m[2]:.3f}, P- {m[3]:.3f}; {m[4]:.0f} draws; largest difference of a probability {m[5]:.3f}",
        flush=True,
    )
    if peers:
        b = np.mean(peers, axis=0)
        print(
            f"      BDgraph on the same tables: AUC {b[0]:.3f}, P+ {b[1]:.3f}, P- {b[2]:.3f}, {b[3]:.1f} CPU s"
        )


def convergence(p, n):
    """R-hat and time of pm.sample with its defaults."""
    import arviz as az
    import pymc as pm

    data, _ = table(p, n, 0)
    with bs.models.gaussian_graphical(data, prior="g_wishart", edge_probability=DENSITY[p]):
        start = time.process_time()
        idata = pm.sample(random_seed=1, chains=4, cores=1, progressbar=False)
    elapsed = time.process_time() - start
    edges = bs.edge_table(idata)
    count = idata["posterior"]["edge"].sum("pair")
    print(
        f"p = {p:3d}, n = {n}: pm.sample, 4 x (1,000 + 1,000) draws, {elapsed:.1f} CPU s; R-hat of the number of edges "
        f"{float(az.rhat(count.to_dataset(name='count'))['count']):.3f}, largest of an edge {edges['r_hat'].max():.3f}, "
        f"ESS {edges['ess'].median():.0f} (median)",
        flush=True,
    )


def auxiliary(p, edges, draws=2_000):
    """Log ratio of constants by exact and by rough draws, and the seconds of each, on random graphs."""
    space = [np.zeros((p, p), np.int8), np.zeros((p, p), np.int8), np.zeros((8, p), np.int64)]
    filled, codes, whole = space
    rough = np.zeros((4, p + 3, p))
    rng = np.random.default_rng(0)
    for seed in range(3):
        graph = nx.gnm_random_graph(p, edges, seed=seed)
        core = sorted(nx.k_core(graph, 2))
        i, j = core[0], core[-1]
        adjacency = nx.to_numpy_array(graph).astype(np.int8)
        adjacency[i, j] = adjacency[j, i] = 0
        m = plan_elimination(adjacency, i, j, filled, codes, whole)
        out = []
        for kind in ("exact", "rough"):
            start, values = time.process_time(), []
            for _ in range(draws):
                root, total = (
                    draw_pair(rng, 3.0, True, m, rough[0], codes, whole, 10**7)
                    if kind == "exact"
                    else rough_pair(rng, 3.0, True, m, codes, whole, filled, rough)
                )
                values.append(-np.log(root) - 0.5 * (total / root) ** 2 - 0.5 * np.log(2 * np.pi))
            weights = np.exp(values)
            ms = 1e3 * (time.process_time() - start) / draws
            out += [np.log(weights.mean()), weights.std() / weights.mean() / np.sqrt(draws), ms]
        print(
            f"p = {p}, {edges} edges, core of {m + 2}: log ratio {out[0]:.3f} ({out[1]:.3f}), {out[2]:.2f} ms exact; "
            f"{out[3]:.3f} ({out[4]:.3f}), {out[5]:.2f} ms rough",
            flush=True,
        )


def main():
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true", help="run R's BDgraph too")
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--columns", type=int, choices=[100], help="only the recipe of this size")
    options = parser.parse_args()
    peer = options.peer and shutil.which("Rscript") is not None
    if options.columns:
        accuracy(100, 200, options.tables, 5.0, peer)
        return
    accuracy(10, 20, options.tables, 0.03, peer)
    accuracy(10, 100, options.tables, 0.03, peer)
    accuracy(50, 100, options.tables, 2.5, peer)
    accuracy(100, 200, 3, 5.0, False)
    convergence(10, 100)
    convergence(50, 100)
    for edges in (60, 75, 90):
        auxiliary(50, edges)


if __name__ == "__main__":
    main()
