r"""Stochastic methods: approximate modes from one column, or a few rows, of the table at a time.

.. math:: \min_{w, b} \; \sum_{i=1}^n \ell(y_i, x_i' w + b) + \sum_j \lambda_j |w_j|

For a table that fits into memory `bayesstruct.solvers.sparse_mode` is faster and exact. What is here
is for tables that do not: all but `stochastic_coordinate_descent` take an iterable of minibatches and
hold one of them at a time. Rates are those of the *summed* loss, the prior's; a method whose steps
see the average loss divides them by the number of rows n, which a stream has to be told.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.penalties import L1
from bayesstruct.solvers.designs import Design, as_design
from bayesstruct.solvers.losses import Logistic, loss_for
from bayesstruct.solvers.proximal_newton import Certifier, l1_problem
from bayesstruct.solvers.sparse import SparseSolution

__all__ = [
    "DualAveraging",
    "MirrorDescent",
    "adagrad_dual_averaging",
    "adagrad_mirror_descent",
    "minibatches",
    "smidas",
    "stochastic_coordinate_descent",
]

_CURVATURE = {"gaussian": 1.0, "logistic": 0.25}  # largest, of the loss of one row
_CHECK = 5  # passes over the columns between two looks at the gap
_PASSES = 1000
_MAX_NEWTON = 20
_ROWS = 256  # that a method whose steps are single rows reads at once


def stochastic_coordinate_descent(
    X: ArrayLike | Design,
    y: ArrayLike,
    *,
    family: str = "gaussian",
    penalty: L1 | None = None,
    rate: float | None = None,
    intercept: bool = True,
    curvature: str = "columns",
    tol: float | None = 1e-3,
    max_steps: int | None = None,
    start: SparseSolution | None = None,
    random_seed: int | np.random.Generator | None = None,
) -> SparseSolution:
    r"""Mode of a regression under Laplace priors, one random coordinate at a time.

    .. math:: P(w, b) = \sum_i \ell(y_i, x_i' w + b) + \sum_j \lambda_j |w_j|

    The mode under independent Laplace priors of rates :math:`\lambda_j`. No step size has to be
    chosen and the objective never rises. Use it for a rough answer on a table that is large but in
    memory, where the working sets of `sparse_mode` would hold most columns.

    Parameters
    ----------
    X : (n, p) array_like, DataFrame, scipy.sparse matrix, or Design
        Predictors; a `Design` brings its own intercept.
    y : (n,) array_like
        Responses, see `bayesstruct.solvers.losses.loss_for`.
    family : {"gaussian", "logistic"}
        Loss of a response; Gaussian responses have unit variance.
    penalty : L1, optional
        Minus the log prior; ``L1(rate)`` unless given.
    rate : float, optional
        Rate of the penalty, in place of its own.
    intercept : bool
        Add an unpenalised constant, one more coordinate.
    curvature : {"columns", "unit"}
        Bound on the curvature of the loss in a coordinate: from the squares of its column, or the
        source's, for predictors between -1 and 1, whose steps are shorter.
    tol : float, optional
        Stop when the duality gap, looked at now and then, is at most this times the loss without
        penalised coefficients. None: take `max_steps` steps, without a warning.
    max_steps : int, optional
        Most steps, 1,000 for each coordinate by default.
    start : SparseSolution, optional
        Warm start.
    random_seed : int or numpy.random.Generator, optional
        For the order of the coordinates.

    Returns
    -------
    SparseSolution
        The estimate with a certified gap; the iterations are steps.

    Raises
    ------
    ValueError
        If the table, the responses or the penalty cannot be used.

    Warns
    -----
    ConvergenceWarning
        If the gap is above `tol` after `max_steps` steps.

    Notes
    -----
    In the source the loss is averaged, so that its rate is ours over n. Theorem 1, in our units:
    after T steps from :math:`w_0` the expected error is at most
    :math:`d\,[\tfrac12 \sum_j B_j (w^*_j - w_{0j})^2 + P(w_0)] / (T + 1)`, with d coordinates and
    their curvatures bounded by :math:`B_j`. The source has :math:`B_j = n \beta`; its algorithm for
    other columns, :math:`B_j = \beta \sum_i x_{ij}^2`, follows by rescaling them.

    Corrected: the first branch of algorithm 2, which has to subtract the threshold too; the printed
    run times, a factor of 2 looser than the theorem, are not used.

    References
    ----------
    Shalev-Shwartz, S., Tewari, A. (2011). Stochastic methods for l1-regularized loss minimization.
    Journal of Machine Learning Research 12, 1865-1892: algorithms 1 and 2, theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.solvers.stochastic import stochastic_coordinate_descent
    >>> found = stochastic_coordinate_descent(
    ...     np.eye(3), [3.0, 0.2, -2.0], rate=1.0, intercept=False, random_seed=1
    ... )
    >>> found.coefficients
    array([ 2.,  0., -1.])
    """
    _kind(family)
    penalty = _l1(penalty, rate)
    design, loss = as_design(X, intercept=intercept), loss_for(family, y)
    judge = _Judge(design, loss, penalty)
    bound = _bounds(design, family, curvature)
    w = judge.certifier.null.copy()
    if start is not None:
        w[: judge.p], w[judge.p :] = start.coefficients, start.intercept
    rng = np.random.default_rng(random_seed)
    left = _PASSES * design.p if max_steps is None else max_steps
    chunk, taken = _CHECK * design.p, 0
    z = design.dot(w)
    while left > 0:
        order = rng.integers(design.p, size=min(chunk, left))
        _descend(design, loss, family, w, z, bound, judge.problem, order)
        taken, left = taken + len(order), left - len(order)
        z = design.dot(w)  # without the rounding of many small changes
        if tol is not None and judge.gap(w) <= tol * judge.certifier.null_objective:
            break
    solution = judge.solution(w, taken, "stochastic coordinate descent", tol)
    if tol is not None:
        solution.warn_unless_converged(
            "stochastic_coordinate_descent", "Raise `max_steps` or `tol`, or use `sparse_mode`."
        )
    return solution


def smidas(
    X: ArrayLike | Design | Iterable[tuple[ArrayLike, ArrayLike]],
    y: ArrayLike | None = None,
    *,
    step: float,
    family: str = "gaussian",
    penalty: L1 | None = None,
    rate: float | None = None,
    n: int | None = None,
    intercept: bool = True,
    power: float | None = None,
    passes: int = 10,
    average: bool = False,
    tol: float = 1e-3,
    random_seed: int | np.random.Generator | None = None,
) -> SparseSolution:
    r"""Approximate mode under Laplace priors by stochastic mirror descent made sparse.

    .. math:: \min_{w, b} \; \sum_{i=1}^n \ell(y_i, x_i' w + b) + \sum_j \lambda_j |w_j|

    The mode under independent Laplace priors of rates :math:`\lambda_j`, to the accuracy of
    stochastic steps: a few per cent. One step for each row; every step costs p operations, also on
    sparse rows. Its error grows with the logarithm of p only: use it for streams of dense rows with
    very many predictors of which few matter, and the AdaGrad methods otherwise. Thresholds are
    applied to the dual vector after every row, so coefficients whose rate is small beside the noise
    of single gradients do not stay at zero.

    Parameters
    ----------
    X : (n, p) array_like, DataFrame, scipy.sparse matrix, Design, or iterable of (X, y)
        A table, or, without `y`, minibatches of rows and their responses; a stream is read once.
    y : (n,) array_like, optional
        Responses of a table. Labels of a stream are 0 and 1.
    step : float
        Size of a step, for the loss of one row. The source tunes it over a grid; its proposition 4,
        with predictors between -m and m, suggests up to
        :math:`2 / ((\text{power} - 1) \rho e m^2)` with :math:`\rho` 2 for Gaussian responses (4 in
        the source, of which 2 suffice for half the square) and 1/2 for logistic ones.
    family : {"gaussian", "logistic"}
        Loss of a response; Gaussian responses have unit variance.
    penalty : L1, optional
        Minus the log prior; ``L1(rate)`` unless given.
    rate : float, optional
        Rate of the penalty, in place of its own.
    n : int, optional
        Rows of the whole data, needed for a stream: a row's share of the penalty is one nth. (The
        source's rate, of the average loss, is ours over n.)
    intercept : bool
        Add an unpenalised constant, moved by plain gradient steps.
    power : float, optional
        Of the norm that gives the geometry; :math:`\max(2, 2 \log p)` by default. At 2 it is
        stochastic gradient descent, truncated.
    passes : int
        Times that a table is read, each in a new random order.
    average : bool
        Return the average of the iterates: more accurate, not sparse.
    tol : float
        A table's solution counts as converged if its gap is at most this times the loss without
        penalised coefficients. No warning is given otherwise.
    random_seed : int or numpy.random.Generator, optional
        For the order of a table's rows.

    Returns
    -------
    SparseSolution
        For a table, with a certified gap. For a stream the gap is infinite, the gradient NaN, and
        the objective an estimate: n times the mean of the losses, each before its row was learned
        from, plus the penalty. The iterations are rows.

    Raises
    ------
    ValueError
        If the data cannot be used, or the steps diverge.

    Notes
    -----
    The source draws rows with replacement, and its theorem 3 is about a random iterate; a pass in
    random order is the custom now, and the last iterate is returned unless averaged.

    References
    ----------
    Shalev-Shwartz, S., Tewari, A. (2011). Stochastic methods for l1-regularized loss minimization.
    Journal of Machine Learning Research 12, 1865-1892: algorithm 3, equation 12.
    """
    from bayesstruct.kernels import stochastic as kernels

    kind = _kind(family)
    _check_positive("step", step)
    stream = _Stream(X, y, family, _l1(penalty, rate), n, intercept, _ROWS, passes, random_seed)
    constant = np.zeros(2 if stream.intercept else 0)
    theta = w = total = up = None
    loss, rows = 0.0, 0
    for block, responses in stream:
        if w is None:
            p = stream.p
            theta, w, total = np.zeros(p), np.zeros(p), np.zeros(p if average else 0)
            up, down = (r / stream.n for r in stream.penalty.rates(p))
            power = max(2.0, 2.0 * np.log(p)) if power is None else float(power)
            if power < 2:
                raise ValueError(f"`power` must be at least 2, it is {power}")
        data, columns, at = _compressed_rows(block)
        loss += kernels.mirror_rows(
            data, columns, at, responses, kind, theta, w, constant, power, step, up, down, total
        )
        rows += len(responses)
        stream.check(np.sum(w) + np.sum(constant[:1]))
    stream.check_any(rows)
    if average:
        w, constant = total / rows, constant[1:] / rows
    w = np.append(w, constant[:1])
    return stream.solution(w, loss / rows, rows, "stochastic mirror descent", tol)


def adagrad_mirror_descent(
    X: ArrayLike | Design | Iterable[tuple[ArrayLike, ArrayLike]],
    y: ArrayLike | None = None,
    *,
    step: float = 1.0,
    delta: float = 0.0,
    family: str = "gaussian",
    penalty: L1 | None = None,
    rate: float | None = None,
    n: int | None = None,
    intercept: bool = True,
    batch_size: int = 32,
    passes: int = 10,
    average: bool = False,
    tol: float = 1e-3,
    random_seed: int | np.random.Generator | None = None,
) -> SparseSolution:
    r"""Approximate mode under Laplace priors by AdaGrad's composite mirror descent.

    .. math:: \min_{w, b} \; \sum_{i=1}^n \ell(y_i, x_i' w + b) + \sum_j \lambda_j |w_j|

    The mode under independent Laplace priors of rates :math:`\lambda_j`, to the accuracy of
    stochastic steps: a few per cent. Each coefficient has a step of its own, which shrinks with the
    gradients that it has seen, so rare predictors learn as fast as common ones. Use it for streams
    and for tables on disk; with sparse minibatches a step costs what their entries cost. The last
    iterate is as noisy as the last steps are long, ten per cent of the loss at worst in
    ``benchmarks/stochastic.py``: average, or use `adagrad_dual_averaging`, which has exact zeros.

    Parameters
    ----------
    X : (n, p) array_like, DataFrame, scipy.sparse matrix, Design, or iterable of (X, y)
        A table, or, without `y`, minibatches of rows and their responses, see `minibatches`; a
        stream is read once, and one minibatch of it is held at a time.
    y : (n,) array_like, optional
        Responses of a table. Labels of a stream are 0 and 1.
    step : float
        Size of the first step of each coefficient, in units of coefficients: about the largest one
        expected.
    delta : float
        Added to the norm of the gradients of each coefficient, in units of the loss's gradient:
        damps the first steps.
    family : {"gaussian", "logistic", "poisson", "huber"}
        Loss of a response; Gaussian responses have unit variance.
    penalty : L1, optional
        Minus the log prior; ``L1(rate)`` unless given.
    rate : float, optional
        Rate of the penalty, in place of its own.
    n : int, optional
        Rows of the whole data, needed for a stream: a step sees the average loss of its minibatch
        and one nth of the penalty, the source's :math:`\lambda`.
    intercept : bool
        Add an unpenalised constant.
    batch_size : int
        Rows of a table that make a step.
    passes : int
        Times that a table is read, each in a new random order.
    average : bool
        Return the average of the iterates: what the regret bound is about, and not sparse.
    tol : float
        A table's solution counts as converged if its gap is at most this times the loss without
        penalised coefficients. No warning is given otherwise.
    random_seed : int or numpy.random.Generator, optional
        For the order of a table's rows.

    Returns
    -------
    SparseSolution
        For a table, with a certified gap. For a stream the gap is infinite, the gradient NaN, and
        the objective an estimate: n times the mean of the losses, each before its row was learned
        from, plus the penalty. The iterations are minibatches.

    Raises
    ------
    ValueError
        If the data cannot be used, or the steps diverge.

    References
    ----------
    Duchi, J., Hazan, E., Singer, Y. (2011). Adaptive subgradient methods for online learning and
    stochastic optimization. Journal of Machine Learning Research 12, 2121-2159: algorithm 1 with
    update 4 and the lazy update of section 5.1.

    Examples
    --------
    A stream of four minibatches of 50 rows:

    >>> import numpy as np
    >>> from bayesstruct.solvers.stochastic import adagrad_mirror_descent
    >>> rng = np.random.default_rng(1)
    >>> tables = (rng.standard_normal((50, 3)) for _ in range(4))
    >>> batches = ((X, X @ [1.0, 0.0, -1.0]) for X in tables)
    >>> found = adagrad_mirror_descent(batches, rate=1.0, n=200, intercept=False)
    >>> found.iterations, found.gap
    (4, inf)
    """
    return _adagrad(
        MirrorDescent,
        _Stream(X, y, family, _l1(penalty, rate), n, intercept, batch_size, passes, random_seed),
        step,
        delta,
        average,
        tol,
    )


def adagrad_dual_averaging(
    X: ArrayLike | Design | Iterable[tuple[ArrayLike, ArrayLike]],
    y: ArrayLike | None = None,
    *,
    step: float = 1.0,
    delta: float = 0.0,
    family: str = "gaussian",
    penalty: L1 | None = None,
    rate: float | None = None,
    n: int | None = None,
    intercept: bool = True,
    batch_size: int = 32,
    passes: int = 10,
    average: bool = False,
    tol: float = 1e-3,
    random_seed: int | np.random.Generator | None = None,
) -> SparseSolution:
    r"""Approximate mode under Laplace priors by AdaGrad's regularised dual averaging.

    .. math:: \min_{w, b} \; \sum_{i=1}^n \ell(y_i, x_i' w + b) + \sum_j \lambda_j |w_j|

    The mode under independent Laplace priors of rates :math:`\lambda_j`, to the accuracy of
    stochastic steps: a few per cent. It compares the *mean* gradient with the rate, not the last
    one: of the two AdaGrad methods it is the one whose last iterate has stable zeros. Otherwise as
    `adagrad_mirror_descent`.

    Parameters
    ----------
    X, y, family, penalty, rate, n, intercept, batch_size, passes, average, tol, random_seed
        As in `adagrad_mirror_descent`.
    step : float
        About the largest coefficient expected.
    delta : float
        Added to the norm of the gradients of each coefficient. The regret bound wants the largest
        gradient; the source's experiments take it small, as the default is.

    Returns
    -------
    SparseSolution
        As of `adagrad_mirror_descent`.

    Raises
    ------
    ValueError
        If the data cannot be used, or the steps diverge.

    Notes
    -----
    Corrected: the gradients in equations 3 and 19 are running means, whose bars the source's text
    has lost.

    References
    ----------
    Duchi, J., Hazan, E., Singer, Y. (2011). Adaptive subgradient methods for online learning and
    stochastic optimization. Journal of Machine Learning Research 12, 2121-2159: algorithm 1 with
    updates 3 and 19.
    """
    return _adagrad(
        DualAveraging,
        _Stream(X, y, family, _l1(penalty, rate), n, intercept, batch_size, passes, random_seed),
        step,
        delta,
        average,
        tol,
    )


def minibatches(
    X: ArrayLike,
    y: ArrayLike,
    *,
    size: int = 32,
    passes: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield random rows of a table, each row once in a pass, a few at a time.

    Parameters
    ----------
    X : (n, p) numpy.ndarray, numpy.memmap or scipy.sparse.csr_array
        Table; of one on disk only the rows at hand are read.
    y : (n,) array
        Responses.
    size : int
        Rows at a time; the last of a pass may be fewer.
    passes : int
        Passes over the table.
    random_seed : int or numpy.random.Generator, optional
        For the order.

    Yields
    ------
    (size, p) array, (size,) numpy.ndarray
        Rows in the order of the table, and their responses.
    """
    if size < 1 or passes < 1:
        raise ValueError(f"sizes and passes start at 1, they are {size} and {passes}")
    rng, n = np.random.default_rng(random_seed), X.shape[0]
    for _ in range(passes):
        order = rng.permutation(n)
        for at in range(0, n, size):
            rows = np.sort(order[at : at + size])
            yield X[rows], np.asarray(y[rows])


class _Adaptive(ABC):
    """What AdaGrad's two updates with diagonal matrices share."""

    def __init__(self, size, *, step, rates=0.0, delta=0.0, low=-np.inf, high=np.inf):
        self.step, self.rates, self.low, self.high = (
            np.broadcast_to(np.asarray(v, dtype=float), size) for v in (step, rates, low, high)
        )
        self.delta, self.time = delta, 0
        self.squares = np.zeros(size)

    @abstractmethod
    def point(self, index=slice(None)) -> np.ndarray:
        """Coefficients of the coming step."""

    def update(self, gradient: np.ndarray, index=slice(None)) -> None:
        """Take a step, the gradient being zero but for the coefficients ``index``."""
        self._prepare(index)
        self.squares[index] += gradient**2
        self._step(gradient, index)
        self.time += 1

    def _prepare(self, index):
        """Do what is overdue, before the norms of the gradients change."""

    @abstractmethod
    def _step(self, gradient, index): ...

    def _scale(self, index):
        """Step over the norm of the gradients; zero where none was seen."""
        H = self.delta + np.sqrt(self.squares[index])
        return np.divide(self.step[index], H, out=np.zeros_like(H), where=H > 0)

    def _shrink(self, v, threshold, index):
        x = np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)
        return np.clip(x, self.low[index], self.high[index]) + 0.0  # no negative zeros


class MirrorDescent(_Adaptive):
    r"""AdaGrad's composite mirror descent, with penalties that wait for their coefficient.

    .. math:: x_{t+1} = \arg\min_x \eta \langle g_t, x\rangle + \eta \varphi(x)
        + \tfrac12 (x - x_t)' H_t (x - x_t), \quad H_t = \delta I + \mathrm{diag}(\|g_{1:t,i}\|)

    with :math:`\varphi(x) = \sum_i \lambda_i |x_i|`. One at a time in a stream of gradients: `point`
    is where the next one is wanted, `update` takes it.

    Parameters
    ----------
    size : int
        Number of coefficients, all zero at first.
    step : float or (size,) array_like
        :math:`\eta`, in units of coefficients.
    rates : float or (size,) array_like
        :math:`\lambda_i`; every step has the penalty once.
    delta : float
        :math:`\delta`, added to the norms of the gradients.
    low, high : float or (size,) array_like
        Box around zero that the coefficients stay in.
    """

    def __init__(self, size, **options):
        super().__init__(size, **options)
        self._x = np.zeros(size)
        self._done = np.zeros(size, dtype=np.int64)  # steps that a coefficient has taken

    def point(self, index=slice(None)):
        """Coefficients of the coming step."""
        self._prepare(index)
        return self._x[index].copy()

    def _prepare(self, index):
        waiting = self.time - self._done[index]
        if np.any(waiting):
            threshold = waiting * self._scale(index) * self.rates[index]
            self._x[index] = self._shrink(self._x[index], threshold, index)
            self._done[index] = self.time

    def _step(self, gradient, index):
        scale = self._scale(index)
        moved = self._x[index] - scale * gradient
        self._x[index] = self._shrink(moved, scale * self.rates[index], index)
        self._done[index] = self.time + 1


class DualAveraging(_Adaptive):
    r"""AdaGrad's regularised dual averaging: only sums of gradients are kept.

    .. math:: x_{t+1} = \arg\min_x \eta \langle \bar g_t, x\rangle + \eta \varphi(x)
        + \tfrac1{2t} x' H_t x, \quad H_t = \delta I + \mathrm{diag}(\|g_{1:t,i}\|)

    with :math:`\varphi(x) = \sum_i \lambda_i |x_i|` and the mean gradient :math:`\bar g_t`. The
    parameters are those of `MirrorDescent`.
    """

    def __init__(self, size, **options):
        super().__init__(size, **options)
        self._sum = np.zeros(size)

    def point(self, index=slice(None)):
        """Coefficients of the coming step."""
        scale, t = self._scale(index), self.time
        return self._shrink(-scale * self._sum[index], scale * t * self.rates[index], index)

    def _step(self, gradient, index):
        self._sum[index] += gradient


def _adagrad(kind, stream, step, delta, average, tol):
    _check_positive("step", step)
    if not delta >= 0:
        raise ValueError(f"`delta` must not be negative, it is {delta}")
    learner = total = None
    loss, rows, steps = 0.0, 0, 0
    for table, responses in stream:
        if learner is None:
            size = stream.p + stream.intercept
            learner = kind(size, step=step, delta=delta, **stream.prior())
            total = np.zeros(size)
        batch = _batch_loss(stream.family, responses)
        touched, block = (slice(None), table) if average else _touched(table, stream.intercept)
        w = learner.point(touched)
        if average:
            total += w
        with np.errstate(over="ignore", invalid="ignore"):
            z = block @ w[:-1] + w[-1] if stream.intercept else block @ w
            loss += batch.value(z)
            slope = batch.derivative(z) / len(z)
            gradient = np.asarray(block.T @ slope)
            stream.check(gradient.sum() + loss)
        if stream.intercept:
            gradient = np.append(gradient, slope.sum())
        learner.update(gradient, touched)
        rows, steps = rows + len(z), steps + 1
    stream.check_any(rows)
    w = total / steps if average else learner.point()
    name = "dual averaging" if kind is DualAveraging else "mirror descent"
    return stream.solution(w, loss / rows, steps, f"AdaGrad {name}", tol)


class _Stream:
    """Minibatches of a table, or of someone else, with what the methods need to know of them."""

    def __init__(self, X, y, family, penalty, n, intercept, size, passes, random_seed):
        _batch_loss(family, np.zeros(1))  # is there such a family?
        self.family, self.penalty = family, penalty
        if y is None:
            if n is None:
                raise ValueError("give `n`, the number of rows behind the stream, or `y`")
            _check_positive("n", n)
            if hasattr(X, "shape"):
                raise ValueError("give `y` with a table, or an iterable of (X, y) without it")
            self.n, self.p, self.intercept, self.judge = n, None, bool(intercept), None
            self._batches = (self._checked(*batch) for batch in X)
            return
        design, loss = as_design(X, intercept=intercept), loss_for(family, y)
        if n not in {None, design.n}:
            raise ValueError(f"`n` is {n}, but the table has {design.n} rows; leave it out")
        self.judge = _Judge(design, loss, penalty)
        self.n, self.p, self.intercept = design.n, self.judge.p, design.intercept
        table = design.X.tocsr() if design.sparse else design.X
        self._batches = minibatches(
            table, loss.y, size=size, passes=passes, random_seed=random_seed
        )

    def __iter__(self):
        return iter(self._batches)

    def prior(self):
        """Rates of the loss of one row, and box, of all coefficients."""
        up, down = self.penalty.rates(self.p)
        rates, low = up / self.n, np.where(np.isinf(down), 0.0, -np.inf)
        if self.intercept:
            rates, low = np.append(rates, 0.0), np.append(low, -np.inf)
        return {"rates": rates, "low": low}

    def check(self, number):
        """Raise if the steps have led to numbers that are none."""
        if not np.isfinite(number):
            raise ValueError("the steps diverge; give a smaller `step` or scale the predictors")

    def check_any(self, rows):
        """Raise if the stream was empty."""
        if not rows:
            raise ValueError("the stream has no rows")

    def solution(self, w, mean_loss, iterations, method, tol):
        """Report of a table, with its gap, or of a stream, without."""
        self.check(w.sum())
        if self.judge is not None:
            return self.judge.solution(w, iterations, method, tol)
        coefficients = w[: self.p]
        return SparseSolution(
            objective=self.n * mean_loss + self.penalty.value(coefficients),
            gap=np.inf,
            iterations=iterations,
            converged=False,
            coefficients=coefficients,
            intercept=float(w[self.p]) if self.intercept else 0.0,
            rate=self.penalty.rate,
            method=method,
            gradient=np.full(self.p, np.nan),
        )

    def _checked(self, X, y):
        from scipy import sparse

        if sparse.issparse(X):
            X = sparse.csr_array(X, dtype=float)
            if not np.isfinite(X.data).all():
                raise ValueError("a sparse minibatch holds values that are not finite")
        else:
            X = as_design(X, intercept=False).X
        y = _batch_loss(self.family, np.asarray(y)).y
        if self.p is None:
            self.p = X.shape[1]
            if self.penalty.size not in {None, self.p}:
                raise ValueError(
                    f"the penalty is for {self.penalty.size} coefficients, the minibatches "
                    f"have {self.p} columns"
                )
        if X.shape != (len(y), self.p):
            raise ValueError(
                f"a minibatch has shape {X.shape} and {len(y)} responses; {self.p} columns "
                "and a response for each row are expected"
            )
        return X, y


class _Judge:
    """Certified gaps of anyone's coefficients under an l1 penalty.

    The bound holds for any coefficients; it is tight only near the mode, so that an answer within a
    per cent of the optimum may come with a gap of ten.
    """

    def __init__(self, design, loss, penalty):
        if loss.shape != (design.n,):
            raise ValueError(f"`X` has {design.n} rows, `y` has shape {loss.shape}")
        self.p, self.rate = design.p - design.intercept, penalty.rate
        self.problem = l1_problem(design, loss, penalty)
        self.certifier = Certifier(self.problem)
        free = np.flatnonzero(self.problem.free)
        block = design.columns(free) if len(free) else None
        self.free = block.toarray() if hasattr(block, "toarray") else block

    def gap(self, w):
        """Bound on the distance to the minimal objective."""
        return self._look(w)[1]

    def solution(self, w, iterations, method, tol):
        """Report with an honest gap."""
        objective, gap, gradient = self._look(w)
        return SparseSolution(
            objective=objective,
            gap=gap,
            iterations=iterations,
            converged=tol is not None and bool(gap <= tol * self.certifier.null_objective),
            coefficients=w[: self.p].copy(),
            intercept=float(w[self.p]) if self.problem.design.intercept else 0.0,
            rate=self.rate,
            method=method,
            gradient=gradient[: self.p],
        )

    def _look(self, w):
        design, loss = self.problem.design, self.problem.loss
        z = design.dot(w)
        derivative = loss.derivative(z)
        gradient = design.tdot(derivative)
        objective = loss.value(z) + self.problem.penalty(w)
        gap = self.certifier.gap(self.problem, w, objective, derivative, gradient)
        if self.free is not None and not loss.quadratic:
            # Far from its optimum, minus the derivative leaves the dual function's domain when made
            # orthogonal to the free columns; that of a predictor optimal along them stays inside.
            other = loss.derivative(self._refitted(z))
            other = self.certifier.gap(self.problem, w, objective, other, design.tdot(other))
            gap = min(gap, other)
        return objective, gap, gradient

    def _refitted(self, z):
        """Linear predictor with the best coefficients of the free columns, by Newton's method."""
        loss, F = self.problem.loss, self.free
        value = loss.value(z)
        for _ in range(_MAX_NEWTON):
            derivative, curvature = loss.derivative(z), loss.curvature(z)
            slope = F.T @ derivative
            if np.abs(slope).max() <= 1e-12 * np.abs(derivative).sum():
                break
            move = F @ np.linalg.lstsq(F.T @ (curvature[:, None] * F), -slope, rcond=None)[0]
            t = 1.0
            while (new := loss.value(z + t * move)) > value and t > 1e-6:
                t *= 0.5
            if new > value:
                break
            z, value = z + t * move, new
        return z


def _descend(design, loss, family, w, z, bound, problem, order):
    from bayesstruct.kernels import stochastic as kernels

    rest = (loss.y, _kind(family), w, z, bound, problem.up, problem.down, order)
    if design.sparse:
        X = design.X
        kernels.descend_sparse_columns(X.data, X.indices, X.indptr, *rest)
    else:
        kernels.descend_columns(design.X, *rest)


def _bounds(design, family, curvature):
    """Bounds on the curvature of the summed loss in each coordinate."""
    if curvature not in {"columns", "unit"}:
        raise ValueError(f'`curvature` must be "columns" or "unit", not {curvature!r}')
    X, beta = design.X, _CURVATURE[family]
    values = X.data if design.sparse else X
    if curvature == "unit":
        if np.abs(values).max(initial=0.0) > 1:
            raise ValueError('curvature="unit" needs predictors between -1 and 1')
        return np.full(design.p, beta * design.n)
    squares = np.asarray(X.multiply(X).sum(axis=0)).ravel() if design.sparse else (X**2).sum(axis=0)
    return beta * (np.append(squares, design.n) if design.intercept else squares)


def _kind(family):
    """Code of a loss that the kernels know."""
    from bayesstruct.kernels import stochastic as kernels

    kinds = {"gaussian": kernels.GAUSSIAN, "logistic": kernels.LOGISTIC}
    if family not in kinds:
        raise ValueError(f'`family` must be "gaussian" or "logistic" here, not {family!r}')
    return kinds[family]


def _batch_loss(family, y):
    """Loss of some rows, whose labels say nothing about those of the others."""
    if family not in {"gaussian", "logistic", "poisson", "huber"}:
        raise ValueError(
            f'`family` must be "gaussian", "logistic", "poisson" or "huber" here, not {family!r}'
        )
    if family != "logistic":
        return loss_for(family, y)
    y = np.asarray(y)
    if not np.isin(y, (0, 1)).all():
        raise ValueError("the labels of a stream must be 0 and 1")
    return Logistic(y.astype(float))


def _l1(penalty, rate):
    if penalty is None:
        if rate is None:
            raise ValueError("give a `rate`, or a `penalty` such as L1(rate)")
        return L1(rate)
    if not isinstance(penalty, L1):
        raise ValueError(f"stochastic methods take an L1 penalty, not {penalty!r}")
    return penalty if rate is None else penalty.with_rate(rate)


def _check_positive(name, value):
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"`{name}` must be positive, it is {value}")


def _touched(block, intercept):
    """Coefficients that a minibatch says something about, and its columns for them."""
    from scipy import sparse

    if not sparse.issparse(block):
        return slice(None), block
    columns, place = np.unique(block.indices, return_inverse=True)
    shape = (block.shape[0], len(columns))
    smaller = sparse.csr_array((block.data, place, block.indptr), shape=shape)
    return np.append(columns, block.shape[1]) if intercept else columns, smaller


def _compressed_rows(X):
    """Return values, columns and starts of the rows of a table."""
    if hasattr(X, "indptr"):
        return X.data, X.indices, X.indptr
    rows, p = X.shape
    columns = np.tile(np.arange(p, dtype=np.int32), rows)
    return np.ascontiguousarray(X).ravel(), columns, np.arange(0, rows * p + 1, p, dtype=np.int32)
