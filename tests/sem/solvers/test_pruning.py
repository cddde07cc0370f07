"""Regressions along an order: the path of the adaptive lasso, and what is selected from it."""

import numpy as np
import pytest

from scipy import stats
from sklearn.linear_model import Lasso, LinearRegression

from bayesstruct.sem.solvers.normality import light_tailed, looks_normal
from bayesstruct.sem.solvers.pruning import _RATES, _path, ordered_regressions

ALL = np.ones((7, 7), bool)
NONE = np.zeros((7, 7), bool)


@pytest.fixture(scope="module")
def values():
    """Six predictors that depend on each other, and a response of two of them, the last."""
    rng = np.random.default_rng(1)
    x = rng.laplace(size=(400, 6)) @ (np.eye(6) + 0.4 * np.tri(6, k=-1))
    return np.column_stack([x, 3 + x[:, 1] - 0.5 * x[:, 4] + rng.laplace(size=400)])


def test_path_is_that_of_weighted_columns(values):
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    pool, gram = np.arange(6), z.T @ z
    factor = np.abs(np.linalg.solve(gram[:6, :6], gram[:6, 6])) ** 0.5
    path = _path(gram, pool, 6, np.zeros(6, bool), factor)
    design = z[:, :6] * factor
    largest = np.abs(design.T @ z[:, 6]).max()
    assert not path[0].any()
    np.testing.assert_allclose(
        path[-1] * factor, np.linalg.solve(gram[:6, :6], gram[:6, 6]), rtol=1e-6
    )
    for at in (5, 10, 15, 20, 30):
        peer = Lasso(
            alpha=largest * _RATES[at] / 400, fit_intercept=False, tol=1e-12, max_iter=10**6
        )
        np.testing.assert_allclose(path[at], peer.fit(design, z[:, 6]).coef_, atol=1e-5)


@pytest.mark.parametrize("prune", ["bic", "cross_validation", None])
def test_selected_parents_have_least_squares_coefficients(values, prune):
    direct, scale = ordered_regressions(values, [3, 0, 1, 2, 5, 4, 6], ALL, NONE, prune=prune)
    chosen = np.flatnonzero(direct[6])
    if prune is None:
        assert chosen.tolist() == [0, 1, 2, 3, 4, 5]
    else:
        assert {1, 4} <= set(chosen.tolist())
    peer = LinearRegression().fit(values[:, chosen], values[:, 6])
    np.testing.assert_allclose(direct[6, chosen], peer.coef_, rtol=1e-9)
    rest = values[:, 6] - peer.predict(values[:, chosen])
    assert scale[6] == pytest.approx(np.sqrt(rest @ rest / (400 - len(chosen) - 1)))
    assert scale[3] == pytest.approx(values[:, 3].std(ddof=1)) and not direct[3].any()


@pytest.mark.statistical
def test_true_parents_are_selected_ever_more_often():
    """The oracle property: all true parents and no others, for large tables."""
    right = []
    for n in (60, 4_000):
        hits = 0
        for seed in range(30):
            rng = np.random.default_rng(seed)
            x = rng.uniform(-1, 1, (n, 6)) @ (np.eye(6) + 0.4 * np.tri(6, k=-1))
            y = x[:, 1] - 0.5 * x[:, 4] + rng.uniform(-1, 1, n)
            direct, _ = ordered_regressions(np.column_stack([x, y]), list(range(7)), ALL, NONE)
            hits += np.flatnonzero(direct[6]).tolist() == [1, 4]
        right.append(hits)
    assert right[0] < right[1] and right[1] >= 27


def test_arcs_are_those_that_are_allowed_and_required(values):
    allowed, required = ALL.copy(), NONE.copy()
    allowed[1, 6] = False
    required[0, 6] = required[3, 6] = True
    for prune in ("bic", "cross_validation"):
        direct, _ = ordered_regressions(values, list(range(7)), allowed, required, prune=prune)
        assert direct[6, 1] == 0 and direct[6, 0] != 0 and direct[6, 3] != 0
    direct, _ = ordered_regressions(values, list(range(7)), NONE, NONE)
    assert not direct.any()


def test_normality_is_that_of_the_statistic_of_scipy():
    rng = np.random.default_rng(3)
    columns = np.column_stack([rng.normal(size=300), rng.laplace(size=300), rng.standard_t(9, 300)])
    found = looks_normal(columns)
    for column, normal in zip(columns.T, found, strict=True):
        statistic = anderson(column)
        assert normal == (statistic * (1 + 0.75 / 300 + 2.25 / 300**2) < 1.035)
    assert found[0] and not found[1]


def anderson(column):
    """Anderson and Darling's statistic from the normal distribution function."""
    z = np.sort((column - column.mean()) / column.std(ddof=1))
    p, k = stats.norm.cdf(z), np.arange(1, len(z) + 1)
    return -len(z) - np.sum((2 * k - 1) * (np.log(p) + np.log1p(-p[::-1]))) / len(z)


@pytest.mark.statistical
def test_normal_columns_pass_as_often_as_the_level_says():
    passed = looks_normal(np.random.default_rng(4).normal(size=(200, 4_000))).mean()
    assert abs(passed - 0.99) < 0.006  # standard error .0016; the critical value is of many rows


def test_light_tails_are_those_of_a_small_kurtosis():
    rng = np.random.default_rng(5)
    normal = light_tailed(rng.normal(size=(100, 3_000)), level=0.05 * 3_000).mean()
    assert abs(normal - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 3_000)
    laplace = rng.laplace(size=(100, 6))
    mixed = laplace @ rng.normal(size=(6, 1_000))  # sums of Laplace errors, of any number
    assert light_tailed(mixed, level=0.05 * 1_000).mean() < 0.05
    uniform = rng.uniform(size=(100, 200))
    assert light_tailed(uniform, level=0.001 * 200).mean() > 0.95
    assert not light_tailed(uniform[:10]).any()
