"""Dual augmented Lagrangian steps: the source's theorems and counts, agreement with `sparse_mode`."""

import itertools
import warnings

import numpy as np
import pytest

from scipy import sparse

from bayesstruct.core.solution import ConvergenceWarning
from bayesstruct.penalties import L1, Group, Tree
from bayesstruct.sparse.solvers.designs import as_design
from bayesstruct.sparse.solvers.dual_augmented import (
    _by_cholesky,
    _by_conjugate_gradients,
    _conjugate,
    _Entries,
    _Groups,
    dual_augmented_lagrangian,
    dual_augmented_steps,
)
from bayesstruct.sparse.solvers.groups import group_problem
from bayesstruct.sparse.solvers.losses import Gaussian, Logistic, loss_for
from bayesstruct.sparse.solvers.proximal_newton import Problem
from bayesstruct.sparse.solvers.sparse import sparse_mode, sparse_path


def instance(seed=0, m=128, n=512):
    """The source's synthetic table, smaller: labels -1 and 1, a coefficient in 25 not zero."""
    rng = np.random.default_rng(seed)
    A, w = rng.standard_normal((m, n)), np.zeros(n)
    on = rng.choice(n, int(0.04 * n), replace=False)
    w[on] = rng.standard_normal(len(on))
    y = np.sign(A @ w + 0.01 * rng.standard_normal(m))
    return A, y, np.abs(A.T @ y).max()


def steps(A, y, rate, eta, intercept=False):
    """Outer steps of the plain problem, and it."""
    design = as_design(A, intercept=intercept)
    rates = np.full(A.shape[1], rate)
    if intercept:
        rates = np.append(rates, 0.0)
    problem = Problem(design, loss_for("logistic", y), rates, rates)
    return problem, dual_augmented_steps(problem, np.zeros(design.p), eta=eta / rate)


