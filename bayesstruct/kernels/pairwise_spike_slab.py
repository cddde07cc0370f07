r"""Draws of the weights and biases of pairwise Markov random fields whose edges may be absent.

A *block* of weights belongs to one edge and is zero as a whole, or drawn from a slab,

.. math::

    \gamma_b \sim \mathrm{Bernoulli}(\pi_b), \qquad
    w_b = 0 \text{ if } \gamma_b = 0, \qquad
    w_{bk} \mid \gamma_b = 1 \sim \mathrm{Normal, Laplace\ or\ Cauchy}(0, s_{bk}).

Indicator and weights of a block are proposed together, from an approximation of their law given
everything else, and accepted by the ratio of Metropolis and Hastings. The approximation must not
depend on the present values of the block, or the ratio would be wrong: Newton's method starts at
zero and gives a mode ``m`` and a precision matrix ``A``; the density there gives, by Laplace's
method, the probability of the indicator; the weights are drawn from

.. math:: (1 - \epsilon) \, N(m, A^{-1}) + \epsilon \, \text{slab}.

The log-likelihood is concave in the weights and bounded, so that the second part (a defensive
mixture, Hesterberg 1995) bounds the ratio of target and proposal whatever the slab: there is no
tail in which a chain could stay. Laplace and Cauchy slabs enter Newton's method as the normal law
that touches them at the present point, spread out by its uncertainty. Since the likelihood has
many rows the approximation is nearly exact, most proposals are accepted, and an update is close to a
Gibbs draw of the indicator with the weights summed out. Edges that are clearly absent cost one
evaluation: their approximation at zero is used as it is. Nothing is adapted.

**Biases move with the weights.** In the codings 0, 1, ... a weight and the biases of its two ends are
strongly correlated. A move of the weights by :math:`\delta` therefore takes the biases along, such
that the unary tables change by

.. math:: -\sum_t \delta t_{ij}(s, t) \, \hat q_j(t),

:math:`\hat q_j` being the frequencies of the states of variable ``j``: the update is one of
:math:`w_{ij}` given the biases of centred scores. It is a shear, of Jacobian one; the prior of the
biases enters the ratio. The biases of each variable are then drawn together in the same way, without
indicator; their defensive law has Cauchy's tails, and the scale of the approximation.

*Swaps* carry the chain between edges that explain the same: an active block, chosen at random, is
emptied and an inactive one of an edge that shares a variable with it, chosen at random, is filled.
Both approximations are made where both are empty, hence are the same for the way back.

**Probabilities of full blocks.** Each update notes an estimate of the probability that its block is full
given everything else: the indicator after the update, less the proposed indicator, plus the
probability with which a full block is proposed (`_inclusion`). Its expectation is that of the
indicator whatever the approximation, and its variance nearly that of the conditional probability,
as for draws from the conditional law itself (Gelfand and Smith 1990).

Blocks are visited in their order. Values, gradients and Hessians come from
:mod:`bayesstruct.kernels.pairwise_spike_slab_rows`.

References
----------
Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis, University
of British Columbia, sections 1.4 and 1.5 (models and pseudo-likelihood). -- Gelfand, A. E. and Smith, A. F. M.
(1990). Sampling-based approaches to calculating marginal densities. *JASA* 85, 398-409. -- Hesterberg, T. (1995). Weighted average importance sampling and defensive
mixture distributions. *Technometrics* 37, 185-194. -- Tierney, L. and Kadane, J. B. (1986). Accurate
approximations for posterior moments and marginal densities. *JASA* 81, 82-86. -- Marsman, M., van den
Bergh, D. and Haslbeck, J. M. B. (2025). Bayesian analysis of the ordinal Markov random field.
*Psychometrika* 90 (a sampler of the same posterior by adaptive random walks).
"""

import math

import numba
import numpy as np

from bayesstruct.kernels import pairwise_spike_slab_rows as rows
from bayesstruct.kernels.pairwise_arrays import (
    chain_of,
    layout_of,
    prior_of,
    table_of,
    work_of,
)

__all__ = ["CAUCHY", "LAPLACE", "NORMAL", "sweep"]

