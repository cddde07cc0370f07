"""Draws from the G-Wishart distribution: precision matrices with the zeros of a graph.

The density, on positive definite K with ``K_ij = 0`` for every pair that is no edge of G, is
``p(K | G, b, D) ∝ |K|^((b - 2) / 2) exp(-tr(K D) / 2)`` with b > 2 and D positive definite.
"""

import numpy as np

__all__ = ["g_wishart"]


def g_wishart(
    rng: np.random.Generator,
    degrees_of_freedom: float,
    scale: np.ndarray,
    adjacency: np.ndarray,
    *,
    sweeps: int = 20,
) -> np.ndarray:
    """Draw one precision matrix from the G-Wishart distribution.

    Parameters
    ----------
    rng : numpy.random.Generator
    degrees_of_freedom : float
        b.
    scale : ndarray, shape (p, p)
        D.
    adjacency : bool ndarray, shape (p, p)
        Symmetric, with a false diagonal.
    sweeps : int
        Gibbs sweeps over the part of the graph that has no direct sampler.

    Returns
    -------
    precision : ndarray, shape (p, p)
        Exactly symmetric, exactly zero off the graph.

    Notes
    -----
    Let the neighbours N of node v form a clique. Then the regression of v on N, with precision w
    and coefficients a, is independent of the rest, which is G-Wishart on the graph without v:
    ``w ~ chi2(b + |N|) / (D_vv - m' D_NN m)``, ``a | w ~ Normal(m, (w D_NN)^-1)`` with
    ``m = D_NN^-1 D_Nv``, by the change of variables from (K_vv, K_Nv). Such nodes are taken off
    one by one. On a decomposable (chordal) graph none is left, and the draw is exact.

    The rest starts at a diagonal matrix and goes through `sweeps` of the block Gibbs
    sampler [1]_ over cliques C that cover the edges: ``(K^-1)_CC`` given the rest is the inverse of a
    Wishart(b + |C| - 1, D_CC^-1). That leaves the distribution invariant. On a
    grid of 5 x 5, b = 3 and D = I, the mean of tr(K D) / 2 was off by z = -2.5 after 5 sweeps (1,500
    draws) and z = 1.2 after 20 (600 draws), the default.

    The "direct sampler" of [2]_ (BDgraph's ``rgwish``) is not used: it is not exact [3]_,
    except on complete graphs. Elsewhere each clique has the right distribution, and ``tr(K D)`` the right
    mean if the graph is decomposable, but the cliques depend on each other: for two nodes without
    an edge, b = 3 and D = I, K_11 and K_22 have correlation .17 instead of 0 (100,000 draws).

    NumPy without Numba: at p = 200 the time goes into BLAS, and compiling took 45 s.

    References
    ----------
    .. [1] M. Piccioni (2000). Independence structure of natural conjugate densities to exponential
       families and the Gibbs' sampler. Scandinavian Journal of Statistics 27, 111-127.
    .. [2] A. Lenkoski (2013). A direct sampler for G-Wishart variates. Stat 2, 119-128.
    .. [3] H. Tjelmeland and H. B. Kvaløy (2025). An MCMC hypothesis test to check a claimed
       sampler: applied to a claimed sampler for the G-Wishart distribution. arXiv:2505.24400.

    Examples
    --------
    >>> chain = np.eye(3, k=1) + np.eye(3, k=-1) > 0
    >>> precision = g_wishart(np.random.default_rng(1), 3.0, np.eye(3), chain)
    >>> float(precision[0, 2])
    0.0
    """
    precision = np.zeros(scale.shape)
    families, core = _eliminate(adjacency)
    for family in families:
        block = np.ix_(family, family)
        precision[block] += _regression(rng, degrees_of_freedom, scale[block])
    if core.size:
        block = np.ix_(core, core)
        cliques = _clique_cover(adjacency[block])
        precision[block] += _gibbs(rng, degrees_of_freedom, scale[block], cliques, sweeps)
    return precision


def _eliminate(adjacency: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Take off nodes whose neighbours form a clique.

    Returns the family of each, its neighbours at that time and then itself, and the nodes left.
    """
    alive = np.ones(len(adjacency), dtype=bool)
    families, waiting = [], set(range(len(adjacency)))
    while waiting:
        v = min(waiting)
        waiting.remove(v)
        neighbours = np.flatnonzero(adjacency[v] & alive)
        size = neighbours.size
        if adjacency[np.ix_(neighbours, neighbours)].sum() == size * (size - 1):
            families.append(np.append(neighbours, v))
            alive[v] = False
            waiting.update(neighbours.tolist())
    return families, np.flatnonzero(alive)


def _regression(rng, degrees_of_freedom: float, scale: np.ndarray) -> np.ndarray:
    """Draw the regression of the last node on the others; return ``w u u'``, u = (-a, 1)."""
    size = len(scale) - 1
    # With D = C C', last row (c, d): the residual is d^2, and a = C_NN'^-1 (c + z / sqrt(w)).
    root = np.linalg.cholesky(scale)
    w = rng.chisquare(degrees_of_freedom + size) / root[size, size] ** 2
    u = np.ones(size + 1)
    noise = rng.standard_normal(size) / np.sqrt(w)
    u[:size] = -np.linalg.solve(root[:size, :size].T, root[size, :size] + noise)
    return w * np.outer(u, u)


def _clique_cover(adjacency: np.ndarray) -> list[np.ndarray]:
    """Return cliques that hold every edge; each is grown from an edge not yet held."""
    left = np.triu(adjacency, 1)
    cliques = []
    for i, j in np.argwhere(left).tolist():
        if left[i, j]:
            clique, common = [i, j], adjacency[i] & adjacency[j]
            while common.any():
                clique.append(int(common.argmax()))
                common = common & adjacency[clique[-1]]
            nodes = np.sort(clique)
            left[np.ix_(nodes, nodes)] = False
            cliques.append(nodes)
    return cliques


def _gibbs(rng, degrees_of_freedom: float, scale: np.ndarray, cliques, sweeps: int) -> np.ndarray:
    """Return the precision after sweeps over cliques that hold every node."""
    precision = np.diag(degrees_of_freedom / np.diag(scale))
    parts = [
        (nodes, np.ix_(nodes, nodes), np.linalg.cholesky(scale[np.ix_(nodes, nodes)]))
        for nodes in cliques
    ]
    for _ in range(sweeps):
        # Updated by rank |C| below; made anew each sweep, so that rounding does not add up.
        covariance = np.linalg.inv(precision)
        for nodes, block, root in parts:
            old = covariance[block]
            old_inverse = _symmetric_inverse(old)
            new_inverse = _wishart(rng, degrees_of_freedom, root)
            precision[block] += new_inverse - old_inverse
            regression = covariance[:, nodes] @ old_inverse
            covariance += regression @ (_symmetric_inverse(new_inverse) - old) @ regression.T
    return precision


def _symmetric_inverse(matrix: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(matrix)
    return (inverse + inverse.T) / 2


def _wishart(rng, degrees_of_freedom: float, root: np.ndarray) -> np.ndarray:
    """Draw from the Wishart(b + k - 1, D^-1) distribution, D = C C', by Bartlett's decomposition."""
    size = len(root)
    bartlett = np.tril(rng.standard_normal((size, size)), -1)
    bartlett[np.diag_indices(size)] = np.sqrt(
        rng.chisquare(degrees_of_freedom + size - 1 - np.arange(size))
    )
    factor = np.linalg.solve(root.T, bartlett)
    draw = factor @ factor.T
    return (draw + draw.T) / 2
