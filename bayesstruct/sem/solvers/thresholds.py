"""Which coefficients of linear structural equations are kept as arcs."""

import math

import numpy as np

__all__ = ["kept_by_criterion"]


def kept_by_criterion(S: np.ndarray, n: int, weights: np.ndarray) -> np.ndarray:
    r"""Choose how many of the largest coefficients of each column are kept, by the extended BIC of normal regressions.

    The candidates of a column are those with a coefficient that is not zero, ordered by its magnitude times the standard deviation of
    the predecessor. Of the nested regressions on the first k of them the one is taken with the smallest :math:`n \log \mathrm{RSS}_k + k (\log n + 2 \log p)`,
    k being at most a quarter of the rows.

    Parameters
    ----------
    S : (p, p) ndarray
        Covariances.
    n : int
        Number of rows.
    weights : (p, p) ndarray
        Coefficients, row the child.

    Returns
    -------
    (p, p) bool ndarray
        Row the child.

    References
    ----------
    Chen, J. and Chen, Z. (2008). Extended Bayesian information criteria for model selection with large model spaces. Biometrika 95, 759-771 (with
    :math:`\gamma = 1`, and the logarithm of the number of sets of k predecessors replaced by :math:`k \log p`).
    """
    kept = np.zeros(weights.shape, bool)
    deviations = np.sqrt(np.diag(S))
    for child in range(len(S)):
        size = abs(weights[child]) * deviations
        candidates = np.argsort(-size, kind="stable")[: np.count_nonzero(size)][: n // 4]
        if len(candidates):
            price = math.log(n) + 2.0 * math.log(len(S))
            shares = _unexplained(S, child, candidates)
            scores = n * np.log(shares) + price * np.arange(len(shares))
            kept[child, candidates[: int(np.argmin(scores))]] = True
    return kept


def _unexplained(S, child, candidates):
    """Residual variances of nested regressions on 0, 1, ... candidates, as shares of the variance."""
    columns = np.append(candidates, child)
    root = np.sqrt(np.diag(S)[columns])
    work = S[np.ix_(columns, columns)] / np.outer(root, root)
    shares = [1.0]
    for k in range(len(candidates)):
        if work[k, k] <= 1e-10:  # determined by those before it
            shares.append(shares[-1])
            continue
        work -= np.outer(work[:, k], work[k]) / work[k, k]
        shares.append(max(work[-1, -1], 1e-12))
    return np.array(shares)
