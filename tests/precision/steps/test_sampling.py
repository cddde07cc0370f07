"""The step inside pm.sample: alone, with NUTS, over chains and processes, saved and restored."""

import numpy as np
import pymc as pm
import pytest

from tools.batches import mean_and_error
from tools.integration import laplace_posterior, moments

import bayesstruct as bs

from bayesstruct.models import gaussian_graphical
from bayesstruct.precision.kernels.cholesky import unpack_cholesky
from bayesstruct.steps import PrecisionGibbs

QUIET = {"progressbar": False, "chains": 2, "cores": 1, "random_seed": 1}


def table(n=30, p=3, seed=0):
    z = np.random.default_rng(seed).normal(size=(n, p))
    z[:, 1] += 0.8 * z[:, 0]
    return z


@pytest.mark.chain
@pytest.mark.parametrize("kind", ["spike_slab", "laplace"])
def test_pm_sample_uses_the_step_unasked(kind):
    with gaussian_graphical(table(), prior=kind):
        idata = pm.sample(50, tune=20, **QUIET)
    assert idata["posterior"].attrs["inference_library"] == "pymc"
    assert idata["sample_stats"]["n_edges"].shape == (2, 50)
    if kind == "spike_slab":
        edges = idata["posterior"]["edge"].sum("pair")
        np.testing.assert_array_equal(idata["sample_stats"]["n_edges"], edges)
    K = idata["posterior"]["precision"].values
    # Every draw is a new one: a continuous distribution never repeats.
    assert len(np.unique(K[..., 0, 0])) == 100


@pytest.mark.chain
@pytest.mark.compiled
def test_regression_mean_by_nuts_and_matrix_by_gibbs():
    rng = np.random.default_rng(0)
    n, Z = 80, rng.normal(size=(80, 2))
    B = np.array([[1.0, -1.0, 0.0], [0.0, 0.5, 2.0]])
    rows = np.array([0.5, 0.0, -0.5]) + Z @ B + 0.5 * table(n)
    with pm.Model() as model:
        mu = pm.Normal("intercept", 0, 2, shape=3) + Z @ pm.Normal("B", 0, 2, shape=(2, 3))
        K = bs.GraphicalSpikeSlab("K", 3)
        bs.distributions.Edges("edge", K)
        pm.MvNormal("x", mu, tau=K, observed=rows)
        idata = pm.sample(300, tune=300, nuts_sampler="pymc", **QUIET)
    posterior = idata["posterior"]
    assert {"n_edges", "diverging"} <= set(idata["sample_stats"].data_vars)
    design = np.column_stack([np.ones(n), Z])
    least_squares = np.linalg.lstsq(design, rows, rcond=None)[0]
    # With wide priors the posterior mean is that of least squares; the standard errors are about
    # 0.07 and those of the chain a tenth of it.
    np.testing.assert_allclose(posterior["B"].mean(("chain", "draw")), least_squares[1:], atol=0.05)
    residual = rows - design @ least_squares
    variance = np.linalg.inv(posterior["K"].mean(("chain", "draw")).values).diagonal()
    np.testing.assert_allclose(variance, residual.var(axis=0), rtol=0.25)
    assert model.named_vars.keys() >= {"K", "edge"}


@pytest.mark.compiled
@pytest.mark.calibration
def test_gibbs_and_nuts_agree_with_the_exact_posterior(full):
    # A potential that is zero, but that the step cannot know to be: NUTS takes over.
    rows, draws = table(n=8), 10_000 if full else 1_000
    results = []
    for potential in (False, True):
        with pm.Model():
            K = bs.GraphicalLasso("K", 3, 1.5)
            pm.MvNormal("x", np.zeros(3), tau=K, observed=rows)
            if potential:
                pm.Potential("nothing", 0.0 * K[0, 0])
            options = {"nuts": {"target_accept": 0.95}} if potential else {}
            idata = pm.sample(draws, tune=500, nuts_sampler="pymc", **options, **QUIET)
        assert ("diverging" in idata["sample_stats"]) == potential
        results.append(idata["posterior"]["K"].values)
    weighted = laplace_posterior(rows, rate=1.5, diagonal_rate=0.75, draws=100_000, seed=1)
    exact, exact_error = weighted.mean(moments(weighted.precision))
    for matrices in results:
        mean, error, _ = mean_and_error(moments(matrices), 50)
        assert (np.abs(mean - exact) / np.hypot(error, exact_error)).max() < 4.5


