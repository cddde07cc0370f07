"""A network on its axes, arranged anew whenever the axes change size: by other plots, legends, titles, or the window."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from bayesstruct.graphs.plots.drawing import Look, draw_arrangement
from bayesstruct.graphs.plots.layouts.keys import Frame
from bayesstruct.graphs.plots.layouts.labels import Arrangement, Page, arrange
from bayesstruct.graphs.plots.layouts.positions import Positions, is_round
from bayesstruct.graphs.plots.style import font_scale, settle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGIN = 2.0  # points around everything

#: What follows the nodes: lines that bend around them, arrows that end at them.
Follower = Callable[["Axes", "Picture"], None]


class Picture:
    """The network of an axes, as the locator that matplotlib asks for the place of the axes before it draws.

    Attributes
    ----------
    pos : dict of name to (float, float)
    arrangement : Arrangement or None
        The latest.
    """

    def __init__(self, ax: "Axes", pos: Positions):
        self.pos = pos
        self._ax = ax
        self.look = Look()
        self.arrangement: Arrangement | None = None
        #: Makes the legend anew, at most so many pixels wide.
        self.explain: Callable[[Axes, float], None] | None = None
        self._width = 0.0
        self._followers: list[Follower] = []
        self._artists: list[Any] = []
        self._locator: Any = ax.get_axes_locator()
        self._seen: tuple = ()
        self._drawn = False

    @classmethod
    def on(cls, ax: "Axes", pos: Positions) -> Self:
        """Take the picture of an axes, or begin one."""
        found: Any = ax.get_axes_locator()
        if isinstance(found, cls) and found.pos == pos:
            return found
        picture = cls(ax, pos)
        ax.set_axes_locator(cast(Any, picture))
        return picture

    @property
    def points(self) -> np.ndarray:
        """Positions, shape (p, 2)."""
        return np.array(list(self.pos.values()), float).reshape(-1, 2)

    def follow(self, follower: Follower) -> None:
        """Call a function after each new arrangement."""
        self._followers.append(follower)

    def show(self, ax: "Axes", look: "Look | None" = None) -> Arrangement:
        """Draw the nodes, from now on whenever the size of the axes has changed."""
        self.look = look or self.look
        ax.set_axis_off()
        ax.set_aspect("auto")
        self._seen, self._drawn = (), False
        settle(ax)
        self._drawn = True
        self._update(ax)
        assert self.arrangement is not None
        return self.arrangement

    def __call__(self, ax: "Axes", renderer):
        """Answer matplotlib where the axes are, all arranged for their present size."""
        where = self._locator(ax, renderer) if self._locator else None
        if self._drawn:
            self._update(ax, where)
        return where

    def get_subplotspec(self):
        """Answer the place in a grid of subplots, which "tight" layouts ask of a locator."""
        return self._ax.get_subplotspec()

    def _update(self, ax: "Axes", where=None) -> None:
        size = _points_of(ax, ax.get_position(original=True) if where is None else where)
        state = (*np.round(size, 1), round(_legend_height(ax, size), 1))
        if state == self._seen or size.min() <= 4 * MARGIN:
            return
        self._seen = state
        frame = Frame(
            MARGIN, MARGIN + state[2], size[0] - 2 * MARGIN, max(size[1] - state[2] - 2 * MARGIN, 9)
        )
        self._arrange(ax, size, frame)

    def _arrange(self, ax: "Axes", size: np.ndarray, frame: Frame) -> None:
        page = Page(frame, _measure(ax), font_scale(), self.look.discs, self.look.ring)
        names = [str(name) for name in self.pos]
        found = arrange(self.points, names, page, round=is_round(self.pos))
        self.arrangement = found
        low, high = -found.shift / found.scale, (size - found.shift) / found.scale
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[1], high[1])
        for artist in self._artists:
            artist.remove()
        for follower in self._followers:
            follower(ax, self)
        self._artists = draw_arrangement(ax, self.points, found, self.look, size)


def _points_of(ax: "Axes", where) -> np.ndarray:
    """Width and height in points of a place on the figure."""
    figure = ax.figure
    pixels = np.array(figure.bbox.size) * where.size
    return pixels * 72 / figure.get_figure(root=True).dpi


def _legend_height(ax: "Axes", size: np.ndarray) -> float:
    """Points to leave for legends at the bottom: the highest of networks of equal size in the figure."""
    heights = [_own_legend(ax, size)]
    for other in ax.figure.get_figure(root=True).get_axes():
        if other is not ax and isinstance(other.get_axes_locator(), Picture):
            theirs = _points_of(other, other.get_position(original=True))
            if np.abs(theirs - size).max() < 1:
                heights.append(_own_legend(other, theirs))
    return max(heights)


def _own_legend(ax: "Axes", size: np.ndarray) -> float:
    """Height of the legend, made anew if the width has changed."""
    picture = cast(Picture, ax.get_axes_locator())
    pixels = ax.figure.get_figure(root=True).dpi / 72
    if picture.explain and ax.get_legend() is not None and abs(picture._width - size[0]) > 1:
        picture.explain(ax, size[0] * pixels)
        picture._width = size[0]
    legend = ax.get_legend()
    if legend is None or not legend.get_visible():
        return 0.0
    box = legend.get_window_extent()
    if box.y0 < ax.bbox.y0 - 2 or box.y0 > ax.bbox.y0 + ax.bbox.height / 4:
        return 0.0  # not at the bottom inside the axes
    return float(box.height / pixels) + 4


def _measure(ax: "Axes"):
    from matplotlib.text import Text

    scratch = Text(0, 0, "", figure=ax.figure.get_figure(root=True), parse_math=False)
    factor = 72 / ax.figure.get_figure(root=True).dpi
    known: dict[tuple[str, float], tuple[float, float]] = {}

    def measure(texts, size: float) -> np.ndarray:
        scratch.set_fontsize(size)
        for text in texts:
            if (text, size) not in known:
                scratch.set_text(text)
                box = scratch.get_window_extent()
                known[text, size] = (box.width * factor, box.height * factor)
        return np.array([known[text, size] for text in texts], float).reshape(-1, 2)

    return measure
