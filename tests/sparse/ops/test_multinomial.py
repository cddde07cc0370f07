"""Modes of sparse multinomial regressions as an Op: being modes, the gauge, derivatives, batches."""

import pickle

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from tools.modes import assert_is_mode

from bayesstruct import ops, solvers
from bayesstruct.penalties import L1, Group
from bayesstruct.sparse.ops.multinomial import SparseMultinomial, SparseMultinomialPullback


def evaluate(*outputs):
    """Without compiling, which would take most of the time."""
    return pytensor.function([], list(outputs), mode="FAST_COMPILE")()


def problem(k, n=40, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    W = np.zeros((p, k))
    W[:3] = 1.5 * rng.normal(size=(3, k))
    y = np.eye(k)[np.argmax(X @ W + rng.gumbel(size=(n, k)), axis=1)]
    return X, y


def soft(y):
    """Counts away from zero, so that they can be moved; rows differ in their totals."""
    return (0.1 + 0.8 * y) * np.linspace(0.7, 1.5, len(y))[:, None]


def slopes(X, y, W, b=0.0):
    z = X @ W + b
    p = np.exp(z - z.max(axis=1, keepdims=True))
    rest = y.sum(axis=1, keepdims=True) * p / p.sum(axis=1, keepdims=True) - y
    return X.T @ rest, rest.sum(axis=0)


def objective(X, y, rate, W, b=0.0):
    z = X @ W + b
    return y.sum(axis=1) @ np.log(np.exp(z).sum(axis=1)) - np.vdot(y, z) + rate * np.abs(W).sum()


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("k", "n", "p"), [(3, 60, 8), (4, 60, 8), (5, 40, 150)])
def test_optimality_and_gauge(k, n, p, grouped):
    X, y = problem(k, n, p, seed=1)
    y = soft(y) if k == 3 else y
    rate = 6.0 if grouped else 3.0
    W, b = evaluate(*ops.sparse_multinomial(X, y, rate, grouped=grouped, intercept=True))
    g, g0 = slopes(X, y, W, b)
    penalty = Group(rate, np.repeat(np.arange(p), k)) if grouped else L1(rate)
    assert penalty.residual(W.ravel(), g.ravel()) < 1e-10
    assert np.abs(g0).max() < 1e-10
    assert 3 < np.count_nonzero(W) < W.size
    assert abs(b.sum()) < 1e-12
    if grouped:
        np.testing.assert_allclose(W.sum(axis=1), 0.0, atol=1e-10)
    elif k % 2:
        np.testing.assert_array_equal(np.median(W, axis=1), 0.0)


@pytest.mark.parametrize("grouped", [False, True])
def test_two_categories_are_a_logistic_regression(grouped):
    X, y = problem(2)
    W, b = evaluate(*ops.sparse_multinomial(X, y, 2.0, grouped=grouped, intercept=True))
    rate = 2.0 / np.sqrt(2.0) if grouped else 2.0
    w, b0 = evaluate(*ops.sparse_logistic(X, y[:, 1], rate, intercept=True))
    assert 0 < np.count_nonzero(w) < 6
    np.testing.assert_allclose(W, np.outer(w, [-0.5, 0.5]), atol=1e-10)
    np.testing.assert_allclose(b, b0 * np.array([-0.5, 0.5]), atol=1e-10)


@pytest.mark.parametrize("grouped", [False, True])
def test_equals_the_solver(grouped):
    # Three categories: the mode is unique, and the solver's is the same.
    X, y = problem(3)
    W, b = evaluate(*ops.sparse_multinomial(X, y, 3.0, grouped=grouped, intercept=True))
    penalty = Group(3.0, np.repeat(np.arange(6), 3)) if grouped else L1(3.0)
    codes = y.argmax(axis=1)
    found = solvers.sparse_mode(X, codes, family="multinomial", penalty=penalty, tol=1e-12)
    # The solver stops on its gap, the square of its error.
    np.testing.assert_allclose(W, found.coefficients, atol=1e-5)
    np.testing.assert_allclose(b, found.intercept - found.intercept.mean(), atol=1e-5)


def test_names_of_categories_do_not_matter():
    X, y = problem(4, seed=2)
    order = [2, 0, 3, 1]
    W = evaluate(ops.sparse_multinomial(X, y, 1.5))[0]
    np.testing.assert_allclose(
        evaluate(ops.sparse_multinomial(X, y[:, order], 1.5))[0], W[:, order], atol=1e-9
    )


def four():
    """A mode with a row whose shifts are free and one at the end of its free shifts."""
    X, y = problem(4, n=30, seed=18)
    return X, soft(y), 0.5


