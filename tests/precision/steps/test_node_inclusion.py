"""Nodes that may have edges: exact posteriors of a few columns, joint distribution, a wrong step, prior draws."""

import itertools

import numpy as np
import pymc as pm
import pytest

from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke
from tools.integration import spike_slab_posterior

import bayesstruct as bs

from bayesstruct.distributions import Edges, NodeInclusion, NodeSpikeSlab
from bayesstruct.precision.kernels import node_inclusion
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.kernels.gibbs import spike_slab_sweep
from bayesstruct.precision.priors.node_inclusion import implied_node_probabilities
from bayesstruct.steps import NodeInclusionGibbs, PrecisionGibbs

SCALES = {"spike_scale": 0.25, "slab_scale": 1.0, "diagonal_rate": 0.5}
REFERENCE = {"spike": 0.25, "slab": 1.0, "diagonal_rate": 0.5}
P, N = 3, 6
NODES = np.array([0.4, 0.6, 0.5])
PAIRS = np.triu_indices(P, 1)
EDGES = np.array([[0.0, 0.7, 0.4], [0.7, 0.0, 0.5], [0.4, 0.5, 0.0]])
SUBSETS = np.array(list(itertools.product([0, 1], repeat=P)))


def table(n=N, seed=0):
    z = np.random.default_rng(seed).normal(size=(n, P))
    z[:, 1] += 0.8 * z[:, 0]
    return z


def build(rows):
    with pm.Model() as model:
        included = NodeInclusion("included", P, NODES, EDGES, **SCALES)
        K = NodeSpikeSlab("K", included)
        Edges("edge", K)
        pm.MvNormal("x", np.zeros(P), tau=K, observed=pm.Data("rows", rows))
    return model


def steps_of(model, seed=0):
    with model:
        both = (
            NodeInclusionGibbs([model["included"]], rng=seed),
            PrecisionGibbs([model["K"], model["edge"]], rng=seed + 1),
        )
    return both


def subset_weights():
    """Prior probability of each subset of nodes, without the cone."""
    return np.prod(np.where(SUBSETS == 1, NODES, 1 - NODES), axis=1)


def graph_given_subset(states):
    """Probability of each graph given each subset, without the cone: (graphs, subsets)."""
    chance = EDGES[PAIRS] * SUBSETS[:, PAIRS[0]] * SUBSETS[:, PAIRS[1]]
    return np.prod(np.where(states[:, None] == 1, chance, 1 - chance), axis=2)


@pytest.mark.statistical
def test_posterior_of_graphs_and_nodes():
    rows = table()
    states, exact, errors, _ = spike_slab_posterior(
        rows, probability=0.5, **REFERENCE, draws=20_000, seed=1
    )
    joint = graph_given_subset(states) * subset_weights()
    weight = exact * joint.sum(axis=1)
    errors = errors * joint.sum(axis=1) / weight.sum()
    nodes = (joint @ SUBSETS) / joint.sum(axis=1)[:, None]
    weight /= weight.sum()
    model = build(rows)
    steps, point, kept = steps_of(model), model.initial_point(), []
    for t in range(4_200):
        for step in steps:
            point, _ = step.step(point)
        if t >= 200:
            kept.append(np.append(point["edge"], point["included"]))
    kept = np.array(kept)
    assert_matches_enumeration(kept[:, :3].astype(int), weight, states=states, errors=errors)
    mean, error, _ = mean_and_error(kept[:, 3:].astype(float), 60)
    assert np.abs((mean - weight @ nodes) / error).max() < 4.5


def prior_draws(rng, size):
    """Subsets, edges and matrices by rejection of those that are not positive definite."""
    out = []
    while len(out) < size:
        z = (rng.random((4_000, P)) < NODES).astype(int)
        chance = EDGES[PAIRS] * z[:, PAIRS[0]] * z[:, PAIRS[1]]
        edge = (rng.random(chance.shape) < chance).astype(int)
        K = np.zeros((len(z), P, P))
        values = rng.normal(size=edge.shape) * np.where(edge == 1, 1.0, 0.25)
        K[:, PAIRS[0], PAIRS[1]] = K[:, PAIRS[1], PAIRS[0]] = values
        K[:, range(P), range(P)] = rng.exponential(2.0, size=(len(z), P))
        inside = np.linalg.eigvalsh(K)[:, 0] > 0
        out += list(zip(z[inside], edge[inside], K[inside], strict=True))
    return out[:size]


