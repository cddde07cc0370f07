"""Best structure of a classifier, and its parameters."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.classifiers.recognition import (
    TABLES,
    ClassifierPart,
    classifier_of,
    graph_of,
    line_gains,
)
from bayesstruct.classifiers.solvers.structures import tree_dag
from bayesstruct.core.modes import Mode, ModeSolver, register_mode
from bayesstruct.core.recognition import NotRecognized, is_op
from bayesstruct.graphs.spanning_trees.maximum import maximum_spanning_forest
from bayesstruct.graphs.spanning_trees.sums import rooted
from bayesstruct.networks.priors.discrete_network import expected_tables, table_counts

if TYPE_CHECKING:
    from pymc import Model

__all__ = ["ClassifierMode", "classifier_mode"]


@register_mode
class ClassifierMode(ModeSolver):
    """Best structure of a classifier.

    The tree of the greatest posterior probability, a maximum spanning tree, from the first feature; and the means of the tables
    given it. Where the structure is fixed, the means of the tables.
    """

    def recognise(self, model):
        """Return the classifier, or None."""
        tables = [rv for rv in model.free_RVs if is_op(rv, TABLES) and graph_of(rv) is not None]
        if len(tables) != 1:
            return None
        try:
            return classifier_of(model, tables[0])
        except NotRecognized:
            return None

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Find the best tree."""
        return Mode(classifier_mode(model, part))


def classifier_mode(model: "Model", part: ClassifierPart) -> dict[str, np.ndarray]:
    """Return the best structure and the means of the tables given it, as a point of the model."""
    point, graph, table = dict(model.initial_point()), part.dag, part.table
    if part.is_random:
        target = part.dag.owner.op.target
        lines = maximum_spanning_forest(line_gains(part, target))
        point[part.dag.name] = graph = tree_dag(rooted(lines, 0), target)
    rows, kept = table.columns(table.x)
    counts = table_counts(graph, rows, kept, table.states, table.weight, table.even)
    point[table.name] = expected_tables((c for _, c in counts), table.cells)
    return point
