r"""Mutual information of all pairs of columns of numbers, of states, or of both, under fitted distributions.

.. math:: I_{ij} = \frac{1}{n} \{\ell(D_i, D_j) - \ell(D_i) - \ell(D_j)\},

the largest log likelihood of two columns less those of each alone: normal numbers, any probabilities of states, and numbers that are normal with
another mean but the same variance in each state. In natural logarithms (nats).
"""

import numpy as np

from scipy.special import xlogy

from bayesstruct.data.table import near_one
from bayesstruct.networks.kernels.scores.pair_counts import pair_counts, single_counts

__all__ = ["pairwise_information", "pairwise_parameters", "shared_variances"]

#: Share of a variance below which one column determines the other.
DETERMINED = 1e-12


def pairwise_information(values: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the mutual information of all pairs of columns.

    Parameters
    ----------
    values : (n, p) ndarray
        Numbers, and states as 0, 1, ...; nothing is missing and no column is constant.
    states : (p,) ndarray of int
        Numbers of states, 0 for columns of numbers.

    Returns
    -------
    (p, p) ndarray
        Nats, at least 0; infinite where a number is a linear function of another one or constant in each state.
        The diagonal is 0.
    """
    out = np.zeros((len(states), len(states)))
    number, state = np.flatnonzero(states == 0), np.flatnonzero(states > 0)
    if len(state):
        out[np.ix_(state, state)] = _of_states(values[:, state].astype(np.int64), states[state])
    if len(number):
        left = 1.0 - shared_variances(values, states)
        left[left < DETERMINED] = 0.0
        with np.errstate(divide="ignore"):
            nats = np.maximum(-0.5 * np.log(left), 0.0)
        out[number] = nats
        out[np.ix_(state, number)] = nats[:, state].T
    np.fill_diagonal(out, 0.0)
    return out


def shared_variances(values: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the share of the variance of each number that each column explains.

    Parameters
    ----------
    values, states
        As in `pairwise_information`.

    Returns
    -------
    (q, p) ndarray
        Squared correlations with numbers, squared correlation ratios with states; one row for each of the q numbers.
    """
    number = states == 0
    z, _ = near_one(values[:, number])
    z = z - z.mean(axis=0)
    z /= np.sqrt((z**2).mean(axis=0))
    out = np.empty((z.shape[1], len(states)))
    out[:, number] = (z.T @ z / len(z)) ** 2
    for j in np.flatnonzero(~number):
        member = values[:, j] == np.arange(states[j])[:, None]
        sums = member.astype(np.float64) @ z
        out[:, j] = (sums**2 / member.sum(axis=1)[:, None]).sum(axis=0) / len(z)
    return np.minimum(out, 1.0)


def pairwise_parameters(states: np.ndarray) -> np.ndarray:
    """Return how many free parameters the distribution of two columns has beyond those of each alone.

    Parameters
    ----------
    states : (p,) ndarray of int
        Numbers of states, 0 for columns of numbers.

    Returns
    -------
    (p, p) ndarray of int
    """
    freedom = np.where(states > 0, states - 1, 1)
    return np.outer(freedom, freedom)


def _of_states(codes, states) -> np.ndarray:
    """Mutual information of states, (d, d), by counts of all pairs of states."""
    x, weights = np.ascontiguousarray(codes.T), np.ones(len(codes), np.int64)
    single = single_counts(x, weights, states)
    starts = np.cumsum(states) - states
    n = len(codes)
    own = np.add.reduceat(xlogy(single, single), starts) / n
    out = np.empty((len(states), len(states)))
    for some, counts in pair_counts(x, weights, states, np.arange(len(states)), single):
        by_column = np.add.reduceat(xlogy(counts, counts), starts, axis=1)
        firsts = np.cumsum(states[some]) - states[some]
        out[some] = np.add.reduceat(by_column, firsts, axis=0) / n
    out += np.log(n) - own[:, None] - own
    return np.maximum((out + out.T) / 2.0, 0.0)
