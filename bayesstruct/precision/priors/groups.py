r"""Prior of the precision matrices of several groups of rows: which elements are there, and which differ between groups.

The elements :math:`k^{(1)}_{ij}, \dots, k^{(G)}_{ij}` of a pair are a shared part and orthonormal contrasts,

.. math:: k^{(g)}_{ij} = m_{ij} + \sum_c Q_{gc} d_{ijc},

where the columns of :math:`Q`, (G, G - 1), are orthonormal and orthogonal to the vector of ones; so all groups are treated alike, and which
such matrix is taken does not matter. A pair is in one of three relations,

=========  ==============  ===========================  ========================
relation   probability     shared part                  contrasts
=========  ==============  ===========================  ========================
absent     1 - p           spike                        spike of differences
equal      p (1 - q)       slab                         spike of differences
different  p q             slab                         slab of differences
=========  ==============  ===========================  ========================

all normal with mean zero. "Different without an edge" is no relation: a pair that is connected in one group only, or with opposite signs, is
connected and different. The diagonals of the groups are free. As for a single matrix (:mod:`bayesstruct.precision.priors.precision`), the independent
elements are conditioned on positive definite matrices, all of them; the constant that this needs has no closed form and does
not depend on the matrices, so that all parameters must be constants; but probabilities may have beta distributions, whose priors carry it
(:mod:`bayesstruct.precision.priors.group_probabilities`).
"""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous, Discrete
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import CholeskyCovTransform, _default_transform
from pytensor.graph.basic import Constant

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.tensors import as_float, as_square, draw_batch, is_beta, random_ancestors
from bayesstruct.precision.ops.packed_cholesky import UnpackLower
from bayesstruct.precision.priors.checks import refuse_random, refuse_wrong
from bayesstruct.precision.priors.edges import upper
from bayesstruct.precision.priors.group_probabilities import (
    GroupProbabilityRV,
    learned_probabilities,
)
from bayesstruct.precision.priors.precision import PrecisionRV, safe_log

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = [
    "INDICATOR_SCALES",
    "GroupedCholesky",
    "GroupedSpikeSlab",
    "Relations",
    "checked_parameters",
    "log_density",
    "log_sum",
    "matrices_shape",
    "matrices_start",
    "normal",
    "with_probabilities",
]

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


def matrices_shape(dist_params, param_shapes=None) -> list:
    """Shape of the matrices of all groups, from (p, p) probabilities as first and (G,) rates as last parameter."""
    shapes = [p.shape for p in dist_params] if param_shapes is None else param_shapes
    return [shapes[-1][-1], shapes[0][-1], shapes[0][-1]]


def checked_parameters(groups, p, probabilities: dict, scales: dict, diagonal_rate) -> list:
    """Parameters of a prior of several groups as tensors.

    Parameters
    ----------
    groups, p : int
    probabilities, scales : dict
        By name. Of scales each second one must be above the one before it.
    diagonal_rate : float

    Raises
    ------
    ValueError
        If one is random or out of range.
    """
    if not groups >= 2:
        raise ValueError(f"`groups` must be 2 or more, it is {groups}")
    squares = {name: as_square(value, p) for name, value in probabilities.items()}
    sds = {name: as_float(value) for name, value in scales.items()}
    rates = as_float(np.full(groups, diagonal_rate, dtype="float64"))
    sources = random_ancestors(*squares.values())
    known = all(isinstance(v.owner.op, GroupProbabilityRV) for v in sources)
    refuse_random(**sds, **({} if known else squares))
    refuse_wrong(**sds, diagonal_rate=rates)
    names = [*scales]
    for low, high in zip(names[::2], names[1::2], strict=True):
        if scales[low] >= scales[high]:
            raise ValueError(f"`{low}` ({scales[low]}) must be below `{high}` ({scales[high]})")
    for name, value in squares.items():
        if isinstance(value, Constant) and not ((value.data >= 0) & (value.data <= 1)).all():
            raise ValueError(f"`{name}` must be between 0 and 1")
    return [*squares.values(), *sds.values(), rates]


def matrices_start(rv, size, square, rates) -> "TensorVariable":
    """Return the start of the matrices if it was given, else unit matrices."""
    p, groups, start = square.shape[-1], rates.shape[-1], rv.owner.op.start
    point = pt.zeros((groups, p, p)) + pt.eye(p) if start is None else start()
    if rv_size_is_none(size):
        return point
    return pt.full(pt.concatenate([size, [groups, p, p]]), point)


