"""Intervals, order, notes and displays of tables of edges and arcs."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import probability
from bayesstruct.graphs.posteriors.estimators import LARGEST

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "bayes_factor_text",
    "bayes_factor_texts",
    "bound_note",
    "interval_probability",
    "most_probable_first",
]


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


def bayes_factor_text(value: float, bound: bool) -> str:
    """Write a Bayes factor for readers, with a mark if it is a bound.

    Parameters
    ----------
    value : float
        NaN where there were no odds that the data could change.
    bound : bool
        Whether it is a bound.

    Returns
    -------
    str
        A number from 1e-6 to 1e6, the value or a bound of it: beyond them a Bayes factor depends on the shape
        of the prior.

    Examples
    --------
    >>> (
    ...     bayes_factor_text(1e304, False),
    ...     bayes_factor_text(400.0, True),
    ...     bayes_factor_text(2.5e-6, True),
    ... )
    ('> 1e6', '> 400', '< 2.5e-6')
    """
    if np.isnan(value):
        return "not tested"
    # 1e-5: the odds of a probability of 1 - 1e-6 are 999,999.
    if value >= 10.0**LARGEST * (1 - 1e-5):
        return f"> 1e{LARGEST}"
    if value <= 10.0**-LARGEST * (1 + 1e-5):
        return f"< 1e-{LARGEST}"
    text = f"{value:,.0f}" if value >= 10 else f"{value:.2g}".replace("e-0", "e-")
    return f"{'>' if value > 1 else '<'} {text}" if bound else text


def bayes_factor_texts(table: "pd.DataFrame") -> list[str]:
    """Write the Bayes factors of a table of edges or arcs, in the order of its rows."""
    bounds = set(table.attrs.get("bayes_factor_bounds", ()))
    return [
        bayes_factor_text(value, row in bounds)
        for row, value in zip(table.index, table["bayes_factor"], strict=True)
    ]


def bound_note(bounds: list[int]) -> list[str]:
    """Note on Bayes factors that are bounds, or nothing."""
    if not bounds:
        return []
    return [
        f"{len(bounds)} Bayes factors are bounds (rows in attrs['bayes_factor_bounds']): the draws cannot tell "
        f"these probabilities from 0 or 1, or the value is beyond 1e{LARGEST}, where it depends on the shape of the prior."
    ]
