"""Choosing a rate."""

import numpy as np
import pytest

from sklearn.linear_model import LogisticRegression

from bayesstruct.solvers import (
    bayesian_information_criterion,
    cross_validate,
    sparse_mode,
    sparse_path,
    stability_selection,
)


def table(seed=0, n=120, p=15, family="gaussian"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    z = 1.5 * X[:, 0] - X[:, 1] + 0.8 * X[:, 2]
    if family == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-2 * z))).astype(float)
    return X, z + rng.standard_normal(n) + 3.0


@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_criterion_of_a_gaussian_path_is_least_squares_on_the_support(gamma):
    X, y = table()
    path = sparse_path(X, y)
    found = bayesian_information_criterion(X, y, path, gamma=gamma)
    for solution, value in list(zip(path, found, strict=True))[::7]:
        S = solution.coefficients != 0
        A = np.column_stack([X[:, S], np.ones(len(X))])
        rss = ((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2).sum()
        n, d = len(y), S.sum()
        expected = n * np.log(rss / n) + (d + 1) * np.log(n) + 2 * gamma * d * np.log(15)
        np.testing.assert_allclose(value, expected, rtol=1e-8)
    best = path[int(np.argmin(found))].coefficients
    assert set(np.flatnonzero(best)) >= {0, 1, 2}


def test_criterion_of_a_logistic_path_is_the_unpenalised_likelihood():
    X, y = table(family="logistic")
    path = sparse_path(X, y, family="logistic")[:10]
    found = bayesian_information_criterion(X, y, path, family="logistic")
    S = path[-1].coefficients != 0
    fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X[:, S], y)
    p = fit.predict_proba(X[:, S])[:, 1]
    likelihood = (y * np.log(p) + (1 - y) * np.log(1 - p)).sum()
    expected = -2 * likelihood + (S.sum() + 1) * np.log(len(y))
    np.testing.assert_allclose(found[-1], expected, rtol=1e-6)


def test_criterion_of_separated_labels_is_that_of_the_limit():
    X = np.linspace(-1, 1, 30)[:, None]
    y = X[:, 0] > 0
    path = sparse_path(X, y, family="logistic")
    found = bayesian_information_criterion(X, y, path, family="logistic")
    np.testing.assert_allclose(found[0], 2 * 30 * np.log(2) + np.log(30))  # no predictor
    np.testing.assert_allclose(found[-1], 2 * np.log(30), atol=1e-3)  # a likelihood of one


def test_criterion_is_infinite_with_as_many_coefficients_as_rows():
    X, y = table(n=12)
    path = sparse_path(X, y, rates=[1e-6], tol=1e-3)
    assert np.isinf(bayesian_information_criterion(X, y, path))[0]


def test_cross_validation_is_the_loss_on_rows_left_out():
    X, y = table(n=40)
    rates = [20.0, 4.0]
    found = cross_validate(X, y, rates=rates, folds=4, random_seed=3, tol=1e-10)
    parts = np.array_split(np.random.default_rng(3).permutation(40), 4)
    for k, rate in enumerate(rates):
        losses = []
        for part in parts:
            rest = np.setdiff1d(np.arange(40), part)
            s = sparse_mode(X[rest], y[rest], rate=0.75 * rate, tol=1e-10)
            r = y[part] - X[part] @ s.coefficients - s.intercept
            losses.append(0.5 * (r**2).mean())
        np.testing.assert_allclose(found.mean[k], np.mean(losses), rtol=1e-6)
    assert found.best == rates[int(np.argmin(found.mean))]


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_stability_finds_the_columns_that_matter(family):
    X, y = table(n=300, family=family)
    rates, frequencies = stability_selection(X, y, family=family, resamples=20, random_seed=0)
    assert frequencies.shape == (len(rates), 15)
    early = frequencies[len(rates) // 4]
    assert early[:3].min() > 0.8
    assert early[3:].mean() < 0.2
    assert (np.diff(frequencies.sum(axis=1)) >= -1).all()


def test_resampling_is_reproducible():
    X, y = table()
    one, other = (stability_selection(X, y, resamples=4, random_seed=1)[1] for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: cross_validate(X, y, folds=1), "folds"),
        (lambda X, y: stability_selection(X, y, resamples=3), "even number"),
        (lambda X, y: bayesian_information_criterion(X, y, [], gamma=2.0), "gamma"),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(ValueError, match=message):
        call(*table())
