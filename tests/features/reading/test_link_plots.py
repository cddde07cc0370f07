"""The matrix of predicted links."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from scipy.special import expit

from bayesstruct.features.kernels.link_codes import LIKELIHOODS
from bayesstruct.features.reading.links import link_probabilities
from bayesstruct.plots import plot_links

MEMBER = np.array([[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]])
WEIGHT = np.array([[3.0, -2.0], [-2.0, 3.0]])


def result(likelihood="logistic", directed=0, columns=None, unseen=()):
    """Two groups of objects, of which those of one group are linked, in ten equal draws."""
    over = ("chain", "draw")
    draws = {
        "feature": ((*over, "observation", "latent"), np.broadcast_to(MEMBER, (2, 5, 5, 2))),
        "interaction": ((*over, "latent", "latent_"), np.broadcast_to(WEIGHT, (2, 5, 2, 2))),
        "bias": (over, np.zeros((2, 5))),
    }
    coords = {"observation": [*"abcde"]}
    shape = (5, 5) if columns is None else (5, len(columns))
    if columns is not None:
        coords["node"] = ["x", "y", "z"]
        draws["column_feature"] = (
            (*over, "node", "latent_"),
            np.broadcast_to(columns, (2, 5, 3, 2)),
        )
        source, target = np.indices(shape).reshape(2, -1)
    else:
        source, target = np.nonzero(
            ~np.eye(5, dtype=bool) if directed else np.triu(np.ones(shape), 1)
        )
    kept = [k for k, pair in enumerate(zip(source, target, strict=True)) if pair not in unseen]
    source, target = source[kept], target[kept]
    constants = {
        "pair_source": ("pair", source),
        "pair_target": ("pair", target),
        "pair_directed": directed,
        "link_likelihood": LIKELIHOODS.index(likelihood),
    }
    y = ("pair", ((source + target) % 2 == 0).astype(float))
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(draws, coords),
            "constant_data": xr.Dataset(constants),
            "observed_data": xr.Dataset({"y": y}),
        }
    )


def named(ax):
    """Values of the cells by the names at their sides."""
    rows, columns = (
        [label.get_text() for label in axis.get_ticklabels()] for axis in (ax.yaxis, ax.xaxis)
    )
    values = ax.images[0].get_array()
    return {(a, b): values[i, j] for i, a in enumerate(rows) for j, b in enumerate(columns)}


def test_cells_are_the_probabilities_and_groups_are_blocks():
    ax = plot_links(result())
    cells = named(ax)
    assert cells["a", "c"] == cells["c", "a"] == pytest.approx(expit(3))
    assert cells["a", "b"] == pytest.approx(expit(-2))
    assert np.ma.is_masked(cells["a", "a"])
    for row in link_probabilities(result()).itertuples():
        assert cells[row.source, row.target] == pytest.approx(row.probability)
    order = "".join(label.get_text() for label in ax.get_yticklabels())
    assert {*order[:3]} in ({*"ace"}, {*"bda"}) or {*order[2:]} == {*"ace"}
    dots = ax.collections[0].get_offsets()
    found = {(order[int(y)], order[int(x)]) for x, y in dots}
    assert found == {(a, b) for g in ("ace", "bd") for a in g for b in g if a != b}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["observed link"]


def test_pairs_that_were_not_observed_are_hatched():
    ax = plot_links(result(unseen=[(0, 2)]))
    (hatched,) = (c for c in ax.collections if c.get_hatch())
    order = [label.get_text() for label in ax.get_yticklabels()]
    corners = {tuple(path.vertices.min(axis=0) + 0.5) for path in hatched.get_paths()}
    a, c = order.index("a"), order.index("c")
    assert corners == {(a, c), (c, a)}
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["observed link", "not observed"]


def test_links_with_a_direction_and_links_of_two_sets():
    asymmetric = result(directed=1)
    assert len([v for v in named(plot_links(asymmetric)).values() if not np.ma.is_masked(v)]) == 20
    columns = np.array([[1, 0], [1, 0], [0, 1]])
    _, ax = plt.subplots()
    assert plot_links(result("normal", columns=columns), ax=ax) is ax
    cells = named(ax)
    assert len(cells) == 15
    assert cells["a", "x"] == pytest.approx(3.0)
    assert cells["a", "z"] == pytest.approx(-2.0)
    low, high = ax.images[0].get_clim()
    assert low == -high == -3.0
    with pytest.raises(ValueError, match="`draws`"):
        plot_links(asymmetric, draws=0)
