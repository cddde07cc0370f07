"""Norms of nested groups of coefficients."""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np

from numpy.typing import ArrayLike

from bayesstruct.sparse.penalties.base import TIED, Penalty
from bayesstruct.sparse.penalties.layout import (
    TreeGroups,
    check_rate,
    check_weights,
    listed,
    norm_name,
)

__all__ = ["Tree"]

_SHARE = 20  # blocks hold at most one in so many coordinates


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Penalty):
    r"""A norm of each of nested groups, :math:`\Omega(w) = \lambda \sum_g a_g \|w_g\|`.

    Any two groups are nested or disjoint. When a group is zero, so is everything inside it: the
    coefficients that are left make a subtree at the root.

    Parameters
    ----------
    rate : float
        :math:`\lambda`.
    groups : list of array_like of int
        The coordinates of each group, in any order. Those in no group are without penalty.
    norm : {2, numpy.inf}
        Euclidean or maximum norm, for both of which one pass is exact.
    weights : (groups,) array_like, optional
        :math:`a_g`, 1 by default; a group of weight 0 is ignored.
    size : int, optional
        Number of coordinates, where the groups do not reach the last one.

    Raises
    ------
    ValueError
        If two groups are neither nested nor disjoint, and as in `Group`.

    See Also
    --------
    Tree.from_parents : the same from the parent of each coordinate, for large trees.

    Notes
    -----
    `log_normalizer` is known up to a constant that depends on groups, norm and weights, not on the
    rate: it returns :math:`-d \log \lambda`. Values, proximal maps and dual norms take time
    O(p log p) at most; the other methods, for the maximum norm, take the sum of the sizes of the
    groups.

    References
    ----------
    Jenatton, R., Mairal, J., Obozinski, G., Bach, F. (2011). Proximal methods for hierarchical
    sparse coding. JMLR 12, 2297-2334.

    Examples
    --------
    >>> from bayesstruct.penalties import Tree
    >>> Tree(1.0, [[0, 1, 2], [1], [2]]).prox([3.0, 5.0, 0.5])
    array([2.4, 3.2, 0. ])
    """

    rate: float
    groups: Any
    _: KW_ONLY
    norm: Any = 2
    weights: Any = None
    size: Any = None
    _weights: np.ndarray = field(init=False)
    _norm: Any = field(init=False)

    def __post_init__(self):
        rate, norm = check_rate("rate", self.rate), norm_name(self.norm, [2, np.inf])
        groups, weights = self.groups, self.weights
        if not isinstance(groups, TreeGroups):
            groups = listed("groups", groups)
            weights = check_weights(weights, len(groups), "groups")
            groups = TreeGroups.of(groups, self.size, weights)
        fields = {
            "rate": rate,
            "groups": groups,
            "norm": norm,
            "weights": weights,
            "size": groups.size,
            "_weights": weights[groups.given],
            "_norm": _tree_norm(norm, groups.deep),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_parents(
        cls, rate: float, parents: ArrayLike, *, norm=2, weights: ArrayLike | None = None
    ) -> Self:
        """Make a group of each coordinate with all its descendants.

        Parameters
        ----------
        rate : float
            As in `Tree`.
        parents : (p,) array_like of int
            Parent of each coordinate, -1 for roots.
        norm : {2, numpy.inf}
            As in `Tree`.
        weights : (p,) array_like, optional
            As in `Tree`, for the group at each coordinate.

        Raises
        ------
        ValueError
            If a parent is out of range, or parents run in a cycle.
        """
        weights = check_weights(weights, np.size(parents), "coordinates")
        groups = TreeGroups.of_parents(parents, weights)
        return cls(rate, groups, norm=norm, weights=weights)

    def penalised(self, size: int | None = None) -> np.ndarray:
        """Return a mask of the coordinates in groups of positive weight."""
        mask = np.zeros(self.size, dtype=bool)
        mask[self.groups.order] = self.rate > 0
        return mask

    def blocks(self, size: int | None = None) -> np.ndarray:
        """Return the largest groups with at most a twentieth of the coordinates."""
        return self.groups.labels(max(self.size // _SHARE, 1))

    def restricted(self, index: np.ndarray) -> "Tree":
        """Return the penalty of some coordinates, here any ones."""
        groups = self.groups.restricted(index, self._weights)
        return replace(self, groups=groups, weights=self._weights, size=None)

    def support(self, w: ArrayLike) -> np.ndarray:
        """Return a mask of the coordinates all of whose groups are not zero."""
        x = self._vector("w", w)
        mask = np.ones(len(x), dtype=bool)
        if self.rate > 0:
            on = self._maxima(np.abs(x)) > 0
            mask[self.groups.order] = np.repeat(on, np.diff(self.groups.start))
        return mask

    def _maxima(self, x):
        from bayesstruct.sparse.kernels.tree_proximal import tree_maxima

        tree, out = self.groups, np.empty(len(self.groups.parent))
        tree_maxima(x[tree.order], tree.start, tree.parent, out)
        return out

    def _value(self, w):
        return self.rate * (self._weights @ self._norm.norms(w[self.groups.order], self.groups))

    def _prox(self, v, step, out):
        self._norm.prox(v, self.groups, step * self.rate * self._weights, out)

    def _dual(self, g):
        """Bisect to the last bit for the rate at which the proximal map is zero."""
        from bayesstruct.sparse.kernels.tree_proximal import tree_survives

        tree, squared = self.groups, self._norm.name == 2
        x = self._norm.terms(g[tree.order])
        weights, mass = self.rate * self._weights, np.empty(len(tree.parent))

        def survives(t):
            return tree_survives(x, tree.start, tree.parent, t * weights, mass, squared)

        top = tree.parent < 0
        high = (self._norm.sizes(x, tree)[top] / weights[top]).max(initial=0.0)
        while survives(high):  # by rounding only
            high *= 1 + 1e-15
        low = 0.0
        while True:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                return high
            low, high = (middle, high) if survives(middle) else (low, middle)

    def _nearest(self, w, y):
        out, order = y.copy(), self.groups.order
        rates = self.rate * self._weights
        out[order] = self._norm.nearest(w[order], y[order], self.groups, rates)
        return out

    def _size_of_gradient(self, e):
        worst = np.abs(e[~self.penalised()]).max(initial=0.0)
        sizes = self._norm.sizes(self._norm.terms(e[self.groups.order]), self.groups)
        return max(worst, sizes[self.groups.parent < 0].max(initial=0.0))

    def _slope(self, w, d):
        order = self.groups.order
        return self.rate * (self._weights @ self._norm.slopes(w[order], d[order], self.groups))

    def _log_normalizer(self, size):
        return -size * np.log(self.rate)


def _tree_norm(name, deep):
    if name == 2:
        return _TreeEuclidean()
    return _DeepTreeMaximum() if deep else _TreeMaximum()


class _TreeEuclidean:
    """Operations on the l2 norm of nested groups; vectors are in the order of the tree."""

    name = 2

    def terms(self, x):
        return x * x

    def sizes(self, terms, tree):
        return np.sqrt(_sums(terms, tree))

    def norms(self, x, tree):
        return np.sqrt(_sums(x * x, tree))

    def prox(self, v, tree, threshold, out):
        from bayesstruct.sparse.kernels.tree_proximal import tree_l2

        scratch = np.empty((2, len(threshold)))
        tree_l2(v, tree.order, tree.start, tree.parent, threshold, out, *scratch)

    def slopes(self, x, d, tree):
        norm, inner = self.norms(x, tree), _sums(x * d, tree)
        return np.where(norm > 0, inner / np.where(norm > 0, norm, 1.0), self.norms(d, tree))

    def nearest(self, x, y, tree, threshold):
        from bayesstruct.sparse.kernels.tree_proximal import tree_path_sums

        norm = self.norms(x, tree)
        slope = np.where(norm > 0, threshold / np.where(norm > 0, norm, 1.0), 0.0)
        path = np.empty_like(slope)
        tree_path_sums(slope, tree.parent, path)
        rest = np.ascontiguousarray(y - np.repeat(path, np.diff(tree.start)) * x)[None]
        # Below the groups that are not zero, the subdifferential is that at zero.
        place = _places(tree)
        self.prox(rest, place, np.where(norm > 0, 0.0, threshold), rest)
        return rest[0]


class _TreeMaximum:
    """Operations on the maximum norm of nested groups."""

    name = np.inf

    def terms(self, x):
        return np.abs(x)

    def sizes(self, terms, tree):
        return _sums(terms, tree)

    def norms(self, x, tree):
        from bayesstruct.sparse.kernels.tree_proximal import tree_maxima

        out = np.empty(len(tree.parent))
        tree_maxima(np.abs(x), tree.start, tree.parent, out)
        return out

    def prox(self, v, tree, threshold, out):
        from bayesstruct.sparse.kernels.tree_proximal import tree_linf_direct

        arrays = (tree.order, tree.first, tree.start, tree.parent)
        scratch = (np.empty(len(tree.order)), *np.empty((2, len(threshold))))
        tree_linf_direct(v, *arrays, threshold, out, *scratch)

    def slopes(self, x, d, tree):
        from bayesstruct.sparse.kernels.tree_proximal import tree_linf_slopes

        out = np.empty(len(tree.parent))
        tree_linf_slopes(x, d, tree.first, tree.start, self.norms(x, tree), TIED, out)
        return out

    def nearest(self, x, y, tree, threshold):
        from bayesstruct.sparse.kernels.tree_proximal import tree_linf_nearest

        out = np.empty_like(y)
        tree_linf_nearest(x, y, tree.first, tree.start, threshold, TIED, out)
        return out


class _DeepTreeMaximum(_TreeMaximum):
    """The same where groups are nested deeply: time does not grow with the depth."""

    def prox(self, v, tree, threshold, out):
        from bayesstruct.sparse.kernels.tree_proximal import tree_linf

        p, groups = len(tree.order), len(threshold)
        links, heaps = np.empty((p, 4), np.int32), np.empty(groups, np.int32)
        scratch = np.empty((2, groups))
        args = (tree.order, tree.start, tree.parent, threshold, out, *scratch, np.empty(p))
        tree_linf(v, *args, links, heaps)


def _sums(x, tree):
    from bayesstruct.sparse.kernels.tree_proximal import tree_sums

    out = np.empty(len(tree.parent))
    tree_sums(x, tree.start, tree.parent, out)
    return out


def _places(tree):
    """Return the same tree over positions instead of coordinates."""
    positions = np.arange(len(tree.order), dtype=np.int32)
    return replace(tree, order=positions, size=len(positions))
