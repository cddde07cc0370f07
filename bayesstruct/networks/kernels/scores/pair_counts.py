"""Counts of pairs of states of all pairs of columns by products of matrices, and Dirichlet marginal likelihoods from them."""

from collections.abc import Iterator

import numpy as np

from scipy.special import gammaln

__all__ = ["dirichlet_pairs", "pair_counts", "single_counts"]

_CELLS = 1 << 22  # counts that are held at once: 32 MiB
_EXACT = 1 << 24  # sums of whole numbers below it are exact in float32


def dirichlet_pairs(
    x: np.ndarray, weights: np.ndarray, states: np.ndarray, children: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray]:
    r"""Log marginal likelihoods of some columns alone and given each other column, as BDeu has them.

    .. math::

        s_i(j) = \sum_b \log \frac{\Gamma(\alpha / r_j)}{\Gamma(\alpha / r_j + N_b)}
        + \sum_{ab} \log \frac{\Gamma(\alpha / (r_i r_j) + N_{ab})}{\Gamma(\alpha / (r_i r_j))}

    Parameters
    ----------
    x : (d, n) ndarray of int
        States 0, 1, ...
    weights : (n,) ndarray of int
        How often each row stands in the table.
    states : (d,) ndarray of int
        Number of states :math:`r` of each column.
    children : (k,) ndarray of int
    size : float
        Equivalent sample size :math:`\alpha`.

    Returns
    -------
    alone : (k,) ndarray
    pairs : (k, d) ndarray
        Those of a column given itself mean nothing.
    """
    starts = np.append(0, np.cumsum(states))
    owner = np.repeat(np.arange(len(states)), states)
    single = single_counts(x, weights, states)
    cell = size / states[owner]
    terms = gammaln(single + cell) - gammaln(cell)
    margins = np.add.reduceat(terms, starts[:-1])
    total = gammaln(size) - gammaln(size + weights.sum())
    pairs = np.empty((len(children), len(states)))
    at = 0
    for some, counts in pair_counts(x, weights, states, children, single):
        own = np.repeat(states[some], states[some])
        cell = size / np.multiply.outer(own, states[owner])
        terms = gammaln(counts + cell) - gammaln(cell)
        by_column = np.add.reduceat(terms, starts[:-1], axis=1)
        firsts = np.cumsum(states[some]) - states[some]
        joint = np.add.reduceat(by_column, firsts, axis=0)
        pairs[at : at + len(some)] = joint - margins
        at += len(some)
    return total + margins[children], pairs


def single_counts(x: np.ndarray, weights: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return how often each state of each column occurs, one after the other; arguments as in `dirichlet_pairs`."""
    return np.concatenate(
        [
            np.bincount(column, weights, minlength=r)
            for column, r in zip(x, states.tolist(), strict=True)
        ]
    )


def _indicators(x, states, kind) -> np.ndarray:
    """Which row has which state, first states left out; (sum of states less d, n)."""
    if (states == 2).all():
        return (x == 1).astype(kind)
    owner = np.repeat(np.arange(len(states)), states - 1)
    state = np.concatenate([np.arange(1, r) for r in states])
    return (x[owner] == state[:, None]).astype(kind)


def pair_counts(
    x: np.ndarray, weights: np.ndarray, states: np.ndarray, children: np.ndarray, single: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield some children at a time, and how often each of their states occurs with each state of each column.

    Parameters
    ----------
    x, weights, states, children
        As in `dirichlet_pairs`.
    single : ndarray
        As `single_counts` returns it.

    Yields
    ------
    some : ndarray of int
    counts : (states of these children, states of all columns) ndarray
        First states are what the others leave: half of the product is saved where there are two.
    """
    kind = np.float32 if weights.sum() < _EXACT else np.float64
    every = _indicators(x, states, kind)
    starts, spare = np.cumsum(states) - states, states - 1
    others = np.delete(np.arange(states.sum()), starts)
    at, width = 0, max(1, _CELLS // int(states.sum()))
    while at < len(children):
        some = children[at : at + max(1, width // int(states[children[at:]].max()))]
        at += len(some)
        left = _of_some(every, some, starts, spare)
        if (weights != 1).any():
            left = left * weights.astype(kind)
        rows = np.concatenate([starts[i] + np.arange(states[i]) for i in some])
        first = np.cumsum(states[some]) - states[some]
        body = np.delete(np.arange(len(rows)), first)
        counts = np.empty((len(rows), len(single)))
        counts[np.ix_(body, others)] = left @ every.T
        counts[np.ix_(body, starts)] = single[rows[body], None] - _sums(
            counts[np.ix_(body, others)], spare
        )
        counts[first] = single - _sums(counts[body].T, spare[some]).T
        yield some, counts


def _of_some(every, some, starts, spare) -> np.ndarray:
    """Return indicators of some columns: those of all, of which a product with itself takes half the time, or a copy."""
    if len(some) == len(starts) and (some == np.arange(len(some))).all():
        return every
    first = starts - np.arange(len(starts))
    return every[np.concatenate([first[i] + np.arange(spare[i]) for i in some])]


def _sums(values, sizes) -> np.ndarray:
    """Add up consecutive columns, `sizes` of them each; there may be none."""
    running = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, out=running[:, 1:])
    ends = np.cumsum(sizes)
    return running[:, ends] - running[:, ends - sizes]
