"""The tools must pass what is right and, above all, fail what is wrong."""

import numpy as np
import pymc as pm
import pytest

from tools.calibration import assert_calibrated, model_runner, rank
from tools.enumeration import assert_matches_enumeration, binary_states
from tools.geweke import assert_geweke
from tools.integration import WeightedDraws, moments, spike_slab_posterior
from tools.modes import assert_is_mode
from tools.priors import spike_slab_prior

PROBABILITIES = np.array([0.45, 0.3, 0.15, 0.08, 0.015, 0.005])


def metropolis(target, draws, rng):
    """Random walk on a ring of states."""
    state, out = 0, np.empty(draws, int)
    for t in range(draws):
        proposal = (state + rng.choice([-1, 1])) % len(target)
        if rng.random() * target[state] < target[proposal]:
            state = proposal
        out[t] = state
    return out


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(3))
def test_enumeration_passes_a_right_chain(seed):
    draws = metropolis(PROBABILITIES, 20_000, np.random.default_rng(seed))
    report = assert_matches_enumeration(draws, PROBABILITIES)
    assert report["z"] < 4
    assert report["ess"] < 15_000  # the autocorrelation was noticed


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(3))
def test_enumeration_fails_a_wrong_chain(seed):
    wrong = PROBABILITIES**1.3
    draws = metropolis(wrong / wrong.sum(), 20_000, np.random.default_rng(seed))
    with pytest.raises(AssertionError, match="worst z"):
        assert_matches_enumeration(draws, PROBABILITIES)


@pytest.mark.statistical
def test_enumeration_sees_many_small_differences():
    rng = np.random.default_rng(0)
    target = np.full(64, 1 / 64)
    tilted = target * (1 + 0.08 * np.where(np.arange(64) % 2, 1, -1))
    draws = rng.choice(64, size=40_000, p=tilted)
    with pytest.raises(AssertionError, match="joint p-value"):
        assert_matches_enumeration(draws, target, z=4)
    # No single state is off by what would be needed to say so of it alone.
    z = (np.bincount(draws, minlength=64) / 40_000 - target) / np.sqrt(target / 40_000)
    assert np.abs(z).max() < 5


@pytest.mark.statistical
def test_enumeration_takes_vectors_and_chains():
    states = binary_states(3)
    p = np.arange(1, 9) / 36
    draws = states[np.random.default_rng(0).choice(8, size=(4, 2_000), p=p)]
    assert_matches_enumeration(draws, p, states=states)
    with pytest.raises(AssertionError, match="111"):
        assert_matches_enumeration(draws, p[::-1], states=states)


@pytest.mark.statistical
def test_enumeration_false_alarms_are_rare():
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(200):
        try:
            assert_matches_enumeration(
                rng.choice(6, size=2_000, p=PROBABILITIES), PROBABILITIES, z=3
            )
        except AssertionError:
            alarms += 1
    assert alarms <= 5  # nominally 0.0054 * 200 = 1.1


def normal_model(rows=5):
    """mu ~ N(0, 1), precision ~ Gamma(3, 1), rows ~ N(mu, 1 / precision)."""

    def data(rng, mu, precision):
        return mu + rng.normal(size=rows) / np.sqrt(precision)

    def forward(rng):
        mu, precision = rng.normal(), rng.gamma(3.0)
        return mu, precision, data(rng, mu, precision)

    def transition(rng, state, shape=rows / 2):
        _, precision, x = state
        total = 1 + rows * precision
        mu = precision * x.sum() / total + rng.normal() / np.sqrt(total)
        precision = rng.gamma(3.0 + shape) / (1.0 + 0.5 * np.square(x - mu).sum())
        return mu, precision, data(rng, mu, precision)

    def statistics(state):
        mu, precision, x = state
        return {"mu": mu, "mu2": mu**2, "precision": precision, "mu x": mu * x[0], "x2": x @ x}

    return forward, transition, statistics


@pytest.mark.statistical
def test_geweke_passes_a_right_kernel():
    assert_geweke(*normal_model(), draws=10_000, seed=1)


@pytest.mark.statistical
def test_geweke_fails_a_wrong_kernel():
    forward, transition, statistics = normal_model()

    def wrong(rng, state):
        return transition(rng, state, shape=2.0)  # instead of 2.5

    with pytest.raises(AssertionError, match="precision"):
        assert_geweke(forward, wrong, statistics, draws=10_000, seed=1)


