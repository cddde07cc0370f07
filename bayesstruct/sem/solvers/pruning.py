r"""Regressions of columns on those before them in an order, pruned by an adaptive lasso.

.. math:: \min_b \tfrac12 \|x_i - \sum_j b_j x_j\|^2 + \lambda \sum_j |b_j| / |\hat b_j|^\gamma

with least-squares estimates :math:`\hat b`. Such a path is one of an ordinary lasso whose columns are multiplied by
:math:`|\hat b_j|^\gamma`. It selects the parents; their coefficients are then those of least squares.
"""

import numpy as np

from bayesstruct.sparse.solvers.quadratic import GramModel, minimise_quadratic

__all__ = ["PRUNINGS", "ordered_regressions"]

PRUNINGS = ("bic", "cross_validation")
_RATES = np.append(
    np.geomspace(1.0, 1e-5, 45), 0.0
)  # as shares of the rate at which no column is selected
_TOL = 1e-8  # of the optimality conditions, as a share of that rate
_FOLDS = 5


def ordered_regressions(
    values: np.ndarray,
    order: list[int],
    allowed: np.ndarray,
    required: np.ndarray,
    *,
    prune: str | None = "bic",
    gamma: float = 1.0,
    rng: np.random.Generator | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Regress each column on its parents among those before it.

    Parameters
    ----------
    values : (n, d) numpy.ndarray
        Columns, none a linear combination of the others.
    order : list of int
        Causes before effects.
    allowed, required : (d, d) bool arrays
        Arcs, rows as parents. Required ones are kept.
    prune : {"bic", "cross_validation"} or None
        What chooses the rate; None keeps all arcs that are allowed.
    gamma : float
        Power of the least-squares estimates.
    rng : numpy.random.Generator, optional
        Deals rows to the folds of ``"cross_validation"``.

    Returns
    -------
    direct : (d, d) numpy.ndarray
        Coefficients, rows as children; exactly zero where there is no arc.
    noise_scale : (d,) numpy.ndarray
        Standard deviations of the residuals, n less the number of coefficients in the denominator.
    """
    n, d = values.shape
    scale = values.std(axis=0)
    z = (values - values.mean(axis=0)) / scale
    gram = z.T @ z
    folds = _folds(z, rng) if prune == "cross_validation" else []
    direct, noise_scale, before = np.zeros((d, d)), np.zeros(d), np.zeros(d, bool)
    for child in order:
        pool = np.flatnonzero(before & allowed[:, child])
        if prune is not None and len(pool):
            keep = required[pool, child]
            pool = pool[_selected(gram, n, pool, child, keep, gamma, folds)]
        slope, rest = _least_squares(gram, pool, child)
        direct[child, pool] = slope * scale[child] / scale[pool]
        noise_scale[child] = scale[child] * np.sqrt(rest / max(n - len(pool) - 1, 1))
        before[child] = True
    return direct, noise_scale


def _folds(z, rng):
    """Gram matrices of the rows outside and inside of each fold, and the numbers of these rows."""
    fold = np.random.default_rng(0 if rng is None else rng).permutation(len(z)) % _FOLDS
    parts = [(z[fold != k], z[fold == k]) for k in range(_FOLDS)]
    return [(a.T @ a, b.T @ b, len(a), len(b)) for a, b in parts]


def _least_squares(gram, pool, child):
    """Coefficients of a regression, and the sum of its squared residuals."""
    if not len(pool):
        return np.zeros(0), gram[child, child]
    slope = np.linalg.solve(gram[np.ix_(pool, pool)], gram[pool, child])
    return slope, max(gram[child, child] - slope @ gram[pool, child], 0.0)


def _selected(gram, n, pool, child, keep, gamma, folds):
    """Mask of the columns of the pool that are parents."""
    ends, _ = _least_squares(gram, pool, child)
    factor = np.abs(ends) ** gamma
    path = _path(gram, pool, child, keep, factor)
    if not folds:
        supports = {(v != 0).tobytes(): v != 0 for v in path}
        return min(supports.values(), key=lambda s: _criterion(gram, n, pool[s], child))
    losses = np.zeros(len(path))
    for train, test, rows, left in folds:
        shares = _path(train * (n / rows), pool, child, keep, factor, reference=gram)
        slopes = np.array(shares) * factor
        cross = slopes @ test[pool, child]
        square = np.einsum("kj,jl,kl->k", slopes, test[np.ix_(pool, pool)], slopes)
        losses += (test[child, child] - 2 * cross + square) / left
    return path[int(losses.argmin())] != 0


def _criterion(gram, n, pool, child):
    """BIC of a regression up to a constant."""
    _, rest = _least_squares(gram, pool, child)
    return n * np.log(max(rest, np.finfo(float).tiny)) + len(pool) * np.log(n)


def _path(gram, pool, child, keep, factor, reference=None):
    """Coefficients over their factors along the path, the largest rate first.

    The rates are those of the reference, another Gram matrix of the same scale, where one is given.
    """
    Q = gram[np.ix_(pool, pool)] * factor[:, None] * factor
    slope = -gram[pool, child] * factor
    source = gram if reference is None else reference
    largest = np.max(np.abs(source[pool, child] * factor), initial=0.0, where=~keep)
    v, out = np.zeros(len(pool)), []
    for rate in largest * _RATES:
        rates = np.where(keep, 0.0, rate)
        model = GramModel(Q, slope + Q @ v)
        v = minimise_quadratic(model, v, rates, rates, _TOL * largest, _violation(rates))
        v[keep & (v == 0)] = np.finfo(
            float
        ).tiny  # a required parent is one, whatever its coefficient
        out.append(v)
    return out


def _violation(rates):
    """Return the function of coefficients and gradient that says how far they are from optimal."""

    def violation(v, gradient):
        at_zero = np.maximum(np.abs(gradient) - rates, 0.0)
        elsewhere = np.abs(gradient + rates * np.sign(v))
        return float(np.max(np.where(v == 0, at_zero, elsewhere), initial=0.0))

    return violation
