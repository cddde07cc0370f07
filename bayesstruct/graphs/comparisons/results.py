"""Two posteriors of graphs on the same variables beside each other."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import generator
from bayesstruct.graphs.comparisons.sensitivity import evidence_table
from bayesstruct.graphs.dag_comparison import expected_dag_distance
from bayesstruct.graphs.distances import expected_differences, joined_differently
from bayesstruct.graphs.evidence import EXCLUDED, FIXED, INCLUDED, STRONG
from bayesstruct.graphs.posteriors.arcs import ArcPosterior, DagPosterior
from bayesstruct.graphs.summaries import bayes_factor_text, interval_probability
from bayesstruct.graphs.truth import positions

if TYPE_CHECKING:
    import pandas as pd

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["ResultComparison", "compare_results", "expected_distance"]

_ROWS = 20  # of the table that are printed
_BLOCK = 4096  # lines whose draws are held at a time
_PRIOR_RATIO = 1.1  # of prior odds that are not the same
_SEPARATE = (
    "Two separate posteriors do not test whether an edge differs: neither has a prior of the difference, so that there is no Bayes factor for "
    "one. Models of groups of rows do: bs.models.grouped_gaussian_graphical, and `group=` of ising and pairwise_mrf."
)


@dataclass(frozen=True, eq=False)
class ResultComparison:
    """Two posteriors of graphs on the same variables, a and b; see `bayesstruct.compare`.

    Attributes
    ----------
    line : str
        "edge" or "arc".
    table : pandas.DataFrame
        One row for each edge (arc: from ``source`` to ``target``): ``probability_a``, ``probability_b``; ``bayes_factor_a``,
        ``bayes_factor_b`` and ``bound_a``, ``bound_b``, whether they are no more than bounds; ``evidence_a``, ``evidence_b``: "included"
        (Bayes factor of at least 10), "excluded", "undecided", or "fixed" where nothing was tested. If both models have weights also ``mean_a``,
        ``mean_b``; ``difference``, the mean of the weight in a less that in b, with its interval ``hdi_low``, ``hdi_high``;
        ``greater`` and ``smaller``, the probabilities that the weight in a is greater or smaller than that in b, which add up to less
        than 1 where both may be exactly zero. The largest difference of probabilities comes first.
    shd : int
        Structural Hamming distance of the median graphs.
    expected_shd : float
        Of a draw of a and a draw of b.
    expected_shd_a, expected_shd_b : float
        Of two draws of the same posterior: the distance that its uncertainty alone makes.
    threshold : float
        Probability of an edge of the median graphs.
    ci_prob : float
        Of the intervals.
    notes : tuple of str
        Remarks in words.
    """

    line: str
    table: "pd.DataFrame"
    shd: int
    expected_shd: float
    expected_shd_a: float
    expected_shd_b: float
    threshold: float
    ci_prob: float
    notes: tuple[str, ...]

    @property
    def n_lines(self) -> int:
        """Number of edges or arcs."""
        return len(self.table)

    @property
    def n_different(self) -> int:
        """Number of tested edges on which the conclusions (included, excluded, undecided) differ."""
        return int(self.differ.sum())

    @property
    def n_opposite(self) -> int:
        """Number of edges that one result includes and the other excludes."""
        pairs = zip(self.table["evidence_a"], self.table["evidence_b"], strict=True)
        return sum({*pair} == {INCLUDED, EXCLUDED} for pair in pairs)

    def to_series(self) -> "pd.Series":
        """All numbers as one pandas Series."""
        import pandas as pd

        apart = (self.table["probability_a"] - self.table["probability_b"]).abs()
        numbers = {
            "n_lines": self.n_lines,
            "n_different": self.n_different,
            "n_opposite": self.n_opposite,
            "mean_probability_difference": apart.mean(),
            "largest_probability_difference": apart.max(),
            "shd": self.shd,
            "expected_shd": self.expected_shd,
            "expected_shd_a": self.expected_shd_a,
            "expected_shd_b": self.expected_shd_b,
            "threshold": self.threshold,
        }
        return pd.Series(numbers, dtype=float)

    def shown(self) -> "pd.DataFrame":
        """Return the table for readers: Bayes factors as text, in which bounds are marked."""
        shown = self.table.drop(columns=["bound_a", "bound_b"])
        for one in "ab":
            columns = self.table[f"bayes_factor_{one}"], self.table[f"bound_{one}"]
            texts = [bayes_factor_text(v, bool(b)) for v, b in zip(*columns, strict=True)]
            shown[f"bayes_factor_{one}"] = texts
        return shown

    def __repr__(self):
        import pandas as pd

        numbers = [f"  {name:<31} {value:.3g}" for name, value in self.to_series().items()]
        options: list[Any] = ["display.max_columns", None, "display.width", 120]
        with pd.option_context(*options, "display.precision", 3):
            table = self.shown().head(_ROWS).to_string(index=False)
        return "\n".join([self._headline(), *numbers, "", table, "", "\n\n".join(self.notes)])

    def _repr_html_(self):
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        tables = [
            self.to_series().to_frame("").to_html(float_format="{:.3g}".format),
            self.shown().head(_ROWS).to_html(index=False, float_format="{:.3g}".format),
        ]
        return f"<p><b>{escape(self._headline())}</b></p>{''.join(tables)}{notes}"

    def _headline(self) -> str:
        tested = int(self._tested().sum())
        return (
            f"Two results, a and b: the conclusions on {self.n_different} of {tested} {self.line}s differ, and are opposite for "
            f"{self.n_opposite}."
        )

    def _tested(self):
        return (self.table["evidence_a"] != FIXED) & (self.table["evidence_b"] != FIXED)

    @property
    def differ(self) -> "pd.Series":
        """Whether the edge was tested in both and the conclusions differ, for each row of the table."""
        return self._tested() & (self.table["evidence_a"] != self.table["evidence_b"])


def compare_results(
    a: "GraphPosterior",
    b: "GraphPosterior",
    threshold: float,
    ci_prob: float | None = None,
    random_seed: int | np.random.Generator | None = None,
) -> ResultComparison:
    """Compare two posteriors; see `bayesstruct.compare`.

    Raises
    ------
    ValueError
        When the variables differ, or one has edges and the other arcs.
    """
    if a.directed != b.directed:
        raise ValueError(
            "One result has undirected edges and the other directed arcs, which mean different things: compare one with the graph of "
            "the other, as in bs.compare(idata, bs.median_graph(directed).to_undirected())"
        )
    ci_prob, rng = interval_probability(ci_prob), generator(random_seed)
    positions(a.variables, b.variables)  # raises where they differ
    table = _joined(a, b)
    weighted = _has_weights(a) and _has_weights(b)
    if weighted:
        table = table.assign(**_differences(table, a, b, ci_prob, rng))
    notes = [_SEPARATE, *_prior_notes(table)]
    if a.directed and weighted:
        notes.append(
            "Weights are coefficients of columns that each model divided by their standard deviations in its own table; bs.coefficients "
            "has them in the units of the tables."
        )
    if not weighted:
        notes.append("There are no differences of weights: one of the models has none.")
    table = table.drop(columns=["prior_probability_a", "prior_probability_b"])
    apart = (table["probability_a"] - table["probability_b"]).abs()
    table = table.iloc[np.argsort(-apart, kind="stable")].reset_index(drop=True)
    return ResultComparison(
        line=a.line,
        table=table,
        shd=_distance(a, b, threshold),
        expected_shd=expected_distance(a, b),
        expected_shd_a=expected_distance(a, a),
        expected_shd_b=expected_distance(b, b),
        threshold=threshold,
        ci_prob=ci_prob,
        notes=tuple(notes),
    )


# ---- distances ---------------------------------------------------------------------------------


def expected_distance(a: "GraphPosterior", b: "GraphPosterior") -> float:
    """Return the expected number of lines (arcs: pairs) in which independent draws of two posteriors differ.

    Raises
    ------
    ValueError
        When the variables differ.
    """
    if isinstance(a, DagPosterior):
        return expected_dag_distance(a, b)
    order, upper = positions(a.variables, b.variables), np.triu_indices(len(a.variables), 1)
    p, q = (one.matrix(one.probability) for one in (a, b))
    return expected_differences(p[upper], q[np.ix_(order, order)][upper])


def _distance(a, b, threshold: float) -> int:
    """Structural Hamming distance of the median graphs."""
    order = positions(a.variables, b.variables)
    first, second = (one.matrix(one.median_lines(threshold)) for one in (a, b))
    return int(joined_differently(first, second[np.ix_(order, order)]))


# ---- lines -------------------------------------------------------------------------------------


def _ends(posterior, names: list[str]) -> list[tuple[str, str]]:
    """Names of the ends of the lines; those of edges in the order of other names."""
    rank = {name: k for k, name in enumerate(names)}
    ends = zip(*posterior.ends(), strict=True)
    return [
        pair if posterior.directed else tuple(sorted(pair, key=rank.__getitem__)) for pair in ends
    ]


def _joined(a, b) -> "pd.DataFrame":
    """One row for each line that one of the models considers; the other one gives it probability zero."""
    parts = []
    for posterior, end in ((a, "_a"), (b, "_b")):
        table = evidence_table(posterior, STRONG).drop(columns=["ess", "r_hat"])
        known = dict(
            zip(zip(*posterior.ends(), strict=True), _ends(posterior, a.variables), strict=True)
        )
        pairs = [known[pair] for pair in zip(table["source"], table["target"], strict=True)]
        table["source"], table["target"] = zip(*pairs, strict=True)
        parts.append(table.set_index(["source", "target"]).add_suffix(end))
    joined = parts[0].join(parts[1], how="outer", sort=False)
    for end in ("_a", "_b"):
        absent = joined[f"probability{end}"].isna()
        filled = {"probability": 0.0, "prior_probability": 0.0, "evidence": FIXED, "bound": False}
        for column, value in filled.items():
            joined[column + end] = joined[column + end].where(~absent, value)
        joined[f"bound{end}"] = joined[f"bound{end}"].astype(bool)
    columns = ["probability", "bayes_factor", "bound", "evidence", "prior_probability"]
    return joined[[f"{column}{end}" for column in columns for end in ("_a", "_b")]].reset_index()


def _has_weights(posterior) -> bool:
    if isinstance(posterior, ArcPosterior):
        return posterior.weighted
    return not posterior.graph_alone


def _differences(table, a, b, ci_prob: float, rng) -> dict[str, np.ndarray]:
    """Summaries of the weight in a less the weight in b, of draws that are paired at random."""
    import arviz as az

    pairs = list(zip(table["source"], table["target"], strict=True))
    size = min(a.n_draws, b.n_draws)
    sides = []
    for posterior in (a, b):
        place = {pair: k for k, pair in enumerate(_ends(posterior, a.variables))}
        at = np.array([place.get(pair, -1) for pair in pairs])
        sides.append((posterior, at, rng.permutation(posterior.n_draws)[:size]))
    columns = ("mean_a", "mean_b", "difference", "hdi_low", "hdi_high", "greater", "smaller")
    out = {name: np.empty(len(pairs)) for name in columns}
    for start in range(0, len(pairs), _BLOCK):
        here = slice(start, start + _BLOCK)
        first, second = (_weights(posterior, at[here]) for posterior, at, _ in sides)
        apart = first[sides[0][2]] - second[sides[1][2]]
        interval = az.hdi(apart.T, prob=ci_prob)
        out["mean_a"][here], out["mean_b"][here] = first.mean(axis=0), second.mean(axis=0)
        out["difference"][here] = out["mean_a"][here] - out["mean_b"][here]
        out["hdi_low"][here], out["hdi_high"][here] = interval[:, 0], interval[:, 1]
        out["greater"][here], out["smaller"][here] = (
            (apart > 0).mean(axis=0),
            (apart < 0).mean(axis=0),
        )
    return out


def _weights(posterior, lines: np.ndarray) -> np.ndarray:
    """Draws of the weights of some lines, (draws, lines); zero for a line that the model does not consider (-1)."""
    kept = lines[lines >= 0]
    if isinstance(posterior, ArcPosterior):
        values = posterior.weights(kept)
    else:
        values = posterior.weights.values[..., kept]
    out = np.zeros((posterior.n_draws, len(lines)))
    out[:, lines >= 0] = values.reshape(posterior.n_draws, -1)
    return out


def _prior_notes(table) -> list[str]:
    """Say where the priors of the two models differ."""
    notes = []
    fixed = (table["evidence_a"] == FIXED) != (table["evidence_b"] == FIXED)
    if fixed.any():
        notes.append(
            f"{int(fixed.sum())} of {len(table)} were required, forbidden or not considered in one model and tested in the other."
        )
    tested = table[(table["evidence_a"] != FIXED) & (table["evidence_b"] != FIXED)]
    odds = [
        tested[f"prior_probability_{one}"] / (1 - tested[f"prior_probability_{one}"])
        for one in "ab"
    ]
    apart = np.abs(np.log(odds[0] / odds[1]))
    if (apart > np.log(_PRIOR_RATIO)).any():
        means = [tested[f"prior_probability_{one}"].mean() for one in "ab"]
        notes.append(
            f"The prior probabilities differ (on average {means[0]:.2g} in a, {means[1]:.2g} in b), and with them the posterior probabilities, "
            "also where the data agree: compare the Bayes factors, and see bs.sensitivity."
        )
    return notes
