"""How well each column of a table is predicted by others in each draw of a result.

A family registers how its results become a list of `Predicted`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "OTHERS",
    "PARENTS",
    "Predicted",
    "StateTally",
    "predicted_columns",
    "register_predictability",
]

#: What a column is predicted from.
OTHERS, PARENTS = "all others", "parents"

_KNOWN: dict[str, tuple[Callable, Callable]] = {}


@dataclass(frozen=True, eq=False)
class Predicted:
    """How well one column is predicted, by one measure.

    Attributes
    ----------
    node : str
    measure : str
        ``"R2"``, ``"accuracy"`` or ``"deviance"``.
    given : str
        What it is predicted from.
    values : (draws,) ndarray of float
    marginal : float
        What the marginal distribution of the column reaches, without any other column.
    """

    node: str
    measure: str
    given: str
    values: np.ndarray
    marginal: float = 0.0


def register_predictability(
    kind: str,
    recognise: Callable[["xr.DataTree"], bool],
    read: Callable[["xr.DataTree", int], tuple[list[Predicted], list[str]]],
) -> None:
    """Let ``bayesstruct.predictability`` read results of a kind.

    Parameters
    ----------
    kind : str
        What the results are of, in the plural; a kind that is registered already is replaced.
    recognise : callable
        Of a result: whether it is of this kind.
    read : callable
        Of a result and the maximum number of draws: columns by measures, and notes in words.
    """
    _KNOWN[kind] = recognise, read


def predicted_columns(idata: "xr.DataTree", draws: int) -> tuple[list[Predicted], list[str]]:
    """Columns of a result by measures, and notes in words.

    Raises
    ------
    ValueError
        If results of this kind do not say how columns are predicted.
    """
    for recognise, read in _KNOWN.values():
        if recognise(idata):
            return read(idata, draws)
    raise ValueError(
        f"how well columns are predicted is known for {', '.join(_KNOWN)}. Where a result has graphs alone, "
        "bs.precision_draws(idata) adds precision matrices to them; of a graph from bs.symmetrize read the result that it was made from"
    )


class StateTally:
    """Counts how often the states of columns are predicted, draw by draw.

    Parameters
    ----------
    names : sequence of str
    codes : (n, p) ndarray
        States of the observed values from 0.
    known : (n, p) ndarray of bool
        Which values count: those that were observed, and not set from outside.
    ordered : sequence of bool
        Columns whose codes are numbers, so that their expected value means something.
    """

    def __init__(
        self,
        names: Sequence[str],
        codes: np.ndarray,
        known: np.ndarray,
        ordered: Sequence[bool] | np.ndarray,
    ):
        self.names = list(names)
        self.known = known
        self.ordered = list(ordered)
        self.columns = [codes[own, j].astype(int) for j, own in enumerate(known.T)]
        self.found: list[list[tuple[float, float, float]]] = [[] for _ in self.names]

    def add(self, log_probabilities: Sequence[np.ndarray]) -> None:
        """Count one draw.

        Parameters
        ----------
        log_probabilities : sequence of (states, n) ndarray of float
            Of the states of each column in each row.
        """
        for j, logs in enumerate(log_probabilities):
            x, own = self.columns[j], logs[:, self.known[:, j]]
            if not len(x):
                self.found[j].append((np.nan,) * 3)
                continue
            expected = np.arange(len(own)) @ np.exp(own)
            right = float((own.argmax(axis=0) == x).mean())
            missed = float(((x - expected) ** 2).mean())
            self.found[j].append((right, -float(own[x, np.arange(len(x))].mean()), missed))

    def predicted(self, given: str) -> Iterator[Predicted]:
        """Measures of all columns: accuracy, deviance, and R2 where states are numbers."""
        for name, x, ordered, found in zip(
            self.names, self.columns, self.ordered, self.found, strict=True
        ):
            right, surprise, missed = np.array(found).T
            shares = np.bincount(x) / len(x) if len(x) else np.array([np.nan])
            yield Predicted(name, "accuracy", given, right, float(shares.max()))
            used = shares[shares > 0]
            yield Predicted(
                name, "deviance", given, _explained(surprise, -float(used @ np.log(used)))
            )
            if ordered:
                spread = float(x.var()) if len(x) else np.nan
                yield Predicted(name, "R2", given, _explained(missed, spread))


def _explained(left: np.ndarray, whole: float) -> np.ndarray:
    """Share of a whole that is not left; NaN for a column that is constant."""
    return 1.0 - left / whole if whole > 0 else np.full(len(left), np.nan)
