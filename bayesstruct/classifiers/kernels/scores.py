r"""Scores of the families of augmented naive Bayes classifiers.

The target C is a parent of all features :math:`X_i`, which may have feature parents besides, in the joint state j. With the
counts :math:`N_{ijck}` of rows (:math:`X_i = k`, C = c) and sums over an index marked by a star or left out, the scores of
:math:`X_i` are

.. math::

    \mathrm{LL}_i &= \sum_{jck} N_{ijck} \log \frac{N_{ijck}}{N_{ijc}}, \qquad
    \mathrm{MDL}_i = \mathrm{LL}_i - \tfrac12 \log(N) \, q_i n_C (r_i - 1), \\
    \hat f\mathrm{CLL}_i &= (\alpha + \beta) \mathrm{LL}_i - \beta \lambda \sum_{jck} N_{ijck}
        \Bigl[ \log \frac{N_{ijck}}{N_{ij*k}} - \log \frac{N_{ijc}}{N_{ij*}} \Bigr], \\
    \mathrm{aCLL}_i &= (\alpha + \beta) \sum_{jck} N_{ijck} \log \theta_{ijck}
        - \beta \sum_{jck} N_{ijck} \log \frac{\theta_{ijck}}{\theta_{ij \bar c k}}

and the log marginal likelihood with Dirichlet priors (BDeu). :math:`\hat f`\ CLL, the factorized conditional log-likelihood, approximates the sum of
the :math:`\log P(c \mid x)` by one that falls into families; in :math:`\mathrm{aCLL}`, from which it is derived,
:math:`\theta` are frequencies after 1/2 was added to each count, since with observed frequencies it may be infinite, and
:math:`\bar c` stands for all other classes together.

The constants come from the least-squares approximation of :math:`\log_2 (U / (U + V))` for uniform U, V by
:math:`\alpha \log_2 U + \beta \log_2 V + \gamma`, so that they belong to logarithms to the base 2. Scores are returned in natural units, base-2
scores times log 2: they have the scale of log likelihoods.

References
----------
Carvalho, A. M., Roos, T., Oliveira, A. L. and Myllymäki, P. (2011). Discriminative learning of Bayesian networks via
factorized conditional log-likelihood. *JMLR* 12, 2181-2210. The score is equation 24; of equation 13, whose printed
numerator and denominator are interchanged in part, the corrected form is used.
"""

import math

from collections.abc import Sequence

import numpy as np

__all__ = [
    "ALPHA",
    "BETA",
    "LAMBDA",
    "RHO",
    "SAMPLE_SIZE",
    "SCORES",
    "ClassifierScore",
    "family_counts",
]

#: Rows that the prior of tables is worth under BDeu, by default; see `benchmarks/network_classifier.py`.
SAMPLE_SIZE = 10.0

ALPHA = (math.pi**2 + 6.0) / 24.0
BETA = (math.pi**2 - 18.0) / 24.0
LAMBDA = math.pi**2 / 6.0
RHO = math.pi**2 / (6.0 * math.log(2.0))

#: Scores by name, and whether trees with the same lines have the same one.
SCORES = {"fcll": True, "log_likelihood": True, "mdl": True, "bdeu": True, "acll": False}
_SMOOTHING = 0.5


def family_counts(
    codes: np.ndarray, states: np.ndarray, target: int, child: int, parents: Sequence[int]
) -> np.ndarray:
    """Count the rows of a family.

    Parameters
    ----------
    codes : (n, d) ndarray of int
        States from 0.
    states : (d,) ndarray of int
    target, child : int
        Columns.
    parents : sequence of int
        Columns besides the target; the first changes fastest.

    Returns
    -------
    (q, classes, r) ndarray of float
        By the joint state of the parents, the class and the state of the child.
    """
    q, place = 1, np.zeros(len(codes), np.int64)
    for j in parents:
        place += q * codes[:, j]
        q *= int(states[j])
    classes, r = int(states[target]), int(states[child])
    place = (place * classes + codes[:, target]) * r + codes[:, child]
    return np.bincount(place, minlength=q * classes * r).reshape(q, classes, r).astype(float)


