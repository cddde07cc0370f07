"""Markov blankets of words in newsgroup postings, against the numbers of a thesis.

    uv run python benchmarks/news_blankets.py           # the five words that are printed there
    uv run python benchmarks/news_blankets.py --all     # all 100 words: some minutes

Schmidt (2010, section 4.6.2): 16,242 postings, presence of 100 words coded -1 and 1. For each word
an l1-regularised logistic regression on the others at 100 rates t/100 of the largest one, down to
zero; the support of lowest BIC after an unpenalised refit is the blanket. Printed there: weights that this script prints to two decimals (christian:bmw apart, which is minus infinity and was
stopped at -11.54), and 1,459 non-zero weights in all (1,173 of one sign, 286 of the other).
"""

import argparse
import os
import sys
import time

from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from scipy.io import loadmat

from bayesstruct.penalties import L1
from bayesstruct.solvers import bayesian_information_criterion, sparse_mode, sparse_path

DATA = Path(__file__).parents[2] / "shared" / "data" / "news_w100.mat"


def blanket(X, j):
    """Columns of the blanket of column j and their unpenalised weights."""
    p = X.shape[1]
    rest = np.delete(np.arange(p), j)
    y = (X[:, j] > 0).astype(float)
    A = np.asfortranarray(X[:, rest])
    largest = sparse_path(A, y, family="logistic", penalty=L1(1.0), rates=[1e12], tol=1e-6)[0]
    rates = np.abs(largest.gradient).max() * np.arange(p - 1, -1, -1) / p
    path = sparse_path(A, y, family="logistic", rates=rates, tol=1e-6)
    score = bayesian_information_criterion(A, y, path, family="logistic")
    S = np.flatnonzero(path[int(np.argmin(score))].coefficients)
    fit = sparse_mode(A[:, S], y, family="logistic", rate=1e-4, tol=1e-9)  # some run to infinity
    return rest[S], fit.coefficients


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    if not DATA.exists():
        print(f"{DATA.name} is not there; nothing to reproduce")
        sys.exit(0)
    table = loadmat(DATA, spmatrix=True)
    X = 2.0 * np.asarray(table["documents"].todense(), dtype=float).T - 1.0
    words = [str(w[0]) for w in table["wordlist"][0]]
    chosen = range(100) if arguments.all else range(5)
    weights, start = [], time.process_time()
    for j in chosen:
        index, w = blanket(X, j)
        weights.extend(w)
        if j < 5:
            listed = ", ".join(f"{words[i]} ({v:.2f})" for i, v in zip(index, w, strict=True))
            print(f"{words[j]}: {listed}", flush=True)
    weights = np.array(weights)
    print(
        f"{len(weights)} non-zero weights, {(weights > 0).sum()} positive, "
        f"{(weights < 0).sum()} negative, {time.process_time() - start:.0f} CPU s"
    )


if __name__ == "__main__":
    main()
