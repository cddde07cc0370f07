"""Likelihood and pseudo-likelihood of pairwise Markov random fields, with their gradients."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.fields.kernels.exact_sums import ExactSums
from bayesstruct.fields.kernels.potentials import Potentials

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["ExactLikelihood", "PseudoLikelihood", "likelihood_for", "null_bias"]


class _Likelihood:
    """Negative log-likelihood of biases and weights, summed over the rows of a table.

    Parameters
    ----------
    potentials : Potentials
    codes : (n, p) array of int
        States of each row, counted from 0.
    counts : (n,) array_like, optional
        Multiplicity or weight of each row; 1 by default.
    """

    def __init__(self, potentials: Potentials, codes, counts=None):
        self.potentials = potentials
        codes = np.asarray(codes, np.int64)
        counts = np.ones(len(codes)) if counts is None else np.asarray(counts, float)
        self.codes, inverse = np.unique(codes, axis=0, return_inverse=True)
        self.row_of = inverse.ravel()  # distinct row of each row of the table
        self.counts = np.bincount(self.row_of, counts, minlength=len(self.codes))

    @property
    def n(self) -> float:
        """Number of rows."""
        return float(self.counts.sum())

    @cached_property
    def unary_counts(self) -> np.ndarray:
        """Number of rows with each state of each variable, flat."""
        start = self.potentials.unary_start
        at = (start[:-1] + self.codes).ravel()
        weights = np.repeat(self.counts, self.potentials.p)
        return np.bincount(at, weights, minlength=int(start[-1]))

    def value_and_gradients(
        self, bias: np.ndarray, weight: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, and gradients in the biases and in the weights."""
        raise NotImplementedError

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at biases followed by weights."""
        potentials = self.potentials
        bias, weight = theta[: potentials.bias_size], theta[potentials.bias_size :]
        value, of_bias, of_weight = self.value_and_gradients(bias, weight)
        return value, np.concatenate([of_bias, of_weight])


class ExactLikelihood(_Likelihood):
    """The likelihood, whose partition function is a sum over all joint states.

    See :class:`bayesstruct.fields.kernels.exact_sums.ExactSums`, which raises if the sum would take
    too long.
    """

    def __init__(self, potentials, codes, counts=None):
        self.sums = ExactSums.of(potentials)
        super().__init__(potentials, codes, counts)

    @cached_property
    def pair_counts(self) -> np.ndarray:
        """Number of rows with each pair of states of each edge, flat."""
        potentials, k = self.potentials, np.asarray(self.potentials.states)
        i, j = potentials.ends
        out = np.zeros(int(potentials.pair_start[-1]))
        for row, count in zip(self.codes, self.counts, strict=True):
            out[potentials.pair_start[:-1] + row[i] * k[j] + row[j]] += count
        return out

    def row_scores(self, bias: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Gradient of the log-likelihood of each distinct row, (rows, biases + weights)."""
        potentials = self.potentials
        k, (i, j) = np.asarray(potentials.states), potentials.ends
        gradient = self(np.concatenate([bias, weight]))[1]
        mean = (gradient + self._statistics(self.unary_counts, self.pair_counts)) / self.n
        out = np.empty((len(self.codes), len(mean)))
        for row, x in zip(out, self.codes, strict=True):
            unary, pair = np.zeros(int(potentials.unary_start[-1])), np.zeros(len(self.pair_counts))
            unary[potentials.unary_start[:-1] + x] = 1.0
            pair[potentials.pair_start[:-1] + x[i] * k[j] + x[j]] = 1.0
            row[:] = self._statistics(unary, pair) - mean
        return out

    def _statistics(self, unary, pair):
        potentials = self.potentials
        return np.concatenate([potentials.unary_pullback(unary), potentials.pair_pullback(pair)])

    def value_and_gradients(
        self, bias: np.ndarray, weight: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, and gradients in the biases and in the weights."""
        potentials = self.potentials
        unary, pair = potentials.unary(bias), potentials.pair(weight)
        log_z, of_unary, of_pair = self.sums.marginals(unary, pair)
        value = self.n * log_z - self.unary_counts @ unary - self.pair_counts @ pair
        return (
            value,
            potentials.unary_pullback(self.n * of_unary - self.unary_counts),
            potentials.pair_pullback(self.n * of_pair - self.pair_counts),
        )


class PseudoLikelihood(_Likelihood):
    """The product of the conditional probabilities of each state given the rest of its row."""

    def value_and_gradients(
        self, bias: np.ndarray, weight: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, and gradients in the biases and in the weights."""
        evaluate = self._scored if self.potentials.scored else self._tables
        value, of_unary, of_weight = evaluate(self.potentials.unary(bias), weight)
        return value, self.potentials.unary_pullback(of_unary), of_weight

    @cached_property
    def _scores(self):
        return self.potentials.scores[self.potentials.unary_start[:-1] + self.codes]

    @cached_property
    def _later(self):
        """Unary cells of all states but the first, and the variable of each."""
        first = np.zeros(int(self.potentials.unary_start[-1]), bool)
        first[self.potentials.unary_start[:-1]] = True
        own = np.repeat(np.arange(self.potentials.p), self.potentials.states)
        return np.flatnonzero(~first), own[~first]

    @cached_property
    def _indicators(self):
        """Indicators of all states but the first, which they determine."""
        cells, own = self._later
        state = cells - self.potentials.unary_start[own]
        return (self.codes[:, own] == state).astype(float)

    @cached_property
    def _owner(self):
        """Variable of each unary cell."""
        return np.repeat(np.arange(self.potentials.p), self.potentials.states)

    @cached_property
    def _first(self):
        """For each unary cell that of the first state of the same variable."""
        return np.repeat(self.potentials.unary_start[:-1], self.potentials.states)

    def _scored(self, unary, weight):
        from bayesstruct.fields.kernels.pseudo import scored_residuals

        potentials = self.potentials
        couplings = np.zeros((potentials.p, potentials.p))
        couplings[potentials.ends] = weight
        fields = self._scores @ (couplings + couplings.T)
        of_unary = np.zeros_like(unary)
        value = scored_residuals(
            fields,
            self.codes,
            self.counts,
            potentials.unary_start,
            unary,
            potentials.scores,
            of_unary,
        )
        products = self._scores.T @ fields
        return value, of_unary, (products + products.T)[potentials.ends]

    def _logits(self, unary, pair):
        """Log odds of each state against the first, given the rest of the row."""
        block = np.zeros((len(unary), len(unary)))
        block[self.potentials.cells] = pair
        block += block.T
        # Column by column the contribution of the first state of another variable, and the change from it.
        own = block - block[:, self._first]
        first = self.potentials.unary_start[:-1]
        constant = unary + block[first].sum(axis=0)
        constant -= constant[self._first]
        step = own - own[self._first]
        cells, _ = self._later
        logits = self._indicators @ step[np.ix_(cells, cells)]
        logits += constant[cells]
        return logits

    def conditionals(self, bias: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Probability of each state given the rest of each distinct row, (rows, unary cells)."""
        potentials = self.potentials
        cells, _ = self._later
        logits = np.zeros((len(self.codes), int(potentials.unary_start[-1])))
        logits[:, cells] = self._logits(potentials.unary(bias), potentials.pair(weight))
        start = potentials.unary_start[:-1]
        logits -= np.maximum.reduceat(logits, start, axis=1)[:, self._owner]
        share = np.exp(logits)
        return share / np.add.reduceat(share, start, axis=1)[:, self._owner]

    def _tables(self, unary, weight):
        from bayesstruct.fields.kernels.pseudo import table_residuals

        potentials = self.potentials
        residuals = self._logits(unary, potentials.pair(weight))
        cells, own = self._later
        start = np.concatenate([[0], np.cumsum(np.asarray(potentials.states) - 1)])
        value = table_residuals(residuals, self.codes, self.counts, start)
        products = self._complete(self._indicators.T @ residuals, residuals.sum(axis=0))
        of_unary = np.zeros_like(unary)
        of_unary[cells] = residuals.sum(axis=0)
        np.add.at(of_unary, potentials.unary_start[own], -of_unary[cells])
        of_pair = (products + products.T)[potentials.cells]
        return value, of_unary, potentials.pair_pullback(of_pair)

    def _complete(self, products, totals):
        """Products of indicators and residuals for all states: those of one variable have a known sum."""
        size = int(self.potentials.unary_start[-1])
        cells, own = self._later
        first = self.potentials.unary_start[own]
        wide = np.zeros((size, len(cells)))
        wide[cells] = products
        wide[self.potentials.unary_start[:-1]] = totals
        np.subtract.at(wide, first, products)
        out = np.zeros((size, size))
        out[:, cells] = wide
        np.subtract.at(out.T, first, wide.T)
        return out

    def row_scores(self, bias: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Gradient of the log pseudo-likelihood of each distinct row, (rows, biases + weights)."""
        from bayesstruct.fields.kernels.pseudo import table_residuals

        potentials = self.potentials
        cells, own = self._later
        first = potentials.unary_start[own]
        start = np.concatenate([[0], np.cumsum(np.asarray(potentials.states) - 1)])
        some = self._logits(potentials.unary(bias), potentials.pair(weight))
        table_residuals(some, self.codes, np.ones(len(some)), start)
        residuals = np.zeros((int(potentials.unary_start[-1]), len(some)))
        residuals[cells] = some.T
        np.subtract.at(residuals, first, some.T)
        hot = np.zeros_like(residuals)
        np.put_along_axis(hot, (potentials.unary_start[:-1] + self.codes).T, 1.0, axis=0)
        rows, columns = potentials.cells
        of_pair = hot[rows] * residuals[columns] + hot[columns] * residuals[rows]
        out = np.zeros((potentials.bias_size + potentials.weight_size, len(some)))
        index, coefficient = potentials.unary_map
        for column in range(index.shape[1]):
            np.subtract.at(out, index[:, column], coefficient[:, column, None] * residuals)
        index, coefficient = potentials.pair_map
        np.subtract.at(out, potentials.bias_size + index, coefficient[:, None] * of_pair)
        return out.T

    def restricted(self, nodes: np.ndarray, edges: np.ndarray) -> "PseudoLikelihood":
        """Return the pseudo-likelihood of some variables, which are independent of the others."""
        potentials = self.potentials.restricted(nodes, edges)
        return PseudoLikelihood(potentials, self.codes[:, nodes], self.counts)


def likelihood_for(
    name: str, potentials: Potentials, codes: np.ndarray, counts: "ArrayLike | None" = None
) -> "ExactLikelihood | PseudoLikelihood":
    """Return the likelihood of this name.

    Parameters
    ----------
    name : {"pseudo", "exact"}
    potentials, codes, counts
        See `ExactLikelihood`.
    """
    kinds: dict[str, type[ExactLikelihood] | type[PseudoLikelihood]] = {
        "pseudo": PseudoLikelihood,
        "exact": ExactLikelihood,
    }
    if name not in kinds:
        raise ValueError(f"`likelihood` must be one of {sorted(kinds)}, it is {name!r}")
    return kinds[name](potentials, codes, counts)


def null_bias(likelihood: "ExactLikelihood | PseudoLikelihood", ridge: float = 0.0) -> np.ndarray:
    r"""Biases at the mode without interactions, variable by variable.

    Parameters
    ----------
    likelihood : ExactLikelihood or PseudoLikelihood
    ridge : float
        Penalty :math:`r \sum b^2` of the biases.
    """
    potentials, counts = likelihood.potentials, likelihood.unary_counts
    index, coefficient = potentials.unary_map
    out = np.zeros(potentials.bias_size)
    for i in range(potentials.p):
        cells = slice(potentials.unary_start[i], potentials.unary_start[i + 1])
        first, last = potentials.bias_start[i], potentials.bias_start[i + 1]
        design = np.zeros((cells.stop - cells.start, last - first))
        for column, c in zip(index[cells].T, coefficient[cells].T, strict=True):
            design[np.arange(len(c)), np.where(c != 0, column - first, 0)] += c
        out[first:last] = _one_variable(design, counts[cells], ridge)
    return out


def _one_variable(design, counts, ridge, steps=100):
    """Damped Newton's method for the biases of a single variable."""
    bias, n = np.zeros(design.shape[1]), counts.sum()

    def value(b):
        return n * np.logaddexp.reduce(design @ b) - counts @ design @ b + ridge * (b @ b)

    for _ in range(steps):
        shares = np.exp(design @ bias - np.logaddexp.reduce(design @ bias))
        gradient = design.T @ (n * shares - counts) + 2.0 * ridge * bias
        centred = design - shares @ design
        hessian = n * (centred * shares[:, None]).T @ centred
        step = np.linalg.solve(hessian + 2.0 * ridge * np.eye(len(bias)), gradient)
        size, before = 1.0, value(bias)
        while size > 1e-6 and value(bias - size * step) > before:
            size /= 2.0
        if size <= 1e-6:  # no change beyond rounding
            break
        bias = bias - size * step
    return bias
