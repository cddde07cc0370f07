"""Tree-structured proximal maps: dual ascent, brute force, and the order that fails."""

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from bayesstruct.sparse.kernels import tree_proximal as kernel
from bayesstruct.sparse.kernels.projections import l1_ball_sorting
from bayesstruct.sparse.penalties.layout import TreeGroups

COMMON = settings(deadline=None, max_examples=40, derandomize=True)
NORMS = {2: np.linalg.norm, np.inf: lambda x: np.abs(x).max(initial=0.0)}


class RandomTree:
    """A tree over p coordinates with more or fewer groups than coordinates."""

    def __init__(self, rng, groups, p):
        self.parent = np.array(
            [
                -1 if rng.random() < 0.1 or g == groups - 1 else rng.integers(g + 1, groups)
                for g in range(groups)
            ],
            np.int32,
        )
        owner = rng.integers(-1, groups, size=p)  # -1: in no group
        order = np.argsort(owner, kind="stable")
        self.order = order[owner[order] >= 0].astype(np.int32)
        self.start = np.searchsorted(owner[self.order], np.arange(groups + 1)).astype(np.int32)
        inside = [{g} for g in range(groups)]
        for g in range(groups):
            if self.parent[g] >= 0:
                inside[self.parent[g]] |= inside[g]
        self.members = [np.flatnonzero(np.isin(owner, list(s))) for s in inside]
        self.inside = inside
        self.arrays = (self.order, self.start, self.parent)


def tree_prox(norm, v, tree, t):
    v = np.atleast_2d(v)
    groups, p, out = len(t), len(tree.order), np.empty_like(v)
    scratch = np.empty((2, groups))
    if norm == 2:
        kernel.tree_l2(v, *tree.arrays, t, out, *scratch)
    elif norm == 0:
        kernel.tree_l0(v, *tree.arrays, t, out, scratch[0])
    else:
        links, heaps = np.empty((p, 4), np.int32), np.empty(groups, np.int32)
        kernel.tree_linf(v, *tree.arrays, t, out, *scratch, np.empty(p), links, heaps)
    return out


def in_dual_ball(norm, x, t):
    if norm == 2:
        size = np.linalg.norm(x)
        return x * min(1.0, t / size) if size > 0 else x
    out = np.empty((1, len(x)))
    l1_ball_sorting(x[None], t, out, np.empty(len(x)))
    return out[0]


def one_pass(norm, v, tree, t, order):
    """Algorithm 2 as printed: each group less its projection on the dual ball, one by one."""
    w = v.copy()
    for g in order:
        inside = tree.members[g]
        if len(inside) and t[g] > 0:
            w[inside] -= in_dual_ball(norm, w[inside], t[g])
    return w


def dual_ascent(norm, v, tree, t, passes=300):
    """Algorithm 1: block coordinate ascent, which does not lean on the order."""
    xi = np.zeros((len(t), len(v)))
    for _ in range(passes):
        for g in np.random.default_rng(0).permutation(len(t)):
            inside = tree.members[g]
            if len(inside) and t[g] > 0:
                rest = v - xi.sum(axis=0) + xi[g]
                xi[g, inside] = in_dual_ball(norm, rest[inside], t[g])
    return v - xi.sum(axis=0)


def objective(norm, w, v, tree, t):
    sizes = [NORMS[norm](w[inside]) for inside in tree.members]
    return 0.5 * ((w - v) ** 2).sum() + t @ sizes


@pytest.mark.parametrize("norm", [2, np.inf])
@COMMON
@given(seed=st.integers(0, 10**6), groups=st.integers(1, 12), p=st.integers(1, 16))
def test_one_pass_over_leaves_first_is_algorithm_2(norm, seed, groups, p):
    rng = np.random.default_rng(seed)
    tree = RandomTree(rng, groups, p)
    v = np.round(3 * rng.normal(size=(2, p)), rng.integers(0, 4))  # ties among them
    t = rng.choice([0.0, 0.5, 1.0], groups) + 0.5 * rng.random(groups) * rng.integers(0, 2)
    out = tree_prox(norm, v, tree, t)
    for row, w in zip(v, out, strict=True):
        np.testing.assert_allclose(w, one_pass(norm, row, tree, t, range(groups)), atol=1e-12)
        zero = [g for g in range(groups) if not w[tree.members[g]].any()]
        for g in zero:  # the support is a subtree at the root
            assert not any(w[tree.members[h]].any() for h in tree.inside[g])
    aliased = v.copy()
    scratch = tree_prox(norm, aliased, tree, t)
    np.testing.assert_array_equal(scratch, out)


@pytest.mark.parametrize("norm", [2, np.inf])
def test_dual_ascent_agrees_and_root_to_leaves_fails(norm):
    worse = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        tree = RandomTree(rng, 6, 9)
        v, t = 2 * rng.normal(size=9), rng.uniform(0.2, 0.8, 6)
        w = tree_prox(norm, v, tree, t)[0]
        np.testing.assert_allclose(w, dual_ascent(norm, v, tree, t), atol=1e-9)
        best = objective(norm, w, v, tree, t)
        backwards = one_pass(norm, v, tree, t, range(5, -1, -1))
        excess = objective(norm, backwards, v, tree, t) - best
        assert excess > -1e-13
        worse += excess > 1e-6
    assert worse >= 4