NORMAL, LAPLACE, CAUCHY, _FLAT = 0, 1, 2, 3
_INNER = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_DEFENSE = 0.02  # weight of the slab in the proposals
_ABSENT = -5.0  # log odds below which the approximation at zero is not refined
_CLOSE = 0.3  # squared length of a Newton step, in standard deviations, that ends the iteration
_STEPS, _HALVINGS = 10, 12
_LEAST = 1e-4  # least probability of either value of an indicator in proposals
_FLATTEST = 1e-3  # least precision of the approximation of biases
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_tally_joint, _tally_logs, _tally_rows = rows.tally_joint, rows.tally_logs, rows.tally_rows
_tally_feature = rows.tally_feature
_tilt_rows, _value_of_rows, _marginal = rows.tilt_rows, rows.value_of_rows, rows.marginal
_SMALL, _LARGE = rows.SMALL, rows.LARGE


# --- the block at hand -----------------------------------------------------------------------


@numba.njit(**_INNER)
def _set_part(dims, part, contexts, states, variable, context):
    dims[3 + 4 * part] = contexts
    dims[4 + 4 * part] = states
    dims[5 + 4 * part] = variable
    dims[6 + 4 * part] = context


@numba.njit(**_INNER)
def _raw(layout, e, weight, cell):
    """Coefficient of a weight in a cell of the table of an edge."""
    at = layout.pair_start[e] + cell
    return layout.pair_coefficient[at] if layout.pair_weight[at] == weight else 0.0


@numba.njit(**_INNER)
def _centre_feature(layout, table, work, e, weight, a, tied):
    """Change of the tables of both ends with a weight, biases moving along if ``tied``."""
    i, j = layout.source[e], layout.target[e]
    ki, kj = layout.states[i], layout.states[j]
    qi, qj = table.unary[layout.unary_start[i] :], table.unary[layout.unary_start[j] :]
    own, other = work.feature[0, a], work.feature[1, a]
    for s in range(ki):
        mean = 0.0
        for t in range(kj):
            raw = _raw(layout, e, weight, s * kj + t)
            mean += raw * qj[t]
            own[s * kj + t if layout.exact else t * ki + s] = raw
            other[s * kj + t] = raw
        mean = mean / table.n if tied else 0.0
        for t in range(kj):
            own[s * kj + t if layout.exact else t * ki + s] -= mean
        _note_shift(layout, work, 0, i, a, s, -mean)
    for t in range(kj):
        mean = 0.0
        for s in range(ki):
            mean += _raw(layout, e, weight, s * kj + t) * qi[s]
        mean = mean / table.n if tied else 0.0
        for s in range(ki):
            if layout.exact:
                own[s * kj + t] -= mean
            else:
                other[s * kj + t] -= mean
        _note_shift(layout, work, layout.bias_start[i + 1] - layout.bias_start[i], j, a, t, -mean)


@numba.njit(**_INNER)
def _note_shift(layout, work, at, i, a, s, change):
    """Add to the shifts of the biases of a variable that of a change of its table at one state."""
    for b in range(layout.bias_start[i], layout.bias_start[i + 1]):
        work.shift[at + b - layout.bias_start[i], a] += layout.recover[b, s] * change


@numba.njit(**_INNER)
def _load_weights(layout, table, chain, prior, work, block):
    """Take up a block of weights."""
    e = layout.block_edge[block]
    i, j = layout.source[e], layout.target[e]
    ki, kj = layout.states[i], layout.states[j]
    first = layout.block_start[block]
    dims = work.dims
    dims[0] = layout.block_start[block + 1] - first
    dims[1] = 0
    for v in (i, j):
        for b in range(layout.bias_start[v], layout.bias_start[v + 1]):
            work.moved[dims[1]] = b
            dims[1] += 1
    work.shift[:] = 0.0
    for a in range(dims[0]):
        weight = layout.block_weight[first + a]
        work.current[a] = chain.weight[weight]
        work.scale[a] = prior.scale[weight]
        _centre_feature(layout, table, work, e, weight, a, prior.tied)
    if not prior.tied:
        dims[1] = 0
    counts = table.pair[layout.pair_start[e] :]
    if layout.exact:
        dims[2] = 1
        _set_part(dims, 0, 1, ki * kj, -1, -1)
        work.size[0, : ki * kj] = counts[: ki * kj]
        for c in range(chain.energy.shape[0]):
            work.cell[c] = chain.digits[i, c] * kj + chain.digits[j, c]
        _marginal(chain.energy, work.cell, work.base[: ki * kj])
        return
    dims[2] = 2
    _set_part(dims, 0, kj, ki, i, j)
    _set_part(dims, 1, ki, kj, j, i)
    for s in range(ki):
        for t in range(kj):
            work.size[0, t * ki + s] = work.size[1, s * kj + t] = counts[s * kj + t]


