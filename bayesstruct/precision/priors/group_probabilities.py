"""Priors of the probabilities of edges and of differences between groups, which the table then tells."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.continuous import UnitContinuous
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.shape_utils import rv_size_is_none

from bayesstruct.core.distributions import KernelRV
from bayesstruct.core.tensors import as_float, as_square, draw_batch, is_beta
from bayesstruct.precision.priors.checks import refuse_random
from bayesstruct.precision.priors.edge_probability import log_beta

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["GroupProbability", "GroupProbabilityRV", "learned_probabilities"]

EDGE, DIFFERENCE = 0, 1


class GroupProbabilityRV(KernelRV):
    """Random variable of `GroupProbability`."""

    name = "group_probability"
    signature = "(),(),(k),(p,p),(p,p),(s),(g),(),()->()"
    _print_name = ("GroupProbability", "\\operatorname{GroupProbability}")

    @classmethod
    def rng_fn(cls, rng, alpha, beta, other, edge, difference, scales, rates, design, role, size):
        """Draw by rejection or by Gibbs sweeps over the joint prior."""
        from bayesstruct.precision.kernels.row_groups.shares import draw_group_share

        def core(rng, alpha, beta, other, edge, difference, scales, rates, design, role):
            shapes = (float(alpha), float(beta), float(other[0]), float(other[1]))
            own = tuple(map(float, scales)), rates, int(design), int(role)
            return draw_group_share(rng, shapes, edge, difference, *own)

        params = (alpha, beta, other, edge, difference, scales, rates, design, role)
        return draw_batch(core, rng, (0, 0, 1, 2, 2, 1, 1, 0, 0), params, size, ())

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.row_groups.shares import draw_group_share

        def draw(rng, alpha, beta, other, edge, difference, scales, rates, design, role):
            return draw_group_share(
                rng,
                (alpha.item(), beta.item(), other[0], other[1]),
                edge.copy(),
                difference.copy(),
                (scales[0], scales[1], scales[2], scales[3]),
                rates.copy(),
                int(design.item()),
                int(role.item()),
            )

        return draw


class GroupProbability(UnitContinuous):
    r"""Common probability of an edge, or of a difference, in the prior of several groups.

    .. math::

        p(\pi, q) \propto \mathrm{Beta}(\pi; \alpha, \beta) \, \mathrm{Beta}(q; \alpha', \beta') \, C(\pi, q)

    where :math:`C(\pi, q)` is the probability that independent elements form positive definite matrices in all groups. The factor cancels the
    constant of the prior of the matrices, as in :class:`bayesstruct.distributions.EdgeProbability`. This is the distribution of
    :math:`\pi`, or that of :math:`q` given :math:`\pi`; no ``logp`` has the factor. The prior of the matrices makes these variables if it is given beta
    distributions; there is no other use for them.

    Parameters
    ----------
    alpha, beta : float
        Shapes of its nominal beta distribution.
    other : (2,) array_like
        Shapes of that of the difference if this is the edge; zeros if it is not learned.
    edge, difference : (p, p) tensor_like
        Nominal probabilities. Those of this variable are strictly between 0 and 1 where it decides.
    scales : (4,) array_like
        As kernels take them.
    rates : (G,) array_like
        Rates of the diagonals.
    design : int
        Contrasts or indicators, as kernels take it.
    role : int
        0 for edges, 1 for differences.
    """

    rv_op = GroupProbabilityRV()

    @classmethod
    def dist(cls, alpha, beta, other, edge, difference, *, scales, rates, design, role, **kwargs):
        """Create the distribution without a model."""
        params = [alpha, beta, other, edge, difference, scales, rates, float(design), float(role)]
        return super().dist([as_float(value) for value in params], **kwargs)

    def support_point(rv, size, alpha, beta, *_):
        """Return the nominal mean."""
        mean = alpha / (alpha + beta)
        return mean if rv_size_is_none(size) else pt.full(size, mean)

    def logp(value, alpha, beta, *_):
        """Log density of the beta distribution; the constant of the cones is that of the matrices."""
        return check_parameters(
            log_beta(value, alpha, beta), alpha > 0, beta > 0, msg="alpha > 0, beta > 0"
        )


def learned_probabilities(
    name: str, p: int, given: dict, fixed, constants: dict
) -> dict[str, "TensorVariable"]:
    """Put the probabilities that have beta distributions into the model; return the (p, p) matrices that they fill.

    Parameters
    ----------
    name : str
        Of the matrices.
    p : int
    given : dict
        ``edge_probability`` and ``difference_probability``, each a number, a matrix, or a beta distribution.
    fixed : (p, p) array_like or None
        Zeros forbid and ones require edges, if their probability is learned.
    constants : dict
        ``scales``, ``rates`` and ``design`` of `GroupProbability`.
    """
    learned = {option: is_beta(value) for option, value in given.items()}
    first, second = given
    if fixed is not None and not learned[first]:
        raise ValueError("`fixed` goes with a beta `edge_probability`; put 0 and 1 in its matrix")
    shapes = {
        option: _shapes(name, option, value) for option, value in given.items() if learned[option]
    }
    patterns = {option: 0.5 if learned[option] else value for option, value in given.items()}
    if fixed is not None:
        patterns[first] = fixed
    out = {option: as_square(value, p) for option, value in patterns.items()}
    for role, option in enumerate(given):
        if learned[option]:
            other = shapes[second] if role == EDGE and learned[second] else (0.0, 0.0)
            label = _label(name, option)
            matrices = out[first], out[second]
            own = GroupProbability(label, *shapes[option], other, *matrices, role=role, **constants)
            pattern = out[option]
            free = pt.and_(pattern > 0.0, pattern < 1.0)
            out[option] = pt.switch(free, own, pattern)
    return out


def _label(name, option):
    import pymc as pm

    return f"{name}_{option}" if option in pm.modelcontext(None).named_vars else option


def _shapes(name, option, beta) -> tuple[float, float]:
    """Shapes of an unregistered beta distribution."""
    import pymc as pm

    if beta in pm.modelcontext(None).basic_RVs:
        raise ValueError(
            f"`{option}` of {name!r} is the model variable {beta.name!r}; give the unregistered distribution instead, "
            "`pm.Beta.dist(...)`: it needs a density that knows about the precision matrices."
        )
    shapes = beta.owner.op.dist_params(beta.owner)
    refuse_random(**{f"the shapes of {option}": pt.stack(shapes)})
    alpha, scale = (float(np.asarray(s.eval()).item()) for s in shapes)
    return alpha, scale
