"""Where machine code is kept: in the cache folder of the user, for all copies of the package.

Each source file has a folder of its own for each version of Numba, LLVM and Python and for each
digest of its sources. Copies of the package with the same sources share it; others do not disturb it.
"""

import os
import shutil
import sys
import tempfile
import time
import uuid

from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

from numba.misc.appdirs import AppDirs

__all__ = ["UNUSED_DAYS", "entry", "note_use", "remove_unused", "versions_folder", "writable"]

#: Folders that were not used for so long are removed when a new one is made.
UNUSED_DAYS = 60
_DAY = 86_400.0


def versions_folder() -> Path | None:
    """Return the folder for these versions of Numba, LLVM, NumPy and Python; None if the user has no home."""
    root = Path(AppDirs("bayesstruct", appauthor=False).user_cache_dir)
    if not root.is_absolute():
        return None
    python = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
    versions = f"{numba.__version__}-{llvmlite.__version__}-{np.__version__}-{python}"
    return root / "numba" / f"{versions}{_settings()}"


def writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if it is absent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _settings() -> str:
    """Name of the settings of Numba that change the code and are not in its own key."""
    settings: Any = numba.config
    level = int(settings.OPT)  # its text is that of a class
    return f"-O{level}" * (level != 3) + "-checked" * bool(settings.BOUNDSCHECK)


def entry(module: str, digest: bytes) -> Path | None:
    """Return the folder of a source file.

    Parameters
    ----------
    module : str
        Name of its module, which only helps people to find it.
    digest : bytes
        Of the file and of all that it imports.
    """
    folder = versions_folder()
    return None if folder is None else folder / f"{module}-{digest[:12].hex()}"


@cache
def note_use(folder: Path) -> None:
    """Date a folder to today, which keeps it from being removed; once in a process."""
    try:
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)
    except OSError:
        pass  # read-only, or removed by another process just now: it is made again when needed


@cache
def remove_unused(root: Path) -> None:
    """Remove what was not used for `UNUSED_DAYS`, of all versions; once in a process.

    A process that reads such a folder at this moment finds files missing and compiles anew.

    Parameters
    ----------
    root : Path
        Parent of the folders of all versions.
    """
    oldest = time.time() - UNUSED_DAYS * _DAY
    for folder in root.glob("*/*"):
        try:
            if folder.stat().st_mtime < oldest:
                # Renamed first, so that no process finds half of a folder.
                doomed = folder.with_name(f"removed-{uuid.uuid4().hex}")
                folder.rename(doomed)
                shutil.rmtree(doomed, ignore_errors=True)
        except OSError:
            continue
