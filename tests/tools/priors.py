"""Independent draws from the element-wise priors by plain rejection, in NumPy."""

import numpy as np


def spike_slab_prior(rng, size, p, *, probability=0.5, beta=None, spike, slab, diagonal_rate):
    """Precision matrices, indicators (upper triangle row by row) and edge probabilities.

    Independent elements, kept when they form a positive definite matrix.
    """
    pairs = np.triu_indices(p, 1)
    nominal = np.broadcast_to(probability, (p, p))[pairs]

    def propose(m):
        share = rng.beta(*beta, size=m) if beta is not None else np.full(m, np.nan)
        chance = nominal if beta is None else share[:, None]
        edge = rng.random((m, len(nominal))) < chance
        return edge, share, rng.normal(size=edge.shape) * np.where(edge, slab, spike)

    return _rejection(rng, size, p, propose, diagonal_rate)


def laplace_prior(rng, size, p, *, rate=1.0, diagonal_rate=None):
    """Precision matrices from the graphical-lasso prior."""
    diagonal_rate = rate / 2 if diagonal_rate is None else diagonal_rate
    pairs = np.triu_indices(p, 1)
    scale = 1.0 / np.broadcast_to(rate, (p, p))[pairs]

    def propose(m):
        return np.zeros(m), np.zeros(m), rng.laplace(size=(m, len(scale))) * scale

    return _rejection(rng, size, p, propose, diagonal_rate)[0]


def _rejection(rng, size, p, propose, diagonal_rate):
    i, j = np.triu_indices(p, 1)
    kept, found = [], 0
    while found < size:
        edge, share, values = propose(100_000)
        matrices = np.zeros((len(values), p, p))
        matrices[:, i, j] = matrices[:, j, i] = values
        matrices[:, range(p), range(p)] = rng.exponential(1 / diagonal_rate, size=(len(values), p))
        inside = np.linalg.eigvalsh(matrices)[:, 0] > 0
        kept.append((matrices[inside], edge[inside], share[inside]))
        found += inside.sum()
    return tuple(np.concatenate(parts)[:size] for parts in zip(*kept, strict=True))


def horseshoe_prior(rng, size, p, *, scale=None, width=1.0, diagonal_rate=0.5):
    """Precision matrices and global scales from the graphical horseshoe prior, conditioned together."""
    pairs = p * (p - 1) // 2

    def propose(m):
        scales = np.abs(rng.standard_cauchy(m)) * width if scale is None else np.full(m, scale)
        local = np.abs(rng.standard_cauchy((m, pairs)))
        return np.zeros(m), scales, rng.normal(size=(m, pairs)) * local * scales[:, None]

    matrices, _, scales = _rejection(rng, size, p, propose, diagonal_rate)
    return matrices, scales


def penalised_prior(rng, size, p, penalty, *, rate=1.0, diagonal_rate=None):
    """Precision matrices from the graphical-lasso prior times ``exp(-penalty(K))``, of (draws, p, p) matrices, by rejection."""
    kept, found = [], 0
    while found < size:
        matrices = laplace_prior(rng, 20_000, p, rate=rate, diagonal_rate=diagonal_rate)
        accepted = matrices[np.log(rng.random(len(matrices))) < -penalty(matrices)]
        kept.append(accepted)
        found += len(accepted)
    return np.concatenate(kept)[:size]


def g_wishart_prior(rng, adjacency):
    """Draw a G-Wishart(3, I) matrix by rejection of whole Cholesky factors, rows in the order of the nodes."""
    p = len(adjacency)
    later = np.triu(adjacency, 1).sum(axis=1)
    while True:
        factor = np.diag(np.sqrt(rng.chisquare(3.0 + later)))
        squares = 0.0
        for i, j in zip(*np.triu_indices(p, 1), strict=True):
            if adjacency[i, j]:
                factor[i, j] = rng.standard_normal()
            else:
                factor[i, j] = -(factor[:i, i] @ factor[:i, j]) / factor[i, i]
                squares += factor[i, j] ** 2
        if rng.random() < np.exp(-0.5 * squares):
            return factor.T @ factor
