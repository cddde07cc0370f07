r"""The graphical lasso: the mode of a precision matrix under Laplace priors on its entries.

Each connected component of :math:`|S_{ij}| > \lambda_{ij}` is solved in three steps:

1. passes of block-coordinate ascent on the dual (a lasso regression for each column, on its active
   set), which cost O(p nnz) and no factorisation;
2. Newton steps on the free set, each a sparse quadratic problem solved by coordinate descent and,
   where that is slow, conjugate gradients on the present signs;
3. a certificate without a factorisation. Let :math:`\tilde W` be :math:`W = K^{-1}` moved to
   :math:`S_{ij} + \lambda_{ij} \operatorname{sign} K_{ij}` where :math:`K_{ij} \ne 0` and clipped
   to :math:`S_{ij} \pm \lambda_{ij}` elsewhere. It is dual feasible, and with
   :math:`F = K^{1/2} (\tilde W - W) K^{1/2}` the duality gap is
   :math:`\operatorname{tr} F - \log\det(I + F) \le \|F\|^2 / (2 (1 - \|F\|))` when
   :math:`\|F\| < 1`: second order in the error of :math:`K`, where clipping alone is first order.
"""

from collections.abc import Iterable
from functools import cache

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.core.solution import PrecisionSolution

# Block-coordinate passes stop below this estimate of the residual norm: one Newton step from there
# leaves about 0.2 times its square, a gap below 1e-7 p for p >= 300 (the benchmark's problems).
# Smaller ones follow where that is not yet positive definite.
_START_NORMS = (0.2, 0.05, 0.01)
_MAX_PASSES = 40
# A warm start with a larger residual norm is slower than block-coordinate passes from scratch.
_WARM_NORM = 0.5
_MAX_SWEEPS = 120
_SWEEPS_BEFORE_GRADIENTS = 12
_ARMIJO = 1e-3

__all__ = [
    "as_covariance",
    "as_symmetric",
    "graphical_lasso",
    "graphical_lasso_gap",
    "graphical_lasso_path",
]


