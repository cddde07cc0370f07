"""Intervals, order and notes of tables of edges and arcs."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import probability

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["bound_note", "interval_probability", "most_probable_first"]


def interval_probability(ci_prob: float | None = None) -> float:
    """Probability of credible intervals.

    Parameters
    ----------
    ci_prob : float, optional
        Between 0 and 1. None: ``arviz.rcParams["stats.ci_prob"]``.

    Raises
    ------
    ValueError
        If it is not between 0 and 1.

    Examples
    --------
    >>> interval_probability(0.9)
    0.9
    """
    if ci_prob is None:
        import arviz as az

        return float(az.rcParams["stats.ci_prob"])
    return probability("ci_prob", ci_prob)


def most_probable_first(
    table: "pd.DataFrame", bound: np.ndarray
) -> tuple["pd.DataFrame", list[int]]:
    """Sort a table of edges or arcs, and return it with the rows whose Bayes factor is a bound.

    Most probable first; of equals the largest absolute ``mean``, if the table has one.
    """
    size = np.abs(table["mean"]) if "mean" in table else np.zeros(len(table))
    order = np.lexsort((-size, -table["probability"]))
    return table.iloc[order].reset_index(drop=True), np.flatnonzero(bound[order]).tolist()


def bound_note(bounds: list[int]) -> list[str]:
    """Note on Bayes factors that are bounds, or nothing."""
    if not bounds:
        return []
    return [
        f"{len(bounds)} Bayes factors are bounds: the draws cannot tell these probabilities "
        "from 0 or 1 (rows in attrs['bayes_factor_bounds'])."
    ]
