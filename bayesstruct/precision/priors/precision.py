r"""Priors of a precision matrix that act on its elements one by one.

Each is the distribution of independent elements conditioned on the matrix being positive definite,

.. math::

    p(K) = C^{-1} \prod_{i<j} p(k_{ij}) \prod_i p(k_{ii}) \, 1\{K \succ 0\},

whose constant ``C`` has no closed form. It does not depend on ``K``, and not on a common scale of
all elements either, since the cone of positive definite matrices has none; it does depend on the
edge probability and on the ratios of the scales. Hence the arguments that may be random: a common
scale (``rate`` of the graphical lasso, ``scale`` of the spike and slab), and an edge probability
drawn by :class:`EdgeProbability`, whose density carries the same constant the other way round.

Any other edge probability :math:`\pi(\theta)` may be random when parameters and matrix *together* are conditioned on a positive
definite matrix,

.. math::

    p(\theta, K) \propto p(\theta) \prod_{i<j} p(k_{ij} \mid \pi_{ij}(\theta)) \prod_i p(k_{ii}) \, 1\{K \succ 0\},

since the constant of this density is one number. The marginal distribution of the parameters is then
:math:`p(\theta) \, C(\theta)`, up to a constant, and not the density that is written down for them: parameters whose graphs are more
often positive definite, those of sparse graphs, are more probable. The prior of :class:`EdgeProbability` is the same construction.
"""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import _default_transform
from pytensor.graph.basic import Constant

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.tensors import as_float, as_square, draw_batch, is_beta, random_ancestors
from bayesstruct.precision.ops.packed_cholesky import PackedCholesky
from bayesstruct.precision.priors.checks import refuse_random, refuse_wrong
from bayesstruct.precision.priors.edge_probability import EdgeProbabilityRV, beta_edge_probability

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = [
    "GraphicalLasso",
    "GraphicalSpikeSlab",
    "PrecisionRV",
    "exponential_diagonal",
    "inside_cone",
    "safe_log",
    "start_point",
    "upper_sum",
]

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


class PrecisionRV(KernelRV):
    """A prior of precision matrices or of their graphs; its chains begin at ``start()``, if that was given.

    PyMC has ``initval=`` for that, but cannot transform models that use it (for the pointwise
    log-likelihood, ``pm.do``, ``pm.observe``); attributes of the Op survive.
    """

    def __init__(self, *args, start=None, **kwargs):
        # Not a property of the distribution: variables with different starts are equal as Ops.
        self.start = start
        super().__init__(*args, **kwargs)

    @classmethod
    def build(cls, *params, start=None, size=None, rng=None, **kwargs):
        """Apply an Op of this type that remembers the start."""
        rng = pt.random.shared_rng(seed=None) if rng is None else rng
        return cls(start=start)(*params, size=size, rng=rng, return_next_rng=True, **kwargs)[1]


class GraphicalLassoRV(PrecisionRV):
    name = "graphical_lasso"
    signature = "(p,p),(),()->(p,p)"
    _print_name = ("GraphicalLasso", "\\operatorname{GraphicalLasso}")

    @classmethod
    def rng_fn(cls, rng, rates, diagonal_rate, scale, size):
        """Draw by rejection or by Gibbs sweeps without data."""
        from bayesstruct.precision.kernels.prior import draw_laplace

        def core(rng, rates, diagonal_rate, scale):
            return scale * draw_laplace(rng, rates, diagonal_rate)

        params = (rates, diagonal_rate, scale)
        return draw_batch(core, rng, (2, 0, 0), params, size, rates.shape[-2:])

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.prior import draw_laplace

        def draw(rng, rates, diagonal_rate, scale):
            return scale.item() * draw_laplace(rng, rates.copy(), diagonal_rate.item())

        return draw


_JOINT_DRAWS = (
    'a precision matrix with condition="joint" has no prior draws one after the other: its parameters and the matrix are '
    "conditioned on positive definiteness together. For draws of this prior, run pm.sample on the model without its tables"
)


