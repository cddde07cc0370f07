"""Densities and draws of latent values, and of tables of which the order counts."""

import numpy as np
import pymc as pm
import pytest

from scipy import stats

from bayesstruct.distributions import LatentValues, OrderedRows

K = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.5]])
CODES = np.array([[0, -2, 1], [2, -2, 0], [1, -2, 1], [-1, -1, 0], [1, -2, 1]])
TABLE = np.random.default_rng(0).normal(size=CODES.shape)
Z = np.where(CODES >= 0, CODES, 0.3) + 0.01 * np.arange(15).reshape(5, 3)
LATENT = CODES > -2
LOCATION, SCALE = np.array([0.0, 5.0, 0.0]), np.array([1.0, 2.0, 1.0])
VALUES = LatentValues.dist(
    np.zeros(3), K, LOCATION, SCALE, table=TABLE, codes=CODES, start=np.where(CODES >= 0, CODES, 0)
)


def test_density_is_that_of_complete_rows():
    rows = np.where(LATENT, Z, TABLE)
    covariance = np.linalg.inv(K) * np.outer(SCALE, SCALE)
    expected = stats.multivariate_normal(LOCATION, covariance).logpdf(rows).sum()
    np.testing.assert_allclose(pm.logp(VALUES, Z[LATENT]).eval(), expected)


@pytest.mark.parametrize(("place", "value", "allowed"), [((4, 0), 2.5, False), ((4, 0), 1.9, True), ((2, 2), -0.5, False), ((3, 0), 99.0, True), ((3, 1), -99.0, True)])  # fmt: skip
def test_another_order_has_no_density(place, value, allowed):
    z = Z.copy()
    z[place] = value
    assert np.isfinite(pm.logp(VALUES, z[LATENT]).eval()) == allowed


def test_chains_begin_where_the_order_is_right():
    with pm.Model() as model:
        LatentValues("z", *VALUES.owner.inputs[1:3], table=TABLE, codes=CODES, start=Z)
    assert np.isfinite(model.compile_logp()(model.initial_point()))


@pytest.mark.statistical
def test_draws_are_quantiles_of_the_columns():
    table = np.array([[0.0, 10.0], [0.0, 20.0], [1.0, 40.0], [np.nan, 80.0]])
    matrix = np.array([[4.0, -1.5], [-1.5, 1.0]])
    dist = OrderedRows.dist(np.zeros(2), matrix, table=table, by_order=[True, True], size=20_000)
    rows = pm.draw(dist, random_seed=1)
    assert set(rows[:, 0]) == {0.0, 1.0}
    np.testing.assert_allclose((rows[:, 0] == 1).mean(), 1 / 3, atol=0.015)
    np.testing.assert_allclose([(rows[:, 1] == v).mean() for v in table[:, 1]], 0.25, atol=0.015)
    # Both above their medians: 1/4 + arcsin(rho) / (2 pi).
    rho, low = 0.75, rows[:, 1] >= 40
    upper = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf(
        [-stats.norm.ppf(2 / 3), 0.0]
    )
    np.testing.assert_allclose((low & (rows[:, 0] == 1)).mean(), upper, atol=0.015)


def test_rows_have_no_log_likelihood():
    dist = OrderedRows.dist(
        np.zeros(2), np.eye(2), table=np.zeros((3, 2)), by_order=[True, True], size=3
    )
    assert pm.logp(dist, np.zeros((3, 2))).sum().eval() == 0
    with pytest.raises(ValueError, match="no log likelihood"):
        pm.logp(dist, np.zeros((3, 2))).eval()
