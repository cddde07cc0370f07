r"""Priors of coefficients with exact zeros.

Each coefficient is zero with probability :math:`1 - \pi` and drawn from a continuous distribution, the
slab, otherwise. This mixture has an atom, so its density is taken with respect to the sum of Lebesgue measure
and a unit mass at zero:

.. math::

    p(w) = (1 - \pi) \, 1\{w = 0\} + \pi \, f(w) \, 1\{w \ne 0\} .

Values of this density at zero and elsewhere cannot be compared, and it has no gradient in ``w``:
samplers that move by small steps never reach zero again once they have left it. ``logp`` therefore
refuses to be differentiated in ``w`` (in every other variable it can be), which keeps NUTS away; the
step that draws these coefficients is :class:`bayesstruct.steps.SpikeSlabRegression`.
"""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.pytensorf import normalize_rng_param
from pytensor.gradient import grad_undefined
from pytensor.graph.basic import Apply, Constant
from pytensor.tensor.random.basic import BetaRV
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.ops import SolverOp
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import is_number

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = [
    "AWAY",
    "SLABS",
    "CauchySpikeAndSlab",
    "LaplaceSpikeAndSlab",
    "NormalSpikeAndSlab",
    "SpikeAndSlab",
]

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)
_LOG_2 = np.log(2.0)
_LOG_PI = np.log(np.pi)
AWAY = 1e-3  # start of a coefficient that must not be zero, in units of the slab


class _NormalSlab:
    @staticmethod
    def draw(scale, size, rng):
        return pt.random.normal(0.0, scale, size=size, rng=rng, return_next_rng=True)

    @staticmethod
    def log_density(value, scale):
        return -0.5 * pt.square(value / scale) - pt.log(scale) - _HALF_LOG_2PI


class _LaplaceSlab:
    @staticmethod
    def draw(scale, size, rng):
        return pt.random.laplace(0.0, scale, size=size, rng=rng, return_next_rng=True)

    @staticmethod
    def log_density(value, scale):
        return -pt.abs(value) / scale - pt.log(scale) - _LOG_2


class _CauchySlab:
    @staticmethod
    def draw(scale, size, rng):
        return pt.random.cauchy(0.0, scale, size=size, rng=rng, return_next_rng=True)

    @staticmethod
    def log_density(value, scale):
        return -pt.log1p(pt.square(value / scale)) - pt.log(scale) - _LOG_PI


#: How to draw from each slab, and its log density.
SLABS = {"normal": _NormalSlab, "laplace": _LaplaceSlab, "cauchy": _CauchySlab}


