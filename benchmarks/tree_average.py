"""New rows averaged over all trees: held-out log scores and predictions beside one tree and graphs with cycles, and seconds a row.

Run as ``python benchmarks/tree_average.py [scores | groups | seconds]``, for all without a word. Parts:

- scores: rows of two tables of the package, logarithms of the cells (11 columns of numbers) and the risk factors (6 columns of two states), are split at random
  into some for training and 200 others, four times. Mean log density of a held-out row, and how well one column is predicted from the others:
  root mean squared error in standard deviations of the training rows, or share of right states. Of the fit of Chow and Liu, the most probable tree with
  its parameters averaged, the average over all trees, and draws of `bs.models.gaussian_graphical` or `bs.models.ising`, all on the same rows. Standard
  errors are of the difference from the average over all trees, over the splits.
- groups: two groups of four columns of numbers each, unrelated to each other and each a tree; mean log density of 1,000 held-out rows averaged over all
  forests less that over all trees, over ten tables, and the posterior probability of two groups.
- seconds: CPU seconds a row for densities, and for an empty value.
"""

import logging
import os
import sys
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import pymc as pm

from tree_posterior import chain_of_normals, numbers_and_states, tree_of_states

import bayesstruct as bs

SPLITS, HELD_OUT = 4, 200
OPTIONS = {"draws": 400, "tune": 300, "chains": 2, "cores": 1, "progressbar": False}
AVERAGE = "all trees"


def root_mean_square(found, test, column, scale):
    """Error of the means of a column, in standard deviations."""
    return np.sqrt(np.mean((found["mean"].to_numpy() - test[column].to_numpy()) ** 2)) / scale


def share_right(found, test, column, scale):
    """Share of rows whose most probable state is the observed one."""
    best = found.loc[found.groupby("row")["probability"].idxmax(), ["row", "state"]]
    best = best.set_index("row")["state"].astype(int)
    return float((best.loc[test.index] == test[column]).mean())


def one_tree(train, score):
    """The posterior of the most probable tree alone."""
    full = bs.exact.tree_posterior(train, score=score)
    kept = {frozenset(edge) for edge in full.best.edges}
    names = full.names
    forbidden = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if {a, b} not in kept]
    return full, bs.exact.tree_posterior(train, score=score, forbidden=forbidden)


def of_draws(model, train, test, column, measure):
    """Mean log density and error of draws of a model."""
    with model:
        idata = pm.sample(random_seed=1, compute_convergence_checks=False, **OPTIONS)
    empty = test.astype(float)
    empty[column] = np.nan
    found = measure(bs.predict(idata, empty), test, column, train[column].std())
    with bs.new_rows(model, test):
        pm.compute_log_likelihood(idata, progressbar=False)
    logs = idata["log_likelihood"]["x"].stack(s=("chain", "draw")).transpose("s", ...).to_numpy()
    return np.mean(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))), found


def one_split(table, score, column, measure, n, seed):
    """Log score and error of each method on the same rows."""
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = table.iloc[order[:n]], table.iloc[order[n : n + HELD_OUT]]
    out = {}
    kind = "numbers" if score == "bge" else "states"
    fitted = bs.solvers.chow_liu(train, columns=kind)
    out["Chow-Liu"] = np.mean(fitted.log_density(test)), np.nan
    full, best = one_tree(train, score)
    for name, posterior in (("best tree", best), (AVERAGE, full)):
        found = posterior.predict(test, column)
        right = measure(found, test, column, train[column].std())
        out[name] = posterior.log_density(test).mean(), right
    if score == "bge":
        name, model = "gaussian_graphical", bs.models.gaussian_graphical(train)
    else:  # the pseudo-likelihood, the default, is no density of a row
        name, model = "ising", bs.models.ising(train, likelihood="exact")
    out[name] = of_draws(model, train, test, column, measure)
    return out


def scores():
    """Print means over splits and differences from the average over all trees."""
    cells = np.log(bs.load_dataset("sachs"))
    cases = {
        "cells": (cells, "bge", "PKA", root_mean_square),
        "risk factors": (bs.load_dataset("reinis"), "bdeu", "systol", share_right),
    }
    for name, (table, score, column, measure) in cases.items():
        for n in (20, 60, 600):
            found = [one_split(table, score, column, measure, n, seed) for seed in range(SPLITS)]
            print(f"{name}, {n} rows for training; predicted column {column}")
            for method in found[0]:
                own = np.array([one[method] for one in found])
                less = own - np.array([one[AVERAGE] for one in found])
                error = less.std(axis=0, ddof=1) / np.sqrt(SPLITS)
                print(
                    f"  {method:20s} log score {own[:, 0].mean():8.3f} ({less[:, 0].mean():+.3f} +- {error[0]:.3f})"
                    f"   prediction {own[:, 1].mean():.3f} ({less[:, 1].mean():+.3f} +- {error[1]:.3f})",
                    flush=True,
                )


def groups():
    """Print by how much forests are better than trees where columns are in two groups."""
    for n in (10, 30, 100, 1000):
        gain, two = [], []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            x = np.hstack([chain_of_normals(rng, n + 1000, 4) for _ in range(2)])
            forest, tree = bs.exact.forest_posterior(x[:n]), bs.exact.tree_posterior(x[:n])
            gain.append((forest.log_density(x[n:]) - tree.log_density(x[n:])).mean())
            two.append(forest.components[2])
        error = np.std(gain, ddof=1) / np.sqrt(len(gain))
        print(
            f"two groups, {n:5d} rows: forests less trees {np.mean(gain):+.4f} +- {error:.4f}, probability of two groups {np.mean(two):.2f}",
            flush=True,
        )


def seconds():
    """Print CPU seconds a row."""
    rng = np.random.default_rng(0)
    for p in (10, 100, 1000):
        for make, score in ((chain_of_normals, "bge"), (tree_of_states, "bdeu")):
            rows = pd.DataFrame(make(rng, 1010, p).astype(float))
            rows.columns = [f"x{j}" for j in range(p)]
            seconds_of(bs.exact.tree_posterior(rows[:1000], score=score), rows, f"{score} tree")
            if p > 100:
                continue
            seconds_of(bs.exact.forest_posterior(rows[:1000], score=score), rows, f"{score} forest")
        if p <= 100:
            rows = numbers_and_states(rng, 1010, p)
            seconds_of(bs.exact.tree_posterior(rows[:1000], score="mixed"), rows, "mixed tree")


def seconds_of(posterior, rows, name):
    """Print CPU seconds a row of one posterior."""
    posterior.log_density(rows[1000:1001])
    start = time.process_time()
    posterior.log_density(rows[1001:1006])
    middle = time.process_time()
    posterior.predict(rows[1006:1007], "x5")
    print(
        f"p = {len(posterior.names):5,d}, {name:11s}: density {(middle - start) / 5:.4f} s a row, one empty value "
        f"{time.process_time() - middle:.4f} s",
        flush=True,
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    parts = {"scores": scores, "groups": groups, "seconds": seconds}
    for part in sys.argv[1:] or parts:
        parts[part]()
