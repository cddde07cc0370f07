import numpy as np
import pytest

from bayesstruct.precision.kernels.multi_task import (
    diagonal_l2,
    diagonal_linf,
    knapsack,
    multi_task_sweep,
    trust_region,
)
from bayesstruct.precision.solvers.multi_task import multi_task_gap, objective
from bayesstruct.solvers import ConvergenceWarning, graphical_lasso, multi_task_graphical_lasso

NORMS = {"l2": 2, "linf": np.inf}
ROWS = np.array([20.0, 40.0, 30.0])


def problem(p=6, tasks=3, seed=3):
    """Covariance matrices of tables with a common graph and their numbers of rows."""
    rng = np.random.default_rng(seed)
    graph = np.triu(rng.random((p, p)) < 0.4, 1)
    n, S = np.resize(ROWS, tasks), []
    for k in range(tasks):
        A = graph * rng.uniform(-1, 1, (p, p))
        A = A + A.T
        K = A + np.eye(p) * (max(0.0, -np.linalg.eigvalsh(A).min()) + 0.3)
        rows = rng.multivariate_normal(np.zeros(p), np.linalg.inv(K), size=int(n[k]))
        S.append(rows.T @ rows / n[k])
    return np.array(S), n


def reference(S, n, rate, order, diagonal_rate):
    import cvxpy as cp

    tasks, p, _ = S.shape
    K = [cp.Variable((p, p), symmetric=True) for _ in range(tasks)]
    fit = [0.5 * m * (cp.log_det(k) - cp.trace(s @ k)) for m, s, k in zip(n, S, K, strict=True)]
    name = "inf" if order == np.inf else 2
    pairs = [
        (rate if i < j else diagonal_rate) * cp.norm(cp.hstack([k[i, j] for k in K]), name)
        for i in range(p)
        for j in range(i, p)
    ]
    problem = cp.Problem(cp.Maximize(sum(fit) - sum(pairs)))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value, np.array([k.value for k in K])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("rate, diagonal_rate", [(2.0, 0.0), (6.0, 3.0), (15.0, 7.5)])
@pytest.mark.filterwarnings("ignore")  # cvxpy and its solvers warn for themselves
def test_equals_cvxpy(norm, rate, diagonal_rate):
    S, n = problem(p=5)
    solution = multi_task_graphical_lasso(
        S, n, rate, norm=norm, diagonal_rate=diagonal_rate, tol=1e-16
    )
    value, K = reference(S, n, rate, NORMS[norm], diagonal_rate)
    # The interior-point method is as exact as its objective, and its matrix as the root of that.
    assert abs(solution.objective - value) < 1e-6
    np.testing.assert_allclose(solution.precision, K, atol=1e-3)
    assert solution.gap <= 1e-16 and solution.converged


# Solutions of the subproblems to ten digits, from a general solver.
ANCHORS = [
    (knapsack, 1.0, (4.0, -4.0, 0.6666666667)),
    (knapsack, 4.0, (2.0, -2.0, 0.6666666667)),
    (knapsack, 8.0, (0.2222222222, -0.2222222222, 0.2222222222)),
    (knapsack, 9.0, (0.0, 0.0, 0.0)),
    (trust_region, 1.0, (4.4234348038, -3.3949920632, 0.6292858309)),
    (trust_region, 4.0, (0.9192590363, -1.0628410140, 0.3470114868)),
    (trust_region, 5.4, (0.0, 0.0, 0.0)),
]


@pytest.mark.parametrize("solve, rate, expected", ANCHORS)
def test_subproblem_off_the_diagonal(solve, rate, expected):
    x = np.empty(3)
    solve(np.array([0.5, 1.0, 3.0]), np.array([3.0, -4.0, 2.0]), rate, x)
    np.testing.assert_allclose(x, expected, atol=5e-10)


