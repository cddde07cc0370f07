"""CLIME against HiGHS, and its properties."""

import numpy as np
import pandas as pd
import pytest

from scipy.optimize import linprog

from bayesstruct.data.errors import TableError, TableWarning
from bayesstruct.precision.solvers.clime import (
    clime,
    clime_path,
    clime_penalty,
    least_norm_columns,
    symmetrized,
)
from bayesstruct.precision.solvers.second_moments import second_moments


def sample(n, p, seed, noise=0.8):
    """Covariances of rows of a random linear model, and its precision matrix."""
    rng = np.random.default_rng(seed)
    B = np.tril(rng.uniform(0.5, 1.0, (p, p)) * rng.choice([-1, 1], (p, p)), -1)
    B *= rng.random((p, p)) < 2.0 / p
    mixing = np.linalg.inv(np.eye(p) - B)
    x = rng.choice([-1.0, 1.0], (n, p)) * np.sqrt(noise) @ mixing.T
    return x.T @ x / n, (np.eye(p) - B).T @ (np.eye(p) - B) / noise


def by_highs(X, target, penalty):
    """The linear program of one column."""
    m, k = X.shape
    e = np.arange(m) == target
    done = linprog(
        np.ones(2 * k),
        A_ub=np.block([[X, -X], [-X, X]]),
        b_ub=np.concatenate([penalty + e, penalty - e]),
        method="highs",
    )
    return None if done.x is None else done.x[:k] - done.x[k:]


@pytest.mark.parametrize(("n", "p"), [(15, 6), (300, 12), (1000, 25)])
@pytest.mark.parametrize("penalty", [0.5, 0.1, 0.02])
def test_columns_are_those_of_an_independent_solver(n, p, penalty):
    S, _ = sample(n, p, seed=p)
    solution = clime(S, penalty)
    expected = np.column_stack([by_highs(S, j, penalty) for j in range(p)])
    np.testing.assert_allclose(solution.columns, expected, atol=1e-8)
    assert np.array_equal(solution.columns != 0, abs(expected) > 1e-10)
    assert solution.converged and abs(solution.gap) < 1e-10 and solution.violation < 1e-12


def test_more_rows_than_columns_and_the_smallest_penalty_that_can_be_met():
    S, _ = sample(300, 10, seed=1)
    X = S[:, [0, 3, 4]]
    found = least_norm_columns(X, 3, np.array([0.9, 0.5, 0.45]))
    for weights, penalty in zip(found.weights, [0.9, 0.5, 0.45], strict=True):
        expected = by_highs(X, 3, penalty)
        if expected is not None:
            np.testing.assert_allclose(weights, expected, atol=1e-9)
    without = least_norm_columns(X, 3, np.array([1e-3]))
    assert np.isnan(without.gaps[0])
    assert by_highs(X, 3, without.smallest * 1.001) is not None
    assert by_highs(X, 3, without.smallest * 0.999) is None


def test_zero_exactly_from_a_penalty_of_one_on():
    S, _ = sample(200, 8, seed=2)
    assert not clime(S, 1.0).precision.any() and not clime(S, 1.5).precision.any()
    assert clime(S, 0.999).precision.any()


def test_without_a_penalty_it_is_the_inverse():
    S, _ = sample(400, 8, seed=3)
    np.testing.assert_allclose(clime(S, 0.0).precision, np.linalg.inv(S), atol=1e-10)


def test_the_error_and_the_norms_of_columns_are_bounded_for_every_sample():
    worst = 0.0
    for seed in range(40):
        S, precision = sample([100, 2000, 20_000][seed % 3], 4 + seed % 8, seed)
        norm = abs(precision).sum(axis=0).max()
        penalty = norm * abs(S - np.linalg.inv(precision)).max()
        solution = clime(S, penalty)
        worst = max(worst, abs(solution.precision - precision).max() / (4 * norm * penalty))
        assert (abs(solution.columns).sum(axis=0) <= abs(precision).sum(axis=0) + 1e-9).all()
        if abs(precision[precision != 0]).min() > 4 * norm * penalty:
            assert solution.precision[precision != 0].all()
    assert 0.05 < worst <= 1


