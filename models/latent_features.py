"""Latent features: which hidden binary features explain a table, and how many are there?

feature  ~ IndianBuffet(alpha)                 which features each row has, any number of them
loading  ~ Normal(0, loading_scale)            what a feature adds to each column
x        ~ Normal(baseline + feature @ loading, noise)
"""

import warnings

import numpy as np
import pymc as pm

from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.shape_utils import change_dist_size
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from bayesstruct.core.recognition import claim
from bayesstruct.core.recorded import register
from bayesstruct.data.errors import TableError
from bayesstruct.data.table import Table
from bayesstruct.features.model_parts.links import room
from bayesstruct.features.priors.indian_buffet import FeatureLoadings, IndianBuffet

__all__ = ["latent_features"]

_MOST = 100  # features that there is room for if alpha has a law with a heavy tail


def latent_features(
    data,
    *,
    alpha=None,
    sampler="gibbs",
    noise=None,
    loading_scale=None,
    concentration=1.0,
    discount=0.0,
    baseline=0.0,
    max_features=None,
):
    r"""Learn the hidden binary features behind a table of numbers, and how many there are.

    .. math::

        x_i \sim N(c + z_i A, \sigma^2 I), \qquad A_{kj} \sim N(0, \tau^2), \qquad
        Z \sim \mathrm{IBP}(\alpha)

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table of numbers in units that make sense together: one noise and one scale of the loadings
        serve all columns. Missing cells are NaN; each chain draws them.
    alpha : float or ``pm.Gamma.dist(...)`` or the like, optional
        Mean number of features of a row, or its prior; by default Gamma(1, 1).
    sampler : {"gibbs", "accelerated", "slice"}
        ``"gibbs"``, also called ``"accelerated"``, draws features with the loadings summed out; a row costs as
        much whatever their number. ``"slice"`` draws features given the loadings, and mixes slowly: a check
        of the other one. It takes discounts below 0.5 only.
    noise, loading_scale : float or ``pm.HalfNormal.dist(...)`` or the like, optional
        :math:`\sigma` and :math:`\tau`, or their priors; by default half-normal, with the root mean square of the
        table as scale.
    concentration, discount : float
        Of the process, see :class:`bayesstruct.IndianBuffet`.
    baseline : float or (d,) array_like
        c, what a row without features has.
    max_features : int, optional
        Features that there is room for. The prior is not cut: a chain that needs more stops with an
        error. By default a draw from the prior has more with probability 1e-5, and there are at most 100
        if `alpha` is a distribution.

    Returns
    -------
    pymc.Model
        With ``feature`` (observation, latent), left-ordered, ``loading`` (latent, node),
        ``n_features``, ``alpha``, ``noise`` and ``loading_scale``, as far as they are not given, and ``x``. With
        missing cells these are ``x_unobserved``, row by row, the others ``x_observed``, and ``x`` is the
        completed table.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    ValueError
        For an option out of range.

    Notes
    -----
    Features come in no order of their own: from draw to draw the same one may be another column. Each chain
    begins at the end of a search of its own (:func:`bayesstruct.solvers.latent_features`).

    Enough binary features explain any table exactly. Where the columns have a few values only (answers, counts),
    the density grows without bound as the noise goes to zero and features come without end: give `noise`, as in
    ``noise=0.8`` for standardised columns. Columns of numbers that depend on each other by degrees, not by
    kinds, take many features too (some fifty for the ``sachs`` table).

    Missing cells and features are drawn in turn: where many are missing, take more draws.

    References
    ----------
    Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review.
    *JMLR* 12, 1185-1224, section 5.
    """
    table = Table.continuous(data)
    for name, value in (("alpha", alpha), ("noise", noise), ("loading_scale", loading_scale)):
        _check_positive(name, value)
    n, d = table.values.shape
    columns = _room(n, max_features, alpha, concentration, discount)
    if sampler == "slice" and discount >= 0.5:
        raise ValueError(
            f'sampler="slice" takes a `discount` below 0.5, not {discount:g}; use "gibbs"'
        )
    baseline = _checked_baseline(baseline, d)
    size = _root_mean_square(table.values - baseline)
    coords = {"observation": np.arange(n), "latent": np.arange(columns), "node": table.names}
    with pm.Model(coords=coords) as model:
        alpha = _positive("alpha", alpha, pm.Gamma.dist(1.0, 1.0))
        noise = _positive("noise", noise, pm.HalfNormal.dist(size))
        loading_scale = _positive("loading_scale", loading_scale, pm.HalfNormal.dist(size))
        z = IndianBuffet(
            "feature",
            alpha,
            observations=n,
            concentration=concentration,
            discount=discount,
            truncation=columns,
            sampler=sampler,
            dims=("observation", "latent"),
        )
        loading = FeatureLoadings("loading", z, loading_scale, variables=d, dims=("latent", "node"))
        pm.Deterministic("n_features", (z.sum(axis=0) > 0).sum())
        mean = baseline + z @ loading
        with warnings.catch_warnings():
            # That missing cells are drawn is what the docstring says.
            warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
            pm.Normal("x", mean, noise, observed=_cells(table), dims=("observation", "node"))
        if table.missing.any():
            # pm.sample asks steps about these without telling them the model.
            claim(model["x_unobserved"], sampler)
    return model


def _room(n, given, alpha, concentration, discount) -> int:
    """Features that are stored."""
    if isinstance(alpha, TensorVariable):
        many = change_dist_size(alpha, (100_000,))
        drawn = 1.0 if given else pm.draw(many, mode="FAST_COMPILE", random_seed=0)
        columns = room(n, given, drawn, concentration, discount)
        return columns if given else min(columns, _MOST)
    return room(n, given, alpha, concentration, discount, prior=(1.0, 1.0))


def _root_mean_square(values) -> float:
    with np.errstate(over="ignore", under="ignore"):
        size = float(np.sqrt(np.nanmean(values**2)))
    if not 0 < size < np.inf:
        largest = np.nanmax(np.abs(values))
        raise TableError(
            f"The squares of the numbers, of which the largest is {largest:.2g}, are no floating-point "
            f"numbers: use other units, such as data / {largest:.2g}"
        )
    return size


def _cells(table):
    """Return the table as PyMC takes it: masked where cells are missing."""
    return np.ma.masked_invalid(table.values) if table.missing.any() else table.values


def _check_positive(name, value):
    if value is None or _is_scalar_law(value):
        return
    if isinstance(value, str | bool) or not (np.isscalar(value) and 0 < value < np.inf):
        raise ValueError(
            f"`{name}` must be a number above 0, one distribution such as pm.Gamma.dist(1, 1), without a "
            f"shape, or None, not {value!s:.60}"
        )


def _is_scalar_law(value):
    """Whether a value is an unregistered distribution of one number."""
    return (
        isinstance(value, TensorVariable)
        and value.ndim == 0
        and value.owner is not None
        and isinstance(value.owner.op, RandomVariable | SymbolicRandomVariable)
    )


def _positive(name, value, default):
    """Return a number, or the variable of the model that has the distribution."""
    if value is None:
        return register(name, default)
    return register(name, value) if isinstance(value, TensorVariable) else float(value)


def _checked_baseline(baseline, d):
    try:
        values = np.asarray(baseline, float)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.shape not in ((), (d,)) or not np.isfinite(values).all():
        raise ValueError(
            f"`baseline` must be a finite number or one for each of the {d} columns, such as "
            f"data.mean(), not {baseline!r:.60}"
        )
    return values
