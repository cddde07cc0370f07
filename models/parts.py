"""Parts that models share: rows of a table, regressions, and the record of the edge prior."""

import numpy as np
import pymc as pm

from bayesstruct.data.covariates import standardized_covariates
from bayesstruct.distributions import GraphicalNormal, IncompleteGraphicalNormal, MissingCells

_ROWS = ("observation", "variable")


def observe_rows(table, mean, precision):
    """Add the table as ``x``, and its missing cells as ``x_missing``.

    Parameters
    ----------
    table : Table
    mean : TensorVariable
        (p,) or (n, p), standardised.
    precision : TensorVariable
        (p, p), of the standardised rows.
    """
    location = pm.Data("location", table.location, dims="variable")
    scale = pm.Data("scale", table.scale, dims="variable")
    rows = (mean, precision, location, scale)
    if not table.missing.any():
        GraphicalNormal("x", *rows, observed=table.values, dims=_ROWS)
        return
    filled = np.where(table.missing, table.location, table.values)
    cells = [f"{table.names[j]}[{i}]" for i, j in np.argwhere(table.missing)]
    pm.modelcontext(None).add_coord("missing", cells)
    pm.Data("cell_missing", table.missing.astype("int64"), dims=_ROWS)
    MissingCells("x_missing", *rows, table=filled, missing=table.missing, dims="missing")
    IncompleteGraphicalNormal("x", *rows, missing=table.missing, observed=filled, dims=_ROWS)


def regression(table, covariates, intercept):
    """Mean of each row as a linear function of covariates, (n, p).

    The coefficients are standard normal a priori, for standardised covariates and columns.
    """
    names, design = standardized_covariates(covariates, table.n)
    pm.modelcontext(None).add_coord("covariate", names)
    coefficients = pm.Normal("coefficients", 0.0, 1.0, dims=("covariate", "variable"))
    return intercept + design @ coefficients


def register(name, distribution):
    """Make an unregistered distribution a variable of the model."""
    return pm.modelcontext(None).register_rv(distribution, name)


def record_edges(table, implied, nominal=None, scales=None):
    """Record what the posterior is read with: ends of the edges and their prior probabilities.

    They become the group ``constant_data`` of every result.
    """
    source, target = table.edge_index
    pm.Data("edge_source", source, dims="pair")
    pm.Data("edge_target", target, dims="pair")
    pm.Data("edge_prior", implied, dims="pair")
    if nominal is not None:
        pm.Data("edge_nominal", nominal[source, target], dims="pair")
    for name, value in (scales or {}).items():
        pm.Data(name, float(value))
