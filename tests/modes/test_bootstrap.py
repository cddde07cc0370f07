"""bs.bootstrap_support: against loops by hand, beside posteriors, and what is refused."""

import warnings

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from sklearn.covariance import graphical_lasso
from tools.dags import dag_posterior, random_dags
from tools.posteriors import bernoulli_posterior

import bayesstruct as bs

mpl.use("Agg")

N, P, SAMPLES = 80, 5, 12


def chain_table(seed=0, names="abcde"):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((N, P))
    for j in range(1, P):
        x[:, j] += 0.7 * x[:, j - 1]
    return pd.DataFrame(x, columns=[*names])


def resampled(table, seed):
    """The rows that the function draws."""
    rng = np.random.default_rng(seed)
    return [table.iloc[rng.integers(0, len(table), len(table))] for _ in range(SAMPLES)]


def support_matrix(found, names):
    out = pd.DataFrame(np.nan, [*names], [*names])
    for row in found.table.itertuples():
        out.loc[row.source, row.target] = row.support
    return out.to_numpy()


def test_graphical_lasso_by_hand():
    table = chain_table()
    found = bs.bootstrap_support(
        "gaussian_graphical",
        table,
        prior="laplace",
        setting={"rate": 20.0},
        n_bootstrap=SAMPLES,
        random_seed=4,
    )
    counts = np.zeros((P, P))
    for rows in resampled(table, 4):
        z = ((rows - rows.mean()) / rows.std()).to_numpy()
        # the diagonal has half of the rate, and counts once where other elements count twice
        covariance = z.T @ z / N + 20.0 / N * np.eye(P)
        counts += (
            graphical_lasso(covariance, 20.0 / N, tol=1e-6, enet_tol=1e-12, max_iter=1000)[1] != 0
        )
    upper = np.triu_indices(P, 1)
    np.testing.assert_allclose(support_matrix(found, "abcde")[upper], (counts / SAMPLES)[upper])
    assert found.table.support.between(0, 1, inclusive="neither").any()


def test_the_penalty_is_chosen_in_each_sample():
    table = chain_table(1)
    found = bs.bootstrap_support(
        bs.models.gaussian_graphical, table, prior="laplace", n_bootstrap=SAMPLES, random_seed=2
    )
    counts = np.zeros(P * (P - 1) // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.TableWarning)
        for rows in resampled(table, 2):
            tuning = bs.tune("gaussian_graphical", rows, prior="laplace")
            z = (rows - rows.mean()) / rows.std()
            rate = tuning.best["rate"] / N
            matrix = (z.T @ z / N).to_numpy()
            solution = bs.solvers.graphical_lasso(matrix, np.full((P, P), rate), tol=1e-13)
            edges = solution.precision[np.triu_indices(P, 1)] != 0
            assert edges.sum() == tuning.table.edges[tuning.table.best].item()
            counts += edges
    upper = np.triu_indices(P, 1)
    np.testing.assert_allclose(support_matrix(found, "abcde")[upper], counts / SAMPLES)
    chain = found.table.set_index(["source", "target"]).loc[[*zip("abcd", "bcde", strict=True)]]
    assert (chain.support > 0.5).all()


def test_arcs_by_hand():
    table = chain_table(2)
    found = bs.bootstrap_support("bayesian_network", table, n_bootstrap=SAMPLES, random_seed=9)
    counts = np.zeros((P, P))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.TableWarning)
        for rows in resampled(table, 9):
            essential = bs.cpdag(bs.solvers.optimal_dag(rows).graph)
            matrix = nx.to_numpy_array(essential, nodelist=[*"abcde"])
            counts += np.where(matrix * matrix.T > 0, 0.5, matrix)
    off = ~np.eye(P, dtype=bool)
    np.testing.assert_allclose(support_matrix(found, "abcde")[off], (counts / SAMPLES)[off])
    assert "half in each direction" in repr(found) and "arcs" in repr(found)
    tiers = bs.bootstrap_support(
        "bayesian_network", table, tiers=[["a"], [*"bcde"]], n_bootstrap=3, random_seed=1
    )
    arcs = tiers.table.set_index(["source", "target"]).support
    assert arcs["a", "b"] == 1 and arcs["b", "a"] == 0


def test_states_that_a_sample_lacks_are_known():
    table = (chain_table(3) > 0).astype(str)
    table.iloc[0, 0] = "rare"
    found = bs.bootstrap_support(
        "bayesian_network", table, score="bdeu", n_bootstrap=SAMPLES, random_seed=0
    )
    assert len(found.table) == P * (P - 1)