def test_a_multiple_of_the_covariances_divides_the_estimate_and_columns_may_be_permuted():
    S, _ = sample(500, 9, seed=4)
    base, order = clime(S, 0.07), np.random.default_rng(0).permutation(9)
    np.testing.assert_allclose(clime(1e4 * S, 0.07).precision, base.precision / 1e4, rtol=1e-9)
    moved = clime(S[np.ix_(order, order)], 0.07).precision
    np.testing.assert_allclose(moved, base.precision[np.ix_(order, order)], atol=1e-12)


def test_the_path_has_the_solutions_of_each_penalty_in_any_order():
    S, _ = sample(200, 10, seed=5)
    penalties = [0.05, 1.2, 0.3, 0.3]
    for solution, penalty in zip(clime_path(S, penalties), penalties, strict=True):
        np.testing.assert_allclose(solution.columns, clime(S, penalty).columns, atol=1e-12)
        assert solution.penalty == penalty and solution.converged


@pytest.mark.parametrize("penalty", [0.3, 0.05, 0.0])
def test_exact_ties_of_a_population_matrix(penalty):
    S = np.kron(np.eye(4), np.array([[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]]))
    solution = clime(S, penalty)
    expected = [abs(by_highs(S, j, penalty)).sum() for j in range(12)]
    np.testing.assert_allclose(abs(solution.columns).sum(axis=0), expected, atol=1e-7)
    assert solution.converged and not solution.precision[:3, 3:].any()


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_near_copies_and_columns_of_very_different_units_are_certified(unit):
    rng = np.random.default_rng(9)
    x = rng.normal(size=(50, 8)) * 10.0 ** rng.integers(-1, 2, 8)
    x[:, 7] = x[:, 0] * (1 + 1e-3 * rng.normal(size=50))
    S = unit * x.T @ x / 50
    for solution in clime_path(S, [0.9, 0.3, 0.05]):
        assert solution.converged and solution.violation < 1e-9
        assert solution.gap <= 1e-9 * solution.objective


def test_what_cannot_be_met_is_shown_without_another_solver(monkeypatch):
    from bayesstruct.precision.solvers import clime as module

    monkeypatch.setattr(module, "_by_highs", None)
    for scale in (1e-6, 1.0, 1e6):
        x = np.random.default_rng(10).normal(size=(6, 9)) * scale
        with pytest.raises(ValueError, match="the smallest that can be met"):
            clime(x.T @ x, 0.02)


def test_of_two_elements_the_smaller_is_kept_and_the_upper_one_of_a_tie():
    kept = symmetrized(np.array([[1.0, 0.3, -0.2], [-0.3, 2.0, 0.0], [0.1, 0.5, 3.0]]))
    assert kept.tolist() == [[1.0, 0.3, 0.1], [0.3, 2.0, 0.0], [0.1, 0.0, 3.0]]


def test_a_column_without_a_certificate_is_solved_by_highs(monkeypatch):
    import bayesstruct.precision.kernels.clime as kernels

    S, _ = sample(300, 8, seed=6)
    expected = clime(S, 0.1)
    monkeypatch.setattr(kernels, "column_path", lambda *_: (kernels.STALLED, 0, 1.0, 0))
    replaced = clime(S, 0.1)
    np.testing.assert_allclose(replaced.columns, expected.columns, atol=1e-9)
    assert replaced.converged


def test_a_table_and_its_covariances_and_the_default_penalty():
    x = pd.DataFrame(np.random.default_rng(7).normal(size=(80, 5)) + 3, columns=list("abcde"))
    solution = clime(x)
    assert solution.penalty == pytest.approx(0.5 * np.sqrt(np.log(5) / 80))
    assert solution.names == tuple("abcde")
    covariance = x.cov(ddof=0)
    np.testing.assert_allclose(clime(covariance, n=80).precision, solution.precision, atol=1e-12)
    with pytest.raises(TypeError, match="needs the number of rows"):
        clime(covariance)
    with pytest.raises(TypeError, match="goes with a covariance matrix"):
        clime(x, n=80)


