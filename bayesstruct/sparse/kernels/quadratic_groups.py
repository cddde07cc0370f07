"""Block coordinate descent on a quadratic with Euclidean norms of groups."""

import numpy as np

from bayesstruct.core.jit import fused_kernel, inner

__all__ = ["sweep_groups"]


@inner
def _bounds(Q, start, bound):
    """Largest absolute row sum of each diagonal block: a bound of its eigenvalues."""
    for g in range(len(bound)):
        largest = 0.0
        for i in range(start[g], start[g + 1]):
            total = 0.0
            for j in range(start[g], start[g + 1]):
                total += abs(Q[i, j])
            largest = max(largest, total)
        bound[g] = largest


@fused_kernel
def sweep_groups(Q, v, u, start, rate, passes, tol):
    r"""Descend on :math:`\tfrac12 v'Qv + b'v + \sum_g \text{rate}_g \|v_g\|`, in place.

    Each group takes a proximal step with a bound of its block's curvature. Passes over all groups
    alternate with passes over the non-zero ones.

    Parameters
    ----------
    Q : (k, k) array
        Symmetric, positive semi-definite.
    v, u : (k,) arrays
        Point and gradient ``Q v + b`` there; both are updated.
    start : (groups + 1,) array of int
        Group g is ``v[start[g]:start[g + 1]]``.
    rate : (groups,) array
        Rates, zero for a group without penalty.
    passes : int
        Maximum number of passes.
    tol : float
        Stop when no step of a group changes its gradient by more than this in a full pass.

    Returns
    -------
    float
        Largest such change in the last full pass.
    """
    bound = np.empty(len(rate))
    _bounds(Q, start, bound)
    steps = np.empty(len(v))
    largest = 0.0
    full = True
    for _ in range(passes):
        change = 0.0
        for g in range(len(rate)):
            first, last = start[g], start[g + 1]
            if full or rate[g] == 0.0 or np.any(v[first:last]):
                _step(v, u, first, last, bound[g], rate[g], steps)
                change = max(change, bound[g] * _move(Q, v, u, first, last, steps))
        if full:
            largest = change
            if change <= tol:
                break
        full = change <= 0.1 * largest if not full else False
        if change <= tol:
            full = True
    return largest


@fused_kernel
def _step(v, u, first, last, curvature, rate, steps):
    """Proximal step of one group."""
    size = 0.0
    for i in range(first, last):
        size += (curvature * v[i] - u[i]) ** 2
    size = np.sqrt(size)
    for i in range(first, last):
        if curvature <= 0.0:
            steps[i] = -v[i] if rate > 0.0 else 0.0
        elif size <= rate:
            steps[i] = -v[i]
        else:
            steps[i] = (1.0 - rate / size) * (v[i] - u[i] / curvature) - v[i]


@fused_kernel
def _move(Q, v, u, first, last, steps):
    """Move one group, and the gradient with it; return the length of the step."""
    moved = 0.0
    for i in range(first, last):
        step = steps[i]
        if step != 0.0:
            v[i] += step
            moved += step * step
            for j in range(len(v)):
                u[j] += step * Q[i, j]
    return np.sqrt(moved)
