"""Posterior mode of a Markov random field with a (group-)Laplace prior."""

from dataclasses import dataclass

import numpy as np

from pymc.distributions.continuous import FlatRV
from pytensor.tensor.random.basic import LaplaceRV, NormalRV

from bayesstruct.core.modes import Mode, ModeSolver, register_mode
from bayesstruct.core.recognition import is_op, parameters
from bayesstruct.core.tensors import constant_value
from bayesstruct.fields.modes.completions import Completions
from bayesstruct.fields.priors.random_fields import IncompletePairwiseRV, PairwiseRV
from bayesstruct.sparse.modes import SpikeAndSlabRefusal
from bayesstruct.sparse.priors.group_laplace import GroupLaplaceRV

__all__ = ["Field", "IncompleteFieldRefusal", "ShrunkFieldMode", "field_mode", "field_of"]


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
    cells : TensorVariable or None
        Missing cells.
    """

    rows: object
    bias: object
    weight: object
    norm: object
    rate: float
    ridge: float
    cells: object = None


@register_mode(before=SpikeAndSlabRefusal)
class ShrunkFieldMode(ModeSolver):
    """Mode of a Markov random field with a Laplace or group-Laplace prior.

    That of :func:`bayesstruct.solvers.pairwise_mrf`, inside an EM loop over the completions of rows
    with missing values. These have their distribution in the field under either likelihood: with the
    pseudo-likelihood the result is the mode for completions weighted as they are at that same mode.
    """

    def recognise(self, model):
        """Return the field, or None."""
        return field_of(model)

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Find the mode."""
        point, change = field_mode(model, part, tol, max_rounds)
        return Mode(point, change <= tol, max_rounds, change)


@register_mode(after=ShrunkFieldMode)
class IncompleteFieldRefusal(ModeSolver):
    """Refuses a Markov random field with missing values in a model that is more than a field.

    A general optimiser would leave the missing values where they start. At most 4,096 completions of
    one row, and 2^18 in all, are gone through.
    """

    def recognise(self, model):
        """Raise for a field with missing values."""
        for rv in model.observed_RVs:
            if is_op(rv, IncompletePairwiseRV):
                raise ValueError(
                    f"{rv.name!r} has missing cells, and the mode of a random field with gaps is found for "
                    "biases with a normal or flat prior, weights with a Laplace or group-Laplace prior of a "
                    "fixed rate, and nothing else that is unknown: drop these rows (data.dropna()), or use "
                    "pm.sample(), which imputes them"
                )


def field_of(model) -> Field | None:
    """Return the field if the model is one, with constant hyperparameters."""
    fields = [rv for rv in model.observed_RVs if is_op(rv, PairwiseRV)]
    if len(fields) != 1:
        return None
    [rows] = fields
    bias, weight, *cells = parameters(rows)
    if {bias, weight, *cells} != set(model.free_RVs) or model.potentials:
        return None
    penalty, ridge = _penalty(weight), _ridge(bias)
    if penalty is None or ridge is None:
        return None
    return Field(rows, bias, weight, *penalty, ridge, *cells)


def _common(tensor):
    """Return the one number that all entries of a constant are, or None."""
    value = constant_value(tensor)
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


def field_mode(model, field: Field, tol: float, max_rounds: int) -> tuple[dict, float]:
    """Mode of the biases and weights as a point of the model, and the last relative change.

    Missing cells are summed out by expectation and maximisation (Dempster, Laird and Rubin 1977), each
    round of which raises the posterior density. Under the pseudo-likelihood it ends where the expected score of the
    pseudo-likelihood, over the completions that the field has at the same parameters, is balanced by the prior.
    The cells of the point are those of the most probable completion of each row.
    """
    op = field.rows.owner.op
    table = model.rvs_to_values[field.rows].eval(mode="FAST_COMPILE")
    point = model.initial_point()
    if field.cells is None:
        solution = _maximise(field, table, None, tol)
        change = 0.0 if solution.converged else np.inf
    else:
        completions = Completions(table, op.mask.missing, op.potentials)
        solution, change = _alternate(field, completions, tol, max_rounds)
        cells = completions.most_probable(solution.bias, solution.weight)
        point[model.rvs_to_values[field.cells].name] = cells
    for rv, value in ((field.bias, solution.bias), (field.weight, solution.weight)):
        point[model.rvs_to_values[rv].name] = value
    return point, change


def _alternate(field, completions, tol, max_rounds):
    """Mode with missing cells, and the relative change of the last round."""
    potentials = field.rows.owner.op.potentials
    theta, solution = np.zeros(potentials.bias_size + potentials.weight_size), None
    first = potentials.bias_size
    change, last = 1.0, 0.1 * tol
    for _ in range(max_rounds):
        counts = completions.weights(theta[:first], theta[first:])
        # Begun at the last mode, which is returned as it is once that will do; as exact as the round needs it.
        asked = max(last, 1e-3 * change)
        solution = _maximise(field, completions.codes, counts, asked, solution)
        before, theta = theta, np.concatenate([solution.bias, solution.weight])
        change = float(np.abs(theta - before).max() / (1.0 + np.abs(theta).max()))
        if change <= tol and asked == last:
            break
    return solution, change if solution.converged else np.inf


def _maximise(field, codes, counts, tol, start=None):
    """Mode for complete rows, each of which counts so often."""
    from bayesstruct.fields.solvers.modes import solve_pairwise

    op = field.rows.owner.op
    return solve_pairwise(
        codes, op.potentials, norm=field.norm, rate=field.rate, likelihood=op.likelihood,
        bias_ridge=field.ridge, tol=max(tol, 1e-12), counts=counts, start=start,
    )  # fmt: skip
