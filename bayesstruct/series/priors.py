r"""Distributions of time series that switch among shared behaviours, and of the parameters of behaviours."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply

from bayesstruct.core.distributions import GraphRV, zeros_like_draw
from bayesstruct.core.draws import SeededDraw, seed_from
from bayesstruct.core.ops import InterpretedOp
from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_drawn, as_float
from bayesstruct.data.arguments import whole_number
from bayesstruct.features.ops.columns import is_used
from bayesstruct.series.ops import transitions_of

__all__ = [
    "BehaviourScales",
    "BehaviourScalesRV",
    "BehaviourTransitions",
    "BehaviourTransitionsRV",
    "SwitchingSeries",
    "SwitchingSeriesRV",
]


def _used(feature):
    return is_used(feature)[..., None]


class BehaviourScalesRV(GraphRV):
    """Standard deviations of behaviours, zero for those that no series has."""

    extended_signature = "[rng],[size],(n,k),(),()->[rng],(k,d)"
    _print_name = ("BehaviourScales", "\\operatorname{BehaviourScales}")

    options = ("columns",)

    @classmethod
    def build(cls, rng, size, feature, shape, rate, *, columns):
        """Build the graph of a draw."""
        used, a, b = _used(feature), shape[..., None, None], rate[..., None, None]
        batch = tuple(size) if not rv_size_is_none(size) else (used * a * b).shape[:-2]
        next_rng, draw = pt.random.gamma(
            a,
            scale=1.0,
            size=(*batch, feature.shape[-1], columns),
            rng=rng,
            return_next_rng=True,
        )
        draw = pt.where(used, pt.sqrt(b / draw), 0.0)
        return next_rng, draw


class BehaviourScales(Continuous):
    r"""Standard deviations of the variables under each behaviour: their squares are inverse-gamma.

    .. math:: \sigma_{kj}^2 \sim \mathrm{InverseGamma}(a, b) \text{ if some series has behaviour k}, \qquad
        \sigma_{kj} = 0 \text{ if none has}

    Parameters
    ----------
    name : str
    feature : TensorVariable
        (N, K), an :class:`IndianBuffet` over series.
    variance_shape, variance_rate : tensor_like of float
        a and b, above 0.
    variables : int
        d.
    **kwargs
        ``dims`` and the like.

    Notes
    -----
    The density is that of the standard deviation, relative to Lebesgue measure for behaviours that are used.
    """

    rv_type = BehaviourScalesRV
    rv_op = BehaviourScalesRV.rv_op

    @classmethod
    def dist(cls, feature, variance_shape, variance_rate, *, variables, **kwargs):
        """Create the distribution without a model."""
        columns = whole_number("variables", variables, 1)
        shape, rate = as_float(variance_shape), as_float(variance_rate)
        return super().dist(
            [pt.as_tensor_variable(feature), shape, rate], columns=columns, **kwargs
        )

    def support_point(rv, size, feature, *_):
        """Return one for behaviours that are used."""
        return pt.zeros(rv.shape) + _used(feature)


@_logprob.register(BehaviourScalesRV)
def _scales_logp(op, values, rng, size, feature, shape, rate, **kwargs):
    (value,) = values
    used = _used(feature)
    a, b = shape[..., None, None], rate[..., None, None]
    safe = pt.where(pt.gt(value, 0.0), value, 1.0)
    slab = a * pt.log(b) - pt.gammaln(a) - (2.0 * a + 1.0) * pt.log(safe) - b / safe**2
    slab = pt.where(pt.gt(value, 0.0), slab + np.log(2.0), -np.inf)
    spike = pt.where(pt.eq(value, 0.0), 0.0, -np.inf)
    return pt.where(used, slab, spike).sum(axis=(-1, -2))


class BehaviourTransitionsRV(GraphRV):
    """Transition probabilities of each series among its own behaviours."""

    extended_signature = "[rng],[size],(n,k),(),()->[rng],(n,k,k)"
    _print_name = ("BehaviourTransitions", "\\operatorname{BehaviourTransitions}")

    @classmethod
    def build(cls, rng, size, feature, concentration, stickiness):
        """Build the graph of a draw."""
        mask = _pairs(feature)
        prior = _dirichlet(feature, concentration, stickiness) + pt.zeros_like(mask)
        shape = None if rv_size_is_none(size) else (*size, *tuple(feature.shape)[-2:])
        if shape is not None:
            shape = (*shape, feature.shape[-1])
        # Gamma variables of a small shape underflow: their logarithms are drawn.
        next_rng, first = pt.random.gamma(
            prior + 1.0, scale=1.0, size=shape, rng=rng, return_next_rng=True
        )
        next_rng, second = pt.random.exponential(
            1.0, size=first.shape, rng=next_rng, return_next_rng=True
        )
        logs = pt.where(pt.gt(mask, 0.0), pt.log(first) - second / prior, -np.inf)
        top = logs.max(axis=-1, keepdims=True)
        draw = _normalised(pt.exp(logs - pt.where(pt.isinf(top), 0.0, top)))
        return next_rng, draw


def _pairs(feature):
    """One for pairs of behaviours both of which a series has, otherwise zero."""
    z = pt.gt(feature, 0).astype("float64")
    return z[..., :, None] * z[..., None, :]


def _dirichlet(feature, concentration, stickiness):
    """Parameters of the Dirichlet distributions of the rows."""
    same = pt.eye(feature.shape[-1])
    return concentration[..., None, None, None] + stickiness[..., None, None, None] * same


def _normalised(weights):
    """Divide rows by their sums, unless these are zero."""
    total = weights.sum(axis=-1, keepdims=True)
    return weights / pt.where(pt.gt(total, 0.0), total, 1.0)


class BehaviourTransitions(Continuous):
    r"""Transition probabilities of each series among the behaviours that it has, rows Dirichlet.

    .. math:: \pi^{(i)}_k \sim \mathrm{Dirichlet}(\gamma + \kappa 1[k = l] : z_{il} = 1), \qquad z_{ik} = 1

    Parameters
    ----------
    name : str
    feature : TensorVariable
        (N, K), an :class:`IndianBuffet` over series.
    concentration : tensor_like of float
        :math:`\gamma`, above 0.
    stickiness : tensor_like of float
        :math:`\kappa`, at least 0: the larger, the longer a series stays in a behaviour.
    **kwargs
        ``dims`` and the like.

    Notes
    -----
    Values are (N, K, K), zero for behaviours that a series does not have.

    References
    ----------
    Fox, E. B., Sudderth, E. B., Jordan, M. I. and Willsky, A. S. (2009). Sharing features among dynamical
    systems with beta processes. *NIPS* 22, 549-557.
    """

    rv_type = BehaviourTransitionsRV
    rv_op = BehaviourTransitionsRV.rv_op

    @classmethod
    def dist(cls, feature, concentration, stickiness, **kwargs):
        """Create the distribution without a model."""
        feature = pt.as_tensor_variable(feature)
        # pm.sample asks steps without telling them the model: this tells which step draws these.
        claim(feature, "switching_series_mcmc")
        params = [feature, as_float(concentration), as_float(stickiness)]
        return super().dist(params, **kwargs)

    def support_point(rv, size, feature, *_):
        """Return even probabilities."""
        return as_drawn(_normalised(_pairs(feature)), rv, size)


@_logprob.register(BehaviourTransitionsRV)
def _transitions_logp(op, values, rng, size, feature, concentration, stickiness, **kwargs):
    (value,) = values
    members, stay, leave, valid = transitions_of(value, feature)
    own = concentration + stickiness  # the parameter of staying in a behaviour
    sums = members * concentration[..., None] + stickiness[..., None]
    normaliser = members * pt.gammaln(pt.where(pt.gt(members, 0.0), sums, 1.0))
    normaliser -= members * pt.gammaln(own)[..., None]
    normaliser -= members * (members - 1.0) * pt.gammaln(concentration)[..., None]
    total = normaliser.sum(axis=-1) + (own - 1.0) * stay + (concentration - 1.0) * leave
    return pt.where(valid, total, -np.inf)


@dataclass(frozen=True)
class _Series:
    """Draws of all series of these lengths."""

    lengths: tuple[int, ...]
    columns: int
    dtype: ClassVar = "float64"
    ndims: ClassVar = (2, 3, 2, 2)

    @property
    def shape(self):
        return sum(self.lengths), self.columns

    def __call__(self, rng, out, feature, transition, mean, scale):
        stops = np.cumsum(self.lengths)
        for table in out:
            table[:] = np.nan
            for z, p, stop, length in zip(feature, transition, stops, self.lengths, strict=True):
                own = np.flatnonzero(z)
                if len(own):
                    states = own[_path(rng, p[np.ix_(own, own)], length)]
                    noise = rng.standard_normal((length, self.columns))
                    table[stop - length : stop] = mean[states] + scale[states] * noise


def _path(rng, p, length):
    """Draw states of a chain from a uniform start."""
    levels = np.cumsum(p, axis=1)
    out = np.empty(length, int)
    for t, u in enumerate(rng.random(length)):
        level = levels[out[t - 1]] if t else np.arange(1, len(p) + 1) / len(p)
        out[t] = min(np.searchsorted(level, u * level[-1], side="right"), len(p) - 1)
    return out


class _ForwardGains(InterpretedOp):
    """Log density of each row given the rows of its series before it, states summed out."""

    __props__ = ("lengths",)

    def __init__(self, lengths):
        self.lengths = lengths

    def make_node(self, *inputs):
        """Apply the Op to values, an indicator of observed ones, features, transitions, means and scales."""
        self.register()
        inputs = [pt.as_tensor_variable(v) for v in inputs]
        return Apply(self, inputs, [pt.vector(dtype="float64", shape=(sum(self.lengths),))])

    def infer_shape(self, node, input_shapes):
        """One entry a row."""
        return [(pt.constant(sum(self.lengths), dtype="int64"),)]

    def compute(self, value, seen, feature, transition, mean, scale):
        """Return the log densities, as an array."""
        from bayesstruct.series.kernels.forward import forward_gains

        x = np.where(seen > 0, value, np.nan)
        starts = np.concatenate([[0], np.cumsum(self.lengths)])
        arrays = (np.ascontiguousarray(v, float) for v in (transition, mean, scale, x))
        return forward_gains(np.ascontiguousarray(feature > 0, np.int8), *arrays, starts)

    def connection_pattern(self, node):
        """No derivatives."""
        return [[False]] * len(node.inputs)


class SwitchingSeriesRV(GraphRV):
    """Rows of several series, one after another."""

    extended_signature = "[rng],[size],(n,k),(n,k,k),(k,d),(k,d),(t,d)->[rng],(t,d)"
    _print_name = ("SwitchingSeries", "\\operatorname{SwitchingSeries}")

    options = ("lengths",)

    @classmethod
    def build(cls, rng, size, feature, transition, mean, scale, seen, *, lengths):
        """Build the graph of a draw."""
        if not rv_size_is_none(size) and size.type.shape != (0,):
            raise ValueError("SwitchingSeries has no `size`: a draw is one table of all series")
        next_rng, seed = seed_from(rng)
        series = _Series(lengths, seen.type.shape[-1])
        draw = SeededDraw(series, 0)(seed, np.empty(0, np.int64), feature, transition, mean, scale)
        return next_rng, draw


class SwitchingSeries(Continuous):
    r"""Several time series, each of which switches among the behaviours that it has.

    .. math::

        s_1 \sim \mathrm{Uniform}\{k : z_{ik} = 1\}, \qquad P(s_{t+1} = l \mid s_t = k) = \pi^{(i)}_{kl}, \qquad
        y_{tj} \mid s_t = k \sim N(\mu_{kj}, \sigma_{kj}^2)

    The states are summed out by the forward algorithm.

    Parameters
    ----------
    name : str
    feature : TensorVariable
        (N, K), an :class:`IndianBuffet` over series: the behaviours of each.
    transition : TensorVariable
        (N, K, K), :class:`BehaviourTransitions`.
    mean, scale : TensorVariable
        (K, d) means and standard deviations of the variables under each behaviour.
    lengths : sequence of int
        Number of rows of each of the N series; the value has them one after another.
    seen : (T, d) array_like of bool, optional
        Which values were observed; by default all. The others are summed out, whatever they are.
    **kwargs
        ``observed``, ``dims`` and the like.

    Raises
    ------
    TypeError, ValueError
        If `lengths` are not whole numbers above 0.

    Notes
    -----
    ``pm.logp`` has one entry for each row: its log density given the rows of its series before it. A series
    without a behaviour has density zero, so that a posterior has none; a draw of it is NaN.

    References
    ----------
    Fox, E. B., Sudderth, E. B., Jordan, M. I. and Willsky, A. S. (2009). Sharing features among dynamical
    systems with beta processes. *NIPS* 22, 549-557.
    """

    rv_type = SwitchingSeriesRV
    rv_op = SwitchingSeriesRV.rv_op
    support_point = zeros_like_draw

    @classmethod
    def dist(cls, feature, transition, mean, scale, *, lengths, seen=None, **kwargs):
        """Create the distribution without a model."""
        lengths = tuple(whole_number("lengths", v, 1) for v in lengths)
        if not lengths:
            raise ValueError("`lengths` has no number: give the number of rows of each series")
        mean, scale = as_float(mean), as_float(scale)
        if seen is None:
            if mean.type.shape[-1] is None:
                raise ValueError("`seen` must be given if the number of variables is not known")
            seen = np.ones((sum(lengths), mean.type.shape[-1]))
        params = [pt.as_tensor_variable(feature), as_float(transition), mean, scale, as_float(seen)]
        return super().dist(params, lengths=lengths, **kwargs)


@_logprob.register(SwitchingSeriesRV)
def _series_logp(op, values, rng, size, feature, transition, mean, scale, seen, **kwargs):
    (value,) = values
    return _ForwardGains(op.lengths)(value, seen, feature, transition, mean, scale)
