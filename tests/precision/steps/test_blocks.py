"""Unknown blocks of columns: exact posteriors of a few columns, joint distribution, a wrong step, prior draws."""

import itertools

import numpy as np
import pymc as pm
import pytest

from scipy.special import betaln, gammaln
from tools.batches import mean_and_error
from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke
from tools.integration import spike_slab_posterior

import bayesstruct as bs

from bayesstruct.distributions import BlockEdgeProbabilities, BlockLabels, BlockSpikeSlab, Edges
from bayesstruct.precision.kernels import blocks
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.priors.blocks import implied_block_probability
from bayesstruct.steps import BlocksGibbs, PrecisionGibbs

SCALES = {"spike_scale": 0.25, "slab_scale": 1.0, "diagonal_rate": 0.5}
REFERENCE = {"spike": 0.25, "slab": 1.0, "diagonal_rate": 0.5}
P, N, MOST, CONCENTRATION = 4, 6, 3, 1.5
WITHIN, BETWEEN = (3.0, 2.0), (1.0, 3.0)
PAIRS = np.triu_indices(P, 1)
PRIOR = {"max_blocks": MOST, "concentration": CONCENTRATION, **SCALES}


def canonical():
    """All partitions into at most three blocks, numbered in the order of their first columns."""
    out = []
    for c in itertools.product(range(MOST), repeat=P):
        if all(c[i] <= max(c[:i], default=-1) + 1 for i in range(P)):
            out.append(c)
    return np.array(out)


PARTITIONS = canonical()


def log_partition(c):
    """Log probability of a partition under the finite mixture."""
    sizes = np.bincount(c)
    each = CONCENTRATION / MOST
    numberings = gammaln(MOST + 1) - gammaln(MOST - len(sizes) + 1)
    own = np.sum(gammaln(sizes + each) - gammaln(each))
    return numberings + own + gammaln(CONCENTRATION) - gammaln(CONCENTRATION + P)


def counts(edges, c):
    """Present and absent edges within and between blocks."""
    same = c[PAIRS[0]] == c[PAIRS[1]]
    within, between = edges[same], edges[~same]
    return within.sum(), (1 - within).sum(), between.sum(), (1 - between).sum()


def log_joint(edges, c):
    """Log prior probability of a graph and a partition, probabilities of edges summed out, without the cone."""
    a, b, d, e = counts(edges, c)
    within = betaln(WITHIN[0] + a, WITHIN[1] + b) - betaln(*WITHIN)
    between = betaln(BETWEEN[0] + d, BETWEEN[1] + e) - betaln(*BETWEEN)
    return log_partition(c) + within + between


def table(n=N, seed=0):
    z = np.random.default_rng(seed).normal(size=(n, P))
    z[:, 1] += 0.8 * z[:, 0]
    return z


def build(rows):
    with pm.Model() as model:
        shares = BlockEdgeProbabilities("share", P, WITHIN, BETWEEN, **PRIOR)
        block = BlockLabels("block", shares)
        K = BlockSpikeSlab("K", block)
        Edges("edge", K)
        pm.MvNormal("x", np.zeros(P), tau=K, observed=pm.Data("rows", rows))
    return model


def steps_of(model, seed=0):
    with model:
        return (
            BlocksGibbs([model["share"], model["block"]], rng=seed),
            PrecisionGibbs([model["K"], model["edge"]], rng=seed + 1),
        )


def together(c):
    return (c[..., PAIRS[0]] == c[..., PAIRS[1]]).astype(float)


@pytest.mark.statistical
def test_posterior_of_graphs_and_partitions():
    rows = table()
    states, exact, errors, _ = spike_slab_posterior(
        rows, probability=0.5, **REFERENCE, draws=10_000, seed=1
    )
    joint = np.exp([[log_joint(z, c) for c in PARTITIONS] for z in states])
    prior = joint.sum(axis=1)
    weight = exact * prior
    errors = errors * prior / weight.sum()
    weight /= weight.sum()
    given = joint / prior[:, None]
    same = weight @ (given @ together(PARTITIONS))
    share = np.zeros(2)
    for w, z, row in zip(weight, states, given, strict=True):
        for g, c in zip(row, PARTITIONS, strict=True):
            a, b, d, e = counts(z, c)
            share[0] += w * g * (WITHIN[0] + a) / (sum(WITHIN) + a + b)
            share[1] += w * g * (BETWEEN[0] + d) / (sum(BETWEEN) + d + e)
    model = build(rows)
    steps, point, kept = steps_of(model), model.initial_point(), []
    for t in range(3_200):
        for step in steps:
            point, _ = step.step(point)
        if t >= 200:
            own = 1 / (1 + np.exp(-point["share_logodds__"]))
            kept.append(np.concatenate([point["edge"], together(point["block"]), own]))
    kept = np.array(kept)
    assert_matches_enumeration(kept[:, :6].astype(int), weight, states=states, errors=errors)
    mean, error, _ = mean_and_error(kept[:, 6:], 60)
    z = (mean - np.append(same, share)) / error
    assert np.abs(z).max() < 4.5, z


