r"""Bayesian networks whose parameters are those of greatest likelihood given the graph.

With parameters :math:`\hat\theta(G)` and k(G) of them, the model of a graph and a table

.. math::

    p(G) \; p\bigl(x \mid G, \hat\theta(G)\bigr) \; n^{-k(G)/2}

has the posterior in which a graph weighs :math:`p(G) \, e^{-\mathrm{BIC}(G)/2}` (Schwarz 1978). With interventions n
is the number of rows in which a variable was not set. Each row of the table carries an equal share of the last factor,
the *price* of the parameters.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, Discrete, SymbolicRandomVariable
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply

from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.ops import InterpretedOp
from bayesstruct.core.tensors import as_float
from bayesstruct.networks.priors.discrete_network import DiscreteNetworkRV, state_terms
from bayesstruct.networks.priors.gaussian_network import (
    GaussianNetworkRV,
    network_params,
    normal_terms,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = [
    "FittedDiscreteNetwork",
    "FittedDiscreteNetworkRV",
    "FittedGaussianNetwork",
    "FittedGaussianNetworkRV",
    "FittedLaws",
    "fitted",
]


class FittedLaws(InterpretedOp):
    """Parameters of greatest likelihood given a graph, and their price, in one vector.

    Parameters
    ----------
    fit : object
        Of :mod:`bayesstruct.networks.kernels.fits`; equal to itself only.
    """

    __props__ = ("fit",)

    def __init__(self, fit):
        self.fit = fit

    def make_node(self, dag):
        """Apply the Op to a (d, d) graph."""
        self.register()
        size = sum(int(np.prod(shape)) for shape in self.fit.shapes)
        return Apply(
            self, [pt.as_tensor_variable(dag)], [pt.tensor(dtype="float64", shape=(size,))]
        )

    def infer_shape(self, node, input_shapes):
        """Shape known beforehand."""
        return [node.outputs[0].type.shape]

    def compute(self, dag):
        """Fit, from an array."""
        return np.concatenate([np.ravel(part) for part in self.fit.compute(dag)])

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False]]


def fitted(fit: Any, dag: "TensorLike") -> list["TensorVariable"]:
    """Parameters of greatest likelihood given a graph, and their price.

    Parameters
    ----------
    fit : object
        Of :mod:`bayesstruct.networks.kernels.fits`.
    dag : TensorVariable
        (d, d), rows are parents.

    Returns
    -------
    list of TensorVariable
        With the shapes of the fit; the last is the price.
    """
    vector: Any = FittedLaws(fit)(dag)
    out, first = [], 0
    for shape in fit.shapes:
        size = int(np.prod(shape))
        out.append(vector[first : first + size].reshape(shape) if shape else vector[first])
        first += size
    return out


class FittedGaussianNetworkRV(SymbolicRandomVariable):
    """Rows of a Gaussian network with fitted parameters."""

    extended_signature = "[rng],[size],(d),(d,d),(d),(d),(d),(d),()->[rng],(d)"
    _print_name = ("FittedGaussianNetwork", "\\operatorname{FittedGaussianNetwork}")

    @classmethod
    def rv_op(cls, *params, size=None, rng=None):
        """Build the graph of a draw."""
        *params, price = params
        inputs, outputs = GaussianNetworkRV.draw(rng, size, params)
        inputs = [*inputs, price]
        return cls(inputs=inputs, outputs=outputs)(*inputs)


class FittedGaussianNetwork(Continuous):
    r"""Rows of a Gaussian network with the parameters of greatest likelihood given its graph.

    The density is that of :class:`bayesstruct.distributions.GaussianNetwork`, and that of the whole table is multiplied by the
    exponential of the price.

    Parameters
    ----------
    name : str
    intercept, coefficients, variance, price : TensorVariable
        From :func:`fitted`.
    location, scale, setting
        As of :class:`bayesstruct.distributions.GaussianNetwork`.
    """

    rv_type = FittedGaussianNetworkRV
    rv_op = FittedGaussianNetworkRV.rv_op

    @classmethod
    def dist(
        cls,
        intercept: "TensorLike",
        coefficients: "TensorLike",
        variance: "TensorLike",
        price: "TensorLike",
        location: "TensorLike" = 0.0,
        scale: "TensorLike" = 1.0,
        setting: "ArrayLike" = np.nan,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        params = network_params(intercept, coefficients, variance, location, scale, setting)
        return super().dist([*params, as_float(price)], **kwargs)

    def support_point(rv, size, intercept, coefficients, variance, location, *others):
        """Return the location."""
        return pt.broadcast_to(location, rv.shape)


@_logprob.register(FittedGaussianNetworkRV)
def _gaussian_logp(op, values, rng, size, *params, **kwargs):
    (value,) = values
    *params, price = params
    return row_densities(normal_terms(value, *params).sum(axis=-1) + _share(price, value))


class FittedDiscreteNetworkRV(SymbolicRandomVariable):
    """Rows of a discrete network with fitted parameters."""

    extended_signature = "[rng],[size],(d,d),(d,c),(d),()->[rng],(d)"
    _print_name = ("FittedDiscreteNetwork", "\\operatorname{FittedDiscreteNetwork}")

    def __init__(self, *args, states, **kwargs):
        self.states = states
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, dag, tables, setting, price, *, states, size=None, rng=None):
        """Build the graph of a draw."""
        inputs, outputs = DiscreteNetworkRV.draw(rng, size, (dag, tables, setting), states)
        inputs = [*inputs, price]
        return cls(inputs=inputs, outputs=outputs, states=states)(*inputs)

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, states=self.states)


class FittedDiscreteNetwork(Discrete):
    """Rows of states of a discrete network with the parameters of greatest likelihood given its graph.

    The density is that of :class:`bayesstruct.distributions.DiscreteNetwork`, and that of the whole table is multiplied by the
    exponential of the price.

    Parameters
    ----------
    name : str
    dag : TensorVariable
        (d, d), rows are parents.
    tables, price : TensorVariable
        From :func:`fitted`.
    states, setting
        As of :class:`bayesstruct.distributions.DiscreteNetwork`.
    """

    rv_type = FittedDiscreteNetworkRV
    rv_op = FittedDiscreteNetworkRV.rv_op

    @classmethod
    def dist(
        cls,
        dag: "TensorLike",
        tables: "TensorLike",
        price: "TensorLike",
        *,
        states: Sequence[int],
        setting: "ArrayLike | None" = None,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        states = tuple(map(int, states))
        setting = np.full(len(states), -1) if setting is None else np.asarray(setting)
        params = [pt.as_tensor_variable(dag), as_float(tables)]
        params += [pt.as_tensor_variable(setting.astype("int64")), as_float(price)]
        return super().dist(params, states=states, **kwargs)

    def support_point(rv, size, dag, tables, setting, price):
        """Return first states."""
        return pt.zeros(rv.shape, dtype="int64")


@_logprob.register(FittedDiscreteNetworkRV)
def _discrete_logp(op, values, rng, size, *params, **kwargs):
    (value,) = values
    *params, price = params
    return row_densities(state_terms(op.states, value, *params).sum(axis=-1) + _share(price, value))


def _share(price, value):
    """Share of each row in the price of the parameters."""
    return price / (value.shape[-2] if value.type.ndim > 1 else 1)
