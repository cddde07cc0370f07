"""Additive clustering: overlapping groups of objects behind their similarities.

feature      ~ IndianBuffet(alpha)                 which groups each object is in, any number of them
interaction  ~ HalfNormal(weight_scale)            similarity that a common group adds
y            ~ Normal(bias + sum of the weights of the groups that both are in, noise)
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.data.arguments import optional_number
from bayesstruct.data.recoding import without_codes
from bayesstruct.features.data.links import LinkTable
from bayesstruct.features.model_parts.links import pair_coords, record_pairs
from bayesstruct.features.model_parts.process import choose_max_features, features, mass
from bayesstruct.features.ops.columns import features_in_use
from bayesstruct.features.priors.feature_interactions import FeatureInteractions, feature_pairs

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["additive_clustering"]


def additive_clustering(
    similarities: "TableLike",
    *,
    alpha: float | None = None,
    noise: float | None = None,
    weight_scale: float | None = None,
    max_features: int | None = None,
    missing_codes: Any = None,
) -> pm.Model:
    r"""Learn overlapping groups of objects, and their number, from the similarities of pairs.

    .. math::

        y_{ij} \sim N\Bigl(b + \sum_k w_k z_{ik} z_{jk}, \sigma^2\Bigr), \quad i < j, \qquad w_k \ge 0, \qquad
        Z \sim \mathrm{IBP}(\alpha)

    Parameters
    ----------
    similarities : DataFrame or (n, n) array_like
        Symmetric; NaN where two objects were not compared. The diagonal is not used.
    alpha : float, optional
        Mean number of groups of an object; by default it has a Gamma(2, 2) prior.
    noise, weight_scale : float, optional
        :math:`\sigma`, and the scale of the half-normal weights; by default half-normal, with the standard
        deviation of the similarities and twice that as scale.
    max_features : int, optional
        Maximum number of groups; a chain that needs more stops with an error. By default a draw
        from the prior has more with probability 1e-8 (at least 20).
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.

    Returns
    -------
    pymc.Model
        With ``feature`` (observation, latent), left-ordered, ``interaction`` (latent), the weights of the groups,
        ``bias``, ``n_features``, the numbers that are not given, and ``y`` (pair).

    Raises
    ------
    TableError
        If the table cannot be used; the message says what is wrong and the remedy.
    TypeError, ValueError
        If an option is out of range.

    Notes
    -----
    The bias b is normal around the mean of the similarities, with twice their standard deviation (divisor: the number
    of pairs). Groups of a single object do not affect similarities: the data do not inform about them, and draws contain
    some from the prior.

    References
    ----------
    Navarro, D. J. and Griffiths, T. L. (2007). A nonparametric Bayesian method for inferring features from
    similarity judgments. *NIPS* 19. -- Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an
    introduction and review. *JMLR* 12, 1185-1224, section 6.4.

    Examples
    --------
    .. code-block:: python

        with bs.models.additive_clustering(similarities):
            idata = pm.sample()
    """
    table = LinkTable.similarities(without_codes(similarities, missing_codes))
    n, given = len(table.names), optional_number("alpha", alpha, above=0)
    columns = choose_max_features(n, max_features, given)
    noise = optional_number("noise", noise, above=0)
    scale = optional_number("weight_scale", weight_scale, above=0)
    spread = float(np.std(table.y))
    with pm.Model(coords=pair_coords(table, columns)) as model:
        mean_count = mass("alpha", given)
        noise = pm.HalfNormal("noise", spread) if noise is None else noise
        scale = pm.HalfNormal("weight_scale", 2.0 * spread) if scale is None else scale
        bias = pm.Normal("bias", float(table.y.mean()), 2.0 * spread)
        z = features("feature", mean_count, n, columns, ("observation", "latent"))
        weights = FeatureInteractions(
            "interaction", z, scale, kind="diagonal", positive=True, dims="latent"
        )
        pm.Deterministic("n_features", features_in_use(z))
        eta = bias + feature_pairs(z, weights, table.source, table.target)
        pm.Normal("y", eta, noise, observed=table.y, dims="pair")
        record_pairs(table, "normal")
    return model
