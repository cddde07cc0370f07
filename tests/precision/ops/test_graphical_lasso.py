import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from bayesstruct import ops, solvers
from bayesstruct.precision.ops.graphical_lasso import GraphicalLasso

MODES = ["NUMBA", "FAST_COMPILE"]


def covariance(p=5, seed=0, n=20):
    rng = np.random.default_rng(seed)
    return np.cov(rng.standard_normal((n, p)) @ rng.standard_normal((p, p)), rowvar=False)


def penalty(p=5, seed=0):
    u = np.random.default_rng(seed).uniform(0.05, 0.5, (p, p))
    return u + u.T


@pytest.mark.parametrize("mode", MODES)
def test_equals_the_solver(mode):
    S, lam = covariance(), penalty()
    s, scalar, matrix = pt.dmatrix("s"), pt.dscalar("scalar"), pt.dmatrix("matrix")
    outputs = [
        ops.graphical_lasso(s, scalar),
        ops.graphical_lasso(s, scalar, penalize_diagonal=True),
        ops.graphical_lasso(s, matrix),
    ]
    f = pytensor.function([s, scalar, matrix], outputs, mode=mode)
    expected = [
        solvers.graphical_lasso(S, 0.3, tol=1e-22),
        solvers.graphical_lasso(S, 0.3, penalize_diagonal=True, tol=1e-22),
        solvers.graphical_lasso(S, lam, tol=1e-22),
    ]
    for value, solution in zip(f(S, 0.3, lam), expected, strict=True):
        np.testing.assert_allclose(value, solution.precision, rtol=1e-10)
        # Some entries are zero and some are not, or the derivatives below test nothing.
    assert 0 < np.count_nonzero(np.triu(expected[0].precision, 1)) < 10


def test_gradient_with_scalar_penalty(assert_derivatives):
    def diagonal_too(S, lam):
        return ops.graphical_lasso(S, lam, penalize_diagonal=True)

    inputs = [covariance(), 0.3]
    assert_derivatives(ops.graphical_lasso, inputs, mode="NUMBA")
    assert_derivatives(diagonal_too, inputs)


def test_gradient_with_matrix_penalty(assert_derivatives):
    # S and lam do not stay symmetric: their symmetric parts are what counts.
    assert_derivatives(ops.graphical_lasso, [covariance(), penalty()])


@pytest.mark.parametrize("lam", [0.3, 0.1])
def test_gradient_of_a_larger_problem(lam, assert_derivatives):
    S = covariance(20, seed=1, n=15)
    S /= np.sqrt(np.outer(np.diag(S), np.diag(S)))
    assert_derivatives(ops.graphical_lasso, [S, lam])


def test_value_on_an_asymmetric_matrix(python_mode):
    S = covariance()
    tilt = np.triu(np.ones((5, 5)), 1)
    lopsided = S + 0.1 * (tilt - tilt.T)
    value = ops.graphical_lasso(lopsided, 0.3).eval()
    np.testing.assert_allclose(value, ops.graphical_lasso(S, 0.3).eval(), rtol=1e-10)


def test_batches(python_mode):
    S = np.stack([covariance(seed=i) for i in range(3)])
    lam = np.array([0.1, 0.3, 0.5])
    lam_matrices = np.stack([penalty(seed=i) for i in range(3)])
    s, v, m = pt.dtensor3("s"), pt.dvector("v"), pt.dtensor3("m")
    outputs = [
        ops.graphical_lasso(s, v),
        ops.graphical_lasso(s, 0.2),
        ops.graphical_lasso(s[0], v),
        ops.graphical_lasso(s, m),
        pt.grad(ops.graphical_lasso(s, v).sum(), v),
    ]
    f = pytensor.function([s, v, m], outputs)
    values = f(S, lam, lam_matrices)

    def one(S, lam):
        return solvers.graphical_lasso(S, lam, tol=1e-22).precision

    for i in range(3):
        np.testing.assert_allclose(values[0][i], one(S[i], lam[i]), rtol=1e-9)
        np.testing.assert_allclose(values[1][i], one(S[i], 0.2), rtol=1e-9)
        np.testing.assert_allclose(values[2][i], one(S[0], lam[i]), rtol=1e-9)
        np.testing.assert_allclose(values[3][i], one(S[i], lam_matrices[i]), rtol=1e-9)
        step = 1e-5
        difference = one(S[i], lam[i] + step).sum() - one(S[i], lam[i] - step).sum()
        np.testing.assert_allclose(values[4][i], difference / (2 * step), rtol=1e-4)


def test_batches_compiled_by_numba():
    S, lam = np.stack([covariance(seed=i) for i in range(2)]), np.array([0.1, 0.5])
    s, v = pt.dtensor3("s"), pt.dvector("v")
    K = pytensor.function([s, v], ops.graphical_lasso(s, v), mode="NUMBA")(S, lam)
    for i in range(2):
        expected = solvers.graphical_lasso(S[i], lam[i], tol=1e-22).precision
        np.testing.assert_allclose(K[i], expected, rtol=1e-9)


def test_shape_is_inferred_without_solving(python_mode):
    s = pt.dmatrix("s")
    f = pytensor.function([s], ops.graphical_lasso(s, 0.3).shape)
    assert not any(isinstance(node.op, GraphicalLasso) for node in f.maker.fgraph.apply_nodes)
    np.testing.assert_array_equal(f(np.eye(4)), [4, 4])


def test_single_precision_input(python_mode):
    K = ops.graphical_lasso(np.eye(3, dtype="float32"), np.float32(0.1))
    assert K.type.dtype == "float64"
    np.testing.assert_allclose(K.eval(), np.eye(3))


@pytest.mark.parametrize("bad", [np.full((2, 2), np.nan), -np.eye(2), np.ones((2, 2))])
def test_invalid_input_gives_nan(bad, python_mode):
    assert np.isnan(ops.graphical_lasso(bad, 0.0).eval()).all()


def test_only_matrices():
    with pytest.raises(TypeError, match="works on matrices"):
        GraphicalLasso()(pt.dvector(), pt.dmatrix())


def test_options_distinguish_ops():
    assert GraphicalLasso(tol=1e-8) == GraphicalLasso(tol=1e-8)
    assert GraphicalLasso(tol=1e-8) != GraphicalLasso()


def test_pickles():
    op = pickle.loads(pickle.dumps(GraphicalLasso(tol=1e-9)))
    assert op == GraphicalLasso(tol=1e-9)
    s = pt.dmatrix("s")
    f = pytensor.function([s], pytensor.grad(ops.graphical_lasso(s, 0.3).sum(), s))
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(f(covariance()), g(covariance()))


def test_numba_function_is_cacheable():
    from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key

    node = GraphicalLasso().make_node(pt.dmatrix(), pt.dmatrix())
    _, key = numba_funcify_and_cache_key(node.op, node=node)
    assert key is not None
