"""Elimination of the nodes of an undirected graph around one pair, for draws from the G-Wishart distribution.

Eliminating a node joins all its neighbours that are left. Let K = Psi' Psi with Psi upper triangular in the order of
elimination; row k of Psi is then zero but for the neighbours of node k when it is eliminated. Elements that are no edges, the
fill-in, are determined by the rows before: ``psi_ku = -sum_{r < k} psi_rk psi_ru / psi_kk``. A row concerns only its
ancestors in the tree in which the parent of a node is the first of those neighbours to be eliminated after it.
"""

from bayesstruct.core.jit import inner, kernel

__all__ = ["closed_separator", "plan_elimination"]

#: Rows of the table of whole numbers that a plan writes: those of the first block are indexed by row of Psi, the others by node.
FIRST, LATER, PLACE, PARENT, SIZE, ORDER, DEGREE, STATE = range(8)
_RELEVANT, _SIMPLE, _DONE = 1, 2, -2


@inner
def closed_separator(adjacency, i, j, queue):
    """Size of the common neighbourhood of two nodes if it is complete and separates them, otherwise -1.

    The edge between the two is not looked at. ``queue`` is (3, p) int64 of work space.
    """
    p = adjacency.shape[0]
    common, state = queue[0], queue[1]
    size = 0
    for u in range(p):
        state[u] = 0
        if adjacency[i, u] and adjacency[j, u]:
            for k in range(size):
                if not adjacency[common[k], u]:
                    return -1
            common[size] = u
            size += 1
            state[u] = 1
    waiting = queue[2]
    waiting[0] = i
    state[i] = 1
    end = 1
    while end:
        end -= 1
        v = waiting[end]
        for u in range(p):
            if adjacency[v, u] and not state[u]:
                if u == j:
                    if v != i:
                        return -1
                    continue
                state[u] = 1
                waiting[end] = u
                end += 1
    return size


@inner
def _component(adjacency, i, whole, order):
    """Mark the nodes that are connected with i in ``whole[STATE]`` by 0, others by -1; write them to ``order``."""
    p = adjacency.shape[0]
    state = whole[STATE]
    for u in range(p):
        state[u] = -1
    state[i] = 0
    order[0] = i
    count = 1
    at = 0
    while at < count:
        v = order[at]
        at += 1
        for u in range(p):
            if adjacency[v, u] and state[u] < 0:
                state[u] = 0
                order[count] = u
                count += 1
    return count


@inner
def _start(adjacency, i, filled, whole):
    """Copy the component of i and the degrees of its nodes; return their number."""
    p = adjacency.shape[0]
    count = _component(adjacency, i, whole, whole[ORDER])
    for u in range(p):
        if whole[STATE, u] == 0:
            total = 0
            for w in range(p):
                filled[u, w] = adjacency[u, w]
                total += adjacency[u, w]
            whole[DEGREE, u] = total
    return count


@inner
def _next(i, j, left, whole):
    """Node of least degree; i and j are the last."""
    if left <= 2:
        return i if left == 2 else j
    v, least = -1, whole.shape[1] + 1
    for u in range(whole.shape[1]):
        free = whole[STATE, u] == 0 and u not in (i, j)
        if free and whole[DEGREE, u] < least:
            v, least = u, whole[DEGREE, u]
    return v


@inner
def _join(adjacency, i, j, filled, whole, near, size):
    """Join all neighbours of a node; return whether edges did so already."""
    degree, simple = whole[DEGREE], True
    for a in range(size):
        u = near[a]
        degree[u] -= 1
        for c in range(a):
            w = near[c]
            if not adjacency[u, w] or (u in (i, j) and w in (i, j)):
                simple = False
            if not filled[u, w]:
                filled[u, w] = 1
                filled[w, u] = 1
                degree[u] += 1
                degree[w] += 1
    return simple


