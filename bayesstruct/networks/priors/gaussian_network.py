r"""Gaussian Bayesian networks: the parameters of a graph, and rows given them.

Each variable is a linear regression on its parents, on the scale on which the table was standardised,

.. math::

    z_i = a_i + \sum_{j \in \mathrm{pa}_i} b_{ij} z_j + N(0, v_i), \quad
    v_i \sim \mathrm{InvGamma}\Bigl(\frac{\alpha_w - d + |\mathrm{pa}_i| + 1}{2}, \frac t2\Bigr), \quad
    b_{ij} \mid v_i \sim N\Bigl(0, \frac{v_i}{t}\Bigr), \quad
    a_i \mid v_i \sim N\Bigl(0, \frac{v_i}{\alpha_\mu}\Bigr).

With this prior Markov equivalent graphs have the same marginal likelihood, the BGe score (Geiger and
Heckerman 2002; Kuipers, Moffa and Heckerman 2014).
"""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.entries import entries
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.tensors import as_float

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = [
    "ArcWeights",
    "ArcWeightsRV",
    "GaussianNetwork",
    "GaussianNetworkRV",
    "Intercepts",
    "InterceptsRV",
    "NoiseVariances",
    "NoiseVariancesRV",
    "arc_density",
    "arc_vector",
    "coefficient_matrix",
    "draw_shape",
    "fill_rows",
    "variance_parameters",
]

_LOG_2PI = np.log(2.0 * np.pi)


