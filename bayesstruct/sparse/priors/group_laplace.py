"""Priors whose modes are zero in whole groups of coefficients."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous
from pymc.logprob.abstract import _logprob

from bayesstruct.core.tensors import as_float
from bayesstruct.sparse.penalties.group import Group
from bayesstruct.sparse.penalties.sparse_group import SparseGroup
from bayesstruct.sparse.penalties.structure import Structure
from bayesstruct.sparse.priors.norms import (
    NormRV,
    check_length,
    last_dimension,
    norms,
    nuclear_norms,
    refuse_constant,
    zero,
)

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

__all__ = ["GroupLaplace", "SparseGroupLaplace", "log_sparse_l2"]


class GroupLaplaceRV(NormRV):
    """Groups of coefficients under a norm each."""

    name = "group_laplace"
    signature = "(g)->(p)"
    _print_name = ("GroupLaplace", "\\operatorname{GroupLaplace}")

    def kernel(self):
        """Return the compiled draw."""
        from bayesstruct.sparse.kernels import norm_priors

        if self.structure.penalty.norm == "nuclear":
            return norm_priors.draw_group_nuclear
        return norm_priors.draw_group_linf if self.structure.maximum else norm_priors.draw_group_l2

    def tail(self):
        """Return order and starts of the groups, the number of coefficients, and any shapes."""
        order, start, *shapes = self.structure.arrays
        return (order, start, self.structure.size, *shapes)

    def numba_draw(self):
        """Return the draw for Numba."""
        kernel, arguments = self.kernel(), self.tail()
        if self.structure.penalty.norm == "nuclear":
            return _through_interpreter(*arguments)
        order, start, size = arguments

        def draw(rng, rates):
            return kernel(rng, rates.copy(), order, start, size)

        return draw


def _through_interpreter(order, start, size, shapes):
    """Draw under nuclear norms by a call back to Python.

    The kernel is large, and called directly it is compiled again for every graph. A Python function
    is found by its name when a cached graph is loaded; a compiled one would be compiled once more.
    """
    import numba

    vector = numba.types.float64[::1]

    def draw(rng, rates):
        own = rates.copy()
        with numba.objmode(w=vector):
            w = _draw_nuclear(rng, own, order, start, size, shapes)
        return w

    return draw


def _draw_nuclear(*args):
    from bayesstruct.sparse.kernels import norm_priors

    return norm_priors.draw_group_nuclear(*args)


class SparseGroupLaplaceRV(NormRV):
    """Groups of coefficients under a norm each and an l1 norm together."""

    name = "sparse_group_laplace"
    signature = "(),(g)->(p)"
    _print_name = ("SparseGroupLaplace", "\\operatorname{SparseGroupLaplace}")

    def kernel(self):
        """Return the compiled draw."""
        from bayesstruct.sparse.kernels import norm_priors

        maximum = self.structure.maximum
        return norm_priors.draw_sparse_linf if maximum else norm_priors.draw_sparse_l2

    def numba_draw(self):
        """Return the draw for Numba."""
        kernel, size = self.kernel(), self.structure.size
        order, start = self.structure.arrays

        def draw(rng, rate, group_rates):
            return kernel(rng, rate.item(), group_rates.copy(), order, start, size)

        return draw


class GroupLaplace(Continuous):
    r"""Group-Laplace prior, under which the mode drops whole groups of coefficients.

    .. math::

        p(w) = \prod_A c_A \, \lambda_A^{d_A} \, e^{-\lambda_A \|w_A\|}

    with :math:`c_A = \Gamma(d_A / 2) / (2 \pi^{d_A / 2} \Gamma(d_A))` for the Euclidean norm of a
    group of :math:`d_A` coefficients, :math:`c_A = 1 / (2^{d_A} d_A!)` for the maximum norm, and a
    Pfaffian of rational numbers in :math:`1 / c_A` for the nuclear norm, the sum of the singular
    values of the group as a matrix. With a summed negative log-likelihood the mode is the group lasso,
    :class:`bayesstruct.penalties.Group` with the same arguments.

    ========  ==========================================
    Support   real vectors, one entry for each label
    ========  ==========================================

    Parameters
    ----------
    name : str
    groups : (p,) array_like of int, or list of array_like of int
        Label of the group of each coefficient, or the coefficients of each group; every coefficient
        in one. Constant.
    rate : tensor_like of float, default 1
        :math:`\lambda`, a number for all groups or one for each, in the order of the labels (in the
        last dimension). May be random: the constant is exact.
    norm : {2, numpy.inf, "nuclear"}
        Norm of a group. Under the maximum norm, the mode has groups of equal absolute values; under
        the nuclear norm, of low rank.
    weights : (groups,) array_like, optional
        Positive constants that multiply the rates, such as :math:`\sqrt{d_A}`.
    shapes : (rows, columns), or (groups, 2) array_like of int
        Shapes of the groups as matrices, whose coefficients are in C order in the group; for the nuclear
        norm only.
    **kwargs
        ``dims``, ``shape`` (whose last entry is p; earlier ones make independent copies), ...

    Raises
    ------
    ValueError
        If a coefficient is in no group (the prior would be improper), or as
        :class:`bayesstruct.penalties.Group`, e.g. if shapes do not fit.

    Notes
    -----
    The norm of a group is Gamma(:math:`d_A`, :math:`\lambda_A`) and independent of its direction,
    which is uniform on the sphere of the Euclidean norm, and so are draws. The gradient at zero,
    where the density has a kink, is zero; where the nuclear norm has one, at lower rank, it is that
    of the singular values that are not zero.

    For the nuclear norm of a matrix of sides :math:`k \le n`, the direction comes from the polar
    decomposition W = S Q: S is a Wishart matrix, accepted with the probability of
    :math:`\prod_{i<j} k (s_i + s_j) / 2 \sum_l s_l` in its eigenvalues, and Q is uniform. At n = k of
    2, 3, ..., 7 that accepts 1, 0.7, 0.35, 0.14, 0.04 and 0.008 of the proposals, and more for larger
    n. Where less than one in 150 or so is expected, the singular values come from slice sampling,
    restarted for each draw at those of such a Wishart matrix: 50 sweeps and five for each
    singular value. Averages over draws stop changing after ten sweeps, or one for each singular
    value (matrices of up to 30 x 30).

    References
    ----------
    Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis,
    University of British Columbia, section 5.2. -- Raman, S. et al. (2009). The Bayesian group-Lasso
    for analyzing contingency tables. *ICML*. -- Muirhead, R. J. (1982). *Aspects of multivariate
    statistical theory*. Wiley, theorems 2.1.14 and 3.2.17 (densities of the factors of a matrix).

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            rate = pm.Gamma("rate", 2, 1)
            w = bs.GroupLaplace("w", [0, 0, 0, 1, 1], rate)
            pm.Normal("y", X @ w, 1, observed=y)
    """

    rv_type = GroupLaplaceRV
    rv_op = GroupLaplaceRV.build

    @classmethod
    def dist(cls, groups, rate=1.0, *, norm=2, weights=None, shapes=None, **kwargs):
        """Create the distribution without a model."""
        penalty = Group(1.0, groups, norm=norm, weights=weights, shapes=shapes)
        penalty.log_normalizer()  # refuses an improper prior
        check_length(kwargs.get("shape"), penalty.size)
        rate = as_float(rate, "`rate`")
        refuse_constant("rate", rate)
        rates = last_dimension(rate, penalty.groups.count, "rate")
        if weights is not None:
            rates = rates * penalty.weights
        return super().dist([rates], structure=_structure(penalty), **kwargs)

    support_point = zero


def _structure(penalty):
    plain = Structure.of(penalty)
    if penalty.norm != "nuclear":
        return plain
    return Structure(penalty, plain.members, (*plain.arrays, penalty.shapes))


@_logprob.register(GroupLaplaceRV)
def _group_logp(op, values, rng, size, rates, **kwargs):
    (value,) = values
    structure = op.structure
    unit = structure.penalty
    sizes = np.array([len(group) for group in structure.members], dtype="float64")
    constant = unit.log_normalizer() + sizes @ np.log(unit.weights)  # which are in the rates
    if unit.norm == "nuclear":
        group_norms = nuclear_norms(value, structure)
    else:
        group_norms = norms(value, structure.members, structure.maximum)
    logp = pt.sum(sizes * pt.log(rates) - rates * group_norms, axis=-1) - constant
    return check_parameters(logp, rates > 0, msg="rate > 0")


class SparseGroupLaplace(Continuous):
    r"""Sparse-group prior, under which the mode drops groups, and coefficients within groups.

    .. math::

        p(w) \propto \exp\Bigl(-\lambda \|w\|_1 - \gamma \sum_A a_A \|w_A\|\Bigr)

    With a summed negative log-likelihood the mode is the sparse-group lasso,
    :class:`bayesstruct.penalties.SparseGroup` with the same arguments.

    ========  ==========================================
    Support   real vectors, one entry for each label
    ========  ==========================================

    Parameters
    ----------
    name : str
    groups : (p,) array_like of int, or list of array_like of int
        As in :class:`GroupLaplace`.
    rate : tensor_like of float, default 1
        :math:`\lambda`, of the l1 norm; may be random.
    group_rate : tensor_like of float, default 1
        :math:`\gamma`, of the groups: a number or one for each group; may be random.
    norm : {2, numpy.inf}
        Norm of a group.
    weights : (groups,) array_like, optional
        :math:`a_A`, constants, 1 by default; a group of weight 0 has the l1 norm only.
    **kwargs
        ``dims``, ``shape`` and other arguments of PyMC distributions.

    Raises
    ------
    ValueError
        As :class:`GroupLaplace`.

    Notes
    -----
    The constant depends on the ratio of the rates and is part of the density, so each may be
    random. For the maximum norm it is a beta function; for the Euclidean norm a smooth
    one-dimensional integral, by the trapezoidal rule on a logarithmic scale with some hundred nodes
    (tested to a relative error of 1e-10 up to groups of 1,000).

    Draws are exact. Given the scale of the normal mixture that makes up the Euclidean norm (or the
    bound that does the maximum norm), the coefficients of a group are independent.

    References
    ----------
    Jenatton, R., Mairal, J., Obozinski, G., Bach, F. (2011). Proximal methods for hierarchical
    sparse coding. *JMLR* 12, 2297-2334. -- Xu, X. and Ghosh, M. (2015). Bayesian variable selection
    and estimation for group lasso. *Bayesian Analysis* 10, section 4.
    """

    rv_type = SparseGroupLaplaceRV
    rv_op = SparseGroupLaplaceRV.build

    @classmethod
    def dist(cls, groups, rate=1.0, *, group_rate=1.0, norm=2, weights=None, **kwargs):
        """Create the distribution without a model."""
        penalty = SparseGroup(1.0, groups, group_rate=1.0, norm=norm, weights=weights)
        check_length(kwargs.get("shape"), penalty.size)
        rate, group_rate = as_float(rate, "`rate`"), as_float(group_rate, "`group_rate`")
        refuse_constant("rate", rate)
        refuse_constant("group_rate", group_rate)
        free = np.flatnonzero(~penalty.penalised())
        if len(free):
            raise ValueError(f"Improper prior: coefficient {free[0]} is in no group.")
        rates = last_dimension(group_rate, penalty.groups.count, "group_rate") * penalty.weights
        return super().dist([rate, rates], structure=Structure.of(penalty), **kwargs)

    support_point = zero


@_logprob.register(SparseGroupLaplaceRV)
def _sparse_group_logp(op, values, rng, size, rate, group_rates, **kwargs):
    (value,) = values
    structure = op.structure
    off = structure.penalty.weights == 0
    sizes = np.array([len(group) for group in structure.members])
    # A group of weight zero gets an arbitrary rate where its constant is computed and not used.
    used = pt.switch(off, np.float64(1.0), group_rates)
    ratio = rate[..., None] / used
    integral = _log_sparse_linf if structure.maximum else log_sparse_l2
    constant = pt.switch(
        off,
        sizes * (np.log(2.0) - pt.log(rate[..., None])),
        integral(sizes, ratio) - sizes * pt.log(used),
    )
    group_norms = norms(value, structure.members, structure.maximum)
    logp = -rate * pt.sum(pt.abs(value), axis=-1)
    logp = logp - pt.sum(group_rates * group_norms + constant, axis=-1)
    return check_parameters(
        logp, rate > 0, pt.or_(off, group_rates > 0), msg="rate > 0, group_rate > 0"
    )


def _log_sparse_linf(sizes, ratio):
    r"""Log of the integral of :math:`\exp(-\rho \|w\|_1 - \|w\|_\infty)` over each group."""
    inverse, above = 1.0 / ratio, sizes + 1.0
    beta = pt.gammaln(inverse) + pt.gammaln(above) - pt.gammaln(inverse + above)
    return sizes * (np.log(2.0) - pt.log(ratio)) - pt.log(ratio) + beta


def log_sparse_l2(sizes: np.ndarray, ratio: "TensorVariable") -> "TensorVariable":
    r"""Log of the integral of :math:`\exp(-\rho \|w\|_1 - \|w\|_2)` over each group.

    As in :meth:`bayesstruct.sparse.penalties.norms.Euclidean.log_sparse_integral`, over log u; the
    trapezoidal rule converges exponentially for such a smooth integrand that vanishes on both sides.
    """
    parts = []
    for k, d in enumerate(sizes.tolist()):
        # The peak is at most 1 / sqrt(2 d + 2) narrow; the left side falls at least like u.
        high = 0.5 * np.log(0.5 * (d + 1.0) + 12.0 * np.sqrt(d + 9.0))
        nodes, step = np.linspace(-28.0, high, 1 + _nodes(d), retstep=True)
        u = np.exp(nodes)
        inside = pt.log(pt.erfcx(ratio[..., k, None] * u)) * d
        known = nodes - u * u + d * (nodes + np.log(2.0 * np.sqrt(np.pi)))
        parts.append(pt.logsumexp(known + inside, axis=-1) + np.log(2.0 * step / np.sqrt(np.pi)))
    return pt.stack(parts, axis=-1)


def _nodes(d):
    return int(np.ceil(32.0 * max(7.0, 1.25 * np.sqrt(2.0 * d + 2.0))))
