"""Modes of sparse regressions as Ops: values, derivatives, batches, and being modes."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from scipy import sparse
from tools.modes import assert_is_mode

from bayesstruct import ops, solvers
from bayesstruct.penalties import L1
from bayesstruct.sparse.ops.sparse import Lasso, SparseLogistic, SparseLogisticPullback


def evaluate(output):
    """Without compiling, which would take most of the time."""
    return output.eval(mode="FAST_COMPILE")


FAMILIES = {"gaussian": ops.lasso, "logistic": ops.sparse_logistic}


def problem(family, n=30, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    z = X[:, :6] @ [2.0, 0.0, -1.0, 0.0, 0.0, 0.3] + 0.4
    rate = rng.uniform(3.0, 9.0, size=p)
    if family == "gaussian":
        return X, z + rng.normal(size=n), rate
    return X, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(float), rate / 4


def soft(y):
    """Labels away from 0 and 1, so that they can be moved."""
    return 0.1 + 0.8 * y


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_solver(family):
    X, y, rate = problem(family)
    op = FAMILIES[family]
    outputs = [op(X, y, rate), *op(X, y, rate, intercept=True), op(X, y, rate.mean())]
    w, w1, b1, w2 = pytensor.function([], outputs, mode="FAST_COMPILE")()
    solve = {"family": family, "tol": 1e-13}
    expected = [
        solvers.sparse_mode(X, y, penalty=L1(1.0, weights=rate), intercept=False, **solve),
        solvers.sparse_mode(X, y, penalty=L1(1.0, weights=rate), intercept=True, **solve),
        solvers.sparse_mode(X, y, rate=rate.mean(), intercept=False, **solve),
    ]
    # The solver stops on its gap, the square of its error.
    for got, solution in zip([w, w1, w2], expected, strict=True):
        np.testing.assert_allclose(got, solution.coefficients, atol=1e-5)
    assert b1 == pytest.approx(expected[1].intercept, abs=1e-5)
    assert 0 < np.count_nonzero(w) < 6


def gradient_of_loss(family, X, y, w, b=0.0):
    z = X @ w + b
    mean = z if family == "gaussian" else 1 / (1 + np.exp(-z))
    return X.T @ (mean - y), (mean - y).sum()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("n", "p"), [(40, 10), (40, 200)])
def test_optimality(family, n, p):
    X, y, _ = problem(family, n, p, seed=1)
    rate = 4.0 if family == "gaussian" else 1.5
    w, b = (evaluate(out) for out in FAMILIES[family](X, y, rate, intercept=True))
    g, g0 = gradient_of_loss(family, X, y, w, b)
    assert L1(rate).residual(w, g) < 1e-10
    assert abs(g0) < 1e-10
    assert 3 < np.count_nonzero(w) < 40


@pytest.mark.chain
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients(family, intercept, assert_derivatives):
    X, y, rate = problem(family)
    y = y if family == "gaussian" else soft(y)

    def f(X, y, rate):
        out = FAMILIES[family](X, y, rate, intercept=intercept)
        return pt.concatenate([out[0], out[1][None]]) if intercept else out

    assert_derivatives(f, [X, y, rate])
    assert_derivatives(f, [X, y, rate.mean()])
    free = np.where(np.arange(6) == 3, 0.0, rate)
    assert_derivatives(f, [X, y, free], moved=[0, 1])  # a rate of zero cannot be moved down


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_through_batches(family, assert_derivatives):
    X, y, rate = problem(family, n=14)
    rate = 0.5 * rate
    other = problem(family, n=14, seed=3)
    y, y1 = (y, other[1]) if family == "gaussian" else (soft(y), soft(other[1]))
    designs, responses = np.stack([X, other[0]]), np.stack([y, y1])
    for inputs in (
        [X, responses, rate],
        [X, y, np.stack([rate, 0.6 * rate])],
        [designs, responses, rate.mean()],
        [designs, y, np.stack([rate, 0.6 * rate])],
    ):
        assert_derivatives(FAMILIES[family], inputs)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_with_more_coefficients_than_rows(family, assert_derivatives):
    X, y, _ = problem(family, 25, 60, seed=5)
    rate = 5.0 if family == "gaussian" else 1.5
    y = y if family == "gaussian" else soft(y)
    assert 2 < np.count_nonzero(evaluate(FAMILIES[family](X, y, rate))) < 25
    assert_derivatives(FAMILIES[family], [X, y, rate])


@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_by_numba(family):
    # Responses and rates in rows; the same code, called from machine code.
    X, y, rate = problem(family)
    x, t, r = pt.dmatrix("x"), pt.dmatrix("t"), pt.dvector("r")
    w, b = FAMILIES[family](x, t, r, intercept=True)
    outputs = [w, b, *pytensor.grad(pt.sqr(w).sum() + b[0], [x, t, r])]
    inputs = X, np.stack([y, 1 - y]), rate
    fast = pytensor.function([x, t, r], outputs, mode="NUMBA")
    slow = pytensor.function([x, t, r], outputs, mode="FAST_COMPILE")
    for one, other in zip(fast(*inputs), slow(*inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    if family == "logistic":
        again = pickle.loads(pickle.dumps(fast))
        np.testing.assert_array_equal(again(*inputs)[2], fast(*inputs)[2])


def test_batches_of_designs_compiled_by_numba():
    x, t, r = pt.dtensor3("x"), pt.dmatrix("t"), pt.dmatrix("r")
    (X, y, rate), (X1, y1, rate1) = problem("gaussian"), problem("gaussian", seed=7)
    inputs = np.stack([X, X1]), np.stack([y, y1]), np.stack([rate, rate1])
    w = pytensor.function([x, t, r], ops.lasso(x, t, r), mode="NUMBA")(*inputs)
    for k, one in enumerate([ops.lasso(X, y, rate), ops.lasso(X1, y1, rate1)]):
        np.testing.assert_allclose(w[k], evaluate(one), atol=1e-12)


def test_batches_equal_single_calls(python_mode):
    X, y, rate = problem("gaussian")
    X1, y1, rate1 = problem("gaussian", seed=7)
    x3, y2, r2 = pt.dtensor3("x3"), pt.dmatrix("y2"), pt.dmatrix("r2")
    outputs = [
        ops.lasso(x3[0], y2, r2[0]),
        ops.lasso(x3[0], y2[0], r2),
        ops.lasso(x3, y2, 5.0),
        ops.lasso(x3, y2[0], r2),
        ops.lasso(x3, y2, r2, intercept=True)[1],
    ]
    f = pytensor.function([x3, y2, r2], outputs)
    X3, Y2, R2 = np.stack([X, X1]), np.stack([y, y1]), np.stack([rate, rate1])
    values = f(X3, Y2, R2)
    x, t, r = pt.dmatrix("x"), pt.dvector("t"), pt.dvector("r")
    one = pytensor.function([x, t, r], ops.lasso(x, t, r))
    constant = pytensor.function([x, t, r], ops.lasso(x, t, r, intercept=True)[1])
    five = np.full(6, 5.0)
    for k in range(2):
        np.testing.assert_allclose(values[0][k], one(X, Y2[k], rate), atol=1e-12)
        np.testing.assert_allclose(values[1][k], one(X, y, R2[k]), atol=1e-12)
        np.testing.assert_allclose(values[2][k], one(X3[k], Y2[k], five), atol=1e-12)
        np.testing.assert_allclose(values[3][k], one(X3[k], y, R2[k]), atol=1e-12)
        np.testing.assert_allclose(values[4][k], constant(X3[k], Y2[k], R2[k]), atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_neighbourhoods_in_one_call(family):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(80, 5)) @ (np.eye(5) + 0.5 * np.eye(5, k=1))
    Y = X.T if family == "gaussian" else (X.T > 0).astype(float)
    rate = 10.0 if family == "gaussian" else 3.0
    rates = np.where(np.eye(5), np.inf, rate)
    W, b = (evaluate(out) for out in FAMILIES[family](X, Y, rates, intercept=True))
    np.testing.assert_array_equal(np.diag(W), 0.0)
    for j in range(5):
        others = np.delete(np.arange(5), j)
        g, g0 = gradient_of_loss(family, X[:, others], Y[j], W[j, others], b[j])
        assert L1(rate).residual(W[j, others], g) < 1e-10
        assert abs(g0) < 1e-10
    # Infinite rates do not spoil the derivative.
    x, r = pt.dmatrix("x"), pt.dscalar("r")
    penalties = pt.switch(np.eye(5, dtype=bool), np.inf, r)
    loss = pt.sqr(FAMILIES[family](x, Y, penalties)).sum()
    f = pytensor.function([x, r], [loss, *pytensor.grad(loss, [x, r])], mode="FAST_COMPILE")
    value, dX, dr = f(X, rate)
    assert np.isfinite(dX).all()
    step = 1e-5
    difference = (f(X, rate + step)[0] - f(X, rate - step)[0]) / (2 * step)
    assert dr == pytest.approx(difference, rel=1e-6)
    assert value > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_is_the_mode_of_the_model(family, python_mode):
    X, y, rate = problem(family)
    w, b = (evaluate(out) for out in FAMILIES[family](X, y, rate, intercept=True))
    with pm.Model() as model:
        coefficients = pm.Laplace("w", 0.0, 1.0 / rate)
        mean = X @ coefficients + pm.Flat("b")
        if family == "gaussian":
            pm.Normal("y", mean, 1.0, observed=y)
        else:
            pm.Bernoulli("y", logit_p=mean, observed=y.astype(int))
    assert_is_mode(model, {"w": w, "b": b}, ["w", "b"])


def test_hyperparameters_are_learned_by_descent():
    # What the derivatives are for: the rate that predicts held-out rows best.
    X, y, _ = problem("gaussian", 60, 12, seed=9)
    log_rate = pt.dscalar("log_rate")
    w = ops.lasso(X[:40], y[:40], pt.exp(log_rate))
    loss = pt.sqr(y[40:] - X[40:] @ w).mean()
    f = pytensor.function([log_rate], [loss, pytensor.grad(loss, log_rate)], mode="FAST_COMPILE")
    grid = np.linspace(-1, 4, 101)
    values = [f(t)[0] for t in grid]
    slopes = [f(t)[1] for t in grid]
    k = int(np.argmin(values))
    assert 0 < k < 100
    assert slopes[k - 2] < 0 < slopes[k + 2]


def test_shapes_are_inferred_without_solving(python_mode):
    x, t = pt.dmatrix("x"), pt.dmatrix("t")
    f = pytensor.function([x, t], ops.lasso(x, t, 0.3).shape)
    assert not any(isinstance(node.op, Lasso) for node in f.maker.fgraph.apply_nodes)
    np.testing.assert_array_equal(f(np.ones((5, 3)), np.ones((2, 5))), [2, 3])


def test_other_types():
    X, y, _ = problem("gaussian")
    single = ops.lasso(X.astype("float32"), y.astype("float32"), 5)
    assert single.type.dtype == "float64"
    np.testing.assert_allclose(evaluate(single), evaluate(ops.lasso(X, y, 5.0)), atol=1e-5)
    labels = (y > 0).astype(int)
    expected = evaluate(ops.sparse_logistic(X, labels.astype(float), 1.0))
    np.testing.assert_array_equal(evaluate(ops.sparse_logistic(X, labels, 1.0)), expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_invalid_input_gives_nan(family):
    X, y, rate = problem(family)
    op = FAMILIES[family]
    missing = X.copy()
    missing[0, 0] = np.nan
    assert np.isnan(evaluate(op(missing, y, rate))).all()
    assert np.isnan(evaluate(op(X, y, -rate))).all()
    assert np.isnan(evaluate(op(X, y, np.nan * rate))).all()
    gaps = y.copy()
    gaps[3] = np.inf
    both = evaluate(op(X, np.stack([gaps, y]), rate))
    assert np.isnan(both[0]).all()  # and the other responses are served
    np.testing.assert_allclose(both[1], evaluate(op(X, y, rate)), atol=1e-12)


def test_a_search_that_is_cut_short_gives_nan():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 200))
    y = X[:, :20].sum(axis=1) + rng.normal(size=100)
    assert np.isnan(ops.lasso(X, y, 1.0, max_iter=1).eval()).all()
    assert np.isfinite(ops.lasso(X, y, 1.0).eval()).all()


def test_invalid_labels_and_separation_give_nan():
    X, y, _ = problem("logistic")
    assert np.isnan(evaluate(ops.sparse_logistic(X, 2 * y, 1.0))).all()
    assert np.isnan(evaluate(ops.sparse_logistic(X, (X[:, 0] > 0) * 1.0, 0.0))).all()
    assert np.isnan(evaluate(ops.sparse_logistic(X, np.ones(30), 1.0, intercept=True)[1]))


def test_dependent_active_columns_have_no_derivative():
    X, y, _ = problem("gaussian")
    twice = np.column_stack([X, X[:, 0]])
    rate = pt.dscalar("rate")
    w = ops.lasso(twice, y, pt.concatenate([pt.zeros(1), pt.full((5,), rate), pt.zeros(1)]))
    assert np.isnan(pytensor.grad(w.sum(), rate).eval({rate: 2.0}, mode="FAST_COMPILE"))


def test_types_are_checked():
    X, y, _ = problem("gaussian")
    with pytest.raises(TypeError, match="lasso needs a matrix X and a vector y"):
        ops.lasso(y, y, 1.0)
    with pytest.raises(TypeError, match="lasso works on real numbers; X is complex128"):
        ops.lasso(X + 1j, y, 1.0)
    with pytest.raises(TypeError, match="works on matrices"):
        Lasso()(pt.dmatrix(), pt.dvector(), pt.dmatrix())


@pytest.mark.parametrize(
    "convert",
    [
        pd.DataFrame,
        pl.DataFrame,
        lambda X: pd.DataFrame(X).astype("Float64"),
        lambda X: X.astype(object),
        lambda X: X.tolist(),
    ],
)
def test_any_kind_of_table_gives_the_same_mode(convert):
    X, y, _ = problem("gaussian")
    expected = ops.lasso(X, y, 2.0).eval(mode="FAST_COMPILE")
    for responses in (y, pl.Series(y), pd.Series(y).astype("Float64")):
        found = ops.lasso(convert(X), responses, 2.0).eval(mode="FAST_COMPILE")
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: ops.lasso(None, y, 1.0), "lasso: X must be numbers, not None"),
        (lambda X, y: ops.lasso(X, ["a"] * len(y), 1.0), "lasso: y must be numbers, not text"),
        (lambda X, y: ops.lasso(X, y, "1"), "lasso: rate must be numbers, not text"),
        (lambda X, y: ops.lasso(X, y[:-1], 1.0), "rows, y has"),
        (lambda X, y: ops.lasso(X, y, [1.0, 2.0, 3.0]), "there are 3 rates, X has"),
        (
            lambda X, y: ops.lasso(pd.DataFrame(X).astype("Float64").mask(X > 1.5), y, 1.0),
            "X has missing values in column",
        ),
        (lambda X, y: ops.lasso(X, pl.Series([None, *y[1:]]), 1.0), "lasso: y has missing values"),
        (lambda X, y: ops.lasso(X, y, 1.0, tol=-1), "`tol` must be at least 0"),
        (lambda X, y: ops.lasso(X, y, 1.0, max_iter=0), "`max_iter` must be a whole number"),
    ],
)
def test_shapes_that_do_not_match_are_named(call, message):
    X, y, _ = problem("gaussian")
    with pytest.raises(ValueError, match=message):
        call(X, y)


def test_arguments_of_a_wrong_type_are_named():
    X, y, _ = problem("gaussian")
    with pytest.raises(TypeError, match="X is a sparse matrix; give its toarray"):
        ops.lasso(sparse.csc_array(X), y, 1.0)
    with pytest.raises(TypeError, match="`intercept` must be True or False"):
        ops.sparse_logistic(X, y > 0, 1.0, intercept="no")
    tensors = [pt.dscalar() for _ in y]
    assert ops.lasso(X, tensors, 1.0).type.ndim == 1  # lists of tensors are fine


def test_options_distinguish_ops():
    assert Lasso(intercept=True) == Lasso(intercept=True)
    assert Lasso(intercept=True) != Lasso()
    assert Lasso(tol=1e-10) != Lasso()
    assert Lasso() != SparseLogistic()


def test_machine_code_is_cacheable():
    from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key

    node = Lasso().make_node(pt.dmatrix(), pt.dmatrix(), pt.dmatrix())
    assert numba_funcify_and_cache_key(node.op, node=node)[1] is not None
    inputs = [pt.dmatrix(), pt.dmatrix(), pt.dmatrix(), pt.dmatrix(), pt.dvector()]
    node = SparseLogisticPullback().make_node(*inputs, pt.dmatrix(), pt.dvector())
    assert numba_funcify_and_cache_key(node.op, node=node)[1] is not None