@pytest.mark.statistical
def test_prior_draws_and_implied_probabilities():
    draws = prior_draws(np.random.default_rng(0), 20_000)
    nodes, edges = (np.mean([d[k] for d in draws], axis=0) for k in (0, 1))
    implied_edges, implied_nodes = implied_node_probabilities(NODES, EDGES, **SCALES)
    np.testing.assert_allclose(implied_edges, edges, atol=0.03)
    np.testing.assert_allclose(implied_nodes, nodes, atol=0.03)
    with pm.Model():
        included = NodeInclusion("included", P, NODES, EDGES, **SCALES)
        K = NodeSpikeSlab("K", included)
        edge = Edges("edge", K)
    z, k, e = pm.draw([included, K, edge], 2_000, random_seed=1, mode="FAST_COMPILE")
    np.testing.assert_allclose(z.mean(0), nodes, atol=0.035)
    np.testing.assert_allclose(e.mean(0), edges, atol=0.035)
    wanted = np.mean([np.log(np.diag(d[2])) for d in draws], axis=0)
    found = np.log(np.diagonal(k, axis1=1, axis2=2)).mean(0)
    np.testing.assert_allclose(found, wanted, atol=0.1)


@pytest.mark.statistical
def test_sweeps_of_many_nodes_have_the_same_prior():
    # Sweeps, which replace rejection beyond eight columns, on a case where both can be used.
    odds = np.log(NODES / (1 - NODES))
    rng = np.random.default_rng(1)
    log_odds = node_inclusion.possible(np.log(EDGES + 1e-300) - np.log1p(-EDGES), np.ones(P, int))
    shares = node_inclusion.sweep_node_prior(rng, odds, log_odds, 0.25, 1.0, 0.5, 20_000)[1]
    nodes = np.mean([d[0] for d in prior_draws(np.random.default_rng(0), 20_000)], axis=0)
    np.testing.assert_allclose(shares.diagonal(), nodes, atol=0.03)


class Joint:
    """Both simulators of the model."""

    def __init__(self):
        self.model, self.pool = build(np.zeros((N, P))), []
        self.steps = steps_of(self.model)

    def forward(self, rng):
        if not self.pool:
            self.pool = prior_draws(rng, 4_000)
        z, edge, K = self.pool.pop()
        return self.with_rows(
            rng, {"included": z, "edge": edge, "K_cholesky-cov__": pack_cholesky(K)}
        )

    def with_rows(self, rng, point):
        K, covariance = unpack_cholesky(point["K_cholesky-cov__"], P)
        return point, rng.normal(size=(N, P)) @ np.linalg.cholesky(covariance).T, K

    def transition(self, rng, state):
        point, rows, _ = state
        self.model.set_data("rows", rows)
        self.steps[0].forget()
        self.steps[1].parts[0].forget()
        for step in self.steps:
            point, _ = step.step(point)
        return self.with_rows(rng, dict(point))

    def statistics(self, state):
        point, rows, K = state
        z, u, on = np.tanh(0.3 * rows), K[PAIRS], point["included"]
        out = {f"k{i}^2": np.tanh(v * v) for i, v in enumerate(u)}
        out |= {f"z{i}": v for i, v in enumerate(on)} | {
            f"e{i}": v for i, v in enumerate(point["edge"])
        }
        out |= {f"log d{i}": v for i, v in enumerate(np.log(np.diag(K)))}
        out |= {"nodes^2": on.sum() ** 2, "zz": (z[:, 0] * z[:, 1]).mean(), "z^2": (z**2).mean()}
        out |= {"impossible": np.any(point["edge"] > on[PAIRS[0]] * on[PAIRS[1]])}
        return out | {"node edge": on[0] * point["edge"].sum(), "size": np.tanh(u[0] ** 2) * on[0]}

    def check(self, draws):
        return assert_geweke(
            self.forward, self.transition, self.statistics, draws=draws, chains=20, seed=1
        )


@pytest.mark.calibration
def test_parameters_and_tables_have_their_joint_distribution(full):
    assert len(Joint().check(60_000 if full else 1_200)) > 15


@pytest.mark.calibration
def test_nodes_drawn_by_their_prior_alone_are_noticed(full, monkeypatch):
    right = node_inclusion.draw_included

    def broken(rng, precision, *args):
        # As if absent edges between included nodes were no evidence.
        return right(rng, 0.0 * precision, *args)

    monkeypatch.setattr(node_inclusion, "draw_included", broken)
    # Right switches would mend most of it.
    monkeypatch.setattr(node_inclusion, "switch_nodes", lambda *args: None)
    with pytest.raises(AssertionError, match="worst z"):
        Joint().check(30_000 if full else 1_200)


