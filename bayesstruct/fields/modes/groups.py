"""Most probable relations of a Markov random field of several groups of rows, and the mode given them."""

import numpy as np

from pymc.distributions.continuous import FlatRV
from pytensor.graph.basic import Constant

from bayesstruct.core.missing import observed_values
from bayesstruct.core.modes import Mode, ModeSolver, register_mode
from bayesstruct.core.recognition import NotRecognized, is_op, parameters, unpad
from bayesstruct.fields.kernels.potentials import check_codes
from bayesstruct.fields.priors.groups import GroupedWeightsRV
from bayesstruct.fields.recognition.groups import grouped_field_of

__all__ = ["GroupedFieldMode"]

_REMEDY = "Sample instead (pm.sample()): bs.difference_table and bs.edge_table give probabilities, bs.median_graph a graph"


@register_mode
class GroupedFieldMode(ModeSolver):
    r"""Most probable relations of a Markov random field of several groups of rows.

    The relations (absent, equal, different) of all pairs with the greatest posterior probability that a search finds, of
    :math:`\log p(r) + \log p(x \mid r)` where biases and weights are integrated out by Laplace's method
    (:mod:`bayesstruct.fields.solvers.groups`), with the mode of biases and weights given them. Rows must be complete, and the probabilities of
    edges and differences constants. It is likely but not proved that no change of the relation of a single pair improves the result;
    where many relations are uncertain, :func:`bayesstruct.difference_table` of a chain is the better summary.
    """

    def recognise(self, model):
        """Return the field, or None; raise for a field in a model to which the search does not apply."""
        weights = [rv for rv in model.free_RVs if is_op(rv, GroupedWeightsRV)]
        if not weights:
            return None
        try:
            return _part(model, weights)
        except NotRecognized as reason:
            raise ValueError(
                f"{weights[0].name!r}: weights of several groups of rows are exactly zero, exactly equal, or different, whose densities "
                f"cannot be compared, and the search for the most probable of these does not apply, because {reason}. {_REMEDY}."
            ) from None

    def solve(self, model, part, tol, max_rounds) -> Mode:
        """Search."""
        from bayesstruct.fields.solvers.groups import search_relations

        field, evidence = part, _evidence(model, part)
        fit = search_relations(evidence)
        point = model.initial_point(0)
        bias, weight = evidence.parts(fit.x)
        # Equal and absent weights are so exactly, not up to rounding.
        weight[:, fit.relation < 2] = weight[0, fit.relation < 2]
        point[model.rvs_to_values[field.weight].name] = weight
        point[model.rvs_to_values[field.own_bias].name] = bias
        return Mode(point, fit.converged, max_rounds, 0.0 if fit.converged else np.inf)


def _part(model, weights):
    """Return the only field of the model."""
    field = grouped_field_of(model, weights[0])
    if field.missing is not None:
        raise NotRecognized("values are missing; drop the rows with missing values")
    if field.own_bias is None or {*model.free_RVs} != {field.weight, field.own_bias}:
        others = [v.name for v in model.free_RVs if v not in (field.weight, field.own_bias)]
        raise NotRecognized(
            f"{', '.join(map(repr, others)) or 'the prior of the biases'} is not constant"
        )
    for value in (*parameters(field.weight), *parameters(field.own_bias)):
        if not isinstance(unpad(value), Constant):
            raise NotRecognized("its prior is not constant")
    return field


def _evidence(model, field):
    from bayesstruct.fields.solvers.groups import GroupEvidence
    from bayesstruct.fields.solvers.likelihoods import likelihood_for
    from bayesstruct.fields.steps.groups import log_relations

    codes = np.asarray(observed_values(model, field.rows).eval(mode="FAST_COMPILE"), np.int64)
    check_codes(codes, field.potentials)
    edge, difference, slab, large = (unpad(v).data for v in parameters(field.weight))
    shape = (len(field.places.rows), field.potentials.bias_size)
    if is_op(field.own_bias, FlatRV):
        mean, precision = np.zeros(shape), np.zeros(shape)
    else:
        mean, deviation = (
            np.broadcast_to(unpad(v).data, shape) for v in parameters(field.own_bias)
        )
        precision = np.asarray(deviation, float) ** -2.0
    likelihoods = [
        likelihood_for(field.likelihood, field.potentials, codes[rows])
        for rows in field.places.rows
    ]
    odds = log_relations(edge, difference)
    return GroupEvidence(likelihoods, np.stack([slab, large]), odds, mean, precision)
