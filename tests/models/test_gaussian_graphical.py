"""The contract of the model: names, units, groups, priors, starts, transforms."""

import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats

import bayesstruct as bs

from bayesstruct.core.recognition import parameters
from bayesstruct.data.edge_priors import StochasticBlock
from bayesstruct.distributions import implied_edge_probability
from bayesstruct.models import gaussian_graphical
from bayesstruct.steps import PrecisionGibbs

NAMES = ["mood", "sleep", "worry", "energy"]
PAIRS = [f"{a} -- {b}" for i, a in enumerate(NAMES) for b in NAMES[i + 1 :]]
QUIET = {"progressbar": False, "chains": 2, "cores": 1}


def frame(n=30, gaps=False):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 4))
    z[:, 1] += z[:, 0]
    table = pd.DataFrame([100.0, -5.0, 0.0, 1e3] + z * [10.0, 0.1, 1.0, 50.0], columns=NAMES)
    if gaps:
        table.iloc[3, 1] = table.iloc[7, 0] = table.iloc[7, 3] = np.nan
    return table


def sample(model, draws=60, **kwargs):
    with model:
        return pm.sample(draws, tune=40, random_seed=1, **QUIET, **kwargs)


@pytest.fixture(
    scope="module",
    params=[pytest.param("spike_slab", marks=pytest.mark.compiled), "laplace", "g_wishart"],
)
def fitted(request):
    model = gaussian_graphical(frame(), prior=request.param)
    return model, sample(model)


@pytest.mark.chain
def test_names_dims_and_coordinates(fitted):
    _, idata = fitted
    posterior = idata["posterior"]
    assert set(posterior.data_vars) == {"precision", "mean", "edge", "weight"}
    assert posterior["precision"].dims == ("chain", "draw", "node", "node_")
    assert posterior["mean"].dims == ("chain", "draw", "node")
    assert posterior["edge"].dims == posterior["weight"].dims == ("chain", "draw", "pair")
    assert posterior["pair"].values.tolist() == PAIRS
    assert posterior["node"].values.tolist() == posterior["node_"].values.tolist() == NAMES
    assert set(np.unique(posterior["edge"])) <= {0, 1}
    assert idata["observed_data"]["x"].dims == ("observation", "node")


