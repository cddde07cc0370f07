"""Exact sums over joint states against brute force; no overflow."""

import numpy as np
import pytest

from tools.random_fields import exact_distribution, feature_matrix

from bayesstruct.fields.kernels import exact
from bayesstruct.fields.kernels.potentials import Potentials

SPACES = [(2, 2), (2, 3, 4), (3, 2, 2, 4, 2), (5, 2), (2,) * 7]


def field(states, scale=3.0, seed=0):
    potentials = Potentials("full", states)
    rng = np.random.default_rng(seed)
    unary = scale * rng.normal(size=potentials.unary_start[-1])
    pair = scale * rng.normal(size=potentials.pair_start[-1])
    return potentials, unary, pair


def brute_force(potentials, unary, pair):
    features = feature_matrix(potentials)
    energy = features @ np.concatenate([unary, pair])
    top = energy.max()
    weights = np.exp(energy - top)
    return top + np.log(weights.sum()), weights / weights.sum(), features


@pytest.mark.parametrize("states", SPACES)
def test_partition_marginals_and_joint_distribution(states):
    potentials, unary, pair = field(states)
    log_z, p, features = brute_force(potentials, unary, pair)
    out = np.empty_like(unary), np.empty_like(pair)
    k = np.array(states)
    assert exact.marginals(k, unary, pair, *out) == pytest.approx(log_z, abs=1e-12)
    assert exact.log_partition(k, unary, pair) == pytest.approx(log_z, abs=1e-12)
    np.testing.assert_allclose(np.concatenate(out), p @ features, atol=1e-13)
    np.testing.assert_allclose(exact.joint(k, unary, pair), p, atol=1e-14)


@pytest.mark.parametrize("states", SPACES)
def test_covariances_of_the_indicators(states):
    potentials, unary, pair = field(states)
    _, p, features = brute_force(potentials, unary, pair)
    direction = np.random.default_rng(1).normal(size=features.shape[1])
    centred = features - p @ features
    wanted = (centred * p[:, None]).T @ (centred @ direction)
    out = np.empty_like(unary), np.empty_like(pair)
    parts = direction[: len(unary)].copy(), direction[len(unary) :].copy()
    exact.covariance_product(np.array(states), unary, pair, *parts, *out)
    np.testing.assert_allclose(np.concatenate(out), wanted, atol=1e-13)


def test_tables_of_some_pairs_are_refused():
    """Their layout is another one: they would be read out of bounds."""
    k, unary, pair = np.array([2, 2, 2]), np.zeros(6), np.zeros(8)
    for function in (exact.log_partition, exact.joint):
        with pytest.raises(ValueError, match="all pairs"):
            function(k, unary, pair)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_no_overflow_with_weights_of_fifty(sign):
    potentials = Potentials("ordinal", (2,) * 10)
    weight, bias = np.full(45, 50.0 * sign), np.full(10, 50.0)
    log_z, p = exact_distribution(potentials, bias, weight)
    unary, pair = potentials.unary(bias), potentials.pair(weight)
    out = np.empty_like(unary), np.empty_like(pair)
    k = np.array(potentials.states)
    assert exact.marginals(k, unary, pair, *out) == pytest.approx(log_z, rel=1e-14)
    np.testing.assert_allclose(np.concatenate(out), p @ feature_matrix(potentials), atol=1e-12)
