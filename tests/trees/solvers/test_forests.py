"""Penalised forests against all labelled forests of five columns, and their fitted distributions."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from scipy.stats import chi2, multivariate_normal

import bayesstruct as bs

from bayesstruct.data.errors import TableError
from bayesstruct.graphs.spanning_trees.maximum import maximum_spanning_forest
from bayesstruct.trees.kernels.information import pairwise_information

NAMES = list("abcde")


def forests(p):
    """All forests of p labelled nodes, as tuples of edges."""
    pairs = list(itertools.combinations(range(p), 2))
    for size in range(p):
        for lines in itertools.combinations(pairs, size):
            graph = nx.Graph(lines)
            if not lines or nx.is_forest(graph):
                yield lines


FORESTS = list(forests(5))


def table_of(kind, seed, n=60):
    """Five columns, each of which depends on one before it, by half of them as states."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    for j in range(1, 5):
        x[:, j] += rng.uniform(0.2, 0.9) * x[:, rng.integers(j)]
    frame = pd.DataFrame(x, columns=NAMES)
    states = {"numbers": "", "states": "abcde", "mixed": "".join(rng.permutation(NAMES)[:3])}[kind]
    for name in states:
        cuts = np.sort(rng.uniform(-0.8, 0.8, rng.integers(1, 4)))
        frame[name] = pd.Categorical(np.searchsorted(cuts, frame[name])).rename_categories(
            lambda k: f"s{k}"
        )
    return frame


def family_likelihood(frame, child, parent):
    """Largest log likelihood of a column given one other or none, by counts or least squares, and its parameters."""
    y, n = frame[child], len(frame)
    if isinstance(y.dtype, pd.CategoricalDtype):
        own = np.zeros(n, int) if parent is None else frame[parent].cat.codes.to_numpy()
        groups = [y.cat.codes[own == k] for k in np.unique(own)]
        seen = np.concatenate([np.bincount(group) for group in groups])
        total = sum(c * np.log(c) for c in seen if c) - sum(len(g) * np.log(len(g)) for g in groups)
        return total, len(groups) * (y.nunique() - 1)
    design = np.ones((n, 1))
    if parent is not None:
        more = frame[[parent]]
        if isinstance(more[parent].dtype, pd.CategoricalDtype):
            more = pd.get_dummies(more, drop_first=True).astype(float)
        design = np.column_stack([design, more.to_numpy()])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    variance = (residual**2).mean()
    return -n / 2 * (np.log(2 * np.pi * variance) + 1), design.shape[1] + 1


def is_state(frame, j):
    return isinstance(frame.dtypes.iloc[j], pd.CategoricalDtype)


def decomposable(state, graph):
    """Whether no path leads from states over numbers to states."""
    for a, b in itertools.combinations(np.flatnonzero(state).tolist(), 2):
        if nx.has_path(graph, a, b) and not state[nx.shortest_path(graph, a, b)].all():
            return False
    return True


def scored_forests(frame):
    """Edges, log likelihood and parameters of each forest."""
    family = {
        (i, j): family_likelihood(frame, NAMES[i], None if j is None else NAMES[j])
        for i in range(5)
        for j in [None, *range(5)]
        if i != j and not (j is not None and is_state(frame, i) and not is_state(frame, j))
    }
    state, out = np.array([is_state(frame, j) for j in range(5)]), []
    for lines in FORESTS:
        graph = nx.Graph([*lines])
        graph.add_nodes_from(range(5))
        if state.any() and not state.all() and not decomposable(state, graph):
            continue
        likelihood = parameters = 0
        for part in nx.connected_components(graph):
            root = min(part, key=lambda j: (not state[j], j))
            terms = [(root, None), *((child, up) for up, child in nx.bfs_edges(graph, root))]
            likelihood += sum(family[t][0] for t in terms)
            parameters += sum(family[t][1] for t in terms)
        out.append((set(lines), likelihood, parameters))
    return out


def best_tree(scored):
    """Edges of the tree with the largest likelihood."""
    return max((own for own in scored if len(own[0]) == 4), key=lambda own: own[1])[0]


