"""Predictive probabilities of links, observed or not."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_summary, variables
from bayesstruct.data.arguments import whole_number
from bayesstruct.features.kernels.link_codes import LIKELIHOODS, probabilities
from bayesstruct.features.reading.posterior import draws_with
from bayesstruct.features.reading.records import LinkedPairs
from bayesstruct.features.reading.tables import FEATURE_READERS

if TYPE_CHECKING:
    import pandas
    import xarray as xr

__all__ = ["LinkMatrices", "link_probabilities", "read_links"]


def link_probabilities(
    idata: "xr.DataTree", *, draws: int = 1000, group: str = "posterior"
) -> "pandas.DataFrame":
    r"""Probability of a link, or expected response, of all pairs of objects.

    For a pair (i, j) this is the posterior mean of :math:`g(b + \sum_{kl} z_{ik} W_{kl} u_{jl})`, also for pairs that
    were not observed. For models with normal responses it is the expected response.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of ``pm.sample()`` for :func:`bayesstruct.models.link_prediction`,
        :func:`~bayesstruct.models.protein_complexes`, :func:`~bayesstruct.models.binary_matrix_factorization` or
        :func:`~bayesstruct.models.additive_clustering`.
    draws : int, default 1000
        Maximum number of draws that are used, evenly spaced.
    group : {"posterior", "prior"}

    Returns
    -------
    pandas.DataFrame
        One row for each pair, where (i, j) and (j, i) are one pair if links have no direction: ``source``, ``target``,
        ``probability`` (``expectation`` where responses are numbers), its posterior standard deviation ``sd``,
        and ``observed``, NaN if the pair was not. The most probable come first.

    Raises
    ------
    TypeError, ValueError
        If it is not a result of one of these models, or `draws` is not a whole number above 0.
    """
    return _table(read_links(idata, draws, group))


@dataclass(frozen=True)
class LinkMatrices:
    """Predictive probabilities, or expected responses, as matrices over sources and targets.

    Attributes
    ----------
    sources, targets : ndarray
        Labels of the objects; the same array if links are among the objects of one set.
    counted : (n, m) ndarray of bool
        Pairs that count: of objects of one set without directions the first is before the second.
    mean, deviation, observed : (n, m) ndarray of float
        `observed` is NaN where a pair was not.
    likelihood : str
    """

    sources: np.ndarray
    targets: np.ndarray
    counted: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    observed: np.ndarray
    likelihood: str

    @property
    def quantity(self) -> str:
        """Name of the mean: "probability", or "expectation" where responses are numbers."""
        return "expectation" if self.likelihood == "normal" else "probability"


def read_links(idata: "xr.DataTree", draws: int, group: str = "posterior") -> LinkMatrices:
    """Compute what `link_probabilities` tabulates; parameters and errors are its own."""
    draws = whole_number("draws", draws, 1)
    posterior, pairs = _read(idata, group), LinkedPairs.read(idata)
    likelihood = LIKELIHOODS[pairs.likelihood]
    names, others = _names(posterior)
    mean, deviation = _moments(_arrays(posterior, draws), likelihood)
    counted = np.ones(mean.shape, bool)
    if others is names:
        counted = ~np.eye(len(names), dtype=bool)
        counted &= bool(pairs.directed) | np.triu(counted)
    observed = np.full(mean.shape, np.nan)
    observed[pairs.source, pairs.target] = _responses(idata)
    return LinkMatrices(names, others, counted, mean, deviation, observed, likelihood)


def _moments(arrays, likelihood):
    """Mean and standard deviation over draws of the probability or expected response of each pair."""
    z, u, weights, bias = arrays
    mean, square = np.zeros((z.shape[1], u.shape[1])), np.zeros((z.shape[1], u.shape[1]))
    for t in range(len(bias)):
        used, paired = z[t].any(axis=0), u[t].any(axis=0)
        eta = bias[t] + z[t][:, used] @ weights[t][np.ix_(used, paired)] @ u[t][:, paired].T
        value = eta if likelihood == "normal" else probabilities(likelihood, eta)
        # The mean is updated rather than a sum: squares of large numbers would lose their digits.
        step = value - mean
        mean += step / (t + 1)
        square += step * (value - mean)
    return mean, np.sqrt(square / len(bias))


def _table(links: LinkMatrices):
    """Table of the pairs that count, the largest probability or expectation first."""
    import pandas as pd

    rows, columns = np.nonzero(links.counted)
    table = pd.DataFrame(
        {
            "source": np.asarray(links.sources, object)[rows],
            "target": np.asarray(links.targets, object)[columns],
            links.quantity: links.mean[rows, columns],
            "sd": links.deviation[rows, columns],
            "observed": links.observed[rows, columns],
        }
    )
    return table.sort_values(links.quantity, ascending=False, kind="stable", ignore_index=True)


def _read(idata, group):
    """Draws of features, weights and bias."""
    origin = "a model of links, such as bs.models.link_prediction"
    for name, what in (("feature", "features"), ("interaction", "weights"), ("bias", "a number")):
        draws = draws_with(idata, name, group, what, origin)
    return draws


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


def _has_links(idata) -> bool:
    return {"feature", "interaction", "bias"} <= variables(idata)


register_summary(
    "latent features of linked objects",
    _has_links,
    link_probabilities,
    ("plot_links", "feature_table", *FEATURE_READERS),
    before="latent features",
)
