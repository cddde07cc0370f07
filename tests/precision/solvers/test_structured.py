"""Modes with selected nodes, blocks and neighbouring columns: optimality, reductions, and the printed iterations."""

import numpy as np
import pytest

from scipy.optimize import minimize_scalar

from bayesstruct.solvers import (
    ConvergenceWarning,
    blockwise_graphical_lasso,
    graphical_lasso,
    locally_constant_graphical_lasso,
    node_selection_graphical_lasso,
)

ORDER = {"l2": 2, "linf": np.inf}
BLOCKS = ["a", "b", "a", "c", "b", "c"]
CHAIN = [(i, i + 1) for i in range(5)]
N = 40
TIGHT = 1e-13


def covariance(p=6, n=N, seed=1, shift=0.7):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    x = x + shift * np.roll(x, 1, axis=1)
    return np.corrcoef(x, rowvar=False)


def penalty(p, off, diagonal):
    matrix = np.full((p, p), float(off))
    np.fill_diagonal(matrix, diagonal)
    return matrix


def off_diagonal(K):
    return K - np.diag(np.diag(K))


class Node:
    """Log density and a general solver's expression of the problem with nodes."""

    def __init__(self, norm, rate=3.0, node_rate=4.0):
        self.norm, self.rate, self.node_rate = norm, rate, node_rate

    def solve(self, S, **options):
        options = {"tol": TIGHT} | options
        return node_selection_graphical_lasso(
            S, N, self.rate, self.node_rate, norm=self.norm, **options
        )

    def penalty(self, K):
        rows = np.linalg.norm(off_diagonal(K), ORDER[self.norm], axis=1)
        pairs = self.rate * np.abs(np.triu(K, 1)).sum()
        return pairs + self.node_rate * rows.sum() + self.rate / 2 * np.trace(K)

    def expression(self, cp, K):
        order = 2 if self.norm == "l2" else "inf"
        off = cp.multiply(1 - np.eye(len(BLOCKS)), K)
        rows = sum(cp.norm(off[i], order) for i in range(K.shape[0]))
        return self.rate / 2 * cp.sum(cp.abs(K)) + self.node_rate * rows


class Block:
    """The same with blocks."""

    def __init__(self, norm, rate=2.0, block_rate=3.0):
        self.norm, self.rate, self.block_rate = norm, rate, block_rate
        labels = np.array(BLOCKS)
        self.within = labels[:, None] == labels
        self.pairs = [
            np.ix_(np.flatnonzero(labels == a), np.flatnonzero(labels == b))
            for a, b in ("ab", "ac", "bc")
        ]
        self.weight = {"l2": 2.0, "linf": 4.0, "nuclear": np.sqrt(2)}[norm] * block_rate

    def solve(self, S, **options):
        options = {"tol": TIGHT} | options
        return blockwise_graphical_lasso(
            S, N, BLOCKS, self.rate, self.block_rate, norm=self.norm, **options
        )

    def norm_of(self, X):
        if self.norm == "nuclear":
            return np.linalg.norm(X, "nuc")
        return np.linalg.norm(X.ravel(), ORDER[self.norm])

    def penalty(self, K):
        within = self.rate / 2 * np.abs(K[self.within]).sum()
        return within + self.weight * sum(self.norm_of(K[pair]) for pair in self.pairs)

    def expression(self, cp, K):
        kinds = {
            "l2": lambda x: cp.norm(x, "fro"),
            "linf": lambda x: cp.max(cp.abs(x)),
            "nuclear": lambda x: cp.norm(x, "nuc"),
        }
        within = self.rate / 2 * cp.sum(cp.multiply(self.within, cp.abs(K)))
        blocks = []
        for rows, columns in self.pairs:
            block = [[K[int(i), int(j)] for j in columns.ravel()] for i in rows.ravel()]
            blocks.append(kinds[self.norm](cp.bmat(block)))
        return within + self.weight * sum(blocks)