@pytest.mark.chain
def test_weights_are_partial_correlations(fitted):
    _, idata = fitted
    K = idata["posterior"]["precision"].values
    i, j = np.triu_indices(4, 1)
    expected = -K[..., i, j] / np.sqrt(K[..., i, i] * K[..., j, j])
    np.testing.assert_allclose(idata["posterior"]["weight"].values, expected, rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > 0


@pytest.mark.chain
def test_constants_of_the_posterior(fitted):
    _, idata = fitted
    constant = idata["constant_data"]
    i, j = np.triu_indices(4, 1)
    np.testing.assert_array_equal(constant["edge_source"], i)
    np.testing.assert_array_equal(constant["edge_target"], j)
    assert ((constant["edge_prior"] > 0) & (constant["edge_prior"] < 1)).all()
    if "spike_scale" in constant:
        np.testing.assert_allclose(constant["edge_prior"], implied_edge_probability(4), atol=1e-12)
        np.testing.assert_allclose(constant["edge_nominal"], 0.5)
    assert len(bs.edge_table(idata)) == 6


@pytest.mark.chain
def test_predictive_draws_are_in_the_units_of_the_table(fitted):
    model, idata = fitted
    with model:
        predictive = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
    x = predictive["posterior_predictive"]["x"]
    assert x.dims == ("chain", "draw", "observation", "node")
    table = frame()
    # 3,600 replicated values a column: the posterior is wide, a third of its spread is allowed.
    z = (x.mean(("chain", "draw", "observation")) - table.mean().values) / table.std().values
    assert np.abs(z).max() < 0.35
    ratio = x.std(("chain", "draw", "observation")).values / table.std().values
    assert ((ratio > 0.7) & (ratio < 1.8)).all()


@pytest.mark.chain
def test_log_likelihood_and_loo(fitted):
    model, idata = fitted
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
    pointwise = idata["log_likelihood"]["x"]
    assert pointwise.dims == ("chain", "draw", "observation")
    draw = idata["posterior"].isel(chain=0, draw=0)
    location, scale = frame().mean().values, frame().std().values
    normal = stats.multivariate_normal(
        location + scale * draw["mean"].values,
        np.linalg.inv(draw["precision"].values) * np.outer(scale, scale),
    )
    np.testing.assert_allclose(
        pointwise.isel(chain=0, draw=0), normal.logpdf(frame().values), rtol=1e-8
    )
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws have high Pareto shapes
        assert np.isfinite(az.loo(idata).elpd)


@pytest.mark.chain
@pytest.mark.parametrize("prior", ["spike_slab", "laplace", "horseshoe", "g_wishart"])
def test_missing_values(prior):
    model = gaussian_graphical(frame(gaps=True), prior=prior)
    idata = sample(model, draws=300)
    imputed = idata["posterior"]["x_missing"]
    assert imputed.dims == ("chain", "draw", "missing")
    assert imputed["missing"].values.tolist() == ["sleep[3]", "mood[7]", "energy[7]"]
    truth = frame()
    spread = truth.std()[["sleep", "mood", "energy"]].values
    centre = truth.mean()[["sleep", "mood", "energy"]].values
    assert (np.abs(imputed.mean(("chain", "draw")) - centre) < 3 * spread).all()
    assert (imputed.std(("chain", "draw")) > 0.1 * spread).all()
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        predictive = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
    assert idata["log_likelihood"]["x"].sizes["observation"] == 30
    assert np.isfinite(idata["log_likelihood"]["x"]).all()
    assert np.isfinite(predictive["posterior_predictive"]["x"]).all()


@pytest.fixture(scope="module")
def with_everything():
    """Missing values, and an indicator that never changes."""
    return sample(gaussian_graphical(frame(gaps=True), required=[("worry", "energy")]))


@pytest.mark.chain
@pytest.mark.parametrize("name", ["summary", "ess", "rhat"])
def test_arviz_reads_the_whole_posterior(with_everything, name):
    sizes = with_everything["posterior"].sizes
    assert sizes["missing"] == 3
    read = getattr(az, name)(with_everything)
    if name == "summary":
        assert len(read) == 4 + 6 + 6 + 16 + 3  # mean, edge, weight, precision, x_missing
        assert {"mean[mood]", "precision[mood, sleep]", "edge[mood -- sleep]"} <= {*read.index}
    else:
        assert {*read.data_vars} == {*with_everything["posterior"].data_vars}
        assert read["precision"].dims == ("node", "node_")


@pytest.mark.chain
@pytest.mark.parametrize("name", ["plot_forest", "plot_trace", "plot_trace_dist"])
def test_arviz_draws_the_whole_posterior(with_everything, name):
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    getattr(az, name)(with_everything)
    assert any(figure.axes for figure in map(plt.figure, plt.get_fignums()))
    plt.close("all")


def test_prior_predictive():
    with gaussian_graphical(frame(gaps=True), edge_probability=pm.Beta.dist(1, 3)):
        prior = pm.sample_prior_predictive(50, random_seed=1)
    assert prior["prior"]["precision"].shape == (1, 50, 4, 4)
    assert {"edge", "weight", "mean", "edge_probability"} <= set(prior["prior"].data_vars)
    assert prior["prior_predictive"]["x"].shape == (1, 50, 30, 4)
    # Centred at the table's location.
    median = prior["prior_predictive"]["x"].median(("chain", "draw", "observation")).values
    assert (np.abs(median - frame(gaps=True).mean()) < 1.5 * frame(gaps=True).std()).all()


@pytest.mark.parametrize("prior", ["spike_slab", "laplace"])
def test_chains_start_apart_and_near_the_mode(prior):
    model = gaussian_graphical(frame(n=60), prior=prior)
    name = "precision_cholesky-cov__"
    one, two, again = (model.initial_point(random_seed=s)[name] for s in (1, 2, 1))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - two).max() > 1e-3
    logp = model.compile_logp()
    point = model.initial_point(random_seed=1)
    assert logp(point) > logp(point | {name: np.zeros_like(one)}) + 5  # better than the identity


