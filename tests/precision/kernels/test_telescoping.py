"""The published reverse telescoping scan does not leave the posterior invariant; an exact scan of its coordinates does."""

import numpy as np
import pytest

from scipy import stats
from tools.batches import mean_and_error
from tools.integration import horseshoe_posterior
from tools.telescoping import generalized_inverse_gaussian, horseshoe_chain

# Nothing of the package is tested: these scans are compared with its sweep in `benchmarks/reverse_telescoping.py`.
pytestmark = pytest.mark.slow
RATE = 0.5


@pytest.mark.parametrize(("power", "rate", "inverse"), [(3.0, 2.0, 5.0), (10.0, 0.1, 40.0)])
def test_generalized_inverse_gaussian(power, rate, inverse):
    rng = np.random.default_rng(0)
    draws = [generalized_inverse_gaussian(rng, power, rate, inverse) for _ in range(20_000)]
    density = stats.geninvgauss(power, np.sqrt(rate * inverse), scale=np.sqrt(inverse / rate))
    assert stats.kstest(draws, density.cdf).pvalue > 1e-4


def partial_correlations(matrices):
    """Of all pairs, but for the sign; (draws, pairs)."""
    i, j = np.triu_indices(matrices.shape[-1], 1)
    return matrices[:, i, j] / np.sqrt(matrices[:, i, i] * matrices[:, j, j])


@pytest.fixture(scope="module")
def posterior():
    """Two columns that depend on each other by the third, and the posterior by importance sampling."""
    rng, n, scale = np.random.default_rng(1), 4, 0.3
    z = rng.normal(size=(n, 1))
    rows = np.hstack([z + 0.3 * rng.normal(size=(n, 2)), z])
    weighted, _ = horseshoe_posterior(
        rows,
        scales=np.array([scale]),
        log_prior=np.zeros(1),
        diagonal_rate=RATE,
        draws=60_000,
        seed=1,
    )
    return rows, scale, *weighted.mean(partial_correlations(weighted.precision))


def worst(posterior, exact):
    """Largest difference of the means in standard errors, and the means."""
    rows, scale, mean, error = posterior
    draws = horseshoe_chain(np.random.default_rng(2), rows, scale, RATE, 60_000, exact)
    found, own_error, _ = mean_and_error(partial_correlations(draws), 100)
    return np.abs((found - mean) / np.hypot(error, own_error)).max(), found


def test_a_scan_of_single_coordinates_is_exact(posterior):
    assert worst(posterior, exact=True)[0] < 4.5


def test_the_published_scan_has_another_distribution(posterior):
    z, found = worst(posterior, exact=False)
    # The last columns are drawn as if the others were not there: their elements are too small.
    assert z > 6
    assert (np.abs(found[1:]) < 0.95 * np.abs(posterior[2][1:])).all()
