r"""Rows of latent features and of hidden causes, for predictions of their empty values.

A new row takes a feature that m of N rows have with probability :math:`(m - \sigma) / (N + c)`, and a number s
of features that no row has, which is Poisson with mean :math:`\alpha r_{N + 1}`, see
:mod:`bayesstruct.features.kernels.indian_buffet`. Given these, its values are independent,

.. math:: x_j \sim N\Bigl(b_j + \sum_k z_k A_{kj}, \; \sigma_x^2 + s \tau^2\Bigr),

since loadings of features that no row has are :math:`N(0, \tau^2)`. What the row has is summed over.
"""

import itertools
import math

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.readers import variables
from bayesstruct.core.tables.codings import StateLevels
from bayesstruct.core.tables.predictions import (
    MAX_COMPLETIONS,
    StateRows,
    incomplete_rows,
    normal_mixture,
    number_table,
    register_prediction,
)
from bayesstruct.data.coding import NumberCoding, row_labels
from bayesstruct.data.errors import TableError, warn
from bayesstruct.data.remarks import far_remarks
from bayesstruct.features.kernels.indian_buffet import new_dish_rates
from bayesstruct.features.reading.records import CauseNumbers, FeatureNumbers
from bayesstruct.graphs.groups import CONSTANTS, group_dataset, parameter_draws

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["FeatureRows", "cause_rows", "feature_rows"]