PRICES = {
    "bic": ({"penalty": "bic"}, lambda n, k, _: k * np.log(n) / 2),
    "aic": ({"penalty": "aic"}, lambda n, k, _: k),
    "power": ({"penalty": "power", "exponent": 0.6}, lambda n, k, edges: edges * n**0.4),
    "number": ({"penalty": 0.05}, lambda n, k, edges: edges * n * 0.05),
}


def lines_of(found):
    place = {name: j for j, name in enumerate(found.names)}
    return {
        tuple(sorted((place[a], place[b])))
        for a, b in zip(found.edges["first"], found.edges["second"], strict=True)
    }


def test_the_enumeration_has_all_forests():
    assert [sum(1 for _ in forests(p)) for p in range(1, 6)] == [1, 2, 7, 38, 291]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", ["numbers", "states", "mixed"])
def test_the_forest_is_the_best_of_all(kind, seed):
    frame = table_of(kind, seed)
    options, price = PRICES[list(PRICES)[seed % 4]]
    scored = scored_forests(frame)
    lines, likelihood, parameters = max(
        scored, key=lambda own: own[1] - price(len(frame), own[2], len(own[0]))
    )
    found = bs.solvers.chow_liu(frame, **options)
    assert lines_of(found) == lines
    # Sums of logarithms of some hundred numbers.
    np.testing.assert_allclose(found.log_likelihood, likelihood, rtol=1e-10)
    assert found.parameters == parameters
    np.testing.assert_allclose(found.bic, likelihood - parameters * np.log(60) / 2, rtol=1e-10)
    np.testing.assert_allclose(found.log_density(frame).sum(), likelihood, rtol=1e-10)
    tree = bs.solvers.chow_liu(frame)
    best = best_tree(scored)
    assert lines_of(tree) == best
    if kind != "mixed" and options["penalty"] in ("power", 0.05):
        assert lines <= best


def test_kruskal_on_all_pairs_at_once_is_wrong_for_mixed_columns():
    """The comparison notices paths from states over numbers to states."""
    wrong = 0
    for seed in range(4):
        frame = table_of("mixed", seed)
        best = best_tree(scored_forests(frame))
        information = bs.solvers.chow_liu(frame).information.to_numpy()
        wrong += {tuple(e) for e in maximum_spanning_forest(information).tolist()} != best
    assert wrong


@pytest.mark.parametrize("kind", ["numbers", "states", "mixed"])
def test_larger_penalties_have_fewer_edges_of_the_same(kind):
    frame = table_of(kind, 3)
    found = [lines_of(bs.solvers.chow_liu(frame, penalty=e)) for e in (0, 0.02, 0.1, 0.4, 2.0)]
    assert all(more >= less for more, less in itertools.pairwise(found))
    assert len(found[0]) == 4 and not found[-1]
    powers = [
        lines_of(bs.solvers.chow_liu(frame, penalty="power", exponent=b))
        for b in (1e-9, 0.5, 1 - 1e-9)
    ]
    # A threshold of 1 nat is above log(2), the most that two states have; one of 1 / n is below all but the weakest.
    assert kind != "states" or frame.nunique().max() > 2 or not powers[0]
    assert powers[0] <= powers[1] <= powers[2] <= found[0]


