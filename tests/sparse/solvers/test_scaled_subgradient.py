"""Scaled sub-gradient methods: optimality, brute force, cvxpy, and the thesis's Ising model."""

import importlib.util

from functools import partial

import numpy as np
import pytest

from tools.places import ROOT

from bayesstruct.core.solution import ConvergenceWarning
from bayesstruct.penalties import L1, Group
from bayesstruct.sparse.solvers import line_search
from bayesstruct.sparse.solvers import scaled_subgradient as scaled
from bayesstruct.sparse.solvers.line_search import active_set
from bayesstruct.sparse.solvers.scaled_subgradient import projected_scaled_subgradient
from bayesstruct.sparse.solvers.soft_threshold import soft_threshold

METHODS = [
    partial(projected_scaled_subgradient, variant=name)
    for name in ("gafni_bertsekas", "sign_projection", "active_set", "orthant_wise")
]
for _method in METHODS:
    _method.__name__ = _method.keywords["variant"]  # the tests' ids
ORTHANT_WISE = METHODS[-1]
BARZILAI_BORWEIN = partial(soft_threshold, step="barzilai_borwein")
CYTO = ROOT.parent / "shared" / "data" / "cyto_discretized.mat"


class Logistic:
    """Summed logistic loss with a column of ones first; counts its calls."""

    def __init__(self, seed=0, n=80, p=12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, p))
        X[:, 1:] += 0.5 * X[:, :-1]
        self.X = np.column_stack([np.ones(n), X])
        w = np.zeros(p + 1)
        w[:4] = 0.4, 1.5, -1.0, 0.7
        self.y = np.where(rng.random(n) < 1 / (1 + np.exp(-self.X @ w)), 1.0, -1.0)
        self.calls, self.values = 0, []

    def __call__(self, w):
        self.calls += 1
        margin = self.y * (self.X @ w)
        gradient = -self.X.T @ (self.y / (1 + np.exp(margin)))
        return np.logaddexp(0, -margin).sum(), gradient

    def penalty(self, rate):
        return L1(rate, weights=[0.0] + [1.0, 2.0, 0.5] * 4)

    def rate_max(self):
        """Rate above which only the constant is left, from the constant's own mode."""
        share = (self.y > 0).mean()
        null = np.zeros(self.X.shape[1])
        null[0] = np.log(share / (1 - share))
        return null, self.penalty(1.0).rate_max(self(null)[1])


def field_module():
    where = ROOT / "benchmarks" / "expensive_objectives.py"
    spec = importlib.util.spec_from_file_location("expensive_objectives", where)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_optimal(loss, penalty, x, tol):
    """Equations (2.12) of the thesis, coordinate by coordinate."""
    gradient, (rates, _) = loss(x)[1], penalty.rates(len(x))
    zero = x == 0
    assert (np.abs(gradient[zero]) <= rates[zero] + tol).all()
    assert (np.abs(gradient + rates * np.sign(x))[~zero] <= tol).all()


@pytest.mark.parametrize("seed", range(4))
def test_pseudo_gradient_is_the_least_subgradient(seed):
    rng = np.random.default_rng(seed)
    x = np.array([0.0, 0.0, 0.0, 1.0, -2.0, 0.0])
    rates = np.array([1.0, 1.0, 0.5, 0.7, 0.7, 0.0])
    g = rng.standard_normal(6) * 1.5
    descent = scaled._GafniBertsekas(L1(1.0, weights=rates), 6, 5, 1e-5)
    found = descent.pseudo(line_search.Point(x, 0.0, g))
    grid = np.linspace(-1, 1, 20_001)  # signs of zero
    signs = [grid if v == 0 else np.array([np.sign(v)]) for v in x]
    least = [
        (g[i] + rates[i] * signs[i])[np.abs(g[i] + rates[i] * signs[i]).argmin()] for i in range(6)
    ]
    np.testing.assert_allclose(found, least, atol=1e-4)  # the spacing of the grid


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_optimality_exact_zeros_and_honest_report(method, share):
    loss = Logistic()
    _, top = loss.rate_max()
    penalty = loss.penalty(share * top)
    loss.calls = 0
    found = method(loss, np.zeros(13), penalty, tol=1e-7)
    assert found.converged
    assert found.evaluations == loss.calls
    x = found.coefficients
    assert_optimal(loss, penalty, x, 1e-7)
    assert found.objective == pytest.approx(loss(x)[0] + penalty.value(x), rel=1e-12)
    assert found.gap == penalty.residual(x, loss(x)[1])
    if share > 0.1:
        assert 2 <= (x == 0).sum() < 12


