"""Edge probabilities where columns depend on each other strongly: units of the spike and slab.

    uv run python benchmarks/strong_dependence.py          # about 2 minutes

Ten columns, 100 rows, five tables of each kind: the recipe of `spike_slab_gibbs.py`, a series with autocorrelation .9, five columns
with loadings .95 on one factor beside five that are independent, and near copies (correlation .99). AUC of the edges that the
truth has, mean log probability of the truth (log score), and mean probabilities of true and of false edges.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import warnings

import numpy as np

from spike_slab_gibbs import auc, table

import bayesstruct as bs

from bayesstruct.steps import PrecisionGibbs

P, N = 10, 100
UPPER = np.triu_indices(P, 1)
PRIORS = {
    "standard deviations": {"standardize": True},
    "conditional": {"standardize": "conditional"},
    "default": {},
    "g_wishart": {"prior": "g_wishart"},
}


def recipe(seed):
    """Sparse graph, G-Wishart matrix."""
    data, truth = table(P, N, seed)
    return np.asarray(data), truth


def series(seed, correlation=0.9):
    """Neighbours in a stationary series have edges."""
    lag = np.abs(np.subtract.outer(np.arange(P), np.arange(P)))
    rows = np.random.default_rng(seed).multivariate_normal(np.zeros(P), correlation**lag, N)
    return rows, lag[UPPER] == 1


def factor(seed, loading=0.95):
    """All pairs of the columns on the factor have edges."""
    rng, half = np.random.default_rng(seed), P // 2
    rows = rng.normal(size=(N, P))
    common = loading * rng.normal(size=(N, 1))
    rows[:, :half] = common + np.sqrt(1 - loading**2) * rows[:, :half]
    edge = np.zeros((P, P), bool)
    edge[:half, :half] = True
    return rows, edge[UPPER]


def copies(seed, correlation=0.99):
    """Two near copies, one of which has another neighbour, and an ordinary edge."""
    rows, edge = np.random.default_rng(seed).normal(size=(N, P)), np.zeros((P, P), bool)
    rows[:, 1] = correlation * rows[:, 0] + np.sqrt(1 - correlation**2) * rows[:, 1]
    rows[:, 3] += 0.6 * rows[:, 2]
    rows[:, 4] += 0.6 * rows[:, 1]
    edge[0, 1] = edge[2, 3] = edge[1, 4] = True
    return rows, edge[UPPER]


def probabilities(rows, sweeps, options):
    """Edge probabilities from one chain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.TableWarning)
        model = bs.models.gaussian_graphical(rows, **options)
    with model:
        step = PrecisionGibbs(model.free_RVs)
    step.setup_chain(np.random.default_rng(0), 0, 0)
    point, total, burn = model.initial_point(0), 0.0, sweeps // 5
    for sweep in range(sweeps):
        point, _ = step.step(point)
        if sweep >= burn:
            total = total + point["edge"]
    return total / (sweeps - burn)


def figures(probability, truth):
    """AUC, log score, mean probabilities of true and of false edges."""
    kept = np.clip(probability, 5e-4, 1 - 5e-4)
    score = np.where(truth, np.log(kept), np.log1p(-kept)).mean()
    means = probability[truth].mean(), probability[~truth].mean()
    return auc(probability, truth), score, *means


def main():
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--sweeps", type=int, default=1_000)
    options = parser.parse_args()
    for make in (recipe, series, factor, copies):
        tables = [make(seed) for seed in range(options.tables)]
        for name, prior in PRIORS.items():
            found = [figures(probabilities(x, options.sweeps, prior), t) for x, t in tables]
            mean = np.mean(found, axis=0)
            print(
                f"{make.__name__:8s} {name:20s} AUC {mean[0]:.3f}, log score {mean[1]:.3f}, P+ {mean[2]:.2f}, P- {mean[3]:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
