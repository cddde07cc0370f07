"""Exact posteriors over directed acyclic graphs and the best graph: seconds and memory.

    uv run python benchmarks/exact_dag.py            # about a minute
    uv run python benchmarks/exact_dag.py --large    # 22, 16 and 25 variables: about six minutes

Data: n = 640 rows of a linear Gaussian network with two parents for each variable on average; BGe scores of
all parent sets, their time included, any number of parents. Each line is a process of its own, after a
warm-up that compiles; seconds are CPU seconds of one thread, memory is the largest of the process (280 MiB
of it are imports). Promised: all arcs of 20 variables under the order-modular prior in less than 60
seconds and 4 GiB. Each line also prints a check: arcs against independent draws from the same tables (largest
difference in standard errors; of some hundreds about 3 is expected), against enumeration, or one method against
another.
"""

import argparse
import multiprocessing
import os
import resource
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

DRAWS = 1000


def table(d, n=640, seed=0):
    """Rows of a random linear Gaussian network, columns in random order."""
    rng = np.random.default_rng(seed)
    arcs = np.triu(rng.random((d, d)) < min(4 / (d - 1), 1), 1)
    weights = arcs * rng.choice([-1, 1], (d, d)) * rng.uniform(0.3, 0.8, (d, d))
    x = rng.normal(size=(n, d))
    for i in range(d):
        x[:, i] += x @ weights[:, i]
    return x[:, rng.permutation(d)]


def arcs(d, prior):
    from bayesstruct.exact import dag_posterior

    dag_posterior(table(5), prior=prior).sample(1)
    start = time.process_time()
    posterior = dag_posterior(table(d), prior=prior)
    seconds = time.process_time() - start
    peak = memory()
    start = time.process_time()
    draws = posterior.sample(DRAWS, random_seed=1)
    drawing = time.process_time() - start
    p = posterior.arc_probabilities.to_numpy()
    often = p * (1 - p) * DRAWS > 10  # the distribution of rarer ones is not near normal
    error = np.sqrt(p * (1 - p) / DRAWS)
    worst = (abs(draws.mean(axis=0) - p)[often] / error[often]).max()
    check = (
        f"draws: {worst:.1f} standard errors, {drawing:.1f} s and {memory():.0f} MiB for {DRAWS}"
    )
    return f"arcs, {prior:7s} {d} variables", seconds, peak, check


def enumeration(d, prior):
    """Largest error of the arcs against all graphs."""
    from bayesstruct.exact import dag_posterior
    from bayesstruct.networks.kernels.dags import all_dags

    posterior = dag_posterior(table(d), prior=prior)
    start = time.process_time()
    posterior = dag_posterior(table(d), prior=prior)
    seconds = time.process_time() - start
    graphs = all_dags(d)
    truth = np.einsum("g,gij->ij", posterior._graph_probabilities(graphs), graphs)
    error = abs(truth - posterior.arc_probabilities.to_numpy()).max()
    return f"arcs, {prior:7s} {d} variables", seconds, memory(), f"enumeration: error {error:.1e}"


def dynamic(d, compare):
    from bayesstruct.networks.solvers.optimal_dag import optimal_dag

    optimal_dag(table(5))
    start = time.process_time()
    best = optimal_dag(table(d))
    seconds = time.process_time() - start
    peak = memory()
    check = f"objective {best.objective:.3f}"
    if compare:
        from bayesstruct.networks.kernels.scores.gaussian import BGe

        x = table(d)
        score = BGe((x - x.mean(axis=0)) / x.std(axis=0, ddof=1))
        # Candidates that hold the parents of the best graph, so that it is the best of both.
        pool = [np.flatnonzero(best.adjacency[:, i] | best.adjacency[i]) for i in range(d)]
        size = max(map(len, pool))
        padded = np.array([np.pad(row, (0, size - len(row)), constant_values=-1) for row in pool])
        program = optimal_dag(score, method="milp", candidates=padded)
        check += f", milp among its neighbours {program.objective:.3f}"
    return f"best graph, dynamic {d} variables", seconds, peak, check


def uniform(d):
    from bayesstruct.networks.kernels.prior_draws import draw_uniform_dags

    rng = np.random.default_rng(2)
    start = time.process_time()
    draw_uniform_dags(rng, d)
    first = time.process_time() - start
    start = time.process_time()
    draws = draw_uniform_dags(rng, d, 100)
    seconds = (time.process_time() - start) / 100
    mean = draws.sum(axis=(1, 2)).mean() / (d * (d - 1) / 2)
    check = f"{first:.3f} s for the first; share of pairs that are joined {mean:.3f}"
    return f"one uniform graph, {d} variables", seconds, memory(), check


def memory():
    """Largest memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


CASES = [
    (enumeration, (5, "uniform")),
    (enumeration, (5, "order")),
    (arcs, (20, "order")),
    (arcs, (12, "uniform")),
    (arcs, (14, "uniform")),
    (dynamic, (20, True)),
    (dynamic, (23, False)),
    (uniform, (100,)),
]
LARGE = [(arcs, (22, "order")), (arcs, (16, "uniform")), (dynamic, (25, False))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="the largest problems that are served")
    cases = LARGE if parser.parse_args().large else CASES
    context = multiprocessing.get_context("spawn")
    print(f"{'':34s} {'seconds':>9s} {'MiB':>7s}")
    for function, arguments in cases:
        with context.Pool(1) as pool:
            name, seconds, peak, check = pool.apply(function, arguments)
        print(f"{name:34s} {seconds:9.3f} {peak:7.0f}   {check}", flush=True)


if __name__ == "__main__":
    main()
