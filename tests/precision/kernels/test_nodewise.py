"""Scores of graphs by regressions of columns on neighbours, and draws from their posterior."""

import itertools

import numpy as np
import pytest

from scipy import stats
from scipy.special import expit, logsumexp
from tools.enumeration import assert_matches_enumeration

from bayesstruct.precision.kernels.graph_jumps import jump, make_pairs, partner_sums, swap
from bayesstruct.precision.kernels.nodewise import (
    climb,
    graph_score,
    make_target,
    make_work,
    pseudo_likelihood,
    set_graph,
    update_gains,
)


def table(n, p, seed=0, strength=0.8):
    x = np.random.default_rng(seed).normal(size=(n, p))
    for j in range(1, p):
        x[:, j] += strength * x[:, j - 1] * (j % 3 != 0)
    return x


def standardized(x):
    return (x - x.mean(0)) / x.std(0, ddof=1)


def adjacency(edges, p):
    graph = np.zeros((p, p), np.int8)
    set_graph(np.asarray(edges, np.int8), graph)
    return graph


def score(x, edges):
    return float(pseudo_likelihood(np.corrcoef(x.T), np.asarray(edges, np.int8), float(len(x))))


def random_edges(p, seed, share=0.5):
    return (np.random.default_rng(seed).random(p * (p - 1) // 2) < share).astype(np.int8)


class Chain:
    """Draws of graphs by the kernels."""

    def __init__(self, x, prior, seed=1, start=None):
        p = x.shape[1]
        correlation = np.corrcoef(x.T)
        self.rng, self.p = np.random.default_rng(seed), p
        self.target, self.work = make_target(correlation, float(len(x))), make_work(p)
        self.pairs, self.partners = make_pairs(p), partner_sums(correlation)
        self.prior = np.zeros((p, p))
        self.upper = np.triu_indices(p, 1)
        self.prior[self.upper] = prior
        self.prior += self.prior.T
        self.graph = adjacency(np.zeros(len(self.upper[0])) if start is None else start, p)
        self.gains = np.zeros((p, p))
        self.average = np.empty(len(self.upper[0]), np.float32)
        self.refresh()

    def refresh(self):
        update_gains(np.arange(self.p), self.graph, self.target, self.gains, self.work)

    def step(self, time=1.0, swaps=2.0):
        state = (self.graph, self.gains, self.prior, self.target)
        if swaps:
            swap(self.rng, *state, self.partners, swaps, self.pairs, self.work)
        if time:
            jump(self.rng, *state, time, self.pairs, self.average, self.work)

    def run(self, draws, burn=100, **options):
        edges, averages = [], []
        for k in range(draws + burn):
            self.step(**options)
            if k >= burn:
                edges.append(self.graph[self.upper].copy())
                averages.append(self.average.copy())
        return np.array(edges), np.array(averages, float)


def enumerated(x, prior):
    """All graphs and their probabilities."""
    pairs = x.shape[1] * (x.shape[1] - 1) // 2
    states = np.array(list(itertools.product((0, 1), repeat=pairs)), np.int8)
    weight = [score(x, s) + np.sum(np.where(s, prior, 0.0)) for s in states]
    return states, np.exp(weight - logsumexp(weight))


def test_the_score_is_the_density_of_columns_given_their_neighbours():
    # K ~ Wishart(3, I): given neighbours S a column is multivariate t with 3 + |S| degrees of freedom.
    n, p = 9, 5
    x = table(n, p)
    rows = np.linalg.svd(np.ones((n, 1)))[0][:, 1:].T @ standardized(x)  # means integrated out
    for seed in range(4):
        edges = random_edges(p, seed, 0.2 + 0.25 * seed)
        graph = adjacency(edges, p) > 0
        wanted = 0.0
        for i in range(p):
            others = rows[:, graph[i]]
            df = 3 + others.shape[1]
            shape = (np.eye(n - 1) + others @ others.T) / df
            wanted += stats.multivariate_t.logpdf(rows[:, i], np.zeros(n - 1), shape, df)
        assert np.isclose(score(x, edges), wanted, rtol=1e-10)


@pytest.mark.parametrize(("n", "share"), [(30, 0.3), (5, 0.9)])
def test_gains_are_differences_of_scores(n, share):
    p = 7
    x = table(n, p)
    edges = random_edges(p, 1, share)
    chain = Chain(x, 0.0, start=edges)
    i, j = chain.upper
    gains = chain.gains[i, j] + chain.gains[j, i]
    for at in range(len(edges)):
        absent, present = edges.copy(), edges.copy()
        absent[at], present[at] = 0, 1
        assert np.isclose(gains[at], score(x, present) - score(x, absent), atol=1e-9)
    assert not np.diag(chain.gains).any()


def test_more_neighbours_than_the_work_space_has_room_for():
    p = 45
    x = table(20, p)
    edges = np.ones(p * (p - 1) // 2, np.int8)
    chain = Chain(x, 0.0, start=edges)
    edges[0] = 0
    without = score(x, edges)
    edges[0] = 1
    assert np.isclose(chain.gains[0, 1] + chain.gains[1, 0], score(x, edges) - without, atol=1e-7)


def test_the_gains_stay_those_of_the_graph():
    chain = Chain(table(20, 8), np.log(0.3 / 0.7))
    for _ in range(20):
        chain.step()
    kept = chain.gains.copy()
    chain.refresh()
    assert (kept == chain.gains).all()  # to the last bit: a run can be continued


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("p", "n", "strength", "share"), [(4, 12, 0.8, 0.3), (4, 60, 1.5, 0.5), (5, 8, 0.5, 0.2)]
)
def test_draws_against_all_graphs(p, n, strength, share):
    x, prior = table(n, p, strength=strength), np.log(share / (1 - share))
    states, exact = enumerated(x, prior)
    for options in ({"time": 1.0, "swaps": 2.0}, {"time": 0.5, "swaps": 0.0}):
        draws, averages = Chain(x, prior).run(20_000, **options)
        assert_matches_enumeration(draws, exact, states=states)
        # Averages over the time have the same mean, with a smaller variance.
        mean = states.T @ exact
        error = averages.reshape(100, -1, len(mean)).mean(1).std(0) / 10
        assert (np.abs(averages.mean(0) - mean) < 4.5 * error + 1e-6).all()
        assert (averages.var(0) <= draws.var(0) + 1e-3).all()


@pytest.mark.statistical
def test_certain_and_unequal_edges_against_all_graphs():
    prior = np.log([0.2, 0.9, 0.5, 0.05, 0.4, 0.6]) - np.log1p(
        [-0.2, -0.9, -0.5, -0.05, -0.4, -0.6]
    )
    prior[[1, 3]] = np.inf, -np.inf
    x = table(10, 4)
    states, _ = enumerated(x, np.zeros(6))
    weight = np.array(
        [score(x, s) + np.where(s, np.nan_to_num(prior, posinf=0), 0).sum() for s in states]
    )
    weight[(states[:, 1] == 0) | (states[:, 3] == 1)] = -np.inf
    draws, _ = Chain(x, prior, start=[0, 1, 0, 0, 0, 0]).run(20_000)
    assert_matches_enumeration(draws, np.exp(weight - logsumexp(weight)), states=states)


@pytest.mark.statistical
def test_without_data_edges_are_independent():
    # One row says nothing when its means are integrated out.
    x = np.ones((1, 4))
    prior = np.log([0.2, 0.9, 0.5, 0.05, 0.4, 0.6]) - np.log1p(
        [-0.2, -0.9, -0.5, -0.05, -0.4, -0.6]
    )
    chain = Chain(table(9, 4), prior)
    chain.target = make_target(np.eye(4), float(len(x)))
    chain.refresh()
    assert np.allclose(chain.gains, 0.0)
    draws, averages = chain.run(5_000)
    states = np.array(list(itertools.product((0, 1), repeat=6)))
    exact = np.prod(np.where(states, expit(prior), expit(-prior)), axis=1)
    assert_matches_enumeration(draws, exact, states=states)
    assert np.allclose(averages, expit(prior), atol=1e-6)


def wrong_times(chain):
    """Look at the graph right after a change instead of at a fixed time."""
    while True:
        before = chain.graph.copy()
        chain.step(time=0.02, swaps=0.0)
        if (chain.graph != before).any():
            return


def stale_gains(chain):
    """Use gains of another graph."""
    kept = chain.gains[0].copy()
    chain.step()
    chain.gains[0] = kept


def uncorrected_moves(chain):
    """Leave the unequal chances of proposals out of the acceptance."""
    chain.partners /= chain.partners[:, -1:]
    chain.step(time=0.05, swaps=10.0)


def one_sided(chain):
    """Count the gain of one end only."""
    chain.gains[0] = 0.0
    chain.step(swaps=0.0)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [wrong_times, stale_gains, uncorrected_moves, one_sided])
def test_wrong_steps_are_noticed(wrong):
    x, prior = table(12, 4), np.log(0.3 / 0.7)
    states, exact = enumerated(x, prior)
    chain, draws = Chain(x, prior), []
    for _ in range(2_000 if wrong is wrong_times else 20_000):
        wrong(chain)
        draws.append(chain.graph[chain.upper].copy())
    with pytest.raises(AssertionError):
        assert_matches_enumeration(np.array(draws), exact, states=states)


@pytest.mark.statistical
def test_chains_from_the_empty_and_the_best_graph_agree():
    x = table(60, 30, strength=1.5)
    prior = np.log(0.05 / 0.95)
    best = Chain(x, prior, seed=2)
    climb(best.graph, best.gains, best.prior, best.target, best.work)
    means = []
    for start in (None, best.graph[best.upper], random_edges(30, 3, 0.3)):
        _, averages = Chain(x, prior, seed=4, start=start).run(1_000, burn=50)
        means.append(averages.mean(0))
    assert np.abs(np.diff(means, axis=0)).max() < 0.1  # a few of 435 edges are near 1/2


def test_climbing_ends_where_no_flip_improves():
    p = 8
    x, prior = table(40, p), np.log(0.1 / 0.9)
    chain = Chain(x, prior)
    assert climb(chain.graph, chain.gains, chain.prior, chain.target, chain.work) > 0
    edges = chain.graph[chain.upper]
    best = score(x, edges) + prior * edges.sum()
    for at in range(len(edges)):
        other = edges.copy()
        other[at] = 1 - other[at]
        assert score(x, other) + prior * other.sum() <= best + 1e-9
    assert np.isclose(graph_score(chain.graph, chain.target, chain.work), score(x, edges))