@numba.njit(**_INNER)
def _load_biases(layout, table, chain, work, i):
    """Take up the biases of variable ``i``."""
    first = layout.bias_start[i]
    dims = work.dims
    dims[0] = dims[1] = layout.bias_start[i + 1] - first
    dims[2] = 1
    k = layout.states[i]
    work.shift[:] = 0.0
    for a in range(dims[0]):
        work.current[a] = chain.bias[first + a]
        work.scale[a] = 1.0
        work.moved[a] = first + a
        work.shift[a, a] = 1.0
        work.feature[0, a, :k] = layout.effect[first + a, :k]
    start = layout.unary_start[i]
    work.size[0, :k] = table.unary[start : start + k]
    if layout.exact:
        _set_part(dims, 0, 1, k, -1, -1)
        for c in range(chain.energy.shape[0]):
            work.cell[c] = chain.digits[i, c]
        _marginal(chain.energy, work.cell, work.base[:k])
    else:
        _set_part(dims, 0, 1, k, i, layout.states.shape[0])


# --- likelihood ------------------------------------------------------------------------------


@numba.njit(**_INNER)
def _set_change(work, part, x):
    """Set the changes of the log-potentials of a part when the block is at ``x``.

    Returns the sum over the table, and whether factors may be multiplied out.
    """
    dims = work.dims
    change, feature, size = work.change[part], work.feature[part], work.size[part]
    total, most = 0.0, 0.0
    for c in range(dims[3 + 4 * part] * dims[4 + 4 * part]):
        value = 0.0
        for a in range(dims[0]):
            value += (x[a] - work.current[a]) * feature[a, c]
        change[c] = value
        total += size[c] * value
        most = max(most, abs(value))
    return total, most


@numba.njit(**_INNER)
def _set_factor(work, part, cells):
    change, factor = work.change[part], work.factor[part]
    for c in range(cells):
        factor[c] = math.exp(change[c])


@numba.njit(**_INNER)
def _is_single(layout, dims, part):
    """Whether sums over rows are made of one feature, and not of states: faster, unless binary."""
    return not layout.exact and dims[0] == 1 and max(dims[3 + 4 * part], dims[4 + 4 * part]) > 2


@numba.njit(**_INNER)
def _sum_up(work, part, k):
    """Bring what `tally_logs` returns into the form of `tally_feature`."""
    first, second, feature = work.first[part], work.second[part], work.feature[part, 0]
    mean, variance = 0.0, 0.0
    for c in range(work.dims[3 + 4 * part] * k):
        mean += first[c] * feature[c]
        variance += first[c] * feature[c] * feature[c]
        at = c - c % k
        for s in range(k):
            variance -= second[c, s] * feature[c] * feature[at + s]
    first[0], second[0, 0] = mean, variance


@numba.njit(**_INNER)
def _part(layout, table, chain, work, part, x, moments):
    """Change of the log-likelihood through one part."""
    dims = work.dims
    cells = dims[3 + 4 * part] * dims[4 + 4 * part]
    linear, most = _set_change(work, part, x)
    change = work.change[part, :cells]
    if layout.exact:
        return linear - _tally_joint(work.base[:cells], change, table.n, work.first[part])
    i = dims[5 + 4 * part]
    at, end = layout.unary_start[i], layout.unary_start[i + 1]
    context = table.states[dims[6 + 4 * part]]
    if not (chain.lowest[i] > _SMALL and most < _LARGE):
        value = _tally_logs(
            chain.logs[at:end], context, table.starts, table.multiplicity, change,
            work.first[part], work.second[part], work.tilted,
        )  # fmt: skip
        if _is_single(layout, dims, part):
            _sum_up(work, part, end - at)
        return linear - value
    _set_factor(work, part, cells)
    factor, probability = work.factor[part, :cells], chain.probability[at:end]
    if not moments:
        return linear - _value_of_rows(
            probability, context, table.starts, table.multiplicity, factor
        )
    if _is_single(layout, dims, part):
        value, work.first[part, 0], work.second[part, 0, 0] = _tally_feature(
            probability, context, table.starts, table.multiplicity, factor,
            work.feature[part, 0, :cells],
        )  # fmt: skip
        return linear - value
    return linear - _tally_rows(
        probability, context, table.starts, table.multiplicity, factor, work.size[part, :cells],
        work.first[part], work.second[part],
    )  # fmt: skip


