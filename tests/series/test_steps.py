"""Series that share behaviours: forward algorithm, scan, distributions, step and model."""

import functools
import itertools
import math

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import special, stats
from tools.buffets import classes, counts, distance
from tools.geweke import assert_geweke

import bayesstruct as bs

from bayesstruct.data import TableError
from bayesstruct.features.kernels import indian_buffet as buffet
from bayesstruct.features.priors.indian_buffet import FeatureLoadings, IndianBuffet
from bayesstruct.models.markov_transitions import markov_transitions
from bayesstruct.series.data import SeriesTable
from bayesstruct.series.kernels import (
    draw_given_states,
    fit_windows,
    forward_gains,
    scan_behaviours,
    smooth_series,
)
from bayesstruct.series.priors import BehaviourScales, BehaviourTransitions, SwitchingSeries
from bayesstruct.series.steps import SwitchingSeriesMCMC
from bayesstruct.simulate import markov_transitions as simulate

ROOM = 16
#: gamma, kappa; tau, shape and rate of the variances.
LAW = (0.8, 1.5, 1.2, 2.0, 0.6)
#: Two series, of three rows and two, one of them missing.
X = np.array([[1.3], [-0.9], [-1.2], [1.1], [np.nan]])
STARTS = np.array([0, 3, 5])


#: Concentration and discount, where they are not 1 and 0.
PROCESS = (2.0, 0.3)


def full_law(n, alpha, law=LAW, process=(1.0, 0.0)):
    return np.array([alpha * buffet.new_dish_rates(n, *process)[-1], *process, *law])


def paths_of(n, own):
    return itertools.product(own, repeat=n)


def path_density(path, p, own):
    """Probability of a path from a uniform start."""
    return math.prod(p[a, b] for a, b in itertools.pairwise(path)) / len(own)


# --- likelihood ------------------------------------------------------------------------------


def test_the_forward_algorithm_is_the_sum_over_all_paths():
    rng = np.random.default_rng(0)
    z = np.array([[1, 1, 0, 1], [0, 1, 0, 0]], np.int8)
    weights, mean = rng.gamma(1.0, size=(2, 4, 4)), rng.normal(size=(4, 2))
    deviation, x = rng.uniform(0.5, 2.0, (4, 2)), rng.normal(size=(9, 2))
    x[2, 1] = x[4] = np.nan
    starts, probability = np.array([0, 5, 9]), np.zeros((9, 4))
    gains = forward_gains(z, weights, mean, deviation, x, starts)
    smooth_series(z, weights, mean, deviation, x, starts, probability)
    for i in range(2):
        own, rows = np.flatnonzero(z[i]), x[starts[i] : starts[i + 1]]
        p = weights[i] * z[i]
        p /= p.sum(axis=1, keepdims=True)
        cells = stats.norm.pdf(rows[:, None], mean, deviation)
        emission = np.where(np.isnan(cells), 1.0, cells).prod(axis=2)
        total, smoothed = 0.0, np.zeros((len(rows), 4))
        for path in paths_of(len(rows), own):
            density = path_density(path, p, own) * emission[range(len(rows)), path].prod()
            total += density
            smoothed[range(len(rows)), path] += density
        mine = slice(starts[i], starts[i + 1])
        assert gains[mine].sum() == pytest.approx(np.log(total))
        np.testing.assert_allclose(probability[mine], smoothed / total, atol=1e-12)


# --- the scan --------------------------------------------------------------------------------


def log_marginal(cells, law=LAW):
    """Log density of cells of one behaviour, the mean summed out, the variance by quadrature."""
    cells = np.array([c for c in cells if not np.isnan(c)])
    n, (_, _, tau, shape, rate) = len(cells), law
    u = np.linspace(-9, 9, 4001)
    variance = np.exp(u)
    wide = variance + n * tau**2
    square = (cells @ cells - tau**2 * cells.sum() ** 2 / wide) / variance
    logs = -0.5 * (n * np.log(2 * np.pi) + (n - 1) * u + np.log(wide) + square) if n else 0.0
    prior = stats.invgamma(shape, scale=rate).logpdf(variance) + u
    return special.logsumexp(logs + prior) + math.log(u[1] - u[0])


