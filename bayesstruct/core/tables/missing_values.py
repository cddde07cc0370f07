"""Missing values of a table, with a constant density: all that is known of them is in the rows that they complete."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Continuous
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.draws import SeededDraw, seed_from
from bayesstruct.core.missing import Mask
from bayesstruct.core.tensors import as_float

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

__all__ = ["MissingValues", "MissingValuesRV", "completed"]


class _Observed:
    """Draws of missing values from the observed ones of their columns."""

    dtype = "float64"
    ndims = (2,)

    def __init__(self, mask):
        self.mask, self.shape = mask, (len(mask.rows),)

    def __call__(self, rng, out, table):
        for j in np.unique(self.mask.columns):
            own = self.mask.columns == j
            seen = table[~self.mask.missing[:, j], j]
            out[:, own] = rng.choice(seen, (len(out), own.sum()))


class MissingValuesRV(GraphRV):
    """Missing values of a table, without a prior.

    Its parameter is the table with zeros for missing values, its option the mask. A constant density has no draws; those of this variable
    are observed values of the same column. Each model has a class of its own, by which its step knows them.
    """

    extended_signature = "[rng],[size],(n,d)->[rng],(m)"
    options = ("mask",)

    @classmethod
    def build(cls, rng, size, table, *, mask):
        """Draw from the observed values."""
        rng, seed = seed_from(rng)
        none = pt.constant(np.empty(0, np.int64))
        return rng, SeededDraw(_Observed(mask), 0)(seed, none, table)


@_logprob.register(MissingValuesRV)
def _missing_logp(op, values, rng, size, table, **kwargs):
    (value,) = values
    return 0.0 * value.sum()


class MissingValues(Continuous):
    """Base of the distributions of missing values of a table; a subclass has a random variable and a support point.

    Parameters
    ----------
    name : str
    table : (n, d) array_like of float
        Entries of missing values are not used.
    missing : (n, d) array_like of bool
        True where a value is missing; each column has an observed value.
    """

    @classmethod
    def dist(cls, table: "ArrayLike", missing: "Mask | ArrayLike", **kwargs) -> "TensorVariable":
        """Create the distribution without a model."""
        mask = missing if isinstance(missing, Mask) else Mask(missing)
        observed = as_float(np.where(mask.missing, 0.0, np.asarray(table, float)))
        return super().dist([observed], mask=mask, **kwargs)


def completed(
    mask: Mask, table: "TensorVariable", missing_values: "TensorVariable"
) -> "TensorVariable":
    """Table whose missing values are replaced by those of a vector, row by row."""
    while missing_values.type.ndim > 1:
        missing_values = missing_values[0]
    rows, columns = (pt.as_tensor_variable(v) for v in (mask.rows, mask.columns))
    return table[rows, columns].set(missing_values)
