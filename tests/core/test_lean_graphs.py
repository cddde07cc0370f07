"""Graphs from which checks and views that change nothing are taken."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import SpecifyShape

import bayesstruct as bs

from bayesstruct.core.lean_graphs import KnownLength, Product
from bayesstruct.features.ops.columns import columns_of


def kinds(function):
    return [type(node.op) for node in function.maker.fgraph.apply_nodes]


def compiled(inputs, out):
    """Compile a sum with an operation of this package, which adds 2 to the result."""
    z = pt.lmatrix("z")
    both = out + columns_of(z).used
    function = pytensor.function([*inputs, z], both, mode="NUMBA")
    return function, lambda *values: function(*values, np.eye(2, dtype="int64")) - 2.0


@pytest.fixture
def joined():
    """Give a vector, and its first two elements as parameters with a known shape."""
    x = pt.dvector("joined_inputs")
    return x, pt.specify_shape(x[:2], (2,))


def test_lengths_of_parameters_are_checked_with_a_fixed_message(joined):
    x, part = joined
    function, call = compiled([x], pt.exp(part).sum())
    assert KnownLength in kinds(function) and SpecifyShape not in kinds(function)
    assert call([0.0, 1.0, 5.0]) == pytest.approx(1.0 + np.e)
    with pytest.raises(AssertionError, match="length that the model says, 2"):
        call([0.0])


def test_other_graphs_keep_their_checks(joined):
    x, part = joined
    function = pytensor.function([x], pt.exp(part).sum(), mode="NUMBA")
    assert SpecifyShape in kinds(function) and KnownLength not in kinds(function)
    with pytest.raises(AssertionError):
        function([0.0])


def test_derivatives_pass_through(joined):
    x, part = joined
    slope = pytensor.grad((KnownLength(2)(part) ** 2).sum(), x)
    assert pytensor.function([x], slope)([1.0, 2.0, 3.0]).tolist() == [2.0, 4.0, 0.0]


@pytest.mark.parametrize("dtype", ["int8", "float64"])
@pytest.mark.parametrize("shape", [(4, 3, 2), (1, 5, 1), (0, 2, 3), (2, 0, 3)])
def test_products_are_those_of_numpy(dtype, shape, rng):
    n, k, m = shape
    a, b = pt.tensor("a", shape=(None, None), dtype=dtype), pt.dmatrix("b")
    first, second = rng.integers(-3, 4, size=(n, k)).astype(dtype), rng.normal(size=(k, m))
    function, call = compiled([a, b], a @ b)
    assert Product in kinds(function) and Dot not in kinds(function)
    assert np.allclose(call(first, second), first @ second, rtol=1e-14)


def test_transposed_products(rng):
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    first, second = rng.normal(size=(5, 4)), rng.normal(size=(3, 5))
    _, call = compiled([a, b], a.T @ b.T)
    assert np.allclose(call(first, second), first.T @ second.T, rtol=1e-14)


def test_shapes_that_do_not_match_are_refused(rng):
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    _, call = compiled([a, b], a @ b)
    with pytest.raises(ValueError):
        call(np.ones((2, 3)), np.ones((2, 3)))


def test_views_of_scalars_are_taken_out():
    x = pt.dscalar("x")
    vector = pt.expand_dims(x, 0) * pt.as_tensor_variable(np.array([3.0]))
    function, call = compiled([x], pt.exp(vector)[0])
    assert DimShuffle not in kinds(function)
    assert call(1.0) == pytest.approx(np.exp(3.0))


def test_densities_and_derivatives_of_a_model_are_those_of_python(rng):
    x = rng.integers(0, 2, size=(30, 3))
    with bs.models.ising_neighbourhoods(x) as model:
        point = model.initial_point()
        values = [
            model.compile_fn(f, mode=mode)(point)
            for mode in ("NUMBA", "FAST_COMPILE")
            for f in (model.logp(), model.dlogp([model["intercept"]]))
        ]
    assert np.allclose(values[0], values[2], rtol=1e-12)
    assert np.allclose(values[1], values[3], rtol=1e-12)
    assert isinstance(model, pm.Model)
