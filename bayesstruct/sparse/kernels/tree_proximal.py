r"""Proximal maps of tree-structured penalties, each exact in one pass from the leaves to the root.

.. math:: \Omega(w) = \sum_g \omega_g \|w_g\|, \qquad \text{groups nested or disjoint}

The tree is given by arrays in an order in which every group comes after the groups inside it:
``parent[g] > g`` is the smallest group around g, or -1; ``order[start[g]:start[g + 1]]`` are the
coordinates in g but in no group inside it, which may be none. Coordinates in no group are copied.
``threshold[g]`` is :math:`\omega_g` times rate and step. Rows of C-contiguous float64 arrays (n, p)
are mapped one by one into ``out``, which may be the input.

References
----------
Jenatton, R., Mairal, J., Obozinski, G., Bach, F. (2011). Proximal methods for hierarchical sparse
coding. JMLR 12, 2297-2334.
"""

import math

import numpy as np

from bayesstruct.core.jit import numpy_inner, numpy_kernel, vector_inner, vector_kernel
from bayesstruct.sparse.kernels.projections import level as knapsack_level


@numpy_inner
def _copy_rest(v, order, out):
    if order.shape[0] < v.shape[1]:
        for r in range(v.shape[0]):
            for i in range(v.shape[1]):
                out[r, i] = v[r, i]


@numpy_kernel
def tree_l2(v, order, start, parent, threshold, out, square, scale):
    """Proximal map for Euclidean norms in O(p); algorithm 3, without recursion.

    ``square`` and ``scale``, (groups,), are scratch; ``scale`` returns the factor by which the
    coordinates of each group were multiplied in the last row.
    """
    _copy_rest(v, order, out)
    groups = threshold.shape[0]
    for r in range(v.shape[0]):
        square[:] = 0.0
        for g in range(groups):
            total = square[g]
            for k in range(start[g], start[g + 1]):
                x = v[r, order[k]]
                total += x * x
            # No branch on whether the group survives: it would be mispredicted half of the time.
            norm = math.sqrt(total)
            rest = norm - threshold[g]
            rest = rest if rest > 0.0 else 0.0
            scale[g] = rest / (norm if norm > 0.0 else 1.0)
            if parent[g] >= 0:
                square[parent[g]] += rest * rest
        for g in range(groups - 1, -1, -1):
            if parent[g] >= 0:
                scale[g] *= scale[parent[g]]
            for k in range(start[g], start[g + 1]):
                out[r, order[k]] = scale[g] * v[r, order[k]]


@numpy_inner
def _meld(a, b, key, links):
    """Join two pairing heaps that are not empty; return the top."""
    if key[a] < key[b]:
        a, b = b, a
    links[b, 1] = links[a, 0]
    links[a, 0] = b
    return a


@numpy_inner
def _join(heap, key, links):
    """Top of the heaps in a list: joined in pairs, and the pairs in a row; -1 for no heap."""
    done = -1
    while heap >= 0:
        a, b = heap, links[heap, 1]
        if b < 0:
            heap = -1
        else:
            heap = links[b, 1]
            a = _meld(a, b, key, links)
        links[a, 1] = done
        done = a
    if done >= 0:
        following = links[done, 1]
        while following >= 0:
            a, following = following, links[following, 1]
            done = _meld(done, a, key, links)
        links[done, 1] = -1
    return done


@numpy_inner
def _lower(heap, t, key, links):
    """Clip a heap at the level where it loses ``t`` > 0 in total; return top and level."""
    taken, number, slot = 0.0, 0, heap
    while heap >= 0 and taken - number * key[heap] < t:
        slot = heap
        taken += links[heap, 2] * key[heap]
        number += links[heap, 2]
        heap = links[heap, 0]
        if heap >= 0 and links[heap, 1] >= 0:
            heap = _join(heap, key, links)
    level = (taken - t) / number
    key[slot] = level
    links[slot, 0], links[slot, 1], links[slot, 2] = heap, -1, number
    return slot, level


@numpy_inner
def _heap_of_group(row, g, order, start, heap, key, links):
    """Push the coordinates of a group, without inner groups, on a list of heaps; return it and their sum."""
    total = 0.0
    for k in range(start[g], start[g + 1]):
        x = abs(row[order[k]])
        if x > 0.0:
            total += x
            key[k] = x
            links[k, 0], links[k, 1], links[k, 2] = -1, heap, 1
            heap = k
    return heap, total


@numpy_inner
def _tree_levels(row, order, start, parent, threshold, cap, mass, key, links, heaps):
    """First pass of `tree_linf`: the level of each group."""
    for g in range(threshold.shape[0]):
        mass[g], heaps[g] = 0.0, -1
    for g in range(threshold.shape[0]):
        t = threshold[g]
        heap, total = _heap_of_group(row, g, order, start, heaps[g], key, links)
        total += mass[g]
        cap[g] = 0.0
        if total <= t:
            continue
        level = math.inf
        if links[heap, 1] >= 0:
            heap = _join(heap, key, links)
        if t > 0.0:
            heap, level = _lower(heap, t, key, links)
            total -= t
        if level <= 0.0:  # the total was above the threshold by rounding only
            continue
        cap[g] = level
        if parent[g] >= 0:
            mass[parent[g]] += total
            links[heap, 1] = heaps[parent[g]]
            heaps[parent[g]] = heap


