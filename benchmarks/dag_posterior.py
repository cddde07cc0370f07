"""Posterior over Gaussian Bayesian networks: accuracy and convergence after a few CPU seconds.

    uv run python benchmarks/dag_posterior.py                # d = 20
    uv run python benchmarks/dag_posterior.py --large        # and d = 80, 150
    uv run python benchmarks/dag_posterior.py --mode         # the best graph instead of the posterior

Recipe (Benchpress): random graph with 4 expected neighbours and at most 5 parents, weights uniform on
[.25, 1] with random signs, unit noise, columns standardised. The prior gives each arc the probability 3 / (2 (d - 1)), about three neighbours
for each variable (`--prior uniform`: all graphs alike, most of which are dense). Four chains of the step that PyMC assigns.
AUROC and AP are those of the edges, P(A -> B) + P(B -> A); the structural Hamming distance is that
between the essential graph of the truth and the arcs that more than half of the essential graphs of
the draws have. CPU seconds contain everything but the
compilation: scores, tables, search, chains, parameters.
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import arviz as az
import networkx as nx
import numpy as np
import pandas as pd

import bayesstruct as bs

from bayesstruct.steps import NetworkMCMC

CHAINS = 4
#: Variables, rows, draws of a chain.
SMALL = [(20, 640, 1000)]
LARGE = [(80, 320, 500), (150, 500, 300)]


def table(d, n, seed):
    """Table and true graph, (d, d), rows as parents."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(d)
    graph = np.zeros((d, d), bool)
    for j in range(d):
        parents = np.flatnonzero(rng.random(j) < 4 / (d - 1))
        graph[order[rng.permutation(parents)[:5]], order[j]] = True
    weight = graph * rng.choice([-1, 1], (d, d)) * rng.uniform(0.25, 1, (d, d))
    x = rng.normal(size=(n, d)) @ np.linalg.inv(np.eye(d) - weight)
    return pd.DataFrame((x - x.mean(0)) / x.std(0), columns=[f"x{i}" for i in range(d)]), graph


def sample(data, draws, prior="edge"):
    """Graphs of all chains, (chain, draw, d, d)."""
    model = bs.models.bayesian_network(data, prior=prior)
    with model:
        step = NetworkMCMC(model.value_vars)
    kept, burn = [], draws // 5
    for chain in range(CHAINS):
        step.setup_chain(np.random.default_rng(chain), burn, draws)
        point, graphs = model.initial_point(), []
        for t in range(burn + draws):
            point, _ = step.step(point)
            if t >= burn:
                graphs.append(point["dag"])
        kept.append(graphs)
    return np.array(kept)


def essential(graph):
    return bs.structure.cpdag(nx.from_numpy_array(graph.astype(int), create_using=nx.DiGraph))


def mean_essential(graphs):
    """Share of the essential graphs of the draws that have each arc, in one or both directions."""
    flat = graphs.reshape(-1, *graphs.shape[2:])
    several, counts = np.unique(flat.reshape(len(flat), -1), axis=0, return_counts=True)
    keep = np.argsort(-counts)[:500]
    arrays = [nx.to_numpy_array(essential(several[k].reshape(flat.shape[1:]))) for k in keep]
    return np.average(arrays, axis=0, weights=counts[keep])


def judged(graphs, truth):
    """AUROC, AP, structural Hamming distance, largest R-hat, smallest ESS."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    arcs = graphs.mean(axis=(0, 1))
    upper = np.triu_indices(len(truth), 1)
    edge, wanted = (arcs + arcs.T)[upper], (truth | truth.T)[upper]
    beyond = mean_essential(graphs) > 0.5
    found = nx.from_numpy_array(beyond.astype(int), create_using=nx.DiGraph)
    distance = bs.structure.structural_hamming_distance(essential(truth), found)
    moving = graphs.reshape(*graphs.shape[:2], -1)[
        ..., (arcs.ravel() > 0.05) & (arcs.ravel() < 0.95)
    ]
    several = {"arcs": moving.astype(float), "n": graphs.sum((2, 3)).astype(float)}
    rhat = max(float(np.max(az.rhat(v, chain_axis=0, draw_axis=1))) for v in several.values())
    ess = min(float(np.min(az.ess(v, chain_axis=0, draw_axis=1))) for v in several.values())
    return roc_auc_score(wanted, edge), average_precision_score(wanted, edge), distance, rhat, ess


def mode(data, truth, prior):
    """Structural Hamming distance of the best graph, and CPU seconds."""
    begin = time.process_time()
    best = bs.find_MAP(bs.models.bayesian_network(data, prior=prior))["dag"]
    spent = time.process_time() - begin
    return bs.structure.structural_hamming_distance(essential(truth), essential(best)), spent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--prior", default="edge", choices=["uniform", "edge", "fair"])
    parser.add_argument("--mode", action="store_true", help="the mode instead of the posterior")
    arguments = parser.parse_args()
    sample(table(5, 50, 0)[0], 10)  # compiles
    for d, n, draws in SMALL + LARGE * arguments.large:
        for seed in range(arguments.tables):
            data, truth = table(d, n, seed)
            if arguments.mode:
                distance, spent = mode(data, truth, arguments.prior)
                print(f"d = {d}, n = {n}, table {seed}: mode in {spent:.1f} CPU s, SHD {distance}")
                continue
            begin = time.process_time()
            graphs = sample(data, draws, arguments.prior)
            spent = time.process_time() - begin
            auroc, ap, distance, rhat, ess = judged(graphs, truth)
            print(
                f"d = {d}, n = {n}, table {seed}: {CHAINS} x {draws} draws in {spent:.1f} CPU s, AUROC "
                f"{auroc:.4f}, AP {ap:.4f}, SHD {distance}, largest R-hat {rhat:.3f}, smallest ESS {ess:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
