"""Tables of covariates: complete, one row for each row of the table they explain."""

import numpy as np

from bayesstruct.data.checks import max_columns
from bayesstruct.data.errors import TableError, column_list
from bayesstruct.data.intake import read_columns

__all__ = ["check_same_rows", "standardized_covariates"]


def check_same_rows(data, covariates):
    """Refuse two labelled frames whose rows carry different labels: they are matched by position.

    Raises
    ------
    TableError
        If both have an index and the indexes differ.
    """
    labels, others = getattr(data, "index", None), getattr(covariates, "index", None)
    if not (hasattr(labels, "equals") and hasattr(others, "equals")):
        return
    if len(labels) == len(others) and not labels.equals(others):
        raise TableError(
            "The rows of the covariates are labelled differently from those of the table, and rows "
            "are matched by position: align them with covariates.reindex(data.index), or drop both "
            "labels with reset_index(drop=True)"
        )


def standardized_covariates(data, rows: int) -> tuple[list[str], np.ndarray]:
    """Check covariates and standardise them.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, q); a vector is one covariate.
    rows : int
        Number of rows of the table, n.

    Returns
    -------
    list of str
        The q names.
    numpy.ndarray
        (n, q), each column with mean 0 and standard deviation 1.

    Raises
    ------
    TableError
        If the number of rows differs, a cell is missing or not a finite number, or a column is
        constant.
    """
    if hasattr(data, "to_frame") and np.ndim(data) == 1:
        data = data.to_frame()
    elif not hasattr(data, "columns") and np.ndim(data) == 1:
        data = np.asarray(data)[:, None]
    intake = read_columns(data, max_columns())
    names, values = [str(name) for name in intake.names], intake.values
    if len(values) != rows:
        raise TableError(f"The covariates have {len(values)} rows, the table has {rows}")
    broken = [name for name, v in zip(names, values.T, strict=True) if not np.isfinite(v).all()]
    if broken:
        raise TableError(
            f"Covariate {column_list(broken)} has cells that are missing or no finite numbers; "
            "impute or encode them first, or leave the covariate out"
        )
    scale = values.std(axis=0, ddof=1)
    constant = [name for name, s in zip(names, scale, strict=True) if s == 0]
    if constant:
        raise TableError(
            f"Covariate {column_list(constant)} is constant; leave it out, the intercept is there"
        )
    return names, (values - values.mean(axis=0)) / scale
