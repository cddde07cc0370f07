"""Forward algorithm, and the scan of behaviours against enumeration and joint distributions."""

import itertools

import numpy as np
import pytest

from scipy import stats
from tools.buffets import counts, distance
from tools.enumeration import assert_matches_enumeration
from tools.geweke import assert_geweke
from tools.series import (
    PRIOR,
    SMALL,
    SMALL_STARTS,
    exact_posterior,
    full_prior,
    path_density,
    paths_of,
)

from bayesstruct.features.kernels import indian_buffet as buffet
from bayesstruct.series.kernels.behaviours import fit_windows
from bayesstruct.series.kernels.forward import forward_gains, smooth_series
from bayesstruct.series.kernels.scan import scan_behaviours
from bayesstruct.series.kernels.states import draw_given_states

MAX_FEATURES = 16
#: Two series, of three rows and two, one of them missing.
X = np.array([[1.3], [-0.9], [-1.2], [1.1], [np.nan]])
STARTS = np.array([0, 3, 5])
#: Concentration and discount, where they are not 1 and 0.
PROCESS = (2.0, 0.3)
#: A wrong prior of the means of new behaviours, too wide.
WRONG = (0.8, 1.5, 6.0, 2.0, 0.6)


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


@pytest.mark.statistical
def test_states_of_a_series_have_their_distribution_given_the_rest():
    rng = np.random.default_rng(3)
    z, states = np.ones((1, 3), np.int8), np.zeros(4, np.int64)
    # Transitions that differ between a way and the way back.
    weights = np.array([[[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]])
    theta = np.array([[[-0.5], [0.0], [0.5]], [[1.0], [1.0], [1.0]]])
    x, starts = np.array([[0.3], [-0.2], [np.nan], [0.4]]), np.array([0, 4])
    emission = np.nan_to_num(stats.norm.pdf(x, theta[0].T, theta[1].T), nan=1.0)
    exact = np.array(
        [
            path_density(path, weights[0], range(3)) * emission[range(4), path].prod()
            for path in paths_of(4, range(3))
        ]
    )
    draws = []
    for _ in range(10_000):
        given = weights.copy(), theta.copy(), full_prior(1, 1.0)
        draw_given_states(rng, z, *given, x, starts, states)
        draws.append(states @ [27, 9, 3, 1])
    assert_matches_enumeration(np.array(draws), exact / exact.sum())


def begin(n, d, rng, prior=PRIOR):
    """One behaviour that all series have."""
    z, weights = np.zeros((n, MAX_FEATURES), np.int8), np.ones((n, MAX_FEATURES, MAX_FEATURES))
    z[:, 0] = 1
    theta = np.zeros((2, MAX_FEATURES, d))
    theta[1] = 1.0
    return z, weights, theta


def sweep(rng, state, x, starts, prior, scan_prior=None):
    z, weights, theta = state
    order, windows = rng.permutation(len(z)), fit_windows(x, starts)
    scan_prior = prior if scan_prior is None else scan_prior
    assert scan_behaviours(rng, z, weights, theta, scan_prior, x, starts, windows, order)
    draw_given_states(rng, z, weights, theta, prior, x, starts, np.zeros(len(x), np.int64))


def chain(x, starts, alpha, draws, seed=1, prior=PRIOR, scan_prior=None):
    rng, n = np.random.default_rng(seed), len(starts) - 1
    state = begin(n, x.shape[1], rng)
    scan_prior = None if scan_prior is None else full_prior(n, alpha, scan_prior)
    for _ in range(draws):
        sweep(rng, state, x, starts, full_prior(n, alpha, prior), scan_prior)
        yield counts(state[0])


@pytest.mark.statistical
def test_the_scan_has_the_exact_posterior_and_a_wrong_one_has_not():
    exact = exact_posterior(SMALL, SMALL_STARTS, 0.5, 4)
    assert distance(list(chain(SMALL, SMALL_STARTS, 0.5, 6_000)), exact) < 0.05
    # New means from one prior, all others from another.
    assert distance(list(chain(SMALL, SMALL_STARTS, 0.5, 6_000, scan_prior=WRONG)), exact) > 0.1


@pytest.mark.statistical
def test_transitions_that_are_nearly_certain_keep_the_exact_posterior():
    # Half of the gamma variables of this shape are below the least number of the machine.
    prior, x, starts = (0.001, 0.0, *PRIOR[2:]), SMALL[[0, 1, 0, 3]], np.array([0, 3, 4])
    exact = exact_posterior(x, starts, 0.5, 4, prior)
    assert distance(list(chain(x, starts, 0.5, 6_000, prior=prior)), exact) < 0.05


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
    """Return the parts of a joint-distribution test; the prior of the scan may be a wrong one."""
    n, starts = len(lengths), np.concatenate([[0], np.cumsum(lengths)])
    scan_prior = full_prior(n, alpha, **{"process": PROCESS, **wrong})
    prior = full_prior(n, alpha, process=PROCESS)
    gamma, kappa, tau, shape, rate = PRIOR

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
        z = np.zeros((n, MAX_FEATURES), np.int8)
        while not z.any(axis=1).all():
            drawn = buffet.draw_by_dishes(rng, n, alpha, *PROCESS)
            z[:] = 0
            z[:, : drawn.shape[1]] = drawn
        weights = rng.standard_gamma(
            gamma + kappa * np.eye(MAX_FEATURES), size=(n, MAX_FEATURES, MAX_FEATURES)
        )
        variance = rate / rng.standard_gamma(shape, (MAX_FEATURES, d))
        theta = np.stack([tau * rng.standard_normal((MAX_FEATURES, d)), np.sqrt(variance)])
        return (z, weights, theta), table(rng, z, weights, theta)

    def transition(rng, state):
        parts, x = state
        parts = tuple(v.copy() for v in parts)
        sweep(rng, parts, x, starts, prior, scan_prior)
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


@pytest.mark.statistical
def test_joint_draws_have_the_prior():
    assert len(assert_geweke(*joint(), draws=4_000, seed=3)) == 13


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [{"prior": WRONG}, {"process": (1.0, 0.0)}])
def test_joint_draws_of_a_wrong_scan_have_not(wrong):
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(*joint(**wrong), draws=2_000, seed=3)