class ClassifierScore:
    """Local scores of features given the target and other features, in natural logarithms.

    Parameters
    ----------
    codes : (n, d) ndarray of int
        States from 0, without missing ones.
    states : (d,) sequence of int
    target : int
        Column of the class.
    kind : str
        One of `SCORES`.
    equivalent_sample_size : float, default 10
        Rows that the prior of BDeu is worth.
    """

    def __init__(self, codes, states, target, kind, equivalent_sample_size=SAMPLE_SIZE):
        self.codes, self.states = np.asarray(codes), np.asarray(states, int)
        self.target, self.kind, self.size = int(target), kind, float(equivalent_sample_size)
        self.features = np.delete(np.arange(len(self.states)), self.target)
        self._rule = {
            "fcll": _fcll,
            "log_likelihood": _log_likelihood,
            "mdl": self._mdl,
            "bdeu": self._bdeu,
            "acll": _acll,
        }[kind]
        self._known: dict[tuple[int, ...], float] = {}

    def family(self, child: int, parents: Sequence[int] = ()) -> float:
        """Score of a feature given the target and these features."""
        key = (child, *sorted(parents))
        if key not in self._known:
            counts = family_counts(self.codes, self.states, self.target, child, key[1:])
            self._known[key] = math.log(2.0) * self._rule(counts)
        return self._known[key]

    def of_target(self) -> float:
        """Score of the target, which has no parents: the same for all structures."""
        counts = np.bincount(self.codes[:, self.target], minlength=self.states[self.target])
        n, p = len(self.codes), counts.astype(float)
        if self.kind == "bdeu":
            return math.log(2.0) * self._bdeu(p[None, None])
        entropy = _log_likelihood(p[None, None])
        if self.kind == "fcll":
            entropy = (ALPHA + BETA - BETA * LAMBDA) * entropy - BETA * n * RHO
        elif self.kind == "mdl":
            entropy -= 0.5 * math.log2(n) * (len(p) - 1)
        elif self.kind == "acll":
            theta = (p + _SMOOTHING) / (n + _SMOOTHING * len(p))
            entropy = float(p @ (ALPHA * np.log2(theta) + BETA * np.log2(1.0 - theta)))
        return math.log(2.0) * entropy

    def total(self, dag: np.ndarray) -> float:
        """Score of a structure, (d, d), 1 at (parent, child), with the arcs from the target."""
        out = self.of_target()
        for child in self.features.tolist():
            parents = [j for j in np.flatnonzero(dag[:, child]).tolist() if j != self.target]
            out += self.family(child, parents)
        return out

    def gains(self) -> np.ndarray:
        """Gains of the score by a feature as one more parent, (features, features), [parent, child].

        The diagonal is 0. It is symmetric if the score is the same for trees with the same lines.
        """
        m = len(self.features)
        out = np.zeros((m, m))
        for a, i in enumerate(self.features.tolist()):
            alone = self.family(i)
            for b, j in enumerate(self.features.tolist()):
                if a != b:
                    out[b, a] = self.family(i, [j]) - alone
        return out

    def _mdl(self, counts):
        q, classes, r = counts.shape
        return _log_likelihood(counts) - 0.5 * math.log2(len(self.codes)) * q * classes * (r - 1)

    def _bdeu(self, counts):
        from scipy.special import gammaln

        cell = self.size / counts.size
        row, r = counts.sum(axis=-1), counts.shape[-1]
        total = (gammaln(cell + counts) - gammaln(cell)).sum()
        total -= (gammaln(r * cell + row) - gammaln(r * cell)).sum()
        return float(total) / math.log(2.0)


def _log_ratio(counts: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Sum of counts times the base-2 logarithm of a / b, where a count of 0 gives 0."""
    a, b = np.broadcast_to(a, counts.shape), np.broadcast_to(b, counts.shape)
    seen = counts > 0
    return float(counts[seen] @ (np.log2(a[seen]) - np.log2(b[seen])))


def _log_likelihood(counts: np.ndarray) -> float:
    return _log_ratio(counts, counts, counts.sum(axis=2, keepdims=True))


def _fcll(counts: np.ndarray) -> float:
    class_given = _log_ratio(counts, counts, counts.sum(axis=1, keepdims=True))
    class_given -= _log_ratio(
        counts, counts.sum(axis=2, keepdims=True), counts.sum(axis=(1, 2), keepdims=True)
    )
    return (ALPHA + BETA) * _log_likelihood(counts) - BETA * LAMBDA * class_given


def _acll(counts: np.ndarray) -> float:
    r = counts.shape[2]
    other = counts.sum(axis=1, keepdims=True) - counts
    own, rest = (
        (c + _SMOOTHING) / (c.sum(axis=2, keepdims=True) + _SMOOTHING * r) for c in (counts, other)
    )
    return float((counts * (ALPHA * np.log2(own) + BETA * np.log2(rest))).sum())
