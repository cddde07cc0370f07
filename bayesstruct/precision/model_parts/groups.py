"""Parts of the model of several groups of rows: the rows or covariance matrices, starts, other rows."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.missing import MissingMask, show_missing
from bayesstruct.core.starts import BootstrapStart, SampleCovarianceStart
from bayesstruct.core.tables.rows import remember_rows
from bayesstruct.data.coding import NumberCoding
from bayesstruct.data.covariance import GroupedCovariances
from bayesstruct.graphs.records import RowGroups
from bayesstruct.precision.model_parts.edges import warn_of_narrow_slab
from bayesstruct.precision.model_parts.rows import missing_labels
from bayesstruct.precision.model_parts.units import strongest_element
from bayesstruct.precision.ops.graphical_spike_slab import graphical_spike_slab_mode
from bayesstruct.precision.priors.group_rows import (
    GroupedMissingValues,
    GroupedNormal,
    IncompleteGroupedNormal,
)
from bayesstruct.precision.priors.sample_covariance import GroupedCovariance

if TYPE_CHECKING:
    from bayesstruct.data.row_groups import GroupedTable
    from bayesstruct.data.table import Table

__all__ = ["observe_groups", "start_of_groups", "warn_of_narrow_slabs"]

_ROWS = ("observation", "node")
_ROUGH = {"tol": 1e-2, "max_iter": 5}  # a start need not be an exact mode


def start_of_groups(table: "GroupedTable | GroupedCovariances", odds, scales: dict[str, Any]):
    """Start of each chain: in each group the mode of another table than the one that was observed.

    Parameters
    ----------
    table : GroupedTable or GroupedCovariances
    odds : (p, p) ndarray
        Log odds of edges.
    scales : dict
        ``spike_scale``, ``slab_scale`` and ``diagonal_rate``.
    """
    options: dict[str, Any] = {**scales, **_ROUGH}
    mode = partial(graphical_spike_slab_mode, log_odds=odds, **options)
    starts: list[Any] = []
    for g in range(len(table.labels)):
        if isinstance(table, GroupedCovariances):
            starts.append(SampleCovarianceStart(table.scatter(g), int(table.sizes[g]), mode))
        else:
            starts.append(BootstrapStart(table.standardized(g), mode))
    return pt.stack([start() for start in starts])


def warn_of_narrow_slabs(table: "GroupedTable | GroupedCovariances", slab_scale: float) -> None:
    """Warn of columns that depend on each other beyond the slab in some group; of several, where they do so most."""
    groups = range(len(table.labels))
    found: list[tuple[Any, int | None]]
    if isinstance(table, GroupedCovariances):
        names = table.tables[0].names
        found = [(table.scatter(g), int(table.sizes[g])) for g in groups]
    else:
        names, found = table.table.names, [(table.standardized(g), None) for g in groups]
    g = max(groups, key=lambda g: strongest_element(*found[g])[1])
    rows, n = found[g]
    warn_of_narrow_slab(rows, names, slab_scale, n=n, where=f" of group {table.labels[g]!r}")


def observe_groups(table: "GroupedTable | GroupedCovariances", mean, precision) -> None:
    """Add the table as ``x``, and its missing values as ``x_missing``; or the covariance matrices as ``covariance``.

    Parameters
    ----------
    table : GroupedTable or GroupedCovariances
    mean, precision : TensorVariable
        (G, p) and (G, p, p), of the standardised rows.
    """
    units = [
        pm.Data(name, value, dims=("group", "node"))
        for name, value in (("location", table.location), ("scale", table.scale))
    ]
    if isinstance(table, GroupedCovariances):
        n = pm.Data("rows", table.sizes.astype(float), dims="group")
        dims = ("group", "node", "node_")
        own = (mean, precision, units[1], n)
        GroupedCovariance("covariance", *own, observed=table.covariance, dims=dims)
        return
    rows = table.table
    RowGroups(table.group).record()
    known = (table.group, mean, precision, *units)
    if rows.missing.any():
        pm.modelcontext(None).add_coord("missing", missing_labels(rows))
        MissingMask(rows.missing.astype("int64")).record()
        own_rows = {"table": _filled(rows, table.group, table.location), "missing": rows.missing}
        GroupedMissingValues("x_missing", *known, **own_rows, dims="missing")
    _add_rows(rows, table.group, table.location, known)
    unit = np.zeros(rows.p), np.ones(rows.p)  # those of the groups differ
    remember_rows(NumberCoding(rows.names, *unit), _observe_others, "group")


def _add_rows(rows: "Table", group, location, known):
    """Add the table as ``x``, given the parameters of its rows."""
    if not rows.missing.any():
        GroupedNormal("x", *known, observed=rows.values, dims=_ROWS)
        return
    own = {"missing": rows.missing, "observed": _filled(rows, group, location), "dims": _ROWS}
    show_missing(IncompleteGroupedNormal("x", *known, **own), rows.missing)


def _filled(rows, group, location):
    return np.where(rows.missing, np.asarray(location)[group], rows.values)


def _observe_others(table: "Table", group: np.ndarray) -> None:
    """Add the rows of another table, and the position of the group of each, to a model without rows."""
    model = pm.modelcontext(None)
    mean, precision, location, scale = (
        model[name] for name in ("mean", "precision", "location", "scale")
    )
    RowGroups(group).record()
    _add_rows(table, group, location.get_value(), (group, mean, precision, location, scale))
