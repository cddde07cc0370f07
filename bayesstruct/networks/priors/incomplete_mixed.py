"""Tables of numbers and states with missing values: their rows given a network, and the missing values.

The missing values have a constant density, with respect to lengths for numbers and to counts for states; the rows have the
density of the table that they complete, so that both together have that of complete rows.
"""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.missing import Mask
from bayesstruct.core.tables.missing_values import MissingValues, MissingValuesRV, completed
from bayesstruct.networks.kernels.mixed_layout import MixedLayout
from bayesstruct.networks.priors.mixed_networks import MixedRowTerms, draw_of_rows, row_params

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorLike, TensorVariable

__all__ = [
    "IncompleteMixedNetwork",
    "IncompleteMixedNetworkRV",
    "MissingMixedValues",
    "MissingMixedValuesRV",
]


class MissingMixedValuesRV(MissingValuesRV):
    """Missing values of a table of numbers and states, without a prior."""

    _print_name = ("MissingMixedValues", "\\operatorname{MissingMixedValues}")


class MissingMixedValues(MissingValues):
    """Missing values of a table of numbers and states, with a constant density: all that is known of them is in the rows.

    Together with :class:`IncompleteMixedNetwork` they have the density of complete rows. Random draws, which a constant
    density does not have, are observed values of the same column.

    Parameters
    ----------
    name : str
    table : (n, d) array_like of float
        Numbers, and states 0, 1, ...; entries of missing values are not used.
    missing : (n, d) array_like of bool
        True where a value is missing; each column has an observed value.
    """

    rv_type = MissingMixedValuesRV
    rv_op = MissingMixedValuesRV.rv_op

    def support_point(rv, size, table):
        """Return for each value the lower median of the observed ones of its column, which is a state of a column of states."""
        mask, out = rv.owner.op.mask, {}
        for j in np.unique(mask.columns).tolist():
            rows = np.flatnonzero(~mask.missing[:, j])
            out[j] = pt.sort(table[rows, j])[(len(rows) - 1) // 2]
        return pt.stack([out[j] for j in mask.columns.tolist()])


class IncompleteMixedNetworkRV(GraphRV):
    """Rows of a network of columns of several kinds with missing values."""

    extended_signature = "[rng],[size],(d,d),(m),(d),(d),(d),(k)->[rng],(d)"
    _print_name = ("IncompleteMixedNetwork", "\\operatorname{IncompleteMixedNetwork}")
    options = ("layout", "mask")

    @classmethod
    def build(cls, rng, size, *params, layout, mask):
        """Draw complete rows."""
        return draw_of_rows(layout, rng, size, *params[:-1])


class IncompleteMixedNetwork(Continuous):
    """Rows of a Bayesian network whose columns are numbers or states, with missing values.

    The density is that of :class:`bayesstruct.distributions.MixedNetwork` for the table that `missing_values` complete. Draws are
    complete rows.

    Parameters
    ----------
    name : str
    missing_values : TensorVariable of float, shape (missing values,)
        :class:`bayesstruct.distributions.MissingMixedValues`, row by row, numbers in the units of the table.
    dag, parameters, location, scale, setting, layout
        As of :class:`bayesstruct.distributions.MixedNetwork`.
    missing : (n, d) array_like of bool
        True where a value is missing; none of these may be set.
    """

    rv_type = IncompleteMixedNetworkRV
    rv_op = IncompleteMixedNetworkRV.rv_op

    @classmethod
    def dist(
        cls,
        missing_values: "TensorLike",
        dag: "TensorLike",
        parameters: "TensorLike",
        location: "TensorLike",
        scale: "TensorLike",
        setting: "ArrayLike | None" = None,
        *,
        layout: MixedLayout,
        missing: "Mask | ArrayLike",
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        mask = missing if isinstance(missing, Mask) else Mask(missing)
        params = row_params(layout, dag, parameters, location, scale, setting)
        params.append(pt.as_tensor_variable(missing_values))
        return super().dist(params, layout=layout, mask=mask, **kwargs)

    def support_point(rv, size, dag, parameters, location, *others):
        """Return locations, and first states."""
        return pt.broadcast_to(location, rv.shape)


@_logprob.register(IncompleteMixedNetworkRV)
def _rows_logp(op, values, rng, size, dag, parameters, *units_and_missing, **kwargs):
    (value,) = values
    *units, missing_values = units_and_missing
    full = completed(op.mask, value, missing_values)
    return row_densities(MixedRowTerms(op.layout)(full, parameters, *units))
