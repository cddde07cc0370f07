"""Most probable tree or forest of a model, and its parameters."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scipy.special import betaln

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.modes import Climb, Mode, ModeSolver, register_mode, relative_change
from bayesstruct.core.recognition import NotRecognized, is_op, parameters
from bayesstruct.core.tensors import random_ancestors
from bayesstruct.graphs.spanning_trees.forests import forest_lines
from bayesstruct.graphs.spanning_trees.indicators import indicators, pair_matrix
from bayesstruct.graphs.spanning_trees.maximum import maximum_spanning_forest
from bayesstruct.graphs.spanning_trees.two_kinds import maximum_tree_of
from bayesstruct.trees.priors.mixed_tree import MixedSpanningTreeRV
from bayesstruct.trees.priors.spanning_forest import SpanningForestRV
from bayesstruct.trees.recognition.tables import GRAPHS, TreePart, claimed_share, tree_part
from bayesstruct.trees.steps.tables import table_of

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor import TensorVariable

__all__ = ["TreeMode"]


@dataclass(frozen=True, eq=False)
class _Recognised:
    """A tree with a complete table, and what its prior depends on.

    Attributes
    ----------
    part : TreePart
    share : TensorVariable, optional
        Share of the edges of a forest.
    hyper : list of TensorVariable
        Continuous variables on which the weights of edges depend.
    """

    part: TreePart
    share: "TensorVariable | None"
    hyper: list[Any]


@register_mode
class TreeMode(ModeSolver):
    """Most probable tree or forest.

    The tree of the greatest posterior probability, its parameters integrated out, by Kruskal's algorithm, which is exact; and the means of the parameters given
    that tree. Coefficients of covariates of edges are moved in turn with the tree until it stays the same: no other
    tree is more probable with these coefficients, and no other coefficients with this tree. A forest is the most probable one with a root in
    each component, the share of edges integrated out, and the share is its mean given that forest.
    """

    def recognise(self, model):
        """Return the tree, or None; raises where its mode is not found."""
        trees = [rv for rv in model.free_RVs if is_op(rv, GRAPHS)]
        if len(trees) != 1:
            return None
        part = tree_part(model, trees[0])
        if getattr(part, "missing", None) is not None:
            raise ValueError(
                f"find_MAP needs a complete table, and values of {part.rows.name!r} are missing: sample them with pm.sample() and read the most "
                "probable graph with bs.map_graph, or drop these rows"
            )
        share = claimed_share(model, part)
        known = [*part.variables, *([] if share is None else [share])]
        hyper = [rv for rv in model.free_RVs if rv not in known]
        _refuse(part, share, hyper)
        return _Recognised(part, share, hyper)

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Find tree and parameters."""
        own, point = part.part, dict(model.initial_point())
        table = table_of(model, own)
        weights = Expressions(model, [own.log_weights], user=own.tree.name)
        gains = table.gains(point)
        if part.share is not None:
            lines = _forest_of_share(model, part.share, gains, point)
            return Mode(self._point(point, own, lines, table))
        climb = Climb(model, part.hyper, [*part.hyper, own.tree]) if part.hyper else None
        change, rounds = 0.0, 0
        for rounds in range(1, max_rounds + 1):
            before = dict(point)
            [logs] = weights(point)
            lines = _best(own.tree, pair_matrix(np.asarray(logs, float).reshape(-1)), gains)
            point = self._point(point, own, lines, table)
            if climb is None:
                return Mode(point)
            climb.update(point)
            change = max(relative_change(before[k], point[k]) for k in point)
            if change <= tol:
                return Mode(point, True, rounds, change)
        return Mode(point, False, rounds, change)

    @staticmethod
    def _point(point, own, lines, table):
        nodes = own.tree.owner.op.nodes
        return point | {own.tree.name: indicators(lines, nodes)} | table.expected(lines)


def _best(tree: "TensorVariable", prior: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """Lines of the most probable tree or forest."""
    if is_op(tree, SpanningForestRV):
        return forest_lines(maximum_spanning_forest(prior + np.pad(gains, (1, 0))))
    outer = tree.owner.op.outer if is_op(tree, MixedSpanningTreeRV) else None
    return maximum_tree_of(prior + gains, outer)


def _forest_of_share(model: "Model", share, gains, point) -> np.ndarray:
    """Lines of the most probable forest, the share integrated out; its mean given the forest goes into the point.

    Kruskal's first k lines are the best forest of k lines. Given their number all rooted forests have the same prior probability.
    """
    shapes = Expressions(model, parameters(share))(point)
    a, b = (float(np.squeeze(v)) for v in shapes)
    lines, p = maximum_spanning_forest(gains), len(gains)
    k = np.arange(p)
    scores = np.append(0.0, np.cumsum(gains[lines[:, 0], lines[:, 1]])) - k * np.log(p)
    best = int(np.argmax(scores + betaln(a + k, b + p - 1 - k)))
    point[model.rvs_to_values[share].name] = np.log(a + best) - np.log(b + p - 1 - best)
    return lines[:best]


def _refuse(part, share, hyper):
    """Refuse variables that no climb moves: other parameters of the prior, discrete ones and random shares."""
    weights = {*random_ancestors(part.log_weights)}
    if is_op(part.tree, SpanningForestRV) and share is None and hyper:
        raise ValueError(
            f"find_MAP finds forests whose edges have equal weights, and those of {part.tree.name!r} depend on {hyper[0].name!r} in another way: read the "
            "draws of pm.sample() with bs.map_graph"
        )
    for rv in hyper:
        if rv not in weights or rv.dtype.startswith("int"):
            raise NotRecognized(f"{rv.name!r} is not one of the coefficients of {part.tree.name!r}")