def log_density(value, parts: list, rates) -> "TensorVariable":
    """Log density of matrices from the log weights of the relations of each pair and the rates of the diagonals."""
    off = _strict_upper(log_sum(parts)).sum((-2, -1))
    diagonals = pt.diagonal(value, axis1=-2, axis2=-1)
    on = (pt.log(rates)[..., None] - rates[..., None] * diagonals).sum((-2, -1))
    factor = pt.linalg.cholesky(value)
    inside = pt.all(pt.diagonal(factor, axis1=-2, axis2=-1) > 0.0, axis=(-2, -1))
    return pt.switch(inside, off + on, -np.inf)


class GroupedSpikeSlabRV(PrecisionRV):
    name = "grouped_spike_slab"
    signature = "(p,p),(p,p),(),(),(),(),(g)->(g,p,p)"
    _print_name = ("GroupedSpikeSlab", "\\operatorname{GroupedSpikeSlab}")

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        return matrices_shape(dist_params, param_shapes)

    @classmethod
    def rng_fn(cls, rng, edge, difference, spike, slab, small, large, rates, size):
        """Draw by rejection or by Gibbs sweeps without data."""
        from bayesstruct.precision.kernels.row_groups.prior import draw_groups, log_relations
        from bayesstruct.precision.kernels.row_groups.sweep import CONTRASTS

        def core(rng, edge, difference, spike, slab, small, large, rates):
            scales = (spike, slab, small, large)
            return draw_groups(rng, log_relations(edge, difference), scales, rates, CONTRASTS)

        params = (edge, difference, spike, slab, small, large, rates)
        shape = (rates.shape[-1], *edge.shape[-2:])
        return draw_batch(core, rng, (2, 2, 0, 0, 0, 0, 1), params, size, shape)

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.row_groups.prior import draw_groups, log_relations
        from bayesstruct.precision.kernels.row_groups.sweep import CONTRASTS

        def draw(rng, edge, difference, spike, slab, small, large, rates):
            log_prior = log_relations(edge.copy(), difference.copy())
            scales = (spike.item(), slab.item(), small.item(), large.item())
            return draw_groups(rng, log_prior, scales, rates.copy(), CONTRASTS)

        return draw


class GroupedCholesky(CholeskyCovTransform):
    """The transform of a positive definite matrix, for each of G of them: a (G, p (p + 1) / 2) array.

    Parameters
    ----------
    groups, n : int
        G and p.
    """

    ndim_supp = 2

    def __init__(self, groups: int, n: int):
        super().__init__(n)
        self.groups = groups

    def backward(self, value, *inputs) -> "TensorVariable":
        """Matrices from the vectors of their Cholesky factors."""
        value = pt.as_tensor_variable(value).astype("float64")
        if value.type.ndim != 2:
            return super().backward(value, *inputs)
        unpack = UnpackLower(int(self.n))
        factors = [unpack.make_node(value[g]).outputs[0] for g in range(self.groups)]
        lower = pt.stack(factors)
        lower.tag.lower_triangular = True  # the factors of the products are known
        return lower @ lower.mT

    def log_jac_det(self, value, *inputs) -> "TensorVariable":
        """Logarithm of the determinant of the Jacobian, over all groups."""
        return super().log_jac_det(value, *inputs).sum(-1)


def normal(square, sd, count=1) -> "TensorVariable":
    """Return the log density of `count` normal numbers with this sum of squares."""
    sd = sd[..., None, None]
    return -0.5 * square / sd**2 - count * (pt.log(sd) + _HALF_LOG_2PI)


def relation_log_weights(precision, edge, difference, spike, slab, small, large) -> list:
    """Log of probability times density of the elements of each pair: absent, equal, different; (p, p) each."""
    groups = precision.shape[-3]
    shared = precision.mean(-3)
    spread = pt.square(precision - precision.mean(-3, keepdims=True)).sum(-3)
    equal = normal(spread, small, groups - 1)
    # Elements are sqrt(G) times an orthonormal transform of shared part and contrasts.
    unit = -0.5 * pt.log(groups)
    present = safe_log(edge) + normal(pt.square(shared), slab) + unit
    return [
        safe_log(1.0 - edge) + normal(pt.square(shared), spike) + equal + unit,
        present + safe_log(1.0 - difference) + equal,
        present + safe_log(difference) + normal(spread, large, groups - 1),
    ]


