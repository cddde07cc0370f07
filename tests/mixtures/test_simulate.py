"""Simulated mixtures of regressions."""

import numpy as np
import pandas as pd
import pytest

from bayesstruct.simulate import dp_glm


@pytest.mark.parametrize("family", ["gaussian", "logistic", "poisson"])
def test_responses_have_their_means(family):
    made = dp_glm(4000, 2, family=family, slope=0.5, random_seed=1)
    k = made.cluster.to_numpy()
    step = made.data[["x0", "x1"]].to_numpy() - made.centre.to_numpy()[k]
    own = made.coefficient.to_numpy()[k]
    eta = own[:, 0] + (step * own[:, 1:]).sum(axis=1)
    link = {"gaussian": eta, "logistic": 1 / (1 + np.exp(-eta)), "poisson": np.exp(eta)}
    np.testing.assert_allclose(made.mean, link[family])
    variance = {"gaussian": 0.09, "logistic": made.mean * (1 - made.mean), "poisson": made.mean}
    z = (made.data["y"] - made.mean) / np.sqrt(variance[family])
    assert abs(z.mean()) < 4 / np.sqrt(4000)
    assert abs((z**2).mean() - 1) < 0.25
    assert (abs(step.mean(axis=0)) < 4 / np.sqrt(4000)).all()
    assert set(k) == {0, 1, 2}


def test_the_same_seed_gives_the_same_table():
    pd.testing.assert_frame_equal(dp_glm(30, random_seed=2).data, dp_glm(30, random_seed=2).data)
    assert repr(dp_glm(30, random_seed=2)) == "MixtureSimulation(30 rows, 2 predictors, 3 clusters)"


def test_bad_options():
    for options, words in [
        ({"family": "gamma"}, "`family`"),
        ({"n_clusters": 0}, "`n_clusters`"),
        ({"p": 1.5}, "`p`"),
        ({"noise": -1}, "`noise`"),
        ({"slope": "1"}, "`slope`"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            dp_glm(20, **{"random_seed": 1, **options})
