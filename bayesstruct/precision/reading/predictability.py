"""How well each column is predicted by all others under a precision matrix."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import variables
from bayesstruct.core.tables.predictability import OTHERS, Predicted, register_predictability
from bayesstruct.graphs.groups import CONSTANTS, group_dataset, parameter_draws
from bayesstruct.graphs.records import OrderedColumns, StateColumns, ValueWeighted

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["explained_variance"]


def explained_variance(precision: np.ndarray, blocks: list[np.ndarray]) -> np.ndarray:
    """Share of the variance of columns that a linear function of all others explains.

    Parameters
    ----------
    precision : (..., p, p) ndarray of float
    blocks : list of ndarray of int
        Positions of the columns that are one; its share is that of the sum of their variances, given all
        columns outside of it.

    Returns
    -------
    ndarray, shape (..., blocks)
    """
    covariance = np.linalg.inv(precision)
    if all(len(own) == 1 for own in blocks):
        at = np.concatenate(blocks)
        whole, own = (np.diagonal(m, axis1=-2, axis2=-1)[..., at] for m in (covariance, precision))
        return 1.0 - 1.0 / (whole * own)
    shares = []
    for own in blocks:
        left = np.linalg.inv(precision[..., own[:, None], own])
        whole = covariance[..., own[:, None], own]
        traces = (np.trace(m, axis1=-2, axis2=-1) for m in (left, whole))
        shares.append(1.0 - next(traces) / next(traces))
    return np.stack(shares, axis=-1)


def _predicted(idata: "xr.DataTree", draws: int) -> tuple[list[Predicted], list[str]]:
    constants = group_dataset(idata, CONSTANTS)
    (precision,) = parameter_draws(idata, "precision")
    kept = np.unique(np.linspace(0, len(precision) - 1, min(draws, len(precision))).astype(int))
    names, blocks = _variables(constants)
    found = explained_variance(precision[kept], blocks)
    columns = zip(names, found.T, strict=True)
    return [Predicted(n, "R2", OTHERS, own) for n, own in columns], _notes(idata, constants)


def _variables(constants) -> tuple[list[str], list[np.ndarray]]:
    """Columns of the data, and the columns of the model that each is."""
    nodes = [str(node) for node in constants["node"].values]
    if not StateColumns.is_in(constants):
        return nodes, [np.array([j]) for j in range(len(nodes))]
    block = StateColumns.read(constants).block
    places: dict[str, list[int]] = {}
    labels = constants["state_variable"].values
    for j, (node, k) in enumerate(zip(nodes, block, strict=True)):
        places.setdefault(node if k < 0 else str(labels[k]), []).append(j)
    return list(places), [np.array(own) for own in places.values()]


def _notes(idata, constants) -> list[str]:
    notes = []
    if OrderedColumns.is_in(constants):
        notes.append(
            "R2 is of the latent normal values of the columns that count by the order of their values alone, and not of the values in "
            "the table."
        )
    if StateColumns.is_in(constants):
        notes.append(
            "R2 of a column of states without an order is that of all its latent columns together, given the columns of all other variables."
        )
    if ValueWeighted.is_in(constants):
        notes.append("R2 is of the normal values before each is divided by the root of its weight.")
    if "coefficients" in variables(idata):
        notes.append("R2 is of what the covariates leave of each column.")
    return notes


def _is_graphical(idata) -> bool:
    return {"edge", "precision"} <= variables(idata)


register_predictability("Gaussian graphical models", _is_graphical, _predicted)