@pytest.mark.statistical
def test_independent_columns_are_joined_as_often_as_chi_square_says():
    rng = np.random.default_rng(0)
    n, epsilon, repeats = 400, 0.004, 2_000
    for r in (2, 3):
        joined = 0
        for _ in range(repeats // 100):
            codes = rng.integers(0, r, (n, 200))
            joint = pairwise_information(codes.astype(float), np.full(200, r))
            joined += (joint[np.arange(100), np.arange(100, 200)] > epsilon).sum()
        expected = chi2.sf(2 * n * epsilon, (r - 1) ** 2)
        # Four standard errors of a share of 2,000 pairs; the chi-square distribution itself is within .005.
        assert abs(joined / repeats - expected) < 4 * np.sqrt(expected / repeats) + 0.005


def test_the_distribution_has_the_marginals_of_the_table():
    frame = table_of("states", 4, n=300)
    found = bs.solvers.chow_liu(frame, penalty="bic")
    levels = [frame[name].cat.categories for name in NAMES]
    every = pd.DataFrame(list(itertools.product(*levels)), columns=NAMES)
    p = np.exp(found.log_density(every))
    np.testing.assert_allclose(p.sum(), 1.0, rtol=1e-12)
    every["p"] = p
    for a, b in found.graph.edges:
        fitted = every.groupby([a, b])["p"].sum()
        seen = frame.groupby([a, b], observed=False).size() / len(frame)
        np.testing.assert_allclose(fitted.sort_index(), seen.sort_index().to_numpy(), atol=1e-12)


def test_the_distribution_of_numbers_has_products_of_correlations_along_paths():
    frame = table_of("numbers", 5)
    found = bs.solvers.chow_liu(frame)
    r, sd = np.eye(5), frame.std(ddof=0).to_numpy()
    for i, j in itertools.combinations(range(5), 2):
        path = nx.shortest_path(found.graph, NAMES[i], NAMES[j])
        steps = [found.graph.edges[e]["weight"] for e in itertools.pairwise(path)]
        r[i, j] = r[j, i] = np.prod(steps)
    law = multivariate_normal(frame.mean(), r * np.outer(sd, sd))
    new = frame.iloc[:7] + 1.0
    np.testing.assert_allclose(found.log_density(new), law.logpdf(new.to_numpy()), rtol=1e-9)


@pytest.mark.parametrize("columns", ["numbers", "mixed"])
@pytest.mark.parametrize("solve", [bs.solvers.chow_liu, bs.solvers.latent_tree])
def test_nothing_is_said_of_a_prior(columns, solve):
    frame = table_of("numbers", 5)
    solve(frame.assign(b=frame["c"] + frame["d"]), columns=columns)  # warnings are errors here


def test_a_mixed_distribution_sums_and_integrates_to_one():
    frame = table_of("mixed", 1)[["a", "b", "c", "d", "e"]]
    state = [name for name in NAMES if frame[name].dtype == "category"]
    number = [name for name in NAMES if name not in state]
    found = bs.solvers.chow_liu(frame)
    rng = np.random.default_rng(0)
    total, draws = [], 4_000
    law = multivariate_normal(frame[number].mean(), 2.0 * frame[number].cov())
    z = law.rvs(draws, random_state=rng).reshape(draws, -1)
    new = pd.DataFrame(z, columns=number)
    for name in state:
        new[name] = rng.choice(frame[name].cat.categories, draws)
    cells = np.prod([frame[name].nunique() for name in state])
    total = np.exp(found.log_density(new[NAMES]) - law.logpdf(z)) * cells
    assert abs(total.mean() - 1) < 4 * total.std() / np.sqrt(draws) < 0.3


def test_units_order_and_names_of_states_do_not_matter():
    frame = table_of("mixed", 7)
    number = [name for name in NAMES if frame[name].dtype != "category"]
    found = bs.solvers.chow_liu(frame, penalty="bic")
    other = frame[list("dbeca")].copy()
    other[number] = 5.0 - 1e4 * other[number]
    for name in set(NAMES) - set(number):
        other[name] = pd.Categorical(other[name].astype(str).str.replace("s", "t"))
    moved = bs.solvers.chow_liu(other, penalty="bic")
    assert set(map(frozenset, moved.graph.edges)) == set(map(frozenset, found.graph.edges))
    np.testing.assert_allclose(moved.information.loc[NAMES, NAMES], found.information, atol=1e-12)


def test_forbidden_edges_and_whole_numbers_as_states():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, 300)
    frame = pd.DataFrame(
        {"a": a, "b": (a + (rng.random(300) < 0.2)) % 3, "c": rng.integers(0, 3, 300)}
    )
    found = bs.solvers.chow_liu(frame, columns="states", penalty="bic")
    assert list(found.graph.edges) == [("a", "b")]
    assert found.components == [["a", "b"], ["c"]]
    kinds = dict.fromkeys("abc", "multinomial")
    same = bs.solvers.chow_liu(frame, kinds=kinds, penalty="bic")
    assert same.bic == found.bic
    without = bs.solvers.chow_liu(frame, columns="states", forbidden=[("b", "a")])
    assert set(map(frozenset, without.graph.edges)) == {frozenset("ac"), frozenset("bc")}
    assert repr(found) == "ForestSolution(3 variables, 1 edges, 2 components)"
    missing = pd.DataFrame({"a": [0], "b": [1], "c": [np.nan]})
    with pytest.raises(TableError, match=r"'c'.*missing"):
        found.log_density(missing)


