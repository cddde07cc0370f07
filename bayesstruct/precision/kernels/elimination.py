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
_RELEVANT, _SIMPLE = 1, 2


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
def _eliminate(adjacency, i, j, filled, whole, near):
    """Eliminate the nodes of a component by least degree, i and j last; return their number.

    Write the order, the parent of each node, and whether its neighbours were complete by edges alone.
    """
    p = adjacency.shape[0]
    order, degree, state, parent = whole[ORDER], whole[DEGREE], whole[STATE], whole[PARENT]
    count = _component(adjacency, i, whole, order)
    for u in range(p):
        if state[u] == 0:
            total = 0
            for w in range(p):
                filled[u, w] = adjacency[u, w]
                total += adjacency[u, w]
            degree[u] = total
    for place in range(count):
        v, least = -1, p + 1
        for u in range(p):
            if state[u] == 0 and degree[u] < least and ((u != i and u != j) or place >= count - 2):
                v, least = u, degree[u]
        if place == count - 2:
            v = i
        elif place == count - 1:
            v = j
        order[place] = v
        state[v] = -2
        size = 0
        for u in range(p):
            if filled[v, u] and state[u] == 0:
                near[size] = u
                size += 1
        simple = True
        for a in range(size):
            u = near[a]
            degree[u] -= 1
            for c in range(a):
                w = near[c]
                if not adjacency[u, w] or (u == i and w == j) or (u == j and w == i):
                    simple = False
                if not filled[u, w]:
                    filled[u, w] = 1
                    filled[w, u] = 1
                    degree[u] += 1
                    degree[w] += 1
            whole[PLACE, u] = -1
        # Which of them comes first is known once all are eliminated.
        whole[PLACE, v] = place
        parent[v] = -1
        whole[SIZE, v] = 1 if simple else 0
    for place in range(count):
        v = order[place]
        first = count
        for u in range(p):
            if filled[v, u] and state[u] == -2 and place < whole[PLACE, u] < first:
                first = whole[PLACE, u]
        parent[v] = order[first] if first < count else -1
    return count


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
    order, parent, state, size = whole[ORDER], whole[PARENT], whole[STATE], whole[SIZE]
    # From the last node down: which rows matter.
    rows = 0
    for place in range(count - 1, -1, -1):
        v = order[place]
        simple = size[v] == 1
        if v == i or v == j:
            state[v] = _RELEVANT
        elif not simple and state[parent[v]] == _RELEVANT:
            state[v] = _RELEVANT
            rows += 1
        else:
            state[v] = _SIMPLE
    for place in range(count):
        size[order[place]] = 0
    for place in range(count - 1):
        v = order[place]
        if state[v] == _RELEVANT:
            size[v] += 1
            size[parent[v]] += size[v]
    # Rows of a subtree are consecutive and end with its root.
    new, end = whole[PLACE], whole[DEGREE]
    new[j], end[j] = rows + 1, rows
    for place in range(count - 2, -1, -1):
        v = order[place]
        if state[v] == _RELEVANT:
            new[v] = end[parent[v]]
            end[parent[v]] -= size[v]
            end[v] = new[v] - 1
    for place in range(count):
        v = order[place]
        if state[v] != _RELEVANT or v == i or v == j:
            continue
        k = new[v]
        for u in range(rows + 2):
            codes[k, u] = 0
        edges = 0
        for u in range(p):
            if filled[v, u] and state[u] == _RELEVANT and new[u] > k:
                edge = adjacency[v, u]
                codes[k, new[u]] = 1 if edge else 2
                edges += edge
        whole[LATER, k] = edges
        whole[FIRST, k] = k - size[v] + 1
    return rows