def log_sum(parts: list) -> "TensorVariable":
    """Logarithm of the sum of three weights, from their logarithms."""
    top = pt.maximum(pt.maximum(parts[0], parts[1]), parts[2])
    return top + pt.log(sum(pt.exp(part - top) for part in parts))


#: Standard deviations of the two designs, and their defaults.
INDICATOR_SCALES = {"spike_scale": 0.02, "slab_scale": 1.0}
CONTRAST_SCALES = INDICATOR_SCALES | {"equal_scale": 0.02, "difference_scale": 1.0}


def with_probabilities(name, groups, p, given, fixed, kwargs, scales) -> list:
    """Probabilities of edges and differences as matrices, those that have a beta distribution as variables of the model.

    Parameters
    ----------
    name : str
        Of the matrices.
    groups, p : int
    given : tuple
        One or both probabilities by position; `kwargs` has the others, and loses them.
    fixed : (p, p) array_like or None
    kwargs : dict
        Of the prior.
    scales : dict
        Names and defaults of its standard deviations.
    """
    from bayesstruct.precision.kernels.row_groups.sweep import CONTRASTS, INDICATORS

    options = ("edge_probability", "difference_probability")
    both = dict(zip(options, given, strict=False))
    both |= {option: kwargs.pop(option, 0.5) for option in options[len(given) :]}
    if fixed is None and not any(map(is_beta, both.values())):
        return [*both.values()]
    own = [float(kwargs.get(option, default)) for option, default in scales.items()]
    constants = {
        "scales": np.array([*own, 0.0, 0.0][:4]),
        "rates": np.full(groups, float(kwargs.get("diagonal_rate", 0.5))),
        "design": CONTRASTS if len(own) == 4 else INDICATORS,
    }
    return [*learned_probabilities(name, p, both, fixed, constants).values()]


class GroupedSpikeSlab(Continuous):
    r"""Spike-and-slab prior of the precision matrices of several groups, of edges and of differences between groups.

    See the table at the top of this module; relations are summed out. Given the matrices they are independent,
    :class:`Relations`.

    ========  ==========================================
    Support   (G, p, p), each symmetric positive definite
    ========  ==========================================

    Parameters
    ----------
    groups : int
        Number G of groups, at least 2.
    p : int
        Number of variables.
    edge_probability, difference_probability : float, (p, p) array_like or ``pm.Beta.dist``, default 0.5
        Nominal probability of an edge, and that it differs between groups if it is there; 0 forbids and 1 requires either. A
        beta distribution makes a variable of the model, which is drawn with the matrices.
    fixed : (p, p) array_like, optional
        Zeros forbid and ones require edges, if ``edge_probability`` is a beta distribution.
    spike_scale, slab_scale : float
        Standard deviations of the shared part without and with an edge.
    equal_scale, difference_scale : float
        Standard deviations of each contrast of equal and of different elements. Two groups differ by
        sqrt(2) times a contrast.
    diagonal_rate : float, default 0.5
        Rate of the exponential distribution of the diagonals.
    start : callable, optional
        Returns the (G, p, p) tensor that chains start from. Unit matrices unless given.

    References
    ----------
    Marsman, M., Waldorp, L. J., Sekulovski, N. and Haslbeck, J. M. B. (2025). Bayes factor tests for group differences in ordinal and
    binary graphical models. *Psychometrika* 90(5), 1809-1842, for the shared part and contrasts.

    Wang, H. (2015). Scaling it up: stochastic search structure learning in graphical models. *Bayesian Analysis* 10(2), 351-377.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            precision = bs.distributions.GroupedSpikeSlab("precision", 2, 5)
            bs.distributions.Relations("relation", precision)
            pm.MvNormal("x", np.zeros(5), tau=precision[0], observed=first)
            pm.MvNormal("y", np.zeros(5), tau=precision[1], observed=second)
    """

    rv_type = GroupedSpikeSlabRV
    rv_op = GroupedSpikeSlabRV.build

    def __new__(cls, name, groups, p, *probabilities, fixed=None, **kwargs):
        """Register the prior, and those of probabilities that have one."""
        probabilities = with_probabilities(
            name, groups, p, probabilities, fixed, kwargs, CONTRAST_SCALES
        )
        return super().__new__(cls, name, groups, p, *probabilities, **kwargs)

    @classmethod
    def dist(
        cls,
        groups,
        p,
        edge_probability=0.5,
        difference_probability=0.5,
        *,
        spike_scale=0.02,
        slab_scale=1.0,
        equal_scale=0.02,
        difference_scale=1.0,
        diagonal_rate=0.5,
        **kwargs,
    ):
        """Create the distribution without a model."""
        scales = {
            "spike_scale": spike_scale,
            "slab_scale": slab_scale,
            "equal_scale": equal_scale,
            "difference_scale": difference_scale,
        }
        probabilities = {
            "edge_probability": edge_probability,
            "difference_probability": difference_probability,
        }
        params = checked_parameters(groups, p, probabilities, scales, diagonal_rate)
        return super().dist(params, **kwargs)

    def support_point(rv, size, edge, difference, spike, slab, small, large, rates):
        """Return the start if it was given, else unit matrices."""
        return matrices_start(rv, size, edge, rates)

    def logp(value, edge, difference, spike, slab, small, large, rates):
        """Log density up to the constant of the cones."""
        parts = relation_log_weights(value, edge, difference, spike, slab, small, large)
        return check_parameters(
            log_density(value, parts, rates),
            spike > 0,
            slab > spike,
            small > 0,
            large > small,
            pt.all(rates > 0, axis=-1),
            msg="0 < spike_scale < slab_scale, 0 < equal_scale < difference_scale, diagonal_rate > 0",
        )


