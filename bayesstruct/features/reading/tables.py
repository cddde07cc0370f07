"""Tables of binary latent features: how many there are, which rows have them, and their loadings."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_summary, variables
from bayesstruct.features.reading.posterior import (
    FEATURE,
    LOADING,
    FeaturePosterior,
    match,
    mean_products,
    read_features,
)
from bayesstruct.graphs.mixing import indicator_ess, indicator_rhat
from bayesstruct.graphs.summaries import interval_probability

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = [
    "co_assignment",
    "feature_count_probabilities",
    "feature_membership",
    "feature_table",
    "loading_table",
]

#: Largest number of rows for which a matrix over pairs of rows is made.
MOST_ROWS = 5_000


def feature_count_probabilities(
    idata: "xr.DataTree", *, var_name: str = FEATURE, group: str = "posterior"
) -> "pd.Series":
    """Posterior probability of each number of features.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a latent-feature model.
    var_name : str, default "feature"
        The binary matrix, where a model has more than one.
    group : {"posterior", "prior"}

    Returns
    -------
    pandas.Series
        Probabilities over ``n_features``, from 0 to the largest number that was drawn. A feature counts
        when some row has it.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of a latent-feature model.

    Examples
    --------
    >>> feature_count_probabilities(idata).idxmax()  # doctest: +SKIP
    """
    import pandas as pd

    counts = read_features(idata, var_name=var_name, group=group).counts.ravel()
    share = np.bincount(counts) / len(counts)
    return pd.Series(share, pd.Index(range(len(share)), name="n_features"), name="probability")


def co_assignment(idata: "xr.DataTree", *, var_name: str = FEATURE) -> "pd.DataFrame":
    """Posterior mean of the number of features that two rows share.

    This does not require matching: it does not depend on the order of the features.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a latent-feature model with at most 5,000 rows.
    var_name : str, default "feature"

    Returns
    -------
    pandas.DataFrame, shape (n, n)
        On the diagonal the mean number of features of the row.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of a latent-feature model, or has too many rows.
    """
    return mean_in_common(read_features(idata, var_name=var_name))


def mean_in_common(posterior: FeaturePosterior) -> "pd.DataFrame":
    """Return the posterior mean of the number of features that two rows share, rows by rows."""
    import pandas as pd

    if (n := len(posterior.observations)) > MOST_ROWS:
        raise ValueError(
            f"A matrix over all pairs of {n:,} rows is too large: choose rows first, "
            f"idata.isel(observation=slice({MOST_ROWS}))."
        )
    labels = posterior.observations
    return pd.DataFrame(mean_products(posterior.flat).astype(float), labels, labels)


def feature_table(
    idata: "xr.DataTree | FeaturePosterior",
    *,
    ci_prob: float | None = None,
    overlap: float = 0.5,
    var_name: str = FEATURE,
) -> "pd.DataFrame":
    r"""Summarise every feature of a latent-feature model.

    Parameters
    ----------
    idata : xarray.DataTree or FeaturePosterior
        Result of a latent-feature model, or one that was read already.
    ci_prob : float, optional
        Probability of the highest-density intervals; by default ``arviz.rcParams["stats.ci_prob"]``.
    overlap : float, default 0.5
        In (0, 1]: a column of a draw is matched to a feature of the reference only if their Dice coefficient, twice
        the number of rows that have both over the sum of the numbers of rows that have each, is at least this.
    var_name : str, default "feature"

    Returns
    -------
    pandas.DataFrame
        One row for each feature of the reference draw, named 1, 2, ... in decreasing order of their numbers of
        rows, with

        probability
            Share of the draws that have the feature.
        share, hdi_low, hdi_high
            Share of the rows that have it, over the draws that have the feature.
        ess, r_hat
            Effective sample size and R-hat of the 0/1 indicator that a draw has the feature.

        ``attrs`` has the ``reference`` draw (chain, draw) and ``unmatched``, the mean number of features
        of a draw that are not matched to any of these.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of a latent-feature model, or an option is out of range.

    Notes
    -----
    Features have no order and no names, so that posterior means of single columns are meaningless. Features are
    named after the columns of a reference draw: the one whose matrix Z Z' of shared features is closest to the
    posterior mean of that matrix (Dahl 2006 does so for clusters). The columns of any other draw are matched to them
    one to one, so that the sum of their Dice coefficients, of which only those of at least `overlap` count, is
    largest.

    References
    ----------
    Dahl, D. B. (2006). Model-based clustering for expression data via a Dirichlet process mixture model. In:
    *Bayesian Inference for Gene Expression and Proteomics*, 201-218.

    Examples
    --------
    >>> feature_table(idata).query("probability > 0.5")  # doctest: +SKIP
    """
    ci_prob = interval_probability(ci_prob)
    posterior = read_features(idata, var_name=var_name)
    share = posterior.flat.mean(axis=1)
    return matched_table(posterior, overlap, ci_prob, share, ("feature", "share"))


def matched_table(
    posterior: FeaturePosterior,
    overlap: float,
    ci_prob: float,
    values: np.ndarray,
    names: tuple[str, str],
) -> "pd.DataFrame":
    """Summarise every column of the reference draw, and one value of each, (draws, latent).

    ``names`` are the names of the column and of the value.
    """
    import pandas as pd

    matched = match(posterior, overlap)
    chains, draws = posterior.feature.shape[:2]
    present = matched.present.reshape(chains, draws, -1)
    mean, low, high = feature_summaries(matched.pick(values), matched.present, ci_prob)
    table = pd.DataFrame(
        {
            names[0]: np.arange(1, present.shape[-1] + 1),
            "probability": present.mean(axis=(0, 1)),
            names[1]: mean,
            "hdi_low": low,
            "hdi_high": high,
            "ess": indicator_ess(present),
            "r_hat": indicator_rhat(present),
        }
    )
    others = posterior.used.sum(axis=1) - matched.present.sum(axis=1)
    table.attrs = {
        "reference": tuple(int(i) for i in divmod(matched.reference, draws)),
        "unmatched": float(others.mean()),
        "ci_prob": ci_prob,
    }
    return table


def feature_membership(
    idata: "xr.DataTree | FeaturePosterior", *, overlap: float = 0.5, var_name: str = FEATURE
) -> "pd.DataFrame":
    """Posterior probability that each row has each feature.

    Parameters
    ----------
    idata : xarray.DataTree or FeaturePosterior
        Result of a latent-feature model, or one that was read already.
    overlap : float, default 0.5
    var_name : str, default "feature"
        All as in :func:`feature_table`, whose names of features these are.

    Returns
    -------
    pandas.DataFrame, shape (n, features)
        Over all draws: in draws without the feature no row has it.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of a latent-feature model, or `overlap` is out of range.
    """
    import pandas as pd

    posterior = read_features(idata, var_name=var_name)
    column = match(posterior, overlap).column
    share = np.zeros((len(posterior.observations), column.shape[1]))
    for z, columns in zip(posterior.flat, column, strict=True):
        there = columns >= 0
        share[:, there] += z[:, columns[there]]
    names = pd.Index(np.arange(1, column.shape[1] + 1), name="feature")
    return pd.DataFrame(share / len(column), posterior.observations, names)


def loading_table(
    idata: "xr.DataTree | FeaturePosterior", *, ci_prob: float | None = None, overlap: float = 0.5
) -> "pd.DataFrame":
    """Summarise the loading of each feature on each column of the table.

    Parameters
    ----------
    idata : xarray.DataTree or FeaturePosterior
        Result of a model with features and loadings, such as :func:`bayesstruct.models.latent_features`, or one
        that was read already.
    ci_prob : float, optional
    overlap : float, default 0.5
        As in :func:`feature_table`, whose names of features these are.

    Returns
    -------
    pandas.DataFrame
        One row for each feature and column of the table: ``feature``, ``variable``, and ``mean``, ``hdi_low`` and
        ``hdi_high`` of the loading in the draws that have the feature.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of such a model, or an option is out of range.

    Examples
    --------
    >>> loading_table(idata).pivot(
    ...     index="feature", columns="variable", values="mean"
    ... )  # doctest: +SKIP
    """
    import pandas as pd

    ci_prob = interval_probability(ci_prob)
    posterior = read_features(idata)
    if posterior.loading is None:
        raise ValueError(
            "the features of this result have no `loading` on columns of a table: read them with "
            "bs.feature_table and bs.feature_membership."
        )
    matched = match(posterior, overlap)
    loadings = matched.pick(posterior.loading.reshape(-1, *posterior.loading.shape[2:]))
    k, d = loadings.shape[1:]
    parts = [
        feature_summaries(loadings[:, a], matched.present[:, [a] * d], ci_prob) for a in range(k)
    ]
    mean, low, high = np.array(parts).reshape(k, 3, d).transpose(1, 0, 2).reshape(3, -1)
    return pd.DataFrame(
        {
            "feature": np.repeat(np.arange(1, k + 1), d),
            "variable": posterior.variables * k,
            "mean": mean,
            "hdi_low": low,
            "hdi_high": high,
        }
    )


def feature_summaries(values: np.ndarray, present: np.ndarray, ci_prob: float) -> np.ndarray:
    """Mean and interval of each column over the draws in which it is present.

    The interval of a single draw is NaN.
    """
    import arviz as az

    out = np.full((3, values.shape[1]), np.nan)
    for a in range(values.shape[1]):
        drawn = values[present[:, a], a].astype(float)
        if len(drawn):
            out[0, a] = drawn.mean()
        if len(drawn) > 1:
            out[1:, a] = az.hdi(drawn, prob=ci_prob)
    return out


#: Functions that read binary features, from whatever model they are.
FEATURE_READERS = (
    "feature_count_probabilities",
    "feature_membership",
    "co_assignment",
    "plot_feature_count",
    "check",
)


def _has_features(idata) -> bool:
    return FEATURE in variables(idata)


def _has_loadings(idata) -> bool:
    return {FEATURE, LOADING} <= variables(idata)


register_summary(
    "latent features", _has_features, feature_table, ("plot_features", *FEATURE_READERS)
)
register_summary(
    "latent features with loadings",
    _has_loadings,
    feature_table,
    ("loading_table", "plot_features", *FEATURE_READERS),
    before="latent features",
)
