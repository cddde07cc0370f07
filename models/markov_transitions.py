"""Shared behaviours: between which behaviours do time series switch, and which of them do they share?

feature     ~ IndianBuffet(alpha) over series         which behaviours each series has
transition  ~ Dirichlet(concentration, + stickiness)  how each series moves among its own
state       ~ Markov chain, summed out
x           ~ Normal(emission_mean[state], emission_scale[state])
"""

import math

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.core.missing import show_missing
from bayesstruct.data.arguments import number, optional_number
from bayesstruct.features.model_parts.process import choose_max_features
from bayesstruct.features.ops.columns import features_in_use
from bayesstruct.features.priors.indian_buffet import FeatureLoadings, IndianBuffet
from bayesstruct.series.data import SeriesTable
from bayesstruct.series.priors import BehaviourScales, BehaviourTransitions, SwitchingSeries
from bayesstruct.series.reading import RecordedSeries

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["markov_transitions"]

_LEAST = 20  # behaviours for which there is always room
_TRANSITIONS = 20_000  # numbers that one draw holds, if there is room for more


def markov_transitions(
    data: "TableLike",
    *,
    series: str | None = None,
    alpha: float | None = None,
    transition_concentration: float = 1.0,
    stickiness: float = 10.0,
    mean_scale: float = 1.0,
    variance_shape: float = 2.0,
    variance_rate: float = 0.2,
    concentration: float = 1.0,
    discount: float = 0.0,
    max_features: int | None = None,
    missing_codes: Any = None,
) -> pm.Model:
    r"""Learn behaviours that several time series share, and which of them each series has.

    .. math::

        P(s_{t+1} = l \mid s_t = k) = \pi^{(i)}_{kl}, \qquad
        \pi^{(i)}_k \sim \mathrm{Dirichlet}(\gamma + \kappa 1[k = l] : z_{il} = 1), \qquad
        y_{tj} \mid s_t = k \sim N(\mu_{kj}, \sigma_{kj}^2), \qquad Z \sim \mathrm{IBP}(\alpha)

    Parameters
    ----------
    data : DataFrame, dict or list
        A long table whose rows are in the order of time, with a column that identifies the series; or one table
        for each series, a dict with their names or a list. Series may differ in length. Columns may be in any
        units: each is standardised to mean 0 and standard deviation 1 (divisor n - 1) over all rows of all series. Missing
        values (NaN) are summed out; a row without any value is a gap of one time step.
    series : str, optional
        The column of a long table that identifies the series.
    alpha : float, optional
        Prior mean of the number of behaviours of a series; by default it has a Gamma(1, 1) prior.
    transition_concentration : float, default 1
        :math:`\gamma`, above 0.
    stickiness : float, default 10
        :math:`\kappa`, at least 0: the larger, the longer a series is expected to stay in a behaviour.
    mean_scale : float, default 1
        Standard deviation of the means of behaviours, in standard deviations of the column.
    variance_shape, variance_rate : float, default 2 and 0.2
        Of the inverse-gamma prior of the variances of behaviours, in squared standard deviations of the column.
    concentration, discount : float
        Of the process, see :class:`bayesstruct.IndianBuffet`.
    max_features : int, optional
        Maximum number of behaviours. The prior is not truncated: a chain that needs more stops with an error. By
        default a draw from the prior has more with probability 1e-8, and it is at least 20; with many series it is less,
        so that the transitions of one draw are at most 20,000 numbers (or 20 behaviours).
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.

    Returns
    -------
    pymc.Model
        With ``feature`` (observation, latent), whose observations are the series; ``transition`` (observation,
        latent, latent_); ``emission_mean`` and ``emission_scale`` (latent, node); ``n_features``; ``alpha``, if it
        is not given; and ``x`` (time, node), the standardised rows of all series (``location`` and
        ``scale`` convert back to their units; ``rows`` and ``missing`` are their lengths and where values are
        missing).

    Raises
    ------
    TableError
        If the data cannot be used; the message names the column or the series and the remedy.
    TypeError, ValueError
        If an option is out of range.

    Notes
    -----
    Read the result with :func:`bayesstruct.state_probabilities`. The behaviours of each series are read with
    :func:`bayesstruct.feature_table` and :func:`bayesstruct.feature_membership`; these two do not distinguish
    behaviours that the same series have.

    The first state of a series is any of its behaviours with equal probability.

    Each series has at least one behaviour: the prior of ``feature`` holds under this condition, which makes small
    values of ``alpha`` less probable than under its Gamma prior. Draws from the prior in which a series has no
    behaviour are NaN there. The log likelihood has one entry for each row, given the rows of its series before it.

    References
    ----------
    Fox, E. B., Sudderth, E. B., Jordan, M. I. and Willsky, A. S. (2009). Sharing features among dynamical systems
    with beta processes. *NIPS* 22, 549-557.

    Examples
    --------
    .. code-block:: python

        with bs.models.markov_transitions(table, series="subject"):
            idata = pm.sample()
        bs.state_probabilities(idata)
    """
    alpha = optional_number("alpha", alpha, above=0)
    gamma = number("transition_concentration", transition_concentration, above=0)
    kappa = number("stickiness", stickiness, least=0)
    mean_scale = number("mean_scale", mean_scale, above=0)
    shape = number("variance_shape", variance_shape, above=0)
    rate = number("variance_rate", variance_rate, above=0)
    table = SeriesTable.read(data, series, missing_codes)
    latent = np.arange(_columns(len(table.labels), max_features, alpha, concentration, discount))
    with pm.Model(coords=table.coords | {"latent": latent, "latent_": latent}) as model:
        feature = IndianBuffet(
            "feature",
            pm.Gamma("alpha", 1.0, 1.0) if alpha is None else alpha,
            observations=len(table.labels),
            concentration=concentration,
            discount=discount,
            max_features=len(latent),
            dims=("observation", "latent"),
        )
        pm.Deterministic("n_features", features_in_use(feature))
        transition = BehaviourTransitions(
            "transition", feature, gamma, kappa, dims=("observation", "latent", "latent_")
        )
        _observe(table, feature, transition, mean_scale, shape, rate)
    return model


def _columns(n, given, alpha, concentration, discount) -> int:
    """Maximum number of behaviours of n series."""
    ample = choose_max_features(n, given, alpha, concentration, discount, prior=(1.0, 1.0))
    if given is not None:
        return ample
    return min(ample, max(_LEAST, math.isqrt(_TRANSITIONS // n)))


def _observe(table, feature, transition, mean_scale, shape, rate):
    """Add the means and standard deviations of behaviours, and the series, to the model."""
    columns = {"variables": len(table.names), "dims": ("latent", "node")}
    mean = FeatureLoadings("emission_mean", feature, mean_scale, **columns)
    scale = BehaviourScales("emission_scale", feature, shape, rate, **columns)
    gaps = np.isnan(table.values)
    RecordedSeries(
        table.location, table.scale, np.array(table.lengths), gaps.astype(np.int8)
    ).record()
    x = SwitchingSeries(
        "x",
        feature,
        transition,
        mean,
        scale,
        lengths=table.lengths,
        seen=~gaps,
        observed=np.where(gaps, 0.0, table.standardized),
        dims=("time", "node"),
    )
    show_missing(x, gaps)
