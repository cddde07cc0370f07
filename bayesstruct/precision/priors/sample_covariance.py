"""Sample covariance matrices of normal rows with given precision matrices."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.pytensorf import normalize_rng_param

from bayesstruct.core.tensors import as_float, draw_scatter, refuse_size
from bayesstruct.precision.priors.group_rows import claim_means

__all__ = ["GraphicalCovariance", "GroupedCovariance"]

_LOG_2PI = np.log(2.0 * np.pi)


class GraphicalCovarianceRV(SymbolicRandomVariable):
    """Sample covariance matrix of normal rows."""

    name = "graphical_covariance"
    extended_signature = "[rng],(p),(p,p),(p),()->[rng],(p,p)"
    _print_name = ("GraphicalCovariance", "\\operatorname{GraphicalCovariance}")

    @classmethod
    def rv_op(cls, mean, precision, scale, n, *, size=None, rng=None):
        """Build the graph of a draw."""
        refuse_size(size, "sample covariance matrix")
        rng = normalize_rng_param(rng)
        next_rng, draw = _draw(rng, precision, scale, n)
        inputs = [rng, mean, precision, scale, n]
        return cls(inputs=inputs, outputs=[next_rng, draw])(*inputs)


def _draw(rng, precision, scale, n):
    """Next generator and the covariance matrix of n rows."""
    lower = pt.linalg.cholesky(precision)
    factor = pt.linalg.solve_triangular(lower.T, pt.eye(lower.shape[-1]), lower=False)
    rng, scatter = draw_scatter(rng, n, factor)
    return rng, scatter / (n - 1.0) * pt.outer(scale, scale)


def _log_density(value, mean, precision, scale, n):
    """Log density of n rows with this covariance matrix, whose means are zero on the standardised scale."""
    scatter = (n - 1.0) * value / pt.outer(scale, scale)
    quadratic = (precision * scatter).sum() + n * mean @ precision @ mean
    log_det = 2.0 * pt.log(pt.diagonal(pt.linalg.cholesky(precision))).sum()
    constant = -n * (0.5 * scale.shape[0] * _LOG_2PI + pt.log(scale).sum())
    return constant + 0.5 * (n * log_det - quadratic)


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
        logp = _log_density(value, mean, precision, scale, n)
        return check_parameters(logp, pt.all(scale > 0), msg="scale > 0")


class GroupedCovarianceRV(SymbolicRandomVariable):
    """Sample covariance matrices of the rows of several groups."""

    name = "grouped_covariance"
    extended_signature = "[rng],(g,p),(g,p,p),(g,p),(g)->[rng],(g,p,p)"
    _print_name = ("GroupedCovariance", "\\operatorname{GroupedCovariance}")

    @classmethod
    def rv_op(cls, mean, precision, scale, n, *, size=None, rng=None):
        """Build the graph of a draw."""
        refuse_size(size, "set of sample covariance matrices")
        rng = next_rng = normalize_rng_param(rng)
        draws = []
        for g in range(precision.type.shape[0]):
            next_rng, draw = _draw(next_rng, precision[g], scale[g], n[g])
            draws.append(draw)
        inputs = [rng, mean, precision, scale, n]
        return cls(inputs=inputs, outputs=[next_rng, pt.stack(draws)])(*inputs)


class GroupedCovariance(Continuous):
    r"""Sample covariance matrices of the normal rows of several groups, in the units of the table.

    Independent :class:`GraphicalCovariance`, one for each group.

    Parameters
    ----------
    mean : tensor_like of float
        (G, p), on the standardised scale.
    precision : tensor_like of float
        (G, p, p), positive definite, of standardised rows.
    scale : tensor_like of float
        (G, p), standard deviations by which columns were standardised.
    n : tensor_like of int
        (G,), numbers of rows.
    """

    rv_type = GroupedCovarianceRV
    rv_op = GroupedCovarianceRV.rv_op

    @classmethod
    def dist(cls, mean, precision, scale, n, **kwargs):
        """Create the distribution without a model."""
        claim_means(mean)
        return super().dist([as_float(v) for v in (mean, precision, scale, n)], **kwargs)

    def support_point(rv, mean, precision, scale, n):
        """Return uncorrelated columns."""
        return pt.eye(scale.shape[-1]) * pt.square(scale)[..., None]

    def logp(value, mean, precision, scale, n):
        """Log density of all rows of all groups together."""
        own = [
            _log_density(value[g], mean[g], precision[g], scale[g], n[g])
            for g in range(precision.type.shape[0])
        ]
        return check_parameters(sum(own), pt.all(scale > 0), msg="scale > 0")
