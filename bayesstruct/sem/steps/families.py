"""Fits of families of linear structural equations, remembered, and draws from them."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.sem.kernels.families import Family, Shared, normal_settings
from bayesstruct.sem.kernels.fits import family_design, fit_family, log_joint
from bayesstruct.sem.kernels.settings import FREE, MIXTURE, SemSettings

if TYPE_CHECKING:
    from bayesstruct.networks.kernels.dag_priors import ParentPrior

__all__ = ["Families"]

_GRID = 0.2  # of log scales at which families are fitted, where the scale is given
_MOST = 200_000  # fits that are remembered


class Families:
    """Families of a table: their fits, and proposals of their parameters.

    Parameters
    ----------
    settings : SemSettings
    relative : (d,) array
        Squared noise scales in units of the common one.
    free : (n, d) bool array
        Values that were not set from outside.
    prior : ParentPrior
    """

    def __init__(
        self, settings: SemSettings, relative: np.ndarray, free: np.ndarray, prior: "ParentPrior"
    ):
        self.settings, self.free, self.prior = settings, free, prior
        self.offsets, self.d = 0.5 * np.log(relative), free.shape[1]
        self.every = [None if column.all() else column for column in free.T]
        self.reference = np.empty(0)
        self.weights: dict[tuple, float] = {}
        self.table = np.empty((0, self.d))
        self.fits: dict[tuple, Family] = {}

    def use(self, table: np.ndarray, reference: np.ndarray | None = None) -> None:
        """Take a complete table, and the shape of a mixture that columns share at which to fit; forget all fits."""
        self.table, self.fits = np.ascontiguousarray(table), {}
        if reference is not None:
            self.reference = reference.copy()

    def design(self, i: int, parents: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Response and design of a family."""
        return family_design(self.table, i, parents, self.every[i])

    def fit(self, i: int, parents: tuple[int, ...], shared: Shared) -> Family:
        """Response, design, fit and approximate evidence of a family."""
        given = self.settings.variances != FREE
        at = round((shared.tau + self.offsets[i]) / _GRID) if given else 0
        key = i, parents, at
        found = self.fits.get(key)
        if found is None:
            y, design = self.design(i, parents)
            shape = self.reference if given and self.settings.noise == MIXTURE else None
            fit = fit_family(y, design, self.settings, tau=_GRID * at, shape=shape)
            found = self._family(y, design, fit)
            if len(self.fits) > _MOST:
                self.fits.clear()
            self.fits[key] = found
        return found.at(shared.share) if self.settings.share_is_random else found

    def _family(self, y, design, fit):
        """Add the fit given normal noise, where the noise may be normal."""
        own = y, design, fit, fit.log_evidence, self.settings
        p = self.settings.normal_probability
        if p == 0.0:
            return Family(*own)
        normal = fit_family(y, design, normal_settings(self.settings))
        return Family(*own, normal, normal.log_evidence, p)

    def score(self, i: int, parents: tuple[int, ...], shared: Shared) -> float:
        """Approximate log evidence of a family plus its log prior weight."""
        return self.fit(i, parents, shared).score + self.log_prior(i, parents)

    def log_prior(self, i: int, parents: tuple[int, ...]) -> float:
        """Log prior weight of a parent set."""
        key = i, parents
        if key not in self.weights:
            self.weights[key] = self.prior.local(i, parents)
        return self.weights[key]

    def draw(
        self, rng, i: int, parents: tuple[int, ...], shared: Shared
    ) -> tuple[np.ndarray, float]:
        """Draw parameters of a family from its fit, with their log weight."""
        family = self.fit(i, parents, shared)
        theta, logs = family.draws(rng, 1, shared.tau + self.offsets[i], shared.shape)
        return theta[0], float(logs[0])

    def weigh(self, i: int, parents: tuple[int, ...], theta: np.ndarray, shared: Shared) -> float:
        """Log weight of parameters of a family."""
        return self.fit(i, parents, shared).log_weight(theta)

    def log_joint_of(self, y: np.ndarray, design: np.ndarray, theta: np.ndarray) -> float:
        """Log joint density of the parameters and the column of a family."""
        return float(log_joint(y, design, self.settings, theta))
