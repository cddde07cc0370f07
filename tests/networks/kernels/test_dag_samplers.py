"""Samplers over graphs of four variables against all 543 of them; searches against the best of all orders."""

import importlib.util
import itertools

import numpy as np
import pytest

from tools.batches import mean_and_error
from tools.random_scores import RandomScore

from bayesstruct.core import jit
from bayesstruct.networks.kernels import order_search
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.networks.kernels.dags import all_dags, topological_orders
from bayesstruct.networks.kernels.parent_sums import FREE
from bayesstruct.networks.kernels.parent_tables import LIST, SIZE, family_scores, parent_tables
from bayesstruct.networks.kernels.samplers import (
    order_mcmc,
    parent_blocks,
    partition_mcmc,
    structure_mcmc,
)

D = 4
GRAPHS = all_dags(D).astype(np.int8)
CODE = 1 << np.arange(D * D)
INDEX = np.full(2 ** (D * D), -1)
INDEX[GRAPHS.reshape(-1, D * D) @ CODE] = np.arange(len(GRAPHS))


def constrained():
    """No arc 0 -> 1, the arc 2 -> 3, at most two parents."""
    allowed, required = np.ones((D, D), bool), np.zeros((D, D), bool)
    allowed[0, 1], required[2, 3] = False, True
    return ParentPrior(
        D, kind="edge", probability=0.4, max_parents=2, allowed=allowed, required=required
    )


@pytest.fixture(scope="module")
def cases():
    """Tables, start, and log probability of all graphs, of three families."""
    score = RandomScore(D, 3, scale=1.0)
    every = [[j for j in range(D) if j != i] for i in range(D)]
    some = [[1], [3, 2], [0], [1]]
    out = {}
    for name, prior, candidates in [
        ("all", None, every),
        ("plus one", None, some),
        ("constrained", constrained(), some),
    ]:
        tables = parent_tables(score, prior, candidates)
        log = np.array([family_scores(tables, graph).sum() for graph in GRAPHS])
        start = order_search.best_graph(tables, np.random.default_rng(0), climbs=1)[0]
        out[name] = tables, start, log
    return out


def discrepancy(draw, start, log, draws, seed=0):
    """Mean square of the differences of frequencies and probabilities, in standard errors."""
    rng, adjacency = np.random.default_rng(seed), start.copy()
    index = np.empty(draws, np.int64)
    for k in range(draws):
        draw(rng, adjacency)
        index[k] = INDEX[adjacency.ravel() @ CODE]
    assert (index >= 0).all()  # a graph with a cycle
    assert np.isfinite(log[index]).all()  # outside of the family
    p = np.exp(log - log.max())
    p /= p.sum()
    often = np.flatnonzero(p * draws > 5)
    wanted = np.append(p[often], GRAPHS.reshape(-1, D * D).T @ p)
    got = np.concatenate([index[:, None] == often, GRAPHS.reshape(-1, D * D)[index]], axis=1)
    mean, error, _ = mean_and_error(got.astype(np.float32))
    used = (wanted > 1e-12) & (wanted < 1.0 - 1e-12)
    np.testing.assert_allclose(mean[~used], wanted[~used], atol=1e-6)  # of single precision
    # Batches of a rare graph may all be empty: the error is at least that of independent draws.
    error = np.maximum(error, np.sqrt(np.abs(wanted * (1.0 - wanted)) / draws))
    return np.mean(((mean - wanted)[used] / error[used]) ** 2)


#: One is expected, or a little less, and 0.1 is about its standard deviation: cells are not independent.
AGREES = 1.4
MOVES = {
    "partition": [(0, 0, 6, 0), (3, 0, 0, 0), (2, 2, 2, 2, 3, 6, 1)],
    "order": [(3, 0, 0), (0, 2, 3)],
    "structure": [(20, 0), (5, 5, 10)],
    "parent": [(2, 4), (3, 2), (4, 1)],
}
SAMPLERS = {"partition": partition_mcmc, "order": order_mcmc, "structure": structure_mcmc}
RUNS = [(name, moves) for name in MOVES for moves in MOVES[name]]


def sampler(name, moves, tables, start):
    if name == "parent":
        return lambda rng, adjacency: parent_blocks.draw_blocks(rng, tables, adjacency, *moves)
    module = SAMPLERS[name]
    numbers = module.Moves(*moves)
    if name != "order":
        return lambda rng, adjacency: module.sweep(rng, tables, adjacency, numbers)
    order = np.argsort(partition_of(start), kind="stable")
    return lambda rng, adjacency: module.sweep(rng, tables, order, adjacency, numbers)