DIAGONAL_ANCHORS = [
    (diagonal_linf, 2.0, (1.3111111111, 0.8, 2.1538461538)),
    (diagonal_linf, 10.0, (1.3111111111, 0.8, 1.8823529412)),
    (diagonal_l2, 2.0, (1.2551227388, 0.7904894995, 2.1695445837)),
    (diagonal_l2, 10.0, (1.0835687651, 0.7516595924, 1.9300405311)),
]


@pytest.mark.parametrize("solve, rate, expected", DIAGONAL_ANCHORS)
def test_subproblem_of_the_diagonal(solve, rate, expected):
    q, c, b = np.array([20.0, 40.0, 30.0]), np.array([18.0, 50.0, 24.0]), np.array([0.2, 0.0, 1.0])
    r = np.empty(3)
    solve(q, c, b, rate, r)
    np.testing.assert_allclose(b + q / (c + r), expected, atol=5e-10)


@pytest.mark.parametrize("seed", range(20))
def test_optimality_of_subproblems(seed):
    rng = np.random.default_rng(seed)
    tasks = 1 + seed % 7
    q, c = rng.uniform(0.01, 5, tasks), 3 * rng.normal(size=tasks)
    x, z = np.empty(tasks), np.empty(tasks)
    for solve, dual in (knapsack, 1), (trust_region, 2):
        rate = rng.uniform(0.001, 1.0) * np.linalg.norm(c, dual)
        solve(q, c, rate, x)
        order = np.inf if dual == 1 else 2
        # The residual is a subgradient: of the dual norm's radius, and aligned with the solution.
        residual = c - q * x
        assert np.linalg.norm(residual, dual) == pytest.approx(rate, rel=1e-10)
        assert residual @ x == pytest.approx(rate * np.linalg.norm(x, order), rel=1e-8)
    q, c, b = rng.uniform(1, 50, tasks), rng.uniform(1, 90, tasks), rng.uniform(0, 2, tasks)
    for solve, dual in (diagonal_linf, 1), (diagonal_l2, 2):
        rate = rng.uniform(0.1, 20.0)
        solve(q, c, b, rate, x)
        z = b + q / (c + x)
        order = np.inf if dual == 1 else 2
        assert np.linalg.norm(x, dual) == pytest.approx(rate, rel=1e-9) and x.min() >= 0
        assert x @ z == pytest.approx(rate * np.linalg.norm(z, order), rel=1e-8)


@pytest.mark.parametrize("norm", NORMS)
def test_tables_that_are_equal(norm):
    S, _ = problem()
    tasks, n, rate = 4, 25, 8.0
    solution = multi_task_graphical_lasso([S[0]] * tasks, n, rate, norm=norm, tol=1e-18)
    share = tasks if norm == "linf" else np.sqrt(tasks)
    one = graphical_lasso(S[0], rate / (n * share), tol=1e-20).precision
    for K in solution.precision:
        np.testing.assert_allclose(K, one, atol=1e-8)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("diagonal_rate", [0.0, 2.0])
def test_one_table(norm, diagonal_rate):
    S, n = problem(tasks=1)
    solution = multi_task_graphical_lasso(
        S, n, 4.0, norm=norm, diagonal_rate=diagonal_rate, tol=1e-18
    )
    penalty = np.full((6, 6), 4.0 / n[0])
    np.fill_diagonal(penalty, 2 * diagonal_rate / n[0])
    np.testing.assert_allclose(
        solution.precision[0], graphical_lasso(S[0], penalty, tol=1e-20).precision, atol=1e-8
    )


