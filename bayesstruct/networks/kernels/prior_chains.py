"""Draws of directed acyclic graphs from any prior, by Markov chains of stated length on orders or graphs.

A chain starts from a draw that satisfies the constraints. Graphs are adjacency matrices with parents as rows, int8.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.jit import inner, kernel
from bayesstruct.networks.kernels.dags import topological_order

if TYPE_CHECKING:
    from bayesstruct.networks.kernels.dag_priors import ParentPrior

__all__ = ["draw_modular_dag", "draw_order", "draw_ordered_dag", "draw_place"]


def draw_order(
    rng: np.random.Generator, prior: "ParentPrior", *, steps: int | None = None
) -> np.ndarray:
    """Draw an order of the variables from the order-modular prior.

    An order has the weight of all graphs that agree with it. If weights depend on the number of
    parents only, all orders have the same weight. Otherwise the order is the end of a Markov chain that swaps two
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
    odds = log_odds(prior)
    _swap_chain(rng, order, odds, prior.required, prior.log_size_weights, _steps(steps, d))
    return order


def _steps(steps, d):
    return 20 * d * d if steps is None else int(steps)


@lru_cache(maxsize=8)
def log_odds(prior):
    """Log weight of a present less that of an absent arc, 0 where it is required."""
    absent, present = prior.log_arc_weights
    return np.where(prior.required, 0.0, present - np.where(prior.required, 0.0, absent))


def draw_ordered_dag(
    rng: np.random.Generator, prior: "ParentPrior", order: np.ndarray
) -> np.ndarray:
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
    odds = log_odds(prior)
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
        left = draw_place(rng, weights)
        out[needed, child] = 1
        for j in range(len(free) - 1, -1, -1):
            chance = 1.0 / (1.0 + np.exp(-odds[free[j], child]))
            if left and rng.random() * ladder[j + 1, left] < chance * ladder[j, left - 1]:
                out[free[j], child] = 1
                left -= 1
    return out


def draw_place(rng: np.random.Generator, log_weights: np.ndarray) -> int:
    """Draw a position by log weights that are not all minus infinity."""
    ladder = np.cumsum(np.exp(log_weights - log_weights.max()))
    return min(
        int(np.searchsorted(ladder, rng.random() * ladder[-1], side="right")), len(ladder) - 1
    )


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


@inner
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


@inner
def _pair(rng, d):
    """Two different variables; all ordered pairs have the same probability."""
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


def draw_modular_dag(
    rng: np.random.Generator, prior: "ParentPrior", *, steps: int | None = None
) -> np.ndarray:
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
    odds = log_odds(prior)
    _arc_chain(rng, graph, odds, prior.required, prior.log_size_weights, _steps(steps, d))
    return graph


@inner
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
