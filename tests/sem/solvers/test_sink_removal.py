"""Sink removal: exact recovery, factorisations, samples, and input that cannot be used."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from scipy.optimize import linprog

from bayesstruct.data.errors import TableError, TableWarning
from bayesstruct.precision.solvers.clime import clime
from bayesstruct.sem.solvers.sink_removal import sink_removal


def model(p, degree, rng, low=0.5, high=1.0):
    """Coefficients of a random graph with this expected degree; row the child."""
    B = rng.uniform(low, high, (p, p)) * rng.choice([-1, 1], (p, p))
    B *= np.tril(rng.random((p, p)) < degree / (p - 1), -1)
    order = rng.permutation(p)
    return B[np.ix_(order, order)]


def precision_of(B, variances):
    """Precision matrix of a linear model."""
    mixing = np.eye(len(B)) - B
    return mixing.T @ np.diag(1 / np.broadcast_to(variances, len(B))) @ mixing


def rows_of(B, variances, n, rng, noise="signs"):
    """Draw rows."""
    p = len(B)
    unit = rng.choice([-1.0, 1.0], (n, p)) if noise == "signs" else rng.normal(size=(n, p))
    return unit * np.sqrt(variances) @ np.linalg.inv(np.eye(p) - B).T


@pytest.mark.parametrize("p", [50, 100, 200])
def test_the_true_precision_matrix_gives_the_true_model(p):
    rng = np.random.default_rng(p)
    for _ in range(3):
        B = model(p, 2, rng)
        found = sink_removal(precision=precision_of(B, 0.8))
        assert abs(found.weights - B).max() < 1e-12
        np.testing.assert_allclose(found.noise_variances, 0.8, rtol=1e-12)


def test_known_variances_give_the_true_model_and_their_factor_does_not_matter():
    rng = np.random.default_rng(1)
    for factor in (0.1, 1.0, 10.0):
        B, variances = model(50, 3, rng), rng.uniform(0.05, 20, 50)
        omega = precision_of(B, factor * variances)
        found = sink_removal(precision=omega, variances=variances)
        assert abs(found.weights - B).max() < 1e-10
        np.testing.assert_allclose(found.noise_variances, factor * variances, rtol=1e-10)


def test_large_coefficients_serve_in_place_of_equal_variances():
    rng = np.random.default_rng(2)
    B, deviations = model(20, 2, rng, 3.0, 5.0), rng.uniform(1.01, 3, 20)
    found = sink_removal(precision=precision_of(B, deviations**2))
    assert abs(found.weights - B).max() < 1e-6


def test_any_matrix_is_factorised_along_the_order():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(8, 8))
    omega = root @ root.T + np.eye(8)
    found = sink_removal(precision=omega, variances=rng.uniform(0.1, 10, 8))
    np.testing.assert_allclose(
        precision_of(found.weights, found.noise_variances), omega, rtol=1e-10
    )
    places = [found.names.index(name) for name in found.order]
    assert not np.triu(found.weights[np.ix_(places, places)]).any()
    assert np.prod(1 / found.noise_variances) == pytest.approx(np.linalg.det(omega), rel=1e-10)


def test_the_inverse_has_the_regressions_of_greatest_likelihood_along_the_order():
    rng = np.random.default_rng(4)
    x = pd.DataFrame(rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6)), columns=list("abcdef"))
    found = sink_removal(x, estimator="inverse")
    centred = x - x.mean()
    for k, child in enumerate(found.order):
        before = list(found.order[:k])
        fit = np.linalg.lstsq(centred[before], centred[child], rcond=None)[0] if before else []
        residual = centred[child] - (centred[before] @ fit if before else 0.0)
        row = found.coefficients.loc[child]
        np.testing.assert_allclose(row[before], fit, atol=1e-10)
        assert found.noise_variances[x.columns.get_loc(child)] == pytest.approx(
            (residual**2).mean()
        )


def test_two_graphs_with_one_precision_matrix():
    first, second = np.zeros((3, 3)), np.zeros((3, 3))
    slope = np.sqrt(0.5)
    first[0, 1], first[1, 2] = 0.7, slope
    second[0, 1], second[2, 1] = 0.7, slope
    chain, fork = precision_of(first, [1, 1, 2]), precision_of(second, [1, 2, 1])
    np.testing.assert_allclose(chain, fork, atol=1e-15)
    found = [sink_removal(precision=chain, variances=v).weights for v in ([1, 1, 2], [1, 2, 1])]
    np.testing.assert_allclose(found, [first, second], atol=1e-12)


def test_permutations_signs_and_one_factor_move_the_estimate_along_and_units_of_columns_do_not():
    rng = np.random.default_rng(5)
    B = model(8, 3, rng)
    S = np.linalg.inv(precision_of(B, 0.8))
    order, signs = rng.permutation(8), rng.choice([-1, 1], 8)
    turned = (S * np.outer(signs, signs))[np.ix_(order, order)]
    expected = (B * np.outer(signs, signs))[np.ix_(order, order)]
    np.testing.assert_allclose(
        sink_removal(turned, estimator="inverse").weights, expected, atol=1e-12
    )
    np.testing.assert_allclose(sink_removal(1e3 * S, estimator="inverse").weights, B, atol=1e-12)
    units = rng.uniform(0.2, 5, 8)
    scaled = S * np.outer(units, units)
    known = sink_removal(scaled, estimator="inverse", variances=units**2)
    np.testing.assert_allclose(known.weights, B * np.outer(units, 1 / units), atol=1e-10)
    assert abs(sink_removal(scaled, estimator="inverse").weights - known.weights).max() > 0.1


@pytest.mark.parametrize("rows", ["all", "support"])
@pytest.mark.parametrize("noise", ["signs", "normal"])
def test_a_sample_gives_the_graph(rows, noise):
    rng = np.random.default_rng(6)
    B = model(20, 2, rng)
    x = rows_of(B, 0.8, 2000, rng, noise)
    S = x.T @ x / len(x)
    found = sink_removal(S, n=len(x), rows=rows, threshold=0.25)
    assert np.array_equal(found.weights != 0, B != 0)
    assert abs(found.weights - B).max() < 0.15
    assert nx.is_directed_acyclic_graph(found.graph)
    assert found.penalty == pytest.approx(0.5 * np.sqrt(np.log(20) / 2000))


@pytest.mark.parametrize(("p", "support"), [(50, 0.0), (100, 0.05)])
def test_sparse_graphs_are_found_and_only_with_a_threshold(p, support):
    rng = np.random.default_rng(7)
    B = model(p, 0.5, rng)
    x = rows_of(B, 0.8, 1000, rng)
    found = sink_removal(x.T @ x / len(x), n=len(x), threshold=0.25, support=support)
    assert np.array_equal(found.weights != 0, B != 0)
    if not support:
        every = sink_removal(x.T @ x / len(x), n=len(x))
        assert every.weights[B != 0].all() and (B != 0).sum() < 0.1 * (every.weights != 0).sum()
        assert "No threshold" in every.notes[-1]


def test_the_criterion_keeps_the_best_of_nested_regressions():
    rng = np.random.default_rng(15)
    B = model(12, 3, rng)
    x = rows_of(B, 0.8, 300, rng, "normal")
    every = sink_removal(x, estimator="inverse")
    found, z = sink_removal(x, estimator="inverse", threshold="bic"), x - x.mean(axis=0)
    for child in range(12):
        parents = np.flatnonzero(every.weights[child])
        ranked = parents[
            np.argsort(-abs(every.weights[child, parents]) * z[:, parents].std(axis=0))
        ]
        scores = []
        for k in range(len(ranked) + 1):
            residual = z[:, child]
            if k:
                columns = z[:, ranked[:k]]
                residual = residual - columns @ np.linalg.lstsq(columns, residual, rcond=None)[0]
            scores.append(300 * np.log(residual @ residual) + k * (np.log(300) + 2 * np.log(12)))
        best = ranked[: int(np.argmin(scores))]
        assert set(np.flatnonzero(found.weights[child])) == set(best)
        assert np.array_equal(found.weights[child, best], every.weights[child, best])
    assert np.array_equal(found.weights != 0, B != 0)
    with pytest.raises(TypeError, match="needs the number of rows"):
        sink_removal(precision=precision_of(B, 0.8), threshold="bic")


def test_an_isolated_arc_turns_round_where_its_child_has_much_less_noise():
    rng = np.random.default_rng(16)
    B, parent, child = rng.uniform(0.5, 1, 10**6), *rng.uniform(0.5, 1, (2, 10**6))
    turned = child < parent * (1 - B**2)
    at = [-(2 / 3) * b**3 + 0.5 * np.arctanh(b) for b in (0.5, np.sqrt(0.5))]
    assert turned.mean() == pytest.approx(2 * (at[1] - at[0]), abs=0.0007)  # four standard errors
    assert 2 * (at[1] - at[0]) == pytest.approx(0.02733, abs=1e-5)
    some = np.append(np.flatnonzero(turned)[:20], np.flatnonzero(~turned)[:80])
    for k in some:
        arc = np.array([[0, 0], [B[k], 0]])
        found = sink_removal(precision=precision_of(arc, [parent[k], child[k]]))
        assert found.order == (("x1", "x0") if turned[k] else ("x0", "x1"))


def test_without_the_variances_a_model_that_needs_them_is_not_found():
    rng, exact = np.random.default_rng(8), {True: 0, False: 0}
    for _ in range(6):
        B, variances = model(50, 2, rng), rng.uniform(0.5, 2, 50)
        x = rows_of(B, 3 * variances, 4000, rng, "normal")
        for known in exact:
            options = {"variances": variances} if known else {}
            found = sink_removal(x.T @ x / len(x), estimator="inverse", threshold=0.25, **options)
            exact[known] += np.array_equal(found.weights != 0, B != 0)
    assert exact == {True: 6, False: 0}


@pytest.mark.parametrize("rows", ["all", "support"])
def test_known_variances_serve_linear_programs_too(rows):
    rng = np.random.default_rng(17)
    B, variances = model(20, 2, rng), rng.uniform(0.5, 2, 20)
    x = rows_of(B, 3 * variances, 4000, rng, "normal")
    options = {"threshold": 0.25, "rows": rows}
    found = sink_removal(x, variances=variances, **options)
    assert np.array_equal(found.weights != 0, B != 0)
    assert not np.array_equal(sink_removal(x, **options).weights != 0, B != 0)
    np.testing.assert_allclose(found.noise_variances / variances, 3.0, rtol=0.3)


def test_unequal_variances_cost_some_arcs_even_of_the_true_matrix():
    rng = np.random.default_rng(9)
    found, true, both = 0, 0, 0
    for _ in range(40):
        B = model(50, 0.5, rng)
        arcs = sink_removal(
            precision=precision_of(B, rng.uniform(0.5, 1, 50)), threshold=1e-9
        ).weights
        found, true = found + (arcs != 0).sum(), true + (B != 0).sum()
        both += ((arcs != 0) & (B != 0)).sum()
    # .959 and .973 in the population for this density; 40 graphs have some 490 arcs.
    assert both / found == pytest.approx(0.959, abs=0.03)
    assert both / true == pytest.approx(0.973, abs=0.03)


def updated(S, omega, sink, penalty, rows):
    """Algorithm 2 in its own words, with another solver."""
    omega, near = omega.copy(), np.flatnonzero(omega[sink])
    alive = [k for k in range(len(S)) if k != sink and omega[k].any()]
    for j in (k for k in near if k != sink):
        columns = sorted((set(np.flatnonzero(omega[j])) | set(near)) - {sink})
        for which in (alive, columns) if rows == "all" else (columns,):
            X, k = S[np.ix_(which, columns)], len(columns)
            e = (np.array(which) == j).astype(float)
            done = linprog(
                np.ones(2 * k),
                A_ub=np.block([[X, -X], [-X, X]]),
                b_ub=np.concatenate([penalty + e, penalty - e]),
            )
            if done.x is not None:
                omega[j, columns] = omega[columns, j] = done.x[:k] - done.x[k:]
                break
    omega[sink] = omega[:, sink] = 0.0
    return omega


@pytest.mark.parametrize("rows", ["all", "support"])
def test_the_updates_are_those_of_the_algorithm_with_another_solver(rows):
    rng = np.random.default_rng(10)
    x = rows_of(model(6, 3, rng), 0.8, 150, rng, "normal")
    S, penalty = x.T @ x / len(x), 0.12
    omega, weights, left = clime(S, penalty).precision, np.zeros((6, 6)), list(range(6))
    while left:
        sink = min(left, key=lambda i: omega[i, i])
        left.remove(sink)
        weights[sink, left] = -omega[sink, left] / omega[sink, sink]
        omega = updated(S, omega, sink, penalty, rows)
    np.testing.assert_allclose(
        sink_removal(S, penalty=penalty, rows=rows).weights, weights, atol=1e-8
    )


def test_other_estimates_and_names():
    rng = np.random.default_rng(11)
    B = model(10, 2, rng)
    x = pd.DataFrame(rows_of(B, 0.8, 3000, rng, "normal"), columns=[f"gene{i}" for i in range(10)])
    for options in ({"estimator": "graphical_lasso", "penalty": 0.01}, {"update": "schur"}):
        found = sink_removal(x, threshold=0.25, **options)
        assert np.array_equal(found.weights != 0, B != 0)
        assert "not a mode" in found.notes[1]
    arcs = {(f"gene{j}", f"gene{i}") for i, j in np.argwhere(B).tolist()}
    assert set(found.graph.edges) == arcs
    assert np.array_equal(found.adjacency, (B != 0).T)
    variances = {f"gene{i}": 1.0 for i in reversed(range(10))}
    again = sink_removal(x, threshold=0.25, update="schur", variances=variances)
    assert again.order == found.order
    for parent, child in itertools.product(found.names, repeat=2):
        weight = found.coefficients.loc[child, parent]
        assert (weight != 0) == found.graph.has_edge(parent, child)


def test_fewer_rows_than_columns_serve_without_a_penalty():
    rows = np.random.default_rng(1).normal(size=(25, 40)) * np.linspace(1.0, 1.5, 40)
    with pytest.warns(TableWarning, match="is taken, a little more than the smallest"):
        found = sink_removal(rows, threshold=0.25)
    again = sink_removal(rows, threshold=0.25, penalty=found.penalty)
    pd.testing.assert_frame_equal(found.coefficients, again.coefficients)


def test_input_that_cannot_be_used():
    rng = np.random.default_rng(12)
    wide = pd.DataFrame(rng.normal(size=(8, 10)))
    table = pd.DataFrame(rng.normal(size=(50, 3)), columns=list("abc"))
    with pytest.raises(ValueError, match="use estimator='clime'"):
        sink_removal(wide, estimator="inverse")
    with pytest.raises(ValueError, match="not positive definite"):
        sink_removal(precision=[[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(TableError, match="symmetric square"):
        sink_removal(precision=table)
    with pytest.raises(TypeError, match="either a table"):
        sink_removal(table, precision=np.eye(3))
    with pytest.raises(TypeError, match="needs the number of rows"):
        sink_removal(table.cov())
    with pytest.raises(ValueError, match="from 1 on"):
        sink_removal(table, penalty=1.0)
    with pytest.raises(ValueError, match="use update='schur'"):
        sink_removal(table, estimator="inverse", update="lp")
    with pytest.raises(ValueError, match="options of update='lp'"):
        sink_removal(table, update="schur", rows="support")
    with pytest.raises(ValueError, match="`threshold` must be one of 'bic'"):
        sink_removal(table, threshold="aic")
    with pytest.raises(ValueError, match="do not apply"):
        sink_removal(precision=np.eye(3) + 0.1, penalty=0.1)


def test_known_variances_that_cannot_be_used():
    table = pd.DataFrame(np.random.default_rng(13).normal(size=(50, 3)), columns=list("abc"))
    for variances, message in [
        ([1.0, 2.0], "has shape"),
        ([1.0, -2.0, 1.0], "that of column 'b' is not"),
        ([1.0, np.nan, 1.0], "'b'"),
        ({"a": 1.0, "b": 2.0}, "leaves out column 'c'"),
        ({"a": 1.0, "b": 2.0, "c": 1.0, "d": 1.0}, "unknown column 'd'"),
        (pd.Series([1.0, 2.0, 1.0], index=["a", "b", "z"]), "unknown column 'z'"),
    ]:
        with pytest.raises(TableError, match=message):
            sink_removal(table, variances=variances)


def test_standardised_columns_are_said_to_have_lost_their_order():
    table = pd.DataFrame(np.random.default_rng(14).normal(size=(50, 3)) * [1, 2, 3])
    with pytest.warns(TableWarning, match="the order of the columns is in their variances"):
        sink_removal(table.corr(), n=50)
    with pytest.warns(TableWarning, match="standardised"):
        sink_removal((table - table.mean()) / table.std())
    sink_removal(table.corr(), n=50, variances=[1.0, 1.0, 2.0])
