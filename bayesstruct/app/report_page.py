"""The page `report.md`: settings, results, convergence and fit, and how to repeat or continue the run."""

import shlex

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.app.values import command_words
from bayesstruct.data.errors import count
from bayesstruct.graphs.posteriors.estimators import LARGEST
from bayesstruct.graphs.summaries import bayes_factor_texts

if TYPE_CHECKING:
    import pandas as pd

    from bayesstruct.app.folder import Job
    from bayesstruct.app.report import Summary

__all__ = ["edge_header", "edge_rows", "page"]

SHOWN = 20  # edges in the report
_NOT_TESTED = (
    "*not tested* (`bayes_factor` is empty in `edges.csv`): the edge was required or forbidden, so the data could not "
    "change its odds. "
)
_PAPERS = {
    "spike_slab": "Wang, H. (2015). Scaling it up: stochastic search structure learning in "
    "graphical models. *Bayesian Analysis* 10(2), 351-377.",
    "laplace": "Wang, H. (2012). Bayesian graphical lasso models and efficient posterior "
    "computation. *Bayesian Analysis* 7(4), 867-886.",
    "g_wishart": "van den Boom, W., Beskos, A. and De Iorio, M. (2022). The G-Wishart weighted proposal algorithm: efficient "
    "posterior computation for Gaussian graphical models. *Journal of Computational and Graphical Statistics* 31, 1215-1224.",
    "horseshoe": "Li, Y., Craig, B. A. and Bhadra, A. (2019). The graphical horseshoe estimator for inverse "
    "covariance matrices. *Journal of Computational and Graphical Statistics* 28(3), 747-757.",
}
_SACHS = (
    "Sachs, K., Perez, O., Pe'er, D., Lauffenburger, D. A. and Nolan, G. P. (2005). Causal "
    "protein-signaling networks derived from multiparameter single-cell data. *Science* 308, 523-529."
)


def page(folder: Path, job: "Job", summary: "Summary", partial: bool) -> str:
    """Return the report on a run as Markdown."""
    lines = [
        "# Structure of " + Path(job.options["source"]).name,
        "",
        *(["**Interrupted before its end: the numbers are based on fewer draws.**", ""] * partial),
        *_asked(job, summary),
        *_results(summary),
        *_trust(summary),
        *_again(folder, job),
    ]
    return "\n".join([*lines, ""])


def _asked(job, summary) -> list[str]:
    options, (n, p) = job.options, job.frame.shape
    missing = int(job.frame.isna().to_numpy().sum())
    cells = f"{count(missing, 'missing value')} ({missing / (n * p):.1%}), imputed inside the model"
    low, high = summary.prior.min(), summary.prior.max()
    implied = f"{low:.3f}" if high - low < 5e-4 else f"{low:.3f} to {high:.3f}"
    nominal = options["model_options"].get("edge_probability", 0.5)
    graphs = options["model_options"]["prior"] in ("spike_slab", "g_wishart")
    spike = f"nominal edge probability {nominal}, " if graphs else ""
    return [
        "## What was asked",
        "",
        f"- Table: {options['source']}, {count(n, 'observation')} of {p} variables"
        f"{', logarithms taken' if options['log'] else ''}; "
        f"{cells if missing else 'no missing values'}.",
        f"- Model: `{options['model']}`: which variables depend on each other, given all others?",
        f"- Prior: `{options['model_options']['prior']}`, {spike}which leaves each edge a prior probability of "
        f"{implied}. Bayes factors are relative to it.",
        f"- Draws: {count(summary.sizes['chain'], 'chain')} of {summary.sizes['draw']:,}, after "
        f"{count(options['tune'], 'warm-up iteration')} each.",
        *(f"- Note: {note}" for note in options["notes"]),
        "",
    ]


def _results(summary) -> list[str]:
    rows = edge_rows(summary.edges, SHOWN)
    return [
        "## What was found",
        "",
        summary.headlines[0] + " *Undecided* does not mean *absent*: the data do not decide.",
        "",
        "![Network](graph.png)",
        "",
        *_markdown(edge_header(summary.edges), rows),
        "",
        f"The {len(rows)} most probable of {len(summary.edges)} possible edges; all are in "
        "`edges.csv`. *Probability*: that the two variables are connected. *Bayes factor*: how much "
        "the data changed the odds of that; `>` and `<` mark bounds: the draws cannot tell the "
        f"probability from 1 (from 0), or the value is beyond 1e{LARGEST}, where it depends on the shape "
        "of the prior; `bayes_factor_shown` in `edges.csv` has the marks, `bayes_factor` the numbers. "
        f"{_NOT_TESTED if summary.fixed else ''}*Weight*: partial correlation, posterior "
        "mean.",
        "",
    ]


def _trust(summary) -> list[str]:
    check = summary.check
    rows = [
        [r.quantity, _number(r.r_hat, 3), _number(r.ess_bulk), _number(r.ess_tail), r.verdict]
        for r in check.rows
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
    papers = [_PAPERS[options["model_options"]["prior"]]] + [_SACHS] * options["source"].startswith(
        "sachs ("
    )
    return [
        "## Repeat and continue",
        "",
        "```bash",
        f"{_command(options)} --out again/   # the same draws",
        f"bayesstruct learn --resume {folder}   # after an interruption, or to write this page again",
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
    return shlex.join(command_words(options))


def edge_header(edges: "pd.DataFrame") -> list[str]:
    """Return the names of the columns of `edge_rows`."""
    interval = f"{100 * edges.attrs['ci_prob']:g} % interval"
    return ["edge", "probability", "Bayes factor", "weight", interval]


def edge_rows(edges: "pd.DataFrame", shown: int) -> list[list[str]]:
    """Return the first rows of an edge table as text."""
    top = edges.head(shown)
    return [
        [
            f"{row.source} -- {row.target}",
            f"{row.probability:.3f}",
            factor,
            f"{row.mean:.3f}",
            f"{row.hdi_low:.3f} to {row.hdi_high:.3f}",
        ]
        for row, factor in zip(top.itertuples(), bayes_factor_texts(top), strict=True)
    ]


def _number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}" if np.isfinite(value) else "-"


def _markdown(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines]
