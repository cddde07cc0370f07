"""Latent features: which hidden binary features explain a table, and how many are there?

feature  ~ IndianBuffet(alpha)                 which features each row has, any number of them
loading  ~ Normal(0, loading_scale)            effect of a feature on each column
x        ~ Normal(baseline + feature @ loading, noise)
"""

import warnings

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.shape_utils import change_dist_size
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from bayesstruct.core.recognition import claim
from bayesstruct.core.recorded import register
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.arguments import choice, is_number
from bayesstruct.data.errors import TableError
from bayesstruct.data.recoding import without_codes
from bayesstruct.data.table import Table
from bayesstruct.features.model_parts.process import choose_max_features, features
from bayesstruct.features.ops.columns import features_in_use
from bayesstruct.features.priors.indian_buffet import SAMPLERS, FeatureLoadings
from bayesstruct.features.reading.records import FeatureNumbers

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["latent_features"]

_MOST = 100  # default maximum number of features if alpha has a prior with a heavy tail


def latent_features(
    data: "TableLike",
    *,
    alpha: float | TensorVariable | None = None,
    sampler: str = "gibbs",
    noise: float | TensorVariable | None = None,
    loading_scale: float | TensorVariable | None = None,
    concentration: float = 1.0,
    discount: float = 0.0,
    baseline: Any = 0.0,
    max_features: int | None = None,
    missing_codes: Any = None,
) -> pm.Model:
    r"""Learn the hidden binary features behind a table of numbers, and how many there are.

    .. math::

        x_i \sim N(c + z_i A, \sigma^2 I), \qquad A_{kj} \sim N(0, \tau^2), \qquad
        Z \sim \mathrm{IBP}(\alpha)

    Parameters
    ----------
    data : DataFrame or array_like
        (n, d) table of numbers in comparable units: one noise and one scale of the loadings apply to all
        columns. Missing values are NaN; each chain draws them.
    alpha : float or ``pm.Gamma.dist(...)`` or the like, optional
        Mean number of features of a row, or its prior; by default Gamma(1, 1).
    sampler : {"gibbs", "accelerated", "slice"}
        ``"gibbs"``, also called ``"accelerated"``, draws features with the loadings summed out; its cost for each
        row does not depend on the number of rows. ``"slice"`` draws features given the loadings, and mixes slowly:
        a check of the other one. It requires a discount below 0.5.
    noise, loading_scale : float or ``pm.HalfNormal.dist(...)`` or the like, optional
        :math:`\sigma` and :math:`\tau`, or their priors, in the units of the table, whose columns are not standardised; by
        default half-normal, with the root mean square of all observed values about `baseline` as scale: with the default
        baseline of 0 that is about 0, not about their mean.
    concentration, discount : float
        Of the process, see :class:`bayesstruct.IndianBuffet`.
    baseline : float or (d,) array_like
        c, the mean of a row without features.
    max_features : int, optional
        Maximum number of features. The prior is not truncated: a chain that needs more stops with an
        error. By default a draw from the prior has more with probability 1e-8 (at least 20; at most
        100 if `alpha` is a distribution).
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.

    Returns
    -------
    pymc.Model
        With ``feature`` (observation, latent), left-ordered, ``loading`` (latent, node),
        ``n_features``, ``alpha``, ``noise`` and ``loading_scale``, as far as they are not given, and ``x``. With
        missing values these are ``x_unobserved``, row by row, the others ``x_observed``, and ``x`` is the
        completed table.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        If an option is out of range.

    Notes
    -----
    Features are not identified by their column: from draw to draw the same feature may be another column. Each
    chain begins at the result of a search (:func:`bayesstruct.solvers.latent_features`).

    Enough binary features explain any table exactly. If the columns have a few values only (answers, counts),
    the density grows without bound as the noise goes to zero and the number of features increases: give `noise`, as
    in ``noise=0.8`` for standardised columns. Columns whose dependence is gradual rather than by groups of rows
    require many features too (some fifty for the ``sachs`` table).

    Missing values and features are drawn in turn: if many values are missing, take more draws.

    References
    ----------
    Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review.
    *JMLR* 12, 1185-1224, section 5.
    """
    table = Table.continuous(without_codes(data, missing_codes), normal=False)
    for name, value in (("alpha", alpha), ("noise", noise), ("loading_scale", loading_scale)):
        _check_positive(name, value)
    choice("sampler", sampler, SAMPLERS)
    n, d = table.values.shape
    columns = _columns(n, max_features, alpha, concentration, discount)
    if sampler == "slice" and discount >= 0.5:
        raise ValueError(
            f'sampler="slice" requires a `discount` below 0.5, it is {discount:g}; use "gibbs"'
        )
    baseline = _checked_baseline(baseline, d)
    size = _root_mean_square(table.values - baseline)
    coords = {"observation": np.arange(n), "latent": np.arange(columns), "node": table.names}
    with pm.Model(coords=coords) as model:
        record_codes(missing_codes)
        alpha = _positive("alpha", alpha, pm.Gamma.dist(1.0, 1.0))
        noise = _positive("noise", noise, pm.HalfNormal.dist(size))
        loading_scale = _positive("loading_scale", loading_scale, pm.HalfNormal.dist(size))
        dims = ("observation", "latent")
        z = features("feature", alpha, n, columns, dims, concentration, discount, sampler=sampler)
        loading = FeatureLoadings("loading", z, loading_scale, variables=d, dims=("latent", "node"))
        pm.Deterministic("n_features", features_in_use(z))
        given = (v if isinstance(v, float) else None for v in (alpha, noise, loading_scale))
        FeatureNumbers(np.broadcast_to(baseline, d), concentration, discount, *given).record()
        mean = baseline + z @ loading
        with warnings.catch_warnings():
            # The docstring says that missing values are drawn.
            warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
            pm.Normal("x", mean, noise, observed=_masked(table), dims=("observation", "node"))
        if table.missing.any():
            # pm.sample asks steps about these without telling them the model.
            claim(model["x_unobserved"], SAMPLERS[sampler])
    return model


def _columns(n, given, alpha, concentration, discount) -> int:
    """Maximum number of features, by simulation if alpha has a prior of the user."""
    if isinstance(alpha, TensorVariable):
        many = change_dist_size(alpha, (100_000,))
        drawn = 1.0 if given else pm.draw(many, mode="FAST_COMPILE", random_seed=0)
        columns = choose_max_features(n, given, drawn, concentration, discount)
        return columns if given else min(columns, _MOST)
    return choose_max_features(n, given, alpha, concentration, discount, prior=(1.0, 1.0))


def _root_mean_square(values) -> float:
    with np.errstate(over="ignore", under="ignore"):
        size = float(np.sqrt(np.nanmean(values**2)))
    if not 0 < size < np.inf:
        largest = np.nanmax(np.abs(values))
        raise TableError(
            f"the largest number of the table is {largest:.2g}, and squares of its numbers overflow or vanish: use "
            f"other units, such as data / {largest:.2g}"
        )
    return size


def _masked(table):
    """Return the table as PyMC takes it: masked where values are missing."""
    return np.ma.masked_invalid(table.values) if table.missing.any() else table.values


def _check_positive(name, value):
    if value is None or _is_scalar_distribution(value):
        return
    if not (is_number(value) and 0 < value < np.inf):
        raise ValueError(
            f"`{name}` must be a number above 0, one distribution such as pm.Gamma.dist(1, 1), without a "
            f"shape, or None, not {value!s:.60}"
        )


def _is_scalar_distribution(value):
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
