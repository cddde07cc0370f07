"""The G-Wishart distribution and independent edges: densities, draws, refusals."""

import networkx as nx
import numpy as np
import pymc as pm
import pytest

from scipy import stats

import bayesstruct as bs

from bayesstruct.distributions import IndependentEdges
from bayesstruct.precision.kernels.g_wishart.draws import g_wishart
from bayesstruct.precision.kernels.g_wishart.matrix_sweep import matrix_sweep

CYCLE, STAR = nx.cycle_graph(4), nx.star_graph(3)
SCALE = np.array(
    [[2.0, 0.5, -0.3, 0.1], [0.5, 1.5, 0.4, 0.2], [-0.3, 0.4, 1.2, -0.5], [0.1, 0.2, -0.5, 1.0]]
)


def logp(graph, value, *args):
    return pm.logp(bs.GWishart.dist(graph, *args), value).eval(mode="FAST_COMPILE").item()


@pytest.mark.parametrize("graph", [CYCLE, STAR, nx.complete_graph(4), nx.empty_graph(4)], ids=str)
def test_density_is_normalised_by_the_constant(graph):
    value = g_wishart(np.random.default_rng(1), 4.0, SCALE, nx.to_numpy_array(graph) > 0)
    constant = bs.exact.g_wishart_log_constant(graph, 4.0, SCALE).value
    expected = np.linalg.slogdet(value)[1] - 0.5 * np.sum(value * SCALE) - constant
    assert logp(graph, value, 4.0, SCALE) == pytest.approx(expected)


def test_density_of_a_complete_graph_is_that_of_a_wishart_distribution():
    value = np.array([[2.0, 0.3], [0.3, 1.0]])
    found = logp(nx.complete_graph(2), value, 3.0, SCALE[:2, :2])
    assert found == pytest.approx(stats.wishart(4, np.linalg.inv(SCALE[:2, :2])).logpdf(value))


def test_density_is_zero_off_the_graph_and_off_the_cone():
    off = np.eye(4)
    off[0, 2] = off[2, 0] = 0.1
    assert logp(CYCLE, np.eye(4)) > -np.inf
    assert logp(CYCLE, off) == -np.inf
    wide = np.eye(4)
    wide[0, 1] = wide[1, 0] = 1.5
    assert logp(CYCLE, wide) == -np.inf


@pytest.mark.statistical
@pytest.mark.parametrize(("freedom", "scale"), [(3.0, np.eye(4)), (3.0, SCALE), (12.0, 10 * SCALE)])
def test_draws_on_a_four_cycle_against_a_long_gibbs_run(freedom, scale):
    adjacency = nx.to_numpy_array(CYCLE).astype(np.int8)
    rng = np.random.default_rng(2)
    precision = np.diag(freedom / np.diag(scale))
    covariance, near, work = np.linalg.inv(precision), np.zeros(4, np.int64), np.zeros((7, 4))
    chain = np.empty((20_000, 4, 4))
    for t in range(-100, len(chain)):
        matrix_sweep(rng, precision, covariance, adjacency, scale, freedom, near, work)
        chain[t] = precision
    drawn = np.array([g_wishart(rng, freedom, scale, adjacency > 0) for _ in range(4_000)])

    def statistics(k):
        u = k[:, [0, 1, 2, 0], [1, 2, 3, 3]]
        d = np.log(np.diagonal(k, axis1=1, axis2=2))
        return np.column_stack(
            [u, np.tanh(u) ** 2, d, d**2, np.tanh(u[:, 0] * u[:, 2]), np.linalg.slogdet(k)[1]]
        )

    a, b = statistics(chain), statistics(drawn)
    means = a.reshape(100, 200, -1).mean(axis=1)
    z = (a.mean(axis=0) - b.mean(axis=0)) / np.hypot(
        means.std(axis=0) / 10, b.std(axis=0) / np.sqrt(len(b))
    )
    assert np.abs(z).max() < 4.5, z


@pytest.mark.statistical
def test_row_by_row_rejection_on_a_grid():
    # Subtrees that are drawn anew with a refused row only: the trace has a gamma distribution, and corners are alike.
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3))
    rng, adjacency = np.random.default_rng(4), nx.to_numpy_array(graph) > 0
    draws = np.array([g_wishart(rng, 3.0, np.eye(9), adjacency) for _ in range(3_000)])
    half = 0.5 * np.trace(draws, axis1=1, axis2=2)
    assert stats.kstest(half, stats.gamma(13.5 + 12).cdf).pvalue > 1e-3
    corners = np.log(draws[:, [0, 2, 6, 8], [0, 2, 6, 8]])
    between = corners - corners.mean(axis=1, keepdims=True)
    assert np.abs(between.mean(axis=0) / (between.std(axis=0) / np.sqrt(3_000))).max() < 4


