"""Graphical horseshoe prior of a precision matrix, and its global scale."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.continuous import HalfCauchyRV, PositiveContinuous
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import _default_transform
from pytensor.tensor.blockwise import Blockwise

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.tensors import (
    as_float,
    as_square,
    constant_value,
    draw_batch,
    random_ancestors,
)
from bayesstruct.precision.ops.horseshoe import LogScaledExpIntegral
from bayesstruct.precision.ops.packed_cholesky import PackedCholesky
from bayesstruct.precision.priors.checks import refuse_random, refuse_wrong
from bayesstruct.precision.priors.precision import (
    PrecisionRV,
    exponential_diagonal,
    inside_cone,
    start_point,
    upper_sum,
)

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["GlobalScale", "GraphicalHorseshoe", "half_cauchy_width"]

_LOG_CONSTANT = -0.5 * np.log(2.0 * np.pi**3)
_LEAST = 1e-300  # of half the square of an element over its scale; the density is infinite at zero


class GraphicalHorseshoeRV(PrecisionRV):
    name = "graphical_horseshoe"
    signature = "(p,p),()->(p,p)"
    _print_name = ("GraphicalHorseshoe", "\\operatorname{GraphicalHorseshoe}")

    @classmethod
    def rng_fn(cls, rng, scales, diagonal_rate, size):
        """Draw by rejection or by Gibbs sweeps without data."""
        from bayesstruct.precision.kernels.horseshoe.prior import draw_horseshoe

        return draw_batch(
            draw_horseshoe, rng, (2, 0), (scales, diagonal_rate), size, scales.shape[-2:]
        )

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.horseshoe.prior import draw_horseshoe

        def draw(rng, scales, diagonal_rate):
            return draw_horseshoe(rng, scales.copy(), diagonal_rate.item())

        return draw


class GlobalScaleRV(KernelRV):
    name = "global_scale"
    signature = "(),(),()->()"
    _print_name = ("GlobalScale", "\\operatorname{GlobalScale}")

    @classmethod
    def rng_fn(cls, rng, width, columns, diagonal_rate, size):
        """Draw by rejection or by Gibbs sweeps over the joint prior."""
        from bayesstruct.precision.kernels.horseshoe.prior import draw_implied_scale

        def core(rng, width, columns, diagonal_rate):
            return draw_implied_scale(rng, int(columns), width, diagonal_rate)

        return draw_batch(core, rng, (0, 0, 0), (width, columns, diagonal_rate), size, ())

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.horseshoe.prior import draw_implied_scale

        def draw(rng, width, columns, diagonal_rate):
            return draw_implied_scale(rng, int(columns.item()), width.item(), diagonal_rate.item())

        return draw


class GlobalScale(PositiveContinuous):
    r"""Global scale of a graphical horseshoe.

    .. math:: p(\tau) \propto \frac{1}{1 + \tau^2 / s^2} \, C(\tau)

    where :math:`C(\tau)` is the probability that independent elements form a positive definite matrix. The factor cancels the
    constant :math:`1 / C(\tau)` of :class:`GraphicalHorseshoe` given :math:`\tau`, so that the joint density is that of
    Li, Craig and Bhadra (2019), and neither ``logp`` contains it; use the two together only, with one diagonal rate.

    Parameters
    ----------
    p : int
        Number of variables.
    width : float, default 1
        Scale :math:`s` of the nominal half-Cauchy distribution.
    diagonal_rate : float, default 0.5
        That of the precision matrix.
    """

    rv_op = GlobalScaleRV()

    @classmethod
    def dist(cls, p, width=1.0, *, diagonal_rate=0.5, **kwargs):
        """Create the distribution without a model."""
        constants = {"width": as_float(width), "diagonal_rate": as_float(diagonal_rate)}
        refuse_random(**constants)
        refuse_wrong(**constants)
        return super().dist([constants["width"], as_float(p), constants["diagonal_rate"]], **kwargs)

    def support_point(rv, size, width, columns, diagonal_rate):
        """Return a scale at which most matrices are positive definite."""
        point = pt.minimum(width, 1.0 / columns)
        return point if rv_size_is_none(size) else pt.full(size, point)

    def logp(value, width, columns, diagonal_rate):
        """Log density of the half-Cauchy distribution; the constant of the cone is that of the precision matrix."""
        logp = np.log(2.0 / np.pi) - pt.log(width) - pt.log1p(pt.square(value / width))
        return check_parameters(pt.switch(value > 0.0, logp, -np.inf), width > 0, msg="width > 0")


class GraphicalHorseshoe(Continuous):
    r"""Graphical horseshoe prior of a precision matrix (Li, Craig, Bhadra 2019), its local scales integrated out.

    .. math::

        p(K, \tau) \propto \prod_{i<j} \int N(k_{ij}; 0, \lambda^2 \tau^2) \, C^+(\lambda) \, d\lambda
            \; \prod_i d \, e^{-d k_{ii}} \; C^+(\tau) \; 1\{K \succ 0\}

    with half-Cauchy distributions :math:`C^+`. The integral is
    :math:`(2 \pi^3)^{-1/2} \tau^{-1} e^z E_1(z)` with :math:`z = k_{ij}^2 / (2 \tau^2)` and the exponential integral
    :math:`E_1`. Small elements are shrunk to nearly nothing and large ones hardly. Elements, local scales and global scale
    are conditioned on a positive definite matrix *together*, as in the article: the marginal prior of :math:`\tau` is then the
    half-Cauchy density times the probability that independent elements form a positive definite matrix, which favours small
    scales (see :class:`bayesstruct.distributions.GlobalScale`), and no constant depends on :math:`\tau`. The article
    gives the diagonal a constant density, here it is exponential, as under the other priors of a precision matrix.

    The density is infinite where an element is zero, so that it has no mode, and NUTS gets stuck there: the matrix is
    drawn by its own step, which needs that only tables of normal rows with this precision matrix, and `bs.edges`, depend on it.

    ========  ==========================================
    Support   symmetric positive definite (p, p)
    ========  ==========================================

    Parameters
    ----------
    p : int
        Number of variables.
    global_scale : float, (p, p) array_like or ``pm.HalfCauchy.dist``, optional
        Scale :math:`\tau` of all elements; ``pm.HalfCauchy.dist(1)`` unless given. A half-Cauchy distribution becomes the
        variable ``global_scale`` of the model. A number is a constant, and a symmetric matrix has one for each pair.
    diagonal_rate : float, default 0.5
        Rate :math:`d` of the exponential distribution of the diagonal.
    start : callable, optional
        Returns the (p, p) tensor that chains start from; its random parts are drawn anew for each
        chain (:class:`bayesstruct.ops.BootstrapStart`). The identity unless given.

    References
    ----------
    Li, Y., Craig, B. A., Bhadra, A. (2019). The graphical horseshoe estimator for inverse covariance matrices. *Journal of
    Computational and Graphical Statistics* 28(3), 747-757, equation 3.

    Carvalho, C. M., Polson, N. G., Scott, J. G. (2010). The horseshoe estimator for sparse signals. *Biometrika* 97(2),
    465-480, theorem 1 and its proof.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            precision = bs.GraphicalHorseshoe("precision", 5)
            bs.edges(precision)
            pm.MvNormal("x", np.zeros(5), tau=precision, observed=rows)
    """

    rv_type = GraphicalHorseshoeRV
    rv_op = GraphicalHorseshoeRV.build

    def __new__(cls, name, p, global_scale=None, **kwargs):
        """Register the prior, and its global scale if that has a distribution."""
        if global_scale is None or hasattr(global_scale, "owner"):
            width = half_cauchy_width(global_scale)
            if width is not None:
                global_scale = _global_scale(name, p, width, kwargs)
        return super().__new__(cls, name, p, global_scale, **kwargs)

    @classmethod
    def dist(cls, p, global_scale=1.0, *, diagonal_rate=0.5, **kwargs):
        """Create the distribution without a model."""
        diagonal_rate, scales = as_float(diagonal_rate), as_square(global_scale, p)
        refuse_random(diagonal_rate=diagonal_rate)
        sources = random_ancestors(scales)
        if any(not isinstance(v.owner.op, GlobalScaleRV) for v in sources):
            raise ValueError(_SCALE)
        refuse_wrong(diagonal_rate=diagonal_rate, global_scale=scales)
        known = constant_value(scales)
        if known is not None and not np.array_equal(known, known.T):
            raise ValueError("`global_scale` is not symmetric; a pair has one scale")
        return super().dist([scales, diagonal_rate], **kwargs)

    def support_point(rv, size, scales, diagonal_rate):
        """Return the start if it was given, else the identity."""
        return start_point(rv, size, scales, as_float(1.0))

    def logp(value, scales, diagonal_rate):
        """Log density up to the constant of the cone."""
        z = pt.maximum(0.5 * pt.square(value / scales), _LEAST)
        integral = LogScaledExpIntegral()
        mixed = integral(z) if z.type.ndim == 2 else Blockwise(integral)(z)
        off = upper_sum(_LOG_CONSTANT - pt.log(scales) + mixed)
        return check_parameters(
            inside_cone(off + exponential_diagonal(value, diagonal_rate), value),
            pt.all(scales > 0, axis=(-2, -1)),
            diagonal_rate > 0,
            msg="global_scale > 0, diagonal_rate > 0",
        )


_SCALE = (
    "`global_scale` can be a number, a matrix of numbers or an unregistered half-Cauchy distribution such as "
    "pm.HalfCauchy.dist(1): its distribution has to know about the precision matrix"
)


def half_cauchy_width(value: Any) -> float | None:
    """Scale of an unregistered half-Cauchy distribution, 1 for None; None for a constant.

    Raises
    ------
    ValueError
        For another distribution, or one that is a variable of a model or has random parameters.
    """
    if value is None:
        return 1.0
    if not hasattr(value, "owner") or not random_ancestors(value):
        return None
    if not isinstance(getattr(value.owner, "op", None), HalfCauchyRV) or value.name is not None:
        raise ValueError(_SCALE)
    [width] = (constant_value(v) for v in value.owner.op.dist_params(value.owner))
    if width is None or width.ndim != 0:
        raise ValueError(_SCALE)
    return float(width)


def _global_scale(name: str, p: int, width: float, kwargs: dict) -> "TensorVariable":
    """Put the global scale into the model."""
    taken = "global_scale" in pm.modelcontext(None).named_vars
    rates = {k: kwargs[k] for k in ("diagonal_rate",) if k in kwargs}
    return GlobalScale(f"{name}_global_scale" if taken else "global_scale", p, width, **rates)


@_default_transform.register(GraphicalHorseshoeRV)
def _(op, rv):
    return PackedCholesky(n=rv.type.shape[-1] or rv.shape[-1])
