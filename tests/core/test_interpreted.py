"""Graphs that Python runs as one operation of compiled code."""

import os
import subprocess
import sys
import threading

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor.graph.basic import Apply

import bayesstruct as bs

from bayesstruct.core.interpreted import PythonGraph, RowDensities, row_densities
from bayesstruct.core.ops import InterpretedOp

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


def features():
    return bs.IndianBuffet.dist(2.0, observations=4, max_features=20)


def test_outputs_that_are_inputs_are_returned_as_they_are():
    x = pt.vector("x")
    function = pm.compile([x], [features(), x, x * 1.0, pt.constant(3.0)], random_seed=1)
    assert PythonGraph in operations(function)
    _, same, once, three = function(np.arange(2.0))
    assert same.tolist() == once.tolist() == [0.0, 1.0] and three == 3.0


@pytest.mark.chain
def test_deterministics_of_given_draws():
    with pm.Model():
        s = pm.Normal("s", shape=2)
        pm.Deterministic("scaled", s * 1.0)
        pm.Deterministic("turned", pt.stack([s, 2.0 * s]).T)
        bs.IndianBuffet("z", 1.0, observations=4, max_features=6)
        prior = pm.sample_prior_predictive(3, random_seed=1)["prior"].to_dataset()
        given = prior.drop_vars(["z", "scaled", "turned"])
        names = ["z", "scaled", "turned"]
        found = pm.sample_posterior_predictive(
            given, var_names=names, random_seed=1, progressbar=False
        )
    drawn = found["posterior_predictive"]
    assert np.array_equal(drawn["scaled"], prior["s"])
    assert np.array_equal(drawn["turned"], np.stack([prior["s"], 2.0 * prior["s"]], axis=-1))


def test_transposed_outputs_are_read_right():
    x = pm.Normal.dist(shape=(2, 3))
    function = pm.compile([], [features(), x, x.T, x.T], random_seed=1)
    _, value, first, second = function()
    assert np.array_equal(first, value.T) and np.array_equal(second, value.T)


def test_copies_of_a_function_run_in_threads():
    x = pt.vector("x")
    function = pm.compile([x], [features(), x + 1.0, x * 2.0], random_seed=1)
    wrong = []

    def run(f, k):
        for _ in range(200):
            _, plus, twice = f(np.full(3, float(k)))
            wrong.append(plus[0] != k + 1 or twice[0] != 2 * k)

    pairs = ((function, 1), (function.copy(), 100))
    threads = [threading.Thread(target=run, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 400 and not any(wrong)


STORED = """
import sys
from pathlib import Path

import cloudpickle, numpy as np, pymc as pm, pytensor, pytensor.tensor as pt
import bayesstruct as bs

x = pt.vector("x")
z = bs.IndianBuffet.dist(1.0, observations=4, max_features=6)
secret = np.frombuffer(b"SECRETS!" * 2000)
"""
WRITE = (
    STORED
    + """
f = pm.compile([x], [z, x + 1.0, pt.constant(secret) * x[0]], random_seed=1)
assert f(np.ones(3))[1][0] == 2.0
Path(sys.argv[1]).write_bytes(cloudpickle.dumps(f))
stored = Path(pytensor.config.base_compiledir, "numba").glob("*.nbc")
print(any(b"SECRETS!" in file.read_bytes() for file in stored))
"""
)
READ = (
    STORED
    + """
g = pm.compile([x], [z, x + 1000.0, pt.constant(secret) * x[0]], random_seed=1)
f = cloudpickle.loads(Path(sys.argv[1]).read_bytes())
print(f(np.ones(3))[1][0], g(np.ones(3))[1][0])
"""
)


@pytest.mark.chain
def test_graphs_are_not_stored_with_machine_code_and_travel_with_their_function(tmp_path):
    flags = {"PYTENSOR_FLAGS": f"base_compiledir={tmp_path / 'compiled'}"}
    said = [
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "function")],
            env=os.environ | flags,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for program in (WRITE, READ)
    ]
    assert said == [["False"], ["2.0", "1001.0"]]


class Turned(InterpretedOp):
    """The transposed matrix, which Python gives as a view."""

    __props__ = ()

    def make_node(self, x):
        self.register()
        return Apply(self, [x], [pt.matrix(), pt.vector()])

    def compute(self, x):
        return x.T, x[::-1, 0]


def test_compiled_code_reads_views_of_python_right():
    x = pt.matrix("x")
    turned, column = Turned()(x)
    value = np.arange(6.0).reshape(2, 3)
    found = pytensor.function([x], [turned + 0.5, column + 0.5], mode="NUMBA")(value)
    assert np.array_equal(found[0], value.T + 0.5) and found[1].tolist() == [3.5, 0.5]


@pytest.mark.chain
def test_functions_that_python_runs_leave_nothing_on_disk(tmp_path):
    program = """
import pathlib, sys
import pymc as pm
import bayesstruct as bs
def files():
    return sum(path.is_file() for path in pathlib.Path(sys.argv[1]).rglob("*"))
found = []
for _ in range(3):
    with pm.Model():
        z = bs.IndianBuffet("z", 2.0, observations=4, max_features=20)
        pm.pytensorf.compile([], z.sum(), random_seed=3)()
    found.append(files())
print(*found)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=os.environ | {"PYTENSOR_FLAGS": f"base_compiledir={tmp_path},cxx="},
        check=True,
        capture_output=True,
        text=True,
    )
    first, second, third = map(int, done.stdout.split())
    assert first == second == third
