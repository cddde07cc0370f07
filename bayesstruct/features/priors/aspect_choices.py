"""Probabilities of choices between options by elimination of aspects."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytensor.tensor as pt

from pytensor.compile.builders import OpFromGraph

from bayesstruct.core.recognition import claim
from bayesstruct.core.tensors import as_float
from bayesstruct.features.priors.feature_interactions import pair_positions

if TYPE_CHECKING:
    from pytensor.tensor import TensorVariable

__all__ = ["AspectProbabilities", "aspect_probabilities"]


class AspectProbabilities(OpFromGraph):
    """Probabilities that the first option of each pair is chosen, an Op that recognisers know by its type."""


def aspect_probabilities(
    feature: Any, weight: Any, first: Any, second: Any, *, lapse: Any = 0.0
) -> "TensorVariable":
    r"""Probability that the first of two options is chosen, by elimination of aspects.

    .. math::

        p_{ij} = (1 - \epsilon) \frac{f_{ij}}{f_{ij} + f_{ji}} + \frac{\epsilon}{2}, \qquad
        f_{ij} = \sum_k w_k z_{ik} (1 - z_{jk})

    Parameters
    ----------
    feature : TensorVariable
        Z, (n, K): which aspects each option has.
    weight : TensorVariable
        w, (K,), not negative.
    first, second : (m,) array_like of int
        Positions of the two options of each pair, as rows of `feature`.
    lapse : tensor_like of float, default 0
        :math:`\epsilon` in [0, 1): how often people choose at random.

    Returns
    -------
    TensorVariable
        (m,); one half where neither option has an aspect that the other lacks.

    Raises
    ------
    ValueError
        If the two arrays differ in length or are not positions, or a pair is of an option with itself.

    References
    ----------
    Tversky, A. (1972). Elimination by aspects: a theory of choice. *Psychological Review* 79, 281-299.
    """
    feature, weight = pt.as_tensor_variable(feature), as_float(weight)
    # pm.sample asks steps without telling them the model: this tells which step draws these.
    for variable in (feature, weight):
        claim(variable, "aspect_feature_gibbs", instead_of="link_feature_gibbs")
    lapse = as_float(lapse)
    first, second = pair_positions(first, "first"), pair_positions(second, "second")
    if len(first) != len(second):
        raise ValueError(
            f"`first` has {len(first)} options and `second` {len(second)}: give one of each for each pair"
        )
    if (first == second).any():
        [pair, *_] = np.flatnonzero(first == second)
        raise ValueError(
            f"pair {pair} is of option {first[pair]} with itself: take such pairs out of `first` and `second`"
        )
    parts = [feature, weight, lapse, pt.constant(first), pt.constant(second)]
    inner = [v.type() for v in parts]
    z = inner[0].astype("float64")
    one, two = z[inner[3]], z[inner[4]]
    ahead, behind = (one * (1.0 - two)) @ inner[1], (two * (1.0 - one)) @ inner[1]
    total = ahead + behind
    share = pt.switch(pt.gt(total, 0.0), ahead / pt.switch(pt.gt(total, 0.0), total, 1.0), 0.5)
    chance = (1.0 - inner[2]) * share + 0.5 * inner[2]
    op = AspectProbabilities(inner, [chance], inline=True)
    return cast("TensorVariable", op(*parts))
