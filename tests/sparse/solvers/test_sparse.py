"""Modes of sparse regressions: certificates, independent solvers, invariances, bad input."""

import itertools
import warnings

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse, special

from bayesstruct.penalties import L1, Group, SparseGroup, Tree
from bayesstruct.solvers import ConvergenceWarning, sparse_mode, sparse_path
from bayesstruct.sparse.solvers import general, quadratic
from bayesstruct.sparse.solvers.categories import CategoryDesign
from bayesstruct.sparse.solvers.designs import as_design
from bayesstruct.sparse.solvers.losses import Custom, Huber, Logistic, Poisson, loss_for
from bayesstruct.sparse.solvers.soft_threshold import soft_threshold_steps

FAMILIES = ("gaussian", "logistic", "poisson", "huber")


def regression(seed, n=60, p=12, family="gaussian", correlation=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X = np.sqrt(1 - correlation) * X + np.sqrt(correlation) * rng.standard_normal((n, 1))
    w = rng.standard_normal(p) * (rng.random(p) < 0.5)
    z = X @ w + 0.5
    if family == "logistic":
        y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(float)
        y[:2] = 0.0, 1.0
        return X, y
    if family == "poisson":
        return X, rng.poisson(np.exp(np.clip(0.3 * z, -5, 3))).astype(float)
    return X, z + rng.standard_t(3, n)


def reference_loss(z, y, family):
    """The loss as an expression of cvxpy."""
    return {
        "gaussian": lambda: 0.5 * cp.sum_squares(y - z),
        "logistic": lambda: cp.sum(cp.logistic(z)) - y @ z,
        "poisson": lambda: cp.sum(cp.exp(z)) - y @ z,
        "huber": lambda: 0.5 * cp.sum(cp.huber(y - z, 1.345)),
    }[family]()


def reference(X, y, family, up, down):
    """Optimal value by an interior-point method."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = reference_loss(X @ w + b, y, family)
    penalty = up @ cp.pos(w) + np.where(np.isinf(down), 0.0, down) @ cp.neg(w)
    constraints = [w >= 0] if np.isinf(down).all() else []
    problem = cp.Problem(cp.Minimize(loss + penalty), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


@pytest.mark.parametrize("family", FAMILIES)
@given(st.integers(0, 10_000), st.floats(0.02, 0.9), st.booleans())
@settings(max_examples=8, deadline=None, derandomize=True)
def test_agrees_with_cvxpy(family, seed, share, nonnegative):
    X, y = regression(seed, family=family)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, X.shape[1])
    if not nonnegative:
        weights[0] = 0.0
    penalty = L1(1.0, weights=weights, nonnegative=nonnegative)
    rate = share * sparse_path(X, y, family=family, penalty=penalty)[0].rate
    assume(rate > 0)  # else no coefficient wants to be positive
    found = sparse_mode(X, y, family=family, penalty=penalty, rate=rate, tol=1e-11)
    expected = reference(X, y, family, *penalty.with_rate(rate).rates(X.shape[1]))
    # The certified gap bounds the error; the rest is the reference's tolerance.
    np.testing.assert_allclose(found.objective, expected, rtol=1e-8, atol=1e-8)
    assert found.converged
    residual = penalty.with_rate(rate).residual(found.coefficients, found.gradient)
    assert residual <= 1e-4 * rate


@pytest.mark.parametrize("family", FAMILIES)
def test_gap_bounds_the_error_of_a_rough_solution(family):
    X, y = regression(3, family=family)
    exact = sparse_mode(X, y, family=family, rate=2.0, tol=1e-12)
    rough = sparse_mode(X, y, family=family, rate=2.0, tol=0.3)
    assert exact.objective <= rough.objective <= exact.objective + rough.gap + 1e-10


@pytest.mark.parametrize("family", FAMILIES)
def test_largest_rate_is_the_smallest_that_gives_zero(family):
    X, y = regression(4, family=family)
    rate = sparse_path(X, y, family=family)[0].rate
    at, below = (sparse_mode(X, y, family=family, rate=c * rate, tol=1e-10) for c in (1.0, 0.99))
    assert not at.coefficients.any()
    assert below.coefficients.any()


def test_orthogonal_design_is_soft_thresholding():
    y = np.array([3.0, -0.2, -2.0, 0.7])
    found = sparse_mode(np.eye(4), y, rate=0.5, intercept=False).coefficients
    np.testing.assert_allclose(found, [2.5, 0.0, -1.5, 0.2], atol=1e-12)


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_sparse_matrices_give_the_same_mode(family):
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 300), density=0.05, rng=rng, format="csr")
    z = X @ (rng.standard_normal(300) * (rng.random(300) < 0.3)) + 0.1 * rng.standard_normal(80)
    y = (z > 0).astype(float) if family == "logistic" else z
    options = {"family": family, "rate": 0.05, "tol": 1e-12}
    one, other = sparse_mode(X, y, **options), sparse_mode(X.toarray(), y, **options)
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-10)
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-5)
    assert np.count_nonzero(one.coefficients) > 8 * 4  # swept by columns, not by Gram matrix


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("family", [*FAMILIES, "multinomial"])
def test_columns_far_off_zero_change_the_intercept_only(family, convert):
    X, y = regression(15, family="gaussian" if family == "multinomial" else family)
    y = np.digitize(y, [-1.0, 1.0]) if family == "multinomial" else y
    X = np.column_stack([X, np.zeros(len(X))])
    options = {"family": family, "rate": 2.0, "tol": 1e-10}
    expected = sparse_mode(X, y, **options)
    for mean in (1e3, 1e6):  # standard deviations are about 1
        means = mean * np.linspace(-1.0, 1.0, X.shape[1])
        far = convert(X + means)
        found = sparse_mode(far, y, **options)
        # A table with means of 1e6 is rounded to 1e-10; a gap of 1e-8 or so leaves the rest.
        np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-6)
        assert not np.any(found.coefficients[-1])  # the constant column
        fit, other = (A @ s.coefficients + s.intercept for A, s in ((far, found), (X, expected)))
        if family == "multinomial":  # the same constant for all categories does not count
            fit, other = (z - z.mean(axis=1, keepdims=True) for z in (fit, other))
        np.testing.assert_allclose(fit, other, atol=1e-5)
        again = sparse_mode(far, y, **options, start=found)
        assert again.iterations == 1


def test_weights_are_the_inverse_of_a_scale_of_the_columns():
    X, y = regression(5)
    c = np.linspace(0.5, 3.0, X.shape[1])
    plain = sparse_mode(X, y, rate=3.0, tol=1e-13)
    scaled = sparse_mode(X * c, y, penalty=L1(3.0, weights=c), tol=1e-13)
    np.testing.assert_allclose(scaled.coefficients * c, plain.coefficients, atol=1e-8)


def test_a_warm_start_at_the_solution_takes_one_look():
    X, y = regression(6, family="logistic")
    solution = sparse_mode(X, y, family="logistic", rate=1.0, tol=1e-9)
    again = sparse_mode(X, y, family="logistic", rate=1.0, tol=1e-9, start=solution)
    assert again.iterations == 1


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_path_is_the_single_solutions(family, groups):
    X, y = regression(7, n=100, p=60, family=family)
    X[:, ::3] += 30.0
    penalty = Group(1.0, np.arange(60) // 5) if groups else L1(1.0)
    # Falling slowly, where the strong rule discards most, steeply, and rising.
    shares = [0.9, 0.88, 0.86, 0.84, 0.3, 0.29, 0.6]
    options = {"family": family, "penalty": penalty, "tol": 1e-10}
    rates = np.array(shares) * sparse_path(X, y, **options | {"tol": 1e-2})[0].rate
    path = sparse_path(X, y, **options, rates=rates)
    for rate, solution in zip(rates, path, strict=True):
        alone = sparse_mode(X, y, **options, rate=rate)
        assert solution.rate == alone.rate
        np.testing.assert_allclose(solution.objective, alone.objective, rtol=1e-9)
        np.testing.assert_allclose(solution.coefficients, alone.coefficients, atol=1e-4)


def test_more_columns_than_rows_and_little_penalty_interpolates():
    X, y = regression(8, n=10, p=30)
    solution = sparse_mode(X, y, rate=1e-4, tol=1e-9)
    np.testing.assert_allclose(X @ solution.coefficients + solution.intercept, y, atol=1e-2)


@pytest.mark.parametrize("family", FAMILIES)
def test_rank_deficient_designs_and_zero_columns(family):
    X, y = regression(9, family=family)
    X = np.column_stack([X, X[:, 0], np.zeros(len(X)), X[:, 1] + X[:, 2]])
    solution = sparse_mode(X, y, family=family, rate=1.0, tol=1e-9)
    assert solution.converged
    assert solution.coefficients[-2] == 0.0
    assert np.isfinite(solution.coefficients).all()


def test_a_rate_of_zero_is_the_least_squares_fit():
    X, y = regression(10)
    solution = sparse_mode(X, y, rate=0.0, tol=1e-10)
    A = np.column_stack([X, np.ones(len(X))])
    expected = np.linalg.lstsq(A, y, rcond=None)[0]
    np.testing.assert_allclose(solution.coefficients, expected[:-1], atol=1e-6)


def test_separable_labels_have_a_mode_under_the_prior():
    X = np.linspace(-1, 1, 20)[:, None]
    solution = sparse_mode(X, X[:, 0] > 0, family="logistic", rate=0.1, tol=1e-9)
    assert solution.converged
    assert 0 < solution.coefficients[0] < 1e3


def test_separable_labels_without_a_prior_say_so():
    X = np.linspace(-1, 1, 20)[:, None]
    with pytest.raises(ValueError, match="no finite mode"):
        sparse_mode(X, X[:, 0] > 0, family="logistic", rate=0.0)


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: np.asarray(X, dtype=np.float32).astype(float),
        np.ascontiguousarray,
        np.asfortranarray,
        lambda X: pd.DataFrame(X).convert_dtypes(),
        pl.DataFrame,
        lambda X: X[::1].tolist(),
        sparse.csr_matrix,
    ],
)
def test_any_kind_of_table_gives_the_same_mode(convert):
    X, y = regression(11)
    X = X.astype(np.float32).astype(float)
    expected = sparse_mode(X, y, rate=2.0, tol=1e-12).coefficients
    found = sparse_mode(convert(X), y, rate=2.0, tol=1e-12).coefficients
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_labels_of_any_two_kinds():
    X, y = regression(12, family="logistic")
    expected = sparse_mode(X, y, family="logistic", rate=1.0).coefficients
    for labels in (np.where(y > 0, "yes", "no"), y > 0, 2 * y - 1, pd.Series(y).astype("Int64")):
        found = sparse_mode(X, labels, family="logistic", rate=1.0).coefficients
        np.testing.assert_allclose(found, expected, atol=1e-12)


X0, Y0 = np.eye(3), np.array([1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.full((3, 2), np.nan)}, "column 0 has missing or infinite"),
        ({"X": pd.DataFrame({"age": [1.0, np.inf, 2.0]})}, "'age' has missing or infinite"),
        ({"X": pd.DataFrame({"sex": ["f", "m", "f"]})}, "'sex' is String"),
        ({"X": np.eye(3) * 1j}, "complex"),
        ({"X": np.ones(3)}, "two dimensions"),
        ({"X": np.empty((0, 3))}, "empty"),
        ({"X": np.eye(4)}, "`X` has 4 rows, `y` has 3"),
        ({"y": [1.0, np.nan, 2.0]}, "response 1 is nan"),
        ({"y": ["a", "b", "c"]}, "must be numbers, not text"),
        ({"y": np.eye(3)}, "one column"),
        ({"y": [1, 2, 3], "family": "logistic"}, "needs two labels, `y` has 3"),
        ({"y": [1, 1, 1], "family": "logistic"}, "nothing to predict"),
        ({"y": [1, None, 0], "family": "logistic"}, "response 1 is missing"),
        ({"y": [1.5, 2, 0], "family": "poisson"}, "whole numbers"),
        ({"y": [-1, 2, 0], "family": "poisson"}, "whole numbers"),
        ({"y": [0, 0, 0], "family": "poisson"}, "no finite mode"),
        ({"family": "gausian"}, "did you mean 'gaussian'"),
        ({"rate": -1.0}, "rate"),
        ({"rate": None}, "give a `rate`"),
        ({"penalty": L1(1.0, weights=[1.0, 2.0])}, "2 coefficients"),
        ({"penalty": L1(1.0, weights=[1.0, 0, 1], nonnegative=True)}, "small positive weight"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        sparse_mode(**{"X": X0, "y": Y0, "rate": 1.0, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": "1"}, "rate must be one number, not '1'"),
        ({"tol": None}, "`tol` must be one number, not None"),
        ({"max_iter": "5"}, "`max_iter` must be a whole number, not '5'"),
        ({"intercept": "no"}, "`intercept` must be True or False, not 'no'"),
        ({"groups": 3}, "groups must be one integer label"),
        ({"penalty": L1}, "`penalty` must be an object such as"),
        ({"start": np.zeros(3)}, "`start` must be a result of sparse_mode, not ndarray"),
    ],
)
def test_arguments_of_the_wrong_type(arguments, message):
    with pytest.raises(TypeError, match=message):
        sparse_mode(**{"X": X0, "y": Y0, "rate": 1.0, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": None}, "must be numbers, not None"),
        ({"X": np.eye(3).astype(str)}, "must be numbers, not text"),
        ({"X": [[1, "a", 2]] * 3}, "must be numbers, not text"),
        ({"X": np.array([[1, 2], [None, 3], [1, 1]])}, "column 0 has missing"),
        ({"X": pl.DataFrame({"a": [1, None, 2]})}, "'a' has missing"),
        ({"X": pl.LazyFrame({"a": [1, 3, 2]})}, "collect it first"),
        ({"X": sparse.csr_matrix([[1, 0], [0, np.nan], [1, 1]])}, "column 1 of the sparse design"),
        ({"X": sparse.csr_matrix((0, 3)), "y": []}, "shape"),
        ({"y": []}, "`y` is empty"),
        ({"y": None}, "one column of responses"),
        ({"y": ["a", 1, None], "family": "multinomial"}, "response 2 is missing"),
        ({"y": np.array(["a", 1, 2], dtype=object), "family": "multinomial"}, "several kinds"),
        ({"y": [0.5, 1.0, 2.0], "family": "multinomial"}, r"fractions \(0.5\).*gaussian"),
        ({"y": np.array([1, 0.5, 2], dtype=object), "family": "multinomial"}, "fractions"),
        ({"family": ["gaussian"]}, "unknown family"),
        ({"max_iter": 2.5}, "`max_iter` must be a whole number from 1 up, it is 2.5"),
        ({"tol": -1.0}, "`tol` must be at least 0"),
        ({"rate": [1.0, 2.0]}, "use weights"),
        (
            {"start": sparse_mode(np.eye(2), [1.0, 2.0], rate=1.0)},
            "`start` has coefficients of shape",
        ),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        sparse_mode(**{"X": X0, "y": Y0, "rate": 1.0, **arguments})


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ([], "a list of numbers"),
        (3.0, "a list of numbers"),
        ([1.0, -1.0], "negative"),
        ([1.0, None], "NaN"),
    ],
)
def test_rates_of_a_path_are_checked(rates, message):
    with pytest.raises(ValueError, match=message):
        sparse_path(X0, Y0, rates=rates)


def test_solutions_know_the_labels():
    X, y = regression(12, family="logistic")
    words = np.where(y > 0, "yes", "no")
    assert sparse_mode(X, y, rate=1.0).classes is None
    assert sparse_mode(X, words, family="logistic", rate=1.0).classes.tolist() == ["no", "yes"]
    doses = pd.Series(words).map({"no": "low", "yes": "high"})
    doses = doses.astype(pd.CategoricalDtype(["low", "none", "high"], ordered=True))
    for family in ("logistic", "multinomial"):
        found = sparse_mode(X, doses, family=family, rate=1.0)
        assert found.classes.tolist() == ["low", "high"]
    signed = sparse_mode(X, words, family="logistic", rate=1.0).coefficients
    np.testing.assert_allclose(
        sparse_mode(X, doses, family="logistic", rate=1.0).coefficients, signed
    )
    # A multinomial's last column speaks for the last label.
    assert np.vdot(found.coefficients[:, 1], signed) > 0


def test_too_few_iterations_warn():
    X, y = regression(13, n=100, p=200)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        assert not sparse_mode(X, y, rate=0.1, tol=1e-12, max_iter=1).converged


@pytest.mark.parametrize(
    "penalty",
    [
        L1,
        lambda rate: Group(rate, [0, 0, 1, 1]),
        lambda rate: Group(rate, [0, 0, 1, 1], norm=np.inf),
        lambda rate: SparseGroup(rate, [0, 0, 1, 1], group_rate=2.0 * rate),
    ],
)
def test_the_own_rate_of_a_penalty_does_not_count_on_a_path(penalty):
    X, y = regression(14, p=4)
    one, other = (sparse_path(X, y, penalty=penalty(rate)) for rate in (1.0, 7.0))
    np.testing.assert_allclose([s.rate for s in other], [s.rate for s in one], rtol=1e-12)
    none = penalty(0.0)
    if isinstance(none, SparseGroup):  # without rates it has no ratio of them: absolute values only
        one = sparse_path(X, y)
    found = sparse_path(X, y, penalty=none)
    np.testing.assert_allclose([s.rate for s in found], [s.rate for s in one], rtol=1e-12)


@pytest.mark.parametrize("penalty", [L1(1e-300), Group(1e-300, np.arange(12) // 3, norm=np.inf)])
def test_stopping_for_rounding_says_so(penalty):
    X, y = regression(15)
    with pytest.warns(ConvergenceWarning, match="accuracy of floating-point numbers is reached"):
        found = sparse_mode(X, y, penalty=penalty)
    assert found.stalled
    assert not found.converged


def test_responses_beyond_the_largest_square_are_refused():
    X, y = regression(16)
    for solve in (sparse_mode, sparse_path):
        options = {"rate": 1e155} if solve is sparse_mode else {}
        with pytest.raises(ValueError, match=r"responses are so large.*power of ten"):
            solve(X, y * 1e155, **options)
    with (
        np.errstate(all="ignore"),
        pytest.warns(ConvergenceWarning, match=r"gap inf.*Sums overflow.*power of ten"),
    ):
        found = sparse_mode(X * 1e155, y, penalty=Group(1.0, np.arange(12) // 3))
    assert not found.converged
    # Responses of large squares are solved.
    expected = sparse_mode(X, y, rate=3.0).coefficients
    found = sparse_mode(X, y * 1e150, rate=3e150).coefficients
    np.testing.assert_allclose(found, expected * 1e150, rtol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        loss_for("gaussian", [1.0, -2.0, 0.3]),
        Logistic(np.array([1.0, 0.0, 1.0])),
        Poisson(np.array([2.0, 0.0, 1.0])),
        Huber(np.array([1.0, -2.0, 0.3]), 0.7),
        loss_for("multinomial", ["a", "b", "a"]),
    ],
)
def test_losses_have_their_derivatives_and_duals(loss):
    rng = np.random.default_rng(0)
    for _ in range(5):
        z, d = 2 * rng.standard_normal(loss.shape), 1e-6 * rng.standard_normal(loss.shape)
        slope = np.vdot(loss.derivative(z), d)
        np.testing.assert_allclose(loss.value(z + d) - loss.value(z - d), 2 * slope, atol=1e-10)
        alpha = -loss.derivative(z)
        # Fenchel and Young: equality at the matching dual point, inequality at any other.
        np.testing.assert_allclose(loss.value(z), loss.dual(alpha) - np.vdot(alpha, z), atol=1e-10)
        other = -loss.derivative(2 * rng.standard_normal(loss.shape))
        assert loss.value(z) >= loss.dual(other) - np.vdot(other, z) - 1e-10


def test_tolerances_of_counts_are_relative_to_the_deviance():
    """The Poisson loss without the factorials of the counts goes far below zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 20))
    y = rng.poisson(np.exp(3.0 + 0.2 * X[:, 0])).astype(float)
    rough, fine = (sparse_mode(X, y, family="poisson", rate=5.0, tol=t) for t in (1e-2, 1e-12))
    deviance = (special.xlogy(y, y / y.mean()) - y + y.mean()).sum()
    assert 0.0 < rough.gap <= 1e-2 * deviance
    assert fine.iterations > rough.iterations
    assert fine.gap <= 1e-12 * deviance


