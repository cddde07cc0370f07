"""Step of a random tree with hidden nodes and of the tables of probabilities along it."""

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import (
    check_drawn,
    is_claimed,
    is_op,
    only_one,
    parameters,
    refusals,
)
from bayesstruct.trees.kernels.hidden_counts import log_tree_probabilities
from bayesstruct.trees.priors.hidden_states import HIDDEN_STATE_STEP, TreeTablesRV
from bayesstruct.trees.priors.hidden_trees import HiddenTreeRV
from bayesstruct.trees.recognition.hidden_states import hidden_states_part
from bayesstruct.trees.steps.hidden import HiddenTreeMoves

__all__ = ["HiddenStateMoves"]

_SUPPORTED = (
    "Supported is a HiddenTree with its TreeTables and one observed HiddenTreeStates, on which nothing else depends; "
    'bs.models.latent_tree(score="bdeu") makes these'
)
#: Share of the rows that a chain begins with, so that chains begin apart.
_FAINT = 0.03


@dataclass_state
class HiddenStateMovesState(StepMethodState):
    """State of a step that remembers whether it has begun."""

    begun: bool


@register_step(before=HiddenTreeMoves)
class HiddenStateMoves(GibbsStep):
    """Moves of a tree of columns of states with hidden nodes, and draws of the tables of probabilities along it.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.distributions.HiddenTree` with its :class:`bayesstruct.distributions.TreeTables` and
    :class:`bayesstruct.distributions.HiddenTreeStates`, as in :func:`bayesstruct.models.latent_tree`. In each draw the states of all hidden nodes are
    drawn, and all tables given them; then, with the hidden states summed out, as many branches as there are columns are cut off one after the other and joined to
    the rest again, at a node or at a new hidden node in the middle of an edge. The tables around the place are drawn anew with it: moves of Metropolis, Hastings and
    Green between spaces of different dimensions, whose proposals are nearly the posterior of the place and its tables.

    A chain begins at the tree of the initial point, and makes its first moves with a small share of each row, so that chains begin apart.

    Raises
    ------
    ValueError
        If the model has another form.

    Notes
    -----
    Statistic of each draw: ``moved``, the share of the branches that went to another place.
    """

    name = HIDDEN_STATE_STEP
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {"moved": (float, [])}
    _state_class = HiddenStateMovesState

    def prepare(self, model, drawn):
        """Recognise the tree and its table."""
        tree = only_one(drawn, HiddenTreeRV, "trees with hidden nodes", _SUPPORTED)
        with refusals(tree, _SUPPORTED):
            part = hidden_states_part(model, tree)
            check_drawn(part.variables, drawn)
        given = [
            *parameters(part.tree),
            parameters(part.tables)[1],
            observed_values(model, part.rows),
        ]
        weight, size, values = Expressions(model, given)(model.initial_point())
        self.names = [rv.name for rv in part.variables]
        op = tree.owner.op
        self.prior = (
            log_tree_probabilities(op.columns, op.hidden, float(np.squeeze(weight))),
            float(np.squeeze(size)),
        )
        self.states = np.array(part.tables.owner.op.states)
        self.observe(values)
        self.begun = False

    def observe(self, rows):
        """Take these rows of states as the table."""
        codes, counts = np.unique(np.asarray(rows, np.int64), axis=0, return_counts=True)
        self.codes, self.counts = np.ascontiguousarray(codes), counts.astype(float)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun = False

    def step(self, point):
        """Draw tables and tree."""
        from bayesstruct.trees.kernels.hidden_states.moves import StatePrior, draw_tree_of_states

        point, prior, p = dict(point), StatePrior(*self.prior), self.codes.shape[1]
        parent_name, table_name = self.names
        parent = np.array(point[parent_name], np.int64)
        table = np.array(point[table_name], float)
        known = parent, table, self.states, self.codes
        if not self.begun:
            draw_tree_of_states(self.rng, *known, _FAINT * self.counts, prior, 2 * p)
        moved = draw_tree_of_states(self.rng, *known, self.counts, prior, p)
        self.begun = True
        return point | {parent_name: parent, table_name: table}, [{"moved": moved}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for trees with hidden nodes that have tables, and for these."""
        mine = is_op(var, TreeTablesRV) or is_claimed(var, HIDDEN_STATE_STEP)
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
