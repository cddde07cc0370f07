"""Directed acyclic graphs: counts, orders, and draws against the enumeration of all 543 on 4."""

import networkx as nx
import numpy as np
import pytest

from scipy.stats import chi2
from tools.random_scores import RandomScore, enumerated, probabilities

from bayesstruct.networks.exact.posterior import prior_arc_probabilities
from bayesstruct.networks.kernels import prior_draws
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.networks.kernels.dags import (
    all_dags,
    is_acyclic,
    number_of_dags,
    topological_order,
    topological_orders,
)
from bayesstruct.networks.kernels.prior_chains import draw_modular_dag, draw_ordered_dag
from bayesstruct.networks.kernels.prior_draws import (
    draw_dag,
    draw_uniform_dags,
    log_prior_constant,
    mean_number_of_arcs,
)

NO_DATA = RandomScore(4, 0, scale=0.0)


def constrained(**options):
    allowed, required = np.ones((4, 4), bool), np.zeros((4, 4), bool)
    allowed[0, 1] = allowed[2, 0] = False
    required[3, 2] = True
    return ParentPrior(4, allowed=allowed, required=required, **options)


PRIORS = {
    "fair": ParentPrior(4, "fair"),
    "edge": ParentPrior(4, "edge", 0.2, max_parents=2),
    "matrix": ParentPrior(4, "edge", np.random.default_rng(3).uniform(0.1, 0.9, (4, 4))),
    "constrained": constrained(max_parents=2),
    "constrained fair": constrained(kind="fair"),
}


def codes(graphs):
    return graphs.reshape(len(graphs), -1).astype(np.int64) @ (1 << np.arange(16))


def fit(draws, expected):
    """Probability of a chi-square at least as large; graphs due less than 2.5 times are counted together."""
    graphs = all_dags(4)
    order = np.argsort(codes(graphs))
    place = order[np.searchsorted(codes(graphs)[order], codes(draws))]
    assert (codes(graphs)[place] == codes(draws)).all()
    counts = np.bincount(place, minlength=len(graphs))
    assert not counts[expected == 0].any()
    rare = len(draws) * expected < 2.5
    seen = np.append(counts[~rare], counts[rare].sum())
    due = len(draws) * np.append(expected[~rare], expected[rare].sum())
    seen, due = seen[due > 0], due[due > 0]
    return chi2.sf(((seen - due) ** 2 / due).sum(), len(due) - 1)


def test_counts():
    assert [number_of_dags(d) for d in range(7)] == [1, 1, 3, 25, 543, 29281, 3781503]
    for d in range(1, 6):
        graphs = all_dags(d)
        assert len(np.unique(graphs, axis=0)) == len(graphs) == number_of_dags(d)
    with pytest.raises(ValueError, match="1 to 5"):
        all_dags(6)
    with pytest.raises(ValueError, match="must not be negative"):
        number_of_dags(-1)


def test_graphs_on_four_variables_are_acyclic_and_have_all_their_orders():
    graphs = all_dags(4)
    assert all(nx.is_directed_acyclic_graph(nx.DiGraph(g)) for g in graphs)
    orders = topological_orders(graphs)
    assert orders.sum() == 24 * 2**6  # each of 4! orders allows each of 6 arcs or not
    some = graphs[::60]
    listed = [
        len(list(nx.all_topological_sorts(nx.from_numpy_array(g, create_using=nx.DiGraph))))
        for g in some
    ]
    assert orders[::60].tolist() == listed


def test_acyclicity_and_order_agree_with_networkx():
    rng = np.random.default_rng(4)
    found = set()
    for _ in range(200):
        graph = rng.random((6, 6)) < 0.25
        acyclic = nx.is_directed_acyclic_graph(nx.DiGraph(graph.astype(int)))
        assert is_acyclic(graph) == acyclic
        found.add(acyclic)
        if acyclic:
            place = np.argsort(topological_order(graph))
            assert all(place[j] < place[i] for j, i in np.argwhere(graph))
        else:
            with pytest.raises(ValueError, match="cycle"):
                topological_order(graph)
    assert found == {True, False}


@pytest.mark.statistical
def test_uniform_draws_are_uniform():
    # A right sampler fails once in a thousand seeds.
    assert fit(draw_uniform_dags(np.random.default_rng(5), 4, 12_000), np.full(543, 1 / 543)) > 1e-3


