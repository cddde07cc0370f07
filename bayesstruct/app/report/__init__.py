"""Files with the results of a run: draws, tables, pictures, and a report to read."""

import contextlib
import warnings

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesstruct.app.report.fit import FIT_FILE, Fit, check_fit
from bayesstruct.app.report.graphs import GRAPH_PARTS, found_graph
from bayesstruct.app.report.latent import LATENT_PARTS, SPLITS
from bayesstruct.app.report.models import describe
from bayesstruct.app.report.nodes import NODE_PARTS
from bayesstruct.app.report.page import Page
from bayesstruct.app.report.parts import Drawing, Finding, Result, findings
from bayesstruct.app.report.text import to_html, to_markdown

if TYPE_CHECKING:
    import pandas as pd
    import rich.table

    from bayesstruct.app.folder import Job
    from bayesstruct.modes.check import Check

__all__ = ["PARTS", "Summary", "console_table", "names_of_files", "write"]

#: All parts that a report can have, in the order in which they are written; the first one is the main one.
PARTS = (SPLITS, *GRAPH_PARTS, *NODE_PARTS, *LATENT_PARTS)
_POSTERIOR, _MARKDOWN, _HTML, _GRAPH = "posterior.nc", "report.md", "report.html", "graph.graphml"


@dataclass(frozen=True)
class Summary:
    """Summary of a run.

    Attributes
    ----------
    headlines : list of str
        The result in a few lines.
    findings : list of Finding
        Parts of the report with their tables, the main one first.
    check : Check
        Convergence.
    fit : Fit
        Posterior predictive check.
    files : list of str
        Names of the files that were written.
    """

    headlines: list[str]
    findings: list[Finding]
    check: "Check"
    fit: Fit
    files: list[str]

    @property
    def converged(self) -> bool:
        """Whether every quantity has converged."""
        return self.check.ok


def names_of_files() -> set[str]:
    """Return the names of all files that `write` may write, for any model."""
    drawings = {d.file for part in PARTS for d in part.drawings}
    tables = {part.file for part in PARTS}
    return tables | drawings | {_POSTERIOR, _GRAPH, FIT_FILE, _MARKDOWN, _HTML}


def write(folder: Path, job: "Job", idata, model: Any = None, *, partial: bool = False) -> Summary:
    """Write all results of a run.

    Parameters
    ----------
    folder : Path
    job : Job
        Settings and table.
    idata : DataTree
        Draws.
    model : pymc.Model, optional
        For posterior predictive checks; without it those that need it are left out.
    partial : bool
        Whether the run was interrupted.

    Returns
    -------
    Summary
    """
    from bayesstruct.modes.check import check_and_read

    idata.to_netcdf(folder / _POSTERIOR, engine="h5netcdf")
    result = Result(idata, job, model, *check_and_read(idata))
    found = [*findings(result, PARTS)]
    for finding in found:
        finding.table.to_csv(folder / finding.part.file, index=finding.part.index)
    files = [_POSTERIOR, *(finding.part.file for finding in found), *_write_graph(folder, result)]
    fit = check_fit(result)
    pictures = {f.part.file: _draw_all(folder, result, f.table, f.part.drawings) for f in found}
    pictures[""] = _draw_all(folder, result, None, fit.drawings)
    page = Page(folder, result, describe(result), found, fit, pictures, partial)
    blocks = page.blocks()
    (folder / _MARKDOWN).write_text(to_markdown(blocks), encoding="utf-8")
    (folder / _HTML).write_text(to_html(blocks, page.title), encoding="utf-8")
    files += [drawing.file for drawn in pictures.values() for drawing in drawn]
    return Summary(page.headlines, found, result.check, fit, [*files, _MARKDOWN, _HTML])


def console_table(summary: Summary) -> "rich.table.Table":
    """Return the first rows of the main table for a terminal."""
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    if not summary.findings:
        return Table()
    # Of all rows of the page: some tables are cut only once their rows are put together.
    header, rows, _ = summary.findings[0].rows()
    table = Table(*map(escape, header))
    for row in rows[:10]:
        table.add_row(*map(Text, row))
    return table


def _write_graph(folder: Path, result: Result) -> list[str]:
    """Write the graph of what was found, if the result has one."""
    from bayesstruct.graphs.export import write_graphml

    if not {"edge", "arc"} & result.drawn:
        return []
    write_graphml(found_graph(result), folder / _GRAPH)
    return [_GRAPH]


def _draw_all(
    folder: Path, result: Result, table: "pd.DataFrame | None", drawings: tuple[Drawing, ...]
) -> list[Drawing]:
    """Draw pictures of a part, and return those that were drawn."""
    wanted = [d for d in drawings if d.wanted(result, table)]
    for drawing in wanted:
        _draw(folder / drawing.file, result, table, drawing)
    return wanted


def _draw(path: Path, result: Result, table, drawing: Drawing) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # no pyplot: nothing is kept, no display is needed
    figure = Figure(figsize=drawing.size(result, table), layout="constrained")
    FigureCanvasAgg(figure)
    with _without_remarks():
        drawing.draw(result, table, figure.add_subplot())
        if not result.check.ok:
            figure.text(
                0.5, -0.01, _UNSURE, ha="center", va="top", fontsize="small", color="#8F3B00"
            )
        figure.savefig(path, dpi=130, bbox_inches="tight")


_UNSURE = "Not all quantities have converged, or there are too few draws to tell: see the report."


@contextlib.contextmanager
def _without_remarks():
    """Leave out remarks of drawing libraries on layouts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        yield
