r"""Limited-memory quasi-Newton matrices: products with the Hessian's model and with its inverse.

Of the last pairs :math:`s = \Delta x`, :math:`y = \Delta \nabla` the BFGS recursion makes a positive
definite :math:`B` with :math:`B s = y` for the newest pair, starting at :math:`\sigma I`. Nothing
of size p x p is formed: a product costs O(m p).
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["CompactMatrix", "LimitedMemory"]

# Pairs with a smaller cosine between s and y carry rounding errors rather than curvature.
_LEAST_COSINE = 1e-8


@dataclass(frozen=True, eq=False)
class CompactMatrix:
    r"""The matrix :math:`B = \sigma I - N M^{-1} N^\top`.

    Attributes
    ----------
    scale : float
        :math:`\sigma`.
    left : (p, 2m) numpy.ndarray
        :math:`N`.
    right : (2m, p) numpy.ndarray
        :math:`M^{-1} N^\top`.
    """

    scale: float
    left: np.ndarray
    right: np.ndarray

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        """Return the product with a vector."""
        return self.scale * v - self.left @ (self.right @ v)


class LimitedMemory:
    r"""The last pairs of steps and gradient differences.

    Parameters
    ----------
    size : int
        Number of coordinates p.
    memory : int
        Maximum number of pairs that are kept, m.

    Attributes
    ----------
    scale : float
        :math:`\sigma = y^\top y / y^\top s` of the newest pair, over all coordinates; 1 before there
        is one. It is the scale of the Hessian, not of its inverse.
    count : int
        Pairs at hand.

    Notes
    -----
    Pairs are stored divided by :math:`\sqrt{s^\top y}`, which changes no product: the small matrix
    of the compact form is then well scaled, however short the steps have become.

    References
    ----------
    Byrd, R. H., Nocedal, J., Schnabel, R. B. (1994). Representations of quasi-Newton matrices and
    their use in limited memory methods. Mathematical Programming 63, 129-156, theorem 2.3.

    Schmidt (2010), sections 2.1 and 3.2.1; there the scale of algorithms 8 and 9 is printed upside
    down.
    """

    def __init__(self, size: int, memory: int = 20):
        if memory < 1:
            raise ValueError(f"`memory` must be at least 1, it is {memory}")
        self._S, self._Y = np.empty((2, memory, size))
        self.clear()

    def clear(self) -> None:
        """Forget all pairs."""
        self.count, self.scale = 0, 1.0

    def add(self, s: np.ndarray, y: np.ndarray) -> bool:
        """Keep a pair if its curvature is positive, in place of the oldest if there are too many.

        Parameters
        ----------
        s, y : (p,) numpy.ndarray
            Step, and change of the gradient along it.

        Returns
        -------
        bool
            Whether the pair was kept.
        """
        curvature = s @ y
        if not _curved(curvature, s @ s, y @ y):
            return False
        if self.count == len(self._S):
            self._S[:-1], self._Y[:-1] = self._S[1:], self._Y[1:]
            self.count -= 1
        root = np.sqrt(curvature)
        self._S[self.count], self._Y[self.count] = s / root, y / root
        self.scale = float(self._Y[self.count] @ self._Y[self.count])
        self.count += 1
        return True

    def solve(self, v: np.ndarray, on: np.ndarray | None = None) -> np.ndarray:
        r"""Return :math:`B^{-1} v`, by the two-loop recursion.

        Parameters
        ----------
        v : (p,) numpy.ndarray
            Right-hand side.
        on : (p,) numpy.ndarray of bool, optional
            Working set: the matrix is then made of the pairs restricted to it, without those that
            have no positive curvature there, and the scale of all coordinates.

        Returns
        -------
        (p,) numpy.ndarray
            The product, zero off the working set.
        """
        S, Y = self._S[: self.count], self._Y[: self.count]
        if on is None or on.all():
            return _two_loops(S, Y, self.scale, v)
        out = np.zeros_like(v)
        out[on] = _two_loops(S[:, on], Y[:, on], self.scale, v[on])
        return out

    def matrix(self) -> CompactMatrix:
        """Return the matrix in its compact form; later pairs do not change it."""
        S, Y, scale = self._S[: self.count].copy(), self._Y[: self.count].copy(), self.scale
        SY = S @ Y.T
        lower = np.tril(SY, -1)
        M = np.block([[scale * S @ S.T, lower], [lower.T, -np.diag(np.diag(SY))]])
        N = np.vstack([scale * S, Y])
        right = np.linalg.solve(M, N) if self.count else N
        return CompactMatrix(scale, N.T, right)


def _curved(curvature, ss, yy):
    return bool(curvature > _LEAST_COSINE * np.sqrt(ss * yy)) and curvature > 0


def _two_loops(S, Y, scale, v):
    curvature = np.einsum("ij,ij->i", S, Y)
    sizes = np.einsum("ij,ij->i", S, S), np.einsum("ij,ij->i", Y, Y)
    use = [i for i in range(len(S)) if _curved(curvature[i], sizes[0][i], sizes[1][i])]
    q, along = v.copy(), {}
    for i in reversed(use):
        along[i] = (S[i] @ q) / curvature[i]
        q -= along[i] * Y[i]
    q /= scale
    for i in use:
        q += (along[i] - (Y[i] @ q) / curvature[i]) * S[i]
    return q
