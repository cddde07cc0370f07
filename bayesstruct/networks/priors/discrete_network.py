r"""Discrete Bayesian networks: the probability tables of a graph, and rows given them.

.. math::

    P(x_i = s \mid x_{\mathrm{pa}_i} = c) = \theta_{ics}, \qquad
    \theta_{ic} \sim \mathrm{Dirichlet}\Bigl(\frac{\alpha}{q_i k_i}\Bigr)

for the :math:`q_i` configurations of the parents and :math:`k_i` states of a variable: the prior of the
BDeu score (Buntine 1991; Heckerman, Geiger and Chickering 1995).

How many configurations there are depends on the graph. Tables are therefore kept in rows of equal
length: state s in configuration c is cell :math:`c k_i + s`, the first parent in the order of the variables
changing fastest in c, and cells beyond are zero.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete, SymbolicRandomVariable
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.tensors import as_float
from bayesstruct.networks.kernels.configurations import strides

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = [
    "DiscreteNetwork",
    "DiscreteNetworkRV",
    "EvenTables",
    "EvenTablesRV",
    "ProbabilityTables",
    "ProbabilityTablesRV",
    "Rows",
    "table_cells",
]


def table_cells(states: Sequence[int], max_parents: int | None) -> int:
    """Cells of the largest table of a variable with at most `max_parents` parents."""
    counts = np.asarray(states, float)
    others = (np.sort(np.delete(counts, i))[::-1][:max_parents] for i in range(len(counts)))
    most = max(k * np.prod(rest) for k, rest in zip(counts, others, strict=True))
    return int(min(most, 2.0**62))


class _StateDraws:
    """Draws that know the numbers of states and of cells."""

    def __init__(self, states, cells):
        self.states, self.cells = tuple(int(k) for k in states), int(cells)
        self.shape = self._shape()

    def __eq__(self, other):
        return type(other) is type(self) and (other.states, other.cells) == (
            self.states,
            self.cells,
        )

    def __hash__(self):
        return hash((type(self), self.states, self.cells))


class _Tables(_StateDraws):
    """Draws of tables given a graph."""

    constant = False

    dtype = "float64"
    ndims = (2, 0)

    def _shape(self):
        return len(self.states), self.cells

    def __call__(self, rng, out, dag, sample_size):
        from bayesstruct.networks.kernels.parameters import draw_tables

        d = len(self.states)
        none = np.zeros((d, 0), np.int64), np.zeros((d, 0), bool)
        dag, states = np.ascontiguousarray(dag, np.int8), np.array(self.states)
        constant = (True,) if self.constant else ()
        for tables in out:
            # Not a constant argument: most tables need no second compilation.
            if not draw_tables(rng, dag, *none, states, float(sample_size), tables, *constant):
                raise ValueError(
                    f"a table of this graph has more than {self.cells} cells; bound `max_parents`"
                )


class _EvenTables(_Tables):
    """Draws of tables whose cells have the same prior weight."""

    constant = True


class Rows(_StateDraws):
    """Draws of rows, each variable after its parents."""

    dtype = "int64"
    ndims = (2, 2, 1)

    def _shape(self):
        return (len(self.states),)

    def __call__(self, rng, out, dag, tables, setting):
        """Fill `out`, (draws, d), given one graph and its tables."""
        from bayesstruct.networks.kernels.dags import topological_order

        u = rng.random(out.shape)
        step = strides(dag, self.states)
        for i in topological_order(dag):
            k = self.states[i]
            cell = (out @ step[:, i])[:, None] * k + np.arange(k)
            below = np.cumsum(tables[i, cell], axis=1)
            state = (u[:, i, None] * below[:, -1:] > below).sum(axis=1)
            out[:, i] = np.minimum(state, k - 1) if setting[i] < 0 else setting[i]


def table_counts(
    dag: np.ndarray,
    rows: np.ndarray,
    kept: np.ndarray,
    states: Sequence[int],
    sample_size: float,
    constant: bool = False,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield where each row is in the table of each child, and the counts of its cells with prior weights.

    Parameters
    ----------
    dag : (d, d) array
        1 at (parent, child).
    rows : (d, n) int array
        States, one row for each variable.
    kept : (d, n) array
        Weight of each row in the distribution of each variable, 0 where it was set.
    states : sequence of int
    sample_size, constant
        Prior weights, as in :func:`bayesstruct.networks.kernels.parameters.draw_tables`.

    Yields
    ------
    cell : (n,) int array
    counts : (configurations, states) array
    """
    step = strides(dag, states)
    for child, k in enumerate(states):
        size = int(k * np.prod(np.where(np.asarray(dag)[:, child] != 0, states, 1)))
        cell = (step[:, child] @ rows) * k + rows[child]
        weight = sample_size if constant else sample_size / size
        yield cell, (np.bincount(cell, kept[child], minlength=size) + weight).reshape(-1, k)


