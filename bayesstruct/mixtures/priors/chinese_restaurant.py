r"""Partitions of objects into any number of clusters.

See :mod:`bayesstruct.mixtures.kernels.chinese_restaurant` for the distribution.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import seeded_draw
from bayesstruct.core.tails import poisson_quantile
from bayesstruct.core.tensors import as_float
from bayesstruct.data.arguments import whole_number
from bayesstruct.features.priors.indian_buffet import constant_number
from bayesstruct.mixtures.ops import clusters_of

__all__ = ["ChineseRestaurant", "ChineseRestaurantRV", "default_max_clusters"]


def default_max_clusters(n: int, alpha: float) -> int:
    """Return a number of clusters that a draw of the prior exceeds with probability below 1e-6."""
    from bayesstruct.mixtures.kernels.chinese_restaurant import mean_clusters

    # There is always one cluster; the number of others is a sum of independent 0/1 variables, whose tail
    # is below that of a Poisson variable with the same mean (Hoeffding 1956).
    others = poisson_quantile(mean_clusters(n, alpha) - 1.0, 1e-6) + 2 if n > 1 else 0
    return int(min(max(1 + others, 5), n))


@dataclass(frozen=True)
class _Labels:
    """Draws of the labels of n objects."""

    n: int
    max_clusters: int
    dtype: ClassVar = "int64"
    ndims: ClassVar = (0,)

    @property
    def shape(self):
        return (self.n,)

    def __call__(self, rng, out, alpha):
        from bayesstruct.mixtures.kernels.chinese_restaurant import check_mass, draw_labels

        check_mass(float(alpha))
        for labels in out:
            labels[:] = draw_labels(rng, len(labels), float(alpha))
            if (used := labels.max() + 1) > self.max_clusters:
                raise ValueError(
                    f"a draw of ChineseRestaurant has {used} clusters, more than the maximum number "
                    f"{self.max_clusters}: set `max_clusters` to more"
                )


class ChineseRestaurantRV(GraphRV):
    """Labels of a partition, in the order of their appearance."""

    extended_signature = "[rng],[size],()->[rng],(n)"
    _print_name = ("ChineseRestaurant", "\\operatorname{ChineseRestaurant}")

    options = ("objects", "max_clusters")

    @classmethod
    def build(cls, rng, size, alpha, *, objects, max_clusters):
        """Build the graph of a draw."""
        return seeded_draw(_Labels(objects, max_clusters), rng, size, [alpha])


class ChineseRestaurant(Discrete):
    r"""Partition of n objects into any number of clusters.

    .. math::

        p(c) = \alpha^K \frac{\Gamma(\alpha)}{\Gamma(n + \alpha)} \prod_k (m_k - 1)!

    ========  =====================================================================================
    Support   (n,) labels in the order of their appearance: the first is 0, and each is at most one
              more than the largest before it
    Mean      there are :math:`\sum_i \alpha / (\alpha + i)` clusters, i from 0 to n - 1
    ========  =====================================================================================

    Parameters
    ----------
    name : str
    alpha : tensor_like of float
        Mass, above 0; may be a random variable. Two objects are in one cluster with probability
        :math:`1 / (1 + \alpha)`.
    observations : int
        n.
    max_clusters : int, optional
        Maximum number of clusters. The distribution is not truncated: a draw with more clusters raises an
        error. By default a draw from the prior has more with probability below 1e-6, which requires an
        `alpha` that is a number.
    **kwargs
        ``dims`` and the like.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, or a draw has more clusters than the maximum number.

    References
    ----------
    Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review.
    *JMLR* 12, 1185-1224, equation 5.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            alpha = pm.Gamma("alpha", 1, 1)
            cluster = bs.ChineseRestaurant("cluster", alpha, observations=100, max_clusters=30)
    """

    rv_type = ChineseRestaurantRV
    rv_op = ChineseRestaurantRV.rv_op

    @classmethod
    def dist(cls, alpha, *, observations, max_clusters=None, **kwargs):
        """Create the distribution without a model."""
        from bayesstruct.mixtures.kernels.chinese_restaurant import check_mass

        n = whole_number("observations", observations, 1)
        alpha = as_float(alpha)
        known = constant_number(alpha)
        if known is not None:
            check_mass(known)
        if max_clusters is None:
            if known is None:
                raise ValueError(
                    "`max_clusters`, the maximum number of clusters, must be given if alpha is random"
                )
            max_clusters = default_max_clusters(n, known)
        most = whole_number("max_clusters", max_clusters, 1)
        return super().dist([alpha], objects=n, max_clusters=most, **kwargs)

    def support_point(rv, *_):
        """Return one cluster that has all objects."""
        return pt.zeros(rv.shape, dtype="int64")


@_logprob.register(ChineseRestaurantRV)
def _restaurant_logp(op, values, rng, size, alpha, **kwargs):
    (value,) = values
    n = op.objects
    value = pt.specify_shape(value, (*(None,) * (value.type.ndim - 1), n))
    clusters = clusters_of(value, op.max_clusters)
    counts = clusters.counts
    used = pt.gt(counts, 0.0)
    sizes = pt.where(used, pt.gammaln(pt.maximum(counts, 1.0)), 0.0).sum(axis=-1)
    total = clusters.used * pt.log(alpha) + sizes + pt.gammaln(alpha) - pt.gammaln(n + alpha)
    return pt.where(clusters.ordered, total, -np.inf)
