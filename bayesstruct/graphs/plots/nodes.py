"""Nodes and their names, for every picture of a network."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.plots.drawing import Look
from bayesstruct.graphs.plots.layouts.labels import Arrangement
from bayesstruct.graphs.plots.layouts.positions import Positions
from bayesstruct.graphs.plots.picture import Picture
from bayesstruct.graphs.plots.style import group_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def network_size(nodes) -> tuple[float, float]:
    """Figure size in inches that fits the names of the nodes."""
    names = [str(node) for node in nodes]
    p, longest = len(names), max((len(str(name)) for name in nodes), default=0)
    side = float(np.clip(4.6 + 0.06 * p, 5, 9))
    # Names on both sides of a circle, or a key beside the network
    beside = 0.18 * max(min(longest, 18) - 6, 0) if p <= 24 else 0.06 * max(min(longest, 45) - 6, 0)
    return side + beside * (1 + (p > 80)), side + 0.5


def crowding(p: int) -> float:
    """Factor by which lines are thinned among p nodes."""
    return float(np.clip(1.15 - p / 100, 0.5, 1))


def thinning(ax: "Axes", p: int) -> float:
    """Factor by which lines are thinned among p nodes on small axes."""
    inches = min(ax.bbox.size) / ax.figure.get_figure(root=True).dpi
    return crowding(p) * float(np.clip(inches / 4, 0.4, 1))


def legend_columns(ax: "Axes", wanted: int, width: float) -> int:
    """Columns of a legend under the axes: as many as wanted if it is `width` inches wide."""
    inches = ax.get_window_extent().width / ax.figure.get_figure(root=True).dpi
    return wanted if inches >= width else max(wanted // 2, 1)


def draw_nodes(ax: "Axes", pos: Positions, look: Look | None = None) -> Arrangement:
    """Draw nodes with their names, as large as the axes allow, and below them the legend if there is one.

    Names go outside a circle; for other positions they are written on the nodes. Names too long for that are broken, then shortened, then replaced by numbers, and a key has them in full.
    """
    return Picture.on(ax, pos).show(ax, look)


def look_of(
    nodes,
    groups: Mapping | None,
    predictability: Mapping | None,
    hidden: Iterable[tuple[object, object]] = (),
) -> tuple[Look, dict[str, str]]:
    """Colours of nodes by group, rings around them and which are hidden (pairs of node and whether it is), and the colour of each group.

    Raises
    ------
    ValueError
        When a node has no entry, or a predictability is not in [0, 1].
    """
    nodes, shares, colours = list(nodes), None, {}
    fill: list[str] = []
    if groups is not None:
        labels = [str(label) for label in _in_order(groups, nodes, "groups")]
        colours = group_colours(list(dict.fromkeys(labels)))
        fill = [colours[label] for label in labels]
    if predictability is not None:
        shares = np.array(_in_order(predictability, nodes, "predictability"), float)
        wrong = [str(nodes[k]) for k in np.flatnonzero((shares < 0) | (shares > 1))]
        if wrong:
            raise ValueError(
                f"`predictability` must be in [0, 1], that of {', '.join(wrong)} is not: clip it, as in `.clip(0, 1)`"
            )
    unseen = np.array([bool(own) for _, own in hidden])
    return Look(fill, shares, unseen if unseen.any() else None), colours


def _in_order(values: Mapping, nodes: list, what: str) -> list:
    if hasattr(values, "columns"):
        raise ValueError(
            f"`{what}` must have one entry for each node, a mapping or one column of a table with the nodes as its index, such as "
            "table[table['measure'] == 'R2'].set_index('node')['value']"
        )
    absent = [str(node) for node in nodes if node not in values]
    if absent:
        raise ValueError(f"`{what}` has no entry for {', '.join(absent)}.")
    return [values[node] for node in nodes]
