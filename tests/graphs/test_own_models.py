"""Hand-written models: what `bs.edges`, `bs.arcs`, `bs.support` and `bs.latent` add, and that all readers take it."""

import itertools

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pymc as pm
import pytest

from scipy.integrate import quad
from scipy.special import k1
from scipy.stats import multivariate_normal, norm

import bayesstruct as bs

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 3))
NAMES = ["a", "b", "c"]


def spike_slab(columns=None, **kwargs):
    with pm.Model() as model:
        precision = bs.GraphicalSpikeSlab("precision", 3, **kwargs)
        bs.edges(precision, columns=columns)
        pm.MvNormal("x", np.zeros(3), tau=precision, observed=ROWS)
    return model


def constants(model):
    with model:
        return pm.sample_prior_predictive(1, random_seed=1)["constant_data"]


def cone_given(c, rate):
    """Probability that diagonal elements with an exponential prior make a (2, 2) matrix positive definite."""
    return 2 * rate * abs(c) * k1(2 * rate * abs(c)) if c else 1.0


def test_the_prior_of_an_edge_accounts_for_positive_definiteness():
    pi, spike, slab, rate = 0.4, 0.1, 2.0, 0.5
    with pm.Model() as model:
        precision = bs.GraphicalSpikeSlab(
            "K", 2, pi, spike_scale=spike, slab_scale=slab, diagonal_rate=rate
        )
        bs.edges(precision)
    inside = [
        2 * quad(lambda c, s=s: norm.pdf(c, 0, s) * cone_given(c, rate), 0, 10 * s)[0]
        for s in (spike, slab)
    ]
    expected = pi * inside[1] / (pi * inside[1] + (1 - pi) * inside[0])
    assert abs(expected - pi) > 0.05
    np.testing.assert_allclose(constants(model)["edge_prior"], [expected], atol=0.005)


@pytest.mark.parametrize("kind", ["random", "known"])
def test_a_graph_with_a_g_wishart_matrix(kind):
    with pm.Model() as model:
        graph = nx.path_graph(3)
        if kind == "random":
            graph = bs.distributions.IndependentEdges("graph", 3, pm.Beta.dist(1, 3))
        precision = bs.GWishart("precision", graph)
        edge = bs.edges(precision, columns=NAMES)
        pm.MvNormal("x", np.zeros(3), tau=precision, observed=ROWS)
        idata = pm.sample_prior_predictive(50, random_seed=1)
    expected = [0.25, 0.25, 0.25] if kind == "random" else [1, 0, 1]
    np.testing.assert_allclose(idata["constant_data"]["edge_prior"], expected)
    if kind == "random":
        np.testing.assert_array_equal(idata["prior"]["edge"], idata["prior"]["graph"])
    assert edge is model["edge"]
    idata["posterior"] = idata["prior"]
    table = bs.edge_table(idata)
    assert len(table) == 3
    zero = idata["prior"]["edge"].values == 0
    assert (idata["prior"]["weight"].values[zero] == 0).all()


def test_the_record_is_that_of_the_model_of_tables():
    ours, theirs = (
        constants(model)
        for model in (spike_slab(NAMES), bs.models.gaussian_graphical(ROWS, edge_probability=0.5))
    )
    for name in ("edge_source", "edge_target", "edge_prior", "edge_nominal", "spike_scale"):
        np.testing.assert_array_equal(ours[name], theirs[name])
    assert ours["node"].values.tolist() == NAMES
    assert ours["pair"].values.tolist() == ["a -- b", "a -- c", "b -- c"]


def test_the_scale_of_the_matrix_is_in_the_recorded_scales():
    found = constants(spike_slab(scale=4.0))
    assert float(found["spike_scale"]) == 0.08
    assert float(found["slab_scale"]) == 4.0