def test_the_default_penalty_is_raised_where_no_matrix_meets_it():
    rows = np.random.default_rng(1).normal(size=(25, 40))
    moments = second_moments(rows)
    default = clime_penalty(moments)
    columns = [least_norm_columns(moments.covariance, j, np.array([default])) for j in range(40)]
    smallest = max(column.smallest for column in columns)
    with pytest.warns(TableWarning, match="0.2474 is taken, a little more than the smallest"):
        solution = clime(rows)
    assert default < smallest < solution.penalty == pytest.approx(1.1 * smallest)
    assert solution.converged and solution.violation < 1e-7
    np.testing.assert_array_equal(solution.precision, clime(rows, solution.penalty).precision)
    assert by_highs(moments.covariance, 0, solution.penalty) is not None
    worst = max(range(40), key=lambda j: columns[j].smallest)
    assert by_highs(moments.covariance, worst, smallest * 0.999) is None
    with pytest.raises(ValueError, match="the smallest that can be met"):
        clime(rows, default)


def test_input_that_cannot_be_used():
    rows = np.random.default_rng(8).normal(size=(20, 30))
    with pytest.raises(ValueError, match="the smallest that can be met"):
        clime(rows, 0.01)
    with pytest.raises(ValueError, match="must be at least 0"):
        clime(np.eye(3), -0.1)
    with pytest.raises(TableError, match="variance of column 'x1' is not positive"):
        clime(np.diag([1.0, 0.0, 2.0]), 0.1)
    frame = pd.DataFrame(rows[:, :4], columns=list("abcd"))
    with pytest.raises(TableError, match="column 'b': values are missing"):
        clime(frame.assign(b=frame.b.where(frame.b > -1)))
    with pytest.raises(TableError, match=r"'b': squares .* beyond .*data\['b'\] / "):
        clime(frame.assign(b=frame.b * 1e200))
    with pytest.raises(TableError, match="another order"):
        clime(pd.DataFrame(np.eye(4), index=list("bacd"), columns=list("abcd")), 0.1)


def test_a_square_matrix_that_is_not_symmetric_is_no_table_of_rows():
    square = np.random.default_rng(1).normal(size=(4, 4))
    triangle = np.eye(4) + np.triu(np.full((4, 4), 0.3), 1)
    for wrong in (square, square.tolist(), triangle):
        words = r"not symmetric: .* for 'x0' and 'x1'.*T \+ T\.T.*pandas\.DataFrame\(S\)"
        with pytest.raises(TableError, match=words):
            clime(wrong, 0.3, n=20)
    named = pd.DataFrame(square, index=list("abcd"), columns=list("abcd"))
    with pytest.raises(TableError, match=r"for 'a' and 'b'.*pass reset_index\(drop=True\)"):
        clime(named, 0.3)
    # A frame without names of rows has observations, and so has an array that is not square
    rows = pd.DataFrame(square)
    np.testing.assert_allclose(second_moments(rows).covariance, rows.cov(ddof=0), rtol=1e-12)
    assert second_moments(named.reset_index(drop=True)).n == 4
    assert second_moments(square[:3]).n == 3


def test_errors_and_warnings_know_no_prior_and_no_name_of_a_class():
    rows = np.random.default_rng(8).normal(size=(20, 3))
    dependent = np.c_[rows, rows.sum(axis=1)]
    assert clime(dependent, 0.3).converged  # warnings are errors here
    with pytest.raises(ValueError, match="the smallest that can be met") as caught:
        clime(np.ones((3, 3)), 0.0)
    assert type(caught.value) is ValueError


def test_penalties_and_tolerance_are_checked():
    with pytest.raises(TypeError, match="`penalties` must be several numbers"):
        clime_path(np.eye(2), 0.1)
    with pytest.raises(ValueError, match="`tol` must be above 0"):
        clime(np.eye(2), 0.1, tol=-1)
