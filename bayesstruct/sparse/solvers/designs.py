"""Design matrices, dense or sparse, seen by the solvers through a few products."""

from abc import ABC, abstractmethod

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.data.arguments import numbers, table_numbers, truth
from bayesstruct.sparse.solvers.quadratic import ColumnModel, GramModel

_FEW = 4  # gathering columns pays when at most one in so many has a coefficient
_OFF_CENTRE = 0.5  # standard deviations: columns whose mean is further from zero are centred
_DENSER = 8  # a row of the Gram matrix beats a sparse column this much longer: it is contiguous

__all__ = ["Design", "as_design", "centred"]


class Design(ABC):
    """An (n, p) matrix, followed by a column of ones when there is an intercept.

    Attributes
    ----------
    n, p : int
        Rows, and columns including the intercept.
    intercept : bool
        Whether the last column stands for the intercept.
    extra : int
        Number of coefficients at the end that are intercepts.
    names : sequence
        Labels of the columns, their numbers if they have none.
    """

    #: Whether most entries are zero and not stored.
    sparse = False

    def __init__(self, X, intercept: bool, names=None):
        self.X = X
        self.names = range(X.shape[1]) if names is None else names
        self.intercept = intercept
        self.n = X.shape[0]
        self.p = X.shape[1] + intercept
        self.extra = int(intercept)

    def dot(self, w: np.ndarray) -> np.ndarray:
        """Linear predictor of coefficients (p,) or (p, k)."""
        if not self.intercept:
            return self.X @ w
        return self.X @ w[:-1] + w[-1]

    def tdot(self, g: np.ndarray) -> np.ndarray:
        """Inner product of every column with ``g``, (n,) or (n, k)."""
        product = self.X.T @ g
        if not self.intercept:
            return product
        return np.concatenate([product, g.sum(axis=0, keepdims=True)])

    def by_columns(self, k: int) -> bool:
        """Whether ``k`` columns are swept faster one by one than through their Gram matrix."""
        return False

    def tdot_of(self, index: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Inner product of the columns in ``index`` with ``g``."""
        return np.asarray(self.columns(index).T @ g)

    def restricted(self, index: np.ndarray) -> "Design":
        """Return a design of some of the columns, and the intercept if there is one."""
        return type(self)(self.columns(index), self.intercept)

    @abstractmethod
    def columns(self, index: np.ndarray):
        """Columns as a matrix of the design's own kind."""

    def free_columns(self, index: np.ndarray) -> np.ndarray:
        """Columns as a dense matrix, for coefficients without penalty."""
        block = self.columns(index)
        return block.toarray() if hasattr(block, "toarray") else block

    def scaled(self, block, weights: np.ndarray):
        """Columns times a weight for each row."""
        return block * weights[:, None]

    def model(self, block, weights: np.ndarray, derivative: np.ndarray):
        """Quadratic model of a loss of these second and first derivatives in each row."""
        if self.by_columns(block.shape[1]):
            return ColumnModel.of(block, weights, derivative)
        return GramModel(self.gram(block, weights), np.asarray(block.T @ derivative))

    @abstractmethod
    def gram(self, block, weights: np.ndarray | None) -> np.ndarray:
        """Dense ``block' diag(weights) block`` of some columns."""

    @abstractmethod
    def cross(self, left, right) -> np.ndarray:
        """Dense ``left' right`` of two sets of columns."""


class _Dense(Design):
    def dot(self, w):
        inside = np.flatnonzero(w[: self.X.shape[1]]) if w.ndim == 1 else None
        if inside is None or _FEW * len(inside) > self.p:
            return super().dot(w)
        z = self.X[:, inside] @ w[inside]
        return z + w[-1] if self.intercept else z

    def columns(self, index):
        block = np.empty((self.n, len(index)), order="F")
        for k, j in enumerate(index):
            block[:, k] = 1.0 if self.intercept and j == self.p - 1 else self.X[:, j]
        return block

    def gram(self, block, weights):
        from scipy.linalg.blas import dsyrk

        if weights is not None:
            block = self.scaled(block, np.sqrt(weights))
        lower = dsyrk(1.0, block, trans=1, lower=1)
        return (lower + np.tril(lower, -1).T).T  # rows contiguous, as the sweeps want them

    def cross(self, left, right):
        return left.T @ right


class _Sparse(Design):
    sparse = True

    def dot(self, w):
        if w.ndim > 1:
            return super().dot(w)
        from bayesstruct.sparse.kernels.quadratic_l1 import predictor

        z = np.full(self.n, w[-1]) if self.intercept else np.zeros(self.n)
        predictor(self.X.data, self.X.indices, self.X.indptr, w[: self.X.shape[1]], z)
        return z

    def by_columns(self, k):
        return k > _DENSER * max(self.X.nnz / self.X.shape[1], 1.0)

    def columns(self, index):
        from scipy import sparse

        if not self.intercept or not np.any(index == self.p - 1):
            return self.X[:, index]
        inner = index < self.p - 1
        block = self.X[:, np.where(inner, index, 0)].tolil()
        block[:, np.flatnonzero(~inner)] = 1.0
        return sparse.csc_array(block)

    def scaled(self, block, weights):
        return block.multiply(weights[:, None]).tocsc()

    def gram(self, block, weights):
        return self.cross(block if weights is None else self.scaled(block, weights), block)

    def cross(self, left, right):
        return (left.T @ right).toarray()

    def tdot_of(self, index, g):
        return self.tdot(g)[index]


def as_design(X: ArrayLike | Design, *, intercept: bool) -> Design:
    """Check a table or a SciPy sparse matrix of predictors and wrap it.

    Dense columns are kept in Fortran order (a copy is made of anything else), in double precision.

    Parameters
    ----------
    X : (n, p) array_like, DataFrame, or scipy.sparse matrix
        Predictors; pandas (nullable types too) and polars tables are fine.
    intercept : bool
        Add a column of ones at the end, which stands for an unpenalised constant.

    Raises
    ------
    ValueError
        If an entry is not a finite number, naming its column.
    """
    if isinstance(X, Design):
        return X
    intercept = truth("intercept", intercept)
    from scipy import sparse

    if sparse.issparse(X):
        return _Sparse(_columns(X), intercept)
    dense, names = _dense(X)
    for j in np.flatnonzero(~np.isfinite(dense.sum(axis=0))):
        if not np.isfinite(dense[:, j]).all():  # a sum may overflow without that
            raise ValueError(
                f"column {names[j]!r} has missing or infinite values; leave out or impute those rows"
            )
    return _Dense(dense, intercept, names)


def _columns(X):
    """Check a sparse matrix and compress its columns."""
    from scipy import sparse

    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"the sparse design matrix has shape {X.shape}; give rows and columns")
    X = sparse.csc_array(X)
    numbers("the entries of the design matrix", X.data[:1])
    X = X.astype(float, copy=False)
    finite = np.isfinite(X.data.sum()) or np.isfinite(X.data)  # a sum may overflow without that
    bad = np.flatnonzero(~np.atleast_1d(finite))
    if len(bad):
        column = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        raise ValueError(
            f"column {column} of the sparse design matrix holds values that are not finite; "
            "leave out or impute those rows"
        )
    return X


