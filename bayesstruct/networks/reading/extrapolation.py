"""Columns that are set to values far outside of what was observed."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import variables
from bayesstruct.core.tables.observed import observed_table
from bayesstruct.data.errors import warn

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.data.coding import NumberCoding
    from bayesstruct.networks.data.mixed_coding import MixedCoding

__all__ = ["warn_of_extrapolation"]

_BEYOND = 0.5  # of the observed range: values that far outside of it are remarked upon


def warn_of_extrapolation(
    idata: "xr.DataTree", setting: dict, coding: "NumberCoding | MixedCoding"
) -> None:
    """Say which columns of numbers are set to values far outside of their observed range.

    Parameters
    ----------
    idata : xarray.DataTree
        Nothing is said of a result without its table.
    setting : dict
        Checked names and values.
    coding : NumberCoding or MixedCoding
        How the table was read.

    Warns
    -----
    TableWarning
        If a value is beyond the range by more than half of its width.
    """
    if "x" not in variables(idata, "observed_data"):
        return
    table, missing = observed_table(idata)
    levels = getattr(coding, "levels", ((),) * len(coding.names))
    found = []
    for name, value in setting.items():
        j = coding.names.index(name)
        seen = table[~missing[:, j], j]
        if levels[j] or not len(seen):
            continue
        low, high = seen.min(), seen.max()
        if max(low - float(value), float(value) - high) > _BEYOND * np.subtract(high, low):
            found.append(f"{name!r} to {float(value):.4g} (observed: {low:.4g} to {high:.4g})")
    if found:
        warn(
            f"`setting` sets {', '.join(found)}, far outside of what was observed, where linear effects are extrapolated: give values in the "
            "units of the table, within its range"
        )
