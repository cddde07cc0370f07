"""Data of one regression whose likelihood depends on the coefficients through a linear predictor, and sweeps over these."""

import copy

from collections.abc import Sequence
from typing import Self

import numpy as np

from bayesstruct.data.errors import count
from bayesstruct.sparse.kernels.linear_predictor import (
    NEGATIVE_BINOMIAL,
    ORDERED_LOGISTIC,
    ORDERED_PROBIT,
    POISSON,
    predictor_sweep,
)

__all__ = ["FAMILIES", "PredictorData"]

#: Families without an integral over coefficients, and their codes.
FAMILIES = {
    "poisson": POISSON,
    "negative_binomial": NEGATIVE_BINOMIAL,
    "ordered_logistic": ORDERED_LOGISTIC,
    "ordered_probit": ORDERED_PROBIT,
}
_COUNTS = ("poisson", "negative_binomial")


class PredictorData:
    """Predictors and response of one regression, as the kernel needs them.

    Parameters
    ----------
    rows : (n, p) array
    response : (n,) array
        Counts, or numbers 0, 1, ... of ordered states.
    family : str
        A key of `FAMILIES`.
    """

    def __init__(self, rows: np.ndarray, response: np.ndarray, family: str):
        rows = np.broadcast_to(np.asarray(rows, float), (len(response), rows.shape[1]))
        if not np.isfinite(rows).all():
            raise ValueError("predictors of a spike-and-slab regression are not finite")
        self.family = family
        self.columns = np.ascontiguousarray(rows.T)
        self._respond(response)

    def with_response(self, response: np.ndarray) -> Self:
        """Return the regression of another response on these predictors."""
        other = copy.copy(self)
        other._respond(response)
        return other

    def _respond(self, response):
        self.response = np.array(response, float)
        whole = np.isfinite(self.response) & (self.response == np.floor(self.response))
        if not (whole & (self.response >= 0)).all():
            what = "counts" if self.family in _COUNTS else "numbers 0, 1, ... of ordered states"
            raise ValueError(f"the response of a {self._kind} regression must be {what}")

    @property
    def _kind(self) -> str:
        return self.family.replace("_", " ")

    def sweep(
        self,
        rng: np.random.Generator,
        w: np.ndarray,
        inclusion: np.ndarray,
        rest: np.ndarray,
        others: Sequence[np.ndarray],
        slab: np.ndarray,
        log_odds: np.ndarray,
        labels: np.ndarray,
        swaps: int,
    ) -> None:
        """Draw indicators and coefficients once, in place.

        Parameters
        ----------
        rng : numpy.random.Generator
        w : (p,) float64, changed in place
        inclusion : (groups,) float64, written
            Probability with which each group was to be in.
        rest : float or (n,) array
            Sum of the other terms of the predictor, logarithms of exposures included.
        others : sequence of array
            Alpha, or cutpoints, (n, K - 1), and the standard deviation of a probit; numbers or one for each row.
        slab : (p,) float64
            Variances of the slab.
        log_odds : (groups,) float64
        labels : (p,) int
            Group of each coefficient.
        swaps : int
            Maximum number of groups that are exchanged.

        Raises
        ------
        ValueError
            If the other terms are not finite, or a state has no cutpoint.
        """
        rest = np.broadcast_to(rest, self.response.shape)
        if not np.isfinite(rest).all():
            rows = np.flatnonzero(~np.isfinite(rest))
            raise ValueError(
                f"the predictor of a {self._kind} regression is not finite in {count(len(rows), 'row')}, the first of them "
                f"{rows[0]}; rows whose exposure is zero say nothing about a rate: leave them out"
            )
        groups = np.arange(len(log_odds) + 1)
        order = np.argsort(labels, kind="stable")
        starts = np.searchsorted(labels[order], groups)
        predictor_sweep(
            rng,
            w,
            inclusion,
            FAMILIES[self.family],
            self.columns,
            rest + w @ self.columns,
            self._values(others),
            slab,
            log_odds,
            order,
            starts,
            swaps,
        )

    def _values(self, others) -> np.ndarray:
        """Response and parameters, as `bayesstruct.sparse.kernels.linear_predictor.log_likelihood` takes them."""
        values = np.ones((3, len(self.response)))
        if self.family in _COUNTS:
            values[0] = self.response
            for row, other in zip(values[1:], others, strict=False):
                row[:] = other
            return values
        cutpoints, *scale = others
        if self.response.max(initial=0) > cutpoints.shape[1]:
            raise ValueError(
                f"the response has the state {self.response.max():.0f}, and {cutpoints.shape[1]} cutpoints have states 0 to "
                f"{cutpoints.shape[1]} only"
            )
        ends = np.full((len(cutpoints), 1), np.inf)
        bounds = np.concatenate([-ends, cutpoints, ends], axis=1)
        rows, state = np.arange(len(cutpoints)), self.response.astype(int)
        values[0], values[1] = bounds[rows, state], bounds[rows, state + 1]
        values[2] = scale[0] if scale else 1.0
        return values
