r"""Orders in which the variables of a graph can be summed out, and their cost.

Summing a variable out joins its neighbours. A variable and its neighbours at that moment are a
clique, with a table over its joint states; the size of the largest clique minus one is the *width* of the
order, and the smallest width of all orders the treewidth of the graph. Finding it is NP-hard. Greedy
orders reach it for trees (smallest fill-in also for chordal graphs) and come close elsewhere (Koller and
Friedman 2009, section 9.4.3.2); the order in which the variables are given often reaches it for grids and
for processes in time.

Koller, D. and Friedman, N. (2009). *Probabilistic graphical models*. MIT Press.
"""

import heapq
import math

from dataclasses import dataclass

import numpy as np

__all__ = ["EliminationOrder", "elimination_order"]

RULES = ("min_weight", "given", "min_fill")
_LARGEST_LOG = 1000.0  # of a size in bits, so that the size is a finite number


@dataclass(frozen=True)
class EliminationOrder:
    """An order of elimination with its cliques.

    Attributes
    ----------
    cliques : tuple of tuple of int
        For each step the variable that is summed out, and after it its neighbours at that moment,
        those that are summed out last first.
    sizes : numpy.ndarray
        (steps,), joint states of each clique, float64: there may be very many.
    complete : bool
        Whether the order was followed to its end; otherwise its last table was too large.
    """

    cliques: tuple[tuple[int, ...], ...]
    sizes: np.ndarray
    complete: bool

    @property
    def width(self) -> int:
        """Number of variables of the largest clique, minus one."""
        return max(map(len, self.cliques)) - 1

    @property
    def cells(self) -> float:
        """Total number of cells of all tables."""
        return float(self.sizes.sum())

    @property
    def largest(self) -> float:
        """Number of cells of the largest table."""
        return float(self.sizes.max())


def elimination_order(states, edges, most=np.inf) -> EliminationOrder:
    """Order of elimination with small tables: the best of two greedy orders and the given one.

    Parameters
    ----------
    states : sequence of int
        Number of states of each variable.
    edges : iterable of pairs of int
    most : float
        Total number of cells of all tables beyond which an order is abandoned: the graph is then too
        dense for elimination.

    Returns
    -------
    EliminationOrder
        Complete if one of the orders stays within `most`.

    Examples
    --------
    A cycle of four binary variables has width two:

    >>> elimination_order((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3), (0, 3)]).width
    2
    """
    edges = list(edges)
    # A graph of treewidth w on p variables has less than w p edges, and every order has a table of
    # at least 2^(w + 1) cells.
    hopeless = len(edges) / len(states) + 1.0 > math.log2(most)
    found = [_greedy(states, edges, rule, most) for rule in (RULES[:1] if hopeless else RULES)]
    return min(found, key=lambda order: (not order.complete, order.cells))


def _greedy(states, edges, rule, most):
    """Sum out repeatedly the variable with the lowest score."""
    p = len(states)
    neighbours = [set() for _ in range(p)]
    for i, j in edges:
        neighbours[i].add(j)
        neighbours[j].add(i)
    logs = np.log2(np.asarray(states, float)).tolist()

    def score(v):
        if rule == "given":
            return v, 0.0
        weight = logs[v] + sum(logs[u] for u in neighbours[v])
        return (_fill(neighbours, v), weight) if rule == "min_fill" else (weight, 0.0)

    scores = [score(v) for v in range(p)]
    queue = [(scores[v], v) for v in range(p)]
    heapq.heapify(queue)
    done, steps, sizes, total = [False] * p, [], [], 0.0
    while queue:
        known, v = heapq.heappop(queue)
        if done[v] or known != scores[v]:
            continue
        own = neighbours[v]
        size = round(2.0 ** min(logs[v] + sum(logs[u] for u in own), _LARGEST_LOG))
        total += size
        steps.append((v, tuple(own)))
        sizes.append(float(size))
        if total > most:
            break
        done[v] = True
        for u in _join(neighbours, v, rule):
            fresh = score(u)
            if fresh != scores[u]:
                scores[u] = fresh
                heapq.heappush(queue, (fresh, u))
    return EliminationOrder(_sorted_cliques(steps, p), np.array(sizes), len(steps) == p)


def _fill(neighbours, v):
    """Pairs of neighbours that are not joined."""
    own = neighbours[v]
    joined = sum(len(own & neighbours[u]) for u in own)
    return (len(own) * (len(own) - 1) - joined) // 2


def _join(neighbours, v, rule):
    """Remove a variable and join its neighbours; return the variables whose score may have changed."""
    own = neighbours[v]
    changed = set(own)
    for u in own:
        neighbours[u] |= own
        neighbours[u] -= {u, v}
    if rule == "min_fill":
        for u in own:
            changed |= neighbours[u]
    return changed


def _sorted_cliques(steps, p):
    place = [p] * p
    for at, (v, _) in enumerate(steps):
        place[v] = at
    return tuple((v, *sorted(own, key=lambda u: (place[u], u), reverse=True)) for v, own in steps)
