"""Hidden causes of binary variables: distributions, scan, step and model."""

import itertools

import numba
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats
from tools.buffets import counts, distance, posterior_of
from tools.geweke import assert_geweke

import bayesstruct as bs

from bayesstruct.data import TableError
from bayesstruct.features.kernels import indian_buffet as buffet
from bayesstruct.features.kernels.cause_splits import merge_or_split
from bayesstruct.features.kernels.hidden_causes import scan_activities, scan_causes
from bayesstruct.features.priors.hidden_causes import CauseActivations, NoisyOr
from bayesstruct.features.priors.indian_buffet import IndianBuffet
from bayesstruct.features.steps.hidden_causes import HiddenCauseGibbs
from bayesstruct.models.hidden_causes import hidden_causes
from bayesstruct.simulate import hidden_causes as simulate

MAX_FEATURES = 24
STRENGTH, LEAK, BASE = 0.85, 0.08, 0.35
#: Two variables in three rows, a cell missing (2).
X = np.array([[1, 0, 2], [1, 1, 1]], np.int8)


def zero_probability(z, y, strength=STRENGTH, leak=LEAK):
    """Of each variable in each row, (n, p), from the sentence that defines a noisy or."""
    out = np.full((len(y), len(z)), 1.0 - leak)
    for t, i, k in itertools.product(range(len(y)), range(len(z)), range(z.shape[1])):
        if z[i, k] and y[t, k]:
            out[t, i] *= 1.0 - strength
    return out


def log_density(z, x=X):
    """Of the table given links, by the sum over all activities."""
    k = z.shape[1]
    states = np.array(list(itertools.product((0, 1), repeat=k)), int).reshape(2**k, k)
    prior = (BASE**states * (1 - BASE) ** (1 - states)).prod(axis=1)
    absent = (1 - LEAK) * (1 - STRENGTH) ** (states @ z.T)
    total = 0.0
    for row in x.T:
        cells = np.where(row == 0, absent, np.where(row == 1, 1 - absent, 1.0))
        total += np.log((prior * cells.prod(axis=1)).sum())
    return total


def sweep(rng, z, y, used, x, alpha, process=(1.0, 0.0), base=BASE, moves=2):
    p = len(z)
    rate = alpha * buffet.new_dish_rates(p, *process)[-1]
    order = rng.permutation(p)
    used = scan_causes(rng, z, y, used, x, order, STRENGTH, LEAK, base, rate, *process)
    scan_activities(rng, z, y, used, x, STRENGTH, LEAK, BASE)
    chances, process = (STRENGTH, LEAK, BASE), (alpha, *process)
    links, active = z[:, :used].copy(), y[:used].copy()
    for _ in range(moves):
        links, active = merge_or_split(rng, links, active, x, chances, process)
    used = links.shape[1]
    z[:, :used], y[:used] = links, active
    z[:, used:], y[used:] = 0, 0
    return used


def chain(x, alpha, draws, process=(1.0, 0.0), base=BASE, seed=1):
    """Visit classes by the scan, and activities in between."""
    rng, used = np.random.default_rng(seed), 0
    z, y = np.zeros((len(x), MAX_FEATURES), np.int8), np.zeros((MAX_FEATURES, x.shape[1]), np.int8)
    for _ in range(draws):
        used = sweep(rng, z, y, used, x, alpha, process, base)
        yield counts(z[:, :used])


# --- distributions ---------------------------------------------------------------------------


def test_density_of_rows_is_that_of_a_noisy_or():
    rng = np.random.default_rng(0)
    z, y = rng.integers(0, 2, (4, 3)), rng.integers(0, 2, (5, 3))
    x = rng.integers(-1, 2, (5, 4))
    absent = zero_probability(z, y)
    cells = np.where(x == 0, absent, np.where(x == 1, 1 - absent, 1.0))
    rv = NoisyOr.dist(y, z, STRENGTH, LEAK)
    np.testing.assert_allclose(pm.logp(rv, x).eval(), np.log(cells).sum(axis=1))
    x[2, 1] = 3
    assert np.isneginf(pm.logp(rv, x).eval()[2])
    share = pm.draw(rv, 6000, random_seed=1).mean(axis=0)
    assert (abs(share - (1 - absent)) < 4.5 * np.sqrt(absent * (1 - absent) / 6000)).all()


def test_activities_of_causes_that_nothing_has_are_zero():
    feature = np.array([[1, 0, 1], [1, 0, 0]], np.int8)
    rv = CauseActivations.dist(feature, 0.3, observations=50)
    draw = pm.draw(rv, random_seed=2)
    assert draw.shape == (50, 3)
    assert not draw[:, 1].any()
    expected = stats.bernoulli(0.3).logpmf(draw[:, [0, 2]]).sum()
    assert pm.logp(rv, draw).eval() == pytest.approx(expected)
    draw[0, 1] = 1
    assert np.isneginf(pm.logp(rv, draw).eval())


