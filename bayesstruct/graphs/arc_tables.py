"""The arc table: one row an arc, everything that is known about it."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import probability as check_probability
from bayesstruct.graphs.arcs import read_arcs
from bayesstruct.graphs.mixing import indicator_ess, indicator_rhat, typical_ess
from bayesstruct.graphs.probabilities import bayes_factors_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["adjacencies", "arc_table"]

#: Averages of conditional probabilities are rounded beyond this distance from 0 and 1.
RESOLUTION = 1e-12
#: Number of arcs beyond which the slow diagnostics are left out for those that are hardly visited.
MANY = 20_000
VISITED = 0.01
BLOCK = 4096

_DEPENDENCY = (
    "This is a dependency network: each row is a statement of one regression, not of a joint "
    "posterior over graphs."
)
_EQUIVALENCE = (
    "Where interventions do not tell Markov equivalent graphs apart, nothing in the data does: the "
    "direction of an arc that they reverse rests on the prior. The probabilities of both directions "
    "together are that of the adjacency."
)


def arc_table(idata, *, hdi_prob: float = 0.94) -> "pd.DataFrame":
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
    hdi_prob : float, between 0 and 1
        Probability of the highest-density interval of the coefficient.

    Returns
    -------
    pandas.DataFrame
        One row an arc, most probable first (ties: larger absolute mean), with columns

        source, target
            Parent and child; predictor and response.
        probability
            Posterior probability of the arc; in a neighbourhood model, that the coefficient is not
            zero (not negligible).
        prior
            Prior probability of the arc. Only for Bayesian networks, where acyclicity makes it
            differ from what was asked for.
        bayes_factor
            Posterior odds over prior odds; NaN for arcs that were required or forbidden.
        mean, hdi_low, hdi_high
            Of the coefficient over all draws, those without the arc included. A Bayesian network of
            discrete columns has no coefficients, and its table not these columns.
        ess, r_hat
            Of the 0/1 indicator. In networks of more than 20,000 arcs NaN for those that are in
            less than 1 % of the draws.

        ``attrs`` has the ``estimator`` of the probabilities ("rao-blackwell" or "frequency"), the
        rows whose Bayes factor is a Monte Carlo bound (``bayes_factor_bounds``) and ``notes``.

    Raises
    ------
    TypeError, ValueError
        When `idata` is not a result of a model with arcs, or `hdi_prob` not between 0 and 1.

    References
    ----------
    .. [1] Heckerman, Chickering, Meek, Rounthwaite and Kadie (2000). Dependency networks for
       inference, collaborative filtering, and data visualization. JMLR 1, 49-75.

    Examples
    --------
    >>> arc_table(idata).query("probability > 0.5")  # doctest: +SKIP
    """
    import pandas as pd

    check_probability("hdi_prob", hdi_prob)
    posterior = read_arcs(idata)
    ess, r_hat = arc_mixing(posterior)
    factor, bound = arc_factors(posterior, ess)
    names = np.array(posterior.variables, dtype=object)
    columns = {
        "source": names[posterior.source],
        "target": names[posterior.target],
        "probability": posterior.probability,
    }
    if posterior.acyclic:
        columns["prior"] = posterior.prior
    columns["bayes_factor"] = factor
    if posterior.weighted:
        columns |= _weight_summary(posterior, hdi_prob)
    table = pd.DataFrame(columns | {"ess": ess, "r_hat": r_hat})
    size = np.abs(columns.get("mean", np.zeros(len(table))))
    order = np.lexsort((-size, -posterior.probability))
    table = table.iloc[order].reset_index(drop=True)
    bounds = np.flatnonzero(bound[order]).tolist()
    table.attrs = {
        "estimator": posterior.estimator,
        "hdi_prob": hdi_prob,
        "bayes_factor_bounds": bounds,
        "notes": _notes(posterior, bounds),
    }
    return table


def arc_factors(posterior, ess=None) -> tuple[np.ndarray, np.ndarray]:
    """Bayes factor of each arc, and which of them are Monte Carlo bounds."""
    if ess is None:
        ess, _ = arc_mixing(posterior)
    present = posterior.probability
    return bayes_factors_of(present, 1 - present, posterior.prior, _resolution(posterior, ess))


