"""Modes under priors of groups as Ops: values, derivatives, and being modes of the models."""

import pickle

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from tools.modes import assert_is_mode

import bayesstruct as bs

from bayesstruct import ops
from bayesstruct.penalties import Group, Tree
from bayesstruct.sparse.ops.sparse_groups import GroupMode
from bayesstruct.sparse.penalties.structure import Structure

GROUPS = [0, 1, 0, 2, 1, 2]
NESTED = [[0, 1, 2, 3, 4, 5], [1, 2], [2], [3, 4, 5], [4]]
FAMILIES = ["gaussian", "logistic"]


def group(X, y, rate, **kwargs):
    return ops.group_lasso(X, y, GROUPS, rate, **kwargs)


def tree(X, y, rate, **kwargs):
    return ops.tree_lasso(X, y, NESTED, rate, **kwargs)


def evaluate(*outputs):
    return pytensor.function([], list(outputs), mode="FAST_COMPILE")()


def problem(family, n=30, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    z = X[:, :6] @ [2.0, 0.0, -1.0, 0.0, 0.0, 0.3] + 0.4
    if family == "gaussian":
        return X, z + rng.normal(size=n), 6.0
    return X, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(float), 1.5


def slopes(family, X, y, w, b=0.0):
    z = X @ w + b
    rest = (z if family == "gaussian" else 1 / (1 + np.exp(-z))) - y
    return X.T @ rest, rest.sum()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("n", "p"), [(40, 12), (40, 120)])