class SpikeAndSlabRV(SymbolicRandomVariable):
    """A coefficient that is zero, or drawn from a slab."""

    extended_signature = "[rng],[size],(),()->[rng],()"
    slab = "normal"

    @classmethod
    def rv_op(cls, inclusion, slab_scale, *, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        shape = pt.broadcast_shape(inclusion, slab_scale) if rv_size_is_none(size) else tuple(size)
        middle, active = pt.random.bernoulli(inclusion, size=shape, rng=rng, return_next_rng=True)
        next_rng, slab = SLABS[cls.slab].draw(slab_scale, shape, middle)
        draw = pt.switch(active, slab, np.float64(0.0))
        params = (rng, size, inclusion, slab_scale)
        return cls(inputs=[*params], outputs=[next_rng, draw])(*params)


class NormalSpikeAndSlabRV(SpikeAndSlabRV):
    name = "normal_spike_and_slab"
    _print_name = ("NormalSpikeAndSlab", "\\operatorname{NormalSpikeAndSlab}")


class LaplaceSpikeAndSlabRV(SpikeAndSlabRV):
    name = "laplace_spike_and_slab"
    slab = "laplace"
    _print_name = ("LaplaceSpikeAndSlab", "\\operatorname{LaplaceSpikeAndSlab}")


class CauchySpikeAndSlabRV(SpikeAndSlabRV):
    name = "cauchy_spike_and_slab"
    slab = "cauchy"
    _print_name = ("CauchySpikeAndSlab", "\\operatorname{CauchySpikeAndSlab}")


class NoGradient(SolverOp):
    """The value itself, which cannot be differentiated.

    PyTensor's ``undefined_grad`` is rewritten away before PyMC takes gradients; this stays.
    """

    __props__ = ()
    view_map = {0: [0]}

    def make_node(self, value):
        """Apply the Op."""
        self.register()
        value = pt.as_tensor_variable(value)
        return Apply(self, [value], [value.type()])

    def perform(self, node, inputs, output_storage):
        """Return the input."""
        output_storage[0][0] = inputs[0]

    def infer_shape(self, node, input_shapes):
        """Shape of the input."""
        return input_shapes

    def pullback(self, inputs, outputs, cotangents):
        """Refuse."""
        reason = "spike-and-slab coefficients have an atom at zero and no gradient"
        return [grad_undefined(self, 0, inputs[0], reason)]

    def numba_function(self, node):
        """Return the identity."""

        def no_gradient(value):
            return value

        return no_gradient


no_gradient = NoGradient()


def log_probability(probability: "TensorVariable") -> "TensorVariable":
    """Logarithm that gives minus infinity at zero without a warning or a NaN gradient."""
    positive = pt.gt(probability, 0.0)
    return pt.switch(positive, pt.log(pt.switch(positive, probability, 1.0)), -np.inf)


class _Mixture(Continuous):
    """Base of the distributions, one for each slab."""

    @classmethod
    def dist(cls, inclusion=0.5, slab_scale=1.0, **kwargs):
        """Create the distribution without a model."""
        inclusion, slab_scale = (
            as_float(inclusion, "`inclusion`"),
            as_float(slab_scale, "`slab_scale`"),
        )
        if (
            isinstance(inclusion, Constant)
            and not ((inclusion.data >= 0.0) & (inclusion.data <= 1.0)).all()
        ):
            raise ValueError(f"`inclusion` must be between 0 and 1, it is {inclusion.data}")
        if (
            isinstance(slab_scale, Constant)
            and not ((slab_scale.data > 0.0) & np.isfinite(slab_scale.data)).all()
        ):
            raise ValueError(f"`slab_scale` must be positive and finite, it is {slab_scale.data}")
        _check_shapes(inclusion, slab_scale, kwargs.get("shape"))
        return super().dist([inclusion, slab_scale], **kwargs)


def _check_shapes(inclusion, slab_scale, shape):
    """Refuse parameters that cannot be broadcast together or to a shape, as far as these are known."""
    shapes = {"inclusion": inclusion.type.shape, "slab_scale": slab_scale.type.shape}
    known = {name: dims for name, dims in shapes.items() if None not in dims}
    _broadcast_or_refuse(known)
    wanted = _known_shape(shape)
    for name, dims in known.items():
        if wanted is not None and _broadcast_or_refuse({name: dims, "shape": wanted}) != wanted:
            raise _misfit({name: dims, "shape": wanted})


def _known_shape(shape):
    """Return a shape as a tuple of numbers, None where it is not given or not known yet."""
    if shape is None or hasattr(shape, "owner"):
        return None
    lengths = shape if isinstance(shape, list | tuple) else np.atleast_1d(shape)
    lengths = [_present_length(length) for length in lengths]
    if not all(is_number(length) for length in lengths):
        return None
    return tuple(int(length) for length in lengths)


def _present_length(length):
    """Value of a constant, and of the length of a dimension."""
    if isinstance(length, Constant):
        return length.data
    return length.get_value() if hasattr(length, "get_value") else length


def _broadcast_or_refuse(shapes):
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise _misfit(shapes) from None


def _misfit(shapes):
    text = " and ".join(f"`{name}` {dims}" for name, dims in shapes.items())
    return ValueError(
        f"the shapes {text} do not match; give one number, or one for each coefficient"
    )


def _logp(value, inclusion, slab_scale, log_slab):
    """Log density with respect to Lebesgue measure plus a unit mass at zero."""
    # Without an atom zero is a value like any other: for example the mode of a Laplace distribution.
    zero = pt.and_(pt.eq(value, 0.0), pt.lt(inclusion, 1.0))
    logp = pt.switch(zero, log_probability(1.0 - inclusion), log_probability(inclusion) + log_slab)
    return check_parameters(
        logp,
        inclusion >= 0,
        inclusion <= 1,
        slab_scale > 0,
        msg="0 <= inclusion <= 1, slab_scale > 0",
    )


def _start(rv, size, inclusion, slab_scale):
    """Zero, where zero is possible."""
    point = pt.switch(pt.ge(inclusion, 1.0), AWAY * slab_scale, np.float64(0.0))
    return point if rv_size_is_none(size) else pt.full(size, point)


def _mixture_logp(slab):
    def logp(value, inclusion, slab_scale):
        """Log density with respect to Lebesgue measure plus a unit mass at zero."""
        value = no_gradient(value)
        return _logp(value, inclusion, slab_scale, SLABS[slab].log_density(value, slab_scale))

    return logp


class NormalSpikeAndSlab(_Mixture):
    r"""Spike and slab with a normal slab; see :class:`SpikeAndSlab`."""

    rv_type = NormalSpikeAndSlabRV
    rv_op = NormalSpikeAndSlabRV.rv_op
    support_point = _start
    logp = _mixture_logp("normal")


class LaplaceSpikeAndSlab(_Mixture):
    r"""Spike and slab with a Laplace slab; see :class:`SpikeAndSlab`."""

    rv_type = LaplaceSpikeAndSlabRV
    rv_op = LaplaceSpikeAndSlabRV.rv_op
    support_point = _start
    logp = _mixture_logp("laplace")


class CauchySpikeAndSlab(_Mixture):
    r"""Spike and slab with a Cauchy slab; see :class:`SpikeAndSlab`."""

    rv_type = CauchySpikeAndSlabRV
    rv_op = CauchySpikeAndSlabRV.rv_op
    support_point = _start
    logp = _mixture_logp("cauchy")


_SLABS = {
    "normal": NormalSpikeAndSlab,
    "laplace": LaplaceSpikeAndSlab,
    "cauchy": CauchySpikeAndSlab,
}


class SpikeAndSlab:
    r"""Coefficients that are exactly zero, or drawn from a slab.

    .. math::

        \gamma_j \sim \mathrm{Bernoulli}(\pi_j), \qquad
        w_j = 0 \text{ if } \gamma_j = 0, \qquad
        w_j \sim \mathrm{Normal, Laplace\ or\ Cauchy}(0, s_j) \text{ if } \gamma_j = 1

    ``logp`` is the density with respect to Lebesgue measure plus a unit mass at zero:
    :math:`\log(1 - \pi_j)` at zero, and :math:`\log \pi_j` plus the log density of the slab
    elsewhere (and at zero too where :math:`\pi_j = 1`: then there is no atom). It is not
    differentiable in the coefficients, see :mod:`bayesstruct.sparse.priors.spike_and_slab`.

    ========  ==========================================
    Support   real, with an atom at zero
    ========  ==========================================

    ``pm.sample`` draws them by :class:`bayesstruct.steps.SpikeSlabRegression` when they are the
    coefficients of a regression, ``X @ w`` plus anything else in the mean of a ``pm.Normal`` or ``pm.StudentT``, the
    logit of a ``pm.Bernoulli``, the exponent of the mean of a ``pm.Poisson`` or ``pm.NegativeBinomial``
    (``mu=exposure * pm.math.exp(X @ w)``) or `eta` of a ``pm.OrderedLogistic`` or ``pm.OrderedProbit`` (normal and Laplace
    slabs), by
    :class:`bayesstruct.steps.PairwiseSpikeSlab` when they are the weights of a
    :class:`bayesstruct.PairwiseMRF`, and raises an error with the reason when they are neither. A sampler that is
    named by hand (``pm.Metropolis``, ``pm.Slice``, ``pm.sample_smc``) is not refused, and its draws
    are wrong.

    Parameters
    ----------
    name : str
    inclusion : tensor_like of float or ``pm.Beta.dist``, default 0.5
        Probability :math:`\pi` that a coefficient is not zero, a scalar or one for each; 0 forbids
        and 1 requires it. With a variable of the model, ``pm.Beta("pi", 1, 1)``, the prior is
        Beta-Bernoulli; an unregistered ``pm.Beta.dist(1, 1)`` becomes the variable
        ``{name}_inclusion``.
    slab_scale : tensor_like of float, default 1
        Standard deviation of the normal, scale of the Laplace or Cauchy slab; may be random. The
        penalty of a nonzero coefficient is :math:`w^2 / (2 s^2)`, :math:`|w| / s` or
        :math:`\log(1 + w^2 / s^2)`.
    slab : {"normal", "laplace", "cauchy"}
    **kwargs
        ``shape``, ``dims`` and other arguments of PyMC distributions.

    Raises
    ------
    ValueError
        If a constant is out of range, the slab unknown, or known shapes do not fit.

    References
    ----------
    Mitchell, T. J. and Beauchamp, J. J. (1988). Bayesian variable selection in linear regression.
    *JASA* 83, 1023-1032 (a uniform slab). -- George, E. I. and McCulloch, R. E. (1997). Approaches
    for Bayesian variable selection. *Statistica Sinica* 7, 339-373, section 2.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            w = bs.SpikeAndSlab("w", pm.Beta.dist(1, 10), 0.5, shape=X.shape[1])
            bs.distributions.included("in_model", w)
            pm.Normal("y", pm.Normal("a") + X @ w, pm.HalfNormal("noise"), observed=y)
    """

    def __new__(cls, name, inclusion=0.5, slab_scale=1.0, *, slab="normal", **kwargs):
        """Add the coefficients, and their inclusion probability if it is new, to the model."""
        distribution = cls._distribution(slab)
        owner = getattr(inclusion, "owner", None)
        if owner is not None and isinstance(owner.op, BetaRV):
            model = pm.modelcontext(None)
            if inclusion not in model.basic_RVs:
                inclusion = pm.Beta(f"{name}_inclusion", *owner.op.dist_params(owner))
        return distribution(name, inclusion, slab_scale, **kwargs)

    @classmethod
    def dist(cls, inclusion=0.5, slab_scale=1.0, *, slab="normal", **kwargs):
        """Create the distribution without a model."""
        return cls._distribution(slab).dist(inclusion, slab_scale, **kwargs)

    @staticmethod
    def _distribution(slab):
        if slab not in _SLABS:
            raise ValueError(f"`slab` must be one of {sorted(_SLABS)}, it is {slab!r}")
        return _SLABS[slab]
