"""Directed graphs, parameters of networks, and rows: densities and draws."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from scipy.special import gammaln, logsumexp

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.networks.kernels.dags import all_dags, topological_orders
from bayesstruct.networks.kernels.linear_extensions import log_orders
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.networks.kernels.scores.gaussian import BGe
from bayesstruct.networks.priors.discrete_network import table_cells
from bayesstruct.networks.priors.gaussian_network import coefficient_matrix

GRAPH = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], "int8")
STATES = (2, 3, 2)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": "edge", "edge_probability": 0.2},
        {"prior": "fair", "max_parents": 1},
        {"prior": "order"},
        {"prior": "order", "weights": "fair", "max_parents": 1},
    ],
)
def test_densities_of_graphs_sum_to_one(options):
    dag = bs.DAG.dist(3, **options)
    logs = [float(pm.logp(dag, graph).eval()) for graph in all_dags(3)]
    assert logsumexp(logs) == pytest.approx(0.0, abs=1e-10)


def test_graphs_with_a_cycle_or_other_values_are_impossible():
    dag = bs.DAG.dist(2)
    for wrong in ([[0, 1], [1, 0]], [[1, 0], [0, 0]], [[0, 2], [0, 0]]):
        assert pm.logp(dag, np.array(wrong, "int8")).eval() == -np.inf


def test_values_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"3 x 3 matrix.* shape \(4, 4\)"):
        pm.logp(bs.DAG.dist(3), np.zeros((4, 4), int))
    value = pt.matrix("value", dtype="int8")
    logp = pytensor.function([value], pm.logp(bs.DAG.dist(3), value), mode="FAST_COMPILE")
    with pytest.raises(ValueError, match="3 x 3 matrix"):
        logp(np.zeros((4, 4), "int8"))


@pytest.mark.statistical
@pytest.mark.parametrize("prior", ["edge", "order"])
def test_draws_have_the_probabilities_of_the_density(prior):
    dag = bs.DAG.dist(["a", "b", "c"], prior=prior, edge_probability=0.3, forbidden=[("c", "a")])
    draws = pm.draw(dag, 1500, random_seed=1)
    graphs = all_dags(3)
    logs = np.array([float(pm.logp(dag, graph).eval()) for graph in graphs])
    p = np.exp(logs - logsumexp(logs))
    share = (draws[:, None] == graphs[None]).all(axis=(2, 3)).mean(axis=0)
    z = (share - p) / np.sqrt(np.maximum(p * (1 - p), 1e-12) / len(draws))
    assert np.abs(z[p > 0]).max() < 4.0  # 25 graphs
    assert share[p == 0].sum() == 0


def test_names_of_arcs_are_checked():
    with pytest.raises(TableError, match="columns are"):
        bs.DAG.dist(["a", "b"], required=[("a", "z")])
    with pytest.raises(ValueError, match="cycle"):
        bs.DAG.dist(["a", "b"], required=[("a", "b"), ("b", "a")])


@pytest.mark.parametrize(
    ("variables", "options", "error", "words"),
    [
        (2.5, {}, TypeError, "whole number or a list of names, not 2.5"),
        ("abc", {}, TypeError, "list of names"),
        (0, {}, ValueError, "at least 1"),
        (["a", "b", "a"], {}, TableError, "'a' more than once"),
        (3, {"max_parent": 2}, TypeError, "did you mean 'max_parents'"),
        (3, {"prior": "orders"}, ValueError, "did you mean 'order'"),
        (3, {"prior": "edge", "edge_probability": 2}, ValueError, "`edge_probability` must lie"),
        (3, {"prior": "edge", "edge_probability": 1}, ValueError, "`edge_probability` is 1"),
        (3, {"prior": "edge", "edge_probability": [0.1]}, ValueError, "`edge_probability` has sh"),
    ],
)
def test_bad_graphs_are_refused_in_words(variables, options, error, words):
    with pytest.raises(error, match=words):
        bs.DAG.dist(variables, **options)
    with pm.Model(), pytest.raises(error, match=words):
        bs.DAG("dag", variables, **options)


def test_orders_are_counted():
    graphs = all_dags(4)
    found = [log_orders(graph) for graph in graphs]
    np.testing.assert_allclose(found, np.log(topological_orders(graphs)), atol=1e-12)
    # Two chains of two in any mixture: 4! / (2! 2!)
    pairs = np.zeros((4, 4), int)
    pairs[0, 1] = pairs[2, 3] = 1
    assert log_orders(pairs) == pytest.approx(np.log(6))
    with pytest.raises(ValueError, match="23 variables of the graph are connected"):
        log_orders(np.eye(23, k=1))


def gaussian(x, graph, alpha_w, scale, alpha_mu, setting=np.nan):
    """Log density of rows and parameters at a draw of them, and the draw."""
    d = len(graph)
    with pm.Model() as model:
        variance = bs.distributions.NoiseVariances("v", graph, alpha_w, scale)
        weight = bs.distributions.ArcWeights("w", graph, variance, scale)
        intercept = bs.distributions.Intercepts("a", variance, alpha_mu)
        matrix = coefficient_matrix(weight, d)
        bs.distributions.GaussianNetwork(
            "x", intercept, matrix, variance, setting=setting, observed=x
        )
    return model


def test_the_marginal_likelihood_of_gaussian_rows_is_the_score():
    x = np.random.default_rng(0).normal(size=(2, 3))
    score = BGe(x)
    model = gaussian(x, GRAPH, score.alpha_w, score.scale, score.alpha_mu)
    draws = pm.draw([model["v"], model["w"], model["a"]], 5_000, random_seed=2)
    v, w, a = draws
    explained = np.zeros((len(v), 2, 3))
    # arcs target by target: 1->0, 2->0, 0->1, 2->1, 0->2, 1->2
    explained[..., 1] = w[:, None, 2] * x[:, 0]
    explained[..., 2] = w[:, None, 4] * x[:, 0] + w[:, None, 5] * x[:, 1]
    r = x - a[:, None] - explained
    logs = -0.5 * (r**2 / v[:, None] + np.log(2 * np.pi * v[:, None])).sum(axis=(1, 2))
    wanted = sum(score.local(i, np.flatnonzero(GRAPH[:, i])) for i in range(3))
    likelihood = np.exp(logs - wanted)
    assert likelihood.mean() == pytest.approx(1.0, abs=4 * likelihood.std() / np.sqrt(len(v)))
    # The density of the model is that of the formula above.
    f = model.compile_logp(vars=[model["x"]], sum=True)
    for k in range(3):
        assert f({"v": v[k], "w": w[k], "a": a[k]}) == pytest.approx(logs[k], rel=1e-10)


def test_weights_without_an_arc_are_zero():
    model = gaussian(np.zeros((1, 3)), GRAPH, 6.0, 0.5, 1.0)
    f = model.compile_logp(vars=[model["w"]])
    point = {"v": np.ones(3), "w": np.zeros(6), "a": np.zeros(3)}
    assert np.isfinite(f(point))
    assert f(point | {"w": np.eye(6)[0]}) == -np.inf


def test_values_that_were_set_are_uninformative_and_stay():
    x = np.array([[0.5, -1.0, 2.0]])
    setting = np.array([[np.nan, -1.0, np.nan]])
    model = gaussian(x, GRAPH, 6.0, 0.5, 1.0, setting)
    f = model.compile_logp(vars=[model["x"]], sum=True)
    point = {"v": np.ones(3), "w": np.array([0, 0, 9.0, 0, 0, 0]), "a": np.zeros(3)}
    # neither the weight of x0 -> x1 nor the intercept of x1 matters
    assert f(point) == pytest.approx(-0.5 * (0.25 + 4.0) - np.log(2 * np.pi))
    draw = bs.distributions.GaussianNetwork.dist(
        np.zeros(3), np.diag([2.0, 2.0], -1), np.full(3, 1e-12), setting=setting[0]
    )
    np.testing.assert_allclose(pm.draw(draw, random_seed=1), [0.0, -1.0, -2.0], atol=1e-4)


def test_rows_have_the_covariance_of_the_network():
    matrix = np.array([[0, 0, 0], [0.8, 0, 0], [-0.5, 0.7, 0]])
    variance = np.array([1.0, 0.5, 2.0])
    rows = bs.distributions.GaussianNetwork.dist(
        [1.0, 0.0, 0.0], matrix, variance, 3.0, 2.0, shape=(40_000, 3)
    )
    x = pm.draw(rows, random_seed=3)
    inverse = np.linalg.inv(np.eye(3) - matrix)
    np.testing.assert_allclose(x.mean(0), 3.0 + 2.0 * inverse[:, 0], atol=0.07)
    np.testing.assert_allclose(np.cov(x.T), 4 * inverse * variance @ inverse.T, atol=0.25)


def dirichlet(theta, alpha):
    return gammaln(alpha.sum()) - gammaln(alpha).sum() + ((alpha - 1) * np.log(theta)).sum()


def test_the_marginal_likelihood_of_states_is_the_score():
    # Bayes' rule at one point: likelihood times prior over posterior, the last from the counts.
    rng, ess = np.random.default_rng(1), 1.5
    x = np.column_stack([rng.integers(0, k, 9) for k in STATES])
    with pm.Model() as model:
        tables = bs.distributions.ProbabilityTables("t", GRAPH, ess, states=STATES, cells=12)
        bs.distributions.DiscreteNetwork("x", GRAPH, tables, states=STATES, observed=x)
    t = pm.draw(model["t"], random_seed=2)
    total = model.compile_logp()({"t": t})
    for i, parents in enumerate([(), (0,), (0, 1)]):
        k = STATES[i]
        q = int(np.prod([STATES[j] for j in parents], initial=1))
        code = (
            sum(x[:, j] * int(np.prod(STATES[: parents.index(j)])) for j in parents) + 0 * x[:, 0]
        )
        for c in range(q):
            counts = np.bincount(x[code == c, i], minlength=k)
            total -= dirichlet(t[i, c * k : (c + 1) * k], counts + ess / (q * k))
    score = BDeu(x, states=STATES, equivalent_sample_size=ess)
    wanted = sum(score.local(i, np.flatnonzero(GRAPH[:, i])) for i in range(3))
    assert total == pytest.approx(wanted, abs=1e-9)


def test_tables_that_are_not_those_of_the_graph_are_impossible():
    t = pm.draw(
        bs.distributions.ProbabilityTables.dist(GRAPH, 1.0, states=STATES, cells=12), random_seed=1
    )
    dist = bs.distributions.ProbabilityTables.dist(GRAPH, 1.0, states=STATES, cells=12)
    assert np.isfinite(pm.logp(dist, t).eval())
    assert pm.logp(dist, 1.1 * t).eval() == -np.inf
    small = bs.distributions.ProbabilityTables.dist(GRAPH, 1.0, states=STATES, cells=6)
    assert pm.logp(small, t[:, :6]).eval() == -np.inf
    with pytest.raises(ValueError, match="max_parents"):
        pm.draw(small)


def test_states_are_drawn_from_the_tables_and_settings_stay():
    t = np.zeros((3, 12))
    t[0, :2] = 0.3, 0.7
    t[1, :6] = 0.2, 0.3, 0.5, 0.6, 0.3, 0.1
    t[2] = np.tile([0.9, 0.1, 0.4, 0.6], 3)
    x = pm.draw(
        bs.distributions.DiscreteNetwork.dist(GRAPH, t, states=STATES, shape=(20_000, 3)),
        random_seed=4,
    )
    # three standard errors are .01
    assert x[:, 0].mean() == pytest.approx(0.7, abs=0.01)
    assert (x[x[:, 0] == 1, 1] == 0).mean() == pytest.approx(0.6, abs=0.013)
    assert x[(x[:, 0] == 1) & (x[:, 1] == 2), 2].mean() == pytest.approx(0.6, abs=0.05)
    one = bs.distributions.DiscreteNetwork.dist(
        GRAPH, t, states=STATES, setting=[-1, 2, -1], shape=(50, 3)
    )
    assert (pm.draw(one, random_seed=5)[:, 1] == 2).all()


def test_cells_of_the_largest_table():
    assert table_cells((2, 3, 4), 0) == 4
    assert table_cells((2, 3, 4), 1) == 12
    assert table_cells((2, 3, 4), 2) == 24


def incomplete(x, missing, setting):
    """Parameters of a network, and the same rows with and without missing values."""
    matrix = np.array([[0, 0, 0], [0.8, 0, 0], [-0.5, 0.7, 0]])
    params = [1.0, 0.0, 0.3], matrix, np.array([1.0, 0.5, 2.0]), 3.0, [2.0, 1.0, 0.5], setting
    whole = bs.distributions.GaussianNetwork.dist(*params, shape=x.shape)
    rows = bs.distributions.IncompleteGaussianNetwork.dist(*params, missing=missing, shape=x.shape)
    cells = bs.distributions.MissingNetworkValues.dist(*params, table=x, missing=missing)
    return whole, rows, cells


def test_observed_and_missing_values_make_the_rows():
    x = np.random.default_rng(4).normal(3.0, 2.0, size=(4, 3))
    missing = np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0], [0, 1, 1]], bool)
    setting = np.where(np.eye(4, 3, k=0), x, np.nan)  # one cell of each of three rows is set
    missing &= np.isnan(setting)
    whole, rows, cells = incomplete(x, missing, setting)
    complete = pm.logp(whole, x).eval()
    observed = pm.logp(rows, np.where(missing, 77.0, x)).eval()
    np.testing.assert_allclose(
        observed.sum() + pm.logp(cells, x[missing]).eval(), complete.sum(), rtol=1e-12
    )
    alone = ~missing.any(axis=1)
    np.testing.assert_allclose(observed[alone], complete[alone], rtol=1e-12)


@pytest.mark.statistical
def test_missing_values_are_drawn_from_their_density():
    x = np.zeros((1, 3))
    _, rows, cells = incomplete(x, np.array([[False, True, True]]), np.full((1, 3), np.nan))
    draws = pm.draw(cells, 3000, random_seed=5)
    value = pt.vector()
    logp = pytensor.function([value], pm.logp(cells, value), mode="FAST_COMPILE")
    centre = draws.mean(axis=0)
    # A normal density: its matrix from differences, to compare with that of the draws.
    step = np.eye(2)
    top = logp(centre)
    hessian = np.array(
        [
            [logp(centre + a + b) - logp(centre + a) - logp(centre + b) + top for a in step]
            for b in step
        ]
    )
    np.testing.assert_allclose(np.cov(draws.T), np.linalg.inv(-hessian), rtol=0.15)
    slope = np.array([logp(centre + a) - logp(centre - a) for a in step]) / 2
    spread = np.sqrt(np.diag(np.linalg.inv(-hessian)) / len(draws))
    assert np.abs(np.linalg.solve(-hessian, slope) / spread).max() < 4.0
    assert pm.draw(rows, random_seed=1).shape == (1, 3)


def test_states_that_are_missing_are_filled_in():
    t = pm.draw(
        bs.distributions.ProbabilityTables.dist(GRAPH, 1.0, states=STATES, cells=12), random_seed=1
    )
    x = np.array([[0, 2, 1], [1, 1, 0]])
    missing = np.array([[False, True, True], [False, False, False]])
    cells = pt.vector(dtype="int64")
    rows = bs.distributions.IncompleteDiscreteNetwork.dist(
        GRAPH, t, cells, states=STATES, missing=missing, shape=x.shape
    )
    hidden = np.where(missing, 0, x)
    found = pm.logp(rows, hidden).eval({cells: x[missing]})
    whole = bs.distributions.DiscreteNetwork.dist(GRAPH, t, states=STATES, shape=x.shape)
    np.testing.assert_allclose(found, pm.logp(whole, x).eval(), rtol=1e-12)


def test_rows_with_settings_of_their_own_follow_them():
    t = np.zeros((3, 12))
    t[0, :2] = 0.3, 0.7
    t[1, :6] = 0.2, 0.3, 0.5, 0.6, 0.3, 0.1
    t[2] = np.tile([0.9, 0.1, 0.4, 0.6], 3)
    setting = np.full((4000, 3), -1)
    setting[::2, 0] = 1
    setting[1::4, 1] = 2
    x = pm.draw(
        bs.distributions.DiscreteNetwork.dist(GRAPH, t, states=STATES, setting=setting),
        random_seed=6,
    )
    assert (x[::2, 0] == 1).all()
    assert (x[1::4, 1] == 2).all()
    assert x[1::2, 0].mean() == pytest.approx(0.7, abs=0.04)  # 2,000 rows, four standard errors
    assert (x[::2, 1] == 0).mean() == pytest.approx(0.6, abs=0.045)
