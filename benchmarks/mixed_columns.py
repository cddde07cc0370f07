"""Gaussian graphical models of mixed columns: time to convergence and recovery of edges.

    uv run python benchmarks/mixed_columns.py [--tables 3] [--draws 1000] [--write FOLDER]

A table of 500 rows and 20 columns is drawn from a Gaussian graph (G-Wishart(3, I), edges with probability .15), then four columns each
become binary, ordinal (four levels), counts, skewed, and stay normal. For each way to read it: seconds of ``pm.sample`` with four
chains on one core (machine code compiled before), largest R-hat of the weights, AUC of the edge probabilities. ``gaussian`` takes the
codes for numbers; ``latent`` is the model of the normal columns before they were cut, which nobody has. ``--write`` keeps the tables and their
graphs as CSV for a peer, such as ``bdgraph(data, method = "gcgm")`` in R.
"""

import argparse
import os
import time
import warnings

from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm

from scipy import stats
from spike_slab_gibbs import auc

import bayesstruct as bs

KEPT = ["edge", "weight"]


def table(seed, n=500, p=20):
    """Mixed columns, the normal ones behind them, and which pairs are edges."""
    made = bs.simulate.gaussian_graphical(n, p, edge_probability=0.15, random_seed=seed)
    z = made.data / made.data.std()
    rng, out = np.random.default_rng(seed), z.copy()
    for j, name in enumerate(z):
        u = stats.norm.cdf(z[name] / z[name].std())
        if j % 5 == 0:
            out[name] = u > rng.uniform(0.3, 0.7)
        elif j % 5 == 1:
            cuts = np.sort(rng.uniform(0.1, 0.9, 3))
            out[name] = pd.Categorical.from_codes(np.digitize(u, cuts), list("abcd"), ordered=True)
        elif j % 5 == 2:
            out[name] = stats.poisson.ppf(u, rng.uniform(1.0, 6.0))
        elif j % 5 == 3:
            out[name] = stats.expon.ppf(u) ** 1.5
    truth = np.abs(made.precision.to_numpy()[np.triu_indices(p, 1)]) > 0
    return out, made.data, truth


def numbers(data):
    """Codes of categories and booleans as numbers."""
    return data.apply(
        lambda c: c.cat.codes if isinstance(c.dtype, pd.CategoricalDtype) else c
    ).astype(float)


def fitted(data, draws, **options):
    """Seconds, largest R-hat of the weights and edge probabilities of four chains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with bs.models.gaussian_graphical(data, **options):
            start, cpu = time.perf_counter(), time.process_time()
            idata = pm.sample(
                draws, tune=draws // 2, chains=4, cores=1, random_seed=1, progressbar=False, var_names=KEPT,
                compute_convergence_checks=False, quiet=True,
            )  # fmt: skip
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    rhat = float(az.rhat(idata["posterior"]["weight"]).max())
    ess = float(az.ess(idata["posterior"]["weight"]).min())
    return wall, cpu, rhat, ess, idata["posterior"]["edge"].mean(("chain", "draw")).values


def main():
    """Print a line for each table and way to read it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    fitted(table(99)[0], 4, marginals="rank")  # compiles
    for seed in range(options.tables):
        data, latent, truth = table(seed)
        if options.write:
            options.write.mkdir(exist_ok=True, parents=True)
            numbers(data).to_csv(options.write / f"table{seed}.csv", index=False)
            np.savetxt(options.write / f"graph{seed}.csv", truth, fmt="%d")
        ways = {
            "rank": (data, {"marginals": "rank"}),
            "mixed": (data, {"marginals": "mixed"}),
            "gaussian": (numbers(data), {}),
            "latent": (latent, {}),
        }
        for way, (shown, own) in ways.items():
            wall, cpu, rhat, ess, found = fitted(shown, options.draws, **own)
            print(
                f"table {seed} {way:9s} {wall:6.1f} s, {cpu:6.1f} CPU s, R-hat {rhat:.4f}, ESS {ess:6.0f}, "
                f"AUC {auc(found, truth):.4f}, P+ {found[truth].mean():.3f}, P- {found[~truth].mean():.3f}, {truth.sum()} edges",
                flush=True,
            )


if __name__ == "__main__":
    main()