def conjugate(shrink=1.0, shift=0.0):
    """Normal mean with known variance and the sign of the mean, a discrete quantity."""

    def simulate(rng):
        mu = rng.normal(size=2)
        return {"mu": mu, "positive": (mu > 0).astype(int)}, mu + rng.normal(size=(3, 2))

    def fit(x, rng):
        mean, sd = x.sum(0) / 4 + shift, 0.5 * shrink
        mu = mean + sd * rng.normal(size=(100, 2))
        return {"mu": mu, "positive": (mu > 0).astype(int)}

    return simulate, fit


@pytest.mark.statistical
def test_calibration_passes_the_posterior():
    assert_calibrated(*conjugate(), simulations=400)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [{"shrink": 0.7}, {"shrink": 1.4}, {"shift": 0.2}])
def test_calibration_fails_a_wrong_posterior(wrong):
    with pytest.raises(AssertionError, match="not uniform"):
        assert_calibrated(*conjugate(**wrong), simulations=400)


def test_ranks_are_uniform_for_any_number_of_draws_and_ties():
    rng = np.random.default_rng(0)
    values = [
        rank(rng.integers(3), rng.integers(3, size=rng.integers(5, 50)), rng) for _ in range(4000)
    ]
    counts = np.histogram(values, 10, (0, 1))[0]
    # Expected 400 each with standard deviation 19.
    assert np.abs(counts - 400).max() < 80


@pytest.mark.statistical
def test_runner_feeds_new_data_to_a_compiled_model():
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(4))
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Deterministic("twice", 2 * mu)
        pm.Normal("row", mu, 1.0, observed=x)
    fit = model_runner(model, "x", tune=200, draws=400)
    rng = np.random.default_rng(0)
    for level in (-2.0, 3.0):
        draws = fit(np.full(4, level), rng)
        # Posterior mean 4/5 of the level; se of 400 draws of NUTS about 0.45 / sqrt(150).
        assert abs(draws["mu"].mean() - 0.8 * level) < 0.15
        np.testing.assert_allclose(draws["twice"], 2 * draws["mu"])


def mode_model():
    with pm.Model() as model:
        pm.Normal("location", 1.0, 2.0, shape=3)
        pm.Gamma("spread", 3.0, 2.0)
        pm.Laplace("sparse", 0.0, 1.0)
    return model, {"location": np.ones(3), "spread": np.array(1.0), "sparse": np.array(0.0)}


def test_mode_passes_the_mode_in_natural_units():
    model, mode = mode_model()
    report = assert_is_mode(model, mode, ["location", "spread", "sparse"])
    assert report["residual"] < 1e-4


@pytest.mark.parametrize(
    "wrong",
    [{"spread": np.array(1.5)}, {"sparse": np.array(1e-3)}, {"location": np.r_[1, 1, 1.01]}],
)
def test_mode_fails_another_point(wrong):
    # 1.5 is the mean of the gamma law and the mode on the logarithmic scale.
    model, mode = mode_model()
    with pytest.raises(AssertionError, match=r"rises|ascent"):
        assert_is_mode(model, mode | wrong, ["location", "spread", "sparse"])


@pytest.mark.statistical
@pytest.mark.parametrize("p", [2, 3])
def test_importance_sampling_is_the_weighted_prior(p):
    # An independent route: prior draws by rejection, weighted with the likelihood of three rows.
    rows = np.array([[0.5, 1.0, -0.3], [-1.0, -0.4, 0.8], [0.2, 0.1, 1.5]])[:, :p]
    scales = {"spike": 0.25, "slab": 1.0, "diagonal_rate": 0.5}
    rng = np.random.default_rng(0)
    K, edge, _ = spike_slab_prior(rng, 300_000, p, probability=0.4, **scales)
    log_likelihood = 1.5 * np.linalg.slogdet(K)[1] - 0.5 * ((rows @ K) * rows).sum((1, 2))
    prior = WeightedDraws(K, log_likelihood)
    states, exact, errors, weighted = spike_slab_posterior(
        rows, probability=0.4, **scales, draws=50_000, seed=1
    )
    configurations = (edge[:, None] == states).all(axis=2).astype(float)
    mean, error = prior.mean(configurations)
    assert (np.abs(mean - exact) < 4.5 * np.hypot(error, errors)).all()
    (mean, error), (other, other_error) = (w.mean(moments(w.precision)) for w in (prior, weighted))
    assert (np.abs(mean - other) < 4.5 * np.hypot(error, other_error)).all()