@pytest.fixture(scope="module")
def beside():
    """Support beside a posterior whose columns are in another order, and the edge table of the posterior."""
    table = chain_table(0)[["e", "a", "d", "b", "c"]]
    posterior = bernoulli_posterior(np.linspace(0.05, 0.95, 10), names=[*"abcde"], seed=3)
    found = bs.bootstrap_support(
        "gaussian_graphical",
        table,
        prior="laplace",
        setting={"rate": 15.0},
        posterior=posterior,
        n_bootstrap=3,
        random_seed=1,
    )
    return found, bs.edge_table(posterior)


def test_beside_a_posterior_with_its_columns_in_another_order(beside):
    found, known = beside
    pairs = {frozenset((r.source, r.target)): r for r in known.itertuples()}
    for row in found.table.itertuples():
        expected = pairs[frozenset((row.source, row.target))]
        assert row.probability == expected.probability
        assert row.bayes_factor == expected.bayes_factor


def test_picture(beside):
    found, _ = beside
    ax = bs.plot_bootstrap_support(found)
    grey, blue = ax.collections
    assert len(blue.get_offsets()) == found.table.estimate.sum()
    assert len(grey.get_offsets()) == (~found.table.estimate).sum()
    mpl.pyplot.close("all")


def test_the_seed_and_numpy_tables():
    table = chain_table()
    given = {"prior": "spike_slab", "n_bootstrap": 3, "setting": {"spike_scale": 0.05}}
    first, again, other = (
        bs.bootstrap_support("gaussian_graphical", table, random_seed=s, **given) for s in (1, 1, 2)
    )
    assert first.table.equals(again.table) and not first.table.equals(other.table)
    array = bs.bootstrap_support("gaussian_graphical", table.to_numpy(), random_seed=1, **given)
    assert array.table.support.tolist() == first.table.support.tolist()
    assert {*array.table.source, *array.table.target} == {f"x{j}" for j in range(P)}


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("ising", {}, "no penalty that is tuned; these models have: blockwise"),
        ("pairwise_mrf", {}, "and bayesian_network is searched. Of other models bs.sensitivity"),
        ("gaussian_graphical", {"n_bootstrap": 1}, "`n_bootstrap`"),
        ("gaussian_graphical", {"gamma": 2}, "`gamma` must be between 0 and 1"),
        ("gaussian_graphical", {"setting": {"rat": 1}}, "`rat` is not tuned here"),
        ("gaussian_graphical", {"prior": "horseshoe"}, "has no mode to tune"),
        ("bayesian_network", {"setting": {"rate": 1}}, "`setting` is for models with a penalty"),
        ("bayesian_network", {"interventions": 1}, "`interventions` goes with the rows"),
        ("bayesian_network", {"prior": "order"}, "'order'"),
    ],
)
def test_bad_input(model, options, message):
    with pytest.raises(ValueError, match=message):
        bs.bootstrap_support(model, chain_table(), **options)


def test_posteriors_of_other_kinds_are_refused():
    given = {"prior": "laplace", "setting": {"rate": 15.0}, "n_bootstrap": 2}
    with pytest.raises(ValueError, match="different variables: a, w"):
        bs.bootstrap_support(
            "gaussian_graphical",
            chain_table(),
            posterior=bernoulli_posterior([0.5] * 10, names=[*"wbcde"]),
            **given,
        )
    dags = dag_posterior(random_dags(np.random.default_rng(0), 5, P)[None], names=[*"abcde"])
    with pytest.raises(ValueError, match="estimate has edges and the posterior arcs"):
        bs.bootstrap_support("gaussian_graphical", chain_table(), posterior=dags, **given)
    support = bs.bootstrap_support("gaussian_graphical", chain_table(), **given)
    with pytest.raises(ValueError, match="posterior=idata"):
        bs.plot_bootstrap_support(support)


@pytest.mark.filterwarnings("ignore:.*far from normal")
def test_a_sample_that_cannot_be_used_is_named():
    table = chain_table()
    table["a"] = 0.5
    table.loc[[0, 1], "a"] = [1.0, 2.0]  # constant in one of seven samples
    with pytest.raises(bs.TableError, match=r"In bootstrap sample \d+: Column 'a'"):
        bs.bootstrap_support(
            "gaussian_graphical", table, prior="laplace", setting={"rate": 9.0}, random_seed=0
        )