def exact_posterior(x, starts, alpha, most, law=LAW):
    """Posterior of the classes by all paths of all series, everything else summed out."""
    marginal = functools.cache(lambda rows: log_marginal(x[list(rows), 0], law))
    gamma, kappa = law[:2]

    def log_path(path, own):
        """Log probability of a path, transitions summed out."""
        out = -math.log(len(own))
        seen = dict.fromkeys(itertools.product(own, own), 0)
        for step in itertools.pairwise(path):
            seen[step] += 1
        for a in own:
            number = sum(seen[a, b] for b in own)
            total = len(own) * gamma + kappa
            out += special.gammaln(total) - special.gammaln(total + number)
            for b in own:
                prior = gamma + kappa * (a == b)
                out += special.gammaln(prior + seen[a, b]) - special.gammaln(prior)
        return out

    def log_density(z):
        options = []
        for i, (a, b) in enumerate(itertools.pairwise(starts)):
            own = np.flatnonzero(z[i]).tolist()
            options.append([(p, log_path(p, own)) for p in paths_of(b - a, own)])
        logs = []
        for chosen in itertools.product(*options):
            states = np.concatenate([p for p, _ in chosen])
            logs.append(
                sum(log for _, log in chosen)
                + sum(marginal(tuple(np.flatnonzero(states == k))) for k in set(states.tolist()))
            )
        return special.logsumexp(logs)

    logs = {
        key: buffet.log_buffet(z, alpha) + log_density(z)
        for key, z in classes(len(starts) - 1, most)
        if z.any(axis=1).all()
    }
    total = special.logsumexp(list(logs.values()))
    return {key: math.exp(v - total) for key, v in logs.items()}


def begin(n, d, rng, law=LAW):
    """One behaviour that all series have."""
    z, weights = np.zeros((n, ROOM), np.int8), np.ones((n, ROOM, ROOM))
    z[:, 0] = 1
    theta = np.zeros((2, ROOM, d))
    theta[1] = 1.0
    return z, weights, theta


def sweep(rng, state, x, starts, law, scan_law=None):
    z, weights, theta = state
    order, windows = rng.permutation(len(z)), fit_windows(x, starts)
    scan_law = law if scan_law is None else scan_law
    assert scan_behaviours(rng, z, weights, theta, scan_law, x, starts, windows, order)
    draw_given_states(rng, z, weights, theta, law, x, starts, np.zeros(len(x), np.int64))


def chain(x, starts, alpha, draws, seed=1, law=LAW, scan_law=None):
    rng, n = np.random.default_rng(seed), len(starts) - 1
    state = begin(n, x.shape[1], rng)
    scan_law = None if scan_law is None else full_law(n, alpha, scan_law)
    for _ in range(draws):
        sweep(rng, state, x, starts, full_law(n, alpha, law), scan_law)
        yield counts(state[0])


SMALL, SMALL_STARTS = np.array([[1.6], [-0.9], [-1.4], [1.5]]), np.array([0, 2, 4])
#: A wrong law of the means of new behaviours, too wide.
WRONG = (0.8, 1.5, 6.0, 2.0, 0.6)


def test_the_scan_has_the_exact_posterior_and_a_wrong_one_has_not():
    exact = exact_posterior(SMALL, SMALL_STARTS, 0.5, 4)
    assert distance(list(chain(SMALL, SMALL_STARTS, 0.5, 6_000)), exact) < 0.05
    # New means from one law, all others from another.
    assert distance(list(chain(SMALL, SMALL_STARTS, 0.5, 6_000, scan_law=WRONG)), exact) > 0.1


def test_transitions_that_are_nearly_certain_keep_the_exact_posterior():
    # Half of the gamma variables of this shape are below the least number of the machine.
    law, x, starts = (0.001, 0.0, *LAW[2:]), SMALL[[0, 1, 0, 3]], np.array([0, 3, 4])
    exact = exact_posterior(x, starts, 0.5, 4, law)
    assert distance(list(chain(x, starts, 0.5, 6_000, law=law)), exact) < 0.05


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("x", "starts", "alpha", "most"), [(SMALL, SMALL_STARTS, 0.5, 6), (X, STARTS, 0.3, 5)]
)
def test_the_scan_has_the_exact_posterior_to_one_percent(x, starts, alpha, most, full):
    if not full:
        x, starts, most = X[1:], np.array([0, 2, 4]), 4
    exact = exact_posterior(x, starts, alpha, most)
    draws, bound = (300_000, 0.01) if full else (4_000, 0.06)
    assert distance(list(chain(x, starts, alpha, draws)), exact) < bound


