"""Priors of precision matrices: densities, gradients, draws."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from scipy import integrate, special, stats
from tools.priors import laplace_prior, spike_slab_prior

import bayesstruct as bs

from bayesstruct.precision.kernels import prior as precision_prior
from bayesstruct.precision.priors.edge_probability import EdgeProbability

P = 4
UPPER = np.triu_indices(P, 1)
MATRIX = np.array(
    [[0.5, 0.0, 0.3, 0.9], [0.0, 0.5, 1.0, 0.2], [0.3, 1.0, 0.5, 0.6], [0.9, 0.2, 0.6, 0.5]]
)
RATES = 0.5 + np.add.outer(np.arange(P), np.arange(P))


def matrix(seed=0, p=P):
    z = np.random.default_rng(seed).normal(size=(p + 3, p))
    return z.T @ z / p + 0.1 * np.eye(p)


def value_of(rv):
    """Compiled log density as a function of a matrix."""
    x = pt.dmatrix("x")
    return pytensor.function([x], pm.logp(rv, x))


def spike_slab_density(K, probability, spike, slab, rate, scale=1.0):
    """Log density without the constant of the cone, element by element, from scipy."""
    p = len(K)
    i, j = np.triu_indices(p, 1)
    pi = np.broadcast_to(probability, (p, p))[i, j]
    u = K[i, j]
    mixture = pi * stats.norm.pdf(u, 0, slab * scale) + (1 - pi) * stats.norm.pdf(
        u, 0, spike * scale
    )
    return np.log(mixture).sum() + stats.expon.logpdf(np.diag(K), scale=scale / rate).sum()


def laplace_density(K, rate, diagonal_rate):
    p = len(K)
    i, j = np.triu_indices(p, 1)
    rate = np.broadcast_to(rate, (p, p))[i, j]
    off = stats.laplace.logpdf(K[i, j], scale=1 / rate).sum()
    return off + stats.expon.logpdf(np.diag(K), scale=1 / diagonal_rate).sum()


@pytest.mark.parametrize("scale", [1.0, 2.5])
@pytest.mark.parametrize("probability", [0.3, MATRIX], ids=["scalar", "matrix"])
def test_spike_slab_logp(probability, scale):
    rv = bs.GraphicalSpikeSlab.dist(
        P, probability, spike_scale=0.1, slab_scale=0.8, diagonal_rate=0.7, scale=scale
    )
    logp = value_of(rv)
    for seed in range(3):
        K = matrix(seed)
        expected = spike_slab_density(K, probability, 0.1, 0.8, 0.7, scale)
        np.testing.assert_allclose(logp(K), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("rate", "diagonal_rate", "expected"),
    [(2.0, None, 1.0), (2.0, 0.3, 0.3), (RATES, None, 0.5), (RATES, 1.4, 1.4)],
    ids=["wang", "own", "matrix", "matrix-own"],
)
def test_laplace_logp(rate, diagonal_rate, expected):
    logp = value_of(bs.GraphicalLasso.dist(P, rate, diagonal_rate=diagonal_rate))
    for seed in range(3):
        K = matrix(seed)
        np.testing.assert_allclose(logp(K), laplace_density(K, rate, expected), rtol=1e-10)


@pytest.mark.parametrize("cls", [bs.GraphicalSpikeSlab, bs.GraphicalLasso, bs.GraphicalHorseshoe])
def test_logp_is_minus_infinity_outside_the_cone(cls):
    logp = value_of(cls.dist(3))
    bad = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]])
    assert logp(bad) == -np.inf
    assert logp(np.diag([1.0, 1.0, -1.0])) == -np.inf
    assert np.isfinite(logp(np.eye(3)))


@pytest.mark.parametrize("cls", [bs.GraphicalSpikeSlab, bs.GraphicalLasso])
def test_scale_family(cls):
    # K = c Q with Q of scale one: the density changes by the Jacobian of the p(p+1)/2 elements.
    c, K = 1.7, matrix()
    scaled = {"scale": c} if cls is bs.GraphicalSpikeSlab else {"rate": 1 / c}
    difference = value_of(cls.dist(P, **scaled))(K) - value_of(cls.dist(P))(K / c)
    np.testing.assert_allclose(difference, -0.5 * P * (P + 1) * np.log(c), rtol=1e-10)


def model_of(kind):
    with pm.Model() as model:
        if kind == "laplace":
            K = bs.GraphicalLasso("K", P, pm.Gamma("rate", 2, 2))
        elif kind == "horseshoe":
            K = bs.GraphicalHorseshoe("K", P)
        else:
            probability = pm.Beta.dist(1, 2) if kind == "beta" else MATRIX
            scale = pm.Gamma("scale", 2, 2) if kind == "scale" else 1.0
            K = bs.GraphicalSpikeSlab("K", P, probability, spike_scale=0.2, scale=scale)
            bs.distributions.Edges("edge", K)
        pm.MvNormal("x", pm.Normal("mu", shape=P), tau=K, observed=np.ones((3, P)))
    return model


@pytest.mark.chain
@pytest.mark.parametrize("kind", ["laplace", "horseshoe", "fixed", "beta", "scale"])
def test_gradient_by_finite_differences(kind):
    # Required and forbidden edges are in the matrix of `fixed`: no NaN may come from log(0).
    model = model_of(kind)
    logp, dlogp = model.compile_logp(), model.compile_dlogp()
    point = model.initial_point(0)
    rng = np.random.default_rng(1)
    if "edge" in point:  # the initial edges agree with the required and forbidden ones
        assert point["edge"].dtype == np.int64
    for name, value in point.items():
        if name != "edge":
            point[name] = np.asarray(value + 0.3 * rng.normal(size=value.shape))
    gradient = dlogp(point)
    assert np.isfinite(gradient).all()
    numeric = []
    for v in model.continuous_value_vars:
        flat = point[v.name].ravel()
        for i in range(flat.size):
            ends = []
            for h in (1e-6, -1e-6):
                moved = flat.copy()
                moved[i] += h
                ends.append(logp(point | {v.name: moved.reshape(point[v.name].shape)}))
            numeric.append((ends[0] - ends[1]) / 2e-6)
    # Central differences of step 1e-6 in double precision: about 1e-8 of the value.
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cls", [bs.GraphicalSpikeSlab, bs.GraphicalLasso, bs.GraphicalHorseshoe])
def test_default_transform_round_trip(cls):
    with pm.Model() as model:
        K = cls("K", P)
    transform, value = model.rvs_to_transforms[K], matrix()
    packed = transform.forward(pt.as_tensor(value)).eval()
    assert packed.shape == (P * (P + 1) // 2,)
    np.testing.assert_allclose(transform.backward(pt.as_tensor(packed)).eval(), value, rtol=1e-12)


@pytest.mark.parametrize("cls", [bs.GraphicalSpikeSlab, bs.GraphicalLasso, bs.GraphicalHorseshoe])
def test_shapes_dims_and_support_points(cls):
    assert pm.draw(cls.dist(3), random_seed=1).shape == (3, 3)
    assert pm.draw(cls.dist(3, size=(2, 5)), random_seed=1).shape == (2, 5, 3, 3)
    assert pm.draw(cls.dist(3, shape=(4, 3, 3)), random_seed=1).shape == (4, 3, 3)
    with pm.Model(coords={"v": list("abc"), "v_": list("abc")}) as model:
        cls("K", 3, dims=("v", "v_"))
    assert model.named_vars_to_dims["K"] == ("v", "v_")
    point = model.initial_point()
    np.testing.assert_allclose(point["K_cholesky-cov__"], 0.0, atol=1e-15)  # the identity
    assert np.isfinite(model.point_logps()["K"])


def test_support_point_follows_the_scale():
    with pm.Model() as model:
        bs.GraphicalLasso("K", 2, 0.25)
    # Identity times 1 / rate = 4: log of the Cholesky diagonal is log 2.
    np.testing.assert_allclose(model.initial_point()["K_cholesky-cov__"], [np.log(2), 0, np.log(2)])


@pytest.mark.parametrize("cls", [bs.GraphicalSpikeSlab, bs.GraphicalLasso, bs.GraphicalHorseshoe])
def test_symbolic_number_of_variables(cls):
    p = pytensor.shared(np.array(3))
    rv = cls.dist(p)
    draw = pytensor.function([], rv)
    assert draw().shape == (3, 3)
    p.set_value(np.array(5))
    assert draw().shape == (5, 5)


@pytest.mark.parametrize("name", ["spike_scale", "slab_scale", "diagonal_rate", "edge_probability"])
def test_random_constants_are_refused(name):
    with pm.Model(), pytest.raises(ValueError, match=f"`{name}` must be a constant"):
        bs.GraphicalSpikeSlab("K", 3, **{name: pm.Uniform("u", 0, 1)})


@pytest.mark.parametrize("name", ["rate", "diagonal_rate"])
def test_random_rates_of_a_matrix_are_refused(name):
    with pm.Model():
        kwargs = {"rate": np.ones((3, 3)), "diagonal_rate": 1.0}
        kwargs[name] = kwargs[name] * pm.Uniform("u", 0, 1)
        with pytest.raises(ValueError, match=f"`{name}` must be a constant"):
            bs.GraphicalLasso("K", 3, **kwargs)


def test_a_registered_beta_is_refused():
    with pm.Model(), pytest.raises(ValueError, match="unregistered"):
        bs.GraphicalSpikeSlab("K", 3, pm.Beta("share", 1, 1))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"spike_scale": 2.0}, "spike_scale < slab_scale"),
        ({"diagonal_rate": -1.0}, "diagonal_rate > 0"),
    ],
)
def test_invalid_parameters_are_named(kwargs, message):
    from pymc.logprob.utils import ParameterValueError

    # Constants are refused when the distribution is made; data can change later.
    with pytest.raises(ValueError, match="must be"):
        bs.GraphicalSpikeSlab.dist(3, **kwargs)
    data = {name: pytensor.shared(value) for name, value in kwargs.items()}
    with pytest.raises(ParameterValueError, match=message):
        value_of(bs.GraphicalSpikeSlab.dist(3, **data))(np.eye(3))


# Draws. -------------------------------------------------------------------------------------------


def off_diagonal_cdf(density, rate):
    """Law of k_12 for p = 2: the diagonal integrates to a Bessel function.

    P(k_22 > u^2 / a) = exp(-rate u^2 / a), and the integral of exp(-rate (a + u^2 / a)) over a is
    2 |u| K_1(2 rate |u|).
    """
    u = np.concatenate([-np.geomspace(1e-6, 15, 20_000)[::-1], np.geomspace(1e-6, 15, 20_000)])
    weight = density(u) * np.abs(u) * special.k1(2 * rate * np.abs(u))
    cdf = integrate.cumulative_trapezoid(weight, u, initial=0)
    return lambda x: np.interp(x, u, cdf / cdf[-1])


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["spike_slab", "laplace"])
def test_two_variables_against_quadrature(kind):
    if kind == "laplace":
        rv = bs.GraphicalLasso.dist(2, 1.5, diagonal_rate=0.6, size=200)
        cdf = off_diagonal_cdf(lambda u: stats.laplace.pdf(u, scale=1 / 1.5), 0.6)
    else:
        rv = bs.GraphicalSpikeSlab.dist(2, 0.4, spike_scale=0.3, diagonal_rate=0.6, size=200)
        cdf = off_diagonal_cdf(
            lambda u: 0.4 * stats.norm.pdf(u) + 0.6 * stats.norm.pdf(u, scale=0.3), 0.6
        )
    draws = pm.draw(rv, 100, random_seed=1).reshape(-1, 2, 2)
    assert stats.kstest(draws[:, 0, 1], cdf).pvalue > 1e-4
    assert np.linalg.eigvalsh(draws)[:, 0].min() > 0


def assert_same_distribution(a, b, alpha=1e-4):
    """Kolmogorov tests of elements, log determinant and smallest eigenvalue (Bonferroni)."""

    def features(K):
        i, j = np.triu_indices(K.shape[-1])
        return [*K[:, i, j].T, np.linalg.slogdet(K)[1], np.linalg.eigvalsh(K)[:, 0]]

    p_values = [stats.ks_2samp(x, y).pvalue for x, y in zip(features(a), features(b), strict=True)]
    assert min(p_values) > alpha / len(p_values), p_values


@pytest.mark.statistical
@pytest.mark.parametrize("p", [3, 4])
def test_spike_slab_draws_against_rejection(p):
    probability = MATRIX[:p, :p]
    rv = bs.GraphicalSpikeSlab.dist(p, probability, spike_scale=0.2, slab_scale=1.2, scale=2.0)
    draws = pm.draw(rv, 8_000, random_seed=1)
    expected = spike_slab_prior(
        np.random.default_rng(2),
        20_000,
        p,
        probability=probability,
        spike=0.2,
        slab=1.2,
        diagonal_rate=0.5,
    )[0]
    assert_same_distribution(draws, 2.0 * expected)


@pytest.mark.statistical
@pytest.mark.parametrize("p", [3, 4])
def test_laplace_draws_against_rejection(p):
    draws = pm.draw(
        bs.GraphicalLasso.dist(p, RATES[:p, :p], diagonal_rate=0.4), 8_000, random_seed=1
    )
    expected = laplace_prior(
        np.random.default_rng(2), 20_000, p, rate=RATES[:p, :p], diagonal_rate=0.4
    )
    assert_same_distribution(draws, expected)


@pytest.mark.statistical
def test_gibbs_fallback_agrees_with_rejection(monkeypatch):
    # The Python functions of the kernels, with the size up to which rejection is tried set to 0.
    monkeypatch.setattr(precision_prior, "REJECTION_SIZE", 0)
    p, rng, size = 4, np.random.default_rng(1), 2_000
    probability = np.full((p, p), 0.4)
    spike_slab = [
        precision_prior.draw_spike_slab.py_func(rng, probability, 0.2, 1.2, 0.5)
        for _ in range(size)
    ]
    laplace = [
        precision_prior.draw_laplace.py_func(rng, np.full((p, p), 1.5), 0.4) for _ in range(size)
    ]
    shares = [
        precision_prior.draw_edge_probability.py_func(rng, probability, 1.0, 2.0, 0.2, 1.2, 0.5)
        for _ in range(size)
    ]
    expected, _, _ = spike_slab_prior(
        rng, 20_000, p, probability=0.4, spike=0.2, slab=1.2, diagonal_rate=0.5
    )
    assert_same_distribution(np.array(spike_slab), expected)
    assert_same_distribution(
        np.array(laplace), laplace_prior(rng, 20_000, p, rate=1.5, diagonal_rate=0.4)
    )
    _, _, expected = spike_slab_prior(
        rng, 20_000, p, beta=(1.0, 2.0), spike=0.2, slab=1.2, diagonal_rate=0.5
    )
    assert stats.ks_2samp(shares, expected).pvalue > 1e-4


@pytest.mark.statistical
def test_implied_prior_of_the_edge_probability():
    # Beta(pi; a, b) C(pi), C(pi) the chance that independent elements are positive definite.
    kwargs = {"spike_scale": 0.2, "slab_scale": 1.2}
    draws = pm.draw(EdgeProbability.dist(3, 1.5, 2.0, **kwargs), 10_000, random_seed=1)
    rng, m = np.random.default_rng(3), 200_000
    grid = np.linspace(0, 1, 41)
    chance = []
    i, j = np.triu_indices(3, 1)
    for pi in grid:
        K = np.zeros((m // 10, 3, 3))
        scale = np.where(rng.random((len(K), 3)) < pi, 1.2, 0.2)
        K[:, i, j] = K[:, j, i] = rng.normal(size=(len(K), 3)) * scale
        K[:, range(3), range(3)] = rng.exponential(2.0, size=(len(K), 3))
        minor = K[:, 0, 0] * K[:, 1, 1] - K[:, 0, 1] ** 2
        chance.append(((minor > 0) & (np.linalg.det(K) > 0)).mean())
    # C is a cubic polynomial of pi for three pairs.
    C = np.polynomial.Polynomial.fit(grid, chance, 3)
    fine = np.linspace(0, 1, 2_001)
    cdf = integrate.cumulative_trapezoid(stats.beta.pdf(fine, 1.5, 2.0) * C(fine), fine, initial=0)
    assert stats.kstest(draws, lambda x: np.interp(x, fine, cdf / cdf[-1])).pvalue > 1e-4
    assert (
        stats.kstest(draws, stats.beta(1.5, 2.0).cdf).pvalue < 1e-6
    )  # not the nominal distribution
    assert C(1.0) < 0.9 * C(0.0)


@pytest.mark.statistical
def test_beta_prior_joint_draws():
    with pm.Model() as model:
        K = bs.GraphicalSpikeSlab("K", 3, pm.Beta.dist(1.5, 2.0), spike_scale=0.2)
        edge = bs.distributions.Edges("edge", K)
        share = model["edge_probability"]
    draws = pm.draw([K, edge, share], 6_000, random_seed=1)
    expected = spike_slab_prior(
        np.random.default_rng(2),
        20_000,
        3,
        beta=(1.5, 2.0),
        spike=0.2,
        slab=1.0,
        diagonal_rate=0.5,
    )
    assert_same_distribution(draws[0], expected[0])
    assert stats.ks_2samp(draws[2], expected[2]).pvalue > 1e-4
    # Joint: the product of share and number of edges.
    a, b = draws[1].sum(1) * draws[2], expected[1].sum(1) * expected[2]
    z = (a.mean() - b.mean()) / np.sqrt(a.var() / len(a) + b.var() / len(b))
    assert abs(z) < 4


def test_beta_prior_keeps_required_and_forbidden_edges():
    fixed = np.array([[0.5, 1.0, 0.5], [1.0, 0.5, 0.0], [0.5, 0.0, 0.5]])
    with pm.Model():
        K = bs.GraphicalSpikeSlab("K", 3, pm.Beta.dist(1, 1), fixed=fixed)
        edge = bs.distributions.Edges("edge", K)
    draws = pm.draw(edge, 200, random_seed=1)
    assert (draws[:, 0] == 1).all()
    assert (draws[:, 2] == 0).all()
    assert 0 < draws[:, 1].mean() < 1


@pytest.mark.chain
@pytest.mark.compiled
def test_prior_predictive_is_compiled():
    # Object mode would warn, and warnings are errors.
    model = model_of("beta")
    with model:
        prior = pm.sample_prior_predictive(20, random_seed=1)
    assert prior["prior"]["K"].shape == (1, 20, P, P)
    with model_of("laplace"):
        pm.sample_prior_predictive(20, random_seed=1)
