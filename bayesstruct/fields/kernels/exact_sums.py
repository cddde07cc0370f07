"""One interface to the exact sums over the joint states of a pairwise Markov random field.

The sum enumerates all joint states (:mod:`bayesstruct.fields.kernels.exact`), or variables are summed
out one by one along the edges (:mod:`bayesstruct.fields.kernels.elimination`), whichever costs less.
"""

import math

from functools import cached_property, lru_cache

import numpy as np

from bayesstruct.fields.kernels.elimination_order import elimination_order

__all__ = ["MAX_CELLS", "MAX_STATES", "ExactSums"]

#: Largest number of joint states that is enumerated; about a second for each call.
MAX_STATES = 2**24
#: Largest total number of cells of the tables of an elimination; about half a second for each call.
MAX_CELLS = 2**22
_CELL = 3.5  # a cell takes the time of this many joint states, see benchmarks/pairwise_modes.py


class ExactSums:
    """Partition function, marginals, covariances and draws for given states and edges.

    Parameters
    ----------
    states : tuple of int
        Number of states of each variable.
    edges : tuple of pairs of int, optional
        The pairs i < j that have tables; all pairs, row by row, by default.
    max_states : int
        Largest number of joint states that is enumerated.

    Raises
    ------
    ValueError
        If both methods take too long; gives the sizes and the remedy.
    """

    def __init__(self, states, edges=None, max_states=MAX_STATES):
        self.states, self.edges = tuple(map(int, states)), edges
        self.joint_states = math.prod(self.states)
        self.order = None
        if edges is not None:
            order = elimination_order(self.states, edges, MAX_CELLS)
            cheaper = _CELL * order.cells < self.joint_states
            if order.complete and (cheaper or self.joint_states > max_states):
                self.order = order
        if self.order is None and self.joint_states > max_states:
            raise ValueError(_too_large(self, None if edges is None else order, max_states))

    @classmethod
    def of(cls, potentials, max_states=MAX_STATES) -> "ExactSums":
        """Return the sums for potentials; those of the last few potentials are cached.

        Parameters
        ----------
        potentials : bayesstruct.fields.kernels.potentials.Potentials
        max_states : int
        """
        return _made(potentials.states, potentials.edges, max_states)

    @property
    def eliminates(self) -> bool:
        """Whether variables are summed out one by one."""
        return self.order is not None

    @cached_property
    def ends(self):
        """Variables i < j of each edge."""
        return tuple(np.array(self.edges, np.int64).reshape(-1, 2).T.copy())

    @cached_property
    def plan(self):
        """Lay out the elimination."""
        from bayesstruct.fields.kernels.elimination import make_plan

        return make_plan(self.states, self.ends, self.order)

    @cached_property
    def _among_all(self):
        """Positions of the cells of the pair tables in those of all pairs, and the number of cells of these."""
        k, p = np.array(self.states), len(self.states)
        i, j = np.triu_indices(p, 1)
        start = np.concatenate([[0], np.cumsum(k[i] * k[j])])
        i, j = self.ends
        edge = i * (2 * p - i - 1) // 2 + j - i - 1
        sizes = k[i] * k[j]
        inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(start[edge], sizes) + inside, int(start[-1])

    def _spread(self, pair):
        """Pair tables of all pairs, zero for those without an edge."""
        if self.edges is None:
            return np.ascontiguousarray(pair)
        at, size = self._among_all
        out = np.zeros(size)
        out[at] = pair
        return out

    def log_partition(self, unary, pair) -> float:
        """Logarithm of the sum over all joint states.

        Parameters
        ----------
        unary, pair : float64 arrays
            Tables of log-potentials, flat.
        """
        from bayesstruct.fields.kernels import elimination, exact

        if self.eliminates:
            return elimination.log_partition(self.plan, *_contiguous(unary, pair))
        return exact.log_partition(np.array(self.states), unary, self._spread(pair))

    def marginals(self, unary, pair):
        """Log partition function, and its gradient: the probabilities of states and pairs of states.

        Returns
        -------
        log_z : float
        of_unary, of_pair : numpy.ndarray
            In the layout of the tables.
        """
        from bayesstruct.fields.kernels import elimination, exact

        unary, pair = _contiguous(unary, pair)
        out = np.empty_like(unary), np.empty_like(pair)
        if self.eliminates:
            return elimination.marginals(self.plan, unary, pair, *out), *out
        every = self._spread(pair)
        of_unary, of_every = np.empty_like(unary), np.empty_like(every)
        log_z = exact.marginals(np.array(self.states), unary, every, of_unary, of_every)
        return log_z, of_unary, self._own(of_every)

    def covariance_product(self, unary, pair, d_unary, d_pair):
        """Differentiate the marginals in a direction of the tables.

        Returns
        -------
        of_unary, of_pair : numpy.ndarray
        """
        from bayesstruct.fields.kernels import elimination, exact

        unary, pair, d_unary, d_pair = _contiguous(unary, pair, d_unary, d_pair)
        if self.eliminates:
            out = np.empty_like(unary), np.empty_like(pair)
            elimination.covariance_product(self.plan, unary, pair, d_unary, d_pair, *out)
            return out
        every, d_every = self._spread(pair), self._spread(d_pair)
        of_unary, of_every = np.empty_like(unary), np.empty_like(every)
        exact.covariance_product(
            np.array(self.states), unary, every, d_unary, d_every, of_unary, of_every
        )
        return of_unary, self._own(of_every)

    def _own(self, every):
        return every if self.edges is None else every[self._among_all[0]]

    def joint(self, unary, pair) -> np.ndarray:
        """Probability of every joint state, in C order (the first variable moves slowest)."""
        from bayesstruct.fields.kernels import exact

        return exact.joint(np.array(self.states), unary, self._spread(pair))

    def draw(self, rng, unary, pair, out) -> None:
        """Draw independent rows.

        Parameters
        ----------
        rng : numpy.random.Generator
        unary, pair
            As in `log_partition`.
        out : (n, p) int64 array
            Filled.
        """
        from bayesstruct.fields.kernels import elimination
        from bayesstruct.fields.kernels.states import draw_exact

        unary, pair = _contiguous(unary, pair)
        if self.eliminates:
            elimination.draw(rng, self.plan, unary, pair, out)
        else:
            draw_exact(rng, np.array(self.states), unary, self._spread(pair), out)


@lru_cache(maxsize=8)
def _made(states, edges, max_states):
    return ExactSums(states, edges, max_states)


def _contiguous(*arrays):
    return tuple(np.ascontiguousarray(v, np.float64) for v in arrays)


def _too_large(sums, order, max_states) -> str:
    count = f"{len(sums.states)} variables have {float(sums.joint_states):.3g} joint states"
    if order is None:
        return (
            f"{count}, and the exact likelihood sums over all of them (at most {max_states:,}); use the "
            'pseudo-likelihood (likelihood="pseudo"), fewer variables, or a graph with few cycles if '
            "one is known, along which they are summed out one by one"
        )
    return (
        f"{count} (at most {max_states:,}), and summing them out one by one along the edges takes "
        f"tables of {order.cells:,.3g} cells or more (at most {MAX_CELLS:,}), {order.width + 1} "
        "variables at once, in every order tried; use the pseudo-likelihood "
        '(likelihood="pseudo"), or a graph with fewer cycles'
    )
