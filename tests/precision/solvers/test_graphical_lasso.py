import re
import subprocess
import sys

from pathlib import Path

import numpy as np
import pytest

from tools.kkt import assert_kkt

from bayesstruct.solvers import (
    ConvergenceWarning,
    graphical_lasso,
    graphical_lasso_gap,
    graphical_lasso_path,
)


def correlation(p, n, seed, factors=2):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) + rng.standard_normal((n, factors)) @ rng.standard_normal(
        (factors, p)
    )
    return np.corrcoef(x, rowvar=False)


def penalty(p, lam, diagonal=0.0):
    matrix = np.full((p, p), float(lam))
    np.fill_diagonal(matrix, diagonal)
    return matrix


def random_penalty(p, seed, diagonal=0.0):
    u = np.random.default_rng(seed).uniform(0.02, 0.4, (p, p))
    matrix = (u + u.T) / 2
    np.fill_diagonal(matrix, diagonal)
    return matrix


def reference(S, lam):
    import cvxpy as cp

    K = cp.Variable(S.shape, PSD=True)
    objective = cp.log_det(K) - cp.trace(S @ K) - cp.sum(cp.multiply(lam, cp.abs(K)))
    problem = cp.Problem(cp.Maximize(objective))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return K.value, problem.value


def log_density(K, S, lam):
    """Objective of the graphical lasso."""
    return np.linalg.slogdet(K)[1] - np.sum(S * K) - np.sum(lam * np.abs(K))


@pytest.mark.parametrize("p, n, seed", [(5, 40, 0), (6, 5, 1), (8, 30, 2)])
@pytest.mark.parametrize("kind", ["scalar", "scalar and diagonal", "matrix", "matrix and diagonal"])
@pytest.mark.filterwarnings("ignore")  # cvxpy and its solvers warn for themselves
def test_equals_cvxpy(p, n, seed, kind):
    S = correlation(p, n, seed)
    diagonal = 0.15 if "diagonal" in kind else 0.0
    if kind.startswith("scalar"):
        lam = penalty(p, 0.15, diagonal)
        solution = graphical_lasso(S, 0.15, penalize_diagonal=diagonal > 0, tol=1e-15)
    else:
        lam = random_penalty(p, seed, diagonal)
        solution = graphical_lasso(S, lam, tol=1e-15)
    K, value = reference(S, lam)
    # The interior-point method is as exact as its objective, and its matrix as the root of that.
    assert abs(solution.objective - value) < 1e-7
    assert solution.objective > log_density(K, S, lam) - 1e-12
    np.testing.assert_allclose(solution.precision, K, atol=1e-4)


@pytest.mark.parametrize(
    "p, n, lam",
    [(20, 200, 0.3), (20, 200, 0.01), (60, 30, 0.1), (60, 30, 0.01), (80, 400, 0.05)],
)
@pytest.mark.parametrize("diagonal", [0.0, 0.02])
def test_kkt_and_gap(p, n, lam, diagonal):
    S = correlation(p, n, seed=p)
    lam = penalty(p, lam, diagonal)
    solution = graphical_lasso(S, lam, tol=1e-10)
    assert solution.converged and 0 <= solution.gap <= 1e-10 * p
    # The gap is about half the squared, weighted residual.
    assert_kkt(solution.precision, S, lam, tol=10 * np.sqrt(2e-10 * p))
    np.testing.assert_allclose(
        solution.precision @ solution.covariance, np.eye(p), atol=1e-9, rtol=0
    )
    K = solution.precision
    value = log_density(K, S, lam)
    np.testing.assert_allclose(solution.objective, value, rtol=1e-10)


def test_tight_tolerance_means_tight_kkt():
    S = correlation(40, 100, seed=4)
    solution = graphical_lasso(S, 0.1, tol=1e-16)
    assert_kkt(solution.precision, S, penalty(40, 0.1), tol=1e-7)


def test_kkt_tool_fails_off_the_solution():
    S, lam = correlation(6, 50, seed=0), penalty(6, 0.1)
    K = graphical_lasso(S, lam, tol=1e-14).precision.copy()
    assert_kkt(K, S, lam, tol=1e-6)
    K[0, 0] *= 1.01
    with pytest.raises(AssertionError, match="KKT residual"):
        assert_kkt(K, S, lam, tol=1e-6)


