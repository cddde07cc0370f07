"""The mode of the precision matrices of several groups, against a density written without the package."""

import numpy as np
import pymc as pm
import pytest

from scipy.stats import multivariate_normal
from tools.group_integration import GroupPrior

import bayesstruct as bs

PRIOR = GroupPrior(3, edge=0.4, difference=0.5, spike=0.1, slab=1.0, small=0.1, large=1.0)
SIZES, P = (30, 40, 25), 4
PAIRS = np.triu_indices(P, 1)
GROUP = np.repeat([0, 1, 2], SIZES)


def rows(gaps):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(sum(SIZES), P))
    x[:, 1] += 0.9 * x[:, 0] * np.where(GROUP == 2, -1, 1)
    x[:, 3] += 0.8 * x[:, 2]
    if gaps:
        x[0, 1] = x[40, 2] = x[40, 3] = x[80, 0] = np.nan
    return x


def build(x, **options):
    return bs.models.grouped_gaussian_graphical(
        x,
        group=GROUP,
        edge_probability=PRIOR.edge,
        difference_probability=PRIOR.difference,
        spike_scale=PRIOR.spike,
        slab_scale=PRIOR.slab,
        equal_scale=PRIOR.small,
        difference_scale=PRIOR.large,
        standardize=False,
        **options,
    )


def log_density(x, K, mean):
    """Posterior density of matrices and means given the observed values, on the natural scale."""
    if np.linalg.eigvalsh(K).min() <= 0:
        return -np.inf
    covariance = np.linalg.inv(K)
    total = -0.5 * (mean**2).sum() - PRIOR.rate * np.trace(K, axis1=1, axis2=2).sum()
    total += np.logaddexp.reduce(PRIOR.log_densities(K[:, PAIRS[0], PAIRS[1]].T), axis=1).sum()
    for row, g in zip(x, GROUP, strict=True):
        seen = np.isfinite(row)
        own = covariance[g][np.ix_(seen, seen)]
        total += multivariate_normal(mean[g][seen], own).logpdf(row[seen])
    return total


@pytest.mark.chain
@pytest.mark.parametrize("gaps", [False, True])
def test_the_mode_is_a_maximum_of_the_density(gaps):
    x = rows(gaps)
    mode = bs.find_MAP(build(x))
    K, mean = mode["precision"], mode["mean"]
    best, rng = log_density(x, K, mean), np.random.default_rng(0)
    for direction in range(12):
        step = rng.normal(size=K.shape)
        step = step + step.swapaxes(1, 2)
        of_mean = rng.normal(size=mean.shape) * (direction % 2)
        near = [log_density(x, K + t * step, mean + t * of_mean) for t in (-1e-3, 1e-3)]
        assert max(near) < best
        # central difference of a function whose second derivative is some hundreds
        assert abs(near[1] - near[0]) / 2e-3 < 1e-3 * abs(near[0] + near[1] - 2 * best) / 1e-6
    logs = PRIOR.log_densities(K[:, PAIRS[0], PAIRS[1]].T)
    np.testing.assert_array_equal(mode["relation"], logs.argmax(axis=1))
    assert mode["relation"][0] == 2 and mode["relation"][5] == 1
    np.testing.assert_array_equal(mode["edge"], mode["relation"] > 0)
    if gaps:
        g, k = GROUP[0], K[GROUP[0]]
        e = x[0] - mean[g]
        expected = mean[g, 1] - (k[1, [0, 2, 3]] @ e[[0, 2, 3]]) / k[1, 1]
        assert mode["x_missing"][0] == pytest.approx(expected, abs=1e-6)


def test_equal_groups_have_one_matrix():
    x, rng = rows(False), np.random.default_rng(2)
    x[GROUP == 1] = np.tile(x[GROUP == 0], (2, 1))[:40] + 1e-3 * rng.normal(size=(40, P))
    mode = bs.find_MAP(build(x))
    assert np.abs(mode["weight"][0] - mode["weight"][1]).max() < 0.1
    assert np.abs(mode["weight"][0] - mode["weight"][2]).max() > 0.5


def test_other_models_are_refused_with_the_reason():
    x = rows(False)
    own = bs.models.grouped_gaussian_graphical(x, group=GROUP, differences="indicators")
    with pytest.raises(ValueError, match=r"'group_edge'.*differences=\"contrasts\""):
        bs.find_MAP(own)
    with own:
        pm.Normal("more", own["precision"][0, 0, 1])
    with pytest.raises(ValueError, match="'more' is not the one table"):
        bs.find_MAP(own)
