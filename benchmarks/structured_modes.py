"""Certified modes with selected nodes, blocks of columns and equal neighbours: iterations and time to a gap of 1e-6.

    uv run python benchmarks/structured_modes.py      # half a minute

Tables of 2 p rows whose neighbouring columns are correlated; the gap is in units of the log density. Then sweeps of the samplers
of the same priors.
"""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bayesstruct.precision.kernels.fused import fused_sweep, neighbour_list
from bayesstruct.precision.kernels.group_lasso import group_lasso_sweep, group_of_elements
from bayesstruct.precision.kernels.nuclear import TANGENTS, block_layout, nuclear_sweep
from bayesstruct.precision.priors.group_lasso import node_members
from bayesstruct.solvers import (
    blockwise_graphical_lasso,
    locally_constant_graphical_lasso,
    node_selection_graphical_lasso,
)

SAMPLERS = "fused", "nodes, l2", "nodes, linf", "blocks, nuclear"


def table(p, seed=0):
    """Correlation matrix and number of rows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * p, p))
    return np.corrcoef(x + 0.7 * np.roll(x, 1, axis=1), rowvar=False), 2 * p


def modes(S, n):
    """Solvers by name, with rates of a twentieth to a half of the number of rows."""
    p = len(S)
    blocks, chain = np.arange(p) // 5, [(i, i + 1) for i in range(p - 1)]
    weak, strong = 0.05 * n, 0.2 * n
    return {
        "nodes, l2": lambda: node_selection_graphical_lasso(S, n, weak, strong),
        "nodes, linf": lambda: node_selection_graphical_lasso(S, n, weak, strong, norm="linf"),
        "blocks, l2": lambda: blockwise_graphical_lasso(S, n, blocks, weak, weak),
        "blocks, linf": lambda: blockwise_graphical_lasso(S, n, blocks, weak, weak, norm="linf"),
        "blocks, nuclear": lambda: blockwise_graphical_lasso(
            S, n, blocks, weak, weak, norm="nuclear"
        ),
        "chain": lambda: locally_constant_graphical_lasso(S, n, chain, weak, weak),
        "chain, strong": lambda: locally_constant_graphical_lasso(S, n, chain, weak, 5 * weak),
    }


def sweeps(S, n):
    """Samplers by name: one sweep over the matrix."""
    p, rng = len(S), np.random.default_rng(0)
    chain = np.eye(p, k=1) + np.eye(p, k=-1)
    near, rates, scatter = neighbour_list(chain), np.ones((p, p)), n * S
    places = np.array(node_members(p))
    group, groups = group_of_elements(places, p), np.ones(p)
    states = {name: (np.eye(p), np.eye(p)) for name in SAMPLERS}
    columns, level, knots = np.empty((2, p)), np.empty(p), np.empty((3, 2 * near.shape[1] + 6))

    def fused():
        prior = (rates, near, chain, 0.5)
        fused_sweep(rng, *states["fused"], scatter, n, *prior, columns, knots)

    def nodes(name, linf):
        prior = (rates, group, places, groups, linf, 0.5)
        group_lasso_sweep(rng, *states[name], scatter, n, *prior, columns, level, knots)

    labels = np.arange(p) // 5
    blocks = labels, block_layout(labels), np.ones((p // 5, p // 5))
    work = (
        np.empty((3, p)),
        np.empty((2, p, p)),
        np.empty((3, TANGENTS)),
        np.empty((3, TANGENTS + 2)),
    )

    def nuclear():
        nuclear_sweep(rng, *states["blocks, nuclear"], scatter, n, rates, *blocks, 0.5, *work)

    return {
        "blocks, nuclear": nuclear,
        "fused": fused,
        "nodes, l2": lambda: nodes("nodes, l2", False),
        "nodes, linf": lambda: nodes("nodes, linf", True),
    }


def operations(S, n):
    """Modes as operations, and their derivatives in the covariance matrix, by name."""
    import pytensor
    import pytensor.tensor as pt

    from bayesstruct import ops

    p, s = len(S), pt.tensor(dtype="float64", shape=S.shape)
    blocks, chain = np.arange(p) // 5, [(i, i + 1) for i in range(p - 1)]
    weak, strong = 0.05 * n, 0.2 * n
    found = {
        "nodes, l2": ops.node_selection_graphical_lasso(s, n, weak, strong),
        "nodes, linf": ops.node_selection_graphical_lasso(s, n, weak, strong, norm="linf"),
        "blocks, l2": ops.blockwise_graphical_lasso(s, n, blocks, weak, weak),
        "blocks, nuclear": ops.blockwise_graphical_lasso(s, n, blocks, weak, weak, norm="nuclear"),
        "chain": ops.locally_constant_graphical_lasso(s, n, chain, weak, weak),
    }
    for name, mode in found.items():
        gradient = pytensor.grad(mode.sum(), s)
        yield name, [pytensor.function([s], out, mode="FAST_COMPILE") for out in (mode, gradient)]


def main():
    for solve in (*modes(*table(10)).values(), *sweeps(*table(10)).values()):
        solve()  # compiles
    for p in 30, 100, 200:
        for name, solve in modes(*table(p)).items():
            start = time.process_time()
            solution = solve()
            seconds = time.process_time() - start
            print(
                f"p = {p} {name:>15}: {seconds:6.2f} s, {solution.iterations:5d} iterations, "
                f"gap {solution.gap:.0e}, {np.count_nonzero(np.triu(solution.precision, 1))} edges",
                flush=True,
            )
    for p in 10, 30, 50:
        S, n = table(p)
        for name, (mode, gradient) in operations(S, n):
            mode(S), gradient(S)  # what is compiled or imported once
            start = time.process_time()
            mode(S)
            middle = time.process_time()
            gradient(S)
            alone, both = middle - start, time.process_time() - middle
            print(f"p = {p} operation {name:>15}: {alone:.3f} s, with derivative {both:.3f} s")
    for p in 10, 50, 100:
        for name, sweep in sweeps(*table(p)).items():
            start, count = time.process_time(), 2000 // p
            for _ in range(count):
                sweep()
            print(f"p = {p} sweep {name:>11}: {1e3 * (time.process_time() - start) / count:.3f} ms")


if __name__ == "__main__":
    main()
