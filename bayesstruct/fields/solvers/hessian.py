"""Second derivatives of the log-likelihoods of pairwise Markov random fields, in chosen parameters."""

import itertools
import math

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.fields.solvers.likelihoods import ExactLikelihood

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayesstruct.fields.solvers.likelihoods import PseudoLikelihood

__all__ = ["ExactHessian", "PseudoHessian", "hessian_for"]

_CHUNK = 2**15  # joint states that are processed at a time
_KEPT = 2**22  # largest size of a matrix of sufficient statistics that is kept


def hessian_for(
    likelihood: "ExactLikelihood | PseudoLikelihood",
) -> "Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]":
    """Return the function of biases, weights and positions that gives the Hessian.

    Parameters
    ----------
    likelihood : ExactLikelihood or PseudoLikelihood
    """
    kind = ExactHessian if isinstance(likelihood, ExactLikelihood) else PseudoHessian
    return kind(likelihood)


class _Hessian:
    """Hessian of the negative log-likelihood of a table.

    Parameters
    ----------
    likelihood : ExactLikelihood or PseudoLikelihood
    """

    def __init__(self, likelihood):
        self.likelihood, self.potentials = likelihood, likelihood.potentials

    def __call__(self, bias, weight, at) -> np.ndarray:
        """Hessian in some of the parameters.

        Parameters
        ----------
        bias, weight : numpy.ndarray
        at : (k,) array of int
            Positions among biases followed by weights, in increasing order.

        Returns
        -------
        numpy.ndarray
            (k, k).
        """
        potentials, at = self.potentials, np.asarray(at)
        weights = at[np.searchsorted(at, potentials.bias_size) :] - potentials.bias_size
        edges = np.unique(potentials.edge_of_weight[weights])
        every = np.flatnonzero(np.isin(potentials.edge_of_weight, edges))
        wide = np.concatenate([np.arange(potentials.bias_size), potentials.bias_size + every])
        out = self._over_edges(bias, weight, edges)
        if len(wide) == len(at):
            return out
        own = np.searchsorted(wide, at)
        return out[np.ix_(own, own)]

    def _over_edges(self, bias, weight, edges):
        """Hessian in all biases and in the weights of some edges."""
        raise NotImplementedError

    @cached_property
    def bias_effects(self) -> list[np.ndarray]:
        """Derivative of the unary table of each variable in its biases, (states, biases)."""
        potentials = self.potentials
        index, coefficient = potentials.unary_map
        out = []
        for i, k in enumerate(potentials.states):
            rows = slice(potentials.unary_start[i], potentials.unary_start[i + 1])
            first, last = potentials.bias_start[i], potentials.bias_start[i + 1]
            effect = np.zeros((k, last - first))
            for column, c in zip(index[rows].T, coefficient[rows].T, strict=True):
                effect[np.arange(k), np.where(c != 0, column - first, 0)] += c
            out.append(effect)
        return out

    @cached_property
    def pair_effects(self) -> list[np.ndarray]:
        """Derivative of the table of each edge in its weights, (states of i, states of j, weights)."""
        potentials, k = self.potentials, self.potentials.states
        index, coefficient = potentials.pair_map
        out = []
        for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
            cells = slice(potentials.pair_start[e], potentials.pair_start[e + 1])
            first, last = potentials.weight_start[e], potentials.weight_start[e + 1]
            effect = np.zeros((k[i] * k[j], last - first))
            effect[np.arange(len(effect)), index[cells] - first] = coefficient[cells]
            out.append(effect.reshape(k[i], k[j], -1))
        return out

    def _places(self, edges):
        """Where the weights of each edge start among those of these edges."""
        sizes = np.diff(self.potentials.weight_start)[edges]
        return self.potentials.bias_size + np.concatenate([[0], np.cumsum(sizes)]).astype(int)


