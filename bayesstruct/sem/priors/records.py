"""Constants that models of linear structural equations record for their readers."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.core.recorded import Recorded, constant
from bayesstruct.sem.kernels.settings import NOISES, SemSettings
from bayesstruct.sem.priors.noise import NoiseLaw

__all__ = ["SemNoise", "SemPriors"]


@dataclass(frozen=True)
class SemNoise(Recorded):
    """Noise distribution of linear structural equations.

    Attributes
    ----------
    kind : int
        Position in :data:`bayesstruct.sem.kernels.settings.NOISES`.
    location, width : (components,) ndarray of float, optional
        Of the components of a mixture, and of a standard normal one where noise may be exactly normal.
    """

    kind: int = constant("noise_kind")
    location: np.ndarray | None = constant("component_location", "noise_component", optional=True)
    width: np.ndarray | None = constant("component_width", "noise_component", optional=True)

    @classmethod
    def of(cls, law: NoiseLaw) -> "SemNoise":
        """Constants of a noise distribution."""
        kind = NOISES.index(law.name)
        if law.name != "mixture":
            return cls(kind)
        return cls(kind, np.array(law.location), np.array(law.width))

    @property
    def law(self) -> NoiseLaw:
        """The noise distribution."""
        if self.location is None or self.width is None:
            return NoiseLaw(NOISES[self.kind])
        components = tuple(self.location.tolist()), tuple(self.width.tolist())
        return NoiseLaw(NOISES[self.kind], *components)


@dataclass(frozen=True)
class SemPriors(Recorded):
    """Priors of scales and weights of linear structural equations.

    Attributes
    ----------
    variances, prior : int
        Positions in ``VARIANCES`` and ``PRIORS`` of :mod:`bayesstruct.sem.kernels.settings`.
    scale : float
        Of the weights, in units of the noise.
    shape, rate : float
        Of the inverse gamma distribution of the variance of the noise of a column without parents.
    """

    variances: int = constant("variances_kind")
    prior: int = constant("weight_prior_kind")
    scale: float = constant("weight_prior_scale")
    shape: float = constant("variance_prior_shape")
    rate: float = constant("variance_prior_rate")

    @classmethod
    def of(cls, own: SemSettings) -> "SemPriors":
        """Constants of settings."""
        return cls(own.variances, own.prior, own.scale, own.shape, own.rate)
