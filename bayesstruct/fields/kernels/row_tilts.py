r"""Change of the normalisers of the pseudo-likelihood with the potentials of one edge or variable.

In the *pseudo-likelihood* each row has a normaliser for each variable. A move of the weights of one edge
changes those of its two ends, by

.. math:: \log \sum_s \pi_{rs} \, e^{\Delta_{ts}},

:math:`\pi_{rs}` being the conditional probability of state ``s`` in row ``r`` and ``t`` the state of
the other end in that row (the *context*). Derivatives are means and covariances of the tilted probabilities. The
conditional probabilities of all rows are kept, and updated after each move. For the exact likelihood see
:mod:`bayesstruct.fields.kernels.joint_tilts`.

Products of probabilities and factors are formed without exponentials in the rows, and logarithms are
taken of products of many terms. Where probabilities are so small, or changes so large, that this
would lose digits, the same is done with logarithms.
"""

import math

import numpy as np

from bayesstruct.core.jit import inner, vector_inner

__all__ = [
    "LARGE",
    "SMALL",
    "tally_feature",
    "tally_logs",
    "tally_rows",
    "tilt_rows",
    "value_of_rows",
]

SMALL = -690.0  # logarithm of the smallest probability with full precision in a double
LARGE = 150.0  # change of a log-potential up to which factors may be multiplied out
_TOP, _BOTTOM = 1e150, 1e-150
_BLOCK = 64  # rows whose normalisers are multiplied at once if factors are moderate:
_MODERATE = 1e4  # no such product of them leaves the range of doubles


@inner
def _is_moderate(factor):
    """Whether the normalisers of a block of rows may be multiplied."""
    for value in factor:
        if not (value < _MODERATE and value * _MODERATE > 1.0):
            return False
    return True


@inner
def _is_binary(k, factor):
    """Whether variable and context have two states, and factors are moderate."""
    return k == 2 and factor.shape[0] == 4 and _is_moderate(factor)


@vector_inner
def _multiply(zero, one, context, start, end, factor):
    """Product of the normalisers of some rows of a binary variable in a binary context."""
    f00, f01, f10, f11 = factor[0], factor[1], factor[2], factor[3]
    product = 1.0
    for r in range(start, end):
        t = context[r] != 0
        product *= zero[r] * (f10 if t else f00) + one[r] * (f11 if t else f01)
    return product


@vector_inner
def _multiply_and_add(zero, one, context, start, end, factor):
    """`_multiply`, and sums of the second probability and of its square, by context."""
    f00, f01, f10, f11 = factor[0], factor[1], factor[2], factor[3]
    product, first, second, first_on, second_on = 1.0, 0.0, 0.0, 0.0, 0.0
    for r in range(start, end):
        t = context[r] != 0
        up = one[r] * (f11 if t else f01)
        norm = zero[r] * (f10 if t else f00) + up
        product *= norm
        q = up / norm
        square = q * q
        first += 0.0 if t else q
        second += 0.0 if t else square
        first_on += q if t else 0.0
        second_on += square if t else 0.0
    return product, first, second, first_on, second_on


@inner
def _value_of_binary(probability, context, starts, multiplicity, factor):
    """`value_of_rows` of a binary variable in a binary context."""
    total = 0.0
    for g in range(multiplicity.shape[0]):
        logs = 0.0
        for r in range(starts[g], starts[g + 1], _BLOCK):
            end = r + _BLOCK if r + _BLOCK < starts[g + 1] else starts[g + 1]
            logs += math.log(_multiply(probability[0], probability[1], context, r, end, factor))
        total += multiplicity[g] * logs
    return total


@inner
def _tally_binary(probability, context, starts, multiplicity, factor, first, second):
    """`_tally_two` in a binary context."""
    total = 0.0
    for g in range(multiplicity.shape[0]):
        m, logs = multiplicity[g], 0.0
        for r in range(starts[g], starts[g + 1], _BLOCK):
            end = r + _BLOCK if r + _BLOCK < starts[g + 1] else starts[g + 1]
            product, off, off2, on, on2 = _multiply_and_add(
                probability[0], probability[1], context, r, end, factor
            )
            logs += math.log(product)
            first[1] += m * off
            first[3] += m * on
            second[1, 1] += m * off2
            second[3, 1] += m * on2
        total += m * logs
    return total


@inner
def value_of_rows(probability, context, starts, multiplicity, factor):
    """Change of the log normalisers of one variable, summed over rows.

    Parameters
    ----------
    probability : (states, rows) float64
    context : (rows,) int16
    starts, multiplicity : (groups + 1,) int64, (groups,) float64
        Rows come in groups of equal multiplicity.
    factor : (contexts * states,) float64
    """
    k = probability.shape[0]
    if _is_binary(k, factor):
        return _value_of_binary(probability, context, starts, multiplicity, factor)
    total = 0.0
    for g in range(multiplicity.shape[0]):
        logs, product = 0.0, 1.0
        for r in range(starts[g], starts[g + 1]):
            c = k * context[r]
            norm = 0.0
            for s in range(k):
                norm += probability[s, r] * factor[c + s]
            product *= norm
            if product > _TOP or product < _BOTTOM:
                logs += math.log(product)
                product = 1.0
        total += multiplicity[g] * (logs + math.log(product))
    return total