@numba.njit(**_INNER)
def _add_single(work, part):
    """`_add_moments` of a single weight, from the sums of `tally_feature`."""
    for c in range(work.dims[3 + 4 * part] * work.dims[4 + 4 * part]):
        work.gradient[0] += work.size[part, c] * work.feature[part, 0, c]
    work.gradient[0] -= work.first[part, 0]
    work.hessian[0, 0] += work.second[part, 0, 0]


@numba.njit(**_INNER)
def _add_moments(layout, table, work, part):
    """Add gradient and negative Hessian of a part."""
    dims, feature = work.dims, work.feature[part]
    first, second, size = work.first[part], work.second[part], work.size[part]
    k = dims[4 + 4 * part]
    cells = dims[3 + 4 * part] * k
    for a in range(dims[0]):
        for c in range(cells):
            work.gradient[a] += (size[c] - first[c]) * feature[a, c]
    for a in range(dims[0]):
        mean_a = 0.0
        for c in range(cells):
            mean_a += first[c] * feature[a, c]
        for b in range(a + 1):
            total, mean_b = 0.0, 0.0
            for c in range(cells):
                total += first[c] * feature[a, c] * feature[b, c]
                mean_b += first[c] * feature[b, c]
            if layout.exact:
                total -= mean_a * mean_b / table.n
            else:
                for c in range(cells):
                    at = c - c % k
                    inner = 0.0
                    for s in range(k):
                        inner += second[c, s] * feature[b, at + s]
                    total -= feature[a, c] * inner
            work.hessian[a, b] += total
            if a != b:
                work.hessian[b, a] += total


@numba.njit(**_INNER)
def _evaluate(layout, table, chain, prior, work, x, moments):
    """Log-likelihood, and prior of the biases that move along, relative to the present point.

    With ``moments`` the gradient and the negative Hessian are stored.
    """
    d = work.dims[0]
    if moments:
        work.gradient[:d] = 0.0
        work.hessian[:d, :d] = 0.0
    value = 0.0
    for part in range(work.dims[2]):
        value += _part(layout, table, chain, work, part, x, moments)
        if moments and _is_single(layout, work.dims, part):
            _add_single(work, part)
        elif moments:
            _add_moments(layout, table, work, part)
    for m in range(work.dims[1]):
        precision = prior.precision[work.moved[m]]
        if precision > 0.0:
            old = chain.bias[work.moved[m]] - prior.mean[work.moved[m]]
            new = old
            for a in range(d):
                new += work.shift[m, a] * (x[a] - work.current[a])
            value += 0.5 * precision * (old - new) * (old + new)
            if moments:
                for a in range(d):
                    work.gradient[a] -= precision * new * work.shift[m, a]
                    for b in range(d):
                        work.hessian[a, b] += precision * work.shift[m, a] * work.shift[m, b]
    return value


@numba.njit(**_INNER)
def _apply(layout, table, chain, work, x):
    """Move the tables of the model, and the biases that move along, to where the block is at x.

    The block itself is left to the caller.
    """
    dims = work.dims
    for part in range(dims[2]):
        cells = dims[3 + 4 * part] * dims[4 + 4 * part]
        _, most = _set_change(work, part, x)
        change = work.change[part, :cells]
        if layout.exact:
            for c in range(chain.energy.shape[0]):
                chain.energy[c] += change[work.cell[c]]
            continue
        i = dims[5 + 4 * part]
        at, end = layout.unary_start[i], layout.unary_start[i + 1]
        plain = chain.lowest[i] > _SMALL and most < _LARGE
        if plain:
            _set_factor(work, part, cells)
        chain.lowest[i] = _tilt_rows(
            chain.logs[at:end], chain.probability[at:end], table.states[dims[6 + 4 * part]],
            change, work.factor[part, :cells], plain, work.tilted,
        )  # fmt: skip
    for m in range(dims[1]):
        for a in range(dims[0]):
            chain.bias[work.moved[m]] += work.shift[m, a] * (x[a] - work.current[a])