class Local:
    """The same with neighbouring columns."""

    def __init__(self, rate=2.0, smoothness=3.0):
        self.rate, self.smoothness = rate, smoothness

    def solve(self, S, **options):
        options = {"tol": TIGHT} | options
        return locally_constant_graphical_lasso(S, N, CHAIN, self.rate, self.smoothness, **options)

    def differences(self, K):
        p = len(K)
        return [K[a, i] - K[b, i] for a, b in CHAIN for i in range(p) if i not in (a, b)]

    def penalty(self, K):
        smooth = self.smoothness * np.abs(self.differences(K)).sum()
        return self.rate / 2 * np.abs(K).sum() + smooth

    def expression(self, cp, K):
        smooth = [cp.abs(K[a, i] - K[b, i]) for a, b in CHAIN for i in range(6) if i not in (a, b)]
        return self.rate / 2 * cp.sum(cp.abs(K)) + self.smoothness * sum(smooth)


PROBLEMS = {
    "node l2": Node("l2"),
    "node linf": Node("linf"),
    "block l2": Block("l2"),
    "block l2, strong": Block("l2", block_rate=11.0),
    "block linf": Block("linf"),
    "block nuclear": Block("nuclear"),
    "local": Local(),
    "local, weak": Local(rate=0.5, smoothness=0.7),
}
problems = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def log_density(problem, S, K):
    fit = N / 2 * (np.linalg.slogdet(K)[1] - np.sum(S * K))
    return fit - problem.penalty(K)


@problems
@pytest.mark.filterwarnings("ignore")  # cvxpy and its solvers warn for themselves
def test_equals_cvxpy(problem):
    import cvxpy as cp

    S = covariance()
    solution = problem.solve(S)
    assert solution.converged and solution.gap <= TIGHT
    assert solution.objective == pytest.approx(log_density(problem, S, solution.precision))
    K = cp.Variable(S.shape, symmetric=True)
    fit = N / 2 * (cp.log_det(K) - cp.trace(S @ K))
    reference = cp.Problem(cp.Maximize(fit - problem.expression(cp, K)))
    exact = (
        {} if problem is PROBLEMS["block nuclear"] else {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11}
    )
    reference.solve(solver="CLARABEL", **exact)
    assert abs(solution.objective - reference.value) < 1e-6
    np.testing.assert_allclose(solution.precision, K.value, atol=1e-3)


@problems
def test_derivative_along_a_common_scale(problem):
    S = covariance()
    K = problem.solve(S).precision
    assert N / 2 * np.sum(S * K) + problem.penalty(K) == pytest.approx(N / 2 * len(S), rel=1e-7)


@problems
def test_no_direction_goes_up(problem):
    S, rng = covariance(), np.random.default_rng(0)
    solution = problem.solve(S)
    for size in 1e-3, 1e-2, 1e-1:
        for _ in range(50):
            step = np.zeros(S.shape)
            i, j = rng.integers(6, size=2)
            step[i, j] = step[j, i] = size * rng.normal()
            if rng.random() < 0.5:
                step = size * rng.normal(size=S.shape)
                step = step + step.T
            assert log_density(problem, S, solution.precision + step) <= solution.objective + 1e-9


@problems
def test_gap_is_a_bound(problem):
    S = covariance()
    best = problem.solve(S).objective
    for iterations in 1, 10, 20, 30:
        with pytest.warns(ConvergenceWarning, match="_graphical_lasso stopped after"):
            rough = problem.solve(S, max_iter=iterations, tol=1e-15)
        assert best - rough.objective <= rough.gap + 1e-10


@problems
def test_start(problem):
    S = covariance()
    first = problem.solve(S)
    again = problem.solve(S, init=first)
    assert again.iterations <= first.iterations
    np.testing.assert_allclose(again.precision, first.precision, atol=1e-6)


@problems
@pytest.mark.parametrize("seed", range(3))
def test_more_columns_than_rows(problem, seed):
    S = covariance(n=4, seed=seed)
    solution = problem.solve(S, tol=1e-8)
    assert solution.converged
    assert np.linalg.eigvalsh(solution.precision)[0] > 0