class GraphicalSpikeSlabRV(PrecisionRV):
    name = "graphical_spike_slab"
    signature = "(p,p),(),(),(),()->(p,p)"
    _print_name = ("GraphicalSpikeSlab", "\\operatorname{GraphicalSpikeSlab}")

    @classmethod
    def rng_fn(cls, rng, probability, spike, slab, diagonal_rate, scale, size):
        """Draw by rejection or by Gibbs sweeps without data."""
        from bayesstruct.precision.kernels.prior import draw_spike_slab

        def core(rng, probability, spike, slab, diagonal_rate, scale):
            return scale * draw_spike_slab(rng, probability, spike, slab, diagonal_rate)

        params = (probability, spike, slab, diagonal_rate, scale)
        return draw_batch(core, rng, (2, 0, 0, 0, 0), params, size, probability.shape[-2:])

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.prior import draw_spike_slab

        def draw(rng, probability, spike, slab, diagonal_rate, scale):
            return scale.item() * draw_spike_slab(
                rng, probability.copy(), spike.item(), slab.item(), diagonal_rate.item()
            )

        return draw


class JointSpikeSlabRV(GraphicalSpikeSlabRV):
    """The same density, of a matrix that is conditioned on positive definiteness together with its parameters."""

    @classmethod
    def rng_fn(cls, rng, *params):
        """Refuse: given its parameters a draw would not be one of the joint distribution."""
        raise NotImplementedError(_JOINT_DRAWS)

    def numba_draw(self):
        """Refuse."""
        raise NotImplementedError(_JOINT_DRAWS)


def _build(*params, joint=False, **kwargs):
    return (JointSpikeSlabRV if joint else GraphicalSpikeSlabRV).build(*params, **kwargs)


def upper_sum(matrix):
    """Sum over the strict upper triangle."""
    p = matrix.shape[-1]
    upper = pt.triu(pt.ones((p, p)), 1)
    return pt.switch(pt.eq(upper, 1.0), matrix, 0.0).sum((-2, -1))


def _diagonal(matrix):
    return pt.diagonal(matrix, axis1=-2, axis2=-1)


def inside_cone(logp, value):
    """``logp`` where the value is positive definite, minus infinity elsewhere.

    For values that come from the default transform the factorisation is rewritten away.
    """
    factor = pt.linalg.cholesky(value)
    inside = pt.all(_diagonal(factor) > 0.0, axis=-1)
    return pt.switch(inside, logp, -np.inf)


def _scale_jacobian(value, scale):
    p = value.shape[-1]
    return -0.5 * p * (p + 1) * pt.log(scale)


def exponential_diagonal(value, rate):
    """Log density of an exponential diagonal."""
    return (pt.log(rate)[..., None] - rate[..., None] * _diagonal(value)).sum(-1)


def _normal(value, sd):
    sd = sd[..., None, None]
    return -0.5 * pt.square(value / sd) - pt.log(sd) - _HALF_LOG_2PI


def safe_log(probability) -> "TensorVariable":
    """Logarithm that gives minus infinity at zero without a warning or a NaN gradient."""
    positive = pt.gt(probability, 0.0)
    return pt.switch(positive, pt.log(pt.switch(positive, probability, 1.0)), -np.inf)