@pytest.mark.statistical
def test_draws_by_random_orders_are_not_uniform():
    rng = np.random.default_rng(6)
    draws = [draw_ordered_dag(rng, ParentPrior(4), rng.permutation(4)) for _ in range(1500)]
    assert fit(np.array(draws), np.full(543, 1 / 543)) < 1e-6


def test_sizes_of_layers_have_converged_where_it_is_assumed():
    def shares_of(n, before):
        ladder = prior_draws._layer_weights(before, n)
        shares = np.array([top * 2**100 // ladder[-1] for top in ladder[:20]], float) / 2.0**100
        return np.diff(shares, prepend=0.0)

    for before in (0, 1, 2, 4):
        np.testing.assert_allclose(shares_of(40, before), shares_of(60, before), atol=1e-15)


def test_large_uniform_draws():
    draws = draw_uniform_dags(np.random.default_rng(7), 100, 20)
    assert all(is_acyclic(graph) for graph in draws)
    # Half of the pairs within each graph, nearly: of 4950 pairs, 35 is one standard deviation.
    np.testing.assert_allclose(draws.sum(axis=(1, 2)), 2475 + 25, atol=250)
    again = draw_uniform_dags(np.random.default_rng(7), 100, 20)
    assert (draws == again).all()


@pytest.mark.statistical
@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("order", [False, True])
def test_draws_have_the_distribution_of_the_prior(name, order):
    _, _, weights = enumerated(NO_DATA, PRIORS[name], order)
    rng = np.random.default_rng(8)
    draws = np.array([draw_dag(rng, PRIORS[name], order=order) for _ in range(1500)])
    assert fit(draws, probabilities(weights)) > 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("name", PRIORS)
def test_the_chain_of_graphs_has_the_distribution_of_the_prior(name):
    _, _, weights = enumerated(NO_DATA, PRIORS[name])
    rng = np.random.default_rng(9)
    draws = np.array([draw_modular_dag(rng, PRIORS[name]) for _ in range(1500)])
    assert fit(draws, probabilities(weights)) > 1e-3


@pytest.mark.statistical
def test_a_chain_without_steps_has_the_distribution_of_orders():
    _, _, weights = enumerated(NO_DATA, PRIORS["fair"])
    rng = np.random.default_rng(10)
    draws = np.array([draw_modular_dag(rng, PRIORS["fair"], steps=0) for _ in range(1500)])
    assert fit(draws, probabilities(weights)) < 1e-6


@pytest.mark.parametrize("name", ["fair", "edge"])
@pytest.mark.parametrize("order", [False, True])
def test_constants_of_priors(name, order):
    _, _, weights = enumerated(NO_DATA, PRIORS[name], order)
    np.testing.assert_allclose(
        log_prior_constant(PRIORS[name], order=order), np.logaddexp.reduce(weights), rtol=1e-12
    )


def test_constant_of_the_uniform_prior_is_the_number_of_graphs():
    np.testing.assert_allclose(
        log_prior_constant(ParentPrior(25)), np.log(float(number_of_dags(25))), rtol=1e-12
    )
    with pytest.raises(ValueError, match="who the parents are"):
        log_prior_constant(PRIORS["matrix"])


@pytest.mark.parametrize("order", [False, True])
def test_large_draws_satisfy_constraints(order):
    d = 12
    allowed = np.triu(np.ones((d, d), bool))
    allowed[:4, :4] = True
    required = np.zeros((d, d), bool)
    required[3, 0] = required[0, 11] = True
    prior = ParentPrior(d, "fair", max_parents=3, allowed=allowed, required=required)
    for seed in range(5):
        graph = draw_dag(np.random.default_rng(seed), prior, order=order)
        assert is_acyclic(graph) and graph.sum(axis=0).max() <= 3
        assert (graph[required] == 1).all() and not graph[~allowed].any()


def test_parents_that_come_too_late_are_refused():
    with pytest.raises(ValueError, match="comes after it"):
        draw_ordered_dag(np.random.default_rng(0), PRIORS["constrained"], np.arange(4))


@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize("kind", ["uniform", "edge", "fair"])
def test_mean_number_of_arcs_is_that_of_the_sum_over_graphs(kind, order):
    chance = 0.2 if kind == "edge" else None
    for d, most in ((2, None), (6, None), (6, 2), (12, 3)):
        prior = ParentPrior(d, kind, chance, max_parents=most)
        exact = prior_arc_probabilities(prior, order=order).sum()
        assert np.isclose(mean_number_of_arcs(prior, order=order), exact, rtol=1e-10)
