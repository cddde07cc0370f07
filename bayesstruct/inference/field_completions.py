r"""Expectation step for random fields with missing cells: completions of rows and their weights.

A row with missing cells stands for all its completions c, with weights

.. math:: q_c \propto L(x_{\mathrm{obs}}, c \mid \theta),

L being the likelihood, or pseudo-likelihood, of a complete row.
"""

import math

import numpy as np

__all__ = ["Completions"]

MOST_OF_A_ROW, MOST = 2**12, 2**18


class Completions:
    """A table of states with each incomplete row replaced by its completions.

    Parameters
    ----------
    codes : (n, p) array of int
        States; what stands in missing cells is not looked at.
    missing : (n, p) array of bool
    potentials : Potentials
    likelihood : {"exact", "pseudo"}

    Raises
    ------
    ValueError
        If there are too many completions to go through.
    """

    def __init__(self, codes, missing, potentials, likelihood):
        self.potentials, self.likelihood = potentials, likelihood
        self.missing = np.asarray(missing, bool)
        _refuse_many(self.missing, potentials)
        gaps = self.missing.any(axis=1)
        complete = np.asarray(codes)[~gaps]
        parts = [
            _completed(codes[r], self.missing[r], potentials.states) for r in np.flatnonzero(gaps)
        ]
        #: First completion of each incomplete row, counted without the complete rows.
        self.start = np.cumsum([0, *map(len, parts[:-1])]) if parts else np.empty(0, int)
        self.completed = np.concatenate(parts) if parts else np.empty((0, potentials.p), int)
        self.codes = np.concatenate([complete, self.completed])
        self.ones = np.ones(len(complete))

    def weights(self, bias, weight) -> np.ndarray:
        """How much each row of `codes` counts at the parameters."""
        return np.concatenate([self.ones, self._shares(bias, weight)])

    def _shares(self, bias, weight):
        logs = self._log_likelihoods(self.potentials.unary(bias), self.potentials.pair(weight))
        own = np.diff([*self.start, len(logs)])
        shares = np.exp(logs - np.repeat(np.maximum.reduceat(logs, self.start), own))
        return shares / np.repeat(np.add.reduceat(shares, self.start), own)

    def most_probable(self, bias, weight) -> np.ndarray:
        """States of the missing cells in the most probable completion of each row, row by row."""
        shares = self._shares(bias, weight)
        ends = [*self.start[1:], len(shares)]
        best = [a + int(np.argmax(shares[a:b])) for a, b in zip(self.start, ends, strict=True)]
        gaps = self.missing[self.missing.any(axis=1)]
        return self.completed[best][gaps]

    def _log_likelihoods(self, unary, pair):
        """Of the completions, up to the partition function."""
        potentials, x, k = self.potentials, self.completed, self.potentials.states
        start, rows = potentials.unary_start, np.arange(len(self.completed))
        logits = np.tile(unary, (len(x), 1))
        energy = unary[start[:-1] + x].sum(axis=1)
        for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
            table = pair[potentials.pair_start[e] : potentials.pair_start[e + 1]]
            if not table.any():
                continue
            table = table.reshape(k[i], k[j])
            energy += table[x[:, i], x[:, j]]
            logits[:, start[i] : start[i + 1]] += table[:, x[:, j]].T
            logits[:, start[j] : start[j + 1]] += table[x[:, i]]
        if self.likelihood == "exact":
            return energy
        total = np.zeros(len(x))
        for i in range(potentials.p):
            own = logits[:, start[i] : start[i + 1]]
            total += own[rows, x[:, i]] - np.logaddexp.reduce(own, axis=1)
        return total


def _completed(row, gaps, states):
    """All completions of a row."""
    columns = np.flatnonzero(gaps)
    grid = np.indices([states[j] for j in columns]).reshape(len(columns), -1).T
    out = np.tile(np.asarray(row, np.int64), (len(grid), 1))
    out[:, columns] = grid
    return out


def _refuse_many(missing, potentials):
    states = np.asarray(potentials.states, float)
    sizes = np.where(missing, states, 1.0).prod(axis=1)
    incomplete = missing.any(axis=1)
    if (sizes <= MOST_OF_A_ROW).all() and sizes[incomplete].sum() <= MOST:
        return
    worst = int(np.argmax(sizes))
    raise ValueError(
        f"row {worst} (counting from 0) has {int(missing[worst].sum())} missing cells and "
        f"{sizes[worst]:,.0f} completions, all rows together {sizes[incomplete].sum():,.0f}; the mode "
        f"goes through all of them, at most {MOST_OF_A_ROW:,} of a row and {MOST:,} in all: drop the rows "
        f"with most gaps, for example data.dropna(thresh={_kept(missing, potentials)}), or use "
        "pm.sample(), which imputes the cells"
    )


def _kept(missing, potentials) -> int:
    """Return the number of observed cells that leaves rows with few completions."""
    widest = max(potentials.states)
    allowed = int(math.log(MOST_OF_A_ROW) / math.log(widest))
    return max(potentials.p - allowed, 1)
