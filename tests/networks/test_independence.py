"""Whether conditional independences are contradicted: against definitions, and how often this is a false alarm."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from scipy import stats
from tools.dags import dag_posterior, random_dags, to_graph

import bayesstruct as bs

from bayesstruct.graphs.sets.separations import basis_sets
from bayesstruct.networks.kernels.independence import (
    conditional_moments,
    holm,
    independent_numbers,
    independent_states,
)


def result(graphs, table, *, states=None, missing=None, was_set=None):
    """Make up a result with a table of rows."""
    tree = dag_posterior(graphs, weighted=states is None)
    constants = tree["constant_data"].to_dataset()
    if states is not None:
        constants["states"] = ("node", np.asarray(states))
    for name, mask in (("cell_missing", missing), ("cell_set", was_set)):
        if mask is not None:
            constants[name] = (("observation", "node"), np.asarray(mask, int))
    observed = xr.Dataset({"x": (("observation", "node"), table)})
    groups = {"posterior": tree["posterior"].to_dataset(), "constant_data": constants}
    return xr.DataTree.from_dict(groups | {"observed_data": observed})


def normal_rows(rng, graph, n, strength=0.7):
    """Draw rows of a linear network, parents first."""
    x = np.zeros((n, len(graph)))
    for i in nx.topological_sort(nx.from_numpy_array(graph, create_using=nx.DiGraph)):
        x[:, i] = strength * x[:, graph[:, i]].sum(axis=1) + rng.normal(size=n)
    return x


def state_rows(rng, graph, n, states):
    """Draw rows of a network with random tables, parents first."""
    x = np.zeros((n, len(graph)), int)
    for i in nx.topological_sort(nx.from_numpy_array(graph, create_using=nx.DiGraph)):
        parents = np.flatnonzero(graph[:, i])
        _, cell = np.unique(x[:, parents], axis=0, return_inverse=True)
        shares = rng.dirichlet(np.ones(states[i]), cell.max() + 1)
        x[:, i] = (rng.random((n, 1)) > np.cumsum(shares[cell.ravel()], axis=1)).sum(axis=1)
    return np.minimum(x, np.array(states) - 1)


# --- statements ------------------------------------------------------------------------------


def test_basis_sets_are_independences_of_each_graph(rng):
    graphs = random_dags(rng, 30, 6, 0.4)
    found = basis_sets(graphs)
    for matrix, own in zip(graphs, found.implied, strict=True):
        graph = to_graph(matrix, list(range(6)))
        pairs = {frozenset((found.later[k], found.earlier[k])) for k in own}
        apart = {frozenset(pair) for pair in itertools.combinations(range(6), 2)}
        assert pairs == apart - {frozenset(arc) for arc in graph.edges}
        for k in own:
            later, earlier = int(found.later[k]), int(found.earlier[k])
            given = set(np.flatnonzero(found.given[k]).tolist())
            assert nx.is_d_separator(graph, {later}, {earlier}, given)
            assert earlier not in nx.descendants(graph, later)


# --- tests -----------------------------------------------------------------------------------


def test_partial_correlations_are_those_of_regressions(rng):
    x = rng.normal(size=(40, 4)) @ rng.normal(size=(4, 4))
    given = np.array([[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]], bool)
    found = independent_numbers(x, np.ones((1, 40), bool), np.zeros(3, int), np.ones(3, int), given)
    for k, own in enumerate(given):
        design = np.column_stack([np.ones(40), x[:, own]])
        left = [x[:, c] - design @ np.linalg.lstsq(design, x[:, c])[0] for c in (0, 1)]
        r = np.corrcoef(left)[0, 1]
        free = 38 - own.sum()
        assert found.strength[k] == pytest.approx(abs(r))
        t = r * np.sqrt(free / (1 - r**2))
        assert found.p_value[k] == pytest.approx(2 * stats.t.sf(abs(t), free))
    assert found.p_value[0] == pytest.approx(stats.pearsonr(x[:, 0], x[:, 1]).pvalue)


def test_what_cannot_be_tested_is_not_contradicted(rng):
    x = rng.normal(size=(4, 5))
    given = np.array([[0, 0, 1, 1, 1], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0]], bool)
    use = np.ones((3, 4), bool)
    x[:, 0] = x[:, 2]  # a function of what is given
    first, second = np.array([3, 0, 1]), np.array([4, 1, 3])
    given[0] = [1, 1, 1, 0, 0]
    found = independent_numbers(x, use, first, second, given)
    assert found.testable.tolist() == [False, False, True]
    assert found.p_value[:2].tolist() == [1, 1]


def test_large_counts_have_the_chi_square_test_of_scipy(rng):
    x = rng.integers(0, [3, 2, 2], size=(4000, 3))
    x[:100, 0] = x[:100, 1]
    given = np.array([[0, 0, 0], [0, 0, 1]], bool)
    at = np.zeros(2, int), np.ones(2, int), given
    found = independent_states(x, np.array([3, 2, 2]), np.ones((1, 4000), bool), *at)
    parts = [x[:, 2] >= 0, x[:, 2] == 0, x[:, 2] == 1]
    tables = [pd.crosstab(x[rows, 0], x[rows, 1]) for rows in parts]
    whole, *each = [stats.chi2_contingency(table, correction=False) for table in tables]
    assert found.p_value[0] == pytest.approx(whole.pvalue, rel=0.01)
    statistic = sum(part.statistic for part in each)
    assert found.p_value[1] == pytest.approx(stats.chi2.sf(statistic, 4), rel=0.01)
    ratio = stats.chi2_contingency(tables[0], correction=False, lambda_="log-likelihood")
    assert found.strength[0] == pytest.approx(np.sqrt(1 - np.exp(-ratio.statistic / 4000)))


def two_by_two(row, column):
    """All tables with these sums, their probabilities and chi-square statistics."""
    n = sum(row)
    for a in range(max(0, row[0] + column[0] - n), min(row[0], column[0]) + 1):
        table = np.array([[a, row[0] - a], [column[0] - a, row[1] - column[0] + a]])
        chance = stats.hypergeom.pmf(a, n, row[0], column[0])
        yield table, chance, stats.chi2_contingency(table, correction=False).statistic


@pytest.mark.parametrize("row", [(1, 1), (1, 2), (2, 2), (1, 5), (7, 4)])
def test_moments_of_small_tables_are_those_of_all_tables(row):
    column = (1, sum(row) - 1)
    tables, chance, statistic = map(np.array, zip(*two_by_two(row, column), strict=True))
    mean, variance = conditional_moments(tables)
    right = chance @ statistic
    np.testing.assert_allclose(mean, right)
    np.testing.assert_allclose(variance, chance @ (statistic - right) ** 2, atol=1e-12)


def test_moments_of_larger_tables_are_those_of_random_tables():
    row, column = [1, 4, 7], [2, 2, 3, 5]
    tables = stats.random_table(row, column).rvs(20_000, random_state=1)
    expected = np.outer(row, column) / 12
    statistic = ((tables - expected) ** 2 / expected).sum(axis=(1, 2))
    mean, variance = conditional_moments(tables[:1].astype(int))
    assert mean[0] == pytest.approx(np.mean(statistic), abs=4 * np.std(statistic) / 141)
    assert variance[0] == pytest.approx(np.var(statistic), rel=0.1)


def test_p_values_adjusted_by_holm():
    values = np.array([0.01, 0.04, 0.03, 0.9])
    # from the smallest on times 4, 3, 2, 1, and never below one before
    np.testing.assert_allclose(holm(values), [0.04, 0.09, 0.09, 0.9])
    assert holm(np.zeros(0)).size == 0


@pytest.mark.statistical
def test_p_values_of_sparse_counts_are_uniform():
    """Two columns of four states, independent given a third one of ten; some 60 rows."""
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.full(4, 0.5), (2, 10))
    values = []
    for _ in range(300):
        z = rng.integers(10, size=60)
        ends = [(rng.random((60, 1)) > np.cumsum(own[z], axis=1)).sum(axis=1) for own in shares]
        x = np.minimum(np.column_stack([*ends, z]), [3, 3, 9])
        given = np.array([[0, 0, 1]], bool)
        at = np.zeros(1, int), np.ones(1, int)
        states, every = np.array([4, 4, 10]), np.ones((1, 60), bool)
        values.append(independent_states(x, states, every, *at, given).p_value[0])
    values = np.array(values)
    for level in (0.05, 0.2, 0.5):  # four standard errors of a share of 300
        assert abs((values <= level).mean() - level) < 4 * np.sqrt(level * (1 - level) / 300)


# --- the check -------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["numbers", "states"])
def test_false_alarms_of_graphs_that_are_right(kind):
    """In at most a share alpha of the tables is any independence contradicted, and combined p-values are uniform."""
    rng = np.random.default_rng(2)
    alarms, combined = [], []
    for graph in random_dags(rng, 80, 5, 0.4):
        if graph.sum() == 10:
            continue
        states = None if kind == "numbers" else [2, 3, 2, 2, 3]
        x = normal_rows(rng, graph, 40) if states is None else state_rows(rng, graph, 80, states)
        found = bs.independence_check(result(graph[None, None], x, states=states), alpha=0.2)
        alarms.append(found.attrs["contradicted"])
        combined.append(found.attrs["combined_p_value"])
    assert np.mean(alarms) < 0.2 + 4 * np.sqrt(0.2 * 0.8 / len(alarms))
    assert np.mean(alarms) > 0.05  # and the level is used
    assert stats.kstest(combined, "uniform").pvalue > 1e-3


def test_averages_over_graphs(rng):
    """An arc that is there in a quarter of the draws, and was not needed in the rest."""
    x = rng.normal(size=(200, 3))
    x[:, 1] += x[:, 0]
    x[:, 2] += x[:, 1]
    drawn = np.zeros((1, 40, 3, 3))
    drawn[:, :, 0, 1] = 1
    drawn[:, ::4, 1, 2] = 1
    found = bs.independence_check(result(drawn, x))
    row = found.set_index(["source", "target"]).loc[("v1", "v2")]
    assert row["independent"] == row["contradicted"] == pytest.approx(0.75)
    assert found.attrs["contradicted"] == pytest.approx(0.75)
    assert found.iloc[0]["contradicted"] == found["contradicted"].max()
    other = found.set_index(["source", "target"]).loc[("v0", "v2")]
    assert other["independent"] == 1
    r = [stats.pearsonr(x[:, 0], x[:, 2]), None]
    each = bs.independence_check(result(drawn, x), by="given")
    marginal = each[(each["source"] == "v0") & (each["target"] == "v2")].set_index("given")
    # v2 has no parents in most draws: v0 and v2 are then said to be independent given the parents of both, none
    assert marginal.loc[[()], "p_value"].item() == pytest.approx(r[0].pvalue)
    assert marginal["independent"].sum() == pytest.approx(1)


def test_rows_with_missing_values_and_settings_do_not_count(rng):
    x = rng.normal(size=(60, 3))
    x[:20, 1] = x[:20, 0]  # wrong, in rows that do not count
    empty = np.zeros((1, 5, 3, 3))
    plain = bs.independence_check(result(empty, x)).set_index(["source", "target"])
    assert plain.loc[("v0", "v1"), "contradicted"] == 1
    missing = np.zeros((60, 3), bool)
    missing[:20, 1] = True
    gaps = bs.independence_check(result(empty, np.where(missing, np.nan, x), missing=missing))
    gaps = gaps.set_index(["source", "target"])
    assert gaps.loc[("v0", "v1"), "contradicted"] == 0
    assert gaps.loc[("v0", "v1"), "p_value"] == pytest.approx(
        stats.pearsonr(x[20:, 0], x[20:, 1]).pvalue
    )
    assert gaps.loc[("v0", "v2"), "p_value"] == pytest.approx(plain.loc[("v0", "v2"), "p_value"])
    settings = bs.independence_check(result(empty, x, was_set=missing)).set_index(
        ["source", "target"]
    )
    assert settings.loc[("v0", "v1"), "contradicted"] == 0


def test_results_without_a_statement_or_a_table(rng):
    full = np.triu(np.ones((3, 3)), 1)[None, None]
    found = bs.independence_check(result(full, rng.normal(size=(20, 3))))
    assert len(found) == 0 and found.attrs["contradicted"] == 0
    assert found.attrs["combined_p_value"] == 1
    assert "complete" in found.attrs["notes"][0]
    with pytest.raises(ValueError, match="no observed table"):
        bs.independence_check(dag_posterior(full))
    tree = result(full, rng.normal(size=(20, 3)))
    with pytest.raises(ValueError, match="`by`"):
        bs.independence_check(tree, by="graph")
    with pytest.raises(ValueError, match="`alpha`"):
        bs.independence_check(tree, alpha=5)


def test_few_rows_are_said_not_to_be_enough(rng):
    star = np.zeros((5, 5))
    star[:3, 3] = 1
    found = bs.independence_check(result(star[None, None], rng.normal(size=(4, 5))))
    assert "cannot be tested" in found.attrs["notes"][0]


@pytest.mark.chain
def test_a_forbidden_arc_is_found(rng, tmp_path):
    x = pd.DataFrame(rng.normal(size=(150, 3)), columns=["a", "b", "c"])
    x["b"] += x["a"]
    x["c"] += x["b"]
    quick = {"draws": 60, "tune": 10, "chains": 2, "cores": 1, "progressbar": False}
    quick |= {"compute_convergence_checks": False, "random_seed": 1}
    with bs.models.bayesian_network(x, forbidden=[("b", "c"), ("c", "b")]):
        idata = pm.sample(**quick, compile_kwargs={"mode": "FAST_COMPILE"})
    idata.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "result.nc", engine="h5netcdf") as saved:
        found = bs.independence_check(saved)
        assert bs.consensus_graph(saved).graph["optimal"]
        assert len(bs.direction_table(saved)) == 3
        effects = bs.do(saved, {"a": 1.0}, by_graph="classes").summary
    assert found.attrs["contradicted"] == 1
    assert tuple(found.iloc[0][["source", "target"]]) == ("b", "c")
    assert found["contradicted"].tolist()[1:] == [0, 0][: len(found) - 1]
    assert effects.loc["a", "zero"] == 0
