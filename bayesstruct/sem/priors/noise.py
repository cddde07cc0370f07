r"""Noise distributions of linear structural equations: densities, moments and draws.

========= ================================================================== =======================
name      density of e                                                       shape parameters
========= ================================================================== =======================
gaussian  normal, variance 1                                                 none
laplace   :math:`\exp(-\sqrt 2 |e|) / \sqrt 2`, variance 1                   none
student   t with :math:`\nu > 2` degrees of freedom, scaled to variance 1    :math:`\nu`
mixture   :math:`\sum_k \pi_k N(m_k, v_k^2)`, m and v fixed                  :math:`\pi`, K numbers
========= ================================================================== =======================

Shape parameters are arrays (..., d, k), with one unused column for noise that has none. Where the noise of a column may be
exactly normal in place of a mixture, the last component is standard normal; it has all of the weight then, and none otherwise.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["NoiseLaw", "noise_law", "with_normal"]

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
    def may_be_normal(self) -> bool:
        """Whether the last component of a mixture is standard normal: the noise of a column may be exactly normal."""
        return self.location[-1:] == (0.0,) and self.width[-1:] == (1.0,)

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
            _log(shape[..., k]) - 0.5 * ((e - m) / v) ** 2 - np.log(v) - 0.5 * _LOG_2PI
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


def _log(weight):
    """Logarithm of a weight that may be zero."""
    import pytensor.tensor as pt

    some = pt.gt(weight, 0.0)
    return pt.switch(some, pt.log(pt.switch(some, weight, 1.0)), -np.inf)


def noise_law(noise: str, *, normal: bool = False) -> NoiseLaw:
    """Return the noise distribution of this name, with the components of the mixture.

    Parameters
    ----------
    noise : {"gaussian", "laplace", "student", "mixture"}
    normal : bool
        Whether the noise of a column may be exactly normal in place of a mixture: see :func:`with_normal`.
    """
    from bayesstruct.sem.kernels.errors import ALL_LOCATIONS, ALL_WIDTHS, BASE

    if noise != "mixture":
        return NoiseLaw(noise)
    size = len(BASE) + int(normal)
    return NoiseLaw(noise, tuple(ALL_LOCATIONS[:size].tolist()), tuple(ALL_WIDTHS[:size].tolist()))


def with_normal(weights, normal):
    """Return the weights of the components of a mixture and of the standard normal one.

    Parameters
    ----------
    weights : (..., d, K) array
        Of the components of a mixture.
    normal : (..., d) array
        1 where the noise of the column is exactly normal, 0 where it is the mixture.

    Returns
    -------
    (..., d, K + 1) array
    """
    alone = np.asarray(normal, float)[..., None]
    return np.concatenate([weights * (1.0 - alone), alone], axis=-1)
