"""Penalties: cvxpy, optimality certificates, normalisers by quadrature, and what is refused."""

import itertools
import math
import warnings

import cvxpy as cp
import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize

import bayesstruct as bs

from bayesstruct.penalties import L1, Group, SparseGroup, Tree

GROUPS = [[0, 3], [1, 2, 5], [4]]
NESTED = [[0, 1, 2, 3, 4, 5], [1, 2], [2], [4, 5]]
FOREST = [[0, 1, 2], [1], [3, 4], [4]]
A = np.array([0.5, 1.0, 2.0, 0.8])

PENALTIES = {
    "l1": L1(0.7),
    "l1 weighted": L1(0.7, weights=[1, 0, 2, 0.5, 1, 1]),
    "l1 nonnegative": L1(0.7, nonnegative=True),
    "group l2": Group(0.9, GROUPS, weights=A[:3]),
    "group linf": Group(0.9, [0, 1, 1, 0, 1, -1], norm=np.inf),
    "group nuclear": Group(0.8, GROUPS, norm="nuclear", shapes=[(1, 2), (3, 1), (1, 1)]),
    "one block": Group(0.8, [0] * 6, norm="nuclear", shapes=(2, 3)),
    "sparse l2": SparseGroup(0.3, GROUPS, group_rate=0.7, weights=A[:3]),
    "sparse linf": SparseGroup(0.3, GROUPS, group_rate=0.7, norm=np.inf),
    "tree l2": Tree(0.4, NESTED, weights=A),
    "tree linf": Tree(0.4, NESTED, norm=np.inf, weights=A),
    "forest linf": Tree(0.4, FOREST, norm=np.inf, size=6),
}
every = pytest.mark.parametrize("name", PENALTIES)


def draw(seed, scale=2.0):
    """Gaussian, or rounded so that ties and zeros are among the entries."""
    rng = np.random.default_rng(seed)
    return np.round(scale * rng.normal(size=6), 12 if seed % 2 else 0)


def total(norm, x, groups, weights=None):
    weights = np.ones(len(groups)) if weights is None else weights
    return sum(a * norm(x[g]) for a, g in zip(weights, groups, strict=True))


def nuclear(x, group, shape):
    return cp.normNuc(cp.reshape(x[group], shape, order="C"))


# The same penalties as expressions of cvxpy.
EXPRESSIONS = {
    "l1": lambda x: 0.7 * cp.norm1(x),
    "l1 weighted": lambda x: 0.7 * cp.norm1(cp.multiply([1, 0, 2, 0.5, 1, 1], x)),
    "l1 nonnegative": lambda x: 0.7 * cp.norm1(x),
    "group l2": lambda x: 0.9 * total(cp.norm2, x, GROUPS, A[:3]),
    "group linf": lambda x: 0.9 * total(cp.norm_inf, x, [[0, 3], [1, 2, 4]]),
    "group nuclear": lambda x: 0.8 * (total(cp.norm2, x, GROUPS)),
    "one block": lambda x: 0.8 * nuclear(x, list(range(6)), (2, 3)),
    "sparse l2": lambda x: 0.3 * cp.norm1(x) + 0.7 * total(cp.norm2, x, GROUPS, A[:3]),
    "sparse linf": lambda x: 0.3 * cp.norm1(x) + 0.7 * total(cp.norm_inf, x, GROUPS),
    "tree l2": lambda x: 0.4 * total(cp.norm2, x, NESTED, A),
    "tree linf": lambda x: 0.4 * total(cp.norm_inf, x, NESTED, A),
    "forest linf": lambda x: 0.4 * total(cp.norm_inf, x, FOREST),
}


