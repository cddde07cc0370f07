"""Tables and their likelihoods: rows, orders of columns, covariances; their means."""

import os

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from pymc.distributions.distribution import support_point

from bayesstruct.core.missing import MissingMask, show_missing
from bayesstruct.core.recorded import record, register
from bayesstruct.core.tables.codings import CovariateUnits
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.data.arguments import number
from bayesstruct.data.coding import NumberCoding, coding_of
from bayesstruct.data.covariance import CovarianceTable
from bayesstruct.data.covariates import read_covariates, standardized_covariates
from bayesstruct.data.errors import warn
from bayesstruct.data.labels import check_same_rows
from bayesstruct.data.recoding import repeated_rows, tables_without_codes
from bayesstruct.data.table import Table
from bayesstruct.graphs.records import OrderedColumns, StateColumns, ValueWeighted
from bayesstruct.precision.priors.alternative_rows import (
    AlternativeStudent,
    MissingWeightedValues,
    ValueWeights,
)
from bayesstruct.precision.priors.latent_rows import LatentValues, OrderedRows
from bayesstruct.precision.priors.rows import (
    ColumnMeans,
    GraphicalNormal,
    IncompleteGraphicalNormal,
    MissingValues,
)
from bayesstruct.precision.priors.sample_covariance import GraphicalCovariance
from bayesstruct.precision.priors.student_rows import (
    DegreesOfFreedom,
    GraphicalStudent,
    IncompleteGraphicalStudent,
    MissingStudentValues,
)

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

    from bayesstruct.data.ranks import RankTable

__all__ = [
    "column_means",
    "memory_size",
    "missing_labels",
    "observe_alternative_student",
    "observe_covariance",
    "observe_order",
    "observe_rows",
    "observe_student",
    "read_rows",
    "regression",
    "warn_latent",
    "warn_size",
]

_ROWS = ("observation", "node")
_NORMAL = (GraphicalNormal, IncompleteGraphicalNormal, MissingValues)
_STUDENT = (GraphicalStudent, IncompleteGraphicalStudent, MissingStudentValues)


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
    _observe(table, (mean, precision, location, scale), _NORMAL)


def observe_student(table: "Table", mean, precision, degrees=None) -> None:
    """Add the table as ``x`` and its missing values as ``x_missing``, rows having a multivariate t distribution.

    Parameters
    ----------
    table : Table
    mean, precision : TensorVariable
        As in `observe_rows`; `precision` is the inverse of the scale matrix.
    degrees : float or unregistered distribution, optional
        Degrees of freedom, recorded as ``degrees``; a Gamma(2, 0.1) variable unless given.
    """
    location = pm.Data("location", table.location, dims="node")
    scale = pm.Data("scale", table.scale, dims="node")
    rows = (mean, precision, location, scale, _degrees_of_freedom(degrees))
    _observe(table, rows, _STUDENT)


def _degrees_of_freedom(degrees):
    if degrees is None:
        return DegreesOfFreedom("degrees", 2.0, 0.1)
    if hasattr(degrees, "owner"):
        if degrees.ndim or not support_point(degrees).eval() > 0:
            raise ValueError(
                "`degrees` is one positive number for all columns: give a distribution of such, pm.Gamma.dist(2, 0.1), without a shape"
            )
        return register("degrees", degrees)
    degrees = number("degrees", degrees, above=0)
    record("degrees", degrees)
    return degrees


def observe_alternative_student(table: "Table", mean, precision, degrees=None) -> None:
    """Add the table as ``x``, the weights of its values as ``value_weight`` and missing values as ``x_missing``.

    Parameters
    ----------
    table, mean, precision, degrees
        As in `observe_student`; the rows have an alternative t distribution.
    """
    location = pm.Data("location", table.location, dims="node")
    scale = pm.Data("scale", table.scale, dims="node")
    rows = (mean, precision, location, scale)
    degrees = _degrees_of_freedom(degrees)
    known = {"table": _filled(table), "missing": table.missing}
    ValueWeighted(1).record()
    weights = ValueWeights("value_weight", *rows, degrees, **known, dims=_ROWS)
    if table.missing.any():
        pm.modelcontext(None).add_coord("missing", missing_labels(table))
        MissingMask(table.missing.astype("int64")).record()
        MissingWeightedValues("x_missing", *rows, weights, **known, dims="missing")
    shown = AlternativeStudent("x", *rows, degrees, observed=_filled(table), dims=_ROWS)
    show_missing(shown, table.missing)


def observe_order(table: "RankTable", mean, precision) -> None:
    """Add the table as ``x``, and the values behind columns that count by their order, and missing ones, as ``latent``.

    Parameters
    ----------
    table : RankTable
    mean : TensorVariable
        (p,), of the latent rows.
    precision : TensorVariable
        (p, p), of the latent rows.
    """
    rows = (mean, precision, table.location, table.scale)
    latent = np.argwhere(table.by_order | table.missing)
    labels = [f"{table.names[j]}[{i}]" for i, j in latent]
    pm.modelcontext(None).add_coord("latent_value", labels)
    OrderedColumns(table.by_order.astype("int64")).record()
    start = table.location + table.scale * np.nan_to_num(table.standardized)
    block = {"block": table.block}
    known = {"table": table.values, "codes": table.codes, "start": start} | block
    if table.variables:
        pm.modelcontext(None).add_coord("state_variable", table.variables)
        StateColumns(table.block, np.bincount(table.block[table.block >= 0])).record()
    LatentValues("latent", *rows, **known, dims="latent_value")
    own = {"table": table.values, "by_order": table.by_order, "dims": _ROWS} | block
    if table.missing.any():
        MissingMask(table.missing.astype("int64")).record()
    filled = np.where(table.missing, 0.0, table.values)
    show_missing(OrderedRows("x", *rows, **own, observed=filled), table.missing)


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


