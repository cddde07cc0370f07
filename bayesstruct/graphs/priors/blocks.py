"""Edge probabilities that depend on hidden blocks of the nodes, as variables of a model."""

from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable

    from bayesstruct.data.edge_priors import StochasticBlock

__all__ = ["block_edge_probability"]


def block_edge_probability(
    spec: "StochasticBlock", source: np.ndarray, target: np.ndarray
) -> "TensorVariable":
    """Probability of each edge by the hidden blocks of its ends; adds them to the model in context.

    These are ``block`` (node), ``block_share`` (block_label) and ``block_probability`` (block_pair).

    Parameters
    ----------
    spec : StochasticBlock
    source, target : ndarray of int
        Ends of the edges, which broadcast to the shape of the result.
    """
    model = pm.modelcontext(None)
    pairs = np.triu_indices(spec.blocks)
    names = [f"block {a} -- block {b}" for a, b in zip(*pairs, strict=True)]
    model.add_coords({"block_label": list(range(spec.blocks)), "block_pair": names})
    share = pm.Dirichlet(
        "block_share", np.full(spec.blocks, spec.concentration), dims="block_label"
    )
    block = pm.Categorical("block", share, dims="node")
    within = pairs[0] == pairs[1]
    alpha, beta = (
        np.where(within, inside, across)
        for inside, across in zip(spec.within, spec.between, strict=True)
    )
    probability = pm.Beta("block_probability", alpha, beta, dims="block_pair")
    at = np.zeros((spec.blocks, spec.blocks), int)
    at[pairs] = np.arange(len(names))
    number = pt.as_tensor_variable(np.maximum(at, at.T))
    first, second = (pt.as_tensor_variable(end) for end in (source, target))
    return probability[number[block[first], block[second]]]
