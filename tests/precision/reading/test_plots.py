"""The picture of nodes that take part."""

import numpy as np
import pytest

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
