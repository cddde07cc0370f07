"""Nodes and their names, for every picture of a network."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.plots.positions import Positions, is_round
from bayesstruct.graphs.plots.style import NEUTRAL, NODE, settle, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes


TURNED = 24  # nodes on a circle from which on names are turned along the radii


def network_size(nodes) -> tuple[float, float]:
    """Figure size in inches that fits the names of the nodes."""
    p = len(nodes)
    longest = min(max((len(str(node)) for node in nodes), default=0), _longest(p))
    side = float(np.clip(4.6 + 0.075 * p, 5, 12))
    beside = 0.18 * max(longest - 6, 0) if p <= TURNED else 0.0  # names on both sides
    return side + beside, side + 0.5


def crowding(p: int) -> float:
    """Factor by which lines are thinned among p nodes."""
    return float(np.clip(1.15 - p / 100, 0.5, 1))


def draw_nodes(ax: "Axes", pos: Positions) -> np.ndarray:
    """Draw nodes with their names, and set limits such that nothing is clipped.

    Names go outside a circle, turned along its radii where there are many; for any other positions
    they are written on the nodes. Returns half width and half height in points of each node as
    drawn, shape (p, 2), for arrows that end there.
    """
    points, p = np.array(list(pos.values())), len(pos)
    x, y = points.T
    names = shorten([str(node) for node in pos], _longest(p))
    ax.set_axis_off()
    if is_round(pos):
        return _draw_circle(ax, points, names)
    area = 0.4 * _area(p)
    labels = _on_top(ax, points, names, _font_size(p))
    ax.scatter(x, y, s=area, color=NEUTRAL, lw=0, zorder=3)
    _fit(ax, points, labels, radius=_radius(area) + 1)
    return _half_sizes(ax, labels)


def _draw_circle(ax: "Axes", points: np.ndarray, names: list[str]) -> np.ndarray:
    """Draw nodes on a circle; names are turned if they are many, or would lie over each other."""
    p = len(names)
    area, size = _area(p), _font_size(p)
    ax.scatter(points[:, 0], points[:, 1], s=area, color=NODE, edgecolor=NEUTRAL, lw=0.8, zorder=3)
    labels = _around(ax, points, names, size, turn=p > TURNED)
    _fit(ax, points, labels, radius=_radius(area) + 1)
    if p <= TURNED and _overlap(labels):
        for label in labels:
            label.remove()
        labels = _around(ax, points, names, size, turn=True)
        _fit(ax, points, labels, radius=_radius(area) + 1)
    return np.full((p, 2), _radius(area))


def _overlap(labels: list) -> bool:
    """Whether two names lie over each other."""
    boxes = np.array([_extent(label) for label in labels])
    low, high = boxes[:, 0], boxes[:, 1]
    both = ((low[:, None] < high[None]) & (low[None] < high[:, None])).all(axis=-1)
    return bool(both.sum() > len(labels))


def _half_sizes(ax: "Axes", labels: list) -> np.ndarray:
    boxes = np.array([_extent(label) for label in labels])
    return (boxes[:, 1] - boxes[:, 0]) / 2 * 72 / ax.figure.get_figure(root=True).dpi


def legend_columns(ax: "Axes", wanted: int, width: float) -> int:
    """Columns of a legend under the axes: as many as wanted if it is `width` inches wide."""
    inches = ax.get_window_extent().width / ax.figure.get_figure(root=True).dpi
    return wanted if inches >= width else max(wanted // 2, 1)


def _longest(p: int) -> int:
    """Length from which on names are cut."""
    return 18 if p <= TURNED else 14


def _font_size(p: int) -> float:
    return float(np.clip(11.5 - 0.07 * p, 5, 11))


def _area(p: int) -> float:
    """Area of a node in points squared."""
    return float(np.clip(260 - 3.6 * p, 18, 230))


def _radius(area: float) -> float:
    """Radius in points of a marker."""
    return area**0.5 / 2


def _around(ax: "Axes", points: np.ndarray, names: list[str], size: float, *, turn: bool) -> list:
    outward = points - points.mean(axis=0)
    outward /= np.hypot(*outward.T)[:, None]
    gap = _radius(_area(len(names))) + 3
    return [
        ax.annotate(
            name,
            point,
            gap * direction,
            textcoords="offset points",
            fontsize=size,
            zorder=4,
            annotation_clip=False,
            **_alignment(direction, turn),
        )
        for name, point, direction in zip(names, points, outward, strict=True)
    ]


def _alignment(direction: np.ndarray, turn: bool) -> dict:
    x, y = direction
    if turn:
        angle = np.degrees(np.arctan2(y, x))
        left = x < -1e-9
        return {
            "rotation": angle + 180 if left else angle,
            "rotation_mode": "anchor",
            "ha": "right" if left else "left",
            "va": "center_baseline",
        }
    ha = "center" if abs(x) < 1e-9 else ("left" if x > 0 else "right")
    va = "center" if abs(y) <= 0.8 else ("bottom" if y > 0 else "top")
    return {"ha": ha, "va": va}


def _on_top(ax: "Axes", points: np.ndarray, names: list[str], size: float) -> list:
    box = {"boxstyle": "round,pad=0.25", "fc": "white", "ec": NEUTRAL, "lw": 0.6}
    return [
        ax.text(x, y, name, fontsize=size, ha="center", va="center", zorder=4, bbox=box)
        for (x, y), name in zip(points, names, strict=True)
    ]


def _fit(ax: "Axes", points: np.ndarray, labels: list, radius: float) -> None:
    """Choose the largest scale at which all nodes and names are inside the axes.

    Names keep their size whatever the limits, so with node i at x_i and its name
    reaching r_i to the right and l_i to the left of it (pixels), the scale s must satisfy s x_i + r_i - (s x_j - l_j) <= W
    for every pair: solved exactly, not by trial.
    """
    for label in labels:  # they will be inside: the layout need not reserve space for them
        label.set_in_layout(False)
    settle(ax)
    for label in labels:
        label.set_in_layout(True)
    before, after = _overhang(ax, points, labels, radius)
    frame = np.array(ax.get_window_extent().size)
    scale = min(_scale(points[:, k], before[:, k], after[:, k], frame[k]) for k in (0, 1))
    middle = ((scale * points - before).min(axis=0) + (scale * points + after).max(axis=0)) / 2
    low, high = (middle - frame / 2) / scale, (middle + frame / 2) / scale
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.set_aspect("equal")


def _overhang(ax: "Axes", points: np.ndarray, labels: list, radius: float):
    """Pixels by which node and name stick out to the left and below, to the right and above."""
    at = ax.transData.transform(points)
    boxes = np.array([_extent(label) for label in labels])
    pixels = radius * ax.figure.get_figure(root=True).dpi / 72
    return np.maximum(at - boxes[:, 0] + 2, pixels), np.maximum(boxes[:, 1] - at + 2, pixels)


def _extent(label) -> np.ndarray:
    """Corners in pixels of a text, its frame included."""
    patch = label.get_bbox_patch()
    return (label if patch is None else patch).get_window_extent().get_points()


def _scale(x: np.ndarray, before: np.ndarray, after: np.ndarray, length: float) -> float:
    """Largest scale (pixels a data unit) along one axis."""
    apart = x[:, None] - x[None]
    pairs = apart > 1e-9
    if not pairs.any():
        return length / 2  # all in a line: the other axis decides, if any does
    left = length - after[:, None] - before[None]
    # names may be wider than the axes: keep a fifth of the length for the graph
    return float(max((left[pairs] / apart[pairs]).min(), 0.2 * length / np.ptp(x)))
