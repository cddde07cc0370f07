r"""Rows of mixtures of regressions, for predictions of their empty values.

A row belongs to cluster k of a draw in proportion to the rows of the cluster and to the density of the filled
values there, and to a new cluster in proportion to the mass of the process, as in
:mod:`bayesstruct.mixtures.reading.predictions`: draws count in proportion to the density of the filled values. Given
the cluster, an empty predictor is normal, and

.. math:: \eta = \beta_0 + \sum_j \beta_j (x_j - \bar x_j)

is too; a response that is filled updates both. Parameters of a new cluster are integrated over by draws of their
prior, but for the filled predictors, whose density there is a product of t densities.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.readers import variables
from bayesstruct.core.tables.predictions import (
    incomplete_rows,
    normal_mixture,
    number_table,
    register_prediction,
)
from bayesstruct.data.coding import NumberCoding, row_labels
from bayesstruct.data.errors import TableError
from bayesstruct.data.names import label_text
from bayesstruct.graphs.groups import CONSTANTS, group_dataset
from bayesstruct.mixtures.data import check_response
from bayesstruct.mixtures.reading.predictions import MixtureDraws, new_density, warn_about_far
from bayesstruct.mixtures.reading.records import ResponseName

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["MixtureRows", "mixture_rows"]

_DRAWS = 500  # that are used
_NEW = 1000  # draws of the parameters of a new cluster
_NODES = 100  # values of a linear predictor
_TINY = 1e-300
_WIDTH = 0.1  # standard deviation of a linear predictor around such a value, as a share of its own


@dataclass(frozen=True, eq=False)
class Parts:
    """Clusters of all draws, and draws of a new one: a row is a mixture of these.

    Attributes
    ----------
    log_weight : (parts,) ndarray of float
    mean, variance : (parts, d) ndarray of float
        Of the predictors.
    coefficient : (parts, d + 1) ndarray of float
    noise : (parts,) ndarray of float
        Variance of a normal response; zero if the response is another.
    new : (parts,) ndarray of bool
    """

    log_weight: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    coefficient: np.ndarray
    noise: np.ndarray
    new: np.ndarray


@dataclass(frozen=True, eq=False)
class MixtureRows:
    """Distribution of a row under a mixture of regressions.

    Attributes
    ----------
    result : MixtureDraws
    label : str
        Name of the response.
    named : bool
        Whether the result records it; those of earlier versions do not.
    parts : Parts
    """

    result: MixtureDraws
    label: str
    named: bool
    parts: Parts

    @property
    def coding(self) -> NumberCoding:
        """How a table of the predictors alone is read."""
        d = len(self.result.names)
        return NumberCoding(tuple(self.result.names), np.zeros(d), np.ones(d))

    def predict(self, data: Any, prob: float) -> "pd.DataFrame":
        """Mean, standard deviation and interval of each empty value; see `bayesstruct.predict`."""
        values = self._read(data)
        warn_about_far(self.result, values[:, :-1])
        labels, names, found = row_labels(data, len(values)), [*self.result.names, self.label], []
        for row, missing in incomplete_rows(np.isnan(values)):
            x, y = values[row, :-1], values[row, -1]
            predictors = missing[missing < len(x)]
            laws = self._row(x, y, predictors, prob)
            found += [(labels[row], names[j], *law) for j, law in zip(missing, laws, strict=True)]
        return number_table(found)

    def _read(self, data):
        """Values of the predictors and of the response, which may be absent."""
        names = [*self.result.names, self.label]
        zeros, ones = np.zeros(len(names)), np.ones(len(names))
        if not (hasattr(data, "columns") or hasattr(data, "coords")) and np.ndim(data) == 2:
            if np.shape(data)[1] == len(names):
                raise TableError(
                    f"the rows have {len(names)} columns without names, the model has {len(names) - 1} predictors and the "
                    f"response {self.label!r}: give a table with names, or the predictors alone"
                )
            read = self.coding.read(data)
            return np.column_stack([read.values, np.full(read.n, np.nan)])
        given = {*map(label_text, getattr(data, "columns", ()))}
        if not self.named and given - {*names}:
            raise TableError(
                "the result is of an earlier version and does not record the name of its response: call this column "
                f"{self.label!r}, and leave out columns that are not in the model"
            )
        values = NumberCoding(tuple(names), zeros, ones).read(data, optional=[self.label]).values
        check_response(values[~np.isnan(values[:, -1]), -1], self.label, self.result.family)
        return values

    def _row(self, x, y, missing, prob):
        """Moments and ends of intervals of the empty predictors of a row and, if it is empty, of the response."""
        part, center = self.parts, self.result.prior.location
        seen = np.setdiff1d(np.arange(len(x)), missing)
        logs = part.log_weight + self._density(x, seen)
        slope = part.coefficient[:, 1 + missing]
        law = _Law(logs, part.mean[:, missing], part.variance[:, missing], slope)
        eta = part.coefficient[:, 0] + part.coefficient[:, 1 + seen] @ (x[seen] - center[seen])
        eta += (slope * (law.mean - center[missing])).sum(axis=1)
        if self.result.family == "gaussian":
            total = law.spread + part.noise
            if np.isnan(y):
                return [*law.moments(prob), law.moments_of(eta, np.sqrt(total), prob)]
            logs = logs - 0.5 * ((y - eta) ** 2 / total + np.log(total))
            return law.given(logs, y - eta, total, 1.0).moments(prob)
        if np.isnan(y):
            mean, deviation, *ends = _COUNTS[self.result.family](eta, law.spread, law.weight, prob)
            if self.result.family == "poisson" and len(missing):
                # In a new cluster a predictor has a t distribution, and its exponential no mean.
                mean = deviation = np.inf
            return [*law.moments(prob), (mean, deviation, *ends)]
        return _given_response(self.result.family, y, eta, law).moments(prob)

    def _density(self, x, seen):
        """Log density of the filled predictors in each part."""
        part = self.parts
        step, variance = x[seen] - part.mean[:, seen], part.variance[:, seen]
        logs = -0.5 * (step**2 / variance + np.log(2 * np.pi * variance)).sum(axis=1)
        return np.where(part.new, new_density(self.result, x[None, seen], seen)[0], logs)


@dataclass(frozen=True, eq=False)
class _Law:
    """Mixture of normal distributions of the empty predictors of a row.

    Attributes
    ----------
    logs : (parts,) ndarray of float
        Log weights, but for a constant.
    mean, variance, slope : (parts, missing) ndarray of float
        Of each predictor, and its coefficient.
    """

    logs: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    slope: np.ndarray

    @property
    def spread(self) -> np.ndarray:
        """Variance of the linear predictor in each part."""
        return (self.slope**2 * self.variance).sum(axis=1)

    @property
    def weight(self) -> np.ndarray:
        weight = np.exp(self.logs - self.logs.max())
        return weight / weight.sum()

    def repeated(self, times) -> "_Law":
        """Each part several times."""
        each = (self.logs, self.mean, self.variance, self.slope)
        return _Law(*(np.repeat(values, times, axis=0) for values in each))

    def given(self, logs, step, total, share) -> "_Law":
        """Parts once a variable of variance `total`, of which the linear predictor is a summand, is `step` above its mean.

        Of the variance of the variable only this share is gone.
        """
        gain = self.slope * self.variance / np.maximum(total, _TINY)[:, None]
        gone = np.broadcast_to(share, total.shape)[:, None] * gain * self.slope * self.variance
        variance = self.variance - gone
        return _Law(logs, self.mean + gain * step[:, None], variance, self.slope)

    def moments_of(self, mean, deviation, prob):
        """Moments and ends of the interval of one normal variable with these weights."""
        return normal_mixture(mean, deviation, prob, self.weight)

    def moments(self, prob) -> list:
        """Those of each empty predictor."""
        columns = zip(self.mean.T, np.sqrt(self.variance).T, strict=True)
        return [self.moments_of(*column, prob) for column in columns]


def _given_response(family, y, eta, law) -> _Law:
    """Empty predictors given a response that is 0 or 1, or a count: several parts about the mode of each."""
    nodes, spread = _nodes(), np.maximum(law.spread, _TINY)
    mode, deviation = _mode(family, y, eta, spread)
    step = mode[:, None] - eta[:, None] + deviation[:, None] * nodes
    logs = law.logs[:, None] + _log_density(family, y, eta[:, None] + step)
    logs += 0.5 * (nodes**2 / (1.0 - _WIDTH**2) - step**2 / spread[:, None])
    logs += np.log(deviation / np.sqrt(spread))[:, None]
    kept = np.repeat((_WIDTH * deviation) ** 2 / spread, len(nodes))
    law, spread = law.repeated(len(nodes)), np.repeat(spread, len(nodes))
    return law.given(logs.ravel(), step.ravel(), spread, 1.0 - kept)


def _mode(family, y, eta, spread):
    """Mode of a linear predictor that is normal a priori, given the response, and its standard deviation about it."""
    low, high = eta - spread, eta + spread
    if family == "poisson":
        level = np.full(len(eta), np.log(y) if y > 0 else -np.inf)
        bound = eta - spread * np.exp(np.minimum(eta, 300.0))
        low, high = np.minimum(eta, np.maximum(level, bound)), np.maximum(eta, level)
    for _ in range(100):  # halves the interval of a decreasing function
        middle = 0.5 * (low + high)
        above = y - _mean(family, middle) > (middle - eta) / spread
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    mean = _mean(family, low)
    weight = mean * (1.0 - mean) if family == "logistic" else mean
    return low, 1.0 / np.sqrt(1.0 / spread + weight)


def _mean(family, eta):
    from scipy.special import expit

    return expit(eta) if family == "logistic" else np.exp(np.minimum(eta, 300.0))


def _nodes():
    """Standardised values of a linear predictor, equally probable; around each it varies by `_WIDTH`."""
    from scipy.special import ndtri

    nodes = ndtri((np.arange(_NODES) + 0.5) / _NODES)
    return nodes / nodes.std() * np.sqrt(1.0 - _WIDTH**2)


def _spread_out(eta, spread, weight):
    """Values of linear predictors and their weights."""
    nodes = _nodes() if spread.any() else np.zeros(1)
    each = eta[:, None] + np.sqrt(spread)[:, None] * nodes
    return each.ravel(), np.repeat(weight / len(nodes), len(nodes))


def _log_density(family, y, eta):
    """Log probability of a response that is 0 or 1, or a count, but for a constant."""
    if family == "logistic":
        return -np.logaddexp(0.0, (1.0 - 2.0 * y) * eta)
    return y * eta - np.exp(np.minimum(eta, 700.0))


def _binary(eta, spread, weight, prob):
    """Moments and ends of the interval of a response 0 or 1, given mean and variance of the predictor in each part."""
    eta, weight = _spread_out(eta, spread, weight)
    mean = float(weight @ _mean("logistic", eta))
    ends = (float(share > 1.0 - mean) for share in (0.5 - prob / 2, 0.5 + prob / 2))
    return mean, np.sqrt(mean * (1.0 - mean)), *ends


def _count(eta, spread, weight, prob):
    """Those of a response that is a count; the moments are those of lognormal means."""
    from scipy.special import pdtr

    rate = np.exp(np.minimum(eta + 0.5 * spread, 300.0))
    mean = float(weight @ rate)
    square = float(weight @ (rate + rate**2 * np.exp(np.minimum(spread, 100.0))))
    eta, weight = _spread_out(eta, spread, weight)
    rate, ends = _mean("poisson", eta), []
    for share in (0.5 - prob / 2, 0.5 + prob / 2):
        low, high = -1.0, 1.0
        while weight @ pdtr(high, rate) < share:
            low, high = high, 2.0 * high
        while high - low > 1.0:
            middle = np.floor(0.5 * (low + high))
            if middle in (low, high):  # so large that no whole number is between
                break
            below = weight @ pdtr(middle, rate) < share
            low, high = (middle, high) if below else (low, middle)
        ends.append(high)
    return mean, np.sqrt(max(square - mean**2, 0.0)), *ends


_COUNTS = {"logistic": _binary, "poisson": _count}


def mixture_rows(idata: "xr.DataTree") -> MixtureRows:
    """Return the distribution of a row under a mixture of regressions."""
    result = MixtureDraws.read(idata)
    constants = group_dataset(idata, CONSTANTS)
    named = ResponseName.read(constants).known is not None
    return MixtureRows(result, ResponseName.label(constants), named, _parts(result))


def _parts(result):
    """Clusters of the draws that are used, and draws of the parameters of a new one."""
    draws = np.unique(np.linspace(0, len(result.alpha) - 1, _DRAWS).astype(int))
    rows, share = result.labels.shape[1], 0.0
    logs, places = [], []
    for draw in draws:
        count, total = np.bincount(result.labels[draw]), rows + result.alpha[draw]
        logs.append(np.log(count / total / len(draws)))
        places.append(np.stack([np.full(len(count), draw), np.arange(len(count))]))
        share += result.alpha[draw] / total / len(draws)
    logs.append(np.full(_NEW, np.log(share / _NEW)))
    at = tuple(np.concatenate(places, axis=1))
    mean, variance, coefficient, noise = _new(result)
    old = np.zeros(len(at[0])) if result.noise is None else result.noise[at][:, 0]
    return Parts(
        np.concatenate(logs),
        np.concatenate([result.mean[at], mean]),
        np.concatenate([result.variance[at], variance]),
        np.concatenate([result.coefficient[at], coefficient]),
        np.concatenate([old, noise]),
        np.arange(len(at[0]) + _NEW) >= len(at[0]),
    )


def _new(result):
    """Draws of the parameters of a new cluster: means and variances of predictors, coefficients, noise."""
    prior, rng = result.prior, np.random.default_rng(0)
    d = len(prior.location)
    variance = prior.rate / rng.gamma(float(prior.shape), size=(_NEW, d))
    noise = np.zeros(_NEW)
    if result.noise is not None:
        noise = float(prior.noise_rate) / rng.gamma(float(prior.noise_shape), size=_NEW)
    width = np.sqrt((noise if result.noise is not None else np.ones(_NEW))[:, None] / prior.weight)
    coefficient = prior.start + width * rng.standard_normal((_NEW, d + 1))
    # The mean of a new cluster is not known: a value there has the variances of both.
    total = variance * (1.0 + 1.0 / prior.strength)
    return np.tile(prior.location, (_NEW, 1)), total, coefficient, noise


def _is_mixture(idata) -> bool:
    given = "response_family" in variables(idata, CONSTANTS)
    return given and {"cluster", "coefficient", "covariate_mean"} <= variables(idata)


register_prediction("mixtures of regressions", _is_mixture, mixture_rows)