def partition_of(graph):
    part = np.empty(len(graph), np.int64)
    partition_mcmc.layers(graph, part)
    return part


#: Splits and joins alone take hundreds of sweeps to cross an impossible partition, so not those.
COMBINATIONS = [
    (family, *run)
    for family in ("all", "plus one", "constrained")
    for run in RUNS
    if (family, run[1]) != ("constrained", (0, 0, 6, 0))
]


@pytest.mark.statistical
@pytest.mark.parametrize(("family", "name", "moves"), COMBINATIONS)
def test_frequencies_of_graphs(cases, family, name, moves):
    tables, start, log = cases[family]
    if name == "order":
        log = log + np.log(topological_orders(GRAPHS))
    assert discrepancy(sampler(name, moves, tables, start), start, log, 6_000) < AGREES


def interpreted(module, monkeypatch):
    """The module without compilation of its own functions, so that one can be replaced."""
    spec = importlib.util.find_spec(module.__name__)
    copy = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as patch:
        for decorator in ("inner", "kernel"):
            patch.setattr(jit, decorator, lambda function: function)
        spec.loader.exec_module(copy)
    return copy


def one_way(rng, t, likely):
    """Draw a candidate and its child in this order only: not as probable as the reverse."""
    child = int(rng.random() * D)
    own = LIST + int(rng.random() * t.layout[child, SIZE])
    return t.layout[child, own], child


def nothing(*_):
    return 0.0


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("module", "family", "broken", "wrong", "moves"),
    [
        (partition_mcmc, "all", "_log_ways", nothing, (0, 0, 6, 0)),
        (structure_mcmc, "all", "_log_correction", nothing, (4, 4)),
        (structure_mcmc, "all", "_gain", nothing, (0, 2, 6)),
        (structure_mcmc, "plus one", "_draw_pair", one_way, (16, 1)),
    ],
)
def test_wrong_ratios_are_noticed(cases, monkeypatch, module, family, broken, wrong, moves):
    tables, start, log = cases[family]
    copy = interpreted(module, monkeypatch)
    numbers = copy.Moves(*moves)

    def draw(rng, adjacency):
        copy.sweep(rng, tables, adjacency, numbers)

    compiled = sampler(module.__name__.split(".")[-1].split("_")[0], moves, tables, start)
    ends = [start.copy(), start.copy()]
    for step, end in zip([draw, compiled], ends, strict=True):
        rng = np.random.default_rng(7)
        for _ in range(50):
            step(rng, end)
    np.testing.assert_array_equal(*ends)  # the copy is the same sampler until it is broken
    monkeypatch.setattr(copy, broken, wrong)
    assert discrepancy(draw, start, log, 4000) > 1.5 * AGREES


def test_a_block_of_all_variables_is_drawn_anew(cases):
    tables, start, log = cases["constrained"]
    rng, graph = np.random.default_rng(3), start.copy()
    index = np.empty(6000, np.int64)
    for k in range(len(index)):
        parent_blocks.draw_block(rng, tables, graph, np.array([2, 0, 3, 1]))
        index[k] = INDEX[graph.ravel() @ CODE]
    p = np.exp(log - log.max())
    p /= p.sum()
    often = p * len(index) > 5
    counts = np.bincount(index, minlength=len(p))
    z = (counts - len(index) * p)[often] / np.sqrt(len(index) * p * (1.0 - p))[often]
    assert np.mean(z**2) < 1.0 + 5.0 * np.sqrt(2.0 / often.sum())
    assert abs(np.mean(index[1:] == index[:-1]) - (p**2).sum()) < 0.02


def no_layer(*_):
    """Parents of a later layer need not meet the layer before it: graphs of few arcs count twice."""
    return np.int64(FREE)


@pytest.mark.statistical
def test_layers_that_do_not_meet_are_noticed(cases, monkeypatch):
    tables, start, log = cases["all"]
    copy = interpreted(parent_blocks, monkeypatch)

    def draw(rng, adjacency):
        copy.draw_blocks(rng, tables, adjacency, 3, 1)

    assert discrepancy(draw, start, log, 1500) < AGREES
    monkeypatch.setattr(copy, "_nearest", no_layer)
    assert discrepancy(draw, start, log, 1500) > 1.5 * AGREES


