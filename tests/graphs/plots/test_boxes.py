"""By the boxes of the renderer: no name lies over another or over a node, nothing is cut off, the page is full."""

import pickle

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest

from matplotlib.collections import PathCollection
from matplotlib.patches import FancyArrowPatch
from tools.posteriors import posterior, sparse_posterior

from bayesstruct.graphs.plots.arrows import spread
from bayesstruct.graphs.plots.layouts.geometry import Boxes, meet, scale_to_fit
from bayesstruct.plots import layout, plot_graph

KINDS = "circle", "spring", "kamada_kawai"
WINE = (
    "alcohol malic_acid ash alcalinity_of_ash magnesium total_phenols flavanoids nonflavanoid_phenols "
    "proanthocyanins color_intensity hue od280/od315_of_diluted_wines proline"
).split()


def names_of(p, length):
    if length == "short":
        return [f"v{k}" for k in range(p)]
    return [f"{WINE[k % 13]}, Größe{' im Jahr 2020' * (k % 2)} {k}" for k in range(p)]


def graph_of(p, length, *, directed=False):
    rng = np.random.default_rng(p)
    names = names_of(p, length)
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(names)
    for _ in range(int(1.4 * p)):
        a, b = sorted(rng.choice(p, 2, replace=False))
        about = {"weight": rng.normal(), "probability": rng.uniform(0.5, 1)}
        graph.add_edge(names[a], names[b], **about)
    return graph


def corners(text, renderer):
    """Corners of a text as drawn, its frame included; turned where it is, shape (4, 2)."""
    frame = text.get_bbox_patch()
    if frame is not None:
        return frame.get_window_extent(renderer).corners()[[0, 2, 3, 1]]
    angle = np.radians(text.get_rotation())
    box = text.get_window_extent(renderer)
    middle = (box.p0 + box.p1) / 2
    text.set_rotation(0)
    half = np.array(text.get_window_extent(renderer).size) / 2
    text.set_rotation(np.degrees(angle))
    upright = half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return middle + upright @ turn


def apart(first, second):
    """Whether two convex polygons are apart: a side of one of them has all of the other beyond it."""
    for one, other in ((first, second), (second, first)):
        for k in range(len(one)):
            side = one[(k + 1) % len(one)] - one[k]
            normal = np.array([side[1], -side[0]])
            if ((other - one[k]) @ normal).min() >= -1e-6:
                return True
    return False


def nodes(ax):
    """Discs as polygons in pixels, in the order of the nodes."""
    scatter = [c for c in ax.collections if isinstance(c, PathCollection)][-1]
    centres = ax.transData.transform(scatter.get_offsets())
    radius = np.sqrt(scatter.get_sizes()[0]) / 2 * ax.figure.dpi / 72
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ring = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return [centre + ring for centre in centres]


def near(shapes):
    """Pairs of polygons whose upright boxes overlap."""
    low = np.array([shape.min(axis=0) for shape in shapes])
    high = np.array([shape.max(axis=0) for shape in shapes])
    both = ((low[:, None] < high[None]) & (low[None] < high[:, None])).all(axis=-1)
    return np.argwhere(np.triu(both, 1)).tolist()


def hold(ax, *, full=0.6):
    """Hold what must be true of every picture."""
    figure = ax.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    discs = nodes(ax)
    texts = [corners(text, renderer) for text in ax.texts if text.get_text()]
    named = sum(hasattr(text, "xy") for text in ax.texts)
    assert named in (0, len(discs))
    shapes = texts + discs
    for a, b in near(shapes):
        own = a < named and b - len(texts) == a
        assert own or apart(shapes[a], shapes[b]), "not apart"
    everything = np.concatenate(discs + texts)
    legend = ax.get_legend()
    if legend is not None:
        box = legend.get_window_extent(renderer)
        assert everything[:, 1].min() >= box.y1 - 1
        assert box.x0 >= figure.bbox.x0 - 1 and box.x1 <= figure.bbox.x1 + 1
    assert (everything.min(axis=0) >= ax.bbox.p0 - 1).all()
    assert (everything.max(axis=0) <= ax.bbox.p1 + 1).all()
    assert np.ptp(everything, axis=0).prod() >= full * np.prod(ax.bbox.size)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.mark.parametrize(("kind", "way"), [("circle", "outside"), ("spring", "framed")])
