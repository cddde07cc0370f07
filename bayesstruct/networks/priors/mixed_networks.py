r"""Bayesian networks with columns of several kinds: the parameters of a graph, and rows given them.

Families of columns, their parameters and priors are those of :mod:`bayesstruct.networks.kernels.mixed_layout` and
:mod:`bayesstruct.networks.kernels.scores.mixed_families`. How many parameters there are depends on the graph. They are
one vector over all coefficients that any graph has, in which those of columns that are no parents are zero.
"""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.logprob.abstract import _logprob
from pytensor.gradient import grad_undefined
from pytensor.graph.basic import Apply

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.ops import InterpretedOp
from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_float
from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.networks.kernels.mixed_rows import column_terms, draw_prior, draw_rows, log_prior

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = [
    "MixedNetwork",
    "MixedNetworkRV",
    "MixedParameters",
    "MixedParametersRV",
    "MixedRowTerms",
    "draw_of_rows",
    "row_params",
]


class _Draws:
    """Base of draws that know the layout, and how long one of them is."""

    dtype = "float64"
    ndims: tuple[int, ...]

    def __init__(self, layout: MixedLayout, length: int):
        self.layout, self.shape = layout, (length,)

    def __eq__(self, other):
        return type(other) is type(self) and other.layout == self.layout

    def __hash__(self):
        return hash((type(self), self.layout))


class _ParameterDraws(_Draws):
    """Draws of parameters given a graph."""

    ndims = (2, 0)

    def __init__(self, layout: MixedLayout):
        super().__init__(layout, layout.size)

    def __call__(self, rng, out, dag, scale):
        for vector in out:
            draw_prior(self.layout, rng, dag, float(scale), vector)


class _RowDraws(_Draws):
    """Draws of rows given a graph and its parameters."""

    ndims = (2, 1, 1, 1, 1)

    def __init__(self, layout: MixedLayout):
        super().__init__(layout, layout.d)

    def __call__(self, rng, out, dag, vector, location, scale, setting):
        known = (setting - location) / scale
        z = draw_rows(self.layout, rng.random(out.shape), vector, dag, known)
        # Numbers that were set keep their value to the last digit.
        out[:] = np.where(np.isnan(setting), location + scale * z, setting)


class _Densities(InterpretedOp):
    """A log density that NumPy computes, without derivatives."""

    __props__ = ("layout",)

    def __init__(self, layout: MixedLayout):
        self.layout = layout

    def pullback(self, inputs, outputs, cotangents):
        """Return that there are no derivatives: the step of these networks needs none."""
        reason = f"{type(self).__name__} has none"
        return [grad_undefined(self, i, v, reason) for i, v in enumerate(inputs)]


class MixedPrior(_Densities):
    """Log prior density of the parameters of a graph."""

    def make_node(self, dag, vector, scale):
        """Apply the Op to (..., d, d), (..., parameters) and a number."""
        self.register()
        inputs = [pt.as_tensor_variable(v) for v in (dag, vector, scale)]
        batch = max(inputs[0].type.ndim - 2, inputs[1].type.ndim - 1)
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=(None,) * batch)])

    def compute(self, dag, vector, scale):
        """Return the log densities."""
        batch = np.broadcast_shapes(dag.shape[:-2], vector.shape[:-1])
        dags = np.broadcast_to(dag, (*batch, *dag.shape[-2:]))
        vectors = np.broadcast_to(vector, (*batch, self.layout.size))
        out = np.empty(batch)
        for at in np.ndindex(*batch):
            out[at] = log_prior(self.layout, dags[at], vectors[at], float(np.ravel(scale)[0]))
        return out


class MixedRowTerms(_Densities):
    """Log densities of rows given the parameters."""

    def make_node(self, value, vector, location, scale, setting):
        """Apply the Op to (n, d) or (d,) values, (parameters,), and (d,) vectors; `setting` may be (n, d)."""
        self.register()
        inputs = [as_float(v) for v in (value, vector, location, scale, setting)]
        shape = inputs[0].type.shape[:-1]
        return Apply(self, inputs, [pt.tensor(dtype="float64", shape=shape)])

    def infer_shape(self, node, input_shapes):
        """Return the number of rows."""
        return [input_shapes[0][:-1]]

    def compute(self, value, vector, location, scale, setting):
        """Return the log densities, in the units of the table."""
        location, scale = (v.reshape(-1, v.shape[-1])[0] for v in (location, scale))
        table = value.reshape(-1, value.shape[-1])
        vector = vector.reshape(-1, vector.shape[-1])
        if len(vector) > 1:
            raise ValueError("densities of rows are those of one vector of parameters at a time")
        terms = column_terms(self.layout, (table - location) / scale, vector[0]) - np.log(scale)
        free = np.isnan(setting.reshape(-1, setting.shape[-1]))
        return np.where(free, terms, 0.0).sum(axis=1).reshape(value.shape[:-1])


