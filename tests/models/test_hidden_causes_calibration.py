"""Simulation-based calibration of hidden causes: all numbers of the model, with a missing cell."""

import numpy as np
import pymc as pm
import pytensor
import pytest

from tools.calibration import alternate, assert_calibrated

from bayesstruct.models import hidden_causes
from bayesstruct.steps import HiddenCauseGibbs

ROWS, COLUMNS, MAX_FEATURES = 8, 4, 40
GAP = (4, 1)  # a missing cell
NUMBERS = ("alpha", "strength", "leak", "base_rate")


def simulate(rng):
    """Draw from the prior and the model, without the package."""
    alpha, strength = rng.gamma(1.0), rng.beta(4, 2)
    leak, base = rng.beta(1, 9), rng.beta(1, 2)
    z = np.zeros((COLUMNS, 0))
    for i in range(COLUMNS):
        z[i] = rng.random(z.shape[1]) < z[:i].sum(axis=0) / (i + 1)
        fresh = np.zeros((COLUMNS, rng.poisson(alpha / (i + 1))))
        fresh[i] = 1
        z = np.column_stack([z, fresh])
    y = rng.random((ROWS, z.shape[1])) < base
    absent = (1 - leak) * (1 - strength) ** (y @ z.T)
    x = (rng.random(absent.shape) >= absent).astype(np.int8)
    truth = {"alpha": alpha, "strength": strength, "leak": leak, "base_rate": base}
    truth |= {"n_features": z.shape[1], "links": z.sum(), "active": y.sum()}
    x[GAP] = -1
    return truth, x


class HalfTheBase(HiddenCauseGibbs):
    """Wrong: causes are active half as often as they are."""

    @staticmethod
    def tensors(part):
        *others, base = HiddenCauseGibbs.tensors(part)
        return [*others, 0.5 * base]


def fitter(kind, *, tune, draws):
    """Compile once; then set the table anew for each simulation."""
    table = (np.arange(ROWS)[:, None] >> np.arange(COLUMNS)) % 2.0  # no two columns alike
    table[:, -1] = np.arange(ROWS) == 0
    table[GAP] = np.nan
    model = hidden_causes(table, max_features=MAX_FEATURES)
    cells = pytensor.shared(model.rvs_to_values[model["x"]].data, name="cells")
    model.rvs_to_values[model["x"]] = cells
    with model:
        causes = kind([model["feature"], model["cause"]])
        numbers = pm.Slice([model[v] for v in NUMBERS])
    initial, inverse = model.initial_point(), [np.exp, *[lambda v: 1 / (1 + np.exp(-v))] * 3]
    names = [model.rvs_to_values[model[v]].name for v in NUMBERS]

    def fit(rows, rng):
        causes.observed = np.ascontiguousarray(np.where(rows == -1, 2, rows).T, np.int8)
        cells.set_value(rows.astype(cells.dtype))
        steps, kept = (causes, numbers), []
        for point in alternate(steps, numbers, initial, rng, tune=tune, draws=draws):
            z, y = point["feature"], point["cause"]
            values = [float(f(point[name])) for f, name in zip(inverse, names, strict=True)]
            kept.append([*values, z.any(axis=0).sum(), z.sum(), y.sum()])
        columns = (*NUMBERS, "n_features", "links", "active")
        return dict(zip(columns, np.transpose(kept), strict=True))

    return fit


@pytest.mark.calibration
@pytest.mark.compiled
def test_the_model_is_calibrated(full):
    simulations, draws = (300, 300) if full else (8, 40)
    fit = fitter(HiddenCauseGibbs, tune=40, draws=draws)
    assert_calibrated(simulate, fit, simulations=simulations, seed=1)


@pytest.mark.calibration
@pytest.mark.compiled
def test_a_wrong_step_is_not_calibrated(full):
    if not full:
        pytest.skip("that takes many simulations")
    fit = fitter(HalfTheBase, tune=40, draws=150)
    with pytest.raises(AssertionError, match="not uniform"):
        assert_calibrated(simulate, fit, simulations=150, seed=2)
