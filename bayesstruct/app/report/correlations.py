"""Posterior predictive check of the correlations of a table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.precision.reading.predictive import correlations

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CorrelationCheck", "check_correlations"]

LEVEL = 0.95
MAX_TABLES, MIN_TABLES = 400, 50
BUDGET = 1e8  # values in all replicated tables


@dataclass(frozen=True)
class CorrelationCheck:
    """Share of the observed correlations that lie inside their predictive intervals.

    Attributes
    ----------
    inside, pairs : int
        Observed correlations inside their 95 % predictive interval, and all.
    outside : list of (str, str, float, float, float)
        Names, observed correlation, ends of the interval; farthest outside first.
    """

    inside: int
    pairs: int
    outside: list[tuple[str, str, float, float, float]]

    def __str__(self) -> str:
        share = self.inside / self.pairs
        return (
            f"{self.inside} of {self.pairs} observed correlations ({share:.0%}) lie inside their "
            f"{LEVEL:.0%} posterior predictive interval."
        )


def check_correlations(
    frame: "pd.DataFrame", weights: np.ndarray, *, random_seed: int
) -> CorrelationCheck:
    r"""Compare the correlations of a table with those of replicated tables.

    Parameters
    ----------
    frame : DataFrame
        (n, p), NaN where missing.
    weights : ndarray
        (draws, p (p - 1) / 2) partial correlations, upper triangle row by row.
    random_seed : int

    Returns
    -------
    CorrelationCheck

    Notes
    -----
    Correlations do not depend on means and scales, so the partial correlations determine them: with unit
    diagonal and :math:`-w_{jk}` beside it, :math:`M` is the precision matrix up to scales. The
    replicated tables have the size and the missing values of the observed one.
    """
    values = frame.to_numpy(dtype="float64")
    n, p = values.shape
    upper = np.triu_indices(p, 1)
    missing = np.isnan(values)
    observed = correlations(values)[upper]
    rng = np.random.default_rng(random_seed)
    count = int(np.clip(BUDGET // (n * p), MIN_TABLES, MAX_TABLES))
    chosen = np.linspace(0, len(weights) - 1, min(count, len(weights))).astype(int)
    replicated = np.array([_replicate(rng, weights[i], n, p, missing) for i in chosen])
    tail = (1 - LEVEL) / 2
    low, high = np.nanquantile(replicated, [tail, 1 - tail], axis=0)
    beyond = np.fmax(low - observed, observed - high)
    known = np.isfinite(observed)
    order = [i for i in np.argsort(-beyond) if known[i] and beyond[i] > 0]
    names = [*map(str, frame.columns)]
    rows, columns = upper
    outside = [
        (names[rows[i]], names[columns[i]], float(observed[i]), float(low[i]), float(high[i]))
        for i in order
    ]
    return CorrelationCheck(int(known.sum()) - len(outside), int(known.sum()), outside)


def _replicate(rng, weight, n, p, missing) -> np.ndarray:
    precision = np.eye(p)
    precision[np.triu_indices(p, 1)] = -weight
    precision = np.triu(precision) + np.triu(precision, 1).T
    factor = np.linalg.cholesky(precision)
    # rows z with cov(z) = precision^-1 = factor^-T factor^-1
    table = np.linalg.solve(factor.T, rng.standard_normal((p, n))).T
    table[missing] = np.nan
    return correlations(table)[np.triu_indices(p, 1)]