class GraphicalLasso(Continuous):
    r"""Graphical-lasso prior of a precision matrix (Wang 2012).

    .. math::

        p(K) \propto \prod_{i<j} \frac{\lambda_{ij}}{2} e^{-\lambda_{ij} |k_{ij}|}
            \prod_i d \, e^{-d k_{ii}} \; 1\{K \succ 0\}

    Its posterior mode under normal rows is the graphical lasso. The constant that makes the density
    integrate to one is left out of ``logp``; it does not depend on ``rate`` while ``diagonal_rate``
    keeps its default, so that ``rate`` may then be a random variable.

    ========  ==========================================
    Support   symmetric positive definite (p, p)
    ========  ==========================================

    Parameters
    ----------
    p : int
        Number of variables.
    rate : tensor_like of float, default 1
        Rate :math:`\lambda` of the Laplace distribution of each off-diagonal element; positive, a scalar or
        a symmetric (p, p) matrix of constants.
    diagonal_rate : float, optional
        Rate :math:`d` of the exponential distribution of the diagonal; ``rate / 2`` (Wang's choice) unless
        given, and 1/2 when ``rate`` is a matrix.
    start : callable, optional
        Returns the (p, p) tensor that chains start from; its random parts are drawn anew for each
        chain (:class:`bayesstruct.ops.BootstrapStart`). The identity unless given.

    References
    ----------
    Wang, H. (2012). Bayesian graphical lasso models and efficient posterior computation. *Bayesian
    Analysis* 7(4), 867-886, equation 6.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            rate = pm.Gamma("rate", 2, 2)
            precision = bs.GraphicalLasso("precision", 5, rate)
            pm.MvNormal("x", np.zeros(5), tau=precision, observed=rows)
    """

    rv_type = GraphicalLassoRV
    rv_op = GraphicalLassoRV.build

    @classmethod
    def dist(cls, p, rate=1.0, *, diagonal_rate=None, **kwargs):
        """Create the distribution without a model."""
        rate = as_float(rate)
        refuse_wrong(rate=rate)
        if rate.type.ndim == 0 and diagonal_rate is None:
            params = [as_square(1.0, p), as_float(0.5), 1.0 / rate]
        else:
            diagonal_rate = as_float(0.5 if diagonal_rate is None else diagonal_rate)
            refuse_random(rate=rate, diagonal_rate=diagonal_rate)
            refuse_wrong(diagonal_rate=diagonal_rate)
            params = [as_square(rate, p), diagonal_rate, as_float(1.0)]
        return super().dist(params, **kwargs)

    def support_point(rv, size, rates, diagonal_rate, scale):
        """Return the start if it was given, else the identity times the scale."""
        return start_point(rv, size, rates, scale)

    def logp(value, rates, diagonal_rate, scale):
        """Log density up to the constant of the cone."""
        scaled = value / scale[..., None, None]
        off = upper_sum(pt.log(rates) - np.log(2.0) - rates * pt.abs(scaled))
        total = off + exponential_diagonal(scaled, diagonal_rate) + _scale_jacobian(value, scale)
        return check_parameters(
            inside_cone(total, value),
            pt.all(rates > 0, axis=(-2, -1)),
            diagonal_rate > 0,
            scale > 0,
            msg="rate > 0, diagonal_rate > 0",
        )


