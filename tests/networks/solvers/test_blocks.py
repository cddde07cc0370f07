"""What has to change at once between good graphs, and that chains change it."""

import numpy as np
import pytest

from tools.dags import random_dags

from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.networks.kernels.parent_tables import parent_tables
from bayesstruct.networks.kernels.samplers.structure_mcmc import flip_covered
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.networks.solvers.blocks import local_modes, nearest_equivalent, switching_blocks
from bayesstruct.networks.steps.graphs import PartitionGraphs


class NoScore:
    """All graphs alike."""

    d = 7

    def subsets(self, child, candidates, *, fixed=()):
        return np.zeros(1 << len(candidates))


def arcs(d, *pairs):
    graph = np.zeros((d, d), np.int8)
    for i, j in pairs:
        graph[i, j] = 1
    return graph


def test_an_equivalent_graph_becomes_the_target():
    everyone = [[j for j in range(7) if j != i] for i in range(7)]
    tables, rng = parent_tables(NoScore(), None, everyone), np.random.default_rng(0)
    moved = 0
    for graph in random_dags(rng, 40, 7).astype(np.int8):
        other = graph.copy()
        flip_covered(rng, tables, other, 60)
        moved += (other != graph).any()
        np.testing.assert_array_equal(nearest_equivalent(other, graph), graph)
    assert moved > 20


def test_graphs_that_are_not_equivalent_stay_apart():
    collider, chain = arcs(3, (0, 1), (2, 1)), arcs(3, (0, 1), (1, 2))
    np.testing.assert_array_equal(nearest_equivalent(collider, chain), collider)


def test_blocks_are_the_places_where_graphs_differ():
    one = arcs(8, (0, 1), (2, 1), (4, 5), (6, 5), (6, 7))
    other = arcs(8, (1, 0), (2, 0), (5, 6), (4, 6), (6, 7))
    blocks = switching_blocks([one, other, one], 6)
    assert [b.tolist() for b in blocks] == [[0, 1], [5, 6]]
    assert switching_blocks([one, other], 1) == []
    assert switching_blocks([one], 6) == []
    # A single variable with other parents needs no block.
    assert switching_blocks([one, arcs(8, (0, 1), (2, 1), (4, 5), (6, 7))], 6) == []


def dependent_table():
    """Twelve variables, some of which depend on each other."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 12))
    x[:, 1] += x[:, 0]
    x[:, 3] += 0.9 * x[:, 1] + 0.9 * x[:, 0] - 0.8 * x[:, 2]
    x[:, 5] += x[:, 4] - x[:, 3]
    return (x - x.mean(0)) / x.std(0)


def test_modes_are_good_graphs_for_all_scores():
    x = dependent_table()
    for score in (BGe(x), BDeu((x[:, :12] > 0).astype(int))):
        problem = NetworkProblem(tuple("abcdefghijkl"), score, ParentPrior(12, kind="edge"))
        candidates = [[j for j in range(12) if j != i][:7] for i in range(12)]
        tables = parent_tables(problem, None, candidates)
        modes = local_modes(problem, tables)
        again = local_modes(problem, tables)
        assert all((a == b).all() for a, b in zip(modes, again, strict=True))
        assert len(modes) >= 1
        for graph in modes:
            assert (
                not np.trace(np.linalg.matrix_power(graph.astype(int) + np.eye(12, dtype=int), 12))
                > 12
            )


def twenty_variables():
    """Random graph with four expected neighbours; its posterior has modes with 2 -> 15 and 15 -> 2."""
    rng, d = np.random.default_rng(3), 20
    graph = np.ones((d, d), bool)
    while graph.sum(0).max() > 5:
        order = rng.permutation(d)
        graph[np.ix_(order, order)] = np.triu(rng.random((d, d)) < 4 / (d - 1), 1)
    weight = graph * rng.choice([-1, 1], (d, d)) * rng.uniform(0.25, 1, (d, d))
    x = rng.normal(size=(640, d)) @ np.linalg.inv(np.eye(d) - weight)
    return (x - x.mean(0)) / x.std(0)


@pytest.mark.chain
def test_chains_cross_by_blocks_what_other_moves_hardly_do():
    names = tuple(f"x{i}" for i in range(20))
    problem = NetworkProblem(names, BGe(twenty_variables()), ParentPrior(20, kind="edge"))
    graphs = PartitionGraphs(problem, 1, None)
    assert any({2, 15} <= set(block) for block in graphs.blocks)
    crossings = []
    for blocks in ([], graphs.blocks):
        graphs.blocks, count = blocks, 0
        for seed in range(4):
            rng = np.random.default_rng(seed)
            graph, seen = graphs.start(rng, np.zeros((20, 20), np.int8)), []
            for _ in range(400):
                graph, _ = graphs.move(rng, graph)
                seen.append(graph[2, 15])
            count += np.abs(np.diff(seen)).sum()
        crossings.append(count)
    without, with_blocks = crossings
    assert with_blocks > 3 * max(without, 1)
