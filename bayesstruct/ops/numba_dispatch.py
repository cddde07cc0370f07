"""What Ops around a solver share: lazy Numba dispatch that is cached on disk."""

import zlib

from functools import cache
from pathlib import Path

from pytensor.graph.op import Op

__all__ = ["SolverOp", "source_version", "through_interpreter"]


@cache
def source_version(*paths: str) -> int:
    """Checksum of source files.

    PyTensor caches machine code by graph and by an integer, not by our source: an integer that
    follows the source is what keeps an edited kernel from being ignored.
    """
    code = 0
    for path in paths:
        code = zlib.crc32(Path(path).read_bytes(), code)
    return code


@cache
def _register(op_type: type) -> None:
    from pytensor.link.numba.dispatch import basic

    @basic.register_funcify_default_op_cache_key(op_type)
    def funcify(op, **_):
        return basic.numba_njit(op.numba_function()), source_version(*op.source_files())


def through_interpreter(function, options):
    """Numba-compilable call of ``function(a, b, *options)``, a matrix from two matrices.

    Machine code that calls a large solver directly contains that solver, compiled again for every
    graph it appears in (about a minute for the graphical lasso). Through the interpreter a call
    costs some 20 microseconds, graphs compile at once, and the kernels still release the lock.
    Unlike PyTensor's fallback to ``perform``, the compiled graph is cached.
    """
    import numba

    matrix = numba.types.float64[:, ::1]

    def call(a, b):
        with numba.objmode(result=matrix):
            result = function(a, b, *options)
        return result

    return call


class SolverOp(Op):
    """An Op that runs the same kernels under every linker.

    Subclasses define `numba_function` and `source_files`, and call `register` in ``make_node``.
    Registration waits until a node is made, or an Op unpickled, so that importing bayesstruct
    does not import Numba.
    """

    def register(self) -> None:
        """Make the Op known to PyTensor's Numba linker."""
        _register(type(self))

    def numba_function(self):
        """Plain function of the inputs that Numba can compile; options bound in its closure."""
        raise NotImplementedError

    def source_files(self) -> tuple[str, ...]:
        """Files whose change must invalidate cached machine code."""
        raise NotImplementedError

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.register()
