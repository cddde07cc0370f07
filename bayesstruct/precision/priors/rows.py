r"""Rows of a table that are normal with a given precision matrix, in the units of the table.

A row is :math:`x = \ell + s \circ z` with :math:`z \sim N(\mu, K^{-1})`; the constants
:math:`\ell, s` are the location and scale by which the table was standardised, so that priors live
on the standardised scale and draws come back in the units of the table.

Values may be missing. The likelihood of a row is then that of its observed values, and the missing
ones are a variable of their own, :class:`MissingValues`, whose distribution given the observed ones
makes the two together the complete row. With ``m`` the missing and ``o`` the observed ones and
:math:`e = z - \mu`,

.. math::

    e_m \mid e_o \sim N(-K_{mm}^{-1} K_{mo} e_o, K_{mm}^{-1}), \qquad
    \log p(e_o) = \tfrac12 (\log|K| - \log|K_{mm}|)
        - \tfrac12 (e_o' K_{oo} e_o - e_o' K_{om} K_{mm}^{-1} K_{mo} e_o) + c .
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.continuous import Normal
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.basic import NormalRV
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

__all__ = ["ColumnMeans", "GraphicalNormal", "IncompleteGraphicalNormal", "MissingValues"]


class GraphicalNormalRV(SymbolicRandomVariable):
    name = "graphical_normal"
    extended_signature = "[rng],[size],(p),(p,p),(p),(p)->[rng],(p)"
    _print_name = ("GraphicalNormal", "\\operatorname{GraphicalNormal}")

    @classmethod
    def rv_op(cls, mean, precision, location, scale, *, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        params = (mean, precision, location, scale)
        return cls(inputs=[rng, size, *params], outputs=[*draw_rows(rng, size, *params)])(
            rng, size, *params
        )


class GraphicalNormal(Continuous):
    r"""Normal rows with a given precision matrix, in the units of the table.

    .. math:: x = \ell + s \circ z, \qquad z \sim N(\mu, K^{-1})

    Parameters
    ----------
    mean : tensor_like of float
        :math:`\mu`, (p,) or one for each row, (n, p), on the standardised scale.
    precision : tensor_like of float
        :math:`K`, (p, p), positive definite.
    location, scale : tensor_like of float
        :math:`\ell` and :math:`s > 0`, (p,), in the units of the table.
    """

    rv_type = GraphicalNormalRV
    rv_op = GraphicalNormalRV.rv_op

    @classmethod
    def dist(cls, mean, precision, location=0.0, scale=1.0, **kwargs):
        """Create the distribution without a model."""
        return super().dist(row_params(mean, precision, location, scale), **kwargs)

    def support_point(rv, size, mean, precision, location, scale):
        """Return the mean row."""
        return mean_rows(size, mean, location, scale)

    def logp(value, mean, precision, location, scale):
        """Log density of each row."""
        e = standardized(value, mean, location, scale)
        quadratic = (rows_times(e, precision) * e).sum(-1)
        constant = -0.5 * value.shape[-1] * LOG_2PI - pt.log(scale).sum(-1)
        logp = constant + 0.5 * (log_det(precision) - quadratic)
        return row_densities(check_parameters(logp, pt.all(scale > 0), msg="scale > 0"))


class IncompleteGraphicalNormalRV(SymbolicRandomVariable):
    name = "incomplete_graphical_normal"
    extended_signature = "[rng],[size],(p),(p,p),(p),(p),(p)->[rng],(p)"
    _print_name = ("IncompleteGraphicalNormal", "\\operatorname{IncompleteGraphicalNormal}")

    @classmethod
    def rv_op(cls, mean, precision, location, scale, missing, *, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        params = (mean, precision, location, scale)
        outputs = draw_rows(rng, size, *params, missing)
        return cls(inputs=[rng, size, *params, missing], outputs=[*outputs])(
            rng, size, *params, missing
        )


class IncompleteGraphicalNormal(Continuous):
    r"""Normal rows of which some values were not observed.

    ``logp`` is that of the observed values of each row; entries of the value that are missing have
    no influence on it. Draws are complete rows, as replicated tables should be.

    Parameters
    ----------
    mean, precision, location, scale
        As in :class:`GraphicalNormal`.
    missing : array_like of bool
        (n, p), true where a value was not observed.
    """

    rv_type = IncompleteGraphicalNormalRV
    rv_op = IncompleteGraphicalNormalRV.rv_op

    @classmethod
    def dist(cls, mean, precision, location=0.0, scale=1.0, *, missing, **kwargs):
        """Create the distribution without a model."""
        params = [*row_params(mean, precision, location, scale), as_float(missing)]
        return super().dist(params, **kwargs)

    def support_point(rv, size, mean, precision, location, scale, missing):
        """Return the mean row, for each row of the table."""
        return mean_rows(size, mean, location, scale) + pt.zeros_like(missing)

    def logp(value, mean, precision, location, scale, missing):
        """Log density of the observed values of each row."""
        observed = 1.0 - missing
        filled = pt.switch(missing, location, value)
        e = observed * standardized(filled, mean, location, scale)
        quadratic, determinants = observed_part(e, precision, missing)
        constant = -(observed * (0.5 * LOG_2PI + pt.log(scale))).sum(-1)
        logp = constant + 0.5 * (determinants - quadratic)
        return row_densities(check_parameters(logp, pt.all(scale > 0), msg="scale > 0"))


class MissingCellsRV(SymbolicRandomVariable):
    name = "missing_cells"
    extended_signature = "[rng],(n,p),(p,p),(p),(p),(n,p),(n,p)->[rng],(m)"
    _print_name = ("MissingValues", "\\operatorname{MissingValues}")

    @classmethod
    def rv_op(cls, mean, precision, location, scale, table, missing, *, size=None, rng=None):
        """Build the graph of a draw."""
        rng = normalize_rng_param(rng)
        params = (mean, precision, location, scale, table, missing)
        centre, block, rows, columns = conditional_values(*params)
        noise_shape = centre.shape
        next_rng, noise = pt.random.normal(
            0.0, 1.0, size=noise_shape, rng=rng, return_next_rng=True
        )
        factor = pt.linalg.cholesky(block)
        e = centre + pt.linalg.solve_triangular(factor.mT, noise, lower=False, b_ndim=1)
        x = location + scale * (mean + e)
        return cls(inputs=[rng, *params], outputs=[next_rng, x[rows, columns]])(rng, *params)


class MissingValues(Continuous):
    r"""Missing values of a table given its observed ones, in the units of the table.

    The conditional distribution at the top of this module, in row-major order.

    Parameters
    ----------
    mean, precision, location, scale
        As in :class:`GraphicalNormal`.
    table : array_like of float
        (n, p), the observed values; missing entries are ignored.
    missing : array_like of bool
        (n, p), true where a value was not observed.
    """

    rv_type = MissingCellsRV
    rv_op = MissingCellsRV.rv_op

    @classmethod
    def dist(cls, mean, precision, location=0.0, scale=1.0, *, table, missing, **kwargs):
        """Create the distribution without a model."""
        mean, *others = row_params(mean, precision, location, scale)
        missing = np.asarray(missing, dtype="float64")
        table = np.where(missing > 0, 0.0, np.asarray(table, dtype="float64"))
        mean = pt.broadcast_to(mean, table.shape)
        return super().dist([mean, *others, as_float(table), as_float(missing)], **kwargs)

    def support_point(rv, mean, precision, location, scale, table, missing):
        """Return the conditional means."""
        centre, _, rows, columns = conditional_values(
            mean, precision, location, scale, table, missing
        )
        return (location + scale * (mean + centre))[rows, columns]

    def logp(value, mean, precision, location, scale, table, missing):
        """Log density of all missing values together."""
        params = (mean, precision, location, scale, table, missing)
        centre, block, rows, columns = conditional_values(*params)
        filled = pt.zeros_like(table)[rows, columns].set(value)
        e = missing * (standardized(filled, mean, location, scale) - centre)
        quadratic = (rows_times(e, block) * e).sum()
        constant = -(missing * (0.5 * LOG_2PI + pt.log(scale))).sum()
        return constant + 0.5 * (log_det(block).sum() - quadratic)


class ColumnMeansRV(NormalRV):
    """A normal by another type; the name stays, since compilers go by it."""


class ColumnMeans(Normal):
    """Independent normal means of the columns of a table.

    The distribution is that of ``pm.Normal``; the type lets the Gibbs step of the precision matrix
    draw them too, from their exact conditional.
    """

    rv_op = ColumnMeansRV()
