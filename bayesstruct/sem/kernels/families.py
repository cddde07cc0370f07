r"""One column given its parents: its table, its fits, and draws of its parameters.

The noise of a column is that of the settings or, with a prior probability :math:`p > 0`, exactly normal. Then the parameters are
proposed in two steps: first which of the two it is, by approximate evidences, then the parameters by the proposal of that one,

.. math:: q(r, \theta) = q(r)\,q_r(\theta), \qquad w = \frac{p(r)\,p(x, \theta \mid r)}{q(r)\,q_r(\theta)} .

Parameters of a column with normal noise stand in an array of the same length as all others: coordinates of the shape are NaN.
"""

import math

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bayesstruct.sem.kernels.errors import BASE, shape_size
from bayesstruct.sem.kernels.fits import FamilyFit, parameter_count
from bayesstruct.sem.kernels.proposals import draw_family, log_weight
from bayesstruct.sem.kernels.settings import GAUSSIAN, SemSettings

__all__ = ["Family", "Shared", "mixed_evidence", "normal_settings", "unused_weights"]

_LEAST = 0.03  # of either kind of noise among proposals: weights of what is never proposed would have no bound


@lru_cache(maxsize=64)
def normal_settings(settings: SemSettings) -> SemSettings:
    """Return the settings of a column whose noise is exactly normal."""
    return settings._replace(
        noise=GAUSSIAN, normal_probability=0.0, share_alpha=0.0, share_beta=0.0
    )


def mixed_evidence(p: float, own: float, normal: float) -> float:
    """Return the log evidence of a column from those given that its noise is a mixture, and given that it is normal.

    Parameters
    ----------
    p : float
        Prior probability of normal noise.
    own, normal : float
        Log evidences given a mixture and given normal noise.
    """
    return float(np.logaddexp(_log(1.0 - p) + own, _log(p) + normal))


def unused_weights(rng: np.random.Generator, settings: SemSettings) -> np.ndarray:
    """Draw the weights of a mixture that normal noise has replaced: from their prior."""
    return rng.dirichlet(settings.concentration * BASE)


@dataclass
class Shared:
    """What all columns share: scale and shape if variances are equal or known, and a random share of columns with normal noise.

    Attributes
    ----------
    tau : float
        Log of the common scale.
    shape : (K,) array
        Coordinates of the weights of a mixture; empty without.
    share : float
        Probability of normal noise, used where it is random.
    """

    tau: float = 0.0
    shape: np.ndarray = field(default_factory=lambda: np.empty(0))
    share: float = 0.5


