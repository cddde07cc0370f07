r"""The exact log partition function of a pairwise Markov random field, with its derivatives.

.. math::

    A(u, t) = \log \sum_x \exp\Bigl( \sum_i u_i(x_i) + \sum_{i<j} t_{ij}(x_i, x_j) \Bigr)

Its gradient is the vector of marginal probabilities of states and of pairs of states, its Hessian their
covariance (Wainwright and Jordan 2008, proposition 3.1).
"""

from typing import TYPE_CHECKING, cast

import numpy as np
import pytensor.tensor as pt

from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.fields.kernels.exact_sums import ExactSums
from bayesstruct.fields.kernels.potentials import Potentials

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

__all__ = ["CovarianceProduct", "LogPartition", "log_partition", "tables"]


def tables(bias, weight, potentials):
    """Unary and pair tables of log-potentials, flat, from biases and weights.

    Parameters
    ----------
    bias, weight : tensor_like, shapes (biases,) and (weights,)
    potentials : Potentials

    Returns
    -------
    tuple of TensorVariable
    """
    bias = _vector("bias", bias, potentials, potentials.bias_size)
    weight = _vector("weight", weight, potentials, potentials.weight_size)
    index, coefficient = potentials.unary_map
    if (coefficient[:, 1] == 0).all():
        unary = coefficient[:, 0] * bias[pt.as_tensor_variable(index[:, 0])]
    else:
        unary = (coefficient * bias[pt.as_tensor_variable(index)]).sum(axis=1)
    index, coefficient = potentials.pair_map
    return unary, coefficient * weight[pt.as_tensor_variable(index)]


def _vector(name, value, potentials, size):
    """Return a vector, or raise if its length is wrong: its elements are looked up by position."""
    value = pt.as_tensor_variable(value)
    if value.type.ndim != 1 or value.type.shape[0] not in (None, size):
        raise ValueError(
            f"`{name}` has shape {value.type.shape}; {potentials.kind} potentials of "
            f"{potentials.p} variables need ({size},)"
        )
    return pt.specify_shape(value, (size,))


def log_partition(
    bias: "TensorVariable | ArrayLike", weight: "TensorVariable | ArrayLike", potentials: Potentials
) -> "TensorVariable":
    """Logarithm of the sum over all joint states, exactly.

    Parameters
    ----------
    bias, weight : tensor_like, shapes (biases,) and (weights,)
        Of the potentials.
    potentials : Potentials
        If they have `edges`, variables are summed out one by one along these if that is cheaper
        than enumeration of all joint states: for a chain, a tree or a narrow grid of any length.

    Returns
    -------
    TensorVariable
        Scalar. Its derivatives, of first and second order, are exact.

    Raises
    ------
    ValueError
        If biases or weights have the wrong length; if there are too many joint states to enumerate, and
        the edges are not given or too many to sum variables out along them.

    References
    ----------
    Wainwright, M. J. and Jordan, M. I. (2008). Graphical models, exponential families, and
    variational inference. *Foundations and Trends in Machine Learning* 1, 1-305.

    Dechter, R. (1999). Bucket elimination: a unifying framework for reasoning. *Artificial
    Intelligence* 113, 41-85.

    Examples
    --------
    Two independent fair coins:

    >>> from bayesstruct.fields.kernels.potentials import Potentials
    >>> float(log_partition([0.0, 0.0], [0.0], Potentials("ordinal", (2, 2))).eval())
    1.3862943611198906

    A chain of a hundred:

    >>> chain = Potentials("ordinal", (2,) * 100, edges=tuple((i, i + 1) for i in range(99)))
    >>> float(log_partition([0.0] * 100, [0.0] * 99, chain).eval()).__round__(4)
    69.3147
    """
    outputs = LogPartition(potentials.states, potentials.edges)(*tables(bias, weight, potentials))
    return cast("list[TensorVariable]", outputs)[0]


class _Exact(InterpretedOp):
    """Base of the two operations, with the numbers of states and the edges."""

    __props__ = ("states", "edges")

    def __init__(self, states, edges=None):
        self.states, self.edges = tuple(map(int, states)), edges

    @property
    def sums(self) -> ExactSums:
        """Method of summation; not a property, by which the Op is pickled and compared."""
        return ExactSums.of(self)

    def _check(self, *inputs):
        inputs = [pt.as_tensor_variable(v).astype("float64") for v in inputs]
        if any(v.type.ndim != 1 for v in inputs):
            raise TypeError("the tables of a Markov random field must be vectors")
        return inputs


class LogPartition(_Exact):
    """Log partition function, and the marginals that are its gradient.

    Parameters
    ----------
    states : tuple of int
        Number of states of each variable.
    edges : tuple of pairs of int, optional
        The pairs i < j that have tables; all of them by default.

    Raises
    ------
    ValueError
        If the sum takes too long.
    """

    def __init__(self, states, edges=None):
        super().__init__(states, edges)
        _ = self.sums  # raises if it takes too long

    def make_node(self, unary, pair):
        """Apply the Op."""
        self.register()
        unary, pair = self._check(unary, pair)
        return Apply(self, [unary, pair], [pt.dscalar(), unary.type(), pair.type()])

    def infer_shape(self, node, input_shapes):
        """Shapes of a number and of the two tables."""
        return [(), *input_shapes]

    def compute(self, unary, pair):
        """Sum over the states."""
        if not (np.isfinite(unary).all() and np.isfinite(pair).all()):
            return np.asarray(np.nan), np.full(unary.shape, np.nan), np.full(pair.shape, np.nan)
        value, of_unary, of_pair = self.sums.marginals(unary, pair)
        return np.asarray(value), of_unary, of_pair

    def connection_pattern(self, node):
        """All outputs depend on all inputs."""
        return [[True, True, True], [True, True, True]]

    def pullback(self, inputs, outputs, cotangents):
        """Marginals, and their covariance times the cotangents of the marginals."""
        value, *of_marginals = cotangents
        totals = [0.0, 0.0]
        if not isinstance(value.type, DisconnectedType):
            totals = [value * outputs[1], value * outputs[2]]
        if not all(isinstance(c.type, DisconnectedType) for c in of_marginals):
            directions = [
                pt.zeros_like(x) if isinstance(c.type, DisconnectedType) else c
                for c, x in zip(of_marginals, inputs, strict=True)
            ]
            changes = CovarianceProduct(self.states, self.edges)(*inputs, *directions)
            totals = [a + b for a, b in zip(totals, changes, strict=True)]
        return totals


class CovarianceProduct(_Exact):
    """Derivative of the marginals in a direction of the tables."""

    def make_node(self, unary, pair, d_unary, d_pair):
        """Apply the Op."""
        self.register()
        inputs = self._check(unary, pair, d_unary, d_pair)
        return Apply(self, inputs, [inputs[0].type(), inputs[1].type()])

    def infer_shape(self, node, input_shapes):
        """Shapes of the two tables."""
        return list(input_shapes[:2])

    def compute(self, *inputs):
        """Sum over the states."""
        return self.sums.covariance_product(*inputs)

    def pullback(self, inputs, outputs, cotangents):
        """Symmetric in the directions; without derivatives of third order."""
        if all(isinstance(c.type, DisconnectedType) for c in cotangents):
            return [disconnected_type() for _ in inputs]
        back = CovarianceProduct(self.states, self.edges)(*inputs[:2], *cotangents)
        reason = "third derivatives of the log partition function"
        third = [grad_not_implemented(self, i, inputs[i], reason) for i in range(2)]
        return [*third, *back]
