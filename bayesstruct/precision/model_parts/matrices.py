"""Precision matrices of `gaussian_graphical` under each of its priors, with edges and weights."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.odds import slab_log_odds
from bayesstruct.core.recorded import register
from bayesstruct.core.starts import BootstrapStart, SampleCovarianceStart
from bayesstruct.core.tensors import is_beta
from bayesstruct.data.arguments import number
from bayesstruct.data.covariance import CovarianceTable
from bayesstruct.data.edge_priors import StochasticBlock, edge_probability_matrix, fixed_edges
from bayesstruct.data.ranks import RankTable
from bayesstruct.graphs.priors.blocks import block_edge_probability
from bayesstruct.precision.model_parts.edges import (
    independent_edge_prior,
    negligible_edges,
    record_edges,
    warn_of_narrow_slab,
)
from bayesstruct.precision.ops.graphical_lasso_mode import graphical_lasso_mode
from bayesstruct.precision.ops.graphical_spike_slab import graphical_spike_slab_mode, log_odds
from bayesstruct.precision.priors.edges import Edges, partial_correlations, upper
from bayesstruct.precision.priors.g_wishart import GWishart, IndependentEdges
from bayesstruct.precision.priors.horseshoe import GraphicalHorseshoe, half_cauchy_width
from bayesstruct.precision.priors.implied import (
    implied_edge_probability,
    implied_horseshoe_probability,
    implied_nonnegligible_probability,
)
from bayesstruct.precision.priors.precision import GraphicalLasso, GraphicalSpikeSlab
from bayesstruct.precision.priors.records import LaplaceRates, WishartPrior

__all__ = ["MATRICES", "OPTIONS", "beta_shapes", "start_of", "warn_of_slab"]

_MATRIX = ("node", "node_")
_SPIKE = 0.02  # as the default of the spike and slab
_ROUGH = {"tol": 1e-2, "max_iter": 5}  # a start need not be an exact mode


def _spike_slab(table, edge_probability, required, forbidden, **scales):
    """Precision matrix and indicators under the spike-and-slab prior."""
    if scales["diagonal_rate"] is None:
        scales["diagonal_rate"] = 0.5
    beta = beta_shapes(edge_probability)
    if beta is None:
        nominal = edge_probability_matrix(table.names, edge_probability, required, forbidden)
        arguments = {"edge_probability": nominal}
    else:
        nominal = fixed_edges(table.names, required, forbidden).fill(0.5)
        arguments = {"edge_probability": edge_probability, "fixed": nominal}
    mode = partial(graphical_spike_slab_mode, log_odds=log_odds(nominal), **scales, **_ROUGH)
    precision = GraphicalSpikeSlab(
        "precision", table.p, **arguments, **scales, dims=_MATRIX, start=start_of(table, mode)
    )
    Edges("edge", precision, dims="pair")
    pm.Deterministic("weight", partial_correlations(precision), dims="pair")
    implied = implied_edge_probability(table.p, nominal, beta=beta, **scales)
    record_edges(table, implied, nominal, scales)
    return precision


def warn_of_slab(table: Any, slab_scale: float, *, conditional: bool) -> None:
    """Warn of columns that depend on each other beyond the slab; `conditional`: on the scale of standard deviations given all others."""
    first = "leave out one of these columns" if conditional else "leave out `standardize` and the scales"  # fmt: skip
    others = f', {first}, or take prior="g_wishart"'
    if isinstance(table, CovarianceTable):
        warn_of_narrow_slab(table.scatter, table.names, slab_scale, n=table.n, others=others)
    elif not isinstance(table, RankTable):  # whose columns have no units
        warn_of_narrow_slab(table.standardized, table.names, slab_scale, others=others)


def _laplace(table, rate, diagonal_rate, negligible):
    """Precision matrix under the graphical-lasso prior; an edge is a partial correlation."""
    learned = hasattr(rate, "owner")
    first = 1.0 if learned else rate
    mode = partial(graphical_lasso_mode, rate=first, diagonal_rate=diagonal_rate, tol=1e-4)
    start = start_of(table, mode)
    rate = register("rate", rate) if learned else rate
    precision = GraphicalLasso(
        "precision", table.p, rate, diagonal_rate=diagonal_rate, dims=_MATRIX, start=start
    )
    implied = implied_nonnegligible_probability(
        table.p, negligible, first, diagonal_rate=diagonal_rate
    )
    negligible_edges(table, precision, negligible, implied)
    if not learned:
        diagonal = 0.5 * rate if diagonal_rate is None else diagonal_rate
        LaplaceRates(float(rate), float(diagonal), float(negligible)).record()
    return precision


def _horseshoe(table, global_scale, diagonal_rate, negligible):
    """Precision matrix under the graphical horseshoe; an edge is a partial correlation."""
    diagonal_rate = 0.5 if diagonal_rate is None else diagonal_rate
    width = half_cauchy_width(global_scale)
    if width is None and np.ndim(global_scale) != 0:
        raise ValueError("`global_scale` must be one number; bs.GraphicalHorseshoe takes a matrix")
    if width is None and not hasattr(global_scale, "owner"):
        number("global_scale", global_scale, above=0)
    mode = partial(graphical_lasso_mode, rate=1.0, diagonal_rate=None, tol=1e-4)
    precision = GraphicalHorseshoe(
        "precision",
        table.p,
        global_scale,
        diagonal_rate=diagonal_rate,
        dims=_MATRIX,
        start=start_of(table, mode),
    )
    scale = {"global_scale": global_scale} if width is None else {"width": width}
    implied = implied_horseshoe_probability(
        table.p, negligible, **scale, diagonal_rate=diagonal_rate
    )
    negligible_edges(table, precision, negligible, implied)
    return precision


def _g_wishart(table, edge_probability, required, forbidden, degrees_of_freedom):
    """Graph with independent edges, and a precision matrix with its zeros."""
    fixed = fixed_edges(table.names, required, forbidden)
    start = _graph_start(table, fixed.fill(0.5))
    if isinstance(edge_probability, StochasticBlock):
        ends = np.arange(table.p)
        blocks = block_edge_probability(edge_probability, ends[:, None], ends[None, :])
        probability = pt.switch(fixed.free, blocks, fixed.fill(0.5))
        edge = IndependentEdges("edge", table.p, probability, dims="pair", start=start)
        implied = fixed.fill(edge_probability.mean)[table.edge_index]
    elif beta_shapes(edge_probability) is None:
        nominal = edge_probability_matrix(table.names, edge_probability, required, forbidden)
        start = _graph_start(table, nominal)
        edge = IndependentEdges("edge", table.p, nominal, dims="pair", start=start)
        implied = nominal[table.edge_index]
    else:
        pattern = fixed.fill(0.5)
        own = {"fixed": pattern, "start": start}
        edge = IndependentEdges("edge", table.p, edge_probability, dims="pair", **own)
        implied = independent_edge_prior(edge)
    precision = GWishart("precision", edge, degrees_of_freedom, dims=_MATRIX)
    if not hasattr(degrees_of_freedom, "owner"):
        WishartPrior(float(degrees_of_freedom)).record()
    pm.Deterministic("weight", partial_correlations(precision), dims="pair")
    record_edges(table, implied)
    return precision


def start_of(table, mode: Callable[..., Any]):
    """Start of each chain: the mode of another table than the one that was observed.

    Parameters
    ----------
    table : Table, RankTable or CovarianceTable
    mode : callable
        From a scatter matrix and a number of rows to a precision matrix.
    """
    if not isinstance(table, CovarianceTable):
        return BootstrapStart(table.standardized, mode)
    return SampleCovarianceStart(table.scatter, table.n, mode)


def _graph_start(table, nominal):
    """Start of the graph of each chain: the likely edges at a spike-and-slab mode of another table than the one that was observed."""
    odds = log_odds(nominal)

    def likely(scatter, n):
        mode = graphical_spike_slab_mode(
            scatter, n, odds, spike_scale=_SPIKE, slab_scale=1.0, **_ROUGH
        )
        return pt.gt(upper(slab_log_odds(mode, odds, _SPIKE, 1.0)), 0.0).astype("int64")

    return start_of(table, likely)


def beta_shapes(probability, option: str = "edge_probability"):
    """Shapes of an unregistered beta distribution, or None for numbers; `option` names it in messages."""
    if isinstance(probability, StochasticBlock):
        raise ValueError(
            'bs.StochasticBlock goes with prior="g_wishart"; blocks of columns under the spike and slab are learned by '
            "bs.models.blockwise_gaussian_graphical"
        )
    if not hasattr(probability, "owner"):
        return None
    if not is_beta(probability):
        kind = getattr(getattr(probability.owner, "op", None), "name", None) or "tensor"
        raise ValueError(
            f"`{option}` can be a number, a matrix of numbers or a beta distribution such as "
            f"pm.Beta.dist(1, 1), not a {kind}; in a model of your own it is any expression: "
            'bs.GraphicalSpikeSlab(..., condition="joint"), or bs.distributions.IndependentEdges with bs.GWishart'
        )
    if probability.ndim:
        raise ValueError(
            f"`{option}` is one beta distribution for all edges: give pm.Beta.dist(1, 1), without a shape"
        )
    shapes = probability.owner.op.dist_params(probability.owner)
    return tuple(float(np.asarray(s.eval()).item()) for s in shapes)


MATRICES: dict[str, Callable[..., Any]] = {
    "spike_slab": _spike_slab,
    "laplace": _laplace,
    "horseshoe": _horseshoe,
    "g_wishart": _g_wishart,
}
_EDGE_OPTIONS = ("edge_probability", "required", "forbidden")
OPTIONS: dict[str, tuple[str, ...]] = {
    "spike_slab": (*_EDGE_OPTIONS, "spike_scale", "slab_scale", "diagonal_rate"),
    "laplace": ("rate", "diagonal_rate", "negligible"),
    "horseshoe": ("global_scale", "diagonal_rate", "negligible"),
    "g_wishart": (*_EDGE_OPTIONS, "degrees_of_freedom"),
    "pseudo_likelihood": _EDGE_OPTIONS,
}
