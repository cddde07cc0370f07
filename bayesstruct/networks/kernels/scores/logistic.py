"""Local score of networks of logistic regressions: their BIC."""

import math

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.kernels.scores.base import FEW_VALUES, Score, fill_zeros, finite_numbers
from bayesstruct.networks.kernels.scores.merged_rows import (
    MERGED_FROM,
    family_places,
    merge_rows,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["LogisticBIC"]


class LogisticBIC(Score):
    r"""Minus half of the BIC of logistic regressions of variables with two values.

    .. math::

        s_i(\pi) = \sup_{b, w} \log p(x_i \mid b + x_\pi' w) - \frac{p + 1}{2} \log n

    for p parents, whose values enter as numbers: 0/1 and -1/1 give the same scores. Where parents separate the
    values of the child, the score takes the supremum, which is finite, although no finite coefficients attain it.
    Parents that are constant, or linear functions of the others, score :math:`-\infty`. A variable that was
    set in every row scores 0.

    Parameters
    ----------
    table : (n, d) array_like of float
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside.

    Attributes
    ----------
    d : int
        Number of variables.
    n_rows : (d,) int array
        Rows in which each variable was not set.

    Raises
    ------
    ValueError
        If a value is not finite; when a child is scored that has more than two values.

    References
    ----------
    Schmidt, M. (2010). *Graphical Model Structure Learning with L1-Regularization*. PhD thesis, University
    of British Columbia; chapter 4.
    """

    def __init__(self, table: "ArrayLike", *, interventions: "ArrayLike | None" = None):
        table = finite_numbers(table)
        super().__init__(table.shape, interventions)
        x, self._states, self._distinct = _ranks(table)
        weights = np.array(self._kept, np.int32).reshape(len(self._kept), len(table))
        everything = np.arange(self.d)
        at, self._weights = merge_rows(x, everything, self._states, weights)
        self._x, self._values = (np.ascontiguousarray(a[:, at]) for a in (x, table.T))

    def _fill(self, child, candidates, fixed, most, out):
        from bayesstruct.networks.kernels.scores.logistic_subsets import logistic_subsets

        if self._distinct[child] > 2:
            raise ValueError(
                f"column {child} has {self._distinct[child]} different values; a logistic regression "
                "explains a variable with two"
            )
        if not self.n_rows[child]:
            fill_zeros(len(fixed), most, out)
            return
        x, values, states = self._x, self._values, self._states
        weights = self._weights[self._group[child]]
        if len(candidates) >= MERGED_FROM:
            family = np.array([child, *candidates, *fixed])
            at, weights = merge_rows(x, family, states, weights[None])
            x, values = (np.ascontiguousarray(a[family][:, at]) for a in (x, values))
            weights, states = weights[0], states[family]
            child, candidates, fixed = family_places(len(candidates), len(fixed))
        price = 0.5 * math.log(weights.sum())
        codes = np.empty(x.shape[1], np.int32)
        logistic_subsets(
            values, x, states, weights, child, candidates, fixed, most, price, codes, out
        )


def _ranks(table):
    """Ranks of the values of variables of few, their numbers (0: many), and numbers of values."""
    n, d = table.shape
    x, distinct = np.zeros((d, n), np.uint8), np.empty(d, np.int64)
    for j in range(d):
        values, ranks = np.unique(table[:, j], return_inverse=True)
        distinct[j] = len(values)
        if len(values) <= FEW_VALUES:
            x[j] = ranks
    return x, np.where(distinct <= FEW_VALUES, distinct, 0), distinct
