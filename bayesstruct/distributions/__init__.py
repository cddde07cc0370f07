"""Distributions: priors over structures, and what a structure says about data."""

from bayesstruct.distributions.edges import Edges, edges, partial_correlations
from bayesstruct.distributions.implied import (
    implied_edge_probability,
    implied_nonnegligible_probability,
)
from bayesstruct.distributions.precision import (
    EdgeProbability,
    GraphicalLasso,
    GraphicalSpikeSlab,
)
from bayesstruct.distributions.rows import (
    ColumnMeans,
    GraphicalNormal,
    IncompleteGraphicalNormal,
    MissingCells,
)

__all__ = [
    "ColumnMeans",
    "EdgeProbability",
    "Edges",
    "GraphicalLasso",
    "GraphicalNormal",
    "GraphicalSpikeSlab",
    "IncompleteGraphicalNormal",
    "MissingCells",
    "edges",
    "implied_edge_probability",
    "implied_nonnegligible_probability",
    "partial_correlations",
]
