"""Soft-threshold methods: optimality under every penalty, cvxpy, and full potentials."""

import importlib.util

from functools import partial

import numpy as np
import pytest

from tools.places import ROOT

from bayesstruct.core.solution import ConvergenceWarning
from bayesstruct.penalties import L1, Group, SparseGroup, Tree
from bayesstruct.sparse.solvers import line_search
from bayesstruct.sparse.solvers.line_search import Objective, active_set
from bayesstruct.sparse.solvers.projected import cone_mode
from bayesstruct.sparse.solvers.scaled_subgradient import projected_scaled_subgradient
from bayesstruct.sparse.solvers.soft_threshold import soft_threshold

BARZILAI_BORWEIN, QUASI_NEWTON = METHODS = [
    partial(soft_threshold, step=name) for name in ("barzilai_borwein", "quasi_newton")
]
for _method in METHODS:
    _method.__name__ = _method.keywords["step"]  # the tests' ids
CYTO = ROOT.parent / "shared" / "data" / "cyto_discretized.mat"
LABELS = [-1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
PENALTIES = {
    "l1": lambda r: L1(r, weights=[0] + [1] * 12),
    "nonnegative": lambda r: L1(r, weights=[0] + [1] * 12, nonnegative=True),
    "group": lambda r: Group(r, LABELS, weights=[1, 2, 0.5, 1]),
    "maximum": lambda r: Group(r, LABELS, norm=np.inf),
    "nuclear": lambda r: Group(
        r, [-1] + [0] * 6 + [1] * 6, norm="nuclear", shapes=[[2, 3], [3, 2]]
    ),
    "sparse group": lambda r: SparseGroup(0.5 * r, LABELS, group_rate=r),
    "tree": lambda r: Tree(r, [range(1, 7), [2, 3], [5, 6], range(7, 13), [8], [9, 10]], size=13),
    "tree, maximum": lambda r: Tree(r, [range(1, 13), [2, 3, 4], [3, 4]], norm=np.inf, size=13),
}


class Logistic:
    """Summed logistic loss with a column of ones first; counts its calls."""

    def __init__(self, seed=0, n=80, p=12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, p))
        X[:, 1:] += 0.5 * X[:, :-1]
        self.X = np.column_stack([np.ones(n), X])
        w = np.zeros(p + 1)
        w[:5] = 0.4, 1.5, -1.0, 0.7, 0.5
        self.y = np.where(rng.random(n) < 1 / (1 + np.exp(-self.X @ w)), 1.0, -1.0)
        self.calls = 0

    def __call__(self, w):
        self.calls += 1
        margin = self.y * (self.X @ w)
        gradient = -self.X.T @ (self.y / (1 + np.exp(margin)))
        return np.logaddexp(0, -margin).sum(), gradient

    def null(self):
        share = (self.y > 0).mean()
        out = np.zeros(self.X.shape[1])
        out[0] = np.log(share / (1 - share))
        return out


def field_module():
    where = ROOT / "benchmarks" / "expensive_objectives.py"
    spec = importlib.util.spec_from_file_location("expensive_objectives", where)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("method", METHODS)
def test_optimal_under_every_penalty(method, name):
    loss = Logistic()
    penalty = PENALTIES[name](1.0)
    penalty = penalty.with_rate(0.3 * penalty.rate_max(loss(loss.null())[1]))
    loss.calls = 0
    found = method(loss, np.zeros(13), penalty, tol=1e-7)
    assert found.converged
    assert found.evaluations == loss.calls
    x, (value, gradient) = found.coefficients, loss(found.coefficients)
    assert found.gap == penalty.residual(x, gradient) <= 1e-7
    assert found.objective == pytest.approx(value + penalty.value(x), rel=1e-12)
    # A fixed point of the proximal map, for any step: (3.8) of the thesis.
    for step in (0.01, 1.0):
        np.testing.assert_allclose(penalty.prox(x - step * gradient, step), x, atol=1e-7)
    rng = np.random.default_rng(0)
    for d in rng.standard_normal((200, 13)) * 10.0 ** rng.uniform(-4, 0, (200, 1)):
        assert loss(x + d)[0] + penalty.value(x + d) >= found.objective - 1e-9


@pytest.mark.parametrize("name", PENALTIES)
def test_methods_agree_from_anywhere(name):
    loss, penalty = Logistic(1), PENALTIES[name](3.0)
    starts = np.zeros(13), np.abs(np.random.default_rng(1).standard_normal(13))
    found = [m(loss, s, penalty) for m in METHODS for s in starts]
    found += [active_set(QUASI_NEWTON, loss, s, penalty) for s in starts]
    values = [f.objective for f in found]
    assert max(values) - min(values) < 1e-6
    assert len({tuple(f.coefficients != 0) for f in found}) == 1


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("method", METHODS)
def test_zero_if_and_only_if_the_rate_is_large(method, name):
    loss = Logistic(2)
    penalty = PENALTIES[name](1.0)
    top = penalty.rate_max(loss(loss.null())[1])
    above = method(loss, np.zeros(13), penalty.with_rate(1.01 * top), tol=1e-7)
    assert not above.coefficients[1:].any()
    below = method(loss, np.zeros(13), penalty.with_rate(0.98 * top), tol=1e-7)
    assert below.coefficients[1:].any()


