r"""One column of coefficients for each category, seen by the solvers as one long vector.

With k categories the linear predictor :math:`Z = X W` is (n, k). Here both are flattened row by row:
coefficient ``j k + c`` belongs to column j and category c, entry ``i k + c`` of the predictor to row
i. In a row with expected counts :math:`m_i` of :math:`t_i` trials the Hessian of the multinomial loss
is :math:`\mathrm{diag}(m_i) - m_i m_i' / t_i`, which couples the categories.
"""

import numpy as np

from bayesstruct.sparse.solvers.designs import Design
from bayesstruct.sparse.solvers.quadratic import ColumnModel, GramModel

__all__ = ["CategoryDesign"]

_DENSER = 2  # a Gram matrix beats factored columns with half as many non-zeros as it has rows


class CategoryDesign(Design):
    """The columns of a design once for each category.

    Parameters
    ----------
    base : Design
        Columns.
    k : int
        Number of categories.

    Attributes
    ----------
    n, p : int
        Entries of the predictor, and coefficients including the intercepts.
    extra : int
        Intercepts, one for each category or none; the last of the coefficients.
    """

    def __init__(self, base: Design, k: int):
        self.base, self.k = base, k
        self.intercept = base.intercept
        self.n, self.p, self.extra = base.n * k, base.p * k, base.extra * k

    def dot(self, w):
        """Linear predictor of flat coefficients."""
        return self.base.dot(w.reshape(-1, self.k)).ravel()

    def tdot(self, g):
        """Inner product of every column with ``g``, (n,) or (n, m)."""
        if g.ndim == 1:
            return np.asarray(self.base.tdot(g.reshape(-1, self.k))).ravel()
        return np.column_stack([self.tdot(column) for column in g.T])

    def columns(self, index):
        """Columns as a `_Block`."""
        return _Block(self.base, index // self.k, index % self.k, self.k)

    def free_columns(self, index):
        """Dense columns less their mean over the categories, which moves no probability."""
        base = self.base.free_columns(index // self.k)
        spread = np.eye(self.k)[index % self.k] - 1.0 / self.k
        return (base[:, None, :] * spread.T[None]).reshape(self.n, len(index))

    def model(self, block, weights, derivative):
        """Quadratic model of the loss; the weights are expected counts."""
        if not self.base.sparse or not self.base.by_columns(len(block.classes) // _DENSER):
            return GramModel(self.gram(block, weights), block.T @ derivative)
        return ColumnModel(*block.factored(weights, derivative))

    def gram(self, block, weights):
        """Second derivatives of the loss in some coefficients."""
        counts = weights.reshape(-1, self.k)
        root = counts / np.sqrt(counts.sum(axis=1, keepdims=True))
        scaled = [self.base.scaled(part, root[:, c]) for c, part in enumerate(block.parts)]
        Q = np.empty((len(block.classes), len(block.classes)))
        for c, at in enumerate(block.places):
            for d, other in enumerate(block.places[:c]):
                product = -self.base.cross(scaled[c], scaled[d])
                Q[np.ix_(at, other)], Q[np.ix_(other, at)] = product, product.T
            own = counts[:, c] * (1.0 - root[:, c] ** 2 / np.maximum(counts[:, c], _TINY))
            Q[np.ix_(at, at)] = self.base.gram(block.parts[c], own)
        return self._stiffened(Q, block)

    def cross(self, left, right):
        """Not needed: the loss has no constant curvature."""
        raise TypeError("columns of several categories have no products without weights")

    def _stiffened(self, Q, block):
        """Add the curvature that a shift of all intercepts lacks; no model prefers one."""
        ones = np.flatnonzero(block.columns >= self.base.p - self.base.extra)
        if len(ones) == self.k:
            Q[np.ix_(ones, ones)] += np.trace(Q) / len(Q) / self.k
        return Q


_TINY = np.finfo(float).tiny


class _Block:
    """Some columns of some categories, those of a category gathered.

    Attributes
    ----------
    columns, classes : (m,) numpy.ndarray of int
        Column and category of each coefficient.
    places : list of numpy.ndarray
        Which of the coefficients belong to each category.
    parts : list
        Their columns, in the design's own kind of matrix.
    """

    def __init__(self, base, columns, classes, k):
        self.base, self.columns, self.classes, self.k = base, columns, classes, k
        self.places = [np.flatnonzero(classes == c) for c in range(k)]
        self.parts = [base.columns(columns[at]) for at in self.places]

    def __matmul__(self, v):
        z = np.empty((self.base.n, self.k))
        for c, at in enumerate(self.places):
            z[:, c] = self.parts[c] @ v[at]
        return z.ravel()

    @property
    def T(self):
        """Return the transpose, to be multiplied with a vector."""
        return _Transposed(self)

    def factored(self, weights, derivative):
        r"""Return sparse B and r with ``B'B`` the second derivatives and ``B'r`` the gradient.

        A row's Hessian is :math:`R R'` with :math:`R = \mathrm{diag}(\sqrt m) (I - s s')` and
        :math:`s = \sqrt{m / t}`, and :math:`R (g / \sqrt m) = g` for g of sum zero.
        """
        from scipy import sparse

        A = self.base.columns(self.columns)
        root = np.sqrt(weights.reshape(-1, self.k))
        s = root / np.linalg.norm(root, axis=1, keepdims=True)
        classes = np.repeat(self.classes, np.diff(A.indptr))
        head = A.data * root[A.indices, classes]
        values = -(head * s[A.indices, classes])[:, None] * s[A.indices]
        values[np.arange(len(head)), classes] += head
        rows = A.indices[:, None].astype(np.int64) * self.k + np.arange(self.k)
        parts = values.ravel(), rows.ravel(), A.indptr.astype(np.int64) * self.k
        B = sparse.csc_array(parts, shape=(self.base.n * self.k, A.shape[1]))
        return B, derivative / root.ravel()


class _Transposed:
    def __init__(self, block):
        self.block = block

    def __matmul__(self, g):
        out = np.empty(len(self.block.classes))
        g = g.reshape(-1, self.block.k)
        for c, at in enumerate(self.block.places):
            out[at] = self.block.parts[c].T @ g[:, c]
        return out
