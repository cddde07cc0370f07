"""Step of a Bayesian network with missing values in its table.

A call draws the graph given the completed table, parameters integrated out; the parameters given both; and the missing
values given graph and parameters. Each is a draw from an exact conditional distribution, or leaves it invariant.
"""

from dataclasses import replace

import numpy as np
import pymc as pm

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import is_op, unpadded_parameters
from bayesstruct.networks.priors.incomplete_networks import (
    IncompleteDiscreteNetworkRV,
    NetworkCellsRV,
)
from bayesstruct.networks.recognition.completed import completed_table
from bayesstruct.networks.recognition.network import GRAPHS, INCOMPLETE, PARAMETERS, drawn_network
from bayesstruct.networks.recognition.parameters import problem_of
from bayesstruct.networks.solvers.left_out import left_out
from bayesstruct.networks.solvers.parent_search import ALL_PARENTS, search_tables
from bayesstruct.networks.steps.complete import NetworkMCMC
from bayesstruct.networks.steps.graphs import sweep_orders
from bayesstruct.networks.steps.ordered import OrderNetworkMCMC

__all__ = ["IncompleteNetworkMCMC"]

_FIRST = 5  # candidate parents to begin with: the tables are made anew for each draw
_SWEEPS = 10  # on the same tables, which take far longer to make
_CLIMBS = 5  # local searches that a chain begins with
_SEED = 20170
_SUPPORTED = (
    "Supported are one observed IncompleteGaussianNetwork and its MissingNetworkValues with NoiseVariances, ArcWeights "
    "and Intercepts, or one observed IncompleteDiscreteNetwork and its MissingStates with ProbabilityTables, on "
    "which nothing else depends; bs.models.bayesian_network makes both"
)


class _RememberedPrior:
    """Prior weights of parent sets, computed once."""

    def __init__(self, prior):
        self.prior, self.max_parents, self.known = prior, prior.max_parents, {}

    def subsets(self, child, candidates, fixed=()):
        """Log weights as from :meth:`bayesstruct.networks.kernels.dag_priors.ParentPrior.subsets`."""
        key = child, tuple(candidates), tuple(fixed)
        if key not in self.known:
            self.known[key] = self.prior.subsets(*key)
        return self.known[key].copy()


class _Independent:
    """Draws of a graph from its exact distribution given the completed table."""

    def move(self, rng, problem, graph, order):
        """Next graph, its log score, share of accepted proposals, odds of parent sets left out, and order."""
        from bayesstruct.networks.exact.posterior import IndependentDraws

        draws = IndependentDraws(problem)
        graph = draws(rng)
        return graph, draws.log_score(graph), 1.0, 0.0, order


class _Chain:
    """Markov chain Monte Carlo over sets of candidates and one more, given the completed table."""

    def __init__(self, problem, candidates):
        tables = search_tables(problem, size=candidates)
        self.candidates = [tables.candidates(i).tolist() for i in range(tables.d)]

    def move(self, rng, problem, graph, order):
        """Next graph, its log score, share of accepted reversals, odds of parent sets left out, and order."""
        from bayesstruct.networks.kernels.dags import topological_order
        from bayesstruct.networks.kernels.order_search import best_graph
        from bayesstruct.networks.kernels.parent_tables import family_scores, parent_tables
        from bayesstruct.networks.kernels.samplers.partition_mcmc import default_moves, sweep

        tables, moves = parent_tables(problem, None, self.candidates), default_moves(problem.d)
        if problem.order:
            order, graph, log_score = sweep_orders(rng, tables, order, graph, _SWEEPS)
            return graph, log_score, 1.0, left_out(problem, tables, rng, graph, order), order
        graph = (
            graph.copy()
            if len(order) or graph.any()
            else best_graph(tables, rng, climbs=_CLIMBS)[0]
        )
        accepted = sum(sweep(rng, tables, graph, moves) for _ in range(_SWEEPS))
        share = accepted / max(_SWEEPS * moves.reversals, 1)
        log_score, out = family_scores(tables, graph).sum(), left_out(problem, tables, rng, graph)
        return graph, float(log_score), share, out, topological_order(graph)


@dataclass_state
class IncompleteNetworkMCMCState(StepMethodState):
    """State of a step that remembers whether it has begun, and an order of its variables."""

    begun: bool
    order: np.ndarray


