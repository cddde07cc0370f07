"""Lines of a graph by two numbers between 0 and 1: two posteriors, or a posterior beside bootstrap samples."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.plots.forest import pair_labels
from bayesstruct.graphs.plots.style import FAINT, NEUTRAL, POSITIVE, axes, settle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayesstruct.graphs.comparisons.bootstrap import BootstrapSupport
    from bayesstruct.graphs.comparisons.results import ResultComparison

__all__ = ["plot_bootstrap_support", "plot_comparison"]

_NAMED = 15  # points at most


def plot_comparison(
    comparison: "ResultComparison",
    labels: tuple[str, str] = ("a", "b"),
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the probability of each edge or arc in one result against that in another.

    Parameters
    ----------
    comparison : ResultComparison
        From :func:`bayesstruct.compare` of two results.
    labels : pair of str
        Names of the two results, for the axes.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        A point for each edge. In blue those on which the conclusions (included, excluded, undecided) differ; the
        farthest from the diagonal have their names, as far as there is space.

    Raises
    ------
    TypeError
        When `comparison` is that of one result with a known graph.
    ValueError
        When there are not two labels.

    Examples
    --------
    >>> ax = plot_comparison(compare(women, men), ("women", "men"))  # doctest: +SKIP
    """
    if not hasattr(comparison, "differ"):
        raise TypeError(
            "plot_comparison draws bs.compare(idata, other) of two results; of a result and a known graph see bs.plot_calibration"
        )
    if isinstance(labels, str) or len(labels) != 2:
        raise ValueError(f"`labels` must be two names, one for each result, got {labels!r}")
    table = comparison.table
    differ = comparison.differ.to_numpy()
    ax = _unit_square(
        ax,
        table["probability_a"].to_numpy(),
        table["probability_b"].to_numpy(),
        _line_names(table, comparison.line),
        differ,
        (f"conclusions differ: {differ.sum()}", f"other {comparison.line}s: {(~differ).sum()}"),
    )
    for axis, label in zip("xy", labels, strict=True):
        ax.set(**{f"{axis}label": f"P({comparison.line}), {label}"})
    return ax


def plot_bootstrap_support(support: "BootstrapSupport", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the bootstrap support of each edge or arc against its posterior probability.

    Parameters
    ----------
    support : BootstrapSupport
        From :func:`bayesstruct.bootstrap_support` with a `posterior`.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        A point for each edge; in blue those of the estimate from all rows. Of these the farthest from the diagonal have
        their names, as far as there is space. Above the diagonal the method selects an edge more often than it is probable.

    Raises
    ------
    TypeError
        When `support` is something else.
    ValueError
        When no posterior was given.

    Examples
    --------
    >>> ax = plot_bootstrap_support(support)  # doctest: +SKIP
    """
    if not hasattr(support, "table"):
        raise TypeError(
            f"plot_bootstrap_support draws what bs.bootstrap_support returns, not {type(support).__name__}"
        )
    table = support.table
    if "probability" not in table:
        raise ValueError(
            "there are no posterior probabilities to draw: bs.bootstrap_support(..., posterior=idata)"
        )
    chosen = table["estimate"].to_numpy()
    ax = _unit_square(
        ax,
        table["probability"].to_numpy(),
        table["support"].to_numpy(),
        _line_names(table, support.line),
        chosen,
        (f"in the estimate: {chosen.sum()}", f"other {support.line}s: {(~chosen).sum()}"),
    )
    ax.set(
        xlabel=f"posterior probability of the {support.line}",
        ylabel=f"bootstrap support ({support.n_bootstrap} samples)",
    )
    return ax


def _line_names(table, line: str) -> list[str]:
    """Names of the edges or arcs of a table, shortened."""
    sign = " → " if line == "arc" else " – "
    return pair_labels(table, sign, 14)


def _unit_square(
    ax: "Axes | None",
    x: np.ndarray,
    y: np.ndarray,
    names: Sequence[str],
    marked: np.ndarray,
    legend: tuple[str, str],
) -> "Axes":
    """Draw points on the unit square with its diagonal; marked ones in blue and named.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
    x, y : ndarray of float, shape (n,)
    names : sequence of str, length n
    marked : ndarray of bool, shape (n,)
    legend : pair of str
        Of marked points, and of the others.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = axes(ax, (5.2, 5.4))
    ax.plot([0, 1], [0, 1], color=NEUTRAL, lw=0.9, ls=(0, (4, 3)), zorder=1)
    ax.scatter(x[~marked], y[~marked], s=18, color=FAINT, zorder=2, label=legend[1])
    ax.scatter(x[marked], y[marked], s=30, color=POSITIVE, zorder=3, label=legend[0])
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)
    handles, texts = ax.get_legend_handles_labels()
    ax.legend(
        handles[::-1],
        texts[::-1],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=2,
        frameon=False,
        fontsize="small",
        handletextpad=0.2,
    )
    farthest = np.argsort(-np.abs(x - y), kind="stable")
    _name_points(ax, x, y, names, [k for k in farthest if marked[k]][:_NAMED])
    return ax


