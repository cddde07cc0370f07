"""Constants that models of graphs record for their readers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from bayesstruct.core.recorded import Recorded, constant

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "NODEWISE",
    "Acyclic",
    "AcyclicEdges",
    "ArcEnds",
    "ArcPrior",
    "CompositeLikelihood",
    "EdgeEnds",
    "EdgePrior",
    "EdgeProducts",
    "EdgeScales",
    "GraphsByScore",
    "GroupEdgePrior",
    "ImputedTables",
    "OrderedColumns",
    "RelationPrior",
    "RelationScales",
    "RowGroups",
    "StateColumns",
    "ValueWeighted",
    "Visited",
    "is_nodewise",
    "with_fixed",
]

#: Composite likelihood of regressions of columns on their neighbours, with all parameters integrated out.
NODEWISE = 2


@dataclass(frozen=True)
class _Ends(Recorded):
    """Columns that each edge or arc joins; subclasses name the constants."""

    source: np.ndarray
    target: np.ndarray
    position: np.ndarray | None

    @classmethod
    def in_model(cls, source, target) -> Self:
        """Take the places of all columns from the model in context, to recognise sorted ones later.

        Parameters
        ----------
        source, target : sequence of int
            Positions of the two ends among the columns.
        """
        import pymc as pm

        nodes = pm.modelcontext(None).coords["node"]
        return cls(np.asarray(source), np.asarray(target), np.arange(len(nodes)))


@dataclass(frozen=True)
class OrderedColumns(Recorded):
    """Columns of which only the order of their values is used; the rows have no parameters in the units of the table.

    Attributes
    ----------
    by_order : (p,) ndarray of int
        1 for such a column.
    """

    by_order: np.ndarray = constant("column_by_order", "node")

    @classmethod
    def refuse(cls, constants, what: str) -> None:
        """Raise if a result has such columns, of which something cannot be known.

        Parameters
        ----------
        constants : xarray.DataTree or xarray.Dataset
            A result, or its group ``constant_data``.
        what : str
            Begins the message.
        """
        if not cls.is_in(constants):
            return
        raise ValueError(
            f"{what}: the model uses columns by the order of their values alone, which says nothing about units and means. "
            "bs.edge_table(idata) has partial correlations of the latent normal values, whose precision matrix is "
            "`precision` up to the unit of each column; pm.sample_posterior_predictive draws rows in the units of the table"
        )


@dataclass(frozen=True)
class StateColumns(Recorded):
    """Columns of latent values that belong to one column of states without an order.

    Attributes
    ----------
    block : (p,) ndarray of int
        Equal numbers from 0 for columns of one; -1 for all others.
    size : (variables,) ndarray of int
        Number of latent columns of each column of states.
    """

    block: np.ndarray = constant("state_block", "node")
    size: np.ndarray = constant("state_columns", "state_variable")


@dataclass(frozen=True)
class ValueWeighted(Recorded):
    """Rows that have an alternative t distribution: a weight for each value.

    Attributes
    ----------
    weighted : int
        1.
    """

    weighted: int = constant("value_weighted")


@dataclass(frozen=True)
class EdgeEnds(_Ends):
    """Columns that each edge of an undirected graph joins.

    Attributes
    ----------
    source, target : (pairs,) ndarray of int
        Positions of the two ends among the columns.
    position : (p,) ndarray of int, optional
        0, 1, ...: in another order if the columns of a result were sorted.
    """

    source: np.ndarray = constant("edge_source", "pair")
    target: np.ndarray = constant("edge_target", "pair")
    position: np.ndarray | None = constant("node_position", "node", optional=True)


@dataclass(frozen=True)
class EdgePrior(Recorded):
    """Prior of the edges of an undirected graph.

    Attributes
    ----------
    prior : (pairs,) ndarray of float
        Prior probability of each edge that the model implies.
    negligible : float, optional
        Absolute weight up to which there is no edge; absent if an edge is a weight other than zero.
    count : int, optional
        Number of edges, to recognise a result from which some were taken.
    """

    prior: np.ndarray = constant("edge_prior", "pair")
    negligible: float | None = constant("negligible", optional=True)
    count: int | None = constant("pair_count", optional=True)


@dataclass(frozen=True)
class EdgeScales(Recorded):
    """Spike-and-slab prior of the elements of a precision matrix.

    Attributes
    ----------
    spike_scale, slab_scale : float
        Standard deviations of an element without and with an edge.
    diagonal_rate : float, optional
        Rate of the diagonal elements.
    nominal : (pairs,) ndarray of float, optional
        Probability of each edge before the matrix is restricted to be positive definite. Those
        that are neither 0 nor 1 do not count if the model draws ``edge_probability``.
    """

    spike_scale: float = constant("spike_scale")
    slab_scale: float = constant("slab_scale")
    diagonal_rate: float | None = constant("diagonal_rate", optional=True)
    nominal: np.ndarray | None = constant("edge_nominal", "pair", optional=True)


@dataclass(frozen=True)
class GroupEdgePrior(Recorded):
    """Prior of the edges of single groups.

    Attributes
    ----------
    prior : (pairs,) ndarray of float
        Prior probability of each edge in a given group, which the model implies; the same in all groups.
    """

    prior: np.ndarray = constant("group_edge_prior", "pair")


@dataclass(frozen=True)
class RelationPrior(Recorded):
    """Prior of the differences of edges between groups.

    Attributes
    ----------
    prior : (pairs,) ndarray of float
        Prior probability that a pair differs between groups, which the model implies.
    """

    prior: np.ndarray = constant("difference_prior", "pair")


@dataclass(frozen=True)
class RelationScales(Recorded):
    """Spike-and-slab prior of the elements of the precision matrices of several groups.

    Attributes
    ----------
    edge, difference : (pairs,) ndarray of float
        Probability of an edge, and of a difference if it is there, before matrices are restricted to be positive definite.
    spike_scale, slab_scale : float
        Standard deviations of the shared part without and with an edge.
    equal_scale, difference_scale : float
        Standard deviations of contrasts without and with a difference.
    """

    edge: np.ndarray = constant("shared_nominal", "pair")
    difference: np.ndarray = constant("difference_nominal", "pair")
    spike_scale: float = constant("shared_spike_scale")
    slab_scale: float = constant("shared_slab_scale")
    equal_scale: float = constant("equal_scale")
    difference_scale: float = constant("difference_scale")


@dataclass(frozen=True)
class ImputedTables(Recorded):
    """Completed tables, each of which has a graph of its own; ``imputation`` of a draw says which one it belongs to.

    Attributes
    ----------
    means : (tables, p) ndarray of float
        Means of the columns, standardised by the observed values.
    """

    means: np.ndarray = constant("imputed_mean", ("completed_table", "node"))


@dataclass(frozen=True)
class RowGroups(Recorded):
    """Groups of the rows of a table.

    Attributes
    ----------
    index : (n,) ndarray of int
        Position of the group of each row.
    """

    index: np.ndarray = constant("row_group", "observation")


@dataclass(frozen=True)
class EdgeProducts(Recorded):
    """Posterior probabilities of edges that are products of probabilities of arcs.

    Attributes
    ----------
    present, absent : (pairs,) ndarray of float
        Probabilities of presence and absence, each accurate near zero.
    resolution : float, optional
        Smallest probability that can be told from zero.
    """

    present: np.ndarray = constant("edge_present", "pair")
    absent: np.ndarray = constant("edge_absent", "pair")
    resolution: float | None = constant("edge_resolution", optional=True)


@dataclass(frozen=True)
class Visited(Recorded):
    """Edges or arcs whose weights were kept; those of all others are zero.

    Attributes
    ----------
    index : (kept,) ndarray of int
        Their positions among all edges or arcs.
    """

    index: np.ndarray = constant("visited_index", "visited_pair")


@dataclass(frozen=True)
class ArcEnds(_Ends):
    """Columns that each arc of a directed graph joins.

    Attributes
    ----------
    source, target : (arcs,) ndarray of int
        Positions of parent (predictor) and child (response) among the columns.
    position : (p,) ndarray of int, optional
        0, 1, ...: in another order if the columns of a result were sorted.
    """

    source: np.ndarray = constant("arc_source", "ordered_pair")
    target: np.ndarray = constant("arc_target", "ordered_pair")
    position: np.ndarray | None = constant("node_position", "node", optional=True)


@dataclass(frozen=True)
class ArcPrior(Recorded):
    """Prior of the arcs of a directed graph.

    Attributes
    ----------
    prior : (arcs,) ndarray of float
        Prior probability of each arc that the model implies.
    independent : int, optional
        1 if the parents of different columns are independent given the table.
    both : float, optional
        Prior probability of both arcs between two columns where they are not independent.
    negligible : float, optional
        Absolute coefficient up to which there is no arc; absent if an arc is a coefficient other
        than zero.
    """

    prior: np.ndarray = constant("arc_prior", "ordered_pair")
    independent: int | None = constant("arc_independent", optional=True)
    both: float | None = constant("arc_prior_both", optional=True)
    negligible: float | None = constant("negligible", optional=True)


@dataclass(frozen=True)
class Acyclic(Recorded):
    """Whether the arcs of each draw form a directed acyclic graph.

    Attributes
    ----------
    acyclic : int
        1 if they do.
    identified : int, optional
        1 if the model tells Markov equivalent graphs apart by something other than their prior, such as noise that is not
        normal or whose variances are equal; absent if it does not.
    """

    acyclic: int = constant("arc_acyclic")
    identified: int | None = constant("arc_identified", optional=True)


@dataclass(frozen=True)
class AcyclicEdges(Recorded):
    """Undirected graphs without a cycle: trees and forests.

    Attributes
    ----------
    acyclic : int
        1.
    """

    acyclic: int = constant("edge_acyclic")


@dataclass(frozen=True)
class CompositeLikelihood(Recorded):
    """Whether the likelihood of a model is a composite one, such as a pseudo-likelihood.

    Attributes
    ----------
    composite : int, optional
        1 if it is, `NODEWISE` if it is one of graphs alone, whose edges have no weights; absent otherwise.
    """

    composite: int | None = constant("composite_likelihood", optional=True)


@dataclass(frozen=True)
class GraphsByScore(Recorded):
    """Graphs that are weighed by the exponential of a score which is no marginal likelihood.

    Attributes
    ----------
    by_score : int
        1.
    """

    by_score: int = constant("graphs_by_score")


def is_nodewise(constants) -> bool:
    """Whether a result (or its constants) is of regressions of columns on their neighbours, without weights of edges."""
    return CompositeLikelihood.read(constants).composite == NODEWISE


def with_fixed(
    values: "ArrayLike", present: "ArrayLike", absent: "ArrayLike", least: float = 0.0
) -> np.ndarray:
    """Prior probabilities that are 1 and 0 exactly where a line is fixed, and nowhere else.

    Sums and averages are rounded: they make 0.99999999999999 of a required arc, and 0 or 1 of a free one
    whose probability is near these.

    Parameters
    ----------
    values : array_like of float
        Probabilities as they were computed.
    present, absent : array_like of bool
        Which lines are in all graphs and in none.
    least : float
        Distance from 0 and 1 that free lines keep, if it is more than the smallest possible one.

    Returns
    -------
    numpy.ndarray
    """
    low = max(least, float(np.finfo(float).tiny))
    high = min(1.0 - least, float(np.nextafter(1.0, 0.0)))
    return np.where(present, 1.0, np.where(absent, 0.0, np.clip(values, low, high)))