def numbers():
    return table_of("numbers", 0)


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (numbers()[["a"]], {}, "column"),
        (numbers().assign(b=1.0), {}, "'b'.*constant"),
        (numbers().assign(b=lambda t: 2 - 3 * t["c"]), {}, "'b' and 'c'.*infinite.*leave one"),
        (
            numbers().assign(
                b=lambda t: pd.cut(t["c"], [-9, -1, 0, 9]), c=lambda t: 1.0 * (t["c"] > 0) + 7.5
            ),
            {"kinds": {"c": "normal"}},
            "'b' and 'c'.*infinite",
        ),
        (numbers().mask(numbers() > 2.0), {}, "missing.*dropna"),
        (numbers(), {"columns": "states"}, "'a'"),
        (table_of("states", 0), {"columns": "numbers"}, "'a'"),
        (numbers(), {"columns": "text"}, "'mixed', 'numbers', 'states'"),
        (numbers(), {"columns": "numbers", "kinds": {"a": "normal"}}, "`kinds`"),
        (numbers(), {"states": {"a": [1]}}, "`states`"),
        (numbers(), {"kinds": {"a": "student"}}, "'a'"),
        (numbers(), {"penalty": "mdl"}, "'bic', 'aic', 'power'"),
        (numbers(), {"penalty": -1}, "penalty"),
        (numbers(), {"penalty": "power", "exponent": 1}, "exponent"),
        (numbers(), {"exponent": 0.5}, "`exponent` belongs to penalty='power'; leave it out"),
        (numbers(), {"penalty": "bic", "exponent": 0.5}, "`exponent` belongs to penalty='power'"),
        (numbers(), {"forbidden": [("a", "zz")]}, "zz"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*two values")
def test_bad_input_is_refused_with_the_column_and_the_remedy(table, options, words):
    with pytest.raises((TableError, ValueError), match=f"(?s){words}"):
        bs.solvers.chow_liu(table, **options)


def test_a_declared_state_that_never_occurs_is_refused():
    frame = table_of("states", 0)
    frame["b"] = frame["b"].cat.add_categories(["zz"])
    with (
        pytest.warns(UserWarning, match="never occur"),
        pytest.raises(TableError, match=r"'b'.*'zz'"),
    ):
        bs.solvers.chow_liu(frame, columns="states")
    with pytest.raises(TypeError, match="penalty"):
        bs.solvers.chow_liu(numbers(), penalty=[1])


def test_few_whole_numbers_are_remarked_upon_with_a_remedy_that_works():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 4, 50), "b": rng.normal(size=50)})
    with pytest.warns(UserWarning, match=r"'a': few whole numbers.*pandas.Categorical"):
        found = bs.solvers.chow_liu(frame)
    assert found.parameters == 5
    frame["a"] = pd.Categorical(frame["a"])
    assert bs.solvers.chow_liu(frame).parameters == 3 + 2 + 3


def test_rows_beyond_the_squares_of_floats_have_density_zero():
    rng = np.random.default_rng(3)
    a = rng.normal(size=50)
    table = pd.DataFrame({"a": a, "b": a + rng.normal(size=50), "c": rng.normal(size=50)})
    found = bs.solvers.chow_liu(table)
    with pytest.warns(UserWarning, match="new rows|New rows"):
        logs = found.log_density(table.head(2).assign(a=[1e200, 0.0]))
    assert logs[0] == -np.inf
    assert np.isfinite(logs[1])