class GraphicalSpikeSlab(Continuous):
    r"""Spike-and-slab prior of a precision matrix, its indicators summed out (Wang 2015).

    .. math::

        p(K) \propto \prod_{i<j} \left[ \pi_{ij} N(k_{ij}; 0, v_1^2)
            + (1 - \pi_{ij}) N(k_{ij}; 0, v_0^2) \right]
            \prod_i d \, e^{-d k_{ii}} \; 1\{K \succ 0\}

    The indicators follow from the matrix, :class:`Edges`: given ``K`` they are independent
    Bernoulli. This is the joint distribution of Wang's construction, in which the constant that belongs to
    each graph cancels. The *implied* prior probability of an edge is therefore not
    :math:`\pi_{ij}` but smaller, since slab values are more often outside the cone; Bayes
    factors use :func:`bayesstruct.distributions.implied_edge_probability`.

    ========  ==========================================
    Support   symmetric positive definite (p, p)
    ========  ==========================================

    Parameters
    ----------
    p : int
        Number of variables.
    edge_probability : tensor_like of float or ``pm.Beta.dist``, default 0.5
        Nominal probability :math:`\pi`; a scalar or a symmetric (p, p) matrix of constants in which
        0 forbids and 1 requires an edge, or a beta distribution, for a Beta-Bernoulli prior: it
        becomes the variable ``edge_probability`` of the model (see :class:`EdgeProbability`). With
        ``condition="joint"`` any symmetric expression of variables of the model.
    spike_scale, slab_scale : float
        Standard deviations :math:`v_0 < v_1`.
    diagonal_rate : float, default 0.5
        Rate :math:`d` of the exponential distribution of the diagonal.
    scale : tensor_like of float, default 1
        Multiplies the whole matrix; may be random.
    start : callable, optional
        Returns the (p, p) tensor that chains start from; its random parts are drawn anew for each
        chain (:class:`bayesstruct.ops.BootstrapStart`). The identity unless given.
    fixed : array_like, optional
        With a beta ``edge_probability``: a (p, p) matrix whose zeros forbid and whose ones require
        edges; anything between is free.
    condition : {"matrix", "joint"}
        What is conditioned on the matrix being positive definite. "matrix": the matrix given its parameters, which must then be
        constants (but for a beta distribution), since the constant of that distribution is unknown. "joint": the matrix and
        the parameters of a random `edge_probability` together; the prior of these is then their written density times the
        probability that the matrix is positive definite, which favours sparse graphs. The posterior is exact;
        ``pm.sample_prior_predictive`` is refused: run ``pm.sample`` on the model without its tables.

    References
    ----------
    Wang, H. (2015). Scaling it up: stochastic search structure learning in graphical models.
    *Bayesian Analysis* 10(2), 351-377, equations 3-5.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            precision = bs.GraphicalSpikeSlab("precision", 5, edge_probability=0.2)
            bs.edges(precision)
            pm.MvNormal("x", np.zeros(5), tau=precision, observed=rows)

    The graph of latent variables behind counts. Any likelihood will do: the latent rows are drawn by NUTS, and the matrix
    given them by its own step.

    .. code-block:: python

        with pm.Model():
            precision = bs.GraphicalSpikeSlab("precision", 5)
            bs.edges(precision, columns=counts.columns)
            mean = pm.Normal("mean", 0, 2, shape=5)
            latent = pm.MvNormal("latent", mean, tau=precision, shape=counts.shape)
            pm.Poisson("y", pm.math.exp(latent), observed=counts)

    Edges that are more probable between columns that are close, at distances that are known. Unknown groups of columns go
    the same way: ``edge_probability=rate[group[:, None], group[None, :]]`` with ``group = pm.Categorical(...)``.

    .. code-block:: python

        with pm.Model():
            intercept, slope = pm.Normal("intercept", -1, 1), pm.Normal("slope", 0, 1)
            probability = pm.math.sigmoid(intercept + slope * distance)  # (p, p), symmetric
            precision = bs.GraphicalSpikeSlab("precision", 5, probability, condition="joint")
            bs.edges(precision)
            pm.MvNormal("x", np.zeros(5), tau=precision, observed=rows)
    """

    rv_type = GraphicalSpikeSlabRV
    rv_op = staticmethod(_build)

    def __new__(cls, name, p, edge_probability=0.5, *, fixed=None, condition="matrix", **kwargs):
        """Register the prior, and that of the edge probability when it has one."""
        if condition not in ("matrix", "joint"):
            raise ValueError(f'`condition` must be "matrix" or "joint", it is {condition!r}')
        if condition == "joint":
            _check_joint(name, p, edge_probability)
            kwargs["condition"] = condition
        elif is_beta(edge_probability):
            edge_probability = beta_edge_probability(name, p, edge_probability, fixed, kwargs)
        elif fixed is not None:
            raise ValueError(
                "`fixed` goes with a beta `edge_probability`; put 0 and 1 in its matrix"
            )
        return super().__new__(cls, name, p, edge_probability, **kwargs)

    @classmethod
    def dist(
        cls,
        p,
        edge_probability=0.5,
        *,
        spike_scale=0.02,
        slab_scale=1.0,
        diagonal_rate=0.5,
        scale=1.0,
        condition="matrix",
        **kwargs,
    ):
        """Create the distribution without a model."""
        scales = {
            "spike_scale": as_float(spike_scale),
            "slab_scale": as_float(slab_scale),
            "diagonal_rate": as_float(diagonal_rate),
        }
        probability = as_square(edge_probability, p)
        refuse_random(**scales)
        refuse_wrong(**scales)
        if (
            isinstance(probability, Constant)
            and not ((probability.data >= 0) & (probability.data <= 1)).all()
        ):
            raise ValueError("`edge_probability` must be between 0 and 1")
        sources = random_ancestors(probability)
        joint = condition == "joint" and len(sources) > 0
        if not joint and not all(isinstance(v.owner.op, EdgeProbabilityRV) for v in sources):
            refuse_random(edge_probability=probability)
        params = [probability, *scales.values(), as_float(scale)]
        return super().dist(params, **({"joint": True} if joint else {}), **kwargs)

    def support_point(rv, size, probability, spike, slab, diagonal_rate, scale):
        """Return the start if it was given, else the identity times the scale."""
        return start_point(rv, size, probability, scale)

    def logp(value, probability, spike, slab, diagonal_rate, scale):
        """Log density up to the constant of the cone."""
        scaled = value / scale[..., None, None]
        mixture = pt.logaddexp(
            safe_log(probability) + _normal(scaled, slab),
            safe_log(1.0 - probability) + _normal(scaled, spike),
        )
        total = (
            upper_sum(mixture)
            + exponential_diagonal(scaled, diagonal_rate)
            + _scale_jacobian(value, scale)
        )
        return check_parameters(
            inside_cone(total, value),
            pt.all(pt.and_(probability >= 0, probability <= 1), axis=(-2, -1)),
            spike > 0,
            slab > spike,
            diagonal_rate > 0,
            scale > 0,
            msg="0 <= edge_probability <= 1, 0 < spike_scale < slab_scale, diagonal_rate > 0",
        )


