"""Step of classifiers: independent draws of the structure and its tables."""

from pymc.step_methods.compound import Competence

from bayesstruct.classifiers.priors import AugmentedTreeRV
from bayesstruct.classifiers.recognition import TABLES, classifier_of, graph_of, line_gains
from bayesstruct.classifiers.solvers.structures import tree_dag
from bayesstruct.core.gibbs import GibbsStep, register_step
from bayesstruct.core.recognition import check_drawn, is_op, only_one, refusals
from bayesstruct.graphs.spanning_trees.sums import SpanningTrees, rooted
from bayesstruct.networks.steps.complete import NetworkMCMC
from bayesstruct.networks.steps.incomplete import IncompleteNetworkMCMC
from bayesstruct.networks.steps.ordered import OrderNetworkMCMC
from bayesstruct.networks.steps.scored import ScoredNetworkMCMC

__all__ = ["ClassifierDraws"]

_SUPPORTED = (
    "Supported is one observed DiscreteNetwork with ProbabilityTables or EvenTables, whose graph is an AugmentedTree or a constant; "
    "beside them only sums of constant weights over its arcs; bs.models.network_classifier makes these"
)


@register_step(before=(NetworkMCMC, OrderNetworkMCMC, IncompleteNetworkMCMC, ScoredNetworkMCMC))
class ClassifierDraws(GibbsStep):
    """Independent draws of the structure of a classifier, and of its tables given the structure.

    Assigned by ``pm.sample`` to a :class:`bayesstruct.distributions.AugmentedTree` with the tables of a
    :class:`bayesstruct.distributions.DiscreteNetwork`, and to tables whose graph is constant. The tables are integrated out while the
    tree is drawn from its exact posterior, a product over its lines
    (:class:`bayesstruct.graphs.spanning_trees.sums.SpanningTrees`). Each feature is its root with the same probability.

    Raises
    ------
    ValueError
        If the model has another form, or the density of a tree depends on its root.

    Notes
    -----
    Statistics of each draw: ``log_score``, the log posterior probability of the tree; 0 for a constant graph.
    """

    name = "classifier_draws"
    stats_dtypes_shapes: dict[str, tuple[type, list]] = {"log_score": (float, [])}

    def prepare(self, model, drawn):
        """Recognise the classifier, and sum over all trees."""
        tables = only_one(drawn, TABLES, "tables of probabilities", _SUPPORTED)
        with refusals(tables, _SUPPORTED):
            part = classifier_of(model, tables)
            check_drawn(part.variables, drawn)
            self.trees = self.dag = None
            if part.is_random:
                self.dag, self.target = part.dag.name, part.dag.owner.op.target
                self.trees = SpanningTrees(line_gains(part, self.target))
        self.table, self.graph = part.table, None if part.is_random else part.dag
        self.columns = part.table.columns(part.table.x)

    def step(self, point):
        """Draw the structure, if it is random, and the tables."""
        point, log_score = dict(point), 0.0
        graph = self.graph
        if self.trees is not None:
            [lines] = self.trees.draw(1, self.rng)
            graph = tree_dag(rooted(lines, int(self.rng.integers(self.trees.n))), self.target)
            point[self.dag], log_score = graph, self.trees.log_probability(lines)
        self.table.draw_tables(self.rng, graph, self.columns, point)
        return point, [{"log_score": log_score}]

    @staticmethod
    def competence(var, has_grad):
        """Ideal for structures of classifiers, their tables, and tables of a constant graph."""
        mine = is_op(var, AugmentedTreeRV) or (is_op(var, TABLES) and graph_of(var) is not None)
        return Competence.IDEAL if mine else Competence.INCOMPATIBLE
