"""Forests of the greatest likelihood less n ** -exponent an edge: risk, and errors by exponent.

Run as ``python benchmarks/markov_forests.py [risk | exponents]``, for both without a word. Columns of two states; the first one is joined to k
others, which equal it with probability .7, and the rest are independent (Tan, Anandkumar and Willsky 2011, section 7).

- risk: 21 columns, k = 10, exponent .625, 300 tables for each number of rows: the mean Kullback-Leibler divergence D of the fitted
  distribution from the true one, its slope on a log-log scale (-1 expected), and n D, which half the number of
  parameters (31 / 2 = 15.5) is the limit of.
- exponents: 101 columns, k = 50: share of tables whose forest is wrong, by exponent.
"""

import sys

import numpy as np
import pandas as pd

import bayesstruct as bs

KEPT = 0.7


def star(rng, n, d, k):
    """Rows of a star with independent columns."""
    x = rng.integers(0, 2, (n, d))
    kept = rng.random((n, k)) < KEPT
    x[:, 1 : k + 1] = np.where(kept, x[:, :1], 1 - x[:, :1])
    return x


def pair(i, j, k):
    """Probabilities of two columns."""
    same = 0.25
    if 0 in (i, j) and max(i, j) <= k:
        same = KEPT / 2
    elif max(i, j) <= k:
        same = (KEPT**2 + (1 - KEPT) ** 2) / 2
    return np.array([[same, 0.5 - same], [0.5 - same, same]])


def divergence(x, forest, k):
    """Kullback-Leibler divergence of the fitted distribution from the true one, in nats."""
    n, d = x.shape
    noise = -(KEPT * np.log(KEPT) + (1 - KEPT) * np.log(1 - KEPT))
    total = -np.log(2) * (d - k) - k * noise
    ones = x.mean(axis=0)
    alone = np.log(np.array([1 - ones, ones]))
    total -= 0.5 * alone.sum()
    for a, b in forest.graph.edges:
        i, j = sorted((int(a[1:]), int(b[1:])))
        joint = np.zeros((2, 2))
        np.add.at(joint, (x[:, i], x[:, j]), 1.0 / n)
        ratio = np.log(joint) - alone[:, i][:, None] - alone[:, j]
        total -= (pair(i, j, k) * ratio).sum()
    return total


def fit(x, exponent):
    """Return the forest of a table of states."""
    return bs.solvers.chow_liu(x, columns="states", penalty="power", exponent=exponent)


def risk(d=21, k=10, exponent=0.625, tables=300):
    """Print the risk and its slope."""
    rng = np.random.default_rng(0)
    rows = [250, 500, 1000, 2000, 4000, 8000]
    mean = []
    for n in rows:
        found = [
            divergence(x, fit(x, exponent), k) for x in (star(rng, n, d, k) for _ in range(tables))
        ]
        mean.append(np.mean(found))
        error = n * np.std(found) / np.sqrt(tables)
        print(
            f"n = {n:5,d}: D {mean[-1]:.4f}, n D {n * mean[-1]:.2f} (standard error {error:.2f})",
            flush=True,
        )
    print(f"slope {np.polyfit(np.log(rows), np.log(mean), 1)[0]:.3f}")


def exponents(d=101, k=50, tables=100):
    """Print the share of wrong forests by exponent."""
    rng = np.random.default_rng(1)
    true = {("x0", f"x{j}") for j in range(1, k + 1)}
    values = [0.45, 0.5, 0.55, 0.575, 0.6, 0.625, 0.65, 0.7]
    for n in (200, 400, 800):
        wrong = np.zeros(len(values))
        for _ in range(tables):
            # Forests are nested: edges of the tree and what they have to exceed say all of them.
            edges = bs.solvers.chow_liu(star(rng, n, d, k), columns="states").edges
            for place, value in enumerate(values):
                kept = edges[edges["information"] > n**-value]
                ends = pd.DataFrame({"first": kept["first"], "second": kept["second"]})
                wrong[place] += set(ends.itertuples(index=False, name=None)) != true
        shares = ", ".join(f"{b:g}: {w / tables:.2f}" for b, w in zip(values, wrong, strict=True))
        print(f"n = {n}: share of wrong forests by exponent {shares}", flush=True)


if __name__ == "__main__":
    parts = {"risk": risk, "exponents": exponents}
    for name in sys.argv[1:] or parts:
        parts[name]()