def test_an_overlap_is_seen(kind, way):
    ax = plot_graph(graph_of(6, "short"), layout=kind)
    assert ax.get_axes_locator().arrangement.way == way
    ax.texts[2].xy = ax.texts[1].xy
    with pytest.raises(AssertionError, match="apart"):
        hold(ax)


LONGER = [
    pytest.param(kind, 60, length, marks=pytest.mark.slow)
    for kind in ("circle", "kamada_kawai")
    for length in ("short", "long")
]


@pytest.mark.parametrize(
    ("kind", "p", "length"),
    [
        *((kind, p, length) for kind in KINDS for p in (6, 13, 30) for length in ("short", "long")),
        ("spring", 60, "short"),
        ("spring", 60, "long"),
        *LONGER,
    ],
)
def test_undirected(kind, p, length):
    hold(plot_graph(graph_of(p, length), layout=kind))


@pytest.mark.parametrize(
    ("kind", "p", "length"),
    [
        ("layers", 6, "long"),
        ("layers", 13, "short"),
        ("layers", 30, "long"),
        ("layers", 60, "short"),
        ("circle", 13, "long"),
        ("spring", 30, "short"),
    ],
)
def test_directed(kind, p, length):
    hold(plot_graph(graph_of(p, length, directed=True), layout=kind))


@pytest.mark.parametrize("length", ["short", "long"])
def test_a_hundred_nodes(length):
    hold(plot_graph(graph_of(100, length)))


@pytest.mark.parametrize(
    ("p", "length", "engine", "rows"),
    [
        (13, "long", "tight", 1),
        (13, "long", None, 2),
        pytest.param(6, "long", None, 2, marks=pytest.mark.slow),
        pytest.param(13, "long", "tight", 2, marks=pytest.mark.slow),
        pytest.param(13, "short", "constrained", 2, marks=pytest.mark.slow),
        pytest.param(30, "short", None, 2, marks=pytest.mark.slow),
        pytest.param(30, "long", "constrained", 2, marks=pytest.mark.slow),
    ],
)
def test_axes_of_four_by_three_inches(p, length, engine, rows):
    width, height = (4, 3) if engine else (5.25, 4)  # of which margins take a quarter
    figure, _ = plt.subplots(rows, 2, figsize=(2 * width, rows * height), layout=engine)
    *first, last = figure.axes
    graph = graph_of(p, length)
    drawn = [plot_graph(graph, ax=ax, layout=kind) for ax, kind in zip(first, KINDS, strict=False)]
    drawn.append(plot_graph(graph_of(p, length, directed=True), ax=last))
    for ax in drawn:
        ax.set_title("a title")
    for ax in drawn:
        hold(ax)


@pytest.mark.parametrize("size", [(3.2, 2.4), (20, 9)])
def test_very_small_and_very_large_axes(size):
    _, ax = plt.subplots(figsize=size, layout="constrained")
    hold(plot_graph(graph_of(13, "long"), ax=ax, layout="spring"))


def test_wine_as_a_circle_is_upright_and_complete():
    graph = nx.Graph()
    graph.add_nodes_from(WINE)
    ax = plot_graph(graph)
    hold(ax)
    assert [text.get_text() for text in ax.texts] == WINE
    assert not any(text.get_rotation() for text in ax.texts)


def test_the_network_is_arranged_anew_when_its_axes_change():
    figure, ax = plt.subplots(figsize=(8, 8), layout="constrained")
    plot_graph(graph_of(13, "long"), ax=ax, layout="spring")
    figure.set_size_inches(4, 3)
    hold(ax)
    figure.suptitle("a title\nof two lines")
    hold(ax)


