"""Single values of rows with columns of several kinds, given the rest of their rows."""

import numpy as np
import pytest

from bayesstruct.networks.kernels.mixed_cells import NumberGrid, ValueDensity
from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.networks.kernels.mixed_rows import column_terms, draw_prior, draw_rows

FAMILIES = ("student", "laplace", "normal", "ordinal", "multinomial", "cloglog")
LAYOUT = MixedLayout(FAMILIES, (0, 0, 0, 3, 3, 2))
N, D = 5, 6


def example(seed=0):
    """Rows of a complete graph with its parameters, and which values were not set."""
    rng = np.random.default_rng(seed)
    dag, vector = np.triu(np.ones((D, D), int), 1), np.zeros(LAYOUT.size)
    draw_prior(LAYOUT, rng, dag, 1.0, vector)
    x = draw_rows(LAYOUT, rng.random((N, D)), vector, dag, np.full(D, np.nan))
    return vector, x, rng.random((N, D)) < 0.7


def log_joint(vector, x, free, j, values):
    """Log densities of rows with other values of a column, (m, n); columns that were set do not count, but it itself does."""
    rows, counts = np.tile(x, (len(values), 1)), np.tile(free, (len(values), 1))
    rows[:, j], counts[:, j] = values.ravel(), True
    terms = np.where(counts, column_terms(LAYOUT, rows, vector), 0.0)
    return terms.sum(axis=1).reshape(values.shape)


@pytest.mark.parametrize("j", range(D))
def test_densities_are_those_of_rows_but_for_a_constant(j):
    vector, x, free = example()
    values = np.arange(3.0)[: LAYOUT.states[j] or 3]
    values = np.tile(values[:, None], (1, N)) + (0.3 if LAYOUT.is_number(j) else 0.0)
    found = ValueDensity(LAYOUT, vector, x, j, free)(values)
    expected = log_joint(vector, x, free, j, values)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-9)


@pytest.mark.parametrize("j", [3, 4, 5])
def test_states_have_probabilities_that_sum_to_one(j):
    vector, x, free = example(1)
    found = ValueDensity(LAYOUT, vector, x, j, free).state_logs()
    np.testing.assert_allclose(np.exp(found).sum(axis=0), 1.0)


@pytest.mark.parametrize("j", [0, 1, 2])
@pytest.mark.parametrize("points", [33, 129])
def test_numbers_have_moments_and_densities_by_a_fine_grid(j, points):
    vector, x, free = example()
    grid = NumberGrid(ValueDensity(LAYOUT, vector, x, j, free), points)
    z = grid.mean + grid.sd * np.linspace(-25.0, 25.0, 4001)[:, None]
    p = np.exp(log_joint(vector, x, free, j, z))
    total = p.sum(axis=0)
    mean = (p * z).sum(axis=0) / total
    sd = np.sqrt((p * (z - mean) ** 2).sum(axis=0) / total)
    # Corners of a Laplace density and far tails of a t density are what a grid misses.
    np.testing.assert_allclose((grid.mean - mean) / sd, 0.0, atol=0.02)
    np.testing.assert_allclose(grid.sd, sd, rtol=0.03)
    logs = log_joint(vector, x, free, j, x[None, :, j])[0] - np.log(total * (z[1] - z[0]))
    np.testing.assert_allclose(grid.log_density(x[:, j]), logs, atol=0.05 if points == 33 else 6e-3)


@pytest.mark.parametrize("j", [1, 2])
def test_draws_have_the_quantiles_of_the_grid(j):
    vector, x, free = example()
    grid = NumberGrid(ValueDensity(LAYOUT, vector, x, j, free))
    u = (np.arange(400) + 0.5) / 400
    drawn = np.array([grid.draw(np.full(N, own)) for own in u])
    assert (np.diff(drawn, axis=0) > 0).all()
    np.testing.assert_allclose(drawn.mean(axis=0), grid.mean, atol=5e-3 * grid.sd.max())
    np.testing.assert_allclose(drawn.std(axis=0), grid.sd, rtol=0.02)
