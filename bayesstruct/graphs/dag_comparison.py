"""Distance of a posterior over DAGs from a known graph, or from another posterior."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs import scores as _scores
from bayesstruct.graphs.ancestry import essential
from bayesstruct.graphs.digraphs import off_diagonal
from bayesstruct.graphs.distances import joined_differently, wrong_effects
from bayesstruct.graphs.posteriors.arcs import DagPosterior
from bayesstruct.graphs.posteriors.reading import is_result, read_dags
from bayesstruct.graphs.truth import arc_matrix, positions

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ArcComparison"]


@dataclass(frozen=True)
class ArcComparison:
    """Scores of a posterior over directed acyclic graphs against a known graph.

    Attributes
    ----------
    auc, average_precision : float
        Over ordered pairs: whether true arcs have higher probabilities than absent ones. NaN where
        undefined: no true arc, or (`auc` only) true arcs alone.
    skeleton_auc : float
        The same over unordered pairs, with the probability that they are joined at all.
    brier : float
        Mean squared error of the probabilities of arcs, 0 is perfect.
    precision, recall, f1, mcc : float
        Of the arcs of the median graph (`median_graph` with `threshold`).
    shd : int
        Structural Hamming distance of the median graph: one for each missing, extra or reversed
        arc.
    essential_shd : float
        The same for the essential graphs of both; NaN when the known graph has a cycle.
    sid : float
        Structural intervention distance from the known graph to the median graph; NaN likewise.
    expected_shd : float
        Of a draw of the posterior.
    mean_probability_arcs, mean_probability_non_arcs : float
        Mean probability over true arcs and over absent ones.
    n_arcs, n_pairs : int
        True arcs, and ordered pairs of variables.
    threshold : float
        The one used.
    calibration : pandas.DataFrame
        See `calibration_table`; over ordered pairs.
    """

    auc: float
    average_precision: float
    skeleton_auc: float
    brier: float
    precision: float
    recall: float
    f1: float
    mcc: float
    shd: int
    essential_shd: float
    sid: float
    expected_shd: float
    mean_probability_arcs: float
    mean_probability_non_arcs: float
    n_arcs: int
    n_pairs: int
    threshold: float
    calibration: "pd.DataFrame"

    def to_series(self) -> "pd.Series":
        """All numbers as one pandas Series, the calibration left out."""
        import pandas as pd

        values = asdict(self)
        values.pop("calibration")
        return pd.Series(values, dtype=float)

    def __repr__(self):
        lines = [f"  {name:<27} {value:.3g}" for name, value in self.to_series().items()]
        return "\n".join(["Comparison with a known directed graph", *lines])


def compare_dags(
    posterior: DagPosterior, truth, threshold: float, calibration: "pd.DataFrame"
) -> ArcComparison:
    """Score a posterior against a known directed graph; see `comparison.compare`."""
    known = arc_matrix(truth, posterior.variables)
    median = posterior.matrix(posterior.median_lines(threshold))
    probability = posterior.matrix(posterior.probability)
    label, score = off_diagonal(known), off_diagonal(probability)
    tp, fp, fn, tn = _scores.confusion(label, off_diagonal(median))
    upper = np.triu_indices(len(known), 1)
    essential_shd, sid = _causal(known, median)
    return ArcComparison(
        auc=_scores.auc(label, score),
        average_precision=_scores.average_precision(label, score),
        skeleton_auc=_scores.auc((known | known.T)[upper], (probability + probability.T)[upper]),
        brier=_scores.brier(label, score),
        precision=_scores.ratio(tp, tp + fp),
        recall=_scores.ratio(tp, tp + fn),
        f1=_scores.ratio(2 * tp, 2 * tp + fp + fn),
        mcc=_scores.matthews(tp, fp, fn, tn),
        shd=int(joined_differently(median, known)),
        essential_shd=essential_shd,
        sid=sid,
        expected_shd=_expected(probability, known.astype(float)),
        mean_probability_arcs=_scores.mean(score[label]),
        mean_probability_non_arcs=_scores.mean(score[~label]),
        n_arcs=int(label.sum()),
        n_pairs=len(label),
        threshold=threshold,
        calibration=calibration,
    )


def expected_dag_distance(first: DagPosterior, other) -> float:
    """Return the expected structural Hamming distance; see `comparison.expected_shd`."""
    p, names = first.matrix(first.probability), first.variables
    if not is_result(other):
        return _expected(p, arc_matrix(other, names).astype(float))
    second = read_dags(other)
    order = positions(names, second.variables)
    return _expected(p, second.matrix(second.probability)[np.ix_(order, order)])


def _expected(p: np.ndarray, q: np.ndarray) -> float:
    """Add up the probabilities that two independent graphs join a pair differently.

    The second may be a known graph with undirected edges (1 both ways), which no drawn graph has.
    """
    alone = np.clip(1 - p - p.T, 0, 1) * np.clip(1 - q - q.T, 0, 1)
    both = q * q.T == 1
    same = np.where(both, 0, p * q + (p * q).T + alone)
    return float((1 - same)[np.triu_indices(len(p), 1)].sum())


def _causal(known: np.ndarray, median: np.ndarray) -> tuple[float, float]:
    """Distances that need an acyclic truth: of essential graphs, and of interventions."""
    import networkx as nx

    if not nx.is_directed_acyclic_graph(nx.from_numpy_array(known, create_using=nx.DiGraph)):
        return float("nan"), float("nan")
    one, other = essential(np.stack([known, median]))
    return float(joined_differently(one, other)), float(wrong_effects(known, median).sum())
