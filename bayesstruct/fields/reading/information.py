"""Dependence of two columns of a Markov random field given all others, as mutual information."""

from typing import TYPE_CHECKING

import numpy as np

import bayesstruct.graphs.tables.differences  # noqa: F401 (is asked before what is registered here)

from bayesstruct.core.missing import MissingMask
from bayesstruct.core.readers import register_summary, variables
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.priors.records import FieldPotentials
from bayesstruct.graphs.groups import SAMPLE_DIMS
from bayesstruct.graphs.posteriors.edges import GROUP, EdgePosterior
from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.graphs.records import EdgePrior
from bayesstruct.graphs.summaries import interval_probability
from bayesstruct.graphs.tables.edges import EDGE_READERS, edge_table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = [
    "conditional_information",
    "edge_information",
    "is_random_field",
    "potentials_of",
    "weight_name",
]

#: Largest number of joint states that is summed over.
ENUMERATED = 2**16


def edge_information(
    idata: "xr.DataTree",
    *,
    ci_prob: float | None = None,
    draws: int = 200,
    group: str = "posterior",
) -> "pd.DataFrame":
    r"""Summarise how strongly each pair of columns depends on each other, given all others.

    Weights of different potentials, or of columns with different numbers of states, cannot be
    compared; these two numbers can.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.ising` or :func:`bayesstruct.models.pairwise_mrf`.
    ci_prob : float, optional
        Probability of the highest-density intervals, ArviZ's ``rcParams["stats.ci_prob"]`` by default.
    draws : int
        Number of draws used, spread evenly over all of them.
    group : {"posterior", "prior"}
        Group that holds the draws.

    Returns
    -------
    pandas.DataFrame
        One row an edge, most informative first (ties: in the order of the table), with columns

        source, target
            Names of the two variables.
        information, information_low, information_high
            Mean and interval of the conditional mutual information, in nats; draws without the edge
            count as zero.
        norm, norm_low, norm_high
            Mean and interval of the norm of the interaction: of the table of log-potentials minus
            its row and column means.

        ``attrs["estimator"]`` is ``"enumeration"`` or ``"rows"`` (see Notes).

    Raises
    ------
    TypeError, ValueError
        If `idata` is not a result of such a model, or an option is out of range.

    Notes
    -----
    .. math:: I(X_i; X_j \mid X_{-ij}) = E \log
        \frac{p(X_i, X_j \mid X_{-ij})}{p(X_i \mid X_{-ij}) \, p(X_j \mid X_{-ij})}

    (Cover and Thomas 2006, equation 2.61) under the Markov random field of each draw. It is zero exactly if
    the pair has no interaction. A pair of normal variables with partial correlation r has
    :math:`-\tfrac12 \log(1 - r^2)`: 0.005 at 0.1, 0.047 at 0.3, 0.144 at 0.5.

    Up to 2^16 joint states the expectation is a sum over all of them. Beyond, it is an expectation over the
    pair alone, averaged over the other columns of the observed rows, whose missing values are those of the draw.

    References
    ----------
    Cover, T. M. and Thomas, J. A. (2006). *Elements of information theory*, second edition. Wiley.

    Examples
    --------
    >>> edge_information(idata).head()  # doctest: +SKIP
    """
    import pandas as pd

    prob = interval_probability(ci_prob)
    if draws < 1:
        raise ValueError(f"`draws` must be at least 1, got {draws}.")
    posterior = read_edges(idata, group)
    potentials = potentials_of(posterior)
    keep = np.linspace(0, posterior.n_draws - 1, min(draws, posterior.n_draws)).astype(int)
    bias, weight = _flat(posterior, "bias")[keep], _flat(posterior, weight_name(posterior))[keep]
    rows = None if _enumerable(potentials) else _rows(idata, posterior, keep)
    information = conditional_information(potentials, bias, weight, rows)
    source, target = posterior.ends()
    table = pd.DataFrame({"source": source, "target": target})
    for name, values in (
        ("information", information),
        ("norm", potentials.interaction_norms(weight)),
    ):
        table[name] = values.mean(axis=0)
        table[f"{name}_low"], table[f"{name}_high"] = _interval(values, prob)
    table = table.sort_values("information", ascending=False, kind="stable", ignore_index=True)
    table.attrs = {
        "estimator": "enumeration" if rows is None else "rows",
        "ci_prob": prob,
        "draws": len(keep),
    }
    return table


