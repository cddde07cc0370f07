"""Projected methods: feasible iterates, optimality over sets, and the cone form of penalties."""

import numpy as np
import pytest

from bayesstruct.core.solution import ConvergenceWarning
from bayesstruct.penalties import L1, Group, SparseGroup
from bayesstruct.sparse.solvers.line_search import active_set
from bayesstruct.sparse.solvers.projected import (
    NormCones,
    cone_mode,
    projected_quasi_newton,
    spectral_projected_gradient,
)
from bayesstruct.sparse.solvers.scaled_subgradient import projected_scaled_subgradient
from bayesstruct.sparse.solvers.soft_threshold import soft_threshold

METHODS = [spectral_projected_gradient, projected_quasi_newton]
LABELS = [-1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
PENALTIES = {
    "l1": lambda r: L1(r, weights=[0] + [1] * 12),
    "group": lambda r: Group(r, LABELS, weights=[1, 2, 0, 1]),
    "uneven": lambda r: Group(r, [-1, 0, 0, 0, 0, 0, 1, 2, 2, 3, 3, 3, 3]),
    "maximum": lambda r: Group(r, LABELS, norm=np.inf),
    "nuclear": lambda r: Group(
        r, [-1] + [0] * 6 + [1] * 6, norm="nuclear", shapes=[[2, 3], [3, 2]]
    ),
}


class Logistic:
    """Summed logistic loss with a column of ones first; keeps the points it is asked about."""

    def __init__(self, seed=0, n=80, p=12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, p))
        X[:, 1:] += 0.5 * X[:, :-1]
        self.X = np.column_stack([np.ones(n), X])
        w = np.zeros(p + 1)
        w[:5] = 0.4, 1.5, -1.0, 0.7, 0.5
        self.y = np.where(rng.random(n) < 1 / (1 + np.exp(-self.X @ w)), 1.0, -1.0)
        self.seen = []

    def __call__(self, w):
        self.seen.append(w)
        margin = self.y * (self.X @ w)
        gradient = -self.X.T @ (self.y / (1 + np.exp(margin)))
        return np.logaddexp(0, -margin).sum(), gradient

    def null(self):
        share = (self.y > 0).mean()
        out = np.zeros(self.X.shape[1])
        out[0] = np.log(share / (1 - share))
        return out


def l1_ball(radius):
    from bayesstruct.sparse.kernels import projections

    def project(v):
        out = np.empty((1, len(v)))
        projections.l1_ball(v[None].copy(), radius, out, np.empty(len(v)))
        return out[0]

    return project