def test_networks_side_by_side_have_one_scale_whatever_their_legends():
    tree, _ = sparse_posterior(10, draws=50)
    _, (left, right, last) = plt.subplots(1, 3, figsize=(12, 4))
    plot_graph(tree, ax=left, layout="spring", evidence=10)
    plot_graph(tree, ax=right, layout=left, legend=False)
    plot_graph(tree, ax=last, pos=left, min_probability=0.9)
    left.figure.draw_without_rendering()
    scales = [(np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())) for ax in (left, right, last)]
    np.testing.assert_allclose(scales, [scales[0]] * 3)
    at = [nodes(ax)[0] - ax.bbox.p0 for ax in (left, right, last)]
    np.testing.assert_allclose(at, [at[0]] * 3, atol=0.1)
    with pytest.raises(ValueError, match="no network"):
        plot_graph(tree, layout=plt.subplots()[1])


@pytest.mark.parametrize("length", ["short", "long"])
def test_a_key_has_every_name_in_full(length):
    graph = graph_of(30, length)
    ax = plot_graph(graph)
    texts = [text.get_text() for text in ax.texts]
    assert set(graph.nodes) <= set(texts)


def test_names_that_have_no_room_are_said_to_be_missing():
    _, ax = plt.subplots(figsize=(2.5, 2.5))
    plot_graph(graph_of(60, "long"), ax=ax, layout="circle")
    assert "60 nodes" in ax.texts[-1].get_text()
    ax = plot_graph(nx.empty_graph(400))
    assert [text.get_text()[:23] for text in ax.texts] == ["400 nodes without names"]


def test_a_picture_can_be_pickled_and_drawn_again():
    ax = plot_graph(graph_of(6, "short", directed=True))
    again = pickle.loads(pickle.dumps(ax.figure))
    again.set_size_inches(4, 3)
    hold(again.axes[0])


# --- what is drawn ---------------------------------------------------------------------------


def test_required_edges_are_black_and_forbidden_ones_counted():
    drawn = np.zeros((2, 50, 6), int)
    drawn[..., 0] = drawn[..., 3] = 1
    tree = posterior(drawn, edge_prior=[1.0, 0.0, 0.0, 0.5, 0.5, 0.5])
    ax = plot_graph(tree)
    (lines,) = [c for c in ax.collections if not isinstance(c, PathCollection)]
    assert sorted(lines.get_colors()[:, :3].sum(axis=1) == 0) == [False, True]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"required (not tested): 1", "forbidden (not tested): 2"} <= set(labels)


def test_evidence_decides_what_is_solid_and_what_dashed():
    drawn = np.zeros((2, 100, 3), int)
    drawn[..., 0] = 1  # certain: included
    drawn[:, ::5, 1] = 1  # 0.2 against a prior of 0.01: included
    drawn[:, :60, 2] = 1  # 0.6 against a prior of 0.5: undecided
    tree = posterior(drawn, edge_prior=[0.5, 0.01, 0.5])
    ax = plot_graph(tree, evidence=10)
    (lines,) = [c for c in ax.collections if not isinstance(c, PathCollection)]
    dashed = [dashes is not None for _, dashes in lines.get_linestyle()]
    assert sorted(dashed) == [False, False, True]
    (plain,) = [c for c in plot_graph(tree).collections if not isinstance(c, PathCollection)]
    assert len(plain.get_segments()) == 2
    with pytest.raises(ValueError, match="Bayes factors of a result"):
        plot_graph(nx.path_graph(3), evidence=10)
    with pytest.raises(ValueError, match="above 1"):
        plot_graph(tree, evidence=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_and_predictability(kind):
    graph = graph_of(13, "long")
    groups = {name: "ab"[k % 2] for k, name in enumerate(graph)}
    shares = dict.fromkeys(graph, 0.25) | {next(iter(graph)): np.nan}
    ax = plot_graph(graph, layout=kind, groups=groups, predictability=shares)
    hold(ax)
    *_, parts, discs = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert len({tuple(colour) for colour in discs.get_facecolors()}) == 2
    assert len(parts.get_offsets()) == 12
    for path in parts.get_paths():  # a quarter, from the top to the right
        assert path.vertices.min() >= -1e-9
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"a", "b", "full ring: predictability 1"} <= set(labels)
    with pytest.raises(ValueError, match="`groups` has no entry for alcohol"):
        plot_graph(graph, groups={})
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        plot_graph(graph, predictability=dict.fromkeys(graph, 1.2))