def test_of_all_modes_the_one_of_least_norm():
    X, y, rate = four()
    W, b = evaluate(*ops.sparse_multinomial(X, y, rate, intercept=True))
    ordered = np.sort(W, axis=1)
    best = objective(X, y, rate, W, b)
    loose = (W != 0).all(axis=1)
    assert loose.any()
    np.testing.assert_allclose(W[loose].sum(axis=1), 0.0, atol=1e-12)
    ends = (np.count_nonzero(W, axis=1) == 3) & ((ordered[:, 1] == 0) ^ (ordered[:, 2] == 0))
    assert ends.any()
    for j in np.flatnonzero(loose | ends):
        free = 0
        for shift in (-1e-3, 1e-3):
            other = W.copy()
            other[j] += shift
            rise = objective(X, y, rate, other, b) - best
            assert rise > -1e-10
            if rise < 1e-10:  # another mode
                assert np.linalg.norm(other) > np.linalg.norm(W)
                free += 1
        assert free == (2 if loose[j] else 1)


@pytest.mark.chain
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("k", [3, 4])
def test_derivatives(k, grouped, intercept, assert_derivatives):
    X, y = problem(k)
    rates = np.random.default_rng(1).uniform(1.0, 3.0, size=6) * (2.5 if grouped else 0.7)

    def f(X, y, rate):
        out = ops.sparse_multinomial(X, y, rate, grouped=grouped, intercept=intercept)
        return pt.concatenate([out[0], out[1][None]]) if intercept else out

    W = evaluate(f(X, soft(y), rates))[0][:6]
    assert 6 < np.count_nonzero(W) < W.size
    assert_derivatives(f, [X, soft(y), rates])
    # A predictor without a rate, whose coefficients are in another gauge.
    rates[4] = 0.0
    assert_derivatives(f, [X, soft(y), rates], moved=[0, 1])


def test_derivatives_where_shifts_are_free(assert_derivatives):
    X, y, rate = four()

    def f(X, y, rate):
        W, b = ops.sparse_multinomial(X, y, rate, intercept=True)
        return pt.concatenate([W, b[None]])

    assert_derivatives(f, [X, y, np.array(rate)])
    assert_derivatives(f, [X, y, np.full(6, rate)], moved=[2])


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("k", [3, 4])
def test_derivative_in_a_rate_at_zero_holds_for_differences(k, grouped):
    X, y = problem(k)
    rate, base = pt.dscalar("rate"), np.array([0.0, 1.0, 2.0, 1.0, 1.0, 2.0])
    rates = pt.set_subtensor(pt.as_tensor(base)[0], rate)
    W = ops.sparse_multinomial(X, y, rates, grouped=grouped)
    value = pt.sqr(W[:, :-1] - W[:, 1:]).sum()
    f = pytensor.function([rate], [value, pytensor.grad(value, rate)], mode="FAST_COMPILE")
    ahead = (4 * f(1e-4)[0] - f(2e-4)[0] - 3 * f(0.0)[0]) / 2e-4
    assert f(0.0)[1] == pytest.approx(ahead, rel=1e-5)


def test_derivatives_with_more_coefficients_than_rows(assert_derivatives):
    X, y = problem(3, 25, 40, seed=5)
    assert 3 < np.count_nonzero(evaluate(ops.sparse_multinomial(X, soft(y), 2.0))[0]) < 30
    assert_derivatives(ops.sparse_multinomial, [X, soft(y), np.array(2.0)])


def test_batches_equal_single_calls():
    (X, y), (X1, y1) = problem(3, 20), problem(3, 20, seed=3)
    rates = np.random.default_rng(2).uniform(0.5, 2.0, size=(2, 6))
    designs, tables = np.stack([X, X1]), np.stack([soft(y), soft(y1)])
    several = evaluate(
        ops.sparse_multinomial(X, tables, rates[0]),
        ops.sparse_multinomial(X, tables[0], rates),
        *ops.sparse_multinomial(designs, tables[0], rates, intercept=True),
    )
    for i in range(2):
        single = evaluate(
            ops.sparse_multinomial(X, tables[i], rates[0]),
            ops.sparse_multinomial(X, tables[0], rates[i]),
            *ops.sparse_multinomial(designs[i], tables[0], rates[i], intercept=True),
        )
        for many, one in zip(several, single, strict=True):
            np.testing.assert_allclose(many[i], one, atol=1e-10)