@pytest.mark.parametrize("given", ["rows", "covariances"])
def test_graphs_of_a_g_wishart_matrix_start_apart(given):
    rows = frame(n=60)
    table = {"data": rows} if given == "rows" else {"cov": rows.cov(), "n": 60}
    model = gaussian_graphical(**table, prior="g_wishart", forbidden=[("mood", "worry")])
    starts = [model.initial_point(random_seed=seed)["edge"] for seed in (*range(12), 0)]
    np.testing.assert_array_equal(starts[0], starts[-1])
    assert len(np.unique(starts, axis=0)) > 1
    barred = list(model.coords["pair"]).index("mood -- worry")
    assert not np.array(starts)[:, barred].any()


@pytest.mark.chain
def test_covariates():
    table = frame()
    design = pd.DataFrame({"age": np.linspace(20, 60, 30)})
    table["mood"] += 2.0 * (design["age"] - 40)
    model = gaussian_graphical(table, covariates=design)
    idata = sample(model, draws=100, nuts_sampler="pymc")
    coefficients = idata["posterior"]["coefficients"]
    assert coefficients.dims == ("chain", "draw", "covariate", "node")
    assert coefficients["covariate"].values.tolist() == ["age"]
    effect = coefficients.mean(("chain", "draw")).sel(covariate="age")
    assert effect.sel(node="mood") > 0.5
    assert abs(effect.sel(node="worry")) < 0.5


def test_a_covariate_is_not_in_the_table_too():
    with pytest.raises(bs.TableError, match="'mood' has the name of a column of the table"):
        gaussian_graphical(frame(), covariates=frame()[["mood"]])


RECORDED = ("edge_source", "edge_prior", "edge_nominal", "spike_scale", "slab_scale")


@pytest.mark.parametrize("name", [*RECORDED, "diagonal_rate", "cell_missing"])
def test_constants_of_the_posterior_cannot_be_set(name):
    model = gaussian_graphical(frame(gaps=True))
    with model, pytest.raises(TypeError, match=f"`{name}` must be a `SharedVariable`"):
        pm.set_data({name: 0.5})


@pytest.mark.chain
def test_constants_of_the_posterior_survive_transformations():
    model = pm.do(gaussian_graphical(frame()), {"mean": np.zeros(4)})
    constant = sample(model, 10)["constant_data"]
    assert {*RECORDED} < {*constant.data_vars}
    np.testing.assert_allclose(constant["edge_prior"], implied_edge_probability(4), atol=1e-12)


@pytest.mark.chain
def test_required_and_forbidden_edges():
    model = gaussian_graphical(
        frame(), required=[("worry", "energy")], forbidden=[("sleep", "mood")]
    )
    idata = sample(model, draws=40)
    edge = idata["posterior"]["edge"]
    assert (edge.sel(pair="worry -- energy") == 1).all()
    assert (edge.sel(pair="mood -- sleep") == 0).all()
    prior = idata["constant_data"]["edge_prior"]
    assert prior.sel(pair="worry -- energy") == 1
    assert prior.sel(pair="mood -- sleep") == 0


@pytest.mark.chain
def test_edge_probability_matrix_and_beta():
    nominal = np.full((4, 4), 0.2)
    nominal[0, 1] = nominal[1, 0] = 0.9
    constants = sample(gaussian_graphical(frame(), edge_probability=nominal), 10)["constant_data"]
    np.testing.assert_allclose(constants["edge_nominal"], [0.9, 0.2, 0.2, 0.2, 0.2, 0.2])
    model = gaussian_graphical(
        frame(), edge_probability=pm.Beta.dist(1, 4), forbidden=[("mood", "sleep")]
    )
    posterior = sample(model, 40)["posterior"]
    assert posterior["edge_probability"].dims == ("chain", "draw")
    assert (posterior["edge"].sel(pair="mood -- sleep") == 0).all()


@pytest.mark.chain
def test_a_learned_rate():
    model = gaussian_graphical(frame(), prior="laplace", rate=pm.Gamma.dist(1, 0.1))
    posterior = sample(model, 60, nuts_sampler="pymc")["posterior"]
    assert (posterior["rate"] > 0).all()
    assert float(posterior["rate"].std()) > 0


@pytest.mark.chain
def test_laplace_options():
    model = gaussian_graphical(
        frame(), prior="laplace", rate=3.0, diagonal_rate=0.4, negligible=0.2
    )
    posterior = sample(model, 30)["posterior"]
    expected = np.abs(posterior["weight"].values) > 0.2
    np.testing.assert_array_equal(posterior["edge"].values, expected)


