"""Recognise the indicators of nodes that may have edges, and evaluate their prior at a point."""

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.recognition import (
    NotRecognized,
    check_childless,
    children_of,
    is_op,
    parameters,
)
from bayesstruct.precision.kernels.cholesky import unpack_cholesky
from bayesstruct.precision.priors.edges import EdgesRV
from bayesstruct.precision.priors.node_inclusion import NodeSpikeSlabRV

__all__ = ["IncludedNodes"]


class IncludedNodes:
    """The indicators of nodes of a model, with what they are drawn given.

    Parameters
    ----------
    model : pymc.Model
    included : TensorVariable
        Variable with the prior `NodeInclusion`.
    compile_kwargs : dict, optional

    Raises
    ------
    NotRecognized
        If something else than one precision matrix and its edges depends on the indicators.
    """

    def __init__(self, model, included, compile_kwargs=None):
        self.edge, self.precision = None, None
        for child in children_of(model, included):
            if is_op(child, NodeSpikeSlabRV) and self.precision is None:
                self.precision = model.rvs_to_values[child].name
            elif is_op(child, EdgesRV) and self.edge is None:
                check_childless(model, child)
                self.edge = model.rvs_to_values[child].name
            else:
                raise NotRecognized(f"{child.name!r} depends on {included.name!r}")
        if self.precision is None:
            raise NotRecognized(f"no precision matrix has the nodes {included.name!r}")
        self.name = model.rvs_to_values[included].name
        self._parameters = Expressions(model, list(parameters(included)), compile_kwargs)

    def prior(self, point: dict) -> tuple:
        """Prior log odds of nodes and of edges between them, and the two scales."""
        from bayesstruct.precision.kernels.odds import log_odds_matrix

        nodes, probability, spike, slab, _ = self._parameters(point)
        odds = np.log(nodes) - np.log1p(-nodes)
        return odds, log_odds_matrix(np.array(probability, float)), float(spike), float(slab)

    def matrix(self, point: dict) -> np.ndarray:
        """Precision matrix at a point."""
        packed = point[self.precision]
        p = round((np.sqrt(8 * packed.size + 1) - 1) / 2)
        return unpack_cholesky(packed, p)[0]

    def probability(self, point: dict) -> np.ndarray:
        """Nominal probability of each edge at a point."""
        z = point[self.name]
        return self._parameters(point)[1] * np.outer(z, z)
