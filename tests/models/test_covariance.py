"""Models of a covariance matrix instead of rows: the posterior is that of the rows, without the rows."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats

import bayesstruct as bs

from bayesstruct.graphs.replicates import replicated_tables
from bayesstruct.models import (
    bayesian_network,
    blockwise_gaussian_graphical,
    gaussian_graphical,
    locally_constant_gaussian_graphical,
    node_selection_gaussian_graphical,
)
from bayesstruct.precision.kernels.cholesky import pack_cholesky

N, NAMES = 40, ["a", "b", "c", "d"]
QUIET = {"progressbar": False, "compute_convergence_checks": False, "chains": 1, "random_seed": 3}


def rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 4)) @ (np.eye(4) + 0.5 * rng.normal(size=(4, 4)))
    return pd.DataFrame(x * [1.0, 10.0, 0.1, 5.0] + [3.0, -50.0, 0.0, 1e3], columns=NAMES)


def _sample(model, start=None):
    with model:
        return pm.sample(60, tune=20, initvals=start, **QUIET)


MODELS = {
    "spike_slab": gaussian_graphical,
    "laplace": lambda *data, **matrix: gaussian_graphical(
        *data, **matrix, prior="laplace", rate=2.0
    ),
    "learned": lambda *data, **matrix: gaussian_graphical(
        *data, **matrix, edge_probability=pm.Beta.dist(1.0, 1.0)
    ),
    "bge": bayesian_network,
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    """A model of a covariance matrix, its draws, and those of the model of the rows."""
    build = MODELS[request.param]
    # The starts of rows are resampled rows; from the same start all draws are the same.
    start = None if request.param == "bge" else {"precision": np.eye(4)}
    model = build(cov=rows().cov(), n=N)
    return model, _sample(model, start), _sample(build(rows()), start)


@pytest.mark.chain
def test_draws_are_those_of_the_rows(fitted):
    _, idata, wanted = fitted
    assert set(idata["posterior"]) == set(wanted["posterior"])
    for name, values in wanted["posterior"].items():
        np.testing.assert_allclose(idata["posterior"][name], values, rtol=1e-7, atol=1e-9)


@pytest.mark.chain
def test_correlations_give_the_same_draws():
    start = {"precision": np.eye(4)}
    one = _sample(gaussian_graphical(cov=rows().corr(), n=N), start)
    other = _sample(gaussian_graphical(cov=rows().cov(), n=N), start)
    for name, values in other["posterior"].items():
        np.testing.assert_allclose(one["posterior"][name], values, rtol=1e-7, atol=1e-9)


@pytest.mark.chain
def test_the_log_likelihood_is_that_of_all_rows(fitted):
    model, idata, _ = fitted
    with model:
        found = pm.compute_log_likelihood(idata, progressbar=False, extend_inferencedata=False)
    x, scale = rows(), rows().std().to_numpy()
    posterior = idata["posterior"].isel(chain=0, draw=-1)
    if "precision" in posterior:
        mean, covariance = posterior["mean"].values, np.linalg.inv(posterior["precision"].values)
    else:
        b, (target, source) = np.zeros((4, 4)), np.nonzero(~np.eye(4, dtype=bool))
        b[target, source] = posterior["weight"].values
        root = np.linalg.inv(np.eye(4) - b)
        mean = root @ posterior["intercept"].values
        covariance = root @ np.diag(posterior["noise_variance"].values) @ root.T
    normal = stats.multivariate_normal(mean * scale, covariance * np.outer(scale, scale))
    wanted = normal.logpdf(x - x.mean()).sum()
    np.testing.assert_allclose(found["covariance"].values[0, -1], wanted, rtol=1e-10)


@pytest.mark.chain
def test_correlations_are_checked_and_rows_are_not(fitted):
    model, idata, _ = fitted
    with model:
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, progressbar=False, random_seed=1
        )
    table = bs.predictive_correlations(idata)
    np.testing.assert_allclose(table["observed"], rows().corr().to_numpy()[np.triu_indices(4, 1)])
    assert table["inside"].mean() > 0.5
    with pytest.raises(ValueError, match="not its rows"):
        replicated_tables(idata, "posterior_predictive", 10)


STRUCTURED = {
    "chain": locally_constant_gaussian_graphical,
    "nodes": node_selection_gaussian_graphical,
    "blocks": lambda *data, **matrix: blockwise_gaussian_graphical(
        *data, blocks=list("ffgg"), **matrix
    ),
    "unknown blocks": blockwise_gaussian_graphical,
}


@pytest.mark.chain
@pytest.mark.parametrize("name", STRUCTURED)
def test_draws_of_structured_models_are_those_of_the_rows(name):
    """The steps alone: nothing is compiled."""
    found = []
    for model in (STRUCTURED[name](cov=rows().cov(), n=N), STRUCTURED[name](rows())):
        with model:
            steps = bs.steps.PrecisionGibbs, bs.steps.NodeInclusionGibbs, bs.steps.BlocksGibbs
            assigned, chosen = pm.sampling.mcmc.assign_step_methods(model)
            assert not assigned and set(chosen) <= set(steps)
            ready = [step(variables, rng=i) for i, (step, variables) in enumerate(chosen.items())]
        point = model.initial_point(0)
        point["precision_cholesky-cov__"] = pack_cholesky(np.eye(4))
        for _ in range(5):
            for step in ready:
                point, _ = step.step(point)
        found.append(point)
    for key, value in found[1].items():
        np.testing.assert_allclose(found[0][key], value, rtol=1e-7, atol=1e-9)


@pytest.mark.chain
def test_modes_are_those_of_the_rows():
    for build in (gaussian_graphical, bayesian_network, *STRUCTURED.values()):
        with build(cov=rows().cov(), n=N):
            mode = bs.find_MAP()
        with build(rows()):
            wanted = bs.find_MAP()
        assert set(mode) == set(wanted)
        for name, value in wanted.items():
            np.testing.assert_allclose(mode[name], value, rtol=1e-5, atol=1e-7)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["graph", "network"])
@pytest.mark.parametrize("n", [3, 30])
def test_draws_are_wishart(n, kind):
    """Mean and variance of each entry, also with fewer rows than columns, by four standard errors."""
    rng, p = np.random.default_rng(2), 5
    root = np.eye(p) + 0.4 * rng.normal(size=(p, p))
    sigma, scale = root @ root.T, np.arange(1.0, p + 1)
    unit = np.diag(1 / scale) @ sigma @ np.diag(1 / scale)
    if kind == "graph":
        params = np.linalg.inv(unit), scale, n
        variable = bs.distributions.GraphicalCovariance.dist(np.zeros(p), *params)
    else:  # each column a regression on those before it
        lower = np.linalg.cholesky(unit)
        sd = np.diag(lower)
        params = np.eye(p) - np.linalg.inv(lower / sd), sd**2, scale, n
        variable = bs.distributions.NetworkCovariance.dist(np.zeros(p), *params)
    draws = pm.draw(variable, 10_000, random_seed=1)
    # The variance of an entry of a Wishart matrix with n - 1 degrees of freedom, divided by them.
    variance = (sigma**2 + np.outer(np.diag(sigma), np.diag(sigma))) / (n - 1)
    np.testing.assert_array_less(abs(draws.mean(0) - sigma), 4 * np.sqrt(variance / len(draws)))
    np.testing.assert_allclose(draws.var(0), variance, rtol=0.15)
    assert np.linalg.matrix_rank(draws[0]) == min(p, n - 1)


@pytest.mark.parametrize("options", [{"size": 3}, {"size": (3,)}, {"shape": (2, 2, 2)}])
def test_several_matrices_are_refused_and_not_made_one(options):
    of = bs.distributions
    known = np.eye(2), np.ones(2), 9
    with pytest.raises(ValueError, match=r"is of one sample covariance matrix.*draws=3"):
        of.GraphicalCovariance.dist(np.zeros(2), *known, **options)
    with pytest.raises(ValueError, match="is of one sample covariance matrix"):
        of.NetworkCovariance.dist(np.zeros(2), 0 * known[0], np.ones(2), *known[1:], **options)
    assert of.GraphicalCovariance.dist(np.zeros(2), *known, shape=(2, 2)).type.ndim == 2


def test_several_sets_of_matrices_are_refused():
    groups = np.zeros((2, 2)), np.stack([np.eye(2)] * 2), np.ones((2, 2)), np.full(2, 9)
    with pytest.raises(ValueError, match="is of one set of sample covariance matrices"):
        bs.distributions.GroupedCovariance.dist(*groups, size=3)


@pytest.mark.parametrize(
    "build", [gaussian_graphical, bayesian_network, blockwise_gaussian_graphical]
)
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, TypeError, "a table of rows, or `cov` and `n`"),
        ({"data": np.eye(4), "cov": np.eye(4), "n": 9}, TypeError, "not both"),
        ({"data": np.eye(4), "n": 9}, TypeError, "goes with `cov`"),
        ({"cov": np.eye(4)}, TypeError, "needs `n`"),
        ({"cov": np.eye(4), "n": 2.5}, ValueError, "`n` must be a whole number"),
        ({"cov": np.eye(4), "n": 9, "row_counts": [1]}, TypeError, "`row_counts` needs the rows"),
        ({"cov": np.eye(4), "n": 9, "missing_codes": 9}, TypeError, "`missing_codes` needs the rows"),
    ],
)  # fmt: skip
def test_rows_and_matrices_exclude_one_another(build, options, error, words):
    with pytest.raises(error, match=words):
        build(**options)


def test_options_of_rows_are_refused():
    matrix = {"cov": np.eye(4), "n": 9}
    with pytest.raises(TypeError, match="`covariates` needs the rows"):
        gaussian_graphical(**matrix, covariates=np.arange(9.0))
    with pytest.raises(TypeError, match="`standardize` needs the rows"):
        gaussian_graphical(**matrix, standardize=False)
    with pytest.raises(TypeError, match="`interventions` needs the rows"):
        bayesian_network(**matrix, interventions=np.zeros((9, 4), bool))
    with pytest.raises(ValueError, match="`cov` goes with score='bge'"):
        bayesian_network(**matrix, score="bdeu")


@pytest.mark.chain
def test_values_cannot_be_predicted_from_a_matrix():
    cov = pd.DataFrame(np.cov(np.random.default_rng(1).normal(5.0, 1.0, (60, 3)), rowvar=False))
    cov.index = cov.columns = list("abc")
    short = {"draws": 5, "tune": 5, "chains": 1, "cores": 1, "progressbar": False, "random_seed": 1}
    for model in (gaussian_graphical, bayesian_network):
        with model(cov=cov, n=60):
            idata = pm.sample(**short, compute_convergence_checks=False)
        with pytest.raises(ValueError, match="means of the columns are not known"):
            bs.predict(idata, pd.DataFrame({"a": [np.nan], "b": [5.0], "c": [5.0]}))
    with pytest.raises(ValueError, match="means of the columns are not known"):
        bs.do(idata, {"a": 5.0})


def test_intercepts_are_not_known_from_a_covariance_matrix():
    rows = np.random.default_rng(4).normal(size=(60, 3)) + 100.0
    cov = pd.DataFrame(np.cov(rows.T), list("abc"), list("abc"))
    results = []
    for make in (bs.models.bayesian_network, bs.models.gaussian_graphical):
        with make(cov=cov, n=60):
            idata = pm.sample_prior_predictive(3, random_seed=1)
        idata["posterior"] = idata["prior"]
        results.append(idata)
    network, graph = results
    assert set(bs.coefficients(network)) == {"coefficient", "noise_sd"}
    with pytest.raises(ValueError, match="the means of the columns are not known"):
        bs.coefficients(graph)
    with bs.models.gaussian_graphical(cov=cov, n=60) as model:
        pass
    with pytest.raises(ValueError, match="new rows need the model of the rows themselves"):
        bs.new_rows(model, rows)
