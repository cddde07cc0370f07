"""Compile each function in one process at a time, and say so.

Chains that run in parallel need the same functions. Whoever comes first to a function compiles it, and the others wait
and load the machine code from the disk. Processes that need different functions compile them at the same time.
"""

import logging
import tempfile
import time

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numba

from bayesstruct.core.machine_code.cache_folders import versions_folder

__all__ = ["LOCKS", "only_here", "say_compiling", "say_progress"]

#: A child of the logger of PyMC, so that the message appears where those of ``pm.sample`` do.
_LOG = logging.getLogger("pymc.bayesstruct")
#: Folder of the files that are locked.
LOCKS = "bayesstruct-locks"
_TOLD: set[str] = set()
_PAUSE = 5.0  # seconds between messages of one compilation
_LONGEST_WAIT = 120.0  # seconds; then a process compiles for itself, and does not wait again
_TITLES = {
    "classifiers": "classifiers",
    "features": "latent features",
    "fields": "Markov random fields",
    "graphs": "graphs",
    "mixtures": "mixtures",
    "neighbourhoods": "neighbourhoods",
    "networks": "Bayesian networks",
    "precision": "Gaussian graphs",
    "sem": "linear structural equations",
    "series": "time series",
    "sparse": "sparse regressions",
    "trees": "trees",
}


class _Progress:
    """How many functions this process has compiled, and when that was last said."""

    count = 0
    said = 0.0


class _Patience:
    """Whether this process still waits for others."""

    left = True


def say_compiling(module: str) -> None:
    """Log once that the functions of a family are compiled.

    Parameters
    ----------
    module : str
        That of a function.
    """
    if _say(
        module, "Compiling functions of {}, once on this machine (10 to 20 processor seconds)."
    ):
        _Progress.said = time.monotonic()


def say_progress(module: str) -> None:
    """Count a function that was compiled, and log the number every few seconds.

    Parameters
    ----------
    module : str
        That of the function.
    """
    _Progress.count += 1
    if _Progress.said and time.monotonic() - _Progress.said >= _PAUSE:
        _Progress.said = time.monotonic()
        family = _family(module)
        _LOG.info(
            f"Compiling{f' functions of {family}' if family else ''}: {_Progress.count} functions so far."
        )


def _say(module: str, message: str) -> bool:
    """Log a message about the family of a module, once; whether that was now."""
    family = _family(module)
    text = message.format(family)
    if not family or text in _TOLD:
        return False
    _TOLD.add(text)
    _LOG.info(text)
    return True


def _family(module: str) -> str:
    return _TITLES.get(".".join(module.split(".")[1:2]), "")


@contextmanager
def only_here(module: str, name: str) -> Iterator[None]:
    """Hold the lock of a function; without one where there is none.

    While the lock is held, those of the functions that this one calls may be taken. No circle of processes can wait for each
    other then, since functions do not call each other in circles.

    Parameters
    ----------
    module, name : str
        Of the function to be compiled.
    """
    file = _open(f"{module}.{name}")
    if file is None:
        yield
        return
    import fcntl

    with file:
        try:
            _wait(file, module)
            yield
        finally:
            # A child that was forked meanwhile holds the file open.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def _open(name: str) -> IO[str] | None:
    """Open the file that is locked for a function: beside the machine code, which all who share it see."""
    settings: Any = numba.config
    folder = Path(settings.CACHE_DIR) if settings.CACHE_DIR else versions_folder()
    try:
        import fcntl  # noqa: F401 (not on Windows)

        folder = (folder or Path(tempfile.gettempdir())) / LOCKS
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / f"{name.replace('<', '').replace('>', '')}.lock").open("a")
    except (ImportError, OSError):
        return None


def _wait(file: IO[str], module: str) -> None:
    """Take the lock, or give up after a while."""
    import fcntl

    until = time.monotonic() + _LONGEST_WAIT * _Patience.left
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                _Patience.left = False
                return
            _say(module, "Another process compiles functions of {}: waiting for it.")
            time.sleep(0.05)
        except OSError:  # a file system without locks
            return
