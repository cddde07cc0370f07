"""Coefficients that may be exactly zero have no posterior mode."""

import numpy as np

from bayesstruct.core.modes import ModeSolver, register_mode
from bayesstruct.core.recognition import is_op, parameters
from bayesstruct.core.tensors import constant_value
from bayesstruct.sparse.priors.group_spike_and_slab import GroupSpikeAndSlabRV
from bayesstruct.sparse.priors.spike_and_slab import SpikeAndSlabRV

__all__ = ["SpikeAndSlabRefusal"]


@register_mode
class SpikeAndSlabRefusal(ModeSolver):
    """Refuses coefficients with a spike-and-slab prior, unless a solver before it searches graphs.

    Densities at zero and elsewhere do not compare, so that there is no mode.
    """

    def recognise(self, model):
        """Raise for coefficients that may be zero or not."""
        kinds = (SpikeAndSlabRV, GroupSpikeAndSlabRV)
        uncertain = [rv for rv in model.free_RVs if is_op(rv, kinds) and _is_uncertain(rv)]
        if not uncertain:
            return
        raise ValueError(
            f"{', '.join(repr(rv.name) for rv in uncertain)} has a spike-and-slab prior, with exact zeros, so "
            "that its density has no mode: values at zero and elsewhere cannot be compared. "
            "Sample instead (pm.sample()) and read the draws: bs.map_graph and bs.median_graph give a graph, "
            "bs.edge_table and bs.arc_table the probabilities, bs.distributions.included those of other "
            'coefficients. Or take a prior that only shrinks and whose mode is sparse: prior="laplace", or '
            '"group_laplace" for tables of potentials.'
        )


def _is_uncertain(rv) -> bool:
    """Whether anything is neither always zero nor never."""
    inclusion = constant_value(parameters(rv)[0])
    return inclusion is None or not np.isin(inclusion, (0.0, 1.0)).all()
