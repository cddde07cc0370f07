"""Empty values of rows with noise that is not normal, against sums over a grid."""

import numpy as np
import pytest

from bayesstruct.data.coding import NumberCoding
from bayesstruct.sem.kernels.settings import NOISES
from bayesstruct.sem.priors.noise import noise_law, with_normal
from bayesstruct.sem.reading.predictions import SemRows

MATRIX = np.array([[0.0, 0.0], [1.5, 0.0]])
SCALES = np.array([1.0, 0.6])
WEIGHTS = np.array([[4.0, 1, 1, 1, 4, 1]] * 2) / 12
SHAPE = {
    "student": np.full((2, 1), 3.0),
    "mixture": WEIGHTS,
    "mixture and normal": with_normal(WEIGHTS, np.array([0, 1])),
}


def log_density(noise, e, i):
    import pytensor.tensor as pt

    shape = SHAPE.get(noise, np.zeros((2, 1)))[[i]]
    law = noise_law(noise.split()[0], normal="and normal" in noise)
    return law.log_density(pt.as_tensor(e[:, None]), pt.as_tensor(shape)).eval()[:, 0]


@pytest.mark.parametrize("noise", ["laplace", "student", "mixture", "mixture and normal"])
def test_cause_given_its_effect_is_that_of_a_grid(noise):
    coding = NumberCoding(("a", "b"), np.array([10.0, 0.0]), np.array([2.0, 1.0]))
    shape = SHAPE.get(noise, np.zeros((2, 1)))
    params = [np.tile(v, (1000, *[1] * v.ndim)) for v in (np.zeros(2), MATRIX, SCALES, shape)]
    rows = SemRows(coding, NOISES.index(noise.split()[0]), tuple(params), {})
    found = rows.predict([[np.nan, 2.0]], 0.9)
    grid = np.linspace(-12, 12, 4001)
    density = np.exp(
        log_density(noise, grid / SCALES[0], 0)
        + log_density(noise, (2.0 - 1.5 * grid) / SCALES[1], 1)
    )
    density /= density.sum()
    mean = density @ grid
    sd = np.sqrt(density @ grid**2 - mean**2)
    low, high = np.interp([0.05, 0.95], density.cumsum(), grid)
    assert found["column"].tolist() == ["a"]
    # 1,000 draws, ten sweeps each: three standard errors are some .06 standard deviations for ends of intervals.
    for name, wanted in (("mean", mean), ("low", low), ("high", high)):
        assert abs(found[name][0] - (10 + 2 * wanted)) < 0.06 * 2 * sd, name
    assert abs(found["sd"][0] / (2 * sd) - 1) < 0.05