@pytest.mark.parametrize("shift", [0.0, 1e-3, 0.05, 0.5])
def test_gap_bounds_the_distance_to_the_optimum(shift):
    S, lam = correlation(15, 60, seed=3), penalty(15, 0.1)
    best = graphical_lasso(S, lam, tol=1e-14)
    K = best.precision + shift * np.diag(np.linspace(0, 1, 15))
    value = log_density(K, S, lam)
    gap = graphical_lasso_gap(K, S, lam)
    assert best.objective - value <= gap + 1e-12
    # Useful too: of the order of the distance while the dual point is positive definite.
    assert gap <= 100 * (best.objective - value) + 1e-10 or shift == 0.5


def test_gap_of_an_indefinite_matrix_is_infinite():
    assert graphical_lasso_gap(-np.eye(3), np.eye(3), 0.1) == np.inf


def test_permutation_equivariance():
    S, lam = correlation(25, 50, seed=5), random_penalty(25, 5)
    order = np.random.default_rng(0).permutation(25)
    pick = np.ix_(order, order)
    direct = graphical_lasso(S, lam, tol=1e-15).precision[pick]
    permuted = graphical_lasso(S[pick], lam[pick], tol=1e-15).precision
    np.testing.assert_allclose(permuted, direct, atol=1e-6)


def test_blocks_are_solved_separately():
    a, b = correlation(7, 40, seed=6), correlation(9, 40, seed=7)
    S = np.zeros((17, 17))  # the last variable is alone
    S[:7, :7], S[7:16, 7:16], S[16, 16] = a, b, 2.0
    solution = graphical_lasso(S, 0.1, tol=1e-15)
    expected = np.zeros((17, 17))
    expected[:7, :7] = graphical_lasso(a, 0.1, tol=1e-15).precision
    expected[7:16, 7:16] = graphical_lasso(b, 0.1, tol=1e-15).precision
    expected[16, 16] = 0.5
    np.testing.assert_allclose(solution.precision, expected, atol=1e-12)
    whole = graphical_lasso(S, 0.1, tol=1e-15, screen=False)
    np.testing.assert_allclose(whole.precision, expected, atol=1e-6)
    np.testing.assert_allclose(whole.objective, solution.objective, atol=1e-9)


