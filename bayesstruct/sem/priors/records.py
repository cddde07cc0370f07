"""Constants that models of linear structural equations record for their readers."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.core.recorded import Recorded, constant
from bayesstruct.sem.kernels.settings import NOISES
from bayesstruct.sem.priors.noise import NoiseLaw

__all__ = ["SemNoise"]


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