@numpy_kernel
def tree_linf(v, order, start, parent, threshold, out, cap, mass, key, links, heaps):
    r"""Proximal map for maximum norms in O(p log p) whatever the depth; algorithm 2.

    Each group clips its entries at the level at which they lose its threshold in total. The entries
    below that level are not visited: the groups hand a heap of their distinct values to their
    parents, and the clipped ones become a single value with a count. A second pass from the root
    clips every coordinate at the least of the levels above it.

    Parameters
    ----------
    cap, mass : (groups,) numpy.ndarray
        Scratch; ``cap`` returns the levels of the last row.
    key : (len(order),) numpy.ndarray
        Scratch.
    links : (len(order), 4) numpy.ndarray of int32
        Scratch: first child, next sibling and count of each value.
    heaps : (groups,) numpy.ndarray of int32
        Scratch.
    """
    _copy_rest(v, order, out)
    for r in range(v.shape[0]):
        _tree_levels(v[r], order, start, parent, threshold, cap, mass, key, links, heaps)
        for g in range(threshold.shape[0] - 1, -1, -1):
            if parent[g] >= 0:
                cap[g] = min(cap[g], cap[parent[g]])
            for k in range(start[g], start[g + 1]):
                out[r, order[k]] = min(max(v[r, order[k]], -cap[g]), cap[g])


@vector_inner
def _clip_total(values, low, t):
    """Clip ``values`` at the level that they exceed by ``t`` in total, and return it.

    Michelot (1986): Newton steps from ``low``, a bound from below, never pass the level, and end
    when the same entries exceed. The loops are written so that they vectorise.
    """
    before = values.shape[0] + 1
    while True:
        total, count = 0.0, 0
        for k in range(values.shape[0]):
            x = values[k]
            total += x if x > low else 0.0
            count += x > low
        if count >= before or count == 0:  # more than before by rounding only
            break
        low = (total - t) / count
        before = count
    for k in range(values.shape[0]):
        x = values[k]
        values[k] = x if x < low else low
    return low


@vector_kernel
def tree_linf_direct(v, order, first, start, parent, threshold, out, values, mass, peak):
    r"""Proximal map for maximum norms in :math:`O(\sum_g |g|)`, for trees that are not deep.

    Algorithm 2 as it stands, with each group contiguous, ``order[first[g]:start[g + 1]]``, so that
    the loops vectorise: four times faster than the heaps of `tree_linf` on a quadtree of
    depth 9 (benchmarks/proximal_maps.py). The sum and the largest entry of a group come from those inside it.

    Parameters
    ----------
    values : (len(order),) numpy.ndarray
        Scratch.
    mass, peak : (groups,) numpy.ndarray
        Scratch.
    """
    _copy_rest(v, order, out)
    for r in range(v.shape[0]):
        for k in range(order.shape[0]):
            values[k] = abs(v[r, order[k]])
        for g in range(threshold.shape[0]):
            mass[g] = peak[g] = 0.0
        for g in range(threshold.shape[0]):
            t = threshold[g]
            if first[g] + 1 == start[g + 1]:  # one coordinate: most of the groups
                top = values[first[g]] - t
                top = total = top if top > 0.0 else 0.0
                values[first[g]] = top
            else:
                total, top = mass[g], peak[g]
                for k in range(start[g], start[g + 1]):
                    total += values[k]
                    top = max(top, values[k])
                if total <= t:
                    if total > 0.0:
                        values[first[g] : start[g + 1]] = 0.0
                    continue
                if t > 0.0:
                    # The largest alone loses no more than all together.
                    top = _clip_total(values[first[g] : start[g + 1]], max(top - t, 0.0), t)
                total -= t
            if parent[g] >= 0:
                mass[parent[g]] += total
                peak[parent[g]] = max(peak[parent[g]], top)
        for k in range(order.shape[0]):
            out[r, order[k]] = min(max(v[r, order[k]], -values[k]), values[k])


@numpy_kernel
def tree_l0(v, order, start, parent, threshold, out, score):
    r"""Minimise :math:`\tfrac12 \|w - v\|^2 + \sum_g \lambda_g 1[w_g \ne 0]` in O(p); algorithm 4.

    Not convex, yet exact: a group with everything inside it is dropped unless keeping the best part
    of it lowers the objective. ``score``, (groups,), is scratch.
    """
    _copy_rest(v, order, out)
    groups = threshold.shape[0]
    for r in range(v.shape[0]):
        score[:] = threshold
        for g in range(groups):
            for k in range(start[g], start[g + 1]):
                x = v[r, order[k]]
                score[g] -= 0.5 * x * x
            if score[g] < 0.0 and parent[g] >= 0:
                score[parent[g]] += score[g]
        for g in range(groups - 1, -1, -1):
            if parent[g] >= 0 and score[parent[g]] >= 0.0:
                score[g] = 0.0
            for k in range(start[g], start[g + 1]):
                out[r, order[k]] = v[r, order[k]] if score[g] < 0.0 else 0.0


