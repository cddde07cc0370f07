"""Graphs of several tables at once: AUC, certified gap and time of the multi-task modes, against one mode a table.

    uv run python benchmarks/multi_task_modes.py      # about a minute; --tables 10 for all of the inventory's

The synthetic problem of Honorio (2012, section 4.9): N = 50 columns, K = 5 tables of T = 50 rows with one random graph of density
.1, .3 or .5, elements uniform on [-1, 1] in each table, diagonals raised until the smallest eigenvalue is .1. A path of eleven
rates, each from the solution before; AUC of the path's sensitivity over one minus its specificity, edges being elements that
are not zero.
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bayesstruct.solvers import graphical_lasso, multi_task_graphical_lasso

WANTED = {0.1: 0.93, 0.3: 0.82, 0.5: 0.74}
GAP = 1e-5


def tables(density, seed, p=50, tasks=5, n=50):
    """Covariance matrices and which elements are edges."""
    rng = np.random.default_rng(seed)
    upper = np.triu_indices(p, 1)
    graph = rng.random(len(upper[0])) < density
    S = []
    for _ in range(tasks):
        A = np.zeros((p, p))
        A[upper] = graph * rng.uniform(-1, 1, len(graph))
        A = A + A.T
        K = A + np.eye(p) * (0.1 - np.linalg.eigvalsh(A)[0])
        rows = rng.multivariate_normal(np.zeros(p), np.linalg.inv(K), size=n)
        S.append(rows.T @ rows / n)
    return np.array(S), n, np.tile(graph, (tasks, 1))


def path(S, n, norm):
    """Matrices for each rate of a path, the largest gap, and the CPU seconds of the path."""
    upper = np.triu_indices(S.shape[1], 1)
    dual = {"l2": 2, "linf": 1, "one table": np.inf}[norm]
    top = n * np.linalg.norm(S[:, *upper], dual, 0).max()
    found, gap, solution = [], 0.0, None
    start = time.process_time()
    for rate in top * np.logspace(0, -2.5, 12)[1:]:
        if norm == "one table":
            modes = [graphical_lasso(s, rate / n, tol=2 * GAP / n / s.size) for s in S]
            K = np.array([mode.precision for mode in modes])
            gap = max(gap, n / 2 * max(mode.gap for mode in modes))
        else:
            solution = multi_task_graphical_lasso(S, n, rate, norm=norm, tol=GAP, init=solution)
            K, gap = solution.precision, max(gap, solution.gap)
        found.append(K[:, *upper] != 0)
    return found, gap, time.process_time() - start


def auc(found, truth):
    """Area under sensitivity over one minus specificity, (0, 0) and (1, 1) being added."""
    x = [0.0, *((e & ~truth).sum() / (~truth).sum() for e in found), 1.0]
    y = [0.0, *((e & truth).sum() / truth.sum() for e in found), 1.0]
    order = np.lexsort((y, x))
    return np.trapezoid(np.array(y)[order], np.array(x)[order])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=3)
    count = parser.parse_args().tables
    multi_task_graphical_lasso(np.eye(2)[None], 5, 1.0)  # compiles
    for density, wanted in WANTED.items():
        problems = [tables(density, seed) for seed in range(count)]
        for norm in "l2", "linf", "one table":
            runs = [path(S, n, norm) for S, n, _ in problems]
            areas = [auc(run[0], problem[2]) for run, problem in zip(runs, problems, strict=True)]
            gap, seconds = max(run[1] for run in runs), np.mean([run[2] for run in runs])
            print(
                f"density {density} {norm:>9}: AUC {np.mean(areas):.3f} ({wanted} wanted of l2), "
                f"gap {gap:.1e}, {seconds:.2f} s a path of 11 rates"
            )


if __name__ == "__main__":
    main()