# --- the scan --------------------------------------------------------------------------------


@pytest.mark.statistical
def test_the_scan_has_the_exact_posterior_and_a_wrong_one_has_not():
    exact = posterior_of(log_density, 2, 1.5, most=11)
    assert distance(list(chain(X, 1.5, 15_000)), exact) < 0.04
    # A wrong probability of activity where the activities of new causes are summed out.
    assert distance(list(chain(X, 1.5, 15_000, base=0.15)), exact) > 0.07


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("x", "alpha", "process"),
    [
        (X, 1.5, (1.0, 0.0)),
        (np.array([[1, 0], [0, 1]], np.int8), 1.0, (2.0, 0.3)),
        (np.array([[1], [1], [0]], np.int8), 0.4, (1.0, 0.0)),
    ],
)
def test_the_scan_has_the_exact_posterior_to_one_percent(x, alpha, process, full):
    draws, bound = (300_000, 0.01) if full else (8_000, 0.06)
    most = 11 if len(x) == 2 else 6
    exact = posterior_of(lambda z: log_density(z, x), len(x), alpha, most, process)
    assert distance(list(chain(x, alpha, draws, process)), exact) < bound


def test_activities_do_not_depend_on_the_order_in_which_causes_stand():
    # Two causes alike, one of them active: what is left of it must not depend on which of them comes first.
    z, x, rng = np.ones((1, 2), np.int8), np.ones((1, 50), np.int8), np.random.default_rng(8)
    exchanged = np.zeros((2, 400))
    for first, shares in zip((0, 1), exchanged, strict=True):
        for t in range(400):
            y = np.zeros((2, 50), np.int8)
            y[first] = 1
            scan_activities(rng, z, y, 2, x, STRENGTH, LEAK, BASE)
            shares[t] = (y[1 - first] > y[first]).mean()
    error = np.sqrt(exchanged.var(axis=1).sum() / 400)
    assert abs(np.subtract(*exchanged.mean(axis=1))) < 4.5 * error


def changes(rng, tables, sweeps):
    """Means of statistics after sweeps less those before, from draws of the joint distribution, and their errors.

    Two variables in one row, and their causes in a random order before each sweep: what is left then is the order
    in which the causes stand after the scan of the links.
    """
    strength, leak, base, alpha, max_features = 0.9, 0.03, 0.35, 1.2, 24
    z, y = np.zeros((2, max_features), np.int8), np.zeros((max_features, 1), np.int8)
    x, seen = np.zeros((2, 1), np.int8), np.zeros((2, 5))
    sums, squares = np.zeros(5), np.zeros(5)
    for _ in range(tables):
        z[:], y[:] = 0, 0
        own, other = rng.poisson(alpha), rng.poisson(0.5 * alpha)
        used = own + other
        if used > 15:  # about once in a billion tables
            continue
        z[0, :own], z[1, own:used] = 1, 1
        for a in range(used):
            if a < own:
                z[1, a] = rng.random() < 0.5
            y[a, 0] = rng.random() < base
        for i in range(2):
            active = 0
            for a in range(used):
                active += z[i, a] * y[a, 0]
            x[i, 0] = rng.random() >= (1 - leak) * (1 - strength) ** active
        for s in range(2):
            for _ in range(sweeps * s):
                order = rng.permutation(np.arange(used))
                links, active_ones = z.copy(), y.copy()
                for a in range(used):
                    z[:, a], y[a] = links[:, order[a]], active_ones[order[a]]
                rows = rng.permutation(np.arange(2))
                rate = 0.5 * alpha
                used = scan_causes(rng, z, y, used, x, rows, strength, leak, base, rate, 1.0, 0.0)
                scan_activities(rng, z, y, used, x, strength, leak, base)
            both = z[0, :used] * z[1, :used]
            shared, active, alone = both.sum(), (both * y[:used, 0]).sum(), y[:used, 0].sum()
            seen[s, 0], seen[s, 1], seen[s, 2] = shared, active, alone - active
            seen[s, 3] = 1.0 if shared == 2 and active == 1 else 0.0
            seen[s, 4] = 1.0 if shared == 2 and active == 2 else 0.0
        change = seen[1] - seen[0]
        sums += change
        squares += change**2
    return sums / tables, np.sqrt(squares) / tables


@pytest.mark.calibration
def test_sweeps_leave_the_joint_distribution_as_it_is(full):
    run, tables = (numba.njit(changes), 1_200_000) if full else (changes, 2_000)
    mean, error = run(np.random.default_rng(9), tables, 4)
    assert (abs(mean) < 4 * error).all()


