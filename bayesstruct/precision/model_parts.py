"""Parts that models share: rows of a table, regressions, and the record of the prior of edges."""

import os

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from bayesstruct.core.missing import MissingMask, show_missing
from bayesstruct.core.tables.codings import CovariateUnits
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.data.coding import NumberCoding, coding_of
from bayesstruct.data.covariates import read_covariates, standardized_covariates
from bayesstruct.data.errors import warn
from bayesstruct.graphs.records import EdgeEnds, EdgePrior, EdgeScales
from bayesstruct.precision.priors.rows import (
    GraphicalNormal,
    IncompleteGraphicalNormal,
    MissingValues,
)
from bayesstruct.precision.priors.sample_covariance import GraphicalCovariance

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

    from bayesstruct.data.covariance import CovarianceTable
    from bayesstruct.data.table import Table

__all__ = ["observe_covariance", "observe_rows", "record_edges", "regression", "warn_size"]

_ROWS = ("observation", "node")


def observe_rows(table: "Table", mean, precision) -> None:
    """Add the table as ``x``, and its missing values as ``x_missing``.

    Parameters
    ----------
    table : Table
    mean : TensorVariable
        (p,) or (n, p), standardised.
    precision : TensorVariable
        (p, p), of the standardised rows.
    """
    location = pm.Data("location", table.location, dims="node")
    scale = pm.Data("scale", table.scale, dims="node")
    rows = (mean, precision, location, scale)
    model = pm.modelcontext(None)
    if table.missing.any():
        labels = [f"{table.names[j]}[{i}]" for i, j in np.argwhere(table.missing)]
        model.add_coord("missing", labels)
        MissingMask(table.missing.astype("int64")).record()
        known = {"table": _filled(table), "missing": table.missing}
        MissingValues("x_missing", *rows, **known, dims="missing")
    _add_rows(table, rows)
    options = ["covariates"] if "covariate" in model.coords else []
    remember_rows(coding_of(table), _observe_others, *options)


def _add_rows(table, rows):
    """Add the table as ``x``, given its mean, precision, location and scale."""
    if not table.missing.any():
        GraphicalNormal("x", *rows, observed=table.values, dims=_ROWS)
        return
    own = {"missing": table.missing, "observed": _filled(table), "dims": _ROWS}
    show_missing(IncompleteGraphicalNormal("x", *rows, **own), table.missing)


def observe_covariance(table: "CovarianceTable", mean, precision) -> None:
    """Add the sample covariance matrix as ``covariance``, in the units of the table.

    Parameters
    ----------
    table : CovarianceTable
    mean : TensorVariable
        (p,), standardised.
    precision : TensorVariable
        (p, p), of the standardised rows.
    """
    pm.Data("location", table.location, dims="node")
    scale = pm.Data("scale", table.scale, dims="node")
    n = pm.Data("rows", float(table.n))
    GraphicalCovariance(
        "covariance", mean, precision, scale, n, observed=table.covariance, dims=("node", "node_")
    )


def _filled(table):
    return np.where(table.missing, table.location, table.values)


def _observe_others(table, covariates=None):
    """Add the rows of another table to a model without rows."""
    model = pm.modelcontext(None)
    mean, precision, location, scale = (
        model[name] for name in ("mean", "precision", "location", "scale")
    )
    if covariates is not None:
        units = (model[name].data for name in ("covariate_center", "covariate_unit"))
        coding = NumberCoding(tuple(model.coords["covariate"]), *units)
        mean = mean + read_covariates(coding, covariates, table.n) @ model["coefficients"]
    _add_rows(table, (mean, precision, location, scale))


def warn_size(table: "Table", draws: int = 4000) -> None:
    """Warn if a usual number of draws exceeds half of the memory.

    A draw holds the matrix, its unconstrained vector, and two numbers for each pair.
    """
    bytes_ = 8 * draws * 5 * table.p**2 // 2
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # unknown on this system
        return
    if bytes_ > memory / 2:
        warn(
            f"{draws:,} draws of {table.p} columns take {bytes_ / 2**30:.0f} GiB of memory; ask for "
            'fewer draws, keep them on disk with bs.sample(checkpoint="run"), or keep only the '
            'graph with pm.sample(var_names=["edge", "weight"])'
        )


def regression(table: "Table", covariates, intercept) -> "TensorVariable":
    """Mean of each row as a linear function of covariates, (n, p).

    The coefficients are standard normal a priori, for standardised covariates and columns.
    """
    coding, design = standardized_covariates(covariates, table.n, table.names)
    pm.modelcontext(None).add_coord("covariate", list(coding.names))
    CovariateUnits(coding.location, coding.scale).record()
    coefficients = pm.Normal("coefficients", 0.0, 1.0, dims=("covariate", "node"))
    return intercept + design @ coefficients


def record_edges(table: "Table", implied, nominal=None, scales: dict | None = None) -> None:
    """Record the ends of the edges and their prior.

    Parameters
    ----------
    table : Table
    implied : (pairs,) array_like
        Prior probability of each edge that the model implies.
    nominal : (p, p) array_like, optional
        Probability of each edge before the matrix is restricted to be positive definite.
    scales : dict, optional
        ``spike_scale``, ``slab_scale`` and ``diagonal_rate``.
    """
    source, target = table.edge_index
    EdgeEnds.in_model(source, target).record()
    EdgePrior(np.asarray(implied)).record()
    if scales is not None:
        scales = {name: float(value) for name, value in scales.items()}
        EdgeScales(**scales, nominal=nominal[source, target]).record()
