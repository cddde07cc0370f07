"""Parts of models with a Markov random field of several groups of rows."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesstruct.core.missing import show_missing
from bayesstruct.core.recognition import claim
from bayesstruct.core.tables.codings import record_levels
from bayesstruct.core.tensors import is_beta
from bayesstruct.data.arguments import number
from bayesstruct.data.edge_priors import edge_probability_matrix
from bayesstruct.fields.data import GroupedStates
from bayesstruct.fields.kernels.potentials import Potentials
from bayesstruct.fields.model_parts.fields import (
    add_missing,
    beta_probability,
    edge_inclusion,
    record_field,
)
from bayesstruct.fields.priors.group_rows import (
    STEP,
    GroupedPairwiseMRF,
    IncompleteGroupedPairwiseMRF,
)
from bayesstruct.fields.priors.groups import GroupedWeights, weight_relations
from bayesstruct.graphs.records import CompositeLikelihood, RelationPrior, RowGroups

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["GROUP_OPTIONS", "add_group_weights", "check_group_options", "observe_group_states"]

#: Options that only tables with groups have.
GROUP_OPTIONS = ("difference_probability", "difference_scale")


def check_group_options(grouped: bool, prior: str, slab: str | None, **given: Any) -> dict:
    """Return the options of groups that were given, after a check that they and the prior apply.

    Parameters
    ----------
    grouped : bool
        Whether the rows belong to groups.
    prior : str
    slab : str, optional
    **given
        Those of `GROUP_OPTIONS`; None where not given.

    Raises
    ------
    ValueError
        Names the option and what it goes with.
    """
    given = {name: value for name, value in given.items() if value is not None}
    if not grouped:
        for name in given:
            raise ValueError(
                f"`{name}` goes with rows of several groups: give `group`, or leave it out"
            )
        return given
    if prior != "spike_slab":
        raise ValueError(
            f'several groups of rows go with prior="spike_slab" only, it is {prior!r}: leave `prior` out, or fit each group alone'
        )
    if slab not in (None, "normal"):
        raise ValueError(
            f'several groups of rows go with slab="normal" only, it is {slab!r}: with other slabs the prior would depend on '
            "which contrasts between the groups are taken"
        )
    if "difference_scale" in given:
        number("difference_scale", given["difference_scale"], above=0)
    return given


def add_group_weights(
    grouped: GroupedStates,
    potentials: Potentials,
    options: dict,
    *,
    unit: float = 1.0,
    relative: "float | np.ndarray" = 1.0,
) -> "TensorVariable":
    """Add the weights of all groups, the relation of each pair, its edge and its difference.

    Parameters
    ----------
    grouped : GroupedStates
    potentials : Potentials
        With one weight for each pair.
    options : dict
        ``edge_probability``, ``difference_probability``, ``slab_scale``, ``difference_scale``, ``required``, ``forbidden``, as far as given.
    unit : float
        Default of the scales.
    relative : float or (pairs,) ndarray
        By which the scales of each pair are multiplied.

    Returns
    -------
    TensorVariable
        ``weight``, (group, pair).
    """
    table = grouped.table
    edge, implied = edge_inclusion(
        table,
        potentials,
        options.get("edge_probability", 0.5),
        options.get("required", ()),
        options.get("forbidden", ()),
    )
    difference, nominal = _difference(table, potentials, options.get("difference_probability", 0.5))
    weight = GroupedWeights(
        "weight",
        len(grouped.labels),
        edge,
        difference,
        slab_scale=options.get("slab_scale", unit) * relative,
        difference_scale=options.get("difference_scale", unit) * relative,
        dims=("group", "pair"),
    )
    relation = pm.Deterministic("relation", weight_relations(weight), dims="pair")
    pm.Deterministic("edge", pt.ge(relation, 1).astype("int64"), dims="pair")
    pm.Deterministic("difference", pt.ge(relation, 2).astype("int64"), dims="pair")
    record_field(potentials, implied, 0.0)
    RelationPrior(implied * nominal).record()
    return weight


def _difference(table, potentials, probability):
    """Probability that a pair with an edge differs, and its prior mean; (pairs,) each."""
    if is_beta(probability):
        share, mean = beta_probability("difference_probability", probability)
        size = len(potentials.ends[0])
        return share + pt.zeros(size), np.full(size, mean)
    matrix = edge_probability_matrix(table.names, probability, option="difference_probability")[
        potentials.ends
    ]
    return matrix, matrix


def observe_group_states(
    grouped: GroupedStates,
    bias: "TensorVariable",
    weight: "TensorVariable",
    *,
    potentials: Potentials,
    likelihood: str,
) -> None:
    """Add the table as ``x``, and its missing values as ``x_missing``.

    Parameters
    ----------
    grouped : GroupedStates
    bias, weight : TensorVariable
        Of each group.
    potentials : Potentials
    likelihood : {"pseudo", "exact"}
    """
    table = grouped.table
    options = {
        "group": grouped.group,
        "potentials": potentials,
        "likelihood": likelihood,
        "dims": ("observation", "node"),
    }
    RowGroups(grouped.group).record()
    if table.missing.any():
        values = add_missing(table)
        own = {"missing": table.missing, "observed": np.maximum(table.codes, 0), "floats": True}
        x = IncompleteGroupedPairwiseMRF("x", bias, weight, values, **options, **own)
        show_missing(x, table.missing, "int64")
    else:
        GroupedPairwiseMRF("x", bias, weight, observed=table.codes, **options)
    record_levels(table)
    if likelihood == "pseudo":
        CompositeLikelihood(1).record()
    claim(bias, STEP)  # drawn with the weights, also if pm.sample is outside of the context
