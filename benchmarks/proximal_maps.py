"""Time the proximal maps of 262,144 coefficients: the quadtree of a 512 x 512 image.

    uv run python benchmarks/proximal_maps.py

The tree is that of a wavelet transform: coefficient (i, j) has the four children (2i, 2j) to
(2i + 1, 2j + 1), and each coefficient makes a group with all its descendants. The fastest of 50
calls (so that other work of the machine does not count) on one core, arrays allocated beforehand, for
three shares of coefficients that survive. The promise is less than 10 ms for the trees; Jenatton et
al. (2011, table 1) report the times on the right, on a computer of theirs. Group maps
use 16,384 groups of 16, by rows of the image.
"""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bayesstruct.penalties import Tree
from bayesstruct.sparse.kernels import proximal, tree_proximal

SIDE = 512
REPEATS = 50
PAPER = {"tree l2": 12.5, "tree linf": 22.1, "tree l0": 9.8, "l1": 1.6}


def quadtree(side):
    """Parent of each coefficient of a ``side`` x ``side`` wavelet transform, by rows."""
    i, j = np.divmod(np.arange(side * side), side)
    parent = (i // 2) * side + j // 2
    parent[0] = -1
    return parent


def milliseconds(call):
    """Least wall-clock time after a first call that compiles."""
    call()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return 1e3 * min(seconds)


def main():
    p = SIDE * SIDE
    rng = np.random.default_rng(0)
    tree = Tree.from_parents(1.0, quadtree(SIDE)).groups
    arrays = (tree.order, tree.start, tree.parent)
    # Coefficients of natural images: heavy tails, smaller at finer scales.
    depth = np.floor(np.log2(np.maximum(1, np.maximum(*np.divmod(np.arange(p), SIDE)))))
    v = (rng.laplace(size=p) * 2.0**-depth * SIDE / 2)[None]
    out, scratch, work = np.empty_like(v), np.empty((2, p)), np.empty(p)
    links, heaps = np.empty((p, 4), np.int32), np.empty(p, np.int32)
    groups, group_start = np.arange(p), np.arange(0, p + 1, 16)

    def call(name, t):
        every, group = np.full(p, t), np.full(p // 16, t)
        return {
            "tree l2": lambda: tree_proximal.tree_l2(v, *arrays, every, out, *scratch),
            "tree linf": lambda: tree_proximal.tree_linf_direct(
                v, tree.order, tree.first, *arrays[1:], every, out, work, *scratch
            ),
            "its heaps": lambda: tree_proximal.tree_linf(
                v, *arrays, every, out, *scratch, work, links, heaps
            ),
            "tree l0": lambda: tree_proximal.tree_l0(v, *arrays, every, out, scratch[0]),
            "l1": lambda: proximal.soft_threshold(v, every, out),
            "group l2": lambda: proximal.group_l2(v, groups, group_start, group, out),
            "group linf": lambda: proximal.group_linf(v, groups, group_start, group, out, work),
        }[name]

    print(f"{p} coefficients; milliseconds (share of coefficients that survive)")
    for name in ("tree l2", "tree linf", "its heaps", "tree l0", "l1", "group l2", "group linf"):
        columns = []
        for t in (0.1, 1.0, 10.0):
            run = call(name, t)
            columns.append(f"{milliseconds(run):6.2f} ({np.count_nonzero(out) / p:5.1%})")
        paper = f"   paper {PAPER[name]:.1f} ms" if name in PAPER else ""
        print(f"{name:11s}" + "  ".join(columns) + paper)


if __name__ == "__main__":
    main()
