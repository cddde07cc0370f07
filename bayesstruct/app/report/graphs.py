"""Parts of the report about graphs: edges, arcs, differences, nodes, blocks of columns."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.app.report.effects import EFFECTS
from bayesstruct.app.report.parts import (
    FACTORS,
    Drawing,
    Part,
    Result,
    count_kinds,
    ends,
    fixed,
    interval,
    interval_title,
    kinds_sentence,
    with_evidence,
)
from bayesstruct.graphs.evidence import FIXED, INCLUDED, STRONG, evidence
from bayesstruct.graphs.plots.nodes import network_size

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = ["GRAPH_PARTS", "found_graph"]

_UNDECIDED = "*Undecided* does not mean *absent*: the data do not decide."
_NOT_TESTED = (
    "*not tested* (`bayes_factor` is empty in `{}`): the {} was required or forbidden, or the model leaves no choice, so the data could not "
    "change its odds."
)


# ---- edges -----------------------------------------------------------------------------------


def _is_dependency(result: Result) -> bool:
    return "arc" in result.drawn and not result.is_directed


def _has_edges(result: Result) -> bool:
    return "edge" in result.drawn or _is_dependency(result)


def _edges(result: Result) -> "pd.DataFrame":
    from bayesstruct.graphs.tables.edges import edge_table

    table = with_evidence(edge_table(result.graph))  # diagnostics are computed once
    table = _with_limits(table, result, "an edge")
    table.attrs["weight"] = _weight_in_words(result)
    table.attrs["neighbours"] = "parent_correlation" in result.drawn
    return table


def _weight_in_words(result: Result) -> str:
    """Say what the weights of the edges of a tree are; nothing for other models."""
    from bayesstruct.graphs.posteriors.weight_names import weight_name

    if not {"tree", "forest", "latent_tree"} & {result.job.options["model"]}:
        return ""
    name = weight_name(result.graph)
    if name == "strength of dependence":
        return f"{name}, from 0 to 1 in size: a correlation of two numbers, a correlation ratio of states and numbers, its like of two states"
    return name


def _with_limits(table: "pd.DataFrame", result: Result, what: str) -> "pd.DataFrame":
    """Remember what a table of this size can say at all, in place of the remark on it."""
    from bayesstruct.graphs.tables.limits import known_limits, limit_note, limit_sentence

    limits = known_limits(result.restored)
    said = limit_note(limits, what)
    notes = [note for note in table.attrs.get("notes", ()) if note not in said]
    table.attrs |= {"limits": limit_sentence(limits, what), "notes": notes}
    return table


def _edge_cells(table: "pd.DataFrame") -> dict[str, list[str]]:
    return {"edge": ends(table), **_line_cells(table, "weight")}


def _line_cells(table: "pd.DataFrame", weight: str) -> dict[str, list[str]]:
    cells = {
        "probability": fixed(table["probability"]),
        "Bayes factor": [*table["bayes_factor_shown"]],
        "evidence": [*table["evidence"]],
    }
    if "mean" in table:
        cells |= {weight: fixed(table["mean"]), interval_title(table): interval(table)}
    return cells


def _edge_explanation(table: "pd.DataFrame") -> list[str]:
    out = [
        _UNDECIDED,
        "*Probability*: that the two columns are neighbours in the tree; others may depend on each other by way of hidden nodes."
        if table.attrs.get("neighbours")
        else "*Probability*: that the two variables are connected, given all others.",
        FACTORS,
        *_limits_explanation(table),
        *_fixed_explanation(table, "edges.csv", "edge"),
    ]
    if "mean" in table:
        meaning = f"{own}; " if (own := table.attrs.get("weight")) else ""
        out.append(f"*Weight*: {meaning}posterior mean, draws without the edge included.")
    return out


def _limits_explanation(table) -> list[str]:
    return [sentence] if (sentence := table.attrs.get("limits")) else []


def _fixed_explanation(table, file, what) -> list[str]:
    if not count_kinds(table)[FIXED]:
        return []
    return [_NOT_TESTED.replace("{}", file, 1).replace("{}", what, 1)]


def found_graph(result: Result) -> "nx.Graph":
    """Return the graph of what was found: lines with a Bayes factor of at least 10, and those that were required.

    Of a Bayesian network pairs count, joined in either direction. A direction that is ten times as probable as the other one is
    drawn alone, otherwise both are.

    Parameters
    ----------
    result : Result

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        Edges have ``probability``, ``weight`` where the model has one, and ``required``, whether they were tested at all.
    """
    posterior = result.graph
    if posterior.directed:
        chosen = _found_arcs(posterior)
    else:
        chosen = _is_found(posterior.bayes_factors()[0], posterior.prior)
    graph = posterior.graph(chosen)
    source, target = posterior.ends()
    for k in np.flatnonzero(chosen):
        graph.edges[source[k], target[k]]["required"] = bool(posterior.prior[k] == 1)
    return graph


def _found_arcs(posterior) -> np.ndarray:
    """Arcs of the pairs that were found, without those directions that the other one excludes."""
    pairs = posterior.adjacencies()
    found = _is_found(pairs["factor"], pairs["prior"])
    ends_of = zip(pairs["source"][found], pairs["target"][found], strict=True)
    joined = {frozenset(pair) for pair in ends_of}
    p = {
        (a, b): value
        for a, b, value in zip(
            posterior.source, posterior.target, posterior.probability, strict=True
        )
    }
    kept = [
        frozenset(arc) in joined and value > 0 and value * STRONG > p.get(arc[::-1], 0.0)
        for arc, value in p.items()
    ]
    return np.array(kept, bool)


def _is_found(factor: np.ndarray, prior: np.ndarray) -> np.ndarray:
    return (evidence(factor) == INCLUDED) | (prior == 1)


def _draw_graph(result: Result, table, ax) -> None:
    from bayesstruct.graphs.plots.network import plot_graph

    graph, posterior = found_graph(result), result.graph
    graph.graph["forbidden"] = int((posterior.fixed & (posterior.prior == 0)).sum())
    plot_graph(graph, ax=ax, min_probability=_least(graph))
    _entitle(ax, f"Bayes factor of at least {STRONG:g}, paler = less probable")


def _least(graph: "nx.Graph") -> float:
    """Probability from which all edges of a graph are drawn."""
    least = min((about["probability"] for *_, about in graph.edges(data=True)), default=0.5)
    return float(np.clip(least, 1e-9, 0.5))


def _entitle(ax, title: str) -> None:
    """Give the legend of a picture, if there is one, a title."""
    from matplotlib.legend import Legend

    for legend in ax.figure.findobj(Legend):
        if legend.get_title().get_text():
            legend.set_title(title)


def _draw_evidence(result: Result, table, ax) -> None:
    from bayesstruct.graphs.plots.evidence import plot_evidence

    plot_evidence(result.graph, STRONG, ax=ax)


def _network_size(result: Result, table) -> tuple[float, float]:
    return network_size([*result.nodes])


_EVIDENCE = Drawing(
    "evidence.png",
    "What the data say about each pair: included (Bayes factor of at least 10), excluded (at most 1/10), or undecided.",
    _draw_evidence,
    _network_size,
)
EDGES = Part(
    "Edges",
    "edges.csv",
    _has_edges,
    _edges,
    _edge_cells,
    lambda table: [kinds_sentence(table, "edges")],
    _edge_explanation,
    (
        Drawing(
            "graph.png",
            "The edges that were found: those with a Bayes factor of at least 10, and required ones. Undecided and excluded edges are not "
            "drawn.",
            _draw_graph,
            _network_size,
        ),
        _EVIDENCE,
    ),
    words=frozenset({0, 3}),
    noun="edges",
)


# ---- differences between groups --------------------------------------------------------------


def _differences(result: Result) -> "pd.DataFrame":
    from bayesstruct.graphs.summaries import bayes_factor_texts
    from bayesstruct.graphs.tables.differences import difference_table

    table = difference_table(result.idata)
    at = list(table).index("bayes_factor") + 1
    table.insert(at, "bayes_factor_shown", bayes_factor_texts(table))
    return table


def _difference_cells(table: "pd.DataFrame") -> dict[str, list[str]]:
    groups = [f"{a} minus {b}" for a, b in zip(table["first"], table["second"], strict=True)]
    return {
        "pair": ends(table),
        "probability": fixed(table["probability"]),
        "Bayes factor": [*table["bayes_factor_shown"]],
        "verdict": [*table["verdict"]],
        "groups": groups,
        "difference": fixed(table["difference"]),
        interval_title(table): interval(table),
    }


def _difference_headlines(table: "pd.DataFrame") -> list[str]:
    number = table["verdict"].value_counts()
    return [
        f"{len(table)} pairs: {number.get('differs', 0)} differ between the groups (Bayes factor of at least {STRONG:g}), "
        f"{number.get('is equal', 0)} are equal (at most 1/{STRONG:g}), {number.get('undecided', 0)} are undecided."
    ]


def _differ(result: Result, table) -> "pd.Series":
    return table["verdict"] == "differs"


def _draw_differences(result: Result, table, ax) -> None:
    from bayesstruct.graphs.plots.differences import plot_difference

    least = table.loc[_differ(result, table), "probability"].min()
    plot_difference(result.idata, ax=ax, min_probability=float(np.clip(least, 1e-9, 1 - 1e-12)))
    _entitle(ax, f"Bayes factor of a difference of at least {STRONG:g}, paler = less probable")


DIFFERENCES = Part(
    "Differences between the groups",
    "differences.csv",
    lambda result: {"edge", "difference"} <= result.drawn,
    _differences,
    _difference_cells,
    _difference_headlines,
    lambda table: [
        "*Undecided* does not mean *equal*: the data do not decide.",
        "*Probability*: that the pair differs between groups.",
        FACTORS,
        "*is equal* includes pairs that are connected in no group. *Difference*: of the weights in the two groups, posterior mean.",
        "`differences.csv` has the weights in each group.",
    ],
    (
        Drawing(
            "differences.png",
            "Pairs that differ between the groups, by a Bayes factor of at least 10; grey lines are edges of which that is not so: full where the groups are "
            "equal, dashed where the data do not decide.",
            _draw_differences,
            _network_size,
            lambda result, table: bool(_differ(result, table).any()),
        ),
    ),
    words=frozenset({0, 3, 4}),
    noun="pairs",
)


# ---- nodes that take part --------------------------------------------------------------------


def _node_rows(result: Result) -> "pd.DataFrame":
    from bayesstruct.precision.reading.nodes import node_table

    return with_evidence(node_table(result.idata))


NODES = Part(
    "Variables that take part",
    "nodes.csv",
    lambda result: {"edge", "included"} <= result.drawn,
    _node_rows,
    lambda table: {
        "variable": [*map(str, table["node"])],
        "probability": fixed(table["probability"]),
        "Bayes factor": [*table["bayes_factor_shown"]],
        "evidence": [*table["evidence"]],
        "mean number of edges": fixed(table["degree"], 2),
        "has an edge": fixed(table["connected"]),
    },
    lambda table: [
        kinds_sentence(table, "variables that may have edges").replace("found", "included")
    ],
    lambda table: [
        "*Probability*: that the variable takes part in the graph at all; *has an edge*: share of the draws in which it is connected.",
        FACTORS,
    ],
    words=frozenset({0, 3}),
    noun="variables",
)


# ---- blocks of columns -----------------------------------------------------------------------


def _blocks(result: Result) -> "pd.DataFrame":
    from bayesstruct.mixtures.reading.clusters import co_clustering

    return co_clustering(result.idata, var_name="block")


def _block_pairs(matrix: "pd.DataFrame") -> dict[str, list[str]]:
    names, others = [*map(str, matrix.index)], [*map(str, matrix.columns)]
    values = matrix.to_numpy()
    together = []
    for row, name in zip(values, names, strict=True):
        beside = [
            f"{others[j]} ({row[j]:.2f})"
            for j in np.argsort(-row, kind="stable")
            if others[j] != name and row[j] > 0.5
        ]
        together.append(", ".join(beside[:8]) or "none")
    return {"variable": names, "together with": together}


BLOCKS = Part(
    "Blocks of variables",
    "blocks.csv",
    lambda result: "block" in result.drawn,
    _blocks,
    _block_pairs,
    lambda table: [
        f"{_number_of_blocks(table)} of {len(table)} variables are in one block with another variable more probably than not."
    ],
    lambda table: [
        "*Together with*: variables that are in the same block with a probability of more than one half, up to eight; all probabilities are in "
        "`blocks.csv`.",
    ],
    shown=40,
    index=True,
    words=frozenset({0, 1}),
)


def _number_of_blocks(matrix) -> int:
    values = matrix.to_numpy() - np.eye(len(matrix))
    return int((values > 0.5).any(axis=1).sum())


# ---- arcs ------------------------------------------------------------------------------------


def _connections(result: Result) -> "pd.DataFrame":
    """Pairs of a Bayesian network, with the probabilities of both directions, the more probable one first."""
    import pandas as pd

    from bayesstruct.graphs.tables.arcs import arc_table

    posterior = result.graph
    arcs = arc_table(posterior)
    names, tested = np.array(posterior.variables, object), posterior.adjacencies()
    ends_of = np.array([names[tested["source"]], names[tested["target"]]])
    row = {pair: i for i, pair in enumerate(zip(arcs["source"], arcs["target"], strict=True))}
    at = np.array([[row.get((a, b), -1), row.get((b, a), -1)] for a, b in ends_of.T]).reshape(-1, 2)
    p = np.append(arcs["probability"].to_numpy(), 0.0)[at]
    more = np.argsort(-p, axis=1, kind="stable")
    ends_of = np.take_along_axis(ends_of.T, more, axis=1)
    p = np.take_along_axis(p, more, axis=1)
    table = pd.DataFrame(
        {
            "source": ends_of[:, 0],
            "target": ends_of[:, 1],
            "probability": np.minimum(p.sum(axis=1), 1.0),
            "forward": p[:, 0],
            "backward": p[:, 1],
            "bayes_factor": tested["factor"],
            "direction": np.where(
                (p[:, 0] > 0) & (p[:, 0] >= STRONG * p[:, 1]), "decided", "undecided"
            ),
            # the worse of both directions
            "ess": np.fmin.reduce(np.append(arcs["ess"].to_numpy(), np.nan)[at], axis=1),
            "r_hat": np.fmax.reduce(np.append(arcs["r_hat"].to_numpy(), np.nan)[at], axis=1),
            "bound": tested["bound"],
        }
    )
    table = table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)
    table.attrs = arcs.attrs | {"bayes_factor_bounds": np.flatnonzero(table.pop("bound")).tolist()}
    return _with_limits(with_evidence(table), result, "a connection")


def _connection_headlines(table: "pd.DataFrame") -> list[str]:
    found = table[table["evidence"] == INCLUDED]
    decided = int((found["direction"] == "decided").sum())
    directions = (
        f" The direction of {decided} of those found is decided (ten times as probable as the other)."
        if len(found)
        else ""
    )
    return [kinds_sentence(table, "connections") + directions]


def _draw_directions(result: Result, table, ax) -> None:
    from bayesstruct.graphs.plots.directions import plot_directions

    if len(table):  # a single column has no pair
        plot_directions(result.graph, ax=ax)


def _directions_size(result: Result, table) -> tuple[float, float]:
    return 8.0, 1.3 + 0.26 * min(len(table), 20)


CONNECTIONS = Part(
    "Connections and their directions",
    "connections.csv",
    lambda result: result.is_directed,
    _connections,
    lambda table: {
        "connection": ends(table, "->"),
        "probability": fixed(table["probability"]),
        "this direction": fixed(table["forward"]),
        "the other": fixed(table["backward"]),
        "none": fixed(1 - table["probability"]),
        "Bayes factor": [*table["bayes_factor_shown"]],
        "evidence": [*table["evidence"]],
        "direction": [*table["direction"]],
    },
    _connection_headlines,
    lambda table: [
        _UNDECIDED,
        "*Probability*: of a connection in either direction, the sum of those of both; the more probable direction is written first.",
        FACTORS.replace("the odds", "the odds of a connection"),
        "*Direction*: decided if it is at least ten times as probable as the other one. `arcs.csv` has each direction by itself.",
        *_limits_explanation(table),
        *_fixed_explanation(table, "connections.csv", "connection"),
    ],
    (
        Drawing(
            "graph.png",
            "The connections that were found: those with a Bayes factor of at least 10, and required ones. Where both directions are drawn, or a "
            "line without a head, the direction is undecided.",
            _draw_graph,
            _network_size,
        ),
        Drawing(
            "directions.png",
            "The most probable connections: blue the probability of the direction that the name has, orange that of the other one, grey that "
            "of no connection.",
            _draw_directions,
            _directions_size,
        ),
        _EVIDENCE,
    ),
    words=frozenset({0, 6, 7}),
    noun="connections",
)


def _arcs(result: Result) -> "pd.DataFrame":
    from bayesstruct.graphs.tables.arcs import arc_table

    return _with_limits(with_evidence(arc_table(result.read)), result, "a connection")


def _arc_cells(table: "pd.DataFrame") -> dict[str, list[str]]:
    cells = {"arc": ends(table, "->"), **_line_cells(table, "coefficient")}
    del cells["evidence"]  # what was found are connections
    return cells


ARCS = Part(
    "Arcs",
    "arcs.csv",
    lambda result: result.is_directed,
    _arcs,
    _arc_cells,
    lambda table: [],
    lambda table: [
        "*Probability*: of the arc in this direction.",
        *(
            [
                "*Coefficient*: of the regression of the second on the first and its other parents, standardised columns; mean of all draws."
            ]
            if "mean" in table
            else []
        ),
    ],
    shown=10,
)
REGRESSIONS = Part(
    "Regressions of single columns",
    "arcs.csv",
    _is_dependency,
    _arcs,
    lambda table: {"predictor -> response": ends(table, "->"), **_line_cells(table, "coefficient")},
    lambda table: [kinds_sentence(table, "predictors of single columns")],
    lambda table: [
        _UNDECIDED,
        "*Probability*: that the first column helps to predict the second one, given all others. Each row is a statement of one regression.",
        FACTORS,
    ],
    words=frozenset({0, 3}),
    noun="predictors of single columns",
)

GRAPH_PARTS = (DIFFERENCES, NODES, BLOCKS, REGRESSIONS, EDGES, CONNECTIONS, ARCS, EFFECTS)
