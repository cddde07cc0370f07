"""Simulated networks with hidden features."""

import networkx as nx
import numpy as np
import pytest

from bayesstruct.simulate import link_prediction


@pytest.mark.parametrize("directed", [False, True])
def test_links_have_the_probabilities_of_the_features(directed):
    truth = link_prediction(150, 2, directed=directed, random_seed=1)
    z, w = truth.feature.values, truth.interaction
    chance = 1.0 / (1.0 + np.exp(3.0 - z @ w @ z.T))
    off = ~np.eye(150, dtype=bool)
    np.testing.assert_allclose(truth.probability.values[off], chance[off])
    assert np.isnan(np.diag(truth.probability)).all()
    assert truth.graph.is_directed() == directed and np.array_equal(w, w.T) == (not directed)
    links = nx.to_numpy_array(truth.graph)
    counted = off if directed else np.triu(off, 1)
    # Sums of independent links, standardised.
    for low, high in ((0.0, 0.5), (0.5, 1.0)):
        some = counted & (chance >= low) & (chance < high)
        z_score = (links - chance)[some].sum() / np.sqrt((chance * (1 - chance))[some].sum())
        assert abs(z_score) < 4.5


def test_the_same_seed_has_the_same_network():
    one, other = (link_prediction(20, random_seed=3) for _ in range(2))
    assert nx.utils.graphs_equal(one.graph, other.graph)
    assert repr(one) == f"LinkSimulation(20 nodes, {one.graph.number_of_edges()} links, 3 features)"


@pytest.mark.parametrize(
    "options", [{"n": 1}, {"features": 0}, {"membership": 1.0}, {"between": -1.0}]
)
def test_numbers_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=f"`{next(iter(options))}`"):
        link_prediction(**options)
