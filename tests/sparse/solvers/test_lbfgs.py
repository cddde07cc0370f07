"""The limited-memory matrix against the dense BFGS recursion."""

import numpy as np
import pytest

from bayesstruct.sparse.solvers.lbfgs import LimitedMemory


def curved_pairs(rng, count, size):
    """Steps and gradient differences of a random convex quadratic."""
    A = rng.standard_normal((size, size))
    H = A @ A.T + 0.1 * np.eye(size)
    S = rng.standard_normal((count, size))
    return S, S @ H


def dense_bfgs(scale, S, Y):
    B = scale * np.eye(S.shape[1])
    for s, y in zip(S, Y, strict=True):
        Bs = B @ s
        B = B - np.outer(Bs, Bs) / (s @ Bs) + np.outer(y, y) / (s @ y)
    return B


def dense(matrix, size):
    return np.column_stack([matrix @ e for e in np.eye(size)])


@pytest.mark.parametrize("count", [0, 1, 3, 9])
def test_compact_form_is_the_dense_recursion_over_the_pairs_that_are_kept(count):
    rng, size, memory = np.random.default_rng(count), 6, LimitedMemory(6, 4)
    S, Y = curved_pairs(rng, count, size)
    assert all(memory.add(s, y) for s, y in zip(S, Y, strict=True))
    kept = slice(max(count - 4, 0), count)
    expected = dense_bfgs(memory.scale, S[kept], Y[kept])
    matrix = dense(memory.matrix(), size)
    # Condition numbers of the pairs are about 1e3.
    np.testing.assert_allclose(matrix, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    if count:
        assert memory.scale == pytest.approx((Y[-1] @ Y[-1]) / (Y[-1] @ S[-1]))
        np.testing.assert_allclose(matrix @ S[-1], Y[-1], rtol=1e-9)
        assert np.linalg.eigvalsh((matrix + matrix.T) / 2)[0] > 0


def test_two_loops_invert_the_compact_form():
    rng, memory = np.random.default_rng(1), LimitedMemory(8, 5)
    for s, y in zip(*curved_pairs(rng, 7, 8), strict=True):
        memory.add(s, y)
    v = rng.standard_normal(8)
    np.testing.assert_allclose(memory.matrix() @ memory.solve(v), v, rtol=1e-8)


def test_a_working_set_restricts_the_pairs_and_skips_those_without_curvature_there():
    rng, memory = np.random.default_rng(2), LimitedMemory(6, 5)
    on = np.array([True, False, True, True, False, True])
    S, Y = curved_pairs(rng, 4, 6)
    Y[1, on] = -S[1, on]
    Y[1, ~on] = 50 * S[1, ~on]
    assert all(memory.add(s, y) for s, y in zip(S, Y, strict=True))
    use = [i for i in range(4) if S[i, on] @ Y[i, on] > 0]
    assert 1 not in use
    B = dense_bfgs(memory.scale, S[use][:, on], Y[use][:, on])
    v = rng.standard_normal(6)
    out = memory.solve(v, on)
    np.testing.assert_allclose(out[on], np.linalg.solve(B, v[on]), rtol=1e-9)
    assert not out[~on].any()
    np.testing.assert_array_equal(memory.solve(v, np.ones(6, bool)), memory.solve(v))


def test_pairs_without_curvature_are_refused():
    memory, e = LimitedMemory(3), np.eye(3)
    assert not memory.add(e[0], -e[0])
    assert not memory.add(e[0], e[1])
    assert not memory.add(np.zeros(3), e[1])
    assert memory.count == 0
    np.testing.assert_array_equal(memory.solve(e[0]), e[0])


def test_scales_of_the_pairs_do_not_matter():
    rng = np.random.default_rng(3)
    S, Y = curved_pairs(rng, 3, 5)
    plain, tiny = LimitedMemory(5), LimitedMemory(5)
    for s, y in zip(S, Y, strict=True):
        plain.add(s, y)
        tiny.add(1e-9 * s, 1e-9 * y)
    v = rng.standard_normal(5)
    np.testing.assert_allclose(tiny.matrix() @ v, plain.matrix() @ v, rtol=1e-10)
    np.testing.assert_allclose(tiny.solve(v), plain.solve(v), rtol=1e-10)


def test_a_memory_of_nothing_is_refused():
    with pytest.raises(ValueError, match="`memory` must be at least 1"):
        LimitedMemory(3, 0)
