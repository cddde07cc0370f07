"""Modes of Markov random fields: seconds of the promised problems, on one core.

    uv run python benchmarks/pairwise_modes.py          # about 5 minutes
    uv run python benchmarks/pairwise_modes.py --quick  # without the thousand columns
    uv run python benchmarks/pairwise_modes.py --graphs # only the search for graphs, 1 minute

The data of the sources (news, cyto) are expected in ../shared/data; without them their lines are left
out. Seconds are wall-clock with one BLAS thread, compilation excluded; of the search CPU seconds of
`find_MAP` as a whole, on the recipe of `ising_gibbs.py`.
"""

import argparse
import os
import resource
import time

from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.io

from bayesstruct import find_MAP, simulate
from bayesstruct.fields.kernels.elimination_order import elimination_order
from bayesstruct.fields.kernels.exact import marginals
from bayesstruct.fields.kernels.exact_sums import ExactSums
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.recognition.searched import searched_field
from bayesstruct.fields.solvers.evidence import FieldEvidence
from bayesstruct.fields.solvers.likelihoods import likelihood_for
from bayesstruct.models import ising
from bayesstruct.solvers import pairwise_mrf, pairwise_mrf_path, pairwise_mrf_rate_max

DATA = Path(__file__).parents[2] / "shared" / "data"


def timed(function):
    begin = time.perf_counter()
    result = function()
    return result, time.perf_counter() - begin


def small():
    sim = simulate.ising(500, p=15, random_seed=0)
    options = {"potentials": "ordinal", "likelihood": "exact"}
    pairwise_mrf(sim.data.iloc[:50], rate=5.0, **options)  # compiles
    rate = 0.1 * pairwise_mrf_rate_max(sim.data, **options)
    found, seconds = timed(lambda: pairwise_mrf(sim.data, rate=rate, **options))
    print(
        f"exact l1 Ising, p = 15, n = 500: {seconds:.2f} s (wanted 1), {len(found.edges)} edges, "
        f"residual {found.gap:.1e}"
    )


def gradient():
    potentials = Potentials("full", (3,) * 11)
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=int(s[-1])) for s in (potentials.unary_start, potentials.pair_start)]
    out = [np.empty_like(t) for t in tables]
    states = np.array(potentials.states)
    seconds = min(timed(lambda: marginals(states, *tables, *out))[1] for _ in range(10))
    print(f"exact gradient of 3^11 states: {1e3 * seconds:.1f} ms (wanted 20)")


def chain():
    rng, p = np.random.default_rng(0), 1000
    edges = tuple((i, i + 1) for i in range(p - 1))
    potentials = Potentials("ordinal", (2,) * p, edges=edges)
    tables = potentials.unary(rng.normal(size=p)), potentials.pair(rng.normal(size=p - 1))
    sums = ExactSums(potentials.states, edges)
    sums.marginals(*tables)  # compiles
    seconds = min(timed(lambda: sums.marginals(*tables))[1] for _ in range(10))
    print(f"exact gradient of a chain of 1,000 binary columns: {1e3 * seconds:.2f} ms")
    dense = tuple((i, j) for i in range(16) for j in range(i + 1, 16))
    both = ExactSums((2,) * 16, dense), ExactSums((2,) * 16, dense)
    both[1].order = elimination_order((2,) * 16, dense)
    tables = rng.normal(size=32), rng.normal(size=480)
    one, other = (min(timed(lambda s=s: s.marginals(*tables))[1] for _ in range(10)) for s in both)
    ratio = (other / both[1].order.cells) / (one / 2**16)
    print(f"a cell of an elimination takes the time of {ratio:.1f} joint states (16 columns)")


def news():
    if not DATA.exists():
        return
    file = scipy.io.loadmat(DATA / "news_w100.mat", spmatrix=False)
    table = file["documents"].toarray().T.astype(int)
    first, cold = timed(lambda: pairwise_mrf(table, rate=1024.0))
    second, warm = timed(lambda: pairwise_mrf(table, rate=512.0, start=first))
    print(
        f"news, full potentials, l2: rate 1024 cold {cold:.1f} s, {len(first.edges)} edges; rate 512 "
        f"warm {warm:.1f} s (wanted 20), {len(second.edges)} edges, objective {second.objective:.4f}"
    )


def thousand():
    sim = simulate.ising(1000, p=1000, edge_probability=0.003, random_seed=0)
    path, seconds = timed(
        lambda: pairwise_mrf_path(sim.data, n_rates=10, ratio=0.1, potentials="ordinal")
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    truth = set(map(frozenset, sim.graph.edges))
    print(
        f"1,000 binary columns, n = 1,000, path of 10 to a tenth of the largest rate: {seconds:.0f} s "
        f"(wanted 300), peak memory {memory:.1f} GiB (wanted 4)"
    )
    for solution in path:
        found = set(map(frozenset, solution.edges))
        print(
            f"  rate {solution.rate:7.2f}: {len(found):5d} edges, {len(found & truth)} of {len(truth)} "
            f"true ones, {solution.evaluations} evaluations, residual {solution.gap:.1e}"
        )


def graphs():
    search(8, 200, 0.2, 0)  # compiles
    for p, n, probability, tables in [(10, 1000, 0.2, 5), (20, 500, 0.2, 5), (60, 1000, 0.05, 1)]:
        for seed in range(tables):
            print(search(p, n, probability, seed), flush=True)


def search(p, n, probability, seed):
    """Most probable graph under spike and slab, against the true one."""
    sim = simulate.ising(
        n, p=p, edge_probability=probability, coupling=(0.5, 1.5), sign="positive", random_seed=seed
    )
    model = ising(sim.data)
    begin = time.process_time()
    edge = find_MAP(model)["edge"].astype(bool)
    seconds = time.process_time() - begin
    truth = sim.couplings.to_numpy()[np.triu_indices(p, 1)] != 0
    evidence, prior = problem(model)
    none = np.zeros(evidence.biases + len(truth))
    best, true = (evidence.fit(on, none).evidence + prior.log_prior(on) for on in (edge, truth))
    return (
        f"spike and slab, p = {p}, n = {n}, table {seed}: {seconds:.2f} CPU s, {edge.sum()} edges, "
        f"{(edge & truth).sum()} of {truth.sum()} true ones, log posterior {best:.3f}, of the true graph "
        f"{true:.3f}"
    )


def problem(model):
    found = searched_field(model)
    field = found.field
    codes = model.rvs_to_values[field.rows].eval(mode="FAST_COMPILE")
    likelihood = likelihood_for(field.likelihood, field.potentials, codes)
    return FieldEvidence(likelihood, found.prior), found.edges


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--graphs", action="store_true")
    arguments = parser.parse_args()
    if arguments.graphs:
        graphs()
        return
    small()
    gradient()
    chain()
    news()
    graphs()
    if not arguments.quick:
        thousand()


if __name__ == "__main__":
    main()
