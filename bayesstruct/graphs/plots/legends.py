"""Legends of networks: below the network, inside its axes, where they lie over nothing."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.plots.nodes import crowding, thinning
from bayesstruct.graphs.plots.picture import Picture
from bayesstruct.graphs.plots.style import font_scale, ink, settle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_WIDTH = 6.0  # points, of the strongest edge
MIN_OPACITY = 0.25
SHARE = 0.16  # of the height of the axes that a legend may take before it is made smaller


def line_width(weight, largest: float):
    """Width in points of lines of some weights; `largest` is drawn at full width."""
    return 0.5 + (MAX_WIDTH - 0.5) * np.minimum(np.abs(weight) / largest, 1)


def opacity(probability: np.ndarray) -> np.ndarray:
    """Opacity of lines of some probabilities."""
    return MIN_OPACITY + (1 - MIN_OPACITY) * probability**2


def weight_handles(
    largest: float,
    p: int,
    thin: float = 1.0,
    *,
    signs: tuple[str, str] = ("positive", "negative"),
    quantity: str = "weight",
    ax: "Axes | None" = None,
) -> list:
    """Entries of a legend for the colours and widths of lines.

    Parameters
    ----------
    largest : float
        Weight at full width.
    p : int
        Number of nodes.
    thin : float
        Factor of the widths.
    signs : pair of str
        What the two colours mean.
    quantity : str
        What the width is.
    ax : Axes, optional
        Whose background decides on the colours, and whose size on the widths.
    """
    colours, thin = ink(ax), thin * (crowding(p) if ax is None else thinning(ax, p))
    handles = [
        _line(signs[0], color=colours.positive, lw=2.5),
        _line(signs[1], color=colours.negative, lw=2.5),
    ]
    for share in (1.0, 0.33):
        size = thin * line_width(share * largest, largest)
        handles.append(_line(f"|{quantity}| = {share * largest:.2g}", color=colours.line, lw=size))
    return handles


def probability_handles(ax: "Axes", min_probability: float) -> list:
    """Entries for lines whose probabilities alone are known."""
    from matplotlib.colors import to_rgba

    neutral = ink(ax).line
    return [
        _line(f"P = {share:.2g}", color=to_rgba(neutral, float(opacity(np.array(share)))), lw=1.5)
        for share in (1.0, min_probability)
    ]


def fixed_handles(ax: "Axes", required: int, forbidden: int) -> list:
    """Entries for lines that the user required or forbade, if there are any."""
    handles = []
    if required:
        handles.append(_line(f"required (not tested): {required}", color=ink(ax).text, lw=1.8))
    if forbidden:
        handles.append(_line(f"forbidden (not tested): {forbidden}", color="none", lw=0))
    return handles


def open_handles(ax: "Axes", number: int) -> list:
    """Entry for edges of undecided direction, if there are any."""
    if not number:
        return []
    return [_line(f"no head: direction undecided: {number}", color=ink(ax).line, lw=1.5)]


def evidence_handles(ax: "Axes", threshold: float, undecided: bool, min_probability) -> list:
    """Entries for lines by their Bayes factors."""
    neutral = ink(ax).line
    handles = [_line(f"included (BF ≥ {threshold:g})", color=neutral, lw=1.5)]
    if undecided:
        label = f"undecided, P ≥ {min_probability:g}"
        handles.append(_line(label, color=neutral, lw=1.5, linestyle=DASHES))
    return handles


def node_handles(
    ax: "Axes", groups: Mapping[str, str], rings: bool, *, hidden: bool = False
) -> list:
    """Entries for the colours of nodes, the rings around them and the outlines of hidden ones."""
    from matplotlib.patches import Patch

    colours = ink(ax)
    look = {"marker": "o", "linestyle": "", "markeredgecolor": colours.line}
    handles = [
        _line(label, markerfacecolor=colour, markersize=8, markeredgewidth=0.8, **look)
        for label, colour in groups.items()
    ]
    if rings:
        ring = look | {"markeredgecolor": colours.positive, "markeredgewidth": 2.2}
        handles.append(
            _line("full ring: predictability 1", markerfacecolor=colours.node, markersize=7, **ring)
        )
    if hidden:
        handles.append(
            Patch(
                facecolor=colours.paper,
                edgecolor=colours.line,
                linestyle=DASHES,
                linewidth=0.9,
                label="hidden",
            )
        )
    return handles


DASHES = (0, (2.5, 1.5))


def _line(label: str, **style):
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, solid_capstyle="butt", **style)


def legend_below(ax: "Axes", handles: list, title: str) -> None:
    """Explain lines below the picture, in as many columns as the axes are wide."""
    put_below(ax, handles, f"{title}, paler = less probable")


def put_below(ax: "Axes", handles: list, title: str | None = None) -> None:
    """Put a legend at the bottom of the axes, or its title alone; `draw_nodes` keeps the network above it."""
    if not handles and title is None:
        return
    settle(ax)  # the axes have their size
    explain = partial(_explain, handles, title)
    explain(ax, ax.bbox.width)
    picture = ax.get_axes_locator()
    if isinstance(picture, Picture):
        picture.explain = explain


def put_above(ax: "Axes", handles: list, most: int = 3, **style) -> None:
    """Put a legend above the axes, in as many columns as have room, and over the names on the left if it must be.

    Call it last: the room follows the axes as the layout leaves them.
    """
    settle(ax)
    figure = ax.figure.get_figure(root=True)
    box = ax.get_window_extent()
    left = box.x0 if len(figure.axes) > 1 else figure.bbox.x0 + 0.05 * figure.dpi
    for columns in range(min(most, len(handles)), 0, -1):
        for side, limit in ((0, box.width), (1, box.x1 - left)):
            legend = ax.legend(
                handles=handles,
                loc=("lower left", "lower right")[side],
                bbox_to_anchor=(side, 1),
                ncols=columns,
                frameon=False,
                borderaxespad=0.2,
                borderpad=0.2,
                columnspacing=1.2,
                **style,
            )
            if legend.get_window_extent().width <= limit:
                return


def _explain(handles: list, title: str | None, ax: "Axes", width: float) -> None:
    """Make a legend that is at most so many pixels wide and takes a small part of the height, or as small a one as can be."""
    lowest, best = np.inf, None
    for shape in _shapes(max(len(handles), 1)):
        box = _legend(ax, handles, title, *shape).get_window_extent()
        if box.width <= width and box.height < lowest - 1:
            lowest, best = box.height, shape
        if lowest <= SHARE * ax.bbox.height:
            break
    _legend(ax, handles, title, *(best or shape))


def _legend(ax: "Axes", handles: list, title: str | None, size: float, columns: int):
    wide, colour = size > 8, ink(ax).text
    legend = ax.legend(
        handles=handles,
        title=title,
        loc="lower center",
        bbox_to_anchor=(0.5, 0),
        borderaxespad=0.1,
        borderpad=0.2,
        ncols=columns,
        frameon=False,
        fontsize=size * font_scale(),
        title_fontsize=size * font_scale(),
        labelcolor=colour,
        columnspacing=1.4 if wide else 1.0,
        handlelength=1.8 if wide else 1.3,
        handletextpad=0.8 if wide else 0.5,
    )
    legend.get_title().set_color(colour)
    return legend


def _shapes(n: int) -> list[tuple[float, int]]:
    """Sizes of text and numbers of columns to try, rows of equal length."""
    columns = sorted({-(-n // rows) for rows in range(1, n + 1)}, reverse=True)
    return [(size, k) for size in (9.0, 7.5, 6.5) for k in columns]
