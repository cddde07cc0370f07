r"""Rows of one table that belong to groups, each with its mean, precision matrix, location and scale.

A row of group ``g`` is :math:`x = \ell_g + s_g \circ z` with :math:`z \sim N(\mu_g, K_g^{-1})`. Missing values are those of
:mod:`bayesstruct.precision.priors.rows`.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.pytensorf import normalize_rng_param

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.recognition import claim, is_op
from bayesstruct.core.tensors import as_float
from bayesstruct.precision.priors.row_algebra import conditional_values, missing_block
from bayesstruct.precision.priors.rows import ColumnMeansRV

__all__ = ["GroupedMissingValues", "GroupedNormal", "IncompleteGroupedNormal", "claim_means"]

_LOG_2PI = np.log(2.0 * np.pi)


def _own(values):
    """Parameters of the groups without the leading dimensions that serve all rows."""
    return [_unpadded(v, ndim) for v, ndim in zip(values, (2, 3, 2, 2), strict=True)]


def _unpadded(value, ndim):
    while value.type.ndim > ndim:
        value = value[0]
    return value


def _of_rows(group, *values):
    """Parameters of the group of each row."""
    index = group.astype("int64")
    return [value[index] for value in values]


def _rows_times(rows, matrices, group):
    """Multiply each row vector by the matrix of its group: all products are cheaper than a matrix for each row."""
    return (rows @ matrices)[group.astype("int64"), pt.arange(rows.shape[0])]


def _log_dets(matrices):
    factors = pt.linalg.cholesky(matrices)
    return 2.0 * pt.log(pt.diagonal(factors, axis1=-2, axis2=-1)).sum(-1)


class GroupedNormalRV(GraphRV):
    name = "grouped_normal"
    extended_signature = "[rng],[size],(),(g,p),(g,p,p),(g,p),(g,p)->[rng],(p)"
    _print_name = ("GroupedNormal", "\\operatorname{GroupedNormal}")

    @classmethod
    def build(cls, rng, size, group, *params):
        """Build the graph of a draw."""
        mean, precision, location, scale = _own(params)
        n, p = group.shape[0], precision.shape[-1]
        inverse = pt.linalg.solve_triangular(pt.linalg.cholesky(precision), pt.eye(p), lower=True)
        rng, noise = pt.random.normal(0.0, 1.0, size=(n, p), rng=rng, return_next_rng=True)
        mean, location, scale = _of_rows(group, mean, location, scale)
        return rng, location + scale * (mean + _rows_times(noise, inverse, group))


class IncompleteGroupedNormalRV(GraphRV):
    name = "incomplete_grouped_normal"
    extended_signature = "[rng],[size],(),(g,p),(g,p,p),(g,p),(g,p),(p)->[rng],(p)"
    _print_name = ("IncompleteGroupedNormal", "\\operatorname{IncompleteGroupedNormal}")

    @classmethod
    def build(cls, rng, size, group, *params):
        """Build the graph of a draw of complete rows."""
        return GroupedNormalRV.build(rng, size, group, *params[:-1])


def _row_params(group, mean, precision, location, scale):
    return [as_float(v) for v in (group, mean, precision, location, scale)]


def claim_means(mean):
    """Reserve the means for the step of the matrices, if it draws their distribution."""
    if hasattr(mean, "owner") and is_op(mean, ColumnMeansRV):
        claim(mean, "grouped_precision_gibbs")


def _mean_rows(group, *params):
    mean, _, location, scale = _own(params)
    mean, location, scale = _of_rows(group, mean, location, scale)
    return location + scale * mean


class GroupedNormal(Continuous):
    """Normal rows of several groups, in the units of the table.

    Parameters
    ----------
    group : (n,) array_like of int
        Position of the group of each row.
    mean : tensor_like of float
        (G, p), on the standardised scale.
    precision : tensor_like of float
        (G, p, p), positive definite.
    location, scale : (G, p) array_like of float
        In the units of the table.
    """

    rv_type = GroupedNormalRV
    rv_op = GroupedNormalRV.rv_op

    @classmethod
    def dist(cls, group, mean, precision, location, scale, **kwargs):
        """Create the distribution without a model."""
        params = _row_params(group, mean, precision, location, scale)
        claim_means(mean)
        return super().dist(params, **kwargs)

    def support_point(rv, size, group, *params):
        """Return the means of the rows."""
        return _mean_rows(group, *params)

    def logp(value, group, *params):
        """Log density of each row."""
        mean, precision, location, scale = _own(params)
        index = group.astype("int64")
        centre, place, unit = _of_rows(group, mean, location, scale)
        e = (value - place) / unit - centre
        quadratic = (_rows_times(e, precision, group) * e).sum(-1)
        constant = -0.5 * value.shape[-1] * _LOG_2PI - pt.log(unit).sum(-1)
        return row_densities(constant + 0.5 * (_log_dets(precision)[index] - quadratic))


class IncompleteGroupedNormal(Continuous):
    """Normal rows of several groups, of which some values were not observed.

    ``logp`` is that of the observed values of each row. Draws are complete rows.

    Parameters
    ----------
    group, mean, precision, location, scale
        As in :class:`GroupedNormal`.
    missing : (n, p) array_like of bool
        True where a value was not observed.
    """

    rv_type = IncompleteGroupedNormalRV
    rv_op = IncompleteGroupedNormalRV.rv_op

    @classmethod
    def dist(cls, group, mean, precision, location, scale, *, missing, **kwargs):
        """Create the distribution without a model."""
        params = _row_params(group, mean, precision, location, scale)
        claim_means(mean)
        return super().dist([*params, as_float(missing)], **kwargs)

    def support_point(rv, size, group, *params):
        """Return the means of the rows."""
        return _mean_rows(group, *params[:-1])

    def logp(value, group, *params):
        """Log density of the observed values of each row."""
        mean, precision, location, scale = _own(params[:-1])
        missing, index = params[-1], group.astype("int64")
        centre, place, unit = _of_rows(group, mean, location, scale)
        observed = 1.0 - missing
        filled = pt.switch(missing, place, value)
        e = observed * ((filled - place) / unit - centre)
        product = _rows_times(e, precision, group)
        block, push = missing_block(precision[index], missing), missing * product
        shift = pt.linalg.solve(block, push, b_ndim=1, assume_a="pos")
        quadratic = (product * e).sum(-1) - (push * shift).sum(-1)
        constant = -(observed * (0.5 * _LOG_2PI + pt.log(unit))).sum(-1)
        log_det = _log_dets(precision)[index] - _log_dets(block)
        return row_densities(constant + 0.5 * (log_det - quadratic))


class GroupedMissingValuesRV(SymbolicRandomVariable):
    name = "grouped_missing_values"
    extended_signature = "[rng],(n),(g,p),(g,p,p),(g,p),(g,p),(n,p),(n,p)->[rng],(m)"
    _print_name = ("GroupedMissingValues", "\\operatorname{GroupedMissingValues}")

    @classmethod
    def rv_op(cls, *params, size=None, rng=None):
        """Build the graph of a draw."""
        rng = normalize_rng_param(rng)
        centre, block, mean, location, scale, places = _missing(*params)
        next_rng, noise = pt.random.normal(
            0.0, 1.0, size=centre.shape, rng=rng, return_next_rng=True
        )
        factor = pt.linalg.cholesky(block)
        e = centre + pt.linalg.solve_triangular(factor.mT, noise, lower=False, b_ndim=1)
        x = location + scale * (mean + e)
        return cls(inputs=[rng, *params], outputs=[next_rng, x[places]])(rng, *params)


def _missing(group, mean, precision, location, scale, table, missing):
    """Conditional means and precisions of the missing values of each row, its parameters, and their places."""
    rows = _of_rows(group, mean, precision, location, scale)
    centre, block, *places = conditional_values(*rows, table, missing)
    mean, _, location, scale = rows
    return centre, block, mean, location, scale, tuple(places)


class GroupedMissingValues(Continuous):
    """Missing values of a table of several groups given its observed ones, in the units of the table, in row-major order.

    Parameters
    ----------
    group, mean, precision, location, scale
        As in :class:`GroupedNormal`.
    table : (n, p) array_like of float
        The observed values; missing entries are ignored.
    missing : (n, p) array_like of bool
        True where a value was not observed.
    """

    rv_type = GroupedMissingValuesRV
    rv_op = GroupedMissingValuesRV.rv_op

    @classmethod
    def dist(cls, group, mean, precision, location, scale, *, table, missing, **kwargs):
        """Create the distribution without a model."""
        missing = np.asarray(missing, dtype="float64")
        table = np.where(missing > 0, 0.0, np.asarray(table, dtype="float64"))
        params = _row_params(group, mean, precision, location, scale)
        return super().dist([*params, as_float(table), as_float(missing)], **kwargs)

    def support_point(rv, *params):
        """Return the conditional means."""
        centre, _, mean, location, scale, places = _missing(*params)
        return (location + scale * (mean + centre))[places]

    def logp(value, *params):
        """Log density of all missing values together."""
        centre, block, mean, location, scale, places = _missing(*params)
        missing = params[-1]
        filled = pt.zeros_like(centre)[places].set(value)
        e = missing * ((filled - location) / scale - mean - centre)
        quadratic = ((e[..., None, :] @ block)[..., 0, :] * e).sum()
        constant = -(missing * (0.5 * _LOG_2PI + pt.log(scale))).sum()
        return constant + 0.5 * (_log_dets(block).sum() - quadratic)
