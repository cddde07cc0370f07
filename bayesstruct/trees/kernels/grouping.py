r"""Trees with hidden nodes from distances that are sums along paths: recursive grouping and neighbour joining.

Nodes are numbers; those of the matrix come first, hidden ones follow. With exact distances the tree is exact: nodes i and j are leaves
of one parent, or one is the only neighbour of the other, if :math:`d_{ik} - d_{jk}` is the same for all other k.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Noise", "contracted", "neighbour_joining", "path_lengths", "recursive_grouping"]

#: Level of the tests of one family, and differences of exact distances that are rounding.
LEVEL, ROUNDING = 0.01, 1e-9

Tree = list[tuple[int, int, float]]


@dataclass(frozen=True)
class Noise:
    """Errors of estimated distances.

    Attributes
    ----------
    variance : callable
        Variances from an array of distances.
    """

    variance: Callable[[np.ndarray], np.ndarray]


def recursive_grouping(d: np.ndarray, noise: Noise | None = None, short: float = 1e-8) -> Tree:
    """Build a tree from its leaves inwards, one family of neighbours after the other.

    Parameters
    ----------
    d : (m, m) ndarray
        Distances between m nodes, at least 2.
    noise : Noise, optional
        Of estimated distances; by default they are exact.
    short : float
        A hidden node is not added where an old one is nearer than this.

    Returns
    -------
    list of (int, int, float)
        Two ends and the length of each edge.
    """
    m = len(d)
    full = np.zeros((2 * m, 2 * m))
    full[:m, :m] = d
    active, lines, new = list(range(m)), [], m
    while len(active) > 2:
        own = full[np.ix_(active, active)]
        difference, precision, unlike = _compare(own, noise)
        parents, kept = {}, []
        for family in _families(own, unlike, difference, precision, noise):
            members = [active[i] for i in family]
            if len(family) == 1:
                kept.append(members[0])
                continue
            up = _to_parent(own, family, difference, precision, noise)
            nearest = int(up.argmin())
            if up[nearest] < short:
                top = members[nearest]
                lines += [(top, i, float(full[top, i])) for i in members if i != top]
            else:
                top, new = new, new + 1
                lines += [(top, i, float(length)) for i, length in zip(members, up, strict=True)]
                parents[top] = (members, up)
            kept.append(top)
        _extend(full, active, parents, noise)
        active = kept
    if len(active) == 2:
        lines.append((active[0], active[1], float(full[active[0], active[1]])))
    return lines


def _compare(d, noise) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean differences of distances of two nodes to all others, their precision, and how far they are from constant.

    Below 1 they are constant.
    """
    from scipy.stats import chi2

    n = len(d)
    mean, precision, unlike = np.zeros((n, n)), np.ones((n, n)), np.zeros((n, n))
    variance = np.ones((n, n)) if noise is None else noise.variance(d)
    used = ~np.eye(n, dtype=bool)
    for i in range(n):
        phi = d[i] - d
        weight = np.where(used & used[i], 1.0 / np.maximum(variance[i] + variance, 1e-12), 0.0)
        weight[:, i] = 0.0
        total = weight.sum(axis=1)
        safe = np.maximum(total, 1e-300)
        mean[i], precision[i] = (weight * phi).sum(axis=1) / safe, total
        error = phi - mean[i][:, None]
        if noise is None:
            unlike[i] = np.where(weight > 0, np.abs(error), 0.0).max(axis=1) / (
                ROUNDING * max(1.0, d.max())
            )
        else:
            freedom = (weight > 0).sum(axis=1) - 1
            spread = (weight * error**2).sum(axis=1)
            limit = chi2.isf(LEVEL, np.maximum(freedom, 1))
            unlike[i] = np.where(freedom > 0, spread / limit, 0.0)
    np.fill_diagonal(unlike, 0.0)
    return mean, precision, np.minimum((unlike + unlike.T) / 2, 1e6)