def test_dark_themes_and_sizes_of_letters():
    with plt.style.context(["dark_background", {"font.size": 14}]):
        ax = plot_graph(graph_of(6, "short"), layout="circle")
    hold(ax)
    assert ax.texts[0].get_color() == "#ffffff"
    plain = plot_graph(graph_of(6, "short"), layout="circle")
    assert ax.texts[0].get_fontsize() == pytest.approx(1.4 * plain.texts[0].get_fontsize())


def test_default_layouts():
    for p, directed, kind in [(15, False, "circle"), (16, False, "spring"), (5, True, "layers")]:
        graph = graph_of(p, "short", directed=directed)
        assert layout(graph) == layout(graph, kind=kind)
    with pytest.raises(ValueError, match=r"`layout` must be .* got 'trees'"):
        plot_graph(graph, layout="trees")
    with pytest.raises(ValueError, match="pass one of them"):
        plot_graph(graph, layout="circle", pos={})


def test_layouts_keep_nodes_without_edges_below_and_the_rest_together():
    graph = nx.disjoint_union(nx.cycle_graph(20), nx.path_graph(3))
    graph.add_nodes_from([30, 31, 32])
    for kind in ("spring", "kamada_kawai"):
        pos = layout(graph, kind=kind)
        assert max(pos[k][1] for k in (30, 31, 32)) < min(pos[k][1] for k in range(23))


def test_heads_at_one_node_are_apart_and_two_ways_are_two_curves():
    graph = nx.DiGraph([(f"p{k}", "child") for k in range(8)])
    pos = {f"p{k}": (0.1 * k, 1.0) for k in range(8)} | {"child": (0.35, -1.0)}
    ax = plot_graph(graph, pos=pos, legend=False)
    ends = [a.get_path().vertices for a in ax.patches if isinstance(a, FancyArrowPatch)]
    tips = np.array([ax.transData.transform(v)[2] for v in ends])
    gaps = np.hypot(*np.diff(tips[np.argsort(tips[:, 0])], axis=0).T)
    assert gaps.min() > 3.5 * ax.figure.dpi / 72
    both = nx.DiGraph()
    both.add_edge("a", "b", weight=0.5)
    both.add_edge("b", "a", weight=-0.2)
    arrows = [a for a in plot_graph(both).patches if isinstance(a, FancyArrowPatch)]
    assert [a.get_connectionstyle().rad > 0 for a in arrows] == [True, True]


# --- geometry --------------------------------------------------------------------------------


def test_spread_moves_no_more_than_needed():
    free = np.array([1.0, 5.0, 9.0])
    np.testing.assert_allclose(spread(free, np.full(3, 2.0), 12.0) % 12, free)
    moved = spread(np.array([5.0, 5.0, 5.2]), np.full(3, 2.0), 30.0)
    assert np.diff(np.sort(moved)).min() >= 1.9
    assert moved.mean() == pytest.approx(5.2 - 0.4 / 3, abs=0.05)
    full = np.sort(spread(np.linspace(0, 1, 20), np.full(20, 2.0), 20.0) % 20)
    assert len(np.unique(full.round(2))) == 20


def test_turned_boxes_meet_only_where_they_do():
    half = np.array([[2.0, 0.5], [2.0, 0.5]])
    turned = Boxes(np.zeros((2, 2)), half, np.array([np.pi / 4, np.pi / 4]))
    beside = np.array([[0.0, 0.0], [1.5, -1.5]])  # upright boxes around them overlap
    assert not meet(beside, turned, turned).any()
    along = np.array([[0.0, 0.0], [1.5, 1.5]])
    assert meet(along, turned, turned).sum() == 2


def test_the_scale_is_the_largest_that_fits():
    rng = np.random.default_rng(1)
    points, before, after = (
        rng.normal(size=(9, 2)),
        rng.uniform(1, 5, (9, 2)),
        rng.uniform(1, 9, (9, 2)),
    )
    scale = scale_to_fit(points, before, after, np.array([300.0, 200.0]))
    length = (scale * points + after).max(axis=0) - (scale * points - before).min(axis=0)
    np.testing.assert_allclose(length, [300, 200])
