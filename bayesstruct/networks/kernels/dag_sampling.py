r"""Directed acyclic graphs: counted, enumerated, and drawn from their priors.

Graphs are adjacency matrices with parents as rows, int8.

*Uniform draws* (Kuipers and Moffa 2015). A graph falls into layers: its roots, then the roots of what
is left, and so on. The number of graphs on n labelled variables of which k are roots is

.. math::

    a_{n,k} = \binom nk \sum_{s=1}^{n-k} (2^k - 1)^s \, 2^{k (n-k-s)} a_{n-k,s}, \qquad a_{n,n} = 1,

because each of the s roots of the rest has a parent among the k, and the other variables may have any
of them. So the sizes of the layers are drawn one after the other, then who is in them, then the arcs.

*Weights that depend on the number of parents only* are served by the same idea in logarithms. *Other
weights* are summed over exactly for a few variables (:mod:`bayesstruct.networks.kernels.dag_dynamic`); beyond, a
Markov chain of stated length starts from a draw that satisfies the constraints.

References
----------
Kuipers, J. and Moffa, G. (2015). Uniform random generation of large acyclic digraphs. *Statistics and
Computing* 25, 227-242.

Robinson, R. W. (1973). Counting labeled acyclic digraphs. In *New Directions in the Theory of Graphs*,
239-273.
"""

from functools import cache, lru_cache
from itertools import accumulate, pairwise
from math import comb

import numpy as np

from scipy.special import gammaln, logsumexp

from bayesstruct.core.jit import kernel

__all__ = [
    "all_dags",
    "draw_dag",
    "draw_modular_dag",
    "draw_order",
    "draw_ordered_dag",
    "draw_uniform_dags",
    "is_acyclic",
    "log_prior_constant",
    "mean_number_of_arcs",
    "number_of_dags",
    "topological_order",
    "topological_orders",
]

# Beyond this many variables the law of the sizes of the layers no longer changes: the numbers of roots
# of 40 and of 60 variables have the same probabilities in doubles (tests/kernels/test_dag_sampling.py).
_CONVERGED = 40
#: Up to this many variables draws from any prior are exact.
EXACT_VARIABLES = 8


@cache
def number_of_dags(d: int) -> int:
    """Count the directed acyclic graphs on d labelled variables: 1, 3, 25, 543, 29281, ...

    Raises
    ------
    ValueError
        If `d` is negative.
    """
    if d < 0:
        raise ValueError(f"the number of variables must not be negative, it is {d}")
    counts = [1]
    for n in range(1, d + 1):
        terms = (
            (-1) ** (k + 1) * comb(n, k) * 2 ** (k * (n - k)) * counts[n - k]
            for k in range(1, n + 1)
        )
        counts.append(sum(terms))
    return counts[d]


def topological_order(adjacency) -> np.ndarray:
    """Order in which each variable comes after its parents; int64, (d,).

    Of those that may come next the first one comes next.

    Raises
    ------
    ValueError
        If the graph has a cycle.
    """
    graph = np.asarray(adjacency) != 0
    order = _peel(graph)
    if len(order) < len(graph):
        cyclic = np.setdiff1d(np.arange(len(graph)), order).tolist()
        raise ValueError(f"the graph has a cycle; it is among the variables {cyclic}")
    return np.array(order, np.int64)


def is_acyclic(adjacency) -> bool:
    """Whether a directed graph has no cycle (nor a loop)."""
    graph = np.asarray(adjacency) != 0
    return len(_peel(graph)) == len(graph)


def _peel(graph):
    left = graph.sum(axis=0)
    ready = np.flatnonzero(left == 0).tolist()
    order = []
    while ready:
        j = ready.pop(0)
        order.append(j)
        left[graph[j]] -= 1
        fresh = np.flatnonzero(graph[j] & (left == 0))
        ready = sorted([*ready, *fresh.tolist()])
    return order


