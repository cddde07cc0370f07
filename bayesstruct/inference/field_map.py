"""Posterior mode of a Markov random field with a (group-)Laplace prior."""

from dataclasses import dataclass

import numpy as np

from pymc.distributions.continuous import FlatRV
from pytensor.tensor.random.basic import LaplaceRV, NormalRV

from bayesstruct.distributions.group_laplace import GroupLaplaceRV
from bayesstruct.distributions.pairwise import IncompletePairwiseRV, PairwiseRV
from bayesstruct.distributions.precision import random_ancestors
from bayesstruct.steps.recognition import is_op, parameters

__all__ = ["Field", "field_mode", "field_of", "refuse_gaps"]


@dataclass(frozen=True)
class Field:
    """A Markov random field whose mode the solver knows.

    Attributes
    ----------
    rows, bias, weight : TensorVariable
        Variables of the model.
    norm : object
        Of the weights of a pair.
    rate, ridge : float
        Of the weights, and of the squares of the biases.
    """

    rows: object
    bias: object
    weight: object
    norm: object
    rate: float
    ridge: float


def field_of(model) -> Field | None:
    """Return the field if the model is one, complete and with constant hyperparameters."""
    fields = [rv for rv in model.observed_RVs if is_op(rv, PairwiseRV)]
    if len(fields) != 1 or is_op(fields[0], IncompletePairwiseRV) or len(model.free_RVs) != 2:
        return None
    [rows] = fields
    bias, weight = parameters(rows)
    if bias not in model.free_RVs or weight not in model.free_RVs or model.potentials:
        return None
    penalty, ridge = _penalty(weight), _ridge(bias)
    if penalty is None or ridge is None:
        return None
    return Field(rows, bias, weight, *penalty, ridge)


def refuse_gaps(model):
    """Refuse a field with missing cells, which a general optimiser would leave where they start.

    Raises
    ------
    ValueError
    """
    for rv in model.observed_RVs:
        if is_op(rv, IncompletePairwiseRV):
            raise ValueError(
                f"{rv.name!r} has missing cells, and no solver finds the mode of a random field with gaps: "
                "drop these rows (data.dropna()), or use pm.sample(), which imputes them"
            )


def _constant(tensor):
    """Value of a tensor without random ancestors, or None."""
    if random_ancestors(tensor):
        return None
    return np.asarray(tensor.eval(mode="FAST_COMPILE"))


def _common(tensor):
    """Return the one number that all entries of a constant are, or None."""
    value = _constant(tensor)
    if value is None or value.size == 0 or (value != value.flat[0]).any():
        return None
    return float(value.flat[0])


def _penalty(weight):
    """Norm and rate of the prior of the weights."""
    if is_op(weight, LaplaceRV):
        mean, scale = (_common(v) for v in parameters(weight))
        return None if mean != 0 or scale is None else (1, 1.0 / scale)
    if is_op(weight, GroupLaplaceRV):
        rate = _common(parameters(weight)[0])
        return None if rate is None else (weight.owner.op.structure.penalty.norm, rate)
    return None


def _ridge(bias):
    """Penalty of the squared biases."""
    if is_op(bias, NormalRV):
        mean, deviation = (_common(v) for v in parameters(bias))
        return None if mean != 0 or deviation is None else 0.5 / deviation**2
    return 0.0 if is_op(bias, FlatRV) else None


def field_mode(model, field: Field, tol: float) -> tuple[dict, bool]:
    """Mode of the biases and weights as a point of the model, and whether the solver ended."""
    from bayesstruct.solvers.pairwise import solve_pairwise

    op = field.rows.owner.op
    table = model.rvs_to_values[field.rows].eval(mode="FAST_COMPILE")
    solution = solve_pairwise(
        table, op.potentials, norm=field.norm, rate=field.rate, likelihood=op.likelihood,
        bias_ridge=field.ridge, tol=max(tol, 1e-12),
    )  # fmt: skip
    point = model.initial_point()
    for rv, value in ((field.bias, solution.bias), (field.weight, solution.weight)):
        point[model.rvs_to_values[rv].name] = value
    return point, solution.converged
