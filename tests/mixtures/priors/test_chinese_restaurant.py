"""Partitions: their distribution, draws, and refused parameters."""

import math

import numpy as np
import pymc as pm
import pytest

from scipy import stats
from tools.partitions import partitions, sizes

from bayesstruct.mixtures.kernels.chinese_restaurant import (
    draw_labels,
    log_restaurant,
    mean_clusters,
    relabel,
)
from bayesstruct.mixtures.priors.chinese_restaurant import ChineseRestaurant, default_max_clusters


def seating(labels, alpha):
    """Probability of labels, one object after another."""
    p = 1.0
    for i, label in enumerate(labels):
        before = labels[:i]
        p *= (before.count(label) or alpha) / (i + alpha)
    return p


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.5])
def test_the_density_is_that_of_seating_and_sums_to_one(alpha):
    every = partitions(6)
    assert len(every) == 203  # the sixth Bell number
    rv = ChineseRestaurant.dist(alpha, observations=6, max_clusters=6, size=len(every))
    logp = pm.logp(rv, np.array(every)).eval()
    assert np.exp(logp).sum() == pytest.approx(1.0, abs=1e-12)
    expected = np.log([seating(labels, alpha) for labels in every])
    np.testing.assert_allclose(logp, expected, rtol=1e-10)
    by_sizes = [log_restaurant(sizes(labels), alpha) for labels in every]
    np.testing.assert_allclose(logp, by_sizes, rtol=1e-10)


def test_it_is_the_limit_of_many_classes_of_which_each_object_has_one():
    """Binary matrices with a single one in each row, by their histories, as in the buffet's derivation."""
    every, alpha, K = partitions(5), 1.7, 1e7
    weight = alpha / K
    for labels in every:
        m = sizes(labels)
        finite = sum(math.log(K - k) for k in range(len(m)))
        finite += sum(math.lgamma(n + weight) - math.lgamma(weight) for n in m)
        finite += math.lgamma(alpha) - math.lgamma(5 + alpha)
        assert log_restaurant(m, alpha) == pytest.approx(finite, abs=1e-5)


def test_the_order_of_objects_does_not_matter():
    labels = np.array([0, 1, 0, 2, 2, 0, 3])
    rv = ChineseRestaurant.dist(1.7, observations=7)
    first = pm.logp(rv, labels).eval()
    rng, names = np.random.default_rng(1), np.empty(7, np.int64)
    for _ in range(4):
        other = rng.permutation(labels)
        relabel(other, names)
        assert pm.logp(rv, other).eval() == pytest.approx(first, rel=1e-12)


@pytest.mark.statistical
def test_draws_have_the_density():
    every, alpha = partitions(5), 1.4
    rv = ChineseRestaurant.dist(alpha, observations=5, max_clusters=5)
    drawn = pm.draw(rv, 5000, random_seed=2)
    seen = dict.fromkeys(every, 0)
    for labels in drawn:
        seen[tuple(int(v) for v in labels)] += 1
    expected = np.array([seating(labels, alpha) for labels in every]) * len(drawn)
    assert stats.chisquare(list(seen.values()), expected).pvalue > 1e-3
    # Another mass is told from this one.
    wrong = np.array([seating(labels, 1.0) for labels in every]) * len(drawn)
    assert stats.chisquare(list(seen.values()), wrong).pvalue < 1e-6


def test_mean_number_of_clusters():
    rng = np.random.default_rng(3)
    number = np.array([draw_labels(rng, 40, 2.5).max() + 1 for _ in range(3000)])
    mean = sum(2.5 / (2.5 + i) for i in range(40))
    assert mean_clusters(40, 2.5) == pytest.approx(mean)
    assert abs(number.mean() - mean) < 4 * number.std() / math.sqrt(3000)
    assert number.max() <= default_max_clusters(40, 2.5) < 40


@pytest.mark.parametrize(
    "labels",
    [[1, 0, 0, 0], [0, 2, 1, 0], [0, 0, 0, 2], [-1, 0, 0, 0], [0, 1, 2, 3], [1, 1, 1, 1]],
)
def test_labels_out_of_order_are_impossible(labels):
    rv = ChineseRestaurant.dist(1.0, observations=4, max_clusters=3)
    assert np.isneginf(pm.logp(rv, np.array(labels)).eval())


def test_mass_may_be_random():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2.0, 1.0)
        ChineseRestaurant("cluster", alpha, observations=6, max_clusters=6)
        prior = pm.sample_prior_predictive(400, random_seed=4)
    drawn = prior["prior"]["cluster"].to_numpy()[0]
    assert drawn.shape == (400, 6)
    # E K given alpha, over the prior of alpha.
    mean = stats.gamma(2).expect(lambda a: mean_clusters(6, a))
    number = drawn.max(axis=1) + 1
    assert abs(number.mean() - mean) < 4 * number.std() / 20
    assert np.isfinite(model.compile_logp()(model.initial_point()))


def test_bad_input():
    for options, words in [
        ({"alpha": 0.0}, "`alpha`"),
        ({"alpha": np.nan}, "`alpha`"),
        ({"observations": 0}, "`observations`"),
        ({"observations": 2.5}, "`observations`"),
        ({"max_clusters": 0}, "`max_clusters`"),
    ]:
        with pytest.raises(ValueError, match=words):
            ChineseRestaurant.dist(**{"alpha": 1.0, "observations": 5, **options})
    with pytest.raises(TypeError, match="`observations`"):
        ChineseRestaurant.dist(1.0, observations=True)
    with pm.Model(), pytest.raises(ValueError, match="alpha is random"):
        ChineseRestaurant("c", pm.Gamma("a", 1.0, 1.0), observations=5)
    rv = ChineseRestaurant.dist(30.0, observations=20, max_clusters=2)
    with pytest.raises(ValueError, match="set `max_clusters` to more"):
        pm.draw(rv, random_seed=1)
