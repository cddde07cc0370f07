"""Merges and splits of hidden causes: one cause with all that others have, in exchange for these.

See :mod:`bayesstruct.features.kernels.hidden_causes` for the model.
"""

import math

import numpy as np

from bayesstruct.features.kernels.indian_buffet import column_weights

__all__ = ["log_causes", "merge_or_split"]

#: Share of the moves that try to merge: most fail at once, as no cause is the union of the chosen others.
_MERGES = 0.9
#: Of a row in which all causes of a set are active: probability that their union takes its place, and, given
#: that, that a cause of the set stays active.
_TAKES, _STAYS = 0.6, 0.2


def merge_or_split(
    rng: np.random.Generator,
    z: np.ndarray,
    y: np.ndarray,
    x: np.ndarray,
    chances: tuple[float, float, float],
    process: tuple[float, float, float],
) -> tuple[np.ndarray, np.ndarray]:
    """Try to replace a cause by one or two others of which it is the union, or to add such a union.

    A cause of all variables that have one of one or two other causes acts as these do. A merge removes it, and the
    others become active in its rows. A split adds it: in each row in which all others are active the union is
    active or not, and if it is, each of the others stays active or not.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : (p, k) int8
        Which variables have the causes that are used.
    y : (k, n) int8
        Their activities.
    x : (p, n) int8
        The table, one variable in each row; 2 where a value is missing.
    chances : (strength, leak, base)
    process : (alpha, concentration, discount)

    Returns
    -------
    (p, k - 1), (p, k) or (p, k + 1) and (k - 1, n), (k, n) or (k + 1, n) int8 arrays
    """
    size = 1 if rng.random() < 0.5 else 2
    k, merges = z.shape[1], rng.random() < _MERGES
    if k < size + merges:
        return z, y
    chosen = rng.choice(k, size + merges, replace=False)
    proposed = _merged(z, y, chosen) if merges else _split(rng, z, y, chosen)
    if proposed is None:
        return z, y
    new_z, new_y, log_ratio = proposed
    log_ratio += log_causes(new_z, new_y, x, chances, process)
    log_ratio -= log_causes(z, y, x, chances, process)
    return (new_z, new_y) if rng.standard_exponential() > -log_ratio else (z, y)


def _merged(z, y, chosen):
    """Return the causes without the first of the chosen ones, and the log ratio of the proposals."""
    gone, others = chosen[0], chosen[1:]
    if not np.array_equal(z[:, gone], z[:, others].max(axis=1)):
        return None
    new = y.copy()
    new[np.ix_(others, y[gone] == 1)] = 1
    together = new[others].all(axis=0)
    log_ratio = _log_rows(y[gone, together], y[np.ix_(others, together)])
    log_ratio += math.log(z.shape[1]) + math.log1p(-_MERGES) - math.log(_MERGES)
    return np.delete(z, gone, axis=1), np.delete(new, gone, axis=0), log_ratio


def _split(rng, z, y, others):
    """Return the causes with the union of the chosen ones, and the log ratio of the proposals."""
    together = np.flatnonzero(y[others].all(axis=0))
    takes = (rng.random(len(together)) < _TAKES).astype(np.int8)
    stays = (rng.random((len(others), len(together))) < _STAYS).astype(np.int8)
    new, added = y.copy(), np.zeros(y.shape[1], np.int8)
    added[together] = takes
    new[np.ix_(others, together)] = np.where(takes == 1, stays, 1)
    log_ratio = -_log_rows(takes, new[np.ix_(others, together)])
    log_ratio += math.log(_MERGES) - math.log1p(-_MERGES) - math.log(z.shape[1] + 1)
    links = z[:, others].max(axis=1)
    return np.column_stack([z, links]), np.vstack([new, added]), log_ratio


def _log_rows(takes, stays):
    """Log probability of this split of the rows in which all chosen causes are active."""
    taken = takes == 1
    active = stays[:, taken].sum()
    return (
        taken.sum() * math.log(_TAKES)
        + (~taken).sum() * math.log1p(-_TAKES)
        + active * math.log(_STAYS)
        + (stays[:, taken].size - active) * math.log1p(-_STAYS)
    )


def log_causes(
    z: np.ndarray,
    y: np.ndarray,
    x: np.ndarray,
    chances: tuple[float, float, float],
    process: tuple[float, float, float],
) -> float:
    """Log density of causes, activities and table; causes are an unordered set.

    Parameters
    ----------
    z : (p, k), y : (k, n), x : (p, n) int8
        See :func:`merge_or_split`; each cause has a variable.
    chances : (strength, leak, base)
    process : (alpha, concentration, discount)
    """
    strength, leak, base = chances
    alpha, concentration, discount = process
    links = column_weights(z.sum(axis=0), len(z), concentration, discount).sum()
    active = int(y.sum())
    prior = active * math.log(base) + (y.size - active) * math.log1p(-base)
    absent = math.log1p(-leak) + (z.astype(float) @ y) * math.log1p(-strength)
    terms = np.where(x == 0, absent, np.where(x == 1, np.log(-np.expm1(absent)), 0.0))
    return float(z.shape[1] * math.log(alpha) + links + prior + terms.sum())
