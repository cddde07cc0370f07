r"""Noise distributions of linear structural equations: densities, moments and draws.

========= ================================================================== =======================
name      density of e                                                       shape parameters
========= ================================================================== =======================
gaussian  normal, variance 1                                                 none
laplace   :math:`\exp(-\sqrt 2 |e|) / \sqrt 2`, variance 1                   none
student   t with :math:`\nu > 2` degrees of freedom, scaled to variance 1    :math:`\nu`
mixture   :math:`\sum_k \pi_k N(m_k, v_k^2)`, m and v fixed                  :math:`\pi`, K numbers
========= ================================================================== =======================

Shape parameters are arrays (..., d, k), with one unused column for noise that has none.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["NoiseLaw", "noise_law"]

_LOG_2PI = np.log(2.0 * np.pi)


@dataclass(frozen=True)
class NoiseLaw:
    """A noise distribution.

    Parameters
    ----------
    name : {"gaussian", "laplace", "student", "mixture"}
    location, width : tuple of float
        Of the components of a mixture.
    """

    name: str
    location: tuple[float, ...] = ()
    width: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """Number of shape parameters of a column, at least one place."""
        return max(len(self.location), 1)

    def log_density(self, e: "TensorVariable", shape: "TensorVariable") -> "TensorVariable":
        """Log density of noise (..., n, d) with shape parameters (..., d, k)."""
        import pytensor.tensor as pt

        if self.name == "gaussian":
            return -0.5 * (e**2 + _LOG_2PI)
        if self.name == "laplace":
            return -np.sqrt(2.0) * pt.abs(e) - 0.5 * np.log(2.0)
        if self.name == "student":
            nu = shape[..., 0]
            constant = pt.gammaln(0.5 * (nu + 1.0)) - pt.gammaln(0.5 * nu)
            constant = constant - 0.5 * pt.log((nu - 2.0) * np.pi)
            return constant - 0.5 * (nu + 1.0) * pt.log1p(e**2 / (nu - 2.0))
        terms = [
            pt.log(shape[..., k]) - 0.5 * ((e - m) / v) ** 2 - np.log(v) - 0.5 * _LOG_2PI
            for k, (m, v) in enumerate(zip(self.location, self.width, strict=True))
        ]
        return pt.logsumexp(pt.stack(terms, axis=-1), axis=-1)

    def moments(self, shape):
        """Mean and variance of the noise of each column; arrays or tensors (..., d)."""
        if self.name != "mixture":
            unused = 0.0 * shape[..., 0]
            return unused, unused + 1.0
        m, v = np.array(self.location), np.array(self.width)
        mean = (shape * m).sum(axis=-1)
        return mean, (shape * (v**2 + m**2)).sum(axis=-1) - mean**2

    def draw(self, rng: np.random.Generator, shape: np.ndarray, n: int) -> np.ndarray:
        """Draw n rows, (n, d), given shape parameters (d, k)."""
        size = n, len(shape)
        if self.name == "gaussian":
            return rng.standard_normal(size)
        if self.name == "laplace":
            return rng.laplace(scale=np.sqrt(0.5), size=size)
        if self.name == "student":
            nu = shape[:, 0]
            return rng.standard_t(nu, size=size) * np.sqrt((nu - 2.0) / nu)
        cumulative = np.cumsum(shape, axis=1)
        u = rng.random(size) * cumulative[:, -1]
        k = (u[:, :, None] > cumulative).sum(axis=-1)
        return np.array(self.location)[k] + np.array(self.width)[k] * rng.standard_normal(size)


def noise_law(noise: str) -> NoiseLaw:
    """Return the noise distribution of this name, with the components of the mixture."""
    from bayesstruct.sem.kernels.errors import LOCATIONS, WIDTHS

    components = (tuple(LOCATIONS.tolist()), tuple(WIDTHS.tolist())) if noise == "mixture" else ()
    return NoiseLaw(noise, *components)
