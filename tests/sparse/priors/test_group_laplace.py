"""Priors of groups: densities integrate to one, draws follow them, and modes are the penalties'."""

import pickle

import numpy as np
import pymc as pm
import pytensor
import pytest

from pymc.logprob.utils import ParameterValueError
from pytensor.gradient import verify_grad
from scipy import stats
from tools.modes import assert_is_mode

import bayesstruct as bs

from bayesstruct.distributions import GroupLaplace, SparseGroupLaplace
from bayesstruct.penalties import Group, SparseGroup
from bayesstruct.sparse.penalties.norms import Euclidean
from bayesstruct.sparse.priors.group_laplace import log_sparse_l2

NORMS = [2, np.inf]
GROUPS = [0, 1, 0, 2, 1, 0]


def density(distribution):
    """Compile the density for many vectors at once, one in each row."""
    value = pytensor.tensor.dmatrix("value")
    logp = pm.logp(distribution, value)
    f = pytensor.function([value], logp, mode="FAST_COMPILE")
    return lambda rows: np.exp(f(np.atleast_2d(rows)))


def logp_of(distribution, value):
    return pm.logp(distribution, value).eval(mode="FAST_COMPILE")


def draws_of(make, N, seed, *args, **kwargs):
    """Independent draws, in Python; that compiled ones are the same is tested once."""
    size = len(args[0]) if np.ndim(args[0]) == 1 else 1 + max(max(g) for g in args[0])
    dist = make(*args, shape=(N, size), **kwargs)
    return pm.draw(dist, random_seed=seed, mode="FAST_COMPILE")


