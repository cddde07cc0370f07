"""Pairs of objects: the links of a graph, ratings, similarities, checked and named."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from bayesstruct.data.checks import ARROW, SEPARATOR
from bayesstruct.data.errors import TableError, listing, raise_problems, warn
from bayesstruct.data.intake import read_columns
from bayesstruct.data.labels import refuse_zero_weights
from bayesstruct.data.matrices import is_triangle, matrix_problems, row_labels
from bayesstruct.data.names import label_text
from bayesstruct.data.remarks import counter_remarks, missing_code_remarks, odd_codes, one_or_list

__all__ = ["LinkTable"]

_MOST_STEPS = 10  # of a scale of ratings; in more rows they cannot count from 1
_MANY = 20  # zeros, fewer of which may be the most frequent rating by chance
_MAX_OBJECTS = 3000  # with more objects there are millions of pairs


@dataclass(frozen=True, eq=False, repr=False)
class LinkTable:
    """Observed pairs of objects.

    Make one with :meth:`links`, :meth:`ratings` or :meth:`similarities`.

    Attributes
    ----------
    names : tuple of str
        The n objects, those of the first set if there are two.
    other : tuple of str or None
        The m objects of the second set.
    source, target : (d,) ndarray of int
        Positions of the two objects of each observed pair.
    y : (d,) ndarray of float
        Responses.
    directed : bool
        Whether (i, j) and (j, i) are two pairs; otherwise i < j where there is one set.
    """

    names: tuple[str, ...]
    other: tuple[str, ...] | None
    source: np.ndarray
    target: np.ndarray
    y: np.ndarray
    directed: bool

    @property
    def targets(self) -> tuple[str, ...]:
        """The objects that are second in a pair: those of the second set if there are two."""
        return self.names if self.other is None else self.other

    @property
    def labels(self) -> list[str]:
        """Label of each pair: ``"a -- b"``, or ``"a -> b"`` where directions count."""
        between = ARROW if self.directed else SEPARATOR
        names, targets = self.names, self.targets
        pairs = zip(self.source, self.target, strict=True)
        return [f"{names[i]}{between}{targets[j]}" for i, j in pairs]

    @classmethod
    def links(cls, graph, *, directed=None, unobserved=()) -> "LinkTable":
        """Check the links of a graph.

        Parameters
        ----------
        graph : networkx.Graph, networkx.DiGraph, DataFrame or (n, n) array_like
            A matrix has 1 for a link from the row to the column, 0 for none, and NaN where that is not known.
            Names are the nodes or the columns. The diagonal must be 0 or NaN.
        directed : bool, optional
            By default, whether the graph is, or the matrix is not symmetric.
        unobserved : iterable of pairs of names
            Pairs of which it is not known whether they are linked.

        Returns
        -------
        LinkTable

        Raises
        ------
        TableError
            If there are fewer than two objects, two with the same name, values other than 0, 1 and NaN, links
            of an object with itself, no link, or no observed pair without one.

        Warns
        -----
        TableWarning
            If all links of a matrix are on one side of the diagonal, so that they are read as directed ones, or the links
            of a graph have weights, which are not used.
        """
        if hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
            names, matrix, arrows = _from_networkx(graph)
        else:
            names, matrix = square_matrix(graph, "links")
            arrows = not _is_symmetric(matrix)
            if arrows and directed is None:
                _check_gaps(names, matrix)
                _warn_about_triangle(matrix)
        if directed is not None and not isinstance(directed, bool | np.bool_):
            raise ValueError(f"`directed` is True, False or None, not {directed!r}")
        if directed is False and not _is_symmetric(matrix):
            raise TableError(
                "links: some go one way only; use directed=True, or graph.to_undirected() first"
            )
        directed = arrows if directed is None else bool(directed)
        _check_binary(names, matrix)
        _check_loops(names, matrix)
        for i, j in _positions(names, unobserved or ()):
            matrix[i, j] = np.nan
            if not directed:
                matrix[j, i] = np.nan
        source, target, y = _observed(matrix, directed)
        table = cls(names, None, source, target, y, directed)
        _check_variety(table)
        return _labelled(table)

    @classmethod
    def ratings(cls, data) -> "LinkTable":
        """Check a table of ratings of the objects in the columns by those in the rows.

        Parameters
        ----------
        data : DataFrame or (n, m) array_like
            Numbers, missing where there is no rating.

        Returns
        -------
        LinkTable

        Raises
        ------
        TableError
            If there are fewer than two rows or columns, two with the same name, values that are not finite
            numbers, all ratings are the same, or the table is a matrix of pairs of its columns, such as correlations.

        Warns
        -----
        TableWarning
            If ratings that often stand for missing ones are apart from the others, 0 is much more frequent than each other
            rating and none is between 0 and 1, or a column counts the rows.
        """
        rows, columns, matrix = _numbers(data, "ratings")
        _refuse_long(columns)
        raise_problems(matrix_problems(data, [*columns], matrix))
        if min(matrix.shape) < 2:
            raise TableError(
                f"ratings: at least 2 rows and 2 columns are needed, not {matrix.shape}"
            )
        source, target = np.nonzero(~np.isnan(matrix))
        table = cls(rows, columns, source, target, matrix[source, target], False)
        _check_spread(table, "ratings")
        _warn_about_codes(table.y, "ratings")
        if len(matrix) > _MOST_STEPS:
            for remark in counter_remarks(columns, matrix):
                warn(f"ratings: {remark}")
        return _labelled(table)

    @classmethod
    def similarities(cls, data) -> "LinkTable":
        """Check the similarities of objects.

        Parameters
        ----------
        data : DataFrame or (n, n) array_like
            Symmetric, missing where two objects were not compared. The diagonal is not used.

        Returns
        -------
        LinkTable

        Raises
        ------
        TableError
            If the table is not square and symmetric, there are fewer than two objects, or all similarities are
            the same.

        Warns
        -----
        TableWarning
            If similarities that often stand for missing ones are apart from the others, or if the table looks like one
            of distances: zero on the diagonal, otherwise positive, and never more than the way by a third object.
        """
        names, matrix = square_matrix(data, "similarities")
        if not _is_symmetric(matrix):
            raise TableError(
                "similarities: the table is not symmetric; use the mean of both directions, (data + data.T) / 2"
            )
        source, target, y = _observed(matrix, directed=False)
        table = cls(names, None, source, target, y, False)
        _check_spread(table, "similarities")
        if _are_distances(matrix):
            warn(
                "similarities: the diagonal is zero and all other values are positive and obey the triangle inequality, as "
                "distances do; if small values mean similar, pass data.max() - data"
            )
        _warn_about_codes(table.y, "similarities")
        return _labelled(table)


def _are_distances(matrix) -> bool:
    """Whether a symmetric matrix is one of distances between four objects or more."""
    off = ~np.eye(len(matrix), dtype=bool)
    if (
        len(matrix) < 4
        or np.isnan(matrix).any()
        or np.diag(matrix).any()
        or (matrix[off] <= 0).any()
        or matrix[off].max()
        <= 2 * matrix[off].min()  # any such values obey the triangle inequality
    ):
        return False
    return all((matrix <= row[:, None] + row + 1e-9 * matrix.max()).all() for row in matrix)


def _refuse_long(columns):
    """Refuse a list of ratings, one in each row, in the place of a table of objects."""
    kinds = {_object_of(name): name for name in columns}
    if len(columns) <= 4 and {"rating", "object"} <= {*kinds}:
        raise TableError(
            f"ratings: columns {listing(list(columns))} list one rating in each row; give a table with a row for each "
            "person and a column for each object: data.pivot(index=..., columns=..., values=...)"
        )


def _object_of(name) -> str:
    plain = name.strip().lower().replace("_", "").removesuffix("id").removesuffix("s")
    if plain in ("rating", "score", "star"):
        return "rating"
    return "object" if plain in ("user", "item", "movie", "product", "book", "rater") else ""


def _warn_about_codes(y, what):
    """Say which values are apart from the others and often stand for a missing one."""
    codes = odd_codes(y)
    if what == "ratings" and _zeros_are_gaps(y):
        codes = sorted({*codes, 0.0})
    remedy = f"name them: missing_codes={one_or_list(codes)}"  # in all columns
    for remark in missing_code_remarks([what], [codes], remedy):
        warn(remark)


def _zeros_are_gaps(y) -> bool:
    """Whether 0 is too frequent beside ratings from 1 up to be the lowest one."""
    rated = y[y != 0]
    if not rated.size or rated.min() < 1:
        return False
    zeros, counts = len(y) - len(rated), np.unique(rated, return_counts=True)[1]
    frequent = zeros >= _MANY and zeros > 2 * counts[0] and zeros > 1.5 * counts.max()
    return bool(frequent or zeros > len(rated))


def _observed(matrix: np.ndarray, directed: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Source, target and value of each observed pair of one set."""
    n = len(matrix)
    counted = ~np.eye(n, dtype=bool) if directed else np.triu(np.ones((n, n), bool), 1)
    source, target = np.nonzero(counted & ~np.isnan(matrix))
    return source, target, matrix[source, target]


