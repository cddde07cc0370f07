"""Distributions of the missing values of a network's table that structural EM updates."""

from itertools import product

import numpy as np

from scipy.special import digamma

from bayesstruct.networks.priors.discrete_network import expected_tables, table_counts

__all__ = ["NormalCompletions", "StateCompletions"]

_COMPLETIONS = 2**12  # of one row
_EXPANDED = 2**20  # completions of all rows


class NormalCompletions:
    """Normal distribution of the missing values of each row.

    Parameters
    ----------
    rows : CompletedNumbers
    """

    def __init__(self, rows):
        self.rows, self.prior = rows, rows.prior
        self.mean, self.missing = rows.z.copy(), rows.mask.missing
        self.mean[self.missing] = 0.0
        d = self.mean.shape[1]
        self.covariance = np.where(self.missing[rows.gaps][:, :, None], np.eye(d), 0.0)
        self.entropy = 0.0

    def complete_score(self):
        """Scores of the complete rows, if there are any."""
        from bayesstruct.networks.kernels.scores.gaussian import BGe

        complete = ~self.missing.any(axis=1)
        return BGe(self.mean[complete], **self._options(complete)) if complete.any() else None

    def _options(self, rows):
        prior = self.prior
        free = self.rows.free[rows]
        return {"interventions": ~free, "alpha_mu": prior.alpha_mu, "alpha_w": prior.alpha_w}

    def score(self):
        """Scores of the expected statistics."""
        from bayesstruct.networks.kernels.scores.expected import ExpectedBGe

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
        """Take the best distribution given graph and statistics."""
        from bayesstruct.networks.kernels.parameters import regression_distributions

        rows, d = self.rows, len(graph)
        free, missing, z = rows.free[rows.gaps], self.missing[rows.gaps], self.mean[rows.gaps]
        precision, push = np.zeros((len(z), d, d)), np.zeros((len(z), d))
        regressions = regression_distributions(graph, *self._moments(), self.prior)
        for child, (parents, mean, inverse, shape, rate) in enumerate(regressions):
            direction = np.zeros(d)
            direction[child], direction[parents] = 1.0, -mean[1:]
            own, pull = shape / rate * np.outer(direction, direction), np.zeros(d)
            own[np.ix_(parents, parents)] += inverse[1:, 1:]
            pull[parents] = inverse[1:, 0]
            precision += free[:, child, None, None] * own
            push += free[:, child, None] * (shape / rate * mean[0] * direction - pull)
        self._condition(precision, push, missing, z)

    def _condition(self, precision, push, missing, z):
        """Take the distribution of the missing values of rows whose log density has these coefficients."""
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
        """Return expected parameters and missing values, by the names of the variables."""
        rows = self.rows
        values = rows.location + rows.spread * self.mean
        missing = {rows.missing: values[self.missing]}
        return rows.regressions.expected(graph, self._moments()) | missing


class StateCompletions:
    """Probabilities of the completions of each row.

    Parameters
    ----------
    rows : CompletedStates
    """

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
        from bayesstruct.networks.kernels.scores.expected import ExpectedBDeu

        rows = self.rows
        return ExpectedBDeu(
            table,
            weights,
            states=rows.states,
            interventions=~free,
            equivalent_sample_size=rows.sample_size,
            cells=rows.cells,
        )

    def complete_score(self):
        """Scores of the complete rows, if there are any."""
        complete = ~self.missing.any(axis=1)
        x, free = self.rows.x[complete], self.rows.free[complete]
        return self._score(x, np.ones(len(x)), free) if len(x) else None

    def score(self):
        """Scores of the expected counts."""
        return self._score(self.table, self.weights, self.free)

    def _tables(self, graph):
        """Where each row is in the table of each child, and the parameters of its Dirichlet distributions."""
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
        out = expected_tables((counts for _, counts in self._tables(graph)), rows.cells)
        order = np.lexsort((self.weights, self.owner))
        last = order[np.append(self.owner[order][1:] != self.owner[order][:-1], True)]
        return {rows.name: out, rows.missing: self.table[last][self.missing]}


def _completions(rows):
    """Every completion of every row, row by row, and the row that it completes."""
    blocks, owner, total = [], [], 0
    for r, missing in enumerate(rows.mask.missing):
        at = np.flatnonzero(missing)
        count = float(np.prod(rows.states[at], dtype=float))
        total += count
        if count > _COMPLETIONS or total > _EXPANDED:
            raise ValueError(
                f"row {r} (counting from 0) has {len(at)} missing values with {count:,.0f} completions, and "
                f"{total:,.0f} with the rows before it; find_MAP goes through at most {_COMPLETIONS:,} of a row and "
                f"{_EXPANDED:,} in all: leave out rows with many missing values, or draw from the posterior with "
                "pm.sample, which has no such limit"
            )
        block = np.repeat(rows.x[r][None], int(count), axis=0)
        block[:, at] = list(product(*(range(k) for k in rows.states[at])))
        blocks.append(block)
        owner.append(np.full(len(block), r))
    return np.concatenate(blocks), np.concatenate(owner)
