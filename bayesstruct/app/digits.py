"""How the command line compiles PyTensor's functions."""

import contextlib

from collections.abc import Iterator

__all__ = ["same_digits"]


@contextlib.contextmanager
def same_digits() -> Iterator[None]:
    """Let PyTensor compile sums in the order in which they are written.

    With its default the last digits depend on whether machine code was compiled or loaded, and a run that was
    repeated, or continued, could have other draws. PyTensor stores machine code of both kinds side by side.
    """
    import pytensor

    with pytensor.config.change_flags(numba__fastmath=False):
        yield
