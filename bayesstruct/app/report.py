"""Files with the results of a run: draws, edge table, graph, figure, and a page to read."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.app.report_correlations import CorrelationCheck, check_correlations
from bayesstruct.app.report_page import edge_header, edge_rows, page
from bayesstruct.graphs.evidence import EXCLUDED, FIXED, INCLUDED, STRONG, UNDECIDED, evidence
from bayesstruct.graphs.summaries import bayes_factor_texts

if TYPE_CHECKING:
    import pandas as pd
    import rich.table

    from bayesstruct.app.folder import Job
    from bayesstruct.modes.check import Check

__all__ = ["Summary", "console_table", "write"]


@dataclass(frozen=True)
class Summary:
    """Summary of a run.

    Attributes
    ----------
    edges : DataFrame
        As of `bayesstruct.edge_table`.
    found, excluded, undecided, fixed : int
        Number of edges by their Bayes factors; `fixed` ones were required or forbidden.
    prior : ndarray
        Prior probability of each edge that the model implies.
    check : Check
        Convergence.
    correlations : CorrelationCheck
    sizes : dict
        Chains and draws.
    """

    edges: "pd.DataFrame"
    found: int
    excluded: int
    undecided: int
    fixed: int
    prior: np.ndarray
    check: "Check"
    correlations: CorrelationCheck
    sizes: dict[str, int]
    files: tuple[str, ...] = (
        "posterior.nc",
        "edges.csv",
        "graph.graphml",
        "graph.png",
        "report.md",
    )

    @property
    def converged(self) -> bool:
        """Whether every quantity has converged."""
        return self.check.ok

    @property
    def headlines(self) -> list[str]:
        """The result in a few lines."""
        fixed = f", {self.fixed} fixed beforehand" if self.fixed else ""
        return [
            f"{len(self.edges)} possible edges: {self.found} found (Bayes factor of at least {STRONG:g}), "
            f"{self.excluded} excluded (at most 1/{STRONG:g}), {self.undecided} undecided{fixed}.",
            repr(self.check).splitlines()[0],
            str(self.correlations),
        ]


@dataclass(frozen=True)
class MainTable:
    """Main table of a run of a model for which there is no page.

    Attributes
    ----------
    table : DataFrame
        As of `bayesstruct.summary`.
    check : Check
        Convergence.
    files : tuple of str
        Names of what was written.
    """

    table: "pd.DataFrame"
    check: "Check"
    files: tuple[str, ...] = ("posterior.nc", "summary.csv")

    @property
    def converged(self) -> bool:
        """Whether every quantity has converged."""
        return self.check.ok

    @property
    def headlines(self) -> list[str]:
        """The result in a few lines."""
        return [repr(self.check).splitlines()[0]]


def write(
    folder: Path, job: "Job", idata, model=None, *, partial: bool = False
) -> Summary | MainTable:
    """Write all results of a run.

    Parameters
    ----------
    folder : Path
    job : Job
        Settings and table.
    idata : DataTree
        Draws.
    model : Model, optional
        Of the run.
    partial : bool
        Whether the run was interrupted.

    Returns
    -------
    Summary or MainTable
    """
    idata.to_netcdf(folder / "posterior.nc", engine="h5netcdf")
    if not _has_page(job, idata):
        return _write_table(folder, idata)
    from bayesstruct.graphs.export import write_graphml
    from bayesstruct.graphs.graphs import median_graph

    summary = _summarise(job, idata)
    _marked(summary.edges).to_csv(folder / "edges.csv", index=False)
    graph = median_graph(idata)
    write_graphml(graph, folder / "graph.graphml")
    _draw(graph, folder / "graph.png")
    (folder / "report.md").write_text(page(folder, job, summary, partial), encoding="utf-8")
    return summary


def _has_page(job, idata) -> bool:
    """Whether the run is one of rows of normal columns with weights, of which the page is made."""
    options = job.options
    other = {"marginals", "covariates", "row_counts"} & {*options["model_options"]}
    rows = options["model"] == "gaussian_graphical" and not options["cov"]
    return rows and not other and "weight" in idata["posterior"]


def _write_table(folder: Path, idata) -> MainTable:
    from bayesstruct.modes.check import check
    from bayesstruct.modes.summary import summary

    table = summary(idata).table
    table.to_csv(folder / "summary.csv", index=table.index.name is not None)
    return MainTable(table, check(idata))


def _marked(edges: "pd.DataFrame") -> "pd.DataFrame":
    """Add the Bayes factors as they are shown, with the marks of bounds."""
    out = edges.copy()
    at = list(out).index("bayes_factor") + 1
    out.insert(at, "bayes_factor_shown", bayes_factor_texts(edges))
    return out


def console_table(summary: Summary | MainTable) -> "rich.table.Table":
    """Return the strongest edges, or the first lines of the main table, for a terminal."""
    from rich.table import Table
    from rich.text import Text

    if isinstance(summary, MainTable):
        head = summary.table.head(10)
        table = Table(*map(str, head.columns))
        for row in head.itertuples(index=False):
            cells = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row]
            table.add_row(*map(Text, cells))
        return table
    table = Table(*edge_header(summary.edges))
    for row in edge_rows(summary.edges, 10):
        table.add_row(*map(Text, row))
    return table


def _summarise(job, idata) -> Summary:
    from bayesstruct.graphs.records import EdgePrior
    from bayesstruct.graphs.tables.edges import edge_table
    from bayesstruct.modes.check import check

    edges = edge_table(idata)
    kinds = evidence(edges["bayes_factor"])
    found, excluded, undecided, fixed = (
        int((kinds == kind).sum()) for kind in (INCLUDED, EXCLUDED, UNDECIDED, FIXED)
    )
    weights = idata["posterior"]["weight"].values
    return Summary(
        edges=edges,
        found=found,
        excluded=excluded,
        undecided=undecided,
        fixed=fixed,
        prior=EdgePrior.read(idata).prior,
        check=check(idata),
        correlations=check_correlations(
            job.frame, weights.reshape(-1, weights.shape[-1]), random_seed=job.options["seed"]
        ),
        sizes=dict(idata["posterior"]["edge"].sizes),
    )


def _draw(graph, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from bayesstruct.graphs.plots.network import plot_graph
    from bayesstruct.graphs.plots.nodes import network_size

    # no pyplot: nothing is kept, no display is needed
    figure = Figure(figsize=network_size(graph.nodes), layout="constrained")
    FigureCanvasAgg(figure)
    plot_graph(graph, ax=figure.add_subplot())
    figure.savefig(path, dpi=130, bbox_inches="tight")