def graphical_lasso(
    S: ArrayLike,
    lam: ArrayLike,
    *,
    penalize_diagonal: bool = False,
    tol: float = 1e-6,
    max_iter: int = 100,
    init: ArrayLike | PrecisionSolution | None = None,
    screen: bool = True,
) -> PrecisionSolution:
    r"""Maximise the :math:`\ell_1`-penalised Gaussian log-likelihood of a precision matrix.

    .. math::

        \max_{K \succ 0} \; \log\det K - \operatorname{tr}(S K) - \sum_{i,j} \lambda_{ij} |K_{ij}|

    The sum runs over all ordered pairs, so an off-diagonal entry is counted twice.

    Parameters
    ----------
    S : (p, p) array_like
        Symmetric covariance or correlation matrix; may be singular (fewer rows than variables).
    lam : float or (p, p) array_like
        Non-negative penalty. A matrix must be symmetric and its diagonal always counts: this is
        how the diagonal and the off-diagonal get different penalties. Zeros are allowed as long
        as the problem stays bounded.
    penalize_diagonal : bool
        Whether a scalar `lam` applies to the diagonal too. Ignored for a matrix.
    tol : float
        Stop when the duality gap divided by p is at most this.
    max_iter : int
        Most Newton steps in each connected component.
    init : (p, p) array_like or PrecisionSolution, optional
        Precision to start from. It is used if it is positive definite on each component and near
        the solution; a far one is slower than the default start, which then replaces it.
    screen : bool
        Split into the connected components of ``|S_ij| > lam_ij`` first. Exact [3]_, [4]_;
        switched off only to test that.

    Returns
    -------
    PrecisionSolution
        ``precision`` :math:`K`, ``covariance`` :math:`K^{-1}`, ``objective`` (the maximum above),
        ``gap`` (a bound on how far the objective is from its maximum, from a dual feasible
        point), ``iterations`` (most Newton steps any component took; 0 when the start already
        meets `tol`), ``converged``.

    Raises
    ------
    ValueError
        If `S` or `lam` is malformed, or the problem is unbounded.

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` after `max_iter` steps.

    See Also
    --------
    graphical_lasso_path : the same for a sequence of penalties.
    bayesstruct.ops.graphical_lasso : the same as a differentiable PyTensor operation.

    Notes
    -----
    *The prior whose mode this is.* With n rows of :math:`\mathrm{Normal}(0, K^{-1})`, and Wang's
    prior [6]_ :math:`p(K) \propto \prod_{i<j} \mathrm{Laplace}(k_{ij}; \text{rate})
    \prod_i \mathrm{Exponential}(k_{ii}; \text{diagonal\_rate})` on positive-definite matrices,
    the log posterior is :math:`n/2` times the objective with ``S = scatter / n``, ``scatter`` the
    sum of squares and products, and penalties ``rate / n`` off the diagonal (two ordered pairs
    share one :math:`|k_{ij}|`) and ``2 * diagonal_rate / n`` on it.

    *Algorithm.* Each connected component is started by passes of block-coordinate ascent [1]_, [5]_
    that touch active sets only, and finished by proximal Newton steps on the free set [2]_; see
    this module's docstring.

    References
    ----------
    .. [1] Friedman, J., Hastie, T., Tibshirani, R. (2008). Sparse inverse covariance estimation
       with the graphical lasso. Biostatistics 9(3), 432-441.
    .. [2] Hsieh, C.-J., Sustik, M., Dhillon, I., Ravikumar, P. (2014). QUIC: quadratic
       approximation for sparse inverse covariance estimation. JMLR 15, 2911-2947.
    .. [3] Witten, D., Friedman, J., Simon, N. (2011). New insights and faster computations for
       the graphical lasso. JCGS 20(4), 892-900.
    .. [4] Mazumder, R., Hastie, T. (2012). Exact covariance thresholding into connected
       components for large-scale graphical lasso. JMLR 13, 781-794.
    .. [5] Sustik, M., Calderhead, B. (2012). GLASSOFAST: an efficient GLASSO implementation.
       UTCS Technical Report TR-12-29.
    .. [6] Wang, H. (2012). Bayesian graphical lasso models and efficient posterior computation.
       Bayesian Analysis 7(4), 867-886.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers import graphical_lasso
    >>> S = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 1.0]])
    >>> graphical_lasso(S, 0.2).precision.round(3)
    array([[ 1.099, -0.33 ,  0.   ],
           [-0.33 ,  1.099,  0.   ],
           [ 0.   ,  0.   ,  1.   ]])
    """
    S = as_covariance(S)
    lam = _penalty(lam, S.shape[0], penalize_diagonal)
    _check_diagonal(S, lam)
    start = None if init is None else _start(init, S.shape)
    K, W, gap, iterations, objective = solve(S, lam, start, tol, max_iter, screen)
    if not np.isfinite(gap):
        _check_bounded(S, lam)
    converged = bool(gap <= tol * len(S))
    solution = PrecisionSolution(float(objective), float(gap), iterations, converged, K, W)
    solution.warn_unless_converged(
        "graphical_lasso", "Raise max_iter or lam, or standardise the variables."
    )
    return solution


def graphical_lasso_path(
    S: ArrayLike, lams: Iterable[ArrayLike], **options
) -> list[PrecisionSolution]:
    """Solve `graphical_lasso` for each penalty in turn, each started from the one before.

    Parameters
    ----------
    S : (p, p) array_like
        Symmetric covariance or correlation matrix.
    lams : iterable of float or (p, p) array_like
        Penalties, in the order in which they are solved; decreasing is the usual order.
    **options
        Passed to `graphical_lasso`, except ``init``, which applies to the first penalty only.

    Returns
    -------
    list of PrecisionSolution
        One for each penalty, in the order given.
    """
    init = options.pop("init", None)
    path = []
    for lam in lams:
        init = graphical_lasso(S, lam, init=init, **options)
        path.append(init)
    return path


def graphical_lasso_gap(
    precision: ArrayLike, S: ArrayLike, lam: ArrayLike, *, penalize_diagonal: bool = False
) -> float:
    """Bound how far a precision matrix, from anywhere, is from the optimal objective.

    Parameters
    ----------
    precision : (p, p) array_like
        Positive definite; its zeros matter, because they choose the dual point.
    S, lam, penalize_diagonal
        As in `graphical_lasso`.

    Returns
    -------
    float
        Duality gap, infinite if `precision` is not positive definite or no dual point was found.
    """
    S = as_covariance(S)
    lam = _penalty(lam, len(S), penalize_diagonal)
    _check_diagonal(S, lam)
    scale = np.sqrt(S.diagonal() + lam.diagonal())
    component = _Component(_rescale(S, 1 / scale), _rescale(lam, 1 / scale))
    if not component._accept(_rescale(_start(precision, S.shape), scale)):
        return np.inf
    component._measure()
    return float(component.gap if np.isfinite(component.gap) else component._exact_gap())


