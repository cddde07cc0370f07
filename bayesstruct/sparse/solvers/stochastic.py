r"""Stochastic methods: approximate modes from one column, or a few rows, of the table at a time.

.. math:: \min_{w, b} \; \sum_{i=1}^n \ell(y_i, x_i' w + b) + \sum_j \lambda_j |w_j|

For a table that fits into memory `bayesstruct.solvers.sparse_mode` is faster and exact. What is here
is for tables that do not: all but `stochastic_coordinate_descent` take an iterable of minibatches and
hold one of them at a time. Rates are those of the *summed* loss, the prior's; a method whose steps
see the average loss divides them by the number of rows n, which a stream has to be told.
"""

from bayesstruct.sparse.solvers.adagrad import (
    DualAveraging,
    MirrorDescent,
    adagrad_dual_averaging,
    adagrad_mirror_descent,
)
from bayesstruct.sparse.solvers.stochastic_coordinates import stochastic_coordinate_descent
from bayesstruct.sparse.solvers.stochastic_mirror import smidas
from bayesstruct.sparse.solvers.stochastic_streams import minibatches

__all__ = [
    "DualAveraging",
    "MirrorDescent",
    "adagrad_dual_averaging",
    "adagrad_mirror_descent",
    "minibatches",
    "smidas",
    "stochastic_coordinate_descent",
]
