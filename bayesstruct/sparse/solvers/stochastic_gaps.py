"""Certified gaps of approximate modes under Laplace priors."""

import numpy as np

from bayesstruct.sparse.solvers.proximal_newton import Certifier, l1_problem
from bayesstruct.sparse.solvers.sparse import SparseSolution

__all__ = ["Judge"]

_MAX_NEWTON = 20


class Judge:
    """Certified gaps of anyone's coefficients under an l1 penalty.

    The bound holds for any coefficients; it is tight only near the mode, so that an answer within a
    per cent of the optimum may come with a gap of ten.
    """

    def __init__(self, design, loss, penalty):
        if loss.shape != (design.n,):
            raise ValueError(f"`X` has {design.n} rows, `y` has shape {loss.shape}")
        self.p, self.rate = design.p - design.intercept, penalty.rate
        self.problem = l1_problem(design, loss, penalty)
        self.certifier = Certifier(self.problem)
        free = np.flatnonzero(self.problem.free)
        block = design.columns(free) if len(free) else None
        self.free = block.toarray() if hasattr(block, "toarray") else block

    def gap(self, w):
        """Bound on the distance to the minimal objective."""
        return self._look(w)[1]

    def solution(self, w, iterations, method, tol):
        """Report with an honest gap."""
        objective, gap, gradient = self._look(w)
        return SparseSolution(
            objective=objective,
            gap=gap,
            iterations=iterations,
            converged=tol is not None and bool(gap <= tol * self.certifier.null_objective),
            coefficients=w[: self.p].copy(),
            intercept=float(w[self.p]) if self.problem.design.intercept else 0.0,
            rate=self.rate,
            method=method,
            gradient=gradient[: self.p],
        )

    def _look(self, w):
        design, loss = self.problem.design, self.problem.loss
        z = design.dot(w)
        derivative = loss.derivative(z)
        gradient = design.tdot(derivative)
        objective = loss.value(z) + self.problem.penalty(w)
        gap = self.certifier.gap(self.problem, w, objective, derivative, gradient)
        if self.free is not None and not loss.quadratic:
            # Far from its optimum, minus the derivative leaves the dual function's domain when made
            # orthogonal to the free columns; that of a predictor optimal along them stays inside.
            other = loss.derivative(self._refitted(z))
            other = self.certifier.gap(self.problem, w, objective, other, design.tdot(other))
            gap = min(gap, other)
        return objective, gap, gradient

    def _refitted(self, z):
        """Linear predictor with the best coefficients of the free columns, by Newton's method."""
        loss, F = self.problem.loss, self.free
        value = loss.value(z)
        for _ in range(_MAX_NEWTON):
            derivative, curvature = loss.derivative(z), loss.curvature(z)
            slope = F.T @ derivative
            if np.abs(slope).max() <= 1e-12 * np.abs(derivative).sum():
                break
            move = F @ np.linalg.lstsq(F.T @ (curvature[:, None] * F), -slope, rcond=None)[0]
            t = 1.0
            while (new := loss.value(z + t * move)) > value and t > 1e-6:
                t *= 0.5
            if new > value:
                break
            z, value = z + t * move, new
        return z
