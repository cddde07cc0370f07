"""Labels of normal regressions: the exact posterior, the joint distribution, wrong samplers."""

import numpy as np
import pytest

from tools.buffets import distance
from tools.geweke import assert_geweke
from tools.mixtures import log_columns, log_posterior, log_regression
from tools.partitions import posterior_of

from bayesstruct.mixtures.kernels.chinese_restaurant import draw_labels, relabel
from bayesstruct.mixtures.kernels.mixture_columns import ColumnPrior, log_gains
from bayesstruct.mixtures.kernels.mixture_regression import (
    RegressionPrior,
    draw_parameters,
    scan_labels,
)

MAX_CLUSTERS = 7
STRENGTH, SHAPE, RATE = np.array([0.5, 0.9]), 2.0, np.array([0.5, 0.7])
WEIGHT, NOISE_SHAPE, NOISE_RATE = np.array([0.4, 0.8, 0.6]), 1.5, 0.3


def priors(n, noise_rate=NOISE_RATE):
    columns = ColumnPrior(STRENGTH, SHAPE, RATE, log_gains(SHAPE, n))
    root = np.sqrt(np.append(WEIGHT, 2 * noise_rate))
    return columns, RegressionPrior(NOISE_SHAPE, root, log_gains(NOISE_SHAPE, n))


def table_of(x, y):
    return x, np.column_stack([np.ones(len(x)), x, y])


def small_table():
    """Five rows of which several partitions are probable."""
    rng = np.random.default_rng(0)
    x = 0.8 * rng.normal(size=(5, 2))
    x[:2] += 1.0
    return table_of(x, np.where(x[:, 0] > 0.8, x[:, 0], -x[:, 1]) + 0.3 * rng.normal(size=5))


def exact(table, alpha):
    x, rows = table

    def log_cluster(own):
        response = log_regression(rows[own, :-1], rows[own, -1], WEIGHT, NOISE_SHAPE, NOISE_RATE)
        return log_columns(x[own], STRENGTH, SHAPE, RATE) + response

    return posterior_of(lambda labels: log_posterior(labels, alpha, log_cluster), len(x))


def chain(table, alpha, draws, *, scan=True, moves=1, noise_rate=NOISE_RATE, seed=1):
    """Visit partitions by scans, by splits and merges, or both."""
    rng, n = np.random.default_rng(seed), len(table[0])
    labels, names = np.zeros(n, np.int64), np.empty(MAX_CLUSTERS, np.int64)
    seen = []
    for _ in range(draws):
        order = rng.permutation(n) if scan else np.empty(0, np.int64)
        assert scan_labels(
            rng, labels, order, table, priors(n, noise_rate), alpha, MAX_CLUSTERS, moves
        )
        relabel(labels, names)
        seen.append(tuple(labels.tolist()))
    return seen


# The bounds are about three times the error of as many independent draws of 52 partitions.
@pytest.mark.calibration
@pytest.mark.parametrize(("scan", "moves"), [(True, 0), (True, 2), (False, 3)])
def test_partitions_have_the_exact_posterior(scan, moves, full):
    draws, bound = (300_000, 0.01) if full else (6_000, 0.05)
    table = small_table()
    posterior = exact(table, 1.3)
    assert len(posterior) == 52
    assert max(posterior.values()) < 0.6
    assert distance(chain(table, 1.3, draws, scan=scan, moves=moves), posterior) < bound


@pytest.mark.statistical
def test_wrong_samplers_do_not():
    table = small_table()
    posterior = exact(table, 1.3)
    # Another prior of the noise (twice b is what belongs into the factor), another mass.
    assert distance(chain(table, 1.3, 4_000, noise_rate=NOISE_RATE / 2), posterior) > 0.05
    assert distance(chain(table, 2.0, 4_000), posterior) > 0.05


def test_a_scan_with_too_many_clusters_returns_false():
    table = small_table()
    labels = np.zeros(5, np.int64)
    rng = np.random.default_rng(2)
    assert not all(
        scan_labels(rng, labels * 0, np.arange(5), table, priors(5), 50.0, 1, 0) for _ in range(20)
    )


def joint(n=5, alpha=1.2, noise_rate=NOISE_RATE):
    """Return the parts of a joint-distribution test; `noise_rate` of the sampler may be a wrong one."""

    def table(rng, labels, moments, coefficient, noise):
        mean, variance = moments
        x = rng.normal(mean[labels], np.sqrt(variance[labels]))
        rows = np.column_stack([np.ones(n), x])
        y = rng.normal((rows * coefficient[labels]).sum(axis=1), np.sqrt(noise[labels]))
        return x, np.column_stack([rows, y])

    def forward(rng):
        labels = draw_labels(rng, n, alpha)
        variance = RATE / rng.gamma(SHAPE, size=(MAX_CLUSTERS, 2))
        mean = rng.normal(0, np.sqrt(variance / STRENGTH))
        noise = NOISE_RATE / rng.gamma(NOISE_SHAPE, size=MAX_CLUSTERS)
        coefficient = rng.normal(0, np.sqrt(noise[:, None] / WEIGHT))
        parameters = np.array([mean, variance]), coefficient, noise
        return labels, parameters, table(rng, labels, *parameters)

    def transition(rng, state):
        labels, _, rows = state
        labels, names = labels.copy(), np.empty(MAX_CLUSTERS, np.int64)
        prior = priors(n, noise_rate)
        assert scan_labels(rng, labels, rng.permutation(n), rows, prior, alpha, MAX_CLUSTERS, 1)
        relabel(labels, names)
        parameters = (
            np.zeros((2, MAX_CLUSTERS, 2)),
            np.zeros((MAX_CLUSTERS, 3)),
            np.zeros(MAX_CLUSTERS),
        )
        draw_parameters(rng, labels, rows, prior, *parameters)
        return labels, parameters, table(rng, labels, *parameters)

    def statistics(state):
        labels, (moments, coefficient, noise), (x, rows) = state
        own, y = coefficient[labels[-1]], rows[:, -1]
        # Student distributions with few degrees of freedom have no variance: bounded functions do.
        return {
            "clusters": labels.max(),
            "alone": (np.bincount(labels) == 1).sum(),
            "mean": np.tanh(moments[0, 0, 1]),
            "mean squared": np.tanh(moments[0, 0, 0] ** 2),
            "variance": np.log(moments[1, 0, 0]),
            "noise": np.log(noise[0]),
            "noise of the last": np.log(noise[labels[-1]]),
            "coefficient squared": np.tanh(own[1] ** 2),
            "intercept by slope": np.tanh(own[0] * own[2]),
            "column by cluster": np.tanh(x[0, 0] * x[1, 0]) * (labels[1] == 0),
            "response squared": np.tanh(y[0] ** 2),
            "response by column": np.tanh(y[-1] * x[-1, 1] * own[2]),
        }

    return forward, transition, statistics


@pytest.mark.statistical
def test_joint_draws_have_the_prior():
    assert len(assert_geweke(*joint(), draws=3_000, seed=3)) == 12


@pytest.mark.statistical
def test_joint_draws_of_a_wrong_sampler_have_not():
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(*joint(noise_rate=NOISE_RATE / 2), draws=3_000, seed=3)
