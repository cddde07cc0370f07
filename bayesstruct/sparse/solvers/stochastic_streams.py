"""Minibatches of tables that need not fit into memory, and what stochastic methods ask of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.sparse.penalties.l1 import L1
from bayesstruct.sparse.solvers.designs import as_design
from bayesstruct.sparse.solvers.losses import Logistic, Loss, loss_for
from bayesstruct.sparse.solvers.sparse import SparseSolution
from bayesstruct.sparse.solvers.stochastic_gaps import Judge

__all__ = [
    "Stream",
    "batch_loss",
    "check_positive",
    "compressed_rows",
    "kernel_kind",
    "l1_penalty",
    "minibatches",
    "touched_columns",
]


def minibatches(
    X: Any,
    y: Any,
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


class Stream:
    """Minibatches of a table or of a stream, with their checks and totals."""

    def __init__(self, X, y, family, penalty, n, intercept, size, passes, random_seed):
        batch_loss(family, np.zeros(1))  # is there such a family?
        self.family, self.penalty = family, penalty
        if y is None:
            if n is None:
                raise ValueError("give `n`, the number of rows behind the stream, or `y`")
            check_positive("n", n)
            if hasattr(X, "shape"):
                raise ValueError("give `y` with a table, or an iterable of (X, y) without it")
            self.n, self.p, self.intercept, self.judge = n, None, bool(intercept), None
            self._batches = (self._checked(*batch) for batch in X)
            return
        design, loss = as_design(X, intercept=intercept), loss_for(family, y)
        if n not in {None, design.n}:
            raise ValueError(f"`n` is {n}, but the table has {design.n} rows; leave it out")
        self.judge = Judge(design, loss, penalty)
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
        y = batch_loss(self.family, np.asarray(y)).y
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


def kernel_kind(family: str) -> int:
    """Code of a loss that the kernels know."""
    from bayesstruct.sparse.kernels import stochastic as kernels

    kinds = {"gaussian": kernels.GAUSSIAN, "logistic": kernels.LOGISTIC}
    if family not in kinds:
        raise ValueError(f'`family` must be "gaussian" or "logistic" here, not {family!r}')
    return kinds[family]


def batch_loss(family: str, y: ArrayLike) -> Loss:
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


def l1_penalty(penalty: L1 | None, rate: float | None) -> L1:
    """Return the penalty of a stochastic method, checked."""
    if penalty is None:
        if rate is None:
            raise ValueError("give a `rate`, or a `penalty` such as L1(rate)")
        return L1(rate)
    if not isinstance(penalty, L1):
        raise ValueError(f"stochastic methods take an L1 penalty, not {penalty!r}")
    return penalty if rate is None else penalty.with_rate(rate)


def check_positive(name: str, value: float) -> None:
    """Raise a `ValueError` unless a number is positive and finite."""
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"`{name}` must be positive, it is {value}")


def touched_columns(block: Any, intercept: bool) -> tuple:
    """Coefficients that a minibatch says something about, and its columns for them."""
    from scipy import sparse

    if not sparse.issparse(block):
        return slice(None), block
    columns, place = np.unique(block.indices, return_inverse=True)
    shape = (block.shape[0], len(columns))
    smaller = sparse.csr_array((block.data, place, block.indptr), shape=shape)
    return np.append(columns, block.shape[1]) if intercept else columns, smaller


def compressed_rows(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, columns and starts of the rows of a table."""
    if hasattr(X, "indptr"):
        return X.data, X.indices, X.indptr
    rows, p = X.shape
    columns = np.tile(np.arange(p, dtype=np.int32), rows)
    return np.ascontiguousarray(X).ravel(), columns, np.arange(0, rows * p + 1, p, dtype=np.int32)
