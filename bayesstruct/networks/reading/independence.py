"""Whether the conditional independences that the drawn graphs imply are contradicted by the table."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.tables.observed import observed_table
from bayesstruct.data.arguments import probability
from bayesstruct.graphs.groups import chosen_draws
from bayesstruct.graphs.posteriors.reading import read_dags
from bayesstruct.graphs.sets.separations import BasisSets, basis_sets
from bayesstruct.networks.kernels.independence import (
    Tested,
    holm,
    independent_numbers,
    independent_states,
)
from bayesstruct.networks.priors.records import NetworkStates, SetMask

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.arcs import DagPosterior

__all__ = ["independence_check"]

_DRAWS = 500  # posterior draws whose graphs are used
_UNTESTABLE = (
    "{count} of {total} independences cannot be tested: too few rows are left for so many parents, or a column does not vary "
    "in them. They count as not contradicted."
)
_NO_PAIRS = "All drawn graphs are complete: they imply no conditional independence."


def independence_check(
    idata: "xr.DataTree",
    *,
    alpha: float = 0.05,
    by: str = "pair",
) -> "pd.DataFrame":
    """Check whether conditional independences that the drawn graphs imply are contradicted by the table.

    A graph without an arc between two columns says that they are independent given the parents of both. Each such statement
    of up to 500 posterior draws is compared with the table: by the partial correlation of numbers, by the chi-square statistic of states.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of :func:`bayesstruct.models.bayesian_network`, or of another model with directed acyclic graphs, whose rows ``x`` are
        all numbers or all states.
    alpha : float
        Probability with which at least one independence of a graph that is right is said to be contradicted.
    by : {"pair", "given"}
        One row for each pair of columns, or for each pair and set of columns that are given.

    Returns
    -------
    pandas.DataFrame
        One row for each independence, those that are contradicted with the highest probability first:

        source, target
            The two columns.
        given
            Only with ``by="given"``: the columns that are given, a tuple of str.
        independent
            Posterior probability that the graph implies it.
        contradicted
            Posterior probability that the graph implies it *and* the table contradicts it at the family-wise level `alpha`: the
            p-value, adjusted by the method of Holm for all independences of the same graph, is at most `alpha`.
        p_value
            Posterior predictive p-value, averaged over the graphs that imply it: the probability that a replicated
            table shows as strong a dependence.
        strength
            Mean absolute partial correlation over these graphs. For states the correlation that two normal variables with
            as much mutual information would have.

        ``attrs`` has ``contradicted``, the posterior probability of graphs with at least one contradicted
        independence; ``combined_p_value``, the p-values of all independences of a graph combined by Fisher's method, averaged over
        graphs; ``alpha`` and ``notes``.

    Raises
    ------
    TypeError, ValueError
        If the result has no directed acyclic graphs or no table; if it has columns of both kinds; if an option is
        out of range.

    Notes
    -----
    The distributions of the statistics do not depend on the parameters where the independence holds, so that no replicated
    rows need to be drawn, and p-values of a graph that is right are uniform. Draws are fitted to the table: graphs with
    arcs where it shows dependences are the more probable ones, and p-values of the graphs that were drawn tend to be too
    large, not too small. A contradicted independence therefore says that something keeps the arc out of the graphs: a forbidden
    arc, tiers, a maximum number of parents, a strong prior; or that the dependence is of a kind that the model does not
    have, such as a common cause that is not in the table, or a curved one. Nothing follows from
    its absence: graphs in the same equivalence class imply the same independences.

    A row counts if both columns and those given were observed in it, and the later of both columns in the order of the graph was not set
    from outside. p-values are approximations for
    numbers whose noise is not normal, and for states, whose statistic has the mean and variance that the counts imply.

    References
    ----------
    Shipley, B. (2000). A new inferential test for path models based on directed acyclic graphs. *Structural Equation
    Modeling* 7, 206-218.

    Gelman, A., Meng, X.-L. and Stern, H. (1996). Posterior predictive assessment of model fitness via realized discrepancies.
    *Statistica Sinica* 6, 733-807.

    Holm, S. (1979). A simple sequentially rejective multiple test procedure. *Scandinavian Journal of Statistics* 6, 65-70.

    Examples
    --------
    .. code-block:: python

        bs.independence_check(idata).query("contradicted > 0.5")
    """
    alpha = probability("alpha", alpha)
    if by not in ("pair", "given"):
        raise ValueError(f'`by` must be "pair" or "given", not {by!r:.40}')
    posterior = read_dags(idata)
    graphs, weight = _graphs(posterior)
    implied = basis_sets(graphs)
    tested = _tested(idata, posterior, implied)
    adjusted = [holm(tested.p_value[own]) for own in implied.implied]
    frame = _frame(posterior.variables, implied, tested, weight, adjusted, alpha, by)
    wrong = np.array([bool((own <= alpha).any()) for own in adjusted])
    notes = [] if len(implied.later) else [_NO_PAIRS]
    if lost := int((~tested.testable).sum()):
        notes.append(_UNTESTABLE.format(count=lost, total=len(tested.testable)))
    frame.attrs = {
        "contradicted": float(min(weight @ wrong, 1.0)),
        "combined_p_value": float(weight @ [_fisher(tested, own) for own in implied.implied]),
        "alpha": alpha,
        "notes": notes,
    }
    return frame


def _graphs(posterior: "DagPosterior") -> tuple[np.ndarray, np.ndarray]:
    """Distinct graphs among some draws, and their weights."""
    chain, draw = np.array(chosen_draws(posterior.draws, _DRAWS)).T
    index = posterior.distinct.index.reshape(posterior.n_chains, -1)[chain, draw]
    drawn, count = np.unique(index, return_counts=True)
    return posterior.dags[0][drawn], count / count.sum()


def _tested(idata, posterior: "DagPosterior", implied: BasisSets) -> Tested:
    """Test each independence on the rows that tell of it."""
    table, missing = observed_table(idata)
    free = SetMask.free(posterior.constants, table.shape)
    statements = implied.later, implied.earlier, implied.given
    use = _rows(missing, free, *statements)
    if NetworkStates.is_in(posterior.constants):
        states = NetworkStates.read(posterior.constants).count.astype(int)
        codes = np.where(missing, 0, table).astype(int)
        return independent_states(codes, states, use, *statements)
    if "column_states" in posterior.constants and posterior.constants["column_states"].any():
        raise ValueError(
            "the table has columns of numbers and of states, and independences between them are not checked; "
            "bs.models.bayesian_network of columns of one kind is"
        )
    return independent_numbers(np.where(missing, 0.0, table), use, *statements)


def _rows(missing, free, later, earlier, given) -> np.ndarray:
    """Rows that tell of each independence, (independences, n), or (1, n) if it is all rows for all."""
    if free.all() and not missing.any():
        return np.ones((1, len(missing)), bool)
    involved = given.copy()
    every = np.arange(len(later))
    involved[every, later] = involved[every, earlier] = True
    return ~(involved @ missing.T) & free[:, later].T


def _frame(names, implied, tested, weight, adjusted, alpha, by):
    """Average over graphs, by pairs or by statements."""
    import pandas as pd

    m = len(implied.later)
    share, contradicted = np.zeros(m), np.zeros(m)
    for own, p_values, w in zip(implied.implied, adjusted, weight, strict=True):
        share[own] += w
        contradicted[own] += w * (p_values <= alpha)
    ends = np.sort(np.stack([implied.earlier, implied.later]), axis=0)
    label = np.array(names, dtype=object)
    frame = pd.DataFrame(
        {
            "source": label[ends[0]],
            "target": label[ends[1]],
            "given": [tuple(label[own]) for own in implied.given],
            "independent": share,
            "contradicted": contradicted,
            "p_value": share * tested.p_value,
            "strength": share * tested.strength,
        }
    )
    keys = ["source", "target"] if by == "pair" else ["source", "target", "given"]
    frame = frame.drop(columns=[] if by == "given" else "given")
    frame = frame.groupby(keys, sort=False, as_index=False).sum()
    for name in ("p_value", "strength"):
        frame[name] /= frame["independent"]
    for name in ("independent", "contradicted"):
        frame[name] = frame[name].clip(upper=1.0)  # sums of weights are rounded
    return frame.sort_values(
        ["contradicted", "p_value"], ascending=[False, True], kind="stable", ignore_index=True
    )


def _fisher(tested: Tested, own: np.ndarray) -> float:
    """p-value of all independences of a graph, combined by Fisher's method; 1 if there is none."""
    from scipy.stats import chi2

    values = tested.p_value[own][tested.testable[own]]
    if not len(values):
        return 1.0
    logs = np.log(np.maximum(values, np.finfo(float).tiny))
    return float(chi2.sf(-2 * logs.sum(), 2 * len(values)))
