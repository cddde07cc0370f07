"""Local scores of Bayesian networks: times of single parent sets, and of all subsets of candidates.

    OPENBLAS_NUM_THREADS=1 uv run --no-sync python benchmarks/local_scores.py

Targets on one core:
- BGe, d = 50: 10,000 parent sets of at most 4 in less than 0.2 s, products of the columns included; the
  2**14 subsets of 14 candidates in less than 20 ms;
- BDeu, 37 variables of 2 to 4 states, n = 20,000: 10,000 parent sets of at most 4, each one counted anew, in
  less than 5 s.

Each line prints the time of the same scores by plain NumPy next to it (of 200 of them, multiplied), and the
greatest difference of the two. Kernels are compiled or loaded beforehand; the least of three runs counts.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time

import numpy as np

from scipy.special import gammaln

from bayesstruct.networks.kernels.scores.named import network_score

FEW = 200


def families(d, count, rng, most=4):
    """Random children with parent sets of 0 to `most` variables, all sizes with the same probability."""
    out = []
    for _ in range(count):
        child, *parents = rng.permutation(d)[: 1 + rng.integers(most + 1)].tolist()
        out.append((child, tuple(parents)))
    return out


def seconds(function, repeats=3):
    """Least time of some calls, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def plain_bge(x):
    """BGe score by determinants of submatrices (Kuipers, Moffa and Heckerman 2014)."""
    n, d = x.shape
    mean, a, t = x.mean(0), 2.0, 0.5
    matrix = t * np.eye(d) + (x - mean).T @ (x - mean) + n / (n + 1) * np.outer(mean, mean)

    def subset(variables):
        k = len(variables)
        if not k:
            return 0.0
        half, i = 0.5 * (a + k), np.arange(k)
        gammas = (gammaln(half + 0.5 * n - i / 2) - gammaln(half - i / 2)).sum()
        log_det = np.linalg.slogdet(matrix[np.ix_(variables, variables)])[1]
        constant = -0.5 * k * np.log(n + 1) - 0.5 * k * n * np.log(np.pi) + half * k * np.log(t)
        return constant + gammas - (half + 0.5 * n) * log_det

    return lambda child, parents: subset([child, *parents]) - subset(list(parents))


def plain_bdeu(x, states):
    """BDeu score by counting with NumPy."""

    def local(child, parents):
        r, q = states[child], int(np.prod(states[list(parents)], initial=1))
        code = np.zeros(len(x), np.int64)
        for j in parents:
            code = code * states[j] + x[:, j]
        counts = np.bincount(code * r + x[:, child], minlength=q * r).reshape(q, r)
        a = 1.0 / (q * r)
        rows = gammaln(r * a) - gammaln(r * a + counts.sum(1))
        return rows.sum() + (gammaln(a + counts) - gammaln(a)).sum()

    return local


def single(name, make, plain, sets):
    """Print the time of single parent sets, beside plain NumPy."""
    make().local(*sets[0])
    taken, scores = seconds(lambda: [score.local(*family) for score in [make()] for family in sets])
    slow, other = seconds(lambda: [plain(*family) for family in sets[:FEW]], 1)
    worst = np.abs(np.array(other) - scores[:FEW]).max()
    print(
        f"{name}: {len(sets):,} parent sets {taken:.3f} s, NumPy {slow / FEW * len(sets):.1f} s, "
        f"greatest difference {worst:.1e}",
        flush=True,
    )


def all_subsets(name, score, k):
    """Print the time of all subsets of k candidates, beside single calls."""
    candidates = tuple(range(1, k + 1))
    score.subsets(0, candidates)
    taken, scores = seconds(lambda: score.subsets(0, candidates))
    masks = np.random.default_rng(0).integers(0, 1 << k, FEW)
    sets = [tuple(c for b, c in enumerate(candidates) if m >> b & 1) for m in masks]
    slow, other = seconds(lambda: [score.local(0, parents) for parents in sets], 1)
    print(
        f"{name}: 2**{k} subsets {1e3 * taken:.1f} ms, one by one {slow / FEW * 2**k:.2f} s, "
        f"greatest difference {np.abs(scores[masks] - other).max():.1e}",
        flush=True,
    )


def main():
    """Print all lines."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1_000, 50)) @ rng.normal(size=(50, 50)) / 7
    single(
        "BGe d=50 n=1,000", lambda: network_score(x, "bge"), plain_bge(x), families(50, 10_000, rng)
    )
    all_subsets("BGe d=50", network_score(x, "bge"), 14)
    all_subsets("Gaussian BIC d=50", network_score(x, "gaussian"), 14)

    # A chain of dependent variables: rows of real tables are not uniform.
    states = rng.integers(2, 5, size=37)
    z = np.empty((20_000, 37), np.int64)
    z[:, 0] = rng.integers(0, states[0], 20_000)
    for j in range(1, 37):
        noise = rng.random(20_000) < 0.3
        z[:, j] = np.where(noise, rng.integers(0, states[j], 20_000), z[:, j - 1] % states[j])
    make = lambda: network_score(z, "bdeu", states=states)  # noqa: E731
    single("BDeu d=37 n=20,000", make, plain_bdeu(z, states), families(37, 10_000, rng))
    all_subsets("BDeu d=37 n=20,000, 2 to 4 states", make(), 14)
    binary = network_score(z % 2, "bdeu", states=[2] * 37)
    all_subsets("BDeu d=37 n=20,000, 2 states", binary, 14)
    logistic = network_score(z[:1_000] % 2, "logistic")
    all_subsets("logistic BIC d=37 n=1,000, 2 values", logistic, 10)


if __name__ == "__main__":
    main()
