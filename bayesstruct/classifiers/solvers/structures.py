"""Searches for the structure of a classifier: none, the best tree, greedy hill climbing."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.data.arguments import choice
from bayesstruct.graphs.spanning_trees.maximum import maximum_branching, maximum_spanning_forest
from bayesstruct.graphs.spanning_trees.sums import rooted

if TYPE_CHECKING:
    from bayesstruct.classifiers.kernels.scores import ClassifierScore

__all__ = ["STRUCTURES", "best_tree", "empty_structure", "hill_climb", "search", "tree_dag"]

#: Structures by name, and the number of features that each needs.
STRUCTURES = {"naive": 1, "tan": 2, "ghc2": 2}
_PARENTS = 2  # of a feature, beside the target, in greedy hill climbing


def search(score: "ClassifierScore", structure: str) -> np.ndarray:
    """Return the structure of a kind that a score is best for, or a local optimum (``"ghc2"``).

    Parameters
    ----------
    score : ClassifierScore
    structure : {"naive", "tan", "ghc2"}

    Returns
    -------
    (d, d) ndarray of int8
        1 at (parent, child).
    """
    kind = choice("structure", structure, STRUCTURES)
    if kind == "naive":
        return empty_structure(score)
    return best_tree(score) if kind == "tan" else hill_climb(score)


def empty_structure(score: "ClassifierScore") -> np.ndarray:
    """Return the structure of the naive Bayes classifier: arcs from the target alone."""
    d = len(score.states)
    dag = np.zeros((d, d), np.int8)
    dag[score.target, score.features] = 1
    return dag


def tree_dag(parent: np.ndarray, target: int) -> np.ndarray:
    """Return the structure with a tree over the features.

    Parameters
    ----------
    parent : (d - 1,) ndarray of int
        Parent of each feature among the features, -1 for the root.
    target : int
    """
    d = len(parent) + 1
    features = np.delete(np.arange(d), target)
    dag = np.zeros((d, d), np.int8)
    dag[target, features] = 1
    child = np.flatnonzero(parent >= 0)
    dag[features[parent[child]], features[child]] = 1
    return dag


def best_tree(score: "ClassifierScore") -> np.ndarray:
    """Return the tree-augmented structure with the highest score, which is exact.

    The tree is rooted at the first feature if the score does not depend on the root.
    """
    from bayesstruct.classifiers.kernels.scores import SCORES

    gains = score.gains()
    if SCORES[score.kind]:
        lines = maximum_spanning_forest(gains)
        return tree_dag(rooted(lines, 0), score.target)
    return tree_dag(maximum_branching(gains), score.target)


def hill_climb(score: "ClassifierScore", max_parents: int = _PARENTS) -> np.ndarray:
    """Climb from the naive Bayes structure by the best change of one arc between features, until none improves.

    Parameters
    ----------
    score : ClassifierScore
    max_parents : int
        Of a feature, beside the target.
    """
    dag = empty_structure(score)
    features = score.features.tolist()
    while True:
        best, change = 1e-9, None
        for i in features:
            for j in features:
                if i == j:
                    continue
                for gain, new in _changes(score, dag, i, j, max_parents):
                    if gain > best:
                        best, change = gain, new
        if change is None:
            return dag
        for i, j, value in change:
            dag[i, j] = value


def _changes(score, dag, i, j, most):
    """Yield gains and changes of the arc from i to j: it is added, or deleted and perhaps reversed."""
    parents, others = _parents(score, dag, j), _parents(score, dag, i)
    if dag[i, j]:
        without = [k for k in parents if k != i]
        gain = score.family(j, without) - score.family(j, parents)
        yield gain, [(i, j, 0)]
        if len(others) < most and not _reaches(dag, i, j, skip=(i, j)):
            gain += score.family(i, [*others, j]) - score.family(i, others)
            yield gain, [(i, j, 0), (j, i, 1)]
    elif not dag[j, i] and len(parents) < most and not _reaches(dag, j, i):
        yield score.family(j, [*parents, i]) - score.family(j, parents), [(i, j, 1)]


def _parents(score, dag, j):
    return [k for k in np.flatnonzero(dag[:, j]).tolist() if k != score.target]


def _reaches(dag, start, end, skip=None) -> bool:
    """Whether a path leads from one column to another, without the arc `skip`."""
    seen, todo = {start}, [start]
    while todo:
        node = todo.pop()
        for child in np.flatnonzero(dag[node]).tolist():
            if (node, child) == skip or child in seen:
                continue
            if child == end:
                return True
            seen.add(child)
            todo.append(child)
    return False
