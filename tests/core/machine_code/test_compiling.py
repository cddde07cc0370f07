"""One process compiles a function at a time."""

import json
import logging
import os
import re
import subprocess
import sys
import threading
import time

from pathlib import Path

import pytest

from bayesstruct.core.machine_code import compiling


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A lock that no other process holds."""
    monkeypatch.setattr(compiling.numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling._Patience, "left", True)


def test_a_second_one_waits_for_the_first():
    # Two openings of the file exclude each other, in one process as in two.
    spans = []

    def hold():
        with compiling.only_here("bayesstruct.fields.kernels", "f"):
            began = time.monotonic()
            time.sleep(0.2)
            spans.append((began, time.monotonic()))

    both = [threading.Thread(target=hold) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(timeout=20)
    first, second = sorted(spans)
    assert second[0] >= first[1]


def test_other_functions_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(compiling, "_LONGEST_WAIT", 10.0)
    with compiling.only_here("bayesstruct.fields.kernels", "f"):
        began = time.monotonic()
        for module, name in (
            ("fields.kernels", "g"),
            ("series.kernels", "f"),
            ("fields", "a.<locals>.f"),
        ):
            with compiling.only_here(f"bayesstruct.{module}", name):
                pass
        assert time.monotonic() - began < compiling._LONGEST_WAIT  # which a wait takes


FUNCTIONS = """
from bayesstruct.core.jit import kernel

@kernel
def shared(x):
    return x + 1.0

@kernel
def first(x):
    return shared(x)

@kernel
def second(x):
    return 2.0 * shared(x)
"""
PROGRAM = """
import json, os, sys, time
from pathlib import Path
from numba.core import event
import functions

name, shared_begins = sys.argv[1], Path("shared begins")

class Spans(event.Listener):
    begun, ended = {}, {}

    def on_start(self, event):
        function = event.data["dispatcher"].py_func.__name__
        self.begun[function] = time.time()
        if (name, function) == ("first", "shared"):
            shared_begins.touch()
            while not Path("second begins").exists():
                time.sleep(0.02)
            time.sleep(0.5)
        elif function == "second":
            Path("second begins").touch()

    def on_end(self, event):
        self.ended[event.data["dispatcher"].py_func.__name__] = time.time()

spans = Spans()
event.register("numba:compile", spans)
while name == "second" and not shared_begins.exists():
    time.sleep(0.02)
result = getattr(functions, name)(1.0)
print(json.dumps([result, spans.begun, spans.ended]))
"""


@pytest.mark.chain
def test_two_processes_compile_at_once_but_no_function_twice(tmp_path):
    # The first waits in the middle of `shared` until the second has begun its own function.
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, name],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("first", "second")
    ]
    try:
        texts = [process.communicate(timeout=100)[0] for process in both]
    finally:
        for process in both:
            process.kill()
    (one, begun, ended), (other, begun_there, _) = map(json.loads, texts)
    assert (one, other) == (2.0, 4.0)
    assert set(begun) == {"first", "shared"}
    assert set(begun_there) == {"second"}
    assert begun_there["second"] < ended["shared"]


def test_nobody_waits_forever_and_not_twice(monkeypatch):
    monkeypatch.setattr(compiling, "_LONGEST_WAIT", 0.3)
    module = "bayesstruct.fields.kernels"
    with compiling.only_here(module, "f"):
        for least, most in ((0.3, 5.0), (0.0, 0.2)):
            began = time.monotonic()
            with compiling.only_here(module, "f"):
                waited = time.monotonic() - began
            assert least <= waited < most


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_that_was_forked_meanwhile_does_not_keep_the_lock(tmp_path):
    program = """
import os, signal, time
from bayesstruct.core.machine_code.compiling import only_here
with only_here("bayesstruct.fields.kernels", "f"):
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
began = time.monotonic()
with only_here("bayesstruct.fields.kernels", "f"):
    print(time.monotonic() - began)
os.kill(child, signal.SIGKILL)
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert float(done.stdout) < 5.0


def test_a_family_is_named_once_and_so_is_the_wait_for_others(monkeypatch, caplog):
    monkeypatch.setattr(compiling, "_TOLD", set())
    monkeypatch.setattr(compiling, "_LONGEST_WAIT", 0.1)
    with caplog.at_level(logging.INFO, "pymc.bayesstruct"):
        for _ in range(2):
            compiling.say_compiling("bayesstruct.fields.kernels.exact")
        compiling.say_compiling("bayesstruct.core.arrays")  # of all families
        with compiling.only_here("bayesstruct.series.kernels", "f"):
            assert len(caplog.records) == 1  # nothing was waited for
            with compiling.only_here("bayesstruct.series.kernels", "f"):
                pass
    assert [record.getMessage() for record in caplog.records] == [
        "Compiling functions of Markov random fields, once on this machine (10 to 20 processor seconds).",
        "Another process compiles functions of time series: waiting for it.",
    ]


def test_every_family_with_compiled_functions_has_a_name_in_messages():
    package = Path(compiling.__file__).parents[2]
    found = {
        file.relative_to(package).parts[0]
        for file in package.rglob("*.py")
        if re.search(r"^@(numpy_)?(kernel|inner)\b", file.read_text("utf-8"), re.M)
    }
    assert len(found) > 10 and found - {"core"} <= set(compiling._TITLES)


def test_a_long_compilation_says_how_far_it_is(monkeypatch, caplog):
    monkeypatch.setattr(compiling, "_TOLD", set())
    monkeypatch.setattr(compiling, "_Progress", type("Fresh", (), {"count": 0, "said": 0.0}))
    now = [100.0]
    monkeypatch.setattr(compiling.time, "monotonic", lambda: now[0])
    with caplog.at_level(logging.INFO, "pymc.bayesstruct"):
        compiling.say_compiling("bayesstruct.fields.kernels.exact")
        for _ in range(12):
            now[0] += 1.0
            compiling.say_progress("bayesstruct.fields.kernels.exact")
    assert [record.getMessage() for record in caplog.records[1:]] == [
        f"Compiling functions of Markov random fields: {count} functions so far."
        for count in (5, 10)
    ]
