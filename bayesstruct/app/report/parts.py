"""What the report of a run can consist of: one record for each kind of result, and how tables are shown.

A new kind of result is one more `Part`, in `graphs` or `latent`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.readers import variables
from bayesstruct.graphs.evidence import EXCLUDED, FIXED, INCLUDED, STRONG, UNDECIDED, evidence
from bayesstruct.graphs.posteriors.estimators import LARGEST
from bayesstruct.graphs.summaries import bayes_factor_texts, bound_note

if TYPE_CHECKING:
    import pandas as pd

    from matplotlib.axes import Axes

    from bayesstruct.app.folder import Job
    from bayesstruct.modes.check import Check

__all__ = [
    "FACTORS",
    "MARK",
    "Drawing",
    "Finding",
    "Part",
    "Result",
    "count_kinds",
    "fixed",
    "interval",
    "kinds_sentence",
    "unsure",
    "with_evidence",
]

#: Mark of rows whose chains do not agree well enough.
MARK = "†"
#: Monte Carlo error from which a probability with poor diagnostics is marked: below, its two digits are right.
ERROR = 0.01
ESS_PER_CHAIN, MAX_R_HAT = 100, 1.01

FACTORS = (
    "*Bayes factor*: how much the data changed the odds; `>` and `<` mark bounds: the draws cannot tell the "
    f"probability from 1 (from 0), or the value is beyond 1e{LARGEST}, where it depends on the shape of the prior."
)


@dataclass(frozen=True)
class Result:
    """A result that is reported on.

    Attributes
    ----------
    idata : xarray.DataTree
    job : Job
    model : pymc.Model or None
    check : Check
        Convergence.
    checked : GraphPosterior, optional
        Graphs that the check has read, whose diagnostics are not computed again.
    """

    idata: Any
    job: "Job"
    model: Any
    check: "Check"
    checked: Any = None

    @cached_property
    def drawn(self) -> set[str]:
        """Names of the variables of the posterior."""
        return variables(self.idata)

    @cached_property
    def recorded(self) -> set[str]:
        """Names of the constants that the model recorded."""
        return variables(self.idata, "constant_data")

    @property
    def is_directed(self) -> bool:
        """Whether the draws are directed acyclic graphs."""
        return "arc" in self.drawn and "arc_acyclic" in self.recorded

    @property
    def nodes(self) -> Any:
        """Names of the variables."""
        posterior = self.idata["posterior"]
        return posterior["node"].values if "node" in posterior.coords else self.job.frame.columns

    @cached_property
    def graph(self) -> Any:
        """The posterior of graphs; of regressions of single columns, of the edges that both ends tell."""
        from bayesstruct.graphs.posteriors.reading import read_graphs

        if "arc" in self.drawn and "arc_acyclic" not in self.recorded:
            from bayesstruct.neighbourhoods.reading.symmetrize import symmetrize

            return read_graphs(symmetrize(self.idata, "and"))
        return read_graphs(self.read)

    @property
    def read(self) -> Any:
        """The graphs that the check has read, or else the result: what readers of graphs take."""
        return self.idata if self.checked is None else self.checked

    @cached_property
    def states(self) -> "pd.DataFrame":
        """Probabilities of the behaviours of series, row by row."""
        from bayesstruct.series.reading import state_probabilities

        return state_probabilities(self.idata)

    @cached_property
    def restored(self) -> Any:
        """The result; of many columns, whose precision matrices are not stored, some draws with those that the weights imply.

        Weights are partial correlations, which determine the precision matrix of columns with the variance 1.
        """
        lost = {"edge", "weight"} <= self.drawn and "precision" not in self.drawn
        others = {"state_block", "difference"} & (self.recorded | self.drawn)
        numbers = self.job.options["model"].endswith("gaussian_graphical")
        if not lost or others or not numbers or self.graph.directed:
            return self.idata
        return _with_precision(self.idata, self.graph)

    @cached_property
    def predicted(self) -> "pd.DataFrame | None":
        """How well each variable of a graph is predicted by all others, None if that is not known."""
        from bayesstruct.modes.predictability import predictability

        if not {"edge", "arc"} & self.drawn:
            return None
        try:
            return predictability(self.restored)
        except (ValueError, KeyError):  # a result without parameters, or without the table
            return None

    @cached_property
    def central(self) -> "pd.DataFrame | None":
        """How central each node of a graph is, None if the result has no graph."""
        import pandas as pd

        from bayesstruct.graphs.nodes.centrality import centrality
        from bayesstruct.graphs.tables.differences import one_group

        if not {"edge", "arc"} & self.drawn:
            return None
        if "difference" not in self.drawn:
            return _centrality(self.graph)
        parts = []
        for name in map(str, self.idata["posterior"]["group"].values):
            own = one_group(self.idata, name)
            parts.append(centrality(own, ("strength", "expected_influence")))
            parts[-1].insert(0, "group", name)
        table = pd.concat(parts, ignore_index=True)
        table.attrs = parts[0].attrs
        return table

    @property
    def sizes(self) -> dict[str, int]:
        """Number of chains, and of draws of each."""
        sizes = self.idata["posterior"].sizes
        return {"chain": sizes["chain"], "draw": sizes["draw"]}


def _with_precision(idata: Any, graph: Any, draws: int = 200) -> Any:
    """Return draws of a result with the precision matrices of columns with the variance 1."""
    import xarray as xr

    posterior = idata["posterior"].to_dataset()
    step = max(1, posterior.sizes["chain"] * posterior.sizes["draw"] // draws)
    kept = posterior[["edge", "weight"]].isel(draw=slice(None, None, step))
    weights = kept["weight"].transpose("chain", "draw", ...).values
    p = len(graph.variables)
    precision = np.zeros((*weights.shape[:2], p, p))
    precision[..., graph.source, graph.target] = -weights
    precision[..., graph.target, graph.source] = -weights
    precision[..., np.arange(p), np.arange(p)] = 1.0
    variance = np.diagonal(np.linalg.inv(precision), axis1=-2, axis2=-1)
    if not (variance > 0).all():  # weights that are no partial correlations
        return idata
    spread = np.sqrt(variance)
    precision *= spread[..., :, None] * spread[..., None, :]
    kept = kept.assign(precision=(("chain", "draw", "node", "node_"), precision))
    groups = {name: node.to_dataset() for name, node in idata.children.items()}
    return xr.DataTree.from_dict({**groups, "posterior": kept})


def _centrality(graph: Any) -> "pd.DataFrame":
    """Measures of centrality that the report has, the main one first: of weights, where there are some."""
    from bayesstruct.graphs.nodes.centrality import centrality

    of_weights: tuple[str, ...] = ("strength", "expected_influence")
    of_lines: tuple[str, ...] = ("degree",)
    if graph.directed:
        of_weights = ("out_strength", "in_strength", "expected_influence")
        of_lines = ("out_degree", "in_degree")
    try:
        return centrality(graph, of_weights)
    except ValueError:  # lines have no weights
        table = centrality(graph, of_lines)
    table.attrs["notes"] = []  # on lengths, which degrees do not have
    return table


@dataclass(frozen=True)
class Drawing:
    """A picture of a part of the report.

    Attributes
    ----------
    file : str
    caption : str
        A template of `text.prose` without values.
    draw : callable
        Of the result, the table and axes; draws.
    size : callable
        Of the result and the table: width and height in inches.
    wanted : callable
        Of the result and the table: whether there is something to draw.
    """

    file: str
    caption: str
    draw: Callable[[Result, "pd.DataFrame", "Axes"], Any]
    size: Callable[[Result, "pd.DataFrame"], tuple[float, float]]
    wanted: Callable[[Result, "pd.DataFrame"], bool] = lambda result, table: len(table) > 0


@dataclass(frozen=True)
class Part:
    """A section of the report, about one kind of result.

    Attributes
    ----------
    title : str
    file : str
        The whole table, as CSV.
    applies : callable
        Of the result: whether it has this part.
    table : callable
        Of the result: the whole table, a DataFrame, the rows that matter most first.
    cells : callable
        Of the first rows: the texts of each column that is shown, by its title.
    headlines : callable
        Of the whole table: sentences that say what was found.
    explanation : callable
        Of the whole table: sentences that say what the numbers mean, templates of `text.prose` without values.
    drawings : tuple of Drawing
    shown : int
        Rows in the report.
    index : bool
        Whether the names of the rows are part of the table on disk.
    words : frozenset of int
        Columns of `cells` that hold words.
    noun : str
        What the rows of the table are, if the evidence for each is counted.
    """

    title: str
    file: str
    applies: Callable[[Result], bool]
    table: Callable[[Result], "pd.DataFrame"]
    cells: Callable[["pd.DataFrame"], Mapping[str, list[str]]]
    headlines: Callable[["pd.DataFrame"], list[str]]
    explanation: Callable[["pd.DataFrame"], list[str]]
    drawings: tuple[Drawing, ...] = ()
    shown: int = 20
    index: bool = False
    words: frozenset[int] = field(default=frozenset({0}))
    noun: str = ""


@dataclass(frozen=True)
class Finding:
    """A part of the report on a result, with its table.

    Attributes
    ----------
    part : Part
    table : DataFrame
    chains : int
    """

    part: Part
    table: "pd.DataFrame"
    chains: int

    def rows(self) -> tuple[list[str], list[list[str]], bool]:
        """Titles of the columns, texts of the first rows, and whether a row is marked."""
        top = self.table.head(self.part.shown)
        cells = {name: list(column) for name, column in self.part.cells(top).items()}
        marked = unsure(top, self.chains)
        if "probability" in cells:
            cells["probability"] = [
                f"{text} {MARK}" if mark else text
                for text, mark in zip(cells["probability"], marked, strict=True)
            ]
        rows = [list(row) for row in zip(*cells.values(), strict=True)]
        return [*cells], rows, bool(marked.any())

    @property
    def notes(self) -> list[str]:
        """Remarks on the table, without that on bounds, which the report explains by itself."""
        known = bound_note(self.table.attrs.get("bayes_factor_bounds", []))
        return [str(note) for note in self.table.attrs.get("notes", ()) if note not in known]


def unsure(table: "pd.DataFrame", chains: int) -> np.ndarray:
    """Tell which probabilities of a table are not known well: their chains disagree, or are too short.

    A line that is in a handful of draws has a poor R-hat and a probability that is known well all the
    same; so the Monte Carlo error must be `ERROR` or more too.

    Parameters
    ----------
    table : DataFrame
        With ``probability``, ``ess`` and ``r_hat``, or without: then nothing is known, and nothing marked.
    chains : int

    Returns
    -------
    ndarray of bool, one for each row
    """
    if not {"probability", "ess", "r_hat"} <= {*table}:
        return np.zeros(len(table), bool)
    p, ess, r_hat = (table[name].to_numpy(float) for name in ("probability", "ess", "r_hat"))
    with np.errstate(invalid="ignore", divide="ignore"):
        poor = (r_hat > MAX_R_HAT) | (ess < ESS_PER_CHAIN * chains)
        error = np.sqrt(p * (1 - p) / ess)
    return np.isposinf(r_hat) | (poor & ~(error < ERROR) & (p > 0) & (p < 1))


def with_evidence(table: "pd.DataFrame") -> "pd.DataFrame":
    """Add what each Bayes factor says, and the factor as it is shown, with the marks of bounds."""
    out = table.copy()
    at = list(out).index("bayes_factor") + 1
    out.insert(at, "bayes_factor_shown", bayes_factor_texts(table))
    out.insert(at + 1, "evidence", evidence(table["bayes_factor"]))
    return out


def count_kinds(table: "pd.DataFrame") -> dict[str, int]:
    """Count the rows of each kind of evidence."""
    kinds = table["evidence"].to_numpy()
    return {kind: int((kinds == kind).sum()) for kind in (INCLUDED, EXCLUDED, UNDECIDED, FIXED)}


def kinds_sentence(table: "pd.DataFrame", what: str) -> str:
    """Say in short how many lines the data include, exclude and leave undecided."""
    number = count_kinds(table)
    known = f", {number[FIXED]} fixed beforehand" if number[FIXED] else ""
    return (
        f"{len(table)} possible {what}: {number[INCLUDED]} found (Bayes factor of at least {STRONG:g}), "
        f"{number[EXCLUDED]} excluded (at most 1/{STRONG:g}), {number[UNDECIDED]} undecided{known}."
    )


def fixed(values, digits: int = 3) -> list[str]:
    """Write numbers with a number of digits; a dash where there is none."""
    return [f"{v:,.{digits}f}" if np.isfinite(v) else "-" for v in np.asarray(values, float)]


def interval(table: "pd.DataFrame", low: str = "hdi_low", high: str = "hdi_high") -> list[str]:
    """Write intervals."""
    return [
        f"{a} to {b}" if a != "-" else "-"
        for a, b in zip(fixed(table[low]), fixed(table[high]), strict=True)
    ]


def interval_title(table: "pd.DataFrame") -> str:
    """Title of a column of intervals."""
    return f"{100 * table.attrs['ci_prob']:g} % interval"


def ends(table: "pd.DataFrame", mark: str = "--") -> list[str]:
    """Write both ends of each line."""
    return [f"{a} {mark} {b}" for a, b in zip(table["source"], table["target"], strict=True)]


def findings(result: Result, parts: tuple[Part, ...]) -> Iterator[Finding]:
    """Make the tables of all parts that apply to a result."""
    for part in parts:
        if part.applies(result):
            yield Finding(part, part.table(result), result.sizes["chain"])
