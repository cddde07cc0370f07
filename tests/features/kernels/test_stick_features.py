"""Slice draws of latent features, with explicit probabilities and loadings."""

import numpy as np
import pytest

from scipy.integrate import quad
from scipy.special import gamma
from tools.buffets import counts, distance, posterior

from bayesstruct.features.kernels import indian_buffet as buffet
from bayesstruct.features.kernels import stick_features
from bayesstruct.features.kernels.latent_features import draw_loadings
from bayesstruct.features.kernels.stick_features import slice_features, unseen_probabilities

MAX_FEATURES = 30
CASE = (np.array([[2.5], [-2.5]]), 2.0, 0.5, 1.0)


def chain(x, alpha, noise, scale, draws, *, process=(1.0, 0.0), draw=slice_features):
    """Visit classes, as counts of histories."""
    rng, n = np.random.default_rng(5), len(x)
    feature, loading = np.zeros((n, MAX_FEATURES), np.int8), np.zeros((MAX_FEATURES, x.shape[1]))
    for _ in range(draws):
        used = draw(rng, feature, loading, x, noise, scale, alpha, *process)
        loading = draw_loadings(rng, feature, x, noise, scale)
        yield counts(feature[:, :used])


@pytest.mark.parametrize("process", [(1.3, 1.0, 0.0), (0.8, 0.7, 0.4)])
def test_unseen_features_have_the_expected_number(process):
    rng, (alpha, c, discount), least, n = np.random.default_rng(1), process, 0.02, 3
    drawn = [unseen_probabilities(rng, n, least, *process) for _ in range(4000)]
    constant = alpha * gamma(1 + c) / gamma(1 - discount) / gamma(c + discount)
    for power in (0, 1):
        mean, _ = quad(
            lambda p: p ** (power - 1 - discount) * (1 - p) ** (n + c + discount - 1), least, 1
        )
        sums = np.array([(points**power).sum() for points in drawn])
        assert abs(sums.mean() - constant * mean) < 4.5 * sums.std() / np.sqrt(len(sums))


@pytest.mark.statistical
def test_slice_draws_have_the_exact_posterior_but_not_without_the_density_of_the_slice(monkeypatch):
    case = np.array([[0.5], [0.4]]), 1.0, 1.0, 1.0
    exact = posterior(*case, most=18)
    assert distance(list(chain(*case, draws=15_000)), exact) < 0.05
    # Wrong: the density of the slice is taken as the same with and without a feature.
    monkeypatch.setattr(stick_features, "_draw_entries", stick_features._draw_entries.py_func)
    monkeypatch.setattr(stick_features, "_least_active", lambda *_: 1e-300)
    broken = chain(*case, draws=1_500, draw=slice_features.py_func)
    assert distance(list(broken), exact) > 0.25


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("case", "process"),
    [
        (CASE, (1.0, 0.0)),
        ((np.array([[1.5], [1.4]]), 1.0, 0.3, 1.0), (1.0, 0.0)),
        ((np.array([[1.0], [0.9]]), 1.0, 0.5, 1.0), (2.0, 0.3)),
    ],
)
def test_slice_draws_have_the_exact_posterior_to_one_percent(case, process, full):
    draws = 400_000 if full else 5_000
    exact = posterior(*case, most=18, process=process)
    assert distance(list(chain(*case, draws=draws, process=process)), exact) < (
        0.01 if full else 0.08
    )


@pytest.mark.statistical
def test_joint_draws_of_features_and_table_have_the_prior():
    # Geweke (2004), as in test_indian_buffet.py; the means are those of the prior.
    rng, n, alpha, noise, scale = np.random.default_rng(7), 4, 1.2, 0.8, 1.1
    feature, loading = np.zeros((n, MAX_FEATURES), np.int8), np.zeros((MAX_FEATURES, 2))
    start = buffet.draw_by_dishes(rng, n, alpha)
    feature[:, : start.shape[1]] = start
    loading[: start.shape[1]] = scale * rng.standard_normal((start.shape[1], 2))
    seen = []
    for _ in range(9000):
        x = feature @ loading + noise * rng.standard_normal((n, 2))
        used = slice_features(rng, feature, loading, x, noise, scale, alpha, 1.0, 0.0)
        loading = draw_loadings(rng, feature, x, noise, scale)
        fitted = feature @ loading
        shared = feature[0] @ feature[-1]
        cells, product = (fitted**2).mean(axis=1), (fitted[0] * fitted[-1]).mean()
        entries = feature.sum(axis=1)
        seen.append(
            [used, used**2, *entries[[0, -1]], *cells[[0, -1]], (x**2).mean(), shared, product]
        )
    mean, cell = alpha * (1 / np.arange(1, n + 1)).sum(), alpha * scale**2
    # Two rows share a feature of either with probability 1 / 2 (concentration 1).
    expected = [
        mean,
        mean + mean**2,
        alpha,
        alpha,
        cell,
        cell,
        cell + noise**2,
        alpha / 2,
        cell / 2,
    ]
    blocks = np.reshape(seen, (45, 200, len(expected))).mean(axis=1)
    error = blocks.std(axis=0, ddof=1) / np.sqrt(45)
    assert (abs(blocks.mean(axis=0) - expected) < 4 * error).all()


def test_a_slice_that_leaves_too_many_features_is_reported():
    # One row, whose feature has a probability below 1e-12 in one call of two.
    x, rng = np.zeros((1, 1)), np.random.default_rng(9)
    codes = set()
    for _ in range(300):
        feature, loading = np.ones((1, 1), np.int8), np.ones((1, 1))
        codes.add(slice_features(rng, feature, loading, x, 1.0, 1.0, 1.0, 0.0, 0.98))
    assert -2 in codes


def test_too_many_features_are_reported():
    x, alpha = np.zeros((5, 1)), 30.0
    feature, loading = np.zeros((5, 3), np.int8), np.zeros((3, 1))
    rng = np.random.default_rng(8)
    # Without information a sweep leaves each unseen feature above the slice to some row.
    used = [slice_features(rng, feature, loading, x, 9.0, 0.1, alpha, 1.0, 0.0) for _ in range(20)]
    assert min(used) == -1
