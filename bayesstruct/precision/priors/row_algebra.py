"""Graphs that densities and draws of rows with a given precision matrix are made of.

Rows are standardised: ``(value - location) / scale``; residuals are standardised rows less their mean.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.graph.basic import Constant

from bayesstruct.core.tensors import as_float

__all__ = [
    "LOG_2PI",
    "conditional_values",
    "draw_rows",
    "log_det",
    "mean_rows",
    "missing_block",
    "observed_part",
    "row_params",
    "rows_times",
    "standardized",
]

LOG_2PI = np.log(2.0 * np.pi)


def _core(matrix):
    """Drop leading dimensions of length one, so that one matrix serves every row."""
    while matrix.type.ndim > 2 and matrix.type.broadcastable[0]:
        matrix = matrix[0]
    return matrix


def rows_times(rows, matrix):
    """Multiply each row vector by its matrix; a single matrix needs one product only."""
    matrix = _core(matrix)
    if matrix.type.ndim == 2:
        return rows @ matrix
    return (rows[..., None, :] @ matrix)[..., 0, :]


def log_det(matrix):
    """Log determinant of a positive definite matrix, or of each of several."""
    factor = pt.linalg.cholesky(_core(matrix))
    return 2.0 * pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)


def draw_rows(rng, size, mean, precision, location, scale, *others):
    """Draw complete rows, as many as the parameters; returns the next generator and the rows."""
    precision = _core(precision)
    inverse_factor = pt.linalg.solve_triangular(
        pt.linalg.cholesky(precision), pt.eye(precision.shape[-1]), lower=True
    )
    if rv_size_is_none(size):
        vectors = (mean, precision[..., 0], location, scale, *others)
        size = pt.broadcast_shape(*(v[..., 0] for v in vectors))
    shape = (*size, precision.shape[-1])
    next_rng, noise = pt.random.normal(0.0, 1.0, size=shape, rng=rng, return_next_rng=True)
    rows = location + scale * (mean + rows_times(noise, inverse_factor))
    return next_rng, rows


def standardized(value, mean, location, scale):
    """Residuals of rows in the units of the table."""
    return (value - location) / scale - mean


def row_params(mean, precision, location, scale):
    """Parameters of rows as tensors, the vectors spread over the columns."""
    mean, precision = as_float(mean), as_float(precision)
    vectors = [_vector(value, precision) for value in (mean, location, scale)]
    return [vectors[0], precision, *vectors[1:]]


def _vector(value, precision):
    """Spread a scalar over the variables; a constant stays a constant."""
    value, p = as_float(value), precision.type.shape[-1]
    if value.type.ndim > 0:
        return value
    if isinstance(value, Constant) and p is not None:
        return as_float(np.full(p, value.data))
    return pt.full((precision.shape[-1],), value)


def mean_rows(size, mean, location, scale):
    """Mean row in the units of the table, repeated to a size."""
    point = location + scale * mean
    return point if rv_size_is_none(size) else pt.full((*size, point.shape[-1]), point)


def missing_block(precision, missing):
    """``K`` restricted to the missing values of each row, and the identity elsewhere, (n, p, p)."""
    both = missing[..., :, None] * missing[..., None, :]
    return pt.switch(both > 0, precision, pt.eye(precision.shape[-1]))


def observed_part(e, precision, missing):
    """Quadratic form of the observed residuals of each row, and the log determinant of their precision matrix.

    Residuals are zero where values are missing.
    """
    product = rows_times(e, precision)
    block, push = missing_block(precision, missing), missing * product
    shift = pt.linalg.solve(block, push, b_ndim=1, assume_a="pos")
    quadratic = (product * e).sum(-1) - (push * shift).sum(-1)
    return quadratic, log_det(precision) - log_det(block)


def conditional_values(mean, precision, location, scale, table, missing):
    """Conditional means of the missing values (zero elsewhere), their blocks, and their places."""
    e = (1.0 - missing) * standardized(table, mean, location, scale)
    block = missing_block(precision, missing)
    push = missing * rows_times(e, precision)
    centre = -pt.linalg.solve(block, push, b_ndim=1, assume_a="pos")
    rows, columns = pt.nonzero(missing)
    return centre, block, rows, columns
