"""Evidence of the graphs of Markov random fields, and the search, against sums and integrals by brute force."""

import itertools

import numpy as np
import pytest

from scipy.optimize import minimize
from scipy.special import betaln, logsumexp
from tools.random_fields import exact_distribution, feature_matrix

from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.solvers.edge_priors import (
    BlockEdges,
    IndependentEdges,
    SharedEdges,
    beta_mode,
)
from bayesstruct.fields.solvers.evidence import FieldEvidence, FieldPrior, log_slab, slab_precision
from bayesstruct.fields.solvers.hessian import hessian_for
from bayesstruct.fields.solvers.likelihoods import likelihood_for
from bayesstruct.fields.solvers.search import FieldMode, _Climber, _Promise, search_field

LIKELIHOODS = ("exact", "pseudo")
SLABS = ("normal", "laplace", "cauchy")


def draw(potentials, n, seed, scale=0.8, present=0.6):
    """Table of n rows, some of whose pairs depend on each other."""
    rng = np.random.default_rng(seed)
    on = (rng.random(len(potentials.ends[0])) < present)[potentials.edge_of_weight]
    weight = scale * rng.normal(size=potentials.weight_size) * on
    _, distribution = exact_distribution(
        potentials, 0.5 * rng.normal(size=potentials.bias_size), weight
    )
    return np.column_stack(
        np.unravel_index(rng.choice(len(distribution), n, p=distribution), potentials.states)
    )


def evidence_of(potentials, codes, likelihood, slab="normal", scale=1.0, deviation=3.0):
    blocks = [np.arange(a, b) for a, b in itertools.pairwise(potentials.weight_start)]
    prior = FieldPrior(
        slab,
        np.full(potentials.weight_size, scale),
        np.zeros(potentials.bias_size),
        np.full(potentials.bias_size, deviation**-2.0),
        blocks,
    )
    return FieldEvidence(likelihood_for(likelihood, potentials, codes), prior)


