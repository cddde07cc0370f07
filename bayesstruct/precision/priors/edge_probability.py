"""Prior of the common edge probability of a spike-and-slab prior."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.continuous import UnitContinuous
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.shape_utils import rv_size_is_none

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.tensors import as_float, as_square, draw_batch
from bayesstruct.precision.priors.checks import refuse_random, refuse_wrong

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["EdgeProbability", "beta_edge_probability", "log_beta"]


class EdgeProbabilityRV(KernelRV):
    name = "edge_probability"
    signature = "(),(),(p,p),(),(),()->()"
    _print_name = ("EdgeProbability", "\\operatorname{EdgeProbability}")

    @classmethod
    def rng_fn(cls, rng, alpha, beta, pattern, spike, slab, diagonal_rate, size):
        """Draw by rejection or by Gibbs sweeps over the joint prior."""
        from bayesstruct.precision.kernels.prior import draw_edge_probability

        def core(rng, alpha, beta, pattern, spike, slab, diagonal_rate):
            return draw_edge_probability(rng, pattern, alpha, beta, spike, slab, diagonal_rate)

        params = (alpha, beta, pattern, spike, slab, diagonal_rate)
        return draw_batch(core, rng, (0, 0, 2, 0, 0, 0), params, size, ())

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.prior import draw_edge_probability

        def draw(rng, alpha, beta, pattern, spike, slab, diagonal_rate):
            return draw_edge_probability(
                rng,
                pattern.copy(),
                alpha.item(),
                beta.item(),
                spike.item(),
                slab.item(),
                diagonal_rate.item(),
            )

        return draw


edge_probability = EdgeProbabilityRV()


class EdgeProbability(UnitContinuous):
    r"""Common edge probability of a spike-and-slab prior: the Beta-Bernoulli edge prior.

    .. math::

        p(\pi) \propto \mathrm{Beta}(\pi; \alpha, \beta) \, C(\pi)

    where :math:`C(\pi)` is the probability that independent spike-and-slab elements form a positive
    definite matrix. The factor cancels the constant :math:`1/C(\pi)` of
    :class:`GraphicalSpikeSlab` given :math:`\pi`, so that the joint density is that of Wang (2015)
    and neither ``logp`` contains it; use the two together only, with equal scales.

    Parameters
    ----------
    p : int
        Number of variables.
    alpha, beta : float
        Shapes of the nominal beta distribution.
    spike_scale, slab_scale, diagonal_rate : float
        Those of the precision matrix.
    fixed : array_like, optional
        (p, p) matrix whose zeros forbid and whose ones require edges.

    References
    ----------
    Wang, H. (2015). Scaling it up: stochastic search structure learning in graphical models.
    *Bayesian Analysis* 10(2), 351-377, section 2.3.
    """

    rv_op = edge_probability

    @classmethod
    def dist(
        cls,
        p,
        alpha=1.0,
        beta=1.0,
        *,
        spike_scale=0.02,
        slab_scale=1.0,
        diagonal_rate=0.5,
        fixed=None,
        **kwargs,
    ):
        """Create the distribution without a model."""
        constants = {
            "alpha": as_float(alpha),
            "beta": as_float(beta),
            "fixed": as_square(0.5 if fixed is None else fixed, p),
            "spike_scale": as_float(spike_scale),
            "slab_scale": as_float(slab_scale),
            "diagonal_rate": as_float(diagonal_rate),
        }
        refuse_random(**constants)
        refuse_wrong(**{name: v for name, v in constants.items() if name != "fixed"})
        return super().dist(list(constants.values()), **kwargs)

    def support_point(rv, size, alpha, beta, *_):
        """Return the nominal mean."""
        mean = alpha / (alpha + beta)
        return mean if rv_size_is_none(size) else pt.full(size, mean)

    def logp(value, alpha, beta, *_):
        """Log density of the beta distribution; the constant of the cone is that of the precision matrix."""
        return check_parameters(
            log_beta(value, alpha, beta), alpha > 0, beta > 0, msg="alpha > 0, beta > 0"
        )


def log_beta(value, alpha, beta) -> "TensorVariable":
    """Log density of a beta distribution, minus infinity outside."""
    inside = pt.and_(value > 0.0, value < 1.0)
    safe = pt.switch(inside, value, 0.5)
    logp = (
        (alpha - 1.0) * pt.log(safe)
        + (beta - 1.0) * pt.log1p(-safe)
        - pt.gammaln(alpha)
        - pt.gammaln(beta)
        + pt.gammaln(alpha + beta)
    )
    return pt.switch(inside, logp, -np.inf)


def beta_edge_probability(name: str, p: int, beta, fixed, kwargs: dict) -> "TensorVariable":
    """Put the edge probability into the model; return the (p, p) matrix that it fills."""
    import pymc as pm

    model = pm.modelcontext(None)
    if beta in model.basic_RVs:
        raise ValueError(
            f"`edge_probability` of {name!r} is the model variable {beta.name!r}; give the "
            "unregistered distribution instead, `pm.Beta.dist(...)`: it needs a density that knows "
            "about the precision matrix."
        )
    taken = "edge_probability" in model.named_vars
    pattern = as_square(0.5 if fixed is None else fixed, p)
    share = EdgeProbability(
        f"{name}_edge_probability" if taken else "edge_probability",
        p,
        *beta.owner.op.dist_params(beta.owner),
        fixed=pattern,
        **{k: kwargs[k] for k in ("spike_scale", "slab_scale", "diagonal_rate") if k in kwargs},
    )
    free = pt.and_(pattern > 0.0, pattern < 1.0)
    return pt.switch(free, share, pattern)
