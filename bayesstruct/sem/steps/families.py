"""Fits of families of linear structural equations, remembered, and draws from them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.sem.kernels.fits import FamilyFit, family_design, fit_family, log_joint
from bayesstruct.sem.kernels.proposals import draw_family, log_weight
from bayesstruct.sem.kernels.settings import FREE, MIXTURE, SemSettings

if TYPE_CHECKING:
    from bayesstruct.networks.kernels.dag_priors import ParentPrior

__all__ = ["Families", "Shared"]

_GRID = 0.2  # of log scales at which families are fitted, where the scale is given
_MOST = 200_000  # fits that are remembered


@dataclass
class Shared:
    """What all columns share if variances are equal or known.

    Attributes
    ----------
    tau : float
        Log of the common scale.
    shape : (K,) array
        Coordinates of the weights of a mixture; empty without.
    """

    tau: float = 0.0
    shape: np.ndarray = field(default_factory=lambda: np.empty(0))


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
        self.fits: dict[tuple, tuple] = {}

    def use(self, table: np.ndarray, reference: np.ndarray | None = None) -> None:
        """Take a complete table, and the shape of a mixture that columns share at which to fit; forget all fits."""
        self.table, self.fits = np.ascontiguousarray(table), {}
        if reference is not None:
            self.reference = reference.copy()

    def design(self, i: int, parents: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Response and design of a family."""
        return family_design(self.table, i, parents, self.every[i])

    def fit(self, i: int, parents: tuple[int, ...], shared: Shared) -> tuple:
        """Response, design and fit of a family."""
        given = self.settings.variances != FREE
        at = round((shared.tau + self.offsets[i]) / _GRID) if given else 0
        key = i, parents, at
        found = self.fits.get(key)
        if found is None:
            y, design = self.design(i, parents)
            shape = self.reference if given and self.settings.noise == MIXTURE else None
            found = y, design, fit_family(y, design, self.settings, tau=_GRID * at, shape=shape)
            if len(self.fits) > _MOST:
                self.fits.clear()
            self.fits[key] = found
        return found

    def score(self, i: int, parents: tuple[int, ...], shared: Shared) -> float:
        """Approximate log evidence of a family plus its log prior weight."""
        fit: FamilyFit = self.fit(i, parents, shared)[2]
        return fit.log_evidence + self.log_prior(i, parents)

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
        y, design, fit = self.fit(i, parents, shared)
        given = {"tau": shared.tau + self.offsets[i], "shape": shared.shape}
        theta, logs = draw_family(rng, y, design, fit, self.settings, **given)
        return theta[0], float(logs[0])

    def weigh(self, i: int, parents: tuple[int, ...], theta: np.ndarray, shared: Shared) -> float:
        """Log weight of parameters of a family."""
        y, design, fit = self.fit(i, parents, shared)
        return float(log_weight(y, design, fit, self.settings, theta))

    def log_joint_of(self, y: np.ndarray, design: np.ndarray, theta: np.ndarray) -> float:
        """Log joint density of the parameters and the column of a family."""
        return float(log_joint(y, design, self.settings, theta))
