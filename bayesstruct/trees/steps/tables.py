"""Step of a random tree, of the parameters given it, and of missing values."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pymc.step_methods.compound import Competence, StepMethodState
from pymc.step_methods.state import dataclass_state

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import (
    NotRecognized,
    check_drawn,
    is_claimed,
    is_op,
    only_one,
    parameters,
    refusals,
    unpadded_parameters,
)
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.graphs.spanning_trees.forests import forest_lines, log_roots_of
from bayesstruct.graphs.spanning_trees.indicators import indicators, pair_matrix
from bayesstruct.graphs.spanning_trees.sums import rooted, rooted_forest
from bayesstruct.graphs.spanning_trees.two_kinds import all_trees
from bayesstruct.networks.priors.discrete_network import expected_tables, table_counts
from bayesstruct.networks.recognition.completed import CompletedStates
from bayesstruct.networks.steps.complete import NetworkMCMC
from bayesstruct.networks.steps.incomplete import IncompleteNetworkMCMC
from bayesstruct.networks.steps.ordered import OrderNetworkMCMC
from bayesstruct.networks.steps.scored import ScoredNetworkMCMC
from bayesstruct.precision.steps.gibbs import PrecisionGibbs
from bayesstruct.trees.data import first_state
from bayesstruct.trees.kernels.gaussian import (
    draw_means,
    draw_precision,
    edge_factors,
    expected_precision,
    posterior_scale,
)
from bayesstruct.trees.kernels.mixed import MixedTotals, draw_parameters
from bayesstruct.trees.priors.mixed_tree import MixedSpanningTreeRV
from bayesstruct.trees.priors.spanning_forest import SpanningForestRV
from bayesstruct.trees.priors.spanning_tree import STEP
from bayesstruct.trees.recognition.tables import (
    GRAPHS,
    MixedPart,
    NumberPart,
    StatePart,
    claimed_share,
    is_tree_variable,
    tree_part,
)
from bayesstruct.trees.steps.rows import fill_at_random, table_rows

if TYPE_CHECKING:
    from bayesstruct.trees.recognition.tables import TreePart

__all__ = ["TreeDraws", "table_of"]

_SUPPORTED = (
    "Supported are a SpanningTree or SpanningForest on which nothing depends; one of these with TreePrecision, TreeMeans and one observed GraphicalNormal, or with "
    "ProbabilityTables and one observed DiscreteNetwork, complete or not, on which nothing else depends; or a MixedSpanningTree with MixedTreeParameters and "
    "one observed MixedNetwork; bs.models.tree makes these"
)


class _Numbers:
    """Normal rows, and their parameters given a tree."""

    def __init__(self, model, part: NumberPart, compile_kwargs):
        _, b, t = parameters(part.precision)
        hyper = [b, t, parameters(part.mean)[1]]
        self.names = [rv.name for rv in part.variables[1:]]
        self.complete = part.missing is None
        self.hyper = Expressions(model, hyper, compile_kwargs, part.tree.name)
        self.rows = table_rows(model, part.rows)

    def start(self, rng, point):
        """Fill missing values with observed ones of the same column."""
        fill_at_random(rng, self.rows)

    def load(self, point):
        """Take the missing values from the point."""
        if not self.complete:
            self.rows.fill(point[self.names[2]])

    def gains(self, point):
        """Log Bayes factors of the pairs, (p, p)."""
        b, t, alpha = (float(np.squeeze(v)) for v in self.hyper(point))
        rows, p = self.rows, len(self.rows.total)
        cross = rows.cross + rows.incomplete.T @ rows.incomplete
        self.total = rows.sum()
        self.matrix = posterior_scale(t, alpha, rows.n, self.total, cross)
        self.prior = b, t, alpha
        return edge_factors(b + rows.n, self.matrix, t) - edge_factors(b, t * np.eye(p), t)

    def draw(self, rng, lines, point):
        """Draw precision matrix, means and missing values given the tree."""
        b, t, alpha = self.prior
        n = self.rows.n
        precision = draw_precision(rng, lines, b + n, self.matrix, t)
        mean = draw_means(rng, precision, alpha, n, self.total)
        point[self.names[0]], point[self.names[1]] = precision, mean
        if not self.complete:
            self.rows.impute(rng, precision, mean)
            point[self.names[2]] = self.rows.missing_values()

    def expected(self, lines):
        """Return the means of precision matrix and means given the tree, by name."""
        b, t, alpha = self.prior
        precision = expected_precision(lines, b + self.rows.n, self.matrix, t)
        mean = self.total / (alpha + self.rows.n)
        return dict(zip(self.names, (precision, mean), strict=False))


class _States:
    """Rows of states, and tables of probabilities given a tree."""

    def __init__(self, model, part: StatePart, compile_kwargs):
        self.complete, self.table = part.missing is None, part.table
        if self.complete:
            self.columns = self.table.columns(self.table.x)
        else:
            self.completed = CompletedStates(part)

    def start(self, rng, point):
        """Fill missing values with observed states of the same column."""
        self.completed.fill_at_random(rng)

    def load(self, point):
        """Take the missing values from the point."""
        if not self.complete:
            self.completed.fill(point[self.completed.missing])

    def gains(self, point):
        """Log Bayes factors of the pairs, (p, p)."""
        score = self.table.score(self.table.x) if self.complete else self.completed.score()
        alone, pairs = score.single_parents()
        gains = pairs - alone[:, None]
        # Both directions are the same number but for rounding.
        return (gains + gains.T) / 2.0

    def draw(self, rng, lines, point):
        """Draw tables and missing values given the tree."""
        graph = _arrows(rooted_forest(lines, len(self.table.states)))
        if self.complete:
            self.table.draw_tables(rng, graph, self.columns, point)
        else:
            self.completed.draw(rng, graph, point)

    def expected(self, lines):
        """Return the means of the tables given the tree, by name."""
        table, graph = self.table, _arrows(rooted_forest(lines, len(self.table.states)))
        counts = table_counts(graph, *self.columns, table.states, table.weight, constant=table.even)
        return {table.name: expected_tables((c for _, c in counts), table.cells)}


def _arrows(parent):
    """Graph with an arrow from each parent."""
    child, graph = np.flatnonzero(parent >= 0), np.zeros((len(parent),) * 2, np.int8)
    graph[parent[child], child] = 1
    return graph


class _Mixed:
    """Rows of numbers and states, and their parameters given a tree."""

    def __init__(self, model, part: MixedPart, compile_kwargs):
        self.complete, self.layout = part.missing is None, part.rows.owner.op.layout
        self.names = [rv.name for rv in part.variables[1:]]
        [rows] = parameters(part.vector)[1:]
        self.size = Expressions(model, [rows], compile_kwargs, part.tree.name)
        given = [*unpadded_parameters(part.rows)[2:5], observed_values(model, part.rows)]
        location, scale, setting, values = Expressions(model, given)(model.initial_point())
        if not np.isnan(setting).all():
            raise NotRecognized(
                f"values of {part.rows.name!r} were set from outside, and a tree has no directions"
            )
        self.location, self.scale = (
            np.broadcast_to(v, np.shape(values)) for v in (location, scale)
        )
        self.z = (np.asarray(values, float) - location) / scale
        self.missing = None if self.complete else part.mask.missing

    def start(self, rng, point):
        """Fill missing values with observed ones of the same column."""
        for j in np.flatnonzero(self.missing.any(axis=0)):
            gaps = self.missing[:, j]
            self.z[gaps, j] = rng.choice(self.z[~gaps, j], gaps.sum())

    def load(self, point):
        """Take the missing values from the point."""
        if not self.complete:
            gaps = self.missing
            self.z[gaps] = (point[self.names[1]] - self.location[gaps]) / self.scale[gaps]

    def gains(self, point):
        """Log Bayes factors of the pairs, (p, p)."""
        [size] = self.size(point)
        self.totals = MixedTotals(self.z, self.layout.states, float(np.squeeze(size)))
        return self.totals.weights[1]

    def draw(self, rng, lines, point):
        """Draw parameters and missing values given the tree."""
        parent = rooted(lines, first_state(self.layout.states))
        vector = draw_parameters(self.totals, self.layout, parent, rng)
        point[self.names[0]] = vector
        if not self.complete:
            self._impute(rng, vector, parent)
            point[self.names[1]] = (self.location + self.scale * self.z)[self.missing]

    def _impute(self, rng, vector, parent):
        from bayesstruct.networks.kernels.mixed_gaps import draw_gaps

        gaps = np.flatnonzero(self.missing.any(axis=1))
        z, free = self.z[gaps], np.ones((len(gaps), len(parent)), bool)
        draw_gaps(rng, self.layout, vector, _arrows(parent), z, self.missing[gaps], free)
        self.z[gaps] = z

    def expected(self, lines):
        """Return the means of the parameters given the tree, by name."""
        parent = rooted(lines, first_state(self.layout.states))
        return {self.names[0]: draw_parameters(self.totals, self.layout, parent)}


class _Nothing:
    """No table: the tree has its prior."""

    complete = True

    def __init__(self, model, part, compile_kwargs):
        self.nodes = part.tree.owner.op.nodes

    def load(self, point):
        """Leave the point as it is."""

    def gains(self, point):
        """No Bayes factors."""
        return np.zeros((self.nodes, self.nodes))

    def draw(self, rng, lines, point):
        """Leave the point as it is."""

    def expected(self, lines):
        """Return no parameters."""
        return {}


class _Share:
    """Share of the edges of a forest, given how many there are."""

    def __init__(self, model, share):
        self.name = model.rvs_to_values[share].name
        shapes = Expressions(model, parameters(share))(model.initial_point())
        self.shapes = [float(np.squeeze(v)) for v in shapes]

    def draw(self, rng, point, edges, nodes):
        """Draw its log odds: the number of edges is binomial given it, with a beta prior."""
        a, b = self.shapes
        # Logarithms of gamma variates, whose ratio does not end in 0 or 1.
        first, second = (
            np.log(rng.standard_gamma(v + 1.0)) - rng.standard_exponential() / v
            for v in (a + edges, b + nodes - 1 - edges)
        )
        point[self.name] = np.asarray(first - second)


def table_of(model, part: "TreePart", compile_kwargs: dict | None = None) -> Any:
    """Return the table of a recognised tree, with its parameters given a tree.

    Parameters
    ----------
    model : pymc.Model
    part : TreePart
    compile_kwargs : dict, optional
        Options of the compilation of expressions of the model.
    """
    if isinstance(part, NumberPart):
        return _Numbers(model, part, compile_kwargs)
    if isinstance(part, StatePart):
        return _States(model, part, compile_kwargs)
    if isinstance(part, MixedPart):
        return _Mixed(model, part, compile_kwargs)
    return _Nothing(model, part, compile_kwargs)


@dataclass_state
class TreeDrawsState(StepMethodState):
    """State of a step that remembers whether it has begun."""

    begun: bool


@register_step(
    before=(
        NetworkMCMC,
        OrderNetworkMCMC,
        IncompleteNetworkMCMC,
        ScoredNetworkMCMC,
        PrecisionGibbs,
    )
)
class TreeDraws(GibbsStep):
    """Independent draws of a tree and of the parameters given it.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.SpanningTree` with the :class:`bayesstruct.distributions.TreePrecision` and
    :class:`bayesstruct.distributions.TreeMeans` of normal rows or the :class:`bayesstruct.distributions.ProbabilityTables` of rows of states, and to a
    :class:`bayesstruct.distributions.MixedSpanningTree` with the :class:`bayesstruct.distributions.MixedTreeParameters` of rows of both. The
    parameters are integrated out while the tree is drawn from its exact posterior, a product over its edges
    (:class:`bayesstruct.graphs.spanning_trees.sums.SpanningTrees`); then they are drawn given the tree. If no value is missing and no other variable is
    random, successive draws are independent.

    A :class:`bayesstruct.SpanningForest` takes the place of the tree with parameters of one kind of columns. A beta distributed share of its edges that
    :func:`bayesstruct.models.forest` has made is drawn given their number.

    Missing values are drawn given tree and parameters, and the tree given the completed table: a Markov chain, which mixes the more slowly the
    more values are missing. It begins with observed values of the same columns.

    Raises
    ------
    ValueError
        If the model has another form.

    Notes
    -----
    Statistics of each draw: ``log_score``, the log probability of the tree given the table, as it is completed, and the log weights of its prior; and
    ``change``, the probability that a draw given the same table and weights is another tree, by which :func:`bayesstruct.check` judges
    a tree that is the same in all draws.
    """

    name = STEP
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {
        "log_score": (float, []),
        "change": (float, []),
    }
    _state_class = TreeDrawsState

    def prepare(self, model, drawn):
        """Recognise the tree and its table."""
        tree = only_one(drawn, GRAPHS, "trees and forests", _SUPPORTED)
        with refusals(tree, _SUPPORTED):
            part = tree_part(model, tree)
            share = claimed_share(model, part)
            check_drawn([*part.variables, *([] if share is None else [share])], drawn)
            self.table = table_of(model, part, self.compile_kwargs)
        self.tree = tree.name
        # Pairs with the ground, node 0 of the trees that stand for forests, come first.
        self.ground, self.nodes = is_op(tree, SpanningForestRV), tree.owner.op.nodes
        self.outer = tree.owner.op.outer if is_op(tree, MixedSpanningTreeRV) else None
        self.log_weights = Expressions(model, [part.log_weights], self.compile_kwargs, tree.name)
        precision = getattr(part, "precision", None)
        hyper = [part.log_weights, *([] if precision is None else parameters(precision)[1:])]
        hyper += [] if precision is None else parameters(part.mean)[1:]
        hyper += parameters(part.vector)[1:] if isinstance(part, MixedPart) else []
        fixed = self.table.complete and not random_ancestors(*hyper)
        self.share = None if share is None else _Share(model, share)
        self.begun = False
        self.trees = self._all_trees(model.initial_point()) if fixed else None

    def _all_trees(self, point):
        """Sum over all trees given the table."""
        [weights] = self.log_weights(point)
        prior, gains = pair_matrix(np.asarray(weights, float).reshape(-1)), self.table.gains(point)
        if self.ground:
            gains = np.pad(gains, (1, 0))  # of the ground none
        return all_trees(prior + gains, self.outer)

    def setup_chain(self, rng, tune, draws):
        """Take the generator of the chain."""
        super().setup_chain(rng, tune, draws)
        self.begun = False

    def step(self, point):
        """Draw tree, parameters and missing values."""
        point = dict(point)
        if not (self.table.complete or self.begun):
            self.table.start(self.rng, point)
        else:
            self.table.load(point)
        self.begun = True
        trees = self._all_trees(point) if self.trees is None else self.trees
        [lines] = trees.draw(1, self.rng)
        score = trees.log_probability(lines)
        if self.ground:
            score += log_roots_of(lines, trees.log_weights[0, 1:])
            lines = forest_lines(lines)
        point[self.tree] = indicators(lines, self.nodes)
        self.table.draw(self.rng, lines, point)
        if self.share is not None:
            self.share.draw(self.rng, point, len(lines), self.nodes)
        return point, [{"log_score": score, "change": -np.expm1(min(score, 0.0))}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for trees, their parameters, and missing values that a tree has claimed."""
        mine = is_tree_variable(var) or is_claimed(var, STEP)
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
