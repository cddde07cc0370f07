"""Indicators of the edges, and the prior probabilities that the cone leaves them."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor.graph.replace import clone_replace
from scipy import stats
from tools.priors import laplace_prior, spike_slab_prior

import bayesstruct as bs

from bayesstruct.distributions import implied_edge_probability, implied_nonnegligible_probability

K3 = np.array([[1.0, 0.3, -0.5], [0.3, 1.5, 0.05], [-0.5, 0.05, 2.0]])


def chances(K, probability, spike, slab):
    u = K[np.triu_indices(3, 1)]
    pi = np.broadcast_to(probability, (3, 3))[np.triu_indices(3, 1)]
    a, b = pi * stats.norm.pdf(u, 0, slab), (1 - pi) * stats.norm.pdf(u, 0, spike)
    return a / (a + b)


@pytest.mark.parametrize("scale", [1.0, 1.6])
def test_logp_and_draws(scale):
    with pm.Model():
        K = bs.GraphicalSpikeSlab("K", 3, 0.3, spike_scale=0.2, slab_scale=1.1, scale=scale)
        edge = bs.distributions.Edges("edge", K)
    p = chances(K3 / scale, 0.3, 0.2, 1.1)
    z = pt.lvector()
    logp = pytensor.function([z], pm.logp(edge, z).sum(), givens={K: K3}, on_unused_input="ignore")
    for value in ([0, 0, 0], [1, 0, 1], [1, 1, 1]):
        expected = stats.bernoulli.logpmf(value, p).sum()
        np.testing.assert_allclose(logp(value), expected, rtol=1e-9)
    assert logp([0, 2, 0]) == -np.inf
    assert pm.draw(edge, 5, random_seed=0).shape == (5, 3)


@pytest.mark.chain
@pytest.mark.compiled
def test_draws_given_a_matrix():
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", 3, 0.3, spike_scale=0.2, slab_scale=1.1)
        bs.distributions.Edges("edge", K)
    edge = clone_replace(model["edge"], {K: pt.as_tensor(K3)})
    draws = pm.draw(edge, 6_000, random_seed=1)
    p = chances(K3, 0.3, 0.2, 1.1)
    assert (np.abs(draws.mean(0) - p) < 4 * np.sqrt(p * (1 - p) / 6_000)).all()


def test_other_priors_have_no_indicators():
    with pm.Model():
        K = bs.GraphicalLasso("K", 3)
        with pytest.raises(ValueError, match="GraphicalSpikeSlab"):
            bs.distributions.Edges("edge", K)


def test_impossible_values_of_fixed_edges():
    nominal = np.array([[0.5, 1.0, 0.5], [1.0, 0.5, 0.0], [0.5, 0.0, 0.5]])
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", 3, nominal)
        bs.distributions.Edges("edge", K)
    logp = model.compile_logp()
    point = model.initial_point()
    assert point["edge"][0] == 1
    assert point["edge"][2] == 0
    assert np.isfinite(logp(point))
    assert logp(point | {"edge": np.array([0, 0, 0])}) == -np.inf
    assert logp(point | {"edge": np.array([1, 0, 1])}) == -np.inf


def test_partial_correlations():
    rho = bs.distributions.partial_correlations(pt.as_tensor(K3)).eval()
    root = np.sqrt(np.diag(K3))
    np.testing.assert_allclose(rho, (-K3 / np.outer(root, root))[np.triu_indices(3, 1)])


@pytest.mark.statistical
def test_implied_probability_is_that_of_forward_draws_and_not_the_nominal():
    kwargs = {"spike_scale": 0.1, "slab_scale": 1.0, "diagonal_rate": 0.5}
    implied = implied_edge_probability(5, 0.5, **kwargs)
    assert implied.shape == (10,)
    with pm.Model():
        edge = bs.distributions.Edges("edge", bs.GraphicalSpikeSlab("K", 5, 0.5, **kwargs))
    draws = pm.draw(edge, 8_000, random_seed=1)
    # se of the mean over ten edges is below 0.5 / sqrt(8000) each; 0.005 is the bound promised.
    error = draws.mean(axis=1).std() / np.sqrt(len(draws))
    assert abs(implied.mean() - draws.mean()) < 4 * error + 0.005
    assert implied.max() < 0.45  # the cone has taken something


@pytest.mark.chain
@pytest.mark.parametrize("beta", [None, (1.5, 2.0)])
def test_implied_probability_of_unequal_edges(beta):
    nominal = np.array([[0.5, 1.0, 0.5], [1.0, 0.5, 0.0], [0.5, 0.0, 0.5]])
    if beta is None:
        nominal = np.array([[0.5, 0.9, 0.5], [0.9, 0.5, 0.1], [0.5, 0.1, 0.5]])
    implied = implied_edge_probability(3, nominal, beta=beta, spike_scale=0.2)
    rng = np.random.default_rng(0)
    if beta is None:
        _, edges, _ = spike_slab_prior(
            rng, 60_000, 3, probability=nominal, spike=0.2, slab=1.0, diagonal_rate=0.5
        )
        np.testing.assert_allclose(implied, edges.mean(0), atol=0.012)  # 4 se of each side
    else:
        np.testing.assert_array_equal(implied[[0, 2]], [1.0, 0.0])
        with pm.Model():
            K = bs.GraphicalSpikeSlab("K", 3, pm.Beta.dist(*beta), fixed=nominal, spike_scale=0.2)
            edge = bs.distributions.Edges("edge", K)
        draws = pm.draw(edge, 6_000, random_seed=1)
        np.testing.assert_allclose(implied[1], draws[:, 1].mean(), atol=0.03)


def test_implied_nonnegligible_probability():
    implied = implied_nonnegligible_probability(4, 0.1, rate=2.0)
    K = laplace_prior(np.random.default_rng(0), 20_000, 4, rate=1.0)
    i, j = np.triu_indices(4, 1)
    rho = -K[:, i, j] / np.sqrt(K[:, i, i] * K[:, j, j])
    assert implied.shape == (6,)
    np.testing.assert_allclose(implied, (np.abs(rho) > 0.1).mean(), atol=0.01)