def adjacencies(posterior) -> dict:
    """Pairs of variables with an arc either way: ends, prior probability, and Bayes factor.

    Parameters
    ----------
    posterior : DagPosterior

    Returns
    -------
    dict of (pairs,) arrays
        ``source`` and ``target`` as positions, ``prior``, ``factor`` (NaN where nothing was tested).
    """
    one = np.flatnonzero(posterior.source < posterior.target)
    source, target = posterior.source[one], posterior.target[one]
    other = posterior.position[source, target]
    prior = np.clip(posterior.prior[one] + posterior.prior[other], 0.0, 1.0)
    drawn = posterior.arcs[..., one].astype(bool) | posterior.arcs[..., other].astype(bool)
    present = drawn.mean(axis=(0, 1))
    ess = np.concatenate([indicator_ess(drawn[..., at]) for at in blocks(np.arange(len(one)))])
    floor = 1 / (typical_ess(ess, posterior.n_draws) + 1)
    factor, _ = bayes_factors_of(present, 1 - present, prior, floor)
    return {"source": source, "target": target, "prior": prior, "factor": factor}


def _notes(posterior, bounds):
    notes = [_EQUIVALENCE if posterior.acyclic else _DEPENDENCY]
    if bounds:
        notes.append(
            f"{len(bounds)} Bayes factors are bounds: the draws cannot tell these probabilities "
            "from 0 or 1 (rows in attrs['bayes_factor_bounds'])."
        )
    if fixed := int(np.isin(posterior.prior, (0, 1)).sum()):
        notes.append(
            f"{fixed} Bayes factors are NaN: these arcs were required or forbidden, so there were "
            "no odds that the data could change."
        )
    return notes


def arc_mixing(posterior) -> tuple[np.ndarray, np.ndarray]:
    """ESS and R-hat of the indicators, in blocks: floats of all would not fit.

    NaN for those that are hardly visited, where there are very many.
    """
    n_arcs = len(posterior.source)
    looked = np.arange(n_arcs)
    if n_arcs > MANY:
        share = np.minimum(posterior.frequency, 1 - posterior.frequency)
        looked = np.flatnonzero(share >= VISITED)
    ess, r_hat = np.full(n_arcs, np.nan), np.full(n_arcs, np.nan)
    for at in blocks(looked):
        indicators = posterior.arcs[..., at].astype(bool)
        ess[at], r_hat[at] = indicator_ess(indicators), indicator_rhat(indicators)
    return ess, r_hat


def blocks(positions):
    """Cut positions of arcs into pieces whose floats fit."""
    return [positions[k : k + BLOCK] for k in range(0, len(positions), BLOCK)]


def _resolution(posterior, ess):
    """Smallest probability that can be told from zero."""
    if posterior.estimator == "rao-blackwell":
        return RESOLUTION
    return 1 / (typical_ess(ess, posterior.n_draws) + 1)


def _weight_summary(posterior, hdi_prob):
    import arviz as az

    n_arcs = len(posterior.source)
    mean, low, high = np.zeros(n_arcs), np.zeros(n_arcs), np.zeros(n_arcs)
    moving = np.ones(n_arcs, bool)
    if posterior.negligible == 0:
        # More zeros than the interval leaves out: it is [0, 0].
        moving = posterior.frequency * posterior.n_draws > (1 - hdi_prob) * posterior.n_draws - 1
    low[~posterior.has_weights & moving] = high[~posterior.has_weights & moving] = np.nan
    for at in blocks(np.flatnonzero(posterior.has_weights)):
        weights = posterior.weights(at).reshape(posterior.n_draws, -1).astype(float)
        mean[at] = weights.mean(axis=0)
        wide = moving[at]
        if wide.any():
            interval = az.hdi(weights[:, wide].T, prob=hdi_prob)
            low[at[wide]], high[at[wide]] = interval[:, 0], interval[:, 1]
    if posterior.summaries is not None:
        mean = posterior.summaries["mean"].values
    return {"mean": mean, "hdi_low": low, "hdi_high": high}
