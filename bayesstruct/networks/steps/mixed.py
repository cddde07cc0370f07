r"""Step of Bayesian networks of columns of several kinds.

The posterior of graph and parameters is

.. math::

    p(G, \theta \mid x) \propto p(G) \prod_i e^{s_i(\pi_i)} \, q(\theta_i \mid \pi_i) \, w_i(\theta_i, \pi_i), \qquad
    w_i = \frac{p(x_i \mid \theta_i, x_\pi) \, p(\theta_i)}{e^{s_i(\pi_i)} \, q(\theta_i \mid \pi_i)},

with approximate log evidences s and a t distribution q about each mode. A change of the graph that is reversible
with respect to :math:`p(G) \prod e^{s_i}`, with new parameters from q for each column whose parents change, is accepted with the ratio
of the weights w of these columns. The posterior is then exact, whatever the approximation; a poor one costs acceptance. The
change has to be *reversible*, a chain that only leaves the distribution invariant is not enough: sweeps of several kinds of moves
are therefore taken apart, and each move is accepted or not for itself.

Where values are missing, they are drawn in turn with graph and parameters, and s, q and w are those of the completed table.
"""

import math

from typing import TYPE_CHECKING

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import check_drawn, is_claimed, is_op, only_one, refusals
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.priors.dag import DAGRV
from bayesstruct.networks.priors.incomplete_mixed import MissingMixedValuesRV
from bayesstruct.networks.priors.mixed_networks import MixedParametersRV
from bayesstruct.networks.recognition.mixed import mixed_network_of
from bayesstruct.networks.recognition.network import GRAPHS
from bayesstruct.networks.steps.complete import NetworkMCMC
from bayesstruct.networks.steps.graphs import IndependentGraphs, PartitionGraphs
from bayesstruct.networks.steps.mixed_gaps import ArcMoves, Completed
from bayesstruct.networks.steps.ordered import OrderNetworkMCMC

if TYPE_CHECKING:
    from bayesstruct.networks.kernels.scores.mixed import MixedScore

__all__ = ["MixedNetworkMCMC"]

_SUPPORTED = (
    "Supported is one observed MixedNetwork, or IncompleteMixedNetwork with its MissingMixedValues, with MixedParameters of a "
    "DAG whose prior is modular, as "
    'bs.models.bayesian_network(table, score="mixed") makes them'
)
_INDEPENDENT = 9  # columns up to which all parent sets are scored
_INDEPENDENT_GAPS = 6  # the same where values are missing and tables are made anew for each draw
_CANDIDATES = 6  # parents of each column to begin with, beyond
_FOUR = 4  # variables of a block that is drawn at random; there must be more
_NEAR = 0.25  # share of refreshed columns that are moved near their last parameters too
_NAME = "mixed_network_mcmc"


class _IndependentMoves(IndependentGraphs):
    """Graphs drawn independently of the last one."""

    def changes(self):
        """List changes of a graph, in place, that are reversible under the approximate posterior."""
        return [self._draw]

    def _draw(self, rng, graph):
        graph[:] = self.draws(rng)


