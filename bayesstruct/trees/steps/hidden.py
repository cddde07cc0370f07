"""Step of a random tree with hidden nodes, of the parameters along it, and of missing values."""

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from scipy.special import betaln

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import (
    check_drawn,
    is_claimed,
    is_op,
    only_one,
    parameters,
    refusals,
)
from bayesstruct.trees.kernels.gaussian import draw_means, posterior_scale
from bayesstruct.trees.kernels.hidden_counts import log_tree_probabilities
from bayesstruct.trees.kernels.hidden_normal import column_precision
from bayesstruct.trees.priors.hidden_trees import HIDDEN_STEP, HiddenTreeRV, TreeCorrelationsRV
from bayesstruct.trees.recognition.hidden import hidden_tree_part
from bayesstruct.trees.steps.rows import fill_at_random, table_rows
from bayesstruct.trees.steps.tables import TreeDraws

__all__ = ["HiddenTreeMoves"]

_SUPPORTED = (
    "Supported is a HiddenTree with its TreeCorrelations, standard deviations, TreeMeans and one observed GraphicalNormal, complete or "
    "not, on which nothing else depends; bs.models.latent_tree makes these"
)
#: Share of the information of the table that a chain begins with, so that chains begin apart.
_FAINT = 0.03


@dataclass_state
class HiddenTreeMovesState(StepMethodState):
    """State of a step that remembers whether it has begun."""

    begun: bool


@register_step(before=TreeDraws)
class HiddenTreeMoves(GibbsStep):
    """Moves of a tree with hidden nodes, and draws of its parameters and of missing values.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.distributions.HiddenTree` with the :class:`bayesstruct.distributions.TreeCorrelations` along it and
    normal rows, as in :func:`bayesstruct.models.latent_tree`. Hidden values and means are integrated out. In each draw every correlation and
    every standard deviation is drawn in turn by slice sampling; then as many branches as there are columns are cut off one after the other and joined to the rest
    again, at a node or at a new hidden node in the middle of an edge: moves of Metropolis, Hastings and Green, whose proposals are
    nearly the posterior of the place. Then the means are drawn, and missing values given them.

    Correlations along edges stay below 1 - 1e-10, beyond which they are 1 but for rounding: leave one of two columns out that are the same but for
    a noise of a hundred-thousandth of their standard deviations.

    A chain begins at the tree of the initial point, and makes its first moves with a small share of the table's information, so that chains
    begin apart.

    Raises
    ------
    ValueError
        If the model has another form.

    Notes
    -----
    Statistic of each draw: ``moved``, the share of the branches that went to another place.
    """

    name = HIDDEN_STEP
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {"moved": (float, [])}
    _state_class = HiddenTreeMovesState

    def prepare(self, model, drawn):
        """Recognise the tree and its table."""
        tree = only_one(drawn, HiddenTreeRV, "trees with hidden nodes", _SUPPORTED)
        with refusals(tree, _SUPPORTED):
            part = hidden_tree_part(model, tree)
            check_drawn(part.variables, drawn)
        hyper = [parameters(part.tree)[0], parameters(part.correlations)[1]]
        hyper += [*parameters(part.deviations), parameters(part.mean)[1]]
        found = Expressions(model, hyper)(model.initial_point())
        weight, shape, center, spread, self.alpha = (float(np.squeeze(v)) for v in found)
        if center != 0.0:
            raise ValueError(f"{part.deviations.name!r} has another prior median than 1")
        self.names = [rv.name for rv in part.variables]
        self.columns, most = tree.owner.op.columns, tree.owner.op.hidden
        self.prior = _prior(self.columns, most, weight, shape, spread)
        self.rows, self.complete = table_rows(model, part.rows), part.missing is None
        self.begun = False

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun = False

    def step(self, point):
        """Draw tree, parameters and missing values."""
        from bayesstruct.trees.kernels.hidden_moves import draw_tree
        from bayesstruct.trees.kernels.hidden_places import Prior
        from bayesstruct.trees.kernels.hidden_trees import neighbours_of, rooted_form

        point, rows, p = dict(point), self.rows, self.columns
        parent_name, correlation_name, deviation_name, mean_name, *missing = self.names
        if missing and self.begun:
            rows.fill(point[missing[0]])
        elif missing:
            fill_at_random(self.rng, rows)
        deviation = np.array(point[deviation_name], float)
        parent = np.array(point[parent_name], np.int64)
        correlation = np.array(point[correlation_name], float)
        tree = neighbours_of(parent, correlation)
        total, prior = rows.sum(), Prior(*self.prior)
        cross = rows.cross + rows.incomplete.T @ rows.incomplete
        scatter = posterior_scale(0.0, self.alpha, rows.n, total, cross)
        if not self.begun:
            draw_tree(
                self.rng, *tree, deviation, _FAINT * scatter, _FAINT * rows.n, prior, 2 * p, 1
            )
        moved = draw_tree(self.rng, *tree, deviation, scatter, float(rows.n), prior, p, 1)
        self.begun = True
        rooted_form(*tree, p, parent, correlation)
        precision = column_precision(parent, correlation, deviation)
        mean = draw_means(self.rng, precision, self.alpha, rows.n, total)
        point |= {parent_name: parent, correlation_name: correlation}
        point |= {deviation_name: deviation, mean_name: mean}
        if missing:
            rows.impute(self.rng, precision, mean)
            point[missing[0]] = rows.missing_values()
        return point, [{"moved": moved}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for trees with hidden nodes and what they have claimed."""
        mine = is_op(var, (HiddenTreeRV, TreeCorrelationsRV)) or is_claimed(var, HIDDEN_STEP)
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE


def _prior(columns, most, weight, shape, spread):
    """Return the prior as the kernel takes it."""
    log_constant = -betaln(shape, shape) - (2.0 * shape - 1.0) * np.log(2.0)
    return log_tree_probabilities(columns, most, weight), shape, float(log_constant), spread
