"""The exact posterior over trees of 1,000 columns, against determinants and networkx in the same run.

Run as ``python benchmarks/tree_posterior.py [columns | others]``; with ``others`` only the last part. Parts:

- edge probabilities: all p (p - 1) / 2 of them from a table of normal columns, n = 1,000; the peer inverts the Laplacian matrix, which is
  faster and loses its digits where weights of edges differ much (its largest error is printed).
- draws: 1,000 independent trees.
- Chow-Liu: the most probable tree of 10,000 rows of two states, and that of `bs.solvers.chow_liu`; the peers are mutual information by a product of matrices with the
  maximum spanning tree of networkx.
- model: 100 draws of `bs.models.tree` for 100 columns of 500 rows, complete and with 5 % of the values missing.
- others: edge probabilities and 1,000 draws for 100 columns of 1,000 rows, of forests of numbers and of states, and of trees of numbers and states.

Times are CPU seconds of one process after compilation.
"""

import resource
import sys
import time
import warnings

import networkx as nx
import numpy as np
import pandas as pd

import bayesstruct as bs

from bayesstruct.graphs.spanning_trees.sums import SpanningTrees


class Clock:
    """CPU seconds since the last lap."""

    def __init__(self):
        self.start = time.process_time()

    def lap(self, what):
        """Print the seconds since the last lap."""
        print(f"{what:60s} {time.process_time() - self.start:7.2f} s", flush=True)
        self.start = time.process_time()


def chain_of_normals(rng, n, p):
    """Columns each of which depends on one before it."""
    x = rng.normal(size=(n, p))
    for j in range(1, p):
        x[:, j] = 0.6 * x[:, rng.integers(max(0, j - 20), j)] + 0.8 * x[:, j]
    return x


def tree_of_states(rng, n, p):
    """Two states; each column is another one with 30 % of the states redrawn."""
    x = rng.integers(0, 2, (n, p))
    for j in range(1, p):
        kept = rng.random(n) < 0.7
        x[kept, j] = x[kept, rng.integers(j)]
    return x


def numbers_and_states(rng, n, p):
    """Numbers, every second column cut at 0 into two states."""
    rows = pd.DataFrame(chain_of_normals(rng, n, p), columns=[f"x{j}" for j in range(p)])
    for name in rows.columns[::2]:
        rows[name] = np.where(rows[name] > 0, "above", "below")
    return rows


def inverse_probabilities(logs):
    """Weights times resistances from the inverse of the reduced Laplacian matrix."""
    w = np.exp(logs - logs[np.isfinite(logs)].max())
    np.fill_diagonal(w, 0.0)
    laplacian = np.diag(w.sum(axis=1)) - w
    inverse = np.zeros(logs.shape)
    inverse[1:, 1:] = np.linalg.inv(laplacian[1:, 1:])
    own = np.diag(inverse)
    return w * (own[:, None] + own - 2 * inverse)


def mutual_information_tree(x):
    """Chow and Liu's tree of 0/1 columns by networkx."""
    n, p = x.shape
    ones = x.astype(np.float32)
    both = (ones.T @ ones).astype(float)
    single = ones.sum(axis=0)
    information = np.zeros((p, p))
    for joint, first, second in [
        (both, single, single),
        (single[:, None] - both, single, n - single),
        (single - both, n - single, single),
        (n - single[:, None] - single + both, n - single, n - single),
    ]:
        with np.errstate(divide="ignore", invalid="ignore"):
            term = joint / n * np.log(n * joint / np.outer(first, second))
        information += np.where(joint > 0, term, 0.0)
    np.fill_diagonal(information, 0.0)
    return nx.maximum_spanning_tree(nx.from_numpy_array(information))


def model_draws(rng, p=100, n=500):
    """Print the seconds of 100 draws of tree, parameters and missing values."""
    print(f"model, p = {p}, n = {n}")
    numbers = chain_of_normals(rng, n, p)
    for score, table in (("bge", numbers), ("bdeu", (numbers > 0).astype(float))):
        for share in (0.0, 0.05):
            gaps = rng.random(table.shape) < share
            model = bs.models.tree(np.where(gaps, np.nan, table), score=score)
            step = bs.steps.TreeDraws(model.free_RVs, model=model)
            step.setup_chain(np.random.default_rng(0), 0, 0)
            point, _ = step.step(model.initial_point())
            clock = Clock()
            for _ in range(100):
                point, _ = step.step(point)
            clock.lap(f"  100 draws, {score}, {share:.0%} missing")


