r"""Parameters of linear structural equations given their graph.

Column i is, on the scale of the model,

.. math:: z_i = c_i + \sum_{j \in \mathrm{pa}_i} b_{ji} z_j + s_i e_i .

With variances of their own the scales have the prior of the BGe score (Geiger and Heckerman 2002),

.. math:: s_i^2 \sim \mathrm{InvGamma}\Bigl(\frac{\alpha_w - d + |\mathrm{pa}_i| + 1}{2}, \frac t2\Bigr),

and with a common scale :math:`s^2 \sim \mathrm{InvGamma}(a, b)`. Weights that the graph does not have are exactly zero.
"""

from typing import TYPE_CHECKING, Literal

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.tensors import as_float
from bayesstruct.networks.priors.gaussian_network import (
    arc_density,
    arc_vector,
    draw_shape,
    variance_parameters,
)

if TYPE_CHECKING:
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = [
    "ArcSlabs",
    "ArcSlabsRV",
    "CommonNoiseScale",
    "CommonNoiseScaleRV",
    "LocalScales",
    "LocalScalesRV",
    "NoiseDegrees",
    "NoiseDegreesRV",
    "NoiseScales",
    "NoiseScalesRV",
]

_LOG_2PI = np.log(2.0 * np.pi)


def _scale_logp(value, shape, rate):
    """Log density of s where s^2 has an inverse gamma distribution."""
    safe = pt.switch(pt.gt(value, 0.0), value, 1.0)
    terms = shape * pt.log(rate) - pt.gammaln(shape) - (2.0 * shape + 1.0) * pt.log(safe)
    terms = terms + np.log(2.0) - rate / safe**2
    return pt.switch(pt.gt(value, 0.0), terms, -np.inf)


class NoiseScalesRV(GraphRV):
    """Noise scales of all columns given the graph."""

    extended_signature = "[rng],[size],(d,d),(),()->[rng],(d)"
    _print_name = ("NoiseScales", "\\operatorname{NoiseScales}")

    @classmethod
    def build(cls, rng, size, dag, alpha_w, t):
        """Draw precisions from gamma distributions."""
        shape, rate = variance_parameters(dag, alpha_w, t)
        full = draw_shape(size, shape)
        rng, precision = pt.random.gamma(
            shape, scale=1.0 / rate, size=full, rng=rng, return_next_rng=True
        )
        return rng, precision**-0.5


