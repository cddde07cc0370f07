"""The step for t rows and columns that count by their order against NUTS, which knows the model by its density."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from tools.batches import mean_and_error

import bayesstruct as bs

from bayesstruct.distributions import (
    ColumnMeans,
    DegreesOfFreedom,
    IncompleteGraphicalStudent,
    LatentValues,
    MissingStudentValues,
    MissingWeightedValues,
    ValueWeights,
)

P, N = 3, 6
QUIET = {"progressbar": False, "cores": 1, "compute_convergence_checks": False}


def table():
    z = np.random.default_rng(0).standard_t(3, size=(N, P))
    z[:, 1] += 0.8 * z[:, 0]
    return z


def quantities(idata):
    """Bounded functions of the draws, chain after chain."""
    K = idata["posterior"]["K"].values
    upper = np.triu_indices(P, 1)
    d = np.sqrt(np.diagonal(K, axis1=2, axis2=3))
    rho = -K[..., *upper] / (d[..., upper[0]] * d[..., upper[1]])
    out = [rho, rho**2, np.log(d), np.log(d) ** 2]
    for name in ("nu", "mean", "x_missing"):
        if name in idata["posterior"]:
            value = idata["posterior"][name].values.reshape(*K.shape[:2], -1)
            value = np.log(value) if name == "nu" else np.tanh(value)
            out += [value, value**2]
    return np.concatenate(out, axis=2)


def assert_agree(gibbs, nuts):
    """Means within 4.5 standard errors of the two chains together."""
    found = []
    for idata in (gibbs, nuts):
        values = quantities(idata)
        found.append(mean_and_error(values.reshape(-1, values.shape[-1]), 40)[:2])
    (a, error_a), (b, error_b) = found
    z = (a - b) / np.hypot(error_a, error_b)
    assert np.abs(z).max() < 4.5, z


@pytest.mark.chain
@pytest.mark.slow
@pytest.mark.compiled
def test_t_rows_with_missing_values():
    x, missing = table(), np.zeros((N, P), bool)
    missing[0, 1] = missing[4, 2] = missing[4, 0] = True
    with pm.Model() as model:
        matrix = bs.GraphicalLasso("K", P, 1.0)
        rows = (ColumnMeans("mean", 0.0, 1.0, shape=P), matrix, np.zeros(P), np.ones(P))
        rows = (*rows, DegreesOfFreedom("nu", 4.0, 0.5))
        MissingStudentValues("x_missing", *rows, table=x, missing=missing)
        IncompleteGraphicalStudent("x", *rows, missing=missing, observed=x)
        gibbs = pm.sample(6_000, tune=200, chains=1, random_seed=1, **QUIET)
        step = pm.NUTS(model.free_RVs, target_accept=0.9, max_treedepth=7)
        nuts = pm.sample(1_500, tune=500, chains=1, random_seed=2, step=step, **QUIET)
    assert_agree(gibbs, nuts)


@pytest.mark.chain
@pytest.mark.slow
@pytest.mark.compiled
def test_values_with_weights_of_their_own():
    x, missing = table(), np.zeros((N, P), bool)
    missing[0, 1] = missing[4, 2] = missing[4, 0] = True
    with pm.Model():
        matrix = bs.GraphicalLasso("K", P, 1.0)
        rows = (ColumnMeans("mean", 0.0, 1.0, shape=P), matrix, np.zeros(P), np.ones(P))
        known = {"table": x, "missing": missing}
        weights = ValueWeights("w", *rows, DegreesOfFreedom("nu", 4.0, 0.5), **known)
        MissingWeightedValues("x_missing", *rows, weights, **known)
        gibbs = pm.sample(10_000, tune=200, chains=1, random_seed=1, **QUIET)
    with pm.Model() as model:  # PyMC's own distributions, without the missing values
        matrix = bs.GraphicalLasso("K", P, 1.0)
        mean, nu = pm.Normal("mean", 0.0, 1.0, shape=P), pm.Gamma("nu", 4.0, 0.5)
        weights = pm.Gamma("w", nu / 2, nu / 2, shape=(N, P))
        for i, seen in enumerate(~missing):
            kept = np.flatnonzero(seen)
            spread = 1.0 / pt.sqrt(weights[i, kept])
            covariance = pt.linalg.inv(matrix)[kept][:, kept] * spread[:, None] * spread
            pm.MvNormal(f"x{i}", mean[kept], covariance, observed=x[i, kept])
        step = pm.NUTS(model.free_RVs, target_accept=0.9, max_treedepth=7)
        nuts = pm.sample(1_200, tune=500, chains=1, random_seed=2, step=step, **QUIET)
    assert "w" in gibbs["posterior"]
    del gibbs["posterior"]["x_missing"]
    assert_agree(gibbs, nuts)


@pytest.mark.chain
@pytest.mark.slow
@pytest.mark.compiled
def test_columns_by_order():
    x = table()
    codes = np.argsort(np.argsort(x, axis=0), axis=0)
    with pm.Model():
        matrix = bs.GraphicalLasso("K", P, 1.0)
        known = {"table": x, "codes": codes, "start": codes / 2 - 1.2}
        LatentValues("z", np.zeros(P), matrix, 0.0, 1.0, **known)
        gibbs = pm.sample(8_000, tune=200, chains=1, random_seed=1, **QUIET)
    order = np.argsort(x, axis=0)
    ordered = pm.distributions.transforms.ordered
    with pm.Model() as model:
        matrix = bs.GraphicalLasso("K", P, 1.0)
        columns = [
            pm.Flat(f"z{j}", shape=N, default_transform=ordered, initval=np.arange(N) / 2 - 1.2)
            for j in range(P)
        ]
        z = pt.stack([c[np.argsort(order[:, j])] for j, c in enumerate(columns)], axis=1)
        log_det = 2 * pt.log(pt.diagonal(pt.linalg.cholesky(matrix))).sum()
        pm.Potential("rows", 0.5 * (N * log_det - (z @ matrix * z).sum()))
        step = pm.NUTS(model.free_RVs, target_accept=0.9, max_treedepth=7)
        nuts = pm.sample(2_000, tune=500, chains=1, random_seed=2, step=step, **QUIET)
    assert_agree(gibbs, nuts)
