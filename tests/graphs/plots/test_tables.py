import itertools

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest

from matplotlib.axes import Axes
from tools.dags import dag_posterior, random_dags
from tools.posteriors import bernoulli_posterior, posterior, sparse_posterior

from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.plots import (
    plot_calibration,
    plot_directions,
    plot_edges,
    plot_evidence,
    plot_matrix,
)
from bayesstruct.structure import direction_table, edge_table


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
    with pytest.raises(ValueError, match="`n` must be a whole number from 1 up"):
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


def side(ax):
    """Names at the left, cells by a pair of names."""
    names = [label.get_text() for label in ax.get_yticklabels()]
    return {(a, b): (i, j) for i, a in enumerate(names) for j, b in enumerate(names)}


def test_cells_are_the_bayes_factors_with_marks_of_bounds_and_of_what_was_not_tested():
    drawn = np.zeros((4, 200, 6), int)
    drawn[..., [0, 3]] = 1
    drawn[:, ::4, 1] = drawn[:, ::2, 5] = 1
    tree = posterior(drawn, names=[*"abcd"], edge_prior=[0.5, 0.5, 0.5, 1.0, 0.0, 0.2])
    ax = plot_matrix(tree, values="bayes_factor", probabilities=False)
    cells, at = ax.images[0].get_array(), side(ax)
    assert cells[at["a", "c"]] == cells[at["c", "a"]] == pytest.approx(np.log10(0.25 / 0.75))
    assert cells[at["c", "d"]] == pytest.approx(np.log10(1.0 / (0.2 / 0.8)))
    assert all(np.ma.is_masked(cells[at[pair]]) for pair in [("b", "c"), ("b", "d"), ("a", "a")])
    table = edge_table(tree)
    for row in table.itertuples():
        if not np.isnan(row.bayes_factor):
            assert cells[at[row.source, row.target]] == pytest.approx(np.log10(row.bayes_factor))
    printed = {(t.get_position()[1], t.get_position()[0]): t.get_text() for t in ax.texts}
    assert printed[at["a", "b"]] == f">{np.log10(table['bayes_factor'].max()):.1f}"
    assert printed[at["a", "d"]].startswith("<−")
    assert printed[at["a", "c"]] == "−0.5"
    (hatched,) = (c for c in ax.collections if c.get_hatch())
    assert len(hatched.get_paths()) == 4
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["not tested"]
    assert ax.images[0].get_clim() == (-2, 2)


def test_bounds_are_dots_where_values_are_not_printed():
    tree, _ = sparse_posterior(16, draws=20)
    ax = plot_matrix(tree, values="bayes_factor", order="alike")
    (dots,) = (c for c in ax.collections if len(c.get_offsets()))
    assert len(dots.get_offsets()) == len(edge_table(tree).attrs["bayes_factor_bounds"])
    assert (dots.get_offsets()[:, 1] > dots.get_offsets()[:, 0]).all()  # below the diagonal


def test_bayes_factors_of_directed_graphs_are_those_of_adjacencies():
    drawn = random_dags(np.random.default_rng(0), 120, 4).reshape(2, 60, 4, 4)
    tree = dag_posterior(drawn)
    found, ax = read(tree).adjacencies(), plot_matrix(tree, values="bayes_factor")
    cells = ax.images[0].get_array()[found["target"], found["source"]]
    np.testing.assert_allclose(cells, np.log10(found["factor"]))
    above = ax.images[1].get_array()[found["source"], found["target"]]
    either = drawn | drawn.swapaxes(-1, -2)
    np.testing.assert_allclose(above, either.mean(axis=(0, 1))[found["source"], found["target"]])
    with pytest.raises(ValueError, match="directed"):
        plot_matrix(tree)


def test_probabilities_below_one_are_not_printed_as_one():
    drawn = np.ones((2, 300, 1), int)
    drawn[0, 0] = 0
    assert [text.get_text() for text in plot_matrix(posterior(drawn)).texts] == [".30", ">.99"]


@pytest.mark.parametrize("options", [{"values": "odds"}, {"order": "name"}])
def test_other_values_and_orders_are_refused(small, options):
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` must be"):
        plot_matrix(small[0], **options)


def test_many_rows_fit_into_given_axes():
    tree, _ = sparse_posterior(
        12, draws=20, names=[f"a_long_name_of_column_{j}" for j in range(12)]
    )
    _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    plot_edges(tree, n=60, ax=ax)
    ax.figure.draw_without_rendering()
    for texts in (ax.get_yticklabels(), ax.texts):
        boxes = [text.get_window_extent() for text in texts]
        assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
    assert (
        ax.get_xticklabels()[0].get_fontsize() == plt.rcParams["font.size"]
    )  # numbers keep theirs
    plt.close("all")


def test_dollar_signs_in_names_are_no_mathematics():
    names = ["a$_$", r"$\frac$ $", "c$1$"]
    idata = bernoulli_posterior([0.99, 0.5, 0.9], names=names)
    for draw in (plot_edges, partial(plot_evidence, kind="matrix")):
        figure = draw(idata).figure
        figure.canvas.draw()
        shown = " ".join(label.get_text() for label in figure.axes[0].get_yticklabels())
        assert all(name.replace("$", r"\$") in shown for name in names)


@pytest.fixture
def directed():
    graphs = random_dags(np.random.default_rng(3), 200, 5).reshape(2, 100, 5, 5)
    names = ["income", "a $ of costs", "a_rather_long_questionnaire_item", "age", "x"]
    return dag_posterior(graphs, names=names)


def test_directions_are_three_parts_of_a_bar(directed):
    ax = plot_directions(directed, n=6)
    table = direction_table(directed).head(6)
    forward, none, backward = ax.containers
    for state, bars in zip(("forward", "none", "backward"), (forward, none, backward), strict=True):
        np.testing.assert_allclose([bar.get_width() for bar in bars], table[state])
    ends = [bar.get_x() + bar.get_width() for bar in backward]
    np.testing.assert_allclose(ends, 1)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    for label, row in zip(labels, table.itertuples(), strict=True):
        first, second = label.split(" → ")
        assert row.source[0] == first[0] and row.target[0] == second[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "as named",
        "no arc",
        "the other way",
    ]


def test_directions_in_given_axes_with_the_fonts_of_the_user(directed):
    with plt.style.context({"font.size": 14, "figure.facecolor": "black", "text.color": "white"}):
        figure, ax = plt.subplots(figsize=(3, 2))
        assert plot_directions(directed, ax=ax) is ax
        figure.draw_without_rendering()
        names = [label for label in ax.get_yticklabels() if label.get_text()]
        boxes = [name.get_window_extent() for name in names]
        assert all(a.y0 >= b.y1 - 1 for a, b in itertools.pairwise(boxes))  # names do not meet
        white = ax.get_legend().get_texts()[0].get_color()
        assert white == "white"
    with pytest.raises(ValueError, match="`n` must be a whole number from 1 up"):
        plot_directions(directed, n=0)


def test_directions_of_pairs_that_were_tested_come_first():
    graphs = np.zeros((2, 50, 3, 3))
    graphs[..., 0, 1] = 1  # required
    graphs[:, ::2, 1, 2] = 1
    prior = np.full((3, 3), 0.25)
    prior[0, 1], prior[1, 0] = 1.0, 0.0
    idata = dag_posterior(graphs, prior=prior.T[~np.eye(3, dtype=bool)])
    ax = plot_directions(idata, n=2)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["v1 → v2", "v0 → v2"]
