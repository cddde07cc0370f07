"""Importing the package is quick: it loads little that PyMC does not load itself."""

import json
import subprocess
import sys

import pytest

HEAVY = {"numba", "matplotlib", "arviz", "nutpie", "networkx", "narwhals", "joblib", "sklearn"}


def loaded_by(statement):
    """Top-level packages that a statement loads in a fresh process."""
    program = f"import sys, json; {statement}; json.dump(sorted(sys.modules), sys.stdout)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


@pytest.fixture(scope="module")
def by_pymc():
    return loaded_by("import pymc")


def test_import_loads_no_heavy_package_that_pymc_does_not(by_pymc):
    extra = loaded_by("import bayesstruct") - by_pymc
    assert not extra & HEAVY


def test_the_command_line_loads_no_heavy_package_before_it_is_needed(by_pymc):
    extra = loaded_by("import bayesstruct.app.cli") - by_pymc
    assert not extra & HEAVY


def test_rooms_and_names_are_loaded_when_asked_for():
    import bayesstruct as bs

    assert {name for name in bs.__all__ if not hasattr(bs, name)} == set()
