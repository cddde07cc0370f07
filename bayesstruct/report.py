"""What a run found, as files: draws, edge table, graph, picture, and a page to read."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.report_correlations import CorrelationCheck, check_correlations

if TYPE_CHECKING:
    import pandas as pd
    import rich.table

    from bayesstruct.cli_folder import Job
    from bayesstruct.diagnostics.convergence import Check

__all__ = ["Summary", "console_table", "write"]

STRONG = 10  # Bayes factor from which an edge counts as found, or below 1 / STRONG as excluded
LARGEST = 1_000_000  # no Bayes factor is written beyond it: nothing depends on the rest
SHOWN = 20  # edges in the report
_PAPERS = {
    "spike_slab": "Wang, H. (2015). Scaling it up: stochastic search structure learning in "
    "graphical models. *Bayesian Analysis* 10(2), 351-377.",
    "laplace": "Wang, H. (2012). Bayesian graphical lasso models and efficient posterior "
    "computation. *Bayesian Analysis* 7(4), 867-886.",
}
_SACHS = (
    "Sachs, K., Perez, O., Pe'er, D., Lauffenburger, D. A. and Nolan, G. P. (2005). Causal "
    "protein-signaling networks derived from multiparameter single-cell data. *Science* 308, 523-529."
)


@dataclass(frozen=True)
class Summary:
    """What is said about a run.

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

    @property
    def converged(self) -> bool:
        """Whether every quantity has."""
        return self.check.ok

    @property
    def headlines(self) -> list[str]:
        """The result in a few lines."""
        fixed = f", {self.fixed} fixed beforehand" if self.fixed else ""
        return [
            f"{len(self.edges)} possible edges: {self.found} found (Bayes factor above {STRONG}), "
            f"{self.excluded} excluded (below 1/{STRONG}), {self.undecided} undecided{fixed}.",
            repr(self.check).splitlines()[0],
            str(self.correlations),
        ]


def write(folder: Path, job: "Job", idata, *, partial: bool = False) -> Summary:
    """Write all results of a run.

    Parameters
    ----------
    folder : Path
    job : Job
        What was asked for.
    idata : DataTree
        What was drawn.
    partial : bool
        The run was interrupted.

    Returns
    -------
    Summary
    """
    from bayesstruct.structure import median_graph, write_graphml

    idata.to_netcdf(folder / "posterior.nc", engine="h5netcdf")
    summary = _summarise(job, idata)
    summary.edges.to_csv(folder / "edges.csv", index=False)
    graph = median_graph(idata)
    write_graphml(graph, folder / "graph.graphml")
    _draw(graph, folder / "graph.png")
    page = "\n".join(_page(folder, job, summary, partial)) + "\n"
    (folder / "report.md").write_text(page, encoding="utf-8")
    return summary


