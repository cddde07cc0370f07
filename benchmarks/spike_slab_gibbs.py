"""Spike-and-slab Gibbs: cost of a sweep, effective draws, and accuracy against CPU time.

    uv run python benchmarks/spike_slab_gibbs.py            # about 8 minutes
    uv run python benchmarks/spike_slab_gibbs.py --peer     # R's BDgraph on the same tables too, 30

Recipe of Vogels et al. (2024): a random graph, K ~ G-Wishart(3, I) given it, n rows of N(0, K^-1),
prior edge probability equal to the density of the graph. Both programs see each table twice: as it
was simulated, where the variances tell something of the degrees, and with standardised columns.
Seconds are CPU seconds of one core with one BLAS thread.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import shutil
import subprocess
import tempfile
import time

from pathlib import Path

import numpy as np

from scipy.special import expit

import bayesstruct as bs

from bayesstruct.core.odds import slab_log_odds
from bayesstruct.graphs.mixing import indicator_ess
from bayesstruct.precision.kernels.cholesky import unpack_cholesky
from bayesstruct.precision.kernels.gibbs import laplace_sweep, spike_slab_sweep
from bayesstruct.steps import PrecisionGibbs

DENSITY = {10: 0.2, 50: 0.05, 100: 0.02, 300: 0.01}


def table(p, n, seed):
    """Simulated rows and the true indicators of the upper triangle."""
    out = bs.simulate.gaussian_graphical(n, p, edge_probability=DENSITY[p], random_seed=seed)
    truth = np.zeros((p, p), bool)
    names = list(out.data.columns)
    for a, b in out.graph.edges:
        i, j = sorted((names.index(a), names.index(b)))
        truth[i, j] = True
    return out.data, truth[np.triu_indices(p, 1)]


def auc(probability, truth):
    """Area under the curve, ties counted half."""
    from scipy.stats import rankdata

    rank = rankdata(probability)
    positive = truth.sum()
    return (rank[truth].sum() - positive * (positive + 1) / 2) / (positive * (~truth).sum())


def sweep_times():
    """Milliseconds of a sweep of the kernels."""
    rng = np.random.default_rng(0)
    for p in DENSITY:
        rows = rng.standard_normal((2 * p, p))
        scatter, odds = rows.T @ rows, np.full((p, p), -3.0)
        work, edges, extra = np.empty((2, p)), np.zeros((p, p), np.int8), np.zeros((p, p))
        repeats = max(5, int(4e7 / p**3))
        timings = []
        for kind in ("spike and slab", "laplace"):
            K, W = np.eye(p), np.eye(p)
            for repeat in range(repeats + 1):
                if repeat == 1:
                    start = time.process_time()
                if kind == "laplace":
                    laplace_sweep(rng, K, W, scatter, 2.0 * p, extra + 1.0, 0.5, work)
                else:
                    spike_slab_sweep(
                        rng, K, W, edges, extra * 1.0, scatter, 2.0 * p, odds, 0.02, 1.0, 0.5, work
                    )
            timings.append(1e3 * (time.process_time() - start) / repeats)
        print(f"p = {p:3d}   spike and slab {timings[0]:7.3f} ms   laplace {timings[1]:7.3f} ms")


def chain(data, density, seconds, seed=0, standardize=True):
    """Run the step that pm.sample assigns for some CPU seconds.

    Returns edge probabilities (Rao-Blackwellised), indicators and draws a second.
    """
    model = bs.models.gaussian_graphical(data, edge_probability=density, standardize=standardize)
    p = data.shape[1]
    with model:
        step = PrecisionGibbs([model[v] for v in ("precision", "edge", "mean")])
    upper = np.triu_indices(p, 1)
    prior = np.log(density / (1 - density))
    point = model.initial_point(random_seed=seed)
    step.setup_chain(np.random.default_rng(seed), 0, 0)
    start, total, indicators = time.process_time(), np.zeros(len(upper[0])), []
    burn = 0.1 * seconds
    while (elapsed := time.process_time() - start) < seconds:
        point, _ = step.step(point)
        if elapsed > burn:
            precision, _ = unpack_cholesky(point["precision_cholesky-cov__"], p)
            total += expit(slab_log_odds(precision[upper], prior, spike=0.02, slab=1.0))
            indicators.append(point["edge"])
    indicators = np.array(indicators)
    return total / len(indicators), indicators, len(indicators) / (0.9 * seconds)


def bdgraph(data, density, iterations, function="bdgraph"):
    """Edge probabilities of one of the samplers of R's BDgraph and its CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        data.to_csv(path / "x.csv", index=False)
        script = (
            "suppressMessages(library(BDgraph)); x <- read.csv('x.csv'); set.seed(1);"
            f"t <- system.time(f <- {function}(x, iter={iterations}, g.prior={density},"
            "verbose=FALSE, cores=1)); p <- plinks(f, round=8);"
            "write.table(t(p)[lower.tri(p)], 'p.txt', row.names=F, col.names=F);"
            "cat(t[1] + t[2])"
        )
        run = subprocess.run(
            ["Rscript", "-e", script], cwd=folder, capture_output=True, text=True, check=True
        )
        return np.loadtxt(path / "p.txt"), float(run.stdout.split()[-1])


def accuracy(p, n, tables, seconds, long, peer, standardize):
    """Mean AUC, probabilities and effective draws over tables."""
    rows, peers = [], []
    options = {"standardize": standardize}
    chain(*(table(p, n, 0)[0], DENSITY[p]), 0.2)  # compiles
    for seed in range(tables):
        data, truth = table(p, n, seed)
        short, indicators, speed = chain(data, DENSITY[p], seconds, **options)
        reference, _, _ = chain(data, DENSITY[p], long, seed=1, **options)
        ess = indicator_ess(indicators[None])
        rate = np.nanmedian(ess) / (0.9 * seconds)
        rows.append(
            [
                auc(short, truth),
                auc(reference, truth),
                short[truth].mean(),
                short[~truth].mean(),
                speed,
                rate,
            ]
        )
        if peer:
            seen = (data - data.mean()) / data.std() if standardize else data
            probability, cpu = bdgraph(seen, DENSITY[p], 10_000 if p >= 50 else 5_000)
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
        f"p = {p:3d}, n = {n}, {'standardised' if standardize else 'as simulated'}: AUC {m[0]:.3f} after {seconds} CPU s, {m[1]:.3f} after {long} CPU s"
        f" (difference {m[0] - m[1]:+.3f}); P+ {m[2]:.3f}, P- {m[3]:.3f}; {m[4]:.0f} draws/s,"
        f" median ESS of indicators {m[5]:.0f}/s"
    )
    if peers:
        b = np.mean(peers, axis=0)
        print(
            f"      BDgraph on the same tables: AUC {b[0]:.3f}, P+ {b[1]:.3f}, P- {b[2]:.3f},"
            f" {b[3]:.1f} CPU s: {b[3] / seconds:.1f} times this package"
        )


def main():
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true", help="run R's BDgraph too")
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 50, 100])
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--long", type=float, default=10.0)
    options = parser.parse_args()
    peer = options.peer
    if peer and shutil.which("Rscript") is None:
        print("Rscript is not installed: BDgraph is left out")
        peer = False
    sweep_times()
    plan = {10: (20, 10), 50: (100, options.tables), 100: (200, 3)}
    for p in options.sizes:
        n, tables = plan[p]
        seconds = 0.5 if p == 10 else options.seconds
        for standardize in (False, True):
            long = 4 * seconds if p == 10 else options.long
            accuracy(p, n, tables, seconds, long, peer, standardize)


if __name__ == "__main__":
    main()
