r"""Good latent features of observed pairs of objects: where chains start.

The objective is the log of the joint density of pairs and features, the weights summed out by Laplace's
approximation one at a time,

.. math::

    \log p([Z]) + \log p(y \mid Z, \hat W) + \sum_{kl} \Bigl( \log N(\hat w_{kl}; 0, \tau^2)
        + \tfrac12 \log \frac{2 \pi}{\tau^{-2} + c \sum_d x_{dkl}^2} \Bigr),

with c the curvature of the log density. Features are added one at a time, from a singular vector of the
residuals, redrawn by short runs of the sampler, and taken away again; what lowers the objective is undone.
The shift of all predictors, the noise and the scale of the weights are drawn or set in between.
"""

from dataclasses import dataclass

import numpy as np

from bayesstruct.features.kernels.indian_buffet import log_buffet
from bayesstruct.features.kernels.link_codes import LIKELIHOODS, probabilities
from bayesstruct.features.kernels.link_likelihoods import Likelihood
from bayesstruct.features.kernels.link_sampler import LinkSampler, LinkState
from bayesstruct.features.kernels.link_weights import draw_shift

__all__ = ["LinkFeatures", "link_features"]

_SWEEPS = 6  # of the sampler after each change
_FAILURES = 2  # rounds without a better state that end a search
_STEPS = 12  # of the power method: too few to forget its random start, for variety
_LEAST = 1e-3  # least standard deviation of the noise, relative to that of the responses
_SHIFT = 5.0  # prior standard deviation of the shift of all predictors of 0/1 responses


@dataclass(frozen=True)
class LinkFeatures:
    """Result of a search.

    Attributes
    ----------
    state : LinkState
    shift : float
        Number that is added to all predictors.
    noise, scale : float
        Standard deviations of normal responses and of the weights.
    objective : float
    """

    state: LinkState
    shift: float
    noise: float
    scale: float
    objective: float


class _Search:
    """State of a search: features and weights, and the numbers that belong to them."""

    def __init__(self, sampler, link, y, offset, matrices, buffets, scale, rng):
        self.sampler, self.link, self.y, self.offset = sampler, link, y, offset
        self.buffets, self.rng, self.prior_scale = buffets, rng, scale
        (n, most), (m, other) = matrices
        z = np.zeros((n, most), np.int8)
        u = z if sampler.one_set else np.zeros((m, other), np.int8)
        self.state = LinkState(z, u, np.zeros((most, u.shape[1])))
        self.spread = max(float(np.std(y)), 1e-12)
        self.shift, self.noise, self.scale = 0.0, self.spread, scale

    def copy(self):
        """Return a search that can be changed on its own."""
        other = object.__new__(_Search)
        other.__dict__.update(self.__dict__)
        z = self.state.z.copy()
        u = z if self.sampler.one_set else self.state.u.copy()
        other.state = LinkState(z, u, self.state.weights.copy())
        return other

    @property
    def likelihood(self):
        return Likelihood(
            LIKELIHOODS.index(self.link), self.noise if self.link == "normal" else 1.0
        )

    def observe(self):
        return self.sampler.observe(self.state, self.offset + self.shift, self.y, self.likelihood)

    def sweep(self, fixed=False):
        """Draw everything once, except features that one object alone has; no features if they are fixed."""
        observed = self.observe()
        if not fixed:
            self.sampler.scan(
                self.rng, self.state, observed, self.likelihood, self.scale, self.buffets, 0
            )
        self.sampler.draw_weights(self.rng, self.state, observed, self.likelihood, self.scale)
        if self.link != "noisy_or":
            size = self.spread if self.link == "normal" else _SHIFT
            self.shift = draw_shift(self.rng, self.shift, observed, self.likelihood, float(size))
        if self.link == "normal":
            left = self.y - self.observe().eta
            self.noise = max(float(np.sqrt(np.mean(left**2))), _LEAST * self.spread)
        weights = self._weights()
        # As if there were two more weights of the size that is expected.
        total = (weights**2).sum() + 2.0 * self.prior_scale**2
        self.scale = float(np.sqrt(total / (len(weights) + 2.0)))

    def _weights(self):
        """Return the distinct weights of features that are used."""
        return self.state.weights[self._distinct()]

    def _distinct(self):
        used, paired = self.state.z.any(axis=0), self.state.u.any(axis=0)
        kept = used[:, None] & paired[None, :]
        if self.sampler.kind == 0:
            return kept
        return kept & (
            np.eye(len(kept), dtype=bool) if self.sampler.kind == 2 else np.tri(len(kept)) > 0
        )

    def objective(self):
        """Value of the objective."""
        density = self.observe().density.sum()
        if self.link == "normal":
            density -= len(self.y) * np.log(self.noise)
        z, u = self.state.z, self.state.u
        prior = log_buffet(z, *self.buffets[0])
        if not self.sampler.one_set:
            prior += log_buffet(u, *self.buffets[1])
        curvature = self.noise**-2 if self.link == "normal" else 0.25
        source, target = z[self.sampler.source], u[self.sampler.target]
        squares = source.T.astype(float) @ target
        kept = self._distinct()
        weights, information = self.state.weights[kept], squares[kept]
        penalty = -0.5 * (weights / self.scale) ** 2
        penalty -= 0.5 * np.log1p(curvature * information * self.scale**2)
        return float(density + prior + penalty.sum())

    def residuals(self):
        """Responses less their expectations."""
        eta = self.observe().eta
        return self.y - (eta if self.link == "normal" else probabilities(self.link, eta))

    def directions(self):
        """Singular vectors of the residuals, from a random start."""
        sampler, left = self.sampler, self.residuals()
        n, m = len(self.state.z), len(self.state.u)
        matrix = np.zeros((n, m))
        np.add.at(matrix, (sampler.source, sampler.target), left)
        if sampler.one_set:
            matrix += matrix.T
        b = self.rng.standard_normal(m)
        for _ in range(_STEPS):
            a = matrix @ b
            a /= max(np.linalg.norm(a), 1e-300)
            b = matrix.T @ a
            b /= max(np.linalg.norm(b), 1e-300)
        return a, b

    def refine(self, sweeps=_SWEEPS):
        """Return the best of the states of a short run."""
        best, value = None, -np.inf
        for _ in range(sweeps):
            self.sweep()
            now = self.objective()
            if now > value:
                best, value = self.copy(), now
        return best, value


