"""DirectLiNGAM: against the `lingam` package, and by size.

    python benchmarks/direct_lingam.py                 # sizes, SHD: a minute
    python benchmarks/direct_lingam.py --peer --rows 300 --columns 10

`lingam` 1.13 asks for a SciPy that does not build on Python 3.13, and runs with newer ones: `pip install --no-deps
--target peers lingam`, then `PYTHONPATH=peers uv run --with semopy --with psy --with pygam --with autograd --with
statsmodels --with graphviz python benchmarks/direct_lingam.py --peer`. Its kernel measure decomposes matrices of twice as many rows
as the table for each pair: about an hour for 10 columns of 1,000 rows. `--pairs 2` times so many of its pairs and
multiplies, in place of a whole run; `--pairs 0` runs it as a whole, and compares the orders.

The Gram matrices of `lingam` are not centred and its residuals keep their scale, so that its kernel measure is not the mutual
information of Bach and Jordan, and errs for light tails. `peer` therefore also finds the order by *its* measure with
factors of low rank, to compare orders, and counts arcs against either.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bayesstruct.data import TableWarning
from bayesstruct.sem.kernels.kernel_information import (
    gram_factor,
    incomplete_cholesky,
    kernel_information,
    kernel_settings,
)
from bayesstruct.sem.solvers.causal_order import MEASURES, causal_order
from bayesstruct.sem.solvers.knowledge import read_knowledge
from bayesstruct.simulate import linear_sem
from bayesstruct.solvers import direct_lingam


def scaled_t(degrees):
    return lambda rng, n: rng.standard_t(degrees, n) * np.sqrt((degrees - 2) / degrees)


def timed(function, *arguments, **options):
    start = time.process_time()
    result = function(*arguments, **options)
    return result, time.process_time() - start


def sizes():
    print("\nCPU seconds, comparisons, arcs against the order, SHD; four expected neighbours")
    for p, n in ((10, 1_000), (20, 1_000), (100, 2_000)):
        for noise in ("uniform", "laplace"):
            table = linear_sem(n, p, noise=noise, random_seed=p)
            truth = table.coefficients.to_numpy() != 0
            for measure in MEASURES if p < 100 else MEASURES[2:]:
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
    kappa, width = kernel_settings(len(values))

    def factor(x):
        """As `kernel_factor`, from a Gram matrix that is not centred."""
        rows = np.empty((100, len(x)))
        rank = incomplete_cholesky(np.ascontiguousarray(x), width, 1e-3 * kappa * len(x), rows)
        return gram_factor(rows[:rank], len(x) * kappa / 2)

    return order_by_sums(((values - values.mean(axis=0)) / values.std(axis=0)).T, factor)


def order_by_sums(columns, factor):
    """Order by sums of the kernel information of columns (d, n) with residuals, neither standardised."""
    rest, left, order = columns.copy(), list(range(len(columns))), []
    while left:
        sums = []
        for j in left:
            own, total = factor(rest[j]), 0.0
            for i in left:
                if i != j and total <= min(sums, default=np.inf):
                    slope = (rest[i] @ rest[j]) / (rest[j] @ rest[j])
                    total += kernel_information(own, factor(rest[i] - slope * rest[j]))
            sums.append(total)
        first = left.pop(int(np.argmin(sums)))
        order.append(first)
        for i in left:
            rest[i] -= (rest[i] @ rest[first]) / (rest[first] @ rest[first]) * rest[first]
    return order


def shd_wrong(order, table):
    place = {table.data.columns[i]: k for k, i in enumerate(order)}
    return sum(place[a] > place[b] for a, b in table.graph.edges)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
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


if __name__ == "__main__":
    main()
