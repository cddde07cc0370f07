"""Sample covariance matrix of normal rows with a given precision matrix."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.pytensorf import normalize_rng_param

from bayesstruct.core.tensors import as_float, draw_scatter

__all__ = ["GraphicalCovariance"]

_LOG_2PI = np.log(2.0 * np.pi)


class GraphicalCovarianceRV(SymbolicRandomVariable):
    """Sample covariance matrix of normal rows."""

    name = "graphical_covariance"
    extended_signature = "[rng],(p),(p,p),(p),()->[rng],(p,p)"
    _print_name = ("GraphicalCovariance", "\\operatorname{GraphicalCovariance}")

    @classmethod
    def rv_op(cls, mean, precision, scale, n, *, size=None, rng=None):
        """Build the graph of a draw."""
        rng = normalize_rng_param(rng)
        lower = pt.linalg.cholesky(precision)
        factor = pt.linalg.solve_triangular(lower.T, pt.eye(lower.shape[-1]), lower=False)
        next_rng, scatter = draw_scatter(rng, n, factor)
        draw = scatter / (n - 1.0) * pt.outer(scale, scale)
        inputs = [rng, mean, precision, scale, n]
        return cls(inputs=inputs, outputs=[next_rng, draw])(*inputs)


class GraphicalCovariance(Continuous):
    r"""Sample covariance matrix of normal rows, in the units of the table.

    Its likelihood is that of n rows with this covariance matrix (divisor n - 1) whose means are zero
    on the standardised scale; draws are covariance matrices of n rows.

    Parameters
    ----------
    mean : tensor_like of float
        (p,), on the standardised scale.
    precision : tensor_like of float
        (p, p), positive definite, of standardised rows.
    scale : tensor_like of float
        (p,), standard deviations by which columns were standardised.
    n : int
        Number of rows.
    """

    rv_type = GraphicalCovarianceRV
    rv_op = GraphicalCovarianceRV.rv_op

    @classmethod
    def dist(cls, mean, precision, scale, n, **kwargs):
        """Create the distribution without a model."""
        return super().dist([as_float(v) for v in (mean, precision, scale, n)], **kwargs)

    def support_point(rv, mean, precision, scale, n):
        """Return uncorrelated columns."""
        return pt.diag(scale**2)

    def logp(value, mean, precision, scale, n):
        """Log density of all rows together."""
        scatter = (n - 1.0) * value / pt.outer(scale, scale)
        quadratic = (precision * scatter).sum() + n * mean @ precision @ mean
        log_det = 2.0 * pt.log(pt.diagonal(pt.linalg.cholesky(precision))).sum()
        constant = -n * (0.5 * scale.shape[0] * _LOG_2PI + pt.log(scale).sum())
        logp = constant + 0.5 * (n * log_det - quadratic)
        return check_parameters(logp, pt.all(scale > 0), msg="scale > 0")
