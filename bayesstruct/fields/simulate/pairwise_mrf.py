"""Tables of states from a pairwise Markov random field with a known graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.random_graphs import make_graph
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.kernels.sampler import Sampler
from bayesstruct.fields.simulate.ising import check_rows, draw_couplings

if TYPE_CHECKING:
    import networkx
    import pandas

__all__ = ["PairwiseMRFSimulation", "pairwise_mrf"]

P, STATES = 10, 3


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseMRFSimulation:
    """A simulated table of states with its true graph.

    Attributes
    ----------
    data : pandas.DataFrame, shape (n, p)
        States 0, ..., k - 1.
    graph : networkx.Graph
        The true graph; its nodes are the columns of `data`, in order.
    potentials : Potentials
        The family, with all pairs of columns.
    bias, weight : ndarray, shapes (biases,) and (weights,)
        The true parameters of these potentials, in their order; weights off the graph are zero.
    """

    data: "pandas.DataFrame"
    graph: "networkx.Graph"
    potentials: Potentials
    bias: np.ndarray
    weight: np.ndarray

    def __repr__(self) -> str:
        n, p = self.data.shape
        edges = self.graph.number_of_edges()
        return (
            f"PairwiseMRFSimulation({n:,} x {p:,} table, {edges:,} edges, {self.potentials.kind})"
        )


def pairwise_mrf(
    n: int,
    p: int | None = None,
    *,
    potentials: "str | Potentials" = "ordinal",
    states: int | Sequence[int] | None = None,
    graph: "str | networkx.Graph" = "random",
    edge_probability: float | None = None,
    coupling: tuple[float, float] = (1.0, 2.0),
    sign: str = "random",
    sweeps: int = 200,
    random_seed: int | np.random.Generator | None = None,
) -> PairwiseMRFSimulation:
    r"""Simulate a table of states from a pairwise Markov random field.

    .. math:: P(x) \propto \exp\Bigl(\sum_i u_i(x_i) + \sum_{i<j} t_{ij}(x_i, x_j)\Bigr),
        \qquad x_i \in \{0, \ldots, k_i - 1\}

    Parameters
    ----------
    n : int
        Number of rows.
    p : int, optional
        Number of variables, named ``x0``, ``x1``, ...: by default that of `states`, or 10. Not used
        if `graph` is a networkx graph.
    potentials : str or Potentials, default "ordinal"
        The family of the tables t, see :class:`bayesstruct.fields.kernels.potentials.Potentials`. Of a
        Potentials object, kind, states and reference state are used.
    states : int or sequence of int, optional
        Number of states of all variables, or of each; 3 by default, 2 for ``"spin"``.
    graph : str or networkx.Graph, default "random"
        As in :func:`bayesstruct.simulate.gaussian_graphical`.
    edge_probability : float, optional
        As there.
    coupling : pair of float, default (1, 2)
        Smallest and largest absolute weight of an edge, uniform in between. For ordinal and
        Blume-Capel potentials it is the log-potential of the two last states together, so that variables with
        more states do not depend on each other more strongly. Each cell of a full table has a
        separate weight, as has each state under ``"generalized_ising"``.
    sign : {"random", "positive"}
        Sign of the weights. Not for full tables.
    sweeps : int, default 200
        Number of Gibbs sweeps, where Gibbs sampling is needed.
    random_seed : int or numpy.random.Generator, optional
        The same seed gives the same simulation.

    Returns
    -------
    PairwiseMRFSimulation

    Raises
    ------
    ValueError
        For an unknown or unsuitable graph, unknown potentials, potentials that do not apply to the
        numbers of states, or a number out of range.

    Notes
    -----
    Biases balance the tables: :math:`u_i(s) = -\sum_j \frac{1}{k_j} \sum_t t_{ij}(s, t)` up to a
    constant, so that no state of a variable is favoured if all other variables are uniform. For two
    states they are minus half the sum of the couplings, as in
    :func:`bayesstruct.simulate.ising`.

    Rows are drawn from the table of all joint states up to 2^16 of them; beyond, exactly by coupling
    from the past if all variables have two states and attract each other (Propp and Wilson 1996),
    otherwise by `sweeps` Gibbs sweeps from uniform states, one chain for each row.

    References
    ----------
    Propp, J. G. and Wilson, D. B. (1996). Exact sampling with coupled Markov chains and
    applications to statistical mechanics. *Random Structures & Algorithms* 9, 223-252.

    Examples
    --------
    >>> simulation = pairwise_mrf(100, states=[2, 3, 4], graph="band", random_seed=1)
    >>> simulation
    PairwiseMRFSimulation(100 x 3 table, 3 edges, ordinal)
    >>> simulation.data.max().tolist()
    [1, 2, 3]
    """
    import pandas as pd

    rng = np.random.default_rng(random_seed)
    check_rows(n, sweeps)
    kind, states, reference = _family(potentials, states)
    size = p if p is not None else P if isinstance(states, int) else len(states)
    truth = make_graph(graph, size, edge_probability, rng)
    names = list(truth.nodes)
    ends = _positions(truth)
    own = Potentials(kind, _per_variable(states, len(names)), reference, ends)
    weight = _weights(own, coupling, sign, rng)
    bias = _balancing(own, own.pair(weight))
    table = np.empty((n, len(names)), np.int64)
    Sampler(own, int(sweeps))(rng, bias, weight, table)
    every = Potentials(kind, own.states, reference)
    return PairwiseMRFSimulation(
        pd.DataFrame(table, columns=names), truth, every, bias, _among_all(own, every, weight)
    )


def _family(potentials, states):
    """Kind, states and reference state."""
    if isinstance(potentials, Potentials):
        if states is not None:
            raise ValueError(
                "Leave `states` out: the numbers of states are those of the potentials."
            )
        return potentials.kind, potentials.states, potentials.reference
    if states is None:
        states = 2 if potentials == "spin" else STATES
    return potentials, int(states) if np.ndim(states) == 0 else tuple(map(int, states)), 0


def _per_variable(states, p) -> tuple[int, ...]:
    states = (states,) * p if isinstance(states, int) else states
    if len(states) != p:
        raise ValueError(f"`states` has {len(states)} numbers, and there are {p} variables.")
    return states


def _positions(graph) -> tuple[tuple[int, int], ...]:
    """Edges as positions of their ends, row by row."""
    at = {name: position for position, name in enumerate(graph.nodes)}
    pairs = ((at[a], at[b]) for a, b in graph.edges)
    return tuple(sorted((min(pair), max(pair)) for pair in pairs))


def _weights(family, coupling, sign, rng):
    if family.kind == "full" and sign != "random":
        raise ValueError("Full tables have no sign: leave `sign` out, or use other potentials.")
    weight = draw_couplings(rng, family.weight_size, coupling, sign)
    if not family.scored:
        return weight
    top = np.asarray(family.states) - 1.0
    i, j = family.ends
    return weight / (top[i] * top[j])


def _balancing(family, pair):
    """Biases that subtract the mean of each row and column from the tables of the edges."""
    k, start = family.states, family.unary_start
    unary = np.zeros(start[-1])
    for e, (i, j) in enumerate(zip(*family.ends, strict=True)):
        first, last = family.pair_start[e : e + 2]
        table = pair[first:last].reshape(k[i], k[j])
        unary[start[i] : start[i + 1]] -= table.mean(axis=1)
        unary[start[j] : start[j + 1]] -= table.mean(axis=0)
    parts = np.split(unary, start[1:-1])
    if family.kind == "spin":
        return np.array([(u[1] - u[0]) / 2 for u in parts])
    if family.kind == "blume_capel":  # linear: the tables are products of scores
        return np.concatenate([[u[1] - u[0], 0.0][: min(len(u) - 1, 2)] for u in parts])
    return np.concatenate([u[1:] - u[0] for u in parts])


def _among_all(own, every, weight):
    """Weights of all pairs, zero for those without an edge."""
    i, j = own.ends
    edge = i * (2 * own.p - i - 1) // 2 + j - i - 1
    group = own.edge_of_weight
    inside = np.arange(len(weight)) - own.weight_start[group]
    out = np.zeros(every.weight_size)
    out[every.weight_start[edge[group]] + inside] = weight
    return out
