"""Normal rows of a model whose precision matrix is that of a tree."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import unpadded_parameters

if TYPE_CHECKING:
    from pymc import Model
    from pytensor.tensor import TensorVariable

    from bayesstruct.precision.kernels.rows.tables import TableRows

__all__ = ["fill_at_random", "table_rows"]


def table_rows(model: "Model", rows: "TensorVariable") -> "TableRows":
    """Read the observed rows of a model.

    Parameters
    ----------
    model : pymc.Model
    rows : TensorVariable
        A GraphicalNormal or IncompleteGraphicalNormal.
    """
    from bayesstruct.precision.kernels.rows.tables import TableRows

    given = [*unpadded_parameters(rows)[2:], observed_values(model, rows)]
    location, scale, *mask, values = Expressions(model, given)(model.initial_point())
    p = np.asarray(values).shape[1]
    return TableRows(values, *(np.broadcast_to(v, p) for v in (location, scale)), *mask)


def fill_at_random(rng: np.random.Generator, rows: "TableRows") -> None:
    """Fill missing values with observed ones of the same column.

    Parameters
    ----------
    rng : numpy.random.Generator
    rows : TableRows
    """
    whole = np.vstack([rows.complete, np.where(rows.mask, np.nan, rows.incomplete)])
    for j in np.flatnonzero(rows.mask.any(axis=0)):
        seen = whole[~np.isnan(whole[:, j]), j]
        gaps = rows.mask[:, j]
        rows.incomplete[gaps, j] = rng.choice(seen, gaps.sum())
