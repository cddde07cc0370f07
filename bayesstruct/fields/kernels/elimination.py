r"""Exact sums over the joint states of a sparse Markov random field, variable by variable.

.. math::

    m_b(x_S) = \log \sum_{x_v} \exp \Bigl( u_v(x_v) + \sum_j t_{vj}(x_v, x_j)
        + \sum_{c} m_c(x_{S_c}) \Bigr)

Step b sums the variable v out of all tables that hold it: its own, those of its edges to variables
that are not yet summed out, and the messages of earlier steps. The result is a table over the other
members S of the clique. The sum of the messages without arguments is the log partition function.
Each step keeps the conditional distribution of v given S. In the backward pass these give draws, and, with the
distribution of S, marginals: the adjoint of the forward pass.
Forward derivatives of the two passes are the covariances. All logarithms are relative to the largest
term of each sum, so that nothing overflows.

Dechter, R. (1999). Bucket elimination: a unifying framework for reasoning. *Artificial Intelligence*
113, 41-85.

Lauritzen, S. L. and Spiegelhalter, D. J. (1988). Local computations with probabilities on graphical
structures and their application to expert systems. *Journal of the Royal Statistical Society B* 50,
157-224.
"""

from typing import NamedTuple

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = ["Plan", "covariance_product", "draw", "log_partition", "make_plan", "marginals"]


class Plan(NamedTuple):
    """Cliques and tables for the passes of an elimination, in flat arrays.

    Unary tables, pair tables and messages are consecutive parts of one vector, the *tables*. A table
    enters the clique of one step; which of its cells belongs to a cell of the clique is linear in
    the states of the members.

    Attributes
    ----------
    variable : (steps,) int64 array
        Summed out in each step.
    table_start : (steps + 1,) int64 array
        Where the conditional distribution of each step starts, a C-order array over the other members, then
        the variable.
    message_start : (steps + 1,) int64 array
        Where the message of each step is among the tables.
    member_start : (steps + 1,) int64 array
    member, size : int64 arrays
        The members of each clique, the variable last, and their numbers of states.
    factor_start : (steps + 1,) int64 array
        The tables that enter each step.
    origin : int64 array
        Where each of them starts.
    stride_start : int64 array
    stride : int64 array
        Steps in it for one state more of each member.
    """

    variable: np.ndarray
    table_start: np.ndarray
    message_start: np.ndarray
    member_start: np.ndarray
    member: np.ndarray
    size: np.ndarray
    factor_start: np.ndarray
    origin: np.ndarray
    stride_start: np.ndarray
    stride: np.ndarray


def make_plan(states, ends, order) -> Plan:
    """Lay out the passes for an order of elimination.

    Parameters
    ----------
    states : sequence of int
    ends : tuple of two int arrays
        The variables i < j of each edge, in the order of the pair tables.
    order : bayesstruct.fields.kernels.elimination_order.EliminationOrder
        Complete.
    """
    states = [int(k) for k in states]
    cliques = [(*rest, v) for v, *rest in order.cliques]
    step_of = {clique[-1]: b for b, clique in enumerate(cliques)}
    # Of each step: origin, and stride of each variable.
    factors: list[list[tuple[int, dict[int, int]]]] = [[] for _ in cliques]
    at = 0
    for v, k in enumerate(states):
        factors[step_of[v]].append((at, {v: 1}))
        at += k
    for i, j in zip(*(end.tolist() for end in ends), strict=True):
        factors[min(step_of[i], step_of[j])].append((at, {i: states[j], j: 1}))
        at += states[i] * states[j]
    message_start = [at]
    for clique in cliques:
        strides, size = {}, 1
        for u in reversed(clique[:-1]):
            strides[u] = size
            size *= states[u]
        if strides:
            factors[min(step_of[u] for u in strides)].append((message_start[-1], strides))
        message_start.append(message_start[-1] + size)
    sizes = [[states[u] for u in clique] for clique in cliques]
    entering = [
        (clique, factor) for clique, own in zip(cliques, factors, strict=True) for factor in own
    ]
    return Plan(
        _int([clique[-1] for clique in cliques]),
        _starts([int(np.prod(own)) for own in sizes]),
        _int(message_start),
        _starts([len(clique) for clique in cliques]),
        _int([u for clique in cliques for u in clique]),
        _int([k for own in sizes for k in own]),
        _starts([len(own) for own in factors]),
        _int([origin for _, (origin, _) in entering]),
        _starts([len(clique) for clique, _ in entering]),
        _int([strides.get(u, 0) for clique, (_, strides) in entering for u in clique]),
    )