def _is_read(precision) -> bool:
    """Whether `bs.edges` has recorded the edges of a matrix."""
    prefix = precision.name.rpartition("::")[0]
    return (f"{prefix}::" if prefix else "") + "edge_prior" in pm.modelcontext(None).root.named_vars


def _check_joint(name, p, edge_probability):
    """Raise unless a random edge probability is a symmetric matrix of probabilities of variables of the model."""
    if getattr(edge_probability, "ndim", 0) not in (0, 2):
        raise ValueError(
            f"`edge_probability` of {name!r} has {edge_probability.ndim} dimension, not the two of a symmetric ({p}, {p}) matrix"
        )
    probability = as_square(edge_probability, p)
    strange = set(random_ancestors(probability)) - set(pm.modelcontext(None).root.basic_RVs)
    if strange:
        names = ", ".join(repr(getattr(v, "name", None) or str(v.owner.op)) for v in strange)
        raise ValueError(
            f"`edge_probability` of {name!r} contains {names}, no variable of the model: give it a name in the model, as "
            'pm.Beta("share", 1, 1) instead of pm.Beta.dist(1, 1)'
        )
    for other in pm.modelcontext(None).root.free_RVs:
        shared = {*random_ancestors(probability)} & {*random_ancestors(other)}
        if isinstance(other.owner.op, JointSpikeSlabRV) and shared and _is_read(other):
            raise ValueError(
                f"{name!r} and {other.name!r} have the random parameter {next(iter(shared)).name!r} in common, which changes "
                f"the prior probabilities that bs.edges({other.name}) has recorded: call bs.edges after both are made"
            )
    try:
        one = pm.draw(probability, random_seed=1, mode="FAST_COMPILE")
    except NotImplementedError:  # a variable without draws of its own, such as pm.Flat
        return
    off = ~np.eye(len(one), dtype=bool)
    if not np.allclose(one[off], one.T[off]):
        raise ValueError(
            f"`edge_probability` of {name!r} is not symmetric; an undirected edge has one probability"
        )
    if not ((one[off] >= 0) & (one[off] <= 1)).all():
        raise ValueError(
            f"`edge_probability` of {name!r} is not between 0 and 1 in a draw of its prior: pm.math.sigmoid(...) is"
        )


def start_point(rv, size, matrix, scale):
    """Start that the Op of a matrix remembers, or the identity times the scale; for ``support_point``."""
    p = matrix.shape[-1]
    start = rv.owner.op.start
    point = pt.eye(p) * scale[..., None, None] if start is None else start()
    return point if rv_size_is_none(size) else pt.full(pt.concatenate([size, [p, p]]), point)


@_default_transform.register(GraphicalLassoRV)
@_default_transform.register(GraphicalSpikeSlabRV)
def _(op, rv):
    return PackedCholesky(n=rv.type.shape[-1] or rv.shape[-1])
