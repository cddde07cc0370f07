"""Runs that an earlier layout of the package wrote are continued by this one.

`interrupted/` holds runs that were stopped after 14 of 20 iterations at commit f309d0e, each with the
draws of the same run without interruption.
"""

import shutil

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

STORED = Path(__file__).with_name("interrupted")


def numbers():
    x = np.random.default_rng(20261129).standard_normal((16, 3))
    x[:, 1] += x[:, 0]
    x[:, 2] -= x[:, 1]
    return pd.DataFrame(np.round(4 * x), columns=list("abc"))


def codes():
    x = np.random.default_rng(20261129).integers(0, 2, size=(16, 3))
    x[:8, 1] = x[:8, 0]
    return pd.DataFrame(x, columns=list("abc"))


MODELS = {
    "gaussian": lambda: bs.models.gaussian_graphical(numbers()),
    "neighbourhoods": lambda: bs.models.gaussian_neighbourhoods(numbers()),
    "ising": lambda: bs.models.ising(codes()),
    "network": lambda: bs.models.bayesian_network(numbers()),
    "features": lambda: bs.models.latent_features(numbers(), max_features=6),
}


def continued(name, folder):
    return bs.sample(
        12, tune=8, chains=1, cores=1, random_seed=5, checkpoint=folder, model=MODELS[name](),
        progressbar=False, compute_convergence_checks=False,
    )  # fmt: skip


@pytest.fixture(params=list(MODELS))
def stored(request, tmp_path):
    shutil.copytree(STORED / request.param, tmp_path / "run")
    whole = dict(np.load(tmp_path / "run" / "uninterrupted.npz"))
    (tmp_path / "run" / "uninterrupted.npz").unlink()
    return request.param, tmp_path / "run", whole


@pytest.mark.chain
def test_a_run_of_the_earlier_layout_is_continued(stored):
    name, folder, whole = stored
    posterior = continued(name, folder)["posterior"]
    assert set(posterior.data_vars) == set(whole)
    for variable, draws in whole.items():
        # Processors differ in the last bits.
        np.testing.assert_allclose(posterior[variable].values, draws, rtol=1e-7, atol=1e-9)


def test_the_stored_run_is_not_finished(stored):
    _, folder, _ = stored
    assert 0 < bs.load_checkpoint(folder)["posterior"].sizes["draw"] < 12
