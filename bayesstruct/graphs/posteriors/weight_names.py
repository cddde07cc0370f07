"""What the weights of the edges of a result are."""

from typing import Any

from bayesstruct.graphs.records import AcyclicEdges

__all__ = ["INFORMATION", "weight_name"]

#: Weights without a sign.
INFORMATION = "mutual information in nats"


def weight_name(posterior: Any) -> str:
    """Return the name of the weights of undirected edges: partial correlations, unless the model has others.

    Parameters
    ----------
    posterior : EdgePosterior
    """
    drawn = {str(name) for name in posterior.draws}
    if "potentials" in posterior.constants:
        return "weight"
    if "parent_correlation" in drawn:
        return "correlation along the edge"
    if AcyclicEdges.is_in(posterior.constants) and "precision" not in drawn:
        return INFORMATION if "table" in drawn else "strength of dependence"
    return "partial correlation"
