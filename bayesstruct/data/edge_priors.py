"""Prior probabilities of edges as symmetric matrices, and edges that are certain."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.data.arguments import number, whole_number
from bayesstruct.data.errors import TableError, column_list, listing
from bayesstruct.data.labels import aligned, read_pairs
from bayesstruct.data.names import label_text

__all__ = ["FixedEdges", "StochasticBlock", "edge_probability_matrix", "fixed_edges"]


@dataclass(frozen=True)
class StochasticBlock:
    r"""Edge probabilities that depend on hidden blocks of variables.

    .. math::

        \rho \sim \mathrm{Dirichlet}(a, \dots, a), \quad b_i \sim \mathrm{Categorical}(\rho), \quad
        \pi_{kl} \sim \mathrm{Beta}(\alpha_{kl}, \beta_{kl}), \quad
        P(\text{edge } ij) = \pi_{b_i b_j}

    Parameters
    ----------
    blocks : int
        Maximum number of blocks; some may stay empty.
    concentration : float
        :math:`a`; below 1 it favours few blocks.
    within, between : pair of float
        :math:`\alpha, \beta` of edges inside a block and across two.

    Raises
    ------
    TypeError, ValueError
        If a parameter is no number or out of range.

    References
    ----------
    Nowicki, K. and Snijders, T. A. B. (2001). Estimation and prediction for stochastic
    blockstructures. *JASA* 96, 1077-1087.
    """

    blocks: int = 3
    concentration: float = 1.0
    within: tuple[float, float] = (2.0, 1.0)
    between: tuple[float, float] = (1.0, 4.0)

    def __post_init__(self):
        whole_number("blocks", self.blocks, 1)
        number("concentration", self.concentration, above=0)
        for name in ("within", "between"):
            pair = getattr(self, name)
            if isinstance(pair, str) or not np.iterable(pair) or len(pair) != 2:
                raise ValueError(f"`{name}` must be two positive numbers, not {pair!r:.60}")
            for value in pair:
                number(name, value, above=0)

    @property
    def mean(self) -> float:
        """Prior probability of an edge."""
        same = (self.concentration + 1.0) / (self.blocks * self.concentration + 1.0)
        inside, across = (a / (a + b) for a, b in (self.within, self.between))
        return same * inside + (1.0 - same) * across


@dataclass(frozen=True, eq=False)
class FixedEdges:
    """Edges that are certain before any data, as symmetric masks.

    Attributes
    ----------
    required, forbidden : (p, p) ndarray of bool
    """

    required: np.ndarray
    forbidden: np.ndarray

    @property
    def free(self) -> np.ndarray:
        """Edges that are neither required nor forbidden, (p, p); the diagonal is free too."""
        return ~(self.required | self.forbidden)

    def fill(self, probability) -> np.ndarray:
        """Probabilities of all edges, (p, p): 1 and 0 where these are certain, as given elsewhere.

        Parameters
        ----------
        probability : float or (p, p) array_like
        """
        return np.where(self.free, probability, self.required.astype("float64"))


def fixed_edges(names, required=(), forbidden=()) -> FixedEdges:
    """Masks of the edges that are required and forbidden.

    Parameters
    ----------
    names : sequence of str
        Variables, in the order of the table.
    required, forbidden : iterable of pairs of str
        Edges by the names of their ends.

    Raises
    ------
    TableError
        For an unknown name, a loop, or an edge both required and forbidden.
    """
    masks = [_mask(names, required, "required"), _mask(names, forbidden, "forbidden")]
    if len(both := np.argwhere(np.triu(masks[0] & masks[1]))):
        i, j = both[0]
        raise TableError(f"edge {names[i]} -- {names[j]} is both required and forbidden")
    return FixedEdges(*masks)


def _mask(names, pairs, label) -> np.ndarray:
    out = np.zeros((len(names), len(names)), bool)
    for pair in read_pairs(names, pairs, label, "edge"):
        i, j = _ends(names, pair, label)
        out[i, j] = out[j, i] = True
    return out


def _ends(names, pair, label):
    try:
        if isinstance(pair, str):
            raise TypeError
        a, b = pair
        i, j = (names.index(label_text(end)) for end in (a, b))
    except (ValueError, TypeError):
        raise TableError(
            f"{label} edge {pair!r} is not a pair of columns; the columns are {listing(names)}"
        ) from None
    if i == j:
        raise TableError(f"{label} edge {pair!r} joins a column with itself")
    return i, j


def edge_probability_matrix(
    names, probability, required=(), forbidden=(), *, option="edge_probability", learned=True
) -> np.ndarray:
    """Nominal probability of each edge as a symmetric matrix.

    Parameters
    ----------
    names : sequence of str
    probability : float, (p, p) array_like or DataFrame
        A DataFrame is aligned by its row and column names.
    required, forbidden : iterable of pairs of str
    option : str
        Name of the option, for messages.
    learned : bool
        Whether it could also be a distribution, for messages.

    Returns
    -------
    numpy.ndarray
        (p, p); 0 forbids and 1 requires an edge.

    Raises
    ------
    TableError
        If a value is no probability, the matrix has another shape or is not symmetric, or it
        contradicts a required or forbidden edge.
    """
    p = len(names)
    probability = aligned(option, probability, names)
    try:
        if probability is None or isinstance(probability, str):
            raise TypeError
        values = np.asarray(probability, dtype="float64")
    except (TypeError, ValueError):
        beta = ", or pm.Beta.dist(1, 1) to have it learned" if learned else ""
        what = (
            "a distribution"
            if hasattr(probability, "owner")
            else f"no number ({probability!r:.60})"
        )
        raise TableError(
            f"{option} is {what}; give a number between 0 and 1{', a' if learned else ' or a'} {p} x {p} matrix{beta}"
        ) from None
    if values.shape not in ((), (p, p)):
        raise TableError(
            f"{option} has shape {values.shape}; give a number or a {p} x {p} matrix, for {column_list(names)}"
        )
    matrix = np.broadcast_to(values, (p, p)).copy()
    np.fill_diagonal(matrix, 0.5)
    if not ((matrix >= 0) & (matrix <= 1)).all():
        where = _first(names, values, ~((matrix >= 0) & (matrix <= 1)))
        raise TableError(f"{option} has values that are not between 0 and 1{where}")
    if not (same := np.isclose(matrix, matrix.T)).all():
        raise TableError(
            f"{option} is not symmetric; an undirected edge has one probability{_first(names, values, ~same)}"
        )
    fixed = fixed_edges(names, required, forbidden)
    certain = (fixed.required & (matrix == 0.0)) | (fixed.forbidden & (matrix == 1.0))
    clash = np.argwhere((values.ndim > 0) & certain)
    if len(clash):
        i, j = clash[0]
        raise TableError(
            f"edge {names[i]} -- {names[j]} has {option} {matrix[i, j]:g}, and is "
            f"{'required' if fixed.required[i, j] else 'forbidden'}: the two conflict; remove one"
        )
    return fixed.fill(matrix)


def _first(names, values, wrong) -> str:
    """Name the first wrong value."""
    if not values.ndim:
        return f", it is {values:g}"
    i, j = np.argwhere(wrong)[0]
    back = "" if values[i, j] == values[j, i] else f" and, in the other direction, {values[j, i]:g}"
    return f"; for {names[i]} -- {names[j]} it is {values[i, j]:g}{back}"
