"""What a model of a graph records for its readers."""

import numpy as np

from bayesstruct.core.recorded import record

__all__ = ["record_ends"]


def record_ends(line, ends, dims):
    """Record which columns each edge or arc joins.

    With the position of each column, by which a result is told whose columns were sorted since.

    Parameters
    ----------
    line : {"edge", "arc"}
    ends : tuple of two int arrays
        Positions of source and target.
    dims : str
        Over the edges or arcs.
    """
    import pymc as pm

    for name, positions in zip(("source", "target"), ends, strict=True):
        record(f"{line}_{name}", positions, dims=dims)
    nodes = pm.modelcontext(None).coords["node"]
    record("node_position", np.arange(len(nodes)), dims="node")
