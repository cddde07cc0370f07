"""Modes of sparse regressions as Ops: the time of a mode, and the additional time of its derivative.

Median CPU time of compiled functions of random responses (milliseconds). "pullback" is
the function of value and gradient in X, y and the rate, minus the mode alone. Run with
OPENBLAS_NUM_THREADS=1.
"""

import time

import numpy as np
import pytensor
import pytensor.tensor as pt

from bayesstruct import ops


def median_times(functions, inputs, repeats):
    """CPU time of each, taken in turn."""
    times = np.empty((repeats, len(functions)))
    for k in range(-1, repeats):
        for i, function in enumerate(functions):
            start = time.process_time()
            function(*inputs[k % len(inputs)])
            times[k, i] = time.process_time() - start  # the first round is overwritten
    return 1e3 * np.median(times, axis=0)


def compare(name, build, X, responses, rate, repeats=15):
    """Print a line: coefficients that are not zero, and times."""
    x, r = pt.dmatrix("x"), pt.dscalar("r")
    y = pt.tensor("y", dtype="float64", shape=(None,) * responses[0].ndim)
    w = build(x, y, r)
    loss = pt.sum(pt.sqr(w))
    mode = pytensor.function([x, y, r], w)
    both = pytensor.function([x, y, r], [w, *pytensor.grad(loss, [x, y, r])])
    inputs = [(X, t, rate) for t in responses]
    alone, together = median_times([mode, both], inputs, repeats)
    found = np.count_nonzero(mode(*inputs[0]))
    pullback = together - alone
    print(
        f"{name:42s} {found:6d} {alone:10.2f} {pullback:10.2f} {pullback / alone:8.2f}", flush=True
    )


def categories(X, y, rate):
    return ops.sparse_multinomial(X, y, rate)


def main():
    rng = np.random.default_rng(0)
    header = ("problem", "active", "mode ms", "pullback", "ratio")
    print("{:42s} {:>6s} {:>10s} {:>10s} {:>8s}".format(*header))
    for n, p in [(100, 20), (500, 200), (200, 2000)]:
        X = rng.normal(size=(n, p))
        beta = np.where(np.arange(p) < 10, 1.0, 0.0)
        gaussian = [X @ beta + rng.normal(size=n) for _ in range(5)]
        logistic = [(X @ beta + rng.logistic(size=n) > 0) * 1.0 for _ in range(5)]
        size = f"n={n}, p={p}"
        top = np.abs(X.T @ gaussian[0]).max()
        half = 0.5 * np.abs(X.T @ (logistic[0] - 0.5)).max()
        compare(f"lasso {size}", ops.lasso, X, gaussian, 0.2 * top)
        compare(f"sparse_logistic {size}", ops.sparse_logistic, X, logistic, 0.5 * half)
        groups = np.arange(p) // 5

        def group(X, y, rate, groups=groups):
            return ops.group_lasso(X, y, groups, rate)

        compare(f"group_lasso {size}, groups of 5", group, X, gaussian, 0.4 * top)
        table = [np.eye(3)[rng.integers(3, size=n) * (X[:, 0] > 0)] for _ in range(5)]
        third = np.abs(X.T @ (table[0] - table[0].mean(axis=0))).max()
        compare(f"sparse_multinomial {size}, k=3", categories, X, table, 0.4 * third)
        parents = np.append(-1, (np.arange(1, p) - 1) // 3)

        def tree(X, y, rate, parents=parents):
            return ops.tree_lasso(X, y, None, rate, parents=parents)

        compare(f"tree_lasso {size}, three children each", tree, X, gaussian, 0.2 * top)
    for p in (20, 100):
        n = 5 * p
        table = rng.normal(size=(n, p)) @ (np.eye(p) + 0.5 * np.eye(p, k=1))
        tables = [table.T.copy()]
        own = np.eye(p, dtype=bool)

        def neighbourhoods(X, y, rate, own=own):
            return ops.lasso(X, y, pt.switch(own, np.inf, rate))

        rate = 0.2 * n
        compare(f"{p} neighbourhoods, n={n}, one call", neighbourhoods, table, tables, rate, 7)


if __name__ == "__main__":
    main()
