"""Follow dual augmented Lagrangian steps on the source's synthetic table, and time them.

    uv run python benchmarks/dual_augmented.py        # a minute

Labels are signs of a linear predictor, 1,024 rows, 16,384 independent normal columns, one in 25 of
them with a coefficient; the rate is .01 of the largest product of a column and the labels, no
intercept; the first proximity is 1 over the rate (aggressive) or .01 over it (conservative). The
source (Tomioka, Suzuki and Sugiyama 2011, section 7.2) reports ten aggressive steps where others
take a hundred and more. Then the same with a constant, and with groups of four columns, against
`sparse_mode` at the same relative gap. Seconds are wall seconds with one BLAS thread, compilation
excluded.
"""

import itertools
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bayesstruct.penalties import L1, Group
from bayesstruct.sparse.solvers.designs import as_design
from bayesstruct.sparse.solvers.dual_augmented import (
    dual_augmented_lagrangian,
    dual_augmented_steps,
    l1_problem,
)
from bayesstruct.sparse.solvers.losses import loss_for
from bayesstruct.sparse.solvers.sparse import sparse_mode

ROWS, COLUMNS, SHARE = 1024, 16_384, 0.01
TOL = 1e-6


def table(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    A, w = np.asfortranarray(rng.standard_normal((rows, columns))), np.zeros(columns)
    on = rng.choice(columns, columns // 25, replace=False)
    w[on] = rng.standard_normal(len(on))
    y = np.sign(A @ w + 0.01 * rng.standard_normal(rows))
    return A, y, np.abs(A.T @ y).max()


def follow(A, y, rate, eta):
    problem = l1_problem(as_design(A, intercept=False), loss_for("logistic", y), L1(rate))
    run = dual_augmented_steps(problem, np.zeros(A.shape[1]), eta=eta / rate)
    began, gaps, newton = time.perf_counter(), [], 0
    for step in itertools.islice(run, 40):
        gaps.append(step.gap / step.objective)
        newton += step.newton_steps
        if gaps[-1] < 1e-8:
            break
    seconds = time.perf_counter() - began
    first = next(k for k, gap in enumerate(gaps, start=1) if gap < 1e-3)
    print(f"eta = {eta:g} / rate: {first} steps to a relative gap of 1e-3, {len(gaps)} to 1e-8")
    print(f"  {newton} Newton steps, {seconds:.1f} s; gaps", *(f"{gap:.0e}" for gap in gaps))


def compare(A, y, penalty, intercept, name):
    options = {"family": "logistic", "penalty": penalty, "intercept": intercept}
    began = time.perf_counter()
    one = dual_augmented_lagrangian(A, y, tol=TOL, **options)
    middle = time.perf_counter()
    scale = one.objective / np.log(2) / len(y)  # sparse_mode's tolerance is relative to the null
    two = sparse_mode(A, y, tol=TOL * scale, **options)
    end = time.perf_counter()
    print(
        f"{name:28s} dal {middle - began:6.2f} s (gap {one.gap / one.objective:.0e}), "
        f"sparse_mode {end - middle:6.2f} s (gap {two.gap / two.objective:.0e}), "
        f"ratio {(middle - began) / (end - middle):.2f}"
    )


def main():
    warm, labels, top = table(64, 128)
    for penalty in (L1(0.05 * top), Group(0.05 * top, np.arange(128) // 4)):
        sparse_mode(warm, labels, family="logistic", penalty=penalty)  # compiles
    A, y, top = table(ROWS, COLUMNS)
    for eta in (1.0, 0.01):
        follow(A, y, SHARE * top, eta)
    compare(A, y, L1(SHARE * top), False, "l1")
    compare(A, y, L1(SHARE * top), True, "l1, constant")
    compare(A, y, L1(10 * SHARE * top), False, "l1, ten times the rate")
    groups = np.arange(COLUMNS) // 4
    compare(A, y, Group(2 * SHARE * top, groups), False, "groups of 4, twice the rate")


if __name__ == "__main__":
    main()
