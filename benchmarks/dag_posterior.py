"""Posterior over Gaussian Bayesian networks: accuracy and convergence after a few CPU seconds.

    uv run python benchmarks/dag_posterior.py                # d = 20
    uv run python benchmarks/dag_posterior.py --large        # and d = 80, 150
    uv run python benchmarks/dag_posterior.py --mode         # the best graph instead of the posterior
    uv run python benchmarks/dag_posterior.py --peers        # and flopsearch, sumu, if they are installed

Recipe (Benchpress): random graph with 4 expected neighbours and at most 5 parents, weights uniform on
[.25, 1] with random signs, unit noise, columns standardised. The prior gives each arc the probability 3 / (2 (d - 1)), about three neighbours
for each variable (`--prior uniform`: all graphs have the same probability; most are dense). Four chains of the step that PyMC assigns.
AUROC and AP are those of the edges, P(A -> B) + P(B -> A); the structural Hamming distance is that
between the essential graph of the truth and the arcs that more than half of the essential graphs of
the draws have. CPU seconds contain everything but the
compilation: scores, tables, search, chains, parameters. The peers get the same tables: `flopsearch` (the mode under
the BIC; with `--mode` its graph is also scored by the posterior here), and `sumu` 0.1.2 (Metropolis-coupled partition
MCMC, 8 candidates and up to two more), 4 runs of 10,000 iterations, for 20 variables.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import arviz as az
import networkx as nx
import numpy as np
import pandas as pd

import bayesstruct as bs

from bayesstruct.networks.recognition.network import network_of
from bayesstruct.networks.recognition.parameters import parameters_of, problem_of
from bayesstruct.steps import NetworkMCMC

CHAINS = 4
#: Variables, rows, draws of a chain.
SMALL = [(20, 640, 1000)]
LARGE = [(80, 320, 600), (150, 500, 500)]


def table(d, n, seed):
    """Table and true graph, (d, d), rows as parents."""
    rng = np.random.default_rng(seed)
    graph = np.ones((d, d), bool)
    while graph.sum(0).max() > 5:
        order = rng.permutation(d)
        graph[np.ix_(order, order)] = np.triu(rng.random((d, d)) < 4 / (d - 1), 1)
    weight = graph * rng.choice([-1, 1], (d, d)) * rng.uniform(0.25, 1, (d, d))
    x = rng.normal(size=(n, d)) @ np.linalg.inv(np.eye(d) - weight)
    return pd.DataFrame((x - x.mean(0)) / x.std(0), columns=[f"x{i}" for i in range(d)]), graph


def sample(data, draws, prior="edge"):
    """Graphs of all chains, (chain, draw, d, d)."""
    model = bs.models.bayesian_network(data, prior=prior)
    with model:
        step = NetworkMCMC(model.value_vars)
    start, kept, burn = model.initial_point(), [], draws // 5
    for chain in range(CHAINS):
        step.setup_chain(np.random.default_rng(chain), burn, draws)
        point, graphs = start, []
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


def flop(data, truth, prior):
    """Distance and CPU seconds of flopsearch, and how far below our best graph its graph scores."""
    try:
        from flopsearch import flop as search
    except ImportError:
        return
    begin = time.process_time()
    found = np.asarray(search(data.to_numpy(), 2.0, restarts=20))
    spent = time.process_time() - begin
    graph = nx.from_numpy_array((found > 0).astype(int), create_using=nx.DiGraph)
    distance = bs.structure.structural_hamming_distance(essential(truth), graph)
    model = bs.models.bayesian_network(data, prior=prior)
    network = network_of(model, model["dag"])
    problem = problem_of(network, parameters_of(network).score)
    best = bs.find_MAP(model)["dag"]
    below = log_score(problem, best) - log_score(problem, extension(found))
    print(
        f"    flopsearch: {spent:.2f} CPU s, SHD {distance}, log posterior {below:.2f} below that of find_MAP"
    )


def log_score(problem, graph):
    """Log score and log prior weight of a graph."""
    parents = [tuple(np.flatnonzero(column).tolist()) for column in graph.T]
    parts = enumerate(parents)
    return sum(problem.score.local(i, own) + problem.prior.local(i, own) for i, own in parts)


def extension(found):
    """Give a graph of an essential graph: 1 for an arc, 2 for an undirected edge (Dor and Tarsi 1992)."""
    graph, left = (found == 1).astype(int), set(range(len(found)))
    open_edges, arcs = found == 2, found == 1
    while left:
        last = next(k for k in left if _may_be_last(k, left, open_edges, arcs))
        left.remove(last)
        for other in left:
            if open_edges[other, last]:
                graph[other, last] = 1
    return graph


def _may_be_last(k, left, open_edges, arcs):
    """Whether a variable has no child left, and its open neighbours are joined to all its neighbours."""
    if any(arcs[k, j] for j in left):
        return False
    joined = open_edges | arcs | arcs.T
    near = [j for j in left if joined[j, k]]
    return all(joined[i, j] for i in near if open_edges[i, k] for j in near if i != j)


def gadget(data, truth):
    """Posterior of sumu, judged in the same way."""
    try:
        import sumu
    except ImportError:
        return
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chains = [_gadget_chain(sumu, data, seed) for seed in range(CHAINS)]
    spent = time.process_time() - begin
    shortest = min(map(len, chains))
    graphs = np.array([chain[:shortest] for chain in chains])
    auroc, ap, distance, rhat, ess = judged(graphs, truth)
    print(
        f"    sumu: {spent:.1f} CPU s, AUROC {auroc:.4f}, AP {ap:.4f}, SHD {distance}, largest R-hat "
        f"{rhat:.3f}, smallest ESS {ess:.0f}"
    )


def _gadget_chain(sumu, data, seed):
    """Graphs of one run of sumu 0.1.2, (draw, d, d)."""
    np.random.seed(seed)  # noqa: NPY002 - sumu draws from the global generator
    settings = {"scoref": "bge", "ess": 10, "max_id": -1, "cp_algo": "greedy-lite", "cp_path": None}
    settings |= {"K": 8, "d": 2, "mc3_chains": 4, "tolerance": 2.0**-32}
    settings |= {"iterations": 10_000, "burn_in": 5_000, "thinning": 10}
    drawn, _ = sumu.Gadget(data=sumu.Data(data.to_numpy()), **settings).sample()
    graphs = np.zeros((len(drawn), data.shape[1], data.shape[1]), np.int8)
    for graph, families in zip(graphs, drawn, strict=True):
        for child, *parents in families:
            graph[list(parents[0]) if parents else [], child] = 1
    return graphs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--prior", default="edge", choices=["uniform", "edge", "fair"])
    parser.add_argument("--mode", action="store_true", help="the mode instead of the posterior")
    parser.add_argument(
        "--peers", action="store_true", help="flopsearch and sumu on the same tables"
    )
    arguments = parser.parse_args()
    for d in (5, 15):  # compiles
        sample(table(d, 50, 0)[0], 10)
    for d, n, draws in SMALL + LARGE * arguments.large:
        for seed in range(arguments.tables):
            data, truth = table(d, n, seed)
            if arguments.mode:
                distance, spent = mode(data, truth, arguments.prior)
                print(f"d = {d}, n = {n}, table {seed}: mode in {spent:.1f} CPU s, SHD {distance}")
                if arguments.peers:
                    flop(data, truth, arguments.prior)
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
            if arguments.peers and d == SMALL[0][0]:
                gadget(data, truth)


if __name__ == "__main__":
    main()
