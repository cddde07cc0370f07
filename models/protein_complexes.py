"""Protein complexes: overlapping groups behind interactions that were observed or not.

feature      ~ IndianBuffet(alpha)                 which complexes each protein is in, any number of them
interaction  ~ HalfNormal(weight_scale)            how reliably a common complex makes a link
bias         ~ HalfNormal(leak_scale)              interactions without a common complex
y            ~ Bernoulli(1 - exp(-bias - sum of the weights of the complexes that both are in))
"""

from typing import TYPE_CHECKING, Any

import pymc as pm

from bayesstruct.data.arguments import number, optional_number
from bayesstruct.features.data.links import LinkTable
from bayesstruct.features.model_parts.links import pair_coords, record_pairs
from bayesstruct.features.model_parts.process import choose_max_features, features, mass
from bayesstruct.features.ops.columns import features_in_use
from bayesstruct.features.priors.feature_interactions import FeatureInteractions, feature_pairs
from bayesstruct.features.priors.feature_links import FeatureLinks

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["protein_complexes"]

_SCALE = 2.0  # half-normal: half of the complexes make a link with probability .7 or more


def protein_complexes(
    graph: Any,
    *,
    unobserved: "Iterable[tuple]" = (),
    alpha: float | None = None,
    weight_scale: float | None = None,
    leak_scale: float = 0.1,
    max_features: int | None = None,
) -> pm.Model:
    r"""Learn overlapping groups of nodes whose members tend to be linked.

    .. math::

        P(y_{ij} = 1) = 1 - \exp\Bigl(-b - \sum_k w_k z_{ik} z_{jk}\Bigr), \qquad w_k \ge 0, \qquad
        Z \sim \mathrm{IBP}(\alpha):

    each complex that both are in makes the link with probability :math:`1 - e^{-w_k}`, whatever the others do.

    Parameters
    ----------
    graph : networkx.Graph, DataFrame or (n, n) array_like
        Not directed; a matrix has 1, 0, or NaN where that is not known.
    unobserved : iterable of pairs of nodes
        Pairs of which it is not known whether they are linked.
    alpha : float, optional
        Mean number of complexes of a protein; by default it has a Gamma(2, 2) prior.
    weight_scale : float, optional
        Scale of the half-normal weights; by default half-normal with scale 2.
    leak_scale : float, default .1
        Scale of the half-normal bias, about the share of links without a common complex.
    max_features : int, optional
        Maximum number of complexes; a chain that needs more stops with an error. By default a draw
        from the prior has more with probability 1e-8 (at least 20).

    Returns
    -------
    pymc.Model
        With ``feature`` (observation, latent), left-ordered, ``interaction`` (latent), the weights of the
        complexes, ``bias``, ``n_features``, ``alpha`` and ``weight_scale`` if they are not given, and ``y`` (pair).

    Raises
    ------
    TableError
        If the graph cannot be used; the message says what is wrong and the remedy.
    TypeError, ValueError
        If an option is out of range.

    References
    ----------
    Chu, W., Ghahramani, Z., Krause, R. and Wild, D. L. (2006). Identifying protein complexes in high-throughput
    protein interaction screens using an infinite latent feature model. *Pacific Symposium on Biocomputing* 11. --
    Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review. *JMLR* 12,
    1185-1224, section 6.2, which has the model in words. They do not specify the
    probability of a link.

    Examples
    --------
    .. code-block:: python

        with bs.models.protein_complexes(graph):
            idata = pm.sample()
        bs.link_probabilities(idata)
    """
    table = LinkTable.links(graph, directed=False, unobserved=unobserved)
    n, given = len(table.names), optional_number("alpha", alpha, above=0)
    columns = choose_max_features(n, max_features, given)
    scale = optional_number("weight_scale", weight_scale, above=0)
    leak = number("leak_scale", leak_scale, above=0)
    with pm.Model(coords=pair_coords(table, columns)) as model:
        mean_count = mass("alpha", given)
        scale = pm.HalfNormal("weight_scale", _SCALE) if scale is None else scale
        bias = pm.HalfNormal("bias", leak)
        z = features("feature", mean_count, n, columns, ("observation", "latent"))
        weights = FeatureInteractions(
            "interaction", z, scale, kind="diagonal", positive=True, dims="latent"
        )
        pm.Deterministic("n_features", features_in_use(z))
        eta = bias + feature_pairs(z, weights, table.source, table.target)
        FeatureLinks("y", eta, link="noisy_or", observed=table.y.astype("int64"), dims="pair")
        record_pairs(table, "noisy_or")
    return model
