"""Checks of the parameters of element-wise priors of a precision matrix."""

import numpy as np

from pytensor.graph.basic import Constant

from bayesstruct.core.tensors import random_ancestors

__all__ = ["refuse_random", "refuse_wrong"]


def refuse_random(**named) -> None:
    """Raise for parameters that must be constants and are random."""
    for name, value in named.items():
        if random_ancestors(value):
            raise ValueError(
                f"`{name}` must be a constant: the normalising constant of this prior depends on "
                "it and has no closed form. A common scale may be random (`rate` of GraphicalLasso "
                "without `diagonal_rate`, `scale` of GraphicalSpikeSlab), and so may the edge "
                "probability when it is given as `pm.Beta.dist(...)`, or as any expression with "
                '`condition="joint"`, whose prior is another one: see help(bs.GraphicalSpikeSlab).'
            )


def refuse_wrong(**named) -> None:
    """Raise for constants out of range at once: a Gibbs sampler never evaluates the density."""
    for name, value in named.items():
        if isinstance(value, Constant) and not (np.isfinite(value.data) & (value.data > 0)).all():
            wrong = value.data[~(np.isfinite(value.data) & (value.data > 0))]
            raise ValueError(f"`{name}` must be positive and finite, it is {wrong.flat[0]}")
    spike, slab = named.get("spike_scale"), named.get("slab_scale")
    if isinstance(spike, Constant) and isinstance(slab, Constant) and spike.data >= slab.data:
        raise ValueError(
            f"`spike_scale` ({spike.data}) must be below `slab_scale` ({slab.data}): the spike is "
            "the distribution of the element of an absent edge"
        )
