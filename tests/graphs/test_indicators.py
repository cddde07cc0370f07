import warnings

import arviz as az
import numpy as np
import pytest

from tools.posteriors import bernoulli_posterior, posterior

from bayesstruct.graphs.indicators import edge_ess, edge_rhat
from bayesstruct.graphs.traces import graph_distance, n_edges
from bayesstruct.structure import median_graph


def sticky(rng, shape, stay=0.9):
    """0/1 chains that change their mind rarely."""
    start = rng.integers(0, 2, (shape[0], 1, shape[2]))
    flips = rng.random(shape) > stay
    return (start + np.cumsum(flips, axis=1)) % 2


def test_equal_to_the_rank_normalised_diagnostics_of_arviz():
    drawn = sticky(np.random.default_rng(1), (4, 200, 6))
    tree = posterior(drawn)
    np.testing.assert_allclose(edge_ess(tree), az.ess(drawn.astype(float)), rtol=1e-10)
    np.testing.assert_allclose(edge_rhat(tree), az.rhat(drawn.astype(float)), rtol=1e-10)


def test_constants():
    drawn = np.zeros((4, 100, 3), int)
    drawn[..., 1] = 1
    drawn[0, :, 2] = 1  # stuck in the first chain only
    tree = posterior(drawn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ess, r_hat = edge_ess(tree).values, edge_rhat(tree).values
    assert r_hat.tolist() == [1, 1, np.inf]
    assert np.isnan(ess[:2]).all()
    assert 0 < ess[2] < 10


def test_a_change_at_half_time_is_infinite_too():
    drawn = np.zeros((2, 100, 1), int)
    drawn[:, 50:] = 1
    assert np.isinf(edge_rhat(posterior(drawn))).all()


def test_one_chain_is_said_in_words():
    tree = bernoulli_posterior([0.5, 0.3, 0.2], chains=1)
    with pytest.warns(UserWarning, match="only one"):
        assert np.isnan(edge_rhat(tree)).all()
    assert (edge_ess(tree) > 100).all()


def test_three_draws_are_not_enough():
    tree = bernoulli_posterior([0.5, 0.3, 0.2], draws=3)
    assert np.isnan(edge_ess(tree)).all()
    assert np.isnan(edge_rhat(tree)).all()


def test_number_of_edges_and_distance():
    drawn = np.array([[[1, 1, 0], [1, 0, 0], [1, 1, 1]]])
    tree = posterior(drawn)
    assert n_edges(tree).values.tolist() == [[2, 1, 3]]
    assert graph_distance(tree).values.tolist() == [[0, 1, 1]]
    np.testing.assert_array_equal(graph_distance(tree, median_graph(tree)), graph_distance(tree))
    assert graph_distance(tree, [("v1", "v2")]).values.tolist() == [[3, 2, 2]]
    with pytest.raises(ValueError, match="'nobody'"):
        graph_distance(tree, [("v1", "nobody")])
