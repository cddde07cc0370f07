"""The share of columns with normal noise: its posterior by evidences against sums over all kinds of noise and a fine grid."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from scipy import stats

from bayesstruct.networks.exact.problem import network_problem
from bayesstruct.sem.kernels.references import at_reference
from bayesstruct.sem.kernels.scores import SemScores
from bayesstruct.sem.kernels.settings import sem_settings
from bayesstruct.sem.kernels.shares import (
    count_weights,
    draw_share,
    mean_share,
    share_given_kinds,
    share_points,
)

LOGS = np.array([[-3.0, -2.0], [-700.0, -703.0], [1.0, 1.5], [-2.0, -np.inf]])  # mixture, normal
FAMILIES = [SimpleNamespace(evidence=own, normal_evidence=normal) for own, normal in LOGS]
FLAT = sem_settings(4, noise="mixture", normal_probability=None)
SKEWED = FLAT._replace(share_alpha=0.5, share_beta=3.0)
GRID = (np.arange(200_000) + 0.5) / 200_000


def _posterior(settings):
    """Posterior of the share on a fine grid."""
    log = stats.beta.logpdf(GRID, settings.share_alpha, settings.share_beta)
    for own, normal in LOGS:
        log = log + np.logaddexp(np.log1p(-GRID) + own, np.log(GRID) + normal)
    weights = np.exp(log - log.max())
    return weights / weights.sum()


def test_the_number_of_normal_columns_is_a_sum_over_all_kinds_of_noise():
    wanted = np.zeros(5)
    for kinds in product((0, 1), repeat=4):
        prior = stats.betabinom.pmf(sum(kinds), 4, 0.5, 3.0)
        prior /= np.exp(stats.binom.logpmf(sum(kinds), 4, 0.5)) * 16  # of one of these sets
        wanted[sum(kinds)] += prior * np.exp(LOGS[range(4), kinds].sum() + 700.0)
    np.testing.assert_allclose(count_weights(FAMILIES, SKEWED), wanted / wanted.sum(), atol=1e-12)


@pytest.mark.parametrize("settings", [FLAT, SKEWED])
def test_mean_and_draws_of_the_share_are_those_of_a_fine_grid(settings):
    weights, rng = _posterior(settings), np.random.default_rng(0)
    # The density is infinite at 0 with alpha = 1/2, where the grid is coarse.
    assert mean_share(FAMILIES, settings) == pytest.approx(weights @ GRID, abs=2e-3)
    draws = [draw_share(rng, FAMILIES, settings) for _ in range(4000)]
    assert stats.kstest(draws, lambda x: np.interp(x, GRID, weights.cumsum())).pvalue > 1e-3
    kinds = np.array([True, False, False, False])
    draws = [share_given_kinds(rng, kinds, settings) for _ in range(4000)]
    own = stats.beta(settings.share_alpha + 1, settings.share_beta + 3)
    assert stats.kstest(draws, own.cdf).pvalue > 1e-3


@pytest.mark.parametrize("settings", [FLAT, SKEWED])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_points_integrate_polynomials(settings, d):
    points, logs = share_points(settings, d)
    own = stats.beta(settings.share_alpha, settings.share_beta)
    for power in range(d + 2):
        assert np.exp(logs) @ points**power == pytest.approx(own.moment(power), rel=1e-10)


def test_a_share_that_is_fixed_is_its_only_point():
    points, logs = share_points(sem_settings(4, noise="mixture", normal_probability=0.3), 4)
    assert (points.tolist(), logs.tolist()) == ([0.3], [0.0])


def test_scores_at_another_share_have_no_new_fits(monkeypatch):
    x = np.random.default_rng(0).laplace(size=(30, 2))
    scores = SemScores(x, FLAT)
    evidence = scores.local(0, (1,))
    other = scores.at_share(0.9)
    fresh = SemScores(x, FLAT._replace(normal_probability=0.9))
    wanted = fresh.local(0, (1,))
    monkeypatch.setattr(SemScores, "_evidence", None)
    assert other.local(0, (1,)) == wanted != evidence
    assert scores.local(0, (1,)) == evidence
    assert other.family(0, (1,)).score == wanted


@pytest.mark.statistical
def test_the_share_of_scores_is_its_mean_given_a_good_graph():
    rng = np.random.default_rng(0)
    means = []
    for draw in (rng.standard_normal, rng.standard_exponential):
        x = draw((200, 4))
        problem = network_problem(SemScores((x - x.mean(0)) / x.std(0), FLAT))
        means.append(at_reference(problem).score.settings.normal_probability)
    # Of Beta(5, 1) and Beta(1, 5), had the columns told their noise for sure.
    assert means[0] > 0.7 and means[1] == pytest.approx(1 / 6, abs=0.01)
