"""Weights, Bayes factors and probabilities of edges as a heat map."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.plots.evidence import node_order, square
from bayesstruct.graphs.plots.grid import (
    colour_bar,
    draw_cells,
    grid_size,
    hatch_cells,
    legend_above,
    name_sides,
)
from bayesstruct.graphs.plots.style import FAINT, NEUTRAL, axes, diverging_map
from bayesstruct.graphs.posteriors.reading import read_edges, read_graphs
from bayesstruct.graphs.posteriors.weight_names import weight_name

if TYPE_CHECKING:
    import xarray as xr

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["plot_matrix"]

#: Absolute log10 Bayes factor at the ends of the colour scale: 100 is beyond doubt.
DECISIVE = 2.0


def plot_matrix(
    idata: "xr.DataTree | GraphPosterior",
    *,
    values: Literal["weight", "bayes_factor"] = "weight",
    probabilities: bool = True,
    order: Literal["table", "alike"] = "table",
    max_weight: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the weights of the edges, or the evidence for them, as a heat map.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model; Bayes factors also of directed acyclic graphs, where they are those of
        a connection either way.
    values : {"weight", "bayes_factor"}
        Posterior mean of the partial correlations (of the weights, of a Markov random field), or logarithm to base
        10 of the Bayes factors: 1 is a factor of 10 for the edge, -1 one of 10 against it.
    probabilities : bool
        Show the probability of each edge above the diagonal; otherwise the picture is symmetric.
    order : {"table", "alike"}
        Order of rows and columns: that of the table, or such that variables that are probably
        connected are neighbours.
    max_weight : float, optional
        Absolute value at the ends of the colour scale; by default the largest weight, and 2 for Bayes factors,
        of which those beyond 100 and 1/100 have the colours of the ends.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        With up to 15 variables the values are printed. Bayes factors that are bounds have a ">" or "<", or a dot
        where values are not printed; pairs that were not tested, as they were required or forbidden or the
        probability that the prior gives them is not known, are hatched.

    Raises
    ------
    ValueError
        For other `values` or another `order`, or weights of a result that has none.

    Examples
    --------
    >>> ax = plot_matrix(idata)  # doctest: +SKIP
    >>> ax = plot_matrix(idata, values="bayes_factor", order="alike")  # doctest: +SKIP
    """
    if values not in ("weight", "bayes_factor"):
        raise ValueError(f'`values` must be "weight" or "bayes_factor", got {values!r}.')
    posterior = read_edges(idata) if values == "weight" else read_graphs(idata)
    names, tested = posterior.variables, posterior.adjacencies()
    p = len(names)
    rows = node_order(order, tested, p)

    def matrix(of_pairs, other):
        return square(tested, of_pairs, p, other)[np.ix_(rows, rows)]

    lower = np.tri(p, k=-1, dtype=bool)
    shown = lower if probabilities else ~np.eye(p, dtype=bool)
    ax = axes(ax, grid_size(names, bars=1 + probabilities))
    side = "below: " if probabilities else ""
    if values == "weight":
        weight = matrix(read_edges(posterior).weights.mean(SAMPLE_DIMS).values, 0.0)
        _draw_weights(ax, weight, shown, side + weight_name(posterior), max_weight)
    else:
        _draw_factors(ax, tested, matrix, shown, side, max_weight or DECISIVE)
    if probabilities:
        probability = np.ma.masked_where(~lower.T, matrix(tested["probability"], 0.0))
        image = draw_cells(
            ax, probability, _probabilities(probability.data), cmap="Greys", vmin=0, vmax=1
        )
        colour_bar(ax, image, "above: probability of the edge")
    name_sides(ax, [names[i] for i in rows])
    return ax


def _draw_weights(ax: "Axes", weight, shown, label: str, max_weight: float | None) -> None:
    limit = max_weight or float(np.abs(weight).max()) or 1.0
    scale: dict[str, Any] = {"cmap": diverging_map(), "vmin": -limit, "vmax": limit}
    image = draw_cells(ax, np.ma.masked_where(~shown, weight), _two_decimals(weight), **scale)
    colour_bar(ax, image, label)


def _draw_factors(ax: "Axes", tested, matrix, shown, side: str, limit: float) -> None:
    from matplotlib.patches import Patch

    factor, bound = matrix(np.log10(tested["factor"]), np.nan), matrix(tested["bound"], False)
    untested = shown & matrix(np.isnan(tested["factor"]), False)
    bound &= shown & ~untested
    cells = np.ma.masked_where(~shown | np.isnan(factor), factor)
    image = draw_cells(ax, cells, _with_bounds(factor, bound), cmap="PRGn", vmin=-limit, vmax=limit)
    colour_bar(ax, image, f"{side}log₁₀ of the Bayes factor", extend="both")
    hatch_cells(ax, untested)
    handles: list[Any] = []
    if bound.any() and not ax.texts:
        i, j = np.nonzero(bound)
        dots = ax.scatter(j, i, s=3, color=NEUTRAL, lw=0, zorder=2)
        dots.set_label("bound: the evidence is at least this strong")
        handles.append(dots)
    if untested.any():
        handles.append(Patch(facecolor="white", edgecolor=FAINT, hatch="////", label="not tested"))
    if handles:
        legend_above(ax, handles)


def _two_decimals(values: np.ndarray) -> np.ndarray:
    """Texts without the leading zero, with a true minus; zeros are left out."""
    texts = np.vectorize(lambda value: f"{value:.2f}".replace("0.", ".", 1).replace("-", "−"))(
        values
    )
    return np.where(np.isin(texts, [".00", "−.00"]), "", texts)


def _probabilities(values: np.ndarray) -> np.ndarray:
    """Texts of probabilities, of which none is 1.00 that was not one."""
    return np.where((values >= 0.995) & (values < 1), ">.99", _two_decimals(values))


def _with_bounds(factor: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Texts of logarithms with one decimal; those of bounds have a mark."""
    number = np.vectorize(lambda value: f"{value:.1f}".replace("-", "−"))(factor)
    mark = np.where(bound, np.where(factor > 0, ">", "<"), "")
    return np.char.add(mark, number)
