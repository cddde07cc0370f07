"""Normal nodes of a tree with a root: precision matrices of its columns, and hidden nodes given the columns."""

import numpy as np

__all__ = ["column_precision", "node_precision", "predict_hidden"]


def node_precision(parent: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return the precision matrix of all nodes, which have variance 1; nodes that are not used are independent.

    Parameters
    ----------
    parent, correlation : (..., nodes) ndarray
        As of :class:`bayesstruct.distributions.HiddenTree` and :class:`bayesstruct.distributions.TreeCorrelations`.

    Returns
    -------
    (..., nodes, nodes) ndarray
    """
    nodes = parent.shape[-1]
    above = parent[..., :, None] == np.arange(nodes)
    rest = np.eye(nodes) - above * correlation[..., :, None]
    return rest.swapaxes(-1, -2) @ (rest / (1.0 - correlation**2)[..., :, None])


def column_precision(
    parent: np.ndarray, correlation: np.ndarray, deviation: np.ndarray
) -> np.ndarray:
    """Return the precision matrix of the columns, hidden nodes being summed out.

    Parameters
    ----------
    parent, correlation : (..., nodes) ndarray
    deviation : (..., p) ndarray
        Standard deviations of the columns.

    Returns
    -------
    (..., p, p) ndarray
        Symmetric to the last digit.
    """
    p = deviation.shape[-1]
    whole = node_precision(parent, correlation)
    own = whole[..., :p, :p]
    if whole.shape[-1] > p:
        beside = whole[..., p:, :p]
        own = own - beside.swapaxes(-1, -2) @ np.linalg.solve(whole[..., p:, p:], beside)
    own = own / (deviation[..., :, None] * deviation[..., None, :])
    return 0.5 * (own + own.swapaxes(-1, -2))


def predict_hidden(
    parent: np.ndarray, correlation: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and covariance matrix of the hidden nodes of one tree given rows of columns with variance 1.

    Parameters
    ----------
    parent, correlation : (nodes,) ndarray
    columns : (n, p) ndarray

    Returns
    -------
    (n, hidden) and (hidden, hidden) ndarray
        Of nodes that are not used: 0 and 1.
    """
    p = columns.shape[1]
    whole = node_precision(parent, correlation)
    covariance = np.linalg.inv(whole[p:, p:])
    return -columns @ whole[p:, :p].T @ covariance, covariance
