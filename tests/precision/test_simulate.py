"""Simulated tables have the distribution that is promised."""

import networkx as nx
import numpy as np
import pytest

from scipy import stats

from bayesstruct.data import Table
from bayesstruct.precision.kernels.g_wishart.draws import g_wishart
from bayesstruct.simulate import gaussian_graphical, grouped_gaussian_graphical

GRAPHS = ["random", "cluster", "scale-free", "hub", "band", "grid"]


def _scale(p):
    root = np.random.default_rng(7).normal(size=(p, p))
    return root @ root.T + np.eye(p)


def _half_traces(graph, b, scale, draws, sweeps=20):
    rng = np.random.default_rng(11)
    adjacency = nx.to_numpy_array(graph) > 0
    return np.array(
        [
            np.sum(g_wishart(rng, b, scale, adjacency, sweeps=sweeps) * scale) / 2
            for _ in range(draws)
        ]
    )


def _trace_distribution(graph, b):
    """tr(K D) / 2 is Gamma, because the normalising constant is homogeneous in D."""
    p = len(graph)
    return stats.gamma(p * (b - 2) / 2 + p + graph.number_of_edges())


@pytest.mark.statistical
@pytest.mark.parametrize(
    "graph",
    [nx.empty_graph(3), nx.path_graph(4), nx.complete_graph(4), nx.lollipop_graph(3, 2)],
    ids=["empty", "chain", "complete", "lollipop"],
)
def test_distribution_on_decomposable_graphs(graph):
    traces = _half_traces(graph, 3.5, _scale(len(graph)), 2000)
    expected = _trace_distribution(graph, 3.5)
    assert abs(traces.mean() - expected.mean()) < 4 * expected.std() / np.sqrt(traces.size)
    assert stats.kstest(traces, expected.cdf).pvalue > 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("graph", "draws"),
    [(nx.cycle_graph(4), 400), (nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4)), 120)],
    ids=["cycle", "grid"],
)
def test_distribution_on_other_graphs_after_ten_sweeps(graph, draws):
    traces = _half_traces(graph, 3.0, _scale(len(graph)), draws, sweeps=10)
    expected = _trace_distribution(graph, 3.0)
    assert abs(traces.mean() - expected.mean()) < 4 * expected.std() / np.sqrt(draws)
    assert stats.kstest(traces, expected.cdf).pvalue > 1e-3


@pytest.mark.statistical
def test_nodes_without_an_edge_are_independent():
    # The direct sampler of Lenkoski (2013) gives a correlation of .17 here.
    rng, adjacency = np.random.default_rng(3), np.zeros((2, 2), dtype=bool)
    draws = np.array([np.diag(g_wishart(rng, 3.0, np.eye(2), adjacency)) for _ in range(3000)])
    assert abs(np.corrcoef(draws.T)[0, 1]) < 4 / np.sqrt(3000)
    assert stats.kstest(draws[:, 0], stats.chi2(3).cdf).pvalue > 1e-3


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("p", [2, 7, 40])
def test_precision_has_the_zeros_of_the_graph(graph, p):
    simulation = gaussian_graphical(5, p, graph=graph, random_seed=4)
    precision = simulation.precision.to_numpy()
    names = [f"x{i}" for i in range(p)]
    assert list(simulation.graph) == list(simulation.data) == list(simulation.precision) == names
    edges = nx.to_numpy_array(simulation.graph) > 0
    np.testing.assert_array_equal(precision != 0, edges | np.eye(p, dtype=bool))
    np.testing.assert_array_equal(precision, precision.T)
    assert np.linalg.eigvalsh(precision).min() > 0
    partial = simulation.partial_correlations.to_numpy()
    np.testing.assert_array_equal(np.diag(partial), 1)
    np.testing.assert_array_equal(partial != 0, precision != 0)
    assert (np.abs(partial) <= 1).all()
    i, j = np.argwhere(edges)[0] if edges.any() else (0, 0)
    expected = -precision[i, j] / np.sqrt(precision[i, i] * precision[j, j]) if i != j else 1
    np.testing.assert_allclose(partial[i, j], expected)


