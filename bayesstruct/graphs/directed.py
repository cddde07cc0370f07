"""Probabilities of arcs, paths and Markov blankets in posteriors over directed acyclic graphs."""

from typing import TYPE_CHECKING

from bayesstruct.graphs.ancestry import ancestor_counts, blanket_counts
from bayesstruct.graphs.posteriors.reading import read_dags

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["arc_probabilities", "blanket_probabilities", "path_probabilities"]


def arc_probabilities(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "pd.DataFrame":
    """Posterior probability of each arc of a Bayesian network.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.bayesian_network`.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame, shape (p, p)
        Row the parent, column the child; zeros on the diagonal.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a Bayesian network.

    Notes
    -----
    Without interventions the data cannot tell graphs of the same Markov equivalence class apart:
    the direction of an arc is then as probable as the prior and the other arcs make it.

    Examples
    --------
    >>> arc_probabilities(idata).loc["Raf", "Mek"]  # doctest: +SKIP
    """
    posterior = read_dags(idata, group)
    return posterior.frame(posterior.matrix(posterior.probability))


def path_probabilities(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "pd.DataFrame":
    """Posterior probability that one variable is an ancestor of another.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.bayesian_network`.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame, shape (p, p)
        At row i, column j the share of the drawn graphs with a directed path from i to j, of any
        length; zeros on the diagonal.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a Bayesian network.

    Notes
    -----
    Where arcs are read as causes, this is the probability that setting i changes j at all
    (cancelling paths aside).

    References
    ----------
    .. [1] Friedman and Koller (2003). Being Bayesian about network structure. Machine Learning 50,
       95-125, section 6: features of graphs.

    Examples
    --------
    >>> path_probabilities(idata).loc["PKC", "Erk"]  # doctest: +SKIP
    """
    posterior = read_dags(idata, group)
    graphs, visits = posterior.dags
    return posterior.frame(ancestor_counts(graphs, visits) / posterior.n_draws)


def blanket_probabilities(
    idata: "xr.DataTree | GraphPosterior", *, group: str = "posterior"
) -> "pd.DataFrame":
    """Posterior probability that one variable is in the Markov blanket of another.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.bayesian_network`.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame, shape (p, p)
        Symmetric: i is in the Markov blanket of j (a parent, a child, or another parent of a child)
        exactly when j is in that of i. Zeros on the diagonal.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a Bayesian network.

    Notes
    -----
    Given its Markov blanket a variable is independent of all others, so these are the probabilities
    of the edges of the moral graph, the graph of an undirected model of the table.
    Unlike arcs they are the same in all graphs of a Markov equivalence class.

    References
    ----------
    .. [1] Friedman and Koller (2003). Being Bayesian about network structure. Machine Learning 50,
       95-125, section 6.

    Examples
    --------
    >>> blanket_probabilities(idata)["Erk"].nlargest(3)  # doctest: +SKIP
    """
    posterior = read_dags(idata, group)
    graphs, visits = posterior.dags
    return posterior.frame(blanket_counts(graphs, visits) / posterior.n_draws)