def test_probabilities_of_partitions(python_mode):
    model = build(table())
    f = model.compile_logp(vars=[model["block"]])
    point = model.initial_point()
    values = [float(f(point | {"block": c})) for c in PARTITIONS]
    np.testing.assert_allclose(values, [log_partition(c) for c in PARTITIONS])
    assert np.exp(values).sum() == pytest.approx(1.0)
    for other in [1, 0, 0, 0], [0, 2, 1, 0], [0, 1, 2, 3], [0, 0, -1, 0]:
        assert f(point | {"block": np.array(other)}) == -np.inf


def prior_draws(rng, size):
    """Shares, labels, edges and matrices by rejection of those that are not positive definite."""
    chance, out = np.exp([log_partition(c) for c in PARTITIONS]), []
    while len(out) < size:
        share = np.stack([rng.beta(*WITHIN, 8_000), rng.beta(*BETWEEN, 8_000)], axis=1)
        c = PARTITIONS[rng.choice(len(PARTITIONS), size=8_000, p=chance / chance.sum())]
        nominal = np.where(together(c) == 1, share[:, :1], share[:, 1:])
        edge = (rng.random(nominal.shape) < nominal).astype(int)
        K = np.zeros((8_000, P, P))
        values = rng.normal(size=edge.shape) * np.where(edge == 1, 1.0, 0.25)
        K[:, PAIRS[0], PAIRS[1]] = K[:, PAIRS[1], PAIRS[0]] = values
        K[:, range(P), range(P)] = rng.exponential(2.0, size=(8_000, P))
        inside = np.linalg.eigvalsh(K)[:, 0] > 0
        out += list(zip(share[inside], c[inside], edge[inside], K[inside], strict=True))
    return out[:size]


@pytest.mark.statistical
def test_prior_draws_and_implied_probability():
    draws = prior_draws(np.random.default_rng(0), 10_000)
    share, same, edges = (
        np.mean([d[k] if k != 1 else together(d[1]) for d in draws], 0) for k in range(3)
    )
    implied = implied_block_probability(P, WITHIN, BETWEEN, **PRIOR)
    np.testing.assert_allclose(implied, edges.mean(), atol=0.03)
    model = build(table())
    variables = [model[name] for name in ("share", "block", "edge")]
    s, c, e = pm.draw(variables, 2_000, random_seed=1, mode="FAST_COMPILE")
    np.testing.assert_allclose(s.mean(0), share, atol=0.03)
    np.testing.assert_allclose(together(c).mean(0), same, atol=0.035)
    np.testing.assert_allclose(e.mean(0), edges, atol=0.035)


@pytest.mark.statistical
def test_sweeps_of_many_columns_have_the_same_prior():
    # Sweeps, which replace rejection beyond eight columns, on a case where both can be used.
    draws = prior_draws(np.random.default_rng(0), 10_000)
    rng, shares = np.random.default_rng(1), np.empty(2)
    labels, (alpha, beta) = np.zeros(P, int), np.array([WITHIN, BETWEEN]).T.copy()
    prior = (False, alpha, beta, MOST, CONCENTRATION, 0.25, 1.0, 0.5)
    found = blocks.sweep_blocks(rng, labels, shares, *prior, 20_000)
    edges = np.mean([d[2] for d in draws], axis=0)
    np.testing.assert_allclose(found[PAIRS], edges, atol=0.025)


