"""Sweeps over the latent features of both sides of observed pairs, and over their weights.

See :mod:`bayesstruct.features.kernels.link_features`.
"""

from dataclasses import dataclass

import numpy as np

from bayesstruct.features.kernels.indian_buffet import new_dish_rates
from bayesstruct.features.kernels.link_features import (
    Buffet,
    Slab,
    coefficients,
    incidence,
    scan_objects,
)
from bayesstruct.features.kernels.link_likelihoods import ObservedPairs, log_densities
from bayesstruct.features.kernels.link_weights import draw_weights

__all__ = ["Full", "LinkSampler", "LinkState"]


class Full(Exception):
    """There are more features than the maximum number; the argument is the side, 0 or 1."""


@dataclass
class LinkState:
    """Features and weights.

    Attributes
    ----------
    z, u : (n, K) and (m, L) int8 ndarray
        Features of sources and targets: the same array where there is one set.
    weights : (K, L) float64 ndarray
    """

    z: np.ndarray
    u: np.ndarray
    weights: np.ndarray

    def predictors(self, source, target) -> np.ndarray:
        """Sum of the weights between the features of each pair."""
        used, paired = self.z.any(axis=0), self.u.any(axis=0)
        left = self.z[:, used] @ self.weights[np.ix_(used, paired)]
        return np.einsum("dk,dk->d", left[source], self.u[target][:, paired])


class LinkSampler:
    """Transitions of features and weights, given all else.

    Parameters
    ----------
    source, target : (d,) int array
        Positions of the two objects of each pair.
    sizes : pair of int
        Numbers of objects n and m.
    one_set : bool
        Whether they are of one set.
    kind : int
        Of the weights, see :class:`bayesstruct.features.kernels.link_features.Slab`.
    positive : bool
        Whether the weights are.
    """

    def __init__(self, source, target, sizes, one_set, kind, positive):
        n, m = sizes
        self.source = np.ascontiguousarray(source, np.int64)
        self.target = np.ascontiguousarray(target, np.int64)
        self.one_set, self.kind, self.positive = bool(one_set), int(kind), bool(positive)
        self.pairs = incidence(self.source, self.target, n, m, one_set)
        self.reverse = None if one_set else incidence(self.target, self.source, m, n, False)

    def slab(self, scale) -> Slab:
        """Prior of the weights."""
        return Slab(float(scale), self.positive, self.kind)

    def observe(self, state, offset, y, likelihood) -> ObservedPairs:
        """Pairs with their linear predictors and densities."""
        eta = state.predictors(self.source, self.target) + offset
        observed = ObservedPairs(self.source, self.target, y, eta, np.empty(len(y)))
        log_densities(likelihood, observed)
        return observed

    def scan(self, rng, state, observed, likelihood, scale, buffets, tries):
        """Draw the features of all objects, in random order.

        Parameters
        ----------
        rng : numpy.random.Generator
        state : LinkState, changed
        observed : ObservedPairs, changed
        likelihood : Likelihood
        scale : float
            Of the weights.
        buffets : sequence of (alpha, concentration, discount)
            Of sources and targets.
        tries : int

        Raises
        ------
        Full
        """
        if self.one_set:
            self._scan(
                rng,
                0,
                (state.z, state.z, state.weights),
                observed,
                likelihood,
                scale,
                buffets,
                tries,
            )
            return
        self._scan(
            rng, 0, (state.z, state.u, state.weights), observed, likelihood, scale, buffets, tries
        )
        turned = np.ascontiguousarray(state.weights.T)
        self._scan(rng, 1, (state.u, state.z, turned), observed, likelihood, scale, buffets, tries)
        state.weights = np.ascontiguousarray(turned.T)

    def _scan(self, rng, side, arrays, observed, likelihood, scale, buffets, tries):
        own, other, weights = arrays
        alpha, c, discount = (float(v) for v in buffets[side])
        rate = alpha * float(new_dish_rates(len(own), c, discount)[-1])
        used = scan_objects(
            rng,
            own,
            other,
            weights,
            np.ascontiguousarray(coefficients(other, weights, self.one_set)),
            self.reverse if side else self.pairs,
            observed,
            likelihood,
            Buffet(rate, c, discount),
            self.slab(scale),
            self.one_set,
            rng.permutation(len(own)),
            tries,
        )
        if used < 0:
            raise Full(side)

    def draw_weights(self, rng, state, observed, likelihood, scale):
        """Draw all weights; arguments as for `scan`."""
        slab = self.slab(scale)
        draw_weights(rng, state.z, state.u, state.weights, observed, likelihood, slab)