@lru_cache(maxsize=8)
def all_dags(d: int) -> np.ndarray:
    """Every directed acyclic graph on d <= 5 variables; int8, (graphs, d, d), read-only.

    Raises
    ------
    ValueError
        If there are more than five variables, or none.
    """
    if not 1 <= d <= 5:
        raise ValueError(f"graphs are enumerated for 1 to 5 variables, not for {d}")
    codes = np.arange(2 ** (d * (d - 1)), dtype=np.int32)
    parents = np.zeros((d, len(codes)), np.int8)
    for i in range(d):
        bits = (codes >> i * (d - 1)) & ((1 << d - 1) - 1)
        low = (1 << i) - 1
        parents[i] = (bits & low) | ((bits & ~low) << 1)
    alive = np.full(len(codes), (1 << d) - 1, np.int8)
    for _ in range(d):
        for i in range(d):
            alive = np.where(parents[i] & alive == 0, alive & np.int8(~(1 << i)), alive)
    kept = parents[:, alive == 0]
    graphs = (kept.T[:, None, :] >> np.arange(d, dtype=np.int8)[:, None]) & 1
    graphs.flags.writeable = False
    return graphs


def topological_orders(graphs) -> np.ndarray:
    """Count the topological orders of each of some graphs on a few variables.

    Parameters
    ----------
    graphs : (graphs, d, d) array_like
        Takes memory for ``graphs * 2**d`` integers.

    Returns
    -------
    numpy.ndarray
        (graphs,) int64; 0 for a graph with a cycle.
    """
    graphs = np.asarray(graphs)
    d = graphs.shape[1]
    parents = (graphs.astype(np.int64) << np.arange(d)[:, None]).sum(axis=1)
    counts = np.zeros((1 << d, len(graphs)), np.int64)
    counts[0] = 1
    for mask in range(1, 1 << d):
        for i in range(d):
            if mask >> i & 1:
                rest = mask ^ (1 << i)
                counts[mask] += np.where(parents[:, i] & ~rest == 0, counts[rest], 0)
    return counts[-1]


@cache
def _root_counts(n):
    """a_{n,k} for k = 1, ..., n, exactly."""
    counts = []
    for k in range(1, n):
        rest = _root_counts(n - k)
        total = sum(
            (2**k - 1) ** s * 2 ** (k * (n - k - s)) * rest[s - 1] for s in range(1, n - k + 1)
        )
        counts.append(comb(n, k) * total)
    return (*counts, 1)


@cache
def _layer_weights(before, left):
    """Cumulative weights of the size of the next layer, after one of `before` variables or none."""
    counts = _root_counts(left)
    if before:
        counts = [
            (2**before - 1) ** s * 2 ** (before * (left - s)) * a
            for s, a in enumerate(counts, start=1)
        ]
    return tuple(accumulate(counts))


def _below(rng, bound):
    """Draw an integer of any size, uniformly among 0, ..., bound - 1."""
    bits = bound.bit_length()
    size = (bits + 7) // 8
    while True:
        draw = int.from_bytes(rng.bytes(size), "little") >> (8 * size - bits)
        if draw < bound:
            return draw


def _uniform_layers(rng, d):
    sizes, before, left = [], 0, d
    while left:
        ladder = _layer_weights(before, min(left, _CONVERGED))
        draw = _below(rng, ladder[-1])
        before = 1 + next(k for k, top in enumerate(ladder) if draw < top)
        sizes.append(before)
        left -= before
    return sizes


def draw_uniform_dags(rng, d: int, size: int = 1) -> np.ndarray:
    """Draw independently and uniformly from all directed acyclic graphs on d labelled variables.

    Parameters
    ----------
    rng : numpy.random.Generator
    d : int
    size : int

    Returns
    -------
    numpy.ndarray
        (size, d, d) int8.

    Notes
    -----
    Exact, by integers of any size, up to 40 variables. A layer that starts with more variables left is
    drawn as if 40 were left, which does not change its law within the precision of doubles.
    """
    out = np.zeros((size, d, d), np.int8)
    for graph in out:
        sizes = _uniform_layers(rng, d)
        layer = np.repeat(np.arange(len(sizes)), sizes)
        bits = rng.integers(0, 2, (d, d), dtype=np.int8)
        bits *= layer[:, None] < layer
        start = 0
        for before, here in pairwise(sizes):
            stop = start + before
            _redraw_empty(rng, bits[start:stop, stop : stop + here])
            start = stop
        place = rng.permutation(d)
        graph[np.ix_(place, place)] = bits
    return out


