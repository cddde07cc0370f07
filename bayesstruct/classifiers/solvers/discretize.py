"""Cut numbers into states that tell the classes of a target apart."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesstruct.data.errors import TableError, column_list, count
from bayesstruct.data.names import label_text, nearest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Discretization", "entropy_cuts", "mdl_discretization"]


@dataclass(frozen=True, eq=False)
class Discretization:
    """Cut points of columns of numbers.

    Attributes
    ----------
    target : str
    cuts : dict of str to tuple of float
        Ascending cut points of each column of numbers; none for a column that does not tell classes apart.
    """

    target: str
    cuts: dict[str, tuple[float, ...]]

    @property
    def left_out(self) -> list[str]:
        """Columns without a cut point, which would be constant."""
        return [name for name, own in self.cuts.items() if not own]

    def apply(self, table: "pd.DataFrame") -> "pd.DataFrame":
        """Cut the columns of a table, which may have other rows.

        Parameters
        ----------
        table : pandas.DataFrame

        Returns
        -------
        pandas.DataFrame
            Columns of numbers as ordered categories such as ``"<= 1.5"`` and ``"> 1.5"``, missing values missing, without those of
            `left_out`; the others as they are.

        Raises
        ------
        TableError
            If a column is absent.
        """
        import pandas as pd

        found = table.drop(columns=[name for name in self.left_out if name in table])
        for name, own in self.cuts.items():
            if not own:
                continue
            if name not in found:
                raise TableError(f"{column_list([name])} is absent: give all columns that were cut")
            edges = (-np.inf, *own, np.inf)
            found[name] = pd.cut(found[name].astype(float), edges, labels=_labels(own))
        return found


def _labels(cuts: tuple[float, ...]) -> list[str]:
    """Names of the parts, with as many digits as tell the cut points apart, at least six."""
    for digits in range(6, 18):
        written = [f"{cut:.{digits}g}" for cut in cuts]
        if len({*written}) == len(cuts):
            break
    inner = [f"({low}, {high}]" for low, high in pairwise(written)]
    return [f"<= {written[0]}", *inner, f"> {written[-1]}"]


def mdl_discretization(data: "pd.DataFrame", target: Any) -> Discretization:
    r"""Cut columns of numbers so that the classes of a target are told apart, by minimum description length.

    A column is cut in two where the class entropy within the parts is least, and each part again, while the gain is more than

    .. math:: \frac{\log_2(N - 1) + \log_2(3^k - 2) - [k H(S) - k_1 H(S_1) - k_2 H(S_2)]}{N}

    for N rows in a part S with k classes.

    Parameters
    ----------
    data : pandas.DataFrame
        Columns of numbers are cut; text, booleans and categories are left as they are.
    target : str
        Column of the class, without missing values.

    Returns
    -------
    Discretization
        ``apply(table)`` cuts this table and others.

    Raises
    ------
    TableError
        If there is no such target, or it has missing values, one class, or numbers that are not whole.
    TypeError
        If `data` is not a pandas table.

    Notes
    -----
    The cut points are learned from the classes: learn them from the rows that a classifier is learned from, and not from those on which it is
    tested.

    References
    ----------
    Fayyad, U. M. and Irani, K. B. (1993). Multi-interval discretization of continuous-valued attributes for
    classification learning. *IJCAI* 13, 1022-1027.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"x": range(20), "y": ["a"] * 8 + ["b"] * 12})
    >>> mdl_discretization(table, "y").cuts
    {'x': (7.5,)}
    """
    import pandas as pd

    if not isinstance(data, pd.DataFrame):
        raise TypeError(f"`data` is a pandas DataFrame, not {type(data).__name__}")
    names = {label_text(name): name for name in data.columns}
    if label_text(target) not in names:
        raise TableError(nearest("target", target, names))
    y = data[names[label_text(target)]]
    if y.isna().any():
        raise TableError(
            f"the target {label_text(target)!r} is missing in {count(int(y.isna().sum()), 'row')}: drop these rows"
        )
    if pd.api.types.is_float_dtype(y) and (y % 1 != 0).any():
        raise TableError(
            f"the target {label_text(target)!r} holds numbers that are not whole, which are not classes: cut them into classes first "
            "(pandas.cut, pandas.qcut)"
        )
    codes = pd.factorize(y)[0]
    if len({*codes.tolist()}) < 2:
        raise TableError(
            f"the target {label_text(target)!r} has one class, so that there is nothing to tell apart"
        )
    cuts = {}
    for name, own in data.items():
        plain = pd.api.types.is_numeric_dtype(own) and not pd.api.types.is_bool_dtype(own)
        if not plain or name == names[label_text(target)]:
            continue
        x = own.to_numpy(float, na_value=np.nan)
        if np.isinf(x).any():
            raise TableError(f"{column_list([str(name)])} holds an infinite value: correct it")
        cuts[name] = entropy_cuts(x[~np.isnan(x)], codes[~np.isnan(x)])
    return Discretization(label_text(target), cuts)


def entropy_cuts(x: np.ndarray, codes: np.ndarray) -> tuple[float, ...]:
    """Return the ascending cut points of numbers, see `mdl_discretization`.

    Parameters
    ----------
    x : (n,) ndarray of float
        Finite numbers.
    codes : (n,) ndarray of int
        Classes 0, 1, ...
    """
    order = np.argsort(x, kind="stable")
    ones = np.eye(codes.max(initial=0) + 1)[codes[order]]
    counts = np.vstack([np.zeros(ones.shape[1]), ones.cumsum(axis=0)])
    found: list[float] = []
    parts = [(0, len(x))]
    while parts:
        first, stop = parts.pop()
        at = _best_cut(x[order], counts, first, stop)
        if at is not None:
            found.append(float((x[order[at - 1]] + x[order[at]]) / 2.0))
            parts += [(first, at), (at, stop)]
    return tuple(sorted(found))


def _best_cut(x, counts, first, stop):
    """Place of the cut with the least entropy, or None if it does not pay."""
    n = stop - first
    places = first + 1 + np.flatnonzero(x[first + 1 : stop] > x[first : stop - 1])
    if not len(places):
        return None
    whole = counts[stop] - counts[first]
    left, right = counts[places] - counts[first], counts[stop] - counts[places]
    spread = left.sum(axis=1) * _entropy(left) + right.sum(axis=1) * _entropy(right)
    best = int(spread.argmin())
    parts = [whole[None], left[best : best + 1], right[best : best + 1]]
    information = [int((part > 0).sum()) * float(_entropy(part)[0]) for part in parts]
    classes = int((whole > 0).sum())
    price = np.log2(3.0**classes - 2) - (information[0] - information[1] - information[2])
    gain = float(_entropy(whole[None])[0]) - spread[best] / n
    return int(places[best]) if gain > (np.log2(n - 1) + price) / n else None


def _entropy(counts):
    """Entropy in bits of each row of counts."""
    p = counts / counts.sum(axis=1, keepdims=True)
    return -(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=1)
