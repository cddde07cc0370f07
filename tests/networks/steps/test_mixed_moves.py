"""Moves of graphs that are guided by the scores of another table, against all graphs over four columns."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from tools.enumeration import assert_matches_enumeration

from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.networks.kernels.dags import all_dags
from bayesstruct.networks.kernels.parent_tables import family_scores, parent_tables
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.networks.steps.mixed_chain import MixedChain
from bayesstruct.networks.steps.mixed_moves import GuidedMoves, PartitionMoves

D = 4
#: 3 is no parent of 0.
PRIOR = ParentPrior(D, allowed=np.arange(16).reshape(D, D) != 12)


class Family:
    """A family without parameters, whose score is a number without any regularity."""

    def __init__(self, child, parents):
        self.score = 0.7 * np.random.default_rng([child, *[1 + j for j in parents]]).normal()

    def draw(self, rng):
        return np.empty(0)

    def log_weight(self, theta):
        return 0.0


family = cache(Family)
SCORE = SimpleNamespace(fit=lambda i, parents: family(int(i), tuple(map(int, parents))))


def guide():
    """Moves under the scores of some table, whose tables leave parent sets out."""
    x = np.random.default_rng(4).normal(size=(12, D))
    x[:, 1] += 0.6 * x[:, 0]
    own = PartitionMoves(NetworkProblem(tuple("abcd"), BGe(x), PRIOR, False), 1, 1)
    own.tables = parent_tables(own.problem, None, [[1], [2], [3], [0]])
    own.blocks = [np.array([0, 1, 3])]
    return own


def probabilities():
    """All graphs, and their probabilities under scores and prior."""
    graphs = all_dags(D)
    weights = np.zeros(len(graphs))
    for g, graph in enumerate(graphs):
        sets = [tuple(np.flatnonzero(own).tolist()) for own in graph.T]
        weights[g] = sum(
            PRIOR.local(i, own) + SCORE.fit(i, own).score for i, own in enumerate(sets)
        )
    weights = np.exp(weights - weights.max())
    return graphs, weights / weights.sum()


def assert_right(changes, draws):
    """Run a chain of some moves, and compare the graphs with those of the posterior."""
    rng, kept = np.random.default_rng(1), []
    chain = MixedChain(SCORE, np.zeros((D, D), np.int8), rng)
    for _ in range(draws):
        for change in changes:
            chain.move(change)
        kept.append(chain.graph.ravel().copy())
    graphs, exact = probabilities()
    return assert_matches_enumeration(np.array(kept), exact, states=graphs.reshape(-1, D * D))


def moves():
    return GuidedMoves(NetworkProblem(tuple("abcd"), SCORE, PRIOR, False), guide())


def test_some_graphs_are_left_out_by_the_guide_and_some_by_the_prior():
    graphs, exact = probabilities()
    tables = guide().tables
    inside = np.array([np.isfinite(family_scores(tables, graph)).all() for graph in graphs])
    assert 0.05 < exact[~inside].sum() < 0.9
    assert (exact == 0).any()


@pytest.mark.statistical
def test_guided_moves_have_the_posterior_of_the_own_scores():
    assert_right(moves().changes(), 2_500)


@pytest.mark.statistical
def test_moves_that_are_not_corrected_are_noticed():
    own = moves()
    with pytest.raises(AssertionError):
        assert_right([*own.guide.changes(), own._arc], 1_500)
