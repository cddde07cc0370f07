"""Neighbourhood models: time and peak memory, and recovery of a random Ising graph.

    uv run python benchmarks/neighbourhoods.py               # p = 200 and the Ising graph
    uv run python benchmarks/neighbourhoods.py --large       # p = 1,000 too

Targets on two cores: Gaussian spike and slab with n = 500 and 500 kept draws in less than one minute
at p = 200, in less than 15 minutes and 2 GiB at p = 1,000. Every line runs in a process of its own;
the peak is that of its resident memory, result included, the seconds those of
`bs.sample_neighbourhoods` after a run on six columns that compiles or loads the kernels.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import subprocess
import sys
import time

import networkx as nx

import bayesstruct as bs


def peak():
    """Peak resident memory of this process, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(model, **kwargs):
    """Result, and a text with wall and CPU seconds (of this process), the kernels loaded before."""
    start, cpu = time.perf_counter(), time.process_time()
    idata = bs.sample_neighbourhoods(model, progressbar=False, random_seed=1, **kwargs)
    return idata, f"{time.perf_counter() - start:.1f} s, CPU {time.process_time() - cpu:.1f} s"


def gaussian(p, chains, draws, backend):
    """Time, memory and recovery of a sparse Gaussian graph."""
    import joblib

    warm = bs.simulate.gaussian_graphical(30, 6, random_seed=0).data
    bs.sample_neighbourhoods(
        bs.models.gaussian_neighbourhoods(warm), draws=5, tune=5, progressbar=False
    )
    # A sparse scale-free tree: a random graph of this size would take the simulator long.
    simulation = bs.simulate.gaussian_graphical(500, p, graph="scale-free", random_seed=1)
    model = bs.models.gaussian_neighbourhoods(simulation.data)
    options = {"draws": draws, "tune": 200, "chains": chains}
    if backend == "threads":
        idata, seconds = timed(model, **options)
    else:
        with joblib.parallel_config(backend=backend, n_jobs=2):
            idata, seconds = timed(model, **options)
    memory = peak()
    start = time.perf_counter()
    score = bs.compare(bs.symmetrize(idata, "and"), simulation.graph)
    reading = time.perf_counter() - start
    print(
        f"Gaussian p={p} n=500, {chains} x {draws} kept draws (+ {chains} x 200), {backend}: "
        f"{seconds}, peak {memory:.2f} GiB; AND: AUC {score.auc:.3f}, F1 {score.f1:.3f}; "
        f"reading took {reading:.1f} s, peak then {peak():.2f} GiB"
    )


def ising(p, degree, n):
    """Recovery of a random regular Ising graph, by each rule."""
    graph = nx.random_regular_graph(degree, p, seed=1)
    simulation = bs.simulate.ising(n, graph=graph, random_seed=1)
    bs.sample_neighbourhoods(
        bs.models.ising_neighbourhoods(simulation.data.iloc[:, :6]),
        draws=5,
        tune=5,
        progressbar=False,
    )
    model = bs.models.ising_neighbourhoods(simulation.data)
    idata, seconds = timed(model, draws=500, tune=200, chains=2)
    print(
        f"Ising p={p} degree={degree} n={n:,} ({graph.number_of_edges()} edges), 2 x 500 kept draws "
        f"(+ 2 x 200): {seconds}, peak {peak():.2f} GiB"
    )
    for rule in ("and", "or", "average"):
        score = bs.compare(bs.symmetrize(idata, rule), simulation.graph)
        print(
            f"  {rule.upper():<7} precision {score.precision:.3f}  recall {score.recall:.3f}  "
            f"F1 {score.f1:.3f}  wrong pairs {score.shd}  AUC {score.auc:.4f}  "
            f"Brier {score.brier:.5f}"
        )


def main():
    """Run each line in its own process."""
    if len(sys.argv) > 2:
        kind, *numbers = sys.argv[1:]
        if kind == "ising":
            ising(*map(int, numbers))
        else:
            gaussian(*map(int, numbers[:3]), numbers[3])
        return
    lines = [["gaussian", "200", "2", "500", "threads"], ["gaussian", "200", "2", "500", "loky"]]
    if "--large" in sys.argv:
        lines += [["gaussian", "1000", "1", "500", "threads"]]
        lines += [["gaussian", "1000", "2", "500", "threads"]]
    for line in [*lines, ["ising", "100", "3", "5000"]]:
        subprocess.run([sys.executable, __file__, *line], check=True)


if __name__ == "__main__":
    main()