class BruteForce:
    """Log density of many vectors of biases and weights, from the table of all joint states."""

    def __init__(self, potentials, codes, likelihood, slab="normal", scale=1.0, deviation=3.0):
        self.potentials, self.likelihood = potentials, likelihood
        first, size = potentials.bias_size, potentials.weight_size
        unary = np.array([potentials.unary(e) for e in np.eye(first)])
        pair = np.array([potentials.pair(e) for e in np.eye(size)])
        cells = unary.shape[1]
        features = feature_matrix(potentials)
        self.statistics = np.vstack([unary @ features[:, :cells].T, pair @ features[:, cells:].T])
        cells = np.ravel_multi_index(codes.T, potentials.states)
        self.counts = np.bincount(cells, minlength=len(features)).reshape(potentials.states)
        self.slab, self.scale, self.deviation = slab, scale, deviation

    def log_likelihood(self, theta):
        energy = (theta @ self.statistics).reshape(-1, *self.potentials.states)
        axes = tuple(range(1, energy.ndim))
        over = [axes] if self.likelihood == "exact" else axes
        logs = sum(energy - logsumexp(energy, axis=axis, keepdims=True) for axis in over)
        return (self.counts * logs).sum(axis=axes)

    def __call__(self, theta, weights):
        """With the prior of the biases and of the weights that are present."""
        first = self.potentials.bias_size
        w, s = theta[:, first:][:, weights], self.scale
        bias = -0.5 * (theta[:, :first] / self.deviation) ** 2
        bias -= np.log(self.deviation * np.sqrt(2.0 * np.pi))
        slabs = {
            "normal": -0.5 * (w / s) ** 2 - np.log(s * np.sqrt(2.0 * np.pi)),
            "laplace": -np.abs(w) / s - np.log(2.0 * s),
            "cauchy": -np.log1p((w / s) ** 2) - np.log(np.pi * s),
        }
        return self.log_likelihood(theta) + bias.sum(axis=1) + slabs[self.slab].sum(axis=1)

    def laplace(self, on):
        """Laplace's method with a numerical optimiser and numerical derivatives."""
        first = self.potentials.bias_size
        weights = np.flatnonzero(on[self.potentials.edge_of_weight])
        at = np.concatenate([np.arange(first), first + weights])
        steps = np.eye(len(at))

        def loss(x):
            theta = np.zeros((len(x), len(self.statistics)))
            theta[:, at] = x
            return -self(theta, weights)

        def both(x):
            around = loss(np.concatenate([x[None], x + 1e-5 * steps, x - 1e-5 * steps]))
            up, down = np.split(around[1:], 2)
            return around[0], (up - down) / 2e-5

        best = minimize(both, np.zeros(len(at)), jac=True, method="BFGS", options={"gtol": 1e-3})
        h = 1e-3
        i, j = np.indices((len(at), len(at))).reshape(2, -1)
        corners = [
            loss(best.x + h * (a * steps[i] + b * steps[j])) for a in (1, -1) for b in (1, -1)
        ]
        second = (corners[0] - corners[1] - corners[2] + corners[3]) / (4.0 * h**2)
        log_det = np.linalg.slogdet(second.reshape(len(at), len(at)))[1]
        return -best.fun + 0.5 * len(at) * np.log(2.0 * np.pi) - 0.5 * log_det


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize(
    ("kind", "states"),
    [
        ("spin", (2, 2, 2)),
        ("blume_capel", (2, 2, 2)),
        ("ordinal", (3, 2, 4)),
        ("blume_capel", (3, 4, 2)),
        ("ising", (3, 3, 3)),
        ("generalized_ising", (3, 3, 3)),
        ("full", (2, 3, 2)),
    ],
)
def test_hessian_is_that_of_finite_differences(kind, states, likelihood):
    potentials, rng = Potentials(kind, states), np.random.default_rng(0)
    fit = likelihood_for(likelihood, potentials, draw(potentials, 40, 0))
    size, first = potentials.bias_size + potentials.weight_size, potentials.bias_size
    theta = rng.normal(size=size)
    theta[first + 1] = 0.0
    h = 1e-5
    wanted = [(fit(theta + h * e)[1] - fit(theta - h * e)[1]) / (2.0 * h) for e in np.eye(size)]
    hessian = hessian_for(fit)
    for at in (np.arange(size), np.sort(rng.choice(size, size // 2, replace=False))):
        found = hessian(theta[:first], theta[first:], at)
        np.testing.assert_allclose(found, np.array(wanted)[np.ix_(at, at)], atol=1e-6)


def test_hessian_of_many_joint_states_is_summed_in_pieces(monkeypatch):
    potentials = Potentials("ordinal", (3, 2, 4))
    fit = likelihood_for("exact", potentials, draw(potentials, 40, 0))
    bias, weight = np.linspace(-1, 1, potentials.bias_size), np.array([0.5, 0.0, -0.4])
    at = np.arange(potentials.bias_size + 3)
    whole = hessian_for(fit)(bias, weight, at)
    monkeypatch.setattr("bayesstruct.fields.solvers.hessian._KEPT", 0)
    monkeypatch.setattr("bayesstruct.fields.solvers.hessian._CHUNK", 5)
    np.testing.assert_allclose(hessian_for(fit)(bias, weight, at), whole, atol=1e-12)


@pytest.mark.parametrize("slab", SLABS)
def test_normal_densities_touch_the_slabs_from_below(slab):
    w, xi = np.linspace(-4, 4, 81)[:, None], np.array([0.3, 1.0, 2.5])
    bound = log_slab(slab, xi**2, 0.7) - 0.5 * slab_precision(slab, xi**2, 0.7) * (w**2 - xi**2)
    assert (bound <= log_slab(slab, w**2, 0.7) + 1e-12).all()
    density = np.exp(log_slab(slab, np.linspace(-4000, 4000, 4_000_001) ** 2, 0.7))
    assert density.sum() * 0.002 == pytest.approx(1.0, abs=2e-4)  # Cauchy's tails


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("slab", SLABS)
@pytest.mark.parametrize("strength", [0.0, 1.5])
def test_evidence_is_the_integral(slab, likelihood, strength):
    """Over two biases and one weight, on a grid."""
    potentials = Potentials("ordinal", (2, 2))
    _, distribution = exact_distribution(potentials, np.array([0.3, -0.6]), np.array([strength]))
    cells = np.random.default_rng(2).choice(4, 80, p=distribution)
    codes = np.column_stack(np.unravel_index(cells, (2, 2)))
    brute = BruteForce(potentials, codes, likelihood, slab)
    evidence = evidence_of(potentials, codes, likelihood, slab)
    fit = evidence.fit(np.array([True]), np.zeros(3))
    deviation = np.sqrt(np.diag(fit.covariance))
    axes = [m + d * np.linspace(-7, 7, 29) for m, d in zip(fit.theta, deviation, strict=True)]
    grid = np.array(list(itertools.product(*axes)))
    logs = brute(grid, np.array([0]))
    volume = np.prod(7.0 / 14.0 * deviation)
    # Laplace's method is off by terms of order 1/n; 0.05 is 5 % of a Bayes factor.
    assert fit.evidence == pytest.approx(logsumexp(logs) + np.log(volume), abs=0.05)


@pytest.mark.chain
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("seed", [0, 1])
def test_best_of_all_graphs_of_four_binary_columns(likelihood, seed):
    potentials = Potentials("ordinal", (2,) * 4)
    codes = draw(potentials, 70, seed, scale=1.2)
    brute = BruteForce(potentials, codes, likelihood)
    evidence, odds = evidence_of(potentials, codes, likelihood), np.log(0.3 / 0.7)
    graphs = np.array(list(itertools.product([False, True], repeat=6)))
    scores = np.array([brute.laplace(on) + odds * on.sum() for on in graphs]) + 6 * np.log(0.7)
    found = search_field(evidence, IndependentEdges(np.full(6, 0.3)))
    best = int(np.argmax(scores))
    assert (found.on == graphs[best]).all()
    assert found.score == pytest.approx(scores[best], abs=1e-3)
    # Learned edge probability: the same evidence, another prior.
    size = graphs.sum(axis=1)
    learned = scores - odds * size - 6 * np.log(0.7) + betaln(size + 1, 6 - size + 4) - betaln(1, 4)
    found = search_field(evidence, SharedEdges(np.full(6, np.nan), 1.0, 4.0))
    assert (found.on == graphs[int(np.argmax(learned))]).all()
    assert found.score == pytest.approx(learned.max(), abs=1e-3)


@pytest.mark.chain
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("kind", ["full", "generalized_ising", "ordinal"])
def test_best_of_all_graphs_of_three_columns_of_three_states(kind, likelihood):
    potentials = Potentials(kind, (3, 3, 3))
    codes = draw(potentials, 90, 3, scale=0.7 if kind != "ordinal" else 0.3)
    brute = BruteForce(potentials, codes, likelihood)
    graphs = np.array(list(itertools.product([False, True], repeat=3)))
    scores = [brute.laplace(on) - 3 * np.log(2.0) for on in graphs]
    evidence = evidence_of(potentials, codes, likelihood)
    found = search_field(evidence, IndependentEdges(np.full(3, 0.5)))
    assert (found.on == graphs[int(np.argmax(scores))]).all()
    assert found.score == pytest.approx(max(scores), abs=5e-3)


@pytest.mark.parametrize("slab", ["laplace", "cauchy"])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize(("kind", "states"), [("spin", (2,) * 4), ("full", (3, 2, 3))])
def test_search_finds_the_best_of_its_scores(kind, states, likelihood, slab):
    potentials = Potentials(kind, states)
    evidence = evidence_of(potentials, draw(potentials, 60, 7), likelihood, slab)
    blocks = len(evidence.prior.blocks)
    edges = IndependentEdges(np.full(blocks, 0.5))
    start = np.zeros(potentials.bias_size + potentials.weight_size)
    graphs = [np.array(on) for on in itertools.product([False, True], repeat=blocks)]
    scores = [evidence.fit(on, start).evidence + edges.log_prior(on) for on in graphs]
    found = search_field(evidence, edges)
    assert (found.on == graphs[int(np.argmax(scores))]).all()
    assert found.score == pytest.approx(max(scores), abs=1e-4)  # wherever Newton's method begins


@pytest.mark.parametrize("slab", SLABS)
@pytest.mark.parametrize(
    ("kind", "states", "size"), [("ordinal", (2,) * 6, 0.8), ("full", (2, 3, 2, 2), 0.4)]
)
def test_what_moves_promise_is_nearly_what_they_keep(kind, states, size, slab):
    potentials = Potentials(kind, states)
    evidence = evidence_of(potentials, draw(potentials, 400, 5, size, 0.4), "pseudo", slab)
    blocks = len(potentials.ends[0])
    climber = _Climber(evidence, IndependentEdges(np.full(blocks, 0.2)))
    best = search_field(evidence, climber.edges)
    fit = climber.fit(best.on, best.theta)
    promise, kinds = _Promise(climber, fit), 0
    for gains, moves in (promise.additions(), promise.deletions(), promise.exchanges()):
        near = gains > -6.0
        kinds += near.any()
        for gain, move in zip(gains[near], moves[near], strict=True):
            on = fit.on.copy()
            on[move[move >= 0]] ^= True
            kept = climber.score(climber.fit(on, fit.theta)) - climber.score(fit)
            assert gain == pytest.approx(kept, abs=0.25)
    assert kinds == 3


def test_an_exchange_is_an_addition_to_the_expansion_without_the_rival():
    """Gradient and curvature after a block is left out, by conditioning the whole Hessian."""
    potentials = Potentials("full", (2, 3, 2, 2))
    codes = draw(potentials, 60, 1, scale=1.5)
    climber = _Climber(evidence_of(potentials, codes, "exact"), IndependentEdges(np.full(6, 0.5)))
    on = np.array([True, True, False, True, False, False])
    fit = climber.fit(on, np.zeros(potentials.bias_size + potentials.weight_size))
    promise = _Promise(climber, fit)
    both = np.concatenate([fit.at, promise.own])
    order = np.sort(both)
    whole = climber.evidence.curvature(fit.theta, order)
    seen = 0
    for b in promise.present:
        rival = climber.evidence.biases + climber.evidence.prior.blocks[b]
        loss, own, pull, inverse = promise._loss(b)
        kept = np.setdiff1d(fit.at, rival)
        k, r = np.searchsorted(order, kept), np.searchsorted(order, rival)
        a = np.searchsorted(order, promise.own)
        # What is left keeps its ridge: the inverse of the covariance, without the rival.
        at = np.searchsorted(fit.at, kept)
        precision = np.linalg.inv(fit.covariance)
        ridged = precision[np.ix_(at, at)]
        moved = np.linalg.solve(ridged, whole[np.ix_(k, r)] @ fit.theta[rival])
        gradient = fit.gradient[promise.own] + whole[np.ix_(a, r)] @ fit.theta[rival]
        gradient -= whole[np.ix_(a, k)] @ moved
        schur = whole[np.ix_(a, a)]
        schur = schur - whole[np.ix_(a, k)] @ np.linalg.solve(ridged, whole[np.ix_(k, a)])
        reach = promise.reach[:, own]
        np.testing.assert_allclose(promise.gradient + reach @ pull, gradient, atol=1e-8)
        found = promise.curvature + reach @ inverse @ reach.T
        np.testing.assert_allclose(found, schur, atol=1e-8)
        gains, moves = promise._gains(gradient, (reach, inverse), -loss, b)
        promise.curvature, before = schur, promise.curvature
        wanted, _ = promise._gains(gradient, 0.0, -loss, -1)
        promise.curvature = before
        np.testing.assert_allclose(gains, wanted, atol=1e-8)
        seen += len(moves)
    assert seen == 9


def test_starts_and_kicks_find_what_a_climb_from_no_edge_does_not():
    """Columns that three hidden ones make alike, few rows: many graphs that no single move improves."""
    rng = np.random.default_rng(6)
    hidden, loading = rng.normal(size=(50, 3)), rng.normal(size=(3, 14))
    codes = (hidden @ loading + rng.normal(size=(50, 14)) > 0).astype(int)
    evidence = evidence_of(Potentials("spin", (2,) * 14), codes, "pseudo")
    edges = IndependentEdges(np.full(91, 0.5))
    empty = FieldMode(np.zeros(91, bool), np.zeros(14 + 91), 0.0, 0)
    single = search_field(evidence, edges, start=empty, kicks=0).score
    starts = search_field(evidence, edges, kicks=0).score
    assert starts > single + 2.0
    assert search_field(evidence, edges).score > starts + 0.5


def test_prior_of_hidden_labels_sums_to_one_and_its_odds_are_those():
    ends = np.array(list(itertools.combinations(range(4), 2)))
    known = np.array([np.nan, 1.0, np.nan, np.nan, 0.0, np.nan])
    pair_of = np.array([[0, 1], [1, 2]])
    edges = BlockEdges(
        known, ends, pair_of, np.array([2.0, 1.0, 2.0]), np.array([1.0, 4.0, 3.0]), np.ones(2)
    )
    total = []
    for labels in itertools.product(range(2), repeat=4):
        edges.labels = np.array(labels)
        for free in itertools.product([False, True], repeat=4):
            on = known == 1.0
            on[np.isnan(known)] = free
            total.append(edges.log_prior(on))
            odds = edges.log_odds(on)
            assert odds[1] == np.inf
            assert odds[4] == -np.inf
            for e in np.flatnonzero(np.isnan(known)):
                with_, without = on.copy(), on.copy()
                with_[e], without[e] = True, False
                wanted = edges.log_prior(with_) - edges.log_prior(without)
                assert odds[e] == pytest.approx(wanted, abs=1e-10)
    assert logsumexp(total) == pytest.approx(0.0, abs=1e-10)


def test_labels_are_the_best_for_a_graph():
    ends = np.array(list(itertools.combinations(range(6), 2)))
    on = np.array([(i < 3) == (j < 3) for i, j in ends])
    edges = BlockEdges(
        np.full(15, np.nan),
        ends,
        np.array([[0, 1], [1, 2]]),
        np.array([2.0, 1.0, 2.0]),
        np.array([1.0, 4.0, 1.0]),
        np.ones(2),
    )
    assert edges.adapt(on)
    assert not edges.adapt(on)
    every = [edges.log_prior(on, np.array(z)) for z in itertools.product(range(2), repeat=6)]
    assert edges.log_prior(on) == pytest.approx(max(every))
    assert len(set(edges.labels[:3])) == len(set(edges.labels[3:])) == 1


def test_mode_of_a_beta_distribution():
    x = np.linspace(0.001, 0.999, 999)
    for a, b in [(3.0, 2.0), (1.0, 5.0), (4.0, 1.0)]:
        density = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x)
        assert beta_mode(a, b) == pytest.approx(x[int(np.argmax(density))], abs=2e-3)
    assert beta_mode(1.0, 1.0) == 0.5
