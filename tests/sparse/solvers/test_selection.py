"""Choosing a rate."""

import numpy as np
import pytest

from sklearn.linear_model import LogisticRegression

from bayesstruct.penalties import L1, Group
from bayesstruct.solvers import (
    ConvergenceWarning,
    bayesian_information_criterion,
    cross_validate,
    sparse_mode,
    sparse_path,
    stability_selection,
)
from bayesstruct.sparse.solvers import selection
from bayesstruct.sparse.solvers.designs import as_design
from bayesstruct.sparse.solvers.losses import Logistic, Multinomial, Poisson, loss_for


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


def labels(family, seed=4, n=45):
    """Table and responses with a kind that three rows only have."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = np.zeros(n, dtype=int)
    y[:3] = 1
    if family == "multinomial":
        y[3:20] = 2
    order = rng.permutation(n)
    return X, y[order]


@pytest.mark.parametrize("family", ["logistic", "multinomial", "poisson"])
def test_every_part_of_the_rows_has_every_label(family, monkeypatch):
    X, y = labels(family)
    seen = []

    def spied(rows, _, *, family, **kwargs):
        codes = family.kinds()[0]
        seen.append(np.bincount(codes[codes >= 0], minlength=len(family.kinds()[1])))
        return sparse_path(rows, None, family=family, **kwargs)

    monkeypatch.setattr(selection, "sparse_path", spied)
    options = {"family": family, "rates": [4.0, 2.0]}
    for seed in range(4):
        del seen[:]
        cross_validate(X, y, folds=3, random_seed=seed, **options)
        assert [counts[1 if family != "poisson" else 0] for counts in seen] == [2, 2, 2]
        del seen[:]
        stability_selection(X, y, resamples=4, random_seed=seed, **options)
        assert min(counts.min() for counts in seen) == 1
    # Without labels, three rows are in one fold or one half now and then.
    for loss in (Logistic, Multinomial, Poisson):
        monkeypatch.setattr(loss, "kinds", lambda self: None)
    assert not all(_whole(X, y, family, seed) for seed in range(40))


def _whole(X, y, family, seed):
    design, loss = as_design(X, intercept=True), loss_for(family, y)
    parts = selection._dealt(loss, design, 2, np.random.default_rng(seed))
    return all(len(np.unique(y[part])) == len(np.unique(y)) for part in parts)


def test_a_label_of_one_row_is_named():
    X, y = table(n=30, family="logistic")
    y = np.where(np.arange(30) == 7, "c", np.where(y > 0, "b", "a"))
    for call in (cross_validate, stability_selection):
        with pytest.raises(ValueError, match=r"label 'c' occurs in 1 row.*merge"):
            call(X, y, family="multinomial")
    # Without a constant there is no need of it.
    found = cross_validate(X, y, family="multinomial", intercept=False, rates=[5.0], folds=3)
    assert np.isfinite(found.mean).all()
    with pytest.raises(ValueError, match="a count above zero occurs in 1 row"):
        cross_validate(X, np.eye(30)[7], family="poisson")


def test_an_error_in_one_fold_says_where():
    X, y = np.zeros((12, 2)), np.arange(12) % 2
    X[:, 0] = y
    X[11, 0] = 0.0  # separated without this row
    with pytest.raises(ValueError, match=r"in part . of 12 of the rows.*give them a rate"):
        cross_validate(
            X, y, family="logistic", penalty=L1(1.0, weights=[0.0, 1.0]), folds=12, rates=[1.0]
        )


@pytest.mark.parametrize("call", [cross_validate, stability_selection])
def test_modes_that_are_not_found_give_one_warning(call):
    X, y = table(n=40)
    penalty = Group(1.0, np.arange(15) // 3, norm=np.inf)
    options = {"penalty": penalty, "rates": [5.0, 1.0], "random_seed": 0}
    options |= {"folds": 3} if call is cross_validate else {"resamples": 4}
    with pytest.warns(ConvergenceWarning, match="modes were not found") as record:
        call(X, y, tol=1e-10, max_iter=3, **options)
    assert len(record) == 1
    call(X, y, tol=1e-10, **options)  # warnings are errors


def test_stability_of_a_multinomial_is_that_of_each_category():
    X, y = labels("multinomial")
    _, frequencies = stability_selection(
        X, y, family="multinomial", rates=[6.0, 3.0], resamples=4, random_seed=0
    )
    assert frequencies.shape == (2, 4, 3)


def test_resampling_is_reproducible():
    X, y = table()
    one, other = (stability_selection(X, y, resamples=4, random_seed=1)[1] for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_counts_may_be_floats_and_the_penalty_of_any_rate():
    X, y = table(n=40)
    options = {"rates": [20.0, 4.0], "random_seed": 1}
    expected = stability_selection(X, y, resamples=4, **options)[1]
    found = stability_selection(X, y, resamples=4.0, penalty=L1(0.0), **options)[1]
    np.testing.assert_array_equal(found, expected)
    expected = cross_validate(X, y, folds=3, **options).mean
    found = cross_validate(X, y, folds=3.0, penalty=L1(0.0), **options).mean
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: cross_validate(X, y, folds=1), "folds"),
        (lambda X, y: cross_validate(X, y, folds=2.5), "`folds` must be a whole number"),
        (lambda X, y: cross_validate(X, y, rates=5.0), "`rates` must be a list"),
        (lambda X, y: stability_selection(X, y, resamples=3), "even number"),
        (lambda X, y: bayesian_information_criterion(X, y, [], gamma=2.0), "gamma"),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(ValueError, match=message):
        call(*table())