def solve(
    S: np.ndarray,
    lam: np.ndarray,
    start: np.ndarray | None,
    tol: float,
    max_iter: int,
    screen: bool = True,
) -> tuple[np.ndarray, np.ndarray, float, int, float]:
    """Solve without checking the input; see `graphical_lasso`.

    Returns
    -------
    K, W : (p, p) numpy.ndarray
        Precision and covariance.
    gap : float
        Certified duality gap, infinite without a certificate.
    iterations : int
        Maximum number of Newton steps over the components.
    objective : float
        Maximised objective.
    """
    scale = np.sqrt(S.diagonal() + lam.diagonal())
    parts = _components(S, lam) if screen else [np.arange(len(S))]
    if len(parts) == 1:
        return _solve_component(S, lam, start, scale, tol, max_iter)
    K, W = np.diag(scale**-2.0), np.diag(scale**2)
    singles = np.concatenate([nodes for nodes in parts if len(nodes) == 1] or [[]]).astype(int)
    objective = -len(singles) - 2.0 * np.log(scale[singles]).sum()
    gap, iterations = 0.0, 0
    for nodes in parts:
        if len(nodes) > 1:
            block = np.ix_(nodes, nodes)
            warm = None if start is None else start[block]
            K[block], W[block], part_gap, steps, value = _solve_component(
                S[block], lam[block], warm, scale[nodes], tol, max_iter
            )
            gap += part_gap
            iterations = max(iterations, steps)
            objective += value
    return K, W, gap, iterations, objective


def _solve_component(S, lam, start, scale, tol, max_iter):
    component = _Component(_rescale(S, 1 / scale), _rescale(lam, 1 / scale))
    component.solve(None if start is None else _rescale(start, scale), tol, max_iter)
    objective = component.objective - 2.0 * np.log(scale).sum()
    K, W = _rescale(component.K, 1 / scale), _rescale(component.W, scale)
    return K, W, component.gap, component.iterations, objective


def _rescale(matrix, unit):
    # Nearly one: a correlation matrix is used in place.
    if np.abs(unit - 1.0).max() < 1e-6:
        return np.ascontiguousarray(matrix)
    scaled = matrix * unit
    scaled *= unit[:, None]
    return scaled


def _components(S, lam):
    """Nodes of each connected component of ``|S_ij| > lam_ij``."""
    labels, count = kernel().components(S, lam)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels, minlength=count))[:-1])