def draw_of_rows(layout: MixedLayout, rng, size, *params):
    """Return the generator afterwards, and rows given the parameters of a `MixedNetwork`."""
    return seeded_draw(_RowDraws(layout), rng, size, params)


class _MixedRV(GraphRV):
    """Base of the random variables: a draw by a Python function that knows the layout."""

    draws: "type[_ParameterDraws] | type[_RowDraws]"
    options = ("layout",)

    @classmethod
    def build(cls, rng, size, *params, layout):
        """Build the graph of a draw."""
        return seeded_draw(cls.draws(layout), rng, size, params)


class MixedParametersRV(_MixedRV):
    """Parameters of a network of columns of several kinds."""

    extended_signature = "[rng],[size],(d,d),()->[rng],(m)"
    _print_name = ("MixedParameters", "\\operatorname{MixedParameters}")
    draws = _ParameterDraws


class MixedParameters(Continuous):
    """Parameters of a network of columns of several kinds, given its graph.

    Parameters
    ----------
    name : str
    dag : TensorVariable
        (d, d), a :class:`bayesstruct.DAG`; rows are parents.
    scale : float
        Standard deviation of coefficients; for numbers, of those divided by the noise scale.
    layout : MixedLayout
        Families and numbers of states of the columns, and the places of their parameters
        (:mod:`bayesstruct.networks.kernels.mixed_layout`).

    Notes
    -----
    The density is that of the parameters that the graph has, and zero if another one is not zero.
    """

    rv_type = MixedParametersRV
    rv_op = MixedParametersRV.rv_op

    @classmethod
    def dist(
        cls, dag: "TensorLike", scale: "TensorLike", *, layout: MixedLayout, **kwargs
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        dag = pt.as_tensor_variable(dag)
        claim(dag, "mixed_network_mcmc")
        return super().dist([dag, as_float(scale)], layout=layout, **kwargs)

    def support_point(rv, size, dag, scale):
        """Return coefficients zero, noise scales one, and thresholds of equal probabilities."""
        layout = rv.owner.op.layout
        point = np.zeros(layout.size)
        for i, places in enumerate(layout.extras):
            if layout.is_number(i):
                point[places] = np.array([1.0, 12.0])[: len(places)]
            elif layout.families[i] == "ordinal":
                share = np.arange(1, layout.states[i]) / layout.states[i]
                point[places] = np.log(share) - np.log1p(-share)
        return pt.broadcast_to(pt.as_tensor_variable(point), rv.shape)


@_logprob.register(MixedParametersRV)
def _parameters_logp(op, values, rng, size, dag, scale, **kwargs):
    (value,) = values
    return MixedPrior(op.layout)(dag, value, scale)


class MixedNetworkRV(_MixedRV):
    """Rows of a network of columns of several kinds."""

    extended_signature = "[rng],[size],(d,d),(m),(d),(d),(d)->[rng],(d)"
    _print_name = ("MixedNetwork", "\\operatorname{MixedNetwork}")
    draws = _RowDraws


def row_params(layout: MixedLayout, dag, parameters, location, scale, setting) -> list:
    """Return the parameters of a `MixedNetwork` as tensors."""
    setting = np.full(layout.d, np.nan) if setting is None else np.asarray(setting, float)
    params = [pt.as_tensor_variable(dag), *map(as_float, (parameters, location, scale))]
    return [*params, pt.as_tensor_variable(setting)]


class MixedNetwork(Continuous):
    """Rows of a Bayesian network whose columns are numbers or states.

    Variables that were *set* from outside keep their value, which carries no information about their distribution (perfect
    interventions, Cooper and Yoo 1999).

    Parameters
    ----------
    name : str
    dag : tensor_like of int
        (d, d), acyclic; rows are parents.
    parameters : tensor_like of float
        (m,), as :class:`MixedParameters`.
    location, scale : (d,) array_like
        By which numbers were standardised; 0 and 1 for states.
    setting : (d,) or (n, d) array_like, optional
        Values that variables were set to, NaN where they were not.
    layout : MixedLayout
        As of :class:`MixedParameters`.

    References
    ----------
    Cooper, G. F. and Yoo, C. (1999). Causal discovery from a mixture of experimental and observational
    data. *UAI* 15, 116-125.
    """

    rv_type = MixedNetworkRV
    rv_op = MixedNetworkRV.rv_op

    @classmethod
    def dist(
        cls,
        dag: "TensorLike",
        parameters: "TensorLike",
        location: "TensorLike",
        scale: "TensorLike",
        setting: "ArrayLike | None" = None,
        *,
        layout: MixedLayout,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        params = row_params(layout, dag, parameters, location, scale, setting)
        return super().dist(params, layout=layout, **kwargs)

    def support_point(rv, size, dag, parameters, location, scale, setting):
        """Return locations, and first states."""
        return pt.broadcast_to(location, rv.shape)


@_logprob.register(MixedNetworkRV)
def _rows_logp(op, values, rng, size, dag, parameters, location, scale, setting, **kwargs):
    (value,) = values
    return row_densities(MixedRowTerms(op.layout)(value, parameters, location, scale, setting))