def test_a_loss_of_the_users_own():
    X, y = regression(14, family="logistic")
    own = Custom(lambda z: (np.logaddexp(0, z).sum() - y @ z, 1 / (1 + np.exp(-z)) - y), len(y))
    expected = sparse_mode(X, y, family="logistic", rate=2.0, tol=1e-12)
    found = sparse_mode(X, y, family=own, rate=2.0, tol=1e-9)
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-9)
    assert found.method != expected.method


LISTS = {
    "group": [[0, 1, 2], [3, 4], [5, 6, 7], [8, 9, 10, 11]],
    "nuclear": [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]],
    "tree": [[0, 1], [2], [0, 1, 2, 3], list(range(4, 12)), [7, 8]],
}


def grouped(kind, norm):
    if kind == "tree":
        return Tree(1.0, LISTS["tree"], norm=norm)
    if kind == "nuclear":
        return Group(1.0, LISTS["nuclear"], norm="nuclear", shapes=(2, 2))
    if kind == "sparse group":
        return SparseGroup(1.0, LISTS["group"], group_rate=0.7, norm=norm)
    return Group(1.0, LISTS["group"], norm=norm)


def grouped_reference(kind, norm, w):
    """The same penalty as an expression of cvxpy, at rate 1."""
    if kind == "nuclear":
        return sum(cp.normNuc(cp.reshape(w[g], (2, 2), order="C")) for g in LISTS["nuclear"])
    total = sum(cp.norm(w[g], norm) for g in LISTS["tree" if kind == "tree" else "group"])
    return cp.norm1(w) + 0.7 * total if kind == "sparse group" else total


