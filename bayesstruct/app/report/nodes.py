"""Parts of the report about the nodes of graphs: how well each is predicted, and how central it is."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.app.report.parts import Drawing, Part, Result, fixed, interval, interval_title

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NODE_PARTS"]


# ---- predictability --------------------------------------------------------------------------

_MEASURES = {
    "R2": "*R2*: share of the variance of the column that the others explain, of the distribution that each draw describes.",
    "accuracy": "*Accuracy*: share of the rows in which the most probable state is the observed one; *the column alone* is the share of its most "
    "frequent state, and *gain* what is won of the rest. The rows are those from which the model was learned: new ones are predicted somewhat less "
    "well.",
}


def _predicted(result: Result) -> "pd.DataFrame":
    table: Any = result.predicted
    of_each = [name for name in ("group", "node") if name in table]
    first = ~table.duplicated(of_each)
    order = np.lexsort([-table["gain"].fillna(-np.inf), ~first])
    out = table.iloc[order].reset_index(drop=True)
    rows, columns = result.job.frame.shape
    out.attrs = table.attrs | {"few_rows": rows <= columns and not result.job.options.get("cov")}
    return out


def _main_rows(table: "pd.DataFrame") -> "pd.DataFrame":
    """First measure of each variable."""
    return table.drop_duplicates([name for name in ("group", "node") if name in table])


def _predicted_cells(table: "pd.DataFrame") -> dict[str, list[str]]:
    main = _main_rows(table)
    cells = {"group": [*map(str, main["group"])]} if "group" in main else {}
    cells |= {
        "variable": [*map(str, main["node"])],
        "measure": [*main["measure"]],
        "value": fixed(main["value"]),
        interval_title(table): interval(main),
    }
    if (main["measure"] != "R2").any():
        cells |= {"the column alone": fixed(main["marginal"]), "gain": fixed(main["gain"])}
    return cells


def _predicted_headlines(table: "pd.DataFrame") -> list[str]:
    main = _main_rows(table)
    gain = main["gain"].dropna()
    if not len(gain) or table.attrs["few_rows"]:
        return []
    best = main.loc[gain.idxmax()]
    span = f"on average, from {gain.min():.0%} to {gain.max():.0%} ({best['node']})"
    if (main["measure"] == "R2").all():
        return [
            f"The other variables explain {gain.mean():.0%} of the variance of a variable {span}."
        ]
    return [
        f"Predictions from the other variables avoid {gain.mean():.0%} of the errors of always guessing the most frequent state {span}."
    ]


def _predicted_explanation(table: "pd.DataFrame") -> list[str]:
    shown = [text for name, text in _MEASURES.items() if name in {*_main_rows(table)["measure"]}]
    given = (
        ["`predictability.csv` also has what the parents alone predict."]
        if "parents" in {*table["given"]}
        else []
    )
    return [
        "Each variable is predicted from all others, in each draw: posterior mean and interval.",
        *shown,
        *(
            [
                "With no more rows than variables these values depend on the prior as much as on the table."
            ]
            if table.attrs["few_rows"]
            else []
        ),
        *given,
    ]


PREDICTED = Part(
    "How well each variable is predicted",
    "predictability.csv",
    lambda result: result.predicted is not None,
    _predicted,
    _predicted_cells,
    _predicted_headlines,
    _predicted_explanation,
    words=frozenset({0, 1}),
)


# ---- centrality ------------------------------------------------------------------------------

_MEANINGS = {
    "strength": "*Strength*: sum of the absolute weights of the edges of a variable.",
    "out_strength": "*Out strength*: sum of the absolute coefficients of the arcs that start at a variable.",
    "degree": "*Degree*: number of edges of a variable.",
    "out_degree": "*Out degree*: number of arcs that start at a variable.",
}


def _central(result: Result) -> "pd.DataFrame":
    table: Any = result.central
    return table


def _main_measure(table: "pd.DataFrame") -> str:
    return str(table["measure"].iloc[0])


def _central_cells(table: "pd.DataFrame") -> dict[str, list[str]]:
    measure = _main_measure(table)
    main = table[table["measure"] == measure]
    cells = {"group": [*map(str, main["group"])]} if "group" in main else {}
    ranks = zip(main["rank_low"], main["rank_high"], strict=True)
    return cells | {
        "variable": [*map(str, main["node"])],
        measure.replace("_", " "): fixed(main["mean"]),
        interval_title(table): interval(main),
        "largest of all": fixed(main["largest"]),
        "rank": [f"{low:g} to {high:g}" for low, high in ranks],
    }


def _central_explanation(table: "pd.DataFrame") -> list[str]:
    others = [name.replace("_", " ") for name in dict.fromkeys(table["measure"])][1:]
    more = f", and {', '.join(others)}" if others else ""
    return [
        _MEANINGS[_main_measure(table)],
        "It is computed in each drawn graph, without the lines that the draw does not have; posterior mean and interval.",
        "*Largest of all*: probability that no other variable has a larger one; *rank*: interval of the rank, 1 for the largest.",
        f"`centrality.csv` has all variables{more}; `bs.centrality` has other measures.",
    ]


def _draw_central(result: Result, table, ax) -> None:
    from bayesstruct.graphs.plots.centrality import plot_centrality

    measure = _main_measure(table)
    tables = table
    if "group" in table:
        names = [*dict.fromkeys(table["group"])][:5]
        tables = {name: table[table["group"] == name].drop(columns="group") for name in names}
    plot_centrality(tables, measure, n=_DRAWN, axes=ax)


_DRAWN = 60  # variables in the picture


def _central_size(result: Result, table) -> tuple[float, float]:
    nodes = min(table["node"].nunique(), _DRAWN)
    return 5.6, 1.4 + 0.22 * max(nodes, 4)


CENTRAL = Part(
    "How central each variable is",
    "centrality.csv",
    # Between columns alone a tree with hidden nodes may have no edge.
    lambda result: "parent_correlation" not in result.drawn and result.central is not None,
    _central,
    _central_cells,
    lambda table: [],
    _central_explanation,
    (
        Drawing(
            "centrality.png",
            "How central each variable is: posterior mean and interval. Where intervals overlap, an order is not certain.",
            _draw_central,
            _central_size,
        ),
    ),
)

NODE_PARTS = (PREDICTED, CENTRAL)
