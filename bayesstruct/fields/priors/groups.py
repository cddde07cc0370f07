r"""Prior of the weights of several groups of rows: which pairs are there, and which differ between groups.

The weights of a pair in ``G`` groups are a shared part and orthonormal contrasts,

.. math:: w_{ge} = m_e + \sum_c Q_{gc} d_{ec},

where the columns of the (G, G - 1) matrix :math:`Q` are orthonormal and orthogonal to the vector of ones, so that groups are treated alike. A
pair is in one of three relations,

=========  ==============  =========================  =================================
relation   probability     shared part                contrasts
=========  ==============  =========================  =================================
absent     1 - p           zero                       zero
equal      p (1 - q)       Normal(0, slab_scale)      zero
different  p q             Normal(0, slab_scale)      Normal(0, difference_scale)
=========  ==============  =========================  =================================

What is absent or equal is so exactly: the relation of a pair can be read from its weights. The precision matrices of
:class:`bayesstruct.distributions.GroupedSpikeSlab` have the same relations, with narrow spikes in the place of zeros.
"""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous
from pytensor.graph.basic import Constant

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.tensors import as_float
from bayesstruct.fields.kernels.group_arrays import contrast_basis
from bayesstruct.sparse.priors.spike_and_slab import AWAY, log_probability, no_gradient

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["GroupedWeights", "GroupedWeightsRV", "weight_relations"]

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


class GroupedWeightsRV(GraphRV):
    """Weights of several groups; the number of groups is a property of the Op."""

    extended_signature = "[rng],[size],(w),(w),(w),(w)->[rng],(g,w)"
    _print_name = ("GroupedWeights", "\\operatorname{GroupedWeights}")
    options = ("groups",)

    @classmethod
    def build(cls, rng, size, edge, difference, slab, large, *, groups):
        """Build the graph of a draw."""
        shape = edge.shape[0]
        rng, noise = pt.random.normal(0.0, 1.0, size=(groups, shape), rng=rng, return_next_rng=True)
        rng, there = pt.random.uniform(0.0, 1.0, size=(2, shape), rng=rng, return_next_rng=True)
        basis = pt.as_tensor_variable(contrast_basis(groups)[:, 1:])
        contrasts = pt.switch(there[1] < difference, large * (basis @ noise[1:]), 0.0)
        return rng, pt.switch(there[0] < edge, slab * noise[0] + contrasts, 0.0)


