"""Projections: optimality certificates, equal variants, and the printed versions that fail."""

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize

from bayesstruct.sparse.kernels import projections

COMMON = settings(deadline=None, max_examples=60, derandomize=True)
VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-5, 5, width=32))
VECTORS = st.integers(1, 9).flatmap(lambda p: arrays(float, p, elements=VALUES))


def l1_norm(x):
    return np.abs(x).sum()


def linf_norm(x):
    return np.abs(x).max()


def singular(x):
    return np.linalg.svd(x.reshape(2, -1), compute_uv=False)


def cone(name, x, g):
    """Project one point on a cone."""
    out, height = np.empty((1, len(x))), np.empty(1)
    if name == "nuclear":
        out = np.empty((1, 2, len(x) // 2))
        projections.nuclear_cone(x.reshape(out.shape), np.array([g]), out, height)
        return out.ravel(), height[0]
    scratch = () if name == "l2" else (np.empty(len(x)),)
    getattr(projections, f"{name}_cone")(x[None], np.array([g]), out, height, *scratch)
    return out[0], height[0]


CONES = {
    "l1": (l1_norm, linf_norm),
    "l2": (np.linalg.norm, np.linalg.norm),
    "linf": (linf_norm, l1_norm),
    "nuclear": (lambda x: singular(x).sum(), lambda x: singular(x).max()),
}


def cone_violation(name, x, g, y, h):
    """Largest violation of: (y, h) in the cone, the step to it in the dual cone, both orthogonal."""
    norm, dual = CONES[name]
    r, t = y - x, h - g
    return max(norm(y) - h, dual(r) - t, abs(r @ y + t * h))


@pytest.mark.parametrize("name", CONES)
@COMMON
@given(x=VECTORS, g=VALUES)
def test_cone_certificates(name, x, g):
    if name == "nuclear":
        x = np.concatenate([x, x[::-1]])
    y, h = cone(name, x, g)
    assert cone_violation(name, x, g, y, h) <= 1e-11
    again = cone(name, y, h)
    np.testing.assert_allclose(again[0], y, atol=1e-12)
    np.testing.assert_allclose(again[1], h, atol=1e-12)
    twice = cone(name, 2 * x, 2 * g)
    np.testing.assert_allclose(twice[0], 2 * y, atol=1e-11)


@pytest.mark.parametrize("name", CONES)
def test_cones_are_non_expansive(name, rng):
    for _ in range(50):
        x, z, g, f = rng.normal(size=6), rng.normal(size=6), *rng.normal(size=2)
        (a, h), (b, k) = cone(name, x, g), cone(name, z, f)
        assert np.hypot(np.linalg.norm(a - b), h - k) <= np.hypot(np.linalg.norm(x - z), g - f)


def linf_cone_of_algorithm_20(x, g, accept):
    """Schmidt's algorithm 20 with its acceptance test left open."""
    if g >= np.abs(x).max():
        return x, g
    size = np.append(np.sort(np.abs(x))[::-1], 0.0)
    total = np.cumsum(size)
    for k in range(1, len(x) + 1):
        level = (total[k - 1] + g) / (k + 1)
        if level > 0 and accept(level, size[k]):
            return np.clip(x, -level, level), level
    return np.zeros_like(x), 0.0


def test_the_printed_algorithm_20_fails(rng):
    printed = corrected = shipped = 0
    for _ in range(500):
        x, g = 3 * rng.normal(size=rng.integers(1, 6)), 4 * rng.normal()
        y, h = linf_cone_of_algorithm_20(x, g, np.less)
        printed += cone_violation("linf", x, g, y, h) > 1e-9
        y, h = linf_cone_of_algorithm_20(x, g, np.greater)
        corrected += cone_violation("linf", x, g, y, h) > 1e-9
        shipped += cone_violation("linf", x, g, *cone("linf", x, g)) > 1e-9
    # The inventory counts 2050 of 3000.
    assert 250 < printed < 450
    assert corrected == shipped == 0


@COMMON
@given(v=VECTORS, r=st.floats(0.01, 6))
def test_simplex_and_ball(v, r):
    out, other, work = np.empty((1, len(v))), np.empty((1, len(v))), np.empty(len(v))
    projections.simplex(v[None], r, out, work)
    projections.simplex_sorting(v[None], r, other, work)
    np.testing.assert_allclose(out, other, atol=1e-12)
    x = out[0]
    np.testing.assert_allclose(x.sum(), r, rtol=1e-12)
    # The gradient x - v is the same where x > 0 and at least that elsewhere.
    assert x.min() >= 0
    assert (x - v)[x > 0].max() <= (x - v).min() + 1e-12

    projections.l1_ball(v[None], r, out, work)
    projections.l1_ball_sorting(v[None], r, other, work)
    np.testing.assert_allclose(out, other, atol=1e-12)
    assert np.abs(out).sum() <= r + 1e-12
    rest = v - out[0]
    np.testing.assert_allclose(
        rest @ out[0], np.abs(rest).max() * r * (np.abs(v).sum() > r), atol=1e-10
    )


@COMMON
@given(data=st.data(), v=VECTORS, r=st.floats(0.01, 6))
def test_weighted_l1_ball(data, v, r):
    p = len(v)
    weights = data.draw(arrays(float, p, elements=st.sampled_from([0.0, 0.5, 1.0, 1.7])))
    out, other = np.empty((1, p)), np.empty((1, p))
    projections.weighted_l1_ball(v[None], weights, r, out, np.empty(p), np.empty(p, np.int64))
    projections.weighted_l1_ball_sorting(v[None], weights, r, other, np.empty(p))
    np.testing.assert_allclose(out, other, atol=1e-12)
    x, total = out[0], weights @ np.abs(v)
    assert weights @ np.abs(x) <= r + 1e-12
    if total <= r:
        assert (x == v).all()
    else:
        t = ((v - x) @ x) / r  # the multiplier
        assert (np.abs(v - x) <= t * weights + 1e-11).all()
        np.testing.assert_allclose(weights @ np.abs(x), r, atol=1e-12)


def test_the_printed_test_of_the_weighted_ball_is_infeasible(rng):
    """Duchi et al. print ``sum v <= c`` for ``sum a v <= c``: some points outside are left there."""
    left_outside = 0
    for _ in range(500):
        v, a, c = rng.exponential(size=6), rng.uniform(0.2, 2, 6), rng.uniform(2, 8)
        out = np.empty((1, 6))
        projections.weighted_l1_ball(v[None], a, c, out, np.empty(6), np.empty(6, np.int64))
        assert a @ out[0] <= c + 1e-12
        left_outside += v.sum() <= c < a @ v
    assert left_outside > 10


@pytest.mark.parametrize("values", ["normal", "ties", "sorted", "reversed"])
def test_selection_is_not_slowed_by_ties_or_order(values, rng):
    v = rng.normal(size=200_000)
    v = {"normal": v, "ties": np.ones_like(v), "sorted": np.sort(v), "reversed": -np.sort(v)}[
        values
    ]
    # Quadratic work, 4e10 comparisons, would not end within the patience of anyone.
    t = projections.level(v.copy(), 5.0, 0)
    np.testing.assert_allclose(t, projections.level_sorting(v.copy(), 5.0, 0), rtol=1e-12)


def test_nuclear_ball(rng):
    blocks = rng.normal(size=(20, 3, 4))
    out = np.empty_like(blocks)
    projections.nuclear_ball(blocks, 1.5, out)
    for X, Y in zip(blocks, out, strict=True):
        values = np.linalg.svd(X, compute_uv=False)
        expected, work = np.empty((1, 3)), np.empty(3)
        projections.l1_ball(values[None], 1.5, expected, work)
        np.testing.assert_allclose(np.linalg.svd(Y, compute_uv=False), expected[0], atol=1e-12)
        # X - Y is a multiple of a subgradient: aligned with Y.
        R = X - Y
        np.testing.assert_allclose(np.vdot(R, Y), np.linalg.norm(R, 2) * 1.5, rtol=1e-10)


@COMMON
@given(data=st.data(), v=VECTORS, r=st.floats(0.01, 6))
def test_trust_region(data, v, r):
    p = len(v)
    metric = 10.0 ** data.draw(arrays(float, p, elements=st.floats(-6, 6)))
    out = np.empty((1, p))
    projections.trust_region(v[None], metric, r, out)
    x = out[0]
    if np.linalg.norm(v) <= r:
        assert (x == v).all()
        return
    # On the sphere to rounding, and the gradient h (x - v) is a negative multiple of x.
    np.testing.assert_allclose(np.linalg.norm(x), r, rtol=1e-14)
    gradient = metric * (v - x)
    s = gradient @ x / r**2
    assert s >= 0
    # v - x is rounded in units of v, and so is the gradient in units of h v.
    slack = 1e-15 * metric * np.abs(v) + 1e-15 * (metric * np.abs(v)) @ np.abs(x) / r**2 * np.abs(x)
    assert (np.abs(gradient - s * x) <= 4 * slack).all()


@COMMON
@given(data=st.data(), v=VECTORS, t=st.floats(0.01, 6))
def test_l2_norm_in_a_metric(data, v, t):
    p = len(v)
    metric = 10.0 ** data.draw(arrays(float, p, elements=st.floats(-3, 3)))
    out = np.empty((1, p))
    projections.l2_norm_in_metric(v[None], metric, t, out, np.empty(p))
    x = out[0]
    if np.linalg.norm(metric * v) <= t:
        assert (x == 0).all()
        return
    gradient = metric * (x - v) + t * x / np.linalg.norm(x)
    np.testing.assert_allclose(gradient, 0, atol=1e-12 * max(1.0, np.abs(metric * v).max()))


def ten_newton_steps(v, metric, radius):
    """Schmidt's solution of the trust region: ten plain Newton steps on ||x(s)||^2 = r^2."""
    s = 0.0
    for _ in range(10):
        x = v / (1 + s / metric)
        s += 0.5 * (x @ x - radius**2) / (x @ (x / (metric + s)))
    return v / (1 + s / metric)


def test_ten_newton_steps_are_not_enough():
    v, metric, r = np.array([3.0, 1.0, 2.0]), np.array([1.0, 10.0, 0.1]), 1e-4
    assert abs(np.linalg.norm(ten_newton_steps(v, metric, r)) / r - 1) > 0.01
    out = np.empty((1, 3))
    projections.trust_region(v[None], metric, r, out)
    np.testing.assert_allclose(np.linalg.norm(out), r, rtol=1e-14)


def test_the_secular_root_agrees_with_a_bracketing_method(rng):
    for _ in range(30):
        c, k = rng.normal(size=5), 10.0 ** rng.uniform(-4, 4, 5)
        r = rng.uniform(0.01, 0.9) * np.linalg.norm(c)

        def excess(y, c=c, k=k, r=r):
            return np.log(np.linalg.norm(c / (1 + np.exp(y) * k)) / r)

        root = np.exp(optimize.brentq(excess, -40, 40, xtol=1e-14, rtol=1e-15))
        np.testing.assert_allclose(projections.secular_root(c, k, r), root, rtol=1e-11)


Q, C = np.array([0.5, 1.0, 3.0]), np.array([3.0, -4.0, 2.0])


@pytest.mark.parametrize(
    ("rate", "x"),
    [
        (1.0, [4.0, -4.0, 0.6666666667]),
        (4.0, [2.0, -2.0, 0.6666666667]),
        (8.0, [0.2222222222, -0.2222222222, 0.2222222222]),
    ],
)
def test_continuous_quadratic_knapsack_to_ten_digits(rate, x):
    """Honorio (2012), theorem 4.14 and equation 4.19, at numbers solved independently.

    min x'diag(q)x / 2 - c'x + rate max|x| has x = sign(c) min(|c| / q, level).
    """
    root = np.sqrt(Q)
    index = np.empty(3, np.int64)
    for level in (
        projections.weighted_level(np.abs(C) / root, root, rate, index),
        projections.weighted_level_sorting(np.abs(C) / root, root, rate),
    ):
        found = np.sign(C) * np.minimum(np.abs(C) / Q, level)
        np.testing.assert_allclose(found, x, atol=5e-11)


@pytest.mark.parametrize(
    ("rate", "multiplier", "x"),
    [
        (1.0, 5.6114835141, [4.4234348038, -3.3949920632, 0.6292858309]),
        (4.0, 0.3618602259, [0.9192590363, -1.0628410140, 0.3470114868]),
        (5.0, 0.0722841614, None),
        (5.3852, 0.0, [0.0, 0.0, 0.0]),  # above the root of 29
    ],
)
def test_separable_trust_region_to_ten_digits(rate, multiplier, x):
    """Honorio (2012), equation 4.22: min x'diag(q)x / 2 - c'x + rate |x|."""
    found = projections.secular_root(C, Q, rate)
    assert found == pytest.approx(multiplier, abs=5e-11)
    out = np.empty((1, 3))
    projections.l2_norm_in_metric((C / Q)[None], Q, rate, out, np.empty(3))
    np.testing.assert_allclose(out[0], found * C / (1 + found * Q), rtol=1e-14)
    if x is not None:
        np.testing.assert_allclose(out[0], x, atol=5e-11)
