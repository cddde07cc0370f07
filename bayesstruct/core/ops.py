"""Operations of PyTensor that run a solver or a compiled kernel, under every linker."""

import inspect

from functools import cache

import numpy as np

from pytensor.graph.op import Op
from pytensor.tensor.random.type import RandomGeneratorType

__all__ = ["InterpretedOp", "SolverOp", "version_of"]


def version_of(op_type: type) -> int | None:
    """Return a number that changes with the source of an Op; PyTensor caches machine code by it.

    None, for no cache, where the class has no source file, as in an interactive session.
    """
    from bayesstruct.core.jit import source_version

    try:
        return source_version(inspect.getfile(op_type))
    except (OSError, TypeError):
        return None


@cache
def _register(op_type: type) -> None:
    from pytensor.link.numba.dispatch import basic

    @basic.register_funcify_default_op_cache_key(op_type)
    def funcify(op, node, **_):
        return basic.numba_njit(op.numba_function(node)), version_of(op_type)


def _numba_type(kind):
    """Type of Numba of an output that Python returns."""
    import numba

    if isinstance(kind, RandomGeneratorType):
        return numba.typeof(np.random.default_rng())
    return numba.types.Array(numba.from_dtype(np.dtype(kind.dtype)), kind.ndim, "C")


class SolverOp(Op):
    """An Op that runs the same kernels under every linker.

    Subclasses define `numba_function`, and call `register` in ``make_node``. Registration waits
    until a node is made, or an Op unpickled, so that importing bayesstruct does not import Numba.
    """

    def register(self) -> None:
        """Make the Op known to PyTensor's Numba linker."""
        _register(type(self))

    def numba_function(self, node):
        """Plain function of the inputs that Numba can compile; options bound in its closure."""
        raise NotImplementedError

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.register()


class InterpretedOp(SolverOp):
    """An Op whose compiled form calls back into Python.

    Subclasses define ``compute(*inputs)``, which returns the output, or a tuple of them, as arrays.

    Machine code that calls a large solver directly contains that solver, compiled again for every
    graph that it appears in (about a minute for the graphical lasso). A call back into Python costs
    some 20 microseconds, graphs compile at once, and kernels still release the lock. Unlike
    PyTensor's fallback to ``perform``, the compiled graph is cached.
    """

    def compute(self, *inputs):
        """Return the output, or a tuple of outputs, of these inputs."""
        raise NotImplementedError

    def perform(self, node, inputs, output_storage):
        """Compute the outputs in Python."""
        found = self.compute(*inputs)
        found = (found,) if len(node.outputs) == 1 else found
        for storage, value, out in zip(output_storage, found, node.outputs, strict=True):
            storage[0] = np.asarray(value, dtype=out.type.dtype)

    def numba_function(self, node):
        """Return the call back into Python."""
        import numba

        compute = self.compute
        kinds = [_numba_type(v.type) for v in node.outputs]
        result = kinds[0] if len(kinds) == 1 else numba.types.Tuple(kinds)

        def call(*inputs):
            with numba.objmode(out=result):
                out = compute(*inputs)
            return out

        return call