class Joint:
    """Both simulators of the model."""

    def __init__(self):
        self.model, self.pool = build(np.zeros((N, P))), []
        self.steps = steps_of(self.model)

    def forward(self, rng):
        if not self.pool:
            self.pool = prior_draws(rng, 4_000)
        share, c, edge, K = self.pool.pop()
        point = {"block": c, "edge": edge, "K_cholesky-cov__": pack_cholesky(K)}
        point["share_logodds__"] = np.log(share) - np.log1p(-share)
        return self.with_rows(rng, point)

    def with_rows(self, rng, point):
        K, covariance = unpack_cholesky(point["K_cholesky-cov__"], P)
        return point, rng.normal(size=(N, P)) @ np.linalg.cholesky(covariance).T, K

    def transition(self, rng, state):
        point, rows, _ = state
        self.model.set_data("rows", rows)
        self.steps[1].parts[0].forget()
        for step in self.steps:
            point, _ = step.step(point)
        return self.with_rows(rng, dict(point))

    def statistics(self, state):
        point, rows, K = state
        z, u, same = np.tanh(0.3 * rows), K[PAIRS], together(point["block"])
        share = 1 / (1 + np.exp(-point["share_logodds__"]))
        out = {f"k{i}^2": np.tanh(v * v) for i, v in enumerate(u)}
        out |= {f"s{i}": v for i, v in enumerate(same)} | {f"q{i}": v for i, v in enumerate(share)}
        out |= {"edges": point["edge"].sum(), "blocks": point["block"].max()}
        out |= {"edges within": (point["edge"] * same).sum(), "share^2": share[0] * share[1]}
        out |= {"log det": np.linalg.slogdet(K)[1], "zz": (z[:, 0] * z[:, 1]).mean()}
        return out | {
            "share edge": share[0] * point["edge"][0],
            "size": np.tanh(u[0] ** 2) * same[0],
        }

    def check(self, draws):
        return assert_geweke(
            self.forward, self.transition, self.statistics, draws=draws, chains=20, seed=1
        )


@pytest.mark.calibration
def test_parameters_and_tables_have_their_joint_distribution(full):
    assert len(Joint().check(60_000 if full else 1_200)) > 20


@pytest.mark.calibration
def test_blocks_without_their_sizes_are_noticed(full, monkeypatch):
    right = blocks.draw_labels

    def broken(rng, K, labels, shares, most, concentration, *scales):
        # As if all blocks were equally large.
        return right(rng, K, labels, shares, most, 1e6, *scales)

    monkeypatch.setattr(blocks, "draw_labels", broken)
    with pytest.raises(AssertionError, match="worst z"):
        Joint().check(30_000 if full else 1_200)


def test_renumbering():
    labels = np.array([2, 0, 2, 1])
    assert blocks.renumber(labels, 3) == 3
    assert labels.tolist() == [0, 1, 0, 2]


def test_something_else_that_depends_on_the_blocks():
    model = build(table())
    with model:
        pm.Potential("more", model["block"].sum())
        with pytest.raises(ValueError, match="'more' depends on 'block'"):
            BlocksGibbs([model["block"], model["share"]])


def test_impossible_parameters():
    with pytest.raises(ValueError, match="max_blocks"):
        BlockEdgeProbabilities.dist(3, max_blocks=0)
    with pytest.raises(ValueError, match="within"):
        BlockEdgeProbabilities.dist(3, within=(0.0, 1.0))
    with pytest.raises(ValueError, match="BlockEdgeProbabilities"):
        BlockLabels.dist(pm.Beta.dist(1, 1, shape=2))
    with pytest.raises(ValueError, match="BlockLabels"):
        BlockSpikeSlab.dist(pm.Bernoulli.dist(0.5, shape=3))


@pytest.mark.chain
def test_mode_and_assigned_steps():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(200, P))
    rows[:, 1] += rows[:, 0]
    rows[:, 3] += rows[:, 2]
    model = build(rows)
    with model:
        assigned = set(pm.sampling.mcmc.assign_step_methods(model)[1])
        mode = bs.find_MAP(tol=1e-6)
    assert assigned == {BlocksGibbs, PrecisionGibbs}
    assert mode["edge"][0] == mode["edge"][5] == 1
    # No other partition that moves one column is better given the matrix and the probabilities.
    f = model.compile_logp(vars=[model["K"], model["block"]], jacobian=False)
    logit = np.log(mode["share"]) - np.log1p(-mode["share"])
    point = {"K_cholesky-cov__": pack_cholesky(mode["K"]), "share_logodds__": logit}
    value = {tuple(c): float(f(point | {"block": c, "edge": mode["edge"]})) for c in PARTITIONS}
    near = [c for c in PARTITIONS if (c != mode["block"]).sum() <= 1]
    assert value[tuple(mode["block"])] >= max(value[tuple(c)] for c in near) - 1e-9


def test_probabilities_of_edges_on_another_scale_are_refused():
    with pm.Model() as model:
        shares = BlockEdgeProbabilities("shares", P, default_transform=None, **PRIOR)
        labels = BlockLabels("labels", shares)
        BlockSpikeSlab("K", labels)
    with model, pytest.raises(ValueError, match="'shares' does not have its default transform"):
        BlocksGibbs(model.free_RVs[:2])
