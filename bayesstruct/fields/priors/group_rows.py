"""Rows of states that belong to groups, each a pairwise Markov random field with its biases and weights."""

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt

from pymc.distributions.distribution import Discrete
from pymc.logprob.abstract import _logprob

from bayesstruct.core.distributions import GraphRV
from bayesstruct.core.interpreted import row_densities
from bayesstruct.core.missing import Mask
from bayesstruct.core.recognition import claim, is_op
from bayesstruct.core.tensors import as_float
from bayesstruct.fields.kernels.exact_sums import ExactSums
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.ops.draw_states import DrawStates
from bayesstruct.fields.priors.densities import log_density
from bayesstruct.fields.priors.groups import GroupedWeightsRV
from bayesstruct.fields.priors.observed import check_observed
from bayesstruct.fields.priors.random_fields import LIKELIHOODS, SWEEPS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.tensor import TensorVariable

__all__ = [
    "STEP",
    "GroupedPairwiseMRF",
    "GroupedPairwiseRV",
    "IncompleteGroupedPairwiseMRF",
    "IncompleteGroupedPairwiseRV",
    "RowPlaces",
    "own_parameters",
]

#: Name of the step that draws weights, biases and missing values together.
STEP = "grouped_pairwise_gibbs"


class RowPlaces:
    """Which rows belong to which group; as a property of an Op, equal to itself only.

    Parameters
    ----------
    group : (n,) array_like of int
        Position of the group of each row.
    groups : int
        Number of groups.

    Raises
    ------
    ValueError
        If one is not the position of a group.

    Attributes
    ----------
    rows : list of (rows of the group,) arrays of int
    order : (n,) array of int
        Place of each row among the rows of the first group, those of the second, and so on.
    """

    def __init__(self, group: "ArrayLike", groups: int):
        self.group = np.asarray(group).astype(np.int64)
        if self.group.ndim != 1 or not ((self.group >= 0) & (self.group < groups)).all():
            raise ValueError(
                f"`group` must be a vector of 0 to {groups - 1}, the position of the group of each row"
            )
        self.rows = [np.flatnonzero(self.group == g) for g in range(groups)]
        self.order = np.argsort(np.concatenate(self.rows), kind="stable")

    def joined(self, parts: list) -> "TensorVariable":
        """Join tensors of the rows of each group, in the order of the table."""
        return pt.concatenate(parts, axis=0)[pt.as_tensor_variable(self.order)]


class GroupedPairwiseRV(GraphRV):
    """Rows of states; potentials, likelihood and groups are properties of the Op."""

    extended_signature = "[rng],[size],(),(g,b),(g,w)->[rng],(p)"
    _print_name = ("GroupedPairwiseMRF", "\\operatorname{GroupedPairwiseMRF}")
    options = ("potentials", "likelihood", "sweeps", "places", "floats", "mask")

    @classmethod
    def build(cls, rng, size, group, *params, **options):
        """Build the graph of a draw of complete rows."""
        places = options["places"]
        bias, weight = own_parameters(*params)[:2]
        rng, seeds = pt.random.integers(
            0, 2**62, size=len(places.rows), rng=rng, return_next_rng=True
        )
        draw = DrawStates(options["potentials"], options["sweeps"], 1)
        drawn = places.joined(
            [
                draw(seeds[g], bias[g], weight[g], np.array([len(rows)]))
                for g, rows in enumerate(places.rows)
            ]
        )
        return rng, drawn.astype("float64") if options["floats"] else drawn


class IncompleteGroupedPairwiseRV(GroupedPairwiseRV):
    """Rows of states, some of which are missing and given by another variable."""

    extended_signature = "[rng],[size],(),(g,b),(g,w),(m)->[rng],(p)"
    _print_name = (
        "IncompleteGroupedPairwiseMRF",
        "\\operatorname{IncompleteGroupedPairwiseMRF}",
    )


