r"""Orders of columns by taking out one first cause after the other (DirectLiNGAM).

In each round the column that is most independent of the residuals of all others on it is the next one of the
order, and the others are replaced by these residuals.
"""

from dataclasses import dataclass

import numpy as np

from bayesstruct.sem.kernels.pairwise_ratio import pairwise_ratios
from bayesstruct.sem.solvers.knowledge import Knowledge

__all__ = ["MEASURES", "CausalOrder", "causal_order"]

MEASURES = ("kernel_difference", "kernel", "likelihood_ratio", "entropy")


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
    measure : {"kernel_difference", "kernel", "likelihood_ratio", "entropy"}
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
    if measure == "entropy":
        return _ByEntropy(d, complete)
    return _ByKernel(d, complete) if measure == "kernel" else _ByKernelDifference(d, complete)


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


class _KernelInformation:
    """Kernel mutual information of the columns of one round with residuals on them."""

    def __init__(self, rows, no_path):
        from bayesstruct.sem.kernels import kernel_information

        self.kernel = kernel_information
        self.rows, self.no_path = rows, no_path
        self.correlation = rows @ rows.T / rows.shape[1]
        self.settings = kernel_information.kernel_settings(rows.shape[1])
        self.own = {}

    def __call__(self, j, i):
        """Return that of column j with the residual of column i on it."""
        if j not in self.own:
            self.own[j] = self.kernel.kernel_factor(self.rows[j], *self.settings)
        rho = 0.0 if self.no_path[j, i] else self.correlation[j, i]
        residual = (self.rows[i] - rho * self.rows[j]) / np.sqrt(max(1 - rho**2, 1e-12))
        return self.kernel.kernel_information(
            self.own[j], self.kernel.kernel_factor(residual, *self.settings)
        )


class _ByKernel:
    """First cause by the kernel mutual information with residuals.

    A sum that exceeds the smallest one so far is given up. Candidates and terms are visited in the order that
    the round before suggests.
    """

    def __init__(self, d, complete):
        self.evaluations, self.complete = 0, complete
        self.terms = np.zeros((d, d))

    def __call__(self, rows, left, candidate, no_path):
        information = _KernelInformation(rows, no_path)
        among = np.ix_(left, left)
        terms = self.terms[among]
        best, least = -1, np.inf
        candidates = np.flatnonzero(candidate)
        for j in candidates[np.argsort(terms[candidates].sum(axis=1), kind="stable")]:
            total = 0.0
            others = np.delete(np.arange(len(left)), j)
            for i in others[np.argsort(-terms[j, others], kind="stable")]:
                terms[j, i] = information(j, i)
                self.evaluations += 1
                total += terms[j, i]
                if total > least and not self.complete:
                    break
            if total < least:
                best, least = int(j), total
        self.terms[among] = terms
        return best, float(least)


class _ByKernelDifference:
    """First cause by how much its mutual information with residuals exceeds that of the other direction.

    Both directions of a pair share most of their errors, which the difference is free of. Where a first cause is
    compared with a column that it affects, its own information is the smaller one, so that positive parts of
    differences are zero in large tables. Sums are given up as those of `_ByKernel` are.
    """

    def __init__(self, d, complete):
        self.evaluations, self.complete = 0, complete
        self.differences = np.zeros((d, d))

    def __call__(self, rows, left, candidate, no_path):
        information = _KernelInformation(rows, no_path)
        among = np.ix_(left, left)
        excess = self.differences[among]  # of the round before, until a pair is compared
        # What has no path to a column says nothing against it.
        free = ~(no_path.T | np.eye(len(left), dtype=bool))
        compared = np.zeros_like(free)
        best, least = -1, np.inf
        candidates = np.flatnonzero(candidate)
        guesses = np.where(free, np.maximum(excess, 0.0), 0.0).sum(axis=1)
        for j in candidates[np.argsort(guesses[candidates], kind="stable")]:
            total = np.maximum(excess[j, compared[j] & free[j]], 0.0).sum()
            others = np.flatnonzero(free[j] & ~compared[j])
            for i in others[np.argsort(-excess[j, others], kind="stable")]:
                if total > least and not self.complete:
                    break
                excess[j, i] = information(j, i) - information(i, j)
                excess[i, j] = -excess[j, i]
                compared[j, i] = compared[i, j] = True
                self.evaluations += 1
                total += max(excess[j, i], 0.0)
            if total < least:
                best, least = int(j), total
        self.differences[among] = excess
        return best, float(least)
