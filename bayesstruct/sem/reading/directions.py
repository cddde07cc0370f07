"""How many directions the draws of a graph tell where parameters or families tell them, in words."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.networks.priors.records import MixedColumns
from bayesstruct.sem.priors.records import SemNoise
from bayesstruct.sem.reading.noise import NORMAL

if TYPE_CHECKING:
    from bayesstruct.graphs.posteriors.arcs import ArcPosterior
    from bayesstruct.graphs.posteriors.edges import EdgePosterior

__all__ = ["direction_notes"]

_EDGE, _SURE = 0.5, 0.95
_OPEN = (
    " The table leaves the others open, as it must where noise is normal and variances are free: tiers, required arcs "
    "and interventions tell directions too."
)
_FAMILIES = (
    " In a network of several kinds of columns the families (kinds=) tell them: where a family is wrong, a wrong direction can be "
    "certain, and no check of the noise looks at it. Tiers, required arcs and interventions do not depend on families."
)


def direction_notes(posterior: "EdgePosterior | ArcPosterior") -> list[str]:
    """Say of how many pairs with an edge the direction is known, for linear structural equations and mixed networks.

    Parameters
    ----------
    posterior : EdgePosterior or ArcPosterior
        Draws of any graph.

    Returns
    -------
    list of str
        One remark, or none for other models and without edges.
    """
    mixed = MixedColumns.is_in(posterior.constants)
    known = mixed or SemNoise.is_in(posterior.constants)
    if not (known and "dag" in posterior.draws):  # trees of numbers and states have no directions
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
    if mixed:
        note += _FAMILIES if sure else ""
    else:
        note += _normal_columns(posterior)
        note += _OPEN if 2 * sure < edge.sum() else ""
    return [note]


def _normal_columns(posterior) -> str:
    """Name the columns whose noise is probably exactly normal, where it may be."""
    if NORMAL not in posterior.draws:
        return ""
    share = posterior.draws[NORMAL].mean(("chain", "draw")).to_numpy()
    names = [
        f"{name!r} ({p:.2f})"
        for name, p in zip(posterior.variables, share, strict=True)
        if p > _EDGE
    ]
    if not names:
        return f" No column has normal noise with a probability above {_EDGE:g}."
    return f" Probably normal noise, which tells no direction (mean of `{NORMAL}` over draws): {', '.join(names)}."
