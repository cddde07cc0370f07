r"""Latent normal rows behind a table of which some columns count by the order of their values alone.

Rows :math:`z_i \sim N(\mu, K^{-1})` are latent. A normal column shows :math:`x = \ell + s z`. Of another one only the order
is used: :math:`z_i < z_k` wherever :math:`x_i < x_k` (Hoff's extended rank likelihood, 2007; equal values say nothing about the order of
theirs). The likelihood of K is the probability of the observed order, so that it depends on the unit and the location of the
latent values of such a column in no way: partial correlations are identified, ``K`` up to a factor for each such row and column.

The distribution of the latent values here is that of complete rows, restricted to the order. It is not normalised over them:
the integral is the rank likelihood. Draws of a table take the quantile of a column that a normal value has.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.tensors import as_float
from bayesstruct.data.ranks import FREE, KNOWN
from bayesstruct.precision.priors.row_algebra import (
    LOG_2PI,
    draw_rows,
    log_det,
    mean_rows,
    row_params,
    rows_times,
    standardized,
)

__all__ = ["LatentValues", "OrderedRows"]

_REFUSED = (
    "the rows have no log likelihood: of some columns only the order is used, and the probability of the order of a whole table "
    'is no product over rows. Compare replicated tables (bs.predictive_correlations), or fit marginals="gaussian" or '
    '"student" to columns of numbers, which have one'
)


class LatentValuesRV(SymbolicRandomVariable):
    name = "latent_values"
    extended_signature = "[rng],(p),(p,p),(p),(p),(n,p),(n,p),(n,p),(n,p),(p),(m)->[rng],(m)"
    _print_name = ("LatentValues", "\\operatorname{LatentValues}")

    @classmethod
    def rv_op(
        cls,
        mean,
        precision,
        location,
        scale,
        table,
        codes,
        lower,
        upper,
        block,
        start,
        *,
        size=None,
        rng=None,
    ):
        """Build the graph of a draw."""
        rng = normalize_rng_param(rng)
        params = (mean, precision, location, scale, table, codes, lower, upper, block, start)
        next_rng, rows = draw_rows(rng, codes.shape[:1], mean, precision, location, scale)
        return cls(inputs=[rng, *params], outputs=[next_rng, rows[pt.nonzero(codes > KNOWN)]])(
            rng, *params
        )


class LatentValues(Continuous):
    r"""Latent values of rows of which some columns count by their order, and missing values of the others.

    The density is that of the complete normal rows, and zero where the latent values of a column are in another order than
    their levels. Draws are of the normal distribution, whatever the order.

    Parameters
    ----------
    mean : tensor_like of float
        :math:`\mu`, (p,), on the standardised scale.
    precision : tensor_like of float
        :math:`K`, (p, p), positive definite.
    location, scale : tensor_like of float
        (p,), in the units of the table; 0 and 1 for columns that count by their order.
    table : array_like of float
        (n, p), the values that are known as numbers; the others are ignored.
    codes : array_like of int
        (n, p), levels from 0; -1 for missing values, -2 for values that are known as numbers.
    block : array_like of int, optional
        (p,), the columns with one number from 0 are the latent values of one column of states without an order, -1 the others. Codes are
        then 1 for the state of a row and 0 for the others; a row of zeros has the reference state. The latent value of the
        state of a row is positive and the largest one of the block, and all are negative for the reference state.
    start : array_like of float
        (n, p), where chains begin, in the units of `location` and `scale`; in the order of the levels.
    """

    rv_type = LatentValuesRV
    rv_op = LatentValuesRV.rv_op

    @classmethod
    def dist(
        cls, mean, precision, location=0.0, scale=1.0, *, table, codes, start, block=None, **kwargs
    ):
        """Create the distribution without a model."""
        codes = np.asarray(codes, "int64")
        latent = codes > KNOWN
        table = np.where(latent, 0.0, np.asarray(table, "float64"))
        start = np.asarray(start, "float64")[latent]
        block = np.full(codes.shape[1], -1) if block is None else np.asarray(block, "int64")
        places = _places(np.where(block >= 0, FREE, codes))
        constants = [as_float(table), *map(pt.constant, (codes, *places, block)), as_float(start)]
        return super().dist([*row_params(mean, precision, location, scale), *constants], **kwargs)

    def support_point(
        rv, mean, precision, location, scale, table, codes, lower, upper, block, start
    ):
        """Return the values that are given."""
        return start

    def logp(value, mean, precision, location, scale, table, codes, lower, upper, block, start):
        """Log density of all rows together, or minus infinity."""
        rows = table[pt.nonzero(codes > KNOWN)].set(value)
        e = standardized(rows, mean, location, scale)
        quadratic = (rows_times(e, precision) * e).sum()
        n, p = (pt.cast(codes.shape[k], "float64") for k in (0, 1))
        logp = -n * (0.5 * p * LOG_2PI + pt.log(scale).sum())
        logp = logp + 0.5 * (n * log_det(precision) - quadratic)
        logp = pt.switch(_in_order(rows, lower, upper), logp, -np.inf)
        for own in _blocks(block):
            logp = pt.switch(_are_chosen(rows[:, own], codes[:, own]), logp, -np.inf)
        return check_parameters(logp, pt.all(scale > 0), msg="scale > 0")


def _places(codes):
    """First and last place among the sorted values of its column that a value of each level can take; -1 without a level."""
    lower, upper = np.full((2, *codes.shape), -1)
    for j, column in enumerate(codes.T):
        known = np.flatnonzero(column > FREE)
        ordered = np.sort(column[known])
        lower[known, j] = np.searchsorted(ordered, column[known], "left")
        upper[known, j] = np.searchsorted(ordered, column[known], "right") - 1
    return lower, upper


def _blocks(block) -> list[np.ndarray]:
    """Columns of each column of states without an order."""
    numbers = block.data
    return [np.flatnonzero(numbers == one) for one in range(numbers.max() + 1)]


def _are_chosen(rows, codes):
    """Whether the largest latent value of each row is that of its state."""
    top = (rows * pt.eq(codes, 1)).sum(axis=1, keepdims=True)
    return pt.all(pt.eq(codes, FREE) | ((rows <= top) & (top >= 0.0)))


def _in_order(rows, lower, upper):
    """Whether the values of each column are in the order of their levels."""
    known = lower >= 0
    ordered = pt.sort(pt.switch(known, rows, np.inf), axis=0)
    columns = pt.arange(rows.shape[1])
    low, high = ordered[lower, columns], ordered[upper, columns]
    return pt.all(~known | ((rows >= low) & (rows <= high)))


class OrderedRowsRV(SymbolicRandomVariable):
    name = "ordered_rows"
    extended_signature = "[rng],[size],(p),(p,p),(p),(p),(n,p),(p),(p),(p)->[rng],(p)"
    _print_name = ("OrderedRows", "\\operatorname{OrderedRows}")

    @classmethod
    def rv_op(
        cls,
        mean,
        precision,
        location,
        scale,
        quantiles,
        counts,
        by_order,
        block,
        *,
        size=None,
        rng=None,
    ):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        params = (mean, precision, location, scale, quantiles, counts, by_order, block)
        next_rng, rows = draw_rows(rng, size, mean, precision, location, scale)
        spread = pt.sqrt(pt.diagonal(pt.linalg.inv(precision)))
        share = 0.5 * pt.erfc(-(rows - mean) / (spread * np.sqrt(2.0)))
        last = counts - 1.0
        at = pt.cast(pt.clip(pt.ceil(share * counts) - 1.0, 0.0, last), "int64")
        found = quantiles[at, pt.arange(quantiles.shape[1])]
        drawn = pt.switch(by_order > 0, found, rows)
        for own in _blocks(block):
            top = pt.maximum(rows[..., own].max(axis=-1, keepdims=True), 0.0)
            drawn = drawn[..., own].set(pt.cast(pt.eq(rows[..., own], top), "float64"))
        return cls(inputs=[rng, size, *params], outputs=[next_rng, drawn])(rng, size, *params)


class OrderedRows(Continuous):
    r"""Rows of a table of which some columns count by the order of their values alone.

    Draws are complete rows of a Gaussian copula: the value of such a column is the quantile of its observed values that the latent value has
    in its normal distribution. The log density is zero: the likelihood is that of :class:`LatentValues`, which has the order.

    Parameters
    ----------
    mean, precision, location, scale
        As in :class:`LatentValues`.
    table : array_like of float
        (n, p), observed values, NaN where missing.
    by_order : array_like of bool
        (p,), which columns count by their order.
    block : array_like of int, optional
        As in :class:`LatentValues`; draws of such columns are 1 for the state of a row and 0 for the others.
    """

    rv_type = OrderedRowsRV
    rv_op = OrderedRowsRV.rv_op

    @classmethod
    def dist(
        cls, mean, precision, location=0.0, scale=1.0, *, table, by_order, block=None, **kwargs
    ):
        """Create the distribution without a model."""
        table = np.asarray(table, "float64")
        counts = (~np.isnan(table)).sum(axis=0)
        quantiles = np.nan_to_num(np.sort(table, axis=0))  # NaN are sorted to the end
        block = np.full(table.shape[1], -1) if block is None else np.asarray(block, "int64")
        constants = [as_float(quantiles), as_float(counts), as_float(np.asarray(by_order, float))]
        constants.append(pt.constant(block))
        return super().dist([*row_params(mean, precision, location, scale), *constants], **kwargs)

    def support_point(
        rv, size, mean, precision, location, scale, quantiles, counts, by_order, block
    ):
        """Return the mean row."""
        return mean_rows(size, mean, location, scale)

    def logp(value, mean, precision, location, scale, quantiles, counts, by_order, block):
        """Zero for each row; a function of these alone is refused when it is made."""
        return row_densities(pt.zeros_like(value[..., 0]), refused=_REFUSED)
