"""Prior edge probabilities in the shape that a model needs: one symmetric matrix."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.data.arguments import number, whole_number
from bayesstruct.data.errors import TableError
from bayesstruct.data.names import label_text

__all__ = ["StochasticBlock", "edge_probability_matrix", "fixed_edges"]


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
        Most blocks; some may stay empty.
    concentration : float
        :math:`a`; below 1 it favours few blocks.
    within, between : pair of float
        :math:`\alpha, \beta` of edges inside a block and across two.

    Raises
    ------
    TypeError, ValueError
        If one is no number, or out of range.

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


def fixed_edges(names, required=(), forbidden=()):
    """Matrix with 1 for required, 0 for forbidden and 0.5 for free edges.

    Parameters
    ----------
    names : sequence of str
        Variables, in the order of the table.
    required, forbidden : iterable of pairs of str
        Edges by the names of their ends.

    Returns
    -------
    numpy.ndarray
        (p, p), symmetric.

    Raises
    ------
    TableError
        For an unknown name, a loop, or an edge both required and forbidden.
    """
    matrix = np.full((len(names), len(names)), 0.5)
    for label, pairs, value in (("required", required, 1.0), ("forbidden", forbidden, 0.0)):
        for pair in pairs:
            i, j = _ends(names, pair, label)
            if matrix[i, j] not in (0.5, value):
                raise TableError(f"edge {names[i]} -- {names[j]} is both required and forbidden")
            matrix[i, j] = matrix[j, i] = value
    return matrix


def _ends(names, pair, label):
    try:
        if isinstance(pair, str):
            raise TypeError
        a, b = pair
        i, j = (names.index(label_text(end)) for end in (a, b))
    except (ValueError, TypeError):
        raise TableError(
            f"{label} edge {pair!r} is not a pair of columns; the columns are {', '.join(names)}"
        ) from None
    if i == j:
        raise TableError(f"{label} edge {pair!r} joins a column with itself")
    return i, j


def edge_probability_matrix(names, probability, required=(), forbidden=()):
    """Nominal probability of each edge as a symmetric matrix.

    Parameters
    ----------
    names : sequence of str
    probability : float, (p, p) array_like or DataFrame
        A DataFrame is aligned by its row and column names.
    required, forbidden : iterable of pairs of str

    Returns
    -------
    numpy.ndarray
        (p, p); 0 forbids and 1 requires an edge.

    Raises
    ------
    TableError
        If a value is no probability, or the matrix has another shape, is not symmetric, or forbids what is
        required or the other way round.
    """
    p = len(names)
    if hasattr(probability, "loc"):
        missing = set(names) - (set(probability.index) & set(probability.columns))
        if missing:
            raise TableError(f"edge_probability has no row and column for {sorted(missing)}")
        probability = probability.loc[list(names), list(names)]
    try:
        if isinstance(probability, str):
            raise TypeError
        values = np.asarray(probability, dtype="float64")
    except (TypeError, ValueError):
        raise TableError(
            f"edge_probability is no number ({probability!r:.60}); give a number between 0 and 1, a "
            f"{p} x {p} matrix, or pm.Beta.dist(1, 1) to have it learned"
        ) from None
    if values.shape not in ((), (p, p)):
        raise TableError(
            f"edge_probability has shape {values.shape}; give a number or a {p} x {p} matrix"
        )
    matrix = np.broadcast_to(values, (p, p)).copy()
    np.fill_diagonal(matrix, 0.5)
    if not ((matrix >= 0) & (matrix <= 1)).all():
        raise TableError("edge_probability has values that are not between 0 and 1")
    if not np.allclose(matrix, matrix.T):
        raise TableError(
            "edge_probability is not symmetric; an undirected edge has one probability"
        )
    fixed = fixed_edges(names, required, forbidden)
    clash = np.argwhere((values.ndim > 0) & (np.abs(fixed - matrix) == 1.0))
    if len(clash):
        i, j = clash[0]
        raise TableError(
            f"edge {names[i]} -- {names[j]} has edge_probability {matrix[i, j]:g}, and is "
            f"{'required' if fixed[i, j] else 'forbidden'}: say one thing"
        )
    return np.where(fixed == 0.5, matrix, fixed)
