"""Arcs of a directed graph as arrows between the borders of its nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.plots.layouts.curves import BENDS, bends, control
from bayesstruct.graphs.plots.layouts.positions import is_round

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayesstruct.graphs.plots.picture import Picture

ONE_WAY, TWO_WAY, PAIR = "one-way", "two-way", "pair"
#: Curvatures of the two arcs of a pair, on either side of the straight line.
PAIR_BENDS = (0.18, 0.28, 0.4)
#: On a circle both bend inward, one more than the other: outside are names.
ROUND_BENDS = ((0.05, 0.12, 0.18), (0.25, 0.33, 0.4))
GAP = 1.0  # points between the tip of an arrow and the border of its node
ANGLES = np.linspace(0, 2 * np.pi, 361)


@dataclass(frozen=True)
class Arrow:
    """One arc: its ends as positions in the order of the nodes, and its style.

    Attributes
    ----------
    parent, child : int
    way : str
        "one-way"; "two-way", one line without heads; or one of a "pair" of arcs of opposite directions.
    colour : tuple
    width : float
        In points.
    dashes : str or tuple
        Line style of matplotlib.
    """

    parent: int
    child: int
    way: str
    colour: Any
    width: float
    dashes: Any = "-"


class Arrows:
    """Arrows on an axes, drawn again after each arrangement of its nodes."""

    def __init__(self, arrows: Sequence[Arrow], crowding: float):
        self.arrows = list(arrows)
        self.crowding = crowding
        self._drawn: list[Any] = []

    def __call__(self, ax: "Axes", picture: "Picture") -> None:
        """Draw the arrows, the last on top."""
        found = picture.arrangement
        assert found is not None
        for patch in self._drawn:
            patch.remove()
        points, half = picture.points * found.scale, found.bodies.half
        bend = self._bends(points, half, is_round(picture.pos))
        starts, tips = self._ends(points, half, bend, found.round)
        self._drawn = [
            ax.add_patch(self._patch(arrow, start / found.scale, tip / found.scale, bent))
            for arrow, start, tip, bent in zip(self.arrows, starts, tips, bend, strict=True)
        ]

    def _bends(self, points, half, inward: bool) -> np.ndarray:
        ends = np.array([(arrow.parent, arrow.child) for arrow in self.arrows]).reshape(-1, 2)
        paired = np.array([arrow.way == PAIR for arrow in self.arrows], bool)
        back = paired & (ends[:, 0] > ends[:, 1])
        first, second = ROUND_BENDS if inward else (PAIR_BENDS, PAIR_BENDS)
        out = np.zeros(len(ends))
        for chosen, choices in ((~paired, BENDS), (paired & ~back, first), (back, second)):
            out[chosen] = bends(points, half, ends[chosen], choices, inward=inward)
        return out

    def _size(self, arrow: Arrow) -> float:
        """Scale of a head: matplotlib makes it 0.4 of this wide."""
        return (7 + 1.6 * arrow.width) * self.crowding

    def _ends(self, points, half, bend, round: bool) -> tuple[np.ndarray, np.ndarray]:
        """Where arrows leave and meet the borders of their nodes, in points; (n, 2) each."""
        n = len(self.arrows)
        out = np.zeros((2, n, 2))
        at_node: dict[int, list[tuple[int, int]]] = {}
        for k, arrow in enumerate(self.arrows):
            at_node.setdefault(arrow.parent, []).append((0, k))
            at_node.setdefault(arrow.child, []).append((1, k))
        for node, ends in at_node.items():
            border = Border(half[node], round)
            others = [(self.arrows[k].child, self.arrows[k].parent)[side] for side, k in ends]
            towards = [
                control(points[self.arrows[k].parent], points[self.arrows[k].child], bend[k])
                if bend[k]
                else points[other]
                for (_, k), other in zip(ends, others, strict=True)
            ]
            places = border.places(np.array(towards) - points[node])
            needed = [
                0.4 * self._size(self.arrows[k]) + self.arrows[k].width
                if side and self.arrows[k].way != TWO_WAY
                else self.arrows[k].width
                for side, k in ends
            ]
            apart = spread(places, np.array(needed) + 1.0, border.length)
            for (side, k), at in zip(ends, points[node] + border.at(apart), strict=True):
                out[side, k] = at
        return out[0], out[1]

    def _patch(self, arrow: Arrow, start, tip, bend: float):
        from matplotlib.patches import FancyArrowPatch

        return FancyArrowPatch(
            tuple(start), tuple(tip), connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-" if arrow.way == TWO_WAY else "-|>", mutation_scale=self._size(arrow),
            shrinkA=0, shrinkB=0, color=arrow.colour, lw=arrow.width, linestyle=arrow.dashes,
            capstyle="butt", joinstyle="miter", zorder=2, clip_on=False,
        )  # fmt: skip


class Border:
    """The border of a node, just outside it: places along it are lengths in points.

    Parameters
    ----------
    half : ndarray, shape (2,)
        Half width and height.
    round : bool
        Whether the node is a disc.
    """

    def __init__(self, half: np.ndarray, round: bool):
        direction = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
        if round:
            reach = np.full(len(ANGLES), half[0])
        else:
            with np.errstate(divide="ignore"):
                reach = (half / np.abs(direction)).min(axis=1)
        self._path = direction * (reach + GAP)[:, None]
        steps = np.hypot(*np.diff(self._path, axis=0).T)
        self._along = np.concatenate([[0.0], np.cumsum(steps)])

    @property
    def length(self) -> float:
        """All around."""
        return float(self._along[-1])

    def places(self, directions: np.ndarray) -> np.ndarray:
        """Where rays from the middle meet the border."""
        angle = np.arctan2(directions[:, 1], directions[:, 0]) % (2 * np.pi)
        return np.interp(angle, ANGLES, self._along)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Points of the border, from the middle of the node."""
        places = np.asarray(places) % self.length
        return np.stack([np.interp(places, self._along, self._path[:, k]) for k in (0, 1)], axis=1)


def spread(places: np.ndarray, needed: np.ndarray, length: float) -> np.ndarray:
    """Move places along a closed border apart, as little as needed by least squares.

    Parameters
    ----------
    places : ndarray, shape (n,)
        Along the border, in [0, length).
    needed : ndarray, shape (n,)
        Width that each place takes.
    length : float
        All around the border.

    Returns
    -------
    ndarray, shape (n,)
        In the order around the border that they had.

    Notes
    -----
    Less the widths before them, the places must not decrease: a monotone regression, from the widest gap on.
    """
    from scipy.optimize import isotonic_regression

    if len(places) < 2:
        return places
    needed = needed * min(1.0, 0.95 * length / needed.sum())
    order = np.argsort(places, kind="stable")
    gaps = np.diff(places[order], append=places[order[0]] + length)
    order = np.roll(order, -1 - int(np.argmax(gaps)))
    at = places[order]
    at = at + length * (at < at[0])
    width = needed[order]
    before = np.concatenate([[0.0], np.cumsum((width[1:] + width[:-1]) / 2)])
    moved = isotonic_regression(at - before).x + before
    room = length - (width[0] + width[-1]) / 2
    if moved[-1] - moved[0] > room:  # all around is taken: in order, from the first on
        moved = moved[0] + before * room / before[-1]
    out = np.empty_like(moved)
    out[order] = moved
    return out
