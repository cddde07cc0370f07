"""Updates of the weights and the degrees of freedom of t rows."""

from typing import Any

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.recognition import parameters
from bayesstruct.precision.recognition.parts import PrecisionPart, TablePart

__all__ = ["StudentGibbs", "ValueWeightsGibbs"]


class StudentGibbs:
    """Draws the degrees of freedom, then the weights of the rows given them, for the tables of a part that have some.

    The two together are one draw given all else: the degrees of freedom are drawn with the weights integrated out.

    Parameters
    ----------
    model : pymc.Model
    part : PrecisionPart
    name : str, optional
        Of the value variable of the degrees of freedom, if they are to be drawn.
    drawn : set of TensorVariable
        Random variables to draw.
    compile_kwargs : dict, optional
    """

    def __init__(self, model, part: PrecisionPart, name: str | None, drawn, compile_kwargs=None):
        found: dict[int, Any] = {at: t.degrees for at, t in enumerate(part.tables) if self.draws(t)}
        self.places, self.name = list(found), name
        user = part.precision.name
        self.degrees = Expressions(model, list(found.values()), compile_kwargs, user=user)
        prior = () if name is None or part.degrees is None else parameters(part.degrees)
        self.prior = Expressions(model, prior, compile_kwargs)

    @staticmethod
    def draws(table: TablePart) -> bool:
        """Whether a table has weights of this kind."""
        return table.degrees is not None and table.weights is None

    def update(self, rng, tables: list, precision: np.ndarray, means: list, point: dict) -> None:
        """Draw both once: weights in the tables, the degrees of freedom in the point."""
        from bayesstruct.precision.kernels.rows.degrees import draw_degrees

        own = [(tables[at], np.atleast_1d(means[at])) for at in self.places]
        quadratic = [table.quadratic(precision, mean) for table, mean in own]
        if self.name is not None:
            shape, scale = map(float, self.prior(point))
            old, p = float(np.exp(point[self.name])), len(precision)
            new = draw_degrees(rng, old, np.concatenate(quadratic), p, shape, 1.0 / scale)
            point[self.name] = np.asarray(np.log(new))
        for (table, _), q, degrees in zip(own, quadratic, self.degrees(point), strict=True):
            table.draw_weights(rng, q, float(degrees))


class ValueWeightsGibbs(StudentGibbs):
    """Draws the weights of all values of alternative t rows, then the degrees of freedom given them, and with them.

    Parameters
    ----------
    model, part, name, drawn, compile_kwargs
        As of `StudentGibbs`.

    Raises
    ------
    ValueError
        If some of the weights, the missing values and the degrees of freedom are to be drawn and others are not.
    """

    def __init__(self, model, part: PrecisionPart, name, drawn, compile_kwargs=None):
        super().__init__(model, part, name, drawn, compile_kwargs)
        tables = [part.tables[at] for at in self.places]
        own = [v for t in tables for v in (t.weights, t.missing_rv) if v is not None]
        own += [] if part.degrees is None else [part.degrees]
        self.drawn = own[0] in drawn
        if any((v in drawn) != self.drawn for v in own):
            names = ", ".join(repr(v.name) for v in own)
            raise ValueError(f"{names} are drawn together: leave all of them to one step")
        self.weights = [model.rvs_to_values[t.weights].name for t in tables]

    @staticmethod
    def draws(table: TablePart) -> bool:
        """Whether a table has weights of this kind."""
        return table.weights is not None

    def update(self, rng, tables: list, precision: np.ndarray, means: list, point: dict) -> None:
        """Draw both once, weights in the tables and the point."""
        own = zip(self.places, self.weights, self.degrees(point), strict=True)
        for at, weights, degrees in own:
            table, mean = tables[at], np.atleast_1d(means[at])
            table.roots = np.exp(0.5 * point[weights])
            if self.drawn:
                table.draw_weights(rng, precision, mean, float(degrees))
                if self.name is not None:
                    self._draw_degrees(rng, table, precision, mean, point)
                point[weights] = 2.0 * np.log(table.roots)

    def _draw_degrees(self, rng, table, precision, mean, point: dict) -> None:
        shape, scale = map(float, self.prior(point))
        old = float(np.exp(point[self.name]))
        new = table.draw_degrees(rng, precision, mean, old, shape, 1.0 / scale)
        point[self.name] = np.asarray(np.log(new))
