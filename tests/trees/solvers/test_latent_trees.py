"""Trees with hidden nodes from tables: structures, distances, scores, and what is refused."""

import itertools

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from tools.latent_trees import random_tree, same_tree, splits

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.trees.kernels.grouping import path_lengths
from bayesstruct.trees.solvers.latent_fits import free_parameters

METHODS = ["clrg", "clnj", "rg", "nj"]


def lines_of(graph, names):
    """Edges with distances as numbers of nodes, columns first."""
    place = {name: j for j, name in enumerate([*names, *(v for v in graph if v not in names)])}
    return [(place[a], place[b], own) for a, b, own in graph.edges(data="distance")]


def same_structure(simulated, found):
    names = list(simulated.data.columns)
    true, own = lines_of(simulated.graph, names), lines_of(found.graph, names)
    same = splits(true, len(names)).keys() == splits(own, len(names)).keys()
    return same and len(true) == len(own)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", ["star", "double_star", "leaves"])
@pytest.mark.parametrize("kind", ["gaussian", "discrete"])
def test_the_tree_of_a_large_table_is_found(kind, shape, method):
    table = bs.simulate.latent_tree(
        20_000, p=8, kind=kind, shape=shape, correlations=(0.6, 0.8), random_seed=3
    )
    found = bs.solvers.latent_tree(table.data, method=method)
    assert same_structure(table, found)
    true = dict(splits(lines_of(table.graph, found.names), 8))
    own = splits(lines_of(found.graph, found.names), 8)
    # Standard errors of the lengths are about .02.
    assert max(abs(true[key] - own[key]) for key in true) < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_columns_may_be_inner_nodes(method):
    table = bs.simulate.latent_tree(20_000, p=9, correlations=(0.5, 0.8), random_seed=1)
    assert any(table.graph.degree(name) > 1 for name in table.data)
    assert same_structure(table, bs.solvers.latent_tree(table.data, method=method))


def test_three_states():
    for distance in ("determinant", "symmetric"):
        table = bs.simulate.latent_tree(
            20_000, p=6, kind="discrete", states=3, shape="double_star", random_seed=1
        )
        found = bs.solvers.latent_tree(table.data, columns="states", distance=distance)
        assert same_structure(table, found)
        for (a, b), own in found.tables.items():
            assert own.shape == (3, 3)
            np.testing.assert_allclose(own.sum(axis=1), 1.0)
            assert found.graph.has_edge(a, b)


@pytest.mark.statistical
def test_a_double_star_of_eighty_columns_is_found_in_a_thousand_rows():
    for seed in range(20):
        table = bs.simulate.latent_tree(
            1_000, p=80, shape="double_star", correlations=(0.3, 0.7), random_seed=seed
        )
        found = bs.solvers.latent_tree(table.data, method="rg")
        assert same_structure(table, found)


def test_exact_distances_and_their_names():
    lines, m = random_tree(np.random.default_rng(4))
    d = path_lengths(lines, len(lines) + 1)[:m, :m]
    names = [f"c{j}" for j in range(m)]
    for method in METHODS:
        found = bs.solvers.latent_tree(distances=pd.DataFrame(d, names, names), method=method)
        assert same_tree(lines_of(found.graph, names), lines, m)
        assert found.names == tuple(names) and np.isnan(found.log_likelihood)
    assert bs.solvers.latent_tree(distances=d, n=10**9).names == tuple(f"x{j}" for j in range(m))


def test_names_of_hidden_nodes_are_new_and_pictures_tell_them_apart():
    table = bs.simulate.latent_tree(2_000, p=6, shape="double_star", random_seed=1).data
    found = bs.solvers.latent_tree(table.rename(columns={"x0": "h1"}))
    assert set(found.hidden).isdisjoint(found.names)
    assert nx.is_tree(found.graph) and len(found.graph) == 8
    assert {name for name, own in found.graph.nodes(data="hidden") if own} == set(found.hidden)
    fig, ax = plt.subplots()
    bs.plot_graph(found.graph, groups=found.kinds, ax=ax)
    texts = {text.get_text() for text in ax.get_legend().get_texts()} if ax.get_legend() else set()
    texts |= {t.get_text() for legend in fig.legends for t in legend.get_texts()}
    assert {"column", "hidden"} <= texts
    plt.close(fig)


def exact_table(joint):
    """Rows whose shares of pairs of states are exactly these whole numbers."""
    rows = [(a, b) for a, b in itertools.product(range(3), repeat=2) for _ in range(joint[a, b])]
    return pd.DataFrame(rows, columns=["a", "b"])