def _name_points(ax: "Axes", x, y, names: Sequence[str], order: Sequence[int]) -> None:
    """Write names beside points, or at the end of a thin line, where they hide no point and no name; leave out those without space."""
    settle(ax)
    dots = ax.figure.get_figure(root=True).dpi / 72
    points = ax.transData.transform(np.column_stack([x, y]))
    inside, taken = np.array(ax.get_window_extent().extents), np.zeros((0, 4))
    lines: list[np.ndarray] = []
    for k in order:
        text = ax.annotate(names[k], (x[k], y[k]), fontsize="x-small")
        size = np.array(text.get_window_extent().size) + 2
        text.remove()
        for offset, box, line in _places(points[k], size, dots):
            others = np.delete(points, k, axis=0) if len(line) == 0 else points
            near = 4 * dots * np.array([-1, -1, 1, 1])  # radius of a point
            if (
                (box[:2] >= inside[:2]).all()
                and (box[2:] <= inside[2:]).all()
                and not _within(others, box + near)
                and not any(_within(own, box) for own in lines)
                and not any(_within(line, own) for own in taken)
                and not ((box[:2] < taken[:, 2:]) & (box[2:] > taken[:, :2])).all(axis=1).any()
            ):
                break
        else:
            continue
        taken, lines = np.vstack([taken, box]), [*lines, line]
        side = int(np.sign(offset[0]))
        leader = {"arrowstyle": "-", "lw": 0.5, "color": NEUTRAL, "shrinkA": 1, "shrinkB": 3}
        ax.annotate(
            names[k],
            (x[k], y[k]),
            tuple(offset),
            textcoords="offset points",
            va="center",
            ha=("center", "left", "right")[side],
            fontsize="x-small",
            arrowprops=leader | {"relpos": (0.5 - side / 2, 0.5)} if len(line) else None,
        )


def _within(points: np.ndarray, box: np.ndarray) -> bool:
    """Whether a point is in a box."""
    return bool(((points > box[:2]) & (points < box[2:])).all(axis=1).any())


def _places(point: np.ndarray, size: np.ndarray, dots: float):
    """Places for a name around a point: the offset in points, and the box and points of the line to it in pixels."""
    for distance in (6, 14, 24, 36, 50):
        for turn in _TURNS:
            offset = distance * np.array([np.cos(turn), np.sin(turn)]).round(6)
            line = point + dots * offset * np.linspace(0.2, 1, 12)[:, None]
            if distance < 10:
                line = line[:0]  # beside the point
                offset[1] += np.sign(offset[1]) * (offset[0] == 0) * size[1] / 2 / dots
            x, y = point + dots * offset
            left = x - (0 if offset[0] > 0 else size[0] if offset[0] < 0 else size[0] / 2)
            yield offset, np.array([left, y - size[1] / 2, left + size[0], y + size[1] / 2]), line


#: Directions in which there may be names, those beside the point first.
_TURNS = np.pi * np.array([0, 1, 0.25, 0.75, -0.25, -0.75, 0.5, -0.5])
