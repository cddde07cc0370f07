"""The check of latent features sees what does not depend on the order of columns."""

import numpy as np
import xarray as xr

from tools.features import shuffled_features

import bayesstruct as bs

Z = np.column_stack([np.arange(30) < 20, np.arange(30) % 2 == 0])
LOADING = np.array([[3.0, 0, 0], [0, -2, 0]])


def test_draws_in_any_order_have_converged():
    tree = shuffled_features(Z, LOADING, chains=4, draws=300, flips=0.2)
    result = bs.check(tree)
    assert result.ok, result
    names = [row.quantity for row in result.rows]
    assert [name.split(" (")[0] for name in names] == [
        "number of features",
        "features of a row",
        "features in common",
        "fitted cell",
    ]


def test_chains_with_different_features_have_not():
    one = shuffled_features(Z, LOADING, chains=2, draws=200, flips=0.2)
    other = shuffled_features(Z[::-1], LOADING, chains=2, draws=200, flips=0.2)
    for name in ("feature", "loading"):
        one["posterior"][name].values[1] = other["posterior"][name].values[0]
    result = bs.check(one)
    assert not result.ok
    bad = [row.quantity for row in result.rows if not row.ok]
    assert any(name.startswith("features in common") for name in bad)


def test_other_parameters_are_checked_too():
    tree = shuffled_features(Z, LOADING, chains=2, draws=200)
    noise = np.random.default_rng(0).normal(size=(2, 200)) + np.array([[0.0], [3.0]])
    tree["posterior"]["noise"] = xr.DataArray(noise, dims=("chain", "draw"))
    row = bs.check(tree).rows[-1]
    assert row.quantity == "noise"
    assert not row.ok
