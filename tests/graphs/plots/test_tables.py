import numpy as np
import pytest

from matplotlib.axes import Axes
from tools.posteriors import posterior, sparse_posterior

from bayesstruct.plots import plot_calibration, plot_edges, plot_matrix
from bayesstruct.structure import edge_table


def test_edges_are_those_of_the_table(small):
    tree, _ = small
    ax = plot_edges(tree, n=7)
    assert isinstance(ax, Axes)
    table = edge_table(tree).head(7)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == [f"{a} – {b}" for a, b in zip(table.source, table.target, strict=True)]
    np.testing.assert_allclose(ax.collections[-1].get_offsets()[:, 0], table["mean"])
    assert len(ax.texts) == 8  # heading and seven probabilities


def test_edges_never_print_a_rounded_certainty():
    drawn = np.ones((2, 300, 1), int)
    drawn[0, 0] = 0
    texts = [text.get_text() for text in plot_edges(posterior(drawn)).texts]
    assert texts == ["P(edge)", "> 0.99"]


def test_edges_n():
    tree = posterior(np.ones((2, 20, 3), int))
    assert len(plot_edges(tree, n=100).get_yticks()) == 3
    with pytest.raises(ValueError, match="at least 1"):
        plot_edges(tree, n=0)


def test_calibration_prints_the_counts(small):
    ax = plot_calibration(*small)
    counts = [int(text.get_text().replace(",", "")) for text in ax.texts[:-1]]
    assert sum(counts) == 45
    assert len(ax.collections[-1].get_offsets()) == len(counts)


def test_calibration_of_many_results():
    trees, truths = zip(*(sparse_posterior(6, seed=s, draws=20) for s in range(3)), strict=True)
    ax = plot_calibration(list(trees), list(truths), bins=20)
    assert sum(int(text.get_text()) for text in ax.texts[:-1]) == 45


@pytest.mark.parametrize("probabilities", [True, False])
@pytest.mark.parametrize("size", ["small", "large"])
def test_matrix(size, probabilities, request):
    tree, _ = request.getfixturevalue(size)
    ax = plot_matrix(tree, probabilities=probabilities)
    assert len(ax.images) == 1 + probabilities
    low, high = ax.images[0].get_clim()
    assert low == -high
    assert bool(ax.texts) == (size == "small")
    assert len(ax.get_xticklabels()) == len(tree["constant_data"]["node"])


def test_matrix_of_an_empty_graph():
    weight = np.zeros((2, 10, 3))
    ax = plot_matrix(posterior(np.zeros((2, 10, 3), int), weight=weight))
    np.testing.assert_array_equal(ax.images[0].get_array(), 0)  # and no division by the largest
    low, high = ax.images[0].get_clim()
    assert low == -high < 0
