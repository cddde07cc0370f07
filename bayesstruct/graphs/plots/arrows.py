"""Arcs of a directed graph as arrows between the borders of its nodes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.plots.nodes import crowding
from bayesstruct.graphs.plots.positions import Positions
from bayesstruct.graphs.plots.style import NEUTRAL, sign_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Curvatures that are tried, in this order, until an arrow keeps clear of all other nodes.
BENDS = (0.0, 0.12, -0.12, 0.25, -0.25, 0.4, -0.4)
STEPS = np.linspace(0.05, 0.95, 19)


def draw_arrows(
    ax: "Axes", arcs: list, pos: Positions, sizes: np.ndarray, style: Callable[[int], tuple]
) -> None:
    """Draw arcs, the last on top.

    Parameters
    ----------
    ax : Axes
        With its nodes drawn and its limits set: whether an arrow is clear of a node depends on the scale.
    arcs : list of (parent, child, two-way)
        Two-way ones have no heads.
    pos : dict of name to (float, float)
    sizes : ndarray, shape (p, 2)
        Half width and half height of each node, in points, in the order of `pos`.
    style : function of the number of an arc
        Gives its colour and width.
    """
    from matplotlib.patches import FancyArrowPatch

    place = {name: k for k, name in enumerate(pos)}
    points = np.array(list(pos.values())) * _points_per_unit(ax)
    for k, (a, b, both) in enumerate(arcs):
        i, j = place[a], place[b]
        bend = _bend(points, sizes, i, j)
        middle = _control(points[i], points[j], bend)
        colour, width = style(k)
        ax.add_patch(
            FancyArrowPatch(
                pos[a],
                pos[b],
                connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-" if both else "-|>",
                mutation_scale=(7 + 1.6 * width) * crowding(len(pos)),
                shrinkA=_reach(middle - points[i], sizes[i]) + 1,
                shrinkB=_reach(middle - points[j], sizes[j]) + 1,
                color=colour,
                lw=width,
                capstyle="butt",
                joinstyle="miter",
                zorder=2,
            )
        )


def arrow_style(
    weight: np.ndarray, widths: np.ndarray, opacity: np.ndarray
) -> Callable[[int], tuple]:
    """Colour and width of arcs; neutral without weights."""
    from matplotlib.colors import to_rgba

    known = not np.isnan(weight).any()
    colours = sign_colour(weight) if known else np.full(len(weight), NEUTRAL)
    return lambda k: (to_rgba(colours[k], float(opacity[k])), float(widths[k]))


def _points_per_unit(ax: "Axes") -> float:
    """Scale of the axes, the same both ways, in points."""
    pixels = ax.transData.transform([[0, 0], [1, 0]])
    return float(pixels[1, 0] - pixels[0, 0]) * 72 / ax.figure.get_figure(root=True).dpi


def _control(start: np.ndarray, end: np.ndarray, bend: float) -> np.ndarray:
    """Control point of matplotlib's "arc3" curve."""
    dx, dy = end - start
    return (start + end) / 2 + bend * np.array([dy, -dx])


def _bend(points: np.ndarray, sizes: np.ndarray, i: int, j: int) -> float:
    """First curvature that meets no other node; the one that meets fewest if all meet some."""
    others = np.delete(np.arange(len(points)), [i, j])
    met = [_met(points, sizes, i, j, others, bend) for bend in BENDS]
    return BENDS[int(np.argmin(met))]


def _met(points, sizes, i: int, j: int, others: np.ndarray, bend: float) -> int:
    middle, t = _control(points[i], points[j], bend), STEPS[:, None]
    curve = (1 - t) ** 2 * points[i] + 2 * t * (1 - t) * middle + t**2 * points[j]
    inside = np.abs(curve[:, None] - points[others]) < sizes[others] + 3
    return int(inside.all(axis=2).any(axis=0).sum())


def _reach(direction: np.ndarray, size: np.ndarray) -> float:
    """Distance in points from the centre of a box to its border, in a direction."""
    length = np.hypot(*direction)
    if not length:
        return 0.0
    with np.errstate(divide="ignore"):
        return float((size / np.abs(direction / length)).min())
