"""The main table of a result, whatever model it is from, and the other functions that read it."""

import inspect

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import bayesstruct.graphs.plots.main
import bayesstruct.graphs.tables.arcs
import bayesstruct.graphs.tables.edges  # noqa: F401  the tables of graphs, from any family

from bayesstruct.core.families import import_chapters
from bayesstruct.core.readers import reader_of, readers, variables
from bayesstruct.graphs.summaries import bayes_factor_texts

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from matplotlib.axes import Axes

__all__ = ["Summary", "summary"]

import_chapters("reading")  # which register the tables of their families


@dataclass(frozen=True, eq=False)
class Summary:
    """Main table of a result; see `summary`.

    Attributes
    ----------
    kind : str
        What the draws are.
    reader : str
        Name of the function that makes the table.
    table : pandas.DataFrame
    others : tuple of str
        Names of other functions that read such results.
    figure : callable, optional
        Draws the main figure of the result, into ``ax=`` if that is given.
    """

    kind: str
    reader: str
    table: "pd.DataFrame"
    others: tuple[str, ...]
    figure: Callable[..., Any] | None = None

    def plot(self, *, ax: "Axes | None" = None, **options):
        """Draw the main figure of the result.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a figure of a size that fits.
        **options
            Passed to the function that draws.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If there is no figure for this kind of result.

        Examples
        --------
        >>> summary(idata).plot()  # doctest: +SKIP
        """
        if self.figure is None:
            raise ValueError(
                f"There is no figure for {self.kind}; bs.extend.register_figure registers one."
            )
        return self.figure(ax=ax, **options)

    def __repr__(self):
        import pandas as pd

        with pd.option_context("display.max_columns", None, "display.width", 120):
            text = repr(self._shown())
        return "\n\n".join([self._headline(), text, *self._notes(), self._others()])

    def _repr_html_(self):
        from html import escape

        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return (
            f"<p><b>{escape(self._headline())}</b></p>{self._shown().to_html(max_rows=20)}{notes}"
            f"<p>{escape(self._others())}</p>"
        )

    def _shown(self) -> "pd.DataFrame":
        """Return the table with Bayes factors as text, in which bounds are marked."""
        if "bayes_factor" not in self.table:
            return self.table
        return self.table.assign(bayes_factor=bayes_factor_texts(self.table))

    def _headline(self) -> str:
        return f"Draws of {self.kind}: bs.{self.reader}(idata)"

    def _notes(self) -> list[str]:
        return [str(note) for note in self.table.attrs.get("notes", ())]

    def _others(self) -> str:
        names = ", ".join(f"bs.{name}" for name in self.others)
        return f"The same result is read by {names}."


def summary(idata: "xr.DataTree", **options) -> Summary:
    """Return the main table of a result, and name the other functions that read it.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of a model of :mod:`bayesstruct.models`, or of a model with distributions of this package
        that has the same variables.
    **options
        Passed to the function that makes the table, such as ``ci_prob=0.9``.

    Returns
    -------
    Summary
        Prints as the table, in which bounds of Bayes factors are marked as in "> 1e6", with its notes and the
        names of the other readers; ``.table`` is the DataFrame,
        ``.reader`` the name of the function that made it, ``.others`` the names of the other readers, and
        ``.plot()`` draws the main figure. The table is that of

        {tables}

    Raises
    ------
    TypeError
        If `idata` is not a DataTree.
    ValueError
        If it has no draws of a structure.

    See Also
    --------
    bayesstruct.check : whether the chains have converged.
    arviz.summary : a table of all numbers in a result, element by element.

    Examples
    --------
    >>> summary(idata)  # doctest: +SKIP
    >>> summary(idata).table.query("probability > 0.5")  # doctest: +SKIP
    >>> summary(idata).plot()  # doctest: +SKIP
    """
    import xarray as xr

    if not isinstance(idata, xr.DataTree):
        raise TypeError(
            "Expected the xarray.DataTree that pm.sample() returns, got "
            f"{type(idata).__module__}.{type(idata).__name__}."
        )
    reader = reader_of(idata)
    if reader is None:
        found = ", ".join(sorted(variables(idata))) or "nothing"
        raise ValueError(
            f"This result has no draws of a structure that bayesstruct knows; its posterior holds {found}. "
            "Was it sampled from a model of bs.models? All numbers of any result: az.summary(idata)"
        )
    table = reader.table(idata, **options)
    figure = reader.figure and partial(reader.figure, idata)
    return Summary(reader.kind, reader.table.__name__, table, reader.others, figure)


def _described() -> str:
    """List the tables and the kinds of results that they are of, for the docstring of `summary`."""
    kinds: dict[str, list[str]] = {}
    for reader in readers():
        kinds.setdefault(reader.table.__name__, []).append(reader.kind)
    return "\n".join(f"    - `bs.{name}` for {', '.join(k)}" for name, k in kinds.items())


if summary.__doc__ is not None:  # None under `python -OO`
    summary.__doc__ = inspect.cleandoc(summary.__doc__).replace("    {tables}", _described())
