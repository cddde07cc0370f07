"""Posteriors of the precision matrices of two or three small groups by importance sampling, without any code of the package.

Each group is drawn alone, under a prior of independent elements (`tools.integration`); the weights put the joint prior of the
groups in its place, written with an explicit matrix of orthonormal contrasts.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from tools.integration import WeightedDraws, likelihood_draws


def contrasts(groups):
    """Orthonormal contrasts (G, G - 1): the Helmert ones."""
    Q = np.zeros((groups, groups - 1))
    for c in range(groups - 1):
        Q[: c + 1, c] = 1.0
        Q[c + 1, c] = -(c + 1.0)
        Q[:, c] /= np.sqrt((c + 1.0) * (c + 2.0))
    return Q


@dataclass
class GroupPrior:
    """Probabilities and scales of the prior of the elements of a pair in all groups."""

    groups: int
    edge: float = 0.5
    difference: float = 0.4
    spike: float = 0.25
    slab: float = 1.0
    small: float = 0.3
    large: float = 0.8
    rate: float = 0.5

    @property
    def scales(self):
        """Standard deviations as the kernels take them."""
        return self.spike, self.slab, self.small, self.large

    @property
    def relations(self):
        """Prior probabilities of absent, equal, different."""
        return np.array(
            [1 - self.edge, self.edge * (1 - self.difference), self.edge * self.difference]
        )

    def log_densities(self, u):
        """Log of prior probability times density of (N, G) elements, for each relation: (N, 3)."""
        Q, one = contrasts(self.groups), np.ones((self.groups, 1))
        out = []
        for probability, shared, contrast in zip(
            self.relations,
            (self.spike, self.slab, self.slab),
            (self.small, self.small, self.large),
            strict=True,
        ):
            covariance = shared**2 * one @ one.T + contrast**2 * Q @ Q.T
            density = multivariate_normal(np.zeros(self.groups), covariance).logpdf(u)
            out.append(np.log(probability) + density)
        return np.stack(out, axis=-1)

    def elements(self, rng, relation):
        """Elements of pairs with these relations, (..., G)."""
        shared = rng.normal(size=relation.shape) * np.where(relation == 0, self.spike, self.slab)
        sd = np.where(relation == 2, self.large, self.small)
        contrast = rng.normal(size=(*relation.shape, self.groups - 1)) * sd[..., None]
        return shared[..., None] + contrast @ contrasts(self.groups).T


class IndicatorPrior(GroupPrior):
    """The prior with an edge indicator in each group: all patterns are written out."""

    @property
    def patterns(self):
        """Patterns of edges over the groups, (2**G, G), and the relation of each."""
        patterns = np.array([*product((0, 1), repeat=self.groups)])
        count = patterns.sum(axis=1)
        return patterns, np.where(count == 0, 0, np.where(count == self.groups, 1, 2))

    @property
    def scales(self):
        """Standard deviations as the kernels take them."""
        return self.spike, self.slab, 0.0, 0.0

    def log_patterns(self, u):
        """Log of prior probability times density of (N, G) elements, for each pattern: (N, 2**G)."""
        patterns, relation = self.patterns
        share = self.relations / np.bincount(relation)
        sd = np.where(patterns == 1, self.slab, self.spike)
        return norm.logpdf(u[:, None], 0.0, sd).sum(axis=-1) + np.log(share[relation])

    def log_densities(self, u):
        """The same for each relation: (N, 3)."""
        logs, relation = self.log_patterns(u), self.patterns[1]
        return np.stack([logsumexp(logs[:, relation == r], axis=1) for r in range(3)], axis=-1)

    def elements(self, rng, relation):
        """Elements of pairs with these relations, (..., G)."""
        patterns, of = self.patterns
        mixed = rng.choice(np.flatnonzero(of == 2), relation.shape)
        chosen = np.where(relation == 0, 0, np.where(relation == 1, len(patterns) - 1, mixed))
        sd = np.where(patterns[chosen] == 1, self.slab, self.spike)
        return rng.normal(size=sd.shape) * sd


def groups_posterior(tables, prior: GroupPrior, *, draws, seed):
    """Weighted draws of all matrices, (N, G, p, p), and probabilities of all relations of all pairs.

    Returns
    -------
    states : (3**E, E) array of 0, 1, 2, upper triangle row by row
    probabilities, errors : (3**E,) arrays
    weighted : WeightedDraws
    """
    rng, p = np.random.default_rng(seed), tables[0].shape[1]
    own = 0.5 * prior.slab, np.hypot(prior.slab, prior.large)  # wider than the joint prior
    pairs = np.triu_indices(p, 1)
    matrices, log_weight = [], np.zeros(draws)
    for rows in tables:
        mixture = np.full((p, p), 0.5), *own
        alone = likelihood_draws(rows, prior.rate, draws, rng, mixture=mixture)
        matrices.append(alone.precision)  # independent draws, so that groups pair up at random
        log_weight += alone.log_weight
        u = matrices[-1][:, pairs[0], pairs[1]]
        log_weight -= np.logaddexp(*(norm.logpdf(u, 0, s) for s in own)).sum(axis=1)
    K = np.stack(matrices, axis=1)
    u = np.moveaxis(K[..., pairs[0], pairs[1]], 1, 2)  # (N, E, G)
    logs = np.stack([prior.log_densities(u[:, e]) for e in range(len(pairs[0]))], axis=1)
    weighted = WeightedDraws(K, log_weight + logsumexp(logs, axis=-1).sum(axis=1))
    chances = np.exp(logs - logsumexp(logs, axis=-1, keepdims=True))
    states = np.array([*product(range(3), repeat=len(pairs[0]))])
    each = np.stack([chances[:, e, states[:, e]] for e in range(len(pairs[0]))]).prod(axis=0)
    return states, *weighted.mean(each), weighted


def groups_prior(rng, size, p, prior: GroupPrior):
    """Matrices (size, G, p, p) and relations (size, E) from the prior, by plain rejection."""
    pairs = np.triu_indices(p, 1)
    matrices, relations = [], []
    while sum(map(len, matrices)) < size:
        relation = rng.choice(3, (20 * size, len(pairs[0])), p=prior.relations)
        u = prior.elements(rng, relation)
        K = np.zeros((len(u), prior.groups, p, p))
        K[:, :, pairs[0], pairs[1]] = K[:, :, pairs[1], pairs[0]] = np.moveaxis(u, 2, 1)
        K[..., np.arange(p), np.arange(p)] = rng.exponential(1 / prior.rate, (*K.shape[:2], p))
        inside = (np.linalg.eigvalsh(K)[..., 0] > 0).all(axis=1)
        matrices.append(K[inside])
        relations.append(relation[inside])
    return np.concatenate(matrices)[:size], np.concatenate(relations)[:size]
