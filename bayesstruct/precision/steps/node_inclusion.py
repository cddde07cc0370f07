"""Exact Gibbs step of the nodes that may have edges."""

import numpy as np

from pymc.step_methods.compound import Competence

from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import NotRecognized, is_op
from bayesstruct.precision.kernels.cholesky import pack_cholesky, unpack_cholesky
from bayesstruct.precision.priors.node_inclusion import NodeInclusionRV
from bayesstruct.precision.recognition.labels import IncludedNodes
from bayesstruct.precision.recognition.parts import parts_of
from bayesstruct.precision.recognition.values import PartValues
from bayesstruct.precision.steps.gibbs import PrecisionGibbs

__all__ = ["NodeInclusionGibbs"]


@register_step(before=PrecisionGibbs)
class NodeInclusionGibbs(GibbsStep):
    """Draw which nodes may have edges given the precision matrix, the indicators of edges summed out; then these.

    Where the matrix is drawn too, and all that depends on it are tables of normal rows, nodes are also switched on or off together with
    their elements: given the matrix, a node with one strong element is all but certain to be included.

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
        self.values = self._values_of_rows(model)

    def _values_of_rows(self, model) -> PartValues | None:
        """Return the part around the matrix, or None if nodes are not switched with their elements."""
        for precision, part in parts_of(model).items():
            if isinstance(part, NotRecognized) or precision not in model.free_RVs:
                continue
            if model.rvs_to_values[precision].name != self.nodes.precision:
                continue
            if all(table.degrees is None and table.codes is None for table in part.tables):
                return PartValues(model, part, self.initial_point, self.compile_kwargs)
        return None

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain and forget the tables of the last one."""
        super().setup_chain(rng, tune, draws)
        self.forget()

    def forget(self) -> None:
        """Read the tables anew: they may have been exchanged."""
        if self.values is not None:
            self.values.tables = []

    def step(self, point):
        """Draw the nodes one after the other, then the edges."""
        from bayesstruct.precision.kernels.node_inclusion import draw_included
        from bayesstruct.precision.kernels.prior import draw_edges

        point, nodes = dict(point), self.nodes
        included = np.array(point[nodes.name], dtype=np.int64)
        prior, K = nodes.prior(point), nodes.matrix(point)
        draw_included(self.rng, K, included, *prior)
        point[nodes.name] = included
        if self.values is not None:
            K = self._switch(point, included, prior)
        if nodes.edge is not None:
            point[nodes.edge] = draw_edges(self.rng, K, nodes.probability(point), *prior[2:])
        return point, [{"n_included": int(included.sum())}]

    def _switch(self, point: dict, included: np.ndarray, prior: tuple) -> np.ndarray:
        """Switch nodes together with their elements, in place in the point; return the matrix."""
        from bayesstruct.precision.kernels.node_inclusion import switch_nodes

        values, name = self.values, self.nodes.precision
        values.load(point)
        for table, missing in zip(values.tables, values.missing, strict=True):
            if missing is not None:
                table.fill(point[missing])
        scatter, n = values.scatter(values.means(point))
        rate, work = values.prior(point).diagonal_rate, np.empty((4, values.p))
        K, covariance = unpack_cholesky(point[name], values.p)
        switch_nodes(self.rng, K, covariance, scatter, n, included, *prior, rate, work)
        point[name] = pack_cholesky(K)
        return K

    @staticmethod
    def competence(var, has_grad):
        """Ideal for indicators of nodes."""
        return Competence.IDEAL if is_op(var, NodeInclusionRV) else Competence.INCOMPATIBLE