@pytest.mark.statistical
def test_blocks_that_the_graph_chooses_are_noticed(cases):
    """A variable with its parents: the way back would take another block."""
    tables, start, log = cases["all"]

    def draw(rng, adjacency):
        child = int(rng.integers(D))
        block = np.append(np.flatnonzero(adjacency[:, child]), child)
        parent_blocks.draw_block(rng, tables, adjacency, block)

    assert discrepancy(draw, start, log, 6000) > 1.5 * AGREES


def test_blocks_hold_different_variables_that_are_near():
    d, rng, block = 12, np.random.default_rng(0), np.empty(4, np.int64)
    near = [[(i + 1) % d] for i in range(d)]
    tables = parent_tables(RandomScore(d, 0), None, near)
    seen, joined = np.zeros(d), 0
    for _ in range(200):
        parent_blocks.pick_block(rng, tables, block)
        assert len(set(block)) == 4
        others = np.array([(i - j) % d for i in block for j in block])
        joined += (others == 1).sum() == 3  # four in a row of the ring
        seen[block] += 1
    assert seen.min() > 30
    assert joined > 180  # others ran out of trials


def test_runs_are_repeated_by_their_seed(cases):
    for name, moves in RUNS:
        tables, start, _ = cases["plus one"]
        ends = []
        for _ in range(2):
            draw, adjacency = sampler(name, moves, tables, start), start.copy()
            rng = np.random.default_rng(5)
            for _ in range(20):
                draw(rng, adjacency)
            ends.append(adjacency)
        np.testing.assert_array_equal(*ends)


def test_layers_are_longest_paths():
    graph = np.zeros((5, 5), np.int8)
    graph[[4, 4, 2, 0], [2, 0, 0, 1]] = 1
    np.testing.assert_array_equal(partition_of(graph), [2, 3, 1, 0, 0])


def test_one_variable():
    tables = parent_tables(RandomScore(1, 0), None, [[]])
    rng, adjacency, order = (
        np.random.default_rng(0),
        np.zeros((1, 1), np.int8),
        np.zeros(1, np.int64),
    )
    partition_mcmc.sweep(rng, tables, adjacency, partition_mcmc.default_moves(1))
    order_mcmc.sweep(rng, tables, order, adjacency, order_mcmc.default_moves(1))
    structure_mcmc.sweep(rng, tables, adjacency, structure_mcmc.default_moves(1))
    assert order_search.best_graph(tables, rng)[2] == pytest.approx(tables.scores(0)[0, 0])
    assert not adjacency.any()


def best_of_all_orders(score, prior):
    """Greatest score of a graph, by the best last variable of each set (Silander and Myllymaki 2006)."""
    d = score.d
    best = {0: 0.0}
    own = np.full((d, 1 << d), -np.inf)
    for i in range(d):
        others = [j for j in range(d) if j != i]
        values = score.subsets(i, others) + (prior.subsets(i, others) if prior else 0.0)
        for m in range(2 ** (d - 1)):
            mask = sum(1 << j for b, j in enumerate(others) if m >> b & 1)
            lower = [own[i, mask & ~(1 << j)] for j in others if mask >> j & 1]
            own[i, mask] = max([values[m], *lower])
    for mask in range(1, 1 << d):
        best[mask] = max(
            best[mask & ~(1 << i)] + own[i, mask & ~(1 << i)] for i in range(d) if mask >> i & 1
        )
    return best[(1 << d) - 1]


@pytest.mark.parametrize("seed", range(4))
def test_best_graph_is_that_of_dynamic_programming(seed):
    d = 8
    score = RandomScore(d, seed, scale=3.0)
    required = np.zeros((d, d), bool)
    required[[3, 1, 5], [1, 0, 7]] = True
    prior = ParentPrior(d, kind="fair", required=required) if seed % 2 else None
    wanted = best_of_all_orders(score, prior)
    tables = parent_tables(score, prior, [[j for j in range(d) if j != i] for i in range(d)])
    graph, order, value = order_search.best_graph(tables, np.random.default_rng(seed))
    assert value == pytest.approx(wanted, rel=1e-12)
    assert family_scores(tables, graph).sum() == pytest.approx(wanted, rel=1e-12)
    place = np.argsort(order)
    assert all(place[i] < place[j] for i, j in np.argwhere(graph))
    again = order_search.best_graph(tables, np.random.default_rng(9), climbs=1, order=order)
    assert again[2] == pytest.approx(wanted, rel=1e-12)


