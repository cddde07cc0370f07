"""Proximal maps of the norms: Moreau's identity, certificates, equal variants, groups anywhere."""

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayesstruct.sparse.kernels import projections, proximal

COMMON = settings(deadline=None, max_examples=40, derandomize=True)
# Ties and zeros are likely: many of the values are small integers.
VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-5, 5, width=32))
VECTORS = st.integers(1, 9).flatmap(lambda p: arrays(float, p, elements=VALUES))
THRESHOLDS = st.floats(0, 4, width=32)


def one_group(p):
    return np.arange(p, dtype=np.int32), np.array([0, p], np.int32)


def l2(v, t):
    out = np.empty((1, len(v)))
    proximal.group_l2(v[None], *one_group(len(v)), np.array([t]), out)
    return out[0]


def linf(v, t, variant=proximal.group_linf):
    out = np.empty((1, len(v)))
    variant(v[None], *one_group(len(v)), np.array([t]), out, np.empty(len(v)))
    return out[0]


def l1(v, t):
    out = np.empty((1, len(v)))
    proximal.soft_threshold(v[None], np.full(len(v), t), out)
    return out[0]


def nuclear(v, t):
    shape = np.array([[2, len(v) // 2]])
    out = np.empty((1, len(v)))
    proximal.group_nuclear(v[None], *one_group(len(v)), shape, np.array([t]), out)
    return out[0]


def singular(x):
    return np.linalg.svd(x.reshape(2, -1), compute_uv=False)


# Each proximal map with its norm and the dual norm.
NORMS = {
    "l1": (l1, lambda x: np.abs(x).sum(), lambda x: np.abs(x).max()),
    "l2": (l2, np.linalg.norm, np.linalg.norm),
    "linf": (linf, lambda x: np.abs(x).max(), lambda x: np.abs(x).sum()),
    "nuclear": (nuclear, lambda x: singular(x).sum(), lambda x: singular(x).max()),
}


@pytest.mark.parametrize("name", NORMS)
@COMMON
@given(v=VECTORS, t=THRESHOLDS)
def test_the_remainder_is_a_subgradient(name, v, t):
    prox, norm, dual = NORMS[name]
    if name == "nuclear":
        v = np.concatenate([v, v[::-1]])
    w = prox(v, t)
    rest = v - w
    assert dual(rest) <= t + 1e-12
    # Equality in Hoelder's inequality: the remainder is aligned with w.
    np.testing.assert_allclose(rest @ w, t * norm(w), atol=1e-11)


@pytest.mark.parametrize("name", NORMS)
@COMMON
@given(data=st.data(), v=VECTORS, t=THRESHOLDS)
def test_non_expansive(name, data, v, t):
    prox = NORMS[name][0]
    u = data.draw(arrays(float, len(v), elements=VALUES))
    if name == "nuclear":
        u, v = np.concatenate([u, u]), np.concatenate([v, v[::-1]])
    assert np.linalg.norm(prox(u, t) - prox(v, t)) <= np.linalg.norm(u - v) + 1e-12


@COMMON
@given(v=VECTORS, t=st.floats(0.01, 4))
def test_moreau_with_the_projections(v, t):
    ball = np.empty((1, len(v)))
    projections.l1_ball(v[None], t, ball, np.empty(len(v)))
    np.testing.assert_allclose(linf(v, t) + ball[0], v, atol=1e-12)
    projections.l2_ball(v[None], t, ball)
    np.testing.assert_allclose(l2(v, t) + ball[0], v, atol=1e-12)
    projections.linf_ball(v[None], t, ball)
    np.testing.assert_allclose(l1(v, t) + ball[0], v, atol=1e-12)


@COMMON
@given(v=VECTORS, t=THRESHOLDS)
def test_sorting_and_selection_agree(v, t):
    expected = linf(v, t, proximal.group_linf_sorting)
    np.testing.assert_allclose(linf(v, t), expected, atol=1e-12)


def test_groups_lie_anywhere_and_rows_are_separate(rng):
    labels = np.array([1, 0, -1, 1, 0, 2, 1])
    order = np.array([1, 4, 0, 3, 6, 5], np.int32)
    start = np.array([0, 2, 5, 6], np.int32)
    threshold = np.array([0.3, 0.8, 0.5])
    v, work = rng.normal(size=(3, 7)), np.empty(7)
    for grouped, single in (
        (lambda out: proximal.group_l2(v, order, start, threshold, out), l2),
        (lambda out: proximal.group_linf(v, order, start, threshold, out, work), linf),
    ):
        out = np.empty_like(v)
        grouped(out)
        for r in range(3):
            for g in range(3):
                inside = labels == g
                np.testing.assert_allclose(out[r, inside], single(v[r, inside], threshold[g]))
        assert (out[:, 2] == v[:, 2]).all()
        aliased = v.copy()
        v_before, v = v, aliased
        grouped(aliased)
        assert (aliased == out).all()
        v = v_before


def test_removed_coordinates_are_exactly_zero():
    v = np.array([0.1, -0.2, 0.1, 0.05])
    for name in NORMS:
        assert (NORMS[name][0](v, 10.0) == 0).all(), name
        assert (NORMS[name][0](v, 0.0) == v).all(), name
        assert (NORMS[name][0](np.zeros(4), 0.0) == 0).all(), name


def test_the_orthant_sees_the_positive_part_only(rng):
    v, t = rng.normal(size=(4, 6)), np.full(6, 0.3)
    out, plain = np.empty_like(v), np.empty_like(v)
    proximal.soft_threshold_nonnegative(v, t, out)
    proximal.soft_threshold(np.maximum(v, 0.0), t, plain)
    np.testing.assert_array_equal(out, plain)


@pytest.mark.parametrize("norm", [2, np.inf])
def test_sparse_groups_are_thresholded_entries_first(rng, norm):
    v, entry, group = rng.normal(size=(200, 4)), 0.4, 0.6
    order, start = one_group(4)
    out, work = np.empty_like(v), np.empty(4)
    args = (np.full(4, entry), order, start, np.array([group]), out)
    if norm == 2:
        proximal.sparse_group_l2(v, *args)
    else:
        proximal.sparse_group_linf(v, *args, work)

    def objective(w):
        size = np.linalg.norm(w, norm, axis=-1)
        loss = 0.5 * ((w - v) ** 2).sum(axis=-1)
        return loss + entry * np.abs(w).sum(axis=-1) + group * size

    best = objective(out)
    for scale in (0.3, 0.03, 0.003):
        for _ in range(50):
            assert (objective(out + scale * rng.normal(size=v.shape)) >= best - 1e-14).all()
    # The other order is not the proximal map for l2. (Clipping and shrinking commute.)
    other = np.array([l1(l2(x, group) if norm == 2 else linf(x, group), entry) for x in v])
    assert (objective(other) > best + 1e-4).any() == (norm == 2)
