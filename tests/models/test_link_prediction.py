"""Models of pairs of objects: links, ratings, similarities, complexes."""

import sys

import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from scipy import stats
from tools.calibration import assert_calibrated

from bayesstruct.data import TableError, TableWarning
from bayesstruct.features.data.links import LinkTable
from bayesstruct.features.kernels.indian_buffet import draw_by_dishes
from bayesstruct.features.kernels.link_codes import probabilities
from bayesstruct.features.reading.links import link_probabilities
from bayesstruct.features.simulate.link_prediction import link_prediction as simulate
from bayesstruct.models.additive_clustering import additive_clustering
from bayesstruct.models.binary_matrix_factorization import binary_matrix_factorization
from bayesstruct.models.link_prediction import link_prediction
from bayesstruct.models.protein_complexes import protein_complexes
from bayesstruct.steps import LinkFeatureGibbs

module = sys.modules[link_prediction.__module__]


def sample(model, draws=12, tune=40, **options):
    with model:
        return pm.sample(
            draws,
            tune=tune,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            **options,
        )


def planted(n=30, seed=0, **options):
    return simulate(n, 2, membership=0.4, random_seed=seed, **options)


def ratings(seed=2):
    rng = np.random.default_rng(seed)
    z, u = rng.random((14, 2)) < 0.5, rng.random((9, 2)) < 0.5
    values = 3.0 + z @ np.array([[2.0, -1.0], [0.0, 1.5]]) @ u.T + 0.3 * rng.normal(size=(14, 9))
    values[rng.random((14, 9)) < 0.2] = np.nan
    return pd.DataFrame(values, columns=list("abcdefghi"))


def similarities(seed=3):
    rng = np.random.default_rng(seed)
    z = rng.random((12, 3)) < 0.4
    values = z @ np.diag([3.0, 2.0, 4.0]) @ z.T + 0.3 * rng.normal(size=(12, 12))
    return pd.DataFrame(
        (values + values.T) / 2, index=list("abcdefghijkl"), columns=list("abcdefghijkl")
    )


# --- what users do ---------------------------------------------------------------------------


@pytest.mark.chain
def test_link_prediction_finds_the_pairs_that_were_left_out():
    truth = planted(40, seed=5)
    rng = np.random.default_rng(4)
    source, target = np.triu_indices(40, 1)
    hidden = rng.choice(len(source), 80, replace=False)
    names = np.array(truth.graph.nodes)
    pairs = list(zip(names[source[hidden]], names[target[hidden]], strict=True))
    model = link_prediction(truth.graph, unobserved=pairs, alpha=1.0, max_features=15)
    idata = sample(model, draws=30, tune=40)
    table = link_probabilities(idata)
    assert len(table) == len(source) and table["observed"].isna().sum() == 80
    left_out = table[table["observed"].isna()]
    actual = np.array(
        [truth.graph.has_edge(a, b) for a, b in left_out[["source", "target"]].values]
    )
    ranks = stats.rankdata(left_out["probability"])
    ones = actual.sum()
    auc = (ranks[actual].sum() - ones * (ones + 1) / 2) / (ones * (80 - ones))
    # The true probabilities have .97; a chance ranking .5.
    assert auc > 0.85
    posterior = idata["posterior"]
    assert posterior["feature"].dims == ("chain", "draw", "observation", "latent")
    assert list(posterior["observation"].values) == list(names)
    assert idata["observed_data"]["y"].dims == ("pair",)
    assert abs(np.bincount(posterior["n_features"].values.ravel()).argmax() - 2) <= 2


BUILDERS = {
    "links": lambda: link_prediction(planted(20).graph, link="probit"),
    "arcs": lambda: link_prediction(planted(20, directed=True).graph, alpha=1.0, weight_scale=2.0),
    "ratings": lambda: binary_matrix_factorization(
        ratings(), concentration=2.0, alpha=1.0, column_alpha=1.0, weight_scale=2.0
    ),
    "similarities": lambda: additive_clustering(similarities(), alpha=1.0, weight_scale=3.0),
    "complexes": lambda: protein_complexes(planted(20).graph, alpha=1.0),
}


