"""Step of linear structural equations: graph, parameters and missing values."""

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import check_drawn, is_claimed, is_op, only_one, refusals
from bayesstruct.networks.recognition.network import GRAPHS
from bayesstruct.networks.steps.complete import NetworkMCMC
from bayesstruct.networks.steps.incomplete import IncompleteNetworkMCMC
from bayesstruct.networks.steps.ordered import OrderNetworkMCMC
from bayesstruct.networks.steps.scored import ScoredNetworkMCMC
from bayesstruct.sem.kernels.errors import start_shape
from bayesstruct.sem.kernels.families import Shared
from bayesstruct.sem.kernels.settings import FREE, GAUSSIAN, MIXTURE
from bayesstruct.sem.priors.incomplete import MissingNumbersRV
from bayesstruct.sem.priors.parameters import (
    ArcSlabsRV,
    CommonNoiseScaleRV,
    LocalScalesRV,
    NoiseDegreesRV,
    NoiseScalesRV,
)
from bayesstruct.sem.priors.rows import STEP
from bayesstruct.sem.recognition import equations_of, sem_problem
from bayesstruct.sem.steps.arc_chain import ArcState, climb, fill_parameters, sweep
from bayesstruct.sem.steps.families import Families
from bayesstruct.sem.steps.points import Points

__all__ = ["LinearSemMCMC"]

_OWN = (
    NoiseScalesRV,
    CommonNoiseScaleRV,
    ArcSlabsRV,
    LocalScalesRV,
    NoiseDegreesRV,
    MissingNumbersRV,
)
_SEED = 20170  # candidates are part of the target: all chains have to have the same
_BEGIN = 20  # sweeps until what columns share is near where it will be
_SUPPORTED = (
    "Supported are one observed LinearSem with ArcSlabs, Intercepts and NoiseScales or a CommonNoiseScale of a DAG "
    "without the prior 'order', on which nothing else depends; bs.models.linear_sem makes them"
)


@dataclass_state
class LinearSemMCMCState(StepMethodState):
    """State of a step that remembers whether it has begun."""

    begun: bool


class _Complete:
    """Chain on a complete table, with tables of parent sets that are made once."""

    def __init__(self, equations, candidates):
        from bayesstruct.sem.kernels.chain import SemChain

        self.points, self.problem = Points(equations), sem_problem(equations)
        settings = equations.settings
        self.told = settings.noise != GAUSSIAN and settings.variances == FREE
        self.told = self.told and bool(equations.free.all())
        graphs = self._direct(np.random.default_rng(_SEED), 1)
        self.chain = SemChain(self.problem, candidates=candidates, graphs=graphs)

    def _direct(self, rng, count):
        """Graphs of DirectLiNGAM of the table and of bootstrapped tables; none where it tells nothing."""
        from bayesstruct.sem.solvers.direct_lingam import bootstrapped_graphs

        if not self.told:
            return []
        return bootstrapped_graphs(self.problem.score.table, self.problem.prior, rng, count) or []

    def start(self, rng, point):
        """Put the end of a short search into a point, unless it has arcs beside required ones."""
        if not (point[self.points.dag] != self.chain.problem.prior.required).any():
            graphs = self._direct(rng, 2)
            self.points.write(self.chain.start(rng, graphs[1] if graphs else None), point)

    def move(self, rng, point):
        """Draw graph and parameters; return the share of proposals that were accepted."""
        state, found = self.chain.sweep(rng, self.points.state(point))
        self.points.write(state, point)
        return found["acceptance"]

    def change(self, graph):
        """Largest probability of a change of one arc, or of the parents of one column, given the rest of the graph."""
        from bayesstruct.networks.kernels.samplers.structure_mcmc import change_probability

        return change_probability(self.chain.tables, graph)

    def normal_change(self, point):
        """Sum over columns of the probabilities that the noise is of the other kind, given the graph and the share."""
        graph, normal = np.asarray(point[self.points.dag]), point.get(self.points.normal)
        if normal is None:
            return 0.0
        parents = [np.flatnonzero(column) for column in graph.T]
        share, scores = self.points.share_at(point), self.chain.scores
        families = [scores.family(i, own).at(share) for i, own in enumerate(parents)]
        return sum(own.other_kind(bool(k)) for own, k in zip(families, normal, strict=True))


