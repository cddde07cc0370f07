"""Modes of a Gaussian graphical model at many settings of its prior, for `bayesstruct.tune`."""

import warnings

from typing import Any

import numpy as np

from bayesstruct.core.solution import ConvergenceWarning, Fit, Tuner, register_tuner
from bayesstruct.data.arguments import number
from bayesstruct.data.edge_priors import edge_probability_matrix
from bayesstruct.data.errors import TableError
from bayesstruct.data.table import Table
from bayesstruct.precision.solvers.covariance_selection import covariance_selection
from bayesstruct.precision.solvers.graphical_lasso import graphical_lasso
from bayesstruct.precision.solvers.graphical_spike_slab import graphical_spike_slab

__all__ = ["GaussianGraphicalTuner", "log_normal"]

#: Numbers that are tuned, and their values where they are not, for each prior with a mode.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "laplace": {"rate": 1.0, "diagonal_rate": None},
    "spike_slab": {"spike_scale": 0.02, "slab_scale": 1.0, "diagonal_rate": 0.5},
}
_RATES, _SCALES = 20, 8  # points of the default grids
_TOL = 1e-13  # a gap is of second order in the error of the matrix


@register_tuner("gaussian_graphical")
class GaussianGraphicalTuner(Tuner):
    """Modes of the precision matrix of standardised rows, about the means of the columns."""

    def __init__(
        self,
        data: Any,
        *,
        prior: str = "spike_slab",
        edge_probability: Any = 0.5,
        required: Any = (),
        forbidden: Any = (),
        standardize: bool = True,
        **numbers: float,
    ):
        if prior not in _DEFAULTS:
            known = " or ".join(f'prior="{name}"' for name in _DEFAULTS)
            raise ValueError(f"prior={prior!r} has no mode to tune; use {known}")
        if standardize not in (True, False):
            raise ValueError(
                f"tuning needs `standardize` to be True or False, it is {standardize!r}"
            )
        table = Table.continuous(data, standardize=standardize)
        if table.missing.any():
            raise TableError(
                "tuning needs a complete table: drop the rows with missing values (`data.dropna()`) or fill them in"
            )
        self.prior, self.names = prior, tuple(_DEFAULTS[prior])
        for name, value in numbers.items():
            self._refuse_unknown(name)
            number(name, value, above=0)
        self.constants = _DEFAULTS[prior] | numbers
        plain = np.ndim(edge_probability) == 0 and edge_probability == 0.5
        if prior == "laplace" and (len(required) or len(forbidden) or not plain):
            raise ValueError(
                "`edge_probability`, `required` and `forbidden` go with prior='spike_slab'"
            )
        probability = edge_probability_matrix(
            table.names, edge_probability, required, forbidden, learned=False
        )
        with np.errstate(divide="ignore"):
            self._log_odds = np.log(probability) - np.log1p(-probability)
        self.rows, self.columns = np.array(table.standardized), list(table.names)
        self._pairs = np.triu_indices(table.p, 1)

    def _refuse_unknown(self, name):
        if name not in self.names:
            owners = [f'prior="{prior}"' for prior, names in _DEFAULTS.items() if name in names]
            goes = f"goes with {' or '.join(owners)}" if owners else "does not apply here"
            raise ValueError(f"`{name}` {goes}; prior={self.prior!r} has {', '.join(self.names)}")

    def grid(self) -> dict[str, np.ndarray]:
        """Return rates from that of the empty graph down to a hundredth of it, or widths of the spike."""
        if self.prior == "spike_slab":
            slab = self.constants["slab_scale"] or 1.0
            return {"spike_scale": np.geomspace(0.005, 0.2, _SCALES) * slab}
        scatter = _centred(self.rows).T @ _centred(self.rows)
        largest = np.abs(scatter[self._pairs]).max()
        return {"rate": np.geomspace(largest, 0.01 * largest, _RATES)}

    def fit(self, rows: np.ndarray, setting: dict[str, float], start: Fit | None = None) -> Fit:
        """Find the mode of some of the rows; the rates are those for all rows."""
        numbers = self.constants | setting
        mean, centred = rows.mean(axis=0), _centred(rows)
        scatter, n = centred.T @ centred, len(rows)
        if self.prior == "laplace":
            share = n / len(self.rows)
            rate = numbers["rate"] * share
            diagonal = (
                rate / 2 if numbers["diagonal_rate"] is None else numbers["diagonal_rate"] * share
            )
            penalty = np.full(scatter.shape, rate / n)
            np.fill_diagonal(penalty, 2.0 * diagonal / n)
            init = None if start is None else start.state
            precision = graphical_lasso(scatter / n, penalty, tol=_TOL, init=init).precision
            edges = precision[self._pairs] != 0
        else:
            # From the identity, as in `find_MAP`: which of several modes is reached depends on the start.
            solution = graphical_spike_slab(scatter, float(n), self._log_odds, **numbers, tol=1e-6)
            precision, edges = solution.precision, solution.inclusion[self._pairs] > 0.5
        return Fit(edges, lambda x: log_normal(x - mean, precision), precision)

    def best_log_likelihood(self, edges: np.ndarray) -> float:
        """Return the log-likelihood at the estimate that has zeros off the graph; NaN if there is none."""
        centred, n = _centred(self.rows), len(self.rows)
        covariance = centred.T @ centred / n
        units = np.sqrt(np.diag(covariance))
        graph = np.zeros(covariance.shape)
        graph[self._pairs] = edges
        correlation = covariance / np.outer(units, units)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", ConvergenceWarning)
                solution = covariance_selection(correlation, graph + graph.T)
        except (ValueError, ConvergenceWarning):  # unbounded: more edges than the rows determine
            return np.nan
        return float(
            log_normal(centred / units, solution.precision).sum() - n * np.log(units).sum()
        )


def _centred(rows):
    return rows - rows.mean(axis=0)


def log_normal(residuals: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Log density of each row of residuals (n,), given their (p, p) precision matrix."""
    p = len(precision)
    factor = np.linalg.cholesky(precision)
    quadratic = np.square(residuals @ factor).sum(axis=1)
    return np.log(factor.diagonal()).sum() - 0.5 * (quadratic + p * np.log(2.0 * np.pi))
