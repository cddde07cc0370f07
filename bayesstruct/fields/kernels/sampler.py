"""Draws of rows of a pairwise Markov random field, by the best method for its size and signs."""

from functools import cached_property

import numpy as np

from bayesstruct.fields.kernels.exact_sums import ExactSums
from bayesstruct.fields.kernels.potentials import Potentials

__all__ = ["ENUMERATED", "PATIENCE", "Sampler"]

#: Number of joint states up to which rows are drawn from the table of all of them.
ENUMERATED = 2**16
#: Sweeps after which perfect sampling abandons a row.
PATIENCE = 2**12


class Sampler:
    """Draws of rows for given potentials; indices are computed once.

    Rows come from the table of all joint states up to `ENUMERATED` of them; beyond, by elimination,
    each variable given those that are summed out after it, if edges are given and few enough for
    :class:`bayesstruct.fields.kernels.exact_sums.ExactSums`; by coupling from the past if all variables have
    two states and attract each other; otherwise by Gibbs sampling from uniform states, one chain
    for each row.

    Parameters
    ----------
    potentials : Potentials
    sweeps : int
        Number of Gibbs sweeps.
    """

    _made: dict = {}

    def __init__(self, potentials: Potentials, sweeps: int):
        self.potentials, self.sweeps = potentials, sweeps
        self.states = np.array(potentials.states)

    @classmethod
    def of(cls, potentials, sweeps):
        """Return the sampler of these potentials; the last few are cached."""
        key = (potentials, sweeps)
        if key not in cls._made:
            cls._made.clear()  # draws of one model follow each other
            cls._made[key] = cls(potentials, sweeps)
        return cls._made[key]

    @cached_property
    def enumerable(self) -> bool:
        """Whether all joint states can be listed."""
        return float(np.prod(self.states, dtype=float)) <= ENUMERATED

    @cached_property
    def elimination(self) -> ExactSums | None:
        """Elimination along the edges, if these are few enough."""
        if self.potentials.edges is None:
            return None
        try:
            return ExactSums.of(self.potentials, ENUMERATED)
        except ValueError:
            return None

    @cached_property
    def transposed(self) -> np.ndarray:
        """Positions of the cells of the transposed pair tables in the pair tables."""
        i, j = self.potentials.ends
        rows, columns = self.states[i], self.states[j]
        start, size = self.potentials.pair_start, self.potentials.pair_start[-1]
        edge = np.repeat(np.arange(len(i)), rows * columns)
        inside = np.arange(size) - start[edge]
        return start[edge] + (inside % rows[edge]) * columns[edge] + inside // rows[edge]

    def __call__(self, rng, bias, weight, out):
        """Fill a table with rows.

        Parameters
        ----------
        rng : numpy.random.Generator
        bias, weight : float64 arrays
            Of the potentials.
        out : (n, p) int64 array
            Filled.

        Raises
        ------
        ValueError
            If a log-potential is not finite.
        """
        from bayesstruct.fields.kernels.states import draw_exact, draw_gibbs

        unary, pair = self.potentials.unary(bias), self.potentials.pair(weight)
        if not (np.isfinite(unary).all() and np.isfinite(pair).all()):
            raise ValueError("biases and weights of a Markov random field must be finite")
        if self.enumerable:
            draw_exact(rng, self.states, unary, self._of_all_pairs(pair), out)
            return
        if self.elimination is not None:
            self.elimination.draw(rng, unary, pair, out)
            return
        done = self._perfect(rng, unary, pair, out)
        if done == len(out):
            return
        rest = out[done:]
        rest[:] = rng.integers(0, self.states, size=rest.shape)
        start, other, at = self._neighbours(pair)
        table = np.concatenate([pair, pair[self.transposed]])
        draw_gibbs(
            rng,
            self.states,
            self.potentials.unary_start,
            unary,
            start,
            other,
            at,
            table,
            self.sweeps,
            rest,
        )

    def _of_all_pairs(self, pair):
        """Pair tables of all pairs, zero for those without an edge."""
        potentials = self.potentials
        if potentials.edges is None:
            return pair
        i, j = potentials.ends
        every = Potentials(potentials.kind, potentials.states, potentials.reference)
        edge = i * (2 * potentials.p - i - 1) // 2 + j - i - 1
        out = np.zeros(every.pair_start[-1])
        own = np.repeat(np.arange(len(i)), np.diff(potentials.pair_start))
        inside = np.arange(len(pair)) - potentials.pair_start[own]
        out[every.pair_start[edge[own]] + inside] = pair
        return out

    def _neighbours(self, pair):
        """Neighbours of each variable, and where the table with the own states as rows starts."""
        potentials = self.potentials
        start = potentials.pair_start[:-1]
        on = np.flatnonzero(np.logical_or.reduceat(pair != 0, start)) if len(start) else start
        i, j = (end[on] for end in potentials.ends)
        own, other = np.concatenate([i, j]), np.concatenate([j, i])
        at = np.concatenate([start[on], len(pair) + start[on]])
        order = np.argsort(own, kind="stable")
        counts = np.bincount(own, minlength=potentials.p)
        return np.concatenate([[0], np.cumsum(counts)]), other[order], at[order]

    def _perfect(self, rng, unary, pair, out) -> int:
        """Draw by coupling from the past if it applies; return the number of rows drawn."""
        from bayesstruct.fields.kernels.states import draw_perfect

        if set(self.potentials.states) != {2}:
            return 0
        t = pair.reshape(-1, 2, 2)
        coupling = t[:, 1, 1] - t[:, 1, 0] - t[:, 0, 1] + t[:, 0, 0]
        if (coupling < 0).any():
            return 0
        i, j = self.potentials.ends
        threshold = np.diff(unary.reshape(-1, 2), axis=1)[:, 0]
        np.add.at(threshold, i, t[:, 1, 0] - t[:, 0, 0])
        np.add.at(threshold, j, t[:, 0, 1] - t[:, 0, 0])
        start, other, at = self._neighbours(pair)
        return draw_perfect(
            rng, threshold, start, other, coupling[(at % max(len(pair), 1)) // 4], PATIENCE, out
        )
