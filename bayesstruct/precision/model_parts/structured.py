"""Parts of the models with nodes, blocks and neighbours: rows or a covariance matrix, as they come."""

from typing import TYPE_CHECKING, Any

from bayesstruct.data.covariance import (
    CovarianceTable,
    given_rows_or_covariance,
    refuse_options_of_rows,
)
from bayesstruct.precision.model_parts.edges import warn_of_narrow_slab
from bayesstruct.precision.model_parts.rows import (
    observe_covariance,
    observe_rows,
    read_rows,
    warn_size,
)

if TYPE_CHECKING:
    from bayesstruct.data.table import Table

__all__ = ["observe_table", "read_table", "warn_of_slab"]


def read_table(
    data, covariates, cov, n, *, standardize: bool, missing_codes, row_counts
) -> tuple[Any, Any, Any]:
    """Read a table of numbers or a covariance matrix, `Table` or `CovarianceTable`; return it with the data and covariates without codes and counts.

    Parameters
    ----------
    data, covariates, cov : TableLike
    n : int or None
        Number of rows of `cov`.
    standardize : bool
    missing_codes, row_counts
        As of the models.

    Raises
    ------
    ValueError
        If `standardize` is something else, such as the "conditional" of `gaussian_graphical`.
    """
    if standardize not in (True, False):
        raise ValueError(f"`standardize` must be True or False, it is {standardize!r}")
    options = {"missing_codes": missing_codes, "row_counts": row_counts}
    if given_rows_or_covariance(data, cov, n):
        return read_rows(data, covariates, standardize=standardize, **options)
    standard = None if standardize else False
    refuse_options_of_rows(covariates=covariates, **options, standardize=standard)
    table: Any = CovarianceTable.read(cov, n)
    warn_size(table)
    return table, None, None


def observe_table(table: "Table | CovarianceTable", mean, precision) -> None:
    """Add the rows as ``x``, or the covariance matrix as ``covariance``.

    Parameters
    ----------
    table : Table or CovarianceTable
    mean, precision : TensorVariable
        As in `observe_rows`.
    """
    if isinstance(table, CovarianceTable):
        observe_covariance(table, mean, precision)
    else:
        observe_rows(table, mean, precision)


def warn_of_slab(table: "Table | CovarianceTable", slab_scale: float) -> None:
    """Warn if columns depend on each other so strongly that the slab is too narrow for their elements."""
    if isinstance(table, CovarianceTable):
        warn_of_narrow_slab(table.scatter, table.names, slab_scale, n=table.n)
    else:
        warn_of_narrow_slab(table.standardized, table.names, slab_scale)
