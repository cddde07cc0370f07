r"""One block of weights, or the biases of one variable, and the change of the likelihood with it.

A block belongs to one edge. It is loaded into the work arrays once, as changes of the tables of log-potentials
with each parameter; its log-likelihood, gradient and Hessian at any values are relative to the present point.

**Biases move with the weights.** In the codings 0, 1, ... a weight and the biases of its two ends are
strongly correlated. A move of the weights by :math:`\delta` therefore moves the biases too, such
that the unary tables change by

.. math:: -\sum_t \delta t_{ij}(s, t) \, \hat q_j(t),

:math:`\hat q_j` being the frequencies of the states of variable ``j``: the update is one of
:math:`w_{ij}` given the biases of centred scores. It is a shear, of Jacobian one; the prior of the
biases enters the ratio.

Sums over rows are those of :mod:`bayesstruct.fields.kernels.row_tilts`, sums over joint states those of
:mod:`bayesstruct.fields.kernels.joint_tilts`.
"""

import math

from bayesstruct.core.arrays import copy_vector
from bayesstruct.core.jit import inner
from bayesstruct.fields.kernels.joint_tilts import marginal, tally_joint
from bayesstruct.fields.kernels.row_tilts import (
    LARGE,
    SMALL,
    tally_feature,
    tally_logs,
    tally_rows,
    tilt_rows,
    value_of_rows,
)

__all__ = ["apply", "apply_weights", "evaluate", "load_biases", "load_weights"]


# --- the current block -----------------------------------------------------------------------


@inner
def _set_part(dims, part, contexts, states, variable, context):
    dims[3 + 4 * part] = contexts
    dims[4 + 4 * part] = states
    dims[5 + 4 * part] = variable
    dims[6 + 4 * part] = context


@inner
def _raw(layout, e, weight, cell):
    """Coefficient of a weight in a cell of the table of an edge."""
    at = layout.pair_start[e] + cell
    return layout.pair_coefficient[at] if layout.pair_weight[at] == weight else 0.0


@inner
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


@inner
def _note_shift(layout, work, at, i, a, s, change):
    """Add to the shifts of the biases of a variable that of a change of its table at one state."""
    for b in range(layout.bias_start[i], layout.bias_start[i + 1]):
        work.shift[at + b - layout.bias_start[i], a] += layout.recover[b, s] * change


@inner
def load_weights(layout, table, chain, prior, work, block):
    """Load a block of weights."""
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
        copy_vector(work.size[0], counts[: ki * kj])
        for c in range(chain.energy.shape[0]):
            work.cell[c] = chain.digits[i, c] * kj + chain.digits[j, c]
        marginal(chain.energy, work.cell, work.base[: ki * kj])
        return
    dims[2] = 2
    _set_part(dims, 0, kj, ki, i, j)
    _set_part(dims, 1, ki, kj, j, i)
    for s in range(ki):
        for t in range(kj):
            work.size[0, t * ki + s] = work.size[1, s * kj + t] = counts[s * kj + t]


@inner
def load_biases(layout, table, chain, work, i):
    """Load the biases of variable ``i``."""
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
        copy_vector(work.feature[0, a], layout.effect[first + a, :k])
    start = layout.unary_start[i]
    copy_vector(work.size[0], table.unary[start : start + k])
    if layout.exact:
        _set_part(dims, 0, 1, k, -1, -1)
        for c in range(chain.energy.shape[0]):
            work.cell[c] = chain.digits[i, c]
        marginal(chain.energy, work.cell, work.base[:k])
    else:
        _set_part(dims, 0, 1, k, i, layout.states.shape[0])


# --- likelihood ------------------------------------------------------------------------------


@inner
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


@inner
def _set_factor(work, part, cells):
    change, factor = work.change[part], work.factor[part]
    for c in range(cells):
        factor[c] = math.exp(change[c])


@inner
def _is_single(layout, dims, part):
    """Whether sums over rows are those of one feature, not of states: faster, unless binary."""
    return not layout.exact and dims[0] == 1 and max(dims[3 + 4 * part], dims[4 + 4 * part]) > 2


@inner
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


@inner
def _part(layout, table, chain, work, part, x, moments):
    """Change of the log-likelihood through one part."""
    dims = work.dims
    cells = dims[3 + 4 * part] * dims[4 + 4 * part]
    linear, most = _set_change(work, part, x)
    change = work.change[part, :cells]
    if layout.exact:
        return linear - tally_joint(work.base[:cells], change, table.n, work.first[part])
    i = dims[5 + 4 * part]
    at, end = layout.unary_start[i], layout.unary_start[i + 1]
    context = table.states[dims[6 + 4 * part]]
    if not (chain.lowest[i] > SMALL and most < LARGE):
        value = tally_logs(
            chain.logs[at:end],
            context,
            table.starts,
            table.multiplicity,
            change,
            work.first[part],
            work.second[part],
            work.tilted,
        )
        if _is_single(layout, dims, part):
            _sum_up(work, part, end - at)
        return linear - value
    _set_factor(work, part, cells)
    factor, probability = work.factor[part, :cells], chain.probability[at:end]
    if not moments:
        return linear - value_of_rows(
            probability, context, table.starts, table.multiplicity, factor
        )
    if _is_single(layout, dims, part):
        value, work.first[part, 0], work.second[part, 0, 0] = tally_feature(
            probability,
            context,
            table.starts,
            table.multiplicity,
            factor,
            work.feature[part, 0, :cells],
        )
        return linear - value
    return linear - tally_rows(
        probability,
        context,
        table.starts,
        table.multiplicity,
        factor,
        work.size[part, :cells],
        work.first[part],
        work.second[part],
    )


@inner
def _add_single(work, part):
    """`_add_moments` of a single weight, from the sums of `tally_feature`."""
    for c in range(work.dims[3 + 4 * part] * work.dims[4 + 4 * part]):
        work.gradient[0] += work.size[part, c] * work.feature[part, 0, c]
    work.gradient[0] -= work.first[part, 0]
    work.hessian[0, 0] += work.second[part, 0, 0]


@inner
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


@inner
def evaluate(layout, table, chain, prior, work, x, moments):
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


@inner
def apply(layout, table, chain, work, x):
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
        plain = chain.lowest[i] > SMALL and most < LARGE
        if plain:
            _set_factor(work, part, cells)
        chain.lowest[i] = tilt_rows(
            chain.logs[at:end],
            chain.probability[at:end],
            table.states[dims[6 + 4 * part]],
            change,
            work.factor[part, :cells],
            plain,
            work.tilted,
        )
    for m in range(dims[1]):
        for a in range(dims[0]):
            chain.bias[work.moved[m]] += work.shift[m, a] * (x[a] - work.current[a])


@inner
def apply_weights(layout, table, chain, work, block, x):
    """Set a block of weights, and update all tables."""
    apply(layout, table, chain, work, x)
    first = layout.block_start[block]
    for a in range(work.dims[0]):
        chain.weight[layout.block_weight[first + a]] = x[a]
