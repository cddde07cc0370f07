"""Choices between pairs of options, checked and named."""

from dataclasses import dataclass

import numpy as np

from bayesstruct.data.checks import ARROW
from bayesstruct.data.errors import TableError
from bayesstruct.features.data.links import square_matrix

__all__ = ["ChoiceTable"]


@dataclass(frozen=True, eq=False, repr=False)
class ChoiceTable:
    """How often one option was chosen over another; make one with :meth:`read`.

    Attributes
    ----------
    names : tuple of str
        The n options.
    first, second : (m,) int64 ndarray
        Positions of the two options of each pair that was compared, first < second.
    wins, trials : (m,) int64 ndarray
        How often the first was chosen, of how many times.
    """

    names: tuple[str, ...]
    first: np.ndarray
    second: np.ndarray
    wins: np.ndarray
    trials: np.ndarray

    @property
    def labels(self) -> list[str]:
        """Label "a -> b" of each pair: a is chosen over b."""
        return [
            f"{self.names[i]}{ARROW}{self.names[j]}"
            for i, j in zip(self.first, self.second, strict=True)
        ]

    @classmethod
    def read(cls, wins) -> "ChoiceTable":
        """Check a matrix of choices.

        Parameters
        ----------
        wins : DataFrame or (n, n) array_like
            How often the option of the row was chosen over that of the column. The diagonal is not used; 0 both
            ways, or NaN, where two options were never compared.

        Returns
        -------
        ChoiceTable

        Raises
        ------
        TableError
            If the matrix is not square, its rows and columns differ in name, there are fewer than two options, a
            number is not a count, or is missing while its mirror image is not, or no option was ever chosen.
        """
        names, counts = _counts(wins)
        first, second = np.triu_indices(len(names), 1)
        ahead, behind = counts[first, second], counts[second, first]
        compared = ahead + behind > 0
        if not compared.any():
            raise TableError("choices: no option was ever chosen over another: all counts are zero")
        pairs = first[compared].astype(np.int64), second[compared].astype(np.int64)
        return cls(names, *pairs, ahead[compared], (ahead + behind)[compared])


def _counts(wins):
    """Return names and counts, zero on the diagonal."""
    names, values = square_matrix(wins, "choices")
    np.fill_diagonal(values, 0.0)
    gaps = np.isnan(values)
    if (gaps & ~gaps.T).any():
        i, j = np.argwhere(gaps & ~gaps.T)[0]
        raise TableError(
            f"choices: {names[i]!r} over {names[j]!r} is missing, but {names[j]!r} over {names[i]!r} is "
            f"{values[j, i]:g}; give 0 if the first was never chosen, or leave both entries empty"
        )
    values = np.nan_to_num(values)
    wrong = (values < 0) | (values != np.round(values))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise TableError(
            f"choices: {names[i]!r} over {names[j]!r} is {values[i, j]:g}, which is not a count; give how often the "
            "option of the row was chosen, a whole number from 0 on"
        )
    return names, values.astype(np.int64)