def arc_index(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Source and target of each arc, target by target; two int arrays (d (d - 1),)."""
    target, source = np.nonzero(~np.eye(d, dtype=bool))
    return source, target


def arc_vector(dag: "TensorVariable") -> "TensorVariable":
    """Entries of a (..., d, d) adjacency tensor as a vector over arcs, target by target."""
    return entries(dag, *arc_index(dag.type.shape[-1]))


def coefficient_matrix(weight: "TensorVariable", d: int) -> "TensorVariable":
    """Matrix of regression coefficients from a vector over arcs.

    Parameters
    ----------
    weight : TensorVariable
        (..., d (d - 1)), over all arcs, target by target, as :class:`ArcWeights`.
    d : int
        Number of variables.

    Returns
    -------
    TensorVariable
        (..., d, d); rows are children, columns parents.
    """
    source, target = arc_index(d)
    place = np.zeros((d, d), np.int64)
    place[target, source] = 1 + np.arange(len(source))
    zero = pt.zeros_like(weight[..., :1])
    return pt.concatenate([zero, weight], axis=-1)[..., pt.as_tensor_variable(place)]


def arc_density(
    dag: "TensorVariable", slab: "TensorVariable", value: "TensorVariable", without: float
) -> "TensorVariable":
    """Log density of a vector over arcs: that of the slab for an arc, and a unit mass without.

    Parameters
    ----------
    dag : TensorVariable
        (..., d, d), rows are parents.
    slab : TensorVariable
        (..., d (d - 1)), log densities of the elements if they have an arc.
    value : TensorVariable
        (..., d (d - 1)).
    without : float
        What an element without an arc is.
    """
    spike = pt.switch(pt.eq(value, without), 0.0, -np.inf)
    return pt.switch(pt.eq(arc_vector(dag), 1), slab, spike).sum(axis=-1)


def draw_shape(size, like: "TensorVariable"):
    """Shape of draws of a vector: that of `like`, or of a batch of as long ones."""
    return like.shape if rv_size_is_none(size) else (*tuple(size), like.shape[-1])


def _normal(deviation, size, rng):
    """Draw around zero, in the shape of the deviations or a larger one."""
    shape = draw_shape(size, deviation)
    return pt.random.normal(0.0, deviation, size=shape, rng=rng, return_next_rng=True)


class NoiseVariancesRV(GraphRV):
    """Noise variances given the graph."""

    extended_signature = "[rng],[size],(d,d),(),()->[rng],(d)"
    _print_name = ("NoiseVariances", "\\operatorname{NoiseVariances}")

    @classmethod
    def build(cls, rng, size, dag, alpha_w, scale):
        """Draw from the inverse gamma distribution."""
        shape, rate = variance_parameters(dag, alpha_w, scale)
        full = draw_shape(size, shape)
        next_rng, precision = pt.random.gamma(
            shape, scale=1.0 / rate, size=full, rng=rng, return_next_rng=True
        )
        return next_rng, 1.0 / precision


def variance_parameters(
    dag: "TensorVariable", alpha_w: "TensorVariable", scale: "TensorVariable"
) -> "tuple[TensorVariable, TensorVariable]":
    """Shape and rate of the inverse gamma distribution of each variance."""
    parents = dag.astype("float64").sum(axis=-2)
    shape = 0.5 * (alpha_w[..., None] - dag.shape[-1] + parents + 1.0)
    return shape, 0.5 * scale[..., None]


class NoiseVariances(Continuous):
    r"""Noise variances of a Gaussian network given its graph.

    .. math::

        v_i \sim \mathrm{InvGamma}\Bigl(\frac{\alpha_w - d + |\mathrm{pa}_i| + 1}{2}, \frac t2\Bigr)

    Parameters
    ----------
    name : str
    dag : TensorVariable
        (d, d), a :class:`bayesstruct.DAG`; rows are parents.
    alpha_w : float
        Degrees of freedom, more than d + 1.
    scale : float
        t.
    """

    rv_type = NoiseVariancesRV
    rv_op = NoiseVariancesRV.rv_op

    @classmethod
    def dist(
        cls, dag: "TensorLike", alpha_w: "TensorLike", scale: "TensorLike", **kwargs
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        return super().dist(
            [pt.as_tensor_variable(dag), as_float(alpha_w), as_float(scale)], **kwargs
        )

    def support_point(rv, size, dag, alpha_w, scale):
        """Return ones."""
        return pt.ones(rv.shape)


@_logprob.register(NoiseVariancesRV)
def _variance_logp(op, values, rng, size, dag, alpha_w, scale, **kwargs):
    (value,) = values
    shape, rate = variance_parameters(dag, alpha_w, scale)
    safe = pt.switch(pt.gt(value, 0.0), value, 1.0)
    terms = shape * pt.log(rate) - pt.gammaln(shape) - (shape + 1.0) * pt.log(safe) - rate / safe
    return pt.switch(pt.gt(value, 0.0), terms, -np.inf).sum(axis=-1)


class ArcWeightsRV(GraphRV):
    """Regression coefficients over arcs, zero where the graph has none."""

    extended_signature = "[rng],[size],(d,d),(d),()->[rng],(a)"
    _print_name = ("ArcWeights", "\\operatorname{ArcWeights}")

    @classmethod
    def build(cls, rng, size, dag, variance, scale):
        """Draw from the normal distribution."""
        next_rng, draw = _normal(_weight_deviation(dag, variance, scale), size, rng)
        return next_rng, pt.switch(pt.eq(arc_vector(dag), 1), draw, 0.0)


def _weight_deviation(dag, variance, scale):
    _, target = arc_index(dag.type.shape[-1])
    return pt.sqrt(variance[..., pt.as_tensor_variable(target)] / scale[..., None])


class ArcWeights(Continuous):
    r"""Regression coefficients of a Gaussian network given its graph and noise variances.

    .. math:: b_{ij} \sim N(0, v_i / t) \text{ for an arc } j \to i, \qquad b_{ij} = 0 \text{ without}

    Parameters
    ----------
    name : str
    dag : TensorVariable
        (d, d), rows are parents; its shape must be known.
    variance : TensorVariable
        (d,).
    scale : float
        t.

    Notes
    -----
    The vector goes over all arcs, target by target, as in :func:`coefficient_matrix`. The density is
    relative to Lebesgue measure where there is an arc, and to a unit mass at zero where there is none.
    """

    rv_type = ArcWeightsRV
    rv_op = ArcWeightsRV.rv_op

    @classmethod
    def dist(
        cls, dag: "TensorLike", variance: "TensorLike", scale: "TensorLike", **kwargs
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        params = [pt.as_tensor_variable(dag), as_float(variance), as_float(scale)]
        return super().dist(params, **kwargs)

    def support_point(rv, size, dag, variance, scale):
        """Return zeros."""
        return pt.zeros(rv.shape)


@_logprob.register(ArcWeightsRV)
def _weight_logp(op, values, rng, size, dag, variance, scale, **kwargs):
    (value,) = values
    deviation = _weight_deviation(dag, variance, scale)
    slab = -0.5 * (value / deviation) ** 2 - pt.log(deviation) - 0.5 * _LOG_2PI
    return arc_density(dag, slab, value, 0.0)


class InterceptsRV(GraphRV):
    """Intercepts given the noise variances."""

    extended_signature = "[rng],[size],(d),()->[rng],(d)"
    _print_name = ("Intercepts", "\\operatorname{Intercepts}")

    @classmethod
    def build(cls, rng, size, variance, alpha_mu):
        """Draw from the normal distribution."""
        return _normal(pt.sqrt(variance / alpha_mu[..., None]), size, rng)


class Intercepts(Continuous):
    r"""Intercepts of a Gaussian network given its noise variances.

    .. math:: a_i \sim N(0, v_i / \alpha_\mu)

    Parameters
    ----------
    name : str
    variance : TensorVariable
        (d,).
    alpha_mu : float
        Rows that the prior is worth.
    """

    rv_type = InterceptsRV
    rv_op = InterceptsRV.rv_op

    @classmethod
    def dist(cls, variance: "TensorLike", alpha_mu: "TensorLike", **kwargs) -> "TensorVariable":
        """Create the distribution without a model."""
        return super().dist([as_float(variance), as_float(alpha_mu)], **kwargs)

    def support_point(rv, size, variance, alpha_mu):
        """Return zeros."""
        return pt.zeros(rv.shape)


@_logprob.register(InterceptsRV)
def _intercept_logp(op, values, rng, size, variance, alpha_mu, **kwargs):
    (value,) = values
    deviation = pt.sqrt(variance / alpha_mu[..., None])
    return (-0.5 * (value / deviation) ** 2 - pt.log(deviation) - 0.5 * _LOG_2PI).sum(axis=-1)


class _Rows:
    """Draws of rows, each variable after its parents."""

    dtype = "float64"
    ndims = (1, 2, 1, 1, 1, 1)

    def __init__(self, d):
        self.shape = (d,)

    def __eq__(self, other):
        return type(other) is type(self) and other.shape == self.shape

    def __hash__(self):
        return hash((type(self), self.shape))

    def __call__(self, rng, out, intercept, coefficients, variance, location, scale, setting):
        noise = rng.standard_normal(out.shape) * np.sqrt(variance)
        fill_rows(out, noise, intercept, coefficients, location, scale, setting)


def fill_rows(
    out: np.ndarray,
    noise: np.ndarray,
    intercept: np.ndarray,
    coefficients: np.ndarray,
    location: np.ndarray,
    scale: np.ndarray,
    setting: np.ndarray,
) -> None:
    """Write the rows that have this noise, in the units of the table.

    Parameters
    ----------
    out, noise : (n, d) ndarray
        Noise is on the scale on which the table was standardised.
    intercept : (d,) ndarray
    coefficients : (d, d) ndarray
        Rows are children.
    location, scale : (d,) ndarray
    setting : (d,) ndarray
        Values that columns were set to, NaN where they were not.
    """
    from bayesstruct.networks.kernels.dags import topological_order

    z = np.zeros_like(noise)
    for i in topological_order(coefficients.T != 0):
        z[:, i] = intercept[i] + z @ coefficients[i] + noise[:, i]
        if not np.isnan(setting[i]):
            z[:, i] = (setting[i] - location[i]) / scale[i]
    out[:] = location + scale * z
    out[:, ~np.isnan(setting)] = setting[~np.isnan(setting)]


class GaussianNetworkRV(SymbolicRandomVariable):
    """Rows of a Gaussian network."""

    extended_signature = "[rng],[size],(d),(d,d),(d),(d),(d),(d)->[rng],(d)"
    _print_name = ("GaussianNetwork", "\\operatorname{GaussianNetwork}")

    @staticmethod
    def draw(rng, size, params):
        """Return inputs and outputs of the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        rows = _Rows(params[1].type.shape[-1])
        return [rng, size, *params], [*seeded_draw(rows, rng, size, params)]

    @classmethod
    def rv_op(cls, *params, size=None, rng=None):
        """Build the graph of a draw."""
        inputs, outputs = cls.draw(rng, size, params)
        return cls(inputs=inputs, outputs=outputs)(*inputs)


def network_params(intercept, coefficients, *vectors):
    """Parameters as tensors; a number is repeated for all variables."""
    coefficients = as_float(coefficients)
    d = coefficients.type.shape[-1]
    if d is None:
        raise ValueError("the shape of `coefficients` must be known")
    vectors = (as_float(v) for v in (intercept, *vectors))
    intercept, *others = (pt.full((d,), v) if v.type.ndim == 0 else v for v in vectors)
    return [intercept, coefficients, *others]


class GaussianNetwork(Continuous):
    r"""Rows of a Gaussian Bayesian network, in the units of the table.

    A row is :math:`x = \ell + s \circ z`, each :math:`z_i` being normal given its parents,

    .. math:: z_i \sim N\Bigl(a_i + \sum_j b_{ij} z_j, \; v_i\Bigr).

    Variables that were *set* from outside keep their value, which carries no information about their distribution (perfect
    interventions, Cooper and Yoo 1999).

    Parameters
    ----------
    name : str
    intercept : tensor_like of float
        :math:`a`, (d,).
    coefficients : tensor_like of float
        :math:`b`, (d, d), rows as children, those of an acyclic graph.
    variance : tensor_like of float
        :math:`v > 0`, (d,).
    location, scale : tensor_like of float
        :math:`\ell` and :math:`s`, (d,).
    setting : (d,) or (n, d) array_like of float, optional
        Values that variables were set to, in the units of the table; NaN where they were not.

    References
    ----------
    Cooper, G. F. and Yoo, C. (1999). Causal discovery from a mixture of experimental and observational
    data. *UAI* 15, 116-125.
    """

    rv_type = GaussianNetworkRV
    rv_op = GaussianNetworkRV.rv_op

    @classmethod
    def dist(
        cls,
        intercept: "TensorLike",
        coefficients: "TensorLike",
        variance: "TensorLike",
        location: "TensorLike" = 0.0,
        scale: "TensorLike" = 1.0,
        setting: "ArrayLike" = np.nan,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        params = network_params(intercept, coefficients, variance, location, scale, setting)
        return super().dist(params, **kwargs)

    def support_point(rv, size, intercept, coefficients, variance, location, scale, setting):
        """Return the location."""
        return pt.broadcast_to(location, rv.shape)


@_logprob.register(GaussianNetworkRV)
def _rows_logp(op, values, rng, size, *params, **kwargs):
    (value,) = values
    return row_densities(normal_terms(value, *params).sum(axis=-1))


def normal_terms(
    value: "TensorVariable",
    intercept: "TensorVariable",
    coefficients: "TensorVariable",
    variance: "TensorVariable",
    location: "TensorVariable",
    scale: "TensorVariable",
    setting: "TensorVariable",
) -> "TensorVariable":
    """Log densities of the values of rows given their parents, zero where they were set; (..., n, d)."""
    z = (value - location) / scale
    while coefficients.type.ndim > 2 and coefficients.type.broadcastable[0]:
        coefficients = coefficients[0]
    if coefficients.type.ndim == 2:
        explained = z @ coefficients.T
    else:
        explained = (coefficients @ z[..., None])[..., 0]
    square = (z - intercept - explained) ** 2 / variance
    terms = -0.5 * (square + pt.log(variance) + _LOG_2PI) - pt.log(scale)
    return pt.switch(pt.isnan(setting), terms, 0.0)
