"""Labels of logistic and Poisson regressions: the exact posterior, the joint distribution, wrong samplers."""

import numpy as np
import pytest

from scipy import stats
from tools.buffets import distance
from tools.geweke import assert_geweke
from tools.mixtures import log_columns, log_glm, log_posterior
from tools.partitions import posterior_of

from bayesstruct.mixtures.kernels.chinese_restaurant import draw_labels, relabel
from bayesstruct.mixtures.kernels.mixture_columns import ColumnPrior, log_gains
from bayesstruct.mixtures.kernels.mixture_glm import (
    LOGISTIC,
    POISSON,
    Responses,
    draw_columns,
    scan_glm,
)

MAX_CLUSTERS, EMPTY = 6, 2
PRIOR = ColumnPrior(np.array([0.5]), 2.0, np.array([0.6]), log_gains(2.0, 20))
DEVIATION = {LOGISTIC: np.array([1.5, 2.0]), POISSON: np.array([0.7, 0.6])}
X = np.array([[1.2], [0.7], [-0.4], [-1.0]])
Y = {LOGISTIC: np.array([1.0, 0.0, 1.0, 1.0]), POISSON: np.array([4.0, 0.0, 1.0, 2.0])}


def design(x):
    return np.column_stack([np.ones(len(x)), x])


def log_density(family, y, eta):
    if family == POISSON:
        return stats.poisson(np.exp(eta)).logpmf(y)
    return stats.bernoulli(1 / (1 + np.exp(-eta))).logpmf(y)


def sweep(rng, labels, x, family, y, alpha, coefficient):
    """Draw labels and coefficients, in place, clusters in the order of their appearance."""
    data = Responses(family, design(x), y, np.zeros(len(x)), DEVIATION[family])
    order = rng.permutation(len(x))
    assert scan_glm(rng, labels, order, x, PRIOR, data, alpha, coefficient, EMPTY, 2)
    names = np.empty(MAX_CLUSTERS, np.int64)
    relabel(labels, names)
    there = names >= 0
    coefficient[names[there]] = coefficient[there]
    coefficient[there.sum() :] = 0.0


def chain(family, alpha, draws, seed=1):
    rng = np.random.default_rng(seed)
    labels, coefficient = np.zeros(len(X), np.int64), np.zeros((MAX_CLUSTERS, 2))
    seen = []
    for _ in range(draws):
        sweep(rng, labels, X, family, Y[family], alpha, coefficient)
        seen.append(tuple(labels.tolist()))
    return seen


def exact(family, alpha):
    def log_cluster(rows):
        x, y = X[rows], Y[family][rows]
        response = log_glm(
            design(x), y, DEVIATION[family], lambda y, eta: log_density(family, y, eta)
        )
        return log_columns(x, PRIOR.strength, PRIOR.shape, PRIOR.rate) + response

    return posterior_of(lambda labels: log_posterior(labels, alpha, log_cluster), len(X))


@pytest.mark.calibration
@pytest.mark.parametrize("family", [LOGISTIC, POISSON])
def test_partitions_have_the_exact_posterior(family, full):
    draws, bound = (300_000, 0.01) if full else (6_000, 0.05)
    posterior = exact(family, 1.4)
    assert len(posterior) == 15
    assert distance(chain(family, 1.4, draws), posterior) < bound
    # A scan that does not share alpha out between the empty clusters.
    assert distance(chain(family, 1.4 * EMPTY, 6_000), posterior) > 0.1


def joint(family, n=5, alpha=1.2, share=1.0):
    """Return the parts of a joint-distribution test; with another `share` of alpha a wrong one."""

    def table(rng, labels, moments, coefficient):
        x = rng.normal(moments[0, labels], np.sqrt(moments[1, labels]))
        eta = (design(x) * coefficient[labels]).sum(axis=1)
        if family == POISSON:
            return x, rng.poisson(np.exp(np.minimum(eta, 20.0))).astype(float)
        return x, (rng.random(n) * (1 + np.exp(-eta)) < 1).astype(float)

    def forward(rng):
        labels = draw_labels(rng, n, alpha)
        used = np.arange(MAX_CLUSTERS)[:, None] <= labels.max()
        variance = PRIOR.rate / rng.gamma(PRIOR.shape, size=(MAX_CLUSTERS, 1))
        mean = rng.normal(0, np.sqrt(variance / PRIOR.strength))
        coefficient = used * rng.normal(0, DEVIATION[family], size=(MAX_CLUSTERS, 2))
        moments = np.array([mean, variance])
        return labels, moments, coefficient, table(rng, labels, moments, coefficient)

    def transition(rng, state):
        labels, _, coefficient, (x, y) = state
        labels, coefficient = labels.copy(), coefficient.copy()
        sweep(rng, labels, x, family, y, share * alpha, coefficient)
        moments = np.zeros((2, MAX_CLUSTERS, 1))
        draw_columns(rng, labels, x, PRIOR, moments)
        return labels, moments, coefficient, table(rng, labels, moments, coefficient)

    def statistics(state):
        labels, moments, coefficient, (x, y) = state
        own = coefficient[labels[-1]]
        return {
            "clusters": labels.max(),
            "alone": (np.bincount(labels) == 1).sum(),
            "mean": np.tanh(moments[0, 0, 0]),
            "variance": np.log(moments[1, 0, 0]),
            "intercept": own[0],
            "intercept squared": coefficient[0, 0] ** 2,
            "slope squared": own[1] ** 2,
            "intercept by slope": own[0] * own[1],
            "responses": np.minimum(y, 10.0).mean(),
            "response by slope": np.minimum(y[-1], 10.0) * np.tanh(own[1] * x[-1, 0]),
            "response by intercept": np.minimum(y[0], 10.0) * coefficient[0, 0],
        }

    return forward, transition, statistics


@pytest.mark.statistical
@pytest.mark.parametrize("family", [LOGISTIC, POISSON])
def test_joint_draws_have_the_prior(family):
    assert len(assert_geweke(*joint(family), draws=3_000, seed=4)) == 11


@pytest.mark.statistical
def test_joint_draws_of_a_wrong_sampler_have_not():
    with pytest.raises(AssertionError, match="worst z"):
        assert_geweke(*joint(LOGISTIC, share=EMPTY), draws=3_000, seed=4)
