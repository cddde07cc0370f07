"""Distance of a posterior from a known graph, or from another posterior."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs import scores as _scores
from bayesstruct.graphs.comparisons.results import (
    ResultComparison,
    compare_results,
    expected_distance,
)
from bayesstruct.graphs.dag_comparison import ArcComparison, compare_dags, expected_dag_distance
from bayesstruct.graphs.distances import expected_differences
from bayesstruct.graphs.graphs import check_fraction
from bayesstruct.graphs.posteriors.arcs import DagPosterior
from bayesstruct.graphs.posteriors.reading import is_result, read_edges, read_graphs
from bayesstruct.graphs.truth import adjacency

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["Comparison", "ResultComparison", "calibration_table", "compare", "expected_shd"]


@dataclass(frozen=True)
class Comparison:
    """Scores of a posterior against a known graph.

    Attributes
    ----------
    auc, average_precision : float
        Whether true edges have higher probabilities than absent ones, over all thresholds. NaN where
        undefined: no true edge, or (`auc` only) true edges alone.
    brier : float
        Mean squared error of the probabilities, 0 is perfect.
    precision, recall, f1, mcc : float
        Of the graph with all edges at least as probable as `threshold`.
    shd : int
        Structural Hamming distance: wrongly included plus wrongly excluded edges of that graph.
    expected_shd : float
        The same, expected over the posterior.
    mean_probability_edges, mean_probability_non_edges : float
        Mean probability over true edges and over absent ones (P+ and P- of the benchmarks).
    n_edges, n_pairs : int
        True edges, and pairs that the model considers.
    threshold : float
        The one used.
    calibration : pandas.DataFrame
        See `calibration_table`.
    """

    auc: float
    average_precision: float
    brier: float
    precision: float
    recall: float
    f1: float
    mcc: float
    shd: int
    expected_shd: float
    mean_probability_edges: float
    mean_probability_non_edges: float
    n_edges: int
    n_pairs: int
    threshold: float
    calibration: "pd.DataFrame"

    def to_series(self) -> "pd.Series":
        """All numbers as one pandas Series, the calibration left out."""
        import pandas as pd

        fields = asdict(self)
        fields.pop("calibration")
        return pd.Series(fields, dtype=float)

    def __repr__(self):
        lines = [f"  {name:<27} {value:.3g}" for name, value in self.to_series().items()]
        return "\n".join(["Comparison with a known graph", *lines])


def compare(
    idata: "xr.DataTree | GraphPosterior",
    truth: Any,
    *,
    threshold: float = 0.5,
    bins: int | None = None,
    ci_prob: float | None = None,
    random_seed: "int | np.random.Generator | None" = None,
) -> Comparison | ArcComparison | ResultComparison:
    """Score a posterior against a known graph, or compare it with another posterior.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    truth : known graph or xarray.DataTree
        Known graph: a networkx.Graph on names; a square table with names; a matrix of shape (p, p) in the order of the
        table (whatever is not zero is an edge); or pairs of names. For a Bayesian network a
        directed one: a networkx.DiGraph; ones and zeros with rows parents and columns children; or
        pairs (parent, child). Of a simulation take ``graph``: its ``coefficients`` have children as
        rows, as regressions are written. Or a result on the same variables, in any order.
    threshold : float, between 0 and 1
        Probability from which on an edge counts as found, in the median graph.
    bins : int, optional
        Number of bins of the calibration table of a known graph, 10 unless given.
    ci_prob : float, optional
        Of two results: probability of the highest-density interval of the difference of weights;
        ``arviz.rcParams["stats.ci_prob"]`` unless given.
    random_seed : int or numpy.random.Generator, optional
        Of two results: for the pairing of their draws.

    Returns
    -------
    Comparison, ArcComparison or ResultComparison
        The second for Bayesian networks with a known graph, the last for two results. `.to_series()` puts the numbers in one row;
        of two results `.table` has one row for each edge, and :func:`bayesstruct.plot_comparison` draws it.

    Raises
    ------
    ValueError
        For names that are not in the model (they are named), a truth of the wrong shape or an edge
        that the model does not consider, a threshold outside (0, 1), two results with different variables, of which one has
        edges and the other arcs, or an option that belongs to the other use.

    Notes
    -----
    Precision and F1 of a graph without edges, and MCC with an empty margin, are 0 (as in
    scikit-learn). Required and forbidden edges are scored like all others.

    Two results are taken as independent, as those of separate tables are: their draws are paired at random, and the difference of the weights
    of an edge is that of the first result less the second. Neither model has a prior of the difference, so that there is no Bayes factor for
    one: an interval without zero is no more than a hint, and edges that are included in one result and undecided in the other need not differ.
    :func:`bayesstruct.models.grouped_gaussian_graphical`, and ``group=`` of :func:`bayesstruct.models.ising` and
    :func:`bayesstruct.models.pairwise_mrf`, compare tables within one model.

    Examples
    --------
    >>> compare(idata, [("praf", "pmek"), ("plcg", "PIP2")]).auc  # doctest: +SKIP
    >>> compare(women, men).table.query("evidence_a != evidence_b")  # doctest: +SKIP
    """
    check_fraction("threshold", threshold)
    posterior = read_graphs(idata)
    if is_result(truth):
        if bins is not None:
            raise ValueError("`bins` goes with a known graph, and these are two results")
        return compare_results(posterior, read_graphs(truth), threshold, ci_prob, random_seed)
    if ci_prob is not None or random_seed is not None:
        raise ValueError(
            "`ci_prob` and `random_seed` go with two results, and this is a known graph"
        )
    label, probability = posterior.labelled(truth)
    calibration = _calibration(label, probability, 10 if bins is None else bins)
    if isinstance(posterior, DagPosterior):
        return compare_dags(posterior, truth, threshold, calibration)
    chosen = probability >= threshold
    tp, fp, fn, tn = _scores.confusion(label, chosen)
    return Comparison(
        auc=_scores.auc(label, probability),
        average_precision=_scores.average_precision(label, probability),
        brier=_scores.brier(label, probability),
        precision=_scores.ratio(tp, tp + fp),
        recall=_scores.ratio(tp, tp + fn),
        f1=_scores.ratio(2 * tp, 2 * tp + fp + fn),
        mcc=_scores.matthews(tp, fp, fn, tn),
        shd=fp + fn,
        expected_shd=float(np.abs(label - probability).sum()),
        mean_probability_edges=_scores.mean(probability[label]),
        mean_probability_non_edges=_scores.mean(probability[~label]),
        n_edges=int(label.sum()),
        n_pairs=len(label),
        threshold=threshold,
        calibration=calibration,
    )


def calibration_table(
    idata: "xr.DataTree | GraphPosterior", truth: Any, *, bins: int = 10
) -> "pd.DataFrame":
    """Compare the probabilities of edges with the share of them that are in a known graph.

    Parameters
    ----------
    idata : xarray.DataTree or sequence of them
        Result(s) of bayesstruct graph models.
    truth : known graph, or a sequence with one for each result
        In any form that `compare` takes.
    bins : int
        Number of bins of equal width.

    Returns
    -------
    pandas.DataFrame
        One row for each bin: `low`, `high` (its borders; the last includes 1), `predicted` (mean
        probability of its edges), `observed` (share of them in the known graph), `count`. Empty
        bins have NaN.

    Raises
    ------
    ValueError
        As `compare`; also when the numbers of results and truths differ.
    """
    if isinstance(idata, Sequence):
        if len(idata) != len(truth) or not len(idata):
            raise ValueError(f"{len(idata)} results, but {len(truth)} known graphs.")
        pairs = [read_graphs(one).labelled(known) for one, known in zip(idata, truth, strict=True)]
    else:
        pairs = [read_graphs(idata).labelled(truth)]
    label, probability = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return _calibration(label, probability, bins)


def expected_shd(a: Any, b: Any) -> float:
    r"""Return the expected number of edges in which two graphs differ.

    Parameters
    ----------
    a, b : xarray.DataTree or known graph
        Two results over the same variables (in any order), or a result and a graph in any form that
        `compare` takes.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        When neither is a result, or the variables differ.

    Notes
    -----
    For independent draws from two posteriors, with edge probabilities :math:`p_e` and :math:`q_e`,
    by linearity of expectation and whatever the dependence among edges,

    .. math:: \sum_e p_e (1 - q_e) + q_e (1 - p_e) .

    A posterior compared with itself is thus not at distance 0 but at the distance of two of its
    draws. A pair that one of the models does not consider has probability 0 there.

    For Bayesian networks it is the expected structural Hamming distance: the sum over unordered
    pairs of the probability that two graphs join them differently (one for a reversed arc, not
    two).
    """
    if not is_result(a):
        a, b = b, a
    first = read_graphs(a)
    if isinstance(first, DagPosterior):
        return expected_dag_distance(first, b)
    if is_result(b):
        return expected_distance(first, read_edges(b))
    upper = np.triu_indices(len(first.variables), 1)
    p, q = first.matrix(first.probability), adjacency(b, first.variables).astype(float)
    return expected_differences(p[upper], q[upper])


def _calibration(label: np.ndarray, probability: np.ndarray, bins: int) -> "pd.DataFrame":
    import pandas as pd

    if bins < 1:
        raise ValueError(f"`bins` must be at least 1, got {bins}.")
    borders = np.linspace(0, 1, bins + 1)
    index = np.clip(np.searchsorted(borders, probability, side="right") - 1, 0, bins - 1)
    count = np.bincount(index, minlength=bins)
    size = np.where(count, count, np.nan)
    return pd.DataFrame(
        {
            "low": borders[:-1],
            "high": borders[1:],
            "predicted": np.bincount(index, probability, bins) / size,
            "observed": np.bincount(index, label, bins) / size,
            "count": count,
        }
    )
