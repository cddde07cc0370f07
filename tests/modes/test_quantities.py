"""Quantities for ArviZ: which entries they are, that labels have no part in them, and that figures can be drawn."""

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pytest

from tools.features import shuffled_features
from tools.posteriors import posterior

import bayesstruct as bs

from bayesstruct.modes.quantities import batch_variance


def edges(probabilities, draws=200, chains=2, **kwargs):
    rng = np.random.default_rng(1)
    shape = (chains, draws, len(probabilities))
    drawn = (rng.random(shape) < np.asarray(probabilities)).astype(int)
    return posterior(drawn, weight=drawn * rng.normal(0.3, 0.1, shape), **kwargs)


def test_constant_entries_are_left_out_and_told():
    idata = edges([0.0, 0.5, 1.0])
    found = bs.quantities(idata)["posterior"]
    assert "edge[v0 -- v2]" in found
    assert not {"edge[v0 -- v1]", "edge[v1 -- v2]", "weight[v0 -- v1]"} & {*found.data_vars}
    assert "weight[v1 -- v2]" in found  # always there, with a weight that varies
    assert "edge: of 3 entries 2 are constant" in found.attrs["left_out"]
    np.testing.assert_array_equal(found["edge[v0 -- v2]"], idata["posterior"]["edge"][..., 1])
    np.testing.assert_array_equal(
        found["number of edges"], idata["posterior"]["edge"].values.sum(axis=-1)
    )


def test_the_entries_that_mix_worst_are_shown():
    rng = np.random.default_rng(2)
    drawn = (rng.random((2, 400, 6)) < 0.5).astype(int)
    drawn[..., 4] = np.repeat(drawn[:, :10, 4], 40, axis=1)  # as probable, but rarely drawn anew
    drawn[..., 1] = rng.random((2, 400)) < 0.01  # a probability that is known well
    apart = rng.normal(size=(2, 400)) + 3 * np.arange(2)[:, None]
    idata = posterior(drawn, weight=rng.normal(size=drawn.shape))
    idata["posterior"]["weight"][..., 2] = apart
    found = {*bs.quantities(idata, var_names=["edge", "weight"], most=2)["posterior"].data_vars}
    assert found == {"edge[v1 -- v3]", "weight[v0 -- v3]"}
    five = {*bs.quantities(idata, var_names="edge", most=5)["posterior"].data_vars}
    assert "edge[v0 -- v2]" not in five and len(five) == 5


def test_the_variance_of_means_of_batches_is_that_of_independent_draws():
    draws = np.random.default_rng(3).normal(0, 2, size=(4, 10_000, 50))
    # Means of 100 draws with variance 4, of which there are 400 for each entry: standard error 1% over 50 entries.
    np.testing.assert_allclose(batch_variance(draws).mean(), 0.04, rtol=0.04)


def test_features_are_followed_without_their_order():
    z = np.column_stack([np.arange(12) < 5, np.arange(12) % 2 == 0])
    loading = np.array([[3.0, 0, 0], [0, -2, 0]])
    idata = shuffled_features(z, loading, chains=2, draws=100, flips=0.2)
    found = bs.quantities(idata)["posterior"]
    assert len(found) <= az.rcParams["plot.max_subplots"]
    assert {name.split("[")[0] for name in found} <= {
        "number of features",
        "features of a row",
        "features in common",
        "fitted value",
    }
    feature = idata["posterior"]["feature"].values
    np.testing.assert_array_equal(found["features of a row[3]"], feature[:, :, 3].sum(axis=-1))


def test_unknown_names_and_results_in_which_nothing_moves_are_refused():
    with pytest.raises(ValueError, match=r"no quantity 'edges'.*'edge', 'weight'"):
        bs.quantities(edges([0.5] * 3), var_names="edges")
    with pytest.raises(ValueError, match=r"none of these quantities varies.*bs.check"):
        bs.quantities(posterior(np.ones((2, 50, 3), int)))
    with pytest.raises(ValueError, match="most"):
        bs.quantities(edges([0.5] * 3), most=0)


def test_ranks_of_indicators_can_be_drawn():
    idata = edges([0.0, 0.5, 1.0], draws=50)
    with pytest.raises(ValueError, match="strictly increasing"):  # else the advice is out of date
        az.plot_rank(idata, var_names="edge")
    az.plot_rank(bs.quantities(idata, var_names=["edge", "weight"]))
    plt.close("all")
