"""Protein complexes: overlapping groups behind interactions that were seen or not.

feature      ~ IndianBuffet(alpha)                 which complexes each protein is in, any number of them
interaction  ~ HalfNormal(weight_scale)            how surely a common complex shows
bias         ~ HalfNormal(leak_scale)              interactions without a common complex
y            ~ Bernoulli(1 - exp(-bias - sum of the weights of the complexes that both are in))
"""

import pymc as pm

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

__all__ = ["protein_complexes"]

_SCALE = 2.0  # half-normal: half of the complexes show with probability .7 or more


def protein_complexes(
    graph, *, unobserved=(), alpha=None, weight_scale=None, leak_scale=0.1, max_features=None
):
    r"""Learn overlapping groups of nodes whose members tend to be linked.

    .. math::

        P(y_{ij} = 1) = 1 - \exp\Bigl(-b - \sum_k w_k z_{ik} z_{jk}\Bigr), \qquad w_k \ge 0, \qquad
        Z \sim \mathrm{IBP}(\alpha):

    each complex that both are in makes the link with probability :math:`1 - e^{-w_k}`, whatever the others do.

    Parameters
    ----------
    graph : networkx.Graph, DataFrame or (n, n) array_like
        Not directed; of a matrix, cells are 1, 0 or NaN if that is not known.
    unobserved : iterable of pairs of nodes
        Pairs that are left out: nothing is known about them.
    alpha : float, optional
        Mean number of complexes of a protein; by default it has a Gamma(2, 2) prior.
    weight_scale : float, optional
        Scale of the half-normal weights; by default half-normal with scale 2.
    leak_scale : float, default .1
        Scale of the half-normal bias, about the share of links without a common complex.
    max_features : int, optional
        Complexes that there is room for; a chain that needs more stops with an error. By default a draw from
        the prior has more with probability 1e-5.

    Returns
    -------
    pymc.Model
        With ``feature`` (observation, latent), left-ordered, ``interaction`` (latent), the weights of the
        complexes, ``bias``, ``n_features``, ``alpha`` and ``weight_scale`` if they are not given, and ``y`` (pair).

    Raises
    ------
    TableError
        If the graph cannot be used; the message says what is wrong and the remedy.
    ValueError
        For an option out of range.

    References
    ----------
    Chu, W., Ghahramani, Z., Krause, R. and Wild, D. L. (2006). Identifying protein complexes in high-throughput
    protein interaction screens using an infinite latent feature model. *Pacific Symposium on Biocomputing* 11. --
    Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review. *JMLR* 12,
    1185-1224, section 6.2, which has the model in words; the law of a link is ours.

    Examples
    --------
    .. code-block:: python

        with bs.models.protein_complexes(graph):
            idata = pm.sample()
        bs.link_probabilities(idata)
    """
    table = LinkTable.links(graph, directed=False, unobserved=unobserved)
    n, given = len(table.names), check_number("alpha", alpha)
    columns = room(n, max_features, given)
    scale = check_number("weight_scale", weight_scale)
    leak = check_number("leak_scale", leak_scale, optional=False)
    with pm.Model(coords=pair_coords(table, columns)) as model:
        alpha = mass("alpha", given)
        scale = pm.HalfNormal("weight_scale", _SCALE) if scale is None else scale
        bias = pm.HalfNormal("bias", leak)
        z = features("feature", alpha, n, columns, ("observation", "latent"))
        weights = FeatureInteractions(
            "interaction", z, scale, kind="diagonal", positive=True, dims="latent"
        )
        pm.Deterministic("n_features", (z.sum(axis=0) > 0).sum())
        eta = bias + feature_pairs(z, weights, table.source, table.target)
        FeatureLinks("y", eta, link="noisy_or", observed=table.y.astype("int64"), dims="pair")
        record_dyads(table, "noisy_or")
    return model
