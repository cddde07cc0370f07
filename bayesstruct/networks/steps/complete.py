"""Step of the graph of a Bayesian network and of its parameters.

The parameters are integrated out while the graph is drawn: independently of the last one where the sums over
all graphs can be kept (:class:`bayesstruct.exact.IndependentDraws`), otherwise by partition Markov chain Monte
Carlo (:mod:`bayesstruct.networks.kernels.partition_mcmc`). They are drawn from their exact law given the graph
afterwards. A draw of graph and parameters is thus one of their joint posterior.
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator

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
)
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.networks.exact.problem import NetworkProblem
from bayesstruct.networks.priors.dag import DAGRV
from bayesstruct.networks.priors.discrete_network import (
    DiscreteNetworkRV,
    ProbabilityTablesRV,
    expected_tables,
    table_counts,
)
from bayesstruct.networks.priors.gaussian_network import (
    ArcWeightsRV,
    GaussianNetworkRV,
    InterceptsRV,
    NoiseVariancesRV,
    arc_index,
)
from bayesstruct.networks.solvers.blocks import local_modes, switching_blocks
from bayesstruct.networks.solvers.left_out import left_out
from bayesstruct.networks.solvers.parent_search import ALL_PARENTS, chain_start, search_tables

__all__ = [
    "GaussianTable",
    "IndependentGraphs",
    "NetworkMCMC",
    "NetworkPart",
    "PartitionGraphs",
    "Regressions",
    "check_links",
    "dependents",
    "network_of",
    "network_problem_of",
]

_PARAMETERS = (NoiseVariancesRV, ArcWeightsRV, InterceptsRV, ProbabilityTablesRV)
_BLOCK = 6  # variables whose parents are drawn together, at most: 8 take ten times as long
_SUPPORTED = (
    "Supported are one observed GaussianNetwork with NoiseVariances, ArcWeights and Intercepts, or one "
    "observed DiscreteNetwork with ProbabilityTables, on which nothing else depends; "
    "bs.models.bayesian_network makes both"
)


@dataclass
class NetworkPart:
    """A graph, its parameters by kind, and the table."""

    dag: object
    rows: object
    parameters: dict

    @property
    def variables(self) -> list:
        """Random variables that the step draws."""
        return [self.dag, *self.parameters.values()]

    @property
    def gaussian(self) -> bool:
        """Whether the rows are those of a Gaussian network."""
        return is_op(self.rows, GaussianNetworkRV)


def network_of(model, dag) -> NetworkPart:
    """Collect graph, parameters and table around a graph.

    Raises
    ------
    NotRecognized
        Says what stands in the way.
    """
    if dag not in model.free_RVs:
        raise NotRecognized(f"{dag.name!r} is observed")
    family = dependents(model, dag)
    rows = [rv for rv in family if is_op(rv, (GaussianNetworkRV, DiscreteNetworkRV))]
    if len(rows) != 1:
        raise NotRecognized(f"{len(rows)} tables depend on {dag.name!r}, not one")
    found = {type(rv.owner.op): rv for rv in family if is_op(rv, _PARAMETERS)}
    strange = [rv.name for rv in family if rv not in (*rows, *found.values())]
    if strange:
        raise NotRecognized(f"{', '.join(map(repr, strange))} depends on {dag.name!r}")
    part = NetworkPart(dag, rows[0], found)
    check_links(model, part)
    return part


def dependents(model, dag):
    """Random variables and potentials that depend on a graph, directly or not."""
    out, new = [], [dag]
    while new:
        children = [c for v in new for c in children_of(model, v) if c not in out]
        new = list(dict.fromkeys(children))
        out += new
    return out


def check_links(model, part):
    """Refuse models whose pieces are not put together as in a network."""
    wanted = {ProbabilityTablesRV}
    if part.gaussian:
        wanted = {NoiseVariancesRV, ArcWeightsRV, InterceptsRV}
    if set(part.parameters) != wanted:
        names = ", ".join(sorted(kind.__name__.removesuffix("RV") for kind in wanted))
        raise NotRecognized(f"the parameters of {part.rows.name!r} are not {names}")
    if part.rows not in model.observed_RVs:
        raise NotRecognized(f"{part.rows.name!r} is not observed")
    for rv in part.parameters.values():
        if rv not in model.free_RVs:
            raise NotRecognized(f"{rv.name!r} is observed")
        if model.rvs_to_transforms.get(rv) is not None:
            raise NotRecognized(f"{rv.name!r} has a transform")
    own = set(part.variables)
    for rv in (*part.parameters.values(), part.rows):
        sources = set(random_ancestors(*parameters(rv))) & set(model.basic_RVs)
        if not sources <= own:
            names = ", ".join(sorted(repr(v.name) for v in sources - own))
            raise NotRecognized(f"{rv.name!r} also depends on {names}")
    if part.gaussian:
        variance = part.parameters[NoiseVariancesRV]
        intercept, _, noise, *_ = parameters(part.rows)
        links = [
            parameters(variance)[0] is part.dag,
            parameters(part.parameters[ArcWeightsRV])[:2] == (part.dag, variance),
            parameters(part.parameters[InterceptsRV])[0] is variance,
        ]
        reach = set(random_ancestors(intercept)), set(random_ancestors(noise))
        links += [part.parameters[InterceptsRV] in reach[0], variance in reach[1]]
    else:
        tables = part.parameters[ProbabilityTablesRV]
        links = [parameters(tables)[0] is part.dag]
    if not all(links):
        raise NotRecognized(f"the parameters of {part.rows.name!r} are not linked as in a network")


@dataclass
class GaussianTable:
    """What a Gaussian network says of its table, and its prior of the parameters."""

    alpha_mu: float
    alpha_w: float
    scale: float
    weight_scale: float
    location: np.ndarray
    spread: np.ndarray
    x: np.ndarray
    free: np.ndarray  # cells that were not set from outside

    @classmethod
    def of(cls, model, part):
        """Read it from a recognised network, complete or not."""
        _, alpha_w, scale = parameters(part.parameters[NoiseVariancesRV])
        _, _, weight_scale = parameters(part.parameters[ArcWeightsRV])
        _, alpha_mu = parameters(part.parameters[InterceptsRV])
        _, _, _, location, spread, setting = parameters(part.rows)
        observed = model.rvs_to_values[part.rows]
        tensors = [alpha_mu, alpha_w, scale, weight_scale, location, spread, setting, observed]
        values = Expressions(model, tensors)(model.initial_point())
        numbers = (float(np.squeeze(v)) for v in values[:4])
        location, spread, setting, x = (np.asarray(v, float) for v in values[4:])
        free = np.isnan(np.broadcast_to(setting, x.shape))
        return cls(*numbers, location, spread, x, free)

    @property
    def prior(self):
        """Prior of the regressions."""
        from bayesstruct.networks.kernels.parameters import GaussianPrior

        return GaussianPrior(self.alpha_mu, self.alpha_w, self.scale)

    def score(self, z):
        """Local scores of the standardised table, complete now.

        Raises
        ------
        NotRecognized
            If they are not those of the network.
        """
        from bayesstruct.networks.kernels.scores import BGe

        score = BGe(z, interventions=~self.free, alpha_mu=self.alpha_mu, alpha_w=self.alpha_w)
        if not np.allclose([self.scale, self.weight_scale], score.scale):
            raise NotRecognized(
                "the scale of noise variances and weights is not that of the BGe score, "
                f"alpha_mu (alpha_w - d - 1) / (alpha_mu + 1) = {score.scale:g}"
            )
        return score


class Regressions:
    """Draws of the parameters of a Gaussian network."""

    def __init__(self, part, prior, d):
        self.names = {kind: rv.name for kind, rv in part.parameters.items()}
        self.prior, self.arcs = prior, arc_index(d)
        self.intercept, self.weight, self.variance = np.empty(d), np.empty((d, d)), np.empty(d)

    def draw(self, rng, graph, moments, point):
        """Draw the parameters given the graph and the sums over the rows, into the point."""
        from bayesstruct.networks.kernels.parameters import draw_regressions

        out = self.intercept, self.weight, self.variance
        draw_regressions(rng, graph, *moments, self.prior, *out)
        point.update(self._named(*out))

    def expected(self, graph, moments):
        """Return the means of the parameters given the graph and the sums over the rows, by name."""
        from bayesstruct.networks.kernels.parameters import expected_regressions

        return self._named(*expected_regressions(graph, *moments, self.prior))

    def _named(self, intercept, weight, variance):
        source, target = self.arcs
        return {
            self.names[ArcWeightsRV]: weight[target, source],
            self.names[InterceptsRV]: intercept.copy(),
            self.names[NoiseVariancesRV]: variance.copy(),
        }


class _Gaussian:
    """Scores and parameters of a Gaussian network."""

    def __init__(self, model, part):
        from bayesstruct.networks.kernels.parameters import rows_times_rows

        table = GaussianTable.of(model, part)
        z = (table.x - table.location) / table.spread
        self.score = table.score(z)
        self.moments = rows_times_rows(z, table.free)
        self.regressions = Regressions(part, table.prior, z.shape[1])

    def draw(self, rng, graph, point):
        """Draw the parameters given the graph, into the point."""
        self.regressions.draw(rng, graph, self.moments, point)

    def expected(self, graph):
        """Return the means of the parameters given the graph, by name."""
        return self.regressions.expected(graph, self.moments)


class _Discrete:
    """Scores and parameters of a discrete network."""

    def __init__(self, model, part):
        from bayesstruct.networks.kernels.scores import BDeu

        tables = part.parameters[ProbabilityTablesRV]
        self.name, self.states = tables.name, np.array(part.rows.owner.op.states, np.int64)
        self.cells = tables.owner.op.cells
        _, sample_size = parameters(tables)
        _, _, setting = parameters(part.rows)
        observed = model.rvs_to_values[part.rows]
        values = Expressions(model, [sample_size, setting, observed])(model.initial_point())
        self.sample_size = float(np.squeeze(values[0]))
        x = np.asarray(values[2], np.int64)
        free = np.broadcast_to(np.asarray(values[1]), x.shape) < 0
        self.score = BDeu(x, states=tuple(self.states), interventions=~free, ess=self.sample_size)
        self.rows = np.ascontiguousarray(x.T), np.ascontiguousarray(free.T)

    def draw(self, rng, graph, point):
        """Draw the tables given the graph, into the point."""
        from bayesstruct.networks.kernels.parameters import draw_tables

        out = np.empty((len(self.states), self.cells))
        if not draw_tables(rng, graph, *self.rows, self.states, self.sample_size, out):
            raise RuntimeError("a table of the graph has more cells than the model has room for")
        point[self.name] = out

    def expected(self, graph):
        """Return the means of the tables given the graph, by name."""
        counts = table_counts(graph, *self.rows, self.states, self.sample_size)
        return {self.name: expected_tables((c for _, c in counts), self.cells)}


def network_problem_of(model, part):
    """Scores and prior of a recognised network, and the draws of its parameters.

    Returns
    -------
    NetworkProblem, object
    """
    family = (_Gaussian if part.gaussian else _Discrete)(model, part)
    op = part.dag.owner.op
    return NetworkProblem(tuple(map(str, op.names)), family.score, op.prior), family


class IndependentGraphs:
    """Independent draws of a graph of a few variables."""

    def __init__(self, problem):
        from bayesstruct.networks.exact.posterior import IndependentDraws

        self.draws = IndependentDraws(problem)

    def start(self, rng, graph):
        """Return the graph: nothing depends on it."""
        return graph

    def move(self, rng, graph):
        """Next graph, and the share of proposals that were accepted."""
        return self.draws(rng), 1.0

    def left_out(self, rng, graph):
        """Odds of what is left out: nothing is."""
        return 0.0

    def log_score(self, graph):
        """Log score of a graph."""
        return self.draws.log_score(graph)


class PartitionGraphs:
    """Partition Markov chain Monte Carlo over the graphs that tables of parent sets allow.

    In each sweep the parents of some blocks of variables are drawn together, those that have to change together
    between good graphs: without that chains stay for long with one of several modes.
    """

    def __init__(self, problem, sweeps, candidates):
        from bayesstruct.networks.kernels.partition_mcmc import default_moves

        self.problem, self.sweeps = problem, sweeps
        self.tables = search_tables(problem, size=candidates)
        self.moves = default_moves(self.tables.d)
        self.blocks = switching_blocks(local_modes(problem, self.tables), _BLOCK)

    def start(self, rng, graph):
        """Return where a chain begins: at a graph of a short search, unless it was given one."""
        return graph if graph.any() else chain_start(self.problem, self.tables, rng)

    def move(self, rng, graph):
        """Next graph, and the share of the reversals that were accepted."""
        from bayesstruct.networks.kernels.partition_mcmc import sweep

        graph, accepted = graph.copy(), 0
        for _ in range(self.sweeps):
            accepted += sweep(rng, self.tables, graph, self.moves)
            self._redraw_blocks(rng, graph)
        return graph, accepted / max(self.sweeps * self.moves.reversals, 1)

    def _redraw_blocks(self, rng, graph):
        from bayesstruct.networks.kernels.parent_blocks import draw_block

        for _ in range(2 + self.tables.d // 40 if self.blocks else 0):
            block = self.blocks[rng.integers(len(self.blocks))]
            draw_block(rng, self.tables, graph, block)

    def left_out(self, rng, graph):
        """Estimate the odds of parent sets outside of the tables."""
        return left_out(self.problem, self.tables, rng, graph)

    def log_score(self, graph):
        """Log score of a graph."""
        from bayesstruct.networks.kernels.parent_tables import family_scores

        return float(family_scores(self.tables, graph).sum())


@dataclass_state
class NetworkMCMCState(StepMethodState):
    """State of a step that remembers whether it has begun."""

    begun: bool


@register_step
class NetworkMCMC(BlockedStep):
    """Draws of the graph and the parameters of a Bayesian network.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` with the parameters of a
    :class:`bayesstruct.distributions.GaussianNetwork` or :class:`bayesstruct.distributions.DiscreteNetwork`. One call draws a graph,
    parameters integrated out, then the parameters given the graph. Up to 11 variables the graph is an
    independent draw from its exact posterior (:class:`bayesstruct.exact.IndependentDraws`). Beyond, or if
    `candidates` is given, it comes from `sweeps` sweeps of partition Markov chain Monte Carlo (Kuipers and
    Moffa 2017), each followed by cheap changes of single arcs (:mod:`bayesstruct.networks.kernels.partition_mcmc`) and by
    joint draws of the parents of variables that have to change together between good graphs, up to six
    (:mod:`bayesstruct.networks.kernels.parent_blocks`; Goudie and Mukherjee 2016).

    Parameters
    ----------
    vars : list of TensorVariable
        Value variables of one network.
    sweeps : int, default 1
    candidates : int, optional
        Candidate parents of each variable to begin with; 7 beyond 14 variables. Graphs
        whose parent sets have more than one parent outside the candidates are not visited
        (:func:`bayesstruct.solvers.search_tables`).
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
    The first call of a Markov chain puts it at the end of a short search over orders from a random one, so
    that chains start in the region where the posterior is. With many rows the posterior may have several modes;
    chains go from one to the other if both are among the good graphs that searches found beforehand. If none does,
    ``bs.check`` says so.

    Statistics of each draw: ``n_arcs``; ``log_score``, the sum of the local scores and log prior weights of
    the graph; ``acceptance``, the share of the reversals of arcs that were accepted, 1 for
    independent draws; and ``left_out``, an estimate of the odds of the parent sets that the candidates leave out, given
    the parents of the others, summed over the variables. It is made in one of 25 draws and zero in the others; its
    mean is what ``bs.check`` goes by.

    References
    ----------
    Goudie, R. J. B. and Mukherjee, S. (2016). A Gibbs sampler for learning DAGs. *JMLR* 17(30), 1-39. -- Kuipers,
    J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. *JASA* 112, 282-299.
    """

    name = "network_mcmc"
    default_blocked = True
    stats_dtypes_shapes = {
        "n_arcs": (int, []),
        "log_score": (float, []),
        "acceptance": (float, []),
        "left_out": (float, []),
    }
    _state_class = NetworkMCMCState

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
        drawn = [model.values_to_rvs[v] for v in self.vars]
        part, problem, self.family = _one_network(model, drawn)
        self.rng = get_random_generator(rng)
        self.begun, self.dag = False, part.dag.name
        if candidates is None and problem.d <= ALL_PARENTS:
            self.graphs = IndependentGraphs(problem)
        else:
            self.graphs = PartitionGraphs(problem, int(sweeps), candidates)

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
        }
        return point, [stats]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for graphs and parameters of networks.

        Were it to decline, samplers that know nothing of cycles would take them; so the constructor takes
        all, and raises for those that it cannot draw.
        """
        return Competence.IDEAL if is_op(var, (DAGRV, *_PARAMETERS)) else Competence.INCOMPATIBLE


def _one_network(model, drawn):
    dag = only_one(drawn, DAGRV, "graphs", _SUPPORTED)
    with refusals(dag, _SUPPORTED):
        part = network_of(model, dag)
        check_drawn(part.variables, drawn)
        return part, *network_problem_of(model, part)
