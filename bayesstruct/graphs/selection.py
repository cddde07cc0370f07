"""Selection of edges with a bound on the expected share of false ones."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.graphs import check_fraction
from bayesstruct.graphs.posteriors.reading import read_edges

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["credible_edges"]


def credible_edges(idata: "xr.DataTree | GraphPosterior", fdr: float = 0.05) -> "pd.DataFrame":
    r"""Select the largest set of edges with an expected share of false ones of at most `fdr`.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    fdr : float, between 0 and 1
        Bayesian false discovery rate.

    Returns
    -------
    pandas.DataFrame
        Columns source, target, probability and `fdr`, the rate of the set that ends with this row.
        Most probable first; empty when even the most probable edge is too uncertain.

    Raises
    ------
    ValueError
        When `fdr` is not strictly between 0 and 1.

    Notes
    -----
    For a set :math:`D` of edges the posterior expectation of the share of false discoveries is

    .. math:: \mathrm{FDR}(D) = \frac{1}{|D|} \sum_{e \in D} \{1 - P(e \mid x)\} .

    It is smallest, for a given size, for the most probable edges, and grows with the size [1]_ [2]_.
    It depends on the model and its prior.

    References
    ----------
    .. [1] Newton, Noueiry, Sarkar and Ahlquist (2004). Detecting differential gene expression with
       a semiparametric hierarchical mixture method. Biostatistics 5, 155-176.
    .. [2] Mueller, Parmigiani, Robert and Rousseau (2004). Optimal sample size for multiple
       testing: the case of gene expression microarrays. JASA 99, 990-1001.

    Examples
    --------
    >>> credible_edges(idata, fdr=0.1)[["source", "target"]]  # doctest: +SKIP
    """
    import pandas as pd

    check_fraction("fdr", fdr)
    posterior = read_edges(idata)
    probability, absent = posterior.probabilities
    order = np.argsort(absent, kind="stable")
    rate = np.cumsum(absent[order]) / np.arange(1, len(order) + 1)
    kept = order[: np.searchsorted(rate, fdr, side="right")]  # the rate never falls
    source, target = posterior.ends()
    return pd.DataFrame(
        {
            "source": source[kept],
            "target": target[kept],
            "probability": probability[kept],
            "fdr": rate[: len(kept)],
        }
    )
