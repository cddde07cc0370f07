"""The arc table: one row for each arc, with all summaries of it."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.readers import register_summary, variables
from bayesstruct.graphs.posteriors.arcs import ArcPosterior, blocks
from bayesstruct.graphs.posteriors.base import GraphPosterior
from bayesstruct.graphs.posteriors.reading import is_acyclic, read_arcs
from bayesstruct.graphs.records import Acyclic
from bayesstruct.graphs.summaries import bound_note, interval_probability, most_probable_first
from bayesstruct.graphs.tables.edges import NODE_READERS
from bayesstruct.graphs.tables.limits import known_limits, limit_note
from bayesstruct.graphs.units import units_note

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


__all__ = ["arc_table", "direction_note"]

_DEPENDENCY = (
    "This is a dependency network: each row is a statement of one regression, not of a joint "
    "posterior over graphs."
)
EQUIVALENCE = (
    "Data without interventions do not distinguish Markov equivalent graphs: the direction of an arc "
    "that these reverse depends on the prior alone. The probabilities of both directions add up to "
    "that of the adjacency."
)
IDENTIFIED = (
    "This model tells Markov equivalent graphs apart by the form of its distributions, such as noise that is not "
    "normal or has equal variances: directions are as certain as that assumption is right."
)


def arc_table(
    idata: "xr.DataTree | GraphPosterior", *, ci_prob: float | None = None
) -> "pd.DataFrame":
    """Summarise every arc of a Bayesian network or of a neighbourhood model.

    In a Bayesian network the probability of an arc is the posterior probability that it is in the
    directed acyclic graph. A neighbourhood model is a dependency network [1]_: one regression for
    each column, fitted by itself. There the probability of an arc is that of one regression (does
    one column predict another?); it is not the posterior probability of an edge in a joint model of
    the table.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.bayesian_network` or of a neighbourhood model, from
        :func:`bayesstruct.sample_neighbourhoods` or ``pm.sample()``.
    ci_prob : float, optional
        Probability of the highest-density interval of the coefficient, between 0 and 1;
        ``arviz.rcParams["stats.ci_prob"]`` by default.

    Returns
    -------
    pandas.DataFrame
        One row for each arc, most probable first (ties: larger absolute mean), with columns

        source, target
            Parent and child; predictor and response.
        probability
            Posterior probability of the arc; in a neighbourhood model, that the coefficient is not
            zero (not negligible).
        prior
            Prior probability of the arc. Only for Bayesian networks, where acyclicity makes it
            differ from the probability that was asked for.
        bayes_factor
            Posterior odds over prior odds, from 1e-6 to 1e6; NaN for arcs that were required or forbidden.
        mean, hdi_low, hdi_high
            Of the coefficient over all draws, those without the arc included; of standardised columns
            (:func:`bayesstruct.coefficients` has them in the units of the table). A Bayesian network of
            discrete columns has no coefficients, and its table lacks these columns.
        ess, r_hat
            Of the 0/1 indicator. In networks of more than 20,000 arcs NaN for those that are in
            less than 1 % of the draws.

        ``attrs`` has the ``estimator`` of the probabilities ("rao-blackwell" or "frequency"), the
        rows whose Bayes factor is a bound (``bayes_factor_bounds``) and ``notes``.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a model with arcs, or `ci_prob` is not between 0 and 1.

    References
    ----------
    .. [1] Heckerman, Chickering, Meek, Rounthwaite and Kadie (2000). Dependency networks for
       inference, collaborative filtering, and data visualization. JMLR 1, 49-75.

    Examples
    --------
    >>> arc_table(idata).query("probability > 0.5")  # doctest: +SKIP
    """
    import pandas as pd

    ci_prob = interval_probability(ci_prob)
    posterior = read_arcs(idata)
    ess = posterior.indicator_ess()
    factor, bound = posterior.bayes_factors(ess)
    source, target = posterior.ends()
    columns = {"source": source, "target": target, "probability": posterior.probability}
    if posterior.acyclic:
        columns["prior"] = posterior.prior
    columns["bayes_factor"] = factor
    if posterior.weighted:
        columns |= _weight_summary(posterior, ci_prob)
    table = pd.DataFrame(columns | {"ess": ess, "r_hat": posterior.indicator_rhat()})
    table, bounds = most_probable_first(table, bound)
    limits = limit_note(known_limits(idata), "a connection") if posterior.acyclic else []
    table.attrs = {
        "estimator": posterior.estimator.name,
        "ci_prob": ci_prob,
        "bayes_factor_bounds": bounds,
        "notes": [*_notes(posterior, bounds), *limits],
    }
    return table


def _notes(posterior: ArcPosterior, bounds: list[int]) -> list[str]:
    notes = [direction_note(posterior) if posterior.acyclic else _DEPENDENCY]
    notes += units_note(posterior)
    notes += bound_note(bounds)
    if fixed := int(posterior.fixed.sum()):
        notes.append(
            f"{fixed} Bayes factors are NaN: these arcs were required or forbidden, so that the "
            "data could not change their odds."
        )
    return notes


def direction_note(posterior: ArcPosterior) -> str:
    """Say what the directions of the arcs of acyclic graphs depend on."""
    return IDENTIFIED if Acyclic.read(posterior.constants).identified else EQUIVALENCE


def _weight_summary(posterior: ArcPosterior, ci_prob: float) -> dict[str, np.ndarray]:
    import arviz as az

    n_arcs = posterior.n_lines
    mean, low, high = np.zeros(n_arcs), np.zeros(n_arcs), np.zeros(n_arcs)
    moving = np.ones(n_arcs, bool)
    if posterior.negligible == 0:
        # More zeros than the interval leaves out: it is [0, 0].
        moving = posterior.frequency * posterior.n_draws > (1 - ci_prob) * posterior.n_draws - 1
    low[~posterior.has_weights & moving] = high[~posterior.has_weights & moving] = np.nan
    for at in blocks(np.flatnonzero(posterior.has_weights)):
        weights = posterior.weights(at).reshape(posterior.n_draws, -1).astype(float)
        mean[at] = weights.mean(axis=0)
        wide = moving[at]
        if wide.any():
            interval = az.hdi(weights[:, wide].T, prob=ci_prob)
            low[at[wide]], high[at[wide]] = interval[:, 0], interval[:, 1]
    if posterior.summaries is not None:
        mean = posterior.summaries["mean"].values
    return {"mean": mean, "hdi_low": low, "hdi_high": high}


def _has_arcs(idata) -> bool:
    return "arc" in variables(idata)


def _has_dags(idata) -> bool:
    return _has_arcs(idata) and is_acyclic(idata)


#: Functions that read directed acyclic graphs, from whatever model they are.
DAG_READERS = (
    "median_graph",
    "map_graph",
    "graph_probabilities",
    "essential_graph_probabilities",
    "arc_probabilities",
    "path_probabilities",
    "blanket_probabilities",
    "compare",
    "to_networkx",
    *NODE_READERS,
    "plot_graph",
    "plot_evidence",
    "check",
)
register_summary(
    "dependency networks",
    _has_arcs,
    arc_table,
    ("symmetrize", *NODE_READERS, "plot_edges", "plot_evidence", "check"),
)
register_summary(
    "directed acyclic graphs", _has_dags, arc_table, DAG_READERS, before="dependency networks"
)
