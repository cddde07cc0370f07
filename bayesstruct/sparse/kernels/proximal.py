r"""Proximal maps :math:`\arg\min_w \tfrac12 \|w - v\|^2 + \lambda \|w\|` of the norms of penalties.

Rows of C-contiguous float64 arrays (n, p) are mapped one by one into ``out``, which may be the
input. Groups need not be contiguous: group g holds the coordinates ``order[start[g]:start[g + 1]]``,
its threshold (rate times weight times step) is ``threshold[g]``, and coordinates in no group are
copied. Coordinates that are thresholded away are exactly zero.
"""

import math

import numpy as np

from bayesstruct.core.jit import numpy_inner, numpy_kernel
from bayesstruct.sparse.kernels.projections import level, level_sorting, shrink_singular_values


@numpy_kernel
def soft_threshold(v, threshold, out):
    """Shrink each entry towards zero by the threshold of its column."""
    for r in range(v.shape[0]):
        for i in range(v.shape[1]):
            x, t = v[r, i], threshold[i]
            out[r, i] = x - t if x > t else (x + t if x < -t else 0.0)


@numpy_kernel
def soft_threshold_nonnegative(v, threshold, out):
    """Proximal map of the l1 norm on the non-negative orthant."""
    for r in range(v.shape[0]):
        for i in range(v.shape[1]):
            out[r, i] = max(v[r, i] - threshold[i], 0.0)


@numpy_inner
def _copy(v, out):
    for r in range(v.shape[0]):
        for i in range(v.shape[1]):
            out[r, i] = v[r, i]


@numpy_kernel
def group_l2(v, order, start, threshold, out):
    """Shrink the Euclidean norm of each group; Yuan, Lin (2006), Schmidt (2010, L. 1286)."""
    _copy(v, out)
    for r in range(v.shape[0]):
        for g in range(threshold.shape[0]):
            square = 0.0
            for k in range(start[g], start[g + 1]):
                square += out[r, order[k]] * out[r, order[k]]
            norm = math.sqrt(square)
            scale = (norm - threshold[g]) / norm if norm > threshold[g] else 0.0
            for k in range(start[g], start[g + 1]):
                out[r, order[k]] *= scale


@numpy_inner
def _clip_group(row, order, begin, end, cap):
    for k in range(begin, end):
        i = order[k]
        row[i] = min(max(row[i], -cap), cap)


@numpy_kernel
def group_linf(v, order, start, threshold, out, work):
    r"""Clip each group at the level at which the entries lose the threshold in total.

    ``v`` minus its projection on the :math:`\ell_1` ball (Moreau), in expected linear time;
    ``work`` is (p,).
    """
    _copy(v, out)
    for r in range(v.shape[0]):
        for g in range(threshold.shape[0]):
            size, total = start[g + 1] - start[g], 0.0
            for k in range(size):
                work[k] = abs(out[r, order[start[g] + k]])
                total += work[k]
            cap = level(work[:size], threshold[g], 0) if total > threshold[g] else 0.0
            _clip_group(out[r], order, start[g], start[g + 1], cap)


@numpy_kernel
def group_linf_sorting(v, order, start, threshold, out, work):
    """Clip each group as `group_linf`, finding the level by sorting."""
    _copy(v, out)
    for r in range(v.shape[0]):
        for g in range(threshold.shape[0]):
            size, total = start[g + 1] - start[g], 0.0
            for k in range(size):
                work[k] = abs(out[r, order[start[g] + k]])
                total += work[k]
            cap = level_sorting(work[:size], threshold[g], 0) if total > threshold[g] else 0.0
            _clip_group(out[r], order, start[g], start[g + 1], cap)


@numpy_kernel
def group_nuclear(v, order, start, shapes, threshold, out):
    """Shrink the singular values of each group, a matrix of ``shapes[g]`` in C order."""
    _copy(v, out)
    for r in range(v.shape[0]):
        for g in range(threshold.shape[0]):
            if threshold[g] == 0.0:
                continue
            rows, columns = shapes[g, 0], shapes[g, 1]
            block = np.empty((rows, columns))
            for k in range(start[g + 1] - start[g]):
                block[k // columns, k % columns] = out[r, order[start[g] + k]]
            U, values, V = np.linalg.svd(block, False)
            shrink_singular_values(U, values, V, threshold[g], block, block)
            for k in range(start[g + 1] - start[g]):
                out[r, order[start[g] + k]] = block[k // columns, k % columns]


@numpy_kernel
def sparse_group_l2(v, entry_threshold, order, start, threshold, out):
    """Soft-threshold the entries, then shrink the groups: exact, since the groups are nested.

    Jenatton, Mairal, Obozinski, Bach (2011, corollary 6); ``entry_threshold`` is (p,).
    """
    soft_threshold(v, entry_threshold, out)
    group_l2(out, order, start, threshold, out)


@numpy_kernel
def sparse_group_linf(v, entry_threshold, order, start, threshold, out, work):
    """Soft-threshold the entries, then clip the groups; as `sparse_group_l2`."""
    soft_threshold(v, entry_threshold, out)
    group_linf(out, order, start, threshold, out, work)


@numpy_kernel
def group_linf_nearest(x, y, start, threshold, tied, out):
    r"""Subtract from y its projection on :math:`\lambda_g \partial \|x_g\|_\infty`, group by group.

    Groups are contiguous here. Entries within the relative tolerance ``tied`` of the largest share
    it; a subgradient puts weights that add up to the threshold on them, so a simplex takes the
    place of the :math:`\ell_1` ball. The map is the proximal map of the directional derivative.
    """
    work = np.empty_like(x)
    for g in range(threshold.shape[0]):
        largest, size, total, cap = 0.0, 0, 0.0, math.inf
        for k in range(start[g], start[g + 1]):
            largest = max(largest, abs(x[k]))
        bound = (1.0 - tied) * largest
        for k in range(start[g], start[g + 1]):
            if abs(x[k]) >= bound:
                work[size] = abs(y[k]) if largest == 0.0 else math.copysign(1.0, x[k]) * y[k]
                total += work[size]
                size += 1
        if threshold[g] > 0.0:
            inside = largest == 0.0 and total <= threshold[g]
            cap = 0.0 if inside else level(work[:size], threshold[g], 0)
        for k in range(start[g], start[g + 1]):
            out[k] = y[k]
            if largest == 0.0:
                out[k] = min(max(y[k], -cap), cap)
            elif abs(x[k]) >= bound:
                sign = math.copysign(1.0, x[k])
                out[k] = sign * min(sign * y[k], cap)
