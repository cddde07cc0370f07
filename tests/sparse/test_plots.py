"""The picture of coefficients that may be zero."""

import numpy as np
import pytest
import xarray as xr

import bayesstruct as bs


def result(names=("w",)):
    rng = np.random.default_rng(0)
    draws, constants = {}, {}
    for name in names:
        on = rng.random((2, 200, 3)) < [0.98, 0.02, 0.5]
        over = ("chain", "draw", "column")
        draws[name] = (over, on * (np.array([2.0, 1.0, -1.0]) + 0.1 * rng.normal(size=on.shape)))
        draws[f"{name}_included"] = (over, on.astype(int))
        constants[f"{name}_included_prior"] = ("column", np.full(3, 0.5))
    coords = {"column": ["age", "height", "weight"]}
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset(draws, coords), "constant_data": xr.Dataset(constants, coords)}
    )


def test_rows_are_those_of_the_table():
    ax = bs.plot_support(result())
    table = bs.support_table(result())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["age", "weight", "height"]
    np.testing.assert_allclose(ax.collections[-1].get_offsets()[:, 0], table["mean"])
    bars = np.array(ax.collections[0].get_segments())[:, :, 0]
    np.testing.assert_allclose(bars, table[["hdi_low", "hdi_high"]])
    assert ax.texts[0].get_text() == "P(not 0)"
    assert ax.texts[1].get_text() == f"{table['probability'][0]:.2f}"
    assert bs.summary(result()).plot().get_xlabel() == ax.get_xlabel()


def test_several_variables_are_told_apart():
    ax = bs.plot_support(result(("u", "w")), n=3)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert {*labels} <= {f"{v}: {c}" for v in "uw" for c in ("age", "height", "weight")}
    assert len(labels) == 3
    with pytest.raises(ValueError, match="`n`"):
        bs.plot_support(result(), n=0)
