"""How often a graph is estimated from resampled rows, beside posterior probabilities."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.graphs.comparisons.sensitivity import evidence_table
from bayesstruct.graphs.evidence import STRONG
from bayesstruct.graphs.posteriors.reading import read_graphs
from bayesstruct.graphs.summaries import bayes_factor_text
from bayesstruct.graphs.truth import positions

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BootstrapSupport", "support_of"]

_ROWS = 20  # of the table that are printed
_SUPPORT = (
    "Support is the share of bootstrap samples in whose estimate a line is: how stable the estimate is when other rows are drawn. It is not the "
    "probability of the line, which takes a prior and all graphs into account."
)
_DIRECTIONS = "An arc that equivalent graphs reverse counts half in each direction, since a score without interventions does not tell them apart."


@dataclass(frozen=True, eq=False)
class BootstrapSupport:
    """Support of the lines of an estimated graph; see `bayesstruct.bootstrap_support`.

    Attributes
    ----------
    line : str
        "edge" or "arc".
    n_bootstrap : int
        Number of bootstrap samples.
    table : pandas.DataFrame
        One row for each edge (arc: from ``source`` to ``target``), the highest support first: ``estimate``, whether the estimate from all
        rows has it; ``support``, the share of bootstrap samples whose estimate has it. With a posterior also ``probability``, ``bayes_factor``, ``bound``
        (whether the Bayes factor is no more than a bound) and ``evidence``.
    notes : tuple of str
        Remarks in words.
    """

    line: str
    n_bootstrap: int
    table: "pd.DataFrame"
    notes: tuple[str, ...]

    def to_frame(self) -> "pd.DataFrame":
        """Return the table."""
        return self.table

    def shown(self) -> "pd.DataFrame":
        """Return the table for readers: Bayes factors as text, in which bounds are marked."""
        if "bound" not in self.table:
            return self.table
        columns = self.table["bayes_factor"], self.table["bound"]
        texts = [bayes_factor_text(v, bool(b)) for v, b in zip(*columns, strict=True)]
        return self.table.drop(columns="bound").assign(bayes_factor=texts)

    def __repr__(self):
        import pandas as pd

        options: list[Any] = ["display.max_columns", None, "display.width", 120]
        with pd.option_context(*options, "display.precision", 3):
            table = self.shown().head(_ROWS).to_string(index=False)
        return "\n\n".join([self._headline(), table, *self.notes])

    def _repr_html_(self):
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        table = self.shown().head(_ROWS).to_html(index=False, float_format="{:.3g}".format)
        return f"<p><b>{escape(self._headline())}</b></p>{table}{notes}"

    def _headline(self) -> str:
        kept = self.table[self.table["estimate"]]
        lowest = f", with support from {kept['support'].min():.2f}" if len(kept) else ""
        return (
            f"The estimate has {len(kept)} of {len(self.table)} {self.line}s{lowest}; "
            f"{self.n_bootstrap} bootstrap samples."
        )


def support_of(
    names: list[str],
    estimate: np.ndarray,
    samples: np.ndarray,
    *,
    directed: bool,
    halves: bool,
    posterior: Any = None,
) -> BootstrapSupport:
    """Count how often estimates from bootstrap samples have each line.

    Parameters
    ----------
    names : list of str, length p
    estimate : (p, p) ndarray of bool
        Adjacency of the graph from all rows; rows are parents.
    samples : (n_bootstrap, p, p) ndarray of bool
        Those from bootstrap samples.
    directed : bool
        Whether lines are arcs.
    halves : bool
        Whether graphs of `samples` have both directions of an arc that may be reversed, each of which counts half.
    posterior : xarray.DataTree, optional
        Result on the same columns.

    Returns
    -------
    BootstrapSupport

    Raises
    ------
    ValueError
        If the posterior is of other variables or another kind of graph.
    """
    import pandas as pd

    p, columns = len(names), np.array(names, dtype=object)
    one, other = np.nonzero(~np.eye(p, dtype=bool)) if directed else np.triu_indices(p, 1)
    share = samples.mean(axis=0)
    if halves:
        share = share - 0.5 * (samples & samples.swapaxes(1, 2)).mean(axis=0)
    table = pd.DataFrame(
        {
            "source": columns[one],
            "target": columns[other],
            "estimate": estimate[one, other],
            "support": share[one, other],
        }
    )
    if posterior is not None:
        table = _beside(table, posterior, names, directed)
    order = np.lexsort((~table["estimate"], -table["support"]))
    return BootstrapSupport(
        line="arc" if directed else "edge",
        n_bootstrap=len(samples),
        table=table.iloc[order].reset_index(drop=True),
        notes=(_SUPPORT, *([_DIRECTIONS] if halves else [])),
    )


def _beside(table: "pd.DataFrame", posterior, names: list[str], directed: bool) -> "pd.DataFrame":
    """Add what a posterior says of each line."""
    graphs = read_graphs(posterior)
    if graphs.directed != directed:
        kinds = ("arcs", "edges") if directed else ("edges", "arcs")
        raise ValueError(
            f"the estimate has {kinds[0]} and the posterior {kinds[1]}: sample the same model"
        )
    positions(names, graphs.variables)  # raises where they differ
    known = evidence_table(graphs, STRONG)
    columns = ["probability", "bayes_factor", "bound", "evidence"]
    if not directed:  # the columns of the result may be in another order
        turned = known.rename(columns={"source": "target", "target": "source"})
        import pandas as pd

        known = pd.concat([known, turned], ignore_index=True)
    return table.merge(known[["source", "target", *columns]], how="left", on=["source", "target"])
