"""Posterior mode of a precision matrix under the spike-and-slab prior, as an Op."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytensor.tensor as pt

from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.tensor.blockwise import Blockwise

from bayesstruct.core.ops import SolverOp
from bayesstruct.core.tensors import as_float

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["graphical_spike_slab_mode", "log_odds"]


def _kernel():
    from bayesstruct.precision.kernels import spike_slab_mode as kernel

    return kernel


class GraphicalSpikeSlabMode(SolverOp):
    """Mode by conditional maximisation; see :func:`graphical_spike_slab_mode`."""

    __props__ = ("tol", "max_iter")
    gufunc_signature = "(p,p),(),(p,p),(),(),()->(p,p)"

    def __init__(self, tol=1e-9, max_iter=20_000):
        self.tol, self.max_iter = float(tol), int(max_iter)

    def make_node(self, *inputs):
        """Check the dimensions."""
        self.register()
        inputs = [as_float(x) for x in inputs]
        if [x.type.ndim for x in inputs] != [2, 0, 2, 0, 0, 0]:
            raise TypeError("scatter and log odds are matrices, n and the scales are scalars")
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=inputs[0].type.shape)])

    def perform(self, node, inputs, output_storage):
        """Solve."""
        output_storage[0][0] = _kernel().mode(*inputs, self.tol, self.max_iter)

    def infer_shape(self, node, input_shapes):
        """Shape of the scatter matrix."""
        return [input_shapes[0]]

    def pullback(self, inputs, outputs, cotangents):
        """Differentiate the vanishing gradient at the mode."""
        if isinstance(cotangents[0].type, DisconnectedType):
            return [disconnected_type() for _ in inputs]
        _, n, odds, spike, slab, _ = inputs
        return list(GraphicalSpikeSlabPullback()(outputs[0], n, odds, spike, slab, cotangents[0]))

    def numba_function(self, node):
        """Bind the options."""
        mode, tol, max_iter = _kernel().mode, self.tol, self.max_iter

        def graphical_spike_slab_mode(scatter, n, log_odds, spike, slab, rate):
            return mode(scatter, n, log_odds, spike, slab, rate, tol, max_iter)

        return graphical_spike_slab_mode


class GraphicalSpikeSlabPullback(SolverOp):
    """Cotangents of the six inputs of the mode."""

    __props__ = ()
    gufunc_signature = "(p,p),(),(p,p),(),(),(p,p)->(p,p),(),(p,p),(),(),()"

    def make_node(self, *inputs):
        """Shape the outputs like the inputs of the mode."""
        self.register()
        inputs = [as_float(x) for x in inputs]
        matrix = pt.tensor(dtype="float64", shape=inputs[0].type.shape).type
        outputs = [matrix(), pt.dscalar(), matrix(), *(pt.dscalar() for _ in range(3))]
        return Apply(self, inputs, outputs)

    def perform(self, node, inputs, output_storage):
        """Solve the linear system of the implicit-function theorem."""
        for storage, value in zip(output_storage, _kernel().pullback(*inputs), strict=True):
            storage[0] = np.asarray(value)

    def infer_shape(self, node, input_shapes):
        """Shapes of the inputs of the mode."""
        matrix = input_shapes[0]
        return [matrix, (), matrix, (), (), ()]

    def numba_function(self, node):
        """Return the kernel under a plain signature."""
        pullback = _kernel().pullback

        def graphical_spike_slab_pullback(precision, n, log_odds, spike, slab, cotangent):
            return pullback(precision, n, log_odds, spike, slab, cotangent)

        return graphical_spike_slab_pullback


def log_odds(probability: Any) -> np.ndarray:
    """Log odds of probabilities, ``-inf`` for 0 and ``inf`` for 1."""
    probability = np.asarray(probability, dtype="float64")
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(-probability)


def graphical_spike_slab_mode(
    scatter: Any,
    n: Any,
    log_odds: Any,
    *,
    spike_scale: Any = 0.02,
    slab_scale: Any = 1.0,
    diagonal_rate: Any = 0.5,
    tol: float = 1e-9,
    max_iter: int = 20_000,
) -> "TensorVariable":
    r"""Mode of a precision matrix under normal rows and the spike-and-slab prior.

    .. math::

        \max_{K \succ 0} \tfrac{n}{2} \log|K| - \tfrac12 \mathrm{tr}(S K)
            + \sum_{i<j} \log\left[\pi_{ij} N(k_{ij}; 0, v_1^2)
            + (1 - \pi_{ij}) N(k_{ij}; 0, v_0^2)\right] - d \sum_i k_{ii}

    It is the mode of the density of :class:`bayesstruct.GraphicalSpikeSlab` times the likelihood,
    the indicators summed out. The objective is not concave: the result is the local mode that
    conditional maximisation reaches from the identity, each coordinate taking the better of its
    spike and slab maxima on the way. With the default tolerance its gradient is below 1e-9 n; a
    caller that only wants a start may stop early with ``max_iter``.

    Parameters
    ----------
    scatter : tensor_like
        :math:`S`, (p, p), sum of outer products of the rows.
    n : tensor_like
        Number of rows.
    log_odds : tensor_like
        (p, p), log prior odds of each edge, :math:`\log \pi / (1 - \pi)`.
    spike_scale, slab_scale, diagonal_rate : tensor_like
        :math:`v_0`, :math:`v_1`, :math:`d`.
    tol : float
        Bound on the largest absolute element of the gradient over n.
    max_iter : int
        Bound on the sweeps over the columns.

    Returns
    -------
    TensorVariable
        (p, p). Leading dimensions of the inputs are batched; gradients are exact in every input.

    References
    ----------
    Wang, H. (2015), equations 3-5, for the density; Li, Z. and McCormick, T. (2019). An expectation
    conditional maximization approach for Gaussian graphical models. *Journal of Computational and
    Graphical Statistics* 28(4), for the idea of conditional maximisation.
    """
    op = Blockwise(GraphicalSpikeSlabMode(tol, max_iter))
    scales = (as_float(spike_scale), as_float(slab_scale), as_float(diagonal_rate))
    out = op(as_float(scatter), as_float(n), as_float(log_odds), *scales)
    return cast("TensorVariable", out)
