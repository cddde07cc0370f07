"""Step of a Bayesian network of whose table some cells are missing.

A call draws the graph given the completed table, parameters integrated out; the parameters given both; and the missing
cells given graph and parameters. Each is a draw from, or leaves as it is, an exact conditional law.
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.tensor.random.basic import CategoricalRV

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import (
    NotRecognized,
    check_drawn,
    children_of,
    is_op,
    only_one,
    parameters,
    refusals,
    same_value,
    unpadded_parameters,
)
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.priors.dag import DAGRV, OrderDAGRV
from bayesstruct.networks.priors.discrete_network import ProbabilityTablesRV, strides
from bayesstruct.networks.priors.gaussian_network import (
    ArcWeightsRV,
    InterceptsRV,
    NoiseVariancesRV,
)
from bayesstruct.networks.priors.incomplete_networks import (
    IncompleteDiscreteNetworkRV,
    IncompleteGaussianNetworkRV,
    NetworkCellsRV,
)
from bayesstruct.networks.solvers.left_out import left_out
from bayesstruct.networks.solvers.parent_search import ALL_PARENTS, search_tables
from bayesstruct.networks.steps.complete import (
    GaussianTable,
    NetworkMCMC,
    NetworkPart,
    Regressions,
    check_links,
    dependents,
)
from bayesstruct.networks.steps.ordered import sweep_orders

__all__ = ["IncompleteNetworkMCMC", "IncompletePart", "completed_rows", "incomplete_network_of"]

_GRAPHS = (DAGRV, OrderDAGRV)
_PARAMETERS = (NoiseVariancesRV, ArcWeightsRV, InterceptsRV, ProbabilityTablesRV)
_ROWS = (IncompleteGaussianNetworkRV, IncompleteDiscreteNetworkRV)
_FIRST = 5  # candidate parents to begin with: the tables are made anew for each draw
_SWEEPS = 10  # on the same tables, which take far longer to make
_CLIMBS = 5  # local searches that a chain begins with
_SEED = 20170
_SUPPORTED = (
    "Supported are one observed IncompleteGaussianNetwork and its NetworkCells with NoiseVariances, ArcWeights "
    "and Intercepts, or one observed IncompleteDiscreteNetwork and its MissingStates with ProbabilityTables, on "
    "which nothing else depends; bs.models.bayesian_network makes both"
)


@dataclass
class IncompletePart(NetworkPart):
    """A graph, its parameters by kind, the table, and its missing cells."""

    cells: object = None

    @property
    def variables(self) -> list:
        """Random variables that the step draws."""
        return [*super().variables, self.cells]

    @property
    def mask(self):
        """Which cells are missing."""
        return self.rows.owner.op.mask


def incomplete_network_of(model, dag) -> IncompletePart:
    """Collect graph, parameters, table and missing cells around a graph.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    if dag not in model.free_RVs:
        raise NotRecognized(f"{dag.name!r} is observed")
    family = dependents(model, dag)
    rows = [rv for rv in family if is_op(rv, _ROWS)]
    if len(rows) != 1:
        raise NotRecognized(f"{len(rows)} incomplete tables depend on {dag.name!r}, not one")
    found = {type(rv.owner.op): rv for rv in family if is_op(rv, _PARAMETERS)}
    part = IncompletePart(dag, rows[0], found, _cells(family, rows[0]))
    if strange := [rv.name for rv in family if rv not in (*rows, *part.variables)]:
        raise NotRecognized(f"{', '.join(map(repr, strange))} depends on {dag.name!r}")
    if part.cells not in model.free_RVs:
        raise NotRecognized("the missing cells are no variable of the model")
    check_links(model, part)
    _check_cells(model, part)
    return part


def _cells(family, rows):
    """Variable of the missing cells of a table."""
    if is_op(rows, IncompleteDiscreteNetworkRV):
        return unpadded_parameters(rows)[-1]
    cells = [rv for rv in family if is_op(rv, NetworkCellsRV)]
    if len(cells) != 1:
        raise NotRecognized(f"{len(cells)} variables are missing cells of {rows.name!r}, not one")
    return cells[0]