@pytest.mark.parametrize("method", METHODS)
def test_groups_of_one_are_the_l1_norm(method):
    loss = Logistic(3)
    rates = np.r_[0.0, np.tile([1.0, 2.0, 4.0], 4)]
    expected = projected_scaled_subgradient(loss, np.zeros(13), L1(1.0, weights=rates), tol=1e-7)
    alone = Group(1.0, np.arange(13), weights=rates)
    found = method(loss, np.zeros(13), alone, tol=1e-7)
    assert found.objective == pytest.approx(expected.objective, abs=1e-9)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-6)
    np.testing.assert_array_equal(found.coefficients == 0, expected.coefficients == 0)


@pytest.mark.parametrize("method", METHODS)
def test_orthogonal_design_has_a_closed_form(method):
    rng = np.random.default_rng(4)
    z = rng.standard_normal(6) * 2
    penalty = Group(1.0, [0, 0, 0, 1, 1, 1])
    found = method(lambda w: (0.5 * ((w - z) ** 2).sum(), w - z), np.ones(6), penalty)
    expected = [z[g] * max(0.0, 1 - 1 / np.linalg.norm(z[g])) for g in (slice(3), slice(3, 6))]
    np.testing.assert_allclose(found.coefficients, np.concatenate(expected), atol=1e-5)


def test_quasi_newton_falls_in_each_step_and_spheres_over_ten(monkeypatch):
    values = {}
    plain = line_search.backtrack

    def spy(objective, descent, point, reference):
        new = plain(objective, descent, point, reference)
        if new is not None and isinstance(objective._call, Logistic):
            values.setdefault(type(descent).__name__, [point.value]).append(new.value)
        return new

    monkeypatch.setattr(line_search, "backtrack", spy)
    loss = Logistic(5)
    for method in METHODS:
        method(loss, np.full(13, 2.0), PENALTIES["group"](1.0))
    assert (np.diff(values["_QuasiNewton"]) <= 1e-12 * values["_QuasiNewton"][0]).all()
    spheres = values["_BarzilaiBorwein"]
    for i in range(1, len(spheres)):
        assert spheres[i] <= max(spheres[max(i - 10, 0) : i]) + 1e-12 * spheres[0]


@pytest.mark.parametrize("method", METHODS)
def test_warm_starts_take_no_more_evaluations(method):
    loss, make = Logistic(6), PENALTIES["group"]
    top = make(1.0).rate_max(loss(loss.null())[1])
    warm, cold, before = 0, 0, np.zeros(13)
    for rate in top * 0.8 ** np.arange(1, 15):
        cold += method(loss, np.zeros(13), make(rate)).evaluations
        found = method(loss, before, make(rate))
        warm, before = warm + found.evaluations, found.coefficients
    assert warm < cold
    again = method(loss, before, make(rate))
    assert (again.evaluations, again.iterations) == (1, 0)


def test_quasi_newton_needs_fewer_evaluations():
    rng = np.random.default_rng(7)
    A = rng.standard_normal((60, 30)) * np.logspace(0, 1, 30)
    b = A @ np.where(np.arange(30) % 3, 0.0, 1.0) + rng.standard_normal(60)
    penalty = Group(10.0, np.arange(30) // 3)

    def squares(x):
        r = A @ x - b
        return 0.5 * (r @ r), A.T @ r

    fast, slow = (
        m(squares, np.zeros(30), penalty, tol=1e-4) for m in (QUASI_NEWTON, BARZILAI_BORWEIN)
    )
    assert fast.converged
    assert fast.evaluations < 0.6 * slow.evaluations


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["group", "maximum", "nuclear"])
def test_agrees_with_cvxpy(method, name):
    import cvxpy as cp

    loss, penalty = Logistic(8), PENALTIES[name](2.0)
    w = cp.Variable(13)
    if name == "nuclear":
        blocks = [w[1:7].reshape((2, 3), order="C"), w[7:].reshape((3, 2), order="C")]
        terms = sum(cp.normNuc(block) for block in blocks)
    else:
        order = 2 if name == "group" else "inf"
        parts = [w[1 + 3 * i : 4 + 3 * i] for i in range(4)]
        terms = sum(a * cp.norm(v, order) for a, v in zip(penalty.weights, parts, strict=True))
    objective = cp.sum(cp.logistic(-cp.multiply(loss.y, loss.X @ w))) + 2.0 * terms
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver="CLARABEL")
    found = method(loss, np.zeros(13), penalty)
    assert found.objective == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(found.coefficients, w.value, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_bad_input_is_refused_in_words(method):
    penalty = Group(1.0, [0, 0, 1])
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match=f"objective is {value} at the start"):
            method(lambda x, value=value: (value, x), np.zeros(3), penalty)
    with pytest.raises(ValueError, match="`start` has 4 coefficients, the penalty has 3"):
        method(lambda x: (0.0, x), np.zeros(4), penalty)
    with pytest.raises(ValueError, match="objective is inf at the start"):
        method(lambda x: (0.0, x), -np.ones(3), L1(1.0, nonnegative=True))
    with pytest.raises(ValueError, match="gradient is not finite at coefficient 1"):
        method(lambda x: (0.0, np.array([0.0, np.inf, 0.0])), np.zeros(3), penalty)