def test_compiled_by_numba():
    (X, y), (_, y1) = problem(3, 20), problem(3, 20, seed=3)
    x, t, r = pt.dmatrix("x"), pt.dtensor3("t"), pt.dvector("r")
    W, b = ops.sparse_multinomial(x, t, r, intercept=True)
    outputs = [W, b, *pytensor.grad(pt.sqr(W).sum() + b[:, 0].sum(), [x, t, r])]
    inputs = X, np.stack([soft(y), soft(y1)]), np.linspace(0.5, 2.0, 6)
    fast = pytensor.function([x, t, r], outputs, mode="NUMBA")
    slow = pytensor.function([x, t, r], outputs, mode="FAST_COMPILE")
    for one, other in zip(fast(*inputs), slow(*inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    again = pickle.loads(pickle.dumps(fast))
    np.testing.assert_array_equal(again(*inputs)[2], fast(*inputs)[2])


def test_derivatives_through_batches(assert_derivatives):
    (X, y), (X1, y1) = problem(3, 20), problem(3, 20, seed=3)
    both, designs = np.stack([soft(y), soft(y1)]), np.stack([X, X1])
    rates = np.random.default_rng(2).uniform(0.5, 2.0, size=(2, 6))
    for inputs in ([X, both, rates[0]], [X, soft(y), rates], [designs, both, np.array(1.0)]):
        assert_derivatives(ops.sparse_multinomial, inputs)


def test_is_the_mode_of_the_model(python_mode):
    X, y = problem(3)
    W, b = evaluate(*ops.sparse_multinomial(X, y, 2.0, intercept=True))
    with pm.Model() as model:
        coefficients = pm.Laplace("W", 0.0, 1.0 / 2.0, shape=(6, 3))
        p = pm.math.softmax(X @ coefficients + pm.Flat("b", shape=3), axis=-1)
        pm.Multinomial("y", 1, p, observed=y.astype(int))
    assert_is_mode(model, {"W": W, "b": b}, ["W", "b"])


def test_infinite_rates_keep_predictors_out():
    X, y = problem(4)
    rates = np.array([1.0, np.inf, 1.0, 1.0, np.inf, 1.0])
    x, kept = pt.dmatrix("x"), [0, 2, 3, 5]
    for grouped in (False, True):
        W = ops.sparse_multinomial(x, y, rates, grouped=grouped)
        value, slope = pytensor.function(
            [x], [W, pytensor.grad(pt.sqr(W).sum(), x)], mode="FAST_COMPILE"
        )(X)
        np.testing.assert_array_equal(value[[1, 4]], 0.0)
        np.testing.assert_array_equal(slope[:, [1, 4]], 0.0)
        alone = evaluate(ops.sparse_multinomial(X[:, kept], y, 1.0, grouped=grouped))[0]
        np.testing.assert_allclose(value[kept], alone, atol=1e-10)


def test_invalid_input_gives_nan():
    X, y = problem(3)
    missing = X.copy()
    missing[0, 0] = np.nan
    never = np.column_stack([y, np.zeros(40)])
    split = np.eye(3)[np.digitize(X[:, 0], [-0.5, 0.5])]
    outputs = [
        ops.sparse_multinomial(missing, y, 1.0),
        ops.sparse_multinomial(X, -y, 1.0),
        ops.sparse_multinomial(X, y, -1.0),
        ops.sparse_multinomial(X, y, np.nan),
        ops.sparse_multinomial(X, never, 1.0, intercept=True)[1],
        ops.sparse_multinomial(X[:, :1], split, 0.0, intercept=True)[0],
    ]
    for value in evaluate(*outputs):
        assert np.isnan(value).all()
    assert np.isfinite(evaluate(ops.sparse_multinomial(X, never, 1.0))[0]).all()
    gaps = np.stack([y, y])
    gaps[0, 3, 1] = np.inf
    value = evaluate(ops.sparse_multinomial(X, gaps, 1.0))[0]
    assert np.isnan(value[0]).all()
    assert np.isfinite(value[1]).all()  # the other table is served


def test_dependent_active_columns_have_no_derivative():
    X, y = problem(3)
    twice = np.column_stack([X, X[:, 0]])
    rate = pt.dscalar("rate")
    rates = pt.concatenate([pt.zeros(1), pt.full((5,), rate), pt.zeros(1)])
    W = ops.sparse_multinomial(twice, y, rates)
    slope = pytensor.grad(W[:, 0].sum(), rate)
    assert np.isnan(slope.eval({rate: 1.0}, mode="FAST_COMPILE"))


def test_shapes_are_inferred_without_solving():
    x, t = pt.dmatrix("x"), pt.dtensor3("t")
    W, b = ops.sparse_multinomial(x, t, 0.3, intercept=True)
    f = pytensor.function([x, t], [*W.shape, *b.shape], mode="FAST_COMPILE")
    assert not any(isinstance(node.op, SparseMultinomial) for node in f.maker.fgraph.apply_nodes)
    np.testing.assert_array_equal(f(np.ones((5, 3)), np.ones((2, 5, 4))), [2, 3, 4, 2, 4])


def test_messages_and_keys():
    from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key

    X, y = problem(3)
    with pytest.raises(TypeError, match="sparse_multinomial needs a matrix X and a table y"):
        ops.sparse_multinomial(X, y[:, 0], 1.0)
    with pytest.raises(TypeError, match="works on real numbers; y is complex128"):
        ops.sparse_multinomial(X, y + 1j, 1.0)
    with pytest.raises(TypeError, match="works on matrices X and rate"):
        SparseMultinomial()(pt.dmatrix(), pt.dmatrix(), pt.dmatrix())
    assert SparseMultinomial(grouped=True) != SparseMultinomial()
    assert pickle.loads(pickle.dumps(SparseMultinomial(True))) == SparseMultinomial(grouped=True)
    node = SparseMultinomial().make_node(pt.dmatrix(), pt.dtensor3(), pt.dmatrix())
    assert numba_funcify_and_cache_key(node.op, node=node)[1] is not None
    inputs = [*node.inputs, *node.outputs, *node.outputs]
    node = SparseMultinomialPullback().make_node(*inputs)
    assert numba_funcify_and_cache_key(node.op, node=node)[1] is not None