def _check_cells(model, part):
    """Refuse cells that have another law than the rest of the network says."""
    cells, rows = part.cells, part.rows
    if part.gaussian:
        own, theirs = unpadded_parameters(cells), unpadded_parameters(rows)
        same = all(same_value(a, b) for a, b in zip(own[:5], theirs[:5], strict=True))
        values = Expressions(model, [own[5], theirs[5], own[6], model.rvs_to_values[rows]])
        setting, other, table, observed = (np.asarray(v) for v in values(model.initial_point()))
        seen = ~part.mask.missing
        same = same and np.array_equal(*np.broadcast_arrays(setting, other), equal_nan=True)
        same = same and np.array_equal(table[seen], observed[seen])
        same = same and np.array_equal(cells.owner.op.mask.missing, part.mask.missing)
        if not same:
            raise NotRecognized(
                f"parameters or table of {cells.name!r} are not those of {rows.name!r}"
            )
    else:
        _check_uniform(model, part)
    if others := [v.name for v in children_of(model, cells) if v is not rows]:
        raise NotRecognized(f"{', '.join(map(repr, others))} depends on {cells.name!r}")


def _check_uniform(model, part):
    """Refuse cells that are anything but uniform before the table is seen."""
    if not is_op(part.cells, CategoricalRV):
        raise NotRecognized(f"{part.cells.name!r} are not bayesstruct.distributions.MissingStates")
    sources = set(random_ancestors(parameters(part.cells)[0])) & set(model.basic_RVs)
    if sources:
        names = ", ".join(sorted(repr(v.name) for v in sources))
        raise NotRecognized(f"the prior of {part.cells.name!r} depends on {names}")
    [p] = Expressions(model, [parameters(part.cells)[0]])(model.initial_point())
    states = np.array(part.rows.owner.op.states)[part.mask.columns]
    wanted = (np.arange(p.shape[-1]) < states[:, None]) / states[:, None]
    if p.shape[-1] < states.max() or not np.allclose(p, wanted):
        raise NotRecognized(f"the prior of {part.cells.name!r} is not uniform over its states")


class CompletedNumbers:
    """A table of numbers, standardised, whose missing cells are filled in."""

    def __init__(self, model, part):
        from bayesstruct.networks.kernels.parameters import row_patterns

        self.cells, self.mask = part.cells.name, part.mask
        self.table = table = GaussianTable.of(model, part)
        self.free, self.prior, shape = table.free, table.prior, table.x.shape
        self.location, self.spread = (
            np.broadcast_to(v, shape) for v in (table.location, table.spread)
        )
        self.z = (table.x - self.location) / self.spread
        self.z[self.mask.missing] = 0.0
        self.gaps, self.patterns = np.unique(self.mask.rows), row_patterns(self.free)
        self.regressions = Regressions(part, self.prior, shape[1])
        self.score()  # refuses another prior

    def fill(self, cells):
        """Put values of the missing cells, in the units of the table, into the rows."""
        missing = self.mask.missing
        self.z[missing] = (cells - self.location[missing]) / self.spread[missing]

    def fill_at_random(self, rng):
        """Fill each missing cell with one of the observed values of its column."""
        _hot_deck(rng, self.z, self.mask.missing)

    def score(self):
        """Local scores of the completed table."""
        return self.table.score(self.z)

    def draw(self, rng, graph, point):
        """Draw parameters given the graph, and cells given both, into the point."""
        from bayesstruct.networks.kernels.cells import draw_normal_cells
        from bayesstruct.networks.kernels.parameters import rows_times_rows

        own, free = self.regressions, self.free
        own.draw(rng, graph, rows_times_rows(self.z, free, self.patterns), point)
        missing, gaps = self.mask.missing, self.gaps
        z = self.z[gaps]
        laws = own.intercept, own.weight, own.variance
        draw_normal_cells(rng, *laws, free[gaps], z, missing[gaps])
        self.z[gaps] = z
        point[self.cells] = (self.location + self.spread * self.z)[missing]