SETS = {  # the projection, and whether a point is inside
    "ball": (
        lambda v: v / max(1.0, np.linalg.norm(v)),
        lambda x: np.linalg.norm(x) <= 1 + 1e-12,
    ),
    "l1 ball": (l1_ball(1.5), lambda x: np.abs(x).sum() <= 1.5 + 1e-12),
    "box": (lambda v: np.clip(v, -0.3, 0.2), lambda x: (x >= -0.3).all() and (x <= 0.2).all()),
    "plane": (lambda v: v - v.mean(), lambda x: abs(x.sum()) < 1e-9),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("method", METHODS)
def test_feasible_at_every_evaluation_and_optimal_at_the_last(method, name):
    (project, inside), loss = SETS[name], Logistic()
    found = method(loss, np.full(13, 2.0), project, tol=1e-7)
    assert found.converged
    assert found.evaluations == len(loss.seen)
    assert all(inside(x) for x in loss.seen)
    x, gradient = found.coefficients, loss(found.coefficients)[1]
    assert np.abs(x - project(x - gradient)).max() == found.gap <= 1e-7
    # The gradient points away from every point of the set.
    rng = np.random.default_rng(0)
    others = np.array([project(v) for v in 3 * rng.standard_normal((500, 13))])
    assert ((others - x) @ gradient).min() > -1e-5


@pytest.mark.parametrize("name", SETS)
def test_methods_agree_from_anywhere(name):
    project, loss = SETS[name][0], Logistic(1)
    starts = np.zeros(13), np.random.default_rng(1).standard_normal(13)
    values = [m(loss, s, project).objective for m in METHODS for s in starts]
    assert np.ptp(values) < 1e-6


@pytest.mark.parametrize("name", ["ball", "l1 ball", "box"])
@pytest.mark.parametrize("method", METHODS)
def test_agrees_with_cvxpy(method, name):
    import cvxpy as cp

    loss, w = Logistic(2), cp.Variable(13)
    bounds = {
        "ball": [cp.norm(w, 2) <= 1],
        "l1 ball": [cp.norm(w, 1) <= 1.5],
        "box": [w >= -0.3, w <= 0.2],
    }
    objective = cp.sum(cp.logistic(-cp.multiply(loss.y, loss.X @ w)))
    problem = cp.Problem(cp.Minimize(objective), bounds[name])
    problem.solve(solver="CLARABEL")
    found = method(loss, np.zeros(13), SETS[name][0])
    assert found.objective == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(found.coefficients, w.value, atol=1e-3)


def test_without_bounds_projected_quasi_newton_is_lbfgs():
    loss = Logistic(3)
    expected = projected_scaled_subgradient(loss, np.zeros(13), L1(0.0), tol=1e-8)
    found = projected_quasi_newton(loss, np.zeros(13), lambda v: v, tol=1e-8, inner_iterations=1000)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-8)
    # Equal steps but for the accuracy of the inner minimum, 5 % of the residual.
    assert abs(found.evaluations - expected.evaluations) <= 3


def test_quasi_newton_needs_fewer_evaluations():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((60, 30)) * np.logspace(0, 1, 30)
    b = A @ np.where(np.arange(30) % 3, 0.0, 1.0) + rng.standard_normal(60)

    def squares(x):
        r = A @ x - b
        return 0.5 * (r @ r), A.T @ r

    fast, slow = (
        m(squares, np.zeros(30), l1_ball(5.0), tol=1e-4)
        for m in (projected_quasi_newton, spectral_projected_gradient)
    )
    assert fast.objective == pytest.approx(slow.objective, rel=1e-9)
    assert fast.evaluations < 0.6 * slow.evaluations


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("method", ["projected_quasi_newton", "spectral_projected_gradient"])
def test_cones_give_the_mode_under_the_penalty(method, name):
    loss, penalty = Logistic(5), PENALTIES[name](1.0)
    if name != "group":  # where a group is free, the largest rate is not known in closed form
        top = penalty.rate_max(loss(loss.null())[1])
        above = cone_mode(loss, np.ones(13), penalty.with_rate(1.01 * top), method=method)
        assert not above.coefficients[1:].any()
    penalty = penalty.with_rate(3.0)
    found = cone_mode(loss, np.zeros(13), penalty, method=method, tol=1e-6)
    assert found.converged
    x, (value, gradient) = found.coefficients, loss(found.coefficients)
    assert found.gap == penalty.residual(x, gradient) <= 1e-6
    assert found.objective == pytest.approx(value + penalty.value(x), rel=1e-12)
    expected = soft_threshold(loss, np.zeros(13), penalty, tol=1e-7)
    np.testing.assert_allclose(x, expected.coefficients, atol=1e-6)
    np.testing.assert_array_equal(penalty.support(x), penalty.support(expected.coefficients))
    warm = cone_mode(loss, x, penalty, method=method, tol=1e-6)
    assert (warm.evaluations, warm.iterations) == (1, 0)