@pytest.mark.chain
def test_g_wishart_has_exact_zeros_and_an_edge_prior_of_its_own():
    fixed = {"required": [("worry", "energy")], "forbidden": [("mood", "sleep")]}
    model = gaussian_graphical(
        frame(), prior="g_wishart", edge_probability=pm.Beta.dist(1, 4), **fixed
    )
    idata = sample(model, 100)
    posterior, upper = idata["posterior"], np.triu_indices(4, 1)
    edge = posterior["edge"].values
    off = posterior["precision"].values[..., upper[0], upper[1]]
    assert (off[edge == 0] == 0).all()
    assert (off[edge == 1] != 0).all()
    assert (posterior["weight"].values == 0).sum() == (edge == 0).sum()
    assert (posterior["edge"].sel(pair="worry -- energy") == 1).all()
    assert (posterior["edge"].sel(pair="mood -- sleep") == 0).all()
    np.testing.assert_allclose(idata["constant_data"]["edge_prior"], [0, 0.2, 0.2, 0.2, 0.2, 1])
    assert ((posterior["edge_probability"] > 0) & (posterior["edge_probability"] < 1)).all()
    with model:
        prior = pm.sample_prior_predictive(300, random_seed=1)["prior"]
    assert abs(float(prior["edge"].sel(pair="mood -- worry").mean()) - 0.2) < 0.1


@pytest.mark.chain
def test_blocks_of_a_g_wishart_graph():
    spec = bs.StochasticBlock(2, within=(3.0, 1.0), between=(1.0, 4.0))
    model = gaussian_graphical(
        frame(), prior="g_wishart", edge_probability=spec, required=[("mood", "worry")]
    )
    chances = np.array([0.9, 0.2, 0.8])  # within the first, between, within the second
    point = {
        "block": np.array([0, 0, 1, 1]),
        "block_probability_logodds__": np.log(chances / (1 - chances)),
        "edge": np.array([1, 1, 0, 0, 1, 0]),
    }
    density = model.compile_fn(
        model.logp(vars=[model["edge"]], sum=False)[0],
        inputs=model.value_vars,
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    found = density(model.initial_point(1) | point)
    assert found == pytest.approx(np.log(0.9 * 1.0 * 0.8 * 0.8 * 0.2 * 0.2))
    prior = model["edge_prior"].data
    np.testing.assert_allclose(prior, np.where(np.arange(6) == 1, 1.0, spec.mean))
    with model:
        draws = pm.sample_prior_predictive(100, random_seed=1)["prior"]
    assert (draws["edge"].sel(pair="mood -- worry") == 1).all()
    assert draws["block"].dims == ("chain", "draw", "node")


@pytest.mark.chain
def test_g_wishart_with_covariates():
    table, design = frame(), pd.DataFrame({"age": np.linspace(20, 60, 30)})
    table["mood"] += 2.0 * (design["age"] - 40)
    model = gaussian_graphical(table, prior="g_wishart", covariates=design)
    idata = sample(model, draws=100, nuts_sampler="pymc")
    assert idata["posterior"]["coefficients"].mean(("chain", "draw")).sel(node="mood") > 0.5


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 2), {}),
        ((4, 8), {}),
        ((30, 4), {"edge_probability": 0.0}),
        ((30, 2), {"edge_probability": 1.0}),
    ],
    ids=["two rows of two columns", "fewer rows than columns", "no edge", "all edges"],
)
def test_smallest_cases_of_g_wishart(shape, options):
    rows = np.random.default_rng(1).normal(size=shape)
    with gaussian_graphical(rows, prior="g_wishart", **options) as model:
        step = bs.steps.PrecisionGibbs(model.free_RVs)
    step.setup_chain(np.random.default_rng(0), 0, 50)
    point = model.initial_point(0)
    for _ in range(50):
        point, _ = step.step(point)
    assert np.linalg.eigvalsh(point["precision"])[0] > 0
    if options:
        assert (point["edge"] == options["edge_probability"]).all()