class GroupedWeights(Continuous):
    r"""Weights of pairs in several groups that are absent, equal, or different.

    See the table at the top of this module. ``logp`` is the density with respect to the sum of a unit mass where all
    weights of a pair are zero, Lebesgue measure of the common weight where they are equal, and Lebesgue measure in G dimensions. It
    is not differentiable in the weights. ``pm.sample`` draws them by :class:`bayesstruct.steps.GroupedPairwiseGibbs` if they are those of a
    :class:`bayesstruct.distributions.GroupedPairwiseMRF`, and raises an error with the reason otherwise.

    ========  ====================================================
    Support   (G, pairs) real, with atoms at zero and equal weights
    ========  ====================================================

    Parameters
    ----------
    groups : int
        Number G of groups, at least 2.
    edge_probability, difference_probability : (pairs,) tensor_like of float
        Probability of an edge, and that it differs between groups if it is there; 0 forbids and 1 requires either.
    slab_scale, difference_scale : float or (pairs,) tensor_like
        Standard deviations of the shared part and of each contrast. Two groups that differ do so by
        sqrt(2) times a contrast.

    Raises
    ------
    ValueError
        If a constant is out of range.

    References
    ----------
    Marsman, M., Waldorp, L. J., Sekulovski, N. and Haslbeck, J. M. B. (2025). Bayes factor tests for group differences in ordinal and
    binary graphical models. *Psychometrika* 90(5), 1809-1842.

    Examples
    --------
    .. code-block:: python

        with pm.Model(coords={"group": ["a", "b"], "pair": pairs}):
            inclusion = np.full(len(pairs), 0.5)
            bs.distributions.GroupedWeights(
                "weight", 2, inclusion, inclusion, dims=("group", "pair")
            )
    """

    rv_type = GroupedWeightsRV
    rv_op = GroupedWeightsRV.rv_op

    @classmethod
    def dist(
        cls,
        groups,
        edge_probability,
        difference_probability,
        *,
        slab_scale=1.0,
        difference_scale=1.0,
        **kwargs,
    ):
        """Create the distribution without a model."""
        if not groups >= 2:
            raise ValueError(f"`groups` must be 2 or more, it is {groups}")
        edge = as_float(edge_probability)
        if edge.type.ndim != 1:
            raise ValueError("`edge_probability` must have one entry for each pair")
        given = {
            "difference_probability": difference_probability,
            "slab_scale": slab_scale,
            "difference_scale": difference_scale,
        }
        values = {"edge_probability": edge} | {n: as_float(v) for n, v in given.items()}
        for name, value in values.items():
            _check_constant(name, value)
            sizes = {*value.type.shape, *edge.type.shape} - {None, 1}
            if value.type.ndim > 1 or (value.type.ndim and len(sizes) > 1):
                raise ValueError(
                    f"`{name}` must be one number or have one entry for each pair, as `edge_probability` has; it has shape {value.type.shape}"
                )
        params = [_of_pairs(value, edge) for value in values.values()]
        return super().dist(params, groups=int(groups), **kwargs)

    def support_point(rv, size, edge, difference, slab, large):
        """Return zeros where they are possible, else small weights of the required relation."""
        groups = rv.owner.op.groups
        step = pt.as_tensor_variable(contrast_basis(groups)[:, -1:])
        gap = pt.switch(pt.ge(difference, 1.0), AWAY * large * step, 0.0)
        return pt.switch(pt.ge(edge, 1.0), AWAY * slab + gap, pt.zeros((groups, edge.shape[0])))

    def logp(value, edge, difference, slab, large):
        """Log density of all pairs together."""
        value = no_gradient(value)
        groups = value.shape[-2]
        shared = value.mean(-2)
        spread = pt.square(value - value.mean(-2, keepdims=True)).sum(-2)
        relation = weight_relations(value)
        common = log_probability(edge) + _log_normals(pt.square(shared), slab, 1)
        equal = common + log_probability(1.0 - difference)
        # Weights are sqrt(G) times an orthonormal transform of shared part and contrasts.
        unequal = common + log_probability(difference) - 0.5 * pt.log(groups)
        unequal = unequal + _log_normals(spread, large, groups - 1)
        # Without an atom zero and equal weights are values like any others.
        relation = pt.switch(pt.eq(relation, 1) & pt.ge(difference, 1.0), 2, relation)
        relation = pt.switch(
            pt.eq(relation, 0) & pt.ge(edge, 1.0), pt.switch(pt.ge(difference, 1.0), 2, 1), relation
        )
        present = pt.switch(pt.eq(relation, 1), equal, unequal)
        logp = pt.switch(pt.eq(relation, 0), log_probability(1.0 - edge), present).sum(-1)
        return check_parameters(
            logp,
            pt.all((edge >= 0) & (edge <= 1) & (difference >= 0) & (difference <= 1)),
            pt.all((slab > 0) & (large > 0)),
            msg="probabilities between 0 and 1, slab_scale > 0, difference_scale > 0",
        )


def weight_relations(weight: "TensorVariable") -> "TensorVariable":
    """Relation of each pair of columns: 0 absent, 1 equal, 2 different.

    Parameters
    ----------
    weight : TensorVariable
        (..., G, pairs).

    Returns
    -------
    TensorVariable of int64
        (..., pairs).
    """
    first = weight[..., :1, :]
    some = pt.any(pt.neq(weight, 0.0), axis=-2).astype("int64")
    return some + pt.any(pt.neq(weight, first), axis=-2).astype("int64")


def _log_normals(square, sd, count):
    return -0.5 * square / pt.square(sd) - count * (pt.log(sd) + _HALF_LOG_2PI)


def _of_pairs(value, edge):
    """One entry for each pair; constants stay constants."""
    if value.type.ndim:
        return value
    if isinstance(value, Constant) and edge.type.shape[0] is not None:
        return as_float(np.full(edge.type.shape[0], value.data))
    return value + pt.zeros(edge.shape)


def _check_constant(name, value):
    if not isinstance(value, Constant):
        return
    if name.endswith("probability"):
        if not ((value.data >= 0) & (value.data <= 1)).all():
            raise ValueError(f"`{name}` must be between 0 and 1")
    elif not ((value.data > 0) & np.isfinite(value.data)).all():
        raise ValueError(f"`{name}` must be positive and finite")