def _with_feature(search, a, b):
    """Return a search with one more feature on each side, or None if there are too many."""
    out = search.copy()
    z, u = out.state.z, out.state.u
    sides = [(z, a)] if search.sampler.one_set else [(z, a), (u, b)]
    for matrix, direction in sides:
        [free] = np.nonzero(~matrix.any(axis=0))
        chosen = direction > 0.3 * direction.max()
        if len(free) == 0 or not chosen.any() or direction.max() <= 0.0:
            return None
        matrix[chosen, free[0]] = 1
    return out


def _grow(search):
    """Try new features along the directions in which the residuals are largest."""
    a, b = search.directions()
    best, value = None, -np.inf
    for sign in (1.0, -1.0):
        other = _with_feature(search, sign * a, sign * b)
        if other is None:
            continue
        for _ in range(2):
            other.sweep(fixed=True)
        found, now = other.refine()
        if now > value:
            best, value = found, now
    return best, value


def _prune(search, value):
    """Take features away as long as that makes the state better."""
    sides = [0] if search.sampler.one_set else [0, 1]
    for side in sides:
        for column in range((search.state.z, search.state.u)[side].shape[1]):
            matrix = (search.state.z, search.state.u)[side]
            if not matrix[:, column].any():
                continue
            other = search.copy()
            (other.state.z, other.state.u)[side][:, column] = 0
            if side == 0:
                other.state.weights[column] = 0.0
            if side == 1 or search.sampler.one_set:
                other.state.weights[:, column] = 0.0
            found, now = other.refine(2)
            if now > value:
                search, value = found, now
    return search, value


def link_features(
    sampler: LinkSampler,
    link: str,
    y: np.ndarray,
    offset: float | np.ndarray,
    matrices: tuple[tuple[int, int], tuple[int, int]],
    buffets: list,
    scale: float,
    rng: np.random.Generator,
    *,
    restarts: int = 1,
) -> LinkFeatures:
    """Search for features of pairs with a large joint density.

    Parameters
    ----------
    sampler : LinkSampler
    link : {"logistic", "probit", "noisy_or", "normal"}
    y : (d,) float64 ndarray
    offset : float or (d,) ndarray
        Terms of the predictors beside the weights.
    matrices : pair of (int, int)
        Numbers of objects and maximum numbers of features of both sides.
    buffets : sequence of (alpha, concentration, discount)
    scale : float
        Of the weights, as expected before.
    rng : numpy.random.Generator
    restarts : int
        Searches, of which the best is returned: the objective tells them apart.

    Returns
    -------
    LinkFeatures

    Notes
    -----
    A local search: there is no certificate.
    """
    options = (sampler, link, y, offset, matrices, buffets, scale, rng)
    found = [_climb(_Search(*options)) for _ in range(restarts)]
    return max(found, key=lambda one: one.objective)


def _climb(search) -> LinkFeatures:
    """Add features as long as that makes the state better."""
    for _ in range(_SWEEPS):
        search.sweep(fixed=True)
    value, failures = search.objective(), 0
    while failures < _FAILURES:
        found, now = _grow(search)
        if found is None:
            break
        if now > value:
            search, value = _prune(found, now)
            failures = 0
        else:
            failures += 1
    return LinkFeatures(search.state, search.shift, search.noise, search.scale, value)
