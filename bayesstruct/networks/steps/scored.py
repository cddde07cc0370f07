"""Step of Bayesian networks whose scores are BIC or BDe, not marginal likelihoods with the BGe or BDeu prior."""

import numpy as np
import pymc as pm

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import is_op
from bayesstruct.networks.priors.discrete_network import EvenTablesRV
from bayesstruct.networks.recognition.network import FITTED, GRAPHS, drawn_network
from bayesstruct.networks.recognition.parameters import parameters_of, problem_of
from bayesstruct.networks.steps.complete import NetworkMCMC
from bayesstruct.networks.steps.graphs import OrderGraphs, modular_graphs
from bayesstruct.networks.steps.incomplete import IncompleteNetworkMCMC
from bayesstruct.networks.steps.ordered import OrderNetworkMCMC

__all__ = ["ScoredNetworkMCMC"]

_SUPPORTED = (
    "Supported are one observed FittedGaussianNetwork or FittedDiscreteNetwork with the parameters that "
    "bayesstruct.distributions.fitted has of the graph, or one observed DiscreteNetwork with EvenTables; "
    "bs.models.bayesian_network makes them"
)


@dataclass_state
class ScoredNetworkMCMCState(StepMethodState):
    """State of a step that remembers whether it has begun, and an order of its variables."""

    begun: bool
    order: np.ndarray


@register_step(before=(NetworkMCMC, OrderNetworkMCMC, IncompleteNetworkMCMC))
class ScoredNetworkMCMC(GibbsStep):
    """Draws of the graph of a Bayesian network by its BIC or BDe scores.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` whose parameters are those of greatest likelihood
    (:mod:`bayesstruct.networks.priors.fitted_networks`), or :class:`bayesstruct.distributions.EvenTables`, which are then
    drawn given the graph. Graphs are drawn as by :class:`bayesstruct.steps.NetworkMCMC`, under the prior
    ``"order"`` as by :class:`bayesstruct.steps.OrderNetworkMCMC`.

    Parameters
    ----------
    sweeps, candidates
        As of :class:`bayesstruct.steps.NetworkMCMC`.

    Raises
    ------
    ValueError
        If the graph is not that of such a network.

    Notes
    -----
    Statistics of each draw: ``n_arcs``; ``log_score``, the sum of the local scores and log prior weights of
    the graph; ``acceptance``, the share of the reversals of arcs that were accepted, 1 for independent
    draws and under the prior ``"order"``; ``left_out`` and ``change``, as of :class:`bayesstruct.steps.NetworkMCMC`, the
    second NaN under the prior ``"order"``.
    """

    name = "scored_network_mcmc"
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {
        "n_arcs": (int, []),
        "log_score": (float, []),
        "acceptance": (float, []),
        "left_out": (float, []),
        "change": (float, []),
    }
    _state_class = ScoredNetworkMCMCState

    def prepare(self, model, drawn, sweeps=1, candidates=None):
        """Recognise the network, and set its sampler up."""
        network = drawn_network(model, drawn, GRAPHS, "graphs", _SUPPORTED, _is_supported)
        self.family, self.dag = parameters_of(network), network.dag.name
        self.begun, self.order = False, np.empty(0, np.int64)
        problem = problem_of(network, self.family.score)
        sampler = OrderGraphs if problem.order else modular_graphs
        self.graphs = sampler(problem, int(sweeps), candidates)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun, self.order = False, np.empty(0, np.int64)

    def step(self, point):
        """Draw the graph, and its tables if they are random, once."""
        point, share, change = dict(point), 1.0, np.nan
        graph = np.array(point[self.dag], np.int8)
        if isinstance(self.graphs, OrderGraphs):
            self.order, graph, log_score = self.graphs.move(self.rng, self.order, graph)
            out = self.graphs.left_out(self.rng, graph, self.order)
        else:
            graph = graph if self.begun else self.graphs.start(self.rng, graph)
            graph, share = self.graphs.move(self.rng, graph)
            log_score = self.graphs.log_score(graph)
            out, change = self.graphs.left_out(self.rng, graph), self.graphs.change(graph)
        self.begun = True
        self.family.draw(self.rng, graph, point)
        point[self.dag] = graph
        stats = {
            "n_arcs": int(graph.sum()),
            "log_score": log_score,
            "acceptance": share,
            "left_out": out,
            "change": change,
        }
        return point, [stats]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for graphs of networks with fitted parameters or even tables, and for these tables."""
        if is_op(var, EvenTablesRV):
            return Competence.IDEAL
        model = pm.Model.get_context(error_if_none=False)
        if model is None or not is_op(var, GRAPHS) or var not in model.free_RVs:
            return Competence.INCOMPATIBLE
        own = any(is_op(rv, (EvenTablesRV, *FITTED)) for rv in model.basic_RVs)
        return Competence.IDEAL if own else Competence.INCOMPATIBLE


def _is_supported(network):
    return not network.conjugate
