r"""Priors of groups of coefficients that are zero together.

.. math::

    \gamma_g \sim \mathrm{Bernoulli}(\pi_g), \qquad
    w_j = 0 \text{ if } \gamma_{g(j)} = 0, \qquad w_j \sim \text{slab}(0, s_j) \text{ otherwise}

The density is taken as in :mod:`bayesstruct.sparse.priors.spike_and_slab`: a group has a unit mass at
zero, and Lebesgue measure elsewhere.
"""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous, SymbolicRandomVariable
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.logprob.abstract import _logprob
from pymc.pytensorf import normalize_rng_param
from pytensor.tensor.random.utils import normalize_size_param

from bayesstruct.core.tensors import as_float
from bayesstruct.sparse.priors.spike_and_slab import AWAY, SLABS, log_probability, no_gradient

__all__ = ["GroupSpikeAndSlab", "GroupSpikeAndSlabRV"]


class GroupSpikeAndSlabRV(SymbolicRandomVariable):
    """Groups of coefficients that are zero, or drawn from a slab."""

    extended_signature = "[rng],[size],(g),(p)->[rng],(p)"
    _print_name = ("GroupSpikeAndSlab", "\\operatorname{GroupSpikeAndSlab}")

    def __init__(self, *args, groups, slab, **kwargs):
        self.groups, self.slab = groups, slab
        super().__init__(*args, **kwargs)

    @classmethod
    def rv_op(cls, inclusion, slab_scale, *, groups, slab, size=None, rng=None):
        """Build the graph of a draw."""
        rng, size = normalize_rng_param(rng), normalize_size_param(size)
        batch = size
        if rv_size_is_none(size):
            batch = pt.broadcast_shape(inclusion[..., 0], slab_scale[..., 0])
        batch = tuple(batch)
        middle, on = pt.random.bernoulli(
            inclusion, size=(*batch, inclusion.shape[-1]), rng=rng, return_next_rng=True
        )
        next_rng, values = SLABS[slab].draw(slab_scale, (*batch, len(groups.labels)), middle)
        draw = pt.switch(on[..., pt.as_tensor_variable(groups.labels)], values, np.float64(0.0))
        inputs = [rng, size, inclusion, slab_scale]
        return cls(inputs=inputs, outputs=[next_rng, draw], groups=groups, slab=slab)(*inputs)

    def rebuild_rv(self, *params, **kwargs):
        """Build the graph of a draw of another size."""
        return type(self).rv_op(*params, **kwargs, groups=self.groups, slab=self.slab)


class _Labels:
    """Group of each coefficient; as a property of an Op, equal to itself only."""

    def __init__(self, labels):
        try:
            self.labels = np.asarray(labels)
        except ValueError:  # lists of different lengths
            self.labels = np.empty(0)
        good = self.labels.ndim == 1 and self.labels.dtype.kind in "iu" and len(self.labels)
        if not good or set(self.labels.tolist()) != set(range(int(self.labels.max()) + 1)):
            raise ValueError(
                "`groups` are labels 0, 1, ..., one for each coefficient; pandas.factorize(names)[0] makes them of names"
            )
        self.count = int(self.labels.max()) + 1


class GroupSpikeAndSlab(Continuous):
    r"""Groups of coefficients that are exactly zero together, or drawn from a slab.

    ========  ==========================================
    Support   real vectors, with an atom at zero for each group
    ========  ==========================================

    ``pm.sample`` draws them by :class:`bayesstruct.steps.PairwiseSpikeSlab` when they are the weights
    of a :class:`bayesstruct.PairwiseMRF`, by :class:`bayesstruct.steps.GroupSpikeSlabRegression` when they are the coefficients of
    a regression under one of the responses of :class:`bayesstruct.SpikeAndSlab` (normal and Laplace slabs), and raises an error
    with the reason when they are neither.

    Parameters
    ----------
    name : str
    inclusion : tensor_like of float, default 0.5
        Probability that a group is not zero, a number or one for each.
    slab_scale : tensor_like of float, default 1
        Scale of the slab, a number or one for each coefficient; may be random.
    groups : (p,) array_like of int
        Label 0, 1, ... of the group of each coefficient.
    slab : {"normal", "laplace", "cauchy"}
    **kwargs
        ``dims`` and other arguments of PyMC distributions.

    Raises
    ------
    ValueError
        If the labels are not 0, 1, ... or the slab is unknown.

    References
    ----------
    Xu, X. and Ghosh, M. (2015). Bayesian variable selection and estimation for group lasso. *Bayesian
    Analysis* 10, 909-936 (the normal slab).
    """

    rv_type = GroupSpikeAndSlabRV
    rv_op = GroupSpikeAndSlabRV.rv_op

    @classmethod
    def dist(cls, inclusion=0.5, slab_scale=1.0, *, groups, slab="normal", **kwargs):
        """Create the distribution without a model."""
        if slab not in SLABS:
            raise ValueError(f"`slab` must be one of {sorted(SLABS)}, it is {slab!r}")
        labels = _Labels(groups)
        inclusion, slab_scale = as_float(inclusion), as_float(slab_scale)
        if inclusion.type.ndim == 0:
            inclusion = pt.full((labels.count,), inclusion)
        if slab_scale.type.ndim == 0:
            slab_scale = pt.full((len(labels.labels),), slab_scale)
        return super().dist([inclusion, slab_scale], groups=labels, slab=slab, **kwargs)

    def support_point(rv, size, inclusion, slab_scale):
        """Return zero, where zero is possible."""
        labels = pt.as_tensor_variable(rv.owner.op.groups.labels)
        point = pt.switch(pt.ge(inclusion[..., labels], 1.0), AWAY * slab_scale, np.float64(0.0))
        return point if rv_size_is_none(size) else pt.full((*size, rv.shape[-1]), point)


@_logprob.register(GroupSpikeAndSlabRV)
def _logp(op, values, rng, size, inclusion, slab_scale, **kwargs):
    (value,) = values
    value = no_gradient(value)
    labels = op.groups.labels
    terms = SLABS[op.slab].log_density(value, slab_scale)
    member = pt.as_tensor_variable((labels[:, None] == np.arange(op.groups.count)).astype(float))
    on = pt.gt(pt.neq(value, 0.0).astype("float64") @ member, 0.0)
    within = log_probability(inclusion) + terms @ member
    return pt.switch(on, within, log_probability(1.0 - inclusion)).sum(axis=-1)
