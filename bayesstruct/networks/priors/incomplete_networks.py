r"""Tables of Bayesian networks with missing values.

*Gaussian*: the rows have the density of their observed values, and the missing ones are a variable of their own, whose
distribution is that given the observed ones (:mod:`bayesstruct.networks.kernels.missing_values`), so that the joint
density is that of complete rows.

*Discrete*: the prior of the missing values is uniform, and the rows have the density of the table that they complete.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete, SymbolicRandomVariable
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.graph.basic import Apply
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.draws import SeededDraw, seed_from
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.missing import Mask
from bayesstruct.core.ops import InterpretedOp
from bayesstruct.core.tensors import as_float
from bayesstruct.networks.priors.discrete_network import DiscreteNetworkRV, state_terms
from bayesstruct.networks.priors.gaussian_network import (
    GaussianNetwork,
    GaussianNetworkRV,
    network_params,
    normal_terms,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = [
    "IncompleteDiscreteNetwork",
    "IncompleteDiscreteNetworkRV",
    "IncompleteGaussianNetwork",
    "IncompleteGaussianNetworkRV",
    "MissingNetworkValues",
    "NetworkCellsRV",
]

_LOG_2PI = np.log(2.0 * np.pi)


def _conditional(mask, intercept, coefficients, variance, setting, z):
    """Conditional means in the rows with missing values, their precisions, and the positions of these rows."""
    from bayesstruct.networks.kernels.missing_values import conditional_numbers

    at = np.unique(mask.rows)
    free = np.isnan(np.broadcast_to(setting, z.shape)[at])
    mean, block = conditional_numbers(
        intercept, coefficients, variance, free, z[at], mask.missing[at]
    )
    return mean, block, at


class ConditionalCells(InterpretedOp):
    """Means of the missing values given the observed ones, (missing values,), and log |K_mm| of each row, (n,)."""

    __props__ = ("mask",)

    def __init__(self, mask):
        self.mask = mask

    def make_node(self, intercept, coefficients, variance, setting, z):
        """Apply the Op to parameters and a standardised table."""
        self.register()
        inputs = [as_float(v) for v in (intercept, coefficients, variance, setting, z)]
        sizes = len(self.mask.rows), len(self.mask.missing)
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=(k,)) for k in sizes])

    def infer_shape(self, node, input_shapes):
        """Shapes known beforehand."""
        return [(len(self.mask.rows),), (len(self.mask.missing),)]

    def compute(self, intercept, coefficients, variance, setting, z):
        """Compute from arrays."""
        mean, block, at = _conditional(self.mask, intercept, coefficients, variance, setting, z)
        log_det = np.zeros(len(z))
        log_det[at] = np.linalg.slogdet(block)[1]
        return np.ascontiguousarray(mean[self.mask.missing[at]]), log_det

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False, False]] * len(node.inputs)


def _core(parameter, ndim):
    """Drop leading dimensions of length one."""
    while parameter.type.ndim > ndim and parameter.type.broadcastable[0]:
        parameter = parameter[0]
    if parameter.type.ndim > ndim:
        raise ValueError("all rows of an incomplete table have the same parameters")
    return parameter


def _observed_terms(op, table, params):
    """Log density of the observed values of each row."""
    intercept, coefficients, variance, location, scale, setting = params
    cores = _core(intercept, 1), _core(coefficients, 2), _core(variance, 1)
    z = (table - location) / scale
    centre, log_det = ConditionalCells(op.mask)(*cores, setting, z)
    rows, columns = (pt.as_tensor_variable(v) for v in (op.mask.rows, op.mask.columns))
    full = (z + pt.zeros(op.mask.missing.shape))[rows, columns].set(centre)
    terms = normal_terms(location + scale * full, *params).sum(axis=-1)
    missing = pt.as_tensor_variable(op.mask.missing.astype("float64"))
    volume = (missing * (0.5 * _LOG_2PI + pt.log(scale))).sum(axis=-1)
    return terms + volume - 0.5 * log_det


class IncompleteGaussianNetworkRV(GaussianNetworkRV):
    """Rows of a Gaussian network with missing values."""

    _print_name = ("IncompleteGaussianNetwork", "\\operatorname{IncompleteGaussianNetwork}")

    def __init__(self, *args, mask, **kwargs):
        self.mask = mask
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, *params, mask, size=None, rng=None):
        """Build the graph of a draw."""
        inputs, outputs = cls.draw(rng, size, params)
        return cls(inputs=inputs, outputs=outputs, mask=mask)(*inputs)

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, mask=self.mask)


class IncompleteGaussianNetwork(GaussianNetwork):
    """Rows of a Gaussian Bayesian network with missing values.

    ``logp`` is that of the observed values of each row; the entries at the places of missing values have
    no influence on it. Draws are complete rows, as replicated tables should be.

    Parameters
    ----------
    name : str
    intercept, coefficients, variance, location, scale, setting
        As of :class:`bayesstruct.distributions.GaussianNetwork`.
    missing : (n, d) array_like of bool
        True where a value is missing; none of these may be set.
    """

    rv_type = IncompleteGaussianNetworkRV
    rv_op = IncompleteGaussianNetworkRV.rv_op  # type: ignore[assignment]

    @classmethod
    def dist(  # type: ignore[override]
        cls,
        intercept: "TensorLike",
        coefficients: "TensorLike",
        variance: "TensorLike",
        location: "TensorLike" = 0.0,
        scale: "TensorLike" = 1.0,
        setting: "ArrayLike" = np.nan,
        *,
        missing: "Mask | ArrayLike",
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        mask = missing if isinstance(missing, Mask) else Mask(missing)
        params = (intercept, coefficients, variance, location, scale, setting)
        return super().dist(*params, mask=mask, **kwargs)


@_logprob.register(IncompleteGaussianNetworkRV)
def _incomplete_rows_logp(op, values, rng, size, *params, **kwargs):
    (value,) = values
    _, _, _, location, *_ = params
    table = pt.switch(pt.as_tensor_variable(op.mask.missing), location, value)
    return row_densities(_observed_terms(op, table, params))


class _Cells:
    """Draws of the missing values of a table."""

    dtype = "float64"
    ndims = (1, 2, 1, 1, 1, 2, 2)

    def __init__(self, mask):
        self.mask, self.shape = mask, (len(mask.rows),)

    def __call__(
        self, rng, out, intercept, coefficients, variance, location, scale, setting, table
    ):
        from bayesstruct.networks.kernels.missing_values import draw_missing_numbers

        at, missing = np.unique(self.mask.rows), self.mask.missing
        free = np.isnan(np.broadcast_to(setting, table.shape)[at])
        for values in out:
            z = ((table - location) / scale)[at]
            draw_missing_numbers(rng, intercept, coefficients, variance, free, z, missing[at])
            values[:] = (location + scale * z)[missing[at]]


class NetworkCellsRV(SymbolicRandomVariable):
    """Missing values of a Gaussian network."""

    extended_signature = "[rng],(d),(d,d),(d),(d),(d),(n,d),(n,d)->[rng],(m)"
    _print_name = ("MissingNetworkValues", "\\operatorname{MissingNetworkValues}")

    def __init__(self, *args, mask, **kwargs):
        self.mask = mask
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, *params, mask, size=None, rng=None):
        """Build the graph of a draw."""
        rng = normalize_rng_param(rng)
        next_rng, seed = seed_from(rng)
        none = pt.constant(np.empty(0, np.int64))
        draw = SeededDraw(_Cells(mask), 0)(seed, none, *params)
        return cls(inputs=[rng, *params], outputs=[next_rng, draw], mask=mask)(rng, *params)

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw again."""
        return type(self).rv_op(*params, **kwargs, mask=self.mask)


