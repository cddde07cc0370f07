"""Effects of interventions in each distinct graph: whether their sign, and how much of their variance, depends on the graph."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bayesstruct.graphs.ancestry import descendants
from bayesstruct.graphs.posteriors.arcs import DagPosterior
from bayesstruct.graphs.sets.weights import GraphWeights, drawn_graphs, graph_weights

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EffectDraws", "GraphEffects", "effects_by_graph", "variance_share"]

_FLIP = 0.05  # weight of the graphs of each sign from which on a sign is said to flip


class EffectDraws(NamedTuple):
    """Effects of an intervention in some draws.

    Attributes
    ----------
    labels : pandas.Index
        Columns, or columns and states, m in all.
    expected, effect : ndarray, shape (draws, m)
        Expected values (probabilities of states) with the intervention, in the units of the table, and their
        differences from those without.
    used : ndarray of int, shape (draws,)
        Which draws these are.
    single : ndarray, shape (draws, m), optional
        A new row with the intervention for each draw; NaN for states.
    """

    labels: "pd.Index"
    expected: np.ndarray
    effect: np.ndarray
    used: np.ndarray
    single: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class GraphEffects:
    """Effects of an intervention averaged over graphs, and in each of them; made by ``bayesstruct.do(..., by_graph=True)``.

    Attributes
    ----------
    summary : pandas.DataFrame
        One row for each column (and state): ``effect``, ``effect_low``, ``effect_high``, the mean over all draws and its
        interval; ``positive``, ``zero``, ``negative``, the posterior probabilities that the effect is above, exactly or
        below zero, which add up to one (it is exactly zero where the graph has no directed path from a column that was set);
        ``graphs_positive``, ``graphs_negative``, the weights of the graphs whose mean effect is above and below zero;
        ``flips``, whether both are at least 0.05; ``graph_share``, the share of the variance of the effect
        over the draws that comes from the graph. The rest comes from the parameters given the graph.
    table : pandas.DataFrame
        One row for each graph, numbered as in `weights`, and column (and state): ``weight`` of the graph, ``effect`` with its
        interval, ``positive``, ``zero`` and ``negative`` given the graph.
    weights : GraphWeights
        The graphs, or equivalence classes.
    """

    summary: "pd.DataFrame"
    table: "pd.DataFrame"
    weights: GraphWeights

    def to_frame(self) -> "pd.DataFrame":
        """Return the table of all graphs."""
        return self.table

    def __repr__(self):
        import pandas as pd

        options = ["display.max_columns", None, "display.width", 140, "display.precision", 3]
        with pd.option_context(*options):
            return f"{self._headline()}\n\n{self.summary}"

    def _repr_html_(self):
        table = self.summary.to_html(float_format="{:.3g}".format)
        return f"<p><b>{escape(self._headline())}</b></p>{table}"

    def _headline(self) -> str:
        what = "equivalence classes" if self.weights.classes else "graphs"
        flips = int(self.summary["flips"].sum())
        return (
            f"Effects in {len(self.weights):,} distinct {what}; the sign of {flips} of {len(self.summary)} effects depends "
            f"on the graph."
        )


def effects_by_graph(
    posterior: DagPosterior,
    chosen: list[str],
    draws: EffectDraws,
    by_graph: bool | Literal["classes"],
    prob: float,
) -> GraphEffects:
    """Sum up effects by distinct graphs.

    Parameters
    ----------
    posterior : DagPosterior
    chosen : list of str
        Columns that were set.
    draws : EffectDraws
    by_graph : True or "classes"
    prob : float
        Probability of the intervals, which are equal-tailed.

    Returns
    -------
    GraphEffects

    Raises
    ------
    ValueError
        If `by_graph` is something else.
    """
    import pandas as pd

    if by_graph is not True and by_graph != "classes":
        raise ValueError(f'`by_graph` must be True, False or "classes", not {by_graph!r:.40}')
    weights = graph_weights(posterior, classes=by_graph == "classes")
    index = drawn_graphs(posterior, weights.classes).index[draws.used]
    effect = np.where(_reached(posterior, chosen, draws), draws.effect, 0.0)
    order = np.argsort(index, kind="stable")
    ends = np.flatnonzero(np.diff(index[order])) + 1
    parts = dict(zip(index[order][np.r_[0, ends]], np.split(effect[order], ends), strict=True))
    tables = {k: _summary(own, draws.labels, prob) for k, own in sorted(parts.items())}
    table = pd.concat(tables, names=["graph"])
    share = weights.table["weight"].to_numpy()
    table.insert(0, "weight", share[table.index.get_level_values("graph")])
    mean = np.array([own.mean(axis=0) for own in parts.values()])
    drawn = np.array([len(own) for own in parts.values()]) / len(effect)
    summary = _summary(effect, draws.labels, prob)
    summary["graphs_positive"], summary["graphs_negative"] = drawn @ (mean > 0), drawn @ (mean < 0)
    summary["flips"] = (summary[["graphs_positive", "graphs_negative"]] >= _FLIP).all(axis=1)
    summary["graph_share"] = variance_share(effect, index)
    return GraphEffects(summary, table, weights)


def _reached(posterior: DagPosterior, chosen: list[str], draws: EffectDraws) -> np.ndarray:
    """Whether the intervention can change each quantity in each draw, boolean (draws, m)."""
    graphs, _ = posterior.dags
    at = np.isin(posterior.variables, chosen)
    reached = descendants(graphs)[:, at].any(axis=1) | at
    position = {name: i for i, name in enumerate(posterior.variables)}
    columns = np.array([position[name] for name in draws.labels.get_level_values("node")])
    return reached[posterior.distinct.index[draws.used]][:, columns]


def _summary(effect: np.ndarray, labels, prob: float) -> "pd.DataFrame":
    """Mean, interval and probabilities of the signs of some draws (n, m)."""
    import pandas as pd

    low, high = np.quantile(effect, [0.5 - prob / 2, 0.5 + prob / 2], axis=0)
    columns = {
        "effect": effect.mean(axis=0),
        "effect_low": low,
        "effect_high": high,
        "positive": (effect > 0).mean(axis=0),
        "zero": (effect == 0).mean(axis=0),
        "negative": (effect < 0).mean(axis=0),
    }
    return pd.DataFrame(columns, index=labels)


def variance_share(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Estimate the share of the variance of each column that comes from differences between groups.

    Parameters
    ----------
    values : ndarray, shape (n, m)
    group : ndarray of int, shape (n,)
        From 0.

    Returns
    -------
    ndarray, shape (m,)
        Between 0 and 1; NaN for a constant, and where no group has two members.

    Notes
    -----
    The sum of squares between groups of a few draws each holds variance from within the groups, which the
    estimate, epsilon squared of the analysis of variance [1]_, takes out: with a draw for each graph a plain share
    would be 1.

    References
    ----------
    .. [1] Kelley, T. L. (1935). An unbiased correlation ratio measure. Proceedings of the National Academy of Sciences 21,
       554-559.
    """
    count = np.bincount(group)
    total = ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    sums = np.zeros((len(count), values.shape[1]))
    np.add.at(sums, group, values)
    means = sums / np.maximum(count, 1)[:, None]
    inside = ((values - means[group]) ** 2).sum(axis=0)
    filled = int((count > 0).sum())
    free = len(values) - filled
    if not free:
        return np.full(values.shape[1], np.nan)
    between = total - inside - (filled - 1) * inside / free
    constant = total <= np.finfo(float).eps * len(values) * (values**2).max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(between / total, 0, 1)
    return np.where(constant, np.nan, share)