@pytest.mark.parametrize("seed", range(3))
def test_all_methods_reach_the_same_mode_from_anywhere(seed):
    loss = Logistic(seed)
    penalty = loss.penalty(0.1 * loss.rate_max()[1])
    starts = np.zeros(13), np.random.default_rng(seed).standard_normal(13)
    found = [
        m(loss, s, penalty) for m in [*METHODS, BARZILAI_BORWEIN, soft_threshold] for s in starts
    ]
    values = [f.objective for f in found]
    assert max(values) - min(values) < 1e-6
    assert len({tuple(f.coefficients != 0) for f in found}) == 1


@pytest.mark.parametrize("method", METHODS)
def test_zero_if_and_only_if_the_rate_is_large(method):
    loss = Logistic(1)
    null, top = loss.rate_max()
    above = method(loss, np.zeros(13), loss.penalty(1.001 * top), tol=1e-8)
    assert not above.coefficients[1:].any()
    np.testing.assert_allclose(above.coefficients, null, atol=1e-8)
    assert method(loss, np.zeros(13), loss.penalty(0.99 * top), tol=1e-8).coefficients[1:].any()


@pytest.mark.parametrize("method", METHODS)
def test_the_objective_falls_in_each_step_along_descent_directions(method, monkeypatch):
    accepted = []

    def spy(objective, descent, point, reference):
        new = line_search_backtrack(objective, descent, point, reference)
        if new is not None:
            accepted.append((point.value, new.value))
            slope = descent.pseudo(point)
            assert slope @ descent.toward < 0
        return new

    line_search_backtrack = line_search.backtrack
    monkeypatch.setattr(line_search, "backtrack", spy)
    loss = Logistic(2)
    method(loss, np.full(13, 0.5), loss.penalty(2.0))
    assert len(accepted) > 5
    # To the rounding of the objective, which the search allows for.
    assert all(new <= old + 1e-12 * abs(old) for old, new in accepted)


@pytest.mark.parametrize("method", METHODS)
def test_without_penalty_it_is_lbfgs(method):
    """So all of them take the same steps, and reach the maximum likelihood."""
    loss = Logistic(3)
    expected = projected_scaled_subgradient(loss, np.ones(13), L1(0.0), tol=1e-8)
    found = method(loss, np.ones(13), L1(0.0), tol=1e-8)
    assert np.abs(loss(found.coefficients)[1]).max() < 1e-8
    if method is not ORTHANT_WISE:  # which drops coordinates that would not descend
        assert found.evaluations == expected.evaluations
        np.testing.assert_array_equal(found.coefficients, expected.coefficients)


def test_restricted_to_nonzeros_the_direction_is_that_of_lbfgs():
    rng, penalty = np.random.default_rng(4), L1(0.3)
    descents = [c(penalty, 6, 5, 1e-5) for c in (scaled._GafniBertsekas, scaled._ActiveSet)]
    x, g = rng.standard_normal(6), rng.standard_normal(6)
    for descent in descents:
        for s in rng.standard_normal((3, 6)):
            descent.memory.add(s, s * np.arange(1.0, 7.0))
        np.testing.assert_allclose(descent.direction(x, g), -descent.memory.solve(g))


def test_active_set_direction_lets_the_most_zeros_in_that_move_downhill():
    rng = np.random.default_rng(5)
    descent = scaled._ActiveSet(L1(0.3), 10, 5, 1e-5)
    A = rng.standard_normal((10, 10))
    for s in rng.standard_normal((5, 10)):
        descent.memory.add(s, s @ A @ A.T)
    x = np.where(np.arange(10) < 4, 1.0, 0.0)
    slope = rng.standard_normal(10)
    d = descent.direction(x, slope)
    order = 4 + np.argsort(-np.abs(slope[4:]))
    k = int((d[4:] != 0).sum())

    def valid(k):
        on = x != 0
        on[order[:k]] = True
        trial = -descent.memory.solve(slope, on)
        return trial, (trial[order[:k]] * slope[order[:k]] < 0).all()

    np.testing.assert_array_equal(d, valid(k)[0])
    assert valid(k)[1]
    assert k == 6 or not valid(k + 1)[1]


