"""Step of a random graph whose data are regressions of columns on their neighbours."""

from typing import TYPE_CHECKING

import numpy as np

from pymc.step_methods.compound import Competence

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import (
    check_drawn,
    is_claimed,
    only_one,
    parameters,
    refusals,
)
from bayesstruct.precision.priors.graphs import STEP, RandomGraphRV
from bayesstruct.precision.recognition.graphs import GraphPart, graph_part

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["GraphJumps"]

_SUPPORTED = (
    "Supported is a RandomGraph on which nothing but one observed NeighbourRegressions depends"
)
_COLUMNS = 100  # for each of which a draw takes another round


@register_step
class GraphJumps(GibbsStep):
    """Draws of a graph in continuous time, without rejections, and of the common probability of its edges.

    Assigned by ``pm.sample`` to the edges of :func:`bayesstruct.models.gaussian_graphical` with
    ``prior="pseudo_likelihood"``. A round proposes to move ends of edges to similar columns (Metropolis-Hastings), and then
    lets the graph change for a unit of time, in which every pair is drawn anew once on average, given all others; only changes cost
    work. Both leave the posterior distribution of the model invariant: what is approximate is its likelihood. A common edge probability with a beta
    distribution is drawn first.

    Parameters
    ----------
    rounds : int, optional
        Of one draw; by default one for each hundred columns, and at least one.
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

    def prepare(self, model, drawn, *, rounds: int | None = None, swaps: float = 5.0):
        """Find what the graph depends on."""
        edge = only_one(drawn, RandomGraphRV, "graphs", _SUPPORTED)
        with refusals(edge, _SUPPORTED):
            part = graph_part(model, edge)
            given = [v for v in (part.edge, part.share) if v is not None]
            check_drawn([v for v in given if v in drawn], drawn)
        self.edge = model.rvs_to_values[edge].name
        self.share = None
        if part.share in drawn:
            self.share = model.rvs_to_values[part.share].name
        self.statistic = f"{edge.name}_inclusion"
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
        point, sampler = dict(point), self.sampler
        sampler.load(point, point[self.edge])
        if self.share is not None:
            point[self.share] = sampler.draw_share(self.rng, point, point[self.edge])
        changes, moves = sampler.draw(self.rng, point)
        point[self.edge] = sampler.known.copy()
        stats = {"n_edges": int(point[self.edge].sum()), "changes": changes, "moves": moves}
        return point, [stats | {self.statistic: sampler.average.copy()}]

    @staticmethod
    def competence(var: "TensorVariable", has_grad: bool) -> Competence:
        """Ideal for the edges of such a graph, and for their common probability."""
        return Competence.IDEAL if is_claimed(var, STEP) else Competence.INCOMPATIBLE


class GraphSampler:
    """Arrays that the kernels work on, and draws.

    The gains of a node are computed from its neighbours alone, so that what is remembered here is a function of
    the graph: a run that is continued from a point goes on bit for bit.
    """

    def __init__(self, model, part: GraphPart, compile_kwargs=None, rounds=None, swaps=5.0):
        from bayesstruct.precision.kernels.graph_jumps import make_pairs
        from bayesstruct.precision.kernels.nodewise import make_work

        self.p = int(observed_values(model, part.correlation).eval(mode="FAST_COMPILE").shape[0])
        self.rounds = max(1, self.p // _COLUMNS) if rounds is None else int(rounds)
        self.swaps = float(swaps)
        self.upper = np.triu_indices(self.p, 1)
        self.free = np.ones(len(self.upper[0]), bool) if part.free is None else part.free
        shapes = () if part.share is None else parameters(part.share)
        self.prior = Expressions(model, [part.probability], compile_kwargs, user=part.edge.name)
        self.shapes = Expressions(model, list(shapes), compile_kwargs)
        tensors = [observed_values(model, part.correlation), part.n]
        self.data = Expressions(model, tensors, compile_kwargs)
        self.average = np.empty(len(self.upper[0]), np.float32)
        self.graph, self.gains = np.zeros((self.p, self.p), np.int8), np.zeros((self.p, self.p))
        self.log_odds = np.zeros((self.p, self.p))
        self.work, self.pairs = make_work(self.p), make_pairs(self.p)
        self.forget()

    def forget(self) -> None:
        """Read the table and compute the gains anew."""
        self.target = self.known = self.probability = None

    def load(self, point: dict, edges: np.ndarray) -> None:
        """Bring table and gains up to date with a graph."""
        from bayesstruct.precision.kernels.graph_jumps import partner_sums
        from bayesstruct.precision.kernels.nodewise import make_target, set_graph, update_gains

        if self.target is None:
            correlation, n = self.data(point)
            correlation = np.array(correlation, float)
            self.target = make_target(correlation, float(n))
            self.partners = partner_sums(correlation)
        if self.known is None or not np.array_equal(self.known, edges):
            set_graph(np.asarray(edges), self.graph)
            update_gains(np.arange(self.p), self.graph, self.target, self.gains, self.work)
            self.known = np.array(edges)

    def draw_share(self, rng, point: dict, edges: np.ndarray) -> np.ndarray:
        """Draw the log odds of the common edge probability given the graph."""
        alpha, beta = (float(value) for value in self.shapes(point))
        present, pairs = float(edges[self.free].sum()), int(self.free.sum())
        # Of two gamma variables, so that neither end rounds to an infinite log odds.
        one, other = (rng.standard_gamma(v) for v in (alpha + present, beta + pairs - present))
        return np.asarray(np.log(one) - np.log(other))

    def draw(self, rng, point: dict) -> tuple[int, int]:
        """Draw the graph; return how often pairs changed, and how many ends were moved."""
        from bayesstruct.precision.kernels.graph_jumps import jump, swap

        self.set_prior(point)
        state = (self.graph, self.gains, self.log_odds, self.target)
        changes, moves, average = 0, 0, np.zeros(len(self.average))
        for _ in range(self.rounds):
            moves += swap(rng, *state, self.partners, self.swaps, self.pairs, self.work)
            changes += jump(rng, *state, 1.0, self.pairs, self.average, self.work)
            average += self.average
        self.average = (average / self.rounds).astype(np.float32)
        self.known = self.graph[self.upper]
        return changes, moves

    def set_prior(self, point: dict) -> None:
        """Bring the prior log odds up to date with a point."""
        [probability] = self.prior(point)
        if self.probability is None or not np.array_equal(self.probability, probability):
            self.probability = np.array(probability, float)
            with np.errstate(divide="ignore"):
                odds = np.log(self.probability) - np.log1p(-self.probability)
            self.log_odds[self.upper] = odds
            self.log_odds.T[self.upper] = odds
