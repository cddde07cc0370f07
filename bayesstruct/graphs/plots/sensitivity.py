"""Bayes factors over the settings of a prior."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.plots.grid import text_size
from bayesstruct.graphs.plots.style import FAINT, NEUTRAL, UNDECIDED, axes, short_labels

if TYPE_CHECKING:
    import pandas as pd

    from matplotlib.axes import Axes

    from bayesstruct.graphs.comparisons.sensitivity import Sensitivity

__all__ = ["plot_sensitivity"]

#: Okabe and Ito's palette without the colour of the band; with three dashes it tells eighteen lines apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#000000")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)))
_NAMED = len(_COLOURS) * len(_DASHES)


def plot_sensitivity(
    result: "Sensitivity",
    edges: Iterable[tuple[str, str]] | None = None,
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the Bayes factor of each edge or arc over the settings of a prior.

    Parameters
    ----------
    result : Sensitivity
        From :func:`bayesstruct.sensitivity`.
    edges : iterable of pairs of names, optional
        Edges (arcs: parent, child) that are drawn in colour and named. By default those whose conclusion depends on the setting, at most
        18 of them, those of the widest range.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        One line for each edge, on a logarithmic scale; all others in grey. In the shaded band the data do not
        decide; above it they include an edge, below they exclude it. Triangles are bounds: the Bayes factor is
        beyond them. With one option that has numbers they are the horizontal axis; otherwise the settings stand
        side by side.

    Raises
    ------
    TypeError
        When `result` is something else.
    ValueError
        For a pair that the model does not consider, or whose edge was required or forbidden.

    Examples
    --------
    >>> ax = plot_sensitivity(result)  # doctest: +SKIP
    """
    if not hasattr(result, "table"):
        raise TypeError(
            f"plot_sensitivity draws what bs.sensitivity returns, not {type(result).__name__}"
        )
    factors, bounds = _wide(result, "bayes_factor"), _wide(result, "bound").astype(bool)
    tested = factors.notna().all(axis=1)
    chosen, left_out = _chosen(result, edges, factors[tested].index)
    names = sorted({name for pair in chosen for name in pair})
    short = dict(zip(names, short_labels(names, 18), strict=True))
    sign = " → " if result.line == "arc" else " – "
    labels = [f"{short[a]}{sign}{short[b]}" for a, b in chosen]
    ax = axes(ax, (6.3 + 0.075 * max(map(len, labels), default=0), 4.4))
    where = _horizontal(ax, result)
    _band(ax, result.threshold)
    for pair in factors[tested].index.difference(chosen, sort=False):
        ax.plot(where, factors.loc[pair], color=FAINT, lw=0.8, zorder=2)
    for k, pair in enumerate(chosen):
        pen: dict[str, Any] = {
            "color": _COLOURS[k % len(_COLOURS)],
            "linestyle": _DASHES[k // len(_COLOURS) % len(_DASHES)],
        }
        values = factors.loc[pair].to_numpy()
        ax.plot(where, values, marker="o", ms=3.5, lw=1.6, zorder=3, label=labels[k], **pen)
        _mark_bounds(ax, where, values, bounds.loc[pair].to_numpy(), pen["color"])
    _limits(ax, factors[tested].to_numpy(), result.threshold)
    ax.set(ylabel="Bayes factor", yscale="log")
    ax.spines[["top", "right"]].set_visible(False)
    _legend(ax, result, len(chosen), int(tested.sum()) - len(chosen), left_out)
    return ax


def _wide(result: "Sensitivity", column: str) -> "pd.DataFrame":
    """One row for each line, one column for each setting."""
    return result.table.pivot(index=["source", "target"], columns="setting", values=column)


def _chosen(result, edges, tested) -> tuple[list[tuple], int]:
    """Lines in colour, and how many of those that change are not."""
    if edges is None:
        changing = result.edges[result.edges["changes"]]
        width = np.log(changing["highest_factor"] / changing["lowest_factor"])
        changing = changing.iloc[np.argsort(-width, kind="stable")]
        pairs = list(zip(changing["source"], changing["target"], strict=True))
        pairs = [pair for pair in pairs if pair in tested]
        return pairs[:_NAMED], len(pairs[_NAMED:])
    chosen = []
    for source, target in edges:
        found = [(source, target), *([(target, source)] if result.line == "edge" else [])]
        known = [pair for pair in found if pair in tested]
        if not known:
            raise ValueError(
                f"no {result.line} of {source!r} and {target!r} was tested in all settings; `edges` is a list of pairs of names, "
                f"as in the columns source and target of result.edges"
            )
        chosen.append(known[0])
    return chosen, 0


def _horizontal(ax: "Axes", result: "Sensitivity") -> np.ndarray:
    """Positions of the settings, with their labels on the axis."""
    options = result.settings[list(result.options)]
    if len(result.options) == 1 and all(_is_number(v) for v in options.iloc[:, 0]):
        values = options.iloc[:, 0].to_numpy(float)
        if values.min() > 0 and values.max() / values.min() >= 8:
            ax.set_xscale("log")
        ax.set_xticks(values, [f"{v:g}" for v in values])
        ax.minorticks_off()
        ax.set_xlabel(result.options[0])
        return values
    where = np.arange(len(options))
    labels = ["\n".join(_text(v) for v in row) for row in options.itertuples(index=False)]
    ax.set_xticks(where, labels)
    ax.set_xlabel(", ".join(result.options))
    return where


def _is_number(value) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _text(value) -> str:
    return f"{value:g}" if _is_number(value) else str(value)


def _band(ax: "Axes", threshold: float) -> None:
    ax.axhspan(1 / threshold, threshold, color=UNDECIDED, alpha=0.13, lw=0, zorder=0)
    ax.axhline(1, color=NEUTRAL, lw=0.7, ls=(0, (4, 3)), zorder=1)
    beside: dict[str, Any] = {
        "xycoords": ax.get_yaxis_transform(),
        "textcoords": "offset points",
        "fontsize": "small",
        "color": NEUTRAL,
        "annotation_clip": False,
    }
    ax.annotate("included", (1, threshold), (3, 4), va="bottom", **beside)
    ax.annotate("undecided", (1, 1), (3, 0), va="center", **beside)
    ax.annotate("excluded", (1, 1 / threshold), (3, -4), va="top", **beside)


def _mark_bounds(ax: "Axes", where, values, bound, colour) -> None:
    for up, marker in ((True, "^"), (False, "v")):
        at = bound & ((values > 1) == up)
        ax.plot(where[at], values[at], marker, ms=7, color=colour, zorder=4)


def _limits(ax: "Axes", factors: np.ndarray, threshold: float) -> None:
    """Show the band in full and some space beyond it."""
    low, high = (factors.min(), factors.max()) if factors.size else (1.0, 1.0)
    ax.set_yscale("log")
    ax.set_ylim(min(low, 1 / threshold) / 2.5, max(high, threshold) * 2.5)


def _legend(ax: "Axes", result: "Sensitivity", named: int, grey: int, left_out: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    beside = text_size(5.2) / 72  # inches, of the names of the band
    shift = ScaledTranslation(beside, 0, ax.figure.get_figure(root=True).dpi_scale_trans)
    handles, labels = ax.get_legend_handles_labels()
    if grey:
        handles.append(Line2D([], [], color=FAINT, lw=0.8))
        more = f", {left_out} of which change" if left_out else ""
        labels.append(f"{grey} other {result.line}s{more}")
    if not handles:
        return
    ax.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(1, 1),
        bbox_transform=ax.transAxes + shift,
        frameon=False,
        fontsize="small",
        handlelength=3,
    )
