"""One process compiles at a time."""

import logging
import threading
import time

import pytest

from bayesstruct.core.machine_code import compiling


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A lock that no other process holds."""
    monkeypatch.setattr(compiling.tempfile, "gettempdir", lambda: str(tmp_path))


def test_a_second_one_waits_for_the_first():
    # Two openings of the file exclude each other, in one process as in two.
    spans = []

    def hold():
        with compiling.only_here("family"):
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


def test_nobody_waits_forever(monkeypatch):
    monkeypatch.setattr(compiling, "_LONGEST_WAIT", 0.1)
    began = time.monotonic()
    with compiling.only_here("family"), compiling.only_here("family"):
        waited = time.monotonic() - began
    assert waited >= 0.1  # the second one did wait, and went on


def test_a_family_is_named_once(monkeypatch, caplog):
    monkeypatch.setattr(compiling, "_TOLD", set())
    with caplog.at_level(logging.INFO, "pymc.bayesstruct"):
        for _ in range(2):
            with compiling.only_here("bayesstruct.fields"):
                pass
    assert [r.getMessage().split(",")[0] for r in caplog.records] == [
        "Compiling functions of bayesstruct.fields"
    ]