@pytest.mark.parametrize("rate", [1.5, np.full((3, 3), 1.5)])
def test_the_prior_of_an_edge_under_laplace_weights(rate):
    with pm.Model() as model:
        bs.edges(bs.GraphicalLasso("K", 3, rate, diagonal_rate=0.75), negligible=0.3)
    rng, n = np.random.default_rng(1), 400_000
    off = rng.laplace(0, 1 / 1.5, (n, 3))
    a, b, c = rng.exponential(1 / 0.75, (3, n))
    x, y, z = off.T
    inside = (a * b > x**2) & (a * b * c + 2 * x * y * z - a * z**2 - b * y**2 - c * x**2 > 0)
    expected = np.mean(np.abs(x / np.sqrt(a * b))[inside] > 0.3)
    np.testing.assert_allclose(constants(model)["edge_prior"], np.full(3, expected), atol=0.006)


def field(weight, **options):
    with pm.Model() as model:
        bias = pm.Normal("bias", 0, 1, shape=3)
        rows = bs.Ising("x", bias, weight(), observed=(ROWS > 0).astype(int))
        bs.edges(rows, **options)
    return model


@pytest.mark.parametrize(
    ("weight", "options", "expected"),
    [
        (lambda: bs.SpikeAndSlab("w", pm.Beta.dist(1, 3), 1.0, shape=3), {}, [0.25] * 3),
        (lambda: bs.SpikeAndSlab("w", [0.0, 0.2, 1.0], 1.0), {}, [0.0, 0.2, 1.0]),
        (lambda: pm.Laplace("w", 0, 0.5, shape=3), {}, [np.exp(-0.4)] * 3),
        (
            lambda: pm.Normal("w", 0, 2, shape=3),
            {"negligible": 1.0},
            [2 * norm.sf(0.5)] * 3,
        ),
    ],
)
def test_the_prior_of_an_edge_of_a_random_field(weight, options, expected):
    np.testing.assert_allclose(
        constants(field(weight, **options))["edge_prior"], expected, atol=1e-9
    )


@pytest.mark.chain  # machine code for draws of the prior
def test_weights_that_are_random_in_scale_are_drawn():
    def weight():
        return pm.Normal("w", 0, pm.HalfNormal("s", 1), shape=3)

    found = constants(field(weight, negligible=0.5))["edge_prior"]
    expected = quad(lambda s: 2 * norm.pdf(s) * 2 * norm.sf(0.5 / s), 0, 12)[0]
    np.testing.assert_allclose(found, np.full(3, expected), atol=0.015)


def test_groups_of_weights_are_the_edges_of_tables_of_states():
    from bayesstruct.fields.kernels.potentials import Potentials

    potentials = Potentials("full", (2, 2, 2))
    with pm.Model() as model:
        bias = pm.Normal("bias", 0, 1, shape=potentials.bias_size)
        potential = bs.GroupSpikeAndSlab(
            "potential", [0.1, 0.5, 0.9], 1.0, groups=potentials.edge_of_weight
        )
        bs.edges(
            bs.PairwiseMRF(
                "x", bias, potential, potentials=potentials, observed=(ROWS > 0).astype(int)
            )
        )
    np.testing.assert_allclose(constants(model)["edge_prior"], [0.1, 0.5, 0.9])
    with model:
        drawn = pm.sample_prior_predictive(200, random_seed=1)["prior"]
    absent = drawn["edge"].values == 0
    assert (drawn["weight"].values[absent] == 0).all()
    assert (drawn["weight"].values[~absent] > 0).all()


def dag_model(columns=None):
    z = (ROWS - ROWS.mean(0)) / ROWS.std(0)
    with pm.Model() as model:
        dag = bs.DAG("dag", NAMES)
        variance = bs.distributions.NoiseVariances("noise_variance", dag, 5.0, 0.5)
        weight = bs.distributions.ArcWeights("weight", dag, variance, 0.5)
        intercept = bs.distributions.Intercepts("intercept", variance, 1.0)
        bs.arcs(dag, columns=columns)
        matrix = bs.distributions.coefficient_matrix(weight, 3)
        bs.distributions.GaussianNetwork("x", intercept, matrix, variance, observed=z)
    return model


