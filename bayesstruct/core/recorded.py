"""Typed schemas of the constants that a model records and that readers of its posterior need.

A schema is a frozen dataclass whose fields are constants of the group ``constant_data``. A model
fills one and calls `Recorded.record`; a reader calls `Recorded.read` and knows no name.
"""

from dataclasses import field, fields
from typing import Any

import numpy as np

__all__ = ["Recorded", "constant", "record", "register"]


def register(name, distribution):
    """Make an unregistered distribution a variable of the model."""
    import pymc as pm

    return pm.modelcontext(None).register_rv(distribution, name)


def record(name, value, dims=None):
    """Keep a constant in the group ``constant_data`` of every result.

    Unlike ``pm.Data`` it cannot be set: the posterior would be read with numbers that its draws
    know nothing of.
    """
    import pymc as pm
    import pytensor.tensor as pt

    model = pm.modelcontext(None)
    value = pt.constant(np.asarray(value), name=model.name_for(name))
    model.register_data_var(value, dims=dims)


def constant(
    name: str, dims: str | tuple[str, ...] | None = None, *, optional: bool = False
) -> Any:
    """Field of a schema.

    Parameters
    ----------
    name : str
        Of the constant in a result.
    dims : str or tuple of str, optional
        None for a number.
    optional : bool
        Whether results without it can be read; it is None then.
    """
    metadata = {"name": name, "dims": dims}
    return field(metadata=metadata, default=None) if optional else field(metadata=metadata)


class Recorded:
    """Base of the schemas: frozen dataclasses with fields made by `constant`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, pymc as pm
    >>> from bayesstruct.core.recorded import Recorded, constant
    >>> @dataclass(frozen=True)
    ... class Threshold(Recorded):
    ...     cut: float = constant("negligible")
    ...     scale: np.ndarray = constant("scale", "node", optional=True)
    >>> with pm.Model(coords={"node": ["a", "b"]}):
    ...     Threshold(0.1, np.array([1.0, 2.0])).record()
    ...     idata = pm.sample_prior_predictive(1, random_seed=1)
    >>> Threshold.read(idata).scale
    array([1., 2.])
    """

    def variables(self) -> dict[str, tuple]:
        """Return dimensions and values of the constants that are not None, for an ``xarray.Dataset``."""
        given = ((one.metadata, getattr(self, one.name)) for one in _constants(self))
        return {
            known["name"]: (known["dims"] or (), value)
            for known, value in given
            if value is not None
        }

    def record(self) -> None:
        """Keep the constants that are not None in every result of the model in context."""
        for one in _constants(self):
            value = getattr(self, one.name)
            if value is not None:
                record(one.metadata["name"], value, one.metadata["dims"])

    @classmethod
    def read(cls, source):
        """Read the constants back.

        Parameters
        ----------
        source : xarray.DataTree or xarray.Dataset
            A result, or its group ``constant_data``.

        Returns
        -------
        The schema: arrays, and Python numbers for fields without dimensions.

        Raises
        ------
        ValueError
            If a constant that is not optional is missing; names it.
        """
        inside = "constant_data" in getattr(source, "children", ())
        constants = source["constant_data"] if inside else source
        absent = [
            one.metadata["name"]
            for one in _constants(cls)
            if one.default is not None and one.metadata["name"] not in constants
        ]
        if absent:
            raise ValueError(
                f"the result does not record {', '.join(map(repr, absent))} in its group `constant_data`: "
                "pass the whole result of pm.sample() of a bayesstruct model"
            )
        return cls(**{one.name: _value(constants, one) for one in _constants(cls)})

    @classmethod
    def is_in(cls, source) -> bool:
        """Whether a result records all constants of the schema that are not optional."""
        try:
            cls.read(source)
        except ValueError:
            return False
        return True


def _constants(schema) -> tuple:
    """Fields of a schema; the base class, which has none, is no dataclass."""
    return fields(schema)


def _value(constants, one):
    if one.metadata["name"] not in constants:
        return None
    values = np.asarray(constants[one.metadata["name"]].values)
    return values.item() if one.metadata["dims"] is None and values.ndim == 0 else values
