"""Legends above and beside pictures leave them their room; names of points hide nothing."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from matplotlib.collections import LineCollection
from matplotlib.text import Text
from tools.posteriors import bernoulli_posterior

import bayesstruct as bs

from bayesstruct.graphs.plots.comparison import _name_points
from bayesstruct.graphs.plots.evidence import default_positions
from bayesstruct.graphs.plots.legends import probability_handles
from bayesstruct.graphs.posteriors.reading import read

LONG = [f"a_rather_long_name_of_column_{j}_{'of_this_table' * (j % 2)}" for j in range(6)]


@pytest.mark.parametrize("draw", [bs.plot_pair_tables, bs.plot_item_rest, bs.plot_sum_scores])
def test_long_names_and_the_legend_leave_room_for_the_picture(draw):
    rng, dims = np.random.default_rng(0), ("observation", "node")
    observed = rng.integers(0, 3, (80, 6))
    drawn = rng.integers(0, 3, (1, 40, 80, 6))
    idata = xr.DataTree.from_dict(
        {
            "observed_data": xr.Dataset({"x": (dims, observed)}, {"node": LONG}),
            "posterior_predictive": xr.Dataset(
                {"x": (("chain", "draw", *dims), drawn)}, {"node": LONG}
            ),
        }
    )
    ax = draw(idata)
    figure = ax.figure
    figure.draw_without_rendering()
    legend = ax.get_legend().get_window_extent()
    assert legend.x0 >= figure.bbox.x0 and legend.x1 <= figure.bbox.x1 + 1
    assert legend.y0 >= ax.get_window_extent().y1 - 1
    assert ax.get_window_extent().width > 0.25 * figure.bbox.width
    plt.close("all")


def test_names_of_points_hide_no_point_and_no_name():
    rng = np.random.default_rng(1)
    x, y = np.concatenate([rng.beta(0.2, 3, (2, 60)), rng.uniform(0, 1, (2, 10))], axis=1)
    _, ax = plt.subplots(figsize=(5, 5))
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
    names = [f"column {k} – column {k + 1}" for k in range(len(x))]
    _name_points(ax, x, y, names, np.argsort(-np.abs(x - y))[:15])
    ax.figure.draw_without_rendering()
    points = ax.transData.transform(np.column_stack([x, y]))
    assert len(ax.texts) >= 8
    frames = [Text.get_window_extent(text) for text in ax.texts]  # without the lines to them
    assert not any(a.overlaps(b) for a, b in itertools.combinations(frames, 2))
    assert not any(frame.contains(*point) for frame in frames for point in points)
    plt.close("all")


def two_groups(p=4):
    """Two groups of rows whose first pair differs; the last pair has no edge in any draw."""
    pairs = p * (p - 1) // 2
    idata = bernoulli_posterior([0.99] * (pairs - 1) + [0.0], draws=50)
    draws = idata["posterior"].to_dataset()
    weight = draws["weight"].values
    weight[..., -1] = 0.0
    shift = np.zeros(pairs)
    shift[0] = 0.3
    both = np.stack([weight + shift, weight - shift], axis=2)
    differs = np.broadcast_to(shift > 0, weight.shape)
    draws = draws.drop_vars("weight").assign_coords(group=["b", "a"])
    draws["weight"] = (("chain", "draw", "group", "pair"), both)
    draws["difference"] = (("chain", "draw", "pair"), differs.astype(int))
    constants = idata["constant_data"].to_dataset()
    constants["difference_prior"] = ("pair", np.full(pairs, 0.5))
    return xr.DataTree.from_dict({"posterior": draws, "constant_data": constants})


def test_pairs_that_are_alike_in_all_draws_are_of_the_same_two_groups():
    idata = two_groups()
    table = bs.difference_table(idata)
    assert {frozenset(pair) for pair in zip(table["first"], table["second"], strict=True)} == {
        frozenset("ab")
    }
    assert table["difference"].iloc[0] == pytest.approx(0.6)
    ax = bs.plot_difference(idata)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"larger in a", "larger in b", "edge without difference (BF ≤ 1/10)"} <= {*texts}
    assert not any("undecided" in text for text in texts)
    plt.close("all")


def test_undecided_differences_are_dashed():
    idata = two_groups()
    differs = idata["posterior"]["difference"].values
    differs[:, ::2, 1] = 1  # with these priors the Bayes factor is 1
    differs[:, ::5, 2] = 1  # 1/4: drawn as an edge
    table = bs.difference_table(idata)
    assert table["verdict"].value_counts().to_dict() == {
        "differs": 1,
        "is equal": 3,
        "undecided": 2,
    }

    def dashes(**options):
        ax = bs.plot_difference(idata, **options)
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        lines = [each for each in ax.collections if isinstance(each, LineCollection)]
        # A full line has None as its dashes.
        found = [[own is not None for _, own in each.get_linestyles()] for each in lines]
        return found, [t for t in texts if "undecided" in t]

    equal, unsure, shown = dashes()[0]
    assert equal == [False] and unsure == [True]
    assert sorted(shown) == [False, True]
    assert dashes()[1] == ["undecided (1/10 < BF < 10)", "edge, difference undecided"]
    assert dashes(threshold=3)[1] == ["undecided (1/3 < BF < 3)"]


@pytest.mark.parametrize("p", [6, 18])
def test_pictures_of_one_result_have_the_same_positions(p):
    chance = np.random.default_rng(p).choice([0.02, 0.99], p * (p - 1) // 2, p=[0.85, 0.15])
    idata = bernoulli_posterior(chance, draws=40)
    first = bs.plot_graph(idata).get_axes_locator().pos
    assert first == default_positions(read(idata))
    picture = np.ravel(bs.plot_evidence(idata))[0]
    assert picture.get_axes_locator().pos == first
    plt.close("all")


def test_the_key_of_probabilities_has_two_digits():
    labels = [line.get_label() for line in probability_handles(plt.figure().gca(), 0.4783333)]
    assert labels == ["P = 1", "P = 0.48"]


def test_a_result_without_a_line_says_so():
    empty = bernoulli_posterior([0.1] * 6)
    ax = bs.plot_graph(empty)
    assert ax.get_legend().get_title().get_text() == "no edge has P ≥ 0.5"
    ax = bs.plot_graph(empty, ax=plt.subplots()[1], evidence=10)
    assert ax.get_legend().get_title().get_text() == "no edge has P ≥ 0.5 or BF ≥ 10"
    # A graph that somebody made has no probabilities, and a picture without a legend says nothing
    assert bs.plot_graph(bs.median_graph(empty), ax=plt.subplots()[1]).get_legend() is None
    assert bs.plot_graph(empty, ax=plt.subplots()[1], legend=False).get_legend() is None
    plt.close("all")
