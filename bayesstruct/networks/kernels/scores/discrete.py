"""Local scores of discrete networks: marginal likelihoods and BIC of conditional probability tables."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.kernels.scores.base import (
    FEW_VALUES,
    Score,
    fill_zeros,
    positive,
    table_matrix,
)
from bayesstruct.networks.kernels.scores.merged_rows import (
    MERGED_FROM,
    family_places,
    merge_rows,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["BDe", "BDeu", "MultinomialBIC"]


class _Counts(Score):
    """Scores that depend on the data by counts of states."""

    _kind = 0  # `DIRICHLET`, `DIRICHLET_CONSTANT` and `BIC` of `bayesstruct.networks.kernels.scores.count_subsets` are 0, 1, 2

    def __init__(self, table, states, interventions):
        x, self._states = _checked_states(table, states)
        # Numba compiles again for arrays that must not be written to: kernels get the other one.
        self.states = self._states.copy()
        self.states.flags.writeable = False
        super().__init__(x.shape[::-1], interventions)
        weights = np.array(self._kept, np.int32).reshape(len(self._kept), x.shape[1])
        at, self._weights = merge_rows(x, np.arange(self.d), self._states, weights)
        self._x = np.ascontiguousarray(x[:, at])

    @abstractmethod
    def _value(self, child):
        """Return the number that goes with the kind of score."""

    def _fill(self, child, candidates, fixed, most, out):
        from bayesstruct.networks.kernels.scores.count_subsets import count_subsets

        if not self.n_rows[child]:
            fill_zeros(len(fixed), most, out)
            return
        x, weights, states = self._x, self._weights[self._group[child]], self._states
        value = self._value(child)
        if len(candidates) >= MERGED_FROM:
            family = np.array([child, *candidates, *fixed])
            at, weights = merge_rows(x, family, states, weights[None])
            x = np.ascontiguousarray(x[family][:, at])
            weights, states = weights[0], states[family]
            child, candidates, fixed = family_places(len(candidates), len(fixed))
        codes = np.empty((len(candidates) + 1, x.shape[1]), np.int32)
        count_subsets(
            x, weights, states, child, candidates, fixed, most, self._kind, value, codes, out
        )


class BDeu(_Counts):
    r"""Marginal likelihood of discrete networks, the same for equivalent graphs.

    Each row of the table of conditional probabilities of a child with r states and q configurations of its parents
    has a Dirichlet prior with all :math:`\alpha_{jk} = \alpha / (r q)`.

    Parameters
    ----------
    table : (n, d) array_like of int
        States 0, 1, ...
    states : (d,) sequence of int, optional
        How many each variable has; by default one more than the greatest in the table.
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside.
    equivalent_sample_size : float, default 1
        :math:`\alpha`: rows that the prior is worth.

    Attributes
    ----------
    d : int
        Number of variables.
    n_rows : (d,) int array
        Rows in which each variable was not set.
    states : (d,) int array
    equivalent_sample_size : float

    Raises
    ------
    ValueError
        If a value is not one of the states of its variable, or `equivalent_sample_size` is not positive.

    References
    ----------
    Heckerman, D., Geiger, D. and Chickering, D. M. (1995). Learning Bayesian networks: the combination of
    knowledge and statistical data. *Machine Learning* 20, 197-243.
    """

    def __init__(
        self,
        table: "ArrayLike",
        *,
        states: Sequence[int] | None = None,
        interventions: "ArrayLike | None" = None,
        equivalent_sample_size: float = 1.0,
    ):
        self.equivalent_sample_size = positive("equivalent_sample_size", equivalent_sample_size)
        super().__init__(table, states, interventions)

    def _value(self, child):
        return self.equivalent_sample_size

    def single_parents(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores of all families with no parent and with one.

        Returns
        -------
        alone : (d,) ndarray
        pairs : (d, d) ndarray
            Entry [child, parent]; the diagonal is 0.
        """
        from bayesstruct.networks.kernels.scores.pair_counts import dirichlet_pairs

        alone, pairs = np.zeros(self.d), np.zeros((self.d, self.d))
        for group, weights in enumerate(self._weights):
            children = np.flatnonzero((self._group == group) & (self.n_rows > 0))
            alone[children], pairs[children] = dirichlet_pairs(
                self._x, weights, self._states, children, self.equivalent_sample_size
            )
        np.fill_diagonal(pairs, 0.0)
        return alone, pairs


