"""Compiled functions that are called by their address."""

import os
import subprocess
import sys

from types import FunctionType

import numpy as np
import pytest

#: A function too long to be copied, in one file, and its callers in another one.
CALLED = """
import numpy as np
from bayesstruct.core.jit import inner

@inner
def long(x, power):
    total = 0.0
    for i in range(x.size):
        if x[i] < 0.0:
            raise ValueError("negative")
        {terms}
    return total + power
"""
CALLERS = """
from bayesstruct.core.jit import inner, kernel
from called import long

@inner
def short(x):
    return long(x, 1) + 1.0

@kernel
def outer(x):
    return short(x) + long(x, 2)
"""
TERMS = "\n        ".join(f"total += np.sqrt(x[i] + {k}) * (x[i] // {k + 1})" for k in range(40))
PROGRAM = """
import numpy as np
from callers import outer
x = np.arange(5.0)
print(float(outer(x)))
loaded = sum(outer.stats.cache_hits.values())
print(loaded)
try:
    outer(-x)
except ValueError as error:
    print(error)
if not loaded:
    code = next(iter(outer.overloads.values())).library.get_llvm_str()
    print([line.split()[0] for line in code.splitlines() if "@bayesstruct.called.long" in line][-1:])
"""


@pytest.fixture
def run(tmp_path):
    """Run the program in a fresh process, with a cache of its own; return the lines that it prints."""

    def run(terms):
        (tmp_path / "called.py").write_text(CALLED.format(terms=terms))
        (tmp_path / "callers.py").touch()
        if not (tmp_path / "callers.py").read_text():
            (tmp_path / "callers.py").write_text(CALLERS)
            stamp = (tmp_path / "callers.py").stat()
            run.times = stamp.st_atime_ns, stamp.st_mtime_ns
        os.utime(tmp_path / "callers.py", ns=run.times)
        paths = os.pathsep.join([str(tmp_path), *filter(None, [os.getenv("PYTHONPATH")])])
        own = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **own, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def _value(terms):
    """Result of the functions as Python runs them."""
    space = {"inner": lambda f: f, "kernel": lambda f: f}
    for source in (CALLED.format(terms=terms), CALLERS):
        lines = [line for line in source.splitlines() if "import" not in line or "numpy" in line]
        exec("\n".join(lines), space)
    return float(space["outer"](space["np"].arange(5.0)))


@pytest.mark.chain
def test_a_long_function_is_declared_and_not_copied(run):
    value, loaded, error, line = run(TERMS)
    assert (float(value), loaded, error, line) == (_value(TERMS), "0", "negative", "['declare']")


@pytest.mark.chain
def test_code_on_disk_finds_what_it_calls(run):
    assert run(TERMS)[:3] == [str(_value(TERMS)), "0", "negative"]
    assert run(TERMS)[:3] == [str(_value(TERMS)), "1", "negative"]


@pytest.mark.chain
@pytest.mark.parametrize("terms", [TERMS + "\n        total += 0.5", "total += x[i]"])
def test_code_on_disk_is_not_used_when_what_it_calls_has_changed(run, terms):
    run(TERMS)
    assert run(terms)[:2] == [str(_value(terms)), "0"]


@pytest.mark.chain
def test_a_function_in_the_place_of_another_has_no_symbol(monkeypatch):
    from bayesstruct.core.jit import kernel
    from bayesstruct.core.machine_code import linking
    from bayesstruct.features.kernels import latent_features

    # The same name, module and body, but globals of its own.
    twin = FunctionType(
        latent_features.moments.py_func.__code__, {**vars(latent_features)}, "moments"
    )
    twin.__module__ = latent_features.__name__
    before = set(linking._SYMBOLS)
    monkeypatch.setattr(latent_features, "moments", kernel(twin))
    latent_features.moments(np.ones((2, 2), np.int8)[:, ::-1], np.ones((2, 3))[:, ::-1])
    assert not [name for name in set(linking._SYMBOLS) - before if "moments" in name]
    # The function itself has one, for the same types of arguments.
    monkeypatch.undo()
    latent_features.moments(np.ones((2, 2), np.int8)[:, ::-1], np.ones((2, 3))[:, ::-1])
    assert [name for name in set(linking._SYMBOLS) - before if "moments" in name]
