"""Markov random fields of several groups of rows have no mode that a solver knows."""

from bayesstruct.core.modes import ModeSolver, register_mode
from bayesstruct.core.recognition import is_op
from bayesstruct.fields.priors.groups import GroupedWeightsRV

__all__ = ["GroupedFieldRefusal"]


@register_mode
class GroupedFieldRefusal(ModeSolver):
    """Refuses weights of several groups of rows, which are absent, equal or different.

    Densities of these relations do not compare, so that there is no mode of the weights.
    """

    def recognise(self, model):
        """Raise for weights with the prior of several groups."""
        names = [rv.name for rv in model.free_RVs if is_op(rv, GroupedWeightsRV)]
        if not names:
            return
        raise ValueError(
            f"{', '.join(map(repr, names))}: weights of several groups of rows are exactly zero, exactly equal, or different, and "
            "densities of these three cannot be compared, so that there is no mode. Sample instead (pm.sample()): "
            "bs.difference_table and bs.edge_table give probabilities, bs.median_graph a graph. bs.find_MAP of a model of the "
            "rows of one group searches for its most probable graph."
        )