class Family(NamedTuple):
    """One column given its parents: its table, its fits, and its score."""

    y: np.ndarray
    design: np.ndarray
    fit: FamilyFit
    """Given that the noise is that of the settings."""
    evidence: float
    """Approximate log evidence given that noise."""
    settings: SemSettings
    normal: FamilyFit | None = None
    """Given that the noise is normal, where it may be."""
    normal_evidence: float = -math.inf
    """Approximate log evidence given normal noise."""
    probability: float = 0.0
    """Prior probability of normal noise."""

    def at(self, probability: float) -> "Family":
        """Return the family at another prior probability of normal noise, if the noise may be normal; fits stay."""
        return self if self.normal is None else self._replace(probability=probability)

    @property
    def score(self) -> float:
        """Approximate log evidence."""
        if self.normal is None:
            return self.evidence
        return mixed_evidence(self.probability, self.evidence, self.normal_evidence)

    @property
    def share(self) -> float:
        """Approximate posterior probability of normal noise."""
        if self.normal is None or self.probability >= 1.0:
            return float(self.normal is not None)
        return math.exp(min(_log(self.probability) + self.normal_evidence - self.score, 0.0))

    @property
    def chance(self) -> float:
        """Probability with which normal noise is proposed."""
        if self.normal is None or self.probability >= 1.0:
            return self.share
        return min(max(self.share, _LEAST), 1.0 - _LEAST)

    def draws(
        self, rng: np.random.Generator, m: int, tau: float = 0.0, shape=None, now=None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw sets of parameters from the approximation of their posterior.

        Parameters
        ----------
        rng : numpy.random.Generator
        m : int
            Number of sets.
        tau : float
            Log scale, where it is given.
        shape : (S,) float array, optional
            Shape of a mixture, where it is given.
        now : (P,) float array, optional
            Parameters that are the first set.

        Returns
        -------
        theta : (m, P) float array
        log_weights : (m,) float array
            Log joint density of table and parameters less the log density of the draw.
        """
        if now is None:
            theta, weights = self._fresh(rng, m, tau, shape)
        else:
            theta, weights = now[None], np.array([self.log_weight(now)])
            if m > 1:
                others, more = self._fresh(rng, m - 1, tau, shape)
                theta, weights = np.vstack([theta, others]), np.append(weights, more)
        return theta, np.where(np.isnan(weights), -np.inf, weights)

    def log_weight(self, theta: np.ndarray) -> float:
        """Return the log weight of parameters."""
        settings, fit, own = self.part(theta)
        weight = log_weight(self.y, self.design, fit, settings, own)
        return float(weight + self._log_odds(settings is not self.settings))

    def is_normal(self, theta: np.ndarray) -> np.ndarray:
        """Whether the noise is exactly normal, of each of the sets of parameters (..., P)."""
        if self.normal is None:
            return np.zeros(theta.shape[:-1], bool)
        return np.isnan(theta[..., len(self.design) + 1])

    def other_kind(self, normal: bool) -> float:
        """Return the approximate posterior probability that the noise is a mixture, if it is normal now, and the reverse."""
        return 1.0 - self.share if normal else self.share

    def part(self, theta: np.ndarray) -> tuple[SemSettings, FamilyFit, np.ndarray]:
        """Return settings, fit and parameters given the kind of noise that parameters have.

        Parameters
        ----------
        theta : (P,) float array

        Returns
        -------
        SemSettings
        FamilyFit
        (P,) or (P - S,) float array
            The same array, or with normal noise a copy without the coordinates of the shape.
        """
        if self.normal is None or not self.is_normal(theta):
            return self.settings, self.fit, theta
        return normal_settings(self.settings), self.normal, np.delete(theta, self._shape)

    def whole(self, theta: np.ndarray) -> np.ndarray:
        """Return parameters (..., P) from those of `part`."""
        k, size = len(self.design) - 1, shape_size(self.settings.noise)
        if theta.shape[-1] == parameter_count(self.settings, k):
            return theta
        gap = np.full((*theta.shape[:-1], size), np.nan)
        return np.concatenate([theta[..., : k + 2], gap, theta[..., k + 2 :]], axis=-1)

    @property
    def _shape(self):
        first = len(self.design) + 1
        return slice(first, first + shape_size(self.settings.noise))

    def _log_odds(self, normal):
        """Log prior probability of a kind of noise less the log of that with which it is proposed."""
        if self.normal is None:
            return 0.0
        p = self.probability
        if normal:
            return _log(p) - _log(self.chance)
        return _log(1.0 - p) - _log(1.0 - self.chance)

    def _fresh(self, rng, m, tau, shape):
        """Draws and their log weights."""
        data, given = (self.y, self.design), {"tau": tau, "shape": shape}
        if self.normal is None:
            return draw_family(rng, *data, self.fit, self.settings, m=m, **given)
        theta = np.empty((m, parameter_count(self.settings, len(self.design) - 1)))
        weights, normal = np.empty(m), rng.random(m) < self.chance
        for own, fit, settings in (
            (~normal, self.fit, self.settings),
            (normal, self.normal, normal_settings(self.settings)),
        ):
            if own.any():
                draws, logs = draw_family(rng, *data, fit, settings, m=int(own.sum()))
                theta[own] = self.whole(draws)
                weights[own] = logs + self._log_odds(fit is self.normal)
        return theta, weights


def _log(x):
    return math.log(x) if x > 0.0 else -math.inf
