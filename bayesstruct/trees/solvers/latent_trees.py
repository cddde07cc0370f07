"""Trees of columns and hidden nodes from information distances."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.arguments import choice, number, numbers, refuse_given, whole_number
from bayesstruct.data.errors import TableError, column_list, count
from bayesstruct.data.labels import aligned
from bayesstruct.trees.kernels.chow_liu_grouping import blind_tree, grouped_tree
from bayesstruct.trees.kernels.distances import (
    distance_noise,
    normal_distances,
    state_distances,
    symmetric_distances,
)
from bayesstruct.trees.kernels.gaussian_em import GaussianTree
from bayesstruct.trees.kernels.grouping import (
    Noise,
    Tree,
    contracted,
    neighbour_joining,
    recursive_grouping,
)
from bayesstruct.trees.solvers.columns import TreeColumns, read_tree_columns
from bayesstruct.trees.solvers.latent_fits import Fit, fit_tree, regularized_tree

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from numpy.typing import ArrayLike

    from bayesstruct.data.intake import TableLike

__all__ = ["LatentTreeSolution", "information_distances", "latent_tree"]

METHODS = ("clrg", "clnj", "rg", "nj", "clblind")
DISTANCES = ("determinant", "symmetric")
_SHORT = -float(np.log(0.9))
_EXACT = 1e-8
_LINE = 2  # rows, through which a line goes whatever the columns are


@dataclass(frozen=True, eq=False, repr=False)
class LatentTreeSolution:
    """A tree of columns and hidden nodes.

    Attributes
    ----------
    names : tuple of str
        The m columns.
    hidden : tuple of str
        Names of the hidden nodes.
    edges : pandas.DataFrame
        One row for each edge: ``first`` and ``second`` node, their ``distance``, and ``correlation``: of numbers that of the fitted
        tree (the sign of a hidden node is arbitrary), of states ``exp(-distance / (K - 1))``.
    distances : pandas.DataFrame, shape (m, m)
        Information distances of the columns.
    log_likelihood : float
        Largest log likelihood of the table under this tree; NaN if distances were given.
    parameters : int
        Number of free parameters of the tree; 0 if distances were given.
    n : int
        Number of rows; 0 if unknown.
    tables : dict
        Of columns of states: conditional probabilities of the second of two nodes given the first, a (K, K) ndarray for each edge, by the names
        of both. The states of a hidden node have no order.
    """

    names: tuple[str, ...]
    hidden: tuple[str, ...]
    edges: "pd.DataFrame"
    distances: "pd.DataFrame"
    log_likelihood: float
    parameters: int
    n: int
    tables: dict[tuple[str, str], np.ndarray]

    def __repr__(self) -> str:
        return f"LatentTreeSolution({len(self.names):,} variables, {count(len(self.hidden), 'hidden node')})"

    @property
    def bic(self) -> float:
        """Log likelihood less half the logarithm of the number of rows for each parameter; larger is better."""
        return self.log_likelihood - 0.5 * self.parameters * float(np.log(max(self.n, 1)))

    @cached_property
    def graph(self) -> "nx.Graph":
        """The tree as a ``networkx.Graph``.

        Nodes have ``hidden``, edges ``distance`` and ``weight``, the correlation.
        """
        import networkx as nx

        graph: nx.Graph = nx.Graph(forest=True)
        graph.add_nodes_from(self.names, hidden=False)
        graph.add_nodes_from(self.hidden, hidden=True)
        for row in self.edges.itertuples():
            graph.add_edge(row.first, row.second, distance=row.distance, weight=row.correlation)
        return graph

    @property
    def kinds(self) -> dict[str, str]:
        """``"column"`` or ``"hidden"`` for each node, as ``groups`` of :func:`bayesstruct.plot_graph`."""
        return dict.fromkeys(self.names, "column") | dict.fromkeys(self.hidden, "hidden")


def latent_tree(
    data: "TableLike | None" = None,
    *,
    method: str = "clrg",
    penalty: str | None = None,
    columns: str = "mixed",
    distance: str | None = None,
    distances: "pd.DataFrame | ArrayLike | None" = None,
    n: int | None = None,
    shortest: float | None = None,
    states: "dict | list | None" = None,
    random_seed: int | np.random.Generator | None = None,
) -> LatentTreeSolution:
    r"""Find a tree of columns and of hidden nodes that explain why the columns depend on each other.

    Every hidden node has three neighbours or more. All nodes are numbers that are jointly normal, or all have the same number K of states. The
    tree is found from distances that are sums along its paths (:func:`information_distances`); parameters are then fitted by
    expectation-maximisation.

    Parameters
    ----------
    data : DataFrame or array_like, optional
        (n, m) table without missing values, m at least 2 (two columns are joined by an edge); or `distances`.
    method : {"clrg", "clnj", "rg", "nj", "clblind"}
        ``"rg"``
            Recursive grouping [1]_: nodes whose distances to all others differ by a constant are neighbours of one node, a column or a
            hidden one, which takes their place.
        ``"nj"``
            Neighbour joining; all columns are leaves at first, short edges are then removed.
        ``"clrg"``, ``"clnj"``
            The same within the neighbourhood of each inner node of the spanning tree of least total distance: more precise if paths
            are long, and far faster for many columns.
        ``"clblind"``
            Each inner node of that spanning tree becomes a leaf of a hidden node. Right only if all inner nodes are hidden and the column nearest to each
            of them is its neighbour.
    penalty : {"bic"} or None, default None
        Of ``"clrg"`` and ``"clnj"``: only neighbourhoods get hidden nodes in which these raise the BIC, the best first: an approximation by
        few hidden nodes, if no tree is true.
    columns : {"mixed", "numbers", "states"}
        ``"mixed"``: text, booleans, categories and columns of two values hold states, other columns numbers; the table has only one of both. Otherwise
        all columns are taken as one or the other.
    distance : {"determinant", "symmetric"}, optional
        Of columns of states only, see :func:`information_distances`.
    distances : (m, m) array_like or DataFrame, optional
        Distances in place of a table.
    n : int, optional
        With `distances`: the rows of numbers that they were estimated from. By default they are exact.
    shortest : float, optional
        Hidden nodes nearer than this to another node are merged with it, by default -log(.9) (a correlation of .9), and 1e-8 for exact distances.
    states : list or dict of lists, optional
        Of ``columns="states"`` only: states in order, as in :func:`bayesstruct.models.bayesian_network`.
    random_seed : int or numpy.random.Generator, optional
        Of ``penalty="bic"`` for states only, where hidden states are drawn; 0 by default. Nothing else is random.

    Returns
    -------
    LatentTreeSolution
        With ``graph``, ``edges``, ``hidden``, ``bic``. ``bs.plot_graph(found.graph)`` draws it; ``groups=found.kinds`` adds colours.

    Raises
    ------
    TableError
        If the table cannot be used or has missing values, has numbers and states or different numbers of states, or a column determines another one.
    ValueError
        If an option is unknown, out of range or does not apply, or matrix and options do not fit.

    Notes
    -----
    All methods but the last find every such tree from exact distances. Of estimated ones recursive grouping weighs the differences by their
    variances and forms groups by average linkage, cut where a test at 1 % of equal differences rejects; nodes then move to the group whose parent explains
    their correlations best. (The source groups by k-means and silhouettes.) Strong dependences are known better than weak ones: leaves that
    depend on the rest by .2 are often in a wrong place even in a thousand rows. A column that is independent of all others is joined somewhere: there is no
    forest. Where no such tree is true, methods differ, and ``"rg"`` may fit
    worse than :func:`chow_liu`: compare ``bic``. The estimate has no measure of uncertainty.

    References
    ----------
    .. [1] M. J. Choi, V. Y. F. Tan, A. Anandkumar and A. S. Willsky (2011). Learning latent tree graphical models. *JMLR* 12,
       1771-1812.

    Examples
    --------
    >>> import bayesstruct as bs
    >>> table = bs.simulate.latent_tree(2000, p=8, shape="double_star", random_seed=2)
    >>> found = bs.solvers.latent_tree(table.data)
    >>> found
    LatentTreeSolution(8 variables, 2 hidden nodes)
    >>> sorted(found.graph["h1"])[:4]
    ['h2', 'x0', 'x2', 'x4']
    """
    choice("method", method, METHODS)
    if penalty is not None:
        choice("penalty", penalty, ("bic",))
        if method not in ("clrg", "clnj"):
            raise ValueError(
                f"`penalty` belongs to the methods 'clrg' and 'clnj', not to {method!r}"
            )
    if (data is None) == (distances is None):
        raise ValueError("give a table, `data`, or a matrix of `distances`, one of both")
    exact = distances is not None and n is None
    short = number(
        "shortest", (_EXACT if exact else _SHORT) if shortest is None else shortest, least=0
    )
    if distances is not None:
        refuse_given(
            "a table, and here are `distances`",
            penalty=penalty,
            columns=None if columns == "mixed" else columns,
            states=states,
            distance=distance,
            random_seed=random_seed,
        )
        names, d = _given(distances)
        rows = 0 if n is None else whole_number("n", n, 4)
        tree = _search(d, None if exact else distance_noise(rows, 0), method, short)
        return _solution(names, d, tree, None, rows, 0)
    if n is not None:
        raise ValueError("`n` belongs to `distances`; a table has its own number of rows")
    table, k = _table(data, columns, states)
    if penalty is None or not k:
        refuse_given("penalty='bic' for columns of states", random_seed=random_seed)
    d, noise = _distances(table, k, distance)
    if penalty is None:
        fit = fit_tree(table.values, k, _search(d, noise, method, short), d)
    else:
        build = _builder(method, noise, short)
        fit = regularized_tree(
            table.values, k, d, noise, build, 0 if random_seed is None else random_seed
        )
    return _solution(table.names, d, fit.tree, fit, len(table.values), k)


def information_distances(
    data: "TableLike",
    *,
    columns: str = "mixed",
    distance: str | None = None,
    states: "dict | list | None" = None,
) -> "pd.DataFrame":
    r"""Return distances of columns that are sums along the paths of a tree, if the columns come from one.

    Parameters
    ----------
    data : DataFrame or array_like
        (n, m) table without missing values.
    columns : {"mixed", "numbers", "states"}
        As in :func:`latent_tree`.
    distance : {"determinant", "symmetric"}, optional
        Of columns of K states only. ``"determinant"``, the default:
        :math:`-\log(|\det J_{ij}| / \sqrt{\det M_i \det M_j})` with the joint probabilities J and diagonal matrices M of those of each column.
        ``"symmetric"``: :math:`-(K - 1) \log |1 - K \theta_{ij}|`, :math:`(K - 1) \theta_{ij}` being how often they differ; for columns whose states are equally
        probable and errors too. Numbers have :math:`-\log |r_{ij}|`.
    states : list or dict of lists, optional

    Returns
    -------
    pandas.DataFrame
        (m, m), at most log(n), or (K - 1) log(n): smaller dependences cannot be told from none.

    Raises
    ------
    TableError, ValueError
        As from :func:`latent_tree`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(5000, 3)).cumsum(axis=1)
    >>> d = information_distances(x).to_numpy()
    >>> bool(abs(d[0, 2] - d[0, 1] - d[1, 2]) < 0.02)
    True
    """
    import pandas as pd

    table, k = _table(data, columns, states)
    d, _ = _distances(table, k, distance)
    return pd.DataFrame(d, list(table.names), list(table.names))


def _table(data, columns, states) -> tuple[TreeColumns, int]:
    """Read a table whose columns are all of one kind, and their number of states."""
    imputes = "bayesstruct.models.latent_tree (columns of numbers)"
    table = read_tree_columns(data, columns, states=states, imputes=imputes)
    sizes = table.states
    if (sizes > 0).any() and (sizes == 0).any():
        words = [name for name, r in zip(table.names, sizes, strict=True) if r]
        raise TableError(
            f"{column_list(words)} {'hold' if len(words) > 1 else 'holds'} states and the others numbers, and nodes of a latent tree are all of one kind; leave out "
            'one kind, or say columns="numbers" if two values are meant as numbers'
        )
    if len(set(sizes.tolist())) > 1:
        usual = np.bincount(sizes).argmax()
        odd = [name for name, r in zip(table.names, sizes, strict=True) if r != usual]
        raise TableError(
            f"{column_list(odd)}: not {usual} states as the other columns, and nodes of a latent tree all have the same number; merge "
            "states, or leave these columns out"
        )
    return table, int(sizes[0])


def _distances(table: TreeColumns, k: int, distance: str | None) -> tuple[np.ndarray, Noise]:
    """Distances and their errors; a TableError for columns that determine each other."""
    if distance is not None:
        choice("distance", distance, DISTANCES)
    if not k:
        refuse_given(
            "columns of states, and these hold numbers (say columns='states' if they are codes)",
            distance=distance,
        )
    symmetric = distance == "symmetric" and k > 0
    if not k:
        d = normal_distances(table.values)
    else:
        make = symmetric_distances if symmetric else state_distances
        d = make(table.values.astype(np.int64), k)
    same = np.argwhere(np.triu(d < 1e-12, 1))
    if len(same):
        if len(table.values) <= _LINE and not k:
            raise TableError(
                f"The table has {count(len(table.values), 'row')}, in which any two columns of numbers determine each other: add rows"
            )
        a, b = (table.names[j] for j in same[0])
        raise TableError(
            f"columns {a!r} and {b!r}: one determines the other, so that their distance is 0; leave one of them out"
        )
    return d, distance_noise(len(table.values), k, symmetric)


def _odd_pair(names, d) -> str:
    """Name a distance that is negative, not symmetric, or of a column to itself."""
    odd = (np.abs(d - d.T) > 1e-9 * max(1.0, np.abs(d).max())) | (d < 0)
    np.fill_diagonal(odd, d.diagonal() != 0)
    i, j = np.argwhere(odd)[0]
    back = f", and from {names[j]!r} to {names[i]!r} {d[j, i]:g}" if i != j else ""
    return f"from {names[i]!r} to {names[j]!r} it is {d[i, j]:g}{back}"


def _given(distances) -> tuple[tuple[str, ...], np.ndarray]:
    """Check a matrix of distances."""
    labels = getattr(distances, "columns", None)
    matrix = numbers("distances", np.asarray(distances))
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(
            f"`distances` is a square matrix of two columns or more, not of shape {matrix.shape}"
        )
    names = (
        tuple(f"x{j}" for j in range(len(matrix))) if labels is None else tuple(map(str, labels))
    )
    d = numbers("distances", aligned("distances", distances, names))
    if not np.isfinite(d).all():
        i, j = np.argwhere(~np.isfinite(d))[0]
        raise ValueError(
            f"`distances` of {names[i]!r} and {names[j]!r} is not finite; leave out columns that are independent of all others"
        )
    if (
        np.abs(d - d.T).max() > 1e-9 * max(1.0, np.abs(d).max())
        or (d < 0).any()
        or d.diagonal().any()
    ):
        raise ValueError(
            f"`distances` must be symmetric and at least 0, with zeros on the diagonal; {_odd_pair(names, d)}"
        )
    off = d + np.eye(len(d))
    if (off <= 0).any():
        i, j = np.argwhere(off <= 0)[0]
        raise ValueError(
            f"the distance of {names[i]!r} and {names[j]!r} is 0: leave one of them out"
        )
    return names, (d + d.T) / 2.0


def _builder(method: str, noise: Noise | None, short: float) -> Any:
    """Return the function that makes a tree of few nodes from distances."""

    def build(d: np.ndarray) -> Tree:
        tree = (
            recursive_grouping(d, noise, short) if method.endswith("rg") else neighbour_joining(d)
        )
        return contracted(tree, len(d), short)

    return build


def _search(d: np.ndarray, noise: Noise | None, method: str, short: float) -> Tree:
    """Return the tree of a method."""
    m = len(d)
    if method == "clblind":
        return contracted(blind_tree(d), m, short)
    build = _builder(method, noise, short)
    if method in ("rg", "nj") or m < 3:
        return build(d)
    return contracted(grouped_tree(d, noise, build).lines, m, short)


def _solution(
    names: tuple[str, ...], d: np.ndarray, tree: Tree, fit: Fit | None, n: int, k: int
) -> LatentTreeSolution:
    """Name the hidden nodes, and make tables."""
    import pandas as pd

    m, nodes = len(names), len(tree) + 1
    hidden = _hidden_names(names, nodes - m)
    every = [*names, *hidden]
    rows, tables = [], {}
    for edge, (a, b, own) in enumerate(tree):
        i, j = sorted((a, b))
        value = np.exp(-own / max(k - 1, 1))
        if fit is not None and isinstance(fit.model, GaussianTree):
            value = fit.model.correlations[edge]
        rows.append((every[i], every[j], own, value))
    if fit is not None:
        tables = {(every[i], every[j]): own for (i, j), own in fit.tables.items()}
    frame = pd.DataFrame(rows, columns=["first", "second", "distance", "correlation"])
    return LatentTreeSolution(
        names=tuple(names),
        hidden=tuple(hidden),
        edges=frame,
        distances=pd.DataFrame(d, list(names), list(names)),
        log_likelihood=np.nan if fit is None else fit.log_likelihood,
        parameters=0 if fit is None else fit.parameters,
        n=n,
        tables=tables,
    )


def _hidden_names(names, count) -> list[str]:
    """Names that no column has."""
    stem = "h"
    while any(f"{stem}{k}" in names for k in range(1, count + 1)):
        stem = "hidden_" if stem == "h" else f"{stem}_"
    return [f"{stem}{k}" for k in range(1, count + 1)]
