r"""Predictions of Dirichlet-process mixtures of generalised linear models.

A new row x with response y has the density

.. math::

    p(x, y) = \frac{1}{n + \alpha} \Bigl(\sum_k n_k f(x \mid \theta_k) f(y \mid x, \theta_k)
        + \alpha \int f(x \mid \theta) f(y \mid x, \theta) \, dG_0(\theta)\Bigr),

averaged over posterior draws. The distribution of y given x is the ratio of that average and of the same average
without y: draws count in proportion to the density of x. (Equation 6 of Hannah, Blei and Powell averages the ratios
of single draws, as if x carried no information about the clusters.)
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.tables.missing_codes import MissingCodes
from bayesstruct.data.errors import TableError, column_list, warn
from bayesstruct.data.remarks import far_remarks
from bayesstruct.graphs.groups import CONSTANTS, group_dataset
from bayesstruct.mixtures.reading.records import MixturePrior

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.data.intake import TableLike

__all__ = ["MixtureDraws", "mixture_predictions", "new_cluster", "new_density"]

_NODES = 50


def mixture_predictions(idata: "xr.DataTree", new_data: "TableLike") -> "pd.DataFrame":
    """Predict responses of new rows from a mixture of regressions.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.dp_glm`.
    new_data : DataFrame or (r, d) array_like
        Predictors; values that the model's `missing_codes` name are missing. Columns of a table with names are matched by name, and there may be others; without names the
        columns are those of the model in their order.

    Returns
    -------
    pandas.DataFrame
        One row a new row, with

        mean, sd
            Posterior predictive mean and standard deviation of the response given the predictors, noise included.
        new_cluster
            Probability that the row is in a new cluster: far from all observed rows, predictions are those
            of the prior.

    Raises
    ------
    TableError
        If a column is absent, or a value is missing or infinite.
    TypeError, ValueError
        If `idata` is not such a result.

    Notes
    -----
    A row belongs to a cluster in proportion to the number of its rows and to the density of the predictors there,
    to a new one in proportion to the mass of the process and the density of the predictors under the prior.

    References
    ----------
    Hannah, L. A., Blei, D. M. and Powell, W. B. (2011). Dirichlet process mixtures of generalized linear models.
    *JMLR* 12, 1923-1953, section 4.

    Examples
    --------
    >>> mixture_predictions(idata, new_rows)["mean"]  # doctest: +SKIP
    """
    import pandas as pd

    result = MixtureDraws.read(idata)
    new_data = MissingCodes.read(idata).without(new_data, result.names)
    x, index = _predictors(new_data, result.names)
    warn_about_far(result, x)
    design = np.column_stack([np.ones(len(x)), x - result.prior.location])
    new = new_cluster(result, x, design)
    # Sums over draws of weights, and of weights times moments, relative to the largest yet.
    top, sums = np.full(len(x), -np.inf), np.zeros((4, len(x)))
    for draw in range(len(result.labels)):
        logs, first, second = _clusters(result, draw, x, design)
        log_alpha = np.log(result.alpha[draw])
        logs = np.column_stack([logs, log_alpha + new[0]])
        logs -= np.log(result.labels.shape[1] + result.alpha[draw])
        higher = np.maximum(top, logs.max(axis=1))
        share = np.exp(logs - higher[:, None])
        sums *= np.exp(top - higher)
        top = higher
        sums[0] += share.sum(axis=1)
        sums[1] += share[:, -1]
        sums[2] += (share[:, :-1] * first).sum(axis=1) + share[:, -1] * new[1]
        sums[3] += (share[:, :-1] * second).sum(axis=1) + share[:, -1] * new[2]
    _, own, mean, square = sums / sums[0]
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    return pd.DataFrame({"mean": mean, "sd": deviation, "new_cluster": own}, index)


@dataclass(frozen=True)
class MixtureDraws:
    """Draws of a mixture, chains one after another, and the parameters of its priors.

    Attributes
    ----------
    labels : (draws, n) ndarray of int
    alpha : (draws,) ndarray of float
    mean, variance : (draws, K, d) ndarray of float
    coefficient : (draws, K, d + 1) ndarray of float
    noise : (draws, K, 1) ndarray of float, or None
    prior : MixturePrior
    names : list of str
        Predictors.
    family : str
        Distribution of the response.
    """

    labels: np.ndarray
    alpha: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    coefficient: np.ndarray
    noise: np.ndarray | None
    prior: MixturePrior
    names: list[str]
    family: str

    @classmethod
    def read(cls, idata) -> "MixtureDraws":
        """Check a result.

        Raises
        ------
        TypeError, ValueError
            If it is not a result of :func:`bayesstruct.models.dp_glm`.
        """
        import xarray as xr

        if not isinstance(idata, xr.DataTree):
            raise TypeError(
                "Expected the xarray.DataTree that pm.sample() returns, got "
                f"{type(idata).__module__}.{type(idata).__name__}."
            )
        draws, constants = group_dataset(idata, "posterior"), group_dataset(idata, CONSTANTS)
        needed = ["cluster", "covariate_mean", "covariate_variance", "coefficient"]
        lost = [name for name in needed if name not in draws]
        lost += [name for name in ("response_family",) if name not in constants]
        if lost:
            raise ValueError(
                f"This result has no {column_list(lost)}: it was not sampled from bs.models.dp_glm."
            )
        flat = {k: v.values.reshape(-1, *v.shape[2:]) for k, v in draws.data_vars.items()}
        mean, variance, coefficient = (flat[name] for name in needed[1:])
        prior, alpha = MixturePrior.read(idata), flat.get("alpha")
        if alpha is None:
            alpha = np.full(len(flat["cluster"]), float(prior.alpha))
        return cls(
            flat["cluster"],
            alpha,
            mean,
            variance,
            coefficient,
            flat.get("noise_variance"),
            prior,
            [str(name) for name in draws["node"].values],
            str(constants["family"].values[0]),
        )


def _clusters(result, draw, x, design):
    """Log weights of the clusters of a draw for each row, and two moments of the response in them."""
    count = np.bincount(result.labels[draw])
    used = len(count)
    mean, variance = result.mean[draw, :used], result.variance[draw, :used]
    step = x[:, None, :] - mean
    logs = np.log(count) - 0.5 * (step**2 / variance + np.log(2 * np.pi * variance)).sum(axis=-1)
    eta = design @ result.coefficient[draw, :used].T
    noise = 0.0 if result.noise is None else result.noise[draw, :used, 0]
    return logs, *_moments(result.family, eta, noise)


def _moments(family, eta, noise):
    """Mean and mean square of responses given linear predictors."""
    if family == "gaussian":
        return eta, eta**2 + noise
    if family == "logistic":
        chance = _sigmoid(eta)
        return chance, chance
    with np.errstate(over="ignore"):
        rate = np.exp(eta)
        return rate, rate + rate**2


def _sigmoid(eta):
    from scipy.special import expit

    return expit(eta)


def new_density(result: MixtureDraws, x: np.ndarray, columns=slice(None)) -> np.ndarray:
    """Log density of these predictors of rows in a new cluster, (rows,)."""
    from scipy import stats

    prior, shape = result.prior, float(result.prior.shape)
    scale = np.sqrt(prior.rate / shape * (1.0 + 1.0 / prior.strength))[columns]
    return stats.t.logpdf(x, 2.0 * shape, prior.location[columns], scale).sum(axis=1)


def new_cluster(result: MixtureDraws, x: np.ndarray, design: np.ndarray):
    """Log density of rows in a new cluster, and two moments of the response there."""
    prior, logs = result.prior, new_density(result, x)
    eta = design @ prior.start
    spread = (design**2 / prior.weight).sum(axis=1)
    if result.family == "gaussian":
        return logs, eta, eta**2 + prior.noise_mean * (1.0 + spread)
    if result.family == "logistic":
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        chance = _sigmoid(eta[:, None] + np.sqrt(spread)[:, None] * nodes) @ weights
        chance /= weights.sum()
        return logs, chance, chance
    with np.errstate(over="ignore"):
        rate = np.exp(eta + 0.5 * spread)
        return logs, rate, rate + np.exp(2.0 * eta + 2.0 * spread)


def warn_about_far(result: MixtureDraws, x: np.ndarray) -> None:
    """Warn of predictors of new rows that are far outside of the table of the model."""
    prior = result.prior
    # The mean of an inverse-gamma variable is its rate over its shape less one.
    variance = prior.rate / (float(prior.shape) - 1.0) * (1.0 + 1.0 / prior.strength)
    for remark in far_remarks(result.names, x, prior.location, np.sqrt(variance)):
        warn(remark)


def _predictors(data, names):
    """Return values of the predictors of the model, and labels of the rows."""
    from bayesstruct.data.checks import max_columns
    from bayesstruct.data.intake import read_columns

    intake = read_columns(data, max_columns())
    index = getattr(data, "index", None)
    index = np.arange(len(intake.values)) if index is None or callable(index) else index
    if hasattr(data, "columns") or set(names) <= {*intake.names}:
        if lost := [name for name in names if name not in intake.names]:
            raise TableError(f"{column_list(lost)}: not in the new rows, but in the model")
        values = intake.values[:, [intake.names.index(name) for name in names]]
    elif intake.values.shape[1] == len(names):
        values = intake.values
    else:
        raise TableError(
            f"the new rows have {intake.values.shape[1]} columns, the model has {len(names)} predictors: "
            f"{column_list(names)}"
        )
    wrong = [n for n, v in zip(names, values.T, strict=True) if not np.isfinite(v).all()]
    if wrong:
        raise TableError(
            f"{column_list(wrong)}: missing or infinite values or text in the new rows; leave these rows out"
        )
    return values, index
