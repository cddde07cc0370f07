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
from bayesstruct.sem.kernels.settings import FREE, MIXTURE
from bayesstruct.sem.priors.incomplete import MissingNumbersRV
from bayesstruct.sem.priors.parameters import (
    ArcSlabsRV,
    CommonNoiseScaleRV,
    LocalScalesRV,
    NoiseDegreesRV,
    NoiseScalesRV,
)
from bayesstruct.sem.priors.rows import STEP
from bayesstruct.sem.recognition import equations_of
from bayesstruct.sem.steps.arc_chain import climb, fill_parameters, sweep
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
_BEGIN = 20  # sweeps until what columns share is near where it will be
_SUPPORTED = (
    "Supported are one observed LinearSem with ArcSlabs, Intercepts and NoiseScales or a CommonNoiseScale of a DAG "
    "without the prior 'order', on which nothing else depends; bs.models.linear_sem makes them"
)


@dataclass_state
class LinearSemMCMCState(StepMethodState):
    """State of a step that remembers whether it has begun, and where a mixture that columns share is fitted."""

    begun: bool
    reference: np.ndarray


@register_step(before=(ScoredNetworkMCMC, IncompleteNetworkMCMC, NetworkMCMC, OrderNetworkMCMC))
class LinearSemMCMC(GibbsStep):
    """Draws of the graph, the parameters and the missing values of linear structural equations.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.DAG` with the parameters of a :class:`bayesstruct.distributions.LinearSem` or
    :class:`bayesstruct.distributions.IncompleteLinearSem`. One call proposes `moves` changes of single arcs, or of one parent
    for another, each with new parameters of the columns concerned from approximations of their posterior, which the
    acceptance corrects (:mod:`bayesstruct.sem.steps.arc_chain`); then it draws the parameters of all columns, what they share,
    and missing values given what makes the noise of each value normal.

    Parameters
    ----------
    moves : int, optional
        Proposals of changes of the graph for each draw; twice the number of ordered pairs of columns by default, at least 20.

    Raises
    ------
    ValueError
        If the graph is not that of linear structural equations that can be drawn exactly.

    Notes
    -----
    The first call of a chain puts it at the end of a greedy search from parents by a random order, so that chains start apart.

    Statistics of each draw: ``n_arcs``, and ``acceptance``, the share of the proposed changes that were accepted.

    References
    ----------
    Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian model determination.
    *Biometrika* 82, 711-732.
    """

    name = STEP
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {
        "n_arcs": (int, []),
        "acceptance": (float, []),
    }
    _state_class = LinearSemMCMCState

    def prepare(self, model, drawn, moves=None):
        """Recognise the equations, and set the chain up."""
        dag = only_one(drawn, GRAPHS, "graphs", _SUPPORTED)
        with refusals(dag, _SUPPORTED):
            self.equations = equations = equations_of(model, dag)
            check_drawn(equations.variables, drawn)
        d = len(equations.relative)
        self.moves = max(20, 2 * d * (d - 1)) if moves is None else int(moves)
        self.points, prior = Points(equations), dag.owner.op.prior
        self.families = Families(equations.settings, equations.relative, equations.free, prior)
        self.begun, self.reference = False, np.empty(0)
        self.cells = equations.names.get(MissingNumbersRV)
        self.complete = not equations.missing.any()
        if self.complete:
            self.families.use(equations.table)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun, self.reference = False, np.empty(0)

    def step(self, point):
        """Draw graph, parameters and missing values once."""
        point = dict(point)
        if not self.begun:
            self._begin(point)
        table = self._table(point)
        self._use(table)
        state = self.points.state(self.rng, point)
        share = sweep(self.rng, self.families, state, self.moves)
        self.points.write(state, point)
        if self.cells is not None:
            self._fill(table, point)
        return point, [{"n_arcs": int(state.dag.sum()), "acceptance": share}]

    def _table(self, point):
        """Table in the units of the model with the missing values of a point."""
        equations = self.equations
        x = equations.x.copy()
        if self.cells is not None:
            x[equations.missing] = point[self.cells]
        return (x - equations.location) / equations.spread

    def _use(self, table):
        if not self.complete or not np.array_equal(self.families.reference, self.reference):
            self.families.use(table, self.reference)

    def _fill(self, table, point):
        """Draw the missing values given all else."""
        from bayesstruct.sem.kernels.missing_cells import draw_missing_cells

        equations = self.equations
        gaps = np.flatnonzero(equations.missing.any(axis=1))
        z, missing = table[gaps], equations.missing[gaps]
        params = self.points.parameters(point)
        noise = equations.settings.noise
        draw_missing_cells(self.rng, noise, *params, equations.free[gaps], z, missing)
        point[self.cells] = (equations.location + equations.spread * z)[missing]

    def _begin(self, point):
        """Put a chain at the end of a greedy search."""
        rng, settings, families = self.rng, self.equations.settings, self.families
        table = self._table(point)
        self._use(table)
        state = self.points.state(rng, point)
        shared = settings.variances != FREE
        if shared and settings.noise == MIXTURE:
            families.use(table, state.shared.shape)
        if shared:
            state.shared.tau = float(np.log(max(table.std() / 2.0, 1e-3)))
        climb(rng, families, state)
        fill_parameters(rng, families, state)
        for _ in range(_BEGIN if shared else 0):
            sweep(rng, families, state, families.d)
            if settings.noise == MIXTURE:
                families.use(table, state.shared.shape)
        if shared and settings.noise == MIXTURE:
            self.reference = state.shared.shape.copy()
        self.points.write(state, point)
        self.begun = True

    @staticmethod
    def competence(var, has_grad):
        """Ideal for graphs and parameters of linear structural equations."""
        own = is_op(var, _OWN) or is_claimed(var, STEP)
        return Competence.IDEAL if own else Competence.INCOMPATIBLE


