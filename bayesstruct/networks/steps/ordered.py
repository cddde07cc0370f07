"""Step of the graph of a Bayesian network under the order-modular prior, and of its parameters."""

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import check_drawn, is_op, only_one, refusals
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.priors.dag import OrderDAGRV
from bayesstruct.networks.priors.discrete_network import ProbabilityTablesRV
from bayesstruct.networks.priors.gaussian_network import (
    ArcWeightsRV,
    InterceptsRV,
    NoiseVariancesRV,
)
from bayesstruct.networks.solvers.left_out import left_out
from bayesstruct.networks.solvers.parent_search import search_tables
from bayesstruct.networks.steps.complete import (
    NetworkMCMC,
    dependents,
    network_of,
    network_problem_of,
)

__all__ = ["OrderGraphs", "OrderNetworkMCMC", "sweep_orders"]

_PARAMETERS = (NoiseVariancesRV, ArcWeightsRV, InterceptsRV, ProbabilityTablesRV)
_SUMMED = 14  # variables up to which graphs are independent draws: seconds to set up
_CLIMBS = 5  # local searches that a chain begins with
_SUPPORTED = (
    'Supported is the graph, with the prior "order", of one observed GaussianNetwork or DiscreteNetwork and its '
    "parameters, on which nothing else depends; bs.models.bayesian_network makes them"
)


def sweep_orders(rng, tables, order, graph, sweeps=1):
    """Move an order by Markov chain Monte Carlo, and draw a graph given it.

    Parameters
    ----------
    rng : numpy.random.Generator
    tables : ParentTables
    order : (d,) int64 array
        Parents first; of a graph with a finite score. Empty to begin: with an order of `graph`, or of the
        end of a short search if that has no arcs.
    graph : (d, d) int8 array
        The last graph.
    sweeps : int

    Returns
    -------
    order, graph : arrays
    log_score : float
        Sum of the local scores and log prior weights of the graph.
    """
    from bayesstruct.networks.kernels.dag_sampling import topological_order
    from bayesstruct.networks.kernels.order_mcmc import default_moves, sweep
    from bayesstruct.networks.kernels.order_search import best_graph
    from bayesstruct.networks.kernels.parent_tables import family_scores

    if not len(order):
        begin = graph if graph.any() else best_graph(tables, rng, climbs=_CLIMBS)[0]
        order = topological_order(begin)
    order, out = np.array(order, np.int64), np.zeros_like(graph)
    for _ in range(sweeps):
        sweep(rng, tables, order, out, default_moves(tables.d))
    return order, out, float(family_scores(tables, out).sum())


class OrderGraphs:
    """Draws of graphs under the order-modular prior.

    Parameters
    ----------
    problem : NetworkProblem
    sweeps : int
        Of the order, where there are many variables.
    candidates : int or None
        None draws independently where there are few variables.
    """

    def __init__(self, problem, sweeps, candidates):
        from bayesstruct.networks.exact.posterior import IndependentDraws

        self.problem, self.sweeps = problem, sweeps
        self.draws = self.tables = None
        if candidates is None and problem.d <= _SUMMED:
            self.draws = IndependentDraws(problem)
        else:
            self.tables = search_tables(problem, size=candidates)

    def move(self, rng, order, graph):
        """Return the next order and graph, and its log score."""
        if self.tables is not None:
            return sweep_orders(rng, self.tables, order, graph, self.sweeps)
        graph = self.draws(rng)
        return order, graph, self.draws.log_score(graph)

    def left_out(self, rng, graph, order):
        """Estimate the odds of parent sets outside of the tables, if there are tables."""
        if self.tables is None:
            return 0.0
        return left_out(self.problem, self.tables, rng, graph, order)


@dataclass_state
class OrderNetworkMCMCState(StepMethodState):
    """State of a step that remembers the order of its variables."""

    order: np.ndarray


@register_step(before=NetworkMCMC)
class OrderNetworkMCMC(BlockedStep):
    """Draws of graph and parameters of a Bayesian network under the order-modular prior.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` with the prior ``"order"`` and the parameters of a
    :class:`bayesstruct.distributions.GaussianNetwork` or :class:`bayesstruct.distributions.DiscreteNetwork`. One call draws a graph,
    parameters integrated out, then the parameters given the graph. Up to 14 variables the graph is an
    independent draw from its exact posterior (Koivisto and Sood 2004). Beyond, or if `candidates` is given, it is drawn
    given an order of the variables that moves by Markov chain Monte Carlo (Friedman and Koller 2003).

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of one network.
    sweeps : int, default 1
        Of the order, each of which tries some three moves for each variable.
    candidates : int, optional
        Candidate parents of each variable to begin with; 7 beyond 14 variables. Graphs whose parent sets have more
        than one parent outside the candidates are not visited (:func:`bayesstruct.solvers.search_tables`).
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

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
    default_blocked = True
    stats_dtypes_shapes = {
        "n_arcs": (int, []),
        "log_score": (float, []),
        "left_out": (float, []),
    }
    _state_class = OrderNetworkMCMCState

    def __init__(
        self,
        vars,
        *,
        sweeps=1,
        candidates=None,
        model=None,
        initial_point=None,
        compile_kwargs=None,
        rng=None,
        blocked=True,
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        part, problem, self.family = _one_network(
            model, [model.values_to_rvs[v] for v in self.vars]
        )
        self.rng = get_random_generator(rng)
        self.order, self.dag = _no_order(), part.dag.name
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
        if model is None or not is_op(var, _PARAMETERS):
            return Competence.INCOMPATIBLE
        graphs = [rv for rv in model.free_RVs if is_op(rv, OrderDAGRV)]
        own = any(var in dependents(model, graph) for graph in graphs)
        return Competence.IDEAL if own else Competence.INCOMPATIBLE


def _no_order():
    return np.empty(0, np.int64)


def _one_network(model, drawn):
    dag = only_one(drawn, OrderDAGRV, "graphs with the prior 'order'", _SUPPORTED)
    with refusals(dag, _SUPPORTED):
        part = network_of(model, dag)
        check_drawn(part.variables, drawn)
        problem, family = network_problem_of(model, part)
    return part, NetworkProblem(problem.names, problem.score, problem.prior, order=True), family
