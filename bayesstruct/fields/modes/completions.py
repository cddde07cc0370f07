r"""Expectation step for Markov random fields with missing values: completions of rows and their weights.

A row with missing values is replaced by all its completions c, with weights

.. math:: q_c = p(c \mid x_{\mathrm{obs}}, \theta)

in the field, whether its likelihood or its pseudo-likelihood is maximised: the scores of both have mean zero at
the true parameters, so that their expectation over completions has mean zero too.
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
        States; entries that are missing are ignored.
    missing : (n, p) array of bool
    potentials : Potentials

    Raises
    ------
    ValueError
        If there are too many completions.
    """

    def __init__(self, codes, missing, potentials):
        self.potentials = potentials
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

    def weights(self, bias: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weight of each row of `codes` at the parameters."""
        return np.concatenate([self.ones, self._shares(bias, weight)])

    def _shares(self, bias, weight):
        logs = self._energies(self.potentials.unary(bias), self.potentials.pair(weight))
        own = np.diff([*self.start, len(logs)])
        shares = np.exp(logs - np.repeat(np.maximum.reduceat(logs, self.start), own))
        return shares / np.repeat(np.add.reduceat(shares, self.start), own)

    def most_probable(self, bias: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Missing values in the most probable completion of each row, row by row."""
        shares = self._shares(bias, weight)
        ends = [*self.start[1:], len(shares)]
        best = [a + int(np.argmax(shares[a:b])) for a, b in zip(self.start, ends, strict=True)]
        gaps = self.missing[self.missing.any(axis=1)]
        return self.completed[best][gaps]

    def _energies(self, unary, pair):
        """Log probabilities of the completions, up to the partition function."""
        potentials, x, k = self.potentials, self.completed, self.potentials.states
        energy = unary[potentials.unary_start[:-1] + x].sum(axis=1)
        for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
            table = pair[potentials.pair_start[e] : potentials.pair_start[e + 1]]
            if table.any():
                energy += table.reshape(k[i], k[j])[x[:, i], x[:, j]]
        return energy


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
        f"row {worst} (counting from 0) has {int(missing[worst].sum())} missing values and "
        f"{sizes[worst]:,.0f} completions, all rows together {sizes[incomplete].sum():,.0f}; the mode "
        f"sums over all of them, at most {MOST_OF_A_ROW:,} of a row and {MOST:,} in all: drop the rows "
        f"with most gaps, for example data.dropna(thresh={_kept(potentials)}), or use "
        "pm.sample(), which imputes the values"
    )


def _kept(potentials) -> int:
    """Return the number of observed values that leaves rows with few completions."""
    widest = max(potentials.states)
    allowed = int(math.log(MOST_OF_A_ROW) / math.log(widest))
    return max(potentials.p - allowed, 1)
