"""Prior whose mode is a subtree of nested groups of coefficients."""

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous
from pymc.logprob.abstract import _logprob

from bayesstruct.core.tensors import as_float
from bayesstruct.sparse.penalties.structure import Structure
from bayesstruct.sparse.penalties.tree import Tree
from bayesstruct.sparse.priors.norms import NormRV, check_length, norms, refuse_constant, zero
from bayesstruct.sparse.priors.tree_constants import log_constant

__all__ = ["TreeLaplace"]


class TreeLaplaceRV(NormRV):
    """Nested groups of coefficients under a norm each."""

    name = "tree_laplace"
    signature = "()->(p)"
    _print_name = ("TreeLaplace", "\\operatorname{TreeLaplace}")

    def kernel(self):
        """Return the compiled draw."""
        from bayesstruct.sparse.kernels import norm_priors

        return norm_priors.draw_tree_linf if self.structure.maximum else norm_priors.draw_tree_l2

    def numba_draw(self):
        """Return the draw for Numba."""
        kernel, size = self.kernel(), self.structure.size
        weights, order, start, parent = self.structure.arrays

        def draw(rng, rate):
            return kernel(rng, rate.item(), weights, order, start, parent, size)

        return draw


class TreeLaplace(Continuous):
    r"""Prior of nested groups, under which the mode is a subtree at the root.

    .. math::

        p(w) = \frac{\lambda^p}{C} \exp\Bigl(-\lambda \sum_g a_g \|w_g\|\Bigr)

    where any two groups are nested or disjoint. When a group of the mode is zero, so is everything
    inside it. With a summed negative log-likelihood the mode is the tree-structured lasso,
    :class:`bayesstruct.penalties.Tree` with the same arguments.

    ========  ==========================================
    Support   real vectors
    ========  ==========================================

    Parameters
    ----------
    name : str
    groups : list of array_like of int
        Coefficients of each group, in any order; every coefficient in one at least. Constant.
    rate : tensor_like of float, default 1
        :math:`\lambda`; may be random.
    parents : (p,) array_like of int
        Instead of ``groups``: parent of each coefficient, -1 for roots. There is a group of each
        coefficient with all of its descendants.
    norm : {2, numpy.inf}
        Norm of a group.
    weights : (groups,) array_like, optional
        :math:`a_g`, constants, 1 by default; a group of weight 0 is ignored.
    **kwargs
        ``dims``, ``shape`` (whose last entry is p) and other arguments of PyMC distributions.

    Raises
    ------
    ValueError
        If a coefficient is in no group (the prior would be improper), or as
        :class:`bayesstruct.penalties.Tree`.

    Notes
    -----
    The constant C has no closed form. It is computed when the density is built, by one-dimensional
    integrals from the leaves to the root (:mod:`bayesstruct.sparse.priors.tree_constants`), to about
    1e-8 for each coefficient. It does not depend on the rate.

    Draws come from a Gibbs sampler for the mixture that makes up the norms (of squares for the
    Euclidean, of bounds for the maximum norm), restarted for every draw and run for a fixed
    number of sweeps; the value of the penalty, Gamma(p, rate), is drawn exactly. Averages over draws
    stop changing after some ten sweeps for the Euclidean and at most two for each coefficient for the
    maximum norm (trees of up to 60 coefficients); 100, respectively 100 and ten for each
    coefficient, are run.

    References
    ----------
    Jenatton, R., Mairal, J., Obozinski, G., Bach, F. (2011). Proximal methods for hierarchical
    sparse coding. *JMLR* 12, 2297-2334. -- Kyung, M., Gill, J., Ghosh, M., Casella, G. (2010).
    Penalized regression, standard errors, and Bayesian lassos. *Bayesian Analysis* 5, 369-411 (the
    mixtures).
    """

    rv_type = TreeLaplaceRV
    rv_op = TreeLaplaceRV.build

    @classmethod
    def dist(cls, groups=None, rate=1.0, *, parents=None, norm=2, weights=None, **kwargs):
        """Create the distribution without a model."""
        if (groups is None) == (parents is None):
            raise ValueError("give either `groups` or `parents`")
        if parents is not None:
            penalty = Tree.from_parents(1.0, parents, norm=norm, weights=weights)
        else:
            penalty = Tree(1.0, groups, norm=norm, weights=weights)
        penalty.log_normalizer()  # refuses an improper prior
        check_length(kwargs.get("shape"), penalty.size)
        rate = as_float(rate, "`rate`")
        refuse_constant("rate", rate)
        return super().dist([rate], structure=Structure.of(penalty), **kwargs)

    support_point = zero


@_logprob.register(TreeLaplaceRV)
def _logp(op, values, rng, size, rate, **kwargs):
    (value,) = values
    structure = op.structure
    weights = structure.arrays[0]
    penalty = pt.sum(weights * norms(value, structure.members, structure.maximum), axis=-1)
    logp = np.float64(structure.size) * pt.log(rate) - rate * penalty - log_constant(structure)
    return check_parameters(logp, rate > 0, msg="rate > 0")
