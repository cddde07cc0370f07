"""How many directions the draws of linear structural equations tell, in words."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.sem.priors.records import SemNoise

if TYPE_CHECKING:
    from bayesstruct.graphs.posteriors.arcs import ArcPosterior
    from bayesstruct.graphs.posteriors.edges import EdgePosterior

__all__ = ["direction_notes"]

_EDGE, _SURE = 0.5, 0.95


def direction_notes(posterior: "EdgePosterior | ArcPosterior") -> list[str]:
    """Say of how many pairs with an edge the direction is known; nothing of other models or without edges.

    Parameters
    ----------
    posterior : EdgePosterior or ArcPosterior
        Draws of any graph.

    Returns
    -------
    list of str
        One sentence, or two where fewer than half of the directions are known.
    """
    if not SemNoise.is_in(posterior.constants):
        return []
    arcs = posterior.draws["dag"].mean(("chain", "draw")).to_numpy()
    first, second = np.triu_indices(len(arcs), 1)
    forward, backward = arcs[first, second], arcs[second, first]
    edge = forward + backward > _EDGE
    share = np.maximum(forward, backward)[edge] / (forward + backward)[edge]
    if not edge.any():
        return []
    sure = int((share > _SURE).sum())
    note = (
        f"Of {edge.sum()} pairs of columns with an edge (probability above {_EDGE:g}), {sure} have a direction of "
        f"probability above {_SURE:g}, given that there is an edge."
    )
    if 2 * sure < edge.sum():
        note += (
            " The table leaves the others open, as it must where noise is normal and variances are free: tiers, required arcs "
            "and interventions tell directions too."
        )
    return [note]
