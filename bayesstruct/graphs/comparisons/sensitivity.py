"""Evidence for each line of a graph under several settings of a prior, and what depends on the setting."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.graphs.evidence import EXCLUDED, INCLUDED, UNDECIDED, evidence
from bayesstruct.graphs.posteriors.reading import read
from bayesstruct.graphs.summaries import bayes_factor_text
from bayesstruct.graphs.tables.arcs import arc_table
from bayesstruct.graphs.tables.edges import edge_table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesstruct.graphs.posteriors.base import GraphPosterior

__all__ = ["Sensitivity", "evidence_table", "sensitivity_of"]

_ROWS = 20  # of a table that is printed
_ORDER = (EXCLUDED, UNDECIDED, INCLUDED)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Evidence for each edge or arc under several settings; see `bayesstruct.sensitivity`.

    Attributes
    ----------
    line : str
        "edge" or "arc".
    options : tuple of str
        Options that differ between the settings.
    threshold : float
        Bayes factor from which an edge is included; it is excluded at the inverse.
    random_seed : int or sequence of int
        Of every setting.
    settings : pandas.DataFrame
        One row for each setting, numbered from 0: the options, how many edges are ``included``, ``undecided`` and
        ``excluded``, and whether the chains have ``converged`` (`bayesstruct.check`).
    table : pandas.DataFrame
        One row for each setting and edge: ``setting`` (its number), the options, ``source``, ``target``,
        ``probability``, ``prior_probability`` (that the setting implies), ``bayes_factor``, ``bound`` (whether it is no more than a bound),
        ``evidence`` ("included", "excluded", "undecided", or "fixed" where nothing was tested), ``mean`` (of the weight,
        if the model has weights), ``ess`` and ``r_hat``.
    edges : pandas.DataFrame
        One row for each edge: ``source``, ``target``, ``lowest_probability``, ``highest_probability``,
        ``lowest_factor``, ``highest_factor`` (of the Bayes factors), ``lowest_at``, ``highest_at`` (numbers of their settings; -1 where
        nothing was tested), ``evidence``
        (all conclusions that occur, as in "undecided or included"), ``changes``, whether these are several, and ``clear``,
        whether they are and the logarithms of the two Bayes factors differ by more than twice their Monte Carlo error. Those that
        change come first; then by the highest Bayes factor.
    notes : tuple of str
        Remarks in words.
    """

    line: str
    options: tuple[str, ...]
    threshold: float
    random_seed: int | Sequence[int]
    settings: "pd.DataFrame"
    table: "pd.DataFrame"
    edges: "pd.DataFrame"
    notes: tuple[str, ...]

    def to_frame(self) -> "pd.DataFrame":
        """Return the table with one row for each setting and edge."""
        return self.table

    def __repr__(self):
        import pandas as pd

        with pd.option_context("display.max_columns", None, "display.width", 120):
            tables = [self.shown(_ROWS).to_string(index=False), self.settings.to_string()]
        return "\n\n".join([self._headline(), *self._cut(), *tables, *self.notes])

    def _repr_html_(self):
        texts = [f"<p>{escape(text)}</p>" for text in self._cut()]
        notes = [f"<p>{escape(text)}</p>" for text in self.notes]
        tables = [self.shown(_ROWS).to_html(index=False), self.settings.to_html()]
        return "".join([f"<p><b>{escape(self._headline())}</b></p>", *texts, *tables, *notes])

    def shown(self, rows: int | None = None) -> "pd.DataFrame":
        """Return the table of edges, or its first rows, for readers: ranges as text, in which bounds are marked."""
        import pandas as pd

        bound = self.table.set_index(["setting", "source", "target"])["bound"]
        lines = []
        for row in self.edges.head(rows or len(self.edges)).itertuples():
            ends = row.source, row.target
            factors = ["", ""]
            if row.lowest_at >= 0:
                factors = [
                    bayes_factor_text(row.lowest_factor, bool(bound[row.lowest_at, *ends])),
                    bayes_factor_text(row.highest_factor, bool(bound[row.highest_at, *ends])),
                ]
            within = " (within Monte Carlo error)" if row.changes and not row.clear else ""
            probability = f"{row.lowest_probability:.2f} to {row.highest_probability:.2f}"
            lines.append([*ends, probability, *factors, row.evidence + within])
        columns = [
            "source",
            "target",
            "probability",
            "lowest Bayes factor",
            "highest Bayes factor",
            "evidence",
        ]
        return pd.DataFrame(lines, columns=columns)

    def _headline(self) -> str:
        changing, tested = (
            int(self.edges["changes"].sum()),
            int((self.edges["lowest_at"] >= 0).sum()),
        )
        clear = int(self.edges["clear"].sum())
        error = f", on {clear} beyond Monte Carlo error" if clear < changing else ""
        names = " and ".join(", ".join(self.options).rsplit(", ", 1))
        return (
            f"The conclusion (included, excluded, undecided) on {changing} of {tested} {self.line}s depends on {names}{error} "
            f"({len(self.settings)} settings, Bayes factor of {self.threshold:g})."
        )

    def _cut(self) -> list[str]:
        more = len(self.edges) - _ROWS
        return [f"The first {_ROWS} of {len(self.edges)} {self.line}s:"] if more > 0 else []