@pytest.mark.parametrize("method", METHODS)
def test_turns_back_at_the_end_of_the_domain(method):
    def value_and_gradient(x):
        if (x <= 0).any():
            return np.nan, None
        return -np.log(x).sum(), -1 / x

    found = method(value_and_gradient, np.full(4, 20.0), Group(4.0, [0, 0, 1, 1]))
    # 1 / x = 4 x / (x sqrt 2) in each coordinate.
    np.testing.assert_allclose(found.coefficients, np.sqrt(2) / 4, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_says_when_evaluations_run_out_or_progress_stalls(method):
    loss = Logistic(9)
    with pytest.warns(ConvergenceWarning, match="max_evaluations"):
        short = method(loss, np.zeros(13), PENALTIES["group"](1.0), max_evaluations=5)
    assert not short.converged
    assert short.evaluations == 5
    with pytest.warns(ConvergenceWarning, match="stopped after"):  # the gradient's sign is wrong
        stuck = method(lambda x: (x @ x, -2 * x), np.ones(3), L1(0.1))
    assert not stuck.converged
    assert stuck.evaluations < 200


def test_objectives_may_keep_and_change_their_argument():
    loss, kept = Logistic(10), np.empty(13)

    def rude(x):
        value, kept[:] = loss(x)
        x[:] = np.nan
        return value, kept

    found = QUASI_NEWTON(rude, np.zeros(13), PENALTIES["group"](2.0))
    expected = QUASI_NEWTON(loss, np.zeros(13), PENALTIES["group"](2.0))
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)
    assert Objective(rude, None, 10)(np.zeros(13)).x.sum() == 0


@pytest.mark.skipif(not CYTO.exists(), reason="shared/data is not here")
@pytest.mark.parametrize("norm", [2, "nuclear", np.inf])
def test_full_potentials_of_four_proteins(norm):
    """Exact objective over 3^4 states; edges' row and column sums are zero for the l2 norm."""
    module = field_module()
    field = module.PairwiseField(module.read_states(CYTO)[:, :4], "full")
    shapes = [3, 3] if norm == "nuclear" else None
    penalty = Group(200.0, field.penalty(200.0).groups.arrays(), norm=norm, shapes=shapes)
    tables = []
    for method in (QUASI_NEWTON, cone_mode, BARZILAI_BORWEIN):
        found = method(field.value_and_gradient, np.zeros(field.size), penalty, tol=1e-3)
        assert found.converged
        tables.append(found)
        if norm == 2:
            W = found.coefficients[field.nodes :].reshape(-1, 3, 3)
            assert np.abs(W.sum(axis=1)).max() < 1e-4
            assert np.abs(W.sum(axis=2)).max() < 1e-4
    assert np.ptp([f.objective for f in tables]) < 1e-5
    assert tables[0].evaluations < tables[2].evaluations


@pytest.mark.calibration
@pytest.mark.skipif(not CYTO.exists(), reason="shared/data is not here")
def test_full_potentials_of_all_proteins(full):
    """To the reference measured for the project, an upper bound at a residual of 0.1."""
    module = field_module()
    field = module.PairwiseField(module.read_states(CYTO), "full")
    gradient = field.value_and_gradient(field.independent())[1]
    assert field.penalty(1.0).rate_max(gradient) == pytest.approx(1163.127078, abs=1e-5)
    if not full:
        return
    values = []
    for method in (QUASI_NEWTON, cone_mode):
        found = method(
            field.value_and_gradient, np.zeros(field.size), field.penalty(100.0), tol=0.01
        )
        assert found.converged
        assert field.edges(found.coefficients) == 47
        values.append(found.objective)
    assert np.ptp(values) < 1e-4
    assert 40153.9 < values[0] < 40154.05 + 0.01
