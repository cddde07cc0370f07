"""Binary tables: the distribution of their rows, reproducibility, refusals."""

import networkx as nx
import numpy as np
import pytest

from scipy import stats
from tools.enumeration import binary_states

import bayesstruct as bs


@pytest.mark.statistical
def test_rows_have_the_distribution_of_the_model():
    simulation = bs.simulate.ising(20_000, 4, graph="band", random_seed=1)
    theta = simulation.couplings.values
    states = binary_states(4)
    upper = np.triu(theta, 1)
    logs = states @ np.diag(theta) + np.einsum("si,ij,sj->s", states, upper, states)
    probability = np.exp(logs) / np.exp(logs).sum()
    numbers = simulation.data.values @ (2 ** np.arange(4)[::-1])
    counts = np.bincount(numbers, minlength=16)
    # Rows are independent: Pearson's statistic has its chi-square distribution.
    assert stats.chisquare(counts, 20_000 * probability).pvalue > 1e-4


def test_couplings_follow_the_graph():
    graph = nx.Graph([("a", "b"), ("b", "c")])
    graph.add_node("alone")
    simulation = bs.simulate.ising(50, graph=graph, coupling=(0.5, 0.7), random_seed=1)
    theta = simulation.couplings
    assert list(simulation.data.columns) == ["a", "b", "c", "alone"]
    assert set(np.unique(simulation.data)) <= {0, 1}
    np.testing.assert_array_equal(theta, theta.T)
    assert theta.loc["a", "c"] == theta.loc["alone", "a"] == theta.loc["alone", "alone"] == 0
    assert 0.5 <= abs(theta.loc["a", "b"]) <= 0.7
    assert theta.loc["a", "a"] == -0.5 * theta.loc["a", "b"]
    assert repr(simulation) == "IsingSimulation(50 x 4 table, 2 edges)"


def test_the_same_seed_gives_the_same_table():
    a, b = (bs.simulate.ising(30, 5, random_seed=2).data for _ in range(2))
    assert a.equals(b)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "at least 1"),
        ({"sweeps": 0}, "at least 1"),
        ({"coupling": (2.0, 1.0)}, "from low to high"),
        ({"graph": "rnadom"}, "Did you mean 'random'"),
        ({"p": 1}, "at least 2"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        bs.simulate.ising(**{"n": 10, "p": 4} | options)
