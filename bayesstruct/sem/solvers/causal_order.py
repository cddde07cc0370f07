r"""Orders of columns by taking out one first cause after the other (DirectLiNGAM).

In each round the column that is most independent of the residuals of all others on it is the next one of the
order, and the others are replaced by these residuals.
"""

from dataclasses import dataclass

import numpy as np

from bayesstruct.sem.kernels.pairwise_ratio import pairwise_ratios
from bayesstruct.sem.solvers.knowledge import Knowledge

__all__ = ["MEASURES", "CausalOrder", "causal_order"]

MEASURES = ("kernel", "likelihood_ratio", "entropy")


@dataclass(frozen=True, eq=False)
class CausalOrder:
    """An order and how it was found.

    Attributes
    ----------
    order : list of int
        Causes before effects.
    dependence : list of float
        Measure of dependence of each column when it was taken, in the order; 0 where it was known
        to be the first or was the last.
    evaluations : int
        Comparisons of two columns.
    """

    order: list[int]
    dependence: list[float]
    evaluations: int


def causal_order(
    z: np.ndarray, measure: str, knowledge: Knowledge, *, complete: bool = False
) -> CausalOrder:
    """Find an order.

    Parameters
    ----------
    z : (n, d) numpy.ndarray
        Columns without missing values, none a linear combination of the others.
    measure : {"kernel", "likelihood_ratio", "entropy"}
    knowledge : Knowledge
    complete : bool
        Make all comparisons, also those that cannot change the order.
    """
    rows = standardised(np.ascontiguousarray(z.T))
    finder = _finder(measure, len(rows), complete)
    left, order, dependence = np.arange(len(rows)), [], []
    while len(left):
        among = np.ix_(left, left)
        no_path = knowledge.no_path[among]
        candidate = ~knowledge.before[among].any(axis=0)
        best, value = _known_first(candidate, no_path)
        if best is None:
            best, value = finder(rows, left, candidate, no_path)
        order.append(int(left[best]))
        dependence.append(value)
        rows, left = _without(rows, left, best, no_path[best])
    return CausalOrder(order, dependence, finder.evaluations)


def standardised(rows: np.ndarray) -> np.ndarray:
    """Return rows with mean 0 and mean square 1."""
    rows = rows - rows.mean(axis=1, keepdims=True)
    return rows / np.sqrt((rows**2).mean(axis=1, keepdims=True))


def _known_first(candidate, no_path):
    """Return a candidate that is known to be a first cause, or the only candidate, else None; and 0."""
    known = candidate & (no_path | np.eye(len(no_path), dtype=bool)).all(axis=0)
    if known.any() or candidate.sum() == 1:
        return int((known if known.any() else candidate).argmax()), 0.0
    return None, 0.0


def _without(rows, left, best, unaffected):
    """Return residuals of all other variables; those that the variable has no path to stay as they are."""
    cause = rows[best]
    slope = np.where(unaffected, 0.0, rows @ cause / len(cause))
    keep = np.arange(len(left)) != best
    rest = rows[keep] - slope[keep, None] * cause
    return standardised(rest) if len(rest) else rest, left[keep]


def _finder(measure, d, complete):
    """Return what finds the first cause among the variables that are left."""
    if measure == "likelihood_ratio":
        return _ByRatio()
    return _ByEntropy(d, complete) if measure == "entropy" else _ByKernel(d, complete)


class _ByRatio:
    """First cause by likelihood ratios to first order."""

    def __init__(self):
        self.evaluations = 0

    def __call__(self, rows, left, candidate, no_path):
        k = len(left)
        ratios = pairwise_ratios(rows, rows @ rows.T / rows.shape[1])
        self.evaluations += k * (k - 1) // 2
        against = np.where(no_path.T, 0.0, np.minimum(ratios, 0.0) ** 2).sum(axis=1)
        best = int(np.where(candidate, against, np.inf).argmin())
        return best, float(against[best])


class _ByEntropy:
    """First cause by differences of approximate entropies."""

    def __init__(self, d, complete):
        self.evaluations, self.complete = 0, complete
        self.ratios = np.zeros((d, d))

    def __call__(self, rows, left, candidate, no_path):
        from bayesstruct.sem.kernels.pairwise_entropy import first_cause

        among = np.ix_(left, left)
        guesses = self.ratios[among]
        compared = ~(no_path.T | np.eye(len(left), dtype=bool))
        sums, best, pairs = first_cause(
            rows, rows @ rows.T / rows.shape[1], candidate, compared, guesses, self.complete
        )
        self.ratios[among] = guesses
        self.evaluations += pairs
        return int(best), float(sums[best])


class _ByKernel:
    """First cause by the kernel mutual information with residuals.

    A sum that exceeds the smallest one so far is given up. Candidates and terms are visited in the order that
    the round before suggests.
    """

    def __init__(self, d, complete):
        self.evaluations, self.complete = 0, complete
        self.information = np.zeros((d, d))

    def __call__(self, rows, left, candidate, no_path):
        from bayesstruct.sem.kernels.kernel_information import (
            kernel_factor,
            kernel_information,
            kernel_settings,
        )

        correlation = rows @ rows.T / rows.shape[1]
        settings = kernel_settings(rows.shape[1])
        guesses = self.information[np.ix_(left, left)]
        best, least = -1, np.inf
        candidates = np.flatnonzero(candidate)
        for j in candidates[np.argsort(guesses[candidates].sum(axis=1), kind="stable")]:
            own, total = kernel_factor(rows[j], *settings), 0.0
            others = np.delete(np.arange(len(left)), j)
            for i in others[np.argsort(-guesses[j, others], kind="stable")]:
                rho = 0.0 if no_path[j, i] else correlation[j, i]
                residual = (rows[i] - rho * rows[j]) / np.sqrt(max(1 - rho**2, 1e-12))
                value = kernel_information(own, kernel_factor(residual, *settings))
                self.information[left[j], left[i]] = value
                self.evaluations += 1
                total += value
                if total > least and not self.complete:
                    break
            if total < least:
                best, least = int(j), total
        return best, float(least)