def evidence_table(idata: "xr.DataTree | GraphPosterior", threshold: float) -> "pd.DataFrame":
    """Return what one result says of each line: its edge or arc table, with prior probabilities, evidence and bounds.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a bayesstruct graph model.
    threshold : float, above 1
        As of `evidence`.

    Returns
    -------
    pandas.DataFrame
        Columns of `Sensitivity.table` that are not of the setting; ``attrs["notes"]`` as of the edge table.
    """
    posterior = read(idata)
    table = (arc_table if posterior.directed else edge_table)(posterior)
    prior = dict(zip(zip(*posterior.ends(), strict=True), posterior.prior, strict=True))
    ends = zip(table["source"], table["target"], strict=True)
    table["prior_probability"] = [float(prior[pair]) for pair in ends]
    table["bound"] = table.index.isin(table.attrs["bayes_factor_bounds"])
    table["evidence"] = evidence(table["bayes_factor"], threshold)
    columns = "source target probability prior_probability bayes_factor bound evidence".split()
    return table[[*columns, *(c for c in ("mean", "ess", "r_hat") if c in table)]]


def sensitivity_of(
    settings: "pd.DataFrame",
    tables: Sequence["pd.DataFrame"],
    converged: Sequence[bool],
    *,
    line: str,
    threshold: float,
    random_seed: int | Sequence[int],
) -> Sensitivity:
    """Put the tables of all settings together.

    Parameters
    ----------
    settings : pandas.DataFrame
        One row for each setting, a column for each option.
    tables : sequence of pandas.DataFrame
        Of `evidence_table`, one for each setting.
    converged : sequence of bool
        Whether the chains of each setting have converged.
    line, threshold, random_seed
        As in `Sensitivity`.

    Returns
    -------
    Sensitivity
    """
    import pandas as pd

    options = tuple(map(str, settings.columns))
    parts = []
    for number, part in enumerate(tables):
        about = {"setting": number} | dict(settings.loc[number])
        parts.append(pd.concat([pd.DataFrame(about, index=part.index), part], axis=1))
    table = pd.concat(parts, ignore_index=True)
    counted = settings.copy()
    for kind in (INCLUDED, UNDECIDED, EXCLUDED):
        counted[kind] = [int((part["evidence"] == kind).sum()) for part in tables]
    counted["converged"] = list(converged)
    return Sensitivity(
        line=line,
        options=options,
        threshold=threshold,
        random_seed=random_seed,
        settings=counted.rename_axis("setting"),
        table=table,
        edges=_ranges(table),
        notes=tuple(_notes(table, tables, converged, line)),
    )


def _ranges(table: "pd.DataFrame") -> "pd.DataFrame":
    """Range of probabilities and Bayes factors of each line over the settings."""
    import pandas as pd

    rows = []
    error = _log_error(table)
    for (source, target), part in table.groupby(["source", "target"], sort=False):
        factor, setting = part["bayes_factor"].to_numpy(), part["setting"].to_numpy()
        known = {*part["evidence"]}
        conclusions = [kind for kind in _ORDER if kind in known]
        tested = bool(conclusions)
        low, high = (np.nanargmin(factor), np.nanargmax(factor)) if tested else (0, 0)
        apart = np.log(factor[high] / factor[low])
        noise = 2 * np.hypot(error[part.index[low]], error[part.index[high]])
        rows.append(
            {
                "source": source,
                "target": target,
                "lowest_probability": part["probability"].min(),
                "highest_probability": part["probability"].max(),
                "lowest_factor": factor[low],
                "highest_factor": factor[high],
                "lowest_at": setting[low] if tested else -1,
                "highest_at": setting[high] if tested else -1,
                "evidence": " or ".join(conclusions) or "fixed",
                "changes": len(conclusions) > 1,
                "clear": len(conclusions) > 1 and bool(apart > noise),
            }
        )
    ranges = pd.DataFrame(rows)
    by = ["changes", "highest_factor", "highest_probability"]
    return ranges.sort_values(by, ascending=False, kind="stable", ignore_index=True)


def _log_error(table: "pd.DataFrame") -> np.ndarray:
    """Monte Carlo error of the logarithm of each Bayes factor, by the effective sample size of the indicator.

    It is no smaller than that of the more precise estimates of some models. An indicator that never changed has the effective sample
    size of the others, and a probability that could not be told from one of their inverse.
    """
    ess = table["ess"].fillna(table.groupby("setting")["ess"].transform("median")).fillna(1)
    floor = 1 / (ess + 2)
    p = table["probability"].clip(floor, 1 - floor)
    return (1 / np.sqrt(ess * p * (1 - p))).to_numpy()


def _notes(table, tables, converged, line) -> list[str]:
    notes = []
    if bad := len(converged) - sum(converged):
        notes.append(
            f"{bad} of {len(converged)} settings have not converged, or have too few draws to tell: more draws (draws=, tune=) before "
            f"any {line} is said to depend on the prior. bs.check has the reasons, of a result of that setting alone."
        )
    if bounds := int(table["bound"].sum()):
        notes.append(
            f"{bounds} Bayes factors are no more than bounds, which the number of draws and the limits 1e-6 and 1e6 set."
        )
    common = [note for note in tables[0].attrs["notes"] if "Bayes factor" not in note]
    notes += [note for note in common if all(note in part.attrs["notes"] for part in tables)]
    return notes
