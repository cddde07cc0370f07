r"""The mode of a pairwise Markov random field as an operation, differentiable in rows and rate.

On the active set A the mode obeys :math:`\sum_m c_m g_m + \lambda \nabla \Omega = 0`, g being the
gradients of the negative log-likelihood of the rows. With H the Hessian of the objective, a cotangent
:math:`\bar\theta` gives, for :math:`v = H_{AA}^{-1} \bar\theta_A`,

.. math:: \bar c_m = -v' g_{m,A}, \qquad \bar\lambda = -v' \nabla\Omega_A .
"""

from typing import TYPE_CHECKING, cast

import numpy as np
import pytensor.tensor as pt

from pytensor.gradient import DisconnectedType, grad_undefined
from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.fields.kernels.potentials import Potentials

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

__all__ = ["PairwiseMode", "pairwise_mrf_mode"]


def pairwise_mrf_mode(
    counts: "TensorVariable | ArrayLike",
    rate: "TensorVariable | float",
    *,
    codes: "ArrayLike",
    potentials: Potentials,
    norm: float | str = 2,
    likelihood: str = "pseudo",
    tol: float = 1e-9,
) -> "list[TensorVariable]":
    r"""Mode of biases and weights of a Markov random field under a (group-)Laplace prior.

    .. math::

        \min_{b, w} \; -\sum_m c_m \log p(x^m \mid b, w) + \lambda \sum_{i<j} \|w_{ij}\|

    Parameters
    ----------
    counts : tensor_like, shape (n,)
        :math:`c`, multiplicities or weights of the rows: ones, or the weights of a Bayesian bootstrap.
    rate : tensor_like, scalar
        :math:`\lambda`, the rate of the prior.
    codes : (n, p) array_like of int
        States of the rows, counted from 0.
    potentials : Potentials
    norm : {2, 1, numpy.inf, "nuclear"}
        With the last two the operation is an initialiser only: it has no derivative, and a request for
        one raises.
    likelihood : {"pseudo", "exact"}
    tol : float
        Residual, relative to the number of rows, at which the active set is taken as final; Newton
        steps on it follow, down to rounding (norms 1 and 2).

    Returns
    -------
    list of TensorVariable
        Biases and weights; NaN where counts or rate are negative or not finite.

    Raises
    ------
    ValueError
        If an option is unknown or the codes are not states of the potentials.

    Notes
    -----
    For tables of some tens of variables: Newton steps and derivatives need the Hessian of all
    active parameters.

    The derivatives are exact if no edge is about to leave or enter, which excludes a
    set of measure zero. Full potentials under norm 1 have flat directions (entries of tables can be moved
    into biases); there the mode is not unique, and the derivative is that of the smallest change.

    References
    ----------
    Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis,
    University of British Columbia, chapter 5.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.fields.kernels.potentials import Potentials
    >>> codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]])
    >>> potentials = Potentials("ordinal", (2, 2))
    >>> bias, weight = pairwise_mrf_mode(np.ones(4), 100.0, codes=codes, potentials=potentials)
    >>> weight.eval().tolist()
    [0.0]
    """
    mode = PairwiseMode(_Rows(codes), potentials, norm, likelihood, tol)
    return list(cast("list[TensorVariable]", mode(counts, rate)))


class _Rows:
    """A table of states; as a property of an Op, equal to itself only."""

    def __init__(self, codes):
        self.codes = np.asarray(codes, np.int64)
        if self.codes.ndim != 2:
            raise ValueError(f"`codes` must be a table of states, it has shape {self.codes.shape}")


