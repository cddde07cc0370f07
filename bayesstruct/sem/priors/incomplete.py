"""Rows of linear structural equations with missing values, and the missing values."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.missing import Mask
from bayesstruct.core.tables.missing_values import MissingValues, MissingValuesRV, completed
from bayesstruct.sem.priors.noise import NoiseLaw
from bayesstruct.sem.priors.rows import LinearSemRV, claim_parameters, log_terms, row_params

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = ["IncompleteLinearSem", "IncompleteLinearSemRV", "MissingNumbers", "MissingNumbersRV"]


class MissingNumbersRV(MissingValuesRV):
    """Missing values of a table of numbers, without a prior."""

    _print_name = ("MissingNumbers", "\\operatorname{MissingNumbers}")


class MissingNumbers(MissingValues):
    """Missing values of a table of numbers, with a constant density: all that is known of them is in the rows.

    Together with :class:`IncompleteLinearSem` they have the density of complete rows. Random draws, which a constant
    density does not have, are observed values of the same column.

    Parameters
    ----------
    name : str
    table : (n, d) array_like of float
        The observed values; entries of missing ones are not used.
    missing : (n, d) array_like of bool
        True where a value is missing.
    """

    rv_type = MissingNumbersRV
    rv_op = MissingNumbersRV.rv_op

    def support_point(rv, size, table):
        """Return the means of the columns."""
        mask = rv.owner.op.mask
        seen = pt.as_tensor_variable((~mask.missing).sum(axis=0))
        return (table.sum(axis=0) / seen)[pt.as_tensor_variable(mask.columns)]


class IncompleteLinearSemRV(GraphRV):
    """Rows of linear structural equations with missing values."""

    extended_signature = "[rng],[size],(d),(d,d),(d),(d,k),(d),(d),(d),(m)->[rng],(d)"
    _print_name = ("IncompleteLinearSem", "\\operatorname{IncompleteLinearSem}")
    options = ("law", "mask")

    @classmethod
    def build(cls, rng, size, *params, law, mask):
        """Draw complete rows."""
        return LinearSemRV.build(rng, size, *params[:-1], law=law)


class IncompleteLinearSem(Continuous):
    """Rows of linear structural equations with missing values, in the units of the table.

    The density is that of :class:`bayesstruct.distributions.LinearSem` for the table that `missing_values` complete. Draws are
    complete rows.

    Parameters
    ----------
    name : str
    missing_values : TensorVariable of float, shape (missing values,)
        :class:`bayesstruct.distributions.MissingNumbers`, row by row, in the units of the table.
    intercept, coefficients, noise_scale, shape_parameters, location, scale, setting, noise
        As of :class:`bayesstruct.distributions.LinearSem`.
    missing : (n, d) array_like of bool
        True where a value is missing; none of these may be set.
    """

    rv_type = IncompleteLinearSemRV
    rv_op = IncompleteLinearSemRV.rv_op

    @classmethod
    def dist(
        cls,
        missing_values: "TensorLike",
        intercept: "TensorLike",
        coefficients: "TensorLike",
        noise_scale: "TensorLike",
        shape_parameters: "TensorLike | None" = None,
        location: "TensorLike" = 0.0,
        scale: "TensorLike" = 1.0,
        setting: "ArrayLike" = np.nan,
        *,
        missing: "Mask | ArrayLike",
        noise: "str | NoiseLaw" = "gaussian",
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        mask = missing if isinstance(missing, Mask) else Mask(missing)
        law = noise if isinstance(noise, NoiseLaw) else NoiseLaw(noise)
        units = location, scale, setting
        params = row_params(intercept, coefficients, noise_scale, shape_parameters, *units)
        claim_parameters(params)
        params.append(pt.as_tensor_variable(missing_values))
        return super().dist(params, law=law, mask=mask, **kwargs)

    def support_point(rv, size, intercept, coefficients, noise_scale, shape, location, *others):
        """Return the location."""
        return pt.broadcast_to(location, rv.shape)


@_logprob.register(IncompleteLinearSemRV)
def _rows_logp(op, values, rng, size, *params, **kwargs):
    (value,) = values
    *params, missing_values = params
    full = completed(op.mask, value, missing_values)
    return row_densities(log_terms(op.law, full, *params).sum(axis=-1))