def joint(p=4, n=3, alpha=1.2, base=BASE):
    """Return the parts of a joint-distribution test; `base` of the scan may be a wrong one."""

    def table(rng, z, y):
        absent = (1 - LEAK) * (1 - STRENGTH) ** (z.astype(int) @ y)
        return (rng.random(absent.shape) >= absent).astype(np.int8)

    def forward(rng):
        drawn = buffet.draw_by_dishes(rng, p, alpha)
        used = drawn.shape[1]
        z, y = np.zeros((p, MAX_FEATURES), np.int8), np.zeros((MAX_FEATURES, n), np.int8)
        z[:, :used] = drawn
        y[:used] = rng.random((used, n)) < BASE
        return z, y, used, table(rng, z, y)

    def transition(rng, state):
        z, y, used, x = state
        z, y = z.copy(), y.copy()
        used = sweep(rng, z, y, used, x, alpha, base=base)
        return z, y, used, table(rng, z, y)

    def statistics(state):
        z, y, used, x = state
        own = z.sum(axis=1)
        return {
            "causes": used,
            "causes squared": used**2,
            "links of the first": own[0],
            "links of the last": own[-1],
            "active": y.sum(),
            "active, linked": (z.astype(int) @ y).sum(),
            "ones": x.sum(),
            "in common": own @ own - (z.sum(axis=0) ** 2).sum(),
            "ones by causes": used * x.sum(),
        }

    return forward, transition, statistics


@pytest.mark.statistical
def test_joint_draws_have_the_prior():
    z = assert_geweke(*joint(), draws=6_000, seed=3)
    assert len(z) == 9
    # K ~ Poisson(alpha H_p), and each variable has Poisson(alpha) links.
    rng, (forward, transition, _) = np.random.default_rng(4), joint()
    state, seen = forward(rng), []
    for _ in range(3000):
        state = transition(rng, state)
        seen.append([state[2], state[0][0].sum()])
    blocks = np.reshape(seen, (60, 50, 2)).mean(axis=1)
    mean = [1.2 * (1 + 1 / 2 + 1 / 3 + 1 / 4), 1.2]
    assert (abs(blocks.mean(axis=0) - mean) < 4 * blocks.std(axis=0) / np.sqrt(60)).all()


@pytest.mark.statistical
def test_joint_draws_of_a_wrong_scan_have_not():
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(*joint(base=0.15), draws=6_000, seed=3)


# --- step and model --------------------------------------------------------------------------


def small_model(**options):
    with pm.Model() as model:
        z = IndianBuffet(
            "feature", 1.0, observations=2, max_features=options.get("max_features", 15)
        )
        y = CauseActivations("cause", z, BASE, observations=3)
        NoisyOr("x", y, z, STRENGTH, LEAK, observed=np.where(X.T == 2, -1, X.T))
    return model


@pytest.mark.statistical
def test_the_step_keeps_causes_and_their_activities_together():
    model = small_model()
    with model:
        step = HiddenCauseGibbs(model.value_vars, rng=np.random.default_rng(5))
    step.setup_chain(np.random.default_rng(5), 0, 1)
    logp, point, seen = model.compile_logp(), model.initial_point(), []
    for _ in range(1500):
        point, [stats_] = step.step(point)
        seen.append(stats_["n_features"])
        assert not point["cause"][:, ~point["feature"].any(axis=0)].any()
    assert np.isfinite(logp(point))
    exact = posterior_of(log_density, 2, 1.0, most=10)
    mean = sum(sum(number) * weight for number, weight in exact.items())
    blocks = np.reshape(seen, (30, 50)).mean(axis=1)
    assert abs(blocks.mean() - mean) < 4 * blocks.std() / np.sqrt(30)


def test_the_step_refuses_what_it_cannot_draw():
    with pm.Model() as model:
        z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
        y = CauseActivations("cause", z, BASE, observations=3)
        pm.Bernoulli("x", 0.1 + 0.01 * (y @ z.T), observed=np.zeros((3, 2)))
        with pytest.raises(ValueError, match="'x' depends on 'feature'"):
            HiddenCauseGibbs(model.value_vars)
    with small_model() as model:
        pm.Potential("more", -model["cause"].sum().astype("float64"))
        with pytest.raises(ValueError, match="not all that depends on 'cause'"):
            HiddenCauseGibbs(model.value_vars)


def test_the_step_refuses_probabilities_that_are_not_one_number_each_or_depend_on_links():
    table = np.array([[1, 0], [1, 1], [0, 1]])
    for base, leak, words in [
        (lambda _: BASE, np.array([0.1, 0.2, 0.3]), "'x' are not one number each"),
        (lambda z: pm.math.sigmoid(z.sum() - 3.0), LEAK, "depend on 'feature'"),
    ]:
        with pm.Model() as model:
            z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
            y = CauseActivations("cause", z, base(z), observations=3)
            NoisyOr("x", y, z, STRENGTH, leak, observed=table)
            with pytest.raises(ValueError, match=words):
                HiddenCauseGibbs(model.value_vars)


