"""Tables from Bayesian networks: the distribution of their rows, graphs, interventions, refusals."""

import itertools

import networkx as nx
import numpy as np
import pytest

from scipy import stats
from scipy.special import expit

import bayesstruct as bs

DIAMOND = nx.DiGraph([("a", "c"), ("a", "b"), ("b", "d"), ("c", "d")])


def simulate(n, **options):
    return bs.simulate.bayesian_network(n, **options)


def test_random_graphs_are_acyclic_sparse_and_in_no_order():
    graphs = [simulate(1, p=30, random_seed=seed).graph for seed in range(40)]
    assert all(nx.is_directed_acyclic_graph(graph) for graph in graphs)
    assert max(degree for graph in graphs for _, degree in graph.in_degree) == 5
    # 2 arcs a node, less what the limit takes away: about 57 of 60 a graph, with a standard error
    # of 1.
    arcs = np.mean([graph.number_of_edges() for graph in graphs])
    assert 50 < arcs < 62
    first = sum(int(a[1:]) < int(b[1:]) for graph in graphs for a, b in graph.edges)
    assert 0.4 < first / (40 * arcs) < 0.6
    unlimited = simulate(1, p=6, expected_neighbours=5, max_parents=9, random_seed=1).graph
    assert unlimited.number_of_edges() == 15


def test_gaussian_rows_have_the_covariance_of_the_model():
    found = simulate(40_000, graph=DIAMOND, noise=0.5, random_seed=2)
    weights = found.coefficients.to_numpy()
    assert (weights != 0).sum() == 4 and weights[3, 1] != 0  # row d, column b: children are rows
    assert list(found.coefficients.index) == list(found.data.columns) == list(DIAMOND.nodes)
    size = np.abs(weights[weights != 0])
    assert (size >= 0.25).all() and (size <= 1).all()
    factor = np.linalg.inv(np.eye(4) - weights)
    np.testing.assert_allclose(found.data.cov(), 0.25 * factor @ factor.T, atol=0.03)
    assert found.noise == 0.5 and not found.interventions.to_numpy().any()


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["logistic", "discrete"])
def test_states_have_the_distribution_of_the_model(kind):
    found = simulate(20_000, graph=DIAMOND, kind=kind, states=2, random_seed=3)
    names = list(found.data.columns)
    counts = found.data.value_counts()
    expected, observed = [], []
    for row in itertools.product([0, 1], repeat=4):
        state = dict(zip(names, row, strict=True))
        chances = [conditional(found, kind, state, name) for name in names]
        expected.append(20_000 * np.prod(chances))
        observed.append(counts.get(row, 0))
    # Rows are independent: Pearson's statistic has its chi-square distribution.
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def conditional(found, kind, state, name):
    """Probability of the state of one variable given its parents."""
    if kind == "discrete":
        parents = [other for other in found.data.columns if found.graph.has_edge(other, name)]
        return found.tables[name][tuple(state[other] for other in parents)][state[name]]
    spins = np.array([2 * state[other] - 1 for other in found.data.columns])
    return expit((2 * state[name] - 1) * (found.coefficients.loc[name] @ spins))


def test_logistic_weights_are_those_of_the_thesis():
    found = simulate(1, p=60, kind="logistic", random_seed=4).coefficients.to_numpy()
    size = np.abs(found[found != 0])
    # |sign + N / 4| has mean 1 and standard deviation 1/4, the standard error of 100 is 0.025.
    assert len(size) > 90
    assert abs(size.mean() - 1) < 0.1 and abs(size.std() - 0.25) < 0.1


def test_numbers_of_states():
    found = simulate(500, p=12, kind="discrete", states=(2, 4), random_seed=5)
    sizes = {table.shape[-1] for table in found.tables.values()}
    assert sizes == {2, 3, 4}
    for name, table in found.tables.items():
        assert table.ndim == found.graph.in_degree(name) + 1
        np.testing.assert_allclose(table.sum(axis=-1), 1)
        assert found.data[name].max() < table.shape[-1]
    assert found.coefficients is None and found.noise is None


@pytest.mark.parametrize("kind", ["gaussian", "logistic", "discrete"])
def test_interventions_cut_off_the_parents(kind):
    graph = nx.DiGraph([("a", "b")])
    found = simulate(30_000, graph=graph, kind=kind, interventions=2 / 3, random_seed=6)
    mask = found.interventions
    assert mask.to_numpy().sum(axis=1).max() == 1
    np.testing.assert_allclose(mask.mean(), 1 / 3, atol=0.015)  # 5 standard errors
    together = [found.data[mask["b"] == given].corr().loc["a", "b"] for given in (True, False)]
    assert abs(together[0]) < 0.05 < abs(together[1])  # 5 standard errors of 10,000 rows
    share = found.data.loc[mask["b"], "b"].value_counts(normalize=True)
    if kind != "gaussian":
        np.testing.assert_allclose(share, 1 / len(share), atol=0.03)
    assert set(found.graph.edges) == {("a", "b")}


def test_the_same_seed_gives_the_same_table():
    a, b = (simulate(20, p=5, kind="discrete", random_seed=7) for _ in range(2))
    assert a.data.equals(b.data) and set(a.graph.edges) == set(b.graph.edges)
    assert repr(simulate(20, graph=DIAMOND)) == "BayesianNetworkSimulation(20 x 4 table, 4 arcs)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "at least 1 row"),
        ({"p": 1}, "at least 2"),
        ({"kind": "poisson"}, "'gaussian', 'logistic' or 'discrete'"),
        ({"weights": (1.0, 0.5)}, "from low to high"),
        ({"weights": (0.5, 1.0), "kind": "discrete"}, "leave them out"),
        ({"noise": 0.0}, "standard deviation"),
        ({"interventions": 1.5}, "probability"),
        ({"states": 1, "kind": "discrete"}, "2 or more"),
        ({"max_parents": -1}, "not be negative"),
        ({"graph": nx.DiGraph([("a", "b"), ("b", "a")])}, "a -> b -> a"),
        ({"graph": nx.DiGraph([(1, "1")])}, "same name"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        simulate(**{"n": 10, "p": 4} | options)


def test_undirected_graphs_are_refused():
    with pytest.raises(TypeError, match=r"networkx\.DiGraph"):
        simulate(5, graph=nx.path_graph(3))
