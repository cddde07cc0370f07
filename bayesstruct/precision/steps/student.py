"""Updates of the row weights and the degrees of freedom of t rows."""

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.recognition import parameters
from bayesstruct.precision.recognition.parts import PrecisionPart

__all__ = ["StudentGibbs"]


class StudentGibbs:
    """Draws the degrees of freedom, then the weights of the rows given them, for the tables of a part that have some.

    The two together are one draw given all else: the degrees of freedom are drawn with the weights integrated out.

    Parameters
    ----------
    model : pymc.Model
    part : PrecisionPart
    name : str, optional
        Of the value variable of the degrees of freedom, if they are to be drawn.
    compile_kwargs : dict, optional
    """

    def __init__(self, model, part: PrecisionPart, name: str | None, compile_kwargs=None):
        found = {at: t.degrees for at, t in enumerate(part.tables) if t.degrees is not None}
        self.places, self.name = list(found), name
        user = part.precision.name
        self.degrees = Expressions(model, list(found.values()), compile_kwargs, user=user)
        prior = () if name is None or part.degrees is None else parameters(part.degrees)
        self.prior = Expressions(model, prior, compile_kwargs)

    def update(self, rng, tables: list, precision: np.ndarray, means: list, point: dict) -> None:
        """Draw both once: weights in the tables, the degrees of freedom in the point."""
        from bayesstruct.precision.kernels.degrees import draw_degrees

        own = [(tables[at], np.atleast_1d(means[at])) for at in self.places]
        quadratic = [table.quadratic(precision, mean) for table, mean in own]
        if self.name is not None:
            shape, scale = map(float, self.prior(point))
            old, p = float(np.exp(point[self.name])), len(precision)
            new = draw_degrees(rng, old, np.concatenate(quadratic), p, shape, 1.0 / scale)
            point[self.name] = np.asarray(np.log(new))
        for (table, _), q, degrees in zip(own, quadratic, self.degrees(point), strict=True):
            table.draw_weights(rng, q, float(degrees))
