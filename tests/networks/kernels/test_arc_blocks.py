"""Draws of the arcs among a few columns, against all graphs with the same other arcs."""

from functools import cache

import numpy as np
import pytest

from tools.enumeration import assert_matches_enumeration

from bayesstruct.networks.kernels.dags import all_dags
from bayesstruct.networks.kernels.samplers import arc_blocks
from bayesstruct.networks.kernels.samplers.arc_blocks import draw_arcs_among

# 0 leads to 1 over 3, outside of the block 0, 1, 2; 4 is a parent of 2.
D, BLOCK, OUTSIDE = 5, [2, 0, 1], [(0, 3), (3, 1), (4, 2)]
IMPOSSIBLE = (2, (0, 1, 4))


@cache
def log_score(i, parents):
    """Weights without any regularity, and a parent set that the prior excludes."""
    if (i, parents) == IMPOSSIBLE:
        return -np.inf
    return 0.8 * np.random.default_rng([i, *[1 + j for j in parents]]).normal()


def outside_graph():
    dag = np.zeros((D, D), np.int8)
    dag[tuple(np.transpose(OUTSIDE))] = 1
    return dag


def conditional():
    """All graphs over five columns with the arcs outside of the block, and their probabilities."""
    graphs, inside = all_dags(D), np.zeros((D, D), bool)
    inside[np.ix_(BLOCK, BLOCK)] = True
    graphs = graphs[(graphs == outside_graph())[:, ~inside].all(axis=1)]
    logs = [
        sum(log_score(i, tuple(np.flatnonzero(own).tolist())) for i, own in enumerate(graph.T))
        for graph in graphs
    ]
    weights = np.exp(logs)
    return graphs.reshape(len(graphs), -1), weights / weights.sum()


def assert_right(draws=3_000):
    dag, rng, kept = outside_graph(), np.random.default_rng(1), []
    for _ in range(draws):
        draw_arcs_among(rng, dag, BLOCK, log_score)
        kept.append(dag.ravel().copy())
    states, probabilities = conditional()
    return assert_matches_enumeration(np.array(kept), probabilities, states=states)


@pytest.mark.statistical
def test_arcs_among_three_columns_have_their_conditional_distribution():
    states, probabilities = conditional()
    assert len(states) < len(all_dags(3))  # the path over 3 excludes some
    assert (probabilities == 0).any()
    assert assert_right()["ess"] > 2_000


@pytest.mark.statistical
def test_paths_outside_of_the_block_that_are_overlooked_are_noticed(monkeypatch):
    monkeypatch.setattr(arc_blocks, "_paths", lambda rest, block: np.zeros((3, 3), np.int8))
    with pytest.raises(AssertionError, match="was visited but is not in the list"):
        assert_right(400)
