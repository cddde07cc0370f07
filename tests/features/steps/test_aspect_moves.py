"""Births, splits and unions of aspects: chains from extreme starts have the exact posterior."""

import itertools
import math

import numpy as np
import pymc as pm
import pytest

from scipy import stats
from tools.mixing import assert_reached_from

import bayesstruct as bs

from bayesstruct.distributions import FeatureInteractions, IndianBuffet, aspect_probabilities
from bayesstruct.features.kernels import aspect_features as kernel
from bayesstruct.features.kernels import aspect_moves
from bayesstruct.features.steps.aspect_features import AspectFeatureGibbs

MOST = 40
CYCLE = [[0, 5, 1], [2, 0, 3], [4, 1, 0]]
# How often each option was chosen over each other, alpha, lapse.
TABLES = {
    "a cycle": (CYCLE, 1.2, 0.01),
    "a cycle, no lapses": (CYCLE, 1.2, 0.0),
    "a cycle, many lapses": (CYCLE, 1.2, 0.1),
    "one choice a pair": ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 1.5, 0.001),
    "an option never chosen": ([[0, 2, 3], [1, 0, 2], [0, 0, 0]], 0.8, 0.01),
    "an order": ([[0, 9, 9], [1, 0, 8], [1, 2, 0]], 1.2, 0.03),
    "two options": ([[0, 3], [4, 0]], 1.0, 0.01),
    "two options, no lapses": ([[0, 1], [2, 0]], 2.0, 0.0),
    "four options": ([[0, 1, 2, 0], [1, 0, 1, 1], [0, 1, 0, 2], [2, 1, 0, 0]], 1.0, 0.02),
    "pairs not compared": ([[0, 3, 0, 0], [2, 0, 1, 0], [0, 2, 0, 4], [0, 0, 1, 0]], 1.0, 0.05),
}


# --- exact posterior, without any code of the package ------------------------------------------


def reference(wins, alpha, lapse, draws=200_000, seed=0):
    """Probabilities of the states (see `state_of`) and their errors, by weighted draws of the prior.

    Columns of each pattern are independent Poisson numbers; only the sums of their weights matter.
    """
    wins, rng = np.array(wins), np.random.default_rng(seed)
    n = len(wins)
    patterns = np.array([h for h in itertools.product((0, 1), repeat=n) if any(h)])
    number, total = np.zeros(draws, int), np.zeros((draws, len(patterns)))
    for j, pattern in enumerate(patterns):
        m = int(pattern.sum())
        mean = alpha * math.factorial(m - 1) * math.factorial(n - m) / math.factorial(n)
        counts = rng.poisson(mean, draws)
        number += counts
        for k in range(counts.max()):
            total[:, j] += np.abs(rng.standard_normal(draws)) * (counts > k)
    likelihood, ties = np.ones(draws), np.zeros(draws, int)
    for i, j in itertools.combinations(range(n), 2):
        ahead = total @ (patterns[:, i] * (1 - patterns[:, j]))
        behind = total @ (patterns[:, j] * (1 - patterns[:, i]))
        tie = ahead + behind == 0
        p = (1 - lapse) * np.where(tie, 0.5, ahead / np.where(tie, 1, ahead + behind)) + lapse / 2
        likelihood *= p ** wins[i, j] * (1 - p) ** wins[j, i]
        ties += tie
    states = state_of(number, ties, n)
    weights = likelihood / likelihood.sum()
    size = _states(n)
    p = np.bincount(states, weights, size)
    at = states[:, None] == np.arange(size)
    errors = np.sqrt((weights[:, None] ** 2 * (at - p) ** 2).sum(axis=0))
    return p, errors


