"""Compile functions with Numba, and keep machine code on disk that is never older than its source.

Numba marks machine code on disk with a digest of the file of the function alone, but the code also
contains the functions that it calls. Here a function of this package is marked with a digest of its
own file and of all files of the package that this one imports, directly or not: an edit of any of
them makes the code on disk obsolete.

The code is in the cache folder of the user (`cache_folder`), which all copies of the package share, unless
``NUMBA_CACHE_DIR`` names another one. Where that cannot be written to, it is where Numba would put it.
"""

import errno
import hashlib
import os
import re

from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba

from numba.core import caching

from bayesstruct.core.machine_code.cache_folders import (
    entry,
    note_use,
    remove_unused,
    versions_folder,
    writable,
)
from bayesstruct.core.machine_code.linking import LinkedDispatcher

__all__ = [
    "cache_folder",
    "fused_inner",
    "fused_kernel",
    "inlined",
    "inner",
    "kernel",
    "numpy_inner",
    "numpy_kernel",
    "source_digest",
    "source_version",
    "vector_inner",
    "vector_kernel",
]

_ROOT = Path(__file__).resolve().parents[1]
#: Sources as they were when this module was loaded. Functions that were compiled from them must not
#: be stored under the mark of files that have changed since.
_SOURCES = {path: path.read_bytes() for path in _ROOT.rglob("*.py")}
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(bayesstruct[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)"
    r"|import[ \t]+(bayesstruct[\w.]*))",
    re.MULTILINE,
)

_INNER = {"no_cpython_wrapper": True}
#: Sums may be reordered, and multiplications and additions fused: loops over arrays vectorise.
_REORDERED = {"reassoc", "contract", "nsz"}


class _Cache(caching.FunctionCache):
    """Machine code on disk, which need not be writable once it is there."""

    def save_overload(self, sig, data):
        """Store machine code if that is possible."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOSPC):
                raise


def _options(**options):
    """Return a decorator that compiles a function with these options."""
    # Nobody calls these functions from C: without a wrapper for it they compile faster.
    options |= {"nogil": True, "no_cfunc_wrapper": True}
    compiled = numba.njit(cache=True, **options)
    if numba.config.DISABLE_JIT or "inline" in options:
        return compiled

    def decorate(function):
        try:
            dispatcher = compiled(function)
            dispatcher._cache.__class__ = _Cache
        except RuntimeError:  # no folder can be written to, or read
            dispatcher = numba.njit(**options)(function)
        dispatcher.__class__ = LinkedDispatcher
        return dispatcher

    return decorate


#: A function that Python calls. A division by zero raises, as in Python.
kernel = _options()
#: Likewise, but a division by zero gives infinity or NaN, as in NumPy: loops vectorise.
numpy_kernel = _options(error_model="numpy")
#: Likewise, with multiplications and additions fused: the same result on every call and faster.
fused_kernel = _options(fastmath={"contract"})
#: Likewise, with sums in any order.
vector_kernel = _options(error_model="numpy", fastmath=_REORDERED)
#: Functions that only compiled code calls: without a wrapper for Python they compile faster. A call
#: from Python ends the interpreter.
inner = _options(**_INNER)
numpy_inner = _options(error_model="numpy", **_INNER)
fused_inner = _options(error_model="numpy", fastmath={"contract"}, **_INNER)
vector_inner = _options(error_model="numpy", fastmath=_REORDERED, **_INNER)
#: Small functions that become part of their callers.
inlined = _options(inline="always")


def _files(module: str, names: str) -> list[Path]:
    """Files of a module and of those of the imported names that are modules themselves."""
    base = _ROOT.joinpath(*module.split(".")[1:])
    found = [base.with_suffix(".py"), base / "__init__.py"]
    words = re.findall(r"\w+", re.sub(r"\bas\s+\w+", "", names))
    found += [base / f"{word}.py" for word in words]
    return [path for path in found if path in _SOURCES or path.is_file()]


def _source(path: Path) -> bytes:
    return _SOURCES[path] if path in _SOURCES else path.read_bytes()


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Files of this package that a file imports."""
    found = []
    text = re.sub(r"#[^\n]*", "", _source(path).decode("utf-8"))  # a comment may hold a bracket
    for module, names, plain in _IMPORT.findall(text):
        found += _files(module or plain, names)
    return tuple(dict.fromkeys(found))


@cache
def source_digest(path: str) -> bytes:
    """Digest of a file and of all files of this package that it imports, directly or not.

    Parameters
    ----------
    path : str
        Python source file, of this package or another one.

    Returns
    -------
    bytes
        Of length 32.
    """
    reached, new = [], [Path(path).resolve()]
    while new:
        file = new.pop()
        if file not in reached:
            reached.append(file)
            new += _imports(file)
    digest = hashlib.sha256()
    for file in sorted(reached):
        digest.update(file.name.encode() + b"\0" + _source(file))
    return digest.digest()


def source_version(path: str) -> int:
    """Return the digest of a file and its imports as a whole number, as PyTensor asks for one."""
    return int.from_bytes(source_digest(path)[:7], "big")


class _PackageLocator:
    """Locator of functions of this package, whose mark is the digest of all that they call."""

    @classmethod
    def from_function(cls, py_func, py_file):
        path = Path(py_file).resolve()
        if not (path.is_file() and path.is_relative_to(_ROOT)):
            return None
        return super().from_function(py_func, py_file)

    def get_source_stamp(self):
        return source_digest(self._py_file)


class _SharedLocator(_PackageLocator, caching.UserWideCacheLocator):
    """Locator of machine code in the cache folder of the user, one folder for each digest."""

    def __init__(self, py_func, py_file):
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno
        path = Path(py_file).resolve().relative_to(_ROOT).with_suffix("")
        self._folder = entry(".".join(path.parts), source_digest(py_file))
        self._cache_path = str(self._folder)

    def ensure_cache_path(self):
        if self._folder is None:
            raise OSError("the user has no cache folder")
        if self._folder.is_dir() and not os.access(self._folder, os.W_OK):
            return  # as in the image of a cluster: what it holds is used
        if not self._folder.is_dir():
            remove_unused(self._folder.parents[1])
        super().ensure_cache_path()
        note_use(self._folder)


def cache_folder() -> Path:
    """Return the folder that holds the machine code of this package, in its subfolders."""
    settings: Any = numba.config
    if settings.CACHE_DIR and writable(Path(settings.CACHE_DIR)):
        return Path(settings.CACHE_DIR)
    shared = versions_folder()
    # Where the user's folder cannot be written to, the code is beside its source.
    return shared if shared is not None and writable(shared) else _ROOT


def _tolerant(load_index):
    """Let an index that names classes of another version count as empty, as one with an old mark."""

    @wraps(load_index)
    def load(self):
        try:
            return load_index(self)
        except (AttributeError, ImportError) as error:  # a class was renamed or moved since
            if "bayesstruct" not in str(error):
                raise
            return {}

    return load


def _install() -> None:
    """Let Numba ask the locators of this package before its own."""
    own: list = caching.CacheImpl._locator_classes
    if any(issubclass(locator, _PackageLocator) for locator in own):
        return
    by_file = [c for c in own if issubclass(c, caching._SourceFileBackedLocatorMixin)]
    ours = [type(f"Package{c.__name__.strip('_')}", (_PackageLocator, c), {}) for c in by_file]
    # After the folder that the user has named, which is the first of Numba; before all others.
    own[:0] = [ours[0], _SharedLocator, *ours[1:]]
    index: Any = caching.IndexDataCacheFile
    index._load_index = _tolerant(index._load_index)


_install()