class PairwiseMode(InterpretedOp):
    """Mode of a Markov random field; see `pairwise_mrf_mode`."""

    __props__ = ("rows", "potentials", "norm", "likelihood", "tol")

    def __init__(self, rows, potentials: Potentials, norm, likelihood, tol):
        from bayesstruct.fields.solvers.likelihoods import likelihood_for
        from bayesstruct.fields.solvers.modes import NORMS

        if norm not in NORMS:
            raise ValueError(f"`norm` must be one of {NORMS}, it is {norm!r}")
        top = np.array(potentials.states)
        codes = rows.codes
        if codes.shape[1] != len(top) or (codes < 0).any() or (codes >= top).any():
            raise ValueError(
                "every entry of `codes` must be a state of the potentials, counted from 0"
            )
        likelihood_for(likelihood, potentials, codes[:1])  # raises if it is unknown or too large
        single = potentials.weight_size == len(potentials.ends[0])
        self.rows, self.potentials, self.likelihood = rows, potentials, likelihood
        self.norm, self.tol = 1 if single else norm, float(tol)

    def make_node(self, counts, rate):
        """Apply the Op."""
        self.register()
        counts = pt.as_tensor_variable(counts).astype("float64")
        rate = pt.as_tensor_variable(rate).astype("float64")
        if counts.type.ndim != 1 or rate.type.ndim != 0:
            raise TypeError("`counts` is a vector, `rate` a number")
        sizes = (self.potentials.bias_size, self.potentials.weight_size)
        return Apply(self, [counts, rate], [pt.tensor(dtype="float64", shape=(s,)) for s in sizes])

    def infer_shape(self, node, input_shapes):
        """Numbers of biases and of weights."""
        return [(self.potentials.bias_size,), (self.potentials.weight_size,)]

    def _problem(self, counts):
        from bayesstruct.fields.solvers.likelihoods import likelihood_for

        return likelihood_for(self.likelihood, self.potentials, self.rows.codes, counts)

    def compute(self, counts, rate):
        """Solve."""
        from bayesstruct.fields.solvers.curvature import polish
        from bayesstruct.fields.solvers.modes import solve_field

        potentials = self.potentials
        good = np.isfinite(counts).all() and (counts >= 0).all() and counts.sum() > 0
        if not (good and np.isfinite(rate) and rate >= 0 and len(counts) == len(self.rows.codes)):
            return np.full(potentials.bias_size, np.nan), np.full(potentials.weight_size, np.nan)
        solution = solve_field(
            self.rows.codes,
            potentials,
            norm=self.norm,
            rate=float(rate),
            likelihood=self.likelihood,
            bias_ridge=0.0,
            tol=self.tol,
            counts=counts,
        )
        if self.norm not in (1, 2):
            return solution.bias, solution.weight
        likelihood = self._problem(counts)
        bias, weight, _, _ = polish(
            likelihood, self.norm, float(rate), solution.bias, solution.weight
        )
        return bias, weight

    def pullback(self, inputs, outputs, cotangents):
        """Apply the implicit-function theorem on the active set."""
        if self.norm not in (1, 2):
            reason = f"modes under norm {self.norm!r} are starting values without derivatives"
            return [grad_undefined(self, i, inputs[i], reason) for i in range(2)]
        given = [
            pt.zeros_like(o) if isinstance(c.type, DisconnectedType) else c
            for c, o in zip(cotangents, outputs, strict=True)
        ]
        return PairwiseModePullback(self)(*inputs, *outputs, *given)


class PairwiseModePullback(InterpretedOp):
    """Cotangents of counts and rate from those of biases and weights."""

    __props__ = ("mode",)

    def __init__(self, mode: PairwiseMode):
        self.mode = mode

    def make_node(self, *inputs):
        """Apply the Op to counts, rate, the mode and its cotangents."""
        self.register()
        inputs = [pt.as_tensor_variable(v) for v in inputs]
        return Apply(self, inputs, [inputs[0].type(), inputs[1].type()])

    def infer_shape(self, node, input_shapes):
        """Shapes of counts and rate."""
        return input_shapes[:2]

    def compute(self, counts, rate, bias, weight, of_bias, of_weight):
        """Solve the linear system."""
        from bayesstruct.fields.solvers.curvature import penalty_gradient, polish, solve_symmetric

        op, first = self.mode, len(bias)
        if np.isnan(bias).any():
            return np.full_like(counts, np.nan), np.asarray(np.nan)
        likelihood = op._problem(counts)
        _, _, at, matrix = polish(likelihood, op.norm, float(rate), bias, weight, steps=0)
        v = np.zeros(first + len(weight))
        v[at] = solve_symmetric(matrix, np.concatenate([of_bias, of_weight])[at])
        of_counts = likelihood.row_scores(bias, weight) @ v
        of_rate = -(v[first:] @ penalty_gradient(op.potentials, op.norm, weight))
        return of_counts[likelihood.row_of], np.asarray(of_rate)
