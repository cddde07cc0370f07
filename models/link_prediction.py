"""Link prediction: which hidden features explain the links of a network, and which links are missing?

feature      ~ IndianBuffet(alpha)                 which features each object has, any number of them
interaction  ~ Normal(0, weight_scale)             how a feature of one object acts on one of another
y            ~ Bernoulli(link(bias + sum of the interactions of both objects' features))
"""

from typing import TYPE_CHECKING, Any

import pymc as pm

from bayesstruct.data.arguments import optional_number
from bayesstruct.data.names import nearest
from bayesstruct.features.data.links import LinkTable
from bayesstruct.features.model_parts.links import pair_coords, record_pairs
from bayesstruct.features.model_parts.process import choose_max_features, features, mass
from bayesstruct.features.ops.columns import features_in_use
from bayesstruct.features.priors.feature_interactions import FeatureInteractions, feature_pairs
from bayesstruct.features.priors.feature_links import FeatureLinks

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["link_prediction"]

_SCALES = {"logistic": 2.0, "probit": 1.2}  # of weights: half of them change even odds fourfold


def link_prediction(
    graph: Any,
    *,
    link: str = "logistic",
    directed: bool | None = None,
    unobserved: "Iterable[tuple]" = (),
    alpha: float | None = None,
    weight_scale: float | None = None,
    bias_scale: float | None = None,
    concentration: float = 1.0,
    discount: float = 0.0,
    max_features: int | None = None,
) -> pm.Model:
    r"""Learn the hidden features behind the links of a network, and predict those not observed.

    .. math::

        P(y_{ij} = 1) = g\Bigl(b + \sum_{kl} z_{ik} W_{kl} z_{jl}\Bigr), \qquad W_{kl} \sim N(0, \tau^2),
        \qquad Z \sim \mathrm{IBP}(\alpha),

    with W symmetric if the network is not directed. Unlike in a block model, an object has any number of
    features.

    Parameters
    ----------
    graph : networkx.Graph, networkx.DiGraph, DataFrame or (n, n) array_like
        A matrix has 1 for a link from the row to the column, 0 for none, and NaN where that is not known.
        Links of an object with itself are refused.
    link : {"logistic", "probit"}
        g: the logistic function or the normal distribution function.
    directed : bool, optional
        By default, whether the graph is directed, or the matrix is not symmetric.
    unobserved : iterable of pairs of nodes
        Pairs of which it is not known whether they are linked.
    alpha : float, optional
        Mean number of features of an object; by default it has a Gamma(2, 2) prior.
    weight_scale : float, optional
        :math:`\tau`; by default half-normal, with scale 2 (logistic) or 1.2 (probit).
    bias_scale : float, optional
        Prior standard deviation of the bias, which is normal around 0; by default 4 (logistic) or 2.4 (probit).
    concentration, discount : float
        Of the process, see :class:`bayesstruct.IndianBuffet`.
    max_features : int, optional
        Maximum number of features; a chain that needs more stops with an error. By default a draw
        from the prior has more with probability 1e-8 (at least 20).

    Returns
    -------
    pymc.Model
        With ``feature`` (observation, latent), left-ordered, ``interaction`` (latent, latent_), ``bias``,
        ``n_features``, ``alpha`` and ``weight_scale`` if they are not given, and ``y`` (pair).

    Raises
    ------
    TableError
        If the graph cannot be used; the message says what is wrong and the remedy.
    TypeError, ValueError
        If an option is out of range.

    Notes
    -----
    Features are not identified by their column: from draw to draw the same feature may be another column. The
    probabilities of links do not depend on their order: :func:`bayesstruct.link_probabilities`.

    Chains move slowly between sets of features that explain the links about equally well. If nearly all nodes have
    a feature, moreover, its weight and the bias are hardly identified separately. Trust probabilities on which
    the chains agree (:func:`bayesstruct.check`), and run more chains if they do not.

    References
    ----------
    Miller, K., Griffiths, T. and Jordan, M. (2009). Nonparametric latent feature models for link prediction.
    *NIPS* 22. -- Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and
    review. *JMLR* 12, 1185-1224, section 6.5.

    Examples
    --------
    .. code-block:: python

        with bs.models.link_prediction(graph, unobserved=[("a", "b")]):
            idata = pm.sample()
        bs.link_probabilities(idata)
    """
    if link not in _SCALES:
        raise ValueError(nearest("link", link, _SCALES))
    table = LinkTable.links(graph, directed=directed, unobserved=unobserved)
    n, given = len(table.names), optional_number("alpha", alpha, above=0)
    columns = choose_max_features(n, max_features, given, concentration, discount)
    scale = optional_number("weight_scale", weight_scale, above=0)
    spread = optional_number("bias_scale", bias_scale, above=0)
    spread = 2.0 * _SCALES[link] if spread is None else spread
    with pm.Model(coords=pair_coords(table, columns)) as model:
        mean_count = mass("alpha", given)
        if scale is None:
            scale = pm.HalfNormal("weight_scale", _SCALES[link])
        bias = pm.Normal("bias", 0.0, spread)
        z = features(
            "feature", mean_count, n, columns, ("observation", "latent"), concentration, discount
        )
        kind = "full" if table.directed else "symmetric"
        weights = FeatureInteractions(
            "interaction", z, scale, kind=kind, dims=("latent", "latent_")
        )
        pm.Deterministic("n_features", features_in_use(z))
        eta = bias + feature_pairs(z, weights, table.source, table.target)
        FeatureLinks("y", eta, link=link, observed=table.y.astype("int64"), dims="pair")
        record_pairs(table, link)
    return model