@numpy_kernel
def tree_sums(x, start, parent, out):
    """Sum of ``x``, (len(order),) in the order of the tree, over everything in each group."""
    out[:] = 0.0
    for g in range(parent.shape[0]):
        for k in range(start[g], start[g + 1]):
            out[g] += x[k]
        if parent[g] >= 0:
            out[parent[g]] += out[g]


@numpy_kernel
def tree_maxima(x, start, parent, out):
    """Largest ``x``, not negative and in the order of the tree, in each group."""
    out[:] = 0.0
    for g in range(parent.shape[0]):
        for k in range(start[g], start[g + 1]):
            out[g] = max(out[g], x[k])
        if parent[g] >= 0:
            out[parent[g]] = max(out[parent[g]], out[g])


@numpy_kernel
def tree_path_sums(x, parent, out):
    """Sum of ``x``, (groups,), over each group and all groups around it."""
    for g in range(parent.shape[0] - 1, -1, -1):
        out[g] = x[g]
        if parent[g] >= 0:
            out[g] += out[parent[g]]


@numpy_kernel
def tree_survives(x, start, parent, threshold, mass, squared):
    """Whether the proximal map of ``x`` at these thresholds differs from zero.

    ``x`` holds the absolute values for maximum norms, whose proximal map takes the threshold off
    the sum of a group, and the squares (``squared``) for Euclidean norms, where it is taken off the
    norm. ``mass``, (groups,), is scratch.
    """
    mass[:] = 0.0
    for g in range(parent.shape[0]):
        total = mass[g]
        for k in range(start[g], start[g + 1]):
            total += x[k]
        rest = (math.sqrt(total) if squared else total) - threshold[g]
        if rest > 0.0:
            if parent[g] < 0:
                return True
            mass[parent[g]] += rest * rest if squared else rest
    return False


@numpy_kernel
def tree_linf_nearest(x, y, first, start, threshold, tied, out):
    r"""Subtract from y its projection on the subdifferential at x of the maximum-norm tree.

    Arrays are in the order of the tree, which must keep every group contiguous: group g is
    ``first[g]:start[g + 1]``. Where the group is zero its threshold is taken as in the proximal map;
    otherwise from the entries that share its maximum, with their signs. These sets are nested or
    disjoint again, so one pass is exact: it is the limit of the proximal map at
    :math:`x + \epsilon y`.
    """
    work = np.empty_like(x)
    for k in range(x.shape[0]):
        out[k] = y[k]
    for g in range(threshold.shape[0]):
        largest, size, total, cap = 0.0, 0, 0.0, math.inf
        for k in range(first[g], start[g + 1]):
            largest = max(largest, abs(x[k]))
        bound = (1.0 - tied) * largest
        for k in range(first[g], start[g + 1]):
            if abs(x[k]) >= bound:
                work[size] = abs(out[k]) if largest == 0.0 else math.copysign(1.0, x[k]) * out[k]
                total += work[size]
                size += 1
        if size == 0 or threshold[g] == 0.0:
            continue
        inside = largest == 0.0 and total <= threshold[g]
        cap = 0.0 if inside else knapsack_level(work[:size], threshold[g], 0)
        for k in range(first[g], start[g + 1]):
            if largest == 0.0:
                out[k] = min(max(out[k], -cap), cap)
            elif abs(x[k]) >= bound:
                sign = math.copysign(1.0, x[k])
                out[k] = sign * min(sign * out[k], cap)


@numpy_kernel
def tree_linf_slopes(x, d, first, start, maxima, tied, out):
    """Directional derivative of the maximum norm of each group at ``x`` along ``d``."""
    for g in range(maxima.shape[0]):
        best = 0.0 if maxima[g] == 0.0 else -math.inf
        for k in range(first[g], start[g + 1]):
            if maxima[g] == 0.0:
                best = max(best, abs(d[k]))
            elif abs(x[k]) >= (1.0 - tied) * maxima[g]:
                best = max(best, math.copysign(1.0, x[k]) * d[k])
        out[g] = best


@numpy_kernel
def postorder(parent):
    """Order in which each node comes right after everything below it; shorter if there are cycles.

    ``parent`` may be in any order, with -1 for roots.
    """
    n = parent.shape[0]
    child = np.full(n, -1, np.int64)
    sibling = np.full(n, -1, np.int64)
    root = -1
    for i in range(n - 1, -1, -1):
        if parent[i] < 0:
            sibling[i] = root
            root = i
        else:
            sibling[i] = child[parent[i]]
            child[parent[i]] = i
    order = np.empty(n, np.int64)
    size, node = 0, root
    while node >= 0:
        while child[node] >= 0:
            node = child[node]
        while True:
            order[size] = node
            size += 1
            if sibling[node] >= 0:
                node = sibling[node]
                break
            node = parent[node]
            if node < 0:
                break
    return order[:size]
