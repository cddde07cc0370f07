"""Simulation-based calibration of latent features: all numbers of the model, and a missing cell."""

import numpy as np
import pymc as pm
import pytensor
import pytest

from tools.calibration import assert_calibrated

from bayesstruct.models import latent_features
from bayesstruct.steps import LatentFeatureGibbs, LatentFeatureSlice

ROWS, COLUMNS, ROOM = 12, 3, 40
GAP = (4, 1)  # a missing cell
NUMBERS = ("alpha", "noise", "loading_scale")
FEATURES = ("feature", "loading", "x_unobserved")


def simulate(rng):
    """Draw from the prior and the model, without the package."""
    alpha, noise, scale = rng.gamma(2.0, 0.5), abs(rng.normal(0, 0.5)), abs(rng.normal(0, 1.5))
    z = np.zeros((ROWS, 0))
    for i in range(ROWS):
        z[i] = rng.random(z.shape[1]) < z[:i].sum(axis=0) / (i + 1)
        fresh = np.zeros((ROWS, rng.poisson(alpha / (i + 1))))
        fresh[i] = 1
        z = np.column_stack([z, fresh])
    loading = scale * rng.normal(size=(z.shape[1], COLUMNS))
    x = z @ loading + noise * rng.normal(size=(ROWS, COLUMNS))
    truth = {"alpha": alpha, "noise": noise, "loading_scale": scale, "n_features": z.shape[1]}
    truth |= {"entries": z.sum(), "cell": x[GAP]}
    x[GAP] = np.nan
    return truth, x


class HalfAsManyNew(LatentFeatureGibbs):
    """Wrong: features that one row alone has come at half their rate."""

    def _scan(self, feature, loading, x, law):
        class Halved(type(law)):
            def new_rate(self, n):
                return 0.5 * super().new_rate(n)

        return super()._scan(feature, loading, x, Halved(*law))


def tables():
    """The model that users get, and the variable that holds its observed cells."""
    x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    x[GAP] = np.nan
    model = latent_features(
        x,
        alpha=pm.Gamma.dist(2.0, 2.0),
        noise=pm.HalfNormal.dist(0.5),
        loading_scale=pm.HalfNormal.dist(1.5),
        max_features=ROOM,
    )
    observed = model["x_observed"]
    cells = pytensor.shared(model.rvs_to_values[observed].data, name="cells")
    model.rvs_to_values[observed] = cells
    return model, cells


def fitter(kind, *, tune, draws, **options):
    """Compile once; then set the observed cells anew for each table."""
    model, cells = tables()
    with model:
        features = kind([model[v] for v in FEATURES], **options)
        numbers = pm.Slice([model[v] for v in NUMBERS])
    initial = model.initial_point()

    def fit(rows, rng):
        seen = ~np.isnan(rows)
        features.table.x[seen] = rows[seen]
        cells.set_value(rows[seen])
        numbers.w, numbers.n_tunes = np.ones(3), 0.0
        for step in (features, numbers):
            step.setup_chain(rng, tune, draws)
        point, kept = dict(initial), []
        for t in range(tune + draws):
            numbers.tune = t < tune
            for step in (features, numbers):
                point, _ = step.step(point)
            if t >= tune:
                z = point["feature"]
                values = [float(np.exp(point[f"{name}_log__"])) for name in NUMBERS]
                kept.append([*values, z.any(axis=0).sum(), z.sum(), point["x_unobserved"][0]])
        return dict(
            zip((*NUMBERS, "n_features", "entries", "cell"), np.transpose(kept), strict=True)
        )

    return fit


@pytest.mark.calibration
@pytest.mark.compiled
@pytest.mark.parametrize("kind", [LatentFeatureGibbs, LatentFeatureSlice])
def test_the_model_is_calibrated(kind, full):
    if kind is LatentFeatureSlice and not full:
        pytest.skip(
            "the step has its exact posterior in tests/steps; here it would compile once more"
        )
    simulations, draws = (300, 600) if full else (8, 100)
    fit = fitter(kind, tune=100, draws=draws)
    assert_calibrated(simulate, fit, simulations=simulations, seed=1)


@pytest.mark.calibration
@pytest.mark.compiled
def test_a_wrong_step_is_not_calibrated(full):
    if not full:
        pytest.skip("that takes many simulations")
    fit = fitter(HalfAsManyNew, tune=60, draws=150)
    with pytest.raises(AssertionError, match="not uniform"):
        assert_calibrated(simulate, fit, simulations=150, seed=2)
