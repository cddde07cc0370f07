r"""Euclidean norms of groups as a penalty for proximal Newton steps.

.. math:: \min_w \; L(X w) + \sum_g \lambda_g \|w_g\|
"""

from dataclasses import dataclass

import numpy as np

from bayesstruct.sparse.penalties.group import Group
from bayesstruct.sparse.solvers.designs import Design
from bayesstruct.sparse.solvers.losses import Loss
from bayesstruct.sparse.solvers.proximal_newton import NEAR, coefficients_of, nearest_to_entering

__all__ = ["GroupProblem", "group_problem"]

_PASSES = 10
_MAX_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class GroupProblem:
    """Loss, columns, groups and rates; the counterpart of `proximal_newton.Problem`.

    Attributes
    ----------
    design : Design
        Columns; the last one is the intercept if there is one.
    loss : Loss
        Loss of the linear predictor.
    order : (p,) numpy.ndarray of int
        All coefficients, those of a group next to each other.
    start : (groups + 1,) numpy.ndarray of int
        Group g is ``order[start[g]:start[g + 1]]``.
    rate : (groups,) numpy.ndarray
        Rate of each group; zero leaves it unpenalised.
    """

    design: Design
    loss: Loss
    order: np.ndarray
    start: np.ndarray
    rate: np.ndarray

    @property
    def free(self) -> np.ndarray:
        """Unpenalised coefficients."""
        free = np.empty(len(self.order), dtype=bool)
        free[self.order] = np.repeat(self.rate == 0, np.diff(self.start))
        return free

    def penalty(self, w: np.ndarray) -> float:
        """Sum of rates times norms."""
        return float(self.rate @ self._norms(w))

    def restricted(self, index: np.ndarray) -> "GroupProblem":
        """Return the penalty of some groups, whose coefficients are ``index``, as one block."""
        group = np.empty(len(self.order), dtype=int)
        group[self.order] = np.repeat(np.arange(len(self.rate)), np.diff(self.start))
        kept, sizes = np.unique(group[index], return_counts=True)
        # `index` lists groups in rising order, see `working_set`.
        start = np.concatenate([[0], np.cumsum(sizes)])
        return GroupProblem(self.design, self.loss, np.arange(len(index)), start, self.rate[kept])

    def dual_ratio(self, products: np.ndarray) -> float:
        """Largest ratio of products of columns with a dual point to their bounds; feasible up to 1."""
        bound = self.rate > 0
        return (self._norms(products)[bound] / self.rate[bound]).max(initial=0.0)

    def residual(self, v: np.ndarray, u: np.ndarray) -> float:
        """Largest distance of minus a group's gradient to its subdifferential."""
        size = self._norms(v)
        inside = size > 0
        pull = np.divide(self.rate, size, out=np.zeros(len(size)), where=inside)
        toward = u[self.order] + np.repeat(pull, np.diff(self.start)) * v[self.order]
        off = np.sqrt(np.add.reduceat(toward**2, self.start[:-1]))
        return np.where(inside, off, np.maximum(off - self.rate, 0.0)).max(initial=0.0)

    def working_set(
        self, w: np.ndarray, gradient: np.ndarray, size: int, near: float = NEAR
    ) -> np.ndarray:
        """Coefficients of the groups in the model, the free ones, and those nearest to entering."""
        norms = self._norms(gradient)
        full = np.full(len(norms), np.inf)
        ratio = np.divide(norms, self.rate, out=full, where=self.rate > 0)
        ratio[self._norms(w) > 0] = np.inf
        count = max(int(size * len(self.rate) / len(self.order)), 16)
        groups = np.sort(nearest_to_entering(ratio, count, near))
        parts = [self.order[self.start[g] : self.start[g + 1]] for g in groups]
        return np.concatenate(parts) if parts else np.empty(0, dtype=int)

    def minimise(self, model, w: np.ndarray, tol: float) -> np.ndarray:
        """Minimise a quadratic model plus the penalty, from ``w``.

        Passes of block coordinate descent find the groups; Newton steps on them finish.
        """
        from bayesstruct.sparse.kernels.quadratic_groups import sweep_groups

        v = w.copy()
        for _ in range(_MAX_ROUNDS):
            sweep_groups(model.Q, v, model.u, self.start, self.rate, _PASSES, tol)
            if self.residual(v, model.u) <= tol:
                break
            self._newton(model, v)
            if self.residual(v, model.u) <= tol:
                break
        return v

    def _newton(self, model, v):
        """One Newton step on the non-zero groups, where the norms are smooth, in place."""
        size = self._norms(v)
        inside = (size > 0) | (self.rate == 0)
        S = np.flatnonzero(np.repeat(inside, np.diff(self.start)))
        if not len(S):
            return
        bend = np.zeros((len(S), len(S)))
        slope = model.u[S].copy()
        at = 0
        for g in np.flatnonzero(inside):
            k = self.start[g + 1] - self.start[g]
            if self.rate[g] > 0:
                e = v[self.start[g] : self.start[g + 1]] / size[g]
                slope[at : at + k] += self.rate[g] * e
                bend[at : at + k, at : at + k] = (
                    self.rate[g] / size[g] * (np.eye(k) - np.outer(e, e))
                )
            at += k
        step, product = model.newton(S, slope, bend)
        before = self.penalty(v)
        for t in (1.0, 0.5, 0.25, 0.1, 0.01):
            new = v.copy()
            new[S] += t * step
            move = t * step
            change = model.u[S] @ move + 0.5 * move @ product(move) + self.penalty(new) - before
            if change < 0.0:
                v[:] = new
                model.move(S, move)
                return

    def _norms(self, x):
        return np.sqrt(np.add.reduceat(x[self.order] ** 2, self.start[:-1]))


def group_problem(design: Design, loss: Loss, penalty: Group) -> GroupProblem:
    """Return the problem of a group penalty, with groups of rate zero for unpenalised coefficients."""
    coefficients_of(design, penalty)
    groups = penalty.groups
    free = np.setdiff1d(np.arange(design.p), groups.order)
    order = np.concatenate([groups.order, free]).astype(int)
    ends = groups.start[1:].tolist() + list(range(len(groups.order) + 1, design.p + 1))
    rate = np.concatenate([penalty.rate * penalty.weights, np.zeros(len(free))])
    return GroupProblem(design, loss, order, np.array([0, *ends]), rate)