def _from_networkx(graph):
    import networkx as nx

    if graph.is_multigraph():
        raise TableError(
            "links: the graph has several links between two nodes; use nx.Graph(graph) first"
        )
    names = _unique([label_text(node) for node in graph.nodes], "links")
    _check_size(names, "links")
    refuse_zero_weights(graph)
    weights = {weight for _, _, weight in graph.edges(data="weight", default=1)}
    if weights - {1}:
        warn("the links have weights, which are not used: a link is there or not")
    return names, nx.to_numpy_array(graph, weight=None).astype(float), graph.is_directed()


def square_matrix(data, what: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Names and values of a square table; `what` it is starts the messages."""
    rows, columns, matrix = _numbers(data, what)
    if matrix.shape[0] != matrix.shape[1]:
        raise TableError(
            f"{what}: the table has {matrix.shape[0]} rows and {matrix.shape[1]} columns; give one of each for "
            "each object, or a networkx graph"
        )
    if rows != columns and rows != tuple(str(i) for i in range(len(rows))):
        raise TableError(
            f"{what}: rows and columns have different names; give both the same order (data.loc[data.columns])"
        )
    _check_size(columns, what)
    return columns, matrix


def _numbers(data, what):
    """Names of rows and columns, and a matrix of finite numbers or NaN."""
    if isinstance(data, str) or data is None:
        raise TableError(f"{what}: a table is expected, not {data!r:.60}")
    if not hasattr(data, "columns"):
        data = data if hasattr(data, "dims") else _as_array(data, what)
    intake = read_columns(data, 10 * _MAX_OBJECTS)
    if intake.refused:
        [kind, [[position, example], *_]], *_ = intake.refused.items()
        raise TableError(
            f"{what}: column {intake.names[position]!r} holds {kind} (for example {example!r:.60}); use numbers, "
            "and leave entries empty that were not observed"
        )
    matrix = np.array(intake.values, float)
    if np.isinf(matrix).any():
        column = intake.names[int(np.nonzero(np.isinf(matrix).any(axis=0))[0][0])]
        raise TableError(
            f"{what}: column {column!r} holds infinite values; use NaN if they are not known"
        )
    columns = _unique(intake.names, what)
    labels = row_labels(data) or [str(i) for i in range(len(matrix))]
    return _unique(labels, what), columns, matrix


def _as_array(data, what):
    try:
        array = np.asanyarray(data)
    except ValueError:
        raise TableError(f"{what}: the rows have different lengths") from None
    if array.ndim != 2:
        raise TableError(f"{what}: a table has rows and columns, this has shape {array.shape}")
    return array


def _unique(names, what) -> tuple:
    repeated = [name for name, number in Counter(names).items() if number > 1]
    if repeated:
        raise TableError(
            f"{what}: several objects have the name {listing(repeated)}: rename all but one"
        )
    return tuple(names)


def _check_size(names, what):
    if len(names) < 2:
        raise TableError(f"{what}: at least 2 objects are needed, there are {len(names)}")
    if len(names) > _MAX_OBJECTS:
        raise TableError(
            f"{what}: {len(names):,} objects are too many, at most {_MAX_OBJECTS:,} are supported; use a "
            "part of them, such as a community"
        )


def _is_symmetric(matrix) -> bool:
    off = ~np.eye(len(matrix), dtype=bool)
    # Correlations, for example, are symmetric up to rounding.
    return bool(np.allclose(matrix[off], matrix.T[off], rtol=1e-9, atol=0.0, equal_nan=True))


def _check_gaps(names, matrix):
    """Refuse links that are symmetric except for values that are missing in one direction only."""
    both = ~np.isnan(matrix) & ~np.isnan(matrix.T)
    if (matrix[both] == matrix.T[both]).all():
        i, j = np.argwhere(np.isnan(matrix) & ~np.isnan(matrix.T))[0]
        raise TableError(
            f"links: {names[i]!r} to {names[j]!r} is missing, but not the other way round; leave both entries "
            "empty if links have no direction, or use directed=True"
        )


def _warn_about_triangle(matrix):
    """Say that links on one side of the diagonal are taken for directed ones."""
    if is_triangle(matrix):
        warn(
            "links: all are on one side of the diagonal and are read as directed ones; if they are one triangle of "
            "links without direction, pass data + data.T, otherwise say directed=True"
        )


def _check_binary(names, matrix):
    off = ~np.eye(len(matrix), dtype=bool)
    wrong = off & ~(np.isnan(matrix) | np.isin(matrix, (0.0, 1.0)))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise TableError(
            f"links: the value of {names[i]!r} and {names[j]!r} is {matrix[i, j]:g}; values are 1 (linked), 0 (not) or "
            "missing (not known): choose a threshold, such as data > 0"
        )


def _check_loops(names, matrix):
    looped = [names[i] for i in np.nonzero(np.nan_to_num(np.diag(matrix)) != 0)[0]]
    if looped:
        raise TableError(
            f"links: {listing(looped)} linked with itself, which the model does not describe; remove such "
            "links: graph.remove_edges_from(nx.selfloop_edges(graph)) or zeros on the diagonal"
        )


def _positions(names, pairs):
    """Positions of the two objects of given pairs."""
    at = {name: i for i, name in enumerate(names)}
    out = []
    for pair in pairs:
        if isinstance(pair, str) or not np.iterable(pair) or len(tuple(pair)) != 2:
            raise TableError(f"unobserved: {pair!r} is not a pair of objects")
        ends = [label_text(label) for label in pair]
        if lost := [name for name in ends if name not in at]:
            raise TableError(f"unobserved: there is no object {listing(lost)}")
        out.append((at[ends[0]], at[ends[1]]))
    return out


def _check_variety(table):
    if len(table.y) == 0:
        raise TableError("links: no pair is observed; give 0 or 1 for some")
    if table.y.max() == 0:
        raise TableError(
            "links: there is none among the observed pairs, so that there is nothing to learn"
        )
    if table.y.min() == 1:
        raise TableError("links: all observed pairs are linked, so that there is nothing to learn")


def _check_spread(table, what):
    if len(table.y) < 2 or np.ptp(table.y) == 0:
        raise TableError(
            f"{what}: all observed values are the same, so that there is nothing to learn"
        )


def _labelled(table):
    """Refuse names that give two pairs the same label."""
    label, most = Counter(table.labels).most_common(1)[0]
    if most > 1:
        raise TableError(
            f"two pairs have the label {label!r}: rename objects so that no name contains "
            f"{(ARROW if table.directed else SEPARATOR).strip()!r}"
        )
    return table