class _PartitionMoves(PartitionGraphs):
    """Moves of a partition or of arcs of a graph, one kind at a time."""

    def changes(self):
        """List changes of a graph, in place, that are reversible under the approximate posterior."""
        d, blocks = self.tables.d, self.blocks
        moves = [
            self._of_partition(1, 0, 0),
            self._of_partition(0, 1, 0),
            self._of_partition(0, 0, 1),
        ]
        moves = moves * (d // 8 + 1) + ([self._four] if d > _FOUR else [])
        moves += [self._of_arcs(0, 1, 0)] * (d // 4) + [self._of_arcs(1, 0, 0)] * (d // 2)
        return [*moves, self._of_arcs(0, 0, d), *([self._block] if blocks else [])]

    def _of_partition(self, *counts):
        from bayesstruct.networks.kernels.samplers.partition_mcmc import Moves, sweep

        moves = Moves(*counts, 0)
        return lambda rng, graph: sweep(rng, self.tables, graph, moves)

    def _of_arcs(self, *counts):
        from bayesstruct.networks.kernels.samplers.structure_mcmc import Moves, sweep

        moves = Moves(*counts)
        return lambda rng, graph: sweep(rng, self.tables, graph, moves)

    def _four(self, rng, graph):
        from bayesstruct.networks.kernels.samplers.parent_blocks import draw_blocks

        draw_blocks(rng, self.tables, graph, _FOUR, 1)

    def _block(self, rng, graph):
        from bayesstruct.networks.kernels.samplers.parent_blocks import draw_block

        draw_block(rng, self.tables, graph, self.blocks[rng.integers(len(self.blocks))])


class MixedChain:
    """Graph and parameters of a network of columns of several kinds, moved by Markov chain Monte Carlo.

    Parameters
    ----------
    score : MixedScore
    graph : (d, d) int8 array
        Changed in place.
    theta : list of arrays, optional
        Free parameters of each column; drawn from the proposals if not given.
    rng : numpy.random.Generator
    """

    def __init__(self, score: "MixedScore", graph: np.ndarray, rng, theta=None):
        self.score, self.graph, self.rng = score, graph, rng
        self.fits = [score.fit(i, np.flatnonzero(own)) for i, own in enumerate(graph.T)]
        drawn = theta is None
        self.theta = [fit.draw(rng) for fit in self.fits] if drawn else theta
        self.weight = [f.log_weight(t) for f, t in zip(self.fits, self.theta, strict=True)]

    def move(self, change) -> float:
        """Propose a change of the graph; return the share of its columns whose new parameters were accepted, NaN without any.

        Parameters
        ----------
        change : callable
            Of a generator and a graph, which it changes in place; reversible under the approximate posterior.
        """
        new = self.graph.copy()
        change(self.rng, new)
        columns = np.flatnonzero((new != self.graph).any(axis=0))
        if not len(columns):
            return np.nan
        fits = [self.score.fit(int(i), np.flatnonzero(new[:, i])) for i in columns]
        theta = [fit.draw(self.rng) for fit in fits]
        weight = [fit.log_weight(t) for fit, t in zip(fits, theta, strict=True)]
        if not self._accepts(sum(weight) - sum(self.weight[i] for i in columns)):
            return 0.0
        self.graph[:] = new
        for a, i in enumerate(columns.tolist()):
            self.fits[i], self.theta[i], self.weight[i] = fits[a], theta[a], weight[a]
        return 1.0

    def refresh(self) -> None:
        """Move the parameters given the graph: from the proposals, and near the last ones."""
        for i, fit in enumerate(self.fits):
            theta = fit.draw(self.rng)
            weight = fit.log_weight(theta)
            if self._accepts(weight - self.weight[i]):
                self.theta[i], self.weight[i] = theta, weight
            if not fit.exact and self.rng.random() < _NEAR:
                self._move_near(i, fit)

    def _move_near(self, i, fit):
        theta = fit.move(self.rng, self.theta[i])
        if self._accepts(fit.log_target(theta) - fit.log_target(self.theta[i])):
            self.theta[i], self.weight[i] = theta, fit.log_weight(theta)

    def _accepts(self, log_ratio) -> bool:
        return log_ratio >= 0.0 or self.rng.random() < math.exp(log_ratio)

    def vector(self) -> np.ndarray:
        """Return the vector of all parameters."""
        out = np.zeros(self.score.layout.size)
        for fit, theta in zip(self.fits, self.theta, strict=True):
            fit.natural(theta, out)
        return out


class _Complete:
    """A complete table, with tables of parent sets that are made once."""

    def __init__(self, moves):
        self.moves = moves

    def begin(self, rng, point):
        """Nothing is to be filled in."""

    def graphs(self, point):
        """Return the moves of the graph."""
        return self.moves

    def end(self, rng, point, graph, vector):
        """Nothing is missing."""


def _moves(problem, candidates):
    """Return the moves of the graph of a complete table."""
    if candidates is None and problem.d <= _INDEPENDENT:
        return _IndependentMoves(problem)
    return _PartitionMoves(problem, 1, _CANDIDATES if candidates is None else candidates)


def _moves_once(problem):
    """Return the moves of the graph for one completed table."""
    return (_IndependentMoves if problem.d <= _INDEPENDENT_GAPS else ArcMoves)(problem)


@dataclass_state
class MixedNetworkMCMCState(StepMethodState):
    """State of a step that remembers whether it has begun."""

    begun: bool


@register_step(before=(NetworkMCMC, OrderNetworkMCMC))
class MixedNetworkMCMC(GibbsStep):
    """Draws of the graph, the parameters and the missing values of a Bayesian network of columns of several kinds.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` and the
    :class:`bayesstruct.distributions.MixedParameters` of an observed :class:`bayesstruct.distributions.MixedNetwork` or
    :class:`bayesstruct.distributions.IncompleteMixedNetwork`. Graphs
    are proposed under approximate evidences, with parameters from a t distribution about the mode of those columns whose
    parents change, and accepted so that the posterior of graph and parameters is exact. Up to 9 columns a proposal is independent of
    the last graph; beyond, it is a move of partition Markov chain Monte Carlo (Kuipers and Moffa 2017).

    Where values are missing, a call draws graph and parameters given the completed table, and then the missing values given both:
    those of a row together, from an independence chain, and one after the other, states from their conditional probabilities and
    numbers by slice sampling unless their distribution is normal. Up to 6 columns a proposal of the graph is independent of the last
    one given the completed table; beyond, it is a change of one arc.

    Parameters
    ----------
    candidates : int, optional
        Candidate parents of each variable to begin with; 6 beyond 9 columns. Graphs whose parent sets have more
        than one parent outside the candidates are not visited (:func:`bayesstruct.solvers.search_tables`). Not used if values are
        missing: all graphs are visited then.

    Raises
    ------
    ValueError
        If the graph is not that of such a network, or its prior is the order-modular one.

    Notes
    -----
    If values are missing, a chain begins by filling them with observed values of the same column, drawn at random.

    Statistics of each draw: ``n_arcs``; ``log_score``, the sum of the approximate log evidences and log prior weights of
    the graph; ``acceptance``, the share of proposed changes of parents that were accepted with their new parameters; and ``left_out``, as
    of :class:`bayesstruct.steps.NetworkMCMC`.

    References
    ----------
    Liu, J. S. (2001). *Monte Carlo Strategies in Scientific Computing*. Springer; section 9.4.3 (surrogate transitions). -- Kuipers,
    J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. *JASA* 112, 282-299.
    """

    name = _NAME
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {
        "n_arcs": (int, []),
        "log_score": (float, []),
        "acceptance": (float, []),
        "left_out": (float, []),
    }
    _state_class = MixedNetworkMCMCState

    def prepare(self, model, drawn, candidates=None):
        """Recognise the network, and set its sampler up."""
        dag = only_one(drawn, DAGRV, "graphs", _SUPPORTED)
        with refusals(dag, _SUPPORTED):
            network = mixed_network_of(model, dag)
            check_drawn(network.variables, drawn)
        self.begun, self.dag, self.parameters = False, dag.name, network.parameters.name
        op = dag.owner.op
        problem = NetworkProblem(tuple(map(str, op.names)), network.score(), op.prior, op.order)
        if network.missing is None:
            self.table = _Complete(_moves(problem, candidates))
        else:
            self.table = Completed(network, problem, _moves_once)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun = False

    def step(self, point):
        """Draw graph and parameters once."""
        point, theta = dict(point), None
        begun, self.begun = self.begun, True
        if not begun:
            self.table.begin(self.rng, point)
        graphs = self.table.graphs(point)
        score, graph = graphs.problem.score, np.array(point[self.dag], np.int8)
        if not begun:
            graph = np.array(graphs.start(self.rng, graph), np.int8)
        else:
            vector = np.asarray(point[self.parameters], float)
            fits = [score.fit(i, np.flatnonzero(own)) for i, own in enumerate(graph.T)]
            theta = [fit.free(vector) for fit in fits]
        chain = MixedChain(score, graph, self.rng, theta)
        accepted = [chain.move(change) for change in graphs.changes()]
        chain.refresh()
        vector = chain.vector()
        self.table.end(self.rng, point, chain.graph, vector)
        point[self.dag], point[self.parameters] = chain.graph, vector
        tried = [share for share in accepted if not math.isnan(share)]
        stats = {
            "n_arcs": int(graph.sum()),
            "log_score": graphs.log_score(chain.graph),
            "acceptance": sum(tried) / len(tried) if tried else 1.0,
            "left_out": graphs.left_out(self.rng, chain.graph),
        }
        return point, [stats]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for the parameters and missing values, and for graphs that have some."""
        own = is_op(var, (MixedParametersRV, MissingMixedValuesRV))
        if own or (is_op(var, GRAPHS) and is_claimed(var, _NAME)):
            return Competence.IDEAL
        return Competence.INCOMPATIBLE