def test_graphs():
    def make(graph, p=40, **options):
        return gaussian_graphical(1, p, graph=graph, random_seed=4, **options).graph

    assert nx.is_tree(make("scale-free"))
    assert [len(part) for part in nx.connected_components(make("hub"))] == [20, 20]
    assert make("hub").number_of_edges() == 38
    cluster = make("cluster", edge_probability=1)
    assert [len(part) for part in nx.connected_components(cluster)] == [20, 20]
    assert make("band", 5).number_of_edges() == 7
    grid = make("grid", 9)
    assert nx.is_isomorphic(grid, nx.grid_2d_graph(3, 3))
    assert make("random", edge_probability=0).number_of_edges() == 0
    assert make("random", edge_probability=1, p=6).number_of_edges() == 15
    share = nx.density(make("random", 200))
    assert abs(share - 0.01) < 4 * np.sqrt(0.01 * 0.99 / 19_900)


def test_graph_of_the_user():
    graph = nx.Graph([("Raf", "Mek"), ("Mek", "Erk")])
    simulation = gaussian_graphical(4, graph=graph, random_seed=1)
    assert list(simulation.data) == ["Raf", "Mek", "Erk"]
    assert simulation.precision.loc["Raf", "Erk"] == 0
    assert nx.utils.graphs_equal(simulation.graph, graph)


def test_rows_have_the_inverse_as_covariance():
    n = 20_000
    simulation = gaussian_graphical(n, 6, degrees_of_freedom=8, random_seed=5)
    covariance = np.linalg.inv(simulation.precision)
    variances = np.diag(covariance)
    # Standard error of a sample covariance of Gaussian rows.
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / n)
    assert (np.abs(np.cov(simulation.data.T) - covariance) < 4.5 * error).all()


def test_seed():
    first, again, other = (gaussian_graphical(5, missing=0.1, random_seed=s) for s in (1, 1, 2))
    assert first.data.equals(again.data)
    assert first.precision.equals(again.precision)
    assert not first.precision.equals(other.precision)


def test_missing_values():
    data = gaussian_graphical(100, 8, missing=0.15, random_seed=1).data
    assert data.isna().to_numpy().mean() == 0.15
    assert data.notna().any(axis=1).all()
    assert Table.continuous(data).missing_share == 0.15


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"graph": "scalefree"}, "'scalefree'.*'scale-free'.*Available"),
        ({"n": 0}, "n must be at least 1"),
        ({"p": 1}, "at least 2 variables"),
        ({"edge_probability": 1.5}, "between 0 and 1, got 1.5"),
        ({"edge_probability": 0.2, "graph": "band"}, "'random' and 'cluster'.*leave it out"),
        ({"degrees_of_freedom": 2}, "more than 2"),
        ({"missing": 1.0}, "share of values"),
        ({"missing": 0.95}, "without any observed value.*0.9 with 10"),
        ({"graph": nx.DiGraph([(0, 1)])}, "undirected.*not a DiGraph"),
        ({"graph": nx.Graph([(0, 0), (0, 1)])}, "linked to itself: remove"),
        ({"graph": nx.empty_graph(1)}, "at least 2 nodes"),
        ({"graph": nx.Graph([(1, "1")])}, "rename one"),
    ],
)
def test_errors(options, said):
    with pytest.raises(ValueError, match=said):
        gaussian_graphical(**({"n": 10, "random_seed": 1} | options))


def test_groups_have_the_graph_and_the_differences_that_are_told():
    sizes = [30_000, 20_000, 25_000]
    simulation = grouped_gaussian_graphical(
        sizes, p=5, graph="band", groups=3, difference_probability=0.5, random_seed=3
    )
    graph, data = simulation.graph, simulation.data
    assert data["group"].value_counts().to_dict() == dict(
        zip(["g0", "g1", "g2"], sizes, strict=True)
    )
    matrices = np.array([own.to_numpy() for own in simulation.precision.values()])
    some = (matrices != 0).any(axis=0) & ~np.eye(5, dtype=bool)
    np.testing.assert_array_equal(some, nx.to_numpy_array(graph, weight=None) > 0)
    different = nx.to_numpy_array(graph, weight="different") > 0
    np.testing.assert_array_equal(np.ptp(matrices, axis=0) > 0, different)
    assert 0 < len(simulation.differences) < graph.number_of_edges()
    for label, own in simulation.precision.items():
        found = np.linalg.inv(data.loc[data["group"] == label, [*graph]].cov())
        assert np.linalg.eigvalsh(own).min() > 0.19
        # Elements near 1 have standard errors of about .01.
        np.testing.assert_allclose(found, own, atol=0.05)
    assert grouped_gaussian_graphical(9, missing=0.2, random_seed=0).data.isna().to_numpy().any()
    for wrong in ({"n": [3, 4, 5]}, {"groups": 1}, {"strength": (0, 1)}, {"p": 1}):
        with pytest.raises(ValueError):
            grouped_gaussian_graphical(**{"n": 9} | wrong)
