"""Binary matrix factorization: hidden features of users and of items behind their ratings.

feature         ~ IndianBuffet(alpha)                 which features each row has, any number of them
column_feature  ~ IndianBuffet(column_alpha)          which features each column has
interaction     ~ Normal(0, weight_scale)             effect of a feature of a row on one of a column
y               ~ Normal(bias + sum of the interactions of both, noise)
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

__all__ = ["binary_matrix_factorization"]


def binary_matrix_factorization(
    ratings: "TableLike",
    *,
    alpha: float | None = None,
    column_alpha: float | None = None,
    noise: float | None = None,
    weight_scale: float | None = None,
    concentration: float = 1.0,
    column_concentration: float = 1.0,
    max_features: int | None = None,
    missing_codes: Any = None,
) -> pm.Model:
    r"""Learn hidden binary features of the rows and of the columns of a table of ratings.

    .. math::

        y_{ij} \sim N\Bigl(b + \sum_{kl} z_{ik} W_{kl} u_{jl}, \sigma^2\Bigr), \qquad
        W_{kl} \sim N(0, \tau^2), \qquad Z \sim \mathrm{IBP}(\alpha, c), \quad U \sim \mathrm{IBP}(\alpha', c')

    Parameters
    ----------
    ratings : DataFrame or (n, m) array_like
        Numbers, NaN where a row has not rated a column: these ratings are left out and predicted.
    alpha, column_alpha : float, optional
        Mean number of features of a row and of a column; by default Gamma(2, 2).
    noise, weight_scale : float, optional
        :math:`\sigma` and :math:`\tau`; by default half-normal, with the standard deviation of the ratings and
        twice that as scale.
    concentration, column_concentration : float
        Second parameters of the processes, see :class:`bayesstruct.IndianBuffet`.
    max_features : int, optional
        Maximum number of features of the rows, and of those of the columns; a chain that needs more stops with
        an error. By default a draw from the prior has more with probability 1e-8 (at least 20).
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999 or ``["unknown", 99]``; a dict has those of each column.

    Returns
    -------
    pymc.Model
        With ``feature`` (observation, latent), ``column_feature`` (node, latent_), ``interaction`` (latent, latent_),
        ``bias``, ``n_features``, ``n_column_features``, the numbers that are not given, and ``y`` (pair).

    Raises
    ------
    TableError
        If the table cannot be used; the message says what is wrong and the remedy.
    TypeError, ValueError
        If an option is out of range.

    Notes
    -----
    The bias b is normal around the mean of the ratings, with twice their standard deviation (divisor: the number of ratings).
    :func:`bayesstruct.link_probabilities` returns the expected ratings of all rows and columns.

    References
    ----------
    Meeds, E., Ghahramani, Z., Neal, R. and Roweis, S. (2007). Modeling dyadic data with binary latent factors.
    *NIPS* 19. -- Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and
    review. *JMLR* 12, 1185-1224, sections 6.3 and 7.1.

    Examples
    --------
    .. code-block:: python

        with bs.models.binary_matrix_factorization(ratings):
            idata = pm.sample()
        bs.link_probabilities(idata)
    """
    table = LinkTable.ratings(without_codes(ratings, missing_codes))
    n, m = len(table.names), len(table.targets)
    given = optional_number("alpha", alpha, above=0)
    other_given = optional_number("column_alpha", column_alpha, above=0)
    columns = choose_max_features(n, max_features, given, concentration)
    others = choose_max_features(m, max_features, other_given, column_concentration)
    noise = optional_number("noise", noise, above=0)
    scale = optional_number("weight_scale", weight_scale, above=0)
    spread = float(np.std(table.y))
    with pm.Model(coords=pair_coords(table, columns, others)) as model:
        mean_count, other_count = mass("alpha", given), mass("column_alpha", other_given)
        noise = pm.HalfNormal("noise", spread) if noise is None else noise
        scale = pm.HalfNormal("weight_scale", 2.0 * spread) if scale is None else scale
        bias = pm.Normal("bias", float(table.y.mean()), 2.0 * spread)
        z = features("feature", mean_count, n, columns, ("observation", "latent"), concentration)
        u = features(
            "column_feature", other_count, m, others, ("node", "latent_"), column_concentration
        )
        weights = FeatureInteractions("interaction", z, scale, other=u, dims=("latent", "latent_"))
        pm.Deterministic("n_features", features_in_use(z))
        pm.Deterministic("n_column_features", features_in_use(u))
        eta = bias + feature_pairs(z, weights, table.source, table.target, other=u)
        pm.Normal("y", eta, noise, observed=table.y, dims="pair")
        record_pairs(table, "normal")
    return model
