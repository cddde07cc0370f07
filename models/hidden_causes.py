"""Hidden causes: which unobserved binary causes make binary variables occur together, and how many?

feature  ~ IndianBuffet(alpha) over variables    which causes each variable has
cause    ~ Bernoulli(base_rate)                  which causes are active in each row
x        ~ NoisyOr(cause, feature, strength, leak)
"""

import numpy as np
import pymc as pm

from bayesstruct.data.arguments import is_number
from bayesstruct.data.states import StateTable
from bayesstruct.features.model_parts.links import check_number, room
from bayesstruct.features.priors.hidden_causes import CauseActivations, NoisyOr
from bayesstruct.features.priors.indian_buffet import IndianBuffet

__all__ = ["hidden_causes"]

_REMEDY = "say which of them count as an occurrence, such as data[column] > 2"


def hidden_causes(
    data,
    *,
    alpha=None,
    strength=None,
    leak=None,
    base_rate=None,
    concentration=1.0,
    discount=0.0,
    max_features=None,
):
    r"""Learn the hidden causes of binary variables, such as the diseases behind symptoms.

    .. math::

        P(x_{ti} = 0) = (1 - \epsilon) (1 - \lambda)^{\sum_k z_{ik} y_{tk}}, \qquad
        y_{tk} \sim \mathrm{Bernoulli}(q), \qquad Z \sim \mathrm{IBP}(\alpha)

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table; each column has two values (numbers, text, booleans), of which the second in order
        counts as 1, that it occurs. Missing cells are allowed: they are summed out.
    alpha : float, optional
        Mean number of causes of a variable; by default it has a Gamma(1, 1) prior.
    strength : float, optional
        :math:`\lambda`, the probability that an active cause brings about a variable that has it; by default
        Beta(4, 2).
    leak : float, optional
        :math:`\epsilon`, that of an occurrence without a cause; by default Beta(1, 9).
    base_rate : float, optional
        q, that a cause is active in a row; by default Beta(1, 2).
    concentration, discount : float
        Of the process, see :class:`bayesstruct.IndianBuffet`.
    max_features : int, optional
        Causes that there is room for. The prior is not cut: a chain that needs more stops with an error. By
        default a draw from the prior has more with probability 1e-5.

    Returns
    -------
    pymc.Model
        With ``feature`` (node, latent), left-ordered: which causes each variable has; ``cause``
        (observation, latent): where they are active; ``n_features``; ``alpha``, ``strength``, ``leak`` and
        ``base_rate``, as far as they are not given; and ``x``, the table as 0 and 1 (-1 where it is
        missing).

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    ValueError
        For an option out of range.

    Notes
    -----
    Read it with :func:`bayesstruct.feature_table` and :func:`bayesstruct.feature_membership`, whose rows are
    here the variables: causes come in no order of their own.

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
    table = StateTable.read(data).check_binary(_REMEDY)
    chances = {"strength": strength, "leak": leak, "base_rate": base_rate}
    _check_options(alpha, chances)
    n, p = table.codes.shape
    columns = room(p, max_features, alpha, concentration, discount, prior=(1.0, 1.0))
    coords = {"node": table.names, "latent": np.arange(columns), "observation": np.arange(n)}
    priors = {"strength": (4.0, 2.0), "leak": (1.0, 9.0), "base_rate": (1.0, 2.0)}
    with pm.Model(coords=coords) as model:
        alpha = pm.Gamma("alpha", 1.0, 1.0) if alpha is None else float(alpha)
        strength, leak, base_rate = (
            pm.Beta(name, *priors[name]) if value is None else float(value)
            for name, value in chances.items()
        )
        feature = IndianBuffet(
            "feature",
            alpha,
            observations=p,
            concentration=concentration,
            discount=discount,
            truncation=columns,
            dims=("node", "latent"),
        )
        cause = CauseActivations(
            "cause", feature, base_rate, observations=n, dims=("observation", "latent")
        )
        pm.Deterministic("n_features", (feature.sum(axis=0) > 0).sum())
        NoisyOr(
            "x",
            cause,
            feature,
            strength,
            leak,
            observed=table.codes,
            dims=("observation", "node"),
        )
    return model


def _check_options(alpha, chances):
    check_number("alpha", alpha)
    for name, value in chances.items():
        if value is not None and not (is_number(value) and 0 < value < 1):
            raise ValueError(
                f"`{name}` is a probability between 0 and 1, or None for a prior, not {value!r}"
            )