class _Component:
    """One component while it is solved; ``S_ii + lam_ii`` is 1, or nearly."""

    def __init__(self, S, lam):
        p = len(S)
        self.S, self.lam = S, lam
        self.K, self.W = np.empty((p, p)), np.empty((p, p))
        # Factor of K; free while a Newton step is computed, when it serves as scratch.
        self.L = np.empty((p, p))
        size = min(p, 64 if p < 1500 else 128)
        self.blocks = np.empty((-(-p // size), size, size))
        # Search directions are computed in single precision until that is not enough.
        self.single = True
        self.low = np.empty((2, p, p), np.float32)
        self.logdet = self.gap = np.inf
        self.iterations = 0

    @property
    def objective(self):
        """Maximised objective at the present K."""
        return self.logdet - kernel().penalised_trace(*self.free, self.K)

    def solve(self, start, tol, max_iter):
        """Run the three steps of the module's docstring."""
        if np.count_nonzero(self.lam) == np.count_nonzero(self.lam.diagonal()):
            self._invert_dual()
            return
        warm = start is not None and self._accept(start)
        if not warm:
            self._cold_start()
        norm = self._measure()
        if warm and norm > _WARM_NORM:
            self._cold_start()
            norm = self._measure()
        previous = np.inf
        while self.gap > tol * len(self.S) and self.iterations < max_iter:
            if norm > 0.5 * previous and norm < 0.5:
                if not self.single and norm < 1e-5:
                    break  # rounding is the limit now
                self.single = False
            D = self._direction(norm, 0.05 * tol * len(self.S))
            step = self._line_search(D)
            self.iterations += 1
            if step == 0:
                if not self.single:
                    break
                self.single = False
            previous, norm = norm, self._measure()
        if not np.isfinite(self.gap):
            self.gap = self._exact_gap()

    def _factor(self, K):
        positive, self.logdet = kernel().factor(K, self.L, self.blocks)
        return positive

    def _accept(self, K):
        self.K[:] = K
        return self._factor(self.K)

    def _invert_dual(self):
        """Only the diagonal is penalised: the dual has a single point."""
        self.W[:] = self.S
        np.fill_diagonal(self.W, self.S.diagonal() + self.lam.diagonal())
        if self._factor(self.W):
            kernel().invert(self.L, self.blocks, self.K)
            self.logdet, self.gap = -self.logdet, 0.0
        else:
            self.logdet, self.K[:] = 0.0, np.eye(len(self.S))
        self.free = kernel().free_set(self.S, self.lam, self.W, self.K)

    def _cold_start(self):
        """Fill K by block-coordinate passes, as many as make it positive definite."""
        dual, beta, variances = self.low[0], self.W, np.empty(len(self.S))
        beta[:] = 0.0
        floor = max(0.5 * kernel().shrink(self.S, self.lam, dual), 1e-6)
        state = (self.S, self.lam, beta, dual, variances, floor)
        for target in _START_NORMS:
            if not kernel().block_ascent(*state, target, _MAX_PASSES):
                break
            kernel().assemble(beta, variances, self.K)
            if self._factor(self.K):
                return
        else:
            # The passes went through, so their dual point is a good one: start from its inverse.
            self.W[:] = dual
            if self._factor(self.W):
                kernel().invert(self.L, self.blocks, self.K)
                if self._factor(self.K):
                    return
        self.K[:] = np.eye(len(dual))
        self._factor(self.K)

    def _measure(self):
        """Invert ``K``, list the free set, certify; return the residual norm."""
        kernel().invert(self.L, self.blocks, self.W)
        self.free = kernel().free_set(self.S, self.lam, self.W, self.K)
        norm = kernel().residual_norm(*self.free)
        self.gap = 0.5 * norm**2 / (1.0 - norm) if norm < 0.9 else np.inf
        return norm

    def _direction(self, norm, target):
        """Newton step on the free set.

        The inner accuracy follows ``norm``, for superlinear convergence, up to ``target``.
        """
        D = np.zeros(len(self.free[1]))
        W, U = self.low if self.single else (self.W, self.L)
        W[:] = self.W
        U[:] = 0.0
        column = np.empty(len(W), W.dtype)
        forcing = min(0.05, max(1e-3, 0.1 * norm)) ** 2
        total, previous = 0.0, np.inf
        for sweep in range(1, _MAX_SWEEPS + 1):
            decrease = kernel().sweep(*self.free, D, W, U, column)
            total += decrease
            rate = min(decrease / previous, 0.999) if previous > 0 else 0.0
            previous = decrease
            # The rest that geometric convergence leaves to gain.
            if sweep > 1 and decrease * rate <= (1.0 - rate) * max(forcing * total, target):
                break
            if sweep % _SWEEPS_BEFORE_GRADIENTS == 0:
                kernel().accelerate(*self.free, D, self.W, self.L)
                if self.single:
                    U[:] = self.L
                previous = np.inf
        return D

    def _line_search(self, D):
        """Backtrack until K is positive definite and the objective has decreased."""
        slope = kernel().slope(*self.free, D)
        start = kernel().penalised_trace(*self.free, self.K) - self.logdet
        slack = 1e-12 * (len(self.S) + abs(start))  # rounding of the objective
        step = 1.0
        kernel().move(*self.free[:2], D, self.K, step)
        while step > 1e-6:
            if self._factor(self.K):
                value = kernel().penalised_trace(*self.free, self.K) - self.logdet
                if value <= start + _ARMIJO * step * slope + slack:
                    return step
            kernel().move(*self.free[:2], D, self.K, -0.5 * step)
            step *= 0.5
        kernel().move(*self.free[:2], D, self.K, -step)
        self._factor(self.K)
        return 0.0

    def _exact_gap(self):
        """Duality gap at the clipped dual point; infinite if that is not positive definite."""
        logdet = self.logdet
        point = self.S + np.clip(self.W - self.S, -self.lam, self.lam)
        np.fill_diagonal(point, self.S.diagonal() + self.lam.diagonal())
        value = self.objective
        positive = self._factor(point)
        dual, self.logdet = self.logdet, logdet
        return max(-value - dual - len(self.S), 0.0) if positive else np.inf


def solve_on_support(K: np.ndarray, G: np.ndarray, tol: float) -> np.ndarray:
    """Symmetric X on the support of ``K`` with ``inv(K) X inv(K) = G`` there; ``G`` symmetric."""
    component = _Component(np.ascontiguousarray(K), np.zeros_like(K))
    if not component._accept(K):
        return np.full(K.shape, np.nan)
    kernel().invert(component.L, component.blocks, component.W)
    rows, columns, values = kernel().free_set(component.W, component.lam, component.W, component.K)
    row = np.repeat(np.arange(len(K)), np.diff(rows))
    active = np.ones(len(columns))
    X = np.zeros(K.shape)
    X[row, columns] = kernel().solve_active(
        rows, columns, values[3], active, component.W, component.L, G[row, columns], tol
    )
    return X


@cache
def kernel():
    """Import the compiled loops when they are first needed: Numba takes a while."""
    from bayesstruct.precision.kernels import graphical_lasso as loops

    return loops


def as_symmetric(name: str, matrix: ArrayLike) -> np.ndarray:
    """Return a symmetric matrix of finite numbers, or raise an error that has its name."""
    matrix = np.ascontiguousarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"{name} must be a square matrix, got shape {matrix.shape}.")
    finite, largest, difference = kernel().asymmetry(matrix)
    if not finite:
        raise ValueError(f"{name} contains NaN or infinity.")
    # Products X'X are symmetric up to rounding only.
    if difference > 1e-8 * largest:
        raise ValueError(f"{name} must be symmetric.")
    return matrix


def as_covariance(S: ArrayLike) -> np.ndarray:
    """Return a symmetric matrix with a diagonal that is not negative, or raise."""
    S = as_symmetric("S", S)
    if S.diagonal().min() < 0:
        raise ValueError(f"S has a negative diagonal entry at index {S.diagonal().argmin()}.")
    return S


def _penalty(lam: ArrayLike, p: int, penalize_diagonal: bool) -> np.ndarray:
    lam = np.asarray(lam, dtype=np.float64)
    if lam.ndim == 0:
        matrix = np.full((p, p), lam)
        if not penalize_diagonal:
            np.fill_diagonal(matrix, 0.0)
    else:
        matrix = as_symmetric("lam", lam)
        if matrix.shape != (p, p):
            raise ValueError(f"lam has shape {matrix.shape}, but S has shape {(p, p)}.")
    if not lam.min() >= 0 or not np.isfinite(lam.max()):
        raise ValueError("lam must be non-negative and finite.")
    return matrix


def _start(init: ArrayLike | PrecisionSolution, shape: tuple[int, ...]) -> np.ndarray:
    precision = init.precision if isinstance(init, PrecisionSolution) else init
    precision = as_symmetric("init", precision)
    if precision.shape != shape:
        raise ValueError(f"init has shape {precision.shape}, but S has shape {shape}.")
    return precision


def _check_diagonal(S, lam):
    diagonal = S.diagonal() + lam.diagonal()
    if diagonal.min() <= 0:
        raise ValueError(
            f"Unbounded: S has a zero on the diagonal at index {diagonal.argmin()} (a constant "
            "variable) and its diagonal is not penalised. Drop the variable or penalise it."
        )


def _check_bounded(S, lam):
    """Raise if nothing guarantees that the objective is bounded, and say why."""
    scale = np.sqrt(S.diagonal() + lam.diagonal())
    excess = (np.abs(S) - lam) / scale / scale[:, None]
    np.fill_diagonal(excess, 0.0)
    if excess.max() >= 1:
        i, j = np.unravel_index(excess.argmax(), S.shape)
        raise ValueError(
            f"Unbounded: variables {i} and {j} are perfectly correlated and lam does not make up "
            "for it. Raise lam there or drop one."
        )
    dual = S + np.diag(lam.diagonal())
    smallest = np.linalg.eigvalsh(dual)[0]
    rounding = 1e-10 * dual.diagonal().max()
    penalised = np.all((lam > 0) | np.eye(len(S), dtype=bool))
    if smallest < (-rounding if penalised else rounding):
        raise ValueError(
            "Unbounded, or too near to it: no positive-definite matrix was found within lam of S "
            f"(smallest eigenvalue of S {smallest:.2g}). Raise lam."
        )
