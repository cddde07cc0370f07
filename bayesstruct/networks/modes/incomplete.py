r"""Best graph of a Bayesian network whose table has missing cells: variational structural EM.

Graph G and a law q of the missing cells are changed in turn so that

.. math::

    L(G, q) = \log p(G) + \sum_i s_i(\mathrm{pa}_i; q) + H(q) \le \log p(G, x_{\mathrm{obs}})

increases, :math:`s_i` being the BGe or BDeu score of the expected statistics under q
(:mod:`bayesstruct.networks.kernels.expected_scores`). The graph is searched as that of a complete table (Friedman 1998).
The best q given the graph is, row by row, proportional to the exponential of the expected log density under the
law of the parameters that the same statistics give: normal, or a table of the completions of a row (Beal and
Ghahramani 2006). The climb ends where no better graph is found: at a fixed point, one of several as a rule.

References
----------
Friedman, N. (1998). The Bayesian structural EM algorithm. *UAI* 14, 129-138.

Beal, M. J. and Ghahramani, Z. (2006). Variational Bayesian learning of directed graphical models with hidden
variables. *Bayesian Analysis* 1, 793-832.
"""

from itertools import product

import numpy as np

from scipy.special import digamma

from bayesstruct.core.modes import Mode, ModeSolver, register_mode
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.modes.complete import (
    NetworkMode,
    OrderPriorRefusal,
    ScoredNetworkMode,
    recognized_network,
)
from bayesstruct.networks.priors.discrete_network import expected_tables, table_counts
from bayesstruct.networks.solvers.parent_search import best_network, log_weight
from bayesstruct.networks.steps.incomplete import completed_rows, incomplete_network_of

__all__ = ["IncompleteNetworkMode", "incomplete_network_mode", "structural_em"]

_SEED = 20170
_CLIMBS = 5  # local searches for each variable
_COMPLETIONS = 2**12  # of one row
_EXPANDED = 2**20  # completions of all rows
_ROUNDS = 100  # graphs


