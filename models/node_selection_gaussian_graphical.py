"""Gaussian graphical model in which only some nodes have edges: which columns take part at all?

x = location + scale * z                      the table in its units, and standardised
z_i | mean, K ~ Normal(mean, K^-1)            one row of the table
included      ~ NodeInclusion                 1 where a node may have edges
K | included  ~ NodeSpikeSlab                 positive definite; no slab elements for nodes that are not included
edge | K      ~ Bernoulli                     1 where K_jk came from the slab
weight        = partial correlations of K

With prior="laplace" K ~ GraphicalGroupLasso instead: rows of K are small together.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from bayesstruct.core.recorded import register
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.arguments import is_number
from bayesstruct.data.edge_priors import edge_probability_matrix
from bayesstruct.data.labels import by_label
from bayesstruct.data.names import nearest
from bayesstruct.data.options import refuse_other_options
from bayesstruct.precision.model_parts.edges import (
    check_negligible,
    negligible_edges,
    record_edges,
)
from bayesstruct.precision.model_parts.matrices import start_of
from bayesstruct.precision.model_parts.rows import column_means
from bayesstruct.precision.model_parts.structured import observe_table, read_table, warn_of_slab
from bayesstruct.precision.ops.graphical_lasso_mode import graphical_lasso_mode
from bayesstruct.precision.ops.graphical_spike_slab import graphical_spike_slab_mode, log_odds
from bayesstruct.precision.priors.edges import Edges, partial_correlations
from bayesstruct.precision.priors.group_lasso import (
    GraphicalGroupLasso,
    implied_group_probability,
    node_members,
)
from bayesstruct.precision.priors.node_inclusion import (
    NodeInclusion,
    NodeSpikeSlab,
    implied_node_probabilities,
)
from bayesstruct.precision.reading.nodes import NodePrior

if TYPE_CHECKING:
    from bayesstruct.data.intake import TableLike

__all__ = ["node_selection_gaussian_graphical"]

_MATRIX = ("node", "node_")


def node_selection_gaussian_graphical(
    data: "TableLike" = None,
    *,
    cov: "TableLike" = None,
    n: int | None = None,
    prior: str = "spike_slab",
    node_probability: Any = 0.5,
    edge_probability: Any = 0.5,
    spike_scale: float = 0.02,
    slab_scale: float = 1.0,
    rate: Any = 1.0,
    node_rate: float = 1.0,
    norm: str = "l2",
    diagonal_rate: float | None = None,
    negligible: float = 0.1,
    covariates: "TableLike" = None,
    standardize: bool = True,
    missing_codes: Any = None,
    row_counts: Any = None,
) -> pm.Model:
    r"""Learn which columns depend on any others at all, and on which.

    Each row is multivariate normal. A column is included or not; only included ones may have edges. Missing values are imputed
    inside the model.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, p) table of numbers, one row for each observation; NaN marks a missing value.
    cov : DataFrame or (p, p) array_like, optional
        Instead of a table, its sample covariances (divisor n - 1, as of ``DataFrame.cov``) or correlations, as in
        :func:`gaussian_graphical`.
    n : int, optional
        Number of rows that `cov` was computed from.
    prior : {"spike_slab", "laplace"}
        ``"spike_slab"`` has an indicator for each node and for each edge between included nodes; ``"laplace"`` only shrinks, elements
        one by one and the row of each node together.
    node_probability : float or (p,) array_like, default 0.5
        Nominal prior probability that a node is included (spike and slab), neither 0 nor 1; a Series is read by its labels if
        they are columns.
    edge_probability : float or (p, p) array_like, default 0.5
        Nominal prior probability of an edge between two included nodes (spike and slab); 0 forbids it.
    spike_scale, slab_scale : float
        Standard deviations of an off-diagonal precision element without and with an edge, on the standardised scale.
    rate : float or unregistered distribution, default 1
        Laplace rate of the off-diagonal elements (``prior="laplace"``), the penalty :math:`\lambda` of a summed log likelihood;
        ``pm.Gamma.dist(1, 0.1)`` makes it a random variable.
    node_rate : float, default 1
        Rate of the norm of each node's row in multiples of `rate` (``prior="laplace"``).
    norm : {"l2", "linf"}
        Euclidean norm of a row, or its largest absolute value (``prior="laplace"``).
    diagonal_rate : float, optional
        Exponential rate of the diagonal elements; 0.5 for the spike and slab, ``rate / 2`` for the Laplace prior unless given.
    negligible : float, default 0.1
        Absolute partial correlation up to which ``prior="laplace"`` counts a pair as not connected.
    covariates : DataFrame or array_like, optional
        (n, q) table without missing values, of columns that are not in `data`; the mean of a row is
        then a linear function of it.
    standardize : bool, default True
        Put the prior on the scale of standardised columns, as in :func:`gaussian_graphical`.
    missing_codes : number, str, iterable of them or dict, optional
        Values that stand for a missing one, such as -999; a dict has those of each column.
    row_counts : (n,) array_like of int or str, optional
        How often each row was observed, or the name of the column that says so.

    Returns
    -------
    pymc.Model
        With ``included`` (node; spike and slab), ``precision`` and ``mean`` of the *standardised* columns, ``coefficients`` (covariate,
        node), ``weight`` (partial correlations), ``edge``, ``x`` (the table) and, where values are missing, ``x_missing``; with `cov` there is
        ``covariance`` instead of ``x``. :func:`bayesstruct.node_table` has the probabilities of the nodes.

    Raises
    ------
    TableError
        If the table cannot be used; the message names the column and the remedy.
    TypeError, ValueError
        For an unknown prior, an option out of range, or one that belongs to the other prior.

    Notes
    -----
    ``pm.sample`` draws all variables from their exact conditional distributions, nodes with the indicators of edges summed out, and
    switches nodes on and off together with their elements of the matrix (Karagiannis and Andrieu 2013), without which weak nodes mix
    slowly.
    ``bs.find_MAP`` has the certified mode of the Laplace prior, in which whole nodes are isolated, and a local mode of the
    spike and slab. As in :func:`gaussian_graphical`, positive definite matrices have fewer edges than the nominal
    probabilities say; Bayes factors take account of it.

    References
    ----------
    Honorio, J., Samaras, D., Rish, I., Cecchi, G. (2012). Variable selection for Gaussian graphical models. *AISTATS*, 538-546.

    Karagiannis, G., Andrieu, C. (2013). Annealed importance sampling reversible jump MCMC algorithms. *Journal of Computational and
    Graphical Statistics* 22(3), 623-648.

    Wang, H. (2015). Scaling it up: stochastic search structure learning in graphical models.
    *Bayesian Analysis* 10(2), 351-377.

    Examples
    --------
    .. code-block:: python

        with bs.models.node_selection_gaussian_graphical(expression):
            idata = pm.sample()
        bs.node_table(idata)
    """
    if prior not in _PRIORS:
        raise ValueError(nearest("prior", prior, _PRIORS))
    options = {
        "node_probability": node_probability,
        "edge_probability": edge_probability,
        "spike_scale": spike_scale,
        "slab_scale": slab_scale,
        "rate": rate,
        "node_rate": node_rate,
        "norm": norm,
        "diagonal_rate": diagonal_rate,
        "negligible": negligible,
    }
    refuse_other_options(node_selection_gaussian_graphical, prior, _OPTIONS, options)
    check_negligible(negligible)
    table, data, covariates = read_table(
        data,
        covariates,
        cov,
        n,
        standardize=standardize,
        missing_codes=missing_codes,
        row_counts=row_counts,
    )
    with pm.Model(coords=table.coords) as model:
        record_codes(missing_codes)
        mean = column_means(table, data, covariates)
        precision = _PRIORS[prior](table, **{name: options[name] for name in _OPTIONS[prior]})
        observe_table(table, mean, precision)
        if prior == "spike_slab":
            warn_of_slab(table, slab_scale)
    return model


def _spike_slab(table, node_probability, edge_probability, **scales):
    """Nodes, precision matrix and indicators of edges under the spike-and-slab prior."""
    if scales["diagonal_rate"] is None:
        scales["diagonal_rate"] = 0.5
    nodes = _node_probabilities(table.names, node_probability)
    nominal = edge_probability_matrix(table.names, edge_probability, learned=False)
    included = NodeInclusion("included", table.p, nodes, nominal, **scales, dims="node")
    rough = {"tol": 1e-2, "max_iter": 5}  # a start need not be an exact mode
    mode = partial(graphical_spike_slab_mode, log_odds=log_odds(nominal), **scales, **rough)
    start = start_of(table, mode)
    precision = NodeSpikeSlab("precision", included, dims=_MATRIX, start=start)
    Edges("edge", precision, dims="pair")
    pm.Deterministic("weight", partial_correlations(precision), dims="pair")
    source, target = table.edge_index
    both = nominal[source, target] * included[source] * included[target]
    pm.Deterministic("edge_probability", both, dims="pair")
    edges, implied_nodes = implied_node_probabilities(nodes, nominal, **scales)
    record_edges(table, edges, nominal, scales)
    NodePrior(implied_nodes).record()
    return precision


def _node_probabilities(names, probability) -> np.ndarray:
    """Nominal probability of each node, by its name where it has one."""
    given = by_label("node_probability", probability, names)
    try:
        values = np.asarray(given, dtype="float64")
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if values.shape not in ((), (len(names),)) or not ((values > 0) & (values < 1)).all():
        raise ValueError(
            f"`node_probability` must be a number between 0 and 1, or {len(names)} of them, one for each column, and neither 0 "
            "nor 1: leave out a column that has no edges, and take a number near 1 for one that has"
        )
    return np.broadcast_to(values, (len(names),))


def _laplace(table, rate, node_rate, norm, diagonal_rate, negligible):
    """Precision matrix with norms of the rows of nodes; an edge is a partial correlation."""
    if not (is_number(node_rate) and 0 <= node_rate < np.inf):
        raise ValueError(f"`node_rate` must be a number from 0 up, it is {node_rate!r}")
    learned = hasattr(rate, "owner")
    first = 1.0 if learned else rate
    members = node_members(table.p)
    groups = {"group_rates": node_rate, "norm": norm}
    mode = partial(graphical_lasso_mode, rate=first, diagonal_rate=diagonal_rate, tol=1e-4)
    precision = GraphicalGroupLasso(
        "precision",
        table.p,
        members,
        register("rate", rate) if learned else rate,
        **groups,
        diagonal_rate=diagonal_rate,
        dims=_MATRIX,
        start=start_of(table, mode),
    )
    ratio = 0.5 if diagonal_rate is None else diagonal_rate / first
    implied = implied_group_probability(
        table.p, members, negligible, **groups, diagonal_ratio=ratio
    )
    negligible_edges(table, precision, negligible, implied)
    return precision


_PRIORS: dict[str, Callable[..., Any]] = {"spike_slab": _spike_slab, "laplace": _laplace}
_OPTIONS: dict[str, tuple[str, ...]] = {
    "spike_slab": (
        "node_probability",
        "edge_probability",
        "spike_scale",
        "slab_scale",
        "diagonal_rate",
    ),
    "laplace": ("rate", "node_rate", "norm", "diagonal_rate", "negligible"),
}
