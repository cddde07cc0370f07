"""Dirichlet-process mixture of regressions: how does a response depend on its predictors, here and there?

cluster     ~ ChineseRestaurant(alpha)                which rows belong together
x           ~ Normal(covariate_mean, covariate_variance)   of the cluster of the row
y           ~ a generalised linear model of x         with coefficients of the cluster of the row
"""

import numpy as np
import pymc as pm

from bayesstruct.data.arguments import number, numbers, whole_number
from bayesstruct.data.checks import duplicates, max_columns, shape_problems, value_problems
from bayesstruct.data.errors import column_list, raise_problems
from bayesstruct.data.intake import Intake, read_columns
from bayesstruct.data.names import nearest
from bayesstruct.data.table import TableError
from bayesstruct.mixtures.priors.chinese_restaurant import ChineseRestaurant
from bayesstruct.mixtures.priors.mixture_parameters import ClusterNormals, ClusterVariances
from bayesstruct.mixtures.priors.mixture_rows import (
    ClusterBinary,
    ClusterCount,
    ClusterResponse,
    ClusterRows,
)

__all__ = ["dp_glm"]

FAMILIES = ("gaussian", "logistic", "poisson")


def dp_glm(
    data,
    response,
    *,
    family: str = "gaussian",
    alpha: float | None = None,
    within: float = 0.5,
    mean_strength: float = 0.25,
    coefficient_scale: float | None = None,
    max_clusters: int = 50,
) -> pm.Model:
    r"""Learn in how many ways a response depends on its predictors, and for which rows each of them holds.

    .. math::

        c \sim \mathrm{CRP}(\alpha), \qquad x_{ij} \sim N(\mu_{kj}, v_{kj}), \qquad
        y_i \sim \mathrm{GLM}\bigl(\beta_{k0} + \sum_j \beta_{kj} (x_{ij} - \bar x_j)\bigr), \qquad k = c_i

    The regression function is an average of lines (or logistic curves), weighted by how well a row fits among
    the rows of each cluster: a smooth curve of any form.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table of numbers, in any units; without missing cells.
    response : str or (n,) array_like
        Name of a column of the table, which is then no predictor, or the values themselves.
    family : {"gaussian", "logistic", "poisson"}
        Of the response: any numbers; 0 and 1; counts 0, 1, 2, ...
    alpha : float, optional
        Mass of the process; by default it has a Gamma(1, 1) prior.
    within : float, default 0.5
        Prior mean of the variance of a column within a cluster, as a share of its variance in the table; of
        the response too, given the predictors, if it is normal. All have inverse gamma priors with shape 2.
    mean_strength : float, default 0.25
        The prior of the mean of a column in a cluster counts as so many rows.
    coefficient_scale : float, optional
        By default 2, and for counts 0.5: prior standard deviation of coefficients, for columns in their
        standard deviations and a response in its own, or a linear predictor as it is. For a normal response
        it holds where the noise variance is at its prior mean, and goes with the noise: give more if the
        response is all but determined in a cluster. The mean of counts in a new cluster goes with the
        exponential of its square.
    max_clusters : int, default 50
        Clusters that there is room for. The prior is not cut: a chain that needs more stops with an error.

    Returns
    -------
    pymc.Model
        With ``cluster`` (observation), labels in the order of their appearance; ``n_clusters``;
        ``covariate_mean`` and ``covariate_variance`` (component, node); ``coefficient`` (component, term), in the
        units of the table, of which ``intercept`` is at the means of the columns; ``noise_variance`` (component,
        response) if the response is normal; ``alpha``; ``x`` and ``y``, the table. What belongs to clusters
        beyond ``n_clusters`` is zero.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        If an option is out of range.

    Notes
    -----
    Clusters come in no order of their own: read them with :func:`bayesstruct.co_clustering` and
    :func:`bayesstruct.cluster_table`, and predict with :func:`bayesstruct.mixture_predictions`.

    In posterior predictive draws ``y`` is the response of the replicated ``x``. For responses of the observed
    rows: ``with pm.do(model, {"x": data}): pm.sample_posterior_predictive(idata, var_names=["y"])``.

    The log likelihood of a row is that given its cluster: ``az.loo`` warns where a row is nearly alone in its own.

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
    if family not in FAMILIES:
        raise ValueError(f"`family` must be one of {', '.join(FAMILIES)}, not {family!r}")
    names, x, y, label = _read(data, response)
    _check_response(y, label, family)
    prior = _Prior(x, y, family, within, mean_strength, coefficient_scale)
    room = min(whole_number("max_clusters", max_clusters, 1), len(y))
    coords = {
        "node": names,
        "term": ["intercept", *names],
        "observation": np.arange(len(y)),
        "component": np.arange(room),
        "response": [label],
        "family": [family],
    }
    with pm.Model(coords=coords) as model:
        if alpha is None:
            alpha = pm.Gamma("alpha", 1.0, 1.0)
        else:
            alpha = pm.Data("alpha", number("alpha", alpha, above=0))
        cluster = ChineseRestaurant(
            "cluster", alpha, observations=len(y), max_clusters=room, dims="observation"
        )
        pm.Deterministic("n_clusters", cluster.max() + 1)
        centre = pm.Data("covariate_location", prior.location, dims="node")
        covariates = _covariates(cluster, centre, prior, room)
        ClusterRows("x", cluster, *covariates, observed=x, dims=("observation", "node"))
        _respond(model["x"], cluster, centre, prior, y)
    return model


def _covariates(cluster, centre, prior, room):
    """Add means and variances of the columns in each cluster."""
    dims = ("component", "node")
    variance = ClusterVariances(
        "covariate_variance",
        cluster,
        pm.Data("covariate_shape", prior.shape),
        pm.Data("covariate_rate", prior.rate, dims="node"),
        components=room,
        dims=dims,
    )
    strength = pm.Data("covariate_strength", prior.strength, dims="node")
    mean = ClusterNormals("covariate_mean", cluster, variance, centre, strength, dims=dims)
    return mean, variance


def _respond(x, cluster, centre, prior, y):
    """Add coefficients, noise and the response."""
    room = len(pm.modelcontext(None).coords["component"])
    normal = prior.family == "gaussian"
    if normal:
        variance = ClusterVariances(
            "noise_variance",
            cluster,
            pm.Data("noise_shape", prior.shape),
            pm.Data("noise_rate", prior.noise_rate)[None],
            components=room,
            dims=("component", "response"),
        )
    else:
        variance = np.ones((room, 1))
    coefficient = ClusterNormals(
        "coefficient",
        cluster,
        variance,
        pm.Data("coefficient_location", prior.start, dims="term"),
        pm.Data("coefficient_strength", prior.weight, dims="term"),
        dims=("component", "term"),
    )
    # What the response is, for those who read the result.
    pm.Data("response_family", np.ones(1), dims="family")
    given = (x, cluster, coefficient, centre)
    options = {"observed": y, "dims": "observation"}
    if normal:
        ClusterResponse("y", *given, variance, **options)
    elif prior.family == "logistic":
        ClusterBinary("y", *given, **options)
    else:
        ClusterCount("y", *given, **options)


class _Prior:
    """Constants of the priors, in the units of the table.

    Attributes
    ----------
    location, rate, strength : (d,)
        Of the columns.
    start, weight : (d + 1,)
        Prior means of the coefficients, and the diagonal of Lambda.
    shape, noise_rate
        Of variances.
    """

    shape = 2.0

    def __init__(self, x, y, family, within, mean_strength, coefficient_scale):
        within = number("within", within, above=0)
        if coefficient_scale is None:
            coefficient_scale = 0.5 if family == "poisson" else 2.0
        scale = number("coefficient_scale", coefficient_scale, above=0)
        self.family = family
        self.location, deviation = x.mean(axis=0), x.std(axis=0)
        self.strength = np.full(x.shape[1], number("mean_strength", mean_strength, above=0))
        # The mean of an inverse gamma variable is its rate over its shape less one.
        self.rate = within * deviation**2
        self.noise_rate = within * float(y.var())
        level, share = _level(y, family), within if family == "gaussian" else 1.0
        self.start = np.append(level, np.zeros(x.shape[1]))
        # In deviations of the response, noise has variance `within` and coefficients `scale` squared.
        self.weight = share / scale**2 * np.append(1.0, deviation**2)


def _level(y, family):
    """Prior mean of the intercept: the linear predictor of the mean response."""
    mean = float(y.mean())
    if family == "logistic":
        return float(np.log(mean) - np.log1p(-mean))
    return float(np.log(mean)) if family == "poisson" else mean


def _read(data, response):
    """Return names and values of the predictors, values and name of the response."""
    intake = read_columns(data, max_columns())
    if isinstance(response, str):
        if response not in intake.names:
            raise TableError(nearest("response", response, intake.names))
    else:
        intake, response = _with_response(intake, response)
    raise_problems(shape_problems(intake))
    raise_problems([*value_problems(intake), *duplicates(intake.names, intake.values)])
    gaps = [n for n, v in zip(intake.names, intake.values.T, strict=True) if np.isnan(v).any()]
    if gaps:
        raise TableError(
            f"{column_list(gaps)}: missing cells; leave these rows out (data.dropna()) or fill them"
        )
    place = intake.names.index(response)
    names = [n for n in intake.names if n != response]
    return names, np.delete(intake.values, place, axis=1), intake.values[:, place].copy(), response


def _with_response(intake, response):
    """Add values of the response to the columns of a table."""
    name = getattr(response, "name", None)
    name = name if isinstance(name, str) and name else "response"
    if name in intake.names:
        raise TableError(
            f"{name!r} is both a column of the table and the response: give its name, or drop the column"
        )
    y = numbers("`response`", response)
    if y.shape != (len(intake.values),):
        raise TableError(
            f"`response` must be a column of the table or {len(intake.values)} numbers, one for each row, "
            f"not an array of shape {y.shape}"
        )
    values = np.column_stack([intake.values, y])
    return Intake([*intake.names, name], values, intake.refused), name


def _check_response(y, label, family):
    if family == "logistic" and not np.isin(y, (0, 1)).all():
        raise TableError(
            f"{label!r}: the response of a logistic regression is 0 and 1; compare it with a value first, as "
            f"in data[{label!r}] > 2"
        )
    if family == "poisson" and not ((y >= 0) & (y == np.round(y))).all():
        raise TableError(
            f"{label!r}: the response of a Poisson regression is a count, 0, 1, 2, ...; take "
            "family='gaussian' for other numbers"
        )