@pytest.mark.chain
@pytest.mark.parametrize("name", list(BUILDERS))
def test_models_sample_predict_and_have_pointwise_densities(name):
    model = BUILDERS[name]()
    idata = sample(model, draws=8, tune=24)
    with model:
        prior = pm.sample_prior_predictive(3, random_seed=2)
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, extend_inferencedata=True, random_seed=3, progressbar=False
        )
    y = idata["observed_data"]["y"]
    assert prior["prior_predictive"]["y"].shape == (1, 3, y.size)
    densities = idata["log_likelihood"]["y"].values
    assert densities.shape == (2, 8, y.size) and np.isfinite(densities).all()
    replicated = idata["posterior_predictive"]["y"].values.mean(axis=(0, 1))
    assert np.corrcoef(replicated, y.values)[0, 1] > 0.5
    table = link_probabilities(idata)
    observed = table.dropna(subset="observed")
    assert np.corrcoef(observed.iloc[:, 2], observed["observed"])[0, 1] > 0.5
    assert len(observed) == y.size


@pytest.mark.chain
def test_probabilities_are_means_over_draws():
    truth = planted(6, directed=True)
    model = link_prediction(truth.graph, max_features=8)
    idata = sample(model, draws=5, tune=5)
    flat = idata["posterior"].to_dataset().stack(sample=("chain", "draw"))
    total = np.zeros((6, 6))
    for t in range(10):
        one = flat.isel(sample=t)
        z, w = one["feature"].values.astype(float), one["interaction"].values
        total += probabilities("logistic", one["bias"].item() + z @ w @ z.T) / 10
    table = link_probabilities(idata)
    places = table["source"].str[1:].astype(int), table["target"].str[1:].astype(int)
    assert len(table) == 30
    np.testing.assert_allclose(table["probability"], total[places], atol=1e-12)


@pytest.mark.chain
def test_other_results_are_refused():
    with pytest.raises(TypeError, match="DataTree"):
        link_probabilities({})
    idata = sample(link_prediction(planted(6).graph), draws=2, tune=2)
    with pytest.raises(ValueError, match="`draws`"):
        link_probabilities(idata, draws=0)
    with pytest.raises(ValueError, match="no group `prior`"):
        link_probabilities(idata, group="prior")
    del idata["posterior"]["interaction"]
    with pytest.raises(ValueError, match="no `interaction`"):
        link_probabilities(idata)


# --- calibration -----------------------------------------------------------------------------

N = 6