PENALTIES = {
    "l1": lambda rate, p: L1(rate),
    "weighted": lambda rate, p: L1(rate, weights=np.r_[0, 0, np.linspace(0.5, 2, p - 2)]),
    "nonnegative": lambda rate, p: L1(rate, nonnegative=True),
    "groups": lambda rate, p: Group(
        rate,
        np.r_[-1, -1, np.arange(p - 2) // 3],
        weights=np.r_[0, np.linspace(0.5, 2, -(-(p - 2) // 3) - 1)],
    ),
}


@pytest.mark.parametrize("eta, expected", [(1.0, 5), (0.01, 12)])
@pytest.mark.parametrize("intercept", [False, True])
def test_number_of_outer_steps(eta, expected, intercept):
    # The counts of the source's aggressive and conservative settings, in the inventory of the source.
    A, y, top = instance()
    found = dual_augmented_lagrangian(
        A, y, family="logistic", penalty=L1(0.01 * top), eta=eta, intercept=intercept, tol=1e-3
    )
    assert found.converged
    assert abs(found.iterations - expected) <= 1


def test_gap_falls_faster_than_linearly():
    A, y, top = instance()
    _, run = steps(A, y, 0.01 * top, 1.0)
    gaps = np.array([s.gap / s.objective for s in itertools.islice(run, 9)])
    falls = gaps[1:] / gaps[:-1]
    assert gaps[-1] < 1e-8
    assert falls[-3:].max() < 0.1 < falls[:2].min()


@pytest.mark.parametrize("eta", [1.0, 0.01])
def test_bound_of_theorem_2_at_every_step(eta):
    A, y, top = instance(1)
    rate = 0.01 * top
    best = sparse_mode(A, y, family="logistic", rate=rate, intercept=False, tol=1e-13)
    distance = best.coefficients @ best.coefficients
    _, run = steps(A, y, rate, eta)
    total = 0.0
    for s in itertools.islice(run, 12):
        total += s.eta
        assert s.objective - best.objective <= distance / (2 * total) + 1e-9 * best.objective


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("eta", [1.0, 0.01])
def test_objective_falls_by_the_proximal_term(intercept, eta):
    A, y, top = instance(2)
    problem, run = steps(A, y, 0.02 * top, eta, intercept)
    last, before = np.zeros(problem.design.p), problem.loss.value(np.zeros(len(y)))
    p = A.shape[1]
    for s in itertools.islice(run, 12):
        moved = ((s.w - last)[:p] ** 2).sum() / (2 * s.eta)
        assert s.objective + moved <= before * (1 + 1e-12)
        last, before = s.w, s.objective


def test_dual_variable_is_minus_the_derivative_at_the_end():
    A, y, top = instance(3)
    problem, run = steps(A, y, 0.02 * top, 1.0)
    off = [
        np.abs(s.alpha + problem.loss.derivative(A @ s.w)).max() for s in itertools.islice(run, 12)
    ]
    assert off[-1] < 1e-7 < off[0]


@pytest.mark.parametrize("share, zero", [(0.5, True), (0.51, True), (0.499, False)])
def test_zero_from_half_of_the_largest_product(share, zero):
    # For labels -1 and 1; at 0.5 the products meet the bound to rounding.
    A, y, top = instance()
    rate = share * top * (1 + 1e-12)
    found = dual_augmented_lagrangian(
        A, y, family="logistic", penalty=L1(rate), intercept=False, tol=1e-9
    )
    assert (not found.coefficients.any()) == zero
    largest = sparse_path(A, y, family="logistic", intercept=False, rates=None, tol=1.0)[0].rate
    np.testing.assert_allclose(largest, 0.5 * top, rtol=1e-12)


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", PENALTIES)
@pytest.mark.parametrize("newton", ["cholesky", "cg"])
def test_agrees_with_sparse_mode(family, intercept, kind, newton):
    A, y, top = instance(4, m=60, n=150)
    y[:10] = 1.0  # unequal labels
    penalty = PENALTIES[kind](0.05 * top, 150)
    found = dual_augmented_lagrangian(
        A, y, family=family, penalty=penalty, intercept=intercept, tol=1e-11, newton=newton
    )
    best = sparse_mode(A, y, family=family, penalty=penalty, intercept=intercept, tol=1e-12)
    np.testing.assert_allclose(found.objective, best.objective, rtol=1e-8)
    # The optimality conditions; their error is of the order of the square root of the gap.
    assert penalty.residual(found.coefficients, found.gradient) <= 1e-4 * penalty.rate
    assert found.method == "dual augmented Lagrangian"
    assert found.converged and 0.0 <= found.gap <= 1e-11 * found.objective
    assert found.objective - best.objective <= found.gap + 1e-9


@pytest.mark.parametrize("kind", ["weighted", "groups"])
@pytest.mark.parametrize("newton", ["cholesky", "cg"])
def test_sparse_table_gives_the_same(kind, newton):
    rng = np.random.default_rng(5)
    A = sparse.random_array((50, 120), density=0.1, rng=rng, data_sampler=rng.standard_normal)
    y = np.asarray(A.sum(axis=1)) + rng.standard_normal(50)
    penalty = PENALTIES[kind](0.8, 120)
    one = dual_augmented_lagrangian(A, y, penalty=penalty, tol=1e-11, newton=newton)
    two = dual_augmented_lagrangian(A.toarray(), y, penalty=penalty, tol=1e-11)
    np.testing.assert_allclose(one.objective, two.objective, rtol=1e-10)
    np.testing.assert_allclose(one.coefficients, two.coefficients, atol=1e-4)


def test_one_group_of_each_is_the_l1_norm():
    A, y, top = instance(6, m=40, n=100)
    one = dual_augmented_lagrangian(A, y, penalty=L1(0.1 * top), tol=1e-11)
    two = dual_augmented_lagrangian(A, y, penalty=Group(0.1 * top, np.arange(100)), tol=1e-11)
    np.testing.assert_allclose(one.coefficients, two.coefficients, atol=1e-6)


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_any_admitted_dual_point_bounds_the_optimum(family):
    A, y, top = instance(7, m=40, n=100)
    loss, rate = loss_for(family, y), 0.1 * top
    best = dual_augmented_lagrangian(
        A, y, family=family, penalty=L1(rate), intercept=False, tol=1e-11
    )
    rng = np.random.default_rng(0)
    for _ in range(50):
        alpha = rng.uniform(0, 1, 40) * y
        alpha *= min(1.0, rate / np.abs(A.T @ alpha).max())
        assert loss.dual(alpha) <= best.objective


def test_unpenalised_constant_far_from_zero():
    # Where the second proximity has to grow: the constant dwarfs everything else.
    rng = np.random.default_rng(8)
    A = rng.standard_normal((40, 100))
    y = A[:, 0] + 1e4 + rng.standard_normal(40)
    found = dual_augmented_lagrangian(A, y, penalty=L1(5.0), tol=1e-10)
    best = sparse_mode(A, y, penalty=L1(5.0), tol=1e-12)
    np.testing.assert_allclose(found.objective, best.objective, rtol=1e-8)
    np.testing.assert_allclose(found.intercept, best.intercept, rtol=1e-9)


def test_equal_columns():
    rng = np.random.default_rng(9)
    A = rng.standard_normal((60, 1)) + 0.01 * rng.standard_normal((60, 300))
    y = A @ rng.standard_normal(300) + rng.standard_normal(60)
    found = dual_augmented_lagrangian(A, y, penalty=L1(0.5), tol=1e-9)
    best = sparse_mode(A, y, penalty=L1(0.5), tol=1e-11)
    np.testing.assert_allclose(found.objective, best.objective, rtol=1e-8)


def test_warm_start():
    A, y, top = instance(10)
    options = {"family": "logistic", "penalty": L1(0.02 * top), "tol": 1e-6}
    cold = dual_augmented_lagrangian(A, y, **options)
    again = dual_augmented_lagrangian(A, y, start=cold, **options)
    assert again.iterations == 1 < cold.iterations


def test_scales_of_table_and_rate():
    A, y, top = instance(11, m=40, n=100)
    one = dual_augmented_lagrangian(A, y, penalty=L1(0.1 * top), tol=1e-11)
    two = dual_augmented_lagrangian(8 * A, y, penalty=L1(0.8 * top), tol=1e-11, eta=1 / 8)
    np.testing.assert_allclose(one.coefficients, 8 * two.coefficients, atol=1e-6)


@pytest.mark.parametrize("loss", [Gaussian, Logistic])
def test_derivatives_of_the_conjugates(loss):
    rng = np.random.default_rng(12)
    y = rng.integers(0, 2, 6).astype(float)
    loss = loss(y)
    conjugate = _conjugate(loss)
    alpha, h = (2 * y - 1) * rng.uniform(0.1, 0.9, 6), 1e-6
    np.testing.assert_allclose(conjugate.value(alpha), -loss.dual(alpha), rtol=1e-12)
    for i in range(6):
        e = h * np.eye(6)[i]
        change = (conjugate.value(alpha + e) - conjugate.value(alpha - e)) / (2 * h)
        bend = (conjugate.slope(alpha + e) - conjugate.slope(alpha - e)) / (2 * h)
        np.testing.assert_allclose(conjugate.slope(alpha)[i], change, atol=1e-8)
        np.testing.assert_allclose(np.diag(conjugate.curvature(alpha))[i], bend, atol=1e-6)
    # The dual variable that belongs to a linear predictor, and the constant of strong convexity.
    z = rng.standard_normal(6)
    np.testing.assert_allclose(conjugate.slope(-loss.derivative(z)), -z, atol=1e-12)
    assert conjugate.gamma <= conjugate.curvature(alpha).min() * (1 + 1e-12)


def test_largest_step_to_the_boundary():
    y = np.array([1.0, 0.0, 1.0])
    conjugate = _conjugate(Logistic(y))
    alpha, step = np.array([0.5, -0.5, 0.25]), np.array([0.1, 0.2, -0.1])
    assert conjugate.largest_step(alpha, step) == pytest.approx(2.5)
    assert np.isinf(conjugate.largest_step(alpha, 0 * step))


def test_proximal_maps_and_their_factors():
    rng = np.random.default_rng(13)
    A = rng.standard_normal((7, 6))
    design, loss = as_design(A, intercept=True), Gaussian(rng.standard_normal(7))
    penalty = Group(1.0, [0, 1, 0, -1, 1, 0], weights=[0.7, 1.3])
    q, etas = 3 * rng.standard_normal(7), np.full(7, 1.5)
    groups = _Groups(group_problem(design, loss, penalty))
    np.testing.assert_allclose(groups.prox(q, etas)[:6], penalty.prox(q[:6], 1.5), rtol=1e-12)
    assert groups.prox(q, etas)[6] == q[6]
    rates = np.array([1.0, 0.5, 0.0, 2.0, 1.0, 1.0, 0.0])
    entries = _Entries(Problem(design, loss, rates, rates))
    l1 = L1(1.0, weights=rates[:6])
    np.testing.assert_allclose(entries.prox(q, etas)[:6], l1.prox(q[:6], 1.5), rtol=1e-12)
    # F F' is A J eta A', J the derivative of the map.
    full = np.column_stack([A, np.ones(7)])
    for maps in (groups, entries):
        h = 1e-6
        J = np.array(
            [(maps.prox(q + h * e, etas) - maps.prox(q - h * e, etas)) / (2 * h) for e in np.eye(7)]
        )
        F = maps.factor(design, q, etas)
        np.testing.assert_allclose(F @ F.T, full @ J @ np.diag(etas) @ full.T, atol=1e-6)


def test_newton_systems():
    rng = np.random.default_rng(14)
    D, F, g = rng.uniform(1, 1e4, 30), rng.standard_normal((30, 50)), rng.standard_normal(30)
    for block in (F, sparse.csc_array(F)):
        exact = np.linalg.solve(np.diag(D) + F @ F.T, g)
        np.testing.assert_allclose(_by_cholesky(D, block, g), exact, rtol=1e-9)
        rough = _by_conjugate_gradients(D, block, g)
        assert np.linalg.norm(D * rough + F @ (F.T @ rough) - g) <= 1e-3 * np.linalg.norm(g)


def test_stopping_short_warns():
    A, y, top = instance(15)
    with pytest.warns(
        ConvergenceWarning, match="dual_augmented_lagrangian stopped after 2 iterations"
    ):
        found = dual_augmented_lagrangian(
            A, y, family="logistic", penalty=L1(0.01 * top), max_iter=2
        )
    assert not found.converged and found.gap > 1e-3 * found.objective


def test_bad_types():
    A, y, _ = instance(16, m=20, n=10)
    for options in ({"penalty": 1.0}, {"eta": "a"}, {"tol": None}, {"max_iter": "5"}, {"start": 3}):
        (name,) = options
        with pytest.raises(TypeError, match=f"`{name}` must be"):
            dual_augmented_lagrangian(A, y, **{"penalty": L1(1.0), **options})


def test_bad_input():
    A, y, _ = instance(16, m=20, n=10)
    for options, message in [
        ({"penalty": L1(0.0)}, "needs a penalty"),
        ({"penalty": L1(1.0), "eta": 0.0}, "`eta` must be above 0"),
        ({"penalty": L1(1.0), "max_iter": 0}, "`max_iter` must be a whole number from 1 up"),
        ({"penalty": L1(1.0), "newton": "lu"}, "cholesky"),
        ({"penalty": L1(1.0), "family": "huber"}, "Gaussian and logistic"),
        ({"penalty": L1(1.0, weights=np.ones(9))}, "for 9 coefficients"),
        ({"penalty": L1(1.0, weights=np.arange(10), nonnegative=True)}, "has no rate"),
        ({"penalty": Group(1.0, np.arange(10), norm=np.inf)}, "takes L1 or Group"),
        ({"penalty": Tree(1.0, [list(range(10))])}, "takes L1 or Group"),
    ]:
        with pytest.raises(ValueError, match=message):
            dual_augmented_lagrangian(A, y, **options)
    with pytest.raises(ValueError, match="20 rows"):
        dual_augmented_lagrangian(A, y[:-1], penalty=L1(1.0))


def test_responses_of_zero():
    found = dual_augmented_lagrangian(np.eye(4), np.zeros(4), penalty=L1(1.0), intercept=False)
    assert found.converged and found.objective == 0.0


def test_steps_without_a_certifier_go_on_at_rounding():
    A, y, top = instance(17, m=40, n=80)
    _, run = steps(A, y, 0.05 * top, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        last = list(itertools.islice(run, 40))[-1]
    assert last.gap <= 1e-12 * last.objective


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_units_of_the_predictors_do_not_matter(family, scale):
    A, y, top = instance(18, m=40, n=100)
    penalty = L1(0.02 * top, weights=np.r_[0.0, np.ones(99)])
    one = dual_augmented_lagrangian(A, y, family=family, penalty=penalty, tol=1e-9)
    two = dual_augmented_lagrangian(
        scale * A, y, family=family, penalty=penalty.scaled(scale), tol=1e-9
    )
    assert one.iterations == two.iterations
    np.testing.assert_allclose(one.objective, two.objective, rtol=1e-9)
    np.testing.assert_allclose(one.coefficients, scale * two.coefficients, atol=1e-6)


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_columns_far_from_centred(family):
    A, y, top = instance(19, m=40, n=100)
    options = {"family": family, "penalty": L1(0.05 * top)}
    found = dual_augmented_lagrangian(A + 10.0, y, tol=1e-9, **options)
    best = sparse_mode(A + 10.0, y, tol=1e-11, **options)
    np.testing.assert_allclose(found.objective, best.objective, rtol=1e-8)


def test_labels_that_are_certain():
    conjugate = _conjugate(Logistic(np.array([1.0, 0.0, 1.0])))
    alpha = np.array([0.0, -1.0, 1e-300])
    assert np.isfinite(conjugate.slope(alpha)).all()
    assert np.isfinite(conjugate.curvature(alpha)).all()
    assert conjugate.value(np.array([0.0, -1.0, 1.0])) == 0.0
