"""The exact posterior over Gaussian graphs: small cases by hand, averages over prior draws, bad tables."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from scipy.special import expit
from scipy.stats import multivariate_normal

import bayesstruct as bs

from bayesstruct.data import TableError
from bayesstruct.precision.exact.graphs import graph_posterior
from bayesstruct.precision.kernels.g_wishart.draws import g_wishart

TABLE = bs.simulate.gaussian_graphical(
    30, graph=nx.cycle_graph(["a", "b", "c", "d"]), random_seed=4
).data


def test_two_columns_by_hand():
    correlations = np.array([[1.0, 0.4], [0.4, 1.0]])
    found = bs.exact.gaussian_graphs(cov=correlations, n=21, edge_probability=0.2)
    constant = bs.exact.g_wishart_log_constant
    scale = np.eye(2) + 20 * correlations
    edge, none = (
        float(constant(g, 23.0, scale)) - float(constant(g, 3.0))
        for g in (nx.path_graph(2), nx.empty_graph(2))
    )
    assert found.edge_probabilities.loc["x0", "x1"] == pytest.approx(
        expit(edge - none + np.log(0.25))
    )
    assert found.graphs["standard_error"].tolist() == [0.0, 0.0]


@pytest.mark.statistical
@pytest.mark.parametrize("graph", [nx.cycle_graph(4), nx.path_graph(4)])
def test_likelihood_of_a_graph_against_its_average_over_prior_draws(graph):
    rng = np.random.default_rng(1)
    adjacency = nx.to_numpy_array(graph) > 0
    rows = rng.standard_normal((3, 4))
    certain = adjacency.astype(float)
    found = graph_posterior("abcd", rows.T @ rows, 3, certain, 3.0, np.eye(4), 20_000, 1)
    likelihood = np.array(
        [
            np.exp(multivariate_normal(cov=np.linalg.inv(K)).logpdf(rows).sum())
            for K in (g_wishart(rng, 3.0, np.eye(4), adjacency) for _ in range(4000))
        ]
    )
    error = likelihood.std() / likelihood.mean() / np.sqrt(len(likelihood))
    difference = found.graphs["log_likelihood"].item() - np.log(likelihood.mean())
    assert abs(difference) < 4 * np.hypot(error, found.graphs["standard_error"].item())


def test_the_frame_holds_all_graphs_and_adds_up():
    found = bs.exact.gaussian_graphs(TABLE)
    assert len(found.graphs) == 64
    assert (~found.graphs["decomposable"]).sum() == 3
    assert (found.graphs["standard_error"] > 0).equals(~found.graphs["decomposable"])
    assert found.graphs["probability"].sum() == pytest.approx(1.0)
    with_edge = found.graphs["edges"].str.contains("a -- c")
    assert found.edge_probabilities.loc["c", "a"] == pytest.approx(
        found.graphs.loc[with_edge, "probability"].sum()
    )
    assert found.graphs["probability"].is_monotonic_decreasing


@pytest.mark.statistical
def test_reported_errors_cover_the_differences_between_seeds():
    many = [bs.exact.gaussian_graphs(TABLE, draws=500, random_seed=s) for s in range(60)]
    upper = np.triu_indices(4, 1)
    spread = np.std([m.edge_probabilities.to_numpy()[upper] for m in many], axis=0, ddof=1)
    reported = np.mean([m.standard_errors.to_numpy()[upper] for m in many], axis=0)
    uncertain = spread > 1e-5  # that of a nearly certain edge is skewed, and of no interest
    assert uncertain.sum() == 5
    # A standard deviation of 60 has a relative error of .09.
    assert (abs(spread / reported - 1.0) < 0.36)[uncertain].all()


def test_required_and_forbidden_edges_leave_the_other_graphs():
    found = bs.exact.gaussian_graphs(
        TABLE, required=[("a", "c")], forbidden=[("b", "d"), ("a", "b")]
    )
    assert len(found.graphs) == 8
    assert found.edge_probabilities.loc["a", "c"] == pytest.approx(1.0)
    assert found.edge_probabilities.loc["b", "d"] == 0.0


def test_a_table_and_its_covariances_give_the_same():
    rows = bs.exact.gaussian_graphs(TABLE)
    matrix = bs.exact.gaussian_graphs(cov=TABLE.cov(), n=len(TABLE))
    np.testing.assert_allclose(rows.edge_probabilities, matrix.edge_probabilities)
    assert rows.log_evidence == pytest.approx(matrix.log_evidence)


def test_the_order_of_the_columns_makes_no_difference_but_for_the_reported_error():
    one = bs.exact.gaussian_graphs(TABLE)
    other = bs.exact.gaussian_graphs(TABLE[["c", "a", "d", "b"]])
    same = other.edge_probabilities.loc[list("abcd"), list("abcd")]
    bound = (
        5 * (one.standard_errors + other.standard_errors.loc[list("abcd"), list("abcd")]) + 1e-12
    )
    assert ((one.edge_probabilities - same).abs() <= bound).all(axis=None)


def test_wrong_tables_are_refused():
    six = pd.DataFrame(np.random.default_rng(0).standard_normal((20, 6)))
    with pytest.raises(TableError, match="at most 5 columns"):
        bs.exact.gaussian_graphs(six)
    with pytest.raises(TableError, match="without missing values"):
        bs.exact.gaussian_graphs(TABLE.mask(np.eye(len(TABLE), 4) > 0))
