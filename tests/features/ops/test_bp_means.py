"""The small-variance objective of latent features as an operation."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from bayesstruct.distributions import IndianBuffet
from bayesstruct.features.kernels.indian_buffet import left_ordered
from bayesstruct.features.solvers.bp_means import bp_means as solve
from bayesstruct.ops import bp_means


def table():
    rng = np.random.default_rng(1)
    z = rng.random((20, 2)) < 0.5
    return z @ np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0]]) + 0.1 * rng.normal(size=(20, 3))


def test_the_value_is_that_of_the_solver_with_its_derivatives():
    x, penalty = pt.matrix("x"), pt.scalar("penalty")
    value, feature, loading = bp_means(x, penalty, max_features=5)
    outputs = [value, feature, loading, *pytensor.grad(value, [x, penalty])]
    function = pytensor.function([x, penalty], outputs)
    rows = table()
    at, z, a, of_x, of_penalty = function(rows, 1.0)
    found = solve(rows, 1.0, max_features=5, random_seed=0)
    k = found.feature.shape[1]
    assert np.isclose(at, found.objective) and np.array_equal(z[:, :k], found.feature)
    assert not z[:, k:].any() and np.isclose(at, ((rows - z @ a) ** 2).sum() + k)
    step = 1e-5
    for i, j in ((0, 0), (3, 2), (7, 1)):
        moved = rows.copy()
        moved[i, j] += step
        assert np.isclose(of_x[i, j], (function(moved, 1.0)[0] - at) / step, atol=1e-3)
    assert np.isclose(of_penalty, (function(rows, 1.0 + step)[0] - at) / step, atol=1e-6)
    assert np.isnan(function(np.full((20, 3), np.nan), 1.0)[0])
    assert np.isnan(function(rows, -1.0)[0])


def test_features_have_no_derivatives():
    x = pt.matrix("x")
    _, _, loading = bp_means(x, 1.0)
    with pytest.raises(pytensor.gradient.NullTypeGradError):
        pytensor.grad(loading.sum(), x)


def test_the_features_are_a_start_of_an_indian_buffet():
    rows = table()
    _, feature, _ = bp_means(rows, 1.0, max_features=6)
    with pm.Model() as model:
        IndianBuffet("z", 1.0, observations=20, max_features=6, initval=feature)
    start = model.initial_point()["z"]
    assert np.array_equal(start[:, :2], solve(rows, 1.0, random_seed=0).feature)
    assert np.array_equal(start, left_ordered(start)) and start.dtype == np.int8


@pytest.mark.parametrize("options", [{"max_features": 0}, {"restarts": 0}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=f"`{next(iter(options))}`"):
        bp_means(table(), 1.0, **options)