def others(rng, p=100, n=1000):
    """Print the seconds of forests, and of trees of numbers and states."""
    numbers, states = chain_of_normals(rng, n, p), tree_of_states(rng, n, p)
    cases = [
        ("forest, numbers", bs.exact.forest_posterior, "bge", numbers),
        ("forest, states", bs.exact.forest_posterior, "bdeu", states),
        (
            "tree, numbers and states",
            bs.exact.tree_posterior,
            "mixed",
            numbers_and_states(rng, n, p),
        ),
    ]
    print(f"other graphs, p = {p}, n = {n:,}")
    for name, learn, score, table in cases:
        clock = Clock()
        posterior = learn(table, score=score)
        clock.lap(f"  {name}: table checked, weights of all edges")
        posterior.edge_probabilities
        clock.lap("    edge probabilities")
        posterior.draw(1000, random_seed=1)
        clock.lap("    1,000 draws")


def main(p):
    """Print times, errors and memory."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    for score, small in [("bge", rng.normal(size=(9, 3))), ("bdeu", rng.integers(0, 2, (30, 3)))]:
        warm = bs.exact.tree_posterior(small, score=score)
        warm.draw(2, 0), warm.edge_probabilities
    x = chain_of_normals(rng, 1000, p)
    print(f"normal columns, p = {p:,}, n = 1,000")
    clock = Clock()
    posterior = bs.exact.tree_posterior(x)
    clock.lap("  table checked, weights of all edges")
    probability = posterior.edge_probabilities.to_numpy()
    clock.lap("  edge probabilities")
    posterior.draw(1000, random_seed=1)
    clock.lap("  1,000 draws")
    logs = posterior.trees.log_weights
    peer = inverse_probabilities(logs)
    clock.lap("  peer: inverse of the Laplacian matrix")
    print(f"  log weights span {np.ptp(logs[np.isfinite(logs)]):.0f}")
    print(
        f"  sum of probabilities less p - 1: {probability.sum() / 2 - (p - 1):.1e}, peer {peer.sum() / 2 - (p - 1):.1e}"
    )
    print(f"  largest difference {np.abs(peer - probability).max():.1e}")

    print(f"flat weights (many probable trees), p = {p:,}")
    flat = rng.normal(size=(p, p))
    clock = Clock()
    trees = SpanningTrees(flat + flat.T)
    own = trees.probabilities
    clock.lap("  edge probabilities")
    trees.draw(1000, 1)
    clock.lap("  1,000 draws")
    peer = inverse_probabilities(trees.log_weights)
    print(f"  largest difference from the inverse {np.abs(peer - own).max():.1e}")

    x = tree_of_states(rng, 10_000, p)
    print(f"two states, p = {p:,}, n = 10,000")
    clock = Clock()
    posterior = bs.exact.tree_posterior(x, score="bdeu")
    clock.lap("  table checked, weights of all edges")
    best = posterior.best
    clock.lap("  most probable tree")
    bs.solvers.chow_liu(x, columns="states")
    clock.lap('  bs.solvers.chow_liu, columns="states"')
    bs.solvers.chow_liu(x)
    clock.lap("  bs.solvers.chow_liu, columns of any kind")
    peer = mutual_information_tree(x)
    clock.lap("  peer: mutual information, networkx")
    theirs = {frozenset((f"x{i}", f"x{j}")) for i, j in peer.edges}
    print(f"  edges in common {len(theirs & {*map(frozenset, best.edges)})} of {p - 1}")
    model_draws(rng)
    others(rng)
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    if sys.argv[1:] == ["others"]:
        warnings.simplefilter("ignore")
        others(np.random.default_rng(0), p=20, n=100)  # compiles
        others(np.random.default_rng(0))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