@pytest.mark.parametrize("norm, order", NORMS.items())
@pytest.mark.parametrize("diagonal_rate", [0.0, 3.0])
def test_properties_of_the_maximum(norm, order, diagonal_rate):
    S, n = problem()
    rate, p = 6.0, 6
    solution = multi_task_graphical_lasso(
        S, n, rate, norm=norm, diagonal_rate=diagonal_rate, tol=1e-18
    )
    K, W = solution.precision, solution.covariance
    off = ~np.eye(p, dtype=bool)
    norms, dual = np.linalg.norm(K, order, 0), 1 if order == np.inf else 2
    # Derivative along a common scale of all matrices: the number of columns times that of all rows.
    penalty = rate * norms[off].sum() + 2 * diagonal_rate * norms.diagonal().sum()
    assert n @ np.einsum("kij,kij->k", S, K) + penalty == pytest.approx(p * n.sum(), rel=1e-8)
    residual = np.linalg.norm(n[:, None, None] * (W - S), dual, 0)
    assert residual[off].max() <= rate * (1 + 1e-7)
    np.testing.assert_allclose(residual[off & (norms > 0)], rate, rtol=1e-7)
    np.testing.assert_allclose(residual.diagonal(), 2 * diagonal_rate, rtol=1e-7, atol=1e-7)
    eigenvalues = np.linalg.eigvalsh(K)
    spread = np.linalg.norm(S, 2, axis=(1, 2))
    largest = max(rate, 2 * diagonal_rate)
    assert (eigenvalues[:, 0] >= 1 / (spread + p * largest / n)).all()
    if diagonal_rate:
        assert eigenvalues.max() <= p * n.sum() / (2 * diagonal_rate)
    assert 0 < np.count_nonzero(norms[off]) < off.sum()


def test_upper_bound_needs_the_numbers_of_rows():
    # The printed bound p * tasks / rate fails where the numbers of rows do not add up to that of tasks.
    S, n = problem()
    K = multi_task_graphical_lasso(S, n, 15.0, diagonal_rate=7.5).precision
    assert np.linalg.eigvalsh(K).max() > 6 * 3 / 15.0


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("diagonal", [0.0, 6.0])
def test_sweeps_never_lower_the_objective(norm, diagonal):
    S, n = problem()
    rates = np.full((6, 6), 2.0)
    np.fill_diagonal(rates, diagonal)
    K = np.stack([np.diag(1 / s.diagonal()) for s in S])
    values = [objective(S, n, K, rates, norm)]
    for _ in range(10):
        W = np.linalg.inv(K)
        work = np.empty((4, 3, 6)), np.empty((8, 3))
        multi_task_sweep(S, n, K, W, rates, rates.diagonal().copy(), norm == "linf", *work)
        np.testing.assert_allclose(W @ K, np.broadcast_to(np.eye(6), K.shape), atol=1e-9)
        values.append(objective(S, n, K, rates, norm))
    assert np.diff(values).min() > -1e-10
    assert np.linalg.eigvalsh(K).min() > 0


@pytest.mark.parametrize("norm, order", NORMS.items())
def test_isolated_columns(norm, order):
    # A column is isolated exactly where no dual norm of its covariances is beyond the rate.
    S, n = problem()
    S[:, 2, :2] *= 0.01
    S[:, 2, 3:] *= 0.01
    S[:, :2, 2], S[:, 3:, 2] = S[:, 2, :2], S[:, 2, 3:]
    dual = 1 if order == np.inf else 2
    bound = np.linalg.norm(n[:, None] * np.delete(S[:, 2], 2, axis=1), dual, 0).max()
    for rate, isolated in (bound * 1.0001, True), (bound * 0.99, False):
        K = multi_task_graphical_lasso(S, n, rate, norm=norm, tol=1e-14).precision
        assert (np.count_nonzero(K[0, 2]) == 1) == isolated


@pytest.mark.parametrize("norm", NORMS)
def test_order_of_columns_and_tables(norm):
    S, n = problem()
    columns, tables = np.random.default_rng(0).permutation(6), np.array([2, 0, 1])
    K = multi_task_graphical_lasso(S, n, 3.0, norm=norm, tol=1e-18).precision
    swapped = S[tables][:, columns][:, :, columns]
    other = multi_task_graphical_lasso(swapped, n[tables], 3.0, norm=norm, tol=1e-18).precision
    np.testing.assert_allclose(other, K[tables][:, columns][:, :, columns], atol=1e-8)


