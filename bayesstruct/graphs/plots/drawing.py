"""What is drawn of nodes: discs or frames, names, rings and the key."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.plots.layouts.labels import (
    BARE,
    FRAMED,
    INSIDE,
    PADDING,
    TURNED,
    Arrangement,
)
from bayesstruct.graphs.plots.style import ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RING = 1.4  # outer radius of a ring around a node, against that of the node
OUTLINES = {False: "-", True: (0, (2.5, 1.5))}  # of nodes that were observed, and of hidden ones


@dataclass(frozen=True)
class Look:
    """How nodes look, in the order of the positions.

    Attributes
    ----------
    colours : list of str, optional
        Fill of each node.
    shares : ndarray, optional
        Part of a ring around each node that is filled, in [0, 1]; NaN for no ring.
    hidden : ndarray of bool, optional
        Nodes that were not observed: their outlines are dashed, their names slanted.
    """

    colours: list[str] = field(default_factory=list)
    shares: np.ndarray | None = None
    hidden: np.ndarray | None = None

    def fill(self, p: int, seen: str, unseen: str) -> list[str]:
        """Colours of p nodes, with one for those that were observed and one for others unless they have some."""
        if self.colours:
            return self.colours
        return [unseen if own else seen for own in self.is_hidden(p)]

    def is_hidden(self, p: int) -> np.ndarray:
        """Whether each of p nodes is hidden."""
        return np.zeros(p, bool) if self.hidden is None else self.hidden

    @property
    def discs(self) -> bool:
        """Whether nodes have to be discs."""
        return self.shares is not None

    @property
    def ring(self) -> float:
        """Outer radius of what is around a node, against that of the node."""
        return 1.0 if self.shares is None else RING


def draw_arrangement(
    ax: "Axes", points: np.ndarray, found: Arrangement, look: Look, size: np.ndarray
) -> list[Any]:
    """Draw nodes, names and key as they were arranged, and return what was drawn."""
    colours = ink(ax)
    fill, hidden = look.fill(len(points), colours.node, colours.paper), look.is_hidden(len(points))
    drawn: list[Any] = _texts(ax, points, found, fill, hidden, colours)
    if look.shares is not None:
        drawn += _rings(ax, points, look.shares, found.radius, colours)
    if found.key is not None:
        for text, (x, y) in zip(found.key.texts, found.key.corners / size, strict=True):
            drawn.append(
                ax.text(x, y, text, transform=ax.transAxes, fontsize=found.key.size,
                        va="top", ha="left", color=colours.text, parse_math=False, zorder=4)
            )  # fmt: skip
    area = (2 * found.radius) ** 2
    if not found.round:  # beneath its name
        area, fill = 1.0, [colours.line] * len(points)
    drawn.append(
        ax.scatter(
            points[:, 0], points[:, 1], s=area, color=fill, edgecolor=colours.line, lw=0.8,
            linestyle=[OUTLINES[own] for own in hidden.tolist()], zorder=3,
        )
    )  # fmt: skip
    return drawn


def _texts(ax: "Axes", points, found: Arrangement, fill: list[str], hidden, colours) -> list[Any]:
    if found.way == BARE:
        return []
    angle = np.degrees(found.labels.angle)
    angle = np.where(np.abs(angle) > 90 + 1e-6, angle + 180, angle) * (found.way == TURNED)
    out = []
    for k, (text, point, offset) in enumerate(
        zip(found.texts, points, found.labels.offset, strict=True)
    ):
        label = ax.annotate(
            text, point, offset, textcoords="offset points", fontsize=found.size,
            ha="center", va="center", rotation=angle[k], color=colours.text,
            zorder=4, annotation_clip=False, parse_math=False,
            multialignment=_align(offset[0], found.way),
        )  # fmt: skip
        if found.way == FRAMED:
            style = f"round,pad={PADDING},rounding_size=0.25"
            outline = {"ec": colours.line, "lw": 0.6, "linestyle": OUTLINES[bool(hidden[k])]}
            label.set_bbox({"boxstyle": style, "fc": fill[k], **outline})
        if hidden[k]:
            label.set_fontstyle("italic")
        if found.way in (FRAMED, INSIDE):
            label.set_color(_readable_on(fill[k]))
        out.append(label)
    return out


def _align(across: float, way: str) -> str:
    if way in (FRAMED, INSIDE, TURNED) or abs(across) < 1e-6:
        return "center"
    return "left" if across > 0 else "right"


def _readable_on(colour: str) -> str:
    from matplotlib.colors import to_rgb

    return "white" if np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) < 0.5 else "black"


def _rings(ax: "Axes", points, shares: np.ndarray, radius: float, colours) -> list[Any]:
    """Draw a ring around each node, filled clockwise from the top."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path
    from matplotlib.transforms import IdentityTransform

    known = np.flatnonzero(~np.isnan(shares))
    if not len(known):
        return []
    whole = [Path.unit_circle()] * len(known)
    parts = [Path.wedge(90 - 360 * max(shares[k], 1e-3), 90) for k in known]
    out = []
    for paths, colour, order in ((whole, colours.paper, 2.8), (parts, colours.positive, 2.9)):
        ring = PathCollection(
            paths, sizes=[(RING * radius) ** 2], offsets=points[known], offset_transform=ax.transData,
            facecolors=colour, edgecolors=colours.line, linewidths=0.5, zorder=order,
        )  # fmt: skip
        ring.set_transform(IdentityTransform())
        out.append(ax.add_collection(ring, autolim=False))
    return out
