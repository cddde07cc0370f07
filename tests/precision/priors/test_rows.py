"""Rows of a table, whole and with gaps, against scipy."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from scipy import stats

from bayesstruct.distributions import (
    ColumnMeans,
    GraphicalNormal,
    IncompleteGraphicalNormal,
    MissingValues,
)

K = np.array([[1.0, 0.3, -0.5], [0.3, 1.5, 0.1], [-0.5, 0.1, 2.0]])
MEAN, LOCATION, SCALE = (
    np.array([0.3, -1.0, 0.5]),
    np.array([10.0, -3.0, 0.0]),
    np.array([2.0, 0.5, 1.0]),
)
ROWS = LOCATION + SCALE * np.random.default_rng(0).normal(size=(6, 3))
MISSING = np.zeros((6, 3), bool)
MISSING[0, 1] = MISSING[2, 0] = MISSING[2, 2] = MISSING[5, 2] = True
COVARIANCE = np.linalg.inv(K) * np.outer(SCALE, SCALE)


def reference(mean=MEAN):
    return stats.multivariate_normal(LOCATION + SCALE * mean, COVARIANCE)


@pytest.mark.parametrize("means", ["one", "each"])
def test_complete_rows(means):
    mean = MEAN if means == "one" else MEAN + np.arange(6.0)[:, None]
    rv = GraphicalNormal.dist(mean, K, LOCATION, SCALE, shape=(6, 3))
    logp = pm.logp(rv, ROWS).eval()
    assert logp.shape == (6,)
    expected = [
        reference(m).logpdf(x) for m, x in zip(np.broadcast_to(mean, (6, 3)), ROWS, strict=True)
    ]
    np.testing.assert_allclose(logp, expected, rtol=1e-8)


def test_scalars_stand_for_all_columns():
    rv = GraphicalNormal.dist(0.0, K, 1.0, 2.0, shape=(6, 3))
    expected = stats.multivariate_normal(np.ones(3), 4 * np.linalg.inv(K)).logpdf(ROWS)
    np.testing.assert_allclose(pm.logp(rv, ROWS).eval(), expected, rtol=1e-8)


def observed_part(rows):
    out = []
    for x, m in zip(rows, MISSING, strict=True):
        o = ~m
        normal = stats.multivariate_normal((LOCATION + SCALE * MEAN)[o], COVARIANCE[np.ix_(o, o)])
        out.append(normal.logpdf(x[o]))
    return np.array(out)


@pytest.mark.parametrize("filler", [0.0, 1e6, np.nan])
def test_incomplete_rows_count_observed_values_only(filler):
    rv = IncompleteGraphicalNormal.dist(MEAN, K, LOCATION, SCALE, missing=MISSING)
    logp = pm.logp(rv, np.where(MISSING, filler, ROWS)).eval()
    assert logp.shape == (6,)
    np.testing.assert_allclose(logp, observed_part(ROWS), rtol=1e-8)


def test_observed_and_missing_make_the_complete_row():
    args = (MEAN, K, LOCATION, SCALE)
    observed = pm.logp(IncompleteGraphicalNormal.dist(*args, missing=MISSING), ROWS).eval()
    rv = MissingValues.dist(*args, table=np.where(MISSING, np.nan, ROWS), missing=MISSING)
    missing = pm.logp(rv, ROWS[MISSING]).eval()
    assert missing.shape == ()
    complete = reference().logpdf(ROWS).sum()
    np.testing.assert_allclose(observed.sum() + missing, complete, rtol=1e-10)


@pytest.mark.chain
def test_the_identity_holds_for_gradients():
    k = pt.dmatrix("k")
    args = (MEAN, k, LOCATION, SCALE)
    parts = pm.logp(IncompleteGraphicalNormal.dist(*args, missing=MISSING), ROWS).sum()
    parts += pm.logp(MissingValues.dist(*args, table=ROWS, missing=MISSING), ROWS[MISSING])
    whole = pm.logp(GraphicalNormal.dist(*args, shape=(6, 3)), ROWS).sum()
    a, b = (pt.grad(v, k).eval({k: K}) for v in (parts, whole))
    np.testing.assert_allclose(a + a.T, b + b.T, rtol=1e-7, atol=1e-9)


@pytest.mark.compiled
def test_moments_of_draws():
    rv = GraphicalNormal.dist(MEAN, K, LOCATION, SCALE, shape=(20_000, 3))
    x = pm.draw(rv, random_seed=1)
    # Four standard errors; that of a covariance is sqrt((s_ij^2 + s_ii s_jj) / n).
    error = np.sqrt(np.diag(COVARIANCE) / len(x))
    assert (np.abs(x.mean(0) - LOCATION - SCALE * MEAN) < 4 * error).all()
    spread = np.sqrt((COVARIANCE**2 + np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE))) / len(x))
    assert (np.abs(np.cov(x.T) - COVARIANCE) < 4 * spread).all()


def test_draws_of_incomplete_rows_are_complete():
    rv = IncompleteGraphicalNormal.dist(MEAN, K, LOCATION, SCALE, missing=MISSING, shape=(6, 3))
    draws = pm.draw(rv, 3_000, random_seed=1)
    assert draws.shape == (3_000, 6, 3)
    flat = draws.reshape(-1, 3)
    error = np.sqrt(np.diag(COVARIANCE) / len(flat))
    assert (np.abs(flat.mean(0) - LOCATION - SCALE * MEAN) < 4 * error).all()


@pytest.mark.parametrize("mean", [0.3, MEAN, MEAN + np.arange(6.0)[:, None]], ids=np.shape)
def test_incomplete_rows_have_the_shape_of_their_table(mean):
    args = (mean, K, LOCATION, SCALE)
    rv = IncompleteGraphicalNormal.dist(*args, missing=MISSING)
    assert pm.draw(rv, random_seed=1).shape == (6, 3)
    with pm.Model() as model:
        IncompleteGraphicalNormal("x", *args, missing=MISSING)
    np.testing.assert_allclose(
        model.initial_point()["x"], np.broadcast_to(LOCATION + SCALE * mean, (6, 3))
    )


@pytest.mark.chain
@pytest.mark.compiled
def test_moments_of_missing_values():
    rv = MissingValues.dist(MEAN, K, LOCATION, SCALE, table=ROWS, missing=MISSING)
    draws = pm.draw(rv, 8_000, random_seed=1)
    z, at = (ROWS - LOCATION) / SCALE - MEAN, 0
    assert draws.shape == (8_000, 4)
    for r in np.flatnonzero(MISSING.any(axis=1)):
        m = MISSING[r]
        covariance = np.linalg.inv(K[np.ix_(m, m)])
        mean = MEAN[m] - covariance @ K[np.ix_(m, ~m)] @ z[r, ~m]
        mean, covariance = LOCATION[m] + SCALE[m] * mean, covariance * np.outer(SCALE[m], SCALE[m])
        x = draws[:, at : at + m.sum()]
        at += m.sum()
        assert (np.abs(x.mean(0) - mean) < 4 * np.sqrt(np.diag(covariance) / len(x))).all()
        # Relative error of a variance of 8,000 draws is 0.016; bound at four of them.
        np.testing.assert_allclose(
            np.cov(x.T).reshape(covariance.shape), covariance, rtol=0.07, atol=0.07
        )


def test_support_points():
    with pm.Model() as model:
        GraphicalNormal("x", MEAN, K, LOCATION, SCALE, shape=(4, 3))
        MissingValues("imputed", MEAN, K, LOCATION, SCALE, table=ROWS, missing=MISSING)
        ColumnMeans("mean", 0.5, 1.0, shape=3)
    point = model.initial_point()
    np.testing.assert_allclose(point["x"], np.broadcast_to(LOCATION + SCALE * MEAN, (4, 3)))
    assert point["imputed"].shape == (4,)
    np.testing.assert_allclose(point["mean"], 0.5)


def test_a_scale_of_zero_is_refused():
    from pymc.logprob.utils import ParameterValueError

    rv = GraphicalNormal.dist(MEAN, K, LOCATION, np.array([1.0, 0.0, 1.0]), shape=(6, 3))
    with np.errstate(all="ignore"), pytest.raises(ParameterValueError, match="scale > 0"):
        pm.logp(rv, ROWS).eval()