def _strict_upper(matrix):
    p = matrix.shape[-1]
    return pt.switch(pt.eq(pt.triu(pt.ones((p, p)), 1), 1.0), matrix, 0.0)


@_default_transform.register(GroupedSpikeSlabRV)
def _(op, rv):
    groups, p = rv.type.shape[-3], rv.type.shape[-1]
    return GroupedCholesky(groups, p)


class RelationsRV(KernelRV):
    name = "relations"
    signature = "(g,p,p),(p,p),(p,p),(),(),(),()->(e)"
    dtype = "int64"
    _print_name = ("Relations", "\\operatorname{Relations}")

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        p = dist_params[0].shape[-1] if param_shapes is None else param_shapes[0][-1]
        return [p * (p - 1) // 2]

    @classmethod
    def rng_fn(cls, rng, precision, edge, difference, spike, slab, small, large, size):
        """Draw the relation of each pair."""
        from bayesstruct.precision.kernels.row_groups.prior import draw_relations, log_relations

        def core(rng, precision, edge, difference, *scales):
            return draw_relations(rng, precision, log_relations(edge, difference), scales)

        p = precision.shape[-1]
        params = (precision, edge, difference, spike, slab, small, large)
        out = draw_batch(core, rng, (3, 2, 2, 0, 0, 0, 0), params, size, (p * (p - 1) // 2,))
        return out.astype("int64")

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.row_groups.prior import draw_relations, log_relations

        def draw(rng, precision, edge, difference, spike, slab, small, large):
            log_prior = log_relations(edge.copy(), difference.copy())
            scales = (spike.item(), slab.item(), small.item(), large.item())
            return draw_relations(rng, precision.copy(), log_prior, scales)

        return draw


class Relations(Discrete):
    """Relation of each pair given the precision matrices of the groups: 0 absent, 1 equal, 2 different.

    ========  =============================================
    Support   vectors of 0, 1, 2 of length p(p-1)/2, row-major
    ========  =============================================

    Parameters
    ----------
    precision : TensorVariable
        (G, p, p) matrices drawn from :class:`GroupedSpikeSlab`.
    """

    rv_op = RelationsRV()

    @classmethod
    def dist(cls, precision, **kwargs):
        """Create the distribution without a model."""
        owner = getattr(precision, "owner", None)
        if owner is None or not isinstance(owner.op, GroupedSpikeSlabRV):
            raise ValueError("`Relations` needs precision matrices with the GroupedSpikeSlab prior")
        edge, difference, *scales, _ = owner.op.dist_params(owner)
        return super().dist([precision, edge, difference, *scales], **kwargs)

    def support_point(rv, size, *params):
        """Return the most probable relation of each pair."""
        parts = pt.stack([upper(part) for part in relation_log_weights(*params)])
        point = pt.argmax(parts, axis=0).astype("int64")
        return point if rv_size_is_none(size) else pt.full((*size, point.shape[-1]), point)

    def logp(value, *params):
        """Sum of the log probabilities; minus infinity off 0, 1 and 2."""
        parts = relation_log_weights(*params)
        total = log_sum(parts)
        logs = [upper(part - total) for part in parts]
        chosen = pt.switch(pt.eq(value, 2), logs[2], -np.inf)
        chosen = pt.switch(pt.eq(value, 1), logs[1], chosen)
        return pt.switch(pt.eq(value, 0), logs[0], chosen).sum(-1)