@pytest.mark.parametrize("method", METHODS)
def test_orthogonal_design_has_a_closed_form(method):
    rng = np.random.default_rng(6)
    Q = np.linalg.qr(rng.standard_normal((20, 7)))[0]
    y = rng.standard_normal(20) * 3
    found = method(
        lambda w: (0.5 * ((y - Q @ w) ** 2).sum(), Q.T @ (Q @ w - y)), np.ones(7), L1(1.0)
    )
    z = Q.T @ y
    expected = np.sign(z) * np.maximum(np.abs(z) - 1.0, 0.0)
    np.testing.assert_allclose(found.coefficients, expected, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_warm_starts_take_no_more_evaluations(method):
    """Along a path; a single rate may need one more, as the last step may end near the tolerance."""
    loss = Logistic(7)
    warm, cold, before = 0, 0, np.zeros(13)
    for rate in loss.rate_max()[1] * 0.8 ** np.arange(1, 15):
        cold += method(loss, np.zeros(13), loss.penalty(rate)).evaluations
        found = method(loss, before, loss.penalty(rate))
        warm, before = warm + found.evaluations, found.coefficients
    assert warm < cold
    again = method(loss, before, loss.penalty(rate))
    assert (again.evaluations, again.iterations) == (1, 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_agrees_with_cvxpy(method, nonnegative):
    import cvxpy as cp

    loss = Logistic(8)
    penalty = L1(2.0, weights=loss.penalty(1.0).weights, nonnegative=nonnegative)
    w = cp.Variable(13)
    objective = cp.sum(cp.logistic(-cp.multiply(loss.y, loss.X @ w)))
    objective += 2.0 * penalty.weights @ cp.abs(w)
    problem = cp.Problem(cp.Minimize(objective), [w >= 0] if nonnegative else [])
    problem.solve(solver="CLARABEL")
    found = method(loss, np.zeros(13), penalty)
    assert found.objective == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(found.coefficients, w.value, atol=1e-3)
    if nonnegative:
        assert (found.coefficients >= 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_turns_back_at_the_end_of_the_domain(method):
    """-log x, infinite or NaN from 0 on, with its minimum at 1/4."""

    def value_and_gradient(x):
        if (x <= 0).any():
            return (np.inf if x[0] < -1 else np.nan), None
        return -np.log(x).sum(), -1 / x

    found = method(value_and_gradient, np.full(3, 20.0), L1(4.0))
    np.testing.assert_allclose(found.coefficients, 0.25, atol=1e-6)


def nowhere(x):
    return np.nan, x


def beyond(x):
    return np.inf, x


@pytest.mark.parametrize(
    ("loss", "start", "penalty", "error", "message"),
    [
        (nowhere, np.zeros(3), L1(1.0), ValueError, "objective is nan at the start"),
        (beyond, np.zeros(3), L1(1.0), ValueError, "objective is inf at the start"),
        (lambda x: (0.0, np.full(3, np.nan)), np.zeros(3), L1(1.0), ValueError, "gradient is not"),
        (lambda x: (0.0, np.zeros(2)), np.zeros(3), L1(1.0), ValueError, r"gradient of shape \(2,"),
        (nowhere, np.zeros(3), L1(1.0, weights=[1, 1]), ValueError, "has 3 coefficients, the pena"),
        (nowhere, np.zeros((3, 1)), L1(1.0), ValueError, "must be a vector"),
        (nowhere, [0.0, np.nan], L1(1.0), ValueError, "entry 1 is nan"),
        (
            nowhere,
            np.zeros(3),
            Group(1.0, [0, 0, 1]),
            TypeError,
            "not for Group; use soft_threshold",
        ),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_bad_input_is_refused_in_words(method, loss, start, penalty, error, message):
    with pytest.raises(error, match=message):
        method(loss, start, penalty)


@pytest.mark.parametrize("method", METHODS)
def test_says_when_evaluations_run_out_or_progress_stalls(method):
    loss = Logistic(9)
    with pytest.warns(ConvergenceWarning, match="max_evaluations"):
        short = method(loss, np.zeros(13), loss.penalty(1.0), max_evaluations=6)
    assert not short.converged
    assert short.evaluations == 6
    with pytest.warns(ConvergenceWarning, match="stopped after"):  # the gradient's sign is wrong
        stuck = method(lambda x: (x @ x, -2 * x), np.ones(3), L1(0.1))
    assert not stuck.converged
    assert stuck.evaluations < 200


@pytest.mark.parametrize(
    "method", [projected_scaled_subgradient, ORTHANT_WISE, soft_threshold, BARZILAI_BORWEIN]
)
def test_working_sets_reach_the_same_mode_through_restricted_functions(method):
    loss, seen = Logistic(10), []
    penalty = loss.penalty(0.4 * loss.rate_max()[1])

    def restrict(on):
        seen.append(int(on.sum()))

        def part(x):
            assert not x[~on].any()
            value, gradient = loss(x)
            return value, np.where(on, gradient, np.pi)  # never to be used

        return part

    loss.calls = 0
    found = active_set(method, loss, np.zeros(13), penalty, restrict=restrict, tol=1e-7)
    assert found.converged
    assert found.evaluations == loss.calls
    assert max(seen) < 13
    assert_optimal(loss, penalty, found.coefficients, 1e-7)
    # A start with a needless coefficient gets to the same place.
    other = active_set(method, loss, np.ones(13), penalty, tol=1e-7)
    np.testing.assert_allclose(other.coefficients, found.coefficients, atol=1e-6)


def test_working_sets_keep_to_their_budget():
    loss = Logistic(10)
    with pytest.warns(ConvergenceWarning):
        found = active_set(
            projected_scaled_subgradient, loss, np.zeros(13), loss.penalty(1.0), max_evaluations=8
        )
    assert not found.converged
    assert loss.calls == found.evaluations <= 8


def test_values_may_differ_by_rounding_only():
    """An objective of 1e7: its rounding error hides the last steps, which the slopes still see."""
    loss = Logistic(11)
    penalty = loss.penalty(1.0)

    def lifted(x):
        value, gradient = loss(x)
        return value + 1e7, gradient

    found = projected_scaled_subgradient(lifted, np.zeros(13), penalty, tol=1e-7)
    assert_optimal(loss, penalty, found.coefficients, 1e-7)


@pytest.mark.skipif(not CYTO.exists(), reason="shared/data is not here")
def test_ising_model_of_the_proteins():
    """Exact objective over 3^11 states; numbers measured for the project without this code."""
    module = field_module()
    field = module.PairwiseField(module.read_states(CYTO))
    value, gradient = field.value_and_gradient(field.independent())
    assert value == pytest.approx(50589.951364, abs=1e-5)
    assert np.abs(gradient[: field.nodes]).max() < 1e-6
    assert field.penalty(1.0).rate_max(gradient) == pytest.approx(1486.846111, abs=1e-5)
    cold = np.zeros(field.size)
    first = projected_scaled_subgradient(
        field.value_and_gradient, cold, field.penalty(100.0), tol=1e-3
    )
    assert first.objective == pytest.approx(45495.866409, abs=2e-6)
    assert field.edges(first.coefficients) == 43
    found = projected_scaled_subgradient(
        field.value_and_gradient, cold, field.penalty(50.0), tol=1e-3
    )
    warm = projected_scaled_subgradient(
        field.value_and_gradient, first.coefficients, field.penalty(50.0), tol=1e-3
    )
    for solution in (found, warm):
        assert solution.objective == pytest.approx(44650.208957, abs=2e-6)
        assert field.edges(solution.coefficients) == 46
    assert warm.evaluations < found.evaluations <= 83  # the count of the project's first prototype


@pytest.mark.calibration
@pytest.mark.skipif(not CYTO.exists(), reason="shared/data is not here")
def test_every_method_finds_the_ising_model_and_quasi_newton_needs_fewer_evaluations(full):
    """All 11 proteins in full, the first 6 otherwise."""
    module = field_module()
    states = module.read_states(CYTO)
    field = module.PairwiseField(states if full else states[:, :6])
    penalty, needed = field.penalty(50.0), {}
    reference = projected_scaled_subgradient(
        field.value_and_gradient, np.zeros(field.size), penalty, tol=1e-6
    )
    minimum, edges = reference.objective, field.edges(reference.coefficients)
    if full:
        assert minimum == pytest.approx(44650.208957, abs=2e-6)
        assert edges == 46
    for name, method in module.L1_METHODS.items():
        trace = module.Trace(field, penalty)
        found = method(trace, np.zeros(field.size), penalty)
        assert found.converged
        assert found.objective == pytest.approx(minimum, abs=1e-6)
        assert field.edges(found.coefficients) == edges
        needed[name] = trace.evaluations_to(minimum + 1e-4)
    quasi_newton = max(needed[m] for m in ("PSSgb", "PSSsp", "PSSas", "QNST100", "PQN100"))
    assert quasi_newton < min(needed["BBST"], needed["SPG"])
    if full:  # the prototype: 52 for PSSgb, 112 for BBST
        assert quasi_newton <= 56
        assert needed["BBST"] >= 100
