"""Step of Bayesian networks whose scores are no marginal likelihoods of their own: BIC, and BDe."""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.graph.basic import equal_computations
from pytensor.graph.traversal import walk

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    check_drawn,
    is_op,
    only_one,
    refusals,
    unpadded_parameters,
)
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.priors.dag import DAGRV, OrderDAGRV
from bayesstruct.networks.priors.discrete_network import (
    DiscreteNetworkRV,
    EvenTablesRV,
    expected_tables,
    table_counts,
)
from bayesstruct.networks.priors.fitted_networks import (
    FittedDiscreteNetworkRV,
    FittedGaussianNetworkRV,
    FittedLaws,
    fitted,
)
from bayesstruct.networks.solvers.parent_search import ALL_PARENTS
from bayesstruct.networks.steps.complete import (
    IndependentGraphs,
    NetworkMCMC,
    PartitionGraphs,
    dependents,
)
from bayesstruct.networks.steps.ordered import OrderGraphs

__all__ = ["ScoredNetworkMCMC", "ScoredPart", "scored_network_of"]

_GRAPHS = (DAGRV, OrderDAGRV)
_FITTED = (FittedGaussianNetworkRV, FittedDiscreteNetworkRV)
_SUPPORTED = (
    "Supported are one observed FittedGaussianNetwork or FittedDiscreteNetwork with the parameters that "
    "bayesstruct.distributions.fitted has of the graph, or one observed DiscreteNetwork with EvenTables; "
    "bs.models.bayesian_network makes them"
)


@dataclass
class ScoredPart:
    """A graph, its table, the score, and its tables of probabilities if they are random."""

    dag: object
    rows: object
    score: object
    tables: object = None
    counted: tuple = ()

    @property
    def variables(self) -> list:
        """Random variables that the step draws."""
        return [self.dag] if self.tables is None else [self.dag, self.tables]

    def draw(self, rng, graph, point):
        """Draw the tables given the graph, into the point."""
        from bayesstruct.networks.kernels.parameters import draw_tables

        if self.tables is None:
            return
        op = self.tables.owner.op
        out = np.empty((len(op.states), op.cells))
        states = np.array(op.states, np.int64)
        if not draw_tables(rng, graph, *self.counted, states, self.score.pseudo_count, out, True):
            raise RuntimeError("a table of the graph has more cells than the model has room for")
        point[self.tables.name] = out

    def expected(self, graph):
        """Return expected tables given the graph, by name."""
        if self.tables is None:
            return {}
        op, weight = self.tables.owner.op, self.score.pseudo_count
        counts = table_counts(graph, *self.counted, op.states, weight, constant=True)
        means = expected_tables((c for _, c in counts), op.cells)
        return {self.tables.name: means}