def horseshoe_with_local_scales(rows, width, rate):
    """The model of three columns in other words: local scales, standardised elements, pivots of the matrix.

    The density of :class:`bayesstruct.GraphicalHorseshoe` has poles, at which NUTS gets stuck; this one has none.
    """
    scatter, n = rows.T @ rows, len(rows)
    with pm.Model() as model:
        scale = pm.HalfCauchy("global_scale", width)
        u = scale * pm.HalfCauchy("local", 1.0, shape=3) * pm.Normal("z", 0.0, 1.0, shape=3)
        v = pm.HalfFlat("v", shape=3)
        k00, k01, k02, k12 = v[0], u[0], u[1], u[2]
        k11 = v[1] + k01**2 / k00
        rest = k12 - k01 * k02 / k00
        k22 = v[2] + k02**2 / k00 + rest**2 / v[1]
        K = pm.math.stack([k00, k01, k02, k01, k11, k12, k02, k12, k22]).reshape((3, 3))
        pm.Deterministic("K", K)
        pm.Potential("diagonal", -rate * (k00 + k11 + k22))
        # The determinant is the product of the pivots, and the map to them has Jacobian one.
        pm.Potential("x", 0.5 * n * pm.math.log(v).sum() - 0.5 * (scatter * K).sum())
    return model


@pytest.mark.compiled
@pytest.mark.calibration
def test_gibbs_and_nuts_agree_under_the_horseshoe(full):
    rows, draws = table(n=8), 10_000 if full else 1_000
    with pm.Model() as own:
        K = bs.GraphicalHorseshoe("K", 3, pm.HalfCauchy.dist(0.7))
        pm.MvNormal("x", np.zeros(3), tau=K, observed=rows)
    results = []
    for model in (own, horseshoe_with_local_scales(rows, 0.7, 0.5)):
        options = {} if model is own else {"nuts": {"target_accept": 0.95}}
        with model:
            idata = pm.sample(draws, tune=500, nuts_sampler="pymc", **options, **QUIET)
        assert ("diverging" in idata["sample_stats"]) == (model is not own)
        posterior = idata["posterior"]
        x = np.log(posterior["global_scale"].values)[..., None]
        values = np.concatenate([moments(posterior["K"].values), x, x**2], axis=-1)
        results.append(mean_and_error(values, 50)[:2])
    (gibbs, gibbs_error), (nuts, nuts_error) = results
    assert (np.abs(gibbs - nuts) / np.hypot(gibbs_error, nuts_error)).max() < 4.5


@pytest.mark.chain
@pytest.mark.compiled
def test_latent_rows():
    # x is not observed but y = x + noise is: K sees the current x only.
    rows = table(n=40)
    with pm.Model():
        K = bs.GraphicalSpikeSlab("K", 3, slab_scale=2.0)
        x = pm.MvNormal("x", np.zeros(3), tau=K, shape=(40, 3))
        pm.Normal("y", x, 0.05, observed=rows)
        idata = pm.sample(150, tune=200, nuts_sampler="pymc", **QUIET)
    latent = idata["posterior"]["x"].mean(("chain", "draw"))
    np.testing.assert_allclose(latent, rows, atol=0.1)  # two noise standard deviations
    K = idata["posterior"]["K"].mean(("chain", "draw")).values
    expected = -1 * np.sign(np.cov(rows.T)[0, 1])
    assert np.sign(K[0, 1]) == expected
    assert abs(K[0, 1]) > 0.3


def stepped(step, point, times):
    out = []
    for _ in range(times):
        point, _ = step.step(point)
        out.append(point)
    return out