def test_distances_of_states_are_those_of_the_formulas():
    symmetric = np.array([[4, 1, 1], [1, 4, 1], [1, 1, 4]])
    frame = exact_table(symmetric)
    # Two states differ in 6 of 18 rows, (K - 1) theta, so that theta is 1/6.
    expected = -2 * np.log(1 - 3 / 6)
    for distance in ("determinant", "symmetric"):
        d = bs.solvers.information_distances(frame, columns="states", distance=distance)
        np.testing.assert_allclose(d.loc["a", "b"], expected, rtol=1e-12)
    skewed = np.array([[5, 1, 2], [1, 4, 1], [3, 1, 6]])
    d = bs.solvers.information_distances(exact_table(skewed), columns="states").loc["a", "b"]
    p = skewed / skewed.sum()
    ratio = np.linalg.det(p) / np.sqrt(p.sum(axis=0).prod() * p.sum(axis=1).prod())
    np.testing.assert_allclose(d, -np.log(ratio), rtol=1e-12)
    two = pd.DataFrame({"a": [0, 0, 0, 1, 1, 0, 1], "b": [0, 0, 1, 1, 1, 0, 0]})
    found = bs.solvers.information_distances(two).loc["a", "b"]
    np.testing.assert_allclose(found, -np.log(abs(two.corr().loc["a", "b"])), rtol=1e-12)
    x = np.random.default_rng(0).normal(size=(50, 3)).cumsum(axis=1)
    d = bs.solvers.information_distances(x)
    np.testing.assert_allclose(np.exp(-d), np.abs(np.corrcoef(x.T)), rtol=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize(("k", "symmetric"), [(0, False), (2, False), (2, True), (3, True)])
def test_variances_of_distances_are_those_of_repeated_tables(k, symmetric):
    from bayesstruct.trees.kernels.distances import distance_noise

    n, r, found = 500, 0.6, []
    for seed in range(400):
        graph = nx.path_graph(["a", "b"])
        table = bs.simulate.latent_tree(
            n,
            kind="discrete" if k else "gaussian",
            states=k or None,
            graph=graph,
            correlations=(r, r),
            random_seed=seed,
        )
        d = bs.solvers.information_distances(
            table.data,
            columns="states" if k else "numbers",
            distance="symmetric" if symmetric else None,
        )
        found.append(d.loc["a", "b"])
    expected = distance_noise(n, k, symmetric).variance(np.array(-max(k - 1, 1) * np.log(r)))
    # A variance of 400 values has a standard error of 7 %.
    np.testing.assert_allclose(np.var(found), expected, rtol=0.25)


def test_differences_of_bic_are_those_of_published_tables():
    """Choi et al. (2011), tables 3 and 4: numbers have as many parameters as nodes but for a constant, two states twice as many less one."""
    rows = 216
    numbers = [(-13_321, -13_547, 0), (-12_400, -12_747, 45), (-14_042, -14_300, 12)]
    numbers += [(-11_990, -12_294, 29), (-12_879, -13_174, 26)]
    offset = {b - a + 0.5 * free_parameters(84, 83 + h, 0) * np.log(rows) for a, b, h in numbers}
    assert max(offset) - min(offset) < 2.0
    states = [(-238_713, -239_677, 0), (-230_575, -232_257, 74), (-239_619, -240_875, 30)]
    states += [(-230_858, -232_540, 74), (-231_279, -232_738, 51), (-235_326, -236_553, 27)]
    for likelihood, bic, hidden in states:
        own = likelihood - 0.5 * free_parameters(100, 99 + hidden, 2) * np.log(16_242)
        assert abs(own - bic) < 1.01


def test_bic_adds_hidden_nodes_only_where_there_are_some():
    rng = np.random.default_rng(0)
    chain = rng.normal(size=(3_000, 6))
    for j in range(1, 6):
        chain[:, j] = 0.6 * chain[:, j - 1] + 0.8 * chain[:, j]
    found = bs.solvers.latent_tree(chain, penalty="bic")
    assert not found.hidden
    tree = bs.solvers.chow_liu(chain)
    assert set(map(frozenset, found.graph.edges)) == set(map(frozenset, tree.graph.edges))
    np.testing.assert_allclose(found.bic, tree.bic, rtol=1e-12)
    for kind in ("gaussian", "discrete"):
        table = bs.simulate.latent_tree(
            4_000, p=7, shape="star", kind=kind, correlations=(0.6, 0.8), random_seed=1
        )
        for method in ("clrg", "clnj"):
            found = bs.solvers.latent_tree(table.data, method=method, penalty="bic")
            assert same_structure(table, found)
            assert found.bic > bs.solvers.chow_liu(table.data).bic


def test_units_and_order_of_columns_do_not_matter():
    table = bs.simulate.latent_tree(3_000, p=8, shape="leaves", random_seed=5).data
    found = bs.solvers.latent_tree(table)
    other = bs.solvers.latent_tree(7.0 - 50.0 * table[table.columns[::-1]])
    order = list(table.columns)
    one, two = (splits(lines_of(own.graph, order), 8) for own in (found, other))
    assert one.keys() == two.keys()
    # Iterations start from other signs, and end within their tolerance.
    assert max(abs(one[key] - two[key]) for key in one) < 0.01
    scale = 3_000 * 8 * np.log(50.0)
    np.testing.assert_allclose(other.log_likelihood, found.log_likelihood - scale, atol=0.1)


def test_the_likelihood_of_numbers_is_that_of_products_of_correlations():
    table = bs.simulate.latent_tree(500, p=5, shape="double_star", random_seed=5).data
    found = bs.solvers.latent_tree(table)
    from scipy.stats import multivariate_normal

    r, sd = np.eye(5), table.std(ddof=0).to_numpy()
    for i, j in itertools.combinations(range(5), 2):
        path = nx.shortest_path(found.graph, f"x{i}", f"x{j}")
        r[i, j] = r[j, i] = np.prod(
            [found.graph.edges[e]["weight"] for e in itertools.pairwise(path)]
        )
    law = multivariate_normal(table.mean(), r * np.outer(sd, sd))
    np.testing.assert_allclose(found.log_likelihood, law.logpdf(table).sum(), rtol=1e-9)
    # Four standard errors of a correlation.
    assert np.abs(r - table.corr()).to_numpy().max() < 4 / np.sqrt(500)


def numbers(p=5):
    return bs.simulate.latent_tree(60, p=p, random_seed=0).data


def words():
    return bs.simulate.latent_tree(60, p=4, kind="discrete", random_seed=0).data.astype(str)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data": numbers()[["x0"]]}, "column"),
        ({"data": numbers().assign(x1=2.0)}, "'x1'.*constant"),
        ({"data": numbers().assign(x1=lambda t: 3 - t["x2"])}, "'x1' and 'x2'.*distance is 0"),
        ({"data": numbers().mask(numbers() > 1.5)}, "missing.*dropna"),
        ({"data": numbers().assign(x1=lambda t: t["x1"] > 0)}, "'x1' holds states.*one kind"),
        ({"data": words().assign(x1=list("abc") * 20)}, "'x1'.*2 states.*merge"),
        ({"data": numbers(), "method": "rgx"}, "'clrg', 'clnj'"),
        ({"data": numbers(), "penalty": "aic"}, "'bic'"),
        ({"data": numbers(), "penalty": "bic", "method": "rg"}, "'clrg' and 'clnj'"),
        ({"data": numbers(), "n": 7}, "`n`"),
        ({"data": words(), "distance": "log"}, "'determinant', 'symmetric'"),
        ({"data": numbers(), "distance": "symmetric"}, "`distance` belongs to .*states.*leave it"),
        ({"data": numbers(), "random_seed": 1}, "`random_seed` belongs to penalty='bic'.*leave it"),
        ({"data": words(), "random_seed": 1}, "`random_seed` belongs to penalty='bic'.*leave it"),
        ({"data": numbers(), "penalty": "bic", "random_seed": 1}, "`random_seed`.*leave it out"),
        ({"distances": np.ones((3, 3)) - np.eye(3), "distance": "symmetric"}, "`distance`.*table"),
        ({"distances": np.ones((3, 3)) - np.eye(3), "random_seed": 1}, "`random_seed`.*table"),
        ({"data": numbers(), "shortest": -1}, "shortest"),
        ({}, "one of both"),
        ({"data": numbers(), "distances": np.eye(3)}, "one of both"),
        ({"distances": np.ones((2, 3))}, "square"),
        ({"distances": np.ones((3, 3))}, "zeros on the diagonal; from 'x0' to 'x0' it is 1"),
        ({"distances": np.eye(3)[[1, 0, 2]] * -1 + np.diag([0, 0, 1.0])}, "'x0' to 'x1' it is -1"),
        ({"distances": np.zeros((3, 3))}, "'x0' and 'x1' is 0"),
        ({"distances": np.array([[0, np.inf], [np.inf, 0]])}, "'x0' and 'x1' is not finite"),
        (
            {"distances": np.ones((3, 3)) - np.eye(3), "penalty": "bic"},
            "`penalty` belongs to a table",
        ),
        ({"distances": np.ones((3, 3)) - np.eye(3), "n": 2}, "`n`"),
    ],
)
def test_bad_input_is_refused_with_the_column_and_the_remedy(options, words):
    with pytest.raises((TableError, ValueError), match=f"(?s){words}"):
        bs.solvers.latent_tree(**options)


def test_distances_of_numbers_have_one_kind():
    with pytest.raises(ValueError, match=r"`distance` belongs to columns of states.*leave it out"):
        bs.solvers.information_distances(numbers(), distance="determinant")


def test_two_columns_are_one_edge():
    table = numbers()[["x0", "x1"]]
    for method in (*METHODS, "clblind"):
        found = bs.solvers.latent_tree(table, method=method)
        assert list(found.graph.edges) == [("x0", "x1")]
        np.testing.assert_allclose(abs(found.edges["correlation"][0]), abs(table.corr().iloc[0, 1]))


def test_independent_columns_still_have_a_tree():
    rng = np.random.default_rng(0)
    for method in (*METHODS, "clblind"):
        found = bs.solvers.latent_tree(rng.normal(size=(100, 12)), method=method)
        assert nx.is_tree(found.graph) and set(found.names) <= set(found.graph)
        assert all(found.graph.degree(h) > 2 for h in found.hidden) or method == "clblind"
    found = bs.solvers.latent_tree(rng.integers(0, 3, (200, 8)), columns="states", penalty="bic")
    assert not found.hidden
