"""Compile in one process at a time, and say so.

Chains that run in parallel need the same functions. Whoever comes first compiles them, and the others wait and
load the machine code from the disk.
"""

import logging
import os
import tempfile
import time

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["only_here"]

#: A child of the logger of PyMC, so that the message appears where those of ``pm.sample`` do.
_LOG = logging.getLogger("pymc.bayesstruct")
_TOLD: set[str] = set()
_LONGEST_WAIT = 120.0  # seconds; then a process compiles for itself


@contextmanager
def only_here(family: str) -> Iterator[None]:
    """Hold the lock of compilations of this user, and log once that a family of functions is compiled.

    Parameters
    ----------
    family : str
        Part of the package.
    """
    with _lock():
        if family not in _TOLD:
            _TOLD.add(family)
            _LOG.info(
                "Compiling functions of %s, once on this machine (some seconds).",
                family,
            )
        yield


@contextmanager
def _lock() -> Iterator[None]:
    """Hold a lock that the system releases when the process ends; without one where there is none."""
    try:
        import fcntl

        user = getattr(os, "getuid", lambda: 0)()
        file = (Path(tempfile.gettempdir()) / f"bayesstruct-{user}.lock").open("a")
    except (ImportError, OSError):
        yield
        return
    with file:
        until = time.monotonic() + _LONGEST_WAIT
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:  # a file system without locks
                break
        yield
