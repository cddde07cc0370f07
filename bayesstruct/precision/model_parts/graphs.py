"""Models of a graph alone: correlations given it, and its prior."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.recognition import claim
from bayesstruct.core.recorded import register
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.covariance import CovarianceTable
from bayesstruct.data.edge_priors import edge_probability_matrix, fixed_edges
from bayesstruct.data.errors import warn
from bayesstruct.data.table import Table
from bayesstruct.graphs.records import NODEWISE, CompositeLikelihood
from bayesstruct.precision.model_parts.edges import record_edges
from bayesstruct.precision.model_parts.imputed_graphs import TABLES, graphs_of_completed_tables
from bayesstruct.precision.model_parts.matrices import beta_shapes
from bayesstruct.precision.model_parts.rows import memory_size
from bayesstruct.precision.priors.graphs import STEP, NeighbourRegressions, RandomGraph

__all__ = ["graph_alone", "refuse_for_graphs"]

_MATRIX = ("node", "node_")


def graph_alone(table, missing_codes, edge_probability, required, forbidden) -> pm.Model:
    """Model of the graph, with all parameters of the regressions on neighbours integrated out."""
    if _missing(table).any():
        model, prior = graphs_of_completed_tables(
            table, missing_codes, edge_probability, required, forbidden
        )
        _warn_of_many_edges(table.p, prior)
        return model
    pairs = table.edge_index
    with pm.Model(coords=table.coords) as model:
        record_codes(missing_codes)
        shapes = beta_shapes(edge_probability)
        if shapes is None:
            matrix = edge_probability_matrix(table.names, edge_probability, required, forbidden)
            probability = prior = matrix[pairs]
        else:
            fixed = fixed_edges(table.names, required, forbidden)
            share, free = register("edge_probability", edge_probability), fixed.free[pairs]
            probability = pt.switch(free, share, fixed.fill(0.0)[pairs])
            prior = fixed.fill(shapes[0] / sum(shapes))[pairs]
            claim(share, STEP)  # also if pm.sample is outside of the context
        edge = RandomGraph("edge", probability, dims="pair")
        _observe_correlations(table, edge)
        record_edges(table, prior)
    _warn_of_many_edges(table.p, prior)
    return model


def _observe_correlations(table: "Table | CovarianceTable", edge) -> None:
    """Add the correlations of the columns as ``correlation``, given the graph.

    Parameters
    ----------
    table : Table or CovarianceTable
        Without missing values, standardised.
    edge : TensorVariable
        (pairs,) indicators.
    """
    pm.Data("location", table.location, dims="node")
    pm.Data("scale", table.scale, dims="node")
    n = pm.Data("rows", float(table.n))
    if isinstance(table, CovarianceTable):
        correlation = table.scatter / (table.n - 1)
    else:
        correlation = table.standardized.T @ table.standardized / (table.n - 1)
    np.fill_diagonal(correlation, 1.0)
    NeighbourRegressions("correlation", edge, n, observed=correlation, dims=_MATRIX)
    CompositeLikelihood(NODEWISE).record()


def refuse_for_graphs(table: "Table | CovarianceTable", *, covariates, standardize: bool) -> None:
    """Raise for what regressions of standardised columns on their neighbours do not know, and warn of large results.

    Raises
    ------
    ValueError
        For covariates, or columns in their own units.
    """
    others = 'or take prior="spike_slab"'
    if covariates is not None:
        raise ValueError(
            f'`covariates` do not go with prior="pseudo_likelihood": give the residuals of regressions on them, {others}'
        )
    if not standardize:
        raise ValueError(
            'prior="pseudo_likelihood" uses the correlations of the columns, which have no units: leave out `standardize`, '
            f"{others}"
        )
    _warn_of_graphs(table.p, bool(_missing(table).any()))


def _missing(table: "Table | CovarianceTable") -> np.ndarray:
    """Which values are missing; of covariances none."""
    return getattr(table, "missing", np.zeros(0, bool))


def _warn_of_graphs(p: int, incomplete: bool, draws: int = 4000) -> None:
    """Warn if a usual number of draws, of five bytes for each pair and one for each graph, exceeds half of the memory."""
    each = 5 + (TABLES if incomplete else 0)
    size, memory = each * draws * p * (p - 1) // 2, memory_size()
    if memory is not None and size > memory / 2:
        warn(
            f"{draws:,} draws of the graph of {p} columns take {size / 2**30:.0f} GiB of memory; each of them is many updates, "
            "so that few are enough: pm.sample(100, compute_convergence_checks=False), and then bs.check(idata)"
        )


def _warn_of_many_edges(p: int, prior: np.ndarray, most: float = 20.0) -> None:
    """Warn of prior probabilities of edges under which a column has more neighbours than `most`."""
    expected = 2.0 * float(np.sum(prior)) / p
    if expected > most:
        warn(
            f"the prior expects {expected:.0f} neighbours of each of the {p} columns: give `edge_probability` a number near "
            f"the expected share of edges, such as 2 / p = {2 / p:.2g}, or pm.Beta.dist(1, {p // 2})"
        )
