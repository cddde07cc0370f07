"""Stochastic mirror descent made sparse (SMIDAS): one row at a time."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.sparse.penalties.l1 import L1
from bayesstruct.sparse.solvers.designs import Design
from bayesstruct.sparse.solvers.sparse import SparseSolution
from bayesstruct.sparse.solvers.stochastic_streams import (
    Stream,
    check_positive,
    compressed_rows,
    kernel_kind,
    l1_penalty,
)

__all__ = ["sparse_mirror_descent"]

_ROWS = 256  # read at once, though steps are single rows


def sparse_mirror_descent(
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
        source's rate, of the average loss, is this one over n.)
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
    from bayesstruct.sparse.kernels import stochastic as kernels

    kind = kernel_kind(family)
    check_positive("step", step)
    stream = Stream(
        X, y, family, l1_penalty(penalty, rate), n, intercept, _ROWS, passes, random_seed
    )
    constant = np.zeros(2 if stream.intercept else 0)
    theta: Any = None
    w: Any = None
    total: Any = None
    up: Any = None
    loss, rows = 0.0, 0
    for block, responses in stream:
        if w is None:
            p = stream.p
            theta, w, total = np.zeros(p), np.zeros(p), np.zeros(p if average else 0)
            up, down = (r / stream.n for r in stream.penalty.rates(p))
            power = max(2.0, 2.0 * np.log(p)) if power is None else float(power)
            if power < 2:
                raise ValueError(f"`power` must be at least 2, it is {power}")
        data, columns, at = compressed_rows(block)
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