def scored_network_of(model, dag) -> ScoredPart:
    """Recognise a network with fitted laws, or with even tables, around a graph.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    if dag not in model.free_RVs:
        raise NotRecognized(f"{dag.name!r} is observed")
    family = dependents(model, dag)
    rows = [rv for rv in family if is_op(rv, (DiscreteNetworkRV, *_FITTED))]
    if len(rows) != 1 or rows[0] not in model.observed_RVs:
        raise NotRecognized(f"{len(rows)} observed tables depend on {dag.name!r}, not one")
    [rows], tables = rows, [rv for rv in family if is_op(rv, EvenTablesRV)]
    if strange := [rv.name for rv in family if rv not in (rows, *tables)]:
        raise NotRecognized(f"{', '.join(map(repr, strange))} depends on {dag.name!r}")
    if is_op(rows, _FITTED):
        return _with_fit(dag, rows)
    return _with_tables(model, dag, rows, tables)


def _with_tables(model, dag, rows, tables):
    """Part with tables whose cells have the same prior weight."""
    from bayesstruct.networks.kernels.scores import BDe

    if len(tables) != 1 or tables[0] not in model.free_RVs:
        raise NotRecognized(f"the tables of {rows.name!r} are not one random variable")
    [tables] = tables
    graph, own, setting = unpadded_parameters(rows)
    law, sample_size = unpadded_parameters(tables)
    if not (graph is dag and own is tables and law is dag):
        raise NotRecognized(f"the parameters of {rows.name!r} are not linked as in a network")
    values = Expressions(model, [sample_size, setting, model.rvs_to_values[rows]])
    weight, setting, x = values(model.initial_point())
    free, x = np.broadcast_to(setting, x.shape) < 0, np.asarray(x, np.int64)
    score = BDe(
        x, states=rows.owner.op.states, interventions=~free, pseudo_count=float(np.squeeze(weight))
    )
    counted = np.ascontiguousarray(x.T), np.ascontiguousarray(free.T)
    return ScoredPart(dag, rows, score, tables, counted)


def _with_fit(dag, rows):
    """Part with the laws of greatest likelihood."""
    given = unpadded_parameters(rows)
    nodes = walk(given, lambda v: v.owner.inputs if v.owner else None)
    fits = {v.owner.op.fit for v in nodes if v.owner and isinstance(v.owner.op, FittedLaws)}
    if len(fits) != 1:
        raise NotRecognized(f"the parameters of {rows.name!r} are not those of a score")
    [fit] = fits
    *laws, price = fitted(fit, dag)
    if is_op(rows, FittedGaussianNetworkRV):
        given, wanted = [*given[:3], given[-1]], [*laws, price]
    else:
        given, wanted = [*given[:2], given[-1]], [dag, laws[0], price]
    if len(wanted) != len(given) or not equal_computations(given, wanted):
        raise NotRecognized(
            f"the parameters of {rows.name!r} are not those fitted given {dag.name!r}"
        )
    return ScoredPart(dag, rows, fit.score)


@dataclass_state
class ScoredNetworkMCMCState(StepMethodState):
    """State of a step that remembers whether it has begun, and an order of its variables."""

    begun: bool
    order: np.ndarray


@register_step(before=NetworkMCMC)
class ScoredNetworkMCMC(BlockedStep):
    """Draws of the graph of a Bayesian network by its BIC or BDe scores.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` whose local laws are those of greatest likelihood
    (:mod:`bayesstruct.networks.priors.fitted_networks`), or :class:`bayesstruct.distributions.EvenTables`, which are then
    drawn given the graph. Graphs are drawn as by :class:`bayesstruct.steps.NetworkMCMC`, under the prior
    ``"order"`` as by :class:`bayesstruct.steps.OrderNetworkMCMC`.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of one network.
    sweeps, candidates
        As of :class:`bayesstruct.steps.NetworkMCMC`.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the graph is not that of such a network.

    Notes
    -----
    Statistics of each draw: ``n_arcs``; ``log_score``, the sum of the local scores and log prior weights of
    the graph; ``acceptance``, the share of the reversals of arcs that were accepted, 1 for independent
    draws and under the prior ``"order"``; and ``left_out``, as of :class:`bayesstruct.steps.NetworkMCMC`.
    """

    name = "scored_network_mcmc"
    default_blocked = True
    stats_dtypes_shapes = {
        "n_arcs": (int, []),
        "log_score": (float, []),
        "acceptance": (float, []),
        "left_out": (float, []),
    }
    _state_class = ScoredNetworkMCMCState

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
        self.part = _one_network(model, [model.values_to_rvs[v] for v in self.vars])
        self.rng, self.dag = get_random_generator(rng), self.part.dag.name
        self.begun, self.order = False, np.empty(0, np.int64)
        problem = problem_of(self.part)
        if problem.order:
            self.graphs = OrderGraphs(problem, int(sweeps), candidates)
        elif candidates is None and problem.d <= ALL_PARENTS:
            self.graphs = IndependentGraphs(problem)
        else:
            self.graphs = PartitionGraphs(problem, int(sweeps), candidates)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun, self.order = False, np.empty(0, np.int64)

    def step(self, point):
        """Draw the graph, and its tables if they are random, once."""
        point, share = dict(point), 1.0
        graph = np.array(point[self.dag], np.int8)
        if isinstance(self.graphs, OrderGraphs):
            self.order, graph, log_score = self.graphs.move(self.rng, self.order, graph)
            out = self.graphs.left_out(self.rng, graph, self.order)
        else:
            graph = graph if self.begun else self.graphs.start(self.rng, graph)
            graph, share = self.graphs.move(self.rng, graph)
            log_score = self.graphs.log_score(graph)
            out = self.graphs.left_out(self.rng, graph)
        self.begun = True
        self.part.draw(self.rng, graph, point)
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
        """Ideal for graphs of networks with fitted laws or even tables, and for these tables."""
        if is_op(var, EvenTablesRV):
            return Competence.IDEAL
        model = pm.Model.get_context(error_if_none=False)
        if model is None or not is_op(var, _GRAPHS) or var not in model.free_RVs:
            return Competence.INCOMPATIBLE
        own = any(is_op(rv, (EvenTablesRV, *_FITTED)) for rv in model.basic_RVs)
        return Competence.IDEAL if own else Competence.INCOMPATIBLE


def problem_of(part) -> NetworkProblem:
    """Scores and prior of a recognised network."""
    op = part.dag.owner.op
    return NetworkProblem(tuple(map(str, op.names)), part.score, op.prior, op.order)


def _one_network(model, drawn):
    dag = only_one(drawn, _GRAPHS, "graphs", _SUPPORTED)
    with refusals(dag, _SUPPORTED):
        part = scored_network_of(model, dag)
        check_drawn(part.variables, drawn)
    return part
