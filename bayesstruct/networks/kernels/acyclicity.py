r"""Which arcs can be added to a directed acyclic graph, or reversed, kept up to date as it changes.

The *ancestor matrix* has a 1 at (i, j) if there is a path from i to j, 0 on the diagonal. Adding i -> j
closes a cycle if it has a 1 at (j, i). The *reversal witness matrix* has a 1 at an arc i -> j if another
path leads from i to j: then the reversal of the arc closes a cycle. Both tests take one look-up. An
addition takes O(d^2) operations, less if the path was there before; a deletion rebuilds the descendants of
the child, unless another parent of the child descends from the parent.

Arrays are uint8, 1 at (parent, child) or (ancestor, descendant); functions change them in place.

References
----------
Giudici, P. and Castelo, R. (2003). Improving Markov chain Monte Carlo model search for data mining. *Machine
Learning* 50, 127-158. -- Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD
thesis, University of British Columbia, appendix A, algorithms 13 to 19 (with the update of witnesses
asking for both ends of a new path, not one of them).
"""

import numpy as np

from bayesstruct.core.jit import inner, kernel

__all__ = [
    "add",
    "add_witnesses",
    "build",
    "build_witnesses",
    "can_add",
    "can_reverse",
    "delete",
    "reverse",
]


@inner
def _inherit(adjacency, ancestors, child):
    """Make the ancestors of a child from those of its parents."""
    d = len(adjacency)
    for a in range(d):
        ancestors[a, child] = 0
    for p in range(d):
        if adjacency[p, child]:
            ancestors[p, child] = 1
            for a in range(d):
                ancestors[a, child] |= ancestors[a, p]


@kernel
def build(adjacency, ancestors):
    """Write the ancestor matrix of a graph.

    Parameters
    ----------
    adjacency, ancestors : (d, d) int8 and uint8 array
        The second is written.

    Returns
    -------
    bool
        Whether the graph is acyclic; if not, the matrix is of no use.
    """
    d = len(adjacency)
    waiting, ready, count = np.zeros(d, np.int64), np.empty(d, np.int64), 0
    for j in range(d):
        for i in range(d):
            waiting[j] += adjacency[i, j] != 0
        if waiting[j] == 0:
            ready[count] = j
            count += 1
    done = 0
    while done < count:
        i = ready[done]
        done += 1
        _inherit(adjacency, ancestors, i)
        for j in range(d):
            if adjacency[i, j]:
                waiting[j] -= 1
                if waiting[j] == 0:
                    ready[count] = j
                    count += 1
    return count == d


@kernel
def can_add(ancestors, i, j):
    """Whether the arc i -> j, which is not there, can be added (algorithm 13)."""
    return i != j and ancestors[j, i] == 0


@kernel
def can_reverse(ancestors, i, j):
    """Whether no second path leads from i to j, so that the arc i -> j can be reversed (algorithm 17)."""
    for a in range(len(ancestors)):
        if ancestors[i, a] and ancestors[a, j]:
            return False
    return True


@kernel
def add(adjacency, ancestors, i, j):
    """Add an arc that closes no cycle (algorithm 15)."""
    d = len(adjacency)
    adjacency[i, j] = 1
    if ancestors[i, j]:
        return
    for a in range(d):
        if a == i or ancestors[a, i]:
            ancestors[a, j] = 1
            for b in range(d):
                ancestors[a, b] |= ancestors[j, b]


@kernel
def delete(adjacency, ancestors, i, j):
    """Delete an arc (algorithm 16)."""
    d = len(adjacency)
    adjacency[i, j] = 0
    for p in range(d):
        if adjacency[p, j] and ancestors[i, p]:
            return
    # The old numbers of ancestors order the variables: a parent has fewer than its child.
    count, affected, size = np.zeros(d, np.int64), np.empty(d, np.int64), 0
    for b in range(d):
        if b == j or ancestors[j, b]:
            for a in range(d):
                count[b] += ancestors[a, b]
            k = size
            while k > 0 and count[affected[k - 1]] > count[b]:
                affected[k] = affected[k - 1]
                k -= 1
            affected[k] = b
            size += 1
    for k in range(size):
        _inherit(adjacency, ancestors, affected[k])


@kernel
def reverse(adjacency, ancestors, i, j):
    """Reverse an arc without witness."""
    delete(adjacency, ancestors, i, j)
    add(adjacency, ancestors, j, i)


@kernel
def build_witnesses(adjacency, ancestors, witnesses):
    """Write the reversal witness matrix (algorithm 18); needed after a deletion.

    Parameters
    ----------
    adjacency, ancestors, witnesses : (d, d) int8, uint8 and uint8 array
        The last is written.
    """
    d = len(adjacency)
    for i in range(d):
        for j in range(d):
            witnesses[i, j] = 1 if adjacency[i, j] and not can_reverse(ancestors, i, j) else 0


@kernel
def add_witnesses(adjacency, ancestors, witnesses, i, j):
    """Update the witnesses after :func:`add` of an arc (algorithm 19).

    A path that is new goes through i -> j: it starts at i or an ancestor of i, and ends at j or a
    descendant of j.
    """
    d = len(adjacency)
    for p in range(d):
        if p != i and not ancestors[p, i]:
            continue
        for c in range(d):
            if adjacency[p, c] and not witnesses[p, c] and (c == j or ancestors[j, c]):
                witnesses[p, c] = 0 if can_reverse(ancestors, p, c) else 1
