"""The picture of nodes that take part."""

import itertools

import numpy as np
import pytest
import xarray as xr

from matplotlib.colors import to_rgba
from tools.posteriors import bernoulli_posterior

import bayesstruct as bs

from bayesstruct.graphs.plots.style import FAINT, NEGATIVE, POSITIVE


def result():
    """Three nodes: one in nearly all draws, one in half, one in nearly none; prior probability a half."""
    idata = bernoulli_posterior([0.9, 0.1, 0.5], draws=100)
    rng = np.random.default_rng(0)
    on = rng.random((4, 100, 3)) < [0.99, 0.5, 0.01]
    draws = idata["posterior"].to_dataset()
    draws["included"] = (("chain", "draw", "node"), on)
    draws["precision"] = (("chain", "draw", "node", "node_"), np.zeros((4, 100, 3, 3)) + np.eye(3))
    constants = idata["constant_data"].to_dataset()
    constants["node_prior"] = ("node", np.full(3, 0.5))
    idata["posterior"], idata["constant_data"] = type(idata)(draws), type(idata)(constants)
    return idata


def test_bars_are_the_table_and_colours_the_evidence():
    idata = result()
    ax = bs.plot_nodes(idata)
    table = bs.node_table(idata)
    bars = ax.patches
    np.testing.assert_allclose([bar.get_width() for bar in bars], table["probability"])
    colours = [to_rgba(bar.get_facecolor()) for bar in bars]
    assert colours == [to_rgba(POSITIVE), to_rgba(FAINT), to_rgba(NEGATIVE)]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["v0", "v1", "v2"]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["included: 1", "undecided: 1", "excluded: 1"]
    assert [text.get_text() for text in ax.texts] == [
        "edges",
        *(f"{d:.1f}" for d in table["degree"]),
    ]
    assert len(bs.plot_nodes(idata, n=2).patches) == 2
    with pytest.raises(ValueError, match="`n`"):
        bs.plot_nodes(idata, n=0)


def replicated(p, moved=()):
    """Replicated tables of independent columns, and an observed one in which some pairs are correlated."""
    rng = np.random.default_rng(0)
    names = [f"a_rather_long_name_of_column_{j}" for j in range(p)]
    x, dims = rng.normal(size=(300, p)), ("observation", "node")
    for a, b in moved:
        x[:, b] += x[:, a]
    replicates = rng.normal(size=(1, 60, 300, p))
    return xr.DataTree.from_dict(
        {
            "observed_data": xr.Dataset({"x": (dims, x)}, {"node": names}),
            "posterior_predictive": xr.Dataset(
                {"x": (("chain", "draw", *dims), replicates)}, {"node": names}
            ),
        }
    )


@pytest.mark.parametrize("p", [6, 30])
def test_the_worst_correlations_are_numbered_and_the_key_names_them(p):
    idata = replicated(p, moved=[(0, 1), (2, 3), (4, 5)])
    ax = bs.plot_correlations(idata, label=3)
    ax.figure.draw_without_rendering()
    *numbers, key = ax.texts
    assert [text.get_text() for text in numbers] == ["1", "2", "3"]
    head, *lines = key.get_text().splitlines()
    assert head == "farthest from the mean"
    pairs = {tuple(line.split("  ")[1].split(" – ")) for line in lines}
    stem = "a_rather_long_name_of_column_"
    assert {(a[-1], b[-1]) for a, b in pairs} == {("0", "1"), ("2", "3"), ("4", "5")}
    assert all(a.startswith(stem[:5]) for a, _ in pairs)
    boxes = [text.get_window_extent() for text in numbers]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert key.get_window_extent().x0 >= ax.get_window_extent().x1
    counts = [text.get_text() for text in ax.get_legend().get_texts()]
    table = bs.predictive_correlations(idata)
    assert counts == [f"inside: {table.inside.sum()}", f"outside: {(~table.inside).sum()}"]


def test_without_misses_there_are_no_numbers():
    assert not bs.plot_correlations(replicated(3), prob=0.999).texts
    assert not bs.plot_correlations(replicated(6, [(0, 1)]), label=0).texts
