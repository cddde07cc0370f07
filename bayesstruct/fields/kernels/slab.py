r"""Slabs, and the approximation of the distribution of a full block, from which proposals are drawn.

The approximation must not depend on the present values of the block, or the Metropolis-Hastings ratio would be
wrong: Newton's method starts at zero and gives a mode ``m`` and a precision matrix ``A``; the density there gives, by
Laplace's method (Tierney and Kadane 1986), the probability of the indicator; the weights are drawn from

.. math:: (1 - \epsilon) \, N(m, A^{-1}) + \epsilon \, \text{slab}.

The log-likelihood is concave in the weights and bounded, so that the second part (a defensive
mixture, Hesterberg 1995) bounds the ratio of target and proposal whatever the slab: there is no
tail in which a chain could stay. Laplace and Cauchy slabs enter Newton's method as the normal distribution
that touches them at the present point, spread out by its uncertainty. Edges that are clearly absent cost one
evaluation: their approximation at zero is not refined.

Biases have no slab; their defensive distribution is Cauchy, with the scale of the approximation.

References
----------
Hesterberg, T. (1995). Weighted average importance sampling and defensive mixture distributions. *Technometrics* 37,
185-194. -- Tierney, L. and Kadane, J. B. (1986). Accurate approximations for posterior moments and marginal
densities. *JASA* 81, 82-86.
"""

import math

from bayesstruct.core.jit import inner
from bayesstruct.fields.kernels.block import evaluate

__all__ = [
    "ABSENT",
    "CAUCHY",
    "CLOSE",
    "DEFENSE",
    "FLAT",
    "HALVINGS",
    "LAPLACE",
    "NORMAL",
    "STEPS",
    "approximate",
    "log_proposal",
    "log_slab_of",
    "propose",
    "solve_lower",
    "solve_upper",
]

NORMAL, LAPLACE, CAUCHY, FLAT = 0, 1, 2, 3
DEFENSE = 0.02  # weight of the slab in the proposals
ABSENT = -5.0  # log odds below which the approximation at zero is not refined
CLOSE = 0.3  # squared length of a Newton step, in standard deviations, that ends the iteration
STEPS, HALVINGS = 10, 12
_FLATTEST = 1e-3  # least precision of the approximation of biases
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@inner
def _log_slab(slab, square, scale):
    """Log density of a slab at a value with this square."""
    if slab == NORMAL:
        return -0.5 * square / (scale * scale) - math.log(scale) - _HALF_LOG_2PI
    if slab == LAPLACE:
        return -math.sqrt(square) / scale - math.log(2.0 * scale)
    return -math.log(math.pi * scale) - math.log1p(square / (scale * scale))


@inner
def log_slab_of(work, slab, x):
    """Log density of the slab of the current block, zero without one."""
    total = 0.0
    if slab != FLAT:
        for a in range(work.dims[0]):
            total += _log_slab(slab, x[a] * x[a], work.scale[a])
    return total


@inner
def _slab_precision(slab, square, scale):
    """Precision of the normal density that touches a slab at a value with this square."""
    if slab == NORMAL:
        return 1.0 / (scale * scale)
    if slab == LAPLACE:
        return 1.0 / (scale * math.sqrt(square))
    if slab == CAUCHY:
        return 2.0 / (scale * scale + square)
    return 0.0


@inner
def _slab_evidence(work, slab, a):
    """Contribution of one weight to Laplace's approximation, the ridge being part of A."""
    m, v = work.centre[a], work.spread[a]
    if slab == FLAT:
        return 0.0
    if slab == NORMAL:
        return _log_slab(slab, m * m, work.scale[a])
    return _log_slab(slab, m * m + v, work.scale[a]) + 0.5 * work.ridge[a] * v


# --- approximation ---------------------------------------------------------------------------


@inner
def _cholesky(work, slab):
    """Factor A = hessian + ridge."""
    d, factor = work.dims[0], work.factor_a
    for a in range(d):
        least = _FLATTEST if slab == FLAT else 1e-10 * (work.hessian[a, a] + work.ridge[a])
        for b in range(a + 1):
            total = work.hessian[a, b]
            if a == b:
                total += work.ridge[a]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a == b:
                factor[a, a] = math.sqrt(max(total, least))
            else:
                factor[a, b] = total / factor[b, b]


@inner
def solve_upper(factor, x, d):
    """Replace x by inv(L') x."""
    for a in range(d - 1, -1, -1):
        total = x[a]
        for b in range(a + 1, d):
            total -= factor[b, a] * x[b]
        x[a] = total / factor[a, a]


@inner
def solve_lower(factor, x, start, d):
    """Replace x by inv(L) x, whose elements before ``start`` are zero."""
    for a in range(start, d):
        total = x[a]
        for b in range(start, a):
            total -= factor[a, b] * x[b]
        x[a] = total / factor[a, a]