@numba.njit(**_INNER)
def _apply_weights(layout, table, chain, work, block, x):
    """Set a block of weights, and everything that follows."""
    _apply(layout, table, chain, work, x)
    first = layout.block_start[block]
    for a in range(work.dims[0]):
        chain.weight[layout.block_weight[first + a]] = x[a]


# --- slab ------------------------------------------------------------------------------------


@numba.njit(**_INNER)
def _log_slab(slab, square, scale):
    """Log density of a slab at a value with this square."""
    if slab == NORMAL:
        return -0.5 * square / (scale * scale) - math.log(scale) - _HALF_LOG_2PI
    if slab == LAPLACE:
        return -math.sqrt(square) / scale - math.log(2.0 * scale)
    return -math.log(math.pi * scale) - math.log1p(square / (scale * scale))


@numba.njit(**_INNER)
def _log_slab_of(work, slab, x):
    total = 0.0
    if slab != _FLAT:
        for a in range(work.dims[0]):
            total += _log_slab(slab, x[a] * x[a], work.scale[a])
    return total


@numba.njit(**_INNER)
def _slab_precision(slab, square, scale):
    """Precision of the normal law that touches a slab at a value with this square."""
    if slab == NORMAL:
        return 1.0 / (scale * scale)
    if slab == LAPLACE:
        return 1.0 / (scale * math.sqrt(square))
    if slab == CAUCHY:
        return 2.0 / (scale * scale + square)
    return 0.0


@numba.njit(**_INNER)
def _slab_evidence(work, slab, a):
    """Share of one weight in Laplace's approximation, of which the ridge is part of A."""
    m, v = work.centre[a], work.spread[a]
    if slab == _FLAT:
        return 0.0
    if slab == NORMAL:
        return _log_slab(slab, m * m, work.scale[a])
    return _log_slab(slab, m * m + v, work.scale[a]) + 0.5 * work.ridge[a] * v


# --- approximation ---------------------------------------------------------------------------


@numba.njit(**_INNER)
def _cholesky(work, slab):
    """Factor A = hessian + ridge."""
    d, factor = work.dims[0], work.factor_a
    for a in range(d):
        least = _FLATTEST if slab == _FLAT else 1e-10 * (work.hessian[a, a] + work.ridge[a])
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


@numba.njit(**_INNER)
def _solve_upper(factor, x, d):
    """Replace x by inv(L') x."""
    for a in range(d - 1, -1, -1):
        total = x[a]
        for b in range(a + 1, d):
            total -= factor[b, a] * x[b]
        x[a] = total / factor[a, a]


@numba.njit(**_INNER)
def _solve_lower(factor, x, start, d):
    """Replace x by inv(L) x, whose elements before ``start`` are zero."""
    for a in range(start, d):
        total = x[a]
        for b in range(start, a):
            total -= factor[a, b] * x[b]
        x[a] = total / factor[a, a]


@numba.njit(**_INNER)
def _solve(work, slab):
    """Mode ``centre`` and spread of the quadratic approximation around ``point``."""
    d, factor, x = work.dims[0], work.factor_a, work.vector
    for a in range(d):
        work.centre[a] = work.point[a]
        work.spread[a] = 1.0 / (work.hessian[a, a] + 1.0 / (work.scale[a] * work.scale[a]))
    for _ in range(1 if slab in (NORMAL, _FLAT) else 4):
        for a in range(d):
            square = work.centre[a] * work.centre[a] + work.spread[a]
            work.ridge[a] = _slab_precision(slab, square, work.scale[a])
        _cholesky(work, slab)
        # The step from `point`: the gradient less the pull of the slab.
        for a in range(d):
            x[a] = work.gradient[a] - work.ridge[a] * work.point[a]
        _solve_lower(factor, x, 0, d)
        _solve_upper(factor, x, d)
        for a in range(d):
            work.centre[a] = work.point[a] + x[a]
        for a in range(d):
            x[:d] = 0.0
            x[a] = 1.0
            _solve_lower(factor, x, a, d)
            work.spread[a] = 0.0
            for b in range(a, d):
                work.spread[a] += x[b] * x[b]


