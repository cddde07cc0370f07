"""Recognise labels of nodes that a spike-and-slab prior depends on, and evaluate their prior at a point."""

import numpy as np

from pymc.logprob.transforms import LogOddsTransform

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.recognition import (
    NotRecognized,
    check_childless,
    children_of,
    is_op,
    parameters,
)
from bayesstruct.precision.kernels.cholesky import unpack_cholesky
from bayesstruct.precision.priors.blocks import (
    BlockEdgeProbabilitiesRV,
    BlockLabelsRV,
    BlockSpikeSlabRV,
)
from bayesstruct.precision.priors.edges import EdgesRV
from bayesstruct.precision.priors.node_inclusion import NodeInclusionRV, NodeSpikeSlabRV
from bayesstruct.precision.recognition.parts import has_transform

__all__ = ["IncludedNodes", "Partition", "labels_of"]


_STARTS = 20  # random partitions that a climb begins from


class _Labels:
    """Labels of nodes of a model, with the matrix and the edges whose prior depends on them.

    Parameters
    ----------
    model : pymc.Model
    labels : TensorVariable
    compile_kwargs : dict, optional

    Attributes
    ----------
    name, precision : str
        Names of the value variables.
    edge : str or None

    Raises
    ------
    NotRecognized
        If something else than one precision matrix and its edges depends on the labels.
    """

    matrix_type: type

    def __init__(self, model, labels, compile_kwargs=None):
        self.edge, self.precision = None, None
        for child in children_of(model, labels):
            if is_op(child, self.matrix_type) and self.precision is None:
                self.precision = model.rvs_to_values[child].name
            elif is_op(child, EdgesRV) and self.edge is None:
                check_childless(model, child)
                self.edge = model.rvs_to_values[child].name
            else:
                raise NotRecognized(f"{child.name!r} depends on {labels.name!r}")
        if self.precision is None:
            raise NotRecognized(f"no precision matrix depends on {labels.name!r}")
        self.name = model.rvs_to_values[labels].name
        self.parameters = Expressions(model, list(parameters(labels)), compile_kwargs)

    def matrix(self, point: dict) -> np.ndarray:
        """Precision matrix at a point."""
        packed = point[self.precision]
        p = round((np.sqrt(8 * packed.size + 1) - 1) / 2)
        return unpack_cholesky(packed, p)[0]

    def climb(self, point: dict) -> None:
        """Give each node its most probable label given the matrix, in place in the point."""
        raise NotImplementedError


class IncludedNodes(_Labels):
    """Indicators with the prior `NodeInclusion`."""

    matrix_type = NodeSpikeSlabRV

    def prior(self, point: dict) -> tuple:
        """Prior log odds of nodes and of edges between them, and the two scales."""
        from bayesstruct.precision.kernels.odds import log_odds_matrix

        nodes, probability, spike, slab, _ = self.parameters(point)
        odds = np.log(nodes) - np.log1p(-nodes)
        return odds, log_odds_matrix(np.array(probability, float)), float(spike), float(slab)

    def probability(self, point: dict) -> np.ndarray:
        """Nominal probability of each edge at a point."""
        z = point[self.name]
        return self.parameters(point)[1] * np.outer(z, z)

    def climb(self, point: dict) -> None:
        """Include each node where that is the more probable."""
        from bayesstruct.precision.kernels.node_inclusion import climb_included

        included = np.array(point[self.name], dtype=np.int64)
        climb_included(self.matrix(point), included, *self.prior(point))
        point[self.name] = included


class Partition(_Labels):
    """Labels with the prior `BlockLabels`, and the probabilities of edges within and between blocks.

    Attributes
    ----------
    shares : str or None
        Name of the value variable of the probabilities; None if something else depends on them.
    """

    matrix_type = BlockSpikeSlabRV

    def __init__(self, model, labels, compile_kwargs=None):
        super().__init__(model, labels, compile_kwargs)
        self.shares_rv = parameters(labels)[0]
        if not is_op(self.shares_rv, BlockEdgeProbabilitiesRV):
            raise NotRecognized(
                f"the probabilities of edges of {labels.name!r} are not of this prior"
            )
        free = self.shares_rv in model.free_RVs
        if free and not has_transform(model, self.shares_rv, LogOddsTransform):
            raise NotRecognized(f"{self.shares_rv.name!r} does not have its default transform")
        users = {labels.name, *(v for v in (self.precision, self.edge) if v)}
        for child in children_of(model, self.shares_rv):
            value = model.rvs_to_values[child].name if child in model.rvs_to_values else child.name
            if value not in users:
                raise NotRecognized(f"{child.name!r} depends on {self.shares_rv.name!r}")
        self.shares = model.rvs_to_values[self.shares_rv].name
        shapes = list(parameters(self.shares_rv))[:2]
        self._shapes = Expressions(model, shapes, compile_kwargs)

    def shapes(self, point: dict) -> list[np.ndarray]:
        """Shapes of the beta distributions of the probabilities."""
        return [np.array(v, float) for v in self._shapes(point)]

    def prior(self, point: dict) -> tuple:
        """Probabilities of edges, maximum number of blocks, concentration, and the two scales."""
        shares, _, most, concentration, spike, slab, _ = self.parameters(point)
        scales = float(concentration), float(spike), float(slab)
        return np.array(shares, float), int(most), *scales

    def climb(self, point: dict) -> None:
        """Improve the partition by moves of single columns, then the probabilities of edges."""
        from bayesstruct.precision.kernels.blocks import best_labels, best_shares

        labels, K = np.array(point[self.name], dtype=np.int64), self.matrix(point)
        shares, *rest = self.prior(point)
        best_labels(np.random.default_rng(1), K, labels, shares, *rest, _STARTS)
        best_shares(K, labels, shares, *self.shapes(point), *rest[2:])
        point[self.name] = labels
        point[self.shares] = np.log(shares) - np.log1p(-shares)


def labels_of(model) -> list[_Labels]:
    """Return all labels of a model whose steps draw them with a precision matrix."""
    kinds: dict[type, type] = {NodeInclusionRV: IncludedNodes, BlockLabelsRV: Partition}
    return [kind(model, v) for v in model.free_RVs for rv, kind in kinds.items() if is_op(v, rv)]
