r"""Prior distributions of the graph of a Markov random field, hyperparameters integrated out.

Each has ``log_prior(on)``, the log probability of a graph, ``log_odds(on)``, the log odds of each edge
given all others, infinite if it is certain, and ``adapt(on)``, which moves hidden labels to their best
values given a graph and returns whether any changed.
"""

from typing import TYPE_CHECKING

import numpy as np

from scipy.special import betaln, gammaln

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["BlockEdges", "IndependentEdges", "SharedEdges", "beta_mode"]


def beta_mode(a: "ArrayLike", b: "ArrayLike") -> np.ndarray:
    """Mode of beta distributions, strictly inside the unit interval; the mean if there is no mode."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    inside = (a >= 1.0) & (b >= 1.0) & (a + b > 2.0)
    mode = np.where(inside, (a - 1.0) / np.where(inside, a + b - 2.0, 1.0), a / (a + b))
    return np.clip(mode, 1e-12, 1.0 - 1e-12)


class IndependentEdges:
    """Edges of known probabilities.

    Parameters
    ----------
    probability : (edges,) array_like
    """

    def __init__(self, probability):
        q = np.asarray(probability, float)
        with np.errstate(divide="ignore"):
            self._on, self._off = np.log(q), np.log1p(-q)

    def log_prior(self, on: np.ndarray) -> float:
        """Log probability of a graph."""
        return float(np.where(on, self._on, self._off).sum())

    def log_odds(self, on: np.ndarray) -> np.ndarray:
        """Log odds of each edge."""
        return self._on - self._off

    #: There are no hidden labels.
    labels = None

    def adapt(self, on: np.ndarray) -> bool:
        """Do nothing."""
        return False


class BlockEdges:
    r"""Edges whose probabilities depend on hidden labels of their ends, and are integrated out.

    .. math::

        \rho \sim \mathrm{Dirichlet}(c), \quad z_i \sim \rho, \quad
        \pi_r \sim \mathrm{Beta}(\alpha_r, \beta_r), \quad
        P(\text{edge } ij) = \pi_{r(z_i, z_j)}

    The search updates labels and graph in turn (`adapt`).

    Parameters
    ----------
    known : (edges,) array
        Probability of edges that are certain, 0 or 1; NaN for the others.
    ends : (edges, 2) array of int
    pair_of : (labels, labels) array of int
        r.
    alpha, beta : (pairs of labels,) array
    concentration : (labels,) array
        c.
    """

    def __init__(self, known, ends, pair_of, alpha, beta, concentration):
        self.free = np.isnan(known)
        self.certain = np.where(known == 1.0, np.inf, -np.inf)
        self.ends, self.pair_of = ends[self.free], pair_of
        self.alpha, self.beta, self.concentration = alpha, beta, concentration
        self.labels = np.zeros(int(ends.max(initial=0)) + 1, int)

    def independent(self) -> IndependentEdges:
        """Independent edges with the means of these probabilities."""
        mean = (self.alpha / (self.alpha + self.beta))[self.pair_of].mean()
        known = np.where(self.free, mean, self.certain > 0)
        return IndependentEdges(known)

    def _pairs(self, labels):
        return self.pair_of[labels[self.ends[:, 0]], labels[self.ends[:, 1]]]

    def counts(
        self, on: np.ndarray, labels: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of present and absent edges that are not certain, for each pair of labels."""
        pairs = self._pairs(self.labels if labels is None else labels)
        size = len(self.alpha)
        present = np.bincount(pairs, on[self.free], minlength=size)
        return present, np.bincount(pairs, minlength=size) - present

    def log_prior(self, on: np.ndarray, labels: np.ndarray | None = None) -> float:
        """Log probability of a graph and the labels."""
        labels = self.labels if labels is None else labels
        present, absent = self.counts(on, labels)
        out = betaln(present + self.alpha, absent + self.beta) - betaln(self.alpha, self.beta)
        c = self.concentration
        sizes = np.bincount(labels, minlength=len(c))
        share = gammaln(sizes + c).sum() - gammaln(c).sum()
        share += gammaln(c.sum()) - gammaln(c.sum() + len(labels))
        return float(out.sum() + share)

    def log_odds(self, on: np.ndarray) -> np.ndarray:
        """Log odds of each edge given all others."""
        present, absent = self.counts(on)
        pairs, own = self._pairs(self.labels), on[self.free]
        odds = self.certain.copy()
        odds[self.free] = np.log((present + self.alpha)[pairs] - own)
        odds[self.free] -= np.log((absent + self.beta)[pairs] - ~own)
        return odds

    def adapt(self, on: np.ndarray) -> bool:
        """Move the labels to the best end of climbs from a few starts."""
        if len(self.concentration) == 1:
            return False
        rng = np.random.default_rng(0)
        before = self.log_prior(on)
        starts = [self.labels, np.zeros_like(self.labels)]
        starts += [rng.integers(0, len(self.concentration), len(self.labels)) for _ in range(8)]
        ends = [self._climb(on, labels.copy()) for labels in starts]
        self.labels, best = max(ends, key=lambda end: end[1])
        return best > before + 1e-9

    def _climb(self, on, labels):
        """Change one label at a time until no change is an improvement."""
        best, moved = self.log_prior(on, labels), True
        while moved:
            moved = False
            for i in range(len(labels)):
                kept = labels[i]
                for label in range(len(self.concentration)):
                    labels[i] = label
                    value = self.log_prior(on, labels)
                    if value > best + 1e-9:
                        best, kept, moved = value, label, True
                labels[i] = kept
        return labels, best


class SharedEdges(BlockEdges):
    """Edges with one unknown probability, which is integrated out: `BlockEdges` with a single label.

    Parameters
    ----------
    known : (edges,) array
        Probability of edges that are certain, 0 or 1; NaN for the others.
    alpha, beta : float
        Of the beta distribution of the probability.
    """

    def __init__(self, known, alpha, beta):
        ends, pair_of = np.zeros((len(known), 2), int), np.zeros((1, 1), int)
        super().__init__(known, ends, pair_of, np.array([alpha]), np.array([beta]), np.ones(1))
