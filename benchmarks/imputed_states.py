"""Missing values of Markov random fields: gain of imputation over complete rows, and calibration of imputed states.

    uv run python benchmarks/imputed_states.py              # ten tables, about 4 minutes
    uv run python benchmarks/imputed_states.py --tables 2

A ring of five binary columns with weights of 1.5 and biases of -1.5, 300 rows, 15 % of the values missing at random.
Each table is analysed three times under the spike-and-slab prior: with missing values, with the complete rows alone (the
analysis without imputation), and with the true states filled in. Printed are the errors of the weights, and the slope of
the log odds of imputed states on the true ones given the observed values: 1 if they are calibrated.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import pymc as pm

from scipy.special import logit

from bayesstruct import models

P, ROWS, SHARE, STRENGTH = 5, 300, 0.15, 1.5
STATES = np.array(np.unravel_index(np.arange(2**P), (2,) * P)).T
SOURCE, TARGET = np.triu_indices(P, 1)
WEIGHT = STRENGTH * np.isin(TARGET - SOURCE, (1, P - 1))


def true_distribution():
    """Probability of each joint state."""
    pairs = STATES[:, SOURCE] * STATES[:, TARGET]
    energy = pairs @ WEIGHT - STRENGTH * STATES.sum(axis=1)
    return np.exp(energy) / np.exp(energy).sum()


def true_log_odds(distribution, rows, missing):
    """Log odds of state 1 of each missing value given the observed values of its row."""
    out = []
    for row, gap in zip(rows, missing, strict=True):
        own = np.where((STATES[:, ~gap] == row[~gap]).all(axis=1), distribution, 0.0)
        out.append((own @ STATES / own.sum())[gap])
    return logit(np.concatenate(out))


def sampled(table, likelihood, seed):
    """Posterior of a table, and the CPU seconds that it took, those of compilation included."""
    begin = time.process_time()
    with models.ising(table, likelihood=likelihood):
        posterior = pm.sample(
            1_000, tune=200, chains=2, cores=1, random_seed=seed, progressbar=False, quiet=True
        )["posterior"]
    return posterior.mean(("chain", "draw")), time.process_time() - begin


def one_table(distribution, likelihood, seed):
    """Squared errors of the weights of the three analyses, true and imputed log odds, and seconds."""
    rng = np.random.default_rng(seed)
    rows = STATES[rng.choice(len(distribution), ROWS, p=distribution)]
    missing = rng.random(rows.shape) < SHARE
    missing[missing.all(axis=1), 0] = False
    full = pd.DataFrame(rows).add_prefix("v")
    gaps = full.astype(float).mask(missing)
    means, seconds = zip(
        *(sampled(t, likelihood, seed) for t in (gaps, gaps.dropna().astype(int), full)),
        strict=True,
    )
    errors = [np.square(mean["weight"].values - WEIGHT) for mean in means]
    return (
        errors,
        true_log_odds(distribution, rows, missing),
        logit(means[0]["x_missing"].values),
        seconds,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=10)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    distribution = true_distribution()
    for likelihood in ("pseudo", "exact"):
        results = [one_table(distribution, likelihood, seed) for seed in range(arguments.tables)]
        errors, truth, imputed, seconds = (list(part) for part in zip(*results, strict=True))
        gaps, complete, full = np.sqrt(np.mean(errors, axis=(0, 2)))
        imputed = np.clip(np.concatenate(imputed), -7.0, 7.0)  # of 2,000 draws
        slope = np.polyfit(np.concatenate(truth), imputed, 1)[0]
        print(
            f"{likelihood}: error of the weights with gaps {gaps:.3f}, of the complete rows {complete:.3f}, of the "
            f"full table {full:.3f}; ratio of gaps to complete rows {gaps / complete:.2f}; slope of the log odds of "
            f"{len(imputed)} imputed states {slope:.2f}; {np.mean(seconds, axis=0)[0]:.1f} CPU s a table",
            flush=True,
        )


if __name__ == "__main__":
    main()
