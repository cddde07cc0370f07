"""The correction of composite posteriors, where the truth is known in closed form."""

import importlib

import numpy as np
import pymc as pm
import pytest

import bayesstruct as bs

from bayesstruct.models import ising, pairwise_mrf

QUIET = {"progressbar": False, "chains": 2, "cores": 1, "quiet": True, "random_seed": 1}
N = 400


@pytest.fixture(scope="module")
def independent():
    """Independent fair coins: the pseudo-likelihood counts each pair twice."""
    x = np.random.default_rng(0).integers(0, 2, (N, 3))
    with ising(x, coding="pm", edge_probability=1.0, slab_scale=10.0) as model:
        idata = pm.sample(1000, tune=50, compute_convergence_checks=False, **QUIET)
    return model, idata


@pytest.mark.chain
def test_weights_of_independent_columns_get_their_standard_error(independent):
    model, idata = independent
    corrected = bs.sandwich(idata, model)
    before, after = (
        {k: t["posterior"][k].std(("chain", "draw")).values for k in ("bias", "weight")}
        for t in (idata, corrected)
    )
    # Information of a weight: n under the likelihood, 2 n under the pseudo-likelihood.
    np.testing.assert_allclose(before["weight"], np.sqrt(0.5 / N), rtol=0.1)
    np.testing.assert_allclose(after["weight"], np.sqrt(1.0 / N), rtol=0.1)
    np.testing.assert_allclose(after["bias"], np.sqrt(1.0 / N), rtol=0.1)
    np.testing.assert_allclose(
        corrected["posterior"]["weight"].mean(("chain", "draw")),
        idata["posterior"]["weight"].mean(("chain", "draw")),
        atol=1e-12,
    )
    assert (corrected["posterior"]["edge"] == idata["posterior"]["edge"]).all()
    assert len(bs.edge_table(corrected)) == 3


@pytest.mark.chain
def test_draws_without_labels_are_corrected_likewise(independent):
    model, idata = independent
    plain = idata.copy()
    plain["posterior"] = idata["posterior"].to_dataset().drop_vars(["node", "pair"])
    corrected, wanted = (bs.sandwich(draws, model)["posterior"] for draws in (plain, idata))
    np.testing.assert_array_equal(corrected["weight"].values, wanted["weight"].values)


@pytest.mark.chain
def test_absent_edges_stay_absent_and_strengths_follow():
    rng = np.random.default_rng(1)
    a, c = rng.integers(0, 3, (2, 80))
    b = np.where(rng.random(80) < 0.6, a, rng.integers(0, 3, 80))
    with pairwise_mrf(np.column_stack([a, b, c]), prior="spike_slab") as model:
        idata = pm.sample(200, tune=50, compute_convergence_checks=False, **QUIET)
        corrected = bs.sandwich(idata)
    potential = corrected["posterior"]["potential"].values
    assert ((potential == 0) == (idata["posterior"]["potential"].values == 0)).all()
    strength = corrected["posterior"]["weight"].values
    assert ((strength > 0) == (idata["posterior"]["edge"].values == 1)).all()
    assert (strength != idata["posterior"]["weight"].values).any()
    assert model is not None


@pytest.mark.chain
def test_draws_are_corrected_once_and_with_their_own_model(independent):
    model, idata = independent
    with pytest.raises(ValueError, match="corrected already"):
        bs.sandwich(bs.sandwich(idata, model), model)
    other = np.random.default_rng(1).integers(0, 2, (N, 3))
    with pytest.raises(ValueError, match="another table"):
        bs.sandwich(idata, ising(other, coding="pm", edge_probability=1.0, slab_scale=10.0))


@pytest.mark.chain
def test_refusals(independent):
    model, idata = independent
    with pytest.raises(ValueError, match="too few"):
        bs.sandwich(idata.isel(draw=slice(0, 4)), model)
    with pytest.raises(ValueError, match="the model that was sampled"):
        bs.sandwich(idata)
    x = np.random.default_rng(0).integers(0, 2, (20, 3))
    with pytest.raises(ValueError, match="pseudo"):
        bs.sandwich(idata, ising(x, likelihood="exact"))
    gaps = x.astype(float)
    gaps[0, 0] = np.nan
    with pytest.raises(ValueError, match="complete table"):
        bs.sandwich(idata, ising(gaps))
    with pytest.raises(ValueError, match="another model"):
        bs.sandwich(idata, ising(np.column_stack([x, x[:, 0] ^ 1 ^ x[:, 1]])))


@pytest.mark.chain
def test_an_uncertain_edge_of_full_tables_does_not_blow_the_others_up():
    """Biases move with its presence, so that covariances counted pair by pair are not definite."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 300)
    b = np.where(rng.random(300) < 0.6, a, rng.integers(0, 3, 300))
    c = np.where(rng.random(300) < 0.5, b, rng.integers(0, 3, 300))
    with pairwise_mrf((np.column_stack([a, b, c]) > 0).astype(int)):
        idata = pm.sample(500, tune=100, compute_convergence_checks=False, **QUIET)
        corrected = bs.sandwich(idata)
    before, after = (
        bs.edge_table(tree).set_index(["source", "target"]) for tree in (idata, corrected)
    )
    assert 0.5 < before["probability"].min() < 0.95
    after = after.loc[before.index]
    np.testing.assert_allclose(after["mean"], before["mean"], atol=0.1)
    widths = (table["hdi_high"] - table["hdi_low"] for table in (before, after))
    np.testing.assert_array_less(*widths)
    assert (after["hdi_high"] - after["hdi_low"]).max() < 2


@pytest.mark.chain
def test_a_correction_that_is_out_of_bounds_is_refused(independent, monkeypatch):
    model, idata = independent
    module = importlib.import_module("bayesstruct.fields.modes.sandwich")
    monkeypatch.setattr(module, "_TOO_FAR", 1.2)
    with pytest.raises(ValueError, match=r"would make a standard deviation \d+ times as large"):
        bs.sandwich(idata, model)


@pytest.mark.chain
def test_draws_that_were_sorted_are_refused(independent):
    model, idata = independent
    with pytest.raises(
        ValueError, match="`pair` of the draws of 'weight' is not that of the model"
    ):
        bs.sandwich(idata.isel(pair=[2, 1, 0]), model)
