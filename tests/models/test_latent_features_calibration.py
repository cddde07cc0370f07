"""Simulation-based calibration of latent features: all numbers of the model, and a missing cell."""

import numpy as np
import pymc as pm
import pytensor
import pytest

from tools.calibration import alternate, assert_calibrated

from bayesstruct.features.kernels.indian_buffet import left_order
from bayesstruct.models import latent_features
from bayesstruct.steps import LatentFeatureGibbs, LatentFeatureSlice

ROWS, COLUMNS, MAX_FEATURES = 12, 3, 40
GAP = (4, 1)  # a missing cell
NUMBERS = ("alpha", "noise", "loading_scale")
FEATURES = ("feature", "loading", "x_unobserved")


def simulate_all(rng):
    """Draw from the prior and the model, without the package: numbers, features, loadings, table."""
    alpha, noise, scale = rng.gamma(2.0, 0.5), abs(rng.normal(0, 0.5)), abs(rng.normal(0, 1.5))
    z = np.zeros((ROWS, 0))
    for i in range(ROWS):
        z[i] = rng.random(z.shape[1]) < z[:i].sum(axis=0) / (i + 1)
        fresh = np.zeros((ROWS, rng.poisson(alpha / (i + 1))))
        fresh[i] = 1
        z = np.column_stack([z, fresh])
    loading = scale * rng.normal(size=(z.shape[1], COLUMNS))
    x = z @ loading + noise * rng.normal(size=(ROWS, COLUMNS))
    return (alpha, noise, scale), z, loading, x


def simulate(rng):
    """What `assert_calibrated` takes: the truth, and the table without a cell."""
    numbers, z, _, x = simulate_all(rng)
    truth = dict(zip(NUMBERS, numbers, strict=True))
    truth |= {"n_features": z.shape[1], "entries": z.sum(), "cell": x[GAP]}
    x[GAP] = np.nan
    return truth, x


class HalfAsManyNew(LatentFeatureGibbs):
    """Wrong: features that one row alone has come at half their rate."""

    def _scan(self, feature, loading, x, given):
        class Halved(type(given)):
            def new_rate(self, n):
                return 0.5 * super().new_rate(n)

        return super()._scan(feature, loading, x, Halved(*given))


def tables():
    """The model that users get, and the variable that holds its observed cells."""
    x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    x[GAP] = np.nan
    model = latent_features(
        x,
        alpha=pm.Gamma.dist(2.0, 2.0),
        noise=pm.HalfNormal.dist(0.5),
        loading_scale=pm.HalfNormal.dist(1.5),
        max_features=MAX_FEATURES,
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
        steps, kept = (features, numbers), []
        for point in alternate(steps, numbers, initial, rng, tune=tune, draws=draws):
            z = point["feature"]
            values = [float(np.exp(point[f"{name}_log__"])) for name in NUMBERS]
            kept.append([*values, z.any(axis=0).sum(), z.sum(), point["x_unobserved"][0]])
        return dict(
            zip((*NUMBERS, "n_features", "entries", "cell"), np.transpose(kept), strict=True)
        )

    return fit


@pytest.mark.calibration
@pytest.mark.compiled
def test_the_model_is_calibrated(full):
    simulations, draws = (300, 600) if full else (8, 100)
    fit = fitter(LatentFeatureGibbs, tune=100, draws=draws)
    assert_calibrated(simulate, fit, simulations=simulations, seed=1)


@pytest.mark.calibration
@pytest.mark.compiled
def test_a_wrong_step_is_not_calibrated(full):
    if not full:
        pytest.skip("that takes many simulations")
    fit = fitter(HalfAsManyNew, tune=60, draws=150)
    with pytest.raises(AssertionError, match="not uniform"):
        assert_calibrated(simulate, fit, simulations=150, seed=2)


class HalfTheMass(LatentFeatureSlice):
    """Wrong: the mass of the process is halved."""

    def _scan(self, feature, loading, x, given):
        return super()._scan(feature, loading, x, given._replace(alpha=0.5 * given.alpha))


def changes(kind, simulations, sweeps=40):
    """What some sweeps change in statistics of a draw of everything, table included, (simulations, k).

    Slice draws mix too slowly for ranks of the truth among draws of a chain; but a chain that begins at the
    truth keeps the joint distribution whatever its length.
    """
    model, cells = tables()
    with model:
        features = kind([model[v] for v in FEATURES])
        numbers = pm.Slice([model[v] for v in NUMBERS])
    initial, rng, out = model.initial_point(), np.random.default_rng(3), []
    seen = np.ones((ROWS, COLUMNS), bool)
    seen[GAP] = False
    for _ in range(simulations):
        truth, z, loading, x = simulate_all(rng)
        features.table.x[seen] = x[seen]
        cells.set_value(x[seen])
        point, order = dict(initial), left_order(z)
        k = len(order)
        point["feature"] = np.zeros_like(initial["feature"])
        point["loading"] = np.zeros_like(initial["loading"])
        point["feature"][:, :k], point["loading"][:k] = z[:, order], loading[order]
        point["x_unobserved"] = np.array([x[GAP]])
        point |= {f"{name}_log__": np.log(v) for name, v in zip(NUMBERS, truth, strict=True)}
        before = statistics(point)
        for step in (features, numbers):
            step.setup_chain(rng, 0, sweeps)
        features.calls = 1  # no search
        for one in numbers.methods:
            one.tune = False
        for _ in range(sweeps):
            for step in (features, numbers):
                point, _ = step.step(point)
        out.append(statistics(point) - before)
    return np.array(out)


def statistics(point):
    z, cell = point["feature"], point["x_unobserved"][0]
    used = z.any(axis=0).sum()
    numbers = [float(point[f"{name}_log__"]) for name in NUMBERS]
    return np.array([*numbers, used, used**2, z.sum(), np.tanh(cell), np.tanh(cell) ** 2])


def worst_z(moved):
    return np.abs(moved.mean(axis=0) / moved.std(axis=0) * np.sqrt(len(moved))).max()


@pytest.mark.calibration
@pytest.mark.compiled
def test_slice_draws_keep_the_joint_distribution(full):
    if not full:
        pytest.skip("the step has its exact posterior in tests/steps; here it compiles once more")
    assert worst_z(changes(LatentFeatureSlice, 2_000)) < 3.9  # one in a thousand, for eight
    assert worst_z(changes(HalfTheMass, 500)) > 5.0
