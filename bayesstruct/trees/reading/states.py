"""Results of trees: their tables, and predictions of empty values of rows of states under drawn trees."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.core.readers import register_figure, register_summary, variables
from bayesstruct.core.tables.observed import completed_tables, observed_table
from bayesstruct.core.tables.predictability import (
    OTHERS,
    Predicted,
    StateTally,
    register_predictability,
)
from bayesstruct.core.tables.predictions import StateRows, register_prediction
from bayesstruct.graphs.groups import CONSTANTS, SAMPLE_DIMS, chosen_draws
from bayesstruct.graphs.plots.network import plot_graph
from bayesstruct.graphs.posteriors.reading import read_edges
from bayesstruct.graphs.records import AcyclicEdges
from bayesstruct.graphs.spanning_trees.sums import rooted_forest
from bayesstruct.graphs.tables.edges import EDGE_READERS, edge_table
from bayesstruct.networks.priors.records import NetworkStates
from bayesstruct.networks.reading.conditionals import drawn_networks
from bayesstruct.networks.reading.effects import state_rows
from bayesstruct.networks.reading.mixed import mixed_coding
from bayesstruct.networks.reading.mixed_predictions import MixedRows, rows_of_draws
from bayesstruct.networks.reading.predictability import predicted_of_both
from bayesstruct.precision.reading.predictive import NORMAL_READERS
from bayesstruct.trees.data import first_state

if TYPE_CHECKING:
    import xarray as xr

    from bayesstruct.graphs.posteriors.edges import EdgePosterior

__all__ = ["with_rooted_trees"]

_STATES, _NUMBERS = "trees of columns of states", "trees of columns of numbers"
_BOTH = "trees of columns of numbers and states"


def with_rooted_trees(
    posterior: "EdgePosterior", draws: "xr.Dataset", root: int = 0
) -> "xr.Dataset":
    r"""Add the trees as directed graphs, away from the first column, that belong to the tables of probabilities.

    Parameters
    ----------
    posterior : EdgePosterior
        Of trees.
    draws : xarray.Dataset
        Some or all of its draws.
    root : int, default 0
        Another column from which trees are directed; other components of forests are from their first columns.

    Returns
    -------
    xarray.Dataset
        With ``dag`` over chain, draw, node and node\_.
    """
    edge = draws["edge"].transpose(*SAMPLE_DIMS, ...).values
    shape, d = edge.shape[:2], len(posterior.variables)
    ends = np.transpose([posterior.source, posterior.target])
    dag = np.zeros((*shape, d, d), np.int8)
    for c, m in np.ndindex(shape):
        parent = rooted_forest(ends[edge[c, m] != 0], d, root)
        child = np.flatnonzero(parent >= 0)
        dag[c, m, parent[child], child] = 1
    return draws.assign(dag=((*SAMPLE_DIMS, "node", "node_"), dag))


def _is_tree_of_states(idata) -> bool:
    own = {"edge", "table"} <= variables(idata)
    return own and "states" in variables(idata, CONSTANTS)


def _is_tree_of_numbers(idata) -> bool:
    own = {"edge", "precision"} <= variables(idata)
    return own and AcyclicEdges.is_in(idata)


def _rows(idata: "xr.DataTree") -> StateRows:
    posterior: Any = read_edges(idata)
    posterior = replace(posterior, draws=with_rooted_trees(posterior, posterior.draws))
    return state_rows(posterior, posterior.variables, {})


def _predicted(idata: "xr.DataTree", draws: int) -> tuple[list[Predicted], list[str]]:
    posterior = read_edges(idata)
    states = NetworkStates.read(posterior.constants).count.astype(int)
    table, missing = observed_table(idata)
    completed = completed_tables(table, missing, posterior.draws)
    networks = drawn_networks(with_rooted_trees(posterior, posterior.draws), states)
    tally = StateTally(posterior.variables, table, ~missing, states == 2)
    free = np.ones(table.shape, bool)
    for c, d in chosen_draws(posterior.draws, draws):
        tally.add(networks(c, d).given_others(completed(c, d).astype(int), free))
    return [*tally.predicted(OTHERS)], []


def _is_tree_of_both(idata) -> bool:
    own = {"edge", "parameter"} <= variables(idata)
    return own and "column_family" in variables(idata, CONSTANTS)


def _mixed_rows(idata: "xr.DataTree") -> MixedRows:
    posterior: Any = read_edges(idata)
    coding = mixed_coding(posterior)
    draws = with_rooted_trees(posterior, posterior.draws, first_state(coding.layout.states))
    return rows_of_draws(replace(posterior, draws=draws), coding, {})


def _predicted_of_both(idata: "xr.DataTree", draws: int) -> tuple[list[Predicted], list[str]]:
    posterior: Any = read_edges(idata)
    found, notes = predicted_of_both(idata, posterior, chosen_draws(posterior.draws, draws))
    # A neighbour on the way to the first column of states is no parent: trees have no directions.
    return [one for one in found if one.given == OTHERS], notes


register_summary(
    _BOTH,
    _is_tree_of_both,
    edge_table,
    (*EDGE_READERS, "predict", "predictability", "pointwise"),
    before="undirected graphs",
)
register_figure(plot_graph, _BOTH)
register_prediction(_BOTH, _is_tree_of_both, _mixed_rows)
register_predictability(_BOTH, _is_tree_of_both, _predicted_of_both)
register_summary(
    _STATES,
    _is_tree_of_states,
    edge_table,
    (*EDGE_READERS, "predict", "predictability", "pointwise"),
    before="undirected graphs",
)
register_summary(
    _NUMBERS,
    _is_tree_of_numbers,
    edge_table,
    NORMAL_READERS,
    before="Gaussian graphical models",
)
register_figure(plot_graph, _STATES, _NUMBERS)


def _is_forest(idata, of_trees) -> bool:
    return of_trees(idata) and "components" in variables(idata)


for _trees, _recognise, _others in (
    (_STATES, _is_tree_of_states, (*EDGE_READERS, "predict", "predictability", "pointwise")),
    (_NUMBERS, _is_tree_of_numbers, NORMAL_READERS),
):
    _forests = _trees.replace("trees", "forests")
    register_summary(
        _forests, partial(_is_forest, of_trees=_recognise), edge_table, _others, before=_trees
    )
    register_figure(plot_graph, _forests)
register_prediction(_STATES, _is_tree_of_states, _rows)
register_predictability(_STATES, _is_tree_of_states, _predicted)
