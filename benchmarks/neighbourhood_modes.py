"""All neighbourhoods of a binary table of 1,000 columns, and how well they find a graph.

    uv run python benchmarks/neighbourhood_modes.py          # about a minute

Random graphs of degree 3, couplings +-U[.8, 1.2] for values 0 and 1, fields minus half the row
sums, rows from 60 sweeps of a Gibbs sampler each. Rate .5 sqrt(n log p). CPU seconds, one thread.
Time: p = 1,000, n = 1,000. Recovery: p = 100, n = 5,000.
"""

import os
import sys
import time

from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from tools.ising_tables import ising_table, random_couplings

from bayesstruct.solvers import neighbourhood_modes


def modes(seed, p, n):
    rng = np.random.default_rng(seed)
    couplings = random_couplings(rng, p, 3)
    X = ising_table(rng, couplings, n)
    rate = 0.5 * np.sqrt(n * np.log(p))
    start = time.process_time()
    found = neighbourhood_modes(X, family="logistic", rate=rate)
    return found, couplings != 0, time.process_time() - start


modes(0, 10, 100)
found, _, seconds = modes(0, 1000, 1000)
print(f"p = 1000, n = 1000: {seconds:.1f} s, largest gap {found.gap:.1e} (goal: 30 s)")
for seed in range(3):
    found, truth, seconds = modes(seed, 100, 5000)
    for rule in ("and", "or"):
        graph = found.graph(rule)
        hits, extra = (graph & truth).sum() // 2, (graph & ~truth).sum() // 2
        print(
            f"p = 100, n = 5000, table {seed}, {rule:3s}: "
            f"{hits} of {truth.sum() // 2} edges found, {extra} wrong, {seconds:.1f} s"
        )