@inner
def _solve(work, slab):
    """Mode ``centre`` and spread of the quadratic approximation around ``point``."""
    d, factor, x = work.dims[0], work.factor_a, work.vector
    for a in range(d):
        work.centre[a] = work.point[a]
        work.spread[a] = 1.0 / (work.hessian[a, a] + 1.0 / (work.scale[a] * work.scale[a]))
    for _ in range(1 if slab in (NORMAL, FLAT) else 4):
        for a in range(d):
            square = work.centre[a] * work.centre[a] + work.spread[a]
            work.ridge[a] = _slab_precision(slab, square, work.scale[a])
        _cholesky(work, slab)
        # The step from `point`: the gradient less the pull of the slab.
        for a in range(d):
            x[a] = work.gradient[a] - work.ridge[a] * work.point[a]
        solve_lower(factor, x, 0, d)
        solve_upper(factor, x, d)
        for a in range(d):
            work.centre[a] = work.point[a] + x[a]
        for a in range(d):
            x[:d] = 0.0
            x[a] = 1.0
            solve_lower(factor, x, a, d)
            work.spread[a] = 0.0
            for b in range(a, d):
                work.spread[a] += x[b] * x[b]


@inner
def _evidence(work, slab, value):
    """Laplace's approximation of the log integral, and the squared length of the last step."""
    d, factor = work.dims[0], work.factor_a
    total, length = value, 0.0
    for a in range(d):
        step = work.centre[a] - work.point[a]
        total += work.gradient[a] * step
        for b in range(d):
            total -= 0.5 * step * work.hessian[a, b] * (work.centre[b] - work.point[b])
        total += _slab_evidence(work, slab, a) + _HALF_LOG_2PI - math.log(factor[a, a])
        along = 0.0
        for b in range(a, d):
            along += factor[b, a] * (work.centre[b] - work.point[b])
        length += along * along
    return total, length


@inner
def _advance(layout, table, chain, prior, work, slab, objective):
    """Move ``point`` to ``centre``, or less far where that would be worse; returns the value."""
    d = work.dims[0]
    for a in range(d):
        work.before[a] = work.point[a]
        work.point[a] = work.centre[a]
    value = 0.0
    for _ in range(HALVINGS):
        value = evaluate(layout, table, chain, prior, work, work.point, True)
        if value + log_slab_of(work, slab, work.point) >= objective - 1.0:
            break
        for a in range(d):
            work.point[a] = 0.5 * (work.before[a] + work.point[a])
    return value


@inner
def approximate(layout, table, chain, prior, work, slab, log_odds):
    """Approximate the distribution of the block: mode and factor stay in ``work``.

    Returns the log of the Bayes factor of a full block against an empty one, and the log-likelihood
    of the empty one relative to the present point.
    """
    d = work.dims[0]
    work.point[:d] = 0.0
    value = empty = evaluate(layout, table, chain, prior, work, work.point, True)
    evidence = 0.0
    for step in range(STEPS):
        _solve(work, slab)
        evidence, length = _evidence(work, slab, value)
        if length < CLOSE or (step == 0 and log_odds + evidence - empty < ABSENT):
            break
        objective = value + log_slab_of(work, slab, work.point)
        value = _advance(layout, table, chain, prior, work, slab, objective)
    return evidence - empty, empty


@inner
def _coordinate(work, x, a):
    """Coordinate of a point in which the normal approximation is standard."""
    along = 0.0
    for b in range(a, work.dims[0]):
        along += work.factor_a[b, a] * (x[b] - work.centre[b])
    return along


@inner
def _log_normal(work, x):
    """Log density of the normal approximation."""
    d, factor = work.dims[0], work.factor_a
    total = 0.0
    for a in range(d):
        along = _coordinate(work, x, a)
        total += math.log(factor[a, a]) - _HALF_LOG_2PI - 0.5 * along * along
    return total


@inner
def _log_defense(work, slab, x):
    if slab != FLAT:
        return log_slab_of(work, slab, x)
    d, factor = work.dims[0], work.factor_a
    total = 0.0
    for a in range(d):
        along = _coordinate(work, x, a)
        total += math.log(factor[a, a]) + _log_slab(CAUCHY, along * along, 1.0)
    return total


@inner
def log_proposal(work, slab, x):
    """Log density of the proposals of a full block."""
    a = math.log1p(-DEFENSE) + _log_normal(work, x)
    b = math.log(DEFENSE) + _log_defense(work, slab, x)
    top = max(a, b)
    return top + math.log(math.exp(a - top) + math.exp(b - top))


@inner
def _draw_slab(rng, slab, scale):
    if slab == NORMAL:
        return scale * rng.standard_normal()
    if slab == LAPLACE:
        size = scale * rng.standard_exponential()
        return size if rng.random() < 0.5 else -size
    return scale * math.tan(math.pi * (rng.random() - 0.5))


@inner
def propose(rng, work, slab):
    """Draw the weights of a full block into ``value``."""
    d, x = work.dims[0], work.value
    defend = rng.random() < DEFENSE
    if defend and slab != FLAT:
        for a in range(d):
            x[a] = _draw_slab(rng, slab, work.scale[a])
        return
    for a in range(d):
        x[a] = _draw_slab(rng, CAUCHY if defend else NORMAL, 1.0)
    solve_upper(work.factor_a, x, d)
    for a in range(d):
        x[a] += work.centre[a]
