"""Modes of linear structural equations along an order, against least squares, ridge regressions and a general optimiser."""

import itertools
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from scipy.optimize import minimize
from sklearn.linear_model import Lasso, Ridge

from bayesstruct.core.solution import ConvergenceWarning
from bayesstruct.data.errors import TableError
from bayesstruct.sem.solvers.given_order import linear_sem
from bayesstruct.sem.solvers.sink_removal import sink_removal

ORDER = ["c", "a", "d", "b"]


def table(n=60, seed=0):
    """Rows of four dependent columns in different units."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) @ (np.eye(4) + np.triu(rng.normal(size=(4, 4)), 1))
    return pd.DataFrame(x * [1.0, 3.0, 0.5, 2.0] + [5, 0, -2, 1], columns=list("abcd"))


def units(x, variances):
    """Deviations by which the columns are divided."""
    deviations = x.std(ddof=0)
    return deviations if variances == "free" else 0 * deviations + np.sqrt((deviations**2).mean())


def relative_of(variances):
    """Known variances up to a factor."""
    return {"known": {"a": 2.0, "b": 1.0, "c": 0.5, "d": 3.0}}.get(variances)


def log_density(z, weights, deviations, prior, scale):
    """Log posterior in the prior's units, columns in their order, up to a constant, written out."""
    value = 0.0
    for i, s in enumerate(deviations):
        b = weights[i, :i]
        residual = z[:, i] - z[:, :i] @ b
        value -= len(z) * math.log(s) + 0.5 * (residual**2).sum() / s**2
        if prior == "normal":
            value -= len(b) * math.log(s) + 0.5 * (b**2).sum() / (s * scale) ** 2
        if prior == "laplace":
            value -= len(b) * math.log(s) + abs(b).sum() / (s * scale)
    return value


PRIORS = [("flat", None), *itertools.product(["normal", "laplace"], [0.02, 0.3])]
CASES = [
    (variances, *prior)
    for variances, prior in itertools.product(["free", "equal", "known"], PRIORS)
]


@pytest.mark.parametrize(("variances", "prior", "scale"), CASES)
def test_nothing_near_the_mode_is_more_probable(variances, prior, scale):
    x, relative = table(), relative_of(variances)
    found = linear_sem(
        x, ORDER, variances=variances, known_variances=relative, prior=prior, scale=scale, tol=1e-10
    )
    assert found.converged and found.gap <= 1e-10 * len(x)
    unit = units(x, variances)
    z = ((x - x.mean()) / unit)[ORDER].to_numpy()
    unit, places = unit[ORDER].to_numpy(), [x.columns.get_loc(name) for name in ORDER]
    weights = found.weights[np.ix_(places, places)] * unit / unit[:, None]
    deviations = np.sqrt(found.noise_variances[places]) / unit
    best = log_density(z, weights, deviations, prior, scale)
    assert best == pytest.approx(found.objective, abs=1e-6)
    rng = np.random.default_rng(1)
    for _ in range(60):
        moves = 10.0 ** rng.uniform(-5, -1, (4, 4)) * rng.integers(0, 2, (4, 4))
        moved = weights + np.tril(moves * rng.normal(size=(4, 4)), -1)
        factors = np.exp(10.0 ** rng.uniform(-5, -1) * rng.normal(size=4))
        wider = deviations * (factors if variances == "free" else factors[0])
        assert log_density(z, moved, wider, prior, scale) <= best + 1e-9


def test_equal_and_known_variances_stay_in_proportion():
    x = table()
    equal = linear_sem(x, ORDER, variances="equal", prior="laplace").noise_variances
    np.testing.assert_allclose(equal, equal[0], rtol=1e-12)
    relative = relative_of("known")
    known = linear_sem(x, ORDER, variances="known", known_variances=relative).noise_variances
    np.testing.assert_allclose(known / list(relative.values()), known[0] / 2.0, rtol=1e-12)


def test_least_squares_and_ridge_regressions():
    x = table(40)
    z = (x - x.mean()) / x.std(ddof=0)
    flat, ridge = linear_sem(x, ORDER), linear_sem(x, ORDER, prior="normal", scale=0.2)
    for place, child in enumerate(ORDER[1:], start=1):
        before = ORDER[:place]
        fit = np.linalg.lstsq((x - x.mean())[before], (x - x.mean())[child], rcond=None)
        np.testing.assert_allclose(flat.coefficients.loc[child, before], fit[0], rtol=1e-9)
        assert flat.noise_variances[x.columns.get_loc(child)] == pytest.approx(fit[1][0] / 40)
        expected = Ridge(alpha=25.0, fit_intercept=False).fit(z[before], z[child]).coef_
        expected *= x[child].std() / x[before].std()
        np.testing.assert_allclose(ridge.coefficients.loc[child, before], expected, rtol=1e-9)


def test_laplace_priors_give_the_lasso_at_the_scale_that_is_found():
    x = table(80, seed=3)
    z = (x - x.mean()) / x.std(ddof=0)
    found = linear_sem(x, ORDER, prior="laplace", scale=0.05, tol=1e-12)
    deviations = np.sqrt(found.noise_variances) / x.std(ddof=0)
    zeros = 0
    for place, child in enumerate(ORDER[1:], start=1):
        before = ORDER[:place]
        rate = deviations[child] / 0.05 / len(x)
        model = Lasso(alpha=rate, fit_intercept=False, tol=1e-12, max_iter=100_000)
        expected = model.fit(z[before], z[child]).coef_ * (x[child].std() / x[before].std())
        np.testing.assert_allclose(found.coefficients.loc[child, before], expected, atol=1e-6)
        zeros += int((expected == 0).sum())
    assert zeros == 6 - found.graph.number_of_edges() > 0