def test_hill_climb_ends_where_no_change_of_an_arc_improves(cases):
    for tables, start, log in cases.values():
        graph = start.copy()
        value = structure_mcmc.hill_climb(tables, graph, 3, 30)
        assert value == pytest.approx(family_scores(tables, graph).sum())
        assert value >= family_scores(tables, start).sum() - 1e-12
        pairs = itertools.permutations(range(D), 2)
        for i, j in pairs:
            for old, new in [((0, 0), (1, 0)), ((1, 0), (0, 0)), ((1, 0), (0, 1))]:
                if (graph[i, j], graph[j, i]) == old:
                    other = graph.copy()
                    other[i, j], other[j, i] = new
                    at = INDEX[other.ravel() @ CODE]
                    assert at < 0 or log[at] <= value + 1e-9


def test_tabu_search_leaves_local_optima():
    """From the empty graph it finds the best of 543 for most scores, plain greedy search for fewer."""
    greedy = tabu = 0
    for seed in range(30):
        tables = parent_tables(
            RandomScore(D, seed), None, [[j for j in range(D) if j != i] for i in range(D)]
        )
        best = max(family_scores(tables, graph).sum() for graph in GRAPHS)
        empty = np.zeros((D, D), np.int8)
        greedy += structure_mcmc.hill_climb(tables, empty.copy(), 0, 0) > best - 1e-9
        tabu += structure_mcmc.hill_climb(tables, empty.copy(), 3, 60) > best - 1e-9
    assert tabu > greedy + 5
    assert tabu >= 24


class Needs(RandomScore):
    """Score 0 of sets that hold one of what a child needs; the others are impossible."""

    def __init__(self, needs):
        super().__init__(len(needs), 0)
        self.needs = needs

    def subsets(self, child, candidates, *, fixed=()):
        own = self.needs[child]
        sets = [
            {*fixed, *(j for b, j in enumerate(candidates) if m >> b & 1)}
            for m in range(2 ** len(candidates))
        ]
        return np.array([0.0 if not own or own & s else -np.inf for s in sets])


@pytest.mark.parametrize("needs", [({1}, {0}, set()), ({1, 2}, {0}, {0})])
def test_no_graph_of_finite_score_is_an_error(needs):
    tables = parent_tables(Needs(needs), None, [[1, 2], [0, 2], [0, 1]])
    with pytest.raises(ValueError, match="no acyclic graph was found"):
        order_search.best_graph(tables, np.random.default_rng(0))


def test_a_graph_is_found_that_meets_needs_without_required_arcs():
    tables = parent_tables(Needs(({1, 2}, {2, 3}, {3}, set())), None, [[1, 2], [2, 3], [3], [0]])
    graph, _, value = order_search.best_graph(tables, np.random.default_rng(0), climbs=1)
    assert value == 0.0
    assert family_scores(tables, graph).sum() == 0.0


def _largest_change(graph, log):
    """Largest probability of other parents of one variable, or of a reversed arc, by the probabilities of all graphs."""
    p, at = np.exp(log - log.max()), INDEX[graph.ravel() @ CODE]
    most = 0.0
    for j in range(D):
        others = [i for i in range(D) if i != j]
        same = (GRAPHS[:, :, others] == graph[:, others]).all(axis=(1, 2))
        most = max(most, 1.0 - p[at] / p[same].sum())
    for i, j in np.argwhere(graph):
        reverse = graph.copy()
        reverse[i, j], reverse[j, i] = 0, 1
        if (k := INDEX[reverse.ravel() @ CODE]) >= 0:
            most = max(most, p[k] / (p[k] + p[at]))
    return most


@pytest.mark.parametrize("name", ["all", "plus one", "constrained"])
def test_the_probability_of_a_change_is_that_of_all_changed_graphs(cases, name):
    tables, _, log = cases[name]
    some = np.random.default_rng(2).permutation(np.flatnonzero(np.isfinite(log)))[:60]
    got = [structure_mcmc.change_probability(tables, GRAPHS[k]) for k in some]
    wanted = [_largest_change(GRAPHS[k], log) for k in some]
    np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-9)  # differences of logarithms
