"""Draws of rows of states from a Markov random field, as an operation."""

import numpy as np
import pytensor.tensor as pt

from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.kernels.sampler import Sampler

__all__ = ["DrawStates"]


class DrawStates(InterpretedOp):
    """Rows of states from a seed: exactly or by Gibbs sampling, see :class:`bayesstruct.PairwiseMRF`.

    One call draws a whole table, since all rows share the tables that a draw needs.

    Parameters
    ----------
    potentials : Potentials
    sweeps : int
    batch : int
        Number of dimensions before that of a row.
    """

    __props__ = ("potentials", "sweeps", "batch")

    def __init__(self, potentials: Potentials, sweeps: int, batch: int):
        self.potentials, self.sweeps, self.batch = potentials, sweeps, batch

    def make_node(self, seed, bias, weight, size):
        """Apply the Op; `size` is a vector with one entry for each dimension of the batch."""
        self.register()
        inputs = [pt.as_tensor_variable(v) for v in (seed, bias, weight, size)]
        shape = (*(None for _ in range(self.batch)), self.potentials.p)
        return Apply(self, inputs, [pt.tensor(dtype="int64", shape=shape)])

    def infer_shape(self, node, input_shapes):
        """Shape of the rows."""
        size = node.inputs[3]
        return [(*(size[d] for d in range(self.batch)), self.potentials.p)]

    def compute(self, seed, bias, weight, size):
        """Draw."""
        rng, size = np.random.default_rng(int(seed)), tuple(map(int, size))
        draw = Sampler.of(self.potentials, self.sweeps)
        out = np.empty((*size, self.potentials.p), np.int64)
        if bias.size == bias.shape[-1] and weight.size == weight.shape[-1]:
            draw(rng, bias.reshape(-1), weight.reshape(-1), out.reshape(-1, self.potentials.p))
            return out
        bias = np.broadcast_to(bias, (*size, bias.shape[-1]))
        weight = np.broadcast_to(weight, (*size, weight.shape[-1]))
        for index in np.ndindex(*size):
            draw(rng, bias[index], weight[index], out[index][None])
        return out

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False]] * 4
