"""The mode of the precision matrices of several groups, against a density written without the package."""

import numba
import numpy as np
import pymc as pm
import pytest

from scipy.optimize import minimize
from scipy.special import xlogy
from scipy.stats import multivariate_normal
from tools.group_integration import GroupPrior, IndicatorPrior

import bayesstruct as bs

PRIOR = GroupPrior(3, edge=0.4, difference=0.5, spike=0.1, slab=1.0, small=0.1, large=1.0)
EDGES = IndicatorPrior(3, edge=0.4, difference=0.8, spike=0.1, slab=1.0)
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


def build(x, prior=PRIOR, **options):
    own = {"equal_scale": prior.small, "difference_scale": prior.large}
    if prior is EDGES:
        own = {"differences": "indicators"}
    probabilities = {"edge_probability": prior.edge, "difference_probability": prior.difference}
    return bs.models.grouped_gaussian_graphical(
        x,
        group=GROUP,
        spike_scale=prior.spike,
        slab_scale=prior.slab,
        standardize=False,
        **probabilities | own | options,
    )


def log_density(x, K, mean, prior=PRIOR):
    """Posterior density of matrices and means given the observed values, on the natural scale."""
    if np.linalg.eigvalsh(K).min() <= 0:
        return -np.inf
    covariance = np.linalg.inv(K)
    total = -0.5 * (mean**2).sum() - prior.rate * np.trace(K, axis1=1, axis2=2).sum()
    total += np.logaddexp.reduce(prior.log_densities(K[:, PAIRS[0], PAIRS[1]].T), axis=1).sum()
    for row, g in zip(x, GROUP, strict=True):
        seen = np.isfinite(row)
        own = covariance[g][np.ix_(seen, seen)]
        total += multivariate_normal(mean[g][seen], own).logpdf(row[seen])
    return total


def assert_maximum(density, *point):
    """Values near a point are lower, and its slopes are small beside the curvature."""
    best, rng = density(*point), np.random.default_rng(0)
    for direction in range(12):
        steps = [rng.normal(size=np.shape(value)) for value in point]
        steps[0] = steps[0] + steps[0].swapaxes(1, 2)
        scales = [1.0, *np.full(len(point) - 1, float(direction % 2))]
        low, high = (
            density(*(v + t * s * e for v, s, e in zip(point, scales, steps, strict=True)))
            for t in (-1e-3, 1e-3)
        )
        assert max(low, high) < best
        # central difference of a function whose second derivative is some hundreds
        assert abs(high - low) / 2e-3 < 1e-3 * abs(low + high - 2 * best) / 1e-6


@pytest.mark.chain
@pytest.mark.parametrize("gaps", [False, True])
def test_the_mode_is_a_maximum_of_the_density(gaps):
    x = rows(gaps)
    mode = bs.find_MAP(build(x))
    K, mean = mode["precision"], mode["mean"]
    assert_maximum(lambda *point: log_density(x, *point), K, mean)
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


@pytest.mark.chain
def test_the_mode_with_edges_of_each_group():
    x = rows(True)
    second = GROUP == 1
    x[second, 3] -= 0.8 * np.nan_to_num(x[second, 2])  # hardly an edge there
    mode = bs.find_MAP(build(x, EDGES))
    K, mean = mode["precision"], mode["mean"]
    assert_maximum(lambda *point: log_density(x, *point, prior=EDGES), K, mean)
    logs = EDGES.log_patterns(K[:, PAIRS[0], PAIRS[1]].T)
    np.testing.assert_array_equal(mode["group_edge"], EDGES.patterns[0][logs.argmax(axis=1)].T)
    assert mode["group_edge"][:, 0].tolist() == [1, 1, 1]
    assert mode["group_edge"][:, 5].tolist() == [1, 0, 1]
    assert (mode["edge"][5], mode["difference"][5], mode["difference"][0]) == (1, 1, 0)


@pytest.mark.chain
@pytest.mark.parametrize("prior", [PRIOR, EDGES])
def test_the_mode_with_learned_probabilities(prior):
    x, shapes = rows(False), ((2.0, 3.0), (3.0, 2.0))
    edge, difference = (pm.Beta.dist(*own) for own in shapes)
    mode = bs.find_MAP(build(x, prior, edge_probability=edge, difference_probability=difference))
    shares = mode["edge_probability"], mode["difference_probability"]

    def density(K, mean, *shares):
        own = type(prior)(3, *shares, *prior.scales[:2], prior.small, prior.large)
        beta = [
            xlogy(a - 1, s) + xlogy(b - 1, 1 - s) for (a, b), s in zip(shapes, shares, strict=True)
        ]
        return log_density(x, K, mean, own) + sum(beta)

    assert 0.2 < shares[0] < 0.6
    assert_maximum(density, mode["precision"], mode["mean"], *shares)


def test_the_mode_of_a_probability_that_no_pair_informs():
    forbidden = [("x0", "x1"), ("x0", "x2"), ("x1", "x2")]
    own = {"forbidden": forbidden, "difference_probability": pm.Beta.dist(1, 1)}
    with bs.models.grouped_gaussian_graphical(rows(False)[:, :3], group=GROUP, **own):
        assert bs.find_MAP()["difference_probability"] == pytest.approx(0.5)


def test_elements_of_a_pair_are_the_best_of_all_patterns():
    """The maximum over one pair in all groups is that of all 2**G patterns."""
    from bayesstruct.precision.kernels.row_groups.edges_mode import best_with_indicators

    @numba.njit
    def best_of_pair(b, h, log_prior, scales, new, best, work):
        best_with_indicators(b, h, log_prior, scales, new, best, work)

    rng, groups = np.random.default_rng(4), 3
    prior = IndicatorPrior(groups, edge=0.4, difference=0.5, spike=0.1, slab=1.0)
    log_prior, work = np.log(prior.relations), np.zeros((7, groups))
    for _ in range(6):
        h = rng.uniform(5, 60, groups)
        b = h * rng.normal(size=groups) * 0.5
        best = rng.normal(size=groups)
        best_of_pair(b, h, log_prior, prior.scales, np.zeros(groups), best, work)

        def density(u, h=h, b=b):
            return np.logaddexp.reduce(prior.log_densities(u[None])[0]) + b @ u - 0.5 * h @ u**2

        starts = [
            b / (h + np.where(e == 1, 1 / prior.slab**2, 1 / prior.spike**2))
            for e in prior.patterns[0]
        ]
        found = [minimize(lambda u: -density(u), start, method="BFGS") for start in starts]
        assert density(best) > -min(own.fun for own in found) - 1e-6


def test_other_models_are_refused_with_the_reason():
    x = rows(False)
    own = bs.models.grouped_gaussian_graphical(x, group=GROUP, differences="indicators")
    with own:
        pm.Normal("more", own["precision"][0, 0, 1])
    with pytest.raises(ValueError, match="'more' is not the one table"):
        bs.find_MAP(own)