@inner
def _tally_two(probability, context, starts, multiplicity, factor, first, second):
    """`tally_rows` of a variable with two states; fills the entries of the second only."""
    zero, one = probability[0], probability[1]
    total = 0.0
    for g in range(multiplicity.shape[0]):
        m = multiplicity[g]
        logs, product = 0.0, 1.0
        for r in range(starts[g], starts[g + 1]):
            c = 2 * context[r]
            up = one[r] * factor[c + 1]
            norm = zero[r] * factor[c] + up
            product *= norm
            if product > _TOP or product < _BOTTOM:
                logs += math.log(product)
                product = 1.0
            q = up / norm
            first[c + 1] += m * q
            second[c + 1, 1] += m * q * q
        total += m * (logs + math.log(product))
    return total


@inner
def _complete_two(size, first, second):
    """Fill the entries of the first of two states; ``size`` counts rows by context and state."""
    for c in range(0, size.shape[0], 2):
        rows = size[c] + size[c + 1]
        mean, square = first[c + 1], second[c + 1, 1]
        first[c] = rows - mean
        second[c, 0] = rows - 2.0 * mean + square
        second[c, 1] = second[c + 1, 0] = mean - square


@vector_inner
def _tilt_block(probability, start, end, factor, tilted):
    """Tilted probabilities of some rows without context; the product of their normalisers."""
    k, size = probability.shape[0], end - start
    norm = tilted[k]
    norm[:] = 0.0
    for s in range(k):
        row, own, f = probability[s, start:end], tilted[s], factor[s]
        for r in range(size):
            own[r] = row[r] * f
            norm[r] += own[r]
    product = 1.0
    for r in range(size):
        product *= norm[r]
        norm[r] = 1.0 / norm[r]
    for s in range(k):
        own = tilted[s]
        for r in range(size):
            own[r] *= norm[r]
    return product


@vector_inner
def _dot(a, b, size):
    total = 0.0
    for r in range(size):
        total += a[r] * b[r]
    return total


@vector_inner
def _sum(a, size):
    total = 0.0
    for r in range(size):
        total += a[r]
    return total


@inner
def _tally_alone(probability, starts, multiplicity, factor, first, second):
    """`tally_rows` without context, of moderate factors: sums over blocks of rows."""
    k = probability.shape[0]
    tilted = np.empty((k + 1, _BLOCK))
    total = 0.0
    for g in range(multiplicity.shape[0]):
        m, logs = multiplicity[g], 0.0
        for r in range(starts[g], starts[g + 1], _BLOCK):
            end = r + _BLOCK if r + _BLOCK < starts[g + 1] else starts[g + 1]
            logs += math.log(_tilt_block(probability, r, end, factor, tilted))
            for s in range(k):
                first[s] += m * _sum(tilted[s], end - r)
                for s2 in range(s + 1):
                    second[s, s2] += m * _dot(tilted[s], tilted[s2], end - r)
        total += m * logs
    _mirror(second, k, k)
    return total


@inner
def _mirror(second, cells, k):
    """Fill the upper triangles of the matrices of each context from the lower ones."""
    for c in range(cells):
        at = c - c % k
        for s in range(c % k):
            second[at + s, c % k] = second[c, s]


@inner
def tally_rows(probability, context, starts, multiplicity, factor, size, first, second):
    """`value_of_rows`, with the sums over rows that its derivatives need.

    Parameters
    ----------
    size : (contexts * states,) float64
        Number of rows with each context and observed state.
    first : (contexts * states,) float64, written
        Sums of the tilted probabilities of each state, by context.
    second : (contexts * states, states) float64, written
        Sums of their products.
    """
    k = probability.shape[0]
    first[: factor.shape[0]] = 0.0
    second[: factor.shape[0], :k] = 0.0
    if k == 2:
        if _is_binary(k, factor):
            total = _tally_binary(probability, context, starts, multiplicity, factor, first, second)
        else:
            total = _tally_two(probability, context, starts, multiplicity, factor, first, second)
        _complete_two(size, first, second)
        return total
    if factor.shape[0] == k and _is_moderate(factor):
        return _tally_alone(probability, starts, multiplicity, factor, first, second)
    total = 0.0
    for g in range(multiplicity.shape[0]):
        m = multiplicity[g]
        logs, product = 0.0, 1.0
        for r in range(starts[g], starts[g + 1]):
            c = k * context[r]
            norm = 0.0
            for s in range(k):
                norm += probability[s, r] * factor[c + s]
            product *= norm
            if product > _TOP or product < _BOTTOM:
                logs += math.log(product)
                product = 1.0
            scale = 1.0 / norm
            for s in range(k):
                q = m * scale * probability[s, r] * factor[c + s]
                first[c + s] += q
                for s2 in range(s + 1):
                    second[c + s, s2] += q * scale * probability[s2, r] * factor[c + s2]
        total += m * (logs + math.log(product))
    _mirror(second, factor.shape[0], k)
    return total


