r"""Numbers and states joined by a tree: weights of edges, and the parameters given a tree.

No path leads from states over numbers to states. So the tree can be directed away from a column of states such that all parents of states are
states, and a column of numbers has one parent of either kind. With the conjugate priors

.. math::

    x \mid z = k \sim N(m_k, v), \qquad m_k \mid v \sim N(0, v / \alpha), \qquad v \sim \mathrm{InvGamma}(b / 2, t / 2)

for numbers x next to states z, the distribution of y given x of the normal-Wishart prior of the BGe score
(:math:`v \sim \mathrm{InvGamma}((b + 1) / 2, t / 2)`, slope :math:`N(0, v / t)`, intercept :math:`N(0, v / \alpha)`), and Dirichlet
distributions of states, where :math:`b = \alpha + 2` and :math:`t = \alpha^2 / (\alpha + 1)`, the evidence of a tree is a product over its edges. The weight of an edge
between z and x is

.. math::

    \frac{p(D_x \mid D_z)}{p(D_x)} = \prod_k \sqrt{\frac{\alpha}{\alpha + n_k}} \sqrt{\frac{\alpha + n}{\alpha}}
    \left( \frac{t + \sum x^2 - S^2 / (\alpha + n)}{t + \sum x^2 - \sum_k S_k^2 / (\alpha + n_k)} \right)^{(b + n) / 2}

with n_k rows of the state k, in which the sum of x is S_k.

The variance is the same in all states: the numbers are then normal given all states, with one precision matrix that is zero off the tree.
Parameters are the vector of :class:`bayesstruct.networks.kernels.mixed_layout.MixedLayout`.
"""

import math

from functools import cached_property

import numpy as np

from scipy.special import gammaln, logsumexp

from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.networks.kernels.scores.discrete import BDeu
from bayesstruct.trees.kernels.gaussian import edge_factors, posterior_scale

__all__ = ["MixedTotals", "draw_parameters", "log_prior", "state_values"]


