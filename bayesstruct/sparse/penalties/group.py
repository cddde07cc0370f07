"""Norms of disjoint groups of coefficients."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.sparse.penalties.base import Penalty
from bayesstruct.sparse.penalties.layout import Groups, check_rate, check_weights, norm_name
from bayesstruct.sparse.penalties.norms import Euclidean, Maximum, Nuclear

__all__ = ["Group"]


@dataclass(frozen=True, eq=False, repr=False)
class Group(Penalty):
    r"""A norm of each group, :math:`\Omega(w) = \lambda \sum_A a_A \|w_A\|`.

    Parameters
    ----------
    rate : float
        :math:`\lambda`, the rate of the group-Laplace prior.
    groups : (p,) array_like of int, or list of array_like of int
        The label of the group of each coordinate, -1 for those without penalty; or the coordinates
        of each group, those in none being without penalty.
    norm : {2, numpy.inf, "nuclear"}
        The norm: Euclidean, maximum, or sum of the singular values of the group as a matrix.
    weights : (groups,) array_like, optional
        :math:`a_A`, 1 by default, in the order of the labels or of the list; 0 is no penalty.
    shapes : (rows, columns), or one such pair for each group
        Of the matrices, whose coordinates are in C order in the group; for the nuclear norm only.
    size : int, optional
        Number of coordinates, where a list of groups does not reach the last one.

    Raises
    ------
    ValueError
        If the rate is negative or not finite, the groups overlap or point outside of the
        coordinates, weights or shapes do not fit, or the norm is unknown.

    References
    ----------
    Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis,
    University of British Columbia, chapters 3 and 5.

    Examples
    --------
    >>> from bayesstruct.penalties import Group
    >>> penalty = Group(1.0, [0, 0, 1, -1])
    >>> penalty.prox([3.0, 4.0, 0.5, 9.0])
    array([2.4, 3.2, 0. , 9. ])
    >>> penalty.rate_max([3.0, 4.0, 0.5, 9.0])
    5.0
    """

    rate: float
    groups: Any
    _: KW_ONLY
    norm: Any = 2
    weights: Any = None
    shapes: Any = None
    size: int | None = None
    _used: Groups = field(init=False)
    _weights: np.ndarray = field(init=False)
    _norm: Any = field(init=False)

    def __post_init__(self):
        rate, groups = check_rate("rate", self.rate), Groups.of(self.groups, self.size)
        weights = check_weights(self.weights, groups.count, "groups")
        kind = norm_name(self.norm, [2, np.inf, "nuclear"])
        if kind != "nuclear" and self.shapes is not None:
            raise ValueError("shapes is for norm='nuclear' only.")
        used = groups.keep(weights > 0)
        shapes = _shapes(self.shapes, groups) if kind == "nuclear" else None
        fields = {
            "rate": rate,
            "groups": groups,
            "norm": kind,
            "weights": weights,
            "shapes": shapes,
            "size": groups.size,
            "_used": used,
            "_weights": weights[weights > 0],
            "_norm": _norm(kind, shapes, weights > 0),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def penalised(self, size: int | None = None) -> np.ndarray:
        """Return a mask of the coordinates in groups of positive weight."""
        return self._used.spread(np.full(self._used.count, self.rate > 0), fill=False)

    def blocks(self, size: int | None = None) -> np.ndarray:
        """Return the group of each coordinate."""
        return self.groups.labels()

    def restricted(self, index: np.ndarray) -> "Group":
        """Return the penalty of some groups."""
        groups, left = self.groups.restricted(index)
        shapes = self.shapes[left] if self.norm == "nuclear" else None
        return Group(self.rate, groups, norm=self.norm, weights=self.weights[left], shapes=shapes)

    def support(self, w: ArrayLike) -> np.ndarray:
        """Return a mask of the coordinates in groups that are not zero, or without penalty."""
        x = self._vector("w", w)
        if self.rate == 0 or not self._used.count:
            return np.ones(len(x), dtype=bool)
        on = np.logical_or.reduceat(x[self._used.order] != 0, self._used.start[:-1])
        return self._used.spread(on, fill=True)

    def _gather(self, *vectors):
        return (*(vector[self._used.order] for vector in vectors), self._used.start)

    def _value(self, w):
        if not self._used.count:
            return 0.0
        return self.rate * (self._weights @ self._norm.norms(*self._gather(w)))

    def _prox(self, v, step, out):
        self._norm.prox(v, self._used, step * self.rate * self._weights, out)

    def _dual(self, g):
        if not self._used.count:
            return 0.0
        return (self._norm.dual_norms(*self._gather(g)) / self._weights).max() / self.rate

    def _nearest(self, w, y):
        out = y.copy()
        if self._used.count:
            x, z, start = self._gather(w, y)
            out[self._used.order] = self._norm.nearest(x, z, start, self.rate * self._weights)
        return out

    def _size_of_gradient(self, e):
        worst = np.abs(e[~self.penalised()]).max(initial=0.0)
        if not self._used.count:
            return worst
        return max(worst, self._norm.dual_norms(*self._gather(e)).max())

    def _slope(self, w, d):
        if not self._used.count:
            return 0.0
        return self.rate * (self._weights @ self._norm.slopes(*self._gather(w, d)))

    def _log_normalizer(self, size):
        sizes = self._used.sizes
        scale = sizes * np.log(self.rate * self._weights)
        return (self._norm.log_integrals(sizes) - scale).sum()


def _norm(name, shapes, used):
    if name == "nuclear":
        return Nuclear(shapes[used])
    return Euclidean() if name == 2 else Maximum()


def _shapes(shapes, groups):
    if shapes is None:
        raise ValueError("norm='nuclear' needs shapes, the (rows, columns) of the groups.")
    shapes = np.atleast_2d(np.asarray(shapes))
    if shapes.dtype.kind not in "iu" or shapes.shape[1:] != (2,) or shapes.min() < 1:
        raise ValueError(
            "shapes must be (rows, columns), positive integers, or one for each group."
        )
    if len(shapes) == 1:
        shapes = np.repeat(shapes, groups.count, axis=0)
    if len(shapes) != groups.count:
        raise ValueError(f"There are {len(shapes)} shapes for {groups.count} groups.")
    wrong = np.flatnonzero(shapes.prod(axis=1) != groups.sizes)
    if len(wrong):
        g = wrong[0]
        raise ValueError(
            f"Group {g} has {groups.sizes[g]} coordinates, which is not {shapes[g, 0]} times "
            f"{shapes[g, 1]}."
        )
    return shapes.astype(np.int64)
