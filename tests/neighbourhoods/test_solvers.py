"""One sparse regression for each column."""

import numpy as np
import pandas as pd
import pytest

from tools.ising_tables import ising_table, random_couplings

from bayesstruct.solvers import neighbourhood_modes, sparse_mode


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_each_row_is_a_regression(family):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    X[:, 1] += X[:, 0]
    if family == "logistic":
        X = (X > 0).astype(float)
    found = neighbourhood_modes(X, family=family, rate=3.0, tol=1e-11)
    for j in range(6):
        rest = np.delete(np.arange(6), j)
        alone = sparse_mode(X[:, rest], X[:, j], family=family, rate=3.0, tol=1e-11)
        np.testing.assert_allclose(found.coefficients[j, rest], alone.coefficients, atol=1e-5)
        np.testing.assert_allclose(found.intercepts[j], alone.intercept, atol=1e-5)
    assert not found.coefficients.diagonal().any()
    assert found.converged


def test_population_coefficients_are_those_of_the_precision_matrix():
    K = np.array([[2.0, 0.6, 0.0], [0.6, 1.5, -0.5], [0.0, -0.5, 1.0]])
    rows = np.linalg.cholesky(np.linalg.inv(K)) @ np.eye(3) * np.sqrt(3)
    X = np.vstack([rows.T, -rows.T])  # second moments are inv(K), means are zero
    found = neighbourhood_modes(X, rate=1e-9, tol=1e-12)
    expected = -K / K.diagonal()[:, None]
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(found.coefficients, expected, atol=1e-6)


def test_the_and_graph_is_inside_the_or_graph_and_both_find_an_ising_graph():
    rng = np.random.default_rng(1)
    couplings = random_couplings(rng, 30, 3)
    X = ising_table(rng, couplings, 3000)
    found = neighbourhood_modes(X, family="logistic", rate=0.5 * np.sqrt(3000 * np.log(30)))
    both, either = found.graph("and"), found.graph("or")
    truth = couplings != 0
    assert not (both & ~either).any()
    for graph in (both, either):
        hits = (graph & truth).sum()
        assert 2 * hits / (graph.sum() + truth.sum()) > 0.9  # F1


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (np.ones((5, 1)), {}, "at least two columns"),
        (pd.DataFrame({"a": [0, 1, 2], "b": [0, 1, 0]}), {"family": "logistic"}, "'a'.*two labels"),
        (pd.DataFrame({"a": [1, 1, 1], "b": [0, 1, 0]}), {"family": "logistic"}, "'a'.*two labels"),
        (np.eye(3), {"rate": 0.0}, "positive and finite"),
        (np.eye(3), {"rate": [1.0, 2.0]}, "one for each of the 3 columns"),
        (np.eye(3), {"rate": "1"}, "not text"),
        (np.eye(3), {"max_iter": 0}, "`max_iter` must be a whole number from 1 up"),
        (np.eye(3), {"family": "multinomial"}, "labels"),
        (np.eye(3), {"family": "logit"}, "logistic"),
    ],
)
def test_bad_input(table, options, message):
    with pytest.raises(ValueError, match=message):
        neighbourhood_modes(table, **{"rate": 1.0, **options})


def test_an_unknown_rule_is_answered_with_the_known_ones():
    found = neighbourhood_modes(np.random.default_rng(0).standard_normal((9, 3)), rate=1.0)
    with pytest.raises(ValueError, match="and, or"):
        found.graph("xor")
