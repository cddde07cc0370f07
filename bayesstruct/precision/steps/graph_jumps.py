"""Step of a random graph whose data are regressions of columns on their neighbours."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from pymc.step_methods.compound import Competence

from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import (
    check_drawn,
    is_claimed,
    only_one,
    refusals,
)
from bayesstruct.precision.priors.graphs import EDGE, STEP, RandomGraphRV
from bayesstruct.precision.recognition.graphs import GraphPart, graph_part, graph_parts
from bayesstruct.precision.steps.graph_sampler import GraphSampler

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["GraphJumps"]

_SUPPORTED = (
    "Supported is a RandomGraph on which nothing but one observed NeighbourRegressions depends"
)


@register_step
class GraphJumps(GibbsStep):
    """Draws of a graph in continuous time, without rejections, and of the common probability of its edges.

    Assigned by ``pm.sample`` to the edges of :func:`bayesstruct.models.gaussian_graphical` with
    ``prior="pseudo_likelihood"``. A round proposes to move ends of edges to similar columns (Metropolis-Hastings), and then
    lets the graph change for a unit of time, in which every pair is drawn anew once on average, given all others; only changes cost
    work. Both leave the posterior distribution of the model invariant: what is approximate is its likelihood. A common edge probability with a beta
    distribution is drawn first. Where the table had missing values, all this is done for the graph of each completed table, and
    the number of the one that is looked at is drawn with equal probabilities.

    Parameters
    ----------
    rounds : int, optional
        Of one draw; by default one for each 250 columns, and at least one.
    swaps : float, default 5
        Proposals in a round to move an end of an edge, for each edge.

    Raises
    ------
    ValueError
        If something else in the model depends on the graph.

    Notes
    -----
    Statistics of each draw: ``n_edges``, the number of edges; ``changes``, how often a pair changed; ``moves``, how many
    ends of edges were moved; and ``<name of the edges>_inclusion``, float32, for each pair the mean over the time of the draw of its
    conditional probability given all others. The expectation of the last is the posterior probability of the edge, as that of the
    0/1 indicator is, with a smaller variance; :func:`bayesstruct.edge_table` and other readers average it.

    The moves and why they are exact are in :mod:`bayesstruct.precision.kernels.graph_jumps`.
    """

    name = STEP
    default_tune_steps = 50
    stats_dtypes_shapes: dict = {"n_edges": (int, []), "changes": (int, []), "moves": (int, [])}

    def prepare(self, model, drawn, *, rounds=None, swaps=5.0):
        """Find what the graph depends on."""
        edge = only_one(drawn, RandomGraphRV, "graphs", _SUPPORTED)
        with refusals(edge, _SUPPORTED):
            part = graph_part(model, edge)
            given = [v for v in (part.edge, part.share, part.imputation) if v is not None]
            check_drawn([v for v in given if v in drawn or v is edge], drawn)
        self.edge = model.rvs_to_values[edge].name
        self.share = None
        if part.share in drawn:
            self.share = model.rvs_to_values[part.share].name
        self.imputation = None
        if part.imputation is not None:
            self.imputation = model.rvs_to_values[part.imputation].name
        self.statistic = f"{edge.name if part.imputation is None else EDGE}_inclusion"
        self.sampler = GraphSampler(model, part, self.compile_kwargs, rounds, swaps)
        pairs = len(self.sampler.average)
        # PyMC's traces go by the type alone, others by the shape.
        own = {self.statistic: (np.float32, [pairs])}
        self.stats_dtypes_shapes: dict = type(self).stats_dtypes_shapes | own
        kind = np.dtype((np.float32, (pairs,)))
        self.stats_dtypes = [self.stats_dtypes[0] | {self.statistic: kind}]

    def setup_chain(self, rng: np.random.Generator, tune: int, draws: int) -> None:
        """Take the generator of the chain, and forget the table and graph of the last one."""
        super().setup_chain(rng, tune, draws)
        self.sampler.forget()

    def step(self, point: dict) -> tuple[dict, list[dict]]:
        """Draw the common edge probability and the graph."""
        if self.imputation is not None:
            return self._step_imputed(dict(point))
        point, sampler = dict(point), self.sampler
        sampler.load(point)
        if self.share is not None:
            point[self.share] = sampler.draw_share(self.rng, point)
        changes, moves = sampler.draw(self.rng, point)
        point[self.edge] = sampler.known
        stats = {"n_edges": int(point[self.edge].sum()), "changes": changes, "moves": moves}
        return point, [stats | {self.statistic: sampler.average.copy()}]

    def _step_imputed(self, point: dict) -> tuple[dict, list[dict]]:
        """Draw the graphs of all completed tables, and which of them is looked at."""
        sampler, changes, moves = self.sampler, 0, 0
        graphs, average = point[self.edge].copy(), np.zeros(len(sampler.average))
        if self.share is not None:
            shares = [sampler.draw_share(self.rng, point, at) for at in range(len(graphs))]
            point[self.share] = np.array(shares)
        for at in range(len(graphs)):
            sampler.load(point, at)
            more, moved = sampler.draw(self.rng, point, at)
            changes, moves = changes + more, moves + moved
            graphs[at], average = sampler.known, average + sampler.average
        point[self.edge] = graphs
        number = self.rng.integers(len(graphs))
        point[self.imputation] = np.asarray(number, point[self.imputation].dtype)
        stats = {"n_edges": int(graphs[number].sum()), "changes": changes, "moves": moves}
        average = (average / len(graphs)).astype(np.float32)
        return point, [stats | {self.statistic: average}]

    @staticmethod
    def competence(var: "TensorVariable", has_grad: bool) -> Competence:
        """Ideal for the edges of such a graph, and for their common probability."""
        model = pm.Model.get_context(error_if_none=False)
        parts = {} if model is None else graph_parts(model)
        shares = [part.share for part in parts.values() if isinstance(part, GraphPart)]
        mine = is_claimed(var, STEP) or any(var is share for share in shares)
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
