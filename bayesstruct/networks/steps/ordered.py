"""Step of the graph of a Bayesian network under the order-modular prior, and of its parameters."""

import numpy as np
import pymc as pm

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import is_op
from bayesstruct.networks.priors.dag import OrderDAGRV
from bayesstruct.networks.recognition.network import PARAMETERS, dependents, drawn_network
from bayesstruct.networks.recognition.parameters import parameters_of, problem_of
from bayesstruct.networks.steps.complete import NetworkMCMC
from bayesstruct.networks.steps.graphs import OrderGraphs

__all__ = ["OrderNetworkMCMC"]

_SUPPORTED = (
    'Supported is the graph, with the prior "order", of one observed GaussianNetwork or DiscreteNetwork and its '
    "parameters, on which nothing else depends; bs.models.bayesian_network makes them"
)


@dataclass_state
class OrderNetworkMCMCState(StepMethodState):
    """State of a step that remembers the order of its variables."""

    order: np.ndarray


@register_step(before=NetworkMCMC)
class OrderNetworkMCMC(GibbsStep):
    """Draws of graph and parameters of a Bayesian network under the order-modular prior.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` with the prior ``"order"`` and the parameters of a
    :class:`bayesstruct.distributions.GaussianNetwork` or :class:`bayesstruct.distributions.DiscreteNetwork`. One call draws a graph,
    parameters integrated out, then the parameters given the graph. Up to 14 variables the graph is an
    independent draw from its exact posterior (Koivisto and Sood 2004). Beyond, or if `candidates` is given, it is drawn
    given an order of the variables that moves by Markov chain Monte Carlo (Friedman and Koller 2003).

    Parameters
    ----------
    sweeps : int, default 1
        Of the order, each of which tries some three moves for each variable.
    candidates : int, optional
        Candidate parents of each variable to begin with; 7 beyond 14 variables. Graphs whose parent sets have more
        than one parent outside the candidates are not visited (:func:`bayesstruct.solvers.search_tables`).

    Raises
    ------
    ValueError
        If the graph is not that of a network that can be drawn exactly.

    Notes
    -----
    Statistics of each draw: ``n_arcs``; ``log_score``, the sum of the local scores and log prior
    weights of the graph, without the number of its orders; and ``left_out``, as of
    :class:`bayesstruct.steps.NetworkMCMC`, given the order.

    References
    ----------
    Friedman, N. and Koller, D. (2003). Being Bayesian about network structure. *Machine Learning* 50, 95-125.

    Koivisto, M. and Sood, K. (2004). Exact Bayesian structure discovery in Bayesian networks. *JMLR* 5,
    549-573.
    """

    name = "order_network_mcmc"
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {
        "n_arcs": (int, []),
        "log_score": (float, []),
        "left_out": (float, []),
    }
    _state_class = OrderNetworkMCMCState

    def prepare(self, model, drawn, sweeps=1, candidates=None):
        """Recognise the network, and set its sampler up."""
        plural = "graphs with the prior 'order'"
        network = drawn_network(model, drawn, OrderDAGRV, plural, _SUPPORTED, _is_supported)
        self.family = parameters_of(network)
        self.order, self.dag = _no_order(), network.dag.name
        problem = problem_of(network, self.family.score)
        self.graphs = OrderGraphs(problem, int(sweeps), candidates)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.order = _no_order()

    def step(self, point):
        """Draw graph and parameters once."""
        point = dict(point)
        graph = np.array(point[self.dag], np.int8)
        self.order, graph, log_score = self.graphs.move(self.rng, self.order, graph)
        self.family.draw(self.rng, graph, point)
        point[self.dag] = graph
        stats = {
            "n_arcs": int(graph.sum()),
            "log_score": log_score,
            "left_out": self.graphs.left_out(self.rng, graph, self.order),
        }
        return point, [stats]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for graphs with the order-modular prior, and for parameters of their networks."""
        if is_op(var, OrderDAGRV):
            return Competence.IDEAL
        model = pm.Model.get_context(error_if_none=False)
        if model is None or not is_op(var, PARAMETERS):
            return Competence.INCOMPATIBLE
        graphs = [rv for rv in model.free_RVs if is_op(rv, OrderDAGRV)]
        own = any(var in dependents(model, graph) for graph in graphs)
        return Competence.IDEAL if own else Competence.INCOMPATIBLE


def _no_order():
    return np.empty(0, np.int64)


def _is_supported(network):
    return network.conjugate and network.missing is None
