"""Table of the nodes that may have edges."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_summary, variables
from bayesstruct.core.recorded import Recorded, constant
from bayesstruct.graphs.groups import SAMPLE_DIMS, group_dataset
from bayesstruct.graphs.mixing import indicator_ess, indicator_rhat, typical_ess
from bayesstruct.graphs.posteriors.estimators import bayes_factors_of
from bayesstruct.graphs.posteriors.refusals import wrong_type
from bayesstruct.graphs.summaries import bound_note, most_probable_first
from bayesstruct.graphs.tables.edges import edge_table
from bayesstruct.precision.reading.predictive import NORMAL_READERS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["NodePrior", "node_table"]


@dataclass(frozen=True)
class NodePrior(Recorded):
    """Prior of the nodes that may have edges.

    Attributes
    ----------
    prior : (p,) ndarray of float
        Probability of each node that the model implies.
    """

    prior: np.ndarray = constant("node_prior", "node")


def node_table(idata: "xr.DataTree", *, group: str = "posterior") -> "pd.DataFrame":
    """Summarise which nodes may have edges: their probabilities, and the numbers of their edges.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.node_selection_gaussian_graphical` with the spike-and-slab prior.
    group : {"posterior", "prior"}

    Returns
    -------
    pandas.DataFrame
        One row for each node, most probable first, with columns

        node
            Name of the column.
        probability
            Share of the draws in which the node is included.
        bayes_factor
            Posterior odds over prior odds.
        degree
            Mean number of its edges.
        connected
            Share of the draws in which it has an edge.
        ess, r_hat
            Of the 0/1 indicator.

        `attrs["bayes_factor_bounds"]` lists the rows whose Bayes factor is a Monte Carlo bound, `attrs["notes"]` holds remarks
        in words.

    Raises
    ------
    TypeError, ValueError
        If `idata` is not such a result.

    Examples
    --------
    >>> node_table(idata).query("probability > 0.5")  # doctest: +SKIP
    """
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.records import EdgeEnds

    if not isinstance(idata, xr.DataTree):
        raise wrong_type(idata)
    if "included" not in variables(idata, group):
        raise ValueError(
            "This result has no indicators of nodes: it is not one of node_selection_gaussian_graphical with "
            'prior="spike_slab"'
        )
    draws, ends = group_dataset(idata, group), EdgeEnds.read(idata)
    included = draws["included"].transpose(*SAMPLE_DIMS, "node")
    on, edges = included.values.astype(bool), draws["edge"].transpose(*SAMPLE_DIMS, ...).values
    ends_of = np.zeros((edges.shape[-1], on.shape[-1]))
    ends_of[np.arange(len(ends_of)), ends.source] = ends_of[
        np.arange(len(ends_of)), ends.target
    ] = 1
    degree = edges @ ends_of
    present, ess = on.mean(axis=(0, 1)), indicator_ess(on)
    floor = 1 / (typical_ess(ess, on.shape[0] * on.shape[1]) + 1)
    factor, bound = bayes_factors_of(present, 1 - present, NodePrior.read(idata).prior, floor)
    columns = {
        "node": included["node"].values,
        "probability": present,
        "bayes_factor": factor,
        "degree": degree.mean(axis=(0, 1)),
        "connected": (degree > 0).mean(axis=(0, 1)),
        "ess": ess,
        "r_hat": indicator_rhat(on),
    }
    table, bounds = most_probable_first(pd.DataFrame(columns), bound)
    table.attrs = {"bayes_factor_bounds": bounds, "notes": bound_note(bounds)}
    return table


def _has_nodes(idata) -> bool:
    return {"edge", "precision", "included"} <= variables(idata)


register_summary(
    "Gaussian graphical models of selected nodes",
    _has_nodes,
    edge_table,
    ("node_table", "plot_nodes", *NORMAL_READERS),
    before="Gaussian graphical models",
)
