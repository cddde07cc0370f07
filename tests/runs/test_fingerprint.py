"""By what a checkpoint recognises its model: what draws depend on, and nothing else."""

import numpy as np
import pymc as pm

from bayesstruct.core.recorded import record
from bayesstruct.runs.fingerprint import describe_model, differences


def model(*, used=1.0, unused=1.0, another=False):
    with pm.Model() as out:
        x = pm.Normal("x", pm.Data("used", np.array(used)), 1.0)
        pm.Normal("y", x, 1.0, observed=np.zeros(3))
        record("for_readers", unused)
        if another:
            record("more_for_readers", 2.0)
    return out


def test_data_for_readers_may_change():
    stored = describe_model(model())
    assert set(stored["data"]) == {"used"}
    assert differences(stored, describe_model(model(unused=3.0, another=True))) == []


def test_data_on_which_draws_depend_may_not():
    stored = describe_model(model())
    found = differences(stored, describe_model(model(used=2.0)))
    assert "the data 'used' differ" in found


def test_checkpoints_that_were_stored_with_all_data_are_accepted():
    stored = describe_model(model())
    stored["data"] = {"for_readers": "00000000", "of_old": "11111111", **stored["data"]}
    assert differences(stored, describe_model(model())) == []