@register_step(before=(NetworkMCMC, OrderNetworkMCMC))
class IncompleteNetworkMCMC(GibbsStep):
    """Draws of graph, parameters and missing values of a Bayesian network.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` with the parameters and the missing values of an
    :class:`bayesstruct.distributions.IncompleteGaussianNetwork` or :class:`bayesstruct.distributions.IncompleteDiscreteNetwork`. One call
    draws a graph given the completed table, parameters integrated out; the parameters given both; the missing values
    given graph and parameters, those of a row together if they are numbers, one after the other if they are
    states.

    Up to 11 variables the graph is a draw from its exact distribution given the completed table. Beyond, or if
    `candidates` is given, it comes from 10 sweeps of partition Markov chain Monte Carlo (of orders, under the
    prior ``"order"``) on scores that are computed anew for each completed table. A draw then takes some 25 ms for
    20 variables and 130 ms for 40 (500 rows of numbers), up to three times as much for states.

    Parameters
    ----------
    candidates : int, optional
        Candidate parents of each variable to begin with; 5 beyond 11 variables. They are chosen once, from a
        table whose missing values are filled with observed values of the same column, and then are the same in all
        chains: graphs whose parent sets have more than one parent outside the candidates are not visited.

    Raises
    ------
    ValueError
        If the graph is not that of an incomplete table that can be drawn exactly.

    Notes
    -----
    A chain begins by filling the missing values with observed values of the same column, drawn at random: if
    all had the same value, missing values in the same rows would look like a dependence that takes long to be forgotten.

    With large shares of missing values neighbouring draws depend on each other, since the graph moves given
    these values. ``bs.check`` says so.

    Statistics of each draw: ``n_arcs``; ``log_score``, the sum of local scores and log prior weights given the
    completed table; ``acceptance``, the share of the reversals of arcs that were accepted, 1 for
    draws from the exact distribution and for orders; and ``left_out``, as of :class:`bayesstruct.steps.NetworkMCMC`.

    References
    ----------
    Tanner, M. A. and Wong, W. H. (1987). The calculation of posterior distributions by data augmentation.
    *JASA* 82, 528-540.

    Kuipers, J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. *JASA* 112, 282-299.
    """

    name = "incomplete_network_mcmc"
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {
        "n_arcs": (int, []),
        "log_score": (float, []),
        "acceptance": (float, []),
        "left_out": (float, []),
    }
    _state_class = IncompleteNetworkMCMCState

    def prepare(self, model, drawn, candidates=None):
        """Recognise the network, and set its sampler up."""
        network = drawn_network(model, drawn, GRAPHS, "graphs", _SUPPORTED, _is_supported)
        self.rows, self.dag = completed_table(network), network.dag.name
        self.begun, self.order = False, np.empty(0, np.int64)
        self.rows.fill_at_random(np.random.default_rng(_SEED))
        self.problem = problem_of(network, self.rows.score())
        if candidates is None and self.problem.d <= ALL_PARENTS:
            prior = _RememberedPrior(self.problem.prior)
            self.problem, self.graphs = replace(self.problem, prior=prior), _Independent()
        else:
            self.graphs = _Chain(self.problem, candidates or _FIRST)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun, self.order = False, np.empty(0, np.int64)

    def step(self, point):
        """Draw graph, parameters and missing values once."""
        point = dict(point)
        if self.begun:
            self.rows.fill(point[self.rows.missing])
        else:
            self.rows.fill_at_random(self.rng)
        graph = np.array(point[self.dag], np.int8)
        graph, log_score, share, out, self.order = self.graphs.move(
            self.rng, replace(self.problem, score=self.rows.score()), graph, self.order
        )
        self.begun = True
        self.rows.draw(self.rng, graph, point)
        point[self.dag] = graph
        stats = {
            "n_arcs": int(graph.sum()),
            "log_score": log_score,
            "acceptance": share,
            "left_out": out,
        }
        return point, [stats]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for graph, parameters and missing values of networks."""
        model = pm.Model.get_context(error_if_none=False)
        if model is None or var not in model.free_RVs:
            return Competence.INCOMPATIBLE
        rows = [rv for rv in model.observed_RVs if is_op(rv, INCOMPLETE)]
        own = is_op(var, (*GRAPHS, NetworkCellsRV, *PARAMETERS)) and rows
        states = [rv for rv in rows if is_op(rv, IncompleteDiscreteNetworkRV)]
        own = own or any(var is unpadded_parameters(rv)[-1] for rv in states)
        return Competence.IDEAL if own else Competence.INCOMPATIBLE


def _is_supported(network):
    return network.missing is not None
