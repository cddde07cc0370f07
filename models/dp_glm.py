"""Dirichlet-process mixture of regressions: regressions whose coefficients differ between latent clusters of rows.

cluster     ~ ChineseRestaurant(alpha)                which rows belong together
x           ~ Normal(covariate_mean, covariate_variance)   of the cluster of the row
y           ~ a generalised linear model of x         with coefficients of the cluster of the row
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.arguments import choice, whole_number
from bayesstruct.data.recoding import tables_without_codes
from bayesstruct.mixtures.data import FAMILIES, RegressionTable
from bayesstruct.mixtures.model_parts import mixture_prior
from bayesstruct.mixtures.ops import clusters_of
from bayesstruct.mixtures.priors.chinese_restaurant import ChineseRestaurant
from bayesstruct.mixtures.priors.mixture_parameters import ClusterNormals, ClusterVariances
from bayesstruct.mixtures.priors.mixture_rows import (
    ClusterBinary,
    ClusterCount,
    ClusterResponse,
    ClusterRows,
)
from bayesstruct.mixtures.reading.records import ResponseName

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["dp_glm"]


def dp_glm(
    data: "TableLike",
    response: Any,
    *,
    family: str = "gaussian",
    alpha: float | None = None,
    within: float = 0.5,
    mean_strength: float = 0.25,
    coefficient_scale: float | None = None,
    max_clusters: int = 50,
    missing_codes: Any = None,
) -> pm.Model:
    r"""Learn clusters of rows in which a response depends on its predictors in different ways, and their number.

    .. math::

        c \sim \mathrm{CRP}(\alpha), \qquad x_{ij} \sim N(\mu_{kj}, v_{kj}), \qquad
        y_i \sim \mathrm{GLM}\bigl(\beta_{k0} + \sum_j \beta_{kj} (x_{ij} - \bar x_j)\bigr), \qquad k = c_i

    The regression function is an average of lines (or logistic curves), weighted by the probabilities that a row
    belongs to each cluster: a smooth curve of any form.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table of numbers, in any units; without missing values.
    response : str, int or (n,) array_like
        Name of a column of the table (as it is there, also if it is a number), which is then not a predictor, or the values.
    family : {"gaussian", "logistic", "poisson"}
        Distribution of the response, which is any number; 0 or 1; or a count 0, 1, 2, ...
    alpha : float, optional
        Mass of the process; by default it has a Gamma(1, 1) prior.
    within : float, default 0.5
        Prior mean of the variance of a column within a cluster, as a share of its variance in the table; also of a
        normal response given the predictors. Variances have inverse-gamma priors with shape 2.
    mean_strength : float, default 0.25
        Number of rows that the prior of the mean of a column in a cluster counts as.
    coefficient_scale : float, optional
        Prior standard deviation of the coefficients, by default 2, and 0.5 for counts: of the change of the
        response, in its standard deviations, or of the linear predictor, for a change of a column by its standard
        deviation. For a normal response this holds if the noise variance is at its prior mean, and the scale is
        proportional to the noise: give more if the predictors nearly determine the response in a cluster. The mean of
        counts in a new cluster grows with the exponential of the squared scale.
    max_clusters : int, default 50
        Maximum number of clusters. The prior is not truncated: a chain that needs more stops with an error.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.

    Returns
    -------
    pymc.Model
        With ``cluster`` (observation), labels in the order of their appearance; ``n_clusters``;
        ``covariate_mean`` and ``covariate_variance`` (component, node); ``coefficient`` (component, term), in the
        units of the table, of which ``intercept`` is at the means of the columns; ``noise_variance`` (component,
        response) if the response is normal; ``alpha``; ``x`` and ``y``, the table. Parameters of clusters
        beyond ``n_clusters`` are zero.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        If an option is out of range.

    Notes
    -----
    Clusters are not identified by their labels: read them with :func:`bayesstruct.co_clustering` and
    :func:`bayesstruct.cluster_table`, and predict with :func:`bayesstruct.mixture_predictions`.

    In posterior predictive draws ``y`` is the response for the replicated ``x``. For responses of the observed
    rows use ``with pm.do(model, {"x": data}): pm.sample_posterior_predictive(idata, var_names=["y"])``.

    Standard deviations of columns and of the response are those with divisor n.

    The log likelihood of a row is conditional on its cluster: ``az.loo`` warns if a row is nearly alone in its
    cluster.

    Coefficients :math:`\beta_k` have the prior :math:`N(m, s_k \Lambda^{-1})` with the noise variance
    :math:`s_k` if the response is normal, otherwise :math:`N(m, \Lambda^{-1})`.

    References
    ----------
    Hannah, L. A., Blei, D. M. and Powell, W. B. (2011). Dirichlet process mixtures of generalized linear models.
    *JMLR* 12, 1923-1953.

    Examples
    --------
    .. code-block:: python

        with bs.models.dp_glm(table, "price"):
            idata = pm.sample()
        bs.mixture_predictions(idata, new_rows)
    """
    choice("family", family, FAMILIES)
    data, response = tables_without_codes(missing_codes, data, response, vector="response")
    table = RegressionTable.read(data, response, family)
    prior = mixture_prior(
        table,
        family,
        alpha=alpha,
        within=within,
        mean_strength=mean_strength,
        coefficient_scale=coefficient_scale,
    )
    components = min(whole_number("max_clusters", max_clusters, 1), len(table.y))
    coords = {
        "node": table.names,
        "term": ["intercept", *table.names],
        "observation": np.arange(len(table.y)),
        "component": np.arange(components),
        "response": [table.label],
        "family": [family],
    }
    with pm.Model(coords=coords) as model:
        record_codes(missing_codes)
        given = prior.as_data()
        cluster = ChineseRestaurant(
            "cluster",
            pm.Gamma("alpha", 1.0, 1.0) if alpha is None else given["alpha"],
            observations=len(table.y),
            max_clusters=components,
            dims="observation",
        )
        pm.Deterministic("n_clusters", clusters_of(cluster, components).used)
        covariates = _covariates(cluster, given, components)
        ClusterRows("x", cluster, *covariates, observed=table.x, dims=("observation", "node"))
        # The coordinate of this constant is the family of the response, for readers of the result.
        pm.Data("response_family", np.ones(1), dims="family")
        ResponseName(np.ones(1, int)).record()
        _respond(family, cluster, given, components, table.y)
    return model


def _covariates(cluster, given, components):
    """Add means and variances of the columns in each cluster."""
    dims = ("component", "node")
    variance = ClusterVariances(
        "covariate_variance",
        cluster,
        given["shape"],
        given["rate"],
        components=components,
        dims=dims,
    )
    mean = ClusterNormals(
        "covariate_mean", cluster, variance, given["location"], given["strength"], dims=dims
    )
    return mean, variance


def _respond(family, cluster, given, components, y):
    """Add coefficients, noise and the response."""
    normal, x = family == "gaussian", pm.modelcontext(None)["x"]
    variance = np.ones((components, 1))
    if normal:
        variance = ClusterVariances(
            "noise_variance",
            cluster,
            given["noise_shape"],
            given["noise_rate"][None],
            components=components,
            dims=("component", "response"),
        )
    coefficient = ClusterNormals(
        "coefficient",
        cluster,
        variance,
        given["start"],
        given["weight"],
        dims=("component", "term"),
    )
    parts = (x, cluster, coefficient, given["location"])
    options = {"observed": y, "dims": "observation"}
    if normal:
        ClusterResponse("y", *parts, variance, **options)
    elif family == "logistic":
        ClusterBinary("y", *parts, **options)
    else:
        ClusterCount("y", *parts, **options)
