"""Operations of PyTensor that run a solver or a compiled kernel, under every linker."""

import inspect

from functools import cache

import numpy as np

from pytensor.gradient import grad_undefined, pullback
from pytensor.graph.op import Op
from pytensor.tensor.random.type import RandomGeneratorType

__all__ = [
    "ExpressionOp",
    "InterpretedOp",
    "KernelOp",
    "SolverOp",
    "as_declared",
    "python_call",
    "register_rewrite",
    "version_of",
]


def register_rewrite(
    name: str, rewriter, position: float, tags: tuple[str, ...] = ("numba",)
) -> None:
    """Let PyTensor rewrite the graphs that it compiles, with Numba if nothing else is said; once in a process.

    Parameters
    ----------
    name : str
    rewriter : GraphRewriter
    position : float
        Among PyTensor's own: elementwise operations are fused at 49.
    tags : tuple of str
        PyTensor's names of the ways to compile for which it holds.
    """
    from pytensor.compile.mode import optdb

    name = f"bayesstruct_{name}"
    if name not in optdb:
        optdb.register(name, rewriter, *tags, position=position)


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
def _register(op_type: "type[SolverOp]") -> None:
    from pytensor.link.numba.dispatch import basic

    if not op_type.stored:

        @basic.register_funcify_and_cache_key(op_type)
        def funcify_anew(op, node, **_):
            return basic.numba_njit(op.numba_function(node)), None

        return

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

    #: Whether machine code of functions with this Op is kept on disk.
    stored = True

    def register(self) -> None:
        """Make the Op known to PyTensor's Numba linker."""
        _register(type(self))

    def numba_function(self, node):
        """Plain function of the inputs that Numba can compile; options bound in its closure."""
        raise NotImplementedError

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.register()


class KernelOp(SolverOp):
    """An Op that calls one compiled kernel and has no derivatives, unless a subclass gives them.

    Subclasses define ``kernel()``, which imports the kernel when it is needed first.
    """

    def kernel(self):
        """Return the compiled function of the inputs: it returns an array, or a tuple of them."""
        raise NotImplementedError

    def perform(self, node, inputs, output_storage):
        """Call the kernel."""
        found = self.kernel()(*inputs)
        found = (found,) if len(node.outputs) == 1 else found
        for storage, value in zip(output_storage, found, strict=True):
            storage[0] = value

    def numba_function(self, node):
        """Return the call of the kernel."""
        kernel = self.kernel()

        def call(*inputs):
            return kernel(*inputs)

        return call

    def pullback(self, inputs, outputs, cotangents):
        """Return that there are no derivatives."""
        reason = f"{type(self).__name__} has none"
        return [grad_undefined(self, i, v, reason) for i, v in enumerate(inputs)]

    def connection_pattern(self, node):
        """No output varies continuously with an input."""
        return [[False] * len(node.outputs)] * len(node.inputs)


class ExpressionOp(KernelOp):
    """An Op that stands for an expression, and computes it by a compiled kernel.

    Each operation of PyTensor that an expression consists of is compiled for itself; one kernel
    compiles in a fraction of the time. Subclasses define the kernel and the expression, from which
    derivatives and checksums of models are taken.
    """

    def definition(self, *inputs):
        """Return the expressions of the outputs in PyTensor's own operations."""
        raise NotImplementedError

    def pullback(self, inputs, outputs, cotangents):
        """Differentiate the expressions."""
        options = {"disconnected_inputs": "ignore", "return_disconnected": "disconnected"}
        return pullback(self.definition(*inputs), inputs, cotangents, **options)

    def connection_pattern(self, node):
        """All outputs depend on all inputs that are not whole numbers."""
        return [[v.type.dtype.startswith("float")] * len(node.outputs) for v in node.inputs]


def as_declared(found, dtypes: tuple):
    """Return arrays of these types, row by row, in which compiled code takes them to be; others as they are.

    Parameters
    ----------
    found : array, or tuple of arrays and others
    dtypes : tuple of str or None
        None for what is no array.
    """
    if len(dtypes) == 1:
        return np.asarray(found, dtype=dtypes[0], order="C") if dtypes[0] else found
    return tuple(as_declared(v, (dtype,)) for v, dtype in zip(found, dtypes, strict=True))


def python_call(compute, node):
    """Return a function for Numba that calls Python.

    Parameters
    ----------
    compute : callable
        Of the inputs; it is stored on the disk with the compiled code, so that it should be one of a module.
    node : Apply
        Its outputs say what `compute` returns.
    """
    import numba

    kinds = [_numba_type(v.type) for v in node.outputs]
    result = kinds[0] if len(kinds) == 1 else numba.types.Tuple(kinds)
    dtypes = tuple(getattr(v.type, "dtype", None) for v in node.outputs)

    def call(*inputs):
        with numba.objmode(out=result):
            out = as_declared(compute(*inputs), dtypes)
        return out

    return call


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
        return python_call(self.compute, node)
