"""Evidence for a line of a graph, by its Bayes factor: the one meaning of "included", for tables, reports and pictures."""

import numpy as np

__all__ = ["EXCLUDED", "FIXED", "INCLUDED", "STRONG", "UNDECIDED", "check_threshold", "evidence"]

#: Bayes factor from which evidence is commonly read as strong.
STRONG = 10.0
INCLUDED, UNDECIDED, EXCLUDED, FIXED = "included", "undecided", "excluded", "fixed"


def evidence(factor, threshold: float = STRONG) -> np.ndarray:
    """Say of each line whether the data include it, exclude it, or do not decide.

    Parameters
    ----------
    factor : array_like of float
        Bayes factors; NaN where nothing was tested, since the line was required or forbidden.
    threshold : float, above 1
        Included: Bayes factor of at least `threshold`. Excluded: at most 1 / `threshold`.

    Returns
    -------
    ndarray of str, shape of `factor`
        "included", "excluded", "undecided" or "fixed".

    Raises
    ------
    ValueError
        When `threshold` is not above 1.
    """
    check_threshold(threshold)
    factor = np.asarray(factor, float)
    with np.errstate(invalid="ignore"):
        conditions = [np.isnan(factor), factor >= threshold, factor <= 1 / threshold]
    return np.select(conditions, [FIXED, INCLUDED, EXCLUDED], UNDECIDED)


def check_threshold(threshold: float) -> None:
    """Refuse a Bayes factor that cannot divide evidence for a line from evidence against it.

    Raises
    ------
    ValueError
    """
    if not threshold > 1:
        raise ValueError(f"`threshold` must be above 1, got {threshold}.")
