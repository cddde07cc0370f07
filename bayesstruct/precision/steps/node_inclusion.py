"""Exact Gibbs step of the nodes that may have edges."""

import numpy as np

from pymc.step_methods.compound import Competence

from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import NotRecognized, is_op
from bayesstruct.precision.priors.node_inclusion import NodeInclusionRV
from bayesstruct.precision.recognition.labels import IncludedNodes
from bayesstruct.precision.steps.gibbs import PrecisionGibbs

__all__ = ["NodeInclusionGibbs"]


@register_step(before=PrecisionGibbs)
class NodeInclusionGibbs(GibbsStep):
    """Draw which nodes may have edges given the precision matrix, the indicators of edges summed out; then these.

    Assigned by ``pm.sample`` to variables with the prior :class:`bayesstruct.distributions.NodeInclusion`.

    Raises
    ------
    ValueError
        If something else than one precision matrix and its edges depends on the nodes.
    """

    name = "node_inclusion_gibbs"
    default_blocked = False
    stats_dtypes_shapes: dict = {"n_included": (int, [])}

    def prepare(self, model, drawn):
        """Recognise the matrix and the edges."""
        [included] = drawn
        try:
            self.nodes = IncludedNodes(model, included, self.compile_kwargs)
        except NotRecognized as reason:
            raise ValueError(f"{included.name!r} cannot be drawn exactly: {reason}") from None

    def step(self, point):
        """Draw the nodes one after the other, then the edges."""
        from bayesstruct.precision.kernels.node_inclusion import draw_included
        from bayesstruct.precision.kernels.prior import draw_edges

        point, nodes = dict(point), self.nodes
        included = np.array(point[nodes.name], dtype=np.int64)
        prior, K = nodes.prior(point), nodes.matrix(point)
        draw_included(self.rng, K, included, *prior)
        point[nodes.name] = included
        if nodes.edge is not None:
            point[nodes.edge] = draw_edges(self.rng, K, nodes.probability(point), *prior[2:])
        return point, [{"n_included": int(included.sum())}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for indicators of nodes."""
        return Competence.IDEAL if is_op(var, NodeInclusionRV) else Competence.INCOMPATIBLE