def _redraw_empty(rng, block):
    """Draw the columns of a block of bits again until each has a one."""
    while (empty := np.flatnonzero(~block.any(axis=0))).size:
        block[:, empty] = rng.integers(0, 2, (len(block), empty.size), dtype=np.int8)


def draw_dag(rng, prior, *, order=False, steps=None) -> np.ndarray:
    """Draw a graph from the prior that the weights of the parent sets make.

    Parameters
    ----------
    rng : numpy.random.Generator
    prior : ParentPrior
    order : bool
        Whether the prior is the order-modular one (:mod:`bayesstruct.networks.kernels.dag_priors`).
    steps : int, optional
        Length of the Markov chain where there is need of one; 20 d**2 by default.

    Returns
    -------
    numpy.ndarray
        (d, d) int8.

    Notes
    -----
    The draw is exact where weights depend on the number of parents only (no constraints on arcs, one
    probability for all), and for up to 8 variables. Otherwise it is the end of a Markov chain on graphs
    (`draw_modular_dag`) or on orders (`draw_order`).
    """
    if order:
        return draw_ordered_dag(rng, prior, draw_order(rng, prior, steps=steps))
    plain = prior.kind == "uniform" and prior.max_parents is None
    if prior.exchangeable:
        return draw_uniform_dags(rng, prior.d)[0] if plain else _exchangeable_dag(rng, prior)
    if prior.d <= EXACT_VARIABLES:
        return _small_dag(rng, prior)
    return draw_modular_dag(rng, prior, steps=steps)


def log_prior_constant(prior, *, order=False) -> float:
    r"""Log of the sum of the weights over all graphs, where they depend on numbers of parents only.

    Parameters
    ----------
    prior : ParentPrior
    order : bool
        Whether graphs count once for each of their topological orders.

    Raises
    ------
    ValueError
        If the weights depend on who the parents are; for a few variables
        :mod:`bayesstruct.networks.kernels.dag_dynamic` sums over the graphs.
    """
    if not prior.exchangeable:
        raise ValueError("the weights depend on who the parents are, not on their number only")
    if order:
        return _log_constant_of_orders(_log_weights_by_size(prior))
    return float(_layer_table(prior)[0][0, 0])


def mean_number_of_arcs(prior, *, order=False) -> float:
    """Mean number of arcs, where weights depend on numbers of parents only.

    It is the derivative of the log of the sum over all graphs in the log weight of an arc, by central
    differences: to about six digits.

    Parameters
    ----------
    prior : ParentPrior
        Exchangeable.
    order : bool
        Whether graphs count once for each of their topological orders.
    """
    size, step = np.arange(prior.d), 1e-4

    def log_constant(tilt):
        weights = _log_weights_by_size(prior) + tilt * size
        return _log_constant_of_orders(weights) if order else _layers(weights)[0][0, 0]

    return float((log_constant(step) - log_constant(-step)) / (2.0 * step))


def _log_constant_of_orders(weights):
    d = len(weights)
    return float(gammaln(d + 1) + _log_sums(weights)[:d].sum())


