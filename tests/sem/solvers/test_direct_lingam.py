"""DirectLiNGAM: properties of its order, its regressions and what is known beforehand."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.networks.data.arcs import parent_prior
from bayesstruct.sem.solvers.causal_order import (
    MEASURES,
    _finder,
    _without,
    causal_order,
    standardised,
)
from bayesstruct.sem.solvers.direct_lingam import bootstrapped_graphs
from bayesstruct.sem.solvers.knowledge import read_knowledge

CHAIN = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "d"), ("c", "d")])


def table(n=600, p=5, **options):
    return bs.simulate.linear_sem(n, p, **{"noise": "uniform", "random_seed": 1, **options})


def solve(data, **options):
    return bs.solvers.direct_lingam(data, **{"measure": "entropy", **options})


def follows(order, graph):
    place = {name: k for k, name in enumerate(order)}
    return all(place[a] < place[b] for a, b in graph.edges)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("noise", ["uniform", "laplace"])
def test_graph_and_weights_are_found(measure, noise):
    simulation = table(1_000, 6, noise=noise, expected_neighbours=3, random_seed=3)
    found = solve(simulation.data, measure=measure)
    assert follows(found.order, simulation.graph)
    missed = set(simulation.graph.edges) - set(found.graph.edges)
    assert not missed and len(found.graph.edges) <= len(simulation.graph.edges) + 1
    np.testing.assert_allclose(found.coefficients, simulation.coefficients, atol=0.15)
    np.testing.assert_allclose(found.noise_scale, simulation.noise_scale, rtol=0.1)
    np.testing.assert_allclose(found.total_effects, simulation.total_effects, atol=0.3)
    assert not found.normal_noise.any() and list(found.dependence.index) == list(found.order)


@pytest.mark.parametrize("measure", MEASURES)
def test_order_does_not_depend_on_units_or_places_of_the_columns(measure):
    data = table(400).data
    order = solve(data, measure=measure).order
    scaled = data * [1e-6, 3, -1e4, 1, 0.2] + [5, 0, 0, -1e3, 0]
    assert solve(scaled, measure=measure).order == order
    assert solve(data[["x3", "x1", "x4", "x0", "x2"]], measure=measure).order == order


@pytest.mark.parametrize("measure", ["kernel_difference", "kernel", "entropy"])
@pytest.mark.parametrize("seed", range(3))
def test_comparisons_that_are_left_out_do_not_change_the_order(measure, seed):
    data = table(300, 9, noise="laplace", random_seed=seed).data
    knowledge = read_knowledge(tuple(data))
    quick, full = (
        causal_order(data.to_numpy(), measure, knowledge, complete=complete)
        for complete in (False, True)
    )
    assert quick.order == full.order and quick.evaluations < full.evaluations
    pairs = sum(k * (k - 1) for k in range(2, 10))
    assert full.evaluations == (pairs if measure == "kernel" else pairs // 2)
    np.testing.assert_allclose(quick.dependence, full.dependence, atol=1e-9)


def information(x, y):
    """Kernel mutual information of two standardised columns from matrices of twice as many rows."""
    n, c = len(x), len(x) * 2e-2 / 2
    centre = np.eye(n) - 1 / n
    K, L = (centre @ np.exp(-((v[:, None] - v) ** 2) / 2) @ centre for v in (x, y))
    A, B = K + c * np.eye(n), L + c * np.eye(n)
    joint = np.linalg.slogdet(np.block([[A @ A, K @ L], [L @ K, B @ B]]))[1]
    return -0.5 * (joint - 2 * np.linalg.slogdet(A)[1] - 2 * np.linalg.slogdet(B)[1])


def statistics(x, left):
    """Information of each column with each residual, by equations of the source and least squares of NumPy."""
    unit = {j: (x[j] - x[j].mean()) / x[j].std() for j in left}
    found = {}
    for j in left:
        for i in set(left) - {j}:
            rest = unit[i] - np.polyval(np.polyfit(unit[j], unit[i], 1), unit[j])
            found[j, i] = information(unit[j], rest / rest.std())
    return found


@pytest.mark.parametrize("measure", ["kernel_difference", "kernel"])
def test_kernel_orders_are_those_of_the_sums_of_the_source(measure):
    """Each round in turn: the first cause has the least sum, and the sum is that of dense matrices."""
    simulation = table(120, 4, noise="laplace", expected_neighbours=3, random_seed=4)
    data = simulation.data * [1, 10, 0.1, 3]
    found = causal_order(data.to_numpy(), measure, read_knowledge(tuple(data)))
    x = dict(enumerate(data.to_numpy().T))
    for first, value in zip(found.order[:3], found.dependence[:3], strict=True):
        pairs = statistics(x, sorted(x))
        if measure == "kernel_difference":
            pairs = {(j, i): max(0.0, pairs[j, i] - pairs[i, j]) for j, i in pairs}
        sums = {j: sum(v for (k, _), v in pairs.items() if k == j) for j in x}
        assert min(sums, key=sums.get) == first
        # The factors leave out a trace of a hundredth of that of the regulariser.
        assert value == pytest.approx(sums[first], abs=2e-3)
        cause = x.pop(first)
        x = {i: v - np.polyval(np.polyfit(cause, v, 1), cause) for i, v in x.items()}
    assert found.dependence[3] == 0


@pytest.mark.parametrize("measure", ["kernel_difference", "kernel"])
def test_terms_of_columns_without_a_path(measure):
    """A column that has no path to x0 says nothing against it; one that x0 has no path to stays as it is."""
    causes = np.random.default_rng(7).laplace(size=(3, 100))
    x = standardised(np.vstack([causes.sum(axis=0), causes]))
    no_path = np.zeros((4, 4), bool)
    no_path[1, 0] = no_path[0, 2] = True
    pairs = statistics(dict(enumerate(x)), range(4))
    first = {i: pairs[0, i] for i in (1, 2, 3)} | {2: information(x[0], x[2])}
    if measure == "kernel_difference":
        first = {i: max(0.0, first[i] - pairs[i, 0]) for i in (2, 3)}
    assert all(first.values()), "a term of 0 would say nothing"
    finder = _finder(measure, 4, complete=True)
    best, value = finder(x, np.arange(4), np.arange(4) == 0, no_path)
    assert best == 0 and value == pytest.approx(sum(first.values()), abs=2e-3)
    assert finder.evaluations == len(first)


@pytest.mark.statistical
def test_differences_put_fewer_arcs_against_the_order_than_sums():
    """Weak arcs between all columns: both directions of a pair share their errors."""
    against = dict.fromkeys(("kernel_difference", "kernel"), 0)
    for seed in range(15):
        simulation = table(
            400, 7, noise="laplace", expected_neighbours=6, weights=(0.1, 0.7), random_seed=seed
        )
        known = read_knowledge(tuple(simulation.data))
        truth = simulation.coefficients.to_numpy() != 0
        for measure in against:
            place = np.argsort(causal_order(simulation.data.to_numpy(), measure, known).order)
            child, parent = np.nonzero(truth)
            against[measure] += (place[parent] > place[child]).sum()
    # 5 and 16 of these tables, 3 and 19 of 15 others.
    assert against["kernel_difference"] < 0.7 * against["kernel"], against


def test_residuals_are_uncorrelated_with_the_cause_and_made_of_the_other_noises():
    """Noise that is exactly uncorrelated in the sample gives the residuals of the population."""
    rng = np.random.default_rng(5)
    noise = np.linalg.qr(rng.uniform(-1, 1, (500, 4)) - 0.5)[0]
    noise = np.linalg.qr(np.column_stack([np.ones(500), noise]))[0][:, 1:] * np.sqrt(500)
    direct = np.array([[0, 0, 0, 0], [2, 0, 0, 0], [1, -1, 0, 0], [0, 0.5, 3, 0]], float)
    total = np.linalg.inv(np.eye(4) - direct)
    rows = standardised((noise @ total.T).T)
    rest, left = _without(rows, np.arange(4), 0, np.zeros(4, bool))
    assert left.tolist() == [1, 2, 3]
    np.testing.assert_allclose(rest @ rows[0], 0, atol=1e-9)
    expected = standardised(total[1:, 1:] @ noise.T[1:])
    np.testing.assert_allclose(rest, expected, atol=1e-9)


def test_coefficients_are_strictly_lower_triangular_in_the_order():
    found = solve(table(500, 8).data, prune=None)
    place = [found.names.index(name) for name in found.order]
    direct = found.coefficients.to_numpy()[np.ix_(place, place)]
    assert (direct[np.triu_indices(8)] == 0).all() and (direct[np.tril_indices(8, -1)] != 0).all()
    total = found.total_effects.to_numpy()[np.ix_(place, place)]
    assert (np.diag(total) == 1).all() and (total[np.triu_indices(8, 1)] == 0).all()
    np.testing.assert_allclose(total, np.linalg.inv(np.eye(8) - direct), atol=1e-10)
    assert np.linalg.det(np.eye(8) - found.coefficients) == pytest.approx(1)
    assert found.adjacency.sum() == 28 and nx.is_directed_acyclic_graph(found.graph)


def test_total_effect_of_the_example_of_the_source():
    rng = np.random.default_rng(6)
    e = rng.uniform(-1, 1, (20_000, 3))
    x2 = e[:, 1]
    x1 = 1.5 * x2 + e[:, 0]
    x3 = 0.8 * x1 - 1.5 * x2 + e[:, 2]
    found = solve(pd.DataFrame({"x1": x1, "x2": x2, "x3": x3}))
    assert found.order == ("x2", "x1", "x3")
    assert found.total_effects.loc["x3", "x2"] == pytest.approx(0.8 * 1.5 - 1.5, abs=0.03)


def test_full_knowledge_needs_no_comparison():
    simulation = table(80, 7, noise="gaussian", random_seed=2)
    names = list(simulation.data)
    closure = nx.transitive_closure_dag(simulation.graph)
    known = nx.to_pandas_adjacency(closure, nodelist=names, weight=None).T.astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the noise is normal
        found = solve(simulation.data, measure="kernel", prior_knowledge=known)
    assert found.evaluations == 0 and follows(found.order, simulation.graph)
    assert set(found.graph.edges) <= set(closure.edges)


@pytest.mark.filterwarnings("ignore:The noise")  # residuals along a wrong order
def test_knowledge_is_kept_against_the_table():
    data = table(400, graph=CHAIN).data
    known = pd.DataFrame(-1, index=list("dcba"), columns=list("dcba"))
    known.loc["a", "d"] = 1  # row the effect, column the cause
    found = solve(data, prior_knowledge=known)
    assert found.order.index("d") < found.order.index("a")
    known.loc["a", "d"] = -1
    known.loc["d", "a"] = 0
    assert ("a", "d") in solve(data).graph.edges
    assert ("a", "d") not in solve(data, prior_knowledge=known).graph.edges


@pytest.mark.filterwarnings("ignore:The noise")
def test_required_and_forbidden_arcs_and_tiers():
    data = table(400, graph=CHAIN).data
    with_noise = data.assign(e=np.random.default_rng(1).uniform(size=400))
    assert "e" not in solve(with_noise).graph["a"]
    for prune in ("bic", "cross_validation"):
        found = solve(with_noise, required=[("a", "e")], forbidden=[("a", "b")], prune=prune)
        assert ("a", "e") in found.graph.edges and ("a", "b") not in found.graph.edges
    tiered = solve(data, tiers=[["c", "d"], ["a", "b"]])
    assert {tiered.order[0], tiered.order[1]} == {"c", "d"}
    assert not [arc for arc in tiered.graph.edges if arc[0] in "ab" and arc[1] in "cd"]


def test_consequences_of_what_is_known():
    names = tuple("abcd")
    known = read_knowledge(names, required=[("a", "b"), ("b", "c")])
    assert known.path[0, 2] and known.no_path[2, 0] and known.no_path[1, 0]
    # a -> b and no path from a to d: none from b to d. No path from d to c, b -> c: none from d to b.
    matrix = np.full((4, 4), -1)
    matrix[3, 0] = matrix[2, 3] = 0
    known = read_knowledge(names, matrix, required=[("a", "b"), ("b", "c")])
    assert (
        known.no_path[1, 3] and known.no_path[2, 3] and known.no_path[3, 1] and known.no_path[3, 0]
    )
    # No arc is allowed out of c but to d: c reaches a over d, unless that is forbidden too.
    arcs = [("c", "a"), ("c", "b")]
    assert not read_knowledge(names, forbidden=arcs).no_path[2, 0]
    known = read_knowledge(names, forbidden=[*arcs, ("d", "a"), ("d", "b")])
    assert known.no_path[2:, :2].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior_knowledge": [[0, 1, -1], [-1, 0, 1], [1, -1, 0]]}, "form a cycle, x0 -> x"),
        ({"prior_knowledge": [[0, 1], [1, 0]]}, "shape \\(2, 2\\); give a 3 x 3"),
        ({"prior_knowledge": [[0, 2, 1], [0, 0, 0], [0, 0, 0]]}, "it also has 2"),
        ({"prior_knowledge": [[0.5] * 3] * 3}, "it also has 0.5"),
        ({"required": [("x0", "x1"), ("x1", "x0")]}, "form a cycle"),
        (
            {"required": [("x0", "x1")], "prior_knowledge": [[0, 1, -1], [-1, 0, -1], [-1, -1, 0]]},
            "form a cycle, x0 -> x1 -> x0",
        ),
        (
            {"required": [("x0", "x1")], "prior_knowledge": [[0, 0, 0], [0, 0, 0], [0, 0, 0]]},
            "a path x0 -> ... -> x1, and that there is none",
        ),
        ({"required": [("x0", "z")]}, "columns are 'x0', 'x1' and 'x2'"),
        ({"measure": "hsic"}, "`measure` must be one of 'kernel_difference'"),
        ({"prune": "aic"}, "`prune` must be one of 'bic'"),
        ({"gamma": 0}, "`gamma` must be above 0"),
        ({"gamma": 2, "prune": None}, "`gamma` belongs to pruning.*leave it out"),
        ({"random_seed": 1}, "`random_seed` belongs to prune='cross_validation'; leave it out"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        solve(table(30, 3).data, **options)


def test_tables_that_cannot_be_used_are_refused():
    data = table(30, 3).data
    with pytest.raises(bs.data.TableError, match=r"'x1'.*missing.*dropna"):
        solve(data.mask(np.eye(30, 3, -1) > 0).assign(x0=data.x0, x2=data.x2))
    with pytest.raises(bs.data.TableError, match="3 rows and 3 columns"):
        solve(data[:3])
    total = data.assign(total=data.sum(axis=1))
    # Warnings are errors here: none speaks of a prior, which this estimate does not have
    with pytest.raises(bs.data.TableError, match=r"'x0', 'x1', 'x2' and 'sum'.*residuals vanish"):
        solve(total.rename(columns={"total": "sum"}))


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_units_whose_squares_are_no_numbers_do_not_matter(unit):
    data = table(600, 3).data
    found, far = solve(data), solve(data.assign(x1=data.x1 * unit))
    assert far.order == found.order
    back = far.coefficients.copy()
    back.loc["x1"] /= unit
    back["x1"] *= unit
    np.testing.assert_allclose(back, found.coefficients, rtol=1e-9)
    assert np.count_nonzero(found.coefficients) > 1
    np.testing.assert_array_equal(far.normal_noise, found.normal_noise)


@pytest.mark.statistical
@pytest.mark.parametrize("measure", ["kernel", "entropy"])
def test_direction_of_normal_pairs_is_a_coin_toss_and_that_is_said(measure):
    pair = nx.DiGraph([("a", "b")])
    right = {"gaussian": 0, "laplace": 0}
    for noise in right:
        for seed in range(40):
            data = table(300, graph=pair, noise=noise, random_seed=seed).data
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                right[noise] += solve(data, measure=measure).order == ("a", "b")
            if seed == 0:
                told = any("cannot be told from normal noise" in str(one.message) for one in said)
                assert told == (noise == "gaussian")
    # Of 40 fair coins 9 to 31 are heads, but for 2 in 10,000 times.
    assert 9 <= right["gaussian"] <= 31 and right["laplace"] >= 38


def test_dependence_is_small_where_the_order_is_right():
    simulation = table(2_000, graph=CHAIN, noise="laplace")
    right = solve(simulation.data, measure="kernel")
    wrong = solve(simulation.data, measure="kernel", tiers=[["d"], ["c"], ["b"], ["a"]], prune=None)
    assert right.order[0] == "a" and wrong.order == ("d", "c", "b", "a")
    assert right.dependence.iloc[:2].max() < 0.1


def test_bootstrapped_graphs_keep_what_is_known_and_hold_the_arcs():
    data = table(300, graph=CHAIN, noise="laplace").data
    names, values = list(data), data.to_numpy()
    arcs = parent_prior(names, forbidden=[("c", "d")])
    graphs = bootstrapped_graphs(values, arcs, np.random.default_rng(1), 4)
    truth = nx.to_numpy_array(CHAIN, nodelist=names)
    free = truth * arcs.allowed
    assert all((graph >= free).all() and not graph[~arcs.allowed].any() for graph in graphs)
    again = bootstrapped_graphs(values, arcs, np.random.default_rng(1), 4)
    np.testing.assert_array_equal(graphs, again)
    assert bootstrapped_graphs(values[:7], arcs, np.random.default_rng(1), 4) is None