class MixedTotals:
    """A complete table of numbers and states with its prior: weights of edges, and what parameters depend on.

    Parameters
    ----------
    table : (n, p) ndarray of float
        Standardised numbers, and states 0, 1, ...; without rows, parameters are those of the prior.
    states : sequence of int
        Numbers of states of the columns, 0 for numbers.
    size : float
        Rows that the prior is worth.
    """

    def __init__(self, table: np.ndarray, states, size: float):
        self.table, self.states = np.asarray(table, float), np.asarray(states)
        self.numbers, self.n, self.size = self.states == 0, len(table), size
        self.degrees, self.scale = size + 2.0, size**2 / (size + 1.0)
        self.codes = np.where(self.numbers, 0.0, self.table).astype(np.int64)
        x = np.where(self.numbers, self.table, 0.0)
        self.total = x.sum(axis=0)
        self.matrix = posterior_scale(self.scale, size, self.n, self.total, x.T @ x)

    def counts(self, above: int, child: int) -> np.ndarray:
        """Rows of each pair of states, (states of `above`, states of `child`)."""
        j, k = self.states[above], self.states[child]
        cells = self.codes[:, above] * k + self.codes[:, child]
        return np.bincount(cells, minlength=j * k).reshape(j, k)

    def sums(self, above: int, children) -> tuple[np.ndarray, np.ndarray]:
        """Rows in each state of a column, (states,), and sums of other columns in them, (states, children)."""
        own = self.codes[:, above] == np.arange(self.states[above])[:, None]
        return own.sum(axis=1), own @ self.table[:, children]

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Log marginal likelihoods of the columns alone, (p,), and log Bayes factors of all pairs, (p, p)."""
        p, x = len(self.states), np.flatnonzero(self.numbers)
        alone, gains = np.zeros(p), np.zeros((p, p))
        states = np.flatnonzero(~self.numbers)
        alone[x], gains[np.ix_(x, x)] = self._of_numbers(x)
        if len(states):
            alone[states], gains[np.ix_(states, states)] = self._of_states(states)
        for z in states:
            gains[z, x] = gains[x, z] = self._mixed_gains(z, x)
        # Both directions are the same number but for rounding.
        gains = (gains + gains.T) / 2.0
        np.fill_diagonal(gains, 0.0)
        return alone, gains

    def _of_numbers(self, x):
        """Log marginal likelihoods of columns of numbers alone, and log Bayes factors of their pairs."""
        b, t, n, size = self.degrees, self.scale, self.n, self.size
        matrix = self.matrix[np.ix_(x, x)]
        constant = gammaln(0.5 * (b + n)) - gammaln(0.5 * b) + 0.5 * b * math.log(t)
        constant += 0.5 * (math.log(size / (size + n)) - n * math.log(math.pi))
        alone = constant - 0.5 * (b + n) * np.log(np.diag(matrix))
        before = edge_factors(b, t * np.eye(len(x)), t)
        return alone, edge_factors(b + n, matrix, t) - before

    def _of_states(self, z):
        """Return the same of columns of states."""
        options = {"states": self.states[z].tolist(), "equivalent_sample_size": self.size}
        score = BDeu(self.codes[:, z], **options)
        if len(z) == 1:
            return np.array([score.local(0, [])]), np.zeros((1, 1))
        alone, pairs = score.single_parents()
        return alone, pairs - alone[:, None]

    def _mixed_gains(self, z, x):
        """Log Bayes factors of states z and each of the numbers x."""
        rows, sums = self.sums(z, x)
        whole, n, size = np.diag(self.matrix)[x], self.n, self.size
        within = self.within(x, rows, sums)
        occupied = 0.5 * (np.log(size / (size + rows)).sum() - math.log(size / (size + n)))
        return occupied + 0.5 * (self.degrees + n) * (np.log(whole) - np.log(within))

    def within(self, x, rows, sums):
        """Return sums of squares of numbers about their means in each state, with those of the prior.

        Parameters
        ----------
        x : (m,) ndarray of int
            Columns of numbers.
        rows, sums
            As `sums` returns them.

        Returns
        -------
        (m,) ndarray of float
        """
        about_zero = np.diag(self.matrix)[x] + self.total[x] ** 2 / (self.size + self.n)
        left = about_zero - (sums**2 / (self.size + rows)[:, None]).sum(axis=0)
        return np.maximum(left, self.scale)  # rounding may say less


def _contrasts(values):
    """Intercept and coefficients of the features of states from values in each state, along the first axis."""
    return np.concatenate([values.mean(axis=0, keepdims=True), values[1:] - values[:1]])


def _values(contrasts):
    """Values in each state: the inverse of `_contrasts`."""
    first = contrasts[:1] - contrasts[1:].sum(axis=0, keepdims=True) / len(contrasts)
    return np.concatenate([first, first + contrasts[1:]])


def _places(layout: MixedLayout, child: int, above: int) -> np.ndarray:
    """Places of the intercepts and of the coefficients of the parent's features, (1 + features, outputs)."""
    used = np.append(0, 1 + np.flatnonzero(layout.owner == above)) if above >= 0 else np.array([0])
    return layout.coefficients[child][:, used].T


def state_values(layout: MixedLayout, child: int, above: int, vector: np.ndarray) -> np.ndarray:
    """Linear predictors of a column in each state of its parent, (states, outputs); of a parent with numbers, and of none, its coefficients."""
    own = vector[_places(layout, child, above)]
    return _values(own) if above >= 0 and layout.states[above] else own


def _state_counts(above, totals, child):
    """Return counts of a column of states, given its parent if it has one."""
    if above >= 0:
        return totals.counts(above, child)
    return np.bincount(totals.codes[:, child], minlength=totals.states[child])[None]


def draw_parameters(
    totals: MixedTotals,
    layout: MixedLayout,
    parent: np.ndarray,
    rng: "np.random.Generator | None" = None,
) -> np.ndarray:
    """Draw the parameters given a tree and the table.

    Parameters
    ----------
    totals : MixedTotals
    layout : MixedLayout
        Of normal columns and columns of states without an order.
    parent : (p,) ndarray of int
        Parent of each column, -1 for a root; those of states are states.
    rng : numpy.random.Generator, optional
        Without it, means are returned: of probabilities, coefficients and variances.

    Returns
    -------
    (parameters,) ndarray
    """
    out = np.zeros(layout.size)
    for child, above in enumerate(parent.tolist()):
        places = _places(layout, child, above)
        if totals.states[child]:
            logs = _draw_table(totals, _state_counts(above, totals, child), rng)
            out[places] = _contrasts(logs[:, 1:] - logs[:, :1])
            continue
        own = _draw_means if above < 0 or totals.states[above] else _draw_line
        coefficients, scale = own(totals, child, above, rng)
        out[places[:, 0]], out[layout.extras[child][0]] = coefficients, scale
    return out


