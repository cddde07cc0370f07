"""Posterior predictive check of the dependence between columns."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["predictive_correlations"]


def predictive_correlations(
    idata, *, prob: float = 0.95, draws: int = 500, group: str = "posterior_predictive"
) -> "pd.DataFrame":
    r"""Compare the correlations of the table with those of replicated tables.

    A model that fits gives replicated tables whose correlations lie around the observed ones:
    about ``prob`` of the intervals should hold the observed value. A pair whose observed
    correlation lies outside is one whose dependence the graph, or the normal law, misses.

    Parameters
    ----------
    idata : xarray.DataTree
        With ``posterior_predictive`` from ``pm.sample_posterior_predictive``.
    prob : float
        Probability of the central interval.
    draws : int
        Number of replicated tables used, spread evenly over the draws.
    group : str
        Group of the replicated tables.

    Returns
    -------
    pandas.DataFrame
        One row for each pair: ``source, target, observed, mean, low, high, p_value`` (share of
        replications at least as large, two-sided), ``inside``.

    Raises
    ------
    ValueError
        If there are no replicated tables.

    Notes
    -----
    Missing cells are left out of the observed and of the replicated table alike.

    References
    ----------
    Gelman, A., Meng, X.-L. and Stern, H. (1996). Posterior predictive assessment of model fitness.
    *Statistica Sinica* 6, 733-760.

    Examples
    --------
    >>> table = predictive_correlations(idata)  # doctest: +SKIP
    >>> table.inside.mean()  # doctest: +SKIP
    """
    import pandas as pd

    if group not in idata.children:
        raise ValueError(
            f"there is no `{group}` here; run "
            "pm.sample_posterior_predictive(idata, extend_inferencedata=True) first"
        )
    observed = idata["observed_data"]["x"]
    mask = _observed_cells(idata, observed.shape)
    replicated = idata[group]["x"].values.reshape(-1, *observed.shape)
    keep = np.linspace(0, len(replicated) - 1, min(draws, len(replicated))).astype(int)
    upper = np.triu_indices(observed.shape[1], 1)
    simulated = np.array([_correlation(replicated[t], mask)[upper] for t in keep])
    actual = _correlation(observed.values, mask)[upper]
    low, high = np.quantile(simulated, [0.5 - prob / 2, 0.5 + prob / 2], axis=0)
    tail = (simulated >= actual).mean(axis=0)
    names = observed["variable"].values
    return pd.DataFrame(
        {
            "source": names[upper[0]],
            "target": names[upper[1]],
            "observed": actual,
            "mean": simulated.mean(axis=0),
            "low": low,
            "high": high,
            "p_value": 2.0 * np.minimum(tail, 1.0 - tail),
            "inside": (low <= actual) & (actual <= high),
        }
    )


def _observed_cells(idata, shape):
    """Return which cells were observed, or None when all were."""
    constants = idata["constant_data"] if "constant_data" in idata.children else {}
    if "cell_missing" not in constants:
        return None
    return constants["cell_missing"].values.reshape(shape) == 0


def _correlation(rows, mask):
    """Correlation matrix; with a mask each pair uses the rows in which both were observed."""
    if mask is None:
        return np.corrcoef(rows, rowvar=False)
    kept = mask.astype(float)
    centred = np.where(mask, rows - rows.mean(axis=0), 0.0)
    count = kept.T @ kept
    with np.errstate(invalid="ignore", divide="ignore"):
        first = centred.T @ kept / count
        covariance = centred.T @ centred / count - first * first.T
        spread = (centred**2).T @ kept / count - first**2
        return covariance / np.sqrt(spread * spread.T)
