"""Best directed tree of a table, for scores that depend on the directions of arcs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.errors import TableError
from bayesstruct.graphs.spanning_trees.maximum import maximum_branching
from bayesstruct.networks.exact.problem import network_problem

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from numpy.typing import ArrayLike

    from bayesstruct.networks.kernels.scores.base import Score

__all__ = ["DirectedTreeSolution", "directed_tree"]


@dataclass(frozen=True, eq=False, repr=False)
class DirectedTreeSolution:
    """The directed tree of the greatest score; made by :func:`directed_tree`.

    Attributes
    ----------
    names : tuple of str
        The p columns.
    parent : (p,) ndarray of int
        Position of the parent of each column, -1 for the root.
    log_score : float
        Sum of the local scores of the columns given their parents.
    """

    names: tuple[str, ...]
    parent: np.ndarray
    log_score: float

    def __repr__(self) -> str:
        return f"DirectedTreeSolution({len(self.names):,} variables, root {self.root!r})"

    @property
    def root(self) -> str:
        """The column without a parent."""
        return self.names[int(np.flatnonzero(self.parent < 0)[0])]

    @property
    def graph(self) -> "nx.DiGraph":
        """The tree as a graph over the names, arcs from parents to children."""
        import networkx as nx

        graph: nx.DiGraph = nx.DiGraph()
        graph.add_nodes_from(self.names)
        for child, above in enumerate(self.parent.tolist()):
            if above >= 0:
                graph.add_edge(self.names[above], self.names[child])
        return graph


def directed_tree(
    data: "pd.DataFrame | ArrayLike | Score",
    *,
    score: str = "bde",
    required: Iterable[tuple] = (),
    forbidden: Iterable[tuple] = (),
    tiers: dict | Iterable[Iterable] | None = None,
    interventions: "pd.DataFrame | ArrayLike | None" = None,
    **options: Any,
) -> DirectedTreeSolution:
    r"""Find the directed tree of the greatest score: one root, and one parent for each other column.

    .. math:: \max_T \; s_r(\varnothing) + \sum_{i \ne r} s_i(\{\mathrm{pa}_i\})

    Under scores that are the same for equivalent graphs any column of :func:`bayesstruct.solvers.chow_liu`'s kind of tree may be the root. Under others
    (``"bde"``, a BIC of arcs that are logistic regressions), with `interventions`, required arcs or `tiers`, directions make a difference, and the greatest sum
    over undirected trees is not the answer. Edmonds' algorithm finds it exactly.

    Parameters
    ----------
    data : DataFrame, array_like or score
        As in :func:`bayesstruct.solvers.optimal_dag`, as are the other parameters.
    score : str, default "bde"
        Of the scores of a column given one parent.
    required, forbidden : iterable of pairs of str
        Arcs (from, to) that the tree has, or has not.
    tiers : dict or iterable of lists of str, optional
        Groups of columns, the earliest first; no arc points back.
    interventions : (n, p) array_like or DataFrame of bool, optional
        Which values were set from outside.
    **options
        Options of the score, such as ``pseudo_count`` for ``"bde"``.

    Returns
    -------
    DirectedTreeSolution
        With ``graph``, ``root``, ``parent`` and ``log_score``.

    Raises
    ------
    TableError
        If the table cannot be used, an option names no column, two required arcs have the same child, or no directed tree is left.
    ValueError
        If an option is out of range.

    References
    ----------
    Edmonds, J. (1967). Optimum branchings. *Journal of Research of the National Bureau of Standards* 71B, 233-240.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"rain": [0, 0, 1, 1, 1, 1], "wet": [0, 0, 1, 1, 0, 1]})
    >>> directed_tree(table, pseudo_count=1.0).graph.edges
    OutEdgeView([('rain', 'wet')])
    """
    if "max_parents" in options:
        raise TypeError("`max_parents` is no option: in a directed tree each column has one parent")
    required = list(required)
    _refuse_two_parents(required)
    problem = network_problem(
        data,
        score=score,
        max_parents=1,
        required=required,
        forbidden=forbidden,
        tiers=tiers,
        interventions=interventions,
        **options,
    )
    p = problem.d
    if p < 2:
        raise TableError("a tree joins two columns or more: add columns")

    def local(child, parents):
        # What the prior forbids has no score.
        allowed = np.isfinite(problem.prior.local(child, parents))
        return problem.score.local(child, parents) if allowed else -np.inf

    roots = np.array([local(child, []) for child in range(p)])
    weights = np.full((p, p), -np.inf)
    for above, child in np.argwhere(~np.eye(p, dtype=bool)).tolist():
        weights[above, child] = local(child, [above])
    try:
        parent = maximum_branching(weights, roots)
    except ValueError as error:
        raise TableError(
            f"no directed tree is left: {error}; allow further arcs (`forbidden`, `tiers`) or require fewer (`required`)"
        ) from None
    chosen = np.where(parent < 0, roots, weights[parent, np.arange(p)])
    return DirectedTreeSolution(problem.names, parent, float(chosen.sum()))


def _refuse_two_parents(required: list) -> None:
    """Raise a TableError if two required arcs have the same child; what is no arc is refused elsewhere."""
    arcs = {tuple(arc) for arc in required if isinstance(arc, tuple | list) and len(arc) == 2}
    child, parents = max(
        Counter(own for _, own in arcs).items(), key=lambda own: own[1], default=("", 0)
    )
    if parents > 1:
        raise TableError(
            f"column {str(child)!r} would have {parents} parents, and in a directed tree each column has one at most: drop one of the "
            "required arcs"
        )
