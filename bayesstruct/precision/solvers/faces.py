r"""Directions in which a penalty of a precision matrix is smooth, Newton's method and derivatives of modes along them.

At a solution some elements are zero, some share a value, and some blocks have a low rank. On the face of matrices that keep
this, the objective :math:`-\log\det K + \operatorname{tr} S K + P(K)` is smooth. Where the solution does not leave its face, its
derivatives are those of the smooth problem (Vaiter et al. 2017), and Newton's method on the face makes an approximate solution exact.

Penalties are sums over both orders of the elements, as in :mod:`bayesstruct.precision.solvers.splitting`.
"""

from collections.abc import Sequence

import numpy as np

from bayesstruct.sparse.penalties.layout import Groups

__all__ = ["Face", "LowRankFace", "NeighbourFace", "NormFace", "conjugate_gradients", "polish"]

_TIED = 1e-12  # elements of one value may differ by rounding
_RANK = 1e-9  # singular values that count, relative to the largest one
_STEPS = 12
_INEXACT = 1e-6  # of a Newton step: how much of the error it leaves
_STATIONARY = (
    1e-9  # of the gradient that a polished point may have, relative to that of its largest part
)


class Face:
    """Matrices with given zeros, whose other elements are free or share absolute values.

    Parameters
    ----------
    K : (p, p) numpy.ndarray
        Symmetric matrix on the face.
    rates : (p, p) numpy.ndarray
        Rates of the absolute values of the elements.
    labels : (p, p) numpy.ndarray of int, optional
        Symmetric; elements with equal ones have equal absolute values. All are free unless given.
    """

    def __init__(self, K: np.ndarray, rates: np.ndarray, labels: np.ndarray | None = None):
        self.K, self.rates = K, rates
        self.sign, self.labels = np.sign(K), labels
        self.support = K != 0
        if labels is not None:
            self.size = np.bincount(labels.ravel(), minlength=K.size)

    def project(self, X: np.ndarray) -> np.ndarray:
        """Return the nearest direction in which the face goes on."""
        X = np.where(self.support, 0.5 * (X + X.T), 0.0)
        if self.labels is None:
            return X
        total = np.bincount(self.labels.ravel(), (self.sign * X).ravel(), self.K.size)
        return self.sign * (total / np.maximum(self.size, 1))[self.labels]

    def move(self, X: np.ndarray) -> np.ndarray:
        """Return the point of the face that a direction leads to."""
        return self.K + X

    def slope(self) -> np.ndarray:
        """Return a matrix whose projection is the gradient of the penalty along the face."""
        return self.rates * self.sign

    def curvature(self, X: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Return the second derivative of the objective in a direction, without that of the likelihood.

        Parameters
        ----------
        X : (p, p) numpy.ndarray
        rest : (p, p) numpy.ndarray
            Gradient of the likelihood, that of the penalty off the face.
        """
        return np.zeros_like(X)

    def along(self, X: np.ndarray) -> np.ndarray:
        """Return the derivative of each norm in a direction."""
        raise NotImplementedError


class NormFace(Face):
    """The face of Euclidean norms or largest absolute values of groups of ordered elements.

    Parameters
    ----------
    K, rates : (p, p) numpy.ndarray
    groups : Groups
        Of elements in row order.
    group_rates : (groups,) numpy.ndarray
    norm : {"l2", "linf"}
    """

    def __init__(self, K, rates, groups: Groups, group_rates, norm: str):
        values, start = K.ravel()[groups.order], groups.start
        self.groups, self.group_rates = groups, group_rates
        self.unit = np.zeros(K.size)
        self.bend: np.ndarray | None = None
        labels = None
        if norm == "l2":
            size = np.sqrt(np.add.reduceat(values**2, start[:-1]))
            self.unit[groups.order] = values / groups_of(groups, np.where(size > 0, size, 1.0))
            bend = np.where(size > 0, group_rates / np.where(size > 0, size, 1.0), 0.0)
            self.bend = groups.spread(bend).reshape(K.shape)
        else:
            top = groups_of(groups, np.maximum.reduceat(np.abs(values), start[:-1]))
            tied = (np.abs(values) >= (1.0 - _TIED) * top) & (top > 0)
            count = groups_of(groups, np.add.reduceat(tied.astype(float), start[:-1]))
            self.unit[groups.order] = tied * np.sign(values) / np.maximum(count, 1.0)
            labels = tied_elements(len(K), groups, tied)
        super().__init__(K, rates, labels)

    def slope(self):
        """Return a matrix whose projection is the gradient of the penalty along the face."""
        unit = self.unit * self.groups.spread(self.group_rates)
        return super().slope() + unit.reshape(self.K.shape)

    def curvature(self, X, rest):
        """Return the second derivative of the Euclidean norms in a direction; largest absolute values have none."""
        if self.bend is None:
            return np.zeros_like(X)
        along = self.groups.spread(self.along(X)) * self.unit
        return self.bend * (X - along.reshape(X.shape))

    def along(self, X):
        """Return the derivative of each norm in a direction."""
        return np.add.reduceat((self.unit * X.ravel())[self.groups.order], self.groups.start[:-1])


class LowRankFace(Face):
    """The face of nuclear norms: blocks keep their rank.

    Parameters
    ----------
    K, rates : (p, p) numpy.ndarray
    blocks : sequence of pairs of (m,) numpy.ndarray of int
        Rows and columns of each block, in one order.
    block_rates : (blocks,) numpy.ndarray
        Rates of the nuclear norm of each block in each of its two orders.
    """

    def __init__(self, K, rates, blocks: Sequence[tuple], block_rates):
        super().__init__(K, rates)
        self.blocks = [np.ix_(rows, columns) for rows, columns in blocks]
        self.block_rates = block_rates
        self.bases = [_bases(K[block]) for block in self.blocks]
        for block in self.blocks:
            self.support[block] = self.support.T[block] = True

    def project(self, X):
        """Return the nearest direction in which the blocks keep their rank."""
        return self._replace(super().project(X), _tangent)

    def move(self, X):
        """Return the point whose blocks are the nearest ones of their rank."""
        return self._replace(self.K + X, _nearest_of_rank)

    def slope(self):
        """Return a matrix whose projection is the gradient of the penalty along the face."""
        units = [t * U @ V.T for t, (U, V, *_) in zip(self.block_rates, self.bases, strict=True)]
        return self._put(super().slope(), units)

    def curvature(self, X, rest):
        """Return the second derivatives of the norms along the face, and of the face in the direction of the rest."""
        parts = zip(self.blocks, self.block_rates, self.bases, strict=True)
        bends = [_bend(X[block], rest[block], t, *bases) for block, t, bases in parts]
        return self._put(np.zeros_like(X), bends)

    def along(self, X):
        """Return the derivative of each nuclear norm in a direction."""
        parts = zip(self.blocks, self.bases, strict=True)
        return np.array([np.vdot(U @ V.T, X[block]) for block, (U, V, *_) in parts])

    def _replace(self, X, change):
        parts = zip(self.blocks, self.bases, strict=True)
        return self._put(X, [change(X[block], *bases) for block, bases in parts])

    def _put(self, X, values):
        X = X.copy()
        for block, value in zip(self.blocks, values, strict=True):
            X[block] = value
            X.T[block] = value
        return X


class NeighbourFace(Face):
    """The face of absolute differences between elements.

    Parameters
    ----------
    K, rates : (p, p) numpy.ndarray
    apart : Differences
        Which differences, with their rates.
    """

    def __init__(self, K, rates, apart):
        gap = apart.map(K)
        tied = np.abs(gap) <= _TIED * np.abs(K.ravel()[apart.first])
        first, second = apart.first[tied], apart.second[tied]
        super().__init__(K, rates, _components(len(K), first, second))
        self.apart, self.direction = apart, np.where(tied, 0.0, np.sign(gap))

    def slope(self):
        """Return a matrix whose projection is the gradient of the penalty along the face."""
        return super().slope() + self.apart.adjoint(self.apart.rates * self.direction)

    def along(self, X):
        """Return the derivative of each absolute difference in a direction."""
        return self.direction * self.apart.map(X)


def groups_of(groups: Groups, values: np.ndarray) -> np.ndarray:
    """Value of the group of each member, in the order of the members."""
    return np.repeat(values, groups.sizes)


def tied_elements(p: int, groups: Groups, tied: np.ndarray) -> np.ndarray:
    """Labels of the elements of a matrix (p, p), equal where one group or several in a row tie them.

    Parameters
    ----------
    p : int
    groups : Groups
        Of ordered elements.
    tied : (m,) numpy.ndarray of bool
        Which members share the value of their group, in the order of the members.
    """
    places = groups.order[tied]
    owner = groups_of(groups, np.arange(groups.count))[tied]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    leaders = np.repeat(places[first], np.diff(np.append(first, len(places))))
    return _components(p, leaders, places)


def _components(p, first, second):
    """Labels of connected elements of a symmetric matrix; an element is connected with that of the other order."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    places = np.arange(p * p).reshape(p, p)
    ends = np.append(first, places), np.append(second, places.T)
    graph = csr_matrix((np.ones(len(ends[0])), ends), (p * p, p * p))
    return connected_components(graph, directed=False)[1].reshape(p, p)


def _bases(B):
    """Singular vectors of the range of B and of its complement, and the singular values."""
    U, values, V = np.linalg.svd(B)
    rank = int((values > _RANK * values[0]).sum()) if values[0] > 0 else 0
    return U[:, :rank], V[:rank].T, U[:, rank:], V[rank:].T, values[:rank]


def _tangent(X, U, V, outer, outer_V, values):
    return X - outer @ (outer.T @ X @ outer_V) @ outer_V.T


def _nearest_of_rank(X, U, V, *_):
    left, values, right = np.linalg.svd(X, full_matrices=False)
    rank = U.shape[1]
    return (left[:, :rank] * values[:rank]) @ right[:rank]


def _bend(X, rest, rate, U, V, outer, outer_V, values):
    """Second derivative of ``rate`` times the nuclear norm along matrices of one rank, and of their curvature."""
    inside, right, left = U.T @ X @ V, U.T @ X @ outer_V, outer.T @ X @ V
    normal = outer.T @ rest @ outer_V
    turned = rate * (inside - inside.T) / (values[:, None] + values)
    right_new = (rate * right + left.T @ normal) / values[:, None]
    left_new = (rate * left + normal @ right.T) / values
    return U @ turned @ V.T + U @ right_new @ outer_V.T + outer @ left_new @ V.T


def polish(S: np.ndarray, face_of, K: np.ndarray) -> np.ndarray | None:
    """Minimise over the face of an approximate solution by Newton's method.

    Parameters
    ----------
    S : (p, p) numpy.ndarray
    face_of : callable
        From a matrix to its `Face`.
    K : (p, p) numpy.ndarray
        Positive definite.

    Returns
    -------
    (p, p) numpy.ndarray or None
        None if no minimum was found, as on a wrong face.
    """
    best, least = None, _STATIONARY * np.abs(S).max()
    for _ in range(_STEPS):
        if np.linalg.eigvalsh(K)[0] <= 0:
            return best
        W, face = np.linalg.inv(K), face_of(K)
        gradient = face.project(S - W + face.slope())
        size = np.abs(gradient).max()
        if size >= least and (best is not None or not np.isfinite(size)):
            return best
        if size < least:
            best, least = K, size
        K = face.move(-solve_on_face(face, W, S, gradient, _INEXACT))
    return best


def solve_on_face(
    face: Face, W: np.ndarray, S: np.ndarray, right: np.ndarray, tol: float = 1e-13
) -> np.ndarray:
    """Direction in which the gradient along the face changes by the right side; W is the inverse of the matrix."""
    rest = S - W

    def apply(X):
        return face.project(W @ X @ W + face.curvature(X, rest))

    scale = np.outer(W.diagonal(), W.diagonal())

    def precondition(R):
        return face.project(R / scale)

    return conjugate_gradients(apply, face.project(right), precondition, tol)


def conjugate_gradients(apply, right, precondition, tol=1e-13):
    """Solve a symmetric positive definite system by preconditioned conjugate gradients.

    Parameters
    ----------
    apply, precondition : callable
    right : numpy.ndarray
    tol : float
        Of the residual, relative to the right side.
    """
    X, R = np.zeros_like(right), right.copy()
    Z = precondition(R)
    D, product = Z.copy(), np.vdot(R, Z)
    limit = tol * np.linalg.norm(right)
    for _ in range(20 * int(np.sqrt(right.size)) + 200):
        if np.linalg.norm(R) <= limit:
            break
        image = apply(D)
        step = product / np.vdot(D, image)
        X += step * D
        R -= step * image
        Z = precondition(R)
        product, before = np.vdot(R, Z), product
        D = Z + product / before * D
    return X