@pytest.mark.statistical
def test_gibbs_sweeps_where_rejection_gives_up():
    adjacency = nx.to_numpy_array(CYCLE) > 0
    rng = np.random.default_rng(6)
    half = [
        0.5 * np.sum(g_wishart(rng, 3.0, SCALE, adjacency, tries=0) * SCALE) for _ in range(150)
    ]
    assert stats.kstest(half, stats.gamma(10).cdf).pvalue > 1e-3


def test_draws_in_a_model_have_the_zeros_of_their_graph():
    with pm.Model():
        graph = IndependentEdges("graph", 5, 0.4)
        K = bs.GWishart("K", graph)
    edges, matrices = pm.draw([graph, K], 20, random_seed=1)
    upper = np.triu_indices(5, 1)
    np.testing.assert_array_equal(matrices[:, *upper] != 0, edges == 1)
    known = pm.draw(bs.GWishart.dist(CYCLE, 3.0, 2.0), 3, random_seed=1)
    assert known.shape == (3, 4, 4)
    assert (known[:, 0, 2] == 0).all()


def test_independent_edges_are_bernoulli():
    chances = np.array([[0.5, 0.2, 1.0], [0.2, 0.5, 0.7], [1.0, 0.7, 0.5]])
    edges = IndependentEdges.dist(3, chances)
    value = np.array([0, 1, 1])
    assert pm.logp(edges, value).eval(mode="FAST_COMPILE") == pytest.approx(np.log(0.8 * 0.7))
    assert pm.logp(edges, np.array([0, 0, 1])).eval(mode="FAST_COMPILE") == -np.inf
    assert pm.logp(edges, np.array([0, 2, 1])).eval(mode="FAST_COMPILE") == -np.inf
    mean = pm.draw(edges, 2_000, random_seed=1).mean(axis=0)
    np.testing.assert_allclose(mean, [0.2, 1.0, 0.7], atol=0.05)


def test_random_degrees_of_freedom_need_a_decomposable_graph():
    with pm.Model() as model:
        b = pm.Uniform("b", 2.5, 9.0)
        bs.GWishart("K", STAR, b)
        with pytest.raises(
            ValueError, match="`degrees_of_freedom` must be a number: the graph is not"
        ):
            bs.GWishart("L", CYCLE, b)
        with pytest.raises(
            ValueError, match="`degrees_of_freedom` must be a number: the graph is random"
        ):
            bs.GWishart("M", IndependentEdges.dist(3), b)
    point = {"b_interval__": 0.3, "K": np.eye(4) + 0.2 * (nx.to_numpy_array(STAR))}
    freedom = 2.5 + 6.5 / (1 + np.exp(-0.3))
    expected = (freedom - 2) / 2 * np.linalg.slogdet(point["K"])[1] - 2
    expected -= bs.exact.g_wishart_log_constant(STAR, freedom).value
    found = model.compile_fn(
        model.logp(vars=[model["K"]], sum=False)[0],
        inputs=model.value_vars,
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )(point)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((nx.DiGraph([(0, 1)]),), "directed"),
        ((CYCLE, 2.0), "degrees_of_freedom"),
        ((CYCLE, 3.0, -np.eye(4)), "positive definite"),
        ((CYCLE, 3.0, np.eye(3)), "shape"),
    ],
)
def test_wrong_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        bs.GWishart.dist(*arguments)


def test_probabilities_of_another_size_are_refused():
    with pytest.raises(ValueError, match="a number or a symmetric 5 x 5 matrix"):
        bs.distributions.IndependentEdges.dist(5, np.full((3, 3), 0.5))


def test_random_graphs_are_refused_where_the_sampler_cannot_draw_them():
    with pytest.raises(TypeError, match="IndependentEdges"):
        bs.GWishart.dist(pm.Bernoulli.dist(0.5, shape=3))
    with pytest.raises(ValueError, match="`scale` must be diagonal"):
        bs.GWishart.dist(IndependentEdges.dist(4), 3.0, SCALE)
    with pytest.raises(ValueError, match="between 0 and 1"):
        IndependentEdges.dist(3, 1.2)
    with pytest.raises(ValueError, match="symmetric 3 x 3"):
        IndependentEdges.dist(3, np.triu(np.full((3, 3), 0.3)))
