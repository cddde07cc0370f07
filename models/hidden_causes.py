"""Hidden causes: which unobserved binary causes make binary variables occur together, and how many?

feature  ~ IndianBuffet(alpha) over variables    which causes each variable has
cause    ~ Bernoulli(base_rate)                  which causes are active in each row
x        ~ NoisyOr(cause, feature, strength, leak)
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.core.missing import show_missing
from bayesstruct.core.tables.codings import record_levels
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.arguments import optional_number, optional_probability
from bayesstruct.data.orders import warn_about_presence
from bayesstruct.data.recoding import repeated_rows, without_codes
from bayesstruct.data.states import StateTable, refuse_coded_states
from bayesstruct.features.model_parts.process import choose_max_features, features
from bayesstruct.features.ops.columns import features_in_use
from bayesstruct.features.priors.hidden_causes import CauseActivations, NoisyOr
from bayesstruct.features.reading.records import CauseNumbers

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["hidden_causes"]

_REMEDY = "say which of them count as an occurrence, such as data[column] > 2"


def hidden_causes(
    data: "TableLike",
    *,
    alpha: float | None = None,
    strength: float | None = None,
    leak: float | None = None,
    base_rate: float | None = None,
    concentration: float = 1.0,
    discount: float = 0.0,
    max_features: int | None = None,
    states: Any = None,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn the hidden causes of binary variables, such as the diseases behind symptoms.

    .. math::

        P(x_{ti} = 0) = (1 - \epsilon) (1 - \lambda)^{\sum_k z_{ik} y_{tk}}, \qquad
        y_{tk} \sim \mathrm{Bernoulli}(q), \qquad Z \sim \mathrm{IBP}(\alpha)

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table; each column has two values (numbers, text, booleans), of which the second in order
        counts as 1, that it occurs. Missing values are allowed: they are summed out.
    alpha : float, optional
        Mean number of causes of a variable; by default it has a Gamma(1, 1) prior.
    strength : float, optional
        :math:`\lambda`, the probability that an active cause brings about a variable that has it; by default
        Beta(4, 2).
    leak : float, optional
        :math:`\epsilon`, the probability of an occurrence without a cause; by default Beta(1, 9).
    base_rate : float, optional
        q, the probability that a cause is active in a row; by default Beta(1, 2).
    concentration, discount : float
        Of the process, see :class:`bayesstruct.IndianBuffet`.
    max_features : int, optional
        Maximum number of causes. The prior is not truncated: a chain that needs more stops with an error. By
        default a draw from the prior has more with probability 1e-8 (at least 20).
    states : list or dict of lists, optional
        All states of each column, in order, also those that never occur and have their prior: one list for all
        columns, or a dict with one for each of some. Categories of pandas and polars declare theirs.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so: a table of frequencies. The
        result is that of the table with repeated rows.

    Returns
    -------
    pymc.Model
        With ``feature`` (node, latent), left-ordered: which causes each variable has; ``cause``
        (observation, latent): where they are active; ``n_features``; ``alpha``, ``strength``, ``leak`` and
        ``base_rate``, as far as they are not given; and ``x``, the table as 0 and 1.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        If an option is out of range.

    Warns
    -----
    TableWarning
        If columns have two words, or 1 and 2, of which it is not plain that the second is an occurrence, and nobody declared
        them.

    Notes
    -----
    Read the result with :func:`bayesstruct.feature_table` and :func:`bayesstruct.feature_membership`, whose rows are
    the variables here. Causes are not identified by their column.

    References
    ----------
    Wood, F., Griffiths, T. L. and Ghahramani, Z. (2006). A non-parametric Bayesian method for inferring
    hidden causes. *UAI* 22, 536-543.

    Examples
    --------
    .. code-block:: python

        with bs.models.hidden_causes(symptoms):
            idata = pm.sample()
        bs.feature_membership(idata)
    """
    [data] = repeated_rows(row_counts, data)
    refuse_coded_states(states, missing_codes)
    table = StateTable.read(without_codes(data, missing_codes), states=states).check_binary(_REMEDY)
    warn_about_presence(table)
    chances = {"strength": strength, "leak": leak, "base_rate": base_rate}
    alpha = optional_number("alpha", alpha, above=0)
    chances = {name: optional_probability(name, value) for name, value in chances.items()}
    n, p = table.codes.shape
    columns = choose_max_features(p, max_features, alpha, concentration, discount, prior=(1.0, 1.0))
    coords = {"node": table.names, "latent": np.arange(columns), "observation": np.arange(n)}
    priors = {"strength": (4.0, 2.0), "leak": (1.0, 9.0), "base_rate": (1.0, 2.0)}
    with pm.Model(coords=coords) as model:
        record_codes(missing_codes)
        alpha = pm.Gamma("alpha", 1.0, 1.0) if alpha is None else alpha
        strength, leak, base_rate = (
            pm.Beta(name, *priors[name]) if value is None else value
            for name, value in chances.items()
        )
        feature = features(
            "feature", alpha, p, columns, ("node", "latent"), concentration, discount
        )
        cause = CauseActivations(
            "cause", feature, base_rate, observations=n, dims=("observation", "latent")
        )
        pm.Deterministic("n_features", features_in_use(feature))
        given = {"strength": strength, "leak": leak, "base_rate": base_rate}
        CauseNumbers(**{k: v for k, v in given.items() if isinstance(v, float)}).record()
        record_levels(table)
        x = NoisyOr(
            "x",
            cause,
            feature,
            strength,
            leak,
            floats=bool(table.missing.any()),
            observed=table.codes,
            dims=("observation", "node"),
        )
        show_missing(x, table.missing, "int64")
    return model
