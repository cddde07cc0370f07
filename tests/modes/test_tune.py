"""bs.tune: each criterion against its definition, and a table with a known graph."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from scipy import stats
from sklearn.covariance import empirical_covariance, log_likelihood

import bayesstruct as bs

P, N = 6, 120


def chain_table(n=N, seed=0):
    """Columns that form a chain, in units of their own."""
    rng = np.random.default_rng(seed)
    precision = np.eye(P) + 0.45 * (np.eye(P, k=1) + np.eye(P, k=-1))
    rows = rng.normal(size=(n, P)) @ np.linalg.cholesky(np.linalg.inv(precision)).T
    return pd.DataFrame(3.0 + 2.0 * rows, columns=[*"abcdef"])


TRUTH = np.array([j == i + 1 for i in range(P) for j in range(i + 1, P)])


def standardized(table):
    return ((table - table.mean()) / table.std()).to_numpy()


def constrained(covariance, edges):
    """Maximum likelihood with zeros off a graph, by iterative proportional scaling over cliques."""
    graph = nx.Graph()
    graph.add_nodes_from(range(P))
    upper = np.triu_indices(P, 1)
    graph.add_edges_from(zip(upper[0][edges], upper[1][edges], strict=True))
    K = np.diag(1 / np.diag(covariance))
    for _ in range(300):
        for clique in nx.find_cliques(graph):
            block = np.ix_(clique, clique)
            K[block] += np.linalg.inv(covariance[block]) - np.linalg.inv(np.linalg.inv(K)[block])
    return K


@pytest.mark.chain
@pytest.mark.parametrize("prior", ["laplace", "spike_slab"])
def test_ebic_by_hand(prior):
    table = chain_table()
    grid = {"rate": [60.0, 20.0, 5.0]} if prior == "laplace" else {"spike_scale": [0.02, 0.1]}
    tuning = bs.tune("gaussian_graphical", table, grid, prior=prior, gamma=0.7)
    covariance = empirical_covariance(standardized(table))
    for setting, row in zip(next(iter(grid.values())), tuning.table.itertuples(), strict=True):
        with bs.models.gaussian_graphical(table, prior=prior, **{next(iter(grid)): setting}):
            mode = bs.find_MAP()
        weight = mode["weight"]
        edges = np.abs(weight) > 1e-9 if prior == "laplace" else mode["edge"] == 1
        assert row.edges == edges.sum()
        K = constrained(covariance, edges)
        expected = -2 * N * log_likelihood(covariance, K)
        expected += edges.sum() * (np.log(N) + 4 * 0.7 * np.log(P))
        assert row.ebic == pytest.approx(expected, rel=1e-8)
    assert tuning.table["best"].sum() == 1
    best = tuning.table.loc[tuning.table["best"]].iloc[0]
    assert best["ebic"] == tuning.table["ebic"].min()
    assert tuning.best == {name: best[name] for name in grid}


@pytest.mark.parametrize(
    "options", [{"criterion": "ebic"}, {"criterion": "stability", "false_edges": 3.5}]
)
def test_the_graph_of_a_chain_is_found(options):
    table = chain_table(600)
    tuning = bs.tune(bs.models.gaussian_graphical, table, prior="laplace", random_seed=1, **options)
    with bs.models.gaussian_graphical(table, prior="laplace", **tuning.best):
        weight = bs.find_MAP()["weight"]
    np.testing.assert_array_equal(np.abs(weight) > 1e-9, TRUTH)


def test_a_bound_that_leaves_no_edge_is_remarked_upon():
    with pytest.warns(bs.TableWarning, match="raise `false_edges`"):
        tuning = bs.tune(
            "gaussian_graphical",
            chain_table(600),
            prior="laplace",
            criterion="stability",
            random_seed=1,
        )
    assert tuning.table.loc[tuning.table["best"], "stable"].item() == 0


def test_left_out_rows_one_by_one():
    table = chain_table(30)
    grid = {"rate": [8.0, 2.0], "diagonal_rate": [1.0, 0.2]}
    tuning = bs.tune("gaussian_graphical", table, grid, prior="laplace", criterion="loo")
    assert len(tuning.table) == 4
    rows = standardized(table)
    for row in tuning.table.itertuples():
        total = 0.0
        for i in range(30):
            others = np.delete(rows, i, axis=0)
            share = 29 / 30  # the log-likelihood of 29 rows weighs that much less
            options = {"rate": row.rate * share, "diagonal_rate": row.diagonal_rate * share}
            K = mode_of(others, **options)
            law = stats.multivariate_normal(others.mean(axis=0), np.linalg.inv(K))
            total += law.logpdf(rows[i])
        assert row.log_density == pytest.approx(total, rel=1e-6)
    assert tuning.table.loc[tuning.table["best"], "log_density"].item() == (
        tuning.table["log_density"].max()
    )


def mode_of(rows, rate, diagonal_rate):
    """Mode of the matrix of given rows, by a solver whose penalty is written out."""
    from bayesstruct.solvers import graphical_lasso

    n, centred = len(rows), rows - rows.mean(axis=0)
    penalty = np.full((P, P), rate / n)
    np.fill_diagonal(penalty, 2 * diagonal_rate / n)
    return graphical_lasso(centred.T @ centred / n, penalty, tol=1e-10).precision


def test_folds_and_seeds():
    table = chain_table(40)
    options = {"prior": "spike_slab", "criterion": "loo", "folds": 4}
    one, two, other = (
        bs.tune("gaussian_graphical", table, random_seed=s, **options).table for s in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(one, two)
    assert not one["log_density"].equals(other["log_density"])


def test_the_bound_of_stability_selection():
    table = chain_table()
    tuning = bs.tune(
        "gaussian_graphical",
        table,
        prior="laplace",
        criterion="stability",
        threshold=0.8,
        false_edges=5.0,
        random_seed=1,
    )
    frame = tuning.table
    bound = frame["selected"] ** 2 / ((2 * 0.8 - 1) * 15)
    np.testing.assert_allclose(frame["false_edges"], bound)
    best = frame.loc[frame["best"]].iloc[0]
    assert best["false_edges"] <= 5.0
    assert best["stable"] == frame.loc[frame["false_edges"] <= 5.0, "stable"].max()


def test_it_prints():
    tuning = bs.tune("gaussian_graphical", chain_table(), {"rate": [5.0, 50.0]}, prior="laplace")
    assert "Chosen by ebic: rate=" in repr(tuning)
    assert "<table" in tuning._repr_html_()
    assert tuning.to_frame() is tuning.table


def test_fewer_rows_than_columns():
    table = np.random.default_rng(0).normal(size=(8, 12))
    tuning = bs.tune("gaussian_graphical", table, prior="laplace")
    assert np.isnan(tuning.table["ebic"]).any()  # of the large graphs
    assert np.isfinite(tuning.table.loc[tuning.table["best"], "ebic"]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "aic"}, "must be one of 'ebic', 'stability', 'loo'"),
        ({"gamma": 2.0}, "`gamma` must be between 0 and 1"),
        ({"resamples": 5}, "even number"),
        ({"threshold": 0.5}, "above 0.5"),
        ({"prior": "horseshoe"}, "has no mode to tune"),
        ({"prior": "laplace", "required": [("a", "b")]}, "go with prior='spike_slab'"),
        ({"rate": 2.0}, '`rate` goes with prior="laplace"'),
        ({"grid": {"rate": [1.0]}}, "`rate` is not tuned here; these are: spike_scale"),
        ({"spike_scale": 0.1}, "`spike_scale` is given as an option, which stays .* and is tuned"),
        ({"prior": "laplace", "marginals": "rank"}, "`marginals` does not apply here"),
        ({"grid": {"spike_scale": []}}, "no value of `spike_scale`"),
        ({"grid": {"spike_scale": [0.1, -1.0]}}, "`spike_scale` must be"),
        ({"grid": {"spike_scale": 2.0}}, "spike_scale < slab_scale"),
        (
            {"prior": "laplace", "grid": {"rate": 0.1}, "criterion": "stability"},
            "no setting keeps the bound",
        ),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        bs.tune("gaussian_graphical", chain_table(), **options)


def test_wrong_models_and_tables_are_named():
    with pytest.raises(
        ValueError, match=r"'ising' has no penalty that is tuned; .*gaussian_graphical"
    ):
        bs.tune("ising", chain_table())
    with pytest.raises(TypeError, match="`grid` must be a dict"):
        bs.tune("gaussian_graphical", chain_table(), [1.0, 2.0], prior="laplace")
    table = chain_table()
    table.iloc[3, 2] = np.nan
    with pytest.raises(bs.TableError, match="needs a complete table"):
        bs.tune("gaussian_graphical", table, prior="laplace")


STRUCTURED = {
    "locally_constant_gaussian_graphical": ({"neighbours": "chain"}, {"smoothness": 0.5}),
    "node_selection_gaussian_graphical": ({"prior": "laplace", "norm": "linf"}, {"node_rate": 0.5}),
    "blockwise_gaussian_graphical": ({"blocks": list("xxyyzz")}, {"block_rate": 0.5}),
}


@pytest.mark.chain
@pytest.mark.parametrize("model", STRUCTURED)
def test_settings_of_structured_models_have_the_modes_of_find_map(model):
    table, (options, own) = chain_table(), STRUCTURED[model]
    tuning = bs.tune(model, table, {"rate": [20.0, 6.0]}, gamma=0.5, **options, **own)
    covariance = empirical_covariance(standardized(table))
    for rate, row in zip((20.0, 6.0), tuning.table.itertuples(), strict=True):
        with getattr(bs.models, model)(table, rate=rate, **options, **own):
            edges = np.abs(bs.find_MAP()["weight"]) > 1e-9
        assert row.edges == edges.sum()
        K = constrained(covariance, edges)
        expected = -2 * N * log_likelihood(covariance, K)
        expected += edges.sum() * (np.log(N) + 2.0 * np.log(P))
        assert row.ebic == pytest.approx(expected, rel=1e-8)


def test_structured_models_are_tuned_in_both_rates():
    grid = {"rate": [30.0, 3.0], "smoothness": [0.1, 2.0]}
    options = {"criterion": "loo", "folds": 3, "random_seed": 1}
    tuning = bs.tune("locally_constant_gaussian_graphical", chain_table(), grid, **options)
    assert len(tuning.table) == 4 and {*tuning.best} == {"rate", "smoothness"}
    assert np.isfinite(tuning.table.select_dtypes(float)).all(axis=None)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("node_selection_gaussian_graphical", {}, 'use prior="laplace"'),
        ("blockwise_gaussian_graphical", {}, "give `blocks`"),
        ("locally_constant_gaussian_graphical", {"norm": "l2"}, "`norm` does not apply here"),
        ("locally_constant_gaussian_graphical", {"smoothness": -1.0}, "`smoothness` must be"),
    ],
)
def test_wrong_options_of_structured_models(model, options, message):
    with pytest.raises(ValueError, match=message):
        bs.tune(model, chain_table(), **options)