def _int(values):
    return np.array(values, np.int64)


def _starts(sizes):
    return np.concatenate([[0], np.cumsum(_int(sizes))]).astype(np.int64)


@inner
def _advance(state, size, stride, others, at):
    """Move the other members to their next states; return where that is in a table."""
    for d in range(others - 1, -1, -1):
        state[d] += 1
        at += stride[d]
        if state[d] < size[d]:
            return at
        at -= stride[d] * size[d]
        state[d] = 0
    return at


@inner
def _gather(plan, b, tables, state, out):
    """Sum the tables that enter a step, for each cell of its clique."""
    first, last = plan.member_start[b], plan.member_start[b + 1]
    size = plan.size[first:last]
    others = last - first - 1
    k = size[others]
    out[:] = 0.0
    for f in range(plan.factor_start[b], plan.factor_start[b + 1]):
        stride = plan.stride[plan.stride_start[f] : plan.stride_start[f + 1]]
        step, at = stride[others], plan.origin[f]
        state[:others] = 0
        for row in range(0, len(out), k):
            for s in range(k):
                out[row + s] += tables[at + s * step]
            at = _advance(state, size, stride, others, at)


@inner
def _scatter(plan, b, cells, state, tables):
    """Add each cell of a clique to the cells of the tables that were summed for it."""
    first, last = plan.member_start[b], plan.member_start[b + 1]
    size = plan.size[first:last]
    others = last - first - 1
    k = size[others]
    for f in range(plan.factor_start[b], plan.factor_start[b + 1]):
        stride = plan.stride[plan.stride_start[f] : plan.stride_start[f + 1]]
        step, at = stride[others], plan.origin[f]
        state[:others] = 0
        for row in range(0, len(cells), k):
            for s in range(k):
                tables[at + s * step] += cells[row + s]
            at = _advance(state, size, stride, others, at)


@inner
def _normalize(cells, k, message):
    """Turn the rows of a clique into conditional distributions; their log totals are the message."""
    for row in range(len(message)):
        own = cells[row * k : (row + 1) * k]
        top = own[0]
        for s in range(1, k):
            top = max(top, own[s])
        total = 0.0
        for s in range(k):
            own[s] = np.exp(own[s] - top)
            total += own[s]
        for s in range(k):
            own[s] /= total
        message[row] = top + np.log(total)


@inner
def _widest(plan):
    """Largest number of members of a clique, and of cells."""
    members = cells = 0
    for b in range(len(plan.variable)):
        members = max(members, plan.member_start[b + 1] - plan.member_start[b])
        cells = max(cells, plan.table_start[b + 1] - plan.table_start[b])
    return members, cells


@inner
def _forward(plan, unary, pair, conditional):
    """Fill in the conditional distribution of each step; return the log partition function."""
    tables = np.empty(plan.message_start[-1])
    tables[: len(unary)] = unary
    tables[len(unary) : len(unary) + len(pair)] = pair
    state = np.empty(_widest(plan)[0], np.int64)
    log_z = 0.0
    for b in range(len(plan.variable)):
        cells = conditional[plan.table_start[b] : plan.table_start[b + 1]]
        message = tables[plan.message_start[b] : plan.message_start[b + 1]]
        _gather(plan, b, tables, state, cells)
        _normalize(cells, plan.size[plan.member_start[b + 1] - 1], message)
        if plan.member_start[b + 1] - plan.member_start[b] == 1:
            log_z += message[0]
    return log_z


@inner
def _backward(plan, conditional, marginal):
    """Fill in the marginals of all tables, messages included."""
    members, largest = _widest(plan)
    state, work = np.empty(members, np.int64), np.empty(largest)
    marginal[:] = 0.0
    for b in range(len(plan.variable) - 1, -1, -1):
        first, start = plan.table_start[b], plan.message_start[b]
        k = plan.size[plan.member_start[b + 1] - 1]
        joint = work[: plan.table_start[b + 1] - first]
        if plan.member_start[b + 1] - plan.member_start[b] == 1:
            marginal[start] = 1.0
        for row in range(plan.message_start[b + 1] - start):
            for s in range(row * k, (row + 1) * k):
                joint[s] = marginal[start + row] * conditional[first + s]
        _scatter(plan, b, joint, state, marginal)


