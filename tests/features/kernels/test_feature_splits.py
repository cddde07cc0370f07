"""Moves that exchange a few latent features for others."""

import numpy as np
import pytest

from tools.buffets import counts, distance, posterior

from bayesstruct.features.kernels import feature_splits
from bayesstruct.features.kernels.feature_splits import exchange_columns
from bayesstruct.features.kernels.indian_buffet import log_buffet, new_dish_rates
from bayesstruct.features.kernels.latent_features import log_likelihood, scan_rows

MAX_FEATURES = 30
CASES = [
    ((np.array([[2.5], [-2.5]]), 2.0, 0.5, 1.0), (1.0, 0.0)),
    ((np.array([[1.5], [1.4]]), 1.0, 0.3, 1.0), (1.0, 0.0)),
    ((np.array([[1.0], [0.9]]), 1.0, 0.5, 1.0), (2.0, 0.3)),
]


def chain(case, process, draws, *, move=exchange_columns):
    """Visit classes by ten moves for each scan, without which there never would be a first feature."""
    x, alpha, noise, scale = case
    rng, n = np.random.default_rng(5), len(x)
    rate = alpha * new_dish_rates(n, *process)[-1]
    feature = np.zeros((n, MAX_FEATURES), np.int8)
    for t in range(draws):
        if t % 2 == 0:
            used = int(feature.any(axis=0).sum())
            scan_rows(rng, feature, used, x, np.arange(n), noise, scale, rate, *process, -1)
        for _ in range(5):
            move(rng, feature, x, noise, scale, alpha, *process)
        yield counts(feature)


@pytest.mark.calibration
@pytest.mark.parametrize(("case", "process"), CASES)
def test_exchanges_leave_the_exact_posterior(case, process, full):
    exact = posterior(*case, most=18, process=process)
    # Of 5,000 draws from the exact distribution the distance of the first case is about .06.
    draws, bound = (800_000, 0.01) if full else (5_000, 0.1)
    assert distance(list(chain(case, process, draws)), exact) < bound


@pytest.mark.statistical
def test_exchanges_without_the_probability_of_the_proposal_do_not(monkeypatch):
    exact = posterior(*CASES[0][0], most=18)
    allocate = feature_splits._allocate
    monkeypatch.setattr(feature_splits, "shuffle", feature_splits.shuffle.py_func)
    monkeypatch.setattr(feature_splits, "_allocate", lambda *given: (allocate(*given)[0], 0.0))
    broken = chain(*CASES[0], 1_500, move=exchange_columns.py_func)
    assert distance(list(broken), exact) > 0.2


def test_the_density_of_the_table_is_that_of_the_features():
    rng = np.random.default_rng(1)
    z, x = rng.integers(0, 2, (6, 3)).astype(np.int8), rng.normal(size=(6, 2))
    order, before = rng.permutation(6), z.copy()
    density, _ = feature_splits._allocate(rng, z, 2, x, order, 0.7, (0.7 / 1.3) ** 2, True)
    assert np.isclose(density, log_likelihood(z, x, 0.7, 1.3)) and np.array_equal(z, before)
    # Labels in a random order: the class has K! / prod K_h! matrices, here 6 (all columns differ).
    z = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1], [1, 0, 0]], np.int8)
    ratio = feature_splits._log_prior(z, 1.4, 0.7, 0.4) - (
        feature_splits._log_prior(z[:, :2], 1.4, 0.7, 0.4)
    )
    expected = log_buffet(z, 1.4, 0.7, 0.4) - log_buffet(z[:, :2], 1.4, 0.7, 0.4)
    assert np.isclose(ratio, expected - np.log(6) + np.log(2))


def test_exchanges_leave_a_rotated_basis():
    # Three features, of which one is both others together: entry by entry this is hard to leave.
    rng = np.random.default_rng(2)
    truth = rng.random((40, 2)) < 0.5
    loading = np.array([[2.0, 2.0, 2.0, 0, 0, 0], [0, 0, 0, 2.0, 2.0, 2.0]])
    x = truth @ loading + 0.3 * rng.standard_normal((40, 6))
    both = truth.all(axis=1)
    rotated = np.column_stack([truth[:, 0] & ~both, truth[:, 1] & ~both, both]).astype(np.int8)
    numbers = {}
    for moves in (0, 5):
        feature = np.zeros((40, 10), np.int8)
        feature[:, :3] = rotated
        for _ in range(100):
            used = int(feature.any(axis=0).sum())
            rows = rng.permutation(40)
            scan_rows(rng, feature, used, x, rows, 0.3, 2.0, 1 / 40, 1.0, 0.0, -1)
            for _ in range(moves):
                exchange_columns(rng, feature, x, 0.3, 2.0, 1.0, 1.0, 0.0)
        numbers[moves] = int(feature.any(axis=0).sum())
    assert numbers == {0: 3, 5: 2}