def _draw_table(totals, counts, rng):
    """Logarithms of probabilities, (states of the parent, states)."""
    a = totals.size / counts.size + counts
    if rng is None:
        return np.log(a) - np.log(a.sum(axis=1, keepdims=True))
    # A gamma variate of a shape near 0 is too small for the computer, its logarithm is not.
    logs = np.log(rng.standard_gamma(a + 1.0)) - rng.standard_exponential(a.shape) / a
    return logs - logsumexp(logs, axis=1, keepdims=True)


def _draw_means(totals, child, above, rng):
    """Intercept and coefficients of a column of numbers given states, or alone, and its standard deviation."""
    if above < 0:
        rows, sums = np.array([totals.n]), totals.total[child : child + 1]
    else:
        rows, sums = totals.sums(above, [child])
        sums = sums[:, 0]
    [left] = totals.within([child], rows, sums[:, None])
    scale = _draw_scale(0.5 * (totals.degrees + totals.n), 0.5 * left, rng)
    means = sums / (totals.size + rows)
    if rng is not None:
        means = means + scale * rng.standard_normal(len(rows)) / np.sqrt(totals.size + rows)
    return _contrasts(means), scale


def _draw_line(totals, child, above, rng):
    """Intercept and slope of a column of numbers given another one, and its standard deviation."""
    own, both, spread = (
        totals.matrix[i, j] for i, j in ((child, child), (above, child), (above, above))
    )
    left = max(own - both**2 / spread, totals.scale)
    scale = _draw_scale(0.5 * (totals.degrees + 1.0 + totals.n), 0.5 * left, rng)
    rows = totals.size + totals.n
    z = np.zeros(2) if rng is None else rng.standard_normal(2)
    slope = both / spread + scale * z[0] / math.sqrt(spread)
    shift = (totals.total[child] - slope * totals.total[above]) / rows
    return np.array([shift + scale * z[1] / math.sqrt(rows), slope]), scale


def _draw_scale(shape, rate, rng):
    """Square root of an inverse gamma variate, or of its mean."""
    return math.sqrt(rate / (shape - 1.0 if rng is None else rng.standard_gamma(shape)))


def log_prior(layout: MixedLayout, parent: np.ndarray, vector: np.ndarray, size: float) -> float:
    """Log prior density of parameters given a tree.

    Parameters
    ----------
    layout, parent
        As of `draw_parameters`.
    vector : (parameters,) ndarray
    size : float
        Rows that the prior is worth.

    Returns
    -------
    float
        With respect to the parameters that the tree has; -inf if another one is not zero.
    """
    total, rest = 0.0, vector.copy()
    for child, above in enumerate(parent.tolist()):
        places = _places(layout, child, above)
        rest[places], rest[layout.extras[child]] = 0.0, 0.0
        own = state_values(layout, child, above, vector)
        if layout.states[child]:
            total += _log_table(own, size)
            continue
        scale = vector[layout.extras[child][0]]
        if not scale > 0.0:
            return -np.inf
        of_states = above < 0 or layout.states[above] > 0
        total += (_log_means if of_states else _log_line)(own[:, 0], scale, size)
    return total if not rest.any() else -np.inf


def _log_table(logits, size):
    """Log density of the logits of Dirichlet distributions, (states of the parent, states - 1)."""
    logs = np.concatenate([np.zeros((len(logits), 1)), logits], axis=1)
    logs = logs - logsumexp(logs, axis=1, keepdims=True)
    a = size / logs.size
    k = logs.shape[1]
    return a * logs.sum() + len(logs) * (gammaln(a * k) - k * gammaln(a))


def _log_scale(scale, degrees, size):
    """Log density of the root of an inverse gamma variate."""
    shape, rate = 0.5 * degrees, 0.5 * size**2 / (size + 1.0)
    out = shape * math.log(rate) - gammaln(shape) - rate / scale**2
    return out + math.log(2.0) - (2.0 * shape + 1.0) * math.log(scale)


def _log_normal(values, variance):
    return -0.5 * (values**2 / variance + np.log(2.0 * np.pi * variance)).sum()


def _log_means(means, scale, size):
    return _log_normal(means, scale**2 / size) + _log_scale(scale, size + 2.0, size)


def _log_line(coefficients, scale, size):
    variances = scale**2 / np.array([size, size**2 / (size + 1.0)])
    return _log_normal(coefficients, variances) + _log_scale(scale, size + 3.0, size)