@pytest.mark.parametrize("family", ["gaussian", "logistic", "poisson"])
@pytest.mark.parametrize(
    ("kind", "norm"),
    [*itertools.product(["group", "sparse group", "tree"], [2, np.inf]), ("nuclear", None)],
)
@given(st.integers(0, 10_000), st.floats(0.02, 0.9))
@settings(max_examples=3, deadline=None, derandomize=True)
def test_penalties_of_groups_agree_with_cvxpy(kind, norm, family, seed, share):
    X, y = regression(seed, family=family)
    penalty = grouped(kind, norm)
    [null] = sparse_path(X, y, family=family, penalty=penalty, rates=[1e9])
    assert not null.coefficients.any()
    rate = share * penalty.rate_max(null.gradient)
    found = sparse_mode(X, y, family=family, penalty=penalty, rate=rate, tol=1e-10)
    w, b = cp.Variable(12), cp.Variable()
    loss = reference_loss(X @ w + b, y, family)
    problem = cp.Problem(cp.Minimize(loss + rate * grouped_reference(kind, norm, w)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says if it falls short of these tolerances
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assume(problem.status == "optimal")
    np.testing.assert_allclose(found.objective, problem.value, rtol=1e-8, atol=1e-8)
    assert found.converged


LABELS = np.repeat(np.arange(20), 3)
BRANCHES = [list(range(3 * i, 3 * i + 3)) for i in range(20)] + [[0], [1, 2], list(range(30))]
SEPARATE = {
    "maximum": Group(1.0, np.r_[LABELS[:-3], [-1, -1, -1]], norm=np.inf),
    "nuclear": Group(1.0, np.repeat(np.arange(15), 4), norm="nuclear", shapes=(2, 2)),
    "sparse groups": SparseGroup(1.0, LABELS, group_rate=0.7, weights=np.arange(20.0)),
    "tree": Tree(1.0, BRANCHES, size=62),
    "tree, maximum": Tree(1.0, BRANCHES, weights=[0.0, *np.ones(22)], norm=np.inf, size=62),
}


@pytest.mark.parametrize("kind", SEPARATE)
def test_penalties_of_some_coordinates_are_those_of_all_with_zeros(kind):
    penalty, rng = SEPARATE[kind], np.random.default_rng(0)
    block = np.unique(penalty.blocks(), return_inverse=True)[1]
    index = np.flatnonzero(np.isin(block, rng.choice(block.max() + 1, 12, replace=False)))
    part = penalty.restricted(index)
    v, d = 3.0 * rng.standard_normal((2, penalty.size))
    v[np.setdiff1d(np.arange(penalty.size), index)] = 0.0
    np.testing.assert_allclose(part.value(v[index]), penalty.value(v), rtol=1e-13)
    w = penalty.prox(v)
    np.testing.assert_allclose(part.prox(v[index]), w[index], atol=1e-13)
    np.testing.assert_array_equal(part.penalised(), penalty.penalised()[index])
    g = np.where(w != 0, 0.0, d)
    np.testing.assert_allclose(
        part.pseudo_gradient(w[index], g[index]), penalty.pseudo_gradient(w, g)[index], atol=1e-12
    )


@pytest.mark.parametrize("kind", ["maximum", "sparse groups", "tree", "multinomial"])
def test_working_sets_end_at_the_mode(kind, monkeypatch):
    sizes = []

    def counted(value_and_gradient, x, *args, **kwargs):
        sizes.append(len(x))
        return soft_threshold_steps(value_and_gradient, x, *args, **kwargs)

    monkeypatch.setattr(general, "soft_threshold_steps", counted)
    monkeypatch.setattr(general, "_FIRST_SIZE", 2)
    rows = SparseGroup(1.0, np.arange(60) // 6, group_rate=1.0)
    penalty = rows if kind == "multinomial" else SEPARATE[kind]
    X, y = regression(22, n=150, p=20 if kind == "multinomial" else penalty.size)
    family = "multinomial" if kind == "multinomial" else "gaussian"
    y = np.digitize(y, [-1.0, 1.0]) if family == "multinomial" else y
    options = {"family": family, "penalty": penalty, "tol": 1e-8}
    # Where the start has nothing but the intercepts, its gradient gives the largest rate.
    (null,) = sparse_path(X, y, **options, rates=[1e6])
    rate = 0.5 * penalty.rate_max(np.ravel(null.gradient))
    part = sparse_mode(X, y, **options, rate=rate)
    assert sizes[0] < 0.5 * np.size(part.coefficients)
    monkeypatch.setattr(general, "_rows_together", lambda blocks, p, k: np.zeros(p, dtype=int))
    del sizes[:]
    whole = sparse_mode(X, y, **options, rate=rate)
    assert set(sizes) == {np.size(whole.coefficients) + np.size(whole.intercept)}
    # Both are within their gap of the mode.
    np.testing.assert_allclose(part.objective, whole.objective, rtol=1e-7)
    np.testing.assert_array_equal(part.coefficients != 0, whole.coefficients != 0)


def categories(seed, n=80, p=5, k=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    scores = X[:, np.arange(k) % p] + rng.gumbel(size=(n, k))
    return X, np.array(["a", "b", "c", "d"])[np.argmax(scores, axis=1)]


def multinomial_reference(X, y, size, *, nonnegative=False):
    """Optimal value by an interior-point method; ``size`` makes the penalty of the coefficients."""
    labels = np.eye(len(np.unique(y)))[np.unique(y, return_inverse=True)[1]]
    k = labels.shape[1]
    W, b = cp.Variable((X.shape[1], k)), cp.Variable(k)
    Z = X @ W + np.ones((len(X), 1)) @ cp.reshape(b, (1, k), order="C")
    loss = cp.sum(cp.log_sum_exp(Z, axis=1)) - cp.sum(cp.multiply(labels, Z))
    problem = cp.Problem(cp.Minimize(loss + size(W)), [W >= 0] if nonnegative else [])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value


@pytest.mark.parametrize("kind", ["l1", "rows", "weights", "nonnegative", "maximum norms"])
def test_multinomial_agrees_with_cvxpy(kind):
    X, y = categories(0)
    weights = np.arange(15.0) % 4 / 2  # some coefficients without penalty, of some categories
    penalty, size = {
        "l1": (L1(3.0), lambda W: 3.0 * cp.sum(cp.abs(W))),
        "rows": (
            Group(3.0, np.repeat(np.arange(5), 3)),
            lambda W: 3.0 * cp.sum(cp.norm(W, 2, axis=1)),
        ),
        "weights": (
            L1(3.0, weights=weights),
            lambda W: 3.0 * cp.sum(cp.multiply(weights.reshape(5, 3), cp.abs(W))),
        ),
        "nonnegative": (L1(3.0, nonnegative=True), lambda W: 3.0 * cp.sum(W)),
        "maximum norms": (
            Group(3.0, np.repeat(np.arange(5), 3), norm=np.inf),
            lambda W: 3.0 * cp.sum(cp.max(cp.abs(W), axis=1)),
        ),
    }[kind]
    found = sparse_mode(X, y, family="multinomial", penalty=penalty, tol=1e-10)
    value = multinomial_reference(X, y, size, nonnegative=kind == "nonnegative")
    np.testing.assert_allclose(found.objective, value, rtol=1e-8)
    assert found.coefficients.shape == found.gradient.shape == (5, 3)
    assert abs(found.intercept.sum()) < 1e-12  # no shift of the constants is preferred
    assert found.converged
    newton = kind != "maximum norms"
    assert found.method == ("proximal Newton" if newton else "quasi-Newton soft-threshold")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rows", [False, True])
def test_multinomial_newton_steps_agree_with_quasi_newton_steps(intercept, rows):
    X, y = categories(3, n=60, p=40, k=4)
    penalty = Group(4.0, np.repeat(np.arange(40), 4)) if rows else L1(2.0)
    options = {"family": "multinomial", "intercept": intercept}
    found = sparse_mode(X, y, penalty=penalty, tol=1e-11, **options)
    design = as_design(X, intercept=intercept)
    problem = general.GeneralRegression(design, loss_for("multinomial", y), penalty)
    other = problem.solve(penalty, problem.null, tol=1e-7, max_iter=20_000)
    # Certified to 1e-11 and 1e-7 of the loss at zero, which is about twice the objective.
    assert -1e-10 < other.objective / found.objective - 1 < 3e-7


def test_multinomial_of_sparse_columns_is_swept_column_by_column(monkeypatch):
    rng = np.random.default_rng(5)
    X = sparse.random_array((80, 200), density=0.05, rng=rng, format="csc")
    y = np.argmax((X[:, :3].toarray() * 4) + rng.gumbel(size=(80, 3)), axis=1)
    used = []
    columns = quadratic.ColumnModel.__init__
    monkeypatch.setattr(
        quadratic.ColumnModel,
        "__init__",
        lambda self, B, r: (used.append(B.shape), columns(self, B, r))[1],
    )
    options = {"family": "multinomial", "rate": 0.3, "tol": 1e-9}
    swept = sparse_mode(X, y, **options)
    assert used
    count = len(used)
    dense = sparse_mode(X.toarray(), y, **options)
    assert len(used) == count
    np.testing.assert_allclose(swept.objective, dense.objective, rtol=1e-8)
    np.testing.assert_allclose(swept.coefficients, dense.coefficients, atol=1e-4)


def test_factored_columns_have_the_hessian_and_the_gradient_of_the_multinomial():
    rng = np.random.default_rng(6)
    X = sparse.random_array((30, 6), density=0.4, rng=rng, format="csc")
    loss = loss_for("multinomial", np.arange(30) % 3)
    design = CategoryDesign(as_design(X, intercept=True), 3)
    index = rng.permutation(design.p)[:12]
    block, z = design.columns(index), rng.standard_normal(design.n)
    weights, derivative = loss.curvature(z), loss.derivative(z)
    B, r = block.factored(weights, derivative)
    whole = np.kron(np.column_stack([X.toarray(), np.ones(30)]), np.eye(3))[:, index]
    np.testing.assert_allclose((B.T @ B).toarray(), loss.hessian(z, whole), atol=1e-12)
    np.testing.assert_allclose(B.T @ r, whole.T @ derivative, atol=1e-12)
    np.testing.assert_allclose(block.T @ derivative, whole.T @ derivative, atol=1e-12)
    v = rng.standard_normal(12)
    np.testing.assert_allclose(block @ v, whole @ v, atol=1e-12)
    without = CategoryDesign(as_design(X, intercept=False), 3)
    block = without.columns(np.arange(without.p))
    hessian = loss.hessian(z, np.kron(X.toarray(), np.eye(3)))
    np.testing.assert_allclose(without.gram(block, weights), hessian, atol=1e-12)


def test_groups_of_one_are_the_lasso():
    X, y = regression(21)
    lasso = sparse_mode(X, y, rate=5.0, tol=1e-12)
    groups = sparse_mode(X, y, penalty=Group(5.0, np.arange(12)), tol=1e-12)
    np.testing.assert_allclose(groups.coefficients, lasso.coefficients, atol=1e-6)


def test_groups_are_short_for_their_penalty_and_options_are_checked(rng):
    X, y = rng.normal(size=(40, 5)), rng.normal(size=40)
    groups = [0, 0, 1, 1, 1]
    short = sparse_mode(X, y, rate=3.0, groups=groups)
    np.testing.assert_allclose(
        short.coefficients, sparse_mode(X, y, penalty=Group(3.0, groups)).coefficients
    )
    for options, words in (
        ({"groups": groups}, "rate"),
        ({"groups": groups, "penalty": L1(1.0)}, "not both"),
        ({"penalty": "l1"}, "L1"),
        ({"rate": 1.0, "max_iter": 0}, "max_iter"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            sparse_mode(X, y, **options)


def test_ordered_labels_keep_their_order_and_masks_are_refused(rng):
    X = rng.normal(size=(60, 3))
    high = X[:, 0] + 0.5 * rng.normal(size=60) > 0
    labels = pd.Categorical(np.where(high, "high", "low"), ["low", "high"], ordered=True)
    fits = [
        sparse_mode(X, y, family="logistic", rate=2.0).coefficients
        for y in (pd.Series(labels), labels, high)
    ]
    np.testing.assert_array_equal(fits[0], fits[2])
    np.testing.assert_array_equal(fits[1], fits[2])
    hidden = np.ma.masked_array(X[:, 0], np.arange(60) == 7)
    with pytest.raises(ValueError, match="response 7 is masked"):
        sparse_mode(X, hidden, rate=1.0)
    with pytest.raises(ValueError, match="masked"):
        sparse_mode(np.ma.masked_array(X, X > 2), X[:, 0], rate=1.0)