@kernel
def log_partition(plan, unary, pair):
    """Logarithm of the sum over all states.

    Parameters
    ----------
    plan : Plan
    unary, pair : float64 arrays
        Tables of log-potentials, flat; pair tables of the edges of the plan.
    """
    return _forward(plan, unary, pair, np.empty(plan.table_start[-1]))


@kernel
def marginals(plan, unary, pair, out_unary, out_pair):
    """Probabilities of each state of each variable and of each pair of states of each edge.

    They are the gradient of `log_partition`.

    Parameters
    ----------
    plan, unary, pair
        As in `log_partition`.
    out_unary, out_pair : float64 arrays
        Filled, in the layout of the tables.

    Returns
    -------
    float
        `log_partition`.
    """
    conditional = np.empty(plan.table_start[-1])
    log_z = _forward(plan, unary, pair, conditional)
    marginal = np.empty(plan.message_start[-1])
    _backward(plan, conditional, marginal)
    out_unary[:] = marginal[: len(unary)]
    out_pair[:] = marginal[len(unary) : len(unary) + len(pair)]
    return log_z


@kernel
def covariance_product(plan, unary, pair, d_unary, d_pair, out_unary, out_pair):
    """Differentiate the marginals in a direction of the tables: their covariance times it.

    Both passes are differentiated forwards. With q the conditional distribution of a step and d the change of
    its cells, the message changes by E_q[d] and q by q (d - E_q[d]).
    """
    conditional = np.empty(plan.table_start[-1])
    _forward(plan, unary, pair, conditional)
    marginal, change = np.empty(plan.message_start[-1]), np.empty(plan.message_start[-1])
    _backward(plan, conditional, marginal)
    change[: len(unary)] = d_unary
    change[len(unary) : len(unary) + len(pair)] = d_pair
    centred = np.empty(plan.table_start[-1])
    members, largest = _widest(plan)
    state, work = np.empty(members, np.int64), np.empty(largest)
    for b in range(len(plan.variable)):
        first, start = plan.table_start[b], plan.message_start[b]
        k = plan.size[plan.member_start[b + 1] - 1]
        cells = centred[first : plan.table_start[b + 1]]
        _gather(plan, b, change, state, cells)
        for row in range(plan.message_start[b + 1] - start):
            mean = 0.0
            for s in range(row * k, (row + 1) * k):
                mean += conditional[first + s] * cells[s]
            for s in range(row * k, (row + 1) * k):
                cells[s] -= mean
            change[start + row] = mean
    change[:] = 0.0  # from here on the change of the marginals
    for b in range(len(plan.variable) - 1, -1, -1):
        first, start = plan.table_start[b], plan.message_start[b]
        k = plan.size[plan.member_start[b + 1] - 1]
        joint = work[: plan.table_start[b + 1] - first]
        for row in range(plan.message_start[b + 1] - start):
            for s in range(row * k, (row + 1) * k):
                moved = change[start + row] + marginal[start + row] * centred[first + s]
                joint[s] = conditional[first + s] * moved
        _scatter(plan, b, joint, state, change)
    out_unary[:] = change[: len(unary)]
    out_pair[:] = change[len(unary) : len(unary) + len(pair)]


@kernel
def draw(rng, plan, unary, pair, out):
    """Draw independent rows, each variable given those that were summed out after it.

    Parameters
    ----------
    rng : numpy.random.Generator
    plan, unary, pair
        As in `log_partition`.
    out : (n, p) int64 array
        Filled.
    """
    conditional = np.empty(plan.table_start[-1])
    _forward(plan, unary, pair, conditional)
    for m in range(len(out)):
        for b in range(len(plan.variable) - 1, -1, -1):
            row, last = 0, plan.member_start[b + 1] - 1
            for d in range(plan.member_start[b], last):
                row = row * plan.size[d] + out[m, plan.member[d]]
            k = plan.size[last]
            at, u, chosen = plan.table_start[b] + row * k, rng.random(), k - 1
            for s in range(k - 1):
                u -= conditional[at + s]
                if u < 0.0:
                    chosen = s
                    break
            out[m, plan.variable[b]] = chosen
