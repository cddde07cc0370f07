"""Aspects by which options are chosen: probabilities, scan, step and model."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats
from tools.buffets import coarse_distance, counts, distance, posterior_of
from tools.geweke import assert_geweke

import bayesstruct as bs

from bayesstruct.data import TableError
from bayesstruct.distributions import FeatureInteractions, IndianBuffet, aspect_probabilities
from bayesstruct.features.kernels import aspect_features as kernel
from bayesstruct.features.kernels import indian_buffet as buffet
from bayesstruct.features.kernels.aspect_moves import aspect_moves, move_aspects
from bayesstruct.features.kernels.link_features import incidence
from bayesstruct.features.steps.aspect_features import AspectFeatureGibbs
from bayesstruct.models.elimination_by_aspects import elimination_by_aspects

MAX_FEATURES, ALPHA, LAPSE = 20, 1.2, 0.05
WINS, TRIALS = np.array([7]), np.array([8])


def probability(z, w, first, second):
    """Chance that the first of each pair is chosen, from the definition."""
    out = []
    for i, j in zip(first, second, strict=True):
        one = sum(v for a, v in enumerate(w) if z[i, a] and not z[j, a])
        two = sum(v for a, v in enumerate(w) if z[j, a] and not z[i, a])
        share = one / (one + two) if one + two > 0 else 0.5
        out.append((1 - LAPSE) * share + LAPSE / 2)
    return np.array(out)


def sweep(rng, z, w, used, pairs, wins, trials, scale=1.0):
    n = len(z)
    gain = kernel.advantages(z, w[:, 0], *pairs)
    choices = kernel.Choices(*pairs, wins.astype(float), trials.astype(float), gain)
    places = incidence(*pairs, n, n, True)
    process = np.array([ALPHA * buffet.new_dish_rates(n)[-1], 1.0, 0.0])
    order = rng.permutation(n)
    used = kernel.scan_aspects(
        rng, z, w, used, choices, places.start, places.pair, order, LAPSE, scale, process
    )
    used = move_aspects(rng, z, w, used, choices, aspect_moves(n, ALPHA), 3, LAPSE, scale)
    kernel.draw_aspect_weights(rng, z, w, used, choices, LAPSE, 1.0)
    np.testing.assert_allclose(gain, kernel.advantages(z, w[:, 0], *pairs), atol=1e-10)
    w *= kernel.draw_length(rng, w[:used, 0], 1.0)
    return used


# --- exact posterior --------------------------------------------------------------------------


def log_density(z, first, second, wins, trials, lapse):
    """Of the choices given the aspects: the mean over quasi-random half-normal weights."""
    points = stats.qmc.Sobol(max(z.shape[1], 1), seed=0).random(2**10)[:, : z.shape[1]]
    w = stats.halfnorm.ppf(points)
    one, two = z[first].astype(float), z[second].astype(float)
    ahead, behind = w @ (one * (1 - two)).T, w @ (two * (1 - one)).T
    total = np.where(ahead + behind > 0, ahead + behind, 1.0)
    p = (1 - lapse) * np.where(ahead + behind > 0, ahead / total, 0.5) + lapse / 2
    with np.errstate(divide="ignore"):
        return np.log((p**wins * (1 - p) ** (trials - wins)).prod(axis=1).mean())


# Options, pairs, wins, trials, lapse, concentration and discount.
CASES = {
    "one pair": (2, ([0], [1]), WINS, TRIALS, LAPSE, (1.0, 0.0)),
    "no lapses": (2, ([0, 1], [1, 0]), [3, 0], [3, 2], 0.0, (2.0, 0.3)),
    "three options": (3, ([0, 0, 1], [1, 2, 2]), [5, 1, 2], [6, 6, 6], LAPSE, (2.0, 0.3)),
}


def exact(case="one pair", most=6, alpha=ALPHA):
    n, (first, second), wins, trials, lapse, process = CASES[case]
    data = np.array(first), np.array(second), np.array(wins), np.array(trials), lapse
    return posterior_of(lambda z: log_density(z, *data), n, alpha, most, process)


def chain(draws, scale=1.0, seed=1):
    rng, used = np.random.default_rng(seed), 0
    z, w = np.zeros((2, MAX_FEATURES), np.int8), np.zeros((MAX_FEATURES, 1))
    pairs = np.array([0]), np.array([1])
    for _ in range(draws):
        used = sweep(rng, z, w, used, pairs, WINS, TRIALS, scale)
        yield counts(z[:, :used])


@pytest.mark.statistical
def test_a_scan_with_wrong_weights_has_not_the_exact_posterior():
    assert distance(list(chain(8_000, scale=4.0)), exact()) > 0.06


def model_of(case, alpha=ALPHA, scale=1.0, **other):
    """Model with everything known but aspects and weights."""
    n, pairs, wins, trials, lapse, (concentration, discount) = CASES[case]
    buffet = {"concentration": concentration, "discount": discount, "max_features": MAX_FEATURES}
    with pm.Model() as model:
        z = IndianBuffet("feature", alpha, observations=n, **buffet)
        w = FeatureInteractions("w", z, scale, kind="diagonal", positive=True)
        p = aspect_probabilities(z, w, *pairs, lapse=lapse)
        pm.Binomial("y", trials, p, observed=other.get("observed", wins))
    return model


def step_of(model, seed=1, tune=0):
    with model:
        step = AspectFeatureGibbs(model.value_vars, rng=np.random.default_rng(seed))
    step.setup_chain(np.random.default_rng(seed), tune, 1)
    return step


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("case", "alpha", "most", "bound"),
    [
        ("one pair", ALPHA, 6, 0.05),
        ("no lapses", ALPHA, 6, 0.05),
        ("three options", 0.6, 5, 0.06),
    ],
)
def test_the_step_has_the_exact_posterior(case, alpha, most, bound):
    model = model_of(case, alpha)
    step, point, seen = step_of(model), model.initial_point(), []
    for _ in range(6_000):
        point, _ = step.step(point)
        seen.append(counts(point["feature"]))
    assert coarse_distance(seen, exact(case, most, alpha), 20) < bound


@pytest.mark.calibration
def test_the_scan_has_the_exact_posterior_to_one_percent(full):
    draws, bound = (300_000, 0.01) if full else (4_000, 0.08)
    assert distance(list(chain(draws, seed=2)), exact(most=9 if full else 6)) < bound


def test_sums_that_are_zero_up_to_rounding_are_zero():
    """Neither option has an advantage: dropping the common aspect would be very unlikely."""
    pairs, trials = (np.array([0]), np.array([1])), np.array([1000.0])
    places, process = incidence(*pairs, 2, 2, True), np.array([1e-9, 1.0, 0.0])
    for rounding in (1e-17, -1e-17):
        z, w = np.zeros((2, MAX_FEATURES), np.int8), np.zeros((MAX_FEATURES, 1))
        z[:, 0], w[0] = 1, 1.0
        choices = kernel.Choices(*pairs, trials / 2, trials, np.array([[rounding, 0.0]]))
        rng = np.random.default_rng(0)
        for _ in range(10):
            kernel.scan_aspects(
                rng, z, w, 1, choices, places.start, places.pair, np.arange(2), LAPSE, 1.0, process
            )
        assert z[:, 0].all()


def test_the_scale_of_the_weights_is_that_of_everything():
    """A power of two changes no digit: aspects stay, weights are multiplied with it."""
    drawn = []
    for scale in (1.0, 2.0**-50):
        model = model_of("three options", scale=scale)
        step, point, rows = step_of(model, tune=20), model.initial_point(), []
        for _ in range(40):
            point, _ = step.step(point)
            rows.append((point["feature"].copy(), point["w"] / scale))
        drawn.append(rows)
    for one, two in zip(*drawn, strict=True):
        assert np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1])


def test_choices_count_in_full_from_half_of_the_warm_up_on():
    step = step_of(model_of("one pair"), tune=20)
    share = []
    for step.calls in range(25):
        share.append(step._share())
    assert share[0] == 0.25 and (np.diff(share[:11]) > 0).all() and share[10:] == [1.0] * 15


def test_a_start_of_ones_own_stays(monkeypatch):
    model = model_of("one pair")
    point = model.initial_point()
    used = []
    monkeypatch.setattr(kernel, "own_weights", lambda n, *_: used.append(1) or np.ones(n))
    step_of(model, tune=20).step(point)
    assert used == [1]
    point["feature"][:, 0], point["w"][0] = [1, 0], 0.5
    step_of(model, tune=20).step(point)
    assert used == [1]


def test_a_start_at_which_the_choices_are_impossible_is_refused():
    model = model_of("no lapses")
    point = model.initial_point()
    point["feature"][:, 0], point["w"][0] = [0, 1], 0.5
    assert model.compile_logp()(point) == -np.inf
    with pytest.raises(ValueError, match="start elsewhere, or let `lapse` be above 0"):
        step_of(model).step(point)


def test_a_weight_stays_where_rounding_leaves_no_other():
    """Of so many choices, all at random, the density of no weight is above that of the slice."""
    z, w = np.eye(2, MAX_FEATURES, dtype=np.int8), np.zeros((MAX_FEATURES, 1))
    w[:2] = 1.0
    pairs, trials = (np.array([0]), np.array([1])), np.array([1e20])
    choices = kernel.Choices(*pairs, trials / 2, trials, kernel.advantages(z, w[:, 0], *pairs))
    kernel.draw_aspect_weights(np.random.default_rng(0), z, w, 2, choices, 1.0, 1.0)
    assert (w[:2] == 1.0).all()


# --- joint distribution ----------------------------------------------------------------------


def joint(scale=1.0, n=4):
    first, second = (v.astype(np.int64) for v in np.triu_indices(n, 1))
    trials = np.full(len(first), 5)

    def choices(rng, z, w):
        return rng.binomial(trials, probability(z, w[:, 0], first, second))

    def forward(rng):
        drawn = buffet.draw_by_dishes(rng, n, ALPHA)
        used = drawn.shape[1]
        z, w = np.zeros((n, MAX_FEATURES), np.int8), np.zeros((MAX_FEATURES, 1))
        z[:, :used], w[:used, 0] = drawn, np.abs(rng.standard_normal(used))
        return z, w, used, choices(rng, z, w)

    def transition(rng, state):
        z, w, used, wins = state
        z, w = z.copy(), w.copy()
        used = sweep(rng, z, w, used, (first, second), wins, trials, scale)
        return z, w, used, choices(rng, z, w)

    def statistics(state):
        z, w, used, wins = state
        own = w[:, 0] * (z.sum(axis=0) == 1)
        return {
            "aspects": used,
            "aspects squared": used**2,
            "of the first": z[0].sum(),
            "of the last": z[-1].sum(),
            "in common": (z.sum(axis=0) ** 2).sum(),
            "weights": w.sum(),
            "weights squared": (w**2).sum(),
            "weights of single ones": own.sum(),
            "wins": wins.sum(),
            "unequal": ((wins - 2.5) ** 2).sum(),
            "wins by weights": wins[0] * (w[:, 0] @ (z[0] - z[1].astype(float))),
        }

    return forward, transition, statistics


@pytest.mark.statistical
def test_joint_draws_have_the_prior():
    assert len(assert_geweke(*joint(), draws=4_000, seed=3)) == 11


@pytest.mark.statistical
def test_joint_draws_of_a_wrong_scan_have_not():
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(*joint(scale=4.0), draws=4_000, seed=3)


# --- step and model --------------------------------------------------------------------------


def test_probabilities_are_those_of_elimination_by_aspects():
    rng = np.random.default_rng(4)
    z, w = rng.integers(0, 2, (5, 3)), rng.exponential(size=3)
    z[1] = z[0]
    first, second = np.array([0, 0, 3, 2]), np.array([1, 2, 4, 0])
    found = aspect_probabilities(z, w, first, second, lapse=LAPSE).eval()
    np.testing.assert_allclose(found, probability(z, w, first, second))
    assert found[0] == 0.5
    with pytest.raises(ValueError, match="one of each"):
        aspect_probabilities(z, w, [0, 1], [1])
    with pytest.raises(ValueError, match="`second`"):
        aspect_probabilities(z, w, [0], [-1])
    with pytest.raises(ValueError, match="pair 1 is of option 2 with itself"):
        aspect_probabilities(z, w, [0, 2], [1, 2])


def test_the_step_refuses_what_it_cannot_draw():
    with pm.Model():
        z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
        w = FeatureInteractions("w", z, 1.0, kind="diagonal", positive=True)
        pm.Bernoulli("y", aspect_probabilities(z, w, [0], [1], lapse=0.1), observed=[1])
        with pytest.raises(ValueError, match="depends on 'feature'"):
            AspectFeatureGibbs([z, w])
    with pytest.raises(ValueError, match=r"shape \(3,\).* 1 pairs"):
        step_of(model_of("one pair", observed=[1, 2, 5]))
    with pm.Model() as model:
        z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
        w = FeatureInteractions("w", z, 1.0, kind="diagonal", positive=True)
        pm.Binomial("y", [3], aspect_probabilities(z, w, [0], [2], lapse=0.1), observed=[1])
    with pytest.raises(ValueError, match="no row of aspects"):
        step_of(model)


def test_a_scale_that_depends_on_the_aspects_is_refused():
    with pm.Model() as model:
        z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
        options = {"kind": "diagonal", "positive": True}
        w = FeatureInteractions("w", z, 1.0 + z.sum().astype("float64"), **options)
        pm.Binomial("y", [3], aspect_probabilities(z, w, [0], [1], lapse=0.1), observed=[1])
    with pytest.raises(ValueError, match="scale of the weights depends on the aspects"):
        step_of(model)


def test_the_step_is_assigned_outside_of_a_context():
    model = elimination_by_aspects(simulated()[0])
    _, methods = pm.sampling.mcmc.assign_step_methods(model)
    assert AspectFeatureGibbs in methods
    assert sum(map(len, methods.values())) == len(model.free_RVs)


def test_a_chain_with_too_many_features_stops_with_the_remedy():
    table, _ = simulated(30)
    with elimination_by_aspects(table, max_features=1, alpha=6.0) as model:
        step = AspectFeatureGibbs(
            [model["feature"], model["interaction"]], rng=np.random.default_rng(5)
        )
        step.setup_chain(np.random.default_rng(5), 0, 1)
        point = model.initial_point()
        with pytest.raises(ValueError, match="max_features"):
            for _ in range(200):
                point, _ = step.step(point)


def simulated(trials=60, seed=6):
    """Eight options of two kinds, and one that is better than the others of its kind."""
    rng = np.random.default_rng(seed)
    z = np.zeros((8, 3), int)
    z[:4, 0], z[4:, 1], z[[0, 5], 2] = 1, 1, 1
    w = np.array([1.0, 2.0, 1.0])
    names = [f"option {i}" for i in range(8)]
    wins = np.zeros((8, 8), int)
    for i in range(8):
        for j in range(i + 1, 8):
            [p] = probability(z, w, [i], [j])
            wins[i, j] = rng.binomial(trials, p)
            wins[j, i] = trials - wins[i, j]
    return pd.DataFrame(wins, names, names), z


@pytest.mark.chain
def test_choices_are_predicted():
    table, z = simulated()
    with elimination_by_aspects(table, lapse=LAPSE):
        idata = pm.sample(
            200,
            tune=200,
            chains=2,
            cores=1,
            random_seed=7,
            progressbar=False,
            compute_convergence_checks=False,
        )
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, random_seed=8, progressbar=False
        )
    first, second = np.triu_indices(8, 1)
    truth = probability(z, [1.0, 2.0, 1.0], first, second)
    mean = idata["posterior"]["probability"].mean(("chain", "draw")).to_numpy()
    assert np.abs(mean - truth).mean() < 0.04
    observed = table.to_numpy()[first, second] / 60
    assert np.abs(mean - truth).mean() < np.abs(observed - truth).mean()
    assert idata["log_likelihood"]["y"].shape == (2, 200, 28)
    assert bs.feature_membership(idata).shape[0] == 8


@pytest.mark.parametrize(
    ("wins", "words"),
    [
        ([[0, 1]], "rows"),
        ([[0, 0.5], [1, 0]], "not a count"),
        ([[0, -1], [1, 0]], "not a count"),
        ([[3, 0], [0, 2]], "no option"),
        ([[0, np.nan], [3, 0]], "'x0' over 'x1' is missing, but 'x1' over 'x0' is 3"),
        ([[0]], "2|two"),
        (pd.DataFrame([[0, 1], [2, 0]], ["a", "b"], ["b", "a"]), "names"),
    ],
)
def test_choices_that_cannot_be_used_are_refused(wins, words):
    with pytest.raises(TableError, match=words):
        elimination_by_aspects(wins)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0}, "`alpha`"),
        ({"lapse": 0}, "`lapse`"),
        ({"max_features": 0}, "`max_features`"),
    ],
)
def test_options_out_of_range_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        elimination_by_aspects([[0, 3], [1, 0]], **options)
