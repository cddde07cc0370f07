"""Step of the graph of a Bayesian network and of its parameters.

The parameters are integrated out while the graph is drawn: independently of the last one where the sums over
all graphs can be kept (:class:`bayesstruct.exact.IndependentDraws`), otherwise by partition Markov chain Monte
Carlo (:mod:`bayesstruct.networks.kernels.samplers.partition_mcmc`). They are drawn from their exact distribution
given the graph afterwards. A draw of graph and parameters is thus one of their joint posterior.
"""

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import is_op
from bayesstruct.networks.priors.dag import DAGRV
from bayesstruct.networks.recognition.network import PARAMETERS, drawn_network
from bayesstruct.networks.recognition.parameters import parameters_of, problem_of
from bayesstruct.networks.steps.graphs import modular_graphs

__all__ = ["NetworkMCMC"]

_SUPPORTED = (
    "Supported are one observed GaussianNetwork with NoiseVariances, ArcWeights and Intercepts, or one "
    "observed DiscreteNetwork with ProbabilityTables, on which nothing else depends; "
    "bs.models.bayesian_network makes both"
)


@dataclass_state
class NetworkMCMCState(StepMethodState):
    """State of a step that remembers whether it has begun."""

    begun: bool


@register_step
class NetworkMCMC(GibbsStep):
    """Draws of the graph and the parameters of a Bayesian network.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` with the parameters of a
    :class:`bayesstruct.distributions.GaussianNetwork` or :class:`bayesstruct.distributions.DiscreteNetwork`. One call draws a graph,
    parameters integrated out, then the parameters given the graph. Up to 11 variables the graph is an
    independent draw from its exact posterior (:class:`bayesstruct.exact.IndependentDraws`). Beyond, or if
    `candidates` is given, it comes from `sweeps` sweeps of partition Markov chain Monte Carlo (Kuipers and
    Moffa 2017), each followed by cheap changes of single arcs (:mod:`bayesstruct.networks.kernels.samplers.partition_mcmc`) and by
    joint draws of the parents of variables that have to change together between good graphs, up to six
    (:mod:`bayesstruct.networks.kernels.samplers.parent_blocks`; Goudie and Mukherjee 2016).

    Parameters
    ----------
    sweeps : int, default 1
    candidates : int, optional
        Candidate parents of each variable to begin with; 7 beyond 14 variables. Graphs
        whose parent sets have more than one parent outside the candidates are not visited
        (:func:`bayesstruct.solvers.search_tables`).

    Raises
    ------
    ValueError
        If the graph is not that of a network that can be drawn exactly.

    Notes
    -----
    The first call of a Markov chain puts it at the end of a short search over orders from a random one, so
    that chains start in the region where the posterior is. With many rows the posterior may have several modes;
    chains go from one to the other if both are among the good graphs that searches found beforehand. If none does,
    ``bs.check`` says so.

    Statistics of each draw: ``n_arcs``; ``log_score``, the sum of the local scores and log prior weights of
    the graph; ``acceptance``, the share of the reversals of arcs that were accepted, 1 for
    independent draws; ``left_out``, an estimate of the odds of the parent sets that the candidates leave out, given
    the parents of the others, summed over the variables, which is made in one of 25 draws and zero in the others (its
    mean decides in ``bs.check``); and ``change``, the largest probability that one variable has other parents, or an arc the other
    direction, given the rest of the graph; of independent draws the probability of all other graphs. By it ``bs.check`` judges a
    graph that is the same in all draws.

    References
    ----------
    Goudie, R. J. B. and Mukherjee, S. (2016). A Gibbs sampler for learning DAGs. *JMLR* 17(30), 1-39. -- Kuipers,
    J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. *JASA* 112, 282-299.
    """

    name = "network_mcmc"
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {
        "n_arcs": (int, []),
        "log_score": (float, []),
        "acceptance": (float, []),
        "left_out": (float, []),
        "change": (float, []),
    }
    _state_class = NetworkMCMCState

    def prepare(self, model, drawn, sweeps=1, candidates=None):
        """Recognise the network, and set its sampler up."""
        network = drawn_network(model, drawn, DAGRV, "graphs", _SUPPORTED, _is_supported)
        self.family = parameters_of(network)
        problem = problem_of(network, self.family.score)
        self.begun, self.dag = False, network.dag.name
        self.graphs = modular_graphs(problem, int(sweeps), candidates)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun = False

    def step(self, point):
        """Draw graph and parameters once."""
        point = dict(point)
        graph = np.array(point[self.dag], np.int8)
        if not self.begun:
            graph, self.begun = self.graphs.start(self.rng, graph), True
        graph, share = self.graphs.move(self.rng, graph)
        self.family.draw(self.rng, graph, point)
        point[self.dag] = graph
        stats = {
            "n_arcs": int(graph.sum()),
            "log_score": self.graphs.log_score(graph),
            "acceptance": share,
            "left_out": self.graphs.left_out(self.rng, graph),
            "change": self.graphs.change(graph),
        }
        return point, [stats]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for graphs and parameters of networks.

        Were it to decline, samplers that know nothing of cycles would take them; so this step accepts
        all, and its constructor raises for those that it cannot draw.
        """
        return Competence.IDEAL if is_op(var, (DAGRV, *PARAMETERS)) else Competence.INCOMPATIBLE


def _is_supported(network):
    return network.conjugate and network.missing is None
