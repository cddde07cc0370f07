"""The prior of several groups and the rows of their table: densities, draws, transform, errors."""

import numpy as np
import pymc as pm
import pytest

from scipy.stats import multivariate_normal
from tools.group_integration import GroupPrior, IndicatorPrior, groups_prior

import bayesstruct as bs

from bayesstruct.distributions import (
    GroupedCovariance,
    GroupEdges,
    GroupedMissingValues,
    GroupedNormal,
    GroupedSpikeSlab,
    GroupIndicatorSpikeSlab,
    IncompleteGroupedNormal,
    Relations,
    implied_group_edge_probability,
    implied_relation_probabilities,
)
from bayesstruct.precision.kernels.cholesky import pack_cholesky
from bayesstruct.precision.kernels.row_groups.prior import draw_group_edges, log_relations

P, PAIRS = 3, np.triu_indices(3, 1)


def options(prior):
    if isinstance(prior, IndicatorPrior):
        own = {"spike_scale": prior.spike, "slab_scale": prior.slab}
        return own | {"diagonal_rate": prior.rate}
    names = ("spike_scale", "slab_scale", "equal_scale", "difference_scale")
    return dict(zip(names, prior.scales, strict=True)) | {"diagonal_rate": prior.rate}


PRIORS = {GroupPrior: GroupedSpikeSlab, IndicatorPrior: GroupIndicatorSpikeSlab}


def some_matrices(groups, seed=0):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(groups, P, P))
    return factors @ factors.swapaxes(1, 2) + 0.5 * np.eye(P)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("kind", PRIORS)
def test_density_against_explicit_contrasts_and_patterns(kind, groups):
    prior, K = kind(groups), some_matrices(groups)
    rv = PRIORS[kind].dist(groups, P, prior.edge, prior.difference, **options(prior))
    logs = prior.log_densities(K[:, PAIRS[0], PAIRS[1]].T)
    diagonal = K[:, np.arange(P), np.arange(P)]
    expected = np.logaddexp.reduce(logs, axis=1).sum()
    expected += (np.log(prior.rate) - prior.rate * diagonal).sum()
    assert pm.logp(rv, K).eval() == pytest.approx(expected, rel=1e-10)
    K[1, 0, 1] = K[1, 1, 0] = 100.0
    assert pm.logp(rv, K).eval() == -np.inf


@pytest.mark.parametrize("groups", [2, 3])
def test_density_of_relations_given_the_matrices(groups):
    prior, K = GroupPrior(groups), some_matrices(groups)
    logs = prior.log_densities(K[:, PAIRS[0], PAIRS[1]].T)
    with pm.Model():
        matrices = GroupedSpikeSlab("K", groups, P, prior.edge, prior.difference, **options(prior))
        relation = Relations("relation", matrices)
    chosen = np.array([2, 0, 1])
    logp = pm.logp(relation, chosen).eval({matrices: K})
    chances = logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)
    assert logp == pytest.approx(chances[np.arange(3), chosen].sum(), rel=1e-10)


@pytest.mark.parametrize("groups", [2, 3])
def test_density_and_draws_of_edges_given_the_matrices(groups):
    prior, K = IndicatorPrior(groups), some_matrices(groups)
    with pm.Model():
        own = options(prior)
        matrices = GroupIndicatorSpikeSlab("K", groups, P, prior.edge, prior.difference, **own)
        edges = GroupEdges("edge", matrices)
    logs = prior.log_patterns(K[:, PAIRS[0], PAIRS[1]].T)
    chances = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    patterns, chosen = prior.patterns[0], np.array([0, 1, 2**groups - 1])
    logp = pm.logp(edges, patterns[chosen].T).eval({matrices: K})
    assert logp == pytest.approx(np.log(chances[np.arange(3), chosen]).sum(), rel=1e-9)
    assert pm.draw(edges, random_seed=1).shape == (groups, 3)
    rng, kept = np.random.default_rng(1), []
    log_prior = log_relations(np.full((P, P), prior.edge), np.full((P, P), prior.difference))
    for _ in range(4_000):
        kept.append(draw_group_edges(rng, K, log_prior, prior.spike, prior.slab))
    codes = (np.moveaxis(kept, 1, 2) @ 2 ** np.arange(groups)[::-1]).astype(int)
    for pair in range(3):
        found = np.bincount(codes[:, pair], minlength=2**groups) / 4_000
        assert np.abs(found - chances[pair]).max() < 5 * 0.5 / np.sqrt(4_000)