def test_optimality(family, n, p):
    X, y, rate = problem(family, n, p, seed=1)
    labels = np.arange(p) // 3
    parents = np.append(-1, (np.arange(1, p) - 1) // 2)
    for penalty, out in (
        (
            Group(1.5 * rate, labels),
            ops.group_lasso(X, y, labels, 1.5 * rate, family=family, intercept=True),
        ),
        (
            Tree.from_parents(0.8 * rate, parents),
            ops.tree_lasso(X, y, None, 0.8 * rate, parents=parents, family=family, intercept=True),
        ),
    ):
        w, b = evaluate(*out)
        g, g0 = slopes(family, X, y, w, b)
        assert penalty.residual(w, g) < 1e-9
        assert abs(g0) < 1e-9
        assert 0 < np.count_nonzero(w) < p
        np.testing.assert_array_equal(np.signbit(w[w == 0]), False)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", [group, tree])
def test_gradients(mode, family, intercept, assert_derivatives):
    X, y, rate = problem(family)
    y = y if family == "gaussian" else 0.1 + 0.8 * y

    def f(X, y, rate):
        out = mode(X, y, rate, family=family, intercept=intercept)
        return pt.concatenate([out[0], out[1][None]]) if intercept else out

    assert 0 < np.count_nonzero(evaluate(f(X, y, rate))[0][:6]) < 6
    assert_derivatives(f, [X, y, rate])


def test_gradients_in_the_rates_of_groups_and_through_batches(assert_derivatives):
    X, y, _ = problem("gaussian", n=14)
    rates = np.array([6.0, 3.0, 1.0])
    other = problem("gaussian", n=14, seed=3)
    both, designs = np.stack([y, other[1]]), np.stack([X, other[0]])
    for inputs in (
        [X, y, rates],
        [X, both, rates],
        [X, y, np.stack([rates, 0.5 * rates])],
        [designs, both, rates],
    ):
        assert_derivatives(group, inputs)

    def weighted(X, y, rate):
        return ops.group_lasso(X, y, GROUPS, rate, weights=[1.0, 0.0, 0.3])

    assert_derivatives(weighted, [X, y, 5.0])


def test_gradient_with_more_coefficients_than_rows(assert_derivatives):
    X, y, _ = problem("gaussian", 14, 30, seed=6)
    labels = np.arange(30) // 3

    def f(X, y, rate):
        return ops.group_lasso(X, y, labels, rate)

    assert 3 < np.count_nonzero(evaluate(f(X, y, 9.0))[0]) < 30
    assert_derivatives(f, [X, y, 9.0])


def test_batches_equal_single_calls():
    X, y, _ = problem("gaussian")
    other = problem("gaussian", seed=8)
    rates = np.array([[6.0, 3.0, 1.0], [2.0, 2.0, 9.0]])
    both = np.stack([y, other[1]])
    first, second = evaluate(group(X, both, rates), group(X, both, 4.0))
    for k in range(2):
        np.testing.assert_allclose(first[k], evaluate(group(X, both[k], rates[k]))[0], atol=1e-10)
        np.testing.assert_allclose(second[k], evaluate(group(X, both[k], 4.0))[0], atol=1e-10)


def test_compiled_by_numba():
    X, y, _ = problem("gaussian")
    x, t, r = pt.dmatrix("x"), pt.dmatrix("t"), pt.dvector("r")
    w, b = group(x, t, r, intercept=True)
    outputs = [w, b, *pytensor.grad(pt.sqr(w).sum() + b[0], [x, t, r])]
    inputs = X, np.stack([y, 2 * y]), np.array([6.0, 3.0, 1.0])
    fast = pytensor.function([x, t, r], outputs, mode="NUMBA")(*inputs)
    slow = pytensor.function([x, t, r], outputs, mode="FAST_COMPILE")(*inputs)
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.chain
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", [group, tree])
def test_is_the_mode_of_the_model(mode, family, python_mode):
    X, y, rate = problem(family)
    w, b = evaluate(*mode(X, y, rate, family=family, intercept=True))
    with pm.Model() as model:
        if mode is group:
            prior = bs.GroupLaplace("w", GROUPS, rate)
        else:
            prior = bs.TreeLaplace("w", NESTED, rate)
        mean = X @ prior + pm.Flat("b")
        if family == "gaussian":
            pm.Normal("y", mean, 1.0, observed=y)
        else:
            pm.Bernoulli("y", logit_p=mean, observed=y.astype(int))
    assert_is_mode(model, {"w": w, "b": b}, ["w", "b"])


def test_invalid_input_gives_nan():
    X, y, rate = problem("gaussian")
    missing = X.copy()
    missing[0, 0] = np.nan
    assert np.isnan(evaluate(group(missing, y, rate))[0]).all()
    assert np.isnan(evaluate(group(X, y, -rate))[0]).all()
    assert np.isnan(evaluate(group(X, 3 * y, rate, family="logistic"))[0]).all()
    gaps = np.stack([y, y])
    gaps[0, 3] = np.nan
    w = evaluate(group(X, gaps, rate))[0]
    assert np.isnan(w[0]).all()
    assert np.isfinite(w[1]).all()


def test_unpenalised_columns_that_separate_labels_give_nan():
    X = problem("logistic")[0]
    labels = (X[:, 0] > 0) * 1.0
    w = ops.group_lasso(X, labels, [-1, 0, 0, 1, 1, 1], 2.0, family="logistic")
    assert np.isnan(evaluate(w)[0]).all()


def test_messages():
    X, y, rate = problem("gaussian")
    with pytest.raises(ValueError, match="`family` must be one of"):
        group(X, y, rate, family="poisson")
    with pytest.raises(TypeError, match="group_lasso needs a matrix X"):
        group(y[:6], y, rate)
    with pytest.raises(ValueError, match="X has 5 columns, and the groups hold 6"):
        group(X[:, :5], y, rate)
    with pytest.raises(TypeError, match="one rate"):
        tree(X, y, np.ones(5))
    with pytest.raises(ValueError, match="either `groups` or `parents`"):
        ops.tree_lasso(X, y, None, rate)
    with pytest.raises(TypeError, match="works on matrices"):
        GroupMode(Structure.of(Group(1.0, GROUPS)))(pt.dmatrix(), pt.dvector(), pt.dmatrix())


def test_ops_are_compared_pickled_and_cached_by_content():
    from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key

    def op(groups, **kwargs):
        return GroupMode(Structure.of(Group(1.0, groups)), **kwargs)

    assert op(GROUPS) == op(list(GROUPS))
    assert op(GROUPS) != op([0, 0, 0, 1, 1, 1])
    assert op(GROUPS) != op(GROUPS, intercept=True)
    assert pickle.loads(pickle.dumps(op(GROUPS))) == op(GROUPS)
    keys = set()
    for groups in (GROUPS, [0, 0, 0, 1, 1, 1]):
        node = op(groups).make_node(pt.dmatrix(), pt.dmatrix(), pt.dmatrix())
        keys.add(numba_funcify_and_cache_key(node.op, node=node)[1])
    assert None not in keys
    assert len(keys) == 2