def centred(design: Design) -> tuple[Design, np.ndarray | None]:
    r"""Subtract their means from columns that are far off zero, where a constant can make up for it.

    With :math:`\tilde X = X - 1 m'` the linear predictor :math:`X w + b` is :math:`\tilde X w +
    (b + m' w)`: the coefficients are the same, and the constant, which has no penalty, no longer
    moves whenever they do. Only columns with a mean of more than half a standard deviation change,
    which for a sparse column takes at least a fifth of its entries: filling it up is cheap.

    Parameters
    ----------
    design : Design
        Left as it is; dense columns are copied if any of them needs it.

    Returns
    -------
    design : Design
        The same one if there is nothing to do.
    means : (p,) numpy.ndarray or None
        Means that were subtracted, without an entry for the constant; None if none were.
    """
    X = design.X
    if not design.intercept:
        return design, None
    share = _OFF_CENTRE**2 / (1 + _OFF_CENTRE**2)
    with np.errstate(over="ignore", invalid="ignore"):  # sums of huge entries: left as they are
        means = np.asarray(X.mean(axis=0)).ravel()
        squares = X.multiply(X).sum(axis=0) if design.sparse else np.einsum("ij,ij->j", X, X)
        # mean^2 > c^2 variance, in a form whose rounding does not matter for large means
        far = means**2 > share * np.asarray(squares).ravel() / design.n
    if not far.any():
        return design, None
    means = np.where(far, means, 0.0)
    if design.sparse:
        return _Sparse(_centred_sparse(X, means), True), means
    X = X - means
    X[:, far & (np.ptp(design.X, axis=0) == 0)] = 0.0  # what rounding leaves of constant columns
    return _Dense(X, True, design.names), means


def _centred_sparse(X, means):
    from scipy import sparse

    far = np.flatnonzero(means)
    block = X[:, far].toarray()
    constant = np.ptp(block, axis=0) == 0
    block -= means[far]
    block[:, constant] = 0.0
    near = np.flatnonzero(means == 0)
    columns = sparse.hstack([X[:, near], sparse.csc_array(block)], format="csc")
    return columns[:, np.argsort(np.concatenate([near, far]))]


def _dense(X):
    """Double-precision Fortran array and the names of its columns."""
    if hasattr(X, "collect"):  # of polars
        raise ValueError("the design matrix is lazy; collect it first")
    labels = getattr(X, "columns", None)
    if labels is not None and hasattr(X, "to_numpy"):
        X = table_numbers(X)
    if np.ma.is_masked(X):
        raise ValueError("the design matrix has masked entries; leave out or impute such rows")
    X = np.asfortranarray(numbers("the entries of the design matrix", X))
    if X.ndim != 2:
        raise ValueError(
            f"the design matrix must have two dimensions, it has {X.ndim}; "
            "a single column is X.reshape(-1, 1)"
        )
    if 0 in X.shape:
        raise ValueError(f"the design matrix is empty, its shape is {X.shape}")
    return X, list(range(X.shape[1]) if labels is None else labels)
