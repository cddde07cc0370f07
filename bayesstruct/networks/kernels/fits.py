r"""Parameters of greatest likelihood of Bayesian networks given their graph, those of the BIC.

Each object holds a table and the score whose likelihood it attains (:mod:`bayesstruct.networks.kernels.scores`).
For a graph it returns the fitted parameters, and the *price*, minus half of their number times the log of
the number of rows: log likelihood and price add up to the score. Fits of a family are kept, since chains come back to it.
"""

import math

import numpy as np

from bayesstruct.networks.kernels.scores.discrete import MultinomialBIC
from bayesstruct.networks.kernels.scores.gaussian import GaussianBIC
from bayesstruct.networks.kernels.scores.logistic import LogisticBIC

__all__ = ["GaussianFit", "LogisticFit", "MultinomialFit"]

_PROMISE, _STEPS, _RIDGE = 1e-9, 100, 1e-11


class _Fit:
    """Fits of all families of a graph; made and kept one by one."""

    def __init__(self, score, free):
        self.score, self.free, self.d = score, free, score.d
        self.known = {}

    @property
    def shapes(self):
        """Shapes of the arrays that `compute` returns, one after the other."""
        raise NotImplementedError

    def family(self, child, parents):
        """Return the fit of a family, kept if it is known."""
        key = child, tuple(parents.tolist())
        if key not in self.known:
            if len(self.known) > 100_000:
                self.known.clear()
            finite = np.isfinite(self.score.local(*key))
            rows = self.free[:, child]
            estimate = self._fit(child, parents, rows)
            price = -0.5 * self._parameters(child, parents) * math.log(max(rows.sum(), 1))
            self.known[key] = estimate, price if finite else -np.inf
        return self.known[key]

    def families(self, graph):
        """Child, parents, estimate and price of each family."""
        for child in range(self.d):
            parents = np.flatnonzero(graph[:, child])
            yield child, parents, *self.family(child, parents)


class GaussianFit(_Fit):
    """Linear regressions with normal noise, of standardised columns.

    Parameters
    ----------
    z : (n, d) float array
    free : (n, d) bool array
        False where a variable was set from outside.
    """

    def __init__(self, z, free):
        self.z = np.asarray(z, float)
        super().__init__(GaussianBIC(self.z, interventions=~free), free)

    @property
    def shapes(self):
        """Intercepts, coefficients (rows are children), variances, price."""
        return [(self.d,), (self.d, self.d), (self.d,), ()]

    def _parameters(self, child, parents):
        return len(parents) + 2 if self.free[:, child].any() else 0

    def _fit(self, child, parents, rows):
        if not rows.any():  # set in every row: any estimate does
            return np.zeros(1 + len(parents)), 1.0
        y = self.z[rows, child]
        design = np.column_stack([np.ones(len(y)), self.z[np.ix_(rows, parents)]])
        mean, *_ = np.linalg.lstsq(design, y, rcond=None)
        return mean, max(np.mean((y - design @ mean) ** 2), np.finfo(float).tiny)

    def compute(self, graph):
        """Return intercepts, coefficients, variances and price of a graph."""
        intercept, matrix, variance = np.zeros(self.d), np.zeros((self.d, self.d)), np.ones(self.d)
        total = 0.0
        for child, parents, (mean, noise), price in self.families(graph):
            intercept[child], matrix[child, parents], variance[child] = mean[0], mean[1:], noise
            total += price
        return intercept, matrix, variance, np.array(total)


class _Tables(_Fit):
    """Fits that are tables of conditional probabilities."""

    def __init__(self, score, x, states, free, cells):
        self.x, self.states, self.cells = x, np.asarray(states, np.int64), int(cells)
        super().__init__(score, free)

    def configurations(self, parents):
        """States of the parents in each configuration, (q, parents), the first changing fastest."""
        if not len(parents):
            return np.zeros((1, 0), np.int64)
        grids = np.meshgrid(*(np.arange(self.states[j]) for j in parents), indexing="ij")
        return np.array([g.ravel(order="F") for g in grids], np.int64).T

    def tables(self, graph):
        """Return the tables of a graph, (d, cells), the price, and the estimates they were made of."""
        out, total, estimates = np.zeros((self.d, self.cells)), 0.0, []
        for child, _, (table, estimate), price in self.families(graph):
            if table.size > self.cells:  # as for a graph that is not possible
                return out, np.array(-np.inf), None
            out[child, : table.size] = table.ravel()
            total += price
            estimates.append(estimate)
        return out, np.array(total), estimates