@pytest.mark.calibration
def test_switches_that_take_elements_for_free_are_noticed(full, monkeypatch):
    right = node_inclusion.switch_nodes

    def broken(rng, K, W, scatter, n, included, odds, *rest):
        # As if elements with a possible edge had more evidence than without one.
        return right(rng, K, W, scatter, n, included, odds + 1.0, *rest)

    monkeypatch.setattr(node_inclusion, "switch_nodes", broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint().check(30_000 if full else 1_200)


@pytest.mark.statistical
def test_switches_alone_against_draws_given_the_matrix():
    """Six columns, some of them weak, where both kinds of moves mix."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(60, 6))
    x[:, 1] += 0.8 * x[:, 0]
    x[:, 3] += 0.4 * x[:, 2]
    data, prior = (x.T @ x, 60.0), (np.zeros(6), np.zeros((6, 6)), 0.1, 1.0)

    def run(switches):
        K, W, z, kept = np.eye(6), np.eye(6), np.ones(6, np.int64), []
        edge, chance, work = np.zeros((6, 6), np.int8), np.zeros((6, 6)), np.empty((4, 6))
        for _ in range(12_000):
            odds = node_inclusion.possible(prior[1], z)
            own = (*data, odds, *prior[2:], 0.5, work[:2])
            spike_slab_sweep(rng, K, W, edge, chance, *own)
            if switches:
                node_inclusion.switch_nodes(rng, K, W, *data, z, *prior, 0.5, work)
            else:
                node_inclusion.draw_included(rng, K, z, *prior)
            kept.append(np.concatenate([z, np.tanh(K[0]), np.log(K.diagonal())]))
        return mean_and_error(np.array(kept[200:]), 50)[:2]

    (one, error), (two, other) = run(True), run(False)
    assert (one[:6] > 0.9).any() and ((one[:6] > 0.2) & (one[:6] < 0.8)).any()
    z = (one - two) / np.hypot(error, other)
    assert np.abs(z).max() < 4.5, z


def test_the_matrix_and_its_inverse_belong_together_after_switches():
    rng, S = np.random.default_rng(0), 30.0 * (0.3 + 0.7 * np.eye(5))
    K, W, z = np.eye(5), np.eye(5), np.zeros(5, np.int64)
    prior = np.zeros(5), np.where(np.eye(5, k=1) + np.eye(5, k=-1) > 0, -np.inf, 0.0), 0.1, 1.0
    seen = set()
    for _ in range(200):
        before, was = K.copy(), z.copy()
        node_inclusion.switch_nodes(rng, K, W, S, 30.0, z, *prior, 0.5, np.empty((4, 5)))
        seen.add(tuple(z))
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(K @ W, np.eye(5), atol=1e-9)
        if (was == z).all():
            continue
        # Elements whose edge is forbidden stay as they are.
        np.testing.assert_array_equal(np.diag(K, 1), np.diag(before, 1))
    assert len(seen) > 10


def test_something_else_that_depends_on_the_nodes():
    model = build(table())
    with model:
        pm.Potential("more", model["included"].sum())
        with pytest.raises(ValueError, match="'more' depends on 'included'"):
            NodeInclusionGibbs([model["included"]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node_probability": 1.0}, "node_probability"),
        ({"edge_probability": np.array([[0, 1.0], [1.0, 0]])}, "below 1"),
        ({"edge_probability": np.array([[0, 0.2], [0.3, 0]])}, "symmetric"),
    ],
)
def test_impossible_probabilities(change, message):
    with pytest.raises(ValueError, match=message):
        NodeInclusion.dist(2, **change)


def test_matrix_of_other_variables():
    with pytest.raises(ValueError, match="NodeInclusion"):
        NodeSpikeSlab.dist(pm.Bernoulli.dist(0.5, shape=3))


@pytest.mark.chain
def test_mode_and_assigned_steps():
    rows = table(60)
    rows[:, 2] = np.random.default_rng(5).normal(size=60)
    model = build(rows)
    with model:
        assigned = set(pm.sampling.mcmc.assign_step_methods(model)[1])
        mode = bs.find_MAP()
    assert assigned == {NodeInclusionGibbs, PrecisionGibbs}
    assert mode["included"].tolist() in ([1, 1, 0], [1, 1, 1]) and mode["edge"][0] == 1
    # No subset of nodes is better given the matrix.
    f = model.compile_logp(vars=[model["K"], model["included"]], jacobian=False)
    packed = {"K_cholesky-cov__": pack_cholesky(mode["K"])}
    values = [float(f(packed | {"included": z, "edge": mode["edge"]})) for z in SUBSETS]
    assert SUBSETS[np.argmax(values)].tolist() == mode["included"].tolist()