def test_the_prior_of_an_arc_is_the_share_of_acyclic_graphs():
    arcs = list(itertools.permutations(NAMES, 2))
    graphs = [
        chosen
        for k in range(len(arcs) + 1)
        for chosen in itertools.combinations(arcs, k)
        if nx.is_directed_acyclic_graph(nx.DiGraph(chosen))
    ]
    expected = np.mean([("a", "b") in graph for graph in graphs])
    found = constants(dag_model())
    np.testing.assert_allclose(found["arc_prior"], np.full(6, expected))
    assert found["ordered_pair"].values.tolist()[:2] == ["b -> a", "c -> a"]


def selection(inclusion=0.3):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 3))
    y = X @ [0.6, 0.0, 0.2] + rng.normal(size=30)
    with pm.Model(coords={"predictor": NAMES}) as model:
        w = bs.SpikeAndSlab("w", inclusion, 1.0, dims="predictor")
        bs.support(w)
        pm.Normal("y", X @ w, 1.0, observed=y)
    return model, X, y


def features():
    rng = np.random.default_rng(3)
    z, a = rng.integers(0, 2, (20, 2)), rng.normal(size=(2, 3)) * 3
    with pm.Model() as model:
        feature = bs.IndianBuffet("feature", 1.0, observations=20, max_features=8)
        loading = bs.distributions.FeatureLoadings("loading", feature, 2.0, variables=3)
        bs.latent(feature, loading, columns=NAMES)
        pm.Normal("x", feature @ loading, 0.5, observed=z @ a)
    return model


def sampled(model, draws=30):
    return pm.sample(
        draws, tune=10, chains=2, cores=1, random_seed=1, progressbar=False, model=model
    )


@pytest.mark.chain
@pytest.mark.parametrize(
    "model",
    [
        lambda: spike_slab(NAMES),
        lambda: spike_slab(edge_probability=pm.Beta.dist(1, 2)),
        lambda: field(lambda: bs.SpikeAndSlab("w", 0.5, 1.0, shape=3)),
    ],
)
def test_all_readers_and_pictures_take_a_graph(model):
    idata = sampled(model())
    table = bs.edge_table(idata)
    assert np.isfinite(table["bayes_factor"]).all()
    assert table.attrs["estimator"] in ("rao-blackwell", "control variate")
    assert bs.summary(idata).reader == "edge_table"
    assert len(bs.check(idata).rows) >= 4
    bs.compare(idata, [tuple(idata["constant_data"]["node"].values[:2])])
    for plot in (bs.plot_graph, bs.plot_edges, bs.plot_evidence, bs.plot_matrix):
        plot(idata)
    plt.close("all")


@pytest.mark.chain
def test_all_readers_and_pictures_take_a_directed_graph():
    idata = sampled(dag_model(["u", "v", "w"]))
    table = bs.arc_table(idata)
    assert set(table["source"]) == {"u", "v", "w"}
    assert np.isfinite(table["mean"]).all()
    assert bs.summary(idata).reader == "arc_table"
    assert bs.path_probabilities(idata).shape == (3, 3)
    assert len(bs.check(idata).rows) >= 4
    bs.plot_graph(idata)
    plt.close("all")


@pytest.mark.chain
def test_the_support_of_a_regression_is_that_of_enumeration():
    model, X, y = selection()
    idata = sampled(model, 2000)
    weights = {
        on: 0.3 ** sum(on)
        * 0.7 ** (3 - sum(on))
        * multivariate_normal.pdf(y, np.zeros(30), np.eye(30) + (X * on) @ X.T)
        for on in itertools.product([0, 1], repeat=3)
    }
    total = sum(weights.values())
    exact = np.array([sum(w for on, w in weights.items() if on[j]) / total for j in range(3)])
    table = bs.support_table(idata, var_name="w").set_index("coefficient").loc[NAMES]
    # four standard errors of 4000 draws
    np.testing.assert_allclose(table["probability"], exact, atol=0.032)
    odds = table["probability"] / (1 - table["probability"])
    np.testing.assert_allclose(table["bayes_factor"], odds / (0.3 / 0.7))
    assert bs.summary(idata).reader == "support_table"
    assert bs.check(idata).rows[0].quantity == "number of coefficients in w"


