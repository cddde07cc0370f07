"""Tables of states: the distribution of their rows, the scale of weights and biases, refusals."""

import networkx as nx
import numpy as np
import pytest

from scipy import stats
from tools.random_fields import exact_distribution

import bayesstruct as bs

from bayesstruct.fields.kernels import sampler as module
from bayesstruct.fields.kernels.potentials import Potentials

CASES = [
    ("ordinal", (2, 4, 3)),
    ("full", (3, 2, 2)),
    ("spin", 2),
    ("ising", 3),
    ("generalized_ising", 2),
    ("blume_capel", (2, 3, 4)),
]


def path():
    """Columns b and a, then a and c, depend on each other; the order of nodes is not sorted."""
    graph = nx.Graph()
    graph.add_nodes_from("bca")
    graph.add_edges_from([("a", "b"), ("c", "a")])
    return graph


def check_distribution(simulation):
    _, probability = exact_distribution(simulation.potentials, simulation.bias, simulation.weight)
    numbers = np.ravel_multi_index(simulation.data.values.T, simulation.potentials.states)
    counts = np.bincount(numbers, minlength=len(probability))
    # Rows are independent: Pearson's statistic has its chi-square distribution.
    assert stats.chisquare(counts, counts.sum() * probability).pvalue > 1e-4


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "states"), CASES)
def test_rows_have_the_distribution_of_the_parameters(kind, states):
    simulation = bs.simulate.pairwise_mrf(
        20_000, potentials=kind, states=states, graph=path(), random_seed=1
    )
    assert list(simulation.data.columns) == ["b", "c", "a"]
    check_distribution(simulation)
    edges = np.unique(simulation.potentials.edge_of_weight[simulation.weight != 0])
    assert edges.tolist() == [1, 2]  # of (b, c), (b, a), (c, a)


@pytest.mark.statistical
@pytest.mark.parametrize("sign", ["positive", "random"])
def test_rows_of_a_space_too_large_to_list(monkeypatch, sign):
    """Perfect sampling where all attract each other, else Gibbs sampling."""
    monkeypatch.setattr(module, "ENUMERATED", 1)
    for states in (2, (2, 4, 3)):
        check_distribution(
            bs.simulate.pairwise_mrf(
                20_000, states=states, graph=path(), sign=sign, sweeps=40, random_seed=2
            )
        )


@pytest.mark.statistical
def test_a_sampler_of_no_edge_draws_independent_columns(monkeypatch):
    graph = nx.empty_graph(3)
    one = bs.simulate.pairwise_mrf(50, graph=graph, random_seed=1)
    assert not one.weight.any()
    assert not one.bias.any()
    monkeypatch.setattr(module, "ENUMERATED", 1)
    check_distribution(bs.simulate.pairwise_mrf(5000, states=2, graph=graph, random_seed=1))


def test_binary_biases_are_those_of_the_ising_simulation():
    simulation = bs.simulate.pairwise_mrf(5, 6, states=2, graph="band", random_seed=1)
    i, j = simulation.potentials.ends
    sums = np.zeros(6)
    np.add.at(sums, i, simulation.weight)
    np.add.at(sums, j, simulation.weight)
    # sums in another order
    np.testing.assert_allclose(simulation.bias, -0.5 * sums, atol=1e-12)
    spin = bs.simulate.pairwise_mrf(5, 6, potentials="spin", graph="band", random_seed=1)
    assert not spin.bias.any()


@pytest.mark.parametrize("kind", ["ordinal", "blume_capel", "full"])
def test_no_state_is_favoured_among_uniform_neighbours(kind):
    simulation = bs.simulate.pairwise_mrf(5, states=(2, 3, 5), potentials=kind, random_seed=3)
    family = simulation.potentials
    unary = np.split(family.unary(simulation.bias), family.unary_start[1:-1])
    pair = np.split(family.pair(simulation.weight), family.pair_start[1:-1])
    for (i, j), cells in zip(zip(*family.ends, strict=True), pair, strict=True):
        table = cells.reshape(family.states[i], family.states[j])
        unary[i] = unary[i] + table.mean(axis=1)
        unary[j] = unary[j] + table.mean(axis=0)
    assert all(np.ptp(fields) < 1e-12 for fields in unary)  # rounding


def test_weights_are_those_of_extreme_states():
    simulation = bs.simulate.pairwise_mrf(
        10,
        states=(2, 3, 5),
        graph=nx.complete_graph(3),
        coupling=(0.5, 0.7),
        sign="positive",
        random_seed=1,
    )
    extreme = simulation.weight * [1 * 2, 1 * 4, 2 * 4]
    assert ((extreme >= 0.5) & (extreme <= 0.7)).all()


def test_a_family_as_an_object():
    family = Potentials("blume_capel", (3, 4), reference=1)
    simulation = bs.simulate.pairwise_mrf(20, potentials=family, random_seed=1)
    assert simulation.potentials == family
    assert repr(simulation).startswith("PairwiseMRFSimulation(20 x 2 table, ")


def test_the_same_seed_gives_the_same_table():
    a, b = (bs.simulate.pairwise_mrf(30, random_seed=2) for _ in range(2))
    assert a.data.equals(b.data)
    assert a.data.shape == (30, 10)
    assert a.potentials.states == (3,) * 10


def test_positive_couplings():
    theta = bs.simulate.ising(5, coupling=(0.5, 1.5), sign="positive", random_seed=1).couplings
    values = theta.values[np.triu_indices(10, 1)]
    values = values[values != 0]
    assert len(values) > 4
    assert ((values >= 0.5) & (values <= 1.5)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "at least 1"),
        ({"coupling": (2.0, 1.0)}, "from low to high"),
        ({"sign": "negative"}, "'random' or 'positive'"),
        ({"sign": "positive", "potentials": "full"}, "have no sign"),
        ({"graph": "rnadom"}, "Did you mean 'random'"),
        ({"potentials": "potts"}, "'potts' are unknown"),
        ({"potentials": "spin", "states": 3}, "two states"),
        ({"states": (2, 3)}, "2 numbers, and there are 4"),
        ({"states": 1}, "two states or more"),
        ({"potentials": Potentials("full", (2,) * 4), "states": 2}, "are those of the potentials"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        bs.simulate.pairwise_mrf(**{"n": 10, "p": 4} | options)