@numba.njit(**_INNER)
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


@numba.njit(**_INNER)
def _advance(layout, table, chain, prior, work, slab, objective):
    """Move ``point`` to ``centre``, or less far where that would be worse; returns the value."""
    d = work.dims[0]
    for a in range(d):
        work.before[a] = work.point[a]
        work.point[a] = work.centre[a]
    value = 0.0
    for _ in range(_HALVINGS):
        value = _evaluate(layout, table, chain, prior, work, work.point, True)
        if value + _log_slab_of(work, slab, work.point) >= objective - 1.0:
            break
        for a in range(d):
            work.point[a] = 0.5 * (work.before[a] + work.point[a])
    return value


@numba.njit(**_INNER)
def _approximate(layout, table, chain, prior, work, slab, log_odds):
    """Approximate the block's law: mode and factor stay in ``work``.

    Returns the log of the Bayes factor of a full block against an empty one, and the log-likelihood
    of the empty one relative to the present point.
    """
    d = work.dims[0]
    work.point[:d] = 0.0
    value = empty = _evaluate(layout, table, chain, prior, work, work.point, True)
    evidence = 0.0
    for step in range(_STEPS):
        _solve(work, slab)
        evidence, length = _evidence(work, slab, value)
        if length < _CLOSE or (step == 0 and log_odds + evidence - empty < _ABSENT):
            break
        objective = value + _log_slab_of(work, slab, work.point)
        value = _advance(layout, table, chain, prior, work, slab, objective)
    return evidence - empty, empty


@numba.njit(**_INNER)
def _log_normal(work, x):
    """Log density of the normal approximation."""
    d, factor = work.dims[0], work.factor_a
    total = 0.0
    for a in range(d):
        along = 0.0
        for b in range(a, d):
            along += factor[b, a] * (x[b] - work.centre[b])
        total += math.log(factor[a, a]) - _HALF_LOG_2PI - 0.5 * along * along
    return total


@numba.njit(**_INNER)
def _log_defense(work, slab, x):
    if slab != _FLAT:
        return _log_slab_of(work, slab, x)
    d, factor = work.dims[0], work.factor_a
    total = 0.0
    for a in range(d):
        along = 0.0
        for b in range(a, d):
            along += factor[b, a] * (x[b] - work.centre[b])
        total += math.log(factor[a, a]) + _log_slab(CAUCHY, along * along, 1.0)
    return total


@numba.njit(**_INNER)
def _log_proposal(work, slab, x):
    """Log density of the proposals of a full block."""
    a = math.log1p(-_DEFENSE) + _log_normal(work, x)
    b = math.log(_DEFENSE) + _log_defense(work, slab, x)
    top = max(a, b)
    return top + math.log(math.exp(a - top) + math.exp(b - top))


@numba.njit(**_INNER)
def _draw_slab(rng, slab, scale):
    if slab == NORMAL:
        return scale * rng.standard_normal()
    if slab == LAPLACE:
        size = scale * rng.standard_exponential()
        return size if rng.random() < 0.5 else -size
    return scale * math.tan(math.pi * (rng.random() - 0.5))


@numba.njit(**_INNER)
def _propose(rng, work, slab):
    """Draw the weights of a full block into ``value``."""
    d, x = work.dims[0], work.value
    defend = rng.random() < _DEFENSE
    if defend and slab != _FLAT:
        for a in range(d):
            x[a] = _draw_slab(rng, slab, work.scale[a])
        return
    for a in range(d):
        x[a] = _draw_slab(rng, CAUCHY if defend else NORMAL, 1.0)
    _solve_upper(work.factor_a, x, d)
    for a in range(d):
        x[a] += work.centre[a]


# --- moves -----------------------------------------------------------------------------------


