"""Observed values beside predictive draws: which values they are, in which order, and that figures take them."""

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import bayesstruct as bs

LABELS = {"observation": range(4), "node": ["a", "b"]}


def result(table, drawn, **groups):
    """Made-up result of a table of two columns and predictive draws of shape (chain, draw, row, column)."""
    dims = ("observation", "node")
    posterior = {"mean": (("chain", "draw"), np.zeros(drawn.shape[:2]))}
    data = {
        "posterior": xr.Dataset(posterior),
        "observed_data": xr.Dataset({"x": (dims, table)}, LABELS),
        "posterior_predictive": xr.Dataset({"x": (("chain", "draw", *dims), drawn)}, LABELS),
    }
    return xr.DataTree.from_dict(data | groups)


def numbers():
    rng = np.random.default_rng(1)
    table = rng.normal(size=(4, 2))
    table[2, 0] = np.nan
    drawn = rng.normal(size=(2, 30, 4, 2))
    return table, drawn


def test_missing_values_are_left_out_of_both_sides():
    table, drawn = numbers()
    drawn[:, :, 2, 0] = 1e6  # the draws of the missing value
    found = bs.observed_values(result(table, drawn))
    labels = ["a[0]", "b[0]", "a[1]", "b[1]", "b[2]", "a[3]", "b[3]"]
    assert found["observed_data"]["value"].values.tolist() == labels
    by_label = found["posterior_predictive"]["x"]
    assert by_label.dims == ("chain", "draw", "value") and float(by_label.max()) < 10
    for label in labels:
        row, column = int(label[2]), "ab".index(label[0])
        assert float(found["observed_data"]["x"].sel(value=label)) == table[row, column]
        np.testing.assert_array_equal(by_label.sel(value=label), drawn[..., row, column])


@pytest.mark.filterwarnings("ignore:Found chain dimension")  # of tables that ArviZ makes inside
def test_states_of_a_table_with_gaps_are_whole_numbers():
    table = np.array([[0, 1], [1, np.nan], [2, 0], [0, 0.0]])
    drawn = np.random.default_rng(2).integers(0, 3, size=(2, 30, 4, 2)).astype(float)
    found = bs.observed_values(result(table, drawn))
    assert (
        found["observed_data"]["x"].dtype.kind
        == found["posterior_predictive"]["x"].dtype.kind
        == "i"
    )
    az.plot_ppc_rootogram(found)  # which takes neither a matrix nor floating-point numbers
    plt.close("all")


def test_whole_numbers_by_chance_stay_numbers():
    table, drawn = np.array([[0, 1], [1, 3], [2, 0], [0, 0.0]]), numbers()[1]
    assert bs.observed_values(result(table, drawn))["observed_data"]["x"].dtype.kind == "f"


def test_values_that_were_set_are_left_out():
    was_set = np.zeros((4, 2), int)
    was_set[0, 1] = 1
    constant = xr.Dataset({"cell_set": (("observation", "node"), was_set)}, LABELS)
    found = bs.observed_values(result(*numbers(), constant_data=constant))
    assert found["observed_data"].sizes["value"] == 6
    assert "b[0]" not in found["observed_data"]["value"]


def test_columns_are_chosen_by_name():
    table, drawn = numbers()
    found = bs.observed_values(result(table, drawn), columns="a")
    assert found["observed_data"]["x"].values.tolist() == table[[0, 1, 3], 0].tolist()
    with pytest.raises(ValueError, match="no column 'c'; there are a, b"):
        bs.observed_values(result(table, drawn), columns=["c"])


def test_densities_are_kept_if_they_are_of_single_values():
    table, drawn = numbers()
    dims = ("chain", "draw", "observation", "node")
    own = xr.Dataset({"x": (dims, drawn)}, LABELS)
    found = bs.observed_values(result(table, drawn, log_likelihood=own))
    assert found["log_likelihood"]["x"].dims == ("chain", "draw", "value")
    of_rows = xr.Dataset({"x": (dims[:3], drawn.sum(axis=-1))})
    assert "log_likelihood" not in bs.observed_values(result(table, drawn, log_likelihood=of_rows))


def test_a_result_without_predictive_draws_is_refused():
    idata = result(*numbers())
    del idata["posterior_predictive"]
    with pytest.raises(ValueError, match=r"pm.sample_posterior_predictive"):
        bs.observed_values(idata)