def test_g_wishart_with_blocks_has_no_mode():
    with (
        gaussian_graphical(frame(), prior="g_wishart", edge_probability=StochasticBlock()),
        pytest.raises(ValueError, match=r"depend on 'block.*read bs\.median_graph"),
    ):
        bs.find_MAP()


def test_unknown_prior_suggests_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'laplace'"):
        gaussian_graphical(frame(), prior="laplase")


def test_bad_edges_name_the_columns():
    from bayesstruct.data import TableError

    with pytest.raises(TableError, match="required edge"):
        gaussian_graphical(frame(), required=[("mood", "slept")])
    with pytest.raises(TableError, match="both required and forbidden"):
        gaussian_graphical(frame(), required=[("mood", "sleep")], forbidden=[("sleep", "mood")])


def test_standardize_off_leaves_the_units_alone():
    model = gaussian_graphical(frame(), standardize=False)
    np.testing.assert_array_equal(model["scale"].get_value(), 1.0)
    np.testing.assert_array_equal(model["location"].get_value(), 0.0)


def test_it_prints_and_its_graph_has_every_variable():
    model = gaussian_graphical(frame(gaps=True))
    text = model.str_repr()
    for name in ("precision", "edge", "mean", "x", "x_missing"):
        assert name in text
    from pymc.model_graph import ModelGraph

    nodes = {node.var.name for plate in ModelGraph(model).get_plates() for node in plate.variables}
    assert {"precision", "edge", "mean", "weight", "x"} <= nodes


@pytest.mark.chain
def test_do_and_observe():
    model = gaussian_graphical(frame())
    fixed = pm.do(model, {"mean": np.zeros(4)})
    idata = sample(fixed, 20)
    assert "mean" not in idata["posterior"]
    K = np.eye(4)
    known = pm.observe(model, {"precision": K})
    assert "precision" in {v.name for v in known.observed_RVs}
    with known:
        pm.sample_prior_predictive(5, random_seed=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spike_scale": 2.0}, "must be below `slab_scale`"),
        ({"slab_scale": -1.0}, "`slab_scale` must be positive"),
        ({"diagonal_rate": 0.0}, "`diagonal_rate` must be positive"),
        ({"edge_probability": 1.2}, "between 0 and 1"),
        ({"edge_probability": "beta"}, "no number .'beta'"),
        ({"edge_probability": pm.Normal.dist()}, r"pm.Beta.dist\(1, 1\), not a normal"),
        ({"covariates": ["x0"]}, "not names of columns"),
        ({"edge_probability": pm.Beta.dist(-1.0, 2.0)}, "`alpha` must be positive"),
        ({"rate": 2.0}, '`rate` goes with prior="laplace"'),
        ({"prior": "laplace", "rate": 0.0}, "`rate` must be positive"),
        ({"prior": "laplace", "negligible": 2.0}, "`negligible` must be between 0 and 1"),
        ({"prior": "laplace", "edge_probability": 0.2}, "`edge_probability` goes with"),
        ({"prior": "laplace", "required": [("x0", "x1")]}, "`required` goes with"),
        ({"prior": "laplace", "slab_scale": 2.0}, "`slab_scale` goes with"),
        ({"prior": "g_wishart", "slab_scale": 2.0}, "`slab_scale` goes with"),
        ({"prior": "g_wishart", "degrees_of_freedom": 2.0}, "`degrees_of_freedom`"),
        ({"degrees_of_freedom": 4.0}, '`degrees_of_freedom` goes with prior="g_wishart"'),
        ({"negligible": 0.2}, "`negligible` goes with"),
        ({"edge_probability": pm.Beta.dist([1, 2], 4)}, "is one beta distribution for all edges"),
        ({"edge_probability": StochasticBlock()}, 'StochasticBlock goes with prior="g_wishart"'),
        ({"prior": "horseshoe", "required": [("x0", "x1")]}, "`required` goes with"),
        ({"prior": "horseshoe", "global_scale": -1.5}, "`global_scale` .* it is -1.5$"),
        ({"prior": "horseshoe", "global_scale": np.ones((3, 3))}, "must be one number"),
        ({"prior": "horseshoe", "global_scale": pm.Gamma.dist(1, 1)}, "half-Cauchy distribution"),
        ({"global_scale": 0.2}, '`global_scale` goes with prior="horseshoe"'),
    ],
)
def test_wrong_options_are_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        gaussian_graphical(np.random.default_rng(0).normal(size=(20, 3)), **options)


