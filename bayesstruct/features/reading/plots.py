"""Plots of latent features: loadings as images or as a heat map, and the number of features."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_figure
from bayesstruct.data.arguments import whole_number
from bayesstruct.features.reading.posterior import FEATURE, read_features
from bayesstruct.features.reading.tables import (
    feature_count_probabilities,
    feature_membership,
    feature_table,
    loading_table,
)
from bayesstruct.graphs.plots.grid import colour_bar, draw_cells, grid_size, name_sides
from bayesstruct.graphs.plots.style import NEUTRAL, POSITIVE, axes, diverging_map

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from matplotlib.axes import Axes

__all__ = ["plot_feature_count", "plot_features"]

_ACROSS = 6  # images in a row
_NAMES = 100  # rows or columns up to which they are named


def plot_features(
    idata: "xr.DataTree",
    *,
    shape: tuple[int, int] | None = None,
    n: int = 12,
    var_name: str = FEATURE,
    ax: "Axes | None" = None,
) -> "Axes | np.ndarray":
    """Draw the mean loadings of each latent feature, the most frequent first.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a latent-feature model.
    shape : (int, int), optional
        Rows and columns of the grid that the columns of the table form: each feature is then an image of its
        mean loadings. Without it all loadings are one heat map; where features have no
        loadings, it shows the probabilities that rows have them.
    n : int, default 12
        Features to draw at most.
    var_name : str, default "feature"
    ax : matplotlib.axes.Axes, optional
        Where to draw a heat map; images make a figure of their own.

    Returns
    -------
    matplotlib.axes.Axes or ndarray of Axes
        One axes for each image, or that of the heat map.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of a latent-feature model, or `shape` does not fit its columns.

    Examples
    --------
    >>> plot_features(idata, shape=(6, 6))  # doctest: +SKIP
    """
    n = whole_number("n", n, 1)
    posterior = read_features(idata, var_name=var_name)
    table = feature_table(posterior).head(n)
    if table.empty:
        raise ValueError("No row has a feature in the reference draw: there is nothing to draw.")
    titles = [_title(row, posterior.loading is not None) for row in table.itertuples()]
    if posterior.loading is None:
        if shape is not None:
            raise ValueError("The features of this result have no loadings to draw as images.")
        values = feature_membership(posterior).iloc[:, : len(table)].T
        return _heat(ax, values, titles, "probability", cmap="Greys", vmin=0, vmax=1)
    loadings = loading_table(posterior)
    values = loadings.pivot(index="feature", columns="variable", values="mean").loc[table.feature]
    values = values[list(dict.fromkeys(loadings.variable))]
    limit = float(np.nanmax(np.abs(values.to_numpy()))) or 1.0
    scale = {"cmap": diverging_map(), "vmin": -limit, "vmax": limit}
    if shape is None:
        return _heat(ax, values, titles, "mean loading", **scale)
    if ax is not None:
        raise ValueError(
            "Images of features need a figure of their own: leave out `ax` or `shape`."
        )
    _refuse_shape(shape, values.shape[1])
    return _images(values.to_numpy().reshape(-1, *shape), titles, scale)


def _title(row, share: bool) -> str:
    probability = f"P = {row.probability:.2f}" if row.probability < 0.995 else "P > 0.99"
    if row.probability == 1:
        probability = "P = 1"
    return f"{row.feature}: {probability}" + (f", {100 * row.share:.0f} % of rows" if share else "")


def _refuse_shape(shape, columns: int) -> None:
    if np.shape(shape) != (2,) or shape[0] * shape[1] != columns:
        raise ValueError(
            f"`shape` is the grid that the columns of the table form, rows times columns: {shape} does "
            f"not make {columns}."
        )


def _heat(ax, values: "pd.DataFrame", titles, label: str, **scale) -> "Axes":
    columns = [str(name) for name in values.columns]
    wide, high = grid_size(titles, columns)
    ax = axes(ax, (wide, high))
    image = draw_cells(ax, values.to_numpy(), aspect="auto", **scale)
    colour_bar(ax, image, label)
    named = len(columns) <= _NAMES
    name_sides(ax, titles, columns if named else [""] * len(columns))
    if not named:
        ax.set_xlabel(f"{len(columns):,} columns, in the order of the result")
    return ax


def _images(pictures: np.ndarray, titles, scale) -> np.ndarray:
    import matplotlib.pyplot as plt

    across = min(len(pictures), _ACROSS)
    down = -(-len(pictures) // across)
    figure, grid = plt.subplots(
        down, across, figsize=(2.2 * across, 2.4 * down), squeeze=False, layout="constrained"
    )
    for ax in grid.flat[len(pictures) :]:
        ax.remove()
    used = grid.ravel()[: len(pictures)]
    for ax, picture, title in zip(used, pictures, titles, strict=True):
        image = ax.imshow(picture, **scale)
        ax.set_title(title.replace(", ", ",\n"), fontsize=9)
        ax.set_xticks([])
        ax.set_yticks([])
    figure.colorbar(image, ax=list(used), label="mean loading", shrink=0.8)
    return used


def plot_feature_count(
    idata: "xr.DataTree", *, var_name: str = FEATURE, ax: "Axes | None" = None
) -> "Axes":
    """Draw the posterior of the number of features, with that of the prior if it was sampled.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a latent-feature model.
    var_name : str, default "feature"
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of a latent-feature model.
    """
    probability = feature_count_probabilities(idata, var_name=var_name)
    ax = axes(ax, (5.0, 3.2))
    ax.bar(probability.index, probability, color=POSITIVE, label="posterior")
    if "prior" in idata.children and var_name in idata["prior"]:
        prior = feature_count_probabilities(idata, var_name=var_name, group="prior")
        ax.plot(prior.index, prior, "o-", color=NEUTRAL, ms=3, lw=1, label="prior")
        ax.legend(frameon=False)
    ax.locator_params(axis="x", integer=True)
    ax.set(xlabel="number of features", ylabel="probability")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _draw_main(idata: "xr.DataTree", *, ax: "Axes | None" = None, **options):
    """Draw the features; where the reference draw has none, the number of features."""
    if not options and feature_table(idata).empty:
        return plot_feature_count(idata, ax=ax)
    return plot_features(idata, ax=ax, **options)


register_figure(_draw_main, "latent features", "latent features with loadings")
