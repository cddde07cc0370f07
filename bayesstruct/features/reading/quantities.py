"""Quantities of latent features that do not depend on their order, for convergence diagnostics."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_check, variables
from bayesstruct.features.reading.posterior import FEATURE, LOADING
from bayesstruct.graphs.groups import SAMPLE_DIMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr

__all__ = ["feature_quantities"]

SCORE = "score"
ROWS = 40  # number of rows (evenly spaced) whose pairs and fitted values are followed


def feature_quantities(draws: "xr.Dataset") -> "Iterator[tuple[str, xr.DataArray]]":
    """Yield the name and the draws of each quantity that does not depend on the order of features."""
    draws = _with_dims(draws)
    for name, feature in draws.data_vars.items():
        if _is_binary_matrix(feature):
            yield from _of_one_set(str(name), feature.transpose(*SAMPLE_DIMS, ...))
    if LOADING in draws:
        yield "fitted value", _fitted(_weights(draws), draws[LOADING])


def _has_features(idata: "xr.DataTree") -> bool:
    return FEATURE in variables(idata)


def _with_dims(draws: "xr.Dataset") -> "xr.Dataset":
    """Name the dimension over features where the model did not."""
    if FEATURE not in draws or draws[FEATURE].ndim != 4:
        return draws
    size = draws[FEATURE].shape[3]
    known = {FEATURE: 3, SCORE: 3, LOADING: 2}  # positions
    for name, at in known.items():
        if name in draws and draws[name].ndim == 4 and draws[name].shape[at] == size:
            dim = str(draws[name].dims[at])
            if not dim.startswith("latent"):
                draws = draws.assign(
                    {name: draws[name].rename({dim: "latent"}).drop_vars("latent", errors="ignore")}
                )
    return draws


def _labelled(draws: "xr.Dataset") -> list[str]:
    """Names of the variables with a dimension over features, and of counts of features."""
    draws = _with_dims(draws)
    return [
        str(name)
        for name, values in draws.data_vars.items()
        if name == "n_features" or any(str(dim).startswith("latent") for dim in values.dims)
    ]


def _is_binary_matrix(values) -> bool:
    return (
        values.ndim == 4
        and values.dtype.kind in "iub"
        and str(values.dims[-1]).startswith("latent")
    )


def _of_one_set(name: str, feature: "xr.DataArray"):
    latent, rows = str(feature.dims[-1]), str(feature.dims[-2])
    what = "" if name == FEATURE else f" ({name})"
    yield f"number of features{what}", (feature.sum(rows) > 0).sum(latent)
    yield f"features of a row{what}", feature.sum(latent)
    yield f"features in common{what}", _in_common(_some_rows(feature))


def _weights(draws: "xr.Dataset") -> "xr.DataArray":
    """Weight of each feature in each row: its score, in models with scores, otherwise 0 or 1."""
    scored = SCORE in draws and set(draws[SCORE].dims) == set(draws[FEATURE].dims)
    return draws[SCORE].transpose(*draws[FEATURE].dims) if scored else draws[FEATURE]


def _some_rows(feature):
    n = feature.shape[2]
    return feature.isel(
        {feature.dims[2]: np.unique(np.linspace(0, n - 1, min(n, ROWS)).astype(int))}
    )


def _in_common(feature: "xr.DataArray") -> "xr.DataArray":
    """Count the features that each pair of rows has in common."""
    import xarray as xr

    z = feature.values.astype(np.float32)
    first, second = np.triu_indices(z.shape[2], 1)
    shared = (z @ z.swapaxes(-1, -2))[..., first, second]
    labels = feature[feature.dims[2]].values
    pairs = [f"{labels[a]} -- {labels[b]}" for a, b in zip(first, second, strict=True)]
    return xr.DataArray(shared, dims=(*SAMPLE_DIMS, "pair"), coords={"pair": pairs})


def _fitted(weight: "xr.DataArray", loading: "xr.DataArray") -> "xr.DataArray":
    """Weighted sums of the loadings of the features of some rows."""
    import xarray as xr

    z = _some_rows(weight.transpose(*SAMPLE_DIMS, ...))
    a = loading.transpose(*SAMPLE_DIMS, z.dims[-1], ...)
    coords = {dim: source.coords[dim] for source, dim in ((z, z.dims[2]), (a, a.dims[3]))}
    return xr.DataArray(
        z.values.astype(float) @ a.values, dims=(*SAMPLE_DIMS, z.dims[2], a.dims[3]), coords=coords
    )


register_check("latent features", _has_features, feature_quantities, _labelled)