def test_without_the_structured_part():
    S = covariance()
    lasso = graphical_lasso(S, penalty(6, 3.0 / N, 3.0 / N), tol=1e-18).precision
    alone = graphical_lasso(S, penalty(6, 2.0 / N, 1.0 / N), tol=1e-18).precision
    same = [
        node_selection_graphical_lasso(S, N, 3.0, 0.0, tol=TIGHT),
        node_selection_graphical_lasso(S, N, 3.0, 0.0, norm="linf", tol=TIGHT),
        locally_constant_graphical_lasso(S, N, CHAIN, 3.0, 0.0, tol=TIGHT),
        blockwise_graphical_lasso(S, N, ["one"] * 6, 3.0, 9.0, tol=TIGHT),
    ]
    for solution in same:
        np.testing.assert_allclose(solution.precision, lasso, atol=2e-6)
    for norm in "l2", "linf", "nuclear":
        solution = blockwise_graphical_lasso(
            S, N, range(6), 1.0, 2.0, norm=norm, diagonal_rate=0.5, tol=TIGHT
        )
        np.testing.assert_allclose(solution.precision, alone, atol=2e-6)


@problems
def test_order_of_columns(problem):
    S = covariance()
    order = np.array([1, 0, 2, 3, 4, 5])
    swapped = S[order][:, order]
    if isinstance(problem, Node):
        other = problem.solve(swapped).precision
    elif isinstance(problem, Block):
        blocks = [BLOCKS[i] for i in order]
        other = blockwise_graphical_lasso(
            swapped, N, blocks, problem.rate, problem.block_rate, norm=problem.norm, tol=TIGHT
        ).precision
    else:
        neighbours = [(1, 0), (0, 2), (2, 3), (3, 4), (4, 5)]
        rates = problem.rate, problem.smoothness
        other = locally_constant_graphical_lasso(
            swapped, N, neighbours, *rates, tol=TIGHT
        ).precision
    np.testing.assert_allclose(other, problem.solve(S).precision[order][:, order], atol=2e-6)


@pytest.mark.parametrize("norm", ORDER)
def test_isolated_nodes(norm):
    S = covariance(shift=0.4)
    dual = 2 if norm == "l2" else 1
    rate, node = 2.0, 3
    row = np.maximum(np.abs(np.delete(S[node], node)) * N - rate, 0.0)
    bound = np.linalg.norm(row, dual)
    K = node_selection_graphical_lasso(S, N, rate, bound * 1.01, norm=norm, tol=1e-10).precision
    assert np.count_nonzero(K[node]) == 1
    bounds = [
        np.linalg.norm(np.maximum(np.abs(np.delete(s, i)) * N - rate, 0), dual)
        for i, s in enumerate(S)
    ]
    everything = node_selection_graphical_lasso(S, N, rate, 1.01 * max(bounds), norm=norm)
    np.testing.assert_array_equal(off_diagonal(everything.precision), np.zeros(S.shape))
    np.testing.assert_allclose(everything.precision.diagonal(), 1 / (1 + rate / N), rtol=1e-3)
    # Half of that is too little: nodes are not isolated one by one.
    some = node_selection_graphical_lasso(S, N, rate, 0.3 * max(bounds), norm=norm, tol=1e-10)
    assert np.count_nonzero(off_diagonal(some.precision)) > 0


def test_upper_bound_is_that_of_the_rate_alone():
    # The printed bound p / max(rho, tau) has the diagonal in the norm of a node, which it is not.
    K = node_selection_graphical_lasso(np.eye(5), 2.0, 2.0, 50.0).precision
    np.testing.assert_allclose(K, np.eye(5) / 2, atol=1e-3)
    assert np.linalg.eigvalsh(K)[-1] > 5 / 50.0
    assert np.linalg.eigvalsh(K)[-1] <= 5 / 1.0


def test_eigenvalues_of_neighbouring_columns():
    S = covariance()
    rho, tau, p, m = 2.0 / N, 2 * 3.0 / N, 6, len(CHAIN)
    values = np.linalg.eigvalsh(PROBLEMS["local"].solve(S).precision)
    length = np.sqrt(2.0 * m)  # of the matrix of differences
    assert values[0] >= 1 / (np.linalg.norm(S, 2) + p * rho + np.sqrt(m * p) * tau * length)
    assert values[-1] <= p / rho


def test_ties_and_zeros_are_exact():
    K = PROBLEMS["local"].solve(covariance()).precision
    ties = np.array(PROBLEMS["local"].differences(K)) == 0
    assert 3 < ties.sum() < len(ties)
    K = PROBLEMS["block l2, strong"].solve(covariance()).precision
    zero = [not K[pair].any() for pair in PROBLEMS["block l2, strong"].pairs]
    assert any(zero) and not all(zero)