def test_transform_has_its_jacobian():
    from bayesstruct.precision.priors.groups import GroupedCholesky

    transform, K = GroupedCholesky(2, P), some_matrices(2)
    value = np.stack([pack_cholesky(k) for k in K])
    np.testing.assert_allclose(transform.backward(value).eval(), K)
    np.testing.assert_allclose(transform.forward(K).eval(), value)
    lower = np.tril_indices(P)

    def elements(v):
        return transform.backward(v.reshape(value.shape)).eval()[:, lower[0], lower[1]].ravel()

    step, flat = 1e-6, value.ravel()
    jacobian = [
        (elements(flat + step * e) - elements(flat - step * e)) / (2 * step)
        for e in np.eye(flat.size)
    ]
    expected = np.linalg.slogdet(np.array(jacobian))[1]
    assert transform.log_jac_det(value).eval() == pytest.approx(expected, abs=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("groups", [2, 4])  # by rejection, and by sweeps
@pytest.mark.parametrize("kind", PRIORS)
def test_draws_have_the_distribution_of_rejection(kind, groups):
    prior = kind(groups)
    rv = PRIORS[kind].dist(groups, P, prior.edge, prior.difference, **options(prior))
    draws = pm.draw(rv, 3_000, random_seed=1)
    exact, relations = groups_prior(np.random.default_rng(2), 3_000, P, prior)

    def statistics(K):
        u = K[:, :, PAIRS[0], PAIRS[1]]
        values = [u[:, 0] * u[:, 1], u[:, 0] ** 2, np.diagonal(K, axis1=2, axis2=3).mean(axis=1)]
        return np.hstack(values)

    a, b = statistics(draws), statistics(exact)
    error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / 3_000)
    assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) / error).max() < 4.5
    # and the implied probabilities are those of the same draws
    nominal, none = (prior.edge, prior.difference), {"equal_scale": None, "difference_scale": None}
    edge, difference = implied_relation_probabilities(groups, P, *nominal, **none | options(prior))
    assert edge[0] == pytest.approx((relations > 0).mean(), abs=0.03)
    assert difference[0] == pytest.approx((relations == 2).mean(), abs=0.03)
    if kind is IndicatorPrior:
        logs = prior.log_patterns(
            np.moveaxis(exact[:, :, PAIRS[0], PAIRS[1]], 1, 2).reshape(-1, groups)
        )
        chances = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
        own = implied_group_edge_probability(groups, P, *nominal, **options(prior))
        assert own[0] == pytest.approx((chances @ prior.patterns[0]).mean(), abs=0.03)


def test_implied_probabilities_of_fixed_pairs():
    edge = np.array([[0.5, 0.0, 1.0], [0.0, 0.5, 0.5], [1.0, 0.5, 0.5]])
    difference = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 1.0], [0.0, 1.0, 0.5]])
    present, differs = implied_relation_probabilities(2, 3, edge, difference)
    assert present.tolist()[:2] == [0.0, 1.0]
    assert differs.tolist()[:2] == [0.0, 0.0]
    assert 0 < differs[2] == pytest.approx(present[2], abs=1e-6)


N, GROUP = 7, np.array([0, 1, 1, 0, 2, 2, 0])
MISSING = np.zeros((N, P), bool)
MISSING[0, 1] = MISSING[2, 0] = MISSING[2, 2] = MISSING[5, 2] = True


def rows_arguments():
    rng = np.random.default_rng(3)
    mean, location = rng.normal(size=(2, 3, P))
    return GROUP, mean, some_matrices(3), location, rng.uniform(0.5, 2.0, size=(3, P))