@numba.njit(**_INNER)
def _inclusion(full, proposed, share, chance, acceptance):
    r"""Estimate the probability that a block is full given everything else, from one proposal.

    Parameters
    ----------
    full, proposed : float
        Indicator of the block now, and as proposed.
    share, chance : float
        Probability of a full block in the approximation, and in the proposals: the same within bounds.
    acceptance : float
        Probability of acceptance.

    Notes
    -----
    The indicator after the move has mean :math:`g + \alpha (g' - g)` over acceptance and refusal;
    :math:`g' - q`, with :math:`q` the probability of proposing a full block, has mean zero whatever
    :math:`q` is: a control variate, which leaves the expectation alone. Where proposals are accepted, the
    difference of both is :math:`q`. Blocks that are proposed far more often than they are there
    (or absent) are not accepted then; the control variate is shrunk by the same factor.
    """
    shrink = 1.0
    if share < chance:
        shrink = share / chance
    elif share > chance:
        shrink = (1.0 - share) / (1.0 - chance)
    return full + acceptance * (proposed - full) - shrink * (proposed - chance)


@numba.njit(**_INNER)
def _accept(rng, log_ratio):
    """Whether to accept, and with which probability."""
    chance = math.exp(min(log_ratio, 0.0))
    return rng.random() < chance, chance


@numba.njit(**_INNER)
def _redraw(rng, layout, table, chain, prior, work, slab, log_odds):
    """Propose indicator and values of the block at hand.

    Returns whether the proposal, in ``value``, was accepted; with which probability, minus one where
    nothing was proposed; and an estimate of the probability of a full block.
    """
    d = work.dims[0]
    full = log_odds == np.inf
    for a in range(d):
        full = full or work.current[a] != 0.0
    evidence, empty = _approximate(layout, table, chain, prior, work, slab, log_odds)
    share = 1.0 / (1.0 + math.exp(min(-log_odds - evidence, 700.0)))
    chance = 1.0 if log_odds == np.inf else min(max(share, _LEAST), 1.0 - _LEAST)
    # Prior odds of an indicator that is certain cancel.
    odds = 0.0 if log_odds == np.inf else log_odds
    enters = chance == 1.0 or rng.random() < chance
    if not (enters or full):
        return False, -1.0, _inclusion(0.0, 0.0, share, chance, 1.0)
    log_ratio = 0.0
    if full:
        log_ratio -= odds + _log_slab_of(work, slab, work.current)
        log_ratio += math.log(chance) + _log_proposal(work, slab, work.current)
    else:
        log_ratio += math.log1p(-chance) - empty
    if enters:
        _propose(rng, work, slab)
        log_ratio += odds + _log_slab_of(work, slab, work.value)
        log_ratio -= math.log(chance) + _log_proposal(work, slab, work.value)
        log_ratio += _evaluate(layout, table, chain, prior, work, work.value, False)
    else:
        work.value[:d] = 0.0
        log_ratio += empty - math.log1p(-chance)
    if not full:
        log_ratio += empty  # the present point is the empty block: its log-likelihood is zero
    accepted, acceptance = _accept(rng, log_ratio)
    now, then = 1.0 if full else 0.0, 1.0 if enters else 0.0
    estimate = _inclusion(now, then, share, chance, acceptance)
    return accepted, acceptance, estimate


@numba.njit(**_INNER)
def _is_full(layout, chain, block):
    for m in range(layout.block_start[block], layout.block_start[block + 1]):
        if chain.weight[layout.block_weight[m]] != 0.0:
            return True
    return False


@numba.njit(**_INNER)
def _touches(layout, a, b):
    """Whether the edges of two blocks are different and share a variable."""
    e, f = layout.block_edge[a], layout.block_edge[b]
    i, j, k, l = layout.source[e], layout.target[e], layout.source[f], layout.target[f]
    return e != f and (i in (k, l) or j in (k, l))


@numba.njit(**_INNER)
def _is_free(prior, block):
    return abs(prior.log_odds[block]) != np.inf


@numba.njit(**_INNER)
def _pick_full(rng, layout, chain, prior, blocks):
    """Choose a full block that may be emptied at random, or -1."""
    chosen, count = -1, 0
    for block in blocks:
        if _is_free(prior, block) and _is_full(layout, chain, block):
            count += 1
            if rng.random() * count < 1.0:
                chosen = block
    return chosen


@numba.njit(**_INNER)
def _pick_rival(rng, layout, chain, prior, blocks, block):
    """Choose an empty block that touches another one at random, or -1; and count them."""
    chosen, count = -1, 0
    for rival in blocks:
        if (
            _touches(layout, block, rival)
            and _is_free(prior, rival)
            and not _is_full(layout, chain, rival)
        ):
            count += 1
            if rng.random() * count < 1.0:
                chosen = rival
    return chosen, count


