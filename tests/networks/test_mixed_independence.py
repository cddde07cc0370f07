"""Independence of columns of which some are numbers and others states."""

import networkx as nx
import numpy as np
import pytest
import xarray as xr

from scipy import optimize, stats
from tools.dags import dag_posterior, random_dags

import bayesstruct as bs

from bayesstruct.graphs.sets.separations import basis_sets
from bayesstruct.networks.kernels.mixed_independence import independent_mixed


def of_pair(x, states, i, j, given=()):
    """Test one pair on all rows."""
    mask = np.isin(np.arange(x.shape[1]), given)[None]
    every = np.ones((1, len(x)), bool)
    return independent_mixed(x, np.array(states), every, np.array([i]), np.array([j]), mask)


def mixed_rows(rng, graph, n, states):
    """Draw rows of a network of linear and logistic regressions, parents first."""
    x = np.zeros((n, len(graph)))
    order = nx.topological_sort(nx.from_numpy_array(graph, create_using=nx.DiGraph))
    for i in order:
        eta = np.zeros((n, max(states[i] - 1, 1)))
        for j in np.flatnonzero(graph[:, i]):
            k = states[j]
            z = x[:, [j]] if not k else (x[:, [j]] == np.arange(1, k)).astype(float)
            eta += z @ rng.normal(size=(z.shape[1], eta.shape[1]))
        if states[i]:
            noise = rng.gumbel(size=(n, states[i]))
            x[:, i] = (np.column_stack([np.zeros(n), eta]) + noise).argmax(axis=1)
        else:
            x[:, i] = eta[:, 0] + rng.normal(size=n)
    return x


@pytest.mark.parametrize("states", [[2, 2], [3, 2], [3, 4]])
def test_the_score_test_of_two_columns_is_that_of_pearson(rng, states):
    x = rng.integers(0, states, size=(300, 2)).astype(float)
    x[:80, 0] = np.minimum(x[:80, 1], states[0] - 1)
    table = np.zeros(states)
    np.add.at(table, tuple(x.astype(int).T), 1)
    right = stats.chi2_contingency(table, correction=False)
    found = of_pair(x, states, 0, 1)
    assert found.p_value[0] == pytest.approx(right.pvalue, rel=1e-4)
    assert found.strength[0] == pytest.approx(np.sqrt(min(right.statistic / 300, 1)), rel=1e-4)


def test_numbers_have_the_f_test(rng):
    x = np.column_stack([rng.normal(size=(120, 2)), rng.integers(3, size=120)])
    x[:, 0] += 0.5 * x[:, 1] + 0.4 * (x[:, 2] == 2)
    ones = np.ones(120)
    small = np.column_stack([ones, x[:, 1]])
    large = np.column_stack([small, x[:, 2] == 1, x[:, 2] == 2])
    rss = [np.linalg.lstsq(d.astype(float), x[:, 0])[1][0] for d in (small, large)]
    ratio = (rss[0] - rss[1]) / 2 / (rss[1] / 116)
    found = of_pair(x, [0, 0, 3], 0, 2, [1])
    assert found.p_value[0] == pytest.approx(stats.f.sf(ratio, 2, 116))
    assert found.strength[0] == pytest.approx(np.sqrt(1 - rss[1] / rss[0]))


def test_logistic_regressions_agree_with_the_likelihood_ratio(rng):
    """Score test and likelihood ratio are equal in large tables near the hypothesis."""
    n = 5_000
    x = np.column_stack([np.zeros(n), rng.normal(size=n), rng.normal(size=n)])
    x[:, 2] += x[:, 1]
    eta = 0.8 * x[:, 1] + 0.1 * x[:, 2]
    x[:, 0] = rng.random(n) < 1 / (1 + np.exp(-eta))

    def loss(beta, design):
        linear = design @ beta
        return np.logaddexp(0, linear).sum() - x[:, 0] @ linear

    ones = np.ones(n)
    designs = np.column_stack([ones, x[:, 1]]), np.column_stack([ones, x[:, 1:]])
    best = [optimize.minimize(loss, np.zeros(d.shape[1]), (d,)).fun for d in designs]
    right = stats.chi2.sf(2 * (best[0] - best[1]), 1)
    found = of_pair(x, [2, 0, 0], 0, 2, [1])
    assert np.log(found.p_value[0]) == pytest.approx(np.log(right), rel=0.05)


def test_what_cannot_be_tested(rng):
    x = np.column_stack([rng.normal(size=(30, 2)), np.zeros(30), rng.integers(2, size=30)])
    x[:, 1] = x[:, 0]
    states = [0, 0, 2, 2]
    assert not of_pair(x, states, 3, 2).testable[0]  # a constant column adds nothing
    assert not of_pair(x, states, 2, 3).testable[0]
    assert not of_pair(x, states, 3, 1, [0]).testable[0]  # what is added is given already
    assert not of_pair(x[:4], states, 3, 1).testable[0]
    separated = np.column_stack(
        [np.linspace(-1, 1, 60), np.linspace(-1, 1, 60) > 0, rng.normal(size=60)]
    )
    assert of_pair(separated.astype(float), [0, 2, 0], 1, 2, [0]).p_value[0] > 0.01


@pytest.mark.statistical
def test_false_alarms_in_mixed_tables():
    rng = np.random.default_rng(4)
    states = np.array([0, 2, 3, 0, 2])
    values, alarms = [], []
    for graph in random_dags(rng, 80, 5, 0.4):
        sets = basis_sets(graph[None])
        x = mixed_rows(rng, graph, 150, states)
        statements = sets.later, sets.earlier, sets.given
        found = independent_mixed(x, states, np.ones((1, 150), bool), *statements)
        values += found.p_value[found.testable].tolist()
        alarms.append((found.p_value * max(len(found.p_value), 1) <= 0.1).any())
    values = np.array(values)
    for level in (0.05, 0.2, 0.5):  # four standard errors
        error = np.sqrt(level * (1 - level) / len(values))
        assert abs((values <= level).mean() - level) < 4 * error
    assert np.mean(alarms) < 0.1 + 4 * np.sqrt(0.09 / 80)


def test_the_check_reads_tables_of_both_kinds():
    """A missing arc from a number to a state is found; what is independent is not."""
    chain = np.zeros((3, 3), bool)
    chain[0, 1] = chain[1, 2] = True
    x = mixed_rows(np.random.default_rng(2), chain, 400, [0, 2, 0])
    drawn = np.zeros((1, 4, 3, 3))
    drawn[..., 1, 2] = 1
    tree = dag_posterior(drawn)
    constants = tree["constant_data"].to_dataset()
    constants["column_states"] = ("node", [0, 2, 0])
    observed = xr.Dataset({"x": (("observation", "node"), x)})
    groups = {"posterior": tree["posterior"].to_dataset(), "constant_data": constants}
    found = bs.independence_check(xr.DataTree.from_dict(groups | {"observed_data": observed}))
    assert tuple(found.iloc[0][["source", "target"]]) == ("v0", "v1")
    assert found["contradicted"].tolist() == [1, 0]
