"""Modes of structured precision matrices as PyTensor operations, differentiable in the covariance and the rates."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytensor.tensor as pt

from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.core.tensors import as_float
from bayesstruct.data.names import nearest
from bayesstruct.precision.solvers.faces import solve_on_face
from bayesstruct.precision.solvers.structures import Blocks, Nodes, exact_mode, neighbours_of

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = [
    "StructuredMode",
    "blockwise_graphical_lasso",
    "locally_constant_graphical_lasso",
    "node_selection_graphical_lasso",
]


def node_selection_graphical_lasso(
    S: Any,
    n: Any,
    rate: Any,
    node_rate: Any,
    *,
    norm: str = "l2",
    diagonal_rate: Any = None,
    max_iter: int = 10_000,
) -> "TensorVariable":
    """Precision matrix that maximises the posterior density under a prior that isolates whole nodes.

    Same problem, prior and references as `bayesstruct.solvers.node_selection_graphical_lasso`.

    Parameters
    ----------
    S : tensor_like, shape (..., p, p)
        Covariance matrix, of which the symmetric part counts. May be batched.
    n : tensor_like
        Number of rows, a scalar.
    rate : tensor_like
        Rate of the off-diagonal elements, a scalar or a symmetric (p, p) matrix, whose diagonal is not used.
    node_rate : tensor_like
        Rate of the norm of each node's row: a scalar, or (p,).
    norm : {"l2", "linf"}
        Euclidean norm, or largest absolute value.
    diagonal_rate : tensor_like, optional
        Rate of the diagonal elements, a scalar; ``rate / 2`` unless given, and 0 where `rate` is a matrix.
    max_iter : int
        Maximum number of iterations of the splitting, which finds the zeros and ties.

    Returns
    -------
    TensorVariable, shape (..., p, p)
        The mode, to rounding; all NaN where an input is invalid or no mode was certified. Use the solver to see why.

    Notes
    -----
    The derivative is exact where no element is on the verge of leaving or entering the zeros and ties of the mode: this
    excludes a set of measure zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.ops import node_selection_graphical_lasso
    >>> S = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.1], [0.1, 0.1, 1.0]])
    >>> node_selection_graphical_lasso(S, 100, 2.0, 15.0).eval().round(3)
    array([[ 1.012, -0.179,  0.   ],
           [-0.179,  1.012,  0.   ],
           [ 0.   ,  0.   ,  0.98 ]])
    """
    S, n = _square(S), as_float(n)
    own = 2.0 * as_float(node_rate) / n * pt.ones(S.shape[-1:])
    structure = Nodes(_norm(norm, ("l2", "linf")))
    return _mode(structure, S, _rates(S, n, rate, diagonal_rate), own, max_iter)


def blockwise_graphical_lasso(
    S: Any,
    n: Any,
    blocks: Sequence[Any],
    rate: Any,
    block_rate: Any,
    *,
    norm: str = "l2",
    diagonal_rate: Any = None,
    max_iter: int = 10_000,
) -> "TensorVariable":
    """Precision matrix that maximises the posterior density if elements between two blocks of columns are zero together.

    Same problem, prior and references as `bayesstruct.solvers.blockwise_graphical_lasso`.

    Parameters
    ----------
    S : tensor_like, shape (..., p, p)
        Covariance matrix, of which the symmetric part counts. May be batched.
    n : tensor_like
        Number of rows, a scalar.
    blocks : sequence of length p
        Block of each column; constants.
    rate : tensor_like
        Rate of the off-diagonal elements within blocks, a scalar or a symmetric (p, p) matrix, of which other elements are not
        used.
    block_rate : tensor_like
        Rates of the norms between blocks: a scalar, which grows with the number of elements as that of the solver, or a
        symmetric matrix in the order of the sorted blocks.
    norm : {"l2", "linf", "nuclear"}
        Euclidean norm of the elements between two blocks, their largest absolute value, or the sum of their singular values.
    diagonal_rate, max_iter
        As in `node_selection_graphical_lasso`.

    Returns
    -------
    TensorVariable, shape (..., p, p)
        The mode, to rounding; all NaN where an input is invalid or no mode was certified. Use the solver to see why.

    Notes
    -----
    The derivative is exact where no element is on the verge of leaving or entering the zeros and ties of the mode, and no block
    on that of another rank: this excludes a set of measure zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.ops import blockwise_graphical_lasso
    >>> S = np.array([[1.0, 0.5, 0.3], [0.5, 1.0, 0.1], [0.3, 0.1, 1.0]])
    >>> blockwise_graphical_lasso(S, 100, ["a", "a", "b"], 5.0, 25.0).eval().round(3)
    array([[ 1.167, -0.5  ,  0.   ],
           [-0.5  ,  1.167,  0.   ],
           [ 0.   ,  0.   ,  0.952]])
    """
    S, n, block_rate = _square(S), as_float(n), as_float(block_rate)
    if np.ndim(blocks) != 1 or S.type.shape[-1] not in (None, len(blocks)):
        raise ValueError(
            f"blocks must hold the block of each of the {S.type.shape[-1] or 'p'} columns of S"
        )
    label = np.unique(np.asarray(blocks), return_inverse=True)[1]
    structure = Blocks(tuple(label.tolist()), _norm(norm, ("l2", "linf", "nuclear")))
    if block_rate.type.ndim == 0:
        own = block_rate * structure.growth()
    else:
        own = (0.5 * (block_rate + block_rate.T))[structure.pairs]
    within = (label[:, None] == label).astype(float)
    rates = within * _rates(S, n, rate, diagonal_rate)
    return _mode(structure, S, rates, 2.0 * own / n, max_iter)


def locally_constant_graphical_lasso(
    S: Any,
    n: Any,
    neighbours: Iterable[tuple[int, int]],
    rate: Any,
    smoothness: Any,
    *,
    diagonal_rate: Any = None,
    max_iter: int = 10_000,
) -> "TensorVariable":
    """Precision matrix that maximises the posterior density if neighbouring columns have equal elements in most places.

    Same problem, prior and references as `bayesstruct.solvers.locally_constant_graphical_lasso`.

    Parameters
    ----------
    S : tensor_like, shape (..., p, p)
        Covariance matrix, of which the symmetric part counts. May be batched.
    n : tensor_like
        Number of rows, a scalar.
    neighbours : iterable of pairs of int
        Pairs of columns that are next to each other in space or time; constants.
    rate : tensor_like
        Rate of the off-diagonal elements, a scalar or a symmetric (p, p) matrix, whose diagonal is not used.
    smoothness : tensor_like
        Rate of the differences between neighbours: a scalar, or one for each pair of neighbours, sorted and without repeats.
    diagonal_rate, max_iter
        As in `node_selection_graphical_lasso`.

    Returns
    -------
    TensorVariable, shape (..., p, p)
        The mode, to rounding; all NaN where an input is invalid or no mode was certified. Use the solver to see why.

    Notes
    -----
    The derivative is exact where no element is on the verge of leaving or entering the zeros and ties of the mode: this
    excludes a set of measure zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.ops import locally_constant_graphical_lasso
    >>> S = np.array([[1.0, 0.4, 0.5], [0.4, 1.0, 0.6], [0.5, 0.6, 1.0]])
    >>> locally_constant_graphical_lasso(S, 100, [(0, 1)], 5.0, 20.0).eval().round(3)
    array([[ 1.256, -0.173, -0.515],
           [-0.173,  1.256, -0.515],
           [-0.515, -0.515,  1.443]])
    """
    S, n = _square(S), as_float(n)
    structure = neighbours_of(neighbours, S.type.shape[-1])
    own = 2.0 * as_float(smoothness) / n * np.ones(len(structure.pairs))
    return _mode(structure, S, _rates(S, n, rate, diagonal_rate), own, max_iter)


def _square(S):
    """Tensor of the covariance matrix; raises if it is known not to be square."""
    S = as_float(S)
    if S.type.ndim < 2 or len({*S.type.shape[-2:]} - {None}) > 1:
        raise ValueError(f"S must be a covariance matrix, it has shape {S.type.shape}")
    return S


def _norm(norm, known):
    if norm not in known:
        raise ValueError(nearest("norm", norm, known))
    return norm


def _rates(S, n, rate, diagonal_rate):
    """Rates of all elements, of the objective divided by n / 2."""
    rate = as_float(rate)
    if diagonal_rate is None:
        diagonal_rate = 0.5 * rate if rate.type.ndim == 0 else 0.0
    eye = pt.eye(S.shape[-1])
    return ((1.0 - eye) * rate + eye * 2.0 * as_float(diagonal_rate)) / n


def _mode(structure, S, rates, own, max_iter):
    return cast("TensorVariable", Blockwise(StructuredMode(structure, max_iter))(S, rates, own))


class StructuredMode(InterpretedOp):
    """Mode of a precision matrix, given a covariance matrix, the rates of its elements and those of its structure."""

    __props__ = ("structure", "max_iter")
    gufunc_signature = "(p,p),(p,p),(g)->(p,p)"

    def __init__(self, structure, max_iter=10_000):
        self.structure, self.max_iter = structure, int(max_iter)

    def make_node(self, S, rates, own):
        """Apply to two matrices and a vector."""
        self.register()
        inputs = [as_float(x) for x in (S, rates, own)]
        if [x.type.ndim for x in inputs] != [2, 2, 1]:
            raise TypeError("a covariance and rates of elements are matrices, other rates a vector")
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=inputs[0].type.shape)])

    def infer_shape(self, node, input_shapes):
        """Shape of the covariance matrix."""
        return [input_shapes[0]]

    def compute(self, S, rates, own):
        """Solve; NaN where no mode was certified."""
        S, rates = 0.5 * (S + S.T), 0.5 * (rates + rates.T)
        finite = all(np.isfinite(x).all() for x in (S, rates, own))
        if finite and rates.min(initial=0.0) >= 0 and own.min(initial=0.0) >= 0:
            total = S + np.diag(rates.diagonal())
            if total.diagonal().min() > 0:
                off = rates - np.diag(rates.diagonal())
                K = exact_mode(self.structure, total, off, own, self.max_iter)
                if K is not None:
                    return K
        return np.full(S.shape, np.nan)

    def pullback(self, inputs, outputs, cotangents):
        """Implicit function theorem on the face of the solution."""
        if isinstance(cotangents[0].type, DisconnectedType):
            return [disconnected_type() for _ in inputs]
        return list(StructuredPullback(self.structure)(outputs[0], *inputs, cotangents[0]))


class StructuredPullback(InterpretedOp):
    r"""Cotangents of the three inputs of `StructuredMode`.

    On its face the mode obeys :math:`S - K^{-1} + R \circ \operatorname{sign} K + \sum_g t_g u_g = 0` with the gradients u of the norms.
    Its differential is :math:`M \, dK = -dS - dR \circ \operatorname{sign} K - \sum_g dt_g u_g`, M being the second derivative along the
    face: for a cotangent G of K and M X = G, those of S, R and t are :math:`-X`, :math:`-X \circ \operatorname{sign} K` and
    :math:`-\langle X, u_g \rangle`.
    """

    __props__ = ("structure",)
    gufunc_signature = "(p,p),(p,p),(p,p),(g),(p,p)->(p,p),(p,p),(g)"

    def __init__(self, structure):
        self.structure = structure

    def make_node(self, *inputs):
        """Shape the outputs like the inputs of the mode."""
        self.register()
        inputs = [as_float(x) for x in inputs]
        outputs = [pt.tensor(dtype="float64", shape=x.type.shape) for x in inputs[1:4]]
        return Apply(self, inputs, outputs)

    def infer_shape(self, node, input_shapes):
        """Shapes of the inputs of the mode."""
        return input_shapes[1:4]

    def compute(self, K, S, rates, own, G):
        """Solve the linear system of the implicit function theorem."""
        if not np.isfinite(K).all():
            return tuple(np.full(x.shape, np.nan) for x in (S, rates, own))
        S, rates = 0.5 * (S + S.T), 0.5 * (rates + rates.T)
        total, off = S + np.diag(rates.diagonal()), rates - np.diag(rates.diagonal())
        face = self.structure.face(K, off, own)
        X = -solve_on_face(face, np.linalg.inv(K), total, G)
        return X, X * np.sign(K), self.structure.collect(face.along(X))