def covariance(args, g):
    return np.linalg.inv(args[2][g]) * np.outer(args[4][g], args[4][g])


def test_rows_have_the_normal_density_of_their_group():
    args = rows_arguments()
    _, mean, _, location, scale = args
    x = np.random.default_rng(4).normal(size=(N, P))
    complete = pm.logp(GroupedNormal.dist(*args), x).eval()
    rv = IncompleteGroupedNormal.dist(*args, missing=MISSING)
    observed = pm.logp(rv, np.where(MISSING, 99.0, x)).eval()
    missing = GroupedMissingValues.dist(*args, table=x, missing=MISSING)
    given = pm.logp(missing, x[MISSING]).eval()
    expected, seen_only = [], []
    for row, g, gone in zip(x, GROUP, MISSING, strict=True):
        centre, seen = location[g] + scale[g] * mean[g], ~gone
        own = covariance(args, g)
        expected.append(multivariate_normal(centre, own).logpdf(row))
        part = own[np.ix_(seen, seen)]
        seen_only.append(multivariate_normal(centre[seen], part).logpdf(row[seen]))
    np.testing.assert_allclose(complete, expected, rtol=1e-10)
    np.testing.assert_allclose(observed, seen_only, rtol=1e-10)
    assert observed.sum() + given == pytest.approx(complete.sum(), rel=1e-10)


@pytest.mark.statistical
def test_drawn_rows_have_the_covariance_of_their_group():
    args = rows_arguments()
    draws = pm.draw(GroupedNormal.dist(*args), 20_000, random_seed=1)
    imputed = GroupedMissingValues.dist(
        *args, table=np.zeros((N, P)), missing=np.ones((N, P), bool)
    )
    free = pm.draw(imputed, 20_000, random_seed=2).reshape(-1, N, P)
    for i, g in enumerate(GROUP):
        own = covariance(args, g)
        centre = args[3][g] + args[4][g] * args[1][g]
        for values in (draws[:, i], free[:, i]):
            # five standard errors of a mean, and of a covariance of normal draws
            assert np.abs(values.mean(axis=0) - centre).max() < 5 * np.sqrt(own.max() / 20_000)
            gap = np.abs(np.cov(values.T) - own).max()
            assert gap < 5 * own.max() * np.sqrt(2 / 20_000)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"groups": 1}, "2 or more"),
        ({"equal_scale": 1.6}, "`equal_scale`.*must be below"),
        ({"spike_scale": 2.0}, "`spike_scale`.*must be below"),
        ({"difference_probability": 1.5}, "`difference_probability` must be between"),
        ({"diagonal_rate": -1.0}, "`diagonal_rate` must be positive"),
    ],
)
def test_parameters_out_of_range_are_refused(change, match):
    with pytest.raises(ValueError, match=match):
        GroupedSpikeSlab.dist(**{"groups": 2, "p": 3} | change)
    with pytest.raises(ValueError, match="GroupedSpikeSlab"), pm.Model():
        Relations("relation", bs.GraphicalSpikeSlab("K", 3))


def test_density_of_covariance_matrices_is_that_of_rows_with_zero_means():
    rng, K = np.random.default_rng(2), some_matrices(2)
    mean, scale = rng.normal(size=(2, P)), np.array([[1.0, 2.0, 0.5], [3.0, 1.0, 1.0]])
    rows = [rng.normal(size=(n, P)) for n in (5, 9)]
    rows = [scale[g] * (own - own.mean(axis=0)) for g, own in enumerate(rows)]
    cov, n = np.array([np.cov(own.T) for own in rows]), [5, 9]
    found = pm.logp(GroupedCovariance.dist(mean, K, scale, n), cov).eval()
    expected = 0.0
    for g, own in enumerate(rows):
        covariance = np.linalg.inv(K[g]) * np.outer(scale[g], scale[g])
        expected += multivariate_normal(scale[g] * mean[g], covariance).logpdf(own).sum()
    assert found == pytest.approx(expected, rel=1e-10)
