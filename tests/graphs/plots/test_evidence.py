"""Pictures of evidence: the right edges in each panel and cell, complete legends, names that can be read."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from tools.posteriors import posterior, sparse_posterior

from bayesstruct.graphs.plots.style import NEGATIVE, POSITIVE
from bayesstruct.plots import layout, plot_evidence
from bayesstruct.structure import edge_table

NAMES = "alcohol malic_acid alcalinity_of_ash total_phenols nonflavanoid_phenols od280/od315_of_diluted_wines"


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def drawn(ax):
    """Ends of the lines of each kind, as names of the label."""
    found = {}
    for lines in ax.collections:
        if isinstance(lines, LineCollection):
            segments = np.array(lines.get_segments())
            found[lines.get_label()] = {tuple(np.round(ends.ravel(), 6)) for ends in segments}
    return found


def wanted(pos, pairs):
    return {tuple(np.round(np.ravel([pos[a], pos[b]]), 6)) for a, b in pairs}


@pytest.fixture(scope="module")
def several():
    """Pairs of four columns: always there, half of the time, never, required, forbidden, and of unknown prior."""
    indicators = np.zeros((4, 200, 6), int)
    indicators[..., 0] = indicators[..., 3] = 1
    indicators[:, ::2, [1, 5]] = 1
    weight = np.where(indicators, -0.4, 0.0)
    return posterior(
        indicators, weight=weight, names=[*"abcd"], edge_prior=[0.5, 0.5, 0.5, 1.0, 0.0, np.nan]
    )


def many(p, **options):
    stems = NAMES.split()
    names = [f"{stems[i % 6]}_{i // 6}" for i in range(p)]
    return sparse_posterior(p, names=names, draws=20, **options)[0]


def test_every_edge_is_counted_once(small):
    tree, _ = small
    texts = legend_texts(plot_evidence(tree))
    kinds = [text.split(" (")[0] for text in texts]
    assert kinds == ["included, positive", "included, negative", "undecided", "excluded"]
    counts = [int(text.rsplit(":", 1)[1]) for text in texts]
    table = edge_table(tree)
    strong = table["bayes_factor"] >= 10
    assert counts[0] == (strong & (table["mean"] > 0)).sum()
    assert counts[1] == (strong & (table["mean"] < 0)).sum()
    assert counts[3] == (table["bayes_factor"] <= 0.1).sum()
    assert sum(counts) == 45


def test_absent_is_not_unknown():
    never, half = np.zeros((4, 100)), np.tile([0, 1], (4, 50))
    always = np.ones((4, 100))
    tree = posterior(np.stack([always, half, never], axis=-1).astype(int))
    counts = [text.rsplit(": ", 1)[1] for text in legend_texts(plot_evidence(tree))]
    assert counts == ["1", "1", "1"]


def test_what_was_not_tested_is_counted_apart(several):
    assert legend_texts(plot_evidence(several)) == [
        "included, negative (BF ≥ 10): 1",
        "required (not tested): 1",
        "undecided (1/10 < BF < 10): 1",
        "prior probability not known: 1",
        "excluded (BF ≤ 1/10): 1",
        "forbidden (not tested): 1",
    ]


def test_panels_hold_the_right_edges(several):
    panels = plot_evidence(several, kind="panels")
    pos = layout(several)
    assert [panel.get_title() for panel in panels] == ["included", "undecided", "excluded"]
    assert drawn(panels[0]) == {
        "included, negative (BF ≥ 10)": wanted(pos, ["ab"]),
        "required (not tested)": wanted(pos, ["bc"]),
    }
    assert drawn(panels[1]) == {
        "undecided (1/10 < BF < 10)": wanted(pos, ["ac"]),
        "prior probability not known": wanted(pos, ["cd"]),
    }
    assert drawn(panels[2]) == {"excluded (BF ≤ 1/10)": wanted(pos, ["ad"])}
    assert legend_texts(panels[2])[1] == "forbidden (not tested): 1"
    limits = np.array([(panel.get_xlim(), panel.get_ylim()) for panel in panels])
    np.testing.assert_allclose(limits, np.broadcast_to(limits[0], limits.shape))


def test_cells_have_the_colours_of_the_legend(several):
    ax = plot_evidence(several, kind="matrix")
    image = ax.images[0]
    colour = image.cmap(image.norm(image.get_array()))
    assert np.ma.getmaskarray(image.get_array()).tolist() == np.eye(4, dtype=bool).tolist()
    np.testing.assert_allclose(colour[0, 1], to_rgba(NEGATIVE))
    np.testing.assert_allclose(colour[1, 0], to_rgba(NEGATIVE))
    np.testing.assert_allclose(colour[1, 2], to_rgba("black"))
    np.testing.assert_allclose(colour[0, 3], to_rgba("white"))
    legend = {patch.get_label().rsplit(":", 1)[0]: patch for patch in ax.get_legend().get_patches()}
    entry = legend["undecided (1/10 < BF < 10)"]
    np.testing.assert_allclose(colour[0, 2], entry.get_facecolor())
    hatched = {c.get_hatch(): len(c.get_paths()) for c in ax.collections if c.get_hatch()}
    assert hatched == {"....": 2, "////": 2}
    assert legend["forbidden (not tested)"].get_hatch() == "////"


def test_pairs_that_the_model_does_not_consider_are_no_excluded_ones(several):
    ax = plot_evidence(several.isel(pair=[0, 2, 3]), kind="matrix")
    assert legend_texts(ax)[-1] == "not in the model: 3"
    (crossed,) = (c for c in ax.collections if c.get_hatch() == "xxxx")
    corners = {tuple(path.vertices.min(axis=0) + 0.5) for path in crossed.get_paths()}
    assert corners == {(0, 2), (2, 0), (1, 3), (3, 1), (2, 3), (3, 2)}


def test_lines_have_the_colours_of_the_signs(small):
    lines = {c.get_label(): c for c in plot_evidence(small[0]).collections}
    for sign, colour in (("positive", POSITIVE), ("negative", NEGATIVE)):
        np.testing.assert_allclose(
            lines[f"included, {sign} (BF ≥ 10)"].get_colors()[0], to_rgba(colour)
        )


@pytest.mark.parametrize(
    ("p", "options", "pictures"),
    [
        (12, {}, 1),
        (13, {}, 3),
        (25, {}, 3),
        (26, {}, 1),
        (26, {"pos": True}, 3),
        (5, {"kind": "matrix"}, 1),
    ],
)
def test_the_kind_of_picture_follows_the_number_of_variables(p, options, pictures):
    tree = many(p)
    if "pos" in options:
        options = {"pos": layout(tree)}
    found = np.ravel(plot_evidence(tree, **options))
    assert len(found) == pictures
    assert bool(found[0].images) == ((p == 26 and not options) or "kind" in options)


def test_axes_that_are_given_decide():
    tree = many(14)
    _, panels = plt.subplots(1, 3)
    assert plot_evidence(tree, ax=panels).tolist() == panels.tolist()
    _, ax = plt.subplots()
    assert plot_evidence(tree, ax=ax) is ax
    assert ax.images
    _, ax = plt.subplots()
    assert not plot_evidence(tree, ax=ax, kind="network").images
    with pytest.raises(ValueError, match=r"needs three axes, as of plt\.subplots"):
        plot_evidence(tree, ax=ax, kind="panels")
    with pytest.raises(ValueError, match="needs one axes"):
        plot_evidence(tree, ax=panels, kind="matrix")
    with pytest.raises(ValueError, match="or three for panels; got 2"):
        plot_evidence(tree, ax=panels[:2])


@pytest.mark.parametrize("options", [{"kind": "disc"}, {"order": "name"}])
def test_other_kinds_and_orders_are_refused(small, options):
    (name,) = options
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        plot_evidence(small[0], **options)
    with pytest.raises(ValueError, match="above 1"):
        plot_evidence(small[0], threshold=1)


def test_variables_that_are_alike_are_neighbours():
    """Two groups of columns, one at odd and one at even places, without edges between them."""
    i, j = np.triu_indices(8, 1)
    tree = posterior(np.broadcast_to((i + j) % 2 == 0, (2, 50, 28)).astype(int))
    ax = plot_evidence(tree, kind="matrix", order="alike")
    order = [int(label.get_text()[1:]) % 2 for label in ax.get_xticklabels()]
    assert sorted(order[:4]) in ([0] * 4, [1] * 4)
    image = ax.images[0]
    blue = (image.cmap(image.norm(image.get_array())) == to_rgba(POSITIVE)).all(axis=-1)
    assert blue[:4, :4].sum() == blue[4:, 4:].sum() == 12
    assert not blue[:4, 4:].any()


@pytest.mark.parametrize(
    "p",
    [
        6,
        13,
        30,
        pytest.param(60, marks=pytest.mark.slow),
        pytest.param(100, marks=pytest.mark.slow),
    ],
)
def test_names_and_legend_do_not_lie_over_each_other(p):
    tree = many(p, chains=2)
    for ax in np.ravel(plot_evidence(tree)):
        ax.figure.draw_without_rendering()
        texts = [*ax.texts, *ax.get_xticklabels()] if ax.images else ax.texts
        upright = [text for text in texts if text.get_rotation() in (0, 90)]
        groups = [upright, ax.get_yticklabels() if ax.images else []]
        for group in groups:
            boxes = [text.get_window_extent() for text in group if text.get_text()]
            assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
        legend, frame = ax.get_legend().get_window_extent(), ax.figure.bbox
        assert not ax.images or not legend.overlaps(ax.get_window_extent().shrunk(0.98, 0.98))
        assert legend.x0 > frame.x0 - 1 and legend.x1 < frame.x1 + 1
        assert legend.y0 > frame.y0 - 1 and legend.y1 < frame.y1 + 1
    plt.close("all")


@pytest.mark.parametrize("size", [8, 20])
def test_the_legend_follows_the_font_size_of_the_user(small, size):
    with plt.rc_context({"font.size": size}):
        sizes = [text.get_fontsize() for text in plot_evidence(small[0]).get_legend().get_texts()]
    assert min(abs(sizes[0] - share * size) for share in (0.9, 0.75, 0.65)) < 1e-6  # as it fits


def test_required_edges_are_seen_on_a_dark_background(several):
    with plt.style.context("dark_background"):
        (lines,) = (
            c for c in plot_evidence(several).collections if c.get_label().startswith("required")
        )
        np.testing.assert_allclose(lines.get_colors()[0], to_rgba("white"))
        image = plot_evidence(several, kind="matrix").images[0]
        colour = image.cmap(image.norm(image.get_array()))
        np.testing.assert_allclose(colour[1, 2], to_rgba("white"))
        np.testing.assert_allclose(colour[0, 3], to_rgba("black"))
