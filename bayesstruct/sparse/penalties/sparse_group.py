"""The l1 norm and a norm of groups together."""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.sparse.penalties.base import Penalty
from bayesstruct.sparse.penalties.layout import Groups, check_rate, check_weights, norm_name
from bayesstruct.sparse.penalties.norms import Euclidean, Maximum

__all__ = ["SparseGroup"]


@dataclass(frozen=True, eq=False, repr=False)
class SparseGroup(Penalty):
    r"""Sparse groups, :math:`\Omega(w) = \lambda \|w\|_1 + \gamma \sum_A a_A \|w_A\|`.

    Parameters
    ----------
    rate : float
        :math:`\lambda`, of the l1 norm.
    groups : (p,) array_like of int, or list of array_like of int
        As in `Group`. Coordinates in no group have no penalty at all, of either kind.
    group_rate : float
        :math:`\gamma`, of the groups. `with_rate` keeps its ratio to `rate`, and `rate_max` is on
        that ray.
    norm : {2, numpy.inf}
        The norm of the groups. (The proximal map of the nuclear norm does not compose with that of
        the l1 norm.)
    weights : (groups,) array_like, optional
        :math:`a_A`, 1 by default; a group of weight 0 has the l1 norm only.
    size : int, optional
        As in `Group`.

    Raises
    ------
    ValueError
        As `Group`.

    References
    ----------
    Jenatton, R., Mairal, J., Obozinski, G., Bach, F. (2011). Proximal methods for hierarchical
    sparse coding. JMLR 12, 2297-2334: the tree of depth two.

    Examples
    --------
    >>> from bayesstruct.penalties import SparseGroup
    >>> SparseGroup(1.0, [0, 0, 0, 1], group_rate=2.5).prox([4.0, -5.0, 0.5, 3.0])
    array([ 1.5, -2. ,  0. ,  0. ])
    """

    rate: float
    groups: Any
    _: KW_ONLY
    group_rate: float
    norm: Any = 2
    weights: Any = None
    size: int | None = None
    _norm: Any = field(init=False)
    _member: np.ndarray = field(init=False)

    def __post_init__(self):
        groups = Groups.of(self.groups, self.size)
        if groups.count == 0:
            raise ValueError("No coordinate is in a group: all labels are -1.")
        norm = norm_name(self.norm, [2, np.inf])
        fields = {
            "rate": check_rate("rate", self.rate),
            "group_rate": check_rate("group_rate", self.group_rate),
            "groups": groups,
            "norm": norm,
            "weights": check_weights(self.weights, groups.count, "groups"),
            "size": groups.size,
            "_norm": Euclidean() if norm == 2 else Maximum(),
            "_member": groups.spread(np.ones(groups.count, dtype=bool), fill=False),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def with_rate(self, rate: float) -> Self:
        """Return the penalty with both rates scaled, so that ``rate`` is the one of the l1 norm.

        Raises
        ------
        ValueError
            If this penalty's rate is 0 while its group rate is not, which leaves no ratio to keep.
        """
        rate = check_rate("rate", rate)
        if self.rate == 0 and self.group_rate > 0:
            raise ValueError(
                "rate is 0, so there is no ratio of the rates to keep: use Group, or scaled()."
            )
        return self._scaled(rate, rate / self.rate if self.rate > 0 else 0.0)

    def scaled(self, factor: float) -> Self:
        """Return the penalty times a factor."""
        factor = check_rate("factor", factor)
        return self._scaled(self.rate * factor, factor)

    def _scaled(self, rate, factor):
        clone = super().with_rate(rate)
        object.__setattr__(clone, "group_rate", factor * self.group_rate)
        return clone

    def penalised(self, size: int | None = None) -> np.ndarray:
        """Return a mask of the coordinates with a penalty of either kind."""
        if self.rate > 0:
            return self._member.copy()
        return self.groups.spread(self._group_rates > 0, fill=False)

    def blocks(self, size: int | None = None) -> np.ndarray:
        """Return the group of each coordinate."""
        return self.groups.labels()

    def restricted(self, index: np.ndarray) -> "SparseGroup":
        """Return the penalty of some groups."""
        groups, left = self.groups.restricted(index)
        return replace(self, groups=groups, weights=self.weights[left], size=None)

    def support(self, w: ArrayLike) -> np.ndarray:
        """Return a mask of the coordinates that are not zero, nor zeroed by a norm."""
        x = self._vector("w", w)
        start = self.groups.start[:-1]
        on = np.logical_or.reduceat(x[self.groups.order] != 0, start)
        free = self.groups.spread(on | (self._group_rates == 0), fill=True)
        return free & ((x != 0) | ~self._member | (self.rate == 0))

    @property
    def _group_rates(self):
        return self.group_rate * self.weights

    def _entry_rates(self):
        return np.where(self._member, self.rate, 0.0)

    def _gather(self, *vectors):
        return (*(vector[self.groups.order] for vector in vectors), self.groups.start)

    def _value(self, w):
        norms = self._norm.norms(*self._gather(w))
        return self.rate * np.abs(w[self._member]).sum() + self._group_rates @ norms

    def _prox(self, v, step, out):
        rates = step * self._entry_rates(), step * self._group_rates
        self._norm.sparse_prox(v, rates[0], self.groups, rates[1], out)

    def _dual(self, g):
        return self._norm.critical(*self._gather(g), self.rate, self._group_rates)

    def _nearest(self, w, y):
        rates = self._entry_rates()
        out = np.where(w != 0, y - np.sign(w) * rates, y - np.clip(y, -rates, rates))
        x, z, start = self._gather(w, out)
        out[self.groups.order] = self._norm.nearest(x, z, start, self._group_rates)
        return out

    def _size_of_gradient(self, e):
        worst = np.abs(e[~self._member]).max(initial=0.0)
        return max(worst, self._norm.dual_norms(*self._gather(e)).max())

    def _slope(self, w, d):
        entries = self._entry_rates() @ np.where(w != 0, np.sign(w) * d, np.abs(d))
        return entries + self._group_rates @ self._norm.slopes(*self._gather(w, d))

    def _log_normalizer(self, size):
        return sum(
            self._log_integral(d, rate)
            for d, rate in zip(self.groups.sizes.tolist(), self._group_rates.tolist(), strict=True)
        )

    def _log_integral(self, d, group_rate):
        if group_rate == 0:
            return d * np.log(2 / self.rate)
        if self.rate == 0:
            return self._norm.log_integrals(np.array([d]))[0] - d * np.log(group_rate)
        ratio = self.rate / group_rate
        return self._norm.log_sparse_integral(d, ratio) - d * np.log(group_rate)
