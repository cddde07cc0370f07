"""Precision matrices from the vectors that a sampler moves."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc.distributions.transforms import CholeskyCovTransform

from bayesstruct.precision.ops.packed_cholesky import PackedCholesky


@pytest.mark.parametrize("p", [1, 2, 5])
@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_equals_the_transform_of_pymc(p, mode, rng):
    value = rng.normal(size=p * (p + 1) // 2)
    x = pt.vector("x")
    ours, right = (
        pytensor.function([x], t(p).backward(x), mode=mode)(value)
        for t in (PackedCholesky, CholeskyCovTransform)
    )
    assert np.allclose(ours, right, rtol=1e-14)


def test_derivatives_are_those_of_pymc(rng):
    x = pt.vector("x")
    weights = pt.as_tensor_variable(rng.normal(size=(4, 4)))
    value = rng.normal(size=10)
    target = (PackedCholesky(4).backward(x) * weights).sum()
    right = (CholeskyCovTransform(4).backward(x) * weights).sum()
    slopes = (pytensor.function([x], pytensor.grad(t, x))(value) for t in (target, right))
    assert np.allclose(*slopes, rtol=1e-12)


def test_batches_and_unknown_sizes_are_left_to_pymc(rng):
    x, n = pt.matrix("x"), pt.lscalar("n")
    values = rng.normal(size=(3, 6))
    batch = pytensor.function([x], PackedCholesky(3).backward(x))(values)
    one = pytensor.function([x, n], PackedCholesky(n).backward(x[0]))(values, 3)
    assert batch.shape == (3, 3, 3) and np.allclose(batch[0], one)


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
@pytest.mark.parametrize("length", [5, 7, 20])
def test_a_vector_of_another_length_is_refused(mode, length):
    x = pt.vector("x")
    function = pytensor.function([x], PackedCholesky(3).backward(x), mode=mode)
    with pytest.raises(ValueError, match="length"):
        function(np.zeros(length))
