"""Sample covariance matrix of the rows of a Gaussian Bayesian network."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param

from bayesstruct.core.tensors import as_float, draw_scatter, refuse_size

if TYPE_CHECKING:
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = ["NetworkCovariance", "NetworkCovarianceRV"]

_LOG_2PI = np.log(2.0 * np.pi)


class NetworkCovarianceRV(SymbolicRandomVariable):
    """Sample covariance matrix of the rows of a network."""

    name = "network_covariance"
    extended_signature = "[rng],(d),(d,d),(d),(d),()->[rng],(d,d)"
    _print_name = ("NetworkCovariance", "\\operatorname{NetworkCovariance}")

    @classmethod
    def rv_op(cls, intercept, coefficients, variance, scale, n, *, size=None, rng=None):
        """Build the graph of a draw."""
        refuse_size(size, "sample covariance matrix")
        rng = normalize_rng_param(rng)
        factor = pt.linalg.solve(_residual_matrix(coefficients), pt.diag(pt.sqrt(variance)))
        next_rng, scatter = draw_scatter(rng, n, factor)
        draw = scatter / (n - 1.0) * pt.outer(scale, scale)
        inputs = [rng, intercept, coefficients, variance, scale, n]
        return cls(inputs=inputs, outputs=[next_rng, draw])(*inputs)


class NetworkCovariance(Continuous):
    r"""Sample covariance matrix of rows of a Gaussian Bayesian network, in the units of the table.

    Its likelihood is that of n rows of a :class:`bayesstruct.distributions.GaussianNetwork` with this covariance
    matrix (divisor n - 1) whose means are zero on the standardised scale; draws are covariance
    matrices of n rows.

    Parameters
    ----------
    intercept, variance : tensor_like of float
        (d,), on the standardised scale.
    coefficients : tensor_like of float
        (d, d), rows as children, those of an acyclic graph.
    scale : tensor_like of float
        (d,), standard deviations by which columns were standardised.
    n : int
        Number of rows.
    """

    rv_type = NetworkCovarianceRV
    rv_op = NetworkCovarianceRV.rv_op

    @classmethod
    def dist(
        cls,
        intercept: "TensorLike",
        coefficients: "TensorLike",
        variance: "TensorLike",
        scale: "TensorLike",
        n: "TensorLike",
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        params = [as_float(v) for v in (intercept, coefficients, variance, scale, n)]
        return super().dist(params, **kwargs)

    def support_point(rv, intercept, coefficients, variance, scale, n):
        """Return uncorrelated columns."""
        return pt.diag(scale**2)


@_logprob.register(NetworkCovarianceRV)
def _covariance_logp(op, values, rng, intercept, coefficients, variance, scale, n, **kwargs):
    (value,) = values
    residual = _residual_matrix(coefficients)
    scatter = (n - 1.0) * value / pt.outer(scale, scale)
    squares = ((residual @ scatter) * residual).sum(axis=-1) + n * intercept**2
    terms = -0.5 * (squares / variance + n * (pt.log(variance) + _LOG_2PI)) - n * pt.log(scale)
    return terms.sum()


def _residual_matrix(coefficients):
    """Matrix that turns a row into its residuals, but for the intercepts."""
    return pt.eye(coefficients.shape[-1]) - coefficients