def _log_binomial(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _log_weights_by_size(prior):
    """Log weight of a set of each size 0, ..., d - 1."""
    absent, present = prior.log_arc_weights
    absent, present = (terms[-1, 0] if prior.d > 1 else 0.0 for terms in (absent, present))
    size = np.arange(prior.d)
    return prior.log_size_weights + size * present + (prior.d - 1 - size) * absent


def _log_sums(weights):
    """Log sum of the weights of the sets within m variables, for m = 0, ..., d."""
    d = len(weights)
    out = np.empty(d + 1)
    for m in range(d + 1):
        size = np.arange(min(m + 1, d))
        out[m] = logsumexp(_log_binomial(m, size) + weights[size])
    return out


def _log_meeting(weights, m, k):
    """Log weights, by size, of the sets within m variables that meet k of them."""
    size = np.arange(1, min(m, len(weights) - 1) + 1)
    inside = _log_binomial(np.maximum(m - k, size), size) - _log_binomial(m, size)
    missed = np.where(size <= m - k, inside, -np.inf)
    return _log_binomial(m, size) + np.log(-np.expm1(missed)) + weights[size]


@lru_cache(maxsize=8)
def _layer_table(prior):
    return _layers(_log_weights_by_size(prior))


def _layers(weights):
    """Log sums over what follows m variables of which k are in the last layer, and log factors."""
    d = len(weights)
    table, factor = np.full((2, d + 1, d + 1), -np.inf)
    table[d, 1:] = 0.0
    factor[0, 0] = weights[0]
    for m in range(d - 1, -1, -1):
        k = np.arange(min(m, 1), m + 1)
        if m:
            factor[m, k] = logsumexp(_log_meeting(weights, m, k[:, None]), axis=1)
        terms = _layer_terms(table, factor[m, k][:, None], d, m)
        table[m, k] = logsumexp(terms, axis=1)
    return table, factor


def _layer_terms(table, factor, d, m):
    s = np.arange(1, d - m + 1)
    return _log_binomial(d - m, s) + s * factor + table[m + s, s]


def _exchangeable_dag(rng, prior):
    d = prior.d
    weights = _log_weights_by_size(prior)
    table, factor = _layer_table(prior)
    place = rng.permutation(d)
    out = np.zeros((d, d), np.int8)
    m = k = 0
    while m < d:
        s = 1 + _choice(rng, _layer_terms(table, factor[m, k], d, m))
        for child in place[m : m + s] if m else ():
            size = 1 + _choice(rng, _log_meeting(weights, m, k))
            out[_meeting_set(rng, place[: m - k], place[m - k : m], size), child] = 1
        m, k = m + s, s
    return out


def _choice(rng, log_weights):
    ladder = np.cumsum(np.exp(log_weights - log_weights.max()))
    return min(
        int(np.searchsorted(ladder, rng.random() * ladder[-1], side="right")), len(ladder) - 1
    )


def _meeting_set(rng, others, layer, size):
    """Draw a set of a given size among two lists that has at least one of the second."""
    inside = np.arange(1, min(size, len(layer)) + 1)
    inside = inside[size - inside <= len(others)]
    weights = _log_binomial(len(layer), inside) + _log_binomial(len(others), size - inside)
    count = inside[_choice(rng, weights)]
    first = rng.choice(layer, count, replace=False)
    return np.concatenate([first, rng.choice(others, size - count, replace=False)])


@lru_cache(maxsize=4)
def _small_tables(prior):
    """Give the tables for draws from any weights of a few variables."""
    from bayesstruct.networks.kernels import dag_dynamic

    others = [np.delete(np.arange(prior.d), i) for i in range(prior.d)]
    weights = np.array([prior.subsets(i, others[i]) for i in range(prior.d)])
    return dag_dynamic.partition_tables(weights)


def _small_dag(rng, prior):
    from bayesstruct.networks.kernels import dag_dynamic

    out = np.zeros((1, prior.d, prior.d), np.int8)
    dag_dynamic.partition_draws(rng, *_small_tables(prior), out)
    return out[0]


def draw_order(rng, prior, *, steps=None) -> np.ndarray:
    """Draw an order of the variables from the order-modular prior.

    An order has the weight of all graphs that agree with it. If weights depend on the number of
    parents only, all orders are alike. Otherwise the order is the end of a Markov chain that swaps two
    variables at random places, from a random order that agrees with the required arcs.

    Parameters
    ----------
    rng : numpy.random.Generator
    prior : ParentPrior
    steps : int, optional
        Swaps that are tried; 20 d**2 by default.

    Returns
    -------
    numpy.ndarray
        (d,) int64, parents first.
    """
    d = prior.d
    if prior.exchangeable:
        return rng.permutation(d)
    place = rng.permutation(d)
    order = place[topological_order(prior.required[np.ix_(place, place)])]
    odds = _log_odds(prior)
    _swap_chain(rng, order, odds, prior.required, prior.log_size_weights, _steps(steps, d))
    return order


def _steps(steps, d):
    return 20 * d * d if steps is None else int(steps)


@lru_cache(maxsize=8)
def _log_odds(prior):
    """Log weight of a present less that of an absent arc, 0 where it is required."""
    absent, present = prior.log_arc_weights
    return np.where(prior.required, 0.0, present - np.where(prior.required, 0.0, absent))


def draw_ordered_dag(rng, prior, order) -> np.ndarray:
    """Draw the parents of each variable among those before it, by the weights of the parent sets.

    Parameters
    ----------
    rng : numpy.random.Generator
    prior : ParentPrior
    order : (d,) array of int
        Parents first.

    Returns
    -------
    numpy.ndarray
        (d, d) int8.

    Raises
    ------
    ValueError
        If a required parent comes after its child.
    """
    out = np.zeros((prior.d, prior.d), np.int8)
    odds = _log_odds(prior)
    for place, child in enumerate(order):
        before = order[:place]
        needed = np.flatnonzero(prior.required[:, child])
        if prior.required[before, child].sum() < len(needed):
            raise ValueError(f"a required parent of variable {child} comes after it")
        free = before[(odds[before, child] > -np.inf) & ~prior.required[before, child]]
        ladder = _sizes(odds[free, child])
        sizes = np.arange(len(free) + 1)
        with np.errstate(divide="ignore"):
            weights = np.log(ladder[-1]) + prior.log_size_weights[len(needed) + sizes]
        left = _choice(rng, weights)
        out[needed, child] = 1
        for j in range(len(free) - 1, -1, -1):
            chance = 1.0 / (1.0 + np.exp(-odds[free[j], child]))
            if left and rng.random() * ladder[j + 1, left] < chance * ladder[j, left - 1]:
                out[free[j], child] = 1
                left -= 1
    return out


@kernel
def _sizes(odds):
    """Probabilities of numbers of successes in the first trials, (trials + 1, trials + 1)."""
    out = np.zeros((len(odds) + 1, len(odds) + 1))
    out[0, 0] = 1.0
    for j in range(len(odds)):
        chance = 1.0 / (1.0 + np.exp(-odds[j]))
        out[j + 1, 0] = out[j, 0] * (1.0 - chance)
        for s in range(1, j + 2):
            out[j + 1, s] = out[j, s] * (1.0 - chance) + out[j, s - 1] * chance
    return out


@kernel
def _log_order_factor(order, place, odds, required, log_sizes):
    """Log sum of the weights of the parent sets of the variable at a place, up to its constant."""
    d = len(order)
    child = order[place]
    needed = 0
    for j in range(d):
        needed += required[j, child]
    free = np.empty(place)
    found = count = 0
    total = 0.0
    for b in range(place):
        j = order[b]
        if required[j, child]:
            found += 1
        elif odds[j, child] > -np.inf:
            free[count] = odds[j, child]
            total += max(odds[j, child], 0.0) + np.log1p(np.exp(-abs(odds[j, child])))
            count += 1
    if found < needed:
        return -np.inf
    chances = _sizes(free[:count])[count]
    kept = 0.0
    for s in range(count + 1):
        kept += chances[s] * np.exp(log_sizes[needed + s])
    return total + np.log(kept) if kept > 0.0 else -np.inf


@kernel
def _pair(rng, d):
    """Two different variables, each ordered pair alike."""
    a, b = int(rng.random() * d), int(rng.random() * (d - 1))
    return a, b + (b >= a)


@kernel
def _swap_chain(rng, order, odds, required, log_sizes, steps):
    """Metropolis steps that swap the variables at two places, in place."""
    d = len(order)
    factors = np.empty(d)
    for place in range(d):
        factors[place] = _log_order_factor(order, place, odds, required, log_sizes)
    fresh = factors.copy()
    for _ in range(steps if d > 1 else 0):
        a, b = _pair(rng, d)
        a, b = min(a, b), max(a, b)
        order[a], order[b] = order[b], order[a]
        change = 0.0
        for place in range(a, b + 1):
            fresh[place] = _log_order_factor(order, place, odds, required, log_sizes)
            change += fresh[place] - factors[place]
        if np.log(rng.random()) < change:
            for place in range(a, b + 1):
                factors[place] = fresh[place]
        else:
            order[a], order[b] = order[b], order[a]


def draw_modular_dag(rng, prior, *, steps=None) -> np.ndarray:
    """Draw a graph from a modular prior by a Markov chain on graphs.

    It adds, deletes and reverses single arcs (Madigan and York 1995), from a draw that satisfies the
    constraints: a random order that agrees with the required arcs, then the parents given the order.

    Parameters
    ----------
    rng : numpy.random.Generator
    prior : ParentPrior
    steps : int, optional
        Changes that are tried; 20 d**2 by default.

    Returns
    -------
    numpy.ndarray
        (d, d) int8.

    References
    ----------
    Madigan, D. and York, J. (1995). Bayesian graphical models for discrete data. *International
    Statistical Review* 63, 215-232.
    """
    d = prior.d
    place = rng.permutation(d)
    order = place[topological_order(prior.required[np.ix_(place, place)])]
    graph = draw_ordered_dag(rng, prior, order)
    odds = _log_odds(prior)
    _arc_chain(rng, graph, odds, prior.required, prior.log_size_weights, _steps(steps, d))
    return graph


@kernel
def _leads(graph, source, target, stack, seen):
    """Whether there is a path from source to target, the arc between them left out."""
    d = len(graph)
    for b in range(d):
        seen[b] = False
    seen[source] = True
    stack[0], count = source, 1
    while count:
        count -= 1
        a = stack[count]
        for b in range(d):
            if graph[a, b] and not seen[b] and not (a == source and b == target):
                if b == target:
                    return True
                seen[b] = True
                stack[count] = b
                count += 1
    return False


@kernel
def _arc_chain(rng, graph, odds, required, log_sizes, steps):
    """Metropolis steps on single arcs, in place; the proposal is symmetric.

    A pair (a, b) is drawn. Its arc is deleted or reversed, each with probability 1/2, and one is added
    with probability 1/2 where the two are not joined.
    """
    d = len(graph)
    sizes = np.zeros(d, np.int64)
    for j in range(d):
        for i in range(d):
            sizes[i] += graph[j, i]
    stack, seen = np.empty(d, np.int64), np.empty(d, np.bool_)
    for _ in range(steps if d > 1 else 0):
        a, b = _pair(rng, d)
        present, first = graph[a, b] == 1, rng.random() < 0.5
        if graph[b, a] or required[a, b] or not (present or first):
            continue
        change = odds[a, b] * (-1.0 if present else 1.0)
        change += log_sizes[sizes[b] + (-1 if present else 1)] - log_sizes[sizes[b]]
        turned = present and not first
        if turned:
            change += odds[b, a] + log_sizes[sizes[a] + 1] - log_sizes[sizes[a]]
        if not np.log(rng.random()) < change:
            continue
        source, target = (b, a) if not present else (a, b)
        if (turned or not present) and _leads(graph, source, target, stack, seen):
            continue
        graph[a, b] = not present
        sizes[b] += -1 if present else 1
        if turned:
            graph[b, a] = 1
            sizes[a] += 1
