"""Partial correlations and probabilities of edges as a heat map."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.matrices import inclusion_matrix, partial_correlations
from bayesstruct.graphs.plots.style import axes, diverging_map, shorten
from bayesstruct.graphs.posteriors.reading import read_edges

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from matplotlib.axes import Axes

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["plot_matrix"]

MAX_PRINTED = 15  # variables up to which the numbers are printed


def plot_matrix(
    idata: "xr.DataTree | GraphPosterior",
    *,
    probabilities: bool = True,
    max_weight: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the posterior mean of the partial correlations (weights, of a Markov random field) as a heat map.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    probabilities : bool
        Show the probability of each edge above the diagonal; otherwise the picture is symmetric.
    max_weight : float, optional
        Absolute value at the ends of the colour scale; by default the largest one.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        Rows and columns in the order of the table. With up to 15 variables the values are printed.

    Examples
    --------
    >>> ax = plot_matrix(idata)  # doctest: +SKIP
    """
    weights = partial_correlations(idata)
    p = len(weights)
    lower = np.tri(p, k=-1, dtype=bool)
    ax = axes(ax, _size(p))
    limit = max_weight or float(np.abs(weights.to_numpy()[lower]).max()) or 1.0
    shown = lower if probabilities else ~np.eye(p, dtype=bool)
    image = _cells(ax, weights, shown, cmap=diverging_map(), vmin=-limit, vmax=limit)
    _colour_bar(ax, image, ("below: " if probabilities else "") + _quantity(idata), p)
    if probabilities:
        image = _cells(ax, inclusion_matrix(idata), lower.T, cmap="Greys", vmin=0, vmax=1)
        _colour_bar(ax, image, "above: probability of the edge", p)
    _name_sides(ax, list(weights.index))
    return ax


def _quantity(idata) -> str:
    """Name of the weights: those of Markov random fields are no partial correlations."""
    field = "potentials" in read_edges(idata).constants
    return "weight" if field else "partial correlation"


def _size(p: int) -> tuple[float, float]:
    side = float(np.clip(3.2 + 0.3 * p, 4.5, 11))
    return side + 2.2, side


def _cells(ax: "Axes", table: "pd.DataFrame", shown: np.ndarray, **scale):
    values = np.ma.masked_where(~shown, table.to_numpy())
    image = ax.imshow(values, **scale)
    if len(table) <= MAX_PRINTED:
        for i, j in np.argwhere(shown):
            dark = _is_dark(image.cmap(image.norm(values[i, j])))
            style: dict[str, Any] = {"color": "white" if dark else "black", "fontsize": 7.5}
            ax.text(j, i, _printed(values[i, j]), ha="center", va="center", **style)
    return image


def _is_dark(rgba) -> bool:
    red, green, blue, _ = rgba
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.5


def _printed(value: float) -> str:
    """Two decimals without the leading zero, with a true minus; zeros are left out."""
    text = f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")
    return "" if text in {".00", "−.00"} else text


def _colour_bar(ax: "Axes", image, label: str, p: int) -> None:
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.75, pad=0.02, aspect=30 if p > 20 else 25)
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)


def _name_sides(ax: "Axes", names: list[str]) -> None:
    short = shorten(names, 18)
    size = float(np.clip(10.5 - 0.07 * len(names), 5, 9.5))
    ax.set_xticks(range(len(names)), short, rotation=90, fontsize=size)
    ax.set_yticks(range(len(names)), short, fontsize=size)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=1 if len(names) <= 20 else 0.4)
    ax.tick_params(which="minor", length=0)