def expected_tables(counts: Iterable[np.ndarray], cells: int) -> np.ndarray:
    """Return the mean tables, (d, cells), from the counts of `table_counts`, child by child."""
    means = [c / c.sum(axis=1, keepdims=True) for c in counts]
    return np.array([np.pad(m.ravel(), (0, cells - m.size)) for m in means])


class _TablesRV(GraphRV):
    """Conditional probability tables given the graph."""

    extended_signature = "[rng],[size],(d,d),()->[rng],(d,c)"
    draws = _Tables
    options = ("states", "cells")

    @classmethod
    def build(cls, rng, size, dag, sample_size, *, states, cells):
        """Build the graph of a draw."""
        return seeded_draw(cls.draws(states, cells), rng, size, (dag, sample_size))


class ProbabilityTablesRV(_TablesRV):
    """Tables with the prior of the BDeu score."""

    _print_name = ("ProbabilityTables", "\\operatorname{ProbabilityTables}")


class EvenTablesRV(_TablesRV):
    """Tables whose cells have the same prior weight."""

    _print_name = ("EvenTables", "\\operatorname{EvenTables}")
    draws = _EvenTables


class ProbabilityTables(Continuous):
    r"""Conditional probability tables of a discrete network given its graph.

    Parameters
    ----------
    name : str
    dag : TensorVariable
        (d, d), a :class:`bayesstruct.DAG`; rows are parents.
    equivalent_sample_size : float
        :math:`\alpha`: rows that the prior of each variable is worth.
    states : sequence of int
        Number of states of each variable.
    cells : int
        Cells of the largest table, see :func:`table_cells`. A graph that needs more has density zero.
    """

    rv_type = ProbabilityTablesRV
    rv_op = ProbabilityTablesRV.rv_op

    @classmethod
    def dist(
        cls,
        dag: "TensorLike",
        equivalent_sample_size: "TensorLike",
        *,
        states: Sequence[int],
        cells: int,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        params = [pt.as_tensor_variable(dag), as_float(equivalent_sample_size)]
        return super().dist(params, states=tuple(map(int, states)), cells=int(cells), **kwargs)

    def support_point(rv, size, dag, sample_size):
        """Return uniform tables of the graph."""
        op = rv.owner.op
        used, _ = _used_cells(dag, op.states, op.cells)
        states = pt.as_tensor_variable(np.array(op.states, float))[:, None]
        return pt.broadcast_to(used / states, rv.shape)


class EvenTables(Continuous):
    r"""Conditional probability tables of a discrete network, all cells having the same prior weight.

    .. math:: \theta_{ic} \sim \mathrm{Dirichlet}(\alpha)

    for each configuration c: the prior of the BDe score with constant pseudo-counts, which is K2 for 1 (Cooper and
    Herskovits 1992). Equivalent graphs do not have the same marginal likelihood.

    Parameters
    ----------
    name : str
    dag : TensorVariable
        (d, d), a :class:`bayesstruct.DAG`; rows are parents.
    pseudo_count : float
        :math:`\alpha`: prior weight of each cell.
    states, cells
        As of :class:`ProbabilityTables`.
    """

    rv_type = EvenTablesRV
    rv_op = EvenTablesRV.rv_op

    @classmethod
    def dist(
        cls,
        dag: "TensorLike",
        pseudo_count: "TensorLike",
        *,
        states: Sequence[int],
        cells: int,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        params = [pt.as_tensor_variable(dag), as_float(pseudo_count)]
        return super().dist(params, states=tuple(map(int, states)), cells=int(cells), **kwargs)

    def support_point(rv, size, dag, sample_size):
        """Return uniform tables of the graph."""
        return ProbabilityTables.support_point(rv, size, dag, sample_size)


def _used_cells(dag, states, cells):
    """Whether each cell belongs to a table (..., d, c), and numbers of configurations (..., d)."""
    k = pt.as_tensor_variable(np.array(states, float))
    factor = pt.switch(pt.eq(dag, 1), k[:, None], 1.0)
    count = factor.prod(axis=-2)
    used = pt.lt(pt.arange(cells), (count * k)[..., None])
    return used.astype("float64"), count


@_logprob.register(_TablesRV)
def _tables_logp(op, values, rng, size, dag, sample_size, **kwargs):
    (value,) = values
    k = pt.as_tensor_variable(np.array(op.states, float))
    used, count = _used_cells(dag, op.states, op.cells)
    alpha = sample_size[..., None] / (1.0 if op.draws.constant else count * k)
    alpha = alpha + pt.zeros_like(count)
    safe = pt.switch(pt.gt(value, 0.0), value, 1.0)
    terms = ((alpha - 1.0)[..., None] * pt.log(safe) * used).sum(axis=-1)
    constant = count * (pt.gammaln(alpha * k) - k * pt.gammaln(alpha))
    fits = pt.le(count * k, float(op.cells)).all(axis=-1)
    inside = pt.all(pt.ge(value, 0.0) & pt.or_(pt.eq(used, 1.0), pt.eq(value, 0.0)), axis=(-2, -1))
    sums = pt.all(pt.abs(value.sum(axis=-1) - count) < 1e-6 * count, axis=-1)
    return pt.switch(fits & inside & sums, (terms + constant).sum(axis=-1), -np.inf)


class DiscreteNetworkRV(SymbolicRandomVariable):
    """Rows of a discrete network."""

    extended_signature = "[rng],[size],(d,d),(d,c),(d)->[rng],(d)"
    _print_name = ("DiscreteNetwork", "\\operatorname{DiscreteNetwork}")

    def __init__(self, *args, states, **kwargs):
        self.states = states
        super().__init__(*args, **kwargs)

    @staticmethod
    def draw(rng, size, params, states):
        """Return inputs and outputs of the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        return [rng, size, *params], [*seeded_draw(Rows(states, 0), rng, size, params)]

    @classmethod
    def rv_op(cls, *params, states, size=None, rng=None):
        """Build the graph of a draw."""
        inputs, outputs = cls.draw(rng, size, params, states)
        return cls(inputs=inputs, outputs=outputs, states=states)(*inputs)

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, states=self.states)


class DiscreteNetwork(Discrete):
    """Rows of states of a discrete Bayesian network.

    Variables that were *set* from outside keep their state, which carries no information about their distribution (perfect
    interventions, Cooper and Yoo 1999).

    Parameters
    ----------
    name : str
    dag : tensor_like of int
        (d, d), acyclic; rows are parents.
    tables : tensor_like of float
        (d, cells), as in :class:`ProbabilityTables`.
    states : sequence of int
        Number of states of each variable.
    setting : (d,) or (n, d) array_like of int, optional
        States that variables were set to, -1 where they were not.

    References
    ----------
    Cooper, G. F. and Yoo, C. (1999). Causal discovery from a mixture of experimental and observational
    data. *UAI* 15, 116-125.
    """

    rv_type = DiscreteNetworkRV
    rv_op = DiscreteNetworkRV.rv_op

    @classmethod
    def dist(
        cls,
        dag: "TensorLike",
        tables: "TensorLike",
        *,
        states: Sequence[int],
        setting: "ArrayLike | None" = None,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        states = tuple(map(int, states))
        setting = np.full(len(states), -1) if setting is None else np.asarray(setting)
        params = [pt.as_tensor_variable(dag), as_float(tables)]
        params.append(pt.as_tensor_variable(setting.astype("int64")))
        return super().dist(params, states=states, **kwargs)

    def support_point(rv, size, dag, tables, setting):
        """Return first states."""
        return pt.zeros(rv.shape, dtype="int64")


@_logprob.register(DiscreteNetworkRV)
def _rows_logp(op, values, rng, size, *params, **kwargs):
    (value,) = values
    return row_densities(state_terms(op.states, value, *params).sum(axis=-1))


def state_terms(
    states: Sequence[int],
    value: "TensorVariable",
    dag: "TensorVariable",
    tables: "TensorVariable",
    setting: "TensorVariable",
) -> "TensorVariable":
    """Log probabilities of the values of rows given their parents, zero where they were set."""
    while dag.type.ndim > 2 and dag.type.broadcastable[0]:
        dag = dag[0]
    while tables.type.ndim > 2 and tables.type.broadcastable[0]:
        tables = tables[0]
    k = pt.as_tensor_variable(np.array(states, np.int64))
    possible = pt.and_(pt.ge(value, 0), pt.lt(value, k))
    state = pt.switch(possible, value, 0)
    factor = pt.switch(pt.eq(dag, 1), k[:, None], 1)
    before = pt.cumprod(factor, axis=-2) // factor
    step = pt.switch(pt.eq(dag, 1), before, 0)
    if dag.type.ndim == 2:
        cell = state @ step
    else:
        cell = (state[..., None, :] @ step)[..., 0, :]
    cell = cell * k + state
    if tables.type.ndim == 2:
        probability = tables[pt.arange(len(states)), cell]
    else:
        probability = pt.take_along_axis(tables, cell[..., None], axis=-1)[..., 0]
    terms = pt.switch(possible, pt.log(probability), -np.inf)
    return pt.switch(pt.lt(setting, 0), terms, 0.0)
