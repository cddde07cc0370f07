"""Missing values given the columns that each column is regressed on."""

import numpy as np
import pytest

from scipy.special import logsumexp

from bayesstruct.precision.kernels.nodewise import graph_score, make_target, make_work
from bayesstruct.precision.kernels.rows.column_imputation import (
    choose_parents,
    draw_cells,
    list_gaps,
    scatter,
)
from bayesstruct.precision.solvers.imputation import fill_gaps, impute

PARENTS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]], np.int8)


def table(n=8, gaps=((0, 0), (0, 1))):
    x = np.random.default_rng(0).normal(size=(n, 3))
    x[:, 1] += 0.9 * x[:, 0]
    x[:, 2] += 0.5 * x[:, 1]
    x = (x - x.mean(0)) / x.std(0, ddof=1)
    for at in gaps:
        x[at] = np.nan
    return x


def target_of(rows):
    return make_target(scatter(rows) / (len(rows) - 1), float(len(rows)))


def moments(x, draws, sweep=draw_cells, parents=PARENTS, seed=1):
    """Means, standard deviations and mean product of two missing values, in batches."""
    rng, missing = np.random.default_rng(seed), np.isnan(x)
    rows, gaps, out = np.where(missing, 0.0, x), list_gaps(missing), []
    target = target_of(rows)
    for _ in range(draws):
        sweep(rng, rows, target.matrix, parents, target.powers, gaps)
        out.append(rows[missing])
    assert np.allclose(target.matrix, np.eye(3) + scatter(rows), atol=1e-8)
    u, v = np.array(out).T
    return np.array([u, v, u * u, v * v, u * v]).reshape(5, 50, -1).mean(2)


def by_quadrature(x, parents=PARENTS):
    """The same from the density on a grid."""
    grid, missing, work = np.linspace(-15.0, 15.0, 151), np.isnan(x), make_work(3)
    log, rows = np.empty((151, 151)), x.copy()
    for a, u in enumerate(grid):
        for b, v in enumerate(grid):
            rows[missing] = u, v
            log[a, b] = graph_score(parents, target_of(rows), work)
    weight = np.exp(log - logsumexp(log))
    first, second = weight.sum(1), weight.sum(0)
    marginal = [w @ grid**k for k in (1, 2) for w in (first, second)]
    return np.array([*marginal, grid @ weight @ grid])


def distance(x, draws=20_000, **options):
    """Largest difference from quadrature in standard errors (the grid is as good as exact)."""
    found = moments(x, draws, **options)
    error = found.std(axis=1) / np.sqrt(50)
    return np.abs((found.mean(axis=1) - by_quadrature(x)) / error).max()


@pytest.mark.statistical
@pytest.mark.parametrize("gaps", [((0, 0), (0, 1)), ((1, 2), (3, 2)), ((0, 0), (4, 2))])
def test_draws_against_quadrature(gaps):
    assert distance(table(gaps=gaps)) < 4.5


def without_children(rng, rows, matrix, parents, powers, gaps):
    """Leave out that a value predicts others."""
    alone = parents.copy()
    alone[2, 1] = 0
    draw_cells(rng, rows, matrix, alone, powers, gaps)


def with_other_powers(rng, rows, matrix, parents, powers, gaps):
    """Forget that a regression with more predictors has more degrees of freedom."""
    draw_cells(rng, rows, matrix, parents, np.full_like(powers, 0.5 * powers[0]), gaps)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [without_children, with_other_powers])
def test_wrong_draws_are_noticed(wrong):
    assert distance(table(), sweep=wrong) > 8.0


@pytest.mark.statistical
def test_values_of_a_normal_table_have_their_conditional_distribution():
    # A reference without any regression: x1 | x0, x2 of a known covariance matrix, of 3,000 rows.
    rng, n = np.random.default_rng(3), 3_000
    covariance = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.5], [0.0, 0.5, 1.0]])
    x = rng.standard_normal((n, 3)) @ np.linalg.cholesky(covariance).T
    x[rng.random(x.shape) < 0.15] = np.nan
    missing = np.isnan(x)
    chosen = missing[:, 1] & ~missing[:, [0, 2]].any(axis=1)
    drawn = np.empty((4, n, 3))
    drawn[:] = x
    drawn[:, missing] = impute(rng, x, np.full((3, 3), 0.3), 4)
    rest = covariance[np.ix_([0, 2], [0, 2])]
    weights = np.linalg.solve(rest, covariance[1, [0, 2]])
    residual = drawn[:, chosen, 1] - x[chosen][:, [0, 2]] @ weights
    spread = np.sqrt(1.0 - covariance[1, [0, 2]] @ weights)
    # about 330 values, which the four tables draw independently given regressions of 3,000 rows
    assert abs(residual.mean()) < 4.5 * spread / np.sqrt(4 * chosen.sum()) + 0.05 * spread
    assert abs(residual.std() / spread - 1.0) < 0.1


def test_parents_come_before_their_children():
    x = table(60, ())
    order = np.array([2, 0, 1])
    parents = choose_parents(order, np.zeros((3, 3)), target_of(x), make_work(3))
    place = np.argsort(order)
    child, parent = np.nonzero(parents)
    assert len(child)
    assert (place[parent] < place[child]).all()


def test_gaps_are_filled_by_regressions():
    x = table(400, [(k, 1) for k in range(40)])
    filled = fill_gaps(x)
    assert np.array_equal(filled[40:], x[40:])
    assert np.corrcoef(filled[:40, 1], filled[:40, 0])[0, 1] > 0.6


def test_a_value_alone_in_its_row_and_columns_without_gaps():
    x = table(6, ((2, 1), (2, 0), (2, 2)))
    drawn = impute(np.random.default_rng(1), x, np.full((3, 3), 0.5), 3)
    assert drawn.shape == (3, 3)
    assert np.isfinite(drawn).all()