class CompletedStates:
    """A table of states whose missing cells are filled in."""

    def __init__(self, model, part):
        tables = part.parameters[ProbabilityTablesRV]
        self.name, self.cells, self.mask = tables.name, part.cells.name, part.mask
        self.states = np.array(part.rows.owner.op.states, np.int64)
        self.size = tables.owner.op.cells
        _, sample_size = parameters(tables)
        _, _, setting, _ = parameters(part.rows)
        values = Expressions(model, [sample_size, setting, model.rvs_to_values[part.rows]])
        sample_size, setting, x = values(model.initial_point())
        self.sample_size = float(np.squeeze(sample_size))
        self.x = np.array(x, np.int64)
        self.free = np.ascontiguousarray(np.broadcast_to(setting, self.x.shape) < 0)
        self.x[self.mask.missing] = 0

    def fill(self, cells):
        """Put states of the missing cells into the rows."""
        self.x[self.mask.missing] = cells

    def fill_at_random(self, rng):
        """Fill each missing cell with one of the observed states of its column."""
        _hot_deck(rng, self.x, self.mask.missing)

    def score(self):
        """Local scores of the completed table."""
        from bayesstruct.networks.kernels.scores import BDeu

        return BDeu(
            self.x, states=tuple(self.states), interventions=~self.free, ess=self.sample_size
        )

    def draw(self, rng, graph, point):
        """Draw tables given the graph, and cells given both, into the point."""
        from bayesstruct.networks.kernels.cells import draw_state_cells
        from bayesstruct.networks.kernels.parameters import draw_tables

        out = np.empty((len(self.states), self.size))
        rows = np.ascontiguousarray(self.x.T), np.ascontiguousarray(self.free.T)
        if not draw_tables(rng, graph, *rows, self.states, self.sample_size, out):
            raise RuntimeError("a table of the graph has more cells than the model has room for")
        point[self.name] = out
        step = strides(graph, self.states)
        where = self.mask.rows, self.mask.columns
        draw_state_cells(rng, *where, self.x, self.free, self.states, step, out)
        point[self.cells] = self.x[where]


def _hot_deck(rng, table, missing):
    for j in np.flatnonzero(missing.any(axis=0)):
        seen = table[~missing[:, j], j]
        table[missing[:, j], j] = rng.choice(seen, missing[:, j].sum())


def completed_rows(model, part):
    """Table of a recognised network, with its missing cells filled in anyhow."""
    return (CompletedNumbers if part.gaussian else CompletedStates)(model, part)


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
    """Draws of a graph from its exact law given the completed table."""

    def move(self, rng, problem, graph, order):
        """Next graph, its log score, share of accepted proposals, odds of what is left out, and order."""
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
        """Next graph, its log score, share of accepted reversals, odds of what is left out, and order."""
        from bayesstruct.networks.kernels.dag_sampling import topological_order
        from bayesstruct.networks.kernels.order_search import best_graph
        from bayesstruct.networks.kernels.parent_tables import family_scores, parent_tables
        from bayesstruct.networks.kernels.partition_mcmc import default_moves, sweep

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


