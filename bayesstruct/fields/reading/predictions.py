"""Rows of Markov random fields, for predictions of their empty states."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.tables.codings import StateLevels
from bayesstruct.core.tables.predictions import StateRows, register_prediction
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.reading.information import is_random_field, potentials_of, weight_name
from bayesstruct.graphs.groups import parameter_draws
from bayesstruct.graphs.posteriors.reading import read_edges

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["field_rows", "log_weights"]


def field_rows(idata: "xr.DataTree") -> StateRows:
    """Return the distribution of a row in each draw of a Markov random field."""
    posterior = read_edges(idata)
    constants, potentials = posterior.constants, potentials_of(posterior)
    coding = StateLevels.coding(constants, constants["node"].values.tolist())
    bias, weight = parameter_draws(idata, "bias", weight_name(posterior))

    def weigh(rows, part):
        return log_weights(potentials, bias[part], weight[part], rows)

    return StateRows(coding, weigh, len(bias), {})


def log_weights(
    potentials: Potentials, bias: np.ndarray, weight: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Logarithms of the probabilities of rows, but for a constant of each draw.

    Parameters
    ----------
    potentials : Potentials
    bias, weight : arrays, shapes (draws, biases) and (draws, weights)
    rows : (m, p) array of int

    Returns
    -------
    ndarray, shape (draws, m)
    """
    index, coefficient = potentials.unary_map
    unary = (coefficient * bias[:, index]).sum(axis=-1)
    logs = unary[:, potentials.unary_start[:-1] + rows].sum(axis=-1)
    index, coefficient = potentials.pair_map
    pairs = coefficient * weight[:, index]
    varies = (rows != rows[0]).any(axis=0)
    for e, (i, j) in enumerate(zip(*potentials.ends, strict=True)):
        if varies[i] or varies[j]:
            cell = potentials.pair_start[e] + rows[:, i] * potentials.states[j] + rows[:, j]
            logs += pairs[:, cell]
    return logs


register_prediction("Markov random fields", is_random_field, field_rows)