class MultinomialFit(_Tables):
    """Tables of relative frequencies; uniform in configurations that do not occur.

    Parameters
    ----------
    x : (n, d) int array
        States 0, 1, ....
    states : (d,) sequence of int
    free : (n, d) bool array
        False where a variable was set from outside.
    cells : int
        Maximum number of cells of a table.
    """

    def __init__(self, x, states, free, cells):
        score = MultinomialBIC(x, states=states, interventions=~free)
        super().__init__(score, x, states, free, cells)

    @property
    def shapes(self):
        """Tables and price."""
        return [(self.d, self.cells), ()]

    def _parameters(self, child, parents):
        if not self.free[:, child].any():
            return 0
        return float(np.prod(self.states[parents], dtype=float)) * (self.states[child] - 1)

    def _fit(self, child, parents, rows):
        k, q = self.states[child], int(np.prod(self.states[parents]))
        if q * k > self.cells:
            return np.zeros(self.cells + 1), None
        code = np.zeros(rows.sum(), np.int64)
        for j in parents[::-1]:
            code = code * self.states[j] + self.x[rows, j]
        counts = np.bincount(code * k + self.x[rows, child], minlength=q * k).reshape(q, k)
        total = counts.sum(axis=1, keepdims=True)
        return np.where(total > 0, counts / np.maximum(total, 1), 1.0 / k), None

    def compute(self, graph):
        """Return tables and price of a graph."""
        return self.tables(graph)[:2]


class LogisticFit(_Tables):
    """Logistic regressions of variables with two states, written as tables.

    Parameters
    ----------
    x : (n, d) int array
        States 0 and 1.
    free : (n, d) bool array
        False where a variable was set from outside.
    cells : int
        Maximum number of cells of a table.
    """

    def __init__(self, x, free, cells):
        score = LogisticBIC(x, interventions=~free)
        super().__init__(score, x, np.full(x.shape[1], 2), free, cells)

    @property
    def shapes(self):
        """Tables, coefficients (rows are children), price."""
        return [(self.d, self.cells), (self.d, self.d), ()]

    def _parameters(self, child, parents):
        return len(parents) + 1 if self.free[:, child].any() else 0

    def _fit(self, child, parents, rows):
        beta = np.zeros(1 + len(parents))
        if 2 ** len(beta) > self.cells:
            return np.zeros(self.cells + 1), beta
        if rows.any():
            x = self.x[rows]
            beta = _logistic(x[:, parents].astype(float), x[:, child].astype(float))
        eta = beta[0] + self.configurations(parents) @ beta[1:]
        share = 0.5 * (1.0 + np.tanh(0.5 * eta))
        return np.column_stack([0.5 * (1.0 - np.tanh(0.5 * eta)), share]), beta

    def compute(self, graph):
        """Return tables, log odds ratios and price of a graph."""
        tables, price, estimates = self.tables(graph)
        matrix = np.zeros((self.d, self.d))
        for child, beta in enumerate(estimates or ()):
            matrix[child, np.flatnonzero(graph[:, child])] = beta[1:]
        return tables, matrix, price


def _logistic(x, y):
    """Coefficients of a logistic regression by Newton steps, which end when they promise nothing."""
    design = np.column_stack([np.ones(len(y)), x])
    beta = np.zeros(design.shape[1])
    value = _log_likelihood(design, y, beta)
    for _ in range(_STEPS):
        share = 0.5 * (1.0 + np.tanh(0.5 * (design @ beta)))
        gradient = design.T @ (y - share)
        hessian = (design * (share * (1.0 - share))[:, None]).T @ design
        hessian[np.diag_indices_from(hessian)] += _RIDGE * len(y)
        step = np.linalg.solve(hessian, gradient)
        promise, length = gradient @ step, 1.0
        if not promise > _PROMISE:
            break
        while length > 1e-6:
            reached = _log_likelihood(design, y, beta + length * step)
            if reached >= value + 1e-4 * length * promise:
                break
            length *= 0.5
        else:
            break
        beta, value = beta + length * step, reached
    return beta


def _log_likelihood(design, y, beta):
    eta = design @ beta
    return float(y @ eta - np.logaddexp(0.0, eta).sum())
