r"""Local scores of Bayesian networks: their base, and checks of tables.

A score is additive over the families of a directed acyclic graph G,

.. math::

    \log p(\text{data} \mid G) = \sum_i s_i(\mathrm{pa}_i),

its terms being log marginal likelihoods or minus half of a BIC. All scores have the methods of
`Score`: `local` for one parent set, `subsets` for all subsets of some candidates at once.

Interventions are perfect: a variable that is set does not depend on its parents, so that a row carries no information
about the distribution of a variable that was set in it, and is left out of the local scores of that variable (Cooper
and Yoo 1999).

References
----------
Cooper, G. F. and Yoo, C. (1999). Causal discovery from a mixture of experimental and observational data.
*UAI* 15, 116-125.
"""

import math

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["FEW_VALUES", "Score", "fill_zeros", "finite_numbers", "positive", "table_matrix"]

_MOST_CANDIDATES = 24  # 2**24 scores take 128 MiB
FEW_VALUES = 256  # different values at most of a discrete variable
_ROWS = 2**31 // FEW_VALUES  # numbers of configurations are int32


class Score(ABC):
    """Local scores of d variables.

    Parameters
    ----------
    shape : tuple of int
        Rows and variables of the table.
    interventions : (n, d) bool array_like, optional
        True where a variable was set from outside; none by default.

    Attributes
    ----------
    d : int
        Number of variables.
    n_rows : (d,) int array
        Rows in which each variable was not set.
    """

    def __init__(self, shape: tuple[int, ...], interventions: "ArrayLike | None" = None):
        self.d = shape[1]
        self._kept, self._group = _groups(shape, interventions)
        self.n_rows = np.array([int(rows.sum()) for rows in self._kept])[self._group]
        self.n_rows.flags.writeable = False

    def local(self, child: int, parents: Iterable[int]) -> float:
        """Score of one family.

        Parameters
        ----------
        child : int
        parents : iterable of int

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If a variable does not exist or is there twice.
        """
        out = np.empty(1)
        none = np.empty(0, np.int64)
        self._fill(child, none, self._variables(child, parents), self.d, out)
        return float(out[0])

    def subsets(
        self,
        child: int,
        candidates: Iterable[int],
        *,
        fixed: Iterable[int] = (),
        max_parents: int | None = None,
    ) -> np.ndarray:
        """Scores of the parent sets that consist of `fixed` and of some of the candidates.

        Parameters
        ----------
        child : int
        candidates : iterable of int
            k variables, at most 24.
        fixed : iterable of int
            Parents in every set; not among the candidates.
        max_parents : int, optional
            Larger sets score -inf.

        Returns
        -------
        numpy.ndarray
            float64, (2**k,): entry m has the candidates b with bit b of m set.

        Raises
        ------
        ValueError
            If a variable does not exist or is there twice, or there are too many candidates.
        """
        candidates = list(candidates)
        both, k = self._variables(child, [*candidates, *fixed]), len(candidates)
        if k > _MOST_CANDIDATES:
            raise ValueError(
                f"{k} candidates have 2**{k} subsets; give at most {_MOST_CANDIDATES} candidates"
            )
        most = self.d if max_parents is None else max_parents
        out = np.empty(1 << k)
        self._fill(child, both[:k], both[k:], most, out)
        return out

    @abstractmethod
    def _fill(self, child, candidates, fixed, most, out):
        """Write the scores of all subsets; int64 arrays, checked."""

    def _variables(self, child, parents):
        """Parents as an array, after a check that the family exists."""
        parents = [int(j) for j in parents]
        family = {int(child), *parents}
        if len(family) <= len(parents):
            raise ValueError(f"child {child} and parents {parents} must all be different")
        if min(family) < 0 or max(family) >= self.d:
            raise ValueError(
                f"child {child} and parents {parents} must lie between 0 and {self.d - 1}"
            )
        return np.array(parents, np.int64)


def _groups(shape, interventions):
    """Rows that are kept, one mask for each group of children; and the group of each child."""
    n, d = shape
    if interventions is None:
        return [np.ones(n, bool)], np.zeros(d, np.int64)
    interventions = np.asarray(interventions)
    if interventions.shape != (n, d):
        raise ValueError(
            f"`interventions` has shape {interventions.shape}; give one value for each value of the "
            f"table, {n} x {d}"
        )
    if interventions.dtype != bool:
        raise ValueError("`interventions` must be true or false for each value")
    kept, group, seen = [], np.empty(d, np.int64), {}
    for j, rows in enumerate(~interventions.T):
        key = rows.tobytes()
        if key not in seen:
            seen[key] = len(kept)
            kept.append(rows.copy())
        group[j] = seen[key]
    return kept, group


def positive(name: str, value: float) -> float:
    """Return a hyperparameter as a float, checked."""
    if not 0 < value < math.inf:
        raise ValueError(f"`{name}` must be a positive number, it is {value}")
    return float(value)


def table_matrix(table: "ArrayLike") -> np.ndarray:
    """Rows and variables as an array of two dimensions."""
    table = np.asarray(table)
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(f"the table must have rows and columns, its shape is {table.shape}")
    if len(table) >= _ROWS:
        raise ValueError(
            f"the table has {len(table):,} rows; scores are made for less than {_ROWS:,}"
        )
    return table


def finite_numbers(table: "ArrayLike") -> np.ndarray:
    """Return the table as finite floats, checked."""
    table = table_matrix(table).astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(table).all(0))
    if len(wrong):
        raise ValueError(
            f"column {wrong[0]} has missing or infinite values: leave out those rows or impute them"
        )
    return table


def fill_zeros(fixed: int, most: int, out: np.ndarray) -> None:
    """Write the scores of a child without rows: zero for each set that is not too large."""
    sizes = fixed + np.bitwise_count(np.arange(len(out)))
    out[:] = np.where(sizes <= most, 0.0, -np.inf)
