"""The observed table of a result, and completed with the missing values of each draw."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.missing import MissingMask

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["completed_tables", "observed_table"]

_TABLE, _MISSING = "x", "x_missing"


def observed_table(idata: "xr.DataTree") -> tuple[np.ndarray, np.ndarray]:
    """Observed values of a result, (n, p) float, and which of them are missing.

    Raises
    ------
    ValueError
        If the result has no observed table of rows.
    """
    if "observed_data" not in idata.children or _TABLE not in idata["observed_data"]:
        raise ValueError(
            f"the result has no observed table `{_TABLE}`: pass the whole result of pm.sample() of a model of rows; covariance "
            "matrices and graphs alone have none"
        )
    table = np.asarray(idata["observed_data"].to_dataset()[_TABLE].values, float)
    return table, MissingMask.mask(idata["constant_data"].to_dataset(), table.shape)


def completed_tables(
    table: np.ndarray, missing: np.ndarray, draws: "xr.Dataset"
) -> Callable[[int, int], np.ndarray]:
    """Return the table with the missing values of a draw, by the positions of its chain and of the draw.

    Parameters
    ----------
    table : (n, p) ndarray of float
    missing : (n, p) ndarray of bool
    draws : xarray.Dataset
        Over chain and draw; with ``x_missing`` if values are missing.

    Raises
    ------
    ValueError
        If missing values were not sampled.
    """
    if not missing.any():
        return lambda chain, draw: table
    if _MISSING not in draws:
        raise ValueError(
            f"the result has no `{_MISSING}`, which is needed: sample it too (`var_names`)"
        )
    imputed = draws[_MISSING].transpose("chain", "draw", ...).values

    def of_draw(chain, draw):
        filled = table.copy()
        filled[missing] = imputed[chain, draw]
        return filled

    return of_draw
