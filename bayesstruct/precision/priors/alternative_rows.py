r"""Rows of a table that have an alternative t distribution, in the units of the table.

A row is :math:`x = \ell + s \circ z` with :math:`z_j = \mu_j + e_j / \sqrt{w_j}`, :math:`e \sim N(0, K^{-1})` and independent weights
:math:`w_j \sim \mathrm{Gamma}(\nu / 2, \nu / 2)`, one for each value (Finegold and Drton 2011, 2014). Rows with a multivariate t
distribution have one weight for all their values. Each value has a t distribution with :math:`\nu` degrees of freedom in both.

The density of the observed values has no closed form, so that the weights are a variable of the model: :class:`ValueWeights`, whose density is
that of the weights and of the observed values together. It is not normalised over the weights: its integral is the likelihood.
Missing values given all weights and the observed values are normal, :class:`MissingWeightedValues`.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.distributions.transforms import _default_transform
from pymc.logprob.transforms import LogTransform
from pymc.pytensorf import normalize_rng_param
from pytensor.graph.basic import Constant
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.tensors import as_float
from bayesstruct.precision.priors.row_algebra import (
    LOG_2PI,
    conditional_values,
    draw_rows,
    log_det,
    mean_rows,
    observed_part,
    row_params,
    rows_times,
    standardized,
)

__all__ = ["AlternativeStudent", "MissingWeightedValues", "ValueWeights"]

_REFUSED = (
    "the rows have no log likelihood: their density is an integral over the weights of all values of a row, which has no closed form. "
    'Compare replicated tables (bs.predictive_correlations), or fit marginals="student" or "gaussian", whose rows have one'
)


def is_zero(missing) -> bool:
    """Whether a constant matrix says that nothing is missing."""
    return isinstance(missing, Constant) and not missing.data.any()


def _standard(table, mean, location, scale, weights, missing):
    """Residuals multiplied by the roots of their weights, zero where values are missing."""
    filled = pt.switch(missing, location, table)
    return (1.0 - missing) * pt.sqrt(weights) * standardized(filled, mean, location, scale)


class _MatrixLog(LogTransform):
    """Logarithms of the elements of a matrix that is one variable."""

    ndim_supp = 2

    def log_jac_det(self, value, *inputs):
        """Sum of the logarithms."""
        return value.sum((-2, -1))


class ValueWeightsRV(SymbolicRandomVariable):
    name = "value_weights"
    extended_signature = "[rng],(n,p),(p,p),(p),(p),(),(n,p),(n,p)->[rng],(n,p)"
    _print_name = ("ValueWeights", "\\operatorname{ValueWeights}")

    @classmethod
    def rv_op(
        cls, mean, precision, location, scale, degrees, table, missing, *, size=None, rng=None
    ):
        """Build the graph of a draw."""
        rng = normalize_rng_param(rng)
        params = (mean, precision, location, scale, degrees, table, missing)
        drawn = _draw_weights(rng, degrees, table.shape)
        return cls(inputs=[rng, *params], outputs=[*drawn])(rng, *params)


def _draw_weights(rng, degrees, size):
    return pt.random.gamma(
        0.5 * degrees, scale=2.0 / degrees, size=size, rng=rng, return_next_rng=True
    )


class ValueWeights(Continuous):
    r"""Weights of all values of a table with alternative t rows, and the density of its observed values.

    .. math:: p(w) \prod_i N(e_{i, \mathrm{obs}}; 0, (K^{-1})_{\mathrm{obs}}) \prod_{j\, \mathrm{obs}} \sqrt{w_{ij}} / s_j, \quad
        e_{ij} = \sqrt{w_{ij}} ((x_{ij} - \ell_j) / s_j - \mu_j)

    Draws are of the prior of the weights, whatever the table.

    Parameters
    ----------
    mean : tensor_like of float
        :math:`\mu`, (p,) or one for each row, (n, p), on the standardised scale.
    precision : tensor_like of float
        :math:`K`, (p, p), positive definite.
    location, scale : tensor_like of float
        :math:`\ell` and :math:`s > 0`, (p,), in the units of the table.
    degrees : tensor_like of float
        :math:`\nu > 0`, degrees of freedom.
    table : array_like of float
        (n, p), in its units; missing entries are ignored.
    missing : array_like of bool, optional
        (n, p), true where a value was not observed.

    References
    ----------
    Finegold, M. and Drton, M. (2011). Robust graphical modeling of gene networks using classical and alternative t-distributions.
    *Annals of Applied Statistics* 5(2A), 1057-1080.
    """

    rv_type = ValueWeightsRV
    rv_op = ValueWeightsRV.rv_op

    @classmethod
    def dist(
        cls,
        mean,
        precision,
        location=0.0,
        scale=1.0,
        degrees=4.0,
        *,
        table,
        missing=None,
        **kwargs,
    ):
        """Create the distribution without a model."""
        table = np.asarray(table, "float64")
        missing = np.zeros(table.shape) if missing is None else np.asarray(missing, "float64")
        table = np.where(missing > 0, 0.0, table)
        mean, *others = row_params(mean, precision, location, scale)
        mean = pt.broadcast_to(mean, table.shape)
        params = [mean, *others, as_float(degrees), as_float(table), as_float(missing)]
        return super().dist(params, **kwargs)

    def support_point(rv, mean, precision, location, scale, degrees, table, missing):
        """Return ones."""
        return pt.ones_like(table)

    def logp(value, mean, precision, location, scale, degrees, table, missing):
        """Log density of the weights and the observed values together."""
        half = 0.5 * degrees
        prior = half * pt.log(half) - pt.gammaln(half)
        prior = prior + (half - 1.0) * pt.log(value) - half * value
        e = _standard(table, mean, location, scale, value, missing)
        if is_zero(missing):
            quadratic, determinant = (rows_times(e, precision) * e).sum(-1), log_det(precision)
        else:
            quadratic, determinant = observed_part(e, precision, missing)
        each = 0.5 * pt.log(value) - 0.5 * LOG_2PI - pt.log(scale)
        fit = 0.5 * (determinant - quadratic) + ((1.0 - missing) * each).sum(-1)
        logp = pt.switch(pt.all(value > 0), prior.sum() + fit.sum(), -np.inf)
        return check_parameters(
            logp, pt.all(scale > 0), pt.all(degrees > 0), msg="scale > 0, degrees > 0"
        )


@_default_transform.register(ValueWeightsRV)
def _(op, rv):
    return _MatrixLog()


class MissingWeightedCellsRV(SymbolicRandomVariable):
    name = "missing_weighted_cells"
    extended_signature = "[rng],(n,p),(p,p),(p),(p),(n,p),(n,p),(n,p)->[rng],(m)"
    _print_name = ("MissingWeightedValues", "\\operatorname{MissingWeightedValues}")

    @classmethod
    def rv_op(
        cls, mean, precision, location, scale, weights, table, missing, *, size=None, rng=None
    ):
        """Build the graph of a draw."""
        rng = normalize_rng_param(rng)
        params = (mean, precision, location, scale, weights, table, missing)
        centre, block, rows, columns = _conditional(*params)
        next_rng, noise = pt.random.normal(
            0.0, 1.0, size=centre.shape, rng=rng, return_next_rng=True
        )
        factor = pt.linalg.cholesky(block)
        e = centre + pt.linalg.solve_triangular(factor.mT, noise, lower=False, b_ndim=1)
        x = location + scale * (mean + e / pt.sqrt(weights))
        return cls(inputs=[rng, *params], outputs=[next_rng, x[rows, columns]])(rng, *params)


def _conditional(mean, precision, location, scale, weights, table, missing):
    """Conditional means of the missing weighted residuals, their blocks of K, and their places."""
    e = _standard(table, mean, location, scale, weights, missing)
    return conditional_values(0.0, precision, 0.0, 1.0, e, missing)


class MissingWeightedValues(Continuous):
    r"""Missing values of a table with alternative t rows given its observed ones and all weights, in the units of the table.

    Parameters
    ----------
    mean, precision, location, scale
        As in :class:`ValueWeights`.
    weights : tensor_like of float
        (n, p), of all values.
    table : array_like of float
        (n, p), the observed values; missing entries are ignored.
    missing : array_like of bool
        (n, p), true where a value was not observed.
    """

    rv_type = MissingWeightedCellsRV
    rv_op = MissingWeightedCellsRV.rv_op

    @classmethod
    def dist(
        cls, mean, precision, location=0.0, scale=1.0, weights=1.0, *, table, missing, **kwargs
    ):
        """Create the distribution without a model."""
        mean, *others = row_params(mean, precision, location, scale)
        missing = np.asarray(missing, dtype="float64")
        table = np.where(missing > 0, 0.0, np.asarray(table, dtype="float64"))
        mean, weights = (pt.broadcast_to(v, table.shape) for v in (mean, as_float(weights)))
        params = [mean, *others, weights, as_float(table), as_float(missing)]
        return super().dist(params, **kwargs)

    def support_point(rv, mean, precision, location, scale, weights, table, missing):
        """Return the conditional means."""
        params = (mean, precision, location, scale, weights, table, missing)
        centre, _, rows, columns = _conditional(*params)
        return (location + scale * (mean + centre / pt.sqrt(weights)))[rows, columns]

    def logp(value, mean, precision, location, scale, weights, table, missing):
        """Log density of all missing values together."""
        params = (mean, precision, location, scale, weights, table, missing)
        centre, block, rows, columns = _conditional(*params)
        filled = pt.zeros_like(table)[rows, columns].set(value)
        e = pt.sqrt(weights) * standardized(filled, mean, location, scale)
        e = missing * (e - centre)
        quadratic = (rows_times(e, block) * e).sum()
        constant = (missing * (0.5 * pt.log(weights) - 0.5 * LOG_2PI - pt.log(scale))).sum()
        return constant + 0.5 * (log_det(block).sum() - quadratic)


class AlternativeStudentRV(SymbolicRandomVariable):
    name = "alternative_student"
    extended_signature = "[rng],[size],(p),(p,p),(p),(p),()->[rng],(p)"
    _print_name = ("AlternativeStudent", "\\operatorname{AlternativeStudent}")

    @classmethod
    def rv_op(cls, mean, precision, location, scale, degrees, *, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        params = (mean, precision, location, scale, degrees)
        next_rng, rows = draw_rows(rng, size, mean, precision, location, scale)
        next_rng, weights = _draw_weights(next_rng, degrees, rows.shape)
        centre = location + scale * mean
        drawn = centre + (rows - centre) / pt.sqrt(weights)
        return cls(inputs=[rng, size, *params], outputs=[next_rng, drawn])(rng, size, *params)


class AlternativeStudent(Continuous):
    r"""Rows with an alternative t distribution, whose weights are drawn with them.

    The log density is zero: the likelihood of an observed table is in :class:`ValueWeights`.

    Parameters
    ----------
    mean, precision, location, scale, degrees
        As in :class:`ValueWeights`; `mean` is (p,) or one for each row, (n, p).
    """

    rv_type = AlternativeStudentRV
    rv_op = AlternativeStudentRV.rv_op

    @classmethod
    def dist(cls, mean, precision, location=0.0, scale=1.0, degrees=4.0, **kwargs):
        """Create the distribution without a model."""
        params = [*row_params(mean, precision, location, scale), as_float(degrees)]
        return super().dist(params, **kwargs)

    def support_point(rv, size, mean, precision, location, scale, degrees):
        """Return the location of the rows."""
        return mean_rows(size, mean, location, scale)

    def logp(value, mean, precision, location, scale, degrees):
        """Zero for each row; a function of these alone is refused when it is made."""
        return row_densities(pt.zeros_like(value[..., 0]), refused=_REFUSED)
