r"""A good set of latent features of a table: where chains start.

The objective is the log of the joint density of table and features, loadings summed out and standard
deviations given. Features are added one at a time, each grown from a row that is explained badly by
the two-means steps of the small-variance limit (Broderick, Kulis and Jordan 2013), redrawn by short
runs of the sampler, and taken away again; what lowers the objective is undone. The standard deviations
are set to those of the residuals and loadings in between.

References
----------
Broderick, T., Kulis, B. and Jordan, M. I. (2013). MAD-Bayes: MAP-based asymptotic derivations from
Bayes. *ICML* 30, section 3.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesstruct.data.arguments import generator, whole_number
from bayesstruct.features.kernels.indian_buffet import (
    check_buffet,
    left_ordered,
    log_buffet,
    new_dish_rates,
)

__all__ = ["LatentFeatures", "latent_features"]

_SEEDS = 5  # rows from which a new feature is tried to grow
_SWEEPS = 4  # of the sampler after each change
_FAILURES = 2  # rounds without a better set that end a search
_LEAST = 1e-3  # least standard deviation of the noise, relative to that of the table


@dataclass(frozen=True)
class LatentFeatures:
    """Result of a search.

    Attributes
    ----------
    feature : (n, k) int8 ndarray
        Left-ordered.
    noise, scale : float
        Standard deviations of noise and loadings.
    objective : float
        Log of the joint density of table and features.
    completed : (n, d) ndarray
        The table, missing values replaced by their means given features and mean loadings.
    """

    feature: np.ndarray
    noise: float
    scale: float
    objective: float
    completed: np.ndarray


def latent_features(
    x: Any,
    *,
    alpha: float = 1.0,
    max_features: int = 50,
    restarts: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> LatentFeatures:
    """Search for the binary features of the linear Gaussian model with the largest joint density.

    Parameters
    ----------
    x : (n, d) array_like
        Table, less the mean of a row without features; NaN where a value is missing.
    alpha : float
        Mean number of features of a row, a priori.
    max_features : int
    restarts : int
        Searches, of which the best is returned.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    LatentFeatures

    Raises
    ------
    ValueError
        If the table is not one of finite numbers that are not all zero, or an option is out of range.

    Notes
    -----
    A local search, without a certificate. Missing values are replaced by column means at first, then by the fit of the
    features found so far; the objective is that of the completed table.
    """
    check_buffet(alpha)
    max_features = whole_number("max_features", max_features, 1)
    restarts, rng = whole_number("restarts", restarts, 1), generator(random_seed)
    x = np.array(x, float, order="C")
    _check_table(x)
    found = [_Search(rng, x, alpha, max_features).run() for _ in range(restarts)]
    return max(found, key=lambda solution: solution.objective)


def _check_table(x):
    if x.ndim != 2 or np.isinf(x).any() or not np.nan_to_num(x).any():
        raise ValueError("the table must have two dimensions and finite numbers, not all of them 0")
    if empty := np.flatnonzero(np.isnan(x).all(axis=0)).tolist():
        raise ValueError(f"columns {empty} have no observed value: drop them")


class _Search:
    """State of one search."""

    def __init__(self, rng, x, alpha, most):
        self.rng, self.alpha, self.most = rng, alpha, most
        self.missing = np.isnan(x)
        self.x = np.where(self.missing, np.nanmean(x, axis=0), x)
        self.rate = alpha * new_dish_rates(len(x))[-1]
        deviation = float(np.sqrt((self.x**2).mean())) or 1.0
        self.least = _LEAST * deviation
        self.noise, self.scale = deviation, deviation
        self.feature = np.zeros((len(x), 0), np.int8)

    def run(self) -> LatentFeatures:
        best, failures = self._value(self.feature), 0
        while failures < _FAILURES:
            before = best
            best = self._try(self._grown(), best)
            for a in self.rng.permutation(self.feature.shape[1]):
                if a < self.feature.shape[1]:
                    best = self._try(np.delete(self.feature, a, axis=1), best)
            self._settle()
            best = self._value(self.feature)
            failures = 0 if best > before + 1e-6 else failures + 1
        return LatentFeatures(left_ordered(self.feature), self.noise, self.scale, best, self.x)

    def _value(self, feature):
        from bayesstruct.features.kernels.latent_features import log_likelihood

        return log_likelihood(feature, self.x, self.noise, self.scale) + log_buffet(
            feature, self.alpha
        )

    def _try(self, feature, best):
        """Redraw a changed set of features a few times; keep it if it is better."""
        for _ in range(_SWEEPS):
            feature = self._redrawn(feature)
            value = self._value(feature)
            if value > best:
                self.feature, best = feature, value
        return best

    def _redrawn(self, feature):
        from bayesstruct.features.kernels.latent_features import scan_rows

        drawn = np.ascontiguousarray(feature)
        rows = self.rng.permutation(len(self.x))
        numbers = self.noise, self.scale, self.rate, 1.0, 0.0, 0
        k = scan_rows(self.rng, drawn, drawn.shape[1], self.x, rows, *numbers)
        return drawn[:, :k]

    def _residuals(self):
        from bayesstruct.features.kernels.latent_features import moments

        square, cross = moments(np.ascontiguousarray(self.feature), self.x)
        ratio = (self.noise / self.scale) ** 2
        loadings = np.linalg.solve(square + ratio * np.eye(len(square)), cross)
        return self.x - self.feature @ loadings, loadings

    def _grown(self):
        """Return the features and one more, that explains most of the residuals."""
        residual, _ = self._residuals()
        if self.feature.shape[1] >= self.most:
            return self.feature
        square = (residual**2).sum(axis=1)
        best, column = -np.inf, np.ones(len(square), bool)
        for seed in self.rng.choice(len(square), _SEEDS, p=square / square.sum()):
            on = _grow(residual, residual[seed])
            gain = (residual[on].sum(axis=0) ** 2).sum() / max(on.sum(), 1)
            if on.any() and gain > best:
                best, column = gain, on
        return np.column_stack([self.feature, column.astype(np.int8)])

    def _settle(self):
        """Set the standard deviations and the missing values to their estimates given the features."""
        residual, loadings = self._residuals()
        seen = residual[~self.missing]
        self.noise = max(float(np.sqrt((seen**2).mean())), self.least)
        self.x[self.missing] = (self.feature @ loadings)[self.missing]
        if len(loadings):
            self.scale = max(float(np.sqrt((loadings**2).mean())), self.least)


def _grow(residual, loading):
    """Rows that are closer to a loading than to nothing, which is then set to their mean."""
    on = np.zeros(len(residual), bool)
    for _ in range(10):
        closer = residual @ loading > 0.5 * (loading @ loading)
        if not closer.any() or (closer == on).all():
            return closer
        on, loading = closer, residual[closer].mean(axis=0)
    return on
