"""Models of a graph alone whose table has missing values: one graph for each of several completed tables."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.recognition import claim
from bayesstruct.core.tables.missing_codes import record_codes
from bayesstruct.data.edge_priors import edge_probability_matrix, fixed_edges
from bayesstruct.data.table import Table
from bayesstruct.graphs.records import NODEWISE, CompositeLikelihood, ImputedTables
from bayesstruct.precision.model_parts.edges import record_edges
from bayesstruct.precision.model_parts.matrices import beta_shapes
from bayesstruct.precision.model_parts.rows import missing_labels
from bayesstruct.precision.priors.graphs import (
    EDGE,
    STEP,
    ImputationNumber,
    NeighbourRegressions,
    RandomGraph,
)
from bayesstruct.precision.solvers.imputation import impute

__all__ = ["TABLES", "graphs_of_completed_tables"]

#: Number of completed tables.
TABLES = 10
_SEED = 20261130  # fixed: equal tables give equal models
_MATRIX = ("completed_table", "node", "node_")


def graphs_of_completed_tables(
    table: Table, missing_codes, edge_probability, required, forbidden
) -> tuple[pm.Model, np.ndarray]:
    """Model of the graphs of a table whose missing values are imputed several times; and prior probabilities of the edges.

    Parameters
    ----------
    table : Table
        Standardised, with missing values.
    missing_codes, edge_probability, required, forbidden
        As of the model.
    """
    pairs, shapes = table.edge_index, beta_shapes(edge_probability)
    if shapes is None:
        matrix = edge_probability_matrix(table.names, edge_probability, required, forbidden)
    else:
        fixed = fixed_edges(table.names, required, forbidden)
        matrix = fixed.fill(shapes[0] / sum(shapes))
    values = impute(np.random.default_rng(_SEED), table.standardized, matrix, TABLES)
    with pm.Model(coords=table.coords) as model:
        model.add_coord("completed_table", np.arange(TABLES))
        model.add_coord("missing", missing_labels(table))
        record_codes(missing_codes)
        number = ImputationNumber("imputation", TABLES)
        probability = matrix[pairs]
        if shapes is not None:
            share = pm.Beta("edge_probability_imputed", *shapes, dims="completed_table")
            claim(share, STEP)
            free = fixed.free[pairs]
            probability = pt.switch(free, share[:, None], fixed.fill(0.0)[pairs])
            pm.Deterministic("edge_probability", share[number])
        shape = (TABLES, len(pairs[0]))
        graphs = RandomGraph(
            "edge_imputed", probability, shape=shape, dims=("completed_table", "pair")
        )
        _observe_tables(table, values, graphs)
        pm.Deterministic(EDGE, graphs[number], dims="pair")
        columns = np.nonzero(table.missing)[1]
        imputed = pt.constant(table.location[columns] + table.scale[columns] * values)
        pm.Deterministic("x_missing", imputed[number], dims="missing")
        record_edges(table, matrix[pairs])
    return model, matrix[pairs]


def _observe_tables(table, values, graphs) -> None:
    """Add the covariances of the columns of all completed tables as ``correlation``, given their graphs."""
    pm.Data("location", table.location, dims="node")
    pm.Data("scale", table.scale, dims="node")
    rows, means, covariances = table.standardized.copy(), [], []
    for filled in values:
        rows[table.missing] = filled
        means.append(rows.mean(axis=0))
        covariances.append(np.cov(rows.T))
    n = pm.Data("rows", float(table.n))
    ImputedTables(np.array(means)).record()
    NeighbourRegressions("correlation", graphs, n, observed=np.array(covariances), dims=_MATRIX)
    CompositeLikelihood(NODEWISE).record()