@register_step(before=NetworkMCMC)
class IncompleteNetworkMCMC(BlockedStep):
    """Draws of graph, parameters and missing cells of a Bayesian network.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` with the parameters and the missing cells of an
    :class:`bayesstruct.distributions.IncompleteGaussianNetwork` or :class:`bayesstruct.distributions.IncompleteDiscreteNetwork`. One call
    draws a graph given the completed table, parameters integrated out; the parameters given both; the missing cells
    given graph and parameters, those of a row together if they are numbers, one after the other if they are
    states.

    Up to 11 variables the graph is a draw from its exact law given the completed table. Beyond, or if
    `candidates` is given, it comes from 10 sweeps of partition Markov chain Monte Carlo (of orders, under the
    prior ``"order"``) on scores that are computed anew for each completed table. A draw then takes some 25 ms for
    20 variables and 130 ms for 40 (500 rows of numbers), up to three times as much for states.

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of one network.
    candidates : int, optional
        Candidate parents of each variable to begin with; 5 beyond 11 variables. They are chosen once, from a
        table whose gaps are filled with observed values of the same column, and then are the same in all
        chains: graphs whose parent sets have more than one parent outside the candidates are not visited.
    model : pymc.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    rng : numpy.random.Generator, optional

    Raises
    ------
    ValueError
        If the graph is not that of an incomplete table that can be drawn exactly.

    Notes
    -----
    A chain begins by filling the missing cells with observed values of the same column, drawn at random: had they
    all the same value, gaps in the same rows would pass for a dependence that takes long to be forgotten.

    With large shares of missing cells neighbouring draws depend on each other, since the graph moves given
    the cells. ``bs.check`` says so.

    Statistics of each draw: ``n_arcs``; ``log_score``, the sum of local scores and log prior weights given the
    completed table; ``acceptance``, the share of the reversals of arcs that were accepted, 1 for
    draws from the exact law and for orders; and ``left_out``, as of :class:`bayesstruct.steps.NetworkMCMC`.

    References
    ----------
    Tanner, M. A. and Wong, W. H. (1987). The calculation of posterior distributions by data augmentation.
    *JASA* 82, 528-540.

    Kuipers, J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. *JASA* 112, 282-299.
    """

    name = "incomplete_network_mcmc"
    default_blocked = True
    stats_dtypes_shapes = {
        "n_arcs": (int, []),
        "log_score": (float, []),
        "acceptance": (float, []),
        "left_out": (float, []),
    }
    _state_class = IncompleteNetworkMCMCState

    def __init__(
        self,
        vars,
        *,
        candidates=None,
        model=None,
        initial_point=None,
        compile_kwargs=None,
        rng=None,
        blocked=True,
    ):
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(v, v) for v in vars]
        part, self.rows = _one_network(model, [model.values_to_rvs[v] for v in self.vars])
        self.rng = get_random_generator(rng)
        self.begun, self.order = False, np.empty(0, np.int64)
        self.dag, self.law = part.dag.name, part.dag.owner.op
        self.names, self.prior = tuple(map(str, self.law.names)), self.law.prior
        self.rows.fill_at_random(np.random.default_rng(_SEED))
        if candidates is None and len(self.names) <= ALL_PARENTS:
            self.graphs, self.prior = _Independent(), _RememberedPrior(self.prior)
        else:
            self.graphs = _Chain(self._problem(), candidates or _FIRST)

    def _problem(self):
        """Scores of the completed table, and the prior."""
        return NetworkProblem(self.names, self.rows.score(), self.prior, self.law.order)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun, self.order = False, np.empty(0, np.int64)

    def step(self, point):
        """Draw graph, parameters and missing cells once."""
        point = dict(point)
        if self.begun:
            self.rows.fill(point[self.rows.cells])
        else:
            self.rows.fill_at_random(self.rng)
        graph = np.array(point[self.dag], np.int8)
        graph, log_score, share, out, self.order = self.graphs.move(
            self.rng, self._problem(), graph, self.order
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
        """Ideal for graph, parameters and missing cells of networks whose table has gaps."""
        model = pm.Model.get_context(error_if_none=False)
        if model is None or var not in model.free_RVs:
            return Competence.INCOMPATIBLE
        rows = [rv for rv in model.observed_RVs if is_op(rv, _ROWS)]
        own = is_op(var, (*_GRAPHS, NetworkCellsRV, *_PARAMETERS)) and rows
        states = [rv for rv in rows if is_op(rv, IncompleteDiscreteNetworkRV)]
        own = own or any(var is unpadded_parameters(rv)[-1] for rv in states)
        return Competence.IDEAL if own else Competence.INCOMPATIBLE


def _one_network(model, drawn):
    dag = only_one(drawn, _GRAPHS, "graphs", _SUPPORTED)
    with refusals(dag, _SUPPORTED):
        part = incomplete_network_of(model, dag)
        check_drawn(part.variables, drawn)
        return part, completed_rows(model, part)
