"""DirectLiNGAM: against the `lingam` package, on the tables of the article, and by size.

    python benchmarks/direct_lingam.py                 # sizes, SHD, Table 1 up to 20 columns: a minute
    python benchmarks/direct_lingam.py --large         # Table 1 with 50 and 100 columns too
    python benchmarks/direct_lingam.py --peer --rows 300 --columns 10

`lingam` 1.13 asks for a SciPy that does not build on Python 3.13, and runs with newer ones: `pip install --no-deps
--target peers lingam`, then `PYTHONPATH=peers uv run --with semopy --with psy --with pygam --with autograd --with
statsmodels --with graphviz python benchmarks/direct_lingam.py --peer`. Its kernel measure decomposes matrices of twice as many rows
as the table for each pair: about an hour for 10 columns of 1,000 rows. `--pairs 2` times so many of its pairs and
multiplies, in place of a whole run; `--pairs 0` runs it as a whole, and compares the orders.

The Gram matrices of `lingam` are not centred and its residuals keep their scale, so that its kernel measure is not the mutual
information of Bach and Jordan, and errs for light tails. `peer` therefore also finds the order by *its* measure with
factors of low rank, to compare orders, and counts arcs against either.

*Table 1* of Shimizu et al. (2011): median Frobenius distance of the coefficients, five tables a cell, weights ±[.5,
1.5], variances 1 to 3, noise of each column from one of 18 densities (Bach and Jordan 2002; the mixtures have
parameters chosen here, since the article does not print them), expected neighbours 2 or 5, or all pairs.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import networkx as nx
import numpy as np

from bayesstruct.data import TableWarning
from bayesstruct.sem.kernels.kernel_information import (
    KernelFactor,
    incomplete_cholesky,
    kernel_information,
    kernel_settings,
)
from bayesstruct.sem.simulate import mixture_noise
from bayesstruct.sem.solvers.causal_order import MEASURES, causal_order
from bayesstruct.sem.solvers.knowledge import read_knowledge
from bayesstruct.simulate import linear_sem
from bayesstruct.solvers import direct_lingam

#: Table 1 of the article, DirectLiNGAM: (network, columns) -> n = 500, 1,000, 2,000.
ARTICLE = {
    ("sparse", 10): (0.48, 0.31, 0.21), ("sparse", 20): (1.19, 0.70, 0.50),
    ("sparse", 50): (2.57, 1.82, 1.40), ("sparse", 100): (5.75, 4.61, 2.35),
    ("dense", 10): (0.45, 0.46, 0.20), ("dense", 20): (1.46, 1.53, 1.12),
    ("dense", 50): (4.40, 4.57, 3.86), ("dense", 100): (7.38, 6.81, 6.19),
}  # fmt: skip


def scaled_t(degrees):
    return lambda rng, n: rng.standard_t(degrees, n) * np.sqrt((degrees - 2) / degrees)


def two_laplaces(rng, n):
    values = rng.choice([-1.5, 1.5], n) + rng.laplace(scale=0.5, size=n)
    return values / np.sqrt(1.5**2 + 2 * 0.5**2)


#: Bach and Jordan's 18 kinds; three shapes each of mixtures of two and four normals, symmetric and not.
DENSITIES = {
    "student 3": scaled_t(3), "laplace": "laplace", "uniform": "uniform", "student 5": scaled_t(5),
    "exponential": "exponential", "two laplaces": two_laplaces,
    "two multimodal": mixture_noise([1, 1], [-1, 1], [0.3, 0.3]),
    "two transitional": mixture_noise([1, 1], [-1, 1], [0.65, 0.65]),
    "two unimodal": mixture_noise([1, 1], [0, 0], [0.4, 1.6]),
    "two multimodal asymmetric": mixture_noise([1, 3], [-1.5, 0.8], [0.3, 0.4]),
    "two transitional asymmetric": mixture_noise([1, 2], [-1, 1], [0.4, 0.8]),
    "two unimodal asymmetric": mixture_noise([1, 2], [-0.7, 0.7], [0.5, 1.0]),
    "four multimodal": mixture_noise([1, 1, 1, 1], [-3, -1, 1, 3], [0.3] * 4),
    "four transitional": mixture_noise([1, 2, 2, 1], [-2, -0.7, 0.7, 2], [0.4] * 4),
    "four unimodal": mixture_noise([1, 4, 4, 1], [-2.2, -0.4, 0.4, 2.2], [0.7, 0.4, 0.4, 0.7]),
    "four multimodal asymmetric": mixture_noise([1, 2, 1, 3], [-3, -1, 1, 3], [0.3] * 4),
    "four transitional asymmetric": mixture_noise([1, 2, 3, 1], [-2, -0.5, 0.8, 2.5], [0.5] * 4),
    "four unimodal asymmetric": mixture_noise([1, 2, 3, 2], [-2, -1, 0, 0.7], [0.7, 0.6, 0.5, 0.4]),
}  # fmt: skip


def timed(function, *arguments, **options):
    start = time.process_time()
    result = function(*arguments, **options)
    return result, time.process_time() - start


def article_table(network, p, n, seed):
    rng = np.random.default_rng([seed, p, n, network == "dense"])
    kinds = rng.choice(list(DENSITIES), p)
    neighbours = p - 1 if network == "dense" else rng.choice([2, 5])
    return linear_sem(
        n, p, noise={f"x{i}": DENSITIES[kind] for i, kind in enumerate(kinds)},
        expected_neighbours=neighbours, random_seed=rng,
    )  # fmt: skip


def half_known(graph, names, rng):
    """Paths and absences of paths of half of the pairs."""
    closure = nx.to_numpy_array(nx.transitive_closure_dag(graph), nodelist=names, weight=None).T
    return np.where(rng.random(closure.shape) < 0.5, closure.astype(int), -1)


def table_1(columns, measure, tables=5):
    print(f"\nTable 1, median Frobenius distance, measure {measure!r}: article; all arcs along the order, "
          "pruned, half of the paths known; seconds of one table")  # fmt: skip
    for (network, p), published in ARTICLE.items():
        if p not in columns:
            continue
        for n, article in zip((500, 1_000, 2_000), published, strict=True):
            distances, seconds = [], []
            for seed in range(tables):
                table = article_table(network, p, n, seed)
                known = half_known(table.graph, list(table.data), np.random.default_rng(seed))
                runs = ({"prune": None}, {}, {"prior_knowledge": known})
                found = [timed(direct_lingam, table.data, measure=measure, **run) for run in runs]
                truth = table.coefficients.to_numpy()
                distances.append([np.linalg.norm(one.coefficients - truth) for one, _ in found])
                seconds.append(found[1][1])
            shown = " ".join(f"{value:6.2f}" for value in np.median(distances, axis=0))
            print(
                f"{network} p = {p:3} n = {n:5,}  {article:5.2f}  {shown}  {np.median(seconds):6.2f} s"
            )


def sizes():
    print("\nCPU seconds, comparisons, arcs against the order, SHD; four expected neighbours")
    for p, n in ((10, 1_000), (20, 1_000), (100, 2_000)):
        for noise in ("uniform", "laplace"):
            table = linear_sem(n, p, noise=noise, random_seed=p)
            truth = table.coefficients.to_numpy() != 0
            for measure in MEASURES if p < 100 else MEASURES[1:]:
                found, seconds = timed(direct_lingam, table.data, measure=measure)
                place = {name: k for k, name in enumerate(found.order)}
                wrong = sum(place[a] > place[b] for a, b in table.graph.edges)
                shd = shd_of(truth, found.coefficients.to_numpy() != 0)
                print(f"p = {p:3} n = {n:,} {noise:8} {measure:17} {seconds:6.3f} s "
                      f"{found.evaluations:7,} {wrong:3} of {truth.sum()} {shd:3}")  # fmt: skip


def shd_of(truth, found):
    """Pairs of columns whose arc differs; a reversal counts once."""
    differs = truth != found
    return int(np.triu(differs | differs.T).sum())


def peer(n, p, pairs, noise):
    import lingam

    table = linear_sem(n, p, noise=noise, random_seed=p)
    values = table.data.to_numpy()
    names = list(table.data)
    for measure, theirs in (("entropy", "pwling"), ("kernel", "kernel")):
        own, seconds = timed(causal_order, values, measure, read_knowledge(tuple(names)))
        model = lingam.DirectLiNGAM(measure=theirs)
        if theirs == "kernel" and pairs:
            x = (values - values.mean(axis=0)) / values.std(axis=0)
            settings = kernel_settings(n)
            _, spent = timed(
                lambda x=x, model=model, settings=settings: [
                    model._mutual_information(x[:, 0], x[:, 1 + k], settings) for k in range(pairs)
                ]
            )
            whole = sum(k * (k - 1) for k in range(2, p + 1))
            spent *= whole / pairs
            wrong = [shd_wrong(order, table) for order in (own.order, their_order(values))]
            orders = f"{whole} pairs at the time of {pairs}; arcs against the order {wrong[0]}, by their measure {wrong[1]}"
        else:
            _, spent = timed(model.fit, values)
            same = [int(k) for k in model._causal_order] == own.order
            wrong = [shd_wrong(order, table) for order in (own.order, model._causal_order)]
            orders = f"same order: {same}; arcs against the order {wrong[0]}, theirs {wrong[1]}"
            if theirs == "kernel":
                by_rank = their_order(values) == [int(k) for k in model._causal_order]
                orders += f"; their measure by low rank, same order: {by_rank}"
        print(f"p = {p} n = {n:,} {noise} {measure:8} {seconds:7.3f} s, lingam {spent:9.2f} s, ratio "
              f"{spent / seconds:,.0f}; {orders}")  # fmt: skip


def their_order(values):
    """Order by the kernel measure as `lingam` has it, with factors of low rank."""
    rows = ((values - values.mean(axis=0)) / values.std(axis=0)).T.copy()
    settings = kernel_settings(rows.shape[1])
    left, order = list(range(len(rows))), []
    while left:
        sums = []
        for j in left:
            own, total = uncentred_factor(rows[j], *settings), 0.0
            for i in left:
                if i != j:
                    slope = (rows[i] @ rows[j]) / (rows[j] @ rows[j])
                    residual = uncentred_factor(rows[i] - slope * rows[j], *settings)
                    total += kernel_information(own, residual)
            sums.append(total)
        first = left.pop(int(np.argmin(sums)))
        order.append(first)
        for i in left:
            slope = (rows[i] @ rows[first]) / (rows[first] @ rows[first])
            rows[i] -= slope * rows[first]
    return order


def uncentred_factor(x, kappa, width):
    """As `kernel_factor`, from a Gram matrix that is not centred."""
    n = len(x)
    rows = np.empty((100, n))
    G = rows[: incomplete_cholesky(np.ascontiguousarray(x), width, 1e-3 * kappa * n, rows)]
    c, one = n * kappa / 2, np.eye(len(G))
    root = np.linalg.cholesky(G @ G.T + c * one)
    inverse = np.linalg.inv(root)
    return KernelFactor(inverse @ G, one - c * (inverse @ inverse.T))


def shd_wrong(order, table):
    place = {table.data.columns[i]: k for k, i in enumerate(order)}
    return sum(place[a] > place[b] for a, b in table.graph.edges)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--noise", default="uniform")
    parser.add_argument("--pairs", type=int, default=0)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", TableWarning)
    small = linear_sem(100, 4, random_seed=0).data
    for measure in MEASURES:
        direct_lingam(small, measure=measure)  # compiled
    if chosen.peer:
        return peer(chosen.rows, chosen.columns, chosen.pairs, chosen.noise)
    sizes()
    table_1((10, 20), "kernel")
    if chosen.large:
        table_1((50, 100), "entropy")


if __name__ == "__main__":
    main()