class NoiseScales(Continuous):
    r"""Noise scales of linear structural equations given the graph, one for each column.

    .. math::

        s_i^2 \sim \mathrm{InvGamma}\Bigl(\frac{\alpha_w - d + |\mathrm{pa}_i| + 1}{2}, \frac t2\Bigr)

    Parameters
    ----------
    name : str
    dag : TensorVariable
        (d, d), a :class:`bayesstruct.DAG`; rows are parents.
    alpha_w : float
        Degrees of freedom, more than d + 1.
    t : float
        Twice the rate.
    """

    rv_type = NoiseScalesRV
    rv_op = NoiseScalesRV.rv_op

    @classmethod
    def dist(
        cls, dag: "TensorLike", alpha_w: "TensorLike", t: "TensorLike", **kwargs
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        return super().dist([pt.as_tensor_variable(dag), as_float(alpha_w), as_float(t)], **kwargs)

    def support_point(rv, size, dag, alpha_w, t):
        """Return ones."""
        return pt.ones(rv.shape)


@_logprob.register(NoiseScalesRV)
def _scales_logp(op, values, rng, size, dag, alpha_w, t, **kwargs):
    (value,) = values
    return _scale_logp(value, *variance_parameters(dag, alpha_w, t)).sum(axis=-1)


class CommonNoiseScaleRV(GraphRV):
    """The square root of a number with an inverse gamma distribution."""

    extended_signature = "[rng],[size],(),()->[rng],()"
    _print_name = ("CommonNoiseScale", "\\operatorname{CommonNoiseScale}")

    @classmethod
    def build(cls, rng, size, shape, rate):
        """Draw a precision from the gamma distribution."""
        full = None if rv_size_is_none(size) else size
        rng, precision = pt.random.gamma(
            shape, scale=1.0 / rate, size=full, rng=rng, return_next_rng=True
        )
        return rng, precision**-0.5


class CommonNoiseScale(Continuous):
    r"""A noise scale that all columns have in common, :math:`s^2 \sim \mathrm{InvGamma}(a, b)`.

    Parameters
    ----------
    name : str
    alpha, beta : float
        a and b.
    """

    rv_type = CommonNoiseScaleRV
    rv_op = CommonNoiseScaleRV.rv_op

    @classmethod
    def dist(cls, alpha: "TensorLike", beta: "TensorLike", **kwargs) -> "TensorVariable":
        """Create the distribution without a model."""
        return super().dist([as_float(alpha), as_float(beta)], **kwargs)

    def support_point(rv, size, shape, rate):
        """Return one."""
        return pt.ones(rv.shape)


@_logprob.register(CommonNoiseScaleRV)
def _common_logp(op, values, rng, size, shape, rate, **kwargs):
    (value,) = values
    return _scale_logp(value, shape, rate)


class LocalScalesRV(GraphRV):
    """Half-Cauchy scales over arcs, one where the graph has none."""

    extended_signature = "[rng],[size],(d,d)->[rng],(a)"
    _print_name = ("LocalScales", "\\operatorname{LocalScales}")

    @classmethod
    def build(cls, rng, size, dag):
        """Draw from the half-Cauchy distribution."""
        arc = arc_vector(dag)
        full = draw_shape(size, arc)
        rng, draw = pt.random.halfcauchy(0.0, 1.0, size=full, rng=rng, return_next_rng=True)
        return rng, pt.switch(pt.eq(arc, 1), draw, 1.0)


class LocalScales(Continuous):
    r"""Local scales of the horseshoe prior, :math:`\lambda_{ji} \sim C^+(0, 1)` for an arc, else 1.

    Parameters
    ----------
    name : str
    dag : TensorVariable
        (d, d), rows are parents; its shape must be known.

    Notes
    -----
    The density is relative to Lebesgue measure where there is an arc, and to a unit mass at one where there is none.
    """

    rv_type = LocalScalesRV
    rv_op = LocalScalesRV.rv_op

    @classmethod
    def dist(cls, dag: "TensorLike", **kwargs) -> "TensorVariable":
        """Create the distribution without a model."""
        return super().dist([pt.as_tensor_variable(dag)], **kwargs)

    def support_point(rv, size, dag):
        """Return ones."""
        return pt.ones(rv.shape)


@_logprob.register(LocalScalesRV)
def _local_logp(op, values, rng, size, dag, **kwargs):
    (value,) = values
    slab = pt.switch(pt.gt(value, 0.0), np.log(2.0 / np.pi) - pt.log1p(value**2), -np.inf)
    return arc_density(dag, slab, value, 1.0)


class ArcSlabsRV(GraphRV):
    """Weights over arcs, zero where the graph has none."""

    extended_signature = "[rng],[size],(d,d),(a)->[rng],(a)"
    _print_name = ("ArcSlabs", "\\operatorname{ArcSlabs}")
    options = ("slab",)

    @classmethod
    def build(cls, rng, size, dag, scale, *, slab):
        """Draw from the slab."""
        draws = {"normal": pt.random.normal, "laplace": pt.random.laplace}
        full = draw_shape(size, scale + arc_vector(dag))
        rng, draw = draws[slab](0.0, scale, size=full, rng=rng, return_next_rng=True)
        return rng, pt.switch(pt.eq(arc_vector(dag), 1), draw, 0.0)


class ArcSlabs(Continuous):
    r"""Weights of linear structural equations: a slab around zero for an arc, exactly zero without.

    Parameters
    ----------
    name : str
    dag : TensorVariable
        (d, d), rows are parents; its shape must be known.
    scale : TensorVariable
        (d (d - 1),), of the slabs, over all arcs, target by target.
    slab : {"normal", "laplace"}
        Normal with standard deviation `scale`, or Laplace with density
        :math:`\exp(-|b| / \mathrm{scale}) / (2\,\mathrm{scale})`.

    Notes
    -----
    The density is relative to Lebesgue measure where there is an arc, and to a unit mass at zero where there is none.
    """

    rv_type = ArcSlabsRV
    rv_op = ArcSlabsRV.rv_op

    @classmethod
    def dist(
        cls,
        dag: "TensorLike",
        scale: "TensorLike",
        *,
        slab: Literal["normal", "laplace"] = "normal",
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        return super().dist([pt.as_tensor_variable(dag), as_float(scale)], slab=slab, **kwargs)

    def support_point(rv, size, dag, scale):
        """Return zeros."""
        return pt.zeros(rv.shape)


@_logprob.register(ArcSlabsRV)
def _slab_logp(op, values, rng, size, dag, scale, **kwargs):
    (value,) = values
    ratio = value / scale
    if op.slab == "normal":
        inside = -0.5 * ratio**2 - pt.log(scale) - 0.5 * _LOG_2PI
    else:
        inside = -pt.abs(ratio) - pt.log(2.0 * scale)
    return arc_density(dag, inside, value, 0.0)


class NoiseDegreesRV(GraphRV):
    """Degrees of freedom above two."""

    extended_signature = "[rng],[size],(),()->[rng],()"
    _print_name = ("NoiseDegrees", "\\operatorname{NoiseDegrees}")

    @classmethod
    def build(cls, rng, size, shape, rate):
        """Draw from the gamma distribution."""
        full = None if rv_size_is_none(size) else size
        rng, draw = pt.random.gamma(
            shape, scale=1.0 / rate, size=full, rng=rng, return_next_rng=True
        )
        return rng, 2.0 + draw


class NoiseDegrees(Continuous):
    r"""Degrees of freedom of noise with a finite variance, :math:`\nu = 2 + \mathrm{Gamma}(a, b)`.

    Parameters
    ----------
    name : str
    alpha, beta : float
        a and b.
    """

    rv_type = NoiseDegreesRV
    rv_op = NoiseDegreesRV.rv_op

    @classmethod
    def dist(
        cls, alpha: "TensorLike" = 2.0, beta: "TensorLike" = 0.1, **kwargs
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        return super().dist([as_float(alpha), as_float(beta)], **kwargs)

    def support_point(rv, size, shape, rate):
        """Return the mean."""
        return pt.broadcast_to(2.0 + shape / rate, rv.shape)


@_logprob.register(NoiseDegreesRV)
def _degrees_logp(op, values, rng, size, shape, rate, **kwargs):
    (value,) = values
    above = pt.switch(pt.gt(value, 2.0), value - 2.0, 1.0)
    terms = shape * pt.log(rate) - pt.gammaln(shape) + (shape - 1.0) * pt.log(above) - rate * above
    return pt.switch(pt.gt(value, 2.0), terms, -np.inf)
