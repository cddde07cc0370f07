"""Exact Gibbs step of the unknown blocks of columns."""

import numpy as np

from pymc.step_methods.compound import Competence

from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import NotRecognized, is_op, parameters
from bayesstruct.precision.priors.blocks import BlockEdgeProbabilitiesRV, BlockLabelsRV
from bayesstruct.precision.recognition.labels import Partition
from bayesstruct.precision.steps.gibbs import PrecisionGibbs

__all__ = ["BlocksGibbs"]

_CANDIDATES = (BlockLabelsRV, BlockEdgeProbabilitiesRV)


@register_step(before=PrecisionGibbs)
class BlocksGibbs(GibbsStep):
    """Draw the blocks of columns given the precision matrix, then the edges, then their probabilities.

    Assigned by ``pm.sample`` to variables with the priors :class:`bayesstruct.distributions.BlockLabels` and
    :class:`bayesstruct.distributions.BlockEdgeProbabilities`. The indicators of edges are summed out of the draws of the blocks.

    Raises
    ------
    ValueError
        If something else than one precision matrix and its edges depends on the blocks or the probabilities.
    """

    name = "blocks_gibbs"
    stats_dtypes_shapes: dict = {"n_blocks": (int, [])}

    def prepare(self, model, drawn):
        """Recognise the partitions that the variables belong to."""
        drawn = set(drawn)
        labels = [v for v in model.free_RVs if is_op(v, BlockLabelsRV)]
        labels = [v for v in labels if drawn & {v, parameters(v)[0]}]
        if alone := drawn - {w for v in labels for w in (v, parameters(v)[0])}:
            names = ", ".join(repr(v.name) for v in alone)
            raise ValueError(f"{names} cannot be drawn exactly: no blocks depend on them")
        try:
            self.parts = [Partition(model, v, self.compile_kwargs) for v in labels]
        except NotRecognized as reason:
            raise ValueError(f"the blocks cannot be drawn exactly: {reason}") from None
        self.draws_labels = [v in drawn for v in labels]
        self.draws_shares = [part.shares_rv in drawn for part in self.parts]

    def step(self, point):
        """Draw blocks, edges and probabilities in turn."""
        point, count = dict(point), 0
        for part, labels, shares in zip(
            self.parts, self.draws_labels, self.draws_shares, strict=True
        ):
            count += _draw(self.rng, part, point, labels, shares)
        return point, [{"n_blocks": count}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for blocks and their probabilities of edges."""
        return Competence.IDEAL if is_op(var, _CANDIDATES) else Competence.INCOMPATIBLE


def _draw(rng, part: Partition, point: dict, draws_labels: bool, draws_shares: bool) -> int:
    """Draw one partition in place in the point; return its number of blocks."""
    from bayesstruct.precision.kernels.blocks import draw_labels, draw_shares, edge_matrix
    from bayesstruct.precision.kernels.prior import draw_edges

    K, (shares, most, concentration, *scales) = part.matrix(point), part.prior(point)
    labels = np.array(point[part.name], dtype=np.int64)
    if draws_labels:
        draw_labels(rng, K, labels, shares, most, concentration, *scales)
        point[part.name] = labels
    if draws_shares:
        draw_shares(rng, K, labels, shares, *part.shapes(point), *scales)
        point[part.shares] = np.log(shares) - np.log1p(-shares)
    if part.edge is not None:
        point[part.edge] = draw_edges(rng, K, edge_matrix(labels, shares), *scales)
    return int(labels.max()) + 1