def strong(n=250):
    """Rows with an element of the precision matrix of about 14 on standardised columns."""
    return bs.simulate.gaussian_graphical(250, 8, edge_probability=0.3, random_seed=5).data.head(n)


def test_a_slab_that_is_too_narrow_for_the_table_is_remarked_upon():
    # Two false edges of this table have probability 1.00 with this slab, and .35 at most under a G-Wishart prior.
    table = strong()
    with pytest.warns(bs.TableWarning, match=r"slab_scale=7.*or take prior=\"g_wishart\""):
        gaussian_graphical(table, standardize=True)
    with pytest.warns(bs.TableWarning, match="'x1' and 'x3' depend on each other so strongly"):
        gaussian_graphical(cov=table.corr(), n=250, spike_scale=0.03)
    gaussian_graphical(table, slab_scale=7.0)
    gaussian_graphical(table, prior="g_wishart")
    gaussian_graphical(table.head(15))  # an inverse of so few rows says nothing
    table["copy"] = table["x1"] + 0.01 * np.random.default_rng(0).normal(
        size=250
    )  # too near for conditional deviations, too
    with pytest.warns(bs.TableWarning, match=r"Take slab_scale=[\d.]+, leave out one of these"):
        gaussian_graphical(table)


def test_columns_that_depend_strongly_are_put_on_the_scale_of_conditional_deviations(caplog):
    table, caplog.handler.level = strong(), 0
    with caplog.at_level("INFO", logger="pymc.bayesstruct"):
        unasked = gaussian_graphical(table)
        assert "'x1' and 'x3' depend on each other" in caplog.text
        asked = gaussian_graphical(table, standardize="conditional", prior="g_wishart")
        caplog.clear()
        gaussian_graphical(frame())
        gaussian_graphical(strong(15))
    assert not caplog.text
    usual = gaussian_graphical(table, standardize=True, prior="laplace")
    units = usual["scale"].get_value() / asked["scale"].get_value()
    np.testing.assert_array_equal(unasked["scale"].get_value(), asked["scale"].get_value())
    np.testing.assert_array_equal(usual["location"].get_value(), asked["location"].get_value())
    z = (table - table.mean()) / table.std()
    residual = 1 / np.sqrt(np.diag(np.linalg.inv(z.T @ z / 249)))
    np.testing.assert_allclose(1 / units, residual, rtol=0.1)
    # The same means of the columns a priori, in units of the table.
    assert parameters(asked["mean"])[1].eval().tolist() == units.tolist()
    known = gaussian_graphical(cov=table.cov(), n=250, standardize="conditional")
    np.testing.assert_allclose(known["scale"].get_value(), asked["scale"].get_value(), rtol=0.01)


@pytest.mark.statistical
def test_no_edges_of_pairs_without_one_where_columns_depend_strongly():
    table = strong()
    found = {}
    for name, options in {"narrow": {"standardize": True}, "unasked": {}}.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bs.TableWarning)
            model = gaussian_graphical(table, **options)
        with model:
            step = PrecisionGibbs(model.free_RVs)
        step.setup_chain(np.random.default_rng(1), 0, 0)
        point, kept = model.initial_point(1), []
        for _ in range(600):
            point, _ = step.step(point)
            kept.append(point["edge"])
        found[name] = np.mean(kept[100:], axis=0)
    truth = bs.simulate.gaussian_graphical(250, 8, edge_probability=0.3, random_seed=5)
    absent = truth.precision.to_numpy()[np.triu_indices(8, 1)] == 0
    assert found["narrow"][absent].max() > 0.99
    assert found["unasked"][absent].max() < 0.5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"standardize": "group"}, ValueError, 'must be True, False or "conditional"'),
        ({"standardize": "conditional", "marginals": "rank"}, ValueError, "does not apply to"),
        (
            {"standardize": "conditional", "prior": "pseudo_likelihood"},
            ValueError,
            "leave out `standardize`",
        ),
        ({"standardize": "conditional"}, bs.TableError, "at least 16 complete rows.*there are 12"),
    ],
)
def test_wrong_units_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        gaussian_graphical(strong(12), **options)
