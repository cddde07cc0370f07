"""AdaGrad with composite penalties: a step length for each coefficient, from its own gradients."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.sparse.penalties.l1 import L1
from bayesstruct.sparse.solvers.designs import Design
from bayesstruct.sparse.solvers.sparse import SparseSolution
from bayesstruct.sparse.solvers.stochastic_streams import (
    Stream,
    batch_loss,
    check_positive,
    l1_penalty,
    touched_columns,
)

__all__ = [
    "DualAveraging",
    "MirrorDescent",
    "adagrad_dual_averaging",
    "adagrad_mirror_descent",
]


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
    and for tables on disk; the cost of a step on a sparse minibatch is proportional to its entries. The last
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
        Return the average of the iterates, to which the regret bound applies; it is not sparse.
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
    >>> from bayesstruct.solvers import optimizers
    >>> rng = np.random.default_rng(1)
    >>> tables = (rng.standard_normal((50, 3)) for _ in range(4))
    >>> batches = ((X, X @ [1.0, 0.0, -1.0]) for X in tables)
    >>> found = optimizers.adagrad_mirror_descent(batches, rate=1.0, n=200, intercept=False)
    >>> found.iterations, found.gap
    (4, inf)
    """
    return _adagrad(
        MirrorDescent,
        Stream(
            X, y, family, l1_penalty(penalty, rate), n, intercept, batch_size, passes, random_seed
        ),
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
        Added to the norm of the gradients of each coefficient. The regret bound needs the largest
        gradient; the experiments of the source use small values, as the default here.

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
        Stream(
            X, y, family, l1_penalty(penalty, rate), n, intercept, batch_size, passes, random_seed
        ),
        step,
        delta,
        average,
        tol,
    )


class _Adaptive(ABC):
    """Base of AdaGrad's two updates with diagonal matrices."""

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
        """Apply pending updates, before the norms of the gradients change."""

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
    check_positive("step", step)
    if not delta >= 0:
        raise ValueError(f"`delta` must not be negative, it is {delta}")
    learner = total = None
    loss, rows, steps = 0.0, 0, 0
    for table, responses in stream:
        if learner is None:
            size = stream.p + stream.intercept
            learner = kind(size, step=step, delta=delta, **stream.prior())
            total = np.zeros(size)
        batch = batch_loss(stream.family, responses)
        touched, block = (
            (slice(None), table) if average else touched_columns(table, stream.intercept)
        )
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
