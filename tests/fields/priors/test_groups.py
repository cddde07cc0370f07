"""Weights and rows of several groups: densities, draws, starts, errors."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

import bayesstruct as bs

from bayesstruct.distributions import GroupedPairwiseMRF, GroupedWeights
from bayesstruct.fields.kernels.group_arrays import contrast_basis
from bayesstruct.fields.kernels.potentials import Potentials

EDGE, DIFFERENCE = np.array([0.3, 0.6, 1.0, 1.0]), np.array([0.5, 0.2, 0.0, 1.0])
SCALES = {"slab_scale": np.array([1.0, 2.0, 1.0, 0.5]), "difference_scale": 0.7}


def weights(groups=3):
    return GroupedWeights.dist(groups, EDGE, DIFFERENCE, **SCALES, shape=(groups, 4))


@pytest.fixture(scope="module")
def logp():
    with pm.Model() as model:
        GroupedWeights("weight", 3, EDGE, DIFFERENCE, **SCALES, shape=(3, 4))
    density = model.compile_logp(mode="FAST_COMPILE")
    return lambda value: density({"weight": value})


def expected(value):
    """Density of each pair, by its covariance matrix."""
    groups, total = len(value), 0.0
    for e, u in enumerate(value.T):
        slab, ones = SCALES["slab_scale"][e], np.ones((groups, groups))
        if (u == 0).all() and EDGE[e] < 1:
            total += np.log(1 - EDGE[e])
        elif (u == u[0]).all() and DIFFERENCE[e] < 1:
            total += np.log(EDGE[e] * (1 - DIFFERENCE[e])) + stats.norm.logpdf(u[0], 0, slab)
        else:
            share = np.log(EDGE[e]) + np.log(DIFFERENCE[e]) if DIFFERENCE[e] > 0 else -np.inf
            cov = slab**2 * ones + 0.49 * (np.eye(groups) - ones / groups)
            total += share + stats.multivariate_normal.logpdf(u, np.zeros(groups), cov)
    return total


def test_density_of_each_relation(logp):
    value = np.array([[0.0, 1.2, 0.4, 0.1], [0.0, 1.2, 0.4, 0.2], [0.0, 1.2, 0.4, -0.5]])
    assert logp(value) == pytest.approx(expected(value))
    value[:, 0], value[:, 1] = [0.3, -0.2, 0.9], [0.5, 0.0, 0.0]
    assert logp(value) == pytest.approx(expected(value))
    value[:, 1:3] = 0.0  # without an edge that may be absent; and a common weight of zero
    assert logp(value) == pytest.approx(expected(value))
    value[0, 2] = 1.0  # must not differ
    assert logp(value) == -np.inf


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_contrasts_are_orthonormal(groups):
    basis = contrast_basis(groups)
    np.testing.assert_allclose(basis[:, 1:].T @ basis, np.eye(groups)[1:], atol=1e-14)


@pytest.mark.statistical
def test_draws_have_the_relations_and_variances_of_the_prior():
    draws = pm.draw(weights(), 4_000, random_seed=1)
    there = (draws != 0).any(axis=1)
    differs = (draws != draws[:, :1]).any(axis=1)
    np.testing.assert_allclose(there.mean(0), EDGE, atol=0.03)  # four standard errors
    np.testing.assert_allclose(differs.mean(0), EDGE * DIFFERENCE, atol=0.03)
    for e in (0, 1, 3):
        own = draws[differs[:, e], :, e]
        slab = SCALES["slab_scale"][e]
        np.testing.assert_allclose(own.mean(1).std(), slab, rtol=0.13)
        np.testing.assert_allclose((own[:, 0] - own[:, 1]).std(), 0.7 * np.sqrt(2), rtol=0.13)


def test_chains_start_at_possible_weights():
    start = weights().owner.op
    with pm.Model() as model:
        GroupedWeights("weight", 3, EDGE, DIFFERENCE, **SCALES, shape=(3, 4))
    point = model.initial_point()["weight"]
    assert start.groups == 3 and (point[:, :2] == 0).all()
    assert (point[:, 2] == point[0, 2]).all() and point[0, 2] != 0 and np.ptp(point[:, 3]) > 0
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")({"weight": point}))


def test_wrong_parameters_are_refused():
    half = np.full(3, 0.5)
    for options, message in [
        ((1, half, half), "`groups` must be 2 or more"),
        ((2, half + 1, half), "`edge_probability` must be between 0 and 1"),
        ((2, half, -half), "`difference_probability` must be between 0 and 1"),
        ((2, half, half[:2]), "`difference_probability` must be one number or"),
        ((2, 0.5, half), "one entry for each pair"),
    ]:
        with pytest.raises(ValueError, match=message):
            GroupedWeights.dist(*options)
    with pytest.raises(ValueError, match="`slab_scale` must be positive"):
        GroupedWeights.dist(2, half, half, slab_scale=0.0)


@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
def test_rows_have_the_density_of_their_group(likelihood):
    rng = np.random.default_rng(0)
    field, group = Potentials("ordinal", (2, 3, 2)), np.array([1, 0, 0, 1, 1, 0, 2])
    bias, weight = rng.normal(size=(3, field.bias_size)), rng.normal(size=(3, 3))
    rows = np.column_stack([rng.integers(0, k, 7) for k in field.states])
    options = {"potentials": field, "likelihood": likelihood}
    dist = GroupedPairwiseMRF.dist(bias, weight, group=group, **options, shape=(7, 3))
    found = pm.logp(dist, rows).eval(mode="FAST_COMPILE")
    for g in range(3):
        own = bs.PairwiseMRF.dist(bias[g], weight[g], **options, shape=((group == g).sum(), 3))
        wanted = pm.logp(own, rows[group == g]).eval(mode="FAST_COMPILE")
        np.testing.assert_allclose(found[group == g], wanted)


@pytest.mark.statistical
def test_rows_are_drawn_from_the_field_of_their_group():
    field, group = Potentials("ordinal", (2, 2)), np.arange(3_000) % 2
    bias, weight = np.array([[3.0, 0.0], [-3.0, 0.0]]), np.array([[2.0], [0.0]])
    dist = GroupedPairwiseMRF.dist(bias, weight, group=group, potentials=field, shape=(3_000, 2))
    rows = pm.draw(dist, random_seed=1)
    assert rows[group == 0, 0].mean() > 0.9 and rows[group == 1, 0].mean() < 0.1
    assert rows[group == 0, 1].mean() > 0.8 and abs(rows[group == 1, 1].mean() - 0.5) < 0.05


@pytest.mark.parametrize(
    ("bias", "weight", "message"),
    [
        (np.zeros(3), np.zeros((2, 3)), "`bias` must have a row for each group"),
        (np.zeros((2, 3)), np.zeros(3), "`weight` must have a row for each group"),
        (np.zeros((3, 3)), np.zeros((2, 3)), "rows for 2 and 3 groups"),
        (np.zeros((2, 3)), np.zeros((2, 3)), "`group` must be a vector of 0 to 1"),
    ],
)
def test_parameters_that_are_not_those_of_each_group_are_refused(bias, weight, message):
    options = {"group": [0, 1, 2], "potentials": Potentials("ordinal", (2, 2, 2))}
    with pytest.raises(ValueError, match=message):
        GroupedPairwiseMRF.dist(bias, weight, **options)
