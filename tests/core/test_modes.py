"""The order in which find_MAP asks solvers is declared, whatever is imported first."""

import subprocess
import sys

import pytest

from bayesstruct.core import modes
from bayesstruct.core.families import import_chapters

# One process imports what takes long, and forks for each module that is imported first.
ORDERS = """
import importlib, os, sys
import numba, pymc
for first in sys.argv[1:]:
    if os.fork() == 0:
        importlib.import_module(first)
        import bayesstruct as bs
        bs.find_MAP
        from bayesstruct.core.modes import mode_solvers
        print(" ".join(type(solver).__name__ for solver in mode_solvers()), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.chain
def test_the_order_does_not_depend_on_the_first_import():
    firsts = ["bayesstruct", *import_chapters("modes")]
    done = subprocess.run(
        [sys.executable, "-c", ORDERS, *firsts], check=True, capture_output=True, text=True
    )
    orders = done.stdout.splitlines()
    assert len(orders) == len(firsts)
    for order in orders:
        place = {name: i for i, name in enumerate(order.split())}
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