def test_a_general_optimiser_finds_the_same_maximum():
    x = table(50, seed=4)
    found = linear_sem(x, ORDER, variances="equal", prior="laplace", scale=0.1, tol=1e-12)
    unit = units(x, "equal")
    z = ((x - x.mean()) / unit)[ORDER].to_numpy()
    pairs = [(i, j) for i in range(4) for j in range(i)]

    def negative(theta):
        up, down, rho = theta[:6], theta[6:12], theta[12]
        value = -(4 * 50 + 6) * math.log(rho) + (up.sum() + down.sum()) / 0.1
        slope_up, slope_down = np.full(6, 10.0), np.full(6, 10.0)
        slope_rho, phi = -(4 * 50 + 6) / rho, up - down
        for i in range(4):
            places = [k for k, (child, _) in enumerate(pairs) if child == i]
            residual = rho * z[:, i] - z[:, :i] @ phi[places]
            value += 0.5 * residual @ residual
            slope_rho += residual @ z[:, i]
            slope_up[places] -= z[:, :i].T @ residual
            slope_down[places] += z[:, :i].T @ residual
        return value, np.concatenate([slope_up, slope_down, [slope_rho]])

    bounds = [(0, None)] * 12 + [(1e-6, None)]
    start = np.append(np.full(12, 0.1), 1.0)
    done = minimize(
        negative,
        start,
        jac=True,
        bounds=bounds,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    assert found.objective == pytest.approx(-done.fun, abs=1e-5)
    assert found.noise_variances[0] / unit.iloc[0] ** 2 == pytest.approx(done.x[12] ** -2, rel=1e-4)


def test_the_gap_bounds_what_is_left():
    x, options = table(30, seed=5), {"prior": "laplace", "scale": 0.3}
    best = linear_sem(x, ORDER, tol=1e-12, **options).objective
    for turns in (1, 2, 3, 5):
        with pytest.warns(ConvergenceWarning, match="linear_sem stopped"):
            early = linear_sem(x, ORDER, max_iter=turns, tol=1e-14, **options)
        assert -1e-9 <= best - early.objective <= early.gap


def test_fewer_rows_than_columns_have_a_mode_under_a_prior():
    x = np.random.default_rng(6).normal(size=(15, 30))
    found = linear_sem(x, list(range(30)), prior="laplace", scale=0.2)
    assert found.converged and 0 < found.graph.number_of_edges() < 435
    assert linear_sem(x, list(range(30)), prior="normal").converged
    with pytest.raises(TableError, match="choose prior='laplace' or 'normal'"):
        linear_sem(x, list(range(30)))


def test_sink_removal_with_the_inverse_is_the_mode_along_its_order():
    x = table(60, seed=7)
    removed = sink_removal(x, estimator="inverse")
    found = linear_sem(x, removed.order)
    np.testing.assert_allclose(found.weights, removed.weights, atol=1e-9)
    np.testing.assert_allclose(found.noise_variances, removed.noise_variances, rtol=1e-9)


def test_units_do_not_matter_with_free_variances_and_a_graph_may_be_given():
    x, graph = table(), nx.DiGraph([("c", "a"), ("a", "b")])
    found = linear_sem(x, graph=graph, prior="laplace", scale=0.5)
    scaled = linear_sem(x * [10, 1, 1, 1], graph=graph, prior="laplace", scale=0.5)
    assert set(found.graph.edges) == set(graph.edges)
    b = found.coefficients
    assert scaled.coefficients.loc["a", "c"] == pytest.approx(10 * b.loc["a", "c"], rel=1e-6)
    assert scaled.coefficients.loc["b", "a"] == pytest.approx(b.loc["b", "a"] / 10, rel=1e-6)
    again = linear_sem(x.cov(ddof=0), graph=graph, n=len(x), prior="laplace", scale=0.5)
    np.testing.assert_allclose(again.weights, found.weights, rtol=1e-9)


def test_input_that_cannot_be_used():
    x = table()
    with pytest.raises(TypeError, match="give either"):
        linear_sem(x)
    with pytest.raises(TypeError, match="give either"):
        linear_sem(x, ORDER, graph=nx.DiGraph())
    with pytest.raises(TableError, match="leaves out column 'd'"):
        linear_sem(x, ["a", "b", "c"])
    with pytest.raises(TableError, match="has a cycle over columns 'a' and 'b'"):
        linear_sem(x, graph=nx.DiGraph([("a", "b"), ("b", "a")]))
    with pytest.raises(TableError, match="no columns: 'z'"):
        linear_sem(x, graph=nx.DiGraph([("a", "z")]))
    with pytest.raises(ValueError, match="needs `known_variances`"):
        linear_sem(x, ORDER, variances="known")
    with pytest.raises(ValueError, match=r"`scale` belongs to prior='normal'.*leave it out"):
        linear_sem(x, ORDER, scale=2.0)
    with pytest.raises(ValueError, match="not with 'free'"):
        linear_sem(x, ORDER, known_variances=[1, 1, 1, 1])
    with pytest.raises(TableError, match="that of column 'b' is not"):
        linear_sem(x, ORDER, variances="known", known_variances=[1, 0, 1, 1])
    with pytest.raises(TypeError, match="needs `n`"):
        linear_sem(x.cov(), ORDER)
    with pytest.raises(TableError, match="determine each other"):
        linear_sem(x.cov(ddof=0).assign(d=lambda S: S.a).T.assign(d=lambda S: S.a), ORDER, n=60)
