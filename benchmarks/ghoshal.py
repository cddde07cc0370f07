"""Directed graphs by removing sinks (Ghoshal 2019, chapter 2): tables 2.1 and 2.2, known variances, and CLIME against HiGHS.

    uv run python benchmarks/ghoshal.py                 # 50 and 100 columns, some three minutes
    uv run python benchmarks/ghoshal.py --repeats 30 --columns 50 100 150 200

As in section 2.6.1 of the thesis: random graphs, coefficients uniform on [-1, -.5] and [.5, 1], noise of random signs, all variances .8
(table 2.1) or uniform on [.5, 1] (table 2.2, where no method can find all arcs: the line "true matrix" is what the true precision matrix
gives). What the thesis does not print is chosen here: expected degree .5, n = 1,000, penalty .5 sqrt(log p / n), threshold .25. Precision
is its "accuracy". Seconds are CPU seconds of one thread, those of the thesis are its own.
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from scipy.optimize import linprog

from bayesstruct.solvers import clime, sink_removal

THESIS = {
    50: ("1.00 1.00   .12", ".97 .97   .12"),
    100: ("1.00 1.00   .92", ".95 .96   .93"),
    150: ("1.00 1.00  3.16", ".96 .96  3.24"),
    200: ("1.00 1.00  9.22", ".96 .96  9.44"),
}


def model(p, degree, rng):
    """Coefficients of a random graph; row the child."""
    B = rng.uniform(0.5, 1.0, (p, p)) * rng.choice([-1, 1], (p, p))
    B *= np.tril(rng.random((p, p)) < degree / (p - 1), -1)
    order = rng.permutation(p)
    return B[np.ix_(order, order)]


def second_moments(B, variances, n, rng, noise="signs"):
    """Second moments of n rows."""
    p = len(B)
    unit = rng.choice([-1.0, 1.0], (n, p)) if noise == "signs" else rng.normal(size=(n, p))
    x = unit * np.sqrt(variances) @ np.linalg.inv(np.eye(p) - B).T
    return x.T @ x / n


def precision_of(B, variances):
    """Precision matrix."""
    mixing = np.eye(len(B)) - B
    return mixing.T @ np.diag(1 / np.broadcast_to(variances, len(B))) @ mixing


def compared(weights, B):
    """Precision, recall and whether the graph is the true one."""
    found, true = weights != 0, B != 0
    both = (found & true).sum()
    return both / max(found.sum(), 1), both / max(true.sum(), 1), np.array_equal(found, true)


def line(name, results, seconds=None):
    """Print means over the repeats."""
    precision, recall, exact = np.mean(results, axis=0)
    spent = "" if seconds is None else f"  {np.mean(seconds):6.2f} s"
    print(
        f"  {name:32s} precision {precision:.3f}  recall {recall:.3f}  exact {exact:.2f}{spent}",
        flush=True,
    )


def tables(columns, repeats):
    """Tables 2.1 and 2.2."""
    for which, equal in enumerate((True, False)):
        print(f"table 2.{which + 1}; the thesis: accuracy, recall, seconds")
        for p in columns:
            rng = np.random.default_rng(p)
            methods = {"all rows": {}, "rows of the support": {"rows": "support"}}
            methods["elements up to .05 are zero"] = {"support": 0.05}
            results = {name: [] for name in (*methods, "true matrix")}
            seconds = {name: [] for name in results}
            for _ in range(repeats):
                B = model(p, 0.5, rng)
                variances = np.full(p, 0.8) if equal else rng.uniform(0.5, 1, p)
                S = second_moments(B, variances, 1000, rng)
                for name, options in methods.items():
                    start = time.process_time()
                    found = sink_removal(S, n=1000, threshold=0.25, **options)
                    seconds[name].append(time.process_time() - start)
                    results[name].append(compared(found.weights, B))
                true = sink_removal(precision=precision_of(B, variances), threshold=1e-9)
                results["true matrix"].append(compared(true.weights, B))
            print(f" p = {p}, {repeats} models (thesis: {THESIS.get(p, ('', ''))[which]})")
            for name, values in results.items():
                line(name, values, seconds[name] or None)


def known_variances(repeats=30):
    """Without the variances of the noise the graph is lost."""
    print("p = 50, degree 2, variances uniform on [.5, 2] up to a factor, n = 4,000, inverse")
    rng = np.random.default_rng(0)
    results = {"variances known": [], "taken to be equal": []}
    for _ in range(repeats):
        B, variances = model(50, 2, rng), rng.uniform(0.5, 2, 50)
        S = second_moments(B, 3 * variances, 4000, rng, "normal")
        for name, known in (("variances known", variances), ("taken to be equal", None)):
            found = sink_removal(S, estimator="inverse", variances=known, threshold=0.25)
            results[name].append(compared(found.weights, B))
    for name, values in results.items():
        print(f"  {name}: {sum(exact for *_, exact in values)} of {repeats} graphs exact")


def complements(columns, repeats=30):
    """Schur complements of the inverse need more rows."""
    print("inverse with Schur complements, degree 2: share of exact graphs")
    for p in columns:
        shares = []
        for n in (500, 2000):
            rng, exact = np.random.default_rng(p), 0
            for _ in range(repeats):
                B = model(p, 2, rng)
                S = second_moments(B, np.full(p, 0.8), n, rng)
                exact += compared(sink_removal(S, estimator="inverse", threshold=0.25).weights, B)[
                    2
                ]
            shares.append(exact / repeats)
        print(f"  p = {p}: n = 500 {shares[0]:.2f}, n = 2,000 {shares[1]:.2f}", flush=True)


def against_highs(columns):
    """CLIME alone, each column by `scipy.optimize.linprog` for comparison."""
    print("CLIME, degree 2, n = 1,000: this package, and HiGHS on some of the columns")
    for p in columns:
        rng = np.random.default_rng(p)
        S, penalty = (
            second_moments(model(p, 2, rng), np.full(p, 0.8), 1000, rng),
            0.5 * np.sqrt(np.log(p) / 1000),
        )
        start = time.process_time()
        solution = clime(S, penalty)
        own = time.process_time() - start
        start, worst, some = time.process_time(), 0.0, range(0, p, p // 10)
        for j in some:
            e = np.arange(p) == j
            done = linprog(
                np.ones(2 * p),
                A_ub=np.block([[S, -S], [-S, S]]),
                b_ub=np.concatenate([penalty + e, penalty - e]),
                method="highs",
            )
            worst = max(worst, abs(done.x[:p] - done.x[p:] - solution.columns[:, j]).max())
        highs = (time.process_time() - start) * p / len(some)
        print(
            f"  p = {p}: {own:.2f} s, HiGHS {highs:.1f} s ({highs / own:.0f} times); largest difference {worst:.1e}, "
            f"gap {solution.gap:.1e}",
            flush=True,
        )


def main():
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--columns", type=int, nargs="+", default=[50, 100])
    options = parser.parse_args()
    clime(np.diag([1.0, 2.0, 3.0]), 0.1)  # compiles
    known_variances()
    against_highs(options.columns)
    complements(options.columns)
    tables(options.columns, options.repeats)


if __name__ == "__main__":
    main()