class MissingNetworkValues(Continuous):
    """Missing values of a Gaussian network given its observed ones, in the units of the table.

    Together with :class:`IncompleteGaussianNetwork`, with the same parameters, they have the density of complete
    rows. Values are in row-major order.

    Parameters
    ----------
    name : str
    intercept, coefficients, variance, location, scale, setting
        As of :class:`bayesstruct.distributions.GaussianNetwork`.
    table : (n, d) array_like of float
        The observed values; entries of missing ones are not used.
    missing : (n, d) array_like of bool
        True where a value is missing; none of these may be set.
    """

    rv_type = NetworkCellsRV
    rv_op = NetworkCellsRV.rv_op

    @classmethod
    def dist(
        cls,
        intercept: "TensorLike",
        coefficients: "TensorLike",
        variance: "TensorLike",
        location: "TensorLike" = 0.0,
        scale: "TensorLike" = 1.0,
        setting: "ArrayLike" = np.nan,
        *,
        table: "ArrayLike",
        missing: "Mask | ArrayLike",
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        mask = missing if isinstance(missing, Mask) else Mask(missing)
        table = np.where(mask.missing, 0.0, np.asarray(table, float))
        params = network_params(intercept, coefficients, variance, location, scale, setting)
        params[-1] = pt.broadcast_to(params[-1], table.shape)
        return super().dist([*params, as_float(table)], mask=mask, **kwargs)

    def support_point(rv, intercept, coefficients, variance, location, scale, setting, table):
        """Return the conditional means."""
        op = rv.owner.op
        z = (table - location) / scale
        centre, _ = ConditionalCells(op.mask)(intercept, coefficients, variance, setting, z)
        columns = pt.as_tensor_variable(op.mask.columns)
        return (location + pt.zeros(z.shape[-1]))[columns] + (scale + pt.zeros(z.shape[-1]))[
            columns
        ] * centre


@_logprob.register(NetworkCellsRV)
def _cells_logp(op, values, rng, *params, **kwargs):
    (value,) = values
    *params, table = params
    rows, columns = (pt.as_tensor_variable(v) for v in (op.mask.rows, op.mask.columns))
    full = table[rows, columns].set(value)
    complete = normal_terms(full, *params).sum(axis=-1)
    return (complete - _observed_terms(op, table, params)).sum()


class IncompleteDiscreteNetworkRV(SymbolicRandomVariable):
    """Rows of a discrete network with missing values."""

    extended_signature = "[rng],[size],(d,d),(d,c),(d),(m)->[rng],(d)"
    _print_name = ("IncompleteDiscreteNetwork", "\\operatorname{IncompleteDiscreteNetwork}")

    def __init__(self, *args, states, mask, floats=False, **kwargs):
        self.states, self.mask, self.floats = states, mask, floats
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(
        cls, dag, tables, setting, missing_states, *, states, mask, floats, size=None, rng=None
    ):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        inputs, (next_rng, draw) = DiscreteNetworkRV.draw(rng, size, (dag, tables, setting), states)
        inputs, outputs = [*inputs, missing_states], [next_rng, draw.astype("float64")]
        outputs = outputs if floats else [next_rng, draw]
        return cls(inputs=inputs, outputs=outputs, states=states, mask=mask, floats=floats)(*inputs)

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        own = {"states": self.states, "mask": self.mask, "floats": self.floats}
        return type(self).rv_op(*params, **kwargs, **own)


class IncompleteDiscreteNetwork(Discrete):
    """Rows of states of a discrete Bayesian network with missing values.

    The density is that of :class:`bayesstruct.distributions.DiscreteNetwork` for the table that `missing_states`
    complete; with :class:`bayesstruct.distributions.MissingStates` as their prior it is the joint density of the table
    and its missing values. Draws are complete rows.

    Parameters
    ----------
    name : str
    dag, tables, states, setting
        As of :class:`bayesstruct.distributions.DiscreteNetwork`.
    missing_states : TensorVariable of int, shape (missing values,)
        States of the missing values, row by row.
    missing : (n, d) array_like of bool
        True where a value is missing; none of these may be set.
    floats : bool, default False
        Whether rows are floats, among which NaN can stand for a missing value.
    """

    rv_type = IncompleteDiscreteNetworkRV
    rv_op = IncompleteDiscreteNetworkRV.rv_op

    @classmethod
    def dist(
        cls,
        dag: "TensorLike",
        tables: "TensorLike",
        missing_states: "TensorLike",
        *,
        states: Sequence[int],
        missing: "Mask | ArrayLike",
        setting: "ArrayLike | None" = None,
        floats: bool = False,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        states = tuple(map(int, states))
        mask = missing if isinstance(missing, Mask) else Mask(missing)
        setting = np.full(len(states), -1) if setting is None else np.asarray(setting)
        params = [pt.as_tensor_variable(dag), as_float(tables)]
        params += [
            pt.as_tensor_variable(setting.astype("int64")),
            pt.as_tensor_variable(missing_states),
        ]
        return super().dist(params, states=states, mask=mask, floats=floats, **kwargs)

    def support_point(rv, size, dag, tables, setting, missing_states):
        """Return first states."""
        return pt.zeros(rv.shape, dtype=rv.dtype)


@_logprob.register(IncompleteDiscreteNetworkRV)
def _incomplete_states_logp(op, values, rng, size, dag, tables, setting, missing_states, **kwargs):
    (value,) = values
    rows, columns = (pt.as_tensor_variable(v) for v in (op.mask.rows, op.mask.columns))
    value = value[rows, columns].set(_core(missing_states, 1).astype(value.dtype)).astype("int64")
    return row_densities(state_terms(op.states, value, dag, tables, setting).sum(axis=-1))
