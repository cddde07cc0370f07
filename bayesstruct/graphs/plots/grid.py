"""Matrices as coloured cells: names that fit on the sides, printed values, hatched cells, rows that are alike together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.plots.nodes import legend_columns
from bayesstruct.graphs.plots.style import FAINT, settle, short_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.image import AxesImage

__all__ = [
    "alike_together",
    "colour_bar",
    "draw_cells",
    "fit_names",
    "grid_size",
    "hatch_cells",
    "legend_above",
    "name_sides",
    "text_size",
]

MAX_PRINTED = 15  # rows up to which the numbers are printed
LONGEST = 28  # letters from which on names on the sides are cut
LEAST = 3.5  # points below which names are left out in turn instead of made smaller


def text_size(share: float) -> float:
    """Size in points of a text, as a share of the font size that the user has chosen."""
    import matplotlib as mpl

    return share * mpl.rcParams["font.size"]


def grid_size(
    rows: Sequence[str], columns: Sequence[str] | None = None, *, bars: int = 1
) -> tuple[float, float]:
    """Figure size in inches of a matrix with these names, square without `columns`, and so many colour bars."""
    beside = 0.075 * min(max(map(len, rows), default=0), LONGEST)
    below = beside if columns is None else 0.075 * min(max(map(len, columns), default=0), LONGEST)
    across = len(rows) if columns is None else len(columns)
    wide, high = (float(np.clip(1.8 + 0.3 * n, 2.2, 9.5)) for n in (across, len(rows)))
    return wide + beside + 0.2 + 0.9 * bars, high + below + 0.6


def alike_together(distance: np.ndarray) -> np.ndarray:
    """Order of rows in which those at small distances are neighbours.

    Parameters
    ----------
    distance : (n, n) ndarray of float
        Symmetric, not negative; its diagonal does not count.

    Returns
    -------
    (n,) ndarray of int
        Leaves of the average-linkage tree, turned such that neighbours are as close as they can be.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage

    n = len(distance)
    if n < 3:
        return np.arange(n)
    apart = np.asarray(distance)[np.triu_indices(n, 1)]
    return leaves_list(linkage(apart, "average", optimal_ordering=n <= 300))


def draw_cells(
    ax: "Axes", values: np.ndarray, texts: np.ndarray | None = None, **scale: Any
) -> "AxesImage":
    """Draw a matrix as coloured cells, with texts in them if there are few.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    values : (rows, columns) ndarray, masked where nothing is drawn
    texts : (rows, columns) ndarray of str, optional
        Printed in up to `MAX_PRINTED` rows and columns.
    **scale
        Of ``Axes.imshow``.
    """
    image = ax.imshow(values, **{"aspect": "equal", "interpolation": "nearest"} | scale)
    if texts is None or max(values.shape) > MAX_PRINTED:
        return image
    for i, j in np.argwhere(~np.ma.getmaskarray(values)):
        dark = _is_dark(image.cmap(image.norm(values[i, j])))
        style: dict[str, Any] = {"color": "white" if dark else "black", "fontsize": text_size(0.75)}
        ax.text(j, i, texts[i, j], ha="center", va="center", **style)
    return image


def _is_dark(rgba) -> bool:
    red, green, blue, _ = rgba
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.5


def hatch_cells(ax: "Axes", cells: np.ndarray, pattern: str = "////") -> None:
    """Hatch some cells, boolean (rows, columns)."""
    if not cells.any():
        return
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    squares = [Rectangle((j - 0.5, i - 0.5), 1, 1) for i, j in np.argwhere(cells)]
    style: dict[str, Any] = {"facecolor": "none", "edgecolor": FAINT, "linewidth": 0}
    ax.add_collection(PatchCollection(squares, hatch=pattern, zorder=1, **style), autolim=False)


def colour_bar(ax: "Axes", image, label: str, **options: Any):
    """Explain the colours on the right, and return the bar."""
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.75, pad=0.02, aspect=28, **options)
    bar.set_label(label, fontsize=text_size(0.9))
    bar.ax.tick_params(labelsize=text_size(0.8))
    bar.outline.set_visible(False)
    return bar


def legend_above(ax: "Axes", handles: list) -> None:
    """Explain cells above the matrix, and above the names on its left: other names are below."""
    ax.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=legend_columns(ax, 2, 4.2),
        frameon=False,
        fontsize=text_size(0.9),
        handlelength=1.4,
        columnspacing=1.4,
    )


def name_sides(ax: "Axes", rows: Sequence[str], columns: Sequence[str] | None = None) -> None:
    """Name rows and columns, which have the same names without `columns`, in a size at which names do not meet.

    Call it last: the size follows the axes as the layout leaves them.
    """
    columns = rows if columns is None else columns
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    many = max(len(rows), len(columns))
    sides: list[tuple[Axis, Sequence[str]]] = [(ax.xaxis, columns), (ax.yaxis, rows)]
    for axis, names in sides:
        axis.set_ticks(range(len(names)), short_labels([str(name) for name in names], LONGEST))
        axis.set_tick_params(
            labelsize=text_size(float(np.clip(1.05 - 0.007 * len(names), 0.5, 0.95)))
        )
        axis.set_ticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.tick_params(axis="x", labelrotation=90)
    ax.grid(
        which="minor", color=ax.get_facecolor(), lw=1 if many <= 20 else 0.4 if many <= 60 else 0
    )
    ax.tick_params(which="minor", length=0)
    fit_names(ax)


def fit_names(ax: "Axes") -> None:
    """Make names of rows and columns smaller where there is little room, and leave some out where there is none."""
    from matplotlib.ticker import FixedLocator

    settle(ax)
    dots = ax.figure.get_figure(root=True).dpi / 72
    box = ax.get_window_extent()
    for axis, length in ((ax.xaxis, box.width), (ax.yaxis, box.height)):
        if isinstance(axis.get_major_locator(), FixedLocator):  # names, not numbers
            _fit(axis, length / dots / abs(np.subtract(*axis.get_view_interval())))


def _fit(axis: "Axis", room: float) -> None:
    """Fit names that have so many points each."""
    labels = axis.get_ticklabels()
    wanted = 0.8 * room  # a line of text is a quarter higher than its size
    if not labels or wanted >= float(labels[0].get_fontsize()):
        return
    axis.set_tick_params(labelsize=max(wanted, LEAST))
    every = int(np.ceil(LEAST / wanted))
    if every > 1:
        places = axis.get_ticklocs()
        axis.set_ticks(places[::every], [label.get_text() for label in labels][::every])
