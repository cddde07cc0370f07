import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from bayesstruct import ops, solvers

N = (20.0, 40.0, 30.0)


def covariances(p=5, seed=0):
    rng = np.random.default_rng(seed)
    mix = rng.standard_normal((p, p))
    rows = [rng.standard_normal((int(n), p)) @ (mix + 0.4 * rng.standard_normal((p, p))) for n in N]
    return np.stack([np.corrcoef(x, rowvar=False) for x in rows])


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_equals_the_solver(norm, mode):
    S, tilt = covariances(), np.triu(np.ones((5, 5)), 1)
    s, rate, diagonal = pt.dtensor3(), pt.dscalar(), pt.dscalar()
    out = ops.multi_task_graphical_lasso(s, N, rate, norm=norm, diagonal_rate=diagonal)
    f = pytensor.function([s, rate, diagonal], out, mode=mode)
    expected = solvers.multi_task_graphical_lasso(
        S, N, 18.0, norm=norm, diagonal_rate=2.0, tol=1e-18
    ).precision
    assert 0 < np.count_nonzero(np.triu(expected[0], 1)) < 10
    np.testing.assert_allclose(f(S, 18.0, 2.0), expected, atol=1e-9)
    np.testing.assert_allclose(f(S + 0.1 * (tilt - tilt.T), 18.0, 2.0), expected, atol=1e-9)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("diagonal", [0.0, 2.0])
def test_derivatives(norm, diagonal, assert_derivatives):
    def mode(S, rate, diagonal_rate):
        return ops.multi_task_graphical_lasso(
            S, N, rate, norm=norm, diagonal_rate=diagonal_rate, tol=1e-22
        )

    moved = None if diagonal else [0, 1]
    assert_derivatives(mode, [covariances(), 18.0, diagonal], moved=moved)


def test_derivatives_in_a_matrix_of_rates(assert_derivatives):
    u = np.random.default_rng(1).uniform(3.0, 9.0, (5, 5))

    def mode(S, rate):
        return ops.multi_task_graphical_lasso(S, 30, 0.5 * (rate + rate.T), norm="linf", tol=1e-22)

    assert_derivatives(mode, [covariances(), u + u.T])


def test_invalid_inputs(python_mode):
    S = covariances()
    s, rate = pt.dtensor3(), pt.dscalar()
    f = pytensor.function([s, rate], ops.multi_task_graphical_lasso(s, N, rate))
    assert np.isnan(f(S, -1.0)).all()
    assert np.isnan(f(np.full(S.shape, np.nan), 1.0)).all()
    assert np.isnan(f(0 * S, 1.0)).all()
    with pytest.raises(ValueError, match="norm"):
        ops.multi_task_graphical_lasso(s, N, rate, norm="l1")
    with pytest.raises(TypeError, match="tasks, p, p"):
        ops.multi_task_graphical_lasso(pt.dmatrix(), N, rate)
