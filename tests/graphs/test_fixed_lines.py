"""Required and excluded edges and arcs are told from free ones, however near 0 or 1 these are."""

import numpy as np
import pytest
import xarray as xr

from tools.dags import all_dags, dag_posterior

import bayesstruct as bs

from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.graphs.records import with_fixed
from bayesstruct.networks.kernels.dag_priors import ParentPrior
from bayesstruct.networks.priors.implied import implied_arc_probability
from bayesstruct.precision.priors.implied import implied_edge_probability

DAGS = all_dags(4)


def arcs(*pairs, d=4):
    out = np.zeros((d, d), bool)
    for parent, child in pairs:
        out[parent, child] = True
    return out


CONSTRAINTS = {
    "one required": {"required": arcs((0, 1))},
    "a required chain": {"required": arcs((0, 1), (1, 2))},
    "no room for another parent": {"required": arcs((0, 3), (1, 3)), "max_parents": 2},
    "forbidden": {"allowed": ~arcs((2, 0), (2, 1))},
    "no parents": {"max_parents": 0},
    "nearly required": {"kind": "edge", "probability": np.where(arcs((0, 1)), 1 - 1e-15, 1e-20)},
}


@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize("options", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_arcs_are_fixed_where_all_graphs_agree(options, order):
    prior = ParentPrior(4, **options)
    terms = np.array([sum(prior.local(i, np.flatnonzero(g[:, i])) for i in range(4)) for g in DAGS])
    graphs = DAGS[np.isfinite(terms)]
    implied = implied_arc_probability(prior, order=order)
    np.testing.assert_array_equal(implied == 1, graphs.all(axis=0))
    np.testing.assert_array_equal(implied == 0, ~graphs.any(axis=0))
    if not order:
        weight = np.exp(terms[np.isfinite(terms)])
        exact = np.tensordot(weight / weight.sum(), graphs, 1)
        np.testing.assert_allclose(implied, exact, atol=1e-12)


def test_arcs_that_no_draw_has_are_not_excluded():
    probability = np.where(arcs((0, 1), d=13), 1e-9, 0.1)
    probability[2, 3], probability[4, 5] = 1.0, 0.0
    implied = implied_arc_probability(ParentPrior(13, "edge", probability))
    assert 0 < implied[0, 1] < 0.01
    assert implied[2, 3] == 1
    assert implied[3, 2] == implied[4, 5] == 0
    off = ~np.eye(13, dtype=bool)
    assert np.isin(implied[off], (0, 1)).sum() == 3


def test_improbable_edges_of_a_precision_matrix_are_not_excluded():
    nominal = np.full((3, 3), 1e-9)
    nominal[0, 1] = nominal[1, 0] = 1.0
    nominal[0, 2] = nominal[2, 0] = 0.0
    required, excluded, free = implied_edge_probability(3, nominal)
    assert (required, excluded) == (1, 0)
    assert 0 < free <= 1e-6


def test_a_required_arc_has_no_bayes_factor_and_nor_has_its_adjacency():
    prior = ParentPrior(4, required=arcs((0, 1)))
    target, source = np.nonzero(~np.eye(4, dtype=bool))
    tree = dag_posterior(np.broadcast_to(arcs((0, 1), (2, 3)), (2, 50, 4, 4)))
    implied = implied_arc_probability(prior)[source, target]
    constants = tree["constant_data"].to_dataset()
    constants = constants.assign(arc_prior=("ordered_pair", implied))
    tree = xr.DataTree.from_dict({"posterior": tree["posterior"].ds, "constant_data": constants})
    table = bs.arc_table(tree).set_index(["source", "target"])
    fixed = [("v0", "v1"), ("v1", "v0")]
    assert table.bayes_factor[table.bayes_factor.isna()].index.tolist() == fixed
    pairs = read(tree).adjacencies()
    known = (pairs["source"] == 0) & (pairs["target"] == 1)
    np.testing.assert_array_equal(np.isnan(pairs["factor"]), known)
    assert pairs["prior"][known] == [1.0]


def test_a_network_with_a_required_arc_records_it_as_certain():
    x = np.random.default_rng(0).standard_normal((40, 11))
    model = bs.models.bayesian_network(x, required=[("x0", "x1")])
    labels = list(model.coords["ordered_pair"])
    prior = model["arc_prior"].data
    assert prior[labels.index("x0 -> x1")] == 1
    assert prior[labels.index("x1 -> x0")] == 0
    assert np.isin(prior, (0, 1)).sum() == 2


def test_probabilities_of_free_lines_stay_inside():
    found = with_fixed([1 - 1e-16, 0.0, 1.0, 1.0, 0.3], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0])
    assert found[:2].tolist() == [1, 0]
    assert 0 < found[2] < 1
    assert found[4] == 0.3