@pytest.mark.parametrize("name", PENALTIES)
def test_projection_on_the_cones(name):
    """Feasible, and the rest lies in the polar cone: Moreau's conditions."""
    rng = np.random.default_rng(6)
    cones = NormCones.of(PENALTIES[name](1.0), 13)
    k = len(cones.rates)
    for _ in range(200):
        z = rng.standard_normal(13 + k) * rng.choice([0.1, 1.0, 10.0], 13 + k)
        out = cones.project(z)
        assert (cones.norms(out[:13]) <= out[13:] + 1e-12).all()
        assert abs((z - out) @ out) < 1e-10 * (z @ z)
        np.testing.assert_allclose(cones.project(out), out, atol=1e-12)
        free = np.ones(13, bool)
        for _, index, _, _ in cones.blocks:
            free[index.ravel()] = False
        np.testing.assert_array_equal(out[:13][free], z[:13][free])
        # Against points of the cone.
        other = rng.standard_normal(13)
        other[free] = 0.0
        inside = np.r_[other, cones.norms(other)]
        assert (z - out) @ inside <= 1e-10 * np.linalg.norm(z) * np.linalg.norm(inside)


def test_heights_are_the_norms_at_the_mode():
    """So the constrained objective is the penalised one, at exact zeros too."""
    loss, penalty = Logistic(7), PENALTIES["uneven"](4.0)
    cones = NormCones.of(penalty, 13)

    def joint(z):
        value, gradient = loss(z[:13])
        return value + cones.rates @ z[13:], np.r_[gradient, cones.rates]

    z = projected_quasi_newton(joint, np.zeros(17), cones.project, tol=1e-8).coefficients
    np.testing.assert_allclose(z[13:], cones.norms(z[:13]), atol=1e-7)
    found = cone_mode(loss, np.zeros(13), penalty, tol=1e-7)
    np.testing.assert_allclose(z[:13], found.coefficients, atol=1e-6)


def test_cones_on_working_sets():
    loss, penalty = Logistic(8), PENALTIES["uneven"](6.0)
    expected = cone_mode(loss, np.zeros(13), penalty, tol=1e-7)
    found = active_set(cone_mode, loss, np.zeros(13), penalty, tol=1e-7)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_bad_input_is_refused_in_words(method):
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match=f"objective is {value} at the start"):
            method(lambda x, value=value: (value, x), np.zeros(3), np.abs)
    with pytest.raises(ValueError, match="`project` maps 3 coefficients to shape"):
        method(lambda x: (0.0, x), np.zeros(3), lambda x: x[:2])
    with pytest.raises(ValueError, match="entry 2 is inf"):
        method(lambda x: (0.0, x), [0.0, 1.0, np.inf], np.abs)


def test_cones_refuse_other_penalties():
    def loss(x):
        return 0.5 * (x @ x), x

    with pytest.raises(TypeError, match="not for SparseGroup as given; use soft_threshold"):
        cone_mode(loss, np.zeros(3), SparseGroup(1.0, [0, 0, 1], group_rate=1.0))
    with pytest.raises(TypeError, match="use soft_threshold"):
        cone_mode(loss, np.zeros(3), L1(1.0, nonnegative=True))
    with pytest.raises(ValueError, match="method"):
        cone_mode(loss, np.zeros(3), L1(1.0), method="quasi_newton")
    with pytest.raises(ValueError, match="`start` has 4 coefficients, the penalty has 3"):
        cone_mode(loss, np.zeros(4), Group(1.0, [0, 0, 1]))
    with pytest.raises(ValueError, match=r"gradient of shape \(2,\) for 3"):
        cone_mode(lambda x: (0.0, x[:2]), np.zeros(3), L1(1.0))


@pytest.mark.parametrize("method", METHODS)
def test_says_when_evaluations_run_out_or_progress_stalls(method):
    loss = Logistic(9)
    with pytest.warns(ConvergenceWarning, match="max_evaluations"):
        short = method(loss, np.zeros(13), SETS["ball"][0], max_evaluations=4)
    assert not short.converged
    assert short.evaluations == 4
    with pytest.warns(ConvergenceWarning, match="stopped after"):  # the gradient's sign is wrong
        stuck = method(lambda x: (x @ x, -2 * x), np.full(3, 0.1), SETS["ball"][0])
    assert not stuck.converged
    assert stuck.evaluations < 200