def test_one_pass_is_special_to_the_norms():
    """Proposition 14: the shipped norms are exact at u = (3, 1, 2), where q = 3 is off by 0.0186."""
    order, start = np.array([0, 1, 2], np.int32), np.array([0, 2, 3], np.int32)
    tree = RandomTree(np.random.default_rng(0), 2, 3)
    tree.parent, tree.order, tree.start = np.array([1, -1], np.int32), order, start
    tree.arrays = (tree.order, tree.start, tree.parent)
    tree.members = [np.array([0, 1]), np.array([0, 1, 2])]
    v, t = np.array([3.0, 1.0, 2.0]), np.array([0.8, 0.7])
    for norm in (2, np.inf):
        w = tree_prox(norm, v, tree, t)[0]
        np.testing.assert_allclose(w, dual_ascent(norm, v, tree, t), atol=1e-12)


@COMMON
@given(seed=st.integers(0, 10**6), p=st.integers(1, 40))
def test_heaps_and_vectors_agree(seed, p):
    rng = np.random.default_rng(seed)
    parents = np.array(
        [-1 if rng.random() < 0.1 else i // rng.integers(1, 4) - 1 for i in range(p)]
    )
    tree = TreeGroups.of_parents(np.minimum(parents, np.arange(p) - 1), np.ones(p))
    tree_ = RandomTree(rng, 1, 1)
    tree_.order, tree_.arrays = tree.order, (tree.order, tree.start, tree.parent)
    v = np.round(3 * rng.normal(size=(2, p)), rng.integers(0, 4))
    t = rng.choice([0.0, 0.5, 1.0], p)
    out = np.empty_like(v)
    scratch = (np.empty(p), *np.empty((2, p)))
    arrays = (tree.order, tree.first, tree.start, tree.parent)
    kernel.tree_linf_direct(v, *arrays, t, out, *scratch)
    np.testing.assert_allclose(out, tree_prox(np.inf, v, tree_, t), atol=1e-12)


def brute_force(v, tree, t):
    """Best value over all choices of groups that hold their parents."""
    groups, best = len(t), np.inf
    owner = np.repeat(np.arange(groups), np.diff(tree.start))
    gain = np.zeros(groups)
    np.add.at(gain, owner, 0.5 * v[tree.order] ** 2)
    for mask in range(2**groups):
        on = [g for g in range(groups) if mask >> g & 1]
        if all(tree.parent[g] < 0 or mask >> tree.parent[g] & 1 for g in on):
            best = min(best, gain.sum() + sum(t[g] - gain[g] for g in on))
    return best


@settings(COMMON, max_examples=20)
@given(seed=st.integers(0, 10**6), groups=st.integers(1, 9), p=st.integers(1, 12))
def test_l0_tree_against_brute_force(seed, groups, p):
    rng = np.random.default_rng(seed)
    tree = RandomTree(rng, groups, p)
    v, t = 2 * rng.normal(size=p), rng.uniform(0, 3, groups)
    w = tree_prox(0, v, tree, t)[0]
    cost = sum(t[g] for g in range(groups) if w[tree.members[g]].any())
    value = 0.5 * ((w - v) ** 2).sum() + cost
    np.testing.assert_allclose(value, brute_force(v, tree, t), atol=1e-12)
    assert ((w == 0) | (w == v)).all()


def test_a_deep_chain_is_fast():
    """A chain of 100,000 groups: quadratic work would take minutes."""
    p = 100_000
    tree = RandomTree(np.random.default_rng(0), 1, 1)
    index = np.arange(p, dtype=np.int32)
    tree.arrays = (
        index,
        np.arange(p + 1, dtype=np.int32),
        np.append(index[1:], -1).astype(np.int32),
    )
    tree.order = index
    v = np.random.default_rng(0).normal(size=(1, p))
    t = np.full(p, 1e-3)
    for norm in (2, np.inf, 0):
        assert np.isfinite(tree_prox(norm, v, tree, t)).all()


def test_sums_maxima_and_order():
    parent = np.array([2, 2, 4, 4, -1], np.int32)
    start, x, out = np.array([0, 1, 2, 3, 4, 5], np.int32), np.array([1.0, 2, 3, 4, 5]), np.empty(5)
    kernel.tree_sums(x, start, parent, out)
    np.testing.assert_array_equal(out, [1, 2, 6, 4, 15])
    kernel.tree_maxima(x, start, parent, out)
    np.testing.assert_array_equal(out, [1, 2, 3, 4, 5])
    kernel.tree_path_sums(x, parent, out)
    np.testing.assert_array_equal(out, [9, 10, 8, 9, 5])
    scattered = np.array([-1, 0, 0, 1, 1, -1, 5])
    assert kernel.postorder(scattered).tolist() == [3, 4, 1, 2, 0, 6, 5]
    assert len(kernel.postorder(np.array([-1, 2, 1]))) == 1  # a cycle