class _Incomplete:
    """Chain on a table whose missing values are drawn too, with fits that are made when they are asked for."""

    def __init__(self, equations):
        self.equations, self.points = equations, Points(equations)
        prior, d = equations.dag.owner.op.prior, len(equations.relative)
        settings = equations.settings
        self.moves = max(20, 2 * d * (d - 1))
        self.families = Families(settings, equations.relative, equations.free, prior)
        self.mixture = settings.variances != FREE and settings.noise == MIXTURE

    def _begin(self):
        """State with required arcs alone, at the prior of what columns share."""
        shape = start_shape(self.equations.settings) if self.mixture else np.empty(0)
        required = self.families.prior.required.astype(np.int8)
        return ArcState(required, shared=Shared(-0.5, shape.copy()))

    def settle(self, rng, table):
        """State at the end of a greedy search, after some sweeps if columns share something."""
        arcs, families = self._begin(), self.families
        families.use(table, arcs.shared.shape if self.mixture else None)
        climb(rng, families, arcs)
        fill_parameters(rng, families, arcs)
        for _ in range(_BEGIN if families.settings.variances != FREE else 0):
            sweep(rng, families, arcs, families.d)
            if self.mixture:
                families.use(table, arcs.shared.shape)
        return arcs

    def start(self, rng, point):
        """Fill missing values with observed ones of the same column, and search for a graph unless there is one."""
        equations, cells = self.equations, self._cells
        if (point[self.points.dag] != self.families.prior.required).any():
            return
        x = equations.x
        for j in np.flatnonzero(equations.missing.any(axis=0)):
            own = equations.missing[:, j]
            x[own, j] = rng.choice(x[~own, j], own.sum())
        point[cells] = x[equations.missing]
        arcs = self.settle(rng, equations.table)
        self.points.write(self.points.sem_state(rng, arcs), point)

    def change(self, graph):
        """Return NaN: approximations are made for what is proposed only."""
        return np.nan

    def normal_change(self, point):
        """Return NaN, as `change`."""
        return np.nan

    @property
    def _cells(self):
        return self.equations.names[MissingNumbersRV]

    def move(self, rng, point):
        """Draw graph, parameters and missing values; return the share of proposals that were accepted."""
        from bayesstruct.sem.kernels.missing_cells import draw_missing_cells

        equations = self.equations
        missing = equations.missing
        equations.x[missing] = point[self._cells]
        table = equations.table
        arcs = self.points.arc_state(rng, self.points.state(point))
        self.families.use(table, arcs.shared.shape if self.mixture else None)
        share = sweep(rng, self.families, arcs, self.moves)
        state = self.points.sem_state(rng, arcs)
        self.points.write(state, point)
        gaps = np.flatnonzero(missing.any(axis=1))
        z, params = table[gaps], self.points.parameters(state)
        noise = equations.settings.noise
        draw_missing_cells(rng, noise, *params, equations.free[gaps], z, missing[gaps])
        table[gaps] = z
        point[self._cells] = (equations.location + equations.spread * table)[missing]
        return share


@register_step(before=(ScoredNetworkMCMC, IncompleteNetworkMCMC, NetworkMCMC, OrderNetworkMCMC))
class LinearSemMCMC(GibbsStep):
    """Draws of the graph, the parameters and the missing values of linear structural equations.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` with the parameters of a :class:`bayesstruct.distributions.LinearSem` or
    :class:`bayesstruct.distributions.IncompleteLinearSem`. Graphs are proposed by moves of partition and structure Markov chain Monte
    Carlo on approximate evidences, up to 11 columns also by independent draws; parameters of the columns whose parents change by
    approximations of their posterior; and both are accepted by what the approximations get
    wrong (:mod:`bayesstruct.sem.kernels.chain`), so that the posterior is exact.

    If values are missing, the table is another one in each draw. Then single arcs are added, deleted, reversed and
    exchanged, with approximations that are made when they are asked for (:mod:`bayesstruct.sem.steps.arc_chain`), and missing values
    are drawn given what makes the noise of each value normal.

    Parameters
    ----------
    candidates : int, optional
        Candidate parents of each column to begin with; 5 to 8 beyond 9 columns. Graphs whose parent sets have more than one
        parent outside the candidates are not visited. Not used if values are missing.

    Raises
    ------
    ValueError
        If the graph is not that of linear structural equations that can be drawn exactly.

    Notes
    -----
    The first call of a chain puts it at the end of a short search, which begins at the order of DirectLiNGAM of rows drawn with
    replacement, or at random orders where normal noise, equal or known variances or interventions leave that without a basis, so
    that chains start apart.

    Statistics of each draw: ``n_arcs``; ``acceptance``, the share of the proposed graphs that were accepted; ``change``, the
    largest probability that one column has other parents, or an arc the other direction, given the rest of the graph and as far as
    the approximations of the evidence know (NaN if values are missing). By it ``bs.check`` judges a graph that is the same in all draws,
    and by ``normal_change``, the sum over columns of the probabilities that the noise is of the other kind given the graph (NaN too), which columns
    have normal noise.

    References
    ----------
    Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian model determination.
    *Biometrika* 82, 711-732. -- Kuipers, J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. *JASA* 112,
    282-299. -- Andrieu, C. and Roberts, G. O. (2009). The pseudo-marginal approach for efficient Monte Carlo
    computations. *Annals of Statistics* 37, 697-725.
    """

    name = STEP
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {
        "n_arcs": (int, []),
        "acceptance": (float, []),
        "change": (float, []),
        "normal_change": (float, []),
    }
    _state_class = LinearSemMCMCState

    def prepare(self, model, drawn, candidates=None):
        """Recognise the equations, and set the chain up."""
        dag = only_one(drawn, GRAPHS, "graphs", _SUPPORTED)
        with refusals(dag, _SUPPORTED):
            equations = equations_of(model, dag)
            check_drawn(equations.variables, drawn)
        complete = not equations.missing.any()
        self.chain = _Complete(equations, candidates) if complete else _Incomplete(equations)
        self.begun, self.dag = False, dag.name

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun = False

    def step(self, point):
        """Draw graph, parameters and missing values once."""
        point = dict(point)
        if not self.begun:
            self.chain.start(self.rng, point)
            self.begun = True
        share = self.chain.move(self.rng, point)
        share = 0.0 if np.isnan(share) else share
        graph = np.asarray(point[self.dag], np.int8)
        stats = {
            "n_arcs": int(graph.sum()),
            "acceptance": share,
            "change": self.chain.change(graph),
            "normal_change": self.chain.normal_change(point),
        }
        return point, [stats]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for graphs and parameters of linear structural equations."""
        own = is_op(var, _OWN) or is_claimed(var, STEP)
        return Competence.IDEAL if own else Competence.INCOMPATIBLE