_DRAWS = 500  # that are used
_TAIL = 45.0  # terms of a sum that are smaller by this many logarithms are left out


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Distributions of a row of a linear Gaussian model of features, one for each draw.

    Attributes
    ----------
    coding : NumberCoding
    feature : (draws, N, K) ndarray of bool
    loading : (draws, K, d) ndarray of float
    alpha, noise, loading_scale : (draws,) ndarray of float
    numbers : FeatureNumbers
    """

    coding: NumberCoding
    feature: np.ndarray
    loading: np.ndarray
    alpha: np.ndarray
    noise: np.ndarray
    loading_scale: np.ndarray
    numbers: FeatureNumbers

    def predict(self, data: Any, prob: float) -> "pd.DataFrame":
        """Mean, standard deviation and interval of each empty value; see `bayesstruct.predict`."""
        table = self.coding.read(data)
        for remark in far_remarks(
            table.names, table.values, self.numbers.baseline, self._deviations()
        ):
            warn(remark)
        labels, found = row_labels(data, table.n), []
        for row, missing in incomplete_rows(table.missing):
            parts = [self._parts(d, table.values[row], missing) for d in range(len(self.alpha))]
            weight, mean, deviation = (np.concatenate(part) for part in zip(*parts, strict=True))
            weight /= len(self.alpha)
            for k, j in enumerate(missing):
                moments = normal_mixture(mean[:, k], deviation, prob, weight)
                found.append((labels[row], table.names[j], *moments))
        return number_table(found)

    def _deviations(self):
        """Return the standard deviation of each column of the first table, by a few draws."""
        variance = [
            (self.feature[d] @ self.loading[d]).var(axis=0) + self.noise[d] ** 2
            for d in range(0, len(self.noise), 50)
        ]
        return np.sqrt(np.mean(variance, axis=0))

    def _parts(self, draw, x, missing):
        """Weights, means (parts, missing) and standard deviations of the normals that mix in one draw."""
        numbers, rows = self.numbers, len(self.feature[draw])
        count = self.feature[draw].sum(axis=0)
        used = count > 0
        chance = (count[used] - numbers.discount) / (rows + numbers.concentration)
        owned = _choices(len(chance))
        prior = owned @ np.log(chance) + (1.0 - owned) @ np.log1p(-chance)
        mean = numbers.baseline + owned @ self.loading[draw, used]
        seen = ~np.isnan(x)
        square = ((x[seen] - mean[:, seen]) ** 2).sum(axis=1)
        rates = new_dish_rates(rows + 1, numbers.concentration, numbers.discount)
        new = float(self.alpha[draw] * rates[-1])
        logs, variances, top = [], [], -np.inf
        for s in itertools.count():
            variances.append(self.noise[draw] ** 2 + s * self.loading_scale[draw] ** 2)
            term = prior + s * math.log(new) - math.lgamma(s + 1)
            term -= 0.5 * (seen.sum() * np.log(variances[-1]) + square / variances[-1])
            logs.append(term)
            top = max(top, term.max())
            if s > new and term.max() < top - _TAIL:
                break
        weight = np.exp(np.ravel(logs) - top)
        deviation = np.repeat(np.sqrt(variances), len(mean))
        return weight / weight.sum(), np.tile(mean[:, missing], (len(logs), 1)), deviation


def feature_rows(idata: "xr.DataTree") -> FeatureRows:
    """Return the distribution of a row in each draw of a linear Gaussian model of features."""
    constants = group_dataset(idata, CONSTANTS)
    names, numbers = constants["node"].values.tolist(), FeatureNumbers.read(constants)
    coding = NumberCoding(tuple(names), np.zeros(len(names)), np.ones(len(names)))
    feature, loading = (
        values[_spread(values)] for values in parameter_draws(idata, "feature", "loading")
    )
    alpha, noise, loading_scale = (
        _numbers(idata, numbers, name) for name in ("alpha", "noise", "loading_scale")
    )
    return FeatureRows(coding, feature != 0, loading, alpha, noise, loading_scale, numbers)


def cause_rows(idata: "xr.DataTree") -> StateRows:
    """Return the distribution of a row in each draw of a model of hidden causes."""
    names = group_dataset(idata, "posterior")["node"].values.tolist()
    coding = StateLevels.coding(group_dataset(idata, CONSTANTS), names)
    (feature,) = parameter_draws(idata, "feature")
    feature = feature[_spread(feature)]
    recorded = CauseNumbers.read(idata)
    given = [_numbers(idata, recorded, name) for name in ("strength", "leak", "base_rate")]

    def weigh(rows, part):
        values = zip(feature[part], *(own[part] for own in given), strict=True)
        return np.array([_log_noisy_or(rows, *own) for own in values])

    return StateRows(coding, weigh, len(feature), {})


def _log_noisy_or(rows, feature, strength, leak, base_rate):
    """Log probabilities of rows of 0 and 1, summed over the causes that are active, (m,)."""
    from scipy.special import logsumexp

    feature = feature[:, feature.any(axis=0)].astype(float)
    active = _choices(feature.shape[1])
    on = active.sum(axis=1)
    prior = on * np.log(base_rate) + (active.shape[1] - on) * np.log1p(-base_rate)
    absent = np.log1p(-leak) + active @ feature.T * np.log1p(-strength)
    present = np.log(-np.expm1(absent))
    logs = rows @ present.T + (1 - rows) @ absent.T
    return logsumexp(prior + logs, axis=1)


def _choices(k):
    """Return all vectors of k zeros and ones, (2^k, k)."""
    if 2**k > MAX_COMPLETIONS:
        raise TableError(
            f"a draw has {k} features, and 2^{k} ways of having them, of which at most {MAX_COMPLETIONS:,} are summed over"
        )
    return (np.arange(2**k)[:, None] >> np.arange(k) & 1).astype(float)


def _spread(values):
    """Positions of the draws that are used."""
    return np.unique(np.linspace(0, len(values) - 1, _DRAWS).astype(int))


def _numbers(idata, recorded, name):
    """Draws of a parameter, the same number in each if it is no variable of the model."""
    fixed = getattr(recorded, name)
    (values,) = parameter_draws(idata, "feature" if fixed is not None else name)
    used = _spread(values)
    return np.full(len(used), fixed) if fixed is not None else values[used]


def _is_linear(idata) -> bool:
    linear = "feature_baseline" in variables(idata, CONSTANTS)
    return linear and {"feature", "loading"} <= variables(idata)


def _has_causes(idata) -> bool:
    coded = "state_node" in variables(idata, CONSTANTS)
    return coded and {"feature", "cause"} <= variables(idata)


register_prediction("latent features", _is_linear, feature_rows)
register_prediction("hidden causes", _has_causes, cause_rows)
