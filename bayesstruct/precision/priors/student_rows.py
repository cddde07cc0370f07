r"""Rows of a table that have a multivariate t distribution, in the units of the table.

A row is :math:`x = \ell + s \circ z` with :math:`z = \mu + e / \sqrt{w}`, :math:`e \sim N(0, K^{-1})` and one weight
:math:`w \sim \mathrm{Gamma}(\nu / 2, \nu / 2)` for the row, so that K is the inverse of the scale matrix. The weights are
integrated out of all densities. With ``m`` the missing and ``o`` the observed values of a row, d of them, and
:math:`q = e_o' (K_{oo} - K_{om} K_{mm}^{-1} K_{mo}) e_o`,

.. math::

    \log p(e_o) = \log \Gamma(\tfrac{\nu + d}{2}) - \log \Gamma(\tfrac{\nu}{2}) - \tfrac d2 \log(\nu \pi)
        + \tfrac12 (\log |K| - \log |K_{mm}|) - \tfrac{\nu + d}{2} \log(1 + q / \nu),

and the missing ones given these are again t, with :math:`\nu + d` degrees of freedom, the conditional mean of the normal
distribution and the scale matrix :math:`K_{mm}^{-1} (\nu + q) / (\nu + d)`.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.continuous import Gamma
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.basic import GammaRV
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.tensors import as_float
from bayesstruct.precision.priors.row_algebra import (
    conditional_values,
    draw_rows,
    log_det,
    mean_rows,
    observed_part,
    row_params,
    rows_times,
    standardized,
)

__all__ = [
    "DegreesOfFreedom",
    "GraphicalStudent",
    "IncompleteGraphicalStudent",
    "MissingStudentValues",
]

_PI = np.pi


class DegreesOfFreedomRV(GammaRV):
    """A gamma variable by another type; the name stays, since compilers go by it."""


class DegreesOfFreedom(Gamma):
    """Degrees of freedom with a gamma distribution.

    The distribution is that of ``pm.Gamma``; the type lets the Gibbs step of the precision matrix draw them too.
    """

    rv_op = DegreesOfFreedomRV()


def _draw_student(rng, size, mean, precision, location, scale, degrees, *others):
    """Draw complete rows; returns the next generator and the rows."""
    rng, rows = draw_rows(rng, size, mean, precision, location, scale, *others)
    rng, weight = pt.random.gamma(
        0.5 * degrees, scale=2.0 / degrees, size=rows.shape[:-1], rng=rng, return_next_rng=True
    )
    centre = location + scale * mean
    return rng, centre + (rows - centre) / pt.sqrt(weight)[..., None]


def _log_student(quadratic, size, determinant, degrees):
    """Log density of a t vector from its quadratic form, its size and the log determinant of K."""
    total = degrees + size
    constant = pt.gammaln(0.5 * total) - pt.gammaln(0.5 * degrees)
    constant = constant - 0.5 * size * pt.log(degrees * _PI) + 0.5 * determinant
    return constant - 0.5 * total * pt.log1p(quadratic / degrees)


def _checked(logp, scale, degrees):
    return check_parameters(
        logp, pt.all(scale > 0), pt.all(degrees > 0), msg="scale > 0, degrees > 0"
    )


def _observed_part(value, mean, precision, location, scale, missing):
    """Quadratic form of the observed values of each row, their number, and the log determinant of their precision."""
    observed = 1.0 - missing
    filled = pt.switch(missing, location, value)
    e = observed * standardized(filled, mean, location, scale)
    quadratic, determinant = observed_part(e, precision, missing)
    return quadratic, observed.sum(-1), determinant


class GraphicalStudentRV(SymbolicRandomVariable):
    name = "graphical_student"
    extended_signature = "[rng],[size],(p),(p,p),(p),(p),()->[rng],(p)"
    _print_name = ("GraphicalStudent", "\\operatorname{GraphicalStudent}")

    @classmethod
    def rv_op(cls, mean, precision, location, scale, degrees, *, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        params = (mean, precision, location, scale, degrees)
        return cls(inputs=[rng, size, *params], outputs=[*_draw_student(rng, size, *params)])(
            rng, size, *params
        )


class GraphicalStudent(Continuous):
    r"""Rows with a multivariate t distribution and a given precision matrix, in the units of the table.

    .. math:: x = \ell + s \circ (\mu + e / \sqrt{w}), \quad e \sim N(0, K^{-1}), \quad
        w \sim \mathrm{Gamma}(\nu / 2, \nu / 2)

    Parameters
    ----------
    mean : tensor_like of float
        :math:`\mu`, (p,) or one for each row, (n, p), on the standardised scale.
    precision : tensor_like of float
        :math:`K`, (p, p), positive definite: the inverse of the scale matrix, so that the covariance matrix is
        :math:`K^{-1} \nu / (\nu - 2)`.
    location, scale : tensor_like of float
        :math:`\ell` and :math:`s > 0`, (p,), in the units of the table.
    degrees : tensor_like of float
        :math:`\nu > 0`, degrees of freedom.
    """

    rv_type = GraphicalStudentRV
    rv_op = GraphicalStudentRV.rv_op

    @classmethod
    def dist(cls, mean, precision, location=0.0, scale=1.0, degrees=4.0, **kwargs):
        """Create the distribution without a model."""
        params = [*row_params(mean, precision, location, scale), as_float(degrees)]
        return super().dist(params, **kwargs)

    def support_point(rv, size, mean, precision, location, scale, degrees):
        """Return the location of the rows."""
        return mean_rows(size, mean, location, scale)

    def logp(value, mean, precision, location, scale, degrees):
        """Log density of each row."""
        e = standardized(value, mean, location, scale)
        quadratic = (rows_times(e, precision) * e).sum(-1)
        size = pt.cast(value.shape[-1], "float64")
        logp = _log_student(quadratic, size, log_det(precision), degrees) - pt.log(scale).sum(-1)
        return row_densities(_checked(logp, scale, degrees))


class IncompleteGraphicalStudentRV(SymbolicRandomVariable):
    name = "incomplete_graphical_student"
    extended_signature = "[rng],[size],(p),(p,p),(p),(p),(),(p)->[rng],(p)"
    _print_name = ("IncompleteGraphicalStudent", "\\operatorname{IncompleteGraphicalStudent}")

    @classmethod
    def rv_op(cls, mean, precision, location, scale, degrees, missing, *, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        params = (mean, precision, location, scale, degrees, missing)
        return cls(inputs=[rng, size, *params], outputs=[*_draw_student(rng, size, *params)])(
            rng, size, *params
        )


class IncompleteGraphicalStudent(Continuous):
    r"""Rows with a multivariate t distribution of which some values were not observed.

    ``logp`` is that of the observed values of each row. Draws are complete rows.

    Parameters
    ----------
    mean, precision, location, scale, degrees
        As in :class:`GraphicalStudent`.
    missing : array_like of bool
        (n, p), true where a value was not observed.
    """

    rv_type = IncompleteGraphicalStudentRV
    rv_op = IncompleteGraphicalStudentRV.rv_op

    @classmethod
    def dist(cls, mean, precision, location=0.0, scale=1.0, degrees=4.0, *, missing, **kwargs):
        """Create the distribution without a model."""
        rows = row_params(mean, precision, location, scale)
        return super().dist([*rows, as_float(degrees), as_float(missing)], **kwargs)

    def support_point(rv, size, mean, precision, location, scale, degrees, missing):
        """Return the location, for each row of the table."""
        return mean_rows(size, mean, location, scale) + pt.zeros_like(missing)

    def logp(value, mean, precision, location, scale, degrees, missing):
        """Log density of the observed values of each row."""
        rows = (mean, precision, location, scale, missing)
        quadratic, size, determinant = _observed_part(value, *rows)
        logp = _log_student(quadratic, size, determinant, degrees)
        logp -= ((1.0 - missing) * pt.log(scale)).sum(-1)
        return row_densities(_checked(logp, scale, degrees))


class MissingStudentCellsRV(SymbolicRandomVariable):
    name = "missing_student_cells"
    extended_signature = "[rng],(n,p),(p,p),(p),(p),(),(n,p),(n,p)->[rng],(m)"
    _print_name = ("MissingStudentValues", "\\operatorname{MissingStudentValues}")

    @classmethod
    def rv_op(
        cls, mean, precision, location, scale, degrees, table, missing, *, size=None, rng=None
    ):
        """Build the graph of a draw."""
        rng = normalize_rng_param(rng)
        params = (mean, precision, location, scale, degrees, table, missing)
        quadratic, seen, _ = _observed_part(table, mean, precision, location, scale, missing)
        centre, block, rows, columns = conditional_values(
            mean, precision, location, scale, table, missing
        )
        next_rng, weight = pt.random.gamma(
            0.5 * (degrees + seen), scale=2.0 / (degrees + quadratic), rng=rng, return_next_rng=True
        )
        next_rng, noise = pt.random.normal(
            0.0, 1.0, size=centre.shape, rng=next_rng, return_next_rng=True
        )
        factor = pt.linalg.cholesky(block)
        noise = pt.linalg.solve_triangular(factor.mT, noise, lower=False, b_ndim=1)
        x = location + scale * (mean + centre + noise / pt.sqrt(weight)[:, None])
        return cls(inputs=[rng, *params], outputs=[next_rng, x[rows, columns]])(rng, *params)


class MissingStudentValues(Continuous):
    r"""Missing values of a table of t rows given its observed ones, in the units of the table.

    The conditional distribution at the top of this module, in row-major order.

    Parameters
    ----------
    mean, precision, location, scale, degrees
        As in :class:`GraphicalStudent`.
    table : array_like of float
        (n, p), the observed values; missing entries are ignored.
    missing : array_like of bool
        (n, p), true where a value was not observed.
    """

    rv_type = MissingStudentCellsRV
    rv_op = MissingStudentCellsRV.rv_op

    @classmethod
    def dist(
        cls, mean, precision, location=0.0, scale=1.0, degrees=4.0, *, table, missing, **kwargs
    ):
        """Create the distribution without a model."""
        mean, *others = row_params(mean, precision, location, scale)
        missing = np.asarray(missing, dtype="float64")
        table = np.where(missing > 0, 0.0, np.asarray(table, dtype="float64"))
        mean = pt.broadcast_to(mean, table.shape)
        params = [mean, *others, as_float(degrees), as_float(table), as_float(missing)]
        return super().dist(params, **kwargs)

    def support_point(rv, mean, precision, location, scale, degrees, table, missing):
        """Return the conditional means."""
        params = (mean, precision, location, scale, table, missing)
        centre, _, rows, columns = conditional_values(*params)
        return (location + scale * (mean + centre))[rows, columns]

    def logp(value, mean, precision, location, scale, degrees, table, missing):
        """Log density of all missing values together."""
        rows = (mean, precision, location, scale)
        quadratic, seen, _ = _observed_part(table, *rows, missing)
        centre, block, where, columns = conditional_values(*rows, table, missing)
        filled = pt.zeros_like(table)[where, columns].set(value)
        e = missing * (standardized(filled, mean, location, scale) - centre)
        added = (rows_times(e, block) * e).sum(-1)
        # A t vector with nu + d degrees of freedom whose scale matrix is that of the normal times (nu + q) / (nu + d).
        freedom, size = degrees + seen, missing.sum(-1)
        widened = (degrees + quadratic) / freedom
        logp = _log_student(added / widened, size, log_det(block) - size * pt.log(widened), freedom)
        return (logp - (missing * pt.log(scale)).sum(-1)).sum()