def joint(alpha=1.0, lengths=(4, 3, 5), d=2, **wrong):
    """Return the parts of a joint-distribution test; the law of the scan may be a wrong one."""
    n, starts = len(lengths), np.concatenate([[0], np.cumsum(lengths)])
    scan_law = full_law(n, alpha, **{"process": PROCESS, **wrong})
    law = full_law(n, alpha, process=PROCESS)
    gamma, kappa, tau, shape, rate = LAW

    def table(rng, z, weights, theta):
        x = np.empty((starts[-1], d))
        for i, (a, b) in enumerate(itertools.pairwise(starts)):
            own = np.flatnonzero(z[i])
            p = weights[i][np.ix_(own, own)]
            p = p / p.sum(axis=1, keepdims=True)
            s = 0
            for t in range(a, b):
                s = rng.integers(len(own)) if t == a else rng.choice(len(own), p=p[s])
                x[t] = theta[0, own[s]] + theta[1, own[s]] * rng.standard_normal(d)
        x[1, 0] = np.nan
        return x

    def forward(rng):
        z = np.zeros((n, ROOM), np.int8)
        while not z.any(axis=1).all():
            drawn = buffet.draw_by_dishes(rng, n, alpha, *PROCESS)
            z[:] = 0
            z[:, : drawn.shape[1]] = drawn
        weights = rng.standard_gamma(gamma + kappa * np.eye(ROOM), size=(n, ROOM, ROOM))
        variance = rate / rng.standard_gamma(shape, (ROOM, d))
        theta = np.stack([tau * rng.standard_normal((ROOM, d)), np.sqrt(variance)])
        return (z, weights, theta), table(rng, z, weights, theta)

    def transition(rng, state):
        parts, x = state
        parts = tuple(v.copy() for v in parts)
        sweep(rng, parts, x, starts, law, scan_law)
        return parts, table(rng, *parts)

    def statistics(state):
        (z, weights, theta), x = state
        used, own = z.any(axis=0), z[:, :, None] * z[:, None, :]
        stay = np.einsum("ikk->ik", weights) * z / np.maximum((weights * own).sum(axis=2), 1e-300)
        size = z.sum(axis=0, dtype=int)
        return {
            "behaviours": used.sum(),
            "behaviours squared": used.sum() ** 2,
            "shared": (size * (size - 1)).sum(),
            "of the first": z[0].sum(),
            "of the last": z[-1].sum(),
            "means": theta[0, used].mean(),
            "means squared": (theta[0, used] ** 2).mean(),
            "log deviations": np.log(theta[1, used]).mean(),
            "stays": stay.sum() / z.sum(),
            "stays squared": (stay**2).sum() / z.sum(),
            "cells": np.tanh(np.nan_to_num(x)).mean(),
            "cells squared": np.tanh(np.nan_to_num(x) ** 2).mean(),
            "changes": np.tanh(abs(np.diff(x[:4, 1]))).mean(),
        }

    return forward, transition, statistics


def test_joint_draws_have_the_prior():
    assert len(assert_geweke(*joint(), draws=4_000, seed=3)) == 13


@pytest.mark.parametrize("wrong", [{"law": WRONG}, {"process": (1.0, 0.0)}])
def test_joint_draws_of_a_wrong_scan_have_not(wrong):
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(*joint(**wrong), draws=2_000, seed=3)


# --- distributions ---------------------------------------------------------------------------

FEATURE = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0]], np.int8)


def test_transitions_are_dirichlet_among_the_own_behaviours():
    rv = BehaviourTransitions.dist(FEATURE, 0.7, 2.0)
    draw = pm.draw(rv, random_seed=1)
    own = FEATURE[:, :, None] * FEATURE[:, None, :]
    assert not draw[own == 0].any()
    np.testing.assert_allclose(draw.sum(axis=2), FEATURE)
    expected = sum(
        stats.dirichlet([2.7, 0.7] if k == ks[0] else [0.7, 2.7]).logpdf(draw[i, k, ks])
        for i, ks in ((0, [0, 1]), (1, [0, 2]))
        for k in ks
    )
    assert pm.logp(rv, draw).eval() == pytest.approx(expected)
    stays = pm.draw(rv, 3000, random_seed=2)[:, 0, 0, 0]
    # Beta(2.7, 0.7).
    law = stats.beta(2.7, 0.7)
    assert abs(stays.mean() - law.mean()) < 4 * law.std() / np.sqrt(3000)
    for place, value in (((0, 0, 0), 0.9), ((2, 1, 1), 1.0)):
        wrong = draw.copy()
        wrong[place] = value
        assert np.isneginf(pm.logp(rv, wrong).eval())