@inner
def _eliminate(adjacency, i, j, filled, whole, near):
    """Eliminate the nodes of a component by least degree, i and j last; return their number.

    Write the order, the parent of each node, and to ``whole[SIZE]`` whether its neighbours were complete by edges alone.
    """
    p = adjacency.shape[0]
    order, state, when = whole[ORDER], whole[STATE], whole[PLACE]
    count = _start(adjacency, i, filled, whole)
    for place in range(count):
        v = _next(i, j, count - place, whole)
        order[place] = v
        when[v] = place
        state[v] = _DONE
        size = 0
        for u in range(p):
            if filled[v, u] and state[u] == 0:
                near[size] = u
                size += 1
        whole[SIZE, v] = _join(adjacency, i, j, filled, whole, near, size)
    for place in range(count):
        v = order[place]
        first = count
        for u in range(p):
            if filled[v, u] and state[u] == _DONE and place < when[u] < first:
                first = when[u]
        whole[PARENT, v] = order[first] if first < count else -1
    return count


@inner
def _choose_rows(i, j, count, whole):
    """Mark the nodes whose rows matter, from the last one down; return their number without i and j."""
    order, parent, state, size = whole[ORDER], whole[PARENT], whole[STATE], whole[SIZE]
    rows = 0
    for place in range(count - 1, -1, -1):
        v = order[place]
        if v in (i, j):
            state[v] = _RELEVANT
        elif not size[v] and state[parent[v]] == _RELEVANT:
            state[v] = _RELEVANT
            rows += 1
        else:
            state[v] = _SIMPLE
    return rows


@inner
def _place_rows(j, count, rows, whole):
    """Give numbers to the rows so that those of a subtree are consecutive and end with its root; count them in ``whole[SIZE]``."""
    order, parent, state, size = whole[ORDER], whole[PARENT], whole[STATE], whole[SIZE]
    for place in range(count):
        size[order[place]] = 0
    for place in range(count - 1):
        v = order[place]
        if state[v] == _RELEVANT:
            size[v] += 1
            size[parent[v]] += size[v]
    new, end = whole[PLACE], whole[DEGREE]
    new[j], end[j] = rows + 1, rows
    for place in range(count - 2, -1, -1):
        v = order[place]
        if state[v] == _RELEVANT:
            new[v] = end[parent[v]]
            end[parent[v]] -= size[v]
            end[v] = new[v] - 1


@kernel
def plan_elimination(adjacency, i, j, filled, codes, whole):
    """Rows of Psi on which ``sum_r psi_ri psi_rj`` depends, in an order in which each follows its whole subtree.

    Parameters
    ----------
    adjacency : (p, p) int8
        Graph in which a path leads from i to j; whether it has the edge between them makes no difference.
    i, j : int
    filled : (p, p) int8
        Work space.
    codes : (p, p) int8, written
        For rows k and u > k of Psi: 0 where it is zero, 1 for an edge, 2 where it is determined. The last two rows are those of
        i and j; only their columns are written.
    whole : (8, p) int64, written
        ``whole[FIRST, k]`` is the first row of the subtree of row k, ``whole[LATER, k]`` the number of edges of row k.

    Returns
    -------
    int
        Number of rows m before those of i and j.

    Notes
    -----
    Where the later neighbours of a node are joined by edges, its row determines no element of later rows, and neither do those
    of its descendants: they are left out. That splits the graph at complete separators.
    """
    p = adjacency.shape[0]
    count = _eliminate(adjacency, i, j, filled, whole, whole[FIRST])
    rows = _choose_rows(i, j, count, whole)
    _place_rows(j, count, rows, whole)
    new, state = whole[PLACE], whole[STATE]
    for place in range(count - 2):
        v = whole[ORDER, place]
        if state[v] != _RELEVANT:
            continue
        k = new[v]
        for u in range(rows + 2):
            codes[k, u] = 0
        edges = 0
        for u in range(p):
            if filled[v, u] and state[u] == _RELEVANT and new[u] > k:
                codes[k, new[u]] = 1 if adjacency[v, u] else 2
                edges += adjacency[v, u]
        whole[LATER, k] = edges
        whole[FIRST, k] = k - whole[SIZE, v] + 1
    return rows