@numba.njit(**_INNER)
def _swap(rng, layout, table, chain, prior, work, blocks):
    """Exchange a full block for an empty one; returns the probability of acceptance, or -1."""
    block = _pick_full(rng, layout, chain, prior, blocks)
    if block < 0:
        return -1.0
    rival, choices = _pick_rival(rng, layout, chain, prior, blocks, block)
    if rival < 0:
        return -1.0
    slab = prior.slab
    _load_weights(layout, table, chain, prior, work, block)
    d = work.dims[0]
    kept = work.current[:d].copy()
    _, log_ratio = _approximate(layout, table, chain, prior, work, slab, np.inf)
    log_ratio += _log_proposal(work, slab, kept) - _log_slab_of(work, slab, kept)
    log_ratio -= prior.log_odds[block]
    work.value[:d] = 0.0
    _apply_weights(layout, table, chain, work, block, work.value)

    _load_weights(layout, table, chain, prior, work, rival)
    _approximate(layout, table, chain, prior, work, slab, np.inf)
    _propose(rng, work, slab)
    log_ratio += _evaluate(layout, table, chain, prior, work, work.value, False)
    log_ratio += _log_slab_of(work, slab, work.value) - _log_proposal(work, slab, work.value)
    log_ratio += prior.log_odds[rival]
    # On the way back the block is one of the empty ones that touch the rival.
    back = 1
    for other in blocks:
        back += (
            other != block
            and _touches(layout, rival, other)
            and _is_free(prior, other)
            and not _is_full(layout, chain, other)
        )
    log_ratio += math.log(choices) - math.log(back)
    accepted, chance = _accept(rng, log_ratio)
    if accepted:
        _apply_weights(layout, table, chain, work, rival, work.value)
    else:
        _load_weights(layout, table, chain, prior, work, block)
        work.value[:d] = kept
        _apply_weights(layout, table, chain, work, block, work.value)
    return chance


@numba.njit(cache=True, nogil=True)
def sweep(rng, layout, table, chain, prior, work, blocks, variables, swaps, tally):
    """Draw blocks of weights and the biases of variables once, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    layout, table, prior : Layout, Table, Prior
    chain : Chain, changed
    work : Work, changed
        Its ``inclusion`` is written for each of the blocks.
    blocks : int64 array
        Blocks of weights, in the order in which they are visited.
    variables : int64 array
        Variables whose biases are drawn, if they are at all.
    swaps : int
        Exchanges of a full block for an empty one that are tried.
    tally : (2,) float64, changed
        Sum of the probabilities of acceptance, and number of proposals that were not to leave an
        empty block empty, are added.
    """
    layout, table, prior = layout_of(*layout), table_of(*table), prior_of(*prior)
    chain, work = chain_of(*chain), work_of(*work)
    _sweep(rng, layout, table, chain, prior, work, blocks, variables, swaps, tally)


@numba.njit(**_INNER)
def _sweep(rng, layout, table, chain, prior, work, blocks, variables, swaps, tally):
    for block in blocks:
        log_odds = prior.log_odds[block]
        if log_odds == -np.inf:
            work.inclusion[block] = 1.0 if _is_full(layout, chain, block) else 0.0
            continue
        _load_weights(layout, table, chain, prior, work, block)
        accepted, chance, work.inclusion[block] = _redraw(
            rng, layout, table, chain, prior, work, prior.slab, log_odds
        )
        if accepted:
            _apply_weights(layout, table, chain, work, block, work.value)
        if chance >= 0.0:
            tally[0] += chance
            tally[1] += 1.0
    for _ in range(swaps):
        chance = _swap(rng, layout, table, chain, prior, work, blocks)
        if chance >= 0.0:
            tally[0] += chance
            tally[1] += 1.0
    if not prior.tied:
        return
    flat = np.int64(_FLAT)  # as a literal it would have everything compiled once more
    for i in variables:
        _load_biases(layout, table, chain, work, i)
        accepted, chance, _ = _redraw(rng, layout, table, chain, prior, work, flat, np.inf)
        if accepted:
            _apply(layout, table, chain, work, work.value)
        tally[0] += chance
        tally[1] += 1.0
