"""The order in which find_MAP asks solvers is declared, whatever is imported first."""

import subprocess
import sys

import pytest

from bayesstruct.core import modes
from bayesstruct.core.families import import_chapters

ORDER = """
import bayesstruct as bs
bs.find_MAP
from bayesstruct.core.modes import mode_solvers
print(" ".join(type(solver).__name__ for solver in mode_solvers()))
"""


@pytest.mark.parametrize("first", ["", *import_chapters("modes")])
def test_the_order_does_not_depend_on_the_first_import(first):
    program = f"import {first}\n{ORDER}" if first else ORDER
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    place = {name: i for i, name in enumerate(done.stdout.split())}
    assert place["SearchedFieldMode"] < place["ShrunkFieldMode"] < place["SpikeAndSlabRefusal"]
    assert place["SpikeAndSlabRefusal"] < place["NetworkMode"] < place["OrderPriorRefusal"]
    assert place["OrderPriorRefusal"] < place["IncompleteNetworkMode"]
    assert place["PrecisionMode"] == len(place) - 1


def test_a_solver_names_registered_solvers_only(monkeypatch):
    monkeypatch.setattr(modes, "_SOLVERS", [])

    class A(modes.ModeSolver):
        pass

    class B(modes.ModeSolver):
        pass

    with pytest.raises(ValueError, match="A must be registered before B"):
        modes.register_mode(before=A)(B)
    modes.register_mode(last=True)(A)
    modes.register_mode(B)
    modes.register_mode(B)  # once more changes nothing
    assert [type(solver) for solver in modes.mode_solvers()] == [B, A]
