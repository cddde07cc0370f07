"""The picture of behaviours over time."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import bayesstruct as bs

LEVELS = np.array([-5.0, 5.0])


def result(paths):
    """Series whose rows are at one of two levels, in four equal draws that know them."""
    paths = [np.asarray(path) for path in paths]
    n, over, latent = len(paths), ("chain", "draw"), ("latent", "latent_")
    x = LEVELS[np.concatenate(paths)][:, None]

    def equal(values):
        return np.broadcast_to(values, (2, 2, *np.shape(values))).copy()

    draws = {
        "feature": ((*over, "observation", "latent"), equal(np.ones((n, 2), int))),
        "transition": ((*over, "observation", *latent), equal(np.full((n, 2, 2), 0.5))),
        "emission_mean": ((*over, "latent", "node"), equal(LEVELS[:, None])),
        "emission_scale": ((*over, "latent", "node"), equal(np.ones((2, 1)))),
    }
    constants = {
        "location": ("node", [0.0]),
        "scale": ("node", [1.0]),
        "rows": ("observation", [len(path) for path in paths]),
        "missing": (("time", "node"), np.zeros(x.shape, int)),
    }
    names = {"observation": [f"animal {i}" for i in range(n)]}
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(draws, names),
            "constant_data": xr.Dataset(constants, names),
            "observed_data": xr.Dataset({"x": (("time", "node"), x)}),
        }
    )


@pytest.mark.chain
def test_heights_of_the_colours_are_the_probabilities():
    idata = result([[0, 0, 0, 1, 1], [0, 0, 0, 0]])
    table = bs.state_probabilities(idata)
    np.testing.assert_allclose(table[2].to_numpy(), [0, 0, 0, 1, 1, 0, 0, 0, 0], atol=1e-6)
    ax = bs.plot_states(idata)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["animal 0", "animal 1"]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["behaviour 1", "behaviour 2", "others"]
    first, second = (c.get_paths()[0] for c in ax.collections[:2])
    # a strip is .8 high, the first behaviour at its bottom (axis downwards: +.4) until time 2.5
    assert first.contains_point((1.0, 0.0)) and not first.contains_point((3.0, 0.0))
    assert second.contains_point((3.0, 0.0)) and not second.contains_point((1.0, 0.0))
    assert second.contains_point((4.4, 0.39))  # the last row of the data has its width
    handles = ax.get_legend().get_patches()
    assert handles[0].get_facecolor() == pytest.approx(tuple(ax.collections[0].get_facecolor()[0]))


@pytest.mark.chain
def test_many_series_are_cut_and_said_so():
    idata = result([[0, 1]] * 5)
    _, ax = plt.subplots()
    assert bs.plot_states(idata, n=3, ax=ax) is ax
    assert len(ax.get_yticks()) == 3
    assert ax.get_title(loc="left") == "the first 3 of 5 series"
    with pytest.raises(ValueError, match="`n`"):
        bs.plot_states(idata, n=0)