def test_large_rates_leave_the_blocks():
    S = covariance()
    K = blockwise_graphical_lasso(S, N, BLOCKS, 2.0, 100.0, tol=TIGHT).precision
    assert not K[~PROBLEMS["block l2"].within].any()
    rates = np.where(PROBLEMS["block l2"].within, 2.0 / N, 10.0)
    np.testing.assert_allclose(K, graphical_lasso(S, rates, tol=1e-18).precision, atol=2e-6)


def line_minimum(f, breaks):
    """Minimum of a convex function that is smooth between the breaks."""
    found = [minimize_scalar(f, bounds=(min(breaks) - 3, max(breaks) + 3), method="bounded").x]
    return min([*breaks, *found], key=f)


def printed_columns(S, rho, step, sweeps):
    """Block coordinate descent over columns: ``step(A, y, W, i, u, v)`` changes column i in place."""
    p = len(S)
    K = np.diag(1 / S.diagonal())
    for _ in range(sweeps):
        for j in range(p):
            rest = np.flatnonzero(np.arange(p) != j)
            A = np.linalg.inv(K[np.ix_(rest, rest)])
            y = K[rest, j].copy()
            step(A, y, K[np.ix_(rest, rest)], rest, j, S[rest, j], S[j, j] + rho)
            K[rest, j] = K[j, rest] = y
            K[j, j] = 1 / (S[j, j] + rho) + y @ A @ y
    return K


def test_printed_descent_of_neighbours_stops_early():
    # Honorio (2012, algorithm 2.1): directions of one element and of two neighbouring ones.
    rng = np.random.default_rng(0)
    p, truth = 9, np.eye(9)
    chain = [(i, i + 1) for i in range(p - 1)]
    for rows, columns, value in ((0, 1), (5, 6), 0.3), ((3, 4), (7, 8), -0.3), ((0,), (3,), 0.2):
        for i in rows:
            for j in columns:
                truth[i, j] = truth[j, i] = value
    x = rng.multivariate_normal(np.zeros(p), np.linalg.inv(truth), size=50)
    S, rho, tau = np.cov(x, rowvar=False, bias=True), 0.02, 0.5

    def value(K):
        smooth = sum(abs(K[a, i] - K[b, i]) for a, b in chain for i in range(p) if i not in (a, b))
        return np.linalg.slogdet(K)[1] - np.sum(S * K) - rho * np.abs(K).sum() - tau * smooth

    def step(A, y, W, rest, j, u, v):
        place = {node: k for k, node in enumerate(rest)}
        one = np.eye(p - 1)
        pairs = [(place[a], place[b]) for a, b in chain if j not in (a, b)]
        next_to = [a if b == j else b for a, b in chain if j in (a, b)]
        for g in [*one, *(one[a] + one[b] for a, b in pairs)]:
            # Coefficients and breaks of the absolute values along the direction.
            lines = [(rho * abs(g[k]), -y[k] / g[k]) for k in np.flatnonzero(g)]
            for a, b in pairs:
                if g[a] != g[b]:
                    lines.append((tau / 2, -(y[a] - y[b]) / (g[a] - g[b])))
            for k in np.flatnonzero(g):
                near = [W[place[i], k] for i in next_to if place[i] != k]
                lines += [(tau / 2, (w - y[k]) / g[k]) for w in near]
            weight, at = np.array(lines).T
            order = np.argsort(at)
            weight, at = weight[order], at[order]
            curve, slope = v * g @ A @ g, (v * A @ y + u) @ g
            ends = np.concatenate([[-np.inf], at, [np.inf]])
            cumulative = np.concatenate([[0], np.cumsum(weight)])
            slopes = slope + 2 * cumulative - weight.sum()
            candidates = np.clip(-slopes / curve, ends[:-1], ends[1:])
            costs = [
                0.5 * curve * t * t + slope * t + np.sum(weight * np.abs(t - at))
                for t in candidates
            ]
            y += candidates[np.argmin(costs)] * g

    solution = locally_constant_graphical_lasso(
        S, 2.0, chain, 2 * rho, tau, diagonal_rate=rho, tol=1e-10
    )
    K = printed_columns(S, rho, step, 20)
    assert solution.objective == pytest.approx(value(solution.precision))
    gap = solution.objective - value(K)
    assert 0.02 < gap < 0.2
    # It has stopped: more sweeps change little.
    assert value(printed_columns(S, rho, step, 30)) - value(K) < 0.1 * gap


