"""Centrality of nodes with intervals, one panel for each measure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import whole_number
from bayesstruct.graphs.nodes.centrality import centrality
from bayesstruct.graphs.nodes.weighted import DRAWS
from bayesstruct.graphs.plots.style import NEGATIVE, NEUTRAL, POSITIVE, UNDECIDED, short_labels

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["plot_centrality"]

#: Colours and markers of several results; each is told apart without colour, too.
_STYLES = ((POSITIVE, "o"), (NEGATIVE, "s"), ("#009E73", "D"), (UNDECIDED, "^"), ("#CC79A7", "v"))


def plot_centrality(
    idata: "xr.DataTree | GraphPosterior | pd.DataFrame | Mapping[str, Any]",
    measures: str | Sequence[str] | None = None,
    *,
    n: int = 60,
    communities: Any = None,
    ci_prob: float | None = None,
    draws: int | None = DRAWS,
    all_weights: bool = False,
    axes: Any = None,
) -> np.ndarray:
    """Draw the centrality of all nodes: posterior means and intervals, a panel for each measure.

    Parameters
    ----------
    idata : xarray.DataTree, pandas.DataFrame, or mapping of name to one of these
        Result of a bayesstruct graph model, or a table of :func:`bayesstruct.centrality`. Several results under their names,
        up to five, are drawn side by side in each panel.
    n : int, default 60
        Largest number of nodes: the first ones by the first measure of the first result.
    measures, communities, ci_prob, draws, all_weights
        As of :func:`bayesstruct.centrality`. Of a table only `measures` is used, to choose some of its measures.
    axes : matplotlib.axes.Axes or sequence of Axes, optional
        Where to draw, one for each measure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (measures,)
        Dot: posterior mean. Bar: highest-density interval. Nodes from top to bottom by the first measure of the first result.

    Raises
    ------
    TypeError, ValueError
        As :func:`bayesstruct.centrality`; if `axes` are not one for each measure, or there are more than five results.

    Examples
    --------
    >>> plot_centrality(idata, ["strength", "betweenness"])  # doctest: +SKIP

    Two groups of rows:

    >>> both = {name: one_group(idata, name) for name in ("f", "m")}  # doctest: +SKIP
    >>> plot_centrality(both, "strength")  # doctest: +SKIP
    """
    import pandas as pd

    results: dict[str, Any] = (
        dict(idata) if isinstance(idata, Mapping) and not _is_one(idata) else {"": idata}
    )
    if not 1 <= len(results) <= len(_STYLES):
        raise ValueError(f"one to {len(_STYLES)} results can be drawn together, not {len(results)}")
    options = {"communities": communities, "draws": draws, "all_weights": all_weights}
    tables = {
        str(name): result
        if isinstance(result, pd.DataFrame)
        else centrality(result, measures, ci_prob=ci_prob, **options)
        for name, result in results.items()
    }
    names, n = _measures(tables, measures), whole_number("n", n, 1)
    every = _nodes(tables, names[0])
    nodes = every[:n]
    panels = _panels(axes, names, nodes, len(tables))
    for ax, measure in zip(panels, names, strict=True):
        _draw(ax, tables, measure, nodes)
        ax.set_title(measure.replace("_", " "), fontsize="medium")
    _name_nodes(panels, nodes)
    if len(nodes) < len(every):
        panels[0].set_ylabel(
            f"{len(nodes)} of {len(every)} nodes, largest {names[0].replace('_', ' ')}"
        )
    _explain(panels, tables)
    return panels


def _is_one(idata) -> bool:
    import xarray as xr

    return isinstance(idata, xr.DataTree)


def _measures(tables: Mapping, asked) -> list[str]:
    """Measures to draw, which all tables have."""
    found = [list(dict.fromkeys(table["measure"])) for table in tables.values()]
    names = found[0] if asked is None else [asked] if isinstance(asked, str) else list(asked)
    shown = [name for name in names if all(name in own for own in found)]
    if asked is not None and (lost := [name for name in names if name not in shown]):
        raise ValueError(
            f"there is no measure {lost[0]!r} in a table, which has {', '.join(found[0])}"
        )
    if not shown:
        raise ValueError("the results have no measure in common")
    return shown


def _nodes(tables: Mapping, measure: str) -> list[str]:
    """Nodes of all tables, the most central of the first one first."""
    nodes: list[str] = []
    for table in tables.values():
        own = table[table["measure"] == measure].sort_values("mean", ascending=False, kind="stable")
        nodes += [node for node in own["node"] if node not in nodes]
    return nodes


def _panels(axes, names: list[str], nodes: list[str], results: int) -> np.ndarray:
    """Axes that were given, or those of a new figure; all with one scale of the nodes."""
    if axes is not None:
        panels = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if len(panels) != len(names):
            raise ValueError(
                f"`axes` must be {len(names)}, one for each measure ({', '.join(names)}), not {len(panels)}"
            )
        return panels
    import matplotlib.pyplot as plt

    step = 0.24 if results == 1 else 0.14 + 0.12 * results
    height = 1.3 + step * len(nodes) * (1 if len(nodes) <= 30 else 0.8)
    width = 0.4 + 0.075 * min(max(map(len, nodes)), 24) + 2.1 * len(names)
    panels = plt.subplots(
        1,
        len(names),
        figsize=(max(width, 3.6), height),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )[1]
    return panels[0]


def _draw(ax, tables: Mapping, measure: str, nodes: list[str]) -> None:
    place = {node: k for k, node in enumerate(nodes)}
    many = len(nodes) * len(tables) > 60
    spread = 0.36 if len(tables) == 2 else 0.6  # of the rows of one node, which are 1 from the next
    for k, (name, table) in enumerate(tables.items()):
        own = table[(table["measure"] == measure) & table["node"].isin(nodes)]
        offset = 0.0 if len(tables) == 1 else spread * (k / (len(tables) - 1) - 0.5)
        rows = np.array([place[node] for node in own["node"]]) + offset
        colour, marker = _STYLES[k]
        ax.hlines(rows, own["hdi_low"], own["hdi_high"], colors=colour, lw=1.2 if many else 2.0)
        ax.scatter(
            own["mean"], rows, s=10 if many else 22, c=colour, marker=marker, zorder=3, label=name
        )
    if ax.get_xlim()[0] < 0 < ax.get_xlim()[1]:
        ax.axvline(0, color=NEUTRAL, lw=0.8, zorder=1)
    ax.locator_params(axis="x", nbins=4)
    ax.grid(axis="y", color="0.92", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _name_nodes(panels: np.ndarray, nodes: list[str]) -> None:
    """Write the names of the nodes beside the first panel."""
    import matplotlib as mpl

    from matplotlib.font_manager import FontProperties

    usual = FontProperties(size=mpl.rcParams["ytick.labelsize"]).get_size_in_points()
    size = min(usual, max(6.0, usual - 0.04 * len(nodes)))
    for k, ax in enumerate(panels):
        ax.set_yticks(range(len(nodes)), short_labels(nodes, 24), fontsize=size)
        ax.tick_params(axis="y", length=0, labelleft=k == 0)
        ax.set_ylim(len(nodes) - 0.4, -0.6)


def _explain(panels: np.ndarray, tables: Mapping) -> None:
    probability = next(iter(tables.values())).attrs.get("ci_prob")
    interval = "interval" if probability is None else f"{probability:.0%} HDI"
    for ax in panels:
        ax.set_xlabel(f"mean and {interval}", fontsize="small")
    if len(tables) > 1:
        panels[-1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
