"""Elimination by aspects: which hidden aspects of options decide between them, and how much?

feature      ~ IndianBuffet(alpha)             which aspects each option has, any number of them
interaction  ~ HalfNormal(1)                   weight of an aspect
y            ~ Binomial(trials, p)             how often the first of two options is chosen; p is the share
                                               of the aspects that it has and the other lacks
"""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from bayesstruct.data.arguments import optional_number, probability
from bayesstruct.features.data.choices import ChoiceTable
from bayesstruct.features.model_parts.process import choose_max_features, features, mass
from bayesstruct.features.ops.columns import features_in_use
from bayesstruct.features.priors.aspect_choices import aspect_probabilities
from bayesstruct.features.priors.feature_interactions import FeatureInteractions

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["elimination_by_aspects"]


def elimination_by_aspects(
    wins: "TableLike",
    *,
    alpha: float | None = None,
    lapse: float = 0.01,
    max_features: int | None = None,
) -> pm.Model:
    r"""Learn the hidden aspects of options, and their number, from choices between pairs.

    .. math::

        p_{ij} = (1 - \epsilon) \frac{f_{ij}}{f_{ij} + f_{ji}} + \frac{\epsilon}{2}, \qquad
        f_{ij} = \sum_k w_k z_{ik} (1 - z_{jk}), \qquad Z \sim \mathrm{IBP}(\alpha)

    Parameters
    ----------
    wins : DataFrame or (n, n) array_like
        How often the option of the row was chosen over that of the column. The diagonal is not used; 0 both ways,
        or NaN, where two options were never compared.
    alpha : float, optional
        Mean number of aspects of an option; by default it has a Gamma(2, 2) prior.
    lapse : float, default 0.01
        :math:`\epsilon` in (0, 1): probability of a choice at random.
    max_features : int, optional
        Maximum number of aspects; a chain that needs more stops with an error. By default a draw from the prior
        has more with probability 1e-8, and it is
        at least twice the number of options, and 20.

    Returns
    -------
    pymc.Model
        With ``feature`` (observation, latent), left-ordered, ``interaction`` (latent), the weights of the aspects,
        ``n_features``, ``alpha`` if it is not given, ``probability`` (pair), that the first option of a pair is
        chosen, and ``y`` (pair), how often it was.

    Raises
    ------
    TableError
        If the matrix cannot be used; the message says what is wrong and the remedy.
    TypeError, ValueError
        If an option is out of range.

    Notes
    -----
    Only ratios of weights matter: their prior has scale one. Aspects that all options have do not affect choices: such
    an aspect and none are different states with the same choices, and the number of aspects counts it.

    With few choices the posterior may hold "no aspect" beside sets of aspects by which all options differ, and nothing in
    between; chains get from one to the other by splits and unions of aspects
    (:class:`bayesstruct.steps.AspectFeatureGibbs`).

    References
    ----------
    Tversky, A. (1972). Elimination by aspects: a theory of choice. *Psychological Review* 79, 281-299. -- Gorur, D.,
    Jaekel, F. and Rasmussen, C. E. (2006). A choice model with infinitely many latent features. *ICML* 23, 361-368.

    Examples
    --------
    .. code-block:: python

        with bs.models.elimination_by_aspects(wins):
            idata = pm.sample()
        bs.feature_membership(idata)
    """
    table = ChoiceTable.read(wins)
    n, given = len(table.names), optional_number("alpha", alpha, above=0)
    lapse = probability("lapse", lapse)
    columns = choose_max_features(n, max_features, given, least=max(2 * n, 20))
    coords = {
        "observation": list(table.names),
        "latent": np.arange(columns),
        "pair": table.labels,
    }
    with pm.Model(coords=coords) as model:
        z = features("feature", mass("alpha", given), n, columns, ("observation", "latent"))
        weight = FeatureInteractions(
            "interaction", z, 1.0, kind="diagonal", positive=True, dims="latent"
        )
        pm.Deterministic("n_features", features_in_use(z))
        chance = aspect_probabilities(z, weight, table.first, table.second, lapse=lapse)
        pm.Deterministic("probability", chance, dims="pair")
        pm.Binomial("y", table.trials, chance, observed=table.wins, dims="pair")
    return model