def printed_iterations(S, n, rate, linf, sweeps):
    """Honorio (2012, section 4.8) with a penalty of the diagonal as printed: plain curvature off the diagonal."""
    tasks, p, _ = S.shape
    off, diagonal = (knapsack, diagonal_linf) if linf else (trust_region, diagonal_l2)
    K = np.stack([np.diag(1 / s.diagonal()) for s in S])
    x = np.empty(tasks)
    for _ in range(sweeps):
        for j in range(p):
            rest = np.arange(p) != j
            A = np.linalg.inv(K[:, rest][:, :, rest])
            y, u, v = K[:, rest, j].copy(), S[:, rest, j], S[:, j, j]
            for i in range(p - 1):
                h = A[:, i, i]
                away = np.einsum("ki,ki->k", A[:, i], y) - h * y[:, i]
                off(n * v * h, -n * (v * away + u[:, i]), rate, x)
                y[:, i] = x
            b = np.einsum("ki,kij,kj->k", y, A, y)
            diagonal(n, n * v, b, rate, x)
            K[:, rest, j] = K[:, j, rest] = y
            K[:, j, j] = b + n / (n * v + x)
    return K


@pytest.mark.parametrize("norm", NORMS)
def test_printed_penalty_of_the_diagonal_ends_elsewhere(norm):
    S, n = problem()
    rates = np.full((6, 6), 6.0)
    best = multi_task_graphical_lasso(S, n, 6.0, norm=norm, diagonal_rate=3.0)
    K = printed_iterations(S, n, 6.0, norm == "linf", 40)
    lost = best.objective - objective(S, n, K, rates, norm)
    assert lost > 0.1
    # The certificate says so.
    assert multi_task_gap(S, n, K, np.linalg.inv(K), rates, norm) >= lost
    again = printed_iterations(S, n, 6.0, norm == "linf", 60)
    np.testing.assert_allclose(K, again, atol=1e-6)  # it has converged


def test_start():
    S, n = problem()
    first = multi_task_graphical_lasso(S, n, 3.0, tol=1e-12)
    again = multi_task_graphical_lasso(S, n, 3.0, tol=1e-11, init=first)
    assert again.iterations == 0
    np.testing.assert_array_equal(again.precision, first.precision)


def test_stops_early():
    S, n = problem()
    with pytest.warns(ConvergenceWarning, match="multi_task_graphical_lasso stopped after 1 iter"):
        multi_task_graphical_lasso(S, n, 3.0, tol=1e-12, max_iter=1)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"n": [10, 20]}, "n has shape"),
        ({"n": -1}, "n must be positive"),
        ({"rate": -1.0}, "must be non-negative"),
        ({"rate": np.ones((2, 2))}, "rate has shape"),
        ({"norm": "l3"}, "norm"),
        ({"init": np.zeros((3, 6, 6))}, "positive definite"),
    ],
)
def test_malformed_arguments(change, message):
    S, n = problem()
    arguments = {"S": S, "n": n, "rate": 1.0} | change
    with pytest.raises(ValueError, match=message):
        multi_task_graphical_lasso(**arguments)


def test_matrices_that_do_not_fit():
    S, n = problem()
    with pytest.raises(ValueError, match=r"different shapes, \(2, 2\) and \(6, 6\)"):
        multi_task_graphical_lasso([S[0], S[1][:2, :2], S[2]], n, 1.0)
    C = np.eye(3)
    C[0, 1] = C[1, 0] = 1.5
    with pytest.raises(
        ValueError, match=r"matrix 1 of S is no covariance matrix.* eigenvalue -0.5"
    ):
        multi_task_graphical_lasso([np.eye(3), C], 20, 0.5)


def test_unbounded():
    S, n = problem()
    S[1, 2] = S[1, :, 2] = 0.0
    with pytest.raises(ValueError, match="constant"):
        multi_task_graphical_lasso(S, n, 1.0)
    with pytest.raises(ValueError, match="singular"):
        multi_task_graphical_lasso(S, n, 0.0, diagonal_rate=1.0)
