"""Step of series that share behaviours: exact posterior, and models that it refuses."""

import numpy as np
import pymc as pm
import pytest

from tools.buffets import counts, distance
from tools.series import PRIOR, SMALL, SMALL_STARTS, exact_posterior

from bayesstruct.features.priors.indian_buffet import FeatureLoadings, IndianBuffet
from bayesstruct.series.priors import BehaviourScales, BehaviourTransitions, SwitchingSeries
from bayesstruct.series.steps import SwitchingSeriesMCMC


def small_model(max_features=12, alpha=0.5, prior=PRIOR, x=SMALL, lengths=(2, 2), change=None):
    with pm.Model() as model:
        z = IndianBuffet("feature", alpha, observations=len(lengths), max_features=max_features)
        more = z.sum().astype("float64")
        gamma, kappa, tau, shape, rate = (
            v + more if k == change else v for k, v in enumerate(prior)
        )
        transition = BehaviourTransitions("transition", z, gamma, kappa)
        mean = FeatureLoadings("mean", z, tau, variables=1)
        scale = BehaviourScales("scale", z, shape, rate, variables=1)
        SwitchingSeries(
            "x", z, transition, mean, scale, lengths=lengths, observed=x, seen=np.ones(x.shape)
        )
    return model


@pytest.mark.statistical
def test_the_step_has_the_exact_posterior():
    model = small_model()
    with model:
        step = SwitchingSeriesMCMC(model.free_RVs, rng=np.random.default_rng(5))
    step.setup_chain(np.random.default_rng(5), 0, 1)
    logp, point, seen = model.compile_logp(), model.initial_point(), []
    for _ in range(6000):
        point, _ = step.step(point)
        seen.append(counts(point["feature"]))
    assert np.isfinite(logp(point))
    assert distance(seen, exact_posterior(SMALL, SMALL_STARTS, 0.5, 4)) < 0.06


def test_behaviours_of_the_same_series_come_in_random_order():
    model = small_model(x=np.full((8, 1), 2.0), lengths=[8], alpha=2.0)
    with model:
        step = SwitchingSeriesMCMC(model.free_RVs, rng=np.random.default_rng(7))
    point, first = model.initial_point(), []
    for _ in range(600):
        point, [known] = step.step(point)
        if known["n_features"] == 2:
            near = abs(point["mean"][:2, 0] - 2.0)
            first.append(near[0] < near[1])
    assert len(first) > 100
    # The old one has all rows, and is the nearest to them: by the density as often first as second.
    assert abs(np.mean(first) - 0.5) < 4.5 * 0.5 / np.sqrt(len(first))


@pytest.mark.parametrize("change", range(5))
def test_the_step_refuses_hyperparameters_that_depend_on_behaviours(change):
    with small_model(change=change) as model:
        with pytest.raises(ValueError, match="hyperparameters depend on 'feature'"):
            SwitchingSeriesMCMC(model.free_RVs)


def test_the_step_refuses_what_it_cannot_draw():
    with small_model() as model:
        pm.Potential("more", -model["mean"].sum())
        with pytest.raises(ValueError, match="not all that depends on 'mean'"):
            SwitchingSeriesMCMC(model.free_RVs)
    with small_model() as model, pytest.raises(ValueError, match="drawn by one step"):
        SwitchingSeriesMCMC([model["feature"], model["mean"]])
    with pm.Model() as model:
        z = IndianBuffet("feature", 1.0, observations=2, max_features=5)
        BehaviourTransitions("transition", z, 1.0, 1.0)
        with pytest.raises(ValueError, match="'transition' depends on 'feature'"):
            SwitchingSeriesMCMC(model.free_RVs)