def test_rows_of_a_small_concentration_are_certain_and_not_zero():
    rv = BehaviourTransitions.dist(FEATURE, 0.001, 0.0)
    draws = pm.draw(rv, 400, random_seed=3)
    np.testing.assert_allclose(draws.sum(axis=3), np.broadcast_to(FEATURE, (400, 3, 4)))
    # Beta(0.001, 0.001): each of two is certain in half of the draws.
    first = draws[:, 0, 0, 0]
    assert ((first < 1e-9) | (first > 1 - 1e-9)).mean() > 0.9
    assert abs(first.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(400)
    assert np.isfinite(pm.logp(rv, draws[0]).eval())


def test_scales_are_roots_of_inverse_gamma_variables():
    rv = BehaviourScales.dist(FEATURE, 3.0, 0.5, variables=2)
    draw = pm.draw(rv, random_seed=1)
    assert (draw[:3] > 0).all()
    assert not draw[3].any()
    law = stats.invgamma(3.0, scale=0.5)
    expected = (law.logpdf(draw[:3] ** 2) + np.log(2 * draw[:3])).sum()
    assert pm.logp(rv, draw).eval() == pytest.approx(expected)
    assert stats.kstest(pm.draw(rv, 1000, random_seed=3)[:, 1, 0] ** 2, law.cdf).pvalue > 1e-3
    draw[3, 0] = 1.0
    assert np.isneginf(pm.logp(rv, draw).eval())


def test_the_density_of_series_is_the_forward_algorithm():
    rng = np.random.default_rng(5)
    transition = pm.draw(BehaviourTransitions.dist(FEATURE, 1.0, 1.0), random_seed=4)
    mean, scale, x = rng.normal(size=(4, 2)), rng.uniform(1, 2, (4, 2)), rng.normal(size=(9, 2))
    seen = np.ones((9, 2))
    seen[4, 1] = 0
    rv = SwitchingSeries.dist(FEATURE, transition, mean, scale, lengths=[4, 3, 2], seen=seen)
    cells = np.where(seen > 0, x, np.nan)
    expected = forward_gains(FEATURE, transition, mean, scale, cells, np.array([0, 4, 7, 9]))
    np.testing.assert_allclose(pm.logp(rv, x).eval(), expected)
    empty = FEATURE * [[1], [0], [1]]
    rv = SwitchingSeries.dist(empty, transition, mean, scale, lengths=[4, 3, 2], seen=seen)
    assert np.isneginf(pm.logp(rv, x).eval()[4:7]).all()
    assert np.isnan(pm.draw(rv, random_seed=1)[4:7]).all()
    with pytest.raises(ValueError, match="`lengths`"):
        SwitchingSeries.dist(FEATURE, transition, mean, scale, lengths=[4, 0], seen=seen)


def test_draws_of_series_have_the_moments_of_the_chain():
    transition = np.array([[[0.9, 0.1], [0.4, 0.6]]])
    mean, scale = np.array([[3.0], [-1.0]]), np.array([[1.0], [0.5]])
    rv = SwitchingSeries.dist(
        np.ones((1, 2), np.int8), transition, mean, scale, lengths=[2], seen=np.ones((2, 1))
    )
    x = pm.draw(rv, 4000, random_seed=6)[:, :, 0]
    chance = np.array([[0.5, 0.5], [0.65, 0.35]])
    first, second = chance @ [3, -1], chance @ [9 + 1, 1 + 0.25]
    error = np.sqrt((second - first**2) / 4000)
    assert (abs(x.mean(axis=0) - first) < 4.5 * error).all()
    product = 0.5 * (0.9 * 9 - 0.1 * 3) + 0.5 * (-0.4 * 3 + 0.6)
    values = x.prod(axis=1)
    assert abs(values.mean() - product) < 4.5 * values.std() / np.sqrt(4000)


# --- step and model --------------------------------------------------------------------------


def small_model(room=12, alpha=0.5, law=LAW, x=SMALL, lengths=(2, 2), change=None):
    with pm.Model() as model:
        z = IndianBuffet("feature", alpha, observations=len(lengths), max_features=room)
        more = z.sum().astype("float64")
        gamma, kappa, tau, shape, rate = (v + more if k == change else v for k, v in enumerate(law))
        transition = BehaviourTransitions("transition", z, gamma, kappa)
        mean = FeatureLoadings("mean", z, tau, variables=1)
        scale = BehaviourScales("scale", z, shape, rate, variables=1)
        SwitchingSeries("x", z, transition, mean, scale, lengths=lengths, observed=x,
                        seen=np.ones(x.shape))  # fmt: skip
    return model


def test_the_step_has_the_exact_posterior():
    model = small_model()
    with model:
        step = SwitchingSeriesMCMC(model.free_RVs, rng=np.random.default_rng(5))
    step.setup_chain(np.random.default_rng(5), 0, 1)
    logp, point, seen = model.compile_logp(), model.initial_point(), []
    for _ in range(6000):
        point, _ = step.step(point)
        seen.append(counts(point["feature"]))
    assert np.isfinite(logp(point))
    assert distance(seen, exact_posterior(SMALL, SMALL_STARTS, 0.5, 4)) < 0.06


def test_behaviours_of_the_same_series_come_in_random_order():
    model = small_model(x=np.full((8, 1), 2.0), lengths=[8], alpha=2.0)
    with model:
        step = SwitchingSeriesMCMC(model.free_RVs, rng=np.random.default_rng(7))
    point, first = model.initial_point(), []
    for _ in range(600):
        point, [known] = step.step(point)
        if known["n_features"] == 2:
            near = abs(point["mean"][:2, 0] - 2.0)
            first.append(near[0] < near[1])
    assert len(first) > 100
    # The old one has all rows, and is the nearest to them: by the density as often first as second.
    assert abs(np.mean(first) - 0.5) < 4.5 * 0.5 / np.sqrt(len(first))


@pytest.mark.parametrize("change", range(5))
def test_the_step_refuses_hyperparameters_that_depend_on_behaviours(change):
    with small_model(change=change) as model:
        with pytest.raises(ValueError, match="hyperparameters depend on 'feature'"):
            SwitchingSeriesMCMC(model.free_RVs)


def test_the_step_refuses_what_it_cannot_draw():
    with small_model() as model:
        pm.Potential("more", -model["mean"].sum())
        with pytest.raises(ValueError, match="not all that depends on 'mean'"):
            SwitchingSeriesMCMC(model.free_RVs)
    with small_model() as model, pytest.raises(ValueError, match="drawn by one step"):
        SwitchingSeriesMCMC([model["feature"], model["mean"]])
    with pm.Model() as model:
        z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
        BehaviourTransitions("transition", z, 1.0, 1.0)
        with pytest.raises(ValueError, match="'transition' depends on 'feature'"):
            SwitchingSeriesMCMC(model.free_RVs)


def test_a_chain_without_room_stops_with_the_remedy():
    made = simulate(60, 3, random_seed=1)
    with markov_transitions(made.data, series="series", max_features=1, alpha=1.0) as model:
        step = SwitchingSeriesMCMC(model.free_RVs, rng=np.random.default_rng(6))
        step.setup_chain(np.random.default_rng(6), 0, 1)
        point = model.initial_point()
        with pytest.raises(ValueError, match="max_features"):
            for _ in range(50):
                point, _ = step.step(point)


@pytest.mark.compiled
def test_behaviours_are_found_again():
    made = simulate(100, 4, random_seed=3)
    data = made.data.copy()
    data.loc[5, "x0"] = np.nan
    data.loc[[20, 21], ["x0", "x1"]] = np.nan
    with markov_transitions(data, series="series", alpha=1.0):
        idata = pm.sample(
            150, tune=100, chains=2, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, random_seed=8, progressbar=False
        )
    assert bs.feature_count_probabilities(idata).idxmax() == 3
    membership = bs.feature_membership(idata)
    assert list(membership.index) == list("abcd")
    truth, found = made.feature.to_numpy() > 0, membership.to_numpy()[:, :3] > 0.5
    assert any((found[:, list(o)] == truth).all() for o in itertools.permutations(range(3)))
    assert idata["log_likelihood"]["x"].shape == (2, 150, 400)
    table = bs.state_probabilities(idata, draws=60)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert table["other"].mean() < 0.05
    assert table.loc["b"].shape == (100, 4)
    # The best matching of names; the means are about three standard deviations of the noise apart.
    states = pd.crosstab(table.idxmax(axis=1).to_numpy(), made.state.to_numpy()).to_numpy()
    assert sum(sorted(states.max(axis=1))[-3:]) > 0.9 * 400
    chain_, draw = table.attrs["reference"]
    means = idata["posterior"]["emission_mean"].values[chain_, draw, table.attrs["latent"]]
    here = table.idxmax(axis=1).to_numpy() == 1
    x = idata["observed_data"]["x"].values[here]
    assert abs(x.mean(axis=0) - means[0]).max() < 0.25
    with pytest.raises(ValueError, match="affinity"):
        bs.state_probabilities(idata, affinity=0.0)
    del idata["constant_data"]["rows"]
    with pytest.raises(ValueError, match="no `rows`"):
        bs.state_probabilities(idata)
    replicated = idata["posterior_predictive"]["x"].to_numpy()
    assert abs(replicated.mean(axis=(0, 1, 2))).max() < 0.3
    assert abs(replicated.std(axis=(0, 1, 2)) - 1.0).max() < 0.2


def test_the_ways_to_give_series_are_the_same():
    made = simulate(20, 3, random_seed=2)
    tables = {name: part.drop(columns="series") for name, part in made.data.groupby("series")}
    a = SeriesTable.read(made.data.sample(frac=1, random_state=0).sort_index(), "series")
    b = SeriesTable.read(tables)
    c = SeriesTable.read([t.to_numpy() for t in tables.values()])
    for other in (b, c):
        np.testing.assert_allclose(a.standardized, other.standardized)
        assert a.lengths == other.lengths == (20, 20, 20)
    assert a.labels == b.labels == ("a", "b", "c")
    assert SeriesTable.read([[1.0, 2, 3], [4.0, 5]]).lengths == (3, 2)


def test_the_model_refuses_bad_input():
    made = simulate(20, 3, random_seed=3).data
    for data, series, words in [
        (made, None, "`series`"),
        (made, "subject", "unknown column 'subject'"),
        (made.assign(x0="word"), "series", "'x0'"),
        (made.assign(x1=2.0), "series", "'x1' is constant"),
        (made.assign(x1=np.inf), "series", "infinite"),
        (made.assign(series=[None] + ["a"] * 59), "series", "row 0"),
        (made.assign(series=[1, "1", 1] * 20), "series", r"1 \(int\) and '1' \(str\) are"),
        ({1: made[["x0"]], "1": made[["x0"]]}, None, "written alike"),
        (made.to_numpy(), "series", "pass a DataFrame"),
        ([], None, "no series"),
        ({"a": made[["x0", "x1"]], "b": made[["x1", "x0"]]}, None, "series 'b' has the columns"),
        ({"a": made[["x0"]], "b": made[["x0"]].iloc[:0]}, None, "series 'b' has no row"),
        (pd.concat([made, made["x0"]], axis=1), "series", "more than once"),
    ]:
        with pytest.raises(TableError, match=words):
            markov_transitions(data, series=series)
    for options, words in [
        ({"alpha": 0}, "`alpha`"),
        ({"alpha": "1"}, "`alpha`"),
        ({"stickiness": -1.0}, "`stickiness`"),
        ({"stickiness": True}, "`stickiness`"),
        ({"transition_concentration": 0}, "`transition_concentration`"),
        ({"mean_scale": np.nan}, "`mean_scale`"),
        ({"max_features": 2.5}, "`max_features`"),
        ({"discount": 1.0}, "`discount`"),
    ]:
        with pytest.raises((ValueError, TypeError), match=words):
            markov_transitions(made, series="series", **options)


def test_simulation():
    made = simulate(2000, 3, stay=0.8, random_seed=4)
    assert made.feature.any(axis=0).all()
    assert made.feature.any(axis=1).all()
    state = made.state.to_numpy()
    own = made.feature.loc[made.data["series"]].to_numpy()
    places = made.feature.columns.get_indexer(state)
    assert own[range(len(state)), places].all()
    error = made.data[["x0", "x1"]].to_numpy() - made.mean.loc[state].to_numpy()
    assert (abs(error.mean(axis=0)) < 4.5 / np.sqrt(6000)).all()
    pd.testing.assert_frame_equal(made.data, simulate(2000, 3, stay=0.8, random_seed=4).data)
    for options, words in [
        ({"n": 2.5}, "`n`"),
        ({"n": "9"}, "`n`"),
        ({"n_series": 0}, "`n_series`"),
        ({"p": True}, "`p`"),
        ({"n_behaviours": 1.5}, "`n_behaviours`"),
        ({"stay": 2}, "`stay`"),
        ({"probability": np.nan}, "`probability`"),
        ({"spread": -1.0}, "`spread`"),
        ({"random_seed": "x"}, "`random_seed`"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            simulate(**{"n": 10, **options})