class PseudoHessian(_Hessian):
    """Hessian of the pseudo-likelihood: a sum over the logistic regressions of all variables."""

    def _over_edges(self, bias, weight, edges):
        potentials = self.potentials
        source, target = (end[edges] for end in potentials.ends)
        probability = self.likelihood.conditionals(bias, weight)
        if potentials.scored and set(potentials.states) == {2}:
            return self._binary(source, target, probability)
        place = self._places(edges)
        out = np.zeros((place[-1], place[-1]))
        node = self._scored if potentials.scored else self._tables
        own = [[] for _ in range(potentials.p)]
        for position, (i, j) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
            own[i].append((position, j))
            own[j].append((position, i))
        for i in range(potentials.p):
            biases = np.arange(potentials.bias_start[i], potentials.bias_start[i + 1])
            weights = [np.arange(place[at], place[at + 1]) for at, _ in own[i]]
            columns = np.concatenate([biases, *weights]).astype(int)
            cells = slice(potentials.unary_start[i], potentials.unary_start[i + 1])
            edge = [edges[at] for at, _ in own[i]]
            out[np.ix_(columns, columns)] += node(
                i, edge, [other for _, other in own[i]], probability[:, cells]
            )
        return out

    def _binary(self, source, target, probability):
        """Hessian of binary variables, whose weights and biases multiply scores, all nodes at once."""
        p, size = self.potentials.p, self.potentials.p + len(source)
        scores = self.potentials.scores
        spread = np.sqrt(
            self.likelihood.counts[:, None] * probability[:, ::2] * probability[:, 1::2]
        )
        spread *= scores[1::2] - scores[::2]
        # Each regression has a bias, with a constant design, and the edges of its variable.
        owner = np.concatenate([np.arange(p), source, target])
        other = np.concatenate([np.full(p, p), target, source])
        column = np.concatenate([np.arange(p), np.arange(p, size), np.arange(p, size)])
        order = np.argsort(owner, kind="stable")
        owner, column = owner[order], column[order]
        ones = np.ones((len(spread), 1))
        design = np.hstack([self._row_scores, ones])[:, other[order]] * spread[:, owner]
        first = np.searchsorted(owner, np.arange(p + 1))
        out = np.zeros((size, size))
        for a, b in itertools.pairwise(first):
            own = column[a:b]
            out[own[:, None], own] += design[:, a:b].T @ design[:, a:b]
        return out

    @cached_property
    def _row_scores(self):
        return self.potentials.scores[self.potentials.unary_start[:-1] + self.likelihood.codes]

    def _scored(self, i, edges, others, probability):
        """Hessian of one regression in biases and weights, each weight multiplying one score."""
        cells = slice(self.potentials.unary_start[i], self.potentials.unary_start[i + 1])
        effect = np.column_stack([self.bias_effects[i], self.potentials.scores[cells]])
        counts, size = self.likelihood.counts, effect.shape[1]
        mean = probability @ effect
        both = effect[:, :, None] * effect[:, None, :]
        moments = (probability @ both.reshape(len(effect), -1)).reshape(-1, size, size)
        moments -= mean[:, :, None] * mean[:, None, :]
        moments *= counts[:, None, None]
        scores = self._row_scores[:, others]
        out = np.empty((size - 1 + len(others),) * 2)
        out[: size - 1, : size - 1] = moments[:, :-1, :-1].sum(axis=0)
        cross = scores.T @ moments[:, -1, :-1]
        out[size - 1 :, : size - 1], out[: size - 1, size - 1 :] = cross, cross.T
        out[size - 1 :, size - 1 :] = (scores * moments[:, -1, -1:]).T @ scores
        return out

    def _tables(self, i, edges, others, probability):
        """Hessian of one regression in biases and weights, for any tables."""
        codes, counts = self.likelihood.codes, self.likelihood.counts
        parts = [
            np.broadcast_to(
                self.bias_effects[i][:, None],
                (probability.shape[1], len(codes), self.bias_effects[i].shape[1]),
            )
        ]
        for e, j in zip(edges, others, strict=True):
            effect = self.pair_effects[e]
            if i > j:
                effect = effect.transpose(1, 0, 2)
            parts.append(effect[:, codes[:, j]])
        design = np.concatenate(parts, axis=2)
        mean = np.einsum("mk,kma->ma", probability, design)
        out = -(mean * counts[:, None]).T @ mean
        for state, own in enumerate(design):
            out += (own * (counts * probability[:, state])[:, None]).T @ own
        return out


class ExactHessian(_Hessian):
    """Hessian of the likelihood: the covariance of the sufficient statistics, times the rows."""

    def _over_edges(self, bias, weight, edges):
        places = self._places(edges)
        energies = self._energies(bias, weight)
        top = energies.max()
        share = np.exp(energies - top)
        share /= share.sum()
        mean, out, first = np.zeros(places[-1]), np.zeros((places[-1],) * 2), 0
        for block in self._statistics(edges):
            weighted = block * share[first : first + len(block), None]
            first += len(block)
            mean += weighted.sum(axis=0)
            out += weighted.T @ block
        return self.likelihood.n * (out - np.outer(mean, mean))

    def _energies(self, bias, weight):
        """Log-potential of every joint state."""
        if self._all is not None:
            return self._all @ np.concatenate([bias, weight])
        owner = self.potentials.edge_of_weight
        on = np.unique(owner[weight != 0])
        theta = np.concatenate([bias, weight[np.isin(owner, on)]])
        return np.concatenate([block @ theta for block in self._made(on, _CHUNK)])

    @property
    def _total(self):
        return math.prod(self.potentials.states)

    @cached_property
    def _all(self):
        """Statistics of all joint states, if the matrix is not too large."""
        potentials = self.potentials
        size = potentials.bias_size + potentials.weight_size
        if self._total * size > _KEPT:
            return None
        [block] = self._made(np.arange(len(potentials.ends[0])), self._total)
        return block

    def _statistics(self, edges):
        """Sufficient statistics of some edges, (states, biases + weights), some states at a time."""
        if self._all is None:
            return self._made(edges, _CHUNK)
        on = np.isin(self.potentials.edge_of_weight, edges)
        return [self._all[:, np.concatenate([np.ones(self.potentials.bias_size, bool), on])]]

    def _made(self, edges, chunk):
        potentials, k = self.potentials, self.potentials.states
        places = self._places(edges)
        for first in range(0, self._total, chunk):
            numbers = np.arange(first, min(first + chunk, self._total))
            x = np.unravel_index(numbers, k)
            block = np.empty((len(numbers), places[-1]))
            for i, effect in enumerate(self.bias_effects):
                block[:, potentials.bias_start[i] : potentials.bias_start[i + 1]] = effect[x[i]]
            for at, e in enumerate(edges):
                i, j = (end[e] for end in potentials.ends)
                block[:, places[at] : places[at + 1]] = self.pair_effects[e][x[i], x[j]]
            yield block