@vector_inner
def _moments(probability, context, start, end, factor, feature):
    """Log normalisers of some rows, and sums of the mean and variance of a feature."""
    k = probability.shape[0]
    product, means, variances = 1.0, 0.0, 0.0
    for r in range(start, end):
        c = k * context[r]
        norm, first, second = 0.0, 0.0, 0.0
        for s in range(k):
            q = probability[s, r] * factor[c + s]
            f = q * feature[c + s]
            norm += q
            first += f
            second += f * feature[c + s]
        scale = 1.0 / norm
        mean = first * scale
        product *= norm
        means += mean
        variances += second * scale - mean * mean
    return product, means, variances


@inner
def tally_feature(probability, context, starts, multiplicity, factor, feature):
    """`value_of_rows`, with the sums that its derivatives along a single direction need.

    Takes time proportional to the number of states; `tally_rows` to its square.

    Parameters
    ----------
    feature : (contexts * states,) float64
        Change of the log-potentials along the direction.

    Returns
    -------
    value, mean, variance : float
        The last two are sums over rows of those of the feature under the tilted probabilities.
    """
    step = _BLOCK if _is_moderate(factor) else 1
    total, means, variances = 0.0, 0.0, 0.0
    for g in range(multiplicity.shape[0]):
        m, logs = multiplicity[g], 0.0
        for r in range(starts[g], starts[g + 1], step):
            end = r + step if r + step < starts[g + 1] else starts[g + 1]
            product, mean, variance = _moments(probability, context, r, end, factor, feature)
            logs += math.log(product)
            means += m * mean
            variances += m * variance
        total += m * logs
    return total, means, variances


@inner
def _tilted(logs, change, r, c, out):
    """Tilted probabilities of one row into ``out``; returns the log of their normaliser."""
    k = logs.shape[0]
    top = -np.inf
    for s in range(k):
        out[s] = logs[s, r] + change[c + s]
        top = max(top, out[s])
    total = 0.0
    for s in range(k):
        out[s] = math.exp(out[s] - top)
        total += out[s]
    for s in range(k):
        out[s] /= total
    return top + math.log(total)


@inner
def tally_logs(logs, context, starts, multiplicity, change, first, second, work):
    """`tally_rows` from log-potentials, and changes of any size."""
    k = logs.shape[0]
    none = np.zeros(k)
    first[: change.shape[0]] = 0.0
    second[: change.shape[0], :k] = 0.0
    total = 0.0
    for g in range(multiplicity.shape[0]):
        m = multiplicity[g]
        for r in range(starts[g], starts[g + 1]):
            c = k * context[r]
            before = _tilted(logs, none, r, 0, work)
            total += m * (_tilted(logs, change, r, c, work) - before)
            for s in range(k):
                first[c + s] += m * work[s]
                for s2 in range(k):
                    second[c + s, s2] += m * work[s] * work[s2]
    return total


@vector_inner
def _tilt_binary(logs, probability, context, change, factor):
    """`tilt_rows` of a binary variable in a binary context, with factors."""
    f00, f01, f10, f11 = factor[0], factor[1], factor[2], factor[3]
    c00, c01, c10, c11 = change[0], change[1], change[2], change[3]
    zero, one, log_zero, log_one = probability[0], probability[1], logs[0], logs[1]
    least = 1.0
    for r in range(logs.shape[1]):
        t = context[r] != 0
        down = zero[r] * (f10 if t else f00)
        up = one[r] * (f11 if t else f01)
        scale = 1.0 / (down + up)
        zero[r] = down * scale
        one[r] = up * scale
        log_zero[r] += c10 if t else c00
        log_one[r] += c11 if t else c01
        least = min(least, zero[r], one[r])
    return least


@inner
def _tilt(logs, probability, context, change, factor, plain, work):
    """Smallest probability after `tilt_rows`."""
    k = logs.shape[0]
    least = 1.0
    for r in range(logs.shape[1]):
        c = k * context[r]
        if plain:
            norm = 0.0
            for s in range(k):
                work[s] = probability[s, r] * factor[c + s]
                norm += work[s]
            for s in range(k):
                work[s] /= norm
        else:
            _tilted(logs, change, r, c, work)
        for s in range(k):
            probability[s, r] = work[s]
            logs[s, r] += change[c + s]
            least = min(least, work[s])
    return least


@inner
def tilt_rows(logs, probability, context, change, factor, plain, work):
    """Change log-potentials of one variable; returns its smallest log probability.

    Parameters
    ----------
    plain : bool
        Whether factors may be multiplied out.
    """
    if plain and _is_binary(logs.shape[0], factor):
        least = _tilt_binary(logs, probability, context, change, factor)
    else:
        least = _tilt(logs, probability, context, change, factor, plain, work)
    return math.log(least) if least > 0.0 else -np.inf
