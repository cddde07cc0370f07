"""How much the default spike, slab and edge probability matter, over sizes of tables.

    uv run python benchmarks/spike_slab_sensitivity.py      # about 5 minutes

For each setting: AUC of the edge probabilities, their mean on edges (P+) and on pairs without an
edge (P-), averaged over tables simulated as in ``spike_slab_gibbs.py``. The default row has a star.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from spike_slab_gibbs import DENSITY, auc, table

from bayesstruct.precision.kernels.gibbs import spike_slab_sweep

SETTINGS = [
    (0.01, 1.0, 0.5),
    (0.02, 0.3, 0.5),
    (0.02, 0.5, 0.5),
    (0.02, 1.0, 0.5),
    (0.02, 1.0, 0.1),
    (0.02, 1.0, 2.0),
    (0.02, 2.0, 0.5),
    (0.05, 1.0, 0.5),
    (0.10, 1.0, 0.5),
]
SIZES = [(10, 10, 8), (10, 100, 8), (50, 50, 3), (50, 100, 3), (50, 500, 2), (100, 200, 1)]


def probabilities(data, density, spike, slab, rate, sweeps):
    """Edge probabilities from one chain of the kernel."""
    rng = np.random.default_rng(0)
    z = (data - data.mean()) / data.std()
    n, p = z.shape
    scatter = z.to_numpy().T @ z.to_numpy()
    K, W, edges = np.eye(p), np.eye(p), np.zeros((p, p), np.int8)
    odds, work = np.full((p, p), np.log(density / (1 - density))), np.empty((2, p))
    for sweep in range(sweeps + sweeps // 5):
        if sweep == sweeps // 5:
            total = np.zeros((p, p))
        inclusion = total if sweep >= sweeps // 5 else np.zeros((p, p))
        spike_slab_sweep(
            rng, K, W, edges, inclusion, scatter, n - 1.0, odds, spike, slab, rate, work
        )
        if sweep % 50 == 0:
            W = np.linalg.inv(K)
    return ((total + total.T) / (2 * sweeps))[np.triu_indices(p, 1)]


def main():
    """Print a line for each size and setting."""
    for p, n, tables in SIZES:
        made = [table(p, n, seed) for seed in range(tables)]
        for setting in SETTINGS:
            rows = []
            for data, truth in made:
                q = probabilities(data, DENSITY[p], *setting, sweeps=max(400, 20_000 // p))
                rows.append([auc(q, truth), q[truth].mean(), q[~truth].mean()])
            mean = np.mean(rows, axis=0)
            star = "*" if setting == (0.02, 1.0, 0.5) else " "
            print(
                f"p = {p:3d}, n = {n:3d} {star} spike {setting[0]:.2f}, slab {setting[1]:.1f},"
                f" diagonal rate {setting[2]:.1f}: AUC {mean[0]:.3f}, P+ {mean[1]:.3f},"
                f" P- {mean[2]:.3f}"
            )


if __name__ == "__main__":
    main()
