r"""Draws from priors :math:`p(w) \propto e^{-\Omega(w)}` of norms of groups of coefficients.

Coordinates are given group by group, group g at ``order[start[g]:start[g + 1]]``. Three facts serve
all of them: under a norm alone the radius of d coordinates is Gamma(d) and independent of the
direction; :math:`e^{-m} = \int_m^\infty e^{-t} dt` turns a maximum norm m into independent bounds;
and :math:`e^{-r} = \int_0^\infty \tfrac{2}{\sqrt\pi} e^{-s - r^2 / 4s} d\sqrt s` turns a Euclidean
norm r into independent squares.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.sparse.kernels.nuclear import draw_group_nuclear

__all__ = [
    "draw_group_l2",
    "draw_group_linf",
    "draw_group_nuclear",
    "draw_sparse_l2",
    "draw_sparse_linf",
    "draw_tree_l2",
    "draw_tree_linf",
    "sweep_tree_l2",
    "sweep_tree_linf",
]

SWEEPS_L2 = 100  # of `draw_tree_l2`, whose starts are forgotten after some ten
SWEEPS_LINF = 100  # of `draw_tree_linf`, and so many more for every coordinate (whose starts are
SWEEPS_LINF_COORDINATE = 10  # forgotten after some one or two for every coordinate)
_FAR = 20.0  # beyond, the asymptotic series of erfcx is exact to 1e-11


@kernel
def draw_group_l2(rng, rates, order, start, size):
    """Draw groups under Euclidean norms with ``rates``: a direction, and a radius Gamma(d)."""
    w = np.zeros(size)
    for g in range(len(start) - 1):
        d = start[g + 1] - start[g]
        square = 0.0
        while square == 0.0:
            for k in range(start[g], start[g + 1]):
                z = rng.standard_normal()
                w[order[k]] = z
                square += z * z
        factor = rng.standard_gamma(float(d)) / (rates[g] * math.sqrt(square))
        for k in range(start[g], start[g + 1]):
            w[order[k]] *= factor
    return w


@kernel
def draw_group_linf(rng, rates, order, start, size):
    """Draw groups under maximum norms: uniform in a cube whose side is Gamma(d + 1)."""
    w = np.zeros(size)
    for g in range(len(start) - 1):
        bound = rng.standard_gamma(start[g + 1] - start[g] + 1.0) / rates[g]
        for k in range(start[g], start[g + 1]):
            w[order[k]] = bound * (2.0 * rng.random() - 1.0)
    return w


@kernel
def draw_sparse_l2(rng, rate, group_rates, order, start, size):
    """Draw groups under an l1 norm with ``rate`` and Euclidean norms with ``group_rates``."""
    w = np.zeros(size)
    for g in range(len(start) - 1):
        if group_rates[g] == 0.0:
            for k in range(start[g], start[g + 1]):
                w[order[k]] = _sign(rng) * rng.standard_exponential() / rate
            continue
        ratio = rate / group_rates[g]
        scale = math.sqrt(2.0) * _mixing_scale(rng, start[g + 1] - start[g], ratio)
        bound = ratio * scale
        for k in range(start[g], start[g + 1]):
            size_of = scale * _normal_excess(rng, bound) / group_rates[g]
            w[order[k]] = _sign(rng) * size_of
    return w


@kernel
def draw_sparse_linf(rng, rate, group_rates, order, start, size):
    """Draw groups under an l1 norm with ``rate`` and maximum norms with ``group_rates``.

    Given the bound t, the coordinates are Laplace variables truncated at t; and
    ``1 - exp(-rate * t)`` is Beta(d + 1, group rate / rate).
    """
    w = np.zeros(size)
    for g in range(len(start) - 1):
        d = start[g + 1] - start[g]
        if rate == 0.0:
            bound = rng.standard_gamma(d + 1.0) / group_rates[g]
            for k in range(start[g], start[g + 1]):
                w[order[k]] = bound * (2.0 * rng.random() - 1.0)
            continue
        inside = 1.0
        if group_rates[g] > 0.0:
            a, b = rng.standard_gamma(d + 1.0), rng.standard_gamma(group_rates[g] / rate)
            inside = a / (a + b)
        for k in range(start[g], start[g + 1]):
            w[order[k]] = _sign(rng) * -math.log1p(-inside * rng.random()) / rate
    return w


@kernel
def draw_tree_l2(rng, rate, weights, order, start, parent, size):
    """Draw nested groups under Euclidean norms, by enough sweeps to forget the start."""
    return sweep_tree_l2(rng, rate, weights, order, start, parent, size, SWEEPS_L2)


@kernel
def draw_tree_linf(rng, rate, weights, order, start, parent, size):
    """Draw nested groups under maximum norms, by enough sweeps to forget the start."""
    sweeps = SWEEPS_LINF + SWEEPS_LINF_COORDINATE * size
    return sweep_tree_linf(rng, rate, weights, order, start, parent, size, sweeps)


@kernel
def sweep_tree_l2(rng, rate, weights, order, start, parent, size, sweeps):
    """Gibbs sweeps over coefficients and the scales of the normal mixture.

    Each sweep also replaces the value of the whole penalty, Gamma(size), by an independent one.
    """
    groups = len(weights)
    w, square, precision = np.empty(size), np.empty(groups), np.empty(groups)
    for i in range(size):
        w[i] = rng.standard_normal()
    for _ in range(sweeps):
        penalty = _tree_l2_norms(w, weights, order, start, parent, square)
        factor = rng.standard_gamma(float(size)) / penalty
        for g in range(groups):
            # 1 / s given the norm is inverse Gaussian; half the squared weight over s, a precision.
            norm = factor * math.sqrt(square[g])
            inverse = rng.wald(2.0 / (weights[g] * norm), 2.0)
            precision[g] = 0.5 * weights[g] ** 2 * max(inverse, 1e-200)  # rounding can make it 0
        for g in range(groups - 1, -1, -1):  # from the outermost
            if parent[g] >= 0:
                precision[g] += precision[parent[g]]
            for k in range(start[g], start[g + 1]):
                w[order[k]] = rng.standard_normal() / math.sqrt(precision[g])
    penalty = _tree_l2_norms(w, weights, order, start, parent, square)
    return w * (rng.standard_gamma(float(size)) / (rate * penalty))


@kernel
def sweep_tree_linf(rng, rate, weights, order, start, parent, size, sweeps):
    """Gibbs sweeps over coefficients and the bounds of the groups; the penalty as in the other."""
    groups = len(weights)
    w, norm, bound = np.empty(size), np.empty(groups), np.empty(groups)
    for i in range(size):
        w[i] = 2.0 * rng.random() - 1.0
    for _ in range(sweeps):
        penalty = _tree_linf_norms(w, weights, order, start, parent, norm)
        factor = rng.standard_gamma(float(size)) / penalty
        for g in range(groups):
            bound[g] = factor * norm[g] + rng.standard_exponential() / weights[g]
        for g in range(groups - 1, -1, -1):
            if parent[g] >= 0:
                bound[g] = min(bound[g], bound[parent[g]])
            for k in range(start[g], start[g + 1]):
                w[order[k]] = bound[g] * (2.0 * rng.random() - 1.0)
    penalty = _tree_linf_norms(w, weights, order, start, parent, norm)
    return w * (rng.standard_gamma(float(size)) / (rate * penalty))


@inner
def _tree_l2_norms(w, weights, order, start, parent, square):
    """Squared norms of nested groups, into ``square``; return the weighted sum of the norms."""
    square[:] = 0.0
    total = 0.0
    for g in range(len(weights)):  # children come before their parents
        for k in range(start[g], start[g + 1]):
            square[g] += w[order[k]] ** 2
        if parent[g] >= 0:
            square[parent[g]] += square[g]
        total += weights[g] * math.sqrt(square[g])
    return total


@inner
def _tree_linf_norms(w, weights, order, start, parent, norm):
    """Maximum norms of nested groups, into ``norm``; return their weighted sum."""
    norm[:] = 0.0
    total = 0.0
    for g in range(len(weights)):
        for k in range(start[g], start[g + 1]):
            norm[g] = max(norm[g], abs(w[order[k]]))
        if parent[g] >= 0:
            norm[parent[g]] = max(norm[parent[g]], norm[g])
        total += weights[g] * norm[g]
    return total


@inner
def _sign(rng):
    return 1.0 if rng.random() < 0.5 else -1.0


@inner
def _normal_excess(rng, bound):
    """Draw a standard normal variable beyond ``bound >= 0``, minus the bound (Robert 1995)."""
    slope = 0.5 * (bound + math.sqrt(bound * bound + 4.0))
    offset = -1.0 / slope  # bound minus slope
    while True:
        excess = rng.standard_exponential() / slope
        if rng.standard_exponential() > 0.5 * (excess + offset) ** 2:
            return excess


@inner
def _log_mass(u, ratio):
    """Log and log-slope of ``u * erfcx(ratio * u)``, the mass of a coordinate given the scale."""
    x = ratio * u
    if x < _FAR:
        erfcx = math.exp(x * x) * math.erfc(x)
        return math.log(u * erfcx), 1.0 + 2.0 * x * x - 2.0 * x / (math.sqrt(math.pi) * erfcx)
    y = 1.0 / (x * x)
    series = y * (-0.5 + y * (0.75 - 1.875 * y))
    slope = y * (1.0 + y * (-3.0 + 11.25 * y)) / (1.0 + series)
    return math.log1p(series) - math.log(ratio) - 0.5 * math.log(math.pi), slope


@inner
def _mixing_scale(rng, d, ratio):
    r"""Draw from the density proportional to :math:`e^{-u^2} (u \, \mathrm{erfcx}(\rho u))^d`.

    The log of the last factor is concave in log u: its tangent there gives an envelope under which
    the square of u is a gamma variable.
    """
    u = math.sqrt(0.5 * (d + 1.0))
    for _ in range(20):  # the tangent near the mode; any is valid
        u = math.sqrt(0.5 * (1.0 + d * _log_mass(u, ratio)[1]))
    height, slope = _log_mass(u, ratio)
    at = math.log(u)
    while True:
        u = math.sqrt(rng.standard_gamma(0.5 * (d * slope + 1.0)))
        if u > 0.0:
            gain = _log_mass(u, ratio)[0] - height - slope * (math.log(u) - at)
            if rng.standard_exponential() >= -d * gain:
                return u
