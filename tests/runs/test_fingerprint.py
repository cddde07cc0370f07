"""Checksums of models: constants that only readers need may be added to a model between versions."""

import pytest

import bayesstruct as bs

from bayesstruct.runs.fingerprint import describe_model, differences

MODELS = {
    "ising": lambda rng: bs.models.ising(rng.integers(0, 2, (30, 3))),
    "latent_features": lambda rng: bs.models.latent_features(rng.normal(size=(8, 3)), noise=0.5),
    "hidden_causes": lambda rng: bs.models.hidden_causes(rng.integers(0, 2, (30, 3)), leak=0.1),
    "neighbourhoods": lambda rng: bs.models.ising_neighbourhoods(rng.integers(0, 2, (30, 3))),
    "covariates": lambda rng: bs.models.gaussian_graphical(
        rng.normal(size=(30, 3)), covariates=rng.normal(size=(30, 1))
    ),
}
ADDED = {"column_mean", "state_node", "covariate_center", "covariate_unit", "cause_leak"}


@pytest.mark.parametrize("kind", MODELS)
def test_constants_recorded_later_do_not_refuse_a_checkpoint(kind, rng):
    now = describe_model(MODELS[kind](rng))
    later = {name for name in now["data"] if name in ADDED or name.startswith("feature_")}
    assert later
    stored = now | {"data": {k: v for k, v in now["data"].items() if k not in later}}
    assert differences(stored, now) == []
    # Where they are stored they count, and so does any other constant.
    changed = now | {"data": now["data"] | {min(later): "0"}}
    assert differences(changed, now) == [f"the data {min(later)!r} differ"]
    more = now | {"data": now["data"] | {"other": "0"}}
    assert differences(now, more) == ["'other' is in only one of the models"]