def _observe(table, rows, kinds):
    """Add the table, given the parameters of its rows and the distributions of complete, incomplete and missing ones."""
    *_, of_missing = kinds
    model = pm.modelcontext(None)
    if table.missing.any():
        model.add_coord("missing", missing_labels(table))
        MissingMask(table.missing.astype("int64")).record()
        known = {"table": _filled(table), "missing": table.missing}
        of_missing("x_missing", *rows, **known, dims="missing")
    _add_rows(table, rows, kinds)
    options = ["covariates"] if "covariate" in model.coords else []
    remember_rows(coding_of(table), _observe_others, *options)


def _add_rows(table, rows, kinds):
    """Add the table as ``x``, given the parameters of its rows."""
    complete, incomplete, _ = kinds
    if not table.missing.any():
        complete("x", *rows, observed=table.values, dims=_ROWS)
        return
    own = {"missing": table.missing, "observed": _filled(table), "dims": _ROWS}
    show_missing(incomplete("x", *rows, **own), table.missing)


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
    rows = (mean, precision, location, scale)
    if "degrees" in model.named_vars:
        _add_rows(table, (*rows, model["degrees"]), _STUDENT)
    else:
        _add_rows(table, rows, _NORMAL)


def missing_labels(table: "Table") -> list[str]:
    """Labels ``column[row]`` of the missing values of a table, in row-major order."""
    return [f"{table.names[j]}[{i}]" for i, j in np.argwhere(table.missing)]


def read_rows(
    data, covariates, *, standardize: bool, missing_codes, row_counts
) -> tuple["Table", Any, Any]:
    """Read a table of numbers; return it with the data and covariates without codes and counts.

    Parameters
    ----------
    data, covariates : TableLike
    standardize : bool
    missing_codes, row_counts
        As of the models.
    """
    data, covariates = repeated_rows(row_counts, data, covariates)
    data, covariates = tables_without_codes(missing_codes, data, covariates)
    table = Table.continuous(data, standardize=standardize, counted=row_counts is not None)
    warn_size(table)
    return table, data, covariates


def column_means(table: "Table", data, covariates, unit: Any = 1.0) -> "TensorVariable":
    """Add the means of the columns, and their regression on covariates if there are any.

    The means are normal a priori, with mean zero and `unit`, the standard deviations of the columns, as standard deviations.
    """
    mean = ColumnMeans("mean", 0.0, unit, dims="node")
    if covariates is None:
        return mean
    check_same_rows(data, covariates)
    return regression(table, covariates, mean, unit)


def regression(table: "Table", covariates, intercept, unit: Any = 1.0) -> "TensorVariable":
    """Mean of each row as a linear function of covariates, (n, p).

    The coefficients are normal a priori, with mean zero and standard deviation `unit`, for standardised covariates.
    """
    coding, design = standardized_covariates(covariates, table.n, table.names)
    pm.modelcontext(None).add_coord("covariate", list(coding.names))
    CovariateUnits(coding.location, coding.scale).record()
    coefficients = pm.Normal("coefficients", 0.0, unit, dims=("covariate", "node"))
    return intercept + design @ coefficients


def warn_size(table: "Table", draws: int = 4000) -> None:
    """Warn if a usual number of draws exceeds half of the memory.

    A draw holds the matrix, its unconstrained vector, and two numbers for each pair.
    """
    bytes_, memory = 8 * draws * 5 * table.p**2 // 2, memory_size()
    if memory is not None and bytes_ > memory / 2:
        warn(
            f"{draws:,} draws of {table.p} columns take {bytes_ / 2**30:.0f} GiB of memory; ask for "
            'fewer draws, keep them on disk with bs.sample(checkpoint="run"), or keep only the '
            'graph with pm.sample(var_names=["edge", "weight"])'
        )


def warn_latent(table: Any, draws: int = 4000, *, degrees: bool = True) -> None:
    """Warn if a usual number of draws of latent values, or of weights of values, takes more than a gibibyte.

    The parameters that it advises to keep are those from which predictive draws are made; `degrees` are one if they are learned.
    """
    by_order = getattr(table, "by_order", None)
    latent = table.n * table.p if by_order is None else (by_order | table.missing).sum()
    size = 8 * draws * int(latent)
    if size > 2**30:
        what = "weights of the values" if by_order is None else "latent values"
        others = "" if by_order is not None and by_order.all() else ', "mean"'
        others += ', "degrees"' if by_order is None and degrees else ""
        warn(
            f"{draws:,} draws of the {what} take {size / 2**30:.0f} GiB of memory: leave them out of the result with "
            f'pm.sample(var_names=["edge", "weight", "precision"{others}])'
        )


def memory_size() -> int | None:
    """Size of the memory in bytes, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
