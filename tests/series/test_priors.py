"""Distributions of series that share behaviours, and of the parameters of behaviours."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

from bayesstruct.series.kernels.forward import forward_gains
from bayesstruct.series.priors import BehaviourScales, BehaviourTransitions, SwitchingSeries

FEATURE = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0]], np.int8)


@pytest.mark.statistical
def test_transitions_are_dirichlet_among_the_own_behaviours():
    rv = BehaviourTransitions.dist(FEATURE, 0.7, 2.0)
    draw = pm.draw(rv, random_seed=1)
    own = FEATURE[:, :, None] * FEATURE[:, None, :]
    assert not draw[own == 0].any()
    np.testing.assert_allclose(draw.sum(axis=2), FEATURE)
    expected = sum(
        stats.dirichlet([2.7, 0.7] if k == ks[0] else [0.7, 2.7]).logpdf(draw[i, k, ks])
        for i, ks in ((0, [0, 1]), (1, [0, 2]))
        for k in ks
    )
    assert pm.logp(rv, draw).eval() == pytest.approx(expected)
    stays = pm.draw(rv, 3000, random_seed=2)[:, 0, 0, 0]
    # Beta(2.7, 0.7).
    beta = stats.beta(2.7, 0.7)
    assert abs(stays.mean() - beta.mean()) < 4 * beta.std() / np.sqrt(3000)
    for place, value in (((0, 0, 0), 0.9), ((2, 1, 1), 1.0)):
        wrong = draw.copy()
        wrong[place] = value
        assert np.isneginf(pm.logp(rv, wrong).eval())


def test_rows_of_a_small_concentration_are_certain_and_not_zero():
    rv = BehaviourTransitions.dist(FEATURE, 0.001, 0.0)
    draws = pm.draw(rv, 400, random_seed=3)
    np.testing.assert_allclose(draws.sum(axis=3), np.broadcast_to(FEATURE, (400, 3, 4)))
    # Beta(0.001, 0.001): each of two is certain in half of the draws.
    first = draws[:, 0, 0, 0]
    assert ((first < 1e-9) | (first > 1 - 1e-9)).mean() > 0.9
    assert abs(first.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(400)
    assert np.isfinite(pm.logp(rv, draws[0]).eval())


@pytest.mark.statistical
def test_scales_are_roots_of_inverse_gamma_variables():
    rv = BehaviourScales.dist(FEATURE, 3.0, 0.5, variables=2)
    draw = pm.draw(rv, random_seed=1)
    assert (draw[:3] > 0).all()
    assert not draw[3].any()
    variance = stats.invgamma(3.0, scale=0.5)
    expected = (variance.logpdf(draw[:3] ** 2) + np.log(2 * draw[:3])).sum()
    assert pm.logp(rv, draw).eval() == pytest.approx(expected)
    assert stats.kstest(pm.draw(rv, 1000, random_seed=3)[:, 1, 0] ** 2, variance.cdf).pvalue > 1e-3
    draw[3, 0] = 1.0
    assert np.isneginf(pm.logp(rv, draw).eval())


def test_the_density_of_series_is_the_forward_algorithm():
    rng = np.random.default_rng(5)
    transition = pm.draw(BehaviourTransitions.dist(FEATURE, 1.0, 1.0), random_seed=4)
    mean, scale, x = rng.normal(size=(4, 2)), rng.uniform(1, 2, (4, 2)), rng.normal(size=(9, 2))
    seen = np.ones((9, 2))
    seen[4, 1] = 0
    rv = SwitchingSeries.dist(FEATURE, transition, mean, scale, lengths=[4, 3, 2], seen=seen)
    cells = np.where(seen > 0, x, np.nan)
    expected = forward_gains(FEATURE, transition, mean, scale, cells, np.array([0, 4, 7, 9]))
    np.testing.assert_allclose(pm.logp(rv, x).eval(), expected)
    empty = FEATURE * [[1], [0], [1]]
    rv = SwitchingSeries.dist(empty, transition, mean, scale, lengths=[4, 3, 2], seen=seen)
    assert np.isneginf(pm.logp(rv, x).eval()[4:7]).all()
    assert np.isnan(pm.draw(rv, random_seed=1)[4:7]).all()
    with pytest.raises(ValueError, match="`lengths`"):
        SwitchingSeries.dist(FEATURE, transition, mean, scale, lengths=[4, 0], seen=seen)


@pytest.mark.statistical
def test_draws_of_series_have_the_moments_of_the_chain():
    transition = np.array([[[0.9, 0.1], [0.4, 0.6]]])
    mean, scale = np.array([[3.0], [-1.0]]), np.array([[1.0], [0.5]])
    rv = SwitchingSeries.dist(
        np.ones((1, 2), np.int8), transition, mean, scale, lengths=[2], seen=np.ones((2, 1))
    )
    x = pm.draw(rv, 4000, random_seed=6)[:, :, 0]
    chance = np.array([[0.5, 0.5], [0.65, 0.35]])
    first, second = chance @ [3, -1], chance @ [9 + 1, 1 + 0.25]
    error = np.sqrt((second - first**2) / 4000)
    assert (abs(x.mean(axis=0) - first) < 4.5 * error).all()
    product = 0.5 * (0.9 * 9 - 0.1 * 3) + 0.5 * (-0.4 * 3 + 0.6)
    values = x.prod(axis=1)
    assert abs(values.mean() - product) < 4.5 * values.std() / np.sqrt(4000)