def conditional_information(
    potentials: Potentials, bias: np.ndarray, weight: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """Conditional mutual information of each pair of variables given all others.

    Parameters
    ----------
    potentials : Potentials
        Of all pairs, or of those that are joined.
    bias, weight : arrays, shapes (draws, biases) and (draws, weights)
    rows : (n, p) or (draws, n, p) array of int, optional
        The information of a pair is averaged over the states of the other columns in these rows. By default it
        is the sum over all joint states, weighted by their probabilities.

    Returns
    -------
    ndarray, shape (draws, edges)
        In nats, see `edge_information`.

    Raises
    ------
    ValueError
        If there are too many joint states and no rows, or shapes do not fit the potentials.

    Examples
    --------
    Two fair coins that nearly always show the same side:

    >>> potentials = Potentials("spin", (2, 2))
    >>> conditional_information(potentials, np.zeros((1, 2)), np.array([[9.0]])).round(3)
    array([[0.693]])
    """
    bias, weight = np.atleast_2d(bias), np.atleast_2d(weight)
    sizes = potentials.bias_size, potentials.weight_size
    if len(bias) != len(weight) or (bias.shape[1], weight.shape[1]) != sizes:
        raise ValueError(
            f"`bias` and `weight` must have shapes (draws, {sizes[0]}) and (draws, {sizes[1]}), "
            f"they have {bias.shape} and {weight.shape}."
        )
    if rows is None:
        return _over_all_states(potentials, bias, weight)
    return _over_rows(potentials, bias, weight, np.asarray(rows, np.int64))


def _over_all_states(potentials, bias, weight):
    """Sum over all joint states: entropies of all variables, without one of a pair, and without both."""
    from scipy.special import entr

    from bayesstruct.fields.kernels.exact_sums import ExactSums

    if not _enumerable(potentials):
        total = float(np.prod(potentials.states, dtype=float))
        raise ValueError(
            f"{potentials.p} variables have {total:.3g} joint states, at most {ENUMERATED:,} are summed "
            "over: pass `rows` to average over."
        )
    sums, ends = ExactSums.of(potentials), list(zip(*potentials.ends, strict=True))
    out = np.zeros((len(bias), len(ends)))
    for d in range(len(bias)):
        pair = potentials.pair(weight[d])
        p = sums.joint(potentials.unary(bias[d]), pair).reshape(potentials.states)
        whole = entr(p).sum()
        without = [p.sum(axis=i) for i in range(potentials.p)]
        entropy = [entr(q).sum() for q in without]
        for e in np.flatnonzero(np.logical_or.reduceat(pair != 0, potentials.pair_start[:-1])):
            i, j = ends[e]
            rest = entr(without[j].sum(axis=i)).sum()  # i < j, which keeps its place
            out[d, e] = entropy[i] + entropy[j] - rest - whole
    return np.maximum(out, 0.0)  # below by rounding only


def _over_rows(potentials, bias, weight, rows):
    from bayesstruct.fields.kernels.information import row_information

    if rows.ndim not in (2, 3) or rows.shape[-1] != potentials.p or rows.shape[-2] < 1:
        raise ValueError(f"`rows` has shape {rows.shape}, it must end in (n, {potentials.p}).")
    if rows.ndim == 3 and len(rows) != len(bias):
        raise ValueError(f"`rows` has {len(rows)} tables for {len(bias)} draws.")
    if (rows < 0).any() or (rows >= np.array(potentials.states)).any():
        raise ValueError("`rows` has codes that are not states; missing values must be filled in.")
    starts = potentials.unary_start, potentials.pair_start
    states, ends = np.array(potentials.states), potentials.ends
    out = np.empty((len(bias), len(ends[0])))
    for d in range(len(bias)):
        tables = potentials.unary(bias[d]), potentials.pair(weight[d])
        own = np.ascontiguousarray(rows[d] if rows.ndim == 3 else rows)
        row_information(states, *starts, *ends, *tables, own, out[d])
    return out


def _enumerable(potentials):
    return float(np.prod(potentials.states, dtype=float)) <= ENUMERATED


def potentials_of(posterior: EdgePosterior) -> Potentials:
    """Potentials of a result; raise if it is of another model, or its edges were sorted or selected."""
    constants = posterior.constants
    if not FieldPotentials.is_in(constants):
        raise ValueError(
            "This result is not one of bs.models.ising or bs.models.pairwise_mrf: it has no "
            "`potentials` and `states`. Of a Markov random field in a model of your own, pass the draws to "
            "bs.structure.conditional_information."
        )
    if GROUP in posterior.draws["bias"].dims:
        raise ValueError(
            "this result has a Markov random field for each group of rows: read one group, bs.one_group(idata, label)"
        )
    order = np.lexsort((posterior.target, posterior.source))
    count = EdgePrior.read(constants).count if EdgePrior.is_in(constants) else None
    count = len(order) if count is None else int(count)
    if len(order) != count or (order != np.arange(count)).any():
        raise ValueError(
            f"The information of an edge depends on all {count} edges of the model, in their order; this result has "
            f"{len(order)} of them, or they were sorted: pass the whole result, and select from or sort the table "
            "that this function returns."
        )
    return FieldPotentials.read(constants).with_edges(posterior.source, posterior.target)


def weight_name(posterior: EdgePosterior) -> str:
    """Name of the variable that holds all weights."""
    return "potential" if "potential" in posterior.draws else "weight"


def _flat(posterior, name):
    """Draws of a vector, (draws, entries)."""
    values = posterior.draws[name].transpose(*SAMPLE_DIMS, ...).values
    return np.ascontiguousarray(values.reshape(posterior.n_draws, -1), dtype="float64")


def _rows(idata, posterior, keep):
    """Observed rows; for each draw, if values are missing."""
    table = idata["observed_data"]["x"].values
    missing = MissingMask.mask(posterior.constants, table.shape)
    rows = np.where(missing, 0, table).astype(np.int64)
    if not missing.any():
        return rows
    filled = np.repeat(rows[None], len(keep), axis=0)
    filled[:, missing] = _flat(posterior, "x_missing")[keep]
    return filled


def _interval(values, prob):
    import arviz as az

    interval = az.hdi(np.ascontiguousarray(values.T), prob=prob)
    return interval[:, 0], interval[:, 1]


def is_random_field(idata: "xr.DataTree") -> bool:
    """Whether a result is of a Markov random field."""
    return "edge" in variables(idata) and {"potentials", "states"} <= variables(
        idata, "constant_data"
    )


register_summary(
    "Markov random fields",
    is_random_field,
    edge_table,
    (
        "edge_information",
        "predict",
        "predictability",
        "pointwise",
        "sandwich",
        *EDGE_READERS,
        "predictive_pair_tables",
        "predictive_item_rest",
        "predictive_sum_scores",
    ),
    before="undirected graphs",
)