def prior_and_links(rng):
    """Draw from the prior and the model, independently of the package except for the buffet."""
    alpha, scale = rng.gamma(2.0, 0.5), abs(2.0 * rng.standard_normal())
    bias = 4.0 * rng.standard_normal()
    z = draw_by_dishes(rng, N, alpha)
    w = scale * rng.standard_normal((z.shape[1], z.shape[1]))
    w = np.tril(w) + np.tril(w, -1).T
    eta = (bias + z @ w @ z.T)[np.triu_indices(N, 1)]
    links = (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(np.int32)
    truth = {"alpha": alpha, "bias": bias, "weight_scale": scale, "n_features": z.shape[1]}
    return truth | {"density": eta.mean(), "memberships": z.sum()}, links


def changeable(monkeypatch):
    """Build the model with responses that can be set."""
    links = module.FeatureLinks

    def with_data(name, eta, *, observed, **options):
        return links(name, eta, observed=pm.Data("links", observed.astype(np.int32)), **options)

    monkeypatch.setattr(module, "FeatureLinks", with_data)
    return link_prediction(nx.path_graph(N), max_features=40)


def slice_draw(rng, x, log_density, width=2.0):
    """Draw by slice sampling (Neal 2003)."""
    level = log_density(x) - rng.standard_exponential()
    low = x - width * rng.random()
    high = low + width
    while log_density(low) > level:
        low -= width
    while log_density(high) > level:
        high += width
    while True:
        new = rng.uniform(low, high)
        if log_density(new) > level:
            return new
        low, high = (new, high) if new < x else (low, new)


def draw_numbers(rng, point, links):
    """Draw mass, scale and bias from the conditionals that the priors of the model say."""
    z, w = point["feature"].astype(float), point["interaction"]
    used = z.any(axis=0)
    number, harmonic = used.sum(), (1.0 / np.arange(1, N + 1)).sum()
    point["alpha_log__"] = np.log(rng.gamma(2.0 + number, 1.0 / (2.0 + harmonic)))
    free, squares = number * (number + 1) / 2, (np.tril(w) ** 2).sum()

    def scale(log_scale):
        variance = np.exp(2.0 * log_scale)
        return log_scale - variance / 8.0 - free * log_scale - squares / (2.0 * variance)

    point["weight_scale_log__"] = slice_draw(rng, float(point["weight_scale_log__"]), scale)
    eta = (z @ w @ z.T)[np.triu_indices(N, 1)]
    sign = np.where(links == 1, 1.0, -1.0)

    def bias(value):
        return -(value**2) / 32.0 - np.logaddexp(0.0, -sign * (value + eta)).sum()

    point["bias"] = np.array(slice_draw(rng, float(point["bias"]), bias))
    return float(point["bias"]) + eta.mean()


def test_priors_are_those_that_the_docstring_says(monkeypatch):
    model = changeable(monkeypatch)
    priors = {"alpha": stats.gamma(2.0, scale=0.5), "weight_scale": stats.halfnorm(scale=2.0)}
    priors["bias"] = stats.norm(scale=4.0)
    for name, prior in priors.items():
        assert np.isclose(pm.logp(model[name], 0.7).eval(), prior.logpdf(0.7))
    assert (
        model["interaction"].owner.op.dist_params(model["interaction"].owner)[0] is model["feature"]
    )


@pytest.mark.calibration
def test_link_prediction_is_calibrated(monkeypatch, full):
    model = changeable(monkeypatch)
    with model:
        values = [model.rvs_to_values[model[v]] for v in ("feature", "interaction")]
        step = LinkFeatureGibbs(values)
    tune, draws, simulations = (100, 1000, 300) if full else (30, 150, 20)

    def fit(links, rng):
        model["links"].set_value(links)
        step.setup_chain(rng, tune, draws)
        point, rows = model.initial_point(), []
        for t in range(tune + draws):
            point, _ = step.step(point)
            density = draw_numbers(rng, point, links)
            z = point["feature"]
            row = [np.exp(point["alpha_log__"]), point["bias"], np.exp(point["weight_scale_log__"])]
            if t >= tune:
                rows.append([*row, z.any(axis=0).sum(), density, z.sum()])
        names = ("alpha", "bias", "weight_scale", "n_features", "density", "memberships")
        return dict(zip(names, np.array(rows, float).T, strict=True))

    assert_calibrated(prior_and_links, fit, simulations=simulations, ess_floor=10)


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (nx.empty_graph(1), "at least 2 objects"),
        (nx.empty_graph(4), "there is none among"),
        (nx.complete_graph(4), "all observed pairs are linked"),
        (nx.Graph([(1, 1), (1, 2), (2, 3)]), "'1' linked with itself"),
        (nx.Graph([(1, 2), ("1", 3)]), "several objects have the name '1'"),
        (nx.MultiGraph([(1, 2), (1, 2), (2, 3)]), "several links between two nodes"),
        (np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]]), "value of 'x0' and 'x1' is 2"),
        (np.ones((2, 3)), "2 rows and 3 columns"),
        (np.array([[1, 1, 0], [1, 0, 1], [0, 1, 0]]), "'x0' linked with itself"),
        (np.full((3, 3), np.nan), "no pair is observed"),
        ([[0, 1], ["a", 0]], "text"),
        ([[0, np.inf], [1, 0]], "infinite"),
        ("karate", "a table is expected"),
        (pd.DataFrame(np.eye(2)[::-1], index=["a", "b"], columns=["b", "a"]), "different names"),
        (pd.DataFrame(np.eye(2)[::-1], columns=["a", "a"]), "several objects have the name 'a'"),
        (nx.Graph([("a", "b"), ("a -- b", "c"), ("a", "b -- c")]), "have the label 'a -- b -- c'"),
    ],
)
def test_graphs_that_cannot_be_used_are_refused(graph, words):
    with pytest.raises(TableError, match=words):
        link_prediction(graph)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0.0}, "`alpha`"),
        ({"weight_scale": -1.0}, "`weight_scale`"),
        ({"bias_scale": "1"}, "`bias_scale`"),
        ({"max_features": 0}, "`max_features`"),
        ({"link": "logit"}, "logistic"),
        ({"directed": "yes"}, "`directed`"),
        ({"concentration": -1.0}, "`concentration`"),
        ({"unobserved": ["ab"]}, "'ab' is not a pair"),
        ({"unobserved": [("x0", "y")]}, "no object 'y'"),
    ],
)
def test_options_out_of_range_are_refused(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        link_prediction(planted(8).graph, **options)


@pytest.mark.chain
def test_too_many_features_raise_an_error_that_names_the_option():
    model = link_prediction(planted(20).graph, max_features=1, alpha=3.0)
    with pytest.raises(ValueError, match="`max_features`"):
        sample(model, draws=40, tune=2)


def test_other_tables_that_cannot_be_used_are_refused():
    with pytest.raises(TableError, match="not symmetric"):
        additive_clustering(np.arange(9.0).reshape(3, 3))
    with pytest.raises(TableError, match="all observed values are the same"):
        additive_clustering(np.ones((3, 3)))
    with pytest.raises(TableError, match="at least 2 rows"):
        binary_matrix_factorization([[1.0, 2.0]])
    with pytest.raises(ValueError, match="`noise`"):
        binary_matrix_factorization(ratings(), noise=0.0)
    with pytest.raises(TableError, match="some go one way only"):
        protein_complexes(nx.DiGraph([(1, 2), (2, 3)]))
    with pytest.raises(TypeError, match="`leak_scale`"):
        protein_complexes(nx.path_graph(4), leak_scale=None)


def test_pairs_of_graphs_and_tables():
    graph = nx.DiGraph([("a", "b"), ("b", "c")])
    table = LinkTable.links(graph, unobserved=[("c", "a")])
    assert table.directed and len(table.y) == 5 and "c -> a" not in table.labels
    assert dict(zip(table.labels, table.y, strict=True))["a -> b"] == 1
    half = LinkTable.links(graph.to_undirected())
    assert half.labels == ["a -- b", "a -- c", "b -- c"] and half.y.tolist() == [1, 0, 1]
    matrix = np.array([[0, 1, np.nan], [1, 0, 0], [np.nan, 0, 0]])
    assert LinkTable.links(matrix).labels == ["x0 -- x1", "x1 -- x2"]
    both = LinkTable.links(matrix, directed=True)
    assert both.labels == ["x0 -> x1", "x1 -> x0", "x1 -> x2", "x2 -> x1"]
    cells = LinkTable.ratings(pd.DataFrame({"p": [1.0, np.nan], "q": [2.0, 3.0]}, index=["u", "v"]))
    assert cells.labels == ["u -- p", "u -- q", "v -- q"] and cells.y.tolist() == [1, 2, 3]


def test_weights_of_links_are_not_used_with_a_warning():
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=3)
    graph.add_node("c")
    with pytest.warns(TableWarning, match="weights"):
        assert LinkTable.links(graph).y.tolist() == [1, 0, 0]


def test_a_gap_on_one_side_of_symmetric_links_is_refused():
    matrix = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], float)
    matrix[0, 1] = np.nan
    with pytest.raises(TableError, match="missing, but not the other way round"):
        link_prediction(matrix)
    assert link_prediction(matrix, directed=True)["y"].shape.eval() == 5


def test_similarities_may_differ_by_rounding():
    data = np.corrcoef(np.random.default_rng(0).normal(size=(5, 4)))
    data[0, 1] = np.nextafter(data[1, 0], 1)
    assert additive_clustering(data)["y"].shape.eval() == 10
