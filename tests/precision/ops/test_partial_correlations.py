"""Partial correlations as one operation."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from bayesstruct.precision.ops.partial_correlations import PartialCorrelations
from bayesstruct.precision.priors.edges import partial_correlations


def matrix(rng, p):
    a = rng.normal(size=(p, 2 * p))
    return a @ a.T


@pytest.mark.parametrize("p", [1, 2, 5])
@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_equals_the_correlations_of_residuals(p, mode, rng):
    x = pt.tensor("x", shape=(p, p), dtype="float64")
    value = matrix(rng, p)
    found = pytensor.function([x], partial_correlations(x), mode=mode)(value)
    right = []
    covariance = np.linalg.inv(value)
    for i in range(p):
        for j in range(i + 1, p):
            both, rest = [i, j], [k for k in range(p) if k not in (i, j)]
            cross = covariance[np.ix_(both, rest)]
            left = covariance[np.ix_(both, both)]
            if rest:
                left = left - cross @ np.linalg.solve(covariance[np.ix_(rest, rest)], cross.T)
            right.append(left[0, 1] / np.sqrt(left[0, 0] * left[1, 1]))
    assert np.allclose(found, right, atol=1e-10)


def test_expression_of_unknown_size_gives_the_same_numbers(rng):
    known, unknown = pt.tensor("x", shape=(4, 4), dtype="float64"), pt.dmatrix("y")
    value = matrix(rng, 4)
    found = pytensor.function([known], partial_correlations(known))(value)
    right = pytensor.function([unknown], partial_correlations(unknown))(value)
    assert np.array_equal(found, right)


def test_derivatives(rng):
    x = pt.tensor("x", shape=(3, 3), dtype="float64")
    weights = rng.normal(size=3)
    out = PartialCorrelations().make_node(x).outputs[0]
    slope = pytensor.function([x], pytensor.grad((out * weights).sum(), x))
    value, step = matrix(rng, 3), 1e-6
    function = pytensor.function([x], (out * weights).sum())
    for i in range(3):
        for j in range(3):
            change = np.zeros((3, 3))
            change[i, j] = step
            right = (function(value + change) - function(value - change)) / (2 * step)
            assert slope(value)[i, j] == pytest.approx(right, abs=1e-6)
