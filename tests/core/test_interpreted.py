"""Graphs that Python runs as one operation of compiled code."""

import os
import subprocess
import sys

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import bayesstruct as bs

from bayesstruct.core.interpreted import PythonGraph, RowDensities, row_densities

pytestmark = pytest.mark.compiled


def operations(function):
    return {type(node.op) for node in function.maker.fgraph.apply_nodes}


def drawing(scale=1.0, seed=3):
    """A function that draws binary features and multiplies them."""
    with pm.Model():
        z = bs.IndianBuffet("z", 2.0, observations=4, max_features=20)
        return pm.pytensorf.compile([], [z, scale * z.sum()], random_seed=seed)


def test_a_graph_that_draws_is_one_operation_with_the_same_draws():
    function = drawing()
    assert PythonGraph in operations(function)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        plain = drawing()
    assert PythonGraph not in operations(plain)
    for _ in range(3):  # the generator moves on from call to call
        for ours, reference in zip(function(), plain(), strict=True):
            assert np.array_equal(ours, reference)


def test_graphs_of_the_same_types_do_not_take_the_place_of_each_other():
    one, ten = drawing(1.0), drawing(10.0)
    assert float(ten()[1]) == 10.0 * float(one()[1])


def test_a_copy_of_a_function_draws_the_same():
    function = drawing()
    copied = cloudpickle.loads(cloudpickle.dumps(function))
    assert np.array_equal(function()[0], copied()[0])


def test_graphs_without_our_distributions_are_compiled():
    x = pt.random.normal(rng=pytensor.shared(np.random.default_rng(1)), return_next_rng=True)[1]
    assert PythonGraph not in operations(pm.pytensorf.compile([], x))


def test_densities_of_rows_are_run_by_python_and_their_sum_is_compiled():
    x = pt.vector("x")
    rows = row_densities(-0.5 * x**2)
    value = np.array([1.0, -2.0])
    separate = pytensor.function([x], rows)
    assert operations(separate) == {PythonGraph}
    assert np.array_equal(separate(value), [-0.5, -2.0])
    total = pytensor.function([x], [rows.sum(), pytensor.grad(rows.sum(), x)])
    assert not operations(total) & {PythonGraph, RowDensities}
    assert [v.tolist() for v in total(value)] == [-2.5, [-1.0, 2.0]]
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        assert np.array_equal(pytensor.function([x], rows)(value), [-0.5, -2.0])


PROGRAM = """
import sys
import pymc as pm
import bayesstruct as bs
with pm.Model():
    z = bs.IndianBuffet("z", 2.0, observations=4, max_features=20)
    print(float(pm.pytensorf.compile([], float(sys.argv[1]) * z.sum(), random_seed=3)()))
"""


@pytest.mark.chain
def test_machine_code_on_disk_runs_the_graph_of_its_own_process(tmp_path):
    flags = f"base_compiledir={tmp_path},cxx="
    first, second = (
        float(
            subprocess.run(
                [sys.executable, "-c", PROGRAM, scale],
                env={**os.environ, "PYTENSOR_FLAGS": flags},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for scale in ("1.0", "10.0")
    )
    assert second == 10.0 * first != 0.0