def solve(name, v):
    """Proximal map by Clarabel at the tightest tolerance that it reaches, and that tolerance."""
    x = cp.Variable(6)
    constraints = [x >= 0] if "nonnegative" in name else []
    loss = 0.5 * cp.sum_squares(x - v) + EXPRESSIONS[name](x)
    problem = cp.Problem(cp.Minimize(loss), constraints)
    for tol in (1e-13, 1e-12, 1e-11, 1e-10):
        options = {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)
                problem.solve(solver="CLARABEL", **options)
        except (UserWarning, cp.SolverError):
            continue
        return x.value, problem.value, tol
    raise AssertionError("Clarabel did not get to 1e-10")


@every
@settings(deadline=None, max_examples=12, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_prox_agrees_with_cvxpy(name, seed):
    penalty, v = PENALTIES[name], draw(seed)
    w = penalty.prox(v)
    expected, value, tol = solve(name, v)
    assert abs(0.5 * ((w - v) ** 2).sum() + penalty.value(w) - value) <= 1e-8
    # The objective is 1-strongly convex: a gap of tol bounds the point by sqrt(2 tol) only.
    size = 1.0 + abs(value)
    np.testing.assert_allclose(w, expected, atol=max(1e-8, math.sqrt(2 * tol * size)))
    # The certificate is exact where the interior point is not.
    assert penalty.residual(w, w - v) <= 1e-12


@pytest.mark.parametrize("name", ["l1", "l1 weighted", "group linf", "sparse linf", "tree linf"])
def test_points_of_polyhedral_penalties_agree_to_1e8(name):
    for seed in range(1, 9, 2):
        penalty, v = PENALTIES[name], draw(seed)
        np.testing.assert_allclose(penalty.prox(v), solve(name, v)[0], atol=1e-8)


@every
@settings(deadline=None, max_examples=20, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_proximal_identities(name, seed):
    penalty, v, u = PENALTIES[name], draw(seed), draw(seed + 1)
    step = 0.7
    w = penalty.prox(v, step)
    # Moreau: the remainder is step times a subgradient, aligned with w.
    np.testing.assert_allclose((v - w) @ w, step * penalty.value(w), atol=1e-10)
    assert penalty.dual_norm(v - w) <= step * (1 + 1e-12) + 1e-14
    assert np.linalg.norm(penalty.prox(u, step) - w) <= np.linalg.norm(u - v) + 1e-12
    np.testing.assert_array_equal(penalty.prox(np.stack([u, v]), step)[1], w)
    np.testing.assert_array_equal(penalty.prox(v, 0.0), np.maximum(v, 0) if "neg" in name else v)
    np.testing.assert_allclose(penalty.scaled(step).prox(v), w, atol=1e-12)
    # Zeros of the proximal map are off the support, what is left is on.
    assert (penalty.support(w) >= (w != 0)).all()
    assert (w[~penalty.support(w)] == 0).all()


@every
@settings(deadline=None, max_examples=20, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_slopes_and_the_direction_of_steepest_descent(name, seed):
    penalty, g, d = PENALTIES[name], draw(seed), draw(seed + 2)
    w = penalty.prox(draw(seed + 1), 1.5)  # with zeros and ties
    t = 1e-7
    if not np.isfinite(penalty.value(w + t * d)):
        assert penalty.directional_derivative(w, d) == np.inf
    else:
        slope = (penalty.value(w + t * d) - penalty.value(w)) / t
        # The next term is of the order of t |d|^2 / |w|.
        size = np.abs(w[w != 0]).min(initial=1.0)
        np.testing.assert_allclose(
            penalty.directional_derivative(w, d), slope, atol=1e-5 * (1 + 1 / size)
        )
    # The least subgradient e: the slope along -e is -|e|^2, and none is steeper than |e|.
    e = penalty.pseudo_gradient(w, g)

    def slope_along(d):
        return g @ d + penalty.directional_derivative(w, d)

    np.testing.assert_allclose(slope_along(-e), -(e @ e), atol=1e-10)
    rng = np.random.default_rng(seed)
    for d in (d, *rng.normal(size=(20, 6)), *(-e + 0.1 * rng.normal(size=(20, 6)))):
        assert slope_along(d) >= -np.linalg.norm(e) * np.linalg.norm(d) - 1e-10
    assert (penalty.residual(w, g) < 1e-12) == (np.linalg.norm(e) < 1e-12)


@every
@settings(deadline=None, max_examples=20, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_rate_max_is_the_smallest_rate_that_gives_zero(name, seed):
    penalty, g = PENALTIES[name], draw(seed)
    touched = penalty.penalised(6)
    rate = penalty.rate_max(g)
    if rate == 0:  # nothing pulls the penalised ones off zero
        assert not penalty.prox(-g)[touched].any() or penalty.rate == 0
        return
    above = penalty.with_rate(rate * (1 + 1e-13)).prox(-g)
    below = penalty.with_rate(rate * (1 - 1e-13)).prox(-g)
    assert not above[touched].any()
    assert below[touched].any()
    # Dual norm: the same up to the rate, infinite where nothing holds an entry back.
    inside = penalty.dual_norm(-g, ignore_unpenalised=True)
    np.testing.assert_allclose(inside * penalty.rate, rate, rtol=1e-14)
    if g[~touched].any():
        assert penalty.dual_norm(-g) == np.inf
    else:
        assert penalty.dual_norm(-g) == inside


@every
def test_penalised_least_squares_has_no_residual_at_its_mode(name):
    rng = np.random.default_rng(3)
    X, truth = rng.normal(size=(30, 6)), np.array([1.0, 0, 0.5, 0, 0, -0.7])
    y = X @ truth + 0.3 * rng.normal(size=30)
    penalty = PENALTIES[name].scaled(20.0)
    w, length = np.zeros(6), 1.0 / np.linalg.norm(X, 2) ** 2
    for _ in range(2_000):
        w = penalty.prox(w - length * X.T @ (X @ w - y), length)
    assert penalty.residual(w, X.T @ (X @ w - y)) <= 1e-10
    moved = w + 0.05
    assert penalty.residual(moved, X.T @ (X @ moved - y)) > 0.1


# Normalisers


def quadrature(penalty, d):
    """Integrate exp(-value) over d dimensions.

    The value is homogeneous, so the radius is integrated by hand, and what is left, over the ratios
    ``(1, a, a b, ...)`` of the sorted sizes, is smooth.
    """
    result = 0.0
    for places in itertools.permutations(range(d)):

        def density(*ratios, places=places):
            w = np.cumprod([1.0, *ratios])
            jacobian = math.prod(a ** (d - 2 - k) for k, a in enumerate(ratios))
            return jacobian / penalty.value(w[list(places)]) ** d

        options = {"epsabs": 1e-10, "epsrel": 1e-10}
        result += integrate.nquad(density, [(0, 1)] * (d - 1), opts=options)[0]
    return 2**d * math.factorial(d - 1) * result


@pytest.mark.parametrize(
    "penalty",
    [
        L1(1.5, weights=[1, 2]),
        Group(1.5, [0, 0, 0]),
        Group(1.5, [0, 0, 1], norm=np.inf, weights=[1, 0.7]),
        SparseGroup(0.8, [0, 0], group_rate=1.2),
        SparseGroup(0.8, [0, 0, 1], group_rate=1.2),
        SparseGroup(0.8, [0, 0], group_rate=1.2, norm=np.inf),
        SparseGroup(0.8, [0, 0, 0], group_rate=1.2, norm=np.inf),
    ],
    ids=["l1", "l2", "linf", "sparse l2", "sparse l2 3", "sparse linf", "sparse linf 3"],
)
def test_log_normalizer_by_quadrature(penalty):
    integral = quadrature(penalty, penalty.size)
    np.testing.assert_allclose(penalty.log_normalizer(), math.log(integral), atol=1e-8)


def ball_volume_by_draws(penalty, d, n=400_000):
    """Integral of exp(-value) over d! times the volume of the unit ball, by draws from a cube."""
    w = np.random.default_rng(0).uniform(-1, 1, size=(n, d))
    inside = np.linalg.svd(w.reshape(n, *penalty.shapes[0]), compute_uv=False).sum(axis=1) <= 1
    share = inside.mean()
    error = math.sqrt(share * (1 - share) / n) / share
    return math.lgamma(d + 1) + d * math.log(2) + math.log(share), error


@pytest.mark.parametrize("shape", [(1, 3), (2, 2), (2, 3)])
def test_log_normalizer_of_the_nuclear_norm(shape):
    d = math.prod(shape)
    penalty = Group(1.0, [0] * d, norm="nuclear", shapes=shape)
    if shape[0] == 1:  # a vector: the nuclear norm is the Euclidean one
        expected = Group(1.0, [0] * d).log_normalizer()
        np.testing.assert_allclose(penalty.log_normalizer(), expected, rtol=1e-13)
    else:
        expected, error = ball_volume_by_draws(penalty, d)
        assert abs(penalty.log_normalizer() - expected) < 4 * error
    if shape == (2, 2):
        # By hand: 4 pi^2 times the integral of (s^2 - r^2) exp(-s - r) over s > r > 0, 3/2.
        np.testing.assert_allclose(penalty.log_normalizer(), math.log(6 * math.pi**2), rtol=1e-13)


@every
def test_normalizers_scale_with_the_rate(name):
    penalty = PENALTIES[name]
    free = ~penalty.penalised(6)
    if free.any():
        with pytest.raises(ValueError, match="Improper prior"):
            penalty.log_normalizer(6)
        return
    change = penalty.scaled(3.0).log_normalizer(6) - penalty.log_normalizer(6)
    np.testing.assert_allclose(change, -6 * math.log(3.0), rtol=1e-9)


def test_sparse_group_normalizers_meet_their_limits():
    for norm in (2, np.inf):
        for d in (1, 4, 30):
            labels = [0] * d
            grouped = Group(2.0, labels, norm=norm).log_normalizer()
            nearly = SparseGroup(1e-9, labels, group_rate=2.0, norm=norm).log_normalizer()
            np.testing.assert_allclose(nearly, grouped, atol=1e-6)
            laplace = L1(2.0).log_normalizer(d)
            nearly = SparseGroup(2.0, labels, group_rate=1e-9, norm=norm).log_normalizer()
            np.testing.assert_allclose(nearly, laplace, atol=1e-6)
        # In one dimension the rates add.
        one = SparseGroup(0.8, [0], group_rate=1.2, norm=norm).log_normalizer()
        np.testing.assert_allclose(one, L1(2.0).log_normalizer(1), atol=1e-10)


# Objects


def test_a_tree_of_parents_is_the_tree_of_its_groups():
    parents = [-1, 0, 0, 1, 1, -1]
    groups = [[0, 1, 2, 3, 4], [1, 3, 4], [2], [3], [4], [5]]
    weights = [1, 0.5, 0, 2, 0, 1]
    for norm in (2, np.inf):
        a = Tree.from_parents(0.3, parents, norm=norm, weights=weights)
        b = Tree(0.3, groups, norm=norm, weights=weights)
        for seed in range(20):
            v = draw(seed)
            np.testing.assert_allclose(a.prox(v), b.prox(v), atol=1e-14)
            np.testing.assert_allclose(a.value(v), b.value(v))


def test_deep_trees_take_heaps(rng):
    parents = np.arange(-1, 199)
    chain = Tree.from_parents(0.5, parents, norm=np.inf)
    assert chain.groups.deep
    assert not PENALTIES["tree linf"].groups.deep
    v = rng.normal(size=200)
    w = chain.prox(v)
    assert (np.abs(w) < np.abs(v)).any()
    assert w.any()
    assert chain.residual(w, w - v) <= 1e-11


def test_a_tree_without_nesting_is_a_group_penalty_and_depth_two_is_sparse_groups():
    for norm in (2, np.inf):
        flat = Tree(0.6, GROUPS, norm=norm)
        two = Tree(
            1.0, [*GROUPS, *[[i] for i in range(6)]], norm=norm, weights=[0.7] * 3 + [0.3] * 6
        )
        for seed in range(20):
            v = draw(seed)
            np.testing.assert_allclose(
                flat.prox(v), Group(0.6, GROUPS, norm=norm).prox(v), atol=1e-14
            )
            sparse = SparseGroup(0.3, GROUPS, group_rate=0.7, norm=norm)
            np.testing.assert_allclose(two.prox(v), sparse.prox(v), atol=1e-13)
            np.testing.assert_allclose(two.value(v), sparse.value(v))
            np.testing.assert_allclose(two.dual_norm(v), sparse.dual_norm(v), rtol=1e-12)


def test_no_penalty_is_no_penalty():
    v = draw(1)
    for penalty in PENALTIES.values():
        if getattr(penalty, "nonnegative", False):
            continue
        none = penalty.scaled(0.0)
        np.testing.assert_array_equal(none.prox(v), v)
        assert none.value(v) == 0
        assert none.support(np.zeros(6)).all()
        assert none.residual(v, np.zeros(6)) == 0
        assert none.dual_norm(v) == np.inf
        with pytest.raises(ValueError, match="Improper"):
            none.log_normalizer(6)


def test_nothing_in_groups_is_no_penalty_either():
    v = draw(1)
    for penalty in (
        Group(1.0, [-1] * 6),
        Group(1.0, GROUPS, weights=[0, 0, 0], norm=np.inf),
        Tree(1.0, NESTED, weights=[0] * 4),
        Tree(1.0, NESTED, weights=[0] * 4, norm=np.inf),
        L1(1.0, weights=np.zeros(6)),
    ):
        np.testing.assert_array_equal(penalty.prox(v), v)
        assert penalty.value(v) == penalty.directional_derivative(v, v) == penalty.rate_max(v) == 0
        assert penalty.residual(v, v) == np.abs(v).max()
        assert penalty.support(np.zeros(6)).all()
        assert not penalty.penalised(6).any()


def test_batches_of_any_shape():
    assert L1(1.0).prox(np.zeros((0, 3))).shape == (0, 3)
    assert L1(1.0).prox([]).shape == (0,)
    v = np.random.default_rng(0).normal(size=(2, 3, 6))
    for penalty in PENALTIES.values():
        out = penalty.prox(np.asfortranarray(v))
        np.testing.assert_array_equal(out[1, 2], penalty.prox(v[1, 2]))


def test_objects_do_not_change():
    penalty = PENALTIES["group l2"]
    other = penalty.with_rate(2.0)
    assert (penalty.rate, other.rate) == (0.9, 2.0)
    with pytest.raises(AttributeError):
        penalty.rate = 3.0
    sparse = SparseGroup(0.5, GROUPS, group_rate=1.0).with_rate(1.0)
    assert sparse.group_rate == 2.0
    assert repr(sparse) == "SparseGroup(1, group_rate=2.0, norm=2, size=6)"
    assert "penalties" in bs.__all__
    assert bs.penalties.L1 is L1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L1(-1.0), "rate must not be negative, got -1.0; 0 is no penalty"),
        (lambda: L1(np.nan), "rate is NaN"),
        (lambda: L1(np.inf), "leaving them out of the model"),
        (lambda: L1([1.0, 2.0]), "use weights for rates that differ"),
        (lambda: L1(1.0, weights=[1, -2]), "weight of coordinate 1 is negative"),
        (lambda: L1(1.0, weights=[1, np.nan]), "weight of coordinate 1 is not finite"),
        (lambda: Group(1.0, [[0, 1], [1, 2]]), "Groups 0 and 1 overlap: both hold coordinate 1"),
        (lambda: Group(1.0, [[0, 1], [7]], size=4), "Group 1 holds coordinate 7"),
        (lambda: Group(1.0, [[0, 1], [-1]]), "coordinates start at 0"),
        (lambda: Group(1.0, [[0, 1], []]), "Group 1 must be a list"),
        (lambda: Group(1.0, [[0, 0]]), "a coordinate twice"),
        (lambda: Group(1.0, []), "groups is empty"),
        (lambda: Group(1.0, [0.5, 1.0]), "one integer label for each coordinate"),
        (lambda: Group(1.0, [0, -2]), "below -1"),
        (lambda: Group(1.0, [0, 1], size=3), "2 labels for size=3"),
        (lambda: Group(1.0, [0, 1], weights=[1.0]), "there are 2 groups"),
        (lambda: Group(1.0, [0, 1], norm="nuclaer"), "did you mean 'nuclear'"),
        (lambda: Group(1.0, [0, 0], norm="nuclear"), "needs shapes"),
        (lambda: Group(1.0, [0, 0], norm="nuclear", shapes=(3, 1)), "which is not 3 times 1"),
        (lambda: Group(1.0, [0, 0], shapes=(1, 2)), "norm='nuclear' only"),
        (lambda: SparseGroup(1.0, [0, 0], group_rate=-1), "group_rate must not be negative"),
        (lambda: SparseGroup(1.0, [0], group_rate=1, norm="nuclear"), "unknown norm"),
        (lambda: SparseGroup(1.0, [-1, -1], group_rate=1), "No coordinate is in a group"),
        (lambda: SparseGroup(0, [0], group_rate=1).with_rate(1.0), "no ratio"),
        (lambda: Tree(1.0, [[0, 1], [1, 2]]), "Groups 0 and 1 are neither nested nor disjoint"),
        (lambda: Tree(1.0, [[0, 1, 2], [2, 3]]), "neither nested nor disjoint"),
        (lambda: Tree(1.0, [[0, 1]], norm=1), "unknown norm 1"),
        (lambda: Tree.from_parents(1.0, [1, 0]), "run in a cycle"),
        (lambda: Tree.from_parents(1.0, [-1, 5]), "The parent of 1, 5, is not a coordinate"),
        (lambda: L1(1.0).log_normalizer(), "size is needed"),
        (lambda: Group(1.0, [0, 0]).log_normalizer(3), "the penalty has 2 coefficients"),
        (lambda: Group(1.0, [0, 0]).value([1.0]), "w must be a vector of 2"),
        (lambda: Group(1.0, [0, 0]).prox([1.0]), "its last dimension must be 2"),
        (lambda: L1(1.0).prox([1.0], -1.0), "step must not be negative"),
    ],
)
def test_refusals_give_a_reason(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_exact_root_of_sparse_groups_beats_a_bracketing_method(rng):
    for norm in (2, np.inf):
        for _ in range(20):
            g = rng.normal(size=6)
            penalty = SparseGroup(0.3, GROUPS, group_rate=0.7, norm=norm)

            def rest(t, g=g, norm=norm):
                soft = np.maximum(np.abs(g) - 0.3 * t, 0)
                dual = 2 if norm == 2 else 1
                return max(np.linalg.norm(soft[i], dual) - 0.7 * t for i in GROUPS)

            root = optimize.brentq(rest, 0, 100, xtol=1e-15, rtol=1e-14)
            np.testing.assert_allclose(penalty.dual_norm(g), root, rtol=1e-13)


@pytest.mark.parametrize("d", [10, 300, 1000])
def test_a_little_l1_changes_the_constant_of_a_group_by_its_mean(d):
    # To first order in the l1 rate; under the group prior the radius has mean d and the direction
    # is uniform. The second order is below 1e-6 here.
    little = 1e-6
    whole = np.zeros(d, dtype=int)
    found = SparseGroup(little, whole, group_rate=1.0).log_normalizer()
    mean = d * d * math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
    expected = Group(1.0, whole).log_normalizer() - little * mean
    np.testing.assert_allclose(found, expected, atol=2e-6)