def console_table(summary: Summary) -> "rich.table.Table":
    """Return the strongest edges for a terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table("edge", "probability", "Bayes factor", "weight", "94 % interval")
    for row in _rows(summary.edges, 10):
        table.add_row(*map(Text, row))
    return table


def _summarise(job, idata) -> Summary:
    from bayesstruct.diagnostics import check
    from bayesstruct.structure import edge_table

    edges = edge_table(idata)
    factor = edges["bayes_factor"].to_numpy()
    found, excluded = int((factor > STRONG).sum()), int((factor < 1 / STRONG).sum())
    fixed = int(np.isnan(factor).sum())
    weights = idata["posterior"]["weight"].values
    return Summary(
        edges=edges,
        found=found,
        excluded=excluded,
        undecided=len(edges) - found - excluded - fixed,
        fixed=fixed,
        prior=idata["constant_data"]["edge_prior"].values,
        check=check(idata),
        correlations=check_correlations(
            job.frame, weights.reshape(-1, weights.shape[-1]), seed=job.options["seed"]
        ),
        sizes=dict(idata["posterior"]["edge"].sizes),
    )


def _draw(graph, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from bayesstruct.plots import plot_graph

    side = float(np.clip(4 + 0.15 * graph.number_of_nodes(), 6, 16))
    figure = Figure(figsize=(side, side))  # no pyplot: nothing is kept, no display is needed
    FigureCanvasAgg(figure)
    plot_graph(graph, ax=figure.add_subplot())
    figure.savefig(path, dpi=130, bbox_inches="tight")


def _page(folder, job, summary, partial) -> list[str]:
    return [
        "# Structure of " + Path(job.options["source"]).name,
        "",
        *(["**Interrupted before its end: the numbers rest on fewer draws.**", ""] * partial),
        *_asked(job, summary),
        *_results(summary),
        *_trust(job, summary),
        *_again(folder, job),
    ]


def _asked(job, summary) -> list[str]:
    options, (n, p) = job.options, job.frame.shape
    missing = int(job.frame.isna().to_numpy().sum())
    cells = f"{missing:,} missing cells ({missing / (n * p):.1%}), imputed inside the model"
    low, high = summary.prior.min(), summary.prior.max()
    implied = f"{low:.3f}" if high - low < 5e-4 else f"{low:.3f} to {high:.3f}"
    nominal = options["edge_probability"] or 0.5
    spike = f"nominal edge probability {nominal:g}, " if options["prior"] == "spike_slab" else ""
    return [
        "## What was asked",
        "",
        f"- Table: {options['source']}, {n:,} observations of {p} variables"
        f"{', logarithms taken' if options['log'] else ''}; "
        f"{cells if missing else 'no missing cells'}.",
        f"- Model: `{options['model']}`: which variables depend on each other, given all others?",
        f"- Prior: `{options['prior']}`, {spike}which leaves each edge a prior probability of "
        f"{implied}. Bayes factors are relative to it.",
        f"- Draws: {summary.sizes['chain']} chains of {summary.sizes['draw']:,}, after "
        f"{options['tune']:,} warm-up iterations each.",
        *(f"- Note: {note}" for note in options["notes"]),
        "",
    ]


def _results(summary) -> list[str]:
    rows = _rows(summary.edges, SHOWN)
    return [
        "## What was found",
        "",
        summary.headlines[0] + " *Undecided* is not *absent*: the data do not say.",
        "",
        "![Network](graph.png)",
        "",
        *_markdown(["edge", "probability", "Bayes factor", "weight", "94 % interval"], rows),
        "",
        f"The {len(rows)} most probable of {len(summary.edges)} possible edges; all are in "
        "`edges.csv`. *Probability*: that the two variables are connected. *Bayes factor*: how much "
        "the data changed the odds of that; `>` and `<` mark bounds: the draws cannot tell the "
        "probability from 1 (from 0). *Weight*: partial correlation, posterior mean.",
        "",
    ]


def _trust(job, summary) -> list[str]:
    check = summary.check
    rows = [
        [row.quantity, _number(row.r_hat, 3), _number(row.ess_bulk), _number(row.ess_tail)]
        + [row.verdict]
        for row in check.rows
    ]
    return [
        "## Can it be trusted?",
        "",
        summary.headlines[1],
        "",
        *_markdown(["quantity", "r_hat", "ess (bulk)", "ess (tail)", "verdict"], rows),
        "",
        f"Posterior predictive check: {summary.correlations}",
        *(
            f"- {a} and {b}: observed {observed:.2f}, predicted {low:.2f} to {high:.2f}"
            for a, b, observed, low, high in summary.correlations.outside[:5]
        ),
        "",
    ]


def _again(folder, job) -> list[str]:
    options = job.options
    versions = ", ".join(f"{name} {number}" for name, number in options["versions"].items())
    papers = [_PAPERS[options["prior"]]] + [_SACHS] * options["source"].startswith("sachs (")
    return [
        "## Again, and further",
        "",
        "```bash",
        f"{_command(options)} --out again/   # the same draws",
        f"bayesstruct learn --resume {folder}   # after an interruption, or to write this page anew",
        "```",
        "",
        f"Seed {options['seed']}; {versions}.",
        "",
        'In Python: `xarray.open_datatree("posterior.nc", engine="h5netcdf")`, then '
        "`bayesstruct.edge_table(...)` and all other functions.",
        "",
        "Please cite bayesstruct with its version, PyMC, and",
        "",
        *(f"- {paper}" for paper in papers),
    ]


def _command(options) -> str:
    import shlex

    words = ["bayesstruct", "learn"]
    bundled = options["source"].startswith("sachs (")
    words += [] if bundled else [shlex.quote(options["source"])]
    names = ("model", "prior", "draws", "tune", "chains", "seed", "edge_probability", "rate")
    for name in names:
        if options[name] is not None:
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    if options["log"] != bundled:
        words.append("--log" if options["log"] else "--no-log")
    if options["encoding"] != "utf-8":
        words += ["--encoding", shlex.quote(options["encoding"])]
    return " ".join(words)


def _rows(edges, count: int) -> list[list[str]]:
    bounds = set(edges.attrs["bayes_factor_bounds"])
    return [
        [
            f"{row.source} -- {row.target}",
            f"{row.probability:.3f}",
            _factor(row.bayes_factor, row.Index in bounds),
            f"{row.mean:.3f}",
            f"{row.hdi_low:.3f} to {row.hdi_high:.3f}",
        ]
        for row in edges.head(count).itertuples()
    ]


def _factor(value: float, bound: bool) -> str:
    if np.isnan(value):
        return "not tested"
    if value > LARGEST:
        return f"> {LARGEST:,}"
    text = f"{value:,.0f}" if value >= STRONG else f"{value:.2g}"
    return f"{'>' if value > 1 else '<'} {text}" if bound else text


def _number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}" if np.isfinite(value) else "-"


def _markdown(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines]
