"""Random draws in compiled graphs that a Python function makes from a seed."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.graph.basic import Apply

from bayesstruct.core.ops import InterpretedOp

__all__ = ["SeededDraw", "batch_of", "seed_from", "seeded_draw"]


class SeededDraw(InterpretedOp):
    """An array of random numbers that a NumPy function draws from a seed.

    Parameters
    ----------
    distribution : object
        The distribution. ``distribution(rng, out, *params)`` fills `out`, of shape (draws, *shape), with draws
        that have the same parameters. It has the attributes ``shape``, of one draw, ``ndims``, the
        number of dimensions of each parameter without those of the batch, and ``dtype``. It must be
        hashable: Ops with equal distributions are equal.
    batch : int
        Number of dimensions before those of an element.
    """

    __props__ = ("distribution", "batch")

    def __init__(self, distribution, batch):
        self.distribution, self.batch = distribution, batch

    def make_node(self, seed, size, *params):
        """Apply the Op; `size` is a vector with one entry for each dimension of the batch."""
        self.register()
        inputs = [pt.as_tensor_variable(v) for v in (seed, size, *params)]
        shape = (*(None for _ in range(self.batch)), *self.distribution.shape)
        return Apply(self, inputs, [pt.tensor(dtype=self.distribution.dtype, shape=shape)])

    def infer_shape(self, node, input_shapes):
        """Return the shape of the draws."""
        size = node.inputs[1]
        return [(*(size[d] for d in range(self.batch)), *self.distribution.shape)]

    def compute(self, seed, size, *params):
        """Draw."""
        distribution, rng, size = (
            self.distribution,
            np.random.default_rng(int(seed)),
            tuple(map(int, size)),
        )
        out = np.zeros((*size, *distribution.shape), distribution.dtype)
        cores = [p.shape[p.ndim - k :] for p, k in zip(params, distribution.ndims, strict=True)]
        if all(p.size == np.prod(core) for p, core in zip(params, cores, strict=True)):
            params = (p.reshape(core) for p, core in zip(params, cores, strict=True))
            distribution(rng, out.reshape(-1, *distribution.shape), *params)
            return out
        batch = np.prod(size, dtype=int)
        params = [
            np.broadcast_to(p, (*size, *c)).reshape(batch, *c)
            for p, c in zip(params, cores, strict=True)
        ]
        flat = out.reshape(batch, *distribution.shape)
        for members in _equal_groups(params):
            drawn = np.zeros((len(members), *distribution.shape), distribution.dtype)
            distribution(rng, drawn, *(p[members[0]] for p in params))
            flat[members] = drawn
        return flat.reshape(out.shape)

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False]] * len(node.inputs)


def _equal_groups(params):
    """Group the elements of the batch that have the same parameters."""
    groups = {}
    for b in range(len(params[0])):
        groups.setdefault(tuple(p[b].tobytes() for p in params), []).append(b)
    return list(groups.values())


def seed_from(rng):
    """Return the next generator and a seed, as tensors."""
    return pt.random.integers(0, 2**62, rng=rng, return_next_rng=True)


def batch_of(size, params, ndims):
    """Return the shape of a batch as a vector, and its number of dimensions."""
    if rv_size_is_none(size):
        shapes = [tuple(p.shape)[: p.type.ndim - k] for p, k in zip(params, ndims, strict=True)]
        size = pt.broadcast_shape(*shapes, arrays_are_shapes=True) if params else ()
    lengths = [pt.as_tensor_variable(d, dtype="int64") for d in tuple(size)]
    return pt.stack(lengths) if lengths else pt.constant(np.empty(0, np.int64)), len(lengths)


def seeded_draw(distribution, rng, size, params):
    """Return the next generator and a batch of draws, as tensors.

    Parameters
    ----------
    distribution : object
        As of :class:`SeededDraw`.
    rng, size : Variable
        Generator, and shape of the batch, which may be none: then it is that of the parameters.
    params : sequence of TensorVariable
    """
    next_rng, seed = seed_from(rng)
    lengths, batch = batch_of(size, params, distribution.ndims)
    return next_rng, SeededDraw(distribution, batch)(seed, lengths, *params)
