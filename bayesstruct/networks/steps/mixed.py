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

Where values are missing, they are drawn in turn with graph and parameters, and s, q and w are those of the completed table. A change may
then be reversible with respect to :math:`p(G) \prod e^{g_i}` with the evidences g of another completed table, for which tables of parent
sets are made once: it is accepted with the ratio of :math:`w_i e^{s_i - g_i}`.
"""

import math

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
from bayesstruct.networks.steps.mixed_chain import MixedChain
from bayesstruct.networks.steps.mixed_gaps import Completed, guided_moves
from bayesstruct.networks.steps.mixed_moves import IndependentMoves, PartitionMoves
from bayesstruct.networks.steps.ordered import OrderNetworkMCMC

__all__ = ["MixedNetworkMCMC"]

_SUPPORTED = (
    "Supported is one observed MixedNetwork, or IncompleteMixedNetwork with its MissingMixedValues, with MixedParameters of a "
    "DAG whose prior is modular, as "
    'bs.models.bayesian_network(table, score="mixed") makes them'
)
_INDEPENDENT = 9  # columns up to which all parent sets are scored
_INDEPENDENT_GAPS = 6  # the same where values are missing and tables are made anew for each draw
_CANDIDATES = 6  # parents of each column to begin with, beyond
_NAME = "mixed_network_mcmc"


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
        return IndependentMoves(problem)
    return PartitionMoves(problem, 1, _CANDIDATES if candidates is None else candidates)


def _moves_of(network, problem):
    """Return what returns the moves of the graph for one completed table."""
    return IndependentMoves if problem.d <= _INDEPENDENT_GAPS else guided_moves(network, problem)


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
    one given the completed table. Beyond, it is a move of partition Markov chain Monte Carlo under the evidences of one completed table, which
    is made once and is the same in all chains, corrected by those of the present table (a surrogate transition, Liu 2001); changes of single
    arcs visit graphs with other candidates.

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
            self.table = Completed(network, problem, _moves_of(network, problem))

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