def test_the_leak_has_its_value_after_half_of_the_warm_up():
    with small_model() as model:
        step = HiddenCauseGibbs(model.value_vars, rng=np.random.default_rng(10))
    step.setup_chain(np.random.default_rng(10), 8, 4)
    point, seen = model.initial_point(), []
    right = step._leak

    def told(value):
        seen.append(right(value))
        return seen[-1]

    step._leak = told
    for _ in range(7):
        point, _ = step.step(point)
    expected = LEAK + (0.4 - LEAK) * np.array([1, 0.75, 0.5, 0.25, 0, 0, 0])
    np.testing.assert_allclose(seen, expected)


def test_the_step_is_assigned_outside_of_a_context():
    model = hidden_causes(simulate(60, 8, random_seed=1).data)
    _, methods = pm.sampling.mcmc.assign_step_methods(model)
    assert HiddenCauseGibbs in methods
    assert sum(map(len, methods.values())) == len(model.free_RVs)


def test_a_chain_without_maximum_stops_with_the_remedy():
    made = simulate(60, 8, random_seed=1)
    with hidden_causes(made.data, max_features=1, leak=0.01) as model:
        step = HiddenCauseGibbs([model["feature"], model["cause"]], rng=np.random.default_rng(6))
        step.setup_chain(np.random.default_rng(6), 0, 1)
        point = model.initial_point()
        with pytest.raises(ValueError, match="max_features"):
            for _ in range(50):
                point, _ = step.step(point)


@pytest.mark.chain
def test_causes_are_found_again():
    made = simulate(150, 10, random_seed=6)
    data = made.data.astype(object).where(made.data == 0, "yes").where(made.data == 1, "no")
    data.iloc[3, 2] = None
    known = {"alpha": 1.0, "strength": 0.9, "leak": 0.02, "base_rate": 0.2}
    with hidden_causes(data, max_features=12, **known):
        idata = pm.sample(
            80,
            tune=120,
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
    table = bs.feature_table(idata)
    assert (table["probability"].head(3) > 0.9).all()
    links = bs.feature_membership(idata).to_numpy()[:, :3] > 0.5
    truth = made.feature.to_numpy().astype(bool)
    wrong = min(
        (links[:, list(order)] != truth).sum() for order in itertools.permutations(range(3))
    )
    assert wrong <= 1
    assert idata["log_likelihood"]["x"].shape == (2, 80, 150)
    replicated = idata["posterior_predictive"]["x"].to_numpy()
    assert set(np.unique(replicated)) == {0, 1}
    assert abs(replicated.mean(axis=(0, 1, 2)) - made.data.mean()).max() < 0.06


@pytest.mark.chain
def test_probabilities_are_drawn_too():
    with hidden_causes(simulate(40, 5, random_seed=6).data, max_features=12):
        idata = pm.sample(
            10,
            tune=10,
            chains=1,
            random_seed=7,
            progressbar=False,
            compute_convergence_checks=False,
        )
    for name in ("strength", "leak", "base_rate"):
        values = idata["posterior"][name].to_numpy()
        assert ((values > 0) & (values < 1)).all()
        assert values.std() > 0


def test_the_model_refuses_bad_input():
    made = simulate(40, 5, random_seed=3).data
    with pytest.raises(TableError, match="'x1': more than two values"):
        hidden_causes(made.assign(x1=np.arange(40) % 3))
    with pytest.raises(TableError, match="'x1'"):
        hidden_causes(made.assign(x1=1))
    for options, words in [
        ({"alpha": 0}, "`alpha`"),
        ({"alpha": "1"}, "`alpha`"),
        ({"strength": 1.0}, "`strength`"),
        ({"leak": -0.1}, "`leak`"),
        ({"base_rate": True}, "`base_rate`"),
        ({"max_features": 2.5}, "`max_features`"),
        ({"discount": 1.0}, "`discount`"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            hidden_causes(made, **options)


def test_simulation():
    made = simulate(3000, 6, random_seed=4)
    absent = zero_probability(made.feature.to_numpy(), made.cause.to_numpy(), 0.9, 0.02)
    error = made.data.to_numpy() - (1 - absent)
    assert (abs(error.mean(axis=0)) < 0.03).all()
    assert made.feature.any().all()
    pd.testing.assert_frame_equal(made.data, simulate(3000, 6, random_seed=4).data)
    with pytest.raises(ValueError, match="leak"):
        simulate(10, leak=2)
    with pytest.raises(ValueError, match="n_causes"):
        simulate(10, n_causes=-1)
