"""Differences of edges between two groups: time to converge, AUC against two separate fits, reliability of the probabilities.

    python benchmarks/group_differences.py               # time and AUC, p = 50, n = 100 in each group
    python benchmarks/group_differences.py --reliability # 200 tables from the prior, p = 10
    python benchmarks/group_differences.py --scales      # other scales of differences
    python benchmarks/group_differences.py --ising       # binary columns, p = 10, n = 250 in each group: time, AUC, reliability

Truth: random graphs of 5 % of the pairs, elements from .2 to .6 with random signs, of which 30 % are absent in one group or have the other
sign. A published sampler of spike-and-slab graphs of two groups takes 7.5 s for 300 iterations at this size, its version with exact zeros 105 s
at p = 30 (see the figures that its authors give).

Binary columns: parameters are drawn from the prior, so that probabilities should be reliable with the exact likelihood, and are too extreme
with the pseudo-likelihood. The R package `bgms`, whose `bgmCompare` has this design, is on CRAN only and was not run.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import itertools
import logging
import time
import warnings

import numpy as np
import pandas as pd
import pymc as pm

from sklearn.metrics import roc_auc_score

import bayesstruct as bs

from bayesstruct.precision.kernels.row_groups.prior import (
    draw_relations,
    log_relations,
    sweep_groups_prior,
)
from bayesstruct.precision.kernels.row_groups.sweep import CONTRASTS, groups_sweep

DENSITY, SHARE = 0.05, 0.3


def truth(rng, p):
    """Precision matrices of two groups, and which pairs are edges and differ."""
    rows, columns = np.triu_indices(p, 1)
    m = len(rows)
    edge = rng.random(m) < DENSITY
    differs = edge & (rng.random(m) < SHARE)
    first = rng.uniform(0.2, 0.6, m) * rng.choice([-1, 1], m) * edge
    second, kind = first.copy(), rng.integers(0, 3, m)
    first[differs & (kind == 0)] = 0.0
    second[differs & (kind == 1)] = 0.0
    second[differs & (kind == 2)] *= -1.0
    matrices = np.zeros((2, p, p))
    matrices[:, rows, columns] = matrices[:, columns, rows] = [first, second]
    diagonal = max(0.5, 0.2 - np.linalg.eigvalsh(matrices).min())
    return matrices + diagonal * np.eye(p), edge, differs


def rows_of(rng, matrices, n):
    """Rows of both groups, one below the other."""
    p = matrices.shape[-1]
    return pd.DataFrame(
        np.vstack(
            [rng.multivariate_normal(np.zeros(p), np.linalg.inv(K), size=n) for K in matrices]
        )
    ).add_prefix("x")


def sampled(model, draws, tune, chains=4, seed=1, *, warm=True):
    """Result of a model and CPU seconds of its draws, compilation excluded if it is warmed up."""
    quiet = {"progressbar": False, "cores": 1, "compute_convergence_checks": False}
    with model:
        if warm:
            pm.sample(2, tune=2, chains=1, random_seed=0, **quiet)
        start = time.process_time()
        idata = pm.sample(draws, tune=tune, chains=chains, random_seed=seed, **quiet)
    return idata, time.process_time() - start


def in_order(table, idata, column):
    """Column of a table of pairs, in the order of the pairs."""
    names = (table["source"] + " -- " + table["target"]).to_numpy()
    return pd.Series(table[column].to_numpy(), names)[idata["posterior"]["pair"].values].to_numpy()


def scores_of_separate_fits(rows, n, draws, tune):
    """Two scores of a difference, of probabilities of edges and of weights over their deviation, and one of an edge."""
    chance, mean, variance = [], [], []
    for own in (rows[:n], rows[n:]):
        idata, _ = sampled(bs.models.gaussian_graphical(own), draws, tune, chains=2)
        chance.append(in_order(bs.edge_table(idata), idata, "probability"))
        weight = idata["posterior"]["weight"]
        mean.append(weight.mean(("chain", "draw")).values)
        variance.append(weight.var(("chain", "draw")).values)
    a, b = chance
    gap = np.abs(mean[0] - mean[1]) / np.sqrt(variance[0] + variance[1])
    return a * (1 - b) + b * (1 - a), gap, 1 - (1 - a) * (1 - b)


def compare(p, n, tables, draws, tune):
    """Time, R-hat and AUC on some tables."""
    found = []
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        matrices, edge, differs = truth(rng, p)
        rows = rows_of(rng, matrices, n)
        model = bs.models.grouped_gaussian_graphical({"a": rows[:n], "b": rows[n:]})
        idata, seconds = sampled(model, draws, tune)
        table = bs.difference_table(idata)
        chance = in_order(table, idata, "probability")
        checked = bs.check(idata)
        r_hat = max(row.r_hat for row in checked.rows if np.isfinite(row.r_hat))
        *separate, either = scores_of_separate_fits(rows, n, draws, tune)
        aucs = [roc_auc_score(differs, score) for score in (chance, *separate)]
        both = in_order(table, idata, "edge"), either
        aucs += [roc_auc_score(edge, score) for score in both]
        verdict = in_order(table, idata, "verdict")
        right = (verdict[differs] == "differs").mean(), (verdict[~differs] == "differs").mean()
        found.append((seconds, r_hat, checked.ok, *aucs, *right))
        print(
            f"table {seed}: {seconds:.1f} CPU s for 4 x ({tune} + {draws}), largest R-hat {r_hat:.4f} "
            f"({'converged' if checked.ok else 'not converged'}); AUC of {differs.sum()} differences {aucs[0]:.3f}, separate fits "
            f"{aucs[1]:.3f} (edges), {aucs[2]:.3f} (weights); of edges {aucs[3]:.3f}, {aucs[4]:.3f}; verdict 'differs' for {right[0]:.0%} of them and "
            f"{right[1]:.2%} of the other pairs"
        )
    mean = np.mean(found, axis=0)
    print(
        f"mean: {mean[0]:.1f} s, AUC of differences {mean[3]:.3f}, separate fits {mean[4]:.3f} (edges), {mean[5]:.3f} (weights), "
        f"of edges {mean[6]:.3f}, separate fits {mean[7]:.3f}"
    )


def reliability(p, n, tables):
    """Share of edges and differences that are true, by the probability that they were given; tables from the prior."""
    half, scales, rates = np.full((p, p), 0.5), (0.02, 1.0, 0.02, 1.0), np.full(2, 0.5)
    prior = log_relations(half, half), scales, rates
    upper, found = np.triu_indices(p, 1), []
    work = np.empty((2, 2, p)), np.empty((11, 4)), CONTRASTS
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        matrices, _ = sweep_groups_prior(rng, *prior, CONTRASTS, 60)
        relation = draw_relations(rng, matrices, *prior[:2])
        rows = rows_of(rng, matrices, n).to_numpy().reshape(2, n, p)
        scatter, sizes = rows.mT @ rows, np.full(2, float(n))
        K = np.stack([np.eye(p)] * 2)
        W, chances = K.copy(), np.zeros((4, p, p))
        for sweep in range(1100):
            if sweep == 100:
                chances[:] = 0.0
            groups_sweep(rng, K, W, chances, scatter, sizes, *prior, *work)
        own = ((chances + chances.swapaxes(1, 2)) / 2000)[:, *upper]
        found.append((1 - own[0], relation > 0, own[2], relation > 1))
    for name, at in (("edges", 0), ("differences", 2)):
        print(f"{name}:")
        print_reliability([values[at : at + 2] for values in found])


def scales(p, n, tables):
    """AUC and log score of differences for other scales."""
    for equal, large in (
        (0.02, 0.25),
        (0.02, 0.5),
        (0.02, 1.0),
        (0.02, 2.0),
        (0.05, 1.0),
        (0.1, 1.0),
    ):
        found = []
        for seed in range(tables):
            rng = np.random.default_rng(seed)
            matrices, _, differs = truth(rng, p)
            rows = rows_of(rng, matrices, n)
            model = bs.models.grouped_gaussian_graphical(
                {"a": rows[:n], "b": rows[n:]}, equal_scale=equal, difference_scale=large
            )
            idata, _ = sampled(model, 400, 150, chains=1, warm=False)
            chance = in_order(bs.difference_table(idata), idata, "probability")
            score = -np.log(np.where(differs, chance, 1 - chance).clip(1e-4)).sum()
            auc = roc_auc_score(differs, chance)
            found.append((auc, score, chance[differs].mean(), chance[~differs].mean()))
        auc, score, present, absent = np.mean(found, axis=0)
        print(
            f"equal {equal}, difference {large}: AUC {auc:.3f}, log score {score:.1f}, mean probability of differences "
            f"{present:.3f}, of other pairs {absent:.4f}"
        )


SIZE, ROWS = 10, 250


def binary_truth(rng):
    """Rows of two groups whose parameters are from the prior of the model, with edge probability .3; pairs with an edge, and that differ."""
    m = SIZE * (SIZE - 1) // 2
    while True:
        edge, differs = rng.random(m) < 0.3, rng.random(m) < 0.5
        gap = np.outer([1.0, -1.0], rng.normal(size=m)) / np.sqrt(2.0) * differs
        weight, bias = (rng.normal(size=m) + gap) * edge, rng.normal(size=(2, SIZE))
        rows = [
            pm.draw(bs.Ising.dist(b, w, shape=(ROWS, SIZE)), random_seed=rng)
            for b, w in zip(bias, weight, strict=True)
        ]
        if all(np.ptp(own, axis=0).all() for own in rows):  # models refuse constant columns
            return pd.DataFrame(np.vstack(rows)).add_prefix("x"), edge, edge & differs


def print_reliability(found):
    """Shares of true pairs by the probability that they were given."""
    given, true = map(np.concatenate, zip(*found, strict=True))
    print("pairs   mean probability   share that is true")
    for low, high in itertools.pairwise((0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 1.001)):
        own = (given >= low) & (given < high)
        if own.any():
            print(
                f"{low:4.2f}-{high:4.2f} {own.sum():7} {given[own].mean():18.3f} {true[own].mean():20.3f}"
            )


def binary(tables, draws, tune, likelihoods):
    """Time, AUC of differences against two separate fits, and reliability, with one likelihood or both."""
    for likelihood in likelihoods:
        found, edges, differences = [], [], []
        for seed in range(tables):
            rows, edge, differs = binary_truth(np.random.default_rng(seed))
            options = {"likelihood": likelihood, "edge_probability": 0.3, "bias_scale": 1.0}
            model = bs.models.ising({"a": rows[:ROWS], "b": rows[ROWS:]}, **options)
            idata, seconds = sampled(model, draws, tune, chains=2, warm=seed == 0)
            table = bs.difference_table(idata)
            chance, present = (in_order(table, idata, c) for c in ("probability", "edge"))
            r_hat = max(row.r_hat for row in bs.check(idata).rows if np.isfinite(row.r_hat))
            gap = _separate_gap(rows, options, draws, tune)
            aucs = [roc_auc_score(differs, score) for score in (chance, gap)]
            found.append((seconds, r_hat, *aucs, roc_auc_score(edge, present)))
            edges.append((present, edge))
            differences.append((chance, differs))
        mean = np.mean(found, axis=0)
        print(
            f"{likelihood}: {tables} tables, {mean[0]:.1f} CPU s for 2 x ({tune} + {draws}), largest R-hat {mean[1]:.3f} on average; AUC of "
            f"differences {mean[2]:.3f}, separate fits {mean[3]:.3f} (weights), of edges {mean[4]:.3f}"
        )
        for name, values in (("edges", edges), ("differences", differences)):
            print(f"{likelihood}, {name}:")
            print_reliability(values)


def _separate_gap(rows, options, draws, tune):
    """Difference of the weights of two separate fits over its deviation."""
    parts = []
    for own in (rows[:ROWS], rows[ROWS:]):
        idata, _ = sampled(bs.models.ising(own, **options), draws, tune, chains=1, warm=False)
        weight = idata["posterior"]["weight"]
        parts.append((weight.mean(("chain", "draw")).values, weight.var(("chain", "draw")).values))
    (a, v), (b, w) = parts
    return np.abs(a - b) / np.sqrt(v + w + 1e-12)


def main():
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", type=int)
    parser.add_argument("--reliability", action="store_true")
    parser.add_argument("--scales", action="store_true")
    parser.add_argument("--ising", action="store_true")
    parser.add_argument("--likelihood", nargs="+", default=["pseudo", "exact"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    if args.reliability:
        reliability(10, 100, args.tables or 200)
    elif args.ising:
        binary(args.tables or 30, draws=400, tune=50, likelihoods=args.likelihood)
    elif args.scales:
        scales(50, 100, args.tables or 5)
    else:
        compare(50, 100, args.tables or 5, draws=750, tune=150)


if __name__ == "__main__":
    main()