def test_a_saved_state_continues_bit_for_bit():
    rows = table()
    rows[0, 1] = rows[3, 2] = np.nan
    model = gaussian_graphical(rows, edge_probability=pm.Beta.dist(1, 1))
    with model:
        step = PrecisionGibbs(model.free_RVs, rng=1)
    first = stepped(step, model.initial_point(1), 5)
    saved, point = step.sampling_state, first[-1]
    ahead = stepped(step, point, 5)
    step.sampling_state = saved
    again = stepped(step, point, 5)
    with model:
        other = PrecisionGibbs(model.free_RVs, rng=99)
    other.sampling_state = saved
    elsewhere = stepped(other, point, 5)
    for a, b, c in zip(ahead, again, elsewhere, strict=True):
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])
            np.testing.assert_array_equal(a[name], c[name])


def test_new_data_are_read_by_the_next_chain():
    with pm.Model() as model:
        x = pm.Data("x", np.ones((50, 3)) * [1, -1, 1])
        K = bs.GraphicalLasso("K", 3)
        pm.MvNormal("y", np.zeros(3), tau=K, observed=x)
        step = PrecisionGibbs([K])
    rng = np.random.default_rng(1)
    means = []
    for scale in (1.0, 10.0):
        model.set_data("x", scale * table(n=50))
        step.setup_chain(rng, 0, 200)
        points = stepped(step, model.initial_point(), 200)
        matrices = np.array([unpack_cholesky(q["K_cholesky-cov__"], 3)[0] for q in points[50:]])
        means.append(np.trace(matrices.mean(0)))
    assert means[1] < 0.1 * means[0]


def test_the_step_does_not_touch_the_point_it_is_given():
    model = gaussian_graphical(table())
    with model:
        step = PrecisionGibbs(model.free_RVs, rng=1)
    point = model.initial_point(1)
    before = {k: v.copy() for k, v in point.items()}
    new, _ = step.step(point)
    for name, value in before.items():
        np.testing.assert_array_equal(point[name], value)
    assert not np.array_equal(new["mean"], point["mean"])


def test_the_global_scale_is_drawn_without_the_matrix():
    with gaussian_graphical(table(), prior="horseshoe") as model:
        step = PrecisionGibbs([model["global_scale"]], rng=1)
    point = model.initial_point(1)
    new, _ = step.step(point)
    changed = {name for name in point if not np.array_equal(new[name], point[name])}
    assert changed == {"global_scale_log__"}


@pytest.mark.chain
@pytest.mark.parametrize("kind", ["spike_slab", "laplace", "horseshoe"])
def test_fewer_rows_than_columns(kind):
    rows = table(n=5, p=30)
    wide = {
        "spike_slab": {"slab_scale": 10.0},
        "laplace": {"rate": 0.05},
        "horseshoe": {"global_scale": 10.0},
    }
    options = wide[kind]
    with gaussian_graphical(rows, prior=kind, **options) as model:
        step = PrecisionGibbs(model.free_RVs, rng=1)
    points = stepped(step, model.initial_point(1), 400)
    matrices = [unpack_cholesky(q["precision_cholesky-cov__"], 30)[0] for q in points]
    assert min(np.linalg.eigvalsh(K)[0] for K in matrices) > 0
    assert all(np.isfinite(q["mean"]).all() for q in points)


@pytest.mark.chain
def test_two_processes_give_the_draws_of_one():
    with gaussian_graphical(table()):
        one = pm.sample(20, tune=10, **QUIET)
        two = pm.sample(20, tune=10, **(QUIET | {"cores": 2}))
    a, b = one["posterior"]["precision"].values, two["posterior"]["precision"].values
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a[0], a[1])


@pytest.mark.parametrize("make", [bs.GraphicalLasso, bs.GraphicalSpikeSlab])
def test_a_matrix_without_a_table_is_drawn_from_its_prior(make):
    with pm.Model() as model:
        make("K", 3)
        step = PrecisionGibbs(model.free_RVs)
    step.setup_chain(np.random.default_rng(0), 0, 1)
    start = model.initial_point()
    point, _ = step.step(start)
    assert not np.array_equal(point["K_cholesky-cov__"], start["K_cholesky-cov__"])
