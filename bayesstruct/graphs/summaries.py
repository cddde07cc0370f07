"""Credible intervals in tables of results."""

from bayesstruct.data.arguments import probability

__all__ = ["interval_probability"]


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
