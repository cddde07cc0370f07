"""Parts of models of classifiers: constants for readers."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from bayesstruct.classifiers.data import ClassifierTable
from bayesstruct.classifiers.kernels.scores import ClassifierScore
from bayesstruct.classifiers.ops import arc_sum
from bayesstruct.core.tables.codings import record_levels
from bayesstruct.graphs.records import Acyclic, ArcEnds, ArcPrior, GraphsByScore
from bayesstruct.networks.kernels.scores.discrete import BDe
from bayesstruct.networks.priors.records import ClassifierTarget, NetworkStates

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["add_score", "record_classifier", "tree_cells", "tree_prior"]


def tree_cells(table: ClassifierTable) -> int:
    """Cells of the largest table of a feature with the target and one feature as parents."""
    states, target = table.counts, table.target
    most = max(
        int(states[i]) * int(max(np.delete(states, [i, target]), default=1)) for i in table.features
    )
    return most * int(states[target])


def tree_prior(table: ClassifierTable) -> np.ndarray:
    """Prior probability of each arc where all rooted trees have the same one, (d, d)."""
    d, m = len(table.names), len(table.features)
    prior = np.full((d, d), 1.0 / m)
    prior[table.target], prior[:, table.target] = 1.0, 0.0
    return prior


def record_classifier(table: ClassifierTable, prior: np.ndarray, cells: int) -> None:
    """Record columns, states, target, and the prior probabilities of the arcs, (d, d)."""
    source, target = table.states.arc_index
    pm.modelcontext(None).add_coord("cell", np.arange(cells))
    ArcEnds.in_model(source, target).record()
    ArcPrior(prior[source, target], independent=0).record()
    Acyclic(1).record()
    NetworkStates(table.counts).record()
    record_levels(table.states)
    ClassifierTarget(table.target).record()


def add_score(
    dag: "TensorVariable", table: ClassifierTable, score: ClassifierScore, pseudo_count: float
) -> None:
    """Let trees have the weight exp(score) in place of their marginal likelihood, as a potential.

    Parameters
    ----------
    dag : TensorVariable
        An ``AugmentedTree``.
    table : ClassifierTable
    score : ClassifierScore
        The same for trees with the same lines.
    pseudo_count : float
        Of the tables, ``EvenTables``.
    """
    evidence = BDe(table.codes, states=table.states.states, pseudo_count=pseudo_count)
    weights, gains = np.zeros((len(table.names),) * 2), score.gains()
    weights[np.ix_(table.features, table.features)] = (gains + gains.T) / 2.0
    for child in table.features.tolist():
        alone = evidence.local(child, [table.target])
        for parent in table.features.tolist():
            if parent != child:
                weights[parent, child] -= evidence.local(child, [table.target, parent]) - alone
    pm.Potential("structure_score", arc_sum(dag, weights))
    GraphsByScore(1).record()
