r"""Parameters of pairwise Markov random fields, and the tables of log-potentials that they define.

.. math::

    p(x) \propto \exp\Bigl( \sum_i u_i(x_i) + \sum_{i<j} t_{ij}(x_i, x_j) \Bigr)

Each family is linear: the unary tables :math:`u` in the biases, the pair tables :math:`t` in the
weights. Likelihoods know only tables; `Potentials` maps parameters to tables and gradients back.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["KINDS", "Potentials", "check_codes"]

#: Families of potentials; see `Potentials`.
KINDS = ("ising", "spin", "generalized_ising", "full", "ordinal", "blume_capel")


def _is_whole(value) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


@dataclass(frozen=True)
class Potentials:
    r"""A family of pairwise potentials on p variables of any numbers of states.

    States are 0, ..., k - 1. The tables of a pair are

    - ``"ising"``: :math:`w \, 1[s = t]` (Schmidt 2010, section 1.5), for equal numbers of states;
    - ``"spin"``: :math:`w \, x_s x_t` with :math:`x = -1, 1`, for two states; the bias is that of x;
    - ``"generalized_ising"``: :math:`w_s \, 1[s = t]`, for equal numbers of states;
    - ``"full"``: :math:`w_{st}`, a weight for each cell;
    - ``"ordinal"``: :math:`w \, s t` (Marsman, van den Bergh and Haslbeck 2025); with two states it
      is the Ising model in the coding 0, 1;
    - ``"blume_capel"``: the same, with unary tables :math:`\alpha s + \beta (s - r)^2`.

    All other families have a bias for each state but the first, for which the unary table is zero.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    states : tuple of int
        Number of states of each variable.
    reference : int
        The state r of ``"blume_capel"``.
    edges : tuple of pairs of int, optional
        The pairs i < j that have potentials; all of them by default.

    Raises
    ------
    ValueError
        If the kind is unknown or does not apply to the numbers of states.
    """

    kind: str
    states: tuple[int, ...]
    reference: int = 0
    edges: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"potentials {self.kind!r} are unknown; choose among {KINDS}")
        if not isinstance(self.states, tuple) or not all(_is_whole(k) for k in self.states):
            raise ValueError(f"`states` is a tuple of whole numbers, not {self.states!r:.60}")
        if len(self.states) < 2 or min(self.states) < 2:
            raise ValueError("potentials need two variables of two states or more")
        if self.kind == "spin" and set(self.states) != {2}:
            raise ValueError("spins have two states; use ordinal or full potentials for more")
        if self.kind in ("ising", "generalized_ising") and len(set(self.states)) > 1:
            raise ValueError(
                f"{self.kind} potentials compare states and need the same number for each variable; "
                "use full or ordinal potentials"
            )
        if not _is_whole(self.reference):
            raise ValueError(f"`reference` is a whole number, not {self.reference!r}")
        if self.kind == "blume_capel" and not 0 <= self.reference < max(self.states):
            raise ValueError(
                f"`reference` {self.reference} is not a state: they are 0 to {max(self.states) - 1}"
            )
        if any(not 0 <= i < j < self.p for i, j in self.edges or ()):
            raise ValueError(f"edges are pairs of variables i < j, from 0 to {self.p - 1}")
        if len(set(self.edges or ())) < len(self.edges or ()):
            raise ValueError("edges are pairs of variables, each of them once")

    @property
    def code(self) -> int:
        """Position of the kind in `KINDS`."""
        return KINDS.index(self.kind)

    @property
    def p(self) -> int:
        """Number of variables."""
        return len(self.states)

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The variables i < j of each edge, row by row unless given; two int arrays (edges,)."""
        if self.edges is None:
            return np.triu_indices(self.p, 1)
        source, target = np.array(self.edges, np.int64).reshape(-1, 2).T.copy()
        return source, target

    @cached_property
    def unary_start(self) -> np.ndarray:
        """Where the unary table of each variable starts; int64, (p + 1,)."""
        return _starts(self.states)

    @cached_property
    def pair_start(self) -> np.ndarray:
        """Where the table of each edge starts, in C order of (state of i, state of j)."""
        k = np.asarray(self.states)
        i, j = self.ends
        return _starts(k[i] * k[j])

    @cached_property
    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """The two unary cells that each pair cell joins; two int arrays (pair cells,)."""
        k, start = self.states, self.unary_start
        rows, columns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for i, j in zip(*self.ends, strict=True):
            s, t = (v.ravel() for v in np.indices((k[i], k[j])))
            rows.append(start[i] + s)
            columns.append(start[j] + t)
        return np.concatenate(rows), np.concatenate(columns)

    @cached_property
    def bias_start(self) -> np.ndarray:
        """Where the biases of each variable start; int64, (p + 1,)."""
        if self.kind == "spin":
            return np.arange(self.p + 1)
        if self.kind == "blume_capel":
            return _starts([min(k - 1, 2) for k in self.states])
        return _starts([k - 1 for k in self.states])

    @cached_property
    def weight_start(self) -> np.ndarray:
        """Where the weights of each edge start; int64, (edges + 1,)."""
        edges = len(self.ends[0])
        if self.kind == "full":
            return self.pair_start
        if self.kind == "generalized_ising":
            return np.arange(edges + 1) * self.states[0]
        return np.arange(edges + 1)

    def restricted(self, nodes: np.ndarray, edges: np.ndarray) -> "Potentials":
        """Potentials of some of the variables and of some of the edges between them.

        Parameters
        ----------
        nodes : array of int
            Variables, in order.
        edges : array of int
            Positions of edges whose ends are among them.
        """
        place = np.full(self.p, -1)
        place[nodes] = np.arange(len(nodes))
        pairs = zip(*(place[end[edges]].tolist() for end in self.ends), strict=True)
        states = tuple(self.states[i] for i in nodes)
        return Potentials(self.kind, states, self.reference, tuple(pairs))

    @property
    def bias_size(self) -> int:
        """Number of biases."""
        return int(self.bias_start[-1])

    @property
    def weight_size(self) -> int:
        """Number of weights."""
        return int(self.weight_start[-1])

    @property
    def scored(self) -> bool:
        """Whether a table is a weight times the product of the scores of two states."""
        return self.kind in ("spin", "ordinal", "blume_capel")

    @cached_property
    def scores(self) -> np.ndarray:
        """Score of each state of each variable, flat like the unary tables; only if `scored`."""
        if self.kind == "spin":
            return np.tile([-1.0, 1.0], self.p)
        return np.concatenate([np.arange(float(k)) for k in self.states])

    @cached_property
    def _unary(self):
        """Up to two biases of each unary cell and their coefficients, (cells, 2) each."""
        cells = int(self.unary_start[-1])
        index, coefficient = np.zeros((cells, 2), np.int64), np.zeros((cells, 2))
        for i, k in enumerate(self.states):
            rows = slice(self.unary_start[i], self.unary_start[i + 1])
            first = self.bias_start[i]
            s = np.arange(k)
            if self.kind == "spin":
                index[rows, 0], coefficient[rows, 0] = first, [-1.0, 1.0]
            elif self.kind == "blume_capel" and k > 2:
                index[rows] = first, first + 1
                coefficient[rows, 0], coefficient[rows, 1] = s, (s - self.reference) ** 2
            else:
                index[rows, 0] = first + np.maximum(s - 1, 0)
                coefficient[rows, 0] = s > 0
        return index, coefficient

    @cached_property
    def _pair(self):
        """The weight of each cell of the pair tables and its coefficient, (cells,) each."""
        if self.kind == "full":
            cells = self.weight_size
            return np.arange(cells), np.ones(cells)
        index, coefficient = [], []
        for e, (i, j) in enumerate(zip(*self.ends, strict=True)):
            s, t = (v.ravel() for v in np.indices((self.states[i], self.states[j])))
            if self.kind == "generalized_ising":
                index.append(self.weight_start[e] + s)
            else:
                index.append(np.full(len(s), e))
            coefficient.append(self._coefficients(s, t))
        if not index:
            return np.empty(0, np.int64), np.empty(0)
        return np.concatenate(index), np.concatenate(coefficient)

    def _coefficients(self, s, t):
        if self.kind == "spin":
            return (2.0 * s - 1.0) * (2.0 * t - 1.0)
        if self.scored:
            return 1.0 * s * t
        return 1.0 * (s == t)

    @property
    def unary_map(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of biases and coefficients, (unary cells, 2): ``(c * b[index]).sum(1)``."""
        return self._unary

    @property
    def pair_map(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of weights and coefficients, (pair cells,): ``c * w[index]``."""
        return self._pair

    def unary(self, bias: np.ndarray) -> np.ndarray:
        """Unary tables of the biases, flat."""
        index, coefficient = self._unary
        return (coefficient * bias[index]).sum(axis=1)

    def pair(self, weight: np.ndarray) -> np.ndarray:
        """Pair tables of the weights, flat."""
        index, coefficient = self._pair
        return coefficient * weight[index]

    def interaction_norms(self, weight: np.ndarray) -> np.ndarray:
        r"""Norm of the interaction of each edge, of many vectors of weights at once.

        .. math::

            \sqrt{\sum_{st} \bigl( t_{st} - \bar t_{s\cdot} - \bar t_{\cdot t} + \bar t \bigr)^2}

        Row and column means of a table of log-potentials can be moved into the biases without any
        change of the distribution. They are subtracted here.

        Parameters
        ----------
        weight : (m, weights) array

        Returns
        -------
        numpy.ndarray
            (m, edges).
        """
        index, coefficient = self._pair
        cells = coefficient * weight[:, index]
        out = np.empty((len(cells), len(self.ends[0])))
        for e, (i, j) in enumerate(zip(*self.ends, strict=True)):
            first, last = self.pair_start[e : e + 2]
            tables = cells[:, first:last].reshape(-1, self.states[i], self.states[j])
            tables = tables - tables.mean(axis=1, keepdims=True)
            tables = tables - tables.mean(axis=2, keepdims=True)
            out[:, e] = np.sqrt(np.square(tables).sum(axis=(1, 2)))
        return out

    def unary_pullback(self, gradient: np.ndarray) -> np.ndarray:
        """Gradient in the biases from that in the unary tables."""
        index, coefficient = self._unary
        weights = (coefficient * gradient[:, None]).ravel()
        return np.bincount(index.ravel(), weights, minlength=self.bias_size)

    def pair_pullback(self, gradient: np.ndarray) -> np.ndarray:
        """Gradient in the weights from that in the pair tables."""
        index, coefficient = self._pair
        return np.bincount(index, coefficient * gradient, minlength=self.weight_size)

    @cached_property
    def edge_of_weight(self) -> np.ndarray:
        """Which edge each weight belongs to: the groups of a penalty, (weights,)."""
        return np.repeat(np.arange(len(self.weight_start) - 1), np.diff(self.weight_start))

    @cached_property
    def shapes(self) -> np.ndarray:
        """Rows and columns of the weights of each edge as a matrix, (edges, 2)."""
        i, j = self.ends
        k = np.asarray(self.states)
        if self.kind == "full":
            return np.column_stack([k[i], k[j]])
        width = np.diff(self.weight_start)
        return np.column_stack([width, np.ones_like(width)])


def _starts(sizes):
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))])


def check_codes(codes: np.ndarray, potentials: Potentials) -> None:
    """Raise if a table holds anything but states of its columns.

    Parameters
    ----------
    codes : (n, p) array of int
    potentials : Potentials

    Raises
    ------
    ValueError
    """
    if (codes < 0).any() or (codes >= np.array(potentials.states)).any():
        raise ValueError("the table of a Markov random field holds a state that does not exist")
