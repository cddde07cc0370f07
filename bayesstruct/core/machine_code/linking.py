"""Call long compiled functions by their address, in place of a copy in each of their callers.

Numba copies the code of a function into every function that calls it, and optimises and translates
the whole anew at each level. For short functions that pays, because they become part of their
caller. For long ones it is most of the time that a first call takes. A function of this package that
is longer than `LONGEST_COPIED` is compiled once; its callers name a symbol, which is resolved
when their machine code is loaded, from memory or from the disk.
"""

import importlib
import sys

from copy import copy
from hashlib import sha256
from itertools import islice
from threading import local
from types import CodeType
from typing import Any

import llvmlite.binding as llvm

from numba.core import caching, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from bayesstruct.core.machine_code.compiling import only_here, say_compiling, say_progress

__all__ = ["LONGEST_COPIED", "LinkedDispatcher"]

#: Instructions of the longest function that is copied. Beyond some fifty the compiler seldom puts one into its caller.
LONGEST_COPIED = 60


class _State(local):
    """Functions that a thread is compiling, each for the one before it."""

    def __init__(self):
        self.functions: list[tuple[str, str]] = []


#: Module, name and argument types of the functions that have a symbol in this process.
_SYMBOLS: dict[str, tuple[str, str, tuple]] = {}
_STATE = _State()
_KEPT: list = []  # machine code that has a symbol must not be freed


class LinkedDispatcher(CPUDispatcher):
    """Compiled function that is called by its address where it is long."""

    def compile(self, sig):
        """Compile or load the function for some argument types, and give it a symbol if it is long."""
        args = tuple(getattr(sig, "args", sig))
        known = args in self.overloads or self._is_stored(sig)
        entry = super().compile(sig) if known else self._compile_here(sig)
        result = self.overloads.get(args)
        if result is not None and self._is_found():
            with global_compiler_lock:
                self._link(result, args)
        return entry

    def _compile_here(self, sig):
        """Compile the function unless another process does: then wait for it and load it from the disk."""
        module, name = function = self.py_func.__module__, self.py_func.__qualname__
        nested = bool(_STATE.functions)
        if function in _STATE.functions:  # it calls itself with other types
            return super().compile(sig)
        _STATE.functions.append(function)
        try:
            with global_compiler_lock, only_here(module, name):
                if not nested and not self._is_stored(
                    sig
                ):  # another process may have stored it just now
                    say_compiling(module)
                entry = super().compile(sig)
        finally:
            _STATE.functions.pop()
        if nested:
            say_progress(module)
        return entry

    def _is_stored(self, sig) -> bool:
        """Whether machine code for these argument types is on the disk."""
        cache: Any = getattr(self, "_cache", None)
        if not isinstance(cache, caching.Cache):
            return True  # nobody else could load it
        context: Any = self.targetctx
        key = cache._index_key(sig, context.codegen())
        return key in cache._cache_file._load_index()

    def _is_found(self) -> bool:
        """Whether this is the function that its module has under its name, not one that a test has made."""
        module = sys.modules.get(self.py_func.__module__)
        found = getattr(module, self.py_func.__qualname__, None)
        return found is self and self.py_func.__globals__ is vars(module)

    def get_call_template(self, args, kws):
        """Compile once for all values of a whole number or a truth value, not once for each constant."""
        kws = {name: types.unliteral(value) for name, value in kws.items()}
        return super().get_call_template([types.unliteral(value) for value in args], kws)

    def _link(self, result, args) -> None:
        """Let callers find a function by a symbol, if it is long and not known yet."""
        symbol = _symbol(self.py_func, result.signature)
        if symbol in _SYMBOLS or not _is_long(result):
            return
        address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
        llvm.add_symbol(symbol, address)
        _KEPT.append(result)
        _SYMBOLS[symbol] = (self.py_func.__module__, self.py_func.__qualname__, args)
        described = copy(result.fndesc)
        described.mangled_name = symbol
        self.targetctx.remove_user_function(result.entry_point)
        self.targetctx.insert_user_function(result.entry_point, described)


def _symbol(function, signature) -> str:
    """Name of a function; other types of arguments or result, or another body, are another name."""
    code = function.__code__
    body = repr((signature, code.co_code, code.co_names, [*map(_constant, code.co_consts)]))
    types = sha256(body.encode()).hexdigest()[:16]
    return f"bayesstruct.{function.__module__}.{function.__qualname__}.{types}"


def _constant(value) -> str:
    """Text of a constant that does not name an address."""
    return value.co_qualname if isinstance(value, CodeType) else repr(value)


def _is_long(result) -> bool:
    body = result.library._get_module_for_linking().get_function(result.fndesc.llvm_func_name)
    instructions = (one for block in body.blocks for one in block.instructions)
    return next(islice(instructions, LONGEST_COPIED, None), None) is not None


class _Needing:
    """Machine code on disk together with the functions that it calls by their address."""

    def __init__(self, symbols, code):
        self.needed, self.code = {symbol: _SYMBOLS[symbol] for symbol in symbols}, code

    def __reduce__(self) -> Any:
        return _provide, (self.needed, self.code)


def _provide(needed, code):
    """Return machine code once all that it calls is there.

    Raises
    ------
    OSError
        If a function is not what it was. Numba then compiles anew, as if the file were not there.
    """
    for symbol, (module, name, args) in needed.items():
        try:
            function = getattr(importlib.import_module(module), name, None)
            if isinstance(function, LinkedDispatcher):
                function.compile(args)
        except Exception as error:  # a module is gone, or a function has other arguments
            raise OSError(f"{module}.{name} cannot be loaded") from error
        if symbol not in _SYMBOLS:
            raise OSError(f"{module}.{name} has changed")
    return code


def _remember_needs(reduce, library_of):
    def reduced(self, data):
        code = reduce(self, data)
        called = [
            function.name
            for function in library_of(data)._final_module.functions
            if function.is_declaration and function.name in _SYMBOLS
        ]
        return _Needing(called, code) if called else code

    return reduced


def _install() -> None:
    """Store with the machine code of any function which of ours it needs."""
    results: Any = caching.CompileResultCacheImpl
    libraries: Any = caching.CodeLibraryCacheImpl
    if results.reduce.__module__ == __name__:
        return  # this module was loaded again
    results.reduce = _remember_needs(results.reduce, lambda data: data.library)
    libraries.reduce = _remember_needs(libraries.reduce, lambda data: data)


_install()
