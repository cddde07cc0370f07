r"""Arcs among a few columns of a directed acyclic graph drawn together, given all other arcs.

A graph with other arcs among the columns of a *block* is acyclic if and only if these arcs, together with an arc for each path
between two columns of the block over the other arcs, are. For three columns there are 25 sets of arcs at most, with 12 local scores. This is
a Gibbs step that needs no tables of parent sets. It passes from a collider :math:`i \to k \leftarrow j` to a triangle, or turns arcs of
a triangle with the parents that this asks for, where changes of one arc would have to pass a graph of small probability.

Blocks must not be chosen by the graph: the way back has to be as probable.

References
----------
Goudie, R. J. B. and Mukherjee, S. (2016). A Gibbs sampler for learning DAGs. *JMLR* 17(30), 1-39 (whole parent sets).
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from bayesstruct.networks.kernels.dags import all_dags
from bayesstruct.networks.kernels.samplers.arc_proposals import reaches

__all__ = ["draw_arcs_among"]


def draw_arcs_among(
    rng: np.random.Generator,
    dag: np.ndarray,
    block: Sequence[int],
    log_score: Callable[[int, tuple[int, ...]], float],
) -> None:
    """Draw all arcs among the columns of a block given all other arcs.

    Parameters
    ----------
    rng : numpy.random.Generator
    dag : (d, d) int8 array
        Acyclic, of finite score; 1 at (parent, child). Changed in place.
    block : sequence of int
        Different columns, five at most; chosen without regard to the graph.
    log_score : callable
        Log weight of a column with its parents, ascending; minus infinity for parents that are impossible.
    """
    inside = np.ix_(block, block)
    rest = dag.copy()
    rest[inside] = 0
    arcs = all_dags(len(block))
    arcs = arcs[_acyclic(arcs | _paths(rest, block))]
    own = [_logs(rest, block, b, log_score)[tuple(arcs[:, :, b].T)] for b in range(len(block))]
    drawn = (np.sum(own, axis=0) + rng.gumbel(size=len(arcs))).argmax()
    dag[inside] = arcs[drawn]


def _paths(rest, block):
    """Which columns of a block lead to which others over arcs that are not drawn; (k, k) int8."""
    out = [[i != j and reaches(rest, i, j) for j in block] for i in block]
    return np.array(out, np.int8)


def _acyclic(arcs):
    """Which of some graphs, (m, k, k), have no walk from a column to itself in k steps or fewer."""
    walks, fine = arcs, np.ones(len(arcs), bool)
    for _ in range(arcs.shape[1]):
        fine &= ~np.trace(walks, axis1=1, axis2=2).astype(bool)
        walks = (walks @ arcs > 0).astype(np.int8)
    return fine


def _logs(rest, block, b, log_score):
    """Log weights of a column of a block, by which columns of the block are its parents; (2,) * k."""
    i, k = block[b], len(block)
    fixed = np.flatnonzero(rest[:, i]).tolist()
    out = np.full((2,) * k, -np.inf)
    for own in product(*[(0,) if a == b else (0, 1) for a in range(k)]):
        inside = [j for j, here in zip(block, own, strict=True) if here]
        out[own] = log_score(i, tuple(sorted(fixed + inside)))
    return out
