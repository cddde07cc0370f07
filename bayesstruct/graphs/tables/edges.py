"""The edge table: one row for each edge, with all summaries of it."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_summary, variables
from bayesstruct.graphs.graphs import check_fraction
from bayesstruct.graphs.posteriors.base import GraphPosterior
from bayesstruct.graphs.posteriors.edges import GROUP, EdgePosterior
from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.graphs.records import EdgePrior, RelationPrior, RelationScales, is_nodewise
from bayesstruct.graphs.summaries import bound_note, interval_probability, most_probable_first
from bayesstruct.graphs.tables.limits import known_limits, limit_note

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


__all__ = ["NODEWISE_NOTE", "credible_edges", "edge_table"]

#: What is approximate in a posterior of graphs alone.
NODEWISE_NOTE = (
    "The likelihood is a pseudo-likelihood, the root of the product of the marginal densities of each column given its neighbours: probabilities "
    "are approximate, on tables of four columns by about .01, of single edges by up to .3. The draws of the graph are exact for this posterior, once the chains have converged (bs.check)."
)


def edge_table(
    idata: "xr.DataTree | GraphPosterior", *, ci_prob: float | None = None, group: str = "posterior"
) -> "pd.DataFrame":
    """Summarise every edge: its probability, its weight, and how far to trust these numbers.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    ci_prob : float, optional
        Probability of the highest-density interval of the weight, between 0 and 1;
        ``arviz.rcParams["stats.ci_prob"]`` by default.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame
        One row for each edge, most probable first (ties: larger absolute mean weight), with columns

        source, target
            Names of the two variables.
        probability
            Posterior probability that the edge is in the graph (`inclusion_probabilities`); of a Markov
            random field and of graphs alone it is more precise than the share of draws with the edge where the group
            `sample_stats` came along.
        bayes_factor
            Posterior odds over prior odds (`bayes_factors`): above 1 for the edge, below 1 against.
            NaN for required and forbidden edges, whose prior probability is 1 or 0: the data
            cannot change it. Otherwise from 1e-6 to 1e6: beyond these it depends on the shape of the prior,
            and the limit is reported as a bound.
        mean, hdi_low, hdi_high
            Of the weight (a partial correlation, or the coupling of a Markov random field), over
            all draws, those without the edge included. Not in results of graphs alone
            (``prior="pseudo_likelihood"``).
        ess, r_hat
            Of the 0/1 indicator. An indicator that never changed has ess NaN and r_hat 1; one that
            is stuck at different values in different chains has r_hat infinity. Where
            `attrs["estimator"]` is "control variate", ess is of the numbers whose mean is `probability`.

        `attrs["estimator"]` says how probabilities are estimated (`inclusion_probabilities`),
        `attrs["bayes_factor_bounds"]` lists the rows whose Bayes factor is a bound,
        `attrs["notes"]` holds remarks in words.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a graph model, or `ci_prob` is not between 0 and 1.

    Examples
    --------
    >>> edge_table(idata).query("probability > 0.5")  # doctest: +SKIP
    """
    import pandas as pd

    ci_prob = interval_probability(ci_prob)
    posterior = read_edges(idata, group)
    ess = posterior.estimator.ess()
    factor, bound = posterior.bayes_factors(ess)
    source, target = posterior.ends()
    table = pd.DataFrame(
        {
            "source": source,
            "target": target,
            "probability": posterior.probability,
            "bayes_factor": factor,
            **_weight_summary(posterior, ci_prob),
            "ess": ess,
            "r_hat": posterior.indicator_rhat(),
        }
    )
    table, bounds = most_probable_first(table, bound)
    limits = limit_note(known_limits(idata)) if group == "posterior" else []
    table.attrs = {
        "estimator": posterior.estimator.name,
        "ci_prob": ci_prob,
        "bayes_factor_bounds": bounds,
        "notes": [*_notes(posterior, bounds), *limits],
    }
    return table


def _weight_summary(posterior: EdgePosterior, ci_prob: float) -> dict[str, np.ndarray]:
    import arviz as az

    if posterior.graph_alone:
        return {}

    # as an array: labels of edges need not be unique ("a -- b" with "c", "a" with "b -- c")
    weights = posterior.weights.values.reshape(posterior.n_draws, -1).astype(float)
    interval = az.hdi(weights.T, prob=ci_prob)
    return {"mean": weights.mean(axis=0), "hdi_low": interval[:, 0], "hdi_high": interval[:, 1]}


def _notes(posterior: EdgePosterior, bounds: list[int]) -> list[str]:
    notes = [NODEWISE_NOTE] if is_nodewise(posterior.constants) else []
    if posterior.n_chains == 1:
        notes.append("r_hat is undefined: it compares chains, and this result has one.")
    if posterior.n_draws < 4 * posterior.n_chains:
        notes.append("ess is undefined below four draws of a chain.")
    if posterior.unread:
        notes.append(
            "The probabilities that the step reported are not used and those of this table are shares of the draws, "
            f"which are less precise: {posterior.unread}. Read the whole result before it is cut or sorted."
        )
    notes += bound_note(bounds)
    if not posterior.graph_alone and GROUP in posterior.draws["weight"].dims:
        notes.append(
            "Edges are pairs that are connected in some group, and weights are averages over the groups; "
            "bs.edge_table(bs.one_group(idata, label)) has those of one group, bs.difference_table(idata) compares groups."
        )
    elif RelationScales.is_in(posterior.constants):
        bound = EdgePrior.read(posterior.constants).negligible
        notes.append(
            "Edges are pairs that are equal in all groups, and those that differ between groups and whose weight in this one is beyond "
            f'{bound:g} (negligible=). With differences="indicators" each group has edges of its own.'
        )
    elif RelationPrior.is_in(posterior.constants):
        notes.append(
            "Edges are pairs that are connected in some group, not always in this one, whose weights tell: a pair with an edge may have a "
            "weight near 0 here."
        )
    if unknown := int(np.isnan(posterior.prior).sum()):
        notes.append(
            f"{unknown} Bayes factors are NaN: the prior probability of these edges, which has random parameters, is not known. "
            "The shares of draws of pm.sample from the model without its tables tell it."
            if not RelationScales.is_in(posterior.constants)
            else f"{unknown} Bayes factors are NaN: prior probabilities are known for negligible=0.1 only."
        )
    if fixed := int(posterior.fixed.sum()):
        notes.append(
            f"{fixed} Bayes factors are NaN: these edges were required or forbidden, the model leaves no choice, or the prior alone "
            "decides on them (nearly all its weights are beyond `negligible`), so there were no odds "
            "that the data could change."
        )
    return notes


#: Functions that read one graph in each draw, and not several of groups of rows.
NODE_READERS = ("centrality", "degree_table", "communities", "plot_centrality")
#: Functions that read undirected graphs, from whatever model they are.
EDGE_READERS = (
    "median_graph",
    "map_graph",
    "graph_probabilities",
    "inclusion_probabilities",
    "credible_edges",
    "compare",
    "to_networkx",
    *NODE_READERS,
    "plot_graph",
    "plot_edges",
    "plot_evidence",
    "plot_matrix",
    "check",
)


def _has_edges(idata) -> bool:
    return "edge" in variables(idata)


def _has_graphs_alone(idata) -> bool:
    return _has_edges(idata) and "weight" not in variables(idata) and is_nodewise(idata)


_WEIGHT_READERS = ("plot_edges", "plot_matrix")
_ALONE = tuple(name for name in EDGE_READERS if name not in _WEIGHT_READERS)

register_summary("undirected graphs", _has_edges, edge_table, EDGE_READERS)
register_summary(
    "undirected graphs alone",
    _has_graphs_alone,
    edge_table,
    (*_ALONE, "precision_draws"),
    before="undirected graphs",
)


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