@register_mode(after=(NetworkMode, ScoredNetworkMode, OrderPriorRefusal))
class IncompleteNetworkMode(ModeSolver):
    """Graph of a Bayesian network with missing values where structural EM ends.

    Graph and distribution of the missing values are climbed in turn on a lower bound of the log
    posterior probability of the graph (:mod:`bayesstruct.networks.modes.incomplete`); ``x_missing``
    are the most probable states, or the expected numbers. At most 4,096 completions, by states, of
    one row are gone through.
    """

    def recognise(self, model):
        """Return the network, or None."""
        return recognized_network(model, incomplete_network_of)

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Climb."""
        point, converged = incomplete_network_mode(model, part, tol, max_rounds)
        return Mode(point, converged, max_rounds, tol)


def incomplete_network_mode(model, part, tol=1e-9, max_rounds=500):
    """Graph, parameters and missing cells where structural EM ends.

    Parameters
    ----------
    model : pymc.Model
    part : bayesstruct.networks.steps.incomplete.IncompletePart
    tol : float
        Relative change of the bound at which the law of the cells counts as converged.
    max_rounds : int
        Bound on its updates given one graph.

    Returns
    -------
    point : dict
        Point of the model: the graph, the expected parameters given it, and the expected missing numbers or the most
        probable completion of the states of each row.
    converged : bool

    Raises
    ------
    ValueError
        If a row has more than 4,096 completions by states.
    """
    rows, op = completed_rows(model, part), part.dag.owner.op
    names = tuple(map(str, op.names))
    make = _Numbers if part.gaussian else _States
    end = structural_em(names, op.prior, lambda: make(rows), tol, max_rounds)
    cells, graph, _, converged = end
    point = dict(model.initial_point())
    point[part.dag.name] = graph
    point.update(cells.expected(graph))
    return point, converged


def structural_em(names, prior, make, tol=1e-9, max_rounds=500):
    """Climb from two graphs, the one without arcs and the best of the complete rows; keep the better end.

    Parameters
    ----------
    names : tuple of str
    prior : ParentPrior
    make : callable
        Makes the law of the missing cells anew: an object with ``score()``, ``entropy``, ``update(graph)``.
    tol, max_rounds
        As for `incomplete_network_mode`.

    Returns
    -------
    cells : object
        Law of the missing cells.
    graph : (d, d) int8 array
    bounds : list of float
        L after each update and each new graph; it never falls.
    converged : bool
    """
    starts = [np.asarray(prior.required, np.int8)]
    if (complete := make().complete_score()) is not None:
        starts.append(_search(NetworkProblem(names, complete, prior)))
    ends = [_climb(names, prior, make(), graph, tol, max_rounds) for graph in starts]
    return max(ends, key=lambda end: end[2][-1])


def _climb(names, prior, cells, graph, tol, max_rounds):
    """Update cells until nothing changes, look for a better graph, and so on."""
    bounds, converged = [], True
    for _ in range(_ROUNDS):
        converged = _settle(names, prior, cells, graph, bounds, tol, max_rounds)
        problem = NetworkProblem(names, cells.score(), prior)
        better = _search(problem)
        now, then = log_weight(problem, graph), log_weight(problem, better)
        if then <= now + 1e-9 * (1.0 + abs(now)):
            return cells, graph, bounds, converged
        graph = better
        bounds.append(then + cells.entropy)
    return cells, graph, bounds, False


def _settle(names, prior, cells, graph, bounds, tol, max_rounds):
    """Update the law of the cells given the graph until the bound stands still; whether it does."""
    last = -np.inf
    for _ in range(max_rounds):
        cells.update(graph)
        problem = NetworkProblem(names, cells.score(), prior)
        bound = log_weight(problem, graph) + cells.entropy
        bounds.append(bound)
        if bound - last <= tol * (1.0 + abs(bound)):
            return True
        last = bound
    return False


def _search(problem):
    return best_network(problem, np.random.default_rng(_SEED), climbs=_CLIMBS)


class _Numbers:
    """Normal law of the missing cells of each row."""

    def __init__(self, rows):
        self.rows, self.prior = rows, rows.prior
        self.mean, self.missing = rows.z.copy(), rows.mask.missing
        self.mean[self.missing] = 0.0
        d = self.mean.shape[1]
        self.covariance = np.where(self.missing[rows.gaps][:, :, None], np.eye(d), 0.0)
        self.entropy = 0.0

    def complete_score(self):
        """Scores of the complete rows, if there are any."""
        from bayesstruct.networks.kernels.scores import BGe

        complete = ~self.missing.any(axis=1)
        return BGe(self.mean[complete], **self._options(complete)) if complete.any() else None

    def _options(self, rows):
        prior = self.prior
        free = self.rows.free[rows]
        return {"interventions": ~free, "alpha_mu": prior.alpha_mu, "alpha_w": prior.alpha_w}

    def score(self):
        """Scores of the expected statistics."""
        from bayesstruct.networks.kernels.expected_scores import ExpectedBGe

        return ExpectedBGe(self.mean, self.covariance, self.rows.gaps, **self._options(slice(None)))

    def _moments(self):
        """Return expected sums over the rows."""
        from bayesstruct.networks.kernels.parameters import rows_times_rows

        rows = self.rows
        moments, group = rows_times_rows(self.mean, rows.free, rows.patterns)
        for products, kept in zip(moments, rows.patterns[0], strict=True):
            products[1:, 1:] += self.covariance[kept[rows.gaps]].sum(axis=0)
        return moments, group

    def update(self, graph):
        """Take the best law given graph and statistics."""
        from bayesstruct.networks.kernels.parameters import regression_laws

        rows, d = self.rows, len(graph)
        free, missing, z = rows.free[rows.gaps], self.missing[rows.gaps], self.mean[rows.gaps]
        precision, push = np.zeros((len(z), d, d)), np.zeros((len(z), d))
        laws = regression_laws(graph, *self._moments(), self.prior)
        for child, (parents, mean, inverse, shape, rate) in enumerate(laws):
            direction = np.zeros(d)
            direction[child], direction[parents] = 1.0, -mean[1:]
            own, pull = shape / rate * np.outer(direction, direction), np.zeros(d)
            own[np.ix_(parents, parents)] += inverse[1:, 1:]
            pull[parents] = inverse[1:, 0]
            precision += free[:, child, None, None] * own
            push += free[:, child, None] * (shape / rate * mean[0] * direction - pull)
        self._condition(precision, push, missing, z)

    def _condition(self, precision, push, missing, z):
        """Law of the missing cells of rows whose log density has these coefficients."""
        known = np.where(missing, 0.0, z)
        push = np.where(missing, push - (precision @ known[:, :, None])[:, :, 0], 0.0)
        both = missing[:, :, None] & missing[:, None, :]
        block = np.where(both, precision, np.eye(z.shape[1]))
        self.covariance = np.where(both, np.linalg.inv(block), 0.0)
        self.mean[self.rows.gaps] = np.where(
            missing, (self.covariance @ push[:, :, None])[:, :, 0], z
        )
        log_det = np.linalg.slogdet(block)[1].sum()
        self.entropy = 0.5 * (missing.sum() * (1.0 + np.log(2.0 * np.pi)) - log_det)

    def expected(self, graph):
        """Return expected parameters and cells, by the names of the variables."""
        rows = self.rows
        values = rows.location + rows.spread * self.mean
        cells = {rows.cells: values[self.missing]}
        return rows.regressions.expected(graph, self._moments()) | cells


class _States:
    """Probabilities of the completions of each row."""

    def __init__(self, rows):
        self.rows, self.missing = rows, rows.mask.missing
        self.table, self.owner = _completions(rows)
        self.free = rows.free[self.owner]
        self.weights = np.ones(len(self.owner))
        for j in np.flatnonzero(self.missing.any(axis=0)):
            seen = rows.x[~self.missing[:, j], j]
            share = (np.bincount(seen, minlength=rows.states[j]) + 1.0) / (
                len(seen) + rows.states[j]
            )
            self.weights *= np.where(self.missing[self.owner, j], share[self.table[:, j]], 1.0)
        self._set(np.log(self.weights))

    def _set(self, logs):
        """Take weights proportional to exponentials, summing to one over the completions of a row."""
        top = np.full(len(self.rows.x), -np.inf)
        np.maximum.at(top, self.owner, logs)
        weights = np.exp(logs - top[self.owner])
        self.weights = weights / np.bincount(self.owner, weights)[self.owner]
        seen = self.weights > 0
        self.entropy = -float(self.weights[seen] @ np.log(self.weights[seen]))

    def _score(self, table, weights, free):
        from bayesstruct.networks.kernels.expected_scores import ExpectedBDeu

        rows = self.rows
        return ExpectedBDeu(
            table, weights, states=rows.states, interventions=~free, ess=rows.sample_size,
            cells=rows.size,
        )  # fmt: skip

    def complete_score(self):
        """Scores of the complete rows, if there are any."""
        complete = ~self.missing.any(axis=1)
        x, free = self.rows.x[complete], self.rows.free[complete]
        return self._score(x, np.ones(len(x)), free) if len(x) else None

    def score(self):
        """Scores of the expected counts."""
        return self._score(self.table, self.weights, self.free)

    def _tables(self, graph):
        """Where each row is in the table of each child, and the parameters of its Dirichlet laws."""
        rows = self.rows
        kept = np.where(self.free.T, self.weights, 0.0)
        return table_counts(graph, self.table.T, kept, rows.states, rows.sample_size)

    def update(self, graph):
        """Take the best probabilities given graph and counts."""
        logs = np.zeros(len(self.owner))
        for child, (cell, counts) in enumerate(self._tables(graph)):
            expected = digamma(counts) - digamma(counts.sum(axis=1, keepdims=True))
            logs += np.where(self.free[:, child], expected.ravel()[cell], 0.0)
        self._set(logs)

    def expected(self, graph):
        """Return expected tables and the most probable completions, by the names of the variables."""
        rows = self.rows
        out = expected_tables((counts for _, counts in self._tables(graph)), rows.size)
        order = np.lexsort((self.weights, self.owner))
        last = order[np.append(self.owner[order][1:] != self.owner[order][:-1], True)]
        return {rows.name: out, rows.cells: self.table[last][self.missing]}


def _completions(rows):
    """Every completion of every row, row by row, and the row that it completes."""
    blocks, owner, total = [], [], 0
    for r, missing in enumerate(rows.mask.missing):
        at = np.flatnonzero(missing)
        count = float(np.prod(rows.states[at], dtype=float))
        total += count
        if count > _COMPLETIONS or total > _EXPANDED:
            raise ValueError(
                f"row {r} (counting from 0) has {len(at)} missing cells with {count:,.0f} completions, and "
                f"{total:,.0f} with the rows before it; find_MAP goes through at most {_COMPLETIONS:,} of a row and "
                f"{_EXPANDED:,} in all: leave out rows with many missing cells, or draw from the posterior with "
                "pm.sample, which has no such limit"
            )
        block = np.repeat(rows.x[r][None], int(count), axis=0)
        block[:, at] = list(product(*(range(k) for k in rows.states[at])))
        blocks.append(block)
        owner.append(np.full(len(block), r))
    return np.concatenate(blocks), np.concatenate(owner)
