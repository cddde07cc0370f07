"""Link prediction: which hidden features make objects link, and which links are missing?

feature      ~ IndianBuffet(alpha)                 which features each object has, any number of them
interaction  ~ Normal(0, weight_scale)             how a feature of one object acts on one of another
y            ~ Bernoulli(link(bias + sum of the interactions of both objects' features))
"""

import pymc as pm

from bayesstruct.data.names import nearest
from bayesstruct.features.data.links import LinkTable
from bayesstruct.features.model_parts.links import (
    check_number,
    features,
    mass,
    pair_coords,
    record_dyads,
    room,
)
from bayesstruct.features.priors.feature_interactions import FeatureInteractions, feature_pairs
from bayesstruct.features.priors.feature_links import FeatureLinks

__all__ = ["link_prediction"]

_SCALES = {"logistic": 2.0, "probit": 1.2}  # of weights: half of them change even odds fourfold


def link_prediction(
    graph,
    *,
    link="logistic",
    directed=None,
    unobserved=(),
    alpha=None,
    weight_scale=None,
    bias_scale=None,
    concentration=1.0,
    discount=0.0,
    max_features=None,
):
    r"""Learn the hidden features behind the links of a network, and predict those not observed.

    .. math::

        P(y_{ij} = 1) = g\Bigl(b + \sum_{kl} z_{ik} W_{kl} z_{jl}\Bigr), \qquad W_{kl} \sim N(0, \tau^2),
        \qquad Z \sim \mathrm{IBP}(\alpha),

    with W symmetric if the network is not directed. Unlike in a block model, an object has any number of
    features.

    Parameters
    ----------
    graph : networkx.Graph, networkx.DiGraph, DataFrame or (n, n) array_like
        Of a matrix, cells are 1 for a link from the row to the column, 0 for none, NaN if that is not known.
        Links of an object with itself are refused.
    link : {"logistic", "probit"}
        g: the logistic function or the normal distribution function.
    directed : bool, optional
        By default whether the graph is, or the matrix is not symmetric.
    unobserved : iterable of pairs of nodes
        Pairs that are left out: nothing is known about them.
    alpha : float, optional
        Mean number of features of an object; by default it has a Gamma(2, 2) prior.
    weight_scale : float, optional
        :math:`\tau`; by default half-normal, with scale 2 (logistic) or 1.2 (probit).
    bias_scale : float, optional
        The bias is normal around 0 with this standard deviation, by default twice the scale above.
    concentration, discount : float
        Of the process, see :class:`bayesstruct.IndianBuffet`.
    max_features : int, optional
        Features that there is room for; a chain that needs more stops with an error. By default a draw from
        the prior has more with probability 1e-5.

    Returns
    -------
    pymc.Model
        With ``feature`` (observation, latent), left-ordered, ``interaction`` (latent, latent_), ``bias``,
        ``n_features``, ``alpha`` and ``weight_scale`` if they are not given, and ``y`` (pair).

    Raises
    ------
    TableError
        If the graph cannot be used; the message says what is wrong and the remedy.
    ValueError
        For an option out of range.

    Notes
    -----
    Features come in no order of their own: from draw to draw the same one may be another column. What does not
    depend on their order is read with :func:`bayesstruct.link_probabilities`.

    Chains move slowly between sets of features that explain the links about as well. Where one feature is had
    by nearly all nodes, its weight and the bias moreover stand for each other, and neither says much alone.
    Believe probabilities whose chains agree (:func:`bayesstruct.check`), and take more chains where they do not.

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
    n, given = len(table.names), check_number("alpha", alpha)
    columns = room(n, max_features, given, concentration, discount)
    scale = check_number("weight_scale", weight_scale)
    spread = check_number("bias_scale", 2.0 * _SCALES[link] if bias_scale is None else bias_scale)
    with pm.Model(coords=pair_coords(table, columns)) as model:
        alpha = mass("alpha", given)
        if scale is None:
            scale = pm.HalfNormal("weight_scale", _SCALES[link])
        bias = pm.Normal("bias", 0.0, spread)
        z = features(
            "feature", alpha, n, columns, ("observation", "latent"), concentration, discount
        )
        kind = "full" if table.directed else "symmetric"
        weights = FeatureInteractions(
            "interaction", z, scale, kind=kind, dims=("latent", "latent_")
        )
        pm.Deterministic("n_features", (z.sum(axis=0) > 0).sum())
        eta = bias + feature_pairs(z, weights, table.source, table.target)
        FeatureLinks("y", eta, link=link, observed=table.y.astype("int64"), dims="pair")
        record_dyads(table, link)
    return model
