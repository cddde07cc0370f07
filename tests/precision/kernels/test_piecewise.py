import numpy as np
import pytest

from scipy import stats

from bayesstruct.core.jit import kernel
from bayesstruct.precision.kernels.piecewise import piecewise_normal


@kernel
def repeat(rng, b, h, points, weights, out):
    masses = np.empty(len(points) + 1)
    for t in range(len(out)):
        out[t] = piecewise_normal(rng, b, h, points, weights, len(points), masses)


CASES = {
    "one point": (0.3, 1.0, [0.0], [1.0]),
    "three points": (1.0, 2.0, [0.0, 0.5, -1.0], [1.0, 2.0, 0.3]),
    "two points are one": (300.0, 100.0, [0.0, 3.0, 3.0], [5.0, 50.0, 20.0]),
    "far in a tail": (-40.0, 1.0, [0.0, -1.0, -2.0, 5.0], [10.0, 20.0, 3.0, 30.0]),
    "nearly flat": (0.0, 0.01, [0.0, 0.1, 0.1000001], [0.5, 3.0, 3.0]),
    "nearly exponential": (5.0, 1e-4, [0.0, 1.0, 2.0], [3.0, 1.0, 1.0]),
    "narrow pieces": (1e3, 1e3, [0.9, 0.95, 1.0, 1.05, 1.1], [100.0] * 5),
    "no weight": (0.5, 1.0, [0.0, 0.4], [0.0, 0.0]),
}


@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_distribution(case):
    b, h, points, weights = case
    points, weights = np.array(points), np.array(weights)
    x = np.empty(40_000)
    repeat(np.random.default_rng(1), b, h, points.copy(), weights.copy(), x)
    margin = 0.1 * np.ptp(x)
    grid = np.unique(np.append(np.linspace(x.min() - margin, x.max() + margin, 20_001), points))
    log = b * grid - 0.5 * h * grid**2 - np.abs(grid[:, None] - points) @ weights
    density = np.exp(log - log.max())
    cdf = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid)))
    assert stats.kstest(x, lambda q: np.interp(q, grid, cdf / cdf[-1])).pvalue > 1e-3


def test_extreme_values_are_finite():
    for b, h, point, weight in (1e8, 1.0, 0.0, 1.0), (-3.0, 1e8, 1e3, 1e9), (0.0, 1e-8, 5.0, 1e-6):
        x = np.empty(100)
        repeat(np.random.default_rng(1), b, h, np.array([point]), np.array([weight]), x)
        assert np.isfinite(x).all()
