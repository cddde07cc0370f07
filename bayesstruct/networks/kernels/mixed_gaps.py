r"""Missing values of rows with columns of several kinds, drawn given graph and parameters.

The missing values m of a row with the observed values o have the distribution

.. math:: p(x_m \mid x_o) \propto \prod_{i \in m} p(x_i \mid x_{\pi_i}) \prod_{i \in o} p(x_i \mid x_{\pi_i}).

First all of them are proposed at once, each from its distribution given its parents, which is the first product; the second one
says whether they are accepted (an independence chain, Tierney 1994). Then each is drawn given all other values of its row: a state from its
probabilities, a number from a normal distribution where that is its conditional one, and else by slice sampling (Neal 2003).

References
----------
Tierney, L. (1994). Markov chains for exploring posterior distributions. *Annals of Statistics* 22, 1701-1728. -- Neal, R. M. (2003).
Slice sampling. *Annals of Statistics* 31, 705-767.
"""

from collections.abc import Callable

import numpy as np

from bayesstruct.networks.kernels.mixed_cells import ValueDensity
from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.networks.kernels.mixed_rows import column_terms, draw_rows

__all__ = ["draw_gaps", "slice_values"]

_WIDTH = 3.0  # of slices, in standard deviations as they are with normal noise
_STEPS_OUT = 8
_SHRINKS = 200  # of a slice at most: rounding may leave nothing but the last value


def draw_gaps(
    rng: np.random.Generator,
    layout: MixedLayout,
    vector: np.ndarray,
    dag: np.ndarray,
    z: np.ndarray,
    missing: np.ndarray,
    free: np.ndarray,
) -> None:
    """Draw the missing values of each row given its observed ones, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    layout : MixedLayout
    vector : (size,) array
        All parameters.
    dag : (d, d) array
        1 at (parent, child).
    z : (n, d) array
        Standardised numbers, and states 0, 1, ..., with the last draw in the places of missing values; changed.
    missing, free : (n, d) bool array
        Missing values, and those that were not set from outside; no value that was set is missing.
    """
    _draw_together(rng, layout, vector, dag, z, missing, free)
    for j in rng.permutation(np.flatnonzero(missing.any(axis=0))).tolist():
        rows = np.flatnonzero(missing[:, j])
        density = ValueDensity(layout, vector, z[rows], j, free[rows])
        z[rows, j] = _draw_single(rng, density, z[rows, j])


def _draw_together(rng, layout, vector, dag, z, missing, free):
    """Propose all missing values of each row given their parents."""
    new = draw_rows(layout, rng.random(z.shape), vector, dag, np.where(missing, np.nan, z))
    told = free & ~missing
    logs = [
        np.where(told, column_terms(layout, rows, vector), 0.0).sum(axis=1) for rows in (new, z)
    ]
    with np.errstate(invalid="ignore"):  # -inf less -inf: both impossible, not accepted
        accepted = -rng.exponential(size=len(z)) < logs[0] - logs[1]
    z[accepted] = new[accepted]


def _draw_single(rng, density, last):
    """Draw one value of each row given all others."""
    if density.layout.states[density.column]:
        logs = density.state_logs()
        drawn = (logs + rng.gumbel(size=logs.shape)).argmax(axis=0)
        return np.where(np.isnan(logs).any(axis=0), last, drawn)
    mean, sd = density.moments
    if density.is_normal:
        return mean + sd * rng.standard_normal(len(last))
    return slice_values(rng, lambda x: density(x[None])[0], last, _WIDTH * sd)


def slice_values(
    rng: np.random.Generator,
    log_density: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    width: np.ndarray,
) -> np.ndarray:
    """Draw numbers, each from its own density, by slice sampling.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : callable
        Of (n,) numbers, the log density of each.
    x : (n,) array
        The last draws.
    width : (n,) array
        About the width of each distribution.
    """
    n = len(x)
    level = log_density(x) - rng.exponential(size=n)
    low = x - width * rng.random(n)
    left = rng.integers(_STEPS_OUT, size=n)
    ends = (low, -width, left), (low + width, width, _STEPS_OUT - 1 - left)
    low, high = (_stepped_out(log_density, level, *end) for end in ends)
    out, left = x.copy(), np.ones(n, bool)
    for _ in range(_SHRINKS):
        new = low + rng.random(n) * (high - low)
        inside = log_density(new) >= level
        out = np.where(left & inside, new, out)
        left &= ~inside
        if not left.any():
            break
        low, high = np.where(new < x, new, low), np.where(new < x, high, new)
    return out


def _stepped_out(log_density, level, end, step, most):
    """Move ends of intervals by steps until they are outside of the slice, so many times at most."""
    going = most > 0
    while going.any():
        going &= log_density(end) >= level
        end = np.where(going, end + step, end)
        most = most - going
        going &= most > 0
    return end