def integral(f, d):
    """Integral over d <= 3 dimensions, by Gauss-Legendre pieces in each orthant."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    cuts = np.array([0.0, 0.5, 1.5, 4.0, 10.0, 30.0])
    half = np.diff(cuts)[:, None] / 2
    x = (half * nodes + (cuts[1:] + cuts[:-1])[:, None] / 2).ravel()
    w = (half * weights).ravel()
    grids = np.stack(np.meshgrid(*[x] * d, indexing="ij"), -1).reshape(-1, d)
    mass = np.prod(np.stack(np.meshgrid(*[w] * d, indexing="ij"), -1), axis=-1).ravel()
    return 2**d * mass @ f(grids)


CASES = {
    "group": lambda groups, norm: GroupLaplace.dist(groups, 1.3, norm=norm),
    "sparse": lambda groups, norm: SparseGroupLaplace.dist(groups, 0.7, group_rate=1.1, norm=norm),
}


@pytest.mark.chain
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("groups", [[0], [0, 0], [0, 1], [0, 0, 0], [0, 1, 0]])
@pytest.mark.parametrize("kind", CASES)
def test_the_density_integrates_to_one(kind, groups, norm):
    # Kinks inside the orthants (maximum norm) and cones at zero limit the rule.
    f = density(CASES[kind](groups, norm))
    assert integral(f, len(groups)) == pytest.approx(1.0, abs=2e-3 if len(groups) > 1 else 1e-7)


@pytest.mark.statistical
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", CASES)
def test_the_density_integrates_to_one_in_many_dimensions(kind, norm):
    # Importance sampling from independent Laplace distributions.
    rng = np.random.default_rng(1)
    scale = 1.2 if kind == "group" else 0.7
    w = rng.laplace(scale=scale, size=(400_000, 6))
    ratio = density(CASES[kind](GROUPS, norm))(w) / stats.laplace(scale=scale).pdf(w).prod(1)
    assert abs(ratio.mean() - 1.0) < 4.5 * ratio.std() / np.sqrt(len(w))
    assert ratio.std() / np.sqrt(len(w)) < 0.02


@pytest.mark.parametrize("norm", NORMS)
def test_values_are_those_of_the_penalties(norm):
    w = np.random.default_rng(2).normal(size=6)
    w[[1, 4]] = 0.0
    weights = [1.0, 2.0, 0.5]
    penalty = Group(1.7, GROUPS, norm=norm, weights=weights)
    got = logp_of(GroupLaplace.dist(GROUPS, 1.7, norm=norm, weights=weights), w)
    np.testing.assert_allclose(got, -penalty.value(w) - penalty.log_normalizer(), rtol=1e-12)
    weights = [1.0, 2.0, 0.0]
    penalty = SparseGroup(1.7, GROUPS, group_rate=0.6, norm=norm, weights=weights)
    dist = SparseGroupLaplace.dist(GROUPS, 1.7, group_rate=0.6, norm=norm, weights=weights)
    # The penalties integrate to a relative error of some 1e-10.
    expected = -penalty.value(w) - penalty.log_normalizer()
    np.testing.assert_allclose(logp_of(dist, w), expected, rtol=1e-9)


@pytest.mark.parametrize("ratio", [1e-3, 0.1, 1.0, 1e3])
def test_constant_of_sparse_groups(ratio):
    from scipy.special import erfcx, logsumexp

    sizes = np.array([1, 2, 3, 30, 1000])
    got = log_sparse_l2(sizes, pytensor.tensor.as_tensor(np.full(5, ratio))).eval(
        mode="FAST_COMPILE"
    )
    for d, value in zip(sizes, got, strict=True):
        y = np.linspace(-45, 0.5 * np.log(0.5 * d + 30 * np.sqrt(d + 9)), 200_000)
        mass = 2 * np.sqrt(np.pi) * np.exp(y) * erfcx(ratio * np.exp(y))
        brute = logsumexp(y - np.exp(2 * y) + d * np.log(mass))
        brute += np.log(2 / np.sqrt(np.pi) * (y[1] - y[0]))
        assert abs(value - brute) < 1e-10 * max(1.0, abs(brute))
    assert got[0] == pytest.approx(np.log(2 / (1 + ratio)), abs=1e-11)
    # Without an l1 norm it is that of the group.
    tiny = log_sparse_l2(sizes, pytensor.tensor.as_tensor(np.full(5, 1e-14))).eval(
        mode="FAST_COMPILE"
    )
    np.testing.assert_allclose(tiny, Euclidean().log_integrals(sizes), rtol=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("norm", NORMS)
def test_radii_and_directions(norm):
    rates = np.array([0.5, 2.0, 1.0])
    w = draws_of(GroupLaplace.dist, 20_000, 3, GROUPS, rates, norm=norm)
    for g in range(3):
        block = w[:, np.array(GROUPS) == g]
        d = block.shape[1]
        radius = np.linalg.norm(block, norm, axis=1)
        assert stats.kstest(radius, stats.gamma(d, scale=1 / rates[g]).cdf).pvalue > 1e-3
        direction = np.abs(block) / radius[:, None]
        if norm == np.inf:  # the largest is one, the others are uniform
            rest = np.sort(direction, axis=1)[:, :-1]
            assert d == 1 or stats.kstest(rest.max(axis=1), stats.beta(d - 1, 1).cdf).pvalue > 1e-3
        elif d > 1:
            distribution = stats.beta(0.5, 0.5 * (d - 1))
            assert stats.kstest(direction[:, 0] ** 2, distribution.cdf).pvalue > 1e-3
        assert d == 1 or abs(np.corrcoef(radius, direction[:, 0])[0, 1]) < 0.03
        assert stats.binomtest(int((block[:, 0] > 0).sum()), len(w)).pvalue > 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("rates", [(0.7, 1.1), (5.0, 0.2), (0.05, 2.0)])
def test_draws_of_sparse_groups(norm, rates):
    # Penalty and direction are independent, the penalty gamma; and by importance sampling from
    # Laplace distributions (two or three coefficients each), moments agree.
    rate, group_rate = rates
    dist = SparseGroupLaplace.dist(GROUPS, rate, group_rate=group_rate, norm=norm)
    make = SparseGroupLaplace.dist
    w = draws_of(make, 40_000, 4, GROUPS, rate, group_rate=group_rate, norm=norm)
    penalty = SparseGroup(rate, GROUPS, group_rate=group_rate, norm=norm)
    values = np.array([penalty.value(row) for row in w[:5000]])
    assert stats.kstest(values, stats.gamma(6).cdf).pvalue > 1e-3

    rng = np.random.default_rng(5)
    scale = 0.9 * np.abs(w).mean() + 0.5 / (rate + group_rate)
    other = rng.laplace(scale=scale, size=(400_000, 6))
    weight = density(dist)(other) / stats.laplace(scale=scale).pdf(other).prod(1)
    for f in (
        np.abs,
        lambda x: np.log(np.abs(x)),
        lambda x: np.abs(x[:, [0, 1]] * x[:, [2, 4]]),
        lambda x: np.min(np.abs(x[:, [0, 2, 5]]), axis=1, keepdims=True),
    ):
        a, b = f(w), f(other)
        expected = (weight @ b) / weight.sum()
        error = np.sqrt(weight**2 @ (b - expected) ** 2) / weight.sum()
        z = (a.mean(0) - expected) / np.hypot(error, a.std(0) / np.sqrt(len(a)))
        assert np.abs(z).max() < 4.5


@pytest.mark.statistical
def test_draws_of_a_group_without_a_norm_and_of_large_ratios():
    make, weights = SparseGroupLaplace.dist, [0.0, 1e-9]
    w = draws_of(make, 10_000, 6, [0, 0, 1], 1.5, group_rate=1.0, weights=weights)
    for j in range(3):
        assert stats.kstest(w[:, j], stats.laplace(scale=1 / 1.5).cdf).pvalue > 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("norm", NORMS)
def test_random_rates(norm):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 3, 2)
        group_rate = pm.Gamma("group_rate", 2, 2)
        w = bs.GroupLaplace("w", [0, 0, 1], rate, norm=norm)
        v = bs.SparseGroupLaplace("v", [0, 0], rate, group_rate=group_rate, norm=norm)
        draws = pm.draw([rate, group_rate, w, v], 20_000, random_seed=7)
    radius = np.linalg.norm(draws[2][:, :2], norm, axis=1)
    assert stats.kstest(radius * draws[0], stats.gamma(2).cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(radius * draws[0], draws[0])[0, 1]) < 0.04
    # The densities for a fixed value are those of the penalties at any rate.
    logp = model.compile_logp([model["w"], model["v"]], jacobian=False, mode="FAST_COMPILE")
    x, y = np.array([0.3, -0.2, 1.1]), np.array([0.7, 0.1])
    for a, b in [(0.5, 2.0), (3.0, 0.1)]:
        first = Group(a, [0, 0, 1], norm=norm)
        second = SparseGroup(a, [0, 0], group_rate=b, norm=norm)
        expected = -first.value(x) - first.log_normalizer()
        expected += -second.value(y) - second.log_normalizer()
        point = {"rate_log__": np.log(a), "group_rate_log__": np.log(b), "w": x, "v": y}
        assert logp(point) == pytest.approx(expected, rel=1e-9)


@pytest.mark.chain
@pytest.mark.parametrize("norm", NORMS)
def test_gradients(norm):
    w = np.random.default_rng(8).normal(size=6)

    def group(w, rate):
        return pm.logp(GroupLaplace.dist(GROUPS, rate, norm=norm), w)

    def sparse(w, rate, group_rate):
        return pm.logp(SparseGroupLaplace.dist(GROUPS, rate, group_rate=group_rate, norm=norm), w)

    rng = np.random.default_rng(9)
    verify_grad(group, [w, np.array([1.2, 0.4, 3.0])], rng=rng, mode="FAST_COMPILE")
    verify_grad(sparse, [w, np.array(0.7), np.array(1.4)], rng=rng, mode="FAST_COMPILE")
    for dist in (
        GroupLaplace.dist(GROUPS, norm=norm),
        SparseGroupLaplace.dist(GROUPS, norm=norm),
    ):
        value = pytensor.tensor.dvector("value")
        slope = pytensor.grad(pm.logp(dist, value), value)
        gradient = pytensor.function([value], slope, mode="FAST_COMPILE")
        np.testing.assert_array_equal(gradient(np.zeros(6)), 0.0)
        assert np.isfinite(gradient(np.array([0.0, 1.0, 0.0, 0.0, 0.0, 1e-200]))).all()


@pytest.mark.parametrize("make", [bs.GroupLaplace, bs.SparseGroupLaplace])
def test_shapes_and_dims_that_do_not_fit_the_groups_are_refused(make):
    for shape in (4, (2, 4)):
        with pytest.raises(ValueError, match="4 entries for the coefficients, the groups hold 3"):
            make.dist([0, 0, 1], shape=shape)
    with pm.Model(coords={"term": list("abcd")}), pytest.raises(ValueError, match="4 entries"):
        make("w", [0, 0, 1], dims="term")


def test_shapes_dims_and_start():
    assert GroupLaplace.dist([0, 0, 1]).eval(mode="FAST_COMPILE").shape == (3,)
    assert GroupLaplace.dist([[0, 2], [1]], shape=(4, 3)).eval(mode="FAST_COMPILE").shape == (4, 3)
    batch = GroupLaplace.dist([0, 0, 1], [[1.0, 2.0], [3.0, 4.0]])
    assert batch.eval(mode="FAST_COMPILE").shape == (2, 3)
    w = np.random.default_rng(0).normal(size=(2, 3))
    got = logp_of(batch, w)
    for k, rates in enumerate([[1.0, 2.0], [3.0, 4.0]]):
        expected = logp_of(GroupLaplace.dist([0, 0, 1], rates), w[k])
        np.testing.assert_allclose(got[k], expected)
    sparse = SparseGroupLaplace.dist([0, 0, 1], [1.0, 2.0], shape=(2, 3))
    expected = logp_of(SparseGroupLaplace.dist([0, 0, 1], 2.0), w[1])
    np.testing.assert_allclose(logp_of(sparse, w)[1], expected)
    with pm.Model(coords={"term": list("abc"), "outcome": [0, 1]}) as model:
        bs.GroupLaplace("w", [0, 0, 1], 2.0, dims="term")
        bs.SparseGroupLaplace("v", [0, 0, 1], dims=("outcome", "term"))
        prior = pm.sample_prior_predictive(5, random_seed=1)["prior"]
    assert prior["w"].dims == ("chain", "draw", "term")
    assert prior["v"].sizes["outcome"] == 2
    start = model.initial_point()
    np.testing.assert_array_equal(start["w"], np.zeros(3))
    np.testing.assert_array_equal(start["v"], np.zeros((2, 3)))
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(start))
    assert "GroupLaplace" in model.str_repr()


@pytest.mark.chain
@pytest.mark.compiled
def test_compiled_draws_know_their_structure():
    # Same shapes, other groups: the disk cache must not mix them up.
    a = pm.draw(GroupLaplace.dist([0, 0, 0, 1], 1.0), 4000, random_seed=1)
    b = pm.draw(GroupLaplace.dist([0, 1, 1, 1], 1.0), 4000, random_seed=1)
    assert stats.kstest(np.abs(a[:, 3]), stats.expon.cdf).pvalue > 1e-3
    assert stats.kstest(np.abs(b[:, 0]), stats.expon.cdf).pvalue > 1e-3


@pytest.mark.compiled
@pytest.mark.parametrize("norm", NORMS)
def test_draws_are_the_same_in_python(norm):
    for dist in (
        GroupLaplace.dist(GROUPS, [1.0, 2.0, 3.0], norm=norm),
        SparseGroupLaplace.dist(GROUPS, 2.0, norm=norm),
    ):
        a = pm.draw(dist, 3, random_seed=5)
        b = pm.draw(dist, 3, random_seed=5, mode="FAST_COMPILE")
        np.testing.assert_allclose(a, b)


def test_models_pickle():
    import cloudpickle

    with pm.Model() as model:
        bs.GroupLaplace("w", [0, 0, 1], pm.Gamma("rate", 2, 1))
    again = pickle.loads(cloudpickle.dumps(model))
    point = model.initial_point()
    first, second = (m.compile_logp(mode="FAST_COMPILE")(point) for m in (model, again))
    assert first == second


@pytest.mark.chain
@pytest.mark.compiled
def test_posterior_against_quadrature():
    # Two coefficients in one group and a random rate: NUTS against a grid.
    rng = np.random.default_rng(10)
    X = rng.normal(size=(8, 2))
    y = X @ [0.8, -0.3] + rng.normal(size=8)
    with pm.Model():
        rate = pm.Gamma("rate", 2, 1)
        w = bs.GroupLaplace("w", [0, 0], rate, shape=2)
        pm.Normal("y", X @ w, 1.0, observed=y)
        idata = pm.sample(
            1500,
            tune=500,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            nuts_sampler="pymc",
            target_accept=0.95,
        )
    draws = idata["posterior"]["w"].stack(s=("chain", "draw")).values.T
    axis = np.linspace(-4, 4, 401)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1)
    radius = np.linalg.norm(grid, axis=-1)
    # The rate is integrated out: rate^2 exp(-rate r) against rate exp(-rate).
    log = -0.5 * np.square(y - grid @ X.T).sum(-1) - 4 * np.log1p(radius)
    mass = np.exp(log - log.max())
    mass /= mass.sum()
    mean = np.einsum("ij,ijk->k", mass, grid)
    second = np.einsum("ij,ijk->k", mass, grid**2)
    sd = np.sqrt(second - mean**2)
    # 3,000 draws worth some 600 independent ones: four standard errors.
    assert np.abs((draws.mean(0) - mean) / sd).max() < 4 / np.sqrt(600)
    assert np.abs(draws.std(0) / sd - 1).max() < 4 / np.sqrt(600)


@pytest.mark.chain
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["group", "sparse"])
def test_mode_of_the_model(kind, norm):
    # Orthonormal columns: the mode is the proximal map of the inner products.
    rng = np.random.default_rng(11)
    X = np.linalg.qr(rng.normal(size=(12, 6)))[0]
    y = X @ [3.0, 0.2, -2.0, 0.1, 0.3, 0.9] + 0.1 * rng.normal(size=12)
    with pm.Model() as model:
        if kind == "group":
            penalty = Group(0.8, GROUPS, norm=norm)
            w = bs.GroupLaplace("w", GROUPS, 0.8, norm=norm)
        else:
            penalty = SparseGroup(0.3, GROUPS, group_rate=0.6, norm=norm)
            w = bs.SparseGroupLaplace("w", GROUPS, 0.3, group_rate=0.6, norm=norm)
        pm.Normal("y", X @ w, 1.0, observed=y)
    mode = penalty.prox(X.T @ y)
    assert 0 < np.count_nonzero(mode) < 6
    assert penalty.residual(mode, mode - X.T @ y) < 1e-12
    # Along an edge of the maximum norm single coordinates have one-sided kinks away from zero,
    # which the slopes of the tool do not know.
    tolerance = 1e-4 if norm == 2 else np.inf
    assert_is_mode(model, {"w": mode}, ["w"], gradient_tol=tolerance)


def test_messages():
    with pytest.raises(ValueError, match="Improper prior"):
        GroupLaplace.dist([0, 0, -1])
    with pytest.raises(ValueError, match="Improper prior"):
        SparseGroupLaplace.dist([0, 0, -1])
    with pytest.raises(ValueError, match="Improper prior"):
        GroupLaplace.dist([0, 1], weights=[1.0, 0.0])
    with pytest.raises(ValueError, match="`rate` must be positive"):
        GroupLaplace.dist([0, 1], -1.0)
    with pytest.raises(ValueError, match="`rate` has 3 entries; there are 2 groups"):
        GroupLaplace.dist([0, 1], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="overlap"):
        GroupLaplace.dist([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="needs shapes"):
        GroupLaplace.dist([0, 1], norm="nuclear")
    rate = pytensor.tensor.dscalar("rate")
    logp = pm.logp(GroupLaplace.dist([0, 1], rate), np.ones(2))
    with pytest.raises(ParameterValueError, match="rate > 0"):
        pytensor.function([rate], logp, mode="FAST_COMPILE")(-1.0)


@pytest.mark.parametrize("norm", [2, np.inf])
def test_nan_has_no_density(norm):
    with pm.Model() as model:
        bs.GroupLaplace("w", [0, 0, 1], norm=norm)
        bs.TreeLaplace("v", [[0, 1], [1]], norm=norm)
    logp = model.compile_logp(mode="FAST_COMPILE", sum=False)
    group, tree = logp({"w": np.array([np.nan, 0.0, 0.0]), "v": np.array([np.nan, 0.0])})
    assert np.isnan(group)
    assert np.isnan(tree)