class GroupedPairwiseMRF(Discrete):
    """Rows of states of several groups, each with biases and weights of its own.

    ========  ==========================================================
    Support   (n, p) tables of states 0, ..., k_i - 1
    ========  ==========================================================

    Parameters
    ----------
    name : str
    bias, weight : tensor_like of float, shapes (G, biases) and (G, weights)
        Of the potentials, for each group.
    group : (n,) array_like of int
        Position of the group of each row.
    potentials : Potentials
        The family and the numbers of states, the same in all groups.
    likelihood, sweeps
        As in :class:`bayesstruct.PairwiseMRF`.

    Raises
    ------
    ValueError
        As :class:`bayesstruct.PairwiseMRF`; if biases or weights are not those of each group.

    Examples
    --------
    .. code-block:: python

        with pm.Model():
            bias = pm.Normal("bias", 0, 5, shape=(2, potentials.bias_size))
            weight = bs.distributions.GroupedWeights("weight", 2, [0.5] * 3, [0.5] * 3)
            bs.distributions.GroupedPairwiseMRF(
                "x", bias, weight, group=group, potentials=potentials, observed=answers
            )
    """

    rv_type = GroupedPairwiseRV
    rv_op = GroupedPairwiseRV.rv_op

    def __new__(cls, name, *args, observed=None, potentials, **kwargs):
        """Add the rows to the model, if all observed values are states."""
        if observed is not None:
            check_observed(name, observed, potentials.states)
        return super().__new__(cls, name, *args, observed=observed, potentials=potentials, **kwargs)

    @classmethod
    def dist(
        cls,
        bias: "TensorVariable | ArrayLike",
        weight: "TensorVariable | ArrayLike",
        *,
        group: "ArrayLike",
        potentials: Potentials,
        likelihood: str = "exact",
        sweeps: int = SWEEPS,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        bias, weight = as_float(bias), as_float(weight)
        options = _options(bias, weight, group, potentials, likelihood, sweeps)
        params = [_index(group), bias, weight]
        _claim(weight)
        return super().dist(params, **options, floats=False, mask=None, **kwargs)

    def support_point(rv, size, *params):
        """Return rows of first states."""
        return pt.zeros(rv.shape, dtype="int64")


class IncompleteGroupedPairwiseMRF(Discrete):
    """Rows of states of several groups, with missing values.

    The density is that of :class:`GroupedPairwiseMRF` for the table completed by `values`. Draws are complete rows.

    Parameters
    ----------
    bias, weight, group, potentials, likelihood, sweeps
        As in :class:`GroupedPairwiseMRF`.
    values : TensorVariable of int, shape (missing values,)
        The missing values, row by row: :class:`MissingStates`.
    missing : (n, p) array_like of bool
        True where a value is missing.
    floats : bool, default False
        Whether rows are floats, among which NaN can stand for a missing value.
    """

    rv_type = IncompleteGroupedPairwiseRV
    rv_op = IncompleteGroupedPairwiseRV.rv_op

    def __new__(cls, name, *args, missing, potentials, observed=None, **kwargs):
        """Add the rows to the model, if all observed values are states."""
        if observed is not None:
            check_observed(name, observed, potentials.states, missing)
        options = {"missing": missing, "potentials": potentials}
        return super().__new__(cls, name, *args, observed=observed, **options, **kwargs)

    @classmethod
    def dist(
        cls,
        bias: "TensorVariable | ArrayLike",
        weight: "TensorVariable | ArrayLike",
        values: "TensorVariable",
        *,
        group: "ArrayLike",
        missing: "ArrayLike",
        potentials: Potentials,
        likelihood: str = "exact",
        sweeps: int = SWEEPS,
        floats: bool = False,
        **kwargs,
    ) -> "TensorVariable":
        """Create the distribution without a model."""
        bias, weight = as_float(bias), as_float(weight)
        options = _options(bias, weight, group, potentials, likelihood, sweeps)
        params = [_index(group), bias, weight, pt.as_tensor_variable(values)]
        _claim(weight, values)
        return super().dist(params, **options, floats=floats, mask=Mask(missing), **kwargs)

    def support_point(rv, size, *params):
        """Return rows of first states."""
        return pt.zeros(rv.shape, dtype="int64")


def _options(bias, weight, group, potentials, likelihood, sweeps):
    if likelihood not in LIKELIHOODS:
        raise ValueError(f"`likelihood` must be one of {LIKELIHOODS}, it is {likelihood!r}")
    if likelihood == "exact":
        ExactSums.of(potentials)  # raises if the sum would take too long
    group = np.asarray(group)
    for name, value in (("bias", bias), ("weight", weight)):
        if value.type.ndim < 2:
            raise ValueError(f"`{name}` must have a row for each group, it has no second dimension")
    known = sorted({v.type.shape[-2] for v in (bias, weight)} - {None})
    if len(known) > 1:
        raise ValueError(
            f"`bias` and `weight` have rows for {known[0]} and {known[1]} groups: give one for each group"
        )
    groups = known[0] if known else int(group.max()) + 1
    return {
        "potentials": potentials,
        "likelihood": likelihood,
        "sweeps": int(sweeps),
        "places": RowPlaces(group, groups),
    }


def _claim(weight, *missing):
    """Reserve weights that may be zero, and missing values, for the step that draws both."""
    if is_op(weight, GroupedWeightsRV):
        for variable in (weight, *missing):
            claim(variable, STEP)


def _index(group):
    return pt.as_tensor_variable(np.asarray(group).astype(np.int64))


def own_parameters(bias, weight, *missing) -> list:
    """Parameters of all groups without the leading dimensions that serve all rows."""
    wanted = (2, 2, 1)[: 2 + len(missing)]
    return [_unpadded(v, ndim) for v, ndim in zip((bias, weight, *missing), wanted, strict=True)]


def _unpadded(value, ndim):
    while value.type.ndim > ndim:
        value = value[0]
    return value


def _density(op, value, bias, weight):
    """Log density of each row."""
    parts = [
        log_density(
            value[pt.as_tensor_variable(rows)], bias[g], weight[g], op.potentials, op.likelihood
        )
        for g, rows in enumerate(op.places.rows)
    ]
    return row_densities(op.places.joined(parts), composite=op.likelihood == "pseudo")


@_logprob.register(GroupedPairwiseRV)
def _rows_logp(op, values, rng, size, group, *params, **kwargs):
    (value,) = values
    bias, weight = own_parameters(*params)
    return _density(op, value, bias, weight)


@_logprob.register(IncompleteGroupedPairwiseRV)
def _incomplete_logp(op, values, rng, size, group, *params, **kwargs):
    (value,) = values
    bias, weight, missing = own_parameters(*params)
    rows, columns = (pt.as_tensor_variable(v) for v in (op.mask.rows, op.mask.columns))
    value = value[rows, columns].set(missing.astype(value.dtype)).astype("int64")
    return _density(op, value, bias, weight)
