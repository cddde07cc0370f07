"""Nodes of Gaussian graphs: how well indicators mix with and without switches of nodes together with their elements.

    uv run python benchmarks/node_mixing.py      # ten seconds

Tables in which pairs of columns depend weakly on each other, and half of the columns on none. Four chains of the kernels alone
from random subsets of nodes, 500 + 2,000 sweeps each: largest R-hat and least effective number of draws of the indicators.
"""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bayesstruct.precision.kernels.gibbs import spike_slab_sweep
from bayesstruct.precision.kernels.node_inclusion import draw_included, possible, switch_nodes

CHAINS, TUNE, DRAWS = 4, 500, 2_000
SPIKE, SLAB, RATE = 0.02, 1.0, 0.5  # the defaults of the model


def table(n, p, seed):
    """Scatter matrix of standardised columns."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    for k in range(0, p // 2 - 1, 2):
        x[:, k + 1] += 0.35 * x[:, k]
    x = (x - x.mean(0)) / x.std(0)
    return x.T @ x


def chain(S, n, switches, rng):
    """Indicators of the nodes (draws, p)."""
    p, kept = len(S), []
    K, W, z = np.eye(p), np.eye(p), rng.integers(0, 2, p)
    edges, inclusion, work = np.zeros((p, p), np.int8), np.zeros((p, p)), np.empty((4, p))
    prior = np.zeros(p), np.zeros((p, p)), SPIKE, SLAB
    for _ in range(TUNE + DRAWS):
        own = S, float(n), possible(prior[1], z), SPIKE, SLAB, RATE, work[:2]
        spike_slab_sweep(rng, K, W, edges, inclusion, *own)
        draw_included(rng, K, z, *prior)
        if switches:
            switch_nodes(rng, K, W, S, float(n), z, *prior, RATE, work)
        kept.append(z.copy())
    return np.array(kept[TUNE:])


def main():
    import arviz as az

    for p, n, seed in (6, 100, 0), (20, 60, 2), (20, 200, 5), (40, 100, 3):
        S = table(n, p, seed)
        for switches in False, True:
            start = time.process_time()
            draws = np.stack(
                [chain(S, n, switches, np.random.default_rng([seed, c])) for c in range(CHAINS)]
            )
            seconds = time.process_time() - start
            moved = [k for k in range(p) if 0 < draws[:, :, k].mean() < 1]
            r_hat = max(float(az.rhat(draws[:, :, k])) for k in moved)
            ess = min(float(az.ess(draws[:, :, k])) for k in moved)
            name = "with switches" if switches else "given the matrix alone"
            print(
                f"p = {p}, n = {n}, {name}: {seconds:.1f} s, R-hat {r_hat:.3f}, ESS {ess:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
