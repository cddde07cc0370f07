"""Missing values of linear structural equations are drawn from their distribution given all else."""

import numpy as np
import pytest

from scipy import stats

from bayesstruct.sem.kernels import missing_cells
from bayesstruct.sem.kernels.settings import NOISES
from bayesstruct.sem.priors.noise import noise_law, with_normal

MATRIX = np.array([[0.0, 0.0, 0.0], [1.2, 0.0, 0.0], [-0.7, 0.8, 0.0]])
INTERCEPT, SCALES = np.array([0.3, -0.5, 1.0]), np.array([1.0, 0.5, 0.8])
SHAPE = {
    "student": np.array([[3.0], [5.0], [3.0]]),
    "mixture": np.random.default_rng(2).dirichlet(np.full(6, 0.5), size=3),
}
SHAPE["mixture or normal"] = with_normal(SHAPE["mixture"], np.array([0, 1, 0]))
N = 4000


def law_of(noise):
    return noise_law(noise.split()[0], normal="or normal" in noise)


def rows(noise, rng):
    shape = SHAPE.get(noise, np.zeros((3, 1)))
    e = law_of(noise).draw(rng, shape, N)
    z = np.linalg.solve(np.eye(3) - MATRIX, (INTERCEPT + SCALES * e).T).T
    return z, shape


def draws(noise, seed=0, sweeps=4):
    """Noise of rows from their law whose missing values were then drawn anew."""
    rng = np.random.default_rng(seed)
    z, shape = rows(noise, rng)
    missing = rng.random(z.shape) < 0.5
    before, free = z.copy(), np.ones(z.shape, bool)
    for _ in range(sweeps):
        params = INTERCEPT, MATRIX, SCALES, shape, free, z, missing
        missing_cells.draw_missing_cells(rng, NOISES.index(noise.split()[0]), *params)
    np.testing.assert_array_equal(z[~missing], before[~missing])
    assert not np.isclose(z[missing], before[missing]).any()
    return (z @ (np.eye(3) - MATRIX).T - INTERCEPT) / SCALES, shape


def p_values(noise, e, shape):
    reference = law_of(noise).draw(np.random.default_rng(9), shape, 100_000)
    return [stats.ks_2samp(e[:, i], reference[:, i]).pvalue for i in range(3)]


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [*NOISES, "mixture or normal"])
def test_draws_leave_the_law_of_the_rows_as_it_is(noise):
    assert min(p_values(noise, *draws(noise))) > 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["laplace", "student", "mixture"])
def test_draws_as_if_noise_were_normal_do_not(noise, monkeypatch):
    def normal(rng, noise, e, shape):
        return np.zeros_like(e), np.ones_like(e)

    monkeypatch.setattr(missing_cells, "draw_latent", normal)
    assert min(p_values(noise, *draws(noise))) < 1e-6


def test_values_that_were_set_say_nothing_of_their_parents():
    rng = np.random.default_rng(1)
    z = np.tile(
        [0.0, 50.0, 0.0], (2000, 1)
    )  # the second column was set, far from what its parent explains
    missing, free = np.zeros(z.shape, bool), np.ones(z.shape, bool)
    missing[:, 0], free[:, 1:] = True, False
    params = INTERCEPT, MATRIX, SCALES, np.zeros((3, 1)), free, z, missing
    missing_cells.draw_missing_cells(rng, 0, *params)
    # Mean .3 and standard deviation 1: those of the first column without children; 4 standard errors.
    assert abs(z[:, 0].mean() - 0.3) < 4 / np.sqrt(2000)
    assert abs(z[:, 0].std() - 1.0) < 4 / np.sqrt(4000)
