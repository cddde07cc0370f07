"""Rows of Gaussian graphical models, for predictions of their empty values."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import variables
from bayesstruct.core.tables.codings import ColumnUnits, CovariateUnits
from bayesstruct.core.tables.predictions import NormalRows, register_prediction
from bayesstruct.data.covariates import read_covariates
from bayesstruct.graphs.groups import CONSTANTS, group_dataset, parameter_draws
from bayesstruct.graphs.records import OrderedColumns

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.data.intake import TableLike

__all__ = ["normal_rows"]


def normal_rows(idata: "xr.DataTree", covariates: "TableLike" = None) -> NormalRows:
    """Return the distribution of a row in each draw of a Gaussian graphical model.

    Parameters
    ----------
    idata : xarray.DataTree
    covariates : DataFrame or array_like, optional
        (n, q), of the rows that are predicted.

    Raises
    ------
    ValueError
        If the model has covariates and none are given, or none and some are given; if rows are not normal.
    """
    constants = group_dataset(idata, CONSTANTS)
    OrderedColumns.refuse(constants, "values of single rows cannot be predicted from this result")
    if "degrees" in variables(idata) | variables(idata, CONSTANTS):
        raise ValueError(
            "predictions of empty values are not known for t rows: give the model the incomplete rows, whose missing values are "
            "then drawn as `x_missing`"
        )
    coding = ColumnUnits.read(constants).coding(constants["node"].values.tolist())
    mean, precision = parameter_draws(idata, "mean", "precision")
    if CovariateUnits.is_in(constants) != (covariates is not None):
        raise ValueError(
            "the model has covariates: give those of the rows, `covariates`"
            if covariates is None
            else "the model has no covariates: leave `covariates` out"
        )
    if covariates is not None:
        rows = len(covariates)
        design = read_covariates(CovariateUnits.coding(constants), covariates, rows)
        (coefficients,) = parameter_draws(idata, "coefficients")
        mean = mean[:, None] + design @ coefficients
        linear = mean @ precision
    else:
        linear = (precision @ mean[..., None])[..., 0]
    return NormalRows(coding, np.asarray(linear), precision, {})


def _is_graphical(idata) -> bool:
    constants = variables(idata, CONSTANTS)
    if "column_by_order" in constants:
        return "precision" in variables(idata)
    return {"location", "scale"} <= constants and {"precision", "mean"} <= variables(idata)


register_prediction("Gaussian graphical models", _is_graphical, normal_rows, "covariates")
