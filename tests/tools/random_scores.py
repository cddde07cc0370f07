"""Local scores of graphs without data, and sums over all graphs by enumeration."""

import numpy as np

from scipy.special import logsumexp

from bayesstruct.networks.kernels.dags import all_dags, topological_orders


class RandomScore:
    """A normal number for every child and parent set, with the methods of a network score."""

    def __init__(self, d, seed, scale=3.0):
        self.d = d
        self.table = np.random.default_rng(seed).normal(0.0, scale, (d, 2**d))

    def local(self, child, parents):
        return float(self.table[child, sum(1 << int(j) for j in parents)])

    def subsets(self, child, candidates, *, fixed=(), max_parents=None):
        masks = np.array([sum(1 << int(j) for j in fixed)])
        for j in candidates:
            masks = np.concatenate([masks, masks | 1 << int(j)])
        most = self.d if max_parents is None else max_parents
        return np.where(np.bitwise_count(masks) <= most, self.table[child, masks], -np.inf)


def enumerated(score, prior, order=False):
    """All graphs, their log weights under score and prior, and under the prior alone."""
    graphs = all_dags(prior.d)
    families = [
        {
            parents: (score.local(i, parents), prior.local(i, parents))
            for parents in _sets(prior.d, i)
        }
        for i in range(prior.d)
    ]
    terms = [
        [families[i][tuple(np.flatnonzero(graph[:, i]).tolist())] for i in range(prior.d)]
        for graph in graphs
    ]
    scores, weights = np.array(terms).sum(axis=1).T
    if order:
        weights = weights + np.log(topological_orders(graphs))
    return graphs, scores + weights, weights


def probabilities(log_weights):
    """Normalise log weights."""
    return np.exp(log_weights - logsumexp(log_weights))


def _sets(d, i):
    masks = [mask for mask in range(1 << d) if not mask >> i & 1]
    return [tuple(j for j in range(d) if mask >> j & 1) for mask in masks]
