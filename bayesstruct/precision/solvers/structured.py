"""Modes of one precision matrix with selected nodes, blocks of columns, or neighbouring columns that have equal elements."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.core.solution import PrecisionSolution
from bayesstruct.data.names import nearest
from bayesstruct.precision.solvers.graphical_lasso import as_covariance, as_symmetric
from bayesstruct.precision.solvers.splitting import Problem, minimise
from bayesstruct.precision.solvers.structures import (
    Blocks,
    Neighbours,
    Nodes,
    groups_problem,
    neighbours_of,
)
from bayesstruct.sparse.penalties.layout import Groups
from bayesstruct.sparse.penalties.norms import Euclidean, Maximum

__all__ = [
    "blockwise_graphical_lasso",
    "locally_constant_graphical_lasso",
    "node_selection_graphical_lasso",
    "solve_groups",
    "solve_local_constancy",
    "solve_nuclear",
]

_ADVICE = "Raise max_iter or the rates, or standardise the variables."


def node_selection_graphical_lasso(
    S: ArrayLike,
    n: float,
    rate: float,
    node_rate: float,
    *,
    norm: str = "l2",
    diagonal_rate: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    init: ArrayLike | PrecisionSolution | None = None,
) -> PrecisionSolution:
    r"""Maximise the posterior density of a precision matrix under a prior that isolates whole nodes.

    .. math::

        \max_{K \succ 0} \; \frac{n}{2} (\log\det K - \operatorname{tr} S K) - \lambda \sum_{i < j} |k_{ij}|
            - d \sum_i k_{ii} - \tau \sum_i \|k_{i, -i}\|

    Each node has the norm of its row without the diagonal: a node whose row is zero has no neighbours.

    Parameters
    ----------
    S : (p, p) array_like
        Covariance or correlation matrix; may be singular.
    n : float
        Number of rows that it is from.
    rate : float
        Non-negative rate :math:`\lambda` of each off-diagonal element, of a summed log likelihood.
    node_rate : float
        Non-negative rate :math:`\tau` of the norm of each node's row.
    norm : {"l2", "linf"}
        Euclidean norm, or largest absolute value.
    diagonal_rate : float, optional
        Rate d of the diagonal elements; ``rate / 2`` unless given.
    tol : float
        Stop when the duality gap is at most this, in units of the log density.
    max_iter : int
        Maximum number of iterations.
    init : (p, p) array_like or PrecisionSolution, optional
        Positive definite matrix to start from.

    Returns
    -------
    PrecisionSolution
        ``precision``, ``covariance``, ``objective`` (the maximum above), ``gap`` (a bound on how far the objective is from its
        maximum, from a dual feasible point), ``iterations``, ``converged``.

    Raises
    ------
    ValueError
        If an argument is malformed, or the problem is unbounded.

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` after `max_iter` iterations.

    Notes
    -----
    The source divides by n/2: its :math:`\rho` is ``2 * diagonal_rate / n`` on the diagonal and ``rate / n`` off it (which counts
    both orders of a pair), and its :math:`\tau` is ``2 * node_rate / n``. Its coordinate descent is not used: it can stop before
    the maximum, with the largest absolute value by up to .4 (a test shows it). With ``node_rate=0`` this is the graphical
    lasso. A node is isolated at the maximum if the soft-thresholded row :math:`n (|s_{ij}| - \lambda / n)_+` has
    dual norm at most :math:`\tau`.

    References
    ----------
    Honorio, J. (2012). *Tractable learning of graphical model structures from data*. PhD thesis, Stony Brook University, chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers import node_selection_graphical_lasso
    >>> S = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.1], [0.1, 0.1, 1.0]])
    >>> node_selection_graphical_lasso(S, 100, 2.0, 15.0, tol=1e-10).precision.round(3)
    array([[ 1.012, -0.179,  0.   ],
           [-0.179,  1.012,  0.   ],
           [ 0.   ,  0.   ,  0.98 ]])
    """
    S = as_covariance(S)
    structure, rates = Nodes(_norm(norm, ("l2", "linf"))), _entry_rates(len(S), n, rate)
    own = np.full(len(S), 2.0 * _rate("node_rate", node_rate) / n)
    diagonal = 0.5 * rate if diagonal_rate is None else diagonal_rate
    penalised = rate > 0 or node_rate > 0
    parts, options = (structure, rates, own), (tol, init, max_iter)
    return _solve("node_selection_graphical_lasso", S, n, diagonal, parts, penalised, options)


def blockwise_graphical_lasso(
    S: ArrayLike,
    n: float,
    blocks: Sequence[Any],
    rate: float,
    block_rate: ArrayLike,
    *,
    norm: str = "l2",
    diagonal_rate: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    init: ArrayLike | PrecisionSolution | None = None,
) -> PrecisionSolution:
    r"""Maximise the posterior density of a precision matrix whose elements between two blocks of columns are zero together.

    .. math::

        \max_{K \succ 0} \; \frac{n}{2} (\log\det K - \operatorname{tr} S K) - \lambda \sum_{i < j, \, b_i = b_j} |k_{ij}|
            - d \sum_i k_{ii} - \sum_{a < b} \tau_{ab} \|K_{ab}\|

    Parameters
    ----------
    S : (p, p) array_like
        Covariance or correlation matrix; may be singular.
    n : float
        Number of rows that it is from.
    blocks : sequence of length p
        Block :math:`b_i` of each column.
    rate : float
        Non-negative rate :math:`\lambda` of each off-diagonal element within a block, of a summed log likelihood.
    block_rate : float or (blocks, blocks) array_like
        Rates :math:`\tau` of the norms between blocks. A number is the rate of a block of one element, and is multiplied by how
        the norm grows with the number of elements: its square root ("l2"), the number ("linf"), the square root of
        the longer side ("nuclear"). A symmetric matrix, in the order of the sorted blocks, is used as it is.
    norm : {"l2", "linf", "nuclear"}
        Euclidean norm of the elements between two blocks, their largest absolute value, or the sum of their singular values,
        which prefers few factors in common.
    diagonal_rate : float, optional
        Rate d of the diagonal elements; ``rate / 2`` unless given.
    tol, max_iter, init
        As in `node_selection_graphical_lasso`.

    Returns
    -------
    PrecisionSolution
        As of `node_selection_graphical_lasso`; the objective is the maximum above.

    Raises
    ------
    ValueError
        If an argument is malformed, or the problem is unbounded.

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` after `max_iter` iterations.

    Notes
    -----
    The source's :math:`\lambda` is ``rate / n`` within blocks. Where every column is a block this is the graphical lasso with penalty
    ``block_rate / n``, and so it is for one block with penalty ``rate / n``.

    References
    ----------
    Schmidt, M. (2010). *Graphical model structure learning with l1-regularization*. PhD thesis, University of British
    Columbia, section 5.6.

    Duchi, J., Gould, S., Koller, D. (2008). Projected subgradient methods for learning sparse Gaussians. *UAI*.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers import blockwise_graphical_lasso
    >>> S = np.array([[1.0, 0.5, 0.3], [0.5, 1.0, 0.1], [0.3, 0.1, 1.0]])
    >>> K = blockwise_graphical_lasso(S, 100, ["a", "a", "b"], 5.0, 25.0, tol=1e-10).precision
    >>> K.round(3)
    array([[ 1.167, -0.5  ,  0.   ],
           [-0.5  ,  1.167,  0.   ],
           [ 0.   ,  0.   ,  0.952]])
    """
    S = as_covariance(S)
    names, label = np.unique(np.asarray(blocks), return_inverse=True)
    if label.shape != (len(S),):
        raise ValueError(f"blocks has shape {label.shape}, but S has {len(S)} columns.")
    structure = Blocks(tuple(label.tolist()), _norm(norm, ("l2", "linf", "nuclear")))
    within = label[:, None] == label
    rates = np.where(within, _entry_rates(len(S), n, rate), 0.0)
    own = 2.0 / n * _block_rates(block_rate, structure)
    diagonal = 0.5 * rate if diagonal_rate is None else diagonal_rate
    penalised = (rate > 0 or len(names) == len(S)) and bool(np.all(own > 0))
    parts, options = (structure, rates, own), (tol, init, max_iter)
    return _solve("blockwise_graphical_lasso", S, n, diagonal, parts, penalised, options)


def solve_groups(
    S, n, rates, members, group_rates, norm, diagonal_rate, tol, start
) -> PrecisionSolution:
    """Solve for rates of the elements and of the norms of any groups of them.

    Parameters
    ----------
    S : (p, p) numpy.ndarray
    n : float
    rates : (p, p) numpy.ndarray
        Rates of the elements; the diagonal is not used.
    members : (groups, most) numpy.ndarray of int
        Places of the elements of each group, in row order, then -1.
    group_rates : (groups,) numpy.ndarray
    norm : {"l2", "linf"}
    diagonal_rate, tol : float
    start : (p, p) numpy.ndarray, optional
    """
    p = len(S)
    places = [row[row >= 0] for row in members]
    used = np.zeros(p * p, dtype=bool)
    used[np.concatenate(places)] = True
    weights = 2.0 * group_rates / n
    # Groups of one order of their elements become those of both orders, with half of the rate each.
    mirrored = [(m % p) * p + m // p for m in places]
    if not any(used[m].any() for m in mirrored):
        places, weights = places + mirrored, np.tile(0.5 * weights, 2)
    start_at = np.cumsum([0, *map(len, places)]).astype(np.int32)
    groups = Groups(np.concatenate(places).astype(np.int32), start_at, p * p)
    entry = np.where(np.eye(p, dtype=bool), 0.0, rates) / n
    kind = Maximum() if norm == "linf" else Euclidean()

    def build(S, unit):
        return groups_problem(S / unit, entry / unit, groups, weights / unit, kind)

    return _minimise(build, S, n, diagonal_rate, True, tol, start)


def _block_rates(block_rate, structure):
    if np.ndim(block_rate) == 0:
        return _rate("block_rate", block_rate) * structure.growth()
    rates, count = as_symmetric("block_rate", block_rate), structure.count
    if rates.shape != (count, count):
        raise ValueError(f"block_rate has shape {rates.shape}, but there are {count} blocks.")
    return np.array([_rate("block_rate", rate) for rate in rates[structure.pairs]])


def locally_constant_graphical_lasso(
    S: ArrayLike,
    n: float,
    neighbours: Iterable[tuple[int, int]],
    rate: float,
    smoothness: float,
    *,
    diagonal_rate: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    init: ArrayLike | PrecisionSolution | None = None,
) -> PrecisionSolution:
    r"""Maximise the posterior density of a precision matrix whose neighbouring columns have equal elements in most places.

    .. math::

        \max_{K \succ 0} \; \frac{n}{2} (\log\det K - \operatorname{tr} S K) - \lambda \sum_{i < j} |k_{ij}| - d \sum_i k_{ii}
            - \tau \sum_{a \sim b} \sum_{i \notin \{a, b\}} |k_{ai} - k_{bi}|

    Parameters
    ----------
    S : (p, p) array_like
        Covariance or correlation matrix; may be singular.
    n : float
        Number of rows that it is from.
    neighbours : iterable of pairs of int
        Pairs of columns that are next to each other in space or time.
    rate : float
        Non-negative rate :math:`\lambda` of each off-diagonal element, of a summed log likelihood.
    smoothness : float
        Non-negative rate :math:`\tau` of each difference between neighbours.
    diagonal_rate : float, optional
        Rate d of the diagonal elements; ``rate / 2`` unless given.
    tol, max_iter, init
        As in `node_selection_graphical_lasso`.

    Returns
    -------
    PrecisionSolution
        As of `node_selection_graphical_lasso`; the objective is the maximum above.

    Raises
    ------
    ValueError
        If an argument is malformed, or the problem is unbounded.

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` after `max_iter` iterations.

    Notes
    -----
    The source divides by n/2: its :math:`\rho` is ``2 * diagonal_rate / n`` on the diagonal and ``rate / n`` off it, and its
    :math:`\tau` is ``2 * smoothness / n``. Its coordinate descent is not used: moves of one or two neighbouring elements do not
    reach the maximum (a test shows it). With ``smoothness=0`` this is the graphical lasso.

    References
    ----------
    Honorio, J. (2012). *Tractable learning of graphical model structures from data*. PhD thesis, Stony Brook University, chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers import locally_constant_graphical_lasso
    >>> S = np.array([[1.0, 0.4, 0.5], [0.4, 1.0, 0.6], [0.5, 0.6, 1.0]])
    >>> locally_constant_graphical_lasso(S, 100, [(0, 1)], 5.0, 20.0, tol=1e-10).precision.round(3)
    array([[ 1.256, -0.173, -0.515],
           [-0.173,  1.256, -0.515],
           [-0.515, -0.515,  1.443]])
    """
    S = as_covariance(S)
    structure, rates = neighbours_of(neighbours, len(S)), _entry_rates(len(S), n, rate)
    own = np.full(len(structure.pairs), 2.0 * _rate("smoothness", smoothness) / n)
    diagonal = 0.5 * rate if diagonal_rate is None else diagonal_rate
    parts, options = (structure, rates, own), (tol, init, max_iter)
    return _solve("locally_constant_graphical_lasso", S, n, diagonal, parts, rate > 0, options)


def solve_local_constancy(
    S, n, pairs, rates, diagonal_rate, differences, tol, start
) -> PrecisionSolution:
    """Solve for a matrix of rates of the elements, and a rate of the differences of each pair of neighbours."""
    structure, off = Neighbours(tuple(map(tuple, pairs.tolist()))), ~np.eye(len(S), dtype=bool)
    rates, own = np.where(off, rates, 0.0) / n, 2.0 * differences / n

    def build(S, unit):
        return structure.problem(S / unit, rates / unit, own / unit)

    return _minimise(build, S, n, diagonal_rate, bool(np.all(rates[off] > 0)), tol, start)


def solve_nuclear(S, n, rates, labels, block_rates, diagonal_rate, tol, start) -> PrecisionSolution:
    """Solve for a matrix of rates of the elements, and one of rates of the nuclear norms between blocks."""
    structure = Blocks(tuple(labels.tolist()), "nuclear")
    rates = np.where(np.eye(len(S), dtype=bool), 0.0, rates) / n
    own = 2.0 / n * block_rates[structure.pairs]

    def build(S, unit):
        return structure.problem(S / unit, rates / unit, own / unit)

    return _minimise(build, S, n, diagonal_rate, True, tol, start)


def _solve(name, S, n, diagonal_rate, parts, penalised, options) -> PrecisionSolution:
    """Solve for a structure, and warn in the name of a public function."""
    (structure, rates, own), (tol, init, max_iter) = parts, options

    def build(S, unit):
        return structure.problem(S / unit, rates / unit, own / unit)

    start = _start(init, S.shape)
    solution = _minimise(build, S, n, diagonal_rate, penalised, tol, start, max_iter)
    solution.warn_unless_converged(name, _ADVICE)
    return solution


def _minimise(
    build: Callable[[np.ndarray, float], Problem],
    S: np.ndarray,
    n: float,
    diagonal_rate: float,
    penalised: bool,
    tol: float,
    start: np.ndarray | None,
    max_iter: int = 10_000,
) -> PrecisionSolution:
    """Solve the problem of the objective divided by n / 2, in a unit in which the variances are near one."""
    S = S + 2.0 * _rate("diagonal_rate", diagonal_rate) / n * np.eye(len(S))
    _check_bounded(S, penalised)
    unit = float(S.diagonal().mean())
    problem, start = build(S, unit), None if start is None else unit * start
    scaled, gap, iterations = minimise(problem, start, 2.0 * tol / n, max_iter)
    value, K = problem.value(scaled) + len(S) * np.log(unit), scaled / unit
    objective, gap = -0.5 * n * value, 0.5 * n * gap
    return PrecisionSolution(objective, gap, iterations, bool(gap <= tol), K, np.linalg.inv(K))


def _check_rows(n):
    if not (np.isfinite(n) and n > 0):
        raise ValueError(f"n must be a positive number of rows, got {n}.")


def _entry_rates(p, n, rate):
    _check_rows(n)
    rates = np.full((p, p), _rate("rate", rate) / n)
    np.fill_diagonal(rates, 0.0)
    return rates


def _rate(name, value) -> float:
    if not (np.ndim(value) == 0 and np.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a non-negative number, got {value}.")
    return float(value)


def _norm(norm, known):
    if norm not in known:
        raise ValueError(nearest("norm", norm, known))
    return norm


def _start(init, shape):
    if init is None:
        return None
    K = as_symmetric("init", init.precision if isinstance(init, PrecisionSolution) else init)
    if K.shape != shape or np.linalg.eigvalsh(K)[0] <= 0:
        raise ValueError(f"init must be a positive definite matrix of shape {shape}.")
    return K


def _check_bounded(S, penalised):
    if S.diagonal().min() <= 0:
        raise ValueError(
            f"Unbounded: S has a zero on the diagonal at index {S.diagonal().argmin()} (a constant variable) and "
            "the diagonal is not penalised. Drop the variable or set diagonal_rate."
        )
    if not penalised:
        least = np.linalg.eigvalsh(S)[0]
        if least <= 1e-10 * S.max():
            raise ValueError(
                f"Unbounded: S is singular (smallest eigenvalue {least:.2g}) and some elements have no penalty. Raise the rates."
            )
