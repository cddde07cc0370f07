"""Predictive probabilities of links, observed or not."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.features.kernels.link_codes import LIKELIHOODS, probabilities
from bayesstruct.graphs.edges import CONSTANTS

if TYPE_CHECKING:
    import pandas

__all__ = ["link_probabilities"]

_NEEDED = ("pair_source", "pair_target", "pair_directed", "link_likelihood")


def link_probabilities(idata, *, draws=1000, group="posterior") -> "pandas.DataFrame":
    r"""Probability that two objects are linked, or their expected value, for all pairs.

    For a pair (i, j) and each draw, this is :math:`g(b + \sum_{kl} z_{ik} W_{kl} u_{jl})`; pairs that were not
    observed are predicted. Of the models with normal responses it is the expected response.

    Parameters
    ----------
    idata : xarray.DataTree
        What ``pm.sample()`` returned for :func:`bayesstruct.models.link_prediction`,
        :func:`~bayesstruct.models.protein_complexes`, :func:`~bayesstruct.models.binary_matrix_factorization` or
        :func:`~bayesstruct.models.additive_clustering`.
    draws : int, default 1000
        Draws that are used, evenly spaced, if there are more.
    group : {"posterior", "prior"}

    Returns
    -------
    pandas.DataFrame
        One row for each pair, (i, j) and (j, i) being one if links have no direction: ``source``, ``target``,
        ``probability`` (``expectation`` where responses are numbers), its posterior standard deviation ``sd``,
        and ``observed``, NaN if the pair was not. The most probable come first.

    Raises
    ------
    TypeError
        If `idata` is not a DataTree.
    ValueError
        If it is not of one of these models, or `draws` is not a number above 0.
    """
    import pandas as pd

    posterior, constants = _read(idata, group)
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"`draws` must be a whole number above 0, not {draws!r}")
    likelihood = LIKELIHOODS[int(constants["link_likelihood"])]
    z, u, weights, bias = _arrays(posterior, int(draws))
    names, others = _names(posterior)
    one_set = others is names
    mean, square = np.zeros((len(names), len(others))), np.zeros((len(names), len(others)))
    for t in range(len(bias)):
        used, paired = z[t].any(axis=0), u[t].any(axis=0)
        eta = bias[t] + z[t][:, used] @ weights[t][np.ix_(used, paired)] @ u[t][:, paired].T
        value = eta if likelihood == "normal" else probabilities(likelihood, eta)
        # The mean is updated rather than a sum: squares of large numbers would lose their digits.
        step = value - mean
        mean += step / (t + 1)
        square += step * (value - mean)
    counted = np.ones(mean.shape, bool)
    if one_set:
        counted = ~np.eye(len(names), dtype=bool)
        counted &= bool(constants["pair_directed"]) | np.triu(counted)
    observed = np.full(mean.shape, np.nan)
    places = constants["pair_source"].values, constants["pair_target"].values
    observed[places] = _responses(idata)
    rows, columns = np.nonzero(counted)
    value = "expectation" if likelihood == "normal" else "probability"
    table = pd.DataFrame(
        {
            "source": np.asarray(names, object)[rows],
            "target": np.asarray(others, object)[columns],
            value: mean[rows, columns],
            "sd": np.sqrt(square[rows, columns] / len(bias)),
            "observed": observed[rows, columns],
        }
    )
    return table.sort_values(value, ascending=False, kind="stable", ignore_index=True)


def _read(idata, group):
    """Draws and constants, after checks."""
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise TypeError(
            f"`idata` is a DataTree, as pm.sample() returns it, not {type(idata).__name__}"
        )
    absent = [name for name in (group, CONSTANTS) if name not in idata.children]
    if not absent:
        posterior, constants = idata[group].to_dataset(), idata[CONSTANTS].to_dataset()
        absent = [name for name in ("feature", "interaction", "bias") if name not in posterior]
        absent += [name for name in _NEEDED if name not in constants]
    if absent:
        raise ValueError(
            f"`idata` has no {', '.join(absent)}: it is not the result of a model of links such as "
            "bs.models.link_prediction"
        )
    return posterior, constants


def _arrays(posterior, draws):
    """Features of both sides, weights as matrices and biases of some draws."""
    flat = posterior.stack(sample=("chain", "draw"))
    number = flat.sizes["sample"]
    kept = flat.isel(sample=np.unique(np.linspace(0, number - 1, min(draws, number)).astype(int)))
    z = kept["feature"].transpose("sample", "observation", "latent").values.astype(float)
    u = z
    if "column_feature" in kept:
        u = kept["column_feature"].transpose("sample", "node", "latent_").values.astype(float)
    weights = kept["interaction"]
    if "latent_" in weights.dims:
        weights = weights.transpose("sample", "latent", "latent_").values
    else:
        weights = weights.transpose("sample", "latent").values
        weights = weights[:, :, None] * np.eye(weights.shape[1])
    return z, u, weights, kept["bias"].values


def _names(posterior):
    names = posterior["observation"].values
    return names, posterior["node"].values if "column_feature" in posterior else names


def _responses(idata):
    return idata["observed_data"]["y"].values if "observed_data" in idata.children else np.nan
