"""Prior of a precision matrix with nuclear norms of the blocks between groups of columns."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous
from pymc.distributions.transforms import _default_transform
from pytensor.tensor.blockwise import Blockwise

from bayesstruct.core.tensors import as_float, as_square, draw_batch
from bayesstruct.precision.ops.nuclear import BlockNorms
from bayesstruct.precision.ops.packed_cholesky import PackedCholesky
from bayesstruct.precision.priors.checks import refuse_random, refuse_wrong
from bayesstruct.precision.priors.implied import prior_sweeps
from bayesstruct.precision.priors.precision import (
    PrecisionRV,
    exponential_diagonal,
    inside_cone,
    start_point,
    upper_sum,
)

__all__ = ["GraphicalNuclearLasso", "GraphicalNuclearLassoRV", "implied_nuclear_probability"]

_SEED = 20100601  # fixed: equal models give equal Bayes factors
# Elements that are drawn for prior probabilities, and the most sweeps of ten columns and more.
_NUMBERS, _SWEEPS = 1_000_000, 1_000


class GraphicalNuclearLassoRV(PrecisionRV):
    """Random variable of `GraphicalNuclearLasso`."""

    name = "graphical_nuclear_lasso"
    signature = "(p,p),(p),(b,b),(),()->(p,p)"
    _print_name = ("GraphicalNuclearLasso", "\\operatorname{GraphicalNuclearLasso}")

    @classmethod
    def rng_fn(cls, rng, rates, labels, block_rates, diagonal_rate, scale, size):
        """Draw by Gibbs sweeps without data."""
        from bayesstruct.precision.kernels.nuclear import draw_nuclear

        def core(rng, rates, labels, block_rates, diagonal_rate, scale):
            places = labels.astype(np.int64)
            return scale * draw_nuclear(rng, rates, places, block_rates, diagonal_rate)

        params = (rates, labels, block_rates, diagonal_rate, scale)
        return draw_batch(core, rng, (2, 1, 2, 0, 0), params, size, rates.shape[-2:])

    def numba_draw(self):
        """Return the draw for Numba."""
        from bayesstruct.precision.kernels.nuclear import draw_nuclear

        def draw(rng, rates, labels, block_rates, diagonal_rate, scale):
            return scale.item() * draw_nuclear(
                rng,
                rates.copy(),
                labels.astype(np.int64),
                block_rates.copy(),
                diagonal_rate.item(),
            )

        return draw


class GraphicalNuclearLasso(Continuous):
    r"""Prior of a precision matrix in which few factors connect two blocks of columns.

    .. math::

        p(K) \propto \prod_{i<j} e^{-\lambda e_{ij} |k_{ij}|} \prod_i e^{-d k_{ii}}
            \prod_{a<b} e^{-\lambda \tau_{ab} \|K_{ab}\|_*} \; 1\{K \succ 0\}

    with the nuclear norm, the sum of the singular values, of the elements between two blocks. Its posterior mode under normal rows
    is :func:`bayesstruct.solvers.blockwise_graphical_lasso` with ``norm="nuclear"``, in which blocks have low ranks; draws
    have full ranks. The constant that makes the density integrate to one is left out of ``logp``; it does not depend on
    ``rate`` while ``diagonal_rate`` keeps its default, so that ``rate`` may then be a random variable. Prior draws are
    made by Gibbs sweeps from a diagonal start.

    ========  ==========================================
    Support   symmetric positive definite (p, p)
    ========  ==========================================

    Parameters
    ----------
    blocks : sequence of length p
        Block of each column.
    rate : tensor_like of float, default 1
        Common factor :math:`\lambda` of all rates; positive.
    entry_rates : float or (p, p) array_like, optional
        Rates e of the absolute values in multiples of `rate`; 1 within blocks and 0 between them unless given.
    block_rates : float or (blocks, blocks) array_like, default 1
        Rates :math:`\tau` of the norms in multiples of `rate`, symmetric and in the order of the sorted blocks; the diagonal is
        not used.
    diagonal_rate : float, optional
        Rate :math:`d` of the exponential distribution of the diagonal; ``rate / 2`` unless given.
    start : callable, optional
        Returns the (p, p) tensor that chains start from; its random parts are drawn anew for each
        chain (:class:`bayesstruct.ops.BootstrapStart`). The identity unless given.

    References
    ----------
    Schmidt, M. (2010). *Graphical model structure learning with l1-regularization*. PhD thesis, University of British
    Columbia, section 5.6.

    Gilks, W., Wild, P. (1992). Adaptive rejection sampling for Gibbs sampling. *Journal of the Royal Statistical Society C* 41(2),
    337-348, for the draws of elements.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            precision = bs.distributions.GraphicalNuclearLasso("precision", [0, 0, 0, 1, 1])
            pm.MvNormal("x", np.zeros(5), tau=precision, observed=rows)
    """

    rv_type = GraphicalNuclearLassoRV
    rv_op = GraphicalNuclearLassoRV.build

    @classmethod
    def dist(
        cls,
        blocks,
        rate=1.0,
        *,
        entry_rates=None,
        block_rates=1.0,
        diagonal_rate=None,
        **kwargs,
    ):
        """Create the distribution without a model."""
        labels, entries, between = _rates(blocks, entry_rates, block_rates)
        p, rate = len(labels), as_float(rate)
        refuse_wrong(rate=rate)
        if diagonal_rate is None:
            params = [as_square(entries, p), as_float(between), as_float(0.5), 1.0 / rate]
        else:
            diagonal_rate = as_float(diagonal_rate)
            refuse_random(rate=rate, diagonal_rate=diagonal_rate)
            refuse_wrong(diagonal_rate=diagonal_rate)
            params = [rate * as_square(entries, p), rate * between, diagonal_rate, as_float(1.0)]
        rates, between, diagonal_rate, scale = params
        labels = as_float(labels)
        return super().dist([rates, labels, between, diagonal_rate, scale], **kwargs)

    def support_point(rv, size, rates, labels, block_rates, diagonal_rate, scale):
        """Return the start if it was given, else the identity times the scale."""
        return start_point(rv, size, rates, scale)

    def logp(value, rates, labels, block_rates, diagonal_rate, scale):
        """Log density up to a constant."""
        p = value.shape[-1]
        scaled = value / scale[..., None, None]
        absolute = upper_sum(-rates * pt.abs(scaled))
        norms = Blockwise(BlockNorms())(scaled, labels, block_rates)
        jacobian = -0.5 * p * (p + 1) * pt.log(scale)
        blocks = -0.5 * norms.sum(axis=(-2, -1))
        total = absolute + blocks + exponential_diagonal(scaled, diagonal_rate) + jacobian
        return check_parameters(
            inside_cone(total, value),
            pt.all(rates >= 0, axis=(-2, -1)),
            pt.all(block_rates >= 0, axis=(-2, -1)),
            diagonal_rate > 0,
            scale > 0,
            msg="rate > 0, entry_rates >= 0, block_rates >= 0, diagonal_rate > 0",
        )


def implied_nuclear_probability(
    blocks: Sequence[Any],
    negligible: float,
    *,
    entry_rates: Any = None,
    block_rates: Any = 1.0,
    diagonal_ratio: float = 0.5,
) -> np.ndarray:
    """Prior probability that a partial correlation exceeds ``negligible`` in absolute value.

    Parameters
    ----------
    blocks, entry_rates, block_rates
        As of `GraphicalNuclearLasso`.
    negligible : float
        Bound on the absolute partial correlation.
    diagonal_ratio : float
        Rate of the diagonal in multiples of ``rate``.

    Returns
    -------
    numpy.ndarray
        Vector of length p(p-1)/2, upper triangle row by row, from Gibbs draws of the prior: its Monte Carlo error is near .01 for 3
        to 10 columns and .02 for more.
    """
    labels, entries, between = _rates(blocks, entry_rates, block_rates)
    key = tuple(labels.tolist()), entries.tobytes(), between.tobytes()
    shares = _implied(*key, float(diagonal_ratio), float(negligible))
    return np.array(shares)[np.triu_indices(len(labels), 1)]


@lru_cache(maxsize=16)
def _implied(labels, entries, between, diagonal_rate, negligible):
    from bayesstruct.precision.kernels.nuclear import sweep_nuclear_prior

    p, count = len(labels), max(labels) + 1
    rates, between = (np.frombuffer(x).copy() for x in (entries, between))
    prior = rates.reshape(p, p), np.array(labels), between.reshape(count, count), diagonal_rate
    sweeps = prior_sweeps(p, _NUMBERS, 100, _SWEEPS)
    return np.round(
        sweep_nuclear_prior(np.random.default_rng(_SEED), *prior, negligible, sweeps)[1], 6
    )


def _rates(blocks, entry_rates, block_rates):
    """Label of each column, rates of the elements and of the blocks; raise if they are malformed or give no prior."""
    names, labels = np.unique(np.asarray(blocks), return_inverse=True)
    if labels.ndim != 1 or len(labels) < 2:
        raise ValueError("`blocks` must have the block of each column, of at least two columns")
    same, count = labels[:, None] == labels, len(names)
    entries = _matrix("entry_rates", same if entry_rates is None else entry_rates, len(same))
    between = _matrix("block_rates", block_rates, count)
    for name, value in ("entry_rates", entries), ("block_rates", between):
        if not (np.isfinite(value).all() and (value >= 0).all() and (value == value.T).all()):
            raise ValueError(f"`{name}` must be finite, not negative, and symmetric")
    if not (
        (entries > 0) | (between[labels][:, labels] > 0) & ~same | np.eye(len(labels), dtype=bool)
    ).all():
        raise ValueError(
            "each element needs a rate of its own, or one of its block: its prior would be improper"
        )
    np.fill_diagonal(between, 0.0)
    return labels, entries, between


@_default_transform.register(GraphicalNuclearLassoRV)
def _(op, rv):
    return PackedCholesky(n=rv.type.shape[-1] or rv.shape[-1])


def _matrix(name, value, size):
    """Rates as a (size, size) array."""
    value = np.asarray(value, dtype="float64")
    if value.shape not in ((), (size, size)):
        raise ValueError(
            f"`{name}` must be a number or a {size} x {size} matrix, it has shape {value.shape}"
        )
    return np.full((size, size), value)