def test_printed_descent_of_nodes_stops_early():
    # Honorio (2012, algorithm 3.1) with the largest absolute value: the coordinates of a node are tied.
    rng = np.random.default_rng(0)
    p, rho, tau = 8, 0.01, 0.5
    A = np.triu(rng.uniform(-1, 1, (p, p)) * (rng.random((p, p)) < 0.6), 1)
    A[:, p // 2 :] = 0
    truth = A + A.T + np.eye(p) * (max(0, -np.linalg.eigvalsh(A + A.T).min()) + 0.3)
    x = rng.multivariate_normal(np.zeros(p), np.linalg.inv(truth), size=50)
    S = np.corrcoef(x, rowvar=False)

    def value(K):
        nodes = np.abs(off_diagonal(K)).max(1).sum()
        return np.linalg.slogdet(K)[1] - np.sum(S * K) - rho * np.abs(K).sum() - tau * nodes

    def step(A, y, W, rest, j, u, v):
        largest = np.abs(off_diagonal(W)).max(1)
        for i in range(len(y)):
            curve = v * A[i, i]
            pull = -(v * (A[i] @ y - A[i, i] * y[i]) + u[i])
            others = np.abs(np.delete(y, i)).max()
            low, high = sorted((others, largest[i]))
            g = (np.abs(pull) - rho - tau / 2 * np.arange(3)) / curve
            size = max(0.0, min(g[0], max(low, min(g[1], max(high, g[2])))))
            y[i] = np.sign(pull) * size

    solution = node_selection_graphical_lasso(
        S, 2.0, 2 * rho, tau, norm="linf", diagonal_rate=rho, tol=1e-10
    )
    K = printed_columns(S, rho, step, 30)
    assert solution.objective == pytest.approx(value(solution.precision))
    gap = solution.objective - value(K)
    assert gap > 0.02
    assert value(printed_columns(S, rho, step, 60)) - value(K) < 0.01 * gap


@pytest.mark.parametrize(
    "solve, message",
    [
        (lambda S: node_selection_graphical_lasso(S, 0, 1.0, 1.0), "n must be"),
        (lambda S: node_selection_graphical_lasso(S, N, -1.0, 1.0), "rate must be"),
        (lambda S: node_selection_graphical_lasso(S, N, 1.0, np.nan), "node_rate must be"),
        (lambda S: node_selection_graphical_lasso(S, N, 1.0, 1.0, norm="nuclear"), "norm"),
        (lambda S: node_selection_graphical_lasso(S, N, 1.0, 1.0, init=-S), "positive definite"),
        (lambda S: blockwise_graphical_lasso(S, N, "abc", 1.0, 1.0), "blocks has shape"),
        (lambda S: blockwise_graphical_lasso(S, N, BLOCKS, 1.0, np.eye(2)), "block_rate has shape"),
        (lambda S: locally_constant_graphical_lasso(S, N, [], 1.0, 1.0), "neighbours is empty"),
        (lambda S: locally_constant_graphical_lasso(S, N, [(0, 6)], 1.0, 1.0), "from 0 to 5"),
        (lambda S: locally_constant_graphical_lasso(S, N, [(1, 1)], 1.0, 1.0), "different columns"),
        (lambda S: locally_constant_graphical_lasso(S, N, "chain", 1.0, 1.0), "by their numbers"),
        (
            lambda S: locally_constant_graphical_lasso(S, N, [(0, 1.5)], 1.0, 1.0),
            "by their numbers",
        ),
        (lambda S: locally_constant_graphical_lasso(0 * S, N, CHAIN, 0.0, 1.0), "zero on the diag"),
        (
            lambda S: locally_constant_graphical_lasso(
                np.ones((6, 6)), N, CHAIN, 0.0, 1.0, diagonal_rate=0.0
            ),
            "singular",
        ),
    ],
)
def test_malformed_arguments(solve, message):
    with pytest.raises(ValueError, match=message):
        solve(covariance())
