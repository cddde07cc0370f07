"""One column whose noise may be exactly normal: evidences, weights and draws against sums over prior draws and the score BGe."""

import numpy as np
import pytest

from scipy import stats
from scipy.special import logsumexp

from bayesstruct.networks.exact.problem import network_problem
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.sem.exact.posterior import sem_posterior
from bayesstruct.sem.kernels.errors import BASE, LOCATIONS, WIDTHS
from bayesstruct.sem.kernels.scores import SemScores
from bayesstruct.sem.kernels.settings import sem_settings


def _table(n, d=2, seed=4):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n), rng.exponential(size=n)])
    x = np.hstack([x, rng.laplace(size=(n, d - 2))])
    return (x - x.mean(0)) / x.std(0)


def _scores(x, p, **options):
    settings = sem_settings(x.shape[1], noise="mixture", normal_probability=p, **options)
    return SemScores(x, settings)


def _evidences(x, parents, settings, draws=400_000):
    """Log evidences of the last column under a mixture and under normal noise: means over draws from the prior."""
    rng, k = np.random.default_rng(0), len(parents)
    y, z = x[:, -1], x[:, list(parents)]
    s = rng.gamma(settings.shape + 0.5 * k, 1.0 / settings.rate, draws) ** -0.5
    c = s * rng.standard_normal(draws) / np.sqrt(settings.alpha_mu)
    b = s[:, None] * settings.scale * rng.standard_normal((draws, k))
    weights = rng.dirichlet(settings.concentration * BASE, draws)
    mixture, normal = np.zeros(draws), np.zeros(draws)
    for r in range(len(y)):
        e = (y[r] - c - b @ z[r]) / s
        mixture += np.log((weights * stats.norm.pdf(e[:, None], LOCATIONS, WIDTHS)).sum(1) / s)
        normal += stats.norm.logpdf(e) - np.log(s)
    return [float(logsumexp(own) - np.log(draws)) for own in (mixture, normal)]


@pytest.mark.statistical
@pytest.mark.parametrize("parents", [(), (0,)])
def test_evidence_and_probability_of_normal_noise_are_those_of_prior_draws(parents):
    x, p = _table(8), 0.3
    scores = _scores(x, p)
    mixture, normal = _evidences(x, parents, scores.settings)
    total = np.logaddexp(np.log(1 - p) + mixture, np.log(p) + normal)
    # The score is an approximation by 64 draws; 400,000 draws from the prior are good to .01.
    assert scores.local(1, parents) == pytest.approx(total, abs=0.15)
    family = scores.family(1, parents)
    theta, logs = family.draws(np.random.default_rng(1), 20_000)
    assert logsumexp(logs) - np.log(len(logs)) == pytest.approx(total, abs=0.03)
    weights = np.exp(logs - logs.max())
    share = (weights @ family.is_normal(theta)) / weights.sum()
    assert share == pytest.approx(p * np.exp(normal - total), abs=0.02)
    again = [family.log_weight(own) for own in theta[:20]]
    np.testing.assert_allclose(again, logs[:20])


@pytest.mark.parametrize("prior", ["spike_slab", "laplace", "horseshoe"])
def test_noise_that_is_never_normal_or_always_is_that_of_the_settings(prior):
    x = _table(40, 3)
    never, mixture = (
        _scores(x, 0.0, prior=prior),
        SemScores(x, sem_settings(3, noise="mixture", prior=prior)),
    )
    always = _scores(x, 1.0, prior=prior)
    normal = SemScores(x, sem_settings(3, noise="gaussian", prior=prior))
    for parents in [(), (0,), (0, 1)]:
        assert never.local(2, parents) == mixture.local(2, parents)
        # Without a closed form fits begin elsewhere.
        exact = 1e-9 if prior == "spike_slab" else 1e-5
        assert always.local(2, parents) == pytest.approx(normal.local(2, parents), abs=exact)
        if prior == "spike_slab":
            assert always.local(2, parents) == pytest.approx(BGe(x).local(2, parents), abs=1e-9)
        family = always.family(2, parents)
        assert family.is_normal(family.draws(np.random.default_rng(0), 50)[0]).all()


def test_parameters_of_normal_noise_have_no_shape():
    family = _scores(_table(30), 0.5, prior="horseshoe").family(1, (0,))
    theta, _ = family.draws(np.random.default_rng(0), 40)
    normal = family.is_normal(theta)
    assert 0 < normal.sum() < 40
    np.testing.assert_array_equal(np.isnan(theta).any(axis=1), normal)
    for own in theta[[np.argmax(normal), np.argmin(normal)]]:
        settings, fit, short = family.part(own)
        assert len(short) == len(fit.mode) + 1  # one local scale
        assert settings.normal_probability == (0.5 if len(short) == len(own) else 0.0)
        np.testing.assert_array_equal(family.whole(short), own)
    now, weights = family.draws(np.random.default_rng(0), 3, now=theta[1])
    np.testing.assert_array_equal(now[0], theta[1])
    assert weights[0] == family.log_weight(theta[1])


def test_columns_without_rows_keep_the_prior_of_normal_noise():
    scores = _scores(np.zeros((0, 2)), 0.2)
    assert scores.local(0, (1,)) == pytest.approx(0.0, abs=1e-12)
    assert scores.family(0, (1,)).chance == pytest.approx(0.2)


@pytest.mark.statistical
def test_probabilities_of_normal_noise_tell_normal_columns_from_others():
    x = _table(300, 3)
    found = sem_posterior(
        network_problem(_scores(x, 0.5)), draws=1600, rng=np.random.default_rng(1)
    ).normal_probabilities
    assert found["x0"] > 0.7
    assert found[["x1", "x2"]].max() < 0.05