@pytest.mark.chain
def test_the_prior_of_a_coefficient_is_the_mean_of_its_probability():
    found = constants(selection(pm.Beta.dist(2, 6))[0])
    np.testing.assert_allclose(found["w_included_prior"], np.full(3, 0.25))
    with pm.Model() as model:
        level = pm.Normal("level", 0, 1)
        bs.support(bs.SpikeAndSlab("w", pm.math.invlogit(level), 1.0, shape=2))
        bs.support(bs.GroupSpikeAndSlab("v", [0.2, 0.6], 1.0, groups=[0, 1, 1]))
    found = constants(model)
    np.testing.assert_allclose(found["w_included_prior"], [0.5, 0.5], atol=0.01)
    np.testing.assert_allclose(found["v_included_prior"], [0.2, 0.6, 0.6])


@pytest.mark.chain
def test_all_readers_take_features():
    idata = sampled(features())
    assert bs.summary(idata).reader == "feature_table"
    assert set(bs.loading_table(idata)["variable"]) == set(NAMES)
    assert len(bs.check(idata).rows) >= 4


def test_names_come_from_the_model_where_it_has_them():
    with pm.Model(coords={"gene": NAMES, "gene_": NAMES}) as model:
        bs.edges(bs.GraphicalSpikeSlab("K", 3, dims=("gene", "gene_")))
    assert constants(model)["node"].values.tolist() == NAMES
    assert "spike_scale" not in constants(model)  # `precision` is what readers would average over


@pytest.mark.parametrize(
    ("add", "error", "message"),
    [
        (lambda: bs.edges(pm.Normal("w", shape=3)), TypeError, "'w' is no undirected graph"),
        (lambda: bs.edges(np.eye(3)), TypeError, "variable of the model"),
        (lambda: bs.edges(bs.DAG("dag", 3)), TypeError, r"bs\.arcs"),
        (lambda: bs.arcs(pm.Normal("w", shape=3)), TypeError, r"bs\.edges"),
        (lambda: bs.support(pm.Normal("w", shape=3)), TypeError, "never exactly zero"),
        (lambda: bs.latent(pm.Normal("w", shape=3)), TypeError, "IndianBuffet"),
        (
            lambda: bs.edges(bs.GraphicalSpikeSlab("K", 3), columns=["a", "b"]),
            ValueError,
            "2 names of columns, and 'K' has 3",
        ),
        (
            lambda: bs.edges(bs.GraphicalSpikeSlab("K", 3), columns=["a", "b", "a"]),
            ValueError,
            "must differ",
        ),
        (
            lambda: bs.edges(bs.GraphicalSpikeSlab("K", 3), negligible=0.1),
            ValueError,
            "has edges of its own",
        ),
        (
            lambda: (pm.Normal("weight"), bs.edges(bs.GraphicalSpikeSlab("K", 3))),
            ValueError,
            "another variable of that",
        ),
        (
            lambda: bs.latent(bs.IndianBuffet("z", 1.0, observations=3, max_features=4)),
            ValueError,
            "call 'z' so",
        ),
        (
            lambda: [bs.edges(bs.GraphicalSpikeSlab(name, 3)) for name in "KL"],
            ValueError,
            "has edges already: make each graph in a model of its own",
        ),
        (
            lambda: bs.edges(2 * bs.GraphicalSpikeSlab("K", 3)),
            TypeError,
            "not an expression of some",
        ),
        (
            lambda: bs.GraphicalSpikeSlab(
                "K", 3, pm.math.sigmoid(pm.Normal("a") + np.zeros(6)), condition="joint"
            ),
            ValueError,
            r"has 1 dimension, not the two of a symmetric \(3, 3\) matrix",
        ),
        (lambda: bs.GroupSpikeAndSlab("w", groups=["g", "g", "h"]), ValueError, "pandas.factorize"),
        (lambda: bs.GroupSpikeAndSlab("w", groups=[[0, 1], [2]]), ValueError, "labels 0, 1, ..."),
    ],
)
def test_what_is_refused(add, error, message):
    with pm.Model(), pytest.raises(error, match=message):
        add()
