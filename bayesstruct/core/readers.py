"""Registries of the functions that read results.

The main table and the main figure of each kind of result, and the other functions that fit; and what is followed to tell whether chains
have converged, where draws have labels that mean nothing.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "Followed",
    "Reader",
    "coefficients_of",
    "followed_of",
    "reader_of",
    "readers",
    "register_check",
    "register_coefficients",
    "register_figure",
    "register_summary",
    "variables",
]

_READERS: list["Reader"] = []
_FIGURES: dict[str, Callable[..., Any]] = {}
_FOLLOWED: dict[str, "Followed"] = {}
_COEFFICIENTS: dict[str, tuple[Callable, Callable]] = {}


@dataclass(frozen=True)
class Reader:
    """How results of one kind are read.

    Attributes
    ----------
    kind : str
        What the draws are, as in "draws of undirected graphs"; names the reader.
    recognise : callable
        Of a result: whether it is of this kind.
    table : callable
        Of a result and options: the main table, a DataFrame.
    others : tuple of str
        Public names of the other functions that read such results.
    """

    kind: str
    recognise: Callable[["xr.DataTree"], bool]
    table: Callable[..., Any]
    others: tuple[str, ...] = ()

    @property
    def figure(self) -> Callable[..., Any] | None:
        """The main figure, of a result, ``ax=None`` and options; None if no figure is registered."""
        return _FIGURES.get(self.kind)


def register_figure(figure: Callable[..., Any], *kinds: str) -> None:
    """Let ``bayesstruct.summary(idata).plot()`` and reports draw results of some kinds by a figure.

    Parameters
    ----------
    figure : callable
        Of a result and ``ax=None``, where to draw; returns the axes. It replaces the one that a kind had.
    *kinds : str
        As in `Reader`. They may be registered later.
    """
    _FIGURES.update(dict.fromkeys(kinds, figure))


def register_coefficients(
    kind: str,
    recognise: Callable[["xr.DataTree"], bool],
    read: Callable[["xr.DataTree", str], "xr.Dataset"],
) -> None:
    """Let ``bayesstruct.coefficients`` read results of a kind that are not linear regressions of numbers.

    Parameters
    ----------
    kind : str
        What the results are of, in the plural; a kind that is registered already is replaced.
    recognise : callable
        Of a result: whether it is of this kind.
    read : callable
        Of a result and the name of the group that holds the draws: parameters in the units of the table.
    """
    _COEFFICIENTS[kind] = recognise, read


def coefficients_of(idata: "xr.DataTree", group: str) -> "xr.Dataset | None":
    """Return parameters in the units of the table; None if no registered kind recognises the result."""
    for recognise, read in _COEFFICIENTS.values():
        if recognise(idata):
            return read(idata, group)
    return None


def register_summary(
    kind: str,
    recognise: Callable[["xr.DataTree"], bool],
    table: Callable[..., Any],
    others: tuple[str, ...] = (),
    *,
    before: str | tuple[str, ...] = (),
) -> Reader:
    """Let ``bayesstruct.summary`` read results of a kind by a table.

    Parameters
    ----------
    kind : str
    recognise : callable
    table : callable
    others : tuple of str
        As in `Reader`.
    before : str or tuple of str
        Registered kinds that recognise such results too, and must be asked later; by default all
        registered kinds are asked before this one.

    Returns
    -------
    Reader

    Raises
    ------
    ValueError
        If one of `before` is not registered.
    """
    kinds = [known.kind for known in _READERS]
    if kind in kinds:  # as when a cell of a notebook runs again
        reader = Reader(kind, recognise, table, (*others,))
        _READERS[kinds.index(kind)] = reader
        return reader
    later = (before,) if isinstance(before, str) else before
    if lost := [other for other in later if other not in kinds]:
        raise ValueError(f"{lost[0]!r} must be registered before {kind!r} names it")
    place = min((kinds.index(other) for other in later), default=len(kinds))
    reader = Reader(kind, recognise, table, (*others,))
    _READERS.insert(place, reader)
    return reader


@dataclass(frozen=True)
class Followed:
    """What is followed in results of one kind, to tell whether the chains have converged.

    Attributes
    ----------
    recognise : callable
        Of a result: whether it is of this kind.
    quantities : callable
        Of the posterior draws, a Dataset: names and draws of quantities that do not depend on labels.
    labelled : callable
        Of the posterior draws: names of variables that are not followed themselves, as their entries depend
        on labels. All others are.
    """

    recognise: Callable[["xr.DataTree"], bool]
    quantities: Callable[["xr.Dataset"], Iterable[tuple[str, "xr.DataArray"]]]
    labelled: Callable[["xr.Dataset"], Collection[str]]


def register_check(
    kind: str,
    recognise: Callable[["xr.DataTree"], bool],
    quantities: Callable[["xr.Dataset"], Iterable[tuple[str, "xr.DataArray"]]],
    labelled: Callable[["xr.Dataset"], Collection[str]],
) -> Followed:
    """Let ``bayesstruct.check`` follow the quantities of a kind of result.

    Results with the variables of graphs need none: their quantities are known.

    Parameters
    ----------
    kind : str
        A kind that is registered already is replaced.
    recognise, quantities, labelled : callable
        As in `Followed`.

    Returns
    -------
    Followed
    """
    _FOLLOWED[kind] = Followed(recognise, quantities, labelled)
    return _FOLLOWED[kind]


def followed_of(idata: "xr.DataTree") -> Followed | None:
    """Return what is followed in a result: of the first kind that recognises it, or None."""
    return next((kind for kind in _FOLLOWED.values() if kind.recognise(idata)), None)


def readers() -> tuple[Reader, ...]:
    """Return all readers, in the order in which they are asked."""
    return tuple(_READERS)


def reader_of(idata: "xr.DataTree") -> Reader | None:
    """Return the first reader that recognises a result, or None."""
    return next((reader for reader in _READERS if reader.recognise(idata)), None)


def variables(idata: "xr.DataTree", group: str = "posterior") -> set[str]:
    """Names of the variables in a group of a result, none if there is no such group."""
    children = getattr(idata, "children", ())
    return {str(name) for name in idata[group].data_vars} if group in children else set()