def _states(n):
    return 8 * (n * (n - 1) // 2 + 1)


def state_of(number, ties, n):
    """State: the number of aspects, from 7 on together, and the number of pairs with equal aspects."""
    return np.minimum(number, 7) * (n * (n - 1) // 2 + 1) + ties


# --- chains -------------------------------------------------------------------------------------


def model_of(wins, alpha, lapse):
    """The model `elimination_by_aspects`, which takes no lapse of zero."""
    wins = np.array(wins)
    first, second = np.triu_indices(len(wins), 1)
    trials = (wins + wins.T)[first, second]
    with pm.Model() as model:
        z = IndianBuffet("feature", alpha, observations=len(wins), max_features=MOST)
        w = FeatureInteractions("interaction", z, 1.0, kind="diagonal", positive=True)
        p = aspect_probabilities(z, w, first, second, lapse=lapse)
        pm.Binomial("y", trials, p, observed=wins[first, second])
    return model


def starts_of(n):
    """No aspect; one that all have; one for each option; one for each option and each pair."""
    own, both = np.eye(n), np.array([h for h in itertools.product((0, 1), repeat=n) if sum(h) == 2])
    columns = {"empty": np.zeros((n, 0)), "common": np.ones((n, 1)), "own": own}
    return columns | {"full": np.concatenate([own, both.T], axis=1)}


def chain(model, columns, seed, draws):
    """Numbers of the states that a chain visits."""
    point = model.initial_point()
    n, k = columns.shape
    for name in ("feature", "interaction"):
        point[name] = np.zeros_like(point[name])
    point["feature"][:, :k] = columns
    point["interaction"][:k] = 1.0
    with model:
        step = AspectFeatureGibbs(model.value_vars, rng=np.random.default_rng(seed))
    step.setup_chain(np.random.default_rng(seed), 0, draws)
    number, ties = [], []
    first, second = np.triu_indices(n, 1)
    for _ in range(draws):
        point, _ = step.step(point)
        z = point["feature"]
        number.append(z.any(axis=0).sum())
        ties.append((z[first] == z[second]).all(axis=1).sum())
    return state_of(np.array(number), np.array(ties), n)


def check(name, draws=2_500):
    wins, alpha, lapse = TABLES[name]
    model, exact = model_of(wins, alpha, lapse), reference(wins, alpha, lapse)
    assert_reached_from(
        starts_of(len(wins)),
        lambda start, seed: chain(model, start, seed, draws),
        exact[0],
        errors=exact[1],
    )


@pytest.mark.statistical
@pytest.mark.parametrize("name", TABLES)
def test_chains_from_extreme_starts_have_the_exact_posterior(name):
    check(name)


@pytest.mark.statistical
@pytest.mark.parametrize("part", ["log_split", "log_birth", "intensity"])
def test_chains_of_wrong_moves_have_not(part, monkeypatch):
    """Twice the probability of a proposal, or of a column."""
    right = aspect_moves.aspect_moves

    def wrong(*given):
        moves = right(*given)
        return moves._replace(**{part: getattr(moves, part) + math.log(2.0)})

    monkeypatch.setattr(aspect_moves, "aspect_moves", wrong)
    with pytest.raises(AssertionError, match="worst z"):
        check("a cycle")


@pytest.mark.statistical
def test_without_moves_a_chain_stays_where_it_begins(monkeypatch):
    monkeypatch.setattr(aspect_moves, "move_aspects", lambda rng, z, w, used, *_: used)
    with pytest.raises(AssertionError, match="from the start 'empty'"):
        check("a cycle")


def test_a_chain_visits_no_aspect_from_the_start_of_the_model():
    """Of the exact probability .545 at no aspect, and .218 at one; a chain of 400 draws has seen both."""
    with bs.models.elimination_by_aspects(np.array(CYCLE), alpha=1.2) as model:
        step = AspectFeatureGibbs(model.value_vars, rng=np.random.default_rng(1))
    step.setup_chain(np.random.default_rng(1), 40, 400)
    point, seen = model.initial_point(), []
    for _ in range(440):
        point, _ = step.step(point)
        seen.append(int(point["feature"].any(axis=0).sum()))
    share = np.bincount(seen[40:], minlength=3) / 400
    assert abs(share[0] - 0.545) < 0.15 and abs(share[1] - 0.218) < 0.12


# --- parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("process", [(1.0, 0.0), (2.0, 0.3)])
def test_proposals_are_distributions_of_patterns(process):
    n = 5
    moves = aspect_moves.aspect_moves(n, 1.3, *process)
    patterns = np.array(list(itertools.product((0, 1), repeat=n))[1:])
    np.testing.assert_allclose(np.exp(moves.log_birth[patterns.sum(axis=1)]).sum(), 1.0)
    for m in range(2, n + 1):
        inside = [sum(h) for h in itertools.product((0, 1), repeat=m)]
        np.testing.assert_allclose(np.exp(moves.log_split[m, inside]).sum(), 1.0)
        np.testing.assert_allclose(moves.splits[m, -1], 1.0)
    # An object has alpha features on average (Griffiths and Ghahramani 2011).
    np.testing.assert_allclose((np.exp(moves.intensity[patterns.sum(axis=1)]) @ patterns), 1.3)


def test_moves_keep_sums_and_say_when_there_are_too_many_aspects():
    rng, n = np.random.default_rng(2), 4
    first, second = (v.astype(np.int64) for v in np.triu_indices(n, 1))
    z, w = np.zeros((n, 12), np.int8), np.zeros((12, 1))
    trials = np.full(6, 3.0)
    choices = kernel.Choices(first, second, np.full(6, 1.0), trials, np.zeros((6, 2)))
    moves, used, most = aspect_moves.aspect_moves(n, 1.0), 0, 0
    for _ in range(400):
        used = aspect_moves.move_aspects(rng, z, w, used, choices, moves, 5, 0.01, 1.0)
        assert (
            used == z.any(axis=0).sum() and z[:, :used].any(axis=0).all() and (w[:used] > 0).all()
        )
        assert not w[used:].any()
        expected = kernel.advantages(z, w[:, 0], first, second)
        np.testing.assert_allclose(choices.gain, expected, atol=1e-10)
        most = max(most, used)
    assert most >= 3
    z, w = np.zeros((n, 1), np.int8), np.zeros((1, 1))
    choices = choices._replace(gain=np.zeros((6, 2)))
    many = aspect_moves.aspect_moves(n, 20.0)
    assert aspect_moves.move_aspects(rng, z, w, 0, choices, many, 100, 0.01, 1.0) == -1


def test_the_length_of_the_weights_has_its_distribution_given_their_direction():
    rng, w = np.random.default_rng(3), np.array([3.0, 0.1, 2.0])
    lengths = [np.linalg.norm(kernel.draw_length(rng, w, 2.0) * w) / 2.0 for _ in range(2_000)]
    assert stats.kstest(lengths, stats.chi(3).cdf).pvalue > 1e-3
    assert kernel.draw_length(rng, np.zeros(0), 1.0) == 1.0