@pytest.mark.parametrize("lam", [0.2, 0.35, 0.5])
def test_screening_changes_nothing(lam):
    S = correlation(30, 60, seed=8, factors=1)
    screened = graphical_lasso(S, lam, tol=1e-15)
    whole = graphical_lasso(S, lam, tol=1e-15, screen=False)
    np.testing.assert_allclose(screened.precision, whole.precision, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_scaling_of_the_problem(scale):
    S, lam = correlation(12, 40, seed=9), random_penalty(12, 9, 0.1)
    base = graphical_lasso(S, lam, tol=1e-14)
    scaled = graphical_lasso(scale * S, scale * lam, tol=1e-14)
    np.testing.assert_allclose(scaled.precision * scale, base.precision, atol=1e-7)


def test_scaling_of_the_variables():
    S, lam = correlation(12, 40, seed=9), random_penalty(12, 9, 0.1)
    d = np.logspace(-3, 3, 12)
    base = graphical_lasso(S, lam, tol=1e-14)
    scaled = graphical_lasso(S * np.outer(d, d), lam * np.outer(d, d), tol=1e-14)
    np.testing.assert_allclose(scaled.precision * np.outer(d, d), base.precision, atol=1e-7)


@pytest.mark.parametrize("penalize", [False, True])
def test_large_penalty_gives_a_diagonal(penalize):
    S = correlation(10, 30, seed=10)
    lam = np.abs(S - np.diag(np.diag(S))).max()
    solution = graphical_lasso(S, lam, penalize_diagonal=penalize)
    expected = np.diag(1.0 / (np.diag(S) + penalize * lam))
    np.testing.assert_allclose(solution.precision, expected, rtol=1e-14)


def test_one_variable():
    solution = graphical_lasso([[2.0]], 0.5, penalize_diagonal=True)
    np.testing.assert_allclose(solution.precision, [[0.4]])
    np.testing.assert_allclose(solution.objective, np.log(0.4) - 1)
    assert solution.gap == 0 and solution.converged


@pytest.mark.parametrize("s, lam", [(0.6, 0.2), (-0.9, 0.05), (0.1, 0.3)])
def test_two_variables(s, lam):
    S = np.array([[1.0, s], [s, 2.0]])
    w = np.sign(s) * max(abs(s) - lam, 0)
    expected = np.linalg.inv([[1.0, w], [w, 2.0]])
    np.testing.assert_allclose(graphical_lasso(S, lam, tol=1e-15).precision, expected, atol=1e-7)


def test_tree_has_a_closed_form():
    # A chain weak enough for the implied correlations of its ends to stay within the penalty:
    # K_ij = -r / (1 - r^2) on edges, K_ii = 1 + sum of r^2 / (1 - r^2).
    S = np.eye(4)
    for i, s in enumerate([0.5, -0.3, 0.4]):
        S[i, i + 1] = S[i + 1, i] = s
    r = np.sign(S) * np.maximum(np.abs(S) - 0.1, 0)
    np.fill_diagonal(r, 0)
    expected = np.diag(1 + np.sum(r**2 / (1 - r**2), axis=1)) - r / (1 - r**2)
    np.testing.assert_allclose(graphical_lasso(S, 0.1, tol=1e-15).precision, expected, atol=1e-7)


def test_no_penalty_is_the_inverse():
    S = correlation(8, 100, seed=11)
    np.testing.assert_allclose(graphical_lasso(S, 0.0).precision, np.linalg.inv(S), rtol=1e-8)


def test_some_penalties_may_be_zero():
    S, lam = correlation(8, 100, seed=12), random_penalty(8, 12)
    lam[0, 1:4] = lam[1:4, 0] = 0
    solution = graphical_lasso(S, lam, tol=1e-15)
    assert np.all(solution.precision[0, 1:4] != 0)
    assert_kkt(solution.precision, S, lam, tol=1e-6)


def test_warm_start_converges_at_once():
    S = correlation(40, 80, seed=13)
    cold = graphical_lasso(S, 0.1, tol=1e-10)
    for init in (cold, cold.precision):
        warm = graphical_lasso(S, 0.1, tol=1e-10, init=init)
        assert warm.iterations <= 1
        np.testing.assert_allclose(warm.precision, cold.precision, atol=1e-5)


def test_useless_warm_start_does_no_harm():
    S = correlation(40, 80, seed=13)
    cold = graphical_lasso(S, 0.1, tol=1e-14)
    for init in (np.eye(40) * 1e3, -np.eye(40)):
        warm = graphical_lasso(S, 0.1, tol=1e-14, init=init)
        np.testing.assert_allclose(warm.precision, cold.precision, atol=1e-6)


def test_path_equals_cold_starts():
    S = correlation(30, 60, seed=14)
    lams = [0.5, 0.3, 0.2, 0.19, 0.05]
    for lam, solution in zip(lams, graphical_lasso_path(S, lams, tol=1e-14), strict=True):
        cold = graphical_lasso(S, lam, tol=1e-14)
        np.testing.assert_allclose(solution.precision, cold.precision, atol=1e-6)
        assert solution.converged


@pytest.mark.parametrize("n, lam", [(10, 0.3), (10, 0.02), (25, 0.005)])
def test_fewer_rows_than_variables(n, lam):
    S = correlation(50, n, seed=15)
    assert np.linalg.eigvalsh(S)[0] < 1e-10
    solution = graphical_lasso(S, lam, tol=1e-15)
    assert_kkt(solution.precision, S, penalty(50, lam), tol=1e-4 * solution.precision.max())


def test_medium_problem_crosses_the_blocking_of_the_factorisation():
    S = correlation(150, 300, seed=16)
    solution = graphical_lasso(S, 0.15, tol=1e-15)
    assert_kkt(solution.precision, S, penalty(150, 0.15), tol=1e-6)


def test_agrees_with_scikit_learn():
    from sklearn.covariance import graphical_lasso as peer

    S = correlation(20, 60, seed=17)
    _, K = peer(S, 0.15, tol=1e-9, enet_tol=1e-9, max_iter=1000)
    np.testing.assert_allclose(graphical_lasso(S, 0.15, tol=1e-15).precision, K, atol=1e-5)


def test_posterior_mode_under_wangs_prior():
    # The penalties in the docstring: no nearby matrix has a larger posterior density.
    rng = np.random.default_rng(18)
    n, p, rate, diagonal_rate = 30, 6, 4.0, 3.0
    x = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    scatter = x.T @ x

    def log_posterior(K):
        likelihood = 0.5 * n * np.linalg.slogdet(K)[1] - 0.5 * np.sum(scatter * K)
        off = np.abs(K[np.triu_indices(p, 1)]).sum()
        return likelihood - rate * off - diagonal_rate * np.trace(K)

    lam = penalty(p, rate / n, 2 * diagonal_rate / n)
    mode = graphical_lasso(scatter / n, lam, tol=1e-15).precision
    best = log_posterior(mode)
    for _ in range(1000):
        E = rng.standard_normal((p, p)) * rng.choice([1e-4, 1e-3, 1e-2])
        K = mode + (E + E.T) * np.sqrt(np.outer(np.diag(mode), np.diag(mode)))
        if np.linalg.eigvalsh(K)[0] > 0:
            assert log_posterior(K) < best


@pytest.mark.parametrize(
    "S, lam, message",
    [
        (np.ones((2, 3)), 0.1, "S must be a square matrix"),
        (np.ones(3), 0.1, "S must be a square matrix"),
        (np.zeros((0, 0)), 0.1, "S must be a square matrix"),
        ([[1.0, 0.5], [0.2, 1.0]], 0.1, "S must be symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], 0.1, "S contains NaN"),
        (-np.eye(2), 0.1, "negative diagonal entry at index 0"),
        (np.eye(2), -0.1, "non-negative"),
        (np.eye(2), np.nan, "non-negative and finite"),
        (np.eye(2), np.ones((3, 3)), "lam has shape"),
        (np.eye(2), np.array([[0, 1.0], [2.0, 0]]), "lam must be symmetric"),
        (np.eye(2), np.array([[0, -1.0], [-1.0, 0]]), "non-negative"),
        (np.diag([1.0, 0.0, 2.0]), 0.1, "zero on the diagonal at index 1"),
        (np.ones((2, 2)), 0.0, "variables 0 and 1 are perfectly correlated"),
        (np.array([[1, 1, 0], [1, 2, 1], [0, 1, 1.0]]), 0.0, "Unbounded"),
    ],
)
def test_errors(S, lam, message):
    with pytest.raises(ValueError, match=message):
        graphical_lasso(S, lam)


def test_malformed_start():
    with pytest.raises(ValueError, match="init has shape"):
        graphical_lasso(np.eye(2), 0.1, init=np.eye(3))


def test_zero_variance_is_allowed_with_a_penalised_diagonal():
    S = np.diag([1.0, 0.0])
    K = graphical_lasso(S, 0.1, penalize_diagonal=True).precision
    np.testing.assert_allclose(np.diag(K), [1 / 1.1, 10])


def test_perfect_correlation_is_allowed_with_a_penalty():
    S = np.ones((3, 3))
    solution = graphical_lasso(S, 0.1, tol=1e-15)
    assert_kkt(solution.precision, S, penalty(3, 0.1), tol=1e-6)


def test_convergence_warning():
    S = correlation(60, 30, seed=19)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 iterations with gap"):
        solution = graphical_lasso(S, 0.003, tol=1e-12, max_iter=1)
    assert not solution.converged and solution.iterations == 1


def test_input_is_left_alone():
    S, lam = correlation(10, 40, seed=20), random_penalty(10, 20)
    before = S.copy(), lam.copy()
    graphical_lasso(S, lam)
    np.testing.assert_array_equal(S, before[0])
    np.testing.assert_array_equal(lam, before[1])


def test_import_leaves_numba_alone():
    code = "import sys, bayesstruct.solvers; print('numba' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout == "False\n"


def test_solver_needs_neither_pymc_nor_pytensor():
    from bayesstruct.precision.kernels import graphical_lasso as kernel

    for module in (sys.modules["bayesstruct.precision.solvers.graphical_lasso"], kernel):
        source = Path(module.__file__).read_text()
        assert not re.search(r"^\s*(import|from) (pymc|pytensor)", source, re.MULTILINE)
