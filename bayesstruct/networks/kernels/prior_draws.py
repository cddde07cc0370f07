r"""Directed acyclic graphs: draws from their priors, and the constants of these.

Graphs are adjacency matrices with parents as rows, int8.

*Uniform draws* (Kuipers and Moffa 2015). A graph falls into layers: its roots, then the roots of the
rest, and so on. The number of graphs on n labelled variables of which k are roots is

.. math::

    a_{n,k} = \binom nk \sum_{s=1}^{n-k} (2^k - 1)^s \, 2^{k (n-k-s)} a_{n-k,s}, \qquad a_{n,n} = 1,

because each of the s roots of the rest has a parent among the k, and the other variables may have any
of them. So the sizes of the layers are drawn one after the other, then their members, then the arcs.

*Weights that depend on the number of parents only* are served by the same idea in logarithms. *Other
weights* are summed over exactly for a few variables (:mod:`bayesstruct.networks.kernels.layer_sums`); beyond, a
Markov chain of stated length starts from a draw that satisfies the constraints
(:mod:`bayesstruct.networks.kernels.prior_chains`).

References
----------
Kuipers, J. and Moffa, G. (2015). Uniform random generation of large acyclic digraphs. *Statistics and
Computing* 25, 227-242.
"""

from functools import cache, lru_cache
from itertools import accumulate, pairwise
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from scipy.special import gammaln, logsumexp

from bayesstruct.networks.kernels.layer_sums import partition_draws, partition_tables
from bayesstruct.networks.kernels.prior_chains import (
    draw_modular_dag,
    draw_order,
    draw_ordered_dag,
    draw_place,
)

if TYPE_CHECKING:
    from bayesstruct.networks.kernels.dag_priors import ParentPrior

__all__ = [
    "EXACT_VARIABLES",
    "draw_dag",
    "draw_uniform_dags",
    "log_prior_constant",
    "mean_number_of_arcs",
]

# Beyond this many variables the distribution of the sizes of the layers no longer changes: the numbers of roots
# of 40 and of 60 variables have the same probabilities in doubles (tests/networks/kernels/test_dag_sampling.py).
_CONVERGED = 40
#: Weights of the central differences over 1, ..., 4 steps whose sum is the derivative, but for the eighth power of a step.
_DIFFERENCES = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
#: Up to this many variables draws from any prior are exact.
EXACT_VARIABLES = 8


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


def draw_uniform_dags(rng: np.random.Generator, d: int, size: int = 1) -> np.ndarray:
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
    drawn as if 40 were left, which does not change its distribution within the precision of doubles.
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


def draw_dag(
    rng: np.random.Generator, prior: "ParentPrior", *, order: bool = False, steps: int | None = None
) -> np.ndarray:
    """Draw a graph from the prior that the weights of the parent sets make.

    Parameters
    ----------
    rng : numpy.random.Generator
    prior : ParentPrior
    order : bool
        Whether the prior is the order-modular one (:mod:`bayesstruct.networks.kernels.dag_priors`).
    steps : int, optional
        Length of the Markov chain where one is needed; 20 d**2 by default.

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


def log_prior_constant(prior: "ParentPrior", *, order: bool = False) -> float:
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
        :mod:`bayesstruct.networks.kernels.layer_sums` sums over the graphs.
    """
    if not prior.exchangeable:
        raise ValueError("the weights depend on who the parents are, not on their number only")
    if order:
        return _log_constant_of_orders(_log_weights_by_size(prior))
    return float(_layer_table(prior)[0][0, 0])


def mean_number_of_arcs(prior: "ParentPrior", *, order: bool = False) -> float:
    """Mean number of arcs, where weights depend on numbers of parents only.

    It is the derivative of the log of the sum over all graphs in the log weight of an arc, by central
    differences of eighth order: to about ten digits.

    Parameters
    ----------
    prior : ParentPrior
        Exchangeable.
    order : bool
        Whether graphs count once for each of their topological orders.
    """
    size, step = np.arange(prior.d), 0.02

    def log_constant(tilt):
        weights = _log_weights_by_size(prior) + tilt * size
        return _log_constant_of_orders(weights) if order else _layers(weights)[0][0, 0]

    rises = [log_constant(k * step) - log_constant(-k * step) for k in range(1, 5)]
    return float(np.dot(_DIFFERENCES, rises) / step)


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
    """Log sums over the layers that follow m variables of which k are in the last layer, and log factors."""
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
        s = 1 + draw_place(rng, _layer_terms(table, factor[m, k], d, m))
        for child in place[m : m + s] if m else ():
            size = 1 + draw_place(rng, _log_meeting(weights, m, k))
            out[_meeting_set(rng, place[: m - k], place[m - k : m], size), child] = 1
        m, k = m + s, s
    return out


def _meeting_set(rng, others, layer, size):
    """Draw a set of a given size among two lists that has at least one of the second."""
    inside = np.arange(1, min(size, len(layer)) + 1)
    inside = inside[size - inside <= len(others)]
    weights = _log_binomial(len(layer), inside) + _log_binomial(len(others), size - inside)
    count = inside[draw_place(rng, weights)]
    first = rng.choice(layer, count, replace=False)
    return np.concatenate([first, rng.choice(others, size - count, replace=False)])


@lru_cache(maxsize=4)
def _small_tables(prior):
    """Return the tables for draws from any weights of a few variables."""
    others = [np.delete(np.arange(prior.d), i) for i in range(prior.d)]
    weights = np.array([prior.subsets(i, others[i]) for i in range(prior.d)])
    return partition_tables(weights)


def _small_dag(rng, prior):
    out = np.zeros((1, prior.d, prior.d), np.int8)
    partition_draws(rng, *_small_tables(prior), out)
    return out[0]