def _families(d, unlike, difference, precision, noise) -> list[list[int]]:
    """Return groups of leaves of one parent, or of leaves and their only neighbour; at least one has two members."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    n = len(d)
    if n == 3:
        return [[0, 1, 2]]
    label = fcluster(linkage(squareform(unlike, checks=False), "average"), 1.0, "distance")
    if noise is not None:
        label = _nearest_groups(label, d, difference, precision, noise)
    groups = [np.flatnonzero(label == k).tolist() for k in np.unique(label)]
    if len(groups) == n:
        order = unlike + 1e-6 * d / max(d.max(), 1e-300)
        np.fill_diagonal(order, np.inf)
        pair = sorted(np.unravel_index(int(order.argmin()), order.shape))
        first, second = map(int, pair)
        groups = [[first, second], *([i] for i in range(n) if i not in pair)]
    return groups


def _nearest_groups(label, d, difference, precision, noise) -> np.ndarray:
    """Move nodes of groups of three or more to the one whose parent explains their dependences best.

    The dependence exp(-d) of a node on others is that of the parent times a factor; leaves that depend weakly are often in a wrong group at first.
    """
    for _ in range(20):
        groups = [own for k in np.unique(label) if len(own := np.flatnonzero(label == k)) > 2]
        if len(groups) < 2:
            break
        misfit = np.stack(
            [
                _misfit(d, own, _to_parent(d, own, difference, precision, noise), noise)
                for own in groups
            ]
        )
        moved = label.copy()
        for own in groups:
            best = misfit[:, own].argmin(axis=0)
            moved[own] = [label[groups[g][0]] for g in best]
        if (moved == label).all():
            break
        label = moved
    return label


def _misfit(d, family, up, noise) -> np.ndarray:
    """Sum of squared standardised errors of the dependences of each node as a member of a family."""
    weight = 1.0 / np.maximum(noise.variance(d[family]), 1e-12)
    weight[np.arange(len(family)), family] = 0.0
    values = weight * (d[family] - up[:, None])
    n = len(d)
    # Row i: distances of the parent from all nodes, without what node i says of them.
    away = np.tile(values.sum(axis=0), (n, 1))
    total = np.tile(weight.sum(axis=0), (n, 1))
    away[family] -= values
    total[family] -= weight
    strength = np.exp(-np.maximum(away / np.maximum(total, 1e-12), 0.0))
    np.fill_diagonal(strength, 0.0)
    seen = np.exp(-d)
    factor = (strength * seen).sum(axis=1) / (strength**2).sum(axis=1)
    expected = np.clip(factor[:, None] * strength, 1e-6, 1 - 1e-6)
    variance = np.maximum(noise.variance(-np.log(expected)) * expected**2, 1e-12)
    error = (seen - expected) ** 2 / variance
    np.fill_diagonal(error, 0.0)
    return error.sum(axis=1)


def _to_parent(d, family, difference, precision, noise) -> np.ndarray:
    """Distances of the members of a family to their parent, averages over pairs of members."""
    near = d[np.ix_(family, family)]
    twice = near + difference[np.ix_(family, family)]
    weight = np.ones_like(near)
    if noise is not None:
        known = np.maximum(precision[np.ix_(family, family)], 1e-12)
        weight = 1.0 / (np.maximum(noise.variance(near), 1e-12) + 1.0 / known)
    np.fill_diagonal(weight, 0.0)
    return np.maximum((weight * twice).sum(axis=1) / weight.sum(axis=1) / 2.0, 0.0)


def _extend(full, active, parents, noise) -> None:
    """Write distances between new hidden nodes, and between these and others."""
    for h, (members, up) in parents.items():
        others = [j for j in active if j not in members]
        if others:
            away = full[np.ix_(members, others)]
            full[h, others] = _average(away - up[:, None], away, noise)
            full[others, h] = full[h, others]
        full[h, members] = full[members, h] = up
    for h, (members, up) in parents.items():
        for g, (far, down) in parents.items():
            if g > h:
                between = full[np.ix_(members, far)]
                value = _average(
                    (between - up[:, None] - down).reshape(-1, 1), between.reshape(-1, 1), noise
                )
                full[h, g] = full[g, h] = value[0]


def _average(values, distances, noise) -> np.ndarray:
    """Averages over rows, at least 0, weighted by the precision of the distances that they come from."""
    weight = np.ones_like(distances)
    if noise is not None:
        weight = 1.0 / np.maximum(noise.variance(distances), 1e-12)
    return np.maximum((weight * values).sum(axis=0) / weight.sum(axis=0), 0.0)


def neighbour_joining(d: np.ndarray) -> Tree:
    """Build the tree of neighbour joining, in which all nodes of the matrix are leaves.

    Parameters
    ----------
    d : (m, m) ndarray
        Distances between m nodes, at least 2.

    Returns
    -------
    list of (int, int, float)
        As from `recursive_grouping`; hidden nodes have three neighbours, and lengths may be 0.

    References
    ----------
    Saitou, N. and Nei, M. (1987). The neighbor-joining method. *Molecular Biology and Evolution* 4, 406-425.

    Studier, J. A. and Keppler, K. J. (1988). A note on the neighbor-joining algorithm. *Molecular Biology and Evolution* 5, 729-731.
    """
    m = len(d)
    full = np.zeros((2 * m, 2 * m))
    full[:m, :m] = d
    active, lines, new = list(range(m)), [], m
    while len(active) > 3:
        own, n = full[np.ix_(active, active)], len(active)
        total = own.sum(axis=1)
        criterion = (n - 2) * own - total[:, None] - total
        np.fill_diagonal(criterion, np.inf)
        i, j = np.unravel_index(int(criterion.argmin()), criterion.shape)
        left = own[i, j] / 2.0 + (total[i] - total[j]) / (2.0 * (n - 2))
        away = (own[i] + own[j] - own[i, j]) / 2.0
        full[new, active] = full[active, new] = away
        lines.append((new, active[i], max(float(left), 0.0)))
        lines.append((new, active[j], max(float(own[i, j] - left), 0.0)))
        active = [k for k in active if k not in (active[i], active[j])] + [new]
        new += 1
    if len(active) == 3:
        own = full[np.ix_(active, active)]
        for a, b, c in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
            length = (own[a, b] + own[a, c] - own[b, c]) / 2.0
            lines.append((new, active[a], max(float(length), 0.0)))
    else:
        lines.append((active[0], active[1], float(full[active[0], active[1]])))
    return lines


def contracted(tree: Tree, m: int, short: float) -> Tree:
    """Merge hidden nodes with neighbours that are nearer than `short`, and number the others anew.

    Parameters
    ----------
    tree : list of (int, int, float)
    m : int
        Nodes from this number on are hidden.
    short : float

    Returns
    -------
    list of (int, int, float)
        Hidden nodes are m, m + 1, ...
    """
    lines = list(tree)
    while near := [(i, j, own) for i, j, own in lines if max(i, j) >= m and own < short]:
        a, b, length = min(near, key=lambda line: line[2])
        keep, gone = min(a, b), max(a, b)
        lines.remove((a, b, length))
        lines = [(keep if i == gone else i, keep if j == gone else j, own) for i, j, own in lines]
    hidden = sorted({i for a, b, _ in lines for i in (a, b) if i >= m})
    place = {node: m + k for k, node in enumerate(hidden)}
    return [(place.get(i, i), place.get(j, j), own) for i, j, own in lines]


def path_lengths(tree: Tree, nodes: int) -> np.ndarray:
    """Return the sum of lengths along the path between each two nodes.

    Parameters
    ----------
    tree : list of (int, int, float)
    nodes : int
        Number of nodes.

    Returns
    -------
    (nodes, nodes) ndarray
    """
    near: list[list[tuple[int, float]]] = [[] for _ in range(nodes)]
    for i, j, own in tree:
        near[i].append((j, own))
        near[j].append((i, own))
    out = np.zeros((nodes, nodes))
    seen, stack = [0], [(0, -1)]
    while stack:
        node, parent = stack.pop()
        for other, own in near[node]:
            if other != parent:
                out[other, seen] = out[seen, other] = out[node, seen] + own
                seen.append(other)
                stack.append((other, node))
    return out