class BDe(_Counts):
    r"""Marginal likelihood of discrete networks with the same pseudo-count in each cell.

    As `BDeu` with all :math:`\alpha_{jk}` equal; 1, a uniform prior, is the K2 score. Equivalent graphs
    do not score the same.

    Parameters
    ----------
    table, states, interventions
        As of `BDeu`.
    pseudo_count : float, default 1
        :math:`\alpha_{jk}`.

    Raises
    ------
    ValueError
        If a value is not one of the states of its variable, or `pseudo_count` is not positive.

    References
    ----------
    Cooper, G. F. and Herskovits, E. (1992). A Bayesian method for the induction of probabilistic networks
    from data. *Machine Learning* 9, 309-347.
    """

    _kind = 1

    def __init__(
        self,
        table: "ArrayLike",
        *,
        states: Sequence[int] | None = None,
        interventions: "ArrayLike | None" = None,
        pseudo_count: float = 1.0,
    ):
        self.pseudo_count = positive("pseudo_count", pseudo_count)
        super().__init__(table, states, interventions)

    def _value(self, child):
        return self.pseudo_count


class MultinomialBIC(_Counts):
    r"""Minus half of the BIC of tables of conditional probabilities.

    .. math::

        s_i(\pi) = \sum_{jk} N_{jk} \log \frac{N_{jk}}{N_j} - \frac{q (r - 1)}{2} \log n

    for r states and q configurations of the parents, those that do not occur included. A variable that was set
    in every row scores 0.

    Parameters
    ----------
    table, states, interventions
        As of `BDeu`.

    Raises
    ------
    ValueError
        If a value is not one of the states of its variable.

    References
    ----------
    Schwarz, G. (1978). Estimating the dimension of a model. *Annals of Statistics* 6, 461-464.
    """

    _kind = 2

    def __init__(
        self,
        table: "ArrayLike",
        *,
        states: Sequence[int] | None = None,
        interventions: "ArrayLike | None" = None,
    ):
        super().__init__(table, states, interventions)
        self._price = 0.5 * np.log(np.maximum(self.n_rows, 1))

    def _value(self, child):
        return float(self._price[child])


def _checked_states(table, states):
    """Return the states as a (d, n) array of a small type, and their numbers, checked."""
    table = table_matrix(table)
    whole = table.dtype.kind in "bui" and table.min(initial=0) >= 0
    for j, column in enumerate([] if whole else table.T):
        numbers = column.dtype.kind in "buif" and np.isfinite(column).all()
        if not numbers or (column != np.floor(column)).any() or (column < 0).any():
            raise ValueError(
                f"column {j} has values that are not states 0, 1, ...: number its states, and leave "
                "out or impute missing values"
            )
    x = table.T.astype(np.int64, copy=False)
    most = x.max(axis=1, initial=0) + 1
    states = most.copy() if states is None else np.array(states, np.int64)
    if states.shape != most.shape:
        raise ValueError(f"`states` has shape {states.shape}; give one number for each variable")
    if (states < most).any():
        j = int(np.argmax(states < most))
        raise ValueError(f"column {j} has the state {most[j] - 1}, but `states` says {states[j]}")
    if states.max() > FEW_VALUES:
        raise ValueError(
            f"column {states.argmax()} has {states.max()} states, more than {FEW_VALUES}; merge some of them"
        )
    return np.ascontiguousarray(x, np.uint8), states
