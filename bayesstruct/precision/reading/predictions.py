"""Rows of Gaussian graphical models, for predictions of their empty values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.readers import variables
from bayesstruct.core.tables.codings import ColumnUnits, CovariateUnits
from bayesstruct.core.tables.predictions import NormalRows, register_prediction
from bayesstruct.data.coding import NumberCoding, row_labels
from bayesstruct.data.covariates import read_covariates
from bayesstruct.graphs.groups import CONSTANTS, group_dataset, parameter_draws
from bayesstruct.graphs.records import OrderedColumns

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.data.intake import TableLike

__all__ = ["GroupedRows", "grouped_rows", "normal_rows"]


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
    if "row_group" in constants:
        return False
    if "column_by_order" in constants:
        return "precision" in variables(idata)
    return {"location", "scale"} <= constants and {"precision", "mean"} <= variables(idata)


register_prediction("Gaussian graphical models", _is_graphical, normal_rows, "covariates")


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Normal distributions of the rows of several groups.

    Attributes
    ----------
    coding : NumberCoding
        Names of the columns.
    parts : list of NormalRows
        Of each group.
    group : (n,) ndarray of int
        Position of the group of each row that is predicted.
    """

    coding: NumberCoding
    parts: list[NormalRows]
    group: np.ndarray

    def predict(self, data: Any, prob: float) -> "pd.DataFrame":
        """Mean, standard deviation and interval of each empty value; see `bayesstruct.predict`."""
        import pandas as pd

        table = self.coding.read(data)
        labels = row_labels(data, table.n)
        frame, found = pd.DataFrame(table.values, columns=list(table.names)), []
        for g, part in enumerate(self.parts):
            own = frame[self.group == g]
            if len(own):
                found.append(part.predict(own, prob))
        out = pd.concat(found).sort_values("row", kind="stable").reset_index(drop=True)
        return out.assign(row=[labels[row] for row in out["row"]])


def grouped_rows(idata: "xr.DataTree", group: np.ndarray) -> GroupedRows:
    """Return the distribution of the rows of each group in each draw of a Gaussian graphical model of groups.

    Parameters
    ----------
    idata : xarray.DataTree
    group : (n,) ndarray of int
        Position of the group of each row that is predicted.
    """
    constants = group_dataset(idata, CONSTANTS)
    units = ColumnUnits.read(constants)
    names, location, scale = constants["node"].values.tolist(), units.location, units.scale
    mean, precision = parameter_draws(idata, "mean", "precision")
    parts = []
    for g, label in enumerate(constants["group"].values):
        coding = NumberCoding(
            tuple(names), location[g], scale[g], f"group {str(label)!r} of the first table"
        )
        own = np.ascontiguousarray(precision[:, g])
        linear = (own @ mean[:, g, :, None])[..., 0]
        parts.append(NormalRows(coding, linear, own, {}))
    unit = np.zeros(len(names)), np.ones(len(names))
    return GroupedRows(NumberCoding(tuple(names), *unit), parts, group)


def _is_grouped(idata) -> bool:
    known = {"precision", "mean"} <= variables(idata)
    return known and {"row_group", "location", "scale"} <= variables(idata, CONSTANTS)


register_prediction("Gaussian graphical models of groups", _is_grouped, grouped_rows, "group")
