"""Distributions of the empty values of rows given their filled ones, averaged over draws of parameters.

A family registers how its results become a `NormalRows` or a `StateRows`.
"""

import itertools

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.coding import NumberCoding, StateCoding, row_labels
from bayesstruct.data.errors import TableError, column_list

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = [
    "MAX_COMPLETIONS",
    "NormalRows",
    "StateRows",
    "incomplete_rows",
    "mixed_table",
    "normal_mixture",
    "number_table",
    "refuse_many_completions",
    "register_prediction",
    "rows_of",
    "state_shares",
    "state_table",
]

#: Ways of filling in one row over which probabilities are summed.
MAX_COMPLETIONS = 2**16
_BLOCK = 2**21  # numbers that are held at a time

_KNOWN: dict[str, tuple[Callable, Callable, frozenset[str]]] = {}


def register_prediction(
    kind: str,
    recognise: Callable[["xr.DataTree"], bool],
    rows: Callable[..., Any],
    *options: str,
) -> None:
    """Let ``bayesstruct.predict`` read results of a kind.

    Parameters
    ----------
    kind : str
        What the results are of, in the plural; a kind that is registered already is replaced.
    recognise : callable
        Of a result: whether it is of this kind.
    rows : callable
        Of a result, and of the options that are given: the distribution of a row in each draw, with a method
        ``predict(data, prob)`` as that of `NormalRows`.
    *options : str
        Options of `bayesstruct.predict` that `rows` takes.
    """
    _KNOWN[kind] = recognise, rows, frozenset(options)


def rows_of(idata: "xr.DataTree", **options) -> Any:
    """Return the distribution of a row in each draw of a result.

    Raises
    ------
    ValueError
        If results of this kind do not say what a row is, or an option does not apply.
    """
    for kind, (recognise, rows, known) in _KNOWN.items():
        if recognise(idata):
            if extra := sorted(set(options) - known):
                raise ValueError(f"`{extra[0]}` does not apply to {kind}: leave it out")
            return rows(idata, **options)
    kinds = ", ".join(_KNOWN)
    raise ValueError(
        f"predictions of empty values are known for {kinds}; in this result rows have variables of their own, "
        "or graphs stand alone (bs.precision_draws(idata) adds matrices to them), or it is not of bs.models. Values that are missing in the "
        "table of a model are in its posterior, as `x_missing`"
    )


@dataclass(frozen=True, eq=False)
class NormalRows:
    """Normal distributions of a standardised row, one for each draw.

    Its log density is :math:`h' z - z' K z / 2` and a constant.

    Attributes
    ----------
    coding : NumberCoding
    linear : (draws, p) or (draws, n, p) ndarray of float
        h; one for each row of the table where rows have means of their own.
    precision : (draws, p, p) ndarray of float
        K.
    known : dict
        Columns that were set, and their standardised values.
    """

    coding: NumberCoding
    linear: np.ndarray
    precision: np.ndarray
    known: dict[str, float]

    def predict(self, data: Any, prob: float) -> "pd.DataFrame":
        """Mean, standard deviation and interval of each empty value; see `bayesstruct.predict`."""
        table = self.coding.read(data, optional=[*self.known])
        labels = row_labels(data, table.n)
        if self.linear.ndim == 3 and self.linear.shape[1] != table.n:
            raise TableError(
                f"The covariates have {self.linear.shape[1]} rows, the table has {table.n}"
            )
        z = fill(table.standardized, table.names, self.known)
        found = []
        for row, missing in incomplete_rows(np.isnan(z)):
            mean, deviation = self._conditional(row, z[row], missing)
            for k, j in enumerate(missing):
                location, scale = table.location[j], table.scale[j]
                moments = location + scale * mean[:, k], scale * deviation[:, k]
                found.append((labels[row], table.names[j], *normal_mixture(*moments, prob)))
        return number_table(found)

    def _conditional(self, row, z, missing):
        """Means and standard deviations of missing values given the others, (draws, missing)."""
        known = np.flatnonzero(~np.isnan(z))
        linear = self.linear if self.linear.ndim == 2 else self.linear[:, row]
        block = self.precision[:, missing[:, None], missing]
        push = linear[:, missing] - self.precision[:, missing[:, None], known] @ z[known]
        mean = np.linalg.solve(block, push[..., None])[..., 0]
        variance = np.diagonal(np.linalg.inv(block), axis1=1, axis2=2)
        return mean, np.sqrt(variance)


def number_table(found: list[tuple]) -> "pd.DataFrame":
    """Table of rows, columns, means, standard deviations and ends of intervals."""
    import pandas as pd

    table = pd.DataFrame(found, columns=["row", "column", "mean", "sd", "low", "high"])
    return table.astype(dict.fromkeys(table.columns[2:], float))


