"""Tables of partitions: which rows are together, which clusters there are, and their coefficients."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_summary, variables
from bayesstruct.features.reading.posterior import FeaturePosterior, draws_with, match
from bayesstruct.features.reading.tables import (
    feature_summaries,
    matched_table,
    mean_in_common,
)
from bayesstruct.graphs.groups import SAMPLE_DIMS, group_dataset
from bayesstruct.graphs.summaries import interval_probability
from bayesstruct.mixtures.reading.records import MixturePrior

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["CLUSTER", "cluster_coefficients", "cluster_table", "co_clustering", "read_clusters"]

CLUSTER = "cluster"
COEFFICIENT = "coefficient"
_ORIGIN = "a model with a bs.ChineseRestaurant, such as bs.models.dp_glm"


def read_clusters(idata, var_name, group="posterior") -> FeaturePosterior:
    """Return memberships of clusters as binary features, of which each row has one."""
    draws = draws_with(idata, var_name, group, "the labels of clusters", _ORIGIN)
    labels = draws[var_name]
    if labels.ndim != 3 or not {*SAMPLE_DIMS} <= {*labels.dims}:
        raise ValueError(
            f"`{var_name}` must be a vector for each chain and draw, found {labels.dims}."
        )
    labels = labels.transpose(*SAMPLE_DIMS, ...)
    values, rows = labels.values, labels.dims[2]
    if not values.size:
        raise ValueError("This result holds no draws.")
    if values.min() < 0 or (values != np.round(values)).any():
        raise ValueError(f"`{var_name}` must hold labels 0, 1, 2, ...")
    member = values[..., None] == np.arange(values.max() + 1)
    names = draws[rows].values if rows in draws.coords else np.arange(values.shape[2])
    return FeaturePosterior(member, None, names, None)


def co_clustering(idata: "xr.DataTree", *, var_name: str = CLUSTER) -> "pd.DataFrame":
    """Posterior probability that two rows are in one cluster.

    This does not require matching: it does not depend on the labels of the clusters.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a model with a partition, of at most 5,000 rows.
    var_name : str, default "cluster"

    Returns
    -------
    pandas.DataFrame, shape (n, n)

    Raises
    ------
    TypeError, ValueError
        If `idata` is not such a result, or has too many rows.

    Examples
    --------
    >>> co_clustering(idata).loc[0].nlargest(5)  # doctest: +SKIP
    """
    return mean_in_common(read_clusters(idata, var_name))


def cluster_table(
    idata: "xr.DataTree",
    *,
    ci_prob: float | None = None,
    overlap: float = 0.5,
    var_name: str = CLUSTER,
) -> "pd.DataFrame":
    r"""Summarise every cluster of a model with a partition.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a model with a partition, such as :func:`bayesstruct.models.dp_glm`.
    ci_prob : float, optional
        Probability of the highest-density intervals; by default ``arviz.rcParams["stats.ci_prob"]``.
    overlap : float, default 0.5
        In (0, 1]: a cluster of a draw is matched to one of the reference only if their Dice coefficient, twice the
        number of rows in both over the sum of their numbers of rows, is at least this.
    var_name : str, default "cluster"

    Returns
    -------
    pandas.DataFrame
        One row for each cluster of the reference draw, named 1, 2, ... in decreasing order of size, with

        probability
            Share of the draws that have the cluster.
        size, hdi_low, hdi_high
            Number of its rows, over the draws that have the cluster.
        ess, r_hat
            Effective sample size and R-hat of the 0/1 indicator that a draw has the cluster.

        ``attrs`` has the ``reference`` draw (chain, draw) and ``unmatched``, the mean number of clusters
        of a draw that are not matched to any of these.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not such a result, or an option is out of range.

    Notes
    -----
    Clusters have no order and no names, so that posterior means of single labels are meaningless. Clusters are named
    after those of a reference draw: the one whose co-clustering matrix is closest to the posterior mean of that
    matrix, the least-squares clustering of Dahl (2006). The clusters of any other draw are matched to them one to
    one, so that the sum of their Dice coefficients is largest.

    References
    ----------
    Dahl, D. B. (2006). Model-based clustering for expression data via a Dirichlet process mixture model. In:
    *Bayesian Inference for Gene Expression and Proteomics*, 201-218.

    Examples
    --------
    >>> cluster_table(idata).query("probability > 0.5")  # doctest: +SKIP
    """
    ci_prob = interval_probability(ci_prob)
    posterior = read_clusters(idata, var_name)
    size = posterior.flat.sum(axis=1)
    return matched_table(posterior, overlap, ci_prob, size, ("cluster", "size"))


def cluster_coefficients(
    idata: "xr.DataTree",
    *,
    ci_prob: float | None = None,
    overlap: float = 0.5,
    var_name: str = CLUSTER,
) -> "pd.DataFrame":
    """Summarise the coefficients of each cluster of a mixture of regressions.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.dp_glm`.
    ci_prob : float, optional
    overlap : float, default 0.5
    var_name : str, default "cluster"
        All as in :func:`cluster_table`, whose names of clusters these are.

    Returns
    -------
    pandas.DataFrame
        One row for each cluster and term: ``cluster``, ``term``, and ``mean``, ``hdi_low`` and ``hdi_high`` of the
        coefficient in the draws that have the cluster, in the units of the table. The intercept is the linear predictor at the
        means of all columns, as ``attrs["notes"]`` says, not where they are zero.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not such a result, or an option is out of range.

    Examples
    --------
    >>> cluster_coefficients(idata).pivot(
    ...     index="cluster", columns="term", values="mean"
    ... )  # doctest: +SKIP
    """
    import pandas as pd

    ci_prob = interval_probability(ci_prob)
    posterior = read_clusters(idata, var_name)
    draws = group_dataset(idata, "posterior")
    if COEFFICIENT not in draws:
        raise ValueError(
            "The clusters of this result have no `coefficient`: read them with bs.cluster_table."
        )
    values = draws[COEFFICIENT].transpose(*SAMPLE_DIMS, "component", "term")
    matched = match(posterior, overlap)
    picked = matched.pick(values.values.reshape(-1, *values.shape[2:]))
    k, d = picked.shape[1:]
    parts = [
        feature_summaries(picked[:, a], matched.present[:, [a] * d], ci_prob) for a in range(k)
    ]
    mean, low, high = np.array(parts).reshape(k, 3, d).transpose(1, 0, 2).reshape(3, -1)
    table = pd.DataFrame(
        {
            "cluster": np.repeat(np.arange(1, k + 1), d),
            "term": [str(term) for term in values["term"].values] * k,
            "mean": mean,
            "hdi_low": low,
            "hdi_high": high,
        }
    )
    if MixturePrior.is_in(idata):
        center = MixturePrior.read(idata).location
        means = ", ".join(
            f"{term} = {x:.6g}" for term, x in zip(values["term"].values[1:], center, strict=True)
        )
        table.attrs["notes"] = [
            f"intercept: the linear predictor at the means of the columns, {means}"
        ]
    return table


def _has_clusters(idata) -> bool:
    return CLUSTER in variables(idata)


def _has_coefficients(idata) -> bool:
    return {CLUSTER, COEFFICIENT} <= variables(idata)


register_summary(
    "clusters", _has_clusters, cluster_table, ("co_clustering", "plot_clusters", "check")
)
register_summary(
    "clusters of regressions",
    _has_coefficients,
    cluster_table,
    ("cluster_coefficients", "mixture_predictions", "co_clustering", "plot_clusters", "check"),
    before="clusters",
)
