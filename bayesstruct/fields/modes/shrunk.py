"""Posterior mode of a Markov random field with a (group-)Laplace prior."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.core.missing import observed_values
from bayesstruct.core.modes import Mode, ModeSolver, register_mode, relative_change
from bayesstruct.fields.modes.completions import Completions
from bayesstruct.fields.recognition.fields import fields_of
from bayesstruct.fields.recognition.shrinkage import ShrunkField, shrunk_field
from bayesstruct.sparse.modes import SpikeAndSlabRefusal

if TYPE_CHECKING:
    import pymc as pm


__all__ = ["IncompleteFieldRefusal", "ShrunkFieldMode"]


@register_mode(before=SpikeAndSlabRefusal)
class ShrunkFieldMode(ModeSolver):
    """Mode of a Markov random field with a Laplace or group-Laplace prior.

    That of :func:`bayesstruct.solvers.pairwise_mrf`, inside an EM loop over the completions of rows
    with missing values. These have their distribution in the field under either likelihood: with the
    pseudo-likelihood the result is the mode for completions weighted as they are at that same mode.
    """

    def recognise(self, model: "pm.Model") -> ShrunkField | None:
        """Return the field, or None."""
        return shrunk_field(model)

    def solve(self, model: "pm.Model", part: ShrunkField, tol: float, max_rounds: int) -> Mode:
        """Find the mode."""
        point, change = _mode(model, part, tol, max_rounds)
        return Mode(point, change <= tol, max_rounds, change)


@register_mode(after=ShrunkFieldMode)
class IncompleteFieldRefusal(ModeSolver):
    """Refuses a Markov random field with missing values in a model that has other unknowns.

    A general optimiser would leave the missing values where they start. The sum over completions
    allows 4,096 completions of one row and 2^18 in all.
    """

    def recognise(self, model: "pm.Model") -> None:
        """Raise for a field with missing values."""
        for field in fields_of(model):
            if field.missing is not None and field.rows in model.observed_RVs:
                raise ValueError(
                    f"{field.rows.name!r} has missing values, and the mode of an incomplete Markov random field is found for "
                    "biases with a normal or flat prior, weights with a Laplace or group-Laplace prior of a "
                    "fixed rate, and nothing else that is unknown: drop these rows (data.dropna()), or use "
                    "pm.sample(), which imputes them"
                )


def _mode(model, part: ShrunkField, tol: float, max_rounds: int) -> tuple[dict, float]:
    """Mode of the biases and weights as a point of the model, and the last relative change.

    Missing values are summed out by expectation and maximisation (Dempster, Laird and Rubin 1977), each
    round of which raises the posterior density. Under the pseudo-likelihood it ends where the expected score of the
    pseudo-likelihood, over the completions that the field has at the same parameters, is balanced by the prior.
    The missing values of the point are those of the most probable completion of each row.
    """
    field = part.field
    table = observed_values(model, field.rows).eval(mode="FAST_COMPILE")
    point = model.initial_point()
    if field.missing is None:
        solution = _maximise(part, table, None, tol)
        change = 0.0 if solution.converged else np.inf
    else:
        completions = Completions(table, field.mask.missing, field.potentials)
        solution, change = _alternate(part, completions, tol, max_rounds)
        values = completions.most_probable(solution.bias, solution.weight)
        point[model.rvs_to_values[field.missing].name] = values
    for rv, value in ((field.bias, solution.bias), (field.weight, solution.weight)):
        point[model.rvs_to_values[rv].name] = value
    return point, change


def _alternate(part, completions, tol, max_rounds):
    """Mode with missing values, and the relative change of the last round."""
    potentials = part.field.potentials
    theta, solution = np.zeros(potentials.bias_size + potentials.weight_size), None
    first = potentials.bias_size
    change, last = 1.0, 0.1 * tol
    for _ in range(max_rounds):
        counts = completions.weights(theta[:first], theta[first:])
        # Starts at the last mode, which is returned as it is once it is exact enough; no more exact than the round needs.
        asked = max(last, 1e-3 * change)
        solution = _maximise(part, completions.codes, counts, asked, solution)
        before, theta = theta, np.concatenate([solution.bias, solution.weight])
        change = relative_change(before, theta)
        if change <= tol and asked == last:
            break
    return solution, change if solution.converged else np.inf


def _maximise(part, codes, counts, tol, start=None):
    """Mode for complete rows with these multiplicities."""
    from bayesstruct.fields.solvers.modes import solve_field

    return solve_field(
        codes,
        part.field.potentials,
        norm=part.norm,
        rate=part.rate,
        likelihood=part.field.likelihood,
        bias_ridge=part.ridge,
        tol=max(tol, 1e-12),
        counts=counts,
        start=start,
    )