def normal_mixture(
    mean: np.ndarray, deviation: np.ndarray, prob: float, weight: np.ndarray | None = None
) -> tuple[float, float, float, float]:
    """Mean, standard deviation and ends of the central interval of a mixture of normals.

    Parameters
    ----------
    mean, deviation : (parts,) ndarray of float
    prob : float
        Of the interval.
    weight : (parts,) ndarray of float, optional
        Sum 1; equal by default. Parts that have less than 1e-12 in total do not count for the interval.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri

    weight = np.full(len(mean), 1.0 / len(mean)) if weight is None else weight
    center = float(weight @ mean)
    spread = float(np.sqrt(weight @ (deviation**2 + (mean - center) ** 2)))
    kept = weight > 1e-12 / len(weight)
    mean, deviation, weight = mean[kept], deviation[kept], weight[kept] / weight[kept].sum()
    ends = []
    for share in (0.5 - prob / 2, 0.5 + prob / 2):

        def excess(x, share=share):
            return weight @ ndtr((x - mean) / deviation) - share

        each = mean + deviation * ndtri(share)
        # The quantile of a mixture is between those of its parts; equal ones differ by rounding.
        margin = 1e-6 * deviation.max()
        between = each.min() - margin, each.max() + margin
        ends.append(float(brentq(excess, *between, xtol=1e-14 * spread, rtol=1e-14)))
    return center, spread, ends[0], ends[1]


def state_shares(shares: np.ndarray, label: Any, prob: float) -> np.ndarray:
    """Mean and ends of the interval of the probability of each state, (3, states), from (draws, states).

    Raises
    ------
    TableError
        If all draws are NaN: the filled values of the row are impossible.
    """
    possible = shares[~np.isnan(shares).any(axis=1)]
    if not len(possible):
        raise TableError(
            f"row {label!r}: no draw gives its filled values a positive probability; leave the row out"
        )
    ends = np.quantile(possible, (0.5 - prob / 2, 0.5 + prob / 2), axis=0)
    return np.array([possible.mean(axis=0), *ends])


def state_table(found: list[tuple]) -> "pd.DataFrame":
    """Table of rows, columns, states, probabilities and ends of intervals."""
    import pandas as pd

    names = ["row", "column", "state", "probability", "low", "high"]
    return pd.DataFrame(found, columns=names).astype(dict.fromkeys(names[3:], float))


def mixed_table(found: list[tuple]) -> "pd.DataFrame":
    """Table of rows and columns with a state and its probability, or the mean and standard deviation of a number, and ends of intervals."""
    import pandas as pd

    names = ["row", "column", "state", "probability", "mean", "sd", "low", "high"]
    return pd.DataFrame(found, columns=names).astype(dict.fromkeys(names[3:], float))


@dataclass(frozen=True, eq=False)
class StateRows:
    """Distributions of a row of states, one for each draw.

    Attributes
    ----------
    coding : StateCoding
    log_weights : callable
        Of rows of states, (m, p), and a slice of the draws: logarithms of their probabilities but for a constant
        of each draw, (draws, m).
    draws : int
    known : dict
        Columns that were set, and the codes of their states.
    """

    coding: StateCoding
    log_weights: Callable[[np.ndarray, slice], np.ndarray]
    draws: int
    known: dict[str, int]

    def predict(self, data: Any, prob: float) -> "pd.DataFrame":
        """Probability of each state of each empty value, and its interval; see `bayesstruct.predict`."""
        table = self.coding.read(data, optional=[*self.known])
        labels = row_labels(data, table.n)
        codes = np.where(table.missing, np.nan, table.codes)
        codes = fill(codes, table.names, self.known)
        refuse_many_completions(np.isnan(codes), table.levels, labels)
        found, memory = [], {}
        for row, missing in incomplete_rows(np.isnan(codes)):
            key = codes[row].tobytes()
            if key not in memory:
                marginals = self._marginals(codes[row], missing)
                memory[key] = [state_shares(own, labels[row], prob) for own in marginals]
            for j, shares in zip(missing, memory[key], strict=True):
                place = labels[row], table.names[j]
                states = zip(table.levels[j], *shares, strict=True)
                found += [(*place, *state) for state in states]
        return state_table(found)

    def _marginals(self, codes, missing):
        """Probabilities of the states of each missing value in each draw, (draws, states) each."""
        sizes = [len(self.coding.levels[j]) for j in missing]
        rows = np.repeat(codes[None], int(np.prod(sizes)), axis=0)
        rows[:, missing] = list(itertools.product(*map(range, sizes)))
        rows = rows.astype(np.int64)
        found = [np.empty((self.draws, k)) for k in sizes]
        step = max(1, _BLOCK // rows.size)
        for first in range(0, self.draws, step):
            part = slice(first, min(first + step, self.draws))
            logs = self.log_weights(rows, part)
            with np.errstate(invalid="ignore"):  # -inf less -inf: the filled values are impossible
                p = np.exp(logs - logs.max(axis=1, keepdims=True))
            p = (p / p.sum(axis=1, keepdims=True)).reshape(-1, *sizes)
            for k, out in enumerate(found):
                others = tuple(axis + 1 for axis in range(len(sizes)) if axis != k)
                out[part] = p.sum(axis=others)
        return found


def refuse_many_completions(missing: np.ndarray, levels: Sequence[Sequence], labels: Any) -> None:
    """Raise for rows of states that can be completed in too many ways.

    Parameters
    ----------
    missing : (n, p) ndarray of bool
    levels : sequence of sequences
        States of each column.
    labels : sequence
        Of the rows.
    """
    counts = np.log2(np.array([max(1, len(own)) for own in levels], float))
    size = np.where(missing, counts, 0.0).sum(axis=1)
    if (size > np.log2(MAX_COMPLETIONS) + 1e-9).any():
        row = int(np.argmax(size))
        raise TableError(
            f"row {labels[row]!r} can be completed in {2.0 ** size[row]:.3g} ways, at most {MAX_COMPLETIONS:,} are "
            "summed over: fill in more of its values, or leave it out"
        )


def fill(values: np.ndarray, names: tuple[str, ...], known: dict) -> np.ndarray:
    """Fill in the values of columns that were set.

    Raises
    ------
    TableError
        If the table has another value there.
    """
    values = values.copy()
    for name, value in known.items():
        own = values[:, names.index(name)]
        if not np.isclose(own[~np.isnan(own)], value, rtol=1e-9, atol=1e-12).all():
            raise TableError(
                f"{column_list([name])} is set to one value, and the table has others: leave its values empty"
            )
        own[:] = value
    return values


def incomplete_rows(missing: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the rows with missing values, and their columns."""
    for row in np.flatnonzero(missing.any(axis=1)):
        yield int(row), np.flatnonzero(missing[row])
